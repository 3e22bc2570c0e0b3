"""The two run loops, one that waits and one that is awaited: send, read, else ask whether to try again."""

from __future__ import annotations

from asyncio import sleep as sleep_async
from collections.abc import Callable
from datetime import UTC, datetime
from time import sleep
from types import TracebackType
from typing import Self, TypeVar

import httpx

from ranked_ledger.connected import Connected
from ranked_ledger.errors import RankedLedgerError

T = TypeVar("T")

Problem = RankedLedgerError | httpx.HTTPError | httpx.InvalidURL
Read = Callable[[httpx.Response, datetime], T]
"""An answer and the moment it came: its value, or an error of ours."""
Wait = Callable[[Problem, int], float]
"""What went wrong and how often, from 1: the seconds until the next attempt, or an error of ours."""


class Running(Connected[httpx.Client]):
    """A client that waits for its answers."""

    _new_http = httpx.Client
    _http_kind = httpx.Client

    def close(self) -> None:
        """Close the connections, unless they belong to a given `http_client` or another client's copy."""
        if self._owned:
            self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _exchange(self, request: httpx.Request, read: Read[T], wait: Wait) -> T:
        attempt = 0
        while True:
            attempt += 1
            try:
                # a redirect would carry the key to another host
                response = self._http.send(request, follow_redirects=False)
                return read(response, datetime.now(UTC))
            except (RankedLedgerError, httpx.HTTPError, httpx.InvalidURL) as problem:
                seconds = wait(problem, attempt)
            sleep(seconds)


class AsyncRunning(Connected[httpx.AsyncClient]):
    """`Running` for asyncio."""

    _new_http = httpx.AsyncClient
    _http_kind = httpx.AsyncClient

    async def aclose(self) -> None:
        """Close the connections, unless they belong to a given `http_client` or another client's copy."""
        if self._owned:
            await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def _exchange(self, request: httpx.Request, read: Read[T], wait: Wait) -> T:
        attempt = 0
        while True:
            attempt += 1
            try:
                # a redirect would carry the key to another host
                response = await self._http.send(request, follow_redirects=False)
                return read(response, datetime.now(UTC))
            except (RankedLedgerError, httpx.HTTPError, httpx.InvalidURL) as problem:
                seconds = wait(problem, attempt)
            await sleep_async(seconds)
