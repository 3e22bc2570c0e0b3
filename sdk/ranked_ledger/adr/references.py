"""What a line says about other records, and what else it says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from ranked_ledger.adr import dates, markdown, vocabulary
from ranked_ledger.adr.records import Reference
from ranked_ledger.adr.vocabulary import Relation

_BARE: Final = re.compile(
    r"(?<![\w/.-])(?:ADR|RFC|DR|MADR|EIP|HIP)[-_ #]*0*(\d{1,6})\b|(?<!\w)#0*(\d{1,6})\b", re.I
)
_NUMBER: Final = re.compile(r"(?<![\w./-])0*(\d{1,6})(?![\w/-]|\.\d)")
_LINK: Final = re.compile(r"\[([^\[\]]*)\]\(\s*<?([^()<>\s]*)>?\s*\)")
_RECORD: Final = re.compile(r"\.(?:md|markdown)(?:#.*)?$", re.I)
# words that only join the names of records and states
_JOINING: Final = vocabulary.any_of(
    "and, by, on, in, since, as of, of, to, with, at, from, und, am, et, le, y, e"
)


def in_line(line: str, relation: Relation | None, evidence: str) -> Iterator[Reference]:
    """The references of one line, each with the relation of the nearest phrase before it."""
    phrases = vocabulary.relations_in(line)
    places: list[tuple[int, str]] = []
    rest = line
    for label, href in markdown.links(line):
        at = max(line.find(f"]({href}"), 0)
        start = line.rfind("[", 0, at + 1)
        places.append((max(start, 0), href if not href.startswith("#") else label))
        if start >= 0 and (end := line.find(")", at)) >= 0:
            rest = rest[:start] + " " * (end + 1 - start) + rest[end + 1 :]
    named = {int(found[1] or found[2]): found.start() for found in _BARE.finditer(rest)}
    places += [(at, f"ADR-{number:04}") for number, at in named.items()]
    if not places and (relation or any(name != "relates_to" for _, _, name in phrases)):
        places += [(found.start(), found[1]) for found in _NUMBER.finditer(dates.without(rest))]
        if not places:
            said = rest[phrases[-1][1] :] if phrases else rest
            if said.strip(" .:*_-[]"):
                places.append((len(line), said.strip(" .:*_-[]")))
    for at, target in places:
        before = [name for start, _, name in phrases if start < at]
        yield Reference(relation or (before[-1] if before else "relates_to"), target, evidence)


def cited(text: str) -> Iterator[Reference]:
    """The records that a text links to."""
    for _, href in markdown.links(text):
        if _RECORD.search(href):
            yield Reference("cites", href, "body")


def says_more(line: str) -> bool:
    """Whether a line of a status, a date or links says more than a state, a date, and other records."""
    rest = _LINK.sub(lambda link: link[0] if "://" in link[2] and not _RECORD.search(link[2]) else " ", line)
    rest = _BARE.sub(" ", dates.without(rest))
    for start, end, _ in vocabulary.relations_in(rest):
        rest = rest[:start] + " " * (end - start) + rest[end:]
    rest = _JOINING.sub(" ", vocabulary.without_states(rest))
    return bool(re.search(r"[^\W\d_]", rest))
