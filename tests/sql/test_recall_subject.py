"""recall_decisions(p_subject): a question that is about somebody says so, and its trace is theirs."""

from __future__ import annotations

import uuid

import pytest

from tests.conftest import HostMaker
from tests.sql.both_stores import Stores, somebody
from tests.sql.rpc import Ledger, at_once, call


@pytest.fixture
def stores(full_project: HostMaker) -> Stores:
    return Stores(full_project())


def about(subject: str, kind: str = "candidate") -> dict[str, str]:
    return {"type": kind, "id": subject}


def test_without_the_long_term_memory_the_trace_keeps_it_and_the_answer_is_the_same(ledger: Ledger) -> None:
    ledger.record("Invoices are immutable")
    subject = somebody()

    plain = ledger("recall_decisions", query="immutable")
    told = ledger("recall_decisions", query="immutable", subject=about(subject.upper()))

    assert told["hits"] == plain["hits"]
    assert "subject" not in plain["arguments"]
    assert told["arguments"] == plain["arguments"] | {"subject": about(subject)}
    ((payload,),) = ledger.database.rows(
        "select request_payload from agent_memory_recall_traces where request_id = %s", (told["request_id"],)
    )
    assert payload["subject"] == about(subject)


MALFORMED = [
    "candidate",
    [],
    {},
    {"type": "candidate"},
    {"id": "3f1e5b1c-0000-4000-8000-000000000001"},
    {"type": None, "id": "3f1e5b1c-0000-4000-8000-000000000001"},
    {"type": "somebody", "id": "3f1e5b1c-0000-4000-8000-000000000001"},
    {"type": "candidate", "id": "17"},
    {"type": "workspace", "id": None},
    {"type": "candidate", "id": 17},
    {"type": "candidate", "id": ["3f1e5b1c-0000-4000-8000-000000000001"]},
    {"type": "candidate", "id": "3f1e5b1c-0000-4000-8000-000000000001", "name": "more"},
]


@pytest.mark.parametrize("subject", MALFORMED, ids=str)
def test_who_is_named_in_another_shape_is_refused(shared_ledger: Ledger, subject: object) -> None:
    diagnostic = shared_ledger.refused("22023", "recall_decisions", query="x", subject=subject)
    assert diagnostic.message_hint is not None
    assert '{"type": "candidate", "id": "<uuid>"}' in diagnostic.message_hint


def test_a_trace_that_the_host_writes_cannot_be_tied_and_so_nobody_is_named(shared_ledger: Ledger) -> None:
    shared_ledger.refused("22023", "recall_decisions", subject=about(somebody()), trace_by_host=True)


def test_nobody_is_named_by_null(shared_ledger: Ledger) -> None:
    assert "subject" not in shared_ledger("recall_decisions", subject=None)["arguments"]
    ((answer,),) = shared_ledger.connection.execute(
        "select recall_decisions('acme', p_subject => 'null'::jsonb) -> 'arguments' ? 'subject'"
    ).fetchall()
    assert answer is False


def test_a_repeat_names_the_same_subject(ledger: Ledger) -> None:
    request, subject = str(uuid.uuid4()), somebody()
    asked = {"query": "what holds?", "request_id": request, "subject": about(subject)}
    ledger("recall_decisions", **asked)

    assert ledger("recall_decisions", **asked)["replayed"] is True
    ledger.refused("RL409", "recall_decisions", **asked | {"subject": about(somebody())})
    ledger.refused("RL409", "recall_decisions", query="what holds?", request_id=request)


@pytest.mark.parametrize("kind", ["candidate", "user", "workspace"])
def test_the_trace_of_a_mapped_workspace_is_tied(stores: Stores, kind: str) -> None:
    subject = somebody()
    answer = stores.ledger("recall_decisions", query="what of them?", subject=about(subject, kind))

    assert answer["traced"] is True
    assert stores.tied(answer["request_id"]) == [subject]
    assert stores.words(answer["request_id"])[0] == "what of them?"


def test_a_workspace_that_is_mapped_later_has_what_was_said_before_tied(full_project: HostMaker) -> None:
    stores = Stores(full_project(), mapped=False)
    subject = somebody()
    named = stores.ledger("recall_decisions", query="what of them?", subject=about(subject))["request_id"]
    stores.ledger("recall_decisions", query="what of nobody?")
    elsewhere = call(
        stores.database.service, "recall_decisions", workspace_id="globex", query="?", subject=about(subject)
    )["request_id"]
    stores.database.service.execute(  # a host's own payload, which means something else
        "insert into agent_memory_recall_traces (workspace_id, query, schema_version, request_payload) "
        """values ('acme', 'q', '1', '{"subject": "invoices"}'), ('acme', 'q', '1', '[]'),
                  ('acme', 'q', '1', '{"subject": {"type": "candidate", "id": "17"}}')"""
    )
    assert stores.tied(named) == []

    stores.map("acme")

    assert stores.tied(named) == [subject]
    assert stores.tied(elsewhere) == []
    assert stores.rows("select count(*) from long_term_memory.trace_subjects") == [(1,)]


def test_without_a_trace_nothing_is_tied(stores: Stores) -> None:
    answer = stores.ledger("recall_decisions", query="what of them?", subject=about(somebody()), trace=False)
    assert answer["traced"] is False
    assert stores.rows("select count(*) from long_term_memory.trace_subjects") == [(0,)]


def test_while_its_subject_is_being_erased_a_recall_does_not_wait_and_leaves_no_words(stores: Stores) -> None:
    subject = somebody()
    with stores.database.connect("service_role", autocommit=False) as erasing:
        erasing.execute("select long_term_memory.hold_subject(%s, 'candidate', %s)", (stores.org, subject))
        answer = stores.ledger("recall_decisions", query="what of them?", subject=about(subject))
        erasing.rollback()

    assert answer["traced"] is True
    assert stores.words(answer["request_id"]) == ("", {})
    assert stores.tied(answer["request_id"]) == [subject]


def test_a_recall_that_began_before_an_erasure_leaves_no_words_behind_it(stores: Stores) -> None:
    subject = somebody()
    stores.memories.insert("Prefers calls", subject_type="candidate", subject_id=subject)
    with stores.database.connect("service_role", autocommit=False) as recalling:
        recalling.execute("select now()")
        stores.service("erase_subject", subject_type="candidate", subject_id=subject)
        ((answer,),) = recalling.execute(
            "select recall_decisions('acme', 'what of them?', p_subject => jsonb_build_object('type', 'candidate', 'id', %s::text))",
            (subject,),
        ).fetchall()
        recalling.commit()

    assert stores.words(answer["request_id"]) == ("", {})
    stores.database.superuser.execute(
        "update long_term_memory.erasures set erased_at = erased_at - interval '3 minutes'"
    )
    later = stores.ledger("recall_decisions", query="are they gone?", subject=about(subject))
    assert stores.words(later["request_id"])[0] == "are they gone?"


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_under_an_older_snapshot_no_words_are_kept_since_an_erasure_is_not_seen(
    stores: Stores, level: str
) -> None:
    subject = somebody()
    with stores.database.connect("service_role", autocommit=False) as recalling:
        recalling.execute(f"set transaction isolation level {level}")
        ((answer,),) = recalling.execute(
            "select recall_decisions('acme', 'what of them?', p_subject => jsonb_build_object('type', 'candidate', 'id', %s::text))",
            (subject,),
        ).fetchall()
        recalling.commit()
    assert answer["traced"] is True
    assert stores.words(answer["request_id"]) == ("", {})


def test_recalls_about_one_subject_run_beside_each_other(stores: Stores) -> None:
    stores.ledger.record("Invoices are immutable")
    subject = somebody()
    answers = at_once(
        stores.database,
        [
            lambda connection: [
                call(
                    connection,
                    "recall_decisions",
                    workspace_id="acme",
                    query="immutable",
                    subject=about(subject),
                )["traced"]
                for _ in range(5)
            ]
            for _ in range(8)
        ],
    )
    assert answers == [[True] * 5] * 8
    assert stores.rows("select count(*) from long_term_memory.trace_subjects") == [(40,)]
