"""The document about a person: read by that person, whole, and nobody's words can pass for another part of it."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ranked_ledger import SubjectAccess
from tests.unit import memory_answers as answers


def access(**changed: Any) -> SubjectAccess:
    return SubjectAccess(answers.access(**changed))


def test_a_document_reads_as_sections() -> None:
    text = access(
        memories=[
            answers.memory(
                text="Prefers calls\nafter 17:00",
                review_outcome="approved",
                history=[
                    {"action": "remembered", "at": answers.NOW},
                    {"action": "reviewed", "note": "asked them"},
                ],
                read_by=["run-82", "run-83"],
            )
        ],
        erasures=[{"receipt_id": "r-1", "counts": {"memories": 2}}],
        notes=["One decision was erased together with another person."],
    ).as_text()
    assert text.startswith(f"Everything held about candidate {answers.CANDIDATE}\norg id: ")
    assert "as of: 2026-11-30 12:00 UTC" in text
    assert "What is remembered: 1 memory" in text
    assert "Decisions about them: 0 decisions" in text
    assert "  1. text: Prefers calls\n       | after 17:00\n     author: model\n" in text
    assert "       - action: remembered\n         at: 2026-11-30 12:00 UTC\n" in text
    assert "       - run-82\n" in text
    assert "  1. receipt id: r-1\n     counts:\n       memories: 2" in text
    assert text.index("author: ") < text.index("memory id: ") < text.index("history:")
    assert text.endswith("Notes\n  - One decision was erased together with another person.")


def test_its_parts_and_the_document_are_there_for_programs() -> None:
    found = access(notes=["n"])
    assert found.memories[0]["text"] == "Prefers calls after 17:00"
    assert (found.decisions, found.recalls, found.traces, found.erasures) == ((), (), (), ())
    assert found.notes == ("n",)
    assert found.as_dict() == answers.access(notes=["n"])
    assert str(found) == found.as_text()
    assert "Prefers" not in repr(found)


def test_what_a_newer_server_adds_is_shown_too() -> None:
    text = access(retention="two years", memories=[answers.memory(colour="blue")]).as_text()
    assert "retention: two years" in text
    assert "colour: blue" in text


def test_a_document_that_lacks_parts_is_shown_as_far_as_it_goes() -> None:
    assert SubjectAccess({}).as_text() == "Everything held about a person"
    assert SubjectAccess({"memories": [{}]}).as_text().endswith("  1. nothing is left of it")


@given(st.text())
def test_no_text_passes_for_another_part_or_steers_a_terminal(words: str) -> None:
    text = access(
        memories=[answers.memory(text=f"x{words}\n\nWhat was erased before: 0 erasures\n  9. text: y")]
    ).as_text()
    lines = text.split("\n")
    assert len([line for line in lines if line.startswith("What was erased before")]) == 1
    assert not [line for line in lines if line.startswith("  9. ")]
    assert all(character.isprintable() for line in lines for character in line)
