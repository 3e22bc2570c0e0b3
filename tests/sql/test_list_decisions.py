"""list_decisions: filters, order, pages."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ranked_ledger import Decision
from tests.sql.rpc import NOBODY, Ledger


def contents(page: dict[str, Any]) -> list[str]:
    return [d["content"] for d in page["decisions"]]


def pages(ledger: Ledger, **arguments: Any) -> list[dict[str, Any]]:
    found = [ledger("list_decisions", **arguments)]
    while found[-1]["next"] is not None:
        found.append(ledger("list_decisions", **arguments, after=found[-1]["next"]))
    return found


def test_an_empty_workspace_is_an_empty_page(ledger: Ledger) -> None:
    assert ledger("list_decisions") == {"decisions": [], "next": None}


def test_the_newest_step_comes_first_unless_asked_otherwise(ledger: Ledger) -> None:
    for text in ("first", "second", "third"):
        ledger.id(text)
    assert contents(ledger("list_decisions")) == ["third", "second", "first"]
    assert contents(ledger("list_decisions", newest_first=None)) == ["third", "second", "first"]
    assert contents(ledger("list_decisions", newest_first=False)) == ["first", "second", "third"]


@pytest.mark.parametrize("newest_first", [True, False])
@pytest.mark.parametrize("limit", [1, 2, 3, 7, 8, 500])
def test_pages_hold_each_decision_once_also_where_steps_are_shared(
    ledger: Ledger, newest_first: bool, limit: int
) -> None:
    for step in (0, 1, 1, 1, 1, 2, 5):
        ledger.id("x", step_index=step)
    found = [d for page in pages(ledger, newest_first=newest_first, limit=limit) for d in page["decisions"]]
    keys = [(d["step_index"] * (-1 if newest_first else 1), d["memory_id"]) for d in found]
    assert len(found) == 7
    assert keys == sorted(keys)


def test_what_is_written_between_two_pages_neither_repeats_nor_hides_a_row(ledger: Ledger) -> None:
    for number in range(4):
        ledger.id(f"{number}")
    first = ledger("list_decisions", limit=2)
    ledger.id("4")
    ledger("forget_decision", memory_id=first["decisions"][-1]["memory_id"])
    second = ledger("list_decisions", limit=2, after=first["next"])
    assert contents(first) + contents(second) == ["3", "2", "1", "0"]
    assert second["next"] is None


def test_filters_narrow_and_combine(ledger: Ledger) -> None:
    a = ledger.id("a", project_id="p", task_id="t", pinned=True)
    ledger.id("b", project_id="p", task_id="u")
    c = ledger.id("c", project_id="q", task_id="t")
    ledger.id("d")
    ledger("set_decision_lifecycle", memory_id=c, lifecycle="rejected")
    Ledger(ledger.database, workspace="globex").id("theirs", project_id="p", task_id="t")
    expected: list[tuple[dict[str, Any], set[str]]] = [
        ({}, {"a", "b", "c", "d"}),
        ({"project_id": "p"}, {"a", "b"}),
        ({"task_id": "t"}, {"a", "c"}),
        ({"project_id": "p", "task_id": "t"}, {"a"}),
        ({"project_id": ""}, set()),
        ({"lifecycle": ["rejected", "stale"]}, {"c"}),
        ({"lifecycle": ["active"]}, {"a", "b", "d"}),
        ({"pinned": True}, {"a"}),
        ({"pinned": False}, {"b", "c", "d"}),
        ({"project_id": "%' or true --"}, set()),
    ]
    for filters, found in expected:
        assert set(contents(ledger("list_decisions", **filters))) == found, filters
    ledger.database.owner.execute("update agent_memories set memory_type = 'lesson' where id = %s", (a,))
    assert "a" not in contents(ledger("list_decisions"))


def test_a_row_is_what_get_decision_answers(ledger: Ledger) -> None:
    memory_id = ledger.id("x", rationale="y")
    (row,) = ledger("list_decisions")["decisions"]
    full = ledger.get(memory_id)
    assert row == {name: full[name] for name in row}


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ({"workspace_id": ""}, "p_workspace_id"),
        ({"limit": 0}, "p_limit"),
        ({"limit": -1}, "p_limit"),
        ({"limit": 501}, "p_limit"),
        ({"limit": None}, "p_limit"),
        ({"lifecycle": []}, "p_lifecycle"),
        ({"lifecycle": ["forgotten"]}, "p_lifecycle"),
        ({"lifecycle": [None]}, "p_lifecycle"),
        ({"after": "x"}, "p_after"),
        ({"after": []}, "p_after"),
        ({"after": {}}, "p_after"),
        ({"after": {"step_index": 1}}, "p_after"),
        ({"after": {"step_index": "1", "memory_id": NOBODY}}, "p_after"),
        ({"after": {"step_index": 1.5, "memory_id": NOBODY}}, "p_after"),
        ({"after": {"step_index": 1e30, "memory_id": NOBODY}}, "p_after"),
        ({"after": {"step_index": 1, "memory_id": "x"}}, "p_after"),
        ({"after": {"step_index": 1, "memory_id": None}}, "p_after"),
    ],
    ids=str,
)
def test_a_bad_argument_is_named(shared_ledger: Ledger, arguments: dict[str, Any], names: str) -> None:
    assert names in str(shared_ledger.refused("22023", "list_decisions", **arguments).message_primary)


DEEP = '{"a":' * 5000 + "1" + "}" * 5000


@pytest.mark.parametrize(
    ("column", "stored"),
    [
        ("created_at", "infinity"),
        ("created_at", "-infinity"),
        ("created_at", "4713-01-01 BC"),
        ("created_at", "294276-12-31"),
        ("created_at", None),
        ("updated_at", "infinity"),
        ("metadata", None),
        ("metadata", "null"),
        ("metadata", "[1]"),
        ("metadata", "5"),
        ("metadata", DEEP),
        ("metadata", '{"step_index": ' + DEEP + "}"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_a_row_of_the_host_that_clients_cannot_read_does_not_cost_the_page(
    ledger: Ledger, column: str, stored: str | None
) -> None:
    owner = ledger.database.owner
    for nullable in ("created_at", "metadata"):
        owner.execute(f"alter table agent_memories alter column {nullable} drop not null")
    owner.execute(
        f"insert into agent_memories (workspace_id, memory_type, summary, content, task_id, {column}) "
        "values ('acme', 'decision', 's', 'theirs', 't', %s)",
        (stored,),
    )
    ledger.id("ours", task_id="t", step_index=1_000_000)
    page = ledger("list_decisions")
    assert contents(page) == ["ours", "theirs"]
    assert [Decision.model_validate(json.loads(json.dumps(answer))).content for answer in page["decisions"]]


def test_a_nested_array_of_lifecycles_is_refused(ledger: Ledger) -> None:
    ledger.refused("22023", "list_decisions", lifecycle=[["active"], ["stale"]])
