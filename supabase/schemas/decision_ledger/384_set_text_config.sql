create or replace function ranked_ledger.text_config_named(p_name text)
returns text language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
declare
  v_parts text[];
begin
  begin
    v_parts := parse_ident(p_name);
  exception when invalid_parameter_value then
    return null; -- no name at all
  end;
  return (
    select format('%I.%I', n.nspname, c.cfgname)
    from pg_ts_config c join pg_namespace n on n.oid = c.cfgnamespace
    where case cardinality(v_parts)
            when 1 then c.cfgname = v_parts[1] and pg_ts_config_is_visible(c.oid)
            when 2 then n.nspname = v_parts[1] and c.cfgname = v_parts[2]
            else false end);
end
$$;

comment on function ranked_ledger.text_config_named(text) is
  'The full name of a text search configuration, given with or without its schema; null where there is none.';

-- To read ten thousand decisions anew can take longer than the 8 s of an API call; PostgREST takes a function's own timeout for
-- its transaction, and the platform ends every call after 60 s.
create or replace function public.set_text_config(p_workspace_id text, p_text_config text default null)
returns jsonb language plpgsql
set search_path = public, extensions, pg_temp
set statement_timeout = '60s'
as $$
declare
  v_config text := ranked_ledger.text_config_named(coalesce(p_text_config, 'pg_catalog.english'));
  v_before text;
begin
  -- guard
  perform ranked_ledger.check_recording_workspace(p_workspace_id);
  if v_config is null then
    raise sqlstate '22023' using
      message = format('There is no text search configuration %s.', left(p_text_config, 100)),
      hint = (select 'These are known, as `select cfgname from pg_ts_config` lists them: '
                     || string_agg(c.cfgname, ', ' order by c.cfgname) || '.'
              from pg_ts_config c where pg_ts_config_is_visible(c.oid));
  end if;

  -- mutate: a change reads all decisions anew by its trigger
  v_before := get_workspace_settings(p_workspace_id) ->> 'text_config';
  insert into ranked_ledger.workspace_settings as s (workspace_id, text_config) values (p_workspace_id, v_config)
  on conflict (workspace_id) do update set text_config = excluded.text_config
  where s.text_config is distinct from excluded.text_config;
  if not found then
    perform ranked_ledger.read_anew(p_workspace_id); -- a decision that was written beside the change missed it
  end if;
  return get_workspace_settings(p_workspace_id) || jsonb_build_object(
    'changed', v_before is distinct from v_config,
    'read_anew', (select count(*) from public.agent_decision_ledger l
                  where l.workspace_id = p_workspace_id and l.set_aside_at is null));
end
$$;

comment on function public.set_text_config(text, text) is
  'In which text search configuration a workspace''s decisions and questions are read; null: English. Its decisions are read anew at once.';
