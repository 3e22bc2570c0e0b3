-- What an evaluation needs beside the product: the arms that are no policy of it. Installed into the throwaway stack alone.
create schema if not exists ranked_ledger_evals;
grant usage on schema ranked_ledger_evals to service_role;

-- What every arm is asked, whether it looks at all of it or not. Only the oracle may look at the gold.
create type ranked_ledger_evals.asked as (
  workspace_id text, query text, embedding vector, embedding_model text, current_step integer, match_count integer, gold uuid[]);

-- One cohort for all arms: the decisions of the workspace, whatever their lifecycle. Words of the summary have a weight of their
-- own beside the text; a text search is over the text.
create function ranked_ledger_evals.cohort(p_workspace_id text)
returns table (memory_id uuid, thought_id uuid, step_index integer, lifecycle_status text, search_lexemes tsvector)
language sql stable as $$
  select l.memory_id, m.thought_id, l.step_index, m.lifecycle_status, ts_filter(l.search_lexemes, '{d}')
  from public.agent_decision_ledger l join public.agent_memories m on m.id = l.memory_id
  where l.workspace_id = p_workspace_id and m.workspace_id = p_workspace_id and l.set_aside_at is null
$$;

create function ranked_ledger_evals.is_retired(p_lifecycle_status text)
returns boolean language sql immutable
return p_lifecycle_status in ('superseded', 'rejected');
