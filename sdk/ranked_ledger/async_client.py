"""The asynchronous client: the methods of `client`, awaited, over the same run loop."""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from ranked_ledger import batches, calls, embeddings, recording
from ranked_ledger.errors import RankedLedgerError
from ranked_ledger.models import (
    UNSET,
    CreatedBy,
    Decision,
    DecisionDetail,
    DecisionInput,
    DecisionRef,
    Edge,
    Forgotten,
    Impact,
    Lifecycle,
    NewDecision,
    Relation,
    SettableLifecycle,
    Superseded,
    Unset,
    Visibility,
)
from ranked_ledger.paging import DEFAULT_PAGE, walk
from ranked_ledger.recalling import AsyncRecalling
from ranked_ledger.session import given_or_new
from ranked_ledger.timeline import AsyncTimeline


class AsyncRankedLedger(AsyncRecalling):
    """`RankedLedger` for asyncio: the same methods with the same arguments, awaited.

    `timeline` is walked with `async for`; `record_many` takes asynchronous iterables too; a synchronous
    embedder runs in a thread. Close it with `aclose` or `async with`.

    Example:
        >>> async with AsyncRankedLedger.from_env(workspace="acme") as ledger:        # doctest: +SKIP
        ...     await ledger.record("Invoices are immutable once sent", importance=0.9)
    """

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
        summary: str | None = None,
        depends_on: DecisionRef | Sequence[DecisionRef] = (),
        embedding: Sequence[float] | None = None,
        embedding_model: str | None = None,
        pinned: bool = False,
        visibility: Visibility | None = None,
        created_by: CreatedBy | None = None,
        flow: str | None = None,
        runtime_name: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
    ) -> Decision:
        """As `RankedLedger.record`."""
        new = NewDecision(
            content,
            rationale=rationale,
            alternatives=alternatives,
            importance=importance,
            step=step,
            task=task,
            project=self._project(project),
            summary=summary,
            depends_on=depends_on,
            embedding=embedding,
            embedding_model=embedding_model,
            pinned=pinned,
            visibility=visibility,
            created_by=created_by,
            flow=flow,
            runtime_name=runtime_name,
            metadata=metadata,
        )
        call = calls.record(self.workspace, recording.checked(new), key=given_or_new(idempotency_key))
        return await self._run(
            call if embedding is not None else await self._completed(call, "embedding", content)
        )

    async def record_many(
        self,
        decisions: Iterable[DecisionInput] | AsyncIterable[DecisionInput],
        *,
        idempotency_key: str | None = None,
        on_batch: Callable[[Sequence[Decision]], object] | None = None,
    ) -> list[Decision]:
        """As `RankedLedger.record_many`."""
        key = calls.batch_key(given_or_new(idempotency_key))
        batches.check_listener(on_batch)
        written: list[Decision] = []
        number = 0
        try:
            async for elements in batches.cut_async(decisions, self.project):
                ready = embeddings.attach(
                    elements, await self._embed(embeddings.wanting(elements)), self._options.embedder
                )
                done = await self._run(calls.record_many(self.workspace, ready, key=f"{key}/{number}"))
                written += done
                number += 1
                if on_batch is not None:
                    on_batch(done)
        except RankedLedgerError as error:
            error.written = tuple(written)
            raise
        return written

    async def get(self, decision: DecisionRef) -> DecisionDetail:
        """As `RankedLedger.get`."""
        return await self._run(calls.get(self.workspace, decision))

    async def impact(
        self, decision: DecisionRef, *, max_depth: int | None = None, limit: int = 500
    ) -> Impact:
        """As `RankedLedger.impact`."""
        return await self._run(calls.impact(self.workspace, decision, max_depth=max_depth, limit=limit))

    def timeline(
        self,
        *,
        task: str | None = None,
        project: str | Unset | None = UNSET,
        lifecycle: Lifecycle | Iterable[Lifecycle] | None = None,
        pinned: bool | None = None,
        newest_first: bool = True,
        limit: int | None = None,
        page_size: int = DEFAULT_PAGE,
        after: Mapping[str, Any] | None = None,
    ) -> AsyncTimeline:
        """As `RankedLedger.timeline`."""
        ask = partial(
            calls.timeline,
            self.workspace,
            project=self._project(project),
            task=task,
            lifecycle=lifecycle,
            pinned=pinned,
            newest_first=newest_first,
        )
        return AsyncTimeline(self._run, walk(ask, after=after, limit=limit, page_size=page_size))

    async def link(
        self,
        decision: DecisionRef,
        to: DecisionRef,
        *,
        relation: Relation = "depends_on",
        metadata: Mapping[str, Any] | None = None,
    ) -> Edge:
        """As `RankedLedger.link`."""
        return await self._run(calls.link(self.workspace, decision, to, relation, metadata))

    async def unlink(
        self, decision: DecisionRef, to: DecisionRef, *, relation: Relation = "depends_on"
    ) -> Edge:
        """As `RankedLedger.unlink`."""
        return await self._run(calls.unlink(self.workspace, decision, to, relation))

    async def supersede(
        self, old: DecisionRef, *, by: DecisionRef, reason: str | None = None, actor: str | None = None
    ) -> Superseded:
        """As `RankedLedger.supersede`."""
        return await self._run(calls.supersede(self.workspace, old, by=by, reason=reason, actor=actor))

    async def set_lifecycle(
        self,
        decision: DecisionRef,
        lifecycle: SettableLifecycle,
        *,
        reason: str | None = None,
        actor: str | None = None,
    ) -> Decision:
        """As `RankedLedger.set_lifecycle`."""
        return await self._run(
            calls.set_lifecycle(self.workspace, decision, lifecycle, reason=reason, actor=actor)
        )

    async def set_importance(self, decision: DecisionRef, importance: float) -> Decision:
        """As `RankedLedger.set_importance`."""
        return await self._run(calls.set_importance(self.workspace, decision, importance))

    async def pin(self, decision: DecisionRef) -> Decision:
        """As `RankedLedger.pin`."""
        return await self._run(calls.pin(self.workspace, decision, True))

    async def unpin(self, decision: DecisionRef) -> Decision:
        """As `RankedLedger.unpin`."""
        return await self._run(calls.pin(self.workspace, decision, False))

    async def forget(self, decision: DecisionRef) -> Forgotten:
        """As `RankedLedger.forget`."""
        return await self._run(calls.forget(self.workspace, decision))
