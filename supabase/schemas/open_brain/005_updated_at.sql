-- One trigger function keeps updated_at of the tables that we create here. It is created only when one of them will be,
-- so that a host with an install of its own gets nothing.
do $do$
begin
  if to_regprocedure('public.open_brain_set_updated_at()') is not null
     or (to_regclass('public.thoughts') is not null and to_regclass('public.agent_memories') is not null) then
    return;
  end if;

  create function public.open_brain_set_updated_at() returns trigger
  language plpgsql
  set search_path = public, extensions, pg_temp
  as $fn$
  begin
    new.updated_at := now();
    return new;
  end
  $fn$;

  comment on function public.open_brain_set_updated_at() is
    'Trigger function: an update refreshes updated_at, whatever the writer sent.';
  revoke all on function public.open_brain_set_updated_at() from public, anon, authenticated, service_role;
end
$do$;
