-- Above 10,000 decisions a caller may trade the proof for speed: the nearest come from the host's own HNSW index instead of a scan,
-- and the rest is as in 208. What the index did not find bounds nothing, so such an answer is never called exact. An index of ours
-- would prove as little, double the price of an insert and add 4 KB a decision.

create or replace function ranked_ledger.has_vector_index()
returns boolean language plpgsql stable
set search_path = public, extensions, pg_temp
set plan_cache_mode = force_generic_plan
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
  return not p_question.exact and not p_question.with_retired -- which have no merit
     -- what a rare word finds has to be counted, wherever it stands
     and not (p_question.weighs_words and p_question.terms <> '{}')
     and not ranked_ledger.holds_at_most(p_stream_ids, 10000) and ranked_ledger.has_vector_index();
end
$$;

comment on function ranked_ledger.may_probe(ranked_ledger.question, uuid[]) is
  'Whether a question allows an unproven answer, and there are enough decisions and an index for one; else it is answered exactly.';

-- Rows of the whole host: of a workspace that is a small part of it few may come back, and recency and merit make up for it.
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
    select coalesce(array_agg(x.row_no) filter (where x.row_no is not null), '{}'),
           coalesce(array_agg(x.cosine) filter (where x.row_no is not null), '{}'), coalesce(min(x.cosine), 1)
    from (
      select s.row_no, 1 - (t.embedding <=> $2) as cosine
      from (select t.id, t.embedding from public.thoughts t order by t.embedding <=> $2 limit $3) as t
      left join lateral (
        select s.row_no from ranked_ledger.standings s where s.thought_id = t.id and s.workspace_key = $1 offset 0) as s on true) as x
  $sql$
  into row_nos, cosines, far
  using p_question.workspace_key, p_question.embedding, p_count;
end
$$;

comment on function ranked_ledger.probe_nearest(ranked_ledger.question, int) is
  'Decisions of a workspace that the host''s HNSW index holds for the nearest; far is the cosine of the last that it found, of whatever workspace.';

create or replace function ranked_ledger.merit_of(p_workspace_key bigint, p_place int)
returns float8 language plpgsql stable
set search_path = public, extensions, pg_temp
set enable_seqscan = off
set enable_sort = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $$
begin
  return coalesce((
    select ranked_ledger.merit(s.importance, s.live_dependents) from ranked_ledger.standings s
    where s.workspace_key = p_workspace_key and not s.is_retired
    order by ranked_ledger.merit(s.importance, s.live_dependents) desc offset p_place - 1 limit 1), 0);
end
$$;

comment on function ranked_ledger.merit_of(bigint, int) is 'The merit of the decision in that place by merit; 0 where there are fewer.';

-- How far the index looks. Known only once pgvector is loaded, and not to be set by us before.
do $do$
begin
  perform '[1]'::vector;
  execute 'alter function ranked_ledger.probe_nearest(ranked_ledger.question, int) set hnsw.ef_search = 100';
exception when others then
  raise notice 'Ranked Ledger: unproven recall searches with the host''s hnsw.ef_search (%)', sqlerrm;
end
$do$;
