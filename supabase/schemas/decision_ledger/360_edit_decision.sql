-- Importance and pin: one value of the ledger row each, with an audit event where it changed.

create or replace function ranked_ledger.note_edit(p_workspace_id text, p_memory_id uuid, p_payload jsonb)
returns void language plpgsql
set search_path = public, extensions, pg_temp
as $$
begin
  insert into public.agent_memory_audit_events (event_type, workspace_id, project_id, memory_id, payload)
  select 'memory_edited', p_workspace_id, m.project_id, m.id, p_payload
  from public.agent_memories m where m.id = p_memory_id;
end
$$;

comment on function ranked_ledger.note_edit(text, uuid, jsonb) is 'The audit event of an edit; the payload names its kind and holds none of the decision''s words.';

create or replace function public.set_decision_importance(p_workspace_id text, p_memory_id uuid, p_importance float8)
returns jsonb language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_before  numeric;
  v_changed boolean;
begin
  -- guard
  perform ranked_ledger.check_workspace(p_workspace_id);
  if p_importance is null or p_importance not between 0 and 1 then -- NaN is greater than 1
    raise sqlstate '22023' using
      message = 'p_importance is not a number from 0 to 1.',
      hint = '0 is of no importance, 0.5 the usual, 1 the greatest; it is kept to two digits.';
  end if;

  -- lock
  perform ranked_ledger.lock_decisions(p_workspace_id, array[p_memory_id]);
  select l.importance into strict v_before
  from public.agent_decision_ledger l where l.memory_id = p_memory_id for no key update;

  -- mutate
  update public.agent_decision_ledger l set importance = p_importance::numeric(3, 2), updated_at = now()
  where l.memory_id = p_memory_id and l.importance <> p_importance::numeric(3, 2);
  v_changed := found;
  if v_changed then
    perform ranked_ledger.note_edit(p_workspace_id, p_memory_id, jsonb_build_object(
      'kind', 'decision_importance', 'before', v_before, 'after', p_importance::numeric(3, 2)));
  end if;
  return ranked_ledger.decision_json(p_workspace_id, p_memory_id) || jsonb_build_object('changed', v_changed);
end
$$;

comment on function public.set_decision_importance(text, uuid, float8) is
  'How much a decision matters, in [0,1], kept to two digits.';

create or replace function public.pin_decision(p_workspace_id text, p_memory_id uuid, p_pinned boolean default true)
returns jsonb language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_pinned  boolean := coalesce(p_pinned, true);
  v_changed boolean;
begin
  perform ranked_ledger.check_workspace(p_workspace_id);
  perform ranked_ledger.lock_decisions(p_workspace_id, array[p_memory_id]);
  update public.agent_decision_ledger l set pinned = v_pinned, updated_at = now()
  where l.memory_id = p_memory_id and l.pinned <> v_pinned;
  v_changed := found;
  if v_changed then
    perform ranked_ledger.note_edit(p_workspace_id, p_memory_id,
      jsonb_build_object('kind', case when v_pinned then 'decision_pinned' else 'decision_unpinned' end));
  end if;
  return ranked_ledger.decision_json(p_workspace_id, p_memory_id) || jsonb_build_object('changed', v_changed);
end
$$;

comment on function public.pin_decision(text, uuid, boolean) is
  'A pinned decision comes first in every recall that it is a candidate of. p_pinned false takes the pin out.';
