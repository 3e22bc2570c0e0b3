"""What is held about a person, as text that the person can read. Pure.

Whatever the document holds is shown, also what a newer server adds. What somebody wrote is set in under its
label, so that none of it can pass for another part of the document, nor steer a terminal.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from ranked_ledger.wording import counted

_HEADINGS: Final = {
    "memories": ("What is remembered", "memory", "memories"),
    "decisions": ("Decisions about them", "decision", "decisions"),
    "recalls": ("When memories were read", "recall", "recalls"),
    "traces": ("When decisions were read", "recall", "recalls"),
    "erasures": ("What was erased before", "erasure", "erasures"),
}
# The words first, then who and when, whatever order the document came in; what is long comes last.
_FIRST: Final = (
    "text content query summary rationale alternatives action outcome note text_before erased_at at author "
    "grade by written_by asserted_by actor_id recalled_by run_id source_run_id created_at updated_at "
    "expires_at expired can_use_as_instruction review"
).split()
_LAST: Final = ("thought", "history", "read_by", "metadata", "host_columns", "request_payload")
_STEP: Final = "  "


def render(document: Mapping[str, Any]) -> str:
    """The document as text, section by section.

    Example:
        >>> print(render({"subject": {"type": "candidate", "id": "7"}, "memories": [{"text": "Likes tea"}]}))
        Everything held about candidate 7
        <BLANKLINE>
        What is remembered: 1 memory
        <BLANKLINE>
          1. text: Likes tea
    """
    parts = [[f"Everything held about {_subject(document.get('subject'))}"]]
    facts = {
        name: value
        for name, value in document.items()
        if name not in (*_HEADINGS, "subject", "notes") and value is not None
    }
    parts[0] += [line for name, value in facts.items() for line in _field(name, value)]
    for name, (heading, one, many) in _HEADINGS.items():
        items = document.get(name)
        if items is None:
            continue
        parts.append([f"{heading}: {counted(len(items), one, many)}"])
        parts += [list(_item(number, item)) for number, item in enumerate(items, 1)]
    if document.get("notes"):
        parts.append(["Notes", *(f"{_STEP}- {_plain(note)}" for note in document["notes"])])
    return "\n\n".join("\n".join(part) for part in parts)


def _subject(subject: Any) -> str:
    if isinstance(subject, Mapping):
        return " ".join(_plain(subject[name]) for name in ("type", "id") if subject.get(name) is not None)
    return "a person" if subject is None else _plain(subject)


def _item(number: int, item: Any) -> Iterator[str]:
    label = f"{_STEP}{number}. "
    lines = list(_fields(item)) or ["nothing is left of it"]
    yield label + lines[0]
    for line in lines[1:]:
        yield f"{' ' * len(label)}{line}"


def _fields(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for name in sorted(value, key=_place):
            yield from _field(name, value[name])
    else:
        yield from _plain(value).split("\n")


def _place(name: str) -> int:
    if name in _FIRST:
        return _FIRST.index(name)
    return len(_FIRST) + (name in _LAST)


def _field(name: str, value: Any) -> Iterator[str]:
    """A label and its value; what is empty or unknown is left out."""
    label = _plain(name).removeprefix("p_").replace("_", " ")
    if value is None or value in ("", [], {}):
        return
    if isinstance(value, Mapping):
        yield f"{label}:"
        yield from (_STEP + line for line in _fields(value))
    elif isinstance(value, Sequence) and not isinstance(value, str):
        yield f"{label}:"
        for one in value:
            first, *rest = list(_fields(one)) or [""]
            yield f"{_STEP}- {first}"
            yield from (f"{_STEP}  {line}" for line in rest)
    else:
        first, *rest = _plain(value).split("\n")
        yield f"{label}: {first}"
        yield from (f"{_STEP}| {line}" for line in rest)


def _plain(value: Any) -> str:
    """A value as a person writes it; a character that steers a terminal is shown by its number."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    text = _moment(str(value)) or str(value)
    lines = text.replace("\r\n", "\n").split("\n")
    return "\n".join("".join(map(_shown, line)) for line in lines)


def _shown(character: str) -> str:
    return character if character.isprintable() else " " if character == "\t" else f"\\u{ord(character):04x}"


def _moment(text: str) -> str | None:
    """A moment of the database, to the minute, in UTC; None for any other text."""
    if len(text) < len("2026-01-01T00:00:00+00:00") or text[4:5] != "-" or text[10:11] != "T":
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return None if moment.tzinfo is None else f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
