-- Organizations and agent runs: a host's own tables where it has them, else ours. A host whose tables arrive later calls
-- use_host_tables() once (a second push of this migration does it too).

create or replace function long_term_memory.host_table(p_name text, p_key text, p_kind regtype)
returns regclass language sql stable
set search_path = public, extensions, pg_temp
as $$
  select c.oid::regclass
  from pg_class c
  join pg_attribute a on a.attrelid = c.oid and a.attname = p_key and a.atttypid = p_kind and not a.attisdropped
  where c.oid = to_regclass(format('public.%I', p_name)) and c.relkind in ('r', 'p')
    and exists (select from pg_index i where i.indrelid = c.oid and i.indisunique and i.indisvalid and i.indpred is null
                and i.indnkeyatts = 1 and i.indkey[0] = a.attnum)
$$;

comment on function long_term_memory.host_table(text, text, regtype) is
  'The host''s own table of this name, where it has this key and the key is unique; null where not.';

do $do$
begin
  if long_term_memory.host_table('organizations', 'id', 'uuid') is null then
    create table if not exists long_term_memory.organizations (
      id         uuid primary key default gen_random_uuid(),
      name       text,
      created_at timestamptz not null default now()
    );
    alter table long_term_memory.organizations enable row level security;
    comment on table long_term_memory.organizations is
      'Organizations, where the host has no public.organizations(id uuid) of its own.';
  end if;
  if long_term_memory.host_table('agent_runs', 'run_id', 'text') is null then
    create table if not exists long_term_memory.agent_runs (
      run_id     text primary key,
      created_at timestamptz not null default now()
    );
    alter table long_term_memory.agent_runs enable row level security;
    comment on table long_term_memory.agent_runs is
      'Agent runs, where the host has no public.agent_runs(run_id text): noted when a run first remembers something.';
  end if;
end
$do$;

-- Rows that the new table lacks: an organization has to be there, since its rows go with it; a run that is not known any
-- more may stay written down, as one that was pruned before.
create or replace function long_term_memory.refer(p_table regclass, p_column text, p_to regclass, p_key text, p_rule text)
returns boolean language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_name text := (select relname from pg_class where oid = p_table) || '_' || p_column || '_fkey';
  v_lost bigint;
begin
  if exists (select from pg_constraint where conrelid = p_table and conname = v_name and confrelid = p_to) then
    return false;
  end if;
  execute format('select count(*) from %s t where t.%I is not null and not exists (select from %s h where h.%I = t.%2$I)',
                 p_table, p_column, p_to, p_key) into v_lost;
  if v_lost > 0 and p_rule = 'cascade' then
    raise exception using errcode = 'RL501',
      message = format('%s rows of %s name an organization that %s does not have. Insert those organizations first, then call '
                       'long_term_memory.use_host_tables() again.', v_lost, p_table, p_to),
      hint = format('select distinct %I from %s', p_column, p_table);
  end if;
  execute format('alter table %s drop constraint if exists %I', p_table, v_name);
  execute format('alter table %s add constraint %I foreign key (%I) references %s (%I) on delete %s%s',
                 p_table, v_name, p_column, p_to, p_key, p_rule, case when v_lost > 0 then ' not valid' else '' end);
  return true;
end
$$;

comment on function long_term_memory.refer(regclass, text, regclass, text, text) is
  'Points a foreign key at this table, if it does not point there already. RL501 where organizations would be missing.';

create or replace function long_term_memory.use_host_tables()
returns jsonb language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_orgs    regclass := coalesce(long_term_memory.host_table('organizations', 'id', 'uuid'),
                                 to_regclass('long_term_memory.organizations'));
  v_runs    regclass := coalesce(long_term_memory.host_table('agent_runs', 'run_id', 'text'),
                                 to_regclass('long_term_memory.agent_runs'));
  v_table   regclass;
  v_changed boolean := false;
begin
  for v_table in
    select c.oid from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'org_id'
    where c.relnamespace = 'long_term_memory'::regnamespace and c.relkind = 'r' order by c.oid
  loop
    v_changed := long_term_memory.refer(v_table, 'org_id', v_orgs, 'id', 'cascade') or v_changed;
  end loop;
  v_changed := long_term_memory.refer('long_term_memory.agent_memories', 'source_run_id', v_runs, 'run_id', 'set null') or v_changed;
  execute format($f$
    create or replace function long_term_memory.org_exists(p_org_id uuid)
    returns boolean language sql stable
    set search_path = public, extensions, pg_temp
    as $b$ select exists (select from %s o where o.id = p_org_id) $b$ $f$, v_orgs);
  if v_runs = to_regclass('long_term_memory.agent_runs') then
    create or replace function long_term_memory.note_run(p_run_id text)
    returns void language sql
    set search_path = public, extensions, pg_temp
    as $b$
      insert into long_term_memory.agent_runs (run_id) select p_run_id where p_run_id is not null on conflict do nothing
    $b$;
  else
    create or replace function long_term_memory.note_run(p_run_id text)
    returns void language plpgsql
    set search_path = public, extensions, pg_temp
    as $b$
    begin
      if p_run_id is not null and not exists (select from public.agent_runs r where r.run_id = p_run_id) then
        raise sqlstate 'RL404' using
          message = format('There is no agent run %s.', left(p_run_id, 200)),
          hint = 'Insert the run into agent_runs before it remembers something, or leave the run out.';
      end if;
    end
    $b$;
  end if;
  return jsonb_build_object('organizations', v_orgs::text, 'agent_runs', v_runs::text, 'changed', v_changed);
end
$$;

comment on function long_term_memory.use_host_tables() is
  'Refers to the host''s organizations and agent runs where they are there now, else to ours. A repeat changes nothing.';

select long_term_memory.use_host_tables();

comment on function long_term_memory.org_exists(uuid) is 'Whether there is such an organization, in the table that is referred to.';
comment on function long_term_memory.note_run(text) is 'Has an agent run to refer to: ours is inserted, a host''s has to be there (RL404).';
