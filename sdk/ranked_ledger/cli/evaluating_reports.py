"""`ranked-ledger eval`, what reads a log or a workspace's traces: report, compare, replay."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, cast

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from ranked_ledger import Weights
from ranked_ledger.cli import evaluating_files as files
from ranked_ledger.cli import failures, tables
from ranked_ledger.cli.connection import EMBEDDINGS_VARIABLE, AsJson, Workspace, connect
from ranked_ledger.cli.output import one_line, plain, show
from ranked_ledger.cli.progress import bar
from ranked_ledger.models import DEFAULT_PRESET, Fusion, Preset

Log = Annotated[Path, typer.Argument(help="What `eval run` wrote.", exists=True, dir_okay=False)]
Resamples = Annotated[int, typer.Option("--resamples", min=100, help="Of the questions, for the intervals.")]
Markdown = Annotated[Path | None, typer.Option("--markdown", help="Write the tables there, for a document.")]


def register(app: typer.Typer) -> None:
    """Add the commands to `ranked-ledger eval`."""
    app.command(epilog="Example: ranked-ledger eval report run.jsonl --html report.html")(report)
    app.command(epilog="Example: ranked-ledger eval compare before.jsonl after.jsonl")(compare)
    app.command(epilog="Example: ranked-ledger eval replay -w acme --preset tuned")(replay)


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
    page = html or log.with_suffix(".html")
    files.kept_apart(
        {"the log": log}, {"the page" if html is None else "--html": page, "--markdown": markdown}
    )
    made, run = _report(log, html, markdown, resamples)
    files.write(page, made.html())
    if markdown is not None:
        files.write(markdown, made.markdown())
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
    files.kept_apart({"the first log": first, "the second log": second}, {"--markdown": markdown})
    found = comparing.compare(runs.read(first), runs.read(second), resamples=resamples)
    if markdown is not None:
        files.write(markdown, found.markdown())
    document = {
        "remarks": list(found.remarks),
        "measures": {name: _plain(one) for name, one in found.tables.items()},
    }
    parts: list[RenderableType] = [plain(one) for one in found.remarks]
    for name, one in found.tables.items():
        parts += [Text(), Text(name, style="bold"), _table(one)]
    show(document, lambda: Group(*parts), as_json=as_json)


def replay(
    workspace: Workspace,
    preset: Annotated[
        str, typer.Option("--preset", help="published or tuned: what is tried where you give no weight.")
    ] = DEFAULT_PRESET,
    relevance: Annotated[float | None, typer.Option(help="Weight of relevance.")] = None,
    importance: Annotated[float | None, typer.Option(help="Weight of importance.")] = None,
    recency: Annotated[float | None, typer.Option(help="Weight of recency.")] = None,
    dependency: Annotated[float | None, typer.Option(help="Weight of dependency.")] = None,
    summary: Annotated[
        float | None, typer.Option(help="Weight of how much of the summary the query names.")
    ] = None,
    fusion: Annotated[
        str | None, typer.Option(help="Of cosine and text match: none, max or blend. Not with --no-ask.")
    ] = None,
    fusion_weight: Annotated[
        float | None, typer.Option("--fusion-weight", help="The part of the cosine in a blend, 0 to 1.")
    ] = None,
    half_life_steps: Annotated[
        float | None, typer.Option("--half-life-steps", help="Recency is exp(-steps / this).")
    ] = None,
    since: Annotated[datetime | None, typer.Option(help="Only recalls from then on (UTC).")] = None,
    marked: Annotated[
        bool | None,
        typer.Option("--marked/--unmarked", help="Only those of which something was marked; or the others."),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="The newest so many recalls.")] = 200,
    ask: Annotated[
        bool, typer.Option("--ask/--no-ask", help="Ask again as of then; or only reorder what was returned.")
    ] = True,
    markdown: Markdown = None,
    resamples: Resamples = 10_000,
    as_json: AsJson = False,
) -> None:
    """What a workspace's own recalls would have answered under other weights, against what was used.

    Nothing is written: no trace, no count. A question that had a vector is asked again only where an
    embedding service is configured; otherwise what was returned is put in order again.
    """
    try:
        from ranked_ledger.evals import replay as replaying  # noqa: PLC0415  the extra may be missing
    except ModuleNotFoundError as missing:
        raise failures.MissingExtra(missing.name, "evals") from None
    chosen = Weights(relevance, importance, recency, dependency, summary)
    with connect(workspace, spin=False) as ledger, bar() as advance:
        found = replaying.replay(
            ledger,
            preset=cast(Preset, preset),
            weights=None if chosen == Weights() else chosen,
            half_life_steps=half_life_steps,
            fusion=cast(Fusion | None, fusion),
            fusion_weight=fusion_weight,
            since=None if since is None else since.replace(tzinfo=since.tzinfo or UTC),
            marked=marked,
            limit=limit,
            ask=ask,
            vectors=bool(os.environ.get(EMBEDDINGS_VARIABLE, "").strip()),
            resamples=resamples,
            on_progress=advance,
        )
    if markdown is not None:
        from ranked_ledger.evals import table  # noqa: PLC0415

        lines = "\n".join(f"- {table.as_markdown(one)}" for one in found.sentences())
        files.write(markdown, f"{lines}\n\n{table.markdown(found.moved())}\n")
    show(
        found.as_dict(),
        lambda: Group(*map(one_line, found.sentences()), Text(), _table(found.moved())),
        as_json=as_json,
    )


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
