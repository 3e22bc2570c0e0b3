"""`ranked-ledger eval report` and `eval compare` as a person runs them, on logs that never were."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from ranked_ledger.cli import app as cli
from tests.unit.eval_logs import large, lines, row

Run = Callable[..., tuple[str, str]]


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*arguments: str, expect: int = 0) -> tuple[str, str]:
        code = cli.run(["eval", *arguments])
        shown = capsys.readouterr()
        assert code == expect, shown.err or shown.out
        return shown.out, shown.err

    return run


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "run.jsonl"
    path.write_text("\n".join(lines(large(48))), encoding="utf-8")
    return path


def test_a_report_is_a_page_beside_the_log_and_a_verdict_on_the_terminal(command: Run, log: Path) -> None:
    out, _ = command("report", str(log), "--resamples", "200")
    for said in (
        "Where ranking wins:",
        "Where it does not:",
        "What is found",
        "0.",
    ):
        assert said in out
    assert str(log.with_suffix(".html")) in out.replace("\n", "")  # a long path is wrapped
    page = log.with_suffix(".html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "ranked-ledger eval report run.jsonl" in page
    assert str(log.parent) not in page


def test_a_report_goes_where_it_is_sent(command: Run, log: Path, tmp_path: Path) -> None:
    page, text = tmp_path / "a.html", tmp_path / "a.md"
    out, _ = command(
        "report", str(log), "--html", str(page), "--markdown", str(text), "--resamples", "200", "--json"
    )
    document = json.loads(out)
    assert (document["html"], document["markdown"], document["anomalies"]) == (str(page), str(text), {})
    assert document["sections"]["What is found"][1][0]["arm"] == "none"
    assert "| arm | MRR |" in text.read_text(encoding="utf-8")
    assert page.exists()
    assert not log.with_suffix(".html").exists()


def test_two_logs_are_compared(command: Run, log: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.jsonl"
    other.write_text(
        "\n".join(lines([row("q0", "vector", ["g"]), row("q6", "vector", ["g"])])), encoding="utf-8"
    )
    out, _ = command("compare", str(log), str(other), "--resamples", "200")
    assert "2 questions and 1 arm" in out
    text = tmp_path / "compared.md"
    out, _ = command("compare", str(log), str(other), "--json", "--markdown", str(text))
    assert json.loads(out)["measures"]["MRR"][0]["second"]["value"] == "1.000"
    assert "| vector |" in text.read_text(encoding="utf-8")


def test_a_file_that_is_no_log_is_refused_with_its_line(command: Run, tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text('{"kind": "header"}\n{"kind": "row"}\n', encoding="utf-8")
    _, err = command("report", str(path), expect=2)
    assert "x.jsonl, line 2" in err
    assert "eval run --out" in err
    _, err = command("report", str(tmp_path / "absent.jsonl"), expect=2)
    assert "does not exist" in err


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("run.html", [], "the page and the log are the same file"),
        ("run.jsonl", ["--html", "sub/../run.jsonl"], "--html and the log are the same file"),
        ("run.jsonl", ["--markdown", "link.md"], "--markdown and the log are the same file"),
        ("run.jsonl", ["--markdown", "hard.md"], "--markdown and the log are the same file"),
        ("run.jsonl", ["--markdown", "run.html"], "--markdown and the page are the same file"),
        ("run.jsonl", ["--html", "new.txt", "--markdown", "./new.txt"], "--markdown and --html are the same"),
    ],
)
def test_a_report_never_goes_over_its_log_or_over_itself(
    *,
    command: Run,
    log: Path,
    name: str,
    options: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    log.rename(name)
    Path("sub").mkdir()
    Path("link.md").symlink_to(name)
    Path("hard.md").hardlink_to(name)
    before = {file: file.read_bytes() for file in tmp_path.iterdir() if file.is_file()}
    _, err = command("report", name, *options, expect=2)
    assert said in " ".join(err.split())
    assert {file: file.read_bytes() for file in tmp_path.iterdir() if file.is_file()} == before


def test_a_comparison_never_goes_over_a_log(command: Run, log: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.jsonl"
    other.write_bytes(log.read_bytes())
    _, err = command("compare", str(log), str(other), "--markdown", str(other), expect=2)
    assert "--markdown and the second log are the same file" in " ".join(err.split())
    assert other.read_bytes() == log.read_bytes()


def test_a_page_that_cannot_be_written_is_named(command: Run, log: Path, tmp_path: Path) -> None:
    _, err = command(
        "report", str(log), "--html", str(tmp_path / "absent" / "a.html"), "--resamples", "100", expect=2
    )
    assert "a.html cannot be written: No such file or directory" in " ".join(err.split())
