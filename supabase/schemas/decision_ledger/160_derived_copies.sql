-- What makes recall fast: copies, in narrow tables, of what a score is made of. They choose the decisions that are worth
-- weighing; the answer itself is read from the ledger, its memories, thoughts and edges (206). Triggers keep them in the
-- transaction of the write (164), check_copies proves them.

-- Copies of a shape of before go, and are made anew in the end (900).
do $do$
begin
  if to_regclass('ranked_ledger.standings') is not null
     and not exists (select from pg_attribute a where a.attrelid = to_regclass('ranked_ledger.standings')
                     and a.attname = 'text_length' and not a.attisdropped) then
    drop table ranked_ledger.standings, ranked_ledger.postings, ranked_ledger.decision_vectors;
    drop table if exists ranked_ledger.dead_rows; -- numbers of the rows that went
  end if;
end
$do$;

create table if not exists ranked_ledger.standings (
  row_no          int generated always as identity,
  memory_id       uuid primary key,
  workspace_key   bigint not null,
  stream_id       uuid not null,
  thought_id      uuid,
  step_index      int not null,
  importance      float8 not null,
  live_dependents int not null default 0,
  vector_dims     int not null default 0,
  text_length     int not null default 0,
  summary_words   int not null default 0,
  pinned          boolean not null,
  is_active       boolean not null,
  is_retired      boolean not null,
  is_unconfirmed  boolean not null,
  is_personal     boolean not null
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.02); -- index-only scans live on it

alter table ranked_ledger.standings enable row level security;

comment on table ranked_ledger.standings is
  'Derived: one narrow row a decision in force, with everything but the words and the vector that its score is made of. Whoever writes a copy of a decision holds this row.';
comment on column ranked_ledger.standings.vector_dims is 'Dimensions of the thought''s vector; 0: none, or one without a direction.';
comment on column ranked_ledger.standings.text_length is 'Words of content and rationale, as many as search_lexemes has positions of.';
comment on column ranked_ledger.standings.summary_words is 'Different words of the summary.';

create unique index if not exists standings_row_idx on ranked_ledger.standings (row_no);
create index if not exists standings_thought_idx on ranked_ledger.standings (thought_id) where thought_id is not null;
-- a stream, newest first, without a look at the table: decisions of one workspace lie together here and nowhere else
create index if not exists standings_stream_idx on ranked_ledger.standings (stream_id, step_index desc) include (
  row_no, memory_id, importance, live_dependents, vector_dims, text_length, summary_words, pinned, is_active, is_retired,
  is_unconfirmed, is_personal);

-- what matters most and carries most: what an old decision has to have to be in an answer, and a recall need not read the rest
create or replace function ranked_ledger.merit(p_importance float8, p_live_dependents int)
returns float8 language sql immutable parallel safe
return 0.25 * p_importance + 0.05 * least(p_live_dependents, 3);

comment on function ranked_ledger.merit(float8, int) is
  'What importance and dependents contribute to a score at the published weights: 0 to 0.40. For other weights it bounds them (least_merit).';

create index if not exists standings_merit_idx on ranked_ledger.standings (
  workspace_key, ranked_ledger.merit(importance, live_dependents) desc) where not is_retired;
create index if not exists standings_pinned_idx on ranked_ledger.standings (workspace_key) where pinned;

create table if not exists ranked_ledger.postings (
  term        bigint not null,
  row_no      int not null,
  occurrences smallint not null,
  in_summary  boolean not null,
  primary key (term, row_no) include (occurrences, in_summary)
) with (autovacuum_vacuum_insert_scale_factor = 0.05);

alter table ranked_ledger.postings enable row level security;

comment on table ranked_ledger.postings is
  'Derived from agent_decision_ledger.search_lexemes: how often a lexeme (by workspace, see term_of) stands in the text of a decision (by standings.row_no), and whether in its summary.';

-- a posting goes with its standing, whatever words were posted: one that stayed would count as a decision that holds its word (204)
create index if not exists postings_row_idx on ranked_ledger.postings (row_no);

create table if not exists ranked_ledger.decision_vectors (
  row_no        int primary key,
  workspace_key bigint not null,
  embedding     halfvec
) with (toast_tuple_target = 8160);

-- inline as long as it fits a page: from a toast table the same scan takes eight times as long
alter table ranked_ledger.decision_vectors alter column embedding set storage external;
alter table ranked_ledger.decision_vectors enable row level security;

comment on table ranked_ledger.decision_vectors is
  'Derived from thoughts.embedding: its direction, rounded to half precision. Null: of a length that cannot be rounded safely, so every recall weighs it.';

create index if not exists decision_vectors_workspace_idx on ranked_ledger.decision_vectors (workspace_key);

create table if not exists ranked_ledger.stale_copies (
  id            bigint primary key generated always as identity,
  workspace_key bigint,
  memory_id     uuid,
  thought_id    uuid,
  marked_by     xid8 not null default pg_current_xact_id(),
  horizon       xid8,
  constraint stale_copies_is_of_a_decision_or_a_thought check (
    (memory_id is null) <> (thought_id is null) and (memory_id is null) = (workspace_key is null))
);

alter table ranked_ledger.stale_copies enable row level security;

comment on table ranked_ledger.stale_copies is
  'Decisions whose copies may lag (a writer under an old snapshot, two writers at once), and thoughts whose vector changed while somebody may have been enrolling a decision on them. Recall weighs those from the tables until the copies are made anew.';
comment on column ranked_ledger.stale_copies.horizon is
  'Set when the mark is first seen: once every transaction below it has ended, nobody can bring the copies out of step behind the mark''s back, and it is lifted.';

create index if not exists stale_copies_workspace_idx on ranked_ledger.stale_copies (workspace_key);
create index if not exists stale_copies_thought_idx on ranked_ledger.stale_copies (thought_id) where thought_id is not null;

-- hashtextextended is what hash partitions rest on: it stays the same across versions. Should two lexemes of a workspace
-- share a term, a decision seems to hold more of them than it does, is weighed, and found out (210).
create or replace function ranked_ledger.term_of(p_workspace_key bigint, p_lexeme text)
returns bigint language sql immutable parallel safe
return hashtextextended(p_lexeme collate "C", p_workspace_key);

comment on function ranked_ledger.term_of(bigint, text) is 'A lexeme of a workspace in eight bytes.';

-- pgvector computes in single precision: beyond these lengths a sum of squares leaves its range, and the cosine is what it is.
create or replace function ranked_ledger.is_usual_length(p_norm float8)
returns boolean language sql immutable parallel safe
return p_norm between 1e-15 and 1e15;

comment on function ranked_ledger.is_usual_length(float8) is 'Whether the cosine of a vector of this length can be bounded from its rounded direction.';
