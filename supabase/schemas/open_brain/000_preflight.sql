-- Looks before anything is written. Every stop is RL501: what was found, and what to do. Both are in the message, because
-- `supabase db push` does not show a hint. Nothing has been created yet, so nothing stays behind.

-- The platform: its roles, and pgvector where our functions will look for it.
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
  elsif to_regclass('public.thoughts') is null
      and not exists (select from pg_catalog.pg_am where amname = 'hnsw') then
    v_found := 'The extension pgvector is too old: it has no HNSW index.';
    v_advice := 'Upgrade it to 0.5.0 or later with `alter extension vector update`, then push again.';
  end if;

  select string_agg(wanted, ', ' order by wanted) into v_missing
  from unnest(array['anon', 'authenticated', 'service_role']) as wanted
  where not exists (select from pg_catalog.pg_roles where rolname = wanted);
  if v_missing is not null then
    v_found := format('This database is not a Supabase project: it has no role %s.', v_missing);
    v_advice := 'Push to a Supabase project, or to the local stack that `ranked-ledger stack up` starts.';
  end if;

  if v_found is not null then
    raise exception using errcode = 'RL501', message = v_found || ' ' || v_advice, hint = v_advice;
  end if;
end
$platform$;

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

-- What is there already must be what the contract says, as far as we read or write it: more columns, other indexes,
-- another dimension and a missing content_fingerprint are the host's own business.
do $host_tables$
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
    v_found := format('Tables of an Open Brain install are here, but without columns that they need: %s.', v_wrong);
    v_advice := 'Ranked Ledger never changes a table that it did not create: bring the install up to date with its own '
      'migrations, or, if these tables belong to something else, push to another project.';
  end if;

  select string_agg(format('public.%I', c.relname), ', ' order by c.relname) into v_wrong
  from pg_catalog.pg_class c
  where c.relnamespace = 'public'::regnamespace and c.relkind not in ('r', 'p') and c.relname = any (array[
    'thoughts', 'agent_memories', 'agent_memory_source_refs', 'agent_memory_artifacts', 'agent_memory_relations',
    'agent_memory_review_actions', 'agent_memory_recall_traces', 'agent_memory_recall_items',
    'agent_memory_audit_events']);
  if v_wrong is not null then
    v_found := format('A table of an Open Brain install is expected where something else stands: %s.', v_wrong);
    v_advice := 'Rename or move that view, sequence, index or foreign table, then push again.';
  end if;

  if v_found is not null then
    raise exception using errcode = 'RL501', message = v_found || ' ' || v_advice, hint = v_advice;
  end if;
end
$host_tables$;
