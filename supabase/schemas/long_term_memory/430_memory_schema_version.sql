-- stable, and not immutable: an immutable one is folded into a cached plan, and PostgREST keeps a plan for all roles of a
-- connection, so that the right to execute it would not be asked again.
create or replace function public.memory_schema_version()
returns int language sql stable parallel safe
set search_path = public, extensions, pg_temp
as $$ select 1 $$;

comment on function public.memory_schema_version() is
  'The version of the long-term memory''s SQL API. A client asks once and names what does not fit.';
