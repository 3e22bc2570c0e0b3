"""A stack of each module's own, and command lines that run against it in this process."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import jwt
import psycopg
import pytest

from ranked_ledger import MemorySteward, NotInstalledError, RankedLedger, doctor, shipped
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
    await_memory(stack)


def await_memory(stack: StackInfo) -> None:
    """Wait until PostgREST has seen the long-term memory, whose push tells it by a notification of its own."""
    deadline = time.monotonic() + 20
    with MemorySteward(stack.url, stack.secret_key, org=ABSENT) as steward:
        while True:
            try:
                steward.expire()
            except NotInstalledError:
                assert time.monotonic() < deadline, "PostgREST does not see the long-term memory"
                time.sleep(0.05)
            else:
                return


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
    for name in ("PROJECT", "EMBEDDINGS_URL", "ORG", "ACCESS_TOKEN", "DIGEST_KEY"):
        monkeypatch.delenv(f"RANKED_LEDGER_{name}", raising=False)


Run = Callable[..., Done]


@pytest.fixture
def run(environment: None, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command line in this process, as that person."""
    return runner(capsys)


def runner(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command line in this process, in the environment as it is."""

    def run(*arguments: str, expect: int = 0) -> Done:
        code = cli.run(arguments)
        shown = capsys.readouterr()
        assert code == expect, shown.err or shown.out
        return Done(code, shown.out, shown.err)

    return run


def record(run: Run, content: str, *more: str) -> str:
    memory_id: str = run("record", content, *more, "--json").json["memory_id"]
    return memory_id


def new_user(stack: StackInfo) -> str:
    """Somebody who can sign in; answers their id."""
    user = str(uuid4())
    with psycopg.connect(stack.superuser_db_url) as connection:
        connection.execute("insert into auth.users (id) values (%s)", (user,))
    return user


def token_of(stack: StackInfo, user: str) -> str:
    """The access token that they have once they are signed in."""
    claims = {"sub": user, "role": "authenticated", "aud": "authenticated", "exp": int(time.time()) + 3600}
    return jwt.encode(claims, stack.jwt_secret, algorithm="HS256")
