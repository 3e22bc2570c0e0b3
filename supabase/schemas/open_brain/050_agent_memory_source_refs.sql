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
