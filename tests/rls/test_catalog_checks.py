"""Rules that every object of ours keeps, read from the catalogue: what the platform's linter looks for, and ours."""

from __future__ import annotations

import re

import pytest

from tests.rig.rights import FOR_PEOPLE

OWN = """
create temp view own_relations as
select c.*, n.nspname, c.oid as relation from pg_class c join pg_namespace n on n.oid = c.relnamespace
where n.nspname in ('public', 'ranked_ledger', 'long_term_memory')
  and not exists (select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype = 'e');
create temp view own_functions as
select p.*, n.nspname, p.oid::regprocedure as name from pg_proc p join pg_namespace n on n.oid = p.pronamespace
where n.nspname in ('public', 'ranked_ledger', 'long_term_memory')
  and not exists (select from pg_depend d where d.classid = 'pg_proc'::regclass and d.objid = p.oid and d.deptype = 'e');
"""

# Each query answers the objects that break the rule.
RULES = {
    "row security is on for every table": """
        select relation::regclass from own_relations where relkind in ('r', 'p') and not relrowsecurity""",
    "every table has a policy, or the service role could not be shown to be meant": """
        select relation::regclass from own_relations r where relkind in ('r', 'p')
          and not exists (select from pg_policy p where p.polrelid = r.relation)""",
    "policies name the service role and nobody else": """
        select polrelid::regclass, polname from pg_policy join own_relations on relation = polrelid
        where polroles <> array['service_role'::regrole::oid]""",
    "one permissive policy a table, role and command": """
        select polrelid::regclass, polcmd, count(*) from pg_policy join own_relations on relation = polrelid
        where polpermissive group by polrelid, polroles, polcmd having count(*) > 1""",
    "every policy has its sentence": """
        select polrelid::regclass, polname from pg_policy p join own_relations on relation = polrelid
        where obj_description(p.oid, 'pg_policy') is null""",
    "views run with the rights of their reader": """
        select relation::regclass from own_relations where relkind = 'v'
          and not coalesce(reloptions, '{}') && array['security_invoker=true', 'security_invoker=on']""",
    "nothing is a materialized view or a foreign table, which row security does not cover": """
        select relation::regclass from own_relations where relkind in ('m', 'f')""",
    "a function pins its search path, unless it is a pure expression that must be inlined": """
        select name from own_functions
        where not coalesce(proconfig, '{}') @> array['search_path=public, extensions, pg_temp']
          and not (prosqlbody is not null and provolatile <> 'v' and not prosecdef)""",
    "only trigger functions, and the inner halves of what people may call, run with their owner's rights": """
        select name from own_functions where prosecdef and prorettype <> 'trigger'::regtype
          and not (nspname = 'long_term_memory' and has_function_privilege('authenticated', oid, 'execute'))""",
    "what people may call behind the API runs with its owner's rights, since they have none on the tables": """
        select name from own_functions where nspname <> 'public' and not prosecdef
          and has_function_privilege('authenticated', oid, 'execute')""",
    "a trigger on a host's table runs with its owner's rights, or a writer without ours would lose the row": """
        select t.tgrelid::regclass, t.tgname from pg_trigger t join own_functions f on f.oid = t.tgfoid
        where not t.tgisinternal and f.nspname in ('ranked_ledger', 'long_term_memory') and not f.prosecdef
          and t.tgrelid::regclass::text in ('thoughts', 'agent_memories', 'agent_memory_relations',
            'agent_memory_review_actions', 'agent_memory_recall_traces', 'agent_memory_recall_items')""",
    "trigger functions are nobody's to call": """
        select name, r.rolname from own_functions f cross join pg_roles r
        where prorettype = 'trigger'::regtype and r.rolname in ('anon', 'authenticated', 'service_role')
          and has_function_privilege(r.oid, f.oid, 'execute')""",
    "every table has a primary key": """
        select relation::regclass from own_relations r where relkind in ('r', 'p')
          and not exists (select from pg_constraint k where k.conrelid = r.relation and k.contype = 'p')""",
    "every foreign key has an index that begins with its columns": """
        select k.conrelid::regclass, k.conname from pg_constraint k join own_relations r on r.relation = k.conrelid
        where k.contype = 'f' and not exists (
          select from pg_index i
          join pg_attribute a on a.attrelid = k.conrelid and a.attnum = k.conkey[1]
          where i.indrelid = k.conrelid
            -- a null refers to nothing, so an index may leave it out
            and coalesce(pg_get_expr(i.indpred, i.indrelid) = format('(%I IS NOT NULL)', a.attname), true)
            and (string_to_array(i.indkey::text, ' ')::smallint[])[1:cardinality(k.conkey)] @> k.conkey)""",
    "no index is there twice": """
        select min(indexrelid::regclass::text), max(indexrelid::regclass::text)
        from pg_index join own_relations on relation = indrelid
        group by indrelid, indkey::text, indclass::text, indoption::text, coalesce(indexprs::text, ''),
          coalesce(indpred::text, '') having count(*) > 1""",
    "no column has a type that keeps a project from upgrading PostgreSQL": """
        select attrelid::regclass, attname from pg_attribute join own_relations on relation = attrelid
        where attnum > 0 and not attisdropped and relkind in ('r', 'p') and atttypid in (
          'regcollation'::regtype, 'regconfig'::regtype, 'regdictionary'::regtype, 'regnamespace'::regtype,
          'regoper'::regtype, 'regoperator'::regtype, 'regproc'::regtype, 'regprocedure'::regtype)""",
    "every table, view and function says what it is": """
        select relation::regclass::text from own_relations where relkind in ('r', 'p', 'v')
          and obj_description(relation, 'pg_class') is null
        union all
        select name::text from own_functions where obj_description(oid, 'pg_proc') is null""",
    "everything belongs to the owner of the project": """
        select relation::regclass::text from own_relations where relowner <> 'postgres'::regrole
        union all
        select name::text from own_functions where proowner <> 'postgres'::regrole""",
    "no function of the API is overloaded, or PostgREST could not tell which is called": """
        select nspname, proname from own_functions where nspname = 'public' group by 1, 2 having count(*) > 1""",
    "arguments of the ledger's API are named as the contract names them": """
        select name, a from own_functions cross join unnest(proargnames[1:pronargs]) a
        where nspname = 'public' and proname <> 'match_thoughts' and a not like 'p\\_%'""",
    "an index is valid": """
        select indexrelid::regclass from pg_index join own_relations on relation = indrelid where not indisvalid""",
    "no trigger on a host's table is disabled": """
        select tgrelid::regclass, tgname from pg_trigger where not tgisinternal and tgenabled <> 'O'""",
}


@pytest.mark.parametrize("rule", RULES)
def test_rule(rule, full_project):
    database = full_project(default_privileges="old")
    with database.connect("supabase_admin") as connection:
        connection.execute("set client_min_messages = error")
        connection.execute("set search_path = public, extensions")
        connection.execute(OWN)
        assert connection.execute(RULES[rule]).fetchall() == []


def test_functions_update_and_delete_with_a_condition_because_hosts_load_safeupdate(full_project):
    database = full_project()
    sources = database.rows(
        "select p.oid::regprocedure::text, p.prosrc from pg_proc p where p.pronamespace in "
        "('public'::regnamespace, 'ranked_ledger'::regnamespace, 'long_term_memory'::regnamespace) and p.probin is null and p.prosqlbody is null"
    )
    found, seen = [], 0
    for name, source in sources:
        for statement in re.sub(r"--[^\n]*", "", source).split(";"):
            writes = re.search(
                r"(?<!for )(?<!key )(?<!do )(?<!after )(?<!share )\b(update\s+[\w.]+\s|delete\s+from\s)",
                statement,
                re.I,
            )
            seen += bool(writes)
            if writes and not re.search(r"\bwhere\b", statement[writes.start() :], re.I):
                found.append((name, statement.strip()[:80]))

    assert found == []
    assert seen > 10


PAIRS = """
select outer_f.proname, outer_f.prosrc, outer_f.prosecdef, inner_f.prosecdef,
  pg_get_function_arguments(outer_f.oid) = pg_get_function_arguments(inner_f.oid)
  and pg_get_function_result(outer_f.oid) = pg_get_function_result(inner_f.oid),
  outer_f.provolatile = inner_f.provolatile
from pg_proc outer_f left join pg_proc inner_f
  on inner_f.proname = outer_f.proname and inner_f.pronamespace = 'long_term_memory'::regnamespace
where outer_f.pronamespace = 'public'::regnamespace and outer_f.proname = any(%s)
"""


def test_what_people_may_call_is_one_statement_that_hands_its_arguments_on(full_project):
    pairs = full_project().rows(PAIRS, (list(FOR_PEOPLE),))

    for name, source, outer_definer, inner_definer, same_arguments, same_volatility in pairs:
        assert (outer_definer, inner_definer, same_arguments, same_volatility) == (False, True, True, True), (
            name
        )
        statement = re.fullmatch(r"\s*select\s+long_term_memory\.(\w+)\(([^()]*)\);?\s*", source, re.I)
        assert statement is not None, source
        assert statement[1] == name
