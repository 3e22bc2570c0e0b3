"""What the command line says about itself, and that every verb of the SDK is in it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from ranked_ledger import RankedLedger
from ranked_ledger.cli import app as cli
from ranked_ledger.cli import failures, supabase_cli

REPOSITORY = Path(__file__).resolve().parents[2]
SDK = REPOSITORY / "sdk" / "ranked_ledger"

# Methods of the client that are reached by no command of their own.
REACHED_OTHERWISE = {
    "close": "every command closes its client",
    "with_options": "each command line is one client",
    "from_env": "every command",
    "from_postgrest": "a command line has a URL and a key in its environment",
    "from_supabase": "a command line has no client to begin with",
}


def commands(group: Any = None, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    group = group or typer.main.get_command(cli.app)
    for name, command in group.commands.items():
        if getattr(command, "commands", None):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


@pytest.mark.parametrize(
    ("path", "command"),
    list(commands()),
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_command_has_help_json_and_an_example(path: tuple[str, ...], command: Any) -> None:
    assert command.help
    assert re.match(rf"Example: ranked-ledger {' '.join(path)}\b", command.epilog)
    for parameter in command.params:
        assert getattr(parameter, "help", None), f"{parameter.name} has no help"
    assert "--json" in [option for parameter in command.params for option in parameter.opts]


def test_help_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["recall", "--help"]) == 0
    assert "Example: ranked-ledger recall" in capsys.readouterr().out


def test_every_exit_code_is_in_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["--help"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    for code, text, _ in failures.EXIT_CODES:
        assert f"{code} {text.split(':')[0].replace('`', '')}" in shown


def test_no_arguments_show_the_help_and_are_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run([]) == failures.USAGE
    assert "Usage: ranked-ledger" in capsys.readouterr().out


def test_every_method_of_the_client_is_used_by_the_command_line() -> None:
    sources = [
        *(SDK / "cli").glob("*.py"),
        *(SDK / "adr").glob("*.py"),
        SDK / "doctor.py",
        SDK / "proving.py",
    ]
    said = "\n".join(path.read_text(encoding="utf-8") for path in sources)
    public = [name for name, _ in inspect.getmembers(RankedLedger, callable) if not name.startswith("_")]
    missing = [name for name in public if f"ledger.{name}(" not in said and name not in REACHED_OTHERWISE]
    assert missing == []


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["--version"]) == 0
    assert capsys.readouterr().out.startswith("ranked-ledger ")


def test_the_supabase_cli_is_the_pinned_one() -> None:
    package, version = supabase_cli.PACKAGE.split("@")
    assert f'"{package}": "{version}"' in (REPOSITORY / "package.json").read_text(encoding="utf-8")
