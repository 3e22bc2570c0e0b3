"""Between an `Errand` and HTTP, as `ranked_ledger.wire` is for the database's functions. Pure.

A refusal is `{error, code, hint}` where the patch gives it, `{error, ...}` in a form of the copy's own where
the function does, and the platform's where neither was reached. Codes and statuses are mapped, never texts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final, TypeVar

import httpx

from ranked_ledger import errors, wire, wording
from ranked_ledger.errors import (
    HINTS,
    APIError,
    AuthenticationError,
    ConflictError,
    InvalidArgumentError,
    NotFoundError,
    NotInstalledError,
    NotPatchedError,
    PermissionDeniedError,
    RankedLedgerError,
    RateLimitError,
    RequestTimeoutError,
    ServiceUnavailableError,
    UnexpectedResponseError,
)
from ranked_ledger.function.errands import PATCH_HINT, Errand

T = TypeVar("T")

# What the patch answers besides the codes of the database.
BY_CODE: Final[Mapping[str, type[RankedLedgerError]]] = MappingProxyType(
    {
        "by_missing": InvalidArgumentError,
        "bypassed": NotPatchedError,
        "failed": ServiceUnavailableError,
        "key_refused": ServiceUnavailableError,
        "not_configured": ServiceUnavailableError,
        "not_installed": NotInstalledError,
        "timeout": RequestTimeoutError,
        "unexpected": ServiceUnavailableError,
        "unreachable": ServiceUnavailableError,
    }
)
BY_STATUS: Final[Mapping[int, type[RankedLedgerError]]] = MappingProxyType(
    {
        **errors.BY_STATUS,
        400: InvalidArgumentError,
        401: AuthenticationError,
        403: PermissionDeniedError,
        404: NotFoundError,
        409: ConflictError,
        422: InvalidArgumentError,
        546: ServiceUnavailableError,  # Supabase's own: the function went beyond its memory or time
    }
)

_PLACE: Final = (
    "check that the URL is that of an agent-memory-api function, such as "
    "https://<project>.supabase.co/functions/v1/agent-memory-api"
)
_HINTS: Final[Mapping[type[RankedLedgerError], str]] = MappingProxyType(
    {
        AuthenticationError: "use the access key that the function has as MCP_ACCESS_KEY; where the platform "
        "asks for a JWT before the function is reached, deploy it with --no-verify-jwt",
        PermissionDeniedError: "use the access key that the function has as MCP_ACCESS_KEY",
        ConflictError: "use a new idempotency key for a new request",
        NotPatchedError: PATCH_HINT,
        UnexpectedResponseError: _PLACE,
    }
)
_LATE: Final = (
    "a function that writes its trace in the background may not have written it yet: try again in a moment; "
    "where that does not help, check that the recall went through this function"
)
_FAILED: Final = (
    "look in the function's own log, for the failure is its own: in the dashboard under Edge Functions, or "
    "where `supabase functions serve` runs"
)
_EMBEDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "record": "a function embeds what it stores by itself",
        "recall_by_vector": "a function embeds by itself what its own search is asked",
    }
)
_REFUSED_TEXT: Final = "take what looks like a secret or a transcript out of the text"
_MOST_ISSUES: Final = 3


def decode(errand: Errand[T], response: httpx.Response, now: datetime) -> T:
    """The errand's value, or the error that the answer stands for. `now` is for `Retry-After` dates."""
    if not response.is_success:
        raise _refusal(errand, response, now)
    try:
        return wire.decode(errand, response, now)
    except UnexpectedResponseError as error:
        error.hint = f"{_PLACE}, and that its patch is up to date: {PATCH_HINT}"
        raise


def _refusal(errand: Errand[Any], response: httpx.Response, now: datetime) -> RankedLedgerError:
    told, status = wire.told_by(response), response.status_code
    said = wire.text_of(told.get("error"))
    code = wire.text_of(told.get("code")) if said else None  # the platform's codes are not the patch's
    lacking = None if code else _lacking(errand, told, status)
    kind = NotPatchedError if lacking else _kind(told, code, status)
    said = said or wire.text_of(told.get("message")) or wire.text_of(told.get("msg"))
    issues = "; ".join(_issues(told)) or None
    message = lacking or said or f"the function answered {status} {response.reason_phrase}".rstrip()
    hint = wire.text_of(told.get("hint")) if code else None
    error = kind(
        wording.of_the_sdk(message) if code else message,
        code=code,
        detail=said if lacking else issues,
        hint=wording.of_the_sdk(hint) if hint else _hint(errand, kind, status),
        status=status,
        request_id=wire.request_id(response.headers),
    )
    if isinstance(error, (RateLimitError, ServiceUnavailableError)):
        error.retry_after = wire.retry_after(response.headers.get("retry-after"), now)
    return error


def _kind(told: Mapping[str, Any], code: str | None, status: int) -> type[RankedLedgerError]:
    if code is not None:
        if code in BY_CODE:
            return BY_CODE[code]
        known = errors.classify(code, status)
        if known is not APIError:
            return known
    if status == 404 and "error" not in told:
        return UnexpectedResponseError  # no route, or no function
    return BY_STATUS.get(status, APIError if status >= 400 else UnexpectedResponseError)


def _lacking(errand: Errand[Any], told: Mapping[str, Any], status: int) -> str | None:
    """Which part of the patch a function lacks that says this to the errand."""
    # an update of nothing: the function's own supersede has never worked
    if errand.function == "supersede" and status == 500:
        return (
            "the function could not supersede: it lacks that part of the patch, or the decision is not one "
            "of this workspace"
        )
    if errand.function == "recall" and any(map(_is_of_unknown_ranking, _found_issues(told))):
        return "the function carries an older patch, which does not know all that the ranking is asked"
    if errand.function == "record" and any(map(_is_of_plain_text, _found_issues(told))):
        return "the function takes decisions as plain texts only: it lacks the write-back part of the patch"
    return None


def _is_of_unknown_ranking(issue: Mapping[str, Any]) -> bool:
    """Whether zod does not know a name of ours."""
    return issue.get("code") == "unrecognized_keys" and _path(issue)[:1] == ["ranking"]


def _is_of_plain_text(issue: Mapping[str, Any]) -> bool:
    """Whether zod says that the decision should have been a string."""
    wanted = (issue.get("code"), issue.get("expected"))
    return wanted == ("invalid_type", "string") and _path(issue)[-2:] == ["decisions", 0]


def _hint(errand: Errand[Any], kind: type[RankedLedgerError], status: int) -> str | None:
    if status == 422 and kind is InvalidArgumentError:
        return _REFUSED_TEXT
    if errand.late and kind is NotFoundError:
        return _LATE
    if kind is APIError and status >= 500:
        embeds = _EMBEDS.get(errand.function)
        return f"{_FAILED}; {embeds} and needs its embedding service for that" if embeds else _FAILED
    return _HINTS.get(kind) or HINTS.get(kind)


def _issues(told: Mapping[str, Any]) -> Iterator[str]:
    """What zod found wrong with the request, the first of it."""
    for one in _found_issues(told)[:_MOST_ISSUES]:
        place = ".".join(map(str, _path(one))) or "the body"
        yield f"{place}: {wire.text_of(one.get('message')) or 'is wrong'}"


def _found_issues(told: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    error = told.get("error")
    places = (told, error) if isinstance(error, Mapping) else (told,)
    for place in places:
        for name in ("issues", "errors", "details"):
            found = place.get(name)
            if isinstance(found, list):
                return [one for one in found if isinstance(one, Mapping)]
    return []


def _path(issue: Mapping[str, Any]) -> list[Any]:
    path = issue.get("path")
    return path if isinstance(path, list) else []
