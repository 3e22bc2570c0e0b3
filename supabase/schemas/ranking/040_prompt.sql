-- Into a prompt: what a fence costs, a text in one line, and packing into a budget of tokens. Both stores do it alike.

create or replace function ranked_ledger.fence_tokens()
returns int language sql immutable parallel safe
return 37;

comment on function ranked_ledger.fence_tokens() is
  'What a client''s fence around the lines may cost, in tokens: taken off a budget before anything is packed.';

create or replace function ranked_ledger.one_line(p_text text)
returns text language sql immutable parallel safe
return btrim(regexp_replace(p_text, '[[:space:][:cntrl:]\u0085\u2028\u2029]+', ' ', 'g'));

comment on function ranked_ledger.one_line(text) is
  'A text without line breaks: what was recorded cannot draw a second item with a provenance of its own choice.';

-- Packs ranked hits into a token budget, best first: a hit that does not fit shows its summary, then is dropped, and both
-- are named in the answer. Null budget: nothing is packed.
--
-- Pins stand first whatever is asked, so without a limit of their own a few long ones would take the whole budget and the
-- question would get no answer. They share half of what the fence leaves. A pin that does not fit there is shortened or
-- dropped like any other row and does not compete for the other half: what it won would be taken from what answers the
-- question, and whether a pin is shown would depend on what was asked. What the pins leave of their half is everybody's.
create or replace function ranked_ledger.pack_hits(p_hits jsonb, p_max_tokens int)
returns jsonb language plpgsql immutable
set search_path = public, extensions, pg_temp
as $$
declare
  v_left      int := p_max_tokens - ranked_ledger.fence_tokens();
  v_pins_left int := v_left / 2;
  v_room      int;
  v_hit       jsonb;
  v_kept      jsonb[] := '{}';
  v_shortened uuid[] := '{}';
  v_dropped   uuid[] := '{}';
begin
  for v_hit in select h.value from jsonb_array_elements(p_hits) with ordinality as h order by h.ordinality loop
    v_room := case when (v_hit ->> 'pinned')::boolean then least(v_pins_left, v_left) else v_left end; -- null: no end
    if (v_hit ->> 'tokens')::int > v_room then
      if (v_hit ->> 'summary_tokens')::int > v_room then
        v_dropped := v_dropped || (v_hit ->> 'memory_id')::uuid;
        continue;
      end if;
      v_shortened := v_shortened || (v_hit ->> 'memory_id')::uuid;
      v_hit := v_hit || jsonb_build_object('shortened', true, 'line', v_hit -> 'summary_line', 'tokens', v_hit -> 'summary_tokens');
    end if;
    v_left := v_left - (v_hit ->> 'tokens')::int;
    if (v_hit ->> 'pinned')::boolean then
      v_pins_left := v_pins_left - (v_hit ->> 'tokens')::int;
    end if;
    v_kept := v_kept || (v_hit - '{summary_line,summary_tokens}'::text[] || jsonb_build_object('rank', cardinality(v_kept) + 1));
  end loop;
  return jsonb_build_object('hits', to_jsonb(v_kept), 'shortened', to_jsonb(v_shortened), 'dropped', to_jsonb(v_dropped));
end
$$;

comment on function ranked_ledger.pack_hits(jsonb, int) is
  'Hits that fit a budget of tokens, ranked anew, pins in half of it at most; what was shortened and dropped.';
