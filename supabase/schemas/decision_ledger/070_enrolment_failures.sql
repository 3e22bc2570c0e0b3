create table if not exists ranked_ledger.enrolment_failures (
  id           bigint primary key generated always as identity,
  memory_id    uuid,
  workspace_id text,
  operation    text not null,
  reason       text not null,
  failed_with  text not null,
  failed_at    timestamptz not null default now()
);

alter table ranked_ledger.enrolment_failures enable row level security;

create index if not exists enrolment_failures_memory_idx on ranked_ledger.enrolment_failures (memory_id);

comment on table ranked_ledger.enrolment_failures is
  'What our triggers could not do while the host''s write went through: the reason and the SQLSTATE. enroll_missing_decisions mends and clears them.';
