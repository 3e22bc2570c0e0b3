-- What the moment refused at a write (a SERIALIZABLE writer, an old snapshot, a lock) is made good by the next writer of the
-- stream, or by the next recall of the workspace: a project that writes under SERIALIZABLE alone has no other.
create or replace function ranked_ledger.catch_up(p_workspace_id text)
returns void language plpgsql
set search_path = public, extensions, pg_temp
set lock_timeout = '250ms' -- a recall waits for nobody
as $$
declare
  v_streams uuid[];
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    return;
  end if;
  v_streams := array(
    select f.stream_id from ranked_ledger.enrolment_failures f where f.is_transient and f.workspace_id = p_workspace_id
    union
    select p.stream_id from ranked_ledger.pending_steps p
    join public.agent_decision_ledger l on l.memory_id = p.memory_id
    where p.is_left_over and l.workspace_id = p_workspace_id
    union -- those that lost a row
    select p.stream_id from ranked_ledger.pending_steps p
    join ranked_ledger.streams s on s.stream_id = p.stream_id
    where p.is_left_over and p.memory_id is null and s.workspace_id = p_workspace_id);
  if v_streams <> '{}' then
    perform ranked_ledger.settle_streams(v_streams);
    perform ranked_ledger.settle_now();
  end if;
  if exists (select from ranked_ledger.stale_copies) then
    perform ranked_ledger.lift_marks(200);
  end if;
exception when others then
  null; -- a recall answers from what is there
end
$$;

comment on function ranked_ledger.catch_up(text) is
  'Enrols, settles and copies what earlier transactions had to leave. Never raises, never waits long.';
