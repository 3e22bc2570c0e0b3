-- What was erased is known again by a keyed digest, for whoever keeps the key. A plain hash of a short sentence about a known
-- person is as good as the sentence: guesses are cheap. HMAC-SHA256 (RFC 2104) over the server's own sha256, since no
-- extension for it can be relied on.

create or replace function long_term_memory.hmac_pad(p_key bytea, p_byte int)
returns bytea language plpgsql immutable parallel safe strict
set search_path = public, extensions, pg_temp
as $$
declare
  v_key bytea := case when octet_length(p_key) > 64 then sha256(p_key) else p_key end;
  v_pad bytea := decode(repeat(lpad(to_hex(p_byte), 2, '0'), 64), 'hex');
begin
  for i in 0 .. octet_length(v_key) - 1 loop -- bytea has no xor
    v_pad := set_byte(v_pad, i, get_byte(v_key, i) # p_byte);
  end loop;
  return v_pad;
end
$$;

comment on function long_term_memory.hmac_pad(bytea, int) is
  'A key, brought to the 64 bytes of a block of SHA-256, each of them exclusive-or this byte.';

create or replace function long_term_memory.hmac_sha256(p_key bytea, p_message bytea)
returns bytea language sql immutable parallel safe
return sha256(long_term_memory.hmac_pad(p_key, 92) || sha256(long_term_memory.hmac_pad(p_key, 54) || p_message));

comment on function long_term_memory.hmac_sha256(bytea, bytea) is 'HMAC-SHA256 as RFC 2104 defines it.';

-- No message ever repeats the key: messages are logged.
create or replace function long_term_memory.check_digest_key(p_digest_key text)
returns void language plpgsql immutable
set search_path = public, extensions, pg_temp
as $$
begin
  if char_length(p_digest_key) < 16 then
    raise sqlstate '22023' using
      message = 'p_digest_key is shorter than 16 characters.',
      hint = 'Draw it at random, keep it where your secrets are, and use the same one for every call. It is never stored here.';
  elsif octet_length(p_digest_key) > 4096 then
    raise sqlstate '22023' using message = 'p_digest_key is longer than 4096 bytes.', hint = 'Draw 32 random bytes, in base64.';
  end if;
end
$$;

comment on function long_term_memory.check_digest_key(text) is 'Refuses (22023) a digest key that could be guessed, or is no key. Null passes.';

create or replace function long_term_memory.key_check(p_digest_key text, p_org_id uuid)
returns bytea language sql immutable parallel safe
return long_term_memory.hmac_sha256(
  convert_to(p_digest_key, 'UTF8'), convert_to('ranked_ledger: key of ' || p_org_id, 'UTF8'));

comment on function long_term_memory.key_check(text, uuid) is
  'By which a digest key is known again: its keyed digest of the organization''s id.';

-- Bound to organization and subject: the same sentence about two people has two digests.
create or replace function long_term_memory.text_digest(
  p_digest_key text, p_org_id uuid, p_subject_type text, p_subject_id uuid, p_text text)
returns bytea language sql immutable parallel safe
return long_term_memory.hmac_sha256(convert_to(p_digest_key, 'UTF8'), convert_to(
  'ranked_ledger: erased ' || p_org_id || ' ' || p_subject_type || ' ' || p_subject_id || ' ' || long_term_memory.folded(p_text),
  'UTF8'));

comment on function long_term_memory.text_digest(text, uuid, text, uuid, text) is
  'The keyed digest of a text about a subject, folded in case and white space.';

create or replace function long_term_memory.erased_before(
  p_org_id uuid, p_subject_type text, p_subject_id uuid, p_text text, p_digest_key text)
returns text language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
declare
  v_digest    bytea;
  v_key_check bytea;
begin
  perform long_term_memory.check_digest_key(p_digest_key);
  if p_digest_key is null or p_subject_id is null then -- nobody's digests are kept of nobody
    return 'not_checked';
  end if;
  v_digest := long_term_memory.text_digest(p_digest_key, p_org_id, p_subject_type, p_subject_id, p_text);
  if exists (select from long_term_memory.erased_digests d
             where d.org_id = p_org_id and d.subject_type = p_subject_type and d.subject_id = p_subject_id
               and d.digest = v_digest) then
    return 'flagged';
  end if;
  v_key_check := long_term_memory.key_check(p_digest_key, p_org_id);
  return (
    select case when count(*) > 0 and count(*) filter (where e.key_check = v_key_check) = 0 then 'other_key' else 'clear' end
    from long_term_memory.erasures e
    where e.org_id = p_org_id and e.subject_type = p_subject_type and e.subject_id = p_subject_id and e.key_check is not null
      and exists (select from long_term_memory.erased_digests d where d.erasure_id = e.id));
end
$$;

comment on function long_term_memory.erased_before(uuid, text, uuid, text, text) is
  'Whether a text was erased for this subject: flagged or clear; not_checked without a key, or where no subject is named; other_key where all that was erased for the subject has digests of other keys.';
