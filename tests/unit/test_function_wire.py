"""Whatever a function answers, it is a value or an error of ours; the patch's codes are those of its module."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ranked_ledger as rl
from ranked_ledger.function import errands, wire
from tests.unit import sdk_answers as answers
from tests.unit.test_function_errands import BARE, QUESTION, RECORD

NOW = datetime(2026, 11, 30, tzinfo=UTC)
MODULE = Path(__file__).resolve().parents[2] / "patches" / "agent-memory-api" / "ranked_ledger.ts"

RECALL = errands.recall(BARE, "x", **QUESTION)
RECORDING = errands.record(BARE, "x", **RECORD)
SUPERSEDING = errands.supersede("acme", answers.MEMORY, by=answers.OTHER, reason=None, actor=None)
EVERY: list[errands.Errand[Any]] = [
    errands.health(),
    RECALL,
    errands.recall_by_vector(
        BARE,
        "x",
        limit=5,
        recency_days=None,
        only_confirmed=False,
        include_personal=True,
        include_stale=False,
    ),
    errands.mark_usage(answers.REQUEST, used=answers.MEMORY),
    RECORDING,
    SUPERSEDING,
]


def refusal(
    errand: errands.Errand[Any], status: int, body: object = None, **headers: str
) -> rl.RankedLedgerError:
    content = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    with pytest.raises(rl.RankedLedgerError) as caught:
        wire.decode(errand, httpx.Response(status, content=content, headers=headers), NOW)
    return caught.value


def test_every_code_of_the_module_has_its_class() -> None:
    text = MODULE.read_text(encoding="utf-8")
    table = text.split("const UNAVAILABLE = {")[1].split("} as const")[0]
    codes = set(re.findall(r"^  (\w+): \[", table, re.MULTILINE))
    codes |= set(re.findall(r'new LedgerRefusal\(\s*\d+,\s*"(\w+)"', text))
    assert len(codes) > 5
    assert codes == set(wire.BY_CODE)


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (503, {"error": "no", "code": "not_installed", "hint": "push"}, rl.NotInstalledError),
        (503, {"error": "no", "code": "bypassed", "hint": "patch"}, rl.NotPatchedError),
        (503, {"error": "no", "code": "unreachable", "hint": None}, rl.ServiceUnavailableError),
        (503, {"error": "no", "code": "timeout", "hint": None}, rl.RequestTimeoutError),
        (503, {"error": "no", "code": "a_newer_one", "hint": None}, rl.ServiceUnavailableError),
        (400, {"error": "p_fusion is wrong", "code": "22023", "hint": None}, rl.InvalidArgumentError),
        (404, {"error": "no", "code": "RL404", "hint": None}, rl.NotFoundError),
        (410, {"error": "no", "code": "RL410", "hint": None}, rl.GoneError),
        (409, {"error": "no", "code": "RL461", "hint": None}, rl.LoopError),
        (400, {"error": "the body is invalid", "issues": []}, rl.InvalidArgumentError),
        (401, {"error": "the access key is missing or wrong"}, rl.AuthenticationError),
        (401, {"code": 401, "message": "Missing authorization header"}, rl.AuthenticationError),
        (403, {"error": "no"}, rl.PermissionDeniedError),
        (404, {"error": "no such recall"}, rl.NotFoundError),
        (404, {"code": "NOT_FOUND", "message": "no such function"}, rl.UnexpectedResponseError),
        (404, "404 Not Found", rl.UnexpectedResponseError),
        (422, {"error": "a decision is refused: it holds a secret"}, rl.InvalidArgumentError),
        (429, {"message": "slow down"}, rl.RateLimitError),
        (500, {"error": "boom"}, rl.APIError),
        (502, "<html>", rl.ServiceUnavailableError),
        (503, {"code": "BOOT_ERROR", "message": "cannot start"}, rl.ServiceUnavailableError),
        (546, {"code": "WORKER_LIMIT", "message": "too much"}, rl.ServiceUnavailableError),
        (302, "", rl.UnexpectedResponseError),
    ],
)
def test_a_refusal_is_mapped_by_code_and_status(
    status: int, body: object, expected: type[rl.RankedLedgerError]
) -> None:
    error = refusal(RECALL, status, body)
    assert type(error) is expected
    assert error.status == status


def test_the_ledgers_words_reach_people_in_the_sdks_names() -> None:
    body = {"error": "p_max_tokens is 5", "code": "22023", "hint": "list_decisions shows what is here."}
    assert str(refusal(RECALL, 400, body)) == (
        "max_tokens is 5. Next: timeline() shows what is here. [22023, HTTP 400]"
    )


def test_what_zod_found_wrong_is_named() -> None:
    issues = [{"path": ["limits", "max_items"], "message": "too big"}, {"path": [], "message": "odd"}, 5]
    error = refusal(RECALL, 400, {"error": "the body is invalid", "issues": issues})
    assert "limits.max_items: too big; the body: odd" in str(error)


def test_a_wrong_key_names_where_the_right_one_is() -> None:
    assert "MCP_ACCESS_KEY" in str(refusal(RECALL, 401, {"error": "no"}))


def test_retry_after_is_read() -> None:
    error = refusal(RECALL, 503, {"message": "busy"}, **{"retry-after": "7"})
    assert isinstance(error, rl.ServiceUnavailableError)
    assert error.retry_after == 7


# what zod 3 and zod 4 say of an object where a string is wanted
@pytest.mark.parametrize(
    "issue",
    [
        {"code": "invalid_type", "expected": "string", "received": "object", "path": ["decisions", 0]},
        {"expected": "string", "code": "invalid_type", "path": ["payload", "decisions", 0], "message": "x"},
    ],
)
@pytest.mark.parametrize("form", ["issues", "nested"])
def test_a_function_that_takes_plain_texts_only_lacks_a_part(issue: dict[str, Any], form: str) -> None:
    body = {"error": "no", "issues": [issue]} if form == "issues" else {"error": {"issues": [issue]}}
    error = refusal(RECORDING, 400, body)
    assert type(error) is rl.NotPatchedError
    assert "write-back" in str(error)
    assert "ranked-ledger patch apply" in str(error)


@pytest.mark.parametrize(("path", "keys"), [(["ranking"], ["preset"]), (["ranking", "weights"], ["summary"])])
def test_a_function_that_does_not_know_what_the_ranking_is_asked_is_older(
    path: list[str], keys: list[str]
) -> None:
    issue = {"code": "unrecognized_keys", "keys": keys, "path": path, "message": "Unrecognized key"}
    error = refusal(RECALL, 400, {"error": "no", "issues": [issue]})
    assert type(error) is rl.NotPatchedError
    assert "older patch" in str(error)
    assert "ranked-ledger patch apply" in str(error)
    issue["path"] = ["scope"]
    assert type(refusal(RECALL, 400, {"error": "no", "issues": [issue]})) is rl.InvalidArgumentError


def test_an_invalid_decision_is_no_missing_part() -> None:
    issue = {"code": "too_big", "path": ["decisions", 0, "importance"], "message": "too big"}
    error = refusal(RECORDING, 400, {"error": "A decision is not valid.", "issues": [issue]})
    assert type(error) is rl.InvalidArgumentError


def test_a_supersession_that_breaks_down_lacks_a_part() -> None:
    error = refusal(SUPERSEDING, 500, {"error": "multiple (or no) rows returned"})
    assert type(error) is rl.NotPatchedError
    assert error.detail == "multiple (or no) rows returned"
    assert type(refusal(RECALL, 500, {"error": "x"})) is rl.APIError


@pytest.mark.parametrize("body", [{"error": "fetch failed"}, "Internal Server Error"])
def test_a_failure_of_the_function_itself_names_its_log(body: object) -> None:
    for errand in EVERY:
        if errand is not SUPERSEDING:  # which lacks a part
            hint = refusal(errand, 500, body).hint or ""
            assert "function's own log" in hint
            embeds = errand.function in ("record", "recall_by_vector")
            assert ("embedding service" in hint) is embeds
    assert refusal(RECALL, 418, {"error": "x"}).hint is None


def test_a_page_instead_of_json_names_the_url_of_a_function() -> None:
    error = refusal(RECALL, 200, "<html>sign in</html>")
    assert type(error) is rl.UnexpectedResponseError
    assert "/functions/v1/agent-memory-api" in str(error)


plain = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
values = st.recursive(
    plain, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
)
named = st.sampled_from(
    "code error issues details path expected hint policy recall_policy memories ledger hit request_id by ok".split()
)
objects = st.dictionaries(
    named, values | st.lists(st.dictionaries(named, values), max_size=2) | st.dictionaries(named, values)
)
bodies = st.binary(max_size=60) | (values | objects).map(lambda value: json.dumps(value).encode())


@given(st.sampled_from(EVERY), st.integers(200, 599), bodies)
def test_nothing_but_values_and_our_errors_come_out(
    errand: errands.Errand[Any], status: int, body: bytes
) -> None:
    try:
        wire.decode(errand, httpx.Response(status, content=body), NOW)
    except rl.RankedLedgerError:
        return
