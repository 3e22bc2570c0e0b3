"""A document by kinds: which of its texts are the context, the decision, the options, and so on."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from ranked_ledger.adr import fields, references, vocabulary
from ranked_ledger.adr.markdown import Document
from ranked_ledger.adr.vocabulary import Kind

_LONGEST_FIELD: Final = 500
NUMBER: Final = re.compile(r"^(?:(?:adr|rfc|dr|madr|eip|hip)[-_ ]*)?#?0*(\d{1,6})(?!\d)", re.I)
_ONLY_NUMBER: Final = re.compile(NUMBER.pattern + r"$", re.I)


@dataclass(frozen=True, slots=True)
class Chunk:
    """A text under its heading. One that is `nested` belongs to the chunk of its kind before it."""

    kind: Kind | None
    heading: str
    text: str
    nested: bool = False

    def whole(self) -> str:
        """The text under its heading, where that is more than the name of a context or a decision."""
        if self.nested or not self.heading:
            return self.text
        if vocabulary.is_name(self.heading) and (self.kind in ("context", "decision") or not self.text):
            return self.text
        return f"{self.heading}\n{self.text}".strip()


@dataclass
class Parts:
    """What a document says, in its order.

    - `lead`: plain text around the title. `title`, `number`: those of fields.
    - `fields`: names and values that are about the record: people, tags.
    """

    chunks: list[Chunk] = field(default_factory=list)
    lead: str = ""
    title: str | None = None
    number: int | None = None
    fields: list[tuple[str, str]] = field(default_factory=list)

    def of(self, kind: Kind | None) -> list[Chunk]:
        return [one for one in self.chunks if one.kind == kind]

    def text(self, *kinds: Kind) -> str:
        return "\n\n".join(one.text for kind in kinds for one in self.of(kind) if one.text)


def parts_of(document: Document) -> Parts:
    """Each section under its kind; one whose heading says nothing belongs to the section above it."""
    parts = Parts()
    lead = [text for one in fields.parse(document.preamble) if (text := _take(parts, document, one))]
    for name, value in document.front.items():
        # some write the whole record as front matter
        known = vocabulary.field_kind(name.replace("-", " "))
        if isinstance(value, str) and value.strip() and known in vocabulary.PARTS:
            parts.chunks.append(Chunk(known, name, value.strip()))
    parts.lead = "\n\n".join(lead)
    kind: Kind | None = None
    depth = 0
    for section in document.sections:
        own = vocabulary.kind_of(section.heading)
        inside = kind is not None and section.level > depth
        if kind is not None and inside and (own is None or kind in ("options", "rejected", "notes")):
            # "Decision" or "Consequences" under an option are about it; only the next level names options
            heading = section.heading if section.level == depth + 1 else ""
            text = f"{section.heading}\n\n{section.text}".strip()
            # what stands under a heading of people is no part of the names
            parts.chunks.append(Chunk(kind if kind != "people" else None, heading, text, nested=True))
            continue
        kind, depth = own, section.level
        if own == "people" and len(section.text) <= _LONGEST_FIELD:
            parts.fields.append((section.heading, section.text))
        else:
            parts.chunks.append(Chunk(own if own != "people" else None, section.heading, section.text))
    return parts


def _take(parts: Parts, document: Document, one: fields.Field) -> str:
    """Put a field where it belongs; gives what is plain text."""
    if one.kind is not None and not one.text:
        return ""
    if one.kind in vocabulary.PARTS or one.kind in vocabulary.STATES:
        parts.chunks.append(Chunk(one.kind, one.name, one.text))
    elif one.kind == "title" and document.title is None and parts.title is None:
        parts.title = one.text
    elif one.kind == "number" and parts.number is None and (number := _ONLY_NUMBER.match(one.text)):
        parts.number = int(number[1])
    elif one.kind in ("people", "about") and len(one.text) <= _LONGEST_FIELD:
        parts.fields.append((one.name, one.text))
    elif one.kind != "title" or one.text != document.title:
        return one.raw
    return ""


def kept_of_states(parts: Parts) -> list[str]:
    """The lines under status, date and links that say more than a state, a date, or another record."""
    kept = []
    for one in parts.chunks:
        if one.kind not in vocabulary.STATES:
            continue
        lines = [line for line in one.text.split("\n") if references.says_more(line)]
        if lines:
            kept.append("\n".join([one.heading, *lines]))
    return kept
