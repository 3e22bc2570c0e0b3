"""What is measured, how large, and which figure each case has to reach."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

Case = Literal[
    "vector", "unproven", "agreement", "text", "both", "neither", "neighbours", "end-to-end", "patched", "inserts", "disk",
    "memories", "subject-access", "tuned"
]  # fmt: skip
CASES: tuple[Case, ...] = get_args(Case)

Vectors = Literal["real", "random"]

# The install's own dimension, and the one of the neighbours' case.
DIMENSION = 1536
SMALL_DIMENSION = 384


@dataclass(frozen=True)
class Plan:
    """Sizes of one run."""

    rows: tuple[int, ...] = (10_000, 100_000)
    """Decisions in the one workspace: each size is measured on a host of its own."""
    proven_up_to: int = 10_000
    """Above it an answer may be one that is not proven, and other bars are set."""
    neighbours: int = 100
    """Other workspaces in the case of that name, each as large as the one that is asked."""
    questions: int = 30
    """Timed repetitions of an arm, each with another question."""
    peers: int = 10
    peers_large: int = 3
    """Repetitions of the slow peers: at 100,000 decisions a query takes ten seconds."""
    agreement: int = 1_000
    spot_checks: int = 10
    """Questions that the reference answers too, before ours in exact mode stands for it."""
    inserts: int = 200
    memories: int = 100_000
    """Memories of one organization, live and of one model, in the case of that name."""
    held: int = 1_000_000
    """Rows of all people in all tables of both stores, in the case of subject access."""
    embedded: int = 2_000
    """Texts that the model really embeds; the other rows are mixtures of two of their vectors."""

    @property
    def small(self) -> int:
        """Where only one size is measured."""
        return min(self.rows)

    def is_large(self, rows: int) -> bool:
        return rows > self.proven_up_to

    def peers_at(self, rows: int) -> int:
        return self.peers_large if self.is_large(rows) else self.peers


QUICK = Plan(
    rows=(1_000, 2_000),
    proven_up_to=1_000,
    neighbours=10,
    questions=10,
    peers=3,
    peers_large=2,
    agreement=50,
    spot_checks=5,
    inserts=30,
    memories=2_000,
    held=20_000,
    embedded=200,
)


@dataclass(frozen=True)
class Bar:
    """What a figure has to reach: at most `limit`, or at least."""

    limit: float
    words: str
    at_most: bool = True

    def met(self, figure: float) -> bool:
        return figure <= self.limit if self.at_most else figure >= self.limit


VECTOR = Bar(1.6, "times a bare exact scan of a halfvec copy")
UNPROVEN = Bar(10, "times a bare HNSW top 10")
TUNED = Bar(1.5, "times the same question at published weights")
AGREEMENT = Bar(99, "% of places hold the reference's id", at_most=False)
TEXT = Bar(25, "times faster than the published query", at_most=False)
TEXT_LARGE = Bar(60, "times faster than the published query", at_most=False)
NEITHER = Bar(1.5, "times a bare pass over the workspace's ledger rows")
NEIGHBOURS = Bar(1.2, "times the time alone")
END_TO_END = Bar(2, "times the same call in one session")
PATCHED = Bar(2, "times the same recall_decisions through PostgREST")
MEMORIES = Bar(1.6, "times a bare scan of the same rows")
SUBJECT_ACCESS = Bar(5, "times a bare index look-up of the subject's rows")
INSERT_BOTH = Bar(1.3, "times without the ledger")
INSERT_MEMORY = Bar(3, "times without the ledger")
DISK = Bar(10, "KB a decision beyond the host's own rows")
