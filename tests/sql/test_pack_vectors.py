"""Vectors of one workspace are put together where others lie between them, and nothing else changes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.rig import hosts
from tests.rig.databases import Database, Server
from tests.sql import ranking_oracle
from tests.sql.random_ledgers import Call
from tests.sql.rpc import call, vector

DIMENSION = 384
SHARING = ("one", "two", "three")
EACH = 600
A_PAGE = 9  # vectors of this dimension

# One thought in fifty is of a length that cannot be rounded safely: its copy is null.
_THOUGHTS = """
insert into thoughts (id, content, embedding)
select md5(%(name)s::text || n)::uuid, 'thought ' || n, (
  select array_agg(sin(n * 7919 + i * 104729 + ascii(%(name)s::text)) * case when n %% 50 = 0 then 1e17 else 1 end order by i)
  from generate_series(1, %(dimension)s::int) as i)::real[]::vector
from generate_series(%(first)s::int, %(last)s::int) as n"""
_MEMORIES = """
insert into agent_memories (workspace_id, task_id, memory_type, summary, content, confidence, thought_id)
select %(name)s, 't' || n %% 5, 'decision', 's', 'decision ' || n, n %% 100 / 100.0, md5(%(name)s::text || n)::uuid
from generate_series(%(first)s::int, %(last)s::int) as n"""


def write(database: Database, name: str, first: int, last: int) -> None:
    given = {"name": name, "first": first, "last": last, "dimension": DIMENSION}
    for statement in (_THOUGHTS, _MEMORIES):
        database.service.execute(statement, given)


def pages(database: Database, workspace: str) -> int:
    """How many pages hold a vector of the workspace."""
    return database.value(  # type: ignore[return-value]
        "select count(distinct (v.ctid::text::point)[0]) from ranked_ledger.decision_vectors v"
        " where v.workspace_key = ranked_ledger.workspace_key(%s)",
        (workspace,),
    )


def places(database: Database) -> list[tuple]:
    return database.rows("select row_no, ctid::text from ranked_ledger.decision_vectors order by 1")


def pack(database: Database, limit: int = 20_000) -> int:
    return database.service.execute("select ranked_ledger.pack_vectors(%s)", (limit,)).fetchone()[0]  # type: ignore[index,no-any-return]


def scatter(database: Database) -> None:
    """The vectors as if all workspaces had written in turn."""
    with database.superuser.transaction():
        database.superuser.execute(
            "create temp table kept on commit drop as select * from ranked_ledger.decision_vectors"
        )
        database.superuser.execute("truncate ranked_ledger.decision_vectors")
        database.superuser.execute(
            "insert into ranked_ledger.decision_vectors select * from kept order by md5(row_no::text)"
        )


@pytest.fixture(scope="module")
def written(server: Server) -> Iterator[Database]:
    """Three workspaces on a host of their own."""
    database = hosts.ledger_host(server, hosts.Port(dimension=DIMENSION))
    database.superuser.execute("delete from agent_memories")
    for name in SHARING:
        write(database, name, 1, EACH)
    yield database
    database.server.remove(database)


@pytest.fixture
def database(written: Database) -> Database:
    scatter(written)
    return written


def test_vectors_that_came_in_turn_lie_together_afterwards(database: Database) -> None:
    for name in SHARING:
        assert pages(database, name) > 2 * EACH / A_PAGE
    assert pack(database) == len(SHARING) * EACH
    for name in SHARING:
        assert EACH / A_PAGE - 1 <= pages(database, name) <= EACH / A_PAGE + 3


def test_no_answer_and_no_copy_changes(database: Database) -> None:
    calls = [
        Call({"p_workspace_id": name, "p_query_embedding": vector(DIMENSION, 0)} | more)
        for name in SHARING
        for more in ({}, {"p_query": "decision 17"}, {"p_match_count": 1000})
    ]
    before = [ranking_oracle.match(database.service, one.arguments) for one in calls]
    assert pack(database) > 0
    assert [ranking_oracle.match(database.service, one.arguments) for one in calls] == before
    for one in calls:
        ranking_oracle.assert_matches(
            database.service, one, expected=ranking_oracle.oracle(database.service, one)
        )
    for name in SHARING:
        checked = call(database.service, "check_copies", workspace_id=name)
        assert (checked["checked"], checked["wrong"]) == (EACH, [])
    assert database.value("select count(*) from ranked_ledger.decision_vectors where embedding is null") == (
        len(SHARING) * EACH // 50
    )
    assert database.value("select count(*) from ranked_ledger.stale_copies") == 0


def test_a_second_call_moves_nothing_before_and_after_a_vacuum(database: Database) -> None:
    pack(database)
    found = places(database)
    assert pack(database) == 0
    database.superuser.execute("vacuum ranked_ledger.decision_vectors")
    assert pack(database) == 0
    assert places(database) == found


@pytest.mark.parametrize("vacuumed", [False, True])
def test_no_call_moves_more_than_its_limit_and_together_they_move_all(
    database: Database, vacuumed: bool
) -> None:
    moved = []
    while step := pack(database, 500):
        moved.append(step)
        if vacuumed:
            database.superuser.execute("vacuum ranked_ledger.decision_vectors")
        assert len(moved) < 10
    assert max(moved) <= 500
    assert sum(moved) > 0.7 * len(SHARING) * EACH
    for name in SHARING:
        assert pages(database, name) < 1.5 * EACH / A_PAGE


def test_what_somebody_holds_is_left_without_waiting_and_moved_by_a_later_call(database: Database) -> None:
    holder = database.connect("service_role", autocommit=False)
    holder.execute(
        "select from ranked_ledger.standings where workspace_key = ranked_ledger.workspace_key('two') for update"
    )
    database.service.execute("set statement_timeout = '5s'")
    assert pack(database) == (len(SHARING) - 1) * EACH
    assert pages(database, "one") < 1.1 * EACH / A_PAGE
    assert pages(database, "two") > 2 * EACH / A_PAGE
    holder.rollback()
    assert pack(database) > 0.7 * EACH  # but for what lies half a page together
    assert pages(database, "two") < 1.5 * EACH / A_PAGE
    assert pack(database) == 0
    database.service.execute("reset statement_timeout")


def test_one_row_that_is_held_stays_alone(database: Database) -> None:
    holder = database.connect("service_role", autocommit=False)
    ((held,),) = holder.execute(
        "select row_no from ranked_ledger.standings order by row_no limit 1 for update"
    ).fetchall()
    before = dict(places(database))
    assert pack(database) == len(SHARING) * EACH - 1
    holder.rollback()
    assert dict(places(database))[held] == before[held]
    assert pack(database) == 0


def test_a_writer_that_meets_it_does_not_wait_and_is_not_lost(database: Database) -> None:
    packer = database.connect("service_role", autocommit=False)
    packer.execute("select ranked_ledger.pack_vectors()")
    database.service.execute("set statement_timeout = '5s'")
    database.service.execute(
        "update thoughts set embedding = %s::vector where id = md5('one7')::uuid", (vector(DIMENSION, 1),)
    )
    asked = Call(
        {"p_workspace_id": "one", "p_query_embedding": vector(DIMENSION, 1), "p_w_importance": 0,
         "p_w_recency": 0, "p_w_dependency": 0, "p_w_similarity": 1}
    )  # fmt: skip
    for _ in range(2):
        (first, *_) = ranking_oracle.match(database.service, asked.arguments)
        assert first["content"] == "decision 7"
        packer.commit()
    database.service.execute("reset statement_timeout")
    write_back = "update thoughts set embedding = (select embedding from thoughts where id = md5('one8')::uuid) where id = md5('one7')::uuid"
    database.service.execute(write_back)
    for _ in range(2):
        database.service.execute("select enroll_missing_decisions()")
    assert call(database.service, "check_copies", workspace_id="one")["wrong"] == []


def test_a_table_that_somebody_has_is_left_alone(database: Database) -> None:
    holder = database.connect("supabase_admin", autocommit=False)
    holder.execute("lock table ranked_ledger.decision_vectors in access exclusive mode")
    try:
        assert pack(database) == 0
    finally:
        holder.close()
    assert pack(database) == len(SHARING) * EACH


def test_an_old_snapshot_moves_nothing(database: Database) -> None:
    with database.service.transaction():
        database.service.execute("set transaction isolation level repeatable read")
        assert pack(database) == 0


@pytest.mark.parametrize("limit", [0, -1, None, 1_000_001])
def test_a_limit_is_a_number_within_reason(ledger_db: Database, limit: int | None) -> None:
    with pytest.raises(Exception, match="p_limit is a number"):
        pack(ledger_db, limit)  # type: ignore[arg-type]


def test_small_workspaces_and_a_single_one_are_left_where_they_are(server: Server) -> None:
    database = hosts.ledger_host(server, hosts.Port(dimension=DIMENSION))
    try:
        database.superuser.execute("delete from agent_memories")
        assert pack(database) == 0
        write(database, "one", 1, 1)
        assert pack(database) == 0
        write(database, "one", 2, EACH)
        # no order, and holes, but nobody else's
        database.service.execute("delete from agent_memories where content like '%3'")
        scatter(database)
        database.superuser.execute("vacuum ranked_ledger.decision_vectors")
        found = places(database)
        assert pack(database) == 0
        database.service.execute("delete from agent_memories where content > 'decision 4'")
        for name in ("two", "three"):
            write(database, name, 1, 400)
        scatter(database)
        found = places(database)
        assert pack(database) == 0
        assert places(database) == found
    finally:
        database.server.remove(database)


def test_nobody_but_the_service_role_may_call_it(ledger_db: Database) -> None:
    for function in ("pack_vectors(int)", "move_vectors(int[])"):
        may = "select has_function_privilege(%s, 'ranked_ledger.' || %s, 'execute')"
        assert [ledger_db.value(may, (role, function)) for role in ("anon", "authenticated", "service_role")] == [
            False, False, True,
        ]  # fmt: skip
