-- Arguments that the recalls of both stores take, checked and with their defaults.

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

create or replace function ranked_ledger.check_unit(p_name text, p_value float8)
returns void language plpgsql immutable
set search_path = public, extensions, pg_temp
as $$
begin
  if p_value not between 0 and 1 then -- NaN is above 1
    raise sqlstate '22023' using
      message = format('%s is a number from 0 to 1; it is %s', p_name, p_value), hint = 'Leave it out for its default.';
  end if;
end
$$;

comment on function ranked_ledger.check_unit(text, float8) is 'Refuses (22023) a number outside [0, 1]. Null passes.';

create or replace function ranked_ledger.max_matches()
returns int language sql immutable parallel safe
return 1000;

comment on function ranked_ledger.max_matches() is
  'Rows of one recall at most: 1,000. PostgREST cuts a longer answer at its max_rows without a word; we cut first and say so.';

create or replace function ranked_ledger.match_count(p_count int)
returns int language sql immutable parallel safe
return least(case when p_count > 0 then p_count else 10 end, ranked_ledger.max_matches());

comment on function ranked_ledger.match_count(int) is 'Null or not positive: 10. At most max_matches().';

create or replace function ranked_ledger.vector_of(p_embedding text)
returns vector language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
begin
  if p_embedding is null then
    return null;
  end if;
  return p_embedding::vector;
exception when data_exception or program_limit_exceeded then
  raise sqlstate '22023' using
    message = format('embedding is not a vector: %s.', left(sqlerrm, 200)),
    hint = 'Send finite numbers in brackets, like [0.1,0.2].';
end
$$;

comment on function ranked_ledger.vector_of(text) is
  'A vector from its text, null from null. Refuses what is no finite vector (22023).';

create or replace function ranked_ledger.check_direction(p_embedding vector)
returns void language plpgsql immutable
set search_path = public, extensions, pg_temp
as $$
begin
  if vector_norm(p_embedding) = 0 then
    raise sqlstate '22023' using
      message = 'embedding is all zeros: it has no direction that could be compared.',
      hint = 'Leave the embedding out; the text is then found by its words.';
  end if;
end
$$;

comment on function ranked_ledger.check_direction(vector) is 'Refuses (22023) a vector of zeros. Null passes.';
