-- Remembering: checked by the table's own rules, once a key, and not what was erased.

-- The insert comes first: a second call with the same key, sent while the first still runs, waits on it and then answers
-- what the first one wrote. Neither the vector nor the digest key is part of what a repeat is compared by.
create or replace function long_term_memory.claim_key(p_org_id uuid, p_key text, p_request jsonb)
returns uuid language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_digest bytea := sha256(convert_to(p_request::text, 'UTF8'));
  v_known  long_term_memory.idempotency_keys;
begin
  if p_key is null then
    return null;
  elsif p_key !~ '\S' or char_length(p_key) > 255 then
    raise sqlstate '22023' using
      message = 'p_idempotency_key is blank or longer than 255 characters.',
      hint = 'Use a fresh UUID for each write, and the same one for its retries.';
  end if;
  insert into long_term_memory.idempotency_keys (org_id, key, digest) values (p_org_id, p_key, v_digest) on conflict do nothing;
  if found then
    return null;
  end if;
  select * into strict v_known from long_term_memory.idempotency_keys k where k.org_id = p_org_id and k.key = p_key;
  if exists (select from long_term_memory.agent_memories m
             where m.org_id = p_org_id and m.id = v_known.memory_id and m.redacted_at is not null) then
    raise sqlstate 'RL410' using
      message = 'What this idempotency key wrote was erased.', hint = 'Use a new key if it is to be remembered again.';
  elsif v_known.digest <> v_digest then
    raise sqlstate 'RL409' using
      message = 'This idempotency key was used with another request.',
      hint = 'Use a new key for a new request, and send a retry exactly as the first time.';
  end if;
  return v_known.memory_id;
end
$$;

comment on function long_term_memory.claim_key(uuid, text, jsonb) is
  'Null: the request is new (or has no key) and is to be done. Else the memory that it wrote the first time.';

-- Who wrote it: the token's user, or the member whom the service names.
create or replace function long_term_memory.writer_asserted(
  p_org_id uuid, p_caller long_term_memory.caller, p_author text, p_asserted_by text)
returns text language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
begin
  if p_asserted_by is null and ((p_caller).kind = 'user' or p_author is distinct from 'person') then
    return null;
  elsif (p_caller).kind = 'user' then
    raise sqlstate '22023' using
      message = 'p_asserted_by is for the service role: a person writes under the name of their token.', hint = 'Leave it out.';
  elsif p_author is distinct from 'person' then
    raise sqlstate '22023' using
      message = 'p_asserted_by names a person, and the author is not a person.', hint = 'Send p_author => ''person'', or leave it out.';
  elsif p_asserted_by is null then
    raise sqlstate '22023' using
      message = 'A person''s memory needs its person: the service role has to name them.',
      hint = 'Give p_asserted_by, the user id of a member, or let the person write with a token of their own.';
  end if;
  return long_term_memory.asserted_member(p_org_id, p_asserted_by, '{member,admin,owner}')::text;
end
$$;

comment on function long_term_memory.writer_asserted(uuid, long_term_memory.caller, text, text) is
  'The member whom the service role names as the writer, null where a token or a model writes. Refuses what does not fit together.';

create or replace function long_term_memory.check_return(
  p_org_id uuid, p_subject_type text, p_subject_id uuid, p_text text, p_digest_key text, p_on_return text)
returns text language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_before text;
begin
  if p_on_return is null or p_on_return not in ('refuse', 'flag') then
    raise sqlstate '22023' using message = 'p_on_return is refuse or flag.', hint = 'Leave it out for refuse.';
  end if;
  v_before := long_term_memory.erased_before(p_org_id, p_subject_type, p_subject_id, p_text, p_digest_key);
  if v_before = 'flagged' and p_on_return = 'refuse' then
    raise sqlstate 'RL476' using
      message = 'This text was erased for this subject, and is not remembered again.',
      hint = 'Do not write it. Where it is known anew and rightly so, send p_on_return => ''flag''.';
  end if;
  return v_before;
end
$$;

comment on function long_term_memory.check_return(uuid, text, uuid, text, text, text) is
  'Whether a text was erased for its subject, as far as the key tells. Refuses it (RL476), unless it is to be flagged only.';

create or replace function long_term_memory.remember(
  p_org_id uuid, p_text text, p_subject_type text default 'workspace', p_subject_id uuid default null,
  p_workspace_id text default null, p_author text default 'model', p_source_run_id text default null,
  p_expires_at timestamptz default null, p_embedding text default null, p_embedding_model text default null,
  p_asserted_by text default null, p_idempotency_key text default null, p_digest_key text default null,
  p_on_return text default 'refuse')
returns jsonb language plpgsql security definer
set search_path = public, extensions, pg_temp
as $$
declare
  v_caller   long_term_memory.caller := long_term_memory.admit(p_org_id, '{member,admin,owner}');
  v_memory   long_term_memory.agent_memories;
  v_known    uuid;
  v_before   text;
  v_asserted text;
begin
  -- guard
  perform long_term_memory.check_subject(p_subject_type, p_subject_id),
          long_term_memory.check_name('p_workspace_id', p_workspace_id), long_term_memory.check_name('p_source_run_id', p_source_run_id);
  v_asserted := long_term_memory.writer_asserted(p_org_id, v_caller, p_author, p_asserted_by);
  v_memory.embedding := long_term_memory.embedding_of(p_embedding, p_embedding_model);
  perform long_term_memory.share_subject(p_org_id, p_subject_type, p_subject_id);
  v_known := long_term_memory.claim_key(p_org_id, p_idempotency_key, jsonb_build_object(
    'text', p_text, 'subject_type', p_subject_type, 'subject_id', p_subject_id, 'workspace_id', p_workspace_id, 'author', p_author,
    'source_run_id', p_source_run_id, 'expires_at', p_expires_at, 'asserted_by', v_asserted, 'user', v_caller.user_id));
  if v_known is not null then
    select * into strict v_memory from long_term_memory.agent_memories m where m.org_id = p_org_id and m.id = v_known;
    return long_term_memory.memory_json(v_memory) || '{"replayed": true, "erased_before": "not_checked"}';
  end if;
  v_before := long_term_memory.check_return(p_org_id, p_subject_type, p_subject_id, p_text, p_digest_key, p_on_return);

  -- mutate
  perform long_term_memory.note_run(p_source_run_id);
  insert into long_term_memory.agent_memories (
    org_id, subject_type, subject_id, workspace_id, text, author, source_run_id, written_by, asserted_by, embedding,
    embedding_model, expires_at)
  values (p_org_id, p_subject_type, p_subject_id, p_workspace_id, p_text, p_author, p_source_run_id, v_caller.user_id, v_asserted,
          v_memory.embedding, coalesce(p_embedding_model, ''), p_expires_at)
  returning * into v_memory;
  update long_term_memory.idempotency_keys k set memory_id = v_memory.id where k.org_id = p_org_id and k.key = p_idempotency_key;
  perform long_term_memory.note_event(p_org_id, v_memory.id, 'remembered', v_caller, v_asserted);

  -- answer
  return long_term_memory.memory_json(v_memory) || jsonb_build_object('replayed', false, 'erased_before', v_before);
end
$$;

comment on function long_term_memory.remember(uuid, text, text, uuid, text, text, text, timestamptz, text, text, text, text, text, text) is
  'Behind public.remember.';

create or replace function public.remember(
  p_org_id uuid, p_text text, p_subject_type text default 'workspace', p_subject_id uuid default null,
  p_workspace_id text default null, p_author text default 'model', p_source_run_id text default null,
  p_expires_at timestamptz default null, p_embedding text default null, p_embedding_model text default null,
  p_asserted_by text default null, p_idempotency_key text default null, p_digest_key text default null,
  p_on_return text default 'refuse')
returns jsonb language sql
set search_path = public, extensions, pg_temp
as $$
  select long_term_memory.remember(p_org_id, p_text, p_subject_type, p_subject_id, p_workspace_id, p_author, p_source_run_id,
    p_expires_at, p_embedding, p_embedding_model, p_asserted_by, p_idempotency_key, p_digest_key, p_on_return)
$$;

comment on function public.remember(uuid, text, text, uuid, text, text, text, timestamptz, text, text, text, text, text, text) is
  'Keeps what an agent or a person wants to carry into later runs. What a model wrote waits for a review. A text that was erased for its subject is refused, where a digest key is given.';
