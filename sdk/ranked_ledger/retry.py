"""Whether to try again, and after how long. Pure: chance is passed in, the run loops wait."""

from __future__ import annotations

from typing import Final

from ranked_ledger.errors import (
    NetworkError,
    RankedLedgerError,
    RateLimitError,
    RequestTimeoutError,
    ServiceUnavailableError,
    UnexpectedResponseError,
)

BASE_SECONDS: Final = 0.2
CAP_SECONDS: Final = 8.0
LONGEST_OBEYED_SECONDS: Final = 60.0
LATE_SECONDS: Final = (0.1, 0.5, 1.4)

# The database never began, or rolled everything back: a repeat is safe whatever the call.
_NOTHING_HAPPENED: Final = frozenset({"PGRST000", "PGRST002", "PGRST003", "40001", "40P01", "53300", "57P03"})


def decide(
    error: RankedLedgerError, *, attempt: int, max_retries: int, repeatable: bool, chance: float
) -> float | None:
    """The seconds to wait before the next attempt, or None to give up.

    - `attempt`: how many have failed, from 1. `chance`: uniform in [0, 1), for full jitter.
    - `repeatable`: whether a repeat is safe even if the attempt was carried out.

    A `Retry-After` is obeyed, up to a minute; a longer one gives up, so that the caller decides.

    Example:
        >>> decide(ServiceUnavailableError("busy"), attempt=1, max_retries=3, repeatable=True, chance=0.5)
        0.1
    """
    if attempt > max_retries or not _may_repeat(error, repeatable):
        return None
    wait = chance * min(CAP_SECONDS, BASE_SECONDS * 2.0 ** (attempt - 1))
    asked = getattr(error, "retry_after", None)
    if asked is None:
        return wait
    return None if asked > LONGEST_OBEYED_SECONDS else max(asked, 0.0) + wait


def until_written(*, attempt: int, max_retries: int) -> float | None:
    """The seconds to wait for a row that is written behind the answer that named it, or None to give up.

    - `attempt`: how many have failed, from 1. Nobody else waits for that row, so there is no jitter.

    Example:
        >>> until_written(attempt=1, max_retries=3)
        0.1
    """
    return LATE_SECONDS[attempt - 1] if attempt <= min(max_retries, len(LATE_SECONDS)) else None


def _may_repeat(error: RankedLedgerError, repeatable: bool) -> bool:
    match error:
        case RateLimitError():
            return True
        case NetworkError():
            return repeatable or not error.sent
        case RequestTimeoutError():
            # With a status the server gave up by itself, and would again.
            return error.status is None and (repeatable or not error.sent)
        case ServiceUnavailableError():
            return repeatable or error.code in _NOTHING_HAPPENED
        case UnexpectedResponseError():
            return repeatable and not error.readable
        case _:
            return False
