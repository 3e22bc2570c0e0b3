"""The agent's asynchronous client: the methods of `memory`, awaited."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

import httpx

from ranked_ledger import memory_calls
from ranked_ledger.calling import AsyncEmbedding
from ranked_ledger.embeddings import AsyncEmbedder, Embedder
from ranked_ledger.memories import ForgottenMemory, Memory, MemoryRecall, Remembered
from ranked_ledger.memory_calls import DEFAULT_ON_RETURN, MemoryRef
from ranked_ledger.memory_session import AgentOptions, AgentSession
from ranked_ledger.models import Weights
from ranked_ledger.session import given_or_new
from ranked_ledger.subjects import OnReturn, Subject


class AsyncLongTermMemory(AgentSession[httpx.AsyncClient, Embedder | AsyncEmbedder], AsyncEmbedding):
    """`LongTermMemory` for asyncio: the same methods with the same arguments, awaited.

    A synchronous embedder runs in a thread. Close it with `aclose` or `async with`.

    Example:
        >>> async with AsyncLongTermMemory.from_env(org=org) as memory:              # doctest: +SKIP
        ...     await memory.recall("when to call?")
    """

    _options: AgentOptions[Embedder | AsyncEmbedder]

    async def remember(
        self,
        text: str,
        *,
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
        """As `LongTermMemory.remember`."""
        call = memory_calls.remember(
            self._org,
            text,
            subject=subject,
            workspace=workspace,
            author="model",
            asserted_by=None,
            run_id=run_id,
            expires_at=expires_at,
            embedding=embedding,
            embedding_model=embedding_model,
            key=given_or_new(idempotency_key),
            digest_key=digest_key,
            on_return=on_return,
        )
        return await self._run(
            call if embedding is not None else await self._completed(call, "embedding", text)
        )

    async def recall(
        self,
        query: str | None = None,
        *,
        subject: Subject | None = None,
        workspace: str | None = None,
        limit: int = 10,
        max_tokens: int | None = None,
        include_unreviewed: bool = False,
        min_relevance: float | None = None,
        weights: Weights | Mapping[str, float] | None = None,
        half_life_days: float | None = None,
        embedding: Sequence[float] | None = None,
        embedding_model: str | None = None,
        run_id: str | None = None,
    ) -> MemoryRecall:
        """As `LongTermMemory.recall`."""
        call = memory_calls.recall(
            self._org,
            query,
            subject=subject,
            workspace=workspace,
            limit=limit,
            max_tokens=max_tokens,
            include_unreviewed=include_unreviewed,
            min_relevance=min_relevance,
            weights=weights,
            half_life_days=half_life_days,
            embedding=embedding,
            embedding_model=embedding_model,
            run_id=run_id,
        )
        wanted = "" if query is None or embedding is not None else query.strip()
        return await self._run(await self._completed(call, "query_embedding", wanted) if wanted else call)

    async def correct(
        self,
        memory: MemoryRef,
        text: str,
        *,
        note: str | None = None,
        expires_at: datetime | None = None,
        embedding: Sequence[float] | None = None,
        embedding_model: str | None = None,
    ) -> Memory:
        """As `LongTermMemory.correct`."""
        call = memory_calls.correct(
            self._org,
            memory,
            text,
            note=note,
            expires_at=expires_at,
            embedding=embedding,
            embedding_model=embedding_model,
        )
        return await self._run(
            call if embedding is not None else await self._completed(call, "embedding", text)
        )

    async def forget(self, memory: MemoryRef, *, note: str | None = None) -> ForgottenMemory:
        """As `LongTermMemory.forget`."""
        return await self._run(memory_calls.forget(self._org, memory, note))
