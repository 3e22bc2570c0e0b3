"""Which rights a role really has, on every object of the given schemas: inherited and PUBLIC's included."""

from __future__ import annotations

from tests.rig.databases import Database

SCHEMAS = ("public", "ranked_ledger", "long_term_memory")

# What a person's token may call: each a pair, in public with the caller's rights and behind it in long_term_memory with
# the owner's. Anon and PUBLIC may call nothing.
FOR_PEOPLE = (
    "correct_memory",
    "erase_subject",
    "forget_memory",
    "memory_usage",
    "pending_reviews",
    "recall_memories",
    "remember",
    "review_memory",
    "subject_access",
)
# Without a pair: it reads nothing.
PLAIN_FOR_PEOPLE = ("memory_schema_version",)

_TABLE_RIGHTS = ("SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER")
_COLUMN_RIGHTS = ("SELECT", "INSERT", "UPDATE", "REFERENCES")

_EFFECTIVE = """
with own as (
  select %(role)s::text as role
), relations as (
  select c.oid, n.nspname || '.' || c.relname as name, c.relkind
  from pg_class c join pg_namespace n on n.oid = c.relnamespace
  where n.nspname = any(%(schemas)s) and c.relkind in ('r', 'p', 'v', 'm', 'f', 'S')
    and not exists (select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid
                    and d.deptype = 'e')
)
select p || ' on relation ' || r.name from relations r cross join own cross join unnest(%(table)s::text[]) p
where r.relkind <> 'S' and has_table_privilege(own.role, r.oid, p)
union all
select p || ' on a column of ' || r.name from relations r cross join own cross join unnest(%(column)s::text[]) p
where r.relkind <> 'S' and has_any_column_privilege(own.role, r.oid, p)
  and not has_table_privilege(own.role, r.oid, p)
union all
select p || ' on sequence ' || r.name from relations r cross join own
cross join unnest(array['USAGE', 'SELECT', 'UPDATE']) p
where r.relkind = 'S' and has_sequence_privilege(own.role, r.oid, p)
union all
select 'EXECUTE on function ' || n.nspname || '.' || p.proname || '(' || pg_get_function_identity_arguments(p.oid) || ')'
from pg_proc p join pg_namespace n on n.oid = p.pronamespace cross join own
where n.nspname = any(%(schemas)s) and has_function_privilege(own.role, p.oid, 'EXECUTE')
  and not exists (select from pg_depend d where d.classid = 'pg_proc'::regclass and d.objid = p.oid and d.deptype = 'e')
union all
select p || ' on schema ' || n.nspname
from pg_namespace n cross join own cross join unnest(array['USAGE', 'CREATE']) p
where n.nspname = any(%(schemas)s) and n.nspname <> 'public' and has_schema_privilege(own.role, n.oid, p)
"""

_INTENDED_FOR_THE_SERVICE_ROLE = """
select p || ' on relation ' || n.nspname || '.' || c.relname
from pg_class c join pg_namespace n on n.oid = c.relnamespace
cross join unnest(case when c.relkind in ('r', 'p') then array['SELECT', 'INSERT', 'UPDATE', 'DELETE']
                       else array['SELECT'] end) p
where n.nspname = any(%(schemas)s) and c.relkind in ('r', 'p', 'v', 'm')
union all
select 'USAGE on sequence ' || n.nspname || '.' || c.relname
from pg_class c join pg_namespace n on n.oid = c.relnamespace
where n.nspname = any(%(schemas)s) and c.relkind = 'S'
union all
select 'EXECUTE on function ' || n.nspname || '.' || p.proname || '(' || pg_get_function_identity_arguments(p.oid) || ')'
from pg_proc p join pg_namespace n on n.oid = p.pronamespace
where n.nspname = any(%(schemas)s) and p.prorettype <> 'trigger'::regtype
  and not exists (select from pg_depend d where d.classid = 'pg_proc'::regclass and d.objid = p.oid and d.deptype = 'e')
union all
select 'USAGE on schema ' || n.nspname from pg_namespace n where n.nspname = any(%(schemas)s) and n.nspname <> 'public'
"""

_INTENDED_FOR_PEOPLE = """
select 'EXECUTE on function ' || n.nspname || '.' || p.proname || '(' || pg_get_function_identity_arguments(p.oid) || ')'
from pg_proc p join pg_namespace n on n.oid = p.pronamespace
where n.nspname = 'public' and p.proname = any(%(pairs)s::text[] || %(plain)s::text[])
   or n.nspname = 'long_term_memory' and p.proname = any(%(pairs)s)
union all
select 'USAGE on schema ' || n.nspname from pg_namespace n where n.nspname = 'long_term_memory'
"""


def _lines(database: Database, query: str, **params: object) -> set[str]:
    rows = database.superuser.execute(query, {"schemas": list(SCHEMAS), **params}).fetchall()
    return {line for (line,) in rows}


def effective(database: Database, role: str) -> set[str]:
    """`SELECT on relation public.thoughts` and the like. The role may be `public`."""
    table_rights = [*_TABLE_RIGHTS, *(["MAINTAIN"] if database.server.major >= 17 else [])]
    return _lines(database, _EFFECTIVE, role=role, table=table_rights, column=list(_COLUMN_RIGHTS))


def intended_for_the_service_role(database: Database) -> set[str]:
    """Rows of every table, the views, the sequences behind identities, and every function that can be called."""
    return _lines(database, _INTENDED_FOR_THE_SERVICE_ROLE)


def intended_for_people(database: Database) -> set[str]:
    """What `authenticated` may do with our objects: call the pairs, and use the schema of their inner halves."""
    return _lines(database, _INTENDED_FOR_PEOPLE, pairs=list(FOR_PEOPLE), plain=list(PLAIN_FOR_PEOPLE))
