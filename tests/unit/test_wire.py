"""Whatever comes back, it is a value of the call or an error of ours."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranked_ledger import InvalidArgumentError, RankedLedgerError, calls, wire
from tests.contract.test_sdk_twins_and_contract import EVERY_CALL

NOW = datetime(2026, 11, 30, tzinfo=UTC)

plain = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
values = st.recursive(
    plain, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
)
named = st.sampled_from(
    ["code", "message", "details", "hint", "decisions", "next", "hits", "arguments", "replayed"]
)
bodies = st.binary(max_size=60) | (values | st.dictionaries(named, values)).map(
    lambda value: json.dumps(value).encode()
)


@given(
    st.sampled_from(EVERY_CALL),
    st.integers(200, 599),
    bodies,
    st.text(st.characters(codec="ascii", categories=["L", "N"])),
)
def test_nothing_but_values_and_our_errors_come_out(
    call: calls.Call[object], status: int, body: bytes, header: str
) -> None:
    response = httpx.Response(
        status, content=body, headers={"retry-after": header, "content-type": header or "x"}
    )
    try:
        wire.decode(call, response, NOW)
    except RankedLedgerError:
        return


def test_a_body_that_is_nested_beyond_reason_is_unreadable() -> None:
    response = httpx.Response(200, content=b"[" * 100_000)
    with pytest.raises(RankedLedgerError):
        wire.decode(calls.schema_version(), response, NOW)


def test_a_call_is_sent_as_small_utf8() -> None:
    call = calls.Call("f", {"p_a": "\u00e4", "p_b": [1.5]}, lambda answer: answer)
    assert wire.encode(call) == '{"p_a":"\u00e4","p_b":[1.5]}'.encode()


@pytest.mark.parametrize("value", [float("nan"), object(), "\ud800"])
def test_what_json_cannot_hold_is_an_invalid_argument(value: object) -> None:
    with pytest.raises(InvalidArgumentError):
        wire.encode(calls.Call("f", {"p_a": value}, lambda answer: answer))


@pytest.mark.parametrize(
    ("problem", "sent"),
    [
        (httpx.ConnectTimeout("x"), False),
        (httpx.PoolTimeout("x"), False),
        (httpx.ReadTimeout("x"), True),
        (httpx.WriteTimeout("x"), True),
        (httpx.ConnectError("x"), False),
        (httpx.ReadError("x"), True),
        (httpx.WriteError("x"), True),
        (httpx.RemoteProtocolError("x"), True),
    ],
)
def test_a_failure_knows_whether_anything_was_sent(problem: httpx.HTTPError, sent: bool) -> None:
    assert wire.failure(problem).sent is sent  # type: ignore[attr-defined]


def test_the_schema_of_this_repository_is_one_that_the_sdk_knows() -> None:
    sources = Path(__file__).resolve().parents[2] / "supabase" / "schemas" / "decision_ledger"
    (source,) = sources.glob("*_ledger_schema_version.sql")
    found = re.search(r"(?:return|select)\s+(\d+)", source.read_text(encoding="utf-8"))
    assert found is not None
    wire.check_version(int(found[1]))
