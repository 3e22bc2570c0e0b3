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
