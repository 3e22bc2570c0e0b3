"""What the doctor says of the copies that recall searches: how far it looked, what differs, what to do."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import httpx
import pytest
import respx

from ranked_ledger import RankedLedger, Status, proving
from ranked_ledger.cli import app as cli

URL = "http://ledger.test"
RPC = f"{URL}/rest/v1/rpc"
KEY = "sb_secret_test"
LAST = UUID(int=9)


@pytest.fixture
def ledger(respx_mock: respx.MockRouter) -> Iterator[RankedLedger]:
    respx_mock.post(f"{RPC}/ledger_schema_version").respond(json=1)
    with RankedLedger(URL, KEY, workspace="any", max_retries=0) as ledger:
        yield ledger


def status(*decisions: tuple[str, int], **numbers: int) -> Status:
    spaces = [{"workspace_id": name, "decisions": number} for name, number in decisions]
    enrolled = sum(number for _, number in decisions)
    return Status.model_validate({"schema_version": 1, "enrolled": enrolled, "workspaces": spaces, **numbers})


def page(checked: int, *wrong: UUID, more: UUID | None = None, mended: bool = False) -> httpx.Response:
    answer = {
        "checked": checked,
        "wrong": [str(one) for one in wrong],
        "mended": mended,
        "next": more and str(more),
    }
    return httpx.Response(200, json=answer)


def copies(mock: respx.MockRouter, *pages: httpx.Response) -> respx.Route:
    route = mock.post(f"{RPC}/check_copies")
    route.side_effect = pages
    return route


def sent(route: respx.Route) -> list[dict[str, Any]]:
    return [json.loads(call.request.content) for call in route.calls]


def test_every_page_of_every_workspace(ledger: RankedLedger, respx_mock: respx.MockRouter) -> None:
    route = copies(respx_mock, page(500, more=LAST), page(20), page(7))
    told: list[tuple[int, int]] = []
    proof = proving.prove(
        ledger, status(("acme", 520), ("b", 7)), on_progress=lambda done, of: told.append((done, of))
    )
    assert sent(route) == [
        {"p_workspace_id": "acme", "p_limit": 500},
        {"p_workspace_id": "acme", "p_limit": 500, "p_after": str(LAST)},
        {"p_workspace_id": "b", "p_limit": 500},
    ]
    assert told == [(500, 527), (520, 527), (527, 527)]
    found = proof.finding()
    assert (found.state, found.next) == ("ok", None)
    assert found.text == "Checked: 527 decisions; what recall searches is what the tables say."


def test_no_more_than_asked_for(ledger: RankedLedger, respx_mock: respx.MockRouter) -> None:
    route = copies(respx_mock, page(500, more=LAST), page(100, more=LAST))
    proof = proving.prove(ledger, status(("acme", 900), ("b", 7)), at_most=600)
    assert [body["p_limit"] for body in sent(route)] == [500, 100]
    found = proof.finding()
    assert (found.state, found.next) == ("ok", "`ranked-ledger doctor --all-copies` checks every one")
    assert found.text.startswith("Checked: 600 of 907 decisions;")


def test_all_of_them(ledger: RankedLedger, respx_mock: respx.MockRouter) -> None:
    pages = [page(500, more=LAST)] * 20
    route = copies(respx_mock, *pages, page(3))
    proof = proving.prove(ledger, status(("acme", 10_003)), at_most=None)
    assert (proof.checked, proof.cut, route.call_count) == (10_003, False, 21)


def test_what_is_set_aside_is_checked_too_and_is_no_rest(
    ledger: RankedLedger, respx_mock: respx.MockRouter
) -> None:
    copies(respx_mock, page(5))
    found = proving.prove(ledger, status(("acme", 5), set_aside=2), at_most=None).finding()
    assert (found.state, found.next) == ("ok", None)


def test_workspaces_beyond_the_hundred_that_are_listed(
    ledger: RankedLedger, respx_mock: respx.MockRouter
) -> None:
    copies(respx_mock, page(5))
    found = proving.prove(ledger, status(("acme", 5), enrolled=8), at_most=None).finding()
    assert found.text.startswith("Checked: 5 of 8 decisions")
    assert "--workspace" in (found.next or "")


def test_a_workspace_under_a_name_that_cannot_be_asked_for(
    ledger: RankedLedger, respx_mock: respx.MockRouter
) -> None:
    route = copies(respx_mock, page(1))
    proof = proving.prove(ledger, status((" ", 2), ("acme", 1)))
    assert [body["p_workspace_id"] for body in sent(route)] == ["acme"]
    assert (proof.checked, proof.known, proof.error) == (1, 3, None)


def test_copies_that_differ(ledger: RankedLedger, respx_mock: respx.MockRouter) -> None:
    copies(respx_mock, page(9, *[UUID(int=one) for one in range(7)]))
    proof = proving.prove(ledger, status(("acme", 9)))
    found = proof.finding()
    assert (found.state, found.next) == ("problem", "`ranked-ledger doctor --mend`")
    assert f"The copies of 7 decisions ({UUID(int=0)} in acme, " in found.text
    assert f"{UUID(int=4)} in acme and 2 more) differ from the tables" in found.text
    assert proof.as_dict()["wrong"][6] == {"workspace_id": "acme", "memory_id": str(UUID(int=6))}


def test_mending_renews_after_each_page_and_once_more(
    ledger: RankedLedger, respx_mock: respx.MockRouter
) -> None:
    route = copies(respx_mock, page(500, LAST, more=LAST, mended=True), page(1))
    renewed = respx_mock.post(f"{RPC}/enroll_missing_decisions").respond(json={"enrolled": 0})
    proof = proving.prove(ledger, status(("acme", 501)), mend=True)
    assert [body["p_mend"] for body in sent(route)] == [True, True]
    assert renewed.call_count == 2
    found = proof.finding()
    assert (found.state, proof.mended) == ("note", True)
    assert "(00000000-0000-0000-0000-000000000009 in acme) differed from the tables." in found.text
    assert "are made anew" in found.text


def test_marks_are_enough_where_renewing_fails(ledger: RankedLedger, respx_mock: respx.MockRouter) -> None:
    copies(respx_mock, page(1, LAST, mended=True))
    respx_mock.post(f"{RPC}/enroll_missing_decisions").respond(500, json={"code": "57014", "message": "x"})
    proof = proving.prove(ledger, status(("acme", 1)), mend=True)
    assert (proof.mended, proof.error) == (True, None)


def test_an_older_schema_is_said_to_be_one(ledger: RankedLedger, respx_mock: respx.MockRouter) -> None:
    copies(respx_mock, httpx.Response(404, json={"code": "PGRST202", "message": "no such function"}))
    found = proving.prove(ledger, status(("acme", 1))).finding()
    assert found.state == "note"
    assert found.text == "The copies that recall searches were not checked: the schema is older."
    assert "migrations" in (found.next or "")


def test_a_walk_that_ends_early_tells_what_it_found(
    ledger: RankedLedger, respx_mock: respx.MockRouter
) -> None:
    slow = httpx.Response(500, json={"code": "57014", "message": "canceling statement"})
    copies(respx_mock, page(500, LAST, more=LAST), slow)
    found = proving.prove(ledger, status(("acme", 700))).finding()
    assert (found.state, found.next) == ("problem", "`ranked-ledger doctor --mend`")
    assert "Not all copies could be checked: canceling statement." in found.text
    assert "Checked: 500 of 700 decisions; what recall searches of the others is" in found.text


def test_nothing_is_claimed_where_nothing_was_looked_at(
    ledger: RankedLedger, respx_mock: respx.MockRouter
) -> None:
    copies(respx_mock, httpx.Response(403, json={"code": "42501", "message": "no"}))
    found = proving.prove(ledger, status(("acme", 1))).finding()
    assert found.state == "note"
    assert "Checked" not in found.text
    assert "no decision yet" in proving.prove(ledger, status()).finding().text


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUPABASE_URL", URL)
    monkeypatch.setenv("SUPABASE_SECRET_KEY", KEY)
    for name in ("RANKED_LEDGER_WORKSPACE", "SUPABASE_ANON_KEY", "SUPABASE_PUBLISHABLE_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("environment")
def test_the_doctor_is_not_well_where_copies_differ(
    respx_mock: respx.MockRouter, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = status(("acme", 6_000)).model_dump(mode="json")
    respx_mock.post(f"{RPC}/ledger_schema_version").respond(json=1)
    respx_mock.post(f"{RPC}/memory_schema_version").respond(json=1)
    respx_mock.post(f"{RPC}/ledger_status").respond(json=answer)
    respx_mock.get(f"{URL}/rest/v1/").respond(404)
    route = respx_mock.post(f"{RPC}/check_copies").mock(return_value=page(500, more=LAST))
    assert cli.run(["doctor", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["copies"]["checked"] == 5_000
    route.side_effect = [page(500, LAST, more=LAST), *[page(500, more=LAST)] * 10, page(500)]
    assert cli.run(["doctor", "--all-copies"]) == 1
    shown = " ".join(capsys.readouterr().out.split())
    assert "Checked: 6,000 decisions" in shown
    assert "Next: `ranked-ledger doctor --mend`" in shown
