-- What the ledger can prove about itself, one row a check. Work is bounded: a check looks at so many rows at most and says
-- so where there are more. A detail says what was found and, where it is not well, what to do.

create or replace function ranked_ledger.check_enrolment(p_workspace_id text, p_most int)
returns table (name text, ok boolean, detail text) language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
declare
  v_missing     bigint;
  v_failures    bigint;
  v_provisional bigint;
  v_strays      bigint;
  v_checked     bigint;
begin
  select count(*) into v_missing from (
    select from public.agent_memories m
    where m.memory_type = 'decision' and (p_workspace_id is null or m.workspace_id = p_workspace_id)
      and not exists (select from public.agent_decision_ledger l where l.memory_id = m.id) limit 10000) as x;
  select count(*) into v_failures from (
    select from ranked_ledger.enrolment_failures f
    where p_workspace_id is null or f.workspace_id = p_workspace_id limit 10000) as x;
  -- a mark of a transaction that still runs is not seen here: what is seen was left over
  select count(*) into v_provisional from (
    select from ranked_ledger.pending_steps p left join public.agent_decision_ledger l on l.memory_id = p.memory_id
    where (p_workspace_id is null or l.workspace_id = p_workspace_id) limit 10000) as x;
  select count(*), count(*) filter (where x.is_stray) into v_checked, v_strays from (
    -- what is set aside follows when it is restored
    select (l.set_aside_at is null and (l.workspace_id, l.project_id, l.task_id, l.flow_id)
             is distinct from (m.workspace_id, m.project_id, m.task_id, m.flow_id))
           or (l.set_aside_at is null) <> (m.memory_type = 'decision') as is_stray
    from public.agent_decision_ledger l join public.agent_memories m on m.id = l.memory_id
    where (p_workspace_id is null or m.workspace_id = p_workspace_id) limit p_most) as x;
  return query values
    ('every_decision_is_enrolled', v_missing = 0, case when v_missing = 0 then 'Every decision has its ledger row.'
      else format('%s decisions have no ledger row. Call enroll_missing_decisions.', v_missing) end),
    ('no_enrolment_failures', v_failures = 0, case when v_failures = 0 then 'No trigger has failed.'
      else format('%s failures are noted, see recent_failures. Call enroll_missing_decisions, which mends and clears them.',
                  v_failures) end),
    ('no_provisional_steps', v_provisional = 0, case when v_provisional = 0 then 'Every step is settled.'
      else format('%s steps are provisional: their transaction ran under an old snapshot. The next write to the stream '
                  'or enroll_missing_decisions settles them.', v_provisional) end),
    ('ledger_agrees_with_memories', v_strays = 0,
      case when v_strays = 0 then format('Scope, flow and type of %s ledger rows are those of their memories%s.', v_checked,
                                         case when v_checked = p_most then '; there may be more rows' else '' end)
      else format('%s of %s ledger rows disagree with their memory. Call enroll_missing_decisions.', v_strays, v_checked) end);
end
$$;

comment on function ranked_ledger.check_enrolment(text, int) is
  'Checks of rows: all enrolled, none failed, none provisional, none astray (p_most ledger rows are compared).';

create or replace function ranked_ledger.check_streams(p_workspace_id text, p_most int)
returns table (name text, ok boolean, detail text) language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
declare
  v_checked bigint;
  v_wrong   bigint;
  v_models  text;
begin
  select count(*), count(*) filter (where s.newest_step <> ranked_ledger.newest_settled_step(s.stream_id))
  into v_checked, v_wrong
  from (select x.stream_id, x.newest_step from ranked_ledger.streams x
        where p_workspace_id is null or x.workspace_id = p_workspace_id limit p_most) as s;
  select string_agg(distinct w.workspace_id, ', ') into v_models
  from (select l.workspace_id from public.agent_decision_ledger l
        where l.embedding_model is not null and (p_workspace_id is null or l.workspace_id = p_workspace_id)
        group by l.workspace_id having count(distinct l.embedding_model) > 1 limit 10) as w;
  return query values
    ('streams_know_their_newest_step', v_wrong = 0,
      case when v_wrong = 0 then format('%s streams agree with their rows%s.', v_checked,
                                        case when v_checked = p_most then '; there may be more' else '' end)
      else format('%s of %s streams name another newest step than their rows have. Call '
                  'enroll_missing_decisions.', v_wrong, v_checked) end),
    ('one_embedding_model_a_workspace', v_models is null,
      case when v_models is null then 'No workspace names two embedding models.'
      else format('Vectors of several models lie in %s, and their similarities cannot be compared. Embed the thoughts '
                  'again with one model.', v_models) end);
end
$$;

comment on function ranked_ledger.check_streams(text, int) is 'Checks of streams, p_most of them, and of embedding models.';

create or replace function ranked_ledger.our_tables()
returns setof regclass language sql stable
set search_path = public, extensions, pg_temp
as $$
  select c.oid::regclass from pg_class c
  where c.relkind in ('r', 'p') and (c.relnamespace = 'ranked_ledger'::regnamespace
     or c.oid in (to_regclass('public.agent_decision_ledger'), to_regclass('public.agent_decision_edges')))
$$;

comment on function ranked_ledger.our_tables() is 'The tables of the ledger, in public and in ranked_ledger.';

create or replace function ranked_ledger.check_access()
returns table (name text, ok boolean, detail text) language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
declare
  v_open    text;
  v_public  text;
  v_missing text;
begin
  select string_agg(t.name::text, ', ' order by t.name::text) into v_open
  from ranked_ledger.our_tables() as t (name) join pg_class c on c.oid = t.name where not c.relrowsecurity;
  select string_agg(distinct r.role || ' on ' || o.name, ', ') into v_public
  from unnest(array['anon', 'authenticated']) as r (role)
  cross join lateral (
    select t.name::text from ranked_ledger.our_tables() as t (name)
    where has_table_privilege(r.role, t.name, 'select, insert, update, delete, truncate, references, trigger')
    union all
    select v.name from (values ('public.agent_recall_policy_stats')) as v (name)
    where to_regclass(v.name) is not null and has_table_privilege(r.role, to_regclass(v.name), 'select')
    union all
    select f.name::text from ranked_ledger.our_functions() as f (name)
    where has_function_privilege(r.role, f.name, 'execute')) as o
  where to_regrole(r.role) is not null;
  select string_agg(o.name, ', ') into v_missing
  from (
    select t.name::text from ranked_ledger.our_tables() as t (name)
    where not (has_table_privilege('service_role', t.name, 'select') and has_table_privilege('service_role', t.name, 'insert')
               and has_table_privilege('service_role', t.name, 'update') and has_table_privilege('service_role', t.name, 'delete'))
    union all
    select h.name from unnest(array['thoughts', 'agent_memories', 'agent_memory_relations', 'agent_memory_review_actions',
      'agent_memory_recall_traces', 'agent_memory_recall_items', 'agent_memory_audit_events']) as h (name)
    where not (has_table_privilege('service_role', 'public.' || h.name, 'select')
               and has_table_privilege('service_role', 'public.' || h.name, 'insert')
               and has_table_privilege('service_role', 'public.' || h.name, 'update')
               and has_table_privilege('service_role', 'public.' || h.name, 'delete'))
    union all
    select p.oid::regprocedure::text from pg_proc p
    where p.pronamespace = 'public'::regnamespace and p.proname = any (ranked_ledger.public_functions())
      and not has_function_privilege('service_role', p.oid, 'execute')) as o;
  return query values
    ('row_level_security', v_open is null, coalesce('Row level security is off on ' || v_open || '. Push the migrations again.',
      'Row level security is on for every table of the ledger.')),
    ('public_keys_have_no_rights', v_public is null,
      coalesce('Rights that nobody should have: ' || left(v_public, 2000) || '. Push the migrations again, which revokes them.',
      'The roles of the public keys, anon and authenticated, may do nothing here.')),
    ('service_role_has_its_rights', v_missing is null,
      coalesce('service_role lacks rights on ' || left(v_missing, 2000)
        || '. Grant select, insert, update, delete (execute on functions).', 'service_role may do what the functions do.'));
end
$$;

comment on function ranked_ledger.check_access() is 'Checks of rights: row level security, nothing for the public keys, all for the service role.';

create or replace function ranked_ledger.check_install()
returns table (name text, ok boolean, detail text) language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
declare
  v_dimension int := ranked_ledger.embedding_dimension();
  v_off       text;
  v_double    text;
begin
  select string_agg(w.name, ', ') into v_off
  from (values ('public.agent_memories', 'trg_agent_decision_ledger_enroll'),
               ('public.agent_memories', 'trg_agent_decision_ledger_follow'),
               ('public.agent_memories', 'trg_agent_decision_ledger_hold_edges'),
               ('public.agent_memories', 'trg_agent_decision_ledger_recopy'),
               ('public.thoughts', 'trg_agent_decision_ledger_revector'),
               ('public.agent_decision_edges', 'agent_decision_edges_count_inserted'),
               ('public.agent_decision_edges', 'agent_decision_edges_count_updated'),
               ('public.agent_decision_edges', 'agent_decision_edges_count_deleted'),
               ('public.agent_decision_edges', 'agent_decision_edges_empty_copies'),
               ('public.agent_decision_ledger', 'agent_decision_ledger_copy_inserted_rows'),
               ('public.agent_decision_ledger', 'agent_decision_ledger_copy_updated_row'),
               ('public.agent_decision_ledger', 'agent_decision_ledger_drop_deleted_rows'),
               ('public.agent_decision_ledger', 'agent_decision_ledger_empty_copies'),
               ('public.agent_decision_edges', 'agent_decision_edges_check'),
               ('public.agent_decision_edges', 'agent_decision_edges_note_lost_ground'),
               ('public.agent_decision_ledger', 'agent_decision_ledger_note_lost_rows'),
               ('public.agent_decision_ledger', 'agent_decision_ledger_note_truncation'),
               ('public.agent_decision_ledger', 'agent_decision_ledger_fill_lexemes_insert'),
               ('public.agent_decision_ledger', 'agent_decision_ledger_fill_lexemes_update'),
               ('ranked_ledger.workspace_settings', 'workspace_settings_follow_text_config'),
               ('ranked_ledger.pending_steps', 'settle_steps_at_commit')) as w (relation, name)
  where not exists (select from pg_trigger t where t.tgrelid = to_regclass(w.relation) and t.tgname = w.name
                    and t.tgenabled in ('O', 'A'));
  select string_agg(d.proname, ', ') into v_double
  from (select p.proname from pg_proc p
        where p.pronamespace = 'public'::regnamespace and p.proname = any (ranked_ledger.public_functions())
        group by p.proname having count(*) > 1) as d;
  return query values
    ('triggers_are_on', v_off is null,
      coalesce('Triggers are missing or disabled: ' || v_off || '. Enable them, or push the migrations again.',
      'Every trigger of the ledger is in place.')),
    ('functions_are_unambiguous', v_double is null,
      coalesce('Several functions are named ' || v_double || ', and PostgREST refuses such a call (PGRST203). Drop the '
        'ones that are not Ranked Ledger''s.', 'Each function has one signature.')),
    ('embedding_dimension', v_dimension is not null,
      coalesce('Embeddings have ' || v_dimension || ' dimensions; a model with another number is refused (RL463).',
      'thoughts.embedding has no fixed number of dimensions: vectors of two models can get into it. Give it one.'));
end
$$;

comment on function ranked_ledger.check_install() is 'Checks of the install: triggers, signatures, the column of embeddings.';
