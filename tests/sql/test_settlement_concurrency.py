"""Writers at once: distinct steps, no deadlock, nobody waits for an open transaction, nothing lost in any isolation."""

from __future__ import annotations

import random
import threading
import time

import psycopg
import pytest
from psycopg import IsolationLevel

from tests.rig.databases import Database
from tests.sql.write_path import (
    assert_consistent,
    at_once,
    change,
    deadlocks,
    failures,
    in_background,
    ledger_row,
    mend,
    pid_of,
    remember,
    steps,
    wait_until_blocked,
)


def writers(
    database: Database, number: int, isolation: IsolationLevel | None = None
) -> list[psycopg.Connection]:
    connections = [database.connect("service_role", autocommit=False) for _ in range(number)]
    for connection in connections:
        connection.isolation_level = isolation
    return connections


def write_each(connections, rounds: int, tasks=("billing",)):
    """Every connection writes a transaction a round."""

    def write(connection):
        for _ in range(rounds):
            for task in tasks:
                remember(connection, task_id=task)
            connection.commit()

    return at_once([lambda c=connection: write(c) for connection in connections])


def test_64_writers_of_one_stream_assign_2000_steps_each_once(ledger_db: Database, record_property):
    connections = writers(ledger_db, 64)
    share = [2000 // 64 + (place < 2000 % 64) for place in range(64)]

    def write(connection, rounds):
        for _ in range(rounds):
            remember(connection)
            connection.commit()

    started = time.monotonic()
    at_once([lambda c=c, n=n: write(c, n) for c, n in zip(connections, share, strict=True)])
    record_property("writes_a_second", round(2000 / (time.monotonic() - started)))

    assert steps(ledger_db) == list(range(2000))
    assert_consistent(ledger_db)
    assert deadlocks(ledger_db) == 0


def test_two_streams_in_opposite_order_meet_no_deadlock(ledger_db: Database):
    tasks = ("a", "b")
    connections = writers(ledger_db, 16)

    def write(place, connection):
        for _ in range(10):
            for task in tasks if place % 2 else reversed(tasks):
                remember(connection, task_id=task)
            connection.commit()

    at_once([lambda p=pair: write(*p) for pair in enumerate(connections)])
    assert steps(ledger_db, "a") == steps(ledger_db, "b") == list(range(160))
    assert_consistent(ledger_db)
    assert deadlocks(ledger_db) == 0


def test_an_open_transaction_that_has_written_blocks_no_other_writer(ledger_db: Database):
    (slow,) = writers(ledger_db, 1)
    remembered = [remember(ledger_db.service) for _ in range(3)]
    for task in ("billing", "search"):
        remember(slow, task_id=task)
    change(slow, remembered[0], task_id="search", content="moved")
    slow.execute("delete from agent_memories where id = %s", (remembered[1],))

    hasty = ledger_db.connect("service_role")
    hasty.execute("set lock_timeout = '1ms'")
    for task in ("billing", "search", "billing"):
        remember(hasty, task_id=task)
    change(hasty, remembered[2], task_id="search")
    assert (
        ledger_db.value("select count(*) from ranked_ledger.pending_steps") == 0
    )  # nobody was left to the next

    slow.commit()
    assert_consistent(ledger_db)
    assert steps(ledger_db) == [3, 4, 5]
    assert steps(ledger_db, "search") == [0, 1, 2, 3]


def test_repeatable_read_writers_lose_nothing(ledger_db: Database):
    write_each(writers(ledger_db, 12, IsolationLevel.REPEATABLE_READ), 10)
    assert ledger_db.value("select count(*) from agent_decision_ledger") == 120

    remember(ledger_db.service)  # the next settlement
    assert steps(ledger_db) == list(range(121))
    assert_consistent(ledger_db)


@pytest.mark.parametrize("next_settlement", ["a write to the stream", "the backfill"])
def test_serializable_writers_are_never_refused_and_lose_nothing(ledger_db: Database, next_settlement):
    write_each(writers(ledger_db, 12, IsolationLevel.SERIALIZABLE), 10, ("billing", "search"))
    assert ledger_db.value("select count(*) from agent_memories") == 240
    assert {row[1:3] for row in failures(ledger_db)} <= {("enrol", "40001")}

    if next_settlement == "the backfill":
        assert mend(ledger_db)["failed"] == 0
    else:
        for task in ("billing", "search"):
            remember(ledger_db.service, task_id=task)
    assert steps(ledger_db)[:120] == steps(ledger_db, "search")[:120] == list(range(120))
    assert_consistent(ledger_db)


def test_serializable_inserts_beside_each_other_conflict_no_more_than_without_us(ledger_db: Database):
    first, second = writers(ledger_db, 2, IsolationLevel.SERIALIZABLE)
    for writer in (first, second):
        remember(writer)
    first.commit()
    second.commit()
    assert ledger_db.value("select count(*) from agent_memories") == 2


def test_a_serializable_edit_is_followed_by_the_next_settlement(ledger_db: Database):
    memory = remember(ledger_db.service)
    (writer,) = writers(ledger_db, 1, IsolationLevel.SERIALIZABLE)
    change(writer, memory, content="rewritten words", task_id="search")
    writer.commit()
    remember(ledger_db.service, task_id="search")
    assert "rewritten" in ledger_row(ledger_db, memory)["search_lexemes"]
    assert_consistent(ledger_db)


def test_mixed_isolation_levels_on_shared_streams(ledger_db: Database):
    levels = [None, IsolationLevel.REPEATABLE_READ, IsolationLevel.SERIALIZABLE]
    connections = [writers(ledger_db, 1, levels[place % 3])[0] for place in range(18)]
    write_each(connections, 6, ("billing", "search"))
    mend(ledger_db)
    assert len(set(steps(ledger_db))) == len(set(steps(ledger_db, "search"))) == 108
    assert_consistent(ledger_db)


def left_over(database: Database) -> object:
    """A decision whose step its own transaction could not settle."""
    (old,) = writers(database, 1, IsolationLevel.REPEATABLE_READ)
    old.execute("select 1 from agent_memories")
    remember(database.service)
    memory = remember(old)
    old.commit()
    assert database.value("select array_agg(memory_id) from ranked_ledger.pending_steps") == [memory]
    return memory


@pytest.mark.parametrize(
    "work",
    [
        "update agent_memories set task_id = 'search' where id = %s",
        "update agent_memories set content = 'other words' where id = %s",
        "delete from agent_memories where id = %s",
        "select touch_decision_recall(array[%s::uuid])",
    ],
    ids=["move", "edit", "delete", "recall"],
)
def test_a_left_over_row_that_somebody_holds_is_gone_past(ledger_db: Database, work):
    memory = left_over(ledger_db)
    (slow,) = writers(ledger_db, 1)
    slow.execute(work, (memory,))

    hasty = ledger_db.connect("service_role")
    hasty.execute("set statement_timeout = '1500ms'")
    for _ in range(3):
        remember(hasty)
    slow.commit()
    remember(hasty)
    remember(hasty, task_id="search")
    assert_consistent(ledger_db)


def test_a_transaction_that_settled_early_and_stays_open_delays_others_only_for_a_while(ledger_db: Database):
    remember(ledger_db.service)
    (slow,) = writers(ledger_db, 1)
    remember(slow)
    slow.execute("set constraints all immediate")
    hasty = ledger_db.connect("service_role")
    hasty.execute("set statement_timeout = '8s'")
    memory = remember(hasty)
    slow.commit()
    assert ledger_db.value("select array_agg(memory_id) from ranked_ledger.pending_steps") == [memory]
    remember(ledger_db.service)
    assert steps(ledger_db) == [0, 1, 2, 3]
    assert_consistent(ledger_db)


def test_a_deadlock_with_our_locks_never_reaches_the_host(ledger_db: Database):
    memory = remember(ledger_db.service, task_id="b")
    remember(ledger_db.service, task_id="a")
    early, late = writers(ledger_db, 2)
    remember(early, task_id="a")
    early.execute("set constraints all immediate")  # holds the stream a until its end
    change(late, memory, summary="held")
    remember(late, task_id="a")
    with in_background(late.commit) as committed:  # waits for the stream
        wait_until_blocked(ledger_db, late)
        change(early, memory, summary="waited for")  # waits for the row
        early.commit()
    assert committed == [None]
    mend(ledger_db)
    assert_consistent(ledger_db)


def test_an_advisory_lock_that_somebody_holds_stops_no_host_writer(ledger_db: Database):
    memory = remember(ledger_db.service)
    holder = ledger_db.connect("postgres", autocommit=False)
    holder.execute("select pg_advisory_xact_lock(hashtextextended('ranked_ledger.edges acme', 0))")
    holder.execute("select pg_advisory_lock_shared(n) from generate_series(0, 99) n")
    hasty = ledger_db.connect("service_role")
    hasty.execute("set statement_timeout = '5s'")
    remember(hasty)
    change(hasty, memory, task_id="search", workspace_id="other", content="w")
    hasty.execute("delete from agent_memories where id = %s", (memory,))
    holder.rollback()
    assert_consistent(ledger_db)


def test_deletes_of_both_ends_of_edges_at_once_meet_no_deadlock(ledger_db: Database):
    pairs = [(remember(ledger_db.service), remember(ledger_db.service)) for _ in range(300)]
    for one, other in pairs:
        for ends in ((one, other), (other, one)):
            ledger_db.service.execute(
                "insert into agent_decision_edges (from_memory_id, to_memory_id, relation)"
                " values (%s, %s, 'informs')",
                ends,
            )

    def delete(connection, memories):
        for memory in memories:
            connection.execute("delete from agent_memories where id = %s", (memory,))

    connections = [ledger_db.connect("service_role") for _ in range(2)]
    at_once(
        [lambda c=c, m=m: delete(c, m) for c, m in zip(connections, zip(*pairs, strict=True), strict=True)]
    )
    mend(ledger_db)
    assert ledger_db.value("select count(*) from ranked_ledger.lost_grounds") == 0
    assert_consistent(ledger_db)


def test_everything_at_once_ends_consistent(ledger_db: Database):
    """Inserts, moves, edits, deletes and counters over three streams, from twelve clients."""
    shared = [remember(ledger_db.service, task_id=f"t{number % 3}") for number in range(30)]
    stop = threading.Event()

    def work(place, connection):
        chance = random.Random(place)
        for _ in range(25):
            memory = chance.choice(shared)
            match chance.randrange(6):
                case 0 | 1:
                    remember(connection, task_id=f"t{chance.randrange(3)}")
                case 2:
                    change(connection, memory, task_id=f"t{chance.randrange(3)}")
                case 3:
                    change(connection, memory, content=f"words {chance.random()}", lifecycle_status="stale")
                case 4:
                    connection.execute("delete from agent_memories where id = %s", (memory,))
                case 5:
                    connection.execute("select touch_decision_recall(%s)", (chance.sample(shared, 5),))
            if stop.is_set():
                return

    at_once([lambda p=p: work(*p) for p in enumerate([ledger_db.connect("service_role") for _ in range(12)])])
    mend(ledger_db)
    assert_consistent(ledger_db)
    assert pid_of(ledger_db.service) > 0
