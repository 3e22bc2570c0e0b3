-- The published query in one plain query, with the parameters of reference.sql that it knows: the peer of a benchmark, since
-- nothing is kept for it. It parses the text of every row in scope, takes the newest step by a window over the candidates,
-- and has the proposal's faults: a zero vector is as near as can be, exp raises far back (22003), ties fall as they may.
select c.memory_id, c.summary, c.content, c.rationale, c.step_index, c.importance, c.pinned, c.lifecycle_status,
       r.relevance,
       case when c.cosine is not null then 'cosine' when c.has_words then 'fts' else 'none' end as relevance_source,
       r.recency, r.dependency_boost,
       %(w_similarity)s::float8 * r.relevance + %(w_importance)s::float8 * c.importance::float8
         + %(w_recency)s::float8 * r.recency + %(w_dependency)s::float8 * r.dependency_boost
         - (case c.lifecycle_status when 'active' then 0 else 0.30 end) as score
from (
  select l.memory_id, m.summary, m.content, l.rationale, l.step_index, l.importance, l.pinned, m.lifecycle_status,
         q.any_word is not null as has_words,
         case when t.embedding is not null and %(vector)s::vector is not null
              then greatest(0, least(1, 1 - (t.embedding <=> %(vector)s::vector))) end as cosine,
         10 * ts_rank_cd(to_tsvector('english', m.content || ' ' || coalesce(l.rationale, '')), q.any_word)::float8 as x,
         coalesce(%(current_step)s::int, max(l.step_index) over ()) as now_at,
         (select count(*)
          from agent_decision_edges e join agent_memories d on d.id = e.from_memory_id and d.lifecycle_status = 'active'
          where e.to_memory_id = l.memory_id and e.relation = 'depends_on') as dependents
  from (select nullif(replace(plainto_tsquery('english', coalesce(%(text)s::text, ''))::text, '&', '|'), '')::tsquery) as q (any_word)
  cross join agent_decision_ledger l
  join agent_memories m on m.id = l.memory_id
  left join thoughts t on t.id = m.thought_id
  where l.workspace_id = %(workspace)s
    and coalesce(l.project_id = %(project)s::text, %(project)s::text is null)
    and coalesce(l.task_id = %(task)s::text, %(task)s::text is null)
    and (m.lifecycle_status = 'active' or %(retired)s::boolean)
) as c
cross join lateral (
  select coalesce(c.cosine, c.x / (1 + c.x), 0) as relevance,
         exp(- greatest(0, c.now_at - c.step_index) / %(half_life)s::float8) as recency,
         least(1, c.dependents / %(saturation)s::float8) as dependency_boost
) as r
order by c.pinned desc, score desc, c.step_index desc
limit %(count)s::int
