create or replace function ranked_ledger.count_recalls(p_memory_ids uuid[], p_recalled int, p_used int)
returns int language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_counted int;
begin
  -- rows locked first and in one order: `where id = any(...)` alone met 18 deadlocks in 8 seconds under 16 clients
  with locked as materialized (
    select l.memory_id from public.agent_decision_ledger l
    where l.memory_id = any (p_memory_ids) order by l.memory_id for no key update)
  update public.agent_decision_ledger l
  set recall_count = least(2147483647, l.recall_count::bigint + p_recalled),
      used_count = least(2147483647, l.used_count::bigint + p_used),
      last_recalled_at = case when p_recalled > 0 then now() else l.last_recalled_at end
  from locked k where l.memory_id = k.memory_id;
  get diagnostics v_counted = row_count;
  return v_counted;
end
$$;

comment on function ranked_ledger.count_recalls(uuid[], int, int) is
  'Raises the counters of decisions, each once however often it is named. Returns the rows touched.';

create or replace function public.touch_decision_recall(p_memory_ids uuid[], p_used boolean default false)
returns int language sql
set search_path = public, extensions, pg_temp
as $$
  select ranked_ledger.count_recalls(p_memory_ids, 1, coalesce(p_used, false)::int)
$$;

comment on function public.touch_decision_recall(uuid[], boolean) is
  'A recall of decisions that left no trace, as the published proposal counts it: recall_count rises, with p_used used_count too. Returns the rows touched.';
