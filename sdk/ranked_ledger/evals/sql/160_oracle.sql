-- Knows the answer: what no arm can be better than, and what an answer costs in tokens at the least.
create function ranked_ledger_evals.arm_oracle(p_asked ranked_ledger_evals.asked)
returns table (memory_id uuid, score float8) language sql stable as $$
  select c.memory_id, 1::float8
  from ranked_ledger_evals.cohort((p_asked).workspace_id) c
  where c.memory_id = any ((p_asked).gold)
$$;
