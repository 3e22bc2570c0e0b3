"""The steward's asynchronous client: the methods of `stewardship`, awaited."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

import httpx

from ranked_ledger import memory_calls
from ranked_ledger.calling import AsyncCalling
from ranked_ledger.memories import (
    Adopted,
    Attribution,
    Erasure,
    Expired,
    MappedWorkspace,
    Member,
    Memory,
    MemoryUsage,
    Organization,
    Remembered,
    SubjectAccess,
)
from ranked_ledger.memory_calls import DEFAULT_ON_RETURN, MemoryRef
from ranked_ledger.memory_session import StewardSession
from ranked_ledger.models import DecisionRef
from ranked_ledger.paging import DEFAULT_PAGE, walk
from ranked_ledger.session import given_or_new
from ranked_ledger.subjects import MemberRole, OnReturn, ReviewOutcome, Subject
from ranked_ledger.timeline import AsyncPendingReviews


class AsyncMemorySteward(StewardSession[httpx.AsyncClient], AsyncCalling):
    """`MemorySteward` for asyncio: the same methods with the same arguments, awaited.

    `pending` is walked with `async for`. Close it with `aclose` or `async with`.

    Example:
        >>> async with AsyncMemorySteward.from_env(org=org, access_token=token) as steward:  # doctest: +SKIP
        ...     await steward.subject_access(("candidate", candidate))
    """

    async def remember(
        self,
        text: str,
        *,
        asserted_by: UUID | str | None = None,
        subject: Subject | None = None,
        workspace: str | None = None,
        run_id: str | None = None,
        expires_at: datetime | None = None,
        embedding: Sequence[float] | None = None,
        embedding_model: str | None = None,
        idempotency_key: str | None = None,
        digest_key: str | None = None,
        on_return: OnReturn = DEFAULT_ON_RETURN,
    ) -> Remembered:
        """As `MemorySteward.remember`."""
        call = memory_calls.remember(
            self._org,
            text,
            subject=subject,
            workspace=workspace,
            author="person",
            asserted_by=asserted_by,
            run_id=run_id,
            expires_at=expires_at,
            embedding=embedding,
            embedding_model=embedding_model,
            key=given_or_new(idempotency_key),
            digest_key=digest_key,
            on_return=on_return,
        )
        return await self._run(call)

    def pending(
        self,
        *,
        limit: int | None = None,
        page_size: int = DEFAULT_PAGE,
        after: Mapping[str, Any] | None = None,
    ) -> AsyncPendingReviews:
        """As `MemorySteward.pending`."""
        ask = partial(memory_calls.pending, self._org)
        return AsyncPendingReviews(self._run, walk(ask, after=after, limit=limit, page_size=page_size))

    async def review(
        self,
        memory: MemoryRef,
        outcome: ReviewOutcome,
        *,
        can_use_as_instruction: bool = False,
        note: str | None = None,
        reviewer: UUID | str | None = None,
    ) -> Memory:
        """As `MemorySteward.review`."""
        call = memory_calls.review(
            self._org,
            memory,
            outcome,
            can_use_as_instruction=can_use_as_instruction,
            note=note,
            reviewer=reviewer,
        )
        return await self._run(call)

    async def subject_access(self, subject: Subject) -> SubjectAccess:
        """As `MemorySteward.subject_access`."""
        return await self._run(memory_calls.subject_access(self._org, subject))

    async def erase(
        self,
        subject: Subject,
        *,
        also_containing: str | Sequence[str] = (),
        digest_key: str | None = None,
        asserted_by: UUID | str | None = None,
        dry_run: bool = False,
    ) -> Erasure:
        """As `MemorySteward.erase`."""
        call = memory_calls.erase(
            self._org,
            subject,
            also_containing=also_containing,
            digest_key=digest_key,
            asserted_by=asserted_by,
            dry_run=dry_run,
        )
        return await self._run(call)

    async def usage(self, memory: MemoryRef, *, limit: int = 100) -> MemoryUsage:
        """As `MemorySteward.usage`."""
        return await self._run(memory_calls.usage(self._org, memory, limit))

    async def attribute_decision(
        self, decision: DecisionRef, subject: Subject, *, remove: bool = False
    ) -> Attribution:
        """As `MemorySteward.attribute_decision`."""
        return await self._run(memory_calls.attribute_decision(self._org, decision, subject, remove=remove))

    async def map_workspace(self, workspace: str, *, remove: bool = False) -> MappedWorkspace:
        """As `MemorySteward.map_workspace`."""
        return await self._run(memory_calls.map_workspace(self._org, workspace, remove=remove))

    async def expire(self, *, limit: int = 1000, usage_before: datetime | None = None) -> Expired:
        """As `MemorySteward.expire`."""
        return await self._run(memory_calls.expire(limit, usage_before))

    async def adopt(
        self, *, limit: int = 500, after: UUID | str | None = None, dry_run: bool = False
    ) -> Adopted:
        """As `MemorySteward.adopt`."""
        return await self._run(memory_calls.adopt(limit, after, dry_run=dry_run))

    async def set_organization(
        self, *, name: str | None = None, allow_asserted: bool | None = None
    ) -> Organization:
        """As `MemorySteward.set_organization`."""
        call = memory_calls.set_organization(self._org, name=name, allow_asserted=allow_asserted)
        return await self._run(call)

    async def set_member(self, user: UUID | str, role: MemberRole | None) -> Member:
        """As `MemorySteward.set_member`."""
        return await self._run(memory_calls.set_member(self._org, user, role))
