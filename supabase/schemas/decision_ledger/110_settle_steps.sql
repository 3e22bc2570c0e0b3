-- The life of a step. At insert a row gets a provisional step, the newest that its transaction sees + 1, and a row in
-- pending_steps; nothing is locked, so a host transaction that stays open blocks nobody. At commit a deferred trigger
-- settles every stream that the transaction wrote to, once and in sorted order (in the order of events 21 of 40 transactions
-- met a deadlock): it locks the streams, numbers their pending rows behind the newest settled step, and lifts the marks.

create or replace function ranked_ledger.newest_settled_step(p_stream_id uuid)
returns int language sql stable
set search_path = public, extensions, pg_temp
as $$
  select coalesce((
    select l.step_index from public.agent_decision_ledger l
    where l.stream_id = p_stream_id and l.step_index <= ranked_ledger.max_step()
      and not exists (select from ranked_ledger.pending_steps p where p.memory_id = l.memory_id)
    order by l.step_index desc limit 1), -1)
$$;

comment on function ranked_ledger.newest_settled_step(uuid) is
  'What streams.newest_step has to equal, from the rows themselves.';

create or replace function ranked_ledger.lock_streams(p_stream_ids uuid[])
returns void language plpgsql
set search_path = public, extensions, pg_temp
as $$
begin
  insert into ranked_ledger.streams (stream_id, workspace_id, project_id, task_id, newest_step)
  select l.stream_id, l.workspace_id, l.project_id, l.task_id, ranked_ledger.newest_settled_step(l.stream_id)
  from unnest(p_stream_ids) as u (stream_id)
  cross join lateral (select l.* from public.agent_decision_ledger l where l.stream_id = u.stream_id limit 1) as l
  where not exists (select from ranked_ledger.streams s where s.stream_id = u.stream_id)
  order by l.stream_id
  on conflict (stream_id) do nothing;

  -- `for no key update`, since `for update` collides with foreign-key checks
  perform from ranked_ledger.streams s where s.stream_id = any (p_stream_ids) order by s.stream_id for no key update;
end
$$;

comment on function ranked_ledger.lock_streams(uuid[]) is 'Locks streams until the end of the transaction, in sorted order.';

-- Marks that other transactions left, and that we may settle now. Nothing is waited for: a transaction that moves, edits or
-- deletes such a row may stay open, and the writers of the stream go past it.
create or replace function ranked_ledger.take_left_over(p_stream_ids uuid[])
returns bigint[] language sql volatile
set search_path = public, extensions, pg_temp
as $$
  with marks as materialized (
    select p.id, p.memory_id from ranked_ledger.pending_steps p
    where p.is_left_over and p.stream_id = any (p_stream_ids) and p.txid <> pg_current_xact_id()
    order by p.id for update skip locked),
  held as materialized (
    select l.memory_id from public.agent_decision_ledger l
    where l.memory_id in (select m.memory_id from marks m) for no key update skip locked)
  select coalesce(array_agg(m.id), '{}') from marks m
  where m.memory_id in (select h.memory_id from held h)
     or not exists (select from public.agent_decision_ledger l where l.memory_id = m.memory_id)
$$;

comment on function ranked_ledger.take_left_over(uuid[]) is
  'Locks the marks of earlier transactions on these streams, and their ledger rows; those that somebody holds are left.';

-- pending_steps is empty most of the time, and its statistics mislead the planner: every row is looked up by an index
-- (`offset 0`), and nothing is joined with the marks themselves, which took 27 seconds for 10,000 rows where one was expected.
-- A plan that holds for any number of rows is made once a session; a plan a call cost more than the settlement.
create or replace function ranked_ledger.settle_streams(p_stream_ids uuid[])
returns int language plpgsql
set search_path = public, extensions, pg_temp
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_own     xid8 := pg_current_xact_id();
  v_left    bigint[] := '{}';
  v_settled int;
begin
  perform ranked_ledger.lock_streams(p_stream_ids);

  -- what earlier transactions left
  if exists (select from ranked_ledger.enrolment_failures f where f.is_transient and f.stream_id = any (p_stream_ids)) then
    perform ranked_ledger.mend_transient_failures(p_stream_ids);
    perform ranked_ledger.lock_streams(p_stream_ids); -- one that had no row until now has no stream yet
  end if;
  if exists (select from ranked_ledger.pending_steps p
             where p.is_left_over and p.stream_id = any (p_stream_ids) and p.txid <> v_own) then
    v_left := ranked_ledger.take_left_over(p_stream_ids);
  end if;

  -- streams that lost a row
  if v_left <> '{}' or exists (select from ranked_ledger.pending_steps p where p.txid = v_own and p.memory_id is null) then
    update ranked_ledger.streams s set newest_step = f.newest
    from (select u.stream_id, ranked_ledger.newest_settled_step(u.stream_id) as newest
          from (select distinct p.stream_id from ranked_ledger.pending_steps p
                where p.memory_id is null and (p.txid = v_own or p.id = any (v_left)) and p.stream_id = any (p_stream_ids)) as u
          offset 0) as f
    where s.stream_id = f.stream_id and s.newest_step <> f.newest;
  end if;

  -- number: in the order of the writes, each assigned step is one more than the greatest before it, given ones included
  with mark as (
    select p.id, p.stream_id, p.memory_id, p.step_is_given from ranked_ledger.pending_steps p
    where p.txid = v_own and p.stream_id = any (p_stream_ids)
    union all
    select p.id, p.stream_id, p.memory_id, p.step_is_given from ranked_ledger.pending_steps p where p.id = any (v_left)),
  counted as (
    select m.stream_id, m.memory_id, m.id, m.step_is_given, l.step_index,
           (select s.newest_step from ranked_ledger.streams s where s.stream_id = m.stream_id) as newest,
           count(*) filter (where not m.step_is_given) over (partition by m.stream_id order by m.id) as assigned
    from mark m
    cross join lateral (
      select d.stream_id, d.step_index from public.agent_decision_ledger d where d.memory_id = m.memory_id offset 0) as l
    where l.stream_id = m.stream_id),
  placed as materialized (
    select c.stream_id, c.memory_id, c.step_is_given, c.step_index,
           least(ranked_ledger.max_step(), c.assigned + greatest(c.newest, max(
             case when c.step_is_given and c.step_index <= ranked_ledger.max_step()
                  then c.step_index - c.assigned end) over (partition by c.stream_id order by c.id))) as final_step
    from counted c),
  moved as (
    update public.agent_decision_ledger l set step_index = p.final_step
    from placed p
    where l.memory_id = p.memory_id and not p.step_is_given and p.step_index <> p.final_step),
  reached as (
    update ranked_ledger.streams s set newest_step = r.newest
    from (select p.stream_id, max(case when not p.step_is_given then p.final_step
                                       when p.step_index <= ranked_ledger.max_step() then p.step_index end) as newest
          from placed p group by p.stream_id) as r
    where s.stream_id = r.stream_id and s.newest_step < r.newest)
  select count(*) into v_settled from placed;

  delete from ranked_ledger.pending_steps p where p.txid = v_own and p.stream_id = any (p_stream_ids);
  if v_left <> '{}' then
    delete from ranked_ledger.pending_steps p where p.id = any (v_left);
  end if;
  return v_settled;
end
$$;

comment on function ranked_ledger.settle_streams(uuid[]) is
  'Settles the pending rows of streams, those of this transaction and those left over, under the streams'' locks. Returns how many.';

-- lock_timeout: a transaction that settled early may hold a stream for as long as it likes, and a host's commit neither waits
-- for it without end nor becomes the victim of a deadlock; the rows stay marked.
create or replace function ranked_ledger.settle_steps()
returns trigger language plpgsql security definer -- runs at the commit of writers with no right on our tables
set search_path = public, extensions, pg_temp
set lock_timeout = '2s'
as $$
begin
  -- one deferred event a row, one settlement a transaction; a serializable one would conflict with every other writer
  if current_setting('ranked_ledger.unsettled', true) is distinct from '1'
     or current_setting('transaction_isolation') = 'serializable' then
    return null;
  end if;
  perform set_config('ranked_ledger.unsettled', '', true);
  begin
    perform ranked_ledger.settle_streams(array(
      select distinct p.stream_id from ranked_ledger.pending_steps p where p.txid = pg_current_xact_id()));
  exception when others then
    -- a snapshot older than another writer's settlement (40001), a deadlock, a lock that was not to be had
    update ranked_ledger.pending_steps p set is_left_over = true where p.txid = pg_current_xact_id();
  end;
  return null;
end
$$;

comment on function ranked_ledger.settle_steps() is
  'The settlement at commit. Whatever goes wrong, the host''s commit goes through and the rows stay marked.';

-- a constraint trigger has no `create or replace`
drop trigger if exists settle_steps_at_commit on ranked_ledger.pending_steps;
create constraint trigger settle_steps_at_commit
  after insert on ranked_ledger.pending_steps
  deferrable initially deferred
  for each row execute function ranked_ledger.settle_steps();
