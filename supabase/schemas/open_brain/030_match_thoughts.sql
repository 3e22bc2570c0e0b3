-- Vector search over thoughts. Ours only where the host has no function of that name.
do $do$
begin
  if exists (select from pg_catalog.pg_proc
             where pronamespace = 'public'::regnamespace and proname = 'match_thoughts') then
    return;
  end if;

  create function public.match_thoughts(
    query_embedding vector,
    match_threshold double precision default 0.7,
    match_count integer default 10,
    filter jsonb default '{}'::jsonb
  ) returns table (id uuid, content text, metadata jsonb, similarity double precision, created_at timestamptz)
  language sql stable
  set search_path = public, extensions, pg_temp
  as $fn$
    -- Ordered by the bare distance, which is the only form that an HNSW index answers. The threshold refuses NaN too
    -- (a zero vector): PostgreSQL sorts NaN above every number.
    select t.id, t.content, t.metadata, 1 - (t.embedding <=> query_embedding), t.created_at
    from public.thoughts t
    where t.embedding is not null
      and 1 - (t.embedding <=> query_embedding) between match_threshold and 1.000001
      and (filter is null or filter = '{}'::jsonb or t.metadata @> filter)
    order by t.embedding <=> query_embedding
    limit coalesce(match_count, 10)
  $fn$;

  comment on function public.match_thoughts(vector, double precision, integer, jsonb) is
    'The thoughts nearest to a vector, best first: those at or above the threshold whose metadata contain the filter.';
  revoke all on function public.match_thoughts(vector, double precision, integer, jsonb)
    from public, anon, authenticated, service_role;
  grant execute on function public.match_thoughts(vector, double precision, integer, jsonb) to service_role;
end
$do$;
