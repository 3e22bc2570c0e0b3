-- The fields of a decision to be written, those of record_decision without p_. One sentence names the first one that is
-- wrong; null: none is.

create or replace function ranked_ledger.text_problem(p_decision jsonb)
returns text language plpgsql immutable
set search_path = public, extensions, pg_temp
as $$
declare
  v_wrong text;
begin
  select case
      when jsonb_typeof(f.value) <> 'string' then format('%s is not a text.', f.key)
      when octet_length(f.value #>> '{}') > t.most then format('%s is longer than %s bytes.', f.key, t.most)
      else format('%s is blank.', f.key) end
  into v_wrong
  -- an id of 1,000 bytes leaves room in the host's B-tree entries, which end at 2,704
  from (values ('content', 262144, false), ('summary', 2000, false), ('rationale', 262144, true),
               ('project_id', 1000, true), ('task_id', 1000, true), ('flow_id', 1000, true),
               ('embedding_model', 1000, false), ('runtime_name', 1000, true),
               ('visibility', 1000, false), ('created_by', 1000, false)) as t (name, most, may_be_blank)
  join jsonb_each(p_decision) as f on f.key = t.name
  where jsonb_typeof(f.value) <> 'string' or octet_length(f.value #>> '{}') > t.most
     or (not t.may_be_blank and f.value #>> '{}' !~ '\S')
  order by f.key limit 1;
  return v_wrong;
end
$$;

comment on function ranked_ledger.text_problem(jsonb) is 'Of the text fields of a decision, what is wrong with the first wrong one.';

create or replace function ranked_ledger.array_problem(p_decision jsonb)
returns text language plpgsql immutable
set search_path = public, extensions, pg_temp
as $$
declare
  v_others  jsonb := coalesce(p_decision -> 'alternatives', '[]');
  v_grounds jsonb := coalesce(p_decision -> 'depends_on', '[]');
begin
  return case
    when jsonb_typeof(v_others) <> 'array' or jsonb_array_length(v_others) > 20 or exists (
           select from jsonb_array_elements(v_others) a
           where jsonb_typeof(a.value) <> 'string' or a.value #>> '{}' !~ '\S')
      then 'alternatives is not an array of at most 20 texts that are not blank.'
    when octet_length(v_others::text) > 262144 then 'alternatives is longer than 262144 bytes.'
    when jsonb_typeof(v_grounds) <> 'array' or jsonb_array_length(v_grounds) > 100 or exists (
           select from jsonb_array_elements(v_grounds) d
           where jsonb_typeof(d.value) <> 'string'
              or d.value #>> '{}' !~* '^[0-9a-f]{8}(-?[0-9a-f]{4}){3}-?[0-9a-f]{12}$')
      then 'depends_on is not an array of at most 100 memory ids.'
  end;
end
$$;

comment on function ranked_ledger.array_problem(jsonb) is 'Of alternatives and depends_on, what is wrong with the first wrong one.';

create or replace function ranked_ledger.decision_problem(p_decision jsonb)
returns text language plpgsql immutable
set search_path = public, extensions, pg_temp
as $$
declare
  v_known constant text[] := array[
    'content', 'summary', 'rationale', 'alternatives', 'importance', 'step_index', 'project_id', 'task_id', 'flow_id',
    'depends_on', 'embedding', 'embedding_model', 'pinned', 'visibility', 'created_by', 'runtime_name', 'metadata'];
  v_unknown    text;
  v_importance jsonb := p_decision -> 'importance';
  v_step       jsonb := p_decision -> 'step_index';
begin
  select string_agg(left(k.name, 100), ', ' order by k.name) into v_unknown
  from (select k.name from jsonb_object_keys(p_decision) as k (name) where k.name <> all (v_known) limit 20) as k;

  return case
    when v_unknown is not null then format('A decision has no field named %s.', v_unknown)
    when p_decision -> 'content' is null then 'content is missing.'
    when ranked_ledger.text_problem(p_decision) is not null then ranked_ledger.text_problem(p_decision)
    when ranked_ledger.array_problem(p_decision) is not null then ranked_ledger.array_problem(p_decision)
    when v_importance is not null and not case when jsonb_typeof(v_importance) = 'number'
           then (v_importance #>> '{}')::numeric between 0 and 1 else false end
      then 'importance is not a number from 0 to 1.'
    when v_step is not null and not case when jsonb_typeof(v_step) = 'number'
           then (v_step #>> '{}')::numeric between 0 and ranked_ledger.max_step()
                and (v_step #>> '{}')::numeric = trunc((v_step #>> '{}')::numeric) else false end
      then 'step_index is not a whole number from 0 to 1000000000.'
    when jsonb_typeof(p_decision -> 'embedding') not in ('string', 'array')
      then 'embedding is not a text of numbers like [0.1,0.2].'
    when p_decision -> 'embedding' is null and p_decision -> 'embedding_model' is not null
      then 'embedding_model is the model of an embedding, and no embedding is given.'
    when jsonb_typeof(p_decision -> 'pinned') <> 'boolean' then 'pinned is not true or false.'
    when jsonb_typeof(p_decision -> 'metadata') <> 'object' then 'metadata is not an object.'
    when ranked_ledger.is_too_deep(p_decision -> 'metadata') then 'metadata is nested 100 levels deep or more.'
    when octet_length((p_decision -> 'metadata')::text) > 262144 then 'metadata is longer than 262144 bytes.'
    when p_decision ->> 'visibility' not in ('personal', 'channel', 'project', 'workspace', 'organization')
      then 'visibility is not one of personal, channel, project, workspace, organization.'
    when p_decision ->> 'created_by' not in ('user', 'agent', 'system', 'import')
      then 'created_by is not one of user, agent, system, import.'
  end;
end
$$;

comment on function ranked_ledger.decision_problem(jsonb) is
  'What is wrong with the fields of a decision (nulls removed), as a sentence that names the field; null: nothing.';
