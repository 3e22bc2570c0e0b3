-- The chain of supersession, over the host's relations (new, old, 'supersedes'). `union` ends at loops in what others
-- wrote, and visits each memory once; the workspace of the start is never left.

create or replace function ranked_ledger.superseded_by(p_memory_id uuid)
returns table (memory_id uuid) language sql stable
set search_path = public, extensions, pg_temp
as $$
  with recursive later as (
    select m.id as memory_id, m.workspace_id from public.agent_memories m where m.id = p_memory_id
    union
    select m.id, m.workspace_id
    from later w
    join public.agent_memory_relations r on r.to_memory_id = w.memory_id and r.relation = 'supersedes'
    join public.agent_memories m on m.id = r.from_memory_id and m.workspace_id = w.workspace_id
  )
  select w.memory_id from later w where w.memory_id <> p_memory_id
$$;

comment on function ranked_ledger.superseded_by(uuid) is 'Everything that replaced a decision, directly or further on.';

create or replace function ranked_ledger.successor(p_memory_id uuid)
returns uuid language sql stable
set search_path = public, extensions, pg_temp
as $$
  select m.id
  from ranked_ledger.superseded_by(p_memory_id) s
  join public.agent_memories m on m.id = s.memory_id and m.lifecycle_status = 'active'
  left join public.agent_decision_ledger l on l.memory_id = m.id
  order by m.created_at desc, l.step_index desc nulls last, m.id
  limit 1
$$;

comment on function ranked_ledger.successor(uuid) is
  'The newest active decision of what replaced this one; null where nothing active did.';

create or replace function ranked_ledger.supersession_chain(p_memory_id uuid)
returns table (memory_id uuid) language sql stable
set search_path = public, extensions, pg_temp
as $$
  with recursive linked as (
    select m.id as memory_id, m.workspace_id from public.agent_memories m where m.id = p_memory_id
    union
    select m.id, m.workspace_id
    from linked k
    join public.agent_memory_relations r
      on r.relation = 'supersedes' and k.memory_id in (r.from_memory_id, r.to_memory_id)
    join public.agent_memories m
      on m.id = case when r.from_memory_id = k.memory_id then r.to_memory_id else r.from_memory_id end
     and m.workspace_id = k.workspace_id)
  select k.memory_id from linked k
$$;

comment on function ranked_ledger.supersession_chain(uuid) is
  'Every decision that is tied to this one by supersession, before and after, itself included.';
