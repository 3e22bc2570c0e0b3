"""Who may do what with our objects: the service role everything that it needs, people the RPCs that are meant for them,
the public keys nothing at all."""

from __future__ import annotations

import pytest
from psycopg import errors

from tests.rig import deploy, hosts
from tests.rig.hosts import Port
from tests.rig.rights import (
    FOR_PEOPLE,
    PLAIN_FOR_PEOPLE,
    effective,
    intended_for_people,
    intended_for_the_service_role,
)

EVERYTHING = ("open_brain", "decision_ledger", "long_term_memory")

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
    """An empty project with every area: every object in it is ours."""
    return databases(hosts.full_project, request.param)


@pytest.mark.parametrize("role", ["anon", "public"])
def test_the_public_keys_have_no_right_on_anything_of_ours(project, role):
    assert effective(project, role) == set()


def test_people_may_call_what_is_meant_for_them_and_nothing_else(project):
    assert effective(project, "authenticated") == intended_for_people(project)


@pytest.mark.parametrize("port", PORTS)
@pytest.mark.parametrize("kind", [hosts.memory_project, hosts.ledger_project])
def test_the_rights_are_the_same_where_only_one_of_them_is_installed(kind, port, databases):
    alone = databases(kind, port)

    assert effective(alone, "anon") | effective(alone, "public") == set()
    assert effective(alone, "authenticated") == intended_for_people(alone)
    assert effective(alone, "service_role") == intended_for_the_service_role(alone)


def test_what_people_may_call_is_what_the_schema_says(full_project):
    database = full_project()

    assert database.value("select long_term_memory.functions_for_people()") == list(FOR_PEOPLE)
    callable_by_people = database.rows(
        """select p.proname from pg_proc p where p.pronamespace = 'public'::regnamespace
        and has_function_privilege('authenticated', p.oid, 'execute') and not exists (
          select from pg_depend d where d.classid = 'pg_proc'::regclass and d.objid = p.oid and d.deptype = 'e')"""
    )
    assert sorted(name for (name,) in callable_by_people) == sorted({*FOR_PEOPLE, *PLAIN_FOR_PEOPLE})


def test_the_service_role_has_exactly_the_rights_that_are_meant(project):
    assert effective(project, "service_role") == intended_for_the_service_role(project)


@pytest.mark.parametrize("port", PORTS)
def test_on_a_host_that_has_its_own_tables_we_add_no_right_for_the_public_keys(port, databases):
    host = databases(hosts.open_brain_host, port)
    before = {role: effective(host, role) for role in ("anon", "authenticated", "public")}
    deploy.apply(host, *EVERYTHING)

    assert effective(host, "anon") == before["anon"]
    assert effective(host, "public") == before["public"]
    assert effective(host, "authenticated") == before["authenticated"] | intended_for_people(host)


def test_a_second_run_gives_back_no_right(project):
    deploy.apply(project, *EVERYTHING)

    assert effective(project, "anon") | effective(project, "public") == set()
    assert effective(project, "authenticated") == intended_for_people(project)
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
        "select from long_term_memory.agent_memories",
        "select from long_term_memory.members",
        "insert into long_term_memory.members select gen_random_uuid(), gen_random_uuid(), 'owner'",
        "delete from long_term_memory.erasures",
        "select long_term_memory.use_host_tables()",
        "select long_term_memory.member_role(gen_random_uuid(), gen_random_uuid())",
        "select set_config('long_term_memory.sweep', 'on', true); delete from long_term_memory.agent_memories",
        "select set_member(gen_random_uuid(), gen_random_uuid(), 'owner')",
    ],
)
def test_acting_as_a_public_key_is_refused(full_project, role, statement):
    database = full_project(default_privileges="old")

    with pytest.raises(errors.InsufficientPrivilege):
        database.connect(role).execute(statement)


def test_a_function_of_the_host_with_one_of_our_names_keeps_its_rights(open_brain_host):
    host = open_brain_host()
    host.owner.execute(
        "create function get_decision(number int) returns int language sql immutable return number;"
        "create function remember(number int) returns int language sql immutable return number;"
        "grant execute on function get_decision(int), remember(int) to anon"
    )
    deploy.apply(host, *EVERYTHING)
    assert host.value("select get_decision(7) + remember(7)", role="anon") == 14


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
