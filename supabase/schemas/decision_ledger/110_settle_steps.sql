-- The life of a step. At insert a row gets a provisional step, the newest that its transaction sees + 1, and a row in
-- pending_steps; nothing is locked, so a host transaction that stays open blocks nobody. At commit a deferred trigger
-- settles every stream that the transaction wrote to, once and in sorted order (in the order of events 21 of 40 transactions
-- met a deadlock): it locks the stream, numbers its pending rows behind the newest settled step, and lifts the mark.

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

create or replace function ranked_ledger.settle_stream(p_stream_id uuid)
returns int language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_newest  int;
  v_settled int;
begin
  -- lock: `for no key update`, since `for update` collides with foreign-key checks
  insert into ranked_ledger.streams (stream_id, workspace_id, project_id, task_id, newest_step)
  select l.stream_id, l.workspace_id, l.project_id, l.task_id, ranked_ledger.newest_settled_step(p_stream_id)
  from public.agent_decision_ledger l where l.stream_id = p_stream_id limit 1
  on conflict (stream_id) do nothing;

  select s.newest_step into v_newest from ranked_ledger.streams s where s.stream_id = p_stream_id for no key update;

  if exists (select from ranked_ledger.pending_steps p where p.stream_id = p_stream_id and p.memory_id is null) then
    v_newest := ranked_ledger.newest_settled_step(p_stream_id);
  end if;

  -- number: in the order of the writes, each assigned step is one more than the greatest before it, given ones included
  with pending as (
    select p.id, p.memory_id, p.step_is_given, l.step_index,
           count(*) filter (where not p.step_is_given) over (order by p.id) as assigned
    from ranked_ledger.pending_steps p
    join public.agent_decision_ledger l on l.memory_id = p.memory_id and l.stream_id = p.stream_id
    where p.stream_id = p_stream_id),
  placed as (
    select p.memory_id, p.step_is_given, p.step_index,
           least(ranked_ledger.max_step(), p.assigned + greatest(v_newest, max(
             case when p.step_is_given and p.step_index <= ranked_ledger.max_step()
                  then p.step_index - p.assigned end) over (order by p.id))) as final_step
    from pending p),
  moved as (
    update public.agent_decision_ledger l set step_index = p.final_step
    from placed p
    where l.memory_id = p.memory_id and not p.step_is_given and l.step_index <> p.final_step)
  select count(*), greatest(v_newest, max(
           case when p.step_is_given then case when p.step_index <= ranked_ledger.max_step() then p.step_index end
                else p.final_step end))
  into v_settled, v_newest
  from placed p;

  delete from ranked_ledger.pending_steps p where p.stream_id = p_stream_id;
  update ranked_ledger.streams s set newest_step = v_newest
  where s.stream_id = p_stream_id and s.newest_step <> v_newest;
  return v_settled;
end
$$;

comment on function ranked_ledger.settle_stream(uuid) is
  'Settles the pending rows of a stream that this transaction sees, under the stream''s lock. Returns how many.';

create or replace function ranked_ledger.settle_steps()
returns trigger language plpgsql security definer -- runs at the commit of writers with no right on our tables
set search_path = public, extensions, pg_temp
as $$
declare
  v_stream_id uuid;
begin
  -- one deferred event a row, one settlement a transaction
  if current_setting('ranked_ledger.unsettled', true) is distinct from '1' then
    return null;
  end if;
  perform set_config('ranked_ledger.unsettled', '', true);
  -- a serializable writer would conflict with every other writer of its streams
  if current_setting('transaction_isolation') = 'serializable' then
    return null;
  end if;
  begin
    for v_stream_id in
      select distinct p.stream_id from ranked_ledger.pending_steps p
      where p.txid = pg_current_xact_id() order by p.stream_id
    loop
      perform ranked_ledger.settle_stream(v_stream_id);
    end loop;
  exception when others then
    -- a snapshot older than another writer's settlement (40001), a deadlock: the rows stay marked for the next settlement
    null;
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

create or replace function ranked_ledger.note_lost_rows()
returns trigger language plpgsql security definer -- fired by cascades from the host's own deletes
set search_path = public, extensions, pg_temp
as $$
begin
  perform set_config('ranked_ledger.unsettled', '1', true);
  insert into ranked_ledger.pending_steps (stream_id)
  select distinct d.stream_id from deleted_rows d order by d.stream_id;
  return null;
exception when others then
  raise warning 'Ranked Ledger: the newest step of a stream was not refreshed (%)', sqlerrm;
  return null;
end
$$;

comment on function ranked_ledger.note_lost_rows() is 'A stream that loses a row finds its newest step again at commit.';

create or replace trigger agent_decision_ledger_note_lost_rows
  after delete on public.agent_decision_ledger
  referencing old table as deleted_rows
  for each statement execute function ranked_ledger.note_lost_rows();
