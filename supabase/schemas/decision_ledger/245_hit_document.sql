-- A hit of a recall: the row of match_decision_ledger, and what its reader needs to know of its surroundings.

create or replace function ranked_ledger.rests_on_retired(p_memory_id uuid)
returns boolean language sql stable
set search_path = public, extensions, pg_temp
as $$
  select exists (
    select from public.agent_decision_edges e join public.agent_memories m on m.id = e.to_memory_id
    where e.from_memory_id = p_memory_id and e.relation = 'depends_on'
      and m.lifecycle_status in ('superseded', 'rejected'))
    or exists (select from ranked_ledger.lost_grounds g where g.memory_id = p_memory_id and g.relation = 'depends_on')
$$;

comment on function ranked_ledger.rests_on_retired(uuid) is
  'Whether a decision depends directly on one that is superseded, rejected or gone.';

-- By id: the edges of one record call are of one moment, and the index on them has this order.
create or replace function ranked_ledger.grounds(p_memory_id uuid)
returns uuid[] language sql stable
set search_path = public, extensions, pg_temp
as $$
  select array(select e.to_memory_id from public.agent_decision_edges e
               where e.from_memory_id = p_memory_id and e.relation = 'depends_on' order by e.to_memory_id)
$$;

comment on function ranked_ledger.grounds(uuid) is 'What a decision depends on directly, in id order.';

do $do$
begin
  if to_regprocedure('ranked_ledger.hit_document(jsonb, uuid)') is not null then -- beside the new one no call would be unique
    execute 'drop function ranked_ledger.hit_document(jsonb, uuid)';
  end if;
end
$do$;

create or replace function ranked_ledger.hit_document(p_row jsonb, p_memory_id uuid, p_moment ranked_ledger.moment default null)
returns jsonb language sql stable
set search_path = public, extensions, pg_temp
as $$
  select (p_row - 'ordinality') || jsonb_build_object(
    'alternatives', l.alternatives,
    'successor', case when s.lifecycle_status = 'active' then null
                      when p_moment is null then ranked_ledger.successor(p_memory_id)
                      else ranked_ledger.successor_then(p_memory_id, p_moment) end,
    'depends_on', case when p_moment is null then ranked_ledger.grounds(p_memory_id) else ranked_ledger.grounds_then(p_memory_id, p_moment) end,
    'rests_on_retired', s.rests_on_retired,
    'shortened', false,
    -- each with the line break behind it, so that the sum bounds the whole block
    'line', f.line, 'tokens', ranked_ledger.tokens(f.line || ' '),
    'summary_line', f.summary_line, 'summary_tokens', ranked_ledger.tokens(f.summary_line || ' '))
  from public.agent_decision_ledger l
  join public.agent_memories m on m.id = l.memory_id
  cross join lateral (
    select case when p_moment is null then m.lifecycle_status
                else ranked_ledger.lifecycle_then(m.id, m.lifecycle_status, p_moment) end as lifecycle_status,
           case when p_moment is null then m.review_status
                else ranked_ledger.review_status_then(m.id, m.review_status, p_moment) end as review_status,
           case when p_moment is null then ranked_ledger.rests_on_retired(p_memory_id)
                else ranked_ledger.rested_on_retired(p_memory_id, p_moment) end as rests_on_retired offset 0) as s
  cross join lateral (
    select ranked_ledger.decision_line(m.content, l.rationale, l.step_index, l.project_id, l.task_id, l.importance::float8,
                                       s.lifecycle_status, s.rests_on_retired, m.created_by, s.review_status) as line,
           ranked_ledger.decision_line(m.summary, null, l.step_index, l.project_id, l.task_id, l.importance::float8,
                                       s.lifecycle_status, s.rests_on_retired, m.created_by, s.review_status) as summary_line
    offset 0) as f -- each line is named twice above, and was rendered as often
  where l.memory_id = p_memory_id
$$;

comment on function ranked_ledger.hit_document(jsonb, uuid, ranked_ledger.moment) is
  'A hit as recall_decisions answers it, with its line for a prompt, full and by its summary; its surroundings as they were, where a moment is given.';

create or replace function ranked_ledger.check_recall(p_workspace_id text, p_policy text, p_max_tokens int)
returns void language plpgsql immutable
set search_path = public, extensions, pg_temp
as $$
begin
  if coalesce(btrim(p_workspace_id), '') = '' then
    raise sqlstate '22023' using message = 'p_workspace_id is empty', hint = 'Name the workspace to recall from.';
  elsif coalesce(btrim(p_policy), '') = '' or char_length(p_policy) > 100 then
    raise sqlstate '22023' using message = 'p_policy is a name of 1 to 100 characters', hint = 'Leave it out for ranked_ledger.';
  elsif p_max_tokens <= ranked_ledger.fence_tokens() then
    raise sqlstate '22023' using
      message = format('p_max_tokens is %s; the fence alone may take %s', p_max_tokens, ranked_ledger.fence_tokens()),
      hint = 'Give a budget of some hundred tokens, or leave it out.';
  end if;
end
$$;

comment on function ranked_ledger.check_recall(text, text, int) is 'Refuses (22023) arguments of a recall that cannot be meant.';

-- A trace keeps them. A host may have longer projects and tasks than we record, so those have the room of a query.
create or replace function ranked_ledger.check_recall_names(p_scopes jsonb, p_labels jsonb)
returns void language plpgsql immutable
set search_path = public, extensions, pg_temp
as $$
declare
  v_long record;
begin
  select n.key, n.most into v_long
  from (select s.key, s.value, 262144 as most from jsonb_each_text(p_scopes) as s
        union all select l.key, l.value, 1000 from jsonb_each_text(p_labels) as l) as n
  where octet_length(n.value) > n.most order by n.key limit 1;
  if found then
    raise sqlstate '22023' using
      message = format('%s is longer than %s bytes', v_long.key, v_long.most), hint = 'Leave it out, or shorten it.';
  end if;
end
$$;

comment on function ranked_ledger.check_recall_names(jsonb, jsonb) is
  'Refuses (22023) names of a recall that are longer than a trace should keep.';
