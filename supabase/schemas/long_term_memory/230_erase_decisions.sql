-- An erasure in the ledger. A decision keeps its place: ids, step, importance, edges, lifecycle; none of its words.
-- Everybody locks in one order, so that an erasure neither meets a deadlock nor causes one: standings, traces, memories, edges,
-- relations, items, ledger rows, each by its key. Standings come first since nobody else waits for one: who finds it held
-- leaves a mark. Ledger rows come last since a recall counts in them, with all that it has written in its hands.

create or replace function long_term_memory.attributed_decisions(
  p_org_id uuid, p_subject_type text, p_subject_id uuid, p_workspaces text[])
returns uuid[] language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
begin
  return array(
    select m.id from long_term_memory.decision_subjects s
    join public.agent_memories m on m.id = s.memory_id and m.workspace_id::text = any (p_workspaces)
    where s.org_id = p_org_id and s.subject_type = p_subject_type and s.subject_id = p_subject_id order by m.id);
end
$$;

comment on function long_term_memory.attributed_decisions(uuid, text, uuid, text[]) is
  'The decisions about a subject, in workspaces that belong to the organization now; erased ones too.';

-- Who writes something down beside a decision holds its key until the commit. The lock that waits for that is given back: kept,
-- it would refuse a host's transaction under an older snapshot.
create or replace function long_term_memory.await_writers(p_decisions uuid[])
returns void language plpgsql
set search_path = public, extensions, pg_temp
as $$
begin
  perform from public.agent_memories m where m.id = any (p_decisions) order by m.id for update;
  raise sqlstate 'RLGOT';
exception when sqlstate 'RLGOT' then
  null;
end
$$;

comment on function long_term_memory.await_writers(uuid[]) is
  'Waits for the transactions that have written something beside these decisions and are not committed yet.';

create or replace function long_term_memory.lock_decisions(p_touched uuid[], p_traces uuid[])
returns void language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_held   int[];
  v_before int[];
begin
  loop -- a recall may have made a standing anew while it was waited for: that one is seen by the next statement
    v_before := v_held;
    v_held := array(select h.row_no from (
      select s.row_no from ranked_ledger.standings s where s.memory_id = any (p_touched) order by s.memory_id for update) as h);
    exit when v_held = v_before;
  end loop;
  perform from public.agent_memory_recall_traces t where t.id = any (p_traces) order by t.id for no key update;
  perform long_term_memory.await_writers(p_touched);
  perform from public.agent_memories m where m.id = any (p_touched) order by m.id for no key update;
  perform from public.agent_memories m -- the others whose items change: a forget deletes the items of one in no order
  where m.id in (select i.memory_id from public.agent_memory_recall_items i where i.trace_id = any (p_traces))
  order by m.id for key share;
  perform from public.agent_decision_edges e
  where e.from_memory_id = any (p_touched) or e.to_memory_id = any (p_touched) order by e.id for no key update;
  perform from public.agent_memory_relations r
  where r.from_memory_id = any (p_touched) or r.to_memory_id = any (p_touched) order by r.id for no key update;
  perform from public.agent_memory_recall_items i
  where i.memory_id = any (p_touched) or i.trace_id = any (p_traces) order by i.trace_id, i.memory_id for no key update;
  perform from public.agent_decision_ledger l where l.memory_id = any (p_touched) order by l.memory_id for no key update;
end
$$;

comment on function long_term_memory.lock_decisions(uuid[], uuid[]) is
  'Locks decisions and traces, with what hangs on them, for an erasure.';

-- Which policy ranked, whether it went by words, and whether a use was counted, are no words: statistics rest on them, and a
-- use is counted once.
create or replace function long_term_memory.kept_facts(p_document jsonb)
returns jsonb language sql immutable parallel safe
set search_path = public, extensions, pg_temp
as $$
  select case when p_document is not null then coalesce(jsonb_object_agg(o.key, o.value), '{}') end
  from jsonb_each(case when jsonb_typeof(p_document) = 'object' then p_document else '{}' end) as o
  where o.key = 'recall_policy' and o.value #>> '{}' ~ '^[a-z0-9_.:-]{1,100}$'
     or o.key = 'relevance_source' and o.value #>> '{}' in ('cosine', 'fts', 'none')
     or o.key = 'max_items' and jsonb_typeof(o.value) = 'number'
     or o.key = 'usage_counted' and jsonb_typeof(o.value) = 'boolean'
$$;

comment on function long_term_memory.kept_facts(jsonb) is
  'What stays of a trace''s policy and of an item''s snapshot: recall_policy, relevance_source, max_items, usage_counted.';

create or replace function long_term_memory.empty_decisions(p_decisions uuid[])
returns uuid[] language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_mark constant text := $e$'[erased]'$e$;
  v_text    jsonb;
  v_changed uuid[];
  v_rows    uuid[];
begin
  -- a host's unique index over a text would refuse the second mark
  select jsonb_object_agg(w.name::text, case when w.is_unique then $e$('[erased] ' || t.id)$e$ else v_mark end) into v_text
  from long_term_memory.word_columns('public.agent_memories') w where w.name in ('content', 'summary');
  v_changed := long_term_memory.empty_rows(
    'public.agent_memories', 'id', p_decisions,
    '{visibility,memory_type,provenance_status,created_by,runtime_name,runtime_version,provider,model,review_status}',
    v_text || jsonb_build_object('thought_id', 'null', 'can_use_as_instruction', 'false', 'lifecycle_status',
      $e$case when t.lifecycle_status = 'superseded' then t.lifecycle_status else 'rejected' end$e$))::uuid[];
  v_rows := long_term_memory.empty_rows(
    'public.agent_decision_ledger', 'memory_id', p_decisions, '{}',
    jsonb_build_object('pinned', 'false', 'search_lexemes', $e$ranked_ledger.decision_lexemes(
      ranked_ledger.text_config(t.workspace_id),
      (select m.content from public.agent_memories m where m.id = t.memory_id), null,
      (select m.summary from public.agent_memories m where m.id = t.memory_id))$e$),
    'updated_at = now()');
  return array(
    select unnest(v_changed)
    union
    select l.memory_id from public.agent_decision_ledger l where l.id = any (v_rows));
end
$$;

comment on function long_term_memory.empty_decisions(uuid[]) is
  'Takes the words out of decisions and their ledger rows, unlinks their thoughts, and rejects those that are not superseded. Answers which changed.';

create or replace function long_term_memory.empty_surroundings(p_decisions uuid[])
returns jsonb language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_reviews int;
  v_events  int;
begin
  delete from public.agent_memory_source_refs s where s.memory_id = any (p_decisions);
  delete from public.agent_memory_artifacts a where a.memory_id = any (p_decisions);
  delete from ranked_ledger.enrolment_failures f where f.memory_id = any (p_decisions); -- a reason may quote the text
  perform long_term_memory.empty_rows('public.agent_memory_relations', e.name, p_decisions, '{relation}'),
          long_term_memory.empty_rows('public.agent_decision_edges', e.name, p_decisions, '{relation}')
  from unnest(array['from_memory_id', 'to_memory_id']::name[]) as e (name);
  v_reviews := cardinality(long_term_memory.empty_rows(
    'public.agent_memory_review_actions', 'memory_id', p_decisions, '{action,actor_id}'));
  perform long_term_memory.empty_rows('ranked_ledger.lifecycle_transitions', 'memory_id', p_decisions,
                                      '{lifecycle_before,lifecycle_status}');
  perform long_term_memory.empty_rows( -- statistics ask whether there is a reason
    'public.agent_memory_recall_items', 'memory_id', p_decisions, '{}',
    jsonb_build_object('use_policy_snapshot', 'long_term_memory.kept_facts(t.use_policy_snapshot)',
                       'ignored_reason', $e$case when t.ignored_reason is not null then '[erased]' end$e$));
  v_events := long_term_memory.empty_audit('memory_id', p_decisions);
  return jsonb_build_object('reviews', v_reviews, 'audit_events', v_events);
end
$$;

comment on function long_term_memory.empty_surroundings(uuid[]) is
  'Takes the words out of what hangs on decisions: sources and artifacts, relations, reviews, history, items of recalls, audit. Answers how many: reviews, audit_events.';

-- What an erasure itself has written says ids alone, and stays.
create or replace function long_term_memory.empty_audit(p_by name, p_ids uuid[])
returns int language plpgsql
set search_path = public, extensions, pg_temp
as $$
begin
  return cardinality(long_term_memory.empty_rows(
    'public.agent_memory_audit_events', p_by, p_ids, '{event_type,actor_kind,runtime_name,task_id}',
    jsonb_build_object('payload', $e$case
      when t.payload is null or t.payload ->> 'erasure_id' ~ '^[0-9a-f-]{36}$' and t.payload = jsonb_build_object(
             'kind', 'decision_erased', 'memory_id', t.memory_id, 'erasure_id', t.payload -> 'erasure_id')
        then t.payload else '{}' end$e$)));
end
$$;

comment on function long_term_memory.empty_audit(name, uuid[]) is
  'Takes payloads and labels out of audit events, by memory_id or trace_id. Answers how many changed.';

create or replace function long_term_memory.drop_thoughts(p_thoughts uuid[])
returns jsonb language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_thought uuid;
  v_deleted int := 0;
  v_lonely  uuid[];
begin
  -- the lock waits for a writer who is just pointing a memory at one; the next statement sees that memory
  perform from public.thoughts t where t.id = any (p_thoughts) order by t.id for update;
  v_lonely := array(
    select t.id from public.thoughts t
    where t.id = any (p_thoughts) and not exists (select from public.agent_memories m where m.thought_id = t.id) order by t.id);
  begin
    delete from public.thoughts t where t.id = any (v_lonely);
    get diagnostics v_deleted = row_count;
  exception when foreign_key_violation then -- a table of the host's refers to one: that one stays, empty
    foreach v_thought in array v_lonely loop
      begin
        delete from public.thoughts t where t.id = v_thought;
      exception when foreign_key_violation then
        perform long_term_memory.empty_rows('public.thoughts', 'id', array[v_thought], '{}', (
          select jsonb_build_object('content', case when w.is_unique then $e$('[erased] ' || t.id)$e$ else $e$'[erased]'$e$ end)
          from long_term_memory.word_columns('public.thoughts') w where w.name = 'content'));
      end;
      v_deleted := v_deleted + 1;
    end loop;
  end;
  return jsonb_build_object('thoughts_deleted', v_deleted,
    'thoughts_shared', (select count(*) from public.thoughts t where t.id = any (p_thoughts)
                        and exists (select from public.agent_memories m where m.thought_id = t.id)));
end
$$;

comment on function long_term_memory.drop_thoughts(uuid[]) is
  'Deletes thoughts that no memory points to any more; one that a table of the host''s refers to is emptied instead. Answers how many: thoughts_deleted, thoughts_shared.';

-- A decision whose copies lagged may be posted under words that its row has no more.
create or replace function long_term_memory.follow_changes(p_touched uuid[])
returns void language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_chunk uuid[];
begin
  if p_touched = '{}' then
    return;
  end if;
  -- a digest of the words would tell a guess at them; the key answers "gone" without it
  update ranked_ledger.idempotency_keys k set digest = '' where k.memory_ids && p_touched and k.digest <> '';
  -- where the ledger could not follow its memory, it noted why, and the note may quote what could not be read
  delete from ranked_ledger.enrolment_failures f where f.memory_id = any (p_touched) and f.operation = 'follow';
  update public.agent_decision_ledger l set search_lexemes = d.lexemes
  from (select r.memory_id,
               ranked_ledger.decision_lexemes(
                 ranked_ledger.text_config(r.workspace_id), m.content, r.rationale, m.summary) as lexemes
        from public.agent_decision_ledger r join public.agent_memories m on m.id = r.memory_id
        where r.memory_id = any (p_touched) offset 0) as d
  where l.memory_id = d.memory_id and l.search_lexemes is distinct from d.lexemes;
  for v_chunk in
    select array_agg(x.id) from (
      select u.id, row_number() over (order by u.id) as position from unnest(p_touched) as u (id)) as x
    group by (x.position - 1) / 500
  loop
    perform ranked_ledger.renew_copies(array(
      select unnest(ranked_ledger.wrong_copies(v_chunk))
      union
      select c.memory_id from ranked_ledger.stale_copies c where c.memory_id = any (v_chunk)));
  end loop;
end
$$;

comment on function long_term_memory.follow_changes(uuid[]) is
  'What was made of the words of decisions that changed: digests go, lexemes are read anew, copies are made where they lag.';

create or replace function long_term_memory.erase_decisions(
  p_org_id uuid, p_subject_type text, p_subject_id uuid, p_decisions uuid[], p_erasure_id uuid)
returns jsonb language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_thoughts uuid[];
  v_changed  uuid[];
  v_shared   int;
  v_counts   jsonb;
begin
  v_thoughts := array(
    select distinct m.thought_id from public.agent_memories m where m.id = any (p_decisions) and m.thought_id is not null);
  v_changed := long_term_memory.empty_decisions(p_decisions);
  v_counts := long_term_memory.empty_surroundings(p_decisions) || long_term_memory.drop_thoughts(v_thoughts);

  -- one that is about several people is erased for all of them
  with told as (
    update long_term_memory.decision_subjects s
    set erased_at = now(), erased_with_other = (s.subject_type, s.subject_id) <> (p_subject_type, p_subject_id)
    where s.memory_id = any (p_decisions) and s.erased_at is null
    returning s.memory_id, s.erased_with_other)
  select array(select unnest(v_changed) union select t.memory_id from told t),
         (select count(distinct t.memory_id) from told t where t.erased_with_other)
  into v_changed, v_shared;
  insert into public.agent_memory_audit_events (event_type, workspace_id, project_id, memory_id, actor_kind, payload)
  select 'memory_edited', m.workspace_id, m.project_id, m.id, 'system',
         jsonb_build_object('kind', 'decision_erased', 'memory_id', m.id, 'erasure_id', p_erasure_id)
  from public.agent_memories m where m.id = any (v_changed) order by m.id;
  return v_counts || jsonb_build_object('decisions', cardinality(v_changed), 'decisions_shared', v_shared);
end
$$;

comment on function long_term_memory.erase_decisions(uuid, text, uuid, uuid[], uuid) is
  'Erases decisions, which the caller has locked: their words, what hangs on them, thoughts that are nobody else''s. Answers how many of what.';
