"""Which step a decision gets: one more than the newest of its stream, given ones included, final at the commit."""

from __future__ import annotations

import pytest
from psycopg import errors

from tests.rig.databases import Database
from tests.sql.write_path import assert_consistent, ledger_row, mend, remember, steps

MOST = 1_000_000_000


def record(database: Database, *given: int | None) -> list[int]:
    """Decisions of a task one after another, some with a given step; their steps in that order."""
    memories = [
        remember(database.service, metadata={} if step is None else {"step_index": step}) for step in given
    ]
    return [ledger_row(database, memory)["step_index"] for memory in memories]


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ([None, None, None], [0, 1, 2]),
        ([5, None, None], [5, 6, 7]),
        ([5, 5, None], [5, 5, 6]),
        ([None, 9, None, 3, None], [0, 9, 10, 3, 11]),
        ([0, None], [0, 1]),
        ([MOST, None, None, 7, None], [MOST, MOST, MOST, 7, MOST]),
        ([MOST - 1, None, None], [MOST - 1, MOST, MOST]),
    ],
    ids=str,
)
def test_given_steps_are_kept_and_assigned_ones_follow_the_newest(ledger_db: Database, given, stored):
    assert record(ledger_db, *given) == stored
    assert_consistent(ledger_db, but=["assigned steps that two rows share"] if MOST in given else [])
    assert_consistent(ledger_db, but=["assigned steps that two rows share"])


def test_one_statement_numbers_as_single_ones_do(ledger_db: Database):
    ledger_db.service.execute(
        "insert into agent_memories (workspace_id, task_id, memory_type, summary, content, metadata)"
        " select 'acme', 'billing', 'decision', 's', 'c', case when s is null then '{}'"
        " else jsonb_build_object('step_index', s) end"
        " from unnest(array[null, 9, null, 3, null, 11, null]::int[]) with ordinality u (s, n) order by n"
    )
    assert ledger_db.rows(
        "select l.step_index from agent_decision_ledger l join agent_memories m on m.id = l.memory_id order by m.ctid"
    ) == [(0,), (9,), (10,), (3,), (11,), (11,), (12,)]


def test_steps_above_the_most_in_an_upgraded_ledger_are_kept_and_ignored_for_newest(ledger_db: Database):
    old = remember(ledger_db.service)
    ledger_db.owner.execute("update agent_decision_ledger set step_index = 2147483647")
    ledger_db.owner.execute("update ranked_ledger.streams set newest_step = -1")
    new, moved = remember(ledger_db.service), remember(ledger_db.service, task_id="other")
    ledger_db.service.execute("update agent_memories set task_id = 'billing' where id = %s", (moved,))
    assert [ledger_row(ledger_db, memory)["step_index"] for memory in (old, new, moved)] == [2147483647, 0, 1]
    assert_consistent(ledger_db)


def test_deleting_the_newest_gives_its_step_to_the_next(ledger_db: Database):
    memories = [remember(ledger_db.service) for _ in range(4)]
    ledger_db.service.execute(
        "delete from agent_memories where id = any(%s)", (memories[1:2] + memories[3:],)
    )
    assert_consistent(ledger_db)
    remember(ledger_db.service)
    assert steps(ledger_db) == [0, 2, 3]
    ledger_db.service.execute("delete from agent_memories")
    assert_consistent(ledger_db)
    remember(ledger_db.service)
    assert steps(ledger_db) == [0]


def test_forgetting_the_newest_refreshes_the_newest_step(ledger_db: Database):
    _, newest = remember(ledger_db.service), remember(ledger_db.service)
    ledger_db.service.execute("select forget_decision('acme', %s)", (newest,))
    assert ledger_db.value("select newest_step from ranked_ledger.streams") == 0
    assert_consistent(ledger_db)


def test_a_bulk_delete_leaves_one_mark_a_stream_and_transaction(ledger_db: Database):
    for task in ("billing", "search"):
        for _ in range(20):
            remember(ledger_db.service, task_id=task)
    with ledger_db.owner.transaction():
        ledger_db.owner.execute("delete from agent_memories")
        assert ledger_db.value("select count(*) from ranked_ledger.pending_steps") == 2
    assert_consistent(ledger_db)


def test_the_step_is_provisional_until_the_commit_and_final_after_it(ledger_db: Database):
    slow = ledger_db.connect("service_role", autocommit=False)
    memory = remember(slow)
    assert slow.execute("select step_index from agent_decision_ledger").fetchone() == (0,)
    other = remember(ledger_db.service)
    assert ledger_row(ledger_db, other)["step_index"] == 0
    slow.commit()
    assert ledger_row(ledger_db, memory)["step_index"] == 1
    assert_consistent(ledger_db)


def test_savepoints_lose_nothing_and_leave_no_gap(ledger_db: Database):
    writer = ledger_db.connect("service_role", autocommit=False)
    remember(writer, "kept 1")
    for outcome in (
        "rollback to savepoint s",
        "release savepoint s",
        "rollback to savepoint s",
        "release savepoint s",
    ):
        writer.execute("savepoint s")
        remember(writer, outcome)
        remember(writer, outcome, task_id="search")
        writer.execute(outcome)
    remember(writer, "kept 2")
    writer.commit()
    assert (steps(ledger_db), steps(ledger_db, "search")) == ([0, 1, 2, 3], [0, 1])
    assert_consistent(ledger_db)


def test_a_transaction_over_several_streams_rolled_back_to_a_savepoint(ledger_db: Database):
    writer = ledger_db.connect("service_role", autocommit=False)
    first = remember(writer, task_id="a")
    writer.execute("savepoint s")
    for task in "bcda":
        remember(writer, task_id=task)
    writer.execute("update agent_memories set task_id = 'e' where id = %s", (first,))
    writer.execute("delete from agent_memories where task_id = 'b'")
    writer.execute("rollback to savepoint s")
    remember(writer, task_id="d")
    writer.commit()
    assert [steps(ledger_db, task) for task in "abcde"] == [[0], [], [], [0], []]
    assert_consistent(ledger_db)


def test_a_rolled_back_transaction_leaves_nothing(ledger_db: Database):
    writer = ledger_db.connect("service_role", autocommit=False)
    remember(writer)
    writer.rollback()
    assert_consistent(ledger_db)
    remember(ledger_db.service)
    assert steps(ledger_db) == [0]


def test_a_host_that_makes_all_constraints_immediate_gets_final_steps_at_once(ledger_db: Database):
    writer = ledger_db.connect("service_role", autocommit=False)
    remember(writer)
    writer.execute("set constraints all immediate")
    moved = remember(writer, task_id="search")
    for _ in range(2):
        remember(writer)
    writer.execute("update agent_memories set task_id = 'billing' where id = %s", (moved,))
    assert writer.execute("select count(*) from ranked_ledger.pending_steps").fetchone() == (0,)
    writer.commit()
    assert steps(ledger_db) == [0, 1, 2, 3]
    assert_consistent(ledger_db)


def test_settling_early_and_rolling_back_to_before_it_settles_again_at_the_commit(ledger_db: Database):
    writer = ledger_db.connect("service_role", autocommit=False)
    remember(writer)
    writer.execute("savepoint s")
    writer.execute("set constraints all immediate")
    remember(writer)
    writer.execute("rollback to savepoint s")
    remember(writer)
    writer.commit()
    assert steps(ledger_db) == [0, 1]
    assert_consistent(ledger_db)


def test_a_deferred_trigger_of_the_host_may_write_a_decision_at_the_commit(ledger_db: Database):
    ledger_db.owner.execute(
        """
        create function echo() returns trigger language plpgsql as $$ begin
          insert into agent_memories (workspace_id, task_id, memory_type, summary, content)
          values ('acme', 'billing', 'decision', 's', 'echo');
          return null;
        end $$;
        create constraint trigger zz_echo after insert on agent_memories deferrable initially deferred
        for each row when (new.content <> 'echo') execute function echo()"""
    )
    for _ in range(3):
        remember(ledger_db.service)
    assert steps(ledger_db) == [0, 1, 2, 3, 4, 5]
    assert_consistent(ledger_db)


def test_a_prepared_transaction_is_settled_when_it_is_prepared(ledger_db: Database):
    if ledger_db.value("select current_setting('max_prepared_transactions')::int") == 0:
        pytest.skip("the server has no prepared transactions")
    writer = ledger_db.connect("service_role", autocommit=False)
    remember(writer)
    writer.execute("prepare transaction 'p'")
    ledger_db.owner.execute("commit prepared 'p'")
    assert_consistent(ledger_db)


def test_a_mark_that_nobody_can_explain_is_settled_by_the_backfill(ledger_db: Database):
    memory = remember(ledger_db.service)
    ledger_db.superuser.execute("set session_replication_role = replica")
    ledger_db.superuser.execute(
        "insert into ranked_ledger.pending_steps (stream_id, memory_id) select stream_id, memory_id"
        " from agent_decision_ledger"
    )
    ledger_db.superuser.execute("reset session_replication_role")
    mend(ledger_db)
    assert_consistent(ledger_db)
    assert memory


def test_the_step_of_a_memory_that_an_error_undid_is_given_again(ledger_db: Database):
    remember(ledger_db.service)
    with pytest.raises(errors.CheckViolation):
        remember(ledger_db.service, lifecycle_status="nonsense")
    remember(ledger_db.service)
    assert steps(ledger_db) == [0, 1]
