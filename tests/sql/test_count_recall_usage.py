"""count_recall_usage: what a host's own route has marked as used, counted once per trace and decision for ever."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from tests.rig.databases import Connection
from tests.sql.rpc import NOBODY, Ledger, at_once, call, count
from tests.sql.write_path import in_background, wait_until_blocked


def host_marks(
    ledger: Ledger,
    request_id: str,
    *memory_ids: str,
    used: bool | None = True,
    connection: Connection | None = None,
) -> None:
    """As a route of the host does: by PostgREST, without a word to us."""
    (connection or ledger.database.service).execute(
        "update agent_memory_recall_items i set used = %s from agent_memory_recall_traces t "
        "where t.id = i.trace_id and t.request_id = %s and i.memory_id = any (%s::uuid[])",
        (used, request_id, list(memory_ids)),
    )


def counted(ledger: Ledger, request_id: str, connection: Connection | None = None) -> int:
    answer = call(connection or ledger.connection, "count_recall_usage", request_id=request_id)
    assert isinstance(answer, int)
    return answer


def used_counts(ledger: Ledger) -> dict[str, int]:
    return dict(ledger.database.rows("select memory_id::text, used_count from agent_decision_ledger"))


def snapshot(ledger: Ledger, memory_id: str) -> Any:
    return ledger.database.value(
        "select use_policy_snapshot from agent_memory_recall_items where memory_id = %s", (memory_id,)
    )


def test_counts_what_the_host_marked_as_used_and_nothing_else(ledger: Ledger) -> None:
    a, b, c = ledger.id("a"), ledger.id("b"), ledger.id("c")
    request_id = ledger.trace(a, b, c, policy="ranked_ledger")
    assert counted(ledger, request_id) == 0
    host_marks(ledger, request_id, a)
    host_marks(ledger, request_id, b, used=False)
    events = count(ledger.database, "agent_memory_audit_events")
    assert counted(ledger, request_id) == 1
    assert used_counts(ledger) == {a: 1, b: 0, c: 0}
    assert ledger.get(a)["recall_count"] == 0, "the recall was counted with its trace"
    assert (snapshot(ledger, a), snapshot(ledger, b)) == ({"usage_counted": True}, {})
    assert count(ledger.database, "agent_memory_audit_events") == events


def test_a_repeat_counts_what_is_new(ledger: Ledger) -> None:
    a, b = ledger.id("a"), ledger.id("b")
    request_id = ledger.trace(a, b, policy="ranked_ledger")
    host_marks(ledger, request_id, a)
    assert [counted(ledger, request_id) for _ in range(3)] == [1, 0, 0]
    host_marks(ledger, request_id, a, used=False)
    host_marks(ledger, request_id, a, b)
    assert [counted(ledger, request_id) for _ in range(2)] == [1, 0]
    assert used_counts(ledger) == {a: 1, b: 1}


def test_another_trace_counts_again(ledger: Ledger) -> None:
    a = ledger.id("a")
    for _ in range(3):
        request_id = ledger.trace(a, policy="text_only")
        host_marks(ledger, request_id, a)
        assert counted(ledger, request_id) == 1
    assert used_counts(ledger) == {a: 3}


def test_the_mark_leaves_what_the_recall_stored(ledger: Ledger) -> None:
    a = ledger.id("Invoices are immutable")
    request_id = ledger("recall_decisions", query="immutable")["request_id"]
    before = snapshot(ledger, a)
    host_marks(ledger, request_id, a)
    assert counted(ledger, request_id) == 1
    assert snapshot(ledger, a) == before | {"usage_counted": True}


@pytest.mark.parametrize("policy", [None, "vector"])
def test_a_trace_of_the_host_s_own_policy_counts_nothing(ledger: Ledger, policy: str | None) -> None:
    a = ledger.id("a")
    request_id = ledger.trace(a, policy=policy)
    host_marks(ledger, request_id, a)
    assert counted(ledger, request_id) == 0
    assert used_counts(ledger) == {a: 0}


@pytest.mark.parametrize(
    "policy", ["null", "[]", '["recall_policy"]', '"text"', "7", '{"recall_policy": null}', None]
)
def test_a_policy_that_cannot_be_read_is_the_host_s_own(ledger: Ledger, policy: str | None) -> None:
    a = ledger.id("a")
    request_id = ledger.trace(a)
    ledger.database.owner.execute("update agent_memory_recall_traces set response_policy = %s", (policy,))
    host_marks(ledger, request_id, a)
    assert counted(ledger, request_id) == 0


@pytest.mark.parametrize(
    ("stored", "then"),
    [
        (None, {}),
        ("null", {}),
        ("[1, null]", {"snapshot": [1, None]}),
        ('"text"', {"snapshot": "text"}),
        ('{"a": null, "usage_counted": "no"}', {"a": None}),
        ('{"usage_counted": null}', {}),
        ('["usage_counted"]', {"snapshot": ["usage_counted"]}),
    ],
)
def test_whatever_the_snapshot_is_it_takes_the_mark_and_is_kept(
    ledger: Ledger, stored: str | None, then: Any
) -> None:
    a = ledger.id("a")
    request_id = ledger.trace(a, policy="ranked_ledger")
    ledger.database.owner.execute("update agent_memory_recall_items set use_policy_snapshot = %s", (stored,))
    host_marks(ledger, request_id, a)
    assert [counted(ledger, request_id) for _ in range(2)] == [1, 0]
    assert snapshot(ledger, a) == then | {"usage_counted": True}


def test_both_ways_together_count_once(ledger: Ledger) -> None:
    a, b, c = ledger.id("a"), ledger.id("b"), ledger.id("c")
    request_id = ledger.trace(a, b, c, policy="ranked_ledger")
    ledger("mark_recall_usage", request_id=request_id, used=[a], ignored=[{"memory_id": b}])
    assert (snapshot(ledger, a), snapshot(ledger, b)) == ({"usage_counted": True}, {})
    host_marks(ledger, request_id, a, c)
    assert counted(ledger, request_id) == 1
    again = ledger("mark_recall_usage", request_id=request_id, used=[a, c])
    assert (again["used"], again["already"]) == (0, 2)
    host_marks(ledger, request_id, b)
    assert counted(ledger, request_id) == 1, "used after all"
    assert used_counts(ledger) == {a: 1, b: 1, c: 1}


def test_a_host_that_takes_its_mark_back_does_not_make_it_count_twice(ledger: Ledger) -> None:
    a = ledger.id("a")
    request_id = ledger.trace(a, policy="ranked_ledger")
    ledger("mark_recall_usage", request_id=request_id, used=[a])
    host_marks(ledger, request_id, a, used=None)
    assert ledger("mark_recall_usage", request_id=request_id, used=[a])["used"] == 1
    assert counted(ledger, request_id) == 0
    assert used_counts(ledger) == {a: 1}


def test_what_is_no_decision_is_no_use_of_one_and_counts_once_it_is_enrolled(ledger: Ledger) -> None:
    a = ledger.id("a")
    lesson = str(
        ledger.database.value(
            "insert into agent_memories (workspace_id, memory_type, summary, content) "
            "values ('acme', 'lesson', 's', 'c') returning id"
        )
    )
    request_id = ledger.trace(a, lesson, policy="ranked_ledger")
    host_marks(ledger, request_id, a, lesson)
    assert counted(ledger, request_id) == 1
    ledger.database.owner.execute(
        "update agent_memories set memory_type = 'decision' where id = %s", (lesson,)
    )
    assert counted(ledger, request_id) == 1
    assert used_counts(ledger) == {a: 1, lesson: 1}


def test_the_counter_stops_at_its_end(ledger: Ledger) -> None:
    a = ledger.id("a")
    ledger.database.owner.execute("update agent_decision_ledger set used_count = 2147483647")
    request_id = ledger.trace(a, policy="ranked_ledger")
    host_marks(ledger, request_id, a)
    assert counted(ledger, request_id) == 1
    assert used_counts(ledger) == {a: 2147483647}


def test_a_recall_that_left_no_trace_is_absent(ledger: Ledger) -> None:
    a = ledger.id("a")
    untraced = ledger("recall_decisions", trace=False)["request_id"]
    pruned = ledger.trace(a, policy="ranked_ledger")
    ledger("prune_traces", before="infinity")
    for request_id in (untraced, pruned, NOBODY, None):
        with pytest.raises(psycopg.Error) as refused:
            call(ledger.connection, "count_recall_usage", request_id=request_id)
        assert refused.value.sqlstate == "RL404"
        assert refused.value.diag.message_hint


@pytest.mark.parametrize("request_id", ["", "x", "'; drop table public.agent_memories; --", "1" * 100_000])
def test_what_is_no_id_is_refused(shared_ledger: Ledger, request_id: str) -> None:
    with pytest.raises(psycopg.errors.InvalidTextRepresentation):
        call(shared_ledger.connection, "count_recall_usage", request_id=request_id)


def test_the_same_call_at_once_counts_once(ledger: Ledger) -> None:
    ids = [ledger.id(f"{n}") for n in range(10)]
    request_id = ledger.trace(*ids, policy="ranked_ledger")
    host_marks(ledger, request_id, *ids)
    answers = at_once(ledger.database, [lambda c: counted(ledger, request_id, c)] * 16)
    assert sorted(answers) == [0] * 15 + [10]
    assert set(used_counts(ledger).values()) == {1}


def test_a_second_call_waits_for_the_first_and_counts_what_that_one_did_not(ledger: Ledger) -> None:
    a, b = ledger.id("a"), ledger.id("b")
    request_id = ledger.trace(a, b, policy="ranked_ledger")
    host_marks(ledger, request_id, a)
    first = ledger.database.connect("service_role", autocommit=False)
    second = ledger.database.connect("service_role")
    assert counted(ledger, request_id, first) == 1
    host_marks(ledger, request_id, b)
    with in_background(lambda: counted(ledger, request_id, second)) as answers:
        wait_until_blocked(ledger.database, second)
        first.commit()
    assert answers == [1]
    assert used_counts(ledger) == {a: 1, b: 1}


def test_a_first_call_that_fails_leaves_it_to_the_second(ledger: Ledger) -> None:
    a = ledger.id("a")
    request_id = ledger.trace(a, policy="ranked_ledger")
    host_marks(ledger, request_id, a)
    first = ledger.database.connect("service_role", autocommit=False)
    second = ledger.database.connect("service_role")
    assert counted(ledger, request_id, first) == 1
    with in_background(lambda: counted(ledger, request_id, second)) as answers:
        wait_until_blocked(ledger.database, second)
        first.rollback()
    assert answers == [1]
    assert used_counts(ledger) == {a: 1}


def test_a_mark_that_a_host_is_just_taking_back_does_not_count(ledger: Ledger) -> None:
    a = ledger.id("a")
    request_id = ledger.trace(a, policy="ranked_ledger")
    host_marks(ledger, request_id, a)
    host = ledger.database.connect("service_role", autocommit=False)
    second = ledger.database.connect("service_role")
    host_marks(ledger, request_id, a, used=False, connection=host)
    with in_background(lambda: counted(ledger, request_id, second)) as answers:
        wait_until_blocked(ledger.database, second)
        host.commit()
    assert answers == [0]
    assert used_counts(ledger) == {a: 0}


def test_counting_traces_of_the_same_decisions_while_they_are_forgotten_does_not_deadlock(
    ledger: Ledger,
) -> None:
    ids = [ledger.id(f"{n}") for n in range(40)]
    requests = [[ledger.trace(*ids, policy="ranked_ledger") for _ in range(8)] for _ in range(8)]
    ledger.database.owner.execute("update agent_memory_recall_items set used = true")

    def host(number: int) -> Any:
        def work(connection: Connection) -> None:
            for request_id in requests[number]:
                counted(ledger, request_id, connection)

        return work

    def forget(number: int) -> Any:
        def work(connection: Connection) -> None:
            for memory_id in ids[number::4]:
                call(connection, "forget_decision", workspace_id="acme", memory_id=memory_id)

        return work

    work = [*(host(number) for number in range(8)), *(forget(number) for number in range(2))]
    assert at_once(ledger.database, work) == [None] * len(work)
    left = set(ids) - set(ids[0::4]) - set(ids[1::4])
    assert used_counts(ledger) == dict.fromkeys(left, 64)


def test_both_ways_at_once_count_once(ledger: Ledger) -> None:
    for _ in range(5):
        ids = [ledger.id(f"{n}") for n in range(10)]
        request_id = ledger.trace(*ids, policy="ranked_ledger")

        def mark(connection: Connection, request_id: str = request_id, ids: list[str] = ids) -> Any:
            arguments = {"workspace_id": "acme", "request_id": request_id, "used": ids[::-1]}
            return call(connection, "mark_recall_usage", **arguments)["used"]

        def host(connection: Connection, request_id: str = request_id, ids: list[str] = ids) -> int:
            for memory_id in ids:
                host_marks(ledger, request_id, memory_id, connection=connection)
            return counted(ledger, request_id, connection)

        assert sum(at_once(ledger.database, [mark, host, mark, host])) == 10
        assert {ledger.get(memory_id)["used_count"] for memory_id in ids} == {1}


def test_counting_marking_forgetting_recalling_and_pruning_at_once_do_not_deadlock(ledger: Ledger) -> None:
    ids = [ledger.id(f"{n}") for n in range(24)]
    requests = [ledger.trace(*ids, policy="ranked_ledger") for _ in range(8)]

    def host(number: int) -> Any:
        def work(connection: Connection) -> None:
            for memory_id in ids[number:] + ids[:number]:
                host_marks(ledger, requests[number % 4], memory_id, connection=connection)
                counted(ledger, requests[number % 4], connection)

        return work

    def mark(connection: Connection) -> None:
        for request_id in requests[:4]:
            call(connection, "mark_recall_usage", workspace_id="acme", request_id=request_id, used=ids[::-1])

    def forget(connection: Connection) -> None:
        for memory_id in ids[::3]:
            call(connection, "forget_decision", workspace_id="acme", memory_id=memory_id)

    def recall(connection: Connection) -> None:
        for _ in range(10):
            assert call(connection, "recall_decisions", workspace_id="acme", match_count=24)["traced"]

    def prune(connection: Connection) -> None:
        for request_id in requests[4:]:
            connection.execute("delete from agent_memory_recall_traces where request_id = %s", (request_id,))

    work = [*(host(number) for number in range(6)), mark, mark, forget, recall, prune]
    assert at_once(ledger.database, work) == [None] * len(work)
    left = set(ids) - set(ids[::3])
    assert {used_counts(ledger)[memory_id] for memory_id in left} == {4}
