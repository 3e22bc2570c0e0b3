-- A host's own Open Brain install, as a person who followed a guide has it: other names than ours for everything that
-- the contract leaves open. $dimension and the blocks in <<...>> are filled in by tests/rig/hosts.py.

create table public.thoughts (
  id uuid primary key default gen_random_uuid(),
  content text not null,
  embedding vector($dimension),
  metadata jsonb default '{}',
  created_at timestamptz default now(),
  updated_at timestamptz default now()<<fingerprint_column>>
);

create function public.refresh_updated_at() returns trigger language plpgsql as $$
begin
  new.updated_at = now();
  return new;
end $$;

create trigger thoughts_refresh before update on public.thoughts
  for each row execute function public.refresh_updated_at();
<<vector_index>>
create index thoughts_by_metadata on public.thoughts using gin (metadata);
create index thoughts_by_time on public.thoughts (created_at desc);
<<fingerprint_index>>
alter table public.thoughts enable row level security;
create policy "service role only" on public.thoughts
  for all using (auth.role() = 'service_role') with check (auth.role() = 'service_role');
grant select, insert, update, delete on public.thoughts to service_role;

create function public.match_thoughts(
  query_embedding vector($dimension), match_threshold float default 0.5, match_count int default 20,
  filter jsonb default '{}'
) returns table (id uuid, content text, metadata jsonb, similarity float, created_at timestamptz)
language plpgsql as $$
begin
  return query
  select t.id, t.content, t.metadata, 1 - (t.embedding <=> query_embedding), t.created_at
  from thoughts t
  where 1 - (t.embedding <=> query_embedding) > match_threshold and t.metadata @> filter
  order by t.embedding <=> query_embedding
  limit match_count;
end $$;
grant execute on function public.match_thoughts to service_role;

create table public.agent_memories (
  id uuid primary key default gen_random_uuid(),
  thought_id uuid references public.thoughts on delete set null,
  workspace_id text not null,
  project_id text,
  channel_kind text,
  channel_id text,
  channel_thread_id text,
  visibility text not null default 'project'
    check (visibility in ('personal', 'channel', 'project', 'workspace', 'organization')),
  memory_type text not null check (memory_type in ('decision', 'output', 'lesson', 'constraint', 'open_question',
    'failure', 'artifact_reference', 'work_log')),
  summary text not null,
  content text not null,
  lifecycle_status text not null default 'active'
    check (lifecycle_status in ('active', 'stale', 'superseded', 'disputed', 'rejected')),
  provenance_status text not null default 'generated' check (provenance_status in ('observed', 'inferred',
    'user_confirmed', 'imported', 'generated', 'superseded', 'disputed')),
  confidence numeric(3, 2) default 0.50 check (confidence >= 0 and confidence <= 1),
  created_by text not null default 'agent' check (created_by in ('user', 'agent', 'system', 'import')),
  runtime_name text,
  runtime_version text,
  provider text,
  model text,
  task_id text,
  flow_id text,
  can_use_as_instruction boolean not null default false,
  can_use_as_evidence boolean not null default true,
  requires_user_confirmation boolean not null default true,
  review_status text not null default 'pending' check (review_status in ('pending', 'confirmed', 'evidence_only',
    'restricted', 'rejected', 'stale', 'merged')),
  last_confirmed_at timestamptz,
  stale_after timestamptz,
  idempotency_key text,
  content_hash text,
  metadata jsonb not null default '{}',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  check (can_use_as_instruction = false or provenance_status in ('user_confirmed', 'imported'))
);
create unique index memories_by_key on public.agent_memories (idempotency_key) where idempotency_key is not null;
create index memories_by_scope on public.agent_memories (workspace_id, project_id, lifecycle_status);
create trigger memories_refresh before update on public.agent_memories
  for each row execute function public.refresh_updated_at();

create table public.agent_memory_source_refs (
  id uuid primary key default gen_random_uuid(),
  memory_id uuid not null references public.agent_memories on delete cascade,
  source_kind text not null, uri text, title text, source_timestamp timestamptz,
  metadata jsonb not null default '{}', created_at timestamptz not null default now()
);
create table public.agent_memory_artifacts (
  id uuid primary key default gen_random_uuid(),
  memory_id uuid not null references public.agent_memories on delete cascade,
  artifact_kind text not null, uri text, description text,
  metadata jsonb not null default '{}', created_at timestamptz not null default now()
);
create table public.agent_memory_relations (
  id uuid primary key default gen_random_uuid(),
  from_memory_id uuid not null references public.agent_memories on delete cascade,
  to_memory_id uuid not null references public.agent_memories on delete cascade,
  relation text not null
    check (relation in ('related_to', 'supersedes', 'superseded_by', 'conflicts_with', 'merged_into')),
  confidence numeric(3, 2) not null default 0.50,
  metadata jsonb not null default '{}', created_at timestamptz not null default now(),
  unique (from_memory_id, to_memory_id, relation), check (from_memory_id <> to_memory_id)
);
create table public.agent_memory_review_actions (
  id uuid primary key default gen_random_uuid(),
  memory_id uuid not null references public.agent_memories on delete cascade,
  action text not null check (action in ('confirm', 'edit', 'evidence_only', 'restrict_scope', 'mark_stale', 'merge',
    'reject', 'dispute', 'supersede')),
  actor_id text, actor_label text, notes text, before jsonb, after jsonb,
  created_at timestamptz not null default now()
);
create table public.agent_memory_recall_traces (
  id uuid primary key default gen_random_uuid(),
  request_id uuid not null unique default gen_random_uuid(),
  workspace_id text not null, project_id text, runtime_name text, runtime_version text, task_id text, flow_id text,
  channel_kind text, channel_id text, query text not null, schema_version text not null,
  request_payload jsonb not null default '{}', response_policy jsonb not null default '{}',
  created_at timestamptz not null default now()
);
create table public.agent_memory_recall_items (
  id uuid primary key default gen_random_uuid(),
  trace_id uuid not null references public.agent_memory_recall_traces on delete cascade,
  memory_id uuid not null references public.agent_memories on delete cascade,
  rank int not null, similarity numeric(5, 4), ranking_score numeric(7, 4), returned boolean not null default true,
  used boolean, ignored_reason text, use_policy_snapshot jsonb not null default '{}',
  created_at timestamptz not null default now(), unique (trace_id, memory_id)
);
create table public.agent_memory_audit_events (
  id uuid primary key default gen_random_uuid(),
  event_type text not null check (event_type in ('recall_requested', 'memory_returned', 'memory_used',
    'memory_ignored', 'memory_written', 'memory_confirmed', 'memory_edited', 'memory_rejected', 'memory_superseded',
    'memory_disputed')),
  workspace_id text, project_id text,
  memory_id uuid references public.agent_memories on delete set null,
  trace_id uuid references public.agent_memory_recall_traces on delete set null,
  actor_kind text not null default 'agent' check (actor_kind in ('user', 'agent', 'system', 'import')),
  actor_label text, runtime_name text, task_id text,
  payload jsonb not null default '{}', created_at timestamptz not null default now()
);

do $$
declare
  v_table text;
begin
  foreach v_table in array array['agent_memories', 'agent_memory_source_refs', 'agent_memory_artifacts',
    'agent_memory_relations', 'agent_memory_review_actions', 'agent_memory_recall_traces',
    'agent_memory_recall_items', 'agent_memory_audit_events']
  loop
    execute format('alter table public.%I enable row level security', v_table);
    execute format('create policy "service role only" on public.%I for all using (auth.role() = ''service_role'')
      with check (auth.role() = ''service_role'')', v_table);
    execute format('grant select, insert, update, delete on public.%I to service_role', v_table);
  end loop;
end $$;
<<upsert_thought>>
-- Things that were kept before we came. The ids are readable, because tests name them.
insert into public.thoughts (id, content, embedding)
select ('00000000-0000-4000-8000-' || lpad(i::text, 12, '0'))::uuid, 'Thought number ' || i,
  (select array_agg(sin(i * 0.7 + d * 0.013))::real[] from generate_series(1, $dimension) d)::vector
from generate_series(1, 6) i;

insert into public.agent_memories
  (id, thought_id, workspace_id, project_id, task_id, memory_type, summary, content, lifecycle_status, confidence,
   metadata, created_at)
values
  ('10000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000001', 'acme', 'billing', 'invoicing',
   'decision', 'Invoices are immutable', 'Invoices are immutable once they were sent', 'active', 0.90,
   '{"rationale": "auditors compare them"}', '2026-01-01 10:00+00'),
  ('10000000-0000-4000-8000-000000000002', '00000000-0000-4000-8000-000000000002', 'acme', 'billing', 'invoicing',
   'decision', 'Amounts are integers', 'Amounts are kept as integers of the smallest unit', 'active', 0.70,
   '{"agent_memory": {"step_index": 7}}', '2026-01-01 11:00+00'),
  ('10000000-0000-4000-8000-000000000003', '00000000-0000-4000-8000-000000000003', 'acme', 'billing', 'invoicing',
   'decision', 'Rounding is half even', 'Round half to even, once, at the end', 'superseded', 0.40,
   '{"step_index": "seven"}', '2026-01-01 12:00+00'),
  ('10000000-0000-4000-8000-000000000004', null, 'acme', 'billing', null,
   'decision', 'Use one currency', 'Every ledger has one currency', 'active', null,
   '{"step_index": -4}', '2026-01-01 13:00+00'),
  ('10000000-0000-4000-8000-000000000005', '00000000-0000-4000-8000-000000000004', 'acme', null, null,
   'lesson', 'Read the logs first', 'The logs said it all along', 'active', 0.50, '{}', '2026-01-01 14:00+00'),
  ('10000000-0000-4000-8000-000000000006', '00000000-0000-4000-8000-000000000005', 'globex', 'web', 'login',
   'decision', 'Sessions last a day', 'A session lasts one day', 'disputed', 1.00, '{}', '2026-01-02 10:00+00');

insert into public.agent_memory_recall_traces (request_id, workspace_id, query, schema_version, response_policy)
values ('20000000-0000-4000-8000-000000000001', 'acme', 'may an invoice change?', '1', '{"max_items": 10}');
insert into public.agent_memory_recall_items (trace_id, memory_id, rank, similarity, ranking_score, used)
select id, '10000000-0000-4000-8000-000000000001', 1, 0.8123, 0.7000, true from public.agent_memory_recall_traces;
