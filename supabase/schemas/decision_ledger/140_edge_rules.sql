-- Edges: both ends in one workspace, no cycle of depends_on, and a mark where the ground goes.

-- Each decision is visited once. Walking path by path instead visits a decision as often as there are ways to it: where each
-- rests on the three before it, the 21st took seconds.
create or replace function ranked_ledger.depends_on_transitively(p_from uuid, p_to uuid)
returns boolean language sql stable
set search_path = public, extensions, pg_temp
as $$
  with recursive ground as (
    select p_from as memory_id
    union
    select e.to_memory_id
    from ground g
    join public.agent_decision_edges e on e.from_memory_id = g.memory_id and e.relation = 'depends_on'
  )
  select exists (select from ground g where g.memory_id = p_to)
$$;

comment on function ranked_ledger.depends_on_transitively(uuid, uuid) is
  'Whether a decision is reached from another over depends_on; true of itself.';

create or replace function ranked_ledger.dependency_path(p_from uuid, p_to uuid)
returns uuid[] language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
declare
  v_seen     uuid[] := array[p_from];
  v_parents  uuid[] := array[null::uuid];
  v_frontier uuid[] := array[p_from];
  v_next_by  uuid[];
  v_path     uuid[];
  v_step     uuid := p_to;
begin
  if not ranked_ledger.depends_on_transitively(p_from, p_to) then
    return null;
  end if;
  while not p_to = any (v_seen) loop -- breadth first, each with the one that it was first reached from
    select array_agg(n.to_memory_id), array_agg(n.from_memory_id) into v_frontier, v_next_by
    from (select distinct on (e.to_memory_id) e.to_memory_id, e.from_memory_id
          from public.agent_decision_edges e
          where e.from_memory_id = any (v_frontier) and e.relation = 'depends_on' and e.to_memory_id <> all (v_seen)
          order by e.to_memory_id, e.from_memory_id) as n;
    exit when v_frontier is null;
    v_seen := v_seen || v_frontier;
    v_parents := v_parents || v_next_by;
  end loop;
  while v_step is not null loop
    v_path := v_step || v_path;
    v_step := v_parents[array_position(v_seen, v_step)];
  end loop;
  return v_path;
end
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
    if current_setting('transaction_isolation') = 'repeatable read' then
      raise sqlstate '0A000' using
        message = 'depends_on cannot be added under REPEATABLE READ: its snapshot hides edges that would make a cycle of it',
        hint = 'Use READ COMMITTED, the default, or SERIALIZABLE.';
    end if;
    -- two transactions that add the two halves of a cycle do not see each other: one lock a workspace, for edges only
    perform pg_advisory_xact_lock(hashtextextended('ranked_ledger.edges ' || v_from, 0));
    -- nothing rests on a decision that is new: it can close no cycle, and what it rests on need not be walked
    if exists (select from public.agent_decision_edges e
               where e.to_memory_id = new.from_memory_id and e.relation = 'depends_on') then
      v_path := ranked_ledger.dependency_path(new.to_memory_id, new.from_memory_id);
    end if;
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
  for each row when (old.relation = 'depends_on') -- to inform or to block somebody is not to rest on him
  execute function ranked_ledger.note_lost_ground();

-- The cascades of a memory take its edges by one end, then by the other: two of the host's deletes, of the two ends, met in
-- between. Taken once before, in one order, they wait for each other instead.
create or replace function ranked_ledger.hold_edges()
returns trigger language plpgsql security definer -- the host's writer may have no right on our tables
set search_path = public, extensions, pg_temp
as $$
begin
  perform from public.agent_decision_edges e
  where e.from_memory_id = old.id or e.to_memory_id = old.id order by e.id for update;
  return old;
exception when others then
  return old;
end
$$;

comment on function ranked_ledger.hold_edges() is 'Locks the edges of a memory that is deleted, in id order.';

create or replace trigger trg_agent_decision_ledger_hold_edges
  before delete on public.agent_memories
  for each row execute function ranked_ledger.hold_edges();
