revoke execute on all functions in schema ranked_ledger_evals from public, anon, authenticated;
grant execute on all functions in schema ranked_ledger_evals to service_role;
