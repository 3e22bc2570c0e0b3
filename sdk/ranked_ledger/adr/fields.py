"""The lines around a title: fields such as "Status: accepted", parts such as "Context: ...", and text."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from ranked_ledger.adr import vocabulary
from ranked_ledger.adr.vocabulary import Kind

# "* Status: accepted", "**Date:** 2024-01-31", "| Status | accepted |", "**Decision**"
_NAMED: Final = re.compile(
    r"^[ \t]*(?:[-*+>|][ \t]*)?(?P<bold>\*\*|__)?(?P<name>[^\W\d_][\w /-]{1,30}?)(?P<end>\*\*|__)?[ \t]*"
    r"(?:[:\uff1a|](?:\*\*|__)?(?P<value>.*))?$"
)
_RULER: Final = re.compile(r"^[ \t]*\|?(?:[ \t]*:?-+:?[ \t]*\|)+(?:[ \t]*:?-+:?)?[ \t]*$")
_FENCE: Final = re.compile(r"^[ \t]*(`{3,}|~{3,})")
_HEADERS: Final = frozenset(
    {"", "field", "name", "key", "value", "property", "attribute", "item", "metadata"}
)


@dataclass
class Field:
    """Lines of a preamble: of a kind, by their name, or plain text where there is no kind.

    - `text`: without the name. `raw`: the lines as they stand.
    """

    kind: Kind | None = None
    name: str = ""
    _values: list[str] = field(default_factory=list)
    _lines: list[str] = field(default_factory=list)

    def add(self, value: str, line: str) -> None:
        self._values.append(value)
        self._lines.append(line)

    @property
    def text(self) -> str:
        return "\n".join(self._values).strip()

    @property
    def raw(self) -> str:
        return "\n".join(self._lines).strip()

    @property
    def full(self) -> bool:
        """Whether the next line is no more of it. A part goes on until the next field."""
        return self.kind is not None and self.kind not in vocabulary.PARTS and bool(self.text)


def parse(preamble: str) -> list[Field]:
    """Take a preamble apart; every word of it but the names is in one of the answers.

    A line is a field only where the vocabulary knows all of its name: "The reason: it is fast" is a sentence.
    """
    found = [Field()]
    fence = ""
    before_is_field = False
    lines = preamble.split("\n")
    for place, line in enumerate(lines):
        if found[-1].full:
            found.append(Field())
        fenced = bool(fence)
        if mark := _FENCE.match(line):
            if not fence:
                fence, fenced = mark[1], True
            elif mark[1].startswith(fence):
                fence = ""
        named = None if fenced else _named(line)
        if named is not None:
            found.append(Field(named.kind, named.name))
            found[-1].add(named.text, line)
            before_is_field = True
        elif not fenced and (_is_header(lines, place) or (before_is_field and _RULER.match(line))):
            before_is_field = True  # the frame of a table of fields
        else:
            found[-1].add(line, line)
            before_is_field = False
    return [one for one in found if one.raw]


def _named(line: str) -> Field | None:
    found = _NAMED.match(line)
    if found is None or (found["value"] is None and not (found["bold"] and found["end"])):
        return None
    name = " ".join(found["name"].split())
    kind = vocabulary.field_kind(name)
    if kind is None:
        return None
    value = (found["value"] or "").strip(" \t|" if kind in vocabulary.PARTS else " \t|*_")
    if kind == "links" and value and vocabulary.relations_in(name.replace("-", " ")):
        value = f"{name.replace('-', ' ')}: {value}"
    made = Field(kind, name)
    made.add(value, line)
    return made


def _is_header(lines: list[str], place: int) -> bool:
    """Whether a line is the head of a table whose first row is a field: "| Field | Value |"."""
    cells = [cell.strip(" \t*_").casefold() for cell in lines[place].strip().strip("|").split("|")]
    return (
        "|" in lines[place]
        and place + 2 < len(lines)
        and _HEADERS.issuperset(cells)
        and _RULER.match(lines[place + 1]) is not None
        and _named(lines[place + 2]) is not None
    )
