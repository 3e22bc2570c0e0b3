create or replace function ranked_ledger.check_batch(p_decisions jsonb)
returns void language plpgsql immutable
set search_path = public, extensions, pg_temp
as $$
begin
  if coalesce(jsonb_typeof(p_decisions), '') <> 'array' then
    raise sqlstate '22023' using
      message = 'p_decisions is not an array of decisions.',
      hint = 'Send [{"content": "..."}, ...], each with the arguments of record_decision without p_.';
  elsif jsonb_array_length(p_decisions) > 500 then
    raise sqlstate '22023' using
      message = format('p_decisions holds %s decisions, and a batch holds 500 at most.', jsonb_array_length(p_decisions)),
      hint = 'Send several batches.';
  elsif exists (select from jsonb_array_elements(p_decisions) d where jsonb_typeof(d.value) <> 'object') then
    raise sqlstate '22023' using
      message = 'An element of p_decisions is not an object.',
      hint = 'Send [{"content": "..."}, ...], each with the arguments of record_decision without p_.';
  end if;
end
$$;

comment on function ranked_ledger.check_batch(jsonb) is 'Refuses (22023) what is not an array of at most 500 objects.';

create or replace function public.record_decisions(
  p_workspace_id text, p_decisions jsonb, p_idempotency_key text default null)
returns jsonb language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_decision   jsonb;
  v_written    uuid[];
  v_memory_ids uuid[] := '{}';
begin
  -- guard
  perform ranked_ledger.check_recording_workspace(p_workspace_id);
  perform ranked_ledger.check_batch(p_decisions);
  v_written := ranked_ledger.claim_key(p_workspace_id, 'record_decisions', p_idempotency_key, p_decisions);
  if v_written is not null then
    return jsonb_build_object('decisions', ranked_ledger.decisions_json(p_workspace_id, v_written), 'replayed', true);
  end if;

  -- mutate; one block for the whole batch, so that an error can say which decision it means
  begin
    for v_decision in select d.value from jsonb_array_elements(p_decisions) with ordinality as d order by d.ordinality loop
      v_memory_ids := v_memory_ids
        || ranked_ledger.write_decision(p_workspace_id, ranked_ledger.without_nulls(v_decision));
    end loop;
  exception when sqlstate '22023' or sqlstate 'RL404' or sqlstate 'RL410' or sqlstate 'RL463' or sqlstate 'RL500' then
    declare
      v_detail text;
      v_hint   text;
    begin
      get stacked diagnostics v_detail = pg_exception_detail, v_hint = pg_exception_hint;
      raise exception using
        errcode = sqlstate,
        message = format('Decision %s of %s: %s', cardinality(v_memory_ids) + 1, jsonb_array_length(p_decisions), sqlerrm),
        detail = v_detail, hint = v_hint;
    end;
  end;

  -- answer
  perform ranked_ledger.settle_now();
  perform ranked_ledger.keep_result(p_workspace_id, 'record_decisions', p_idempotency_key, v_memory_ids);
  return jsonb_build_object('decisions', ranked_ledger.decisions_json(p_workspace_id, v_memory_ids), 'replayed', false);
end
$$;

comment on function public.record_decisions(text, jsonb, text) is
  'Records up to 500 decisions in order, all or none of them. An element has the argument names of record_decision without p_.';
