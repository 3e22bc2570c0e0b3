-- Ledger rows that go: their streams find their newest step again, and what is kept about them goes too.

create or replace function ranked_ledger.note_lost_rows()
returns trigger language plpgsql security definer -- fired by cascades from the host's own deletes
set search_path = public, extensions, pg_temp
as $$
begin
  -- a cascade is one statement a row: one mark a stream and transaction, and no subtransaction id for the others
  if exists (
    select from deleted_rows d
    where not exists (select from ranked_ledger.pending_steps p
                      where p.txid = pg_current_xact_id() and p.stream_id = d.stream_id and p.memory_id is null)
       or exists (select from ranked_ledger.lost_grounds g where g.memory_id = d.memory_id))
  then
    perform set_config('ranked_ledger.unsettled', '1', true);
    insert into ranked_ledger.pending_steps (stream_id)
    select distinct d.stream_id from deleted_rows d order by d.stream_id;
    delete from ranked_ledger.lost_grounds g using deleted_rows d where g.memory_id = d.memory_id;
  end if;
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

create or replace function ranked_ledger.note_truncation()
returns trigger language plpgsql security definer -- fired by a truncate of the host's table, cascade
set search_path = public, extensions, pg_temp
as $$
begin
  delete from ranked_ledger.pending_steps p where p.memory_id is not null;
  update ranked_ledger.streams s set newest_step = -1 where s.newest_step <> -1;
  delete from ranked_ledger.lost_grounds g
  where not exists (select from public.agent_memories m where m.id = g.memory_id);
  return null;
exception when others then
  raise warning 'Ranked Ledger: the streams of an emptied ledger were not reset (%)', sqlerrm;
  return null;
end
$$;

comment on function ranked_ledger.note_truncation() is 'An emptied ledger has no steps: its streams begin again.';

create or replace trigger agent_decision_ledger_note_truncation
  after truncate on public.agent_decision_ledger
  for each statement execute function ranked_ledger.note_truncation();
