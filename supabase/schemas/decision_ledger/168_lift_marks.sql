-- Copies that may lag are made anew by the recalls that follow, and by the backfill.

create or replace function ranked_ledger.renew_copies(p_memory_ids uuid[])
returns void language plpgsql
set search_path = public, extensions, pg_temp
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
as $$
begin
  perform ranked_ledger.drop_copies(u.memory_id) from unnest(p_memory_ids) as u (memory_id);
  perform ranked_ledger.make_copies(p_memory_ids);
end
$$;

comment on function ranked_ledger.renew_copies(uuid[]) is
  'Makes the copies of decisions anew, which the caller holds. They get a new row number.';

-- A mark is lifted in two steps. Whoever sees it first, of those that come after its own transaction, notes who may be running;
-- once all of those have ended, what they did can be seen, and the copies are made for good.
create or replace function ranked_ledger.marks_to_lift(p_limit int)
returns bigint[] language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_marks bigint[];
begin
  v_marks := array(
    select c.id from ranked_ledger.stale_copies c
    where c.horizon <= pg_snapshot_xmin(pg_current_snapshot()) order by c.id limit p_limit for update skip locked);
  -- an id of our own is above that of everybody who runs; a snapshot's xmax is not, it ends at the last that completed
  update ranked_ledger.stale_copies c set horizon = pg_current_xact_id()
  where c.id in (select o.id from ranked_ledger.stale_copies o where o.horizon is null and o.marked_by <> pg_current_xact_id()
                 order by o.id limit 10 * p_limit for update skip locked);
  return v_marks;
end
$$;

comment on function ranked_ledger.marks_to_lift(int) is
  'Locks and answers marks, so many at most, whose transactions have all ended; notes the time for those that are new.';

create or replace function ranked_ledger.forget_marks(p_limit int)
returns void language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_marks bigint[];
begin
  if current_setting('transaction_isolation') = 'read committed' then
    v_marks := ranked_ledger.marks_to_lift(p_limit);
    delete from ranked_ledger.stale_copies c
    where c.id = any (v_marks) and c.memory_id is null
      and not exists (select from ranked_ledger.standings s where s.thought_id = c.thought_id);
  end if;
end
$$;

comment on function ranked_ledger.forget_marks(int) is 'Lifts marks of thoughts that turned out to be no decision''s.';

create or replace function ranked_ledger.lift_marks(p_limit int)
returns int language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_marks  bigint[];
  v_ids    uuid[]; -- all copies are made anew
  v_recast uuid[]; -- the vector alone
  v_held   uuid[];
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    return 0;
  end if;
  v_marks := ranked_ledger.marks_to_lift(p_limit);
  if v_marks = '{}' then
    return 0;
  end if;
  v_ids := array(select distinct c.memory_id from ranked_ledger.stale_copies c where c.id = any (v_marks) and c.memory_id is not null);
  v_recast := array(
    select distinct s.memory_id from ranked_ledger.stale_copies c join ranked_ledger.standings s on s.thought_id = c.thought_id
    where c.id = any (v_marks) and s.memory_id not in (select unnest(v_ids)));
  v_held := array(
    select s.memory_id from ranked_ledger.standings s where s.memory_id = any (v_ids || v_recast) order by s.memory_id
    for no key update skip locked);
  v_ids := array( -- those that had no copies, too
    select u.id from unnest(v_ids) as u (id)
    where u.id in (select unnest(v_held)) or not exists (select from ranked_ledger.standings s where s.memory_id = u.id));
  perform ranked_ledger.renew_copies(ranked_ledger.wrong_copies(v_ids)); -- what is right keeps its place
  perform ranked_ledger.recount_dependents(ranked_ledger.grounds_of(v_ids));
  perform ranked_ledger.renew_vectors(array(select unnest(v_recast) intersect select unnest(v_held)));
  delete from ranked_ledger.stale_copies c
  where c.id = any (v_marks)
    and (c.memory_id in (select unnest(v_ids))
         or c.memory_id is null and not exists (
           select from ranked_ledger.standings s where s.thought_id = c.thought_id and s.memory_id not in (select unnest(v_held))));
  return cardinality(v_ids) + cardinality(v_recast);
end
$$;

comment on function ranked_ledger.lift_marks(int) is
  'Makes copies anew that may lag, of at most so many marks, and lifts the marks; what somebody holds is left. Answers how many decisions.';

-- What is marked, and what it rests on: a dependent that is about to change counts, or no longer does.
create or replace function ranked_ledger.stale_decisions(p_workspace_key bigint, p_limit int)
returns uuid[] language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
begin
  if not exists (select from ranked_ledger.stale_copies) then
    return '{}';
  end if;
  return (
  with marked as materialized (
    select x.memory_id
    from (select c.memory_id from ranked_ledger.stale_copies c where c.workspace_key = p_workspace_key
          union
          select s.memory_id from ranked_ledger.stale_copies c join ranked_ledger.standings s on s.thought_id = c.thought_id
          where c.thought_id is not null and s.workspace_key = p_workspace_key) as x
    limit p_limit)
  select coalesce(array_agg(y.memory_id), '{}')
  from (select m.memory_id from marked m
        union
        select e.to_memory_id from marked m
        join public.agent_decision_edges e on e.from_memory_id = m.memory_id and e.relation = 'depends_on') as y);
end
$$;

comment on function ranked_ledger.stale_decisions(bigint, int) is
  'Decisions of a workspace whose copies may lag: of at most so many marks, with what they rest on.';

-- Whole ledgers: one that was there before the copies, one whose triggers were off.
create or replace function ranked_ledger.mend_copies(p_workspace_id text)
returns int language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_chunk uuid[];
  v_made  int := 0;
begin
  for v_chunk in
    select array_agg(x.memory_id)
    from (select l.memory_id, row_number() over (order by l.memory_id) as position
          from public.agent_decision_ledger l
          where l.set_aside_at is null and (p_workspace_id is null or l.workspace_id = p_workspace_id)
            and not exists (select from ranked_ledger.standings s where s.memory_id = l.memory_id)) as x
    group by (x.position - 1) / 500
  loop
    if v_made = 0 then -- the words of a standing that is lost would count twice (204)
      perform ranked_ledger.drop_lost_postings();
    end if;
    perform ranked_ledger.make_copies(v_chunk);
    v_made := v_made + cardinality(v_chunk);
  end loop;
  perform ranked_ledger.drop_copies(s.memory_id) from ranked_ledger.standings s
  where not exists (select from public.agent_decision_ledger l where l.memory_id = s.memory_id);
  perform ranked_ledger.lift_marks(100000);
  return v_made;
end
$$;

comment on function ranked_ledger.mend_copies(text) is
  'Writes the copies that are missing, of a workspace or of all, and removes those of decisions that are gone. Answers how many were missing.';
