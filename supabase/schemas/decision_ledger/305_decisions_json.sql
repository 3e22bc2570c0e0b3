-- A decision as every verb answers it (docs/sql-api.md, "A decision").
create or replace function ranked_ledger.decisions_json(p_workspace_id text, p_memory_ids uuid[])
returns jsonb language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
begin
  return coalesce((
    select jsonb_agg(jsonb_build_object(
             'memory_id', m.id, 'workspace_id', m.workspace_id, 'project_id', m.project_id, 'task_id', m.task_id,
             'flow_id', m.flow_id, 'step_index', l.step_index,
             'step_settled', not exists (select from ranked_ledger.pending_steps p where p.memory_id = m.id),
             'summary', m.summary, 'content', m.content, 'rationale', l.rationale, 'alternatives', l.alternatives,
             'importance', l.importance::float8, 'pinned', l.pinned, 'lifecycle_status', m.lifecycle_status,
             'review_status', m.review_status, 'visibility', m.visibility, 'created_by', m.created_by,
             'recall_count', l.recall_count, 'used_count', l.used_count, 'last_recalled_at', l.last_recalled_at,
             'embedding_model', l.embedding_model, 'metadata', coalesce(m.metadata, '{}'),
             'ledger_metadata', l.metadata, 'created_at', m.created_at,
             'updated_at', greatest(m.updated_at, l.updated_at)) order by w.position)
    from unnest(p_memory_ids) with ordinality as w (memory_id, position)
    join public.agent_memories m
      on m.id = w.memory_id and m.workspace_id = p_workspace_id and m.memory_type = 'decision'
    join public.agent_decision_ledger l on l.memory_id = m.id and l.set_aside_at is null), '[]');
end
$$;

comment on function ranked_ledger.decisions_json(text, uuid[]) is
  'The decisions of a workspace as a jsonb array, in the order of the ids; an id that is none of them is left out.';

create or replace function ranked_ledger.decision_json(p_workspace_id text, p_memory_id uuid)
returns jsonb language sql stable
set search_path = public, extensions, pg_temp
as $$
  select ranked_ledger.decisions_json(p_workspace_id, array[p_memory_id]) -> 0
$$;

comment on function ranked_ledger.decision_json(text, uuid) is 'One decision of a workspace, null where there is none.';
