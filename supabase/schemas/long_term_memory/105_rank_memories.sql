-- The ranking of memories. It is exact: everything in scope is weighed, by one scan.
do $do$
begin
  if to_regtype('long_term_memory.question') is null then
    create type long_term_memory.question as (
      org_id uuid, words jsonb, has_any tsquery, counts_all boolean, embedding vector, embedding_model text, dims int, subject_type text, subject_id uuid,
      workspace_id text, match_count int, half_life float8, w_similarity float8, w_recency float8, min_relevance float8,
      with_unreviewed boolean);
    comment on type long_term_memory.question is
      'The arguments of a recall of memories, checked, with their defaults. No words: no text was given. has_any: what a text matches that has one of them; counts_all: there is no such query. min_relevance null: none.';
  end if;
end
$do$;

create or replace function long_term_memory.may_be_recalled(p_review_outcome text, p_author text, p_with_unreviewed boolean)
returns boolean language sql immutable parallel safe
return p_review_outcome in ('approved', 'evidence_only')
       or p_review_outcome is null and (p_author = 'person' or p_with_unreviewed);

comment on function long_term_memory.may_be_recalled(text, text, boolean) is
  'What a person wrote or has reviewed; what a model wrote and nobody has reviewed only where it is asked for; never what was rejected.';

create or replace function long_term_memory.age_days(p_created timestamptz)
returns float8 language sql stable parallel safe
return greatest(0::float8, date_part('epoch', now() - p_created) / 86400);

comment on function long_term_memory.age_days(timestamptz) is 'How many days ago, 0 for a time to come.';

-- A score that as many memories reach as are asked for: the least of the best among the newest. What cannot reach it, however
-- new it were, is not in the answer, and needs no age: that is most of them.
create or replace function long_term_memory.least_score(p_question long_term_memory.question)
returns float8 language plpgsql stable
set search_path = public, extensions, pg_temp
set plan_cache_mode = force_custom_plan
set enable_bitmapscan = off -- it would gather all of them before it takes the newest
set enable_sort = off
set jit = off
as $$
declare
  q long_term_memory.question := p_question;
begin
  return (
    select w.score
    from (
      select ranked_ledger.score(c.relevance, 0, c.recency, 0, q.w_similarity, 0, q.w_recency, 0, true) as score
      from (
        select ranked_ledger.text_or_cosine(
                 m.search_lexemes, m.embedding, m.embedding_model = q.embedding_model and m.embedding_dims = q.dims,
                 case when q.counts_all or m.search_lexemes @@ q.has_any then q.words end, q.embedding) as relevance,
               ranked_ledger.recency(long_term_memory.age_days(m.created_date), q.half_life) as recency
        from (
          select a.* from long_term_memory.agent_memories a
          where a.org_id = q.org_id and a.redacted_at is null
          order by a.created_date desc, a.id limit least(50 * q.match_count, 5000) offset 0) as m
        where (m.expires_at is null or m.expires_at > now())
          and long_term_memory.may_be_recalled(m.review_outcome, m.author, q.with_unreviewed)
          and (q.subject_type is null or m.subject_type = q.subject_type)
          and (q.subject_id is null or m.subject_id = q.subject_id)
          and (q.workspace_id is null or m.workspace_id = q.workspace_id)
        offset 0) as c
      where q.min_relevance is null or c.relevance >= q.min_relevance
      offset 0) as w
    order by w.score desc limit 1 offset q.match_count - 1);
end
$$;

comment on function long_term_memory.least_score(long_term_memory.question) is
  'A score that enough memories reach to fill the answer; null where the newest memories do not tell.';

-- The offsets keep each component a column that is computed once; no row is carried through the sort with its vector. They
-- are constants of their type: behind a cast the planner takes an offset for one that skips, and gives no parallel workers.
-- The plan is made for the arguments: without those that are null, the scope is what an index knows, or nothing at all.
create or replace function long_term_memory.rank_memories(p_question long_term_memory.question)
returns table (memory_id uuid, relevance float8, age_days float8, recency float8, score float8) language plpgsql stable
set search_path = public, extensions, pg_temp
set plan_cache_mode = force_custom_plan
set jit = off
as $$
declare
  q       long_term_memory.question := p_question;
  v_least float8 := case when p_question.subject_id is null then long_term_memory.least_score(p_question) end;
begin
  return query
  select w.id, w.relevance, w.age, w.recency,
         ranked_ledger.score(w.relevance, 0, w.recency, 0, q.w_similarity, 0, q.w_recency, 0, true)
  from (
    select c.id, c.created_date, c.relevance, long_term_memory.age_days(c.created_date) as age,
           ranked_ledger.recency(long_term_memory.age_days(c.created_date), q.half_life) as recency
    from (
      select m.id, m.created_date, ranked_ledger.text_or_cosine(
               m.search_lexemes, m.embedding, m.embedding_model = q.embedding_model and m.embedding_dims = q.dims,
               case when q.counts_all or m.search_lexemes @@ q.has_any then q.words end, q.embedding) as relevance
      from long_term_memory.agent_memories m
      where m.org_id = q.org_id and m.redacted_at is null and (m.expires_at is null or m.expires_at > now())
        and long_term_memory.may_be_recalled(m.review_outcome, m.author, q.with_unreviewed)
        and (q.subject_type is null or m.subject_type = q.subject_type)
        and (q.subject_id is null or m.subject_id = q.subject_id)
        and (q.workspace_id is null or m.workspace_id = q.workspace_id)
      offset bigint '0') as c
    where (q.min_relevance is null or c.relevance >= q.min_relevance)
      and (v_least is null or ranked_ledger.score(c.relevance, 0, 1, 0, q.w_similarity, 0, q.w_recency, 0, true) >= v_least)
    offset bigint '0') as w
  order by 5 desc, w.created_date desc, w.id limit q.match_count;
end
$$;

comment on function long_term_memory.rank_memories(long_term_memory.question) is
  'The memories that a question is about, best first, each with its components: scope before limit, one evaluation of a vector each.';
