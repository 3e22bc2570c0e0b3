-- What ANALYZE keeps of a column for the planner is its most common and its dividing values, word by word: they would outlive
-- the rows until the next one.

-- Of generated columns and of indexes over expressions, too. Names and closed lists keep theirs. A posting's term is a word in
-- eight bytes, which tells a guess at it.
create or replace function long_term_memory.statistics_of_words(p_table regclass)
returns table (relation regclass, name name)
language sql stable
set search_path = public, extensions, pg_temp
as $$
  select c.oid::regclass, s.attname
  from pg_class c
  join pg_namespace n on n.oid = c.relnamespace
  join pg_stats s on s.schemaname = n.nspname and s.tablename = c.relname and not s.inherited
  left join pg_attribute a on a.attrelid = c.oid and a.attname = s.attname
  left join pg_type t on t.oid = a.atttypid
  where (c.oid = p_table
         or c.oid in (select i.indexrelid from pg_index i where i.indrelid = p_table and i.indexprs is not null))
    and (s.most_common_vals is not null or s.histogram_bounds is not null or s.most_common_elems is not null)
    and (c.oid <> p_table or a.attgenerated <> '' and long_term_memory.kind_of_words(t.typname) is not null
         or p_table = to_regclass('ranked_ledger.postings') and s.attname = 'term'
         or s.attname in (select w.name from long_term_memory.word_columns(p_table) w where not w.is_name))
  order by 1, 2
$$;

comment on function long_term_memory.statistics_of_words(regclass) is
  'The columns of a table and of its indexes of which the planner keeps values that may be words.';

-- CREATE STATISTICS, which nothing clears but a new ANALYZE.
create or replace function long_term_memory.has_joint_statistics(p_table regclass)
returns boolean language sql stable
set search_path = public, extensions, pg_temp
as $$
  select exists (
    select from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where c.oid = p_table and (
      exists (select from pg_stats_ext s
              where s.schemaname = n.nspname and s.tablename = c.relname and s.most_common_vals is not null)
      or exists (select from pg_stats_ext_exprs s where s.schemaname = n.nspname and s.tablename = c.relname)))
$$;

comment on function long_term_memory.has_joint_statistics(regclass) is
  'Whether the planner keeps values of several columns, or of expressions, of a table.';

create or replace function long_term_memory.renew_statistics(p_tables text[])
returns text[] language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_table   regclass;
  v_is_left boolean;
  v_left    text[] := '{}';
begin
  for v_table in
    select to_regclass(u.name) from unnest(p_tables) as u (name)
    where exists (select from long_term_memory.statistics_of_words(to_regclass(u.name)))
  loop
    begin
      execute format('lock table %s in share update exclusive mode nowait', v_table);
      if to_regprocedure('pg_catalog.pg_clear_attribute_stats(text, text, text, boolean)') is not null -- PostgreSQL 18
         and not long_term_memory.has_joint_statistics(v_table) then
        execute 'select pg_catalog.pg_clear_attribute_stats(n.nspname::text, c.relname::text, s.name::text, false)
                 from long_term_memory.statistics_of_words($1) s
                 join pg_catalog.pg_class c on c.oid = s.relation join pg_catalog.pg_namespace n on n.oid = c.relnamespace'
        using v_table;
        v_is_left := false;
      else -- of an empty table nothing is made anew
        execute format('analyze %s', v_table);
        execute format('select not exists (select from %s)', v_table) into v_is_left;
      end if;
    exception when lock_not_available then -- a vacuum has it, and may for hours
      v_is_left := true;
    end;
    if v_is_left then
      v_left := v_left || v_table::text;
    end if;
  end loop;
  return v_left;
end
$$;

comment on function long_term_memory.renew_statistics(text[]) is
  'Takes what the planner has kept of the values of these tables'' columns of words, or has it made anew. Answers the tables where it could not.';
