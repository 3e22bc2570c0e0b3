-- Forgetting leaves ids, times and numbers, none of the decision's words. The memory's row is locked first, then what
-- hangs on it, so that it waits for a record or a link that rests on the decision, and never the other way round.

create or replace function ranked_ledger.forgotten_json(p_workspace_id text, p_memory_id uuid, p_already boolean)
returns jsonb language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
begin
  return (
    select jsonb_build_object('memory_id', f.memory_id, 'forgotten_at', f.forgotten_at, 'already', p_already,
                              'thought_deleted', f.thought_deleted, 'dependents', to_jsonb(f.dependents),
                              'left_superseded', to_jsonb(f.left_superseded))
    from ranked_ledger.forgotten_decisions f where f.memory_id = p_memory_id and f.workspace_id = p_workspace_id);
end
$$;

comment on function ranked_ledger.forgotten_json(text, uuid, boolean) is
  'The answer about a decision of the workspace that was forgotten; null where none was.';

create or replace function ranked_ledger.drop_lonely_thought(p_thought_id uuid)
returns boolean language plpgsql
set search_path = public, extensions, pg_temp
as $$
begin
  -- the lock waits for a writer who is just pointing a memory at it; the next statement sees that memory
  perform 1 from public.thoughts t where t.id = p_thought_id for update;
  delete from public.thoughts t
  where t.id = p_thought_id and not exists (select from public.agent_memories m where m.thought_id = t.id);
  return found;
end
$$;

comment on function ranked_ledger.drop_lonely_thought(uuid) is 'Deletes a thought that no memory points to. Returns whether it did.';

create or replace function public.forget_decision(p_workspace_id text, p_memory_id uuid)
returns jsonb language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_memory          public.agent_memories;
  v_dependents      uuid[];
  v_superseded      uuid[];
  v_thought_deleted boolean := false;
  v_answer          jsonb;
begin
  -- guard
  perform ranked_ledger.check_workspace(p_workspace_id);
  if p_memory_id is not null then
    select * into v_memory from public.agent_memories m
    where m.id = p_memory_id and m.workspace_id = p_workspace_id and m.memory_type = 'decision' for update;
    v_answer := ranked_ledger.forgotten_json(p_workspace_id, p_memory_id, true);
  end if;
  if v_memory.id is null then -- one that was never enrolled can be forgotten
    if v_answer is null then
      perform ranked_ledger.refuse_absent(p_workspace_id, array[p_memory_id]);
    end if;
    return v_answer;
  end if;

  v_superseded := array(
    select r.to_memory_id from public.agent_memory_relations r
    join public.agent_memories m
      on m.id = r.to_memory_id and m.workspace_id = p_workspace_id and m.lifecycle_status = 'superseded'
    where r.from_memory_id = p_memory_id and r.relation = 'supersedes' order by r.to_memory_id);

  -- mutate: the memory takes its ledger row, edges, relations, reviews, recall items and history with it
  delete from public.agent_memories m where m.id = p_memory_id;
  if v_memory.thought_id is not null then
    v_thought_deleted := ranked_ledger.drop_lonely_thought(v_memory.thought_id);
  end if;
  delete from ranked_ledger.enrolment_failures f where f.memory_id = p_memory_id; -- a reason may quote the text
  -- a digest of its words would tell a guess at them; the key answers "gone" without it
  update ranked_ledger.idempotency_keys k set digest = ''
  where k.workspace_id = p_workspace_id and p_memory_id = any (k.memory_ids);
  select coalesce(array_agg(distinct g.memory_id), '{}') into v_dependents
  from ranked_ledger.lost_grounds g where g.lost_memory_id = p_memory_id;
  -- what it had replaced stays superseded: that nothing replaces it now is for the caller to judge
  v_superseded := array(select u.memory_id from unnest(v_superseded) as u (memory_id)
                        where ranked_ledger.successor(u.memory_id) is null);
  insert into ranked_ledger.forgotten_decisions (memory_id, workspace_id, thought_deleted, dependents, left_superseded)
  values (p_memory_id, p_workspace_id, v_thought_deleted, v_dependents, v_superseded)
  on conflict (memory_id) do update
  set workspace_id = excluded.workspace_id, thought_deleted = excluded.thought_deleted,
      dependents = excluded.dependents, left_superseded = excluded.left_superseded, forgotten_at = excluded.forgotten_at;
  insert into public.agent_memory_audit_events (event_type, workspace_id, project_id, payload)
  values ('memory_edited', p_workspace_id, v_memory.project_id, jsonb_build_object(
    'kind', 'decision_forgotten', 'memory_id', p_memory_id, 'thought_id', v_memory.thought_id,
    'thought_deleted', v_thought_deleted, 'dependents', to_jsonb(v_dependents)));

  -- answer
  return ranked_ledger.forgotten_json(p_workspace_id, p_memory_id, false);
end
$$;

comment on function public.forget_decision(text, uuid) is
  'Deletes a decision for good: ledger row, memory and, where no other memory points to it, the thought. What rested on it keeps a mark. A repeat answers the same.';
