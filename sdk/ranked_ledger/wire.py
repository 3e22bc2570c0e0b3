"""Between a `Call` and HTTP: a call as bytes, an answer as a value, a failure as one of our errors. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from types import MappingProxyType
from typing import Any, Final, TypeVar

import httpx

from ranked_ledger import wording
from ranked_ledger.calls import Call
from ranked_ledger.errors import (
    HINTS,
    ConfigurationError,
    InvalidArgumentError,
    NetworkError,
    RankedLedgerError,
    RateLimitError,
    RequestTimeoutError,
    SchemaTooNewError,
    SchemaTooOldError,
    ServiceUnavailableError,
    UnexpectedResponseError,
    classify,
    hint_for,
)
from ranked_ledger.wording import Store

T = TypeVar("T")

# The versions of each store's schema that this package works with: `ledger_schema_version()` and
# `memory_schema_version()` answer one number.
SCHEMAS: Final[Mapping[Store, tuple[int, int]]] = MappingProxyType({"ledger": (1, 1), "memory": (1, 1)})
_NAMES: Final[Mapping[Store, str]] = MappingProxyType(
    {"ledger": "the ledger", "memory": "the long-term memory"}
)
_UPDATES: Final[Mapping[Store, str]] = MappingProxyType(
    {"ledger": "ranked-ledger init", "memory": "ranked-ledger init --long-term-memory"}
)

_REQUEST_ID_HEADERS: Final = ("sb-request-id", "x-request-id", "cf-ray")
_QUOTED_CHARACTERS: Final = 120
# What the stores themselves raise, next to RL...: these sentences name their functions and arguments.
_OURS: Final[Mapping[Store, tuple[str, ...]]] = MappingProxyType(
    {"ledger": ("22023", "0A000"), "memory": ("22023", "0A000", "42501")}
)


def encode(call: Call[Any]) -> bytes:
    """The body of a call. What JSON or UTF-8 cannot hold is an invalid argument."""
    try:
        return json.dumps(call.body, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode()
    except (TypeError, ValueError) as wrong:
        raise InvalidArgumentError(f"{call.function} was given something that is not JSON: {wrong}") from None


def decode(call: Call[T], response: httpx.Response, now: datetime) -> T:
    """The call's value, or the error that the answer stands for. `now` is for `Retry-After` dates."""
    if not response.is_success:
        raise _refusal(call.store, response, now)
    try:
        answer = json.loads(response.content)
    except (ValueError, RecursionError):
        raise _unreadable(response) from None
    try:
        return call.parse(answer)
    except (ValueError, TypeError, KeyError, AttributeError) as wrong:
        raise UnexpectedResponseError(
            f"the answer to {call.function} has another shape than expected: {_places(wrong)}",
            hint="check with `ranked-ledger doctor` that the schema and this package fit",
            status=response.status_code,
            request_id=request_id(response.headers),
        ) from None


def failure(problem: httpx.HTTPError | httpx.InvalidURL) -> RankedLedgerError:
    """The error for a request that got no complete answer."""
    what = str(problem) or type(problem).__name__
    match problem:
        case httpx.TimeoutException():
            timeout = RequestTimeoutError(f"no answer in time: {what}", hint=HINTS[RequestTimeoutError])
            timeout.sent = not isinstance(problem, (httpx.ConnectTimeout, httpx.PoolTimeout))
            return timeout
        case httpx.UnsupportedProtocol() | httpx.InvalidURL() | httpx.LocalProtocolError():
            return ConfigurationError(f"the request cannot be sent: {what}", hint="check the URL and the key")
        case httpx.DecodingError():
            return UnexpectedResponseError(f"the answer cannot be decoded: {what}")
        case _:
            network = NetworkError(f"no answer: {what}", hint=HINTS[NetworkError])
            network.sent = not isinstance(problem, (httpx.ConnectError, httpx.ProxyError))
            return network


def check_version(version: int, store: Store = "ledger") -> None:
    """Raise unless this package works with that version of the store's schema."""
    oldest, newest = SCHEMAS[store]
    told = f"{_NAMES[store]}'s schema has version {version}; this package works with {oldest} to {newest}"
    if version < oldest:
        raise SchemaTooOldError(
            told,
            hint=f"run `{_UPDATES[store]}` and `supabase db push` to bring the schema up to date",
        )
    if version > newest:
        raise SchemaTooNewError(
            told,
            hint="run `pip install --upgrade ranked-ledger`",
        )


def retry_after(value: str | None, now: datetime) -> float | None:
    """The seconds of a `Retry-After` header, a number or an HTTP date; None where it says neither."""
    if value is None:
        return None
    value = value.strip()
    if value.isascii() and value.isdigit():
        return float(value)
    try:
        moment = parsedate_to_datetime(value)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - now).total_seconds())


def _refusal(store: Store, response: httpx.Response, now: datetime) -> RankedLedgerError:
    told = told_by(response)
    code = text_of(told.get("code"))
    # PostgREST's 400 with an empty SQLSTATE: the database's process ended in the middle of the statement
    broke_off = told.get("code") == "" and "message" in told
    kind = ServiceUnavailableError if broke_off else classify(code, response.status_code)
    message = next(
        (
            text
            for name in ("message", "msg", "error_description", "error")
            if (text := text_of(told.get(name)))
        ),
        "the database broke off the call without an answer"
        if broke_off
        else f"the server answered {response.status_code} {response.reason_phrase}".rstrip(),
    )
    hint = text_of(told.get("hint"))
    if not _is_ours(code, hint, store):
        hint = hint_for(kind, store) or hint
    if code and (code.startswith("RL") or code in _OURS[store]):
        message, hint = wording.of_the_sdk(message, store), hint and wording.of_the_sdk(hint, store)
    error = kind(
        message,
        code=code,
        detail=text_of(told.get("details")),
        hint=hint,
        status=response.status_code,
        request_id=request_id(response.headers),
    )
    if isinstance(error, (RateLimitError, ServiceUnavailableError)):
        error.retry_after = retry_after(response.headers.get("retry-after"), now)
    return error


def _is_ours(code: str | None, hint: str | None, store: Store) -> bool:
    """Whether the hint says what to do in words of ours.

    The second store tells people which role it takes. PostgREST's own advice about 42501, to GRANT the right,
    is not passed on: rights are given by the migrations alone.
    """
    if code == "42501" and store == "memory":
        return hint is not None and "GRANT " not in hint
    return bool(code and code.startswith("RL"))


def _unreadable(response: httpx.Response) -> UnexpectedResponseError:
    kind = response.headers.get("content-type", "no content type")
    begin = response.text[:_QUOTED_CHARACTERS].strip()
    error = UnexpectedResponseError(
        f"the server answered {response.status_code} with {kind} instead of JSON",
        detail=f"it begins: {begin!r}" if begin else "it is empty",
        hint=HINTS[UnexpectedResponseError],
        status=response.status_code,
        request_id=request_id(response.headers),
    )
    error.readable = False
    return error


def _places(wrong: Exception) -> str:
    """Where the shape differs, without the values: they may be somebody's memory."""
    errors = getattr(wrong, "errors", None)
    if callable(errors):
        found = errors(include_url=False, include_input=False, include_context=False)
        return ", ".join(
            f"{'.'.join(map(str, one['loc'])) or 'the answer'} ({one['type']})" for one in found[:3]
        )
    return f"{type(wrong).__name__} {wrong}"


def told_by(response: httpx.Response) -> Mapping[str, Any]:
    """The object that a refusal holds; empty where it holds none."""
    try:
        body = json.loads(response.content)
    except (ValueError, RecursionError):
        body = None
    return body if isinstance(body, dict) else {}


def request_id(headers: Mapping[str, str]) -> str | None:
    """The gateway's name of a request, to quote in a support case."""
    return next((headers[name] for name in _REQUEST_ID_HEADERS if name in headers), None)


def text_of(value: object) -> str | None:
    """What a field of a refusal says, as text; None where it says nothing."""
    if value is None or value == "":
        return None
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
