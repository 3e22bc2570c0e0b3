"""Decisions into a host, by COPY into the host's own tables: the ledger's triggers do the rest."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Iterable, Sequence

from pgvector.psycopg import register_vector
from psycopg import sql

from tests.bench.decisions import Decision
from tests.rig.databases import Connection

# A commit settles every stream that it wrote to, and the neighbours have two thousand of them.
_PORTION = 10_000

_THOUGHTS = "copy thoughts (id, content, embedding) from stdin (format binary)"
_MEMORIES = """copy agent_memories (id, thought_id, workspace_id, project_id, task_id, memory_type, summary, content,
  lifecycle_status, confidence, metadata) from stdin"""
_EDGES = "copy agent_decision_edges (from_memory_id, to_memory_id, relation) from stdin"

_VECTOR_INDEXES = """
select i.relname, pg_get_indexdef(x.indexrelid)
from pg_index x join pg_class i on i.oid = x.indexrelid join pg_am a on a.oid = i.relam
where x.indrelid = 'public.thoughts'::regclass and a.amname = 'hnsw'
"""


def load(
    owner: Connection, decisions: Iterable[Decision], *, edges: bool = True, on_rows: Callable[[int], None]
) -> float:
    """Seconds that it took. `edges=False` for a host without the ledger, which has no table for them."""
    begun = time.perf_counter()
    register_vector(owner)
    source = iter(decisions)
    while portion := list(itertools.islice(source, _PORTION)):
        with owner.transaction():
            _copy(owner, portion, edges)
        on_rows(len(portion))
    return time.perf_counter() - begun


def _copy(owner: Connection, portion: Sequence[Decision], edges: bool) -> None:
    cursor = owner.cursor()
    with cursor.copy(_THOUGHTS) as copy:
        copy.set_types(["uuid", "text", "vector"])
        for one in portion:
            copy.write_row((one.thought_id, one.content, one.vector))
    with cursor.copy(_MEMORIES) as copy:
        for one in portion:
            copy.write_row(memory_row(one))
    if edges:
        with cursor.copy(_EDGES) as copy:
            for one in portion:
                if one.depends_on is not None:
                    copy.write_row((one.id, one.depends_on, "depends_on"))


def memory_row(one: Decision) -> tuple[object, ...]:
    metadata = json.dumps({"rationale": one.rationale} if one.rationale else {})
    return (
        *(one.id, one.thought_id, one.workspace, one.project, one.task, "decision"),
        *(one.summary, one.content, one.lifecycle, one.importance, metadata),
    )


def drop_vector_index(owner: Connection) -> list[str]:
    """The host's own HNSW goes while rows come. Answers what builds it again."""
    found = owner.execute(_VECTOR_INDEXES).fetchall()
    for name, _ in found:
        owner.execute(sql.SQL("drop index public.{}").format(sql.Identifier(name)))
    return [definition for _, definition in found]


def build_vector_index(owner: Connection, definitions: Sequence[str]) -> float:
    """Seconds that the host's HNSW took."""
    begun = time.perf_counter()
    owner.execute("set maintenance_work_mem = '2GB'")
    for definition in definitions:
        owner.execute(definition.encode())
    owner.execute("reset maintenance_work_mem")
    return time.perf_counter() - begun
