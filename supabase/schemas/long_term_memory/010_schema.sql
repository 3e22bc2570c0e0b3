-- The second store, in a schema that PostgREST does not expose: the RPCs in public are the only way in. People (the role
-- authenticated) come through a few of them, so they may use the schema, and nothing in it but what those call.
create schema if not exists long_term_memory;

comment on schema long_term_memory is
  'Ranked Ledger: what an agent may carry from one run into the next, attributable, reviewable, correctable, erasable. Not exposed by PostgREST.';

revoke all on schema long_term_memory from public, anon, authenticated, service_role;
grant usage on schema long_term_memory to authenticated, service_role;

create or replace function long_term_memory.has_ledger()
returns boolean language sql stable
set search_path = public, extensions, pg_temp
as $$
  select to_regclass('public.agent_decision_ledger') is not null and to_regclass('ranked_ledger.streams') is not null
$$;

comment on function long_term_memory.has_ledger() is 'Whether the decision ledger is installed in this project too.';
