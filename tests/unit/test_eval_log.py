"""The log of a run as it is written: line by line, readable at any moment, finished by its last line alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ranked_ledger.evals import runs
from ranked_ledger.evals.errors import EvalError
from ranked_ledger.evals.log import Writer
from tests.unit.eval_logs import row

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


def test_a_log_that_cannot_be_written_is_said_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(EvalError, match=r"cannot be written: Is a directory.*--out"):
        Writer(tmp_path, HEADER)
