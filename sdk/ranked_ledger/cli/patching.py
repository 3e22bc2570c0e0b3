"""`ranked-ledger patch`: ranked recall for an agent-memory-api function that is deployed already."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Group, RenderableType
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from ranked_ledger.cli import failures
from ranked_ledger.cli.connection import AsJson
from ranked_ledger.cli.output import console, one_line, plain, show
from ranked_ledger.cli.progress import waiting

if TYPE_CHECKING:
    from types import ModuleType

    from ranked_ledger.patching import Plan, Refusal

commands = typer.Typer(
    name="patch",
    no_args_is_help=True,
    help="""Bring `recall_policy: "ranked_ledger"` to your own copy of the agent-memory-api function.

Lines of ours are inserted into the file that registers POST /recall, each between marks, and one module comes
beside it; nothing of yours is changed, and `revert` gives the file back byte for byte. Places are found by
structure: where one that is needed is not there exactly once, nothing is written, and you see the lines to
add by hand.
""",
    epilog="Example: ranked-ledger patch apply supabase/functions/agent-memory-api",
)

_FOLDER = Path("supabase/functions/agent-memory-api")

Folder = Annotated[Path, typer.Argument(help="The function's folder, or its file.")]
Without = Annotated[
    list[str] | None,
    typer.Option(
        "--without", help="Leave an optional place out: items, usage, review or write-back. May be repeated."
    ),
]
Types = Annotated[
    bool,
    typer.Option(
        "--type-check/--no-type-check", help="Run the result through `deno check`, where Deno is installed."
    ),
]


@commands.command(epilog="Example: ranked-ledger patch check supabase/functions/agent-memory-api")
def check(
    folder: Folder = _FOLDER, without: Without = None, types: Types = True, as_json: AsJson = False
) -> None:
    """Say whether the patch is there, could be applied, or why not; writes nothing."""
    with _patching(as_json) as patching, waiting("looking"):
        planned = patching.plan(folder, without=without or (), type_check=types)
    said = {
        "absent": f"The patch can be applied: ranked-ledger patch apply {folder}",
        "outdated": f"The patch is there, not up to date: ranked-ledger patch apply {folder}",
        "current": "The patch is there and up to date.",
    }
    show(planned.as_dict(), lambda: _report(planned, said[planned.state]), as_json=as_json)


@commands.command(epilog="Example: ranked-ledger patch diff supabase/functions/agent-memory-api")
def diff(
    folder: Folder = _FOLDER, without: Without = None, types: Types = False, as_json: AsJson = False
) -> None:
    """Show what `apply` would change in your file, as a unified diff; writes nothing."""
    with _patching(as_json) as patching, waiting("looking"):
        planned = patching.plan(folder, without=without or (), type_check=types)
    text = planned.diff()
    if as_json:
        show(planned.as_dict() | {"diff": text}, Text, as_json=True)
    elif sys.stdout.isatty():
        console().print(Syntax(text or "# nothing to change", "diff", background_color="default"))
    else:
        sys.stdout.write(text)


@commands.command(
    epilog="Example: ranked-ledger patch apply supabase/functions/agent-memory-api --without write-back"
)
def apply(
    folder: Folder = _FOLDER, without: Without = None, types: Types = True, as_json: AsJson = False
) -> None:
    """Insert the lines, put the module beside the file, keep a backup; or bring an older patch up to date."""
    with _patching(as_json) as patching, waiting("patching"):
        planned = patching.apply(folder, without=without or (), type_check=types)
    changed = planned.backup is not None
    said = "The patch was there already, and nothing was changed." if not changed else "The patch is applied."
    show(
        planned.as_dict() | {"changed": changed},
        lambda: _report(planned, said, applied=changed),
        as_json=as_json,
    )


@commands.command(epilog="Example: ranked-ledger patch revert supabase/functions/agent-memory-api")
def revert(folder: Folder = _FOLDER, as_json: AsJson = False) -> None:
    """Take the lines and the module out again. What you changed elsewhere since then stays."""
    with _patching(as_json) as patching:
        done = patching.revert(folder)
    if not done.changed:
        said = f"{done.file} has no patch; nothing was changed."
    elif done.as_before:
        said = f"{done.file} is as it was before the patch, byte for byte; module and backup are removed."
    else:
        said = f"The patch is taken out of {done.file}" + (
            "; it differs from its backup, which stays." if done.as_before is False else "."
        )
    if done.changed:
        said += "\nNext: supabase functions deploy agent-memory-api"
    show(done.as_dict(), lambda: plain(said), as_json=as_json)


def _report(planned: Plan, said: str, *, applied: bool = False) -> RenderableType:
    rows = Table.grid(padding=(0, 2))
    for place in planned.places:
        rows.add_row(
            Text("ok", "green"),
            one_line(f"line {place.line}"),
            one_line(place.rule.title),
            one_line(place.text, "dim"),
        )
    for missing in planned.missing:
        near = "" if missing.line is None else f"nearest is line {missing.line}: {missing.text}"
        rows.add_row(
            Text("--", "cyan"), "", one_line(f"{missing.title}: {missing.reason}"), one_line(near, "dim")
        )
    for name in planned.left_out:
        rows.add_row(Text("--", "cyan"), "", one_line(f"{name}: left out"), "")
    lines = [f"{planned.function.file}: {said}"]
    for missing in planned.missing:
        lines.append(f"{missing.title}: looked for {missing.looked_for}. By hand:")
        lines += [f"  {line}" for line in missing.by_hand.splitlines()]
    lines += [f"Does not work: {one}." for one in planned.consequences()]
    if planned.stepped_over:
        lines.append(f"For the vector policy alone: lines {', '.join(map(str, planned.stepped_over))}.")
    for line, names in planned.read_later:
        lines.append(f"Mind: line {line} reads {', '.join(names)}, which the ranked policy does not have.")
    for rule in planned.row_rules:
        what = f"line {rule.line} looks at {', '.join(rule.columns)} of a row"
        lines.append(
            f"Mind: {what}; the ranked policy does not apply that rule (README, What it does not do)."
        )
    if planned.types is not None:
        lines.append(
            "The result passes the type checker."
            if planned.types.state == "passed"
            else f"Not type-checked: {planned.types.reason}."
        )
    if planned.backup is not None:
        lines.append(f"Backup: {planned.backup}")
    if applied:
        lines += [
            "Next: supabase db push, if the ledger is not installed yet (ranked-ledger doctor says so)",
            "Then: supabase functions deploy agent-memory-api",
        ]
    return Group(rows, plain("\n" + "\n".join(lines)))


@contextmanager
def _patching(as_json: bool) -> Iterator[ModuleType]:
    """The package behind the extra, and its refusals as people read them."""
    try:
        from ranked_ledger import patching  # noqa: PLC0415  the extra may be missing
    except ModuleNotFoundError as missing:
        raise failures.MissingExtra(missing.name, "patch") from None
    try:
        yield patching
    except patching.PlacesError as error:
        if as_json:
            document = {
                "type": "PlacesError",
                "message": f"{error.file} cannot be patched",
                "hint": error.hint,
                "exit_code": failures.REFUSED,
                "refusals": [one.as_dict() for one in error.refusals],
            }
            print(json.dumps({"error": document}), file=sys.stderr)
        else:
            console(error=True).print(_refused(error.file, error.refusals, error.hint or ""))
        raise typer.Exit(failures.REFUSED) from None
    except patching.PatchError as error:
        if as_json or not error.detail:
            raise
        console(error=True).print(plain(f"Error: {error.message}\n\n{error.detail}\n\nNext: {error.hint}"))
        raise typer.Exit(failures.REFUSED) from None


def _refused(file: str, refusals: tuple[Refusal, ...], hint: str) -> RenderableType:
    parts: list[RenderableType] = [
        plain(f"Error: {file} cannot be patched, and nothing was written.", "bold")
    ]
    for one in refusals:
        parts.append(
            Text.assemble("\n", ("!! ", "bold red"), plain(one.title, "bold"), plain(f": {one.reason}"))
        )
        parts.append(plain(f"   looked for: {one.looked_for}"))
        if one.line is not None:
            parts.append(plain(f"   nearest:    line {one.line}: {one.text}"))
        parts.append(plain("   by hand:"))
        parts += [plain(f"     {line}", "cyan") for line in one.by_hand.splitlines()]
    return Group(*parts, plain(f"\nNext: {hint}"))
