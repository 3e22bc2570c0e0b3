-- The tuned preset on a stream whose steps mean nothing: each decision has the distance of another one, by a fixed shuffle. What it
-- loses is what the order of decisions is worth, beyond having something there that is called recency.
create function ranked_ledger_evals.arm_step_shuffled(p_asked ranked_ledger_evals.asked)
returns table (memory_id uuid, score float8) language sql stable as $$
  with ranked as (
    select m.memory_id, m.ranking_score, m.step_distance,
           row_number() over (order by m.memory_id) as place,
           row_number() over (order by md5(m.memory_id::text), m.memory_id) as drawn
    from public.match_decision_ledger(
      p_workspace_id => (p_asked).workspace_id, p_query => (p_asked).query, p_query_embedding => (p_asked).embedding,
      p_current_step => (p_asked).current_step, p_match_count => ranked_ledger.max_matches(), p_w_recency => 0,
      p_embedding_model => (p_asked).embedding_model, p_preset => 'tuned') m)
  select r.memory_id, r.ranking_score + s.w_recency * ranked_ledger.recency(o.step_distance, s.half_life)
  from ranked r
  join ranked o on o.place = r.drawn
  cross join ranked_ledger.preset('tuned') s
$$;
