"""A database's definitions as lines of text: two databases can be compared line by line.

Each line begins with what it is about (`column public.thoughts.id`), then says all that matters about it.
Names that the search path finds are written without their schema, so that pgvector may live in either of its
places. Objects of extensions are left out.
"""

from __future__ import annotations

from collections.abc import Iterable

from tests.rig.databases import Database

# Each query takes the schemas and answers one text column.
_NOT_OF_AN_EXTENSION = """not exists (
  select from pg_depend x where x.classid = '{catalog}'::regclass and x.objid = {oid} and x.deptype = 'e')"""


def _own(catalog: str, oid: str) -> str:
    return _NOT_OF_AN_EXTENSION.format(catalog=catalog, oid=oid)


_RELATIONS = f"""
select format('relation %%s.%%s kind=%%s persistence=%%s rls=%%s forced=%%s owner=%%s options=%%s',
  n.nspname, c.relname, c.relkind, c.relpersistence, c.relrowsecurity, c.relforcerowsecurity,
  pg_get_userbyid(c.relowner), coalesce(array_to_string(c.reloptions, ','), ''))
from pg_class c join pg_namespace n on n.oid = c.relnamespace
where n.nspname = any(%(schemas)s) and c.relkind in ('r', 'p', 'v', 'm', 'S', 'f')
  and {_own("pg_class", "c.oid")}
"""

_COLUMNS = f"""
select format('column %%s.%%s.%%s %%s %%s%%s%%s%%s storage=%%s compression=%%s', n.nspname, c.relname,
  a.attname, format_type(a.atttypid, a.atttypmod), case when a.attnotnull then 'not null' else 'null' end,
  case a.attidentity when '' then '' else ' identity=' || a.attidentity::text end,
  case a.attgenerated when '' then '' else ' generated=' || a.attgenerated::text end,
  coalesce(' default=' || pg_get_expr(d.adbin, d.adrelid), ''), a.attstorage, a.attcompression)
from pg_attribute a join pg_class c on c.oid = a.attrelid join pg_namespace n on n.oid = c.relnamespace
left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
where n.nspname = any(%(schemas)s) and c.relkind in ('r', 'p', 'v', 'm', 'f', 'c') and a.attnum > 0
  and not a.attisdropped and {_own("pg_class", "c.oid")}
"""

# PostgreSQL 18 keeps NOT NULL as constraints too; the columns say it already, on every version.
_CONSTRAINTS = """
select format('constraint %%s.%%s.%%s %%s', n.nspname, c.relname, k.conname, pg_get_constraintdef(k.oid))
from pg_constraint k join pg_class c on c.oid = k.conrelid join pg_namespace n on n.oid = c.relnamespace
where n.nspname = any(%(schemas)s) and k.contype in ('c', 'f', 'p', 'u', 'x')
"""

_INDEXES = """
select format('index %%s.%%s on %%s valid=%%s %%s', n.nspname, i.relname, t.relname, x.indisvalid,
  pg_get_indexdef(x.indexrelid))
from pg_index x join pg_class i on i.oid = x.indexrelid join pg_class t on t.oid = x.indrelid
join pg_namespace n on n.oid = t.relnamespace
where n.nspname = any(%(schemas)s) and t.relkind in ('r', 'p', 'm')
"""

_FUNCTIONS = f"""
select format('function %%s.%%s(%%s) returns %%s language=%%s kind=%%s volatile=%%s parallel=%%s strict=%%s '
  'leakproof=%%s definer=%%s cost=%%s rows=%%s config=%%s owner=%%s body=%%s', n.nspname, p.proname,
  pg_get_function_arguments(p.oid), pg_get_function_result(p.oid), l.lanname, p.prokind, p.provolatile,
  p.proparallel, p.proisstrict, p.proleakproof, p.prosecdef, p.procost, p.prorows,
  coalesce(array_to_string(p.proconfig, ';'), ''), pg_get_userbyid(p.proowner),
  md5(coalesce(pg_get_function_sqlbody(p.oid), p.prosrc)))
from pg_proc p join pg_namespace n on n.oid = p.pronamespace join pg_language l on l.oid = p.prolang
where n.nspname = any(%(schemas)s) and {_own("pg_proc", "p.oid")}
"""

_TRIGGERS = """
select format('trigger %%s.%%s.%%s enabled=%%s %%s', n.nspname, c.relname, t.tgname, t.tgenabled,
  pg_get_triggerdef(t.oid))
from pg_trigger t join pg_class c on c.oid = t.tgrelid join pg_namespace n on n.oid = c.relnamespace
where n.nspname = any(%(schemas)s) and not t.tgisinternal
"""

_POLICIES = """
select format('policy %%s.%%s.%%s %%s for %%s to %%s using (%%s) check (%%s)', n.nspname, c.relname,
  p.polname, case when p.polpermissive then 'permissive' else 'restrictive' end, p.polcmd,
  (select string_agg(case r when 0 then 'public' else pg_get_userbyid(r) end, ',' order by 1)
   from unnest(p.polroles) r),
  pg_get_expr(p.polqual, p.polrelid), pg_get_expr(p.polwithcheck, p.polrelid))
from pg_policy p join pg_class c on c.oid = p.polrelid join pg_namespace n on n.oid = c.relnamespace
where n.nspname = any(%(schemas)s)
"""

_VIEWS = f"""
select format('view %%s.%%s as %%s', n.nspname, c.relname,
  regexp_replace(pg_get_viewdef(c.oid), '\\s+', ' ', 'g'))
from pg_class c join pg_namespace n on n.oid = c.relnamespace
where n.nspname = any(%(schemas)s) and c.relkind in ('v', 'm') and {_own("pg_class", "c.oid")}
"""

_SEQUENCES = """
select format('sequence %%s.%%s %%s start=%%s increment=%%s min=%%s max=%%s cycle=%%s', n.nspname, c.relname,
  format_type(s.seqtypid, null), s.seqstart, s.seqincrement, s.seqmin, s.seqmax, s.seqcycle)
from pg_sequence s join pg_class c on c.oid = s.seqrelid join pg_namespace n on n.oid = c.relnamespace
where n.nspname = any(%(schemas)s)
"""

_TYPES = f"""
select format('type %%s.%%s kind=%%s %%s', n.nspname, t.typname, t.typtype,
  coalesce((select string_agg(e.enumlabel, ',' order by e.enumsortorder) from pg_enum e
            where e.enumtypid = t.oid),
           format_type(nullif(t.typbasetype, 0), t.typtypmod), ''))
from pg_type t join pg_namespace n on n.oid = t.typnamespace
where n.nspname = any(%(schemas)s) and t.typtype in ('e', 'd', 'r') and {_own("pg_type", "t.oid")}
"""

_STATISTICS = """
select format('statistics %%s.%%s %%s', n.nspname, s.stxname, pg_get_statisticsobjdef(s.oid))
from pg_statistic_ext s join pg_namespace n on n.oid = s.stxnamespace where n.nspname = any(%(schemas)s)
"""

# Rights of everybody but the owner, defaults of PostgreSQL included: a function without an ACL is PUBLIC's.
_GRANTS = f"""
with objects as (
  select 'relation ' || n.nspname || '.' || c.relname as what, c.relowner as owner,
    coalesce(c.relacl, acldefault(case c.relkind when 'S' then 's' else 'r' end::"char", c.relowner)) as acl
  from pg_class c join pg_namespace n on n.oid = c.relnamespace
  where n.nspname = any(%(schemas)s) and c.relkind in ('r', 'p', 'v', 'm', 'S', 'f')
  and {_own("pg_class", "c.oid")}
  union all
  select 'column ' || n.nspname || '.' || c.relname || '.' || a.attname, c.relowner, a.attacl
  from pg_attribute a join pg_class c on c.oid = a.attrelid join pg_namespace n on n.oid = c.relnamespace
  where n.nspname = any(%(schemas)s) and a.attacl is not null and a.attnum > 0
    and {_own("pg_class", "c.oid")}
  union all
  select 'function ' || n.nspname || '.' || p.proname || '('
    || pg_get_function_identity_arguments(p.oid) || ')', p.proowner,
    coalesce(p.proacl, acldefault('f', p.proowner))
  from pg_proc p join pg_namespace n on n.oid = p.pronamespace
  where n.nspname = any(%(schemas)s) and {_own("pg_proc", "p.oid")}
  union all
  select 'schema ' || n.nspname, n.nspowner, coalesce(n.nspacl, acldefault('n', n.nspowner))
  from pg_namespace n where n.nspname = any(%(schemas)s)
)
select format('grant %%s on %%s to %%s%%s', g.privilege_type, o.what,
  case g.grantee when 0 then 'public' else pg_get_userbyid(g.grantee) end,
  case when g.is_grantable then ' with grant option' else '' end)
from objects o cross join lateral aclexplode(o.acl) g where g.grantee <> o.owner
"""

_DEFAULT_PRIVILEGES = """
select format('default %%s on %%s of %%s in %%s to %%s', g.privilege_type, d.defaclobjtype,
  pg_get_userbyid(d.defaclrole), coalesce(n.nspname, 'every schema'),
  case g.grantee when 0 then 'public' else pg_get_userbyid(g.grantee) end)
from pg_default_acl d left join pg_namespace n on n.oid = d.defaclnamespace
cross join lateral aclexplode(d.defaclacl) g
"""

_COMMENTS = f"""
with targets as (
  select 'pg_class'::regclass as catalog, c.oid as id, 0 as sub,
    'relation ' || n.nspname || '.' || c.relname as what
  from pg_class c join pg_namespace n on n.oid = c.relnamespace
  where n.nspname = any(%(schemas)s) and {_own("pg_class", "c.oid")}
  union all
  select 'pg_class'::regclass, c.oid, a.attnum, 'column ' || n.nspname || '.' || c.relname || '.' || a.attname
  from pg_attribute a join pg_class c on c.oid = a.attrelid join pg_namespace n on n.oid = c.relnamespace
  where n.nspname = any(%(schemas)s) and a.attnum > 0
  union all
  select 'pg_proc'::regclass, p.oid, 0, 'function ' || n.nspname || '.' || p.proname || '('
    || pg_get_function_identity_arguments(p.oid) || ')'
  from pg_proc p join pg_namespace n on n.oid = p.pronamespace
  where n.nspname = any(%(schemas)s) and {_own("pg_proc", "p.oid")}
  union all
  select 'pg_policy'::regclass, p.oid, 0, 'policy ' || n.nspname || '.' || c.relname || '.' || p.polname
  from pg_policy p join pg_class c on c.oid = p.polrelid join pg_namespace n on n.oid = c.relnamespace
  where n.nspname = any(%(schemas)s)
  union all
  select 'pg_trigger'::regclass, t.oid, 0, 'trigger ' || n.nspname || '.' || c.relname || '.' || t.tgname
  from pg_trigger t join pg_class c on c.oid = t.tgrelid join pg_namespace n on n.oid = c.relnamespace
  where n.nspname = any(%(schemas)s)
  union all
  select 'pg_constraint'::regclass, k.oid, 0, 'constraint ' || n.nspname || '.' || k.conname
  from pg_constraint k join pg_namespace n on n.oid = k.connamespace where n.nspname = any(%(schemas)s)
  union all
  select 'pg_namespace'::regclass, n.oid, 0, 'schema ' || n.nspname from pg_namespace n
  where n.nspname = any(%(schemas)s)
)
select format('comment %%s %%s', t.what, d.description)
from targets t join pg_description d on d.classoid = t.catalog and d.objoid = t.id and d.objsubid = t.sub
"""

_QUERIES = (
    _RELATIONS, _COLUMNS, _CONSTRAINTS, _INDEXES, _FUNCTIONS, _TRIGGERS, _POLICIES, _VIEWS, _SEQUENCES,
    _TYPES, _STATISTICS, _GRANTS, _DEFAULT_PRIVILEGES, _COMMENTS,
)  # fmt: skip

SCHEMAS = ("public", "extensions", "ranked_ledger", "long_term_memory", "auth")


def catalogue(database: Database, schemas: Iterable[str] = SCHEMAS) -> list[str]:
    """Every definition of the schemas as sorted lines."""
    lines: set[str] = set()
    with database.connect("supabase_admin") as connection:
        connection.execute("set search_path = public, extensions")
        connection.execute("set quote_all_identifiers = off")
        for query in _QUERIES:
            for (line,) in connection.execute(query, {"schemas": list(schemas)}):
                lines.add(line)
    return sorted(lines)


def differences(before: Iterable[str], after: Iterable[str]) -> list[str]:
    """The lines of only one side: `- ` went, `+ ` came."""
    old, new = set(before), set(after)
    return sorted(
        [f"- {line}" for line in old - new] + [f"+ {line}" for line in new - old], key=lambda x: (x[2:], x)
    )
