-- Recall: ranked, read again behind the locks of those whom it is about, packed, written down.

create or replace function long_term_memory.check_recall(
  p_query text, p_subject_type text, p_subject_id uuid, p_workspace_id text, p_run_id text, p_max_tokens int)
returns void language plpgsql immutable
set search_path = public, extensions, pg_temp
as $$
begin
  perform long_term_memory.check_name('p_workspace_id', p_workspace_id), long_term_memory.check_name('p_run_id', p_run_id);
  if octet_length(p_query) > 262144 then
    raise sqlstate '22023' using message = 'p_query is longer than 262,144 bytes.', hint = 'Ask with fewer words.';
  elsif p_subject_type is not null and p_subject_type not in ('workspace', 'candidate', 'user') then
    perform long_term_memory.check_subject(p_subject_type, p_subject_id);
  elsif p_subject_id is not null and p_subject_type is null then
    raise sqlstate '22023' using message = 'p_subject_id goes with p_subject_type.', hint = 'Say what the id is the id of.';
  elsif p_workspace_id is not null and p_subject_type <> 'workspace' then
    raise sqlstate '22023' using
      message = 'p_workspace_id is for memories of a workspace.', hint = 'Leave it out, or use p_subject_type workspace.';
  elsif p_max_tokens <= ranked_ledger.fence_tokens() then
    raise sqlstate '22023' using
      message = format('p_max_tokens is %s; the fence alone may take %s.', p_max_tokens, ranked_ledger.fence_tokens()),
      hint = 'Give a budget of some hundred tokens, or leave it out.';
  end if;
end
$$;

comment on function long_term_memory.check_recall(text, text, uuid, text, text, int) is
  'Refuses (22023, RL472) arguments of a recall that cannot be meant.';

create or replace function long_term_memory.ask(
  p_org_id uuid, p_query text, p_query_embedding text, p_embedding_model text, p_subject_type text, p_subject_id uuid,
  p_workspace_id text, p_match_count int, p_half_life_days float8, p_w_similarity float8, p_w_recency float8,
  p_min_relevance float8, p_include_unreviewed boolean)
returns long_term_memory.question language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
declare
  q long_term_memory.question;
begin
  perform ranked_ledger.check_weight('p_w_similarity', p_w_similarity), ranked_ledger.check_weight('p_w_recency', p_w_recency),
          ranked_ledger.check_unit('p_min_relevance', greatest(p_min_relevance, 0));
  q.org_id := p_org_id;
  q.words := ranked_ledger.any_word('pg_catalog.english', p_query);
  q.has_any := ranked_ledger.has_any(q.words);
  q.counts_all := q.has_any is null and q.words <> '{}';
  q.embedding := long_term_memory.embedding_of(p_query_embedding, p_embedding_model);
  q.embedding_model := p_embedding_model;
  q.dims := vector_dims(q.embedding);
  q.subject_type := p_subject_type;
  q.subject_id := p_subject_id;
  q.workspace_id := p_workspace_id;
  q.match_count := ranked_ledger.match_count(p_match_count);
  q.half_life := greatest(ranked_ledger.positive_or(p_half_life_days, 30), 1e-290); -- below that a division overflows
  q.w_similarity := p_w_similarity;
  q.w_recency := p_w_recency;
  q.min_relevance := case when p_min_relevance > 0 then p_min_relevance end;
  q.with_unreviewed := coalesce(p_include_unreviewed, false);
  return q;
end
$$;

comment on function long_term_memory.ask(
  uuid, text, text, text, text, uuid, text, int, float8, float8, float8, float8, boolean) is
  'The arguments of a recall as one question: refused (22023) where they cannot be meant, else with their defaults.';

create or replace function long_term_memory.arguments_in_force(
  p_question long_term_memory.question, p_run_id text, p_max_tokens int)
returns jsonb language sql immutable
set search_path = public, extensions, pg_temp
as $$
  select jsonb_build_object(
    'p_subject_type', q.subject_type, 'p_subject_id', q.subject_id, 'p_workspace_id', q.workspace_id,
    'p_match_count', q.match_count, 'p_half_life_days', q.half_life, 'p_w_similarity', q.w_similarity,
    'p_w_recency', q.w_recency, 'p_min_relevance', q.min_relevance, 'p_include_unreviewed', q.with_unreviewed,
    'p_embedding_model', q.embedding_model, 'p_run_id', p_run_id, 'p_max_tokens', p_max_tokens,
    'has_text', q.words is not null, 'has_embedding', q.embedding is not null)
  from (select (p_question).*) as q
$$;

comment on function long_term_memory.arguments_in_force(long_term_memory.question, text, int) is
  'What a recall was asked, as its answer and its record tell it: after defaults, without the words and the vector.';

create or replace function long_term_memory.recall_hint(p_question long_term_memory.question)
returns text language sql stable
set search_path = public, extensions, pg_temp
as $$
  select case
    when not exists (select from long_term_memory.agent_memories m where m.org_id = q.org_id and m.redacted_at is null)
      then 'This organization has no memories yet.'
    when not q.with_unreviewed and exists (
      select from long_term_memory.agent_memories m
      where m.org_id = q.org_id and m.redacted_at is null and m.author = 'model' and m.review_outcome is null)
      then 'What models wrote waits for a review (pending_reviews); p_include_unreviewed shows it unreviewed.'
    else 'No memory is in scope: look at subject, workspace and p_min_relevance.' end
  from (select (p_question).*) as q
$$;

comment on function long_term_memory.recall_hint(long_term_memory.question) is 'Why an answer may be empty, and what to do.';

-- Somebody's erasure may have ended while their lock was waited for. Row by row by their ids: before a table was ever analysed,
-- a join was planned through all memories of the organization, once for each hit.
create or replace function long_term_memory.read_again(p_question long_term_memory.question, p_ranked jsonb)
returns jsonb language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_ids   uuid[] := array(select (r.value ->> 'memory_id')::uuid from jsonb_array_elements(p_ranked) as r);
  v_types text[];
  v_about uuid[];
  v_hits  jsonb;
begin
  select array_agg(m.subject_type), array_agg(m.subject_id) into v_types, v_about
  from unnest(v_ids) as u (id)
  cross join lateral (select a.* from long_term_memory.agent_memories a where a.id = u.id offset 0) as m
  where m.org_id = (p_question).org_id;
  perform long_term_memory.share_subjects(
    (p_question).org_id, v_types || (p_question).subject_type, v_about || (p_question).subject_id);
  select coalesce(jsonb_agg(long_term_memory.memory_hit(f.a, r.value, p_question) order by r.ordinality), '[]') into v_hits
  from jsonb_array_elements(p_ranked) with ordinality as r
  cross join lateral (
    select a from long_term_memory.agent_memories a where a.id = (r.value ->> 'memory_id')::uuid offset 0) as f
  cross join lateral (select (f.a).*) as m
  where m.org_id = (p_question).org_id and m.redacted_at is null and (m.expires_at is null or m.expires_at > now())
    and long_term_memory.may_be_recalled(m.review_outcome, m.author, (p_question).with_unreviewed);
  return v_hits;
end
$$;

comment on function long_term_memory.read_again(long_term_memory.question, jsonb) is
  'The hits of what was ranked, as they are now. Erasures of those whom they are about wait until the recall is written down; what went meanwhile is left out.';

-- Written down without the words where they might be about somebody whose erasure does not find them: an older snapshot does
-- not see it, and a memory that was erased meanwhile is no hit that would tie the question to its subject.
create or replace function long_term_memory.record_recall(
  p_recall_id uuid, p_org_id uuid, p_recalled_by uuid, p_query text, p_arguments jsonb, p_hits jsonb)
returns boolean language plpgsql
set search_path = public, extensions, pg_temp
set lock_timeout = '2s' -- somebody may keep a memory locked for as long as it likes; the answer does not wait for the record
as $$
declare
  v_held uuid[];
begin
  begin
    perform long_term_memory.note_run(p_arguments ->> 'p_run_id');
  exception when others then
    null; -- a run that the host does not know: its name is kept all the same
  end;
  insert into long_term_memory.recalls (id, org_id, run_id, recalled_by, query, arguments)
  values (p_recall_id, p_org_id, p_arguments ->> 'p_run_id', p_recalled_by,
          case when current_setting('transaction_isolation') = 'read committed' then coalesce(p_query, '') else '' end,
          p_arguments);
  -- one that expired and was swept since it was found must not cost the others their record
  v_held := array(
    select m.id
    from (select (h.value ->> 'memory_id')::uuid as id from jsonb_array_elements(p_hits) as h order by 1) as u
    cross join lateral (
      select a.id, a.org_id from long_term_memory.agent_memories a where a.id = u.id offset 0 for key share) as m
    where m.org_id = p_org_id);
  insert into long_term_memory.recall_items (recall_id, org_id, memory_id, rank, score, relevance_source)
  select p_recall_id, p_org_id, (h.value ->> 'memory_id')::uuid, (h.value ->> 'rank')::int, (h.value ->> 'score')::float8,
         h.value ->> 'relevance_source'
  from jsonb_array_elements(p_hits) as h where (h.value ->> 'memory_id')::uuid = any (v_held);
  insert into long_term_memory.recall_subjects (recall_id, org_id, subject_type, subject_id)
  select distinct p_recall_id, p_org_id, s.subject_type, s.subject_id
  from (select h.value ->> 'subject_type', (h.value ->> 'subject_id')::uuid from jsonb_array_elements(p_hits) as h
        union all select p_arguments ->> 'p_subject_type', (p_arguments ->> 'p_subject_id')::uuid) as s (subject_type, subject_id)
  where s.subject_id is not null;
  return true;
exception when others then
  raise warning 'Ranked Ledger: a recall of memories was not written down (%)', sqlerrm;
  return false;
end
$$;

comment on function long_term_memory.record_recall(uuid, uuid, uuid, text, jsonb, jsonb) is
  'Writes down a recall, what it returned and whose that was. False where it could not be: a recall never fails because of it.';

create or replace function long_term_memory.recall_memories(
  p_org_id uuid, p_query text default null, p_query_embedding text default null, p_embedding_model text default null,
  p_subject_type text default null, p_subject_id uuid default null, p_workspace_id text default null,
  p_match_count int default 10, p_half_life_days float8 default 30, p_w_similarity float8 default 0.75,
  p_w_recency float8 default 0.25, p_min_relevance float8 default null, p_include_unreviewed boolean default false,
  p_run_id text default null, p_max_tokens int default null)
returns jsonb language plpgsql security definer
set search_path = public, extensions, pg_temp
as $$
declare
  v_caller    long_term_memory.caller := long_term_memory.admit(p_org_id, '{member,admin,owner}');
  v_recall_id uuid := gen_random_uuid();
  q           long_term_memory.question;
  v_arguments jsonb;
  v_ranked    jsonb;
  v_hits      jsonb;
  v_packed    jsonb;
  v_recorded  boolean;
begin
  perform long_term_memory.check_recall(p_query, p_subject_type, p_subject_id, p_workspace_id, p_run_id, p_max_tokens);
  q := long_term_memory.ask(
    p_org_id, p_query, p_query_embedding, p_embedding_model, p_subject_type, p_subject_id, p_workspace_id, p_match_count,
    p_half_life_days, p_w_similarity, p_w_recency, p_min_relevance, p_include_unreviewed);
  v_arguments := long_term_memory.arguments_in_force(q, p_run_id, p_max_tokens);

  select coalesce(jsonb_agg(to_jsonb(r) order by r.ordinality), '[]') into v_ranked
  from long_term_memory.rank_memories(q) with ordinality as r;
  v_hits := long_term_memory.read_again(q, v_ranked);
  v_packed := ranked_ledger.pack_hits(v_hits, p_max_tokens);
  v_packed := v_packed || jsonb_build_object('hits', (
    select coalesce(jsonb_agg(h.value - 'pinned' order by h.ordinality), '[]')
    from jsonb_array_elements(v_packed -> 'hits') with ordinality as h));

  v_recorded := long_term_memory.record_recall(
    v_recall_id, p_org_id, v_caller.user_id,
    case when jsonb_array_length(v_hits) = jsonb_array_length(v_ranked) then p_query end, v_arguments, v_packed -> 'hits');
  return v_packed || jsonb_build_object(
    'recall_id', case when v_recorded then v_recall_id end, 'recorded', v_recorded, 'arguments', v_arguments,
    'hint', case when v_hits = '[]' then long_term_memory.recall_hint(q) end);
end
$$;

comment on function long_term_memory.recall_memories(
  uuid, text, text, text, text, uuid, text, int, float8, float8, float8, float8, boolean, text, int) is
  'The inner half of public.recall_memories, with the owner''s rights.';

create or replace function public.recall_memories(
  p_org_id uuid, p_query text default null, p_query_embedding text default null, p_embedding_model text default null,
  p_subject_type text default null, p_subject_id uuid default null, p_workspace_id text default null,
  p_match_count int default 10, p_half_life_days float8 default 30, p_w_similarity float8 default 0.75,
  p_w_recency float8 default 0.25, p_min_relevance float8 default null, p_include_unreviewed boolean default false,
  p_run_id text default null, p_max_tokens int default null)
returns jsonb language sql
set search_path = public, extensions, pg_temp
as $$
  select long_term_memory.recall_memories(
    p_org_id, p_query, p_query_embedding, p_embedding_model, p_subject_type, p_subject_id, p_workspace_id, p_match_count,
    p_half_life_days, p_w_similarity, p_w_recency, p_min_relevance, p_include_unreviewed, p_run_id, p_max_tokens)
$$;

comment on function public.recall_memories(
  uuid, text, text, text, text, uuid, text, int, float8, float8, float8, float8, boolean, text, int) is
  'The memories of an organization that matter to a question, best first: {recall_id, hits, shortened, dropped, recorded, hint, arguments}. Exact; never what is erased, expired or rejected, and what a model wrote unreviewed only where it is asked for.';
