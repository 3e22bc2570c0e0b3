"""The log of a run as it is written: line by line, readable at any moment, finished by its last line alone."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest

from ranked_ledger.evals import log, runs
from ranked_ledger.evals.errors import EvalError
from ranked_ledger.evals.log import Writer
from tests.unit.eval_logs import lines, row

HEADER: dict[str, Any] = {"seed": 3, "arms": [{"name": "recency"}], "dataset": {"name": "tiny"}}


def test_a_finished_log_says_so_and_knows_what_was_loaded(tmp_path: Path) -> None:
    path = tmp_path / "new" / "run.jsonl"
    with Writer(path, HEADER) as writer:
        writer.row(row("q1", "recency", ["a", "b"]))
        writer.row(row("q2", "recency", []))
        writer.finish(
            anomalies={"empty": 1, "twice": 0}, loaded={"decisions": 9}, ranges={"shop": [0.1, 0.9]}
        )
        assert [one["question"] for one in writer.written()] == ["q1", "q2"]
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
        with Writer(path, HEADER) as writer:
            writer.row(row("q1", "recency", ["a"]))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    read = runs.read(path)
    assert len(read.rows) == 1
    assert read.end is None


def test_a_row_is_in_the_file_before_the_next_one_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with Writer(path, HEADER) as writer:
        for number in range(3):
            writer.row(row(f"q{number}", "recency", ["a"]))
            last = path.read_text(encoding="utf-8").splitlines()[-1]
            assert json.loads(last)["question"] == f"q{number}"


def test_a_line_separator_in_a_key_does_not_break_the_lines(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with Writer(path, HEADER) as writer:
        writer.row(row("q1", "recency", ["a\u2028b\n"]))
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
    empty = row("q2", "recency", []) | {"workspace": "w"}
    path = tmp_path / "run.jsonl"
    with Writer(path, HEADER) as writer:
        writer.row(whole)
        writer.row(empty)
        assert list(writer.written()) == [whole, empty]
    assert list(runs.read(path).rows) == [whole, empty]
    assert len(path.read_text(encoding="utf-8").splitlines()[1]) < len(json.dumps(whole)) / 2


def test_a_row_that_is_written_out_is_read_as_well() -> None:
    whole = row("q1", "recency", ["a", "b"])
    assert list(runs.parse(lines([whole]), name="run.jsonl").rows) == [whole]


@pytest.mark.parametrize("broken", ["key", "score", "tokens"])
def test_columns_of_different_lengths_are_told_with_their_line(tmp_path: Path, broken: str) -> None:
    path = tmp_path / "run.jsonl"
    with Writer(path, HEADER) as writer:
        writer.row(row("q1", "recency", ["a", "b"]))
    head, line = path.read_text(encoding="utf-8").splitlines()
    cut = json.loads(line)
    cut["hits"][broken].pop()
    with pytest.raises(EvalError, match=r"run.jsonl, line 2"):
        runs.parse([head, json.dumps(cut)], name="run.jsonl")


def test_a_log_that_cannot_be_written_is_said_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(EvalError, match=r"cannot be written: Is a directory.*--out"):
        Writer(tmp_path, HEADER)


def test_a_second_run_to_the_same_log_is_refused_and_harms_nothing(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with Writer(path, HEADER) as first:
        first.row(row("q1", "recency", ["a"]))
        for again in (lambda: Writer(path, HEADER), lambda: log.check(path)):
            with pytest.raises(EvalError, match=r"another run writes the log .*run\.jsonl.*--out"):
                again()
        first.row(row("q2", "recency", ["a"]))
        first.finish(anomalies={})
    assert [one["question"] for one in runs.read(path).rows] == ["q1", "q2"]
    log.check(path)
    with Writer(path, HEADER) as third:
        third.row(row("q3", "recency", ["a"]))
    assert [one["question"] for one in runs.read(path).rows] == ["q3"]


def test_only_a_log_is_written_over(tmp_path: Path) -> None:
    path = tmp_path / "decisions.jsonl"
    path.write_text('{"stream": "shop"}\n', encoding="utf-8")
    for attempt in (lambda: Writer(path, HEADER), lambda: log.check(path)):
        with pytest.raises(EvalError, match=r"is no log of a run, so it is left as it is.*--out"):
            attempt()
    assert path.read_text(encoding="utf-8") == '{"stream": "shop"}\n'


def test_a_check_makes_no_file_and_no_folder(tmp_path: Path) -> None:
    log.check(tmp_path / "new" / "deeper" / "run.jsonl")
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_told_with_the_file_and_leaves_whole_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.jsonl"
    write = os.write

    def full(file: int, data: bytes) -> int:
        if path.stat().st_size > full_at:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(file, data[: len(data) // 2])

    with Writer(path, HEADER) as writer:
        writer.row(row("q1", "recency", ["a"]))
        full_at = path.stat().st_size
        monkeypatch.setattr(os, "write", full)
        with pytest.raises(EvalError, match=r"run\.jsonl cannot be written on: No space left.*some room"):
            writer.row(row("q2", "recency", ["a"]))
    assert [one["question"] for one in runs.read(path).rows] == ["q1"]
    assert path.read_bytes().endswith(b"\n")
