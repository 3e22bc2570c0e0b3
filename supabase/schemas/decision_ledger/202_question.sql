-- What a recall asks, its arguments checked and with their defaults: every part of the ranking reads this one value.
-- embedding null: none, or one without a direction; no lexemes: none in the text; min_relevance 0: none
select ranked_ledger.define_type('question',
  'workspace_id text, workspace_key bigint, embedding vector, has_text boolean, ' ||
  'lexemes text[], terms bigint[], project_id text, task_id text, current_step integer, match_count integer, ' ||
  'w_similarity double precision, w_importance double precision, w_recency double precision, ' ||
  'w_dependency double precision, half_life double precision, saturation double precision, with_stale boolean, ' ||
  'with_retired boolean, with_personal boolean, only_confirmed boolean, min_relevance double precision, ' ||
  'floor double precision, ceiling double precision, fusion text, fusion_weight double precision, exact boolean, ' ||
  'preset text, weighs_words boolean, term_weights double precision[], length_share double precision, ' ||
  'w_summary double precision, penalty double precision, ' ||
  'as_of timestamp with time zone, as_of_step integer, as_of_stream uuid');

comment on type ranked_ledger.question is 'The arguments of a ranked recall, checked, with their defaults.';

-- A moment is a time, the last one that counts. That of a step is the one before the stream went past it, for whatever has no
-- step in that stream: edges, decisions of other streams, reviews.
select ranked_ledger.define_type('moment', 'as_of timestamp with time zone, as_of_step integer, as_of_stream uuid');

comment on type ranked_ledger.moment is
  'When a recall is asked as of: the time, and for a step of one stream that step and stream too.';

-- Floor and ceiling of a question: those given, else those kept for the workspace and model, else 0 and 1.
create or replace function ranked_ledger.similarity_range(
  p_workspace_id text, p_embedding_model text, inout p_floor float8, inout p_ceiling float8)
language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
begin
  if p_floor is null and p_ceiling is null and p_embedding_model is not null then
    select r.floor, r.ceiling into p_floor, p_ceiling from ranked_ledger.similarity_ranges r
    where r.workspace_id = p_workspace_id and r.embedding_model = p_embedding_model;
  end if;
  p_floor := coalesce(p_floor, 0);
  p_ceiling := coalesce(p_ceiling, 1);
  if p_floor not between -1 and 1 or p_ceiling not between -1 and 1 or p_floor >= p_ceiling then
    raise sqlstate '22023' using
      message = format('p_similarity_floor (%s) has to be below p_similarity_ceiling (%s), both within [-1, 1]', p_floor, p_ceiling),
      hint = 'They are the cosines that count as 0 and as 1: for a model whose cosines lie between 0.75 and 0.90, these two.';
  end if;
end
$$;

comment on function ranked_ledger.similarity_range(text, text, float8, float8) is
  'The cosines that are relevance 0 and 1: as given, else as kept for (workspace, model), else 0 and 1. 22023 unless floor < ceiling within [-1, 1].';

create or replace function ranked_ledger.check_question(
  p_query text, p_fusion text, p_min_relevance float8, p_fusion_weight float8)
returns void language plpgsql immutable
set search_path = public, extensions, pg_temp
as $$
begin
  if octet_length(p_query) > 262144 then
    raise sqlstate '22023' using message = 'p_query is longer than 262,144 bytes', hint = 'Ask with fewer words.';
  elsif p_fusion not in ('none', 'max', 'blend') then
    raise sqlstate '22023' using
      message = format('p_fusion is none, max or blend; it is %s', left(p_fusion, 100)),
      hint = 'none: the cosine where there is one; max: the better of cosine and text; blend: both, by p_fusion_weight.';
  end if;
  perform ranked_ledger.check_unit('p_min_relevance', greatest(p_min_relevance, 0)),
          ranked_ledger.check_unit('p_fusion_weight', p_fusion_weight);
end
$$;

comment on function ranked_ledger.check_question(text, text, float8, float8) is
  'Refuses (22023) a text above 262,144 bytes, an unknown fusion, a relevance or weight outside [0, 1].';

do $do$
begin
  if to_regprocedure('ranked_ledger.ask(text, text, vector, text, text, int, int, float8, float8, float8, float8, float8, float8, boolean, boolean, boolean, boolean, float8, float8, float8, text, float8, text, boolean)') is not null then
    execute 'drop function ranked_ledger.ask(text, text, vector, text, text, int, int, float8, float8, float8, float8, float8, float8, boolean, boolean, boolean, boolean, float8, float8, float8, text, float8, text, boolean)';
  end if;
end
$do$;

create or replace function ranked_ledger.ask(
  p_workspace_id text, p_query text, p_query_embedding vector, p_project_id text, p_task_id text, p_current_step int,
  p_match_count int, p_w_similarity float8, p_w_importance float8, p_w_recency float8, p_w_dependency float8,
  p_half_life_steps float8, p_dependency_saturation float8, p_include_superseded boolean, p_only_confirmed boolean,
  p_include_personal boolean, p_include_stale boolean, p_min_relevance float8, p_similarity_floor float8,
  p_similarity_ceiling float8, p_fusion text, p_fusion_weight float8, p_embedding_model text, p_exact boolean,
  p_preset text default 'published', p_w_summary float8 default null)
returns ranked_ledger.question language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
declare
  v_question ranked_ledger.question;
  v_range    record;
  v_preset   record := ranked_ledger.preset(coalesce(p_preset, 'published'));
begin
  v_question.w_similarity := coalesce(p_w_similarity, v_preset.w_similarity);
  v_question.w_importance := coalesce(p_w_importance, v_preset.w_importance);
  v_question.w_recency := coalesce(p_w_recency, v_preset.w_recency);
  v_question.w_dependency := coalesce(p_w_dependency, v_preset.w_dependency);
  v_question.w_summary := coalesce(p_w_summary, v_preset.w_summary);
  perform ranked_ledger.check_weight('p_w_similarity', v_question.w_similarity),
          ranked_ledger.check_weight('p_w_importance', v_question.w_importance),
          ranked_ledger.check_weight('p_w_recency', v_question.w_recency),
          ranked_ledger.check_weight('p_w_dependency', v_question.w_dependency),
          ranked_ledger.check_weight('p_w_summary', v_question.w_summary),
          ranked_ledger.check_question(p_query, p_fusion, p_min_relevance, p_fusion_weight);
  v_range := ranked_ledger.similarity_range(p_workspace_id, p_embedding_model, p_similarity_floor, p_similarity_ceiling);
  if p_query_embedding is not null then
    perform ranked_ledger.check_dimension(vector_dims(p_query_embedding));
  end if;
  v_question.workspace_id := p_workspace_id;
  v_question.workspace_key := ranked_ledger.workspace_key(p_workspace_id);
  v_question.embedding := case when vector_norm(p_query_embedding) > 0 then p_query_embedding end;
  v_question.has_text := p_query is not null;
  v_question.lexemes := array(
    select x.lexeme from unnest(to_tsvector(ranked_ledger.text_config(p_workspace_id), p_query)) as x);
  v_question.terms := array(
    select ranked_ledger.term_of(v_question.workspace_key, x.lexeme) from unnest(v_question.lexemes) as x (lexeme));
  v_question.project_id := p_project_id;
  v_question.task_id := p_task_id;
  v_question.current_step := p_current_step;
  v_question.match_count := ranked_ledger.match_count(p_match_count);
  -- below 1e-290 a division overflows
  v_question.half_life := greatest(ranked_ledger.positive_or(p_half_life_steps, v_preset.half_life), 1e-290);
  v_question.saturation := greatest(ranked_ledger.positive_or(p_dependency_saturation, v_preset.saturation), 1e-290);
  v_question.with_stale := coalesce(p_include_stale, v_preset.with_stale);
  v_question.with_retired := coalesce(p_include_superseded, false);
  v_question.with_personal := coalesce(p_include_personal, true);
  v_question.only_confirmed := coalesce(p_only_confirmed, false);
  v_question.min_relevance := greatest(p_min_relevance, 0);
  v_question.floor := v_range.p_floor;
  v_question.ceiling := v_range.p_ceiling;
  v_question.fusion := coalesce(p_fusion, v_preset.fusion);
  v_question.fusion_weight := coalesce(p_fusion_weight, v_preset.fusion_weight);
  v_question.exact := coalesce(p_exact, true);
  v_question.preset := coalesce(p_preset, 'published');
  v_question.penalty := v_preset.penalty;
  v_question.weighs_words := v_preset.weighs_words;
  v_question.length_share := 0.1;
  if v_question.weighs_words then
    v_question.term_weights := ranked_ledger.word_weights(v_question.workspace_key, v_question.terms);
  end if;
  return v_question;
end
$$;

comment on function ranked_ledger.ask(text, text, vector, text, text, int, int, float8, float8, float8, float8, float8, float8, boolean, boolean, boolean, boolean, float8, float8, float8, text, float8, text, boolean, text, float8) is
  'The arguments of match_decision_ledger as one question: refused (22023, RL463) where they cannot be meant, else with the defaults of their preset.';
