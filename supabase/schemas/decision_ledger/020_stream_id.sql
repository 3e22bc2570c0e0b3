-- The identity of a stream. A key of fixed width, so that a task id of any length (a B-tree entry ends at 2,704 bytes)
-- and a null project or task are as good as any other. md5 is enough: what shares an id shares a numbering, never rights.
create or replace function ranked_ledger.stream_id(p_workspace_id text, p_project_id text, p_task_id text)
returns uuid language sql immutable parallel safe
return md5(char_length(p_workspace_id) || ':' || p_workspace_id
           || coalesce('p' || char_length(p_project_id) || ':' || p_project_id, '-')
           || coalesce('t' || char_length(p_task_id) || ':' || p_task_id, '-'))::uuid;

comment on function ranked_ledger.stream_id(text, text, text) is
  'The stream of a decision: one value for each (workspace, project, task), null project and task being values of their own.';

-- The greatest step that is given or assigned. Greater ones in an upgraded ledger are kept and ignored for "newest".
create or replace function ranked_ledger.max_step()
returns int language sql immutable parallel safe
return 1000000000;

comment on function ranked_ledger.max_step() is 'The greatest step of a stream: 1,000,000,000.';
