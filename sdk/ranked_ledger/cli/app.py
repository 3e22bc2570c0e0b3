"""All commands as one program: its help, its way of failing, its exit codes."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from ranked_ledger import __version__
from ranked_ledger.cli import (
    configuring,
    deciding,
    demo,
    evaluating,
    evaluating_reports,
    failures,
    installing,
    memory,
    memory_office,
    memory_upkeep,
    patching,
    recalling,
    relating,
    stack,
)
from ranked_ledger.cli.connection import ENVIRONMENT

_EPILOG = "\n\n".join(
    [
        'Example: ranked-ledger record "Invoices are immutable once sent" --workspace acme',
        "Exit codes:",
        "\n".join(
            f"- {code} {text}" for code, text in sorted((code, text) for code, text, _ in failures.EXIT_CODES)
        )
        + "\n- 23 to 32 of the local servers: `ranked-ledger stack --help` lists them",
        "Environment:",
        "\n".join(f"- {name}: {text}" for name, text in ENVIRONMENT),
    ]
)

app = typer.Typer(
    name="ranked-ledger",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    epilog=_EPILOG,
    help="A ledger of decisions, and recall that knows which of them hold.",
)
for part in (deciding, relating, recalling, installing, demo):
    app.add_typer(part.commands)
app.add_typer(relating.lifecycle, name="lifecycle")
app.add_typer(configuring.commands, name="settings")
for part in (memory_office, memory_upkeep):
    memory.commands.add_typer(part.commands)
app.add_typer(memory.commands, name="memory")
evaluating_reports.register(evaluating.commands)
app.add_typer(evaluating.commands, name="eval")
app.add_typer(patching.commands, name="patch")
app.add_typer(stack.app, name="stack")


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"ranked-ledger {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def run(arguments: Sequence[str]) -> int:
    """Run a command line; gives its exit code."""
    as_json = "--json" in arguments
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, ValueError):
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]
    try:
        code = app(args=list(arguments), prog_name="ranked-ledger", standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:
        # whoever read our output has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return failures.FAILED
    except (KeyboardInterrupt, typer.Abort):
        return failures.report(KeyboardInterrupt(), as_json=as_json)
    except Exception as error:
        message = getattr(error, "format_message", None)
        if message is None:
            return failures.report(error, as_json=as_json)
        context = getattr(error, "ctx", None)
        hint = f"Try `{context.command_path} --help`." if context is not None else None
        return failures.usage(message(), hint=hint, as_json=as_json) if message() else failures.USAGE
    if code == failures.INTERRUPTED:
        # typer has caught the interrupt and said nothing
        return failures.report(KeyboardInterrupt(), as_json=as_json)
    return code if isinstance(code, int) else failures.OK
