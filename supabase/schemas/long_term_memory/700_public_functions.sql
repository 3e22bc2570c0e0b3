-- The RPCs of docs/memory-api.md. Those that people may call are pairs: in public with the caller's rights, and behind it in
-- long_term_memory with the owner's.
create or replace function long_term_memory.functions_for_people()
returns text[] language sql immutable parallel safe
return array[
  'correct_memory', 'erase_subject', 'forget_memory', 'memory_usage', 'pending_reviews', 'recall_memories', 'remember',
  'review_memory', 'subject_access'];

comment on function long_term_memory.functions_for_people() is 'Names of the RPCs that a person''s token may call.';

create or replace function long_term_memory.functions_for_the_service()
returns text[] language sql immutable parallel safe
return array['adopt_memories', 'attribute_decision', 'expire_memories', 'map_workspace', 'set_member', 'set_organization'];

comment on function long_term_memory.functions_for_the_service() is 'Names of the RPCs that only the service role may call.';

create or replace function long_term_memory.our_functions()
returns setof regprocedure language sql stable
set search_path = public, extensions, pg_temp
as $$
  -- a host may have a function of one of these names with other arguments, and its rights are the host's: ours pin this path
  select p.oid::regprocedure from pg_proc p
  where p.pronamespace = 'long_term_memory'::regnamespace
     or (p.pronamespace = 'public'::regnamespace and 'search_path=public, extensions, pg_temp' = any (p.proconfig)
         and p.proname = any (long_term_memory.functions_for_people() || long_term_memory.functions_for_the_service()
                              || array['memory_schema_version']))
$$;

comment on function long_term_memory.our_functions() is 'The functions of the long-term memory, in public and in its own schema.';
