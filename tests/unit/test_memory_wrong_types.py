"""Whatever is given to a client of the long-term memory, what is raised is an error of ours."""

from __future__ import annotations

import inspect
from typing import Any
from uuid import UUID

import httpx
import pytest

import ranked_ledger as rl
from ranked_ledger.running import Running
from tests.unit.conftest import KEY, ORG, URL, MakeDriver
from tests.unit.sdk_drivers import Driver
from tests.unit.test_wrong_types import NO_CALLS, WRONG, parameters

NEEDED = {
    "text": "x",
    "memory": UUID(int=1),
    "decision": UUID(int=1),
    "outcome": "approved",
    "subject": ("candidate", UUID(int=2)),
    "workspace": "acme",
    "user": UUID(int=3),
    "role": "admin",
    "asserted_by": UUID(int=4),
}


def verbs(kind: type) -> list[str]:
    found = inspect.getmembers(kind, inspect.isfunction)
    return sorted(name for name, _ in found if not name.startswith("_") and name not in NO_CALLS)


def answering(request: httpx.Request) -> httpx.Response:
    if request.url.path.endswith("/memory_schema_version"):
        return httpx.Response(200, json=1)
    return httpx.Response(400, json={"code": "22023", "message": "p_x is wrong"})


def walked(driver: Driver, found: Any) -> None:
    """What is asked page by page is asked only when it is walked; nothing else comes back from here."""
    driver.walked(found)


def refuses(make: MakeDriver, family: type, verb: str) -> None:
    probe = make(max_retries=0)
    kind = httpx.Client if isinstance(probe.client, Running) else httpx.AsyncClient
    driver = make(max_retries=0, http_client=kind(transport=httpx.MockTransport(answering)))
    function = getattr(family, verb)
    needed = {
        one.name: NEEDED[one.name]
        for one in inspect.signature(function).parameters.values()
        if one.default is one.empty and one.name != "self"
    }
    for name in parameters(function):
        for value in WRONG:
            with pytest.raises(rl.RankedLedgerError) as raised:
                walked(driver, getattr(driver, verb)(**{**needed, name: value}))
            if type(value) is object:
                assert isinstance(raised.value, rl.InvalidArgumentError), (name, value)
                assert raised.value.status is None, f"{name} was sent"


@pytest.mark.parametrize("verb", verbs(rl.LongTermMemory))
def test_a_verb_of_an_agent(make_memory: MakeDriver, verb: str) -> None:
    refuses(make_memory, rl.LongTermMemory, verb)


@pytest.mark.parametrize("verb", verbs(rl.MemorySteward))
def test_a_verb_of_a_steward(make_steward: MakeDriver, verb: str) -> None:
    refuses(make_steward, rl.MemorySteward, verb)


@pytest.mark.parametrize("value", WRONG, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize(
    "kind", [rl.LongTermMemory, rl.AsyncLongTermMemory, rl.MemorySteward, rl.AsyncMemorySteward]
)
def test_a_client(kind: type[Any], value: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUPABASE_URL", URL)
    monkeypatch.setenv("SUPABASE_SECRET_KEY", KEY)
    right = {"url": URL, "key": KEY, "org": ORG}
    for name in parameters(kind.__init__):
        if (name, value) not in (("timeout", 5), ("max_retries", 5)):
            with pytest.raises(rl.InvalidArgumentError):
                kind(**{**right, name: value})
    for maker, first in ((kind.from_env, {}), (kind.from_supabase, {"client": value})):
        with pytest.raises(rl.InvalidArgumentError):
            maker(**first, org=ORG if first else value)
    for name in ("url", "token", "org"):
        with pytest.raises(rl.InvalidArgumentError):
            kind.from_postgrest(**{"url": "http://x", "token": None, "org": ORG, name: value})
    for name in parameters(kind.with_options):
        if (name, value) not in (("timeout", 5), ("max_retries", 5)):
            with pytest.raises(rl.InvalidArgumentError):
                kind(**right).with_options(**{name: value})


@pytest.mark.parametrize(
    "value", [["1"], {"a": 1}, "5", object(), b"x"], ids=lambda value: type(value).__name__
)
def test_a_prompt(value: Any) -> None:
    with pytest.raises(rl.InvalidArgumentError):
        rl.MemoryRecall(()).to_prompt(max_tokens=value)
