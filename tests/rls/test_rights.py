"""Who may do what with our objects: the service role everything that it needs, the public keys nothing at all."""

from __future__ import annotations

import pytest
from psycopg import errors

from tests.rig import deploy, hosts
from tests.rig.hosts import Port
from tests.rig.rights import effective, intended_for_the_service_role

PORTS = [
    pytest.param(Port(default_privileges="old"), id="old default privileges"),
    pytest.param(Port(default_privileges="none"), id="new default privileges"),
    pytest.param(
        Port(default_privileges="old", vector_schema="public", postgres=16),
        id="old default privileges on PostgreSQL 16",
    ),
]


@pytest.fixture(params=PORTS)
def project(request, databases):
    """An empty project with both areas: every object in it is ours."""
    return databases(hosts.ledger_project, request.param)


@pytest.mark.parametrize("role", ["anon", "authenticated", "public"])
def test_the_public_keys_have_no_right_on_anything_of_ours(project, role):
    assert effective(project, role) == set()


def test_the_service_role_has_exactly_the_rights_that_are_meant(project):
    assert effective(project, "service_role") == intended_for_the_service_role(project)


@pytest.mark.parametrize("port", PORTS)
def test_on_a_host_that_has_its_own_tables_we_add_no_right_for_the_public_keys(port, databases):
    host = databases(hosts.open_brain_host, port)
    host.superuser.execute("create schema if not exists ranked_ledger authorization postgres")
    before = {role: effective(host, role) for role in ("anon", "authenticated", "public")}
    deploy.apply(host, "open_brain", "decision_ledger")

    assert {role: effective(host, role) for role in before} == before


def test_a_second_run_gives_back_no_right(project):
    deploy.apply(project, "open_brain", "decision_ledger")

    assert (
        effective(project, "anon") | effective(project, "authenticated") | effective(project, "public")
        == set()
    )
    assert effective(project, "service_role") == intended_for_the_service_role(project)


@pytest.mark.parametrize("role", ["anon", "authenticated"])
@pytest.mark.parametrize(
    "statement",
    [
        "select from thoughts",
        "select from agent_memories",
        "select from agent_decision_ledger",
        "select from agent_decision_edges",
        "select from agent_recall_policy_stats",
        "select from match_decision_ledger('acme')",
        "select touch_decision_recall('{}')",
        "select upsert_thought('x')",
        "insert into agent_memories (workspace_id, memory_type, summary, content) values ('w', 'decision', 's', 'c')",
        "truncate agent_decision_ledger",
        "create trigger mine before insert on agent_decision_ledger for each row "
        "execute function open_brain_set_updated_at()",
        "select from ranked_ledger.streams",
        "select ranked_ledger.tokens('x')",
    ],
)
def test_acting_as_a_public_key_is_refused(ledger_project, role, statement):
    database = ledger_project(default_privileges="old")

    with pytest.raises(errors.InsufficientPrivilege):
        database.connect(role).execute(statement)


def test_a_function_of_the_host_with_one_of_our_names_keeps_its_rights(open_brain_host):
    host = open_brain_host()
    host.owner.execute(
        "create function get_decision(number int) returns int language sql immutable return number;"
        "grant execute on function get_decision(int) to anon"
    )
    deploy.apply(host, "open_brain", "decision_ledger")
    assert host.value("select get_decision(7)", role="anon") == 7


def test_a_host_that_lets_people_write_memories_keeps_their_writes(open_brain_host):
    host = open_brain_host(default_privileges="old")
    host.owner.execute(
        "create policy people on agent_memories for insert to authenticated with check (created_by = 'user')"
    )
    deploy.apply(host, "open_brain", "decision_ledger")
    insert = """insert into agent_memories (workspace_id, task_id, memory_type, summary, content, created_by)
        values ('acme', 'people', 'decision', 's', 'c', 'user')"""

    host.authenticated.execute(insert)

    assert host.value("select count(*) from agent_decision_ledger where task_id = 'people'") == 1
    with pytest.raises(errors.InsufficientPrivilege):
        host.authenticated.execute("select from agent_decision_ledger")


def test_row_security_holds_even_where_a_right_was_given_by_hand(ledger_project):
    database = ledger_project()
    database.service.execute(
        "insert into agent_memories (workspace_id, memory_type, summary, content) values ('w', 'decision', 's', 'c')"
    )
    database.owner.execute(
        "grant select on agent_memories, agent_decision_ledger, agent_memory_recall_traces, "
        "agent_memory_recall_items, agent_recall_policy_stats to anon"
    )
    database.service.execute(
        "insert into agent_memory_recall_traces (workspace_id, query, schema_version) values ('w', 'q', '1')"
    )

    for relation in ("agent_memories", "agent_decision_ledger", "agent_recall_policy_stats"):
        assert database.rows(f"select * from {relation}", role="service_role") != []
        assert database.rows(f"select * from {relation}", role="anon") == []
