"""The fixtures that every test of SQL may use. What they are made of is in tests/rig."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import pytest

from tests.rig import hosts
from tests.rig.databases import Database, Server, running_server

ServerOf = Callable[[int], Server]
HostMaker = Callable[..., Database]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--ranking-seeds", type=int, default=32, help="random ledgers that ranked recall is compared on"
    )


@pytest.fixture(scope="session")
def server_of() -> Iterator[ServerOf]:
    """The session's server of a PostgreSQL major version, started at its first use. One a worker."""
    with contextlib.ExitStack() as stack:
        running: dict[int, Server] = {}

        def of(major: int) -> Server:
            if major not in running:
                running[major] = stack.enter_context(running_server(major))
            return running[major]

        yield of


@pytest.fixture(scope="session")
def server(server_of: ServerOf) -> Server:
    """The session's PostgreSQL 18."""
    return server_of(18)


@pytest.fixture
def databases(server_of: ServerOf) -> Iterator[Callable[[Callable[..., Database], hosts.Port], Database]]:
    """Makes databases of a kind (a function of tests/rig/hosts.py) and drops them after the test."""
    made: list[Database] = []

    def make(kind: Callable[..., Database], port: hosts.Port) -> Database:
        database = kind(server_of(port.postgres), port)
        made.append(database)
        return database

    yield make
    for database in made:
        database.server.remove(database)


def _maker(kind: Callable[..., Database]) -> Callable[..., HostMaker]:
    def fixture(databases: Callable[..., Database]) -> HostMaker:
        def make(**port: object) -> Database:
            return databases(kind, hosts.Port(**port))  # type: ignore[arg-type]

        return make

    return fixture


# Each is called with what differs from the usual port: `open_brain_host(dimension=384)`.
empty_project = pytest.fixture(_maker(hosts.empty_project), name="empty_project")
open_brain_host = pytest.fixture(_maker(hosts.open_brain_host), name="open_brain_host")
published_proposal_host = pytest.fixture(
    _maker(hosts.published_proposal_host), name="published_proposal_host"
)
ledger_project = pytest.fixture(_maker(hosts.ledger_project), name="ledger_project")
ledger_host = pytest.fixture(_maker(hosts.ledger_host), name="ledger_host")
memory_project = pytest.fixture(_maker(hosts.memory_project), name="memory_project")
full_project = pytest.fixture(_maker(hosts.full_project), name="full_project")
full_host = pytest.fixture(_maker(hosts.full_host), name="full_host")


@pytest.fixture
def ledger_db(ledger_project: HostMaker) -> Database:
    """A project with our Open Brain and decision ledger, nothing recorded yet."""
    return ledger_project()
