create or replace function public.ledger_schema_version()
returns int language sql immutable parallel safe
set search_path = public, extensions, pg_temp
as $$ select 1 $$;

comment on function public.ledger_schema_version() is
  'The version of this SQL API. A client asks once and names what does not fit.';
