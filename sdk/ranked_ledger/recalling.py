"""Recall, and what is said of it afterwards, for both clients."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from uuid import UUID

from ranked_ledger import asking, calls
from ranked_ledger.models import (
    DEFAULT_PRESET,
    UNSET,
    DecisionRef,
    Fusion,
    Preset,
    Unset,
    Weights,
)
from ranked_ledger.recalls import Recall
from ranked_ledger.session import given_or_new
from ranked_ledger.subjects import Subject
from ranked_ledger.traces import UsageMarked
from ranked_ledger.upkeep import AsyncUpkeep, Upkeep


class Recalling(Upkeep):
    """The part of `RankedLedger` that recalls."""

    def recall(
        self,
        query: str | None = None,
        *,
        task: str | None = None,
        project: str | Unset | None = UNSET,
        current_step: int | None = None,
        limit: int = 10,
        max_tokens: int | None = None,
        include_superseded: bool = False,
        include_stale: bool | None = None,
        only_confirmed: bool = False,
        include_personal: bool = True,
        min_relevance: float | None = None,
        as_of: datetime | None = None,
        as_of_step: int | None = None,
        preset: Preset = DEFAULT_PRESET,
        weights: Weights | Mapping[str, float] | None = None,
        half_life_steps: float | None = None,
        dependency_saturation: float | None = None,
        embedding: Sequence[float] | None = None,
        embedding_model: str | None = None,
        similarity_floor: float | None = None,
        similarity_ceiling: float | None = None,
        fusion: Fusion | None = None,
        fusion_weight: float | None = None,
        exact: bool = True,
        trace: bool = True,
        request_id: UUID | str | None = None,
        policy: str | None = None,
        flow: str | None = None,
        runtime_name: str | None = None,
        subject: Subject | None = None,
    ) -> Recall:
        """The decisions that matter now, best first, and a trace of what was returned.

        What is in scope:

        - `query`: what is asked, as text; None ranks by importance, recency and dependency alone.
        - `task`, `project`: only those; None: all of them. `project` is the client's by default.
        - `include_superseded`: also what is not active, superseded and rejected ones 0.30 lower.
          `include_stale`: of these only the stale and disputed ones. None is as the preset says: "tuned" has
          them, 0.05 lower, and hit and prompt line say what they are; "published" leaves them out.
        - `only_confirmed`: none that is pending while its confirmation is required, as the host's tables have
          it by default. `include_personal`: False leaves out what is of visibility "personal".
        - `min_relevance`: in [0,1]; none of less relevance, pinned ones included. None: no minimum.
        - `limit`: 1 to 1,000 hits. `max_tokens`: an upper bound for `to_prompt()`, fence included.
        - `exact`: the answer is proven to be the best. False: in a large workspace a vector may be answered
          from an approximate index, faster; `Recall.exact` says which it was. Under "tuned" a `query` of any
          words is always answered with proof, and False changes nothing.

        As of when:

        - `as_of_step`: of one `task`: what was there when its work stood at that step, as it stood then.
          `as_of`: the same by a time, with its time zone, in any scope. Nothing that was decided, linked or
          changed in lifecycle later is in the answer. Texts, importance, pins and steps are today's, and what
          was deleted since is not there. A trace is left, but nothing is counted as recalled.

        How it is weighed:

        - `current_step`: where the work stands; by default the newest step of each stream.
        - `preset`: what is in force where an argument is not given. "tuned", the default: words by how rare
          they are, cosine and words blended, little recency, since that found the right decision more often
          on decisions of real projects (docs/evaluation.md). "published": the formula of the proposal, and
          the default of the database's own functions. docs/sql-api.md has both side by side.
        - `weights`: of the components, finite and at least 0. `half_life_steps`: recency is
          exp(-steps / half_life_steps). `dependency_saturation`: that many dependents count fully.
        - `embedding`, `embedding_model`: of the query; by default the client's embedder makes it.
        - `similarity_floor`, `similarity_ceiling`: the cosines that count as relevance 0 and 1, floor below
          ceiling, in [-1,1]. By default those of `set_similarity_range` for the model, else 0 and 1.
        - `fusion`: of a decision's cosine and its text match, where there are both. "none" takes the cosine,
          "max" the greater one, "blend" `fusion_weight` (in [0,1]) of the cosine and the rest of the text.
          None: as the preset says, a blend under "tuned", and "none" under "published".

        What is kept:

        - `trace`: False leaves none. `request_id`: names the trace; a repeat with it leaves no second one.
        - `policy`: the name that the trace carries, for `policy_stats`. `flow`, `runtime_name`: kept with it.
        - `subject`: whom the question is about, such as `("candidate", id)`, where the long-term memory is
          installed: subject access shows the trace, and an erasure blanks it.

        An unknown or empty workspace answers no hits and a `hint`. Raises `InvalidArgumentError` for a value
        out of its range, `ConflictError` where the request id belongs to another question or workspace,
        `DimensionError` for another dimension than the host's, and `NotInstalledError` where the ledger in
        the database is older than an argument that was set.

        Example:
            >>> for hit in ledger.recall("can a sent invoice be edited?", task="invoicing"):  # doctest: +SKIP
            ...     print(hit.score, hit.explain())
        """
        call = asking.recall(
            self.workspace,
            query,
            task=task,
            project=self._project(project),
            current_step=current_step,
            limit=limit,
            max_tokens=max_tokens,
            include_superseded=include_superseded,
            include_stale=include_stale,
            only_confirmed=only_confirmed,
            include_personal=include_personal,
            min_relevance=min_relevance,
            weights=weights,
            half_life_steps=half_life_steps,
            dependency_saturation=dependency_saturation,
            embedding=embedding,
            embedding_model=embedding_model,
            similarity_floor=similarity_floor,
            similarity_ceiling=similarity_ceiling,
            fusion=fusion,
            fusion_weight=fusion_weight,
            exact=exact,
            trace=trace,
            request_id=given_or_new(request_id) if trace else request_id,
            policy=policy,
            flow=flow,
            runtime_name=runtime_name,
            subject=subject,
            preset=preset,
            as_of=as_of,
            as_of_step=as_of_step,
        )
        wanted = "" if query is None or embedding is not None else query.strip()
        return self._run(self._completed(call, "query_embedding", wanted) if wanted else call)

    def mark_used(
        self, recall: Recall | UUID | str, decisions: DecisionRef | Iterable[DecisionRef]
    ) -> UsageMarked:
        """Say which decisions of a recall were used: once per trace and decision, however often it is sent.

        - `recall`: the recall, or its request id. Raises `NotFoundError` for an unknown trace.

        Example:
            >>> ledger.mark_used(recall, recall[0])                            # doctest: +SKIP
        """
        return self._run(calls.mark_usage(self.workspace, recall, used=decisions))

    def mark_ignored(
        self,
        recall: Recall | UUID | str,
        decisions: DecisionRef | Iterable[DecisionRef],
        *,
        reason: str | None = None,
    ) -> UsageMarked:
        """Say which decisions of a recall were of no use, and why.

        Example:
            >>> ledger.mark_ignored(recall, recall[2], reason="another customer")  # doctest: +SKIP
        """
        return self._run(calls.mark_usage(self.workspace, recall, ignored=decisions, reason=reason))


class AsyncRecalling(AsyncUpkeep):
    """The part of `AsyncRankedLedger` that recalls."""

    async def recall(
        self,
        query: str | None = None,
        *,
        task: str | None = None,
        project: str | Unset | None = UNSET,
        current_step: int | None = None,
        limit: int = 10,
        max_tokens: int | None = None,
        include_superseded: bool = False,
        include_stale: bool | None = None,
        only_confirmed: bool = False,
        include_personal: bool = True,
        min_relevance: float | None = None,
        as_of: datetime | None = None,
        as_of_step: int | None = None,
        preset: Preset = DEFAULT_PRESET,
        weights: Weights | Mapping[str, float] | None = None,
        half_life_steps: float | None = None,
        dependency_saturation: float | None = None,
        embedding: Sequence[float] | None = None,
        embedding_model: str | None = None,
        similarity_floor: float | None = None,
        similarity_ceiling: float | None = None,
        fusion: Fusion | None = None,
        fusion_weight: float | None = None,
        exact: bool = True,
        trace: bool = True,
        request_id: UUID | str | None = None,
        policy: str | None = None,
        flow: str | None = None,
        runtime_name: str | None = None,
        subject: Subject | None = None,
    ) -> Recall:
        """As `RankedLedger.recall`."""
        call = asking.recall(
            self.workspace,
            query,
            task=task,
            project=self._project(project),
            current_step=current_step,
            limit=limit,
            max_tokens=max_tokens,
            include_superseded=include_superseded,
            include_stale=include_stale,
            only_confirmed=only_confirmed,
            include_personal=include_personal,
            min_relevance=min_relevance,
            weights=weights,
            half_life_steps=half_life_steps,
            dependency_saturation=dependency_saturation,
            embedding=embedding,
            embedding_model=embedding_model,
            similarity_floor=similarity_floor,
            similarity_ceiling=similarity_ceiling,
            fusion=fusion,
            fusion_weight=fusion_weight,
            exact=exact,
            trace=trace,
            request_id=given_or_new(request_id) if trace else request_id,
            policy=policy,
            flow=flow,
            runtime_name=runtime_name,
            subject=subject,
            preset=preset,
            as_of=as_of,
            as_of_step=as_of_step,
        )
        wanted = "" if query is None or embedding is not None else query.strip()
        return await self._run(await self._completed(call, "query_embedding", wanted) if wanted else call)

    async def mark_used(
        self, recall: Recall | UUID | str, decisions: DecisionRef | Iterable[DecisionRef]
    ) -> UsageMarked:
        """As `RankedLedger.mark_used`."""
        return await self._run(calls.mark_usage(self.workspace, recall, used=decisions))

    async def mark_ignored(
        self,
        recall: Recall | UUID | str,
        decisions: DecisionRef | Iterable[DecisionRef],
        *,
        reason: str | None = None,
    ) -> UsageMarked:
        """As `RankedLedger.mark_ignored`."""
        return await self._run(calls.mark_usage(self.workspace, recall, ignored=decisions, reason=reason))
