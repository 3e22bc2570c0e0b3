create table if not exists ranked_ledger.enrolment_failures (
  id           bigint primary key generated always as identity,
  memory_id    uuid unique,
  workspace_id text,
  stream_id    uuid,
  operation    text not null,
  reason       text not null,
  failed_with  text not null,
  is_transient boolean not null default false,
  failed_at    timestamptz not null default now()
);

alter table ranked_ledger.enrolment_failures enable row level security;

create index if not exists enrolment_failures_transient_idx on ranked_ledger.enrolment_failures (stream_id)
  where is_transient;

comment on table ranked_ledger.enrolment_failures is
  'What our triggers could not do while the host''s write went through: the last reason and SQLSTATE of a memory. The next settlement of the stream mends what only the moment refused, enroll_missing_decisions the rest.';
comment on column ranked_ledger.enrolment_failures.is_transient is
  'Only the moment refused it (a snapshot, a deadlock, a lock): the next settlement of the stream tries it once more.';
