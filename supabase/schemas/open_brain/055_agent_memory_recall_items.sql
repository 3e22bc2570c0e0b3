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
