-- Whom a decision of the ledger is about. Nothing tells it but whoever recorded it.

create or replace function long_term_memory.hold_decision(p_org_id uuid, p_memory_id uuid)
returns text language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_workspace_id text;
begin
  if not long_term_memory.has_ledger() then
    raise sqlstate 'RL501' using
      message = 'The decision ledger is not installed in this project: there is no decision to attribute.',
      hint = 'Add it with `ranked-ledger init` and push; memories are about somebody by themselves.';
  end if;
  -- the memory exclusively: who has returned it and not committed yet is waited for, who returns it later sees the attribution
  select w.workspace_id into v_workspace_id
  from public.agent_memories m
  join long_term_memory.workspace_orgs w on w.workspace_id = m.workspace_id::text and w.org_id = p_org_id
  where m.id = p_memory_id and m.memory_type = 'decision' for update of m for share of w;
  if v_workspace_id is null then
    raise sqlstate 'RL404' using
      message = format('There is no decision %s in a workspace of this organization.',
                       coalesce(p_memory_id::text, 'without an id')),
      hint = 'Check the id; map_workspace says which organization a workspace belongs to.';
  end if;
  return v_workspace_id;
end
$$;

comment on function long_term_memory.hold_decision(uuid, uuid) is
  'Locks a decision in a workspace of the organization and answers the workspace. RL404 where there is none, whatever exists elsewhere.';

create or replace function long_term_memory.tie_earlier_traces(
  p_org_id uuid, p_memory_id uuid, p_subject_type text, p_subject_id uuid)
returns void language plpgsql
set search_path = public, extensions, pg_temp
set enable_seqscan = off -- unless the host has no index on the items' memories
as $$
begin
  insert into long_term_memory.trace_subjects (trace_id, org_id, subject_type, subject_id)
  select distinct t.id, p_org_id, p_subject_type, p_subject_id
  from public.agent_memory_recall_items i
  join public.agent_memory_recall_traces t on t.id = i.trace_id
  join long_term_memory.workspace_orgs w on w.workspace_id = t.workspace_id::text and w.org_id = p_org_id
  where i.memory_id = p_memory_id
  on conflict do nothing;
end
$$;

comment on function long_term_memory.tie_earlier_traces(uuid, uuid, text, uuid) is
  'Ties the traces that have returned a decision already to a subject.';

-- What ties a trace besides: its caller's word, or another decision about the same subject.
create or replace function long_term_memory.untie_traces(
  p_org_id uuid, p_memory_id uuid, p_subject_type text, p_subject_id uuid)
returns void language plpgsql
set search_path = public, extensions, pg_temp
set enable_seqscan = off
as $$
begin
  delete from long_term_memory.trace_subjects s
  using public.agent_memory_recall_items i, public.agent_memory_recall_traces t
  where s.org_id = p_org_id and s.subject_type = p_subject_type and s.subject_id = p_subject_id
    and i.trace_id = s.trace_id and i.memory_id = p_memory_id and t.id = s.trace_id
    and t.request_payload -> 'subject' is distinct from jsonb_build_object('type', p_subject_type, 'id', p_subject_id)
    and not exists (
      select from public.agent_memory_recall_items o
      join long_term_memory.decision_subjects d
        on d.memory_id = o.memory_id and d.subject_type = p_subject_type and d.subject_id = p_subject_id and d.org_id = p_org_id
      where o.trace_id = s.trace_id and o.memory_id <> p_memory_id);
end
$$;

comment on function long_term_memory.untie_traces(uuid, uuid, text, uuid) is
  'Frees traces of a subject that were tied to it by a decision alone which turned out not to be about it.';

create or replace function public.attribute_decision(
  p_org_id uuid, p_memory_id uuid, p_subject_type text, p_subject_id uuid, p_remove boolean default false)
returns jsonb language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_workspace_id text;
  v_erased_at    timestamptz;
  v_changed      boolean;
  v_remove       boolean := coalesce(p_remove, false);
begin
  -- guard
  perform long_term_memory.require_org(p_org_id);
  perform long_term_memory.check_subject(p_subject_type, p_subject_id);
  if p_subject_type = 'workspace' then
    raise sqlstate '22023' using
      message = 'A decision is about a person here, and belongs to its workspace as it is.',
      hint = 'Use the subject type candidate or user.';
  end if;

  -- lock
  perform long_term_memory.share_subject(p_org_id, p_subject_type, p_subject_id);
  v_workspace_id := long_term_memory.hold_decision(p_org_id, p_memory_id);
  select min(s.erased_at) into v_erased_at from long_term_memory.decision_subjects s
  where s.memory_id = p_memory_id and s.org_id = p_org_id;
  if v_erased_at is not null and (v_remove or not exists (
    select from long_term_memory.decision_subjects s
    where s.memory_id = p_memory_id and s.subject_type = p_subject_type and s.subject_id = p_subject_id)) then
    raise sqlstate 'RL410' using
      message = format('The decision %s was erased.', p_memory_id),
      detail = format('It was erased at %s.', to_jsonb(v_erased_at) #>> '{}'),
      hint = 'Nothing of its words is left; whom it was about stays as it was then.';
  end if;

  -- mutate
  if v_remove then
    delete from long_term_memory.decision_subjects s
    where s.memory_id = p_memory_id and s.org_id = p_org_id and s.subject_type = p_subject_type and s.subject_id = p_subject_id;
    v_changed := found;
    if v_changed then
      perform long_term_memory.untie_traces(p_org_id, p_memory_id, p_subject_type, p_subject_id);
    end if;
  else
    insert into long_term_memory.decision_subjects (memory_id, org_id, workspace_id, subject_type, subject_id)
    values (p_memory_id, p_org_id, v_workspace_id, p_subject_type, p_subject_id)
    on conflict (memory_id, subject_type, subject_id) do update
    set org_id = excluded.org_id, workspace_id = excluded.workspace_id, attributed_at = now()
    where decision_subjects.org_id <> excluded.org_id; -- another one's, which could not follow the decision
    v_changed := found;
    perform long_term_memory.tie_earlier_traces(p_org_id, p_memory_id, p_subject_type, p_subject_id);
  end if;
  if v_changed then
    insert into long_term_memory.audit_events (org_id, kind, actor_id, payload)
    values (p_org_id, case when v_remove then 'attribution_removed' else 'decision_attributed' end,
            long_term_memory.request_user(), jsonb_build_object(
              'memory_id', p_memory_id, 'subject_type', p_subject_type, 'subject_id', p_subject_id));
  end if;

  -- answer
  return jsonb_build_object('memory_id', p_memory_id, 'subject_type', p_subject_type, 'subject_id', p_subject_id,
                            'changed', v_changed);
end
$$;

comment on function public.attribute_decision(uuid, uuid, text, uuid, boolean) is
  'Says that a decision of the ledger is about a candidate or a user, or takes that back. What was returned by recalls already is tied to them. RL410 for one that was erased.';
