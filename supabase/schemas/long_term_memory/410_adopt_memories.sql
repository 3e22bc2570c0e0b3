-- Another product calls a table public.agent_memories too, and its rows have the shape of ours. They are copied, and the
-- table is read and nothing else. Which of the columns it has differs from install to install, so the catalogue is asked.
do $do$
begin
  if to_regtype('long_term_memory.found_memory') is null then
    create type long_term_memory.found_memory as (
      id uuid, org_id uuid, subject_type text, subject_id uuid, text text, author text, source_run_id text, written_by uuid,
      embedding real[], embedding_model text, created_date timestamptz, expires_at timestamptz, redacted_at timestamptz);
    comment on type long_term_memory.found_memory is 'A row of the other product''s agent_memories, as far as its table has these columns.';
  end if;
end
$do$;

-- pgvector refuses what is no vector, and one such row would stop the page. No SQL function: the planner would cast first.
create or replace function long_term_memory.vector_or_null(p_numbers real[])
returns vector language plpgsql immutable parallel safe
set search_path = public, extensions, pg_temp
as $$
begin
  if array_ndims(p_numbers) = 1 and cardinality(p_numbers) <= 16000
     and (select bool_and(n is not null and n not in ('NaN', 'Infinity', '-Infinity')) and bool_or(n <> 0)
          from unnest(p_numbers) as n) then
    return p_numbers::vector;
  end if;
  return null;
end
$$;

comment on function long_term_memory.vector_or_null(real[]) is 'The vector of these numbers; null where they are none, or have no direction.';

create or replace function long_term_memory.adoptable_table()
returns regclass language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
declare
  v_table   regclass := to_regclass('public.agent_memories');
  v_columns text[] := (select array_agg(a.attname) from pg_attribute a
                       where a.attrelid = v_table and a.attnum > 0 and not a.attisdropped);
begin
  if v_table is null then
    raise sqlstate 'RL404' using
      message = 'There is no public.agent_memories to adopt from.', hint = 'This is for projects that have such a table of another product.';
  elsif 'memory_type' = any (v_columns) then
    raise sqlstate '22023' using
      message = 'public.agent_memories is Open Brain''s: it holds what the decision ledger ranks, and nothing to adopt.',
      hint = 'Tie its decisions to a person with attribute_decision.';
  elsif not v_columns @> array['org_id', 'subject_type', 'text'] then
    raise sqlstate '22023' using
      message = 'public.agent_memories has no org_id, subject_type and text: it is no table of memories that could be adopted.',
      hint = 'Copy its rows with remember.';
  end if;
  perform long_term_memory.check_readable(v_table);
  return v_table;
end
$$;

comment on function long_term_memory.adoptable_table() is
  'The other product''s table. RL404 where there is none, 22023 where the table of that name is something else.';

-- What cannot be read as what it should be is null, and judged by the rules of its row. A row without an id gets one of what
-- it says, the same at every reading: a repeat would adopt it again.
create or replace function long_term_memory.adoption_query(p_table regclass)
returns text language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
declare
  v_types  jsonb := (select jsonb_object_agg(a.attname, format_type(a.atttypid, null)) from pg_attribute a
                     where a.attrelid = p_table and a.attnum > 0 and not a.attisdropped);
  v_id     text;
  v_values text;
begin
  v_id := format('md5(concat_ws(chr(31), %s))::uuid', (
    select string_agg(format('coalesce(s.%I::text, %L)', c.name, ''), ', ')
    from unnest(array['id', 'org_id', 'subject_type', 'subject_id', 'text']) as c (name) where v_types ? c.name));
  if exists (select from pg_attribute a where a.attrelid = p_table and a.attname = 'id' and a.atttypid = 'uuid'::regtype) then
    -- by itself where it is never null, so that a page is a walk along its index
    v_id := case when (select a.attnotnull from pg_attribute a where a.attrelid = p_table and a.attname = 'id') then 's.id'
                 else format('coalesce(s.id, %s)', v_id) end;
  end if;
  select string_agg(case
      when not v_types ? a.attname or a.attname = 'embedding' and v_types ->> 'embedding' not in ('real[]', 'vector', 'halfvec')
        then format('null::%s', format_type(a.atttypid, null))
      when a.atttypid = 'uuid'::regtype then format('long_term_memory.uuid_of(s.%I::text)', a.attname)
      else format('s.%I::%s', a.attname, format_type(a.atttypid, null)) end, ', ' order by a.attnum) into v_values
  from pg_type t join pg_attribute a on a.attrelid = t.typrelid
  where t.oid = 'long_term_memory.found_memory'::regtype and a.attname <> 'id';
  return format('select array_agg(p::long_term_memory.found_memory order by p.id) from (select %s as id, %s from %s s '
                'where $1 is null or %1$s > $1 order by 1 limit $2) as p', v_id, v_values, p_table);
end
$$;

comment on function long_term_memory.adoption_query(regclass) is
  'The query of one page of the other product''s rows, over the columns that its table has: $1 the id before it, $2 how many.';

create or replace function long_term_memory.adoption_problem(p_row long_term_memory.found_memory)
returns text language sql stable
set search_path = public, extensions, pg_temp
as $$
  select case
    when coalesce(r.subject_type, '') not in ('workspace', 'candidate', 'user') then 'unknown subject type'
    when r.subject_type <> 'workspace' and r.subject_id is null then 'no subject'
    when r.org_id is null or not long_term_memory.org_exists(r.org_id) then 'unknown organization'
    when exists (select from long_term_memory.agent_memories m where m.id = r.id and m.org_id <> r.org_id)
      then 'id is another organization''s'
    when r.redacted_at is not null then null
    when coalesce(r.text, '') !~ '\S' then 'blank text'
    when octet_length(r.text) > 65536 then 'text too long'
    when r.expires_at <= now() then 'expired'
    when exists (
      select from long_term_memory.erasures e
      where e.org_id = r.org_id and e.subject_type = r.subject_type and e.subject_id = r.subject_id
        and e.erased_at >= coalesce(r.created_date, '-infinity')) then 'subject erased' -- or it would be back
  end
  from (select (p_row).*) as r
$$;

comment on function long_term_memory.adoption_problem(long_term_memory.found_memory) is
  'Why a row of the other product''s is not adopted; null where it can be.';

-- No token of theirs was seen here. The other table's word for it is the service's, and goes as far as that goes elsewhere.
create or replace function long_term_memory.asserted_writer(p_row long_term_memory.found_memory)
returns uuid language sql stable
set search_path = public, extensions, pg_temp
as $$
  select r.written_by
  from (select (p_row).*) as r
  where r.author = 'person' and r.redacted_at is null and exists (
    select from long_term_memory.org_settings s where s.org_id = r.org_id and s.allow_asserted)
$$;

comment on function long_term_memory.asserted_writer(long_term_memory.found_memory) is
  'The person of whom the other table says that they wrote a row, where the organization allows that one is named; else null, and the row is a model''s.';

create or replace function long_term_memory.adopt(p_row long_term_memory.found_memory)
returns boolean language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_run     text := p_row.source_run_id;
  v_person  uuid := long_term_memory.asserted_writer(p_row);
  v_vector  vector := long_term_memory.vector_or_null(p_row.embedding);
  v_adopted boolean;
  v_unknown text;
begin
  if long_term_memory.referred_to('source_run_id') = to_regclass('long_term_memory.agent_runs') then
    perform long_term_memory.note_run(v_run);
  end if;
  loop -- at most twice: a run that is not known is left out
    begin
      insert into long_term_memory.agent_memories (id, org_id, subject_type, subject_id, text, author, source_run_id, asserted_by,
        embedding, embedding_model, created_date, expires_at, redacted_at)
      values (p_row.id, p_row.org_id, p_row.subject_type, p_row.subject_id, coalesce(p_row.text, ''),
        case when v_person is not null then 'person' else 'model' end, v_run, v_person, v_vector,
        case when v_vector is null then '' else coalesce(p_row.embedding_model, '') end,
        case when isfinite(p_row.created_date) then p_row.created_date else now() end, p_row.expires_at, p_row.redacted_at)
      on conflict (id) do nothing;
      v_adopted := found;
      exit;
    exception when foreign_key_violation then
      get stacked diagnostics v_unknown = constraint_name;
      if v_unknown is distinct from 'agent_memories_source_run_id_fkey' or v_run is null then
        raise;
      end if;
      v_run := null;
    end;
  end loop;
  if v_adopted then
    perform long_term_memory.note_event(p_row.org_id, p_row.id, 'adopted', long_term_memory.calling(p_row.org_id),
                                        p_writer_before => p_row.written_by);
  end if;
  return v_adopted;
end
$$;

comment on function long_term_memory.adopt(long_term_memory.found_memory) is
  'Copies one row; false where a memory with this id is here already. It has no verified writer here and no review: a person''s is asserted, or waits for a review as a model''s.';

create or replace function public.adopt_memories(
  p_limit int default 500, p_after uuid default null, p_dry_run boolean default false)
returns jsonb language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_page    long_term_memory.found_memory[];
  v_row     long_term_memory.found_memory;
  v_problem text;
  v_adopted int := 0;
  v_present int := 0;
  v_skipped jsonb[] := '{}';
begin
  -- guard
  if p_limit is null or p_limit not between 1 and 1000 then
    raise sqlstate '22023' using
      message = 'p_limit is not a number from 1 to 1000.', hint = 'Call again with p_after => next, until next is null.';
  end if;

  perform long_term_memory.check_readable(long_term_memory.referred_to('org_id'));

  -- fetch: a page, and a share of the subjects in it, so that an erasure is over before it is looked for
  execute long_term_memory.adoption_query(long_term_memory.adoptable_table()) into v_page using p_after, p_limit;
  if not coalesce(p_dry_run, false) then
    perform long_term_memory.share_subjects(s.org_id, s.types, s.ids)
    from (select r.org_id, array_agg(r.subject_type) as types, array_agg(r.subject_id) as ids
          from unnest(v_page) as r where r.org_id is not null group by r.org_id order by r.org_id) as s;
  end if;

  -- mutate
  foreach v_row in array coalesce(v_page, '{}') loop
    v_problem := long_term_memory.adoption_problem(v_row);
    if exists (select from long_term_memory.agent_memories m where m.id = v_row.id and m.org_id = v_row.org_id) then
      v_present := v_present + 1;
    elsif v_problem is not null then
      v_skipped := v_skipped || jsonb_build_object('id', v_row.id, 'reason', v_problem);
    elsif coalesce(p_dry_run, false) or long_term_memory.adopt(v_row) then
      v_adopted := v_adopted + 1;
    else
      v_present := v_present + 1;
    end if;
  end loop;

  -- answer
  return jsonb_build_object('adopted', v_adopted, 'present', v_present, 'skipped', to_jsonb(v_skipped[:100]),
    'skipped_total', cardinality(v_skipped), 'next', case when cardinality(v_page) = p_limit then v_page[p_limit].id end);
end
$$;

comment on function public.adopt_memories(int, uuid, boolean) is
  'Copies a page of the other product''s public.agent_memories into the store, in the order of ids, and leaves that table as it is. A repeat adopts nothing twice.';
