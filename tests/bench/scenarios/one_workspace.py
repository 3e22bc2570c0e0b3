"""One workspace alone on a host of 1536 dimensions: every way to ask, beside the peers and the floors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tests.bench import agreement, arms, disk, server
from tests.bench.arms import (
    HALFVEC_SCAN,
    HNSW_PROBE,
    LEDGER_PASS,
    OURS,
    PEERS,
    PUBLISHED,
    TUNED,
    UNPROVEN,
    Sessions,
)
from tests.bench.bench import Bench
from tests.bench.decisions import Workspace
from tests.bench.findings import Finding, compared
from tests.bench.plan import DIMENSION, Bar, Case, Vectors
from tests.bench.plan import NEITHER as NEITHER_BAR
from tests.bench.plan import TEXT as TEXT_BAR
from tests.bench.plan import TEXT_LARGE as TEXT_LARGE_BAR
from tests.bench.plan import TUNED as TUNED_BAR
from tests.bench.plan import UNPROVEN as UNPROVEN_BAR
from tests.bench.plan import VECTOR as VECTOR_BAR
from tests.rig import hosts
from tests.rig.databases import Database, Server

_FLOORS = (HALFVEC_SCAN, HNSW_PROBE, LEDGER_PASS)


@dataclass(frozen=True)
class _Way:
    """A way to ask, who asks, and which two are compared. No bar at a size: the figure is shown alone."""

    case: Case
    title: str
    arms: tuple[str, ...]
    baseline: str
    bar: Bar
    by_text: bool = False
    by_vector: bool = False
    subject: str = OURS
    bar_large: Bar | None = None

    def bar_at(self, large: bool) -> tuple[Bar, bool]:
        """The bar, and whether it is one at this size."""
        return (self.bar_large or self.bar, self.bar_large is not None) if large else (self.bar, True)


_WAYS = (
    _Way(
        "vector", "vector, exact", (OURS, HALFVEC_SCAN, HNSW_PROBE, *PEERS), HALFVEC_SCAN, VECTOR_BAR,
        by_vector=True, bar_large=VECTOR_BAR,
    ),
    _Way(
        "unproven", "vector, not proven", (UNPROVEN, HNSW_PROBE), HNSW_PROBE, UNPROVEN_BAR,
        by_vector=True, subject=UNPROVEN, bar_large=UNPROVEN_BAR,
    ),
    _Way("text", "text", (OURS, *PEERS), PUBLISHED, TEXT_BAR, by_text=True, bar_large=TEXT_LARGE_BAR),
    _Way("both", "text with vector", (OURS, *PEERS), PUBLISHED, TEXT_BAR, by_text=True, by_vector=True),
    _Way(
        "neither", "neither text nor vector", (OURS, LEDGER_PASS, *PEERS), LEDGER_PASS, NEITHER_BAR,
        bar_large=NEITHER_BAR,
    ),
    *(
        _Way(
            "tuned", f"{title}, tuned", (TUNED, OURS), OURS, TUNED_BAR,
            by_text=by_text, by_vector=by_vector, subject=TUNED, bar_large=TUNED_BAR,
        )
        for title, by_text, by_vector in (
            ("vector", False, True), ("text", True, False), ("text with vector", True, True),
            ("neither text nor vector", False, False),
        )
    ),
)  # fmt: skip

# What random vectors change nothing about is measured once.
_SMALL: dict[Vectors, frozenset[Case]] = {
    "real": frozenset({"vector", "text", "both", "neither", "tuned", "disk"}),
    "random": frozenset({"vector"}),
}
_LARGE: dict[Vectors, frozenset[Case]] = {
    "real": _SMALL["real"] | {"unproven", "agreement"},
    "random": frozenset({"vector", "unproven", "agreement"}),
}


def run(bench: Bench, on: Server) -> Iterator[Finding]:
    for rows in bench.plan.rows:
        possible = _LARGE if bench.plan.is_large(rows) else _SMALL
        for kind, measured in possible.items():
            if cases := bench.cases & measured:
                yield from _Host(bench, on, kind, rows).findings(cases)


@dataclass(frozen=True)
class _Host:
    bench: Bench
    server: Server
    kind: Vectors
    rows: int

    def findings(self, cases: frozenset[Case]) -> Iterator[Finding]:
        database = hosts.ledger_project(self.server)
        try:
            space = self.bench.space(self.kind, DIMENSION)
            self.bench.load(
                f"one workspace, {self.kind} vectors", database.owner, [Workspace(0, self.rows)], space
            )
            arms.make_halfvec_copy(database, DIMENSION)
            server.tidy(database)
            yield from self._measured(database, cases)
        finally:
            self.server.remove(database)

    def _measured(self, database: Database, cases: frozenset[Case]) -> Iterator[Finding]:
        if "disk" in cases:
            yield disk.finding(database, self.rows)
        sessions = Sessions(database)
        for way in _WAYS:
            if way.case in cases:
                yield self._way(sessions, way)
        if "agreement" in cases:
            questions = self.bench.questions(self.bench.space(self.kind, DIMENSION), text=False, vector=True)
            yield agreement.finding(self.bench, sessions, questions, self.rows, self.kind)

    def _way(self, sessions: Sessions, way: _Way) -> Finding:
        plan = self.bench.plan
        space = self.bench.space(self.kind, DIMENSION)
        questions = self.bench.questions(space, text=way.by_text, vector=way.by_vector)[: plan.questions]
        contenders = [
            sessions.arm(name, questions, plan.peers_at(self.rows) if name in PEERS else plan.questions)
            for name in way.arms
        ]
        timings = self.bench.measure(f"{way.title}, {self.rows:,} decisions, {self.kind} vectors", contenders)
        bar, judged = way.bar_at(plan.is_large(self.rows))
        plans = {name: sessions.plan(name, questions[0]) for name in way.arms if name in _FLOORS}
        return compared(
            way.case,
            way.title,
            self.rows,
            timings,
            subject=way.subject,
            baseline=way.baseline,
            bar=bar,
            judged=judged,
            vectors=self.kind if way.by_vector else "",
            details={"plans": plans},
        )
