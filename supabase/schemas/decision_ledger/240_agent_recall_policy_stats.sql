-- Replaced in place, since a host's own views may stand on it. Where the published proposal's view has other column types,
-- which cannot be replaced (42P16), it is dropped first.
do $do$
declare
  v_view text := $view$
    create or replace view public.agent_recall_policy_stats with (security_invoker = true) as
    select coalesce(t.response_policy ->> 'recall_policy', 'vector') as recall_policy,
           count(distinct t.id) as recall_requests,
           count(i.id) as items_returned,
           -- a copy of the host's route stores 0 where there was no cosine, since its own lists always have one
           avg(i.similarity) filter (where coalesce(i.use_policy_snapshot ->> 'relevance_source', '') not in ('fts', 'none'))
             as avg_similarity,
           avg(i.ranking_score) as avg_ranking_score,
           avg((i.used is true)::int) filter (where i.id is not null) as used_rate,
           avg((i.ignored_reason is not null)::int) filter (where i.id is not null) as ignored_rate
    from public.agent_memory_recall_traces t
    left join public.agent_memory_recall_items i on i.trace_id = t.id and i.returned
    group by 1
  $view$;
begin
  execute v_view;
exception when invalid_table_definition then
  execute 'drop view public.agent_recall_policy_stats';
  execute v_view;
end
$do$;

comment on view public.agent_recall_policy_stats is
  'Recall policies side by side, from the traces: requests, items returned, mean similarity (of the items that had one) and score, shares of items that were used and ignored.';

revoke all on public.agent_recall_policy_stats from public, anon, authenticated, service_role;
grant select on public.agent_recall_policy_stats to service_role;
