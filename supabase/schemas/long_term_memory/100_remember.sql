-- Remembering: one row, with who wrote it and how sure that is. The rules of the text, subject and expiry are the table's.

-- Who wrote it. A person on the service key is named by the service, and believed only as far as the organization says.
create or replace function long_term_memory.check_author(
  p_org_id uuid, p_caller long_term_memory.caller, p_author text, p_asserted_by text)
returns void language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
begin
  if p_caller.kind = 'user' and p_asserted_by is not null then
    raise sqlstate '22023' using
      message = 'p_asserted_by is for the service role; whose token it is, wrote it.', hint = 'Leave p_asserted_by out.';
  elsif p_author = 'model' and p_asserted_by is not null then
    raise sqlstate '22023' using
      message = 'p_asserted_by names the person who wrote it; this memory is a model''s.',
      hint = 'Leave p_asserted_by out, or say p_author person.';
  elsif p_caller.kind = 'service' and p_author = 'person' then
    if p_asserted_by is null then
      raise sqlstate '22023' using
        message = 'Who is the person? On the service key p_author person needs p_asserted_by.',
        hint = 'Name the member who wrote it, or let them write it with a token of their own.';
    end if;
    perform long_term_memory.asserted_member(p_org_id, p_asserted_by, '{member,admin,owner}');
  end if;
end
$$;

comment on function long_term_memory.check_author(uuid, long_term_memory.caller, text, text) is
  'Refuses a person on the service key who is not named (22023) or may not be (42501, RL404), and a name where none belongs (22023).';

-- The insert comes first: a second call with the same key, sent while the first still runs, waits on it and then answers what
-- the first one wrote. The service and all members of an organization share its keys.
create or replace function long_term_memory.claim_key(p_org_id uuid, p_key text, p_request jsonb)
returns uuid language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_digest bytea := sha256(convert_to(p_request::text, 'UTF8'));
  v_known  record;
begin
  -- guard
  if p_key is null then
    return null;
  elsif p_key !~ '\S' or char_length(p_key) > 255 then
    raise sqlstate '22023' using
      message = 'p_idempotency_key is blank or longer than 255 characters.',
      hint = 'Use a fresh UUID for each write, and the same one for its retries.';
  end if;

  -- claim
  insert into long_term_memory.idempotency_keys (org_id, key, digest) values (p_org_id, p_key, v_digest) on conflict do nothing;
  if found then
    return null;
  end if;

  -- replay; one that expired is gone, swept or not. A key is seen here once its call has committed, so that one without a
  -- memory is no call that still runs: the sweep took what it had written
  select k.digest, k.memory_id, m.redacted_at is null and (m.expires_at is null or m.expires_at > now()) as is_live into v_known
  from long_term_memory.idempotency_keys k
  left join long_term_memory.agent_memories m on m.id = k.memory_id and m.org_id = p_org_id
  where k.org_id = p_org_id and k.key = p_key;
  if not coalesce(v_known.memory_id is not null and v_known.is_live, false) then
    raise sqlstate 'RL410' using
      message = 'What this idempotency key wrote was erased, or has expired.',
      hint = 'Use a new key if it is to be remembered again.';
  elsif v_known.digest <> v_digest then
    raise sqlstate 'RL409' using
      message = 'This idempotency key was used with another request.',
      hint = 'Use a new key for a new request, and send a retry exactly as the first time.';
  end if;
  return v_known.memory_id;
end
$$;

comment on function long_term_memory.claim_key(uuid, text, jsonb) is
  'Null: the request is new (or has no key) and is to be done. Else the memory that it wrote the first time. RL409 for another request, RL410 where the memory is gone.';

create or replace function long_term_memory.forget_request()
returns trigger language plpgsql security definer
set search_path = public, extensions, pg_temp
as $$
begin
  new.digest := ''; -- it would tell a guess at the words
  return new;
end
$$;

comment on function long_term_memory.forget_request() is 'A key whose memory was swept knows no longer what the request was.';

create or replace trigger idempotency_keys_forget_request
  before update on long_term_memory.idempotency_keys
  for each row when (old.memory_id is not null and new.memory_id is null)
  execute function long_term_memory.forget_request();

create or replace function long_term_memory.check_on_return(p_on_return text, p_digest_key text)
returns void language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
begin
  if p_on_return is null or p_on_return not in ('refuse', 'flag') then
    raise sqlstate '22023' using
      message = format('p_on_return is refuse or flag; it is %s.', coalesce(left(p_on_return, 100), 'null')),
      hint = 'refuse: a text that was erased for this subject is not written. flag: it is, and the answer says so.';
  elsif p_digest_key is not null and current_setting('transaction_isolation') <> 'read committed' then
    raise sqlstate '0A000' using
      message = 'With a digest key remember runs under READ COMMITTED only: an older snapshot would not see the last erasure.',
      hint = 'Call it through the API, or in a transaction of the default isolation level.';
  end if;
end
$$;

comment on function long_term_memory.check_on_return(text, text) is
  'Refuses (22023) what p_on_return cannot mean, and (0A000) a question about erasures under an older snapshot.';

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
  v_caller    long_term_memory.caller := long_term_memory.admit(p_org_id, '{member,admin,owner}');
  v_embedding vector := long_term_memory.embedding_of(p_embedding, p_embedding_model);
  v_before    text;
  v_written   uuid;
  v_memory    long_term_memory.agent_memories;
begin
  -- guard
  perform long_term_memory.check_name('p_workspace_id', p_workspace_id),
          long_term_memory.check_name('p_source_run_id', p_source_run_id),
          long_term_memory.check_author(p_org_id, v_caller, p_author, p_asserted_by),
          long_term_memory.check_on_return(p_on_return, p_digest_key),
          long_term_memory.check_subject(p_subject_type, p_subject_id);
  perform long_term_memory.share_subject(p_org_id, p_subject_type, p_subject_id);

  -- once; the vector is no part of the request, since a service does not embed twice the same, and the digest key is a secret
  v_written := long_term_memory.claim_key(p_org_id, p_idempotency_key, jsonb_build_object(
    'text', p_text, 'subject_type', p_subject_type, 'subject_id', p_subject_id, 'workspace_id', p_workspace_id,
    'author', p_author, 'source_run_id', p_source_run_id, 'expires_at', extract(epoch from p_expires_at),
    'asserted_by', lower(p_asserted_by), 'user', v_caller.user_id, 'on_return', p_on_return));
  v_before := long_term_memory.erased_before(p_org_id, p_subject_type, p_subject_id, coalesce(p_text, ''), p_digest_key);
  if v_written is not null then
    select * into v_memory from long_term_memory.agent_memories m where m.id = v_written and m.org_id = p_org_id;
    return long_term_memory.memory_json(v_memory) || jsonb_build_object('replayed', true, 'erased_before', v_before);
  elsif v_before = 'flagged' and p_on_return = 'refuse' then
    raise sqlstate 'RL476' using
      message = 'This text was erased for this subject. Nothing was written.',
      hint = 'Do not remember it again. Where it has to be, say p_on_return flag.';
  end if;

  -- write
  perform long_term_memory.note_run(p_source_run_id);
  insert into long_term_memory.agent_memories (
    org_id, subject_type, subject_id, workspace_id, text, author, source_run_id, written_by, asserted_by, expires_at, embedding,
    embedding_model)
  values (p_org_id, p_subject_type, p_subject_id, p_workspace_id, p_text, p_author, p_source_run_id, v_caller.user_id,
          lower(p_asserted_by), nullif(p_expires_at, 'infinity'), v_embedding, coalesce(p_embedding_model, ''))
  returning * into v_memory;
  perform long_term_memory.note_event(p_org_id, v_memory.id, 'remembered', v_caller, v_memory.asserted_by);
  update long_term_memory.idempotency_keys k set memory_id = v_memory.id where k.org_id = p_org_id and k.key = p_idempotency_key;
  return long_term_memory.memory_json(v_memory) || jsonb_build_object('replayed', false, 'erased_before', v_before);
end
$$;

comment on function long_term_memory.remember(
  uuid, text, text, uuid, text, text, text, timestamptz, text, text, text, text, text, text) is
  'The inner half of public.remember, with the owner''s rights.';

create or replace function public.remember(
  p_org_id uuid, p_text text, p_subject_type text default 'workspace', p_subject_id uuid default null,
  p_workspace_id text default null, p_author text default 'model', p_source_run_id text default null,
  p_expires_at timestamptz default null, p_embedding text default null, p_embedding_model text default null,
  p_asserted_by text default null, p_idempotency_key text default null, p_digest_key text default null,
  p_on_return text default 'refuse')
returns jsonb language sql
set search_path = public, extensions, pg_temp
as $$
  select long_term_memory.remember(
    p_org_id, p_text, p_subject_type, p_subject_id, p_workspace_id, p_author, p_source_run_id, p_expires_at, p_embedding,
    p_embedding_model, p_asserted_by, p_idempotency_key, p_digest_key, p_on_return)
$$;

comment on function public.remember(
  uuid, text, text, uuid, text, text, text, timestamptz, text, text, text, text, text, text) is
  'Remembers a text about a workspace, a candidate or a user, and answers the memory with replayed and erased_before. A repeat with the same idempotency key answers the first one again. RL471 to RL476 where the rules of writing refuse.';
