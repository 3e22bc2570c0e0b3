-- What both stores are built with. Whichever migration comes first makes these functions, and whichever is taken out last
-- takes them along (docs/uninstall.md).
create or replace function ranked_ledger.shared_functions()
returns text[] language sql immutable parallel safe
return array[
  'any_word', 'awaits_confirmation', 'calibrate', 'check_direction', 'check_unit', 'check_weight', 'clamp', 'dependency',
  'fence_tokens', 'has_any', 'match_count', 'max_matches', 'occurrences', 'one_line', 'pack_hits', 'positive_or', 'rank_of_any',
  'recency', 'relevance', 'saturate', 'score', 'shared_functions', 'text_or_cosine', 'tokens', 'vector_of'];

comment on function ranked_ledger.shared_functions() is
  'Names of the functions in ranked_ledger that the ledger and the long-term memory both call.';

-- The service role alone may call them.
do $do$
declare
  v_function regprocedure;
begin
  for v_function in
    select p.oid::regprocedure from pg_proc p
    where p.pronamespace = 'ranked_ledger'::regnamespace and p.proname = any (ranked_ledger.shared_functions())
  loop
    execute format('revoke execute on function %s from public, anon, authenticated', v_function);
    execute format('grant execute on function %s to service_role', v_function);
  end loop;
end
$do$;
