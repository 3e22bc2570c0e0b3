-- Which cosines count as 0 and as 1, from the workspace's own vectors: nobody knows by heart how a model spreads its cosines.

create or replace function ranked_ledger.cosine_spread(p_workspace_id text, p_sample int)
returns table (vectors bigint, pairs bigint, floor float8, ceiling float8) language plpgsql stable
set search_path = public, extensions, pg_temp
set enable_seqscan = off -- by the workspace's index
set plan_cache_mode = force_generic_plan
as $$
begin
  return query
  with drawn as materialized ( -- the same at every call, and spread over the ledger: row numbers in the order of their digits backwards
    select v.row_no, v.embedding from ranked_ledger.decision_vectors v
    where v.workspace_key = ranked_ledger.workspace_key(p_workspace_id) and v.embedding is not null
      and vector_dims(v.embedding) = coalesce(ranked_ledger.embedding_dimension(), vector_dims(v.embedding))
    order by reverse(v.row_no::text), v.row_no limit p_sample),
  cosine as (
    select 1 - (a.embedding <=> b.embedding) as value -- the product of directions in half precision can be above 1
    from drawn a join drawn b on b.row_no > a.row_no and vector_dims(b.embedding) = vector_dims(a.embedding))
  select (select count(*) from drawn), count(*),
         -- Questions have lower cosines than texts have among themselves, so the floor lies below what the pairs show: as far below
         -- their first percentile as their median lies above it. At the percentile itself one model had half of all at 0.
         greatest(-1, 2 * percentile_cont(0.01) within group (order by c.value) - percentile_cont(0.5) within group (order by c.value)),
         percentile_cont(0.999) within group (order by c.value)
  from cosine c;
end
$$;

comment on function ranked_ledger.cosine_spread(text, int) is
  'Floor and ceiling from the cosines between a workspace''s decisions, of the pairs of so many of them: twice the first percentile less the median, at least -1, and what 99.9 % lie below.';

create or replace function public.fit_similarity_range(p_workspace_id text, p_embedding_model text, p_sample int default 300)
returns jsonb language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_spread  record;
  v_floor   numeric;
  v_ceiling numeric;
begin
  perform ranked_ledger.check_recording_workspace(p_workspace_id);
  if coalesce(p_sample, 0) not between 10 and 2000 then
    raise sqlstate '22023' using
      message = format('p_sample is a number from 10 to 2,000; it is %s', coalesce(p_sample::text, 'null')),
      hint = 'Leave it out for 300 decisions, whose 44,850 pairs are compared.';
  end if;
  select * into v_spread from ranked_ledger.cosine_spread(p_workspace_id, p_sample);
  v_floor := round(v_spread.floor::numeric, 4);
  v_ceiling := round(v_spread.ceiling::numeric, 4);
  if v_spread.vectors < 10 or v_floor < v_ceiling is not true then
    raise sqlstate '22023' using
      message = format('%s decisions of this workspace have a vector that can be compared; 10 different ones are needed', v_spread.vectors),
      hint = 'Record decisions with embeddings first, or say the range by set_similarity_range.';
  end if;
  return set_similarity_range(p_workspace_id, p_embedding_model, v_floor::float8, v_ceiling::float8)
         || jsonb_build_object('fitted', jsonb_build_object(
              'floor', v_floor, 'ceiling', v_ceiling, 'vectors', v_spread.vectors, 'pairs', v_spread.pairs));
end
$$;

comment on function public.fit_similarity_range(text, text, int) is
  'Measures which cosines an embedding model gives to decisions of this workspace, and keeps the range: the floor is as far below the first percentile of the pairs as their median is above it, the ceiling what 99.9 % are below. 22023 with fewer than 10 vectors. Answers as set_similarity_range, and fitted: {floor, ceiling, vectors, pairs}.';
