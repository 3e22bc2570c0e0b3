-- A recall as of a moment: what was there then, and how it stood. Nothing decided later is in the answer, nor in its line.
--
-- Of then: which decisions there are, their lifecycle, what depends on what, the newest step of each stream, who replaced whom,
-- lost grounds, the review status as far as review actions tell it. Of today, since no table keeps what they were: texts,
-- importance, pins, visibility, the words' rarity, what is a decision, in which stream it stands and at which step; what was
-- deleted or unlinked, and a supersession that was taken back, is not there at any time, nor does a deleted decision tell when
-- its stream went past a step. A lifecycle that changed before this ledger was installed counts as if it had always been so.
--
-- Answered from the tables alone: the copies of 160 hold what is, not what was.

create or replace function ranked_ledger.moment_of(p_question ranked_ledger.question)
returns ranked_ledger.moment language sql immutable
set search_path = public, extensions, pg_temp
as $$
  select row(q.as_of, q.as_of_step, q.as_of_stream)::ranked_ledger.moment from (select (p_question).*) as q where q.as_of is not null
$$;

comment on function ranked_ledger.moment_of(ranked_ledger.question) is 'The moment that a question is asked as of; null: now.';

create or replace function ranked_ledger.check_moment(p_question ranked_ledger.question, p_as_of_step int, p_as_of timestamptz)
returns void language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
begin
  if p_as_of_step is not null and p_as_of is not null then
    raise sqlstate '22023' using
      message = 'p_as_of_step and p_as_of are both given',
      hint = 'Give the step for one task, or the time for any scope.';
  elsif p_as_of_step not between 0 and ranked_ledger.max_step() then
    raise sqlstate '22023' using
      message = format('p_as_of_step is %s, and steps are from 0 to %s', p_as_of_step, ranked_ledger.max_step()),
      hint = 'Give a step of the task; what was decided behind it is left out.';
  elsif p_as_of_step is not null and p_question.task_id is null then
    raise sqlstate '22023' using
      message = 'p_as_of_step counts the steps of one task, and no p_task_id is given',
      hint = 'Name the task, or give a time as p_as_of: it holds across tasks.';
  elsif p_as_of_step is not null and p_question.project_id is null
        and (select count(distinct l.stream_id) > 1 from public.agent_decision_ledger l
             where l.workspace_id = p_question.workspace_id and l.task_id = p_question.task_id and l.set_aside_at is null) then
    raise sqlstate '22023' using
      message = 'p_as_of_step counts the steps of one task, and several projects of the workspace have a task of this name',
      hint = 'Name the project as p_project_id too. Of the task without a project, ask by a time (p_as_of): it holds across tasks.';
  elsif p_as_of in ('infinity', '-infinity') or p_as_of > statement_timestamp() + interval '1 minute' then -- clocks differ
    raise sqlstate '22023' using
      message = format('p_as_of is %s, and no time of the past', p_as_of),
      hint = 'Give a time up to now, with its offset from UTC; leave it out to ask as of now.';
  end if;
end
$$;

comment on function ranked_ledger.check_moment(ranked_ledger.question, int, timestamptz) is
  'Refuses (22023) a step and a time together, a step without one task that it counts in, a time that is not of the past.';

-- Of a decision that moved, since when it has been in its stream: written earlier elsewhere, it carried no stream past a step
-- before it came.
create or replace function ranked_ledger.arrived_at(p_created_at timestamptz, p_metadata jsonb)
returns timestamptz language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
begin
  if not p_metadata ? 'moves' then
    return p_created_at;
  end if;
  return greatest(p_created_at, (p_metadata -> 'moves' -> -1 ->> 'at')::timestamptz);
exception when others then -- a host may write what it likes there
  return p_created_at;
end
$$;

comment on function ranked_ledger.arrived_at(timestamptz, jsonb) is 'Since when a decision has been in its stream.';

create or replace function ranked_ledger.at_moment(p_question ranked_ledger.question, p_as_of_step int, p_as_of timestamptz)
returns ranked_ledger.question language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
declare
  v_question ranked_ledger.question := p_question;
begin
  if p_as_of_step is null and p_as_of is null then
    return p_question;
  end if;
  perform ranked_ledger.check_moment(p_question, p_as_of_step, p_as_of);
  v_question.as_of := p_as_of;
  if p_as_of_step is not null then
    v_question.as_of_step := p_as_of_step;
    v_question.as_of_stream := (
      select l.stream_id from public.agent_decision_ledger l
      where l.workspace_id = p_question.workspace_id and l.task_id = p_question.task_id and l.set_aside_at is null
        and (p_question.project_id is null or l.project_id = p_question.project_id) limit 1);
    v_question.as_of := coalesce((
      select min(ranked_ledger.arrived_at(m.created_at, l.metadata)) - interval '1 microsecond'
      from public.agent_decision_ledger l join public.agent_memories m on m.id = l.memory_id
      where l.stream_id = v_question.as_of_stream and l.step_index > p_as_of_step and l.step_index <= ranked_ledger.max_step()),
      'infinity'); -- it has not gone past it yet
  end if;
  return v_question;
end
$$;

comment on function ranked_ledger.at_moment(ranked_ledger.question, int, timestamptz) is
  'A question, asked as of a step of its task or as of a time; as it is where neither is given.';

create or replace function ranked_ledger.was_there(p_stream_id uuid, p_step int, p_created_at timestamptz, p_moment ranked_ledger.moment)
returns boolean language sql immutable
return case when p_stream_id = (p_moment).as_of_stream then p_step <= (p_moment).as_of_step else p_created_at <= (p_moment).as_of end;

comment on function ranked_ledger.was_there(uuid, int, timestamptz, ranked_ledger.moment) is
  'Whether a decision was there: in the stream of the step by its step, else by its time. A decision is there from the beginning of the transaction that wrote it.';

create or replace function ranked_ledger.decisions_then(p_question ranked_ledger.question)
returns uuid[] language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
declare
  v_moment ranked_ledger.moment := ranked_ledger.moment_of(p_question);
begin
  return array(
    select l.memory_id from public.agent_decision_ledger l join public.agent_memories m on m.id = l.memory_id
    where l.workspace_id = p_question.workspace_id and l.set_aside_at is null
      and (p_question.project_id is null or l.project_id = p_question.project_id)
      and (p_question.task_id is null or l.task_id = p_question.task_id)
      and (v_moment.as_of_step is null or l.stream_id = v_moment.as_of_stream)
      and ranked_ledger.was_there(l.stream_id, l.step_index, m.created_at, v_moment));
end
$$;

comment on function ranked_ledger.decisions_then(ranked_ledger.question) is
  'Every decision in the project and task of a question that was there.';

create or replace function ranked_ledger.newest_steps_then(p_question ranked_ledger.question)
returns jsonb language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
declare
  v_moment ranked_ledger.moment := ranked_ledger.moment_of(p_question);
begin
  -- at the step itself where the stream went past it: the work stood there, whether or not something was decided just then
  return coalesce((
    select jsonb_object_agg(n.stream_id, n.newest)
    from (select l.stream_id, least(max(l.step_index), v_moment.as_of_step) as newest
          from public.agent_decision_ledger l join public.agent_memories m on m.id = l.memory_id
          where l.workspace_id = p_question.workspace_id and l.step_index <= ranked_ledger.max_step()
            and (l.stream_id = v_moment.as_of_stream or v_moment.as_of_step is null and m.created_at <= v_moment.as_of)
          group by l.stream_id) as n), '{}');
end
$$;

comment on function ranked_ledger.newest_steps_then(ranked_ledger.question) is
  'Where each stream stood, by its id: at its newest step, of every row whatever its lifecycle; as of a step, not behind that.';

do $do$
begin
  if to_regprocedure('ranked_ledger.lifecycle_then(uuid, text, uuid, ranked_ledger.moment)') is not null then
    execute 'drop function ranked_ledger.lifecycle_then(uuid, text, uuid, ranked_ledger.moment)';
  end if;
end
$do$;

-- A transition counts by the steps of the stream in which its decision stood then, which need not be where it stands today;
-- of one in another stream, or in one that no step is known of, the time tells.
create or replace function ranked_ledger.lifecycle_then(p_memory_id uuid, p_today text, p_moment ranked_ledger.moment)
returns text language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
begin
  return coalesce((
    select t.lifecycle_before from ranked_ledger.lifecycle_transitions t
    where t.memory_id = p_memory_id
      and case when t.stream_id = p_moment.as_of_stream and t.stream_step is not null then t.stream_step > p_moment.as_of_step
               else t.changed_at > p_moment.as_of end
    order by t.id limit 1), p_today);
end
$$;

comment on function ranked_ledger.lifecycle_then(uuid, text, ranked_ledger.moment) is
  'The lifecycle that a decision had: before the first change that came after the moment; today''s where none did.';

create or replace function ranked_ledger.review_status_then(p_memory_id uuid, p_today text, p_moment ranked_ledger.moment)
returns text language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
begin
  return coalesce((
    select a.before ->> 'review_status' from public.agent_memory_review_actions a
    where a.memory_id = p_memory_id and a.created_at > p_moment.as_of and a.before ? 'review_status'
    order by a.created_at, a.id limit 1), p_today);
end
$$;

comment on function ranked_ledger.review_status_then(uuid, text, ranked_ledger.moment) is
  'The review status that a decision had, as far as later review actions say what was before them; else today''s.';

-- What was written in one transaction has one time: an edge no newer than its ends came with them.
create or replace function ranked_ledger.dependencies_then(p_memory_id uuid, p_outward boolean, p_moment ranked_ledger.moment)
returns table (memory_id uuid, lifecycle_status text, counts boolean) language plpgsql stable
set search_path = public, extensions, pg_temp
set enable_seqscan = off -- row by row, as weigh does
set enable_hashjoin = off
set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
as $$
begin
  return query
  select o.id, ranked_ledger.lifecycle_then(o.id, o.lifecycle_status, p_moment),
         l.workspace_id = s.workspace_id and o.workspace_id = s.workspace_id and l.set_aside_at is null
  from (select x.to_memory_id as other_id, x.created_at from public.agent_decision_edges x
        where p_outward and x.from_memory_id = p_memory_id and x.relation = 'depends_on'
        union all
        select x.from_memory_id, x.created_at from public.agent_decision_edges x
        where not p_outward and x.to_memory_id = p_memory_id and x.relation = 'depends_on') as e
  cross join lateral (select x.workspace_id, x.created_at from public.agent_memories x where x.id = p_memory_id offset 0) as s
  cross join lateral (select x.* from public.agent_memories x where x.id = e.other_id offset 0) as o
  left join lateral (select x.* from public.agent_decision_ledger x where x.memory_id = o.id offset 0) as l on true
  where ranked_ledger.was_there(l.stream_id, l.step_index, o.created_at, p_moment)
    and e.created_at <= greatest(p_moment.as_of, s.created_at, o.created_at);
end
$$;

comment on function ranked_ledger.dependencies_then(uuid, boolean, ranked_ledger.moment) is
  'What a decision depended on directly (outward), or what depended on it, with its lifecycle then, and whether it counts as a dependent: in the workspace and not set aside.';

create or replace function ranked_ledger.live_dependents_then(p_memory_id uuid, p_moment ranked_ledger.moment)
returns int language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
begin
  if not exists (select from public.agent_decision_edges e where e.to_memory_id = p_memory_id and e.relation = 'depends_on') then
    return 0; -- most have none
  end if;
  return (select count(*) from ranked_ledger.dependencies_then(p_memory_id, false, p_moment) d where d.counts and d.lifecycle_status = 'active');
end
$$;

comment on function ranked_ledger.live_dependents_then(uuid, ranked_ledger.moment) is 'How many live decisions depended on this one.';

create or replace function ranked_ledger.grounds_then(p_memory_id uuid, p_moment ranked_ledger.moment)
returns uuid[] language sql stable
set search_path = public, extensions, pg_temp
as $$
  select array(select d.memory_id from ranked_ledger.dependencies_then(p_memory_id, true, p_moment) d order by d.memory_id)
$$;

comment on function ranked_ledger.grounds_then(uuid, ranked_ledger.moment) is 'What a decision depended on directly, in id order.';

create or replace function ranked_ledger.rested_on_retired(p_memory_id uuid, p_moment ranked_ledger.moment)
returns boolean language sql stable
set search_path = public, extensions, pg_temp
as $$
  select exists (select from ranked_ledger.dependencies_then(p_memory_id, true, p_moment) d
                 where d.lifecycle_status in ('superseded', 'rejected'))
    or exists (select from ranked_ledger.lost_grounds g
               where g.memory_id = p_memory_id and g.relation = 'depends_on' and g.lost_at <= (p_moment).as_of)
$$;

comment on function ranked_ledger.rested_on_retired(uuid, ranked_ledger.moment) is
  'Whether a decision depended directly on one that was superseded, rejected or gone.';

create or replace function ranked_ledger.successor_then(p_memory_id uuid, p_moment ranked_ledger.moment)
returns uuid language sql stable
set search_path = public, extensions, pg_temp
as $$
  with recursive later as (
    select m.id as memory_id, m.workspace_id, m.created_at from public.agent_memories m where m.id = p_memory_id
    union
    select m.id, m.workspace_id, m.created_at
    from later w
    join public.agent_memory_relations r on r.to_memory_id = w.memory_id and r.relation = 'supersedes'
    join public.agent_memories m on m.id = r.from_memory_id and m.workspace_id = w.workspace_id
    left join public.agent_decision_ledger l on l.memory_id = m.id
    where ranked_ledger.was_there(l.stream_id, l.step_index, m.created_at, p_moment)
      and r.created_at <= greatest((p_moment).as_of, m.created_at, w.created_at)
  )
  select m.id
  from later w
  join public.agent_memories m on m.id = w.memory_id
  left join public.agent_decision_ledger l on l.memory_id = m.id
  where w.memory_id <> p_memory_id
    and ranked_ledger.lifecycle_then(m.id, m.lifecycle_status, p_moment) = 'active'
  order by m.created_at desc, l.step_index desc nulls last, m.id
  limit 1
$$;

comment on function ranked_ledger.successor_then(uuid, ranked_ledger.moment) is
  'The newest decision, active then, of what had replaced this one; null where nothing active had.';
