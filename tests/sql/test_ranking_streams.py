"""How far back a decision lies is told by the newest row that its stream has now, also where that is not settled yet."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
from psycopg import IsolationLevel

from tests.rig import hosts
from tests.rig.databases import Connection, Database, Server
from tests.sql.random_ledgers import Call
from tests.sql.ranking_oracle import assert_matches, recall
from tests.sql.write_path import change, remember


@pytest.fixture(scope="module")
def database(server: Server) -> Iterator[Database]:
    made = hosts.ledger_host(server, hosts.Port(dimension=8))
    yield made
    server.remove(made)


@dataclass(frozen=True)
class Stream:
    """Few decisions and one far ahead of them; another stream, whose decisions come first as long as that one is there."""

    workspace: str
    first: uuid.UUID
    ahead: uuid.UUID


def write(connection: Connection) -> Stream:
    workspace = f"streams-{uuid.uuid4()}"
    first, *_ = (
        remember(connection, f"a {number}", workspace_id=workspace, task_id="a") for number in range(3)
    )
    ahead = remember(
        connection, "ahead", workspace_id=workspace, task_id="a", metadata={"step_index": 1000}, confidence=0
    )
    for number in range(20):
        remember(connection, f"b {number}", workspace_id=workspace, task_id="b", confidence=0.45)
    return Stream(workspace, first, ahead)


def by_hand(step: int, who: str) -> Callable[[Connection, Stream], None]:
    def update(connection: Connection, stream: Stream) -> None:
        connection.execute(
            "update agent_decision_ledger set step_index = %s where memory_id = %s",
            (step, getattr(stream, who)),
        )

    return update


WAYS: dict[str, Callable[[Connection, Stream], object]] = {
    "deleted": lambda c, s: c.execute("delete from agent_memories where id = %s", (s.ahead,)),
    "unenrolled": lambda c, s: c.execute(
        "delete from agent_decision_ledger where memory_id = %s", (s.ahead,)
    ),
    "another task": lambda c, s: change(c, s.ahead, task_id="c"),
    "another workspace": lambda c, s: change(c, s.ahead, workspace_id=f"{s.workspace} abroad"),
    "no decision": lambda c, s: change(c, s.ahead, memory_type="lesson"),
    "set back by hand": by_hand(3, "ahead"),
    "set ahead by hand": by_hand(2000, "first"),
    "beyond what counts": by_hand(2_000_000_000, "ahead"),
}
LEVELS = (IsolationLevel.READ_COMMITTED, IsolationLevel.REPEATABLE_READ, IsolationLevel.SERIALIZABLE)


def ask(connection: Connection, stream: Stream, where: str) -> None:
    for count in (1, 3, 10, 1000):
        for retired in (False, True):
            scope = {
                "p_workspace_id": stream.workspace,
                "p_match_count": count,
                "p_include_superseded": retired,
            }
            assert_matches(connection, Call(scope), where)
            tuned = {"p_preset": "tuned", "p_query": "a b 1"} if retired else {"p_preset": "tuned"}
            assert_matches(connection, Call(scope | tuned), where)


@pytest.mark.parametrize("level", LEVELS, ids=lambda level: level.name)
@pytest.mark.parametrize("way", WAYS)
def test_a_stream_whose_newest_row_goes_stands_where_its_rows_do(
    database: Database, way: str, level: IsolationLevel
) -> None:
    stream = write(database.service)
    writer = database.connect("service_role")
    writer.isolation_level = level
    with writer.transaction():
        WAYS[way](writer, stream)
        ask(writer, stream, "within the transaction")
        ask(database.service, stream, "before it ends")
    ask(database.service, stream, "after it")
    recall(database.service, {"p_workspace_id": stream.workspace})
    ask(database.service, stream, "after the next recall")


@pytest.mark.parametrize("way", WAYS)
def test_a_stream_that_another_writes_to_meanwhile_stands_where_its_rows_do(
    database: Database, way: str
) -> None:
    """An old snapshot cannot settle a stream that somebody else has settled since."""
    stream = write(database.service)
    writer = database.connect("service_role")
    writer.isolation_level = IsolationLevel.REPEATABLE_READ
    with writer.transaction():
        writer.execute("select count(*) from agent_decision_ledger")
        remember(database.service, "meanwhile", workspace_id=stream.workspace, task_id="a", confidence=0)
        database.service.execute(
            "delete from agent_memories where workspace_id = %s and content = 'meanwhile'",
            (stream.workspace,),
        )
        WAYS[way](writer, stream)
    ask(database.service, stream, "after it")
    recall(database.service, {"p_workspace_id": stream.workspace})
    ask(database.service, stream, "after the next recall")
