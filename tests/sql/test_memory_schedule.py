"""The sweep is scheduled where the project has pg_cron. No server that tests run on has it: what can be shown here is that
without it nothing happens, and that the call is well formed."""

from __future__ import annotations

import pytest

from tests.rig import deploy
from tests.rig.databases import Connection
from tests.sql.memory_rpc import Memories

SCHEDULE = (deploy.SUPABASE / "schemas" / "long_term_memory" / "910_schedule.sql").read_text(encoding="utf-8")


def run(connection: Connection, text: str) -> list[tuple[str | None, str | None, str | None]]:
    """Runs the file or what became of it. The answer is what was said: severity, message, hint."""
    said: list[tuple[str | None, str | None, str | None]] = []
    connection.add_notice_handler(
        lambda notice: said.append(
            (notice.severity_nonlocalized, notice.message_primary, notice.message_hint)
        )
    )
    connection.execute(text)
    return said


def job() -> tuple[str, str, str]:
    """What the file hands to cron.schedule."""
    call = SCHEDULE.split("perform cron.schedule(")[1]
    name, when, command = call[: call.index(");")].split("', '")
    return name.strip("'"), when, command.strip("'")


def test_without_pg_cron_nothing_is_scheduled_and_nothing_is_said(shared_memories: Memories) -> None:
    database = shared_memories.database
    if database.rows("select from pg_available_extensions where name = 'pg_cron'"):
        pytest.skip("this server has pg_cron")
    assert run(database.owner, SCHEDULE) == []
    assert database.value("select to_regnamespace('cron') is null")


def test_a_schema_named_cron_that_is_not_the_extension_is_not_called(memories: Memories) -> None:
    memories.database.owner.execute(
        "create schema cron; create function cron.schedule(text, text, text) returns bigint language plpgsql"
        " as $$ begin raise 'called'; end $$"
    )
    assert run(memories.database.owner, SCHEDULE) == []


def test_what_is_scheduled_is_a_sweep(memories: Memories) -> None:
    name, when, command = job()
    assert name == "ranked-ledger-expire-memories"
    assert len(when.split()) == 5
    assert command == "select public.expire_memories(10000)"  # as much as one call takes
    memory_id = memories.insert()
    memories.expire(memory_id)
    memories.database.owner.execute(command)  # pg_cron runs a job as the role that scheduled it
    assert memories.database.rows("select from long_term_memory.agent_memories") == []


STAND_IN = """
create schema cron;
create table cron.called (name text, schedule text, command text);
create function cron.schedule(name text, schedule text, command text) returns bigint language plpgsql as $$ begin %s end $$;
"""


def call_alone() -> str:
    """The block without its question for the extension: a stand-in of pg_cron's function shows the syntax of the call and
    the way of a failure, and nothing of pg_cron."""
    question = "exists (select from pg_extension e where e.extname = 'pg_cron')"
    assert SCHEDULE.count(question) == 1
    return SCHEDULE.replace(question, "true")


def test_the_call_is_well_formed_for_a_stand_in_of_its_function(memories: Memories) -> None:
    owner = memories.database.owner
    owner.execute(STAND_IN % "insert into cron.called values ($1, $2, $3); return 1;")
    owner.execute(call_alone())
    assert memories.database.rows("select * from cron.called") == [job()]


def test_a_schedule_that_is_refused_is_a_warning_that_says_what_to_run(memories: Memories) -> None:
    owner = memories.database.owner
    owner.execute(
        STAND_IN % "raise insufficient_privilege using message = 'permission denied for schema cron';"
    )
    ((severity, message, hint),) = run(owner, call_alone())
    assert severity == "WARNING"
    assert "permission denied for schema cron" in (message or "")
    assert (message or "").endswith(hint or "-")
    statement = (hint or "").split("run: ")[1]
    owner.execute(
        "create or replace function cron.schedule(name text, schedule text, command text) returns bigint"
        " language sql as $$ insert into cron.called values ($1, $2, $3); select 1::bigint $$"
    )
    owner.execute(statement)
    assert memories.database.rows("select * from cron.called") == [job()]
