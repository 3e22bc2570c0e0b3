-- The arguments of ranked recall, checked and with their defaults, for match_decision_ledger and recall_decisions alike.

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

