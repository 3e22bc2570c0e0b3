"""Ranked recall as a table: equal to the reference, clear about what it cannot use."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from psycopg.rows import dict_row

from tests.rig.databases import Database
from tests.sql import random_ledgers
from tests.sql.random_ledgers import Call

REFERENCE = (Path(__file__).parent / "reference.sql").read_text(encoding="utf-8")
DIMENSION = 384


def match(db: Database, **arguments: object) -> list[dict]:
    names = ", ".join(
        f"{name} => %({name})s" + ("::vector" if name == "p_query_embedding" else "") for name in arguments
    )
    cursor = db.service.cursor(row_factory=dict_row)
    return cursor.execute(f"select * from match_decision_ledger({names})", arguments).fetchall()


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


@pytest.fixture
def host(ledger_host: Callable[..., Database]) -> Database:
    return ledger_host(dimension=DIMENSION)


@pytest.mark.parametrize("seed", range(8))
def test_equals_the_reference_on_random_ledgers_and_calls(host: Database, seed: int) -> None:
    rand = random.Random(seed)
    connection = host.connect("service_role")
    workspace = random_ledgers.write_ledger(
        connection, rand, dimension=DIMENSION, rows=rand.choice((1, 20, 60))
    )
    for _ in range(60):
        assert_equals_reference(host, random_ledgers.random_call(rand, workspace, DIMENSION))


def assert_equals_reference(host: Database, call: Call) -> None:
    expected = host.service.cursor(row_factory=dict_row).execute(REFERENCE, call.reference).fetchall()
    found = match(host, **call.arguments)
    assert [row["memory_id"] for row in found] == [row["memory_id"] for row in expected], call
    for row, reference in zip(found, expected, strict=True):
        assert row["relevance_source"] == reference["relevance_source"]
        assert row["relevance"] == pytest.approx(reference["relevance"], abs=1e-9)
        assert row["recency"] == pytest.approx(reference["recency"], abs=1e-9)
        assert row["dependency_boost"] == pytest.approx(reference["dependency"], abs=1e-9)
        assert row["ranking_score"] == pytest.approx(reference["score"], abs=1e-9)


def test_the_published_columns_come_first_and_in_their_order(ledger_db: Database) -> None:
    cursor = ledger_db.service.execute("select * from match_decision_ledger('acme')")
    assert [column.name for column in cursor.description or ()][:13] == [
        "memory_id", "summary", "content", "rationale", "step_index", "importance", "pinned", "lifecycle_status",
        "relevance", "relevance_source", "recency", "dependency_boost", "ranking_score",
    ]  # fmt: skip


def test_positional_arguments_of_the_published_function_still_work(ledger_db: Database) -> None:
    write(ledger_db, "Invoices are immutable")
    rows = ledger_db.rows(
        "select * from match_decision_ledger('acme', 'invoices', null, null, null, null, 5, 0.45, 0.25, 0.15, 0.15, 30, 3, false)",
        role="service_role",
    )
    assert len(rows) == 1


@pytest.mark.parametrize("weight", ["p_w_similarity", "p_w_importance", "p_w_recency", "p_w_dependency"])
@pytest.mark.parametrize("value", [-0.1, float("nan"), float("inf"), None])
def test_a_weight_that_is_no_finite_number_from_0_is_refused_by_name(
    ledger_db: Database, weight: str, value: float | None
) -> None:
    with pytest.raises(psycopg.errors.InvalidParameterValue, match=weight):
        match(ledger_db, p_workspace_id="acme", **{weight: value})


def test_an_embedding_of_another_dimension_is_refused_and_both_are_named(ledger_db: Database) -> None:
    with pytest.raises(psycopg.Error, match=r"3 dimensions.*1536") as error:
        match(ledger_db, p_workspace_id="acme", p_query_embedding="[1,2,3]")
    assert error.value.sqlstate == "RL463"
    assert error.value.diag.message_detail == "3,1536"


@pytest.mark.parametrize(
    "query",
    ["", "the and of", "'", "\\", "& | ! : * ( )", "a\\u0000b", "🦔🔥", "שלום עולם", "decision " * 12_000,
     " ".join(f"word{n}" for n in range(2000)), "Entscheidung über Rechnungen"],
)  # fmt: skip
def test_no_text_breaks_a_recall(ledger_db: Database, query: str) -> None:
    write(ledger_db, "A decision about invoices 🦔 שלום word77 Rechnungen")
    (row,) = match(ledger_db, p_workspace_id="acme", p_query=query)
    assert row["relevance_source"] == "fts"
    assert 0 <= row["relevance"] < 1


def test_a_query_beyond_its_limit_is_refused(ledger_db: Database) -> None:
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="p_query"):
        match(ledger_db, p_workspace_id="acme", p_query="x" * 262_145)


def test_a_vector_that_arrives_changes_or_goes_is_seen_by_the_next_recall(host: Database) -> None:
    ((thought,),) = host.rows("insert into thoughts (content) values ('t') returning id")
    write(host, "Invoices are immutable", thought_id=thought, workspace_id="vectors")
    axis = ["[" + ",".join("1" if n == i else "0" for n in range(DIMENSION)) + "]" for i in range(2)]
    call = {"p_workspace_id": "vectors", "p_query": "immutable", "p_query_embedding": axis[0]}
    seen = []
    for embedding in (None, axis[0], axis[1], None):
        host.owner.execute("update thoughts set embedding = %s::vector where id = %s", (embedding, thought))
        (row,) = match(host, **call)
        seen.append((row["relevance_source"], round(row["relevance"], 6)))
    assert seen == [("fts", 0.5), ("cosine", 1.0), ("cosine", 0.0), ("fts", 0.5)]


def test_scope_is_applied_before_the_limit(ledger_db: Database) -> None:
    for n in range(30):
        write(ledger_db, f"Immutable invoices {n}", task_id="noise")
    wanted = write(ledger_db, "Something else", task_id="wanted")
    rows = match(ledger_db, p_workspace_id="acme", p_query="immutable", p_task_id="wanted", p_match_count=5)
    assert [str(row["memory_id"]) for row in rows] == [wanted]


def test_another_workspace_is_never_seen(ledger_db: Database) -> None:
    write(ledger_db, "Ours", workspace_id="acme")
    write(ledger_db, "Theirs", workspace_id="acme ")
    write(ledger_db, "Theirs", workspace_id="ACME")
    assert [row["content"] for row in match(ledger_db, p_workspace_id="acme")] == ["Ours"]


def test_the_newest_step_counts_retired_rows_and_other_filters_do_not_matter(ledger_db: Database) -> None:
    old = write(ledger_db, "First", task_id="t")
    newest = write(ledger_db, "Second", task_id="t", metadata='{"step_index": 60}')
    ledger_db.owner.execute(
        "update agent_memories set lifecycle_status = 'rejected' where id = %s", (newest,)
    )
    (row,) = match(ledger_db, p_workspace_id="acme")
    assert str(row["memory_id"]) == old
    assert row["step_distance"] == 60


def test_more_than_a_thousand_rows_are_cut_at_a_thousand(ledger_db: Database) -> None:
    ledger_db.owner.execute(
        "insert into agent_memories (workspace_id, memory_type, summary, content) "
        "select 'acme', 'decision', 's', 'c ' || n from generate_series(1, 1100) n"
    )
    assert len(match(ledger_db, p_workspace_id="acme", p_match_count=5000)) == 1000
