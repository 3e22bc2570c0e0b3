"""How an error reads, travels and is classified."""

from __future__ import annotations

import copy
import pickle

import pytest

from ranked_ledger import APIError, NotFoundError, RankedLedgerError, RateLimitError, errors


def test_an_error_says_what_to_do_next() -> None:
    error = NotFoundError(
        "no such decision.", hint="check the id", code="RL404", detail="in acme", status=400
    )
    assert str(error) == "no such decision. in acme. Next: check the id [RL404, HTTP 400]"
    assert str(RankedLedgerError("no")) == "no"


def test_what_the_message_says_already_is_not_said_again() -> None:
    path = "a -> b -> a"
    loop = errors.LoopError(f"depends_on would close a cycle: {path}", detail=path, hint="Remove one.")
    assert str(loop) == f"depends_on would close a cycle: {path}. Next: Remove one."
    wide = errors.DimensionError("it has 3 dimensions, this project stores 1536", detail="3,1536")
    assert str(wide) == "it has 3 dimensions, this project stores 1536"
    assert wide.detail == "3,1536"


@pytest.mark.parametrize("travel", [copy.copy, lambda error: pickle.loads(pickle.dumps(error))])
def test_an_error_survives_a_journey(travel) -> None:  # type: ignore[no-untyped-def]
    error = RateLimitError("slow", hint="wait", code="x", status=429)
    error.retry_after = 3.0
    arrived = travel(error)
    assert type(arrived) is RateLimitError
    assert (str(arrived), arrived.retry_after) == (str(error), 3.0)


@pytest.mark.parametrize(
    ("kind", "builtin"),
    [
        (errors.InvalidArgumentError, ValueError),
        (errors.NetworkError, ConnectionError),
        (errors.RequestTimeoutError, TimeoutError),
        (errors.NotFoundError, LookupError),
    ],
)
def test_an_error_is_caught_as_what_it_is(kind: type[RankedLedgerError], builtin: type[Exception]) -> None:
    with pytest.raises(builtin):
        raise kind("x")


@pytest.mark.parametrize(
    ("code", "status", "expected"),
    [
        ("22003", 400, errors.InvalidArgumentError),
        ("53100", 500, errors.ServiceUnavailableError),
        ("57P02", 500, errors.ServiceUnavailableError),
        ("08006", 503, errors.ServiceUnavailableError),
        ("28P01", 401, errors.AuthenticationError),
        ("XX000", 500, APIError),
        ("P0001", 400, APIError),
        ("unknown_code", 503, APIError),
        ("PGRST999", 400, APIError),
        (None, 500, APIError),
        (None, 404, errors.UnexpectedResponseError),
        (None, 302, errors.UnexpectedResponseError),
        ("22023", 429, errors.RateLimitError),
    ],
)
def test_codes_come_before_statuses(code: str | None, status: int, expected: type[RankedLedgerError]) -> None:
    assert errors.classify(code, status) is expected


def test_every_hint_belongs_to_a_class_that_can_be_raised() -> None:
    raised = {*errors.BY_CODE.values(), *errors.BY_CODE_CLASS.values(), *errors.BY_STATUS.values()}
    assert set(errors.HINTS) <= raised | {errors.NetworkError}
    assert set(errors.MEMORY_HINTS) <= raised


def test_a_hint_fits_the_store_that_was_asked() -> None:
    denied, busy = errors.PermissionDeniedError, errors.ServiceUnavailableError
    assert "service role only" in str(errors.hint_for(denied, "ledger"))
    assert "access_token" in str(errors.hint_for(denied, "memory"))
    assert errors.hint_for(busy, "memory") == errors.hint_for(busy, "ledger") == errors.HINTS[busy]
    assert errors.hint_for(errors.GoneError, "memory") is None
