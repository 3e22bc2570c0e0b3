create table if not exists ranked_ledger.idempotency_keys (
  workspace_id text not null,
  operation    text not null,
  key          text not null,
  digest       bytea not null,
  memory_ids   uuid[] not null default '{}',
  created_at   timestamptz not null default now(),
  primary key (workspace_id, operation, key)
);

alter table ranked_ledger.idempotency_keys enable row level security;

comment on table ranked_ledger.idempotency_keys is
  'Which request a key stood for (a digest, none of its words) and the decisions that it wrote. By workspace and operation: the host''s own idempotency_key is unique over all workspaces, so our writes leave it null.';
