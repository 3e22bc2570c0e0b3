-- The RPCs of docs/sql-api.md: the list that access, upgrade and doctor share.
create or replace function ranked_ledger.public_functions()
returns text[] language sql immutable parallel safe
return array[
  'enroll_missing_decisions', 'forget_decision', 'get_decision', 'ledger_schema_version', 'ledger_status',
  'link_decisions', 'list_decisions', 'mark_recall_usage', 'match_decision_ledger', 'pin_decision', 'prune_traces',
  'recall_decisions', 'recall_policy_stats', 'record_decision', 'record_decisions', 'set_decision_importance',
  'set_decision_lifecycle', 'supersede_decision', 'touch_decision_recall', 'unlink_decisions'];

comment on function ranked_ledger.public_functions() is 'Names of the functions in public that are ours.';
