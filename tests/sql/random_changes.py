"""Random changes of a random ledger: each way in which a host, a client or a person with SQL changes what a recall reads."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from tests.rig.databases import OWNER, Connection
from tests.sql.random_ledgers import (
    INSERT_MEMORIES,
    INSERT_THOUGHTS,
    LIFECYCLES,
    MEMORY_COLUMNS,
    MODELS,
    PROJECTS,
    REVIEWS,
    TASKS,
    VISIBILITIES,
    World,
    write_rows,
)
from tests.sql.rpc import call

Change = Callable[[Connection], object]

# What a change may be refused with; anything else is an error of ours.
REFUSALS = frozenset(
    ("0A000", "22023", "23503", "23505", "40001", "40P01", "55P03", "RL404", "RL409", "RL410", "RL461", "RL462")
)  # fmt: skip

_UPSERT_THOUGHT = (
    INSERT_THOUGHTS
    + " on conflict (id) do update set embedding = excluded.embedding, content = excluded.content"
)
_UPSERT_MEMORY = (
    INSERT_MEMORIES + " on conflict (id) do update set content = excluded.content, summary = excluded.summary, thought_id = excluded.thought_id,"
    " lifecycle_status = excluded.lifecycle_status, task_id = excluded.task_id"
)  # fmt: skip
_MERGE_THOUGHTS = """
merge into thoughts t
using (select r.id, r.content, r.embedding::vector from json_to_recordset(%s::json) as r (id uuid, content text, embedding text)) r
on t.id = r.id
when matched and r.embedding is null then delete
when matched then update set embedding = r.embedding
when not matched then insert (id, content, embedding) values (r.id, r.content, r.embedding)"""
_BOTH_AT_ONCE = """
with thought as (update thoughts set embedding = %s::vector where id = any(%s)),
     memory as (update agent_memories set lifecycle_status = %s, content = %s where id = any(%s))
insert into agent_memory_audit_events (event_type, workspace_id) values ('memory_edited', %s)"""


class Changes:
    """Changes of one world. A name in FOLLOWED is one that another writer, or an old snapshot, may put off to the next recall."""

    FOLLOWED = frozenset(
        (
            *("remember", "copy", "upsert_memories", "edit", "edit_both", "sum_up", "move", "retype", "forget", "unenrol", "restep"),
            *("record", "empty", "configure", "mend"),
        )
    )  # fmt: skip

    def __init__(self, world: World) -> None:
        self.world = world
        self.rand = world.rand
        weights: dict[Change, int] = {
            self.reembed: 8, self.unembed: 3, self.swap: 3, self.upsert_thoughts: 4, self.merge_thoughts: 2,
            self.host_upsert: 3, self.repoint: 4, self.forget_thought: 3, self.remember: 6, self.copy: 3,
            self.upsert_memories: 4, self.edit: 6, self.edit_both: 3, self.sum_up: 4, self.flip: 8, self.move: 5, self.retype: 4,
            self.forget: 4, self.review: 4, self.weigh: 4, self.pin: 3, self.reason: 4, self.restep: 3, self.unenrol: 1,
            self.mend: 1, self.link: 6, self.unlink: 4, self.turn_edge: 2, self.relabel_edge: 3, self.configure: 1,
            self.calibrate: 3, self.record: 3, self.verb: 6, self.empty: 1,
        }  # fmt: skip
        self._changes, self._weights = list(weights), list(weights.values())

    def draw(self) -> Change:
        return self.rand.choices(self._changes, self._weights)[0]

    # what is changed

    def memories(self, connection: Connection, most: int = 1) -> list[Any]:
        held = connection.execute(
            "select id from agent_memories where workspace_id = any(%s) order by created_at, id",
            ([self.world.workspace, self.world.other],),
        ).fetchall()
        return [one for (one,) in self.rand.sample(held, min(len(held), self.rand.randint(1, most)))]

    def thoughts(self, connection: Connection, most: int = 1) -> list[Any]:
        held = connection.execute(
            "select id from thoughts where id in (select thought_id from agent_memories where workspace_id = %s)"
            " order by created_at, id",
            (self.world.workspace,),
        ).fetchall()
        return [one for (one,) in self.rand.sample(held, min(len(held), self.rand.randint(1, most)))]

    def edges(self, connection: Connection, most: int = 1) -> list[Any]:
        held = connection.execute(
            "select e.id from agent_decision_edges e join agent_memories m on m.id = e.to_memory_id"
            " where m.workspace_id = %s order by e.created_at, e.from_memory_id, e.to_memory_id, e.relation",
            (self.world.workspace,),
        ).fetchall()
        return [one for (one,) in self.rand.sample(held, min(len(held), self.rand.randint(1, most)))]

    def some(self) -> str:
        return self.world.workspace if self.rand.random() < 0.8 else self.world.other

    # thoughts

    def reembed(self, connection: Connection) -> None:
        for thought in self.thoughts(connection, 4):
            connection.execute(
                "update thoughts set embedding = %s::vector where id = %s", (self.world.vector(), thought)
            )

    def unembed(self, connection: Connection) -> None:
        connection.execute(
            "update thoughts set embedding = null where id = any(%s)", (self.thoughts(connection, 5),)
        )

    def swap(self, connection: Connection) -> None:
        connection.execute(
            "update thoughts t set embedding = o.embedding from thoughts o where t.id <> o.id"
            " and t.id = any(%(both)s) and o.id = any(%(both)s)",
            {"both": self.thoughts(connection, 2)},
        )

    def _known_and_new(self, connection: Connection) -> str:
        thoughts = [self.world.thought() for _ in range(3)]
        for thought, known in zip(thoughts, self.thoughts(connection, 2), strict=False):
            thought["id"] = str(known)
        return json.dumps(thoughts)

    def upsert_thoughts(self, connection: Connection) -> None:
        connection.execute(_UPSERT_THOUGHT, (self._known_and_new(connection),))

    def merge_thoughts(self, connection: Connection) -> None:
        connection.execute(_MERGE_THOUGHTS, (self._known_and_new(connection),))

    def host_upsert(self, connection: Connection) -> None:
        """As the host's write path does: the text once, then its vector, then a memory that points at it."""
        ((thought,),) = connection.execute(
            "select upsert_thought(%s, '{\"metadata\": {\"seen\": true}}') ->> 'id'", (self.world.sentence(),)
        ).fetchall()
        connection.execute(
            "update thoughts set embedding = %s::vector where id = %s", (self.world.vector(), thought)
        )
        self._point(connection, thought)

    def _point(self, connection: Connection, thought: Any) -> None:
        connection.execute(
            "update agent_memories set thought_id = %s where id = any(%s)",
            (thought, self.memories(connection, 3)),
        )

    def repoint(self, connection: Connection) -> None:
        self._point(connection, self.rand.choice([None, *self.thoughts(connection)]))

    def forget_thought(self, connection: Connection) -> None:
        connection.execute("delete from thoughts where id = any(%s)", (self.thoughts(connection, 2),))

    # memories

    def _pairs(self, most: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        thoughts = [self.world.thought() for _ in range(self.rand.randint(1, most))]
        return thoughts, [self.world.memory(self.some(), thought["id"]) for thought in thoughts]

    def remember(self, connection: Connection) -> None:
        thoughts, memories = self._pairs(4)
        if self.rand.random() < 0.5:
            connection.execute(INSERT_THOUGHTS, (json.dumps(thoughts),))
            connection.execute(INSERT_MEMORIES, (json.dumps(memories),))
        else:  # one statement
            connection.execute(
                f"with thought as ({INSERT_THOUGHTS}) {INSERT_MEMORIES}",
                (json.dumps(thoughts), json.dumps(memories)),
            )

    def copy(self, connection: Connection) -> None:
        thoughts, memories = self._pairs(5)
        with connection.cursor().copy("copy thoughts (id, content, embedding) from stdin") as into:
            for row in thoughts:
                into.write_row(tuple(row.values()))
        with connection.cursor().copy(
            f"copy agent_memories ({', '.join(MEMORY_COLUMNS)}) from stdin"
        ) as into:
            for row in memories:
                into.write_row([json.dumps(v) if k == "metadata" else v for k, v in row.items()])

    def upsert_memories(self, connection: Connection) -> None:
        thoughts = self.thoughts(connection)
        memories = [
            self.world.memory(self.some(), self.rand.choice([None, *map(str, thoughts)])) for _ in range(3)
        ]
        for memory, known in zip(memories, self.memories(connection, 2), strict=False):
            memory["id"] = str(known)
        connection.execute(_UPSERT_MEMORY, (json.dumps(memories),))

    def edit(self, connection: Connection) -> None:
        text = self.world.rationale() or self.world.sentence()
        connection.execute(
            "update agent_memories set content = %s where id = any(%s)", (text, self.memories(connection, 3))
        )

    def sum_up(self, connection: Connection) -> None:
        connection.execute(
            "update agent_memories set summary = %s, content = case when %s then content || ' ' || content else content end"
            " where id = any(%s)",
            (self.world.summary(), self.rand.random() < 0.2, self.memories(connection, 3)),
        )

    def edit_both(self, connection: Connection) -> None:
        known = self.memories(connection, 3)
        connection.execute(
            _BOTH_AT_ONCE,
            (self.world.embedding(), self.thoughts(connection, 3), self.rand.choice(LIFECYCLES), self.world.sentence(),
             known, self.world.workspace),
        )  # fmt: skip

    def flip(self, connection: Connection) -> None:
        connection.execute(
            "update agent_memories set lifecycle_status = %s where id = any(%s)",
            (self.rand.choice(LIFECYCLES[-5:]), self.memories(connection, 5)),
        )

    def move(self, connection: Connection) -> None:
        column, values = self.rand.choice(
            (("task_id", TASKS), ("project_id", PROJECTS), ("workspace_id", (self.world.workspace, self.world.other)))
        )  # fmt: skip
        connection.execute(
            f"update agent_memories set {column} = %s where id = any(%s)",
            (self.rand.choice(values), self.memories(connection, 3)),
        )

    def retype(self, connection: Connection) -> None:
        connection.execute(
            "update agent_memories set memory_type = %s where id = any(%s)",
            (self.rand.choice(("decision", "lesson")), self.memories(connection, 3)),
        )

    def forget(self, connection: Connection) -> None:
        connection.execute("delete from agent_memories where id = any(%s)", (self.memories(connection, 2),))

    def review(self, connection: Connection) -> None:
        connection.execute(
            "update agent_memories set visibility = %s, review_status = %s, requires_user_confirmation = %s where id = any(%s)",
            (self.rand.choice(VISIBILITIES), self.rand.choice(REVIEWS), self.rand.random() < 0.5,
             self.memories(connection, 5)),
        )  # fmt: skip

    # the ledger, by hand

    def _ledger(self, connection: Connection, column: str, value: Any, most: int = 4) -> None:
        connection.execute(
            f"update agent_decision_ledger set {column} = %s where memory_id = any(%s)",
            (value, self.memories(connection, most)),
        )

    def weigh(self, connection: Connection) -> None:
        self._ledger(connection, "importance", self.world.importance())

    def pin(self, connection: Connection) -> None:
        self._ledger(connection, "pinned", self.rand.random() < 0.3)

    def reason(self, connection: Connection) -> None:
        self._ledger(connection, "rationale", self.world.rationale())

    def restep(self, connection: Connection) -> None:
        """By hand a step may be above those that recall counts as the newest."""
        self._ledger(connection, "step_index", self.rand.choice((self.world.step(), 2_000_000_000)), 2)

    def unenrol(self, connection: Connection) -> None:
        connection.execute(
            "delete from agent_decision_ledger where memory_id = any(%s)", (self.memories(connection),)
        )

    def mend(self, connection: Connection) -> None:
        connection.execute("select enroll_missing_decisions()")

    def link(self, connection: Connection) -> None:
        ends = self.memories(connection, 6)
        for start, end in itertools.pairwise(ends):
            with refusable(connection):
                connection.execute(
                    "insert into agent_decision_edges (from_memory_id, to_memory_id, relation) values (%s, %s, %s)",
                    (start, end, self.rand.choice(("depends_on", "depends_on", "informs"))),
                )

    def unlink(self, connection: Connection) -> None:
        connection.execute(
            "delete from agent_decision_edges where id = any(%s)", (self.edges(connection, 4),)
        )

    def turn_edge(self, connection: Connection) -> None:
        connection.execute(
            "update agent_decision_edges set from_memory_id = to_memory_id, to_memory_id = from_memory_id where id = any(%s)",
            (self.edges(connection),),
        )

    def relabel_edge(self, connection: Connection) -> None:
        connection.execute(
            "update agent_decision_edges set relation = %s where id = any(%s)",
            (self.rand.choice(("depends_on", "informs")), self.edges(connection)),
        )

    # settings and verbs

    def configure(self, connection: Connection) -> None:
        config = self.rand.choice(("pg_catalog.simple", "pg_catalog.german", "pg_catalog.english", None))
        if self.rand.random() < 0.5:
            call(connection, "set_text_config", workspace_id=self.some(), text_config=config)
        elif config is None:
            connection.execute(
                "delete from ranked_ledger.workspace_settings where workspace_id = %s", (self.some(),)
            )
        else:
            connection.execute(
                "insert into ranked_ledger.workspace_settings values (%s, %s)"
                " on conflict (workspace_id) do update set text_config = excluded.text_config",
                (self.some(), config),
            )

    def calibrate(self, connection: Connection) -> None:
        floor, ceiling = self.rand.choice(((0.1, 0.6), (0.75, 0.86), (-1, 1), (-0.5, 0.999), (None, None)))
        call(
            connection, "set_similarity_range", workspace_id=self.some(), embedding_model=self.rand.choice(MODELS[:2]),
            floor=floor, ceiling=ceiling,
        )  # fmt: skip

    def record(self, connection: Connection) -> None:
        call(
            connection, "record_decision", workspace_id=self.world.workspace, content=self.world.sentence(),
            rationale=self.world.rationale(), importance=self.world.importance(), embedding=self.world.embedding(),
            depends_on=[str(one) for one in self.memories(connection, 2)],
            task_id=self.rand.choice(TASKS[2:4]), pinned=self.rand.random() < 0.1,
        )  # fmt: skip

    def verb(self, connection: Connection) -> None:
        some = [str(one) for one in self.memories(connection, 2)] or [str(self.world.uuid())]
        name, arguments = self.rand.choice(
            (
                ("supersede_decision", {"old": some[0], "new": some[-1]}),
                ("supersede_decision", {"old": some[0], "new": some[-1], "action": "merge"}),
                ("set_decision_lifecycle", {"memory_id": some[0], "lifecycle": "active"}),
                ("set_decision_lifecycle", {"memory_id": some[0], "lifecycle": "disputed"}),
                ("set_decision_importance", {"memory_id": some[0], "importance": self.world.importance()}),
                ("pin_decision", {"memory_id": some[0], "pinned": self.rand.random() < 0.5}),
                ("link_decisions", {"from": some[0], "to": some[-1]}),
                ("unlink_decisions", {"from": some[0], "to": some[-1]}),
                ("forget_decision", {"memory_id": some[0]}),
            )
        )
        call(connection, name, workspace_id=self.world.workspace, **arguments)

    def empty(self, connection: Connection) -> None:
        """Only the owner of a table may truncate it."""
        if connection.info.user != OWNER:
            return
        connection.execute(
            "truncate "
            + self.rand.choice(("agent_decision_edges", "agent_decision_edges, agent_decision_ledger",
                                "agent_memories cascade", "thoughts cascade"))
        )  # fmt: skip
        if self.rand.random() < 0.7:
            self.mend(connection)
            write_rows(connection, self.world, self.world.workspace, 40)


@contextmanager
def refusable(connection: Connection) -> Iterator[None]:
    """A savepoint where a transaction is open: what is refused leaves the rest of it."""
    try:
        with connection.transaction():
            yield
    except psycopg.Error as error:
        if error.sqlstate not in REFUSALS:
            raise
