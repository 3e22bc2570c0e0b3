-- The ranking formula. Each function is a `return <expression>`: parsed when it is created, inlined into the query that
-- calls it, without a clock and without a table. Nobody else computes a score.

create or replace function ranked_ledger.clamp(p_value float8)
returns float8 language sql immutable parallel safe
return case when p_value is null or p_value = 'NaN'::float8 then 0::float8
            when p_value < 0 then 0::float8
            when p_value > 1 then 1::float8
            else p_value end;

comment on function ranked_ledger.clamp(float8) is
  'A component of the score: in [0,1]. Null and NaN are 0, since greatest(0, least(1, NaN)) would be 1 and a zero vector would win.';

create or replace function ranked_ledger.saturate(p_rank float8)
returns float8 language sql immutable parallel safe
return (10 * p_rank) / (1 + 10 * p_rank);

comment on function ranked_ledger.saturate(float8) is
  'Text relevance from ts_rank_cd: x/(1+x), x = 10 * rank. It saturates and never clips, so that more matches always count for more.';

create or replace function ranked_ledger.recency(p_distance float8, p_half_life float8)
returns float8 language sql immutable parallel safe
return case when p_distance / p_half_life > 700 then 0::float8 else exp(- p_distance / p_half_life) end;

comment on function ranked_ledger.recency(float8, float8) is
  'exp(-d/h): 0.37 at a distance of one half-life (the published name), for a distance of 0 or more. Cut off at 700 half-lives, before exp raises on underflow (22003).';

create or replace function ranked_ledger.dependency(p_live_dependents float8, p_saturation float8)
returns float8 language sql immutable parallel safe
return least(1::float8, p_live_dependents / p_saturation);

comment on function ranked_ledger.dependency(float8, float8) is
  'min(1, live decisions that depend on it / saturation).';

-- Beside the new one, a call without the last three would be of both.
do $do$
begin
  if to_regprocedure('ranked_ledger.score(float8, float8, float8, float8, float8, float8, float8, float8, boolean)') is not null then
    execute 'drop function ranked_ledger.score(float8, float8, float8, float8, float8, float8, float8, float8, boolean)';
  end if;
end
$do$;

create or replace function ranked_ledger.score(
  p_relevance float8, p_importance float8, p_recency float8, p_dependency float8,
  p_w_similarity float8, p_w_importance float8, p_w_recency float8, p_w_dependency float8, p_active boolean,
  p_summary_match float8 default 0, p_w_summary float8 default 0, p_penalty float8 default 0.30)
returns float8 language sql immutable parallel safe
return p_w_similarity * ranked_ledger.clamp(p_relevance)
     + p_w_importance * ranked_ledger.clamp(p_importance)
     + p_w_recency * ranked_ledger.clamp(p_recency)
     + p_w_dependency * ranked_ledger.clamp(p_dependency)
     + p_w_summary * ranked_ledger.clamp(p_summary_match)
     - case when p_active then 0::float8 else p_penalty end;

comment on function ranked_ledger.score(
  float8, float8, float8, float8, float8, float8, float8, float8, boolean, float8, float8, float8) is
$$score = 0.45 relevance + 0.25 importance + 0.15 recency + 0.15 dependency      (-0.30 where not active)

A sum and not a product: an important old decision that matches in other words keeps its place.
The text query is a disjunction of lexemes: requiring all words matched nothing on real questions (MRR 0.05 against 0.50).
The text rank saturates, x/(1+x), instead of clipping at 1: clipped, every record with ten matches ties.
Components are clamped before they are weighted: one bad value cannot outweigh the others.
The dependency normaliser is frozen (3) and not the maximum of the result: a score never depends on the other rows.
The half-life of 30 steps fits a working session: what was decided 80 steps ago keeps 7 percent of its recency.
The score lies in [-0.30, sum of the weights].

These are the published weights. A preset (203) may weigh otherwise, count the words of the summary, and take less from what
is stale or disputed: the same sum of the same components.$$;
