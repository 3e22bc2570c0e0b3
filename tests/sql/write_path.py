"""What the tests of the write path share: writers, waiting on locks, and the invariants that hold between writes."""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from tests.rig.databases import Connection, Database


def remember(connection: Connection, content: str = "a decision", **columns: Any) -> uuid.UUID:
    """Write a memory as a host does; the metadata is given as Python values."""
    row = {"workspace_id": "acme", "task_id": "billing", "memory_type": "decision", "summary": "s"}
    row |= {"content": content} | columns
    if not isinstance(row.get("metadata", ""), str):
        row["metadata"] = json.dumps(row["metadata"])
    names, values = ", ".join(row), ", ".join(["%s"] * len(row))
    ((memory_id,),) = connection.execute(
        f"insert into agent_memories ({names}) values ({values}) returning id", list(row.values())
    ).fetchall()
    return memory_id


def change(connection: Connection, memory_id: uuid.UUID, **columns: Any) -> None:
    sets = ", ".join(f"{name} = %s" for name in columns)
    connection.execute(f"update agent_memories set {sets} where id = %s", [*columns.values(), memory_id])


def ledger_row(database: Database, memory_id: uuid.UUID) -> dict[str, Any]:
    """The ledger row of a memory; empty where there is none."""
    rows = database.rows("select to_jsonb(l) from agent_decision_ledger l where memory_id = %s", (memory_id,))
    return rows[0][0] if rows else {}


def steps(database: Database, task: str | None = "billing", workspace: str = "acme") -> list[int]:
    """The steps of a task in order."""
    rows = database.rows(
        "select step_index from agent_decision_ledger where workspace_id = %s and task_id is not distinct from %s"
        " order by 1",
        (workspace, task),
    )
    return [step for (step,) in rows]


def failures(database: Database) -> list[tuple]:
    return database.rows(
        "select memory_id, operation, failed_with, reason from ranked_ledger.enrolment_failures order by id"
    )


def mend(database: Database) -> dict[str, Any]:
    return database.value("select enroll_missing_decisions()")  # type: ignore[return-value]


_DISAGREEMENTS = {
    "streams that name another newest step than their rows have": """
        select s.task_id, s.newest_step, ranked_ledger.newest_settled_step(s.stream_id) from ranked_ledger.streams s
        where s.newest_step <> ranked_ledger.newest_settled_step(s.stream_id)""",
    "streams without a row": """
        select distinct l.stream_id from agent_decision_ledger l
        where not exists (select from ranked_ledger.streams s where s.stream_id = l.stream_id)""",
    "marks of provisional steps": "select p.* from ranked_ledger.pending_steps p",
    "assigned steps that two rows share": """
        select l.stream_id, l.step_index, array_agg(l.memory_id)
        from agent_decision_ledger l join agent_memories m on m.id = l.memory_id
        where l.metadata ? 'step_reason' or not (m.metadata ? 'step_index' or m.metadata -> 'agent_memory' ? 'step_index')
        group by 1, 2 having count(*) > 1""",
    "rows that disagree with their memory": """
        select m.id from agent_decision_ledger l join agent_memories m on m.id = l.memory_id
        where (l.set_aside_at is null) <> (m.memory_type = 'decision')
           or m.memory_type = 'decision' and (
             (l.workspace_id, l.project_id, l.task_id, l.flow_id)
               is distinct from (m.workspace_id, m.project_id, m.task_id, m.flow_id)
             or l.search_lexemes is distinct from ranked_ledger.decision_lexemes('english', m.content, l.rationale, m.summary))""",
    "decisions without a row": """
        select m.id from agent_memories m where m.memory_type = 'decision'
        and not exists (select from agent_decision_ledger l where l.memory_id = m.id)""",
    "rows without a memory": """
        select l.memory_id from agent_decision_ledger l
        where not exists (select from agent_memories m where m.id = l.memory_id)""",
    "edges across workspaces": """
        select e.id from agent_decision_edges e join agent_memories f on f.id = e.from_memory_id
        join agent_memories t on t.id = e.to_memory_id where f.workspace_id <> t.workspace_id""",
    "failures": "select memory_id, operation, reason from ranked_ledger.enrolment_failures",
}


def assert_consistent(database: Database, *, but: Iterable[str] = ()) -> None:
    """Everything that holds between writes; `but` names what a test broke on purpose."""
    for what, query in _DISAGREEMENTS.items():
        if what not in but:
            assert database.rows(query) == [], what


def at_once(works: Iterable[Callable[[], Any]], seconds: float = 120) -> list[Any]:
    """Run each in a thread, started together; their results in order, or the first of their errors."""
    works = list(works)
    barrier = threading.Barrier(len(works))
    results: list[Any] = [None] * len(works)
    errors: list[BaseException] = []

    def run(place: int, work: Callable[[], Any]) -> None:
        try:
            barrier.wait(60)
            results[place] = work()
        except BaseException as error:  # the test's own thread raises it
            errors.append(error)

    threads = [threading.Thread(target=run, args=pair, daemon=True) for pair in enumerate(works)]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + seconds
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
        assert not thread.is_alive(), f"still running after {seconds} s"
    if errors:
        raise errors[0]
    return results


@contextmanager
def in_background(work: Callable[[], Any], seconds: float = 60) -> Iterator[list[Any]]:
    """Run beside the block; it is over, and its result in the list, after the block."""
    result: list[Any] = []

    def run() -> None:
        try:
            result.append(work())
        except psycopg.Error as error:
            result.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    yield result
    thread.join(seconds)
    assert not thread.is_alive(), f"still running after {seconds} s"


def pid_of(connection: Connection) -> int:
    return connection.info.backend_pid


def wait_until_blocked(database: Database, connection: Connection) -> None:
    """Until the connection waits for a lock."""
    database.wait_until(f"select cardinality(pg_blocking_pids({pid_of(connection)})) > 0")


def deadlocks(database: Database) -> int:
    return database.value(  # type: ignore[return-value]
        "select deadlocks from pg_stat_database where datname = current_database()"
    )
