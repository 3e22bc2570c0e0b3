"""What the command line passes on of the SDK's sentences has names that can be typed."""

from __future__ import annotations

import shlex
from typing import Any

import pytest
import typer

from ranked_ledger import wording
from ranked_ledger.cli import app as cli
from ranked_ledger.cli import naming

PROGRAM: Any = typer.main.get_command(cli.app)


@pytest.mark.parametrize("command", naming.COMMANDS.values())
def test_every_command_that_is_named_is_there(command: str) -> None:
    found, words = PROGRAM, shlex.split(command)
    while words and words[0] in getattr(found, "commands", {}):
        found = found.commands[words.pop(0)]
    assert found is not PROGRAM
    options = words
    known = [option for parameter in found.params for option in parameter.opts]
    assert set(options) <= set(known)


def test_every_option_that_is_named_is_there() -> None:
    known = {
        option
        for command in PROGRAM.commands.values()
        for parameter in command.params
        for option in parameter.opts
    }
    assert set(naming.OPTIONS.values()) <= known


def test_every_method_that_the_sdk_names_has_its_command() -> None:
    assert set(naming.COMMANDS) == set(wording.METHODS.values())


@pytest.mark.parametrize(
    ("said", "read"),
    [
        ("timeline() shows what is here", "`ranked-ledger timeline` shows what is here"),
        ("restore one of them with set_lifecycle().", "restore one of them with `ranked-ledger lifecycle`."),
        ("max_tokens is 5", "--max-tokens is 5"),
        ("weights.relevance must be at least 0", "--relevance must be at least 0"),
        ("depends_on would close a cycle; record it", "depends_on would close a cycle; record it"),
    ],
)
def test_names_are_exchanged(said: str, read: str) -> None:
    assert naming.of_the_commands(said) == read
