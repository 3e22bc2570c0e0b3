-- One memory a row. org_id and source_run_id refer to the host's tables or to ours (040).
create table if not exists long_term_memory.agent_memories (
  id                     uuid primary key default gen_random_uuid(),
  org_id                 uuid not null,
  subject_type           text not null,
  subject_id             uuid,
  workspace_id           text,
  text                   text not null,
  author                 text not null default 'model',
  source_run_id          text,
  written_by             uuid references auth.users (id) on delete set null,
  asserted_by            text,
  reviewed_at            timestamptz,
  reviewed_by            uuid references auth.users (id) on delete set null,
  review_outcome         text,
  review_grade           text,
  can_use_as_instruction boolean not null default false,
  embedding              vector,
  embedding_model        text not null default '',
  created_date           timestamptz not null default now(),
  updated_at             timestamptz not null default now(),
  expires_at             timestamptz,
  redacted_at            timestamptz,
  embedding_dims         int generated always as (vector_dims(embedding)) stored,
  search_lexemes         tsvector generated always as (to_tsvector('pg_catalog.english', text)) stored,
  constraint agent_memories_subject_type_is_known check (subject_type in ('workspace', 'candidate', 'user')),
  constraint agent_memories_subject_is_named check (
    subject_type = 'workspace' or (subject_id is not null and workspace_id is null)),
  constraint agent_memories_author_is_known check (author in ('model', 'person')),
  constraint agent_memories_live_text_is_not_blank check (redacted_at is not null or text ~ '\S'),
  constraint agent_memories_redacted_has_no_words check (
    redacted_at is null or (text = '' and embedding is null and embedding_model = '' and asserted_by is null
                            and source_run_id is null and not can_use_as_instruction)),
  constraint agent_memories_review_is_whole check (
    (review_outcome is null) = (reviewed_at is null) and (review_outcome is null) = (review_grade is null)),
  constraint agent_memories_review_outcome_is_known check (review_outcome in ('approved', 'evidence_only', 'rejected')),
  constraint agent_memories_review_grade_is_known check (review_grade in ('verified', 'asserted')),
  constraint agent_memories_instruction_needs_a_verified_approval check (
    not can_use_as_instruction or coalesce(review_outcome = 'approved' and review_grade = 'verified', false))
) with (toast_tuple_target = 8160);

-- inline as long as it fits a page: from a toast table the same scan takes eight times as long
alter table long_term_memory.agent_memories alter column embedding set storage external;
alter table long_term_memory.agent_memories enable row level security;

create index if not exists agent_memories_org_newest_idx
  on long_term_memory.agent_memories (org_id, created_date desc, id) where redacted_at is null;
create index if not exists agent_memories_subject_idx on long_term_memory.agent_memories (org_id, subject_type, subject_id);
create index if not exists agent_memories_expiry_idx on long_term_memory.agent_memories (expires_at)
  where redacted_at is null and expires_at is not null;
-- what a run or a person leaves behind is set null, row by row
create index if not exists agent_memories_run_idx on long_term_memory.agent_memories (source_run_id)
  where source_run_id is not null;
create index if not exists agent_memories_writer_idx on long_term_memory.agent_memories (written_by) where written_by is not null;
create index if not exists agent_memories_reviewer_idx on long_term_memory.agent_memories (reviewed_by)
  where reviewed_by is not null;

comment on table long_term_memory.agent_memories is
  'What an agent remembers of a workspace, a candidate or a user, with who wrote it, who reviewed it and until when it holds. Every read and write carries the org.';
comment on column long_term_memory.agent_memories.text is 'The words that it will be read back in; empty once it is erased.';
comment on column long_term_memory.agent_memories.author is 'model or person. What a model wrote is not recalled before a person has reviewed it.';
comment on column long_term_memory.agent_memories.written_by is 'Verified: the user whose token wrote it.';
comment on column long_term_memory.agent_memories.asserted_by is 'Asserted: the member whom the service role named as its writer.';
comment on column long_term_memory.agent_memories.review_grade is
  'verified: from the reviewer''s own token. asserted: the service role named the reviewer.';
comment on column long_term_memory.agent_memories.embedding_model is 'The model of the vector: vectors of two models are never compared. Empty: unknown, compared with none.';
comment on column long_term_memory.agent_memories.redacted_at is 'When it was erased or forgotten: a tombstone, without words.';

-- The rules of writing, for every door: an RPC and a plain INSERT hear the same.
create or replace function long_term_memory.check_memory()
returns trigger language plpgsql security definer
set search_path = public, extensions, pg_temp
as $$
begin
  if tg_op = 'UPDATE' and old.redacted_at is not null then
    new.redacted_at := old.redacted_at; -- nothing brings a tombstone back
  end if;
  if new.redacted_at is not null then
    new.text := '';
    new.embedding := null;
    new.embedding_model := '';
    new.asserted_by := null;
    new.source_run_id := null;
    new.can_use_as_instruction := false;
    return new;
  end if;
  if new.text is null or new.text !~ '\S' then
    raise sqlstate 'RL471' using message = 'The text of a memory is blank.', hint = 'Say what is to be remembered.';
  elsif octet_length(new.text) > 65536 and (tg_op = 'INSERT' or new.text is distinct from old.text)
        and current_setting('long_term_memory.cleaning', true) is distinct from 'on' then -- a mark may be longer than what it was
    raise sqlstate '22023' using
      message = 'The text of a memory is longer than 65,536 bytes.', hint = 'Remember less, or in several memories.';
  end if;
  perform long_term_memory.check_subject(new.subject_type, new.subject_id);
  if new.subject_type <> 'workspace' and new.workspace_id is not null then
    raise sqlstate '22023' using
      message = 'workspace_id is for memories of a workspace.', hint = 'Leave it out, or use subject_type workspace.';
  elsif new.author is null or new.author not in ('model', 'person') then
    raise sqlstate 'RL473' using
      message = format('The author %s is unknown.', coalesce(left(new.author, 100), 'null')), hint = 'It is model or person.';
  elsif new.expires_at <= now() and (tg_op = 'INSERT' or new.expires_at is distinct from old.expires_at) then
    raise sqlstate 'RL475' using
      message = format('The expiry %s is in the past.', new.expires_at),
      hint = 'Give a time to come, or none; what is to go now is forgotten with forget_memory.';
  end if;
  if not isfinite(new.created_date) then
    raise sqlstate '22023' using message = 'created_date is no moment in time.', hint = 'Leave it out for now.';
  elsif new.expires_at = 'infinity' then
    new.expires_at := null; -- readers of JSON know no infinity
  end if;
  if tg_op = 'UPDATE' then
    new.updated_at := now();
  end if;
  return new;
end
$$;

comment on function long_term_memory.check_memory() is
  'Refuses blank text (RL471), an unknown subject type (RL472) or author (RL473), a personal memory without a subject (RL474), an expiry in the past (RL475). Empties what is erased.';

create or replace trigger agent_memories_check
  before insert or update on long_term_memory.agent_memories
  for each row execute function long_term_memory.check_memory();

-- What hangs on a memory and holds its words goes with them, whoever erases it.
create or replace function long_term_memory.follow_redaction()
returns trigger language plpgsql security definer
set search_path = public, extensions, pg_temp
as $$
begin
  update long_term_memory.memory_events e set text_before = null, note = null
  where e.memory_id = new.id and e.org_id = new.org_id;
  update long_term_memory.idempotency_keys k set digest = '' -- it would tell a guess at the words
  where k.memory_id = new.id and k.org_id = new.org_id;
  return null;
end
$$;

comment on function long_term_memory.follow_redaction() is 'Takes the words of an erased memory out of its history and its idempotency key.';

create or replace trigger agent_memories_follow_redaction
  after update on long_term_memory.agent_memories
  for each row when (old.redacted_at is null and new.redacted_at is not null)
  execute function long_term_memory.follow_redaction();

-- A plain DELETE leaves a tombstone of that row. Only two things really delete: the organization, which is gone already
-- when its cascade arrives here, and the sweep of what has expired, which says so.
create or replace function long_term_memory.keep_tombstone()
returns trigger language plpgsql security definer
set search_path = public, extensions, pg_temp
as $$
begin
  if current_setting('long_term_memory.sweep', true) = 'on' or not long_term_memory.org_exists(old.org_id) then
    return old;
  end if;
  if old.redacted_at is null then
    update long_term_memory.agent_memories m set redacted_at = now() where m.id = old.id and m.org_id = old.org_id;
    insert into long_term_memory.memory_events (org_id, memory_id, action) values (old.org_id, old.id, 'forgotten');
  end if;
  return null;
end
$$;

comment on function long_term_memory.keep_tombstone() is
  'A plain DELETE of a memory becomes its tombstone; a cascade from the organization and the expiry sweep really delete.';

create or replace trigger agent_memories_keep_tombstone
  before delete on long_term_memory.agent_memories
  for each row execute function long_term_memory.keep_tombstone();
