create or replace function public.set_similarity_range(
  p_workspace_id text, p_embedding_model text, p_floor float8 default null, p_ceiling float8 default null)
returns jsonb language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_problem text := case
    when p_embedding_model is null or p_embedding_model !~ '\S' then 'p_embedding_model is blank.'
    when octet_length(p_embedding_model) > 1000 then 'p_embedding_model is longer than 1000 bytes.'
    when (p_floor is null) <> (p_ceiling is null) then 'p_floor and p_ceiling are given together or not at all.'
    when not (p_floor >= -1 and p_ceiling <= 1 and p_floor < p_ceiling) -- NaN is greater than 1
      then 'p_floor and p_ceiling are cosines from -1 to 1, the floor below the ceiling.'
  end;
  v_changed boolean;
begin
  -- guard
  perform ranked_ledger.check_recording_workspace(p_workspace_id);
  if v_problem is not null then
    raise sqlstate '22023' using
      message = v_problem,
      hint = 'Name the model as the decisions do (embedding_model), and the cosines that count as 0 and as 1.';
  end if;

  -- mutate
  if p_floor is null then
    delete from ranked_ledger.similarity_ranges r
    where r.workspace_id = p_workspace_id and r.embedding_model = p_embedding_model;
  else
    insert into ranked_ledger.similarity_ranges as r (workspace_id, embedding_model, floor, ceiling)
    values (p_workspace_id, p_embedding_model, p_floor, p_ceiling)
    on conflict (workspace_id, embedding_model) do update set floor = excluded.floor, ceiling = excluded.ceiling
    where (r.floor, r.ceiling) <> (excluded.floor, excluded.ceiling);
  end if;
  v_changed := found;
  return get_workspace_settings(p_workspace_id) || jsonb_build_object('changed', v_changed);
end
$$;

comment on function public.set_similarity_range(text, text, float8, float8) is
  'Which cosines of an embedding model count as 0 (floor and below) and as 1 (ceiling and above) in a workspace; without both the range is taken back.';
