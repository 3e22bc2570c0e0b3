create or replace function ranked_ledger.status_counts(p_workspace_id text)
returns jsonb language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
begin
  return jsonb_build_object(
    'decisions', (select count(*) from public.agent_memories m
                  where m.memory_type = 'decision' and (p_workspace_id is null or m.workspace_id = p_workspace_id)),
    'missing', (select count(*) from public.agent_memories m
                where m.memory_type = 'decision' and (p_workspace_id is null or m.workspace_id = p_workspace_id)
                  and not exists (select from public.agent_decision_ledger l where l.memory_id = m.id)),
    'provisional', (select count(*) from ranked_ledger.pending_steps p
                    join public.agent_decision_ledger l on l.memory_id = p.memory_id
                    where p_workspace_id is null or l.workspace_id = p_workspace_id),
    'failures', (select count(*) from ranked_ledger.enrolment_failures f
                 where p_workspace_id is null or f.workspace_id = p_workspace_id),
    'edges', (select count(*) from public.agent_decision_edges e
              join public.agent_decision_ledger l on l.memory_id = e.from_memory_id
              where p_workspace_id is null or l.workspace_id = p_workspace_id),
    'streams', (select count(*) from ranked_ledger.streams s where p_workspace_id is null or s.workspace_id = p_workspace_id),
    'traces', (select count(*) from public.agent_memory_recall_traces t
               where p_workspace_id is null or t.workspace_id = p_workspace_id))
    || (select jsonb_build_object('enrolled', count(*) filter (where l.set_aside_at is null),
                                  'set_aside', count(*) filter (where l.set_aside_at is not null))
        from public.agent_decision_ledger l where p_workspace_id is null or l.workspace_id = p_workspace_id);
end
$$;

comment on function ranked_ledger.status_counts(text) is 'The numbers of ledger_status, of one workspace or of all.';

create or replace function ranked_ledger.status_workspaces(p_workspace_id text)
returns jsonb language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
begin
  return coalesce((
    select jsonb_agg(jsonb_build_object(
             'workspace_id', w.workspace_id, 'decisions', w.decisions, 'last_recorded_at', w.last_recorded_at,
             'newest_step', (select max(s.newest_step) from ranked_ledger.streams s
                             where s.workspace_id = w.workspace_id and s.newest_step >= 0))
             order by w.decisions desc, w.workspace_id)
    from (select l.workspace_id, count(*) as decisions, max(l.created_at) as last_recorded_at
          from public.agent_decision_ledger l
          where l.set_aside_at is null and (p_workspace_id is null or l.workspace_id = p_workspace_id)
          group by l.workspace_id order by count(*) desc, l.workspace_id limit 100) as w), '[]');
end
$$;

comment on function ranked_ledger.status_workspaces(text) is 'At most 100 workspaces, the busiest first.';

create or replace function public.ledger_status(p_workspace_id text default null)
returns jsonb language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
begin
  if p_workspace_id is not null then
    perform ranked_ledger.check_workspace(p_workspace_id);
  end if;
  return jsonb_build_object(
      'schema_version', public.ledger_schema_version(),
      'postgres_version', current_setting('server_version'),
      'embedding_dimension', ranked_ledger.embedding_dimension())
    || (select jsonb_build_object('pgvector_version', e.extversion, 'pgvector_schema', e.extnamespace::regnamespace::text)
        from pg_extension e where e.extname = 'vector')
    || ranked_ledger.status_counts(p_workspace_id)
    || jsonb_build_object(
      'workspaces', ranked_ledger.status_workspaces(p_workspace_id),
      'recent_failures', coalesce((
        select jsonb_agg(jsonb_build_object('memory_id', f.memory_id, 'workspace_id', f.workspace_id,
                 'reason', f.reason, 'sqlstate', f.failed_with, 'at', f.failed_at) order by f.id desc)
        from (select * from ranked_ledger.enrolment_failures x
              where p_workspace_id is null or x.workspace_id = p_workspace_id order by x.id desc limit 20) as f), '[]'),
      'checks', (
        select jsonb_agg(jsonb_build_object('name', c.name, 'ok', c.ok, 'detail', c.detail) order by c.position)
        from (select row_number() over () as position, a.* from (
                select * from ranked_ledger.check_install()
                union all select * from ranked_ledger.check_access()
                union all select * from ranked_ledger.check_enrolment(p_workspace_id, 500000)
                union all select * from ranked_ledger.check_streams(p_workspace_id, 10000)) as a) as c));
end
$$;

comment on function public.ledger_status(text) is
  'Versions, numbers, workspaces, failures and checks, of one workspace or of all. The install''s own checks are always of all.';
