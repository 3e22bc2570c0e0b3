-- Last: what was there before. Decisions without a row, by created_at, then id; then every stream's newest step.
select ranked_ledger.backfill();
