-- What the verbs share: checks, locks, and a memory as they answer it.

create or replace function long_term_memory.check_subject(p_subject_type text, p_subject_id uuid)
returns void language plpgsql immutable
set search_path = public, extensions, pg_temp
as $$
begin
  if p_subject_type is null or p_subject_type not in ('workspace', 'candidate', 'user') then
    raise sqlstate 'RL472' using
      message = format('The subject type %s is unknown.', coalesce(left(p_subject_type, 100), 'null')),
      hint = 'It is workspace, candidate or user.';
  elsif p_subject_type <> 'workspace' and p_subject_id is null then
    raise sqlstate 'RL474' using
      message = format('A memory about a %s needs its subject.', p_subject_type), hint = 'Give subject_id.';
  end if;
end
$$;

comment on function long_term_memory.check_subject(text, uuid) is
  'Refuses an unknown subject type (RL472), and a person who is not named (RL474).';

-- Erasing a subject and writing about them take turns: whoever writes shares the subject, an erasure holds it alone.
create or replace function long_term_memory.subject_key(p_org_id uuid, p_subject_type text, p_subject_id uuid)
returns bigint language sql immutable parallel safe
return hashtextextended('ranked_ledger: subject ' || p_org_id || ' ' || p_subject_type || ' ' || p_subject_id, 0);

comment on function long_term_memory.subject_key(uuid, text, uuid) is 'The advisory lock of a subject; null where nobody is named.';

create or replace function long_term_memory.share_subject(p_org_id uuid, p_subject_type text, p_subject_id uuid)
returns void language plpgsql
set search_path = public, extensions, pg_temp
as $$
begin
  perform pg_advisory_xact_lock_shared(k.key)
  from (select long_term_memory.subject_key(p_org_id, p_subject_type, p_subject_id) as key) as k where k.key is not null;
end
$$;

comment on function long_term_memory.share_subject(uuid, text, uuid) is 'Taken before writing about a subject: waits for an erasure, and holds up the next one.';

-- A lock for each of a thousand subjects, by a few callers at once, would fill the server's table of locks, and then nobody's
-- statement could lock anything. Whoever has more than 64 locks their buckets instead, and an erasure holds its subject's too.
create or replace function long_term_memory.bucket_key(p_org_id uuid, p_subject_key bigint)
returns bigint language sql immutable parallel safe
return hashtextextended('ranked_ledger: subjects ' || p_org_id || ' ' || (p_subject_key & 63), 0);

comment on function long_term_memory.bucket_key(uuid, bigint) is 'The advisory lock of the 64th part of an organization''s subjects that holds this one.';

create or replace function long_term_memory.share_subjects(p_org_id uuid, p_subject_types text[], p_subject_ids uuid[])
returns void language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_keys bigint[] := array(
    select distinct k.key
    from unnest(p_subject_types, p_subject_ids) as s (subject_type, subject_id)
    cross join lateral (select long_term_memory.subject_key(p_org_id, s.subject_type, s.subject_id)) as k (key)
    where k.key is not null order by 1);
begin
  if cardinality(v_keys) > 64 then
    v_keys := array(select distinct long_term_memory.bucket_key(p_org_id, u.key) from unnest(v_keys) as u (key) order by 1);
  end if;
  perform pg_advisory_xact_lock_shared(u.key) from unnest(v_keys) as u (key);
end
$$;

comment on function long_term_memory.share_subjects(uuid, text[], uuid[]) is
  'share_subject for many, in one order for everybody, with 64 locks at most.';

create or replace function long_term_memory.hold_subject(p_org_id uuid, p_subject_type text, p_subject_id uuid)
returns void language plpgsql
set search_path = public, extensions, pg_temp
as $$
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    raise sqlstate '0A000' using
      message = 'An erasure runs under READ COMMITTED only: an older snapshot would not see what was written last.',
      hint = 'Call it through the API, or in a transaction of the default isolation level.';
  end if;
  perform pg_advisory_xact_lock(long_term_memory.bucket_key(
    p_org_id, long_term_memory.subject_key(p_org_id, p_subject_type, p_subject_id)));
  perform pg_advisory_xact_lock(long_term_memory.subject_key(p_org_id, p_subject_type, p_subject_id));
end
$$;

comment on function long_term_memory.hold_subject(uuid, text, uuid) is 'Taken by an erasure: nobody writes about the subject until it ends.';

create or replace function long_term_memory.folded(p_text text)
returns text language sql immutable parallel safe
return lower(btrim(regexp_replace(p_text, '\s+', ' ', 'g')));

comment on function long_term_memory.folded(text) is 'A text as it is compared: lower case, trimmed, white space folded.';

create or replace function long_term_memory.embedding_of(p_embedding text, p_embedding_model text)
returns vector language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
declare
  v_embedding vector := ranked_ledger.vector_of(p_embedding);
begin
  perform ranked_ledger.check_direction(v_embedding);
  if (v_embedding is null) <> (coalesce(p_embedding_model, '') !~ '\S') then
    raise sqlstate '22023' using
      message = 'p_embedding and p_embedding_model go together.',
      hint = 'Name the model that made the vector: vectors of two models are never compared.';
  elsif octet_length(p_embedding_model) > 1000 then
    raise sqlstate '22023' using message = 'p_embedding_model is longer than 1000 bytes.', hint = 'Give the model''s name.';
  end if;
  return v_embedding;
end
$$;

comment on function long_term_memory.embedding_of(text, text) is
  'The vector of a call, null where there is none. Refuses (22023) what is no vector, one of zeros, and one without its model.';

create or replace function long_term_memory.grade(p_written_by uuid, p_asserted_by text)
returns text language sql immutable parallel safe
return case when p_asserted_by is not null then 'asserted' when p_written_by is not null then 'verified' end;

comment on function long_term_memory.grade(uuid, text) is
  'How the writer is known: verified by their token, asserted by the service role, or null: a model on the service key.';

create or replace function long_term_memory.memory_json(p_memory long_term_memory.agent_memories)
returns jsonb language sql stable
set search_path = public, extensions, pg_temp
as $$
  select jsonb_build_object(
    'memory_id', m.id, 'org_id', m.org_id, 'subject_type', m.subject_type, 'subject_id', m.subject_id,
    'workspace_id', m.workspace_id, 'text', m.text, 'author', m.author,
    'grade', long_term_memory.grade(m.written_by, m.asserted_by), 'source_run_id', m.source_run_id,
    'written_by', m.written_by, 'asserted_by', m.asserted_by, 'reviewed_at', m.reviewed_at, 'reviewed_by', m.reviewed_by,
    'review_outcome', m.review_outcome, 'review_grade', m.review_grade, 'can_use_as_instruction', m.can_use_as_instruction,
    'embedding_model', nullif(m.embedding_model, ''), 'created_at', m.created_date, 'updated_at', m.updated_at,
    'expires_at', m.expires_at, 'erased_at', m.redacted_at)
  from (select (p_memory).*) as m
$$;

comment on function long_term_memory.memory_json(long_term_memory.agent_memories) is 'A memory as every verb answers it (docs/memory-api.md).';

create or replace function long_term_memory.no_memory(p_memory_id uuid, p_why text default '')
returns void language plpgsql immutable
set search_path = public, extensions, pg_temp
as $$
begin
  raise sqlstate 'RL404' using
    message = format('There is no memory %s in this organization%s.', coalesce(p_memory_id::text, 'without an id'), p_why),
    hint = 'Check the id and the organization; what has expired can be remembered again.';
end
$$;

comment on function long_term_memory.no_memory(uuid, text) is
  'Refuses (RL404) a memory that the organization does not have, in the same words whether another one has it.';

create or replace function long_term_memory.locked_memory(p_org_id uuid, p_memory_id uuid)
returns long_term_memory.agent_memories language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_memory long_term_memory.agent_memories;
begin
  select * into v_memory from long_term_memory.agent_memories m
  where m.id = p_memory_id and m.org_id = p_org_id for no key update;
  if v_memory.id is null then
    perform long_term_memory.no_memory(p_memory_id);
  end if;
  return v_memory;
end
$$;

comment on function long_term_memory.locked_memory(uuid, uuid) is
  'A memory of the organization, a tombstone too, locked for a change. RL404 where it has none.';

create or replace function long_term_memory.live_memory(p_org_id uuid, p_memory_id uuid)
returns long_term_memory.agent_memories language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_memory long_term_memory.agent_memories := long_term_memory.locked_memory(p_org_id, p_memory_id);
begin
  if v_memory.redacted_at is not null then
    raise sqlstate 'RL410' using
      message = format('The memory %s was erased.', p_memory_id),
      detail = format('It was erased at %s.', to_jsonb(v_memory.redacted_at) #>> '{}'),
      hint = 'Nothing of its words is left.';
  end if;
  return v_memory;
end
$$;

comment on function long_term_memory.live_memory(uuid, uuid) is
  'A memory of the organization, locked for a change. RL404 where it has none, RL410 where it was erased.';

create or replace function long_term_memory.note_event(
  p_org_id uuid, p_memory_id uuid, p_action text, p_caller long_term_memory.caller, p_asserted_by text default null,
  p_outcome text default null, p_note text default null, p_text_before text default null, p_writer_before uuid default null)
returns void language sql
set search_path = public, extensions, pg_temp
as $$
  insert into long_term_memory.memory_events (
    org_id, memory_id, action, outcome, grade, actor_id, asserted_by, note, text_before, writer_before)
  values (p_org_id, p_memory_id, p_action, p_outcome,
          case when p_asserted_by is not null then 'asserted' when (p_caller).user_id is not null then 'verified' else 'service' end,
          (p_caller).user_id, p_asserted_by, p_note, p_text_before, p_writer_before)
$$;

comment on function long_term_memory.note_event(uuid, uuid, text, long_term_memory.caller, text, text, text, text, uuid) is
  'Writes down what became of a memory, by whom, and in which grade.';

create or replace function long_term_memory.check_note(p_note text)
returns void language plpgsql immutable
set search_path = public, extensions, pg_temp
as $$
begin
  if octet_length(p_note) > 2000 then
    raise sqlstate '22023' using message = 'p_note is longer than 2000 bytes.', hint = 'Say it in fewer words.';
  end if;
end
$$;

comment on function long_term_memory.check_note(text) is 'Refuses (22023) a note above 2000 bytes.';

create or replace function long_term_memory.check_name(p_name text, p_value text)
returns void language plpgsql immutable
set search_path = public, extensions, pg_temp
as $$
begin
  if p_value !~ '\S' or octet_length(p_value) > 1000 then
    raise sqlstate '22023' using
      message = format('%s is blank or longer than 1000 bytes.', p_name), hint = 'Give a short name or an id, or leave it out.';
  end if;
end
$$;

comment on function long_term_memory.check_name(text, text) is 'Refuses (22023) a name that is blank or longer than 1000 bytes. Null passes.';

-- A member sees what colleagues wrote in recalls, so that its existence is no secret; changing it is another matter. What they
-- remembered stays theirs to change after somebody corrected it, whose words it has then.
create or replace function long_term_memory.check_own(p_caller long_term_memory.caller, p_memory long_term_memory.agent_memories)
returns void language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
begin
  if (p_caller).kind = 'user' and (p_caller).role = 'member' and (p_memory).written_by is distinct from (p_caller).user_id
     and not exists (
       select from long_term_memory.memory_events e
       where e.memory_id = (p_memory).id and e.org_id = (p_memory).org_id and e.action = 'remembered'
         and e.actor_id = (p_caller).user_id)
  then
    raise sqlstate '42501' using
      message = 'Somebody else wrote this memory.', hint = 'A member changes their own; ask an admin or owner.';
  end if;
end
$$;

comment on function long_term_memory.check_own(long_term_memory.caller, long_term_memory.agent_memories) is
  'Refuses (42501) a member what somebody else remembered, unless the words are theirs now. Admins, owners and the service may change all.';
