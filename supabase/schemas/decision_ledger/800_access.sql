-- Who may do what, in one place. Default privileges of a project are never altered: what they gave is taken back by name.
do $do$
declare
  v_object record;
begin
  for v_object in select t.name from ranked_ledger.our_tables() as t (name) loop
    execute format('revoke all on table %s from public, anon, authenticated, service_role', v_object.name);
    execute format('grant select, insert, update, delete on table %s to service_role', v_object.name);
  end loop;
  for v_object in
    select c.oid::regclass as name from pg_class c
    where c.relnamespace = 'ranked_ledger'::regnamespace and c.relkind = 'S'
  loop
    execute format('revoke all on sequence %s from public, anon, authenticated', v_object.name);
    execute format('grant usage on sequence %s to service_role', v_object.name);
  end loop;
end
$do$;

do $do$
declare
  v_table  regclass;
  v_policy text;
begin
  for v_table in select t.name from ranked_ledger.our_tables() as t (name) loop
    for v_policy in select p.polname from pg_policy p where p.polrelid = v_table loop -- those of the published proposal too
      execute format('drop policy %I on %s', v_policy, v_table);
    end loop;
    select c.relname || '_all_service_role' into v_policy from pg_class c where c.oid = v_table;
    execute format('create policy %I on %s for all to service_role using (true) with check (true)', v_policy, v_table);
    execute format('comment on policy %I on %s is %L', v_policy, v_table, 'The service role alone reads and writes.');
  end loop;
end
$do$;

do $do$
declare
  v_function record;
begin
  for v_function in
    select f.name, p.prorettype = 'trigger'::regtype as is_trigger
    from ranked_ledger.our_functions() as f (name) join pg_proc p on p.oid = f.name
  loop
    execute format('revoke execute on function %s from public, anon, authenticated, service_role', v_function.name);
    if not v_function.is_trigger then
      execute format('grant execute on function %s to service_role', v_function.name);
    end if;
  end loop;
end
$do$;
