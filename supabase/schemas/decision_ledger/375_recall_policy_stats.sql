create or replace function public.recall_policy_stats(p_workspace_id text, p_since timestamptz default null)
returns jsonb language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
begin
  perform ranked_ledger.check_workspace(p_workspace_id);
  return coalesce((
    select jsonb_agg(to_jsonb(s) order by s.recall_policy)
    from (
      select coalesce(t.response_policy ->> 'recall_policy', 'vector') as recall_policy,
             count(distinct t.id) as recall_requests,
             count(i.id) as items_returned,
             (avg(i.similarity) filter (
               where coalesce(i.use_policy_snapshot ->> 'relevance_source', '') not in ('fts', 'none')))::float8 as avg_similarity,
             avg(i.ranking_score)::float8 as avg_ranking_score,
             (avg((i.used is true)::int) filter (where i.id is not null))::float8 as used_rate,
             (avg((i.ignored_reason is not null)::int) filter (where i.id is not null))::float8 as ignored_rate
      from public.agent_memory_recall_traces t
      left join public.agent_memory_recall_items i on i.trace_id = t.id and i.returned
      where t.workspace_id = p_workspace_id and (p_since is null or t.created_at >= p_since)
      group by 1) as s), '[]');
end
$$;

comment on function public.recall_policy_stats(text, timestamptz) is
  'The columns of the view agent_recall_policy_stats, of one workspace and since a time.';
