-- Which decisions are worth weighing, from the copies. For a question without an embedding the copies hold all that the
-- score is made of, so the list is in the order of the answer. With one, the rounded vectors leave an interval, and the list
-- holds every decision that could be in the answer: both are proven, not guessed.
select ranked_ledger.define_type('shortlist',
  'memory_ids uuid[], estimates double precision[], tolerance double precision, exact boolean');

comment on type ranked_ledger.shortlist is 'Decisions, and their scores as the copies have them, right within the tolerance.';

create or replace function ranked_ledger.streams_asked(
  p_question ranked_ledger.question, out stream_ids uuid[], out newest_steps float8[])
language plpgsql stable
set search_path = public, extensions, pg_temp
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
as $$
begin
  select coalesce(array_agg(n.stream_id), '{}'), coalesce(array_agg(greatest(n.newest_step, p_question.current_step, 0)), '{}')
  into stream_ids, newest_steps
  from (
    select x.stream_id, max(x.newest_step) as newest_step
    from (select s.stream_id, s.newest_step, s.project_id, s.task_id from ranked_ledger.streams s
          where s.workspace_id = p_question.workspace_id
            and s.stream_id not in (select p.stream_id from ranked_ledger.pending_steps p where p.memory_id is null)
          union all -- rows that are not settled yet
          select l.stream_id, case when l.step_index <= ranked_ledger.max_step() then l.step_index end, l.project_id, l.task_id
          from ranked_ledger.pending_steps p
          cross join lateral (select d.* from public.agent_decision_ledger d where d.memory_id = p.memory_id offset 0) as l
          where l.workspace_id = p_question.workspace_id
          union all -- streams that lost a row, and have not found their newest step again
          select l.stream_id, (select y.step_index from public.agent_decision_ledger y
                               where y.stream_id = l.stream_id and y.step_index <= ranked_ledger.max_step()
                               order by y.step_index desc limit 1), l.project_id, l.task_id
          from (select distinct p.stream_id from ranked_ledger.pending_steps p where p.memory_id is null) as p
          cross join lateral (select d.* from public.agent_decision_ledger d where d.stream_id = p.stream_id limit 1) as l
          where l.workspace_id = p_question.workspace_id) as x
    where (p_question.project_id is null or x.project_id = p_question.project_id)
      and (p_question.task_id is null or x.task_id = p_question.task_id)
    group by x.stream_id) as n;
end
$$;

comment on function ranked_ledger.streams_asked(ranked_ledger.question) is
  'The streams in the scope of a question, and where each stands: at its newest step, of every row whatever its lifecycle, or at the current step of the question where that is greater.';

create or replace function ranked_ledger.cosine_error(p_dimensions int)
returns float8 language sql immutable parallel safe
return 2 * (power(2, -11) + sqrt(p_dimensions) * power(2, -24)) + 4 * p_dimensions * power(2, -24);

comment on function ranked_ledger.cosine_error(int) is
  'How far the inner product of two rounded directions can be from the host''s cosine: half precision rounds each component by 2^-11 of itself at most (2^-25 where it is subnormal), so each direction by 2^-11 of its length; single precision adds 2^-24 a term, to both sums.';

-- What restricts the scope, as it is written into a query over standings s.
create or replace function ranked_ledger.scope_sql(p_question ranked_ledger.question)
returns text language plpgsql immutable
set search_path = public, extensions, pg_temp
as $$
begin
  return concat_ws(' and ',
    case when p_question.with_retired then 'true' when p_question.with_stale then 'not s.is_retired' else 's.is_active' end,
    case when not p_question.with_personal then 'not s.is_personal' end,
    case when p_question.only_confirmed then 'not s.is_unconfirmed' end);
end
$$;

comment on function ranked_ledger.scope_sql(ranked_ledger.question) is 'The filters of a question over the flags of standings.';

create or replace function ranked_ledger.relevance_sql(
  p_question ranked_ledger.question, p_cosine text, p_text text, p_fusion text, p_fusion_weight text)
returns text language plpgsql immutable
set search_path = public, extensions, pg_temp
as $$
begin
  return case when p_cosine is null then coalesce(p_text, '0::float8')
              when p_text is not null and p_question.fusion = 'blend' -- by the same operations, without a comparison a row
              then format('case when %1$s is null then %2$s else %3$s * %1$s + (1 - %3$s) * %2$s end',
                          p_cosine, p_text, p_fusion_weight)
              when p_text is not null and p_question.fusion <> 'none'
              then format('ranked_ledger.relevance(%s, %s, %s, %s)', p_cosine, p_text, p_fusion, p_fusion_weight)
              else format('coalesce(%s, %s)', p_cosine, coalesce(p_text, '0::float8')) end;
end
$$;

comment on function ranked_ledger.relevance_sql(ranked_ledger.question, text, text, text, text) is
  'ranked_ledger.relevance of these expressions, as short as the question allows.';

-- Old is what lies four half-lives or more behind the newest step of its stream.
create or replace function ranked_ledger.old_recency()
returns float8 language sql immutable parallel safe
return 0.0184;

comment on function ranked_ledger.old_recency() is 'A recency that no old decision exceeds: above exp(-4) by more than rounding.';

-- The standings that a pass scores, each with where its stream stands. Stream by stream: as a join, it was planned over every
-- workspace's standings. By merit, it is not all of them: of the old ones only who has enough merit
-- can reach the threshold, or is pinned.
create or replace function ranked_ledger.scored_sql(p_question ranked_ledger.question, p_by_merit boolean)
returns text language plpgsql immutable
set search_path = public, extensions, pg_temp
as $$
declare
  v_columns text := 's.row_no, s.memory_id, s.step_index, s.importance, s.live_dependents, s.vector_dims, s.pinned, ' ||
                    's.is_active, s.is_retired, s.text_length, s.summary_words';
  v_scope   text := ranked_ledger.scope_sql(p_question);
  v_streams text := '(select u.stream_id, u.newest_step,
                             greatest(-1, least(floor(u.newest_step - 4 * least($3, 1e300)), u.newest_step - 1))::int as last_old_step
                      from unnest($1::uuid[], $2::float8[]) as u (stream_id, newest_step) offset 0) as n';
begin
  if not p_by_merit then
    return format('select n.newest_step, n.last_old_step, s.* from %s cross join lateral (
                     select %s from ranked_ledger.standings s where s.stream_id = n.stream_id and %s offset 0) as s',
                  v_streams, v_columns, v_scope);
  end if;
  return format($sql$
    select n.newest_step, n.last_old_step, s.* from %1$s
    cross join lateral (
      select %2$s from ranked_ledger.standings s
      where s.stream_id = n.stream_id and s.step_index > n.last_old_step and %3$s offset 0) as s
    union all
    select n.newest_step, n.last_old_step, %2$s
    from (select s.* from ranked_ledger.standings s
          where s.workspace_key = $17 and not s.is_retired
            and ranked_ledger.merit(s.importance, s.live_dependents) >= $18 and not s.pinned and %3$s offset 0) as s
    join %1$s on n.stream_id = s.stream_id where s.step_index <= n.last_old_step
    union all
    select n.newest_step, n.last_old_step, %2$s
    from (select s.* from ranked_ledger.standings s where s.workspace_key = $17 and s.pinned and %3$s offset 0) as s
    join %1$s on n.stream_id = s.stream_id where s.step_index <= n.last_old_step
  $sql$, v_streams, v_columns, v_scope);
end
$$;

comment on function ranked_ledger.scored_sql(ranked_ledger.question, boolean) is
  'The standings in the scope of a question: all, or those that are recent, pinned or of a merit of $18; $1 to $3 and $17 as in pass_sql.';

-- One pass over the standings in scope. It is written for the question: of 100,000 rows each operator costs milliseconds, and
-- what a question has no use for is left out. The score is summed in the order of the formula, so that it is the same to the
-- last bit; each part stands once, since a function whose argument it names twice is not inlined. Most rows fall at the
-- threshold, by a bound of their recency. Bounded, no words are counted either: a row without a cosine is scored as if all of it
-- matched.
create or replace function ranked_ledger.pass_sql(p_question ranked_ledger.question, p_is_bounded boolean, p_by_merit boolean)
returns text language plpgsql immutable
set search_path = public, extensions, pg_temp
as $$
declare
  v_counts    boolean := p_question.terms <> '{}' and not p_is_bounded;
  v_text      text := case when p_is_bounded then '1::float8'
                           when v_counts and p_question.weighs_words
                           then 'coalesce(ranked_ledger.text_of_shares(p.shares, s.text_length, $20), 0)'
                           when v_counts then 'coalesce(p.relevance, 0)'
                           when p_question.has_text then '0::float8' end;
  v_summary   text := case when v_counts and p_question.w_summary > 0
                           then '+ $21 * coalesce(p.named / nullif(s.summary_words, 0)::float8, 0)' else '' end;
  v_relevance text := ranked_ledger.relevance_sql(
    p_question, case when p_question.embedding is not null then 'case when s.vector_dims = $12 then $11 end' end, v_text,
    '$13', '$14');
begin
  return format($sql$
    with posted as (
      select p.row_no, %9$s
      from unnest($9::bigint[], $19::float8[]) as t (term, weight)
      cross join lateral (
        select p.row_no, p.occurrences, p.in_summary from ranked_ledger.postings p where p.term = t.term offset 0) as p
      group by p.row_no)
    select s.row_no, s.memory_id, s.pinned, s.is_far, s.text_relevance, s.relevance, s.score
    from (
      select s.row_no, s.memory_id, s.pinned, s.step_index, %1$s as is_far, %2$s as text_relevance, %3$s as relevance,
             %4$s $6 * s.importance + $7 * ranked_ledger.recency(greatest(s.newest_step - s.step_index, 0), $3)
             + $8 * ranked_ledger.dependency(s.live_dependents, $4) %10$s %5$s as score
      from (%7$s) as s
      %6$s
      where (%4$s $6 * s.importance + $8 * ranked_ledger.dependency(s.live_dependents, $4) %10$s
             >= case when s.step_index > s.last_old_step then $10 - $7 else $10 - ranked_ledger.old_recency() * $7 end
             or s.pinned) %8$s offset 0) as s
    where s.score >= $10 or s.pinned
    order by s.pinned desc, s.score desc, s.step_index desc, s.memory_id limit $16
  $sql$,
    case when p_question.embedding is null then 'false' else 's.vector_dims = $12' end,
    case when p_is_bounded then 'null::float8' else coalesce(v_text, 'null::float8') end, v_relevance,
    case when v_relevance <> '0::float8' then format('$5 * %s +', v_relevance) end,
    case when p_question.with_retired or p_question.with_stale
         then '- case when s.is_active then 0::float8 when s.is_retired then 0.30::float8 else $22 end' end,
    case when v_counts then 'left join posted p on p.row_no = s.row_no' end,
    ranked_ledger.scored_sql(p_question, p_by_merit),
    case when p_question.min_relevance > 0 then format('and %s >= $15', v_relevance) end,
    case when p_question.weighs_words then 'sum(ranked_ledger.word_share(t.weight, p.occurrences)) as shares'
         else 'ranked_ledger.saturate(ranked_ledger.rank_of_any(sum(p.occurrences))) as relevance' end
    || case when p_question.w_summary > 0 then ', count(*) filter (where p.in_summary) as named' else '' end,
    v_summary);
end
$$;

comment on function ranked_ledger.pass_sql(ranked_ledger.question, boolean, boolean) is
  'The query that scores the standings in scope by the copies, of those that may reach the threshold: $1, $2 streams and where each stands, $3 half-life, $4 saturation, $5 to $8 weights, $9 terms, $10 the threshold, $11 the relevance that no cosine exceeds, $12 dimensions, $13, $14 fusion, $15 minimum relevance, $16 limit, $17 workspace and $18 least merit where it goes by merit, $19 what the terms weigh, $20 what the length counts for, $21 the weight of the summary, $22 what is taken from the stale and disputed.';

-- The index of merits is of decisions that are not retired, and knows nothing of words; what a stale one loses is not in it. For
-- other weights it still bounds: importance and dependency together weigh at most so many times their merit.
create or replace function ranked_ledger.least_merit(p_question ranked_ledger.question, p_threshold float8, p_relevance float8)
returns float8 language plpgsql immutable
set search_path = public, extensions, pg_temp
as $$
declare
  v_times float8 := greatest(
    p_question.w_importance / 0.25, least(p_question.w_dependency, 1e7) / 0.15 * greatest(1, 3 / p_question.saturation));
begin
  if p_question.has_text or p_question.with_retired or v_times not between 1e-6 and 1e6 then
    return '-Infinity';
  end if;
  return (p_threshold - ranked_ledger.old_recency() * p_question.w_recency - p_question.w_similarity * p_relevance) / v_times
         * (1 - 1e-12) - 1e-12;
end
$$;

comment on function ranked_ledger.least_merit(ranked_ledger.question, float8, float8) is
  'The merit without which a decision of four half-lives ago does not reach the threshold, no relevance being above p_relevance. -Infinity: not to be told.';

create or replace function ranked_ledger.few_have_merit(p_workspace_key bigint, p_least float8, p_newest_steps float8[])
returns boolean language plpgsql stable
set search_path = public, extensions, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_few int := (select least(50000, sum(n.step) / 8)::int from unnest(p_newest_steps) as n (step));
begin
  return p_least > 0 and (
    select count(*) <= v_few
    from (select from ranked_ledger.standings s
          where s.workspace_key = p_workspace_key and not s.is_retired
            and ranked_ledger.merit(s.importance, s.live_dependents) >= p_least
          limit v_few + 1) as x);
end
$$;

comment on function ranked_ledger.few_have_merit(bigint, float8, float8[]) is
  'Whether it pays to look up the decisions of that merit instead of passing over all: one of eight or less, as far as the steps of the streams tell their number.';

-- Some score that as many decisions as are asked for do reach: that of the newest ones of each stream.
create or replace function ranked_ledger.scout(
  p_question ranked_ledger.question, p_stream_ids uuid[], p_newest_steps float8[], p_count int)
returns float8 language plpgsql stable
set search_path = public, extensions, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
declare
  q       ranked_ledger.question := p_question;
  v_found record;
begin
  if q.min_relevance > 0 then
    return '-Infinity';
  end if;
  if cardinality(q.terms) > 200 then -- each would be looked up for each row; without them the score is less, and is reached too
    q.terms := '{}';
  end if;
  execute format($sql$
    select x.pinned, x.score
    from (
      select s.pinned, %s $6 * s.importance + $7 * ranked_ledger.recency(greatest(n.newest_step - s.step_index, 0), $3)
             + $8 * ranked_ledger.dependency(s.live_dependents, $4)
             - case when s.is_active then 0::float8 when s.is_retired then 0.30::float8 else $12 end as score
      from unnest($1::uuid[], $2::float8[]) as n (stream_id, newest_step)
      cross join lateral (
        select s.* from ranked_ledger.standings s
        where s.stream_id = n.stream_id and %s order by s.step_index desc limit $5) as s) as x
    order by x.pinned desc, x.score desc offset $9 - 1 limit 1
  $sql$, case when q.terms = '{}' then ''
              when q.weighs_words then '$10 * (
      select coalesce(ranked_ledger.text_of_shares(sum(ranked_ledger.word_share(t.weight, p.occurrences)), s.text_length, $14), 0)
      from unnest($11, $13) as t (term, weight)
      cross join lateral (
        select p.occurrences from ranked_ledger.postings p where p.term = t.term and p.row_no = s.row_no offset 0) as p) +'
              else '$10 * ranked_ledger.saturate((
      select ranked_ledger.rank_of_any(sum(p.occurrences)) from ranked_ledger.postings p
      where p.term = any ($11) and p.row_no = s.row_no)) +' end, ranked_ledger.scope_sql(q))
  into v_found
  using p_stream_ids, p_newest_steps, q.half_life, q.saturation, 2 + 4 * p_count / greatest(1, cardinality(p_stream_ids)),
        q.w_importance, q.w_recency, q.w_dependency, p_count, q.w_similarity, q.terms, q.penalty, q.term_weights, q.length_share;
  return case when not v_found.pinned then v_found.score else '-Infinity' end;
end
$$;

comment on function ranked_ledger.scout(ranked_ledger.question, uuid[], float8[], int) is
  'A score that so many decisions reach: whatever is below it is not in the answer. -Infinity where none was found.';
