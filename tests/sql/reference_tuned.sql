-- The oracle of the tuned preset, as reference.sql is that of the published formula: one plain query in words of its own. How rare
-- a word is, is counted from the texts of all decisions. The weights are settings (ranked_ledger.preset), the formula is not.
with constants as (
  select 3 as half_of_occurrences, 4 as half_of_found, 0.1::float8 as length_share, 100 as usual_length, 0.30::float8 as of_retired
),
weights as (
  select coalesce(%(w_similarity)s::float8, p.w_similarity) as w_similarity, coalesce(%(w_importance)s::float8, p.w_importance) as w_importance,
         coalesce(%(w_recency)s::float8, p.w_recency) as w_recency, coalesce(%(w_dependency)s::float8, p.w_dependency) as w_dependency,
         coalesce(%(w_summary)s::float8, p.w_summary) as w_summary, coalesce(%(half_life)s::float8, p.half_life) as half_life,
         coalesce(%(saturation)s::float8, p.saturation) as saturation, coalesce(%(stale)s::boolean, p.with_stale) as with_stale,
         p.penalty as of_stale, coalesce(%(fusion)s::text, p.fusion) as fusion,
         coalesce(%(fusion_weight)s::float8, p.fusion_weight) as fusion_weight
  from ranked_ledger.preset('tuned') as p
),
ledger as (
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
asked as (
  select x.lexeme from unnest(to_tsvector(%(config)s::regconfig, %(text)s::text)) as x
),
words as materialized ( -- a word of weight A is the summary's
  select d.memory_id, w.lexeme, 'A' = any (w.weights) as in_summary, a.lexeme is not null as is_asked,
         (select count(*) from unnest(w.weights) as v (weight) where v.weight = 'D') as occurrences
  from decisions d
  cross join lateral unnest(to_tsvector(%(config)s::regconfig, d.content || ' ' || coalesce(d.rationale, ''))
                            || setweight(to_tsvector(%(config)s::regconfig, left(d.summary, 2000)), 'A')) as w
  left join asked a on a.lexeme = w.lexeme
),
rarities as materialized (
  select w.lexeme, ln(1 + (greatest(greatest(n.decisions, 50) - count(*), 0) + 0.5::float8) / (count(*) + 0.5::float8)) as rarity
  from words w
  cross join (select count(*) from decisions where lifecycle_status not in ('superseded', 'rejected')) as n (decisions)
  where w.is_asked group by w.lexeme, n.decisions
),
texts as materialized ( -- summed in the order of the words, so that equals are equal to the last bit
  select w.memory_id, sum(w.occurrences) as length,
         coalesce(sum(r.rarity * (w.occurrences / (w.occurrences + c.half_of_occurrences::float8)) order by w.lexeme collate "C"), 0) as found,
         coalesce(count(*) filter (where w.in_summary and w.is_asked)
                  / nullif(count(*) filter (where w.in_summary), 0)::float8, 0) as named
  from words w left join rarities r on r.lexeme = w.lexeme cross join constants c
  group by w.memory_id
),
parts as materialized (
  select d.*, coalesce(n.live_dependents, 0) as live_dependents,
         nullif(1 - (d.embedding <=> %(vector)s::vector), 'NaN') as similarity,
         coalesce(t.found, 0) as found, coalesce(t.length, 0)::float8 as length,
         case when %(text)s::text is not null and w.w_summary > 0 then coalesce(t.named, 0) else 0 end as summary_match,
         greatest(0, greatest(coalesce(%(current_step)s::bigint, 0), d.newest_step) - d.step_index) as step_distance
  from decisions d cross join weights w
  left join texts t on t.memory_id = d.memory_id left join dependents n on n.memory_id = d.memory_id
  where (%(project)s::text is null or d.project_id = %(project)s::text)
    and (%(task)s::text is null or d.task_id = %(task)s::text)
    and (d.lifecycle_status = 'active' or %(retired)s::boolean
         or w.with_stale and d.lifecycle_status in ('stale', 'disputed'))
    and not (%(only_confirmed)s::boolean and d.is_unconfirmed)
    and (%(personal)s::boolean or d.visibility <> 'personal')
),
relevances as (
  select p.*,
         least(1, greatest(0, (p.similarity - s.floor) / (s.ceiling - s.floor))) as cosine_relevance,
         case when %(text)s::text is not null
              then p.found / (p.found + c.half_of_found * (1 - c.length_share + c.length_share * (p.length / c.usual_length)))
         end as text_relevance
  from parts p cross join scale s cross join constants c
),
components as (
  select r.*,
         case when similarity is null then coalesce(text_relevance, 0)
              when text_relevance is null then cosine_relevance
              when w.fusion = 'max' then greatest(cosine_relevance, text_relevance)
              when w.fusion = 'blend' then w.fusion_weight * cosine_relevance + (1 - w.fusion_weight) * text_relevance
              else cosine_relevance end as relevance,
         case when similarity is null and text_relevance is null then 'none'
              when similarity is null then 'fts'
              when text_relevance is null or w.fusion = 'none' then 'cosine'
              else w.fusion end as relevance_source,
         case when step_distance / 700.0::float8 > w.half_life then 0 else exp(-step_distance / w.half_life) end as recency,
         case when live_dependents >= w.saturation then 1 else live_dependents / w.saturation end as dependency_boost
  from relevances r cross join weights w
)
select memory_id, summary, content, rationale, step_index, importance::float8, pinned, lifecycle_status,
       relevance, relevance_source, recency, dependency_boost,
       w.w_similarity * relevance + w.w_importance * importance::float8 + w.w_recency * recency + w.w_dependency * dependency_boost
         + w.w_summary * summary_match
         - case when lifecycle_status = 'active' then 0
                when lifecycle_status in ('stale', 'disputed') then w.of_stale else c.of_retired end as score,
       project_id, task_id, similarity, text_relevance, step_distance, live_dependents, summary_match
from components d cross join weights w cross join constants c
where %(min_relevance)s::float8 is null or relevance >= %(min_relevance)s::float8
order by pinned desc, score desc, step_index desc, memory_id
limit least(1000, %(count)s::int)
