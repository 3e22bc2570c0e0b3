"""The comparison of catalogues sees every kind of change: a test that compares would otherwise prove nothing."""

from __future__ import annotations

import pytest

from tests.rig.catalogue import catalogue, differences
from tests.rig.rights import effective

CHANGES = [
    "alter table thoughts add column mood text",
    "alter table thoughts alter column content drop not null",
    "alter table thoughts alter column metadata set default '[]'",
    "alter table thoughts alter column content set storage external",
    "alter table agent_memories drop constraint agent_memories_visibility_known",
    "alter table thoughts disable row level security",
    "alter table thoughts force row level security",
    "alter table thoughts set (fillfactor = 70)",
    "create index on thoughts (content_fingerprint)",
    "alter policy thoughts_all_service_role on thoughts using (false)",
    "alter policy thoughts_all_service_role on thoughts to public",
    "comment on policy thoughts_all_service_role on thoughts is 'other'",
    "comment on column thoughts.content is 'other'",
    "comment on function upsert_thought(text, jsonb) is null",
    "grant select (content) on thoughts to anon",
    "grant trigger on thoughts to authenticated",
    "grant execute on function upsert_thought(text, jsonb) to public",
    "grant usage on schema ranked_ledger to anon",
    "grant select on thoughts to service_role with grant option",
    "alter default privileges in schema public grant select on tables to anon",
    "alter default privileges revoke execute on functions from public",
    "alter function upsert_thought(text, jsonb) security definer",
    "alter function upsert_thought(text, jsonb) reset search_path",
    "alter function upsert_thought(text, jsonb) stable",
    "create or replace function ranked_ledger.tokens(p_text text) returns int language sql immutable parallel safe "
    "return 1",
    "alter table agent_memories disable trigger trg_agent_decision_ledger_enroll",
    "drop trigger agent_memories_set_updated_at on agent_memories",
    "alter view agent_recall_policy_stats reset (security_invoker)",
    "create type mood as enum ('good')",
    "create domain step as int check (value >= 0)",
    "create sequence numbers",
    "create statistics s on content, metadata from thoughts",
    "create materialized view m as select 1 as one",
    "alter table long_term_memory.agent_memories alter column embedding set storage main",
    "alter table long_term_memory.agent_memories drop constraint agent_memories_org_id_fkey",
    "alter table long_term_memory.members disable row level security",
    "alter function long_term_memory.use_host_tables() security definer",
    "grant execute on function memory_schema_version() to anon",
    "revoke usage on schema long_term_memory from authenticated",
]


@pytest.mark.parametrize("change", CHANGES)
def test_the_catalogue_shows(change, full_project):
    database = full_project()
    before = catalogue(database)
    database.owner.execute(change)

    assert differences(before, catalogue(database)) != []


def test_two_databases_of_one_template_have_one_catalogue(full_project):
    assert catalogue(full_project()) == catalogue(full_project())


@pytest.mark.parametrize(
    ("change", "shown"),
    [
        ("grant select (content) on thoughts to anon", "SELECT on a column of public.thoughts"),
        (
            "grant truncate on agent_decision_ledger to public",
            "TRUNCATE on relation public.agent_decision_ledger",
        ),
        (
            "grant execute on function upsert_thought(text, jsonb) to public",
            "EXECUTE on function public.upsert_thought",
        ),
        ("grant usage on schema ranked_ledger to anon", "USAGE on schema ranked_ledger"),
        ("grant create on schema long_term_memory to public", "CREATE on schema long_term_memory"),
        (
            "grant execute on function long_term_memory.has_ledger() to anon",
            "EXECUTE on function long_term_memory.has_ledger",
        ),
        (
            "grant usage on sequence long_term_memory.memory_events_id_seq to anon",
            "USAGE on sequence long_term_memory.memory_events_id_seq",
        ),
        (
            "create sequence numbers; grant usage on sequence numbers to anon",
            "USAGE on sequence public.numbers",
        ),
        ("grant service_role to anon with inherit true", "DELETE on relation public.thoughts"),
    ],
)
def test_the_list_of_rights_shows(change, shown, full_project):
    database = full_project()
    database.superuser.execute("begin; " + change)

    assert any(line.startswith(shown) for line in effective(database, "anon"))
    database.superuser.execute("rollback")
