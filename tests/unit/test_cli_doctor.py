"""What the doctor concludes from answers that a healthy server does not give."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import respx

from ranked_ledger import RankedLedger, doctor, settings
from ranked_ledger.cli import app as cli
from ranked_ledger.cli import failures

URL = "http://ledger.test"
REST = f"{URL}/rest/v1"
KEY = "sb_secret_test"
STATUS = {
    "schema_version": 1,
    "postgres_version": "17.6",
    "pgvector_version": "0.8.0",
    "pgvector_schema": "extensions",
}
PATHS = {f"/rpc/{name}": {} for name in doctor.FUNCTIONS}
ABSENT = {"code": "PGRST202", "message": "no such function"}


@pytest.fixture
def ledger() -> Iterator[RankedLedger]:
    with RankedLedger(URL, KEY, workspace="acme", max_retries=0) as ledger:
        yield ledger


def examine(ledger: RankedLedger, **options: str) -> doctor.Diagnosis:
    return doctor.examine(ledger, settings.project(URL, KEY), **options)  # type: ignore[arg-type]


def named(found: doctor.Diagnosis, name: str) -> doctor.Finding:
    return next(one for one in found.findings if one.name == name)


def healthy(mock: respx.MockRouter, *, memory: object = None, **status: object) -> None:
    mock.post(f"{REST}/rpc/ledger_schema_version").respond(json=1)
    mock.post(f"{REST}/rpc/memory_schema_version", headers={"apikey": KEY}).respond(
        404 if memory is None else 200, json=ABSENT if memory is None else memory
    )
    mock.post(f"{REST}/rpc/ledger_status", headers={"apikey": KEY}).respond(json=STATUS | status)
    mock.get(f"{REST}/").respond(json={"paths": PATHS})


def test_our_list_of_functions_is_the_documented_one() -> None:
    text = (Path(__file__).resolve().parents[2] / "docs" / "sql-api.md").read_text(encoding="utf-8")
    table = text.split("## Functions")[1].split("\n## ")[0]
    assert set(re.findall(r"^\| `(\w+)\(", table, re.M)) == set(doctor.FUNCTIONS)


def test_not_installed(ledger: RankedLedger, respx_mock: respx.MockRouter) -> None:
    respx_mock.post(url__startswith=f"{REST}/rpc/").respond(404, json=ABSENT)
    respx_mock.get(url__startswith=f"{REST}/agent_decision_ledger").respond(404, json={"code": "42P01"})
    found = examine(ledger)
    assert not found.healthy
    assert "db push" in (named(found, "installed").next or "")


def test_only_the_long_term_memory_is_installed(ledger: RankedLedger, respx_mock: respx.MockRouter) -> None:
    respx_mock.post(f"{REST}/rpc/memory_schema_version").respond(json=1)
    respx_mock.post(url__startswith=f"{REST}/rpc/").respond(404, json=ABSENT)
    respx_mock.get(url__startswith=f"{REST}/agent_decision_ledger").respond(404, json={"code": "42P01"})
    found = examine(ledger)
    assert found.healthy
    assert named(found, "long-term memory").text == "The long-term memory is installed, schema version 1."
    assert named(found, "installed").state == "note"


@pytest.mark.parametrize(
    ("memory", "said"),
    [
        (None, ("note", "The long-term memory is not installed.")),
        (1, ("ok", "The long-term memory is installed, schema version 1.")),
        ("<html>", None),
    ],
)
def test_the_long_term_memory_beside_the_ledger(
    ledger: RankedLedger, respx_mock: respx.MockRouter, memory: object, said: tuple[str, str] | None
) -> None:
    healthy(respx_mock, memory=memory)
    found = examine(ledger)
    assert found.healthy
    learnt = [(one.state, one.text) for one in found.findings if one.name == "long-term memory"]
    assert learnt == ([] if said is None else [said])


def test_installed_but_not_seen(ledger: RankedLedger, respx_mock: respx.MockRouter) -> None:
    respx_mock.post(url__startswith=f"{REST}/rpc/").respond(404, json=ABSENT)
    respx_mock.get(url__startswith=f"{REST}/agent_decision_ledger").respond(json=[])
    found = examine(ledger)
    assert named(found, "installed").state == "ok"
    assert "notify pgrst, 'reload schema'" in (named(found, "functions").next or "")


def test_a_function_that_is_not_seen(ledger: RankedLedger, respx_mock: respx.MockRouter) -> None:
    healthy(respx_mock)
    respx_mock.get(f"{REST}/").respond(
        json={"paths": {k: v for k, v in PATHS.items() if k != "/rpc/pin_decision"}}
    )
    finding = named(examine(ledger), "functions")
    assert (finding.state, finding.text) == ("problem", "PostgREST does not see pin_decision.")


@pytest.mark.parametrize(
    "answer", [httpx.Response(404), httpx.Response(200, text="<html>"), httpx.Response(200, json=[])]
)
def test_a_list_that_cannot_be_read_is_no_problem(
    ledger: RankedLedger, respx_mock: respx.MockRouter, answer: httpx.Response
) -> None:
    healthy(respx_mock)
    respx_mock.get(f"{REST}/").mock(return_value=answer)
    found = examine(ledger)
    assert named(found, "functions").state == "note"
    assert found.healthy


def test_a_public_key_that_is_let_in(ledger: RankedLedger, respx_mock: respx.MockRouter) -> None:
    healthy(respx_mock)
    respx_mock.post(url__startswith=f"{REST}/rpc/", headers={"apikey": "sb_publishable_x"}).respond(401)
    respx_mock.get(url__startswith=f"{REST}/agent_decision_ledger").respond(json=[])
    respx_mock.get(url__startswith=f"{REST}/agent_decision_edges").respond(403)
    finding = named(examine(ledger, public_key="sb_publishable_x"), "public key")
    assert finding.state == "problem"
    assert "read agent_decision_ledger" in finding.text
    assert "call" not in finding.text


def test_a_gateway_that_fails_says_nothing_about_rights(
    ledger: RankedLedger, respx_mock: respx.MockRouter
) -> None:
    healthy(respx_mock)
    respx_mock.post(url__startswith=f"{REST}/rpc/", headers={"apikey": "eyJ.x.y"}).mock(
        side_effect=httpx.ConnectError
    )
    respx_mock.get(url__startswith=f"{REST}/agent").respond(502)
    assert named(examine(ledger, public_key="eyJ.x.y"), "public key").state == "note"


def test_what_the_ledger_itself_found(ledger: RankedLedger, respx_mock: respx.MockRouter) -> None:
    check = {
        "name": "no_enrolment_failures",
        "ok": False,
        "detail": "2 noted. Call enroll_missing_decisions.",
    }
    failure = {
        "memory_id": "00000000-0000-0000-0000-000000000001",
        "workspace_id": "acme",
        "reason": "full",
        "sqlstate": "53100",
    }
    healthy(respx_mock, checks=[check], recent_failures=[failure])
    found = examine(ledger)
    assert not found.healthy
    assert named(found, "no enrolment failures").next == "`ranked-ledger doctor --mend`"
    assert "full [53100]" in named(found, "not enrolled").text


def test_a_wrong_key_ends_the_examination(ledger: RankedLedger, respx_mock: respx.MockRouter) -> None:
    respx_mock.post(url__startswith=f"{REST}/rpc/").respond(401, json={"message": "Invalid API key"})
    found = examine(ledger)
    assert [one.name for one in found.findings] == ["connection"]
    assert found.as_dict()["status"] is None


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUPABASE_URL", URL)
    monkeypatch.setenv("SUPABASE_SECRET_KEY", KEY)
    for name in ("RANKED_LEDGER_WORKSPACE", "SUPABASE_ANON_KEY", "SUPABASE_PUBLISHABLE_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("ranked_ledger.running.sleep", lambda _: None)


@pytest.mark.usefixtures("environment")
@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (httpx.Response(404, json=ABSENT), failures.NOT_INSTALLED),
        (httpx.Response(401, json={"message": "Invalid API key"}), failures.NO_RIGHT),
        (httpx.Response(503), failures.NO_ANSWER),
        (httpx.ConnectError("refused"), failures.NO_ANSWER),
        (httpx.Response(200, json=99), failures.NOT_INSTALLED),
        (httpx.Response(500, json={"code": "XX000", "message": "broken"}), failures.FAILED),
    ],
)
def test_the_doctor_exits_as_every_other_command_does(
    respx_mock: respx.MockRouter, answer: httpx.Response | Exception, code: int
) -> None:
    respx_mock.post(url__startswith=f"{REST}/rpc/").mock(side_effect=[answer] * 9)
    respx_mock.get(url__startswith=f"{REST}/agent_decision_ledger").respond(404)
    assert cli.run(["doctor"]) == code
    if code != failures.FAILED:
        assert cli.run(["stats", "-w", "acme"]) == code


@pytest.mark.usefixtures("environment")
def test_what_is_looked_at_comes_first(
    respx_mock: respx.MockRouter, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    healthy(respx_mock, decisions=1, streams=1, edges=2, traces=1)
    assert cli.run(["doctor"]) == 0
    shown = capsys.readouterr().out
    assert "About the workspace" not in shown
    assert "1 decision in 1 stream, 2 edges, 1 recall trace." in shown
    monkeypatch.setenv("RANKED_LEDGER_WORKSPACE", "acme")
    assert cli.run(["doctor"]) == 0
    assert "About the workspace acme" in capsys.readouterr().out.splitlines()[0]


def test_mending_ends_where_nothing_moves(ledger: RankedLedger, respx_mock: respx.MockRouter) -> None:
    respx_mock.post(f"{REST}/rpc/ledger_schema_version").respond(json=1)
    route = respx_mock.post(f"{REST}/rpc/enroll_missing_decisions")
    route.side_effect = [
        httpx.Response(200, json={"enrolled": 5, "settled": 1, "failed": 0, "more": True}),
        httpx.Response(200, json={"enrolled": 0, "settled": 0, "failed": 3, "more": True}),
    ]
    done = doctor.mend(ledger)
    assert (done.enrolled, done.settled, done.failed, done.more) == (5, 1, 3, True)
    assert route.call_count == 2
