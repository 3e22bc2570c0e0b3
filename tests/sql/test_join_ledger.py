"""The two stores joined: traces are tied to whom their decisions are about, attributions follow the workspace."""

from __future__ import annotations

import threading
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from psycopg import errors

from tests.conftest import HostMaker
from tests.rig import deploy
from tests.rig.catalogue import catalogue, differences
from tests.rig.databases import Connection, Database
from tests.sql.both_stores import Stores, somebody
from tests.sql.rpc import at_once, count

TRIGGERS = """select tgrelid::regclass::text, tgname from pg_trigger t join pg_proc p on p.oid = t.tgfoid
where p.pronamespace = 'long_term_memory'::regnamespace and t.tgrelid::regclass::text not like 'long_term_memory.%' order by 1"""
JOINED = [
    ("agent_decision_ledger", "agent_decision_ledger_follow_attributions"),
    ("agent_memory_recall_items", "trg_long_term_memory_tie"),
]
KEYS = """select conrelid::regclass::text from pg_constraint
where contype = 'f' and conrelid in ('long_term_memory.decision_subjects'::regclass, 'long_term_memory.trace_subjects'::regclass)
  and confrelid::regclass::text like 'agent\\_%' order by 1"""


@pytest.fixture
def stores(full_project: HostMaker) -> Stores:
    return Stores(full_project())


def new_trace(connection: Connection, workspace: str = "acme", query: str = "what of them?") -> str:
    ((trace,),) = connection.execute(
        "insert into agent_memory_recall_traces (workspace_id, query, schema_version, request_payload) "
        """values (%s, %s, '1', '{"said": "words"}') returning id::text""",
        (workspace, query),
    ).fetchall()
    return str(trace)


def returned(connection: Connection, trace: str, *memory_ids: str) -> None:
    connection.execute(
        "insert into agent_memory_recall_items (trace_id, memory_id, rank) "
        "select %s, i.id, i.n from unnest(%s::uuid[]) with ordinality as i (id, n)",
        (trace, list(memory_ids)),
    )


def tied(stores: Stores, trace: str) -> list[str]:
    return [
        subject
        for (subject,) in stores.rows(
            "select subject_id::text from long_term_memory.trace_subjects where trace_id = %s order by 1",
            trace,
        )
    ]


def words(stores: Stores, trace: str) -> str:
    ((query,),) = stores.rows("select query from agent_memory_recall_traces where id = %s", trace)
    return str(query)


# In place --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("last", ["decision_ledger", "long_term_memory"])
def test_whichever_of_the_two_comes_last_joins_them(empty_project: HostMaker, last: str) -> None:
    database = empty_project()
    areas = ["open_brain", "decision_ledger", "long_term_memory"]
    deploy.apply(database, *[area for area in areas if area != last])
    deploy.apply(database, last)

    assert database.rows(TRIGGERS) == JOINED
    assert len(database.rows(KEYS)) == 2
    whole = catalogue(database)
    assert database.value("select long_term_memory.join_ledger()") is False
    for area in ("decision_ledger", "long_term_memory"):
        deploy.apply(database, area)
    assert differences(whole, catalogue(database)) == []


def test_alone_there_is_nothing_to_join(memory_project: HostMaker) -> None:
    assert memory_project().value("select long_term_memory.join_ledger()") is False


def test_what_was_taken_away_is_put_back(stores: Stores) -> None:
    whole = catalogue(stores.database)
    stores.database.owner.execute("drop trigger trg_long_term_memory_tie on agent_memory_recall_items")
    stores.database.owner.execute(
        "alter table long_term_memory.trace_subjects drop constraint trace_subjects_trace_id_fkey"
    )

    assert stores.database.value("select long_term_memory.join_ledger()") is True
    assert differences(whole, catalogue(stores.database)) == []
    assert stores.database.value("select long_term_memory.join_ledger()") is False


def test_a_role_that_may_not_put_a_trigger_there_is_told_so(stores: Stores) -> None:
    stores.database.owner.execute("drop trigger trg_long_term_memory_tie on agent_memory_recall_items")
    stores.database.superuser.execute("alter table agent_memory_recall_items owner to supabase_admin")
    with pytest.raises(psycopg.Error) as raised:
        stores.database.owner.execute("select long_term_memory.join_ledger()")
    assert raised.value.sqlstate == "RL501"
    assert "Push as the owner" in str(raised.value)


# Traces ----------------------------------------------------------------------------------------------------------------


def test_a_trace_is_tied_to_everybody_whose_decision_it_returned(stores: Stores) -> None:
    one, other, third = sorted(somebody() for _ in range(3))
    stores.decide("about one", one)
    both = stores.decide("about two", one, other)
    plain = stores.decide("about nobody")
    stores.decide("about a third", third)

    answer = stores.ledger("recall_decisions", query="about")
    trace = new_trace(stores.database.service)
    returned(stores.database.service, trace, both, plain)
    alone = new_trace(stores.database.service)
    returned(stores.database.service, alone, plain)

    assert tied(stores, trace) == [one, other]
    assert tied(stores, alone) == []
    assert stores.tied(answer["request_id"]) == [one, other, third]
    assert words(stores, trace) == "what of them?"


def test_only_traces_of_the_same_organizations_workspaces_are_tied(stores: Stores) -> None:
    subject = somebody()
    decision = stores.decide("about them", subject)
    stores.map("globex", stores.memories.new_org())
    stores.map("second")
    for workspace, expected in (("globex", []), ("nowhere", []), ("second", [subject])):
        trace = new_trace(stores.database.service, workspace)
        returned(stores.database.service, trace, decision)
        assert tied(stores, trace) == expected, workspace


def test_a_host_s_writer_needs_no_right_of_ours(stores: Stores) -> None:
    subject = somebody()
    decision = stores.decide("about them", subject)
    database = stores.database
    database.superuser.execute("create role host_writer login bypassrls in role authenticator")
    database.superuser.execute("grant usage on schema public to host_writer")
    database.superuser.execute(
        "grant select, insert on agent_memory_recall_traces, agent_memory_recall_items to host_writer"
    )
    with database.connect("supabase_admin") as session:
        session.execute("set role host_writer")
        trace = new_trace(session)
        returned(session, trace, decision)
        session.execute("reset role")
    database.superuser.execute("drop owned by host_writer")
    database.superuser.execute("drop role host_writer")
    assert tied(stores, trace) == [subject]


def test_whatever_happens_the_hosts_items_are_written(stores: Stores) -> None:
    decision = stores.decide("about them", somebody())
    trace = new_trace(stores.database.service)
    stores.database.owner.execute("alter table long_term_memory.trace_subjects rename to elsewhere")

    returned(stores.database.service, trace, decision)

    assert count(stores.database, "agent_memory_recall_items") == 1


def test_a_lock_of_ours_is_not_waited_for_longer_than_two_seconds(stores: Stores) -> None:
    decision = stores.decide("about them", somebody())
    trace = new_trace(stores.database.service)
    with stores.database.connect("postgres", autocommit=False) as busy:
        busy.execute("lock table long_term_memory.decision_subjects in access exclusive mode")
        stores.database.service.execute("set statement_timeout = '8s'")
        returned(stores.database.service, trace, decision)
        busy.rollback()
    assert count(stores.database, "agent_memory_recall_items") == 1


def test_a_bulk_load_about_many_people_takes_few_locks(stores: Stores) -> None:
    decisions = [stores.decide(f"decision {number}") for number in range(3)]
    stores.database.service.execute(
        "insert into long_term_memory.decision_subjects (memory_id, org_id, workspace_id, subject_type, subject_id) "
        "select m, %s, 'acme', 'candidate', gen_random_uuid() from unnest(%s::uuid[]) m, generate_series(1, 500)",
        (stores.org, decisions),
    )
    with stores.database.connect("service_role", autocommit=False) as session:
        trace = new_trace(session)
        returned(session, trace, *decisions)
        ((held,),) = session.execute(
            "select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()"
        ).fetchall()
        session.commit()
    assert held <= 64
    assert len(tied(stores, trace)) == 1500


def test_what_goes_in_the_ledger_goes_here(stores: Stores) -> None:
    subject = somebody()
    decision = stores.decide("about them", subject)
    trace = new_trace(stores.database.service)
    returned(stores.database.service, trace, decision)

    stores.ledger("forget_decision", memory_id=decision)
    assert stores.attributed() == []
    assert tied(stores, trace) == [subject]  # what they were asked about is still theirs
    stores.database.service.execute("delete from agent_memory_recall_traces where id = %s", (trace,))
    assert tied(stores, trace) == []


# Beside an erasure -----------------------------------------------------------------------------------------------------


def test_while_the_subject_is_being_erased_nobody_waits_and_the_trace_is_emptied(stores: Stores) -> None:
    subject, other = somebody(), somebody()
    decision, untouched = stores.decide("about them", subject), stores.decide("about others", other)
    with stores.database.connect("service_role", autocommit=False) as erasing:
        erasing.execute("select long_term_memory.hold_subject(%s, 'candidate', %s)", (stores.org, subject))
        stores.database.service.execute("set statement_timeout = '1s'")
        trace, second = new_trace(stores.database.service), new_trace(stores.database.service)
        returned(stores.database.service, trace, decision)
        returned(stores.database.service, second, untouched)
        erasing.rollback()

    assert (words(stores, trace), words(stores, second)) == ("", "what of them?")
    assert (tied(stores, trace), tied(stores, second)) == ([subject], [other])
    ((payload,),) = stores.rows("select request_payload from agent_memory_recall_traces where id = %s", trace)
    assert payload == {}


def test_a_bulk_load_about_many_people_notices_the_erasure_of_one(stores: Stores) -> None:
    decision, subject = stores.decide("about many"), somebody()
    stores.attribute(decision, subject)
    stores.database.service.execute(
        "insert into long_term_memory.decision_subjects (memory_id, org_id, workspace_id, subject_type, subject_id) "
        "select %s, %s, 'acme', 'candidate', gen_random_uuid() from generate_series(1, 100)",
        (decision, stores.org),
    )
    with stores.database.connect("service_role", autocommit=False) as erasing:
        erasing.execute("select long_term_memory.hold_subject(%s, 'candidate', %s)", (stores.org, subject))
        trace = new_trace(stores.database.service)
        returned(stores.database.service, trace, decision)
        erasing.rollback()
    assert words(stores, trace) == ""


def test_a_recall_that_began_before_the_erasure_leaves_no_words(stores: Stores) -> None:
    subject = somebody()
    decision = stores.decide("about them", subject)
    with stores.database.connect("service_role", autocommit=False) as recalling:
        trace = new_trace(recalling)
        stores.service("erase_subject", subject_type="candidate", subject_id=subject)
        returned(recalling, trace, decision)
        recalling.commit()
    assert words(stores, trace) == ""


def test_a_trace_from_before_the_erasure_loses_its_words_when_its_items_come_after_it(stores: Stores) -> None:
    subject = somebody()
    decision = stores.decide("about them", subject)
    trace = new_trace(stores.database.service)  # committed, and nothing ties it to anybody yet
    stores.service("erase_subject", subject_type="candidate", subject_id=subject)
    assert words(stores, trace) == "what of them?"

    returned(stores.database.service, trace, decision)
    assert words(stores, trace) == ""


def test_what_is_asked_long_after_the_erasure_keeps_its_words(stores: Stores) -> None:
    subject = somebody()
    decision = stores.decide("about them", subject)
    stores.service("erase_subject", subject_type="candidate", subject_id=subject)
    stores.database.service.execute(
        "update long_term_memory.decision_subjects set erased_at = now() - interval '1 hour'"
    )
    trace = new_trace(stores.database.service)
    returned(stores.database.service, trace, decision)
    assert words(stores, trace) == "what of them?"
    assert tied(stores, trace) == [subject]


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_under_an_older_snapshot_an_erasure_is_noticed_too(stores: Stores, level: str) -> None:
    subject = somebody()
    decision = stores.decide("about them", subject)
    with stores.database.connect("service_role", autocommit=False) as recalling:
        recalling.execute(f"set transaction isolation level {level}")
        recalling.execute("select count(*) from agent_memories")
        stores.service("erase_subject", subject_type="candidate", subject_id=subject)
        trace = new_trace(recalling)
        returned(recalling, trace, decision)
        recalling.commit()
    assert words(stores, trace) == ""
    assert tied(stores, trace) == [subject]


def test_serializable_writers_of_the_host_are_refused_no_more_often_than_without_us(stores: Stores) -> None:
    subject = somebody()
    decisions = [stores.decide(f"decision {number}", subject) for number in range(2)]

    def conflicts() -> int:
        failed = 0
        for _ in range(5):
            with (
                stores.database.connect("service_role", autocommit=False) as first,
                stores.database.connect("service_role", autocommit=False) as second,
            ):
                for session in (first, second):
                    session.execute("set transaction isolation level serializable")
                try:
                    for session, decision in zip((first, second), decisions, strict=True):
                        returned(session, new_trace(session), decision)
                    first.commit()
                    second.commit()
                except errors.SerializationFailure:
                    failed += 1
        return failed

    with_us = conflicts()
    stores.database.owner.execute(
        "alter table agent_memory_recall_items disable trigger trg_long_term_memory_tie"
    )
    assert with_us <= conflicts()


# A decision that moves -------------------------------------------------------------------------------------------------


def moved(stores: Stores, decision: str, workspace: str) -> list[tuple[str, str, str]]:
    stores.database.service.execute(
        "update agent_memories set workspace_id = %s where id = %s", (workspace, decision)
    )
    return stores.attributed(decision)


def test_within_an_organization_attributions_follow(stores: Stores) -> None:
    subject = somebody()
    decision = stores.decide("about them", subject)
    stores.map("second")
    assert moved(stores, decision, "second") == [("second", "candidate", subject)]
    assert stores.audited("attribution_lost") == []


@pytest.mark.parametrize("mapped", [True, False])
def test_out_of_an_organization_attributions_are_lost_each_with_an_audit_event(
    stores: Stores, mapped: bool
) -> None:
    one, other = sorted([somebody(), somebody()])
    decision, stays = stores.decide("about two", one, other), stores.decide("about one", one)
    trace = new_trace(stores.database.service)
    returned(stores.database.service, trace, decision)
    if mapped:
        stores.map("globex", stores.memories.new_org())

    assert moved(stores, decision, "globex") == []
    assert stores.attributed(stays) == [("acme", "candidate", one)]
    assert tied(stores, trace) == [one, other]
    lost = stores.audited("attribution_lost")
    assert sorted(payload["subject_id"] for payload in lost) == [one, other]
    assert lost[0] == {
        "reason": "decision moved",
        "memory_id": decision,
        "subject_type": "candidate",
        "subject_id": lost[0]["subject_id"],
    }


def test_what_changes_without_moving_keeps_its_attributions(stores: Stores) -> None:
    subject = somebody()
    decision = stores.decide("about them", subject)
    for change in (
        "project_id = 'web'",
        "content = 'other words'",
        "memory_type = 'lesson'",
        "memory_type = 'decision'",
    ):
        stores.database.service.execute(f"update agent_memories set {change} where id = %s", (decision,))
        assert stores.attributed(decision) == [("acme", "candidate", subject)], change


def test_many_decisions_move_in_one_statement(stores: Stores) -> None:
    subject = somebody()
    decisions = [
        stores.decide(f"decision {number}", *([subject] if number % 2 else [])) for number in range(10)
    ]
    stores.database.service.execute(
        "update agent_memories set workspace_id = 'globex' where id = any (%s::uuid[])", (decisions,)
    )
    assert stores.attributed() == []
    assert len(stores.audited("attribution_lost")) == 5


def test_a_mapping_that_is_being_changed_does_not_hold_up_the_host(stores: Stores) -> None:
    decision = stores.decide("about them", somebody())
    stores.map("second")
    with stores.database.connect("service_role", autocommit=False) as mapping:
        mapping.execute(
            "select from long_term_memory.workspace_orgs where workspace_id = 'second' for update"
        )
        stores.database.service.execute("set statement_timeout = '8s'")
        moved(stores, decision, "second")
        mapping.rollback()
    assert stores.rows("select workspace_id from agent_memories where id = %s", decision) == [("second",)]


# What hosts do ---------------------------------------------------------------------------------------------------------


def test_a_truncate_with_cascade_empties_both_sides(stores: Stores) -> None:
    subject = somebody()
    decision = stores.decide("about them", subject)
    returned(stores.database.service, new_trace(stores.database.service), decision)

    stores.database.owner.execute("truncate agent_memories, agent_memory_recall_traces cascade")

    assert count(stores.database, "long_term_memory.decision_subjects") == 0
    assert count(stores.database, "long_term_memory.trace_subjects") == 0
    trace = new_trace(stores.database.service)
    returned(stores.database.service, trace, stores.decide("again", subject))
    assert tied(stores, trace) == [subject]


def test_a_backup_that_is_put_back_is_joined_and_goes_on(
    stores: Stores, empty_project: HostMaker, tmp_path: Path
) -> None:
    subject = somebody()
    decision = stores.decide("about them", subject)
    returned(stores.database.service, new_trace(stores.database.service), decision)
    restored = empty_project()
    deploy.restore(deploy.dump(stores.database, tmp_path / "backup"), restored)

    assert restored.rows(TRIGGERS) == JOINED
    assert restored.rows(KEYS) == stores.database.rows(KEYS)
    assert restored.value("select long_term_memory.join_ledger()") is False
    trace = new_trace(restored.service)
    returned(restored.service, trace, decision)
    assert restored.rows("select count(*) from long_term_memory.trace_subjects") == [(2,)]


def take_the_ledger_out(database: Database) -> None:
    (page,) = (
        block
        for block in (deploy.REPOSITORY / "docs" / "uninstall.md")
        .read_text(encoding="utf-8")
        .split("```sql\n")[1:2]
    )
    database.owner.execute(page.split("```")[0])


def test_a_ledger_that_is_taken_out_and_comes_back_is_joined_again_and_ties_are_mended(
    stores: Stores,
) -> None:
    subject = somebody()
    stays, gone, moves, left = (stores.decide(f"decision {number}", subject) for number in range(4))
    stores.map("second")
    stores.map("globex", stores.memories.new_org())
    take_the_ledger_out(stores.database)
    service = stores.database.service
    service.execute("delete from agent_memories where id = %s", (gone,))
    service.execute("update agent_memories set workspace_id = 'second' where id = %s", (moves,))
    service.execute("update agent_memories set workspace_id = 'globex' where id = %s", (left,))
    trace = new_trace(service)
    returned(service, trace, stays)
    assert tied(stores, trace) == []
    assert stores.access(subject)["decisions"] == []

    deploy.apply(stores.database, "decision_ledger")

    assert stores.database.rows(TRIGGERS) == JOINED
    assert stores.attributed() == [("acme", "candidate", subject), ("second", "candidate", subject)]
    assert [payload["memory_id"] for payload in stores.audited("attribution_lost")] == [left]
    assert tied(stores, trace) == [subject]
    assert {one["memory_id"] for one in stores.access(subject)["decisions"]} == {stays, moves}


def test_a_decision_without_a_ledger_row_is_shown_to_no_organization_that_it_left(stores: Stores) -> None:
    subject = somebody()
    decision = stores.decide("about them", subject)
    stores.database.superuser.execute("delete from agent_decision_ledger")
    assert len(stores.access(subject)["decisions"]) == 1

    stores.database.superuser.execute("set session_replication_role = replica")
    moved = "update agent_memories set workspace_id = 'nowhere' where id = %s"
    stores.database.superuser.execute(moved, (decision,))
    stores.database.superuser.execute("set session_replication_role = origin")
    assert stores.access(subject)["decisions"] == []


def test_concurrent_recalls_about_one_subject_all_tie(stores: Stores) -> None:
    subject = somebody()
    decisions = [stores.decide(f"decision {number}", subject) for number in range(5)]

    def recalls(connection: Connection) -> list[str]:
        made = []
        for _ in range(5):
            with connection.transaction():
                made.append(new_trace(connection))
                returned(connection, made[-1], *decisions)
        return made

    answers = at_once(stores.database, [recalls] * 6)
    traces = [trace for answer in answers for trace in answer]
    assert all(tied(stores, trace) == [subject] for trace in traces)
    assert len(traces) == 30


def test_items_of_one_trace_may_come_one_by_one_from_many(stores: Stores) -> None:
    subject = somebody()
    decisions = [stores.decide(f"decision {number}", subject) for number in range(6)]
    trace = new_trace(stores.database.service)
    at_once(
        stores.database,
        [lambda connection, one=decision: returned(connection, trace, one) for decision in decisions],
    )
    assert count(stores.database, "agent_memory_recall_items") == 6
    assert tied(stores, trace) == [subject]


def test_joining_beside_a_writer_waits_its_turn(stores: Stores) -> None:
    stores.database.owner.execute("drop trigger trg_long_term_memory_tie on agent_memory_recall_items")
    joined: list[object] = []

    def join() -> None:
        with stores.database.connect() as session:
            joined.append(session.execute("select long_term_memory.join_ledger()").fetchone())

    with stores.database.connect("service_role", autocommit=False) as writer:
        new_trace(writer)
        thread = threading.Thread(target=join)
        thread.start()
        stores.database.wait_until(
            "select exists (select from pg_stat_activity where query like '%join_ledger%' and wait_event_type = 'Lock')"
        )
        writer.commit()
    thread.join()
    assert joined == [(True,)]


def test_a_writer_that_does_not_end_is_not_waited_for_beyond_five_seconds(stores: Stores) -> None:
    stores.database.owner.execute("drop trigger trg_long_term_memory_tie on agent_memory_recall_items")
    with stores.database.connect("service_role", autocommit=False) as writer:
        new_trace(writer, query=str(uuid4()))
        with pytest.raises(psycopg.Error) as raised:
            stores.database.owner.execute("select long_term_memory.join_ledger()")
        writer.rollback()
    assert raised.value.sqlstate == "55P03"
    assert stores.database.rows(TRIGGERS) == JOINED[:1]
