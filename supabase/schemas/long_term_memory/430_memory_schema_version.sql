create or replace function public.memory_schema_version()
returns int language sql immutable parallel safe
set search_path = public, extensions, pg_temp
as $$ select 1 $$;

comment on function public.memory_schema_version() is
  'The version of the long-term memory''s SQL API. A client asks once and names what does not fit.';
