"""Both clients of a function over written answers: what goes out, what is repeated, and where the key is not."""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import ssl
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any
from uuid import UUID

import httpx
import pytest
import respx

import ranked_ledger as rl
from ranked_ledger import settings
from tests.unit import sdk_answers as answers
from tests.unit.sdk_drivers import Driver
from tests.unit.test_function_errands import ranked, written
from tests.unit.test_wrong_types import WRONG, parameters

URL = "http://project.test/functions/v1/agent-memory-api"
ACCESS_KEY = "open-sesame"
TWINS = {"close": "aclose", "__enter__": "__aenter__", "__exit__": "__aexit__"}

MakeDriver = Callable[..., Driver]


@pytest.fixture
def function_waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that the run loops would have waited."""
    noted: list[float] = []

    async def noted_async(seconds: float) -> None:
        noted.append(seconds)

    monkeypatch.setattr("ranked_ledger.running.sleep", noted.append)
    monkeypatch.setattr("ranked_ledger.running.sleep_async", noted_async)
    return noted


@pytest.fixture(params=["sync", "async"])
def make_memory(
    request: pytest.FixtureRequest,
    function_waits: list[float],
    tls: ssl.SSLContext,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[MakeDriver]:
    """Makes a client in the workspace acme; both kinds, one after the other."""
    kind = rl.MemoryFunction if request.param == "sync" else rl.AsyncMemoryFunction
    http = httpx.Client if request.param == "sync" else httpx.AsyncClient
    monkeypatch.setattr(kind, "_new_http", partial(http, verify=tls))
    made: list[Driver] = []
    with asyncio.Runner() as runner:

        def maker(**options: object) -> Driver:
            made.append(Driver(kind(URL, ACCESS_KEY, **{"workspace": "acme", **options}), runner))  # type: ignore[arg-type]
            return made[-1]

        yield maker
        for driver in made:
            driver.close()


@pytest.fixture
def memory(make_memory: MakeDriver) -> Driver:
    return make_memory()


@pytest.fixture
def served() -> Iterator[respx.MockRouter]:
    with respx.mock(base_url=URL, assert_all_called=False) as router:
        yield router


def sent(route: respx.Route) -> list[dict[str, Any]]:
    return [json.loads(call.request.content) for call in route.calls]


def test_a_recall_asks_for_the_ledgers_policy(served: respx.MockRouter, make_memory: MakeDriver) -> None:
    route = served.post("/recall").respond(json=ranked(answers.hit()))
    memory = make_memory(project="billing", extra_body={"sensitivity": "low"})
    found = memory.recall("invoices", limit=8)
    assert found[0].memory_id == answers.MEMORY
    memory.recall("invoices", project=None)
    memory.with_options(project="sales").recall("invoices")
    assert [body.get("project_id") for body in sent(route)] == ["billing", None, "sales"]
    assert {body["recall_policy"] for body in sent(route)} == {"ranked_ledger"}
    assert {body["sensitivity"] for body in sent(route)} == {"low"}


def test_every_other_verb_has_its_route(served: respx.MockRouter, memory: Driver) -> None:
    served.get("/health").respond(json={"ok": True, "service": "x"})
    vector = served.post("/recall").respond(json={"request_id": str(answers.REQUEST), "memories": []})
    usage = served.post(f"/recall/{answers.REQUEST}/usage").respond(json={"ok": True})
    write = served.post("/writeback").respond(201, json=written())
    old, new = answers.decision(), answers.decision(memory_id=str(answers.OTHER))
    answer = {"action": "supersede", "changed": True, "memory": old, "by": new}
    review = served.patch(f"/memories/{answers.MEMORY}/review").respond(json=answer)

    assert memory.health() == {"ok": True, "service": "x"}
    assert len(memory.recall_by_vector("invoices")) == 0
    assert "recall_policy" not in sent(vector)[0]
    memory.mark_used(answers.REQUEST, answers.MEMORY)
    memory.mark_ignored(answers.REQUEST, answers.OTHER)
    assert [len(body["used_memory_ids"]) for body in sent(usage)] == [1, 0]
    recorded = memory.record("Invoices are immutable", depends_on=answers.OTHER)
    assert recorded.memory_id == answers.MEMORY
    key = sent(write)[0]["idempotency_key"]
    assert UUID(key.removeprefix("acme/")).version == 4
    assert memory.supersede(recorded, by=answers.OTHER, reason="r").changed
    assert sent(review)[0]["by"] == str(answers.OTHER)


def test_the_access_key_goes_in_its_header_alone(
    served: respx.MockRouter, memory: Driver, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    served.get("/health").respond(json={"ok": True})
    memory.health()
    request = served.calls.last.request
    assert request.headers["x-brain-key"] == ACCESS_KEY
    assert not {"apikey", "authorization"} & set(request.headers)
    assert ACCESS_KEY not in f"{request.url} {request.content!r} {caplog.text} {request!r}"
    assert ACCESS_KEY not in f"{memory.client!r} {memory.client._connection!r} {memory.client._options!r}"


def test_neither_an_error_nor_a_traceback_with_its_locals_shows_the_key(
    served: respx.MockRouter, make_memory: MakeDriver
) -> None:
    served.post("/recall").mock(side_effect=httpx.ConnectError("refused"))
    with pytest.raises(rl.NetworkError) as caught:
        make_memory(max_retries=0).recall("x")
    ours = [entry for entry in caught.traceback if "ranked_ledger" in str(entry.path)]
    assert len(ours) >= 3
    assert not [entry for entry in ours if ACCESS_KEY in repr(entry.frame.f_locals)]
    assert ACCESS_KEY not in f"{caught.value!r} {caught.value} {caught.value.__cause__!r}"


def test_a_redirect_is_not_followed(served: respx.MockRouter, make_memory: MakeDriver) -> None:
    elsewhere = served.get("http://elsewhere.test/").respond(200)
    served.get("/health").respond(302, headers={"Location": "http://elsewhere.test/"})
    probe = make_memory()
    synchronous = isinstance(probe.client, rl.MemoryFunction)
    http = httpx.Client(follow_redirects=True) if synchronous else httpx.AsyncClient(follow_redirects=True)
    with pytest.raises(rl.UnexpectedResponseError):
        make_memory(http_client=http).health()
    assert not elsewhere.called
    probe.result(http.close() if isinstance(http, httpx.Client) else http.aclose())


RECALLED = httpx.Response(200, json=ranked(answers.hit()))


@pytest.mark.parametrize(
    "failing",
    [
        httpx.ConnectError("refused"),
        httpx.ConnectTimeout("slow"),
        httpx.PoolTimeout("busy"),
        httpx.Response(429, json={"message": "slow down"}),
        httpx.Response(503, json={"message": "starting"}, headers={"Retry-After": "1"}),
    ],
)
def test_a_recall_is_repeated_where_it_was_not_carried_out(
    served: respx.MockRouter,
    memory: Driver,
    function_waits: list[float],
    failing: httpx.Response | Exception,
) -> None:
    route = served.post("/recall")
    route.side_effect = [failing, RECALLED]
    assert len(memory.recall("x")) == 1
    assert route.call_count == 2
    assert len(function_waits) == 1


@pytest.mark.parametrize(
    "failing",
    [
        httpx.ReadError("reset"),
        httpx.ReadTimeout("slow"),
        httpx.RemoteProtocolError("closed"),
        httpx.Response(500, json={"error": "boom"}),
        httpx.Response(502),
        httpx.Response(503, json={"error": "no", "code": "unreachable", "hint": None}),
        httpx.Response(503, headers={"Retry-After": "3600"}),
        httpx.Response(200, html="<html>sign in</html>"),
    ],
)
def test_a_recall_that_may_have_left_its_trace_is_not_repeated(
    served: respx.MockRouter,
    memory: Driver,
    function_waits: list[float],
    failing: httpx.Response | Exception,
) -> None:
    route = served.post("/recall")
    route.side_effect = [failing, RECALLED]
    with pytest.raises(rl.RankedLedgerError):
        memory.recall("x")
    assert route.call_count == 1
    assert not function_waits


@pytest.mark.parametrize(
    "failing", [httpx.ReadTimeout("slow"), httpx.Response(502), httpx.ReadError("reset")]
)
def test_a_record_is_repeated_with_the_same_key(
    served: respx.MockRouter, memory: Driver, failing: httpx.Response | Exception
) -> None:
    route = served.post("/writeback")
    route.side_effect = [failing, failing, httpx.Response(201, json=written())]
    memory.record("x")
    assert len({body["idempotency_key"] for body in sent(route)}) == 1
    assert route.call_count == 3


NOT_YET = httpx.Response(404, json={"error": "no such recall"})


@pytest.mark.parametrize("method", ["mark_used", "mark_ignored"])
def test_a_trace_that_is_written_behind_the_answer_is_waited_for(
    served: respx.MockRouter, memory: Driver, function_waits: list[float], method: str
) -> None:
    route = served.post(f"/recall/{answers.REQUEST}/usage")
    route.side_effect = [NOT_YET, NOT_YET, httpx.Response(200, json={"ok": True})]
    getattr(memory, method)(answers.REQUEST, answers.MEMORY)
    assert function_waits == [0.1, 0.5]


@pytest.mark.parametrize(("max_retries", "waits"), [(9, [0.1, 0.5, 1.4]), (1, [0.1]), (0, [])])
def test_a_trace_that_never_comes_is_an_error_that_says_why(
    served: respx.MockRouter,
    make_memory: MakeDriver,
    function_waits: list[float],
    max_retries: int,
    waits: list[float],
) -> None:
    served.post(f"/recall/{answers.REQUEST}/usage").mock(return_value=NOT_YET)
    with pytest.raises(rl.NotFoundError, match="in the background may not have written it yet"):
        make_memory(max_retries=max_retries).mark_used(answers.REQUEST, answers.MEMORY)
    assert function_waits == waits


def test_a_decision_that_is_not_there_is_not_waited_for(
    served: respx.MockRouter, memory: Driver, function_waits: list[float]
) -> None:
    served.patch(f"/memories/{answers.MEMORY}/review").respond(404, json={"error": "no such memory"})
    with pytest.raises(rl.NotFoundError):
        memory.supersede(answers.MEMORY, by=answers.OTHER)
    assert not function_waits


def test_retry_after_is_obeyed(served: respx.MockRouter, memory: Driver, function_waits: list[float]) -> None:
    served.post("/recall").side_effect = [httpx.Response(503, headers={"Retry-After": "7"}), RECALLED]
    memory.recall("x")
    assert 7 <= function_waits[0] <= 7.2


def test_the_timeout_is_that_of_the_client(served: respx.MockRouter, make_memory: MakeDriver) -> None:
    served.get("/health").respond(json={"ok": True})
    make_memory(timeout=1.5).health()
    make_memory().health()
    assert [call.request.extensions["timeout"]["read"] for call in served.calls] == [1.5, 30.0]


def test_an_unpatched_function_is_told_from_a_patched_one(served: respx.MockRouter, memory: Driver) -> None:
    answer = ranked(answers.hit())
    del answer["policy"]
    served.post("/recall").respond(json=answer)
    with pytest.raises(rl.NotPatchedError, match="ranked-ledger patch apply"):
        memory.recall("x")


def test_a_closed_client_says_so_and_a_copy_leaves_the_connections_open(
    served: respx.MockRouter, memory: Driver
) -> None:
    served.get("/health").respond(json={"ok": True})
    memory.with_options(timeout=1).close()
    assert memory.health()["ok"]
    memory.close()
    with pytest.raises(rl.ConfigurationError, match="closed"):
        memory.health()


@pytest.mark.parametrize("kind", [rl.MemoryFunction, rl.AsyncMemoryFunction])
def test_the_environment_names_the_function(kind: type[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (settings.FUNCTION_URL_VARIABLE, settings.ACCESS_KEY_VARIABLE):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(rl.ConfigurationError, match=r"lacks AGENT_MEMORY_URL and MCP_ACCESS_KEY"):
        kind.from_env(workspace="acme")
    monkeypatch.setenv("AGENT_MEMORY_URL", f"{URL}/")
    monkeypatch.setenv("MCP_ACCESS_KEY", ACCESS_KEY)
    memory = kind.from_env(workspace="acme", project="billing")
    assert (memory.url, memory.workspace, memory.project) == (URL, "acme", "billing")
    assert memory._connection.headers["x-brain-key"] == ACCESS_KEY


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("project.test", ACCESS_KEY),
        (f"{URL}?key={ACCESS_KEY}", ACCESS_KEY),
        (f"http://u:{ACCESS_KEY}@project.test", ACCESS_KEY),
        (URL, ""),
        (URL, "a b"),
        (URL, "sb_secret_of_the_project"),
        (URL, "eyJhbGciOiJIUzI1NiJ9.eyJyb2xlIjogInNlcnZpY2Vfcm9sZSJ9.c2lnbmF0dXJl"),
    ],
)
def test_what_is_no_url_or_no_access_key_is_refused(url: str, key: str) -> None:
    with pytest.raises(rl.ConfigurationError) as caught:
        rl.MemoryFunction(url, key, workspace="acme")
    assert ACCESS_KEY not in str(caught.value)
    assert not key or key not in str(caught.value)


METHODS = sorted(
    name
    for name, _ in inspect.getmembers(rl.MemoryFunction, inspect.isfunction)
    if not name.startswith("_") and name not in ("close", "with_options")
)
NEEDED = {
    "query": "x",
    "content": "x",
    "recall": answers.REQUEST,
    "decisions": answers.MEMORY,
    "old": answers.MEMORY,
    "by": answers.OTHER,
}


@pytest.mark.parametrize("method", METHODS)
def test_whatever_is_given_an_error_of_ours_is_raised_before_anything_is_sent(
    served: respx.MockRouter, memory: Driver, method: str
) -> None:
    found = inspect.signature(getattr(rl.MemoryFunction, method)).parameters
    right = {name: NEEDED[name] for name in found if name in NEEDED}
    for name in parameters(getattr(rl.MemoryFunction, method)):
        with pytest.raises(rl.InvalidArgumentError):
            getattr(memory, method)(**{**right, name: object()})
    assert not served.calls


@pytest.mark.parametrize("value", WRONG, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("kind", [rl.MemoryFunction, rl.AsyncMemoryFunction])
def test_a_wrong_option_is_refused(kind: type[Any], value: object) -> None:
    right = {"url": URL, "access_key": ACCESS_KEY, "workspace": "acme"}
    allowed = (("timeout", 5), ("max_retries", 5), ("extra_body", {"a": 1}))
    for name in parameters(kind.__init__):
        if (name, value) not in allowed:
            with pytest.raises(rl.InvalidArgumentError):
                kind(**{**right, name: value})


def methods(kind: type) -> dict[str, Any]:
    found = {name: value for name, value in inspect.getmembers(kind, callable) if not name.startswith("_")}
    own = ("__init__", *TWINS, *TWINS.values())
    return found | {name: getattr(kind, name) for name in own if hasattr(kind, name)}


def test_both_clients_have_the_same_methods() -> None:
    names = {TWINS.get(name, name) for name in methods(rl.MemoryFunction)}
    assert names == set(methods(rl.AsyncMemoryFunction))


@pytest.mark.parametrize("name", sorted(methods(rl.MemoryFunction)))
def test_a_method_has_the_same_signature_on_both_and_says_what_it_is(name: str) -> None:
    mine, twin = getattr(rl.MemoryFunction, name), getattr(rl.AsyncMemoryFunction, TWINS.get(name, name))
    assert inspect.signature(mine).parameters == inspect.signature(twin).parameters
    if not name.startswith("__"):
        assert inspect.signature(mine).return_annotation == inspect.signature(twin).return_annotation
        assert twin.__doc__
        assert name == "close" or ">>>" in mine.__doc__


@pytest.mark.parametrize("name", ["recall", "record", "supersede", "mark_used", "mark_ignored"])
def test_an_argument_is_that_of_the_ledgers_own_client(name: str) -> None:
    mine = inspect.signature(getattr(rl.MemoryFunction, name)).parameters
    theirs = inspect.signature(getattr(rl.RankedLedger, name)).parameters
    assert set(mine) - set(theirs) == ({"confidence"} if name == "record" else set())
    # the function has a preset of its own, and an older one knows none
    for parameter in set(mine) & set(theirs) - {"query", "recall", "preset"}:
        assert mine[parameter] == theirs[parameter]
