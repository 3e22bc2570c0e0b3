-- How a decision reads in a prompt. The fence around the lines is the client's, of a fixed cost.

create or replace function ranked_ledger.scope_label(p_project_id text, p_task_id text)
returns text language sql immutable parallel safe
return translate(ranked_ledger.one_line(concat_ws('/', p_project_id, p_task_id)), '|[]', '/()');

comment on function ranked_ledger.scope_label(text, text) is
  'Project and task within a line''s brackets: names are free text too, and may neither break the line nor go on for the provenance behind them.';

create or replace function ranked_ledger.decision_line(
  p_text text, p_rationale text, p_step int, p_project_id text, p_task_id text, p_importance float8,
  p_lifecycle text, p_rests_on_retired boolean, p_created_by text, p_review_status text)
returns text language sql immutable parallel safe
return '- [step ' || p_step
       || coalesce(' | ' || nullif(ranked_ledger.scope_label(p_project_id, p_task_id), ''), '')
       || ' | importance ' || round(p_importance::numeric, 2)
       || ' | ' || p_lifecycle || case when p_rests_on_retired then ', rests on a retired decision' else '' end || ' | by ' || p_created_by || ', ' || p_review_status || '] '
       || ranked_ledger.one_line(p_text) || coalesce(' (because: ' || nullif(ranked_ledger.one_line(p_rationale), '') || ')', '');

comment on function ranked_ledger.decision_line(text, text, int, text, text, float8, text, boolean, text, text) is
  'One decision as a line of a prompt, its provenance first.';
