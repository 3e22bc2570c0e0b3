-- Settles what transactions under an old snapshot left provisional, streams in sorted order as everywhere.
create or replace function ranked_ledger.settle_leftovers(p_workspace_id text)
returns int language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_stream_id uuid;
  v_settled   int := 0;
begin
  -- a stream whose newest step is not that of its rows finds it again, as one that lost a row does
  insert into ranked_ledger.pending_steps (stream_id)
  select s.stream_id from ranked_ledger.streams s
  where (p_workspace_id is null or s.workspace_id = p_workspace_id)
    and s.newest_step <> ranked_ledger.newest_settled_step(s.stream_id);
  for v_stream_id in
    select distinct p.stream_id from ranked_ledger.pending_steps p
    left join public.agent_decision_ledger l on l.memory_id = p.memory_id
    where p_workspace_id is null or l.workspace_id = p_workspace_id or l.memory_id is null
    order by p.stream_id
  loop
    v_settled := v_settled + coalesce(ranked_ledger.settle_stream(v_stream_id), 0);
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
    left join public.agent_decision_ledger l on l.memory_id = m.id
    where (p_workspace_id is null or m.workspace_id = p_workspace_id)
      and (l.memory_id is not null
             and (l.stream_id <> ranked_ledger.stream_id(m.workspace_id, m.project_id, m.task_id)
                  or (l.set_aside_at is null) <> (m.memory_type = 'decision')
                  or l.flow_id is distinct from m.flow_id
                  or l.search_lexemes is null)
           or exists (select from ranked_ledger.enrolment_failures f where f.memory_id = m.id and f.operation = 'follow'))
    order by m.id limit p_limit
  loop
    begin
      perform ranked_ledger.follow_decision(v_memory);
      delete from ranked_ledger.enrolment_failures f where f.memory_id = v_memory.id;
      v_followed := v_followed + 1;
    exception when others then
      perform ranked_ledger.note_failure(v_memory.id, v_memory.workspace_id, 'mend', sqlerrm, sqlstate);
    end;
  end loop;
  return v_followed;
end
$$;

comment on function ranked_ledger.follow_strays(text, int) is
  'Brings ledger rows that disagree with their memory back into agreement.';

create or replace function public.enroll_missing_decisions(p_workspace_id text default null, p_limit int default 10000)
returns jsonb language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_chunk    public.agent_memories[];
  v_missing  bigint;
  v_tried    int := 0;
  v_enrolled int := 0;
  v_settled  int;
  v_followed int;
begin
  if coalesce(p_limit, 0) not between 1 and 1000000 then
    raise sqlstate '22023' using message = 'p_limit is a number from 1 to 1,000,000';
  end if;
  for v_chunk in
    select array_agg(c.memory order by c.position)
    from (select m as memory, row_number() over (order by m.created_at, m.id) as position
          from public.agent_memories m
          where m.memory_type = 'decision' and (p_workspace_id is null or m.workspace_id = p_workspace_id)
            and not exists (select from public.agent_decision_ledger l where l.memory_id = m.id)
          order by m.created_at, m.id limit p_limit) as c
    group by (c.position - 1) / 500 order by (c.position - 1) / 500
  loop
    v_tried := v_tried + cardinality(v_chunk);
    v_enrolled := v_enrolled + ranked_ledger.enroll_or_note(v_chunk);
  end loop;

  v_followed := ranked_ledger.follow_strays(p_workspace_id, p_limit);
  v_settled := ranked_ledger.settle_leftovers(p_workspace_id);

  delete from ranked_ledger.enrolment_failures f
  where (p_workspace_id is null or f.workspace_id is not distinct from p_workspace_id)
    and f.operation = 'enrol'
    and (exists (select from public.agent_decision_ledger l where l.memory_id = f.memory_id)
         or not exists (select from public.agent_memories m where m.id = f.memory_id));

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
  -- rows of an install of the published proposal: their streams and their words
  insert into ranked_ledger.streams (stream_id, workspace_id, project_id, task_id, newest_step)
  select distinct on (l.stream_id) l.stream_id, l.workspace_id, l.project_id, l.task_id,
         ranked_ledger.newest_settled_step(l.stream_id)
  from public.agent_decision_ledger l
  where not exists (select from ranked_ledger.streams s where s.stream_id = l.stream_id)
  order by l.stream_id
  on conflict (stream_id) do nothing;

  while (public.enroll_missing_decisions(null, 1000000) ->> 'more')::boolean loop
    null;
  end loop;
end
$$;

comment on function ranked_ledger.backfill() is 'What an install does last, with all that was there before it.';
