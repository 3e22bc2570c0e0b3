-- BM25 as search engines have it: k1 1.2, b 0.75, the rarity that Lucene keeps positive, each word of the question once, over the
-- words of content and rationale. The factor k1 + 1 is left out: it moves every score alike. s/(s+1) keeps the order and gives
-- the score a bound.
create function ranked_ledger_evals.arm_bm25(p_asked ranked_ledger_evals.asked)
returns table (memory_id uuid, score float8) language sql stable as $$
  with workspace as (
    select ranked_ledger.workspace_key((p_asked).workspace_id) as key, ranked_ledger.text_config((p_asked).workspace_id) as config),
  document as materialized (
    select s.memory_id, s.row_no, s.text_length::float8 as length,
           count(*) over () as documents, avg(s.text_length::float8) over () as usual_length
    from ranked_ledger_evals.cohort((p_asked).workspace_id) c join ranked_ledger.standings s on s.memory_id = c.memory_id),
  found as ( -- a word of the summary alone is in the postings too
    select p.term, p.occurrences, d.memory_id, d.length, d.documents, d.usual_length, count(*) over (partition by p.term) as holders
    from workspace w
    cross join lateral unnest(to_tsvector(w.config, (p_asked).query)) as x
    join ranked_ledger.postings p on p.term = ranked_ledger.term_of(w.key, x.lexeme) and p.occurrences > 0
    join document d on d.row_no = p.row_no),
  scored as (
    select f.memory_id, -- in one order: a sum of floats is not the same in every order
           sum(ln(1 + (f.documents - f.holders + 0.5) / (f.holders + 0.5)::float8) * f.occurrences
               / (f.occurrences + 1.2::float8 * (1 - 0.75 + 0.75 * f.length / f.usual_length)) order by f.term) as score
    from found f group by f.memory_id)
  select s.memory_id, s.score / (s.score + 1) from scored s
$$;

-- How rare a word is is counted in all decisions, as an index does that is asked with a filter.
create function ranked_ledger_evals.arm_bm25_in_force(p_asked ranked_ledger_evals.asked)
returns table (memory_id uuid, score float8) language sql stable as $$
  select a.memory_id, a.score
  from ranked_ledger_evals.arm_bm25(p_asked) a
  join ranked_ledger_evals.cohort((p_asked).workspace_id) c on c.memory_id = a.memory_id
  where not ranked_ledger_evals.is_retired(c.lifecycle_status)
$$;
