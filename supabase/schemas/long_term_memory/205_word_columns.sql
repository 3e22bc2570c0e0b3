-- Where a table may hold somebody's words, asked of the catalogue: hosts have columns that nobody has told us of. What cannot
-- hold words is left alone: numbers, times, uuids, enums, generated columns, and columns with a closed list of values.

create or replace function long_term_memory.key_of(p_table regclass)
returns name language sql stable
set search_path = public, extensions, pg_temp
as $$
  select coalesce((
    select a.attname from pg_index i join pg_attribute a on a.attrelid = i.indrelid and a.attnum = i.indkey[0]
    where i.indrelid = p_table and i.indisprimary and i.indnkeyatts = 1), 'ctid')
$$;

comment on function long_term_memory.key_of(regclass) is 'The primary key of a table where it is one column, else ctid.';

create or replace function long_term_memory.base_type(p_type oid)
returns oid language sql stable
set search_path = public, extensions, pg_temp
as $$
  with recursive types as (
    select t.oid, t.typtype, t.typbasetype from pg_type t where t.oid = p_type
    union all
    select b.oid, b.typtype, b.typbasetype from types t join pg_type b on b.oid = t.typbasetype where t.typtype = 'd')
  select t.oid from types t where t.typtype <> 'd'
$$;

comment on function long_term_memory.base_type(oid) is 'What a domain is of in the end, also one over another domain.';

create or replace function long_term_memory.kind_of_words(p_type name)
returns text language sql immutable parallel safe
return case
  when p_type in ('text', 'varchar', 'bpchar', 'citext', 'name') then 'text'
  when p_type in ('_text', '_varchar', '_bpchar', '_citext', '_name') then 'texts'
  when p_type in ('json', 'jsonb') then p_type
  when p_type in ('_json', '_jsonb', '_float4', '_float8', '_numeric', 'hstore', 'xml') then 'other'
  when p_type in ('vector', 'halfvec', 'sparsevec') then 'vector'
  when p_type in ('tsvector', 'bytea') then p_type
end;

comment on function long_term_memory.kind_of_words(name) is
  'How a type may hold words: text, texts, json, jsonb, tsvector, vector, bytea, other; null: not.';

-- `in (...)` is written `= ANY (...)` by the catalogue, and a chain of `or` as it was.
create or replace function long_term_memory.is_closed_list(p_check text, p_column name)
returns boolean language sql immutable parallel safe
set search_path = public, extensions, pg_temp
as $$
  -- what it says of this column alone, taken out: nothing else may be left of it
  select regexp_replace(
           p_check,
           n.name || ' (= ANY \(+ARRAY\[[^\]]*\]\)*(::[a-z ]+\[\])?|= ''[^'']*''(::[a-z ]+)?|IS( NOT)? NULL)|\m(OR|AND)\M', '', 'g')
         ~ '^CHECK [ ()]*(NOT VALID)?$'
     and p_check ~ (n.name || ' (= ANY|= '')') -- that something is not null is no list
  from (select '"?\m' || regexp_replace(p_column, '(\W)', '\\\1', 'g') || '\M"?\)?(::[a-z ]+)?' as name) as n
$$;

comment on function long_term_memory.is_closed_list(text, name) is
  'Whether a CHECK constraint, in its own words, lists the values of this column.';

-- emptied: what stands in the column of a row that is erased, as an expression over its table t. The default where that is
-- a constant, else null, else the least that the type allows.
create or replace function long_term_memory.word_columns(p_table regclass)
returns table (name name, type text, kind text, is_name boolean, is_unique boolean, is_nullable boolean, emptied text)
language sql stable
set search_path = public, extensions, pg_temp
as $$
  with columns as (
    select a.attnum, a.attname, format_type(a.atttypid, a.atttypmod) as type, a.atttypmod,
           long_term_memory.kind_of_words(coalesce(b.typname, t.typname)) as kind,
           not a.attnotnull and not t.typnotnull as is_nullable, pg_get_expr(d.adbin, d.adrelid) as preset,
           a.attname in ('workspace_id', 'project_id', 'task_id', 'flow_id', 'run_id', 'channel_id', 'channel_kind',
                         'channel_thread_id')
           or exists (select from pg_constraint k
                      where k.conrelid = a.attrelid and k.contype in ('f', 'p') and a.attnum = any (k.conkey)) as is_name,
           exists (select from pg_index i
                   where i.indrelid = a.attrelid and i.indisunique
                     and (a.attnum = any (i.indkey) or strpos(pg_get_expr(i.indexprs, i.indrelid), a.attname) > 0)) as is_unique
    from pg_attribute a
    join pg_type t on t.oid = a.atttypid
    left join pg_type b on b.oid = long_term_memory.base_type(t.oid) and t.typtype = 'd'
    left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
    where a.attrelid = p_table and a.attnum > 0 and not a.attisdropped and a.attgenerated = '' and a.attidentity = ''
      and not exists (
        select from pg_constraint k
        where k.contype = 'c' and (k.contypid = t.oid and long_term_memory.is_closed_list(pg_get_constraintdef(k.oid), 'VALUE')
          or k.conrelid = a.attrelid and a.attnum = any (k.conkey)
             and long_term_memory.is_closed_list(pg_get_constraintdef(k.oid), a.attname))))
  select c.attname, c.type, c.kind, c.is_name, c.is_unique, c.is_nullable,
         case when c.is_unique and c.is_nullable then 'null'
              when c.is_unique and c.kind = 'text' then
                format('(''[erased] '' || t.%I)::%s', long_term_memory.key_of(p_table), c.type)
              when c.preset !~ '\(' then format('(%s)', c.preset)
              when c.is_nullable then 'null'
              when c.type ~ '^(\w+\.)?sparsevec' then format('''{}/%s''::%s', greatest(c.atttypmod, 1), c.type)
              when c.kind = 'vector' then
                format('(''['' || repeat(''0,'', %s) || ''0]'')::%s', greatest(c.atttypmod, 1) - 1, c.type)
              when c.kind in ('json', 'jsonb') or c.type ~ '\[\]$' then format('''{}''::%s', c.type)
              else format('''''::%s', c.type) end
  from columns c where c.kind is not null order by c.attnum
$$;

comment on function long_term_memory.word_columns(regclass) is
  'The columns of a table that may hold words, and what is left in them by an erasure. is_name: a scope, a key, a reference to another table; never changed.';

-- The server's own words quote the row.
create or replace function long_term_memory.refuse_rule(p_table regclass, p_rule text, p_code text)
returns void language plpgsql immutable
set search_path = public, extensions, pg_temp
as $$
begin
  raise sqlstate 'RL500' using
    message = format('A rule of %s does not let its words be taken out: %s. Nothing was erased.', p_table,
                     coalesce('the constraint ' || nullif(p_rule, ''), 'SQLSTATE ' || p_code)),
    hint = 'Have the rule allow the column''s default, null or [erased], then erase again; `\d` of the table shows it.';
end
$$;

comment on function long_term_memory.refuse_rule(regclass, text, text) is
  'Refuses (RL500) an erasure that a constraint of a host''s table stands against, without the row.';

-- The rows themselves stay, and with them what the caller keeps. A trigger of the host might put back what it finds missing.
create or replace function long_term_memory.empty_rows(
  p_table regclass, p_by name, p_ids uuid[], p_keep text[] default '{}', p_set jsonb default '{}', p_touch text default null)
returns text[] language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_sets  text;
  v_where text;
  v_ids   text[];
  v_left  bigint;
  v_rule  text;
begin
  select string_agg(format('%I = %s', s.name, s.value), ', ' order by s.name),
         format('t.%I = any ($1) and (%s)', p_by,
                string_agg(format('t.%I::text is distinct from (%s)::text', s.name, s.value), ' or ' order by s.name))
  into v_sets, v_where
  from (
    select w.name, w.emptied as value from long_term_memory.word_columns(p_table) w
    where not w.is_name and w.name <> all (p_keep) and not p_set ? w.name
    union all
    select a.attname, p_set ->> a.attname from pg_attribute a
    where a.attrelid = p_table and a.attnum > 0 and not a.attisdropped and p_set ? a.attname) as s;
  begin
    execute format('with emptied as (update %s t set %s where %s returning t.%I::text as key)
                    select coalesce(array_agg(e.key), ''{}'') from emptied e',
                   p_table, concat_ws(', ', v_sets, p_touch), v_where, long_term_memory.key_of(p_table))
    into v_ids using p_ids;
  exception when integrity_constraint_violation or data_exception then
    get stacked diagnostics v_rule = constraint_name;
    perform long_term_memory.refuse_rule(p_table, v_rule, sqlstate);
  end;
  execute format('select count(*) from %s t where %s', p_table, v_where) into v_left using p_ids;
  if v_left > 0 then
    raise sqlstate 'RL500' using
      message = format('%s rows of %s could not be emptied: a trigger of the table puts back what was there. '
                       'Nothing was erased.', v_left, p_table),
      hint = 'Disable that trigger for the erasure, or have it let this through; `\d` of the table shows its triggers.';
  end if;
  return v_ids;
end
$$;

comment on function long_term_memory.empty_rows(regclass, name, uuid[], text[], jsonb, text) is
  'Takes the words out of rows, by one of their columns: p_keep stays, p_set says what a column gets (an expression over t), all others that may hold words are emptied. Answers the keys of the rows that changed. RL500 where a trigger undoes it.';
