-- Models spread their cosines differently: one over 0.1 to 0.6, another over 0.75 to 0.86, and as it stands a cosine of the
-- second tells nothing. The range says what counts as 0 and as 1. No row: the cosine as it is.
create table if not exists ranked_ledger.similarity_ranges (
  workspace_id    text not null,
  embedding_model text not null,
  floor           float8 not null,
  ceiling         float8 not null,
  primary key (workspace_id, embedding_model),
  -- NaN sorts above every number, so the second bound refuses it
  constraint similarity_ranges_are_cosines check (floor >= -1 and ceiling <= 1 and floor < ceiling)
);

alter table ranked_ledger.similarity_ranges enable row level security;

comment on table ranked_ledger.similarity_ranges is
  'Which cosines of an embedding model count as 0 (floor and below) and as 1 (ceiling and above), by workspace.';
