-- Above 10,000 decisions a caller may trade the proof for speed: the nearest come from the host's own HNSW index, the others
-- from what is newest and what matters most. Nothing here bounds what was not looked at, so such an answer is never called
-- exact. An index of ours would prove as little, double the price of an insert and add 4 KB a decision.

create or replace function ranked_ledger.has_vector_index()
returns boolean language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
begin
  return exists (
    select from pg_index i
    join pg_class c on c.oid = i.indexrelid
    join pg_am a on a.oid = c.relam and a.amname = 'hnsw'
    join pg_attribute t on t.attrelid = i.indrelid and t.attnum = i.indkey[0] and t.attname = 'embedding'
    join pg_opclass o on o.oid = i.indclass[0] and o.opcname = 'vector_cosine_ops'
    where i.indrelid = 'public.thoughts'::regclass and i.indisvalid and i.indpred is null);
end
$$;

comment on function ranked_ledger.has_vector_index() is 'Whether the host has an HNSW index for cosines on thoughts.embedding.';

create or replace function ranked_ledger.may_probe(p_question ranked_ledger.question, p_stream_ids uuid[])
returns boolean language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
begin
  return not p_question.exact
     -- standings_merit_idx holds active decisions in the order of the published weights
     and not p_question.with_stale and not p_question.with_retired
     and abs(p_question.w_dependency * 0.25 - p_question.w_importance * 0.15) <= 1e-9 and p_question.saturation = 3
     and not ranked_ledger.holds_at_most(p_stream_ids, 10000)
     and ranked_ledger.has_vector_index();
end
$$;

comment on function ranked_ledger.may_probe(ranked_ledger.question, uuid[]) is
  'Whether a question allows an unproven answer, and the indexes for one are there; else it is answered exactly.';

-- Rows of the whole host: of a workspace that is a small part of it few may come back, and the rest of the list makes up for it.
create or replace function ranked_ledger.probe_nearest(
  p_question ranked_ledger.question, p_count int, out row_nos int[], out cosines float8[], out far float8)
language plpgsql stable
set search_path = public, extensions, pg_temp
set enable_seqscan = off
set enable_sort = off
set enable_bitmapscan = off
set jit = off
as $$
begin
  execute $sql$
    select array_agg(x.row_no), array_agg(x.cosine), min(x.cosine)
    from (
      select s.row_no, 1 - (t.embedding <=> $2) as cosine
      from (select t.id, t.embedding from public.thoughts t order by t.embedding <=> $2 limit $3) as t
      cross join lateral (
        select s.row_no from ranked_ledger.standings s where s.thought_id = t.id and s.workspace_key = $1 offset 0) as s) as x
  $sql$
  into row_nos, cosines, far
  using p_question.workspace_key, p_question.embedding, p_count;
end
$$;

comment on function ranked_ledger.probe_nearest(ranked_ledger.question, int) is
  'Decisions of a workspace that the host''s HNSW index holds for the nearest.';

create or replace function ranked_ledger.list_by_probe(
  p_question ranked_ledger.question, p_stream_ids uuid[], p_newest_steps float8[], p_spare int)
returns ranked_ledger.shortlist language plpgsql stable
set search_path = public, extensions, pg_temp
set enable_seqscan = off
set enable_nestloop = off
set enable_bitmapscan = off
set jit = off
as $$
declare
  q       ranked_ledger.question := p_question;
  v_near  record := ranked_ledger.probe_nearest(p_question, 90 + p_question.match_count);
  v_slack float8 := ranked_ledger.cosine_error(vector_dims(p_question.embedding)) / (p_question.ceiling - p_question.floor);
  v_list  ranked_ledger.shortlist;
begin
  v_list.exact := false;
  v_list.tolerance := 1e-12 * (0.3 + q.w_similarity + q.w_importance + q.w_recency + q.w_dependency) + q.w_similarity * v_slack;
  execute format($sql$
    with proposed as (
      select s.*, v.cosine
      from unnest($1::int[], $2::float8[]) as v (row_no, cosine)
      cross join lateral (select s.* from ranked_ledger.standings s where s.row_no = v.row_no offset 0) as s
      union all
      select s.*, null
      from unnest($3::uuid[]) as u (stream_id)
      cross join lateral (select s.* from ranked_ledger.standings s where s.stream_id = u.stream_id and %1$s
                          order by s.step_index desc limit $5) as s
      union all
      (select s.*, null from ranked_ledger.standings s where s.workspace_key = $6 and s.is_active
       order by 0.25 * s.importance + 0.05 * least(s.live_dependents, 3) desc limit 600)
      union all
      select s.*, null from ranked_ledger.standings s where s.workspace_key = $6 and s.pinned),
    rested as materialized (
      select distinct on (s.row_no) s.row_no, s.memory_id, s.pinned, s.vector_dims, s.cosine,
             $7 * s.importance + $8 * ranked_ledger.recency(greatest(n.newest_step - s.step_index, 0), $9)
             + $10 * ranked_ledger.dependency(s.live_dependents, 3) as rest
      from proposed s join unnest($3::uuid[], $4::float8[]) as n (stream_id, newest_step) on n.stream_id = s.stream_id
      where %1$s
      order by s.row_no, s.cosine nulls last),
    reached as materialized ( -- by as many as are asked for, whatever their words
      select coalesce(max(x.score), '-Infinity') as score
      from ((select r.rest as score from rested r order by 1 desc offset $11 - 1 limit 1)
            union all
            (select r.rest + $12 * ranked_ledger.calibrate(r.cosine, $13, $14) from rested r where r.cosine is not null
             order by 1 desc offset $11 - 1 limit 1)) as x
      where $15 <= 0 and $16 <> 'blend'),
    found as (
      select s.memory_id, s.pinned, s.rest, %2$s as text_relevance,
             case when s.vector_dims = $17 then coalesce(s.cosine, - (v.embedding <#> $18), 2) end as cosine
      from rested s
      left join lateral (select v.embedding from ranked_ledger.decision_vectors v where s.cosine is null and v.row_no = s.row_no offset 0) as v
        on true
      where s.pinned or s.cosine is not null or s.rest + $12 * case when s.vector_dims = $17 and %3$s then $19 else 1 end
            >= (select r.score from reached r) offset 0),
    estimated as (
      select f.*, ranked_ledger.relevance(ranked_ledger.calibrate(f.cosine, $13, $14), f.text_relevance, $16, $20) as relevance
      from found f offset 0)
    select array_agg(x.memory_id), array_agg(x.estimate)
    from (select e.memory_id, case when e.cosine is null or e.cosine < 1.5 then e.rest + $12 * e.relevance end as estimate
          from estimated e
          where e.relevance >= $15
          order by e.pinned desc, e.rest + $12 * e.relevance desc limit $11 + 10) as x
  $sql$, ranked_ledger.scope_sql(q),
    case when q.fusion = 'none' then format('case when s.vector_dims = $17 then null else %s end', ranked_ledger.looked_up_text_sql(q, '$21'))
         else ranked_ledger.looked_up_text_sql(q, '$21') end,
    (q.fusion = 'none')::text)
  into v_list.memory_ids, v_list.estimates
  using v_near.row_nos, v_near.cosines, p_stream_ids, p_newest_steps,
        greatest(10, least(200, 600 / cardinality(p_stream_ids))), q.workspace_key, q.w_importance, q.w_recency, q.half_life,
        q.w_dependency, q.match_count + p_spare, q.w_similarity, q.floor, q.ceiling, q.min_relevance - v_slack, q.fusion,
        vector_dims(q.embedding), l2_normalize(q.embedding)::halfvec, ranked_ledger.calibrate(v_near.far, q.floor, q.ceiling),
        q.fusion_weight, q.terms;
  return v_list;
end
$$;

comment on function ranked_ledger.list_by_probe(ranked_ledger.question, uuid[], float8[], int) is
  'The shortlist of a question that does not insist on a proof: of the nearest by the host''s HNSW, the newest of each stream, and those of most importance and dependents.';

-- How far the index looks. Known only once pgvector is loaded, and not to be set by us before.
do $do$
begin
  perform '[1]'::vector;
  execute 'alter function ranked_ledger.probe_nearest(ranked_ledger.question, int) set hnsw.ef_search = 100';
exception when others then
  raise notice 'Ranked Ledger: unproven recall searches with the host''s hnsw.ef_search (%)', sqlerrm;
end
$do$;
