"""The log of a run as it is written: line by line, readable at any moment, finished by its last line alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ranked_ledger.evals import runs
from ranked_ledger.evals.errors import EvalError
from ranked_ledger.evals.log import Writer
from tests.unit.eval_logs import lines, row

HEADER: dict[str, Any] = {"seed": 3, "arms": [{"name": "recency"}], "dataset": {"name": "tiny"}}


def test_a_finished_log_says_so_and_knows_what_was_loaded(tmp_path: Path) -> None:
    path = tmp_path / "new" / "run.jsonl"
    with Writer(path, HEADER) as log:
        log.row(row("q1", "recency", ["a", "b"]))
        log.row(row("q2", "recency", []))
        log.finish(anomalies={"empty": 1, "twice": 0}, loaded={"decisions": 9}, ranges={"shop": [0.1, 0.9]})
        assert [one["question"] for one in log.written()] == ["q1", "q2"]
    read = runs.read(path)
    assert [one["question"] for one in read.rows] == ["q1", "q2"]
    assert read.end is not None
    assert read.end["rows"] == 2
    assert read.anomalies == {"empty": 1}
    assert read.header["loaded"] == {"decisions": 9}
    assert read.header["ranges"] == {"shop": [0.1, 0.9]}
    assert read.seed == 3


def test_an_interrupted_run_leaves_every_row_that_was_finished(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"

    def interrupted() -> None:
        with Writer(path, HEADER) as log:
            log.row(row("q1", "recency", ["a"]))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    read = runs.read(path)
    assert len(read.rows) == 1
    assert read.end is None


def test_a_row_is_in_the_file_before_the_next_one_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with Writer(path, HEADER) as log:
        for number in range(3):
            log.row(row(f"q{number}", "recency", ["a"]))
            last = path.read_text(encoding="utf-8").splitlines()[-1]
            assert json.loads(last)["question"] == f"q{number}"


def test_a_line_separator_in_a_key_does_not_break_the_lines(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with Writer(path, HEADER) as log:
        log.row(row("q1", "recency", ["a\u2028b\n"]))
    assert len(path.read_bytes().split(b"\n")) == 3
    assert runs.read(path).rows[0]["hits"][0]["key"] == "a\u2028b\n"


def hit(key: str, rank: int, **more: Any) -> dict[str, Any]:
    usual = {
        "score": 1 / rank,
        "step": rank,
        "tokens": 40,
        "lifecycle": "active",
        "workspace": "w",
        "components": {},
    }
    return {"key": key, "rank": rank, **usual, **more}


def test_a_row_comes_back_as_it_was(tmp_path: Path) -> None:
    explained = {"relevance": 0.5, "relevance_source": "fts", "similarity": None}
    hits = [
        hit("a", 1, components=explained, lifecycle="superseded"),
        hit("b", 2, components=explained | {"relevance": 0.25}),
        hit("c", 3, workspace="elsewhere", score=-0.125),
        hit("d", 4, workspace=None, lifecycle="stale"),
    ]
    whole = row("q1", "recency", []) | {"workspace": "w", "hits": hits, "traced": True}
    empty = row("q2", "recency", []) | {"workspace": "w", "budgets": {}}
    path = tmp_path / "run.jsonl"
    with Writer(path, HEADER) as log:
        log.row(whole)
        log.row(empty)
        assert list(log.written()) == [whole, empty]
    assert list(runs.read(path).rows) == [whole, empty]
    assert len(path.read_text(encoding="utf-8").splitlines()[1]) < len(json.dumps(whole)) / 2


def test_a_row_that_is_written_out_is_read_as_well() -> None:
    whole = row("q1", "recency", ["a", "b"])
    assert list(runs.parse(lines([whole]), name="run.jsonl").rows) == [whole]


@pytest.mark.parametrize("broken", ["key", "score", "tokens"])
def test_columns_of_different_lengths_are_told_with_their_line(tmp_path: Path, broken: str) -> None:
    path = tmp_path / "run.jsonl"
    with Writer(path, HEADER) as log:
        log.row(row("q1", "recency", ["a", "b"]))
    head, line = path.read_text(encoding="utf-8").splitlines()
    cut = json.loads(line)
    cut["hits"][broken].pop()
    with pytest.raises(EvalError, match=r"run.jsonl, line 2"):
        runs.parse([head, json.dumps(cut)], name="run.jsonl")


def test_a_log_that_cannot_be_written_is_said_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(EvalError, match=r"cannot be written: Is a directory.*--out"):
        Writer(tmp_path, HEADER)
