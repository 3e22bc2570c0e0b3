-- What a memory's metadata says of the decision. Never raises: what cannot be used is noted with its reason.
create or replace function ranked_ledger.enrolment_facts(
  p_metadata jsonb, p_confidence numeric,
  out step_index int, out step_note jsonb, out rationale text, out importance numeric, out alternatives jsonb)
language plpgsql immutable parallel safe
set search_path = public, extensions, pg_temp
as $$
declare
  v_own        jsonb := p_metadata -> 'agent_memory';
  v_step       jsonb := coalesce(v_own -> 'step_index', p_metadata -> 'step_index');
  v_importance jsonb := coalesce(v_own -> 'importance', p_metadata -> 'importance');
  v_others     jsonb := coalesce(v_own -> 'alternatives', p_metadata -> 'alternatives');
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
  with facts as materialized (
    select m.id, m.workspace_id, m.project_id, m.task_id, m.flow_id, m.content, m.ordinality, f.*,
           ranked_ledger.stream_id(m.workspace_id, m.project_id, m.task_id) as stream_id
    from unnest(p_memories) with ordinality as m
    cross join lateral ranked_ledger.enrolment_facts(m.metadata, m.confidence) as f
    where m.memory_type = 'decision'),
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
      search_lexemes)
    select p.id, p.workspace_id, p.project_id, p.task_id, p.flow_id, coalesce(p.step_index, p.provisional_step),
           p.rationale, p.importance, p.alternatives, coalesce(p.step_note, '{}'),
           ranked_ledger.decision_lexemes(ranked_ledger.text_config(p.workspace_id), p.content, p.rationale)
    from placed p order by p.ordinality
    on conflict (memory_id) do nothing
    returning l.memory_id),
  marked as (
    insert into ranked_ledger.pending_steps (stream_id, memory_id, step_is_given)
    select p.stream_id, p.id, p.step_index is not null
    from placed p join enrolled e on e.memory_id = p.id order by p.ordinality)
  select count(*) into v_enrolled from enrolled;

  if v_enrolled > 0 then
    perform set_config('ranked_ledger.unsettled', '1', true);
  end if;
  return v_enrolled;
end
$$;

comment on function ranked_ledger.enroll_memories(public.agent_memories[]) is
  'Writes the ledger rows of memories of type decision that have none, in the order given, with provisional steps. Returns how many.';

create or replace function ranked_ledger.note_failure(
  p_memory_id uuid, p_workspace_id text, p_operation text, p_reason text, p_sqlstate text)
returns void language plpgsql
set search_path = public, extensions, pg_temp
as $$
begin
  insert into ranked_ledger.enrolment_failures (memory_id, workspace_id, operation, reason, failed_with)
  values (p_memory_id, p_workspace_id, p_operation, left(p_reason, 1000), p_sqlstate);
exception when others then
  raise warning 'Ranked Ledger: % of memory % failed and could not be noted: %', p_operation, p_memory_id, p_reason;
end
$$;

comment on function ranked_ledger.note_failure(uuid, text, text, text, text) is
  'Keeps what a trigger could not do. Never raises: the host''s write goes first.';

create or replace function ranked_ledger.enroll_or_note(p_memories public.agent_memories[])
returns int language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_memory   public.agent_memories;
  v_enrolled int := 0;
begin
  begin
    return ranked_ledger.enroll_memories(p_memories);
  exception when others then
    null; -- one bad row must not cost the others their place: now one by one
  end;
  foreach v_memory in array p_memories loop
    begin
      v_enrolled := v_enrolled + ranked_ledger.enroll_memories(array[v_memory]);
    exception when others then
      perform ranked_ledger.note_failure(v_memory.id, v_memory.workspace_id, 'enrol', sqlerrm, sqlstate);
    end;
  end loop;
  return v_enrolled;
end
$$;

comment on function ranked_ledger.enroll_or_note(public.agent_memories[]) is
  'enroll_memories; what cannot be enrolled is kept in enrolment_failures.';

create or replace function ranked_ledger.enroll_inserted_memories()
returns trigger language plpgsql security definer -- the writer may have no right on our tables: 42501 would lose its write
set search_path = public, extensions, pg_temp
as $$
declare
  v_chunk public.agent_memories[];
begin
  for v_chunk in -- bounds the memory of a COPY of large texts
    select array_agg(c.memory order by c.position)
    from (select n as memory, row_number() over () as position from inserted_memories n
          where n.memory_type = 'decision') as c
    group by (c.position - 1) / 500 order by (c.position - 1) / 500
  loop
    perform ranked_ledger.enroll_or_note(v_chunk);
  end loop;
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
