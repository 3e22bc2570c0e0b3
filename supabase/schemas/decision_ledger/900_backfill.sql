-- Last: what was there before. Decisions without a row, by created_at, then id; then every stream's newest step.
-- It takes a millisecond a decision, and a role's timeout is meant for requests.
select set_config('statement_timeout', '0', true);
select ranked_ledger.backfill();
