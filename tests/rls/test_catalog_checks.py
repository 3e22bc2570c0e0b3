"""Rules that every object of ours keeps, read from the catalogue: what the platform's linter looks for, and ours."""

from __future__ import annotations

import re

import pytest

from tests.rig import statements
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


# Functions with a statement on memories that names no organization, or names it where the reader of statements does not look.
WHATEVER_THE_ORGANIZATION = {
    "long_term_memory.sweep_expired": "what has expired has expired in all of them",
    "public.expire_memories": "asks whether anything is left of that",
    "long_term_memory.adoption_problem": "asks whether another organization has the id already",
    "long_term_memory.read_again": "asks each row for its organization outside, so that the row is found by its id",
}
# Functions whose statement is about a table that it is told.
A_TABLE_TOLD = {
    "long_term_memory.refer": "a foreign key is about all rows",
    "long_term_memory.use_host_tables": "writes org_exists, which is about the organizations themselves",
    "long_term_memory.empty_rows": "the keys come from what was found in the organization",
    "long_term_memory.clean_rows": "the keys come from rows_holding",
    "long_term_memory.rows_holding": "its scope is that of searched_tables, which is asked below",
    "long_term_memory.names_holding": "its scope is that of searched_tables, which is asked below",
    "long_term_memory.renew_statistics": "what the planner keeps is of all rows",
    "long_term_memory.rows_beside": "the ids come from decisions_held",
    "long_term_memory.adoption_query": "another product's table; each row says of which organization it is",
}
# Functions that read the ledger for an organization, by ids that another one found in its workspaces.
FOUND_BY_ANOTHER = {
    "long_term_memory.use_host_tables": "the runs of agents, which have no organization",
    "long_term_memory.searched_tables": "text: $2 is the organization's workspaces",
    "long_term_memory.decisions_found": "of what rows_holding found",
    "long_term_memory.texts_of": "of attributed_decisions",
    "long_term_memory.lock_in_ledger": "of attributed_decisions, traces_of and rows_holding",
    "long_term_memory.await_writers": "of lock_decisions",
    "long_term_memory.lock_decisions": "of lock_in_ledger",
    "long_term_memory.empty_decisions": "of attributed_decisions",
    "long_term_memory.empty_surroundings": "of attributed_decisions",
    "long_term_memory.drop_thoughts": "of attributed_decisions; whether a thought is shared is asked of all",
    "long_term_memory.follow_changes": "of what was changed",
    "long_term_memory.erase_decisions": "of attributed_decisions",
    "long_term_memory.erase_traces": "of traces_of",
    "long_term_memory.thoughts_beside": "of decisions_held; whether a thought is shared is asked of all",
    "long_term_memory.decisions_held": "its second statement, of the ids that the first found in the workspaces",
    "long_term_memory.tie_named_traces": "of the workspace that is being mapped",
    "long_term_memory.untie_traces": "of hold_decision",
    "long_term_memory.empty_traces": "of a trigger on the ledger, which is about no organization",
    "long_term_memory.mend_ties": "ties whose row is gone, whoever made them",
    "long_term_memory.lock_joined_tables": "locks whole tables",
}
BODIES = """
select n.nspname || '.' || p.proname, coalesce(pg_get_function_sqlbody(p.oid), p.prosrc)
from pg_proc p join pg_namespace n on n.oid = p.pronamespace
where n.nspname in ('public', 'ranked_ledger', 'long_term_memory') and p.probin is null
"""
OURS = "select p.name::oid::regproc::text from long_term_memory.our_functions() as p (name)"


def bodies(database, only=None):
    with database.connect("supabase_admin") as connection:
        connection.execute("set search_path = pg_catalog")  # names come back with their schema
        found = connection.execute(BODIES).fetchall()
        ours = {name for (name,) in connection.execute(OURS).fetchall()}
    return [(name, body) for name, body in found if only is None or name in ours]


def functions_with_a(fault, found):
    return {name for name, body in found if fault(body)}


def reads_memories_at_large(body):
    return statements.without_an_organization(body, statements.MEMORIES)


def test_no_function_reads_or_writes_a_memory_without_its_organization(full_project):
    found = bodies(full_project())
    assert sum(len(statements.MEMORIES.findall(body)) for _, body in found) > 30
    assert functions_with_a(reads_memories_at_large, found) == set(WHATEVER_THE_ORGANIZATION)


def test_no_view_shows_memories_past_the_organization(full_project):
    views = "select count(*) from pg_views where definition ~ 'long_term_memory.+agent_memories'"
    assert full_project().value(views) == 0


def test_a_statement_on_a_table_that_it_is_told_is_about_the_rows_of_an_organization(full_project):
    database = full_project()
    found = bodies(database, "ours")

    def at_large(body):
        return statements.without_an_organization(body, statements.NAMED_LATER)

    assert functions_with_a(at_large, found) == set(A_TABLE_TOLD)
    scopes = database.rows("select name, scope from long_term_memory.searched_tables(true)")
    assert len(scopes) > 15
    for name, scope in scopes:
        kept = "t.org_id = $1" if name.startswith("long_term_memory.") else "any ($2)"
        assert kept in scope or (name == "public.thoughts" and "<> all ($2)" in scope), name


def test_the_ledger_is_read_for_an_organization_through_its_workspaces(full_project):
    found = bodies(full_project(), "ours")
    assert functions_with_a(statements.beyond_its_workspaces, found) == set(FOUND_BY_ANOTHER)


CARELESS = [
    "return (select m.text from long_term_memory.agent_memories m where m.id = p_id)",
    "return (select text from long_term_memory.agent_memories where id = p_id -- and org_id = p_org\n)",
    "return (select m.text from long_term_memory.agent_memories m where m.id = p_id /* m.org_id = p_org */)",
    "return (select m.text from long_term_memory.agent_memories m where m.org_id = m.org_id and m.id = p_id)",
    "return (select m.text from long_term_memory.agent_memories as m where m.org_id <> p_org and m.id = p_id)",
    # another table's organization, or the other one's of two
    "return (select m.text from long_term_memory.agent_memories m join long_term_memory.memory_events e "
    "on e.memory_id = m.id and e.org_id = p_org where m.id = p_id)",
    "return (select m.text from long_term_memory.agent_memories m, long_term_memory.agent_memories o "
    "where m.id = p_id and o.org_id = p_org)",
    "return (select m.text from long_term_memory.recalls r, long_term_memory.agent_memories m where r.org_id = p_org)",
    "return (select f.text from (select a.* from long_term_memory.agent_memories a where a.id = p_id) as f)",
    "return (select m.text from long_term_memory.agent_memories m where m.org_id = p_org and not exists ("
    "select from long_term_memory.agent_memories m where m.id = p_id))",
    # another statement's
    "perform from long_term_memory.agent_memories m where m.org_id = p_org; "
    "return (select m.text from long_term_memory.agent_memories m where m.id = p_id)",
    "update long_term_memory.agent_memories m set org_id = p_org where m.id = p_id",
    "delete from only long_term_memory.agent_memories where id = p_id",
    "insert into long_term_memory.agent_memories (id, subject_type, text) values (p_id, 'workspace', 'org_id = ')",
    # put together
    "execute 'delete from long_term_memory.agent_memories where id = $1' using p_id",
    "execute format('update long_term_memory.agent_memories m set %s where m.id = $1', p_org) using p_id",
    'execute $q$ select 1; delete from "long_term_memory"."agent_memories" where id = $1 $q$ using p_id',
]
BESIDE_ITS_WORKSPACES = [
    "perform from long_term_memory.decision_subjects s join public.agent_memories m on m.id = s.memory_id "
    "where s.org_id = p_org",
    "perform from public.agent_memories m join long_term_memory.workspace_orgs w on w.workspace_id = m.workspace_id::text",
    "delete from public.thoughts t where t.id = p_id",
    "execute 'select 1 from public.agent_memory_recall_traces'",
]


def write_functions(database, written):
    """Functions with these statements; answers their names."""
    for number, statement in enumerate(written):
        database.superuser.execute(
            f"create function long_term_memory.careless_{number}(p_org uuid, p_id uuid) returns text language plpgsql "
            f"as $careless$ begin {statement}; return null; end $careless$"
        )
    return {f"long_term_memory.careless_{number}" for number in range(len(written))}


def test_a_memory_that_is_read_whatever_its_organization_is_found(full_project):
    database = full_project()
    written = write_functions(database, CARELESS)
    found = functions_with_a(reads_memories_at_large, bodies(database))
    assert found == set(WHATEVER_THE_ORGANIZATION) | written


def test_the_ledger_read_beside_its_workspaces_is_found(full_project):
    database = full_project()
    written = write_functions(database, BESIDE_ITS_WORKSPACES)
    found = functions_with_a(statements.beyond_its_workspaces, bodies(database, "ours"))
    assert found == set(FOUND_BY_ANOTHER) | written


@pytest.mark.parametrize(
    "statement",
    [
        "return (select m.text from long_term_memory.agent_memories m where m.id = p_id and m.org_id = p_org)",
        "return (select text from long_term_memory.agent_memories where (org_id, id) = (p_org, p_id))",
        "return (select m.text from (select a.* from long_term_memory.agent_memories a where a.id = p_id offset 0) as m "
        "where m.org_id = p_org)",
        "insert into long_term_memory.agent_memories (org_id, subject_type, text) values (p_org, 'workspace', 'x')",
        "execute format('delete from long_term_memory.agent_memories m where m.org_id = %L', p_org)",
        "declare v_one long_term_memory.agent_memories; begin null; end",
    ],
)
def test_one_that_names_the_organization_is_not(statement):
    assert reads_memories_at_large(f"begin {statement}; return null; end") == []
