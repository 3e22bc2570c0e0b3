-- Everything that both stores hold about a subject, in one document that a person can read. Each part is one pass of index
-- look-ups, whose plans subject_access fixes for all of them: what statistics say of tables that were empty a moment ago is
-- no guide, and a subject may have five thousand rows. So nothing is left to be joined in another order than it stands in
-- here, or looked up by the organization, of which there are as many rows: each next table comes in a subquery of its own.

create or replace function long_term_memory.memories_held(p_org_id uuid, p_subject_type text, p_subject_id uuid)
returns jsonb language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
begin
  return coalesce((
    select jsonb_agg(to_jsonb(x) order by x.created_at, x.memory_id)
    from (
      select m.id as memory_id, m.workspace_id, m.text, m.author,
             long_term_memory.grade(m.written_by, m.asserted_by) as grade, m.written_by, m.asserted_by,
             m.source_run_id, m.created_date as created_at, m.updated_at, m.expires_at,
             coalesce(m.expires_at <= now(), false) as expired, m.can_use_as_instruction,
             nullif(m.embedding_model, '') as embedding_model, m.redacted_at as erased_at,
             case when m.review_outcome is not null then jsonb_build_object(
               'outcome', m.review_outcome, 'grade', m.review_grade, 'by', m.reviewed_by, 'at', m.reviewed_at) end as review,
             (select coalesce(jsonb_agg(jsonb_build_object(
                       'action', e.action, 'outcome', e.outcome, 'grade', e.grade, 'actor_id', e.actor_id,
                       'asserted_by', e.asserted_by, 'at', e.at, 'note', e.note, 'text_before', e.text_before,
                       'writer_before', e.writer_before)
                       order by e.id), '[]')
              from (select y.* from long_term_memory.memory_events y where y.memory_id = m.id offset 0) as e
              where e.org_id = p_org_id) as history,
             (select coalesce(jsonb_agg(jsonb_build_object(
                       'recall_id', r.id, 'run_id', r.run_id, 'recalled_by', r.recalled_by, 'at', r.at)
                       order by r.at, r.id), '[]')
              from (select y.* from long_term_memory.recall_items y where y.memory_id = m.id offset 0) as i
              cross join lateral (select y.* from long_term_memory.recalls y where y.id = i.recall_id offset 0) as r
              where i.org_id = p_org_id) as read_by
      from long_term_memory.agent_memories m
      where m.org_id = p_org_id and m.subject_type = p_subject_type and m.subject_id = p_subject_id) as x), '[]');
end
$$;

comment on function long_term_memory.memories_held(uuid, text, uuid) is
  'The memories of a subject, erased ones as what is left of them: who wrote each, its review, its history, and the runs that read it.';

-- A question that was said to be about somebody is theirs. One that returned something of several people's may be about any
-- of them: the subject learns that it was asked, and not its words.
create or replace function long_term_memory.recalls_held(p_org_id uuid, p_subject_type text, p_subject_id uuid)
returns jsonb language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
begin
  return coalesce((
    select jsonb_agg(jsonb_build_object(
             'recall_id', r.id, 'run_id', r.run_id, 'recalled_by', r.recalled_by, 'at', r.at, 'also_about', o.others,
             'query', case when o.others = 0 or r.query = ''
                             or (r.arguments ->> 'p_subject_type', r.arguments ->> 'p_subject_id')
                                = (p_subject_type, p_subject_id::text) then r.query end) order by r.at, r.id)
    from long_term_memory.recall_subjects s
    cross join lateral (select x.* from long_term_memory.recalls x where x.id = s.recall_id offset 0) as r
    cross join lateral (
      select count(*) - 1 as others from long_term_memory.recall_subjects x where x.recall_id = r.id) as o
    where s.org_id = p_org_id and s.subject_type = p_subject_type and s.subject_id = p_subject_id), '[]');
end
$$;

comment on function long_term_memory.recalls_held(uuid, text, uuid) is
  'The recalls of memories that returned something about a subject, or were said to be about it. The words of one that is also about others are left out.';

create or replace function long_term_memory.traces_held(p_org_id uuid, p_subject_type text, p_subject_id uuid)
returns jsonb language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
begin
  return coalesce((
    select jsonb_agg(jsonb_build_object(
             'request_id', t.request_id, 'at', t.created_at, 'workspace_id', t.workspace_id, 'project_id', t.project_id,
             'task_id', t.task_id, 'runtime_name', t.runtime_name, 'also_about', o.others,
             'query', case when o.is_theirs or t.query = '' then t.query end,
             'request_payload', case when o.is_theirs or t.request_payload = '{}'
                                     then long_term_memory.readable(t.request_payload) end)
             order by t.created_at, t.id)
    from long_term_memory.trace_subjects s
    cross join lateral (select x.* from public.agent_memory_recall_traces x where x.id = s.trace_id offset 0) as t
    cross join lateral (
      select count(*) - 1 as others,
             count(*) = 1 or coalesce(t.request_payload -> 'subject' = jsonb_build_object(
               'type', p_subject_type, 'id', p_subject_id), false) as is_theirs
      from long_term_memory.trace_subjects x where x.trace_id = t.id) as o
    where s.org_id = p_org_id and s.subject_type = p_subject_type and s.subject_id = p_subject_id
      and (select w.org_id from long_term_memory.workspace_orgs w where w.workspace_id = t.workspace_id::text) = p_org_id), '[]');
end
$$;

comment on function long_term_memory.traces_held(uuid, text, uuid) is
  'The ledger''s traces in workspaces of the organization that returned a decision about a subject, or were said to be about it.';

-- What is nested deeper than JSON readers of several languages follow is shown as text.
create or replace function long_term_memory.readable(p_document jsonb)
returns jsonb language sql immutable parallel safe
return case when p_document @? '$.**{90}'::jsonpath then to_jsonb(p_document::text) else p_document end;

comment on function long_term_memory.readable(jsonb) is 'The document, as text where it is nested too deep to be read.';

-- Hosts differ in these tables, and may lack one, or an index on the column: then it is read once, not once a decision.
create or replace function long_term_memory.rows_beside(p_memory_ids uuid[])
returns jsonb language plpgsql stable
set search_path = public, extensions, pg_temp
set enable_hashjoin = on
as $$
declare
  v_sources text;
  v_rows    jsonb;
begin
  select string_agg(format('select %L as part, u.id as memory_id, to_jsonb(r) as doc from unnest($1) as u (id) join %s r on r.%I = u.id',
                           k.part, a.attrelid::regclass, a.attname), ' union all ' order by k.part)
  into v_sources
  from (values ('source_refs', 'public.agent_memory_source_refs', 'memory_id'),
               ('artifacts', 'public.agent_memory_artifacts', 'memory_id'),
               ('review_actions', 'public.agent_memory_review_actions', 'memory_id'),
               ('history', 'ranked_ledger.lifecycle_transitions', 'memory_id'),
               ('links', 'public.agent_memory_relations', 'from_memory_id'),
               ('links', 'public.agent_memory_relations', 'to_memory_id'),
               ('links', 'public.agent_decision_edges', 'from_memory_id'),
               ('links', 'public.agent_decision_edges', 'to_memory_id')) as k (part, in_table, by_column)
  join pg_attribute a on a.attrelid = to_regclass(k.in_table) and a.attname = k.by_column and not a.attisdropped;
  execute format($q$
    select coalesce(jsonb_object_agg(y.memory_id, y.parts), '{}')
    from (select x.memory_id, jsonb_object_agg(x.part, x.rows) as parts
          from (select d.memory_id, d.part, jsonb_agg(
                         long_term_memory.readable(d.doc - array['id', 'memory_id'])
                         order by coalesce(d.doc ->> 'created_at', d.doc ->> 'changed_at'), d.doc ->> 'id') as rows
                from (%s) as d group by d.memory_id, d.part) as x
          group by x.memory_id) as y $q$, v_sources)
  into v_rows using p_memory_ids;
  return v_rows;
end
$$;

comment on function long_term_memory.rows_beside(uuid[]) is
  'What hangs on decisions: references, artifacts, reviews, history, links, each oldest first, as an object by decision.';

create or replace function long_term_memory.thoughts_beside(p_memory_ids uuid[])
returns jsonb language plpgsql stable
set search_path = public, extensions, pg_temp
set enable_hashjoin = on
as $$
declare
  v_own uuid[];
begin
  execute $q$
    select array_agg(x.thought_id)
    from (select m.thought_id
          from unnest($1) as u (id)
          join public.agent_memories m on m.id = u.id
          join public.agent_memories o on o.thought_id = m.thought_id
          group by m.thought_id having count(*) = 1) as x $q$
  into v_own using p_memory_ids;
  return coalesce((
    select jsonb_object_agg(t.id, jsonb_build_object('content', t.content, 'metadata', long_term_memory.readable(t.metadata)))
    from unnest(v_own) as u (id) join public.thoughts t on t.id = u.id), '{}');
end
$$;

comment on function long_term_memory.thoughts_beside(uuid[]) is
  'The thoughts of decisions, by id, but for those that another memory points to: such words are not theirs alone.';

create or replace function long_term_memory.decision_reads(p_org_id uuid, p_subject_type text, p_subject_id uuid)
returns jsonb language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
begin
  return (
    select coalesce(jsonb_object_agg(x.memory_id, x.reads), '{}')
    from (select i.memory_id, jsonb_agg(jsonb_build_object(
                   'request_id', t.request_id, 'at', t.created_at, 'runtime_name', t.runtime_name, 'task_id', t.task_id,
                   'used', i.used, 'ignored_reason', i.ignored_reason) order by t.created_at, t.id) as reads
          from long_term_memory.trace_subjects s
          cross join lateral (select y.* from public.agent_memory_recall_traces y where y.id = s.trace_id offset 0) as t
          cross join lateral (select y.* from public.agent_memory_recall_items y where y.trace_id = t.id offset 0) as i
          where s.org_id = p_org_id and s.subject_type = p_subject_type and s.subject_id = p_subject_id
            and (select w.org_id from long_term_memory.workspace_orgs w where w.workspace_id = t.workspace_id::text) = p_org_id
            and (select d.org_id from long_term_memory.decision_subjects d
                 where d.memory_id = i.memory_id and d.subject_type = p_subject_type and d.subject_id = p_subject_id) = p_org_id
          group by i.memory_id) as x);
end
$$;

comment on function long_term_memory.decision_reads(uuid, text, uuid) is
  'Which recalls returned each of a subject''s decisions and what became of it, as an object by decision. By the traces: hosts have an index on those.';

-- What a host's table of memories has besides, whatever its columns: none of vectors and lexemes, which nobody can read.
create or replace function long_term_memory.known_columns()
returns text[] language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
begin
  return array(
    select a.attname from pg_attribute a join pg_type t on t.oid = a.atttypid
    where a.attrelid = to_regclass('public.agent_memories') and a.attnum > 0
      and (t.typname in ('vector', 'halfvec', 'sparsevec', 'tsvector', 'bytea') or a.attname in (
        'id', 'thought_id', 'workspace_id', 'project_id', 'task_id', 'flow_id', 'memory_type', 'summary', 'content',
        'lifecycle_status', 'review_status', 'visibility', 'can_use_as_instruction', 'created_by', 'created_at',
        'updated_at', 'metadata')));
end
$$;

comment on function long_term_memory.known_columns() is
  'Columns of agent_memories that a decision''s document has under their own names, or leaves out.';

create or replace function long_term_memory.decisions_held(p_org_id uuid, p_subject_type text, p_subject_id uuid)
returns jsonb language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
declare
  v_ids      uuid[] := array(
    select s.memory_id
    from long_term_memory.decision_subjects s
    where s.org_id = p_org_id and s.subject_type = p_subject_type and s.subject_id = p_subject_id
      and (select w.org_id from long_term_memory.workspace_orgs w where w.workspace_id = (
             select m.workspace_id::text from public.agent_memories m where m.id = s.memory_id)) = p_org_id);
  v_known    text[] := long_term_memory.known_columns();
  v_beside   jsonb;
  v_thoughts jsonb;
  v_reads    jsonb;
begin
  if v_ids = '{}' then
    return '[]';
  end if;
  v_beside := long_term_memory.rows_beside(v_ids);
  v_thoughts := long_term_memory.thoughts_beside(v_ids);
  v_reads := long_term_memory.decision_reads(p_org_id, p_subject_type, p_subject_id);
  return (
    select jsonb_agg(jsonb_build_object(
             'memory_id', m.id, 'workspace_id', m.workspace_id, 'project_id', m.project_id, 'task_id', m.task_id,
             'flow_id', m.flow_id, 'step_index', l.step_index, 'memory_type', m.memory_type, 'summary', m.summary,
             'content', m.content, 'rationale', l.rationale, 'alternatives', l.alternatives,
             'importance', l.importance::float8, 'pinned', l.pinned, 'lifecycle_status', m.lifecycle_status,
             'review_status', m.review_status, 'visibility', m.visibility, 'created_by', m.created_by,
             'created_at', m.created_at, 'updated_at', m.updated_at, 'attributed_at', s.attributed_at,
             'erased_at', s.erased_at, 'erased_with_other', s.erased_with_other,
             'also_about', (select count(*) - 1 from long_term_memory.decision_subjects o
                            where o.memory_id = m.id and o.org_id = p_org_id),
             'metadata', long_term_memory.readable(m.metadata),
             -- the workspaces that it was moved from may be another organization's
             'ledger_metadata', long_term_memory.readable(
               case when jsonb_typeof(l.metadata) = 'object' then l.metadata - 'moves' else l.metadata end),
             'host_columns', long_term_memory.readable(jsonb_strip_nulls(to_jsonb(m) - v_known)),
             'thought', v_thoughts -> m.thought_id::text,
             'enrolment_failure', (select f.reason from ranked_ledger.enrolment_failures f where f.memory_id = m.id),
             'read_by', coalesce(v_reads -> m.id::text, '[]'))
             || '{"source_refs": [], "artifacts": [], "review_actions": [], "history": [], "links": []}'
             || coalesce(v_beside -> m.id::text, '{}') order by m.created_at, m.id)
    from unnest(v_ids) as u (id)
    cross join lateral (select x.* from public.agent_memories x where x.id = u.id offset 0) as m
    cross join lateral (
      select x.* from long_term_memory.decision_subjects x
      where x.memory_id = u.id and x.subject_type = p_subject_type and x.subject_id = p_subject_id offset 0) as s
    left join lateral (select x.* from public.agent_decision_ledger x where x.memory_id = u.id offset 0) as l on true);
end
$$;

comment on function long_term_memory.decisions_held(uuid, text, uuid) is
  'The decisions that are attributed to a subject, in workspaces that belong to the organization now, with everything that hangs on them. Whom else one is about is counted, not named.';

create or replace function long_term_memory.erasures_held(p_org_id uuid, p_subject_type text, p_subject_id uuid)
returns jsonb language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
begin
  return coalesce((
    select jsonb_agg(jsonb_build_object(
             'receipt_id', e.id, 'erased_at', e.erased_at, 'grade', e.grade, 'actor_id', e.actor_id,
             'asserted_by', e.asserted_by, 'counts', e.counts) order by e.erased_at, e.id)
    from long_term_memory.erasures e
    where e.org_id = p_org_id and e.subject_type = p_subject_type and e.subject_id = p_subject_id), '[]');
end
$$;

comment on function long_term_memory.erasures_held(uuid, text, uuid) is 'The receipts of a subject''s erasures.';

create or replace function long_term_memory.access_notes(p_decisions jsonb, p_recalls jsonb)
returns jsonb language sql stable
set search_path = public, extensions, pg_temp
as $$
  select coalesce(jsonb_agg(n.sentence order by n.place), '[]')
  from (
    select 1, 'The decision ledger is not installed in this project: decisions are neither looked for nor shown.'
    where not long_term_memory.has_ledger()
    union all
    select 2, format('Recalls that returned something about others too: %s. Their words are left out, since they may be about '
                     'those.', count(*))
    from jsonb_array_elements(p_recalls) as r where r.value ->> 'query' is null having count(*) > 0
    union all
    select 3, format('Decisions that are about others too: %s. Their words may name them: look before this is handed over.', count(*))
    from jsonb_array_elements(p_decisions) as d where (d.value ->> 'also_about')::int > 0 having count(*) > 0
    union all
    select 4, format('Decisions that were erased for somebody else whom they were about as well: %s.', count(*))
    from jsonb_array_elements(p_decisions) as d where (d.value ->> 'erased_with_other')::boolean having count(*) > 0
    union all
    select 5, format('Row level security is forced on %s, also for %I, who reads: what is shown there may not be all.',
                     string_agg(t.name, ', '), current_user)
    from unnest(array['public.agent_memories', 'public.agent_memory_recall_traces', 'public.agent_memory_recall_items',
                      'public.agent_memory_source_refs', 'public.agent_memory_artifacts', 'public.thoughts',
                      'public.agent_memory_review_actions', 'public.agent_memory_relations']) as t (name)
    where long_term_memory.has_ledger() and row_security_active(to_regclass(t.name)::oid)
    having count(*) > 0) as n (place, sentence)
$$;

comment on function long_term_memory.access_notes(jsonb, jsonb) is 'What a reader of the document has to know, in sentences.';

create or replace function long_term_memory.subject_access(p_org_id uuid, p_subject_type text, p_subject_id uuid)
returns jsonb language plpgsql security definer
set search_path = public, extensions, pg_temp
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_caller    long_term_memory.caller := long_term_memory.admit(
    p_org_id, '{admin,owner}', long_term_memory.is_caller(p_subject_type, p_subject_id));
  v_memories  jsonb;
  v_recalls   jsonb;
  v_erasures  jsonb;
  v_decisions jsonb := '[]';
  v_traces    jsonb := '[]';
begin
  -- guard
  perform long_term_memory.check_subject(p_subject_type, p_subject_id);
  if p_subject_id is null then
    raise sqlstate 'RL474' using message = 'A subject access needs its subject.', hint = 'Give subject_id.';
  end if;

  -- read: an erasure that is under way is waited for, so that the document is from before it or from after it
  perform long_term_memory.share_subject(p_org_id, p_subject_type, p_subject_id);
  v_memories := long_term_memory.memories_held(p_org_id, p_subject_type, p_subject_id);
  v_recalls := long_term_memory.recalls_held(p_org_id, p_subject_type, p_subject_id);
  v_erasures := long_term_memory.erasures_held(p_org_id, p_subject_type, p_subject_id);
  if long_term_memory.has_ledger() then
    v_decisions := long_term_memory.decisions_held(p_org_id, p_subject_type, p_subject_id);
    v_traces := long_term_memory.traces_held(p_org_id, p_subject_type, p_subject_id);
  end if;

  -- note: a stranger about whom nothing is held leaves nothing behind, in whatever organization
  if long_term_memory.org_exists(p_org_id) and (
    v_caller.kind = 'service' or v_caller.role is not null
    or '[]' <> any (array[v_memories, v_recalls, v_erasures, v_decisions, v_traces])) then
    insert into long_term_memory.audit_events (org_id, kind, actor_id, payload)
    values (p_org_id, 'subject_access', v_caller.user_id, jsonb_build_object(
      'subject_type', p_subject_type, 'subject_id', p_subject_id,
      'memories', jsonb_array_length(v_memories), 'decisions', jsonb_array_length(v_decisions)));
  end if;

  -- answer
  return jsonb_build_object(
    'subject', jsonb_build_object('type', p_subject_type, 'id', p_subject_id), 'org_id', p_org_id, 'as_of', now(),
    'memories', v_memories, 'decisions', v_decisions, 'recalls', v_recalls, 'traces', v_traces, 'erasures', v_erasures,
    'notes', long_term_memory.access_notes(v_decisions, v_recalls || v_traces));
end
$$;

comment on function long_term_memory.subject_access(uuid, text, uuid) is
  'The inner half of public.subject_access, for admins and owners, the person themself, and the service.';

create or replace function public.subject_access(p_org_id uuid, p_subject_type text, p_subject_id uuid)
returns jsonb language sql
set search_path = public, extensions, pg_temp
set statement_timeout = '60s' -- of a person about whom much is held; the API takes it over for the request
as $$ select long_term_memory.subject_access(p_org_id, p_subject_type, p_subject_id) $$;

comment on function public.subject_access(uuid, text, uuid) is
  'Everything that both stores hold about a subject in an organization, as one document that a person can read.';
