-- An erasure in our own store. Tombstones keep ids, times, author, the user who wrote and the facts of a review; no words.

create or replace function long_term_memory.erase_memories(
  p_org_id uuid, p_subject_type text, p_subject_id uuid, p_caller long_term_memory.caller, p_asserted_by text)
returns jsonb language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_all     uuid[];
  v_erased  uuid[];
  v_reviews int;
begin
  -- lock, tombstones of before too: what their history holds goes now
  v_all := array(
    select m.id from long_term_memory.agent_memories m
    where m.org_id = p_org_id and m.subject_type = p_subject_type and m.subject_id = p_subject_id
    order by m.id for no key update);

  -- mutate
  update long_term_memory.memory_events e set text_before = null, note = null
  where e.org_id = p_org_id and e.memory_id = any (v_all) and (e.text_before is not null or e.note is not null);
  get diagnostics v_reviews = row_count;
  with erased as (
    update long_term_memory.agent_memories m set redacted_at = now()
    where m.org_id = p_org_id and m.id = any (v_all) and m.redacted_at is null returning m.id)
  select coalesce(array_agg(e.id order by e.id), '{}') into v_erased from erased e;
  update long_term_memory.idempotency_keys k set digest = ''
  where k.org_id = p_org_id and k.memory_id = any (v_all) and k.digest <> '';
  perform long_term_memory.note_event(p_org_id, u.id, 'erased', p_caller, p_asserted_by) from unnest(v_erased) as u (id);
  return jsonb_build_object('memories', cardinality(v_erased), 'reviews', v_reviews);
end
$$;

comment on function long_term_memory.erase_memories(uuid, text, uuid, long_term_memory.caller, text) is
  'Makes tombstones of a subject''s memories, and takes the words out of their history. Answers how many: memories, reviews.';

create or replace function long_term_memory.erase_recalls(p_org_id uuid, p_subject_type text, p_subject_id uuid)
returns int language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_recalls uuid[];
  v_emptied int;
begin
  v_recalls := array( -- a recall may be about two people whose erasures run at once
    select r.id from long_term_memory.recalls r
    where r.org_id = p_org_id and (r.query <> '' or r.arguments <> '{}') and r.id in (
      select s.recall_id from long_term_memory.recall_subjects s
      where s.org_id = p_org_id and s.subject_type = p_subject_type and s.subject_id = p_subject_id
      union -- of a memory that was said to be about somebody else when it was returned
      select i.recall_id from long_term_memory.agent_memories m
      join long_term_memory.recall_items i on i.memory_id = m.id and i.org_id = p_org_id
      where m.org_id = p_org_id and m.subject_type = p_subject_type and m.subject_id = p_subject_id)
    order by r.id for no key update);
  update long_term_memory.recalls r set query = '', arguments = '{}' where r.org_id = p_org_id and r.id = any (v_recalls);
  get diagnostics v_emptied = row_count;
  return v_emptied;
end
$$;

comment on function long_term_memory.erase_recalls(uuid, text, uuid) is
  'Takes question and arguments out of the recalls that returned something of a subject, or were said to be about one.';

create or replace function long_term_memory.texts_of(
  p_org_id uuid, p_subject_type text, p_subject_id uuid, p_decisions uuid[])
returns text[] language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
declare
  v_texts text[];
begin
  v_texts := array(
    select m.text from long_term_memory.agent_memories m
    where m.org_id = p_org_id and m.subject_type = p_subject_type and m.subject_id = p_subject_id and m.redacted_at is null
    union
    select e.text_before from long_term_memory.memory_events e
    join long_term_memory.agent_memories m on m.id = e.memory_id and m.org_id = e.org_id
    where m.org_id = p_org_id and m.subject_type = p_subject_type and m.subject_id = p_subject_id
      and e.text_before is not null);
  if p_decisions <> '{}' then
    v_texts := v_texts || array(
      select m.content::text from public.agent_memories m where m.id = any (p_decisions) and m.content <> '[erased]');
  end if;
  return v_texts;
end
$$;

comment on function long_term_memory.texts_of(uuid, text, uuid, uuid[]) is
  'What is about to be erased, as digests are made of it: memories, their former texts, the contents of decisions.';

create or replace function long_term_memory.keep_digests(
  p_erasure_id uuid, p_org_id uuid, p_subject_type text, p_subject_id uuid, p_texts text[], p_digest_key text)
returns int language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_kept int;
begin
  insert into long_term_memory.erased_digests (erasure_id, org_id, subject_type, subject_id, digest)
  select distinct p_erasure_id, p_org_id, p_subject_type, p_subject_id,
         long_term_memory.text_digest(p_digest_key, p_org_id, p_subject_type, p_subject_id, u.text)
  from unnest(p_texts) as u (text)
  on conflict do nothing;
  get diagnostics v_kept = row_count;
  return v_kept;
end
$$;

comment on function long_term_memory.keep_digests(uuid, uuid, text, uuid, text[], text) is
  'Keeps keyed digests of erased texts under their receipt. Answers how many are new.';
