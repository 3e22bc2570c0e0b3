"""The same workspace alone and beside many others: what the others have must not slow it down."""

from __future__ import annotations

from collections.abc import Iterator

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
_WAYS = (
    ("vector, exact", False, True),
    ("text", True, False),
    ("text with vector", True, True),
    ("neither text nor vector", False, False),
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
        yield from _measured(bench, space, *databases)
    finally:
        for database in databases:
            on.remove(database)


def _host(bench: Bench, on: Server, space: Space, name: str, workspaces: list[Workspace]) -> Database:
    database = hosts.ledger_host(on, hosts.Port(dimension=SMALL_DIMENSION))
    # an answer about so few decisions is exact and takes no HNSW, and one of a million takes half an hour
    bench.load(f"a workspace {name}", database.owner, workspaces, space, vector_index=False)
    server.tidy(database)
    return database


def _measured(bench: Bench, space: Space, alone: Database, beside: Database) -> Iterator[Finding]:
    plan = bench.plan
    sessions = {_ALONE: alone.connect("service_role"), _BESIDE: beside.connect("service_role")}
    for title, by_text, by_vector in _WAYS:
        questions = bench.questions(space, text=by_text, vector=by_vector)[: plan.questions]
        contenders = [
            arms.arm(session, arms.OURS, questions, plan.questions, named=name)
            for name, session in sessions.items()
        ]
        yield compared(
            "neighbours",
            f"{title}, beside {plan.neighbours} other workspaces",
            plan.small,
            bench.measure(f"{title}, beside {plan.neighbours} other workspaces", contenders),
            subject=_BESIDE,
            baseline=_ALONE,
            bar=NEIGHBOURS,
            vectors="real" if by_vector else "",
        )
