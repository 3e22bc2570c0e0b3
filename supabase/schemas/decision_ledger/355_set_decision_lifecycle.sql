-- The reversible way: rejected, disputed, stale, and back to active.

create or replace function ranked_ledger.check_lifecycle(p_lifecycle text)
returns void language plpgsql immutable
set search_path = public, extensions, pg_temp
as $$
begin
  if p_lifecycle is null or p_lifecycle not in ('active', 'stale', 'disputed', 'rejected') then
    raise sqlstate '22023' using
      message = 'p_lifecycle is not one of active, stale, disputed, rejected.',
      hint = case when p_lifecycle = 'superseded'
                  then 'A decision is superseded by another one: call supersede_decision.'
                  else 'active restores a decision; the others retire it.' end;
  end if;
end
$$;

comment on function ranked_ledger.check_lifecycle(text) is 'Refuses (22023) a lifecycle that is not set by hand.';

-- A person's review before the merge is worth as much as it was. Where nothing says what it was, nobody has reviewed it.
create or replace function ranked_ledger.review_status_before_merge(p_memory_id uuid)
returns text language sql stable
set search_path = public, extensions, pg_temp
as $$
  select coalesce((
    select a.before ->> 'review_status' from public.agent_memory_review_actions a
    where a.memory_id = p_memory_id and a.action = 'merge'
      -- not merged: it may have been merged into a second one; nothing else that the host's column would not take
      and a.before ->> 'review_status' in ('pending', 'confirmed', 'evidence_only', 'restricted', 'rejected', 'stale')
    order by a.created_at desc, a.id limit 1), 'pending')
$$;

comment on function ranked_ledger.review_status_before_merge(uuid) is
  'The review status that the newest merge covered, by its review action; pending where none is noted.';

create or replace function ranked_ledger.take_back_supersessions(p_before public.agent_memories)
returns jsonb language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_by   uuid[];
  v_into uuid[];
begin
  with gone as (
    delete from public.agent_memory_relations r
    where (r.to_memory_id = p_before.id and r.relation = 'supersedes')
       or (r.from_memory_id = p_before.id and r.relation = 'merged_into')
    returning r.from_memory_id, r.to_memory_id, r.relation)
  select array_agg(g.from_memory_id order by g.from_memory_id) filter (where g.relation = 'supersedes'),
         array_agg(g.to_memory_id order by g.to_memory_id) filter (where g.relation = 'merged_into')
  into v_by, v_into from gone g;
  return jsonb_strip_nulls(jsonb_build_object(
    'no_longer_superseded_by', v_by, 'no_longer_merged_into', v_into,
    -- one that was reviewed since keeps that review
    'review_status', case when p_before.review_status = 'merged'
                          then ranked_ledger.review_status_before_merge(p_before.id) end));
end
$$;

comment on function ranked_ledger.take_back_supersessions(public.agent_memories) is
  'Removes the relations by which a decision was replaced or merged. Answers what is undone, with the review status that comes back where it was merged.';

do $do$
begin
  if to_regprocedure('ranked_ledger.note_lifecycle_change(public.agent_memories, text, uuid[], text, text)') is not null then
    execute 'drop function ranked_ledger.note_lifecycle_change(public.agent_memories, text, uuid[], text, text)';
  end if;
end
$do$;

create or replace function ranked_ledger.note_lifecycle_change(
  p_before public.agent_memories, p_lifecycle text, p_undone jsonb, p_reason text, p_actor text)
returns void language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_action text := case p_lifecycle when 'rejected' then 'reject' when 'disputed' then 'dispute'
                                    when 'stale' then 'mark_stale' else 'edit' end;
  v_kind   text := case v_action when 'edit' then 'restore' else v_action end;
begin
  perform ranked_ledger.note_transition(p_before.id, p_reason, p_actor);
  insert into public.agent_memory_review_actions (memory_id, action, actor_label, notes, before, after)
  values (p_before.id, v_action, p_actor, p_reason,
          jsonb_build_object('lifecycle_status', p_before.lifecycle_status)
          || case when p_undone ? 'review_status' then jsonb_build_object('review_status', p_before.review_status) else '{}' end,
          jsonb_build_object('kind', v_kind, 'lifecycle_status', p_lifecycle) || p_undone);
  -- ids only: the event outlives the decision
  insert into public.agent_memory_audit_events (event_type, workspace_id, project_id, memory_id, actor_label, payload)
  values (case p_lifecycle when 'rejected' then 'memory_rejected' when 'disputed' then 'memory_disputed'
                           else 'memory_edited' end,
          p_before.workspace_id, p_before.project_id, p_before.id, p_actor,
          jsonb_build_object('kind', v_kind, 'lifecycle_before', p_before.lifecycle_status));
end
$$;

comment on function ranked_ledger.note_lifecycle_change(public.agent_memories, text, jsonb, text, text) is
  'Transition, review action and audit event of one change; the host''s lists are closed, so a restoration is an edit of that kind.';

create or replace function public.set_decision_lifecycle(
  p_workspace_id text, p_memory_id uuid, p_lifecycle text, p_reason text default null, p_actor text default null)
returns jsonb language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_before  public.agent_memories;
  v_undone  jsonb := '{}';
  v_changed boolean;
begin
  -- guard
  perform ranked_ledger.check_workspace(p_workspace_id);
  perform ranked_ledger.check_lifecycle(p_lifecycle);
  perform ranked_ledger.check_reason(p_reason, p_actor);

  -- lock
  if p_lifecycle = 'active' then
    perform ranked_ledger.lock_supersession(p_workspace_id);
  end if;
  perform ranked_ledger.lock_decisions(p_workspace_id, array[p_memory_id]);
  select * into strict v_before from public.agent_memories m where m.id = p_memory_id;
  v_changed := v_before.lifecycle_status <> p_lifecycle;

  -- mutate
  if v_changed then
    if p_lifecycle = 'active' then
      v_undone := ranked_ledger.take_back_supersessions(v_before);
    end if;
    update public.agent_memories m
    set lifecycle_status = p_lifecycle, review_status = coalesce(v_undone ->> 'review_status', m.review_status)
    where m.id = p_memory_id;
    perform ranked_ledger.note_lifecycle_change(v_before, p_lifecycle, v_undone, p_reason, p_actor);
  end if;
  return ranked_ledger.decision_json(p_workspace_id, p_memory_id) || jsonb_build_object('changed', v_changed);
end
$$;

comment on function public.set_decision_lifecycle(text, uuid, text, text, text) is
  'Rejects, disputes, marks stale or restores a decision. Restoring takes back the supersessions that point at it and what a merge added; the review action names them.';
