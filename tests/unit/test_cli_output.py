"""What is printed: nothing that a terminal would obey, and the same without a terminal."""

from __future__ import annotations

import io
import json
import sys
from datetime import date
from uuid import UUID

import pytest

from ranked_ledger import Decision, Hit, Recall
from ranked_ledger.adr import AdrFolder, AdrRecord
from ranked_ledger.cli import importing_report, output, tables

NASTY = "safe\x1b]0;title\x07 [bold]not markup[/bold] \u202egnp \x9b31m :smile:"


def decision(**changes: object) -> Decision:
    fields = {
        "memory_id": "00000000-0000-0000-0000-000000000001",
        "workspace_id": "acme",
        "step_index": 3,
        "content": NASTY,
        "importance": 0.5,
        "lifecycle_status": "active",
        "created_at": "2026-01-01T00:00:00Z",
        "updated_at": "2026-01-01T00:00:00Z",
    }
    return Decision.model_validate(fields | changes)


def test_stored_text_cannot_speak_to_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    output.console().print(tables.decided(decision()))
    output.console().print(tables.decisions([decision(task_id=NASTY, project_id=NASTY)]))
    shown = capsys.readouterr().out
    assert "[bold]not markup[/bold]" in shown
    assert ":smile:" in shown
    assert not set(shown) & {"\x1b", "\x07", "\x9b", "\u202e"}


def test_without_a_terminal_there_is_no_colour_and_nothing_is_cut(capsys: pytest.CaptureFixture[str]) -> None:
    output.console().print(tables.decisions([decision(content="word " * 60)]))
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert shown.count("word") == 60
    assert max(map(len, shown.splitlines())) <= 100


def test_an_id_stays_whole_on_a_narrow_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    hit = Hit(
        rank=1, memory_id=UUID(int=1), content="word " * 30, line="", step_index=1234, importance=0.5, relevance=0.5,
        relevance_source="cosine", recency=0.5, dependency_boost=0.5, ranking_score=-0.123, lifecycle_status="active",
    )  # fmt: skip
    output.console().print(tables.hit_table([hit]))
    shown = capsys.readouterr().out
    assert str(UUID(int=1)) in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_a_long_title_takes_no_room_from_the_other_columns(capsys: pytest.CaptureFixture[str]) -> None:
    record = AdrRecord(
        path="1.md", key="ADR-0001", number=1, title="word " * 40, date=date(2026, 1, 2), status=None, lifecycle="active",
        text="", rationale=None, alternatives=(), importance=None, references=(), digest="",
    )  # fmt: skip
    output.console().print(importing_report.text(AdrFolder(records=(record,)), None))
    shown = capsys.readouterr().out
    assert "ADR-0001" in shown
    assert "2026-01-02" in shown
    assert shown.count("word") == 40


def test_a_hit_without_a_word_of_the_query_is_not_said_to_match(capsys: pytest.CaptureFixture[str]) -> None:
    hits = [
        Hit(
            rank=rank, memory_id=UUID(int=rank), content="x", line="", step_index=1, importance=0.5, relevance=relevance,
            relevance_source="fts", recency=0.5, dependency_boost=0, ranking_score=0.3, lifecycle_status="active",
        )
        for rank, relevance in ((1, 0.25), (2, 0.0))
    ]  # fmt: skip
    output.console().print(tables.hit_table(hits))
    shown = capsys.readouterr().out
    assert "0.25 words" in shown
    assert "0.00 -" in shown


def test_the_hint_of_an_empty_recall_names_options(capsys: pytest.CaptureFixture[str]) -> None:
    hint = "No decision is in scope (include_superseded shows retired ones); status() lists workspaces."
    output.console().print(tables.hits(Recall((), hint=hint)))
    shown = " ".join(capsys.readouterr().out.split())
    assert "(--include-superseded shows retired ones); `ranked-ledger doctor` lists" in shown


def a_hit(**changes: object) -> Hit:
    fields = {
        "rank": 1, "memory_id": UUID(int=1), "content": NASTY, "line": "", "step_index": 1, "importance": 0.5,
        "relevance": 0.5, "relevance_source": "blend", "recency": 0.5, "dependency_boost": 0, "ranking_score": 0.425,
        "lifecycle_status": "active", "similarity": 0.8, "text_relevance": 0.2,
        "arguments": {"p_w_similarity": 0.45, "p_w_importance": 0.25, "p_w_recency": 0.15, "p_fusion_weight": 0.5},
    }  # fmt: skip
    return Hit.model_validate(fields | changes)


def test_what_an_answer_lacks_is_said_under_it(capsys: pytest.CaptureFixture[str]) -> None:
    lacking = {"shortened": (UUID(int=2),), "dropped": (UUID(int=3), UUID(int=4)), "exact": False}
    for hits in ((a_hit(),), ()):
        output.console().print(tables.hits(Recall(hits, **lacking)))
        shown = capsys.readouterr().out
        assert ("0.50 blend" in shown) == bool(hits)
        assert "1 shortened to its summary, to fit the token budget." in shown
        assert "2 left out, to fit the token budget." in shown
        assert "Not proven: an approximate index answered" in shown
    output.console().print(tables.hits(Recall((), exact=False)))
    shown = capsys.readouterr().out
    assert "Nothing matches." in shown
    assert "Not proven" in shown
    output.console().print(tables.hits(Recall((a_hit(),))))
    shown = capsys.readouterr().out
    for said in ("shortened", "left out", "Not proven"):
        assert said not in shown


@pytest.mark.parametrize("columns", ["60", "100"])
def test_an_explanation_keeps_its_columns(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    retired = a_hit(lifecycle_status="superseded", successor=UUID(int=9), pinned=True, ranking_score=0.125)
    output.console().print(tables.hits(Recall((retired,)), explain=True))
    shown = capsys.readouterr().out
    assert not set(shown) & {"\x1b", "\x07", "\x9b", "\u202e"}
    lines = shown.splitlines()
    assert max(map(len, lines)) <= int(columns)
    (relevance,) = (line for line in lines if line.startswith("  relevance   0.500 x 0.45 = 0.225"))
    (deduction,) = (line for line in lines if line.split()[:2] == ["deduction", "-0.300"])
    why = relevance.index("50% by meaning")
    assert deduction.index("superseded") == why
    (first,) = (line for line in lines if "0.400 from" in line)
    assert first.index("0.400 from") == why + 2
    assert str(UUID(int=9)) in shown.replace("\n" + " " * why, "")
    assert "ranked-ledger impact" not in shown
    output.console().print(tables.hits(Recall((a_hit(live_dependents=2),)), explain=True))
    assert "named by `ranked-ledger impact`" in " ".join(capsys.readouterr().out.split())


def test_json_survives_an_encoding_that_lacks_its_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="latin-1")
    monkeypatch.setattr(sys, "stdout", stream)
    output.show({"said": "日本"}, lambda: "", as_json=True)
    stream.flush()
    assert json.loads(stream.buffer.getvalue().decode("latin-1")) == {"said": "日本"}  # type: ignore[attr-defined]


def test_what_a_decision_is_marked_with() -> None:
    shown = str(tables.decided(decision(step_settled=False, pinned=True, replayed=True, changed=False)))
    for mark in ("(provisional)", "pinned", "recorded before", "no change"):
        assert mark in shown
