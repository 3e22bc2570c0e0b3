"""`ranked-ledger eval`, what reads a log: report, compare."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from ranked_ledger.cli import failures, tables
from ranked_ledger.cli.connection import AsJson
from ranked_ledger.cli.output import one_line, plain, show

Log = Annotated[Path, typer.Argument(help="What `eval run` wrote.", exists=True, dir_okay=False)]
Resamples = Annotated[int, typer.Option("--resamples", min=100, help="Of the questions, for the intervals.")]
Markdown = Annotated[Path | None, typer.Option("--markdown", help="Write the tables there, for a document.")]


def register(app: typer.Typer) -> None:
    """Add the commands to `ranked-ledger eval`."""
    app.command(epilog="Example: ranked-ledger eval report run.jsonl --html report.html")(report)
    app.command(epilog="Example: ranked-ledger eval compare before.jsonl after.jsonl")(compare)


def report(
    log: Log,
    html: Annotated[
        Path | None, typer.Option("--html", help="Where the page goes; by default beside the log.")
    ] = None,
    markdown: Markdown = None,
    resamples: Resamples = 10_000,
    as_json: AsJson = False,
) -> None:
    """Say where ranking wins and where it does not: one page with tables and plots, from the log alone."""
    made, run = _report(log, html, markdown, resamples)
    page = html or log.with_suffix(".html")
    page.write_text(made.html(), encoding="utf-8")
    if markdown is not None:
        markdown.write_text(made.markdown(), encoding="utf-8")
    document = {
        "log": str(log),
        "html": str(page),
        "markdown": None if markdown is None else str(markdown),
        "anomalies": dict(run.anomalies),
        "sections": {section.title: [_plain(one) for one in section.blocks] for section in made.sections},
    }
    show(document, lambda: _shown(made, page), as_json=as_json)


def compare(
    first: Log,
    second: Log,
    markdown: Markdown = None,
    resamples: Resamples = 10_000,
    as_json: AsJson = False,
) -> None:
    """Two logs side by side, in pairs: what the second run answers better or worse than the first."""
    try:
        from ranked_ledger.evals import compare as comparing  # noqa: PLC0415  the extra may be missing
        from ranked_ledger.evals import runs  # noqa: PLC0415
    except ModuleNotFoundError as missing:
        raise failures.MissingExtra(missing.name, "evals") from None
    found = comparing.compare(runs.read(first), runs.read(second), resamples=resamples)
    if markdown is not None:
        markdown.write_text(found.markdown(), encoding="utf-8")
    document = {
        "remarks": list(found.remarks),
        "measures": {name: _plain(one) for name, one in found.tables.items()},
    }
    parts: list[RenderableType] = [plain(one) for one in found.remarks]
    for name, one in found.tables.items():
        parts += [Text(), Text(name, style="bold"), _table(one)]
    show(document, lambda: Group(*parts), as_json=as_json)


def _report(log: Path, html: Path | None, markdown: Path | None, resamples: int) -> tuple[Any, Any]:
    try:
        from ranked_ledger.evals import report as reporting  # noqa: PLC0415  the extra may be missing
        from ranked_ledger.evals import runs  # noqa: PLC0415
    except ModuleNotFoundError as missing:
        raise failures.MissingExtra(missing.name, "evals") from None
    run = runs.read(log)
    # names and no folders: whose machine it was is nobody's business
    said = f"ranked-ledger eval report {log.name}"
    said += "".join(
        f" --{name} {path.name}" for name, path in (("html", html), ("markdown", markdown)) if path
    )
    return reporting.report(run, command=said, resamples=resamples), run


def _shown(made: Any, page: Path) -> RenderableType:
    """The verdict and the chief tables; the page has the rest."""
    parts: list[RenderableType] = []
    for section in made.sections:
        if section.title not in ("Verdict", "What is found", "What each part is worth"):
            continue
        parts += [Text(section.title, style="bold")]
        for block in section.blocks:
            if hasattr(block, "texts"):
                style = {"good": "green", "bad": "yellow"}.get(block.tone, "")
                parts += [plain(text, style) for text in block.texts]
            elif hasattr(block, "rows"):
                parts += [_table(block), Text()]
        parts.append(Text())
    return Group(*parts, one_line(f"The report: {page}"))


def _table(made: Any) -> RenderableType:
    numbers = [
        name if not place or name in made.words else (name, "number")
        for place, name in enumerate(made.columns)
    ]
    shown = tables.table(*numbers)
    for row in made.rows:
        shown.add_row(*(_cell(cell) for cell in row))
    return shown


def _cell(cell: Any) -> Text:
    style = {"good": "green", "bad": "yellow", "best": "bold"}.get(cell.tone, "")
    text = plain(cell.text, style)
    return text.append(f"\n{cell.small}", "dim") if cell.small else text


def _plain(block: Any) -> Any:
    """A block as plain values, for JSON."""
    if hasattr(block, "texts"):
        return list(block.texts)
    if hasattr(block, "rows"):
        return [
            {
                name: {"value": cell.text, "interval": cell.small} if cell.small else cell.text
                for name, cell in zip(block.columns, row, strict=True)
            }
            for row in block.rows
        ]
    return {"plot": block.caption}
