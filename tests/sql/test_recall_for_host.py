"""recall_decisions for a host's own function, which writes the trace itself: counted, with the rows, and no trace of ours."""

from __future__ import annotations

import uuid

import psycopg
import pytest

from tests.rig.databases import Database
from tests.sql.test_recall_decisions import recall, traces, write

COUNTS = "select recall_count from agent_decision_ledger order by step_index"


def test_the_hits_come_with_their_rows_and_are_counted_without_a_trace(ledger_db: Database) -> None:
    found = write(ledger_db, "Invoices are immutable", task_id="invoicing")
    write(ledger_db, "Payments are retried", task_id="invoicing")
    answer = recall(ledger_db, p_query="immutable", p_match_count=1, p_trace_by_host=True)
    assert [hit["memory_id"] for hit in answer["hits"]] == [found]
    assert answer["memories"] == ledger_db.value(
        "select jsonb_agg(to_jsonb(m)) from agent_memories m where m.id = %s", (found,)
    )
    assert (answer["traced"], traces(ledger_db)) == (False, 0)
    assert ledger_db.rows(COUNTS) == [(1,), (0,)]


def test_only_what_the_budget_left_comes_and_counts(ledger_db: Database) -> None:
    kept = write(ledger_db, "short")
    write(ledger_db, "word " * 400, summary="word " * 400)
    answer = recall(ledger_db, p_max_tokens=200, p_trace_by_host=True)
    assert [row["id"] for row in answer["memories"]] == [kept]
    assert sorted(ledger_db.rows("select recall_count from agent_decision_ledger")) == [(0,), (1,)]


def test_no_hit_no_row(ledger_db: Database) -> None:
    assert recall(ledger_db, p_query="immutable", p_trace_by_host=True)["memories"] == []


def test_an_answer_for_anybody_else_has_no_rows(ledger_db: Database) -> None:
    write(ledger_db, "Invoices are immutable")
    assert "memories" not in recall(ledger_db, p_query="immutable")
    assert "memories" not in recall(ledger_db, p_query="immutable", p_trace=False)


def test_what_has_a_trace_already_is_not_counted_again(ledger_db: Database) -> None:
    write(ledger_db, "Invoices are immutable")
    request = uuid.uuid4()
    recall(ledger_db, p_query="immutable", p_request_id=request)
    assert recall(ledger_db, p_query="immutable", p_request_id=request, p_trace_by_host=True)["replayed"]
    assert ledger_db.rows(COUNTS) == [(1,)]


@pytest.mark.filterwarnings("default")
def test_a_ledger_row_that_stays_locked_costs_the_count_and_not_the_answer(ledger_db: Database) -> None:
    found = write(ledger_db, "Invoices are immutable")
    with ledger_db.connect("service_role") as holder, holder.transaction():
        holder.execute("select from agent_decision_ledger where memory_id = %s for update", (found,))
        answer = recall(ledger_db, p_query="immutable", p_trace_by_host=True)
    assert [row["id"] for row in answer["memories"]] == [found]
    assert ledger_db.rows(COUNTS) == [(0,)]


def test_a_count_that_cannot_be_kept_does_not_cost_the_answer(ledger_db: Database) -> None:
    write(ledger_db, "Invoices are immutable")
    ledger_db.owner.execute(
        "alter table agent_decision_ledger add constraint no_more check (recall_count = 0) not valid"
    )
    answer = recall(ledger_db, p_query="immutable", p_trace_by_host=True)
    assert len(answer["memories"]) == 1
    assert ledger_db.rows(COUNTS) == [(0,)]


def test_whoever_may_not_recall_gets_no_rows(ledger_db: Database) -> None:
    write(ledger_db, "Invoices are immutable")
    for role in ("anon", "authenticated"):
        with ledger_db.connect(role) as session, pytest.raises(psycopg.errors.InsufficientPrivilege):
            session.execute("select recall_decisions('acme', p_trace_by_host => true)")
        with ledger_db.connect(role) as session, pytest.raises(psycopg.errors.InsufficientPrivilege):
            session.execute("select ranked_ledger.hand_over('[]')")
