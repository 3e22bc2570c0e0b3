create or replace function public.get_workspace_settings(p_workspace_id text)
returns jsonb language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
begin
  perform ranked_ledger.check_workspace(p_workspace_id);
  return jsonb_build_object(
    'workspace_id', p_workspace_id,
    'text_config', coalesce((select s.text_config from ranked_ledger.workspace_settings s
                             where s.workspace_id = p_workspace_id), 'pg_catalog.english'),
    'similarity_ranges', coalesce((
      select jsonb_agg(jsonb_build_object(
               'embedding_model', r.embedding_model, 'floor', r.floor, 'ceiling', r.ceiling) order by r.embedding_model)
      from ranked_ledger.similarity_ranges r where r.workspace_id = p_workspace_id), '[]'));
end
$$;

comment on function public.get_workspace_settings(text) is
  'What a workspace chose, or the defaults: {workspace_id, text_config, similarity_ranges}.';
