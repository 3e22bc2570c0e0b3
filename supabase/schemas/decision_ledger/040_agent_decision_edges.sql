create table if not exists public.agent_decision_edges (
  id             uuid primary key default gen_random_uuid(),
  from_memory_id uuid not null references public.agent_memories (id) on delete cascade,
  to_memory_id   uuid not null references public.agent_memories (id) on delete cascade,
  relation       text not null
                 constraint agent_decision_edges_relation_is_known check (relation in ('depends_on', 'informs', 'blocks')),
  metadata       jsonb not null default '{}',
  created_at     timestamptz not null default now(),
  unique (from_memory_id, to_memory_id, relation),
  constraint agent_decision_edges_ends_differ check (from_memory_id <> to_memory_id)
);

alter table public.agent_decision_edges enable row level security;

create index if not exists agent_decision_edges_to_idx on public.agent_decision_edges (to_memory_id, relation);

comment on table public.agent_decision_edges is
  'Ranked Ledger: what rests on what. "from depends_on to": the from decision needs the to decision. Both ends are of one workspace, depends_on has no cycle.';
