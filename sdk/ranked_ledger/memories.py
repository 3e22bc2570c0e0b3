"""What the long-term memory answers, as frozen values. Fields that a newer server adds are ignored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, overload
from uuid import UUID

from pydantic import Field

from ranked_ledger import disclosure, prompts
from ranked_ledger.errors import InvalidArgumentError
from ranked_ledger.models import Answer


class Memory(Answer):
    """A memory as the store holds it.

    - `memory_id`: its id everywhere. `subject_type`, `subject_id`: whom it is about; `workspace_id`: where a
      memory of a workspace belongs.
    - `author`: model or person. `grade`: how the writer is known: verified (by their token), asserted (named
      by the service role), or None for a model on the service key. `written_by`, `asserted_by`: the person.
    - `source_run_id`: the run that wrote it, until that is pruned.
    - `review_outcome`: approved, evidence_only, rejected, or None while it waits. `reviewed_by`,
      `reviewed_at`, `review_grade`: by whom, when, and how they are known.
    - `can_use_as_instruction`: only after a verified approval.
    - `expires_at`: when it fades. `erased_at`: when its words were erased; then `text` is empty.
    - `changed`: after a correction or a review, whether anything was different before; None otherwise.
    """

    memory_id: UUID
    org_id: UUID
    subject_type: str
    subject_id: UUID | None = None
    workspace_id: str | None = None
    text: str
    author: str
    grade: str | None = None
    source_run_id: str | None = None
    written_by: UUID | None = None
    asserted_by: str | None = None
    reviewed_at: datetime | None = None
    reviewed_by: UUID | None = None
    review_outcome: str | None = None
    review_grade: str | None = None
    can_use_as_instruction: bool = False
    embedding_model: str | None = None
    created_at: datetime
    updated_at: datetime
    expires_at: datetime | None = None
    erased_at: datetime | None = None
    changed: bool | None = None

    def __hash__(self) -> int:
        return hash(self.memory_id)


class Remembered(Memory):
    """A memory that was written.

    - `replayed`: a call with the same idempotency key had written it before.
    - `erased_before`: clear, or flagged where the digest key shows that the text was erased for this person;
      not_checked without a key; other_key where what was erased was kept under another one.
    """

    replayed: bool = False
    erased_before: str = "not_checked"

    __hash__ = Memory.__hash__


class MemoryHit(Answer):
    """A memory that a recall returned.

    - `score`: its rank's reason: `relevance` and `recency`, each in [0,1], by their weights.
    - `relevance_source`: cosine, fts (words) or none. `age_days`: days since it was written.
    - `author`, `grade`, `review_outcome`, `review_grade`, `can_use_as_instruction`: as in `Memory`.
    - `line`: the rendered item that a prompt shows, provenance included. `tokens`: what it costs.
    """

    rank: int
    memory_id: UUID
    text: str
    subject_type: str
    subject_id: UUID | None = None
    workspace_id: str | None = None
    author: str
    grade: str | None = None
    review_outcome: str | None = None
    review_grade: str | None = None
    can_use_as_instruction: bool = False
    source_run_id: str | None = None
    created_at: datetime
    expires_at: datetime | None = None
    age_days: float
    relevance: float
    relevance_source: str
    recency: float
    score: float
    tokens: int | None = None
    line: str

    def __hash__(self) -> int:
        return hash(self.memory_id)


@dataclass(frozen=True)
class MemoryRecall(Sequence[MemoryHit]):
    """The memories of one recall, best first.

    - `recall_id`: names it in `MemorySteward.usage` and in subject access, where it is `recorded`.
    - `dropped`: what the token budget left out. `shortened`: what it shortened.
    - `arguments`: what was in force after defaults, by SQL's names (`p_...`).
    - `hint`: where there are no hits, a sentence about why.
    """

    hits: tuple[MemoryHit, ...]
    recall_id: UUID | None = None
    shortened: tuple[UUID, ...] = ()
    dropped: tuple[UUID, ...] = ()
    recorded: bool = False
    arguments: Mapping[str, Any] = field(default_factory=dict)
    hint: str | None = None

    @overload
    def __getitem__(self, index: int) -> MemoryHit: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[MemoryHit, ...]: ...
    def __getitem__(self, index: int | slice) -> MemoryHit | tuple[MemoryHit, ...]:
        return self.hits[index]

    def __len__(self) -> int:
        return len(self.hits)

    def __iter__(self) -> Iterator[MemoryHit]:
        return iter(self.hits)

    def to_prompt(self, *, max_tokens: int | None = None) -> str:
        """The memories as one fenced block for a prompt, labelled as data; empty where there are none.

        - `max_tokens`: an upper bound for the whole block, in tokens of four characters. A recall with
          `max_tokens` keeps to it already.
        """
        if max_tokens is not None and (isinstance(max_tokens, bool) or not isinstance(max_tokens, int)):
            raise InvalidArgumentError(f"max_tokens must be a whole number, not {type(max_tokens).__name__}")
        return prompts.render(self.hits, what="memories", max_tokens=max_tokens)

    def as_dict(self) -> dict[str, Any]:
        """The same as plain values, ready for JSON."""
        return {
            "recall_id": None if self.recall_id is None else str(self.recall_id),
            "hits": [hit.model_dump(mode="json") for hit in self.hits],
            "shortened": [str(memory_id) for memory_id in self.shortened],
            "dropped": [str(memory_id) for memory_id in self.dropped],
            "recorded": self.recorded,
            "arguments": dict(self.arguments),
            "hint": self.hint,
        }


class ForgottenMemory(Answer):
    """What a `forget` left behind: a tombstone. `already`: its words were gone before."""

    memory_id: UUID
    forgotten_at: datetime
    already: bool = False


@dataclass(frozen=True)
class ReviewPage(Sequence[Memory]):
    """One page of what waits for a review, the oldest first.

    - `pending`: how many wait in all. `next`: the cursor of the page after it, or None on the last one.
    """

    memories: tuple[Memory, ...]
    next: Mapping[str, Any] | None = None
    pending: int = 0

    @overload
    def __getitem__(self, index: int) -> Memory: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Memory, ...]: ...
    def __getitem__(self, index: int | slice) -> Memory | tuple[Memory, ...]:
        return self.memories[index]

    def __len__(self) -> int:
        return len(self.memories)

    def __iter__(self) -> Iterator[Memory]:
        return iter(self.memories)


@dataclass(frozen=True)
class SubjectAccess:
    """Everything that both stores hold about a person: a document to hand over.

    - `as_text()`, and `str()`: for a person to read. `as_dict()`: the document as the database answered it.
    """

    document: Mapping[str, Any] = field(repr=False)

    @property
    def memories(self) -> tuple[Mapping[str, Any], ...]:
        """What is remembered about them: text, writer, review history, and which runs read it."""
        return self._part("memories")

    @property
    def decisions(self) -> tuple[Mapping[str, Any], ...]:
        """The decisions of the ledger that are attributed to them."""
        return self._part("decisions")

    @property
    def recalls(self) -> tuple[Mapping[str, Any], ...]:
        """The recalls of memories that returned something of theirs, or were said to be about them."""
        return self._part("recalls")

    @property
    def traces(self) -> tuple[Mapping[str, Any], ...]:
        """The same of the ledger's recalls."""
        return self._part("traces")

    @property
    def erasures(self) -> tuple[Mapping[str, Any], ...]:
        """What was erased about them before, without its words."""
        return self._part("erasures")

    @property
    def notes(self) -> tuple[str, ...]:
        """What to know about the document, for example what was erased together with another person."""
        return tuple(self.document.get("notes") or ())

    def _part(self, name: str) -> tuple[Mapping[str, Any], ...]:
        return tuple(self.document.get(name) or ())

    def as_dict(self) -> dict[str, Any]:
        """The document, ready for JSON."""
        return dict(self.document)

    def as_text(self) -> str:
        """The document as text that a person can read, with nothing of it left out."""
        return disclosure.render(self.document)

    def __str__(self) -> str:
        return self.as_text()


class Erasure(Answer):
    """The receipt of an erasure; none of the person's words are in it.

    - `receipt_id`: None for a dry run, and where nothing was held about the person.
    - `already`: everything had been erased before. `digests`: how many keyed digests were kept.
    - `counts`: how many memories, decisions, thoughts, traces and so on. `notes`: what to know besides.
    """

    receipt_id: UUID | None = None
    erased_at: datetime | None = None
    dry_run: bool = False
    already: bool = False
    counts: dict[str, int] = Field(default_factory=dict)
    digests: int = 0
    notes: tuple[str, ...] = ()


class MemoryRead(Answer):
    """One recall that returned a memory: when, at which rank and score, for which run or person."""

    recall_id: UUID
    run_id: str | None = None
    recalled_by: UUID | None = None
    at: datetime
    rank: int
    score: float


class MemoryUsage(Answer):
    """Who has read a memory: `reads` in all, and the newest of them as `runs`."""

    memory_id: UUID
    reads: int
    runs: tuple[MemoryRead, ...] = ()


class Attribution(Answer):
    """A decision of the ledger and whom it is about; `changed`: it was otherwise before."""

    memory_id: UUID
    subject_type: str
    subject_id: UUID | None = None
    changed: bool


class MappedWorkspace(Answer):
    """A workspace of the ledger and its organization, None where it has none.

    `attributions_lost`: decisions that were about a person of another organization, and no longer are.
    """

    workspace_id: str
    org_id: UUID | None = None
    changed: bool
    attributions_lost: int = 0


class Expired(Answer):
    """What a sweep deleted, and whether there is `more`."""

    expired: int
    recalls_deleted: int = 0
    more: bool


class Skipped(Answer):
    """A row that was not adopted, and why."""

    id: UUID | str | None = None
    reason: str


class Adopted(Answer):
    """What was copied from another table of memories.

    - `adopted`: rows that are new here; `present`: that were here. `skipped`: at most 100 of `skipped_total`.
    - `next`: where the next call goes on; None at the end.
    """

    adopted: int
    present: int = 0
    skipped: tuple[Skipped, ...] = ()
    skipped_total: int = 0
    next: UUID | None = None


class Organization(Answer):
    """An organization, and whether the service role may name its members (`allow_asserted`)."""

    org_id: UUID
    name: str | None = None
    allow_asserted: bool = False
    created: bool = False


class Member(Answer):
    """What a user is in an organization: member, admin, owner, or None.

    `hint`: what to know about the change, for example that it took the last owner out; else None.
    """

    org_id: UUID
    user_id: UUID
    role: str | None = None
    changed: bool
    hint: str | None = None
