"""Decisions whose text or lifecycle changes."""

from __future__ import annotations

import uuid

import psycopg
import pytest
from psycopg import IsolationLevel

from tests.rig.databases import Database
from tests.sql.write_path import assert_consistent, change, failures, ledger_row, mend, remember


def found_by(database: Database, word: str) -> list[uuid.UUID]:
    rows = database.rows(
        "select memory_id from match_decision_ledger('acme', %s) where text_relevance > 0", (word,)
    )
    return [memory for (memory,) in rows]


def test_edited_text_is_searched_by_its_new_words_at_once(ledger_db: Database):
    memory = remember(ledger_db.service, "invoices are immutable")
    change(ledger_db.service, memory, content="invoices may be cancelled")
    assert found_by(ledger_db, "cancelling") == [memory]
    assert found_by(ledger_db, "immutable") == []
    assert_consistent(ledger_db)


def test_the_new_words_are_found_before_the_commit_by_the_one_who_wrote_them(ledger_db: Database):
    memory = remember(ledger_db.service)
    with ledger_db.owner.transaction():
        ledger_db.owner.execute("update agent_memories set content = 'cancelled'")
        assert found_by(ledger_db, "cancelled") == [memory]


def test_a_rationale_that_is_edited_is_searched_too(ledger_db: Database):
    memory = remember(ledger_db.service, metadata={"rationale": "auditors"})
    assert found_by(ledger_db, "auditor") == [memory]
    ledger_db.service.execute("update agent_decision_ledger set rationale = 'customers'")
    assert (found_by(ledger_db, "customer"), found_by(ledger_db, "auditor")) == ([memory], [])
    assert_consistent(ledger_db)


def test_what_is_not_searched_changes_nothing_of_ours(ledger_db: Database):
    memory = remember(ledger_db.service)
    before = ledger_row(ledger_db, memory)
    change(ledger_db.service, memory, model="m", runtime_name="r")
    assert ledger_row(ledger_db, memory) == before


def test_a_new_summary_is_read_at_once_and_is_no_part_of_the_text(ledger_db: Database):
    memory = remember(ledger_db.service, "Invoices stay as they are")
    change(ledger_db.service, memory, summary="Immutable invoices")
    words = "select {}(search_lexemes, '{{{}}}')::text from agent_decision_ledger"
    assert ledger_db.value(words.format("ts_filter", "a")) == "'immut':3A 'invoic':4A"
    assert ledger_db.value(words.format("ts_filter", "d")) == "'invoic':1 'stay':2"
    assert_consistent(ledger_db)


def test_a_workspace_with_another_language_is_searched_in_it(ledger_db: Database):
    ledger_db.owner.execute(
        "insert into ranked_ledger.workspace_settings values ('acme', 'pg_catalog.german')"
    )
    memory = remember(ledger_db.service, "Rechnungen bleiben unverändert")
    assert found_by(ledger_db, "Rechnung") == [memory]
    change(ledger_db.service, memory, content="Entscheidungen bleiben")
    assert found_by(ledger_db, "Entscheidung") == [memory]


def test_a_workspace_that_changes_its_language_is_searched_in_the_new_one(ledger_db: Database):
    memory = remember(ledger_db.service, "Rechnungen bleiben unverändert")
    other = remember(ledger_db.service, "Rechnungen", workspace_id="globex")
    before = ledger_row(ledger_db, other)
    settings = "ranked_ledger.workspace_settings"
    ledger_db.owner.execute(f"insert into {settings} values ('acme', 'pg_catalog.german')")
    assert found_by(ledger_db, "Rechnung") == [memory]
    ledger_db.owner.execute(f"update {settings} set text_config = 'pg_catalog.simple'")
    assert (found_by(ledger_db, "Rechnung"), found_by(ledger_db, "Rechnungen")) == ([], [memory])
    ledger_db.owner.execute(f"delete from {settings}")
    assert found_by(ledger_db, "rechnungen") == [memory]
    assert ledger_row(ledger_db, other) == before
    with pytest.raises(psycopg.errors.UndefinedObject):
        ledger_db.owner.execute(f"insert into {settings} values ('acme', 'klingon')")


def test_an_edit_to_a_megabyte_of_distinct_words_is_followed(ledger_db: Database):
    memory = remember(ledger_db.service)
    change(ledger_db.service, memory, content=" ".join(f"w{number:06d}" for number in range(130_000)))
    assert found_by(ledger_db, "w000003") == [memory]
    assert_consistent(ledger_db)


def test_10_000_edits_in_one_statement_end_within_the_timeout_of_the_api(ledger_db: Database):
    ledger_db.service.execute(
        "insert into agent_memories (workspace_id, task_id, memory_type, summary, content)"
        " select 'acme', 'billing', 'decision', 's', 'number ' || g from generate_series(1, 10000) g"
    )
    writer = ledger_db.connect("service_role")
    writer.execute("set statement_timeout = '8s'")
    # the trigger's plans are those of the session's first update
    writer.execute("update agent_memories set summary = 't' where content = 'number 7'")
    writer.execute("update agent_memories set lifecycle_status = 'stale'")
    writer.execute("update agent_memories set content = content || ' cancelled'")
    assert (
        ledger_db.value("select count(*) from agent_decision_ledger where search_lexemes @@ 'cancel'")
        == 10_000
    )


def test_an_edit_under_repeatable_read_of_a_row_that_was_recalled_meanwhile_is_mended(ledger_db: Database):
    memory = remember(ledger_db.service)
    writer = ledger_db.connect("service_role", autocommit=False)
    writer.isolation_level = IsolationLevel.REPEATABLE_READ
    writer.execute("select 1 from agent_memories")
    ledger_db.service.execute("select touch_decision_recall(array[%s::uuid])", (memory,))
    change(writer, memory, content="cancelled")
    writer.commit()
    assert [(row[0], row[2]) for row in failures(ledger_db)] == [(memory, "40001")]

    remember(ledger_db.service)  # the next settlement of the stream
    assert found_by(ledger_db, "cancelled") == [memory]
    assert_consistent(ledger_db)


def test_each_change_of_the_lifecycle_is_a_transition_with_the_step_of_the_stream(ledger_db: Database):
    memory = remember(ledger_db.service)
    for lifecycle in ("stale", "stale", "active"):
        change(ledger_db.service, memory, lifecycle_status=lifecycle)
        remember(ledger_db.service)
    assert ledger_db.rows(
        "select lifecycle_before, lifecycle_status, stream_step from ranked_ledger.lifecycle_transitions order by id"
    ) == [("active", "stale", 0), ("stale", "active", 2)]


def test_a_lifecycle_changed_with_the_text_and_the_task_in_one_update(ledger_db: Database):
    memory = remember(ledger_db.service)
    change(ledger_db.service, memory, lifecycle_status="rejected", content="cancelled", task_id="search")
    row = ledger_row(ledger_db, memory)
    assert (row["task_id"], row["step_index"]) == ("search", 0)
    assert ledger_db.value("select count(*) from ranked_ledger.lifecycle_transitions") == 1
    assert_consistent(ledger_db)


def test_an_update_of_rows_that_are_no_decisions_costs_no_row_of_ours(ledger_db: Database):
    memory = remember(ledger_db.service, memory_type="lesson")
    change(ledger_db.service, memory, content="other", task_id="search", lifecycle_status="stale")
    for table in (
        "agent_decision_ledger",
        "ranked_ledger.pending_steps",
        "ranked_ledger.lifecycle_transitions",
    ):
        assert ledger_db.value(f"select count(*) from {table}") == 0


def test_an_edit_back_and_forth_ends_with_the_words_that_are_there(ledger_db: Database):
    memory = remember(ledger_db.service, "immutable")
    writer = ledger_db.connect("service_role", autocommit=False)
    change(writer, memory, content="cancelled")
    writer.execute("savepoint s")
    change(writer, memory, content="neither")
    writer.execute("rollback to savepoint s")
    writer.commit()
    assert found_by(ledger_db, "cancelled") == [memory]
    mend(ledger_db)
    assert_consistent(ledger_db)
