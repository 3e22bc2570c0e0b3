-- A decision whose memory changes: retyped, moved, edited, its lifecycle changed.

create or replace function ranked_ledger.drop_foreign_edges(p_memory_ids uuid[])
returns int language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_gone jsonb;
begin
  with foreign_edge as materialized (
    select e.id from public.agent_decision_edges e
    where (e.from_memory_id = any (p_memory_ids) or e.to_memory_id = any (p_memory_ids))
      and (select m.workspace_id from public.agent_memories m where m.id = e.from_memory_id)
          <> (select m.workspace_id from public.agent_memories m where m.id = e.to_memory_id)
    order by e.id for update),
  gone as (
    delete from public.agent_decision_edges e using foreign_edge f where e.id = f.id
    returning e.from_memory_id, e.to_memory_id, e.relation)
  select jsonb_agg(to_jsonb(g)) into v_gone from gone g;
  if v_gone is null then
    return 0;
  end if;

  begin
    insert into public.agent_memory_audit_events (event_type, workspace_id, memory_id, actor_kind, payload)
    select 'memory_edited', m.workspace_id, m.id, 'system', jsonb_build_object(
      'kind', 'decision_edges_dropped', 'reason', 'moved to another workspace', 'edges', jsonb_agg(g.value))
    from jsonb_array_elements(v_gone) as g
    join public.agent_memories m
      on m.id = case when (g.value ->> 'from_memory_id')::uuid = any (p_memory_ids)
                     then (g.value ->> 'from_memory_id')::uuid else (g.value ->> 'to_memory_id')::uuid end
    group by m.workspace_id, m.id;
  exception when others then -- a decision must not stay in the workspace that it left because the host's audit refuses a row
    raise warning 'Ranked Ledger: edges across workspaces were dropped without an audit event (%)', sqlerrm;
  end;
  return jsonb_array_length(v_gone);
end
$$;

comment on function ranked_ledger.drop_foreign_edges(uuid[]) is
  'Deletes the edges of decisions whose other end is in another workspace, with one audit event a decision.';

create or replace function ranked_ledger.follow_memories(p_memories public.agent_memories[])
returns int language plpgsql
set search_path = public, extensions, pg_temp
set enable_seqscan = off -- as for settle_streams
set plan_cache_mode = force_generic_plan
as $$
declare
  v_moved    uuid[]; -- to another stream
  v_streams  uuid[]; -- from these
  v_emigrant uuid[]; -- to another workspace
begin
  perform ranked_ledger.enroll_memories(array(
    select m from unnest(p_memories) as m
    where not exists (select from public.agent_decision_ledger l where l.memory_id = m.id)));

  perform set_config('ranked_ledger.is_following', '1', true); -- what is moved gets its own mark, below
  with config as materialized (
    select w.workspace_id, ranked_ledger.text_config(w.workspace_id) as text_config
    from (select distinct m.workspace_id::text from unnest(p_memories) as m) as w),
  held as materialized ( -- in id order, as whoever else locks several
    select l.memory_id, l.stream_id as old_stream_id, l.workspace_id as old_workspace_id, l.set_aside_at is null as in_force,
           m.memory_type = 'decision' as is_decision, m.workspace_id, m.project_id, m.task_id, m.flow_id, m.ordinality,
           ranked_ledger.stream_id(m.workspace_id, m.project_id, m.task_id) as stream_id,
           ranked_ledger.decision_lexemes(c.text_config, m.content, l.rationale, m.summary) as search_lexemes
    from unnest(p_memories) with ordinality as m
    join config c on c.workspace_id = m.workspace_id
    join public.agent_decision_ledger l on l.memory_id = m.id
    order by l.memory_id for no key update of l),
  base as materialized (
    select s.stream_id, ranked_ledger.next_provisional_step(s.stream_id) as next_step
    from (select distinct h.stream_id from held h where h.is_decision and h.stream_id <> h.old_stream_id) as s),
  target as materialized (
    select h.*, b.stream_id is not null and h.is_decision and h.stream_id <> h.old_stream_id as is_moved,
           least(ranked_ledger.max_step(), b.next_step - 1 + count(*) filter (where h.stream_id <> h.old_stream_id)
                 over (partition by h.stream_id order by h.ordinality)) as next_step
    from held h left join base b on b.stream_id = h.stream_id),
  aside as (
    update public.agent_decision_ledger l set set_aside_at = now(), updated_at = now()
    from target t where l.memory_id = t.memory_id and not t.is_decision and l.set_aside_at is null),
  followed as (
    update public.agent_decision_ledger l
    set workspace_id = t.workspace_id, project_id = t.project_id, task_id = t.task_id, flow_id = t.flow_id,
        step_index = case when t.is_moved then t.next_step else l.step_index end,
        metadata = case when t.is_moved then l.metadata || jsonb_build_object(
                     'moves', coalesce(l.metadata -> 'moves', '[]') || jsonb_build_array(jsonb_build_object(
                       'workspace_id', l.workspace_id, 'project_id', l.project_id, 'task_id', l.task_id,
                       'step_index', l.step_index, 'at', now()))) else l.metadata end,
        search_lexemes = t.search_lexemes, set_aside_at = null, updated_at = now()
    from target t
    where l.memory_id = t.memory_id and t.is_decision
      and (t.is_moved or not t.in_force or l.flow_id is distinct from t.flow_id
           or l.search_lexemes is distinct from t.search_lexemes))
  select array_agg(t.memory_id order by t.ordinality), array_agg(distinct t.old_stream_id),
         array_agg(t.memory_id) filter (where t.old_workspace_id <> t.workspace_id)
  into v_moved, v_streams, v_emigrant
  from target t where t.is_moved;

  perform set_config('ranked_ledger.is_following', '', true);
  if v_moved is not null then
    perform set_config('ranked_ledger.unsettled', '1', true);
    delete from ranked_ledger.pending_steps p where p.memory_id = any (v_moved);
    insert into ranked_ledger.pending_steps (stream_id, memory_id) -- one statement: the trigger on it may be immediate
    select x.stream_id, x.memory_id
    from (select s.stream_id, null::uuid as memory_id, s.place from unnest(v_streams) with ordinality as s (stream_id, place)
          union all
          select l.stream_id, l.memory_id, v.place
          from unnest(v_moved) with ordinality as v (memory_id, place)
          join public.agent_decision_ledger l on l.memory_id = v.memory_id) as x
    order by x.place;
  end if;
  if v_emigrant is not null then
    perform ranked_ledger.drop_foreign_edges(v_emigrant);
  end if;
  return cardinality(p_memories);
end
$$;

comment on function ranked_ledger.follow_memories(public.agent_memories[]) is
  'Makes ledger rows agree with their memories: enrolled, set aside or restored, moved (the next free step there, the old one in the row''s metadata), their words indexed. Does nothing where they agree.';

create or replace function ranked_ledger.follow_updated_memories()
returns trigger language plpgsql security definer -- as for enrolment: the writer may have no right on our tables
set search_path = public, extensions, pg_temp
as $$
declare
  v_memory public.agent_memories;
  v_chunk  public.agent_memories[] := '{}';
  v_bytes  bigint := 0;
begin
  -- A plan is made once a session, by its first update, mostly of one row. A nested loop over both tables, as a join gets
  -- then, took 40 seconds of a later update of 10,000 rows: a full join cannot be one, and the rest goes by index.
  begin
    insert into ranked_ledger.lifecycle_transitions (memory_id, lifecycle_before, lifecycle_status, stream_id, stream_step)
    select c.id, c.status_before, c.status_after, l.stream_id, s.newest_step -- with what this transaction has recorded and not settled yet
    from (select n.id, o.lifecycle_status as status_before, n.lifecycle_status as status_after
          from memories_after n full join memories_before o on o.id = n.id
          where n.memory_type is not distinct from 'decision' and n.lifecycle_status is distinct from o.lifecycle_status
          offset 0) as c
    cross join lateral (select d.stream_id from public.agent_decision_ledger d where d.memory_id = c.id offset 0) as l
    left join lateral (
      select x.step_index as newest_step from public.agent_decision_ledger x
      where x.stream_id = l.stream_id and x.step_index <= ranked_ledger.max_step()
      order by x.step_index desc limit 1) as s on true;
  exception when others then
    raise warning 'Ranked Ledger: a lifecycle transition was not noted (%)', sqlerrm;
  end;

  for v_memory in -- as they are now: a trigger of the host may have changed them once more
    select m.*
    from (select n.id
          from memories_after n full join memories_before o on o.id = n.id
          where 'decision' in (o.memory_type, n.memory_type)
            and (n.memory_type, n.workspace_id, n.project_id, n.task_id, n.flow_id, n.content, n.summary)
                is distinct from (o.memory_type, o.workspace_id, o.project_id, o.task_id, o.flow_id, o.content, o.summary)
          offset 0) as c
    cross join lateral (select a.* from public.agent_memories a where a.id = c.id offset 0) as m
  loop
    v_chunk := array_append(v_chunk, v_memory);
    v_bytes := v_bytes + octet_length(v_memory.content) + coalesce(pg_column_size(v_memory.metadata), 0);
    if ranked_ledger.is_full(v_chunk, v_bytes) then
      perform ranked_ledger.attend_or_note(v_chunk, 'follow');
      v_chunk := '{}';
      v_bytes := 0;
    end if;
  end loop;
  if v_chunk <> '{}' then
    perform ranked_ledger.attend_or_note(v_chunk, 'follow');
  end if;
  return null;
exception when others then
  raise warning 'Ranked Ledger: decisions were not followed (%); enroll_missing_decisions mends it', sqlerrm;
  return null;
end
$$;

comment on function ranked_ledger.follow_updated_memories() is
  'The ledger follows its memories, a statement at a time. The host''s update goes through whatever happens here.';

-- A statement trigger, as for inserts: row by row, a task of 10,000 decisions that is renamed costs 10,000 subtransactions.
drop trigger if exists trg_agent_decision_ledger_follow on public.agent_memories;
create trigger trg_agent_decision_ledger_follow
  after update on public.agent_memories
  referencing old table as memories_before new table as memories_after
  for each statement execute function ranked_ledger.follow_updated_memories();
