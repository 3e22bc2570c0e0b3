-- Text relevance of the tuned preset. The published one counts how often any word of the question stands in the text: common
-- words win, long texts win, and three words are as good as thirty. Here a word weighs by how rare it is, its second occurrence
-- counts for less than its first, and a long text has to have more. The constants were fitted on a coarse grid over six streams
-- of decisions and are no one stream's (docs/decisions/0048).

create or replace function ranked_ledger.rarity(p_documents bigint, p_with bigint)
returns float8 language sql immutable parallel safe
return case when p_with > 0
            then ln(1 + (greatest(p_documents - p_with, 0) + 0.5::float8) / (p_with + 0.5::float8)) else 0::float8 end;

comment on function ranked_ledger.rarity(bigint, bigint) is
  'What a word weighs that stands in so many of so many decisions: ln(1 + (N - n + 0.5) / (n + 0.5)), the inverse document frequency of BM25 as Lucene keeps it positive. 0 for a word that stands in none.';

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

-- Document frequencies come from the postings: those of all decisions, in force or not. The number of decisions is that of those
-- that are not retired, which an index holds; a word that stands in more of them than there are is as common as can be.
-- Here a copy that lags would show in the score of every other decision, so those that are marked are counted from the tables.
create or replace function ranked_ledger.word_weights(p_workspace_key bigint, p_terms bigint[])
returns float8[] language plpgsql stable
set search_path = public, extensions, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set jit = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_documents bigint;
  v_stale     uuid[];
  v_left_out  int[]; -- row numbers whose postings are nobody's, or may be of other words
  v_found     bigint[] := '{}'; -- terms, each as often as a decision that is marked holds it
begin
  if p_terms = '{}' then
    return '{}';
  end if;
  v_stale := array(select distinct c.memory_id from ranked_ledger.stale_copies c where c.workspace_key = p_workspace_key);
  v_left_out := array(select d.row_no from ranked_ledger.dead_rows d
                      union
                      select s.row_no from ranked_ledger.standings s where s.memory_id = any (v_stale));
  select count(*) into v_documents from ranked_ledger.standings s where s.workspace_key = p_workspace_key and not s.is_retired;
  if v_stale <> '{}' then
    v_documents := v_documents
      - (select count(*) from ranked_ledger.standings s
         where s.memory_id = any (v_stale) and s.workspace_key = p_workspace_key and not s.is_retired)
      + (select count(*) from ranked_ledger.standings_due(v_stale) d where d.workspace_key = p_workspace_key and not d.is_retired);
    v_found := array(
      select x.term from ranked_ledger.standings_due(v_stale) d
      cross join lateral ranked_ledger.terms_of(p_workspace_key, d.search_lexemes) as x
      where d.workspace_key = p_workspace_key and x.term = any (p_terms));
  end if;
  return array(
    select ranked_ledger.rarity(
      v_documents,
      (select count(*) from ranked_ledger.postings p where p.term = t.term)
      - (select count(*) from ranked_ledger.postings p where p.term = t.term and p.row_no = any (v_left_out))
      + cardinality(array_positions(v_found, t.term)))
    from unnest(p_terms) with ordinality as t (term, place) order by t.place);
end
$$;

comment on function ranked_ledger.word_weights(bigint, bigint[]) is
  'The rarity of each of these terms in its workspace, of today.';
