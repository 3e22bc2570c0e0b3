-- The ranking, from the tables themselves. What answers a recall was always weighed here: the copies of 160 only say which
-- decisions are worth it. As of a moment too (211): lifecycle, dependents and newest step are then those of then.
select ranked_ledger.define_type('ranked_decision',
  'memory_id uuid, summary text, content text, rationale text, step_index integer, importance double precision, ' ||
  'pinned boolean, lifecycle_status text, relevance double precision, relevance_source text, recency double precision, ' ||
  'dependency_boost double precision, ranking_score double precision, project_id text, task_id text, ' ||
  'similarity double precision, text_relevance double precision, step_distance bigint, live_dependents integer, ' ||
  'summary_match double precision');

comment on type ranked_ledger.ranked_decision is 'A decision with its components and its score.';

-- Everything is looked up row by row, by one index each: cheap for a shortlist, and right for any number. Nested queries, since a
-- join was planned through all the decisions of the workspace: without statistics, 9,000 took 4 seconds.
create or replace function ranked_ledger.look_up(p_question ranked_ledger.question, p_memory_ids uuid[])
returns setof ranked_ledger.ranked_decision language plpgsql stable
set search_path = public, extensions, pg_temp
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
as $$
declare
  q           ranked_ledger.question := p_question;
  v_dimension int := vector_dims(p_question.embedding);
  v_is_past   boolean := p_question.as_of is not null;
  v_moment    ranked_ledger.moment := case when v_is_past then ranked_ledger.moment_of(p_question) end;
  v_newest    jsonb := case when v_is_past then ranked_ledger.newest_steps_then(p_question) end;
  v_weights   float8[] := p_question.term_weights;
  v_places    jsonb := ( -- of a word among the weights: a key of an object is found by halves
    select jsonb_object_agg(w.lexeme, w.place) from unnest(p_question.lexemes) with ordinality as w (lexeme, place)
    where p_question.has_text and p_question.weighs_words);
begin
  return query
  select l.memory_id, m.summary, m.content, l.rationale, l.step_index, l.importance::float8, l.pinned, m.lifecycle_status,
         null::float8, null::text, null::float8, null::float8, null::float8, l.project_id, l.task_id,
         -- a zero vector's cosine is NaN: no vector; the host's column may hold vectors of several dimensions
         case when vector_dims(t.embedding) = v_dimension then nullif(1 - (t.embedding <=> q.embedding), 'NaN') end,
         case when not q.has_text then null
              when q.weighs_words
              then ranked_ledger.text_of_shares(coalesce(w.shares, 0), coalesce(w.length, 0)::int, q.length_share)
              else ranked_ledger.saturate(ranked_ledger.rank_of_any(n.occurrences)) end,
         greatest(0, greatest(coalesce(q.current_step, 0), case when v_is_past then (v_newest ->> l.stream_id::text)::int
                                                                else newest.step end)::bigint - l.step_index),
         case when v_is_past then ranked_ledger.live_dependents_then(l.memory_id, v_moment) else d.live_dependents end,
         case when q.has_text and q.w_summary > 0
              then coalesce((select count(*) from unnest(ts_filter(l.search_lexemes, '{a}')) as x
                             where x.lexeme in (select w.lexeme from unnest(q.lexemes) as w (lexeme)))
                            / nullif(length(ts_filter(l.search_lexemes, '{a}')), 0)::float8, 0)
              else 0 end
  from unnest(p_memory_ids) as c (memory_id)
  cross join lateral (select x.* from public.agent_decision_ledger x where x.memory_id = c.memory_id offset 0) as l
  cross join lateral (
    select x.summary, x.content, x.thought_id, x.workspace_id, x.visibility, x.requires_user_confirmation,
           case when v_is_past then ranked_ledger.lifecycle_then(x.id, x.lifecycle_status, v_moment)
                else x.lifecycle_status end as lifecycle_status,
           case when v_is_past and q.only_confirmed then ranked_ledger.review_status_then(x.id, x.review_status, v_moment)
                else x.review_status end as review_status
    from public.agent_memories x where x.id = l.memory_id offset 0) as m
  left join lateral (
    select x.embedding from public.thoughts x where x.id = m.thought_id and q.embedding is not null offset 0) as t on true
  left join lateral (
    select x.step_index as step from public.agent_decision_ledger x
    where x.stream_id = l.stream_id and x.step_index <= ranked_ledger.max_step() and not v_is_past
    order by x.step_index desc limit 1) as newest on true
  cross join lateral (
    select count(*)::int as live_dependents
    from public.agent_decision_edges e
    where e.to_memory_id = l.memory_id and e.relation = 'depends_on' and not v_is_past
      and (select x.workspace_id = l.workspace_id and x.set_aside_at is null
                  and (select y.lifecycle_status = 'active' and y.workspace_id = x.workspace_id
                       from public.agent_memories y where y.id = x.memory_id)
           from public.agent_decision_ledger x where x.memory_id = e.from_memory_id)) as d
  -- words of weight A are the summary's (100)
  cross join lateral ( -- what ts_rank_cd says of a disjunction, without its 20 microseconds a word
    select sum(cardinality(x.positions)) as occurrences from unnest(ts_filter(l.search_lexemes, '{d}')) as x
    where q.has_text and not q.weighs_words and x.lexeme in (select w.lexeme from unnest(q.lexemes) as w (lexeme))) as n
  cross join lateral (
    select sum(cardinality(x.positions)) as length,
           -- most words are none of the question's, and a hash tells so sooner than a key
           sum(ranked_ledger.word_share(v_weights[(v_places -> x.lexeme)::int], cardinality(x.positions)))
             filter (where x.lexeme in (select w.lexeme from unnest(q.lexemes) as w (lexeme))) as shares
    from unnest(ts_filter(l.search_lexemes, '{d}')) as x where q.has_text and q.weighs_words) as w
  -- the workspace twice: a row that could not follow its moved memory is shown in neither
  where l.workspace_id = q.workspace_id and m.workspace_id = q.workspace_id and l.set_aside_at is null
    and (q.project_id is null or l.project_id = q.project_id) and (q.task_id is null or l.task_id = q.task_id)
    and (m.lifecycle_status = 'active' or q.with_retired
         or q.with_stale and m.lifecycle_status not in ('superseded', 'rejected'))
    and (q.with_personal or m.visibility is distinct from 'personal')
    and not (q.only_confirmed and ranked_ledger.awaits_confirmation(m.requires_user_confirmation, m.review_status));
end
$$;

comment on function ranked_ledger.look_up(ranked_ledger.question, uuid[]) is
  'The decisions among these that a question is about, each from the ledger, its memory, thought, stream and edges as they are now, or as they were at the moment of the question. What is worked out of that is null.';

create or replace function ranked_ledger.weigh(p_question ranked_ledger.question, p_memory_ids uuid[])
returns setof ranked_ledger.ranked_decision language plpgsql stable
set search_path = public, extensions, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
  q ranked_ledger.question := p_question;
begin
  -- `offset 0` keeps each component a column: merged into the score, which names it several times, each was computed
  -- ten times a row and the formula's functions were called instead of inlined
  return query
  select r.memory_id, r.summary, r.content, r.rationale, r.step_index, r.importance, r.pinned, r.lifecycle_status,
         r.relevance, r.relevance_source, r.recency, r.dependency_boost,
         ranked_ledger.score(r.relevance, r.importance, r.recency, r.dependency_boost, q.w_similarity, q.w_importance,
                             q.w_recency, q.w_dependency, r.lifecycle_status = 'active', r.summary_match, q.w_summary,
                             case when r.lifecycle_status in ('superseded', 'rejected') then 0.30 else q.penalty end),
         r.project_id, r.task_id, r.similarity, r.text_relevance, r.step_distance, r.live_dependents, r.summary_match
  from (
    select c.memory_id, c.summary, c.content, c.rationale, c.step_index, c.importance, c.pinned, c.lifecycle_status,
           c.project_id, c.task_id, c.similarity, c.text_relevance, c.step_distance, c.live_dependents, c.summary_match,
           ranked_ledger.relevance(ranked_ledger.calibrate(c.similarity, q.floor, q.ceiling), c.text_relevance,
                                   q.fusion, q.fusion_weight) as relevance,
           case when c.similarity is null then case when q.has_text then 'fts' else 'none' end
                when q.has_text and q.fusion <> 'none' then q.fusion else 'cosine' end as relevance_source,
           ranked_ledger.recency(c.step_distance, q.half_life) as recency,
           ranked_ledger.dependency(c.live_dependents, q.saturation) as dependency_boost
    from ranked_ledger.look_up(q, p_memory_ids) as c offset 0) as r
  where r.relevance >= q.min_relevance;
end
$$;

comment on function ranked_ledger.weigh(ranked_ledger.question, uuid[]) is
  'The decisions among these that a question is about, looked up, with components and score.';

create or replace function ranked_ledger.all_decisions(p_workspace_id text)
returns uuid[] language sql stable
set search_path = public, extensions, pg_temp
as $$
  select coalesce(array_agg(l.memory_id), '{}') from public.agent_decision_ledger l
  where l.workspace_id = p_workspace_id and l.set_aside_at is null
$$;

comment on function ranked_ledger.all_decisions(text) is 'Every decision of a workspace: the shortlist of a recall that trusts no copy.';
