create or replace function public.prune_traces(p_workspace_id text, p_before timestamptz, p_limit int default 1000)
returns jsonb language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_deleted int;
begin
  -- guard
  perform ranked_ledger.check_workspace(p_workspace_id);
  if p_before is null or p_limit is null or p_limit not between 1 and 10000 then
    raise sqlstate '22023' using
      message = 'p_before is missing, or p_limit is not a number from 1 to 10000.',
      hint = 'Say up to when traces go, and call again while the answer says more.';
  end if;

  -- mutate: a trace that somebody is marking is left for the next call
  with old as materialized (
    select t.id from public.agent_memory_recall_traces t
    where t.workspace_id = p_workspace_id and t.created_at < p_before
    order by t.created_at, t.id limit p_limit for update skip locked)
  delete from public.agent_memory_recall_traces t using old where t.id = old.id;
  get diagnostics v_deleted = row_count;

  -- answer: a full portion, or the caller would turn round what is locked
  return jsonb_build_object('deleted', v_deleted, 'more', v_deleted = p_limit and exists (
    select from public.agent_memory_recall_traces t where t.workspace_id = p_workspace_id and t.created_at < p_before));
end
$$;

comment on function public.prune_traces(text, timestamptz, int) is
  'Deletes traces that are older than a time, oldest first, p_limit at most, with their items; counters and audit events stay.';
