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
