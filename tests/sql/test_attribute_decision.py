"""attribute_decision: whom a decision of the ledger is about."""

from __future__ import annotations

import threading
from uuid import uuid4

import pytest

from tests.conftest import HostMaker
from tests.rig.databases import Connection
from tests.sql.both_stores import Stores, somebody
from tests.sql.memory_rpc import Memories
from tests.sql.rpc import NOBODY, at_once, call


@pytest.fixture
def stores(full_project: HostMaker) -> Stores:
    return Stores(full_project())


def test_a_decision_is_attributed_once_however_often_it_is_said(stores: Stores) -> None:
    decision, one, other = stores.decide("about two"), somebody(), somebody()

    assert stores.attribute(decision, one) == {
        "memory_id": decision,
        "subject_type": "candidate",
        "subject_id": one,
        "changed": True,
    }
    assert stores.attribute(decision, one)["changed"] is False
    assert stores.attribute(decision, one, "user")["changed"] is True
    assert stores.attribute(decision, other)["changed"] is True
    assert stores.attributed(decision) == sorted(
        [("acme", "candidate", one), ("acme", "candidate", other), ("acme", "user", one)]
    )
    assert stores.audited("decision_attributed")[0] == {
        "memory_id": decision,
        "subject_type": "candidate",
        "subject_id": one,
    }


def test_it_is_taken_back(stores: Stores) -> None:
    subject = somebody()
    decision = stores.decide("about them", subject)
    assert stores.attribute(decision, subject, remove=True)["changed"] is True
    assert stores.attribute(decision, subject, remove=True)["changed"] is False
    assert stores.attributed(decision) == []
    assert len(stores.audited("attribution_removed")) == 1


def test_what_no_workspace_of_the_organization_has_is_absent_in_the_same_words(stores: Stores) -> None:
    elsewhere = str(
        call(stores.database.service, "record_decision", workspace_id="globex", content="x")["memory_id"]
    )
    unmapped = str(
        call(stores.database.service, "record_decision", workspace_id="nobody's", content="x")["memory_id"]
    )
    lesson = stores.decide("a lesson")
    stores.database.service.execute(
        "update agent_memories set memory_type = 'lesson' where id = %s", (lesson,)
    )
    stores.map("globex", stores.memories.new_org())

    said = set()
    for memory_id in (elsewhere, unmapped, lesson, NOBODY, None):
        diagnostic = stores.service.refused(
            "RL404", "attribute_decision", memory_id=memory_id, subject_type="user", subject_id=somebody()
        )
        said.add(
            (
                str(diagnostic.message_primary).replace(memory_id or "without an id", "..."),
                diagnostic.message_hint,
            )
        )
        assert diagnostic.message_detail is None
    ((message, hint),) = said
    assert message == "There is no decision ... in a workspace of this organization."
    assert "map_workspace" in str(hint)


@pytest.mark.parametrize(
    ("sqlstate", "arguments"),
    [
        ("RL472", {"subject_type": "somebody"}),
        ("RL472", {"subject_type": None}),
        ("RL474", {"subject_id": None}),
        ("22023", {"subject_type": "workspace"}),
        ("22023", {"subject_type": "workspace", "subject_id": None}),
        ("22023", {"org_id": None}),
        ("RL404", {"org_id": NOBODY}),
    ],
)
def test_who_is_nobody_is_refused(stores: Stores, sqlstate: str, arguments: dict[str, str | None]) -> None:
    usual = {"memory_id": stores.decide("x"), "subject_type": "candidate", "subject_id": somebody()}
    diagnostic = stores.service.refused(sqlstate, "attribute_decision", **usual | arguments)
    assert diagnostic.message_hint


def test_nobody_but_the_service_may_call_it(stores: Stores) -> None:
    arguments = {"memory_id": stores.decide("x"), "subject_type": "user", "subject_id": somebody()}
    for caller in (stores.memories.as_anon(), stores.memories.as_member("owner")):
        caller.refused("42501", "attribute_decision", **arguments)


def test_without_the_ledger_it_says_what_is_missing(shared_memories: Memories) -> None:
    diagnostic = shared_memories.as_service().refused(
        "RL501", "attribute_decision", memory_id=NOBODY, subject_type="user", subject_id=somebody()
    )
    assert "ranked-ledger init" in str(diagnostic.message_hint)


def test_the_traces_that_returned_it_already_are_tied_and_others_are_not(stores: Stores) -> None:
    subject, decision, other = somebody(), stores.decide("about them"), stores.decide("about nobody")
    before = stores.ledger("recall_decisions", query="them")["request_id"]
    elsewhere = stores.ledger.trace(other)
    foreign = stores.ledger.trace(decision)  # in a workspace that is not the organization's
    stores.database.service.execute(
        "update agent_memory_recall_traces set workspace_id = 'globex' where request_id = %s", (foreign,)
    )

    stores.attribute(decision, subject)

    assert stores.tied(before) == [subject]
    assert stores.tied(elsewhere) == stores.tied(foreign) == []
    assert stores.words(before)[0] == "them"


def test_taking_it_back_frees_the_traces_that_nothing_else_ties(stores: Stores) -> None:
    subject, other = somebody(), somebody()
    wrong, right = stores.decide("not about them", subject, other), stores.decide("about them", subject)
    alone, together = stores.ledger.trace(wrong), stores.ledger.trace(wrong, right)
    named = stores.ledger("recall_decisions", query="not", subject={"type": "candidate", "id": subject})[
        "request_id"
    ]

    stores.attribute(wrong, subject, remove=True)

    assert stores.tied(alone) == [other]
    assert stores.tied(together) == sorted([subject, other])
    assert subject in stores.tied(named)


def test_what_was_erased_is_attributed_to_nobody_more_and_stays_whom_it_was_about(stores: Stores) -> None:
    subject = somebody()
    decision = stores.decide("about them", subject)
    stores.service("erase_subject", subject_type="candidate", subject_id=subject)

    for arguments in ({"subject_id": somebody()}, {"subject_id": subject, "remove": True}):
        diagnostic = stores.service.refused(
            "RL410", "attribute_decision", **{"memory_id": decision, "subject_type": "candidate"} | arguments
        )
        assert "erased" in str(diagnostic.message_primary)
    assert stores.attribute(decision, subject)["changed"] is False
    assert stores.attributed(decision) == [("acme", "candidate", subject)]


def test_an_attribution_that_could_not_follow_its_decision_is_taken_over(stores: Stores) -> None:
    subject = somebody()
    decision = stores.decide("about them", subject)
    other = stores.memories.new_org()
    stores.map("globex", other)
    stores.database.superuser.execute("set session_replication_role = replica")
    stores.database.superuser.execute(
        "update agent_memories set workspace_id = 'globex' where id = %s", (decision,)
    )
    stores.database.superuser.execute("set session_replication_role = origin")

    assert stores.attribute(decision, subject, org_id=other)["changed"] is True
    assert stores.attributed(decision) == [("globex", "candidate", subject)]
    assert len(stores.access(subject, org=other)["decisions"]) == 1
    assert stores.access(subject)["decisions"] == []


# Beside others ---------------------------------------------------------------------------------------------------------


def test_a_recall_that_has_not_committed_is_waited_for_and_tied(stores: Stores) -> None:
    subject, decision = somebody(), stores.decide("about them")
    with stores.database.connect("service_role", autocommit=False) as recalling:
        request = call(recalling, "recall_decisions", workspace_id="acme", query="them")["request_id"]
        thread = threading.Thread(
            target=lambda: stores.attribute(
                decision, subject, connection=stores.database.connect("service_role")
            )
        )
        thread.start()
        stores.database.wait_until(
            "select exists (select from pg_stat_activity where query like '%attribute_decision%' and wait_event_type = 'Lock')"
        )
        recalling.commit()
    thread.join()
    assert stores.tied(request) == [subject]


def test_a_recall_that_comes_while_it_is_attributed_is_tied(stores: Stores) -> None:
    subject, decision, requests = somebody(), stores.decide("about them"), []
    with stores.database.connect("service_role", autocommit=False) as attributing:
        stores.attribute(decision, subject, connection=attributing)
        session = stores.database.connect("service_role")
        thread = threading.Thread(
            target=lambda: requests.append(
                call(session, "recall_decisions", workspace_id="acme", query="them")["request_id"]
            )
        )
        thread.start()
        stores.database.wait_until(
            "select exists (select from pg_stat_activity where query like '%recall_decisions%' and wait_event_type = 'Lock')"
        )
        attributing.commit()
    thread.join()
    assert stores.tied(requests[0]) == [subject]


def test_recalls_and_attributions_at_once_leave_no_trace_untied(stores: Stores) -> None:
    decisions = [stores.decide(f"decision {number}") for number in range(6)]
    subject = somebody()

    def recalls(connection: Connection) -> list[bool]:
        return [
            call(connection, "recall_decisions", workspace_id="acme", query="decision")["traced"]
            for _ in range(8)
        ]

    def attributions(connection: Connection) -> int:
        for decision in decisions:
            stores.attribute(decision, subject, connection=connection)
        return len(decisions)

    answers = at_once(stores.database, [recalls, recalls, recalls, attributions])
    assert answers == [[True] * 8] * 3 + [6]
    ((untied,),) = stores.rows(
        "select count(*) from agent_memory_recall_traces t where not exists ("
        "select from long_term_memory.trace_subjects s where s.trace_id = t.id)"
    )
    assert untied == 0


def test_an_erasure_and_an_attribution_of_one_decision_take_turns(stores: Stores) -> None:
    for _ in range(5):
        subject, other = somebody(), somebody()
        decision = stores.decide("about them", subject)

        def erase(connection: Connection, subject: str = subject) -> object:
            return call(
                connection, "erase_subject", org_id=stores.org, subject_type="candidate", subject_id=subject
            )["counts"]["decisions"]

        def attribute(connection: Connection, decision: str = decision, other: str = other) -> object:
            return stores.attribute(decision, other, connection=connection)["changed"]

        erased, attributed = at_once(stores.database, [erase, attribute])
        assert erased == 1
        about_other = [kind for _, kind, whom in stores.attributed(decision) if whom == other]
        if attributed is True:  # it came first: erased for both
            assert about_other == ["candidate"]
            assert stores.access(other)["decisions"][0]["erased_with_other"] is True
        else:
            assert getattr(attributed, "sqlstate", None) == "RL410", attributed
            assert about_other == []


def test_a_decision_that_is_being_moved_away_is_not_attributed_where_it_was(stores: Stores) -> None:
    decision, subject = stores.decide("about them"), str(uuid4())
    with stores.database.connect("service_role", autocommit=False) as moving:
        moving.execute("update agent_memories set workspace_id = 'nowhere' where id = %s", (decision,))
        answers: list[object] = []

        def attribute() -> None:
            try:
                answers.append(
                    stores.attribute(decision, subject, connection=stores.database.connect("service_role"))
                )
            except Exception as error:
                answers.append(error)

        thread = threading.Thread(target=attribute)
        thread.start()
        stores.database.wait_until(
            "select exists (select from pg_stat_activity where query like '%attribute_decision%' and wait_event_type = 'Lock')"
        )
        moving.commit()
    thread.join()
    assert getattr(answers[0], "sqlstate", None) == "RL404", answers
    assert stores.attributed() == []
