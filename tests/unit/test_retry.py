"""When a request is repeated, and after how long."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranked_ledger import (
    ConflictError,
    NetworkError,
    RankedLedgerError,
    RateLimitError,
    RequestTimeoutError,
    ServiceUnavailableError,
    UnexpectedResponseError,
    retry,
    wire,
)

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


def decide(error: RankedLedgerError, *, repeatable: bool = True, attempt: int = 1) -> float | None:
    return retry.decide(error, attempt=attempt, max_retries=3, repeatable=repeatable, chance=0.5)


def unsent(error: NetworkError | RequestTimeoutError) -> RankedLedgerError:
    error.sent = False
    return error


def page() -> UnexpectedResponseError:
    error = UnexpectedResponseError("a page")
    error.readable = False
    return error


@pytest.mark.parametrize(
    ("error", "always", "if_repeatable"),
    [
        (unsent(NetworkError("refused")), True, True),
        (NetworkError("reset"), False, True),
        (unsent(RequestTimeoutError("connect")), True, True),
        (RequestTimeoutError("read"), False, True),
        (RequestTimeoutError("cancelled", code="57014", status=500), False, False),
        (RateLimitError("slow down"), True, True),
        (ServiceUnavailableError("gateway", status=502), False, True),
        (ServiceUnavailableError("no pool", code="PGRST003"), True, True),
        (ServiceUnavailableError("deadlock", code="40P01"), True, True),
        (ServiceUnavailableError("shutdown", code="57P01"), False, True),
        (page(), False, True),
        (UnexpectedResponseError("another shape"), False, False),
        (ConflictError("key", code="RL409"), False, False),
    ],
)
def test_a_repeat_is_tried_only_where_it_is_safe(
    error: RankedLedgerError, always: bool, if_repeatable: bool
) -> None:
    assert (decide(error, repeatable=False) is not None) is always
    assert (decide(error, repeatable=True) is not None) is if_repeatable


@given(st.integers(1, 60), st.floats(0, 1, exclude_max=True))
def test_waits_grow_and_stay_bounded(attempt: int, chance: float) -> None:
    wait = retry.decide(
        NetworkError("reset"), attempt=attempt, max_retries=100, repeatable=True, chance=chance
    )
    assert wait is not None
    assert 0 <= wait <= min(8.0, 0.2 * 2 ** (attempt - 1))


def test_a_late_row_is_waited_for_some_two_seconds() -> None:
    waits = [retry.until_written(attempt=attempt, max_retries=9) for attempt in range(1, 6)]
    assert waits == [0.1, 0.5, 1.4, None, None]
    assert retry.until_written(attempt=1, max_retries=0) is None
    assert retry.until_written(attempt=2, max_retries=1) is None


def test_it_ends() -> None:
    assert decide(NetworkError("reset"), attempt=3) is not None
    assert decide(NetworkError("reset"), attempt=4) is None


@pytest.mark.parametrize(("asked", "expected"), [(0.0, 0.1), (5.0, 5.1), (60.0, 60.1), (61.0, None)])
def test_what_the_server_asks_for_is_waited(asked: float, expected: float | None) -> None:
    error = RateLimitError("slow down")
    error.retry_after = asked
    assert decide(error) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        ("7", 7.0),
        (" 7 ", 7.0),
        ("soon", None),
        ("-1", None),
        ("1e9", None),
        (format_datetime(NOW + timedelta(seconds=30), usegmt=True), 30.0),
        (format_datetime(NOW - timedelta(seconds=30), usegmt=True), 0.0),
    ],
)
def test_retry_after_is_read_as_seconds_or_as_a_date(value: str | None, expected: float | None) -> None:
    assert wire.retry_after(value, NOW) == expected
