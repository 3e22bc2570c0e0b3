-- Vectors lie in the order of their arrival. Where many workspaces write in turn, those of one lie one a page, and a scan of
-- them reads as many pages as it has rows. Here they are put together again, a stretch of the table at a time.

create or replace function ranked_ledger.move_vectors(p_row_nos int[])
returns int language plpgsql
set search_path = public, extensions, pg_temp
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_held  int[];
  v_moved int;
begin
  v_held := array( -- whoever holds a standing owns the copies, so nobody waits for us either
    select s.row_no from unnest(p_row_nos) as u (row_no) join ranked_ledger.standings s on s.row_no = u.row_no
    for no key update of s skip locked);
  -- no update: it leaves a row on its page wherever there is room
  with taken as (
    delete from ranked_ledger.decision_vectors v using unnest(v_held) as u (row_no) where v.row_no = u.row_no
    returning v.row_no, v.workspace_key, v.embedding)
  insert into ranked_ledger.decision_vectors (row_no, workspace_key, embedding)
  select t.row_no, t.workspace_key, t.embedding from taken t order by t.workspace_key, t.row_no;
  get diagnostics v_moved = row_count;
  return v_moved;
end
$$;

comment on function ranked_ledger.move_vectors(int[]) is
  'Writes these vectors anew, next to one another by workspace; those whose decision somebody holds stay where they are. Answers how many it moved.';

-- Pages that hold several workspaces, or little, are emptied whole: a hole of one row would take one row of the next that are
-- moved. A workspace of fewer than 500 vectors is no reason to move any, its scan is short wherever they lie.
create or replace function ranked_ledger.pack_vectors(p_limit int default 20000)
returns int language plpgsql
set search_path = public, extensions, pg_temp
set lock_timeout = '250ms' -- somebody who empties the table goes first
as $$
declare
  v_room   constant int := current_setting('block_size')::int - 24; -- bytes of a page that rows can have
  v_begun  constant timestamptz := clock_timestamp();
  v_pages  bigint;
  v_page   bigint;
  v_read   bigint := 0;
  v_step   bigint;
  v_last   bigint;
  v_large  bigint[];
  v_loose  int[];
  v_is_due boolean;
  v_moved  int := 0;
begin
  if coalesce(p_limit, 0) not between 1 and 1000000 then
    raise sqlstate '22023' using message = 'p_limit is a number from 1 to 1,000,000';
  end if;
  v_pages := pg_relation_size('ranked_ledger.decision_vectors') / current_setting('block_size')::int;
  if current_setting('transaction_isolation') <> 'read committed'
     or (select min(v.workspace_key) = max(v.workspace_key) from ranked_ledger.decision_vectors v) is distinct from false then
    return 0;
  end if;
  v_large := array(
    select v.workspace_key from ranked_ledger.decision_vectors v group by v.workspace_key having count(*) >= 500);
  if v_large = '{}' then
    return 0;
  end if;
  -- as many pages as hold p_limit rows of the usual length
  select greatest(1, p_limit / greatest(1, v_room / avg(x.bytes)::int)) into v_step
  from (select 44 + coalesce(pg_column_size(v.embedding), 0) as bytes from ranked_ledger.decision_vectors v limit 100) as x;

  -- once round the table from anywhere, so that what one call had no time for is not what the next has no time for
  v_page := floor(random() * v_pages / v_step)::bigint * v_step;
  while v_read < v_pages and clock_timestamp() < v_begun + interval '2 s' loop
    with here as materialized (
      select (v.ctid::text::point)[0]::bigint as page, v.workspace_key, v.row_no,
             44 + coalesce(pg_column_size(v.embedding), 0) as bytes
      from ranked_ledger.decision_vectors v
      where v.ctid >= format('(%s,0)', v_page)::tid and v.ctid < format('(%s,0)', least(v_page + v_step, v_pages))::tid),
    loose as materialized (
      select h.* from here h
      where h.page in (
        select p.page from here p group by p.page
        having min(p.workspace_key) < max(p.workspace_key) or sum(p.bytes) < v_room / 2)
      order by h.page limit p_limit),
    spread as ( -- the pages that a workspace takes, and those that would do: one more than it fills
      select count(distinct r.page) as pages, 1 + ceil(count(*) / greatest(1, floor(v_room / avg(r.bytes)))) as enough
      from loose r where r.workspace_key in (select unnest(v_large)) group by r.workspace_key)
    select array(select r.row_no from loose r), (select max(r.page) from loose r), sum(s.pages) > 1.5 * sum(s.enough)
    into v_loose, v_last, v_is_due from spread s;
    exit when v_moved > 0 and v_moved + cardinality(v_loose) > p_limit;
    if v_is_due then
      v_moved := v_moved + ranked_ledger.move_vectors(v_loose);
    end if;
    v_last := case when cardinality(v_loose) = p_limit then greatest(v_page + 1, v_last) else v_page + v_step end;
    v_read := v_read + v_last - v_page;
    v_page := case when v_last < v_pages then v_last else 0 end;
  end loop;
  return v_moved;
exception when lock_not_available then
  return 0;
end
$$;

comment on function ranked_ledger.pack_vectors(int) is
  'Puts vectors together by workspace where they lie scattered: in stretches of the table whose larger workspaces (500 vectors or more) take more than 1.5 times the pages they need. Moves so many rows at most (20,000 by default take a second), starts no stretch after two seconds, and waits for nobody. Answers how many it moved; 0 where it found none, or where somebody has the table. For a nightly job on a host with many workspaces: select cron.schedule(''ranked-ledger'', ''*/5 3 * * *'', ''select ranked_ledger.pack_vectors()'').';
