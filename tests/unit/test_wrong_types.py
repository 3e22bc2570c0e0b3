"""Whatever is given for an argument, what is raised is an error of ours, and nothing is raised half-way."""

from __future__ import annotations

import inspect
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import httpx
import pytest

from ranked_ledger import (
    AsyncOpenAICompatibleEmbedder,
    AsyncRankedLedger,
    InvalidArgumentError,
    OpenAICompatibleEmbedder,
    RankedLedger,
    RankedLedgerError,
    Recall,
)
from tests.unit.conftest import MakeDriver

WRONG = (["1"], {"a": 1}, 5, object(), b"x", int)
NEEDED = {
    "content": "x",
    "decisions": ["x"],
    "decision": UUID(int=1),
    "to": UUID(int=2),
    "old": UUID(int=1),
    "by": UUID(int=2),
    "lifecycle": "stale",
    "importance": 0.5,
    "recall": UUID(int=3),
    "embedding_model": "m",
    "floor": 0.1,
    "ceiling": 0.2,
    "text_config": "german",
    "before": datetime(2026, 1, 1, tzinfo=UTC),
}
NO_CALLS = {"close", "aclose", "with_options", "from_env", "from_supabase", "from_postgrest"}


def parameters(function: Any) -> list[str]:
    return [name for name in inspect.signature(function).parameters if name not in ("self", "cls")]


def needed(function: Any) -> dict[str, Any]:
    """Right values of the arguments that have no default."""
    found = inspect.signature(function).parameters.values()
    return {one.name: NEEDED[one.name] for one in found if one.default is one.empty and one.name != "self"}


METHODS = sorted(
    name
    for name, _ in inspect.getmembers(RankedLedger, inspect.isfunction)
    if not name.startswith("_") and name not in NO_CALLS
)


def answering(request: httpx.Request) -> httpx.Response:
    if request.url.path.endswith("/ledger_schema_version"):
        return httpx.Response(200, json=1)
    return httpx.Response(400, json={"code": "22023", "message": "p_x is wrong"})


def done(driver: Any, method: str, given: dict[str, Any]) -> None:
    answer = getattr(driver, method)(**given)
    if method in ("timeline", "traces"):  # nothing is asked until they are walked
        driver.walked(answer)


@pytest.mark.parametrize("method", METHODS)
def test_a_method(make: MakeDriver, method: str) -> None:
    driver = make(max_retries=0)
    transport = httpx.MockTransport(answering)
    kind = httpx.Client if isinstance(driver.client, RankedLedger) else httpx.AsyncClient
    driver = make(max_retries=0, http_client=kind(transport=transport))
    function = getattr(RankedLedger, method)
    for name in parameters(function):
        for value in WRONG:
            given = {**needed(function), name: value}
            with pytest.raises(RankedLedgerError) as raised:
                done(driver, method, given)
            if type(value) is object:
                assert isinstance(raised.value, InvalidArgumentError), (name, value)
                assert raised.value.status is None, f"{name} was sent"


def test_the_message_names_the_argument(make: MakeDriver) -> None:
    with pytest.raises(InvalidArgumentError, match=r"weights must be Weights or a mapping, not list"):
        make().recall("x", weights=[1])
    with pytest.raises(InvalidArgumentError, match=r"there is no weight 1"):
        make().recall("x", weights={1: 2})
    with pytest.raises(InvalidArgumentError, match=r"decision: 'notauuid' is no memory id"):
        make().get("notauuid")
    with pytest.raises(InvalidArgumentError, match=r"decision must be a UUID, not another text$"):
        make().get("some words of somebody")
    with pytest.raises(InvalidArgumentError, match="put a single one into a list"):
        make().record_many("one text")


@pytest.mark.parametrize("value", WRONG, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("kind", [RankedLedger, AsyncRankedLedger])
def test_a_client(kind: type[Any], value: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUPABASE_URL", "http://ledger.test")
    monkeypatch.setenv("SUPABASE_SECRET_KEY", "sb_secret_test")
    right = {"url": "http://ledger.test", "key": "sb_secret_test", "workspace": "acme"}
    for name in parameters(kind.__init__):
        if (name, value) not in (("timeout", 5), ("max_retries", 5)):
            with pytest.raises(InvalidArgumentError):
                kind(**{**right, name: value})
    for maker, first in ((kind.from_env, {}), (kind.from_supabase, {"client": value})):
        with pytest.raises(InvalidArgumentError):
            maker(**first, workspace="acme" if first else value)
    for name in ("url", "token", "workspace"):
        with pytest.raises(InvalidArgumentError):
            kind.from_postgrest(**{"url": "http://x", "token": None, "workspace": "acme", name: value})
    for name in parameters(kind.with_options):
        if (name, value) not in (("timeout", 5), ("max_retries", 5)):
            with pytest.raises(InvalidArgumentError):
                kind(**right).with_options(**{name: value})


@pytest.mark.parametrize("value", WRONG, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("kind", [OpenAICompatibleEmbedder, AsyncOpenAICompatibleEmbedder])
def test_an_embedder(kind: type[Any], value: object) -> None:
    for name in ("base_url", "model", "api_key"):
        with pytest.raises(InvalidArgumentError):
            kind(**{"base_url": "http://x", "model": "m", name: value})


@pytest.mark.parametrize(
    "value", [["1"], {"a": 1}, "5", object(), b"x"], ids=lambda value: type(value).__name__
)
def test_a_prompt(value: Any) -> None:
    with pytest.raises(InvalidArgumentError):
        Recall(()).to_prompt(max_tokens=value)
