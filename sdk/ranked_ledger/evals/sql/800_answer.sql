-- An arm's answer in the envelope of recall_decisions, with its trace, under the arm's name: what is measured of an arm of the
-- product is measured of these too. Components are the ledger's; only the score, and so the order, is the arm's.
create function ranked_ledger_evals.answer(
  p_arm text, p_workspace_id text, p_query text, p_query_embedding text, p_current_step integer, p_match_count integer,
  p_embedding_model text, p_gold uuid[], p_request_id uuid)
returns jsonb language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_question  ranked_ledger.question;
  v_arguments jsonb;
  v_asked     ranked_ledger_evals.asked;
  v_ids       uuid[];
  v_scores    float8[];
  v_packed    jsonb;
begin
  v_question := ranked_ledger_evals.question(p_workspace_id, p_query, p_query_embedding, p_current_step, p_match_count, p_embedding_model);
  v_asked := (p_workspace_id, p_query, v_question.embedding, p_embedding_model, p_current_step, p_match_count, p_gold);
  execute format(
    'select coalesce(array_agg(r.memory_id order by r.place), ''{}''), coalesce(array_agg(r.score order by r.place), ''{}'')
     from (select a.memory_id, a.score, row_number() over (order by a.score desc, l.step_index desc, a.memory_id) as place
           from ranked_ledger_evals.%I($1) a join public.agent_decision_ledger l on l.memory_id = a.memory_id) r
     where r.place <= $2', 'arm_' || p_arm)
  into v_ids, v_scores using v_asked, p_match_count;

  v_packed := ranked_ledger.pack_hits((
    select coalesce(jsonb_agg(h.document order by o.place), '[]')
    from unnest(v_ids, v_scores) with ordinality as o (memory_id, score, place)
    join ranked_ledger.weigh(v_question, v_ids) w on w.memory_id = o.memory_id
    cross join lateral ranked_ledger.hit_document(
      to_jsonb(w) || jsonb_build_object('ranking_score', o.score), o.memory_id) as h (document)), null);
  v_arguments := ranked_ledger.arguments_in_force(v_question, null, p_embedding_model)
                 || jsonb_build_object('has_embedding', p_query_embedding is not null);
  return v_packed || jsonb_build_object(
    'request_id', p_request_id, 'exact', true, 'policy', p_arm, 'arguments', v_arguments,
    'traced', ranked_ledger.write_trace(p_request_id, p_workspace_id, null, null, null, 'ranked-ledger eval', p_query, v_arguments,
                                        p_arm, v_packed));
end
$$;

-- Every decision of the workspace is asked about, retired ones too: an arm that leaves some out does so itself.
create function ranked_ledger_evals.question(
  p_workspace_id text, p_query text, p_query_embedding text, p_current_step integer, p_match_count integer, p_embedding_model text)
returns ranked_ledger.question language sql stable as $$
  select ranked_ledger.ask(
    p_workspace_id => p_workspace_id, p_query => p_query, p_query_embedding => ranked_ledger.vector_of(p_query_embedding),
    p_project_id => null, p_task_id => null, p_current_step => p_current_step, p_match_count => p_match_count,
    p_w_similarity => 0.45, p_w_importance => 0.25, p_w_recency => 0.15, p_w_dependency => 0.15, p_half_life_steps => 30,
    p_dependency_saturation => 3, p_include_superseded => true, p_only_confirmed => false, p_include_personal => true,
    p_include_stale => true, p_min_relevance => null, p_similarity_floor => null, p_similarity_ceiling => null,
    p_fusion => 'none', p_fusion_weight => 0.5, p_embedding_model => p_embedding_model, p_exact => true)
$$;
