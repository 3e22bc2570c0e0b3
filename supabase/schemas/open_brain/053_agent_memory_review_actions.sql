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
