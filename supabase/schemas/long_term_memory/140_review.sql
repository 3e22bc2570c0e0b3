-- What a model wrote waits for a person.

create or replace function long_term_memory.pending_reviews(p_org_id uuid, p_limit int default 50, p_after jsonb default null)
returns jsonb language plpgsql security definer
set search_path = public, extensions, pg_temp
as $$
declare
  v_caller   long_term_memory.caller := long_term_memory.admit(p_org_id, '{admin,owner}');
  v_limit    int := coalesce(p_limit, 50);
  v_after_at timestamptz;
  v_after_id uuid;
  v_found    long_term_memory.agent_memories[];
begin
  perform long_term_memory.check_service_reviews(p_org_id, v_caller);
  if v_limit not between 1 and 500 then
    raise sqlstate '22023' using message = 'p_limit is a number from 1 to 500.', hint = 'Ask for the next page with p_after.';
  end if;
  begin
    v_after_at := (p_after ->> 'created_at')::timestamptz;
    v_after_id := (p_after ->> 'memory_id')::uuid;
  exception when data_exception then
    v_after_id := null;
  end;
  if p_after is not null and (v_after_at is null or v_after_id is null) then
    raise sqlstate '22023' using message = 'p_after is no cursor.', hint = 'Send the next of the page before, unchanged.';
  end if;
  v_found := array(
    select m from long_term_memory.agent_memories m
    where m.org_id = p_org_id and m.redacted_at is null and (m.expires_at is null or m.expires_at > now())
      and m.author = 'model' and m.review_outcome is null
      and (v_after_id is null or (m.created_date, m.id) > (v_after_at, v_after_id))
    order by m.created_date, m.id limit v_limit + 1);
  return jsonb_build_object(
    'memories', (select coalesce(jsonb_agg(long_term_memory.memory_json(f) order by f.created_date, f.id), '[]')
                 from unnest(v_found[:v_limit]) as f),
    'next', case when cardinality(v_found) > v_limit then jsonb_build_object(
      'created_at', v_found[v_limit].created_date, 'memory_id', v_found[v_limit].id) end,
    'pending', (select count(*) from long_term_memory.agent_memories m
                where m.org_id = p_org_id and m.redacted_at is null and (m.expires_at is null or m.expires_at > now())
                  and m.author = 'model' and m.review_outcome is null));
end
$$;

comment on function long_term_memory.pending_reviews(uuid, int, jsonb) is 'Behind public.pending_reviews.';

-- The service role cannot review, but where an organization allows it to name who did it may see what there is to review.
create or replace function long_term_memory.check_service_reviews(p_org_id uuid, p_caller long_term_memory.caller)
returns void language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
begin
  if (p_caller).kind = 'service'
     and not exists (select from long_term_memory.org_settings s where s.org_id = p_org_id and s.allow_asserted) then
    raise sqlstate '42501' using
      message = 'The service role reviews nothing in this organization.',
      hint = 'Use the token of an admin or owner, or allow it to name a reviewer with set_organization(p_allow_asserted => true).';
  end if;
end
$$;

comment on function long_term_memory.check_service_reviews(uuid, long_term_memory.caller) is
  'Refuses (42501) the service role where the organization does not allow asserted reviews.';

create or replace function long_term_memory.review_grade_of(
  p_org_id uuid, p_caller long_term_memory.caller, p_reviewer text, p_before long_term_memory.agent_memories, p_instruction boolean,
  out grade text, out reviewer uuid)
language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
begin
  if (p_caller).kind = 'user' then
    if p_reviewer is not null then
      raise sqlstate '22023' using
        message = 'p_reviewer is for the service role: a person reviews under the name of their token.', hint = 'Leave it out.';
    end if;
    grade := 'verified';
    reviewer := (p_caller).user_id;
    return;
  end if;
  grade := 'asserted';
  reviewer := long_term_memory.asserted_member(p_org_id, p_reviewer, '{admin,owner}');
  if p_instruction then
    raise sqlstate '42501' using
      message = 'An asserted review never makes a memory usable as an instruction.',
      hint = 'Let an admin or owner approve it with a token of their own.';
  elsif (p_before).review_grade = 'verified' then
    raise sqlstate '42501' using
      message = 'An asserted review does not replace a verified one.',
      hint = 'Let an admin or owner review it again with a token of their own.';
  end if;
end
$$;

comment on function long_term_memory.review_grade_of(uuid, long_term_memory.caller, text, long_term_memory.agent_memories, boolean) is
  'In which grade the caller reviews, and as whom. Refuses (42501) what an asserted review may not do.';

create or replace function long_term_memory.review_memory(
  p_org_id uuid, p_memory_id uuid, p_outcome text, p_can_use_as_instruction boolean default false, p_note text default null,
  p_reviewer text default null)
returns jsonb language plpgsql security definer
set search_path = public, extensions, pg_temp
as $$
declare
  v_caller      long_term_memory.caller := long_term_memory.admit(p_org_id, '{admin,owner}');
  v_instruction boolean := coalesce(p_can_use_as_instruction, false);
  v_before      long_term_memory.agent_memories;
  v_memory      long_term_memory.agent_memories;
  v_by          record;
begin
  -- guard
  perform long_term_memory.check_service_reviews(p_org_id, v_caller), long_term_memory.check_note(p_note);
  if p_outcome is null or p_outcome not in ('approved', 'evidence_only', 'rejected') then
    raise sqlstate '22023' using
      message = 'p_outcome is approved, evidence_only or rejected.', hint = 'evidence_only: it may be recalled, and instructs nobody.';
  elsif v_instruction and p_outcome <> 'approved' then
    raise sqlstate '22023' using
      message = 'Only an approved memory can be used as an instruction.', hint = 'Approve it, or leave p_can_use_as_instruction out.';
  end if;
  perform long_term_memory.share_subject(p_org_id, m.subject_type, m.subject_id)
  from long_term_memory.agent_memories m where m.org_id = p_org_id and m.id = p_memory_id;
  v_before := long_term_memory.live_memory(p_org_id, p_memory_id);
  v_by := long_term_memory.review_grade_of(p_org_id, v_caller, p_reviewer, v_before, v_instruction);
  if (v_before.review_outcome, v_before.review_grade, v_before.reviewed_by, v_before.can_use_as_instruction)
     is not distinct from (p_outcome, v_by.grade, v_by.reviewer, v_instruction) then
    return long_term_memory.memory_json(v_before) || '{"changed": false}';
  end if;

  -- mutate
  update long_term_memory.agent_memories m
  set reviewed_at = now(), reviewed_by = v_by.reviewer, review_outcome = p_outcome, review_grade = v_by.grade,
      can_use_as_instruction = v_instruction
  where m.org_id = p_org_id and m.id = p_memory_id
  returning * into v_memory;
  perform long_term_memory.note_event(p_org_id, p_memory_id, 'reviewed', v_caller,
    case when v_by.grade = 'asserted' then v_by.reviewer::text end, p_outcome, p_note);
  return long_term_memory.memory_json(v_memory) || '{"changed": true}';
end
$$;

comment on function long_term_memory.review_memory(uuid, uuid, text, boolean, text, text) is 'Behind public.review_memory.';

create or replace function public.pending_reviews(p_org_id uuid, p_limit int default 50, p_after jsonb default null)
returns jsonb language sql
set search_path = public, extensions, pg_temp
as $$
  select long_term_memory.pending_reviews(p_org_id, p_limit, p_after)
$$;

comment on function public.pending_reviews(uuid, int, jsonb) is
  'What models wrote and nobody has reviewed yet, oldest first, a page at a time. For admins and owners; for the service role where asserted reviews are allowed.';

create or replace function public.review_memory(
  p_org_id uuid, p_memory_id uuid, p_outcome text, p_can_use_as_instruction boolean default false, p_note text default null,
  p_reviewer text default null)
returns jsonb language sql
set search_path = public, extensions, pg_temp
as $$
  select long_term_memory.review_memory(p_org_id, p_memory_id, p_outcome, p_can_use_as_instruction, p_note, p_reviewer)
$$;

comment on function public.review_memory(uuid, uuid, text, boolean, text, text) is
  'Approves a memory, keeps it as evidence only, or rejects it: verified by the token of an admin or owner, or asserted by the service role, which names one. Only a verified approval can make it usable as an instruction.';
