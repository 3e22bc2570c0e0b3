"""A timeline that asks for its pages as it is walked."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from typing import Any, Final, Protocol

from ranked_ledger import arguments
from ranked_ledger.calls import Call
from ranked_ledger.models import Decision, Page

DEFAULT_PAGE: Final = 50


class AskPage(Protocol):
    """`calls.timeline` with everything said but where to go on and how many to ask for."""

    def __call__(self, *, after: Mapping[str, Any] | None, page_size: int) -> Call[Page]: ...


class _Walk:
    """Where a walk stands: the next call, or None at its end."""

    def __init__(
        self, ask: AskPage, after: Mapping[str, Any] | None, limit: int | None, page_size: int
    ) -> None:
        self._ask = ask
        self._left = limit
        self._page_size = page_size
        self.call: Call[Page] | None = self._next(after)

    def take(self, page: Page) -> Page:
        if self._left is not None:
            self._left -= len(page)
        self.call = None if page.next is None else self._next(page.next)
        return page

    def _next(self, after: Mapping[str, Any] | None) -> Call[Page] | None:
        if self._left is not None and self._left <= 0:
            return None
        size = self._page_size if self._left is None else min(self._page_size, self._left)
        return self._ask(after=after, page_size=size)


class Timeline:
    """Decisions in the order of their steps, asked for page by page; every iteration begins anew.

    Example:
        >>> for decision in ledger.timeline(task="invoicing"):              # doctest: +SKIP
        ...     print(decision.step_index, decision.content)
    """

    def __init__(self, run: Callable[[Call[Page]], Page], walk: Callable[[], _Walk]) -> None:
        self._run = run
        self._walk = walk

    def pages(self) -> Iterator[Page]:
        """The same by pages; `page.next` is the cursor to go on from later, as `after`."""
        walk = self._walk()
        while walk.call is not None:
            yield walk.take(self._run(walk.call))

    def __iter__(self) -> Iterator[Decision]:
        for page in self.pages():
            yield from page


class AsyncTimeline:
    """`Timeline`, for `async for`.

    Example:
        >>> async for decision in ledger.timeline(task="invoicing"):        # doctest: +SKIP
        ...     print(decision.step_index, decision.content)
    """

    def __init__(self, run: Callable[[Call[Page]], Awaitable[Page]], walk: Callable[[], _Walk]) -> None:
        self._run = run
        self._walk = walk

    async def pages(self) -> AsyncIterator[Page]:
        """The same by pages; `page.next` is the cursor to go on from later, as `after`."""
        walk = self._walk()
        while walk.call is not None:
            yield walk.take(await self._run(walk.call))

    async def __aiter__(self) -> AsyncIterator[Decision]:
        async for page in self.pages():
            for decision in page:
                yield decision


def walk(
    ask: AskPage, *, after: Mapping[str, Any] | None, limit: int | None, page_size: int
) -> Callable[[], _Walk]:
    """How to begin a walk. The first call is made once here, so that a wrong argument is told at once."""
    arguments.whole("page_size", page_size, minimum=1, maximum=arguments.MAX_PAGE)
    if limit is not None:
        arguments.whole("limit", limit, minimum=1)

    def begin() -> _Walk:
        return _Walk(ask, after, limit, page_size)

    begin()
    return begin
