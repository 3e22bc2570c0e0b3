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
