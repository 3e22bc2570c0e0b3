-- A host's install of the published decision-ledger proposal, written from the contract: its names, signatures and
-- arithmetic, and its habits (rights left at their defaults, functions without a search path).

create table public.agent_decision_ledger (
  id uuid primary key default gen_random_uuid(),
  memory_id uuid not null unique references public.agent_memories (id) on delete cascade,
  workspace_id text not null,
  project_id text,
  task_id text,
  flow_id text,
  step_index integer not null check (step_index >= 0),
  rationale text,
  importance numeric(3, 2) not null default 0.50 check (importance between 0 and 1),
  pinned boolean not null default false,
  recall_count integer not null default 0,
  used_count integer not null default 0,
  last_recalled_at timestamptz,
  metadata jsonb not null default '{}',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);
create index ledger_by_stream on public.agent_decision_ledger (workspace_id, task_id, step_index desc);

create table public.agent_decision_edges (
  id uuid primary key default gen_random_uuid(),
  from_memory_id uuid not null references public.agent_memories (id) on delete cascade,
  to_memory_id uuid not null references public.agent_memories (id) on delete cascade,
  relation text not null check (relation in ('depends_on', 'informs', 'blocks')),
  metadata jsonb not null default '{}',
  created_at timestamptz not null default now(),
  unique (from_memory_id, to_memory_id, relation),
  check (from_memory_id <> to_memory_id)
);

alter table public.agent_decision_ledger enable row level security;
alter table public.agent_decision_edges enable row level security;
create policy "ledger for the service role" on public.agent_decision_ledger
  for all using (auth.role() = 'service_role');
create policy "edges for the service role" on public.agent_decision_edges
  for all using (auth.role() = 'service_role');
grant select, insert, update, delete on public.agent_decision_ledger, public.agent_decision_edges to service_role;

create function public.enroll_decision() returns trigger language plpgsql as $$
declare
  v_step integer;
begin
  if new.memory_type <> 'decision' then
    return new;
  end if;
  v_step := coalesce(
    (new.metadata -> 'agent_memory' ->> 'step_index')::integer,
    (new.metadata ->> 'step_index')::integer,
    (select max(l.step_index) + 1 from public.agent_decision_ledger l
     where l.workspace_id = new.workspace_id and l.task_id is not distinct from new.task_id),
    0);
  insert into public.agent_decision_ledger
    (memory_id, workspace_id, project_id, task_id, flow_id, step_index, rationale, importance)
  values (new.id, new.workspace_id, new.project_id, new.task_id, new.flow_id, v_step,
    new.metadata ->> 'rationale', coalesce(new.confidence, 0.50))
  on conflict (memory_id) do nothing;
  return new;
end $$;
create trigger trg_agent_decision_ledger_enroll after insert on public.agent_memories
  for each row execute function public.enroll_decision();

create function public.match_decision_ledger(
  p_workspace_id text,
  p_query text default null,
  p_query_embedding vector default null,
  p_project_id text default null,
  p_task_id text default null,
  p_current_step integer default null,
  p_match_count integer default 10,
  p_w_similarity double precision default 0.45,
  p_w_importance double precision default 0.25,
  p_w_recency double precision default 0.15,
  p_w_dependency double precision default 0.15,
  p_half_life_steps double precision default 30,
  p_dependency_saturation double precision default 3,
  p_include_superseded boolean default false
) returns table (
  memory_id uuid, summary text, content text, rationale text, step_index integer, importance numeric, pinned boolean,
  lifecycle_status text, relevance double precision, relevance_source text, recency double precision,
  dependency_boost double precision, ranking_score double precision
) language sql stable as $$
  with settings as (
    select case when p_half_life_steps > 0 then p_half_life_steps else 30 end as half_life,
      case when p_dependency_saturation > 0 then p_dependency_saturation else 3 end as saturation,
      case when p_match_count > 0 then p_match_count else 10 end as wanted,
      nullif(replace(plainto_tsquery('english', coalesce(p_query, ''))::text, '&', '|'), '')::tsquery as words
  ), candidates as (
    select l.memory_id, m.summary, m.content, l.rationale, l.step_index, l.importance, l.pinned, m.lifecycle_status,
      case when p_query_embedding is not null and t.embedding is not null
           then greatest(0, least(1, 1 - (t.embedding <=> p_query_embedding))) end as cosine,
      10 * ts_rank_cd(to_tsvector('english', m.content || ' ' || coalesce(l.rationale, '')), s.words) as x,
      (select count(*) from public.agent_decision_edges e join public.agent_memories d on d.id = e.from_memory_id
       where e.to_memory_id = l.memory_id and e.relation = 'depends_on' and d.lifecycle_status = 'active') as dependants,
      max(l.step_index) over () as newest
    from public.agent_decision_ledger l
    join public.agent_memories m on m.id = l.memory_id
    left join public.thoughts t on t.id = m.thought_id
    cross join settings s
    where l.workspace_id = p_workspace_id
      and (p_project_id is null or l.project_id = p_project_id)
      and (p_task_id is null or l.task_id = p_task_id)
      and (p_include_superseded or m.lifecycle_status = 'active')
  ), parts as (
    select c.*, coalesce(c.cosine, c.x / (1 + c.x), 0)::double precision as relevance,
      case when c.cosine is not null then 'cosine' when s.words is not null then 'fts' else 'none' end as source,
      exp(-greatest(0, coalesce(p_current_step, c.newest) - c.step_index) / s.half_life) as recency,
      least(1, c.dependants / s.saturation) as boost, s.wanted
    from candidates c cross join settings s
  )
  select p.memory_id, p.summary, p.content, p.rationale, p.step_index, p.importance, p.pinned, p.lifecycle_status,
    p.relevance, p.source, p.recency, p.boost,
    p_w_similarity * p.relevance + p_w_importance * p.importance + p_w_recency * p.recency + p_w_dependency * p.boost
      - case when p.lifecycle_status = 'active' then 0 else 0.30 end as ranking_score
  from parts p
  order by p.pinned desc, ranking_score desc, p.step_index desc
  limit (select wanted from settings)
$$;

create function public.touch_decision_recall(p_memory_ids uuid[], p_used boolean default false) returns integer
language plpgsql as $$
declare
  v_rows integer;
begin
  update public.agent_decision_ledger set recall_count = recall_count + 1,
    used_count = used_count + case when p_used then 1 else 0 end, last_recalled_at = now()
  where memory_id = any (p_memory_ids);
  get diagnostics v_rows = row_count;
  return v_rows;
end $$;

create view public.agent_recall_policy_stats as
select coalesce(t.response_policy ->> 'recall_policy', 'vector') as recall_policy,
  count(distinct t.id) as recall_requests,
  count(i.id) as items_returned,
  avg(i.similarity) as avg_similarity,
  avg(i.ranking_score) as avg_ranking_score,
  avg(case when i.used then 1.0 else 0.0 end) as used_rate,
  avg(case when i.ignored_reason is not null then 1.0 else 0.0 end) as ignored_rate
from public.agent_memory_recall_traces t
left join public.agent_memory_recall_items i on i.trace_id = t.id
group by 1;
