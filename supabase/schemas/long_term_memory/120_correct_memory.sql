-- Locks in the order of an erasure: the subject first, then the row. One that has expired is gone, swept or not.
create or replace function long_term_memory.memory_to_change(p_org_id uuid, p_memory_id uuid)
returns long_term_memory.agent_memories language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_memory long_term_memory.agent_memories;
begin
  perform long_term_memory.share_subject(p_org_id, m.subject_type, m.subject_id)
  from long_term_memory.agent_memories m where m.id = p_memory_id and m.org_id = p_org_id;
  v_memory := long_term_memory.live_memory(p_org_id, p_memory_id);
  if v_memory.expires_at <= now() then
    perform long_term_memory.no_memory(p_memory_id, ': it has expired');
  end if;
  return v_memory;
end
$$;

comment on function long_term_memory.memory_to_change(uuid, uuid) is
  'A memory locked for a change, erasures of its subject held up. RL404 where the organization has none, RL410 where it was erased.';

create or replace function long_term_memory.correct_memory(
  p_org_id uuid, p_memory_id uuid, p_text text, p_note text default null, p_expires_at timestamptz default null,
  p_embedding text default null, p_embedding_model text default null)
returns jsonb language plpgsql security definer
set search_path = public, extensions, pg_temp
as $$
declare
  v_caller     long_term_memory.caller := long_term_memory.admit(p_org_id, '{member,admin,owner}');
  v_embedding  vector := long_term_memory.embedding_of(p_embedding, p_embedding_model);
  v_before     long_term_memory.agent_memories;
  v_memory     long_term_memory.agent_memories;
  v_is_new     boolean;
  v_is_changed boolean;
  v_keeps      boolean;
  v_is_models  boolean;
  v_vouches    boolean;
begin
  -- guard
  perform long_term_memory.check_note(p_note);
  v_before := long_term_memory.memory_to_change(p_org_id, p_memory_id);
  perform long_term_memory.check_own(v_caller, v_before);
  v_is_new := v_before.text is distinct from p_text;
  v_is_changed := v_is_new or p_expires_at <> coalesce(v_before.expires_at, 'infinity')
                  or v_embedding is not null and (v_embedding, p_embedding_model)
                                                 is distinct from (v_before.embedding, v_before.embedding_model);
  if v_is_changed is not true then
    return long_term_memory.memory_json(v_before) || '{"changed": false}';
  end if;

  -- mutate; other words are the caller's, and not what was reviewed, unless the caller may review and so answers for them
  v_vouches := v_is_new and v_before.review_outcome is not null and coalesce(v_caller.role in ('admin', 'owner'), false);
  -- nor is another vector or a later end what was approved; a rejection is not undone by whoever was rejected
  v_keeps := v_vouches or not v_is_new and coalesce(v_caller.role in ('admin', 'owner'), false)
             or coalesce(v_before.review_outcome = 'rejected', false) and v_before.author = 'person'
                and coalesce(v_caller.role = 'member', false);
  v_is_models := v_is_new and v_caller.kind = 'service'; -- no key puts words into a person's mouth
  update long_term_memory.agent_memories m
  set text = p_text,
      author = case when v_is_models then 'model' else m.author end,
      written_by = case when v_is_new then v_caller.user_id else m.written_by end,
      asserted_by = case when not v_is_new then m.asserted_by end,
      expires_at = nullif(coalesce(p_expires_at, m.expires_at), 'infinity'),
      embedding = case when v_embedding is not null or v_is_new then v_embedding else m.embedding end,
      embedding_model = case when v_embedding is not null or v_is_new then coalesce(p_embedding_model, '')
                             else m.embedding_model end,
      reviewed_at = case when v_vouches then now() when v_keeps then m.reviewed_at end,
      reviewed_by = case when v_vouches then v_caller.user_id when v_keeps then m.reviewed_by end,
      review_outcome = case when v_keeps then m.review_outcome end,
      review_grade = case when v_vouches then 'verified' when v_keeps then m.review_grade end,
      can_use_as_instruction = v_keeps and m.can_use_as_instruction
  where m.id = p_memory_id and m.org_id = p_org_id
  returning * into v_memory;
  perform long_term_memory.note_event(
    p_org_id, p_memory_id, 'corrected', v_caller, null,
    case when v_before.review_outcome is not null and v_memory.review_outcome is null then 'review_cleared' end, p_note,
    case when v_is_new then v_before.text end,
    case when v_is_new then coalesce(v_before.written_by, long_term_memory.uuid_of(v_before.asserted_by)) end);
  return long_term_memory.memory_json(v_memory) || '{"changed": true}';
end
$$;

comment on function long_term_memory.correct_memory(uuid, uuid, text, text, timestamptz, text, text) is
  'The inner half of public.correct_memory, with the owner''s rights.';

create or replace function public.correct_memory(
  p_org_id uuid, p_memory_id uuid, p_text text, p_note text default null, p_expires_at timestamptz default null,
  p_embedding text default null, p_embedding_model text default null)
returns jsonb language sql
set search_path = public, extensions, pg_temp
as $$
  select long_term_memory.correct_memory(p_org_id, p_memory_id, p_text, p_note, p_expires_at, p_embedding, p_embedding_model)
$$;

comment on function public.correct_memory(uuid, uuid, text, text, timestamptz, text, text) is
  'Puts another text in place of a memory''s, and answers the memory with changed. Its vector goes unless one is given. The words are the caller''s from then on, on the service key a model''s; its review goes, with another vector or end too, unless an admin or owner corrects, who then answers for the words; a rejected memory of a person stays rejected. The text before, and whose it was, stay in its history.';
