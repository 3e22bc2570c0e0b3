"""What the command line passes on of the SDK's sentences has names that can be typed."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from ranked_ledger import wording
from ranked_ledger.cli import app as cli
from ranked_ledger.cli import naming
from ranked_ledger.cli.connection import ENVIRONMENT

PROGRAM: Any = typer.main.get_command(cli.app)


@pytest.mark.parametrize("command", [*naming.COMMANDS.values(), *naming.MEMORY_COMMANDS.values()])
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


def test_every_option_and_variable_of_the_memory_that_is_named_is_there() -> None:
    def commands(group: Any) -> Iterator[Any]:
        for command in group.commands.values():
            yield from commands(command) if getattr(command, "commands", None) else [command]

    known = {
        option
        for command in commands(PROGRAM.commands["memory"])
        for parameter in command.params
        for option in (*parameter.opts, *parameter.secondary_opts)
    }
    assert set(naming.MEMORY_OPTIONS.values()) <= known | dict(ENVIRONMENT).keys()


def test_every_method_that_the_sdk_names_has_its_command() -> None:
    assert set(naming.COMMANDS) == set(wording.METHODS.values())
    assert set(naming.MEMORY_COMMANDS) == set(wording.MEMORY_METHODS.values())


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


@pytest.mark.parametrize(
    ("said", "read"),
    [
        ("it waits: review() it", "it waits: `ranked-ledger memory review` it"),
        (
            "allow it: set_organization() with allow_asserted",
            "allow it: `ranked-ledger memory org` with --allow-asserted",
        ),
        ("digest_key has 3 characters", "RANKED_LEDGER_DIGEST_KEY has 3 characters"),
        ("a subject and its memory", "a subject and its memory"),
    ],
)
def test_names_of_the_memory_are_exchanged(said: str, read: str) -> None:
    assert naming.of_the_memory_commands(said) == read
    assert naming.of_the_commands(read) == read
