"""SQL that makes a plain PostgreSQL cluster look like a hosted Supabase project.

Only what a host's rights depend on is imitated: roles and their limits, default privileges, the schemas
`auth` and `extensions`. Everything is idempotent and is run by the superuser, `supabase_admin`.
"""

from __future__ import annotations

from typing import Literal

DefaultPrivileges = Literal["old", "none"]
VectorSchema = Literal["extensions", "public"]

# (role, attributes, role settings). `postgres` owns the project and is no superuser, as on hosted projects:
# a migration that needs more than it has fails here too.
_ROLES: tuple[tuple[str, str, dict[str, str]], ...] = (
    (
        "postgres",
        "login nosuperuser createdb createrole replication bypassrls inherit",
        {"search_path": '"$user", public, extensions'},
    ),
    ("anon", "nologin nosuperuser noinherit", {"statement_timeout": "'3s'"}),
    ("authenticated", "nologin nosuperuser noinherit", {"statement_timeout": "'8s'"}),
    ("service_role", "nologin nosuperuser noinherit bypassrls", {}),
    (
        "authenticator",
        "login nosuperuser noinherit",
        {"statement_timeout": "'8s'", "lock_timeout": "'8s'"},
    ),
    ("supabase_auth_admin", "login nosuperuser noinherit createrole", {"search_path": "auth"}),
)


def roles_sql() -> str:
    """The cluster-wide roles. Run once a cluster, before `database_sql`."""
    statements = []
    for name, attributes, settings in _ROLES:
        statements.append(
            f"do $$ begin if not exists (select from pg_roles where rolname = '{name}') "
            f"then create role {name}; end if; end $$;"
        )
        statements.append(f"alter role {name} {attributes};")
        statements.extend(f"alter role {name} set {key} = {value};" for key, value in settings.items())
    statements.append('alter role supabase_admin set search_path = "$user", public, auth, extensions;')
    statements.append("grant anon, authenticated, service_role to authenticator;")
    statements.append("grant anon, authenticated, service_role to postgres with admin option;")
    statements.append("grant pg_monitor, pg_read_all_data, pg_signal_backend to postgres;")
    return "\n".join(statements) + "\n"


def database_sql(
    default_privileges: DefaultPrivileges = "none", vector_schema: VectorSchema = "extensions"
) -> str:
    """One database of such a project: run in it, after `roles_sql`.

    `default_privileges`: "old" is a project created before 2026-05-30, where every new object of `public`
    is granted to the API roles; "none" is a newer one, where nobody may read or write it, `service_role`
    included.
    """
    return (
        _DATABASE_AND_SCHEMAS
        + _extensions(vector_schema)
        + _AUTH
        + (_PRIVILEGES_OLD if default_privileges == "old" else _PRIVILEGES_NONE)
    )


_DATABASE_AND_SCHEMAS = """
do $$ begin execute format('alter database %I owner to postgres', current_database()); end $$;
alter schema public owner to pg_database_owner;
grant usage on schema public to postgres, anon, authenticated, service_role;
grant create on schema public to postgres;
create schema if not exists extensions authorization postgres;
grant usage on schema extensions to anon, authenticated, service_role;
"""


def _extensions(vector_schema: VectorSchema) -> str:
    # pgcrypto is there on every hosted project, but no PostgreSQL wheel is built with it (it wants OpenSSL):
    # it is created where the server has it, and nothing may rely on it.
    return f"""
create extension if not exists vector with schema {vector_schema};
do $$ begin
  if exists (select from pg_available_extensions where name = 'pgcrypto') then
    create extension if not exists pgcrypto with schema extensions;
  end if;
end $$;
"""


_AUTH = """
create schema if not exists auth authorization supabase_admin;
grant usage on schema auth to postgres, anon, authenticated, service_role;
grant all on schema auth to supabase_auth_admin;

create table if not exists auth.users (
  id uuid primary key default gen_random_uuid(),
  aud text,
  role text,
  email text,
  raw_app_meta_data jsonb,
  raw_user_meta_data jsonb,
  created_at timestamptz default now(),
  updated_at timestamptz default now()
);
alter table auth.users owner to supabase_auth_admin;
grant all on table auth.users to postgres;

-- the one-claim settings are those of PostgREST before 9; the platform's functions still read them first
create or replace function auth.uid() returns uuid language sql stable as $$
  select coalesce(
    nullif(current_setting('request.jwt.claim.sub', true), ''),
    nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'sub'
  )::uuid
$$;
create or replace function auth.role() returns text language sql stable as $$
  select coalesce(
    nullif(current_setting('request.jwt.claim.role', true), ''),
    nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'role'
  )::text
$$;
create or replace function auth.email() returns text language sql stable as $$
  select coalesce(
    nullif(current_setting('request.jwt.claim.email', true), ''),
    nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'email'
  )::text
$$;
create or replace function auth.jwt() returns jsonb language sql stable as $$
  select coalesce(
    nullif(current_setting('request.jwt.claim', true), ''),
    nullif(current_setting('request.jwt.claims', true), '')
  )::jsonb
$$;
alter function auth.uid() owner to supabase_auth_admin;
alter function auth.role() owner to supabase_auth_admin;
alter function auth.email() owner to supabase_auth_admin;
alter function auth.jwt() owner to supabase_auth_admin;
"""

# Each kind takes the other one back, so that a database can be switched.
_PRIVILEGES_OLD = """
alter default privileges for role postgres in schema public
  grant all on tables to anon, authenticated, service_role;
alter default privileges for role postgres in schema public
  grant all on sequences to anon, authenticated, service_role;
alter default privileges for role postgres in schema public
  grant all on functions to anon, authenticated, service_role;
"""

_PRIVILEGES_NONE = """
alter default privileges for role postgres in schema public
  revoke all on tables from anon, authenticated, service_role;
alter default privileges for role postgres in schema public
  revoke all on sequences from anon, authenticated, service_role;
alter default privileges for role postgres in schema public
  revoke all on functions from anon, authenticated, service_role;
alter default privileges for role postgres in schema public
  grant truncate, references, trigger on tables to anon, authenticated;
do $$ begin
  if current_setting('server_version_num')::int >= 170000 then
    alter default privileges for role postgres in schema public
      grant maintain on tables to anon, authenticated;
  end if;
end $$;
"""
