create or replace function long_term_memory.memory_usage(p_org_id uuid, p_memory_id uuid, p_limit int default 100)
returns jsonb language plpgsql stable security definer
set search_path = public, extensions, pg_temp
as $$
declare
  v_caller long_term_memory.caller := long_term_memory.admit(p_org_id, '{admin,owner}');
  v_limit  int := coalesce(p_limit, 100);
begin
  if v_limit not between 1 and 1000 then
    raise sqlstate '22023' using message = 'p_limit is a number from 1 to 1000.', hint = 'Leave it out for 100.';
  elsif not exists (select from long_term_memory.agent_memories m where m.org_id = p_org_id and m.id = p_memory_id) then
    raise sqlstate 'RL404' using
      message = format('There is no memory %s in this organization.', coalesce(p_memory_id::text, 'without an id')),
      hint = 'Check the id and the organization.';
  end if;
  return jsonb_build_object(
    'memory_id', p_memory_id,
    'reads', (select count(*) from long_term_memory.recall_items i where i.org_id = p_org_id and i.memory_id = p_memory_id),
    'runs', coalesce((
      select jsonb_agg(jsonb_build_object('recall_id', r.id, 'run_id', r.run_id, 'recalled_by', r.recalled_by, 'at', r.at,
                                          'rank', r.rank, 'score', r.score) order by r.at desc, r.id)
      from (select c.id, c.run_id, c.recalled_by, c.at, i.rank, i.score
            from long_term_memory.recall_items i join long_term_memory.recalls c on c.id = i.recall_id and c.org_id = i.org_id
            where i.org_id = p_org_id and i.memory_id = p_memory_id
            order by c.at desc, c.id limit v_limit) as r), '[]'));
end
$$;

comment on function long_term_memory.memory_usage(uuid, uuid, int) is 'Behind public.memory_usage.';

create or replace function public.memory_usage(p_org_id uuid, p_memory_id uuid, p_limit int default 100)
returns jsonb language sql
set search_path = public, extensions, pg_temp
as $$
  select long_term_memory.memory_usage(p_org_id, p_memory_id, p_limit)
$$;

comment on function public.memory_usage(uuid, uuid, int) is
  'Which runs read a memory, and who asked, newest first. For admins, owners and the service role.';
