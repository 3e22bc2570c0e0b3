-- A correction takes the words' place; the former ones stay in the history. It clears the review, unless an admin or owner
-- made it with a token of their own: nobody has reviewed the new words.
create or replace function long_term_memory.correct_memory(
  p_org_id uuid, p_memory_id uuid, p_text text, p_note text default null, p_expires_at timestamptz default null,
  p_embedding text default null, p_embedding_model text default null)
returns jsonb language plpgsql security definer
set search_path = public, extensions, pg_temp
as $$
declare
  v_caller    long_term_memory.caller := long_term_memory.admit(p_org_id, '{member,admin,owner}');
  v_embedding vector := long_term_memory.embedding_of(p_embedding, p_embedding_model);
  v_before    long_term_memory.agent_memories;
  v_memory    long_term_memory.agent_memories;
  v_keeps     boolean := v_caller.kind = 'user' and v_caller.role in ('admin', 'owner');
begin
  -- guard: the subject before the row, as an erasure comes by them
  perform long_term_memory.check_note(p_note);
  perform long_term_memory.share_subject(p_org_id, m.subject_type, m.subject_id)
  from long_term_memory.agent_memories m where m.org_id = p_org_id and m.id = p_memory_id;
  v_before := long_term_memory.live_memory(p_org_id, p_memory_id);
  perform long_term_memory.check_own(v_caller, v_before);
  if p_text is not distinct from v_before.text and v_embedding is null
     and (p_expires_at is null or p_expires_at = v_before.expires_at) then
    return long_term_memory.memory_json(v_before) || '{"changed": false}';
  end if;

  -- mutate: a vector is one of the words
  v_keeps := v_keeps or p_text is not distinct from v_before.text;
  update long_term_memory.agent_memories m
  set text = p_text,
      expires_at = coalesce(p_expires_at, m.expires_at),
      embedding = case when v_embedding is not null then v_embedding when p_text = m.text then m.embedding end,
      embedding_model = case when v_embedding is not null then p_embedding_model when p_text = m.text then m.embedding_model else '' end,
      reviewed_at = case when v_keeps then m.reviewed_at end, reviewed_by = case when v_keeps then m.reviewed_by end,
      review_outcome = case when v_keeps then m.review_outcome end, review_grade = case when v_keeps then m.review_grade end,
      can_use_as_instruction = v_keeps and m.can_use_as_instruction
  where m.org_id = p_org_id and m.id = p_memory_id
  returning * into v_memory;
  perform long_term_memory.note_event(p_org_id, p_memory_id, 'corrected', v_caller, null,
    case when v_before.review_outcome is not null and not v_keeps then 'review_cleared' end, p_note,
    nullif(v_before.text, v_memory.text));
  return long_term_memory.memory_json(v_memory) || '{"changed": true}';
end
$$;

comment on function long_term_memory.correct_memory(uuid, uuid, text, text, timestamptz, text, text) is 'Behind public.correct_memory.';

create or replace function public.correct_memory(
  p_org_id uuid, p_memory_id uuid, p_text text, p_note text default null, p_expires_at timestamptz default null,
  p_embedding text default null, p_embedding_model text default null)
returns jsonb language sql
set search_path = public, extensions, pg_temp
as $$
  select long_term_memory.correct_memory(p_org_id, p_memory_id, p_text, p_note, p_expires_at, p_embedding, p_embedding_model)
$$;

comment on function public.correct_memory(uuid, uuid, text, text, timestamptz, text, text) is
  'Gives a memory other words: a member to their own, admins, owners and the service to all. New words lose the review, unless an admin or owner wrote them with a token of their own.';
