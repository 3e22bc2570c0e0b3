-- A host marks the items of a recall in a route of its own, without a word to the ledger. Called behind that route, this
-- counts what it marked. A repeat counts nothing, so that the caller need not know what is new.

create or replace function public.count_recall_usage(p_request_id uuid)
returns int language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_trace   public.agent_memory_recall_traces;
  v_used    uuid[];
  v_counted uuid[];
begin
  -- guard: by the request id alone, for the host's route is told no workspace; nobody guesses one
  select * into v_trace from public.agent_memory_recall_traces t where t.request_id = p_request_id for key share;
  if not found then -- refused, since 0 would say that everything is counted already
    raise sqlstate 'RL404' using
      message = format('There is no recall %s.', coalesce(p_request_id::text, 'without a request id')),
      hint = 'Use the request_id of a recall that left a trace; traces may have been pruned.';
  end if;
  if coalesce(v_trace.response_policy ->> 'recall_policy', 'vector') = 'vector' then
    return 0; -- what the ledger did not find, it does not count
  end if;

  -- lock
  v_used := array(select i.memory_id from public.agent_memory_recall_items i
                  where i.trace_id = v_trace.id and i.used and i.use_policy_snapshot -> 'usage_counted' is distinct from 'true');
  perform ranked_ledger.lock_items(v_trace.id, v_used);

  -- mutate: what has no ledger row yet stays unmarked, and is counted by a call after its enrolment
  with counted as (
    update public.agent_memory_recall_items i
    set use_policy_snapshot = ranked_ledger.with_usage_counted(i.use_policy_snapshot)
    from public.agent_decision_ledger l
    where i.trace_id = v_trace.id and i.memory_id = any (v_used) and l.memory_id = i.memory_id
      and i.used and i.use_policy_snapshot -> 'usage_counted' is distinct from 'true' -- as it is under the lock
    returning i.memory_id)
  select coalesce(array_agg(c.memory_id), '{}') into v_counted from counted c;
  return ranked_ledger.count_recalls(v_counted, 0, 1);
end
$$;

comment on function public.count_recall_usage(uuid) is
  'Counts the items of a recall that a host has marked as used by itself, each once for ever. Of a trace whose policy is not the host''s own. Returns how many were counted.';
