-- Exact strings taken out of texts and documents. What is found is replaced by a mark; the rest of a text stays.

create or replace function long_term_memory.check_strings(p_strings text[])
returns text[] language plpgsql immutable
set search_path = public, extensions, pg_temp
as $$
declare
  v_problem text;
begin
  v_problem := case
    when cardinality(p_strings) > 50 then 'holds more than 50 strings'
    when exists (select from unnest(p_strings) as u (string) where u.string is null or char_length(btrim(u.string)) < 6)
      then 'holds a string of fewer than 6 characters, blanks at its ends not counted'
    when exists (select from unnest(p_strings) as u (string) where char_length(u.string) > 1000)
      then 'holds a string of more than 1,000 characters'
    when exists (select from unnest(p_strings) as u (string) where strpos('[erased]', u.string) > 0)
      then 'holds a part of the mark [erased], which stands where something was' end;
  if v_problem is not null then
    raise sqlstate '22023' using
      message = format('p_also_containing %s.', v_problem),
      hint = 'Give up to 50 exact strings of 6 to 1,000 characters: shorter ones stand in words of all sorts.';
  end if;
  -- the longest first: one that holds another goes as a whole
  return array(select u.string from unnest(p_strings) as u (string) group by u.string
               order by char_length(u.string) desc, u.string);
end
$$;

comment on function long_term_memory.check_strings(text[]) is
  'The strings to be taken out, each once, the longest first. Refuses (22023) what would be found everywhere.';

create or replace function long_term_memory.redact(p_text text, p_strings text[])
returns text language plpgsql immutable parallel safe
set search_path = public, extensions, pg_temp
as $$
declare
  v_text   text := p_text;
  v_last   text;
  v_string text;
begin
  for v_round in 1 .. 1000 loop -- what is left on both sides of a mark may make up a string again
    v_last := v_text;
    foreach v_string in array p_strings loop
      v_text := replace(v_text, v_string, '[erased]');
    end loop;
    exit when v_text is not distinct from v_last;
  end loop;
  return v_text;
end
$$;

comment on function long_term_memory.redact(text, text[]) is 'The text, with [erased] for each of the strings.';

create or replace function long_term_memory.redact(p_texts text[], p_strings text[])
returns text[] language sql immutable parallel safe
set search_path = public, extensions, pg_temp
as $$
  select case when p_texts is not null then array(
    select long_term_memory.redact(u.value, p_strings)
    from unnest(p_texts) with ordinality as u (value, position) order by u.position) end
$$;

comment on function long_term_memory.redact(text[], text[]) is 'The texts, with [erased] for each of the strings.';

create or replace function long_term_memory.like_patterns(p_strings text[])
returns text[] language sql immutable parallel safe
set search_path = public, extensions, pg_temp
as $$
  select array(select '%' || regexp_replace(u.string, '([\\%_])', '\\\1', 'g') || '%' from unnest(p_strings) as u (string))
$$;

comment on function long_term_memory.like_patterns(text[]) is 'Patterns of LIKE for texts that hold one of the strings.';

-- As they stand in the text of a document, between its quotes.
create or replace function long_term_memory.in_json(p_strings text[])
returns text[] language sql immutable parallel safe
set search_path = public, extensions, pg_temp
as $$
  select array(select substr(j.text, 2, char_length(j.text) - 2)
               from unnest(p_strings) as u (string) cross join lateral (select to_jsonb(u.string)::text as text) as j)
$$;

comment on function long_term_memory.in_json(text[]) is 'The strings as the text of a jsonb document writes them.';

-- A number that holds a string (a telephone number, say) becomes the mark; two names of an object that become the same are one.
create or replace function long_term_memory.redact_deeply(p_document jsonb, p_strings text[])
returns jsonb language plpgsql immutable parallel safe
set search_path = public, extensions, pg_temp
as $$
begin
  return case jsonb_typeof(p_document)
    when 'object' then (
      select coalesce(jsonb_object_agg(long_term_memory.redact(o.key, p_strings),
                                       long_term_memory.redact_deeply(o.value, p_strings)), '{}')
      from jsonb_each(p_document) as o)
    when 'array' then (
      select coalesce(jsonb_agg(long_term_memory.redact_deeply(a.value, p_strings) order by a.ordinality), '[]')
      from jsonb_array_elements(p_document) with ordinality as a)
    when 'string' then to_jsonb(long_term_memory.redact(p_document #>> '{}', p_strings))
    when 'number' then case when long_term_memory.redact(p_document #>> '{}', p_strings) <> p_document #>> '{}'
                            then '"[erased]"' else p_document end
    else p_document end;
end
$$;

comment on function long_term_memory.redact_deeply(jsonb, text[]) is 'A document, with [erased] for each of the strings, in values and names.';

create or replace function long_term_memory.redact(p_document jsonb, p_strings text[])
returns jsonb language sql immutable parallel safe
set search_path = public, extensions, pg_temp
as $$
  select case
    when not p_document::text like any (long_term_memory.like_patterns(long_term_memory.in_json(p_strings))) then p_document
    -- a hundred levels are more than anybody reads, and some thousands more than the server's stack holds
    when p_document @? '$.**{100}'::jsonpath then '{}'
    else long_term_memory.redact_deeply(p_document, p_strings) end
$$;

comment on function long_term_memory.redact(jsonb, text[]) is
  'A document, with [erased] for each of the strings, in values and names. One that holds any and is nested 100 levels deep becomes {}.';

-- A json column keeps its text as it came: escapes of another form, names twice, a null character, which jsonb refuses.
create or replace function long_term_memory.redact(p_document json, p_strings text[])
returns json language plpgsql immutable parallel safe
set search_path = public, extensions, pg_temp
as $$
declare
  v_document jsonb;
begin
  v_document := p_document::jsonb;
  return case when long_term_memory.redact(v_document, p_strings) = v_document then p_document
              else long_term_memory.redact(v_document, p_strings)::json end;
exception when data_exception or program_limit_exceeded then
  return case when p_document::text like any (long_term_memory.like_patterns(p_strings || long_term_memory.in_json(p_strings)))
              then '{}' else p_document end;
end
$$;

comment on function long_term_memory.redact(json, text[]) is
  'A document, with [erased] for each of the strings; as it was where it holds none of them.';

-- p_scope is a condition over t, of $1 the organization and $2 its workspaces.
create or replace function long_term_memory.rows_holding(
  p_table regclass, p_scope text, p_org_id uuid, p_workspaces text[], p_strings text[])
returns text[] language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
declare
  v_conditions text;
  v_keys       text[];
begin
  -- byte by byte, whatever the collation of the column
  select string_agg(case w.kind
           when 'text' then format('t.%I::text collate "C" like any ($3)', w.name)
           when 'texts' then format('array_to_string(t.%I, chr(10)) collate "C" like any ($3)', w.name)
           when 'jsonb' then format('t.%I::text collate "C" like any ($4)', w.name)
           else format('long_term_memory.redact(t.%1$I, $5)::text <> t.%1$I::text', w.name) end, ' or ')
  into v_conditions
  from long_term_memory.word_columns(p_table) w
  where w.kind in ('text', 'texts', 'json', 'jsonb') and not w.is_name and not (w.is_unique and not w.is_nullable);
  execute format('select coalesce(array_agg(t.%I::text), ''{}'') from %s t where (%s) and (%s)',
                 long_term_memory.key_of(p_table), p_table, p_scope, v_conditions)
  into v_keys
  using p_org_id, p_workspaces, long_term_memory.like_patterns(p_strings),
        long_term_memory.like_patterns(long_term_memory.in_json(p_strings)), p_strings;
  return v_keys;
end
$$;

comment on function long_term_memory.rows_holding(regclass, text, uuid, text[], text[]) is
  'The keys of the rows in scope that hold one of the strings, in any column that may be cleaned.';

create or replace function long_term_memory.names_holding(
  p_table regclass, p_scope text, p_org_id uuid, p_workspaces text[], p_strings text[])
returns text[] language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
declare
  v_column name;
  v_found  text[];
  v_names  text[] := '{}';
begin
  for v_column in
    select w.name from long_term_memory.word_columns(p_table) w
    where w.kind = 'text' and (w.is_name or w.is_unique and not w.is_nullable)
  loop
    execute format('select coalesce(array_agg(distinct t.%1$I::text), ''{}'') from %2$s t
                    where (%3$s) and t.%1$I::text collate "C" like any ($3)', v_column, p_table, p_scope)
    into v_found using p_org_id, p_workspaces, long_term_memory.like_patterns(p_strings);
    v_names := v_names || v_found;
  end loop;
  return v_names;
end
$$;

comment on function long_term_memory.names_holding(regclass, text, uuid, text[], text[]) is
  'Names in scope (of workspaces, projects, tasks, channels, runs; keys) that hold one of the strings. They are not changed.';

-- What was made of a text that changed goes with it: vectors, lexemes, hashes. A bytea is taken for a hash by its length.
create or replace function long_term_memory.clean_rows(
  p_table regclass, p_keys text[], p_strings text[], p_keep text[] default '{}', p_set jsonb default '{}')
returns text[] language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_key      name := long_term_memory.key_of(p_table);
  v_type     text;
  v_sets     text;
  v_read     text;
  v_changed  text;
  v_reworded text;
  v_keys     text[];
  v_rule     text;
begin
  v_type := case v_key when 'ctid' then 'tid' else (select format_type(a.atttypid, null) from pg_attribute a
                                                    where a.attrelid = p_table and a.attname = v_key) end;
  select string_agg(case
           when p_set ? w.name then format('%I = %s', w.name, p_set ->> w.name)
           when w.name in ('content_hash', 'content_fingerprint') or w.kind = 'vector'
             then format('%1$I = case when r.is_reworded then %2$s else t.%1$I end', w.name, w.emptied)
           when w.kind = 'tsvector' then format('%1$I = %2$s', w.name, w.emptied)
           when w.kind = 'bytea'
             then format('%1$I = case when octet_length(t.%1$I) in (16, 20, 28, 32, 48, 64) then %2$s else t.%1$I end',
                         w.name, w.emptied)
           when w.is_unique then format('%1$I = case when r.%1$I::text = t.%1$I::text then t.%1$I end', w.name)
           else format('%1$I = r.%1$I', w.name) end, ', '),
         string_agg(c.cleaned || format('::%s as %I', w.type, w.name), ', '),
         string_agg(format('o.%I::text is distinct from ', w.name) || c.cleaned || '::text', ' or '),
         coalesce(string_agg(format('o.%I::text is distinct from ', w.name) || c.cleaned || '::text', ' or ')
                  filter (where w.kind in ('text', 'texts')), 'false')
  into v_sets, v_read, v_changed, v_reworded
  from long_term_memory.word_columns(p_table) w
  left join lateral (
    select format('long_term_memory.redact(o.%I%s, $2)', w.name, case when w.kind = 'text' then '::text' end) as cleaned
    where w.kind in ('text', 'texts', 'json', 'jsonb')) as c on true
  where w.kind <> 'other' and not w.is_name and not (w.is_unique and not w.is_nullable) and w.name <> all (p_keep);
  execute format('select from %s t where t.%I = any ($1::%s[]) order by t.%2$I for no key update', p_table, v_key, v_type)
  using p_keys;
  begin
    execute format(
      'with cleaned as (
         update %1$s t set %2$s
         from (select o.%3$I as key, %4$s, (%5$s) as is_changed, (%6$s) as is_reworded
               from %1$s o where o.%3$I = any ($1::%7$s[]) offset 0) as r
         where t.%3$I = r.key and r.is_changed returning t.%3$I::text as key)
       select coalesce(array_agg(c.key), ''{}'') from cleaned c',
      p_table, v_sets, v_key, v_read, v_changed, v_reworded, v_type)
    into v_keys using p_keys, p_strings;
  exception when integrity_constraint_violation or data_exception then
    get stacked diagnostics v_rule = constraint_name;
    perform long_term_memory.refuse_rule(p_table, v_rule, sqlstate);
  end;
  return v_keys;
end
$$;

comment on function long_term_memory.clean_rows(regclass, text[], text[], text[], jsonb) is
  'Takes the strings out of these rows, and out of them what was made of a text that changed: p_keep stays, p_set says what a column gets (an expression over t, the row, and r, its columns without the strings). Answers the keys of those that changed.';
