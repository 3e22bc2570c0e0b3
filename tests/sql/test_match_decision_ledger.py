"""Ranked recall as a table: its columns, its scope, and what it cannot use."""

from __future__ import annotations

import psycopg
import pytest
from psycopg import IsolationLevel

from tests.rig.databases import Database
from tests.sql import ranking_oracle


def match(db: Database, **arguments: object) -> list[dict]:
    return ranking_oracle.match(db.service, {"p_workspace_id": "acme"} | arguments)


def write(db: Database, content: str, **columns: object) -> str:
    columns = {
        "workspace_id": "acme",
        "memory_type": "decision",
        "summary": content[:50],
        "content": content,
    } | columns
    names = ", ".join(columns)
    values = ", ".join(f"%({name})s" for name in columns)
    return str(db.value(f"insert into agent_memories ({names}) values ({values}) returning id", columns))


def test_the_published_columns_come_first_and_ours_after(ledger_db: Database) -> None:
    cursor = ledger_db.service.execute("select * from match_decision_ledger('acme')")
    assert [column.name for column in cursor.description or ()] == [
        "memory_id", "summary", "content", "rationale", "step_index", "importance", "pinned", "lifecycle_status",
        "relevance", "relevance_source", "recency", "dependency_boost", "ranking_score",
        "project_id", "task_id", "similarity", "text_relevance", "step_distance", "live_dependents", "exact",
        "summary_match",
    ]  # fmt: skip


def test_positional_arguments_of_the_published_function_still_work(ledger_db: Database) -> None:
    write(ledger_db, "Invoices are immutable")
    rows = ledger_db.rows(
        "select * from match_decision_ledger('acme', 'invoices', null, null, null, null, 5, 0.45, 0.25, 0.15, 0.15, 30, 3, false)",
        role="service_role",
    )
    assert len(rows) == 1


@pytest.mark.parametrize("weight", ["p_w_similarity", "p_w_importance", "p_w_recency", "p_w_dependency"])
@pytest.mark.parametrize("value", [-0.1, float("nan"), float("inf")])
def test_a_weight_that_is_no_finite_number_from_0_is_refused_by_name(
    ledger_db: Database, weight: str, value: float | None
) -> None:
    with pytest.raises(psycopg.errors.InvalidParameterValue, match=weight):
        match(ledger_db, **{weight: value})


def test_a_null_weight_is_that_of_the_preset(ledger_db: Database) -> None:
    write(ledger_db, "Invoices are immutable")
    nothing = dict.fromkeys(
        ("p_w_similarity", "p_w_importance", "p_w_recency", "p_w_dependency", "p_w_summary")
    )
    for preset in ("published", "tuned"):
        assert match(ledger_db, p_query="invoices", p_preset=preset, **nothing) == match(
            ledger_db, p_query="invoices", p_preset=preset
        )


def test_an_embedding_of_another_dimension_is_refused_and_both_are_named(ledger_db: Database) -> None:
    with pytest.raises(psycopg.Error, match=r"3 dimensions.*1536") as error:
        match(ledger_db, p_query_embedding="[1,2,3]")
    assert error.value.sqlstate == "RL463"
    assert error.value.diag.message_detail == "3,1536"


def test_a_query_beyond_its_limit_is_refused(ledger_db: Database) -> None:
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="p_query"):
        match(ledger_db, p_query="x" * 262_145)


def test_scope_is_applied_before_the_limit(ledger_db: Database) -> None:
    for n in range(30):
        write(ledger_db, f"Immutable invoices {n}", task_id="noise")
    wanted = write(ledger_db, "Something else", task_id="wanted")
    rows = match(ledger_db, p_query="immutable", p_task_id="wanted", p_match_count=5)
    assert [str(row["memory_id"]) for row in rows] == [wanted]


def test_another_workspace_is_never_seen(ledger_db: Database) -> None:
    write(ledger_db, "Ours", workspace_id="acme")
    write(ledger_db, "Theirs", workspace_id="acme ")
    write(ledger_db, "Theirs", workspace_id="ACME")
    assert [row["content"] for row in match(ledger_db)] == ["Ours"]


def test_a_decision_that_could_not_follow_its_memory_is_shown_in_neither_workspace(
    ledger_db: Database,
) -> None:
    moved = write(ledger_db, "Moved")
    write(ledger_db, "Theirs", workspace_id="other")
    writer = ledger_db.connect("service_role")
    writer.isolation_level = IsolationLevel.SERIALIZABLE
    with writer.transaction():
        writer.execute("update agent_memories set workspace_id = 'other' where id = %s", (moved,))
    assert match(ledger_db) == []
    assert [row["content"] for row in match(ledger_db, p_workspace_id="other")] == ["Theirs"]
    hits = ranking_oracle.recall(ledger_db.service, {"p_workspace_id": "other"})["hits"]
    assert sorted(hit["content"] for hit in hits) == ["Moved", "Theirs"], "a recall makes it good"
    assert match(ledger_db) == []


def test_the_newest_step_counts_retired_rows_and_other_filters_do_not_matter(ledger_db: Database) -> None:
    old = write(ledger_db, "First", task_id="t")
    newest = write(ledger_db, "Second", task_id="t", metadata='{"step_index": 60}')
    ledger_db.owner.execute(
        "update agent_memories set lifecycle_status = 'rejected' where id = %s", (newest,)
    )
    (row,) = match(ledger_db)
    assert str(row["memory_id"]) == old
    assert row["step_distance"] == 60


def test_more_than_a_thousand_rows_are_cut_at_a_thousand(ledger_db: Database) -> None:
    ledger_db.owner.execute(
        "insert into agent_memories (workspace_id, memory_type, summary, content) "
        "select 'acme', 'decision', 's', 'c ' || n from generate_series(1, 1100) n"
    )
    assert len(match(ledger_db, p_match_count=5000)) == 1000
