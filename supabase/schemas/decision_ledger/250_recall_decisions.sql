-- Writes what a recall returned. Answers whether it could: a recall never fails because its trace does.
create or replace function ranked_ledger.write_trace(
  p_request_id uuid, p_workspace_id text, p_project_id text, p_task_id text, p_flow_id text, p_runtime_name text,
  p_query text, p_arguments jsonb, p_policy text, p_packed jsonb)
returns boolean language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_trace_id uuid;
begin
  insert into public.agent_memory_recall_traces (
    request_id, workspace_id, project_id, task_id, flow_id, runtime_name, query, schema_version, request_payload, response_policy)
  values (p_request_id, p_workspace_id, p_project_id, p_task_id, p_flow_id, p_runtime_name, coalesce(p_query, ''),
          'ranked_ledger.recall.v1', p_arguments,
          jsonb_build_object('recall_policy', p_policy, 'max_items', p_arguments -> 'p_match_count',
                             'shortened', p_packed -> 'shortened', 'dropped', p_packed -> 'dropped'))
  on conflict (request_id) do nothing
  returning id into v_trace_id;
  if v_trace_id is null then
    return true; -- the same request at the same time has left the trace
  end if;
  perform ranked_ledger.tie_trace(v_trace_id, p_workspace_id, p_arguments -> 'subject');

  -- a decision that was forgotten since it was found must not cost the others their trace
  perform 1 from public.agent_memories m
  where m.id in (select (h.value ->> 'memory_id')::uuid from jsonb_array_elements(p_packed -> 'hits') as h)
  order by m.id for key share;
  insert into public.agent_memory_recall_items (trace_id, memory_id, rank, similarity, ranking_score, returned, use_policy_snapshot)
  select v_trace_id, (h.value ->> 'memory_id')::uuid, (h.value ->> 'rank')::int,
         -- within the host's column ranges; a null stays null, which least and greatest alone would turn into a bound
         case when h.value ->> 'similarity' is not null
              then least(1, greatest(-1, (h.value ->> 'similarity')::float8))::numeric(5, 4) end,
         least(999.9999, greatest(-999.9999, (h.value ->> 'ranking_score')::float8))::numeric(7, 4), true,
         jsonb_build_object('recall_policy', p_policy) || (
           select jsonb_object_agg(k.key, k.value) from jsonb_each(h.value) as k
           where k.key in ('relevance', 'relevance_source', 'text_relevance', 'summary_match', 'importance', 'recency',
                           'dependency_boost', 'step_index', 'step_distance', 'live_dependents', 'pinned', 'lifecycle_status',
                           'shortened'))
  from jsonb_array_elements(p_packed -> 'hits') as h
  join public.agent_memories m on m.id = (h.value ->> 'memory_id')::uuid;

  insert into public.agent_memory_audit_events (
    event_type, workspace_id, project_id, trace_id, actor_kind, runtime_name, task_id, payload)
  values ('recall_requested', p_workspace_id, p_project_id, v_trace_id, 'agent', p_runtime_name, p_task_id,
          jsonb_build_object('recall_policy', p_policy, 'returned', jsonb_array_length(p_packed -> 'hits')));

  -- a look into the past is no use of a decision now
  if coalesce(p_arguments ->> 'p_as_of_step', p_arguments ->> 'p_as_of') is null then
    perform ranked_ledger.count_recalls(
      array(select (h.value ->> 'memory_id')::uuid from jsonb_array_elements(p_packed -> 'hits') as h), 1, 0);
  end if;
  return true;
exception when others then
  raise warning 'Ranked Ledger: the trace of a recall was not written (%)', sqlerrm;
  return false;
end
$$;

comment on function ranked_ledger.write_trace(uuid, text, text, text, text, text, text, jsonb, text, jsonb) is
  'The trace of a recall, its items, one audit event, and, unless it is as of a moment, the recall counters. False where it could not be written.';

-- A host's own function writes the trace and goes on with its own rows. Asking for them, and for the count, would be two
-- requests more, and they would take longer than what ranks.
do $do$
begin
  if to_regprocedure('ranked_ledger.hand_over(jsonb, boolean)') is not null then
    execute 'drop function ranked_ledger.hand_over(jsonb, boolean)';
  end if;
end
$do$;

create or replace function ranked_ledger.hand_over(p_hits jsonb)
returns jsonb language plpgsql
set search_path = public, extensions, pg_temp
set lock_timeout = '2s' -- somebody may keep a ledger row locked for as long as it likes; the answer does not wait for the count
as $$
declare
  v_ids uuid[] := array(select (h.value ->> 'memory_id')::uuid from jsonb_array_elements(p_hits) as h);
begin
  begin
    perform ranked_ledger.count_recalls(v_ids, 1, 0);
  exception when others then
    raise warning 'Ranked Ledger: a recall was not counted (%)', sqlerrm;
  end;
  return (select coalesce(jsonb_agg(to_jsonb(m)), '[]') from public.agent_memories m where m.id = any (v_ids));
end
$$;

comment on function ranked_ledger.hand_over(jsonb) is
  'Counts a recall whose trace is the host''s to write, where it can be counted, and answers the rows of agent_memories of its hits.';

create or replace function ranked_ledger.recall_hint(p_workspace_id text)
returns text language sql stable
set search_path = public, extensions, pg_temp
as $$
  select case when exists (select from public.agent_decision_ledger l
                           where l.workspace_id = p_workspace_id and l.set_aside_at is null)
              then 'No decision is in scope: look at project, task and lifecycle (p_include_superseded shows retired ones).'
              else 'This workspace has no decisions yet. Workspace names are exact; ledger_status lists them.' end
$$;

comment on function ranked_ledger.recall_hint(text) is 'Why an answer may be empty, and what to do.';

-- The host goes on with rows of agent_memories, and those are of today: beside a line of then they would say something else.
create or replace function ranked_ledger.check_host(p_trace_by_host boolean, p_as_of_step int, p_as_of timestamptz)
returns void language plpgsql immutable
set search_path = public, extensions, pg_temp
as $$
begin
  if p_trace_by_host and coalesce(p_as_of_step::text, p_as_of::text) is not null then
    raise sqlstate '22023' using
      message = 'p_trace_by_host is given with p_as_of_step or p_as_of, and its memories are those of now',
      hint = 'Leave p_trace_by_host out for a recall as of a moment; p_trace false leaves no trace.';
  end if;
end
$$;

comment on function ranked_ledger.check_host(boolean, int, timestamptz) is
  'Refuses (22023) to hand the memories of a past recall to a host.';

-- An overload that stays makes PostgREST answer 300.
do $do$
declare
  v_function record;
begin
  for v_function in
    select p.oid::regprocedure as name from pg_proc p
    where p.pronamespace = 'public'::regnamespace and p.proname = 'recall_decisions' and p.pronargs <> 36
  loop
    execute format('drop function %s', v_function.name);
  end loop;
end
$do$;

-- A time is written in UTC, whatever zone the caller's session is in, so that two of the same moment are the same text.
create or replace function ranked_ledger.arguments_in_force(
  p_question ranked_ledger.question, p_max_tokens int, p_embedding_model text)
returns jsonb language sql immutable
set search_path = public, extensions, pg_temp
set timezone = 'UTC'
as $$
  select jsonb_build_object(
    'p_project_id', q.project_id, 'p_task_id', q.task_id, 'p_current_step', q.current_step, 'p_match_count', q.match_count,
    'p_w_similarity', q.w_similarity, 'p_w_importance', q.w_importance, 'p_w_recency', q.w_recency,
    'p_w_dependency', q.w_dependency, 'p_half_life_steps', q.half_life, 'p_dependency_saturation', q.saturation,
    'p_include_superseded', q.with_retired, 'p_only_confirmed', q.only_confirmed, 'p_include_personal', q.with_personal,
    'p_include_stale', q.with_stale, 'p_min_relevance', q.min_relevance, 'p_similarity_floor', q.floor,
    'p_similarity_ceiling', q.ceiling, 'p_fusion', q.fusion, 'p_fusion_weight', q.fusion_weight, 'p_exact', q.exact,
    'p_preset', q.preset, 'p_w_summary', q.w_summary,
    'p_as_of_step', q.as_of_step, 'p_as_of', case when q.as_of_step is null then q.as_of end, -- the time of a step is ours
    'p_max_tokens', p_max_tokens, 'p_embedding_model', p_embedding_model, 'has_text', q.has_text)
  from (select (p_question).*) as q
$$;

comment on function ranked_ledger.arguments_in_force(ranked_ledger.question, int, text) is
  'What a recall was asked, as its answer and its trace tell it: after defaults, without the words and the vector.';

-- A host's own function keeps the arguments beside its policy: its payload is the request that it was sent, words included.
create or replace function ranked_ledger.kept_arguments(p_request_payload jsonb, p_response_policy jsonb, p_schema_version text)
returns jsonb language sql immutable parallel safe
return case when jsonb_typeof(p_response_policy -> 'arguments') = 'object' then p_response_policy -> 'arguments'
            when jsonb_typeof(p_request_payload) = 'object' and p_schema_version = 'ranked_ledger.recall.v1' then p_request_payload
            else '{}' end;

comment on function ranked_ledger.kept_arguments(jsonb, jsonb, text) is
  'The arguments in force of a recall, as its trace keeps them; {} where it keeps none.';

-- A repeat asks the same of the same workspace: the trace of one question must not stand for the answer to another.
create or replace function ranked_ledger.is_repeat(
  p_trace jsonb, p_workspace_id text, p_query text, p_subject jsonb, p_preset text, p_as_of_step int, p_as_of timestamptz)
returns boolean language plpgsql stable
set search_path = public, extensions, pg_temp
set timezone = 'UTC' -- as in arguments_in_force
as $$
declare
  v_kept jsonb := ranked_ledger.kept_arguments(
    p_trace -> 'request_payload', p_trace -> 'response_policy', p_trace ->> 'schema_version');
begin
  return (p_trace ->> 'workspace_id', p_trace ->> 'query') = (p_workspace_id, coalesce(p_query, ''))
     and p_trace -> 'request_payload' -> 'subject' is not distinct from p_subject
     and jsonb_build_array(coalesce(v_kept ->> 'p_preset', 'published'), v_kept -> 'p_as_of_step', v_kept -> 'p_as_of')
         = jsonb_build_array(coalesce(p_preset, 'published'), p_as_of_step, p_as_of);
end
$$;

comment on function ranked_ledger.is_repeat(jsonb, text, text, jsonb, text, int, timestamptz) is
  'Whether a trace is of the same question: workspace, words, subject, preset and moment.';

create or replace function public.recall_decisions(
  p_workspace_id text, p_query text default null, p_query_embedding text default null,
  p_project_id text default null, p_task_id text default null, p_current_step int default null, p_match_count int default 10,
  p_w_similarity float8 default null, p_w_importance float8 default null, p_w_recency float8 default null,
  p_w_dependency float8 default null, p_half_life_steps float8 default null, p_dependency_saturation float8 default null,
  p_include_superseded boolean default false, p_only_confirmed boolean default false,
  p_include_personal boolean default true, p_include_stale boolean default null, p_min_relevance float8 default null,
  p_similarity_floor float8 default null, p_similarity_ceiling float8 default null, p_fusion text default null,
  p_fusion_weight float8 default null, p_embedding_model text default null, p_exact boolean default true,
  p_max_tokens int default null, p_request_id uuid default null, p_trace boolean default true,
  p_policy text default 'ranked_ledger', p_flow_id text default null, p_runtime_name text default null,
  p_trace_by_host boolean default false, p_subject jsonb default null,
  p_preset text default 'published', p_w_summary float8 default null, p_as_of_step int default null,
  p_as_of timestamptz default null)
returns jsonb language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_request_id uuid := coalesce(p_request_id, gen_random_uuid());
  v_trace      jsonb; -- of an earlier recall with the same id
  v_question   ranked_ledger.question;
  v_arguments  jsonb;
  v_ranked     record;
  v_packed     jsonb;
  v_traced     boolean := false;
  v_subject    jsonb := ranked_ledger.recall_subject(p_subject, p_trace_by_host);
begin
  perform ranked_ledger.check_recall(p_workspace_id, p_policy, p_max_tokens);
  perform ranked_ledger.check_host(p_trace_by_host, p_as_of_step, p_as_of);
  perform ranked_ledger.check_recall_names(
    jsonb_build_object('p_workspace_id', p_workspace_id, 'p_project_id', p_project_id, 'p_task_id', p_task_id),
    jsonb_build_object('p_flow_id', p_flow_id, 'p_runtime_name', p_runtime_name, 'p_embedding_model', p_embedding_model));
  select to_jsonb(t) into v_trace from public.agent_memory_recall_traces t where t.request_id = v_request_id;
  if found and ranked_ledger.is_repeat(v_trace, p_workspace_id, p_query, v_subject -> 'subject', p_preset, p_as_of_step, p_as_of)
               is not true then
    raise sqlstate 'RL409' using message = 'this request id is in use', hint = 'Draw a new request id for each recall.';
  end if;

  perform ranked_ledger.catch_up(p_workspace_id);

  v_question := ranked_ledger.at_moment(ranked_ledger.ask(
    p_workspace_id, p_query, ranked_ledger.vector_of(p_query_embedding), p_project_id, p_task_id, p_current_step,
    p_match_count, p_w_similarity, p_w_importance, p_w_recency, p_w_dependency, p_half_life_steps, p_dependency_saturation,
    p_include_superseded, p_only_confirmed, p_include_personal, p_include_stale, p_min_relevance, p_similarity_floor,
    p_similarity_ceiling, p_fusion, p_fusion_weight, p_embedding_model, p_exact, p_preset, p_w_summary),
    p_as_of_step, p_as_of);
  v_arguments := ranked_ledger.arguments_in_force(v_question, p_max_tokens, p_embedding_model)
                 || jsonb_build_object('has_embedding', p_query_embedding is not null) || v_subject;
  v_ranked := ranked_ledger.rank(v_question);
  v_packed := ranked_ledger.pack_hits((
    select coalesce(jsonb_agg(h.document order by d.ordinality), '[]')
    from unnest(v_ranked.decisions) with ordinality as d
    cross join lateral ranked_ledger.hit_document(to_jsonb(d), d.memory_id, ranked_ledger.moment_of(v_question)) as h (document)
    where h.document is not null), p_max_tokens); -- one that was forgotten since it was ranked

  if v_trace is not null then
    v_traced := true;
  elsif p_trace_by_host then
    v_packed := v_packed || jsonb_build_object('memories', ranked_ledger.hand_over(v_packed -> 'hits'));
  elsif coalesce(p_trace, true) then
    v_traced := ranked_ledger.write_trace(v_request_id, p_workspace_id, p_project_id, p_task_id, p_flow_id, p_runtime_name,
                                          p_query, v_arguments, p_policy, v_packed);
  end if;

  return v_packed || jsonb_build_object(
    'request_id', v_request_id, 'exact', v_ranked.exact, 'policy', p_policy, 'arguments', v_arguments, 'traced', v_traced,
    'replayed', v_trace is not null,
    'hint', case when cardinality(v_ranked.decisions) > 0 then null
                 when v_question.as_of is null then ranked_ledger.recall_hint(p_workspace_id)
                 else 'No decision was there and in scope then: look at the moment, project, task and lifecycle.' end);
end
$$;

comment on function public.recall_decisions(
  text, text, text, text, text, int, int, float8, float8, float8, float8, float8, float8, boolean, boolean, boolean, boolean,
  float8, float8, float8, text, float8, text, boolean, int, uuid, boolean, text, text, text, boolean, jsonb, text, float8, int,
  timestamptz) is
  'Ranked recall as SDK, CLI and edge call it: ranked as match_decision_ledger ranks, packed into a token budget, its trace, items, audit event and counters written. Answers {request_id, hits, shortened, dropped, exact, policy, arguments, traced, replayed, hint}, and memories where the trace is the host''s to write.';
