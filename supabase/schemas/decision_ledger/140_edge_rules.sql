-- Edges: both ends in one workspace, no cycle of depends_on, and a mark where the ground goes.

create or replace function ranked_ledger.dependency_path(p_from uuid, p_to uuid)
returns uuid[] language sql stable
set search_path = public, extensions, pg_temp
as $$
  with recursive walk as (
    select p_from as memory_id, array[p_from] as path
    union all
    select e.to_memory_id, w.path || e.to_memory_id
    from walk w
    join public.agent_decision_edges e on e.from_memory_id = w.memory_id and e.relation = 'depends_on'
    where w.memory_id <> p_to
  ) cycle memory_id set is_cycle using seen
  select w.path from walk w where w.memory_id = p_to order by cardinality(w.path) limit 1
$$;

comment on function ranked_ledger.dependency_path(uuid, uuid) is
  'A shortest path of depends_on edges from one decision to another; null where there is none.';

create or replace function ranked_ledger.check_edge()
returns trigger language plpgsql security definer -- reads both ends for a writer who may not
set search_path = public, extensions, pg_temp
as $$
declare
  v_from text;
  v_to   text;
  v_path uuid[];
begin
  select m.workspace_id into v_from from public.agent_memories m where m.id = new.from_memory_id;
  select m.workspace_id into v_to from public.agent_memories m where m.id = new.to_memory_id;
  if v_from is null or v_to is null then
    raise sqlstate 'RL404' using
      message = format('there is no decision %s', case when v_from is null then new.from_memory_id else new.to_memory_id end),
      hint = 'Both ends of an edge are decisions of the same workspace.';
  elsif v_from <> v_to then
    raise sqlstate 'RL462' using
      message = 'an edge cannot cross workspaces',
      hint = 'Record the decision in this workspace too, and link to that one.';
  end if;

  if new.relation = 'depends_on' then
    -- two transactions that add the two halves of a cycle do not see each other: one lock a workspace, for edges only
    perform pg_advisory_xact_lock(hashtextextended('ranked_ledger.edges ' || v_from, 0));
    v_path := ranked_ledger.dependency_path(new.to_memory_id, new.from_memory_id);
    if v_path is not null then
      raise sqlstate 'RL461' using
        message = format('depends_on would close a cycle: %s', array_to_string(new.from_memory_id || v_path, ' -> ')),
        detail = array_to_string(new.from_memory_id || v_path, ' -> '),
        hint = 'Remove one of these edges first, or use the relation informs.';
    end if;
  end if;
  return new;
end
$$;

comment on function ranked_ledger.check_edge() is 'Refuses an edge across workspaces (RL462) and a cycle of depends_on (RL461, with the path).';

create or replace trigger agent_decision_edges_check
  before insert or update of from_memory_id, to_memory_id, relation on public.agent_decision_edges
  for each row execute function ranked_ledger.check_edge();

create or replace function ranked_ledger.note_lost_ground()
returns trigger language plpgsql security definer -- fired by cascades from the host's own deletes
set search_path = public, extensions, pg_temp
as $$
begin
  insert into ranked_ledger.lost_grounds (memory_id, lost_memory_id, relation)
  select old.from_memory_id, old.to_memory_id, old.relation
  where not exists (select from public.agent_memories m where m.id = old.to_memory_id)
    and exists (select from public.agent_memories m where m.id = old.from_memory_id)
  on conflict do nothing;
  return null;
exception when others then
  raise warning 'Ranked Ledger: the lost ground of % was not noted (%)', old.from_memory_id, sqlerrm;
  return null;
end
$$;

comment on function ranked_ledger.note_lost_ground() is
  'A decision keeps a mark of what it rested on when that is deleted; an edge that is merely removed leaves none.';

create or replace trigger agent_decision_edges_note_lost_ground
  after delete on public.agent_decision_edges
  for each row execute function ranked_ledger.note_lost_ground();
