"""Decisions whose memory moves to another stream or is retyped."""

from __future__ import annotations

import pytest

from tests.rig.databases import Database
from tests.sql.random_ledgers import Call
from tests.sql.ranking_oracle import assert_matches, assert_recalls
from tests.sql.write_path import assert_consistent, change, ledger_row, mend, remember, steps


def link(database: Database, one, other, relation="depends_on"):
    database.service.execute(
        "insert into agent_decision_edges (from_memory_id, to_memory_id, relation) values (%s, %s, %s)",
        (one, other, relation),
    )


@pytest.mark.parametrize(
    "scope",
    [{"task_id": "search"}, {"project_id": "p"}, {"workspace_id": "other"}, {"task_id": None}],
    ids=str,
)
def test_a_moved_decision_gets_the_next_free_step_and_keeps_the_old_one_in_its_metadata(
    ledger_db: Database, scope
):
    remember(ledger_db.service)
    memory = remember(ledger_db.service)
    there = remember(ledger_db.service, metadata={"step_index": 41}, **scope)
    change(ledger_db.service, memory, **scope)

    row = ledger_row(ledger_db, memory)
    assert row["step_index"] == 42
    (move,) = row["metadata"]["moves"]
    assert (move["workspace_id"], move["project_id"], move["task_id"], move["step_index"]) == (
        "acme",
        None,
        "billing",
        1,
    )
    assert row["stream_id"] == ledger_row(ledger_db, there)["stream_id"]
    assert_consistent(ledger_db)

    change(ledger_db.service, memory, workspace_id="acme", project_id=None, task_id="billing")
    assert ledger_row(ledger_db, memory)["step_index"] == 1  # free again
    assert len(ledger_row(ledger_db, memory)["metadata"]["moves"]) == 2
    assert_consistent(ledger_db)


def test_a_given_step_is_not_given_in_the_new_stream(ledger_db: Database):
    memory = remember(ledger_db.service, metadata={"step_index": 41})
    change(ledger_db.service, memory, task_id="search")
    assert ledger_row(ledger_db, memory)["step_index"] == 0
    remember(ledger_db.service)
    assert steps(ledger_db) == [0]
    assert_consistent(ledger_db)


def test_a_flow_is_no_stream(ledger_db: Database):
    memory = remember(ledger_db.service)
    change(ledger_db.service, memory, flow_id="f")
    row = ledger_row(ledger_db, memory)
    assert (row["flow_id"], row["step_index"], row["metadata"]) == ("f", 0, {})
    assert_consistent(ledger_db)


def test_edges_across_workspaces_go_with_an_audit_event(ledger_db: Database):
    one, two, three = (remember(ledger_db.service) for _ in range(3))
    link(ledger_db, one, two)
    link(ledger_db, three, one, "informs")
    link(ledger_db, three, two)
    change(ledger_db.service, one, task_id="search")
    assert ledger_db.value("select count(*) from agent_decision_edges") == 3
    change(ledger_db.service, one, workspace_id="other")

    assert ledger_db.rows("select from_memory_id, to_memory_id from agent_decision_edges") == [(three, two)]
    ((workspace, memory, payload),) = ledger_db.rows(
        "select workspace_id, memory_id, payload from agent_memory_audit_events"
    )
    assert (workspace, memory, payload["kind"]) == ("other", one, "decision_edges_dropped")
    assert {(e["from_memory_id"], e["relation"]) for e in payload["edges"]} == {
        (str(one), "depends_on"),
        (str(three), "informs"),
    }
    assert ledger_db.rows("select * from ranked_ledger.lost_grounds") == []
    assert_consistent(ledger_db)


def test_decisions_that_move_together_keep_the_edges_between_them(ledger_db: Database):
    one, two = (remember(ledger_db.service) for _ in range(2))
    link(ledger_db, one, two)
    ledger_db.service.execute("update agent_memories set workspace_id = 'other'")
    assert ledger_db.value("select count(*) from agent_decision_edges") == 1
    assert steps(ledger_db, workspace="other") == [0, 1]
    assert_consistent(ledger_db)


def test_a_host_whose_audit_refuses_the_event_still_moves_its_decisions(ledger_db: Database):
    one, two = (remember(ledger_db.service) for _ in range(2))
    link(ledger_db, one, two)
    ledger_db.owner.execute("alter table agent_memory_audit_events add check (actor_kind <> 'system')")
    change(ledger_db.service, one, workspace_id="other")
    assert ledger_row(ledger_db, one)["workspace_id"] == "other"
    assert_consistent(ledger_db)


def test_a_task_of_10_000_decisions_is_renamed_in_bounded_time(ledger_db: Database):
    ledger_db.service.execute(
        "insert into agent_memories (workspace_id, task_id, memory_type, summary, content)"
        " select 'acme', 'billing', 'decision', 's', lpad(g::text, 5, '0') from generate_series(0, 9999) g"
    )
    remember(ledger_db.service, task_id="search")
    writer = ledger_db.connect("service_role")
    writer.execute("set statement_timeout = '8s'")  # the API's
    writer.execute("update agent_memories set task_id = 'search' where task_id = 'billing'")
    assert steps(ledger_db, "search") == list(range(10_001))
    assert_consistent(ledger_db)


def test_a_memory_moved_twice_in_one_transaction_takes_one_place(ledger_db: Database):
    memory = remember(ledger_db.service)
    with ledger_db.owner.transaction():
        for task in ("search", "billing", "search"):
            ledger_db.owner.execute("update agent_memories set task_id = %s where id = %s", (task, memory))
    assert (steps(ledger_db), steps(ledger_db, "search")) == ([], [0])
    assert_consistent(ledger_db)


def test_a_memory_that_is_written_and_moved_in_one_transaction(ledger_db: Database):
    remember(ledger_db.service, task_id="search")
    with ledger_db.owner.transaction():
        memory = remember(ledger_db.owner, metadata={"step_index": 9})
        change(ledger_db.owner, memory, task_id="search")
    assert steps(ledger_db, "search") == [0, 1]
    assert_consistent(ledger_db)


def recalled(database: Database) -> int:
    return database.value("select count(*) from match_decision_ledger('acme', 'decision')")  # type: ignore[return-value]


def test_a_retyped_decision_is_set_aside_and_restored_with_its_step(ledger_db: Database):
    memory = remember(ledger_db.service, metadata={"rationale": "why"})
    remember(ledger_db.service)
    change(ledger_db.service, memory, memory_type="lesson")
    assert ledger_row(ledger_db, memory)["set_aside_at"] is not None
    assert recalled(ledger_db) == 1
    assert_consistent(ledger_db)

    change(ledger_db.service, memory, memory_type="decision")
    row = ledger_row(ledger_db, memory)
    assert (row["set_aside_at"], row["step_index"], row["rationale"]) == (None, 0, "why")
    assert recalled(ledger_db) == 2
    assert_consistent(ledger_db)


def test_the_step_of_a_row_set_aside_is_not_given_to_another(ledger_db: Database):
    memory = remember(ledger_db.service)
    change(ledger_db.service, memory, memory_type="lesson")
    remember(ledger_db.service)
    assert steps(ledger_db) == [0, 1]


def test_what_changed_while_it_was_set_aside_is_followed_when_it_returns(ledger_db: Database):
    memory, other = remember(ledger_db.service), remember(ledger_db.service)
    link(ledger_db, memory, other)
    change(ledger_db.service, memory, memory_type="lesson")
    change(
        ledger_db.service, memory, task_id="search", workspace_id="other", content="rewritten", flow_id="f"
    )
    change(ledger_db.service, memory, memory_type="decision")
    row = ledger_row(ledger_db, memory)
    assert (row["workspace_id"], row["task_id"], row["flow_id"], row["step_index"]) == (
        "other",
        "search",
        "f",
        0,
    )
    assert "rewritten" in row["search_lexemes"]
    assert_consistent(ledger_db)


def test_a_memory_retyped_to_decision_is_enrolled(ledger_db: Database):
    remember(ledger_db.service)
    memory = remember(ledger_db.service, memory_type="lesson", metadata={"step_index": 7})
    assert ledger_row(ledger_db, memory) == {}
    change(ledger_db.service, memory, memory_type="decision")
    assert ledger_row(ledger_db, memory)["step_index"] == 7
    assert_consistent(ledger_db)


def test_a_decision_set_aside_and_deleted_leaves_nothing(ledger_db: Database):
    memory = remember(ledger_db.service)
    change(ledger_db.service, memory, memory_type="lesson")
    ledger_db.service.execute("delete from agent_memories where id = %s", (memory,))
    mend(ledger_db)
    assert_consistent(ledger_db)
    assert ledger_db.value("select count(*) from agent_decision_ledger") == 0


def test_what_left_the_workspace_without_its_ledger_row_carries_nothing_there(ledger_db: Database):
    ground, leaver = remember(ledger_db.service), remember(ledger_db.service)
    link(ledger_db, leaver, ground)
    with ledger_db.service.transaction():  # cannot be followed: a note is kept
        ledger_db.service.execute("set transaction isolation level serializable")
        change(ledger_db.service, leaver, workspace_id="other")
    (left,) = assert_matches(ledger_db.service, Call({"p_workspace_id": "acme"}), "before anybody mends it")
    assert left["live_dependents"] == 0
    mend(ledger_db)
    for workspace in ("acme", "other"):
        assert_recalls(ledger_db.service, Call({"p_workspace_id": workspace}), "after the backfill")
    assert_consistent(ledger_db)


def test_a_ledger_row_that_somebody_keeps_locked_does_not_hold_up_the_host(ledger_db: Database):
    ground, leaver = remember(ledger_db.service), remember(ledger_db.service)
    link(ledger_db, leaver, ground)
    holder = ledger_db.connect("service_role", autocommit=False)
    holder.execute("select from agent_decision_ledger where memory_id = %s for update", (leaver,))
    try:
        ledger_db.service.execute("set statement_timeout = '8s'")  # the API's
        change(ledger_db.service, leaver, workspace_id="other")
        change(ledger_db.service, leaver, content="reworded meanwhile")
    finally:
        ledger_db.service.execute("reset statement_timeout")
        holder.close()
    assert_matches(ledger_db.service, Call({"p_workspace_id": "acme"}), "when it is free again")
    mend(ledger_db)
    assert ledger_row(ledger_db, leaver)["workspace_id"] == "other"
    assert_consistent(ledger_db)
