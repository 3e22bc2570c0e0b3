-- A decision whose memory changes: retyped, moved, edited, its lifecycle changed.

create or replace function ranked_ledger.move_decision(p_memory public.agent_memories)
returns void language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_old public.agent_decision_ledger;
  v_new uuid := ranked_ledger.stream_id(p_memory.workspace_id, p_memory.project_id, p_memory.task_id);
begin
  select * into v_old from public.agent_decision_ledger l where l.memory_id = p_memory.id for no key update;
  if not found or v_old.stream_id = v_new then
    return;
  end if;

  update public.agent_decision_ledger l
  set workspace_id = p_memory.workspace_id, project_id = p_memory.project_id, task_id = p_memory.task_id,
      step_index = least(ranked_ledger.max_step(), ranked_ledger.next_provisional_step(v_new)),
      metadata = l.metadata || jsonb_build_object('moves', coalesce(l.metadata -> 'moves', '[]') || jsonb_build_array(
        jsonb_build_object('workspace_id', v_old.workspace_id, 'project_id', v_old.project_id, 'task_id', v_old.task_id,
                           'step_index', v_old.step_index, 'at', now()))),
      search_lexemes = ranked_ledger.decision_lexemes(
        ranked_ledger.text_config(p_memory.workspace_id), p_memory.content, l.rationale),
      updated_at = now()
  where l.memory_id = p_memory.id;

  delete from ranked_ledger.pending_steps p where p.memory_id = p_memory.id;
  insert into ranked_ledger.pending_steps (stream_id, memory_id) values (v_old.stream_id, null), (v_new, p_memory.id);
  perform set_config('ranked_ledger.unsettled', '1', true);

  if v_old.workspace_id is distinct from p_memory.workspace_id then
    perform ranked_ledger.drop_foreign_edges(p_memory.id, p_memory.workspace_id);
  end if;
end
$$;

comment on function ranked_ledger.move_decision(public.agent_memories) is
  'The next free step of the new stream, the old one kept in the ledger row''s metadata; edges that would cross workspaces go.';

create or replace function ranked_ledger.drop_foreign_edges(p_memory_id uuid, p_workspace_id text)
returns int language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_gone jsonb;
begin
  with gone as (
    delete from public.agent_decision_edges e
    using public.agent_memories o
    where p_memory_id in (e.from_memory_id, e.to_memory_id)
      and o.id = case when e.from_memory_id = p_memory_id then e.to_memory_id else e.from_memory_id end
      and o.workspace_id is distinct from p_workspace_id
    returning e.from_memory_id, e.to_memory_id, e.relation)
  select jsonb_agg(to_jsonb(g)) into v_gone from gone g;

  if v_gone is not null then
    insert into public.agent_memory_audit_events (event_type, workspace_id, memory_id, actor_kind, payload)
    values ('memory_edited', p_workspace_id, p_memory_id, 'system',
            jsonb_build_object('kind', 'decision_edges_dropped', 'reason', 'moved to another workspace', 'edges', v_gone));
  end if;
  return coalesce(jsonb_array_length(v_gone), 0);
end
$$;

comment on function ranked_ledger.drop_foreign_edges(uuid, text) is
  'Deletes the edges of a decision whose other end is in another workspace, with one audit event.';

create or replace function ranked_ledger.follow_decision(p_memory public.agent_memories)
returns void language plpgsql
set search_path = public, extensions, pg_temp
as $$
begin
  if p_memory.memory_type <> 'decision' then
    update public.agent_decision_ledger l set set_aside_at = now(), updated_at = now()
    where l.memory_id = p_memory.id and l.set_aside_at is null;
    return;
  end if;

  perform ranked_ledger.enroll_memories(array[p_memory]); -- where it has no row
  perform ranked_ledger.move_decision(p_memory);

  update public.agent_decision_ledger l
  set set_aside_at = null, flow_id = p_memory.flow_id, updated_at = now(),
      search_lexemes = ranked_ledger.decision_lexemes(
        ranked_ledger.text_config(l.workspace_id), p_memory.content, l.rationale)
  where l.memory_id = p_memory.id
    and (l.set_aside_at is not null or l.flow_id is distinct from p_memory.flow_id
         or l.search_lexemes is distinct from ranked_ledger.decision_lexemes(
              ranked_ledger.text_config(l.workspace_id), p_memory.content, l.rationale));
end
$$;

comment on function ranked_ledger.follow_decision(public.agent_memories) is
  'Makes the ledger row agree with its memory: set aside or restored, moved, its words indexed. Does nothing where they agree.';

create or replace function ranked_ledger.follow_updated_memory()
returns trigger language plpgsql security definer -- as for enrolment: the writer may have no right on our tables
set search_path = public, extensions, pg_temp
as $$
begin
  if new.lifecycle_status is distinct from old.lifecycle_status and new.memory_type = 'decision' then
    insert into ranked_ledger.lifecycle_transitions (memory_id, lifecycle_before, lifecycle_status, stream_step)
    select new.id, old.lifecycle_status, new.lifecycle_status,
           (select s.newest_step from ranked_ledger.streams s where s.stream_id = l.stream_id)
    from public.agent_decision_ledger l where l.memory_id = new.id;
  end if;
  if (new.memory_type, new.workspace_id, new.project_id, new.task_id, new.flow_id, new.content)
     is distinct from (old.memory_type, old.workspace_id, old.project_id, old.task_id, old.flow_id, old.content) then
    perform ranked_ledger.follow_decision(new);
  end if;
  return null;
exception when others then
  perform ranked_ledger.note_failure(new.id, new.workspace_id, 'follow', sqlerrm, sqlstate);
  return null;
end
$$;

comment on function ranked_ledger.follow_updated_memory() is 'The ledger follows its memory. The host''s update goes through whatever happens here.';

create or replace trigger trg_agent_decision_ledger_follow
  after update on public.agent_memories
  for each row
  when ((old.memory_type = 'decision' or new.memory_type = 'decision')
        and (old.memory_type, old.workspace_id, old.project_id, old.task_id, old.flow_id, old.lifecycle_status, old.content)
            is distinct from
            (new.memory_type, new.workspace_id, new.project_id, new.task_id, new.flow_id, new.lifecycle_status, new.content))
  execute function ranked_ledger.follow_updated_memory();
