create or replace function ranked_ledger.rounding(p_question ranked_ledger.question)
returns float8 language plpgsql immutable
set search_path = public, extensions, pg_temp
as $$
begin
  return 1e-12 * (0.3 + p_question.w_similarity + p_question.w_importance + p_question.w_recency + p_question.w_dependency + p_question.w_summary);
end
$$;

comment on function ranked_ledger.rounding(ranked_ledger.question) is 'How far two sums of the same score may be apart.';

create or replace function ranked_ledger.holds_at_most(p_stream_ids uuid[], p_count int)
returns boolean language plpgsql stable
set search_path = public, extensions, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off -- it would gather all of them before it counts the first
set plan_cache_mode = force_generic_plan
as $$
begin
  return (select count(*) <= p_count
  from (select from ranked_ledger.standings s where s.stream_id = any (p_stream_ids) limit p_count + 1) as x);
end
$$;

comment on function ranked_ledger.holds_at_most(uuid[], int) is 'Whether streams hold no more decisions than that, without counting beyond.';

-- All rounded directions of the workspace, out of scope ones too: they only take a place. Executed, and not a statement of its
-- own: `select into` stops at its first row, and what may stop is never given parallel workers.
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

-- relevance and score are those that the copies have, or, of a far one, a bound: its cosine is not looked up yet, nor are the
-- words of one whose text_relevance is null. A score of null: nothing is known of its vector.
select ranked_ledger.define_type('candidate',
  'row_no integer, memory_id uuid, pinned boolean, is_far boolean, text_relevance double precision, ' ||
  'relevance double precision, score double precision');

comment on type ranked_ledger.candidate is 'A decision that may be in an answer, as the copies have it.';

create or replace function ranked_ledger.score_nearest(
  p_question ranked_ledger.question, p_stream_ids uuid[], p_newest_steps float8[], p_row_nos int[], p_cosines float8[], p_slack float8)
returns ranked_ledger.candidate[] language plpgsql stable
set search_path = public, extensions, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set enable_mergejoin = off
set enable_nestloop = off -- but where it is the only way: each look-up is a lateral
set plan_cache_mode = force_generic_plan
as $$
declare
  q         ranked_ledger.question := p_question;
  v_weights float8[] := p_question.term_weights;
  v_is_long boolean := cardinality(p_question.terms) > 200;
  v_places  jsonb := ( -- then the words of a decision are looked for in the question, and not the other way round
    select jsonb_object_agg(t.term, t.place) from unnest(p_question.terms) with ordinality as t (term, place) where v_is_long);
begin
  return array(
    select row(s.row_no, s.memory_id, s.pinned, false, null, r.relevance,
               case when s.cosine < 1.5 then q.w_similarity * r.relevance + s.rest end)::ranked_ledger.candidate
    from (
      select s.row_no, s.memory_id, s.pinned, s.cosine,
             case when not q.has_text or q.fusion = 'none' then null
                  when q.weighs_words then ranked_ledger.text_of_shares(coalesce(w.shares, 0), s.text_length, q.length_share)
                  else ranked_ledger.saturate(ranked_ledger.rank_of_any(w.occurrences)) end as text_relevance,
             q.w_importance * s.importance
             + q.w_recency * ranked_ledger.recency(greatest(n.newest_step - s.step_index, 0), q.half_life)
             + q.w_dependency * ranked_ledger.dependency(s.live_dependents, q.saturation)
             + q.w_summary * coalesce(w.named / nullif(s.summary_words, 0)::float8, 0)
             - case when s.is_active then 0::float8 when s.is_retired then 0.30::float8 else q.penalty end as rest
      from unnest(p_row_nos, p_cosines) as v (row_no, cosine)
      cross join lateral ( -- one by one: joined, they were hashed with all of the workspace
        select s.*, v.cosine from ranked_ledger.standings s where s.row_no = v.row_no offset 0) as s
      join unnest(p_stream_ids, p_newest_steps) as n (stream_id, newest_step) on n.stream_id = s.stream_id
      cross join lateral (
        select sum(p.occurrences) as occurrences, sum(ranked_ledger.word_share(p.weight, p.occurrences)) as shares,
               count(*) filter (where p.in_summary) as named
        from (
          select t.weight, p.occurrences, p.in_summary
          from unnest(q.terms, q.term_weights) as t (term, weight)
          cross join lateral (
            select p.occurrences, p.in_summary from ranked_ledger.postings p
            where p.term = t.term and p.row_no = s.row_no offset 0) as p
          where not v_is_long
          union all
          select v_weights[(v_places -> p.term::text)::int], p.occurrences, p.in_summary
          from ranked_ledger.postings p where v_is_long and p.row_no = s.row_no and v_places ? p.term::text) as p
        where q.has_text and (q.fusion <> 'none' or q.w_summary > 0)) as w
      where s.vector_dims = vector_dims(q.embedding)
        and (s.is_active or q.with_retired or q.with_stale and not s.is_retired)
        and (q.with_personal or not s.is_personal) and not (q.only_confirmed and s.is_unconfirmed)
      offset 0) as s
    cross join lateral (
      select ranked_ledger.relevance(c.cosine, s.text_relevance, q.fusion, q.fusion_weight) as relevance
      from (select ranked_ledger.calibrate(s.cosine, q.floor, q.ceiling) as cosine offset 0) as c offset 0) as r
    where r.relevance >= q.min_relevance - p_slack);
end
$$;

comment on function ranked_ledger.score_nearest(ranked_ledger.question, uuid[], float8[], int[], float8[], float8) is
  'Those of the nearest decisions that a question is about, scored.';

create or replace function ranked_ledger.reached(
  p_question ranked_ledger.question, p_candidates ranked_ledger.candidate[], p_count int, p_slack float8)
returns float8 language sql stable
set search_path = public, extensions, pg_temp
as $$
  select coalesce((
    select c.score from unnest(p_candidates) as c
    where c.score is not null and not c.pinned
      and (p_question.min_relevance = 0 or c.relevance >= p_question.min_relevance + p_slack)
    order by c.score desc offset p_count - 1 limit 1), '-Infinity')
$$;

comment on function ranked_ledger.reached(ranked_ledger.question, ranked_ledger.candidate[], int, float8) is
  'A score that so many of these candidates certainly have: less is not in the answer. -Infinity: there are not as many.';

-- The pass of the commonest question, one without words or filters, from the same text, so that it is planned once a session:
-- a plan took a third of its time.
do $do$
declare
  v_question ranked_ledger.question;
begin
  v_question.embedding := '[1]';
  v_question.terms := '{}';
  v_question.has_text := false;
  v_question.fusion := 'none';
  v_question.with_stale := false;
  v_question.with_retired := false;
  v_question.with_personal := true;
  v_question.only_confirmed := false;
  v_question.min_relevance := 0;
  execute format($sql$
    create or replace function ranked_ledger.pass_plainly(
      uuid[], float8[], float8, float8, float8, float8, float8, float8, bigint[], float8, float8, int, text, float8, float8, int, bigint, float8,
      float8[], float8, float8, float8)
    returns ranked_ledger.candidate[] language plpgsql stable
    set search_path = public, extensions, pg_temp
    set enable_seqscan = off
    set enable_bitmapscan = off
    set enable_nestloop = off
    set plan_cache_mode = force_generic_plan
    as $body$
    begin
      return (select array_agg(row(x.*)::ranked_ledger.candidate) from (%s) as x);
    end
    $body$ $sql$, ranked_ledger.pass_sql(v_question, false, true));
end
$do$;

comment on function ranked_ledger.pass_plainly(
  uuid[], float8[], float8, float8, float8, float8, float8, float8, bigint[], float8, float8, int, text, float8, float8, int, bigint, float8,
  float8[], float8, float8, float8) is
  'pass_sql by merit, for a question with an embedding alone and no filter; its parameters in their order.';

create or replace function ranked_ledger.pass(
  p_question ranked_ledger.question, p_is_bounded boolean, p_by_merit boolean, p_stream_ids uuid[], p_newest_steps float8[],
  p_threshold float8, p_far float8, p_slack float8, p_limit int, p_merit float8)
returns ranked_ledger.candidate[] language plpgsql stable
set search_path = public, extensions, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set enable_nestloop = off -- but where it is the only way: each look-up is a lateral
set jit = off
as $$
declare
  q        ranked_ledger.question := p_question;
  v_passed ranked_ledger.candidate[];
begin
  if p_by_merit and q.embedding is not null and not q.has_text and not q.with_stale and q.with_personal and not q.only_confirmed
     and q.min_relevance = 0 then
    return ranked_ledger.pass_plainly(
      p_stream_ids, p_newest_steps, q.half_life, q.saturation, q.w_similarity, q.w_importance, q.w_recency, q.w_dependency,
      q.terms, p_threshold, p_far, vector_dims(q.embedding), q.fusion, q.fusion_weight, 0, p_limit, q.workspace_key, p_merit,
      q.term_weights, q.length_share, q.w_summary, q.penalty);
  end if;
  execute format('select array_agg(row(x.*)::ranked_ledger.candidate) from (%s) as x', ranked_ledger.pass_sql(q, p_is_bounded, p_by_merit))
  into v_passed
  using p_stream_ids, p_newest_steps, q.half_life, q.saturation, q.w_similarity, q.w_importance, q.w_recency, q.w_dependency,
        q.terms, p_threshold, p_far, vector_dims(q.embedding), q.fusion, q.fusion_weight, q.min_relevance - p_slack, p_limit,
        q.workspace_key, p_merit, q.term_weights, q.length_share, q.w_summary, q.penalty;
  return v_passed;
end
$$;

comment on function ranked_ledger.pass(
  ranked_ledger.question, boolean, boolean, uuid[], float8[], float8, float8, float8, int, float8) is
  'The best decisions of pass_sql for a question, in their order. Null: none reaches the threshold.';

create or replace function ranked_ledger.list_by_standing(p_question ranked_ledger.question, p_spare int)
returns ranked_ledger.shortlist language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
declare
  q           ranked_ledger.question := p_question;
  v_count     int := p_question.match_count + p_spare;
  v_streams   record := ranked_ledger.streams_asked(p_question);
  v_tolerance float8 := ranked_ledger.rounding(p_question);
  v_reached   float8 := ranked_ledger.scout(q, v_streams.stream_ids, v_streams.newest_steps, v_count) - v_tolerance;
  v_merit     float8 := ranked_ledger.least_merit(q, v_reached, 0);
  v_by_merit  boolean := ranked_ledger.few_have_merit(q.workspace_key, v_merit, v_streams.newest_steps);
  v_list      ranked_ledger.shortlist;
begin
  select array_agg(c.memory_id), array_agg(c.score) into v_list.memory_ids, v_list.estimates
  from unnest(ranked_ledger.pass(
    q, false, v_by_merit, v_streams.stream_ids, v_streams.newest_steps, v_reached, null, 0, v_count, v_merit)) as c;
  v_list.tolerance := v_tolerance;
  v_list.exact := true;
  return v_list;
end
$$;

comment on function ranked_ledger.list_by_standing(ranked_ledger.question, int) is
  'The shortlist of a question without an embedding: as many as asked for, and some to spare for those whose copies may lag.';

-- What the pass let through is looked up. `worst` is the last that is certainly in the answer; who is below it by more than
-- both errors is not. The last that the pass let through bounds all that it did not: it has to be below `worst`.
create or replace function ranked_ledger.list_candidates(
  p_question ranked_ledger.question, p_near ranked_ledger.candidate[], p_passed ranked_ledger.candidate[], p_count int,
  p_tolerance float8, p_slack float8, p_was_cut boolean,
  out memory_ids uuid[], out estimates float8[], out is_proven boolean)
language plpgsql stable
set search_path = public, extensions, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set enable_mergejoin = off
set enable_nestloop = off
set plan_cache_mode = force_generic_plan
as $$
declare
  q       ranked_ledger.question := p_question;
  v_asked halfvec := l2_normalize(p_question.embedding)::halfvec;
  v_last  ranked_ledger.candidate := p_passed[cardinality(p_passed)];
begin
  with known as (
    select p.memory_id, p.pinned, p.score, p.relevance, v.cosine,
           case when p.is_far or p.text_relevance is not null
                then ranked_ledger.relevance(ranked_ledger.calibrate(v.cosine, q.floor, q.ceiling), p.text_relevance, q.fusion, q.fusion_weight)
                when q.has_text then ranked_ledger.saturate((
                  select ranked_ledger.rank_of_any(sum(o.occurrences)) from ranked_ledger.postings o
                  where o.term = any (q.terms) and o.row_no = p.row_no))
                else 0 end as found
    from unnest(p_passed) as p
    cross join lateral (
      select case when p.is_far then coalesce((
        select - (v.embedding <#> v_asked) from ranked_ledger.decision_vectors v where v.row_no = p.row_no), 2) end as cosine offset 0) as v
    where p.row_no not in (select n.row_no from unnest(p_near) as n) offset 0),
  estimated as (
    select k.memory_id, k.pinned, k.found,
           case when coalesce(k.cosine, 0) < 1.5 then k.score + q.w_similarity * (k.found - k.relevance) end as estimate
    from known k
    union all
    select n.memory_id, n.pinned, n.relevance, n.score from unnest(p_near) as n),
  worst as (
    select e.pinned, e.estimate - 2 * p_tolerance as estimate from estimated e
    where e.estimate is not null and (q.min_relevance = 0 or e.found >= q.min_relevance + p_slack)
    order by e.pinned desc, e.estimate desc offset p_count - 1 limit 1),
  listed as (
    select e.memory_id, e.estimate
    from estimated e left join worst w on true
    where w is null or e.estimate is null or (e.pinned, e.estimate) >= (w.pinned, w.estimate))
  select array_agg(l.memory_id), array_agg(l.estimate),
         not p_was_cut or coalesce((select (w.pinned, w.estimate) > (v_last.pinned, v_last.score) from worst w), false)
  into memory_ids, estimates, is_proven
  from listed l;
end
$$;

comment on function ranked_ledger.list_candidates(
  ranked_ledger.question, ranked_ledger.candidate[], ranked_ledger.candidate[], int, float8, float8, boolean) is
  'Of the nearest and of what the pass let through, those that can be among so many best, and whether nobody else can.';

-- The threshold algorithm. The first scan finds the nearest rows, so that no other has a cosine above the last of them; a pass
-- scores each row as if it had this bound. What is not among the best of the pass cannot be better than its last. Where that does
-- not yet prove the list, words are counted and it goes deeper; where the nearest were only probed, it proves nothing.
create or replace function ranked_ledger.list_by_vector(p_question ranked_ledger.question, p_spare int)
returns ranked_ledger.shortlist language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
declare
  q          ranked_ledger.question := p_question;
  v_count    int := p_question.match_count + p_spare;
  v_streams  record := ranked_ledger.streams_asked(p_question);
  v_error    float8 := ranked_ledger.cosine_error(vector_dims(p_question.embedding)); -- of a cosine
  v_slack    float8 := least(1, v_error / greatest(p_question.ceiling - p_question.floor, 1e-9)); -- of a relevance
  v_probes   boolean := ranked_ledger.may_probe(p_question, v_streams.stream_ids);
  v_nearest  record;
  v_near     ranked_ledger.candidate[];
  v_passed   ranked_ledger.candidate[];
  v_reached  float8;
  v_far      float8; -- the relevance that no other cosine exceeds
  v_merit    float8;
  v_by_merit boolean;
  -- where a cosine is all that counts, words matter only for rows without one, and those are mostly few
  v_bounded  boolean := p_question.terms <> '{}' and p_question.fusion = 'none' and p_question.w_summary = 0
                        and not p_question.weighs_words;
  -- the more there are, the more of them may be about as near as the last: 1 of 100, as far as their steps tell their number
  v_depth    int := v_count + greatest(118, least(4000,
    (select sum(n.step) / 100 from unnest(v_streams.newest_steps) as n (step)))::int);
  v_list     ranked_ledger.shortlist;
  v_proven   boolean;
begin
  v_list.exact := not v_probes;
  v_list.tolerance := ranked_ledger.rounding(q) + q.w_similarity * v_slack;
  if v_probes then
    v_nearest := ranked_ledger.probe_nearest(q, 90 + v_count);
    v_depth := 190 + v_count;
  elsif cardinality(v_streams.stream_ids) <= 5 and ranked_ledger.holds_at_most(v_streams.stream_ids, 2000) then
    -- looked up one by one, whatever else the workspace holds
    v_nearest := ranked_ledger.nearest(q, 0);
    v_depth := 1000000;
  else
    -- blended with words, the nearest are not worth as much, and those of all of them are looked up
    v_nearest := ranked_ledger.nearest(q, case when q.weighs_words and q.terms <> '{}' then v_count + 118 else v_depth end);
  end if;
  v_near := ranked_ledger.score_nearest(
    q, v_streams.stream_ids, v_streams.newest_steps, v_nearest.row_nos, v_nearest.cosines, v_slack);
  v_reached := ranked_ledger.reached(q, v_near, v_count, v_slack);
  if v_reached = '-Infinity' then -- few of the nearest are in scope: then what the newest have without their relevance
    q.terms := '{}';
    v_reached := ranked_ledger.scout(q, v_streams.stream_ids, v_streams.newest_steps, v_count);
    q.terms := p_question.terms;
  end if;
  v_reached := v_reached - 3 * v_list.tolerance;
  v_far := ranked_ledger.calibrate(v_nearest.far + v_error, q.floor, q.ceiling);
  v_merit := ranked_ledger.least_merit(q, v_reached, v_far);
  if v_probes then
    v_merit := greatest(v_merit, ranked_ledger.merit_of(q.workspace_key, 500) + 1e-9); -- not all that tie with it
  end if;
  v_by_merit := v_probes or ranked_ledger.few_have_merit(q.workspace_key, v_merit, v_streams.newest_steps);
  loop
    v_passed := ranked_ledger.pass(
      q, v_bounded, v_by_merit, v_streams.stream_ids, v_streams.newest_steps, v_reached, v_far, v_slack, v_depth, v_merit);
    select s.memory_ids, s.estimates, s.is_proven into v_list.memory_ids, v_list.estimates, v_proven
    from ranked_ledger.list_candidates(
      q, v_near, v_passed, v_count, v_list.tolerance, v_slack, coalesce(cardinality(v_passed) >= v_depth, false)) as s;
    exit when v_proven or v_probes and not v_bounded;
    v_depth := case when v_bounded then v_depth else v_depth * 8 end;
    v_bounded := false;
  end loop;
  return v_list;
end
$$;

comment on function ranked_ledger.list_by_vector(ranked_ledger.question, int) is
  'The shortlist of a question with an embedding: every decision whose score can be among the best, its cosine being known within cosine_error, or, where an unproven answer is allowed, those that most likely are.';

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
