-- Plain vector recall, as match_thoughts does it: the cosine, and nothing about the lifecycle. Every row is compared.
create function ranked_ledger_evals.arm_vector(p_asked ranked_ledger_evals.asked)
returns table (memory_id uuid, score float8) language sql stable as $$
  select c.memory_id, 1 - (t.embedding <=> (p_asked).embedding)
  from ranked_ledger_evals.cohort((p_asked).workspace_id) c
  join public.thoughts t on t.id = c.thought_id
  where t.embedding is not null
$$;

-- The same for whoever keeps a lifecycle and no ranking.
create function ranked_ledger_evals.arm_vector_in_force(p_asked ranked_ledger_evals.asked)
returns table (memory_id uuid, score float8) language sql stable as $$
  select a.memory_id, a.score
  from ranked_ledger_evals.arm_vector(p_asked) a
  join ranked_ledger_evals.cohort((p_asked).workspace_id) c on c.memory_id = a.memory_id
  where not ranked_ledger_evals.is_retired(c.lifecycle_status)
$$;
