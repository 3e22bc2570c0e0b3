-- The mark "not settled yet". A narrow table beside the ledger instead of a column in it: where nobody else wrote to the
-- stream the provisional step is the final one, and then the wide ledger row is written once. A settlement finds its own
-- marks by transaction and only those left over by stream: rows that others settled stay as dead entries for as long as any
-- transaction of the server is open, and an index by stream would walk all of them.
create table if not exists ranked_ledger.pending_steps (
  id            bigint primary key generated always as identity,
  stream_id     uuid not null,
  memory_id     uuid,
  step_is_given boolean not null default false,
  is_left_over  boolean not null default current_setting('transaction_isolation') = 'serializable',
  txid          xid8 not null default pg_current_xact_id(),
  created_at    timestamptz not null default now()
);

alter table ranked_ledger.pending_steps enable row level security;

create index if not exists pending_steps_left_over_idx on ranked_ledger.pending_steps (stream_id) where is_left_over;
create index if not exists pending_steps_memory_idx on ranked_ledger.pending_steps (memory_id);
create index if not exists pending_steps_txid_idx on ranked_ledger.pending_steps (txid);

comment on table ranked_ledger.pending_steps is
  'Rows whose step is provisional, in the order of their writes, until the settlement at commit. Without a memory: the stream lost a row, its newest step is to be found again.';
comment on column ranked_ledger.pending_steps.is_left_over is
  'Its own transaction could not settle it (an old snapshot, a lock that was not to be had): the next settlement of the stream does.';
