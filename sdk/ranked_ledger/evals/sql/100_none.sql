-- No memory at all: what every other arm has to be better than.
create function ranked_ledger_evals.arm_none(p_asked ranked_ledger_evals.asked)
returns table (memory_id uuid, score float8) language sql stable as $$
  select null::uuid, null::float8 where false
$$;
