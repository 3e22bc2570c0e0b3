create or replace function long_term_memory.memory_usage(p_org_id uuid, p_memory_id uuid, p_limit int default 100)
returns jsonb language plpgsql stable security definer
set search_path = public, extensions, pg_temp
as $$
declare
  v_caller long_term_memory.caller := long_term_memory.admit(p_org_id, '{admin,owner}');
begin
  if p_limit is null or p_limit not between 1 and 1000 then
    raise sqlstate '22023' using
      message = 'p_limit is not a number from 1 to 1000.', hint = 'The newest ones come first; reads counts all of them.';
  elsif not exists (select from long_term_memory.agent_memories m where m.id = p_memory_id and m.org_id = p_org_id) then
    perform long_term_memory.no_memory(p_memory_id);
  end if;
  -- an erased one too: who had read it is asked then more than ever
  return jsonb_build_object(
    'memory_id', p_memory_id,
    'reads', (select count(*) from long_term_memory.recall_items i where i.memory_id = p_memory_id and i.org_id = p_org_id),
    'runs', (
      select coalesce(jsonb_agg(jsonb_build_object(
        'recall_id', u.id, 'run_id', u.run_id, 'recalled_by', u.recalled_by, 'at', u.at, 'rank', u.rank, 'score', u.score)
        order by u.at desc, u.id), '[]')
      from (
        select r.id, r.run_id, r.recalled_by, r.at, i.rank, i.score
        from long_term_memory.recall_items i
        join long_term_memory.recalls r on r.id = i.recall_id and r.org_id = p_org_id
        where i.memory_id = p_memory_id and i.org_id = p_org_id
        order by r.at desc, r.id limit p_limit) as u));
end
$$;

comment on function long_term_memory.memory_usage(uuid, uuid, int) is 'The inner half of public.memory_usage, with the owner''s rights.';

create or replace function public.memory_usage(p_org_id uuid, p_memory_id uuid, p_limit int default 100)
returns jsonb language sql stable
set search_path = public, extensions, pg_temp
as $$ select long_term_memory.memory_usage(p_org_id, p_memory_id, p_limit) $$;

comment on function public.memory_usage(uuid, uuid, int) is
  'Which recalls returned a memory, newest first, and how many there were: {"memory_id", "reads", "runs": [...]}.';
