"""Edges: both ends in one workspace, no cycle of depends_on even between transactions, a mark where ground is lost."""

from __future__ import annotations

import itertools
import uuid

import psycopg
import pytest
from psycopg import IsolationLevel

from tests.rig.databases import Connection, Database
from tests.sql.write_path import (
    assert_consistent,
    at_once,
    change,
    in_background,
    mend,
    remember,
    wait_until_blocked,
)

CROSSES, CLOSES, NO_DECISION = "RL462", "RL461", "RL404"


def link(connection: Connection, one: uuid.UUID, other: uuid.UUID, relation: str = "depends_on") -> None:
    connection.execute(
        "insert into agent_decision_edges (from_memory_id, to_memory_id, relation) values (%s, %s, %s)",
        (one, other, relation),
    )


def edges(database: Database) -> int:
    return database.value("select count(*) from agent_decision_edges")  # type: ignore[return-value]


def decisions(database: Database, number: int, **columns: str) -> list[uuid.UUID]:
    return [remember(database.service, **columns) for _ in range(number)]


def refused(connection: Connection, one: uuid.UUID, other: uuid.UUID) -> psycopg.Error:
    with pytest.raises(psycopg.Error) as caught:
        link(connection, one, other)
    return caught.value


def test_an_edge_across_workspaces_is_refused(ledger_db: Database):
    here, there = remember(ledger_db.service), remember(ledger_db.service, workspace_id="other")
    for relation in ("depends_on", "informs", "blocks"):
        with pytest.raises(psycopg.Error) as caught:
            link(ledger_db.service, here, there, relation)
        assert caught.value.sqlstate == CROSSES
    assert edges(ledger_db) == 0


def test_an_edge_that_is_changed_to_cross_workspaces_is_refused(ledger_db: Database):
    one, other = decisions(ledger_db, 2)
    there = remember(ledger_db.service, workspace_id="other")
    link(ledger_db.service, one, other)
    with pytest.raises(psycopg.Error) as caught:
        ledger_db.service.execute("update agent_decision_edges set to_memory_id = %s", (there,))
    assert caught.value.sqlstate == CROSSES


def test_an_edge_to_nothing_is_refused(ledger_db: Database):
    assert refused(ledger_db.service, remember(ledger_db.service), uuid.uuid4()).sqlstate == NO_DECISION


@pytest.mark.parametrize("length", [2, 3, 30])
def test_an_edge_that_closes_a_cycle_is_refused_with_the_path(ledger_db: Database, length):
    chain = decisions(ledger_db, length)
    for one, other in itertools.pairwise(chain):
        link(ledger_db.service, one, other)
    error = refused(ledger_db.service, chain[-1], chain[0])
    path = " -> ".join(map(str, [chain[-1], *chain]))
    assert error.sqlstate == CLOSES
    assert path in error.diag.message_primary
    assert error.diag.message_detail == path


def test_the_two_halves_of_a_cycle_in_one_statement_are_refused(ledger_db: Database):
    one, other = decisions(ledger_db, 2)
    with pytest.raises(psycopg.Error) as caught:
        ledger_db.service.execute(
            "insert into agent_decision_edges (from_memory_id, to_memory_id, relation)"
            " values (%s, %s, 'depends_on'), (%s, %s, 'depends_on')",
            (one, other, other, one),
        )
    assert caught.value.sqlstate == CLOSES


def test_an_edge_that_is_turned_or_renamed_into_a_cycle_is_refused(ledger_db: Database):
    one, two, three = decisions(ledger_db, 3)
    link(ledger_db.service, one, two)
    link(ledger_db.service, two, one, "informs")
    link(ledger_db.service, three, one)
    for work in (
        "update agent_decision_edges set relation = 'depends_on' where relation = 'informs'",
        f"update agent_decision_edges set from_memory_id = '{two}', to_memory_id = '{one}'"
        f" where from_memory_id = '{three}'",
    ):
        with pytest.raises(psycopg.Error) as caught:
            ledger_db.service.execute(work)
        assert caught.value.sqlstate == CLOSES


def test_other_relations_may_go_both_ways(ledger_db: Database):
    one, other = decisions(ledger_db, 2)
    for relation in ("informs", "blocks"):
        link(ledger_db.service, one, other, relation)
        link(ledger_db.service, other, one, relation)
    assert edges(ledger_db) == 4


def test_two_transactions_that_add_the_two_halves_of_a_cycle_do_not_both_commit(ledger_db: Database):
    one, other = decisions(ledger_db, 2)
    first, second = (ledger_db.connect("service_role", autocommit=False) for _ in range(2))
    link(first, one, other)
    with in_background(lambda: link(second, other, one)) as outcome:
        wait_until_blocked(ledger_db, second)
        first.commit()
    assert outcome[0].sqlstate == CLOSES
    assert str(one) in outcome[0].diag.message_primary
    assert edges(ledger_db) == 1


def test_three_transactions_that_add_the_thirds_of_a_cycle_do_not_all_commit(ledger_db: Database):
    for _ in range(5):
        a, b, c = decisions(ledger_db, 3)

        def add(one, other):
            try:
                link(ledger_db.connect("service_role"), one, other)
            except psycopg.Error as error:
                return error.sqlstate
            return None

        outcomes = at_once([lambda e=e: add(*e) for e in ((a, b), (b, c), (c, a))])
        assert sorted(map(str, outcomes)) == ["None", "None", CLOSES]


@pytest.mark.parametrize("level", [IsolationLevel.REPEATABLE_READ, IsolationLevel.SERIALIZABLE])
def test_under_an_old_snapshot_the_halves_of_a_cycle_do_not_both_commit_either(ledger_db: Database, level):
    one, other = decisions(ledger_db, 2)
    first, second = (ledger_db.connect("service_role", autocommit=False) for _ in range(2))
    for connection in (first, second):
        connection.isolation_level = level
        connection.execute("select count(*) from agent_memories")
    refusals = []
    for connection, ends in ((first, (one, other)), (second, (other, one))):
        try:
            link(connection, *ends)
            connection.commit()
        except psycopg.Error as error:
            refusals.append(error.sqlstate)
            connection.rollback()
    assert len(refusals) >= 1
    assert edges(ledger_db) <= 1


def test_edges_of_two_workspaces_do_not_wait_for_each_other(ledger_db: Database):
    here = decisions(ledger_db, 2)
    there = decisions(ledger_db, 2, workspace_id="other")
    slow = ledger_db.connect("service_role", autocommit=False)
    link(slow, *here)
    hasty = ledger_db.connect("service_role")
    hasty.execute("set lock_timeout = '1ms'")
    link(hasty, *there)
    slow.commit()
    assert edges(ledger_db) == 2


def test_an_edge_and_a_move_to_another_workspace_unseen_by_each_other_are_mended(ledger_db: Database):
    one, other = decisions(ledger_db, 2)
    mover = ledger_db.connect("service_role", autocommit=False)
    change(mover, one, workspace_id="other")
    link(ledger_db.service, one, other)
    mover.commit()
    mend(ledger_db)
    assert edges(ledger_db) == 0
    assert_consistent(ledger_db)


def test_a_deleted_ground_leaves_its_dependants_a_mark(ledger_db: Database):
    ground, dependant, informed = decisions(ledger_db, 3)
    link(ledger_db.service, dependant, ground)
    link(ledger_db.service, informed, ground, "informs")
    ledger_db.service.execute("delete from agent_memories where id = %s", (ground,))
    assert ledger_db.rows("select memory_id, lost_memory_id, relation from ranked_ledger.lost_grounds") == [
        (dependant, ground, "depends_on")
    ]
    assert_consistent(ledger_db)


def test_an_edge_that_is_merely_removed_leaves_no_mark(ledger_db: Database):
    one, other = decisions(ledger_db, 2)
    link(ledger_db.service, one, other)
    ledger_db.service.execute("delete from agent_decision_edges")
    assert ledger_db.rows("select * from ranked_ledger.lost_grounds") == []


def test_a_dependant_that_goes_takes_its_marks_along(ledger_db: Database):
    ground, dependant = decisions(ledger_db, 2)
    link(ledger_db.service, dependant, ground)
    ledger_db.service.execute("delete from agent_memories where id = %s", (ground,))
    ledger_db.service.execute("delete from agent_memories where id = %s", (dependant,))
    assert ledger_db.rows("select * from ranked_ledger.lost_grounds") == []


def test_ground_and_dependant_deleted_together_leave_nothing(ledger_db: Database):
    ground, dependant = decisions(ledger_db, 2)
    link(ledger_db.service, dependant, ground)
    ledger_db.service.execute("delete from agent_memories")
    assert ledger_db.rows("select * from ranked_ledger.lost_grounds") == []
    assert_consistent(ledger_db)


@pytest.mark.parametrize("relation", ["depends_on", "informs"])
def test_a_thousand_edges_on_a_dense_graph_are_added_in_bounded_time(ledger_db: Database, relation):
    nodes = decisions(ledger_db, 60)
    writer = ledger_db.connect("service_role")
    writer.execute("set statement_timeout = '20s'")
    writer.execute(
        "insert into agent_decision_edges (from_memory_id, to_memory_id, relation)"
        " select a.id, b.id, %s from unnest(%s::uuid[]) with ordinality a (id, n)"
        " join unnest(%s::uuid[]) with ordinality b (id, n) on b.n < a.n and b.n >= a.n - 20",
        (relation, nodes, nodes),
    )
    assert edges(ledger_db) == 990
