-- What ANALYZE keeps of a column for the planner is its most common and its dividing values, word by word: they would outlive
-- the rows until the next one.

create or replace function long_term_memory.renew_statistics(p_tables text[])
returns text[] language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_table   record;
  v_is_left boolean;
  v_left    text[] := '{}';
begin
  for v_table in
    select c.oid::regclass as name, n.nspname, c.relname, array_agg(w.name order by w.name) as columns
    from unnest(p_tables) as u (name)
    join pg_class c on c.oid = to_regclass(u.name) join pg_namespace n on n.oid = c.relnamespace
    cross join lateral long_term_memory.word_columns(c.oid) as w
    join pg_stats s on s.schemaname = n.nspname and s.tablename = c.relname and s.attname = w.name
    where not w.is_name
      and (s.most_common_vals is not null or s.histogram_bounds is not null or s.most_common_elems is not null)
    group by c.oid, n.nspname, c.relname
  loop
    begin
      execute format('lock table %s in share update exclusive mode nowait', v_table.name);
      if to_regprocedure('pg_catalog.pg_clear_attribute_stats(text, text, text, boolean)') is not null then -- PostgreSQL 18
        execute 'select pg_clear_attribute_stats($1, $2, u.name, false) from unnest($3) as u (name)'
        using v_table.nspname::text, v_table.relname::text, v_table.columns::text[];
        v_is_left := false;
      else -- of an empty table nothing is made anew
        execute format('analyze %s (%s)', v_table.name,
                       (select string_agg(quote_ident(u.name), ', ') from unnest(v_table.columns) as u (name)));
        execute format('select not exists (select from %s)', v_table.name) into v_is_left;
      end if;
    exception when lock_not_available then -- a vacuum has it, and may for hours
      v_is_left := true;
    end;
    v_left := v_left || case when v_is_left then v_table.name::text end;
  end loop;
  return array_remove(v_left, null);
end
$$;

comment on function long_term_memory.renew_statistics(text[]) is
  'Takes what the planner has kept of the values of these tables'' columns of words, or has it made anew. Answers the tables where it could not.';
