-- Where the ledger is installed too: its traces are tied to the people whose decisions they returned, and attributions go
-- with the workspace of a decision. join_ledger, which each of the two migrations calls at its end, puts this in place.

create or replace function long_term_memory.empty_traces(p_trace_ids uuid[])
returns void language plpgsql
set search_path = public, extensions, pg_temp
set enable_seqscan = off
as $$
begin
  update public.agent_memory_recall_traces t set query = '', request_payload = '{}'
  where t.id = any (p_trace_ids) and (t.query <> '' or t.request_payload is distinct from '{}');
end
$$;

comment on function long_term_memory.empty_traces(uuid[]) is 'Takes question and payload out of traces of the ledger.';

create or replace function long_term_memory.tie_trace(
  p_trace_id uuid, p_workspace_id text, p_subject_type text, p_subject_id uuid)
returns void language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_org_id uuid := (select w.org_id from long_term_memory.workspace_orgs w where w.workspace_id = p_workspace_id);
begin
  if v_org_id is null then
    return; -- the payload keeps it, for the day on which the workspace is mapped
  end if;
  -- nobody waits: a recall, or a host's write, would stand still for as long as an erasure takes
  if not pg_try_advisory_xact_lock_shared(long_term_memory.subject_key(v_org_id, p_subject_type, p_subject_id))
     or exists (select from long_term_memory.erasures e
                where e.org_id = v_org_id and e.subject_type = p_subject_type and e.subject_id = p_subject_id
                  and e.erased_at > transaction_timestamp() - interval '2 minutes') -- as tie_items: it may have begun before
     or current_setting('transaction_isolation') <> 'read committed' then -- an older snapshot does not see the erasure
    perform long_term_memory.empty_traces(array[p_trace_id]);
  end if;
  insert into long_term_memory.trace_subjects (trace_id, org_id, subject_type, subject_id)
  values (p_trace_id, v_org_id, p_subject_type, p_subject_id)
  on conflict do nothing;
end
$$;

comment on function long_term_memory.tie_trace(uuid, text, text, uuid) is
  'Ties a trace to whom its caller said it was about, where its workspace is mapped. Empties it where that subject is being erased.';

-- Under a snapshot an erasure that has committed is not seen; locking the row tells.
create or replace function long_term_memory.sees_attributions(p_memory_ids uuid[])
returns boolean language plpgsql
set search_path = public, extensions, pg_temp
set enable_seqscan = off
as $$
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    perform from long_term_memory.decision_subjects s where s.memory_id = any (p_memory_ids) for share nowait;
  end if;
  return true;
exception when serialization_failure or lock_not_available then
  return false;
end
$$;

comment on function long_term_memory.sees_attributions(uuid[]) is
  'Whether the transaction sees these attributions as they are, and not as they were before an erasure.';

-- A request that was under way when an erasure began may write down behind it what it asked: its trace and its items are
-- often two transactions, and an erasure is not seen before it commits. Two minutes is longer than one may take.
create or replace function long_term_memory.tie_items(p_trace_ids uuid[], p_memory_ids uuid[])
returns void language plpgsql
set search_path = public, extensions, pg_temp
set enable_seqscan = off -- index look-ups alone, whatever statistics say of tables that were empty a moment ago
set enable_hashjoin = off
set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_locks    bigint[];
  v_busy     bigint[];
  v_sees_all boolean;
  v_emptied  uuid[];
begin
  v_locks := array(
    select distinct long_term_memory.subject_key(s.org_id, s.subject_type, s.subject_id)
    from unnest(p_memory_ids) as i (memory_id)
    join long_term_memory.decision_subjects s on s.memory_id = i.memory_id);
  if v_locks = '{}' then
    return;
  elsif cardinality(v_locks) > 64 then -- as share_subjects
    v_locks := array(
      select distinct long_term_memory.bucket_key(
        s.org_id, long_term_memory.subject_key(s.org_id, s.subject_type, s.subject_id))
      from unnest(p_memory_ids) as i (memory_id)
      join long_term_memory.decision_subjects s on s.memory_id = i.memory_id);
  end if;
  v_sees_all := long_term_memory.sees_attributions(p_memory_ids);
  v_busy := array(select u.key from unnest(v_locks) as u (key) where not pg_try_advisory_xact_lock_shared(u.key));

  -- under the locks, and of workspaces that belong to the same organization
  with tied as materialized (
    select distinct t.id as trace_id, s.org_id, s.subject_type, s.subject_id,
           not v_sees_all or coalesce(s.erased_at > least(t.created_at, now()) - interval '2 minutes', false)
           or k.key = any (v_busy) or long_term_memory.bucket_key(s.org_id, k.key) = any (v_busy) as is_emptied
    from unnest(p_trace_ids, p_memory_ids) as i (trace_id, memory_id)
    join long_term_memory.decision_subjects s on s.memory_id = i.memory_id
    cross join lateral (select x.* from public.agent_memory_recall_traces x where x.id = i.trace_id offset 0) as t
    cross join lateral (select long_term_memory.subject_key(s.org_id, s.subject_type, s.subject_id)) as k (key)
    where (select w.org_id from long_term_memory.workspace_orgs w where w.workspace_id = t.workspace_id::text) = s.org_id),
  written as (
    insert into long_term_memory.trace_subjects (trace_id, org_id, subject_type, subject_id)
    select distinct u.trace_id, u.org_id, u.subject_type, u.subject_id from tied u order by 1, 2, 3, 4
    on conflict do nothing)
  select array_agg(distinct u.trace_id order by u.trace_id) into v_emptied from tied u where u.is_emptied;
  if v_emptied is not null then
    perform long_term_memory.empty_traces(v_emptied);
  end if;
end
$$;

comment on function long_term_memory.tie_items(uuid[], uuid[]) is
  'Ties traces to whom the decisions are about that they returned. Empties those whose decision was erased meanwhile, or is being erased.';

create or replace function long_term_memory.tie_returned_decisions()
returns trigger language plpgsql security definer -- the host's writer may have no right on our tables
set search_path = public, extensions, pg_temp
set lock_timeout = '2s'
as $$
begin
  if exists (select from long_term_memory.decision_subjects) then -- most projects attribute nothing
    perform long_term_memory.tie_items(array_agg(i.trace_id), array_agg(i.memory_id)) from inserted_items i;
  end if;
  return null;
exception when others then
  raise warning 'Ranked Ledger: traces were not tied to their subjects (%)', sqlerrm;
  return null;
end
$$;

comment on function long_term_memory.tie_returned_decisions() is
  'A trace that returned a decision about somebody is tied to them, a statement at a time. The host''s insert goes through whatever happens here.';

-- A decision belongs to the organization of its workspace: moved to another one's, it is about nobody there.
create or replace function long_term_memory.follow_moved_decision()
returns trigger language plpgsql security definer -- as above
set search_path = public, extensions, pg_temp
set lock_timeout = '1s'
as $$
declare
  v_org_id uuid;
begin
  if not exists (select from long_term_memory.decision_subjects s where s.memory_id = new.memory_id) then
    return null;
  end if;
  select w.org_id into v_org_id from long_term_memory.workspace_orgs w where w.workspace_id = new.workspace_id for share;
  with lost as (
    delete from long_term_memory.decision_subjects s
    where s.memory_id = new.memory_id and s.org_id is distinct from v_org_id returning s.*)
  insert into long_term_memory.audit_events (org_id, kind, actor_id, payload)
  select l.org_id, 'attribution_lost', long_term_memory.request_user(), jsonb_build_object(
    'reason', 'decision moved', 'memory_id', l.memory_id, 'subject_type', l.subject_type, 'subject_id', l.subject_id)
  from lost l;
  update long_term_memory.decision_subjects s set workspace_id = new.workspace_id where s.memory_id = new.memory_id;
  return null;
exception when others then
  raise warning 'Ranked Ledger: attributions did not follow a decision (%)', sqlerrm; -- nothing reads them across organizations
  return null;
end
$$;

comment on function long_term_memory.follow_moved_decision() is
  'Attributions of a decision go when it moves to a workspace of another organization, each with an audit event; within one they follow.';

-- What came about while the two were not joined: the ledger was taken out for a while, or a dump was put back.
create or replace function long_term_memory.mend_ties()
returns void language plpgsql
set search_path = public, extensions, pg_temp
as $$
begin
  delete from long_term_memory.decision_subjects s
  where not exists (select from public.agent_memories m where m.id = s.memory_id);
  delete from long_term_memory.trace_subjects s
  where not exists (select from public.agent_memory_recall_traces t where t.id = s.trace_id);
  with lost as (
    delete from long_term_memory.decision_subjects s using public.agent_memories m
    where m.id = s.memory_id and not exists (
      select from long_term_memory.workspace_orgs w where w.workspace_id = m.workspace_id::text and w.org_id = s.org_id)
    returning s.*)
  insert into long_term_memory.audit_events (org_id, kind, payload)
  select l.org_id, 'attribution_lost', jsonb_build_object(
    'reason', 'decision moved', 'memory_id', l.memory_id, 'subject_type', l.subject_type, 'subject_id', l.subject_id)
  from lost l;
  update long_term_memory.decision_subjects s set workspace_id = m.workspace_id
  from public.agent_memories m where m.id = s.memory_id and m.workspace_id::text <> s.workspace_id;
  insert into long_term_memory.trace_subjects (trace_id, org_id, subject_type, subject_id)
  select distinct t.id, s.org_id, s.subject_type, s.subject_id
  from long_term_memory.decision_subjects s
  join public.agent_memory_recall_items i on i.memory_id = s.memory_id
  join public.agent_memory_recall_traces t on t.id = i.trace_id
  join long_term_memory.workspace_orgs w on w.workspace_id = t.workspace_id::text and w.org_id = s.org_id
  on conflict do nothing;
end
$$;

comment on function long_term_memory.mend_ties() is
  'Brings attributions and tied traces in step with the ledger: what is gone goes, what moved follows or is lost, what was returned is tied.';

create or replace function long_term_memory.has_trigger(p_table regclass, p_name text)
returns boolean language sql stable
set search_path = public, extensions, pg_temp
as $$
  select exists (select from pg_trigger t where t.tgrelid = p_table and t.tgname = p_name and not t.tgisinternal)
$$;

comment on function long_term_memory.has_trigger(regclass, text) is 'Whether a table has a trigger of this name.';

create or replace function long_term_memory.is_joined()
returns boolean language sql stable
set search_path = public, extensions, pg_temp
as $$
  select count(*) = 2
         and long_term_memory.has_trigger(to_regclass('public.agent_memory_recall_items'), 'trg_long_term_memory_tie')
         and long_term_memory.has_trigger(
           to_regclass('public.agent_decision_ledger'), 'agent_decision_ledger_follow_attributions')
  from pg_constraint k
  where (k.conrelid, k.confrelid) in (
    ('long_term_memory.decision_subjects'::regclass, to_regclass('public.agent_memories')),
    ('long_term_memory.trace_subjects'::regclass, to_regclass('public.agent_memory_recall_traces')))
    and k.contype = 'f'
$$;

comment on function long_term_memory.is_joined() is 'Whether the foreign keys and triggers between the two stores are all there.';

-- All locks at once or none, each attempt shorter than a deadlock takes to be found: as in the migrations' first files.
create or replace function long_term_memory.lock_joined_tables()
returns void language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_timeout  text := current_setting('lock_timeout');
  v_deadline timestamptz := clock_timestamp() + interval '5 seconds';
  v_found    text := 'Transactions kept the tables of recalls and decisions busy for five seconds. Nothing was changed.';
  v_advice   text := 'Try again when they are over: pg_stat_activity shows them.';
begin
  loop
    begin
      perform set_config('lock_timeout', '200ms', true);
      lock table public.agent_memories, public.agent_decision_ledger, public.agent_memory_recall_traces,
        public.agent_memory_recall_items, long_term_memory.decision_subjects, long_term_memory.trace_subjects
        in share row exclusive mode;
      exit;
    exception when lock_not_available or deadlock_detected then
      if clock_timestamp() > v_deadline then
        raise exception using errcode = '55P03', message = v_found || ' ' || v_advice, hint = v_advice;
      end if;
      perform pg_sleep(0.02 + 0.1 * random());
    end;
  end loop;
  perform set_config('lock_timeout', v_timeout, true);
end
$$;

comment on function long_term_memory.lock_joined_tables() is 'Keeps writers out of what is joined, until the commit; gives up after five seconds.';

create or replace function long_term_memory.join_ledger()
returns boolean language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_found  text;
  v_advice text := 'Push as the owner of these tables.';
begin
  if not long_term_memory.has_ledger() or long_term_memory.is_joined() then
    return false;
  end if;
  if not has_table_privilege('public.agent_memory_recall_items', 'TRIGGER')
     or not has_table_privilege('public.agent_memory_recall_traces', 'REFERENCES') then
    v_found := format('The role %I may not join the long-term memory to the tables of recalls.', current_user);
    raise exception using errcode = 'RL501', message = v_found || ' ' || v_advice, hint = v_advice;
  end if;
  perform long_term_memory.lock_joined_tables();

  perform long_term_memory.mend_ties();
  alter table long_term_memory.decision_subjects drop constraint if exists decision_subjects_memory_id_fkey;
  alter table long_term_memory.decision_subjects add constraint decision_subjects_memory_id_fkey
    foreign key (memory_id) references public.agent_memories (id) on delete cascade;
  alter table long_term_memory.trace_subjects drop constraint if exists trace_subjects_trace_id_fkey;
  alter table long_term_memory.trace_subjects add constraint trace_subjects_trace_id_fkey
    foreign key (trace_id) references public.agent_memory_recall_traces (id) on delete cascade;

  create or replace trigger trg_long_term_memory_tie
    after insert on public.agent_memory_recall_items
    referencing new table as inserted_items
    for each statement execute function long_term_memory.tie_returned_decisions();
  create or replace trigger agent_decision_ledger_follow_attributions
    after update of workspace_id on public.agent_decision_ledger
    for each row when (old.workspace_id is distinct from new.workspace_id)
    execute function long_term_memory.follow_moved_decision();
  return true;
end
$$;

comment on function long_term_memory.join_ledger() is
  'Joins the two stores where both are installed: foreign keys and triggers. Answers whether anything was to do; a repeat changes nothing.';
