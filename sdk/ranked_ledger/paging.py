"""A walk over pages, each asked for when the one before is used up."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from typing import Any, Final, Generic, Protocol, TypeVar

from ranked_ledger import arguments
from ranked_ledger.calls import Call

DEFAULT_PAGE: Final = 50

T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")


class PageOf(Protocol[T_co]):
    """Some items in order, and the cursor of the page after them; None on the last page."""

    @property
    def next(self) -> Mapping[str, Any] | None: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[T_co]: ...


P = TypeVar("P", bound=PageOf[Any])


class AskPage(Protocol[P]):
    """A call with everything said but where to go on and how many to ask for."""

    def __call__(self, *, after: Mapping[str, Any] | None, page_size: int) -> Call[P]: ...


class Walk(Generic[P]):
    """Where a walk stands: the next call, or None at its end."""

    def __init__(
        self, ask: AskPage[P], after: Mapping[str, Any] | None, limit: int | None, page_size: int
    ) -> None:
        self._ask = ask
        self._left = limit
        self._page_size = page_size
        self.call: Call[P] | None = self._next(after)

    def take(self, page: P) -> P:
        if self._left is not None:
            self._left -= len(page)
        self.call = None if page.next is None else self._next(page.next)
        return page

    def _next(self, after: Mapping[str, Any] | None) -> Call[P] | None:
        if self._left is not None and self._left <= 0:
            return None
        size = self._page_size if self._left is None else min(self._page_size, self._left)
        return self._ask(after=after, page_size=size)


class Paged(Generic[P, T]):
    """Items in order, asked for page by page as they are walked; every iteration begins anew."""

    def __init__(self, run: Callable[[Call[P]], P], walk: Callable[[], Walk[P]]) -> None:
        self._run = run
        self._walk = walk

    def pages(self) -> Iterator[P]:
        """The same by pages; `page.next` is the cursor to go on from later, as `after`."""
        walk = self._walk()
        while walk.call is not None:
            yield walk.take(self._run(walk.call))

    def __iter__(self) -> Iterator[T]:
        for page in self.pages():
            yield from page


class AsyncPaged(Generic[P, T]):
    """`Paged`, for `async for`."""

    def __init__(self, run: Callable[[Call[P]], Awaitable[P]], walk: Callable[[], Walk[P]]) -> None:
        self._run = run
        self._walk = walk

    async def pages(self) -> AsyncIterator[P]:
        """The same by pages; `page.next` is the cursor to go on from later, as `after`."""
        walk = self._walk()
        while walk.call is not None:
            yield walk.take(await self._run(walk.call))

    async def __aiter__(self) -> AsyncIterator[T]:
        async for page in self.pages():
            for item in page:
                yield item


def walk(
    ask: AskPage[P], *, after: Mapping[str, Any] | None, limit: int | None, page_size: int
) -> Callable[[], Walk[P]]:
    """How to begin a walk. The first call is made once here, so that a wrong argument is told at once."""
    arguments.whole("page_size", page_size, minimum=1, maximum=arguments.MAX_PAGE)
    if limit is not None:
        arguments.whole("limit", limit, minimum=1)

    def begin() -> Walk[P]:
        return Walk(ask, after, limit, page_size)

    begin()
    return begin
