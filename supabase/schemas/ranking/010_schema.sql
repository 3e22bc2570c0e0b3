-- The internals of Ranked Ledger. PostgREST does not expose this schema; the RPCs in public are the only way in.
create schema if not exists ranked_ledger;

comment on schema ranked_ledger is
  'Internals of Ranked Ledger: the ranking formula, streams, settlement of steps, idempotency keys. Not exposed by PostgREST.';

revoke all on schema ranked_ledger from public, anon, authenticated;
grant usage on schema ranked_ledger to service_role;
