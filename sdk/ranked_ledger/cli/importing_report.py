"""What an import read, wrote, skipped and could not do, for people and for programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from rich.console import Group, RenderableType
from rich.text import Text

from ranked_ledger.cli.output import one_line, plain
from ranked_ledger.cli.tables import state, table

if TYPE_CHECKING:
    from ranked_ledger.adr import AdrFolder, ImportReport, Remark

_SHOWN: Final = 40


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


def text(folder: AdrFolder, report: ImportReport | None) -> RenderableType:
    """The table of records, the sums, and whatever a person should look at."""
    parts: list[RenderableType] = [_records(folder, report), Text("")]
    if report is None:
        parts.append(
            Text(
                f"Nothing was written. {_count(len(folder.records), 'record')}, "
                f"{_count(len(folder.edges), 'edge')} and "
                f"{_count(len(folder.supersessions), 'supersession')} would be there."
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


def _records(folder: AdrFolder, report: ImportReport | None) -> RenderableType:
    if not folder.records:
        return Text("There is no decision record in this folder.")
    shown = table("key", "date", "lifecycle", ("record", "long"), "import")
    for one in folder.records[:_SHOWN]:
        shown.add_row(
            one_line(one.key if len(one.key) <= 24 else one.key[:23] + "…"),
            "-" if one.date is None else one.date.isoformat(),
            state(one.lifecycle),
            one_line(one.title),
            _done(one.key, report),
        )
    rest = len(folder.records) - _SHOWN
    return Group(shown, Text(f"... and {rest} more")) if rest > 0 else shown


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
        return f"Nothing new: all {len(report.known)} records were there."
    parts = [f"{_count(len(report.recorded), 'record')} new"]
    if report.known:
        parts.append(f"{len(report.known)} were there")
    if report.updated:
        parts.append(f"{len(report.updated)} were recorded anew")
    parts.append(f"{_count(report.linked, 'edge')} and {_count(report.superseded, 'supersession')} new")
    if report.marked:
        parts.append(f"{report.marked} marked stale, disputed or rejected")
    if report.refused:
        parts.append(f"{len(report.refused)} refused")
    return "; ".join(parts) + "."


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


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
