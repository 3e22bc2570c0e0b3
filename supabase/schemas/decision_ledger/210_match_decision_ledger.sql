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
      'p_include_superseded', 'memory_id', 'summary', 'content', 'rationale', 'step_index', 'importance', 'pinned',
      'lifecycle_status', 'relevance', 'relevance_source', 'recency', 'dependency_boost', 'ranking_score',
      'project_id', 'task_id', 'similarity', 'text_relevance', 'step_distance', 'live_dependents']
    then
      execute format('drop function %s', v_function.name);
    end if;
  end loop;
end
$do$;

-- Decisions that live decisions depend on, and how many do.
create or replace function ranked_ledger.live_dependents(p_workspace_id text)
returns table (memory_id uuid, dependents int) language sql stable
set search_path = public, extensions, pg_temp
as $$
  select e.to_memory_id, count(*)::int
  from public.agent_decision_ledger l
  join public.agent_memories m on m.id = l.memory_id and m.lifecycle_status = 'active'
  join public.agent_decision_edges e on e.from_memory_id = l.memory_id and e.relation = 'depends_on'
  where l.workspace_id = p_workspace_id and l.set_aside_at is null
  group by e.to_memory_id
$$;

comment on function ranked_ledger.live_dependents(text) is 'How many active decisions of the workspace depend on each decision.';

-- The newest step of each stream, rows that are not settled yet included.
create or replace function ranked_ledger.newest_steps(p_workspace_id text)
returns table (stream_id uuid, newest_step int) language sql stable
set search_path = public, extensions, pg_temp
as $$
  select n.stream_id, max(n.newest_step)
  from (select s.stream_id, s.newest_step from ranked_ledger.streams s where s.workspace_id = p_workspace_id
        union all
        select l.stream_id, l.step_index from ranked_ledger.pending_steps p
        join public.agent_decision_ledger l on l.memory_id = p.memory_id
        where l.workspace_id = p_workspace_id and l.step_index <= ranked_ledger.max_step()) as n
  group by n.stream_id
$$;

comment on function ranked_ledger.newest_steps(text) is
  'The newest step of each stream of the workspace: of every row, whatever its lifecycle or project.';

create or replace function public.match_decision_ledger(
  p_workspace_id text, p_query text default null, p_query_embedding vector default null,
  p_project_id text default null, p_task_id text default null, p_current_step int default null, p_match_count int default 10,
  p_w_similarity float8 default 0.45, p_w_importance float8 default 0.25, p_w_recency float8 default 0.15,
  p_w_dependency float8 default 0.15, p_half_life_steps float8 default 30, p_dependency_saturation float8 default 3,
  p_include_superseded boolean default false)
returns table (
  memory_id uuid, summary text, content text, rationale text, step_index int, importance float8, pinned boolean,
  lifecycle_status text, relevance float8, relevance_source text, recency float8, dependency_boost float8,
  ranking_score float8,
  project_id text, task_id text, similarity float8, text_relevance float8, step_distance bigint, live_dependents int)
language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
declare
  v_half_life  float8 := ranked_ledger.positive_or(p_half_life_steps, 30);
  v_saturation float8 := ranked_ledger.positive_or(p_dependency_saturation, 3);
  v_has_text   boolean := p_query is not null;
  v_has_vector boolean := coalesce(vector_norm(p_query_embedding) > 0, false);
  v_dimension  int := ranked_ledger.embedding_dimension();
  v_any_word   tsquery;
begin
  -- guard
  perform ranked_ledger.check_weight('p_w_similarity', p_w_similarity), ranked_ledger.check_weight('p_w_importance', p_w_importance),
          ranked_ledger.check_weight('p_w_recency', p_w_recency), ranked_ledger.check_weight('p_w_dependency', p_w_dependency);
  if octet_length(p_query) > 262144 then
    raise sqlstate '22023' using message = 'p_query is longer than 262,144 bytes', hint = 'Ask with fewer words.';
  end if;
  if p_query_embedding is not null then
    perform ranked_ledger.check_dimension(vector_dims(p_query_embedding));
  end if;
  v_any_word := ranked_ledger.any_word_query(ranked_ledger.text_config(p_workspace_id), p_query);

  -- `offset 0` keeps each component a column: merged into the score, which names it several times, ts_rank_cd was computed
  -- ten times a row and the formula's functions were called instead of inlined
  return query
  with component as (
    select l.memory_id, l.rationale, l.step_index, l.importance, l.pinned, l.project_id, l.task_id,
           m.summary, m.content, m.lifecycle_status,
           -- a zero vector's cosine is NaN: no vector
           case when v_has_vector and (v_dimension is not null or vector_dims(t.embedding) = vector_dims(p_query_embedding))
                then nullif(1 - (t.embedding <=> p_query_embedding), 'NaN') end as similarity,
           case when v_has_text
                then ranked_ledger.saturate(coalesce(ts_rank_cd(l.search_lexemes, v_any_word), 0)) end as text_relevance,
           greatest(0, greatest(coalesce(p_current_step, 0), n.newest_step)::bigint - l.step_index) as step_distance,
           coalesce(d.dependents, 0) as live_dependents
    from public.agent_decision_ledger l
    -- the workspace twice: a row that could not follow its moved memory is shown in neither
    join public.agent_memories m on m.id = l.memory_id and m.workspace_id = p_workspace_id
    left join public.thoughts t on t.id = m.thought_id and v_has_vector
    left join ranked_ledger.newest_steps(p_workspace_id) n on n.stream_id = l.stream_id
    left join ranked_ledger.live_dependents(p_workspace_id) d on d.memory_id = l.memory_id
    where l.workspace_id = p_workspace_id and l.set_aside_at is null
      and (p_project_id is null or l.project_id = p_project_id)
      and (p_task_id is null or l.task_id = p_task_id)
      and (coalesce(p_include_superseded, false) or m.lifecycle_status = 'active')
    offset 0),
  weighed as (
    select c.*, ranked_ledger.clamp(coalesce(c.similarity, c.text_relevance)) as relevance,
           case when c.similarity is not null then 'cosine' when v_has_text then 'fts' else 'none' end as relevance_source,
           ranked_ledger.recency(c.step_distance, v_half_life) as recency,
           ranked_ledger.dependency(c.live_dependents, v_saturation) as dependency_boost
    from component c offset 0)
  select w.memory_id, w.summary, w.content, w.rationale, w.step_index, w.importance::float8, w.pinned, w.lifecycle_status,
         w.relevance, w.relevance_source, w.recency, w.dependency_boost,
         ranked_ledger.score(w.relevance, w.importance::float8, w.recency, w.dependency_boost, p_w_similarity, p_w_importance,
                             p_w_recency, p_w_dependency, w.lifecycle_status = 'active') as ranking_score,
         w.project_id, w.task_id, w.similarity, w.text_relevance, w.step_distance, w.live_dependents
  from weighed w
  order by w.pinned desc, ranking_score desc, w.step_index desc, w.memory_id
  limit ranked_ledger.match_count(p_match_count);
end
$$;

comment on function public.match_decision_ledger(text, text, vector, text, text, int, int, float8, float8, float8, float8, float8, float8, boolean) is
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
non-positive half-life, saturation and count mean their defaults; 1,000 rows at most.$$;
