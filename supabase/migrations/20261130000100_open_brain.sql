-- Ranked Ledger: open brain
-- Built from supabase/schemas by supabase/build.py. Do not edit: edit the sources and run `make migrations`.
-- Runs once or many times, with the same result; changes no table that it did not create.

-- For this transaction only: a `set` would stay behind in a pooled session. pgvector is in one of the two.
select set_config('search_path', 'public, extensions, pg_temp', true);

-- Two pushes at once take turns; the second one finds everything done.
select pg_advisory_xact_lock(hashtextextended('ranked_ledger: migration', 0));

-- open_brain/000_preflight.sql --------------------------------------------------------------------------------------

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

-- open_brain/005_updated_at.sql -------------------------------------------------------------------------------------

-- One trigger function keeps updated_at of the tables that we create here. It is created only when one of them will be,
-- so that a host with an install of its own gets nothing.
do $do$
begin
  if to_regprocedure('public.open_brain_set_updated_at()') is not null
     or (to_regclass('public.thoughts') is not null and to_regclass('public.agent_memories') is not null) then
    return;
  end if;

  create function public.open_brain_set_updated_at() returns trigger
  language plpgsql
  set search_path = public, extensions, pg_temp
  as $fn$
  begin
    new.updated_at := now();
    return new;
  end
  $fn$;

  comment on function public.open_brain_set_updated_at() is
    'Trigger function: an update refreshes updated_at, whatever the writer sent.';
  revoke all on function public.open_brain_set_updated_at() from public, anon, authenticated, service_role;
end
$do$;

-- open_brain/010_thoughts.sql ---------------------------------------------------------------------------------------

-- What people and agents wrote down, with its vector. A host's own table is left as it is, whatever its dimension.
do $do$
begin
  if to_regclass('public.thoughts') is not null then
    return;
  end if;

  create table public.thoughts (
    id uuid primary key default gen_random_uuid(),
    content text not null,
    embedding vector(1536),
    metadata jsonb default '{}'::jsonb,
    content_fingerprint text,
    created_at timestamptz default now(),
    updated_at timestamptz default now()
  );
  alter table public.thoughts enable row level security;
  revoke all on table public.thoughts from public, anon, authenticated, service_role;
  grant select, insert, update, delete on table public.thoughts to service_role;

  create policy thoughts_all_service_role on public.thoughts
    for all to service_role using (true) with check (true);
  comment on policy thoughts_all_service_role on public.thoughts is
    'Only the service role reads and writes thoughts.';

  create index thoughts_embedding_idx on public.thoughts using hnsw (embedding vector_cosine_ops);
  create index thoughts_metadata_idx on public.thoughts using gin (metadata);
  create index thoughts_created_at_idx on public.thoughts (created_at desc);
  create unique index thoughts_content_fingerprint_idx on public.thoughts (content_fingerprint)
    where content_fingerprint is not null;

  create trigger thoughts_set_updated_at before update on public.thoughts
    for each row execute function public.open_brain_set_updated_at();

  comment on table public.thoughts is 'Open Brain: one thought a row, with its text, its vector and free metadata.';
  comment on column public.thoughts.content_fingerprint is
    'Hex sha256 of the folded text, written by upsert_thought: the same text is stored once.';
end
$do$;

-- open_brain/020_upsert_thought.sql ---------------------------------------------------------------------------------

-- Stores a text once. It is ours only where the host has no function of that name, whatever its arguments: a second
-- overload would make every call through the API ambiguous.
do $do$
begin
  if exists (select from pg_catalog.pg_proc
             where pronamespace = 'public'::regnamespace and proname = 'upsert_thought') then
    return;
  end if;

  create function public.upsert_thought(p_content text, p_payload jsonb default '{}'::jsonb) returns jsonb
  language plpgsql
  set search_path = public, extensions, pg_temp
  as $fn$
  declare
    v_folded text := lower(btrim(regexp_replace(p_content, '\s+', ' ', 'g')));
    v_fingerprint text := encode(sha256(convert_to(v_folded, 'UTF8')), 'hex');
    v_metadata jsonb := case when jsonb_typeof(p_payload -> 'metadata') = 'object'
                             then p_payload -> 'metadata' else '{}'::jsonb end;
    v_has_fingerprint boolean := exists (
      select from pg_catalog.pg_attribute
      where attrelid = 'public.thoughts'::regclass and attname = 'content_fingerprint' and not attisdropped);
    v_id uuid;
  begin
    -- Not every install has the unique index, so writers of one text take turns on a lock instead.
    perform pg_advisory_xact_lock(hashtextextended(v_fingerprint, 0));

    if not v_has_fingerprint then
      -- An old install: nothing is indexed, the texts themselves are compared. Each statement of PL/pgSQL is planned
      -- only when it is reached, so the branch below may name a column that is not there.
      select t.id into v_id from public.thoughts t
      where lower(btrim(regexp_replace(t.content, '\s+', ' ', 'g'))) = v_folded
      order by t.created_at, t.id limit 1;
      if v_id is null then
        insert into public.thoughts (content, metadata) values (p_content, v_metadata) returning id into v_id;
        return jsonb_build_object('id', v_id, 'fingerprint', v_fingerprint);
      end if;
    else
      select t.id into v_id from public.thoughts t
      where t.content_fingerprint = v_fingerprint
      order by t.created_at, t.id limit 1;
      if v_id is null then
        begin
          insert into public.thoughts (content, metadata, content_fingerprint)
          values (p_content, v_metadata, v_fingerprint) returning id into v_id;
          return jsonb_build_object('id', v_id, 'fingerprint', v_fingerprint);
        exception when unique_violation then
          -- A writer that does not come through this function was faster. Another unique rule of the host's: raise.
          select t.id into v_id from public.thoughts t where t.content_fingerprint = v_fingerprint;
          if v_id is null then
            raise;
          end if;
        end;
      end if;
    end if;

    update public.thoughts t set metadata = coalesce(t.metadata, '{}'::jsonb) || v_metadata where t.id = v_id;
    return jsonb_build_object('id', v_id, 'fingerprint', v_fingerprint);
  end
  $fn$;

  comment on function public.upsert_thought(text, jsonb) is
    'Stores a text once and answers {id, fingerprint}. A repeat merges the metadata of p_payload into the row.';
  revoke all on function public.upsert_thought(text, jsonb) from public, anon, authenticated, service_role;
  grant execute on function public.upsert_thought(text, jsonb) to service_role;
end
$do$;

-- open_brain/030_match_thoughts.sql ---------------------------------------------------------------------------------

-- Vector search over thoughts. Ours only where the host has no function of that name.
do $do$
begin
  if exists (select from pg_catalog.pg_proc
             where pronamespace = 'public'::regnamespace and proname = 'match_thoughts') then
    return;
  end if;

  create function public.match_thoughts(
    query_embedding vector,
    match_threshold double precision default 0.7,
    match_count integer default 10,
    filter jsonb default '{}'::jsonb
  ) returns table (id uuid, content text, metadata jsonb, similarity double precision, created_at timestamptz)
  language sql stable
  set search_path = public, extensions, pg_temp
  as $fn$
    -- Ordered by the bare distance, which is the only form that an HNSW index answers. The threshold refuses NaN too
    -- (a zero vector): PostgreSQL sorts NaN above every number.
    select t.id, t.content, t.metadata, 1 - (t.embedding <=> query_embedding), t.created_at
    from public.thoughts t
    where t.embedding is not null
      and 1 - (t.embedding <=> query_embedding) between match_threshold and 1.000001
      and (filter is null or filter = '{}'::jsonb or t.metadata @> filter)
    order by t.embedding <=> query_embedding
    limit coalesce(match_count, 10)
  $fn$;

  comment on function public.match_thoughts(vector, double precision, integer, jsonb) is
    'The thoughts nearest to a vector, best first: those at or above the threshold whose metadata contain the filter.';
  revoke all on function public.match_thoughts(vector, double precision, integer, jsonb)
    from public, anon, authenticated, service_role;
  grant execute on function public.match_thoughts(vector, double precision, integer, jsonb) to service_role;
end
$do$;

-- open_brain/040_agent_memories.sql ---------------------------------------------------------------------------------

-- What agents keep: one memory a row, with where it belongs, where it comes from and how far it may be used.
do $do$
begin
  if to_regclass('public.agent_memories') is not null then
    return;
  end if;

  create table public.agent_memories (
    id uuid primary key default gen_random_uuid(),
    thought_id uuid references public.thoughts (id) on delete set null,
    workspace_id text not null,
    project_id text,
    channel_kind text,
    channel_id text,
    channel_thread_id text,
    visibility text not null default 'project',
    memory_type text not null,
    summary text not null,
    content text not null,
    lifecycle_status text not null default 'active',
    provenance_status text not null default 'generated',
    confidence numeric(3, 2) not null default 0.50,
    created_by text not null default 'agent',
    runtime_name text,
    runtime_version text,
    provider text,
    model text,
    task_id text,
    flow_id text,
    can_use_as_instruction boolean not null default false,
    can_use_as_evidence boolean not null default true,
    requires_user_confirmation boolean not null default true,
    review_status text not null default 'pending',
    last_confirmed_at timestamptz,
    stale_after timestamptz,
    idempotency_key text,
    content_hash text,
    metadata jsonb default '{}'::jsonb,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    constraint agent_memories_visibility_known check (
      visibility in ('personal', 'channel', 'project', 'workspace', 'organization')),
    constraint agent_memories_memory_type_known check (
      memory_type in ('decision', 'output', 'lesson', 'constraint', 'open_question', 'failure',
                      'artifact_reference', 'work_log')),
    constraint agent_memories_lifecycle_status_known check (
      lifecycle_status in ('active', 'stale', 'superseded', 'disputed', 'rejected')),
    constraint agent_memories_provenance_status_known check (
      provenance_status in ('observed', 'inferred', 'user_confirmed', 'imported', 'generated', 'superseded',
                            'disputed')),
    constraint agent_memories_confidence_in_unit_range check (confidence between 0 and 1),
    constraint agent_memories_created_by_known check (created_by in ('user', 'agent', 'system', 'import')),
    constraint agent_memories_review_status_known check (
      review_status in ('pending', 'confirmed', 'evidence_only', 'restricted', 'rejected', 'stale', 'merged')),
    constraint agent_memories_instruction_needs_a_person check (
      not can_use_as_instruction or provenance_status in ('user_confirmed', 'imported'))
  );
  alter table public.agent_memories enable row level security;
  revoke all on table public.agent_memories from public, anon, authenticated, service_role;
  grant select, insert, update, delete on table public.agent_memories to service_role;

  create policy agent_memories_all_service_role on public.agent_memories
    for all to service_role using (true) with check (true);
  comment on policy agent_memories_all_service_role on public.agent_memories is
    'Only the service role reads and writes memories.';

  create index agent_memories_thought_id_idx on public.agent_memories (thought_id);
  create index agent_memories_workspace_id_project_id_idx
    on public.agent_memories (workspace_id, project_id, created_at desc);
  create unique index agent_memories_idempotency_key_idx on public.agent_memories (idempotency_key)
    where idempotency_key is not null;

  create trigger agent_memories_set_updated_at before update on public.agent_memories
    for each row execute function public.open_brain_set_updated_at();

  comment on table public.agent_memories is
    'Open Brain: what agents keep. lifecycle_status is the state in force of a decision.';
end
$do$;

-- open_brain/050_agent_memory_source_refs.sql -----------------------------------------------------------------------

-- Where a memory comes from.
do $do$
begin
  if to_regclass('public.agent_memory_source_refs') is not null then
    return;
  end if;

  create table public.agent_memory_source_refs (
    id uuid primary key default gen_random_uuid(),
    memory_id uuid not null references public.agent_memories (id) on delete cascade,
    source_kind text not null,
    uri text,
    title text,
    source_timestamp timestamptz,
    metadata jsonb default '{}'::jsonb,
    created_at timestamptz not null default now()
  );
  alter table public.agent_memory_source_refs enable row level security;
  revoke all on table public.agent_memory_source_refs from public, anon, authenticated, service_role;
  grant select, insert, update, delete on table public.agent_memory_source_refs to service_role;

  create policy agent_memory_source_refs_all_service_role on public.agent_memory_source_refs
    for all to service_role using (true) with check (true);
  comment on policy agent_memory_source_refs_all_service_role on public.agent_memory_source_refs is
    'Only the service role reads and writes source references.';

  create index agent_memory_source_refs_memory_id_idx on public.agent_memory_source_refs (memory_id);

  comment on table public.agent_memory_source_refs is
    'Open Brain: the sources that a memory rests on.';
end
$do$;

-- open_brain/051_agent_memory_artifacts.sql -------------------------------------------------------------------------

-- What a memory produced or is about: files, links, builds.
do $do$
begin
  if to_regclass('public.agent_memory_artifacts') is not null then
    return;
  end if;

  create table public.agent_memory_artifacts (
    id uuid primary key default gen_random_uuid(),
    memory_id uuid not null references public.agent_memories (id) on delete cascade,
    artifact_kind text not null,
    uri text,
    description text,
    metadata jsonb default '{}'::jsonb,
    created_at timestamptz not null default now()
  );
  alter table public.agent_memory_artifacts enable row level security;
  revoke all on table public.agent_memory_artifacts from public, anon, authenticated, service_role;
  grant select, insert, update, delete on table public.agent_memory_artifacts to service_role;

  create policy agent_memory_artifacts_all_service_role on public.agent_memory_artifacts
    for all to service_role using (true) with check (true);
  comment on policy agent_memory_artifacts_all_service_role on public.agent_memory_artifacts is
    'Only the service role reads and writes artifacts.';

  create index agent_memory_artifacts_memory_id_idx on public.agent_memory_artifacts (memory_id);

  comment on table public.agent_memory_artifacts is
    'Open Brain: the artifacts that a memory points to.';
end
$do$;

-- open_brain/052_agent_memory_relations.sql -------------------------------------------------------------------------

-- How one memory stands to another. A replaced decision is (new, old, supersedes).
do $do$
begin
  if to_regclass('public.agent_memory_relations') is not null then
    return;
  end if;

  create table public.agent_memory_relations (
    id uuid primary key default gen_random_uuid(),
    from_memory_id uuid not null references public.agent_memories (id) on delete cascade,
    to_memory_id uuid not null references public.agent_memories (id) on delete cascade,
    relation text not null,
    confidence numeric(3, 2) not null default 0.50,
    metadata jsonb default '{}'::jsonb,
    created_at timestamptz not null default now(),
    constraint agent_memory_relations_relation_known check (
      relation in ('related_to', 'supersedes', 'superseded_by', 'conflicts_with', 'merged_into')),
    constraint agent_memory_relations_confidence_in_unit_range check (confidence between 0 and 1),
    constraint agent_memory_relations_joins_two_memories check (from_memory_id <> to_memory_id),
    constraint agent_memory_relations_said_once unique (from_memory_id, to_memory_id, relation)
  );
  alter table public.agent_memory_relations enable row level security;
  revoke all on table public.agent_memory_relations from public, anon, authenticated, service_role;
  grant select, insert, update, delete on table public.agent_memory_relations to service_role;

  create policy agent_memory_relations_all_service_role on public.agent_memory_relations
    for all to service_role using (true) with check (true);
  comment on policy agent_memory_relations_all_service_role on public.agent_memory_relations is
    'Only the service role reads and writes relations.';

  create index agent_memory_relations_to_memory_id_idx on public.agent_memory_relations (to_memory_id);

  comment on table public.agent_memory_relations is
    'Open Brain: relations between two memories; each is said once.';
end
$do$;

-- open_brain/053_agent_memory_review_actions.sql --------------------------------------------------------------------

-- Who judged a memory, when, and what the judgement changed.
do $do$
begin
  if to_regclass('public.agent_memory_review_actions') is not null then
    return;
  end if;

  create table public.agent_memory_review_actions (
    id uuid primary key default gen_random_uuid(),
    memory_id uuid not null references public.agent_memories (id) on delete cascade,
    action text not null,
    actor_id text,
    actor_label text,
    notes text,
    before jsonb,
    after jsonb,
    created_at timestamptz not null default now(),
    constraint agent_memory_review_actions_action_known check (
      action in ('confirm', 'edit', 'evidence_only', 'restrict_scope', 'mark_stale', 'merge', 'reject', 'dispute',
                 'supersede'))
  );
  alter table public.agent_memory_review_actions enable row level security;
  revoke all on table public.agent_memory_review_actions from public, anon, authenticated, service_role;
  grant select, insert, update, delete on table public.agent_memory_review_actions to service_role;

  create policy agent_memory_review_actions_all_service_role on public.agent_memory_review_actions
    for all to service_role using (true) with check (true);
  comment on policy agent_memory_review_actions_all_service_role on public.agent_memory_review_actions is
    'Only the service role reads and writes review actions.';

  create index agent_memory_review_actions_memory_id_idx on public.agent_memory_review_actions (memory_id);

  comment on table public.agent_memory_review_actions is
    'Open Brain: the review history of memories.';
end
$do$;

-- open_brain/054_agent_memory_recall_traces.sql ---------------------------------------------------------------------

-- One recall a row: what was asked, and under which policy it was answered.
do $do$
begin
  if to_regclass('public.agent_memory_recall_traces') is not null then
    return;
  end if;

  create table public.agent_memory_recall_traces (
    id uuid primary key default gen_random_uuid(),
    request_id uuid not null default gen_random_uuid(),
    workspace_id text not null,
    project_id text,
    runtime_name text,
    runtime_version text,
    task_id text,
    flow_id text,
    channel_kind text,
    channel_id text,
    query text not null,
    schema_version text not null,
    request_payload jsonb default '{}'::jsonb,
    response_policy jsonb default '{}'::jsonb,
    created_at timestamptz not null default now(),
    constraint agent_memory_recall_traces_request_id_once unique (request_id)
  );
  alter table public.agent_memory_recall_traces enable row level security;
  revoke all on table public.agent_memory_recall_traces from public, anon, authenticated, service_role;
  grant select, insert, update, delete on table public.agent_memory_recall_traces to service_role;

  create policy agent_memory_recall_traces_all_service_role on public.agent_memory_recall_traces
    for all to service_role using (true) with check (true);
  comment on policy agent_memory_recall_traces_all_service_role on public.agent_memory_recall_traces is
    'Only the service role reads and writes recall traces.';

  create index agent_memory_recall_traces_workspace_id_created_at_idx
    on public.agent_memory_recall_traces (workspace_id, created_at desc);

  comment on table public.agent_memory_recall_traces is
    'Open Brain: one recall a row, with its query and its policy.';
end
$do$;

-- open_brain/055_agent_memory_recall_items.sql ----------------------------------------------------------------------

-- Which memories a recall returned, how they were ranked, and which of them were used.
do $do$
begin
  if to_regclass('public.agent_memory_recall_items') is not null then
    return;
  end if;

  create table public.agent_memory_recall_items (
    id uuid primary key default gen_random_uuid(),
    trace_id uuid not null references public.agent_memory_recall_traces (id) on delete cascade,
    memory_id uuid not null references public.agent_memories (id) on delete cascade,
    rank integer,
    similarity numeric(5, 4),
    ranking_score numeric(7, 4),
    returned boolean not null default true,
    used boolean,
    ignored_reason text,
    use_policy_snapshot jsonb default '{}'::jsonb,
    created_at timestamptz not null default now(),
    constraint agent_memory_recall_items_once_a_trace unique (trace_id, memory_id)
  );
  alter table public.agent_memory_recall_items enable row level security;
  revoke all on table public.agent_memory_recall_items from public, anon, authenticated, service_role;
  grant select, insert, update, delete on table public.agent_memory_recall_items to service_role;

  create policy agent_memory_recall_items_all_service_role on public.agent_memory_recall_items
    for all to service_role using (true) with check (true);
  comment on policy agent_memory_recall_items_all_service_role on public.agent_memory_recall_items is
    'Only the service role reads and writes recall items.';

  create index agent_memory_recall_items_memory_id_idx on public.agent_memory_recall_items (memory_id);

  comment on table public.agent_memory_recall_items is
    'Open Brain: the memories of a recall, with rank, score and use.';
end
$do$;

-- open_brain/056_agent_memory_audit_events.sql ----------------------------------------------------------------------

-- What happened to memories, and through whom. It outlives the memory and the trace.
do $do$
begin
  if to_regclass('public.agent_memory_audit_events') is not null then
    return;
  end if;

  create table public.agent_memory_audit_events (
    id uuid primary key default gen_random_uuid(),
    event_type text not null,
    workspace_id text,
    project_id text,
    memory_id uuid references public.agent_memories (id) on delete set null,
    trace_id uuid references public.agent_memory_recall_traces (id) on delete set null,
    actor_kind text not null default 'agent',
    actor_label text,
    runtime_name text,
    task_id text,
    payload jsonb default '{}'::jsonb,
    created_at timestamptz not null default now(),
    constraint agent_memory_audit_events_event_type_known check (
      event_type in ('recall_requested', 'memory_returned', 'memory_used', 'memory_ignored', 'memory_written',
                     'memory_confirmed', 'memory_edited', 'memory_rejected', 'memory_superseded', 'memory_disputed')),
    constraint agent_memory_audit_events_actor_kind_known check (
      actor_kind in ('user', 'agent', 'system', 'import'))
  );
  alter table public.agent_memory_audit_events enable row level security;
  revoke all on table public.agent_memory_audit_events from public, anon, authenticated, service_role;
  grant select, insert, update, delete on table public.agent_memory_audit_events to service_role;

  create policy agent_memory_audit_events_all_service_role on public.agent_memory_audit_events
    for all to service_role using (true) with check (true);
  comment on policy agent_memory_audit_events_all_service_role on public.agent_memory_audit_events is
    'Only the service role reads and writes audit events.';

  create index agent_memory_audit_events_memory_id_idx on public.agent_memory_audit_events (memory_id);
  create index agent_memory_audit_events_trace_id_idx on public.agent_memory_audit_events (trace_id);
  create index agent_memory_audit_events_workspace_id_created_at_idx
    on public.agent_memory_audit_events (workspace_id, created_at desc);

  comment on table public.agent_memory_audit_events is
    'Open Brain: the audit trail; it outlives the memories and traces that it names.';
end
$do$;

-- The API learns at commit what is new.
notify pgrst, 'reload schema';
