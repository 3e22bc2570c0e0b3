"""link_decisions and unlink_decisions."""

from __future__ import annotations

import time
from typing import Any

import psycopg
import pytest

from tests.rig.databases import Connection
from tests.sql.rpc import NOBODY, Ledger, at_once, call, count


def link(ledger: Ledger, start: str, end: str, relation: str = "depends_on", **arguments: Any) -> Any:
    return ledger("link_decisions", **{"from": start, "to": end, "relation": relation}, **arguments)


def test_a_link_is_made_once_and_a_repeat_changes_nothing(ledger: Ledger) -> None:
    a, b = ledger.id("a"), ledger.id("b")
    edge = {"from_memory_id": a, "to_memory_id": b, "relation": "depends_on"}
    assert link(ledger, a, b, metadata={"why": "x"}) == edge | {"created": True}
    assert link(ledger, a, b, metadata={"why": "y"}) == edge | {"created": False}
    assert ledger("link_decisions", **{"from": a, "to": b}) == edge | {"created": False}
    assert ledger.database.value("select metadata from agent_decision_edges") == {"why": "x"}
    assert link(ledger, a, b, "informs")["created"] is True
    events = "select memory_id::text, payload from agent_memory_audit_events where event_type = 'memory_edited' order by created_at"
    made = {"kind": "decision_linked", "to_memory_id": b}
    assert ledger.database.rows(events) == [(a, made | {"relation": r}) for r in ("depends_on", "informs")]


def test_an_edge_is_taken_back_and_leaves_no_mark(ledger: Ledger) -> None:
    a, b = ledger.id("a"), ledger.id("b")
    link(ledger, a, b)
    edge = {"from_memory_id": a, "to_memory_id": b, "relation": "depends_on"}
    assert ledger("unlink_decisions", **{"from": a, "to": b, "relation": "informs"})["removed"] is False
    assert ledger("unlink_decisions", **{"from": a, "to": b}) == edge | {"removed": True}
    assert ledger("unlink_decisions", **{"from": a, "to": b}) == edge | {"removed": False}
    assert ledger.get(a)["lost_ground"] == []


def test_a_cycle_is_refused_with_its_path(ledger: Ledger) -> None:
    a, b, c = ledger.id("a"), ledger.id("b"), ledger.id("c")
    link(ledger, a, b)
    link(ledger, b, c)
    said = ledger.refused("RL461", "link_decisions", **{"from": c, "to": a})
    assert said.message_detail == f"{c} -> {a} -> {b} -> {c}"
    assert link(ledger, c, a, "informs")["created"] is True
    said = ledger.refused("RL461", "link_decisions", **{"from": c, "to": c, "relation": "blocks"})
    assert said.message_detail == f"{c} -> {c}"


def test_a_dense_history_is_walked_once_a_decision(ledger: Ledger) -> None:
    ids = [
        str(d["memory_id"])
        for d in ledger("record_decisions", decisions=[{"content": "x"}] * 120)["decisions"]
    ]
    started = time.monotonic()
    for number in range(1, len(ids)):
        for ground in ids[max(0, number - 3) : number]:
            link(ledger, ids[number], ground)
    said = ledger.refused("RL461", "link_decisions", **{"from": ids[0], "to": ids[-1]})
    assert str(said.message_detail).count("->") == 41, "a shortest path"
    newest = ledger.id("x", depends_on=ids[-3:])
    assert len(ledger.get(newest)["edges_out"]) == 3
    assert time.monotonic() - started < 10


def test_both_ends_are_of_this_workspace(ledger: Ledger) -> None:
    ours, gone = ledger.id("ours"), ledger.id("gone")
    theirs = Ledger(ledger.database, workspace="globex").id("theirs")
    ledger("forget_decision", memory_id=gone)
    for function in ("link_decisions", "unlink_decisions"):
        for absent in (theirs, NOBODY):
            ledger.refused("RL404", function, **{"from": ours, "to": absent})
            ledger.refused("RL404", function, **{"from": absent, "to": ours})
        ledger.refused("RL410", function, **{"from": ours, "to": gone})
        Ledger(ledger.database, workspace="nobody").refused(
            "RL404", function, **{"from": ours, "to": ours[::-1]} | {"to": theirs}
        )
    assert count(ledger.database, "agent_decision_edges") == 0


@pytest.mark.parametrize(
    "wrong",
    [
        {"relation": "supersedes"},
        {"relation": ""},
        {"relation": None},
        {"from": None},
        {"to": None},
        {"metadata": []},
        {"metadata": "x"},
        {"metadata": {"x": "x" * 1_000_000}},
        {"workspace_id": " "},
    ],
    ids=lambda wrong: next(iter(wrong)),
)
def test_a_bad_argument_is_refused(ledger: Ledger, wrong: dict[str, Any]) -> None:
    ends = {"from": ledger.id("a"), "to": ledger.id("b")}
    ledger.refused("22023", "link_decisions", **ends | wrong)
    if "metadata" not in wrong:
        ledger.refused("22023", "unlink_decisions", **ends | wrong)


def test_the_two_halves_of_a_cycle_at_once_are_not_both_made(ledger: Ledger) -> None:
    for _ in range(10):
        a, b = ledger.id("a"), ledger.id("b")

        def half(start: str, end: str) -> Any:
            return lambda connection: call(
                connection, "link_decisions", **{"workspace_id": "acme", "from": start, "to": end}
            )

        answers = at_once(ledger.database, [half(a, b), half(b, a)])
        assert [e.sqlstate for e in answers if isinstance(e, psycopg.Error)] == ["RL461"]


def test_one_link_made_by_many_at_once_is_one_edge(ledger: Ledger) -> None:
    a, b = ledger.id("a"), ledger.id("b")

    def make(connection: Connection) -> Any:
        return call(connection, "link_decisions", **{"workspace_id": "acme", "from": a, "to": b})

    assert sorted(answer["created"] for answer in at_once(ledger.database, [make] * 8)) == [False] * 7 + [
        True
    ]
