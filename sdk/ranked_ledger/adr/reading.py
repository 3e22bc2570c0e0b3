"""One markdown file as one decision record: Nygard's form, MADR, log4brains, Y-statements, and between."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import PurePosixPath
from typing import Final

from ranked_ledger.adr import markdown, vocabulary
from ranked_ledger.adr.markdown import Document
from ranked_ledger.adr.records import AdrRecord, Reference, Remark
from ranked_ledger.adr.vocabulary import Kind, Relation
from ranked_ledger.arguments import MAX_ALTERNATIVES

# "* Status: accepted", "**Date:** 2024-01-31", "| Status | accepted |"
_FIELD: Final = re.compile(
    r"^[ \t]*(?:[-*+>|][ \t]*)?(?:\*\*|__)?([^\W\d_][\w /-]{1,30}?)(?:\*\*|__)?[ \t]*"
    r"[:\uff1a|](?:\*\*|__)?(.*)$"
)
_TITLE_NUMBER: Final = re.compile(
    r"^\s*(?:\[?(?:ADR|RFC|DR|MADR|EIP|HIP)[-_ #]*0*(\d{1,6})\]?|#?0*(\d{1,6})(?=[.:)\]\s\u2013\u2014-]))"
    r"[\s.:)\]\u2013\u2014-]*",
    re.I,
)
_FILE_NUMBER: Final = re.compile(r"^(?:(?:adr|rfc|dr|madr|eip|hip)[-_ ]*)?0*(\d{1,6})(?!\d)", re.I)
_FILE_DATE: Final = re.compile(r"^((?:19|20)\d{2})-?(0[1-9]|1[0-2])-?([0-2]\d|3[01])(?!\d)")
_BARE: Final = re.compile(
    r"(?<![\w/.-])(?:ADR|RFC|DR|MADR|EIP|HIP)[-_ #]*0*(\d{1,6})\b|(?<!\w)#0*(\d{1,6})\b", re.I
)
_NUMBER: Final = re.compile(r"(?<![\w./-])0*(\d{1,6})(?![\w/-]|\.\d)")
_ISO: Final = re.compile(r"(?<!\d)((?:19|20)\d{2})[-/.](\d{1,2})[-/.](\d{1,2})(?!\d)")
_DAY_FIRST: Final = re.compile(r"(?<!\d)(\d{1,2})\.\s?(\d{1,2})\.\s?((?:19|20)\d{2})(?!\d)")
_WORDED: Final = ("%B %d, %Y", "%d %B %Y", "%b %d, %Y", "%d %b %Y", "%B %d %Y", "%m/%d/%Y")
_CHOSEN: Final = re.compile(
    r"(?:chosen (?:option|alternative)s?|gewählte option|option choisie|opción elegida|opção escolhida)"
    r"\s*:?\s*[\"\u201c'`*\[{(]*(.+?)(?:[\"\u201d'`*\]})]|,|;|\.\s|$)",
    re.I,
)
_Y_STATEMENT: Final = re.compile(
    r"in the context of\s+(?P<context>.+?),?\s+facing\s+(?P<facing>.+?),?\s+"
    r"(?:we\s+)?(?:decided|chose|opted)\s+(?:for|to|on)\s+(?P<decision>.+?)"
    r"(?:,?\s+(?:and\s+)?(?:neglected|against|over|instead of|rather than|and not)\s+(?P<neglected>.+?))?"
    r",?\s+(?:in order\s+)?to\s+(?:achieve|get|gain)\s+(?P<benefit>.+?)"
    r"(?:,?\s+(?:while\s+)?accepting\s+(?:that\s+)?(?P<downside>.+?))?"
    r"(?:,?\s+because\s+(?P<because>.+?))?\s*(?:\.\s*$|$)",
    re.I | re.DOTALL,
)
_LONGEST_STATEMENT: Final = 2_000
_WORD_IMPORTANCE: Final = {"critical": 1.0, "high": 0.9, "medium": 0.5, "normal": 0.5, "low": 0.2}


@dataclass
class Parts:
    """A document by kinds: texts in order, each with its heading."""

    texts: dict[Kind, list[tuple[str, str]]] = field(default_factory=dict)
    other: list[tuple[str, str]] = field(default_factory=list)
    fields: dict[str, str] = field(default_factory=dict)

    def text(self, *kinds: Kind) -> str:
        return "\n\n".join(text for kind in kinds for _, text in self.texts.get(kind, ()) if text)


def read(path: str, text: str) -> tuple[AdrRecord | None, list[Remark]]:
    """The record in a file, or None where the file is none; and what in it could not be understood."""
    document = markdown.parse(text)
    parts = _sorted(document)
    remarks = [Remark(path, document.problem)] if document.problem else []
    number = _number(path, document)
    statement = _y_statement(parts.text("decision") or parts.text("context") or document.preamble)
    status = _status(document, parts)
    if not (status or number is not None or statement or parts.text("decision", "context")):
        return None, [Remark(path, "no decision record: no number, no status, no context, no decision")]
    title = _title(path, document)
    decision, rationale = _said(document, parts, statement)
    alternatives, more = _alternatives(parts, decision, statement)
    if more:
        rationale = "\n\n".join(filter(None, (rationale, more)))
    if len(alternatives) > MAX_ALTERNATIVES:
        remarks.append(Remark(path, f"it has {len(alternatives)} alternatives; the last ones became one"))
        alternatives = [
            *alternatives[: MAX_ALTERNATIVES - 1],
            "; ".join(alternatives[MAX_ALTERNATIVES - 1 :]),
        ]
    importance = _importance(document, path, remarks)
    record = AdrRecord(
        path=path,
        key=f"ADR-{number:04}" if number is not None else PurePosixPath(path).stem,
        number=number,
        title=title,
        date=_date(path, document, parts),
        status=status,
        lifecycle=vocabulary.LIFECYCLES[status] if status else "active",
        text=f"{title}\n\n{decision}" if decision and decision != title else title,
        rationale=rationale or None,
        alternatives=tuple(alternatives),
        importance=importance,
        references=tuple(dict.fromkeys(_references(document, parts))),
        digest=_digest(document),
    )
    return record, remarks


def _digest(document: Document) -> str:
    """Of the wording as it stands in the file, not as it was understood: that may change with our version."""
    said = [document.title or "", *_free_lines(document.preamble)]
    for section in document.sections:
        if vocabulary.kind_of(section.heading) not in ("status", "date", "links", "people"):
            said += [section.heading, section.text]
    return hashlib.sha256(" ".join(" ".join(said).split()).encode()).hexdigest()[:32]


def _free_lines(preamble: str) -> list[str]:
    """The lines that are no fields such as "Status: accepted"."""
    return [line for line in preamble.split("\n") if not _field(line)]


def _field(line: str) -> tuple[str, str] | None:
    """Name and value of a line such as "* **Status:** accepted"."""
    found = _FIELD.match(line)
    value = found[2].strip("*_| \t") if found else ""
    return (found[1].strip().casefold(), value) if found and value else None


def _sorted(document: Document) -> Parts:
    """Each section under its kind; one whose heading says nothing belongs to the section above it."""
    parts = Parts()
    for line in document.preamble.splitlines():
        if field := _field(line):
            parts.fields.setdefault(*field)
    kind: Kind | None = None
    depth = 0
    for section in document.sections:
        own = vocabulary.kind_of(section.heading)
        inside = kind is not None and section.level > depth
        if kind is not None and inside and (own is None or kind in ("options", "rejected", "notes")):
            # "Decision" or "Consequences" under an option are about it; only the next level names options
            heading = section.heading if section.level == depth + 1 else ""
            parts.texts[kind].append((heading, f"{section.heading}\n\n{section.text}".strip()))
            continue
        kind, depth = own, section.level
        if own is None:
            parts.other.append((section.heading, section.text))
        else:
            parts.texts.setdefault(own, []).append((section.heading, section.text))
    return parts


def _number(path: str, document: Document) -> int | None:
    for name in ("number", "id", "adr", "rfc", "eip", "hip"):
        value = document.front.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return value
        if isinstance(value, str) and (found := _FILE_NUMBER.match(value.strip())):
            return int(found[1])
    stem = PurePosixPath(path).stem
    if not _FILE_DATE.match(stem) and (found := _FILE_NUMBER.match(stem)):
        return int(found[1])
    if document.title and (found := _TITLE_NUMBER.match(document.title)):
        return int(found[1] or found[2])
    return None


def _title(path: str, document: Document) -> str:
    given = document.title or document.front.get("title")
    if isinstance(given, (str, int, float)) and str(given).strip():
        title = str(given).strip()
        return _TITLE_NUMBER.sub("", title, count=1).strip() or title
    stem = PurePosixPath(path).stem
    rest = _FILE_NUMBER.sub("", _FILE_DATE.sub("", stem)).strip("-_ .")
    return (rest or stem).replace("-", " ").replace("_", " ")


def _status(document: Document, parts: Parts) -> str | None:
    front = document.front.get("status")
    candidates = [front if isinstance(front, str) else "", parts.text("status")]
    candidates += [value for name, value in parts.fields.items() if vocabulary.kind_of(name) == "status"]
    return next(filter(None, map(vocabulary.status_of, candidates)), None)


def _date(path: str, document: Document, parts: Parts) -> date | None:
    for name in ("date", "created", "decided", "decision-date", "created-at"):
        value = document.front.get(name)
        if isinstance(value, datetime):
            return value.date()
        if isinstance(value, date):
            return value
        if isinstance(value, str) and (found := _date_in(value)):
            return found
    fields = [value for name, value in parts.fields.items() if vocabulary.kind_of(name) == "date"]
    for text in (*fields, parts.text("date"), _compact(PurePosixPath(path).stem), parts.text("status")):
        if found := _date_in(text):
            return found
    return None


def _compact(stem: str) -> str:
    found = _FILE_DATE.match(stem)
    return "-".join(found.groups()) if found else ""


def _date_in(text: str) -> date | None:
    for pattern, order in ((_ISO, (1, 2, 3)), (_DAY_FIRST, (3, 2, 1))):
        if found := pattern.search(text):
            try:
                return date(*(int(found[place]) for place in order))
            except ValueError:
                return None
    for form in _WORDED:
        try:
            return datetime.strptime(text.strip(), form).date()
        except ValueError:
            continue
    return None


def _importance(document: Document, path: str, remarks: list[Remark]) -> float | None:
    value = document.front.get("importance")
    if value is None:
        return None
    if isinstance(value, str):
        value = _WORD_IMPORTANCE.get(value.strip().casefold(), value)
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= 1:
        return float(value)
    remarks.append(Remark(path, f"its importance {value!r} is no number from 0 to 1, so the default stands"))
    return None


def _said(document: Document, parts: Parts, statement: re.Match[str] | None) -> tuple[str, str]:
    """What was decided, and the rest under its headings."""
    if statement:
        told = {name: " ".join((value or "").split()) for name, value in statement.groupdict().items()}
        reasons = [
            f"In the context of {told['context']}, facing {told['facing']}.",
            f"To achieve {told['benefit']}." if told["benefit"] else "",
            f"Accepting {told['downside']}." if told["downside"] else "",
            f"Because {told['because']}." if told["because"] else "",
        ]
        rest = _headed(parts, "context", "consequences", "notes")
        return f"We decided for {told['decision']}.", "\n\n".join([" ".join(filter(None, reasons)), *rest])
    decision = parts.text("decision")
    lead = "\n".join(_free_lines(document.preamble)).strip()
    rest = _headed(parts, "context", "consequences", "notes")
    if not all(markdown.is_list(text) for _, text in parts.texts.get("rejected", ())):
        rest += _headed(parts, "rejected")  # more than the list, which becomes the alternatives
    rest += [f"{heading}\n{text}" for heading, text in parts.other if text]
    if not decision:
        # nothing is marked as the decision: what comes first is taken for it
        decision, lead = (lead, "") if lead else (rest.pop(0) if rest else "", "")
    return decision, "\n\n".join(filter(None, [lead, *rest]))


def _headed(parts: Parts, *kinds: Kind) -> list[str]:
    return [
        text if kind == "context" or not heading or text.startswith(heading) else f"{heading}\n{text}"
        for kind in kinds
        for heading, text in parts.texts.get(kind, ())
        if text
    ]


def _y_statement(text: str) -> re.Match[str] | None:
    # a sentence, not a book: its expression tries many ways to part a text
    if len(text) > _LONGEST_STATEMENT or "in the context of" not in text.casefold():
        return None
    return _Y_STATEMENT.search(markdown.words(text))


def _alternatives(parts: Parts, decision: str, statement: re.Match[str] | None) -> tuple[list[str], str]:
    """The rejected options; where it cannot be told which was chosen, none, and their list as text."""
    if statement and statement["neglected"]:
        return [
            " ".join(one.split()) for one in re.split(r",\s+|\s+(?:and|or)\s+", statement["neglected"]) if one
        ], ""
    options, rejected = _listed(parts, "options"), _listed(parts, "rejected")
    chosen = _chosen(options, decision)
    if options and chosen is None:
        return rejected, "Considered options\n" + "\n".join(f"- {one}" for one in options)
    return list(dict.fromkeys(one for one in [*options, *rejected] if one != chosen)), ""


def _listed(parts: Parts, kind: Kind) -> list[str]:
    sections = parts.texts.get(kind, [])
    headed = [heading for heading, _ in sections[1:] if heading]
    if not sections:
        return []
    return headed or [one for _, text in sections for one in markdown.items(text, whole=kind == "rejected")]


def _chosen(options: Iterable[str], decision: str) -> str | None:
    plain = markdown.words(decision)
    named = found[1].strip().casefold() if (found := _CHOSEN.search(plain)) else None
    if named:
        for option in options:
            if (
                option.casefold() == named
                or option.casefold().startswith(named)
                or named.startswith(option.casefold())
            ):
                return option
    first = re.split(r"(?<=[.!?])\s", plain, maxsplit=1)[0].casefold()
    inside = [one for one in options if re.search(rf"(?<!\w){re.escape(one.casefold())}(?!\w)", first)]
    return inside[0] if len(inside) == 1 else None


def _references(document: Document, parts: Parts) -> Iterator[Reference]:
    for name, relation in vocabulary.FRONT_RELATIONS.items():
        value = document.front.get(name)
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, (str, int)) and not isinstance(one, bool):
                for target in str(one).split(",") if isinstance(one, str) else [str(one)]:
                    yield from _in_line(target, relation, "front matter")
    status = document.front.get("status")
    lines = [(line, "status") for line in (status if isinstance(status, str) else "").splitlines()]
    lines += [(line, "status") for line in parts.text("status").splitlines()]
    for name, value in parts.fields.items():
        said = f"{name}: {value}" if vocabulary.relations_in(name.replace("-", " ")) else value
        if said != value or vocabulary.kind_of(name) in ("status", "links"):
            lines.append((said, "status"))
    lines += [(line, "links") for line in parts.text("links").splitlines()]
    for line, evidence in lines:
        yield from _in_line(line, None, evidence)
    body = [parts.text("context", "decision", "consequences", "options", "rejected", "notes")]
    body += [text for _, text in parts.other]
    for _, href in markdown.links("\n\n".join(["\n".join(_free_lines(document.preamble)), *body])):
        if re.search(r"\.(?:md|markdown)(?:#.*)?$", href, re.I):
            yield Reference("cites", href, "body")


def _in_line(line: str, relation: Relation | None, evidence: str) -> Iterator[Reference]:
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
        places += [
            (found.start(), found[1])
            for found in _NUMBER.finditer(_ISO.sub(lambda day: " " * len(day[0]), rest))
        ]
        if not places:
            said = rest[phrases[-1][1] :] if phrases else rest
            if said.strip(" .:*_-[]"):
                places.append((len(line), said.strip(" .:*_-[]")))
    for at, target in places:
        before = [name for start, _, name in phrases if start < at]
        yield Reference(relation or (before[-1] if before else "relates_to"), target, evidence)
