"""Build docs/cli.md from the commands themselves.

python docs/build.py            write it
python docs/build.py --check    exit 1 if it is stale
"""

from __future__ import annotations

import argparse
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from ranked_ledger.cli import app as cli

PAGE = Path(__file__).resolve().parent / "cli.md"
PROGRAM = "ranked-ledger"


def page() -> str:
    """The whole page: the program, then every command in the order of `--help`."""
    program = typer.main.get_command(cli.app)
    parts = ["# The command line", "Built from the commands by `make docs`; do not edit.", *_text(program)]
    for path, command in _commands(program):
        parts += [f"## {PROGRAM} {' '.join(path)}", *_text(command)]
    return "\n\n".join(parts) + "\n"


def _commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, command in group.commands.items():
        yield (*path, name), command
        if getattr(command, "commands", None):
            yield from _commands(command, (*path, name))


def _text(command: Any) -> Iterator[str]:
    yield inspect.cleandoc(command.help)
    # what typer adds by itself differs from version to version
    added = ("--help", "--install-completion", "--show-completion")
    options = [parameter for parameter in command.params if not set(added) & set(parameter.opts)]
    if options:
        yield "\n".join(_option(one) for one in options)
    if command.epilog:
        yield _example(inspect.cleandoc(command.epilog))


def _option(parameter: Any) -> str:
    names = [f"`{name}`" for name in (*parameter.opts, *parameter.secondary_opts)]
    if parameter.param_type_name == "argument":
        names = [f"`{parameter.name.upper()}`"]
    return f"- {', '.join(names)}: {parameter.help}" + (" (required)" if parameter.required else "")


def _example(text: str) -> str:
    first, _, rest = text.partition("\n")
    if not first.startswith("Example: "):
        return text
    return f"```\n{first.removeprefix('Example: ')}\n```{rest}"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="exit 1 if docs/cli.md is stale")
    built = page()
    if not parser.parse_args().check:
        PAGE.write_text(built, encoding="utf-8")
        return 0
    if PAGE.is_file() and PAGE.read_text(encoding="utf-8") == built:
        return 0
    print("docs/cli.md is stale: run `make docs`", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
