"""What a host's write costs with the ledger beside it: copies of one host, written to in turn."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

from tests.bench import server
from tests.bench.bench import Bench
from tests.bench.decisions import ASKED, Decision, Workspace, decisions
from tests.bench.findings import Finding, compared
from tests.bench.loading import memory_row
from tests.bench.plan import DIMENSION, INSERT_BOTH, INSERT_MEMORY
from tests.bench.timing import Arm
from tests.bench.vectors import Space, as_text
from tests.rig import deploy
from tests.rig.databases import Connection, Database, Server, project_template

_WITH = "with the ledger"
_WITHOUT = "without the ledger"
_BARE = "ledger without its copies"
_WARM_UP = 20

_THOUGHT = "insert into thoughts (id, content, embedding) values (%s, %s, %s::vector)"
_MEMORY = """insert into agent_memories (id, thought_id, workspace_id, project_id, task_id, memory_type, summary, content,
  lifecycle_status, confidence, metadata) values (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"""
# What keeping the copies costs a writer, and so what a recall that searches none would save.
_NO_COPIES = "alter table agent_decision_ledger disable trigger agent_decision_ledger_copy_inserted_rows"

Row = tuple[object, ...]
Rows = tuple[Row, Row]
"""What goes into thoughts and into agent_memories."""
Write = Callable[[Connection, Row, Row], None]


def run(bench: Bench, on: Server) -> Iterator[Finding]:
    if not bench.wants("inserts"):
        return
    space = bench.space("real", DIMENSION)
    without = _host(bench, on, space)
    with_ledger = _host(bench, on, space)
    bare = _host(bench, on, space)
    try:
        for database in (with_ledger, bare):
            deploy.apply(database, "decision_ledger")  # enrols what is there
        bare.owner.execute(_NO_COPIES)
        for database in (without, with_ledger, bare):
            server.tidy(database)
        sessions = {
            name: database.connect("service_role")
            for name, database in ((_WITH, with_ledger), (_WITHOUT, without), (_BARE, bare))
        }
        rows = map(_rows, decisions(Workspace(1, 4 * bench.plan.inserts + 4 * _WARM_UP), bench.corpus, space))
        with server.durable(on.cluster.dsn()):
            yield from _measured(bench, rows, sessions, waits=True)
        # what the disk takes hides what the ledger takes: shown beside, and judged by no bar
        yield from _measured(bench, rows, sessions, waits=False)
        _check(bench, with_ledger)
    finally:
        for database in (without, with_ledger, bare):
            on.remove(database)


def _host(bench: Bench, on: Server, space: Space) -> Database:
    """Each a copy of the same files, the HNSW included."""

    def build(database: Database) -> None:
        deploy.apply(database, "open_brain")
        workspace = Workspace(0, bench.plan.small)
        bench.load("a host without the ledger", database.owner, [workspace], space, edges=False)

    return on.clone("bench_host", build, project_template(on))


def _measured(
    bench: Bench, rows: Iterator[Rows], sessions: dict[str, Connection], *, waits: bool
) -> Iterator[Finding]:
    repetitions = bench.plan.inserts
    for what, bar, write in (
        ("insert of thought with vector and memory", INSERT_BOTH, _thought_and_memory),
        ("insert of the memory alone", INSERT_MEMORY, _memory_alone),
    ):
        title = what if waits else f"{what}, without waiting for the disk"
        new = list(itertools.islice(rows, repetitions + _WARM_UP))
        arms = [
            Arm(name, _in_turn(session, write, new), repetitions, _WARM_UP)
            for name, session in sessions.items()
        ]
        yield compared(
            "inserts",
            title,
            bench.plan.small,
            bench.measure(title, arms),
            subject=_WITH,
            baseline=_WITHOUT,
            bar=bar,
            judged=waits,
        )


def _check(bench: Bench, database: Database) -> None:
    """A write that the ledger missed would have been cheap."""
    expected = bench.plan.small + 4 * (bench.plan.inserts + _WARM_UP)
    enrolled = database.value("select count(*) from agent_decision_ledger", role="supabase_admin")
    if enrolled != expected:
        raise AssertionError(f"{enrolled} of {expected} decisions were enrolled: the figures mean nothing")


def _rows(one: Decision) -> Rows:
    """The next decision of the workspace that is there."""
    return (one.thought_id, one.content, as_text(one.vector)), memory_row(one._replace(workspace=ASKED))


def _in_turn(session: Connection, write: Write, rows: list[Rows]) -> Callable[[int], None]:
    source = iter(rows)
    return lambda _: write(session, *next(source))


def _thought_and_memory(session: Connection, thought: Row, memory: Row) -> None:
    with session.transaction():
        session.execute(_THOUGHT, thought, prepare=True)
        session.execute(_MEMORY, memory, prepare=True)


def _memory_alone(session: Connection, _: Row, memory: Row) -> None:
    identity, _thought_id, *others = memory
    session.execute(_MEMORY, (identity, None, *others), prepare=True)
