-- The RPCs of docs/sql-api.md: the list that access, upgrade and doctor share.
create or replace function ranked_ledger.public_functions()
returns text[] language sql immutable parallel safe
return array[
  'check_copies', 'count_recall_usage', 'decision_impact', 'enroll_missing_decisions', 'fit_similarity_range',
  'forget_decision', 'get_decision', 'get_workspace_settings', 'ledger_schema_version', 'ledger_status', 'link_decisions',
  'list_decisions', 'mark_recall_usage', 'match_decision_ledger', 'pin_decision', 'prune_traces', 'recall_decisions',
  'recall_policy_stats', 'recall_traces', 'record_decision', 'record_decisions', 'set_decision_importance',
  'set_decision_lifecycle', 'set_similarity_range', 'set_text_config', 'supersede_decision', 'touch_decision_recall',
  'unlink_decisions'];

comment on function ranked_ledger.public_functions() is 'Names of the functions in public that are ours.';

-- A host may have a function of one of these names with other arguments, and its rights are the host's: ours pin this path.
create or replace function ranked_ledger.our_functions()
returns setof regprocedure language sql stable
set search_path = public, extensions, pg_temp
as $$
  select p.oid::regprocedure from pg_proc p
  where p.pronamespace = 'ranked_ledger'::regnamespace
     or (p.pronamespace = 'public'::regnamespace and p.proname = any (ranked_ledger.public_functions())
         and 'search_path=public, extensions, pg_temp' = any (p.proconfig))
$$;

comment on function ranked_ledger.our_functions() is 'The functions of the ledger, in public and in ranked_ledger.';
