"""Counters of recall and use over several rows, from many clients."""

from __future__ import annotations

import random
import threading
import time
import uuid

import pytest

from tests.rig.databases import Database
from tests.sql.write_path import assert_consistent, at_once, change, deadlocks, ledger_row, remember


def touch(connection, memories, used: bool = False) -> int:
    return connection.execute("select touch_decision_recall(%s, %s)", (memories, used)).fetchone()[0]


def test_16_clients_on_the_same_40_rows_never_deadlock(ledger_db: Database, record_property):
    memories = [remember(ledger_db.service) for _ in range(40)]
    connections = [ledger_db.connect("service_role") for _ in range(16)]
    seconds = 3.0
    calls = [0] * 16

    def work(place: int):
        chance = random.Random(place)
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            assert touch(connections[place], chance.sample(memories, 40), place % 4 == 0) == 40
            calls[place] += 1

    at_once([lambda p=p: work(p) for p in range(16)])
    record_property("touches_a_second", round(sum(calls) / seconds))

    used = sum(count for place, count in enumerate(calls) if place % 4 == 0)
    assert ledger_db.rows("select distinct recall_count, used_count from agent_decision_ledger") == [
        (sum(calls), used)
    ]
    assert deadlocks(ledger_db) == 0
    assert_consistent(ledger_db)


def test_counters_and_the_hosts_own_bulk_edits_of_the_same_rows_never_deadlock(ledger_db: Database):
    memories = [remember(ledger_db.service) for _ in range(40)]
    connections = [ledger_db.connect("service_role") for _ in range(8)]
    stop = threading.Event()

    def count(connection):
        chance = random.Random(id(connection))
        while not stop.is_set():
            touch(connection, chance.sample(memories, 40))

    def edit(connection):
        try:
            for number in range(25):
                connection.execute(
                    "update agent_memories set content = content || %s, lifecycle_status = %s",
                    (f" w{number}", ("stale", "active")[number % 2]),
                )
        finally:
            stop.set()

    at_once([lambda c=c: count(c) for c in connections[1:]] + [lambda: edit(connections[0])])
    assert_consistent(ledger_db)
    assert ledger_db.value("select count(*) from agent_decision_ledger where search_lexemes @@ 'w24'") == 40


def test_recall_and_the_hosts_deletes_at_once(ledger_db: Database):
    memories = [remember(ledger_db.service) for _ in range(200)]
    connections = [ledger_db.connect("service_role") for _ in range(4)]
    stop = threading.Event()

    def recall(connection):
        while not stop.is_set():
            connection.execute("select recall_decisions('acme', 'decision', p_match_count => 20)")

    def delete(connection):
        try:
            for memory in memories:
                connection.execute("delete from agent_memories where id = %s", (memory,))
        finally:
            stop.set()

    at_once([lambda c=c: recall(c) for c in connections[1:]] + [lambda: delete(connections[0])])
    assert_consistent(ledger_db)


def test_a_row_named_twice_counts_once_and_unknown_ones_not_at_all(ledger_db: Database):
    memory = remember(ledger_db.service)
    assert touch(ledger_db.service, [memory, memory, uuid.uuid4()]) == 1
    assert touch(ledger_db.service, [memory], used=True) == 1
    row = ledger_row(ledger_db, memory)
    assert (row["recall_count"], row["used_count"], row["last_recalled_at"] is None) == (2, 1, False)


@pytest.mark.parametrize("memories", [[], None, [None]])
def test_nothing_to_count_is_no_error(ledger_db: Database, memories):
    assert touch(ledger_db.service, memories) == 0


def test_a_null_for_used_counts_a_recall(ledger_db: Database):
    memory = remember(ledger_db.service)
    ledger_db.service.execute("select touch_decision_recall(%s, null)", ([memory],))
    assert ledger_row(ledger_db, memory)["recall_count"] == 1


@pytest.mark.parametrize("column", ["recall_count", "used_count"])
def test_a_counter_at_its_end_stays_there(ledger_db: Database, column):
    memory = remember(ledger_db.service)
    ledger_db.service.execute(f"update agent_decision_ledger set {column} = 2147483647")
    assert touch(ledger_db.service, [memory], used=column == "used_count") == 1
    assert ledger_row(ledger_db, memory)[column] == 2147483647


def test_counting_moves_no_step_and_no_word(ledger_db: Database):
    memory = remember(ledger_db.service)
    before = ledger_row(ledger_db, memory)
    touch(ledger_db.service, [memory])
    change(ledger_db.service, memory, model="m")
    after = ledger_row(ledger_db, memory)
    assert {key for key in before if before[key] != after[key]} == {"recall_count", "last_recalled_at"}
