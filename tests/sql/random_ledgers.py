"""Random ledgers and random calls of ranked recall, each from a seed."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from tests.rig.databases import Connection

WORDS = (
    "invoice immutable payment retry ledger index vector cursor schema migration tenant audit queue lock cache token "
    "running runs ran it's 50% naïve дом 決定 a-b c:\\temp user@example.org https://example.org/x"
).split()
TASKS = (None, "invoicing", "search", "")
PROJECTS = (None, "billing", "platform")
LIFECYCLES = ("active",) * 5 + ("superseded", "stale", "disputed", "rejected")


def vector_text(rand: random.Random, dimension: int, *, zero: bool = False) -> str:
    values = [0.0 if zero else rand.choice((0.0, 0.0, rand.gauss(0, 1))) for _ in range(dimension)]
    return "[" + ",".join(repr(v) for v in values) + "]"


def sentence(rand: random.Random) -> str:
    return " ".join(rand.choices(WORDS, k=rand.randint(1, 12)))


def write_ledger(connection: Connection, rand: random.Random, *, dimension: int, rows: int) -> str:
    """A workspace of its own: streams, missing and zero vectors, retired rows, pins, edges, ties."""
    workspace = f"random-{rand.getrandbits(40)}"
    ids = []
    for _ in range(rows):
        vector = rand.choice((None, "zero", "full", "full"))
        embedding = None if vector is None else vector_text(rand, dimension, zero=vector == "zero")
        content = sentence(rand) if ids and rand.random() < 0.9 else "invoice immutable"
        metadata = rand.choice(("{}", "{}", f'{{"step_index": {rand.choice((0, 3, 3, 40, 900))}}}'))
        ((memory_id,),) = connection.execute(
            """
            with thought as (insert into thoughts (content, embedding) values (%s, %s::vector) returning id)
            insert into agent_memories (workspace_id, project_id, task_id, memory_type, summary, content, thought_id, metadata,
                                        confidence, lifecycle_status)
            select %s, %s, %s, 'decision', 'a summary', %s, thought.id, %s::jsonb, %s, %s from thought returning id""",
            (
                content,
                embedding,
                workspace,
                rand.choice(PROJECTS),
                rand.choice(TASKS),
                content,
                metadata,
                rand.choice((0, 0.5, 0.5, 0.33, 1)),
                rand.choice(LIFECYCLES),
            ),
        ).fetchall()
        ids.append(memory_id)
    for memory_id in rand.sample(ids, rows // 10):
        connection.execute(
            "update agent_decision_ledger set pinned = true, rationale = %s where memory_id = %s",
            (sentence(rand), memory_id),
        )
    for _ in range(rows if rows > 1 else 0):
        later, earlier = sorted(rand.sample(range(rows), 2), reverse=True)
        connection.execute(
            "insert into agent_decision_edges (from_memory_id, to_memory_id, relation) values (%s, %s, %s) "
            "on conflict do nothing",
            (ids[later], ids[earlier], rand.choice(("depends_on", "depends_on", "informs", "blocks"))),
        )
    return workspace


@dataclass(frozen=True)
class Call:
    """One call: its arguments as the function takes them, and as the reference does (defaults filled in)."""

    arguments: dict[str, Any]

    @property
    def reference(self) -> dict[str, Any]:
        a = self.arguments

        def positive(name: str, default: float) -> float:
            value = a.get(name)
            return value if value is not None and value > 0 else default

        return {
            "workspace": a["p_workspace_id"],
            "text": a.get("p_query"),
            "vector": a.get("p_query_embedding"),
            "project": a.get("p_project_id"),
            "task": a.get("p_task_id"),
            "current_step": a.get("p_current_step"),
            "retired": bool(a.get("p_include_superseded")),
            "half_life": positive("p_half_life_steps", 30),
            "saturation": positive("p_dependency_saturation", 3),
            "count": int(positive("p_match_count", 10)),
            "w_similarity": a.get("p_w_similarity", 0.45),
            "w_importance": a.get("p_w_importance", 0.25),
            "w_recency": a.get("p_w_recency", 0.15),
            "w_dependency": a.get("p_w_dependency", 0.15),
        }


def random_call(rand: random.Random, workspace: str, dimension: int) -> Call:
    arguments: dict[str, Any] = {"p_workspace_id": workspace}

    def maybe(name: str, *values: Any) -> None:
        if rand.random() < 0.5:
            arguments[name] = rand.choice(values)

    maybe("p_query", sentence(rand), sentence(rand), "the of and", "", "!&|:*()'\\ \"", "invoice " * 300)
    maybe(
        "p_query_embedding",
        vector_text(rand, dimension),
        vector_text(rand, dimension),
        vector_text(rand, dimension, zero=True),
    )
    maybe("p_project_id", None, "billing", "platform", "absent")
    maybe("p_task_id", None, "invoicing", "")
    maybe("p_current_step", None, 0, 50, 1000, 2_000_000_000, -5)
    maybe("p_match_count", None, 0, -1, 1, 5, 10_000)
    for weight in ("similarity", "importance", "recency", "dependency"):
        maybe(f"p_w_{weight}", 0, 1, 0.2, 1000)
    maybe("p_half_life_steps", None, 0, -1, 0.001, 30, 1e9)
    maybe("p_dependency_saturation", None, 0, 1, 2, 1e9)
    maybe("p_include_superseded", None, False, True, True)
    return Call(arguments)
