"""An impact as people read it: each decision under what it rests on, and nothing that a terminal would obey."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from ranked_ledger import Impact
from ranked_ledger.cli import impact_tree, output

ROOT = UUID(int=1)


def dependent(number: int, via: int, depth: int, **changed: Any) -> dict[str, Any]:
    return {
        "memory_id": UUID(int=number),
        "summary": f"Decision {number}",
        "step_index": number,
        "lifecycle_status": "active",
        "importance": 0.5,
        "depth": depth,
        "via": UUID(int=via),
        **changed,
    }


def shown(capsys: pytest.CaptureFixture[str], *decisions: dict[str, Any], **changed: Any) -> str:
    impact = Impact.model_validate(
        {
            "memory_id": ROOT,
            "summary": "Invoices are immutable",
            "lifecycle_status": "active",
            "decisions": decisions,
            "direct": sum(one["depth"] == 1 for one in decisions),
            "total": len(decisions),
            "live": sum(one["lifecycle_status"] == "active" for one in decisions),
            **changed,
        }
    )
    output.console().print(impact_tree.text(impact))
    return capsys.readouterr().out


def test_each_stands_under_what_it_rests_on(capsys: pytest.CaptureFixture[str]) -> None:
    # as the database answers: by depth
    text = shown(
        capsys,
        dependent(2, 1, 1),
        dependent(3, 1, 1, lifecycle_status="superseded", project_id="p", task_id="t"),
        dependent(4, 2, 2),
        dependent(5, 3, 2, rests_on_retired=True),
        dependent(6, 4, 3),
    )
    assert "5 decisions rest on it, 2 directly; 4 are active." in text
    items = [line.rstrip() for line in text.splitlines() if line.lstrip().startswith("- ")]
    assert items == [
        "- Decision 2",
        "  - Decision 4",
        "    - Decision 6",
        "- superseded Decision 3",
        "  - rests on a retired decision Decision 5",
    ]
    assert "step 3, importance 0.50, p/t" in text
    for number in range(1, 7):
        assert str(UUID(int=number)) in text


@pytest.mark.parametrize(
    ("decisions", "said"),
    [
        ([], "Nothing rests on it."),
        ([dependent(2, 1, 1)], "1 decision rests on it, 1 directly; 1 is active."),
        ([dependent(2, 1, 1, lifecycle_status="stale")], "1 decision rests on it, 1 directly; 0 are active."),
    ],
)
def test_says_how_many_there_are(
    capsys: pytest.CaptureFixture[str], decisions: list[dict[str, Any]], said: str
) -> None:
    text = shown(capsys, *decisions)
    assert said in text
    assert "more" not in text


def test_says_what_is_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, dependent(2, 1, 1), total=1_502, more=True)
    assert "1,502 decisions rest on it" in text
    assert "And 1,501 more, further on (--max-depth) or past the --limit." in text


def test_a_long_chain_stays_readable_on_a_narrow_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = shown(capsys, *(dependent(number, number - 1, number - 1) for number in range(2, 402)))
    assert "(level 400) Decision 401" in text
    assert max(map(len, text.splitlines())) <= 80
    for number in range(1, 402):
        assert str(UUID(int=number)) in text


def test_stored_text_cannot_speak_to_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    nasty = "safe\x1b]0;title\x07 [bold]not markup[/bold]\nnext line \u202egnp"
    text = shown(
        capsys, dependent(2, 1, 1, summary=nasty, task_id=nasty, lifecycle_status="active"), summary=nasty
    )
    assert "[bold]not markup[/bold] next line" in text
    assert not set(text) & {"\x1b", "\x07", "\u202e"}
