"""What a recall answers: hits that explain themselves, and go into a prompt as data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, overload
from uuid import UUID

from pydantic import Field

from ranked_ledger import prompts
from ranked_ledger.errors import InvalidArgumentError
from ranked_ledger.explanation import Explanation, explain
from ranked_ledger.models import Answer


class Hit(Answer):
    """A decision that a recall returned.

    - `score`: its rank's reason, in [-0.30, sum of the weights]. `explain()` takes it apart.
    - `relevance`, `importance`, `recency`, `dependency_boost`: the components, each in [0,1].
    - `relevance_source`: cosine, fts (words), max or blend (of both) or none. `similarity`: the cosine as it
      is. `text_relevance`: that of the words. `summary_match`: the share of the summary's words that
      the query names, where it is weighed.
    - `step_distance`: steps between it and now. `live_dependents`: how many live decisions rest on it.
    - `successor`: what replaced it, or None. `depends_on`: what it rests on directly, in a fixed order.
      `rests_on_retired`: something it rests on no longer holds.
    - `shortened`: its line shows the summary, to fit the token budget. `tokens`: what the line costs.
    - `line`: the rendered item that a prompt shows.
    """

    rank: int
    memory_id: UUID
    summary: str | None = None
    content: str
    rationale: str | None = None
    step_index: int
    importance: float
    pinned: bool = False
    lifecycle_status: str
    relevance: float
    relevance_source: str
    recency: float
    dependency_boost: float
    ranking_score: float
    project_id: str | None = None
    task_id: str | None = None
    similarity: float | None = None
    text_relevance: float | None = None
    summary_match: float | None = None
    step_distance: int | None = None
    live_dependents: int | None = None
    alternatives: tuple[str, ...] = ()
    successor: UUID | None = None
    depends_on: tuple[UUID, ...] = ()
    rests_on_retired: bool = False
    shortened: bool = False
    tokens: int | None = None
    line: str
    arguments: dict[str, Any] = Field(default_factory=dict, repr=False)

    def __hash__(self) -> int:
        return hash(self.memory_id)

    @property
    def score(self) -> float:
        """The score, as the database computed it."""
        return self.ranking_score

    def explain(self) -> Explanation:
        """Why this hit stands where it stands; `str()` of it is for people, `as_dict()` for programs."""
        return explain(self)


@dataclass(frozen=True)
class Recall(Sequence[Hit]):
    """The hits of one recall, best first.

    - `request_id`: names its trace, for `mark_used` and `mark_ignored`, where it is `traced`.
    - `shortened`, `dropped`: what the token budget shortened to its summary, or left out.
    - `exact`: whether the hits are proven to be the best; False only where `exact=False` was asked.
    - `arguments`: what was in force after defaults, by SQL's names (`p_...`). `policy`: the trace's.
    - `traced`: whether the trace was written. `replayed`: whether it had been before.
    - `hint`: where there are no hits, a sentence about why.
    """

    hits: tuple[Hit, ...]
    request_id: UUID | None = None
    shortened: tuple[UUID, ...] = ()
    dropped: tuple[UUID, ...] = ()
    exact: bool = True
    policy: str | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    traced: bool = False
    replayed: bool = False
    hint: str | None = None

    @overload
    def __getitem__(self, index: int) -> Hit: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Hit, ...]: ...
    def __getitem__(self, index: int | slice) -> Hit | tuple[Hit, ...]:
        return self.hits[index]

    def __len__(self) -> int:
        return len(self.hits)

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def to_prompt(self, *, max_tokens: int | None = None) -> str:
        """The hits as one fenced block for a prompt, labelled as data; empty where there are none.

        - `max_tokens`: an upper bound for the whole block, in tokens of four characters. A recall with
          `max_tokens` keeps to it already, and holds pinned decisions to half of it, which this does not.
        """
        if max_tokens is not None and (isinstance(max_tokens, bool) or not isinstance(max_tokens, int)):
            raise InvalidArgumentError(f"max_tokens must be a whole number, not {type(max_tokens).__name__}")
        return prompts.render(self.hits, max_tokens=max_tokens)

    def as_dict(self) -> dict[str, Any]:
        """The same as plain values, ready for JSON."""
        return {
            "request_id": None if self.request_id is None else str(self.request_id),
            "hits": [hit.model_dump(mode="json", exclude={"arguments"}) for hit in self.hits],
            "shortened": [str(memory_id) for memory_id in self.shortened],
            "dropped": [str(memory_id) for memory_id in self.dropped],
            "exact": self.exact,
            "policy": self.policy,
            "arguments": dict(self.arguments),
            "traced": self.traced,
            "replayed": self.replayed,
            "hint": self.hint,
        }
