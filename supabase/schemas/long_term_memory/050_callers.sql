-- Who calls, and what they are in an organization. The inner functions run with their owner's rights, so that the role of
-- the request is asked for, and not current_user.

-- A host with members of its own replaces this function; it is made only where it is absent.
do $do$
begin
  if to_regprocedure('long_term_memory.member_role(uuid,uuid)') is null then
    create function long_term_memory.member_role(p_org_id uuid, p_user_id uuid)
    returns text language sql stable
    set search_path = public, extensions, pg_temp
    as $fn$
      select m.role from long_term_memory.members m where m.org_id = p_org_id and m.user_id = p_user_id
    $fn$;
    comment on function long_term_memory.member_role(uuid, uuid) is
      'What a user is in an organization: member, admin, owner, or null. The one place that knows membership; a host with its own members replaces it.';
  end if;
  if to_regtype('long_term_memory.caller') is null then
    create type long_term_memory.caller as (kind text, user_id uuid, role text);
    comment on type long_term_memory.caller is 'Who calls: the service or a user, the user''s id, and their role in the organization.';
  end if;
end
$do$;

create or replace function long_term_memory.uuid_of(p_text text)
returns uuid language sql immutable parallel safe
return case when p_text ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then p_text::uuid end;

comment on function long_term_memory.uuid_of(text) is 'A uuid as it is written, null where the text is none.';

create or replace function long_term_memory.request_role()
returns name language sql stable
set search_path = public, extensions, pg_temp
as $$
  select coalesce(nullif(current_setting('role', true), 'none'), session_user)::name
$$;

comment on function long_term_memory.request_role() is
  'The role of the request, also inside a function that runs with its owner''s rights.';

-- A subject of a token that is no uuid (a third party's) is nobody's id here.
create or replace function long_term_memory.request_user()
returns uuid language sql stable
set search_path = public, extensions, pg_temp
as $$
  select long_term_memory.uuid_of(s.sub)
  from (select coalesce(nullif(current_setting('request.jwt.claim.sub', true), ''),
                        nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'sub') as sub) as s
$$;

comment on function long_term_memory.request_user() is 'The user whom the request''s token names; null where it names none.';

create or replace function long_term_memory.calling(p_org_id uuid)
returns long_term_memory.caller language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
declare
  v_caller long_term_memory.caller;
begin
  -- whoever has the service role's rights is the service; a role of the host's own that only has authenticated's is a user
  if pg_has_role(long_term_memory.request_role(), 'service_role', 'USAGE') then
    v_caller.kind := 'service';
    return v_caller;
  end if;
  v_caller.kind := 'user';
  v_caller.user_id := long_term_memory.request_user();
  v_caller.role := case when v_caller.user_id is not null then long_term_memory.member_role(p_org_id, v_caller.user_id) end;
  return v_caller;
end
$$;

comment on function long_term_memory.calling(uuid) is 'Who calls, and their role in this organization.';

create or replace function long_term_memory.referred_to(p_column text)
returns regclass language sql stable
set search_path = public, extensions, pg_temp
as $$
  select k.confrelid::regclass
  from pg_constraint k
  join pg_attribute a on a.attrelid = k.conrelid and a.attname = p_column and k.conkey = array[a.attnum]
  where k.conrelid = 'long_term_memory.agent_memories'::regclass and k.contype = 'f'
$$;

comment on function long_term_memory.referred_to(text) is
  'The table that this column of a memory refers to: the host''s, or ours where it has none.';

-- The functions for the service run with its rights, and a host need not have given it any on its own tables.
create or replace function long_term_memory.check_readable(p_table regclass)
returns void language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
begin
  if not has_table_privilege(p_table, 'SELECT') then
    raise sqlstate '42501' using
      message = format('%I may not read %s.', current_user, p_table),
      hint = format('Let its owner run: grant select on %s to %I', p_table, current_user);
  end if;
end
$$;

comment on function long_term_memory.check_readable(regclass) is 'Refuses (42501) where the caller may not read a table, and says who can change that.';

create or replace function long_term_memory.require_org(p_org_id uuid)
returns void language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
begin
  if p_org_id is null then
    raise sqlstate '22023' using message = 'p_org_id is missing.', hint = 'Name the organization that the call is about.';
  end if;
  perform long_term_memory.check_readable(long_term_memory.referred_to('org_id'));
  if not long_term_memory.org_exists(p_org_id) then
    raise sqlstate 'RL404' using
      message = format('There is no organization %s.', p_org_id),
      hint = 'Check the id; set_organization creates one where the project has no table of its own.';
  end if;
end
$$;

comment on function long_term_memory.require_org(uuid) is
  'Refuses none at all (22023), an organization that is not there (RL404), or that the service role may not look for (42501).';

create or replace function long_term_memory.admit(p_org_id uuid, p_roles text[], p_about_self boolean default null)
returns long_term_memory.caller language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
declare
  v_caller long_term_memory.caller := long_term_memory.calling(p_org_id);
begin
  if p_org_id is null or v_caller.kind = 'service' then
    perform long_term_memory.require_org(p_org_id);
  elsif v_caller.user_id is null or not (coalesce(v_caller.role = any (p_roles), false) or coalesce(p_about_self, false)) then
    -- in the same words whether the organization exists or not
    raise sqlstate '42501' using
      message = 'You may not do this in this organization.',
      hint = format('It takes the role %s in the organization%s.', array_to_string(p_roles, ' or '),
                    case when p_about_self is not null then ', or to be the person that it is about' else '' end);
  end if;
  return v_caller;
end
$$;

comment on function long_term_memory.admit(uuid, text[], boolean) is
  'Lets the service in, members with one of these roles, and the person themself where p_about_self says that it is them; refuses everybody else alike (42501).';

create or replace function long_term_memory.is_caller(p_subject_type text, p_subject_id uuid)
returns boolean language sql stable
set search_path = public, extensions, pg_temp
as $$
  select coalesce(p_subject_type = 'user' and p_subject_id = long_term_memory.request_user(), false)
$$;

comment on function long_term_memory.is_caller(text, uuid) is 'Whether the subject is the user who calls.';

-- The service role names a member. It cannot show that the member acted, so an organization has to allow it.
create or replace function long_term_memory.asserted_member(p_org_id uuid, p_person text, p_roles text[])
returns uuid language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
declare
  v_person uuid := long_term_memory.uuid_of(p_person);
begin
  if not exists (select from long_term_memory.org_settings s where s.org_id = p_org_id and s.allow_asserted) then
    raise sqlstate '42501' using
      message = 'This organization does not allow that a member is named by the service role.',
      hint = 'Let the person act with a token of their own, or allow it: set_organization with p_allow_asserted.';
  end if;
  if v_person is null or not coalesce(long_term_memory.member_role(p_org_id, v_person) = any (p_roles), false) then
    raise sqlstate 'RL404' using
      message = format('%s is no %s of this organization.', coalesce(left(p_person, 200), 'Nobody'), array_to_string(p_roles, ' or ')),
      hint = 'Name a member by their user id.';
  end if;
  return v_person;
end
$$;

comment on function long_term_memory.asserted_member(uuid, text, text[]) is
  'The member whom the service role names. 42501 where the organization does not allow it, RL404 where they have none of these roles.';
