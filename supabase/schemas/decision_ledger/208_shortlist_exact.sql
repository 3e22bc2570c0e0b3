create or replace function ranked_ledger.list_by_standing(p_question ranked_ledger.question, p_spare int)
returns ranked_ledger.shortlist language plpgsql stable
set search_path = public, extensions, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off -- the partial index of merits would serve it, across all workspaces
set enable_nestloop = off -- but where it is the only way: without statistics two long lists were joined by it
set jit = off
as $$
declare
  q         ranked_ledger.question := p_question;
  v_streams record := ranked_ledger.streams_asked(p_question);
  v_list    ranked_ledger.shortlist;
begin
  v_list.exact := true;
  v_list.tolerance := 1e-12 * (0.3 + q.w_similarity + q.w_importance + q.w_recency + q.w_dependency);
  execute format('select array_agg(x.memory_id), array_agg(x.score) from (%s) as x', ranked_ledger.pass_sql(q, '$10'))
  into v_list.memory_ids, v_list.estimates
  using v_streams.stream_ids, v_streams.newest_steps, q.half_life, q.saturation, q.w_similarity, q.w_importance, q.w_recency,
        q.w_dependency, q.terms,
        ranked_ledger.scout(q, v_streams.stream_ids, v_streams.newest_steps, q.match_count + p_spare) - q.w_recency - v_list.tolerance,
        null::float8, 0, q.fusion, q.fusion_weight, q.min_relevance, q.match_count + p_spare;
  return v_list;
end
$$;

comment on function ranked_ledger.list_by_standing(ranked_ledger.question, int) is
  'The shortlist of a question without an embedding: as many as asked for, and some to spare for those whose copies may lag.';

create or replace function ranked_ledger.holds_at_most(p_stream_ids uuid[], p_count int)
returns boolean language plpgsql stable
set search_path = public, extensions, pg_temp
set enable_seqscan = off
as $$
begin
  return (select count(*) <= p_count
  from (select from ranked_ledger.standings s where s.stream_id = any (p_stream_ids) limit p_count + 1) as x);
end
$$;

comment on function ranked_ledger.holds_at_most(uuid[], int) is 'Whether streams hold no more decisions than that, without counting beyond.';

-- All rounded directions of the workspace, out of scope ones too: they only take a place.
create or replace function ranked_ledger.nearest(
  p_question ranked_ledger.question, p_count int,
  out row_nos int[], out cosines float8[], out far float8)
language plpgsql stable
set search_path = public, extensions, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
begin
  far := 1;
  if p_count = 0 then
    return;
  end if;
  execute $sql$
    select array_agg(x.row_no), array_agg(x.cosine), case when count(*) < $4 then -1 else min(x.cosine) end
    from (
      select v.row_no, case when vector_dims(v.embedding) = $3 then - (v.embedding <#> $2)
                            when v.embedding is null then 2 -- nothing is known of it
                            else -1 end as cosine
      from ranked_ledger.decision_vectors v where v.workspace_key = $1
      order by 2 desc limit $4) as x
  $sql$
  into row_nos, cosines, far
  using p_question.workspace_key, l2_normalize(p_question.embedding)::halfvec, vector_dims(p_question.embedding), p_count;
end
$$;

comment on function ranked_ledger.nearest(ranked_ledger.question, int) is
  'The nearest decisions of a workspace by their rounded vectors, by a scan of all of them: what is not among them is no nearer than far.';

-- The rows whose cosine the first pass found are scored with it; the k-th of those that are certain is a threshold for the
-- second pass, which scores every row by the bound. What comes out of that is looked up. Odd ones (2: nothing is known) stay
-- uncertain, and their weight will tell. `worst` is the last that is certainly in the answer; who is below it by more than
-- both errors is not.
create or replace function ranked_ledger.settle_sql(p_question ranked_ledger.question)
returns text language plpgsql immutable
set search_path = public, extensions, pg_temp
as $body$
begin
  return format($sql$
    with near as materialized (
      select s.row_no, s.memory_id, s.pinned, r.relevance, s.is_odd, $5 * r.relevance + s.rest as estimate
      from (
        select s.row_no, s.memory_id, s.pinned, s.cosine > 1.5 as is_odd, ranked_ledger.calibrate(s.cosine, $20, $21) as cosine,
               %3$s as text_relevance,
               $6 * s.importance + $7 * ranked_ledger.recency(greatest(n.newest_step - s.step_index, 0), $3)
               + $8 * ranked_ledger.dependency(s.live_dependents, $4) - case when s.is_active then 0::float8 else 0.30::float8 end as rest
        from (
          select s.*, v.cosine from unnest($17::int[], $18::float8[]) as v (row_no, cosine)
          cross join lateral ( -- one by one: joined, they were hashed with all of the workspace
            select s.* from ranked_ledger.standings s where s.row_no = v.row_no and s.vector_dims = $12 and %2$s offset 0) as s
          offset 0) as s
        join unnest($1::uuid[], $2::float8[]) as n (stream_id, newest_step) on n.stream_id = s.stream_id
        offset 0) as s
      cross join lateral (select ranked_ledger.relevance(s.cosine, s.text_relevance, $13, $14) as relevance offset 0) as r
      where r.relevance >= $15),
    threshold as materialized (
      select coalesce((select e.estimate from near e where not e.is_odd and not e.pinned and ($23 = 0 or e.relevance >= $23 + $24)
                       order by e.estimate desc offset $25 - 1 limit 1), '-Infinity') - 3 * $19 as score),
    passed as materialized (
      select x.*, row_number() over () as place
      from (%1$s) as x where x.pinned or x.score >= (select t.score from threshold t)),
    looked_up as (
      select p.*, case when p.is_far then coalesce(- (v.embedding <#> $22), 2) end as cosine
      from passed p
      left join lateral (select v.embedding from ranked_ledger.decision_vectors v where p.is_far and v.row_no = p.row_no offset 0) as v
        on true
      where p.row_no not in (select e.row_no from near e) offset 0),
    known as (
      select l.*, case when l.is_far then ranked_ledger.relevance(ranked_ledger.calibrate(l.cosine, $20, $21), l.text_relevance, $13, $14)
                       else l.relevance end as found
      from looked_up l offset 0),
    estimated as (
      select k.memory_id, k.pinned, k.found, k.score + $5 * (k.found - k.relevance) as estimate, coalesce(k.cosine, 0) > 1.5 as is_odd
      from known k
      union all
      select e.memory_id, e.pinned, e.relevance, e.estimate, e.is_odd from near e),
    worst as (
      select e.pinned, e.estimate - 2 * $19 as estimate from estimated e
      where not e.is_odd and ($23 = 0 or e.found >= $23 + $24)
      order by e.pinned desc, e.estimate desc offset $25 - 1 limit 1),
    listed as (
      select e.memory_id, case when not e.is_odd then e.estimate end as estimate
      from estimated e left join worst w on true
      where w is null or e.is_odd or (e.pinned, e.estimate) >= (w.pinned, w.estimate))
    select (select array_agg(l.memory_id) from listed l), (select array_agg(l.estimate) from listed l),
           (select count(*) < $16 from passed)
           or coalesce((select (w.pinned, w.estimate) > (p.pinned, p.score)
                        from worst w cross join (select b.pinned, b.score from passed b order by b.place desc limit 1) as p), false)
  $sql$,
    ranked_ledger.pass_sql(p_question, '(select t.score - $7 from threshold t)'),
    ranked_ledger.scope_sql(p_question),
    case when p_question.fusion = 'none' then 'null::float8' -- they have a cosine
         else ranked_ledger.looked_up_text_sql(p_question, '$9') end);
end
$body$;

comment on function ranked_ledger.settle_sql(ranked_ledger.question) is
  'The query that answers the shortlist of a question with an embedding, and whether it is proven: besides the parameters of pass_sql (its $10 is found here) $17, $18 the nearest rows and their cosines, $19 tolerance, $20, $21 floor and ceiling, $22 the rounded question, $23 minimum relevance, $24 its error, $25 how many are asked for.';

-- The threshold algorithm over two full passes. The first finds the nearest rows, so that no other has a cosine above the
-- last of them; the second scores each row as if it had this bound. What is not among the best of the second pass cannot be
-- better than its last. Where that does not yet prove the list, it goes deeper.
create or replace function ranked_ledger.list_by_vector(p_question ranked_ledger.question, p_spare int)
returns ranked_ledger.shortlist language plpgsql stable
set search_path = public, extensions, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set enable_nestloop = off -- but where it is the only way: each look-up is a lateral
set jit = off
as $$
declare
  q         ranked_ledger.question := p_question;
  v_streams record := ranked_ledger.streams_asked(p_question);
  v_dims    int := vector_dims(p_question.embedding);
  v_error   float8 := ranked_ledger.cosine_error(vector_dims(p_question.embedding)); -- of a cosine
  v_slack   float8 := v_error / (p_question.ceiling - p_question.floor);             -- of a relevance
  v_near    record;
  -- the more there are, the more of them may be about as near as the last: 1 of 100, as far as their steps tell their number
  v_depth   int := q.match_count + p_spare + greatest(118, least(4000,
    (select sum(n.step) / 100 from unnest(v_streams.newest_steps) as n (step)))::int);
  v_list    ranked_ledger.shortlist;
  v_proven  boolean;
begin
  v_list.exact := true;
  v_list.tolerance := 1e-12 * (0.3 + q.w_similarity + q.w_importance + q.w_recency + q.w_dependency) + q.w_similarity * v_slack;
  if ranked_ledger.may_probe(q, v_streams.stream_ids) then
    return ranked_ledger.list_by_probe(q, v_streams.stream_ids, v_streams.newest_steps, p_spare);
  elsif cardinality(v_streams.stream_ids) <= 5 and ranked_ledger.holds_at_most(v_streams.stream_ids, 2000) then
    -- looked up one by one, whatever else the workspace holds
    v_near := ranked_ledger.nearest(q, 0);
    v_depth := 1000000;
  else
    v_near := ranked_ledger.nearest(q, v_depth);
  end if;
  loop
    execute ranked_ledger.settle_sql(q) into v_list.memory_ids, v_list.estimates, v_proven
    using v_streams.stream_ids, v_streams.newest_steps, q.half_life, q.saturation, q.w_similarity, q.w_importance, q.w_recency,
          q.w_dependency, q.terms, 0, ranked_ledger.calibrate(v_near.far + v_error, q.floor, q.ceiling), v_dims, q.fusion,
          q.fusion_weight, q.min_relevance - v_slack, v_depth, v_near.row_nos, v_near.cosines, v_list.tolerance, q.floor,
          q.ceiling, l2_normalize(q.embedding)::halfvec, q.min_relevance, v_slack, q.match_count + p_spare;
    exit when v_proven;
    v_depth := v_depth * 8;
  end loop;
  return v_list;
end
$$;

comment on function ranked_ledger.list_by_vector(ranked_ledger.question, int) is
  'The shortlist of a question with an embedding: every decision whose score can be among the best, its cosine being known within cosine_error.';

-- The proof of the copies that every recall makes for what it answers.
create or replace function ranked_ledger.is_as_estimated(
  p_question ranked_ledger.question, p_list ranked_ledger.shortlist, p_weighed ranked_ledger.ranked_decision[], p_stale uuid[])
returns boolean language plpgsql stable
set search_path = public, extensions, pg_temp
set enable_nestloop = off -- two lists of the same length, which may be long
as $$
begin
  return not exists (
    select from unnest(p_list.memory_ids, p_list.estimates) as l (memory_id, estimate)
    left join unnest(p_weighed) as w on w.memory_id = l.memory_id
    where l.memory_id <> all (p_stale)
      and case when w.memory_id is null then true
               when l.estimate is null then p_question.embedding is null -- else one of those of which nothing is known
               else abs(w.ranking_score - l.estimate) > p_list.tolerance end);
end
$$;

comment on function ranked_ledger.is_as_estimated(
  ranked_ledger.question, ranked_ledger.shortlist, ranked_ledger.ranked_decision[], uuid[]) is
  'Whether the weights of a shortlist are what the copies said they would be.';
