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

create or replace function ranked_ledger.check_supersession(p_action text)
returns void language plpgsql immutable
set search_path = public, extensions, pg_temp
as $$
begin
  if p_action not in ('supersede', 'merge') then
    raise sqlstate '22023' using
      message = 'p_action is not one of supersede, merge.',
      hint = 'Leave it out to replace the old decision; merge says that it went into the new one.';
  end if;
end
$$;

comment on function ranked_ledger.check_supersession(text) is 'Refuses (22023) a way of replacing a decision that there is not.';

-- A host may lack the unique constraint, which is its own: looked for first, under the lock that every writer of ours holds.
create or replace function ranked_ledger.relate(p_from uuid, p_to uuid, p_relation text)
returns boolean language plpgsql
set search_path = public, extensions, pg_temp
as $$
begin
  if exists (select from public.agent_memory_relations r
             where r.from_memory_id = p_from and r.to_memory_id = p_to and r.relation = p_relation) then
    return false;
  end if;
  insert into public.agent_memory_relations (from_memory_id, to_memory_id, relation)
  values (p_from, p_to, p_relation) on conflict do nothing;
  return found;
end
$$;

comment on function ranked_ledger.relate(uuid, uuid, text) is 'Says a relation of two memories. False where it was said already.';

create or replace function ranked_ledger.note_supersession(
  p_before public.agent_memories, p_new uuid, p_action text, p_reason text, p_actor text)
returns void language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_merges boolean := p_action = 'merge';
begin
  insert into public.agent_memory_review_actions (memory_id, action, actor_label, notes, before, after)
  values (p_before.id, p_action, p_actor, p_reason,
          jsonb_build_object('lifecycle_status', p_before.lifecycle_status)
          || case when v_merges then jsonb_build_object('review_status', p_before.review_status) else '{}' end,
          jsonb_build_object('lifecycle_status', 'superseded', 'superseded_by', p_new)
          || case when v_merges then jsonb_build_object('review_status', 'merged') else '{}' end);
  -- ids only: the event outlives the decision
  insert into public.agent_memory_audit_events (event_type, workspace_id, project_id, memory_id, actor_label, payload)
  values ('memory_superseded', p_before.workspace_id, p_before.project_id, p_before.id, p_actor,
          jsonb_build_object('kind', p_action, 'superseded_by', p_new));
end
$$;

comment on function ranked_ledger.note_supersession(public.agent_memories, uuid, text, text, text) is
  'Review action and audit event of a decision that was superseded or merged. A merge notes the review status that it covers.';

-- An overload that stays makes PostgREST answer 300.
do $do$
begin
  if to_regprocedure('public.supersede_decision(text, uuid, uuid, text, text)') is not null then
    execute 'drop function public.supersede_decision(text, uuid, uuid, text, text)';
  end if;
end
$do$;

-- A merge is a supersession that says one thing more, so that whoever follows supersession need not know of it.
create or replace function public.supersede_decision(
  p_workspace_id text, p_old uuid, p_new uuid, p_reason text default null, p_actor text default null,
  p_action text default 'supersede')
returns jsonb language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_action  text := coalesce(p_action, 'supersede');
  v_merges  boolean := v_action = 'merge';
  v_before  public.agent_memories;
  v_linked  boolean;
  v_stood   boolean; -- in lifecycle and review, whatever the relations say
begin
  -- guard
  perform ranked_ledger.check_workspace(p_workspace_id);
  perform ranked_ledger.check_reason(p_reason, p_actor);
  perform ranked_ledger.check_supersession(v_action);

  -- lock
  perform ranked_ledger.lock_supersession(p_workspace_id);
  perform ranked_ledger.lock_decisions(p_workspace_id, array[p_old, p_new]);
  perform ranked_ledger.refuse_supersession_loop(p_old, p_new);
  select * into strict v_before from public.agent_memories m where m.id = p_old;
  v_stood := v_before.lifecycle_status = 'superseded' and (not v_merges or v_before.review_status = 'merged');

  -- mutate
  v_linked := ranked_ledger.relate(p_new, p_old, 'supersedes');
  if v_merges then
    v_linked := ranked_ledger.relate(p_old, p_new, 'merged_into') or v_linked;
  end if;
  if not v_stood then
    update public.agent_memories m
    set lifecycle_status = 'superseded', review_status = case when v_merges then 'merged' else m.review_status end
    where m.id = p_old;
  end if;
  if v_before.lifecycle_status <> 'superseded' then
    perform ranked_ledger.note_transition(p_old, p_reason, p_actor);
  end if;
  if v_linked or not v_stood then
    perform ranked_ledger.note_supersession(v_before, p_new, v_action, p_reason, p_actor);
  end if;

  -- answer
  return jsonb_build_object('old', ranked_ledger.decision_json(p_workspace_id, p_old),
    'new', ranked_ledger.decision_json(p_workspace_id, p_new), 'changed', v_linked or not v_stood);
end
$$;

comment on function public.supersede_decision(text, uuid, uuid, text, text, text) is
  'The new decision replaces the old one, which with p_action merge went into it: relations, lifecycle, review and audit event in one transaction. Answers changed false where it stood already.';
