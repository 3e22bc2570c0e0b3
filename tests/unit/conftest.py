"""Fixtures of the SDK's unit tests: a client of either kind over respx, and waits that are noted, not waited."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import httpx
import pytest
import respx

from ranked_ledger import (
    AsyncLongTermMemory,
    AsyncMemorySteward,
    AsyncRankedLedger,
    LongTermMemory,
    MemorySteward,
    RankedLedger,
)
from ranked_ledger.running import Running
from tests.unit.sdk_drivers import Driver

URL = "http://ledger.test"
KEY = "sb_secret_test"
ORG = "0f000000-0000-4000-8000-00000000000f"

MakeDriver = Callable[..., Driver]


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that the run loops would have waited."""
    noted: list[float] = []

    async def noted_async(seconds: float) -> None:
        noted.append(seconds)

    monkeypatch.setattr("ranked_ledger.running.sleep", noted.append)
    monkeypatch.setattr("ranked_ledger.running.sleep_async", noted_async)
    return noted


@pytest.fixture(scope="session")
def tls() -> ssl.SSLContext:
    """One for all clients: reading the certificates takes 30 ms, and nothing here is encrypted."""
    return httpx.create_ssl_context()


@pytest.fixture(params=["sync", "async"])
def make(
    request: pytest.FixtureRequest,
    waits: list[float],
    tls: ssl.SSLContext,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[MakeDriver]:
    """Makes a client in the workspace acme; both kinds, one after the other."""
    kind = RankedLedger if request.param == "sync" else AsyncRankedLedger
    with _making(kind, tls, monkeypatch, workspace="acme") as maker:
        yield maker


@contextmanager
def _making(
    kind: type, tls: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch, **usual: object
) -> Iterator[MakeDriver]:
    http = httpx.Client if issubclass(kind, Running) else httpx.AsyncClient
    monkeypatch.setattr(kind, "_new_http", partial(http, verify=tls))
    made: list[Driver] = []
    with asyncio.Runner() as runner:

        def maker(key: str = KEY, **options: object) -> Driver:
            made.append(Driver(kind(URL, key, **{**usual, **options}), runner))
            return made[-1]

        yield maker
        for driver in made:
            driver.close()


@pytest.fixture(params=["sync", "async"])
def make_memory(
    request: pytest.FixtureRequest,
    waits: list[float],
    tls: ssl.SSLContext,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[MakeDriver]:
    """Makes an agent's client of the long-term memory; both kinds, one after the other."""
    kind = LongTermMemory if request.param == "sync" else AsyncLongTermMemory
    with _making(kind, tls, monkeypatch, org=ORG) as maker:
        yield maker


@pytest.fixture(params=["sync", "async"])
def make_steward(
    request: pytest.FixtureRequest,
    waits: list[float],
    tls: ssl.SSLContext,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[MakeDriver]:
    """Makes a steward's client; both kinds, one after the other."""
    kind = MemorySteward if request.param == "sync" else AsyncMemorySteward
    with _making(kind, tls, monkeypatch, org=ORG) as maker:
        yield maker


@pytest.fixture
def memory(make_memory: MakeDriver) -> Driver:
    """An agent's client, with the options that a user gets."""
    return make_memory()


@pytest.fixture
def steward(make_steward: MakeDriver) -> Driver:
    """A steward's client on the service key."""
    return make_steward()


@pytest.fixture
def ledger(make: MakeDriver) -> Driver:
    """A client in the workspace acme, with the options that a user gets."""
    return make()


@pytest.fixture
def server() -> Iterator[respx.MockRouter]:
    """A server whose answers a test writes; the schema has the version that the SDK knows."""
    with respx.mock(base_url=f"{URL}/rest/v1/rpc", assert_all_called=False) as router:
        router.post("/ledger_schema_version", name="version").respond(json=1)
        router.post("/memory_schema_version", name="memory_version").respond(json=1)
        yield router
