"""mark_recall_usage: once per trace and decision, however often it is sent."""

from __future__ import annotations

from typing import Any

import pytest

from tests.rig.databases import Connection
from tests.sql.rpc import HOSTILE, NOBODY, Ledger, at_once, call, count


def items(ledger: Ledger) -> dict[str, tuple[bool | None, str | None]]:
    rows = ledger.database.rows("select memory_id::text, used, ignored_reason from agent_memory_recall_items")
    return {memory_id: (used, reason) for memory_id, used, reason in rows}


def used_counts(ledger: Ledger) -> dict[str, int]:
    return dict(ledger.database.rows("select memory_id::text, used_count from agent_decision_ledger"))


def test_marks_items_counts_uses_and_tells_the_audit(ledger: Ledger) -> None:
    a, b, c = ledger.id("a"), ledger.id("b", project_id="p"), ledger.id("c")
    request_id = ledger.trace(a, b, c)
    ignored = [{"memory_id": b, "reason": "off topic"}]
    answer = ledger("mark_recall_usage", request_id=request_id, used=[a], ignored=ignored)
    assert answer == {"used": 1, "ignored": 1, "already": 0, "unknown": []}
    assert items(ledger) == {a: (True, None), b: (False, "off topic"), c: (None, None)}
    assert used_counts(ledger) == {a: 1, b: 0, c: 0}
    events = ledger.database.rows(
        "select event_type, memory_id::text, trace_id is not null, payload from agent_memory_audit_events "
        "where event_type like 'memory_%%ed' and payload ->> 'kind' = 'recall_usage' order by event_type desc"
    )
    kind = {"kind": "recall_usage"}
    assert events == [("memory_used", a, True, kind), ("memory_ignored", b, True, kind)]


def test_the_first_mark_stands(ledger: Ledger) -> None:
    a, b = ledger.id("a"), ledger.id("b")
    request_id = ledger.trace(a, b)
    ledger("mark_recall_usage", request_id=request_id, used=[a], ignored=[{"memory_id": b}])
    events = count(ledger.database, "agent_memory_audit_events")
    again = ledger(
        "mark_recall_usage", request_id=request_id, used=[a, b], ignored=[{"memory_id": a, "reason": "x"}]
    )
    assert again == {"used": 0, "ignored": 0, "already": 2, "unknown": []}
    assert items(ledger) == {a: (True, None), b: (False, "not said")}
    assert used_counts(ledger) == {a: 1, b: 0}
    assert count(ledger.database, "agent_memory_audit_events") == events


def test_an_item_named_twice_counts_once_and_used_goes_before_ignored(ledger: Ledger) -> None:
    a, b = ledger.id("a"), ledger.id("b")
    request_id = ledger.trace(a, b)
    ignored = [
        {"memory_id": a, "reason": "x"},
        {"memory_id": b, "reason": "first"},
        {"memory_id": b, "reason": "second"},
    ]
    answer = ledger("mark_recall_usage", request_id=request_id, used=[a, a, a.upper(), None], ignored=ignored)
    assert answer == {"used": 1, "ignored": 1, "already": 0, "unknown": []}
    assert items(ledger) == {a: (True, None), b: (False, "first")}
    assert used_counts(ledger)[a] == 1


def test_another_trace_counts_again(ledger: Ledger) -> None:
    a = ledger.id("a")
    for _ in range(3):
        ledger("mark_recall_usage", request_id=ledger.trace(a), used=[a])
    assert used_counts(ledger) == {a: 3}


def test_what_the_recall_did_not_return_is_unknown(ledger: Ledger) -> None:
    a, b = ledger.id("a"), ledger.id("b")
    theirs = Ledger(ledger.database, workspace="globex").id("theirs")
    ignored = [{"memory_id": theirs}, {"memory_id": NOBODY}]
    answer = ledger("mark_recall_usage", request_id=ledger.trace(a), used=[b, a], ignored=ignored)
    assert answer == {"used": 1, "ignored": 0, "already": 0, "unknown": sorted([b, theirs, NOBODY])}
    assert used_counts(ledger) == {a: 1, b: 0, theirs: 0}


def test_nothing_to_mark_marks_nothing(ledger: Ledger) -> None:
    request_id = ledger.trace(ledger.id("a"))
    nothing = {"used": 0, "ignored": 0, "already": 0, "unknown": []}
    arguments: list[dict[str, Any]] = [{}, {"used": [], "ignored": []}, {"used": None, "ignored": None}]
    for given in arguments:
        assert ledger("mark_recall_usage", request_id=request_id, **given) == nothing


def test_a_trace_that_is_not_of_this_workspace_is_absent(ledger: Ledger) -> None:
    elsewhere = Ledger(ledger.database, workspace="globex")
    a = ledger.id("a")
    request_id = ledger.trace(a)
    said = {
        str(elsewhere.refused("RL404", "mark_recall_usage", request_id=wanted, used=[a]).message_hint)
        for wanted in (request_id, NOBODY)
    }
    assert len(said) == 1
    ledger.refused("RL404", "mark_recall_usage", request_id=None, used=[a])
    assert items(ledger) == {a: (None, None)}


@pytest.mark.parametrize(
    "ignored",
    [
        "text",
        {},
        [1],
        ["x"],
        [None],
        [{}],
        [{"memory_id": None}],
        [{"memory_id": "x"}],
        [{"memory_id": NOBODY, "reason": 1}],
        [{"memory_id": NOBODY, "reason": "x" * 1_000_000}],
        [{"memory_id": f"ffffffff-ffff-4fff-bfff-{n:012}"} for n in range(1001)],
    ],
    ids=range(11),
)
def test_what_is_no_list_of_ignored_items_is_refused(shared_ledger: Ledger, ignored: object) -> None:
    said = shared_ledger.refused("22023", "mark_recall_usage", request_id=NOBODY, ignored=ignored)
    assert "p_ignored" in str(said.message_primary)


@pytest.mark.parametrize("reason", HOSTILE, ids=range(len(HOSTILE)))
def test_a_reason_comes_back_as_it_was(ledger: Ledger, reason: str) -> None:
    a = ledger.id("a")
    ledger("mark_recall_usage", request_id=ledger.trace(a), ignored=[{"memory_id": a, "reason": reason}])
    assert items(ledger) == {a: (False, reason)}


def test_the_same_feedback_at_once_counts_once(ledger: Ledger) -> None:
    ids = [ledger.id(f"{n}") for n in range(10)]
    request_id = ledger.trace(*ids)

    def mark(number: int) -> Any:
        used = ids if number % 2 else ids[::-1]
        return lambda connection: call(
            connection, "mark_recall_usage", workspace_id="acme", request_id=request_id, used=used
        )

    answers = at_once(ledger.database, [mark(number) for number in range(16)])
    assert sum(answer["used"] for answer in answers) == 10
    assert set(used_counts(ledger).values()) == {1}


def test_traces_over_the_same_decisions_at_once_do_not_deadlock(ledger: Ledger) -> None:
    ids = [ledger.id(f"{n}") for n in range(20)]
    requests = [ledger.trace(*ids) for _ in range(16)]

    def mark(number: int) -> Any:
        def work(connection: Connection) -> Any:
            used = ids[number:] + ids[:number]
            return call(
                connection, "mark_recall_usage", workspace_id="acme", request_id=requests[number], used=used
            )

        return work

    answers = at_once(ledger.database, [mark(number) for number in range(16)])
    assert [answer["used"] for answer in answers] == [20] * 16
    assert set(used_counts(ledger).values()) == {16}
