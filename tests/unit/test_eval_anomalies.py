"""Anomalies of a log: each kind is found in rows that were broken for it, and none in rows that are right."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from ranked_ledger.evals.anomalies import KINDS, WORDS, anomalies

Rows = list[dict[str, Any]]

HEADER: dict[str, Any] = {
    "asked": ["q1", "q2"],
    "arms": [
        {"name": "none", "bounds": [0, 0], "may_be_empty": "always"},
        {"name": "vector", "bounds": [-1, 1], "may_be_empty": "never"},
        {"name": "fts_or", "bounds": [0, 1], "may_be_empty": "no_match"},
    ],
}


def hit(key: str, *, score: float = 0.5, step: int = 3, workspace: str = "eval/shop") -> dict[str, Any]:
    return {"key": key, "score": score, "step": step, "workspace": workspace}


def row(question: str, arm: str, *hits: dict[str, Any], matches: int = 4) -> dict[str, Any]:
    return {
        "question": question,
        "arm": arm,
        "workspace": "eval/shop",
        "asked_at_step": 7,
        "rows_in_scope": 5,
        "matches": matches,
        "hits": list(hits),
    }


def right() -> Rows:
    """Two questions, three arms each: 0 is `none` of the first, 1 `vector`, 2 `fts_or`, and so on."""
    return [
        one
        for question in ("q1", "q2")
        for one in (
            row(question, "none"),
            row(question, "vector", hit("a", score=-1), hit("b", score=1, step=7)),
            row(question, "fts_or", hit("b", score=0), hit("a", score=1)),
        )
    ]


def broken(change: Callable[[Rows], object]) -> dict[str, int]:
    """The kinds that are found after a change, with their counts."""
    rows = copy.deepcopy(right())
    change(rows)
    return {kind: number for kind, number in anomalies(HEADER, rows).items() if number}


def test_right_rows_have_none_and_every_kind_is_counted() -> None:
    found = anomalies(HEADER, right())
    assert list(found) == list(KINDS) == list(WORDS)
    assert set(found.values()) == {0}


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda rows: rows.pop(1), {"missing": 1}),
        (lambda rows: rows.append(rows[1]), {"missing": 1}),
        (lambda rows: rows.clear(), {"missing": 6}),
        (lambda rows: rows.append(row("q1", "unheard_of", hit("a"))), {"missing": 1}),
        (lambda rows: rows[1]["hits"].clear(), {"empty": 1}),
        (lambda rows: rows[2]["hits"].clear(), {"empty": 1}),
        (lambda rows: rows[1]["hits"][0].update(score=1.001), {"out_of_bounds": 1}),
        (lambda rows: rows[2]["hits"][0].update(score=-0.001), {"out_of_bounds": 1}),
        (lambda rows: rows[1]["hits"][0].update(score=float("nan")), {"out_of_bounds": 1}),
        (lambda rows: rows[1]["hits"].append(hit("a")), {"twice": 1}),
        (lambda rows: rows[1]["hits"][0].update(workspace="eval/other"), {"other_workspace": 1}),
        (lambda rows: rows[1]["hits"][0].update(workspace=None), {"other_workspace": 1}),
        (lambda rows: rows[4]["hits"][0].update(step=8), {"future": 1}),
        (lambda rows: [rows[4]["hits"].append(hit("c", step=9, score=2))], {"future": 1, "out_of_bounds": 1}),
    ],
)
def test_a_broken_row_is_found(change: Callable[[Rows], object], found: dict[str, int]) -> None:
    assert broken(change) == found


def test_an_empty_answer_is_none_where_nothing_is_in_scope_or_no_word_matches() -> None:
    assert broken(lambda rows: rows[1].update(hits=[], rows_in_scope=0)) == {}
    assert broken(lambda rows: rows[2].update(hits=[], matches=0)) == {}
    assert broken(lambda rows: rows[1].update(hits=[], matches=0)) == {"empty": 1}


@pytest.mark.parametrize(("in_force", "found"), [(0, 0), (2, 1)])
def test_what_leaves_retired_decisions_out_may_be_empty_where_all_that_match_are_retired(
    in_force: int, found: int
) -> None:
    arm = {"name": "bm25_in_force", "bounds": [0, 1], "may_be_empty": "no_match_in_force"}
    rows = [row("q1", "bm25_in_force", matches=4) | {"matches_in_force": in_force}]
    assert anomalies({"asked": ["q1"], "arms": [arm]}, rows)["empty"] == found


def test_rounding_is_no_anomaly() -> None:
    assert broken(lambda rows: rows[1]["hits"][0].update(score=1 + 1e-12)) == {}
