-- Where relevance comes from, when a caller asks with text, with an embedding, or with both.

create or replace function ranked_ledger.calibrate(p_cosine float8, p_floor float8, p_ceiling float8)
returns float8 language sql immutable parallel safe
return case when p_cosine is null then null::float8
            when p_cosine <= p_floor then 0::float8
            when p_cosine >= p_ceiling then 1::float8
            else (p_cosine - p_floor) / (p_ceiling - p_floor) end;

comment on function ranked_ledger.calibrate(float8, float8, float8) is
  'Cosine relevance: clamp((cosine - floor) / (ceiling - floor)). One model spreads its cosines over 0.1 to 0.6, another over 0.75 to 0.86: uncalibrated, the second decides nothing. Null: no cosine.';

create or replace function ranked_ledger.relevance(p_cosine float8, p_text float8, p_fusion text, p_fusion_weight float8)
returns float8 language sql immutable parallel safe
return case when p_cosine is null then coalesce(p_text, 0::float8)
            when p_text is null or p_fusion = 'none' then p_cosine
            when p_fusion = 'max' then greatest(p_cosine, p_text)
            else p_fusion_weight * p_cosine + (1 - p_fusion_weight) * p_text end;

comment on function ranked_ledger.relevance(float8, float8, text, float8) is
  'Of the calibrated cosine and the saturated text rank: none takes the cosine where there is one, max the greater, blend both by the weight of the cosine. Never from the rank among others: a score does not depend on the other rows.';

create or replace function ranked_ledger.awaits_confirmation(p_requires_confirmation boolean, p_review_status text)
returns boolean language sql immutable parallel safe
return p_requires_confirmation is true and p_review_status is not distinct from 'pending';

comment on function ranked_ledger.awaits_confirmation(boolean, text) is
  'The host''s own filter: pending while confirmation is required.';
