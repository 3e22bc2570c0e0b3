-- How a decision reads in a prompt. The fence around the lines is the client's, of a fixed cost.

create or replace function ranked_ledger.fence_tokens()
returns int language sql immutable parallel safe
return 75;

comment on function ranked_ledger.fence_tokens() is
  'What a client''s fence around the lines may cost, in tokens: taken off a budget before anything is packed.';

create or replace function ranked_ledger.decision_line(
  p_text text, p_rationale text, p_step int, p_project_id text, p_task_id text, p_importance float8,
  p_lifecycle text, p_created_by text, p_review_status text)
returns text language sql immutable parallel safe
return '- [step ' || p_step
       || coalesce(' | ' || nullif(concat_ws('/', p_project_id, p_task_id), ''), '')
       || ' | importance ' || round(p_importance::numeric, 2)
       || ' | ' || p_lifecycle || ' | by ' || p_created_by || ', ' || p_review_status || '] '
       || p_text || coalesce(' (because: ' || nullif(btrim(p_rationale), '') || ')', '');

comment on function ranked_ledger.decision_line(text, text, int, text, text, float8, text, text, text) is
  'One decision as a line of a prompt, its provenance first.';
