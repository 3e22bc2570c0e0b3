-- What triggers could not do, done later: by the next settlement of the stream, or by the backfill.

create or replace function ranked_ledger.mend_transient_failures(p_stream_ids uuid[])
returns void language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_memories public.agent_memories[];
  v_memory   public.agent_memories;
begin
  select array_agg(x.memory order by x.id) into v_memories
  from (select f.id, m as memory
        from ranked_ledger.enrolment_failures f join public.agent_memories m on m.id = f.memory_id
        where f.is_transient and f.stream_id = any (p_stream_ids)
        order by f.id limit 200 -- a host's commit waits for it
        for update of f skip locked for key share of m skip locked) as x;
  if v_memories is null then
    return;
  end if;
  begin
    perform ranked_ledger.follow_memories(v_memories);
    delete from ranked_ledger.enrolment_failures f where f.memory_id in (select m.id from unnest(v_memories) as m);
    return;
  exception when others then
    null; -- now one by one
  end;
  foreach v_memory in array v_memories loop
    begin
      perform ranked_ledger.follow_memories(array[v_memory]);
      delete from ranked_ledger.enrolment_failures f where f.memory_id = v_memory.id;
    exception when others then
      perform ranked_ledger.note_failures(array[v_memory], 'follow', sqlerrm, sqlstate); -- again, where it was a lock
    end;
  end loop;
end
$$;

comment on function ranked_ledger.mend_transient_failures(uuid[]) is
  'Enrols or follows the memories of these streams for which only the moment was wrong, in the order of their writes.';

create or replace function ranked_ledger.settle_leftovers(p_workspace_id text)
returns int language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_chunk   uuid[];
  v_settled int := 0;
begin
  -- whatever another transaction left and we can see is left over, also where it could not say so
  update ranked_ledger.pending_steps p set is_left_over = true
  where not p.is_left_over and p.txid <> pg_current_xact_id();

  -- rows that have no stream: those of an install of the published proposal
  insert into ranked_ledger.streams (stream_id, workspace_id, project_id, task_id, newest_step)
  select distinct on (l.stream_id) l.stream_id, l.workspace_id, l.project_id, l.task_id,
         ranked_ledger.newest_settled_step(l.stream_id)
  from public.agent_decision_ledger l
  where (p_workspace_id is null or l.workspace_id = p_workspace_id)
    and not exists (select from ranked_ledger.streams s where s.stream_id = l.stream_id)
  order by l.stream_id
  on conflict (stream_id) do nothing;

  -- a stream whose newest step is not that of its rows finds it again, as one that lost a row does
  insert into ranked_ledger.pending_steps (stream_id)
  select s.stream_id from ranked_ledger.streams s
  where (p_workspace_id is null or s.workspace_id = p_workspace_id)
    and s.newest_step <> ranked_ledger.newest_settled_step(s.stream_id);

  for v_chunk in
    select array_agg(s.stream_id)
    from (select d.stream_id, row_number() over (order by d.stream_id) as position
          from (select distinct p.stream_id from ranked_ledger.pending_steps p
                left join public.agent_decision_ledger l on l.memory_id = p.memory_id
                where p_workspace_id is null or l.workspace_id = p_workspace_id or l.memory_id is null) as d) as s
    group by (s.position - 1) / 1000 order by (s.position - 1) / 1000
  loop
    v_settled := v_settled + ranked_ledger.settle_streams(v_chunk);
  end loop;
  return v_settled;
end
$$;

comment on function ranked_ledger.settle_leftovers(text) is 'Settles every stream of a workspace (null: of all) that has provisional steps.';

create or replace function ranked_ledger.follow_strays(p_workspace_id text, p_limit int)
returns int language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_memory   public.agent_memories;
  v_followed int := 0;
begin
  for v_memory in
    select m.* from public.agent_memories m
    join public.agent_decision_ledger l on l.memory_id = m.id
    where (p_workspace_id is null or m.workspace_id = p_workspace_id)
      and (m.memory_type = 'decision'
             and (l.stream_id <> ranked_ledger.stream_id(m.workspace_id, m.project_id, m.task_id)
                  or l.set_aside_at is not null
                  or l.flow_id is distinct from m.flow_id
                  or l.search_lexemes is null)
           or m.memory_type <> 'decision' and l.set_aside_at is null
           or exists (select from ranked_ledger.enrolment_failures f where f.memory_id = m.id))
    order by m.id limit p_limit
  loop
    begin
      v_followed := v_followed + ranked_ledger.follow_memories(array[v_memory]);
      delete from ranked_ledger.enrolment_failures f where f.memory_id = v_memory.id;
    exception when others then
      perform ranked_ledger.note_failures(array[v_memory], 'follow', sqlerrm, sqlstate);
    end;
  end loop;

  -- deleted while triggers, foreign keys among them, were off
  delete from public.agent_decision_ledger l
  where (p_workspace_id is null or l.workspace_id = p_workspace_id)
    and not exists (select from public.agent_memories m where m.id = l.memory_id);

  -- an edge may be added while an end of it moves to another workspace, each unseen by the other
  perform ranked_ledger.drop_foreign_edges(array(
    select e.from_memory_id from public.agent_decision_edges e
    join public.agent_memories f on f.id = e.from_memory_id
    join public.agent_memories t on t.id = e.to_memory_id
    where f.workspace_id <> t.workspace_id and (p_workspace_id is null or p_workspace_id in (f.workspace_id, t.workspace_id))));
  return v_followed;
end
$$;

comment on function ranked_ledger.follow_strays(text, int) is
  'Brings ledger rows that disagree with their memory back into agreement, and edges with the rule on workspaces.';

create or replace function public.enroll_missing_decisions(p_workspace_id text default null, p_limit int default 10000)
returns jsonb language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_memory   public.agent_memories;
  v_chunk    public.agent_memories[] := '{}';
  v_bytes    bigint := 0;
  v_missing  bigint;
  v_tried    int := 0;
  v_enrolled int := 0;
  v_settled  int;
  v_followed int;
begin
  if coalesce(p_limit, 0) not between 1 and 1000000 then
    raise sqlstate '22023' using message = 'p_limit is a number from 1 to 1,000,000';
  end if;
  for v_memory in
    select m.* from public.agent_memories m
    where m.memory_type = 'decision' and (p_workspace_id is null or m.workspace_id = p_workspace_id)
      and not exists (select from public.agent_decision_ledger l where l.memory_id = m.id)
    order by m.created_at, m.id limit p_limit
  loop
    v_tried := v_tried + 1;
    v_chunk := array_append(v_chunk, v_memory);
    v_bytes := v_bytes + octet_length(v_memory.content) + coalesce(pg_column_size(v_memory.metadata), 0);
    if ranked_ledger.is_full(v_chunk, v_bytes) then
      v_enrolled := v_enrolled + ranked_ledger.attend_or_note(v_chunk, 'enrol');
      v_chunk := '{}';
      v_bytes := 0;
    end if;
  end loop;
  v_enrolled := v_enrolled + ranked_ledger.attend_or_note(v_chunk, 'enrol');

  v_followed := ranked_ledger.follow_strays(p_workspace_id, p_limit);
  v_settled := ranked_ledger.settle_leftovers(p_workspace_id);
  perform ranked_ledger.mend_copies(p_workspace_id);

  delete from ranked_ledger.enrolment_failures f
  where (p_workspace_id is null or f.workspace_id is not distinct from p_workspace_id)
    and (f.operation = 'enrol' and exists (select from public.agent_decision_ledger l where l.memory_id = f.memory_id)
         or not exists (select from public.agent_memories m where m.id = f.memory_id));

  -- both ends of an edge deleted at once, each unseen by the other
  delete from ranked_ledger.lost_grounds g where not exists (select from public.agent_memories m where m.id = g.memory_id);

  select count(*) into v_missing from public.agent_memories m
  where m.memory_type = 'decision' and (p_workspace_id is null or m.workspace_id = p_workspace_id)
    and not exists (select from public.agent_decision_ledger l where l.memory_id = m.id);
  return jsonb_build_object('enrolled', v_enrolled, 'followed', v_followed, 'settled', v_settled,
                            'failed', v_tried - v_enrolled, 'more', v_missing > v_tried - v_enrolled);
end
$$;

comment on function public.enroll_missing_decisions(text, int) is
  'The backfill: enrols decisions that have no ledger row (by created_at, then id), mends rows that disagree with their memory, settles provisional steps, and clears the failures that are mended. Safe to repeat; answers {enrolled, followed, settled, failed, more}.';

create or replace function ranked_ledger.backfill()
returns void language plpgsql
set search_path = public, extensions, pg_temp
as $$
begin
  while (public.enroll_missing_decisions(null, 1000000) ->> 'more')::boolean loop
    null;
  end loop;
end
$$;

comment on function ranked_ledger.backfill() is 'What an install does last, with all that was there before it.';
