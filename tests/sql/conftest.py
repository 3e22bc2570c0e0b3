"""Fixtures of the tests of SQL."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conftest import HostMaker
from tests.rig import hosts
from tests.rig.databases import Database, Server
from tests.sql.memory_rpc import Memories
from tests.sql.rpc import Ledger


@pytest.fixture
def ledger(ledger_db: Database) -> Ledger:
    """The verbs in the workspace acme of a database of its own."""
    return Ledger(ledger_db)


@pytest.fixture(scope="module")
def shared_ledger(server: Server) -> Iterator[Ledger]:
    """One for all tests of a module: for calls that are refused and leave nothing behind."""
    database = hosts.ledger_project(server, hosts.Port())
    yield Ledger(database)
    server.remove(database)


@pytest.fixture
def memories(memory_project: HostMaker) -> Memories:
    """One organization with a long-term memory in a database of its own."""
    return Memories(memory_project())


@pytest.fixture(scope="module")
def shared_memories(server: Server) -> Iterator[Memories]:
    """One database for all tests of a module: each makes organizations of its own."""
    database = hosts.memory_project(server, hosts.Port())
    yield Memories(database)
    server.remove(database)
