create or replace function public.record_decision(
  p_workspace_id text, p_content text, p_summary text default null, p_rationale text default null,
  p_alternatives jsonb default null, p_importance float8 default null, p_step_index bigint default null,
  p_project_id text default null, p_task_id text default null, p_flow_id text default null,
  p_depends_on uuid[] default null, p_embedding text default null, p_embedding_model text default null,
  p_pinned boolean default null, p_visibility text default null, p_created_by text default null,
  p_runtime_name text default null, p_metadata jsonb default null, p_idempotency_key text default null)
returns jsonb language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_decision jsonb := ranked_ledger.without_nulls(jsonb_build_object(
    'content', p_content, 'summary', p_summary, 'rationale', p_rationale, 'alternatives', p_alternatives,
    'importance', p_importance, 'step_index', p_step_index, 'project_id', p_project_id, 'task_id', p_task_id,
    'flow_id', p_flow_id, 'depends_on', p_depends_on, 'embedding', p_embedding, 'embedding_model', p_embedding_model,
    'pinned', p_pinned, 'visibility', p_visibility, 'created_by', p_created_by, 'runtime_name', p_runtime_name,
    'metadata', p_metadata));
  v_written  uuid[];
  v_memory_id uuid;
begin
  perform ranked_ledger.check_recording_workspace(p_workspace_id);
  v_written := ranked_ledger.claim_key(p_workspace_id, 'record_decision', p_idempotency_key, v_decision);
  if v_written is not null then
    return ranked_ledger.decision_json(p_workspace_id, v_written[1]) || '{"replayed": true}';
  end if;

  v_memory_id := ranked_ledger.write_decision(p_workspace_id, v_decision);
  perform ranked_ledger.settle_now();
  perform ranked_ledger.keep_result(p_workspace_id, 'record_decision', p_idempotency_key, array[v_memory_id]);
  return ranked_ledger.decision_json(p_workspace_id, v_memory_id) || '{"replayed": false}';
end
$$;

comment on function public.record_decision(text, text, text, text, jsonb, float8, bigint, text, text, text, uuid[], text, text,
  boolean, text, text, text, jsonb, text) is
  'Records a decision: thought, memory, ledger row and edges, or nothing. Answers the decision with its settled step; with an idempotency key a repeat answers the first one again.';
