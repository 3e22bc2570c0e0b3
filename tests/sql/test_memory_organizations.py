"""set_organization, set_member, and what goes with an organization that is deleted."""

from __future__ import annotations

from functools import partial
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql

from tests.conftest import HostMaker
from tests.rig import deploy
from tests.rig.databases import Database
from tests.sql.memory_rpc import Memories
from tests.sql.rpc import HOSTILE, NOBODY, at_once, call

HOST_TABLES = """
create table public.organizations (id uuid primary key, name text not null, plan text not null default 'free');
create table public.agent_runs (run_id text primary key);
insert into public.organizations values ('00000000-0000-4000-8000-000000000001', 'Acme', 'paid');
grant select on public.organizations to service_role;
"""
HOSTS_OWN = "00000000-0000-4000-8000-000000000001"


def audit(database: Database, org: str) -> list[tuple[str, Any]]:
    return database.rows(
        "select kind, payload from long_term_memory.audit_events where org_id = %s order by id", (org,)
    )


def organization(memories: Memories, **arguments: Any) -> dict[str, Any]:
    answer = call(memories.database.service, "set_organization", **arguments)
    assert isinstance(answer, dict)
    return answer


# ----------------------------------------------------------------------------------------- set_organization


def test_an_organization_gets_an_id_where_none_is_given(shared_memories: Memories) -> None:
    made = organization(shared_memories, name="Acme")
    assert made == {"org_id": made["org_id"], "name": "Acme", "allow_asserted": False, "created": True}
    assert audit(shared_memories.database, made["org_id"]) == [("organization_created", {})]
    assert organization(shared_memories)["org_id"] != made["org_id"]


def test_a_repeat_with_an_id_changes_nothing_and_leaves_no_trace(shared_memories: Memories) -> None:
    org = str(uuid4())
    given = {"org_id": org, "name": "Acme", "allow_asserted": True}
    assert organization(shared_memories, **given) == {**given, "created": True}
    assert organization(shared_memories, **given) == {**given, "created": False}
    assert organization(shared_memories, org_id=org) == {**given, "created": False}
    assert audit(shared_memories.database, org) == [
        ("organization_created", {}),
        ("allow_asserted_set", {"allow_asserted": True}),
    ]


def test_what_is_not_given_stays(shared_memories: Memories) -> None:
    org = organization(shared_memories, name="Acme", allow_asserted=True)["org_id"]
    assert organization(shared_memories, org_id=org, name="Acme GmbH")["allow_asserted"] is True
    changed = organization(shared_memories, org_id=org, allow_asserted=False)
    assert changed == {"org_id": org, "name": "Acme GmbH", "allow_asserted": False, "created": False}
    # ids, numbers and settings: no name
    assert audit(shared_memories.database, org) == [
        ("organization_created", {}),
        ("allow_asserted_set", {"allow_asserted": True}),
        ("organization_renamed", {}),
        ("allow_asserted_set", {"allow_asserted": False}),
    ]


def test_to_allow_nothing_where_nothing_was_allowed_is_no_change(shared_memories: Memories) -> None:
    org = organization(shared_memories, allow_asserted=False)["org_id"]
    assert audit(shared_memories.database, org) == [("organization_created", {})]


@pytest.mark.parametrize("name", HOSTILE)
def test_any_name_is_kept_as_it_is(shared_memories: Memories, name: str) -> None:
    assert organization(shared_memories, name=name)["name"] == name


@pytest.mark.parametrize("name", ["", " \n\t", "x" * 1001])
def test_a_name_that_is_none_is_refused(shared_memories: Memories, name: str) -> None:
    with pytest.raises(psycopg.Error) as raised:
        organization(shared_memories, name=name)
    assert raised.value.sqlstate == "22023"


def test_many_at_once_create_it_once(shared_memories: Memories) -> None:
    org = str(uuid4())
    answers = at_once(
        shared_memories.database,
        [lambda c: call(c, "set_organization", org_id=org, name="Acme", allow_asserted=True)] * 8,
    )
    assert sorted(answer["created"] for answer in answers) == [False] * 7 + [True]
    assert len(audit(shared_memories.database, org)) == 2


@pytest.fixture
def host(empty_project: HostMaker) -> Memories:
    """A project with organizations and runs of its own, where the store came later."""
    database = empty_project()
    database.owner.execute(HOST_TABLES)
    deploy.apply(database, "long_term_memory")
    memories = Memories.__new__(Memories)
    memories.database, memories.org, memories._people = database, HOSTS_OWN, {}
    return memories


def test_the_hosts_own_organizations_are_only_allowed_or_not(host: Memories) -> None:
    before = host.database.rows("select o::text from public.organizations o")
    assert organization(host, org_id=HOSTS_OWN, allow_asserted=True) == {
        "org_id": HOSTS_OWN,
        "name": None,
        "allow_asserted": True,
        "created": False,
    }
    for arguments in (
        {"allow_asserted": True},
        {"org_id": HOSTS_OWN, "name": "Other"},
        {"org_id": NOBODY, "name": "New"},
    ):
        with pytest.raises(psycopg.Error) as raised:
            organization(host, **arguments)
        assert raised.value.sqlstate == "22023"
        assert "organizations" in (raised.value.diag.message_primary or "")
    with pytest.raises(psycopg.Error) as raised:
        organization(host, org_id=NOBODY, allow_asserted=True)
    assert raised.value.sqlstate == "RL404"
    assert host.database.rows("select o::text from public.organizations o") == before


def test_a_host_that_gave_the_service_role_no_right_hears_which_one_is_missing(host: Memories) -> None:
    host.database.owner.execute("revoke all on public.organizations from service_role")
    user = host.new_user()
    for function, arguments in (
        ("set_organization", {"allow_asserted": True}),
        ("set_member", {"user_id": user, "role": "owner"}),
        ("map_workspace", {"workspace_id": "acme"}),
        ("attribute_decision", {"memory_id": NOBODY, "subject_type": "user", "subject_id": user}),
    ):
        diagnostic = host.as_service().refused("42501", function, **arguments)
        assert "grant select on" in (diagnostic.message_hint or "")
    assert call(host.database.owner, "set_organization", org_id=HOSTS_OWN, allow_asserted=True)


# ----------------------------------------------------------------------------------------------- set_member


def test_a_role_is_given_changed_and_taken(shared_memories: Memories) -> None:
    org, user = shared_memories.new_org(), shared_memories.new_user()
    shared_memories.new_member("owner", org)
    service = shared_memories.as_service(org)
    answer = {"org_id": org, "user_id": user, "hint": None}
    for role, changed in [("member", True), ("member", False), ("owner", True), (None, True), (None, False)]:
        assert service("set_member", user_id=user, role=role) == {**answer, "role": role, "changed": changed}
        assert service.connection.execute(
            "select long_term_memory.member_role(%s, %s)", (org, user)
        ).fetchone() == (role,)
    assert [payload for _, payload in audit(shared_memories.database, org)] == [
        {"user_id": user, "role": "member", "role_before": None},
        {"user_id": user, "role": "owner", "role_before": "member"},
        {"user_id": user, "role": None, "role_before": "owner"},
    ]


@pytest.mark.parametrize("role", ["admin", None])
def test_the_last_owner_may_go_and_the_answer_says_so(shared_memories: Memories, role: str | None) -> None:
    org = shared_memories.new_org()
    owner, other = shared_memories.new_member("owner", org), shared_memories.new_member("owner", org)
    service = shared_memories.as_service(org)
    assert service("set_member", user_id=owner, role=role)["hint"] is None
    assert "last owner" in service("set_member", user_id=other, role=role)["hint"]
    # of those that follow none is the last owner
    assert service("set_member", user_id=other, role="member")["hint"] is None


def test_members_of_another_organization_are_other_members(shared_memories: Memories) -> None:
    one, two = shared_memories.new_org(), shared_memories.new_org()
    user = shared_memories.new_member("owner", one)
    shared_memories.as_service(two)("set_member", user_id=user, role="member")
    shared_memories.as_service(two)("set_member", user_id=user, role=None)
    assert shared_memories.database.value(
        "select long_term_memory.member_role(%s, %s)", (one, user), role="service_role"
    ) == ("owner")


@pytest.mark.parametrize(
    ("sqlstate", "arguments"),
    [
        ("RL404", {"user_id": NOBODY, "role": "member"}),
        ("RL404", {"org_id": NOBODY, "role": "member"}),
        ("22023", {"org_id": None, "role": "member"}),
        ("22023", {"user_id": None, "role": "member"}),
        ("22023", {"role": "Owner"}),
        ("22023", {"role": ""}),
        ("22023", {"role": "superadmin"}),
    ],
    ids=str,
)
def test_a_bad_argument_is_refused(
    shared_memories: Memories, sqlstate: str, arguments: dict[str, Any]
) -> None:
    user = shared_memories.new_user()
    diagnostic = shared_memories.as_service().refused(sqlstate, "set_member", **{"user_id": user} | arguments)
    assert diagnostic.message_hint
    assert (
        shared_memories.database.rows("select from long_term_memory.members where user_id = %s", (user,))
        == []
    )


@pytest.mark.parametrize(
    "body",
    [
        "language sql stable as $$ select 'owner' $$",
        "language sql stable return (select m.role from public.staff m where m.org = $1 and m.person = $2)",
    ],
    ids=["text", "parsed"],
)
def test_members_that_the_host_keeps_are_the_hosts_to_change(memories: Memories, body: str) -> None:
    memories.database.owner.execute(
        "create table public.staff (org uuid, person uuid, role text);"
        f"create or replace function long_term_memory.member_role(p_org_id uuid, p_user_id uuid) returns text {body}"
    )
    user = memories.new_user()
    diagnostic = memories.as_service().refused("RL409", "set_member", user_id=user, role="member")
    assert "member_role" in (diagnostic.message_primary or "")
    deploy.apply(memories.database, "long_term_memory")  # a push leaves the host's function as it is
    memories.as_service().refused("RL409", "set_member", user_id=user, role="member")


def test_changes_at_once_are_told_one_after_the_other(shared_memories: Memories) -> None:
    """Eight owners leave at once: exactly one of them hears that they were the last."""
    org = shared_memories.new_org()
    owners = [shared_memories.new_member("owner", org) for _ in range(8)]
    answers = at_once(
        shared_memories.database,
        [partial(call, function="set_member", org_id=org, user_id=o, role=None) for o in owners],
    )
    assert len([answer for answer in answers if answer["hint"]]) == 1


@pytest.mark.parametrize("role", ["anon", "authenticated"])
@pytest.mark.parametrize("function", ["set_member", "set_organization"])
def test_people_and_the_public_keys_may_not(shared_memories: Memories, role: str, function: str) -> None:
    owner = shared_memories.new_member("owner")
    caller = shared_memories.as_user(owner) if role == "authenticated" else shared_memories.as_anon()
    arguments = {"user_id": owner, "role": "owner"} if function == "set_member" else {}
    caller.refused("42501", function, **arguments)


# ------------------------------------------------------------------------------- an organization is deleted

OF_AN_ORG = """
select c.oid::regclass::text from pg_class c
join pg_attribute a on a.attrelid = c.oid and a.attname = 'org_id' and not a.attisdropped
where c.relnamespace = 'long_term_memory'::regnamespace and c.relkind in ('r', 'p') order by 1
"""


def fill(memories: Memories, org: str) -> None:
    """A row of this organization in every table that has organizations, memories in every state."""
    memories.new_member("owner", org)
    memories.allow_asserted(org)
    candidate, workspace = str(uuid4()), str(uuid4())
    live = memories.insert("Live", org, subject_type="candidate", subject_id=candidate)
    tombstone, over = memories.insert("Gone", org), memories.insert("Over", org)
    memories.database.service.execute(
        "delete from long_term_memory.agent_memories where id = %s", (tombstone,)
    )
    memories.expire(over)
    ids = {"org": org, "memory": live, "candidate": candidate, "workspace": workspace, "other": str(uuid4())}
    for statement in (
        "workspace_orgs values (%(workspace)s, %(org)s)",
        "memory_events (org_id, memory_id, action) values (%(org)s, %(memory)s, 'remembered')",
        "recalls (id, org_id) values (%(other)s, %(org)s)",
        "recall_items values (%(other)s, %(org)s, %(memory)s, 1, 0.5, 'none')",
        "recall_subjects values (%(other)s, %(org)s, 'candidate', %(candidate)s)",
        "erasures (id, org_id, subject_type, subject_id, grade) values (%(other)s, %(org)s, 'candidate', %(other)s, 'service')",
        "erased_digests values (%(other)s, %(org)s, 'candidate', %(other)s, '')",
        "audit_events (org_id, kind) values (%(org)s, 'organization_created')",
        "idempotency_keys (org_id, key, digest, memory_id) values (%(org)s, %(other)s, '', %(memory)s)",
    ):
        memories.database.service.execute(f"insert into long_term_memory.{statement}", ids)
    # what ties the ledger to a subject refers to the ledger where it is; its own tests delete those
    with memories.database.superuser.transaction():
        memories.database.superuser.execute("set local session_replication_role = replica")
        for statement in (
            "decision_subjects (memory_id, org_id, workspace_id, subject_type, subject_id)"
            " values (%(other)s, %(org)s, %(workspace)s, 'candidate', %(candidate)s)",
            "trace_subjects values (%(other)s, %(org)s, 'candidate', %(candidate)s)",
        ):
            memories.database.superuser.execute(f"insert into long_term_memory.{statement}", ids)


def rows_of(memories: Memories, org: str) -> dict[str, list[str]]:
    held = {}
    for (table,) in memories.database.rows(OF_AN_ORG):
        query = sql.SQL("select t::text from {} t where org_id = %s order by 1").format(
            sql.Identifier(*table.split("."))
        )
        held[table] = [row for (row,) in memories.database.superuser.execute(query, (org,))]
    return held


def test_with_an_organization_everything_of_it_goes_and_nothing_of_another(memories: Memories) -> None:
    other = memories.new_org()
    fill(memories, memories.org)
    fill(memories, other)
    kept = rows_of(memories, other)
    assert len(kept) >= 12
    assert all(kept.values()), "a table that this test leaves empty shows nothing"
    assert all(rows_of(memories, memories.org).values())

    memories.database.service.execute(
        "delete from long_term_memory.organizations where id = %s", (memories.org,)
    )

    assert not any(rows_of(memories, memories.org).values())
    assert rows_of(memories, other) == kept


def test_two_organizations_in_one_statement_go_too(memories: Memories) -> None:
    other = memories.new_org()
    fill(memories, memories.org)
    fill(memories, other)
    memories.database.service.execute(
        "delete from long_term_memory.organizations where id = any(%s::uuid[])", ([memories.org, other],)
    )
    assert not any(rows_of(memories, memories.org).values())
    assert not any(rows_of(memories, other).values())


def test_a_host_that_deletes_its_organization_takes_its_memories_along(host: Memories) -> None:
    fill(host, HOSTS_OWN)
    host.database.owner.execute("delete from public.organizations")
    assert not any(rows_of(host, HOSTS_OWN).values())
