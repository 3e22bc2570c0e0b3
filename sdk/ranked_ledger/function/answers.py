"""What a function answers that the ledger itself does not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, overload
from uuid import UUID

from pydantic import AliasChoices, Field

from ranked_ledger.models import Answer
from ranked_ledger.recalls import Recall


@dataclass(frozen=True)
class FunctionRecall(Recall):
    """A `Recall` that went through a function, which has written its trace.

    - `embedding`: used, or why the ranking went by words: failed, timeout, unusable, dimension, none.
    - `not_applied`: what the request asked and the ledger does not do, such as `limits.recency_days`.
    """

    embedding: str = "none"
    not_applied: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """The same as plain values, ready for JSON."""
        return {**super().as_dict(), "embedding": self.embedding, "not_applied": list(self.not_applied)}


class FunctionMemory(Answer):
    """A memory of any type, as the function's own vector search answers it."""

    memory_id: UUID = Field(validation_alias=AliasChoices("memory_id", "id"))
    memory_type: str | None = None
    summary: str | None = None
    content: str | None = None
    lifecycle_status: str | None = None
    similarity: float | None = None
    ranking_score: float | None = None

    def __hash__(self) -> int:
        return hash(self.memory_id)


@dataclass(frozen=True)
class VectorRecall(Sequence[FunctionMemory]):
    """What the function's own vector search found, best first. `request_id` names its trace."""

    memories: tuple[FunctionMemory, ...]
    request_id: UUID

    @overload
    def __getitem__(self, index: int) -> FunctionMemory: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[FunctionMemory, ...]: ...
    def __getitem__(self, index: int | slice) -> FunctionMemory | tuple[FunctionMemory, ...]:
        return self.memories[index]

    def __len__(self) -> int:
        return len(self.memories)

    def __iter__(self) -> Iterator[FunctionMemory]:
        return iter(self.memories)


class NotLinked(Answer):
    """A decision that another one should rest on, and why it does not."""

    depends_on: UUID
    code: str | None = None
    reason: str


class Recorded(Answer):
    """A decision that a function has stored. It writes step by step, so some of it may be missing.

    - `step_index`, `importance`: as the ledger holds it; None where it does not, or where it is `replayed`.
    - `enrolled`: whether the ledger holds it; where not, `reason` says why, and `enroll_missing` mends it.
    - `linked`: what it rests on now. `not_linked`: what it should rest on and does not.
    - `replayed`: a write with the same idempotency key had stored it; what it rests on is not told again.
    """

    memory_id: UUID
    step_index: int | None = None
    importance: float | None = None
    enrolled: bool = True
    reason: str | None = None
    linked: tuple[UUID, ...] = ()
    not_linked: tuple[NotLinked, ...] = ()
    replayed: bool = False

    def __hash__(self) -> int:
        return hash(self.memory_id)
