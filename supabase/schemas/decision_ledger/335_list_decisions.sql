-- A page of decisions, ordered by step, then memory id. The cursor names the last row of the page, so that decisions that
-- are written between two pages neither repeat a row nor hide one.

create or replace function ranked_ledger.check_page(p_lifecycle text[], p_after jsonb, p_limit int)
returns void language plpgsql immutable
set search_path = public, extensions, pg_temp
as $$
declare
  v_problem text := case
    when p_limit is null or p_limit not between 1 and 500 then 'p_limit is not a number from 1 to 500.'
    when cardinality(p_lifecycle) = 0 then 'p_lifecycle is empty: leave it out for every lifecycle.'
    when array_ndims(p_lifecycle) > 1 or array_position(p_lifecycle, null) is not null
         or not p_lifecycle <@ array['active', 'stale', 'superseded', 'disputed', 'rejected']
      then 'p_lifecycle names a status that is not one of active, stale, superseded, disputed, rejected.'
    when p_after is not null and not case
           when jsonb_typeof(p_after) = 'object' and jsonb_typeof(p_after -> 'step_index') = 'number'
             then (p_after ->> 'step_index')::numeric between 0 and 2147483647
                  and (p_after ->> 'step_index')::numeric = trunc((p_after ->> 'step_index')::numeric)
                  and coalesce(p_after ->> 'memory_id' ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$', false)
           else false end
      then 'p_after is not a cursor: it takes the "next" of the page before.'
  end;
begin
  if v_problem is not null then
    raise sqlstate '22023' using message = v_problem, hint = 'docs/sql-api.md describes list_decisions.';
  end if;
end
$$;

comment on function ranked_ledger.check_page(text[], jsonb, int) is 'Refuses (22023) a limit, a lifecycle or a cursor that cannot be meant.';

create or replace function public.list_decisions(
  p_workspace_id text, p_project_id text default null, p_task_id text default null, p_lifecycle text[] default null,
  p_pinned boolean default null, p_newest_first boolean default true, p_after jsonb default null,
  p_limit int default 50)
returns jsonb language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
declare
  v_newest_first boolean := coalesce(p_newest_first, true);
  v_step         int;
  v_memory_id    uuid;
  v_found        uuid[];
  v_page         jsonb;
begin
  -- guard
  perform ranked_ledger.check_workspace(p_workspace_id);
  perform ranked_ledger.check_page(p_lifecycle, p_after, p_limit);
  v_step := (p_after ->> 'step_index')::numeric::int;
  v_memory_id := (p_after ->> 'memory_id')::uuid;

  -- find: one row more than the page says whether there is a next one; only the direction is not a parameter
  execute format($query$
    select array_agg(f.memory_id order by f.position)
    from (
      select l.memory_id, row_number() over (order by l.step_index %1$s, l.memory_id) as position
      from public.agent_decision_ledger l
      join public.agent_memories m on m.id = l.memory_id and m.memory_type = 'decision' and m.workspace_id = $1
      where l.workspace_id = $1 and l.set_aside_at is null
        and ($2 is null or l.project_id = $2) and ($3 is null or l.task_id = $3)
        and ($2 is null or $3 is null or l.stream_id = ranked_ledger.stream_id($1, $2, $3)) -- a stream has an index
        and ($4 is null or m.lifecycle_status = any ($4)) and ($5 is null or l.pinned = $5)
        and ($6 is null or (l.step_index %2$s= $6 and (l.step_index %2$s $6 or l.memory_id > $7)))
      order by l.step_index %1$s, l.memory_id limit $8) as f
    $query$, case when v_newest_first then 'desc' else 'asc' end, case when v_newest_first then '<' else '>' end)
  into v_found
  using p_workspace_id, p_project_id, p_task_id, p_lifecycle, p_pinned, v_step, v_memory_id, p_limit + 1;

  -- answer
  v_page := ranked_ledger.decisions_json(p_workspace_id, v_found[:p_limit]);
  return jsonb_build_object('decisions', v_page, 'next', case when cardinality(v_found) > p_limit then
    jsonb_build_object('step_index', v_page -> -1 -> 'step_index', 'memory_id', v_page -> -1 -> 'memory_id') end);
end
$$;

comment on function public.list_decisions(text, text, text, text[], boolean, boolean, jsonb, int) is
  'A page of the decisions of a workspace, newest step first unless asked otherwise: {"decisions": [...], "next": cursor or null}.';
