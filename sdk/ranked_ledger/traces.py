"""What recalls left behind: what was asked, what came back, what became of it, and what policies came to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, overload
from uuid import UUID

from pydantic import Field

from ranked_ledger.models import Answer


class TracedItem(Answer):
    """A decision that a recall returned.

    - `rank`, `ranking_score`, `similarity` and the components: as they were then; None where the policy had
      none. `used`: True or False once it was marked; `ignored_reason`: why it was of no use.
    - `score_again`, `rank_again`: under the weights that were asked for; None without, and for an item
      without components.
    """

    memory_id: UUID
    rank: int | None = None
    similarity: float | None = None
    ranking_score: float | None = None
    used: bool | None = None
    ignored_reason: str | None = None
    relevance: float | None = None
    relevance_source: str | None = None
    text_relevance: float | None = None
    summary_match: float | None = None
    importance: float | None = None
    recency: float | None = None
    dependency_boost: float | None = None
    step_index: int | None = None
    pinned: bool = False
    lifecycle_status: str | None = None
    score_again: float | None = None
    rank_again: int | None = None


class RecallTrace(Answer):
    """A recall as its trace keeps it. `arguments`: what was in force, by SQL's names; no words, no vector."""

    request_id: UUID
    query: str
    created_at: datetime
    policy: str
    project_id: str | None = None
    task_id: str | None = None
    flow_id: str | None = None
    runtime_name: str | None = None
    arguments: dict[str, Any] = Field(default_factory=dict)
    items: tuple[TracedItem, ...] = ()


class UsageMarked(Answer):
    """How many items of a trace were marked now, were marked `already`, or are not in it (`unknown`)."""

    used: int
    ignored: int
    already: int = 0
    unknown: tuple[UUID, ...] = ()


class PolicyStats(Answer):
    """How one recall policy has done: averages and rates are in [0,1], or None where nothing is known."""

    recall_policy: str
    recall_requests: int
    items_returned: int
    avg_similarity: float | None = None
    avg_ranking_score: float | None = None
    used_rate: float | None = None
    ignored_rate: float | None = None


class Pruned(Answer):
    """How many traces were deleted, and whether there are `more` to delete."""

    deleted: int
    more: bool


@dataclass(frozen=True)
class TracePage(Sequence[RecallTrace]):
    """One page of traces. `next`: the cursor of the page after it; `weights`: those of `score_again`."""

    traces: tuple[RecallTrace, ...]
    next: Mapping[str, Any] | None = None
    weights: Mapping[str, float] | None = None

    @overload
    def __getitem__(self, index: int) -> RecallTrace: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[RecallTrace, ...]: ...
    def __getitem__(self, index: int | slice) -> RecallTrace | tuple[RecallTrace, ...]:
        return self.traces[index]

    def __len__(self) -> int:
        return len(self.traces)

    def __iter__(self) -> Iterator[RecallTrace]:
        return iter(self.traces)
