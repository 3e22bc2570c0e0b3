"""What the clients do when the server refuses, fails, is silent or answers nonsense. Each runs on both clients."""

from __future__ import annotations

import json
from uuid import UUID

import httpx
import pytest
import respx

import ranked_ledger as rl
from tests.unit import sdk_answers as answers
from tests.unit.conftest import KEY, MakeDriver
from tests.unit.sdk_drivers import Driver


def bodies(route: respx.Route) -> list[dict]:
    return [json.loads(call.request.content) for call in route.calls]


@pytest.mark.parametrize(
    "refusal",
    [
        (400, answers.error("22023"), rl.InvalidArgumentError),
        (400, answers.error("22P02"), rl.InvalidArgumentError),
        (400, answers.error("RL404"), rl.NotFoundError),
        (400, answers.error("RL409"), rl.ConflictError),
        (400, answers.error("RL410"), rl.GoneError),
        (400, answers.error("RL461"), rl.LoopError),
        (400, answers.error("RL462"), rl.InvalidArgumentError),
        (400, answers.error("RL463"), rl.DimensionError),
        (404, answers.error("PGRST202"), rl.NotInstalledError),
        (404, answers.error("42883"), rl.NotInstalledError),
        (406, answers.error("PGRST106"), rl.NotInstalledError),
        (401, answers.error("PGRST301"), rl.AuthenticationError),
        (401, answers.error("PGRST302"), rl.AuthenticationError),
        (401, answers.error("PGRST303"), rl.AuthenticationError),
        (401, {"message": "Invalid API key"}, rl.AuthenticationError),
        (403, answers.error("42501"), rl.PermissionDeniedError),
        (401, answers.error("42501"), rl.PermissionDeniedError),
        (403, {"message": "forbidden"}, rl.PermissionDeniedError),
        (500, answers.error("57014"), rl.RequestTimeoutError),
        (500, answers.error("XX000"), rl.APIError),
        (400, answers.error("RL999"), rl.APIError),
        (413, {"message": "too large"}, rl.InvalidArgumentError),
        (302, {}, rl.UnexpectedResponseError),
    ],
)
def test_a_refusal_is_mapped_by_its_code_and_not_repeated(
    server: respx.MockRouter,
    ledger: Driver,
    waits: list[float],
    refusal: tuple[int, dict, type[rl.RankedLedgerError]],
) -> None:
    status, answer, expected = refusal
    route = server.post("/get_decision").respond(status, json=answer)
    with pytest.raises(rl.RankedLedgerError) as caught:
        ledger.get(answers.MEMORY)
    assert type(caught.value) is expected
    assert caught.value.code == answer.get("code")
    assert caught.value.status == status
    assert route.call_count == 1
    assert not waits


def test_an_error_carries_what_the_server_said(server: respx.MockRouter, ledger: Driver) -> None:
    told = answers.error("RL461", "a loop", details="a, b, a", hint="link the other way")
    server.post("/link_decisions").respond(400, json=told, headers={"sb-request-id": "r-1"})
    with pytest.raises(rl.LoopError) as caught:
        ledger.link(answers.MEMORY, answers.OTHER)
    assert str(caught.value) == "a loop. a, b, a. Next: link the other way [RL461, HTTP 400]"
    assert caught.value.request_id == "r-1"


def test_not_installed_names_the_command(server: respx.MockRouter, ledger: Driver) -> None:
    server["version"].respond(404, json=answers.error("PGRST202", hint="Perhaps you meant another function"))
    with pytest.raises(rl.NotInstalledError, match="supabase db push"):
        ledger.get(answers.MEMORY)


@pytest.mark.parametrize(
    ("version", "expected", "command"),
    [(0, rl.SchemaTooOldError, "supabase db push"), (2, rl.SchemaTooNewError, "pip install --upgrade")],
)
def test_a_schema_that_does_not_fit_is_told_before_anything_is_called(
    server: respx.MockRouter, ledger: Driver, version: int, expected: type[Exception], command: str
) -> None:
    server["version"].respond(json=version)
    route = server.post("/get_decision").respond(json=answers.decision())
    with pytest.raises(expected, match=command):
        ledger.get(answers.MEMORY)
    assert not route.called


def test_the_version_is_asked_once_and_shared_with_copies(server: respx.MockRouter, ledger: Driver) -> None:
    server.post("/get_decision").respond(json=answers.decision())
    ledger.get(answers.MEMORY)
    ledger.with_options(timeout=1).get(answers.MEMORY)
    assert server["version"].call_count == 1


@pytest.mark.parametrize(
    "failing",
    [
        httpx.Response(503, json={"message": "unavailable"}),
        httpx.Response(502, html="<html>bad gateway</html>"),
        httpx.Response(504, text=""),
        httpx.Response(503, json=answers.error("PGRST002")),
        httpx.Response(500, json=answers.error("40P01")),
        httpx.Response(500, json=answers.error("57P01")),
        httpx.Response(500, json=answers.error("53300")),
        # what PostgREST answers where the database's process is killed in the middle of the statement
        httpx.Response(400, json={"code": "", "details": None, "hint": None, "message": ""}),
        httpx.Response(429, json={"message": "slow down"}),
        httpx.Response(200, html="<html>sign in</html>"),
        httpx.ConnectError("refused"),
        httpx.ReadError("reset"),
        httpx.RemoteProtocolError("Server disconnected without sending a response."),
        httpx.ReadTimeout("slow"),
        httpx.ConnectTimeout("slow"),
        httpx.PoolTimeout("busy"),
    ],
)
def test_what_a_repeat_can_mend_is_repeated_with_the_same_key(
    server: respx.MockRouter, ledger: Driver, waits: list[float], failing: httpx.Response | Exception
) -> None:
    route = server.post("/record_decision")
    route.side_effect = [failing, failing, httpx.Response(200, json=answers.decision())]
    assert ledger.record("Invoices are immutable").memory_id == answers.MEMORY
    keys = [body["p_idempotency_key"] for body in bodies(route)]
    assert len(keys) == 3
    assert len(set(keys)) == 1
    assert len(waits) == 2
    assert 0 <= waits[0] <= 0.2
    assert 0 <= waits[1] <= 0.4


def test_a_recall_is_repeated_with_its_request_id(server: respx.MockRouter, ledger: Driver) -> None:
    route = server.post("/recall_decisions")
    route.side_effect = [httpx.ReadTimeout("slow"), httpx.Response(200, json=answers.recall())]
    ledger.recall("invoices")
    ids = [body["p_request_id"] for body in bodies(route)]
    assert ids[0] == ids[1]
    assert UUID(ids[0]).version == 4


def test_it_gives_up_after_max_retries(
    server: respx.MockRouter, make: MakeDriver, waits: list[float]
) -> None:
    route = server.post("/get_decision").mock(side_effect=httpx.ConnectError("refused"))
    with pytest.raises(rl.NetworkError) as caught:
        make(max_retries=2).get(answers.MEMORY)
    assert route.call_count == 3
    assert len(waits) == 2
    assert isinstance(caught.value.__cause__, httpx.ConnectError)


def test_no_retries_means_one_attempt(server: respx.MockRouter, make: MakeDriver) -> None:
    route = server.post("/get_decision").respond(503)
    with pytest.raises(rl.ServiceUnavailableError):
        make(max_retries=0).get(answers.MEMORY)
    assert route.call_count == 1


def test_retry_after_is_obeyed(server: respx.MockRouter, ledger: Driver, waits: list[float]) -> None:
    route = server.post("/get_decision")
    route.side_effect = [
        httpx.Response(429, headers={"Retry-After": "7"}),
        httpx.Response(200, json=answers.decision()),
    ]
    ledger.get(answers.MEMORY)
    assert 7 <= waits[0] <= 7.2


def test_a_retry_after_of_more_than_a_minute_gives_up(
    server: respx.MockRouter, ledger: Driver, waits: list[float]
) -> None:
    server.post("/get_decision").respond(429, headers={"Retry-After": "3600"})
    with pytest.raises(rl.RateLimitError) as caught:
        ledger.get(answers.MEMORY)
    assert caught.value.retry_after == 3600
    assert not waits


def test_a_page_instead_of_json_says_what_came(server: respx.MockRouter, make: MakeDriver) -> None:
    server.post("/get_decision").respond(200, html="<html>sign in</html>")
    with pytest.raises(rl.UnexpectedResponseError, match="text/html") as caught:
        make(max_retries=0).get(answers.MEMORY)
    assert "sign in" in str(caught.value)


def test_another_shape_names_its_place_and_never_the_text(server: respx.MockRouter, ledger: Driver) -> None:
    route = server.post("/get_decision").respond(json=answers.decision(importance="my secret memory"))
    with pytest.raises(rl.UnexpectedResponseError, match="importance") as caught:
        ledger.get(answers.MEMORY)
    assert "secret memory" not in str(caught.value)
    assert route.call_count == 1


@pytest.mark.parametrize("answer", ["null", "[]", "3", '{"decisions": 1}'])
def test_json_that_is_no_answer_is_unexpected(server: respx.MockRouter, ledger: Driver, answer: str) -> None:
    server.post("/list_decisions").respond(200, text=answer)
    with pytest.raises(rl.UnexpectedResponseError):
        ledger.walked(ledger.timeline())


def test_nothing_is_sent_for_an_invalid_argument(server: respx.MockRouter, ledger: Driver) -> None:
    with pytest.raises(rl.InvalidArgumentError):
        ledger.record("x", importance=1.5)
    for named in ({"page_size": 0}, {"page_size": 501, "limit": 5}, {"limit": 0}, {"lifecycle": "gone"}):
        with pytest.raises(rl.InvalidArgumentError):
            ledger.timeline(**named)
    assert not server.calls


def test_a_secret_key_goes_in_apikey_only(server: respx.MockRouter, ledger: Driver) -> None:
    route = server.post("/get_decision").respond(json=answers.decision())
    ledger.get(answers.MEMORY)
    sent = route.calls.last.request.headers
    assert sent["apikey"] == KEY
    assert "authorization" not in sent


def test_an_error_of_the_transport_shows_no_key(server: respx.MockRouter, make: MakeDriver) -> None:
    server.post("/get_decision").mock(side_effect=httpx.ConnectError("refused"))
    driver = make(max_retries=0)
    with pytest.raises(rl.NetworkError) as caught:
        driver.get(answers.MEMORY)
    assert KEY not in f"{caught.value!r} {caught.value} {caught.value.__cause__!r} {driver.client!r}"


def test_a_traceback_with_its_locals_shows_no_key(server: respx.MockRouter, make: MakeDriver) -> None:
    server.post("/get_decision").mock(side_effect=httpx.ConnectError("refused"))
    with pytest.raises(rl.NetworkError) as caught:
        make(max_retries=0).get(answers.MEMORY)
    ours = [entry for entry in caught.traceback if "ranked_ledger" in str(entry.path)]
    assert len(ours) >= 3
    assert not [entry for entry in ours if KEY in repr(entry.frame.f_locals)]


def test_a_redirect_is_not_followed(server: respx.MockRouter, make: MakeDriver) -> None:
    elsewhere = server.get("http://elsewhere.test/").respond(200)
    server["version"].respond(302, headers={"Location": "http://elsewhere.test/"})
    probe = make()
    synchronous = isinstance(probe.client, rl.RankedLedger)
    http = httpx.Client(follow_redirects=True) if synchronous else httpx.AsyncClient(follow_redirects=True)
    with pytest.raises(rl.UnexpectedResponseError):
        make(http_client=http).get(answers.MEMORY)
    assert not elsewhere.called
    probe.result(http.close() if isinstance(http, httpx.Client) else http.aclose())


def test_a_closed_client_says_so(server: respx.MockRouter, ledger: Driver) -> None:
    ledger.close()
    with pytest.raises(rl.ConfigurationError, match="closed"):
        ledger.get(answers.MEMORY)


def test_closing_a_copy_leaves_the_connections_open(server: respx.MockRouter, ledger: Driver) -> None:
    server.post("/get_decision").respond(json=answers.decision())
    ledger.with_options(timeout=1).close()
    assert ledger.get(answers.MEMORY).memory_id == answers.MEMORY
