-- The oracle: docs/ranking in one plain query, in words of its own. No index trick, no stored lexemes, no function of ours;
-- what match_decision_ledger answers has to equal this.
with decisions as (
  select l.memory_id, l.workspace_id, l.project_id, l.task_id, l.step_index, l.importance, l.pinned, l.rationale,
         m.content, m.summary, m.lifecycle_status, t.embedding
  from agent_decision_ledger l
  join agent_memories m on m.id = l.memory_id
  left join thoughts t on t.id = m.thought_id
  where l.set_aside_at is null
),
newest as (
  select workspace_id, coalesce(project_id, '<null>') as project_key, coalesce(task_id, '<null>') as task_key,
         max(step_index) as step_index
  from agent_decision_ledger where step_index <= 1000000000
  group by 1, 2, 3
),
query as (
  select %(text)s::text as text, %(vector)s::vector as vector,
         (select string_agg(quote_literal(lexeme), '|')::tsquery from unnest(to_tsvector('english', %(text)s::text))) as any_word
),
parts as (
  select d.*,
         case when q.vector is null or d.embedding is null then null
              when vector_norm(q.vector) = 0 or vector_norm(d.embedding) = 0 then null
              else 1 - (d.embedding <=> q.vector) end as cosine,
         10 * coalesce(ts_rank_cd(to_tsvector('english', d.content || ' ' || coalesce(d.rationale, '')), q.any_word), 0)
           ::float8 as x,
         greatest(0, greatest(coalesce(%(current_step)s::bigint, 0), n.step_index) - d.step_index)::float8 as distance,
         (select count(*) from agent_decision_edges e join decisions f on f.memory_id = e.from_memory_id
          where e.to_memory_id = d.memory_id and e.relation = 'depends_on' and f.lifecycle_status = 'active'
            and f.workspace_id = d.workspace_id)::float8 as dependents
  from decisions d
  cross join query q
  left join newest n on n.workspace_id = d.workspace_id and n.project_key = coalesce(d.project_id, '<null>')
                    and n.task_key = coalesce(d.task_id, '<null>')
  where d.workspace_id = %(workspace)s
    and (%(project)s::text is null or d.project_id = %(project)s::text)
    and (%(task)s::text is null or d.task_id = %(task)s::text)
    and (%(retired)s::boolean or d.lifecycle_status = 'active')
),
components as (
  select p.*,
         case when cosine is not null then least(1, greatest(0, cosine))
              when (select text from query) is not null then x / (1 + x) else 0 end as relevance,
         case when cosine is not null then 'cosine' when (select text from query) is not null then 'fts' else 'none' end
           as relevance_source,
         case when distance / %(half_life)s::float8 > 700 then 0 else exp(-distance / %(half_life)s::float8) end as recency,
         least(1, dependents / %(saturation)s::float8) as dependency
  from parts p
)
select memory_id, relevance, relevance_source, recency, dependency,
       %(w_similarity)s::float8 * relevance + %(w_importance)s::float8 * importance::float8
         + %(w_recency)s::float8 * recency + %(w_dependency)s::float8 * dependency
         - case when lifecycle_status = 'active' then 0 else 0.30 end as score
from components
order by pinned desc, score desc, step_index desc, memory_id
limit least(1000, %(count)s::int)
