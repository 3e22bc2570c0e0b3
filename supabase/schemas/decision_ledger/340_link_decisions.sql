create or replace function ranked_ledger.check_link(p_workspace_id text, p_from uuid, p_to uuid, p_relation text)
returns void language plpgsql immutable
set search_path = public, extensions, pg_temp
as $$
begin
  perform ranked_ledger.check_workspace(p_workspace_id);
  if p_relation is null or p_relation not in ('depends_on', 'informs', 'blocks') then
    raise sqlstate '22023' using
      message = 'p_relation is not one of depends_on, informs, blocks.',
      hint = 'To replace a decision call supersede_decision.';
  elsif p_from = p_to then
    raise sqlstate 'RL461' using
      message = 'A decision cannot be linked to itself.',
      detail = format('%s -> %s', p_from, p_to),
      hint = 'Name two different decisions.';
  end if;
end
$$;

comment on function ranked_ledger.check_link(text, uuid, uuid, text) is
  'Refuses an unknown relation (22023) and a link of a decision to itself (RL461).';

create or replace function public.link_decisions(
  p_workspace_id text, p_from uuid, p_to uuid, p_relation text default 'depends_on', p_metadata jsonb default null)
returns jsonb language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_created boolean := false;
begin
  -- guard
  perform ranked_ledger.check_link(p_workspace_id, p_from, p_to, p_relation);
  if jsonb_typeof(p_metadata) not in ('object', 'null') or octet_length(p_metadata::text) > 262144 then
    raise sqlstate '22023' using
      message = 'p_metadata is not an object of at most 262144 bytes.',
      hint = 'Leave it out, or send {"name": value}.';
  end if;

  -- lock
  perform ranked_ledger.hold_decisions(p_workspace_id, array[p_from, p_to]);

  -- mutate
  if not exists (select from public.agent_decision_edges e
                 where e.from_memory_id = p_from and e.to_memory_id = p_to and e.relation = p_relation) then
    insert into public.agent_decision_edges (from_memory_id, to_memory_id, relation, metadata)
    values (p_from, p_to, p_relation, coalesce(nullif(p_metadata, 'null'), '{}'))
    on conflict do nothing;
    v_created := found;
  end if;
  if v_created then
    perform ranked_ledger.note_edit(p_workspace_id, p_from, jsonb_build_object(
      'kind', 'decision_linked', 'to_memory_id', p_to, 'relation', p_relation));
  end if;
  return jsonb_build_object(
    'from_memory_id', p_from, 'to_memory_id', p_to, 'relation', p_relation, 'created', v_created);
end
$$;

comment on function public.link_decisions(text, uuid, uuid, text, jsonb) is
  'Says that one decision depends on, informs or blocks another of the same workspace. A repeat changes nothing, its metadata included.';

create or replace function public.unlink_decisions(
  p_workspace_id text, p_from uuid, p_to uuid, p_relation text default 'depends_on')
returns jsonb language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_removed boolean;
begin
  perform ranked_ledger.check_link(p_workspace_id, p_from, p_to, p_relation);
  perform ranked_ledger.hold_decisions(p_workspace_id, array[p_from, p_to]);
  delete from public.agent_decision_edges e
  where e.from_memory_id = p_from and e.to_memory_id = p_to and e.relation = p_relation;
  v_removed := found;
  if v_removed then
    perform ranked_ledger.note_edit(p_workspace_id, p_from, jsonb_build_object(
      'kind', 'decision_unlinked', 'to_memory_id', p_to, 'relation', p_relation));
  end if;
  return jsonb_build_object(
    'from_memory_id', p_from, 'to_memory_id', p_to, 'relation', p_relation, 'removed', v_removed);
end
$$;

comment on function public.unlink_decisions(text, uuid, uuid, text) is
  'Takes an edge back. Answers removed false where there was none.';
