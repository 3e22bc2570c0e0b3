-- The copies follow what the host writes: lifecycle, review, visibility, thought of a memory; the vector of a thought.

create or replace function ranked_ledger.renew_vectors(p_memory_ids uuid[])
returns void language plpgsql
set search_path = public, extensions, pg_temp
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
begin
  with due as materialized (
    select s.row_no, s.workspace_key, s.memory_id, m.thought_id, coalesce(d.vector_dims, 0) as vector_dims, d.embedding
    from ranked_ledger.standings s
    join public.agent_memories m on m.id = s.memory_id
    left join ranked_ledger.vectors_due(p_memory_ids) d on d.memory_id = s.memory_id
    where s.memory_id = any (p_memory_ids)),
  placed as (
    update ranked_ledger.standings s set thought_id = d.thought_id, vector_dims = d.vector_dims
    from due d
    where s.memory_id = d.memory_id and (s.thought_id, s.vector_dims) is distinct from (d.thought_id, d.vector_dims)),
  gone as (
    delete from ranked_ledger.decision_vectors v using due d where v.row_no = d.row_no and d.vector_dims = 0)
  insert into ranked_ledger.decision_vectors as v (row_no, workspace_key, embedding)
  select d.row_no, d.workspace_key, d.embedding from due d where d.vector_dims > 0
  on conflict (row_no) do update set embedding = excluded.embedding
  where v.embedding is distinct from excluded.embedding;
end
$$;

comment on function ranked_ledger.renew_vectors(uuid[]) is 'Copies the vectors of decisions anew, which the caller holds.';

create or replace function ranked_ledger.copy_memory_changes(p_memory_ids uuid[], p_thought_changed uuid[], p_lifecycle_changed uuid[])
returns void language plpgsql
set search_path = public, extensions, pg_temp
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_held uuid[] := ranked_ledger.hold_standings(p_memory_ids);
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    return; -- all are marked, and what a marked one rests on is weighed with it
  end if;
  update ranked_ledger.standings s
  set is_active = d.is_active, is_retired = d.is_retired, is_unconfirmed = d.is_unconfirmed, is_personal = d.is_personal
  from ranked_ledger.standings_due(v_held) d
  where s.memory_id = d.memory_id
    and (s.is_active, s.is_retired, s.is_unconfirmed, s.is_personal)
        <> (d.is_active, d.is_retired, d.is_unconfirmed, d.is_personal);
  if p_thought_changed <> '{}' then
    perform ranked_ledger.renew_vectors(array(select unnest(v_held) intersect select unnest(p_thought_changed)));
  end if;
  if p_lifecycle_changed <> '{}' then
    perform ranked_ledger.recount_dependents(ranked_ledger.grounds_of(p_lifecycle_changed));
  end if;
end
$$;

comment on function ranked_ledger.copy_memory_changes(uuid[], uuid[], uuid[]) is
  'Brings the copies of decisions in step with their memories: flags, the vector where the thought changed, the dependents of what they rest on where lifecycle or workspace did.';

create or replace function ranked_ledger.copy_updated_memories()
returns trigger language plpgsql security definer -- the host's writer may have no right on our tables
set search_path = public, extensions, pg_temp
as $$
declare
  v_ids       uuid[];
  v_thought   uuid[];
  v_lifecycle uuid[];
begin
  select array_agg(n.id), coalesce(array_agg(n.id) filter (where n.thought_id is distinct from o.thought_id), '{}'),
         coalesce(array_agg(n.id) filter (
           where (n.lifecycle_status, n.workspace_id) is distinct from (o.lifecycle_status, o.workspace_id)), '{}')
  into v_ids, v_thought, v_lifecycle
  from memories_after n full join memories_before o on o.id = n.id
  where n.memory_type is not distinct from 'decision'
    -- the workspace too: where the ledger row cannot follow, nothing else tells what it rested on
    and (n.lifecycle_status, n.review_status, n.requires_user_confirmation, n.visibility, n.thought_id, n.workspace_id)
        is distinct from
        (o.lifecycle_status, o.review_status, o.requires_user_confirmation, o.visibility, o.thought_id, o.workspace_id);
  if v_ids is null then
    return null;
  end if;
  begin
    perform ranked_ledger.copy_memory_changes(v_ids, v_thought, v_lifecycle);
  exception when others then
    insert into ranked_ledger.stale_copies (workspace_key, memory_id)
    select ranked_ledger.workspace_key(n.workspace_id), n.id from memories_after n where n.id = any (v_ids);
  end;
  return null;
exception when others then
  raise warning 'Ranked Ledger: copies of decisions were not renewed (%); check_copies mends them', sqlerrm;
  return null;
end
$$;

comment on function ranked_ledger.copy_updated_memories() is 'The copies follow the memories, a statement at a time. The host''s update goes through whatever happens here.';

create or replace trigger trg_agent_decision_ledger_recopy
  after update on public.agent_memories
  referencing old table as memories_before new table as memories_after
  for each statement execute function ranked_ledger.copy_updated_memories();

-- A decision that is being enrolled on this thought elsewhere is not seen from here, and its writer has read the old vector:
-- the thought is marked, and whoever turns up with it is weighed from the tables until that writer has ended.
create or replace function ranked_ledger.copy_updated_thoughts()
returns trigger language plpgsql security definer -- as above
set search_path = public, extensions, pg_temp
as $$
declare
  v_thoughts uuid[];
  v_ids      uuid[];
begin
  v_thoughts := array(
    select n.id from thoughts_after n full join thoughts_before o on o.id = n.id
    where n.embedding is distinct from o.embedding and n.id is not null);
  if v_thoughts = '{}' then
    return null;
  end if;
  begin
    v_ids := array(select s.memory_id from ranked_ledger.standings s where s.thought_id = any (v_thoughts));
    if v_ids <> '{}' then
      perform ranked_ledger.renew_vectors(ranked_ledger.hold_standings(v_ids));
    end if;
  exception when others then
    null; -- the mark is enough
  end;
  insert into ranked_ledger.stale_copies (thought_id) select u.id from unnest(v_thoughts) as u (id);
  perform ranked_ledger.forget_marks(2 * cardinality(v_thoughts) + 10); -- most thoughts are no decision's
  return null;
exception when others then
  raise warning 'Ranked Ledger: copies of vectors were not renewed (%); check_copies mends them', sqlerrm;
  return null;
end
$$;

comment on function ranked_ledger.copy_updated_thoughts() is 'The copies follow the vectors of thoughts. The host''s update goes through whatever happens here.';

create or replace trigger trg_agent_decision_ledger_revector
  after update on public.thoughts
  referencing old table as thoughts_before new table as thoughts_after
  for each statement execute function ranked_ledger.copy_updated_thoughts();
