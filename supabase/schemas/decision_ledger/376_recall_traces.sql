-- What was asked, what came back and what became of it: for whoever looks at a recall again, by hand or by `eval replay`.
-- Under other weights, an item's score is that of its components as the trace kept them: no clock, no search, and nothing
-- that was not returned then.

-- Compared as a numeric: a cast of 1e-400 raises, and one value of a host must not cost the page. What a weight makes of the
-- least float8 would raise too, so that below 1e-305, where a recency of ours ends, there is none either.
create or replace function ranked_ledger.component_of(p_snapshot jsonb, p_name text)
returns float8 language sql immutable parallel safe
return case when jsonb_typeof(p_snapshot -> p_name) = 'number'
            then case when (p_snapshot ->> p_name)::numeric = 0 then 0::float8
                      when abs((p_snapshot ->> p_name)::numeric) between 1e-305 and 1e305
                      then ranked_ledger.clamp((p_snapshot ->> p_name)::float8) end end;

comment on function ranked_ledger.component_of(jsonb, text) is
  'A component of the score as a trace''s item keeps it, in [0,1]; null where there is none. A host may write what it likes there.';

create or replace function ranked_ledger.weights_again(
  p_preset text, p_w_similarity float8, p_w_importance float8, p_w_recency float8, p_w_dependency float8, p_w_summary float8)
returns jsonb language plpgsql immutable
set search_path = public, extensions, pg_temp
as $$
declare
  v_preset  record;
  v_weights jsonb;
begin
  if num_nonnulls(p_preset, p_w_similarity, p_w_importance, p_w_recency, p_w_dependency, p_w_summary) = 0 then
    return null;
  end if;
  v_preset := ranked_ledger.preset(coalesce(p_preset, 'published'));
  perform ranked_ledger.check_weight('p_w_similarity', coalesce(p_w_similarity, v_preset.w_similarity)),
          ranked_ledger.check_weight('p_w_importance', coalesce(p_w_importance, v_preset.w_importance)),
          ranked_ledger.check_weight('p_w_recency', coalesce(p_w_recency, v_preset.w_recency)),
          ranked_ledger.check_weight('p_w_dependency', coalesce(p_w_dependency, v_preset.w_dependency)),
          ranked_ledger.check_weight('p_w_summary', coalesce(p_w_summary, v_preset.w_summary));
  v_weights := jsonb_build_object(
    'similarity', coalesce(p_w_similarity, v_preset.w_similarity), 'importance', coalesce(p_w_importance, v_preset.w_importance),
    'recency', coalesce(p_w_recency, v_preset.w_recency), 'dependency', coalesce(p_w_dependency, v_preset.w_dependency),
    'summary', coalesce(p_w_summary, v_preset.w_summary), 'penalty', v_preset.penalty);
  return v_weights;
end
$$;

comment on function ranked_ledger.weights_again(text, float8, float8, float8, float8, float8) is
  'The weights by which traces are scored again: those given, the others of the preset; null where nothing is given.';

create or replace function ranked_ledger.trace_items(p_trace_id uuid, p_weights jsonb)
returns jsonb language sql stable
set search_path = public, extensions, pg_temp
as $$
  with item as (
    select i.memory_id, i.rank, i.similarity::float8, i.ranking_score::float8, i.used, i.ignored_reason,
           s.snapshot ->> 'relevance_source' as relevance_source, s.snapshot ->> 'lifecycle_status' as lifecycle_status,
           coalesce(s.snapshot -> 'pinned' = 'true', false) as pinned, s.snapshot -> 'step_index' as step_index,
           ranked_ledger.component_of(s.snapshot, 'relevance') as relevance,
           ranked_ledger.component_of(s.snapshot, 'text_relevance') as text_relevance,
           ranked_ledger.component_of(s.snapshot, 'summary_match') as summary_match,
           ranked_ledger.component_of(s.snapshot, 'importance') as importance,
           ranked_ledger.component_of(s.snapshot, 'recency') as recency,
           ranked_ledger.component_of(s.snapshot, 'dependency_boost') as dependency_boost
    from public.agent_memory_recall_items i
    cross join lateral (
      select case when jsonb_typeof(i.use_policy_snapshot) = 'object' then i.use_policy_snapshot else '{}' end as snapshot) as s
    where i.trace_id = p_trace_id and i.returned),
  scored as (
    select i.*,
           -- an item of a policy without components has no score of ours
           case when p_weights is not null and num_nulls(i.relevance, i.importance, i.recency, i.dependency_boost) = 0
                then ranked_ledger.score(
                  i.relevance, i.importance, i.recency, i.dependency_boost, (p_weights ->> 'similarity')::float8,
                  (p_weights ->> 'importance')::float8, (p_weights ->> 'recency')::float8, (p_weights ->> 'dependency')::float8,
                  coalesce(i.lifecycle_status, 'active') = 'active', coalesce(i.summary_match, 0), (p_weights ->> 'summary')::float8,
                  case when i.lifecycle_status in ('superseded', 'rejected') then 0.30 else (p_weights ->> 'penalty')::float8 end)
           end as score_again
    from item i),
  placed as (
    select s.*, case when s.score_again is not null then row_number() over (
                  order by s.score_again is null, s.pinned desc, s.score_again desc, s.rank, s.memory_id) end as rank_again
    from scored s)
  select coalesce(jsonb_agg(to_jsonb(p) order by p.rank nulls last, p.memory_id), '[]') from placed p
$$;

comment on function ranked_ledger.trace_items(uuid, jsonb) is
  'What a recall returned, by rank: each item with its components, what became of it, and its score and rank under other weights where some are given and it has components.';

create or replace function ranked_ledger.check_traces(p_after jsonb, p_limit int)
returns void language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
begin
  if p_limit is null or p_limit not between 1 and 100 then
    raise sqlstate '22023' using
      message = 'p_limit is not a number from 1 to 100.', hint = 'A trace holds up to 1000 items; ask for the next page.';
  elsif p_after is null then
    return;
  end if;
  begin
    if num_nulls((p_after ->> 'created_at')::timestamptz, (p_after ->> 'request_id')::uuid) = 0 then
      return;
    end if;
  exception when invalid_datetime_format or datetime_field_overflow or invalid_text_representation
                 or invalid_parameter_value then -- the last of a time zone that there is not
    null;
  end;
  raise sqlstate '22023' using
    message = 'p_after is not a cursor: it takes the "next" of the page before.', hint = 'docs/sql-api.md describes recall_traces.';
end
$$;

comment on function ranked_ledger.check_traces(jsonb, int) is 'Refuses (22023) a limit or a cursor that cannot be meant.';

create or replace function public.recall_traces(
  p_workspace_id text, p_since timestamptz default null, p_marked boolean default null, p_after jsonb default null,
  p_limit int default 50, p_preset text default null, p_w_similarity float8 default null, p_w_importance float8 default null,
  p_w_recency float8 default null, p_w_dependency float8 default null, p_w_summary float8 default null)
returns jsonb language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
declare
  v_weights jsonb;
  v_found   jsonb;
begin
  -- guard
  perform ranked_ledger.check_workspace(p_workspace_id);
  perform ranked_ledger.check_traces(p_after, p_limit);
  v_weights := ranked_ledger.weights_again(p_preset, p_w_similarity, p_w_importance, p_w_recency, p_w_dependency, p_w_summary);

  -- find: one more than the page says whether there is a next one
  select coalesce(jsonb_agg(f.document order by f.created_at desc, f.request_id), '[]') into v_found
  from (
    select t.created_at, t.request_id,
           jsonb_build_object(
             'request_id', t.request_id, 'query', t.query, 'created_at', t.created_at,
             'policy', coalesce(t.response_policy ->> 'recall_policy', 'vector'), 'project_id', t.project_id,
             'task_id', t.task_id, 'flow_id', t.flow_id, 'runtime_name', t.runtime_name,
             'arguments', ranked_ledger.kept_arguments(t.request_payload, t.response_policy, t.schema_version),
             'items', ranked_ledger.trace_items(t.id, v_weights)) as document
    from (
      select x.* from public.agent_memory_recall_traces x
      where x.workspace_id = p_workspace_id and (p_since is null or x.created_at >= p_since)
        and (p_marked is null or p_marked = exists (
              select from public.agent_memory_recall_items i where i.trace_id = x.id and i.used is not null))
        and (p_after is null or (x.created_at <= (p_after ->> 'created_at')::timestamptz
              and (x.created_at < (p_after ->> 'created_at')::timestamptz or x.request_id > (p_after ->> 'request_id')::uuid)))
      order by x.created_at desc, x.request_id limit p_limit + 1) as t) as f;

  -- answer
  return jsonb_build_object(
    'traces', (select coalesce(jsonb_agg(e.value order by e.ordinality), '[]')
               from jsonb_array_elements(v_found) with ordinality as e where e.ordinality <= p_limit),
    'weights', v_weights,
    'next', case when jsonb_array_length(v_found) > p_limit then
      jsonb_build_object('created_at', v_found -> (p_limit - 1) -> 'created_at',
                         'request_id', v_found -> (p_limit - 1) -> 'request_id') end);
end
$$;

comment on function public.recall_traces(
  text, timestamptz, boolean, jsonb, int, text, float8, float8, float8, float8, float8) is
  'A page of the recalls of a workspace, the newest first: {"traces": [...], "weights", "next": cursor or null}, each with what it returned and what became of it. With a preset or weights every item also has its score and rank under these.';
