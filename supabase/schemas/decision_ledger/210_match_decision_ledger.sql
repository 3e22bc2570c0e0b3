-- Ranked recall. Old signatures go first: an overload that stays makes PostgREST answer 300, and `create or replace` cannot
-- change the columns of an answer. Ours stays where it is the same, with its grants.
do $do$
declare
  v_function record;
begin
  for v_function in
    select p.oid::regprocedure as name, p.proargnames from pg_proc p
    where p.pronamespace = 'public'::regnamespace and p.proname = 'match_decision_ledger'
  loop
    if v_function.proargnames is distinct from array[
      'p_workspace_id', 'p_query', 'p_query_embedding', 'p_project_id', 'p_task_id', 'p_current_step', 'p_match_count',
      'p_w_similarity', 'p_w_importance', 'p_w_recency', 'p_w_dependency', 'p_half_life_steps', 'p_dependency_saturation',
      'p_include_superseded', 'p_only_confirmed', 'p_include_personal', 'p_include_stale', 'p_min_relevance',
      'p_similarity_floor', 'p_similarity_ceiling', 'p_fusion', 'p_fusion_weight', 'p_embedding_model', 'p_exact', 'p_preset',
      'p_w_summary', 'p_as_of_step', 'p_as_of',
      'memory_id', 'summary', 'content', 'rationale', 'step_index', 'importance', 'pinned',
      'lifecycle_status', 'relevance', 'relevance_source', 'recency', 'dependency_boost', 'ranking_score',
      'project_id', 'task_id', 'similarity', 'text_relevance', 'step_distance', 'live_dependents', 'exact', 'summary_match']
    then
      execute format('drop function %s', v_function.name);
    end if;
  end loop;
end
$do$;

-- Whether the copies can answer at all. Not of a vector whose sums leave single precision, nor where most may lag.
create or replace function ranked_ledger.can_shortlist(p_question ranked_ledger.question, p_stale uuid[])
returns boolean language sql immutable
set search_path = public, extensions, pg_temp
as $$
  select cardinality(p_stale) < 5000
     and (p_question.embedding is null or ranked_ledger.is_usual_length(vector_norm(p_question.embedding)))
$$;

comment on function ranked_ledger.can_shortlist(ranked_ledger.question, uuid[]) is
  'Whether a question can be answered by a shortlist from the copies; else every decision is weighed.';

-- The one place that ranks: match_decision_ledger and recall_decisions both ask it. The copies propose, the tables decide:
-- what is proposed is weighed, and where a weight is not the estimate, a copy lags that should not, and all is weighed.
create or replace function ranked_ledger.rank(
  p_question ranked_ledger.question, out decisions ranked_ledger.ranked_decision[], out exact boolean)
language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
declare
  v_stale uuid[] := ranked_ledger.stale_decisions(p_question.workspace_key, 5000);
  v_asked ranked_ledger.question := p_question;
  v_all   ranked_ledger.question := p_question; -- whatever its relevance: the copies are proven by all that they propose
  v_list  ranked_ledger.shortlist;
begin
  exact := true;
  v_all.min_relevance := 0;
  if p_question.w_similarity = 0 and p_question.min_relevance = 0 then -- no word and no vector counts: the copies hold the rest
    v_asked.embedding := null;
    if p_question.w_summary = 0 then
      v_asked.terms := '{}';
      v_asked.has_text := false;
    end if;
  end if;
  if p_question.as_of is null and ranked_ledger.can_shortlist(p_question, v_stale) then -- the copies hold what is, not what was
    v_list := case when v_asked.embedding is null then ranked_ledger.list_by_standing(v_asked, cardinality(v_stale))
                   else ranked_ledger.list_by_vector(v_asked, cardinality(v_stale)) end;
    decisions := array(
      select w from ranked_ledger.weigh(v_all, array(select unnest(v_list.memory_ids) union select unnest(v_stale))) w);
  end if;
  if v_list is null or not ranked_ledger.is_as_estimated(v_asked, v_list, decisions, v_stale) then
    decisions := array(
      select w from ranked_ledger.weigh(p_question, case when p_question.as_of is null then ranked_ledger.all_decisions(p_question.workspace_id)
                                                         else ranked_ledger.decisions_then(p_question) end) w
      order by w.pinned desc, w.ranking_score desc, w.step_index desc, w.memory_id limit p_question.match_count);
  else
    exact := v_list.exact;
    decisions := array(
      select d from unnest(decisions) d where d.relevance >= p_question.min_relevance
      order by d.pinned desc, d.ranking_score desc, d.step_index desc, d.memory_id limit p_question.match_count);
  end if;
end
$$;

comment on function ranked_ledger.rank(ranked_ledger.question) is
  'The best decisions for a question, in order, and whether that is proven.';

create or replace function public.match_decision_ledger(
  p_workspace_id text, p_query text default null, p_query_embedding vector default null,
  p_project_id text default null, p_task_id text default null, p_current_step int default null, p_match_count int default 10,
  p_w_similarity float8 default null, p_w_importance float8 default null, p_w_recency float8 default null,
  p_w_dependency float8 default null, p_half_life_steps float8 default null, p_dependency_saturation float8 default null,
  p_include_superseded boolean default false, p_only_confirmed boolean default false,
  p_include_personal boolean default true, p_include_stale boolean default null, p_min_relevance float8 default null,
  p_similarity_floor float8 default null, p_similarity_ceiling float8 default null, p_fusion text default null,
  p_fusion_weight float8 default null, p_embedding_model text default null, p_exact boolean default true,
  p_preset text default 'published', p_w_summary float8 default null, p_as_of_step int default null,
  p_as_of timestamptz default null)
returns table (
  memory_id uuid, summary text, content text, rationale text, step_index int, importance float8, pinned boolean,
  lifecycle_status text, relevance float8, relevance_source text, recency float8, dependency_boost float8,
  ranking_score float8,
  project_id text, task_id text, similarity float8, text_relevance float8, step_distance bigint, live_dependents int,
  exact boolean, summary_match float8)
language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
declare
  v_ranked record;
begin
  v_ranked := ranked_ledger.rank(ranked_ledger.at_moment(ranked_ledger.ask(
    p_workspace_id, p_query, p_query_embedding, p_project_id, p_task_id, p_current_step, p_match_count, p_w_similarity,
    p_w_importance, p_w_recency, p_w_dependency, p_half_life_steps, p_dependency_saturation, p_include_superseded,
    p_only_confirmed, p_include_personal, p_include_stale, p_min_relevance, p_similarity_floor, p_similarity_ceiling,
    p_fusion, p_fusion_weight, p_embedding_model, p_exact, p_preset, p_w_summary), p_as_of_step, p_as_of));
  return query
  select d.memory_id, d.summary, d.content, d.rationale, d.step_index, d.importance, d.pinned, d.lifecycle_status,
         d.relevance, d.relevance_source, d.recency, d.dependency_boost, d.ranking_score,
         d.project_id, d.task_id, d.similarity, d.text_relevance, d.step_distance, d.live_dependents, v_ranked.exact,
         d.summary_match
  from unnest(v_ranked.decisions) d;
end
$$;

comment on function public.match_decision_ledger(text, text, vector, text, text, int, int, float8, float8, float8, float8, float8, float8, boolean, boolean, boolean, boolean, float8, float8, float8, text, float8, text, boolean, text, float8, int, timestamptz) is
$$Ranked recall of a workspace's decisions: the published columns first, ours after.

score = 0.45 relevance + 0.25 importance + 0.15 recency + 0.15 dependency      (-0.30 where not active)

relevance   cosine similarity clamped to [0,1] where the caller gives an embedding and the row has one
            else x/(1+x), x = 10 * ts_rank_cd over the OR of the query's lexemes, where the caller gives text
            else 0                                       relevance_source says which: cosine | fts | none
importance  clamped to [0,1]
recency     exp(-d / 30), d = max(0, max(p_current_step, newest step of the row's stream) - step)
dependency  min(1, live decisions that depend on it / 3)
order       pinned first, then score, then newest step, then memory id

Why so, as measured: the text query is a disjunction, since all words required found nothing (MRR 0.05 against 0.50 on real
questions); the rank saturates instead of clipping, so that ten matches still beat five; components are clamped before they
are weighted; the dependency normaliser is frozen, so that a row's score never depends on which other rows matched; the
half-life fits a session. Scope is applied before the limit. p_include_superseded false: active rows only. Null or
non-positive half-life, saturation and count mean their defaults; 1,000 rows at most.

p_preset tuned fills in other defaults (ranked_ledger.preset): words weigh by how rare they are and texts by their length, cosine
and text are blended, the words of the summary count, stale and disputed decisions take part. What is given goes before it.

p_as_of_step, of one task, or p_as_of, a time: what was there and in force then, weighed from the tables; nothing decided later is
in the answer. p_current_step counts as in a recall of then. Texts, importance, pins, steps and the words' rarity are today's,
and what was deleted since is not there.$$;
