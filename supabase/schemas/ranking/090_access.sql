-- Whichever migration comes first, the service role alone may call what both are built with.
do $do$
declare
  v_function regprocedure;
begin
  for v_function in
    select p.oid::regprocedure from pg_proc p
    where p.pronamespace = 'ranked_ledger'::regnamespace
      and p.proname in ('clamp', 'saturate', 'recency', 'dependency', 'score', 'calibrate', 'relevance', 'awaits_confirmation',
                        'tokens', 'rank_of_any', 'text_or_cosine', 'fence_tokens', 'one_line', 'pack_hits', 'check_weight',
                        'check_unit', 'positive_or', 'max_matches', 'match_count', 'vector_of', 'check_direction')
  loop
    execute format('revoke execute on function %s from public, anon, authenticated', v_function);
    execute format('grant execute on function %s to service_role', v_function);
  end loop;
end
$do$;
