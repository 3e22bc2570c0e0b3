"""A running stack with the shipped migrations pushed, for everything that is tested through PostgREST and the gateway."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from uuid import uuid4

import httpx
import psycopg
import pytest

from ranked_ledger import AsyncRankedLedger, MemorySteward, NotInstalledError, RankedLedger
from ranked_ledger.stack import Stack, StackInfo, temporary_stack
from tests.contract.company import Company
from tests.rig.deploy import migrations
from tests.unit.sdk_drivers import Driver

DEADLINE_SECONDS = 20


@pytest.fixture(scope="session")
def bare_stack() -> Iterator[Stack]:
    """A project without the ledger."""
    with temporary_stack() as stack:
        yield stack


@pytest.fixture(scope="session")
def stack() -> Iterator[StackInfo]:
    """A project with our migrations, and PostgREST aware of them."""
    with temporary_stack(default_privileges="hosted") as running:
        info = running.info()
        with psycopg.connect(info.db_url, autocommit=True) as owner:
            for migration in migrations():
                owner.execute(migration.read_bytes())
        await_reload(info)
        yield info


def await_reload(info: StackInfo) -> None:
    """Wait until PostgREST has seen the functions: a push notifies it, and it reloads in its own time.

    The migrations are seen one after the other, and the long-term memory's is the last.
    """
    deadline = time.monotonic() + DEADLINE_SECONDS
    with (
        RankedLedger(info.url, info.secret_key, workspace="ready") as ledger,
        MemorySteward(info.url, info.secret_key, org=uuid4()) as steward,
    ):
        while True:
            try:
                ledger.status()
                steward.expire()
            except NotInstalledError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.02)
            else:
                return


@pytest.fixture
def workspace() -> str:
    """A workspace of this test alone."""
    return f"w-{uuid4()}"


MakeLedger = Callable[..., Driver]


@pytest.fixture(params=["sync", "async"])
def ledgers(request: pytest.FixtureRequest, stack: StackInfo, workspace: str) -> Iterator[MakeLedger]:
    """Makes clients of either kind, one kind after the other."""
    kind = RankedLedger if request.param == "sync" else AsyncRankedLedger
    made: list[Driver] = []
    with asyncio.Runner() as runner:

        def make(
            how: Callable[[type], RankedLedger | AsyncRankedLedger] | None = None, **options: object
        ) -> Driver:
            named = {"workspace": workspace, **options}
            client = how(kind) if how else kind(stack.url, stack.secret_key, **named)  # type: ignore[arg-type]
            made.append(Driver(client, runner))
            return made[-1]

        yield make
        for driver in made:
            driver.close()


@pytest.fixture
def ledger(ledgers: MakeLedger) -> Driver:
    """A client of this test's workspace."""
    return ledgers()


@pytest.fixture(params=["sync", "async"])
def company(request: pytest.FixtureRequest, stack: StackInfo) -> Iterator[Company]:
    """An organization of this test alone."""
    with asyncio.Runner() as runner:
        made = Company(stack, request.param, runner)
        yield made
        made.close()


@pytest.fixture
def rest_socket(stack: StackInfo) -> str:
    """Where PostgREST itself listens, behind the gateway."""
    (found,) = {part for part in stack.db_url.split("host=") if part.startswith("/")}
    return found.removesuffix("/pg") + "/run/postgrest.sock"


@pytest.fixture
def count_rows(stack: StackInfo, workspace: str) -> Callable[[str], int]:
    """Rows of a table in this test's workspace, past every client."""

    def count(table: str) -> int:
        with psycopg.connect(stack.superuser_db_url) as superuser:
            query = psycopg.sql.SQL("select count(*) from public.{} where workspace_id = %s")
            row = superuser.execute(query.format(psycopg.sql.Identifier(table)), (workspace,)).fetchone()
            assert row is not None
            return int(row[0])

    return count


@pytest.fixture
def http() -> Iterator[httpx.Client]:
    with httpx.Client() as client:
        yield client
