-- What the copies have to be, and their making. Plans are made once a session, of index look-ups alone: a plan a call cost more
-- than the copies of one decision, and what statistics say of tables that were empty a moment ago is no guide.

create or replace function ranked_ledger.standings_due(p_memory_ids uuid[])
returns table (
  memory_id uuid, workspace_key bigint, stream_id uuid, thought_id uuid, step_index int, importance float8,
  live_dependents int, pinned boolean, is_active boolean, is_retired boolean, is_unconfirmed boolean, is_personal boolean,
  search_lexemes tsvector)
language plpgsql stable
set search_path = public, extensions, pg_temp
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
as $$
begin
  return query
  select l.memory_id, ranked_ledger.workspace_key(l.workspace_id), l.stream_id, m.thought_id, l.step_index,
         l.importance::float8, d.live_dependents, l.pinned,
         m.lifecycle_status is not distinct from 'active', coalesce(m.lifecycle_status in ('superseded', 'rejected'), true),
         ranked_ledger.awaits_confirmation(m.requires_user_confirmation, m.review_status),
         m.visibility is not distinct from 'personal', l.search_lexemes
  from unnest(p_memory_ids) as c (memory_id)
  join public.agent_decision_ledger l on l.memory_id = c.memory_id and l.set_aside_at is null
  join public.agent_memories m on m.id = l.memory_id and m.workspace_id = l.workspace_id
  cross join lateral (
    select count(*)::int as live_dependents
    from public.agent_decision_edges e
    where e.to_memory_id = l.memory_id and e.relation = 'depends_on'
      and (select x.workspace_id = l.workspace_id and x.set_aside_at is null
                  and (select y.lifecycle_status = 'active' and y.workspace_id = x.workspace_id
                       from public.agent_memories y where y.id = x.memory_id)
           from public.agent_decision_ledger x where x.memory_id = e.from_memory_id)) as d;
end
$$;

comment on function ranked_ledger.standings_due(uuid[]) is
  'What standings has to say of these decisions, from the tables themselves. No row: nothing (set aside, gone, not followed to its new workspace).';

create or replace function ranked_ledger.vectors_due(p_memory_ids uuid[])
returns table (memory_id uuid, vector_dims int, embedding halfvec)
language plpgsql stable
set search_path = public, extensions, pg_temp
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
as $$
begin
  return query
  select m.id, vector_dims(t.embedding),
         case when ranked_ledger.is_usual_length(v.norm) then l2_normalize(t.embedding)::halfvec end
  from unnest(p_memory_ids) as c (memory_id)
  join public.agent_memories m on m.id = c.memory_id
  join public.thoughts t on t.id = m.thought_id
  cross join lateral (select vector_norm(t.embedding) as norm offset 0) as v
  where v.norm > 0;
end
$$;

comment on function ranked_ledger.vectors_due(uuid[]) is
  'The vectors of these decisions as decision_vectors has to hold them. No row: no vector, or one without a direction.';

do $do$
begin
  if exists (select from pg_proc p where p.oid = to_regprocedure('ranked_ledger.terms_of(bigint, tsvector)')
             and 'in_summary' <> all (p.proargnames)) then -- another answer
    execute 'drop function ranked_ledger.terms_of(bigint, tsvector)';
  end if;
end
$do$;

create or replace function ranked_ledger.terms_of(p_workspace_key bigint, p_lexemes tsvector)
returns table (term bigint, occurrences smallint, in_summary boolean) language sql immutable parallel safe
set search_path = public, extensions, pg_temp
as $$
  select ranked_ledger.term_of(p_workspace_key, x.lexeme),
         least(sum(cardinality(x.positions) - cardinality(array_positions(x.weights, 'A'))), 32767)::smallint,
         bool_or('A' = any (x.weights))
  from unnest(p_lexemes) as x group by 1
$$;

comment on function ranked_ledger.terms_of(bigint, tsvector) is
  'The terms of a decision, how often each stands in its text (as often as positions are stored, which is what ts_rank_cd counts), and whether in its summary.';

create or replace function ranked_ledger.text_length(p_lexemes tsvector)
returns int language sql immutable parallel safe
set search_path = public, extensions, pg_temp
as $$
  select case when p_lexemes is not null then coalesce(sum(cardinality(x.positions)), 0)::int end
  from unnest(ts_filter(p_lexemes, '{d}')) as x
$$;

comment on function ranked_ledger.text_length(tsvector) is 'How many words content and rationale have, without those that are not searched.';

create or replace function ranked_ledger.summary_words(p_lexemes tsvector)
returns int language sql immutable parallel safe
return length(ts_filter(p_lexemes, '{a}'));

comment on function ranked_ledger.summary_words(tsvector) is 'How many different words the summary has.';

create or replace function ranked_ledger.make_copies(p_memory_ids uuid[])
returns void language plpgsql
set search_path = public, extensions, pg_temp
set lock_timeout = '250ms' -- of two that make the copies of one decision, the other may stay open
set enable_hashjoin = on -- of these few rows, whatever the caller has set for its own look-ups
set plan_cache_mode = force_generic_plan
as $$
declare
  v_old_snapshot boolean := current_setting('transaction_isolation') <> 'read committed';
  v_placed       uuid[];
begin
  with due as materialized (
    select d.*, v.vector_dims, v.embedding
    from ranked_ledger.standings_due(p_memory_ids) d
    left join ranked_ledger.vectors_due(p_memory_ids) v on v.memory_id = d.memory_id),
  placed as (
    insert into ranked_ledger.standings as s (
      memory_id, workspace_key, stream_id, thought_id, step_index, importance, live_dependents, vector_dims, text_length,
      summary_words, pinned, is_active, is_retired, is_unconfirmed, is_personal)
    select d.memory_id, d.workspace_key, d.stream_id, d.thought_id, d.step_index, d.importance, d.live_dependents,
           coalesce(d.vector_dims, 0), coalesce(ranked_ledger.text_length(d.search_lexemes), 0),
           coalesce(ranked_ledger.summary_words(d.search_lexemes), 0),
           d.pinned, d.is_active, d.is_retired, d.is_unconfirmed, d.is_personal
    from due d
    on conflict (memory_id) do nothing
    returning s.memory_id, s.row_no),
  posted as (
    insert into ranked_ledger.postings (term, row_no, occurrences, in_summary)
    select x.term, p.row_no, x.occurrences, x.in_summary
    from placed p join due d on d.memory_id = p.memory_id
    cross join lateral ranked_ledger.terms_of(d.workspace_key, d.search_lexemes) as x),
  drawn as (
    insert into ranked_ledger.decision_vectors (row_no, workspace_key, embedding)
    select p.row_no, d.workspace_key, d.embedding from placed p join due d on d.memory_id = p.memory_id where d.vector_dims > 0)
  -- those without copies to make count as placed: somebody else's standing is what is looked for
  select coalesce(array_agg(u.id), '{}') into v_placed from unnest(p_memory_ids) as u (id)
  where u.id in (select p.memory_id from placed p) or u.id not in (select d.memory_id from due d);
  -- a snapshot that may be older than a vector or an edge, or copies that somebody else has made of what it saw
  if v_old_snapshot or cardinality(v_placed) < cardinality(p_memory_ids) then
    insert into ranked_ledger.stale_copies (workspace_key, memory_id)
    select ranked_ledger.workspace_key(l.workspace_id), l.memory_id
    from public.agent_decision_ledger l
    where l.memory_id = any (p_memory_ids) and l.set_aside_at is null
      and (v_old_snapshot or l.memory_id not in (select unnest(v_placed)));
  end if;
end
$$;

comment on function ranked_ledger.make_copies(uuid[]) is 'Writes the copies of decisions that have none; under an old snapshot, marked to be made again.';

create or replace function ranked_ledger.drop_copies(p_memory_id uuid)
returns void language plpgsql
set search_path = public, extensions, pg_temp
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_row_no int;
begin
  delete from ranked_ledger.standings s where s.memory_id = p_memory_id returning s.row_no into v_row_no;
  if found then
    delete from ranked_ledger.decision_vectors v where v.row_no = v_row_no;
    delete from ranked_ledger.postings p where p.row_no = v_row_no;
  end if;
end
$$;

comment on function ranked_ledger.drop_copies(uuid) is 'Removes the copies of a decision, which the caller holds.';

-- Where a standing is lost, its words stay posted under a number that nobody knows.
create or replace function ranked_ledger.drop_lost_postings()
returns void language plpgsql
set search_path = public, extensions, pg_temp
as $$
begin
  delete from ranked_ledger.postings p
  where p.row_no in (select o.row_no from ranked_ledger.postings o
                     except select s.row_no from ranked_ledger.standings s);
end
$$;

comment on function ranked_ledger.drop_lost_postings() is 'Removes what is posted under the row number of no decision.';

-- Whoever holds a standing owns the decision's copies until its transaction ends. Nobody waits for it: what somebody else
-- holds is marked, and made anew later. Under an old snapshot everything is marked.
create or replace function ranked_ledger.hold_standings(p_memory_ids uuid[])
returns uuid[] language plpgsql
set search_path = public, extensions, pg_temp
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_held uuid[] := '{}';
begin
  if current_setting('transaction_isolation') = 'read committed' then
    v_held := array(
      select s.memory_id from ranked_ledger.standings s where s.memory_id = any (p_memory_ids)
      order by s.memory_id for no key update skip locked);
  end if;
  if cardinality(v_held) < cardinality(p_memory_ids) then
    -- also those whose standing is not to be seen: somebody may be making it at this moment, of what it sees
    insert into ranked_ledger.stale_copies (workspace_key, memory_id)
    select coalesce(s.workspace_key, ranked_ledger.workspace_key(m.workspace_id)), u.memory_id
    from (select distinct p.id from unnest(p_memory_ids) as p (id) where p.id not in (select unnest(v_held))) as u (memory_id)
    left join ranked_ledger.standings s on s.memory_id = u.memory_id
    left join public.agent_memories m on m.id = u.memory_id and m.memory_type = 'decision'
    where s.memory_id is not null or m.id is not null;
  end if;
  return v_held;
end
$$;

comment on function ranked_ledger.hold_standings(uuid[]) is
  'Locks the standings of these decisions that are free and answers which; marks the others as stale. Never waits.';

create or replace function ranked_ledger.mark_stale(p_workspace_id text, p_memory_ids uuid[])
returns void language sql
set search_path = public, extensions, pg_temp
as $$
  insert into ranked_ledger.stale_copies (workspace_key, memory_id)
  select ranked_ledger.workspace_key(p_workspace_id), u.memory_id from unnest(p_memory_ids) as u (memory_id)
$$;

comment on function ranked_ledger.mark_stale(text, uuid[]) is 'Decisions whose copies are to be made anew.';
