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
