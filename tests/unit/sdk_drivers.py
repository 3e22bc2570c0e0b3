"""Both clients behind one call, so that a test of behaviour is written once and runs on each."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

from ranked_ledger import (
    AsyncLongTermMemory,
    AsyncMemoryFunction,
    AsyncMemorySteward,
    AsyncRankedLedger,
    LongTermMemory,
    MemoryFunction,
    MemorySteward,
    RankedLedger,
)
from ranked_ledger.paging import AsyncPaged
from ranked_ledger.running import Running

Client = (
    RankedLedger
    | AsyncRankedLedger
    | MemoryFunction
    | AsyncMemoryFunction
    | LongTermMemory
    | AsyncLongTermMemory
    | MemorySteward
    | AsyncMemorySteward
)


class Driver:
    """Calls a client's methods and gives their results, awaited where that is needed."""

    def __init__(self, client: Client, runner: asyncio.Runner) -> None:
        self.client = client
        self._runner = runner

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            return self.result(getattr(self.client, name)(*arguments, **named))

        return call

    def result(self, value: Any) -> Any:
        if isinstance(value, AsyncPaged):
            return value
        return self._runner.run(_awaited(value)) if inspect.isawaitable(value) else value

    def walked(self, walk: Any) -> list[Any]:
        """Everything that a timeline, or its pages, gives."""
        return self._runner.run(_collected(walk)) if hasattr(walk, "__aiter__") else list(walk)

    def with_options(self, **options: Any) -> Driver:
        return Driver(self.client.with_options(**options), self._runner)

    def close(self) -> None:
        self.result(self.client.close() if isinstance(self.client, Running) else self.client.aclose())


async def _awaited(value: Any) -> Any:
    return await value


async def _collected(walk: Any) -> list[Any]:
    return [one async for one in walk]
