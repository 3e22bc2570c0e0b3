-- A portion of each kind goes in a block of its own. Rows that somebody holds are stepped over. What hangs on them goes by
-- cascade, which cannot step over: it waits for a moment, much less than the second after which a server looks for
-- deadlocks, and then gives up its portion with all its locks, until the next call. So whoever holds what the sweep waits for
-- can wait for the sweep in turn, and pays for it with that moment and not with a deadlock.
create or replace function long_term_memory.sweep_expired(p_limit int)
returns int language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_expired uuid[];
  v_sweep   text := coalesce(current_setting('long_term_memory.sweep', true), '');
  v_wait    text := current_setting('lock_timeout');
begin
  begin
    v_expired := array(
      select m.id from long_term_memory.agent_memories m
      where m.redacted_at is null and m.expires_at <= now()
      order by m.expires_at, m.id limit p_limit for update skip locked);
    -- for these rows alone. An error takes both back by itself, since it undoes the block or what is around it
    perform set_config('long_term_memory.sweep', 'on', true), set_config('lock_timeout', '200ms', true);
    delete from long_term_memory.agent_memories m where m.id = any (v_expired);
    perform set_config('long_term_memory.sweep', v_sweep, true), set_config('lock_timeout', v_wait, true);
  exception when lock_not_available then
    return 0;
  end;
  return cardinality(v_expired);
end
$$;

comment on function long_term_memory.sweep_expired(int) is
  'Really deletes up to so many expired memories of all organizations, those that expired first, with their history. Tombstones stay.';

create or replace function long_term_memory.sweep_recalls(p_limit int, p_before timestamptz)
returns int language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_old  uuid[];
  v_wait text := current_setting('lock_timeout');
begin
  begin
    v_old := array(
      select r.id from long_term_memory.recalls r
      where r.at < p_before order by r.at, r.id limit p_limit for update skip locked);
    perform set_config('lock_timeout', '200ms', true);
    delete from long_term_memory.recalls r where r.id = any (v_old);
    perform set_config('lock_timeout', v_wait, true);
  exception when lock_not_available then
    return 0;
  end;
  return cardinality(v_old);
end
$$;

comment on function long_term_memory.sweep_recalls(int, timestamptz) is
  'Deletes up to so many recalls of all organizations that are older than a time, oldest first, with what they returned.';

create or replace function public.expire_memories(p_limit int default 1000, p_usage_before timestamptz default null)
returns jsonb language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_expired int;
  v_recalls int;
begin
  -- guard
  if p_limit is null or p_limit not between 1 and 10000 then
    raise sqlstate '22023' using
      message = 'p_limit is not a number from 1 to 10000.', hint = 'Call again while the answer says more.';
  end if;

  -- mutate: two sweeps at once take turns, or they would hold up each other's cascades
  perform pg_advisory_xact_lock(hashtextextended('ranked_ledger: expiry sweep', 0));
  v_expired := long_term_memory.sweep_expired(p_limit);
  v_recalls := long_term_memory.sweep_recalls(p_limit, p_usage_before);

  -- answer: more after a full portion only, or the caller would turn round what is locked. The first one is in an index
  return jsonb_build_object('expired', v_expired, 'recalls_deleted', v_recalls, 'more', coalesce(
    v_expired = p_limit and (
      select min(m.expires_at) from long_term_memory.agent_memories m where m.redacted_at is null) <= now(), false)
    or coalesce(v_recalls = p_limit and (select min(r.at) from long_term_memory.recalls r) < p_usage_before, false));
end
$$;

comment on function public.expire_memories(int, timestamptz) is
  'Deletes memories that have expired, and recalls older than p_usage_before, p_limit of each. The one function without an organization: what has expired has expired in all of them.';
