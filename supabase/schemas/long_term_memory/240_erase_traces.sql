-- Traces of the ledger. One belongs to a subject when it returned a decision about them, or when its caller said so: its
-- question and payload go. Who reads the items for what was used and ignored reads the same numbers as before.

create or replace function long_term_memory.traces_of(
  p_org_id uuid, p_subject_type text, p_subject_id uuid, p_workspaces text[], p_decisions uuid[])
returns uuid[] language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
begin
  return array(
    select t.id from public.agent_memory_recall_traces t
    where t.workspace_id::text = any (p_workspaces) and t.id in (
      select s.trace_id from long_term_memory.trace_subjects s
      where s.org_id = p_org_id and s.subject_type = p_subject_type and s.subject_id = p_subject_id
      union
      select i.trace_id from public.agent_memory_recall_items i where i.memory_id = any (p_decisions))
    order by t.id);
end
$$;

comment on function long_term_memory.traces_of(uuid, text, uuid, text[], uuid[]) is
  'The traces that belong to a subject, in workspaces of the organization.';

create or replace function long_term_memory.erase_traces(
  p_org_id uuid, p_subject_type text, p_subject_id uuid, p_traces uuid[])
returns jsonb language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_traces int;
begin
  v_traces := cardinality(long_term_memory.empty_rows(
    'public.agent_memory_recall_traces', 'id', p_traces, '{runtime_name,runtime_version,schema_version}',
    '{"query": "''''", "response_policy": "long_term_memory.kept_facts(t.response_policy)"}'));
  -- why something was not used, in a question about them: unless it is about somebody else
  update public.agent_memory_recall_items i set ignored_reason = '[erased]'
  where i.trace_id = any (p_traces) and i.ignored_reason <> '[erased]' and not exists (
    select from long_term_memory.decision_subjects s
    where s.memory_id = i.memory_id and s.erased_at is null
      and (s.org_id, s.subject_type, s.subject_id) <> (p_org_id, p_subject_type, p_subject_id));
  return jsonb_build_object('traces', v_traces, 'audit_events', long_term_memory.empty_audit('trace_id', p_traces));
end
$$;

comment on function long_term_memory.erase_traces(uuid, text, uuid, uuid[]) is
  'Takes question, payload and reasons out of traces, and the payloads out of their audit events. Answers how many: traces, audit_events.';
