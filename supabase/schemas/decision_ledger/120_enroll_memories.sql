-- What a memory's metadata says of the decision. Never raises: what cannot be used is noted with its reason.
create or replace function ranked_ledger.enrolment_facts(
  p_metadata jsonb, p_confidence numeric,
  out step_index int, out step_note jsonb, out rationale text, out importance numeric, out alternatives jsonb)
language plpgsql immutable parallel safe
set search_path = public, extensions, pg_temp
as $$
declare
  v_own        jsonb := p_metadata -> 'agent_memory';
  v_step       jsonb := coalesce(nullif(v_own -> 'step_index', 'null'), p_metadata -> 'step_index', v_own -> 'step_index');
  v_importance jsonb := coalesce(nullif(v_own -> 'importance', 'null'), p_metadata -> 'importance');
  v_others     jsonb := coalesce(nullif(v_own -> 'alternatives', 'null'), p_metadata -> 'alternatives');
  v_number     numeric;
begin
  v_number := case when jsonb_typeof(v_step) = 'number' then (v_step #>> '{}')::numeric
                   when v_step #>> '{}' ~ '^[0-9]{1,10}$' then (v_step #>> '{}')::numeric end;
  if v_number between 0 and ranked_ledger.max_step() and v_number = trunc(v_number) then
    step_index := v_number::int;
  elsif v_step is not null then
    step_note := jsonb_build_object(
      'step_given', case when octet_length(v_step::text) <= 1000 then v_step else to_jsonb(left(v_step::text, 250)) end,
      'step_reason', 'not a whole number from 0 to 1000000000');
  end if;

  rationale := coalesce(v_own ->> 'rationale', p_metadata ->> 'rationale');

  v_number := case when jsonb_typeof(v_importance) = 'number' then (v_importance #>> '{}')::numeric end;
  importance := case when v_number between 0 and 1 then v_number
                     else least(1, greatest(0, coalesce(p_confidence, 0.50))) end;

  select coalesce(jsonb_agg(a.value order by a.ordinality), '[]') into alternatives
  from (select e.value, e.ordinality
        from jsonb_array_elements(case when jsonb_typeof(v_others) = 'array' then v_others else '[]' end)
             with ordinality as e
        where jsonb_typeof(e.value) = 'string'
        order by e.ordinality limit 20) as a;
end
$$;

comment on function ranked_ledger.enrolment_facts(jsonb, numeric) is
  'Step, rationale, importance and alternatives of a memory: from metadata.agent_memory, else metadata; importance else from confidence. A step that is no whole number from 0 to 1,000,000,000 is null, with a note.';

-- The step that the next row of a stream would get, as far as this transaction sees. Reads nothing under SERIALIZABLE:
-- each reader of a stream's end conflicts with each writer of it, and one of the host's transactions would be refused.
create or replace function ranked_ledger.next_provisional_step(p_stream_id uuid)
returns int language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
begin
  if current_setting('transaction_isolation') = 'serializable' then
    return 0;
  end if;
  return coalesce((
    select l.step_index + 1 from public.agent_decision_ledger l
    where l.stream_id = p_stream_id and l.step_index <= ranked_ledger.max_step()
    order by l.step_index desc limit 1), 0);
end
$$;

comment on function ranked_ledger.next_provisional_step(uuid) is 'Newest step of the stream + 1, before settlement.';

create or replace function ranked_ledger.enroll_memories(p_memories public.agent_memories[])
returns int language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_enrolled int;
begin
  perform set_config('ranked_ledger.unsettled', '1', true); -- before the marks: the trigger on them may be immediate
  with config as materialized (
    select w.workspace_id, ranked_ledger.text_config(w.workspace_id) as text_config
    from (select distinct m.workspace_id::text from unnest(p_memories) as m) as w),
  facts as materialized (
    select m.id, m.workspace_id, m.project_id, m.task_id, m.flow_id, m.memory_type, m.ordinality, f.*,
           ranked_ledger.stream_id(m.workspace_id, m.project_id, m.task_id) as stream_id,
           ranked_ledger.decision_lexemes(c.text_config, m.content, f.rationale, m.summary) as search_lexemes
    from unnest(p_memories) with ordinality as m
    join config c on c.workspace_id = m.workspace_id
    cross join lateral ranked_ledger.enrolment_facts(m.metadata, m.confidence::numeric) as f),
  bases as materialized (
    select s.stream_id, ranked_ledger.next_provisional_step(s.stream_id) - 1 as newest
    from (select distinct f.stream_id from facts f) as s),
  counted as (
    select f.*, b.newest,
           count(*) filter (where f.step_index is null) over (partition by f.stream_id order by f.ordinality) as assigned
    from facts f join bases b on b.stream_id = f.stream_id),
  placed as (
    select c.*, least(ranked_ledger.max_step(), c.assigned + greatest(c.newest, max(c.step_index - c.assigned)
                        over (partition by c.stream_id order by c.ordinality))) as provisional_step
    from counted c),
  enrolled as (
    insert into public.agent_decision_ledger as l (
      memory_id, workspace_id, project_id, task_id, flow_id, step_index, rationale, importance, alternatives, metadata,
      search_lexemes, set_aside_at)
    select p.id, p.workspace_id, p.project_id, p.task_id, p.flow_id, coalesce(p.step_index, p.provisional_step),
           p.rationale, p.importance, p.alternatives, coalesce(p.step_note, '{}'), p.search_lexemes,
           case when p.memory_type <> 'decision' then now() end -- retyped before it was enrolled
    from placed p order by p.ordinality
    on conflict (memory_id) do nothing
    returning l.memory_id),
  marked as (
    insert into ranked_ledger.pending_steps (stream_id, memory_id, step_is_given)
    select p.stream_id, p.id, p.step_index is not null
    from placed p join enrolled e on e.memory_id = p.id order by p.ordinality)
  select count(*) into v_enrolled from enrolled;
  return v_enrolled;
end
$$;

comment on function ranked_ledger.enroll_memories(public.agent_memories[]) is
  'Writes the ledger rows of memories that have none, in the order given, with provisional steps. Returns how many.';

create or replace function ranked_ledger.note_failures(
  p_memories public.agent_memories[], p_operation text, p_reason text, p_sqlstate text)
returns void language plpgsql
set search_path = public, extensions, pg_temp
as $$
begin
  insert into ranked_ledger.enrolment_failures as f (
    memory_id, workspace_id, stream_id, operation, reason, failed_with, is_transient)
  select m.id, m.workspace_id, ranked_ledger.stream_id(m.workspace_id, m.project_id, m.task_id), p_operation,
         left(p_reason, 1000), p_sqlstate, p_sqlstate in ('40001', '40P01', '55P03')
  from unnest(p_memories) as m
  on conflict (memory_id) do update
  set workspace_id = excluded.workspace_id, stream_id = excluded.stream_id, operation = excluded.operation,
      reason = excluded.reason, failed_with = excluded.failed_with, is_transient = excluded.is_transient,
      failed_at = excluded.failed_at;
exception when others then
  raise warning 'Ranked Ledger: % of % memories failed (%) and could not be noted: %', p_operation,
    cardinality(p_memories), p_reason, sqlerrm;
end
$$;

comment on function ranked_ledger.note_failures(public.agent_memories[], text, text, text) is
  'Keeps what a trigger could not do, once a memory. Never raises: the host''s write goes first.';

-- What both triggers share: p_operation is enrol or follow.
create or replace function ranked_ledger.attend_or_note(p_memories public.agent_memories[], p_operation text)
returns int language plpgsql
set search_path = public, extensions, pg_temp
set lock_timeout = '1s' -- somebody may keep a ledger row locked for as long as it likes; the host's write goes first
as $$
declare
  v_memory   public.agent_memories;
  v_attended int := 0;
begin
  -- Nothing but notes under SERIALIZABLE. The foreign-key check of a ledger row reads agent_memories, as the follower reads
  -- the ledger, and each reader conflicts with each writer of the same pages: one of two of the host's inserts was refused.
  if current_setting('transaction_isolation') = 'serializable' then
    perform ranked_ledger.note_failures(p_memories, p_operation, 'written under SERIALIZABLE', '40001');
    return 0;
  end if;
  begin
    return case p_operation when 'enrol' then ranked_ledger.enroll_memories(p_memories)
                            else ranked_ledger.follow_memories(p_memories) end;
  exception when others then
    null; -- one bad row must not cost the others their place: now one by one
  end;
  foreach v_memory in array p_memories loop
    begin
      v_attended := v_attended + case p_operation when 'enrol' then ranked_ledger.enroll_memories(array[v_memory])
                                                  else ranked_ledger.follow_memories(array[v_memory]) end;
    exception when others then
      perform ranked_ledger.note_failures(array[v_memory], p_operation, sqlerrm, sqlstate);
    end;
  end loop;
  return v_attended;
end
$$;

comment on function ranked_ledger.attend_or_note(public.agent_memories[], text) is
  'Enrols or follows memories; what cannot be done is kept in enrolment_failures.';

create or replace function ranked_ledger.is_full(p_memories public.agent_memories[], p_bytes bigint)
returns boolean language sql immutable parallel safe
return cardinality(p_memories) >= 500 or p_bytes >= 8388608;

comment on function ranked_ledger.is_full(public.agent_memories[], bigint) is
  'Whether a chunk of memories is to be worked off: 500 rows, or 8 MB of text. Bounds what a COPY of long texts holds in memory.';

create or replace function ranked_ledger.enroll_inserted_memories()
returns trigger language plpgsql security definer -- the writer may have no right on our tables: 42501 would lose its write
set search_path = public, extensions, pg_temp
as $$
declare
  v_memory public.agent_memories;
  v_chunk  public.agent_memories[] := '{}';
  v_bytes  bigint := 0;
begin
  for v_memory in select n.* from inserted_memories n where n.memory_type = 'decision' loop
    v_chunk := array_append(v_chunk, v_memory);
    v_bytes := v_bytes + octet_length(v_memory.content) + coalesce(pg_column_size(v_memory.metadata), 0);
    if ranked_ledger.is_full(v_chunk, v_bytes) then
      perform ranked_ledger.attend_or_note(v_chunk, 'enrol');
      v_chunk := '{}';
      v_bytes := 0;
    end if;
  end loop;
  if v_chunk <> '{}' then
    perform ranked_ledger.attend_or_note(v_chunk, 'enrol');
  end if;
  return null;
exception when others then
  raise warning 'Ranked Ledger: decisions were not enrolled (%); enroll_missing_decisions mends it', sqlerrm;
  return null;
end
$$;

comment on function ranked_ledger.enroll_inserted_memories() is
  'Enrols the decisions of a statement. The memory is written whatever happens here.';

-- The published proposal has a row trigger of this name (a transition table needs a statement trigger) over a function of
-- its own, which nothing calls any more.
do $do$
declare
  v_old regprocedure;
begin
  select t.tgfoid::regprocedure into v_old from pg_trigger t
  where t.tgrelid = 'public.agent_memories'::regclass and t.tgname = 'trg_agent_decision_ledger_enroll';
  drop trigger if exists trg_agent_decision_ledger_enroll on public.agent_memories;
  if v_old is not null and v_old <> 'ranked_ledger.enroll_inserted_memories()'::regprocedure
     and not exists (select from pg_trigger t where t.tgfoid = v_old) then
    execute format('drop function %s', v_old);
  end if;
end
$do$;

create trigger trg_agent_decision_ledger_enroll
  after insert on public.agent_memories
  referencing new table as inserted_memories
  for each statement execute function ranked_ledger.enroll_inserted_memories();
