-- Reciprocal rank fusion, as hybrid search is usually built: 50 of the vector list and 50 of the text list, 1/(60 + place). The text
-- list is that of ts_rank_cd, as guides for PostgreSQL have it, or that of BM25, which search engines have and which is stronger.
create function ranked_ledger_evals.fused(p_asked ranked_ledger_evals.asked, p_words text, p_with_retired boolean)
returns table (memory_id uuid, score float8) language sql stable as $$
  with candidate as (
    select c.memory_id, c.step_index from ranked_ledger_evals.cohort((p_asked).workspace_id) c
    where p_with_retired or not ranked_ledger_evals.is_retired(c.lifecycle_status)),
  worded as (
    select a.memory_id, a.score from ranked_ledger_evals.arm_fts_or(p_asked) a where p_words = 'fts_or'
    union all
    select a.memory_id, a.score from ranked_ledger_evals.arm_bm25(p_asked) a where p_words = 'bm25'),
  listed as (
    select a.memory_id, row_number() over (order by a.score desc, c.step_index desc, a.memory_id) as place
    from ranked_ledger_evals.arm_vector(p_asked) a join candidate c on c.memory_id = a.memory_id
    union all
    select a.memory_id, row_number() over (order by a.score desc, c.step_index desc, a.memory_id)
    from worded a join candidate c on c.memory_id = a.memory_id)
  select l.memory_id, sum(1.0 / (60 + l.place))::float8
  from listed l where l.place <= 50 group by l.memory_id
$$;

create function ranked_ledger_evals.arm_hybrid_rrf(p_asked ranked_ledger_evals.asked)
returns table (memory_id uuid, score float8) language sql stable as $$
  select f.memory_id, f.score from ranked_ledger_evals.fused(p_asked, 'fts_or', true) f
$$;

create function ranked_ledger_evals.arm_hybrid_rrf_bm25(p_asked ranked_ledger_evals.asked)
returns table (memory_id uuid, score float8) language sql stable as $$
  select f.memory_id, f.score from ranked_ledger_evals.fused(p_asked, 'bm25', true) f
$$;

-- The same for whoever keeps a lifecycle and no ranking: what is superseded or rejected is left out before the lists are cut.
create function ranked_ledger_evals.arm_hybrid_rrf_in_force(p_asked ranked_ledger_evals.asked)
returns table (memory_id uuid, score float8) language sql stable as $$
  select f.memory_id, f.score from ranked_ledger_evals.fused(p_asked, 'fts_or', false) f
$$;

create function ranked_ledger_evals.arm_hybrid_rrf_bm25_in_force(p_asked ranked_ledger_evals.asked)
returns table (memory_id uuid, score float8) language sql stable as $$
  select f.memory_id, f.score from ranked_ledger_evals.fused(p_asked, 'bm25', false) f
$$;
