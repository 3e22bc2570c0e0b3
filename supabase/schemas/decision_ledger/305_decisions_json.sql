-- What a host may store and a client cannot read: one such row must not cost it the page that the row is on.

create or replace function ranked_ledger.is_too_deep(p_document jsonb)
returns boolean language sql immutable parallel safe
return p_document @? '$.**{100}'::jsonpath;

comment on function ranked_ledger.is_too_deep(jsonb) is
  'Whether a document is nested 100 levels deep. PostgreSQL takes 6,000, of which JSON readers of several languages give up.';

create or replace function ranked_ledger.readable_object(p_document jsonb)
returns jsonb language sql immutable parallel safe
return case when jsonb_typeof(p_document) = 'object' and not ranked_ledger.is_too_deep(p_document) then p_document else '{}' end;

comment on function ranked_ledger.readable_object(jsonb) is 'The document where it is an object that clients can read, else {}.';

create or replace function ranked_ledger.readable_time(p_moment timestamptz)
returns timestamptz language sql immutable parallel safe
return case when p_moment < '0001-01-02 00:00:00+00' then '0001-01-02 00:00:00+00'
            when p_moment > '9999-12-30 00:00:00+00' then '9999-12-30 00:00:00+00' else p_moment end;

comment on function ranked_ledger.readable_time(timestamptz) is
  'The moment, within the years 1 to 9999 in every time zone: infinity and years BC are no timestamps of RFC 3339.';

-- A decision as every verb answers it (docs/sql-api.md, "A decision").
create or replace function ranked_ledger.decisions_json(p_workspace_id text, p_memory_ids uuid[])
returns jsonb language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
begin
  return coalesce((
    select jsonb_agg(jsonb_build_object(
             'memory_id', m.id, 'workspace_id', m.workspace_id, 'project_id', m.project_id, 'task_id', m.task_id,
             'flow_id', m.flow_id, 'step_index', l.step_index,
             'step_settled', not exists (select from ranked_ledger.pending_steps p where p.memory_id = m.id),
             'summary', m.summary, 'content', m.content, 'rationale', l.rationale, 'alternatives', l.alternatives,
             'importance', l.importance::float8, 'pinned', l.pinned, 'lifecycle_status', m.lifecycle_status,
             'review_status', m.review_status, 'visibility', m.visibility, 'created_by', m.created_by,
             'recall_count', l.recall_count, 'used_count', l.used_count, 'last_recalled_at', l.last_recalled_at,
             'embedding_model', l.embedding_model, 'metadata', ranked_ledger.readable_object(m.metadata),
             'ledger_metadata', ranked_ledger.readable_object(l.metadata),
             'created_at', ranked_ledger.readable_time(coalesce(m.created_at, l.created_at)),
             'updated_at', ranked_ledger.readable_time(greatest(m.updated_at, l.updated_at))) order by w.position)
    from unnest(p_memory_ids) with ordinality as w (memory_id, position)
    join public.agent_memories m
      on m.id = w.memory_id and m.workspace_id = p_workspace_id and m.memory_type = 'decision'
    join public.agent_decision_ledger l on l.memory_id = m.id and l.set_aside_at is null), '[]');
end
$$;

comment on function ranked_ledger.decisions_json(text, uuid[]) is
  'The decisions of a workspace as a jsonb array, in the order of the ids; an id that is none of them is left out.';

create or replace function ranked_ledger.decision_json(p_workspace_id text, p_memory_id uuid)
returns jsonb language sql stable
set search_path = public, extensions, pg_temp
as $$
  select ranked_ledger.decisions_json(p_workspace_id, array[p_memory_id]) -> 0
$$;

comment on function ranked_ledger.decision_json(text, uuid) is 'One decision of a workspace, null where there is none.';
