"""The long-term memory stands on the platform alone: it comes before or after the others, and beside a host's own tables."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from psycopg import errors

from tests.conftest import HostMaker
from tests.rig import deploy, hosts
from tests.rig.catalogue import catalogue, differences
from tests.rig.contents import contents
from tests.rig.databases import Database
from tests.rig.parity import USUAL, allowlist

MEMORY = "long_term_memory"
ORG = "00000000-0000-4000-8000-00000000000a"
OTHER_ORG = "00000000-0000-4000-8000-00000000000b"
HOSTS_OWN = """
create table public.organizations (id uuid primary key default gen_random_uuid(), name text not null);
create table public.agent_runs (run_id text primary key, started_at timestamptz not null default now());
"""
REFERS_TO = """select distinct k.confrelid::regclass::text
from pg_constraint k join pg_class ours on ours.oid = k.conrelid join pg_class c on c.oid = k.confrelid
where ours.relnamespace = 'long_term_memory'::regnamespace and c.relname = %s"""


def organization(database: Database, org: str = ORG, table: str = "long_term_memory.organizations") -> None:
    database.owner.execute(f"insert into {table} (id, name) values ('{org}', 'An organization')")


def memory(database: Database, org: str = ORG, run: str | None = None) -> str:
    """One memory, written as a service writes it; its id."""
    return str(
        database.value(
            "insert into long_term_memory.agent_memories (org_id, subject_type, text, source_run_id) "
            "values (%s, 'workspace', 'Invoices go out on Mondays', %s) returning id",
            (org, run),
            role="service_role",
        )
    )


def memories(database: Database) -> list[tuple]:
    return database.rows(
        "select org_id::text, source_run_id from long_term_memory.agent_memories order by 1, 2"
    )


def refers_to(database: Database, name: str) -> list[str]:
    """The tables of this name that ours refer to."""
    return [table for (table,) in database.rows(REFERS_TO, (name,))]


# How it reaches a project ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("default_privileges", ["old", "none"])
def test_a_push_of_it_alone_deploys_and_a_second_one_has_nothing_to_do(
    default_privileges: str, empty_project: HostMaker, tmp_path: Path
) -> None:
    database = empty_project(default_privileges=default_privileges)
    project = deploy.project_folder(tmp_path, deploy.migration(MEMORY))

    first, second = deploy.push(database, project), deploy.push(database, project)

    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    assert "up to date" in second.stdout
    organization(database)
    memory(database)
    assert memories(database) == [(ORG, None)]


def test_every_way_of_installing_it_alone_gives_the_same_definitions_once_and_again(
    empty_project: HostMaker, tmp_path: Path
) -> None:
    pushed, run, pasted, by_source = (empty_project() for _ in range(4))
    deploy.push(pushed, deploy.project_folder(tmp_path, deploy.migration(MEMORY)))
    installed = catalogue(pushed)

    for _ in range(2):
        deploy.apply(run, MEMORY)
        pasted.owner.execute(deploy.migration(MEMORY).read_text(encoding="utf-8"))
        deploy.apply_sources(by_source, MEMORY)
        for database in (run, pasted, by_source):
            assert differences(installed, catalogue(database)) == []


PORTS = [
    hosts.Port(1536, vector_schema, default_privileges, postgres)
    for vector_schema, default_privileges, postgres in itertools.product(
        ("extensions", "public"), ("none", "old"), (18, 16)
    )
]


@pytest.mark.parametrize("port", PORTS, ids=lambda port: f"{port.name}_pg{port.postgres}")
def test_any_project_gets_the_same(port: hosts.Port, databases) -> None:
    lines = differences(
        catalogue(databases(hosts.memory_project, USUAL)), catalogue(databases(hosts.memory_project, port))
    )
    assert [line for line in lines if not any(entry.explains(line[2:], port) for entry in allowlist())] == []


def test_a_second_run_loses_nothing(memory_project: HostMaker) -> None:
    database = memory_project()
    organization(database)
    memory(database)
    held = contents(database)

    deploy.apply(database, MEMORY)

    assert contents(database) == held


def test_a_push_that_fails_half_way_leaves_nothing_behind(empty_project: HostMaker, tmp_path: Path) -> None:
    database = empty_project()
    before = catalogue(database)
    project = deploy.project_folder(tmp_path)
    text = deploy.migration(MEMORY).read_text(encoding="utf-8")
    (project / "supabase" / "migrations" / deploy.migration(MEMORY).name).write_text(
        text + "\nselect 1 / 0;\n"
    )

    assert deploy.push(database, project).returncode != 0
    assert differences(before, catalogue(database)) == []


# Before and after the others ------------------------------------------------------------------------------------------

ORDERS = [
    order
    for order in itertools.permutations(("open_brain", "decision_ledger", MEMORY))
    if order.index("open_brain") < order.index("decision_ledger")
]


@pytest.mark.parametrize("order", ORDERS, ids=" ".join)
def test_in_whatever_order_they_come_they_end_up_the_same(
    order: tuple[str, ...], empty_project: HostMaker, full_project: HostMaker
) -> None:
    database = empty_project()
    for area in order:
        deploy.apply(database, area)
        if area == MEMORY:
            organization(database)
            memory(database)

    assert memories(database) == [(ORG, None)]
    assert differences(catalogue(full_project()), catalogue(database)) == []
    for area in order:
        deploy.apply(database, area)
    assert differences(catalogue(full_project()), catalogue(database)) == []


@pytest.mark.parametrize("memory_first", [True, False], ids=["before the ledger", "after the ledger"])
def test_beside_a_host_of_open_brain_no_decision_and_no_memory_is_lost(
    memory_first: bool, open_brain_host: HostMaker, full_host: HostMaker
) -> None:
    host = open_brain_host()
    decisions = host.rows("select * from agent_memories order by id")
    areas = (MEMORY, "decision_ledger") if memory_first else ("decision_ledger", MEMORY)
    deploy.apply(host, "open_brain", *areas)

    assert host.rows("select * from agent_memories order by id") == decisions
    assert host.value("select count(*) from agent_decision_ledger") == 5
    assert differences(catalogue(full_host()), catalogue(host)) == []


def test_the_published_proposal_is_still_looked_at_where_the_memory_came_first(
    published_proposal_host: HostMaker,
) -> None:
    host = published_proposal_host()
    host.owner.execute("create view standing as select * from match_decision_ledger('acme')")
    deploy.apply(host, MEMORY)

    done = deploy.psql(host, deploy.migration("decision_ledger"))

    assert "RL501" in done.stderr
    assert "these stand on it: standing" in done.stderr


# Beside a host's own tables -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["empty_project", "open_brain_host"])
def test_a_hosts_own_organizations_and_runs_are_referred_to_and_stay_as_they_are(
    kind: str, request: pytest.FixtureRequest
) -> None:
    host = request.getfixturevalue(kind)(default_privileges="old")
    host.owner.execute(HOSTS_OWN)
    before = deploy.dump_of(host, "organizations", "agent_runs")
    deploy.apply(host, MEMORY)

    assert deploy.dump_of(host, "organizations", "agent_runs") == before
    assert refers_to(host, "organizations") == ["organizations"]
    assert refers_to(host, "agent_runs") == ["agent_runs"]
    assert host.value("select to_regclass('long_term_memory.organizations') is null")
    assert host.value("select to_regclass('long_term_memory.agent_runs') is null")


def test_rows_follow_a_hosts_organizations_and_runs(empty_project: HostMaker) -> None:
    host = empty_project()
    host.owner.execute(HOSTS_OWN)
    deploy.apply(host, MEMORY)
    organization(host, ORG, "public.organizations")
    organization(host, OTHER_ORG, "public.organizations")
    host.owner.execute("insert into public.agent_runs (run_id) values ('run-1')")
    memory(host, ORG, "run-1")
    memory(host, OTHER_ORG, "run-1")

    with pytest.raises(errors.ForeignKeyViolation):
        memory(host, "00000000-0000-4000-8000-00000000000c")
    host.owner.execute("delete from public.agent_runs")
    assert memories(host) == [(ORG, None), (OTHER_ORG, None)]
    host.owner.execute(f"delete from public.organizations where id = '{ORG}'")
    assert memories(host) == [(OTHER_ORG, None)]


@pytest.mark.parametrize("how", ["the function", "a push again"])
def test_a_hosts_tables_that_arrive_later_are_taken_up(how: str, memory_project: HostMaker) -> None:
    host = memory_project()
    organization(host)
    host.owner.execute("insert into long_term_memory.agent_runs (run_id) values ('run-1'), ('run-2')")
    memory(host, ORG, "run-1")
    memory(host, ORG, "run-2")
    host.owner.execute(HOSTS_OWN)
    organization(host, ORG, "public.organizations")
    host.owner.execute("insert into public.agent_runs (run_id) values ('run-2')")
    before = deploy.dump_of(host, "organizations", "agent_runs")

    if how == "a push again":
        deploy.apply(host, MEMORY)
    else:
        assert host.value("select long_term_memory.use_host_tables() ->> 'changed'") == "true"

    assert refers_to(host, "organizations") == ["organizations"]
    assert refers_to(host, "agent_runs") == ["agent_runs"]
    assert host.value("select long_term_memory.use_host_tables() ->> 'changed'") == "false"
    assert deploy.dump_of(host, "organizations", "agent_runs") == before
    # a run that the host does not know stays written down, as one that was pruned; a new memory of it is refused
    assert memories(host) == [(ORG, "run-1"), (ORG, "run-2")]
    with pytest.raises(errors.ForeignKeyViolation):
        memory(host, ORG, "run-1")
    host.owner.execute(f"delete from public.organizations where id = '{ORG}'")
    assert memories(host) == []


def test_organizations_that_the_hosts_table_lacks_are_named_and_nothing_is_changed(
    memory_project: HostMaker,
) -> None:
    host = memory_project()
    organization(host)
    memory(host)
    host.owner.execute(HOSTS_OWN)
    before = catalogue(host)

    with pytest.raises(errors.Error) as refused:
        host.owner.execute("select long_term_memory.use_host_tables()")

    assert refused.value.sqlstate == "RL501"
    assert "Insert those organizations first" in str(refused.value)
    assert catalogue(host) == before


def test_organizations_of_another_kind_are_not_taken_up(empty_project: HostMaker) -> None:
    host = empty_project()
    host.owner.execute(
        "create table public.organizations (id bigint primary key); create table public.agent_runs (id uuid primary key)"
    )
    deploy.apply(host, MEMORY)

    assert refers_to(host, "organizations") == ["long_term_memory.organizations"]
    assert refers_to(host, "agent_runs") == ["long_term_memory.agent_runs"]


def test_a_hosts_own_rule_of_membership_stays(memory_project: HostMaker) -> None:
    host = memory_project()
    host.owner.execute(
        "create or replace function long_term_memory.member_role(p_org_id uuid, p_user_id uuid) "
        "returns text language sql stable as $$ select 'owner' $$"
    )
    deploy.apply(host, MEMORY)

    asked = "select long_term_memory.member_role(gen_random_uuid(), gen_random_uuid())"
    assert host.value(asked, role="service_role") == "owner"


def test_the_other_product_s_table_stays_as_it_is(empty_project: HostMaker) -> None:
    host = empty_project(default_privileges="old")
    tables = ("organizations", "agent_runs", "agent_memories")
    host.owner.execute(hosts.OTHER_PRODUCT)
    organization(host, ORG, "public.organizations")
    host.owner.execute(
        "insert into public.agent_memories (org_id, subject_type, text, author, embedding) "
        f"values ('{ORG}', 'workspace', 'Some words', 'model', array[0.5, 0.25])"
    )
    before, held = deploy.dump_of(host, *tables), contents(host, "public")
    for _ in range(2):
        deploy.apply(host, MEMORY)

    assert deploy.dump_of(host, *tables) == before
    assert contents(host, "public") == held
    assert refers_to(host, "organizations") == ["organizations"]
    memory(host)
    assert memories(host) == [(ORG, None)]


# Where it cannot be installed -----------------------------------------------------------------------------------------

REFUSED = {
    "no pgvector": ("drop extension vector", 'Enable "vector" in the dashboard'),
    "pgvector elsewhere": (
        "create schema elsewhere; alter extension vector set schema elsewhere",
        "is in the schema elsewhere",
    ),
    "no auth schema": ("drop schema auth cascade", "has no auth.users(id uuid)"),
    "no right to refer to the users": (
        "revoke references on auth.users from postgres",
        "The role postgres may not refer to auth.users",
    ),
    "organizations without a unique id": (
        "create table public.organizations (id uuid, name text); alter table public.organizations owner to postgres",
        "public.organizations is here, and its id cannot be referred to",
    ),
    "runs that are unique only in part": (
        "create table public.agent_runs (run_id text, pruned boolean); alter table public.agent_runs owner to postgres;"
        "create unique index on public.agent_runs (run_id) where not pruned",
        "public.agent_runs is here, and its run_id cannot be referred to",
    ),
    "organizations of somebody who lets nobody refer to them": (
        "create table public.organizations (id uuid primary key); revoke all on public.organizations from postgres",
        "or postgres lacks the right",
    ),
    "somebody else's schema of this name": (
        "create schema long_term_memory; create table long_term_memory.facts (id int)",
        "The schema long_term_memory is here already, and is not that of Ranked Ledger",
    ),
}


@pytest.mark.parametrize("found", REFUSED)
def test_it_refuses_in_words_and_leaves_nothing(found: str, empty_project: HostMaker) -> None:
    setup, sentence = REFUSED[found]
    database = empty_project()
    database.superuser.execute(setup)
    before = catalogue(database)

    done = deploy.psql(database, deploy.migration(MEMORY))

    assert done.returncode != 0
    assert "RL501" in done.stderr
    assert sentence in done.stderr
    assert "HINT:" in done.stderr
    assert catalogue(database) == before


def test_a_refused_push_shows_what_was_found_and_what_to_do(empty_project: HostMaker, tmp_path: Path) -> None:
    database = empty_project()
    database.superuser.execute("drop extension vector")

    done = deploy.push(database, deploy.project_folder(tmp_path, deploy.migration(MEMORY)))

    assert done.returncode != 0
    shown = done.stderr.split("(SQLSTATE RL501)")[0]
    assert "The extension pgvector is not enabled" in shown
    assert "push again" in shown
