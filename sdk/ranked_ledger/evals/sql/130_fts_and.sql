-- Text search that requires every word of the question, as plainto_tsquery and websearch_to_tsquery do.
-- Normalisation 32, rank/(rank+1), keeps the order and gives the score a bound.
create function ranked_ledger_evals.arm_fts_and(p_asked ranked_ledger_evals.asked)
returns table (memory_id uuid, score float8) language sql stable as $$
  select c.memory_id, ts_rank_cd(c.search_lexemes, q.query, 32)::float8
  from (select plainto_tsquery(ranked_ledger.text_config((p_asked).workspace_id), (p_asked).query) as query) q
  cross join ranked_ledger_evals.cohort((p_asked).workspace_id) c
  where c.search_lexemes @@ q.query
$$;
