-- Text: tokens and the disjunctive query.

create or replace function ranked_ledger.tokens(p_text text)
returns int language sql immutable parallel safe
return ceil(char_length(coalesce(p_text, '')) / 4.0)::int;

comment on function ranked_ledger.tokens(text) is
  'The size of a text in tokens: ceil(characters / 4). The one estimate that every budget uses.';

-- The lexemes are quoted by hand: quote_literal writes E'' strings for backslashes, which a tsquery does not read.
create or replace function ranked_ledger.any_word_query(p_config regconfig, p_text text)
returns tsquery language sql immutable parallel safe
return (
  select string_agg('''' || replace(replace(t.lexeme, '\', '\\'), '''', '''''') || '''', ' | ' order by t.lexeme)::tsquery
  from unnest(to_tsvector(p_config, p_text)) as t);

comment on function ranked_ledger.any_word_query(regconfig, text) is
  'A tsquery that any lexeme of the text satisfies. Null where the text has no lexeme (empty, stop words only).';

create or replace function ranked_ledger.rank_of_any(p_occurrences bigint)
returns float8 language sql immutable parallel safe
return coalesce(0.1::float4::float8 * p_occurrences, 0)::float4::float8;

comment on function ranked_ledger.rank_of_any(bigint) is
  'ts_rank_cd over a disjunction of lexemes, from how often they stand in the text: each occurrence is a cover of its own, of weight 0.1 in single precision, and the sum is rounded to single precision. Compared with ts_rank_cd up to 9,000 occurrences.';

do $do$
declare
  v_function regprocedure;
begin
  for v_function in
    select p.oid::regprocedure from pg_proc p
    where p.pronamespace = 'ranked_ledger'::regnamespace
      and p.proname in ('clamp', 'saturate', 'recency', 'dependency', 'score', 'calibrate', 'relevance', 'awaits_confirmation', 'tokens',
                        'any_word_query', 'rank_of_any')
  loop
    execute format('revoke execute on function %s from public, anon, authenticated', v_function);
    execute format('grant execute on function %s to service_role', v_function);
  end loop;
end
$do$;
