-- What people and agents wrote down, with its vector. A host's own table is left as it is, whatever its dimension.
do $do$
begin
  if to_regclass('public.thoughts') is not null then
    return;
  end if;

  create table public.thoughts (
    id uuid primary key default gen_random_uuid(),
    content text not null,
    embedding vector(1536),
    metadata jsonb default '{}'::jsonb,
    content_fingerprint text,
    created_at timestamptz default now(),
    updated_at timestamptz default now()
  );
  alter table public.thoughts enable row level security;
  revoke all on table public.thoughts from public, anon, authenticated, service_role;
  grant select, insert, update, delete on table public.thoughts to service_role;

  create policy thoughts_all_service_role on public.thoughts
    for all to service_role using (true) with check (true);
  comment on policy thoughts_all_service_role on public.thoughts is
    'Only the service role reads and writes thoughts.';

  create index thoughts_embedding_idx on public.thoughts using hnsw (embedding vector_cosine_ops);
  create index thoughts_metadata_idx on public.thoughts using gin (metadata);
  create index thoughts_created_at_idx on public.thoughts (created_at desc);
  create unique index thoughts_content_fingerprint_idx on public.thoughts (content_fingerprint)
    where content_fingerprint is not null;

  create trigger thoughts_set_updated_at before update on public.thoughts
    for each row execute function public.open_brain_set_updated_at();

  comment on table public.thoughts is 'Open Brain: one thought a row, with its text, its vector and free metadata.';
  comment on column public.thoughts.content_fingerprint is
    'Hex sha256 of the folded text, written by upsert_thought: the same text is stored once.';
end
$do$;
