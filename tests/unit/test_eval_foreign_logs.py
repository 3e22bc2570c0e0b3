"""Logs that can be parsed and are none: the line and the field are told, whatever is in them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ranked_ledger.evals import runs
from ranked_ledger.evals.compare import compare
from ranked_ledger.evals.errors import EvalError, EvalInputError
from ranked_ledger.evals.report import report
from tests.unit.eval_logs import lines, row

ROWS = [row("q1", "vector", ["g"]), row("q2", "vector", ["g"])]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("question", None), ("question", 7), ("stream", None), ("stream", []), ("arm", {}), ("arm", ""),
        ("gold", None), ("gold", "g"), ("gold", []), ("gold", [None]),
        ("hits", None), ("hits", 3), ("hits", [None]), ("hits", [{"rank": 1}]), ("hits", [{"key": None}]),
        ("hits", {"key": None}), ("hits", {"key": [None], "score": [1], "step": [1], "tokens": [1]}),
        ("hits", {"key": ["a"], "score": [1], "step": [1], "tokens": [1], "components": []}),
        ("hits", {"key": ["a"], "score": [1], "step": [1], "tokens": [1], "lifecycle": None}),
        ("hits", {"key": ["a", "b"], "score": [1, 1], "step": [1, 1], "tokens": [1, 1],
                  "components": {"x": [1, 2], "y": [1]}}),
        ("milliseconds", None), ("milliseconds", "5"), ("milliseconds", float("nan")), ("milliseconds", -1),
        ("budgets", None), ("budgets", {}), ("budgets", []), ("budgets", {"many": {}}), ("budgets", {"100": None}),
        ("budgets", {"100": {"tokens": "x"}}), ("budgets", {"of": ["x"], "hits": [1], "tokens": [1], "first_right": [1]}),
        ("budgets", {"of": 5}), ("must_not", "g"), ("must_not", 4), ("question_kind", 5),
        ("retired_without_successor", 1),
    ],
)  # fmt: skip
def test_a_row_with_something_else_in_it(field: str, value: Any) -> None:
    head, first, second, end = lines(ROWS)
    changed = json.dumps({**json.loads(second), field: value})
    with pytest.raises(EvalInputError) as refused:
        runs.parse([head, first, changed, end], name="run.jsonl")
    assert (refused.value.file, refused.value.line) == ("run.jsonl", 3)
    assert refused.value.field is not None
    assert field in refused.value.field


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("arms", {"vector": 1}), ("arms", ["vector"]), ("arms", [{"name": None}]), ("arms", 3), ("seed", "seven"),
        ("seed", 1.5), ("seed", -1), ("presets", ["tuned"]), ("presets", 3), ("dataset", "acme"), ("dataset", []),
        ("absent", [1]), ("versions", "18"), ("ranges", {"a": [1]}), ("ranges", {"a": None}), ("ranges", 5),
        ("loaded", [1]), ("model", 5), ("dimension", "384"), ("command", []),
    ],
)  # fmt: skip
def test_a_header_with_something_else_in_it(field: str, value: Any) -> None:
    with pytest.raises(EvalInputError) as refused:
        runs.parse(lines(ROWS, **{field: value}), name="run.jsonl")
    assert (refused.value.line, refused.value.field) == (1, field)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("anomalies", [1]),
        ("anomalies", {"empty": "many"}),
        ("anomalies", 3),
        ("ranges", {"a": 1}),
        ("loaded", 5),
    ],
)
def test_an_end_with_something_else_in_it(field: str, value: Any) -> None:
    *others, end = lines(ROWS)
    with pytest.raises(EvalInputError) as refused:
        runs.parse([*others, json.dumps({**json.loads(end), field: value})], name="run.jsonl")
    assert (refused.value.line, refused.value.field) == (4, field)


def test_what_a_header_leaves_out_or_open_is_no_fault() -> None:
    bare = [json.dumps({"kind": "header", "seed": None, "model": None}), *lines(ROWS)[1:]]
    assert report(runs.parse(bare, name="run.jsonl"), command="x", resamples=100).html()


def test_a_run_in_which_no_question_was_put_to_every_arm_says_so() -> None:
    run = runs.parse(lines([ROWS[0], row("q2", "recency", ["g"])]), name="run.jsonl")
    for attempt in (
        lambda: report(run, command="x", resamples=100),
        lambda: compare(run, run, resamples=100),
    ):
        with pytest.raises(EvalError, match=r"run\.jsonl: no question was put to every arm"):
            attempt()


@pytest.mark.parametrize("left", [1, 30, -1])
def test_half_a_line_at_the_end_is_left_out_and_said(tmp_path: Path, left: int) -> None:
    path = tmp_path / "run.jsonl"
    head, first, second, _ = lines(ROWS)
    path.write_text(f"{head}\n{first}\n{second[:left]}", encoding="utf-8")
    run = runs.read(path)
    assert (len(run.rows), run.end, run.cut) == (1, None, True)
    assert "ends within a line, which is left out" in report(run, command="x", resamples=100).markdown()


def test_a_whole_last_line_needs_no_line_end_and_a_broken_one_within_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    head, first, second, end = lines(ROWS)
    path.write_text("\n".join([head, first, second, end]), encoding="utf-8")
    assert not runs.read(path).cut
    path.write_text("\n".join([head, first, second[:30], end]), encoding="utf-8")
    with pytest.raises(EvalInputError, match=r"run\.jsonl, line 3: this is no JSON"):
        runs.read(path)


def test_a_line_separator_within_a_text_is_no_end_of_a_line(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    told = [
        json.dumps(json.loads(line), ensure_ascii=False) for line in lines([row("q\u2028", "vector", ["g"])])
    ]
    path.write_text("\r\n".join(told), encoding="utf-8", newline="")
    assert runs.read(path).rows[0]["question"] == "q\u2028"
