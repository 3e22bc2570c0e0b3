-- Supersession changes one shape that several rows make up: one lock a workspace, taken before the rows, keeps two halves
-- of a loop from being added at once.

create or replace function ranked_ledger.lock_supersession(p_workspace_id text)
returns void language plpgsql
set search_path = public, extensions, pg_temp
as $$
begin
  perform pg_advisory_xact_lock(hashtextextended('ranked_ledger.supersession ' || p_workspace_id, 0));
end
$$;

comment on function ranked_ledger.lock_supersession(text) is 'Held until the commit by whoever adds or removes a supersession of the workspace.';

-- Breadth first, every memory visited once: a shortest path, at a cost that loops and diamonds do not multiply.
create or replace function ranked_ledger.supersession_path(p_from uuid, p_to uuid)
returns uuid[] language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
declare
  v_seen     uuid[] := array[p_from];
  v_parents  uuid[] := array[null::uuid];
  v_frontier uuid[] := array[p_from];
  v_next_by  uuid[];
  v_path     uuid[];
  v_step     uuid := p_to;
begin
  while not p_to = any (v_seen) loop
    select array_agg(n.to_memory_id), array_agg(n.from_memory_id) into v_frontier, v_next_by
    from (select distinct on (r.to_memory_id) r.to_memory_id, r.from_memory_id
          from public.agent_memory_relations r
          where r.from_memory_id = any (v_frontier) and r.relation = 'supersedes' and r.to_memory_id <> all (v_seen)
          order by r.to_memory_id, r.from_memory_id) as n;
    if v_frontier is null then
      return null;
    end if;
    v_seen := v_seen || v_frontier;
    v_parents := v_parents || v_next_by;
  end loop;
  while v_step is not null loop
    v_path := v_step || v_path;
    v_step := v_parents[array_position(v_seen, v_step)];
  end loop;
  return v_path;
end
$$;

comment on function ranked_ledger.supersession_path(uuid, uuid) is
  'A shortest way over supersedes from one decision to another, both included; null where there is none.';

create or replace function ranked_ledger.note_transition(p_memory_id uuid, p_reason text, p_actor text)
returns void language plpgsql
set search_path = public, extensions, pg_temp
as $$
begin
  update ranked_ledger.lifecycle_transitions t set reason = p_reason, actor = p_actor
  where t.id = (select max(x.id) from ranked_ledger.lifecycle_transitions x
                where x.memory_id = p_memory_id and x.changed_at = now()); -- an older one keeps its own reason
end
$$;

comment on function ranked_ledger.note_transition(uuid, text, text) is
  'Reason and actor of the transition that a trigger has just written.';

create or replace function ranked_ledger.check_reason(p_reason text, p_actor text)
returns void language plpgsql immutable
set search_path = public, extensions, pg_temp
as $$
begin
  if octet_length(p_reason) > 262144 or octet_length(p_actor) > 1000 then
    raise sqlstate '22023' using
      message = 'p_reason is longer than 262144 bytes, or p_actor than 1000.',
      hint = 'Say it in fewer words.';
  end if;
end
$$;

comment on function ranked_ledger.check_reason(text, text) is 'Refuses (22023) a reason or an actor that is too long to keep.';

create or replace function ranked_ledger.refuse_supersession_loop(p_old uuid, p_new uuid)
returns void language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
declare
  v_path uuid[];
begin
  -- asked from the new decision, which little has replaced: down from the old one, a chain of 5,000 took seven seconds
  if p_old = p_new or exists (select from ranked_ledger.superseded_by(p_new) s where s.memory_id = p_old) then
    v_path := p_new || ranked_ledger.supersession_path(p_old, p_new);
    raise sqlstate 'RL461' using
      message = case when p_old = p_new then 'A decision cannot supersede itself.'
                     else 'The supersession would close a loop: the old decision supersedes the new one already.' end,
      detail = array_to_string(v_path, ' -> '),
      hint = 'Record a new decision that replaces both, or restore one of them with set_decision_lifecycle.';
  end if;
end
$$;

comment on function ranked_ledger.refuse_supersession_loop(uuid, uuid) is
  'Refuses (RL461, with the path) that a decision supersedes itself, also by way of others.';

create or replace function public.supersede_decision(
  p_workspace_id text, p_old uuid, p_new uuid, p_reason text default null, p_actor text default null)
returns jsonb language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_before  public.agent_memories;
  v_linked  boolean;
  v_changed boolean;
begin
  -- guard
  perform ranked_ledger.check_workspace(p_workspace_id);
  perform ranked_ledger.check_reason(p_reason, p_actor);

  -- lock
  perform ranked_ledger.lock_supersession(p_workspace_id);
  perform ranked_ledger.lock_decisions(p_workspace_id, array[p_old, p_new]);
  perform ranked_ledger.refuse_supersession_loop(p_old, p_new);
  select * into strict v_before from public.agent_memories m where m.id = p_old;
  v_linked := exists (select from public.agent_memory_relations r
                      where r.from_memory_id = p_new and r.to_memory_id = p_old and r.relation = 'supersedes');
  v_changed := not v_linked or v_before.lifecycle_status <> 'superseded';

  -- mutate
  if not v_linked then
    insert into public.agent_memory_relations (from_memory_id, to_memory_id, relation)
    values (p_new, p_old, 'supersedes') on conflict do nothing;
  end if;
  if v_before.lifecycle_status <> 'superseded' then
    update public.agent_memories m set lifecycle_status = 'superseded' where m.id = p_old;
    perform ranked_ledger.note_transition(p_old, p_reason, p_actor);
  end if;
  if v_changed then
    insert into public.agent_memory_review_actions (memory_id, action, actor_label, notes, before, after)
    values (p_old, 'supersede', p_actor, p_reason, jsonb_build_object('lifecycle_status', v_before.lifecycle_status),
            jsonb_build_object('lifecycle_status', 'superseded', 'superseded_by', p_new));
    -- ids only: the event outlives the decision
    insert into public.agent_memory_audit_events (event_type, workspace_id, project_id, memory_id, actor_label, payload)
    values ('memory_superseded', p_workspace_id, v_before.project_id, p_old, p_actor,
            jsonb_build_object('kind', 'supersede', 'superseded_by', p_new));
  end if;

  -- answer
  return jsonb_build_object('old', ranked_ledger.decision_json(p_workspace_id, p_old),
    'new', ranked_ledger.decision_json(p_workspace_id, p_new), 'changed', v_changed);
end
$$;

comment on function public.supersede_decision(text, uuid, uuid, text, text) is
  'The new decision replaces the old one: relation, lifecycle, review action and audit event in one transaction. Answers changed false where it stood already.';
