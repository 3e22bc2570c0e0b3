"""The decisions of a workspace: the same ones each time, in whatever company they are loaded."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

import numpy as np

from tests.bench.texts import SEED, Corpus, reordered
from tests.bench.vectors import Matrix, Space

PROJECTS = 4
TASKS = 5
SUPERSEDED = 0.05
"""None is pinned: pinned ones come first and would fill every answer."""
RECENT = 100
"""A decision rests on one of so many before it, every third one on average."""

_BLOCK = 200
_SUMMARY_WORDS = 8
_RATIONALE_WORDS = 15


@dataclass(frozen=True)
class Workspace:
    """Number 0 is the one that is asked about; the others are its neighbours."""

    number: int
    rows: int

    @property
    def name(self) -> str:
        return f"bench-{self.number}"


ASKED = Workspace(0, 0).name


class Decision(NamedTuple):
    id: UUID
    thought_id: UUID
    workspace: str
    project: str
    task: str
    content: str
    summary: str
    rationale: str | None
    importance: float
    lifecycle: str
    depends_on: UUID | None
    vector: Matrix


def decisions(workspace: Workspace, corpus: Corpus, space: Space) -> Iterator[Decision]:
    """In the order of their steps: twenty streams in round robin."""
    own = workspace.number == 0
    recent: deque[UUID] = deque(maxlen=RECENT)
    for first in range(0, workspace.rows, _BLOCK):
        numpy_rand = np.random.default_rng([SEED, workspace.number, first])
        rand = random.Random(int(numpy_rand.integers(2**62)))
        vectors = space.rows(numpy_rand, min(_BLOCK, workspace.rows - first), first if own else None)
        for row, vector in enumerate(vectors, first):
            # where the workspace is asked about, texts and their own vectors meet; the rest are words in a new order
            content = corpus.chunks[row] if own and row < len(corpus.chunks) else _reused(corpus, rand)
            rationale = _reused(corpus, rand, _RATIONALE_WORDS) if row % 2 else None
            ground = rand.choice(recent) if recent and rand.random() < 1 / 3 else None
            recent.append(_identity(rand))
            yield Decision(
                id=recent[-1],
                thought_id=_identity(rand),
                workspace=workspace.name,
                project=f"project-{row % PROJECTS}",
                task=f"task-{row // PROJECTS % TASKS}",
                content=content,
                summary=" ".join(content.split()[:_SUMMARY_WORDS]),
                rationale=rationale,
                importance=rand.randint(0, 100) / 100,
                lifecycle="superseded" if rand.random() < SUPERSEDED else "active",
                depends_on=ground,
                vector=vector,
            )


def _reused(corpus: Corpus, rand: random.Random, words: int | None = None) -> str:
    return " ".join(reordered(rand.choice(corpus.chunks), rand).split()[:words])


def _identity(rand: random.Random) -> UUID:
    return UUID(int=rand.getrandbits(128), version=4)


def interleaved(workspaces: list[Workspace], corpus: Corpus, space: Space) -> Iterator[Decision]:
    """Row by row from one workspace after the other, so that no page of a table holds one workspace alone."""
    order = random.Random(SEED)
    sources = [decisions(workspace, corpus, space) for workspace in workspaces]
    while sources:
        order.shuffle(sources)
        for source in tuple(sources):
            decision = next(source, None)
            if decision is None:
                sources.remove(source)
            else:
                yield decision
