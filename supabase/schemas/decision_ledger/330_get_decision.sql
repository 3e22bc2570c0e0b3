create or replace function ranked_ledger.edges_json(p_workspace_id text, p_memory_id uuid, p_outward boolean)
returns jsonb language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
begin
  return coalesce((
    select jsonb_agg(jsonb_build_object(
             'memory_id', m.id, 'relation', e.relation, 'summary', m.summary, 'step_index', l.step_index,
             'lifecycle_status', m.lifecycle_status) order by e.relation, l.step_index, m.id)
    from (select case when p_outward then x.to_memory_id else x.from_memory_id end as other_id, x.relation
          from public.agent_decision_edges x
          where (p_outward and x.from_memory_id = p_memory_id) or (not p_outward and x.to_memory_id = p_memory_id)) as e
    join public.agent_memories m on m.id = e.other_id and m.workspace_id = p_workspace_id
    left join public.agent_decision_ledger l on l.memory_id = m.id), '[]');
end
$$;

comment on function ranked_ledger.edges_json(text, uuid, boolean) is
  'The edges of a decision by their other end: what it points to (outward), or what points to it.';

create or replace function ranked_ledger.chain_json(p_memory_id uuid)
returns jsonb language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
begin
  return coalesce((
    select jsonb_agg(jsonb_build_object(
             'memory_id', m.id, 'summary', m.summary, 'step_index', l.step_index,
             'lifecycle_status', m.lifecycle_status) order by m.created_at, l.step_index, m.id)
    from ranked_ledger.supersession_chain(p_memory_id) c
    join public.agent_memories m on m.id = c.memory_id
    left join public.agent_decision_ledger l on l.memory_id = m.id), '[]');
end
$$;

comment on function ranked_ledger.chain_json(uuid) is
  'What a decision is tied to by supersession, itself included, oldest first.';

create or replace function public.get_decision(p_workspace_id text, p_memory_id uuid)
returns jsonb language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
begin
  perform ranked_ledger.check_workspace(p_workspace_id);
  perform ranked_ledger.refuse_absent(p_workspace_id, array[p_memory_id]);
  return ranked_ledger.decision_json(p_workspace_id, p_memory_id) || jsonb_build_object(
    'successor', ranked_ledger.successor(p_memory_id),
    'chain', ranked_ledger.chain_json(p_memory_id),
    'edges_out', ranked_ledger.edges_json(p_workspace_id, p_memory_id, true),
    'edges_in', ranked_ledger.edges_json(p_workspace_id, p_memory_id, false),
    'lost_ground', coalesce((
      select jsonb_agg(jsonb_build_object(
               'memory_id', g.lost_memory_id, 'relation', g.relation, 'forgotten_at', g.lost_at)
               order by g.lost_at, g.lost_memory_id, g.relation)
      from ranked_ledger.lost_grounds g where g.memory_id = p_memory_id), '[]'),
    'history', coalesce((
      select jsonb_agg(jsonb_build_object(
               'lifecycle_status', t.lifecycle_status, 'step_index', t.stream_step, 'at', t.changed_at,
               'reason', t.reason, 'actor', t.actor) order by t.id)
      from ranked_ledger.lifecycle_transitions t where t.memory_id = p_memory_id), '[]'));
end
$$;

comment on function public.get_decision(text, uuid) is
  'A decision in full: its fields, successor, supersession chain, edges both ways, lost ground and history.';
