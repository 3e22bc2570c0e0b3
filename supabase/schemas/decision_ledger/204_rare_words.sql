-- Text relevance of the tuned preset. The published one counts how often any word of the question stands in the text: common
-- words win, long texts win, and three words are as good as thirty. Here a word weighs by how rare it is, its second occurrence
-- counts for less than its first, and a long text has to have more. The constants were fitted on a coarse grid over six streams
-- of decisions and are no one stream's (docs/decisions/0048).

-- In a ledger of a few decisions nothing tells a rare word from a common one, and every word would weigh next to nothing: it is
-- taken for one of fifty, which on the streams that were tuned on changed no order.
create or replace function ranked_ledger.rarity(p_documents bigint, p_with bigint)
returns float8 language sql immutable parallel safe
return case when p_with > 0
            then ln(1 + (greatest(greatest(p_documents, 50) - p_with, 0) + 0.5::float8) / (p_with + 0.5::float8))
            else 0::float8 end;

comment on function ranked_ledger.rarity(bigint, bigint) is
  'What a word weighs that stands in so many of so many decisions: ln(1 + (N - n + 0.5) / (n + 0.5)), the inverse document frequency of BM25 as Lucene keeps it positive, N at least 50. 0 for a word that stands in none.';

create or replace function ranked_ledger.word_share(p_weight float8, p_occurrences bigint)
returns float8 language sql immutable parallel safe
return p_weight * (p_occurrences / (p_occurrences + 3::float8));

comment on function ranked_ledger.word_share(float8, bigint) is
  'What a word contributes that stands so often in a text: its weight times n/(n+3).';

create or replace function ranked_ledger.text_of_shares(p_shares float8, p_length int, p_length_share float8)
returns float8 language sql immutable parallel safe
return p_shares / (p_shares + 4 * (1 - p_length_share + p_length_share * (p_length / 100::float8)));

comment on function ranked_ledger.text_of_shares(float8, int, float8) is
  'Text relevance in [0,1) of the shares of its words: s/(s + 4l), l = 0.9 + 0.1 of its length in hundreds of words. The length stands outside the sum over words (in BM25 it stands inside), so that it is looked up once a decision.';

-- Here a copy that lags would show in the score of every other decision, so those that are marked are counted from the tables:
-- what their copies said is taken off, what the tables say comes on. Right for any number of marks, and for a question of any
-- length: the words of a decision are read once, and looked for among those asked for.
create or replace function ranked_ledger.correction_of_marked(
  p_workspace_key bigint, p_terms bigint[], out documents bigint, out terms bigint[], out changes bigint[])
language plpgsql stable
set search_path = public, extensions, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_marked uuid[] := array(select distinct c.memory_id from ranked_ledger.stale_copies c where c.workspace_key = p_workspace_key);
begin
  documents := 0;
  if v_marked = '{}' then
    return;
  end if;
  with copied as materialized (
    select s.row_no, s.is_retired from unnest(v_marked) as c (memory_id)
    cross join lateral (select x.* from ranked_ledger.standings x where x.memory_id = c.memory_id offset 0) as s
    where s.workspace_key = p_workspace_key),
  due as materialized (
    select l.search_lexemes, coalesce(m.lifecycle_status in ('superseded', 'rejected'), true) as is_retired
    from unnest(v_marked) as c (memory_id)
    cross join lateral (select x.* from public.agent_decision_ledger x where x.memory_id = c.memory_id offset 0) as l
    cross join lateral (select x.* from public.agent_memories x where x.id = l.memory_id offset 0) as m
    where m.workspace_id = l.workspace_id and l.set_aside_at is null
      and ranked_ledger.workspace_key(l.workspace_id) = p_workspace_key),
  changed as (
    select p.term, -1 as change from copied o
    cross join lateral (select x.term from ranked_ledger.postings x where x.row_no = o.row_no offset 0) as p
    union all
    select ranked_ledger.term_of(p_workspace_key, x.lexeme), 1
    from due d cross join lateral unnest(tsvector_to_array(d.search_lexemes)) as x (lexeme)),
  summed as (
    select c.term, sum(c.change) as change from changed c where c.term in (select unnest(p_terms)) group by 1)
  select (select count(*) from due d where not d.is_retired) - (select count(*) from copied o where not o.is_retired),
         array_agg(s.term), array_agg(s.change)
  into documents, terms, changes
  from summed s;
end
$$;

comment on function ranked_ledger.correction_of_marked(bigint, bigint[]) is
  'What the copies of a workspace''s marked decisions miscount: how many more decisions are not retired, and how many more hold which of these terms.';

-- Document frequencies come from the postings: those of all decisions, in force or not. The number of decisions is that of those
-- that are not retired, which an index holds; a word that stands in more of them than there are is as common as can be.
create or replace function ranked_ledger.word_weights(p_workspace_key bigint, p_terms bigint[])
returns float8[] language plpgsql stable
set search_path = public, extensions, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set enable_nestloop = off -- two lists that may be long
set jit = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_documents bigint;
  v_marked    record;
begin
  if p_terms = '{}' then
    return '{}';
  end if;
  select count(*) into v_documents from ranked_ledger.standings s where s.workspace_key = p_workspace_key and not s.is_retired;
  v_marked := ranked_ledger.correction_of_marked(p_workspace_key, p_terms);
  return array(
    select ranked_ledger.rarity(
      v_documents + v_marked.documents,
      (select count(*) from ranked_ledger.postings p where p.term = t.term) + coalesce(c.change, 0))
    from unnest(p_terms) with ordinality as t (term, place)
    left join unnest(v_marked.terms, v_marked.changes) as c (term, change) on c.term = t.term
    order by t.place);
end
$$;

comment on function ranked_ledger.word_weights(bigint, bigint[]) is
  'The rarity of each of these terms in its workspace, of today.';
