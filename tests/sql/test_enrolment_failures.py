"""An enrolment that fails: the memory is written, the reason kept once, the doctor counts it, the backfill mends it."""

from __future__ import annotations

import pytest

from tests.rig.databases import Database
from tests.sql.write_path import assert_consistent, change, failures, ledger_row, mend, remember, steps


def break_enrolment_of(database: Database, content: str) -> None:
    """A host's own trigger on the ledger that refuses some rows."""
    database.owner.execute(
        f"""
        create or replace function refuse() returns trigger language plpgsql as $$
        begin
          if exists (select from public.agent_memories m where m.id = new.memory_id and m.content ~ '{content}') then
            raise exception 'refused by the host';
          end if;
          return new;
        end $$;
        create or replace trigger refuse before insert or update of flow_id on agent_decision_ledger
        for each row execute function refuse()"""
    )


def repair(database: Database) -> None:
    database.owner.execute("drop trigger refuse on agent_decision_ledger")


def status(database: Database) -> dict:
    return database.value("select ledger_status()", role="service_role")  # type: ignore[return-value]


def test_a_failure_is_kept_with_its_reason_and_costs_the_others_nothing(ledger_db: Database):
    break_enrolment_of(ledger_db, "bad")
    ledger_db.service.execute(
        "insert into agent_memories (workspace_id, task_id, memory_type, summary, content)"
        " select 'acme', 'billing', 'decision', 's', c from unnest(array['first', 'bad', 'last']) c"
    )
    ((memory, operation, sqlstate, reason),) = failures(ledger_db)
    assert (operation, sqlstate, reason) == ("enrol", "P0001", "refused by the host")
    assert ledger_row(ledger_db, memory) == {}
    assert steps(ledger_db) == [0, 1]
    assert_consistent(ledger_db, but=["failures", "decisions without a row"])


def test_failures_are_counted_once_however_often_the_backfill_fails(ledger_db: Database):
    break_enrolment_of(ledger_db, "bad")
    remember(ledger_db.service, "bad")
    answers = [mend(ledger_db) for _ in range(3)]
    assert [(a["enrolled"], a["failed"], a["more"]) for a in answers] == [(0, 1, False)] * 3
    assert status(ledger_db)["failures"] == 1
    assert status(ledger_db)["missing"] == 1


def test_the_backfill_mends_and_clears_failures(ledger_db: Database):
    break_enrolment_of(ledger_db, "bad")
    memory = remember(ledger_db.service, "bad")
    remember(ledger_db.service, "good")
    repair(ledger_db)

    assert mend(ledger_db)["enrolled"] == 1
    assert ledger_row(ledger_db, memory)["step_index"] == 1
    assert_consistent(ledger_db)


def test_a_failed_change_is_kept_and_mended_too(ledger_db: Database):
    memory = remember(ledger_db.service, "bad")
    break_enrolment_of(ledger_db, "bad")
    change(ledger_db.service, memory, task_id="search", content="bad words")
    assert failures(ledger_db) == [(memory, "follow", "P0001", "refused by the host")]
    assert ledger_row(ledger_db, memory)["task_id"] == "billing"

    mend(ledger_db)
    assert [row[:2] for row in failures(ledger_db)] == [(memory, "follow")]
    repair(ledger_db)
    assert mend(ledger_db)["followed"] == 1
    assert steps(ledger_db, "search") == [0]
    assert_consistent(ledger_db)


def test_the_failure_of_a_memory_that_is_gone_is_cleared(ledger_db: Database):
    break_enrolment_of(ledger_db, "bad")
    memory = remember(ledger_db.service, "bad")
    ledger_db.service.execute("delete from agent_memories where id = %s", (memory,))
    mend(ledger_db)
    assert_consistent(ledger_db)


def test_a_decision_retyped_before_it_was_enrolled_is_set_aside(ledger_db: Database):
    break_enrolment_of(ledger_db, "bad")
    memory = remember(ledger_db.service, "bad")
    repair(ledger_db)
    change(ledger_db.service, memory, memory_type="lesson")
    assert ledger_row(ledger_db, memory)["set_aside_at"] is not None
    mend(ledger_db)
    assert_consistent(ledger_db)


def test_when_not_even_the_failure_can_be_kept_the_memory_is_written(ledger_db: Database):
    ledger_db.superuser.execute("alter table ranked_ledger.enrolment_failures rename to elsewhere")
    break_enrolment_of(ledger_db, "bad")
    warnings: list[str] = []
    writer = ledger_db.connect("service_role")
    writer.add_notice_handler(lambda diagnostic: warnings.append(diagnostic.message_primary))
    remember(writer, "bad")
    assert ledger_db.value("select count(*) from agent_memories") == 1
    assert any("could not be noted" in warning for warning in warnings)

    ledger_db.superuser.execute("alter table ranked_ledger.elsewhere rename to enrolment_failures")
    repair(ledger_db)
    assert mend(ledger_db)["enrolled"] == 1
    assert_consistent(ledger_db)


@pytest.mark.parametrize("table", ["streams", "pending_steps", "workspace_settings"])
def test_a_broken_install_never_loses_the_host_a_write(ledger_db: Database, table):
    memory = remember(ledger_db.service)
    ledger_db.superuser.execute(f"alter table ranked_ledger.{table} rename to elsewhere")
    remember(ledger_db.service)
    change(ledger_db.service, memory, task_id="search", content="other")
    change(ledger_db.service, memory, lifecycle_status="stale")
    ledger_db.service.execute("delete from agent_memories where id = %s", (memory,))

    ledger_db.superuser.execute(f"alter table ranked_ledger.elsewhere rename to {table}")
    mend(ledger_db)
    assert_consistent(ledger_db)


def test_decisions_from_before_the_install_are_enrolled_by_time_then_id(open_brain_host):
    from tests.rig import deploy

    host = open_brain_host()
    host.owner.execute(
        "insert into agent_memories (id, workspace_id, task_id, memory_type, summary, content, created_at, metadata)"
        " select ('00000000-0000-0000-0000-' || lpad(((g * 7) % 100)::text, 12, '0'))::uuid, 'old', 'task', 'decision',"
        " 's', 'c', timestamptz '2026-01-01' + (g %% 10) * interval '1 day',"
        " case when g = 50 then '{\"step_index\": 500}' else '{}' end::jsonb from generate_series(0, 99) g".replace(
            "%%", "%"
        )
    )
    deploy.apply(host, "open_brain", "decision_ledger")
    order = host.rows(
        "select m.id, m.metadata ? 'step_index' from agent_memories m where workspace_id = 'old' order by created_at, id"
    )
    expected, newest = {}, -1
    for memory, is_given in order:
        step = 500 if is_given else newest + 1
        newest = max(newest, step)
        expected[memory] = step
    assert (
        dict(host.rows("select memory_id, step_index from agent_decision_ledger where workspace_id = 'old'"))
        == expected
    )
    assert_consistent(host)


def test_the_backfill_works_in_portions_and_says_when_there_is_more(ledger_db: Database):
    ledger_db.owner.execute("alter table agent_memories disable trigger user")
    for number in range(25):
        remember(ledger_db.owner, f"{number:02d}")
    ledger_db.owner.execute("alter table agent_memories enable trigger user")
    answers = [ledger_db.value("select enroll_missing_decisions(null, 10)") for _ in range(3)]
    assert [(a["enrolled"], a["more"]) for a in answers] == [(10, True), (10, True), (5, False)]
    assert ledger_db.rows(
        "select l.step_index from agent_decision_ledger l join agent_memories m on m.id = l.memory_id order by m.created_at, m.id"
    ) == [(number,) for number in range(25)]
    assert_consistent(ledger_db)


def test_the_backfill_of_one_workspace_leaves_the_others(ledger_db: Database):
    ledger_db.owner.execute("alter table agent_memories disable trigger user")
    remember(ledger_db.owner)
    remember(ledger_db.owner, workspace_id="other")
    ledger_db.owner.execute("alter table agent_memories enable trigger user")
    ledger_db.value("select enroll_missing_decisions('other')")
    assert (steps(ledger_db), steps(ledger_db, workspace="other")) == ([], [0])


def test_a_failure_of_the_moment_that_stays_is_tried_once_by_a_settlement_and_then_left_to_the_backfill(
    ledger_db: Database,
):
    bad, good = remember(ledger_db.service, "bad"), remember(ledger_db.service, "good")
    with ledger_db.owner.transaction():
        ledger_db.owner.execute("set transaction isolation level serializable")
        ledger_db.owner.execute("update agent_memories set flow_id = 'f'")
    break_enrolment_of(ledger_db, "bad")
    for _ in range(2):
        remember(ledger_db.service)
    assert ledger_row(ledger_db, good)["flow_id"] == "f"
    assert ledger_db.rows(
        "select memory_id, failed_with, is_transient from ranked_ledger.enrolment_failures"
    ) == [(bad, "P0001", False)]
    repair(ledger_db)
    mend(ledger_db)
    assert ledger_row(ledger_db, bad)["flow_id"] == "f"
    assert_consistent(ledger_db)
