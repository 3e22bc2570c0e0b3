"""python -m tests.bench: measures, prints the table, writes JSON and plot. See --help and docs/benchmark.md."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from tests.bench import document, plot, report
from tests.bench.bench import Bench
from tests.bench.findings import Finding, added, read
from tests.bench.plan import CASES, QUICK, Case, Plan
from tests.bench.scenarios import (
    end_to_end,
    inserts,
    memories,
    neighbours,
    one_workspace,
    patched_function,
    subject_access,
)
from tests.bench.server import bench_server
from tests.bench.texts import ROOT
from tests.rig.databases import Server

_KEPT = ROOT / "docs" / "benchmark.json"
_PASSING = ROOT / "build" / "benchmark.json"

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.callback(invoke_without_command=True)
def run(  # noqa: PLR0917 - a command's options are its arguments
    context: typer.Context,
    only: Annotated[list[str] | None, typer.Option(help=f"One case, or several: {', '.join(CASES)}.")] = None,
    rows: Annotated[
        list[int] | None,
        typer.Option(help="Decisions in one workspace; several: one size after the other."),
    ] = None,
    neighbours: Annotated[int | None, typer.Option(help="Other workspaces in the case of that name.")] = None,
    questions: Annotated[int | None, typer.Option("--queries", help="Timed questions of each arm.")] = None,
    agreement: Annotated[
        int | None, typer.Option(help="Questions whose answers are compared place by place.")
    ] = None,
    embedded: Annotated[int | None, typer.Option(help="Texts that the model really embeds.")] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="The JSON; the plot goes beside it. Default: docs/ for a whole run, build/ for any other."
        ),
    ] = None,
    quick: Annotated[bool, typer.Option(help="Small sizes: minutes, and no figure worth keeping.")] = False,
) -> None:
    """Measure ranked recall beside the reference, the published query, a bare halfvec scan and a bare HNSW probe."""
    if context.invoked_subcommand:
        return
    given: dict[str, Any] = {
        "rows": tuple(rows) if rows else None,
        "neighbours": neighbours,
        "questions": questions,
        "agreement": agreement,
        "embedded": embedded,
    }
    plan = replace(
        QUICK if quick else Plan(), **{name: value for name, value in given.items() if value is not None}
    )
    whole = plan == Plan() and not only
    target = out or (_KEPT if whole else _PASSING)
    console = _console()
    made = _measure(Bench(plan, _chosen(only), console), target)
    report.show(console, made)
    _publish(target, made)
    console.print(f"written: {target}")


@app.command("report")
def make_report(file: Path) -> None:
    """Draw the plot of a run again, and where a page lies beside its JSON, the page's table."""
    made = read(file)
    report.show(_console(), made)
    _publish(file, made)


@app.command("add")
def add_run(file: Annotated[Path, typer.Argument()] = _PASSING) -> None:
    """Put the cases of a later run into the place of the kept one's, with its own commit, date and load beside them."""
    try:
        made = document.save(_KEPT, added(read(_KEPT), read(file)))
    except ValueError as refused:
        raise typer.BadParameter(str(refused)) from None
    report.show(_console(), made)
    _publish(_KEPT, made)


def _console() -> Console:
    # a table cut to the eighty columns of a pipe cannot be read
    console = Console()
    return console if console.is_terminal else Console(width=150)


def _chosen(only: list[str] | None) -> frozenset[Case]:
    unknown = set(only or ()) - set(CASES)
    if unknown:
        raise typer.BadParameter(
            f"{', '.join(sorted(unknown))}: choose of {', '.join(CASES)}", param_hint="--only"
        )
    return frozenset(case for case in CASES if not only or case in only)


def _measure(bench: Bench, target: Path) -> dict[str, object]:
    found: list[Finding] = []
    with bench_server() as server:
        about = document.circumstances(bench, server)
        if document.is_busy(about):
            bench.console.print(
                "[yellow]This machine has other work: ratios suffer, and inserts most of all.[/]"
            )
        made = document.write(target, about, bench, found)
        for finding in _findings(bench, server):
            found.append(finding)
            made = document.write(target, about, bench, found)
    return made


def _findings(bench: Bench, server: Server) -> Iterator[Finding]:
    yield from one_workspace.run(bench, server)
    yield from inserts.run(bench, server)
    yield from end_to_end.run(bench)
    yield from patched_function.run(bench)
    yield from memories.run(bench, server)
    yield from subject_access.run(bench, server)
    yield from neighbours.run(bench, server)  # last: the million takes longest to load


def _publish(target: Path, made: dict[str, object]) -> None:
    picture = target.with_suffix(".svg")
    plot.draw(made, picture)
    page = target.with_suffix(".md")
    if page.exists():
        report.replace_section(page, made, picture.name)


if __name__ == "__main__":
    app()
