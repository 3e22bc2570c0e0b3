create table if not exists ranked_ledger.lifecycle_transitions (
  id               bigint primary key generated always as identity,
  memory_id        uuid not null references public.agent_memories (id) on delete cascade,
  lifecycle_before text not null,
  lifecycle_status text not null,
  stream_step      int,
  reason           text,
  actor            text,
  changed_at       timestamptz not null default now(),
  stream_id        uuid
);

alter table ranked_ledger.lifecycle_transitions add column if not exists stream_id uuid;
alter table ranked_ledger.lifecycle_transitions enable row level security;

create index if not exists lifecycle_transitions_memory_idx on ranked_ledger.lifecycle_transitions (memory_id, id);

comment on table ranked_ledger.lifecycle_transitions is
  'Each change of a decision''s lifecycle: from, to, its stream then and the newest step of that, the time. Derived; agent_memories.lifecycle_status is in force.';

-- No foreign key: two of the host's transactions that delete both ends of an edge would meet in a deadlock, the one with the
-- lock on the dependent's row, the other with that on the edge.
create table if not exists ranked_ledger.lost_grounds (
  memory_id      uuid not null,
  lost_memory_id uuid not null,
  relation       text not null,
  lost_at        timestamptz not null default now(),
  primary key (memory_id, lost_memory_id, relation)
);

alter table ranked_ledger.lost_grounds enable row level security;

comment on table ranked_ledger.lost_grounds is
  'Decisions that rested on one that is gone: ids and time only.';

create table if not exists ranked_ledger.forgotten_decisions (
  memory_id       uuid primary key,
  workspace_id    text not null,
  thought_deleted boolean not null,
  dependents      uuid[] not null default '{}',
  left_superseded uuid[] not null default '{}',
  forgotten_at    timestamptz not null default now()
);

alter table ranked_ledger.forgotten_decisions enable row level security;

comment on table ranked_ledger.forgotten_decisions is
  'Ids of forgotten decisions, none of their words: a repeat answers the same, a key that wrote one answers "gone".';
