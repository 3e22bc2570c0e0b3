-- Stores a text once. It is ours only where the host has no function of that name, whatever its arguments: a second
-- overload would make every call through the API ambiguous.
do $do$
begin
  if exists (select from pg_catalog.pg_proc
             where pronamespace = 'public'::regnamespace and proname = 'upsert_thought') then
    return;
  end if;

  create function public.upsert_thought(p_content text, p_payload jsonb default '{}'::jsonb) returns jsonb
  language plpgsql
  set search_path = public, extensions, pg_temp
  as $fn$
  declare
    v_folded text := lower(btrim(regexp_replace(p_content, '\s+', ' ', 'g')));
    v_fingerprint text := encode(sha256(convert_to(v_folded, 'UTF8')), 'hex');
    v_metadata jsonb := case when jsonb_typeof(p_payload -> 'metadata') = 'object'
                             then p_payload -> 'metadata' else '{}'::jsonb end;
    v_has_fingerprint boolean := exists (
      select from pg_catalog.pg_attribute
      where attrelid = 'public.thoughts'::regclass and attname = 'content_fingerprint' and not attisdropped);
    v_id uuid;
  begin
    -- Not every install has the unique index, so writers of one text take turns on a lock instead.
    perform pg_advisory_xact_lock(hashtextextended(v_fingerprint, 0));

    if not v_has_fingerprint then
      -- An old install: nothing is indexed, the texts themselves are compared. Each statement of PL/pgSQL is planned
      -- only when it is reached, so the branch below may name a column that is not there.
      select t.id into v_id from public.thoughts t
      where lower(btrim(regexp_replace(t.content, '\s+', ' ', 'g'))) = v_folded
      order by t.created_at, t.id limit 1;
      if v_id is null then
        insert into public.thoughts (content, metadata) values (p_content, v_metadata) returning id into v_id;
        return jsonb_build_object('id', v_id, 'fingerprint', v_fingerprint);
      end if;
    else
      select t.id into v_id from public.thoughts t
      where t.content_fingerprint = v_fingerprint
      order by t.created_at, t.id limit 1;
      if v_id is null then
        begin
          insert into public.thoughts (content, metadata, content_fingerprint)
          values (p_content, v_metadata, v_fingerprint) returning id into v_id;
          return jsonb_build_object('id', v_id, 'fingerprint', v_fingerprint);
        exception when unique_violation then
          -- A writer that does not come through this function was faster. Another unique rule of the host's: raise.
          select t.id into v_id from public.thoughts t where t.content_fingerprint = v_fingerprint;
          if v_id is null then
            raise;
          end if;
        end;
      end if;
    end if;

    update public.thoughts t set metadata = coalesce(t.metadata, '{}'::jsonb) || v_metadata where t.id = v_id;
    return jsonb_build_object('id', v_id, 'fingerprint', v_fingerprint);
  end
  $fn$;

  comment on function public.upsert_thought(text, jsonb) is
    'Stores a text once and answers {id, fingerprint}. A repeat merges the metadata of p_payload into the row.';
  revoke all on function public.upsert_thought(text, jsonb) from public, anon, authenticated, service_role;
  grant execute on function public.upsert_thought(text, jsonb) to service_role;
end
$do$;
