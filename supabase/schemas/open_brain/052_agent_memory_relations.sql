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
