"""Commands around an install: init, doctor, import."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ranked_ledger import Enrolled, doctor, proving, settings, shipped
from ranked_ledger.cli import importing_report
from ranked_ledger.cli.connection import WORKSPACE_VARIABLE, AsJson, Project, Workspace, connect
from ranked_ledger.cli.failures import FAILED, exit_code
from ranked_ledger.cli.naming import of_the_commands
from ranked_ledger.cli.output import one_line, plain, show
from ranked_ledger.cli.progress import bar, waiting

commands = typer.Typer()

_PUBLIC_KEYS = ("SUPABASE_ANON_KEY", "SUPABASE_PUBLISHABLE_KEY")
_WITHOUT_HOST = (
    "the ledger stands on an Open Brain install (thoughts, agent_memories, ...), and no migration here makes "
    "one; for a project without one: ranked-ledger init --with-open-brain"
)
_SIGNS = {"ok": ("ok", "green"), "note": ("--", "cyan"), "problem": ("!!", "bold red")}


@commands.command(
    epilog="Example: ranked-ledger init . --with-open-brain --ledger --long-term-memory --dry-run"
)
def init(
    folder: Annotated[
        Path, typer.Argument(help="The project's root, which holds (or gets) supabase/.")
    ] = Path("."),
    ledger: Annotated[
        bool | None,
        typer.Option(
            "--ledger/--no-ledger",
            help="The decision ledger; without either word: yes, unless only --long-term-memory is given.",
            show_default=False,
        ),
    ] = None,
    with_open_brain: Annotated[
        bool,
        typer.Option(
            "--with-open-brain",
            help="Also the Open Brain tables that the ledger stands on, for an empty project.",
        ),
    ] = False,
    long_term_memory: Annotated[
        bool,
        typer.Option(
            "--long-term-memory", help="The long-term memory, which needs neither; with --ledger, both."
        ),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be written, and write nothing.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Copy the migrations into your own supabase/migrations; `supabase db push` then installs them.

    Their timestamps become later than your newest one. A copy that is there already stays; one that was
    edited is refused. Without the Supabase CLI: paste each file, in the order of their names, into the
    dashboard's SQL editor and run it.
    """
    if ledger is None:
        ledger = with_open_brain or not long_term_memory
    wanted = {
        shipped.OPEN_BRAIN: with_open_brain,
        shipped.LEDGER: ledger,
        shipped.LONG_TERM_MEMORY: long_term_memory,
    }
    areas = [area for area, chosen in wanted.items() if chosen]
    plan = shipped.plan_copies(folder, areas)
    if not dry_run:
        plan.carry_out()

    def text() -> RenderableType:
        lines = [f"{copy.target} is there already." for copy in plan.present]
        lines += [f"{copy.target} {'would be written' if dry_run else 'is written'}." for copy in plan.copies]
        lines += [
            f"{path} {'would be' if dry_run else 'is'} removed: the ledger comes after open_brain, and "
            "its new file holds the same. If it was pushed already, put it back and leave open_brain out."
            for path in plan.moved
        ]
        if plan.without_host:
            lines.append(f"Note: {_WITHOUT_HOST}.")
        if plan.copies and not dry_run:
            what = "the file" if len(plan.copies) == 1 else "the files, one after the other,"
            lines.append(f"Next: supabase db push (or paste {what} into the dashboard's SQL editor).")
            lines.append("Then: ranked-ledger doctor")
        return Text("\n".join(lines) or "Nothing to do.")

    answer = {
        "written": [str(copy.target) for copy in plan.copies],
        "present": [str(copy.target) for copy in plan.present],
        "removed": [str(path) for path in plan.moved],
        "note": _WITHOUT_HOST if plan.without_host else None,
        "dry_run": dry_run,
    }
    show(answer, text, as_json=as_json)


@commands.command("doctor", epilog="Example: ranked-ledger doctor --mend")
def examine(
    workspace: Annotated[
        str | None,
        typer.Option(
            "--workspace", "-w", envvar=WORKSPACE_VARIABLE, help="Only this one; without it, all of them."
        ),
    ] = None,
    mend: Annotated[
        bool,
        typer.Option("--mend", help="Enrol what is missing, then look; make anew the copies that differ."),
    ] = False,
    all_copies: Annotated[
        bool,
        typer.Option(
            "--all-copies",
            help="Check the copies of every decision; without it, of "
            f"{proving.AT_MOST:,}, the busiest workspaces first.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Say what is installed, which dimension, who may do what, and what could not be enrolled.

    It also holds the copies that recall searches against the tables: a thousand decisions with vectors take
    one or two seconds.

    With SUPABASE_ANON_KEY or SUPABASE_PUBLISHABLE_KEY set it also tries what nobody should be able to do.
    """
    connection = settings.environment()
    public_key = next(filter(None, (os.environ.get(name, "").strip() for name in _PUBLIC_KEYS)), None)
    everywhere = workspace is None
    mended, proof = None, None
    with connect(workspace or "doctor", spin=False) as ledger:
        if mend:
            with bar() as advance:
                mended = doctor.mend(
                    ledger,
                    everywhere=everywhere,
                    on_progress=lambda done: advance("enrolling", done.enrolled + done.settled, 0),
                )
        with waiting("looking"):
            found = doctor.examine(ledger, connection, public_key=public_key, everywhere=everywhere)
        if found.status is not None:
            with bar() as advance:
                proof = proving.prove(
                    ledger,
                    found.status,
                    at_most=None if all_copies else proving.AT_MOST,
                    mend=mend,
                    on_progress=lambda done, of: advance("checking copies", done, of),
                )
            found = replace(found, findings=(*found.findings, proof.finding()))
    copies = None if proof is None else proof.as_dict()
    answer = found.as_dict() | {"workspace": workspace, "mended": mended, "copies": copies}
    show(answer, lambda: _diagnosis(found, mended, workspace), as_json=as_json)
    if not found.healthy:
        raise typer.Exit(FAILED if found.error is None else exit_code(found.error))


def _diagnosis(found: doctor.Diagnosis, mended: Enrolled | None, workspace: str | None) -> RenderableType:
    rows = Table.grid(padding=(0, 2))
    if workspace is not None:
        only = f"About the workspace {workspace} and the install, not about other workspaces: "
        rows.add_row("", one_line(f"{only}--workspace or {WORKSPACE_VARIABLE} names it."))
    if mended is not None:
        said = f"{mended.enrolled:,} enrolled, {mended.settled:,} settled, {mended.failed:,} failed"
        rows.add_row("", f"Mended: {said}.")
    for one in found.findings:
        rows.add_row(Text(*_SIGNS[one.state]), one_line(of_the_commands(one.text)))
        if one.next:
            rows.add_row("", Text.assemble("Next: ", plain(of_the_commands(one.next))))
    problems = sum(one.state == "problem" for one in found.findings)
    end = (
        "Everything is well." if not problems else f"Not well: {problems} of {len(found.findings)} looked at."
    )
    return Group(rows, Text(f"\n{end}", style="bold"))


@commands.command("import", epilog="Example: ranked-ledger import docs/decisions -w acme --dry-run")
def import_records(
    folder: Annotated[Path, typer.Argument(help="Decision records in markdown: ADR, MADR, log4brains, ...")],
    workspace: Workspace,
    project: Project = None,
    task: Annotated[
        str, typer.Option("--task", "-t", help="The stream that they go to.")
    ] = "decision-records",
    update: Annotated[
        bool,
        typer.Option(
            "--update", help="Record anew what was reworded since; it supersedes the former wording."
        ),
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Read the folder, and write nothing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Record a folder of decision records, with what they supersede and depend on.

    A second import adds what is new, and nothing else. A record that is only proposed counts as active until
    it is decided. What was forgotten comes back when its file is imported again: delete the file too.
    """
    from ranked_ledger import adr  # noqa: PLC0415  markdown and YAML are only needed here

    records = adr.read_folder(folder)
    importing_report.must_hold_records(folder, records)
    report = None
    if not dry_run:
        with connect(workspace, project, spin=False) as ledger, bar() as advance:
            report = adr.import_folder(ledger, records, task=task, update=update, on_progress=advance)
    show(
        importing_report.as_dict(records, report),
        lambda: importing_report.text(records, report),
        as_json=as_json,
    )
