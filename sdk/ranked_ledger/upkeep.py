"""What both clients do for a workspace as a whole: its settings, statistics, traces and checks."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import Any

import httpx

from ranked_ledger import asking, calls
from ranked_ledger.calling import AsyncEmbedding, Embedding
from ranked_ledger.embeddings import AsyncEmbedder, Embedder
from ranked_ledger.models import (
    CopiesChecked,
    DecisionRef,
    Enrolled,
    Preset,
    Status,
    Weights,
    WorkspaceSettings,
)
from ranked_ledger.paging import DEFAULT_PAGE, walk
from ranked_ledger.session import Options, Session
from ranked_ledger.timeline import AsyncTraces, Traces
from ranked_ledger.traces import PolicyStats, Pruned


class Upkeep(Session[httpx.Client, Embedder], Embedding):
    """The part of `RankedLedger` that is about no single decision."""

    _options: Options[Embedder]

    def settings(self) -> WorkspaceSettings:
        """What the workspace chose: its text search configuration, and the similarity ranges of its models.

        Example:
            >>> ledger.settings().text_config                                  # doctest: +SKIP
            'pg_catalog.english'
        """
        return self._run(calls.settings(self.workspace))

    def set_text_config(self, text_config: str | None) -> WorkspaceSettings:
        """Choose the language in which the workspace's decisions and questions are read.

        - `text_config`: a text search configuration of PostgreSQL, such as german or simple; None: English.

        Its decisions are read anew at once, ten thousand in some seconds: the call waits up to a minute,
        whatever `timeout` says. Raises `InvalidArgumentError`, which lists what there is, for an unknown one.

        Example:
            >>> ledger.set_text_config("german").read_anew                     # doctest: +SKIP
        """
        return self._run(calls.set_text_config(self.workspace, text_config))

    def set_similarity_range(
        self, embedding_model: str, *, floor: float, ceiling: float
    ) -> WorkspaceSettings:
        """Say which cosines of an embedding model count as 0 and as 1 in the workspace's recalls.

        - `embedding_model`: its name, as recalls give it. `floor`, `ceiling`: in [-1,1]; a model whose
          cosines all lie between 0.75 and 0.86 hardly ranks without them.

        Example:
            >>> ledger.set_similarity_range("e5-small", floor=0.75, ceiling=0.86)  # doctest: +SKIP
        """
        return self._run(calls.set_similarity_range(self.workspace, embedding_model, (floor, ceiling)))

    def fit_similarity_range(
        self, embedding_model: str, *, sample: int = calls.DEFAULT_SAMPLE
    ) -> WorkspaceSettings:
        """Measure on the workspace's own decisions which cosines count as 0 and as 1, and keep the range.

        - `embedding_model`: its name, as recalls give it; the workspace's vectors are taken to be its.
        - `sample`: so many decisions, 10 to 2,000, are compared, each with each; the same ones every time.

        The floor is as far below the first percentile of the pairs as their median is above it, since
        questions have lower cosines than texts; the ceiling is what 99.9 % are below. It is not measured
        again by itself: call it when there are many more decisions, or other ones. Raises
        `InvalidArgumentError` where fewer than 10 decisions have a vector.

        Example:
            >>> ledger.fit_similarity_range("e5-small").fitted.floor           # doctest: +SKIP
            0.7518
        """
        return self._run(calls.fit_similarity_range(self.workspace, embedding_model, sample))

    def clear_similarity_range(self, embedding_model: str) -> WorkspaceSettings:
        """Take the range of an embedding model back: its cosines count as they are.

        Example:
            >>> ledger.clear_similarity_range("e5-small").changed              # doctest: +SKIP
        """
        return self._run(calls.set_similarity_range(self.workspace, embedding_model, None))

    def policy_stats(self, *, since: datetime | None = None) -> list[PolicyStats]:
        """How the recall policies of the workspace have done, side by side.

        - `since`: count only traces from then on; with a time zone.

        Example:
            >>> [(one.recall_policy, one.used_rate) for one in ledger.policy_stats()]  # doctest: +SKIP
        """
        return self._run(calls.policy_stats(self.workspace, since))

    def traces(
        self,
        *,
        since: datetime | None = None,
        marked: bool | None = None,
        preset: Preset | None = None,
        weights: Weights | Mapping[str, float] | None = None,
        limit: int | None = None,
        page_size: int = DEFAULT_PAGE,
        after: Mapping[str, Any] | None = None,
    ) -> Traces:
        """The workspace's recalls, the newest first: what was asked, what came back, what became of it.

        - `since`: only from then on; with a time zone. `marked`: only those of which something was marked as
          used or ignored, or only the others.
        - `preset`, `weights`: score what was returned again, from the components that the trace keeps:
          `score_again` and `rank_again` of an item. What was not returned then is not there.
        - `limit`: stop after so many; None: all. `page_size`: 1 to 100 a request. `after`: as in `timeline`.

        Example:
            >>> [trace.query for trace in ledger.traces(marked=True, limit=10)]  # doctest: +SKIP
        """
        ask = partial(
            asking.traces, self.workspace, since=since, marked=marked, preset=preset, weights=weights
        )
        return Traces(self._run, walk(ask, after=after, limit=limit, page_size=page_size))

    def prune_traces(self, *, before: datetime, limit: int = 1000) -> Pruned:
        """Delete the oldest traces before a moment (with a time zone), at most `limit` of them a call.

        Example:
            >>> while ledger.prune_traces(before=cutoff).more: ...             # doctest: +SKIP
        """
        return self._run(calls.prune_traces(self.workspace, before, limit))

    def status(self, *, everywhere: bool = False) -> Status:
        """How the ledger stands: versions, counts, failures, checks.

        - `everywhere`: all workspaces instead of the client's.

        Example:
            >>> [check.name for check in ledger.status().checks if not check.ok]  # doctest: +SKIP
        """
        return self._run(calls.status(self._scope(everywhere)))

    def enroll_missing(self, *, everywhere: bool = False, limit: int = 10_000) -> Enrolled:
        """Enrol the decisions that have no ledger row yet, at most `limit` a call.

        - `everywhere`: all workspaces instead of the client's.

        Example:
            >>> while ledger.enroll_missing().more: ...                        # doctest: +SKIP
        """
        return self._run(calls.enroll_missing(self._scope(everywhere), limit))

    def check_copies(
        self, *, after: DecisionRef | None = None, limit: int = 1000, mend: bool = False
    ) -> CopiesChecked:
        """Prove what recall searches against the tables, a page of the workspace's decisions at a time.

        - `after`: the page before's `next`. `limit`: decisions a page, at most 10,000; a thousand with
          vectors take one or two seconds, and the platform ends a call after eight.
        - `mend`: have those that differ read from the tables at once, and their copies made anew.

        Example:
            >>> ledger.check_copies().wrong                                    # doctest: +SKIP
            ()
        """
        return self._run(calls.check_copies(self.workspace, after=after, limit=limit, mend=mend))


class AsyncUpkeep(Session[httpx.AsyncClient, Embedder | AsyncEmbedder], AsyncEmbedding):
    """The same part of `AsyncRankedLedger`."""

    _options: Options[Embedder | AsyncEmbedder]

    async def settings(self) -> WorkspaceSettings:
        """As `RankedLedger.settings`."""
        return await self._run(calls.settings(self.workspace))

    async def set_text_config(self, text_config: str | None) -> WorkspaceSettings:
        """As `RankedLedger.set_text_config`."""
        return await self._run(calls.set_text_config(self.workspace, text_config))

    async def set_similarity_range(
        self, embedding_model: str, *, floor: float, ceiling: float
    ) -> WorkspaceSettings:
        """As `RankedLedger.set_similarity_range`."""
        return await self._run(calls.set_similarity_range(self.workspace, embedding_model, (floor, ceiling)))

    async def fit_similarity_range(
        self, embedding_model: str, *, sample: int = calls.DEFAULT_SAMPLE
    ) -> WorkspaceSettings:
        """As `RankedLedger.fit_similarity_range`."""
        return await self._run(calls.fit_similarity_range(self.workspace, embedding_model, sample))

    async def clear_similarity_range(self, embedding_model: str) -> WorkspaceSettings:
        """As `RankedLedger.clear_similarity_range`."""
        return await self._run(calls.set_similarity_range(self.workspace, embedding_model, None))

    async def policy_stats(self, *, since: datetime | None = None) -> list[PolicyStats]:
        """As `RankedLedger.policy_stats`."""
        return await self._run(calls.policy_stats(self.workspace, since))

    def traces(
        self,
        *,
        since: datetime | None = None,
        marked: bool | None = None,
        preset: Preset | None = None,
        weights: Weights | Mapping[str, float] | None = None,
        limit: int | None = None,
        page_size: int = DEFAULT_PAGE,
        after: Mapping[str, Any] | None = None,
    ) -> AsyncTraces:
        """As `RankedLedger.traces`, for `async for`."""
        ask = partial(
            asking.traces, self.workspace, since=since, marked=marked, preset=preset, weights=weights
        )
        return AsyncTraces(self._run, walk(ask, after=after, limit=limit, page_size=page_size))

    async def prune_traces(self, *, before: datetime, limit: int = 1000) -> Pruned:
        """As `RankedLedger.prune_traces`."""
        return await self._run(calls.prune_traces(self.workspace, before, limit))

    async def status(self, *, everywhere: bool = False) -> Status:
        """As `RankedLedger.status`."""
        return await self._run(calls.status(self._scope(everywhere)))

    async def enroll_missing(self, *, everywhere: bool = False, limit: int = 10_000) -> Enrolled:
        """As `RankedLedger.enroll_missing`."""
        return await self._run(calls.enroll_missing(self._scope(everywhere), limit))

    async def check_copies(
        self, *, after: DecisionRef | None = None, limit: int = 1000, mend: bool = False
    ) -> CopiesChecked:
        """As `RankedLedger.check_copies`."""
        return await self._run(calls.check_copies(self.workspace, after=after, limit=limit, mend=mend))
