-- Why something was forgotten is worth keeping, and tends to say what it was.
create or replace function long_term_memory.repeats_words(p_org_id uuid, p_memory_id uuid, p_note text)
returns boolean language sql stable
set search_path = public, extensions, pg_temp
as $$
  select exists (
    select from (
      select m.text from long_term_memory.agent_memories m where m.org_id = p_org_id and m.id = p_memory_id
      union all
      select e.text_before from long_term_memory.memory_events e
      where e.org_id = p_org_id and e.memory_id = p_memory_id and e.text_before is not null) as t (text)
    where ranked_ledger.occurrences(
      to_tsvector('pg_catalog.english', t.text), ranked_ledger.any_word('pg_catalog.english', p_note)) > 0)
$$;

comment on function long_term_memory.repeats_words(uuid, uuid, text) is
  'Whether a note has a word of a memory''s text, or of what it was before a correction.';

create or replace function long_term_memory.forget_memory(p_org_id uuid, p_memory_id uuid, p_note text default null)
returns jsonb language plpgsql security definer
set search_path = public, extensions, pg_temp
as $$
declare
  v_caller long_term_memory.caller := long_term_memory.admit(p_org_id, '{member,admin,owner}');
  v_memory long_term_memory.agent_memories;
  v_note   text;
begin
  -- guard; the subject before the row, as an erasure locks them
  perform long_term_memory.check_note(p_note);
  perform long_term_memory.share_subject(p_org_id, m.subject_type, m.subject_id)
  from long_term_memory.agent_memories m where m.id = p_memory_id and m.org_id = p_org_id;
  v_memory := long_term_memory.locked_memory(p_org_id, p_memory_id);
  perform long_term_memory.check_own(v_caller, v_memory);
  if v_memory.redacted_at is not null then
    return jsonb_build_object('memory_id', p_memory_id, 'forgotten_at', v_memory.redacted_at, 'already', true);
  end if;

  -- mutate; a trigger takes the words out of its history, and the note comes after it
  v_note := case when not long_term_memory.repeats_words(p_org_id, p_memory_id, p_note) then p_note end;
  update long_term_memory.agent_memories m set redacted_at = now() where m.id = p_memory_id and m.org_id = p_org_id
  returning m.* into v_memory;
  perform long_term_memory.note_event(p_org_id, p_memory_id, 'forgotten', v_caller, null, null, v_note);
  return jsonb_build_object('memory_id', p_memory_id, 'forgotten_at', v_memory.redacted_at, 'already', false);
end
$$;

comment on function long_term_memory.forget_memory(uuid, uuid, text) is
  'The inner half of public.forget_memory, with the owner''s rights.';

create or replace function public.forget_memory(p_org_id uuid, p_memory_id uuid, p_note text default null)
returns jsonb language sql
set search_path = public, extensions, pg_temp
as $$ select long_term_memory.forget_memory(p_org_id, p_memory_id, p_note) $$;

comment on function public.forget_memory(uuid, uuid, text) is
  'Leaves a tombstone of one memory: no text, no vector, no former texts or notes. Answers memory_id, forgotten_at, already. A note is kept where it repeats no word of it. What else is held about its subject stays: erase_subject takes that.';
