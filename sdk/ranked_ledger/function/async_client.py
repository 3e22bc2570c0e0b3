"""The asynchronous client of a function: the methods of `client`, awaited, over the same run loop."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar
from uuid import UUID

import httpx

from ranked_ledger.function import errands, wire
from ranked_ledger.function.answers import FunctionRecall, Recorded, VectorRecall
from ranked_ledger.function.errands import Errand
from ranked_ledger.function.session import FunctionSession
from ranked_ledger.models import UNSET, DecisionRef, Fusion, Preset, Superseded, Unset, Weights
from ranked_ledger.recalls import Recall
from ranked_ledger.running import AsyncRunning
from ranked_ledger.session import given_or_new

T = TypeVar("T")


class AsyncMemoryFunction(FunctionSession[httpx.AsyncClient], AsyncRunning):
    """`MemoryFunction` for asyncio: the same methods with the same arguments, awaited.

    Close it with `aclose` or `async with`.

    Example:
        >>> async with AsyncMemoryFunction.from_env(workspace="acme") as memory:      # doctest: +SKIP
        ...     await memory.recall("can a sent invoice be edited?")
    """

    async def health(self) -> dict[str, Any]:
        """As `MemoryFunction.health`."""
        return await self._run(errands.health())

    async def recall(
        self,
        query: str,
        *,
        task: str | None = None,
        project: str | Unset | None = UNSET,
        current_step: int | None = None,
        limit: int = 10,
        max_tokens: int | None = None,
        include_stale: bool | None = None,
        only_confirmed: bool = False,
        include_personal: bool = True,
        min_relevance: float | None = None,
        preset: Preset | None = None,
        weights: Weights | Mapping[str, float] | None = None,
        half_life_steps: float | None = None,
        dependency_saturation: float | None = None,
        similarity_floor: float | None = None,
        similarity_ceiling: float | None = None,
        fusion: Fusion | None = None,
        fusion_weight: float | None = None,
        flow: str | None = None,
        runtime_name: str | None = None,
    ) -> FunctionRecall:
        """As `MemoryFunction.recall`."""
        errand = errands.recall(
            self._sender(task, project, flow, runtime_name),
            query,
            limit=limit,
            max_tokens=max_tokens,
            only_confirmed=only_confirmed,
            include_personal=include_personal,
            include_stale=include_stale,
            current_step=current_step,
            min_relevance=min_relevance,
            preset=preset,
            weights=weights,
            half_life_steps=half_life_steps,
            dependency_saturation=dependency_saturation,
            similarity_floor=similarity_floor,
            similarity_ceiling=similarity_ceiling,
            fusion=fusion,
            fusion_weight=fusion_weight,
        )
        return await self._run(errand)

    async def recall_by_vector(
        self,
        query: str,
        *,
        task: str | None = None,
        project: str | Unset | None = UNSET,
        limit: int = 10,
        recency_days: int | None = None,
        include_stale: bool = False,
        only_confirmed: bool = False,
        include_personal: bool = True,
        flow: str | None = None,
        runtime_name: str | None = None,
    ) -> VectorRecall:
        """As `MemoryFunction.recall_by_vector`."""
        errand = errands.recall_by_vector(
            self._sender(task, project, flow, runtime_name),
            query,
            limit=limit,
            recency_days=recency_days,
            only_confirmed=only_confirmed,
            include_personal=include_personal,
            include_stale=include_stale,
        )
        return await self._run(errand)

    async def mark_used(
        self, recall: Recall | VectorRecall | UUID | str, decisions: DecisionRef | Iterable[DecisionRef]
    ) -> None:
        """As `MemoryFunction.mark_used`."""
        return await self._run(errands.mark_usage(recall, used=decisions))

    async def mark_ignored(
        self,
        recall: Recall | VectorRecall | UUID | str,
        decisions: DecisionRef | Iterable[DecisionRef],
        *,
        reason: str | None = None,
    ) -> None:
        """As `MemoryFunction.mark_ignored`."""
        return await self._run(errands.mark_usage(recall, ignored=decisions, reason=reason))

    async def record(
        self,
        content: str,
        *,
        rationale: str | None = None,
        alternatives: Sequence[str] = (),
        importance: float | None = None,
        step: int | None = None,
        task: str | None = None,
        project: str | Unset | None = UNSET,
        depends_on: DecisionRef | Sequence[DecisionRef] = (),
        confidence: float | None = None,
        flow: str | None = None,
        runtime_name: str | None = None,
        idempotency_key: str | None = None,
    ) -> Recorded:
        """As `MemoryFunction.record`."""
        errand = errands.record(
            self._sender(task, project, flow, runtime_name),
            content,
            rationale=rationale,
            alternatives=alternatives,
            importance=importance,
            step=step,
            depends_on=depends_on,
            confidence=confidence,
            key=given_or_new(idempotency_key),
        )
        return await self._run(errand)

    async def supersede(
        self, old: DecisionRef, *, by: DecisionRef, reason: str | None = None, actor: str | None = None
    ) -> Superseded:
        """As `MemoryFunction.supersede`."""
        return await self._run(errands.supersede(self.workspace, old, by=by, reason=reason, actor=actor))

    async def _run(self, errand: Errand[T]) -> T:
        wait = partial(self._wait_for, errand=errand)
        return await self._exchange(self._request(errand), partial(wire.decode, errand), wait)
