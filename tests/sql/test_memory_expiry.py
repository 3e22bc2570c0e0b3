"""expire_memories: what has expired is really gone, oldest first, in portions, past what somebody holds."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from tests.rig.databases import Connection, Database
from tests.sql.memory_rpc import Memories
from tests.sql.rpc import at_once, call, count

EXPIRED = (
    "update long_term_memory.agent_memories set expires_at = now() - %s * interval '1 minute' where id = %s"
)


def expired(memories: Memories, minutes: int = 1, **columns: Any) -> str:
    """A memory whose time was over so many minutes ago."""
    memory_id = memories.insert(**columns)
    with memories.database.superuser.transaction():
        memories.database.superuser.execute("set local session_replication_role = replica")
        memories.database.superuser.execute(EXPIRED, (minutes, memory_id))
    return memory_id


def sweep(memories: Memories, **arguments: Any) -> dict[str, Any]:
    answer = call(memories.database.service, "expire_memories", **arguments)
    assert isinstance(answer, dict)
    return answer


def swept(count: int, *, more: bool = False, recalls: int = 0) -> dict[str, Any]:
    return {"expired": count, "recalls_deleted": recalls, "more": more}


def left(memories: Memories) -> set[str]:
    rows = memories.database.rows("select id::text from long_term_memory.agent_memories")
    return {memory_id for (memory_id,) in rows}


def recalled(
    memories: Memories, *memory_ids: str, days: float = 0, subject: tuple[str, str] | None = None
) -> str:
    """A recall that returned these memories, so many days ago."""
    recall_id = str(uuid4())
    run = memories.database.service.execute
    run(
        "insert into long_term_memory.recalls (id, org_id, query, at) values (%s, %s, 'a question', now() - %s * interval '1 day')",
        (recall_id, memories.org, days),
    )
    for rank, memory_id in enumerate(memory_ids, 1):
        run(
            "insert into long_term_memory.recall_items values (%s, %s, %s, %s, 0.5, 'none')",
            (recall_id, memories.org, memory_id, rank),
        )
    if subject:
        run(
            "insert into long_term_memory.recall_subjects values (%s, %s, %s, %s)",
            (recall_id, memories.org, *subject),
        )
    return recall_id


def test_what_has_expired_goes_oldest_first_and_the_rest_stays(memories: Memories) -> None:
    late, first, second = (expired(memories, minutes) for minutes in (1, 9, 5))
    kept = {
        memories.insert(),
        memories.insert(expires_at="2999-01-01"),
        memories.insert(expires_at="infinity"),
    }
    assert sweep(memories, limit=1) == swept(1, more=True)
    assert left(memories) == {late, second, *kept}
    assert sweep(memories, limit=2) == swept(2, more=False)
    assert sweep(memories) == swept(0)
    assert left(memories) == kept
    assert first not in left(memories)


def test_it_is_over_all_organizations(memories: Memories) -> None:
    for org in (memories.org, memories.new_org(), memories.new_org()):
        expired(memories, org=org)
    assert sweep(memories) == swept(3)
    assert left(memories) == set()


def test_history_and_usage_go_with_it_and_whose_question_it_was_stays(memories: Memories) -> None:
    candidate = str(uuid4())
    gone, kept = expired(memories, subject_type="candidate", subject_id=candidate), memories.insert()
    for memory_id in (gone, kept):
        memories.database.service.execute(
            "insert into long_term_memory.memory_events (org_id, memory_id, action, text_before) values (%s, %s, 'corrected', 'x')",
            (memories.org, memory_id),
        )
    recalled(memories, gone, kept, subject=("candidate", candidate))

    assert sweep(memories) == swept(1)

    for table in ("memory_events", "recall_items"):
        rows = memories.database.rows(f"select memory_id::text from long_term_memory.{table}")
        assert rows == [(kept,)], table
    assert count(memories.database, "long_term_memory.recall_subjects") == 1
    assert count(memories.database, "long_term_memory.recalls") == 1


def test_a_key_stays_used_without_what_would_tell_a_guess_at_the_words(memories: Memories) -> None:
    service = memories.as_service()
    gone = service.id("Over", idempotency_key="over")
    service.remember("Stays", idempotency_key="stays")
    memories.expire(gone)
    service.refused("RL410", "remember", text="Over", idempotency_key="over")
    assert sweep(memories) == swept(1)
    for text in ("Over", "Something else"):
        said = service.refused("RL410", "remember", text=text, idempotency_key="over")
        assert "new key" in (said.message_hint or "")
    assert service.remember("Stays", idempotency_key="stays")["replayed"] is True
    keys = "select key, memory_id is null, digest = '' from long_term_memory.idempotency_keys order by key"
    assert memories.database.rows(keys) == [("over", True, True), ("stays", False, False)]

    # they are the organization's, and go with it
    memories.database.superuser.execute("delete from long_term_memory.organizations")
    assert memories.database.rows(keys) == []


def test_a_tombstone_stays_whatever_its_expiry_said(memories: Memories) -> None:
    memory_id = memories.insert(expires_at="2999-01-01")
    memories.database.service.execute(
        "delete from long_term_memory.agent_memories where id = %s", (memory_id,)
    )
    memories.expire(memory_id)
    assert sweep(memories) == swept(0)
    assert memories.row(memory_id)["redacted_at"] is not None


def test_usage_goes_only_when_it_is_asked_for_and_in_the_same_portions(memories: Memories) -> None:
    memory_id = memories.insert()
    old, older, recent = (recalled(memories, memory_id, days=days) for days in (40, 50, 3))
    month = "now() - interval '30 days'"
    ((before,),) = memories.database.rows(f"select to_jsonb({month}) #>> '{{}}'")

    assert sweep(memories) == swept(0)
    assert sweep(memories, limit=1, usage_before=before) == swept(0, recalls=1, more=True)
    assert {str(r) for (r,) in memories.database.rows("select id from long_term_memory.recalls")} == {
        old,
        recent,
    }
    assert sweep(memories, limit=1, usage_before=before) == swept(0, recalls=1, more=False)
    assert memories.database.rows("select distinct recall_id::text from long_term_memory.recall_items") == [
        (recent,)
    ]
    assert older
    assert left(memories) == {memory_id}


def test_a_portion_of_both_kinds_is_told_apart(memories: Memories) -> None:
    for _ in range(3):
        expired(memories)
    for _ in range(5):
        recalled(memories, days=40)
    answers: list[dict[str, Any]] = []
    while not answers or answers[-1]["more"]:
        answers.append(sweep(memories, limit=2, usage_before="infinity"))
    assert answers == [
        swept(2, recalls=2, more=True),
        swept(1, recalls=2, more=True),
        swept(0, recalls=1, more=False),
    ]


def test_it_goes_past_a_memory_that_somebody_works_on(memories: Memories) -> None:
    held, free = expired(memories, 9), expired(memories, 5)
    old = recalled(memories, days=40)
    with memories.database.connect("service_role", autocommit=False) as writer:
        writer.execute("select from long_term_memory.agent_memories where id = %s for no key update", (held,))
        writer.execute("select from long_term_memory.recalls where id = %s for update", (old,))
        assert sweep(memories, limit=1, usage_before="infinity") == swept(1, more=True)
        assert left(memories) == {held}
        # what is left is locked: a caller that went on while there is more would go round for ever
        assert sweep(memories, limit=1, usage_before="infinity") == swept(0)
        writer.commit()
    assert sweep(memories, usage_before="infinity") == swept(1, recalls=1)
    assert free not in left(memories)


def test_what_was_given_more_time_while_the_sweep_looked_stays(memories: Memories) -> None:
    memory_id = expired(memories)
    writer = memories.database.connect("service_role", autocommit=False)
    writer.execute("update long_term_memory.agent_memories set expires_at = null where id = %s", (memory_id,))
    assert sweep(memories) == swept(0)
    writer.commit()
    assert sweep(memories) == swept(0)
    assert left(memories) == {memory_id}


def test_a_row_beside_a_memory_that_somebody_holds_is_waited_for_briefly_and_left(memories: Memories) -> None:
    """So that a sweep is never one of two that wait for each other."""
    memory_id = expired(memories)
    recalled(memories, memory_id, days=40)
    with memories.database.connect("service_role", autocommit=False) as holder:
        holder.execute("select from long_term_memory.recall_items for update")
        assert sweep(memories, usage_before="infinity") == swept(0)
        holder.rollback()
    assert sweep(memories, usage_before="infinity") == swept(1, recalls=1)


def test_sweeps_at_once_delete_each_memory_once(memories: Memories) -> None:
    for number in range(60):
        memory_id = expired(memories, number + 1)
        recalled(memories, memory_id, days=number + 1)

    def sweep_portion(connection: Connection) -> Any:
        return call(connection, "expire_memories", limit=7, usage_before="infinity")

    answers = at_once(memories.database, [sweep_portion] * 12)
    assert not [answer for answer in answers if isinstance(answer, BaseException)]
    assert sum(answer["expired"] for answer in answers) == 60
    assert sum(answer["recalls_deleted"] for answer in answers) == 60


def flag(connection: Connection) -> tuple[str, str]:
    ((sweep, wait),) = connection.execute(
        "select coalesce(current_setting('long_term_memory.sweep', true), ''), current_setting('lock_timeout')"
    ).fetchall()
    return sweep, wait


def test_the_leave_to_delete_is_taken_back_in_every_case(memories: Memories) -> None:
    connection = memories.database.connect("service_role")
    connection.execute("set lock_timeout = '7s'")
    expired(memories)
    with connection.transaction():
        call(connection, "expire_memories", usage_before="infinity")
        assert flag(connection) == ("", "7s")
    assert flag(connection) == ("", "7s")

    # a portion that was left
    memory_id = expired(memories)
    recalled(memories, memory_id, days=40)
    with memories.database.connect("service_role", autocommit=False) as holder, connection.transaction():
        holder.execute("select from long_term_memory.recall_items for update")
        assert call(connection, "expire_memories", usage_before="infinity") == swept(0)
        assert flag(connection) == ("", "7s")
        holder.rollback()

    # an error inside the delete, which somebody catches
    memories.database.superuser.execute(
        "create function refuse() returns trigger language plpgsql as $$ begin raise 'no'; end $$;"
        "create trigger refuse after delete on long_term_memory.agent_memories for each row execute function refuse()"
    )
    with connection.transaction():
        with pytest.raises(psycopg.errors.RaiseException), connection.transaction():
            call(connection, "expire_memories")
        assert flag(connection) == ("", "7s")
        connection.execute("delete from long_term_memory.agent_memories where id = %s", (memory_id,))
    assert memories.row(memory_id)["redacted_at"] is not None


def test_a_plain_delete_in_the_sweeps_own_transaction_leaves_a_tombstone(memories: Memories) -> None:
    expired(memories)
    memory_id = memories.insert()
    connection = memories.database.connect("service_role")
    with connection.transaction():
        assert call(connection, "expire_memories") == swept(1)
        connection.execute("delete from long_term_memory.agent_memories where id = %s", (memory_id,))
    assert memories.row(memory_id)["redacted_at"] is not None


@pytest.mark.parametrize("role", ["anon", "authenticated"])
@pytest.mark.parametrize(
    "statement",
    [
        "select public.expire_memories()",
        "select long_term_memory.sweep_expired(1)",
        "select long_term_memory.sweep_recalls(1, 'infinity')",
        "delete from long_term_memory.agent_memories",
        "delete from long_term_memory.recalls",
    ],
)
def test_the_leave_is_of_no_use_to_whoever_may_not_delete(
    shared_memories: Memories, role: str, statement: str
) -> None:
    connection = shared_memories.database.connect(role)
    connection.execute("select set_config('long_term_memory.sweep', 'on', false)")
    if role == "authenticated":
        owner = json.dumps({"role": role, "sub": shared_memories.new_member("owner")})
        connection.execute("select set_config('request.jwt.claims', %s, false)", (owner,))
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute(statement)


def test_the_owner_of_the_database_sweeps_too_as_pg_cron_does(memories: Memories) -> None:
    expired(memories)
    assert memories.database.value("select public.expire_memories()") == swept(1)


@pytest.mark.parametrize(
    ("sqlstate", "arguments"),
    [
        ("22023", {"limit": 0}),
        ("22023", {"limit": -1}),
        ("22023", {"limit": 10_001}),
        ("22023", {"limit": None}),
        ("22007", {"usage_before": "yesterday week"}),
    ],
    ids=str,
)
def test_a_bad_argument_is_refused(
    shared_memories: Memories, sqlstate: str, arguments: dict[str, Any]
) -> None:
    with pytest.raises(psycopg.Error) as raised:
        sweep(shared_memories, **arguments)
    assert raised.value.sqlstate == sqlstate


FILL = """
insert into long_term_memory.agent_memories (org_id, subject_type, text, expires_at, created_date)
select %(org)s, 'workspace', 'Memory ' || n, case n %% 20 when 0 then now() - n * interval '1 minute'
  else case when n %% 2 = 0 then now() + n * interval '1 minute' end end, now() - n * interval '1 minute'
from generate_series(1, 100000) as n;
insert into long_term_memory.recalls (org_id, at) select %(org)s, now() - n * interval '1 minute' from generate_series(1, 100000) as n;
insert into long_term_memory.recall_items
select r.id, r.org_id, m.id, 1, 0.5, 'none' from
  (select id, org_id, row_number() over () as n from long_term_memory.recalls) as r
  join (select id, row_number() over () as n from long_term_memory.agent_memories) as m using (n);
"""


@pytest.fixture(scope="module")
def many(shared_memories: Memories) -> Database:
    """A hundred thousand memories, of which five thousand have expired, and as many recalls."""
    database = shared_memories.database
    org = shared_memories.new_org()
    with database.superuser.transaction():
        database.superuser.execute("set local session_replication_role = replica")
        for statement in FILL.split(";\n"):
            if statement.strip():
                database.superuser.execute(statement, {"org": org} if "%" in statement else None)
    database.superuser.execute(
        "vacuum analyze long_term_memory.agent_memories, long_term_memory.recalls,"
        " long_term_memory.recall_items"
    )
    return database


def read_by_sequence(database: Database, statement: str) -> list[str]:
    """Tables of ours that a statement reads from end to end, by the plans of everything that runs inside it."""
    notices: list[str] = []
    connection = database.connect("supabase_admin")
    connection.add_notice_handler(lambda notice: notices.append(notice.message_primary or ""))
    connection.execute("load 'auto_explain'")
    for setting in ("log_min_duration = 0", "log_nested_statements = on", "log_level = notice"):
        connection.execute(f"set auto_explain.{setting}")
    with connection.transaction(force_rollback=True):
        connection.execute(statement)
    plans = "\n".join(notices)
    assert "agent_memories_expiry_idx" in plans
    return [line.strip() for line in plans.splitlines() if "Seq Scan on " in line]


@pytest.mark.parametrize("limit", [100, 1000, 5000])
def test_a_portion_of_a_hundred_thousand_rows_is_found_by_index(many: Database, limit: int) -> None:
    assert read_by_sequence(many, f"select public.expire_memories({limit}, now() - interval '60 days')") == []


def test_a_memory_without_an_end_and_without_a_beginning(memories: Memories) -> None:
    endless = memories.insert(expires_at="infinity")
    assert memories.row(endless)["expires_at"] is None
    for moment in ("infinity", "-infinity"):
        with pytest.raises(psycopg.errors.InvalidParameterValue):
            memories.insert(created_date=moment)
