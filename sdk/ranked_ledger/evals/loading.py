"""Replays a dataset into a ledger in the order in which it was decided, up to a question's step.

What was decided later is not there yet; what was superseded later is still in force.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Final, Literal, get_args
from uuid import UUID

from ranked_ledger import ConflictError, LoopError, NewDecision, RankedLedger
from ranked_ledger.evals.cases import Dataset, Edge, Record, Supersession
from ranked_ledger.evals.vectors import Vectors

Mark = Literal["stale", "disputed", "rejected"]

_ACTOR: Final = "replay"


@dataclass
class Loaded:
    """What a replay wrote, and what it could not.

    - `refused_edges`, `refused_supersessions`: they would have closed a loop.
    - `unknown_successors`: superseded by the records' own word, by what they do not say: they stay in force.
    """

    decisions: int = 0
    edges: int = 0
    supersessions: int = 0
    marked: int = 0
    refused_edges: int = 0
    refused_supersessions: int = 0
    unknown_successors: int = 0
    unknown_targets: int = 0

    def as_dict(self) -> dict[str, int]:
        return asdict(self)


@dataclass
class Replay:
    """One workspace under way: `until` takes it forward, never back."""

    ledger: RankedLedger
    dataset: Dataset
    workspace: str
    vectors: Vectors | None
    loaded: Loaded
    ids: dict[str, UUID] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict)
    """What is there: the memory of each key, and the key of each memory's id."""

    def __post_init__(self) -> None:
        self._records = self.dataset.records_of(self.workspace)
        self._edges = self.dataset.edges_of(self.workspace)
        self._supersessions = self.dataset.supersessions_of(self.workspace)
        self._newer: dict[str, list[str]] = {}
        self._done = -1

    def until(self, step: int) -> None:
        """Write what was decided, linked and superseded up to a step, the step included."""
        for stop in self._stops(step):
            self._write([one for one in self._records if self._done < one.step <= stop])
            for edge in self._edges:
                if self._done < edge.enters_at <= stop:
                    self._link(edge)
            for pair in self._supersessions:
                if self._done < pair.enters_at <= stop:
                    self._supersede(pair)
            self._done = stop

    def successors(self, key: str) -> set[str]:
        """What has replaced a decision so far, at once or by way of others."""
        found: set[str] = set()
        front = [key]
        while front:
            new = [one for one in self._newer.get(front.pop(), ()) if one not in found]
            found.update(new)
            front += new
        return found

    def _stops(self, step: int) -> Iterator[int]:
        """Where a transition falls, so that each has the step that it really had; and the step itself."""
        moments = {pair.enters_at for pair in self._supersessions}
        moments |= {one.step for one in self._records if _mark(one) is not None}
        yield from sorted(one for one in moments if self._done < one < step)
        if step > self._done:
            yield step

    def _write(self, records: Sequence[Record]) -> None:
        made = self.ledger.record_many([self._decision(one) for one in records])
        for record, decision in zip(records, made, strict=True):
            self.ids[record.key] = decision.memory_id
            self.keys[str(decision.memory_id)] = record.key
            self.loaded.decisions += 1
            self.loaded.unknown_successors += record.lifecycle == "superseded" and not record.superseded_by
            mark = _mark(record)
            if mark is not None:
                self.ledger.set_lifecycle(decision, mark, actor=_ACTOR)
                self.loaded.marked += 1

    def _decision(self, record: Record) -> NewDecision:
        vector = None if self.vectors is None else self.vectors.passage(record.embedded_text).tolist()
        return NewDecision(
            record.content,
            rationale=record.rationale,
            alternatives=record.alternatives,
            importance=record.importance,
            step=record.step,
            task=self._task(record.stream),
            summary=record.title,
            embedding=vector,
            embedding_model=None if self.vectors is None else self.vectors.model,
            pinned=record.pinned,
        )

    def _task(self, stream: str) -> str:
        return "decisions" if stream == self.workspace else stream.rpartition("/")[2]

    def _link(self, edge: Edge) -> None:
        try:
            self.ledger.link(self.ids[edge.source], self.ids[edge.target], relation=edge.relation)
            self.loaded.edges += 1
        except LoopError:
            self.loaded.refused_edges += 1

    def _supersede(self, pair: Supersession) -> None:
        try:
            self.ledger.supersede(self.ids[pair.old], by=self.ids[pair.new], actor=_ACTOR)
        except (LoopError, ConflictError):
            self.loaded.refused_supersessions += 1
        else:
            self.loaded.supersessions += 1
            self._newer.setdefault(pair.old, []).append(pair.new)


def _mark(record: Record) -> Mark | None:
    """What a decision is marked as when it enters: its records give no date for it."""
    return next((mark for mark in get_args(Mark) if mark == record.lifecycle), None)
