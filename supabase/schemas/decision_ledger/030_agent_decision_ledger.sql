-- One row a decision, beside the host's agent_memories. Names and columns of the published proposal first: where its
-- table is installed already, it becomes ours by the guarded additions below and keeps its rows.
create table if not exists public.agent_decision_ledger (
  id               uuid primary key default gen_random_uuid(),
  memory_id        uuid not null unique references public.agent_memories (id) on delete cascade,
  workspace_id     text not null,
  project_id       text,
  task_id          text,
  flow_id          text,
  step_index       int not null constraint agent_decision_ledger_step_is_not_negative check (step_index >= 0),
  rationale        text,
  importance       numeric(3, 2) not null default 0.50
                   constraint agent_decision_ledger_importance_in_unit_range check (importance between 0 and 1),
  pinned           boolean not null default false,
  recall_count     int not null default 0,
  used_count       int not null default 0,
  last_recalled_at timestamptz,
  metadata         jsonb not null default '{}',
  created_at       timestamptz not null default now(),
  updated_at       timestamptz not null default now()
);

alter table public.agent_decision_ledger enable row level security;

alter table public.agent_decision_ledger
  add column if not exists stream_id uuid not null
    generated always as (ranked_ledger.stream_id(workspace_id, project_id, task_id)) stored,
  add column if not exists alternatives jsonb not null default '[]',
  add column if not exists embedding_model text,
  add column if not exists set_aside_at timestamptz,
  add column if not exists search_lexemes tsvector;

do $do$
begin
  if not exists (select from pg_constraint
                 where conrelid = 'public.agent_decision_ledger'::regclass
                   and conname = 'agent_decision_ledger_alternatives_are_few_texts') then
    alter table public.agent_decision_ledger add constraint agent_decision_ledger_alternatives_are_few_texts check (
      case when jsonb_typeof(alternatives) = 'array'
           then jsonb_array_length(alternatives) <= 20
                and not jsonb_path_exists(alternatives, '$[*] ? (@.type() != "string")')
           else false end);
  end if;
end
$do$;

-- "newest step of the stream", the timeline of a task
create index if not exists agent_decision_ledger_stream_step_idx
  on public.agent_decision_ledger (stream_id, step_index desc);
create index if not exists agent_decision_ledger_workspace_step_idx
  on public.agent_decision_ledger (workspace_id, step_index desc, memory_id);

comment on table public.agent_decision_ledger is
  'Ranked Ledger: where in the work a decision stands (step in its stream), how much it matters, why. One row a memory of type decision; its lifecycle in force is agent_memories.lifecycle_status.';
comment on column public.agent_decision_ledger.step_index is
  'Position in the stream (workspace, project, task). Final at commit; provisional while ranked_ledger.pending_steps names the row.';
comment on column public.agent_decision_ledger.alternatives is 'What was rejected: a jsonb array of at most 20 texts.';
comment on column public.agent_decision_ledger.set_aside_at is 'When the memory was retyped away from decision; null: in force.';
comment on column public.agent_decision_ledger.search_lexemes is
  'Lexemes of content and rationale in the workspace''s text search configuration, kept by triggers.';
comment on column public.agent_decision_ledger.embedding_model is 'The model of the thought''s vector; null: unknown, as the host filled it.';
comment on column public.agent_decision_ledger.metadata is
  'Notes of the ledger: step_given and step_reason where a given step could not be used, moves between streams.';
