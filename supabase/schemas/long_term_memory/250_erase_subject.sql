-- One statement, one transaction, both stores. Erasures of an organization take turns: each locks rows of everywhere.

create or replace function long_term_memory.hold_erasures(p_org_id uuid)
returns void language plpgsql
set search_path = public, extensions, pg_temp
as $$
begin
  perform pg_advisory_xact_lock(hashtextextended('ranked_ledger: erasures of ' || p_org_id, 0));
end
$$;

comment on function long_term_memory.hold_erasures(uuid) is
  'Held by an erasure until its commit: one at a time in an organization.';

-- A workspace must not go to another organization while its decisions are erased for this one.
create or replace function long_term_memory.hold_workspaces(p_org_id uuid)
returns text[] language plpgsql
set search_path = public, extensions, pg_temp
as $$
begin
  return array(select w.workspace_id from long_term_memory.workspace_orgs w where w.org_id = p_org_id
               order by w.workspace_id for share);
end
$$;

comment on function long_term_memory.hold_workspaces(uuid) is 'The workspaces of an organization, kept to it until the commit.';

-- Rows that a policy hides would be left without a word.
create or replace function long_term_memory.check_visible()
returns void language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
declare
  v_hidden text;
begin
  select string_agg(t.name, ', ') into v_hidden
  from long_term_memory.searched_tables(long_term_memory.has_ledger()) t where row_security_active(t.name);
  if v_hidden is not null then
    raise sqlstate '42501' using
      message = format('Row level security is forced on %s, also for %I, who erases: rows could be left. Nothing was erased.',
                       v_hidden, current_user),
      hint = 'Give that role BYPASSRLS, or set these tables to NO FORCE ROW LEVEL SECURITY.';
  end if;
end
$$;

comment on function long_term_memory.check_visible() is 'Refuses (42501) an erasure whose role does not see every row.';

create or replace function long_term_memory.is_known(p_org_id uuid, p_subject_type text, p_subject_id uuid)
returns boolean language sql stable
set search_path = public, extensions, pg_temp
as $$
  select exists (select from long_term_memory.agent_memories m where (m.org_id, m.subject_type, m.subject_id) = ($1, $2, $3))
      or exists (select from long_term_memory.recall_subjects s where (s.org_id, s.subject_type, s.subject_id) = ($1, $2, $3))
      or exists (select from long_term_memory.decision_subjects s where (s.org_id, s.subject_type, s.subject_id) = ($1, $2, $3))
      or exists (select from long_term_memory.trace_subjects s where (s.org_id, s.subject_type, s.subject_id) = ($1, $2, $3))
      or exists (select from long_term_memory.erasures e where (e.org_id, e.subject_type, e.subject_id) = ($1, $2, $3))
$$;

comment on function long_term_memory.is_known(uuid, text, uuid) is 'Whether anything was ever held about a subject.';

create or replace function long_term_memory.added(p_counts jsonb, p_more jsonb)
returns jsonb language sql immutable parallel safe
set search_path = public, extensions, pg_temp
as $$
  select jsonb_object_agg(k.key, coalesce((p_counts ->> k.key)::bigint, 0) + coalesce((p_more ->> k.key)::bigint, 0))
  from (select jsonb_object_keys(p_counts) union select jsonb_object_keys(p_more)) as k (key)
$$;

comment on function long_term_memory.added(jsonb, jsonb) is 'Counts of the same names, added up.';

-- A host's trigger may copy rows as they were into a table that we know nothing of.
create or replace function long_term_memory.triggers_of_the_host()
returns text[] language sql stable
set search_path = public, extensions, pg_temp
as $$
  select array(
    select format('%s on %s', t.tgname, t.tgrelid::regclass)
    from pg_trigger t join pg_proc p on p.oid = t.tgfoid
    join long_term_memory.searched_tables(long_term_memory.has_ledger()) s on t.tgrelid = to_regclass(s.name)
    where not t.tgisinternal and t.tgenabled in ('O', 'A')
      and t.tgtype & 24 <> 0 and t.tgtype & 2 = 0 -- after an update or a delete
      and p.pronamespace <> 'long_term_memory'::regnamespace and p.pronamespace is distinct from to_regnamespace('ranked_ledger')
    order by 1)
$$;

comment on function long_term_memory.triggers_of_the_host() is
  'Triggers of others that run after an update or a delete of what an erasure changes.';

create or replace function long_term_memory.views_with_rows()
returns text[] language sql stable
set search_path = public, extensions, pg_temp
as $$
  with recursive views as ( -- also those over views
    select r.ev_class as view
    from pg_depend d join pg_rewrite r on r.oid = d.objid and d.classid = 'pg_rewrite'::regclass
    join long_term_memory.searched_tables(long_term_memory.has_ledger()) s on d.refobjid = to_regclass(s.name)
    union
    select r.ev_class from views v
    join pg_depend d on d.refobjid = v.view and d.classid = 'pg_rewrite'::regclass join pg_rewrite r on r.oid = d.objid)
  select array(select c.oid::regclass::text from views v join pg_class c on c.oid = v.view where c.relkind = 'm' order by 1)
$$;

comment on function long_term_memory.views_with_rows() is
  'Materialized views over what an erasure changes: they keep rows as they were until they are refreshed.';

create or replace function long_term_memory.erasure_notes(p_counts jsonb, p_statistics text[])
returns jsonb language sql stable
set search_path = public, extensions, pg_temp
as $$
  select jsonb_agg(n.note order by n.position)
  from (values
    (1, case when (p_counts ->> 'decisions_shared')::int > 0 then format(
      '%s of the decisions are about others too, and were erased for them as well: their subject access says so.',
      p_counts ->> 'decisions_shared') end),
    (2, case when (p_counts ->> 'thoughts_shared')::int > 0 then format(
      '%s thoughts stay, unlinked, since other memories point to them; give exact strings to clean what is in them.',
      p_counts ->> 'thoughts_shared') end),
    (3, case when (p_counts ->> 'names_left')::int > 0 then format(
      '%s names of workspaces, projects, tasks, channels, runs or keys hold one of the strings, and stay: others refer to them.',
      p_counts ->> 'names_left') end),
    (4, case when cardinality(p_statistics) > 0 then format(
      'The planner''s statistics of %s could not be renewed and may quote values: run ANALYZE on them when they hold rows.',
      array_to_string(p_statistics, ', ')) end),
    (5, (select format('Triggers of this project ran, and may have copied rows as they were: %s.',
                       array_to_string(t.names, ', '))
         from long_term_memory.triggers_of_the_host() as t (names)
         where t.names <> '{}' and exists (select from jsonb_each_text(p_counts - 'names_left') as c where c.value <> '0'))),
    (6, (select format('Materialized views keep what they read before: refresh %s.', array_to_string(v.names, ', '))
         from long_term_memory.views_with_rows() as v (names)
         where v.names <> '{}' and exists (select from jsonb_each_text(p_counts - 'names_left') as c where c.value <> '0'))),
    (7, 'Free text that nothing ties to the subject is out of reach, unless it holds one of the strings that were given.'),
    (8, 'Dead versions of rows are removed by vacuum; backups, the log and older replicas are outside of this database.')
  ) as n (position, note) where n.note is not null
$$;

comment on function long_term_memory.erasure_notes(jsonb, text[]) is 'What an officer has to know of an erasure, in sentences.';

-- The ledger's part. All that is about to change is locked first, in one order.
create or replace function long_term_memory.lock_in_ledger(
  p_org_id uuid, p_subject_type text, p_subject_id uuid, p_strings text[],
  out decisions uuid[], out traces uuid[], out holding jsonb, out touched uuid[])
language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_workspaces text[] := long_term_memory.hold_workspaces(p_org_id);
begin
  decisions := long_term_memory.attributed_decisions(p_org_id, p_subject_type, p_subject_id, v_workspaces);
  traces := long_term_memory.traces_of(p_org_id, p_subject_type, p_subject_id, v_workspaces, decisions);
  holding := long_term_memory.find_strings(p_org_id, v_workspaces, p_strings);
  touched := array(select unnest(decisions) union select unnest(long_term_memory.decisions_found(holding)));
  perform long_term_memory.lock_decisions(
    touched, traces || long_term_memory.keys_found(holding, 'public.agent_memory_recall_traces')::uuid[] || array(
      select i.trace_id from public.agent_memory_recall_items i
      where i.id = any (long_term_memory.keys_found(holding, 'public.agent_memory_recall_items')::uuid[])));
  -- one that was moved away meanwhile is not ours any more
  decisions := array(
    select unnest(decisions)
    intersect
    select unnest(long_term_memory.attributed_decisions(p_org_id, p_subject_type, p_subject_id, v_workspaces)));
end
$$;

comment on function long_term_memory.lock_in_ledger(uuid, text, uuid, text[]) is
  'Locks what an erasure changes in the ledger. Answers the decisions and traces of the subject, the rows that hold a string, and all decisions that change.';

create or replace function long_term_memory.no_counts()
returns jsonb language sql immutable parallel safe
return '{"memories": 0, "decisions": 0, "decisions_shared": 0, "thoughts_deleted": 0, "thoughts_shared": 0, "traces": 0,
         "recalls": 0, "reviews": 0, "audit_events": 0, "strings_cleaned": 0, "names_left": 0}'::jsonb;

comment on function long_term_memory.no_counts() is 'What an erasure counts, all zero.';

create or replace function long_term_memory.erase_everywhere(
  p_org_id uuid, p_subject_type text, p_subject_id uuid, p_strings text[], p_digest_key text, p_erasure_id uuid,
  p_caller long_term_memory.caller, p_asserted_by text, out counts jsonb, out texts text[])
language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_has_ledger constant boolean := long_term_memory.has_ledger();
  v_ledger record;
begin
  -- lock
  perform long_term_memory.hold_erasures(p_org_id);
  perform long_term_memory.hold_subject(p_org_id, p_subject_type, p_subject_id);
  perform long_term_memory.check_visible();
  if v_has_ledger then
    v_ledger := long_term_memory.lock_in_ledger(p_org_id, p_subject_type, p_subject_id, p_strings);
  else
    select '{}'::uuid[] as decisions, '{}'::uuid[] as traces, '{}'::uuid[] as touched,
           long_term_memory.find_strings(p_org_id, '{}', p_strings) as holding
    into v_ledger;
  end if;
  if p_digest_key is not null then
    texts := long_term_memory.texts_of(p_org_id, p_subject_type, p_subject_id, v_ledger.decisions);
  end if;

  -- mutate
  counts := long_term_memory.added(long_term_memory.no_counts(), long_term_memory.erase_memories(
    p_org_id, p_subject_type, p_subject_id, p_caller, p_asserted_by));
  counts := counts || jsonb_build_object('recalls', long_term_memory.erase_recalls(p_org_id, p_subject_type, p_subject_id));
  if v_has_ledger then
    counts := long_term_memory.added(counts, long_term_memory.erase_decisions(
      p_org_id, p_subject_type, p_subject_id, v_ledger.decisions, p_erasure_id));
    counts := long_term_memory.added(counts, long_term_memory.erase_traces(
      p_org_id, p_subject_type, p_subject_id, v_ledger.traces));
  end if;
  counts := counts || jsonb_build_object(
    'strings_cleaned', long_term_memory.clean_strings(p_org_id, v_ledger.holding, p_strings, p_caller, p_asserted_by));
  if v_has_ledger then
    perform long_term_memory.follow_changes(v_ledger.touched);
  end if;
  counts := counts || jsonb_build_object('names_left', long_term_memory.names_left(
    p_org_id, array(select w.workspace_id from long_term_memory.workspace_orgs w where w.org_id = p_org_id), p_strings));
end
$$;

comment on function long_term_memory.erase_everywhere(uuid, text, uuid, text[], text, uuid, long_term_memory.caller, text) is
  'Erases a subject in both stores. Answers how many of what, and, where a digest key is given, the texts that are gone.';

-- A stranger about whom nothing was ever held leaves no trace here, whether or not there is such an organization.
create or replace function long_term_memory.erase(
  p_org_id uuid, p_subject_type text, p_subject_id uuid, p_strings text[], p_digest_key text,
  p_caller long_term_memory.caller, p_asserted_by text, p_dry_run boolean)
returns jsonb language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_erasure_id uuid := gen_random_uuid();
  v_was_known  boolean := long_term_memory.is_known(p_org_id, p_subject_type, p_subject_id);
  v_done       record;
  v_found      boolean;
  v_already    boolean;
  v_statistics text[] := '{}';
  v_digests    int := 0;
begin
  if p_caller.kind = 'user' and p_caller.role is null and not v_was_known then -- and holds up nobody
    return jsonb_build_object('receipt_id', null, 'erased_at', now(), 'dry_run', p_dry_run, 'already', false,
      'counts', long_term_memory.no_counts(), 'digests', 0,
      'notes', long_term_memory.erasure_notes(long_term_memory.no_counts(), '{}'));
  end if;
  v_done := long_term_memory.erase_everywhere(
    p_org_id, p_subject_type, p_subject_id, p_strings, p_digest_key, v_erasure_id, p_caller, p_asserted_by);
  v_found := exists (select from jsonb_each_text(v_done.counts - 'names_left') as c where c.value <> '0');
  v_already := not v_found and exists (
    select from long_term_memory.erasures e
    where e.org_id = p_org_id and e.subject_type = p_subject_type and e.subject_id = p_subject_id);
  if v_found or v_was_known then
    insert into long_term_memory.erasures (
      id, org_id, subject_type, subject_id, grade, actor_id, asserted_by, counts, key_check)
    values (v_erasure_id, p_org_id, p_subject_type, p_subject_id,
            case when p_caller.kind = 'user' then 'verified' when p_asserted_by is not null then 'asserted' else 'service' end,
            p_caller.user_id, p_asserted_by, v_done.counts,
            case when p_digest_key is not null then long_term_memory.key_check(p_digest_key, p_org_id) end);
    if p_digest_key is not null then
      v_digests := long_term_memory.keep_digests(
        v_erasure_id, p_org_id, p_subject_type, p_subject_id, v_done.texts, p_digest_key);
    end if;
    insert into long_term_memory.audit_events (org_id, kind, actor_id, payload)
    values (p_org_id, 'subject_erased', p_caller.user_id, jsonb_build_object(
      'erasure_id', v_erasure_id, 'subject_type', p_subject_type, 'subject_id', p_subject_id, 'counts', v_done.counts));
  end if;
  if (v_found or v_was_known) and not p_dry_run then -- what was forgotten before may still be quoted there
    v_statistics := long_term_memory.renew_statistics(
      array(select t.name from long_term_memory.searched_tables(long_term_memory.has_ledger()) t)
      || '{ranked_ledger.postings,ranked_ledger.decision_vectors}'); -- made of words
  end if;
  return jsonb_build_object(
    'receipt_id', case when v_found or v_was_known then v_erasure_id end, 'erased_at', now(), 'dry_run', p_dry_run,
    'already', v_already, 'counts', v_done.counts, 'digests', v_digests,
    'notes', long_term_memory.erasure_notes(v_done.counts, v_statistics));
end
$$;

comment on function long_term_memory.erase(uuid, text, uuid, text[], text, long_term_memory.caller, text, boolean) is
  'The erasure itself, with its receipt, digests and audit event, once its caller is known and its arguments are checked.';

create or replace function long_term_memory.erase_subject(
  p_org_id uuid, p_subject_type text, p_subject_id uuid, p_also_containing text[] default null, p_digest_key text default null,
  p_asserted_by text default null, p_dry_run boolean default false)
returns jsonb language plpgsql security definer
set search_path = public, extensions, pg_temp
as $$
declare
  v_caller  long_term_memory.caller :=
    long_term_memory.admit(p_org_id, '{owner}', long_term_memory.is_caller(p_subject_type, p_subject_id));
  v_strings text[] := long_term_memory.check_strings(coalesce(p_also_containing, '{}'));
  v_answer  jsonb;
begin
  -- guard
  perform long_term_memory.check_subject(p_subject_type, p_subject_id), long_term_memory.check_digest_key(p_digest_key);
  if p_subject_id is null then
    raise sqlstate 'RL474' using
      message = 'An erasure needs its subject.',
      hint = 'Give p_subject_id; memories of a workspace without one are forgotten one by one.';
  elsif v_caller.kind = 'service' and p_asserted_by is not null then
    perform long_term_memory.asserted_member(p_org_id, p_asserted_by, '{owner}');
  elsif p_asserted_by is not null then
    raise sqlstate '22023' using
      message = 'p_asserted_by is for the service role.', hint = 'Leave it out: your token says who you are.';
  elsif v_strings <> '{}' and v_caller.kind = 'user' and v_caller.role is distinct from 'owner' then
    raise sqlstate '42501' using -- strings reach into rows about others
      message = 'You may not have strings taken out of this organization''s rows.',
      hint = 'It takes the role owner in the organization. Leave p_also_containing out to have what is held about you erased.';
  end if;

  -- A host's own statements lock rows in orders of their own. A dry run is the real one, taken back.
  for v_attempt in 1 .. 5 loop
    begin
      v_answer := long_term_memory.erase(p_org_id, p_subject_type, p_subject_id, v_strings, p_digest_key, v_caller,
                                         p_asserted_by, coalesce(p_dry_run, false));
      if p_dry_run then
        raise sqlstate 'RLDRY';
      end if;
      exit;
    exception
      when sqlstate 'RLDRY' then
        v_answer := v_answer || '{"receipt_id": null}';
        exit;
      when deadlock_detected then
        if v_attempt = 5 then
          raise;
        end if;
        perform pg_sleep(0.05 + 0.2 * random());
    end;
  end loop;
  return v_answer;
end
$$;

comment on function long_term_memory.erase_subject(uuid, text, uuid, text[], text, text, boolean) is
  'Behind public.erase_subject, with the rights of the stores'' owner.';

create or replace function public.erase_subject(
  p_org_id uuid, p_subject_type text, p_subject_id uuid, p_also_containing text[] default null, p_digest_key text default null,
  p_asserted_by text default null, p_dry_run boolean default false)
returns jsonb language sql
set search_path = public, extensions, pg_temp
set statement_timeout = '60s' -- the API takes it over for the request
as $$
  select long_term_memory.erase_subject(p_org_id, p_subject_type, p_subject_id, p_also_containing, p_digest_key, p_asserted_by,
                                        p_dry_run)
$$;

comment on function public.erase_subject(uuid, text, uuid, text[], text, text, boolean) is
  'Erases a person, or whoever a subject is, from both stores, with a receipt: memories, decisions, what reviews, audit and recalls hold of them, and the exact strings of p_also_containing. p_dry_run answers what it would do. For owners, the subject themself, and the service.';
