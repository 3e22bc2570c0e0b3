-- Around the memories: who belongs to an organization, what became of a memory, who read it, whom a decision is about, what
-- was erased. None of them holds words but memory_events (a correction's former text, notes) and recalls (the question).

create table if not exists long_term_memory.members (
  org_id  uuid not null,
  user_id uuid not null references auth.users (id) on delete cascade,
  role    text not null constraint members_role_is_known check (role in ('member', 'admin', 'owner')),
  primary key (org_id, user_id)
);
create index if not exists members_user_idx on long_term_memory.members (user_id);
comment on table long_term_memory.members is 'Who belongs to an organization, and as what. Asked through member_role alone.';

create table if not exists long_term_memory.org_settings (
  org_id         uuid primary key,
  allow_asserted boolean not null default false
);
comment on table long_term_memory.org_settings is
  'allow_asserted: whether the service role may name a member as the writer or reviewer of a memory. No row: no.';

create table if not exists long_term_memory.workspace_orgs (
  workspace_id text primary key,
  org_id       uuid not null,
  mapped_at    timestamptz not null default now()
);
create index if not exists workspace_orgs_org_idx on long_term_memory.workspace_orgs (org_id);
comment on table long_term_memory.workspace_orgs is
  'Which organization a workspace of the ledger belongs to. Nothing of the ledger is read or erased through an organization that its workspace is not mapped to.';

create table if not exists long_term_memory.memory_events (
  id          bigint primary key generated always as identity,
  org_id      uuid not null,
  memory_id   uuid not null references long_term_memory.agent_memories (id) on delete cascade,
  action      text not null constraint memory_events_action_is_known
              check (action in ('remembered', 'corrected', 'reviewed', 'forgotten', 'erased', 'redacted', 'adopted')),
  outcome     text,
  grade       text,
  actor_id    uuid,
  asserted_by text,
  note        text,
  text_before text,
  writer_before uuid,
  at          timestamptz not null default now()
);
-- the organization is in each index by memory: without statistics it would be looked up by itself, once for every memory
create index if not exists memory_events_memory_idx on long_term_memory.memory_events (memory_id, org_id, id);
create index if not exists memory_events_org_idx on long_term_memory.memory_events (org_id);
comment on table long_term_memory.memory_events is 'What became of a memory: written, corrected, reviewed, forgotten, erased; by whom, and in which grade.';

create table if not exists long_term_memory.recalls (
  id          uuid primary key default gen_random_uuid(),
  org_id      uuid not null,
  run_id      text,
  recalled_by uuid,
  query       text not null default '',
  arguments   jsonb not null default '{}',
  at          timestamptz not null default now()
);
create index if not exists recalls_org_idx on long_term_memory.recalls (org_id, at);
create index if not exists recalls_at_idx on long_term_memory.recalls (at);
comment on table long_term_memory.recalls is 'Each recall of memories: which run asked, and what.';

create table if not exists long_term_memory.recall_items (
  recall_id        uuid not null references long_term_memory.recalls (id) on delete cascade,
  org_id           uuid not null,
  memory_id        uuid not null references long_term_memory.agent_memories (id) on delete cascade,
  rank             int not null,
  score            float8 not null,
  relevance_source text not null,
  primary key (recall_id, memory_id)
);
create index if not exists recall_items_memory_idx on long_term_memory.recall_items (memory_id, org_id);
create index if not exists recall_items_org_idx on long_term_memory.recall_items (org_id);
comment on table long_term_memory.recall_items is 'Which memories a recall returned.';

create table if not exists long_term_memory.recall_subjects (
  recall_id    uuid not null references long_term_memory.recalls (id) on delete cascade,
  org_id       uuid not null,
  subject_type text not null,
  subject_id   uuid not null,
  primary key (org_id, subject_type, subject_id, recall_id)
);
create index if not exists recall_subjects_recall_idx on long_term_memory.recall_subjects (recall_id);
comment on table long_term_memory.recall_subjects is
  'Whose memories a recall returned, or was said to be about. It outlives the memory: what an expired one was asked for is still the subject''s.';

-- The two that tie the ledger to a subject refer to its tables once it is there (320).
create table if not exists long_term_memory.decision_subjects (
  memory_id         uuid not null,
  org_id            uuid not null,
  workspace_id      text not null,
  subject_type      text not null,
  subject_id        uuid not null,
  attributed_at     timestamptz not null default now(),
  erased_at         timestamptz,
  erased_with_other boolean not null default false,
  primary key (memory_id, subject_type, subject_id)
);
create index if not exists decision_subjects_subject_idx
  on long_term_memory.decision_subjects (org_id, subject_type, subject_id);
create index if not exists decision_subjects_workspace_idx on long_term_memory.decision_subjects (workspace_id);
comment on table long_term_memory.decision_subjects is 'Whom a decision of the ledger is about.';
comment on column long_term_memory.decision_subjects.erased_with_other is
  'The decision was erased for another subject that it was about as well.';

create table if not exists long_term_memory.trace_subjects (
  trace_id     uuid not null,
  org_id       uuid not null,
  subject_type text not null,
  subject_id   uuid not null,
  primary key (org_id, subject_type, subject_id, trace_id)
);
create index if not exists trace_subjects_trace_idx on long_term_memory.trace_subjects (trace_id);
comment on table long_term_memory.trace_subjects is
  'Traces of the ledger that returned a decision about a subject, or were said to be about one.';

create table if not exists long_term_memory.erasures (
  id           uuid primary key default gen_random_uuid(),
  org_id       uuid not null,
  subject_type text not null,
  subject_id   uuid not null,
  grade        text not null constraint erasures_grade_is_known check (grade in ('verified', 'service', 'asserted')),
  actor_id     uuid,
  asserted_by  text,
  erased_at    timestamptz not null default now(),
  counts       jsonb not null default '{}',
  key_check    bytea
);
create index if not exists erasures_subject_idx on long_term_memory.erasures (org_id, subject_type, subject_id);
comment on table long_term_memory.erasures is 'Receipts: who erased a subject, when, and how many rows of what. None of the subject''s words.';
comment on column long_term_memory.erasures.key_check is
  'By which a digest key is known again, without being kept: a keyed digest of the organization''s id.';

create table if not exists long_term_memory.erased_digests (
  erasure_id   uuid not null references long_term_memory.erasures (id) on delete cascade,
  org_id       uuid not null,
  subject_type text not null,
  subject_id   uuid not null,
  digest       bytea not null,
  primary key (org_id, subject_type, subject_id, digest)
);
create index if not exists erased_digests_erasure_idx on long_term_memory.erased_digests (erasure_id);
comment on table long_term_memory.erased_digests is
  'Keyed digests of erased texts. Without the key, which is not in the database, a guess at a text cannot be tried on them.';

create table if not exists long_term_memory.audit_events (
  id       bigint primary key generated always as identity,
  org_id   uuid not null,
  kind     text not null,
  actor_id uuid,
  payload  jsonb not null default '{}',
  at       timestamptz not null default now()
);
create index if not exists audit_events_org_idx on long_term_memory.audit_events (org_id, id);
comment on table long_term_memory.audit_events is 'Changes of members, settings, mappings and attributions: ids and numbers only.';

create table if not exists long_term_memory.idempotency_keys (
  org_id     uuid not null,
  key        text not null,
  digest     bytea not null,
  memory_id  uuid references long_term_memory.agent_memories (id) on delete set null,
  created_at timestamptz not null default now(),
  primary key (org_id, key)
);
create index if not exists idempotency_keys_memory_idx on long_term_memory.idempotency_keys (memory_id, org_id);
comment on table long_term_memory.idempotency_keys is
  'Which request a key stood for, and the memory that it wrote: none once that was swept. The key stays used.';

do $do$
declare
  v_table regclass;
begin
  for v_table in
    select c.oid from pg_class c where c.relnamespace = 'long_term_memory'::regnamespace and c.relkind = 'r' and not c.relrowsecurity
  loop
    execute format('alter table %s enable row level security', v_table);
  end loop;
end
$do$;
