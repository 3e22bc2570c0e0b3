"""A stack of each module's own, and command lines that run against it in this process."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest

from ranked_ledger import RankedLedger, doctor, shipped
from ranked_ledger.cli import app as cli
from ranked_ledger.stack import StackInfo, temporary_stack

ABSENT = "00000000-0000-0000-0000-000000000001"


@pytest.fixture(scope="module")
def stack() -> Iterator[StackInfo]:
    """A stack without the ledger."""
    with temporary_stack() as running:
        yield running.info()


@pytest.fixture(scope="module")
def installed(stack: StackInfo) -> StackInfo:
    """The same stack with the shipped migrations, once PostgREST has seen them."""
    install(stack)
    return stack


def install(stack: StackInfo) -> None:
    for migration in shipped.migrations():
        with psycopg.connect(stack.db_url) as connection:
            # no parameters: the simple protocol, so that a file may hold many statements
            connection.execute(migration.text.encode())
    with RankedLedger(stack.url, stack.secret_key, workspace="seen") as ledger:
        doctor.await_functions(ledger)


@dataclass
class Done:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def environment(
    installed: StackInfo, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """The environment of a person who uses the stack, each test in a workspace of its own."""
    for name, value in installed.env().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("RANKED_LEDGER_WORKSPACE", request.node.name)
    for name in ("RANKED_LEDGER_PROJECT", "RANKED_LEDGER_EMBEDDINGS_URL"):
        monkeypatch.delenv(name, raising=False)


Run = Callable[..., Done]


@pytest.fixture
def run(environment: None, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command line in this process."""

    def run(*arguments: str, expect: int = 0) -> Done:
        code = cli.run(arguments)
        shown = capsys.readouterr()
        assert code == expect, shown.err
        return Done(code, shown.out, shown.err)

    return run


def record(run: Run, content: str, *more: str) -> str:
    memory_id: str = run("record", content, *more, "--json").json["memory_id"]
    return memory_id
