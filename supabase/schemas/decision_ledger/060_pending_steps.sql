-- The mark "not settled yet". A narrow table beside the ledger instead of a column in it: where nobody else wrote to the
-- stream the provisional step is the final one, and then the wide ledger row is written once.
create table if not exists ranked_ledger.pending_steps (
  id            bigint primary key generated always as identity,
  stream_id     uuid not null,
  memory_id     uuid,
  step_is_given boolean not null default false,
  txid          xid8 not null default pg_current_xact_id(),
  created_at    timestamptz not null default now()
);

alter table ranked_ledger.pending_steps enable row level security;

create index if not exists pending_steps_stream_idx on ranked_ledger.pending_steps (stream_id);
create index if not exists pending_steps_memory_idx on ranked_ledger.pending_steps (memory_id);
create index if not exists pending_steps_txid_idx on ranked_ledger.pending_steps (txid);

comment on table ranked_ledger.pending_steps is
  'Rows whose step is provisional, in the order of their writes, until the settlement at commit (or, after a transaction under an old snapshot, the next settlement of the stream). Without a memory: the stream lost a row, its newest step is to be found again.';
