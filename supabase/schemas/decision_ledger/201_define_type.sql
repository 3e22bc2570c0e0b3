-- `create or replace` cannot change the fields of a type, nor the results of the functions over it; and dropped where nothing
-- changed, it would break the sessions that know it (cache lookup failed).
create or replace function ranked_ledger.define_type(p_name text, p_fields text)
returns void language plpgsql
set search_path = public, extensions, pg_temp
set client_min_messages = warning -- a notice for each function that goes with it, and comes again below
as $$
declare
  v_fields text;
begin
  select string_agg(a.attname || ' ' || format_type(a.atttypid, a.atttypmod), ', ' order by a.attnum) into v_fields
  from pg_attribute a
  where a.attrelid = to_regclass('ranked_ledger.' || p_name) and a.attnum > 0 and not a.attisdropped;
  if v_fields is distinct from p_fields then
    execute format('drop type if exists ranked_ledger.%I cascade', p_name);
    execute format('create type ranked_ledger.%I as (%s)', p_name, p_fields);
  end if;
end
$$;

comment on function ranked_ledger.define_type(text, text) is
  'Has a composite type of these fields, named as format_type names them; one of other fields goes first, with the functions over it.';
