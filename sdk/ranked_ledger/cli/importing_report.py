"""What an import read, wrote, skipped and could not do, for people and for programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from rich.console import Group, RenderableType
from rich.text import Text

from ranked_ledger.cli.output import one_line, plain
from ranked_ledger.cli.tables import state, table
from ranked_ledger.errors import InvalidArgumentError
from ranked_ledger.wording import counted

if TYPE_CHECKING:
    from pathlib import Path

    from ranked_ledger.adr import AdrFolder, ImportReport, Remark

_SHOWN: Final = 40
_WIDEST_KEY: Final = 24


def must_hold_records(path: Path, folder: AdrFolder) -> None:
    """Refuse a folder without a decision record, and say what was looked for."""
    if folder.records:
        return
    reasons = "; ".join(f"{one.path}: {one.reason}" for one in folder.skipped[:3])
    skipped = f" ({counted(len(folder.skipped), 'file')} skipped: {reasons})" if folder.skipped else ""
    raise InvalidArgumentError(
        f"{path} holds no decision record{skipped}",
        hint="looked for, in subfolders too: .md and .markdown files with a number, a status, a context or a "
        "decision, other than README, index and template",
    )


def as_dict(folder: AdrFolder, report: ImportReport | None) -> dict[str, Any]:
    """The whole report. `imported` is null where nothing was to be written."""
    return {
        "records": [
            {
                "key": one.key,
                "path": one.path,
                "title": one.title,
                "date": None if one.date is None else one.date.isoformat(),
                "status": one.status,
                "lifecycle": one.lifecycle,
                "importance": one.importance,
                "alternatives": len(one.alternatives),
            }
            for one in folder.records
        ],
        "edges": [{"from": one.source, "to": one.target, "relation": one.relation} for one in folder.edges],
        "supersessions": [{"old": old, "new": new} for old, new in folder.supersessions],
        "skipped": [{"path": one.path, "reason": one.reason} for one in folder.skipped],
        "remarks": [{"path": one.path, "reason": one.reason} for one in folder.remarks],
        "imported": None if report is None else report.as_dict(),
    }


def text(folder: AdrFolder, report: ImportReport | None, *, shown: int = _SHOWN) -> RenderableType:
    """The table of records, at most `shown`, the sums, and whatever a person should look at."""
    parts: list[RenderableType] = [_records(folder, report, shown), Text("")]
    if report is None:
        parts.append(
            Text(
                f"Nothing was written. {counted(len(folder.records), 'record')}, "
                f"{counted(len(folder.edges), 'edge')} and "
                f"{counted(len(folder.supersessions), 'supersession')} would be there."
            )
        )
    else:
        parts.append(Text(_sums(report)))
        if report.changed and not report.updated:
            said = ", ".join(report.changed[:_SHOWN])
            parts.append(Text(f"Reworded since they were imported: {said}. --update records them anew."))
        parts += [plain(f"Refused: {one.what}: {one.why}") for one in report.refused[:_SHOWN]]
    parts += _remarks("Skipped", folder.skipped)
    parts += _remarks("To look at", folder.remarks)
    return Group(*parts)


def _records(folder: AdrFolder, report: ImportReport | None, most: int) -> RenderableType:
    # where all of them are new, or nothing was written, the sums say so
    done = {one.key: _done(one.key, report) for one in folder.records}
    differ = len(set(done.values())) > 1
    shown = table("key", "date", "lifecycle", ("record", "long"), *(["import"] if differ else []))
    for one in folder.records[:most]:
        shown.add_row(
            short_key(one.key),
            "-" if one.date is None else one.date.isoformat(),
            state(one.lifecycle),
            one_line(one.title),
            *([done[one.key]] if differ else []),
        )
    rest = len(folder.records) - most
    return Group(shown, Text(f"... and {rest} more", "dim")) if rest > 0 else shown


def short_key(key: str) -> Text:
    """A record's key in a column."""
    return one_line(key if len(key) <= _WIDEST_KEY else f"{key[: _WIDEST_KEY - 1]}…")


def _done(key: str, report: ImportReport | None) -> str:
    if report is None:
        return "-"
    if key in report.updated:
        return "anew"
    if key in report.changed:
        return "reworded"
    return "new" if key in report.recorded else "known"


def _sums(report: ImportReport) -> str:
    if not report.wrote:
        there = "the record was" if len(report.known) == 1 else f"all {len(report.known):,} records were"
        return f"Nothing new: {there} there."
    parts = [f"{counted(len(report.recorded), 'record')} new"]
    if report.known:
        parts.append(f"{len(report.known):,} {'was' if len(report.known) == 1 else 'were'} there")
    if report.updated:
        parts.append(f"{len(report.updated):,} recorded anew")
    parts.append(f"{counted(report.linked, 'edge')} and {counted(report.superseded, 'supersession')} new")
    if report.marked:
        parts.append(f"{report.marked:,} marked stale, disputed or rejected")
    if report.refused:
        parts.append(f"{len(report.refused):,} refused")
    return "; ".join(parts) + "."


def _remarks(head: str, remarks: Sequence[Remark]) -> list[RenderableType]:
    by_reason: dict[str, list[str]] = {}
    for one in remarks:
        by_reason.setdefault(one.reason, []).append(one.path)
    lines: list[RenderableType] = []
    for reason, paths in list(by_reason.items())[:_SHOWN]:
        more = f" and {len(paths) - 5} more" if len(paths) > 5 else ""
        lines.append(plain(f"{head}: {', '.join(paths[:5])}{more}: {reason}"))
    rest = len(by_reason) - _SHOWN
    return [*lines, Text(f"... and {rest} more; --json lists them all")] if rest > 0 else lines
