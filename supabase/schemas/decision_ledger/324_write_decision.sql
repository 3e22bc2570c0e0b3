-- The one writer behind record_decision and record_decisions: thought, memory, ledger row, edges, audit event. All of it
-- or nothing, unlike a host's write, which goes through whatever happens in our triggers.

create or replace function ranked_ledger.without_nulls(p_object jsonb)
returns jsonb language sql immutable parallel safe
set search_path = public, extensions, pg_temp
as $$
  -- jsonb_object_agg took 15 seconds to copy an array of 100,000 texts, which the checks behind it refuse at once
  select p_object - array(select f.key from jsonb_each(p_object) as f where jsonb_typeof(f.value) = 'null')
$$;

comment on function ranked_ledger.without_nulls(jsonb) is
  'An object without its own null fields (nulls further inside stay): an argument that is null was left out.';

create or replace function ranked_ledger.embedding_of(p_embedding text)
returns vector language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
declare
  v_embedding vector := ranked_ledger.vector_of(p_embedding);
begin
  if v_embedding is null then
    return null;
  end if;
  perform ranked_ledger.check_dimension(vector_dims(v_embedding));
  perform ranked_ledger.check_direction(v_embedding);
  return v_embedding;
end
$$;

comment on function ranked_ledger.embedding_of(text) is
  'A vector from its text, null from null. Refuses what is no finite vector or all zeros (22023), or has another dimension than the host''s column (RL463).';

create or replace function ranked_ledger.thoughts_may_collide()
returns boolean language sql stable
set search_path = public, extensions, pg_temp
as $$
  select exists (
    select from pg_index i
    where i.indrelid = 'public.thoughts'::regclass and i.indisunique and not i.indisprimary
      and (i.indexprs is not null
           or exists (select from pg_trigger t
                      where t.tgrelid = i.indrelid and not t.tgisinternal and t.tgenabled <> 'D' and t.tgtype & 4 = 4)
           or exists (select from pg_attribute a
                      where a.attrelid = i.indrelid and a.attnum = any (i.indkey)
                        and (a.atthasdef or a.attname in ('content', 'embedding', 'metadata')))))
$$;

comment on function ranked_ledger.thoughts_may_collide() is
  'Whether a unique index of the host could refuse a thought that says only content, vector and metadata.';

create or replace function ranked_ledger.write_thought(
  p_content text, p_embedding vector, out thought_id uuid, out embedded boolean)
language plpgsql
set search_path = public, extensions, pg_temp
as $$
begin
  -- no fingerprint: two decisions of the same words are two thoughts, so that forgetting one leaves the other its own
  if not ranked_ledger.thoughts_may_collide() then
    insert into public.thoughts (content, embedding, metadata)
    values (p_content, p_embedding, '{"source": "ranked_ledger"}') returning id into thought_id;
    embedded := p_embedding is not null;
    return;
  end if;

  -- a host that fingerprints by itself may hold this text already (only here a subtransaction is worth its price)
  begin
    insert into public.thoughts (content, embedding, metadata)
    values (p_content, p_embedding, '{"source": "ranked_ledger"}') returning id into thought_id;
    embedded := p_embedding is not null;
  exception when unique_violation then
    thought_id := (public.upsert_thought(p_content, '{"metadata": {}}') ->> 'id')::uuid;
    update public.thoughts t set embedding = p_embedding
    where t.id = thought_id and t.embedding is null and p_embedding is not null;
    embedded := found;
  end;
end
$$;

comment on function ranked_ledger.write_thought(text, vector) is
  'A thought of its own for a decision. Where the host''s own unique fingerprint refuses that, the thought that is there; its vector is set only where it has none. embedded: whether the vector was stored.';

create or replace function ranked_ledger.complete_enrolment(p_memory_id uuid, p_decision jsonb, p_embedded boolean)
returns void language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_memory public.agent_memories;
begin
  -- the trigger did not enrol it: once more in the open, so that the caller hears why
  if not exists (select from public.agent_decision_ledger l where l.memory_id = p_memory_id) then
    select * into v_memory from public.agent_memories m where m.id = p_memory_id;
    begin
      perform ranked_ledger.enroll_memories(array[v_memory]);
    exception when others then
      raise sqlstate 'RL500' using
        message = format('The decision could not be enrolled, and nothing was written: %s', sqlerrm),
        detail = sqlstate,
        hint = 'Call ledger_status: its checks say what is wrong with the install.';
    end;
    delete from ranked_ledger.enrolment_failures f where f.memory_id = p_memory_id;
  end if;

  update public.agent_decision_ledger l
  set rationale = coalesce(p_decision ->> 'rationale', l.rationale),
      alternatives = coalesce(p_decision -> 'alternatives', l.alternatives),
      importance = coalesce((p_decision ->> 'importance')::numeric, l.importance),
      pinned = coalesce((p_decision ->> 'pinned')::boolean, l.pinned),
      step_index = coalesce((p_decision ->> 'step_index')::numeric::int, l.step_index),
      embedding_model = case when p_embedded then p_decision ->> 'embedding_model' end
  where l.memory_id = p_memory_id
    and p_decision ?| array['rationale', 'alternatives', 'importance', 'pinned', 'step_index', 'embedding_model'];
  if p_decision ? 'step_index' then
    update ranked_ledger.pending_steps p set step_is_given = true where p.memory_id = p_memory_id;
  end if;
end
$$;

comment on function ranked_ledger.complete_enrolment(uuid, jsonb, boolean) is
  'What a recorded decision says of itself, onto the ledger row that the enrolment trigger made. RL500 where there is none.';

create or replace function ranked_ledger.write_decision(p_workspace_id text, p_decision jsonb)
returns uuid language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_problem   text := ranked_ledger.decision_problem(p_decision);
  v_content   text := p_decision ->> 'content';
  v_embedding vector;
  v_grounds   uuid[];
  v_thought   record;
  v_memory_id uuid;
begin
  -- guard
  if v_problem is not null then
    raise sqlstate '22023' using
      message = v_problem,
      hint = 'Nothing was written. docs/sql-api.md lists the fields of a decision and their limits.';
  end if;
  v_embedding := ranked_ledger.embedding_of(p_decision ->> 'embedding');

  -- lock
  select coalesce(array_agg(distinct (d.value #>> '{}')::uuid), '{}') into v_grounds
  from jsonb_array_elements(coalesce(p_decision -> 'depends_on', '[]')) as d;
  perform ranked_ledger.hold_decisions(p_workspace_id, v_grounds);

  -- mutate
  select * into v_thought from ranked_ledger.write_thought(v_content, v_embedding);
  insert into public.agent_memories (
    thought_id, workspace_id, project_id, task_id, flow_id, visibility, memory_type, summary, content, created_by,
    runtime_name, metadata)
  values (
    v_thought.thought_id, p_workspace_id, p_decision ->> 'project_id', p_decision ->> 'task_id', p_decision ->> 'flow_id',
    coalesce(p_decision ->> 'visibility', 'project'), 'decision',
    coalesce(p_decision ->> 'summary', left(substring(v_content from '\S[^\n\r]*'), 200)), v_content,
    coalesce(p_decision ->> 'created_by', 'agent'), p_decision ->> 'runtime_name',
    coalesce(p_decision -> 'metadata', '{}'))
  returning id into v_memory_id;
  perform ranked_ledger.complete_enrolment(v_memory_id, p_decision, v_thought.embedded);
  insert into public.agent_decision_edges (from_memory_id, to_memory_id, relation)
  select v_memory_id, g.memory_id, 'depends_on' from unnest(v_grounds) as g (memory_id) order by g.memory_id;
  insert into public.agent_memory_audit_events (event_type, workspace_id, project_id, memory_id, actor_kind, payload)
  values ('memory_written', p_workspace_id, p_decision ->> 'project_id', v_memory_id,
          coalesce(p_decision ->> 'created_by', 'agent'), '{"kind": "decision_recorded"}');
  return v_memory_id;
end
$$;

comment on function ranked_ledger.write_decision(text, jsonb) is
  'Writes one decision from its fields (those of record_decision without p_, nulls removed), its step still provisional. Returns the memory id.';

create or replace function ranked_ledger.settle_now()
returns void language plpgsql
set search_path = public, extensions, pg_temp
as $$
begin
  -- an RPC answers before its commit: settled here, the step that it returns is the step that is stored
  set constraints ranked_ledger.settle_steps_at_commit immediate;
  set constraints ranked_ledger.settle_steps_at_commit deferred;
end
$$;

comment on function ranked_ledger.settle_now() is 'Settles the steps of this transaction''s writes at once.';
