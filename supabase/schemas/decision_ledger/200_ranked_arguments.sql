-- The arguments of ranked recall, checked and with their defaults, for match_decision_ledger and recall_decisions alike.

create or replace function ranked_ledger.check_weight(p_name text, p_value float8)
returns void language plpgsql immutable
set search_path = public, extensions, pg_temp
as $$
begin
  if p_value is null or p_value < 0 or p_value in ('NaN', 'Infinity') then
    raise sqlstate '22023' using
      message = format('%s is a finite number of at least 0; it is %s', p_name, coalesce(p_value::text, 'null')),
      hint = 'Leave it out for its default.';
  elsif p_value > 1e300 then -- the sum of the four overflows
    raise sqlstate '22023' using
      message = format('%s is at most 1e300; it is %s', p_name, p_value), hint = 'Only the proportions of the weights matter.';
  end if;
end
$$;

comment on function ranked_ledger.check_weight(text, float8) is 'Refuses (22023) a weight that is null, negative, NaN, infinite or above 1e300.';

create or replace function ranked_ledger.positive_or(p_value float8, p_default float8)
returns float8 language sql immutable parallel safe
return case when p_value > 0 and p_value < 'Infinity'::float8 then p_value else p_default end;

comment on function ranked_ledger.positive_or(float8, float8) is
  'The value where it is a positive finite number, else the default: null, 0, negative, NaN, infinite mean the default.';

-- The number of dimensions of the host's column, from the catalogue: 384, 768, 1024, 1536, 3072, ... Null: any.
create or replace function ranked_ledger.embedding_dimension()
returns int language sql stable
set search_path = public, extensions, pg_temp
as $$
  select nullif(a.atttypmod, -1) from pg_attribute a
  where a.attrelid = to_regclass('public.thoughts') and a.attname = 'embedding' and not a.attisdropped
$$;

comment on function ranked_ledger.embedding_dimension() is 'Dimensions of public.thoughts.embedding; null where the column has no fixed number.';

-- PostgREST does not enforce the dimension of a function's argument, and <=> names it only for the first row it meets.
create or replace function ranked_ledger.check_dimension(p_dimension int)
returns void language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
declare
  v_expected int := ranked_ledger.embedding_dimension();
begin
  if p_dimension <> v_expected then
    raise sqlstate 'RL463' using
      message = format('the embedding has %s dimensions, this project stores %s', p_dimension, v_expected),
      detail = format('%s,%s', p_dimension, v_expected),
      hint = 'Embed with the model that the project''s thoughts were embedded with, or leave the embedding out.';
  end if;
end
$$;

comment on function ranked_ledger.check_dimension(int) is 'Refuses (RL463, both numbers named) an embedding that cannot be compared with the host''s.';

create or replace function ranked_ledger.max_matches()
returns int language sql immutable parallel safe
return 1000;

comment on function ranked_ledger.max_matches() is
  'Rows of one recall at most: 1,000. PostgREST cuts a longer answer at its max_rows without a word; we cut first and say so.';

create or replace function ranked_ledger.match_count(p_count int)
returns int language sql immutable parallel safe
return least(case when p_count > 0 then p_count else 10 end, ranked_ledger.max_matches());

comment on function ranked_ledger.match_count(int) is 'Null or not positive: 10. At most max_matches().';
