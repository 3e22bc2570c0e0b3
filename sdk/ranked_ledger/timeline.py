"""What asks for its pages as it is walked: a timeline, traces, and what waits for a review."""

from __future__ import annotations

from ranked_ledger.memories import Memory, ReviewPage
from ranked_ledger.models import Decision, Page
from ranked_ledger.paging import AsyncPaged, Paged
from ranked_ledger.traces import RecallTrace, TracePage


class Timeline(Paged[Page, Decision]):
    """Decisions in the order of their steps, asked for page by page; every iteration begins anew.

    Example:
        >>> for decision in ledger.timeline(task="invoicing"):              # doctest: +SKIP
        ...     print(decision.step_index, decision.content)
    """


class AsyncTimeline(AsyncPaged[Page, Decision]):
    """`Timeline`, for `async for`.

    Example:
        >>> async for decision in ledger.timeline(task="invoicing"):        # doctest: +SKIP
        ...     print(decision.step_index, decision.content)
    """


class Traces(Paged[TracePage, RecallTrace]):
    """Recalls, the newest first, asked for page by page; every iteration begins anew.

    Example:
        >>> for trace in ledger.traces(marked=True):                        # doctest: +SKIP
        ...     print(trace.query, [item.used for item in trace.items])
    """


class AsyncTraces(AsyncPaged[TracePage, RecallTrace]):
    """`Traces`, for `async for`.

    Example:
        >>> async for trace in ledger.traces(marked=True):                  # doctest: +SKIP
        ...     print(trace.query, [item.used for item in trace.items])
    """


class PendingReviews(Paged[ReviewPage, Memory]):
    """Memories that wait for a review, asked for page by page; every iteration begins anew.

    What is reviewed meanwhile is not met again.

    Example:
        >>> for memory in steward.pending():                                # doctest: +SKIP
        ...     print(memory.author, memory.text)
    """


class AsyncPendingReviews(AsyncPaged[ReviewPage, Memory]):
    """`PendingReviews`, for `async for`.

    Example:
        >>> async for memory in steward.pending():                          # doctest: +SKIP
        ...     print(memory.author, memory.text)
    """
