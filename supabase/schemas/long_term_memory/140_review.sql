-- Reviews. A person's own token verifies; where the service names the reviewer, it is asserted, and never makes an instruction.

-- an index of what is left to do: small where reviews are kept up
create index if not exists agent_memories_pending_idx on long_term_memory.agent_memories (org_id, created_date, id)
  where redacted_at is null and author = 'model' and review_outcome is null;

create or replace function long_term_memory.check_review_page(p_limit int, p_after jsonb)
returns void language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
declare
  v_problem text := case
    when p_limit is null or p_limit not between 1 and 500 then 'p_limit is not a number from 1 to 500.'
    when p_after is not null and not coalesce(
           jsonb_typeof(p_after) = 'object' and jsonb_typeof(p_after -> 'created_at') = 'string'
           and p_after ->> 'created_at' ~ '^\d{4,6}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?[+-]\d\d(:\d\d)?$'
           and long_term_memory.uuid_of(p_after ->> 'memory_id') is not null, false)
      then 'p_after is not a cursor: it takes the "next" of the page before.'
  end;
begin
  if v_problem is null then
    begin
      perform (p_after ->> 'created_at')::timestamptz;
    exception when datetime_field_overflow or invalid_datetime_format then
      v_problem := 'p_after is not a cursor: it takes the "next" of the page before.';
    end;
  end if;
  if v_problem is not null then
    raise sqlstate '22023' using message = v_problem, hint = 'docs/memory-api.md describes pending_reviews.';
  end if;
end
$$;

comment on function long_term_memory.check_review_page(int, jsonb) is 'Refuses (22023) a limit or a cursor that cannot be meant.';

create or replace function long_term_memory.pending_reviews(p_org_id uuid, p_limit int default 50, p_after jsonb default null)
returns jsonb language plpgsql security definer
set search_path = public, extensions, pg_temp
set plan_cache_mode = force_custom_plan
as $$
declare
  v_caller long_term_memory.caller := long_term_memory.admit(p_org_id, '{admin,owner}');
  v_found  long_term_memory.agent_memories[];
  v_total  bigint;
begin
  -- guard
  if v_caller.kind = 'service' and not exists (
    select from long_term_memory.org_settings s where s.org_id = p_org_id and s.allow_asserted)
  then
    raise sqlstate '42501' using
      message = 'This organization does not allow that the service role reviews in a member''s name.',
      hint = 'Let an admin or owner review with a token of their own, or allow it: set_organization with p_allow_asserted.';
  end if;
  perform long_term_memory.check_review_page(p_limit, p_after);

  -- find: one row more than the page says whether there is a next one
  v_found := array(
    select m from long_term_memory.agent_memories m
    where m.org_id = p_org_id and m.redacted_at is null and m.author = 'model' and m.review_outcome is null
      and (m.expires_at is null or m.expires_at > now())
      and (p_after is null
           or (m.created_date, m.id) > ((p_after ->> 'created_at')::timestamptz, (p_after ->> 'memory_id')::uuid))
    order by m.created_date, m.id limit p_limit + 1);
  select count(*) into v_total from long_term_memory.agent_memories m
  where m.org_id = p_org_id and m.redacted_at is null and m.author = 'model' and m.review_outcome is null
    and (m.expires_at is null or m.expires_at > now());

  -- answer
  return jsonb_build_object(
    'memories', (select coalesce(jsonb_agg(long_term_memory.memory_json(f) order by f.created_date, f.id), '[]')
                 from unnest(v_found[:p_limit]) as f),
    'next', case when cardinality(v_found) > p_limit then jsonb_build_object(
      'created_at', v_found[p_limit].created_date, 'memory_id', v_found[p_limit].id) end,
    'pending', v_total);
end
$$;

comment on function long_term_memory.pending_reviews(uuid, int, jsonb) is
  'The inner half of public.pending_reviews, with the owner''s rights.';

create or replace function public.pending_reviews(p_org_id uuid, p_limit int default 50, p_after jsonb default null)
returns jsonb language sql
set search_path = public, extensions, pg_temp
as $$ select long_term_memory.pending_reviews(p_org_id, p_limit, p_after) $$;

comment on function public.pending_reviews(uuid, int, jsonb) is
  'A page of what models wrote and nobody has reviewed, oldest first: {"memories": [...], "next": cursor or null, "pending": how many in all}.';

create or replace function long_term_memory.check_review(
  p_caller long_term_memory.caller, p_outcome text, p_can_use_as_instruction boolean, p_reviewer text)
returns void language plpgsql immutable
set search_path = public, extensions, pg_temp
as $$
begin
  if p_outcome is null or p_outcome not in ('approved', 'evidence_only', 'rejected') then
    raise sqlstate '22023' using
      message = format('p_outcome is approved, evidence_only or rejected; it is %s.', coalesce(left(p_outcome, 100), 'null')),
      hint = 'evidence_only: it may be recalled, and is nothing to act on.';
  elsif p_caller.kind = 'user' and p_reviewer is not null then
    raise sqlstate '22023' using
      message = 'p_reviewer is for the service role; whose token it is, reviews.', hint = 'Leave p_reviewer out.';
  elsif p_caller.kind = 'service' and p_reviewer is null then
    raise sqlstate '22023' using
      message = 'On the service key a review needs p_reviewer.',
      hint = 'Name the admin or owner who reviewed, or let them review with a token of their own.';
  elsif p_can_use_as_instruction and p_outcome <> 'approved' then
    raise sqlstate '22023' using
      message = 'Only what is approved can be used as an instruction.', hint = 'Leave p_can_use_as_instruction out.';
  elsif p_can_use_as_instruction and p_caller.kind = 'service' then
    raise sqlstate '42501' using
      message = 'A review that the service role asserts cannot make a memory usable as an instruction.',
      hint = 'Let an admin or owner approve it with a token of their own.';
  end if;
end
$$;

comment on function long_term_memory.check_review(long_term_memory.caller, text, boolean, text) is
  'Refuses (22023, 42501) a review that cannot be meant, or that this caller cannot give.';

create or replace function long_term_memory.review_memory(
  p_org_id uuid, p_memory_id uuid, p_outcome text, p_can_use_as_instruction boolean default false,
  p_note text default null, p_reviewer text default null, p_text text default null)
returns jsonb language plpgsql security definer
set search_path = public, extensions, pg_temp
as $$
declare
  v_caller   long_term_memory.caller := long_term_memory.admit(p_org_id, '{admin,owner}');
  v_usable   boolean := coalesce(p_can_use_as_instruction, false);
  v_grade    text := case when v_caller.kind = 'user' then 'verified' else 'asserted' end;
  v_reviewer uuid := v_caller.user_id;
  v_memory   long_term_memory.agent_memories;
begin
  -- guard
  perform long_term_memory.check_review(v_caller, p_outcome, v_usable, p_reviewer), long_term_memory.check_note(p_note);
  if v_caller.kind = 'service' then
    v_reviewer := long_term_memory.asserted_member(p_org_id, p_reviewer, '{admin,owner}');
  end if;
  v_memory := long_term_memory.memory_to_change(p_org_id, p_memory_id);
  if p_text is distinct from v_memory.text and p_text is not null then
    raise sqlstate 'RL409' using
      message = 'The memory has other words than those that were read.', hint = 'Read it again, then review what it says now.';
  elsif v_grade = 'asserted' and v_memory.review_grade = 'verified' then
    raise sqlstate '42501' using
      message = 'This memory has a verified review, which an asserted one does not replace.',
      hint = 'Let an admin or owner review it with a token of their own.';
  elsif (v_memory.review_outcome, v_memory.review_grade, v_memory.can_use_as_instruction, v_memory.reviewed_by)
        = (p_outcome, v_grade, v_usable, v_reviewer)
  then
    return long_term_memory.memory_json(v_memory) || '{"changed": false}';
  end if;

  -- mutate
  update long_term_memory.agent_memories m
  set reviewed_at = now(), reviewed_by = v_reviewer, review_outcome = p_outcome, review_grade = v_grade,
      can_use_as_instruction = v_usable
  where m.id = p_memory_id and m.org_id = p_org_id
  returning m.* into v_memory;
  perform long_term_memory.note_event(p_org_id, p_memory_id, 'reviewed', v_caller,
                                      case when v_grade = 'asserted' then v_reviewer::text end, p_outcome, p_note);
  return long_term_memory.memory_json(v_memory) || '{"changed": true}';
end
$$;

comment on function long_term_memory.review_memory(uuid, uuid, text, boolean, text, text, text) is
  'The inner half of public.review_memory, with the owner''s rights.';

create or replace function public.review_memory(
  p_org_id uuid, p_memory_id uuid, p_outcome text, p_can_use_as_instruction boolean default false,
  p_note text default null, p_reviewer text default null, p_text text default null)
returns jsonb language sql
set search_path = public, extensions, pg_temp
as $$
  select long_term_memory.review_memory(
    p_org_id, p_memory_id, p_outcome, p_can_use_as_instruction, p_note, p_reviewer, p_text)
$$;

comment on function public.review_memory(uuid, uuid, text, boolean, text, text, text) is
  'Reviews a memory, as it was read where p_text says so: approved, evidence_only or rejected. Verified from an admin''s or owner''s token, asserted where the service names one. Answers the memory with changed.';
