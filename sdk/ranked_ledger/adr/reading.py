"""One markdown file as one decision record: Nygard's form, MADR, log4brains, Y-statements, and between."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime
from pathlib import PurePosixPath
from typing import Final

from ranked_ledger.adr import dates, markdown, references, vocabulary
from ranked_ledger.adr.markdown import Document
from ranked_ledger.adr.parts import NUMBER, Parts, kept_of_states, parts_of
from ranked_ledger.adr.records import AdrRecord, Reference, Remark
from ranked_ledger.adr.vocabulary import Kind
from ranked_ledger.arguments import MAX_ALTERNATIVES

_TITLE_NUMBER: Final = re.compile(
    r"^\s*(?:\[?(?:ADR|RFC|DR|MADR|EIP|HIP)[-_ #]*0*(\d{1,6})\]?|#?0*(\d{1,6})(?=[.:)\]\s\u2013\u2014-]))"
    r"[\s.:)\]\u2013\u2014-]*",
    re.I,
)
_FILE_DATE: Final = re.compile(r"^((?:19|20)\d{2})-?(0[1-9]|1[0-2])-?([0-2]\d|3[01])(?!\d)")
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
_FRONT_DATES: Final = ("date", "created", "decided", "decision-date", "created-at")
_LONGEST_STATEMENT: Final = 2_000
_WORD_IMPORTANCE: Final = {"critical": 1.0, "high": 0.9, "medium": 0.5, "normal": 0.5, "low": 0.2}


def read(path: str, text: str) -> tuple[AdrRecord | None, list[Remark]]:
    """The record in a file, or None where the file is none; and what in it could not be understood.

    A record that is only proposed counts as active until it is decided; a remark says so.
    """
    document = markdown.parse(text)
    parts = parts_of(document)
    remarks = [Remark(path, f"{document.problem}: its lines are read as text")] if document.problem else []
    number = _number(path, document, parts)
    statement = _y_statement(parts.text("decision") or parts.text("context") or parts.lead)
    status = _status(document, path, parts, remarks)
    if not (status or number is not None or statement or parts.text("decision", "context")):
        return None, [Remark(path, "no decision record: no number, no status, no context, no decision")]
    title = _title(path, document, parts)
    decision, rest = _said(parts, statement)
    alternatives = _alternatives(parts, decision, statement)
    if len(alternatives) > MAX_ALTERNATIVES:
        remarks.append(Remark(path, f"it has {len(alternatives)} alternatives; the last ones became one"))
        alternatives = [
            *alternatives[: MAX_ALTERNATIVES - 1],
            "; ".join(alternatives[MAX_ALTERNATIVES - 1 :]),
        ]
    content = f"{title}\n\n{decision}" if decision and decision != title else title
    rest += [*_untold(parts, [content, *alternatives]), *kept_of_states(parts)]
    if content == title and not rest and not alternatives:
        remarks.append(Remark(path, "only its title is recorded: there is no other text in it"))
    record = AdrRecord(
        path=path,
        key=f"ADR-{number:04}" if number is not None else PurePosixPath(path).stem,
        number=number,
        title=title,
        date=_date(document, path, parts, remarks),
        status=status,
        lifecycle=vocabulary.LIFECYCLES[status] if status else "active",
        text=content,
        rationale="\n\n".join(rest) or None,
        alternatives=tuple(alternatives),
        importance=_importance(document, path, remarks),
        references=tuple(dict.fromkeys(_references(document, parts))),
        digest=_digest(title, parts),
        fields=tuple(parts.fields),
    )
    return record, remarks


def _digest(title: str, parts: Parts) -> str:
    """Of every word of the file that is no status, date or link to a record."""
    said = [title, parts.lead]
    for one in parts.chunks:
        if one.kind not in vocabulary.STATES:
            said += ["" if one.nested else one.heading, one.text]
    said += kept_of_states(parts)
    said += [word for field in parts.fields for word in field]
    return hashlib.sha256(" ".join(" ".join(said).split()).encode()).hexdigest()[:32]


def _number(path: str, document: Document, parts: Parts) -> int | None:
    for name in ("number", "id", "adr", "rfc", "eip", "hip"):
        value = document.front.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return value
        if isinstance(value, str) and (found := NUMBER.match(value.strip())):
            return int(found[1])
    stem = PurePosixPath(path).stem
    if not _FILE_DATE.match(stem) and (found := NUMBER.match(stem)):
        return int(found[1])
    if parts.number is not None:
        return parts.number
    if document.title and (found := _TITLE_NUMBER.match(document.title)):
        return int(found[1] or found[2])
    return None


def _title(path: str, document: Document, parts: Parts) -> str:
    given = document.title or document.front.get("title") or parts.title
    if isinstance(given, (str, int, float)) and str(given).strip():
        title = str(given).strip()
        return _TITLE_NUMBER.sub("", title, count=1).strip() or title
    stem = PurePosixPath(path).stem
    rest = NUMBER.sub("", _FILE_DATE.sub("", stem)).strip("-_ .")
    return (rest or stem).replace("-", " ").replace("_", " ")


def _status(document: Document, path: str, parts: Parts, remarks: list[Remark]) -> str | None:
    said = [text for text in (_front_status(document), parts.text("status")) if text.strip()]
    status = next(filter(None, map(vocabulary.status_of, said)), None)
    if said and status is None:
        short = " ".join(said[0].split())[:60]
        remarks.append(Remark(path, f"its status {short!r} is none that we know: it counts as active"))
    if status == "proposed":
        remarks.append(Remark(path, "proposed: it counts as active until it is decided"))
    return status


def _front_status(document: Document) -> str:
    front = document.front.get("status")
    return " ".join(map(str, front)) if isinstance(front, list) else front if isinstance(front, str) else ""


def _date(document: Document, path: str, parts: Parts, remarks: list[Remark]) -> date | None:
    given: list[object] = [document.front.get(name) for name in _FRONT_DATES]
    given += [one.text for one in parts.of("date")]
    for value in given:
        if isinstance(value, datetime):
            return value.date()
        if isinstance(value, date):
            return value
        if value is not None and (found := _day(str(value), path, remarks, must=True)):
            return found
    stem = _FILE_DATE.match(PurePosixPath(path).stem)
    named = _day("-".join(stem.groups()), path, remarks) if stem else None
    return named or _day(parts.text("status"), path, remarks)


def _day(text: str, path: str, remarks: list[Remark], *, must: bool = False) -> date | None:
    """The date that a text names; where there is none in what must be one, that is remarked."""
    try:
        found = dates.in_text(text)
    except dates.Unclear as reason:
        remarks.append(Remark(path, f"no date taken: {reason}; write it as 2024-07-31"))
        return None
    if found is None and must and text.strip():
        short = " ".join(text.split())[:60]
        remarks.append(Remark(path, f"no date taken: {short!r} cannot be read; write it as 2024-07-31"))
    return found


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


def _said(parts: Parts, statement: re.Match[str] | None) -> tuple[str, list[str]]:
    """What was decided, and the rest under its headings. Options come later."""
    decided = [text for one in parts.of("decision") if (text := one.whole())]
    rest = [
        text
        for kind in ("context", "consequences", "notes", None)
        for one in parts.of(kind)
        if (text := one.whole())
    ]
    if statement:
        # its sentence stays whole beside the decision in it
        chosen = " ".join(statement["decision"].split())
        return f"We decided for {chosen}.", [*filter(None, [parts.lead]), *decided, *rest]
    if decided:
        return "\n\n".join(decided), [*filter(None, [parts.lead]), *rest]
    # nothing is marked as the decision: what comes first is taken for it
    first = parts.lead or (rest.pop(0) if rest else "")
    return first, rest


def _untold(parts: Parts, told: Sequence[str]) -> Iterator[str]:
    """Options that are more than a list of what became the alternatives and the decision."""
    by = " ".join(f" {_plain_words(text)} " for text in told)
    for kind in ("options", "rejected"):
        chunks = parts.of(kind)
        lines = [line for one in chunks for line in one.text.split("\n")]
        lines += [one.heading for one in chunks if not vocabulary.is_name(one.heading)]
        if any(f" {words} " not in by for line in lines if (words := _plain_words(line))):
            yield "\n\n".join(text for one in chunks if (text := one.whole()))


def _plain_words(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))


def _y_statement(text: str) -> re.Match[str] | None:
    # a sentence, not a book: its expression tries many ways to part a text
    if len(text) > _LONGEST_STATEMENT or "in the context of" not in text.casefold():
        return None
    return _Y_STATEMENT.search(markdown.words(text))


def _alternatives(parts: Parts, decision: str, statement: re.Match[str] | None) -> list[str]:
    """The rejected options; where it cannot be told which was chosen, none of those that were considered."""
    if statement and statement["neglected"]:
        return [
            " ".join(one.split()) for one in re.split(r",\s+|\s+(?:and|or)\s+", statement["neglected"]) if one
        ]
    options, rejected = _listed(parts, "options"), _listed(parts, "rejected")
    chosen = _chosen(options, decision)
    if options and chosen is None:
        return rejected
    return list(dict.fromkeys(one for one in [*options, *rejected] if one != chosen))


def _listed(parts: Parts, kind: Kind) -> list[str]:
    headed = [one.heading for one in parts.of(kind) if one.nested and one.heading]
    return headed or [
        item for one in parts.of(kind) for item in markdown.items(one.text, whole=kind == "rejected")
    ]


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
                    yield from references.in_line(target, relation, "front matter")
    lines = [(line, "status") for line in _front_status(document).splitlines()]
    for kind in ("status", "links"):
        lines += [(line, kind) for line in parts.text(kind).splitlines()]
    for line, evidence in lines:
        yield from references.in_line(line, None, evidence)
    body = [one.text for one in parts.chunks if one.kind not in vocabulary.STATES]
    yield from references.cited("\n\n".join([parts.lead, *body]))
