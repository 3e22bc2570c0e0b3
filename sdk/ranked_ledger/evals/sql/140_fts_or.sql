-- Text search for any word of the question, by ts_rank_cd.
create function ranked_ledger_evals.any_word(p_workspace_id text, p_query text)
returns tsquery language sql stable as $$
  select coalesce(string_agg(quote_literal(w.lexeme), ' | '), '')::tsquery
  from unnest(to_tsvector(ranked_ledger.text_config(p_workspace_id), p_query)) as w (lexeme)
$$;

create function ranked_ledger_evals.arm_fts_or(p_asked ranked_ledger_evals.asked)
returns table (memory_id uuid, score float8) language sql stable as $$
  select c.memory_id, ts_rank_cd(c.search_lexemes, q.query, 32)::float8
  from (select ranked_ledger_evals.any_word((p_asked).workspace_id, (p_asked).query) as query) q
  cross join ranked_ledger_evals.cohort((p_asked).workspace_id) c
  where c.search_lexemes @@ q.query
$$;

-- How many decisions have any word of the question, and how many of them are not retired.
create function ranked_ledger_evals.matches(p_workspace_id text, p_query text, out matches integer, out in_force integer)
language sql stable as $$
  select count(*)::int, (count(*) filter (where not ranked_ledger_evals.is_retired(c.lifecycle_status)))::int
  from ranked_ledger_evals.cohort(p_workspace_id) c
  where c.search_lexemes @@ ranked_ledger_evals.any_word(p_workspace_id, p_query)
$$;
