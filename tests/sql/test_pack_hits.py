"""pack_hits: what a token budget holds, whatever the hits are."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from psycopg.types.json import Jsonb

from tests.sql.rpc import Ledger

FENCE = 37


def hit(number: int, tokens: int, summary_tokens: int, *, pinned: bool) -> dict[str, Any]:
    return {
        "memory_id": str(UUID(int=number + 1)),
        "rank": None,
        "pinned": pinned,
        "shortened": False,
        "tokens": tokens,
        "line": f"whole {number}",
        "summary_tokens": summary_tokens,
        "summary_line": f"summary {number}",
    }


def pack(ledger: Ledger, hits: list[dict[str, Any]], budget: int | None) -> dict[str, Any]:
    answer = ledger.database.value(
        "select ranked_ledger.pack_hits(%s, %s)", (Jsonb(hits), budget), role="service_role"
    )
    assert isinstance(answer, dict)
    return answer


SIZES = st.tuples(st.integers(1, 90), st.integers(1, 90), st.booleans())


@settings(max_examples=400, deadline=None)
@given(
    rows=st.lists(SIZES, max_size=14),
    pins_first=st.booleans(),
    budget=st.integers(FENCE + 1, FENCE + 400),
)
@example(rows=[], pins_first=True, budget=FENCE + 1)
@example(rows=[(1, 1, True)], pins_first=True, budget=FENCE + 1)
@example(rows=[(2, 1, True), (1, 1, False)], pins_first=True, budget=FENCE + 3)
def test_whatever_the_hits_are_the_budget_holds_and_nothing_is_missing(
    shared_ledger: Ledger, rows: list[tuple[int, int, bool]], pins_first: bool, budget: int
) -> None:
    if pins_first:  # as a recall orders them; the function does not rely on it
        rows = sorted(rows, key=lambda row: not row[2])
    given_hits = [hit(number, *row[:2], pinned=row[2]) for number, row in enumerate(rows)]
    answer = pack(shared_ledger, given_hits, budget)
    kept, dropped = answer["hits"], answer["dropped"]
    ids = [one["memory_id"] for one in kept]
    room = budget - FENCE

    assert sum(one["tokens"] for one in kept) <= room
    assert sum(one["tokens"] for one in kept if one["pinned"]) <= room / 2
    order = [one["memory_id"] for one in given_hits]
    assert sorted(ids + dropped) == order, "each is in exactly one of the two"
    assert (sorted(ids), sorted(dropped)) == (ids, dropped), "in the order of the ranking"
    assert [one["rank"] for one in kept] == list(range(1, len(kept) + 1))
    assert answer["shortened"] == [one["memory_id"] for one in kept if one["shortened"]]
    for one in kept:
        number = order.index(one["memory_id"])
        whole = given_hits[number]
        shown = ("summary_tokens", "summary_line") if one["shortened"] else ("tokens", "line")
        assert (one["tokens"], one["line"]) == (whole[shown[0]], whole[shown[1]])
        assert not one.keys() & {"summary_line", "summary_tokens"}


@settings(max_examples=100, deadline=None)
@given(rows=st.lists(SIZES, max_size=8))
def test_without_a_budget_every_hit_is_whole(
    shared_ledger: Ledger, rows: list[tuple[int, int, bool]]
) -> None:
    given_hits = [hit(number, *row[:2], pinned=row[2]) for number, row in enumerate(rows)]
    answer = pack(shared_ledger, given_hits, None)
    assert [one["line"] for one in answer["hits"]] == [one["line"] for one in given_hits]
    assert (answer["shortened"], answer["dropped"]) == ([], [])


@pytest.mark.parametrize(
    ("rows", "shown", "dropped"),
    [
        # (tokens, summary's tokens, pinned) in a budget of 100 behind the fence
        pytest.param([(50, 9, True), (50, 9, False)], ["whole 0", "whole 1"], [], id="half each"),
        pytest.param([(51, 9, True), (90, 9, False)], ["summary 0", "whole 1"], [], id="a pin is shortened"),
        pytest.param([(60, 51, True), (99, 99, False)], ["whole 1"], [0], id="a pin is dropped"),
        pytest.param(
            [(30, 30, True), (30, 30, True), (20, 20, True), (50, 50, False)],
            ["whole 0", "whole 2", "whole 3"],
            [1],
            id="a smaller pin takes the place of one that does not fit",
        ),
        pytest.param(
            [(10, 9, True), (90, 9, False)], ["whole 0", "whole 1"], [], id="what pins leave is free"
        ),
        pytest.param([(30, 30, True)] * 3, ["whole 0"], [1, 2], id="pins alone do not get the other half"),
    ],
)
def test_pins_share_half_of_the_budget(
    shared_ledger: Ledger, rows: list[tuple[int, int, bool]], shown: list[str], dropped: list[int]
) -> None:
    given_hits = [hit(number, *row[:2], pinned=row[2]) for number, row in enumerate(rows)]
    answer = pack(shared_ledger, given_hits, FENCE + 100)
    assert [one["line"] for one in answer["hits"]] == shown
    assert answer["dropped"] == [given_hits[number]["memory_id"] for number in dropped]
