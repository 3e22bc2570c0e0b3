"""What an evaluation is made of: decisions in the order in which they were made, and questions with answers.

Everything here is frozen and says nothing about how it was read or made. Steps count through a workspace: at
the step of a question there is what has a step up to it, in each stream of the question's workspace.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from types import MappingProxyType
from typing import Any, Literal

from ranked_ledger.errors import InvalidArgumentError
from ranked_ledger.evals.errors import EvalError

LinkRelation = Literal["depends_on", "informs"]
Lifecycle = Literal["active", "superseded", "stale", "disputed", "rejected"]


@dataclass(frozen=True, slots=True)
class Link:
    """An edge from the record that holds it to `target`, a key of the same workspace.

    Supersessions are no links: `Record.superseded_by` has them.
    """

    relation: LinkRelation
    target: str


@dataclass(frozen=True, slots=True)
class Record:
    """One decision.

    - `key`: unique in its workspace. `title`: its summary.
    - `lifecycle`: at the end of the stream. What it was at a step follows from `superseded_at_step`.
    - `superseded_at_step`: the step of the earliest successor; None where none is known.
    """

    stream: str
    key: str
    step: int
    title: str
    content: str
    rationale: str | None = None
    importance: float | None = None
    lifecycle: Lifecycle = "active"
    superseded_at_step: int | None = None
    superseded_by: tuple[str, ...] = ()
    links: tuple[Link, ...] = ()
    pinned: bool = False
    alternatives: tuple[str, ...] = ()

    @property
    def embedded_text(self) -> str:
        """What an embedding of it is an embedding of."""
        return f"{self.content}\n\n{self.rationale}" if self.rationale else self.content


@dataclass(frozen=True, slots=True)
class Question:
    """A question with known answers.

    - `gold`: keys of which any one counts. `must_not`: keys that are retired by then and would mislead.
    - `asked_at_step`: there is what was decided up to this step, and nothing later.
    - `kind`, `split`, `lexical_overlap`: to report by; the last: the share of its words that its answer has.
    """

    id: str
    stream: str
    ask: str
    gold: frozenset[str]
    must_not: frozenset[str]
    asked_at_step: int
    kind: str
    split: str | None = None
    lexical_overlap: float | None = None


@dataclass(frozen=True, slots=True)
class Edge:
    """An edge between two records; it enters a replay with the later of its ends, `enters_at`."""

    source: str
    target: str
    relation: LinkRelation
    enters_at: int


@dataclass(frozen=True, slots=True)
class Supersession:
    """`new` replaces `old`; it enters a replay with the later of the two, `enters_at`."""

    old: str
    new: str
    enters_at: int


@dataclass(frozen=True)
class Dataset:
    """Streams of decisions, and questions about them. Make one by `Dataset.of`, which checks it.

    - `streams`: records in step order, by stream. `digest`: names the contents, not the name.
    - `workspaces`: by stream, where streams share one. `unknown_targets`: links that led nowhere, left out.

    Example:
        >>> record = Record("shop", "A", 1, "Use Postgres", "We use Postgres.")
        >>> question = Question("q1", "shop", "Which database?", frozenset("A"), frozenset(), 1, "early")
        >>> Dataset.of("tiny", {"shop": [record]}, [question]).records_of("shop")[0].key
        'A'
    """

    name: str
    streams: Mapping[str, tuple[Record, ...]]
    questions: tuple[Question, ...]
    digest: str
    workspaces: Mapping[str, str] = field(default_factory=dict)
    unknown_targets: int = 0

    @classmethod
    def of(
        cls,
        name: str,
        streams: Mapping[str, Sequence[Record]],
        questions: Sequence[Question],
        *,
        workspaces: Mapping[str, str] | None = None,
        unknown_targets: int = 0,
    ) -> Dataset:
        """Sort, check and digest. An answer that is not there when it is asked for is an error."""
        ordered = {
            stream: tuple(sorted(records, key=lambda one: (one.step, one.key)))
            for stream, records in sorted(streams.items())
        }
        shared = {stream: (workspaces or {}).get(stream, stream) for stream in ordered}
        made = cls(
            name,
            MappingProxyType(ordered),
            tuple(questions),
            _digest(ordered, questions, shared),
            MappingProxyType(shared),
            unknown_targets,
        )
        made._check()
        return made

    @property
    def records(self) -> Iterator[Record]:
        """Every record, stream by stream."""
        for records in self.streams.values():
            yield from records

    def workspace_of(self, stream: str) -> str:
        """The workspace that a stream is part of: the stream itself, unless the dataset says otherwise."""
        return self.workspaces.get(stream, stream)

    def records_of(self, workspace: str) -> tuple[Record, ...]:
        """The records of a workspace in the order in which they were made, whatever their stream."""
        inside = [
            one
            for stream, records in self.streams.items()
            if self.workspace_of(stream) == workspace
            for one in records
        ]
        return tuple(sorted(inside, key=lambda one: (one.step, one.stream, one.key)))

    def edges_of(self, workspace: str) -> tuple[Edge, ...]:
        """The edges of a workspace in the order in which they enter."""
        records = {one.key: one for one in self.records_of(workspace)}
        edges = [
            Edge(one.key, link.target, link.relation, max(one.step, records[link.target].step))
            for one in records.values()
            for link in one.links
        ]
        return tuple(sorted(edges, key=lambda one: (one.enters_at, one.source, one.target, one.relation)))

    def supersessions_of(self, workspace: str) -> tuple[Supersession, ...]:
        """The supersessions of a workspace in the order in which they enter."""
        records = {one.key: one for one in self.records_of(workspace)}
        pairs = [
            Supersession(one.key, new, max(one.step, records[new].step))
            for one in records.values()
            for new in one.superseded_by
        ]
        return tuple(sorted(pairs, key=lambda one: (one.enters_at, one.old, one.new)))

    def restricted(
        self, streams: Sequence[str] | None = None, limit: int | None = None, seed: int = 0
    ) -> Dataset:
        """Fewer streams, fewer questions, or both.

        - `streams`: these and the others of their workspaces, without which answers would be easier to find;
          questions about these only.
        - `limit`: that many questions, drawn by `seed`. A larger limit keeps what a smaller one drew.
        """
        kept, questions = self.streams, self.questions
        if streams is not None:
            if unknown := sorted(set(streams) - set(self.streams)):
                raise EvalError(
                    f"{self.name} has no stream {unknown[0]!r}", hint=f"it has: {', '.join(self.streams)}"
                )
            inside = {self.workspace_of(stream) for stream in streams}
            kept = {
                stream: records
                for stream, records in self.streams.items()
                if self.workspace_of(stream) in inside
            }
            questions = tuple(one for one in questions if one.stream in streams)
        if limit is not None:
            if limit < 1:
                raise InvalidArgumentError(f"limit is {limit}", hint="ask at least one question")
            drawn = sorted(questions, key=lambda one: _lot(seed, one.id))[:limit]
            ids = {one.id for one in drawn}
            questions = tuple(one for one in questions if one.id in ids)
        made = Dataset.of(self.name, kept, questions, workspaces=self.workspaces)
        return replace(made, unknown_targets=self.unknown_targets)

    def _check(self) -> None:
        hint = (
            "mend the dataset: each key once a workspace, each link, successor and answer a key that is there"
        )
        steps: dict[str, dict[str, int]] = {}
        for record in self.records:
            there = steps.setdefault(self.workspace_of(record.stream), {})
            if record.key in there:
                raise EvalError(f"{record.stream} has {record.key!r} twice", hint=hint)
            there[record.key] = record.step
        for record in self.records:
            there = steps[self.workspace_of(record.stream)]
            for target in (*(link.target for link in record.links), *record.superseded_by):
                if target not in there or target == record.key:
                    raise EvalError(f"{record.stream}: {record.key!r} leads to {target!r}", hint=hint)
        seen: set[str] = set()
        for question in self.questions:
            if question.id in seen:
                raise EvalError(f"there are two questions {question.id!r}", hint="give each its own id")
            seen.add(question.id)
            there = steps.get(self.workspace_of(question.stream), {})
            if not question.gold:
                raise EvalError(f"the question {question.id!r} has no answer", hint=hint)
            if question.gold & question.must_not:
                raise EvalError(f"the question {question.id!r} forbids its own answer", hint=hint)
            for key in sorted(question.gold | question.must_not):
                if key not in there:
                    raise EvalError(f"the question {question.id!r} names {key!r}", hint=hint)
                if there[key] > question.asked_at_step:
                    raise EvalError(
                        f"the question {question.id!r} is asked at {question.asked_at_step}, before {key!r}",
                        hint="ask it later, or name what was there",
                    )


def _lot(seed: int, name: str) -> bytes:
    return hashlib.sha256(f"{seed}\n{name}".encode()).digest()


def _digest(
    streams: Mapping[str, Sequence[Record]], questions: Sequence[Question], workspaces: Mapping[str, str]
) -> str:
    said: dict[str, Any] = {
        "records": [asdict(one) for records in streams.values() for one in records],
        "questions": [
            {**asdict(one), "gold": sorted(one.gold), "must_not": sorted(one.must_not)} for one in questions
        ],
        "workspaces": dict(workspaces),
    }
    text = json.dumps(said, ensure_ascii=False, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
