"""subject_access: everything that both stores hold about a person, in one document, and nobody else's."""

from __future__ import annotations

import json
import re
import threading
from datetime import datetime
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.conftest import HostMaker
from tests.rig.databases import Connection
from tests.sql.both_stores import Stores, somebody
from tests.sql.memory_rpc import Memories
from tests.sql.rpc import HOSTILE, NOBODY, call, count

PARTS = ("memories", "decisions", "recalls", "traces", "erasures")


@pytest.fixture
def stores(full_project: HostMaker) -> Stores:
    return Stores(full_project())


def access(
    memories: Memories, subject: str, kind: str = "candidate", org: str | None = None
) -> dict[str, Any]:
    answer = memories.as_service(org)("subject_access", subject_type=kind, subject_id=subject)
    assert isinstance(answer, dict)
    return answer


# Memories --------------------------------------------------------------------------------------------------------------


def test_about_somebody_unknown_the_document_is_empty_and_has_its_parts(memories: Memories) -> None:
    subject = somebody()
    answer = access(memories, subject)
    assert answer | {"as_of": None} == {
        "subject": {"type": "candidate", "id": subject},
        "org_id": memories.org,
        "as_of": None,
        **{part: [] for part in PARTS},
        "notes": [
            "The decision ledger is not installed in this project: decisions are neither looked for nor shown."
        ],
    }
    assert datetime.fromisoformat(answer["as_of"])


def test_a_memory_says_who_wrote_it_in_which_grade_from_which_run_and_when_it_fades(
    memories: Memories,
) -> None:
    memories.allow_asserted()
    subject, member = somebody(), memories.new_member()
    about = {"subject_type": "candidate", "subject_id": subject}
    service, person = memories.as_service(), memories.as_user(member)
    service.remember(
        "said by a model", source_run_id="run-7", expires_at="2199-01-01T00:00:00+00:00", **about
    )
    service.remember("said for a member", author="person", asserted_by=member, **about)
    person.remember("said by a member", author="person", **about)
    gone = service.id("fades", expires_at="2199-01-01T00:00:00+00:00", **about)
    memories.expire(gone)

    model, asserted, verified, expired = access(memories, subject)["memories"]

    assert (model["text"], model["author"], model["grade"], model["source_run_id"]) == (
        "said by a model", "model", None, "run-7",
    )  # fmt: skip
    assert (model["expires_at"], model["expired"]) == ("2199-01-01T00:00:00+00:00", False)
    assert (asserted["grade"], asserted["asserted_by"], asserted["written_by"]) == ("asserted", member, None)
    assert (verified["grade"], verified["asserted_by"], verified["written_by"]) == ("verified", None, member)
    assert expired["expired"] is True
    assert all(
        one["can_use_as_instruction"] is False and one["erased_at"] is None for one in (model, expired)
    )


def test_a_memory_has_its_review_and_its_history(memories: Memories) -> None:
    subject, admin = somebody(), memories.new_member("admin")
    reviewer = memories.as_user(admin)
    memory = memories.as_service().id("likes tee", subject_type="candidate", subject_id=subject)
    reviewer("correct_memory", memory_id=memory, text="likes tea", note="a slip")
    reviewer(
        "review_memory", memory_id=memory, outcome="approved", can_use_as_instruction=True, note="asked them"
    )

    (held,) = access(memories, subject)["memories"]

    assert (held["review"]["outcome"], held["review"]["grade"], held["review"]["by"]) == (
        "approved",
        "verified",
        admin,
    )
    assert held["review"]["at"]
    assert held["can_use_as_instruction"] is True
    remembered, corrected, reviewed = held["history"]
    assert (remembered["action"], remembered["text_before"]) == ("remembered", None)
    assert (corrected["action"], corrected["text_before"], corrected["note"]) == (
        "corrected",
        "likes tee",
        "a slip",
    )
    assert (reviewed["action"], reviewed["outcome"], reviewed["grade"], reviewed["actor_id"], reviewed["note"]) == (
        "reviewed", "approved", "verified", admin, "asked them",
    )  # fmt: skip


def test_a_memory_says_which_runs_read_it_and_a_recall_what_was_asked(memories: Memories) -> None:
    subject, member = somebody(), memories.new_member()
    about = {"subject_type": "candidate", "subject_id": subject, "author": "person"}
    read = memories.as_user(member).id("likes tea", **about)
    memories.as_user(member).id("likes coffee", **about)
    by_run = memories.as_service().recall("tea", run_id="run-9", match_count=1)["recall_id"]
    by_person = memories.as_user(member).recall("tea", match_count=1)["recall_id"]

    answer = access(memories, subject)

    held = {one["text"]: one["read_by"] for one in answer["memories"]}
    assert held["likes coffee"] == []
    assert [(one["recall_id"], one["run_id"], one["recalled_by"]) for one in held["likes tea"]] == [
        (by_run, "run-9", None),
        (by_person, None, member),
    ]
    assert [
        (one["recall_id"], one["query"], one["run_id"], one["recalled_by"]) for one in answer["recalls"]
    ] == [
        (by_run, "tea", "run-9", None),
        (by_person, "tea", None, member),
    ]
    assert read in {one["memory_id"] for one in answer["memories"]}


def test_what_is_left_of_an_erased_memory_and_the_receipt_are_shown(memories: Memories) -> None:
    subject = somebody()
    memories.as_service().remember("likes tea", subject_type="candidate", subject_id=subject)
    receipt = memories.as_service()("erase_subject", subject_type="candidate", subject_id=subject)

    answer = access(memories, subject)

    (held,) = answer["memories"]
    assert held["text"] == ""
    assert held["erased_at"] is not None
    (erasure,) = answer["erasures"]
    assert erasure == {
        "receipt_id": receipt["receipt_id"],
        "erased_at": receipt["erased_at"],
        "grade": "service",
        "actor_id": None,
        "asserted_by": None,
        "counts": receipt["counts"],
    }
    assert "likes tea" not in json.dumps(answer)


@pytest.mark.parametrize("text", HOSTILE)
def test_words_come_through_unharmed(shared_memories: Memories, text: str) -> None:
    subject = somebody()
    shared_memories.insert(text, subject_type="user", subject_id=subject)
    ((held,),) = [access(shared_memories, subject, "user")["memories"]]
    assert held["text"] == text


# Nobody else's ---------------------------------------------------------------------------------------------------------


def test_what_others_are_told_in_the_same_rows_stays_theirs(memories: Memories) -> None:
    one, other = somebody(), somebody()
    for subject, text in (
        (one, "The first prefers tea in the morning"),
        (other, "The second prefers tea in the evening"),
    ):
        memories.insert(text, subject_type="candidate", subject_id=subject, author="person")
    memories.insert("The third prefers tea too", subject_type="user", subject_id=one, author="person")
    memories.as_service().recall("what tea does the second prefer?")
    memories.as_service().recall("what tea does the first prefer?", subject_type="candidate", subject_id=one)

    answer = access(memories, one)

    assert [held["text"] for held in answer["memories"]] == ["The first prefers tea in the morning"]
    assert [(held["query"], held["also_about"]) for held in answer["recalls"]] == [
        (None, 2),
        ("what tea does the first prefer?", 0),
    ]
    assert re.search("second|third", json.dumps(answer)) is None
    assert any("something about others too: 1." in note for note in answer["notes"])


def test_a_question_that_was_said_to_be_about_somebody_is_theirs_whatever_it_returned(stores: Stores) -> None:
    one, other = somebody(), somebody()
    stores.decide("about both", one, other)
    said = stores.ledger("recall_decisions", query="what of one?", subject={"type": "candidate", "id": one})

    assert [held["query"] for held in stores.access(one)["traces"]] == ["what of one?"]
    assert stores.access(one)["traces"][0]["request_payload"]["subject"]["id"] == one
    assert [held["query"] for held in stores.access(other)["traces"]] == [None]
    assert stores.access(other)["traces"][0]["request_payload"] is None
    assert one not in json.dumps(stores.access(other))
    assert stores.access(other)["traces"][0]["request_id"] == said["request_id"]


def test_another_organization_s_rows_are_not_shown(stores: Stores) -> None:
    subject, other = somebody(), stores.memories.new_org()
    stores.memories.insert("ours", subject_type="candidate", subject_id=subject)
    stores.memories.insert("theirs", org=other, subject_type="candidate", subject_id=subject)
    stores.decide("a decision of ours", subject)
    stores.ledger("recall_decisions", query="decision")

    theirs = stores.access(subject, org=other)
    assert [held["text"] for held in theirs["memories"]] == ["theirs"]
    assert [theirs[part] for part in PARTS[1:]] == [[], [], [], []]
    assert [held["text"] for held in stores.access(subject)["memories"]] == ["ours"]


@pytest.mark.parametrize("to_another", [True, False])
def test_a_workspace_that_belongs_to_the_organization_no_more_is_not_shown(
    stores: Stores, to_another: bool
) -> None:
    subject = somebody()
    stores.decide("about them", subject)
    stores.ledger("recall_decisions", query="them")
    other = stores.memories.new_org()
    call(stores.database.service, "map_workspace", org_id=other if to_another else None, workspace_id="acme")

    for org in (stores.org, other):
        answer = stores.access(subject, org=org)
        assert answer["decisions"] == answer["traces"] == []


def test_a_decision_in_a_workspace_of_nobody_s_is_not_shown_even_where_its_attribution_is_left(
    stores: Stores,
) -> None:
    subject = somebody()
    decision = stores.decide("about them", subject)
    stores.database.superuser.execute("set session_replication_role = replica")
    stores.database.superuser.execute("delete from long_term_memory.workspace_orgs")
    stores.database.superuser.execute("set session_replication_role = origin")
    assert len(stores.attributed(decision)) == 1
    assert stores.access(subject)["decisions"] == []


def test_the_former_workspaces_of_a_decision_are_not_shown(stores: Stores) -> None:
    subject = somebody()
    decision = str(
        call(stores.database.service, "record_decision", workspace_id="secret place", content="x")[
            "memory_id"
        ]
    )
    stores.database.service.execute(
        "update agent_memories set workspace_id = 'acme' where id = %s", (decision,)
    )
    stores.attribute(decision, subject)
    (held,) = stores.access(subject)["decisions"]
    assert held["memory_id"] == decision
    assert "secret place" not in json.dumps(held)


# Decisions -------------------------------------------------------------------------------------------------------------


def test_a_decision_is_shown_with_everything_that_hangs_on_it(stores: Stores) -> None:
    subject, other = somebody(), somebody()
    ground = stores.decide("the ground")
    decision = stores.decide(
        "call them in the afternoon",
        subject,
        other,
        rationale="they sleep late",
        alternatives=["in the morning"],
        importance=0.9,
        project_id="hiring",
        task_id="calls",
        metadata={"who": "the named"},
    )
    service = stores.database.service
    stores.ledger("link_decisions", **{"from": decision, "to": ground}, metadata={"why": "the linked word"})
    stores.ledger(
        "set_decision_lifecycle",
        memory_id=decision,
        lifecycle="disputed",
        reason="the disputed word",
        actor="a reviewer",
    )
    for table, columns, word in (
        ("agent_memory_source_refs", "source_kind, uri, title", "the sourced word"),
        ("agent_memory_artifacts", "artifact_kind, uri, description", "the made word"),
        ("agent_memory_review_actions", "action, actor_label, notes", "the reviewed word"),
    ):
        kind = "edit" if "review" in table else "file"
        service.execute(
            f"insert into {table} (memory_id, {columns}) values (%s, %s, 'x', %s)", (decision, kind, word)
        )
    service.execute("update agent_memories set channel_id = 'the channel word' where id = %s", (decision,))

    (held,) = stores.access(subject)["decisions"]

    expected = {
        "memory_id": decision,
        "workspace_id": "acme",
        "project_id": "hiring",
        "task_id": "calls",
        "step_index": 0,
        "memory_type": "decision",
        "content": "call them in the afternoon",
        "rationale": "they sleep late",
        "alternatives": ["in the morning"],
        "importance": 0.9,
        "lifecycle_status": "disputed",
        "metadata": {"who": "the named"},
        "erased_at": None,
        "erased_with_other": False,
        "also_about": 1,
        "read_by": [],
    }
    assert {name: held[name] for name in expected} == expected
    assert held["attributed_at"]
    assert held["thought"]["content"] == "call them in the afternoon"
    assert held["source_refs"][0]["title"] == "the sourced word"
    assert held["artifacts"][0]["description"] == "the made word"
    assert "the reviewed word" in [action["notes"] for action in held["review_actions"]]
    assert [change["reason"] for change in held["history"]] == ["the disputed word"]
    assert [link["metadata"] for link in held["links"]] == [{"why": "the linked word"}]
    assert held["host_columns"]["channel_id"] == "the channel word"
    assert other not in json.dumps(held)


def test_a_decision_says_which_recalls_returned_it_and_what_became_of_it_there(stores: Stores) -> None:
    subject = somebody()
    used, ignored, others = (
        stores.decide("first", subject),
        stores.decide("second", subject),
        stores.decide("third"),
    )
    request = stores.ledger("recall_decisions", runtime_name="agent-7", task_id=None)["request_id"]
    stores.ledger(
        "mark_recall_usage",
        request_id=request,
        used=[used],
        ignored=[
            {"memory_id": ignored, "reason": "not now"},
            {"memory_id": others, "reason": "somebody else's"},
        ],
    )

    answer = stores.access(subject)

    read = {held["content"]: held["read_by"] for held in answer["decisions"]}
    assert [(one["used"], one["ignored_reason"], one["runtime_name"]) for one in read["first"]] == [
        (True, None, "agent-7")
    ]
    assert [(one["request_id"], one["used"], one["ignored_reason"]) for one in read["second"]] == [
        (request, False, "not now")
    ]
    assert "somebody else" not in json.dumps(answer)
    assert [held["request_id"] for held in answer["traces"]] == [request]


def test_a_thought_that_another_memory_points_to_is_not_shown(stores: Stores) -> None:
    subject = somebody()
    decision = stores.decide("about them", subject)
    stores.database.service.execute(
        "insert into agent_memories (thought_id, workspace_id, memory_type, summary, content) "
        "select thought_id, 'globex', 'lesson', 'x', 'x' from agent_memories where id = %s",
        (decision,),
    )
    assert stores.access(subject)["decisions"][0]["thought"] is None


def test_a_decision_that_was_erased_for_somebody_else_says_so(stores: Stores) -> None:
    subject, other = somebody(), somebody()
    stores.decide("about both", subject, other)
    stores.service("erase_subject", subject_type="candidate", subject_id=other)

    answer = stores.access(subject)
    (held,) = answer["decisions"]
    assert (held["content"], held["erased_with_other"]) == ("[erased]", True)
    assert held["erased_at"] is not None
    assert any("erased for somebody else" in note for note in answer["notes"])
    assert not any("erased for somebody else" in note for note in stores.access(other)["notes"])


def test_a_decision_that_was_retyped_is_still_held(stores: Stores) -> None:
    subject = somebody()
    decision = stores.decide("about them", subject)
    stores.database.service.execute(
        "update agent_memories set memory_type = 'lesson' where id = %s", (decision,)
    )
    assert [held["memory_type"] for held in stores.access(subject)["decisions"]] == ["lesson"]


def test_documents_that_cannot_be_read_are_shown_as_text(stores: Stores) -> None:
    subject = somebody()
    decision = stores.decide("about them", subject)
    deep = '{"a":' * 300 + '"the deep word"' + "}" * 300
    stores.database.service.execute(
        "update agent_memories set metadata = %s::jsonb where id = %s", (deep, decision)
    )
    stores.database.service.execute(
        "update agent_decision_ledger set metadata = %s where memory_id = %s", (Jsonb("no object"), decision)
    )
    (held,) = stores.access(subject)["decisions"]
    assert "the deep word" in held["metadata"]
    assert held["ledger_metadata"] == "no object"


@pytest.mark.parametrize("missing", ["agent_memory_source_refs", "agent_memory_artifacts"])
def test_a_host_that_lacks_a_table_is_no_obstacle(stores: Stores, missing: str) -> None:
    subject = somebody()
    stores.decide("about them", subject)
    stores.database.owner.execute(f"drop table {missing}")
    (held,) = stores.access(subject)["decisions"]
    assert held["source_refs"] == held["artifacts"] == []


def test_an_install_of_the_hosts_own_with_other_indexes_and_columns_works(full_host: HostMaker) -> None:
    database = full_host(dimension=384)
    database.owner.execute("alter table agent_memories add column gist vector(3), add column said text")
    stores = Stores(database)
    subject = somebody()
    decision = "10000000-0000-4000-8000-000000000001"
    database.service.execute(
        "update agent_memories set gist = '[1,2,3]', said = 'the said word' where id = %s", (decision,)
    )
    stores.attribute(decision, subject)

    answer = stores.access(subject)
    (held,) = answer["decisions"]
    assert held["host_columns"]["said"] == "the said word"
    assert "gist" not in held["host_columns"]
    assert [one["request_id"] for one in held["read_by"]] == ["20000000-0000-4000-8000-000000000001"]
    assert [one["query"] for one in answer["traces"]] == ["may an invoice change?"]


def test_rows_that_a_policy_hides_from_the_reader_are_not_passed_over_in_silence(stores: Stores) -> None:
    subject = somebody()
    stores.decide("about them", subject)
    assert not any("security" in note for note in stores.access(subject)["notes"])
    stores.database.owner.execute("alter table agent_memories force row level security")
    stores.database.superuser.execute("alter role postgres nobypassrls")
    try:
        answer = stores.access(subject)
    finally:
        stores.database.superuser.execute("alter role postgres bypassrls")
    assert any("forced on public.agent_memories," in note for note in answer["notes"])


# Who may ---------------------------------------------------------------------------------------------------------------


def test_admins_owners_the_person_themself_and_the_service_may(memories: Memories) -> None:
    person = memories.new_user()
    memories.insert("likes tea", subject_type="user", subject_id=person)
    about = {"subject_type": "user", "subject_id": person}
    allowed = (
        memories.as_member("admin"),
        memories.as_member("owner"),
        memories.as_service(),
        memories.as_user(person),
        memories.as_user(memories.new_member("member", user=person)),
    )
    for caller in allowed:
        assert [held["text"] for held in caller("subject_access", **about)["memories"]] == ["likes tea"]


def test_everybody_else_is_refused_alike(memories: Memories) -> None:
    person, other_org = memories.new_user(), memories.new_org()
    memories.insert("likes tea", subject_type="user", subject_id=person)
    refused = (
        memories.as_member("member"),
        memories.as_user(memories.new_user()),
        memories.as_user(memories.new_member("owner", other_org)),
    )
    said = {
        (diagnostic.message_primary, diagnostic.message_hint)
        for caller in refused
        for org in (memories.org, NOBODY)
        for diagnostic in [
            caller.refused("42501", "subject_access", org_id=org, subject_type="user", subject_id=person)
        ]
    }
    assert len(said) == 1
    # a candidate of the same id is not the user
    memories.as_user(person).refused("42501", "subject_access", subject_type="candidate", subject_id=person)
    memories.as_anon().refused("42501", "subject_access", subject_type="user", subject_id=person)
    memories.as_service(NOBODY).refused("RL404", "subject_access", subject_type="user", subject_id=person)


@pytest.mark.parametrize(
    ("sqlstate", "arguments"),
    [
        ("RL472", {"subject_type": "somebody"}),
        ("RL474", {"subject_id": None}),
        ("RL474", {"subject_type": "workspace", "subject_id": None}),
        ("22023", {"org_id": None}),
    ],
)
def test_who_is_nobody_is_refused(
    shared_memories: Memories, sqlstate: str, arguments: dict[str, str | None]
) -> None:
    usual = {"subject_type": "user", "subject_id": somebody()}
    assert shared_memories.as_service().refused(sqlstate, "subject_access", **usual | arguments).message_hint


def test_a_person_learns_nothing_of_organizations_that_hold_nothing_about_them(memories: Memories) -> None:
    person = memories.new_user()
    about = {"subject_type": "user", "subject_id": person}
    here = memories.as_user(person)("subject_access", **about)
    nowhere = memories.as_user(person, NOBODY)("subject_access", **about)
    assert here | {"as_of": None, "org_id": None} == nowhere | {"as_of": None, "org_id": None}
    assert count(memories.database, "long_term_memory.audit_events") == 0


def test_each_access_leaves_an_audit_event_of_ids_and_numbers(stores: Stores) -> None:
    person, admin = stores.memories.new_user(), stores.memories.new_member("admin")
    about = {"subject_type": "user", "subject_id": person}
    stores.memories.insert("likes tea", **about)
    stores.attribute(stores.decide("about them"), person, "user")
    callers = (stores.service, stores.memories.as_user(admin), stores.memories.as_user(person))
    for caller in callers:
        caller("subject_access", **about)
    stores.memories.as_user(admin)("subject_access", subject_type="candidate", subject_id=person)

    events = stores.rows(
        "select actor_id::text, payload from long_term_memory.audit_events where kind = 'subject_access' order by id"
    )
    told = about | {"memories": 1, "decisions": 1}
    assert events == [
        (None, told),
        (admin, told),
        (person, told),
        (admin, {"subject_type": "candidate", "subject_id": person, "memories": 0, "decisions": 0}),
    ]


# As a whole ------------------------------------------------------------------------------------------------------------


def test_an_erasure_that_is_under_way_is_waited_for(stores: Stores) -> None:
    subject = somebody()
    stores.memories.insert("likes tea", subject_type="candidate", subject_id=subject)
    stores.decide("about them", subject)
    documents: list[dict[str, Any]] = []
    with stores.database.connect("service_role", autocommit=False) as erasing:
        call(erasing, "erase_subject", org_id=stores.org, subject_type="candidate", subject_id=subject)
        session = stores.database.connect("service_role")
        thread = threading.Thread(
            target=lambda: documents.append(
                call(
                    session, "subject_access", org_id=stores.org, subject_type="candidate", subject_id=subject
                )
            )
        )
        thread.start()
        stores.database.wait_until(
            "select exists (select from pg_stat_activity where query like '%subject_access%' and wait_event_type = 'Lock')"
        )
        erasing.commit()
    thread.join()
    (document,) = documents
    assert [held["text"] for held in document["memories"]] == [""]
    assert [held["content"] for held in document["decisions"]] == ["[erased]"]
    assert len(document["erasures"]) == 1


def scans(connection: Connection) -> dict[str, int]:
    return dict(
        connection.execute(
            "select relid::regclass::text, seq_scan from pg_stat_xact_user_tables "
            "where schemaname in ('public', 'long_term_memory', 'ranked_ledger') and seq_scan > 0"
        ).fetchall()
    )


def test_every_look_up_is_by_index_also_where_the_plans_were_made_of_empty_tables(stores: Stores) -> None:
    subject = somebody()
    stores.database.superuser.execute("vacuum analyze")  # empty: a scan of nothing is as good as an index
    with stores.database.connect("service_role", autocommit=False) as session:
        ask = {"org_id": stores.org, "subject_type": "candidate", "subject_id": subject}
        for _ in range(6):
            call(session, "subject_access", **ask)
        session.commit()
        fill = stores.database.superuser
        fill.execute(
            "insert into long_term_memory.agent_memories (org_id, subject_type, subject_id, text) "
            "select %s, 'candidate', case when i %% 10 = 0 then %s::uuid else gen_random_uuid() end, 'memory ' || i "
            "from generate_series(1, 2000) i",
            (stores.org, subject),
        )
        stores.decide("about them", subject)
        stores.ledger("recall_decisions", query="them")
        session.execute("select 1")
        before = scans(session)
        answer = call(session, "subject_access", **ask)
        after = scans(session)
        session.rollback()

    assert len(answer["memories"]) == 200
    assert len(answer["decisions"]) == len(answer["traces"]) == 1
    allowed = {"long_term_memory.organizations"}
    assert {name for name, number in after.items() if number > before.get(name, 0)} <= allowed


MANY = """
insert into long_term_memory.agent_memories (id, org_id, subject_type, subject_id, text)
select md5('m' || i)::uuid, %(org)s, 'candidate', %(subject)s, 'memory ' || i from generate_series(1, 5000) i;
insert into long_term_memory.memory_events (org_id, memory_id, action)
select %(org)s, md5('m' || i)::uuid, 'remembered' from generate_series(1, 5000) i, generate_series(1, 3);
insert into long_term_memory.recalls (id, org_id, query)
select md5('r' || i)::uuid, %(org)s, 'what of them?' from generate_series(1, 2000) i;
insert into long_term_memory.recall_items (recall_id, org_id, memory_id, rank, score, relevance_source)
select md5('r' || i)::uuid, %(org)s, md5('m' || (i * 2 + k))::uuid, k, 0.5, 'fts'
from generate_series(1, 2000) i, generate_series(1, 10) k;
insert into long_term_memory.recall_subjects (recall_id, org_id, subject_type, subject_id)
select md5('r' || i)::uuid, %(org)s, 'candidate', %(subject)s from generate_series(1, 2000) i;
insert into agent_memories (id, workspace_id, memory_type, summary, content)
select md5('d' || i)::uuid, 'acme', 'decision', 'x', 'decided ' || i from generate_series(1, 1000) i;
insert into long_term_memory.decision_subjects (memory_id, org_id, workspace_id, subject_type, subject_id)
select md5('d' || i)::uuid, %(org)s, 'acme', 'candidate', %(subject)s from generate_series(1, 1000) i;
insert into agent_memory_recall_traces (id, workspace_id, query, schema_version)
select md5('t' || i)::uuid, 'acme', 'what?', '1' from generate_series(1, 1000) i;
insert into agent_memory_recall_items (trace_id, memory_id, rank)
select md5('t' || i)::uuid, md5('d' || (1 + (i + k) %% 1000))::uuid, k from generate_series(1, 1000) i, generate_series(1, 10) k;
insert into agent_memory_source_refs (memory_id, source_kind)
select md5('d' || i)::uuid, 'file' from generate_series(1, 1000) i;
"""


@pytest.mark.parametrize("indexed", [True, False], ids=["indexed", "a host without indexes"])
def test_a_subject_of_many_rows_is_answered_in_the_api_s_time_by_plans_that_were_made_of_empty_tables(
    stores: Stores, indexed: bool
) -> None:
    subject = somebody()
    ask = {"org_id": stores.org, "subject_type": "candidate", "subject_id": subject}
    if not indexed:
        stores.database.owner.execute(
            "drop index agent_memory_source_refs_memory_id_idx, agent_memory_review_actions_memory_id_idx, "
            "agent_memory_artifacts_memory_id_idx, agent_memory_recall_items_memory_id_idx, agent_memories_thought_id_idx"
        )
    stores.database.superuser.execute("vacuum analyze")
    with stores.database.connect("service_role") as session:
        for _ in range(6):
            call(session, "subject_access", **ask)
        with psycopg.ClientCursor(stores.database.superuser) as cursor:
            cursor.execute(MANY, {"org": stores.org, "subject": subject})
        session.execute("set statement_timeout = '8s'")
        answer = call(session, "subject_access", **ask)

    assert [len(answer[part]) for part in PARTS] == [5000, 1000, 2000, 1000, 0]
    assert sum(len(held["history"]) for held in answer["memories"]) == 15000
    assert sum(len(held["read_by"]) for held in answer["decisions"]) == 10000
