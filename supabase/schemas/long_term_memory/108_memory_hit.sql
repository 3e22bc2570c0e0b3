-- A memory as a recall answers it, with its line for a prompt. The fence around the lines is the client's, of a fixed cost.

create or replace function long_term_memory.age_words(p_age_days float8)
returns text language sql immutable parallel safe
return case when p_age_days < 1 then 'today' when p_age_days < 2 then '1 day old' else floor(p_age_days) || ' days old' end;

comment on function long_term_memory.age_words(float8) is 'An age in whole days, as a line says it.';

-- Names are free text too, and may neither break the line nor go on for the provenance behind them.
create or replace function long_term_memory.about_words(p_subject_type text, p_subject_id uuid, p_workspace_id text)
returns text language sql immutable parallel safe
return concat_ws(' ', p_subject_type, p_subject_id::text,
                 nullif(translate(ranked_ledger.one_line(p_workspace_id), '|[]/', '-()-'), ''));

comment on function long_term_memory.about_words(text, uuid, text) is
  'Whom a memory is about, within a line''s brackets: with their id, so that two candidates are told apart.';

create or replace function long_term_memory.memory_line(
  p_text text, p_age_days float8, p_author text, p_grade text, p_review_outcome text, p_review_grade text,
  p_can_use_as_instruction boolean, p_subject_type text, p_subject_id uuid, p_workspace_id text)
returns text language sql immutable parallel safe
return '- [' || long_term_memory.age_words(p_age_days)
       -- a model's words on somebody's token are no less a model's: "verified" would be read as said of the words
       || ' | by ' || p_author || case when p_author = 'person' then coalesce(', ' || p_grade, '') else '' end
       || ' | ' || coalesce(replace(p_review_outcome, '_', ' ') || ', ' || p_review_grade, 'unreviewed')
       || ' | instruction: ' || case when p_can_use_as_instruction then 'yes' else 'no' end
       || ' | about ' || long_term_memory.about_words(p_subject_type, p_subject_id, p_workspace_id) || '] '
       || ranked_ledger.one_line(p_text);

comment on function long_term_memory.memory_line(text, float8, text, text, text, text, boolean, text, uuid, text) is
$$One memory as a line of a prompt, its provenance first:
- [<age> | by model or person[, verified|asserted] | unreviewed or <outcome>, <grade> | instruction: yes or no | about <subject>] text$$;

create or replace function long_term_memory.memory_hit(
  p_memory long_term_memory.agent_memories, p_ranked jsonb, p_question long_term_memory.question)
returns jsonb language sql stable
set search_path = public, extensions, pg_temp
as $$
  select jsonb_build_object(
    'memory_id', m.id, 'text', m.text, 'subject_type', m.subject_type, 'subject_id', m.subject_id,
    'workspace_id', m.workspace_id, 'author', m.author, 'grade', g.grade, 'review_outcome', m.review_outcome,
    'review_grade', m.review_grade, 'can_use_as_instruction', m.can_use_as_instruction, 'source_run_id', m.source_run_id,
    'created_at', m.created_date, 'expires_at', m.expires_at, 'age_days', p_ranked -> 'age_days',
    'relevance', p_ranked -> 'relevance',
    'relevance_source', case when m.embedding_model = (p_question).embedding_model and m.embedding_dims = (p_question).dims
                              and m.embedding <=> (p_question).embedding <> 'NaN' then 'cosine'
                             when (p_question).words is not null then 'fts' else 'none' end,
    'recency', p_ranked -> 'recency', 'score', p_ranked -> 'score', 'line', l.line,
    -- each with the line break behind it, so that the sum bounds the whole block; there is no shorter form of a memory
    'tokens', l.tokens, 'summary_line', l.line, 'summary_tokens', l.tokens, 'pinned', false)
  from (select (p_memory).*) as m
  cross join lateral (select long_term_memory.grade(m.written_by, m.asserted_by) as grade) as g
  cross join lateral (
    select f.line, ranked_ledger.tokens(f.line || ' ') as tokens
    from (select long_term_memory.memory_line(
            m.text, (p_ranked ->> 'age_days')::float8, m.author, g.grade, m.review_outcome, m.review_grade,
            m.can_use_as_instruction, m.subject_type, m.subject_id, m.workspace_id) as line) as f) as l
$$;

comment on function long_term_memory.memory_hit(long_term_memory.agent_memories, jsonb, long_term_memory.question) is
  'A hit as recall_memories answers it, before it is packed: the memory as it is now, with the components of its rank.';
