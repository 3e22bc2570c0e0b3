"""map_workspace: which organization a workspace belongs to, and what follows when that changes."""

from __future__ import annotations

from uuid import uuid4

import psycopg
import pytest

from tests.conftest import HostMaker
from tests.rig.databases import Connection
from tests.sql.both_stores import Stores, somebody
from tests.sql.memory_rpc import Memories
from tests.sql.rpc import HOSTILE, NOBODY, at_once, call, count


@pytest.fixture
def stores(full_project: HostMaker) -> Stores:
    return Stores(full_project())


def mapping(memories: Memories) -> list[tuple[str, str]]:
    return memories.database.rows(
        "select workspace_id, org_id::text from long_term_memory.workspace_orgs order by 1",
        role="service_role",
    )


def test_a_workspace_is_mapped_moved_and_unmapped(memories: Memories) -> None:
    first, second = memories.org, memories.new_org()
    service = memories.as_service()

    steps = [
        (first, {"org_id": first, "changed": True}),
        (first, {"org_id": first, "changed": False}),
        (second, {"org_id": second, "changed": True}),
        (None, {"org_id": None, "changed": True}),
        (None, {"org_id": None, "changed": False}),
    ]
    for org, answer in steps:
        assert (
            service("map_workspace", org_id=org, workspace_id="acme")
            == {
                "workspace_id": "acme",
                "attributions_lost": 0,
            }
            | answer
        )
        assert mapping(memories) == ([("acme", org)] if org else [])


@pytest.mark.parametrize("workspace", HOSTILE)
def test_any_name_is_a_workspace(shared_memories: Memories, workspace: str) -> None:
    service = shared_memories.as_service(shared_memories.new_org())
    assert service("map_workspace", workspace_id=workspace)["workspace_id"] == workspace


@pytest.mark.parametrize("workspace", [None, "", " \n\t", "x" * 1001, "é" * 501])
def test_a_name_that_is_none_is_refused(shared_memories: Memories, workspace: str | None) -> None:
    shared_memories.as_service().refused("22023", "map_workspace", workspace_id=workspace)


def test_an_unknown_organization_is_refused(shared_memories: Memories) -> None:
    diagnostic = shared_memories.as_service(NOBODY).refused("RL404", "map_workspace", workspace_id="acme")
    assert NOBODY in str(diagnostic.message_primary)
    assert diagnostic.message_hint


def test_nobody_but_the_service_may_call_it(shared_memories: Memories) -> None:
    for caller in (shared_memories.as_anon(), shared_memories.as_member("owner")):
        caller.refused("42501", "map_workspace", workspace_id="acme")


def test_attributions_of_another_organization_are_lost_and_counted_and_traces_stay_tied(
    stores: Stores,
) -> None:
    subject, other = somebody(), stores.memories.new_org()
    decisions = sorted(stores.decide(f"decision {number}", subject) for number in range(3))
    request = stores.ledger("recall_decisions", query="decision")["request_id"]

    assert stores.map("acme")["attributions_lost"] == 0
    assert stores.map("acme", other)["attributions_lost"] == 3

    assert stores.attributed() == []
    assert stores.tied(request) == [subject]
    (lost,) = stores.audited("attribution_lost")
    assert lost == {
        "reason": "workspace mapped elsewhere",
        "workspace_id": "acme",
        "count": 3,
        "memory_ids": decisions,
    }
    assert stores.audited("attribution_lost", other) == []
    assert stores.audited("workspace_unmapped") == [{"workspace_id": "acme"}]
    assert stores.audited("workspace_mapped", other) == [{"workspace_id": "acme"}]


def test_an_audit_event_holds_a_hundred_ids_at_most(stores: Stores) -> None:
    decisions = [stores.decide(f"decision {number}") for number in range(101)]
    stores.database.service.execute(
        "insert into long_term_memory.decision_subjects (memory_id, org_id, workspace_id, subject_type, subject_id) "
        "select m, %s, 'acme', 'user', gen_random_uuid() from unnest(%s::uuid[]) m, generate_series(1, 2)",
        (stores.org, decisions),
    )
    answer = call(stores.database.service, "map_workspace", org_id=None, workspace_id="acme")
    (lost,) = stores.audited("attribution_lost")
    assert answer["attributions_lost"] == lost["count"] == 202
    assert len(lost["memory_ids"]) == 100


DIRECT = {
    "update": "update long_term_memory.workspace_orgs set org_id = %(other)s where workspace_id = 'acme'",
    "rename": "update long_term_memory.workspace_orgs set workspace_id = 'renamed' where workspace_id = 'acme'",
    "delete": "delete from long_term_memory.workspace_orgs where workspace_id = 'acme'",
    "upsert": "insert into long_term_memory.workspace_orgs (workspace_id, org_id) values ('acme', %(other)s) "
    "on conflict (workspace_id) do update set org_id = excluded.org_id",
}


@pytest.mark.parametrize("way", DIRECT)
def test_plain_sql_has_the_same_consequences(stores: Stores, way: str) -> None:
    other = stores.memories.new_org()
    kept = Stores.decide(stores, "about them", somebody())
    stores.database.service.execute(DIRECT[way], {"other": other})
    assert stores.attributed(kept) == []
    assert [payload["count"] for payload in stores.audited("attribution_lost")] == [1]


def test_plain_sql_that_changes_nothing_has_no_consequence(stores: Stores) -> None:
    decision = stores.decide("about them", somebody())
    before = count(stores.database, "long_term_memory.audit_events")
    stores.database.service.execute("update long_term_memory.workspace_orgs set mapped_at = now() where true")
    assert len(stores.attributed(decision)) == 1
    assert count(stores.database, "long_term_memory.audit_events") == before


def test_an_organization_that_is_deleted_takes_its_mappings_and_attributions(stores: Stores) -> None:
    decision = stores.decide("about them", somebody())
    stores.ledger("recall_decisions", query="them", subject={"type": "candidate", "id": somebody()})

    stores.database.superuser.execute("delete from long_term_memory.organizations")

    for table in ("workspace_orgs", "decision_subjects", "trace_subjects", "audit_events"):
        assert count(stores.database, f"long_term_memory.{table}") == 0, table
    assert stores.rows("select content from agent_memories where id = %s", decision) == [("about them",)]


def test_mapping_and_attributing_at_once_leave_no_attribution_behind(stores: Stores) -> None:
    other, decision = stores.memories.new_org(), stores.decide("about them")
    stores.map("acme", other)

    def back_and_forth(connection: Connection) -> None:
        for org in (stores.org, other) * 10:
            call(connection, "map_workspace", org_id=org, workspace_id="acme")

    def attribute(connection: Connection) -> set[str | None]:
        said = set()
        for _ in range(40):
            try:
                stores.attribute(decision, str(uuid4()), connection=connection)
                said.add("attributed")
            except psycopg.Error as error:
                said.add(error.sqlstate)
        return said

    answers = at_once(stores.database, [back_and_forth, attribute, attribute])
    assert answers[0] is None, answers
    assert answers[1] | answers[2] <= {"attributed", "RL404"}
    assert stores.attributed() == []
