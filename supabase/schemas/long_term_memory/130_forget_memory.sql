-- One memory becomes a tombstone. What is held about a person in both stores goes by erase_subject.
create or replace function long_term_memory.forget_memory(p_org_id uuid, p_memory_id uuid, p_note text default null)
returns jsonb language plpgsql security definer
set search_path = public, extensions, pg_temp
as $$
declare
  v_caller long_term_memory.caller := long_term_memory.admit(p_org_id, '{member,admin,owner}');
  v_memory long_term_memory.agent_memories;
begin
  perform long_term_memory.check_note(p_note);
  perform long_term_memory.share_subject(p_org_id, m.subject_type, m.subject_id)
  from long_term_memory.agent_memories m where m.org_id = p_org_id and m.id = p_memory_id;
  select * into v_memory from long_term_memory.agent_memories m
  where m.org_id = p_org_id and m.id = p_memory_id and m.redacted_at is not null;
  if found then
    perform long_term_memory.check_own(v_caller, v_memory);
    return jsonb_build_object('memory_id', p_memory_id, 'forgotten_at', v_memory.redacted_at, 'already', true);
  end if;
  v_memory := long_term_memory.live_memory(p_org_id, p_memory_id);
  perform long_term_memory.check_own(v_caller, v_memory);
  update long_term_memory.agent_memories m set redacted_at = now() where m.org_id = p_org_id and m.id = p_memory_id
  returning * into v_memory;
  perform long_term_memory.note_event(p_org_id, p_memory_id, 'forgotten', v_caller, null, null, p_note);
  return jsonb_build_object('memory_id', p_memory_id, 'forgotten_at', v_memory.redacted_at, 'already', false);
end
$$;

comment on function long_term_memory.forget_memory(uuid, uuid, text) is 'Behind public.forget_memory.';

create or replace function public.forget_memory(p_org_id uuid, p_memory_id uuid, p_note text default null)
returns jsonb language sql
set search_path = public, extensions, pg_temp
as $$
  select long_term_memory.forget_memory(p_org_id, p_memory_id, p_note)
$$;

comment on function public.forget_memory(uuid, uuid, text) is
  'Takes the words of one memory away and leaves a tombstone: a member their own, admins, owners and the service any. A repeat answers already.';
