"""ledger_status and ledger_schema_version: numbers, and checks that see what is wrong and name the cure."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conftest import HostMaker
from tests.rig.databases import Database
from tests.sql.rpc import HOSTILE, Ledger, call, failed_checks, vector

CHECKS = {
    "triggers_are_on",
    "functions_are_unambiguous",
    "embedding_dimension",
    "row_level_security",
    "public_keys_have_no_rights",
    "service_role_has_its_rights",
    "every_decision_is_enrolled",
    "no_enrolment_failures",
    "no_provisional_steps",
    "ledger_agrees_with_memories",
    "streams_know_their_newest_step",
    "one_embedding_model_a_workspace",
}


def status(database: Database, workspace: str | None = None) -> dict[str, Any]:
    answer = call(
        database.service, "ledger_status", **({} if workspace is None else {"workspace_id": workspace})
    )
    assert isinstance(answer, dict)
    return answer


def test_the_version_is_one(ledger: Ledger) -> None:
    assert call(ledger.connection, "ledger_schema_version") == 1


def test_an_empty_ledger_is_well(ledger: Ledger) -> None:
    found = status(ledger.database)
    numbers = "decisions enrolled missing set_aside provisional failures edges streams traces".split()
    assert [found[name] for name in numbers] == [0] * len(numbers)
    assert (found["workspaces"], found["recent_failures"]) == ([], [])
    assert (found["schema_version"], found["embedding_dimension"], found["pgvector_schema"]) == (
        1,
        1536,
        "extensions",
    )
    assert found["postgres_version"]
    assert found["pgvector_version"]
    assert {check["name"] for check in found["checks"]} == CHECKS
    assert failed_checks(found) == []
    assert all(check["detail"].endswith(".") and " ." not in check["detail"] for check in found["checks"])


def test_counts_all_workspaces_or_one(ledger: Ledger) -> None:
    a = ledger.id("a", task_id="t", step_index=7)
    b = ledger.id("b", depends_on=[a])
    aside = ledger.id("c")
    ledger.database.owner.execute("update agent_memories set memory_type = 'lesson' where id = %s", (aside,))
    ledger.trace(a, b)
    Ledger(ledger.database, workspace="globex").id("theirs")
    everything, ours = status(ledger.database), status(ledger.database, "acme")
    assert [everything[name] for name in ("decisions", "enrolled", "set_aside", "traces", "streams")] == [
        3,
        3,
        1,
        1,
        3,
    ]
    assert [ours[name] for name in ("decisions", "enrolled", "set_aside", "edges", "streams")] == [
        2,
        2,
        1,
        1,
        2,
    ]
    assert [(w["workspace_id"], w["decisions"], w["newest_step"]) for w in everything["workspaces"]] == [
        ("acme", 2, 7),
        ("globex", 1, 0),
    ]
    assert [w["workspace_id"] for w in ours["workspaces"]] == ["acme"]
    assert "globex" not in str(ours)
    assert failed_checks(everything) == []


@pytest.mark.parametrize("workspace", HOSTILE, ids=range(len(HOSTILE)))
def test_a_workspace_that_has_nothing_is_empty_and_well(shared_ledger: Ledger, workspace: str) -> None:
    found = status(shared_ledger.database, workspace)
    assert (found["decisions"], failed_checks(found)) == (0, [])


def test_a_blank_workspace_is_refused(shared_ledger: Ledger) -> None:
    shared_ledger.refused("22023", "ledger_status", workspace_id=" ")


BREAKS = {
    "triggers_are_on": "alter table agent_memories disable trigger trg_agent_decision_ledger_enroll",
    "functions_are_unambiguous": "create function public.pin_decision(p_x int) returns int language sql as 'select 1'",
    "embedding_dimension": "alter table thoughts alter column embedding type vector",
    "row_level_security": "alter table ranked_ledger.streams disable row level security",
    "public_keys_have_no_rights": "grant select on agent_decision_ledger to anon",
    "service_role_has_its_rights": "revoke delete on agent_memories from service_role",
    "no_enrolment_failures": "insert into ranked_ledger.enrolment_failures (workspace_id, operation, reason, failed_with) "
    "values ('acme', 'enrol', 'it broke', 'XX000')",
    "every_decision_is_enrolled": "delete from agent_decision_ledger where true",
    "ledger_agrees_with_memories": "update agent_decision_ledger set task_id = 'elsewhere' where true",
    "streams_know_their_newest_step": "update ranked_ledger.streams set newest_step = 99 where true",
    "one_embedding_model_a_workspace": "update agent_decision_ledger set embedding_model = content from agent_memories m "
    "where m.id = memory_id",
}


@pytest.mark.parametrize("name", BREAKS)
def test_a_check_sees_what_it_is_for(ledger: Ledger, name: str) -> None:
    ledger.id("x")
    ledger.id("y")
    ledger.database.owner.execute(BREAKS[name])
    found = status(ledger.database)
    assert name in failed_checks(found)
    (detail,) = (check["detail"] for check in found["checks"] if check["name"] == name)
    assert detail.endswith(".")


@pytest.mark.parametrize(
    "name",
    ["every_decision_is_enrolled", "ledger_agrees_with_memories", "streams_know_their_newest_step"],
)
def test_the_backfill_cures_what_it_is_named_for(ledger: Ledger, name: str) -> None:
    ledger.id("x", task_id="t")
    ledger.id("y", task_id="t")
    ledger.database.owner.execute(BREAKS[name])
    assert name in failed_checks(status(ledger.database))
    call(ledger.connection, "enroll_missing_decisions")
    assert failed_checks(status(ledger.database)) == []


def test_a_step_that_an_old_snapshot_left_is_seen_and_settled(ledger: Ledger) -> None:
    with ledger.database.connect("service_role", autocommit=False) as late:
        late.execute("set transaction isolation level repeatable read")
        late.execute("select 1 from agent_memories")
        ledger.id("first")
        call(late, "record_decision", workspace_id="acme", content="second")
        late.commit()
    found = status(ledger.database)
    assert (found["provisional"], failed_checks(found)) == (1, ["no_provisional_steps"])
    call(ledger.connection, "enroll_missing_decisions")
    assert failed_checks(status(ledger.database)) == []


def test_shows_the_newest_failures(ledger: Ledger) -> None:
    ledger.database.owner.execute(
        "insert into ranked_ledger.enrolment_failures (workspace_id, operation, reason, failed_with) "
        "select 'acme', 'enrol', 'number ' || n, '54000' from generate_series(1, 25) n"
    )
    found = status(ledger.database)
    assert found["failures"] == 25
    assert [f["reason"] for f in found["recent_failures"]] == [f"number {n}" for n in range(25, 5, -1)]
    assert {f["sqlstate"] for f in found["recent_failures"]} == {"54000"}


@pytest.mark.parametrize("default_privileges", ["none", "old"])
@pytest.mark.parametrize("dimension", [384, 3072])
def test_is_well_beside_a_host_install(
    ledger_host: HostMaker, dimension: int, default_privileges: str
) -> None:
    database = ledger_host(dimension=dimension, default_privileges=default_privileges, vector_schema="public")
    ledger = Ledger(database)
    ledger.id("x", embedding=vector(dimension), embedding_model="m")
    found = status(database)
    assert (found["embedding_dimension"], found["pgvector_schema"]) == (dimension, "public")
    assert (found["missing"], failed_checks(found)) == (0, [])


def test_what_moved_while_it_was_set_aside_is_no_disagreement_and_follows_when_restored(
    ledger: Ledger,
) -> None:
    decision = ledger.id("x", task_id="a")
    owner = ledger.database.owner
    owner.execute("update agent_memories set memory_type = 'lesson' where id = %s", (decision,))
    owner.execute("update agent_memories set task_id = 'b' where id = %s", (decision,))
    assert failed_checks(status(ledger.database)) == []
    owner.execute("update agent_memories set memory_type = 'decision' where id = %s", (decision,))
    assert failed_checks(status(ledger.database)) == []
    assert ledger("get_decision", memory_id=decision)["task_id"] == "b"
