-- A key stands for one request of one operation in one workspace. The insert comes first: a second call with the same key,
-- sent while the first still runs, waits on it and then answers what the first one wrote.

create or replace function ranked_ledger.request_digest(p_request jsonb)
returns bytea language sql immutable parallel safe
set search_path = public, extensions, pg_temp
as $$
  -- embedding services do not answer the same vector twice to the last digit: an honest repeat would be another request
  select sha256(convert_to(case jsonb_typeof(p_request)
    when 'array' then (select coalesce(jsonb_agg(e.value - '{embedding,embedding_model}'::text[] order by e.ordinality), '[]')
                       from jsonb_array_elements(p_request) with ordinality as e)::text
    else (p_request - '{embedding,embedding_model}'::text[])::text end, 'UTF8'))
$$;

comment on function ranked_ledger.request_digest(jsonb) is
  'What a request is compared by under its key: everything but its vectors.';

create or replace function ranked_ledger.claim_key(
  p_workspace_id text, p_operation text, p_key text, p_request jsonb)
returns uuid[] language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_digest bytea := ranked_ledger.request_digest(p_request);
  v_known  ranked_ledger.idempotency_keys;
  v_left   int;
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
  insert into ranked_ledger.idempotency_keys (workspace_id, operation, key, digest)
  values (p_workspace_id, p_operation, p_key, v_digest)
  on conflict do nothing;
  if found then
    return null;
  end if;

  -- replay
  select * into strict v_known from ranked_ledger.idempotency_keys k
  where k.workspace_id = p_workspace_id and k.operation = p_operation and k.key = p_key;
  select count(*) into v_left
  from public.agent_memories m join public.agent_decision_ledger l on l.memory_id = m.id and l.set_aside_at is null
  where m.id = any (v_known.memory_ids) and m.workspace_id = p_workspace_id and m.memory_type = 'decision';
  if v_left < cardinality(v_known.memory_ids) or v_known.digest = '' then -- an erasure blanks it: nothing to compare with
    raise sqlstate 'RL410' using
      message = 'What this idempotency key wrote was forgotten or erased, or is no decision of this workspace any more.',
      hint = 'Use a new key if it is to be written again.';
  end if;
  if v_known.digest <> v_digest then
    raise sqlstate 'RL409' using
      message = 'This idempotency key was used with another request.',
      hint = 'Use a new key for a new request, and send a retry exactly as the first time.';
  end if;
  return v_known.memory_ids;
end
$$;

comment on function ranked_ledger.claim_key(text, text, text, jsonb) is
  'Null: the request is new (or has no key) and is to be done. Else the memory ids that it wrote the first time.';

create or replace function ranked_ledger.keep_result(
  p_workspace_id text, p_operation text, p_key text, p_memory_ids uuid[])
returns void language plpgsql
set search_path = public, extensions, pg_temp
as $$
begin
  update ranked_ledger.idempotency_keys k set memory_ids = p_memory_ids
  where k.workspace_id = p_workspace_id and k.operation = p_operation and k.key = p_key;
end
$$;

comment on function ranked_ledger.keep_result(text, text, text, uuid[]) is
  'Notes what a claimed key wrote. Without a key there is nothing to note.';
