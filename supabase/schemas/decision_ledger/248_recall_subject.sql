-- A question may be about somebody. Who asks says so, so that the trace is found when that person asks what is held about
-- them, or has it erased: nothing in the words tells it.

create or replace function ranked_ledger.recall_subject(p_subject jsonb, p_trace_by_host boolean)
returns jsonb language plpgsql immutable
set search_path = public, extensions, pg_temp
as $$
begin
  if coalesce(jsonb_typeof(p_subject), 'null') = 'null' then
    return '{}';
  elsif p_trace_by_host then
    raise sqlstate '22023' using
      message = 'p_subject was given with p_trace_by_host: there is no trace of ours that could be tied to the subject.',
      hint = 'Leave one of the two out.';
  elsif not (case when jsonb_typeof(p_subject) = 'object'
                  then p_subject - array['type', 'id'] = '{}'
                       and coalesce(p_subject ->> 'type' in ('workspace', 'candidate', 'user'), false)
                       and coalesce(p_subject ->> 'id' ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$', false)
                  else false end) then
    raise sqlstate '22023' using
      message = 'p_subject is not {"type", "id"}, a type of workspace, candidate or user and the id of one.',
      hint = 'Send {"type": "candidate", "id": "<uuid>"}, or leave it out.';
  end if;
  return jsonb_build_object('subject', jsonb_build_object('type', p_subject ->> 'type', 'id', (p_subject ->> 'id')::uuid));
end
$$;

comment on function ranked_ledger.recall_subject(jsonb, boolean) is
  'Whom a recall is about, as its arguments and its trace keep it: {"subject": {"type", "id"}}, {} where nobody was named. Refuses (22023) what names nobody.';

create or replace function ranked_ledger.tie_trace(p_trace_id uuid, p_workspace_id text, p_subject jsonb)
returns void language plpgsql
set search_path = public, extensions, pg_temp
as $$
begin
  -- without the long-term memory the trace's payload alone says it, and mapping the workspace later reads it there
  if p_subject is not null and to_regprocedure('long_term_memory.tie_trace(uuid,text,text,uuid)') is not null then
    perform long_term_memory.tie_trace(p_trace_id, p_workspace_id, p_subject ->> 'type', (p_subject ->> 'id')::uuid);
  end if;
end
$$;

comment on function ranked_ledger.tie_trace(uuid, text, jsonb) is
  'Ties a trace to whom it was said to be about, where the long-term memory is installed.';
