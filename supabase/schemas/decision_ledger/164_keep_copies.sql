-- The copies follow the ledger and the edges, in the transaction of the write. Each writer brings only what is its own to
-- write: two that wrote all of it would put back each other's old values.

-- The newest step of a stream is found by settlement, which hears of what enrolment wrote. What was written past it, into
-- the ledger itself, is told here.
create or replace function ranked_ledger.note_written_by_hand(p_memory_id uuid, p_stream_ids uuid[])
returns void language plpgsql
set search_path = public, extensions, pg_temp
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
as $$
begin
  if current_setting('ranked_ledger.is_following', true) = '1'
     or exists (select from ranked_ledger.pending_steps p where p.memory_id = p_memory_id) then
    return;
  end if;
  p_stream_ids := array(
    select distinct u.id from unnest(p_stream_ids) as u (id)
    where ranked_ledger.newest_settled_step(u.id)
          is distinct from (select s.newest_step from ranked_ledger.streams s where s.stream_id = u.id));
  if p_stream_ids <> '{}' then
    perform set_config('ranked_ledger.unsettled', '1', true);
    insert into ranked_ledger.pending_steps (stream_id) select u.id from unnest(p_stream_ids) as u (id);
  end if;
end
$$;

comment on function ranked_ledger.note_written_by_hand(uuid, uuid[]) is
  'A stream whose rows changed without a mark of their own finds its newest step again at commit.';

-- How many live decisions rest on these, counted anew. A change of who is alive holds the standing of the decision itself
-- (above, 166) and an edge that of its dependent, so of two that change the same count at once one leaves a mark.
create or replace function ranked_ledger.recount_dependents(p_memory_ids uuid[])
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
  update ranked_ledger.standings s set live_dependents = d.live_dependents
  from ranked_ledger.standings_due(v_held) d
  where s.memory_id = d.memory_id and s.live_dependents <> d.live_dependents;
end
$$;

comment on function ranked_ledger.recount_dependents(uuid[]) is 'Counts anew how many live decisions rest on each of these.';

create or replace function ranked_ledger.grounds_of(p_memory_ids uuid[])
returns uuid[] language plpgsql stable
set search_path = public, extensions, pg_temp
set enable_seqscan = off
as $$
begin
  return array(
    select distinct e.to_memory_id from public.agent_decision_edges e
    where e.from_memory_id = any (p_memory_ids) and e.relation = 'depends_on');
end
$$;

comment on function ranked_ledger.grounds_of(uuid[]) is 'What these decisions rest on.';

create or replace function ranked_ledger.copy_inserted_rows()
returns trigger language plpgsql security definer -- enrolment runs under writers with no right on our tables
set search_path = public, extensions, pg_temp
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_memory_ids uuid[] := array(select n.memory_id from new_rows n);
  v_grounds    uuid[];
begin
  perform ranked_ledger.make_copies(v_memory_ids);
  perform ranked_ledger.note_written_by_hand(n.memory_id, array[n.stream_id]) from new_rows n
  where not exists (select from ranked_ledger.pending_steps p where p.memory_id = n.memory_id);
  v_grounds := ranked_ledger.grounds_of(v_memory_ids); -- edges that were there before their decision was enrolled
  if v_grounds <> '{}' then
    perform ranked_ledger.recount_dependents(v_grounds);
  end if;
  return null;
end
$$;

comment on function ranked_ledger.copy_inserted_rows() is 'Writes the copies of decisions that are new to the ledger.';

create or replace trigger agent_decision_ledger_copy_inserted_rows
  after insert on public.agent_decision_ledger
  referencing new table as new_rows
  for each statement execute function ranked_ledger.copy_inserted_rows();

create or replace function ranked_ledger.copy_updated_row()
returns trigger language plpgsql security definer -- as above
set search_path = public, extensions, pg_temp
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_row_no        int;
  v_workspace_key bigint;
  v_found         boolean := exists (select from ranked_ledger.standings s where s.memory_id = new.memory_id);
begin
  if (old.stream_id, old.step_index) <> (new.stream_id, new.step_index) then
    perform ranked_ledger.note_written_by_hand(new.memory_id, array[old.stream_id, new.stream_id]);
  end if;
  if v_found and ranked_ledger.hold_standings(array[new.memory_id]) = '{}' then -- marked, where the copies say that it is
    if old.workspace_id <> new.workspace_id then
      perform ranked_ledger.mark_stale(new.workspace_id, array[new.memory_id]);
    end if;
    return null;
  end if;
  if not v_found or old.workspace_id <> new.workspace_id or (old.set_aside_at is null) <> (new.set_aside_at is null) then
    perform ranked_ledger.drop_copies(new.memory_id);
    perform ranked_ledger.make_copies(array[new.memory_id]);
    perform ranked_ledger.recount_dependents(ranked_ledger.grounds_of(array[new.memory_id]));
    return null;
  end if;
  update ranked_ledger.standings s
  set stream_id = new.stream_id, step_index = new.step_index, importance = new.importance, pinned = new.pinned
  where s.memory_id = new.memory_id
    and (s.stream_id, s.step_index, s.importance, s.pinned) <> (new.stream_id, new.step_index, new.importance, new.pinned);
  if old.search_lexemes is distinct from new.search_lexemes then
    update ranked_ledger.standings s
    set text_length = coalesce(ranked_ledger.text_length(new.search_lexemes), 0),
        summary_words = coalesce(ranked_ledger.summary_words(new.search_lexemes), 0)
    where s.memory_id = new.memory_id
    returning s.row_no, s.workspace_key into v_row_no, v_workspace_key; -- of now, held: it may have been made anew meanwhile
    delete from ranked_ledger.postings p where p.row_no = v_row_no;
    insert into ranked_ledger.postings (term, row_no, occurrences, in_summary)
    select x.term, v_row_no, x.occurrences, x.in_summary
    from ranked_ledger.terms_of(v_workspace_key, new.search_lexemes) as x;
  end if;
  return null;
end
$$;

comment on function ranked_ledger.copy_updated_row() is 'Brings the copies of a decision in step with its ledger row.';

-- named columns, so that the counters of a recall cost nothing here; rationale, since a trigger turns it into lexemes
create or replace trigger agent_decision_ledger_copy_updated_row
  after update of workspace_id, project_id, task_id, step_index, importance, pinned, set_aside_at, rationale, search_lexemes
  on public.agent_decision_ledger
  for each row when (
    (old.stream_id, old.step_index, old.importance, old.pinned, old.set_aside_at, old.search_lexemes)
    is distinct from (new.stream_id, new.step_index, new.importance, new.pinned, new.set_aside_at, new.search_lexemes))
  execute function ranked_ledger.copy_updated_row();

create or replace function ranked_ledger.drop_deleted_rows()
returns trigger language plpgsql security definer -- fired by cascades from the host's own deletes
set search_path = public, extensions, pg_temp
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_held    uuid[] := ranked_ledger.hold_standings(array(select d.memory_id from deleted_rows d));
  v_grounds uuid[] := ranked_ledger.grounds_of(array(select d.memory_id from deleted_rows d));
begin
  perform ranked_ledger.drop_copies(d.memory_id) from deleted_rows d where d.memory_id in (select unnest(v_held));
  -- what somebody holds keeps its standing until later, but not its words
  delete from ranked_ledger.postings p where p.row_no = any (array(
    select s.row_no from deleted_rows d join ranked_ledger.standings s on s.memory_id = d.memory_id));
  if v_grounds <> '{}' then -- else the edges went with the memory, and see to it themselves
    perform ranked_ledger.recount_dependents(v_grounds);
  end if;
  return null;
exception when others then
  raise warning 'Ranked Ledger: the copies of deleted decisions were left (%); check_copies mends them', sqlerrm;
  return null;
end
$$;

comment on function ranked_ledger.drop_deleted_rows() is 'The copies go with their decision.';

create or replace trigger agent_decision_ledger_drop_deleted_rows
  after delete on public.agent_decision_ledger
  referencing old table as deleted_rows
  for each statement execute function ranked_ledger.drop_deleted_rows();

-- An edge holds its dependent too: whether that one is alive may be changing at this moment, unseen from here.
create or replace function ranked_ledger.count_edges(p_from uuid[], p_to uuid[])
returns void language plpgsql
set search_path = public, extensions, pg_temp
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_held_from uuid[];
begin
  if p_to = '{}' then
    return;
  end if;
  v_held_from := ranked_ledger.hold_standings(p_from);
  perform ranked_ledger.recount_dependents(p_to);
  if current_setting('transaction_isolation') <> 'read committed' then
    return; -- everything is marked
  end if;
  insert into ranked_ledger.stale_copies (workspace_key, memory_id)
  select s.workspace_key, s.memory_id from ranked_ledger.standings s
  where s.memory_id in (select u.t from unnest(p_from, p_to) as u (f, t) where u.f not in (select unnest(v_held_from)));
end
$$;

comment on function ranked_ledger.count_edges(uuid[], uuid[]) is 'Recounts the dependents of the ends of edges that came or went.';

create or replace function ranked_ledger.count_changed_edges()
returns trigger language plpgsql security definer -- fired by cascades from the host's own deletes
set search_path = public, extensions, pg_temp
as $$
declare
  v_from uuid[] := '{}';
  v_to   uuid[] := '{}';
begin
  if tg_op in ('INSERT', 'UPDATE') then
    select coalesce(array_agg(e.from_memory_id), '{}'), coalesce(array_agg(e.to_memory_id), '{}') into v_from, v_to
    from edges_after e where e.relation = 'depends_on';
  end if;
  perform ranked_ledger.count_edges(v_from, v_to);
  if tg_op in ('UPDATE', 'DELETE') then
    select coalesce(array_agg(e.from_memory_id), '{}'), coalesce(array_agg(e.to_memory_id), '{}') into v_from, v_to
    from edges_before e where e.relation = 'depends_on';
    perform ranked_ledger.count_edges(v_from, v_to);
  end if;
  return null;
exception when others then
  if tg_op <> 'DELETE' then
    raise;
  end if;
  raise warning 'Ranked Ledger: dependents were not recounted (%); check_copies mends it', sqlerrm;
  return null;
end
$$;

comment on function ranked_ledger.count_changed_edges() is 'Keeps the number of live dependents when edges are written.';

create or replace trigger agent_decision_edges_count_inserted
  after insert on public.agent_decision_edges
  referencing new table as edges_after
  for each statement execute function ranked_ledger.count_changed_edges();

create or replace trigger agent_decision_edges_count_updated
  after update on public.agent_decision_edges
  referencing old table as edges_before new table as edges_after
  for each statement execute function ranked_ledger.count_changed_edges();

create or replace trigger agent_decision_edges_count_deleted
  after delete on public.agent_decision_edges
  referencing old table as edges_before
  for each statement execute function ranked_ledger.count_changed_edges();

create or replace function ranked_ledger.empty_copies()
returns trigger language plpgsql security definer -- fired by a truncate of the host's table, cascade
set search_path = public, extensions, pg_temp
set lock_timeout = '500ms'
as $$
begin
  -- a reader of the copies may wait for the table that is emptied: the host's truncate goes first
  if tg_relid = 'public.agent_decision_ledger'::regclass then
    truncate ranked_ledger.standings, ranked_ledger.postings, ranked_ledger.decision_vectors, ranked_ledger.stale_copies;
  else
    update ranked_ledger.standings s set live_dependents = 0 where s.live_dependents <> 0;
  end if;
  return null;
exception when others then
  raise warning 'Ranked Ledger: the copies of an emptied table were left (%); enroll_missing_decisions mends it', sqlerrm;
  return null;
end
$$;

comment on function ranked_ledger.empty_copies() is 'An emptied ledger has no copies, emptied edges no dependents.';

create or replace trigger agent_decision_ledger_empty_copies
  after truncate on public.agent_decision_ledger
  for each statement execute function ranked_ledger.empty_copies();

create or replace trigger agent_decision_edges_empty_copies
  after truncate on public.agent_decision_edges
  for each statement execute function ranked_ledger.empty_copies();
