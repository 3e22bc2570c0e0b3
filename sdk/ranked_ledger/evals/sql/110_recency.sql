-- The newest first, whatever was asked. Far back the curve is 0, and the step decides, as it does in every tie.
create function ranked_ledger_evals.arm_recency(p_asked ranked_ledger_evals.asked)
returns table (memory_id uuid, score float8) language sql stable as $$
  select c.memory_id, ranked_ledger.recency((max(c.step_index) over () - c.step_index)::bigint, 30)
  from ranked_ledger_evals.cohort((p_asked).workspace_id) c
$$;
