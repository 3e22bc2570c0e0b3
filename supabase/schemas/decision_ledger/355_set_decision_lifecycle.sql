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

create or replace function ranked_ledger.note_lifecycle_change(
  p_before public.agent_memories, p_lifecycle text, p_freed uuid[], p_reason text, p_actor text)
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
  values (p_before.id, v_action, p_actor, p_reason, jsonb_build_object('lifecycle_status', p_before.lifecycle_status),
          jsonb_build_object('kind', v_kind, 'lifecycle_status', p_lifecycle)
          || case when p_freed <> '{}' then jsonb_build_object('no_longer_superseded_by', p_freed) else '{}' end);
  -- ids only: the event outlives the decision
  insert into public.agent_memory_audit_events (event_type, workspace_id, project_id, memory_id, actor_label, payload)
  values (case p_lifecycle when 'rejected' then 'memory_rejected' when 'disputed' then 'memory_disputed'
                           else 'memory_edited' end,
          p_before.workspace_id, p_before.project_id, p_before.id, p_actor,
          jsonb_build_object('kind', v_kind, 'lifecycle_before', p_before.lifecycle_status));
end
$$;

comment on function ranked_ledger.note_lifecycle_change(public.agent_memories, text, uuid[], text, text) is
  'Transition, review action and audit event of one change; the host''s lists are closed, so a restoration is an edit of that kind.';

create or replace function public.set_decision_lifecycle(
  p_workspace_id text, p_memory_id uuid, p_lifecycle text, p_reason text default null, p_actor text default null)
returns jsonb language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_before  public.agent_memories;
  v_freed   uuid[] := '{}';
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
      with gone as (
        delete from public.agent_memory_relations r
        where r.to_memory_id = p_memory_id and r.relation = 'supersedes' returning r.from_memory_id)
      select coalesce(array_agg(g.from_memory_id order by g.from_memory_id), '{}') into v_freed from gone g;
    end if;
    update public.agent_memories m set lifecycle_status = p_lifecycle where m.id = p_memory_id;
    perform ranked_ledger.note_lifecycle_change(v_before, p_lifecycle, v_freed, p_reason, p_actor);
  end if;
  return ranked_ledger.decision_json(p_workspace_id, p_memory_id) || jsonb_build_object('changed', v_changed);
end
$$;

comment on function public.set_decision_lifecycle(text, uuid, text, text, text) is
  'Rejects, disputes, marks stale or restores a decision. Restoring takes back the supersessions that point at it; the review action names them.';
