"""What the README shows is true: its example runs, and its formula is the one that the database explains."""

from __future__ import annotations

import re
from pathlib import Path

import psycopg
import pytest

from ranked_ledger.stack import StackInfo

README = (Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    """The code blocks of the README in a language."""
    found = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    return [block for name, block in found if name == language]


def test_the_example_runs_as_it_stands(
    stack: StackInfo, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in stack.env().items():
        monkeypatch.setenv(name, value)
    (example,) = blocks("python")
    exec(compile(example, "README.md", "exec"), {})
    shown = capsys.readouterr().out
    listed, _, prompt = shown.partition("<decisions-")
    assert "Invoices are immutable once sent score" in listed
    assert "Invoices may be voided, never edited" in prompt
    assert "Invoices are immutable once sent" not in prompt


def test_the_formula_is_that_of_the_database(stack: StackInfo) -> None:
    (formula,) = (block for block in blocks("") if block.startswith("score ="))
    comment = "select obj_description(oid) from pg_proc where proname = 'match_decision_ledger'"
    with psycopg.connect(stack.superuser_db_url) as connection:
        (explained,) = connection.execute(comment).fetchone() or ("",)
        (score,) = connection.execute(comment.replace("match_decision_ledger", "score")).fetchone() or ("",)
    assert formula.strip() in explained
    assert formula.splitlines()[0] == score.splitlines()[0]
