"""The same workspace alone and beside many others: what the others have must not slow it down.

Vectors are measured twice: as they arrived, which is shown, and after maintenance, which is judged.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.bench import arms, server
from tests.bench.bench import Bench
from tests.bench.decisions import Workspace
from tests.bench.findings import Finding, compared
from tests.bench.plan import NEIGHBOURS, SMALL_DIMENSION
from tests.bench.vectors import Space
from tests.rig import hosts
from tests.rig.databases import Database, Server

_ALONE = "alone"
_BESIDE = "beside the others"


@dataclass(frozen=True)
class _Way:
    title: str
    by_text: bool = False
    by_vector: bool = False


_WAYS = (
    _Way("vector, exact", by_vector=True),
    _Way("text", by_text=True),
    _Way("text with vector", by_text=True, by_vector=True),
    _Way("neither text nor vector"),
)


def run(bench: Bench, on: Server) -> Iterator[Finding]:
    if not bench.wants("neighbours"):
        return
    space = bench.space("real", SMALL_DIMENSION)
    asked = Workspace(0, bench.plan.small)
    others = [Workspace(number, bench.plan.small) for number in range(1, bench.plan.neighbours + 1)]
    databases = []
    try:
        for name, workspaces in ((_ALONE, [asked]), (_BESIDE, [asked, *others])):
            databases.append(_host(bench, on, space, name, workspaces))
        yield from _Hosts(bench, space, *databases).findings()
    finally:
        for database in databases:
            on.remove(database)


def _host(bench: Bench, on: Server, space: Space, name: str, workspaces: list[Workspace]) -> Database:
    database = hosts.ledger_host(on, hosts.Port(dimension=SMALL_DIMENSION))
    # an answer about so few decisions is exact and takes no HNSW, and one of a million takes half an hour
    bench.load(f"a workspace {name}", database.owner, workspaces, space, vector_index=False)
    server.tidy(database)
    return database


def _maintain(bench: Bench, database: Database) -> dict[str, Any]:
    """The nightly job of a host with many workspaces, until it moves nothing; and the vacuum that follows."""
    calls = packed = 0
    begun = time.perf_counter()
    with bench.console.status("putting vectors together"):
        while moved := database.value("select ranked_ledger.pack_vectors()"):
            calls, packed = calls + 1, packed + int(str(moved))
        seconds = time.perf_counter() - begun
        server.tidy(database)
    return {"packed": packed, "calls": calls, "seconds": seconds}


@dataclass(frozen=True)
class _Hosts:
    bench: Bench
    space: Space
    alone: Database
    beside: Database

    def findings(self) -> Iterator[Finding]:
        for way in _WAYS:
            if way.by_vector:
                yield self._measured(way)
        maintenance = _maintain(self.bench, self.beside)
        for way in _WAYS:
            yield self._measured(way, maintenance=maintenance)

    def _measured(self, way: _Way, *, maintenance: dict[str, Any] | None = None) -> Finding:
        plan = self.bench.plan
        title = f"{way.title}, beside {plan.neighbours} other workspaces"
        if maintenance is None:
            title += ", as they arrived"
        questions = self.bench.questions(self.space, text=way.by_text, vector=way.by_vector)[: plan.questions]
        contenders = [
            arms.arm(database.connect("service_role"), arms.OURS, questions, plan.questions, named=name)
            for name, database in ((_ALONE, self.alone), (_BESIDE, self.beside))
        ]
        return compared(
            "neighbours",
            title,
            plan.small,
            self.bench.measure(title, contenders),
            subject=_BESIDE,
            baseline=_ALONE,
            bar=NEIGHBOURS,
            judged=maintenance is not None,
            vectors="real" if way.by_vector else "",
            details=maintenance,
        )
