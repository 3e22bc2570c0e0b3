"""Our migrations reach a project in three ways, once or many times, with one result and no loss."""

from __future__ import annotations

import re
import shutil

import pytest

from tests.rig import deploy
from tests.rig.catalogue import catalogue, differences
from tests.rig.contents import contents
from tests.rig.hosts import HOST_TABLES

OUR_TRIGGERS = (
    "+ CREATE TRIGGER trg_agent_decision_ledger_",
    "+ CREATE CONSTRAINT TRIGGER trg_agent_decision_ledger_",
    "+ CREATE TRIGGER trg_long_term_memory_",
)
VERSIONS = "select version from supabase_migrations.schema_migrations order by version"
AREAS = [area.name for area in deploy.build.AREAS]


@pytest.fixture
def project(tmp_path):
    """A Supabase project folder that holds every migration of ours."""
    return deploy.project_folder(tmp_path, *deploy.migrations())


def kept(held: dict[str, list[str]]) -> dict[str, list[str]]:
    """What the host's own tables hold."""
    return {table: rows for table, rows in held.items() if table.removeprefix("public.") in HOST_TABLES}


@pytest.mark.parametrize("default_privileges", ["old", "none"])
@pytest.mark.parametrize("kind", ["empty_project", "open_brain_host"])
def test_a_push_deploys_and_a_second_one_has_nothing_to_do(kind, default_privileges, project, request):
    database = request.getfixturevalue(kind)(default_privileges=default_privileges)
    held = kept(contents(database))

    first = deploy.push(database, project)
    assert first.returncode == 0, first.stderr
    installed = catalogue(database)
    second = deploy.push(database, project)

    assert second.returncode == 0, second.stderr
    assert "up to date" in second.stdout
    assert catalogue(database) == installed
    assert database.value("select count(*) from public.agent_memories where memory_type = 'decision'") == (
        database.value("select count(*) from public.agent_decision_ledger")
    )
    if kind == "open_brain_host":
        assert kept(contents(database)) == held


def test_a_project_with_migrations_of_its_own_gets_ours_after_them(open_brain_host, tmp_path):
    host = open_brain_host()
    project = deploy.project_folder(tmp_path)
    own = project / "supabase" / "migrations" / "20260101000000_notes.sql"
    own.write_text("create table public.notes (id bigint primary key);")
    assert deploy.push(host, project).returncode == 0
    for file in deploy.migrations():
        shutil.copy(file, own.parent)

    done = deploy.push(host, project)

    assert done.returncode == 0, done.stderr
    assert own.name not in done.stderr
    assert [version for (version,) in host.rows(VERSIONS)] == [
        "20260101000000",
        *(area.version for area in deploy.build.AREAS),
    ]


def test_a_push_from_this_repository_works_as_it_stands(empty_project, tmp_path):
    database = empty_project()
    done = deploy.push(database, deploy.REPOSITORY, home=tmp_path)

    assert done.returncode == 0, done.stderr
    assert database.value("select to_regclass('public.agent_decision_ledger') is not null")


@pytest.mark.parametrize("kind", ["empty_project", "open_brain_host", "published_proposal_host"])
def test_each_migration_run_again_by_psql_changes_nothing_and_loses_nothing(kind, request):
    database = request.getfixturevalue(kind)()
    deploy.apply(database, *AREAS)
    installed, held = catalogue(database), contents(database)

    for area in (*AREAS, *AREAS):
        done = deploy.psql(database, deploy.migration(area))
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        assert differences(installed, catalogue(database)) == []
    assert contents(database) == held


def test_a_function_of_an_earlier_signature_goes(open_brain_host):
    host = open_brain_host()
    deploy.apply(host, *AREAS)
    installed = catalogue(host)
    host.owner.execute(
        "create function public.supersede_decision(p_workspace_id text, p_old uuid, p_new uuid, p_reason text default null,"
        " p_actor text default null) returns jsonb language sql return '{}'::jsonb;"
        "create function ranked_ledger.note_lifecycle_change(p_before public.agent_memories, p_lifecycle text,"
        " p_freed uuid[], p_reason text, p_actor text) returns void language sql begin atomic end"
    )
    assert differences(installed, catalogue(host)) != []
    deploy.apply(host, *AREAS)
    assert differences(installed, catalogue(host)) == []


@pytest.mark.parametrize("area", AREAS)
def test_pasted_as_one_query_twice_it_works_and_leaves_the_session_as_it_was(area, open_brain_host):
    host = open_brain_host()
    with host.connect() as session:
        before = _session(session)
        for _ in range(2):
            session.execute(deploy.migration(area).read_text(encoding="utf-8"))
            assert _session(session) == before


def _session(session) -> list[tuple]:
    """Every setting that was made in the session, search_path included."""
    return session.execute(
        "select name, setting from pg_settings where source = 'session' or name in ('search_path', 'role')"
    ).fetchall()


def test_every_way_of_installing_gives_the_same_definitions(open_brain_host, project):
    pushed, run, pasted = open_brain_host(), open_brain_host(), open_brain_host()
    deploy.push(pushed, project)
    deploy.apply(run, *AREAS)
    for area in AREAS:
        pasted.owner.execute(deploy.migration(area).read_text(encoding="utf-8"))

    assert differences(catalogue(pushed), catalogue(run)) == []
    assert differences(catalogue(pushed), catalogue(pasted)) == []


def test_a_migration_that_fails_half_way_leaves_nothing_behind(open_brain_host, tmp_path):
    host = open_brain_host()
    before, held = catalogue(host), contents(host)
    project = deploy.project_folder(tmp_path, deploy.migration("open_brain"))
    text = deploy.migration("decision_ledger").read_text(encoding="utf-8")
    broken = project / "supabase" / "migrations" / deploy.migration("decision_ledger").name
    broken.write_text(text + "\nselect 1 / 0;\n")

    done = deploy.push(host, project)

    assert done.returncode != 0
    assert differences(before, catalogue(host)) == []
    assert contents(host) == held


def test_a_host_without_a_schema_for_extensions_is_served_too(open_brain_host):
    host = open_brain_host(vector_schema="public")
    host.superuser.execute("drop schema extensions cascade")
    deploy.apply(host, *AREAS)

    assert host.value("select count(*) from agent_decision_ledger") == 5


def test_a_dump_of_a_project_restores_to_the_same_definitions_and_rows(full_host, empty_project, tmp_path):
    host, restored = full_host(), empty_project()
    host.service.execute(
        "insert into agent_memories (workspace_id, memory_type, summary, content, metadata) "
        """values ('w', 'decision', 's', 'some words', '{"rationale": "some reason"}')"""
    )
    host.owner.execute(
        "insert into long_term_memory.organizations (name) values ('An organization');"
        "insert into long_term_memory.agent_runs (run_id) values ('run-1');"
        "insert into long_term_memory.agent_memories "
        "(org_id, subject_type, text, source_run_id, embedding, embedding_model, redacted_at) "
        "select id, 'workspace', 'some words', 'run-1', vector '[1,0.5]', 'a-model', redacted "
        "from long_term_memory.organizations, (values (now()), (null)) as t (redacted)"
    )
    deploy.restore(deploy.dump(host, tmp_path / "project.dump"), restored)

    assert contents(restored) == contents(host)
    # a condition that went through a dump once is written with fewer parentheses
    before, after = (
        [re.sub("[()]", "", line) for line in catalogue(database)] for database in (host, restored)
    )
    assert differences(before, after) == []


def test_decisions_that_were_there_are_enrolled_in_the_order_of_their_writing(open_brain_host):
    host = open_brain_host()
    deploy.apply(host, *AREAS)

    assert host.rows(
        """select right(memory_id::text, 1), step_index, importance::text from public.agent_decision_ledger
        where workspace_id = 'acme' and task_id = 'invoicing' order by step_index"""
    ) == [("1", 0, "0.90"), ("2", 7, "0.70"), ("3", 8, "0.40")]


def test_a_dump_of_the_hosts_tables_differs_by_our_triggers_only(open_brain_host):
    host = open_brain_host(default_privileges="old")
    before = deploy.dump_of(host, *HOST_TABLES)
    deploy.apply(host, *AREAS)
    changed = differences(before, deploy.dump_of(host, *HOST_TABLES))

    assert changed != []
    for line in changed:
        assert line.startswith(OUR_TRIGGERS)
