"""What the command line says about itself, and that every verb of the SDK is in it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from ranked_ledger import LongTermMemory, MemorySteward, RankedLedger
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
    "traces": "`eval replay`, by the evaluation",
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


@pytest.mark.parametrize(
    ("client", "name"), [(RankedLedger, "ledger"), (LongTermMemory, "memory"), (MemorySteward, "steward")]
)
def test_every_method_of_a_client_is_used_by_the_command_line(client: type, name: str) -> None:
    sources = [
        *(SDK / "cli").glob("*.py"),
        *(SDK / "adr").glob("*.py"),
        SDK / "doctor.py",
        SDK / "proving.py",
    ]
    said = "\n".join(path.read_text(encoding="utf-8") for path in sources)
    public = [method for method, _ in inspect.getmembers(client, callable) if not method.startswith("_")]
    missing = [one for one in public if f"{name}.{one}(" not in said and one not in REACHED_OTHERWISE]
    assert missing == []


@pytest.mark.parametrize(
    "command", ["remember", "recall", "correct", "forget"], ids=lambda name: f"memory {name}"
)
def test_what_an_agent_does_names_nobody_who_acts(command: str) -> None:
    found: Any = typer.main.get_command(cli.app)
    options = {option for one in found.commands["memory"].commands[command].params for option in one.opts}
    assert not options & {"--asserted-by", "--reviewer", "--access-token", "--digest-key", "--key"}


def test_no_command_takes_a_secret_on_its_line() -> None:
    taken = {option for _, command in commands() for one in command.params for option in one.opts}
    assert not {option for option in taken if re.search("token$|secret|digest|password", option)}


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["--version"]) == 0
    assert capsys.readouterr().out.startswith("ranked-ledger ")


def test_the_supabase_cli_is_the_pinned_one() -> None:
    package, version = supabase_cli.PACKAGE.split("@")
    assert f'"{package}": "{version}"' in (REPOSITORY / "package.json").read_text(encoding="utf-8")
