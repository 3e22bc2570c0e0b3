-- Looks before anything is written. Every stop is RL501: what was found, and what to do. Both are in the message, because
-- `supabase db push` does not show a hint. Nothing has been created yet, so nothing stays behind.
-- The list of columns is the one of open_brain/000_preflight.sql, and a test compares the two: either migration may be the
-- first that a host meets.

-- Two products call a table agent_memories. The columns tell them apart.
do $other_product$
declare
  v_found text := 'public.agent_memories is the table of another product: it has org_id, subject_type and text, '
    'and no memory_type.';
  v_advice text := 'Ranked Ledger needs the Open Brain table of that name and never changes a table that it did not '
    'create: push to another project, or move that table into a schema of its own first.';
begin
  if (
    select count(*) filter (where attname in ('org_id', 'subject_type', 'text')) = 3
       and count(*) filter (where attname = 'memory_type') = 0
    from pg_catalog.pg_attribute
    where attrelid = to_regclass('public.agent_memories') and attnum > 0 and not attisdropped
  ) then
    raise exception using errcode = 'RL501', message = v_found || ' ' || v_advice, hint = v_advice;
  end if;
end
$other_product$;

-- The tables that the ledger stands on, and pgvector, whose type its functions take.
do $missing$
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
  elsif to_regtype(v_schema || '.halfvec') is null then
    v_found := 'The extension pgvector is older than 0.7: it has no half-precision vectors.';
    v_advice := 'Bring it up to date with `alter extension vector update`, then push again.';
  end if;

  select string_agg('public.' || wanted, ', ' order by position) into v_missing
  from unnest(array['thoughts', 'agent_memories', 'agent_memory_relations', 'agent_memory_review_actions',
                    'agent_memory_recall_traces', 'agent_memory_recall_items', 'agent_memory_audit_events'])
    with ordinality as t (wanted, position)
  where not exists (
    select from pg_catalog.pg_class c
    where c.relnamespace = 'public'::regnamespace and c.relname = wanted and c.relkind in ('r', 'p'));
  if v_missing is not null then
    v_found := format('The ledger stands on the tables of an Open Brain install, and some are missing: %s.', v_missing);
    v_advice := 'Run `ranked-ledger init --with-open-brain`, which adds the migration that creates what is absent, '
      'then push again.';
  end if;

  if v_found is not null then
    raise exception using errcode = 'RL501', message = v_found || ' ' || v_advice, hint = v_advice;
  end if;
end
$missing$;

do $host_columns$
declare
  v_wrong text;
  v_found text;
  v_advice text;
begin
  select string_agg(format('%s.%s (%s)', w.relation, w.col, w.kind), ', ' order by w.relation, w.col) into v_wrong
  from (values
    -- contract columns: begin
    ('thoughts', 'id uuid, content text, embedding vector, metadata jsonb, created_at timestamptz, updated_at timestamptz'),
    ('agent_memories', 'id uuid, thought_id uuid, workspace_id text, project_id text, task_id text, flow_id text, '
      'visibility text, memory_type text, summary text, content text, lifecycle_status text, provenance_status text, '
      'confidence numeric, created_by text, runtime_name text, requires_user_confirmation bool, review_status text, '
      'metadata jsonb, created_at timestamptz, updated_at timestamptz'),
    ('agent_memory_relations', 'id uuid, from_memory_id uuid, to_memory_id uuid, relation text, metadata jsonb'),
    ('agent_memory_review_actions', 'id uuid, memory_id uuid, action text, actor_id any, actor_label text, notes text, '
      'before jsonb, after jsonb, created_at timestamptz'),
    ('agent_memory_recall_traces', 'id uuid, request_id uuid, workspace_id text, project_id text, task_id text, '
      'flow_id text, runtime_name text, query text, schema_version any, request_payload jsonb, response_policy jsonb, '
      'created_at timestamptz'),
    ('agent_memory_recall_items', 'id uuid, trace_id uuid, memory_id uuid, rank any, similarity numeric, '
      'ranking_score numeric, returned bool, used bool, ignored_reason text, use_policy_snapshot jsonb, '
      'created_at timestamptz'),
    ('agent_memory_audit_events', 'id uuid, event_type text, workspace_id text, project_id text, memory_id uuid, '
      'trace_id uuid, actor_kind text, actor_label text, runtime_name text, task_id text, payload jsonb, '
      'created_at timestamptz')
    -- contract columns: end
  ) as wanted (relation, cols)
  join pg_catalog.pg_class c on c.relname = wanted.relation and c.relnamespace = 'public'::regnamespace
  cross join lateral (
    select wanted.relation, split_part(entry, ' ', 1) as col, split_part(entry, ' ', 2) as kind
    from unnest(string_to_array(wanted.cols, ', ')) as entry
  ) as w
  left join pg_catalog.pg_attribute a
    on a.attrelid = c.oid and a.attname = w.col and a.attnum > 0 and not a.attisdropped
  left join pg_catalog.pg_type t on t.oid = a.atttypid
  where a.attname is null or not (
    w.kind = 'any' or t.typname = w.kind or (w.kind = 'text' and t.typname in ('varchar', 'citext'))
    or (w.kind = 'numeric' and t.typname in ('float4', 'float8')) or (w.kind = 'timestamptz' and t.typname = 'timestamp'));
  if v_wrong is not null then
    v_found := format('Tables of an Open Brain install are here, but without columns that the ledger needs: %s.', v_wrong);
    v_advice := 'Ranked Ledger never changes a table that it did not create: bring the install up to date with its own '
      'migrations, then push again.';
  end if;

  if v_found is not null then
    raise exception using errcode = 'RL501', message = v_found || ' ' || v_advice, hint = v_advice;
  end if;
end
$host_columns$;

-- Triggers on agent_memories enrol, one on thoughts follows the vectors, and only a table's owner may replace a trigger later.
do $owner$
declare
  v_table text;
  v_owner text;
  v_found text;
  v_advice text;
begin
  select c.relname, pg_get_userbyid(c.relowner) into v_table, v_owner
  from pg_catalog.pg_class c
  where c.oid in ('public.agent_memories'::regclass, 'public.thoughts'::regclass)
    and not pg_has_role(current_user, c.relowner, 'USAGE')
  order by 1 limit 1;
  if v_owner is not null then
    v_found := format('public.%s belongs to the role %I, and %I may not put a trigger on it.',
      v_table, v_owner, current_user);
    v_advice := format('Push as %I, or as a role that is a member of it.', v_owner);
  end if;

  if v_found is not null then
    raise exception using errcode = 'RL501', message = v_found || ' ' || v_advice, hint = v_advice;
  end if;
end
$owner$;

-- The published proposal's function answers fewer columns than ours, so it has to be dropped, and PostgreSQL refuses that
-- while a view stands on it. (Callers by name are no such thing: they go on as they are.)
do $published_proposal$
declare
  v_dependents text;
  v_found text := 'The function match_decision_ledger of the published proposal is replaced by this migration, and these '
    'stand on it: %s.';
  v_advice text := 'Drop them, push, and create them again: their SQL needs no change.';
begin
  if to_regclass('ranked_ledger.streams') is not null then -- the schema alone may be the long-term memory's
    return;
  end if;
  select string_agg(distinct coalesce(r.ev_class::regclass::text, pg_describe_object(d.classid, d.objid, 0)), ', ')
  into v_dependents
  from pg_catalog.pg_depend d
  join pg_catalog.pg_proc p on p.oid = d.refobjid and d.refclassid = 'pg_catalog.pg_proc'::regclass
  left join pg_catalog.pg_rewrite r on r.oid = d.objid and d.classid = 'pg_catalog.pg_rewrite'::regclass
  where p.pronamespace = 'public'::regnamespace and p.proname = 'match_decision_ledger' and d.deptype = 'n';
  if v_dependents is not null then
    raise exception using errcode = 'RL501',
      message = format(v_found, v_dependents) || ' ' || v_advice, hint = v_advice;
  end if;
end
$published_proposal$;

-- All locks that this migration needs on tables that people use are taken here, all of them or none. Taken one by one
-- where they are needed, a re-run beside readers and writers ends in a deadlock (it did, six times of six). Each attempt
-- waits for less than a deadlock takes to be found, since everybody else queues up behind a lock that is waited for.
do $lock$
declare
  v_ours text;
  v_mode text := 'share row exclusive';
  v_deadline timestamptz := clock_timestamp() + interval '5 seconds';
  v_found text := 'Transactions kept public.agent_memories or the ledger busy for five seconds. Nothing was changed.';
  v_advice text := 'Push again when they are over: pg_stat_activity shows them.';
begin
  select string_agg(c.oid::regclass::text, ', ' order by c.oid) into v_ours
  from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
  where c.relkind = 'r' and (n.nspname = 'ranked_ledger'
    or (n.nspname = 'public' and c.relname in ('agent_decision_ledger', 'agent_decision_edges')));
  if exists (select from pg_catalog.pg_trigger where tgrelid = 'public.agent_memories'::regclass
             and tgname like 'trg\_agent\_decision\_ledger\_%') then
    v_mode := 'access exclusive'; -- a trigger that is there already is replaced
  end if;

  loop
    begin
      perform set_config('lock_timeout', '200ms', true);
      lock table public.thoughts in share row exclusive mode;
      execute format('lock table public.agent_memories in %s mode', v_mode);
      if v_ours is not null then
        execute format('lock table %s in access exclusive mode', v_ours);
      end if;
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
