-- Which organization a workspace of the ledger belongs to. Whoever writes workspace_orgs, by the RPC or by plain SQL, the
-- rest follows: attributions of another organization go, and what recalls of the workspace said of their subject is tied.

create or replace function long_term_memory.lose_attributions(p_workspace_id text, p_org_id uuid)
returns void language sql
set search_path = public, extensions, pg_temp
as $$
  with lost as (
    delete from long_term_memory.decision_subjects s
    where s.workspace_id = p_workspace_id and s.org_id is distinct from p_org_id
    returning s.org_id, s.memory_id)
  insert into long_term_memory.audit_events (org_id, kind, actor_id, payload)
  select l.org_id, 'attribution_lost', long_term_memory.request_user(), jsonb_build_object(
    'reason', 'workspace mapped elsewhere', 'workspace_id', p_workspace_id, 'count', count(*),
    'memory_ids', to_jsonb((array_agg(distinct l.memory_id))[1:100]))
  from lost l where long_term_memory.org_exists(l.org_id) group by l.org_id
$$;

comment on function long_term_memory.lose_attributions(text, uuid) is
  'Deletes attributions of a workspace that another organization made, with one audit event for each of those: how many, and a hundred ids of them.';

create or replace function long_term_memory.is_subject(p_subject jsonb)
returns boolean language sql immutable parallel safe
return case when jsonb_typeof(p_subject) = 'object'
            then coalesce(p_subject ->> 'type' in ('workspace', 'candidate', 'user'), false)
                 and long_term_memory.uuid_of(p_subject ->> 'id') is not null
            else false end;

comment on function long_term_memory.is_subject(jsonb) is 'Whether this names a subject, as {"type", "id"}.';

-- Recalls say whom they are about before anybody has said whose the workspace is.
create or replace function long_term_memory.tie_named_traces(p_workspace_id text, p_org_id uuid)
returns void language plpgsql
set search_path = public, extensions, pg_temp
as $$
begin
  if not long_term_memory.has_ledger() then
    return;
  end if;
  insert into long_term_memory.trace_subjects (trace_id, org_id, subject_type, subject_id)
  select n.trace_id, p_org_id, n.subject ->> 'type', (n.subject ->> 'id')::uuid
  from (select t.id as trace_id, t.request_payload -> 'subject' as subject
        from public.agent_memory_recall_traces t
        where t.workspace_id = p_workspace_id and t.request_payload -> 'subject' is not null) as n
  where long_term_memory.is_subject(n.subject)
  on conflict do nothing;
end
$$;

comment on function long_term_memory.tie_named_traces(text, uuid) is
  'Ties the traces of a workspace that has just been mapped to the subjects that their callers named.';

create or replace function long_term_memory.follow_mapping()
returns trigger language plpgsql security definer -- an organization that is deleted takes its mappings with it, whoever deletes it
set search_path = public, extensions, pg_temp
as $$
declare
  v_before long_term_memory.workspace_orgs := case when tg_op <> 'INSERT' then old end;
  v_after  long_term_memory.workspace_orgs := case when tg_op <> 'DELETE' then new end;
begin
  if (v_before.workspace_id, v_before.org_id) is not distinct from (v_after.workspace_id, v_after.org_id) then
    return null;
  end if;
  if v_before.workspace_id is distinct from v_after.workspace_id then
    perform long_term_memory.lose_attributions(v_before.workspace_id, null);
  end if;
  if v_after.workspace_id is not null then
    perform long_term_memory.lose_attributions(v_after.workspace_id, v_after.org_id);
    perform long_term_memory.tie_named_traces(v_after.workspace_id, v_after.org_id);
  end if;
  insert into long_term_memory.audit_events (org_id, kind, actor_id, payload)
  select x.org_id, x.kind, long_term_memory.request_user(), jsonb_build_object('workspace_id', x.workspace_id)
  from (values (v_before.org_id, 'workspace_unmapped', v_before.workspace_id),
               (v_after.org_id, 'workspace_mapped', v_after.workspace_id)) as x (org_id, kind, workspace_id)
  where long_term_memory.org_exists(x.org_id);
  return null;
end
$$;

comment on function long_term_memory.follow_mapping() is
  'When a workspace is mapped or unmapped, attributions of another organization go, and what its recalls were said to be about is tied; both organizations are told.';

create or replace trigger workspace_orgs_follow
  after insert or update or delete on long_term_memory.workspace_orgs
  for each row execute function long_term_memory.follow_mapping();

create or replace function public.map_workspace(p_org_id uuid, p_workspace_id text)
returns jsonb language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_before uuid;
  v_lost   bigint;
begin
  -- guard
  if p_workspace_id is null or p_workspace_id !~ '\S' then
    raise sqlstate '22023' using message = 'p_workspace_id is blank.', hint = 'Name the workspace of the ledger.';
  elsif octet_length(p_workspace_id) > 1000 then
    raise sqlstate '22023' using message = 'p_workspace_id is longer than 1000 bytes.', hint = 'Use a short name or an id.';
  elsif p_org_id is not null then
    perform long_term_memory.require_org(p_org_id);
  end if;

  -- lock: whoever attributes a decision of this workspace shares the row, so that the count is exact
  select w.org_id into v_before from long_term_memory.workspace_orgs w where w.workspace_id = p_workspace_id for update;
  select count(*) into v_lost from long_term_memory.decision_subjects s
  where s.workspace_id = p_workspace_id and s.org_id is distinct from p_org_id;

  -- mutate
  if p_org_id is null then
    delete from long_term_memory.workspace_orgs w where w.workspace_id = p_workspace_id;
  else
    insert into long_term_memory.workspace_orgs as w (workspace_id, org_id) values (p_workspace_id, p_org_id)
    on conflict (workspace_id) do update set org_id = excluded.org_id, mapped_at = now()
    where w.org_id <> excluded.org_id;
  end if;

  -- answer
  return jsonb_build_object('workspace_id', p_workspace_id, 'org_id', p_org_id,
                            'changed', v_before is distinct from p_org_id, 'attributions_lost', v_lost);
end
$$;

comment on function public.map_workspace(uuid, text) is
  'Says which organization a workspace of the ledger belongs to; null: none. Attributions that another one made are lost, and counted.';
