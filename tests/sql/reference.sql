-- The oracle: docs/ranking in one plain query, in words of its own. No index trick, no stored lexemes, no function of ours;
-- what match_decision_ledger answers has to equal this. The tuned preset has its own (reference_tuned.sql).
with ledger as (
  select l.*, max(l.step_index) filter (where l.step_index <= 1000000000)
                over (partition by l.project_id, l.task_id) as newest_step
  from agent_decision_ledger l where l.workspace_id = %(workspace)s
),
decisions as (
  select l.memory_id, l.project_id, l.task_id, l.step_index, l.newest_step, l.importance, l.pinned, l.rationale,
         m.content, m.summary, m.lifecycle_status, m.visibility, t.embedding,
         m.requires_user_confirmation and m.review_status = 'pending' as is_unconfirmed
  from ledger l
  join agent_memories m on m.id = l.memory_id and m.workspace_id = l.workspace_id
  left join thoughts t on t.id = m.thought_id
  where l.set_aside_at is null
),
dependents as (
  select e.to_memory_id as memory_id, count(*) as live_dependents
  from agent_decision_edges e join decisions f on f.memory_id = e.from_memory_id
  where e.relation = 'depends_on' and f.lifecycle_status = 'active'
  group by 1
),
scale as (
  select coalesce(%(floor)s::float8, max(r.floor), 0) as floor, coalesce(%(ceiling)s::float8, max(r.ceiling), 1) as ceiling
  from ranked_ledger.similarity_ranges r
  where r.workspace_id = %(workspace)s and r.embedding_model = %(model)s::text
    and %(floor)s::float8 is null and %(ceiling)s::float8 is null
),
query as (
  select %(text)s::text as text, %(vector)s::vector as vector,
         (select string_agg(ltrim(quote_literal(lexeme), ' E'), '|')::tsquery
          from unnest(to_tsvector(%(config)s::regconfig, %(text)s::text))) as any_word,
         tsvector_to_array(to_tsvector(%(config)s::regconfig, %(text)s::text)) as words
),
parts as materialized (
  select d.*, coalesce(n.live_dependents, 0) as live_dependents,
         nullif(1 - (d.embedding <=> q.vector), 'NaN') as similarity,
         10 * coalesce(ts_rank_cd(to_tsvector(%(config)s::regconfig, d.content || ' ' || coalesce(d.rationale, '')),
                                  q.any_word), 0)::float8 as x,
         case when q.text is not null and %(w_summary)s::float8 > 0 then coalesce((
           select count(*) filter (where w.lexeme = any (q.words)) / nullif(count(*), 0)::float8
           from unnest(to_tsvector(%(config)s::regconfig, d.content || ' ' || coalesce(d.rationale, ''))
                       || setweight(to_tsvector(%(config)s::regconfig, left(d.summary, 2000)), 'A')) as w
           where 'A' = any (w.weights)), 0) else 0 end as summary_match,
         greatest(0, greatest(coalesce(%(current_step)s::bigint, 0), d.newest_step) - d.step_index) as step_distance
  from decisions d cross join query q left join dependents n on n.memory_id = d.memory_id
  where (%(project)s::text is null or d.project_id = %(project)s::text)
    and (%(task)s::text is null or d.task_id = %(task)s::text)
    and (d.lifecycle_status = 'active' or %(retired)s::boolean
         or %(stale)s::boolean and d.lifecycle_status in ('stale', 'disputed'))
    and not (%(only_confirmed)s::boolean and d.is_unconfirmed)
    and (%(personal)s::boolean or d.visibility <> 'personal')
),
relevances as (
  select p.*,
         least(1, greatest(0, (p.similarity - s.floor) / (s.ceiling - s.floor))) as cosine_relevance,
         case when q.text is not null then p.x / (1 + p.x) end as text_relevance
  from parts p cross join query q cross join scale s
),
components as (
  select r.*,
         case when similarity is null then coalesce(text_relevance, 0)
              when text_relevance is null then cosine_relevance
              when %(fusion)s::text = 'max' then greatest(cosine_relevance, text_relevance)
              when %(fusion)s::text = 'blend' then %(fusion_weight)s::float8 * cosine_relevance
                                             + (1 - %(fusion_weight)s::float8) * text_relevance
              else cosine_relevance end as relevance,
         case when similarity is null and text_relevance is null then 'none'
              when similarity is null then 'fts'
              when text_relevance is null or %(fusion)s::text = 'none' then 'cosine'
              else %(fusion)s::text end as relevance_source,
         case when step_distance / 700.0::float8 > %(half_life)s::float8 then 0
              else exp(-step_distance / %(half_life)s::float8) end as recency,
         case when live_dependents >= %(saturation)s::float8 then 1
              else live_dependents / %(saturation)s::float8 end as dependency_boost
  from relevances r
)
select memory_id, summary, content, rationale, step_index, importance::float8, pinned, lifecycle_status,
       relevance, relevance_source, recency, dependency_boost,
       %(w_similarity)s::float8 * relevance + %(w_importance)s::float8 * importance::float8
         + %(w_recency)s::float8 * recency + %(w_dependency)s::float8 * dependency_boost
         + %(w_summary)s::float8 * summary_match
         - case when lifecycle_status = 'active' then 0 else 0.30 end as score,
       project_id, task_id, similarity, text_relevance, step_distance, live_dependents, summary_match
from components
where %(min_relevance)s::float8 is null or relevance >= %(min_relevance)s::float8
order by pinned desc, score desc, step_index desc, memory_id
limit least(1000, %(count)s::int)
