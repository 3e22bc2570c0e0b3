-- Usage is marked once per trace and decision, however often it is sent: the first word counts.

create or replace function ranked_ledger.ignored_reasons(p_ignored jsonb)
returns table (memory_id uuid, reason text) language plpgsql immutable
set search_path = public, extensions, pg_temp
as $$
begin
  if jsonb_typeof(p_ignored) not in ('array', 'null') then
    raise sqlstate '22023' using
      message = 'p_ignored is not an array of {"memory_id", "reason"}.',
      hint = 'Send [{"memory_id": "...", "reason": "..."}]; the reason may be left out.';
  end if;
  if exists (
    select from jsonb_array_elements(case when jsonb_typeof(p_ignored) = 'array' then p_ignored else '[]' end) as i
    where not case when jsonb_typeof(i.value) = 'object'
                   then coalesce(i.value ->> 'memory_id' ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$', false)
                        and coalesce(jsonb_typeof(i.value -> 'reason'), 'null') in ('string', 'null')
                        and coalesce(octet_length(i.value ->> 'reason'), 0) <= 2000
                   else false end) then
    raise sqlstate '22023' using
      message = 'An element of p_ignored is not {"memory_id", "reason"} with a reason of at most 2000 bytes.',
      hint = 'Send [{"memory_id": "...", "reason": "..."}]; the reason may be left out.';
  end if;
  return query
    select distinct on (r.id) r.id, r.reason
    from (select (i.value ->> 'memory_id')::uuid as id, i.value ->> 'reason' as reason, i.ordinality
          from jsonb_array_elements(case when jsonb_typeof(p_ignored) = 'array' then p_ignored else '[]' end)
               with ordinality as i) as r
    order by r.id, r.ordinality;
end
$$;

comment on function ranked_ledger.ignored_reasons(jsonb) is
  'Which decisions were ignored and why, each once. Refuses (22023) what is not a list of them.';

-- A host may have stored something that is no object, which cannot take the mark: it is kept beside it.
create or replace function ranked_ledger.with_usage_counted(p_snapshot jsonb)
returns jsonb language sql immutable parallel safe
return case coalesce(jsonb_typeof(p_snapshot), 'null') when 'object' then p_snapshot when 'null' then '{}'
            else jsonb_build_object('snapshot', p_snapshot) end || '{"usage_counted": true}';

comment on function ranked_ledger.with_usage_counted(jsonb) is
  'An item''s snapshot with the mark that its use was counted, which is once for ever, whoever marks the item.';

create or replace function ranked_ledger.lock_items(p_trace_id uuid, p_memory_ids uuid[])
returns void language plpgsql
set search_path = public, extensions, pg_temp
as $$
begin
  perform 1 from public.agent_memories m
  where m.id in (select i.memory_id from public.agent_memory_recall_items i
                 where i.trace_id = p_trace_id and i.memory_id = any (p_memory_ids))
  order by m.id for key share;
  perform 1 from public.agent_memory_recall_items i
  where i.trace_id = p_trace_id and i.memory_id = any (p_memory_ids) order by i.memory_id for no key update;
end
$$;

comment on function ranked_ledger.lock_items(uuid, uuid[]) is
  'Locks the memories of a trace''s items, then the items, each in id order, as a forget comes by them.';

create or replace function ranked_ledger.mark_items(p_trace public.agent_memory_recall_traces, p_used uuid[], p_ignored jsonb)
returns table (memory_id uuid, was_used boolean) language plpgsql
set search_path = public, extensions, pg_temp
as $$
begin
  return query
    with wanted as (
      select u.id, true as used, null::text as reason from (select distinct x.id from unnest(p_used) as x (id)) as u
      union all
      select i.memory_id, false, coalesce(nullif(i.reason, ''), 'not said')
      from ranked_ledger.ignored_reasons(p_ignored) i where i.memory_id <> all (p_used)),
    marked as (
      update public.agent_memory_recall_items t
      set used = w.used, ignored_reason = w.reason,
          use_policy_snapshot = case when w.used then ranked_ledger.with_usage_counted(t.use_policy_snapshot)
                                     else t.use_policy_snapshot end
      from wanted w where t.trace_id = p_trace.id and t.memory_id = w.id and t.used is null
      returning t.memory_id, t.used),
    told as (
      insert into public.agent_memory_audit_events (event_type, workspace_id, project_id, memory_id, trace_id, payload)
      select case when k.used then 'memory_used' else 'memory_ignored' end, p_trace.workspace_id, p_trace.project_id,
             k.memory_id, p_trace.id, '{"kind": "recall_usage"}'
      from marked k)
    select k.memory_id, k.used from marked k;
end
$$;

comment on function ranked_ledger.mark_items(public.agent_memory_recall_traces, uuid[], jsonb) is
  'Marks items that were not marked before, with an audit event each, and returns those. What is named as used and as ignored was used.';

create or replace function public.mark_recall_usage(
  p_workspace_id text, p_request_id uuid, p_used uuid[] default null, p_ignored jsonb default null)
returns jsonb language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_used    uuid[];
  v_named   uuid[];
  v_unknown uuid[];
  v_trace   public.agent_memory_recall_traces;
  v_counted uuid[];
  v_marked  uuid[];
  v_ignored int;
begin
  -- guard
  perform ranked_ledger.check_workspace(p_workspace_id);
  v_used := array_remove(coalesce(p_used, '{}'), null);
  select array_agg(distinct n.id) into v_named
  from (select unnest(v_used) as id union all select i.memory_id from ranked_ledger.ignored_reasons(p_ignored) i) as n;
  if cardinality(v_named) > 1000 then
    raise sqlstate '22023' using
      message = 'p_used and p_ignored name more than 1000 decisions.',
      hint = 'A recall has 1000 items at most.';
  end if;
  select * into v_trace from public.agent_memory_recall_traces t
  where t.request_id = p_request_id and t.workspace_id = p_workspace_id for key share;
  if not found then
    raise sqlstate 'RL404' using
      message = format('There is no recall %s in this workspace.', coalesce(p_request_id::text, 'without a request id')),
      hint = 'Use the request_id that recall_decisions answered; traced says whether it left a trace.';
  end if;

  -- lock: the trace is held against pruning already
  perform ranked_ledger.lock_items(v_trace.id, v_named);
  select coalesce(array_agg(n.id order by n.id), '{}') into v_unknown from unnest(v_named) as n (id)
  where not exists (select from public.agent_memory_recall_items i where i.trace_id = v_trace.id and i.memory_id = n.id);
  v_counted := array(select i.memory_id from public.agent_memory_recall_items i
                     where i.trace_id = v_trace.id and i.use_policy_snapshot -> 'usage_counted' = 'true');

  -- mutate
  select coalesce(array_agg(k.memory_id order by k.memory_id) filter (where k.was_used), '{}'),
         count(*) filter (where not k.was_used)
  into v_marked, v_ignored from ranked_ledger.mark_items(v_trace, v_used, p_ignored) k;
  -- the recall itself was counted with its trace; a use may have been, before a host took its mark back
  perform ranked_ledger.count_recalls(array(select unnest(v_marked) except select unnest(v_counted)), 0, 1);

  -- answer
  return jsonb_build_object('used', cardinality(v_marked), 'ignored', v_ignored, 'unknown', to_jsonb(v_unknown),
    'already', coalesce(cardinality(v_named), 0) - cardinality(v_unknown) - cardinality(v_marked) - v_ignored);
end
$$;

comment on function public.mark_recall_usage(text, uuid, uuid[], jsonb) is
  'What became of a recall''s items: used, or ignored with a reason. Each item is marked once; a repeat counts as already.';
