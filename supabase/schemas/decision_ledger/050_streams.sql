create table if not exists ranked_ledger.streams (
  stream_id    uuid primary key,
  workspace_id text not null,
  project_id   text,
  task_id      text,
  newest_step  int not null default -1,
  constraint streams_id_is_of_its_scope check (stream_id = ranked_ledger.stream_id(workspace_id, project_id, task_id))
);

alter table ranked_ledger.streams enable row level security;

create index if not exists streams_workspace_idx on ranked_ledger.streams (workspace_id);

comment on table ranked_ledger.streams is
  'One row a stream: the lock under which its steps are settled, and its newest settled step (derived: the greatest step of its settled rows up to 1,000,000,000; -1 where there is none).';
