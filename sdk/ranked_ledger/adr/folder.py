"""A folder of decision records, read in one go: what is there, in which order, and how it hangs together."""

from __future__ import annotations

import os
import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path, PurePosixPath
from typing import Final
from urllib.parse import unquote

from ranked_ledger.adr import reading
from ranked_ledger.adr.records import AdrEdge, AdrFolder, AdrRecord, Reference, Remark
from ranked_ledger.arguments import MAX_TEXT_BYTES
from ranked_ledger.errors import ConfigurationError
from ranked_ledger.models import Relation as EdgeRelation

_MENTIONS: Final = ("cites", "relates_to")
_MARKDOWN: Final = (".md", ".markdown")
_NO_RECORD: Final = re.compile(
    r"^(?:readme|index|changelog|contributing|toc|summary|_.*|.*template.*)$", re.I
)
_EDGES: Final[dict[str, tuple[EdgeRelation, bool]]] = {
    # relation in words: edge, and whether it points from the record that says it
    "depends_on": ("depends_on", True),
    "required_by": ("depends_on", False),
    "amends": ("informs", True),
    "amended_by": ("informs", False),
    # what a record relates to or cites was there before, so it informs the record
    "relates_to": ("informs", False),
    "cites": ("informs", False),
}


def read_folder(folder: Path | str) -> AdrFolder:
    """Read every decision record under a folder; what is none is listed with the reason.

    Example:
        >>> folder = read_folder("docs/decisions")                              # doctest: +SKIP
        >>> [record.title for record in folder.records if record.lifecycle == "superseded"]  # doctest: +SKIP
        ['Keep sessions in memory']
    """
    root = Path(folder)
    if not root.is_dir():
        raise ConfigurationError(
            f"{root} is no folder", hint="name the folder that holds the decision records"
        )
    records: list[AdrRecord] = []
    skipped: list[Remark] = []
    remarks: list[Remark] = []
    for path, file in _files(root, skipped):
        try:
            record, said = reading.read(path, _text(file))
        except _NoRecord as reason:
            skipped.append(Remark(path, str(reason)))
            continue
        if record is None:
            skipped += said
        else:
            records.append(record)
            remarks += said
    ordered = _ordered(_distinct(records, remarks))
    edges, supersessions = _joined(ordered, remarks)
    retired = {old for old, _ in supersessions}
    return AdrFolder(
        records=tuple(replace(one, lifecycle="superseded") if one.key in retired else one for one in ordered),
        edges=edges,
        supersessions=supersessions,
        skipped=tuple(skipped),
        remarks=tuple(dict.fromkeys(remarks)),
    )


def _files(root: Path, skipped: list[Remark]) -> Iterator[tuple[str, Path]]:
    """Every file that may be a record, by path; hidden folders and links out of it are not followed."""

    def unreadable(error: OSError) -> None:
        skipped.append(Remark(str(error.filename), f"it cannot be read: {error.strerror}"))

    real = root.resolve()
    for base, folders, names in os.walk(root, onerror=unreadable):
        folders[:] = sorted(one for one in folders if not one.startswith(".") and one != "node_modules")
        for name in sorted(names):
            file = Path(base, name)
            path = file.relative_to(root).as_posix()
            if file.suffix.casefold() not in _MARKDOWN:
                skipped.append(Remark(path, "not markdown"))
            elif name.startswith(".") or _NO_RECORD.match(file.stem):
                skipped.append(Remark(path, "by its name no decision record"))
            elif not file.resolve().is_relative_to(real):
                skipped.append(Remark(path, "a link to a file outside the folder"))
            else:
                yield path, file


class _NoRecord(Exception):
    """Why a file is skipped."""


def _text(file: Path) -> str:
    try:
        if not file.is_file():
            raise _NoRecord("not a regular file")
        size = file.stat().st_size
        if size > MAX_TEXT_BYTES:
            raise _NoRecord(f"it has {size:,} bytes; {MAX_TEXT_BYTES:,} are allowed")
        text = file.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise _NoRecord(f"it cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as wrong:
        raise _NoRecord(f"not UTF-8 (byte {wrong.start}): save it as UTF-8") from None
    if "\x00" in text:
        raise _NoRecord("it holds a NUL character: no text")
    if not text.strip():
        raise _NoRecord("empty")
    return text


def _distinct(records: list[AdrRecord], remarks: list[Remark]) -> list[AdrRecord]:
    """One key a record: where several share one, each gets its file's name, else its path."""
    keys = Counter(one.key for one in records)
    shared = sorted(key for key, count in keys.items() if count > 1)
    for key in shared:
        paths = [one.path for one in records if one.key == key]
        remarks += [
            Remark(path, f"{len(paths)} records are {key}; a bare {key} means none of them") for path in paths
        ]
    records = [replace(one, key=f"{one.key}-{_slug(one)}") if keys[one.key] > 1 else one for one in records]
    again = Counter(one.key for one in records)
    return [replace(one, key=one.path) if again[one.key] > 1 else one for one in records]


def _slug(record: AdrRecord) -> str:
    stem = PurePosixPath(record.path).stem
    return re.sub(rf"^(?:[a-z]+[-_ ]*)?0*{record.number}[-_ .]*", "", stem, flags=re.I) or stem


def _ordered(records: list[AdrRecord]) -> list[AdrRecord]:
    """By date, then number, then path. One without a date has the date of the one numbered before it."""
    dated: list[tuple[date, int, int, AdrRecord]] = []
    last = date.min
    by_number = sorted(records, key=lambda one: (one.number is None, one.number or 0, one.path))
    for place, record in enumerate(by_number):
        last = record.date or last
        dated.append((last, record.number if record.number is not None else 10**6, place, record))
    return [record for *_, record in sorted(dated, key=lambda one: one[:3])]


def _joined(
    records: list[AdrRecord], remarks: list[Remark]
) -> tuple[tuple[AdrEdge, ...], tuple[tuple[str, str], ...]]:
    find = _Finder(records)
    by_key = {one.key: one for one in records}
    edges: dict[tuple[str, str, str], AdrEdge] = {}
    supersessions: dict[tuple[str, str], None] = {}
    for record in records:
        for reference in record.references:
            other = find(record, reference)
            if other is None:
                if reference.relation != "cites" and "://" not in reference.target:
                    said = reference.relation.replace("_", " ")
                    remarks.append(
                        Remark(record.path, f"{said} {reference.target!r}: there is no such record")
                    )
                continue
            if other == record.key:
                continue
            if reference.relation in ("supersedes", "superseded_by"):
                pair = (other, record.key) if reference.relation == "supersedes" else (record.key, other)
                if reason := _not_in_force(by_key[pair[0]], by_key[pair[1]]):
                    remarks.append(Remark(record.path, reason))
                else:
                    supersessions[pair] = None
                continue
            relation, forward = _EDGES[reference.relation]
            source, target = (record.key, other) if forward else (other, record.key)
            edge = AdrEdge(source, target, relation, reference.relation, reference.evidence)
            edges.setdefault((source, target, relation), edge)
    for record in records:
        if record.lifecycle == "superseded" and not any(old == record.key for old, _ in supersessions):
            remarks.append(
                Remark(record.path, "superseded, but by no record of this folder: it becomes stale")
            )
    return tuple(_kept(list(edges.values()), supersessions)), tuple(supersessions)


def _kept(edges: list[AdrEdge], supersessions: Iterable[tuple[str, str]]) -> Iterator[AdrEdge]:
    """Without those that say nothing new: a mention beside another relation of the same two."""
    stronger = {frozenset((one.source, one.target)) for one in edges if one.said not in _MENTIONS}
    stronger |= {frozenset(pair) for pair in supersessions}
    said: set[frozenset[str]] = set()
    for edge in edges:
        pair = frozenset((edge.source, edge.target))
        if edge.said in _MENTIONS and (pair in stronger or pair in said):
            continue
        said.add(pair)
        yield edge


def _not_in_force(old: AdrRecord, new: AdrRecord) -> str | None:
    """Why a supersession does not hold: nothing is replaced by what was only proposed, or rejected."""
    if old.status == "superseded" or new.status not in ("proposed", "rejected"):
        return None
    return f"{new.key} would supersede {old.key}, but is {new.status}: {old.key} stays as it is"


class _Finder:
    """From a reference as written to the key of a record."""

    def __init__(self, records: list[AdrRecord]) -> None:
        self._paths = {one.path: one.key for one in records}
        self._numbers: dict[int, set[str]] = {}
        self._names: dict[str, set[str]] = {}
        for one in records:
            if one.number is not None:
                self._numbers.setdefault(one.number, set()).add(one.key)
            for name in (one.title, PurePosixPath(one.path).stem, PurePosixPath(one.path).name, one.key):
                self._names.setdefault(name.casefold(), set()).add(one.key)

    def __call__(self, record: AdrRecord, reference: Reference) -> str | None:
        target = unquote(reference.target).split("#")[0].strip()
        if not target:
            return None
        base = posixpath.dirname(record.path)
        for path in (
            posixpath.normpath(posixpath.join(base, target)),
            posixpath.normpath(target.lstrip("/")),
        ):
            for name in (path, f"{path}.md"):
                if name in self._paths:
                    return self._paths[name]
        for named in (target, posixpath.basename(target)):
            if one := _only(self._names.get(named.casefold())):
                return one
        numbered = re.fullmatch(r"(?:(?:ADR|RFC|DR|MADR|EIP|HIP)[-_ #]*)?#?0*(\d{1,6})", target, re.I)
        if numbered is None and reference.relation != "cites":
            numbered = re.match(r"0*(\d{1,6})[-_]", posixpath.basename(target))
        return _only(self._numbers.get(int(numbered[1]))) if numbered else None


def _only(keys: set[str] | None) -> str | None:
    return next(iter(keys)) if keys and len(keys) == 1 else None
