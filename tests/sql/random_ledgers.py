"""Random ledgers and random calls of ranked recall, each from a seed."""

from __future__ import annotations

import json
import math
import random
import uuid
from dataclasses import dataclass, field
from typing import Any

from tests.rig.databases import Connection

WORDS = (
    "invoice immutable payment retry ledger index vector cursor schema migration tenant audit queue lock cache token "
    "running runs ran it's 50% naïve дом 決定 a-b c:\\temp user@example.org https://example.org/x"
).split()
TASKS = (None, None, "invoicing", "search", "")
PROJECTS = (None, None, "billing", "platform")
LIFECYCLES = ("active",) * 6 + ("superseded", "stale", "disputed", "rejected")
VISIBILITIES = ("project",) * 5 + ("personal", "workspace")
REVIEWS = ("pending", "pending", "confirmed", "evidence_only", "restricted")
MODELS = ("model-a", "model-b", "model-c")


def as_vector(values: list[float]) -> str:
    return "[" + ",".join(f"{value:.6g}" for value in values) + "]"


@dataclass
class World:
    """A workspace that is asked, its neighbour, and the few texts and vectors that both draw from: few, so that rows tie."""

    rand: random.Random
    dimension: int
    workspace: str = ""
    other: str = ""
    base: list[list[float]] = field(default_factory=list)
    tasks: tuple[str, ...] = ("invoicing", "search", "")

    def __post_init__(self) -> None:
        self.workspace = f"random-{self.rand.getrandbits(40)}"
        self.other = self.workspace + rand_suffix(self.rand)
        self.base = [[self.rand.gauss(0, 1) for _ in range(self.dimension)] for _ in range(4)]

    def uuid(self) -> uuid.UUID:
        return uuid.UUID(int=self.rand.getrandbits(128), version=4)

    def vector(self) -> str:
        """One of few, its opposite, its neighbour nearer than half precision tells apart, another length, zero, anew."""
        values = self.rand.choice(self.base)
        kind = self.rand.choices(
            ("same", "near", "noisy", "opposite", "longer", "sparse", "new", "zero", "huge", "tiny"),
            (30, 12, 12, 8, 8, 8, 10, 8, 2, 2),
        )[0]
        match kind:
            case "near":
                values = [value + self.rand.gauss(0, 1e-5) for value in values]
            case "noisy":
                values = [value + self.rand.gauss(0, 0.3) for value in values]
            case "opposite":
                values = [-value for value in values]
            case "longer":
                values = [value * self.rand.choice((1e-3, 7, 1e5)) for value in values]
            case "sparse":
                values = [value if place % 3 == 0 else 0.0 for place, value in enumerate(values)]
            case "new":
                values = [self.rand.gauss(0, 1) for _ in values]
            case "zero":
                values = [0.0 for _ in values]
            case "huge":
                values = [value * 1e30 for value in values]
            case "tiny":
                values = [value * 1e-30 for value in values]
        return as_vector(values)

    def embedding(self) -> str | None:
        return self.vector() if self.rand.random() < 0.7 else None

    def sentence(self) -> str:
        if self.rand.random() < 0.25:
            return self.rand.choice(
                ("invoice immutable", "the of and", "Payment retry", "invoice invoice ledger")
            )
        return " ".join(self.rand.choices(WORDS, k=self.rand.randint(1, 12)))

    def question(self) -> str:
        return self.sentence()

    def rationale(self) -> str | None:
        """Often none. A long one has more occurrences, and later positions, than a tsvector keeps of a word."""
        kind = self.rand.random()
        if kind < 0.01:
            return "invoice ledger " * 600 + self.sentence()
        return self.sentence() if kind < 0.4 else None

    def summary(self) -> str:
        """Of the words that the texts have; without any; said twice; longer than what is read of it."""
        kind = self.rand.choices(
            ("sentence", "plain", "none", "empty", "twice", "long"), (60, 15, 8, 7, 8, 2)
        )[0]
        match kind:
            case "plain":
                return "a summary"
            case "none":
                return "of the and"
            case "empty":
                return ""
            case "twice":
                return "invoice payment invoice invoices"
            case "long":
                return " ".join(self.rand.choices(WORDS, k=400))
        return self.sentence()

    def importance(self) -> float:
        return self.rand.choice((0, 0, 0.5, 0.5, 0.33, 0.99, 1, 1))

    def step(self) -> int:
        return self.rand.choice((0, 3, 3, 40, 900, 1_000_000_000))

    def metadata(self) -> dict[str, Any]:
        said: dict[str, Any] = {}
        if self.rand.random() < 0.3:
            said["step_index"] = self.step()
        if (rationale := self.rationale()) is not None:
            said["rationale"] = rationale
        return said

    def thought(self) -> dict[str, Any]:
        return {"id": str(self.uuid()), "content": self.sentence(), "embedding": self.embedding()}

    def memory(self, workspace: str, thought: str | None) -> dict[str, Any]:
        rand = self.rand
        return {
            "id": str(self.uuid()),
            "thought_id": thought,
            "workspace_id": workspace,
            "project_id": rand.choice(PROJECTS),
            "task_id": rand.choice(TASKS),
            "memory_type": rand.choice(("decision",) * 15 + ("lesson",)),
            "summary": self.summary(),
            "content": self.sentence(),
            "lifecycle_status": rand.choice(LIFECYCLES),
            "confidence": self.importance(),
            "visibility": rand.choice(VISIBILITIES),
            "requires_user_confirmation": rand.random() < 0.5,
            "review_status": rand.choice(REVIEWS),
            "metadata": self.metadata(),
        }


def rand_suffix(rand: random.Random) -> str:
    """What makes of a workspace's name another that a careless comparison takes for it."""
    return rand.choice((" ", "é", "-2", "%"))


INSERT_THOUGHTS = """
insert into thoughts (id, content, embedding)
select r.id, r.content, r.embedding::vector from json_to_recordset(%s::json) as r (id uuid, content text, embedding text)"""

MEMORY_COLUMNS = {
    "id": "uuid",
    "thought_id": "uuid",
    "workspace_id": "text",
    "project_id": "text",
    "task_id": "text",
    "memory_type": "text",
    "summary": "text",
    "content": "text",
    "lifecycle_status": "text",
    "confidence": "numeric",
    "visibility": "text",
    "requires_user_confirmation": "boolean",
    "review_status": "text",
    "metadata": "jsonb",
}
INSERT_MEMORIES = f"""
insert into agent_memories ({", ".join(MEMORY_COLUMNS)})
select r.* from json_to_recordset(%s::json) as r ({", ".join(f"{n} {t}" for n, t in MEMORY_COLUMNS.items())})"""


def write_rows(connection: Connection, world: World, workspace: str, rows: int) -> None:
    """Memories in one statement, some of which share a thought, some without one; then pins and edges."""
    rand = world.rand
    thoughts = [world.thought() for _ in range(max(1, rows * 4 // 5))]
    memories = [
        world.memory(workspace, None if rand.random() < 0.1 else rand.choice(thoughts)["id"])
        for _ in range(rows)
    ]
    connection.execute(INSERT_THOUGHTS, (json.dumps(thoughts),))
    connection.execute(INSERT_MEMORIES, (json.dumps(memories),))
    ids = [one["id"] for one in memories if one["memory_type"] == "decision"]
    pinned = rand.sample(ids, len(ids) // 10)
    connection.execute("update agent_decision_ledger set pinned = true where memory_id = any(%s)", (pinned,))
    pairs = [
        (*sorted(rand.sample(range(len(ids)), 2), reverse=True),) for _ in range(rows if len(ids) > 1 else 0)
    ]
    with connection.cursor() as cursor:
        cursor.executemany(
            "insert into agent_decision_edges (from_memory_id, to_memory_id, relation) values (%s, %s, %s) on conflict do nothing",
            [
                (ids[later], ids[earlier], rand.choice(("depends_on", "depends_on", "informs", "blocks")))
                for later, earlier in pairs
            ],
        )


def write_ledger(connection: Connection, rand: random.Random, *, dimension: int, rows: int) -> World:
    """Two workspaces of a world of their own; the first is the one to ask."""
    world = World(rand, dimension)
    with connection.transaction():
        write_rows(connection, world, world.workspace, rows)
        write_rows(connection, world, world.other, max(2, rows // 4))
    return world


@dataclass(frozen=True)
class Call:
    """One call: its arguments as the function takes them, and as the reference does (defaults filled in)."""

    arguments: dict[str, Any]
    config: str = "pg_catalog.english"

    @property
    def is_tuned(self) -> bool:
        return self.arguments.get("p_preset") == "tuned"

    @property
    def reference(self) -> dict[str, Any]:
        a = self.arguments

        def positive(name: str, default: float | None) -> float | None:
            value = a.get(name)
            return value if value is not None and 0 < value < math.inf else default

        def given(name: str, default: Any) -> Any:
            value = a.get(name)
            return default if value is None else value

        def preset(published: Any) -> Any:
            """Of the tuned preset the reference asks the server."""
            return None if self.is_tuned else published

        return {
            "workspace": a["p_workspace_id"],
            "config": self.config,
            "text": a.get("p_query"),
            "vector": a.get("p_query_embedding"),
            "project": a.get("p_project_id"),
            "task": a.get("p_task_id"),
            "current_step": a.get("p_current_step"),
            "retired": given("p_include_superseded", False),
            "half_life": positive("p_half_life_steps", preset(30)),
            "saturation": positive("p_dependency_saturation", preset(3)),
            "count": int(positive("p_match_count", 10) or 10),
            "w_similarity": given("p_w_similarity", preset(0.45)),
            "w_importance": given("p_w_importance", preset(0.25)),
            "w_recency": given("p_w_recency", preset(0.15)),
            "w_dependency": given("p_w_dependency", preset(0.15)),
            "w_summary": given("p_w_summary", preset(0)),
            "only_confirmed": given("p_only_confirmed", False),
            "personal": given("p_include_personal", True),
            "stale": given("p_include_stale", preset(False)),
            "min_relevance": a.get("p_min_relevance"),
            "floor": a.get("p_similarity_floor"),
            "ceiling": a.get("p_similarity_ceiling"),
            "fusion": given("p_fusion", preset("none")),
            "fusion_weight": given("p_fusion_weight", preset(0.5)),
            "model": a.get("p_embedding_model"),
        }


# What the published function knows; where its arithmetic has an end, the reference has none.
PUBLISHED_ARGUMENTS = (
    *("p_workspace_id", "p_query", "p_query_embedding", "p_project_id", "p_task_id", "p_current_step", "p_match_count"),
    *("p_w_similarity", "p_w_importance", "p_w_recency", "p_w_dependency", "p_half_life_steps"),
    *("p_dependency_saturation", "p_include_superseded"),
)  # fmt: skip


def random_call(world: World, relevances: list[float] | None = None) -> Call:
    """`relevances` are those of an answer before: a minimum that is met exactly is a bound worth asking for."""
    rand = world.rand
    arguments: dict[str, Any] = {"p_workspace_id": world.workspace if rand.random() < 0.95 else world.other}

    def maybe(name: str, *values: Any, chance: float = 0.3) -> None:
        if rand.random() < chance:
            arguments[name] = rand.choice(values)

    odd_texts = ("the of and", "", "!&|:*()'\\ \"", "invoice " * 300)
    maybe("p_query", *[world.question() for _ in range(8)], rand.choice(odd_texts), chance=0.7)
    maybe("p_query_embedding", *[world.vector() for _ in range(4)], chance=0.6)
    maybe("p_project_id", None, "billing", "platform", rand.choice(("absent", "billing")))
    maybe("p_task_id", None, *world.tasks)
    maybe("p_current_step", None, 0, 50, 1000, 2_000_000_000, 2_147_483_647, -5)
    maybe("p_match_count", None, 0, -1, 1, 2, 3, 5, 20, 999, 1000, 10_000, chance=0.8)
    maybe("p_preset", None, "published", "tuned", "tuned", "tuned", "tuned", chance=0.6)
    for weight in ("similarity", "importance", "recency", "dependency", "summary"):
        # not more for recency: where it is cut off, 0 and 1e-304 are the same
        most = 1e290 if weight == "recency" else 1e300
        maybe(f"p_w_{weight}", None, 0, 0, 1, 0.2, 1000, most, 1e-300, chance=0.2)
    maybe("p_half_life_steps", None, 0, -1, 0.001, 1, 30, 1e9, math.inf, math.nan)
    maybe("p_dependency_saturation", None, 0, 0.5, 1, 2, 1e9, math.inf, math.nan)
    maybe("p_include_superseded", None, False, True, True)
    maybe("p_only_confirmed", None, False, True, True)
    maybe("p_include_personal", None, True, False, False)
    maybe("p_include_stale", None, False, True, True)
    maybe("p_min_relevance", None, -1, 0, 1e-12, 0.2, 0.5, 0.75, 1, *(relevances or [])[:20])
    if rand.random() < 0.3:
        floor, ceiling = rand.choice(
            ((None, None), (0.2, None), (None, 0.8), (0, 1), (-1, 1), (0.1, 0.6), (0.75, 0.86), (0.999999, 1), (-1, -0.5))
        )  # fmt: skip
        arguments |= {"p_similarity_floor": floor, "p_similarity_ceiling": ceiling}
    maybe("p_embedding_model", None, *MODELS)
    maybe("p_fusion", None, "none", "max", "max", "blend", "blend", chance=0.5)
    maybe("p_fusion_weight", None, 0, 0.3, 0.5, 1)
    maybe("p_exact", None, True, False)
    return Call(arguments)
