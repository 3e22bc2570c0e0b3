-- Organizations and members, for a project that has none of its own. Each change leaves a row in audit_events.

create or replace function long_term_memory.set_allow_asserted(p_org_id uuid, p_allowed boolean)
returns void language plpgsql
set search_path = public, extensions, pg_temp
as $$
begin
  insert into long_term_memory.org_settings as s (org_id, allow_asserted)
  select p_org_id, p_allowed
  where p_allowed or exists (select from long_term_memory.org_settings o where o.org_id = p_org_id) -- no row means no
  on conflict (org_id) do update set allow_asserted = excluded.allow_asserted
  where s.allow_asserted is distinct from excluded.allow_asserted;
  if found then
    insert into long_term_memory.audit_events (org_id, kind, payload)
    values (p_org_id, 'allow_asserted_set', jsonb_build_object('allow_asserted', p_allowed));
  end if;
end
$$;

comment on function long_term_memory.set_allow_asserted(uuid, boolean) is
  'Whether the service role may name members of the organization as those who acted.';

create or replace function public.set_organization(
  p_org_id uuid default null, p_name text default null, p_allow_asserted boolean default null)
returns jsonb language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_org_id  uuid := coalesce(p_org_id, gen_random_uuid());
  v_name    text;
  v_created boolean := false;
begin
  -- guard
  if p_name !~ '\S' or octet_length(p_name) > 1000 then
    raise sqlstate '22023' using message = 'p_name is blank, or longer than 1000 bytes.', hint = 'Give a name, or leave it out.';
  end if;

  -- mutate: an organization of the host's is the host's to make and to name
  if long_term_memory.referred_to('org_id') = to_regclass('long_term_memory.organizations') then
    insert into long_term_memory.organizations as o (id, name) values (v_org_id, p_name) on conflict (id) do nothing;
    v_created := found;
    if v_created then
      insert into long_term_memory.audit_events (org_id, kind) values (v_org_id, 'organization_created');
    else
      update long_term_memory.organizations o set name = p_name
      where o.id = v_org_id and o.name is distinct from p_name and p_name is not null;
      if found then
        insert into long_term_memory.audit_events (org_id, kind) values (v_org_id, 'organization_renamed');
      end if;
    end if;
    select o.name into v_name from long_term_memory.organizations o where o.id = v_org_id;
  elsif p_org_id is null or p_name is not null then
    raise sqlstate '22023' using
      message = format('Organizations of this project are rows of %s, which Ranked Ledger does not write.',
                       long_term_memory.referred_to('org_id')),
      hint = 'Create and name them there; here only p_allow_asserted of one that is there can be set.';
  else
    perform long_term_memory.require_org(p_org_id);
  end if;
  if p_allow_asserted is not null then
    perform long_term_memory.set_allow_asserted(v_org_id, p_allow_asserted);
  end if;

  -- answer
  return jsonb_build_object('org_id', v_org_id, 'name', v_name, 'created', v_created, 'allow_asserted', coalesce(
    (select s.allow_asserted from long_term_memory.org_settings s where s.org_id = v_org_id), false));
end
$$;

comment on function public.set_organization(uuid, text, boolean) is
  'Creates or renames an organization, where the project has no table of its own for them, and says whether the service role may name its members.';

-- A host may have put its own rule in the place of ours, and would not look at our table.
create or replace function long_term_memory.members_are_ours()
returns boolean language sql stable
set search_path = public, extensions, pg_temp
as $$
  select pg_get_functiondef('long_term_memory.member_role(uuid,uuid)'::regprocedure) like '%long\_term\_memory.members%'
$$;

comment on function long_term_memory.members_are_ours() is 'Whether member_role reads our table of members.';

create or replace function public.set_member(p_org_id uuid, p_user_id uuid, p_role text)
returns jsonb language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_before  text;
  v_missing text;
  v_hint    text;
begin
  -- guard
  perform long_term_memory.require_org(p_org_id);
  if p_user_id is null or p_role not in ('member', 'admin', 'owner') then
    raise sqlstate '22023' using
      message = 'p_user_id is missing, or p_role is not member, admin or owner.',
      hint = 'Name the user by their id; a null role takes them out.';
  elsif not long_term_memory.members_are_ours() then
    raise sqlstate 'RL409' using
      message = 'Members are kept by this project itself: its long_term_memory.member_role does not ask our table.',
      hint = 'Change the role where the project keeps its members.';
  end if;

  -- mutate: changes of one organization's members take turns, so that an answer about its owners holds
  perform pg_advisory_xact_lock(hashtextextended('ranked_ledger: members ' || p_org_id, 0));
  select m.role into v_before from long_term_memory.members m where m.org_id = p_org_id and m.user_id = p_user_id;
  if p_role is null then
    delete from long_term_memory.members m where m.org_id = p_org_id and m.user_id = p_user_id;
  elsif p_role is distinct from v_before then
    begin
      insert into long_term_memory.members (org_id, user_id, role) values (p_org_id, p_user_id, p_role)
      on conflict (org_id, user_id) do update set role = excluded.role;
    exception when foreign_key_violation then -- the service role may not look into auth.users itself
      get stacked diagnostics v_missing = constraint_name;
      if v_missing <> 'members_user_id_fkey' then
        raise;
      end if;
      raise sqlstate 'RL404' using
        message = format('There is no user %s.', p_user_id), hint = 'Give the id of a user of this project (auth.users).';
    end;
  end if;
  if p_role is distinct from v_before then
    insert into long_term_memory.audit_events (org_id, kind, payload)
    values (p_org_id, 'member_set', jsonb_build_object('user_id', p_user_id, 'role', p_role, 'role_before', v_before));
  end if;
  if v_before = 'owner' and not exists (
    select from long_term_memory.members m where m.org_id = p_org_id and m.role = 'owner') then
    v_hint := 'That was the last owner: nobody but the service role can erase in this organization now.';
  end if;

  -- answer
  return jsonb_build_object('org_id', p_org_id, 'user_id', p_user_id, 'role', p_role,
                            'changed', p_role is distinct from v_before, 'hint', v_hint);
end
$$;

comment on function public.set_member(uuid, uuid, text) is
  'Makes a user a member, admin or owner of an organization; a null role takes them out.';
