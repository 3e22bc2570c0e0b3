"""Every kind of statement that writes memories, under whatever settings and triggers the host has."""

from __future__ import annotations

import time

import pytest
from psycopg import errors

from tests.rig.databases import Database
from tests.sql.write_path import assert_consistent, ledger_row, mend, remember, steps

INSERT = "insert into agent_memories (workspace_id, task_id, memory_type, summary, content{}) "


def steps_by_content(database: Database) -> list[str]:
    """The texts of the task billing by step."""
    rows = database.rows(
        "select m.content from agent_decision_ledger l join agent_memories m on m.id = l.memory_id"
        " where l.task_id = 'billing' order by l.step_index"
    )
    return [content for (content,) in rows]


def test_rows_of_one_insert_get_their_steps_in_the_order_of_insertion(ledger_db: Database):
    ledger_db.service.execute(
        INSERT.format("") + "select 'acme', 'billing', 'decision', 's', lpad(g::text, 4, '0')"
        " from generate_series(0, 1499) g"
    )
    assert steps_by_content(ledger_db) == [f"{number:04d}" for number in range(1500)]
    assert_consistent(ledger_db)


def test_a_copy_of_100_000_loses_nothing(ledger_db: Database, record_property):
    started = time.monotonic()
    with ledger_db.service.cursor().copy(
        "copy agent_memories (workspace_id, task_id, memory_type, summary, content) from stdin"
    ) as copy:
        for number in range(100_000):
            copy.write_row(
                ("acme", "billing", "decision", "s", f"decision {number:06d} on invoices and caching")
            )
    record_property("copy_seconds", round(time.monotonic() - started, 1))

    assert ledger_db.rows(
        "select count(*), count(distinct step_index), min(step_index), max(step_index) from agent_decision_ledger"
    ) == [(100_000, 100_000, 0, 99_999)]
    assert (
        ledger_db.value(
            "select count(*) from agent_decision_ledger l join agent_memories m on m.id = l.memory_id"
            " where l.step_index <> substr(m.content, 10, 6)::int"
        )
        == 0
    )
    assert_consistent(ledger_db)


def test_one_statement_may_write_to_a_stream_a_row(ledger_db: Database):
    ledger_db.service.execute(
        INSERT.format("")
        + "select 'acme', 'task ' || g, 'decision', 's', 'c' from generate_series(1, 3000) g"
    )
    assert ledger_db.value("select count(*) from ranked_ledger.streams where newest_step = 0") == 3000
    assert_consistent(ledger_db)


def test_memories_of_other_types_in_the_same_statement_are_left_alone(ledger_db: Database):
    ledger_db.service.execute(
        INSERT.format("") + "select 'acme', 'billing', kind, 's', kind"
        " from unnest(array['lesson', 'decision', 'output', 'decision']) kind"
    )
    assert steps_by_content(ledger_db) == ["decision", "decision"]
    assert_consistent(ledger_db)


def test_insert_returning_gives_the_host_its_row(ledger_db: Database):
    row = ledger_db.service.execute(
        INSERT.format("")
        + "values ('acme', 'billing', 'decision', 's', 'c') returning id, content, lifecycle_status"
    ).fetchone()
    assert row[1:] == ("c", "active")
    assert ledger_row(ledger_db, row[0])["step_index"] == 0


def test_an_upsert_enrols_what_it_inserts_and_follows_what_it_updates(ledger_db: Database):
    upsert = (
        INSERT.format(", idempotency_key")
        + "values ('acme', 'billing', 'decision', 's', 'first words', 'a'), ('acme', %s, 'decision', 's', %s, %s)"
        " on conflict (idempotency_key) where idempotency_key is not null"
        " do update set content = excluded.content || ' rewritten', task_id = 'search' returning id"
    )
    (first,), _ = ledger_db.service.execute(upsert, ("billing", "second words", "b")).fetchall()
    assert steps(ledger_db) == [0, 1]
    ledger_db.service.execute(upsert, ("billing", "third words", "c"))

    assert steps(ledger_db) == [1, 2]
    assert ledger_row(ledger_db, first)["task_id"] == "search"
    assert "rewritten" in ledger_row(ledger_db, first)["search_lexemes"]
    assert_consistent(ledger_db)


def test_a_merge_enrols_and_follows(ledger_db: Database):
    known = remember(ledger_db.service, "known")
    ledger_db.service.execute(
        "merge into agent_memories m using (values (%s::uuid, 'merged'), (gen_random_uuid(), 'new')) as v (id, content)"
        " on m.id = v.id when matched then update set content = v.content, task_id = 'search' when not matched then"
        " insert (workspace_id, task_id, memory_type, summary, content)"
        " values ('acme', 'search', 'decision', 's', v.content)",
        (known,),
    )
    assert steps(ledger_db, "search") == [0, 1]
    assert_consistent(ledger_db)


def test_a_before_trigger_of_the_host_decides_the_type_and_the_text(ledger_db: Database):
    ledger_db.owner.execute(
        """
        create function retype() returns trigger language plpgsql as $$
        begin
          if new.content = 'none' then return null; end if;
          new.memory_type := case new.memory_type when 'decision' then 'lesson' else 'decision' end;
          new.content := new.content || ' stamped';
          return new;
        end $$;
        create trigger a_retype before insert on agent_memories for each row execute function retype()"""
    )
    ledger_db.service.execute(
        INSERT.format("")
        + "values ('acme', 'billing', 'decision', 's', 'none'), ('acme', 'billing', 'decision', 's', 'x'),"
        " ('acme', 'billing', 'lesson', 's', 'becomes a decision')"
    )
    assert steps_by_content(ledger_db) == ["becomes a decision stamped"]
    assert_consistent(ledger_db)


@pytest.mark.parametrize("name", ["a_first", "zz_last"])
@pytest.mark.parametrize(
    "action",
    [
        "update agent_memories set memory_type = 'lesson' where id = new.id",
        "update agent_memories set task_id = 'search', content = 'changed' where id = new.id and task_id <> 'search'",
        "delete from agent_memories where id = new.id",
    ],
    ids=["retypes", "moves", "deletes"],
)
def test_an_after_trigger_of_the_host_may_change_the_row_once_more(ledger_db: Database, action, name):
    ledger_db.owner.execute(
        f"""
        create function again() returns trigger language plpgsql as $$ begin {action}; return null; end $$;
        create trigger {name} after insert on agent_memories for each row execute function again();
        create trigger {name}_u after update of summary on agent_memories for each row execute function again()"""
    )
    memory = remember(ledger_db.service)
    remember(ledger_db.service)
    ledger_db.service.execute(
        "update agent_memories set summary = 'new', content = 'other' where id = %s", (memory,)
    )

    assert ledger_db.value("select count(*) from ranked_ledger.pending_steps") == 0
    mend(ledger_db)  # a row that is gone before its enrolment is a failure until then
    assert_consistent(ledger_db)


def test_a_writer_with_names_of_its_own_meets_none_of_them_in_our_functions(ledger_db: Database):
    host = ledger_db.owner
    host.execute(
        """
        create schema shadow;
        create function shadow.stream_id(text, text, text) returns uuid language sql as $$ select 1/0 || '' $$;
        create function shadow.enroll_memories(agent_memories[]) returns int language sql as 'select 1/0';
        create function public.newest_settled_step(uuid) returns int language sql as 'select 1/0';
        create function public.ranked_ledger(text) returns text language sql as $$ select 'x' || 1/0 $$""".replace(
            "select 1/0 || ''", "select (1/0)::text::uuid"
        )
    )
    host.execute("create temp table streams (stream_id uuid, newest_step int)")
    host.execute("create temp table pending_steps (id int)")
    host.execute("create temp table agent_decision_ledger (step_index int, memory_id uuid)")
    host.execute("create temp table agent_memories (like public.agent_memories)")
    host.execute("set search_path = pg_temp, shadow, public, ranked_ledger, pg_catalog")
    host.execute(
        "insert into public.agent_memories (workspace_id, task_id, memory_type, summary, content)"
        " values ('acme', 'billing', 'decision', 's', 'c')"
    )
    host.execute("update public.agent_memories set task_id = 'search'")
    host.execute("discard all")
    assert steps(ledger_db, "search") == [0]
    assert_consistent(ledger_db)


@pytest.mark.parametrize(
    "setting",
    [
        "plpgsql.extra_errors = 'all'",
        "row_security = off",
        "default_text_search_config = 'pg_catalog.simple'",
        "statement_timeout = '60s'",
        "lock_timeout = '1ms'",
        "enable_indexscan = off",
        "work_mem = '64kB'",
        "ranked_ledger.unsettled = '1'",
        "timezone = 'Asia/Kathmandu'",
        "standard_conforming_strings = on",
    ],
)
def test_settings_of_the_writer_change_nothing(ledger_db: Database, setting):
    writer = ledger_db.connect("service_role")
    writer.execute(f"set {setting}")
    first, second = remember(writer), remember(writer)
    writer.execute(
        "update agent_memories set task_id = 'search', content = 'found by running' where id = %s", (first,)
    )
    assert (steps(ledger_db), steps(ledger_db, "search")) == ([1], [0])
    assert "run" in ledger_row(ledger_db, first)["search_lexemes"]
    assert ledger_row(ledger_db, second)["step_index"] == 1
    assert_consistent(ledger_db)


def test_rows_written_while_the_triggers_were_off_are_mended_by_the_backfill(ledger_db: Database):
    moved, retyped, gone = (remember(ledger_db.service) for _ in range(3))
    ledger_db.superuser.execute("set session_replication_role = replica")
    for work in (
        INSERT.format("") + "values ('acme', 'billing', 'decision', 's', 'unseen')",
        f"update agent_memories set task_id = 'search', content = 'unseen words' where id = '{moved}'",
        f"update agent_memories set memory_type = 'lesson' where id = '{retyped}'",
        f"delete from agent_memories where id = '{gone}'",
    ):
        ledger_db.superuser.execute(work)
    ledger_db.superuser.execute("reset session_replication_role")

    answer = mend(ledger_db)
    assert (answer["enrolled"], answer["failed"], answer["more"]) == (1, 0, False)
    assert steps(ledger_db, "search") == [0]
    assert_consistent(ledger_db)


def test_triggers_that_the_owner_disabled_are_made_up_for_by_the_backfill(ledger_db: Database):
    ledger_db.owner.execute("alter table agent_memories disable trigger user")
    remember(ledger_db.service)
    ledger_db.owner.execute("alter table agent_memories enable trigger user")
    assert steps(ledger_db) == []
    assert mend(ledger_db)["enrolled"] == 1
    assert_consistent(ledger_db)


def test_a_truncated_memory_table_leaves_streams_that_begin_again(ledger_db: Database):
    ground, dependent = remember(ledger_db.service), remember(ledger_db.service)
    ledger_db.owner.execute(
        "insert into agent_decision_edges (from_memory_id, to_memory_id, relation) values (%s, %s, 'depends_on')",
        (dependent, ground),
    )
    ledger_db.owner.execute("truncate agent_memories cascade")
    assert ledger_db.value("select max(newest_step) from ranked_ledger.streams") == -1
    remember(ledger_db.service)
    assert steps(ledger_db) == [0]
    assert_consistent(ledger_db)


def test_a_truncate_in_the_transaction_of_the_writes_is_not_refused(ledger_db: Database):
    with ledger_db.owner.transaction():
        remember(ledger_db.owner)
        ledger_db.owner.execute("truncate agent_memories cascade")
        remember(ledger_db.owner)
    assert steps(ledger_db) == [0]
    assert_consistent(ledger_db)


def test_a_host_that_changes_its_table_after_writing_in_one_transaction_is_not_refused(ledger_db: Database):
    with ledger_db.owner.transaction():
        remember(ledger_db.owner)
        ledger_db.owner.execute("alter table agent_memories add column host_note text default 'n'")
        remember(ledger_db.owner)
    ledger_db.owner.execute("alter table agent_memories drop column host_note")
    remember(ledger_db.owner)
    assert steps(ledger_db) == [0, 1, 2]
    assert_consistent(ledger_db)


def test_an_error_of_the_host_in_the_same_statement_undoes_our_rows_too(ledger_db: Database):
    with pytest.raises(errors.CheckViolation):
        ledger_db.service.execute(
            INSERT.format("")
            + "values ('acme', 'billing', 'decision', 's', 'c'), ('acme', 'billing', 'nonsense', 's', 'c')"
        )
    assert steps(ledger_db) == []
    assert_consistent(ledger_db)
