-- What every verb asks first. An id of another workspace is absent: no message says that it exists elsewhere.

create or replace function ranked_ledger.check_workspace(p_workspace_id text)
returns void language plpgsql immutable
set search_path = public, extensions, pg_temp
as $$
begin
  if p_workspace_id is null or p_workspace_id !~ '\S' then
    raise sqlstate '22023' using
      message = 'p_workspace_id is blank.',
      hint = 'Name the workspace that the decision belongs to.';
  end if;
end
$$;

comment on function ranked_ledger.check_workspace(text) is 'Refuses (22023) a workspace id that is null or blank.';

-- The id becomes part of B-tree keys (ours and the host's), whose entries end at 2,704 bytes.
create or replace function ranked_ledger.check_recording_workspace(p_workspace_id text)
returns void language plpgsql immutable
set search_path = public, extensions, pg_temp
as $$
begin
  perform ranked_ledger.check_workspace(p_workspace_id);
  if octet_length(p_workspace_id) > 1000 then
    raise sqlstate '22023' using
      message = 'p_workspace_id is longer than 1000 bytes.',
      hint = 'Use a short name or an id.';
  end if;
end
$$;

comment on function ranked_ledger.check_recording_workspace(text) is
  'Refuses (22023) a workspace id that is blank, or longer than what an index holds.';

create or replace function ranked_ledger.refuse_absent(p_workspace_id text, p_memory_ids uuid[])
returns void language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
declare
  v_absent    uuid;
  v_forgotten timestamptz;
begin
  if p_memory_ids is null or array_position(p_memory_ids, null) is not null then
    raise sqlstate '22023' using
      message = 'A memory id is missing.',
      hint = 'Give the memory_id of a decision of this workspace.';
  end if;

  select w.memory_id into v_absent
  from unnest(p_memory_ids) with ordinality as w (memory_id, position)
  where not exists (
    select from public.agent_memories m
    join public.agent_decision_ledger l on l.memory_id = m.id and l.set_aside_at is null
    where m.id = w.memory_id and m.workspace_id = p_workspace_id and m.memory_type = 'decision')
  order by w.position limit 1;
  if v_absent is null then
    return;
  end if;

  select f.forgotten_at into v_forgotten from ranked_ledger.forgotten_decisions f
  where f.memory_id = v_absent and f.workspace_id = p_workspace_id;
  if v_forgotten is not null then
    raise sqlstate 'RL410' using
      message = format('The decision %s was forgotten.', v_absent),
      detail = format('It was forgotten at %s.', to_jsonb(v_forgotten) #>> '{}'),
      hint = 'Nothing of it is left. Record it again if it holds after all.';
  end if;
  raise sqlstate 'RL404' using
    message = format('There is no decision %s in this workspace.', v_absent),
    hint = case when exists (select from public.agent_memories m
                             where m.id = v_absent and m.workspace_id = p_workspace_id and m.memory_type = 'decision')
                then 'The memory is a decision that was not enrolled: call enroll_missing_decisions.'
                else 'Check the id and the workspace; list_decisions shows what is here.' end;
end
$$;

comment on function ranked_ledger.refuse_absent(text, uuid[]) is
  'Refuses the first id that is no decision in force of this workspace: RL410 where it was forgotten, else RL404.';

create or replace function ranked_ledger.hold_decisions(p_workspace_id text, p_memory_ids uuid[])
returns void language plpgsql
set search_path = public, extensions, pg_temp
as $$
begin
  if p_memory_ids = '{}' then
    return;
  end if;
  perform 1 from public.agent_memories m
  where m.id = any (p_memory_ids) and m.workspace_id = p_workspace_id
  order by m.id for key share;
  perform ranked_ledger.refuse_absent(p_workspace_id, p_memory_ids);
end
$$;

comment on function ranked_ledger.hold_decisions(text, uuid[]) is
  'Keeps decisions from being forgotten until the commit, in id order; refuses as refuse_absent does.';

create or replace function ranked_ledger.lock_decisions(p_workspace_id text, p_memory_ids uuid[])
returns void language plpgsql
set search_path = public, extensions, pg_temp
as $$
begin
  perform 1 from public.agent_memories m
  where m.id = any (p_memory_ids) and m.workspace_id = p_workspace_id
  order by m.id for no key update;
  perform ranked_ledger.refuse_absent(p_workspace_id, p_memory_ids);
end
$$;

comment on function ranked_ledger.lock_decisions(text, uuid[]) is
  'Locks decisions for a change, in id order; refuses as refuse_absent does.';
