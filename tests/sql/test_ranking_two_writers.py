"""Two writers at once, in one neighbourhood: each pair of changes, neither seen by the other, and recall is right after both."""

from __future__ import annotations

import itertools
import random
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import psycopg
import pytest
from psycopg import IsolationLevel

from tests.rig import hosts
from tests.rig.databases import Connection, Database, Server
from tests.sql.random_changes import REFUSALS
from tests.sql.random_ledgers import Call
from tests.sql.ranking_oracle import assert_copies_are_right, assert_matches, assert_recalls, recall
from tests.sql.rpc import vector
from tests.sql.write_path import change, remember

DIMENSION = 8
AXES = [vector(DIMENSION, axis) for axis in range(3)]


@dataclass(frozen=True)
class Neighbourhood:
    """Decisions a and c rest on b; a and the lesson d share a thought; c is stale. Some more stand around."""

    workspace: str
    thought: uuid.UUID
    a: uuid.UUID
    b: uuid.UUID
    c: uuid.UUID
    d: uuid.UUID


def settle_down(connection: Connection) -> Neighbourhood:
    workspace, thought = f"near-{uuid.uuid4()}", uuid.uuid4()
    with connection.transaction():
        connection.execute(
            "insert into thoughts (id, content, embedding) values (%s, 'shared', %s::vector)",
            (thought, AXES[0]),
        )

        def write(content: str, **columns: object) -> uuid.UUID:
            return remember(connection, content, workspace_id=workspace, **columns)

        near = Neighbourhood(
            workspace,
            thought,
            a=write("invoice a", thought_id=thought),
            b=write("invoice b"),
            c=write("invoice c", lifecycle_status="stale"),
            d=write("invoice d", memory_type="lesson", thought_id=thought),
        )
        for number in range(4):
            write(f"invoice {number}", confidence=0.9, thought_id=thought if number == 0 else None)
        for dependent in (near.a, near.c):
            link(connection, dependent, near.b)
    return near


def link(connection: Connection, later: uuid.UUID, earlier: uuid.UUID) -> None:
    connection.execute(
        "insert into agent_decision_edges (from_memory_id, to_memory_id, relation) values (%s, %s, 'depends_on')",
        (later, earlier),
    )


Change = Callable[[Connection, Neighbourhood], object]


def on_ledger(column: str, value: object, who: str = "b") -> Change:
    def write(connection: Connection, near: Neighbourhood) -> None:
        connection.execute(
            f"update agent_decision_ledger set {column} = %s where memory_id = %s",
            (value, getattr(near, who)),
        )

    return write


def on_memory(who: str, **columns: object) -> Change:
    return lambda connection, near: change(connection, getattr(near, who), **columns)


def on_thought(query: str, *parameters: object) -> Change:
    return lambda connection, near: connection.execute(query, (*parameters, near.thought))


CHANGES: dict[str, Change] = {
    "embed": on_thought("update thoughts set embedding = %s::vector where id = %s", AXES[1]),
    "unembed": on_thought("update thoughts set embedding = null where id = %s"),
    "delete the thought": on_thought("delete from thoughts where id = %s"),
    "point at the thought": lambda c, near: change(c, near.b, thought_id=near.thought),
    "let go of the thought": on_memory("a", thought_id=None),
    "enrol on the thought": lambda c, near: remember(
        c, "invoice new", workspace_id=near.workspace, thought_id=near.thought
    ),
    "retire": on_memory("a", lifecycle_status="superseded"),
    "revive": on_memory("c", lifecycle_status="active"),
    "retire the ground": on_memory("b", lifecycle_status="rejected"),
    "adopt": on_memory("d", memory_type="decision"),
    "set aside": on_memory("a", memory_type="lesson"),
    "forget": lambda c, near: c.execute("delete from agent_memories where id = %s", (near.a,)),
    "move": lambda c, near: change(c, near.a, workspace_id=f"{near.workspace} abroad"),
    "change task": on_memory("a", task_id="another"),
    "change task of the ground": on_memory("b", task_id="another"),
    "edit": on_memory("b", content="payment payment"),
    "sum up": on_memory("b", summary="invoice payment"),
    "review": on_memory("b", visibility="personal", review_status="confirmed"),
    "pin": on_ledger("pinned", True),
    "weigh": on_ledger("importance", 1),
    "reason": on_ledger("rationale", "invoice invoice invoice"),
    "set a step": on_ledger("step_index", 50),
    "unenrol": lambda c, near: c.execute("delete from agent_decision_ledger where memory_id = %s", (near.a,)),
    "link": lambda c, near: link(c, near.c, near.a),
    "unlink": lambda c, near: c.execute("delete from agent_decision_edges where from_memory_id = %s", (near.a,)),
    "relabel": lambda c, near: c.execute(
        "update agent_decision_edges set relation = 'informs' where from_memory_id = %s", (near.a,)
    ),
}  # fmt: skip


class Session:
    """A writer that gives up where the other one's locks are in its way."""

    def __init__(self, connection: Connection, level: IsolationLevel) -> None:
        self.connection = connection
        connection.isolation_level = level
        # a thread that waits for itself would wait for ever
        connection.execute("set lock_timeout = '30ms'")
        connection.execute("select count(*) from agent_decision_ledger")

    def does(self, write: Change, near: Neighbourhood) -> None:
        self._dare(lambda: write(self.connection, near))

    def commits(self) -> None:
        self._dare(self.connection.commit)

    def _dare(self, step: Callable[[], object]) -> None:
        try:
            step()
        except psycopg.Error as error:
            self.connection.rollback()
            if error.sqlstate not in REFUSALS:
                raise


QUESTIONS: list[dict[str, object]] = [
    {"p_query": "invoice payment", "p_query_embedding": AXES[0], "p_include_superseded": True, "p_match_count": 1000},
    {"p_query": "payment", "p_match_count": 2},
    {"p_query_embedding": AXES[1], "p_match_count": 1, "p_include_personal": False},
    {"p_match_count": 1, "p_w_dependency": 1, "p_only_confirmed": True},
    {"p_match_count": 1, "p_w_importance": 0, "p_w_dependency": 0, "p_include_stale": True},
    {"p_preset": "tuned", "p_query": "invoice payment", "p_query_embedding": AXES[0], "p_match_count": 1000},
    {"p_preset": "tuned", "p_query": "payment", "p_match_count": 2},
]  # fmt: skip


def ask(connection: Connection, near: Neighbourhood, where: str) -> None:
    abroad = f"{near.workspace} abroad"
    for workspace, questions in ((near.workspace, QUESTIONS), (abroad, QUESTIONS[:1])):
        assert_copies_are_right(connection, workspace, where)
        for question in questions:
            assert_matches(connection, Call({"p_workspace_id": workspace} | question), where)


def next_recall(connection: Connection, near: Neighbourhood) -> None:
    """It makes good what writers had to leave."""
    for workspace in (near.workspace, f"{near.workspace} abroad"):
        recall(connection, {"p_workspace_id": workspace})


def owes_nothing(connection: Connection) -> bool:
    ((nothing,),) = connection.execute(
        "select not exists (select from ranked_ledger.enrolment_failures)"
        " and not exists (select from ranked_ledger.pending_steps)"
    ).fetchall()
    return bool(nothing)


SCHEDULES = {
    "first ends first": "1 2 end1 end2",
    "second ends first": "1 2 end2 ask end1",
    "second within the first": "2 end2 ask 1 end1",
    "asked all along": "1 ask 2 ask end1 ask end2",
}
LEVELS = (IsolationLevel.READ_COMMITTED, IsolationLevel.REPEATABLE_READ, IsolationLevel.SERIALIZABLE)


@pytest.fixture(scope="module")
def database(server: Server) -> Iterator[Database]:
    made = hosts.ledger_host(server, hosts.Port(dimension=DIMENSION))
    yield made
    server.remove(made)


@pytest.fixture(scope="module")
def connections(database: Database) -> list[Connection]:
    return [database.connect("service_role", autocommit=False) for _ in range(2)]


def run(
    database: Database,
    connections: list[Connection],
    pair: tuple[str, str],
    schedule: str,
    level: IsolationLevel,
) -> None:
    near = settle_down(database.service)
    first, second = Session(connections[0], level), Session(connections[1], IsolationLevel.READ_COMMITTED)
    where = f"{pair}, {schedule}, {level.name}"
    try:
        for step in SCHEDULES[schedule].split():
            match step:
                case "1":
                    first.does(CHANGES[pair[0]], near)
                case "2":
                    second.does(CHANGES[pair[1]], near)
                case "end1":
                    first.commits()
                case "end2":
                    second.commits()
                case _:
                    next_recall(database.service, near)
    finally:
        for connection in connections:
            connection.rollback()
    if owes_nothing(database.service):
        ask(database.service, near, f"{where}, before the next recall")
    for number in range(2):  # what is made good in two steps is right after either
        next_recall(database.service, near)
        if not owes_nothing(database.service):  # a recall met the other's locks and noted that it could not
            database.service.execute("select enroll_missing_decisions()")
        ask(database.service, near, f"{where}, after {number + 1} recalls")
    assert_recalls(database.service, Call({"p_workspace_id": near.workspace, "p_query": "invoice"}), where)
    database.service.execute(
        "delete from agent_memories where workspace_id like %s || '%%'", (near.workspace,)
    )


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_recall_is_right_after_two_writers_at_once(
    database: Database, connections: list[Connection], schedule: str
) -> None:
    """Each pair once, in one of the orders, by one of the schedules."""
    rand = random.Random(0)
    for one, other in itertools.combinations_with_replacement(CHANGES, 2):
        pair = rand.choice(((one, other), (other, one)))
        drawn, level = rand.choice(list(SCHEDULES)), rand.choices(LEVELS, (6, 2, 2))[0]
        if drawn == schedule:
            run(database, connections, pair, schedule, level)


# A mark on a thought is for who reads its old vector while he enrols a decision on it. The greatest transaction id of a
# snapshot is one more than the last that ended, not than the last that began; and who has written nothing yet has no id.
@pytest.mark.parametrize("enrolling", ["adopt", "enrol on the thought"])
@pytest.mark.parametrize("is_enrolled_first", [False, True], ids=["by the second", "under an old snapshot"])
def test_a_mark_stands_until_every_writer_that_it_waits_for_has_ended(
    database: Database, connections: list[Connection], enrolling: str, is_enrolled_first: bool
) -> None:
    if is_enrolled_first:
        pair, schedule, level = (
            (enrolling, "embed"),
            "second within the first",
            IsolationLevel.REPEATABLE_READ,
        )
    else:
        pair, schedule, level = ("embed", enrolling), "asked all along", IsolationLevel.READ_COMMITTED
    run(database, connections, pair, schedule, level)


@pytest.mark.slow
@pytest.mark.parametrize("level", LEVELS, ids=lambda level: level.name)
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("first", CHANGES)
def test_recall_is_right_after_every_pair_in_every_order(
    database: Database, connections: list[Connection], first: str, schedule: str, level: IsolationLevel
) -> None:
    for second in CHANGES:
        run(database, connections, (first, second), schedule, level)
