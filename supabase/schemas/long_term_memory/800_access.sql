-- Who may do what, in one place. Default privileges of a project are never altered: what they gave is taken back by name.
do $do$
declare
  v_object regclass;
begin
  for v_object in
    select c.oid from pg_class c where c.relnamespace = 'long_term_memory'::regnamespace and c.relkind = 'r'
  loop
    execute format('revoke all on table %s from public, anon, authenticated, service_role', v_object);
    execute format('grant select, insert, update, delete on table %s to service_role', v_object);
    execute format('drop policy if exists service_role_all on %s', v_object);
    execute format('create policy service_role_all on %s for all to service_role using (true) with check (true)', v_object);
    execute format('comment on policy service_role_all on %s is %L', v_object, 'The service role alone reads and writes.');
  end loop;
  for v_object in
    select c.oid from pg_class c where c.relnamespace = 'long_term_memory'::regnamespace and c.relkind = 'S'
  loop
    execute format('revoke all on sequence %s from public, anon, authenticated', v_object);
    execute format('grant usage on sequence %s to service_role', v_object);
  end loop;
end
$do$;

do $do$
declare
  v_function record;
begin
  for v_function in
    select f.name, p.proname, p.prorettype = 'trigger'::regtype as is_trigger
    from long_term_memory.our_functions() as f (name) join pg_proc p on p.oid = f.name
  loop
    execute format('revoke execute on function %s from public, anon, authenticated, service_role', v_function.name);
    if not v_function.is_trigger then
      execute format('grant execute on function %s to service_role', v_function.name);
    end if;
    if v_function.proname = any (long_term_memory.functions_for_people() || array['memory_schema_version']) then
      execute format('grant execute on function %s to authenticated', v_function.name);
    end if;
  end loop;
end
$do$;
