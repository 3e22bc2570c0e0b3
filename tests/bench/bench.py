"""One run: its plan, the cases that were chosen, and what all scenarios share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from tests.bench import decisions, loading, vectors
from tests.bench.arms import Question
from tests.bench.decisions import Workspace
from tests.bench.plan import Case, Plan, Vectors
from tests.bench.texts import Corpus, corpus
from tests.bench.timing import Arm, interleaved
from tests.bench.vectors import Matrix, RandomSpace, RealSpace, Space
from tests.rig.databases import Connection


@dataclass
class Bench:
    plan: Plan
    cases: frozenset[Case]
    console: Console
    notes: list[dict[str, Any]] = field(default_factory=list)
    """What was loaded and how long it took."""

    def wants(self, *cases: Case) -> bool:
        return any(case in self.cases for case in cases)

    @cached_property
    def asked(self) -> int:
        """How many questions there have to be."""
        return max(self.plan.questions, self.plan.agreement if self.wants("agreement") else 0)

    @cached_property
    def corpus(self) -> Corpus:
        # whatever is measured, the texts are the same
        return corpus(max(self.plan.questions, self.plan.agreement))

    @cached_property
    def _embedded(self) -> tuple[Matrix, Matrix]:
        passages = self.corpus.chunks[: self.plan.embedded]
        questions = self.corpus.questions[: self.asked]
        with self.bar("embedding texts", len(passages) + len(questions)) as advance:
            return (
                vectors.embedded(passages, "passage", advance),
                vectors.embedded(questions, "query", advance),
            )

    def space(self, kind: Vectors, dimension: int) -> Space:
        if kind == "random":
            return RandomSpace(dimension, self.asked)
        return RealSpace(*self._embedded, dimension)

    def questions(self, space: Space, *, text: bool, vector: bool) -> list[Question]:
        placed = [vectors.as_text(one) for one in space.questions()] if vector else [None] * self.asked
        asked = self.corpus.questions if text else [None] * self.asked
        return [Question(*pair) for pair in zip(asked, placed, strict=False)]

    def load(
        self,
        what: str,
        owner: Connection,
        workspaces: Sequence[Workspace],
        space: Space,
        *,
        edges: bool = True,
        vector_index: bool = True,
    ) -> None:
        """The decisions of the workspaces, and then the host's HNSW over them."""
        definitions = loading.drop_vector_index(owner)
        rows = sum(workspace.rows for workspace in workspaces)
        source = decisions.interleaved(list(workspaces), self.corpus, space)
        note: dict[str, Any] = {
            "what": what,
            "rows": rows,
            "dimension": space.dimension,
            "vectors": space.kind,
        }
        with self.bar(f"loading {what}", rows) as advance:
            note["load_seconds"] = loading.load(owner, source, edges=edges, on_rows=advance)
        if vector_index:
            with self.console.status(f"building the host's HNSW of {rows:,}"):
                note["hnsw_seconds"] = loading.build_vector_index(owner, definitions)
        self.notes.append(note)

    def measure(self, what: str, arms: Sequence[Arm]) -> dict[str, list[float]]:
        with self.bar(f"measuring {what}", max(arm.repetitions for arm in arms)) as advance:
            return interleaved(arms, lambda: advance(1))

    @contextmanager
    def bar(self, what: str, total: int) -> Iterator[Callable[[int], None]]:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=self.console) as progress:
            task = progress.add_task(what, total=total)
            yield lambda step: progress.advance(task, step)
