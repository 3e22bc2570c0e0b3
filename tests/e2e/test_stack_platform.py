"""A database made by the stack has the roles and rights of a hosted project, on both majors that we test."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from ranked_ledger.stack.errors import WrongDataVersion
from ranked_ledger.stack.platform import database_sql, roles_sql
from ranked_ledger.stack.postgres import Cluster, find_programs, throwaway_cluster

SUPABASE_CLI = Path(__file__).parents[2] / "node_modules/.bin/supabase"
API_ROLES = ("anon", "authenticated", "service_role")


@pytest.fixture(scope="module", params=[18, 16])
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    with throwaway_cluster(request.param) as running:
        with psycopg.connect(running.dsn(), autocommit=True) as connection:
            connection.execute(roles_sql().encode())
            connection.execute(roles_sql().encode())
        yield running


def project(cluster: Cluster, name: str, default_privileges: str, vector_schema: str = "extensions") -> str:
    """A database of that kind; the answer is the owner's URL."""
    with psycopg.connect(cluster.dsn(), autocommit=True) as connection:
        connection.execute(sql.SQL("drop database if exists {}").format(sql.Identifier(name)))
        connection.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
    with psycopg.connect(cluster.dsn(name), autocommit=True) as connection:
        for _ in range(2):
            connection.execute(database_sql(default_privileges, vector_schema).encode())  # type: ignore[arg-type]
    return cluster.dsn(name, "postgres")


def rights(connection: psycopg.Connection[tuple[object, ...]], role: str) -> set[str]:
    names = ["SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER"]
    if connection.info.server_version >= 170000:
        names.append("MAINTAIN")
    held = {
        n
        for n in names
        if connection.execute("select has_table_privilege(%s, 't', %s)", (role, n)).fetchone() == (True,)
    }
    if connection.execute("select has_function_privilege(%s, 'f()', 'EXECUTE')", (role,)).fetchone() == (
        True,
    ):
        held.add("EXECUTE")
    return held


def test_the_owner_is_no_superuser_and_the_api_roles_cannot_log_in(cluster: Cluster) -> None:
    with psycopg.connect(cluster.dsn(user="postgres")) as connection:
        found = {
            name: attributes
            for name, *attributes in connection.execute(
                "select rolname, rolsuper, rolcanlogin, rolinherit, rolbypassrls, rolcreaterole from pg_roles"
            )
        }
    assert found["postgres"] == [False, True, True, True, True]
    assert found["anon"] == found["authenticated"] == [False, False, False, False, False]
    assert found["service_role"] == [False, False, False, True, False]
    assert found["authenticator"] == [False, True, False, False, False]
    assert found["supabase_admin"][0] is True


def test_under_the_old_default_privileges_a_new_object_is_open_to_all_api_roles(cluster: Cluster) -> None:
    with psycopg.connect(project(cluster, "old", "old")) as connection:
        connection.execute(
            "create table t (i int); create function f() returns int language sql as 'select 1'"
        )
        held = [rights(connection, role) for role in API_ROLES]
    assert all({"SELECT", "INSERT", "UPDATE", "DELETE", "EXECUTE"} <= each for each in held)


def test_under_none_only_what_hosted_projects_leave_remains(cluster: Cluster) -> None:
    with psycopg.connect(project(cluster, "none", "none")) as connection:
        connection.execute(
            "create table t (i int); create function f() returns int language sql as 'select 1'"
        )
        anon, authenticated, service = (rights(connection, role) for role in API_ROLES)
    left = {"TRUNCATE", "REFERENCES", "TRIGGER", "EXECUTE"} | (
        {"MAINTAIN"} if cluster.programs.major >= 17 else set()
    )
    assert anon == authenticated == left
    assert service == {"EXECUTE"}


def test_a_project_can_be_switched_between_the_two_kinds(cluster: Cluster) -> None:
    url = project(cluster, "switched", "old")
    with psycopg.connect(cluster.dsn("switched"), autocommit=True) as connection:
        connection.execute(database_sql("none").encode())
    with psycopg.connect(url) as connection:
        connection.execute(
            "create table t (i int); create function f() returns int language sql as 'select 1'"
        )
        assert rights(connection, "service_role") == {"EXECUTE"}


@pytest.mark.parametrize("schema", ["extensions", "public"])
def test_pgvector_is_there_before_the_owner_comes(cluster: Cluster, schema: str) -> None:
    with psycopg.connect(project(cluster, f"vector_{schema}", "none", schema)) as connection:
        connection.execute("create extension if not exists vector with schema extensions")
        found = connection.execute(
            "select nspname from pg_extension join pg_namespace n on n.oid = extnamespace where extname = 'vector'"
        ).fetchone()
        assert found == (schema,)
        assert connection.execute("select '[1,2]'::vector::text").fetchone() == ("[1,2]",)


def test_the_owner_can_refer_to_users_and_act_as_the_api_roles(cluster: Cluster) -> None:
    with psycopg.connect(project(cluster, "users", "none")) as connection:
        connection.execute("create table profile (id uuid references auth.users on delete cascade)")
        connection.execute("set role authenticated")
        connection.execute("""select set_config('request.jwt.claims',
            '{"sub": "3f1c0b8e-0d8a-4a52-9a0e-0a8d6a1c7a11", "role": "authenticated"}', true)""")
        answer = connection.execute("select auth.uid()::text, auth.role(), auth.jwt() ->> 'role'").fetchone()
        assert answer == ("3f1c0b8e-0d8a-4a52-9a0e-0a8d6a1c7a11", "authenticated", "authenticated")
        connection.execute("select set_config('request.jwt.claims', '', true)")
        assert connection.execute("select auth.uid(), auth.role(), auth.jwt()").fetchone() == (
            None,
            None,
            None,
        )


def test_words_beyond_ascii_are_folded_and_stemmed(cluster: Cluster) -> None:
    with psycopg.connect(cluster.dsn()) as connection:
        answer = connection.execute("select to_tsvector('english', 'ÄPFEL')::text, lower('ÄÖ')").fetchone()
    assert answer == ("'äpfel':1", "äö")


def test_a_data_directory_of_another_major_version_is_left_alone(cluster: Cluster) -> None:
    other = 16 if cluster.programs.major == 18 else 18
    stranger = Cluster(cluster.data_dir, programs=find_programs(other), socket_dir=cluster.socket_dir)
    for attempt in (stranger.init, stranger.start):
        with pytest.raises(WrongDataVersion, match=f"was written by PostgreSQL {cluster.programs.major}"):
            attempt()
    assert cluster.is_running()


@pytest.mark.skipif(not SUPABASE_CLI.exists(), reason="the Supabase CLI is not installed: npm install")
def test_the_supabase_cli_pushes_over_the_socket_url(tmp_path: Path) -> None:
    (tmp_path / "supabase/migrations").mkdir(parents=True)
    (tmp_path / "supabase/migrations/20250101000000_first.sql").write_text("create table pushed (i int);")
    with throwaway_cluster() as cluster:
        with psycopg.connect(cluster.dsn(), autocommit=True) as connection:
            connection.execute(roles_sql().encode())
        url = project(cluster, "pushed", "none")
        done = subprocess.run(
            [SUPABASE_CLI, "db", "push", "--yes", "--db-url", url],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        with psycopg.connect(url) as connection:
            owner = connection.execute(
                "select tableowner from pg_tables where tablename = 'pushed'"
            ).fetchone()
    assert owner == ("postgres",)
