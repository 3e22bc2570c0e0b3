"""A vector that arrives later, changes or goes is seen by the next recall, however it did."""

from __future__ import annotations

import json
import random
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from psycopg import IsolationLevel

from tests.rig import hosts
from tests.rig.databases import Connection, Database, Server
from tests.sql import ranking_oracle
from tests.sql.random_ledgers import INSERT_MEMORIES, INSERT_THOUGHTS, Call, World, as_vector
from tests.sql.rpc import vector

DIMENSION = 384
ROWS, WATCHED = 240, 150
ASKED = vector(DIMENSION, 0)
# at a right angle to what is asked
ASIDE = vector(DIMENSION, 1)


@pytest.fixture(scope="module")
def database(server: Server) -> Iterator[Database]:
    made = hosts.ledger_host(server, hosts.Port(dimension=DIMENSION))
    yield made
    server.remove(made)


class Ledger:
    """A workspace of some hundred decisions, one of which is watched: its vector comes, changes and goes."""

    def __init__(self, database: Database, name: str) -> None:
        self.db, self.name = database, name
        rand = random.Random(name)
        world = World(rand, DIMENSION)
        thoughts = [
            {"id": str(world.uuid()), "content": f"thought {number}",
             "embedding": as_vector([rand.gauss(0, 1) for _ in range(DIMENSION)]) if number % 3 else None}
            for number in range(ROWS)
        ]  # fmt: skip
        memories = [world.memory(name, one["id"]) | {"memory_type": "decision"} for one in thoughts]
        self.thought, self.memory = thoughts[WATCHED]["id"], memories[WATCHED]["id"]
        thoughts[WATCHED]["embedding"] = None
        memories[WATCHED] |= {"content": "watched", "lifecycle_status": "active", "confidence": 0}
        database.service.execute(INSERT_THOUGHTS, (json.dumps(thoughts),))
        database.service.execute(INSERT_MEMORIES, (json.dumps(memories),))

    def run(self, query: str, *parameters: Any) -> Any:
        rows = self.db.service.execute(query, parameters)
        return rows.fetchone()[0] if rows.description else None  # type: ignore[index]

    def seen(self, connection: Connection | None = None) -> float | None:
        """The watched decision's cosine, by both functions as by the oracle, asked for the first and for all."""
        connection = connection or self.db.service
        for count in (1, 1000):
            call = Call(
                {"p_workspace_id": self.name, "p_query_embedding": ASKED, "p_query": "watched", "p_match_count": count,
                 "p_w_similarity": 1, "p_w_importance": 0, "p_w_recency": 0, "p_w_dependency": 0}
            )  # fmt: skip
            expected = ranking_oracle.oracle(connection, call)
            ranking_oracle.assert_recalls(connection, call, expected=expected)
            rows = ranking_oracle.assert_matches(connection, call, expected=expected)
        (similarity,) = (row["similarity"] for row in rows if str(row["memory_id"]) == self.memory)
        return None if similarity is None else round(similarity, 6)


@pytest.fixture
def ledger(database: Database, request: pytest.FixtureRequest) -> Ledger:
    return Ledger(database, request.node.name)


def updated(ledger: Ledger, embedding: str | None) -> None:
    ledger.run("update thoughts set embedding = %s::vector where id = %s", embedding, ledger.thought)


def updated_with_all_others(ledger: Ledger, embedding: str | None) -> None:
    """In one statement with vectors that stay as they are."""
    ledger.run(
        "update thoughts t set embedding = case when t.id = %s then %s::vector else t.embedding end, content = t.content"
        " from agent_memories m where m.thought_id = t.id and m.workspace_id = %s",
        ledger.thought, embedding, ledger.name,
    )  # fmt: skip


def replaced(ledger: Ledger, embedding: str | None) -> None:
    """By another thought; the old one stays."""
    thought = ledger.run(
        "insert into thoughts (content, embedding) values ('anew', %s::vector) returning id", embedding
    )
    ledger.run("update agent_memories set thought_id = %s where id = %s", thought, ledger.memory)


def replaced_and_deleted(ledger: Ledger, embedding: str | None) -> None:
    old = ledger.run("select thought_id from agent_memories where id = %s", ledger.memory)
    replaced(ledger, embedding)
    ledger.run("delete from thoughts where id = %s", old)


def upserted(ledger: Ledger, embedding: str | None) -> None:
    """As the host's write path stores a text: upsert_thought, then the vector, then the memory's pointer."""
    thought = ledger.run("select upsert_thought(%s, '{}') ->> 'id'", f"Watched {ledger.name}")
    ledger.run("update thoughts set embedding = %s::vector where id = %s", embedding, thought)
    ledger.run("update agent_memories set thought_id = %s where id = %s", thought, ledger.memory)


def overwritten(ledger: Ledger, embedding: str | None) -> None:
    ledger.run(
        "insert into thoughts (id, content, embedding) values (%s, 'anew', %s::vector)"
        " on conflict (id) do update set embedding = excluded.embedding, content = excluded.content",
        ledger.thought, embedding,
    )  # fmt: skip


def merged(ledger: Ledger, embedding: str | None) -> None:
    ledger.run(
        "merge into thoughts t using (select %s::uuid as id, %s::vector as embedding) as n on t.id = n.id"
        " when matched then update set embedding = n.embedding",
        ledger.thought, embedding,
    )  # fmt: skip


def pointed_before_the_vector(ledger: Ledger, embedding: str | None) -> None:
    replaced(ledger, None)
    ledger.run(
        "update thoughts set embedding = %s::vector where id = (select thought_id from agent_memories where id = %s)",
        embedding, ledger.memory,
    )  # fmt: skip


def in_one_transaction(ledger: Ledger, embedding: str | None) -> None:
    with ledger.db.service.transaction():
        for step in (ASIDE, None, embedding):
            updated(ledger, step)


def beside_what_is_undone(ledger: Ledger, embedding: str | None) -> None:
    other = ASIDE if embedding is None else None
    with ledger.db.service.transaction():
        updated(ledger, embedding)
        with ledger.db.service.transaction(force_rollback=True):
            updated(ledger, other)
    with ledger.db.service.transaction(force_rollback=True):
        updated(ledger, other)


def isolated(level: IsolationLevel) -> Callable[[Ledger, str | None], None]:
    def change(ledger: Ledger, embedding: str | None) -> None:
        connection = ledger.db.connect("service_role")
        connection.isolation_level = level
        with connection.transaction():
            connection.execute(
                "update thoughts set embedding = %s::vector where id = %s", (embedding, ledger.thought)
            )
        connection.close()

    change.__name__ = level.name.lower()
    return change


WAYS = (
    updated, updated_with_all_others, replaced, replaced_and_deleted, upserted, overwritten, merged,
    pointed_before_the_vector, in_one_transaction, beside_what_is_undone,
    isolated(IsolationLevel.REPEATABLE_READ), isolated(IsolationLevel.SERIALIZABLE),
)  # fmt: skip


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_a_vector_is_seen_as_it_is_now(ledger: Ledger, way: Callable[[Ledger, str | None], None]) -> None:
    assert ledger.seen() is None
    for embedding, expected in ((ASKED, 1.0), (ASIDE, 0.0), (None, None), (ASKED, 1.0)):
        way(ledger, embedding)
        assert ledger.seen() == expected


def test_a_thought_that_is_deleted_takes_its_vector_along(ledger: Ledger) -> None:
    updated(ledger, ASKED)
    assert ledger.seen() == 1
    ledger.run("delete from thoughts where id = %s", ledger.thought)
    assert ledger.seen() is None
    ledger.run(
        "insert into thoughts (id, content, embedding) values (%s, 't', %s::vector)", ledger.thought, ASKED
    )
    assert ledger.seen() is None, "nothing points at it"
    ledger.run("update agent_memories set thought_id = %s where id = %s", ledger.thought, ledger.memory)
    assert ledger.seen() == 1


def test_a_memory_that_lets_go_of_its_thought_has_no_vector(ledger: Ledger) -> None:
    updated(ledger, ASKED)
    ledger.run("update agent_memories set thought_id = null where id = %s", ledger.memory)
    assert ledger.seen() is None
    updated(ledger, ASIDE)
    ledger.run("update agent_memories set thought_id = %s where id = %s", ledger.thought, ledger.memory)
    assert ledger.seen() == 0


def test_a_thought_that_several_share_changes_for_all_of_them(database: Database, ledger: Ledger) -> None:
    neighbour = Ledger(database, f"{ledger.name} next door")
    for shared in (ledger, neighbour):
        shared.run(
            "update agent_memories set thought_id = %s where id in (select id from agent_memories"
            " where workspace_id = %s and (id = %s or lifecycle_status = 'active') order by id <> %s, id limit 20)",
            ledger.thought, shared.name, shared.memory, shared.memory,
        )  # fmt: skip
    for embedding, expected in ((ASKED, 1.0), (None, None), (ASIDE, 0.0)):
        updated(ledger, embedding)
        assert (ledger.seen(), neighbour.seen()) == (expected, expected)


def test_a_vector_goes_with_a_decision_to_another_workspace(ledger: Ledger) -> None:
    updated(ledger, ASKED)
    home, ledger.name = ledger.name, f"{ledger.name} abroad"
    ledger.run("update agent_memories set workspace_id = %s where id = %s", ledger.name, ledger.memory)
    assert ledger.seen() == 1
    updated(ledger, ASIDE)
    assert ledger.seen() == 0
    ledger.run("update agent_memories set workspace_id = %s where id = %s", home, ledger.memory)
    ledger.name = home
    assert ledger.seen() == 0


def test_a_vector_that_changes_while_the_memory_is_no_decision_is_seen_when_it_is_one(ledger: Ledger) -> None:
    updated(ledger, ASIDE)
    ledger.run("update agent_memories set memory_type = 'lesson' where id = %s", ledger.memory)
    updated(ledger, ASKED)
    ledger.run("update agent_memories set memory_type = 'decision' where id = %s", ledger.memory)
    assert ledger.seen() == 1


def test_a_decision_that_comes_with_its_vector_or_before_it_is_seen(ledger: Ledger) -> None:
    for number in range(3):
        thought = uuid.uuid4()
        write = (
            "insert into thoughts (id, content, embedding) values (%s, 't', %s::vector)",
            (thought, ASKED if number else None),
        )
        ledger.db.service.execute(*write)
        ledger.memory = ledger.run(
            "insert into agent_memories (workspace_id, memory_type, summary, content, thought_id)"
            " values (%s, 'decision', 's', 'new', %s) returning id::text",
            ledger.name, thought,
        )  # fmt: skip
        assert ledger.seen() == (1 if number else None)
        ledger.run("update thoughts set embedding = %s::vector where id = %s", ASKED, thought)
        assert ledger.seen() == 1


# two sessions


def test_another_session_sees_it_when_it_is_committed_and_the_own_one_before(ledger: Ledger) -> None:
    writer = ledger.db.connect("service_role", autocommit=False)
    for embedding, before, after in ((ASKED, None, 1.0), (ASIDE, 1.0, 0.0), (None, 0.0, None)):
        writer.execute(
            "update thoughts set embedding = %s::vector where id = %s", (embedding, ledger.thought)
        )
        assert ledger.seen() == before
        assert ledger.seen(writer) == after
        writer.commit()
        assert ledger.seen() == after


def test_a_session_with_an_open_transaction_sees_it_in_its_next_statement(ledger: Ledger) -> None:
    reader = ledger.db.connect("service_role", autocommit=False)
    for embedding, expected in ((ASKED, 1.0), (ASIDE, 0.0), (None, None)):
        updated(ledger, embedding)
        assert ledger.seen(reader) == expected


@pytest.mark.parametrize("level", [IsolationLevel.REPEATABLE_READ, IsolationLevel.SERIALIZABLE])
def test_an_old_snapshot_keeps_its_answer_until_it_ends(ledger: Ledger, level: IsolationLevel) -> None:
    updated(ledger, ASKED)
    reader = ledger.db.connect("service_role", autocommit=False)
    reader.isolation_level = level
    assert ledger.seen(reader) == 1
    updated(ledger, ASIDE)
    assert (ledger.seen(reader), ledger.seen()) == (1, 0)
    reader.commit()
    assert ledger.seen(reader) == 0


def test_a_vector_and_a_pointer_that_change_at_the_same_time_are_both_seen(ledger: Ledger) -> None:
    """One session gives the memory another thought, another embeds that thought: neither sees the other's."""
    thought = ledger.run("insert into thoughts (content) values ('anew') returning id")
    for first, embedding, expected in (("pointer", ASKED, 1.0), ("vector", ASIDE, 0.0)):
        ledger.run("update agent_memories set thought_id = %s where id = %s", ledger.thought, ledger.memory)
        sessions = {
            name: ledger.db.connect("service_role", autocommit=False) for name in ("pointer", "vector")
        }
        sessions["pointer"].execute(
            "update agent_memories set thought_id = %s where id = %s", (thought, ledger.memory)
        )
        sessions["vector"].execute(
            "update thoughts set embedding = %s::vector where id = %s", (embedding, thought)
        )
        for name in sorted(sessions, key=lambda name: name != first):
            sessions[name].commit()
            sessions[name].close()
        assert ledger.seen() == expected
