-- Strings that an officer names, wherever they stand in rows of the organization and of its workspaces. A thought can be many
-- memories': it is cleaned only where each of them is in a workspace of the organization.

create or replace function long_term_memory.searched_tables(p_with_ledger boolean)
returns table (name text, scope text, only_names boolean)
language sql immutable parallel safe
set search_path = public, extensions, pg_temp
as $$
  with scopes as (
    select 't.workspace_id::text = any ($2)' as own,
           'exists (select from public.agent_memories x where x.id = t.%s and x.workspace_id::text = any ($2))' as memorys,
           'exists (select from public.agent_memories x where x.id = t.from_memory_id and x.workspace_id::text = any ($2))
            and exists (select from public.agent_memories x where x.id = t.to_memory_id and x.workspace_id::text = any ($2))' as ends)
  select t.name, t.scope, t.only_names
  from scopes s cross join lateral (values
    (1, 'public.agent_memory_recall_traces', s.own, false),
    (2, 'public.agent_memories', s.own, false),
    (3, 'public.agent_memory_recall_items',
     'exists (select from public.agent_memory_recall_traces x
              where x.id = t.trace_id and x.workspace_id::text = any ($2))', false),
    (4, 'public.agent_decision_ledger', format(s.memorys, 'memory_id'), false),
    (5, 'public.agent_decision_edges', s.ends, false),
    (6, 'public.agent_memory_relations', s.ends, false),
    (7, 'public.agent_memory_source_refs', format(s.memorys, 'memory_id'), false),
    (8, 'public.agent_memory_artifacts', format(s.memorys, 'memory_id'), false),
    (9, 'public.agent_memory_review_actions', format(s.memorys, 'memory_id'), false),
    (10, 'ranked_ledger.lifecycle_transitions', format(s.memorys, 'memory_id'), false),
    (11, 'ranked_ledger.enrolment_failures', s.own, false),
    (12, 'public.agent_memory_audit_events',
     'coalesce(t.workspace_id::text, (select x.workspace_id::text from public.agent_memories x where x.id = t.memory_id),
               (select x.workspace_id::text from public.agent_memory_recall_traces x where x.id = t.trace_id))
      = any ($2)', false),
    (13, 'public.thoughts',
     'exists (select from public.agent_memories x where x.thought_id = t.id)
      and not exists (select from public.agent_memories x
                      where x.thought_id = t.id and x.workspace_id::text <> all ($2))', false),
    (14, 'ranked_ledger.streams', s.own, true),
    (15, 'ranked_ledger.idempotency_keys', s.own, true),
    (16, 'long_term_memory.agent_memories', 't.org_id = $1', false),
    (17, 'long_term_memory.memory_events', 't.org_id = $1', false),
    (18, 'long_term_memory.recalls', 't.org_id = $1', false),
    (19, 'long_term_memory.idempotency_keys', 't.org_id = $1', true)) as t (position, name, scope, only_names)
  where p_with_ledger or t.name like 'long\_term\_memory.%'
  order by t.position
$$;

comment on function long_term_memory.searched_tables(boolean) is
  'The tables in which strings are looked for, in the order of their locks, and which of their rows t are in scope: $1 is the organization, $2 its workspaces.';

create or replace function long_term_memory.find_strings(p_org_id uuid, p_workspaces text[], p_strings text[])
returns jsonb language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
declare
  v_table record;
  v_keys  text[];
  v_found jsonb := '{}';
begin
  for v_table in
    select t.* from long_term_memory.searched_tables(long_term_memory.has_ledger()) t
    where p_strings <> '{}' and not t.only_names
  loop
    v_keys := long_term_memory.rows_holding(v_table.name::regclass, v_table.scope, p_org_id, p_workspaces, p_strings);
    if v_keys <> '{}' then
      v_found := v_found || jsonb_build_object(v_table.name, v_keys);
    end if;
  end loop;
  return v_found;
end
$$;

comment on function long_term_memory.find_strings(uuid, text[], text[]) is
  'The rows that hold one of the strings: {table: [keys]}.';

create or replace function long_term_memory.keys_found(p_found jsonb, p_table text)
returns text[] language sql immutable parallel safe
set search_path = public, extensions, pg_temp
as $$
  select array(select jsonb_array_elements_text(p_found -> p_table))
$$;

comment on function long_term_memory.keys_found(jsonb, text) is 'The keys of a table among what find_strings found.';

create or replace function long_term_memory.decisions_found(p_found jsonb)
returns uuid[] language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
begin
  return array(
    select k.key::uuid from unnest(long_term_memory.keys_found(p_found, 'public.agent_memories')) as k (key)
    union
    select l.memory_id from public.agent_decision_ledger l
    where l.id = any (long_term_memory.keys_found(p_found, 'public.agent_decision_ledger')::uuid[])
    union
    select m.id from public.agent_memories m
    where m.thought_id = any (long_term_memory.keys_found(p_found, 'public.thoughts')::uuid[]));
end
$$;

comment on function long_term_memory.decisions_found(jsonb) is
  'The memories of the host whose text, rationale or thought is about to be cleaned.';

create or replace function long_term_memory.names_left(p_org_id uuid, p_workspaces text[], p_strings text[])
returns int language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
declare
  v_table record;
  v_names text[] := '{}';
begin
  for v_table in select t.* from long_term_memory.searched_tables(long_term_memory.has_ledger()) t where p_strings <> '{}' loop
    v_names := v_names
      || long_term_memory.names_holding(v_table.name::regclass, v_table.scope, p_org_id, p_workspaces, p_strings);
  end loop;
  return (select count(distinct u.name) from unnest(v_names) as u (name));
end
$$;

comment on function long_term_memory.names_left(uuid, text[], text[]) is
  'How many names of workspaces, projects, tasks, channels, runs and keys hold one of the strings. Others refer to them, so they stay.';

create or replace function long_term_memory.clean_strings(
  p_org_id uuid, p_found jsonb, p_strings text[], p_caller long_term_memory.caller, p_asserted_by text)
returns int language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_table   record;
  v_keys    text[];
  v_cleaned int := 0;
begin
  perform set_config('long_term_memory.cleaning', 'on', true); -- a mark may be longer than what it stands for (check_memory)
  for v_table in
    select t.name,
           case t.name
             when 'public.agent_decision_ledger' then '{search_lexemes}' -- a trigger's
             when 'long_term_memory.agent_memories' then '{asserted_by}'
             when 'long_term_memory.memory_events' then '{outcome,grade,asserted_by}' else '{}' end::text[] as keep,
           case t.name
             when 'long_term_memory.agent_memories' then jsonb_build_object(
               'embedding_model', $e$case when r.is_reworded then '' else t.embedding_model end$e$) else '{}' end as set
    from long_term_memory.searched_tables(true) t where p_found ? t.name
  loop
    v_keys := long_term_memory.clean_rows(
      v_table.name::regclass, long_term_memory.keys_found(p_found, v_table.name), p_strings, v_table.keep, v_table.set);
    v_cleaned := v_cleaned + cardinality(v_keys);
    if v_table.name = 'long_term_memory.agent_memories' then
      perform long_term_memory.note_event(p_org_id, u.key::uuid, 'redacted', p_caller, p_asserted_by)
      from unnest(v_keys) as u (key);
      update long_term_memory.idempotency_keys k set digest = ''
      where k.org_id = p_org_id and k.memory_id = any (v_keys::uuid[]) and k.digest <> '';
    end if;
  end loop;
  perform set_config('long_term_memory.cleaning', '', true);
  return v_cleaned;
end
$$;

comment on function long_term_memory.clean_strings(uuid, jsonb, text[], long_term_memory.caller, text) is
  'Takes the strings out of the rows that find_strings found. Answers how many rows changed.';
