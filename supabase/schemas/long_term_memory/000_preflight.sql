-- Looks before anything is written. Every stop is RL501: what was found, and what to do. Both are in the message, because
-- `supabase db push` does not show a hint. The store stands on the platform alone: neither on Open Brain nor on the ledger.
do $platform$
declare
  v_missing text;
  v_schema text;
  v_found text;
  v_advice text;
begin
  select n.nspname into v_schema
  from pg_catalog.pg_extension e join pg_catalog.pg_namespace n on n.oid = e.extnamespace
  where e.extname = 'vector';
  if v_schema is null then
    v_found := 'The extension pgvector is not enabled in this database.';
    v_advice := 'Enable "vector" in the dashboard under Database, Extensions (schema: extensions), then push again.';
  elsif v_schema not in ('public', 'extensions') then
    v_found := format('The extension pgvector is in the schema %I, where Ranked Ledger does not look.', v_schema);
    v_advice := 'Move it with `alter extension vector set schema extensions`, then push again.';
  end if;

  select string_agg(wanted, ', ' order by wanted) into v_missing
  from unnest(array['anon', 'authenticated', 'service_role']) as wanted
  where not exists (select from pg_catalog.pg_roles where rolname = wanted);
  if v_missing is not null then
    v_found := format('This database is not a Supabase project: it has no role %s.', v_missing);
    v_advice := 'Push to a Supabase project, or to the local stack that `ranked-ledger stack up` starts.';
  elsif not exists (select from pg_catalog.pg_attribute where attrelid = to_regclass('auth.users') and attname = 'id'
                    and atttypid = 'uuid'::regtype) then
    v_found := 'This database has no auth.users(id uuid): nobody could be a member of an organization.';
    v_advice := 'Push to a Supabase project, or to the local stack that `ranked-ledger stack up` starts.';
  elsif not has_table_privilege('auth.users', 'REFERENCES') then
    v_found := format('The role %I may not refer to auth.users.', current_user);
    v_advice := 'Push as postgres, the owner of the project.';
  end if;

  if v_found is not null then
    raise exception using errcode = 'RL501', message = v_found || ' ' || v_advice, hint = v_advice;
  end if;
end
$platform$;

-- A schema of this name that somebody else made is not ours to fill.
do $schema$
declare
  v_found text := 'The schema long_term_memory is here already, and is not that of Ranked Ledger.';
  v_advice text := 'Rename it, then push again.';
begin
  if exists (select from pg_catalog.pg_class c where c.relnamespace = to_regnamespace('long_term_memory'))
     and to_regclass('long_term_memory.recall_subjects') is null then
    raise exception using errcode = 'RL501', message = v_found || ' ' || v_advice, hint = v_advice;
  end if;
end
$schema$;

-- A host's own tables are referred to, and for that each needs a unique key, and we the right.
do $host_tables$
declare
  v_table text;
  v_key text;
  v_found text;
  v_advice text;
begin
  for v_table, v_key in
    select w.name, w.key
    from (values ('organizations', 'id', 'uuid'), ('agent_runs', 'run_id', 'text')) as w (name, key, kind)
    join pg_catalog.pg_class c on c.oid = to_regclass('public.' || w.name) and c.relkind in ('r', 'p')
    join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attname = w.key and a.atttypid = to_regtype(w.kind)
    where not has_table_privilege(c.oid, 'REFERENCES') or not exists (
      select from pg_catalog.pg_index i
      where i.indrelid = c.oid and i.indisunique and i.indisvalid and i.indpred is null and i.indnkeyatts = 1
        and i.indkey[0] = a.attnum)
  loop
    v_found := format('public.%I is here, and its %I cannot be referred to: it has no unique key, or %I lacks the right.',
      v_table, v_key, current_user);
    v_advice := format('Make %I its primary key, and push as its owner.', v_key);
    raise exception using errcode = 'RL501', message = v_found || ' ' || v_advice, hint = v_advice;
  end loop;
end
$host_tables$;

-- A second run replaces triggers. All locks that it needs on tables in use are taken here, all of them or none: one by one
-- they end in a deadlock beside readers and writers, and whoever comes later queues up behind a lock that is waited for.
do $lock$
declare
  v_tables text;
  v_deadline timestamptz := clock_timestamp() + interval '5 seconds';
  v_found text := 'Transactions kept the long-term memory busy for five seconds. Nothing was changed.';
  v_advice text := 'Push again when they are over: pg_stat_activity shows them.';
begin
  select string_agg(c.oid::regclass::text, ', ' order by c.oid) into v_tables
  from pg_catalog.pg_class c
  where c.relkind = 'r' and (c.relnamespace = to_regnamespace('long_term_memory') or exists (
    select from pg_catalog.pg_trigger t join pg_catalog.pg_proc p on p.oid = t.tgfoid
    where t.tgrelid = c.oid and not t.tgisinternal and p.pronamespace = to_regnamespace('long_term_memory')));
  while v_tables is not null loop
    begin
      perform set_config('lock_timeout', '200ms', true);
      execute format('lock table %s in access exclusive mode', v_tables);
      exit;
    exception when lock_not_available or deadlock_detected then
      if clock_timestamp() > v_deadline then
        raise exception using errcode = '55P03', message = v_found || ' ' || v_advice, hint = v_advice;
      end if;
      perform pg_sleep(0.02 + 0.1 * random());
    end;
  end loop;
  perform set_config('lock_timeout', '5s', true);
end
$lock$;
