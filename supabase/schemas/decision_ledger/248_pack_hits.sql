-- Packs ranked hits into a token budget, best first: a hit that does not fit shows its summary, then is dropped, and both
-- are named in the answer. Null budget: nothing is packed.
create or replace function ranked_ledger.pack_hits(p_hits jsonb, p_max_tokens int)
returns jsonb language plpgsql immutable
set search_path = public, extensions, pg_temp
as $$
declare
  v_left      int := p_max_tokens - ranked_ledger.fence_tokens();
  v_hit       jsonb;
  v_kept      jsonb[] := '{}';
  v_shortened uuid[] := '{}';
  v_dropped   uuid[] := '{}';
begin
  for v_hit in select h.value from jsonb_array_elements(p_hits) with ordinality as h order by h.ordinality loop
    if p_max_tokens is not null and (v_hit ->> 'tokens')::int > v_left then
      if (v_hit ->> 'summary_tokens')::int > v_left then
        v_dropped := v_dropped || (v_hit ->> 'memory_id')::uuid;
        continue;
      end if;
      v_shortened := v_shortened || (v_hit ->> 'memory_id')::uuid;
      v_hit := v_hit || jsonb_build_object('shortened', true, 'line', v_hit -> 'summary_line', 'tokens', v_hit -> 'summary_tokens');
    end if;
    v_left := v_left - (v_hit ->> 'tokens')::int;
    v_kept := v_kept || (v_hit - '{summary_line,summary_tokens}'::text[] || jsonb_build_object('rank', cardinality(v_kept) + 1));
  end loop;
  return jsonb_build_object('hits', to_jsonb(v_kept), 'shortened', to_jsonb(v_shortened), 'dropped', to_jsonb(v_dropped));
end
$$;

comment on function ranked_ledger.pack_hits(jsonb, int) is 'Hits that fit a budget of tokens, ranked anew; what was shortened and dropped.';
