-- The tuned preset without a part of its text relevance, which no argument of a recall can leave out: the question is asked as the
-- preset asks it, one part of it is changed, and the product ranks.
create function ranked_ledger_evals.tuned(p_asked ranked_ledger_evals.asked)
returns ranked_ledger.question language sql stable as $$
  select ranked_ledger.ask(
    p_workspace_id => (p_asked).workspace_id, p_query => (p_asked).query, p_query_embedding => (p_asked).embedding,
    p_project_id => null, p_task_id => null, p_current_step => (p_asked).current_step, p_match_count => (p_asked).match_count,
    p_w_similarity => null, p_w_importance => null, p_w_recency => null, p_w_dependency => null, p_half_life_steps => null,
    p_dependency_saturation => null, p_include_superseded => null, p_only_confirmed => null, p_include_personal => null,
    p_include_stale => null, p_min_relevance => null, p_similarity_floor => null, p_similarity_ceiling => null,
    p_fusion => null, p_fusion_weight => null, p_embedding_model => (p_asked).embedding_model, p_exact => true, p_preset => 'tuned')
$$;

-- Every word weighs as much as the words of the question that are there at all weigh on average.
create function ranked_ledger_evals.arm_tuned_without_rarity(p_asked ranked_ledger_evals.asked)
returns table (memory_id uuid, score float8) language plpgsql stable as $$
declare
  v_question ranked_ledger.question := ranked_ledger_evals.tuned(p_asked);
begin
  v_question.term_weights := array_fill(
    coalesce((select avg(x.weight) from unnest(v_question.term_weights) as x (weight) where x.weight > 0), 0),
    array[cardinality(v_question.term_weights)]);
  return query
  select d.memory_id, d.ranking_score from unnest((ranked_ledger.rank(v_question)).decisions) d;
end
$$;

create function ranked_ledger_evals.arm_tuned_without_length(p_asked ranked_ledger_evals.asked)
returns table (memory_id uuid, score float8) language plpgsql stable as $$
declare
  v_question ranked_ledger.question := ranked_ledger_evals.tuned(p_asked);
begin
  v_question.length_share := 0;
  return query
  select d.memory_id, d.ranking_score from unnest((ranked_ledger.rank(v_question)).decisions) d;
end
$$;
