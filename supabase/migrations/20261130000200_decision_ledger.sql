-- Ranked Ledger: decision ledger
-- Built from supabase/schemas by supabase/build.py. Do not edit: edit the sources and run `make migrations`.
-- Runs once or many times, with the same result; changes no table that it did not create.

-- For this transaction only: a `set` would stay behind in a pooled session. pgvector is in one of the two.
select set_config('search_path', 'public, extensions, pg_temp', true);

-- Two pushes at once take turns; the second one finds everything done.
select pg_advisory_xact_lock(hashtextextended('ranked_ledger: migration', 0));

-- decision_ledger/000_preflight.sql ---------------------------------------------------------------------------------

-- Looks before anything is written. Every stop is RL501: what was found, and what to do. Both are in the message, because
-- `supabase db push` does not show a hint. Nothing has been created yet, so nothing stays behind.
-- The list of columns is the one of open_brain/000_preflight.sql, and a test compares the two: either migration may be the
-- first that a host meets.

-- Two products call a table agent_memories. The columns tell them apart.
do $other_product$
declare
  v_found text := 'public.agent_memories is the table of another product: it has org_id, subject_type and text, '
    'and no memory_type.';
  v_advice text := 'Ranked Ledger needs the Open Brain table of that name and never changes a table that it did not '
    'create: push to another project, or move that table into a schema of its own first.';
begin
  if (
    select count(*) filter (where attname in ('org_id', 'subject_type', 'text')) = 3
       and count(*) filter (where attname = 'memory_type') = 0
    from pg_catalog.pg_attribute
    where attrelid = to_regclass('public.agent_memories') and attnum > 0 and not attisdropped
  ) then
    raise exception using errcode = 'RL501', message = v_found || ' ' || v_advice, hint = v_advice;
  end if;
end
$other_product$;

-- The tables that the ledger stands on, and pgvector, whose type its functions take.
do $missing$
declare
  v_missing text;
  v_schema text;
  v_found text;
  v_advice text;
begin
  select n.nspname into v_schema
  from pg_catalog.pg_extension e join pg_catalog.pg_namespace n on n.oid = e.extnamespace
  where e.extname = 'vector';
  if v_schema is null then
    v_found := 'The extension pgvector is not enabled in this database.';
    v_advice := 'Enable "vector" in the dashboard under Database, Extensions (schema: extensions), then push again.';
  elsif v_schema not in ('public', 'extensions') then
    v_found := format('The extension pgvector is in the schema %I, where Ranked Ledger does not look.', v_schema);
    v_advice := 'Move it with `alter extension vector set schema extensions`, then push again.';
  elsif to_regtype(v_schema || '.halfvec') is null then
    v_found := 'The extension pgvector is older than 0.7: it has no half-precision vectors.';
    v_advice := 'Bring it up to date with `alter extension vector update`, then push again.';
  end if;

  select string_agg('public.' || wanted, ', ' order by position) into v_missing
  from unnest(array['thoughts', 'agent_memories', 'agent_memory_relations', 'agent_memory_review_actions',
                    'agent_memory_recall_traces', 'agent_memory_recall_items', 'agent_memory_audit_events'])
    with ordinality as t (wanted, position)
  where not exists (
    select from pg_catalog.pg_class c
    where c.relnamespace = 'public'::regnamespace and c.relname = wanted and c.relkind in ('r', 'p'));
  if v_missing is not null then
    v_found := format('The ledger stands on the tables of an Open Brain install, and some are missing: %s.', v_missing);
    v_advice := 'Run `ranked-ledger init --with-open-brain`, which adds the migration that creates what is absent, '
      'then push again.';
  end if;

  if v_found is not null then
    raise exception using errcode = 'RL501', message = v_found || ' ' || v_advice, hint = v_advice;
  end if;
end
$missing$;

do $host_columns$
declare
  v_wrong text;
  v_found text;
  v_advice text;
begin
  select string_agg(format('%s.%s (%s)', w.relation, w.col, w.kind), ', ' order by w.relation, w.col) into v_wrong
  from (values
    -- contract columns: begin
    ('thoughts', 'id uuid, content text, embedding vector, metadata jsonb, created_at timestamptz, updated_at timestamptz'),
    ('agent_memories', 'id uuid, thought_id uuid, workspace_id text, project_id text, task_id text, flow_id text, '
      'visibility text, memory_type text, summary text, content text, lifecycle_status text, provenance_status text, '
      'confidence numeric, created_by text, runtime_name text, requires_user_confirmation bool, review_status text, '
      'metadata jsonb, created_at timestamptz, updated_at timestamptz'),
    ('agent_memory_relations', 'id uuid, from_memory_id uuid, to_memory_id uuid, relation text, metadata jsonb'),
    ('agent_memory_review_actions', 'id uuid, memory_id uuid, action text, actor_id any, actor_label text, notes text, '
      'before jsonb, after jsonb, created_at timestamptz'),
    ('agent_memory_recall_traces', 'id uuid, request_id uuid, workspace_id text, project_id text, task_id text, '
      'flow_id text, runtime_name text, query text, schema_version any, request_payload jsonb, response_policy jsonb, '
      'created_at timestamptz'),
    ('agent_memory_recall_items', 'id uuid, trace_id uuid, memory_id uuid, rank any, similarity numeric, '
      'ranking_score numeric, returned bool, used bool, ignored_reason text, use_policy_snapshot jsonb, '
      'created_at timestamptz'),
    ('agent_memory_audit_events', 'id uuid, event_type text, workspace_id text, project_id text, memory_id uuid, '
      'trace_id uuid, actor_kind text, actor_label text, runtime_name text, task_id text, payload jsonb, '
      'created_at timestamptz')
    -- contract columns: end
  ) as wanted (relation, cols)
  join pg_catalog.pg_class c on c.relname = wanted.relation and c.relnamespace = 'public'::regnamespace
  cross join lateral (
    select wanted.relation, split_part(entry, ' ', 1) as col, split_part(entry, ' ', 2) as kind
    from unnest(string_to_array(wanted.cols, ', ')) as entry
  ) as w
  left join pg_catalog.pg_attribute a
    on a.attrelid = c.oid and a.attname = w.col and a.attnum > 0 and not a.attisdropped
  left join pg_catalog.pg_type t on t.oid = a.atttypid
  where a.attname is null or not (
    w.kind = 'any' or t.typname = w.kind or (w.kind = 'text' and t.typname in ('varchar', 'citext'))
    or (w.kind = 'numeric' and t.typname in ('float4', 'float8')) or (w.kind = 'timestamptz' and t.typname = 'timestamp'));
  if v_wrong is not null then
    v_found := format('Tables of an Open Brain install are here, but without columns that the ledger needs: %s.', v_wrong);
    v_advice := 'Ranked Ledger never changes a table that it did not create: bring the install up to date with its own '
      'migrations, then push again.';
  end if;

  if v_found is not null then
    raise exception using errcode = 'RL501', message = v_found || ' ' || v_advice, hint = v_advice;
  end if;
end
$host_columns$;

-- Triggers on agent_memories enrol, one on thoughts follows the vectors, and only a table's owner may replace a trigger later.
do $owner$
declare
  v_table text;
  v_owner text;
  v_found text;
  v_advice text;
begin
  select c.relname, pg_get_userbyid(c.relowner) into v_table, v_owner
  from pg_catalog.pg_class c
  where c.oid in ('public.agent_memories'::regclass, 'public.thoughts'::regclass)
    and not pg_has_role(current_user, c.relowner, 'USAGE')
  order by 1 limit 1;
  if v_owner is not null then
    v_found := format('public.%s belongs to the role %I, and %I may not put a trigger on it.',
      v_table, v_owner, current_user);
    v_advice := format('Push as %I, or as a role that is a member of it.', v_owner);
  end if;

  if v_found is not null then
    raise exception using errcode = 'RL501', message = v_found || ' ' || v_advice, hint = v_advice;
  end if;
end
$owner$;

-- The published proposal's function answers fewer columns than ours, so it has to be dropped, and PostgreSQL refuses that
-- while a view stands on it. (Callers by name are no such thing: they go on as they are.)
do $published_proposal$
declare
  v_dependents text;
  v_found text := 'The function match_decision_ledger of the published proposal is replaced by this migration, and these '
    'stand on it: %s.';
  v_advice text := 'Drop them, push, and create them again: their SQL needs no change.';
begin
  if to_regclass('ranked_ledger.streams') is not null then -- the schema alone may be the long-term memory's
    return;
  end if;
  select string_agg(distinct coalesce(r.ev_class::regclass::text, pg_describe_object(d.classid, d.objid, 0)), ', ')
  into v_dependents
  from pg_catalog.pg_depend d
  join pg_catalog.pg_proc p on p.oid = d.refobjid and d.refclassid = 'pg_catalog.pg_proc'::regclass
  left join pg_catalog.pg_rewrite r on r.oid = d.objid and d.classid = 'pg_catalog.pg_rewrite'::regclass
  where p.pronamespace = 'public'::regnamespace and p.proname = 'match_decision_ledger' and d.deptype = 'n';
  if v_dependents is not null then
    raise exception using errcode = 'RL501',
      message = format(v_found, v_dependents) || ' ' || v_advice, hint = v_advice;
  end if;
end
$published_proposal$;

-- All locks that this migration needs on tables that people use are taken here, all of them or none. Taken one by one
-- where they are needed, a re-run beside readers and writers ends in a deadlock (it did, six times of six). Each attempt
-- waits for less than a deadlock takes to be found, since everybody else queues up behind a lock that is waited for.
do $lock$
declare
  v_ours text;
  v_mode text := 'share row exclusive';
  v_deadline timestamptz := clock_timestamp() + interval '5 seconds';
  v_found text := 'Transactions kept public.agent_memories or the ledger busy for five seconds. Nothing was changed.';
  v_advice text := 'Push again when they are over: pg_stat_activity shows them.';
begin
  select string_agg(c.oid::regclass::text, ', ' order by c.oid) into v_ours
  from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
  where c.relkind = 'r' and (n.nspname = 'ranked_ledger'
    or (n.nspname = 'public' and c.relname in ('agent_decision_ledger', 'agent_decision_edges')));
  if exists (select from pg_catalog.pg_trigger where tgrelid = 'public.agent_memories'::regclass
             and tgname like 'trg\_agent\_decision\_ledger\_%') then
    v_mode := 'access exclusive'; -- a trigger that is there already is replaced
  end if;

  loop
    begin
      perform set_config('lock_timeout', '200ms', true);
      lock table public.thoughts in share row exclusive mode;
      execute format('lock table public.agent_memories in %s mode', v_mode);
      if v_ours is not null then
        execute format('lock table %s in access exclusive mode', v_ours);
      end if;
      exit;
    exception when lock_not_available or deadlock_detected then
      if clock_timestamp() > v_deadline then
        raise exception using errcode = '55P03', message = v_found || ' ' || v_advice, hint = v_advice;
      end if;
      perform pg_sleep(0.02 + 0.1 * random());
    end;
  end loop;
  perform set_config('lock_timeout', '5s', true);
end
$lock$;

-- ranking/010_schema.sql --------------------------------------------------------------------------------------------

-- The internals of Ranked Ledger. PostgREST does not expose this schema; the RPCs in public are the only way in.
create schema if not exists ranked_ledger;

comment on schema ranked_ledger is
  'Internals of Ranked Ledger: the ranking formula, streams, settlement of steps, idempotency keys. Not exposed by PostgREST.';

revoke all on schema ranked_ledger from public, anon, authenticated;
grant usage on schema ranked_ledger to service_role;

-- ranking/020_score.sql ---------------------------------------------------------------------------------------------

-- The ranking formula. Each function is a `return <expression>`: parsed when it is created, inlined into the query that
-- calls it, without a clock and without a table. Nobody else computes a score.

create or replace function ranked_ledger.clamp(p_value float8)
returns float8 language sql immutable parallel safe
return case when p_value is null or p_value = 'NaN'::float8 then 0::float8
            when p_value < 0 then 0::float8
            when p_value > 1 then 1::float8
            else p_value end;

comment on function ranked_ledger.clamp(float8) is
  'A component of the score: in [0,1]. Null and NaN are 0, since greatest(0, least(1, NaN)) would be 1 and a zero vector would win.';

create or replace function ranked_ledger.saturate(p_rank float8)
returns float8 language sql immutable parallel safe
return (10 * p_rank) / (1 + 10 * p_rank);

comment on function ranked_ledger.saturate(float8) is
  'Text relevance from ts_rank_cd: x/(1+x), x = 10 * rank. It saturates and never clips, so that more matches always count for more.';

create or replace function ranked_ledger.recency(p_distance float8, p_half_life float8)
returns float8 language sql immutable parallel safe
return case when p_distance / p_half_life > 700 then 0::float8 else exp(- p_distance / p_half_life) end;

comment on function ranked_ledger.recency(float8, float8) is
  'exp(-d/h): 0.37 at a distance of one half-life (the published name), for a distance of 0 or more. Cut off at 700 half-lives, before exp raises on underflow (22003).';

create or replace function ranked_ledger.dependency(p_live_dependents float8, p_saturation float8)
returns float8 language sql immutable parallel safe
return least(1::float8, p_live_dependents / p_saturation);

comment on function ranked_ledger.dependency(float8, float8) is
  'min(1, live decisions that depend on it / saturation).';

-- Beside the new one, a call without the last three would be of both.
do $do$
begin
  if to_regprocedure('ranked_ledger.score(float8, float8, float8, float8, float8, float8, float8, float8, boolean)') is not null then
    execute 'drop function ranked_ledger.score(float8, float8, float8, float8, float8, float8, float8, float8, boolean)';
  end if;
end
$do$;

create or replace function ranked_ledger.score(
  p_relevance float8, p_importance float8, p_recency float8, p_dependency float8,
  p_w_similarity float8, p_w_importance float8, p_w_recency float8, p_w_dependency float8, p_active boolean,
  p_summary_match float8 default 0, p_w_summary float8 default 0, p_penalty float8 default 0.30)
returns float8 language sql immutable parallel safe
return p_w_similarity * ranked_ledger.clamp(p_relevance)
     + p_w_importance * ranked_ledger.clamp(p_importance)
     + p_w_recency * ranked_ledger.clamp(p_recency)
     + p_w_dependency * ranked_ledger.clamp(p_dependency)
     + p_w_summary * ranked_ledger.clamp(p_summary_match)
     - case when p_active then 0::float8 else p_penalty end;

comment on function ranked_ledger.score(
  float8, float8, float8, float8, float8, float8, float8, float8, boolean, float8, float8, float8) is
$$score = 0.45 relevance + 0.25 importance + 0.15 recency + 0.15 dependency      (-0.30 where not active)

A sum and not a product: an important old decision that matches in other words keeps its place.
The text query is a disjunction of lexemes: requiring all words matched nothing on real questions (MRR 0.05 against 0.50).
The text rank saturates, x/(1+x), instead of clipping at 1: clipped, every record with ten matches ties.
Components are clamped before they are weighted: one bad value cannot outweigh the others.
The dependency normaliser is frozen (3) and not the maximum of the result: a score never depends on the other rows.
The half-life of 30 steps fits a working session: what was decided 80 steps ago keeps 7 percent of its recency.
The score lies in [-0.30, sum of the weights].

These are the published weights. A preset (203) may weigh otherwise, count the words of the summary, and take less from what
is stale or disputed: the same sum of the same components.$$;

-- ranking/025_relevance.sql -----------------------------------------------------------------------------------------

-- Where relevance comes from, when a caller asks with text, with an embedding, or with both.

create or replace function ranked_ledger.calibrate(p_cosine float8, p_floor float8, p_ceiling float8)
returns float8 language sql immutable parallel safe
return case when p_cosine is null then null::float8
            when p_cosine <= p_floor then 0::float8
            when p_cosine >= p_ceiling then 1::float8
            else (p_cosine - p_floor) / (p_ceiling - p_floor) end;

comment on function ranked_ledger.calibrate(float8, float8, float8) is
  'Cosine relevance: clamp((cosine - floor) / (ceiling - floor)). One model spreads its cosines over 0.1 to 0.6, another over 0.75 to 0.86: uncalibrated, the second decides nothing. Null: no cosine.';

create or replace function ranked_ledger.relevance(p_cosine float8, p_text float8, p_fusion text, p_fusion_weight float8)
returns float8 language sql immutable parallel safe
return case when p_cosine is null then coalesce(p_text, 0::float8)
            when p_text is null or p_fusion = 'none' then p_cosine
            when p_fusion = 'max' then greatest(p_cosine, p_text)
            else p_fusion_weight * p_cosine + (1 - p_fusion_weight) * p_text end;

comment on function ranked_ledger.relevance(float8, float8, text, float8) is
  'Of the calibrated cosine and the saturated text rank: none takes the cosine where there is one, max the greater, blend both by the weight of the cosine. Never from the rank among others: a score does not depend on the other rows.';

create or replace function ranked_ledger.awaits_confirmation(p_requires_confirmation boolean, p_review_status text)
returns boolean language sql immutable parallel safe
return p_requires_confirmation is true and p_review_status is not distinct from 'pending';

comment on function ranked_ledger.awaits_confirmation(boolean, text) is
  'The host''s own filter: pending while confirmation is required.';

-- ranking/030_text.sql ----------------------------------------------------------------------------------------------

-- Text: tokens and the rank of a disjunction.

create or replace function ranked_ledger.tokens(p_text text)
returns int language sql immutable parallel safe
return ceil(char_length(coalesce(p_text, '')) / 4.0)::int;

comment on function ranked_ledger.tokens(text) is
  'The size of a text in tokens: ceil(characters / 4). The one estimate that every budget uses.';

create or replace function ranked_ledger.rank_of_any(p_occurrences bigint)
returns float8 language sql immutable parallel safe
return coalesce(0.1::float4::float8 * p_occurrences, 0)::float4::float8;

comment on function ranked_ledger.rank_of_any(bigint) is
  'ts_rank_cd over a disjunction of lexemes, from how often they stand in the text: each occurrence is a cover of its own, of weight 0.1 in single precision, and the sum is rounded to single precision. Compared with ts_rank_cd up to 9,000 occurrences.';

-- ranking/035_text_or_cosine.sql ------------------------------------------------------------------------------------

-- Relevance of one row, by its vector or by its words. The long-term memory ranks by it, and so can a table of the host's own.
--
-- The words are counted and not given to ts_rank_cd, which says the same of a disjunction and takes the square of the question's
-- length: for a row of 25 words 8 microseconds for 12 words, 85 for 100 and 53,000 for 1,000. Counting takes the same whatever
-- the question, since a key of an object is looked up by halves. It is a function, and not a subquery in the caller's query:
-- that would be somewhat faster, and keep the whole scan to one process.

create or replace function ranked_ledger.any_word(p_config regconfig, p_text text)
returns jsonb language sql immutable parallel safe strict
return (select coalesce(jsonb_object_agg(u.lexeme, true), '{}')
        from unnest(tsvector_to_array(to_tsvector(p_config, p_text))) as u (lexeme));

comment on function ranked_ledger.any_word(regconfig, text) is
  'The words of a question, as text_or_cosine looks for any of them: its lexemes as keys. Null where there is no text.';

create or replace function ranked_ledger.occurrences(p_lexemes tsvector, p_words jsonb)
returns bigint language sql immutable parallel safe strict
return (select sum(cardinality(x.positions)) from unnest(p_lexemes) as x where p_words ? x.lexeme);

comment on function ranked_ledger.occurrences(tsvector, jsonb) is 'How often any of these words stands in a text.';

create or replace function ranked_ledger.has_any(p_words jsonb)
returns tsquery language sql immutable parallel safe strict
return (select string_agg('''' || replace(replace(k.word, '\', '\\'), '''', '''''') || '''', ' | ')::tsquery
        from jsonb_object_keys(p_words) as k (word) having count(*) <= 100);

comment on function ranked_ledger.has_any(jsonb) is
  'What a text matches that has any of these words, for @@: most rows need not be counted then. Null without words, and for more than 100, which take longer to look for than to count.';

-- Each argument stands once in the body, so that it is inlined and evaluated once, the count only where no cosine is possible.
create or replace function ranked_ledger.text_or_cosine(
  p_lexemes tsvector, p_embedding vector, p_comparable boolean, p_words jsonb, p_query_embedding vector)
returns float8 language sql immutable parallel safe
return greatest(0::float8, least(1::float8, coalesce(
  nullif(case when p_comparable then 1 - (p_embedding <=> p_query_embedding) end, 'NaN'::float8),
  ranked_ledger.saturate(ranked_ledger.rank_of_any(ranked_ledger.occurrences(p_lexemes, p_words))))));

comment on function ranked_ledger.text_or_cosine(tsvector, vector, boolean, jsonb, vector) is
$$Relevance in [0,1]: the cosine where the two vectors are comparable (one model, one number of dimensions: the caller says so) and it is a number, else x/(1+x) from how often any word of the question stands in the row, else 0.

For a table of one's own:
select c.id, ranked_ledger.text_or_cosine(
  c.lexemes, c.embedding, c.model = 'a-model', ranked_ledger.any_word('english', 'when may we call?'), '[0.1,0.2,0.3]') as relevance
from chunks as c where c.org_id = '...' order by relevance desc limit 10;$$;

-- ranking/040_prompt.sql --------------------------------------------------------------------------------------------

-- Into a prompt: what a fence costs, a text in one line, and packing into a budget of tokens. Both stores do it alike.

create or replace function ranked_ledger.fence_tokens()
returns int language sql immutable parallel safe
return 37;

comment on function ranked_ledger.fence_tokens() is
  'What a client''s fence around the lines may cost, in tokens: taken off a budget before anything is packed.';

create or replace function ranked_ledger.one_line(p_text text)
returns text language sql immutable parallel safe
return btrim(regexp_replace(p_text, '[[:space:][:cntrl:]\u0085\u2028\u2029]+', ' ', 'g'));

comment on function ranked_ledger.one_line(text) is
  'A text without line breaks: what was recorded cannot draw a second item with a provenance of its own choice.';

-- Packs ranked hits into a token budget, best first: a hit that does not fit shows its summary, then is dropped, and both
-- are named in the answer. Null budget: nothing is packed.
--
-- Pins stand first whatever is asked, so without a limit of their own a few long ones would take the whole budget and the
-- question would get no answer. They share half of what the fence leaves. A pin that does not fit there is shortened or
-- dropped like any other row and does not compete for the other half: what it won would be taken from what answers the
-- question, and whether a pin is shown would depend on what was asked. What the pins leave of their half is everybody's.
create or replace function ranked_ledger.pack_hits(p_hits jsonb, p_max_tokens int)
returns jsonb language plpgsql immutable
set search_path = public, extensions, pg_temp
as $$
declare
  v_left      int := p_max_tokens - ranked_ledger.fence_tokens();
  v_pins_left int := v_left / 2;
  v_room      int;
  v_hit       jsonb;
  v_kept      jsonb[] := '{}';
  v_shortened uuid[] := '{}';
  v_dropped   uuid[] := '{}';
begin
  for v_hit in select h.value from jsonb_array_elements(p_hits) with ordinality as h order by h.ordinality loop
    v_room := case when (v_hit ->> 'pinned')::boolean then least(v_pins_left, v_left) else v_left end; -- null: no end
    if (v_hit ->> 'tokens')::int > v_room then
      if (v_hit ->> 'summary_tokens')::int > v_room then
        v_dropped := v_dropped || (v_hit ->> 'memory_id')::uuid;
        continue;
      end if;
      v_shortened := v_shortened || (v_hit ->> 'memory_id')::uuid;
      v_hit := v_hit || jsonb_build_object('shortened', true, 'line', v_hit -> 'summary_line', 'tokens', v_hit -> 'summary_tokens');
    end if;
    v_left := v_left - (v_hit ->> 'tokens')::int;
    if (v_hit ->> 'pinned')::boolean then
      v_pins_left := v_pins_left - (v_hit ->> 'tokens')::int;
    end if;
    v_kept := v_kept || (v_hit - '{summary_line,summary_tokens}'::text[] || jsonb_build_object('rank', cardinality(v_kept) + 1));
  end loop;
  return jsonb_build_object('hits', to_jsonb(v_kept), 'shortened', to_jsonb(v_shortened), 'dropped', to_jsonb(v_dropped));
end
$$;

comment on function ranked_ledger.pack_hits(jsonb, int) is
  'Hits that fit a budget of tokens, ranked anew, pins in half of it at most; what was shortened and dropped.';

-- ranking/050_arguments.sql -----------------------------------------------------------------------------------------

-- Arguments that the recalls of both stores take, checked and with their defaults.

create or replace function ranked_ledger.check_weight(p_name text, p_value float8)
returns void language plpgsql immutable
set search_path = public, extensions, pg_temp
as $$
begin
  if p_value is null or p_value < 0 or p_value in ('NaN', 'Infinity') then
    raise sqlstate '22023' using
      message = format('%s is a finite number of at least 0; it is %s', p_name, coalesce(p_value::text, 'null')),
      hint = 'Leave it out for its default.';
  elsif p_value > 1e300 then -- the sum of the four overflows
    raise sqlstate '22023' using
      message = format('%s is at most 1e300; it is %s', p_name, p_value), hint = 'Only the proportions of the weights matter.';
  end if;
end
$$;

comment on function ranked_ledger.check_weight(text, float8) is 'Refuses (22023) a weight that is null, negative, NaN, infinite or above 1e300.';

create or replace function ranked_ledger.positive_or(p_value float8, p_default float8)
returns float8 language sql immutable parallel safe
return case when p_value > 0 and p_value < 'Infinity'::float8 then p_value else p_default end;

comment on function ranked_ledger.positive_or(float8, float8) is
  'The value where it is a positive finite number, else the default: null, 0, negative, NaN, infinite mean the default.';

create or replace function ranked_ledger.check_unit(p_name text, p_value float8)
returns void language plpgsql immutable
set search_path = public, extensions, pg_temp
as $$
begin
  if p_value not between 0 and 1 then -- NaN is above 1
    raise sqlstate '22023' using
      message = format('%s is a number from 0 to 1; it is %s', p_name, p_value), hint = 'Leave it out for its default.';
  end if;
end
$$;

comment on function ranked_ledger.check_unit(text, float8) is 'Refuses (22023) a number outside [0, 1]. Null passes.';

create or replace function ranked_ledger.max_matches()
returns int language sql immutable parallel safe
return 1000;

comment on function ranked_ledger.max_matches() is
  'Rows of one recall at most: 1,000. PostgREST cuts a longer answer at its max_rows without a word; we cut first and say so.';

create or replace function ranked_ledger.match_count(p_count int)
returns int language sql immutable parallel safe
return least(case when p_count > 0 then p_count else 10 end, ranked_ledger.max_matches());

comment on function ranked_ledger.match_count(int) is 'Null or not positive: 10. At most max_matches().';

create or replace function ranked_ledger.vector_of(p_embedding text)
returns vector language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
begin
  if p_embedding is null then
    return null;
  end if;
  return p_embedding::vector;
exception when data_exception or program_limit_exceeded then
  raise sqlstate '22023' using
    message = format('embedding is not a vector: %s.', left(sqlerrm, 200)),
    hint = 'Send finite numbers in brackets, like [0.1,0.2].';
end
$$;

comment on function ranked_ledger.vector_of(text) is
  'A vector from its text, null from null. Refuses what is no finite vector (22023).';

create or replace function ranked_ledger.check_direction(p_embedding vector)
returns void language plpgsql immutable
set search_path = public, extensions, pg_temp
as $$
begin
  if vector_norm(p_embedding) = 0 then
    raise sqlstate '22023' using
      message = 'embedding is all zeros: it has no direction that could be compared.',
      hint = 'Leave the embedding out; the text is then found by its words.';
  end if;
end
$$;

comment on function ranked_ledger.check_direction(vector) is 'Refuses (22023) a vector of zeros. Null passes.';

-- ranking/090_access.sql --------------------------------------------------------------------------------------------

-- What both stores are built with. Whichever migration comes first makes these functions, and whichever is taken out last
-- takes them along (docs/uninstall.md).
create or replace function ranked_ledger.shared_functions()
returns text[] language sql immutable parallel safe
return array[
  'any_word', 'awaits_confirmation', 'calibrate', 'check_direction', 'check_unit', 'check_weight', 'clamp', 'dependency',
  'fence_tokens', 'has_any', 'match_count', 'max_matches', 'occurrences', 'one_line', 'pack_hits', 'positive_or', 'rank_of_any',
  'recency', 'relevance', 'saturate', 'score', 'shared_functions', 'text_or_cosine', 'tokens', 'vector_of'];

comment on function ranked_ledger.shared_functions() is
  'Names of the functions in ranked_ledger that the ledger and the long-term memory both call.';

-- The service role alone may call them.
do $do$
declare
  v_function regprocedure;
begin
  for v_function in
    select p.oid::regprocedure from pg_proc p
    where p.pronamespace = 'ranked_ledger'::regnamespace and p.proname = any (ranked_ledger.shared_functions())
  loop
    execute format('revoke execute on function %s from public, anon, authenticated', v_function);
    execute format('grant execute on function %s to service_role', v_function);
  end loop;
end
$do$;

-- decision_ledger/010_workspace_settings.sql ------------------------------------------------------------------------

-- The configuration is kept by name: a stored regconfig would refuse the host's next pg_upgrade.
create table if not exists ranked_ledger.workspace_settings (
  workspace_id text primary key,
  text_config  text not null default 'pg_catalog.english'
);

alter table ranked_ledger.workspace_settings enable row level security;

comment on table ranked_ledger.workspace_settings is
  'What a workspace chose: the text search configuration of its decisions. No row: English.';

create or replace function ranked_ledger.text_config(p_workspace_id text)
returns regconfig language sql stable parallel safe
set search_path = public, extensions, pg_temp
as $$
  select coalesce((select s.text_config from ranked_ledger.workspace_settings s where s.workspace_id = p_workspace_id),
                  'pg_catalog.english')::regconfig
$$;

comment on function ranked_ledger.text_config(text) is
  'The text search configuration of a workspace, english where none was chosen.';

-- decision_ledger/012_similarity_ranges.sql -------------------------------------------------------------------------

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

-- decision_ledger/020_stream_id.sql ---------------------------------------------------------------------------------

-- The identity of a stream. A key of fixed width, so that a task id of any length (a B-tree entry ends at 2,704 bytes)
-- and a null project or task are as good as any other. md5 is enough: what shares an id shares a numbering, never rights.
create or replace function ranked_ledger.stream_id(p_workspace_id text, p_project_id text, p_task_id text)
returns uuid language sql immutable parallel safe
return md5(char_length(p_workspace_id) || ':' || p_workspace_id
           || coalesce('p' || char_length(p_project_id) || ':' || p_project_id, '-')
           || coalesce('t' || char_length(p_task_id) || ':' || p_task_id, '-'))::uuid;

comment on function ranked_ledger.stream_id(text, text, text) is
  'The stream of a decision: one value for each (workspace, project, task), null project and task being values of their own.';

-- The greatest step that is given or assigned. Greater ones in an upgraded ledger are kept and ignored for "newest".
create or replace function ranked_ledger.max_step()
returns int language sql immutable parallel safe
return 1000000000;

comment on function ranked_ledger.max_step() is 'The greatest step of a stream: 1,000,000,000.';

-- decision_ledger/022_workspace_key.sql -----------------------------------------------------------------------------

-- A workspace in eight bytes, for the derived copies. Two that share a key (2^32 of them before that is to be expected)
-- share a place to look, never an answer: what is answered is read again from the tables, by the workspace's whole name.
create or replace function ranked_ledger.workspace_key(p_workspace_id text)
returns bigint language sql immutable parallel safe
return ('x' || left(md5(p_workspace_id), 16))::bit(64)::bigint;

comment on function ranked_ledger.workspace_key(text) is 'The first 64 bits of the md5 of a workspace''s name.';

-- decision_ledger/030_agent_decision_ledger.sql ---------------------------------------------------------------------

-- One row a decision, beside the host's agent_memories. Names and columns of the published proposal first: where its
-- table is installed already, it becomes ours by the guarded additions below and keeps its rows.
create table if not exists public.agent_decision_ledger (
  id               uuid primary key default gen_random_uuid(),
  memory_id        uuid not null unique references public.agent_memories (id) on delete cascade,
  workspace_id     text not null,
  project_id       text,
  task_id          text,
  flow_id          text,
  step_index       int not null constraint agent_decision_ledger_step_is_not_negative check (step_index >= 0),
  rationale        text,
  importance       numeric(3, 2) not null default 0.50
                   constraint agent_decision_ledger_importance_in_unit_range check (importance between 0 and 1),
  pinned           boolean not null default false,
  recall_count     int not null default 0,
  used_count       int not null default 0,
  last_recalled_at timestamptz,
  metadata         jsonb not null default '{}',
  created_at       timestamptz not null default now(),
  updated_at       timestamptz not null default now()
);

alter table public.agent_decision_ledger enable row level security;

alter table public.agent_decision_ledger
  add column if not exists stream_id uuid not null
    generated always as (ranked_ledger.stream_id(workspace_id, project_id, task_id)) stored,
  add column if not exists alternatives jsonb not null default '[]',
  add column if not exists embedding_model text,
  add column if not exists set_aside_at timestamptz,
  add column if not exists search_lexemes tsvector;

do $do$
begin
  if not exists (select from pg_constraint
                 where conrelid = 'public.agent_decision_ledger'::regclass
                   and conname = 'agent_decision_ledger_alternatives_are_few_texts') then
    alter table public.agent_decision_ledger add constraint agent_decision_ledger_alternatives_are_few_texts check (
      case when jsonb_typeof(alternatives) = 'array'
           then jsonb_array_length(alternatives) <= 20
                and not jsonb_path_exists(alternatives, '$[*] ? (@.type() != "string")')
           else false end);
  end if;
end
$do$;

-- "newest step of the stream", the timeline of a task
create index if not exists agent_decision_ledger_stream_step_idx
  on public.agent_decision_ledger (stream_id, step_index desc);
create index if not exists agent_decision_ledger_workspace_step_idx
  on public.agent_decision_ledger (workspace_id, step_index desc, memory_id);

comment on table public.agent_decision_ledger is
  'Ranked Ledger: where in the work a decision stands (step in its stream), how much it matters, why. One row a memory of type decision; its lifecycle in force is agent_memories.lifecycle_status.';
comment on column public.agent_decision_ledger.step_index is
  'Position in the stream (workspace, project, task). Final at commit; provisional while ranked_ledger.pending_steps names the row.';
comment on column public.agent_decision_ledger.alternatives is 'What was rejected: a jsonb array of at most 20 texts.';
comment on column public.agent_decision_ledger.set_aside_at is 'When the memory was retyped away from decision; null: in force.';
comment on column public.agent_decision_ledger.search_lexemes is
  'Lexemes of content and rationale in the workspace''s text search configuration, kept by triggers.';
comment on column public.agent_decision_ledger.embedding_model is 'The model of the thought''s vector; null: unknown, as the host filled it.';
comment on column public.agent_decision_ledger.metadata is
  'Notes of the ledger: step_given and step_reason where a given step could not be used, moves between streams.';

-- decision_ledger/040_agent_decision_edges.sql ----------------------------------------------------------------------

create table if not exists public.agent_decision_edges (
  id             uuid primary key default gen_random_uuid(),
  from_memory_id uuid not null references public.agent_memories (id) on delete cascade,
  to_memory_id   uuid not null references public.agent_memories (id) on delete cascade,
  relation       text not null
                 constraint agent_decision_edges_relation_is_known check (relation in ('depends_on', 'informs', 'blocks')),
  metadata       jsonb not null default '{}',
  created_at     timestamptz not null default now(),
  unique (from_memory_id, to_memory_id, relation),
  constraint agent_decision_edges_ends_differ check (from_memory_id <> to_memory_id)
);

alter table public.agent_decision_edges enable row level security;

create index if not exists agent_decision_edges_to_idx on public.agent_decision_edges (to_memory_id, relation);

comment on table public.agent_decision_edges is
  'Ranked Ledger: what rests on what. "from depends_on to": the from decision needs the to decision. Both ends are of one workspace, depends_on has no cycle.';

-- decision_ledger/050_streams.sql -----------------------------------------------------------------------------------

create table if not exists ranked_ledger.streams (
  stream_id    uuid primary key,
  workspace_id text not null,
  project_id   text,
  task_id      text,
  newest_step  int not null default -1,
  constraint streams_id_is_of_its_scope check (stream_id = ranked_ledger.stream_id(workspace_id, project_id, task_id))
);

alter table ranked_ledger.streams enable row level security;

create index if not exists streams_workspace_idx on ranked_ledger.streams (workspace_id);

comment on table ranked_ledger.streams is
  'One row a stream: the lock under which its steps are settled, and its newest settled step (derived: the greatest step of its settled rows up to 1,000,000,000; -1 where there is none).';

-- decision_ledger/060_pending_steps.sql -----------------------------------------------------------------------------

-- The mark "not settled yet". A narrow table beside the ledger instead of a column in it: where nobody else wrote to the
-- stream the provisional step is the final one, and then the wide ledger row is written once. A settlement finds its own
-- marks by transaction and only those left over by stream: rows that others settled stay as dead entries for as long as any
-- transaction of the server is open, and an index by stream would walk all of them.
create table if not exists ranked_ledger.pending_steps (
  id            bigint primary key generated always as identity,
  stream_id     uuid not null,
  memory_id     uuid,
  step_is_given boolean not null default false,
  is_left_over  boolean not null default current_setting('transaction_isolation') = 'serializable',
  txid          xid8 not null default pg_current_xact_id(),
  created_at    timestamptz not null default now()
);

alter table ranked_ledger.pending_steps enable row level security;

create index if not exists pending_steps_left_over_idx on ranked_ledger.pending_steps (stream_id) where is_left_over;
create index if not exists pending_steps_memory_idx on ranked_ledger.pending_steps (memory_id);
create index if not exists pending_steps_txid_idx on ranked_ledger.pending_steps (txid);

comment on table ranked_ledger.pending_steps is
  'Rows whose step is provisional, in the order of their writes, until the settlement at commit. Without a memory: the stream lost a row, its newest step is to be found again.';
comment on column ranked_ledger.pending_steps.is_left_over is
  'Its own transaction could not settle it (an old snapshot, a lock that was not to be had): the next settlement of the stream does.';

-- decision_ledger/070_enrolment_failures.sql ------------------------------------------------------------------------

create table if not exists ranked_ledger.enrolment_failures (
  id           bigint primary key generated always as identity,
  memory_id    uuid unique,
  workspace_id text,
  stream_id    uuid,
  operation    text not null,
  reason       text not null,
  failed_with  text not null,
  is_transient boolean not null default false,
  failed_at    timestamptz not null default now()
);

alter table ranked_ledger.enrolment_failures enable row level security;

create index if not exists enrolment_failures_transient_idx on ranked_ledger.enrolment_failures (stream_id)
  where is_transient;

comment on table ranked_ledger.enrolment_failures is
  'What our triggers could not do while the host''s write went through: the last reason and SQLSTATE of a memory. The next settlement of the stream mends what only the moment refused, enroll_missing_decisions the rest.';
comment on column ranked_ledger.enrolment_failures.is_transient is
  'Only the moment refused it (a snapshot, a deadlock, a lock): the next settlement of the stream tries it once more.';

-- decision_ledger/080_idempotency_keys.sql --------------------------------------------------------------------------

create table if not exists ranked_ledger.idempotency_keys (
  workspace_id text not null,
  operation    text not null,
  key          text not null,
  digest       bytea not null,
  memory_ids   uuid[] not null default '{}',
  created_at   timestamptz not null default now(),
  primary key (workspace_id, operation, key)
);

alter table ranked_ledger.idempotency_keys enable row level security;

comment on table ranked_ledger.idempotency_keys is
  'Which request a key stood for (a digest, none of its words) and the decisions that it wrote. By workspace and operation: the host''s own idempotency_key is unique over all workspaces, so our writes leave it null.';

-- decision_ledger/090_decision_history.sql --------------------------------------------------------------------------

create table if not exists ranked_ledger.lifecycle_transitions (
  id               bigint primary key generated always as identity,
  memory_id        uuid not null references public.agent_memories (id) on delete cascade,
  lifecycle_before text not null,
  lifecycle_status text not null,
  stream_step      int,
  reason           text,
  actor            text,
  changed_at       timestamptz not null default now(),
  stream_id        uuid
);

alter table ranked_ledger.lifecycle_transitions add column if not exists stream_id uuid;
alter table ranked_ledger.lifecycle_transitions enable row level security;

create index if not exists lifecycle_transitions_memory_idx on ranked_ledger.lifecycle_transitions (memory_id, id);

comment on table ranked_ledger.lifecycle_transitions is
  'Each change of a decision''s lifecycle: from, to, its stream then and the newest step of that, the time. Derived; agent_memories.lifecycle_status is in force.';

-- No foreign key: two of the host's transactions that delete both ends of an edge would meet in a deadlock, the one with the
-- lock on the dependent's row, the other with that on the edge.
create table if not exists ranked_ledger.lost_grounds (
  memory_id      uuid not null,
  lost_memory_id uuid not null,
  relation       text not null,
  lost_at        timestamptz not null default now(),
  primary key (memory_id, lost_memory_id, relation)
);

alter table ranked_ledger.lost_grounds enable row level security;

comment on table ranked_ledger.lost_grounds is
  'Decisions that rested on one that is gone: ids and time only.';

create table if not exists ranked_ledger.forgotten_decisions (
  memory_id       uuid primary key,
  workspace_id    text not null,
  thought_deleted boolean not null,
  dependents      uuid[] not null default '{}',
  left_superseded uuid[] not null default '{}',
  forgotten_at    timestamptz not null default now()
);

alter table ranked_ledger.forgotten_decisions enable row level security;

comment on table ranked_ledger.forgotten_decisions is
  'Ids of forgotten decisions, none of their words: a repeat answers the same, a key that wrote one answers "gone".';

-- decision_ledger/100_decision_lexemes.sql --------------------------------------------------------------------------

-- A tsvector ends at 1 MB of lexemes and positions (54000). What is longer is indexed as far as it fits: a decision that is
-- found by the first half of its words is better than a write that fails. Nor is more than a million characters read: 20 MB
-- cost the host's write seven seconds, and the API's statements end after eight.
--
-- The words of the summary stand behind them, of weight A, and are no part of the text: `ts_filter(lexemes, '{d}')` is the text
-- alone. The published relevance knows nothing of them. A position ends at 16,383: of a text of more words, a word of the summary that
-- the end of the text has too stands at that position twice, and is kept once, as the text's.
create or replace function ranked_ledger.decision_lexemes(
  p_config regconfig, p_content text, p_rationale text, p_summary text)
returns tsvector language plpgsql immutable parallel safe
set search_path = public, extensions, pg_temp
set client_min_messages = warning -- words beyond 2 KB are left out with a notice each
as $$
declare
  v_text    text := left(coalesce(p_content, '') || ' ' || coalesce(p_rationale, ''), 1000000);
  v_summary tsvector := setweight(to_tsvector(p_config, left(coalesce(p_summary, ''), 2000)), 'A');
begin
  -- below this size no text can reach the limit, so the common case pays for no subtransaction
  if octet_length(v_text) <= 100000 then
    return to_tsvector(p_config, v_text) || v_summary;
  end if;
  loop
    begin
      return to_tsvector(p_config, v_text) || v_summary;
    exception when program_limit_exceeded then
      v_text := left(v_text, char_length(v_text) / 2);
    end;
  end loop;
end
$$;

comment on function ranked_ledger.decision_lexemes(regconfig, text, text, text) is
  'What is searched: content, a space, the rationale; and behind them, of weight A, the first 2,000 characters of the summary. Of a text whose lexemes exceed 1 MB, the part from its start that fits, of a million characters at most.';

-- Rows that reach the ledger without their lexemes, and rationales that change.
create or replace function ranked_ledger.fill_search_lexemes()
returns trigger language plpgsql security definer -- a writer of the ledger may have no right on agent_memories
set search_path = public, extensions, pg_temp
as $$
begin
  new.search_lexemes := (
    select ranked_ledger.decision_lexemes(ranked_ledger.text_config(new.workspace_id), m.content, new.rationale, m.summary)
    from (select new.memory_id as id) as n left join public.agent_memories m on m.id = n.id);
  return new;
end
$$;

comment on function ranked_ledger.fill_search_lexemes() is 'Keeps search_lexemes equal to the words of content, rationale and summary.';

create or replace trigger agent_decision_ledger_fill_lexemes_insert
  before insert on public.agent_decision_ledger
  for each row when (new.search_lexemes is null)
  execute function ranked_ledger.fill_search_lexemes();

create or replace trigger agent_decision_ledger_fill_lexemes_update
  before update on public.agent_decision_ledger
  for each row when (new.rationale is distinct from old.rationale)
  execute function ranked_ledger.fill_search_lexemes();

-- Words that did not change are not written again.
create or replace function ranked_ledger.read_anew(p_workspace_id text)
returns void language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_config regconfig := ranked_ledger.text_config(p_workspace_id);
begin
  perform from public.agent_decision_ledger l
  where l.workspace_id = p_workspace_id order by l.memory_id for no key update;
  update public.agent_decision_ledger l
  set search_lexemes = d.lexemes
  from (select r.memory_id, ranked_ledger.decision_lexemes(v_config, m.content, r.rationale, m.summary) as lexemes
        from public.agent_decision_ledger r join public.agent_memories m on m.id = r.memory_id
        where r.workspace_id = p_workspace_id offset 0) as d -- read once
  where l.memory_id = d.memory_id and l.search_lexemes is distinct from d.lexemes;
end
$$;

comment on function ranked_ledger.read_anew(text) is
  'Reads the words of a workspace''s decisions again, in its text search configuration of now.';

-- The words of a question are read in the configuration of now, so those of the decisions have to be too. One that does not
-- exist is refused here (42704), and not at each write that follows.
create or replace function ranked_ledger.follow_text_config()
returns trigger language plpgsql
set search_path = public, extensions, pg_temp
as $$
begin
  perform ranked_ledger.read_anew(w.workspace_id)
  from (select distinct u.workspace_id from unnest(array[old.workspace_id, new.workspace_id]) as u (workspace_id)) as w
  where w.workspace_id is not null;
  return null;
end
$$;

comment on function ranked_ledger.follow_text_config() is
  'A workspace whose text search configuration changes is indexed anew, in the transaction that changes it.';

create or replace trigger workspace_settings_follow_text_config
  after insert or update or delete on ranked_ledger.workspace_settings
  for each row execute function ranked_ledger.follow_text_config();

do $do$
begin
  if to_regprocedure('ranked_ledger.decision_lexemes(regconfig, text, text)') is not null then -- it read no summary
    perform ranked_ledger.read_anew(w.workspace_id) from (select distinct l.workspace_id from public.agent_decision_ledger l) as w;
    execute 'drop function ranked_ledger.decision_lexemes(regconfig, text, text)';
  end if;
end
$do$;

-- decision_ledger/110_settle_steps.sql ------------------------------------------------------------------------------

-- The life of a step. At insert a row gets a provisional step, the newest that its transaction sees + 1, and a row in
-- pending_steps; nothing is locked, so a host transaction that stays open blocks nobody. At commit a deferred trigger
-- settles every stream that the transaction wrote to, once and in sorted order (in the order of events 21 of 40 transactions
-- met a deadlock): it locks the streams, numbers their pending rows behind the newest settled step, and lifts the marks.

create or replace function ranked_ledger.newest_settled_step(p_stream_id uuid)
returns int language sql stable
set search_path = public, extensions, pg_temp
as $$
  select coalesce((
    select l.step_index from public.agent_decision_ledger l
    where l.stream_id = p_stream_id and l.step_index <= ranked_ledger.max_step()
      and not exists (select from ranked_ledger.pending_steps p where p.memory_id = l.memory_id)
    order by l.step_index desc limit 1), -1)
$$;

comment on function ranked_ledger.newest_settled_step(uuid) is
  'What streams.newest_step has to equal, from the rows themselves.';

create or replace function ranked_ledger.lock_streams(p_stream_ids uuid[])
returns void language plpgsql
set search_path = public, extensions, pg_temp
as $$
begin
  insert into ranked_ledger.streams (stream_id, workspace_id, project_id, task_id, newest_step)
  select l.stream_id, l.workspace_id, l.project_id, l.task_id, ranked_ledger.newest_settled_step(l.stream_id)
  from unnest(p_stream_ids) as u (stream_id)
  cross join lateral (select l.* from public.agent_decision_ledger l where l.stream_id = u.stream_id limit 1) as l
  where not exists (select from ranked_ledger.streams s where s.stream_id = u.stream_id)
  order by l.stream_id
  on conflict (stream_id) do nothing;

  -- `for no key update`, since `for update` collides with foreign-key checks
  perform from ranked_ledger.streams s where s.stream_id = any (p_stream_ids) order by s.stream_id for no key update;
end
$$;

comment on function ranked_ledger.lock_streams(uuid[]) is 'Locks streams until the end of the transaction, in sorted order.';

-- Marks that other transactions left, and that we may settle now. Nothing is waited for: a transaction that moves, edits or
-- deletes such a row may stay open, and the writers of the stream go past it.
create or replace function ranked_ledger.take_left_over(p_stream_ids uuid[])
returns bigint[] language sql volatile
set search_path = public, extensions, pg_temp
as $$
  with marks as materialized (
    select p.id, p.memory_id from ranked_ledger.pending_steps p
    where p.is_left_over and p.stream_id = any (p_stream_ids) and p.txid <> pg_current_xact_id()
    order by p.id for update skip locked),
  held as materialized (
    select l.memory_id from public.agent_decision_ledger l
    where l.memory_id in (select m.memory_id from marks m) for no key update skip locked)
  select coalesce(array_agg(m.id), '{}') from marks m
  where m.memory_id in (select h.memory_id from held h)
     or not exists (select from public.agent_decision_ledger l where l.memory_id = m.memory_id)
$$;

comment on function ranked_ledger.take_left_over(uuid[]) is
  'Locks the marks of earlier transactions on these streams, and their ledger rows; those that somebody holds are left.';

-- pending_steps is empty most of the time, and its statistics mislead the planner: every row is looked up by an index
-- (`offset 0`), and nothing is joined with the marks themselves, which took 27 seconds for 10,000 rows where one was expected.
-- A plan that holds for any number of rows is made once a session; a plan a call cost more than the settlement.
create or replace function ranked_ledger.settle_streams(p_stream_ids uuid[])
returns int language plpgsql
set search_path = public, extensions, pg_temp
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_own     xid8 := pg_current_xact_id();
  v_left    bigint[] := '{}';
  v_settled int;
begin
  perform ranked_ledger.lock_streams(p_stream_ids);

  -- what earlier transactions left
  if exists (select from ranked_ledger.enrolment_failures f where f.is_transient and f.stream_id = any (p_stream_ids)) then
    perform ranked_ledger.mend_transient_failures(p_stream_ids);
    perform ranked_ledger.lock_streams(p_stream_ids); -- one that had no row until now has no stream yet
  end if;
  if exists (select from ranked_ledger.pending_steps p
             where p.is_left_over and p.stream_id = any (p_stream_ids) and p.txid <> v_own) then
    v_left := ranked_ledger.take_left_over(p_stream_ids);
  end if;

  -- streams that lost a row
  if v_left <> '{}' or exists (select from ranked_ledger.pending_steps p where p.txid = v_own and p.memory_id is null) then
    update ranked_ledger.streams s set newest_step = f.newest
    from (select u.stream_id, ranked_ledger.newest_settled_step(u.stream_id) as newest
          from (select distinct p.stream_id from ranked_ledger.pending_steps p
                where p.memory_id is null and (p.txid = v_own or p.id = any (v_left)) and p.stream_id = any (p_stream_ids)) as u
          offset 0) as f
    where s.stream_id = f.stream_id and s.newest_step <> f.newest;
  end if;

  -- number: in the order of the writes, each assigned step is one more than the greatest before it, given ones included
  with mark as (
    select p.id, p.stream_id, p.memory_id, p.step_is_given from ranked_ledger.pending_steps p
    where p.txid = v_own and p.stream_id = any (p_stream_ids)
    union all
    select p.id, p.stream_id, p.memory_id, p.step_is_given from ranked_ledger.pending_steps p where p.id = any (v_left)),
  counted as (
    select m.stream_id, m.memory_id, m.id, m.step_is_given, l.step_index,
           (select s.newest_step from ranked_ledger.streams s where s.stream_id = m.stream_id) as newest,
           count(*) filter (where not m.step_is_given) over (partition by m.stream_id order by m.id) as assigned
    from mark m
    cross join lateral (
      select d.stream_id, d.step_index from public.agent_decision_ledger d where d.memory_id = m.memory_id offset 0) as l
    where l.stream_id = m.stream_id),
  placed as materialized (
    select c.stream_id, c.memory_id, c.step_is_given, c.step_index,
           least(ranked_ledger.max_step(), c.assigned + greatest(c.newest, max(
             case when c.step_is_given and c.step_index <= ranked_ledger.max_step()
                  then c.step_index - c.assigned end) over (partition by c.stream_id order by c.id))) as final_step
    from counted c),
  moved as (
    update public.agent_decision_ledger l set step_index = p.final_step
    from placed p
    where l.memory_id = p.memory_id and not p.step_is_given and p.step_index <> p.final_step),
  reached as (
    update ranked_ledger.streams s set newest_step = r.newest
    from (select p.stream_id, max(case when not p.step_is_given then p.final_step
                                       when p.step_index <= ranked_ledger.max_step() then p.step_index end) as newest
          from placed p group by p.stream_id) as r
    where s.stream_id = r.stream_id and s.newest_step < r.newest)
  select count(*) into v_settled from placed;

  delete from ranked_ledger.pending_steps p where p.txid = v_own and p.stream_id = any (p_stream_ids);
  if v_left <> '{}' then
    delete from ranked_ledger.pending_steps p where p.id = any (v_left);
  end if;
  return v_settled;
end
$$;

comment on function ranked_ledger.settle_streams(uuid[]) is
  'Settles the pending rows of streams, those of this transaction and those left over, under the streams'' locks. Returns how many.';

-- lock_timeout: a transaction that settled early may hold a stream for as long as it likes, and a host's commit neither waits
-- for it without end nor becomes the victim of a deadlock; the rows stay marked.
create or replace function ranked_ledger.settle_steps()
returns trigger language plpgsql security definer -- runs at the commit of writers with no right on our tables
set search_path = public, extensions, pg_temp
set lock_timeout = '2s'
as $$
begin
  -- one deferred event a row, one settlement a transaction; a serializable one would conflict with every other writer
  if current_setting('ranked_ledger.unsettled', true) is distinct from '1'
     or current_setting('transaction_isolation') = 'serializable' then
    return null;
  end if;
  perform set_config('ranked_ledger.unsettled', '', true);
  begin
    perform ranked_ledger.settle_streams(array(
      select distinct p.stream_id from ranked_ledger.pending_steps p where p.txid = pg_current_xact_id()));
  exception when others then
    -- a snapshot older than another writer's settlement (40001), a deadlock, a lock that was not to be had
    update ranked_ledger.pending_steps p set is_left_over = true where p.txid = pg_current_xact_id();
  end;
  return null;
end
$$;

comment on function ranked_ledger.settle_steps() is
  'The settlement at commit. Whatever goes wrong, the host''s commit goes through and the rows stay marked.';

-- a constraint trigger has no `create or replace`
drop trigger if exists settle_steps_at_commit on ranked_ledger.pending_steps;
create constraint trigger settle_steps_at_commit
  after insert on ranked_ledger.pending_steps
  deferrable initially deferred
  for each row execute function ranked_ledger.settle_steps();

-- decision_ledger/115_lost_rows.sql ---------------------------------------------------------------------------------

-- Ledger rows that go: their streams find their newest step again, and what is kept about them goes too.

create or replace function ranked_ledger.note_lost_rows()
returns trigger language plpgsql security definer -- fired by cascades from the host's own deletes
set search_path = public, extensions, pg_temp
as $$
begin
  -- a cascade is one statement a row: one mark a stream and transaction, and no subtransaction id for the others
  if exists (
    select from deleted_rows d
    where not exists (select from ranked_ledger.pending_steps p
                      where p.txid = pg_current_xact_id() and p.stream_id = d.stream_id and p.memory_id is null)
       or exists (select from ranked_ledger.lost_grounds g where g.memory_id = d.memory_id))
  then
    perform set_config('ranked_ledger.unsettled', '1', true);
    insert into ranked_ledger.pending_steps (stream_id)
    select distinct d.stream_id from deleted_rows d order by d.stream_id;
    delete from ranked_ledger.lost_grounds g using deleted_rows d where g.memory_id = d.memory_id;
  end if;
  return null;
exception when others then
  raise warning 'Ranked Ledger: the newest step of a stream was not refreshed (%)', sqlerrm;
  return null;
end
$$;

comment on function ranked_ledger.note_lost_rows() is 'A stream that loses a row finds its newest step again at commit.';

create or replace trigger agent_decision_ledger_note_lost_rows
  after delete on public.agent_decision_ledger
  referencing old table as deleted_rows
  for each statement execute function ranked_ledger.note_lost_rows();

create or replace function ranked_ledger.note_truncation()
returns trigger language plpgsql security definer -- fired by a truncate of the host's table, cascade
set search_path = public, extensions, pg_temp
as $$
begin
  delete from ranked_ledger.pending_steps p where p.memory_id is not null;
  update ranked_ledger.streams s set newest_step = -1 where s.newest_step <> -1;
  delete from ranked_ledger.lost_grounds g
  where not exists (select from public.agent_memories m where m.id = g.memory_id);
  return null;
exception when others then
  raise warning 'Ranked Ledger: the streams of an emptied ledger were not reset (%)', sqlerrm;
  return null;
end
$$;

comment on function ranked_ledger.note_truncation() is 'An emptied ledger has no steps: its streams begin again.';

create or replace trigger agent_decision_ledger_note_truncation
  after truncate on public.agent_decision_ledger
  for each statement execute function ranked_ledger.note_truncation();

-- decision_ledger/120_enroll_memories.sql ---------------------------------------------------------------------------

-- What a memory's metadata says of the decision. Never raises: what cannot be used is noted with its reason.
create or replace function ranked_ledger.enrolment_facts(
  p_metadata jsonb, p_confidence numeric,
  out step_index int, out step_note jsonb, out rationale text, out importance numeric, out alternatives jsonb)
language plpgsql immutable parallel safe
set search_path = public, extensions, pg_temp
as $$
declare
  v_own        jsonb := p_metadata -> 'agent_memory';
  v_step       jsonb := coalesce(nullif(v_own -> 'step_index', 'null'), p_metadata -> 'step_index', v_own -> 'step_index');
  v_importance jsonb := coalesce(nullif(v_own -> 'importance', 'null'), p_metadata -> 'importance');
  v_others     jsonb := coalesce(nullif(v_own -> 'alternatives', 'null'), p_metadata -> 'alternatives');
  v_number     numeric;
begin
  v_number := case when jsonb_typeof(v_step) = 'number' then (v_step #>> '{}')::numeric
                   when v_step #>> '{}' ~ '^[0-9]{1,10}$' then (v_step #>> '{}')::numeric end;
  if v_number between 0 and ranked_ledger.max_step() and v_number = trunc(v_number) then
    step_index := v_number::int;
  elsif v_step is not null then
    step_note := jsonb_build_object(
      'step_given', case when octet_length(v_step::text) <= 1000 then v_step else to_jsonb(left(v_step::text, 250)) end,
      'step_reason', 'not a whole number from 0 to 1000000000');
  end if;

  rationale := coalesce(v_own ->> 'rationale', p_metadata ->> 'rationale');

  v_number := case when jsonb_typeof(v_importance) = 'number' then (v_importance #>> '{}')::numeric end;
  importance := case when v_number between 0 and 1 then v_number
                     else least(1, greatest(0, coalesce(p_confidence, 0.50))) end;

  select coalesce(jsonb_agg(a.value order by a.ordinality), '[]') into alternatives
  from (select e.value, e.ordinality
        from jsonb_array_elements(case when jsonb_typeof(v_others) = 'array' then v_others else '[]' end)
             with ordinality as e
        where jsonb_typeof(e.value) = 'string'
        order by e.ordinality limit 20) as a;
end
$$;

comment on function ranked_ledger.enrolment_facts(jsonb, numeric) is
  'Step, rationale, importance and alternatives of a memory: from metadata.agent_memory, else metadata; importance else from confidence. A step that is no whole number from 0 to 1,000,000,000 is null, with a note.';

-- The step that the next row of a stream would get, as far as this transaction sees. Reads nothing under SERIALIZABLE:
-- each reader of a stream's end conflicts with each writer of it, and one of the host's transactions would be refused.
create or replace function ranked_ledger.next_provisional_step(p_stream_id uuid)
returns int language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
begin
  if current_setting('transaction_isolation') = 'serializable' then
    return 0;
  end if;
  return coalesce((
    select l.step_index + 1 from public.agent_decision_ledger l
    where l.stream_id = p_stream_id and l.step_index <= ranked_ledger.max_step()
    order by l.step_index desc limit 1), 0);
end
$$;

comment on function ranked_ledger.next_provisional_step(uuid) is 'Newest step of the stream + 1, before settlement.';

create or replace function ranked_ledger.enroll_memories(p_memories public.agent_memories[])
returns int language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_enrolled int;
begin
  perform set_config('ranked_ledger.unsettled', '1', true); -- before the marks: the trigger on them may be immediate
  with config as materialized (
    select w.workspace_id, ranked_ledger.text_config(w.workspace_id) as text_config
    from (select distinct m.workspace_id::text from unnest(p_memories) as m) as w),
  facts as materialized (
    select m.id, m.workspace_id, m.project_id, m.task_id, m.flow_id, m.memory_type, m.ordinality, f.*,
           ranked_ledger.stream_id(m.workspace_id, m.project_id, m.task_id) as stream_id,
           ranked_ledger.decision_lexemes(c.text_config, m.content, f.rationale, m.summary) as search_lexemes
    from unnest(p_memories) with ordinality as m
    join config c on c.workspace_id = m.workspace_id
    cross join lateral ranked_ledger.enrolment_facts(m.metadata, m.confidence::numeric) as f),
  bases as materialized (
    select s.stream_id, ranked_ledger.next_provisional_step(s.stream_id) - 1 as newest
    from (select distinct f.stream_id from facts f) as s),
  counted as (
    select f.*, b.newest,
           count(*) filter (where f.step_index is null) over (partition by f.stream_id order by f.ordinality) as assigned
    from facts f join bases b on b.stream_id = f.stream_id),
  placed as (
    select c.*, least(ranked_ledger.max_step(), c.assigned + greatest(c.newest, max(c.step_index - c.assigned)
                        over (partition by c.stream_id order by c.ordinality))) as provisional_step
    from counted c),
  enrolled as (
    insert into public.agent_decision_ledger as l (
      memory_id, workspace_id, project_id, task_id, flow_id, step_index, rationale, importance, alternatives, metadata,
      search_lexemes, set_aside_at)
    select p.id, p.workspace_id, p.project_id, p.task_id, p.flow_id, coalesce(p.step_index, p.provisional_step),
           p.rationale, p.importance, p.alternatives, coalesce(p.step_note, '{}'), p.search_lexemes,
           case when p.memory_type <> 'decision' then now() end -- retyped before it was enrolled
    from placed p order by p.ordinality
    on conflict (memory_id) do nothing
    returning l.memory_id),
  marked as (
    insert into ranked_ledger.pending_steps (stream_id, memory_id, step_is_given)
    select p.stream_id, p.id, p.step_index is not null
    from placed p join enrolled e on e.memory_id = p.id order by p.ordinality)
  select count(*) into v_enrolled from enrolled;
  return v_enrolled;
end
$$;

comment on function ranked_ledger.enroll_memories(public.agent_memories[]) is
  'Writes the ledger rows of memories that have none, in the order given, with provisional steps. Returns how many.';

create or replace function ranked_ledger.note_failures(
  p_memories public.agent_memories[], p_operation text, p_reason text, p_sqlstate text)
returns void language plpgsql
set search_path = public, extensions, pg_temp
as $$
begin
  insert into ranked_ledger.enrolment_failures as f (
    memory_id, workspace_id, stream_id, operation, reason, failed_with, is_transient)
  select m.id, m.workspace_id, ranked_ledger.stream_id(m.workspace_id, m.project_id, m.task_id), p_operation,
         left(p_reason, 1000), p_sqlstate, p_sqlstate in ('40001', '40P01', '55P03')
  from unnest(p_memories) as m
  on conflict (memory_id) do update
  set workspace_id = excluded.workspace_id, stream_id = excluded.stream_id, operation = excluded.operation,
      reason = excluded.reason, failed_with = excluded.failed_with, is_transient = excluded.is_transient,
      failed_at = excluded.failed_at;
exception when others then
  raise warning 'Ranked Ledger: % of % memories failed (%) and could not be noted: %', p_operation,
    cardinality(p_memories), p_reason, sqlerrm;
end
$$;

comment on function ranked_ledger.note_failures(public.agent_memories[], text, text, text) is
  'Keeps what a trigger could not do, once a memory. Never raises: the host''s write goes first.';

-- What both triggers share: p_operation is enrol or follow.
create or replace function ranked_ledger.attend_or_note(p_memories public.agent_memories[], p_operation text)
returns int language plpgsql
set search_path = public, extensions, pg_temp
set lock_timeout = '1s' -- somebody may keep a ledger row locked for as long as it likes; the host's write goes first
as $$
declare
  v_memory   public.agent_memories;
  v_attended int := 0;
begin
  -- Nothing but notes under SERIALIZABLE. The foreign-key check of a ledger row reads agent_memories, as the follower reads
  -- the ledger, and each reader conflicts with each writer of the same pages: one of two of the host's inserts was refused.
  if current_setting('transaction_isolation') = 'serializable' then
    perform ranked_ledger.note_failures(p_memories, p_operation, 'written under SERIALIZABLE', '40001');
    return 0;
  end if;
  begin
    return case p_operation when 'enrol' then ranked_ledger.enroll_memories(p_memories)
                            else ranked_ledger.follow_memories(p_memories) end;
  exception when others then
    null; -- one bad row must not cost the others their place: now one by one
  end;
  foreach v_memory in array p_memories loop
    begin
      v_attended := v_attended + case p_operation when 'enrol' then ranked_ledger.enroll_memories(array[v_memory])
                                                  else ranked_ledger.follow_memories(array[v_memory]) end;
    exception when others then
      perform ranked_ledger.note_failures(array[v_memory], p_operation, sqlerrm, sqlstate);
    end;
  end loop;
  return v_attended;
end
$$;

comment on function ranked_ledger.attend_or_note(public.agent_memories[], text) is
  'Enrols or follows memories; what cannot be done is kept in enrolment_failures.';

create or replace function ranked_ledger.is_full(p_memories public.agent_memories[], p_bytes bigint)
returns boolean language sql immutable parallel safe
return cardinality(p_memories) >= 500 or p_bytes >= 8388608;

comment on function ranked_ledger.is_full(public.agent_memories[], bigint) is
  'Whether a chunk of memories is to be worked off: 500 rows, or 8 MB of text. Bounds what a COPY of long texts holds in memory.';

create or replace function ranked_ledger.enroll_inserted_memories()
returns trigger language plpgsql security definer -- the writer may have no right on our tables: 42501 would lose its write
set search_path = public, extensions, pg_temp
as $$
declare
  v_memory public.agent_memories;
  v_chunk  public.agent_memories[] := '{}';
  v_bytes  bigint := 0;
begin
  for v_memory in select n.* from inserted_memories n where n.memory_type = 'decision' loop
    v_chunk := array_append(v_chunk, v_memory);
    v_bytes := v_bytes + octet_length(v_memory.content) + coalesce(pg_column_size(v_memory.metadata), 0);
    if ranked_ledger.is_full(v_chunk, v_bytes) then
      perform ranked_ledger.attend_or_note(v_chunk, 'enrol');
      v_chunk := '{}';
      v_bytes := 0;
    end if;
  end loop;
  if v_chunk <> '{}' then
    perform ranked_ledger.attend_or_note(v_chunk, 'enrol');
  end if;
  return null;
exception when others then
  raise warning 'Ranked Ledger: decisions were not enrolled (%); enroll_missing_decisions mends it', sqlerrm;
  return null;
end
$$;

comment on function ranked_ledger.enroll_inserted_memories() is
  'Enrols the decisions of a statement. The memory is written whatever happens here.';

-- The published proposal has a row trigger of this name (a transition table needs a statement trigger) over a function of
-- its own, which nothing calls any more.
do $do$
declare
  v_old regprocedure;
begin
  select t.tgfoid::regprocedure into v_old from pg_trigger t
  where t.tgrelid = 'public.agent_memories'::regclass and t.tgname = 'trg_agent_decision_ledger_enroll';
  drop trigger if exists trg_agent_decision_ledger_enroll on public.agent_memories;
  if v_old is not null and v_old <> 'ranked_ledger.enroll_inserted_memories()'::regprocedure
     and not exists (select from pg_trigger t where t.tgfoid = v_old) then
    execute format('drop function %s', v_old);
  end if;
end
$do$;

create trigger trg_agent_decision_ledger_enroll
  after insert on public.agent_memories
  referencing new table as inserted_memories
  for each statement execute function ranked_ledger.enroll_inserted_memories();

-- decision_ledger/130_follow_memories.sql ---------------------------------------------------------------------------

-- A decision whose memory changes: retyped, moved, edited, its lifecycle changed.

create or replace function ranked_ledger.drop_foreign_edges(p_memory_ids uuid[])
returns int language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_gone jsonb;
begin
  with foreign_edge as materialized (
    select e.id from public.agent_decision_edges e
    where (e.from_memory_id = any (p_memory_ids) or e.to_memory_id = any (p_memory_ids))
      and (select m.workspace_id from public.agent_memories m where m.id = e.from_memory_id)
          <> (select m.workspace_id from public.agent_memories m where m.id = e.to_memory_id)
    order by e.id for update),
  gone as (
    delete from public.agent_decision_edges e using foreign_edge f where e.id = f.id
    returning e.from_memory_id, e.to_memory_id, e.relation)
  select jsonb_agg(to_jsonb(g)) into v_gone from gone g;
  if v_gone is null then
    return 0;
  end if;

  begin
    insert into public.agent_memory_audit_events (event_type, workspace_id, memory_id, actor_kind, payload)
    select 'memory_edited', m.workspace_id, m.id, 'system', jsonb_build_object(
      'kind', 'decision_edges_dropped', 'reason', 'moved to another workspace', 'edges', jsonb_agg(g.value))
    from jsonb_array_elements(v_gone) as g
    join public.agent_memories m
      on m.id = case when (g.value ->> 'from_memory_id')::uuid = any (p_memory_ids)
                     then (g.value ->> 'from_memory_id')::uuid else (g.value ->> 'to_memory_id')::uuid end
    group by m.workspace_id, m.id;
  exception when others then -- a decision must not stay in the workspace that it left because the host's audit refuses a row
    raise warning 'Ranked Ledger: edges across workspaces were dropped without an audit event (%)', sqlerrm;
  end;
  return jsonb_array_length(v_gone);
end
$$;

comment on function ranked_ledger.drop_foreign_edges(uuid[]) is
  'Deletes the edges of decisions whose other end is in another workspace, with one audit event a decision.';

create or replace function ranked_ledger.follow_memories(p_memories public.agent_memories[])
returns int language plpgsql
set search_path = public, extensions, pg_temp
set enable_seqscan = off -- as for settle_streams
set plan_cache_mode = force_generic_plan
as $$
declare
  v_moved    uuid[]; -- to another stream
  v_streams  uuid[]; -- from these
  v_emigrant uuid[]; -- to another workspace
begin
  perform ranked_ledger.enroll_memories(array(
    select m from unnest(p_memories) as m
    where not exists (select from public.agent_decision_ledger l where l.memory_id = m.id)));

  perform set_config('ranked_ledger.is_following', '1', true); -- what is moved gets its own mark, below
  with config as materialized (
    select w.workspace_id, ranked_ledger.text_config(w.workspace_id) as text_config
    from (select distinct m.workspace_id::text from unnest(p_memories) as m) as w),
  held as materialized ( -- in id order, as whoever else locks several
    select l.memory_id, l.stream_id as old_stream_id, l.workspace_id as old_workspace_id, l.set_aside_at is null as in_force,
           m.memory_type = 'decision' as is_decision, m.workspace_id, m.project_id, m.task_id, m.flow_id, m.ordinality,
           ranked_ledger.stream_id(m.workspace_id, m.project_id, m.task_id) as stream_id,
           ranked_ledger.decision_lexemes(c.text_config, m.content, l.rationale, m.summary) as search_lexemes
    from unnest(p_memories) with ordinality as m
    join config c on c.workspace_id = m.workspace_id
    join public.agent_decision_ledger l on l.memory_id = m.id
    order by l.memory_id for no key update of l),
  base as materialized (
    select s.stream_id, ranked_ledger.next_provisional_step(s.stream_id) as next_step
    from (select distinct h.stream_id from held h where h.is_decision and h.stream_id <> h.old_stream_id) as s),
  target as materialized (
    select h.*, b.stream_id is not null and h.is_decision and h.stream_id <> h.old_stream_id as is_moved,
           least(ranked_ledger.max_step(), b.next_step - 1 + count(*) filter (where h.stream_id <> h.old_stream_id)
                 over (partition by h.stream_id order by h.ordinality)) as next_step
    from held h left join base b on b.stream_id = h.stream_id),
  aside as (
    update public.agent_decision_ledger l set set_aside_at = now(), updated_at = now()
    from target t where l.memory_id = t.memory_id and not t.is_decision and l.set_aside_at is null),
  followed as (
    update public.agent_decision_ledger l
    set workspace_id = t.workspace_id, project_id = t.project_id, task_id = t.task_id, flow_id = t.flow_id,
        step_index = case when t.is_moved then t.next_step else l.step_index end,
        metadata = case when t.is_moved then l.metadata || jsonb_build_object(
                     'moves', coalesce(l.metadata -> 'moves', '[]') || jsonb_build_array(jsonb_build_object(
                       'workspace_id', l.workspace_id, 'project_id', l.project_id, 'task_id', l.task_id,
                       'step_index', l.step_index, 'at', now()))) else l.metadata end,
        search_lexemes = t.search_lexemes, set_aside_at = null, updated_at = now()
    from target t
    where l.memory_id = t.memory_id and t.is_decision
      and (t.is_moved or not t.in_force or l.flow_id is distinct from t.flow_id
           or l.search_lexemes is distinct from t.search_lexemes))
  select array_agg(t.memory_id order by t.ordinality), array_agg(distinct t.old_stream_id),
         array_agg(t.memory_id) filter (where t.old_workspace_id <> t.workspace_id)
  into v_moved, v_streams, v_emigrant
  from target t where t.is_moved;

  perform set_config('ranked_ledger.is_following', '', true);
  if v_moved is not null then
    perform set_config('ranked_ledger.unsettled', '1', true);
    delete from ranked_ledger.pending_steps p where p.memory_id = any (v_moved);
    insert into ranked_ledger.pending_steps (stream_id, memory_id) -- one statement: the trigger on it may be immediate
    select x.stream_id, x.memory_id
    from (select s.stream_id, null::uuid as memory_id, s.place from unnest(v_streams) with ordinality as s (stream_id, place)
          union all
          select l.stream_id, l.memory_id, v.place
          from unnest(v_moved) with ordinality as v (memory_id, place)
          join public.agent_decision_ledger l on l.memory_id = v.memory_id) as x
    order by x.place;
  end if;
  if v_emigrant is not null then
    perform ranked_ledger.drop_foreign_edges(v_emigrant);
  end if;
  return cardinality(p_memories);
end
$$;

comment on function ranked_ledger.follow_memories(public.agent_memories[]) is
  'Makes ledger rows agree with their memories: enrolled, set aside or restored, moved (the next free step there, the old one in the row''s metadata), their words indexed. Does nothing where they agree.';

create or replace function ranked_ledger.follow_updated_memories()
returns trigger language plpgsql security definer -- as for enrolment: the writer may have no right on our tables
set search_path = public, extensions, pg_temp
as $$
declare
  v_memory public.agent_memories;
  v_chunk  public.agent_memories[] := '{}';
  v_bytes  bigint := 0;
begin
  -- A plan is made once a session, by its first update, mostly of one row. A nested loop over both tables, as a join gets
  -- then, took 40 seconds of a later update of 10,000 rows: a full join cannot be one, and the rest goes by index.
  begin
    insert into ranked_ledger.lifecycle_transitions (memory_id, lifecycle_before, lifecycle_status, stream_id, stream_step)
    select c.id, c.status_before, c.status_after, l.stream_id, s.newest_step -- with what this transaction has recorded and not settled yet
    from (select n.id, o.lifecycle_status as status_before, n.lifecycle_status as status_after
          from memories_after n full join memories_before o on o.id = n.id
          where n.memory_type is not distinct from 'decision' and n.lifecycle_status is distinct from o.lifecycle_status
          offset 0) as c
    cross join lateral (select d.stream_id from public.agent_decision_ledger d where d.memory_id = c.id offset 0) as l
    left join lateral (
      select x.step_index as newest_step from public.agent_decision_ledger x
      where x.stream_id = l.stream_id and x.step_index <= ranked_ledger.max_step()
      order by x.step_index desc limit 1) as s on true;
  exception when others then
    raise warning 'Ranked Ledger: a lifecycle transition was not noted (%)', sqlerrm;
  end;

  for v_memory in -- as they are now: a trigger of the host may have changed them once more
    select m.*
    from (select n.id
          from memories_after n full join memories_before o on o.id = n.id
          where 'decision' in (o.memory_type, n.memory_type)
            and (n.memory_type, n.workspace_id, n.project_id, n.task_id, n.flow_id, n.content, n.summary)
                is distinct from (o.memory_type, o.workspace_id, o.project_id, o.task_id, o.flow_id, o.content, o.summary)
          offset 0) as c
    cross join lateral (select a.* from public.agent_memories a where a.id = c.id offset 0) as m
  loop
    v_chunk := array_append(v_chunk, v_memory);
    v_bytes := v_bytes + octet_length(v_memory.content) + coalesce(pg_column_size(v_memory.metadata), 0);
    if ranked_ledger.is_full(v_chunk, v_bytes) then
      perform ranked_ledger.attend_or_note(v_chunk, 'follow');
      v_chunk := '{}';
      v_bytes := 0;
    end if;
  end loop;
  if v_chunk <> '{}' then
    perform ranked_ledger.attend_or_note(v_chunk, 'follow');
  end if;
  return null;
exception when others then
  raise warning 'Ranked Ledger: decisions were not followed (%); enroll_missing_decisions mends it', sqlerrm;
  return null;
end
$$;

comment on function ranked_ledger.follow_updated_memories() is
  'The ledger follows its memories, a statement at a time. The host''s update goes through whatever happens here.';

-- A statement trigger, as for inserts: row by row, a task of 10,000 decisions that is renamed costs 10,000 subtransactions.
drop trigger if exists trg_agent_decision_ledger_follow on public.agent_memories;
create trigger trg_agent_decision_ledger_follow
  after update on public.agent_memories
  referencing old table as memories_before new table as memories_after
  for each statement execute function ranked_ledger.follow_updated_memories();

-- decision_ledger/140_edge_rules.sql --------------------------------------------------------------------------------

-- Edges: both ends in one workspace, no cycle of depends_on, and a mark where the ground goes.

-- Each decision is visited once. Walking path by path instead visits a decision as often as there are ways to it: where each
-- rests on the three before it, the 21st took seconds.
create or replace function ranked_ledger.depends_on_transitively(p_from uuid, p_to uuid)
returns boolean language sql stable
set search_path = public, extensions, pg_temp
as $$
  with recursive ground as (
    select p_from as memory_id
    union
    select e.to_memory_id
    from ground g
    join public.agent_decision_edges e on e.from_memory_id = g.memory_id and e.relation = 'depends_on'
  )
  select exists (select from ground g where g.memory_id = p_to)
$$;

comment on function ranked_ledger.depends_on_transitively(uuid, uuid) is
  'Whether a decision is reached from another over depends_on; true of itself.';

create or replace function ranked_ledger.dependency_path(p_from uuid, p_to uuid)
returns uuid[] language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
declare
  v_seen     uuid[] := array[p_from];
  v_parents  uuid[] := array[null::uuid];
  v_frontier uuid[] := array[p_from];
  v_next_by  uuid[];
  v_path     uuid[];
  v_step     uuid := p_to;
begin
  if not ranked_ledger.depends_on_transitively(p_from, p_to) then
    return null;
  end if;
  while not p_to = any (v_seen) loop -- breadth first, each with the one that it was first reached from
    select array_agg(n.to_memory_id), array_agg(n.from_memory_id) into v_frontier, v_next_by
    from (select distinct on (e.to_memory_id) e.to_memory_id, e.from_memory_id
          from public.agent_decision_edges e
          where e.from_memory_id = any (v_frontier) and e.relation = 'depends_on' and e.to_memory_id <> all (v_seen)
          order by e.to_memory_id, e.from_memory_id) as n;
    exit when v_frontier is null;
    v_seen := v_seen || v_frontier;
    v_parents := v_parents || v_next_by;
  end loop;
  while v_step is not null loop
    v_path := v_step || v_path;
    v_step := v_parents[array_position(v_seen, v_step)];
  end loop;
  return v_path;
end
$$;

comment on function ranked_ledger.dependency_path(uuid, uuid) is
  'A shortest path of depends_on edges from one decision to another; null where there is none.';

create or replace function ranked_ledger.check_edge()
returns trigger language plpgsql security definer -- reads both ends for a writer who may not
set search_path = public, extensions, pg_temp
as $$
declare
  v_from text;
  v_to   text;
  v_path uuid[];
begin
  select m.workspace_id into v_from from public.agent_memories m where m.id = new.from_memory_id;
  select m.workspace_id into v_to from public.agent_memories m where m.id = new.to_memory_id;
  if v_from is null or v_to is null then
    raise sqlstate 'RL404' using
      message = format('there is no decision %s', case when v_from is null then new.from_memory_id else new.to_memory_id end),
      hint = 'Both ends of an edge are decisions of the same workspace.';
  elsif v_from <> v_to then
    raise sqlstate 'RL462' using
      message = 'an edge cannot cross workspaces',
      hint = 'Record the decision in this workspace too, and link to that one.';
  end if;

  if new.relation = 'depends_on' then
    if current_setting('transaction_isolation') = 'repeatable read' then
      raise sqlstate '0A000' using
        message = 'depends_on cannot be added under REPEATABLE READ: its snapshot hides edges that would make a cycle of it',
        hint = 'Use READ COMMITTED, the default, or SERIALIZABLE.';
    end if;
    -- two transactions that add the two halves of a cycle do not see each other: one lock a workspace, for edges only
    perform pg_advisory_xact_lock(hashtextextended('ranked_ledger.edges ' || v_from, 0));
    -- nothing rests on a decision that is new: it can close no cycle, and what it rests on need not be walked
    if exists (select from public.agent_decision_edges e
               where e.to_memory_id = new.from_memory_id and e.relation = 'depends_on') then
      v_path := ranked_ledger.dependency_path(new.to_memory_id, new.from_memory_id);
    end if;
    if v_path is not null then
      raise sqlstate 'RL461' using
        message = format('depends_on would close a cycle: %s', array_to_string(new.from_memory_id || v_path, ' -> ')),
        detail = array_to_string(new.from_memory_id || v_path, ' -> '),
        hint = 'Remove one of these edges first, or use the relation informs.';
    end if;
  end if;
  return new;
end
$$;

comment on function ranked_ledger.check_edge() is 'Refuses an edge across workspaces (RL462) and a cycle of depends_on (RL461, with the path).';

create or replace trigger agent_decision_edges_check
  before insert or update of from_memory_id, to_memory_id, relation on public.agent_decision_edges
  for each row execute function ranked_ledger.check_edge();

create or replace function ranked_ledger.note_lost_ground()
returns trigger language plpgsql security definer -- fired by cascades from the host's own deletes
set search_path = public, extensions, pg_temp
as $$
begin
  insert into ranked_ledger.lost_grounds (memory_id, lost_memory_id, relation)
  select old.from_memory_id, old.to_memory_id, old.relation
  where not exists (select from public.agent_memories m where m.id = old.to_memory_id)
    and exists (select from public.agent_memories m where m.id = old.from_memory_id)
  on conflict do nothing;
  return null;
exception when others then
  raise warning 'Ranked Ledger: the lost ground of % was not noted (%)', old.from_memory_id, sqlerrm;
  return null;
end
$$;

comment on function ranked_ledger.note_lost_ground() is
  'A decision keeps a mark of what it rested on when that is deleted; an edge that is merely removed leaves none.';

create or replace trigger agent_decision_edges_note_lost_ground
  after delete on public.agent_decision_edges
  for each row when (old.relation = 'depends_on') -- to inform or to block somebody is not to rest on him
  execute function ranked_ledger.note_lost_ground();

-- The cascades of a memory take its edges by one end, then by the other: two of the host's deletes, of the two ends, met in
-- between. Taken once before, in one order, they wait for each other instead.
create or replace function ranked_ledger.hold_edges()
returns trigger language plpgsql security definer -- the host's writer may have no right on our tables
set search_path = public, extensions, pg_temp
as $$
begin
  perform from public.agent_decision_edges e
  where e.from_memory_id = old.id or e.to_memory_id = old.id order by e.id for update;
  return old;
exception when others then
  return old;
end
$$;

comment on function ranked_ledger.hold_edges() is 'Locks the edges of a memory that is deleted, in id order.';

create or replace trigger trg_agent_decision_ledger_hold_edges
  before delete on public.agent_memories
  for each row execute function ranked_ledger.hold_edges();

-- decision_ledger/150_mend.sql --------------------------------------------------------------------------------------

-- What triggers could not do, done later: by the next settlement of the stream, or by the backfill.

create or replace function ranked_ledger.mend_transient_failures(p_stream_ids uuid[])
returns void language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_memories public.agent_memories[];
  v_memory   public.agent_memories;
begin
  select array_agg(x.memory order by x.id) into v_memories
  from (select f.id, m as memory
        from ranked_ledger.enrolment_failures f join public.agent_memories m on m.id = f.memory_id
        where f.is_transient and f.stream_id = any (p_stream_ids)
        order by f.id limit 200 -- a host's commit waits for it
        for update of f skip locked for key share of m skip locked) as x;
  if v_memories is null then
    return;
  end if;
  begin
    perform ranked_ledger.follow_memories(v_memories);
    delete from ranked_ledger.enrolment_failures f where f.memory_id in (select m.id from unnest(v_memories) as m);
    return;
  exception when others then
    null; -- now one by one
  end;
  foreach v_memory in array v_memories loop
    begin
      perform ranked_ledger.follow_memories(array[v_memory]);
      delete from ranked_ledger.enrolment_failures f where f.memory_id = v_memory.id;
    exception when others then
      perform ranked_ledger.note_failures(array[v_memory], 'follow', sqlerrm, sqlstate); -- again, where it was a lock
    end;
  end loop;
end
$$;

comment on function ranked_ledger.mend_transient_failures(uuid[]) is
  'Enrols or follows the memories of these streams for which only the moment was wrong, in the order of their writes.';

create or replace function ranked_ledger.settle_leftovers(p_workspace_id text)
returns int language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_chunk   uuid[];
  v_settled int := 0;
begin
  -- whatever another transaction left and we can see is left over, also where it could not say so
  update ranked_ledger.pending_steps p set is_left_over = true
  where not p.is_left_over and p.txid <> pg_current_xact_id();

  -- rows that have no stream: those of an install of the published proposal
  insert into ranked_ledger.streams (stream_id, workspace_id, project_id, task_id, newest_step)
  select distinct on (l.stream_id) l.stream_id, l.workspace_id, l.project_id, l.task_id,
         ranked_ledger.newest_settled_step(l.stream_id)
  from public.agent_decision_ledger l
  where (p_workspace_id is null or l.workspace_id = p_workspace_id)
    and not exists (select from ranked_ledger.streams s where s.stream_id = l.stream_id)
  order by l.stream_id
  on conflict (stream_id) do nothing;

  -- a stream whose newest step is not that of its rows finds it again, as one that lost a row does
  insert into ranked_ledger.pending_steps (stream_id)
  select s.stream_id from ranked_ledger.streams s
  where (p_workspace_id is null or s.workspace_id = p_workspace_id)
    and s.newest_step <> ranked_ledger.newest_settled_step(s.stream_id);

  for v_chunk in
    select array_agg(s.stream_id)
    from (select d.stream_id, row_number() over (order by d.stream_id) as position
          from (select distinct p.stream_id from ranked_ledger.pending_steps p
                left join public.agent_decision_ledger l on l.memory_id = p.memory_id
                where p_workspace_id is null or l.workspace_id = p_workspace_id or l.memory_id is null) as d) as s
    group by (s.position - 1) / 1000 order by (s.position - 1) / 1000
  loop
    v_settled := v_settled + ranked_ledger.settle_streams(v_chunk);
  end loop;
  return v_settled;
end
$$;

comment on function ranked_ledger.settle_leftovers(text) is 'Settles every stream of a workspace (null: of all) that has provisional steps.';

create or replace function ranked_ledger.follow_strays(p_workspace_id text, p_limit int)
returns int language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_memory   public.agent_memories;
  v_followed int := 0;
begin
  for v_memory in
    select m.* from public.agent_memories m
    join public.agent_decision_ledger l on l.memory_id = m.id
    where (p_workspace_id is null or m.workspace_id = p_workspace_id)
      and (m.memory_type = 'decision'
             and (l.stream_id <> ranked_ledger.stream_id(m.workspace_id, m.project_id, m.task_id)
                  or l.set_aside_at is not null
                  or l.flow_id is distinct from m.flow_id
                  or l.search_lexemes is null)
           or m.memory_type <> 'decision' and l.set_aside_at is null
           or exists (select from ranked_ledger.enrolment_failures f where f.memory_id = m.id))
    order by m.id limit p_limit
  loop
    begin
      v_followed := v_followed + ranked_ledger.follow_memories(array[v_memory]);
      delete from ranked_ledger.enrolment_failures f where f.memory_id = v_memory.id;
    exception when others then
      perform ranked_ledger.note_failures(array[v_memory], 'follow', sqlerrm, sqlstate);
    end;
  end loop;

  -- deleted while triggers, foreign keys among them, were off
  delete from public.agent_decision_ledger l
  where (p_workspace_id is null or l.workspace_id = p_workspace_id)
    and not exists (select from public.agent_memories m where m.id = l.memory_id);

  -- an edge may be added while an end of it moves to another workspace, each unseen by the other
  perform ranked_ledger.drop_foreign_edges(array(
    select e.from_memory_id from public.agent_decision_edges e
    join public.agent_memories f on f.id = e.from_memory_id
    join public.agent_memories t on t.id = e.to_memory_id
    where f.workspace_id <> t.workspace_id and (p_workspace_id is null or p_workspace_id in (f.workspace_id, t.workspace_id))));
  return v_followed;
end
$$;

comment on function ranked_ledger.follow_strays(text, int) is
  'Brings ledger rows that disagree with their memory back into agreement, and edges with the rule on workspaces.';

create or replace function public.enroll_missing_decisions(p_workspace_id text default null, p_limit int default 10000)
returns jsonb language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_memory   public.agent_memories;
  v_chunk    public.agent_memories[] := '{}';
  v_bytes    bigint := 0;
  v_missing  bigint;
  v_tried    int := 0;
  v_enrolled int := 0;
  v_settled  int;
  v_followed int;
begin
  if coalesce(p_limit, 0) not between 1 and 1000000 then
    raise sqlstate '22023' using message = 'p_limit is a number from 1 to 1,000,000';
  end if;
  for v_memory in
    select m.* from public.agent_memories m
    where m.memory_type = 'decision' and (p_workspace_id is null or m.workspace_id = p_workspace_id)
      and not exists (select from public.agent_decision_ledger l where l.memory_id = m.id)
    order by m.created_at, m.id limit p_limit
  loop
    v_tried := v_tried + 1;
    v_chunk := array_append(v_chunk, v_memory);
    v_bytes := v_bytes + octet_length(v_memory.content) + coalesce(pg_column_size(v_memory.metadata), 0);
    if ranked_ledger.is_full(v_chunk, v_bytes) then
      v_enrolled := v_enrolled + ranked_ledger.attend_or_note(v_chunk, 'enrol');
      v_chunk := '{}';
      v_bytes := 0;
    end if;
  end loop;
  v_enrolled := v_enrolled + ranked_ledger.attend_or_note(v_chunk, 'enrol');

  v_followed := ranked_ledger.follow_strays(p_workspace_id, p_limit);
  v_settled := ranked_ledger.settle_leftovers(p_workspace_id);
  perform ranked_ledger.mend_copies(p_workspace_id);

  delete from ranked_ledger.enrolment_failures f
  where (p_workspace_id is null or f.workspace_id is not distinct from p_workspace_id)
    and (f.operation = 'enrol' and exists (select from public.agent_decision_ledger l where l.memory_id = f.memory_id)
         or not exists (select from public.agent_memories m where m.id = f.memory_id));

  -- both ends of an edge deleted at once, each unseen by the other
  delete from ranked_ledger.lost_grounds g where not exists (select from public.agent_memories m where m.id = g.memory_id);

  select count(*) into v_missing from public.agent_memories m
  where m.memory_type = 'decision' and (p_workspace_id is null or m.workspace_id = p_workspace_id)
    and not exists (select from public.agent_decision_ledger l where l.memory_id = m.id);
  return jsonb_build_object('enrolled', v_enrolled, 'followed', v_followed, 'settled', v_settled,
                            'failed', v_tried - v_enrolled, 'more', v_missing > v_tried - v_enrolled);
end
$$;

comment on function public.enroll_missing_decisions(text, int) is
  'The backfill: enrols decisions that have no ledger row (by created_at, then id), mends rows that disagree with their memory, settles provisional steps, and clears the failures that are mended. Safe to repeat; answers {enrolled, followed, settled, failed, more}.';

create or replace function ranked_ledger.backfill()
returns void language plpgsql
set search_path = public, extensions, pg_temp
as $$
begin
  while (public.enroll_missing_decisions(null, 1000000) ->> 'more')::boolean loop
    null;
  end loop;
end
$$;

comment on function ranked_ledger.backfill() is 'What an install does last, with all that was there before it.';

-- decision_ledger/160_derived_copies.sql ----------------------------------------------------------------------------

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

-- decision_ledger/162_copy_decisions.sql ----------------------------------------------------------------------------

-- What the copies have to be, and their making. Plans are made once a session, of index look-ups alone: a plan a call cost more
-- than the copies of one decision, and what statistics say of tables that were empty a moment ago is no guide.

create or replace function ranked_ledger.standings_due(p_memory_ids uuid[])
returns table (
  memory_id uuid, workspace_key bigint, stream_id uuid, thought_id uuid, step_index int, importance float8,
  live_dependents int, pinned boolean, is_active boolean, is_retired boolean, is_unconfirmed boolean, is_personal boolean,
  search_lexemes tsvector)
language plpgsql stable
set search_path = public, extensions, pg_temp
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
as $$
begin
  return query
  select l.memory_id, ranked_ledger.workspace_key(l.workspace_id), l.stream_id, m.thought_id, l.step_index,
         l.importance::float8, d.live_dependents, l.pinned,
         m.lifecycle_status is not distinct from 'active', coalesce(m.lifecycle_status in ('superseded', 'rejected'), true),
         ranked_ledger.awaits_confirmation(m.requires_user_confirmation, m.review_status),
         m.visibility is not distinct from 'personal', l.search_lexemes
  from unnest(p_memory_ids) as c (memory_id)
  join public.agent_decision_ledger l on l.memory_id = c.memory_id and l.set_aside_at is null
  join public.agent_memories m on m.id = l.memory_id and m.workspace_id = l.workspace_id
  cross join lateral (
    select count(*)::int as live_dependents
    from public.agent_decision_edges e
    where e.to_memory_id = l.memory_id and e.relation = 'depends_on'
      and (select x.workspace_id = l.workspace_id and x.set_aside_at is null
                  and (select y.lifecycle_status = 'active' and y.workspace_id = x.workspace_id
                       from public.agent_memories y where y.id = x.memory_id)
           from public.agent_decision_ledger x where x.memory_id = e.from_memory_id)) as d;
end
$$;

comment on function ranked_ledger.standings_due(uuid[]) is
  'What standings has to say of these decisions, from the tables themselves. No row: nothing (set aside, gone, not followed to its new workspace).';

create or replace function ranked_ledger.vectors_due(p_memory_ids uuid[])
returns table (memory_id uuid, vector_dims int, embedding halfvec)
language plpgsql stable
set search_path = public, extensions, pg_temp
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
as $$
begin
  return query
  select m.id, vector_dims(t.embedding),
         case when ranked_ledger.is_usual_length(v.norm) then l2_normalize(t.embedding)::halfvec end
  from unnest(p_memory_ids) as c (memory_id)
  join public.agent_memories m on m.id = c.memory_id
  join public.thoughts t on t.id = m.thought_id
  cross join lateral (select vector_norm(t.embedding) as norm offset 0) as v
  where v.norm > 0;
end
$$;

comment on function ranked_ledger.vectors_due(uuid[]) is
  'The vectors of these decisions as decision_vectors has to hold them. No row: no vector, or one without a direction.';

do $do$
begin
  if exists (select from pg_proc p where p.oid = to_regprocedure('ranked_ledger.terms_of(bigint, tsvector)')
             and 'in_summary' <> all (p.proargnames)) then -- another answer
    execute 'drop function ranked_ledger.terms_of(bigint, tsvector)';
  end if;
end
$do$;

create or replace function ranked_ledger.terms_of(p_workspace_key bigint, p_lexemes tsvector)
returns table (term bigint, occurrences smallint, in_summary boolean) language sql immutable parallel safe
set search_path = public, extensions, pg_temp
as $$
  select ranked_ledger.term_of(p_workspace_key, x.lexeme),
         least(sum(cardinality(x.positions) - cardinality(array_positions(x.weights, 'A'))), 32767)::smallint,
         bool_or('A' = any (x.weights))
  from unnest(p_lexemes) as x group by 1
$$;

comment on function ranked_ledger.terms_of(bigint, tsvector) is
  'The terms of a decision, how often each stands in its text (as often as positions are stored, which is what ts_rank_cd counts), and whether in its summary.';

create or replace function ranked_ledger.text_length(p_lexemes tsvector)
returns int language sql immutable parallel safe
set search_path = public, extensions, pg_temp
as $$
  select case when p_lexemes is not null then coalesce(sum(cardinality(x.positions)), 0)::int end
  from unnest(ts_filter(p_lexemes, '{d}')) as x
$$;

comment on function ranked_ledger.text_length(tsvector) is 'How many words content and rationale have, without those that are not searched.';

create or replace function ranked_ledger.summary_words(p_lexemes tsvector)
returns int language sql immutable parallel safe
return length(ts_filter(p_lexemes, '{a}'));

comment on function ranked_ledger.summary_words(tsvector) is 'How many different words the summary has.';

create or replace function ranked_ledger.make_copies(p_memory_ids uuid[])
returns void language plpgsql
set search_path = public, extensions, pg_temp
set lock_timeout = '250ms' -- of two that make the copies of one decision, the other may stay open
set enable_hashjoin = on -- of these few rows, whatever the caller has set for its own look-ups
set plan_cache_mode = force_generic_plan
as $$
declare
  v_old_snapshot boolean := current_setting('transaction_isolation') <> 'read committed';
  v_placed       uuid[];
begin
  with due as materialized (
    select d.*, v.vector_dims, v.embedding
    from ranked_ledger.standings_due(p_memory_ids) d
    left join ranked_ledger.vectors_due(p_memory_ids) v on v.memory_id = d.memory_id),
  placed as (
    insert into ranked_ledger.standings as s (
      memory_id, workspace_key, stream_id, thought_id, step_index, importance, live_dependents, vector_dims, text_length,
      summary_words, pinned, is_active, is_retired, is_unconfirmed, is_personal)
    select d.memory_id, d.workspace_key, d.stream_id, d.thought_id, d.step_index, d.importance, d.live_dependents,
           coalesce(d.vector_dims, 0), coalesce(ranked_ledger.text_length(d.search_lexemes), 0),
           coalesce(ranked_ledger.summary_words(d.search_lexemes), 0),
           d.pinned, d.is_active, d.is_retired, d.is_unconfirmed, d.is_personal
    from due d
    on conflict (memory_id) do nothing
    returning s.memory_id, s.row_no),
  posted as (
    insert into ranked_ledger.postings (term, row_no, occurrences, in_summary)
    select x.term, p.row_no, x.occurrences, x.in_summary
    from placed p join due d on d.memory_id = p.memory_id
    cross join lateral ranked_ledger.terms_of(d.workspace_key, d.search_lexemes) as x),
  drawn as (
    insert into ranked_ledger.decision_vectors (row_no, workspace_key, embedding)
    select p.row_no, d.workspace_key, d.embedding from placed p join due d on d.memory_id = p.memory_id where d.vector_dims > 0)
  -- those without copies to make count as placed: somebody else's standing is what is looked for
  select coalesce(array_agg(u.id), '{}') into v_placed from unnest(p_memory_ids) as u (id)
  where u.id in (select p.memory_id from placed p) or u.id not in (select d.memory_id from due d);
  -- a snapshot that may be older than a vector or an edge, or copies that somebody else has made of what it saw
  if v_old_snapshot or cardinality(v_placed) < cardinality(p_memory_ids) then
    insert into ranked_ledger.stale_copies (workspace_key, memory_id)
    select ranked_ledger.workspace_key(l.workspace_id), l.memory_id
    from public.agent_decision_ledger l
    where l.memory_id = any (p_memory_ids) and l.set_aside_at is null
      and (v_old_snapshot or l.memory_id not in (select unnest(v_placed)));
  end if;
end
$$;

comment on function ranked_ledger.make_copies(uuid[]) is 'Writes the copies of decisions that have none; under an old snapshot, marked to be made again.';

create or replace function ranked_ledger.drop_copies(p_memory_id uuid)
returns void language plpgsql
set search_path = public, extensions, pg_temp
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_row_no int;
begin
  delete from ranked_ledger.standings s where s.memory_id = p_memory_id returning s.row_no into v_row_no;
  if found then
    delete from ranked_ledger.decision_vectors v where v.row_no = v_row_no;
    delete from ranked_ledger.postings p where p.row_no = v_row_no;
  end if;
end
$$;

comment on function ranked_ledger.drop_copies(uuid) is 'Removes the copies of a decision, which the caller holds.';

-- Where a standing is lost, its words stay posted under a number that nobody knows.
create or replace function ranked_ledger.drop_lost_postings()
returns void language plpgsql
set search_path = public, extensions, pg_temp
as $$
begin
  delete from ranked_ledger.postings p
  where p.row_no in (select o.row_no from ranked_ledger.postings o
                     except select s.row_no from ranked_ledger.standings s);
end
$$;

comment on function ranked_ledger.drop_lost_postings() is 'Removes what is posted under the row number of no decision.';

-- Whoever holds a standing owns the decision's copies until its transaction ends. Nobody waits for it: what somebody else
-- holds is marked, and made anew later. Under an old snapshot everything is marked.
create or replace function ranked_ledger.hold_standings(p_memory_ids uuid[])
returns uuid[] language plpgsql
set search_path = public, extensions, pg_temp
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_held uuid[] := '{}';
begin
  if current_setting('transaction_isolation') = 'read committed' then
    v_held := array(
      select s.memory_id from ranked_ledger.standings s where s.memory_id = any (p_memory_ids)
      order by s.memory_id for no key update skip locked);
  end if;
  if cardinality(v_held) < cardinality(p_memory_ids) then
    -- also those whose standing is not to be seen: somebody may be making it at this moment, of what it sees
    insert into ranked_ledger.stale_copies (workspace_key, memory_id)
    select coalesce(s.workspace_key, ranked_ledger.workspace_key(m.workspace_id)), u.memory_id
    from (select distinct p.id from unnest(p_memory_ids) as p (id) where p.id not in (select unnest(v_held))) as u (memory_id)
    left join ranked_ledger.standings s on s.memory_id = u.memory_id
    left join public.agent_memories m on m.id = u.memory_id and m.memory_type = 'decision'
    where s.memory_id is not null or m.id is not null;
  end if;
  return v_held;
end
$$;

comment on function ranked_ledger.hold_standings(uuid[]) is
  'Locks the standings of these decisions that are free and answers which; marks the others as stale. Never waits.';

create or replace function ranked_ledger.mark_stale(p_workspace_id text, p_memory_ids uuid[])
returns void language sql
set search_path = public, extensions, pg_temp
as $$
  insert into ranked_ledger.stale_copies (workspace_key, memory_id)
  select ranked_ledger.workspace_key(p_workspace_id), u.memory_id from unnest(p_memory_ids) as u (memory_id)
$$;

comment on function ranked_ledger.mark_stale(text, uuid[]) is 'Decisions whose copies are to be made anew.';

-- decision_ledger/164_keep_copies.sql -------------------------------------------------------------------------------

-- The copies follow the ledger and the edges, in the transaction of the write. Each writer brings only what is its own to
-- write: two that wrote all of it would put back each other's old values.

-- The newest step of a stream is found by settlement, which hears of what enrolment wrote. What was written past it, into
-- the ledger itself, is told here.
create or replace function ranked_ledger.note_written_by_hand(p_memory_id uuid, p_stream_ids uuid[])
returns void language plpgsql
set search_path = public, extensions, pg_temp
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
as $$
begin
  if current_setting('ranked_ledger.is_following', true) = '1'
     or exists (select from ranked_ledger.pending_steps p where p.memory_id = p_memory_id) then
    return;
  end if;
  p_stream_ids := array(
    select distinct u.id from unnest(p_stream_ids) as u (id)
    where ranked_ledger.newest_settled_step(u.id)
          is distinct from (select s.newest_step from ranked_ledger.streams s where s.stream_id = u.id));
  if p_stream_ids <> '{}' then
    perform set_config('ranked_ledger.unsettled', '1', true);
    insert into ranked_ledger.pending_steps (stream_id) select u.id from unnest(p_stream_ids) as u (id);
  end if;
end
$$;

comment on function ranked_ledger.note_written_by_hand(uuid, uuid[]) is
  'A stream whose rows changed without a mark of their own finds its newest step again at commit.';

-- How many live decisions rest on these, counted anew. A change of who is alive holds the standing of the decision itself
-- (above, 166) and an edge that of its dependent, so of two that change the same count at once one leaves a mark.
create or replace function ranked_ledger.recount_dependents(p_memory_ids uuid[])
returns void language plpgsql
set search_path = public, extensions, pg_temp
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_held uuid[] := ranked_ledger.hold_standings(p_memory_ids);
begin
  update ranked_ledger.standings s set live_dependents = d.live_dependents
  from ranked_ledger.standings_due(v_held) d
  where s.memory_id = d.memory_id and s.live_dependents <> d.live_dependents;
end
$$;

comment on function ranked_ledger.recount_dependents(uuid[]) is 'Counts anew how many live decisions rest on each of these.';

create or replace function ranked_ledger.grounds_of(p_memory_ids uuid[])
returns uuid[] language plpgsql stable
set search_path = public, extensions, pg_temp
set enable_seqscan = off
as $$
begin
  return array(
    select distinct e.to_memory_id from public.agent_decision_edges e
    where e.from_memory_id = any (p_memory_ids) and e.relation = 'depends_on');
end
$$;

comment on function ranked_ledger.grounds_of(uuid[]) is 'What these decisions rest on.';

create or replace function ranked_ledger.copy_inserted_rows()
returns trigger language plpgsql security definer -- enrolment runs under writers with no right on our tables
set search_path = public, extensions, pg_temp
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_memory_ids uuid[] := array(select n.memory_id from new_rows n);
  v_grounds    uuid[];
begin
  perform ranked_ledger.make_copies(v_memory_ids);
  perform ranked_ledger.note_written_by_hand(n.memory_id, array[n.stream_id]) from new_rows n
  where not exists (select from ranked_ledger.pending_steps p where p.memory_id = n.memory_id);
  v_grounds := ranked_ledger.grounds_of(v_memory_ids); -- edges that were there before their decision was enrolled
  if v_grounds <> '{}' then
    perform ranked_ledger.recount_dependents(v_grounds);
  end if;
  return null;
end
$$;

comment on function ranked_ledger.copy_inserted_rows() is 'Writes the copies of decisions that are new to the ledger.';

create or replace trigger agent_decision_ledger_copy_inserted_rows
  after insert on public.agent_decision_ledger
  referencing new table as new_rows
  for each statement execute function ranked_ledger.copy_inserted_rows();

create or replace function ranked_ledger.copy_updated_row()
returns trigger language plpgsql security definer -- as above
set search_path = public, extensions, pg_temp
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_row_no        int;
  v_workspace_key bigint;
  v_found         boolean := exists (select from ranked_ledger.standings s where s.memory_id = new.memory_id);
begin
  if (old.stream_id, old.step_index) <> (new.stream_id, new.step_index) then
    perform ranked_ledger.note_written_by_hand(new.memory_id, array[old.stream_id, new.stream_id]);
  end if;
  if v_found and ranked_ledger.hold_standings(array[new.memory_id]) = '{}' then -- marked, where the copies say that it is
    if old.workspace_id <> new.workspace_id then
      perform ranked_ledger.mark_stale(new.workspace_id, array[new.memory_id]);
    end if;
    return null;
  end if;
  if not v_found or old.workspace_id <> new.workspace_id or (old.set_aside_at is null) <> (new.set_aside_at is null) then
    perform ranked_ledger.drop_copies(new.memory_id);
    perform ranked_ledger.make_copies(array[new.memory_id]);
    perform ranked_ledger.recount_dependents(ranked_ledger.grounds_of(array[new.memory_id]));
    return null;
  end if;
  update ranked_ledger.standings s
  set stream_id = new.stream_id, step_index = new.step_index, importance = new.importance, pinned = new.pinned
  where s.memory_id = new.memory_id
    and (s.stream_id, s.step_index, s.importance, s.pinned) <> (new.stream_id, new.step_index, new.importance, new.pinned);
  if old.search_lexemes is distinct from new.search_lexemes then
    update ranked_ledger.standings s
    set text_length = coalesce(ranked_ledger.text_length(new.search_lexemes), 0),
        summary_words = coalesce(ranked_ledger.summary_words(new.search_lexemes), 0)
    where s.memory_id = new.memory_id
    returning s.row_no, s.workspace_key into v_row_no, v_workspace_key; -- of now, held: it may have been made anew meanwhile
    delete from ranked_ledger.postings p where p.row_no = v_row_no;
    insert into ranked_ledger.postings (term, row_no, occurrences, in_summary)
    select x.term, v_row_no, x.occurrences, x.in_summary
    from ranked_ledger.terms_of(v_workspace_key, new.search_lexemes) as x;
  end if;
  return null;
end
$$;

comment on function ranked_ledger.copy_updated_row() is 'Brings the copies of a decision in step with its ledger row.';

-- named columns, so that the counters of a recall cost nothing here; rationale, since a trigger turns it into lexemes
create or replace trigger agent_decision_ledger_copy_updated_row
  after update of workspace_id, project_id, task_id, step_index, importance, pinned, set_aside_at, rationale, search_lexemes
  on public.agent_decision_ledger
  for each row when (
    (old.stream_id, old.step_index, old.importance, old.pinned, old.set_aside_at, old.search_lexemes)
    is distinct from (new.stream_id, new.step_index, new.importance, new.pinned, new.set_aside_at, new.search_lexemes))
  execute function ranked_ledger.copy_updated_row();

create or replace function ranked_ledger.drop_deleted_rows()
returns trigger language plpgsql security definer -- fired by cascades from the host's own deletes
set search_path = public, extensions, pg_temp
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_held    uuid[] := ranked_ledger.hold_standings(array(select d.memory_id from deleted_rows d));
  v_grounds uuid[] := ranked_ledger.grounds_of(array(select d.memory_id from deleted_rows d));
begin
  perform ranked_ledger.drop_copies(d.memory_id) from deleted_rows d where d.memory_id in (select unnest(v_held));
  -- what somebody holds keeps its standing until later, but not its words
  delete from ranked_ledger.postings p where p.row_no = any (array(
    select s.row_no from deleted_rows d join ranked_ledger.standings s on s.memory_id = d.memory_id));
  if v_grounds <> '{}' then -- else the edges went with the memory, and see to it themselves
    perform ranked_ledger.recount_dependents(v_grounds);
  end if;
  return null;
exception when others then
  raise warning 'Ranked Ledger: the copies of deleted decisions were left (%); check_copies mends them', sqlerrm;
  return null;
end
$$;

comment on function ranked_ledger.drop_deleted_rows() is 'The copies go with their decision.';

create or replace trigger agent_decision_ledger_drop_deleted_rows
  after delete on public.agent_decision_ledger
  referencing old table as deleted_rows
  for each statement execute function ranked_ledger.drop_deleted_rows();

-- An edge holds its dependent too: whether that one is alive may be changing at this moment, unseen from here.
create or replace function ranked_ledger.count_edges(p_from uuid[], p_to uuid[])
returns void language plpgsql
set search_path = public, extensions, pg_temp
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_held_from uuid[];
begin
  if p_to = '{}' then
    return;
  end if;
  v_held_from := ranked_ledger.hold_standings(p_from);
  perform ranked_ledger.recount_dependents(p_to);
  if current_setting('transaction_isolation') <> 'read committed' then
    return; -- everything is marked
  end if;
  insert into ranked_ledger.stale_copies (workspace_key, memory_id)
  select s.workspace_key, s.memory_id from ranked_ledger.standings s
  where s.memory_id in (select u.t from unnest(p_from, p_to) as u (f, t) where u.f not in (select unnest(v_held_from)));
end
$$;

comment on function ranked_ledger.count_edges(uuid[], uuid[]) is 'Recounts the dependents of the ends of edges that came or went.';

create or replace function ranked_ledger.count_changed_edges()
returns trigger language plpgsql security definer -- fired by cascades from the host's own deletes
set search_path = public, extensions, pg_temp
as $$
declare
  v_from uuid[] := '{}';
  v_to   uuid[] := '{}';
begin
  if tg_op in ('INSERT', 'UPDATE') then
    select coalesce(array_agg(e.from_memory_id), '{}'), coalesce(array_agg(e.to_memory_id), '{}') into v_from, v_to
    from edges_after e where e.relation = 'depends_on';
  end if;
  perform ranked_ledger.count_edges(v_from, v_to);
  if tg_op in ('UPDATE', 'DELETE') then
    select coalesce(array_agg(e.from_memory_id), '{}'), coalesce(array_agg(e.to_memory_id), '{}') into v_from, v_to
    from edges_before e where e.relation = 'depends_on';
    perform ranked_ledger.count_edges(v_from, v_to);
  end if;
  return null;
exception when others then
  if tg_op <> 'DELETE' then
    raise;
  end if;
  raise warning 'Ranked Ledger: dependents were not recounted (%); check_copies mends it', sqlerrm;
  return null;
end
$$;

comment on function ranked_ledger.count_changed_edges() is 'Keeps the number of live dependents when edges are written.';

create or replace trigger agent_decision_edges_count_inserted
  after insert on public.agent_decision_edges
  referencing new table as edges_after
  for each statement execute function ranked_ledger.count_changed_edges();

create or replace trigger agent_decision_edges_count_updated
  after update on public.agent_decision_edges
  referencing old table as edges_before new table as edges_after
  for each statement execute function ranked_ledger.count_changed_edges();

create or replace trigger agent_decision_edges_count_deleted
  after delete on public.agent_decision_edges
  referencing old table as edges_before
  for each statement execute function ranked_ledger.count_changed_edges();

create or replace function ranked_ledger.empty_copies()
returns trigger language plpgsql security definer -- fired by a truncate of the host's table, cascade
set search_path = public, extensions, pg_temp
set lock_timeout = '500ms'
as $$
begin
  -- a reader of the copies may wait for the table that is emptied: the host's truncate goes first
  if tg_relid = 'public.agent_decision_ledger'::regclass then
    truncate ranked_ledger.standings, ranked_ledger.postings, ranked_ledger.decision_vectors, ranked_ledger.stale_copies;
  else
    update ranked_ledger.standings s set live_dependents = 0 where s.live_dependents <> 0;
  end if;
  return null;
exception when others then
  raise warning 'Ranked Ledger: the copies of an emptied table were left (%); enroll_missing_decisions mends it', sqlerrm;
  return null;
end
$$;

comment on function ranked_ledger.empty_copies() is 'An emptied ledger has no copies, emptied edges no dependents.';

create or replace trigger agent_decision_ledger_empty_copies
  after truncate on public.agent_decision_ledger
  for each statement execute function ranked_ledger.empty_copies();

create or replace trigger agent_decision_edges_empty_copies
  after truncate on public.agent_decision_edges
  for each statement execute function ranked_ledger.empty_copies();

-- decision_ledger/166_copy_host_changes.sql -------------------------------------------------------------------------

-- The copies follow what the host writes: lifecycle, review, visibility, thought of a memory; the vector of a thought.

create or replace function ranked_ledger.renew_vectors(p_memory_ids uuid[])
returns void language plpgsql
set search_path = public, extensions, pg_temp
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
begin
  with due as materialized (
    select s.row_no, s.workspace_key, s.memory_id, m.thought_id, coalesce(d.vector_dims, 0) as vector_dims, d.embedding
    from ranked_ledger.standings s
    join public.agent_memories m on m.id = s.memory_id
    left join ranked_ledger.vectors_due(p_memory_ids) d on d.memory_id = s.memory_id
    where s.memory_id = any (p_memory_ids)),
  placed as (
    update ranked_ledger.standings s set thought_id = d.thought_id, vector_dims = d.vector_dims
    from due d
    where s.memory_id = d.memory_id and (s.thought_id, s.vector_dims) is distinct from (d.thought_id, d.vector_dims)),
  gone as (
    delete from ranked_ledger.decision_vectors v using due d where v.row_no = d.row_no and d.vector_dims = 0)
  insert into ranked_ledger.decision_vectors as v (row_no, workspace_key, embedding)
  select d.row_no, d.workspace_key, d.embedding from due d where d.vector_dims > 0
  on conflict (row_no) do update set embedding = excluded.embedding
  where v.embedding is distinct from excluded.embedding;
end
$$;

comment on function ranked_ledger.renew_vectors(uuid[]) is 'Copies the vectors of decisions anew, which the caller holds.';

create or replace function ranked_ledger.copy_memory_changes(p_memory_ids uuid[], p_thought_changed uuid[], p_lifecycle_changed uuid[])
returns void language plpgsql
set search_path = public, extensions, pg_temp
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_held uuid[] := ranked_ledger.hold_standings(p_memory_ids);
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    return; -- all are marked, and what a marked one rests on is weighed with it
  end if;
  update ranked_ledger.standings s
  set is_active = d.is_active, is_retired = d.is_retired, is_unconfirmed = d.is_unconfirmed, is_personal = d.is_personal
  from ranked_ledger.standings_due(v_held) d
  where s.memory_id = d.memory_id
    and (s.is_active, s.is_retired, s.is_unconfirmed, s.is_personal)
        <> (d.is_active, d.is_retired, d.is_unconfirmed, d.is_personal);
  if p_thought_changed <> '{}' then
    perform ranked_ledger.renew_vectors(array(select unnest(v_held) intersect select unnest(p_thought_changed)));
  end if;
  if p_lifecycle_changed <> '{}' then
    perform ranked_ledger.recount_dependents(ranked_ledger.grounds_of(p_lifecycle_changed));
  end if;
end
$$;

comment on function ranked_ledger.copy_memory_changes(uuid[], uuid[], uuid[]) is
  'Brings the copies of decisions in step with their memories: flags, the vector where the thought changed, the dependents of what they rest on where lifecycle or workspace did.';

create or replace function ranked_ledger.copy_updated_memories()
returns trigger language plpgsql security definer -- the host's writer may have no right on our tables
set search_path = public, extensions, pg_temp
as $$
declare
  v_ids       uuid[];
  v_thought   uuid[];
  v_lifecycle uuid[];
begin
  select array_agg(n.id), coalesce(array_agg(n.id) filter (where n.thought_id is distinct from o.thought_id), '{}'),
         coalesce(array_agg(n.id) filter (
           where (n.lifecycle_status, n.workspace_id) is distinct from (o.lifecycle_status, o.workspace_id)), '{}')
  into v_ids, v_thought, v_lifecycle
  from memories_after n full join memories_before o on o.id = n.id
  where n.memory_type is not distinct from 'decision'
    -- the workspace too: where the ledger row cannot follow, nothing else tells what it rested on
    and (n.lifecycle_status, n.review_status, n.requires_user_confirmation, n.visibility, n.thought_id, n.workspace_id)
        is distinct from
        (o.lifecycle_status, o.review_status, o.requires_user_confirmation, o.visibility, o.thought_id, o.workspace_id);
  if v_ids is null then
    return null;
  end if;
  begin
    perform ranked_ledger.copy_memory_changes(v_ids, v_thought, v_lifecycle);
  exception when others then
    insert into ranked_ledger.stale_copies (workspace_key, memory_id)
    select ranked_ledger.workspace_key(n.workspace_id), n.id from memories_after n where n.id = any (v_ids);
  end;
  return null;
exception when others then
  raise warning 'Ranked Ledger: copies of decisions were not renewed (%); check_copies mends them', sqlerrm;
  return null;
end
$$;

comment on function ranked_ledger.copy_updated_memories() is 'The copies follow the memories, a statement at a time. The host''s update goes through whatever happens here.';

create or replace trigger trg_agent_decision_ledger_recopy
  after update on public.agent_memories
  referencing old table as memories_before new table as memories_after
  for each statement execute function ranked_ledger.copy_updated_memories();

-- A decision that is being enrolled on this thought elsewhere is not seen from here, and its writer has read the old vector:
-- the thought is marked, and whoever turns up with it is weighed from the tables until that writer has ended.
create or replace function ranked_ledger.copy_updated_thoughts()
returns trigger language plpgsql security definer -- as above
set search_path = public, extensions, pg_temp
as $$
declare
  v_thoughts uuid[];
  v_ids      uuid[];
begin
  v_thoughts := array(
    select n.id from thoughts_after n full join thoughts_before o on o.id = n.id
    where n.embedding is distinct from o.embedding and n.id is not null);
  if v_thoughts = '{}' then
    return null;
  end if;
  begin
    v_ids := array(select s.memory_id from ranked_ledger.standings s where s.thought_id = any (v_thoughts));
    if v_ids <> '{}' then
      perform ranked_ledger.renew_vectors(ranked_ledger.hold_standings(v_ids));
    end if;
  exception when others then
    null; -- the mark is enough
  end;
  insert into ranked_ledger.stale_copies (thought_id) select u.id from unnest(v_thoughts) as u (id);
  perform ranked_ledger.forget_marks(2 * cardinality(v_thoughts) + 10); -- most thoughts are no decision's
  return null;
exception when others then
  raise warning 'Ranked Ledger: copies of vectors were not renewed (%); check_copies mends them', sqlerrm;
  return null;
end
$$;

comment on function ranked_ledger.copy_updated_thoughts() is 'The copies follow the vectors of thoughts. The host''s update goes through whatever happens here.';

create or replace trigger trg_agent_decision_ledger_revector
  after update on public.thoughts
  referencing old table as thoughts_before new table as thoughts_after
  for each statement execute function ranked_ledger.copy_updated_thoughts();

-- decision_ledger/168_lift_marks.sql --------------------------------------------------------------------------------

-- Copies that may lag are made anew by the recalls that follow, and by the backfill.

create or replace function ranked_ledger.renew_copies(p_memory_ids uuid[])
returns void language plpgsql
set search_path = public, extensions, pg_temp
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
as $$
begin
  perform ranked_ledger.drop_copies(u.memory_id) from unnest(p_memory_ids) as u (memory_id);
  perform ranked_ledger.make_copies(p_memory_ids);
end
$$;

comment on function ranked_ledger.renew_copies(uuid[]) is
  'Makes the copies of decisions anew, which the caller holds. They get a new row number.';

-- A mark is lifted in two steps. Whoever sees it first, of those that come after its own transaction, notes who may be running;
-- once all of those have ended, what they did can be seen, and the copies are made for good.
create or replace function ranked_ledger.marks_to_lift(p_limit int)
returns bigint[] language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_marks bigint[];
begin
  v_marks := array(
    select c.id from ranked_ledger.stale_copies c
    where c.horizon <= pg_snapshot_xmin(pg_current_snapshot()) order by c.id limit p_limit for update skip locked);
  -- an id of our own is above that of everybody who runs; a snapshot's xmax is not, it ends at the last that completed
  update ranked_ledger.stale_copies c set horizon = pg_current_xact_id()
  where c.id in (select o.id from ranked_ledger.stale_copies o where o.horizon is null and o.marked_by <> pg_current_xact_id()
                 order by o.id limit 10 * p_limit for update skip locked);
  return v_marks;
end
$$;

comment on function ranked_ledger.marks_to_lift(int) is
  'Locks and answers marks, so many at most, whose transactions have all ended; notes the time for those that are new.';

create or replace function ranked_ledger.forget_marks(p_limit int)
returns void language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_marks bigint[];
begin
  if current_setting('transaction_isolation') = 'read committed' then
    v_marks := ranked_ledger.marks_to_lift(p_limit);
    delete from ranked_ledger.stale_copies c
    where c.id = any (v_marks) and c.memory_id is null
      and not exists (select from ranked_ledger.standings s where s.thought_id = c.thought_id);
  end if;
end
$$;

comment on function ranked_ledger.forget_marks(int) is 'Lifts marks of thoughts that turned out to be no decision''s.';

create or replace function ranked_ledger.lift_marks(p_limit int)
returns int language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_marks  bigint[];
  v_ids    uuid[]; -- all copies are made anew
  v_recast uuid[]; -- the vector alone
  v_held   uuid[];
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    return 0;
  end if;
  v_marks := ranked_ledger.marks_to_lift(p_limit);
  if v_marks = '{}' then
    return 0;
  end if;
  v_ids := array(select distinct c.memory_id from ranked_ledger.stale_copies c where c.id = any (v_marks) and c.memory_id is not null);
  v_recast := array(
    select distinct s.memory_id from ranked_ledger.stale_copies c join ranked_ledger.standings s on s.thought_id = c.thought_id
    where c.id = any (v_marks) and s.memory_id not in (select unnest(v_ids)));
  v_held := array(
    select s.memory_id from ranked_ledger.standings s where s.memory_id = any (v_ids || v_recast) order by s.memory_id
    for no key update skip locked);
  v_ids := array( -- those that had no copies, too
    select u.id from unnest(v_ids) as u (id)
    where u.id in (select unnest(v_held)) or not exists (select from ranked_ledger.standings s where s.memory_id = u.id));
  perform ranked_ledger.renew_copies(ranked_ledger.wrong_copies(v_ids)); -- what is right keeps its place
  perform ranked_ledger.recount_dependents(ranked_ledger.grounds_of(v_ids));
  perform ranked_ledger.renew_vectors(array(select unnest(v_recast) intersect select unnest(v_held)));
  delete from ranked_ledger.stale_copies c
  where c.id = any (v_marks)
    and (c.memory_id in (select unnest(v_ids))
         or c.memory_id is null and not exists (
           select from ranked_ledger.standings s where s.thought_id = c.thought_id and s.memory_id not in (select unnest(v_held))));
  return cardinality(v_ids) + cardinality(v_recast);
end
$$;

comment on function ranked_ledger.lift_marks(int) is
  'Makes copies anew that may lag, of at most so many marks, and lifts the marks; what somebody holds is left. Answers how many decisions.';

-- What is marked, and what it rests on: a dependent that is about to change counts, or no longer does.
create or replace function ranked_ledger.stale_decisions(p_workspace_key bigint, p_limit int)
returns uuid[] language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
begin
  if not exists (select from ranked_ledger.stale_copies) then
    return '{}';
  end if;
  return (
  with marked as materialized (
    select x.memory_id
    from (select c.memory_id from ranked_ledger.stale_copies c where c.workspace_key = p_workspace_key
          union
          select s.memory_id from ranked_ledger.stale_copies c join ranked_ledger.standings s on s.thought_id = c.thought_id
          where c.thought_id is not null and s.workspace_key = p_workspace_key) as x
    limit p_limit)
  select coalesce(array_agg(y.memory_id), '{}')
  from (select m.memory_id from marked m
        union
        select e.to_memory_id from marked m
        join public.agent_decision_edges e on e.from_memory_id = m.memory_id and e.relation = 'depends_on') as y);
end
$$;

comment on function ranked_ledger.stale_decisions(bigint, int) is
  'Decisions of a workspace whose copies may lag: of at most so many marks, with what they rest on.';

-- Whole ledgers: one that was there before the copies, one whose triggers were off.
create or replace function ranked_ledger.mend_copies(p_workspace_id text)
returns int language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_chunk uuid[];
  v_made  int := 0;
begin
  for v_chunk in
    select array_agg(x.memory_id)
    from (select l.memory_id, row_number() over (order by l.memory_id) as position
          from public.agent_decision_ledger l
          where l.set_aside_at is null and (p_workspace_id is null or l.workspace_id = p_workspace_id)
            and not exists (select from ranked_ledger.standings s where s.memory_id = l.memory_id)) as x
    group by (x.position - 1) / 500
  loop
    if v_made = 0 then -- the words of a standing that is lost would count twice (204)
      perform ranked_ledger.drop_lost_postings();
    end if;
    perform ranked_ledger.make_copies(v_chunk);
    v_made := v_made + cardinality(v_chunk);
  end loop;
  perform ranked_ledger.drop_copies(s.memory_id) from ranked_ledger.standings s
  where not exists (select from public.agent_decision_ledger l where l.memory_id = s.memory_id);
  perform ranked_ledger.lift_marks(100000);
  return v_made;
end
$$;

comment on function ranked_ledger.mend_copies(text) is
  'Writes the copies that are missing, of a workspace or of all, and removes those of decisions that are gone. Answers how many were missing.';

-- decision_ledger/169_check_copies.sql ------------------------------------------------------------------------------

-- The copies held against what they are copies of.

create or replace function ranked_ledger.wrong_copies(p_memory_ids uuid[])
returns uuid[] language plpgsql stable
set search_path = public, extensions, pg_temp
set enable_seqscan = off
as $$
begin
  return array(
    select c.memory_id
    from unnest(p_memory_ids) as c (memory_id)
    left join ranked_ledger.standings s on s.memory_id = c.memory_id
    left join ranked_ledger.standings_due(p_memory_ids) d on d.memory_id = c.memory_id
    left join ranked_ledger.vectors_due(p_memory_ids) w on w.memory_id = c.memory_id
    left join ranked_ledger.decision_vectors v on v.row_no = s.row_no
    where (s.workspace_key, s.stream_id, s.thought_id, s.step_index, s.importance, s.live_dependents, s.pinned, s.is_active,
           s.is_retired, s.is_unconfirmed, s.is_personal, s.text_length, s.summary_words)
          is distinct from (d.workspace_key, d.stream_id, d.thought_id, d.step_index, d.importance, d.live_dependents, d.pinned,
                            d.is_active, d.is_retired, d.is_unconfirmed, d.is_personal,
                            case when d.memory_id is not null then coalesce(ranked_ledger.text_length(d.search_lexemes), 0) end,
                            case when d.memory_id is not null then coalesce(ranked_ledger.summary_words(d.search_lexemes), 0) end)
       or d.memory_id is not null
          and ((s.vector_dims, v.row_no is not null, v.workspace_key, v.embedding)
               is distinct from (coalesce(w.vector_dims, 0), w.memory_id is not null,
                                 case when w.memory_id is not null then d.workspace_key end, w.embedding)
               or exists ((select p.term, p.occurrences, p.in_summary from ranked_ledger.postings p where p.row_no = s.row_no)
                          except select x.term, x.occurrences, x.in_summary
                          from ranked_ledger.terms_of(s.workspace_key, d.search_lexemes) as x)
               or exists (select x.term, x.occurrences, x.in_summary
                          from ranked_ledger.terms_of(s.workspace_key, d.search_lexemes) as x
                          except select p.term, p.occurrences, p.in_summary from ranked_ledger.postings p
                          where p.row_no = s.row_no)));
end
$$;

comment on function ranked_ledger.wrong_copies(uuid[]) is
  'Those of these decisions whose standing, vector or postings are not what the ledger, its memories, thoughts and edges say.';

create or replace function public.check_copies(
  p_workspace_id text, p_after uuid default null, p_limit int default 1000, p_mend boolean default false)
returns jsonb language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_ids   uuid[];
  v_wrong uuid[];
begin
  if coalesce(p_limit, 0) not between 1 and 10000 then
    raise sqlstate '22023' using message = 'p_limit is a number from 1 to 10,000';
  end if;
  v_ids := array(
    select l.memory_id from public.agent_decision_ledger l
    where l.workspace_id = p_workspace_id and (p_after is null or l.memory_id > p_after) order by l.memory_id limit p_limit);
  v_wrong := array(
    select unnest(ranked_ledger.wrong_copies(v_ids))
    except select unnest(ranked_ledger.stale_decisions(ranked_ledger.workspace_key(p_workspace_id), 100000)));
  if coalesce(p_mend, false) and v_wrong <> '{}' then
    if exists (select from unnest(v_wrong) as u (id) where u.id not in (select s.memory_id from ranked_ledger.standings s)) then
      perform ranked_ledger.drop_lost_postings(); -- its words would count twice (204)
    end if;
    perform ranked_ledger.mark_stale(p_workspace_id, v_wrong); -- weighed from the tables from now on, made anew as marks are
  end if;
  return jsonb_build_object(
    'checked', cardinality(v_ids), 'wrong', to_jsonb(v_wrong), 'mended', coalesce(p_mend, false) and v_wrong <> '{}',
    'next', case when cardinality(v_ids) = p_limit then v_ids[p_limit] end);
end
$$;

comment on function public.check_copies(text, uuid, int, boolean) is
  'Proves the derived copies that recall searches, a page of decisions at a time: {checked, wrong: [memory ids], mended, next}. Those that are known to lag, and weighed from the tables, are not wrong. p_mend marks the wrong ones to be made anew.';

-- decision_ledger/170_catch_up.sql ----------------------------------------------------------------------------------

-- What the moment refused at a write (a SERIALIZABLE writer, an old snapshot, a lock) is made good by the next writer of the
-- stream, or by the next recall of the workspace: a project that writes under SERIALIZABLE alone has no other.
create or replace function ranked_ledger.catch_up(p_workspace_id text)
returns void language plpgsql
set search_path = public, extensions, pg_temp
set lock_timeout = '250ms' -- a recall waits for nobody
as $$
declare
  v_streams uuid[];
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    return;
  end if;
  v_streams := array(
    select f.stream_id from ranked_ledger.enrolment_failures f where f.is_transient and f.workspace_id = p_workspace_id
    union
    select p.stream_id from ranked_ledger.pending_steps p
    join public.agent_decision_ledger l on l.memory_id = p.memory_id
    where p.is_left_over and l.workspace_id = p_workspace_id
    union -- those that lost a row
    select p.stream_id from ranked_ledger.pending_steps p
    join ranked_ledger.streams s on s.stream_id = p.stream_id
    where p.is_left_over and p.memory_id is null and s.workspace_id = p_workspace_id);
  if v_streams <> '{}' then
    perform ranked_ledger.settle_streams(v_streams);
    perform ranked_ledger.settle_now();
  end if;
  if exists (select from ranked_ledger.stale_copies) then
    perform ranked_ledger.lift_marks(200);
  end if;
exception when others then
  null; -- a recall answers from what is there
end
$$;

comment on function ranked_ledger.catch_up(text) is
  'Enrols, settles and copies what earlier transactions had to leave. Never raises, never waits long.';

-- decision_ledger/171_pack_vectors.sql ------------------------------------------------------------------------------

-- Vectors lie in the order of their arrival. Where many workspaces write in turn, those of one lie one a page, and a scan of
-- them reads as many pages as it has rows. Here they are put together again, a stretch of the table at a time.

create or replace function ranked_ledger.move_vectors(p_row_nos int[])
returns int language plpgsql
set search_path = public, extensions, pg_temp
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_held  int[];
  v_moved int;
begin
  v_held := array( -- whoever holds a standing owns the copies, so nobody waits for us either
    select s.row_no from unnest(p_row_nos) as u (row_no) join ranked_ledger.standings s on s.row_no = u.row_no
    for no key update of s skip locked);
  -- no update: it leaves a row on its page wherever there is room
  with taken as (
    delete from ranked_ledger.decision_vectors v using unnest(v_held) as u (row_no) where v.row_no = u.row_no
    returning v.row_no, v.workspace_key, v.embedding)
  insert into ranked_ledger.decision_vectors (row_no, workspace_key, embedding)
  select t.row_no, t.workspace_key, t.embedding from taken t order by t.workspace_key, t.row_no;
  get diagnostics v_moved = row_count;
  return v_moved;
end
$$;

comment on function ranked_ledger.move_vectors(int[]) is
  'Writes these vectors anew, next to one another by workspace; those whose decision somebody holds stay where they are. Answers how many it moved.';

-- Pages that hold several workspaces, or little, are emptied whole: a hole of one row would take one row of the next that are
-- moved. A workspace of fewer than 500 vectors is no reason to move any, its scan is short wherever they lie.
create or replace function ranked_ledger.pack_vectors(p_limit int default 20000)
returns int language plpgsql
set search_path = public, extensions, pg_temp
set lock_timeout = '250ms' -- somebody who empties the table goes first
as $$
declare
  v_room   constant int := current_setting('block_size')::int - 24; -- bytes of a page that rows can have
  v_begun  constant timestamptz := clock_timestamp();
  v_pages  bigint;
  v_page   bigint;
  v_read   bigint := 0;
  v_step   bigint;
  v_last   bigint;
  v_large  bigint[];
  v_loose  int[];
  v_is_due boolean;
  v_moved  int := 0;
begin
  if coalesce(p_limit, 0) not between 1 and 1000000 then
    raise sqlstate '22023' using message = 'p_limit is a number from 1 to 1,000,000';
  end if;
  v_pages := pg_relation_size('ranked_ledger.decision_vectors') / current_setting('block_size')::int;
  if current_setting('transaction_isolation') <> 'read committed'
     or (select min(v.workspace_key) = max(v.workspace_key) from ranked_ledger.decision_vectors v) is distinct from false then
    return 0;
  end if;
  v_large := array(
    select v.workspace_key from ranked_ledger.decision_vectors v group by v.workspace_key having count(*) >= 500);
  if v_large = '{}' then
    return 0;
  end if;
  -- as many pages as hold p_limit rows of the usual length
  select greatest(1, p_limit / greatest(1, v_room / avg(x.bytes)::int)) into v_step
  from (select 44 + coalesce(pg_column_size(v.embedding), 0) as bytes from ranked_ledger.decision_vectors v limit 100) as x;

  -- once round the table from anywhere, so that what one call had no time for is not what the next has no time for
  v_page := floor(random() * v_pages / v_step)::bigint * v_step;
  while v_read < v_pages and clock_timestamp() < v_begun + interval '2 s' loop
    with here as materialized (
      select (v.ctid::text::point)[0]::bigint as page, v.workspace_key, v.row_no,
             44 + coalesce(pg_column_size(v.embedding), 0) as bytes
      from ranked_ledger.decision_vectors v
      where v.ctid >= format('(%s,0)', v_page)::tid and v.ctid < format('(%s,0)', least(v_page + v_step, v_pages))::tid),
    loose as materialized (
      select h.* from here h
      where h.page in (
        select p.page from here p group by p.page
        having min(p.workspace_key) < max(p.workspace_key) or sum(p.bytes) < v_room / 2)
      order by h.page limit p_limit),
    spread as ( -- the pages that a workspace takes, and those that would do: one more than it fills
      select count(distinct r.page) as pages, 1 + ceil(count(*) / greatest(1, floor(v_room / avg(r.bytes)))) as enough
      from loose r where r.workspace_key in (select unnest(v_large)) group by r.workspace_key)
    select array(select r.row_no from loose r), (select max(r.page) from loose r), sum(s.pages) > 1.5 * sum(s.enough)
    into v_loose, v_last, v_is_due from spread s;
    exit when v_moved > 0 and v_moved + cardinality(v_loose) > p_limit;
    if v_is_due then
      v_moved := v_moved + ranked_ledger.move_vectors(v_loose);
    end if;
    v_last := case when cardinality(v_loose) = p_limit then greatest(v_page + 1, v_last) else v_page + v_step end;
    v_read := v_read + v_last - v_page;
    v_page := case when v_last < v_pages then v_last else 0 end;
  end loop;
  return v_moved;
exception when lock_not_available then
  return 0;
end
$$;

comment on function ranked_ledger.pack_vectors(int) is
  'Puts vectors together by workspace where they lie scattered: in stretches of the table whose larger workspaces (500 vectors or more) take more than 1.5 times the pages they need. Moves so many rows at most (20,000 by default take a second), starts no stretch after two seconds, and waits for nobody. Answers how many it moved; 0 where it found none, or where somebody has the table. For a nightly job on a host with many workspaces: select cron.schedule(''ranked-ledger'', ''*/5 3 * * *'', ''select ranked_ledger.pack_vectors()'').';

-- decision_ledger/200_ranked_arguments.sql --------------------------------------------------------------------------

-- The arguments of ranked recall, checked and with their defaults, for match_decision_ledger and recall_decisions alike.

-- The number of dimensions of the host's column, from the catalogue: 384, 768, 1024, 1536, 3072, ... Null: any.
create or replace function ranked_ledger.embedding_dimension()
returns int language sql stable
set search_path = public, extensions, pg_temp
as $$
  select nullif(a.atttypmod, -1) from pg_attribute a
  where a.attrelid = to_regclass('public.thoughts') and a.attname = 'embedding' and not a.attisdropped
$$;

comment on function ranked_ledger.embedding_dimension() is 'Dimensions of public.thoughts.embedding; null where the column has no fixed number.';

-- PostgREST does not enforce the dimension of a function's argument, and <=> names it only for the first row it meets.
create or replace function ranked_ledger.check_dimension(p_dimension int)
returns void language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
declare
  v_expected int := ranked_ledger.embedding_dimension();
begin
  if p_dimension <> v_expected then
    raise sqlstate 'RL463' using
      message = format('the embedding has %s dimensions, this project stores %s', p_dimension, v_expected),
      detail = format('%s,%s', p_dimension, v_expected),
      hint = 'Embed with the model that the project''s thoughts were embedded with, or leave the embedding out.';
  end if;
end
$$;

comment on function ranked_ledger.check_dimension(int) is 'Refuses (RL463, both numbers named) an embedding that cannot be compared with the host''s.';

-- decision_ledger/201_define_type.sql -------------------------------------------------------------------------------

-- `create or replace` cannot change the fields of a type, nor the results of the functions over it; and dropped where nothing
-- changed, it would break the sessions that know it (cache lookup failed).
create or replace function ranked_ledger.define_type(p_name text, p_fields text)
returns void language plpgsql
set search_path = public, extensions, pg_temp
set client_min_messages = warning -- a notice for each function that goes with it, and comes again below
as $$
declare
  v_fields text;
begin
  select string_agg(a.attname || ' ' || format_type(a.atttypid, a.atttypmod), ', ' order by a.attnum) into v_fields
  from pg_attribute a
  where a.attrelid = to_regclass('ranked_ledger.' || p_name) and a.attnum > 0 and not a.attisdropped;
  if v_fields is distinct from p_fields then
    execute format('drop type if exists ranked_ledger.%I cascade', p_name);
    execute format('create type ranked_ledger.%I as (%s)', p_name, p_fields);
  end if;
end
$$;

comment on function ranked_ledger.define_type(text, text) is
  'Has a composite type of these fields, named as format_type names them; one of other fields goes first, with the functions over it.';

-- decision_ledger/202_question.sql ----------------------------------------------------------------------------------

-- What a recall asks, its arguments checked and with their defaults: every part of the ranking reads this one value.
-- embedding null: none, or one without a direction; no lexemes: none in the text; min_relevance 0: none
select ranked_ledger.define_type('question',
  'workspace_id text, workspace_key bigint, embedding vector, has_text boolean, ' ||
  'lexemes text[], terms bigint[], project_id text, task_id text, current_step integer, match_count integer, ' ||
  'w_similarity double precision, w_importance double precision, w_recency double precision, ' ||
  'w_dependency double precision, half_life double precision, saturation double precision, with_stale boolean, ' ||
  'with_retired boolean, with_personal boolean, only_confirmed boolean, min_relevance double precision, ' ||
  'floor double precision, ceiling double precision, fusion text, fusion_weight double precision, exact boolean, ' ||
  'preset text, weighs_words boolean, term_weights double precision[], length_share double precision, ' ||
  'w_summary double precision, penalty double precision, ' ||
  'as_of timestamp with time zone, as_of_step integer, as_of_stream uuid');

comment on type ranked_ledger.question is 'The arguments of a ranked recall, checked, with their defaults.';

-- A moment is a time, the last one that counts. That of a step is the one before the stream went past it, for whatever has no
-- step in that stream: edges, decisions of other streams, reviews.
select ranked_ledger.define_type('moment', 'as_of timestamp with time zone, as_of_step integer, as_of_stream uuid');

comment on type ranked_ledger.moment is
  'When a recall is asked as of: the time, and for a step of one stream that step and stream too.';

-- Floor and ceiling of a question: those given, else those kept for the workspace and model, else 0 and 1.
create or replace function ranked_ledger.similarity_range(
  p_workspace_id text, p_embedding_model text, inout p_floor float8, inout p_ceiling float8)
language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
begin
  if p_floor is null and p_ceiling is null and p_embedding_model is not null then
    select r.floor, r.ceiling into p_floor, p_ceiling from ranked_ledger.similarity_ranges r
    where r.workspace_id = p_workspace_id and r.embedding_model = p_embedding_model;
  end if;
  p_floor := coalesce(p_floor, 0);
  p_ceiling := coalesce(p_ceiling, 1);
  if p_floor not between -1 and 1 or p_ceiling not between -1 and 1 or p_floor >= p_ceiling then
    raise sqlstate '22023' using
      message = format('p_similarity_floor (%s) has to be below p_similarity_ceiling (%s), both within [-1, 1]', p_floor, p_ceiling),
      hint = 'They are the cosines that count as 0 and as 1: for a model whose cosines lie between 0.75 and 0.90, these two.';
  end if;
end
$$;

comment on function ranked_ledger.similarity_range(text, text, float8, float8) is
  'The cosines that are relevance 0 and 1: as given, else as kept for (workspace, model), else 0 and 1. 22023 unless floor < ceiling within [-1, 1].';

create or replace function ranked_ledger.check_question(
  p_query text, p_fusion text, p_min_relevance float8, p_fusion_weight float8)
returns void language plpgsql immutable
set search_path = public, extensions, pg_temp
as $$
begin
  if octet_length(p_query) > 262144 then
    raise sqlstate '22023' using message = 'p_query is longer than 262,144 bytes', hint = 'Ask with fewer words.';
  elsif p_fusion not in ('none', 'max', 'blend') then
    raise sqlstate '22023' using
      message = format('p_fusion is none, max or blend; it is %s', left(p_fusion, 100)),
      hint = 'none: the cosine where there is one; max: the better of cosine and text; blend: both, by p_fusion_weight.';
  end if;
  perform ranked_ledger.check_unit('p_min_relevance', greatest(p_min_relevance, 0)),
          ranked_ledger.check_unit('p_fusion_weight', p_fusion_weight);
end
$$;

comment on function ranked_ledger.check_question(text, text, float8, float8) is
  'Refuses (22023) a text above 262,144 bytes, an unknown fusion, a relevance or weight outside [0, 1].';

do $do$
begin
  if to_regprocedure('ranked_ledger.ask(text, text, vector, text, text, int, int, float8, float8, float8, float8, float8, float8, boolean, boolean, boolean, boolean, float8, float8, float8, text, float8, text, boolean)') is not null then
    execute 'drop function ranked_ledger.ask(text, text, vector, text, text, int, int, float8, float8, float8, float8, float8, float8, boolean, boolean, boolean, boolean, float8, float8, float8, text, float8, text, boolean)';
  end if;
end
$do$;

create or replace function ranked_ledger.ask(
  p_workspace_id text, p_query text, p_query_embedding vector, p_project_id text, p_task_id text, p_current_step int,
  p_match_count int, p_w_similarity float8, p_w_importance float8, p_w_recency float8, p_w_dependency float8,
  p_half_life_steps float8, p_dependency_saturation float8, p_include_superseded boolean, p_only_confirmed boolean,
  p_include_personal boolean, p_include_stale boolean, p_min_relevance float8, p_similarity_floor float8,
  p_similarity_ceiling float8, p_fusion text, p_fusion_weight float8, p_embedding_model text, p_exact boolean,
  p_preset text default 'published', p_w_summary float8 default null)
returns ranked_ledger.question language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
declare
  v_question ranked_ledger.question;
  v_range    record;
  v_preset   record := ranked_ledger.preset(coalesce(p_preset, 'published'));
begin
  v_question.w_similarity := coalesce(p_w_similarity, v_preset.w_similarity);
  v_question.w_importance := coalesce(p_w_importance, v_preset.w_importance);
  v_question.w_recency := coalesce(p_w_recency, v_preset.w_recency);
  v_question.w_dependency := coalesce(p_w_dependency, v_preset.w_dependency);
  v_question.w_summary := coalesce(p_w_summary, v_preset.w_summary);
  perform ranked_ledger.check_weight('p_w_similarity', v_question.w_similarity),
          ranked_ledger.check_weight('p_w_importance', v_question.w_importance),
          ranked_ledger.check_weight('p_w_recency', v_question.w_recency),
          ranked_ledger.check_weight('p_w_dependency', v_question.w_dependency),
          ranked_ledger.check_weight('p_w_summary', v_question.w_summary),
          ranked_ledger.check_question(p_query, p_fusion, p_min_relevance, p_fusion_weight);
  v_range := ranked_ledger.similarity_range(p_workspace_id, p_embedding_model, p_similarity_floor, p_similarity_ceiling);
  if p_query_embedding is not null then
    perform ranked_ledger.check_dimension(vector_dims(p_query_embedding));
  end if;
  v_question.workspace_id := p_workspace_id;
  v_question.workspace_key := ranked_ledger.workspace_key(p_workspace_id);
  v_question.embedding := case when vector_norm(p_query_embedding) > 0 then p_query_embedding end;
  v_question.has_text := p_query is not null;
  v_question.lexemes := array(
    select x.lexeme from unnest(to_tsvector(ranked_ledger.text_config(p_workspace_id), p_query)) as x);
  v_question.terms := array(
    select ranked_ledger.term_of(v_question.workspace_key, x.lexeme) from unnest(v_question.lexemes) as x (lexeme));
  v_question.project_id := p_project_id;
  v_question.task_id := p_task_id;
  v_question.current_step := p_current_step;
  v_question.match_count := ranked_ledger.match_count(p_match_count);
  -- below 1e-290 a division overflows
  v_question.half_life := greatest(ranked_ledger.positive_or(p_half_life_steps, v_preset.half_life), 1e-290);
  v_question.saturation := greatest(ranked_ledger.positive_or(p_dependency_saturation, v_preset.saturation), 1e-290);
  v_question.with_stale := coalesce(p_include_stale, v_preset.with_stale);
  v_question.with_retired := coalesce(p_include_superseded, false);
  v_question.with_personal := coalesce(p_include_personal, true);
  v_question.only_confirmed := coalesce(p_only_confirmed, false);
  v_question.min_relevance := greatest(p_min_relevance, 0);
  v_question.floor := v_range.p_floor;
  v_question.ceiling := v_range.p_ceiling;
  v_question.fusion := coalesce(p_fusion, v_preset.fusion);
  v_question.fusion_weight := coalesce(p_fusion_weight, v_preset.fusion_weight);
  v_question.exact := coalesce(p_exact, true);
  v_question.preset := coalesce(p_preset, 'published');
  v_question.penalty := v_preset.penalty;
  v_question.weighs_words := v_preset.weighs_words;
  v_question.length_share := 0.1;
  if v_question.weighs_words then
    v_question.term_weights := ranked_ledger.word_weights(v_question.workspace_key, v_question.terms);
  end if;
  return v_question;
end
$$;

comment on function ranked_ledger.ask(text, text, vector, text, text, int, int, float8, float8, float8, float8, float8, float8, boolean, boolean, boolean, boolean, float8, float8, float8, text, float8, text, boolean, text, float8) is
  'The arguments of match_decision_ledger as one question: refused (22023, RL463) where they cannot be meant, else with the defaults of their preset.';

-- decision_ledger/203_presets.sql -----------------------------------------------------------------------------------

-- What a recall weighs by where the caller does not say. A preset only fills in: each argument that is given goes before it.
-- published: the formula of the proposal, and the default of the RPCs. tuned: what was best on decisions of real projects,
-- whose parts are shown to help there, or kept by design where nothing is shown (docs/evaluation.md, docs/decisions/0048).

create or replace function ranked_ledger.preset(
  p_name text, out w_similarity float8, out w_importance float8, out w_recency float8, out w_dependency float8,
  out w_summary float8, out half_life float8, out saturation float8, out with_stale boolean, out penalty float8,
  out fusion text, out fusion_weight float8, out weighs_words boolean)
language plpgsql immutable
set search_path = public, extensions, pg_temp
as $$
begin
  case p_name
    when 'published' then
      w_similarity := 0.45; w_importance := 0.25; w_recency := 0.15; w_dependency := 0.15; w_summary := 0;
      half_life := 30; with_stale := false; penalty := 0.30;
      fusion := 'none'; fusion_weight := 0.5; weighs_words := false;
    when 'tuned' then
      w_similarity := 0.78; w_importance := 0.08; w_recency := 0.04; w_dependency := 0.05; w_summary := 0.05;
      half_life := 30; with_stale := true; penalty := 0.05;
      fusion := 'blend'; fusion_weight := 0.4; weighs_words := true;
    else
      raise sqlstate '22023' using
        message = format('there is no preset %s', coalesce(quote_literal(left(p_name, 100)), 'null')),
        hint = 'published: the formula of the proposal. tuned: rare words, calibrated cosine and both together, for long work.';
  end case;
  saturation := 3;
end
$$;

comment on function ranked_ledger.preset(text) is
  'The defaults of a named preset, published or tuned: weights, half-life, whether stale and disputed decisions take part and what they lose, fusion, whether words weigh by how rare they are. 22023 for another name.';

-- decision_ledger/204_rare_words.sql --------------------------------------------------------------------------------

-- Text relevance of the tuned preset. The published one counts how often any word of the question stands in the text: common
-- words win, long texts win, and three words are as good as thirty. Here a word weighs by how rare it is, its second occurrence
-- counts for less than its first, and a long text has to have more. The constants were fitted on a coarse grid over six streams
-- of decisions and are no one stream's (docs/decisions/0048).

-- In a ledger of a few decisions nothing tells a rare word from a common one, and every word would weigh next to nothing: it is
-- taken for one of fifty, which on the streams that were tuned on changed no order.
create or replace function ranked_ledger.rarity(p_documents bigint, p_with bigint)
returns float8 language sql immutable parallel safe
return case when p_with > 0
            then ln(1 + (greatest(greatest(p_documents, 50) - p_with, 0) + 0.5::float8) / (p_with + 0.5::float8))
            else 0::float8 end;

comment on function ranked_ledger.rarity(bigint, bigint) is
  'What a word weighs that stands in so many of so many decisions: ln(1 + (N - n + 0.5) / (n + 0.5)), the inverse document frequency of BM25 as Lucene keeps it positive, N at least 50. 0 for a word that stands in none.';

create or replace function ranked_ledger.word_share(p_weight float8, p_occurrences bigint)
returns float8 language sql immutable parallel safe
return p_weight * (p_occurrences / (p_occurrences + 3::float8));

comment on function ranked_ledger.word_share(float8, bigint) is
  'What a word contributes that stands so often in a text: its weight times n/(n+3).';

create or replace function ranked_ledger.text_of_shares(p_shares float8, p_length int, p_length_share float8)
returns float8 language sql immutable parallel safe
return p_shares / (p_shares + 4 * (1 - p_length_share + p_length_share * (p_length / 100::float8)));

comment on function ranked_ledger.text_of_shares(float8, int, float8) is
  'Text relevance in [0,1) of the shares of its words: s/(s + 4l), l = 0.9 + 0.1 of its length in hundreds of words. The length stands outside the sum over words (in BM25 it stands inside), so that it is looked up once a decision.';

-- Here a copy that lags would show in the score of every other decision, so those that are marked are counted from the tables:
-- what their copies said is taken off, what the tables say comes on. Right for any number of marks, and for a question of any
-- length: the words of a decision are read once, and looked for among those asked for.
create or replace function ranked_ledger.correction_of_marked(
  p_workspace_key bigint, p_terms bigint[], out documents bigint, out terms bigint[], out changes bigint[])
language plpgsql stable
set search_path = public, extensions, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_marked uuid[] := array(select distinct c.memory_id from ranked_ledger.stale_copies c where c.workspace_key = p_workspace_key);
begin
  documents := 0;
  if v_marked = '{}' then
    return;
  end if;
  with copied as materialized (
    select s.row_no, s.is_retired from unnest(v_marked) as c (memory_id)
    cross join lateral (select x.* from ranked_ledger.standings x where x.memory_id = c.memory_id offset 0) as s
    where s.workspace_key = p_workspace_key),
  due as materialized (
    select l.search_lexemes, coalesce(m.lifecycle_status in ('superseded', 'rejected'), true) as is_retired
    from unnest(v_marked) as c (memory_id)
    cross join lateral (select x.* from public.agent_decision_ledger x where x.memory_id = c.memory_id offset 0) as l
    cross join lateral (select x.* from public.agent_memories x where x.id = l.memory_id offset 0) as m
    where m.workspace_id = l.workspace_id and l.set_aside_at is null
      and ranked_ledger.workspace_key(l.workspace_id) = p_workspace_key),
  changed as (
    select p.term, -1 as change from copied o
    cross join lateral (select x.term from ranked_ledger.postings x where x.row_no = o.row_no offset 0) as p
    union all
    select ranked_ledger.term_of(p_workspace_key, x.lexeme), 1
    from due d cross join lateral unnest(tsvector_to_array(d.search_lexemes)) as x (lexeme)),
  summed as (
    select c.term, sum(c.change) as change from changed c where c.term in (select unnest(p_terms)) group by 1)
  select (select count(*) from due d where not d.is_retired) - (select count(*) from copied o where not o.is_retired),
         array_agg(s.term), array_agg(s.change)
  into documents, terms, changes
  from summed s;
end
$$;

comment on function ranked_ledger.correction_of_marked(bigint, bigint[]) is
  'What the copies of a workspace''s marked decisions miscount: how many more decisions are not retired, and how many more hold which of these terms.';

-- Document frequencies come from the postings: those of all decisions, in force or not. The number of decisions is that of those
-- that are not retired, which an index holds; a word that stands in more of them than there are is as common as can be.
create or replace function ranked_ledger.word_weights(p_workspace_key bigint, p_terms bigint[])
returns float8[] language plpgsql stable
set search_path = public, extensions, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set enable_nestloop = off -- two lists that may be long
set jit = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_documents bigint;
  v_marked    record;
begin
  if p_terms = '{}' then
    return '{}';
  end if;
  select count(*) into v_documents from ranked_ledger.standings s where s.workspace_key = p_workspace_key and not s.is_retired;
  v_marked := ranked_ledger.correction_of_marked(p_workspace_key, p_terms);
  return array(
    select ranked_ledger.rarity(
      v_documents + v_marked.documents,
      (select count(*) from ranked_ledger.postings p where p.term = t.term) + coalesce(c.change, 0))
    from unnest(p_terms) with ordinality as t (term, place)
    left join unnest(v_marked.terms, v_marked.changes) as c (term, change) on c.term = t.term
    order by t.place);
end
$$;

comment on function ranked_ledger.word_weights(bigint, bigint[]) is
  'The rarity of each of these terms in its workspace, of today.';

-- decision_ledger/205_supersession.sql ------------------------------------------------------------------------------

-- The chain of supersession, over the host's relations (new, old, 'supersedes'). `union` ends at loops in what others
-- wrote, and visits each memory once; the workspace of the start is never left.

create or replace function ranked_ledger.superseded_by(p_memory_id uuid)
returns table (memory_id uuid) language sql stable
set search_path = public, extensions, pg_temp
as $$
  with recursive later as (
    select m.id as memory_id, m.workspace_id from public.agent_memories m where m.id = p_memory_id
    union
    select m.id, m.workspace_id
    from later w
    join public.agent_memory_relations r on r.to_memory_id = w.memory_id and r.relation = 'supersedes'
    join public.agent_memories m on m.id = r.from_memory_id and m.workspace_id = w.workspace_id
  )
  select w.memory_id from later w where w.memory_id <> p_memory_id
$$;

comment on function ranked_ledger.superseded_by(uuid) is 'Everything that replaced a decision, directly or further on.';

create or replace function ranked_ledger.successor(p_memory_id uuid)
returns uuid language sql stable
set search_path = public, extensions, pg_temp
as $$
  select m.id
  from ranked_ledger.superseded_by(p_memory_id) s
  join public.agent_memories m on m.id = s.memory_id and m.lifecycle_status = 'active'
  left join public.agent_decision_ledger l on l.memory_id = m.id
  order by m.created_at desc, l.step_index desc nulls last, m.id
  limit 1
$$;

comment on function ranked_ledger.successor(uuid) is
  'The newest active decision of what replaced this one; null where nothing active did.';

create or replace function ranked_ledger.supersession_chain(p_memory_id uuid)
returns table (memory_id uuid) language sql stable
set search_path = public, extensions, pg_temp
as $$
  with recursive linked as (
    select m.id as memory_id, m.workspace_id from public.agent_memories m where m.id = p_memory_id
    union
    select m.id, m.workspace_id
    from linked k
    join public.agent_memory_relations r
      on r.relation = 'supersedes' and k.memory_id in (r.from_memory_id, r.to_memory_id)
    join public.agent_memories m
      on m.id = case when r.from_memory_id = k.memory_id then r.to_memory_id else r.from_memory_id end
     and m.workspace_id = k.workspace_id)
  select k.memory_id from linked k
$$;

comment on function ranked_ledger.supersession_chain(uuid) is
  'Every decision that is tied to this one by supersession, before and after, itself included.';

-- decision_ledger/206_weigh.sql -------------------------------------------------------------------------------------

-- The ranking, from the tables themselves. What answers a recall was always weighed here: the copies of 160 only say which
-- decisions are worth it. As of a moment too (211): lifecycle, dependents and newest step are then those of then.
select ranked_ledger.define_type('ranked_decision',
  'memory_id uuid, summary text, content text, rationale text, step_index integer, importance double precision, ' ||
  'pinned boolean, lifecycle_status text, relevance double precision, relevance_source text, recency double precision, ' ||
  'dependency_boost double precision, ranking_score double precision, project_id text, task_id text, ' ||
  'similarity double precision, text_relevance double precision, step_distance bigint, live_dependents integer, ' ||
  'summary_match double precision');

comment on type ranked_ledger.ranked_decision is 'A decision with its components and its score.';

-- Everything is looked up row by row, by one index each: cheap for a shortlist, and right for any number. Nested queries, since a
-- join was planned through all the decisions of the workspace: without statistics, 9,000 took 4 seconds.
create or replace function ranked_ledger.look_up(p_question ranked_ledger.question, p_memory_ids uuid[])
returns setof ranked_ledger.ranked_decision language plpgsql stable
set search_path = public, extensions, pg_temp
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
as $$
declare
  q           ranked_ledger.question := p_question;
  v_dimension int := vector_dims(p_question.embedding);
  v_is_past   boolean := p_question.as_of is not null;
  v_moment    ranked_ledger.moment := case when v_is_past then ranked_ledger.moment_of(p_question) end;
  v_newest    jsonb := case when v_is_past then ranked_ledger.newest_steps_then(p_question) end;
  v_weights   float8[] := p_question.term_weights;
  v_places    jsonb := ( -- of a word among the weights: a key of an object is found by halves
    select jsonb_object_agg(w.lexeme, w.place) from unnest(p_question.lexemes) with ordinality as w (lexeme, place)
    where p_question.has_text and p_question.weighs_words);
begin
  return query
  select l.memory_id, m.summary, m.content, l.rationale, l.step_index, l.importance::float8, l.pinned, m.lifecycle_status,
         null::float8, null::text, null::float8, null::float8, null::float8, l.project_id, l.task_id,
         -- a zero vector's cosine is NaN: no vector; the host's column may hold vectors of several dimensions
         case when vector_dims(t.embedding) = v_dimension then nullif(1 - (t.embedding <=> q.embedding), 'NaN') end,
         case when not q.has_text then null
              when q.weighs_words
              then ranked_ledger.text_of_shares(coalesce(w.shares, 0), coalesce(w.length, 0)::int, q.length_share)
              else ranked_ledger.saturate(ranked_ledger.rank_of_any(n.occurrences)) end,
         greatest(0, greatest(coalesce(q.current_step, 0), case when v_is_past then (v_newest ->> l.stream_id::text)::int
                                                                else newest.step end)::bigint - l.step_index),
         case when v_is_past then ranked_ledger.live_dependents_then(l.memory_id, v_moment) else d.live_dependents end,
         case when q.has_text and q.w_summary > 0
              then coalesce((select count(*) from unnest(ts_filter(l.search_lexemes, '{a}')) as x
                             where x.lexeme in (select w.lexeme from unnest(q.lexemes) as w (lexeme)))
                            / nullif(length(ts_filter(l.search_lexemes, '{a}')), 0)::float8, 0)
              else 0 end
  from unnest(p_memory_ids) as c (memory_id)
  cross join lateral (select x.* from public.agent_decision_ledger x where x.memory_id = c.memory_id offset 0) as l
  cross join lateral (
    select x.summary, x.content, x.thought_id, x.workspace_id, x.visibility, x.requires_user_confirmation,
           case when v_is_past then ranked_ledger.lifecycle_then(x.id, x.lifecycle_status, v_moment)
                else x.lifecycle_status end as lifecycle_status,
           case when v_is_past and q.only_confirmed then ranked_ledger.review_status_then(x.id, x.review_status, v_moment)
                else x.review_status end as review_status
    from public.agent_memories x where x.id = l.memory_id offset 0) as m
  left join lateral (
    select x.embedding from public.thoughts x where x.id = m.thought_id and q.embedding is not null offset 0) as t on true
  left join lateral (
    select x.step_index as step from public.agent_decision_ledger x
    where x.stream_id = l.stream_id and x.step_index <= ranked_ledger.max_step() and not v_is_past
    order by x.step_index desc limit 1) as newest on true
  cross join lateral (
    select count(*)::int as live_dependents
    from public.agent_decision_edges e
    where e.to_memory_id = l.memory_id and e.relation = 'depends_on' and not v_is_past
      and (select x.workspace_id = l.workspace_id and x.set_aside_at is null
                  and (select y.lifecycle_status = 'active' and y.workspace_id = x.workspace_id
                       from public.agent_memories y where y.id = x.memory_id)
           from public.agent_decision_ledger x where x.memory_id = e.from_memory_id)) as d
  -- words of weight A are the summary's (100)
  cross join lateral ( -- what ts_rank_cd says of a disjunction, without its 20 microseconds a word
    select sum(cardinality(x.positions)) as occurrences from unnest(ts_filter(l.search_lexemes, '{d}')) as x
    where q.has_text and not q.weighs_words and x.lexeme in (select w.lexeme from unnest(q.lexemes) as w (lexeme))) as n
  cross join lateral (
    select sum(cardinality(x.positions)) as length,
           -- most words are none of the question's, and a hash tells so sooner than a key
           sum(ranked_ledger.word_share(v_weights[(v_places -> x.lexeme)::int], cardinality(x.positions)))
             filter (where x.lexeme in (select w.lexeme from unnest(q.lexemes) as w (lexeme))) as shares
    from unnest(ts_filter(l.search_lexemes, '{d}')) as x where q.has_text and q.weighs_words) as w
  -- the workspace twice: a row that could not follow its moved memory is shown in neither
  where l.workspace_id = q.workspace_id and m.workspace_id = q.workspace_id and l.set_aside_at is null
    and (q.project_id is null or l.project_id = q.project_id) and (q.task_id is null or l.task_id = q.task_id)
    and (m.lifecycle_status = 'active' or q.with_retired
         or q.with_stale and m.lifecycle_status not in ('superseded', 'rejected'))
    and (q.with_personal or m.visibility is distinct from 'personal')
    and not (q.only_confirmed and ranked_ledger.awaits_confirmation(m.requires_user_confirmation, m.review_status));
end
$$;

comment on function ranked_ledger.look_up(ranked_ledger.question, uuid[]) is
  'The decisions among these that a question is about, each from the ledger, its memory, thought, stream and edges as they are now, or as they were at the moment of the question. What is worked out of that is null.';

create or replace function ranked_ledger.weigh(p_question ranked_ledger.question, p_memory_ids uuid[])
returns setof ranked_ledger.ranked_decision language plpgsql stable
set search_path = public, extensions, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
  q ranked_ledger.question := p_question;
begin
  -- `offset 0` keeps each component a column: merged into the score, which names it several times, each was computed
  -- ten times a row and the formula's functions were called instead of inlined
  return query
  select r.memory_id, r.summary, r.content, r.rationale, r.step_index, r.importance, r.pinned, r.lifecycle_status,
         r.relevance, r.relevance_source, r.recency, r.dependency_boost,
         ranked_ledger.score(r.relevance, r.importance, r.recency, r.dependency_boost, q.w_similarity, q.w_importance,
                             q.w_recency, q.w_dependency, r.lifecycle_status = 'active', r.summary_match, q.w_summary,
                             case when r.lifecycle_status in ('superseded', 'rejected') then 0.30 else q.penalty end),
         r.project_id, r.task_id, r.similarity, r.text_relevance, r.step_distance, r.live_dependents, r.summary_match
  from (
    select c.memory_id, c.summary, c.content, c.rationale, c.step_index, c.importance, c.pinned, c.lifecycle_status,
           c.project_id, c.task_id, c.similarity, c.text_relevance, c.step_distance, c.live_dependents, c.summary_match,
           ranked_ledger.relevance(ranked_ledger.calibrate(c.similarity, q.floor, q.ceiling), c.text_relevance,
                                   q.fusion, q.fusion_weight) as relevance,
           case when c.similarity is null then case when q.has_text then 'fts' else 'none' end
                when q.has_text and q.fusion <> 'none' then q.fusion else 'cosine' end as relevance_source,
           ranked_ledger.recency(c.step_distance, q.half_life) as recency,
           ranked_ledger.dependency(c.live_dependents, q.saturation) as dependency_boost
    from ranked_ledger.look_up(q, p_memory_ids) as c offset 0) as r
  where r.relevance >= q.min_relevance;
end
$$;

comment on function ranked_ledger.weigh(ranked_ledger.question, uuid[]) is
  'The decisions among these that a question is about, looked up, with components and score.';

create or replace function ranked_ledger.all_decisions(p_workspace_id text)
returns uuid[] language sql stable
set search_path = public, extensions, pg_temp
as $$
  select coalesce(array_agg(l.memory_id), '{}') from public.agent_decision_ledger l
  where l.workspace_id = p_workspace_id and l.set_aside_at is null
$$;

comment on function ranked_ledger.all_decisions(text) is 'Every decision of a workspace: the shortlist of a recall that trusts no copy.';

-- decision_ledger/207_shortlist.sql ---------------------------------------------------------------------------------

-- Which decisions are worth weighing, from the copies. For a question without an embedding the copies hold all that the
-- score is made of, so the list is in the order of the answer. With one, the rounded vectors leave an interval, and the list
-- holds every decision that could be in the answer: both are proven, not guessed.
select ranked_ledger.define_type('shortlist',
  'memory_ids uuid[], estimates double precision[], tolerance double precision, exact boolean');

comment on type ranked_ledger.shortlist is 'Decisions, and their scores as the copies have them, right within the tolerance.';

create or replace function ranked_ledger.streams_asked(
  p_question ranked_ledger.question, out stream_ids uuid[], out newest_steps float8[])
language plpgsql stable
set search_path = public, extensions, pg_temp
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
as $$
begin
  select coalesce(array_agg(n.stream_id), '{}'), coalesce(array_agg(greatest(n.newest_step, p_question.current_step, 0)), '{}')
  into stream_ids, newest_steps
  from (
    select x.stream_id, max(x.newest_step) as newest_step
    from (select s.stream_id, s.newest_step, s.project_id, s.task_id from ranked_ledger.streams s
          where s.workspace_id = p_question.workspace_id
            and s.stream_id not in (select p.stream_id from ranked_ledger.pending_steps p where p.memory_id is null)
          union all -- rows that are not settled yet
          select l.stream_id, case when l.step_index <= ranked_ledger.max_step() then l.step_index end, l.project_id, l.task_id
          from ranked_ledger.pending_steps p
          cross join lateral (select d.* from public.agent_decision_ledger d where d.memory_id = p.memory_id offset 0) as l
          where l.workspace_id = p_question.workspace_id
          union all -- streams that lost a row, and have not found their newest step again
          select l.stream_id, (select y.step_index from public.agent_decision_ledger y
                               where y.stream_id = l.stream_id and y.step_index <= ranked_ledger.max_step()
                               order by y.step_index desc limit 1), l.project_id, l.task_id
          from (select distinct p.stream_id from ranked_ledger.pending_steps p where p.memory_id is null) as p
          cross join lateral (select d.* from public.agent_decision_ledger d where d.stream_id = p.stream_id limit 1) as l
          where l.workspace_id = p_question.workspace_id) as x
    where (p_question.project_id is null or x.project_id = p_question.project_id)
      and (p_question.task_id is null or x.task_id = p_question.task_id)
    group by x.stream_id) as n;
end
$$;

comment on function ranked_ledger.streams_asked(ranked_ledger.question) is
  'The streams in the scope of a question, and where each stands: at its newest step, of every row whatever its lifecycle, or at the current step of the question where that is greater.';

create or replace function ranked_ledger.cosine_error(p_dimensions int)
returns float8 language sql immutable parallel safe
return 2 * (power(2, -11) + sqrt(p_dimensions) * power(2, -24)) + 4 * p_dimensions * power(2, -24);

comment on function ranked_ledger.cosine_error(int) is
  'How far the inner product of two rounded directions can be from the host''s cosine: half precision rounds each component by 2^-11 of itself at most (2^-25 where it is subnormal), so each direction by 2^-11 of its length; single precision adds 2^-24 a term, to both sums.';

-- What restricts the scope, as it is written into a query over standings s.
create or replace function ranked_ledger.scope_sql(p_question ranked_ledger.question)
returns text language plpgsql immutable
set search_path = public, extensions, pg_temp
as $$
begin
  return concat_ws(' and ',
    case when p_question.with_retired then 'true' when p_question.with_stale then 'not s.is_retired' else 's.is_active' end,
    case when not p_question.with_personal then 'not s.is_personal' end,
    case when p_question.only_confirmed then 'not s.is_unconfirmed' end);
end
$$;

comment on function ranked_ledger.scope_sql(ranked_ledger.question) is 'The filters of a question over the flags of standings.';

create or replace function ranked_ledger.relevance_sql(
  p_question ranked_ledger.question, p_cosine text, p_text text, p_fusion text, p_fusion_weight text)
returns text language plpgsql immutable
set search_path = public, extensions, pg_temp
as $$
begin
  return case when p_cosine is null then coalesce(p_text, '0::float8')
              when p_text is not null and p_question.fusion = 'blend' -- by the same operations, without a comparison a row
              then format('case when %1$s is null then %2$s else %3$s * %1$s + (1 - %3$s) * %2$s end',
                          p_cosine, p_text, p_fusion_weight)
              when p_text is not null and p_question.fusion <> 'none'
              then format('ranked_ledger.relevance(%s, %s, %s, %s)', p_cosine, p_text, p_fusion, p_fusion_weight)
              else format('coalesce(%s, %s)', p_cosine, coalesce(p_text, '0::float8')) end;
end
$$;

comment on function ranked_ledger.relevance_sql(ranked_ledger.question, text, text, text, text) is
  'ranked_ledger.relevance of these expressions, as short as the question allows.';

-- Old is what lies four half-lives or more behind the newest step of its stream.
create or replace function ranked_ledger.old_recency()
returns float8 language sql immutable parallel safe
return 0.0184;

comment on function ranked_ledger.old_recency() is 'A recency that no old decision exceeds: above exp(-4) by more than rounding.';

-- The standings that a pass scores, each with where its stream stands. Stream by stream: as a join, it was planned over every
-- workspace's standings. By merit, it is not all of them: of the old ones only who has enough merit
-- can reach the threshold, or is pinned.
create or replace function ranked_ledger.scored_sql(p_question ranked_ledger.question, p_by_merit boolean)
returns text language plpgsql immutable
set search_path = public, extensions, pg_temp
as $$
declare
  v_columns text := 's.row_no, s.memory_id, s.step_index, s.importance, s.live_dependents, s.vector_dims, s.pinned, ' ||
                    's.is_active, s.is_retired, s.text_length, s.summary_words';
  v_scope   text := ranked_ledger.scope_sql(p_question);
  v_streams text := '(select u.stream_id, u.newest_step,
                             greatest(-1, least(floor(u.newest_step - 4 * least($3, 1e300)), u.newest_step - 1))::int as last_old_step
                      from unnest($1::uuid[], $2::float8[]) as u (stream_id, newest_step) offset 0) as n';
begin
  if not p_by_merit then
    return format('select n.newest_step, n.last_old_step, s.* from %s cross join lateral (
                     select %s from ranked_ledger.standings s where s.stream_id = n.stream_id and %s offset 0) as s',
                  v_streams, v_columns, v_scope);
  end if;
  return format($sql$
    select n.newest_step, n.last_old_step, s.* from %1$s
    cross join lateral (
      select %2$s from ranked_ledger.standings s
      where s.stream_id = n.stream_id and s.step_index > n.last_old_step and %3$s offset 0) as s
    union all
    select n.newest_step, n.last_old_step, %2$s
    from (select s.* from ranked_ledger.standings s
          where s.workspace_key = $17 and not s.is_retired
            and ranked_ledger.merit(s.importance, s.live_dependents) >= $18 and not s.pinned and %3$s offset 0) as s
    join %1$s on n.stream_id = s.stream_id where s.step_index <= n.last_old_step
    union all
    select n.newest_step, n.last_old_step, %2$s
    from (select s.* from ranked_ledger.standings s where s.workspace_key = $17 and s.pinned and %3$s offset 0) as s
    join %1$s on n.stream_id = s.stream_id where s.step_index <= n.last_old_step
  $sql$, v_streams, v_columns, v_scope);
end
$$;

comment on function ranked_ledger.scored_sql(ranked_ledger.question, boolean) is
  'The standings in the scope of a question: all, or those that are recent, pinned or of a merit of $18; $1 to $3 and $17 as in pass_sql.';

-- One pass over the standings in scope. It is written for the question: of 100,000 rows each operator costs milliseconds, and
-- what a question has no use for is left out. The score is summed in the order of the formula, so that it is the same to the
-- last bit; each part stands once, since a function whose argument it names twice is not inlined. Most rows fall at the
-- threshold, by a bound of their recency. Bounded, no words are counted either: a row without a cosine is scored as if all of it
-- matched.
create or replace function ranked_ledger.pass_sql(p_question ranked_ledger.question, p_is_bounded boolean, p_by_merit boolean)
returns text language plpgsql immutable
set search_path = public, extensions, pg_temp
as $$
declare
  v_counts    boolean := p_question.terms <> '{}' and not p_is_bounded;
  v_text      text := case when p_is_bounded then '1::float8'
                           when v_counts and p_question.weighs_words
                           then 'coalesce(ranked_ledger.text_of_shares(p.shares, s.text_length, $20), 0)'
                           when v_counts then 'coalesce(p.relevance, 0)'
                           when p_question.has_text then '0::float8' end;
  v_summary   text := case when v_counts and p_question.w_summary > 0
                           then '+ $21 * coalesce(p.named / nullif(s.summary_words, 0)::float8, 0)' else '' end;
  v_relevance text := ranked_ledger.relevance_sql(
    p_question, case when p_question.embedding is not null then 'case when s.vector_dims = $12 then $11 end' end, v_text,
    '$13', '$14');
begin
  return format($sql$
    with posted as (
      select p.row_no, %9$s
      from unnest($9::bigint[], $19::float8[]) as t (term, weight)
      cross join lateral (
        select p.row_no, p.occurrences, p.in_summary from ranked_ledger.postings p where p.term = t.term offset 0) as p
      group by p.row_no)
    select s.row_no, s.memory_id, s.pinned, s.is_far, s.text_relevance, s.relevance, s.score
    from (
      select s.row_no, s.memory_id, s.pinned, s.step_index, %1$s as is_far, %2$s as text_relevance, %3$s as relevance,
             %4$s $6 * s.importance + $7 * ranked_ledger.recency(greatest(s.newest_step - s.step_index, 0), $3)
             + $8 * ranked_ledger.dependency(s.live_dependents, $4) %10$s %5$s as score
      from (%7$s) as s
      %6$s
      where (%4$s $6 * s.importance + $8 * ranked_ledger.dependency(s.live_dependents, $4) %10$s
             >= case when s.step_index > s.last_old_step then $10 - $7 else $10 - ranked_ledger.old_recency() * $7 end
             or s.pinned) %8$s offset 0) as s
    where s.score >= $10 or s.pinned
    order by s.pinned desc, s.score desc, s.step_index desc, s.memory_id limit $16
  $sql$,
    case when p_question.embedding is null then 'false' else 's.vector_dims = $12' end,
    case when p_is_bounded then 'null::float8' else coalesce(v_text, 'null::float8') end, v_relevance,
    case when v_relevance <> '0::float8' then format('$5 * %s +', v_relevance) end,
    case when p_question.with_retired or p_question.with_stale
         then '- case when s.is_active then 0::float8 when s.is_retired then 0.30::float8 else $22 end' end,
    case when v_counts then 'left join posted p on p.row_no = s.row_no' end,
    ranked_ledger.scored_sql(p_question, p_by_merit),
    case when p_question.min_relevance > 0 then format('and %s >= $15', v_relevance) end,
    case when p_question.weighs_words then 'sum(ranked_ledger.word_share(t.weight, p.occurrences)) as shares'
         else 'ranked_ledger.saturate(ranked_ledger.rank_of_any(sum(p.occurrences))) as relevance' end
    || case when p_question.w_summary > 0 then ', count(*) filter (where p.in_summary) as named' else '' end,
    v_summary);
end
$$;

comment on function ranked_ledger.pass_sql(ranked_ledger.question, boolean, boolean) is
  'The query that scores the standings in scope by the copies, of those that may reach the threshold: $1, $2 streams and where each stands, $3 half-life, $4 saturation, $5 to $8 weights, $9 terms, $10 the threshold, $11 the relevance that no cosine exceeds, $12 dimensions, $13, $14 fusion, $15 minimum relevance, $16 limit, $17 workspace and $18 least merit where it goes by merit, $19 what the terms weigh, $20 what the length counts for, $21 the weight of the summary, $22 what is taken from the stale and disputed.';

-- The index of merits is of decisions that are not retired, and knows nothing of words; what a stale one loses is not in it. For
-- other weights it still bounds: importance and dependency together weigh at most so many times their merit.
create or replace function ranked_ledger.least_merit(p_question ranked_ledger.question, p_threshold float8, p_relevance float8)
returns float8 language plpgsql immutable
set search_path = public, extensions, pg_temp
as $$
declare
  v_times float8 := greatest(
    p_question.w_importance / 0.25, least(p_question.w_dependency, 1e7) / 0.15 * greatest(1, 3 / p_question.saturation));
begin
  if p_question.has_text or p_question.with_retired or v_times not between 1e-6 and 1e6 then
    return '-Infinity';
  end if;
  return (p_threshold - ranked_ledger.old_recency() * p_question.w_recency - p_question.w_similarity * p_relevance) / v_times
         * (1 - 1e-12) - 1e-12;
end
$$;

comment on function ranked_ledger.least_merit(ranked_ledger.question, float8, float8) is
  'The merit without which a decision of four half-lives ago does not reach the threshold, no relevance being above p_relevance. -Infinity: not to be told.';

create or replace function ranked_ledger.few_have_merit(p_workspace_key bigint, p_least float8, p_newest_steps float8[])
returns boolean language plpgsql stable
set search_path = public, extensions, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_few int := (select least(50000, sum(n.step) / 8)::int from unnest(p_newest_steps) as n (step));
begin
  return p_least > 0 and (
    select count(*) <= v_few
    from (select from ranked_ledger.standings s
          where s.workspace_key = p_workspace_key and not s.is_retired
            and ranked_ledger.merit(s.importance, s.live_dependents) >= p_least
          limit v_few + 1) as x);
end
$$;

comment on function ranked_ledger.few_have_merit(bigint, float8, float8[]) is
  'Whether it pays to look up the decisions of that merit instead of passing over all: one of eight or less, as far as the steps of the streams tell their number.';

-- Some score that as many decisions as are asked for do reach: that of the newest ones of each stream.
create or replace function ranked_ledger.scout(
  p_question ranked_ledger.question, p_stream_ids uuid[], p_newest_steps float8[], p_count int)
returns float8 language plpgsql stable
set search_path = public, extensions, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
declare
  q       ranked_ledger.question := p_question;
  v_found record;
begin
  if q.min_relevance > 0 then
    return '-Infinity';
  end if;
  if cardinality(q.terms) > 200 then -- each would be looked up for each row; without them the score is less, and is reached too
    q.terms := '{}';
  end if;
  execute format($sql$
    select x.pinned, x.score
    from (
      select s.pinned, %s $6 * s.importance + $7 * ranked_ledger.recency(greatest(n.newest_step - s.step_index, 0), $3)
             + $8 * ranked_ledger.dependency(s.live_dependents, $4)
             - case when s.is_active then 0::float8 when s.is_retired then 0.30::float8 else $12 end as score
      from unnest($1::uuid[], $2::float8[]) as n (stream_id, newest_step)
      cross join lateral (
        select s.* from ranked_ledger.standings s
        where s.stream_id = n.stream_id and %s order by s.step_index desc limit $5) as s) as x
    order by x.pinned desc, x.score desc offset $9 - 1 limit 1
  $sql$, case when q.terms = '{}' then ''
              when q.weighs_words then '$10 * (
      select coalesce(ranked_ledger.text_of_shares(sum(ranked_ledger.word_share(t.weight, p.occurrences)), s.text_length, $14), 0)
      from unnest($11, $13) as t (term, weight)
      cross join lateral (
        select p.occurrences from ranked_ledger.postings p where p.term = t.term and p.row_no = s.row_no offset 0) as p) +'
              else '$10 * ranked_ledger.saturate((
      select ranked_ledger.rank_of_any(sum(p.occurrences)) from ranked_ledger.postings p
      where p.term = any ($11) and p.row_no = s.row_no)) +' end, ranked_ledger.scope_sql(q))
  into v_found
  using p_stream_ids, p_newest_steps, q.half_life, q.saturation, 2 + 4 * p_count / greatest(1, cardinality(p_stream_ids)),
        q.w_importance, q.w_recency, q.w_dependency, p_count, q.w_similarity, q.terms, q.penalty, q.term_weights, q.length_share;
  return case when not v_found.pinned then v_found.score else '-Infinity' end;
end
$$;

comment on function ranked_ledger.scout(ranked_ledger.question, uuid[], float8[], int) is
  'A score that so many decisions reach: whatever is below it is not in the answer. -Infinity where none was found.';

-- decision_ledger/208_shortlist_exact.sql ---------------------------------------------------------------------------

create or replace function ranked_ledger.rounding(p_question ranked_ledger.question)
returns float8 language plpgsql immutable
set search_path = public, extensions, pg_temp
as $$
begin
  return 1e-12 * (0.3 + p_question.w_similarity + p_question.w_importance + p_question.w_recency + p_question.w_dependency + p_question.w_summary);
end
$$;

comment on function ranked_ledger.rounding(ranked_ledger.question) is 'How far two sums of the same score may be apart.';

create or replace function ranked_ledger.holds_at_most(p_stream_ids uuid[], p_count int)
returns boolean language plpgsql stable
set search_path = public, extensions, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off -- it would gather all of them before it counts the first
set plan_cache_mode = force_generic_plan
as $$
begin
  return (select count(*) <= p_count
  from (select from ranked_ledger.standings s where s.stream_id = any (p_stream_ids) limit p_count + 1) as x);
end
$$;

comment on function ranked_ledger.holds_at_most(uuid[], int) is 'Whether streams hold no more decisions than that, without counting beyond.';

-- All rounded directions of the workspace, out of scope ones too: they only take a place. Executed, and not a statement of its
-- own: `select into` stops at its first row, and what may stop is never given parallel workers.
create or replace function ranked_ledger.nearest(
  p_question ranked_ledger.question, p_count int,
  out row_nos int[], out cosines float8[], out far float8)
language plpgsql stable
set search_path = public, extensions, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
begin
  far := 1;
  if p_count = 0 then
    return;
  end if;
  execute $sql$
    select array_agg(x.row_no), array_agg(x.cosine), case when count(*) < $4 then -1 else min(x.cosine) end
    from (
      select v.row_no, case when vector_dims(v.embedding) = $3 then - (v.embedding <#> $2)
                            when v.embedding is null then 2 -- nothing is known of it
                            else -1 end as cosine
      from ranked_ledger.decision_vectors v where v.workspace_key = $1
      order by 2 desc limit $4) as x
  $sql$
  into row_nos, cosines, far
  using p_question.workspace_key, l2_normalize(p_question.embedding)::halfvec, vector_dims(p_question.embedding), p_count;
end
$$;

comment on function ranked_ledger.nearest(ranked_ledger.question, int) is
  'The nearest decisions of a workspace by their rounded vectors, by a scan of all of them: what is not among them is no nearer than far.';

-- relevance and score are those that the copies have, or, of a far one, a bound: its cosine is not looked up yet, nor are the
-- words of one whose text_relevance is null. A score of null: nothing is known of its vector.
select ranked_ledger.define_type('candidate',
  'row_no integer, memory_id uuid, pinned boolean, is_far boolean, text_relevance double precision, ' ||
  'relevance double precision, score double precision');

comment on type ranked_ledger.candidate is 'A decision that may be in an answer, as the copies have it.';

create or replace function ranked_ledger.score_nearest(
  p_question ranked_ledger.question, p_stream_ids uuid[], p_newest_steps float8[], p_row_nos int[], p_cosines float8[], p_slack float8)
returns ranked_ledger.candidate[] language plpgsql stable
set search_path = public, extensions, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set enable_mergejoin = off
set enable_nestloop = off -- but where it is the only way: each look-up is a lateral
set plan_cache_mode = force_generic_plan
as $$
declare
  q         ranked_ledger.question := p_question;
  v_weights float8[] := p_question.term_weights;
  v_is_long boolean := cardinality(p_question.terms) > 200;
  v_places  jsonb := ( -- then the words of a decision are looked for in the question, and not the other way round
    select jsonb_object_agg(t.term, t.place) from unnest(p_question.terms) with ordinality as t (term, place) where v_is_long);
begin
  return array(
    select row(s.row_no, s.memory_id, s.pinned, false, null, r.relevance,
               case when s.cosine < 1.5 then q.w_similarity * r.relevance + s.rest end)::ranked_ledger.candidate
    from (
      select s.row_no, s.memory_id, s.pinned, s.cosine,
             case when not q.has_text or q.fusion = 'none' then null
                  when q.weighs_words then ranked_ledger.text_of_shares(coalesce(w.shares, 0), s.text_length, q.length_share)
                  else ranked_ledger.saturate(ranked_ledger.rank_of_any(w.occurrences)) end as text_relevance,
             q.w_importance * s.importance
             + q.w_recency * ranked_ledger.recency(greatest(n.newest_step - s.step_index, 0), q.half_life)
             + q.w_dependency * ranked_ledger.dependency(s.live_dependents, q.saturation)
             + q.w_summary * coalesce(w.named / nullif(s.summary_words, 0)::float8, 0)
             - case when s.is_active then 0::float8 when s.is_retired then 0.30::float8 else q.penalty end as rest
      from unnest(p_row_nos, p_cosines) as v (row_no, cosine)
      cross join lateral ( -- one by one: joined, they were hashed with all of the workspace
        select s.*, v.cosine from ranked_ledger.standings s where s.row_no = v.row_no offset 0) as s
      join unnest(p_stream_ids, p_newest_steps) as n (stream_id, newest_step) on n.stream_id = s.stream_id
      cross join lateral (
        select sum(p.occurrences) as occurrences, sum(ranked_ledger.word_share(p.weight, p.occurrences)) as shares,
               count(*) filter (where p.in_summary) as named
        from (
          select t.weight, p.occurrences, p.in_summary
          from unnest(q.terms, q.term_weights) as t (term, weight)
          cross join lateral (
            select p.occurrences, p.in_summary from ranked_ledger.postings p
            where p.term = t.term and p.row_no = s.row_no offset 0) as p
          where not v_is_long
          union all
          select v_weights[(v_places -> p.term::text)::int], p.occurrences, p.in_summary
          from ranked_ledger.postings p where v_is_long and p.row_no = s.row_no and v_places ? p.term::text) as p
        where q.has_text and (q.fusion <> 'none' or q.w_summary > 0)) as w
      where s.vector_dims = vector_dims(q.embedding)
        and (s.is_active or q.with_retired or q.with_stale and not s.is_retired)
        and (q.with_personal or not s.is_personal) and not (q.only_confirmed and s.is_unconfirmed)
      offset 0) as s
    cross join lateral (
      select ranked_ledger.relevance(c.cosine, s.text_relevance, q.fusion, q.fusion_weight) as relevance
      from (select ranked_ledger.calibrate(s.cosine, q.floor, q.ceiling) as cosine offset 0) as c offset 0) as r
    where r.relevance >= q.min_relevance - p_slack);
end
$$;

comment on function ranked_ledger.score_nearest(ranked_ledger.question, uuid[], float8[], int[], float8[], float8) is
  'Those of the nearest decisions that a question is about, scored.';

create or replace function ranked_ledger.reached(
  p_question ranked_ledger.question, p_candidates ranked_ledger.candidate[], p_count int, p_slack float8)
returns float8 language sql stable
set search_path = public, extensions, pg_temp
as $$
  select coalesce((
    select c.score from unnest(p_candidates) as c
    where c.score is not null and not c.pinned
      and (p_question.min_relevance = 0 or c.relevance >= p_question.min_relevance + p_slack)
    order by c.score desc offset p_count - 1 limit 1), '-Infinity')
$$;

comment on function ranked_ledger.reached(ranked_ledger.question, ranked_ledger.candidate[], int, float8) is
  'A score that so many of these candidates certainly have: less is not in the answer. -Infinity: there are not as many.';

-- The pass of the commonest question, one without words or filters, from the same text, so that it is planned once a session:
-- a plan took a third of its time.
do $do$
declare
  v_question ranked_ledger.question;
begin
  v_question.embedding := '[1]';
  v_question.terms := '{}';
  v_question.has_text := false;
  v_question.fusion := 'none';
  v_question.with_stale := false;
  v_question.with_retired := false;
  v_question.with_personal := true;
  v_question.only_confirmed := false;
  v_question.min_relevance := 0;
  execute format($sql$
    create or replace function ranked_ledger.pass_plainly(
      uuid[], float8[], float8, float8, float8, float8, float8, float8, bigint[], float8, float8, int, text, float8, float8, int, bigint, float8,
      float8[], float8, float8, float8)
    returns ranked_ledger.candidate[] language plpgsql stable
    set search_path = public, extensions, pg_temp
    set enable_seqscan = off
    set enable_bitmapscan = off
    set enable_nestloop = off
    set plan_cache_mode = force_generic_plan
    as $body$
    begin
      return (select array_agg(row(x.*)::ranked_ledger.candidate) from (%s) as x);
    end
    $body$ $sql$, ranked_ledger.pass_sql(v_question, false, true));
end
$do$;

comment on function ranked_ledger.pass_plainly(
  uuid[], float8[], float8, float8, float8, float8, float8, float8, bigint[], float8, float8, int, text, float8, float8, int, bigint, float8,
  float8[], float8, float8, float8) is
  'pass_sql by merit, for a question with an embedding alone and no filter; its parameters in their order.';

create or replace function ranked_ledger.pass(
  p_question ranked_ledger.question, p_is_bounded boolean, p_by_merit boolean, p_stream_ids uuid[], p_newest_steps float8[],
  p_threshold float8, p_far float8, p_slack float8, p_limit int, p_merit float8)
returns ranked_ledger.candidate[] language plpgsql stable
set search_path = public, extensions, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set enable_nestloop = off -- but where it is the only way: each look-up is a lateral
set jit = off
as $$
declare
  q        ranked_ledger.question := p_question;
  v_passed ranked_ledger.candidate[];
begin
  if p_by_merit and q.embedding is not null and not q.has_text and not q.with_stale and q.with_personal and not q.only_confirmed
     and q.min_relevance = 0 then
    return ranked_ledger.pass_plainly(
      p_stream_ids, p_newest_steps, q.half_life, q.saturation, q.w_similarity, q.w_importance, q.w_recency, q.w_dependency,
      q.terms, p_threshold, p_far, vector_dims(q.embedding), q.fusion, q.fusion_weight, 0, p_limit, q.workspace_key, p_merit,
      q.term_weights, q.length_share, q.w_summary, q.penalty);
  end if;
  execute format('select array_agg(row(x.*)::ranked_ledger.candidate) from (%s) as x', ranked_ledger.pass_sql(q, p_is_bounded, p_by_merit))
  into v_passed
  using p_stream_ids, p_newest_steps, q.half_life, q.saturation, q.w_similarity, q.w_importance, q.w_recency, q.w_dependency,
        q.terms, p_threshold, p_far, vector_dims(q.embedding), q.fusion, q.fusion_weight, q.min_relevance - p_slack, p_limit,
        q.workspace_key, p_merit, q.term_weights, q.length_share, q.w_summary, q.penalty;
  return v_passed;
end
$$;

comment on function ranked_ledger.pass(
  ranked_ledger.question, boolean, boolean, uuid[], float8[], float8, float8, float8, int, float8) is
  'The best decisions of pass_sql for a question, in their order. Null: none reaches the threshold.';

create or replace function ranked_ledger.list_by_standing(p_question ranked_ledger.question, p_spare int)
returns ranked_ledger.shortlist language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
declare
  q           ranked_ledger.question := p_question;
  v_count     int := p_question.match_count + p_spare;
  v_streams   record := ranked_ledger.streams_asked(p_question);
  v_tolerance float8 := ranked_ledger.rounding(p_question);
  v_reached   float8 := ranked_ledger.scout(q, v_streams.stream_ids, v_streams.newest_steps, v_count) - v_tolerance;
  v_merit     float8 := ranked_ledger.least_merit(q, v_reached, 0);
  v_by_merit  boolean := ranked_ledger.few_have_merit(q.workspace_key, v_merit, v_streams.newest_steps);
  v_list      ranked_ledger.shortlist;
begin
  select array_agg(c.memory_id), array_agg(c.score) into v_list.memory_ids, v_list.estimates
  from unnest(ranked_ledger.pass(
    q, false, v_by_merit, v_streams.stream_ids, v_streams.newest_steps, v_reached, null, 0, v_count, v_merit)) as c;
  v_list.tolerance := v_tolerance;
  v_list.exact := true;
  return v_list;
end
$$;

comment on function ranked_ledger.list_by_standing(ranked_ledger.question, int) is
  'The shortlist of a question without an embedding: as many as asked for, and some to spare for those whose copies may lag.';

-- What the pass let through is looked up. `worst` is the last that is certainly in the answer; who is below it by more than
-- both errors is not. The last that the pass let through bounds all that it did not: it has to be below `worst`.
create or replace function ranked_ledger.list_candidates(
  p_question ranked_ledger.question, p_near ranked_ledger.candidate[], p_passed ranked_ledger.candidate[], p_count int,
  p_tolerance float8, p_slack float8, p_was_cut boolean,
  out memory_ids uuid[], out estimates float8[], out is_proven boolean)
language plpgsql stable
set search_path = public, extensions, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set enable_mergejoin = off
set enable_nestloop = off
set plan_cache_mode = force_generic_plan
as $$
declare
  q       ranked_ledger.question := p_question;
  v_asked halfvec := l2_normalize(p_question.embedding)::halfvec;
  v_last  ranked_ledger.candidate := p_passed[cardinality(p_passed)];
begin
  with known as (
    select p.memory_id, p.pinned, p.score, p.relevance, v.cosine,
           case when p.is_far or p.text_relevance is not null
                then ranked_ledger.relevance(ranked_ledger.calibrate(v.cosine, q.floor, q.ceiling), p.text_relevance, q.fusion, q.fusion_weight)
                when q.has_text then ranked_ledger.saturate((
                  select ranked_ledger.rank_of_any(sum(o.occurrences)) from ranked_ledger.postings o
                  where o.term = any (q.terms) and o.row_no = p.row_no))
                else 0 end as found
    from unnest(p_passed) as p
    cross join lateral (
      select case when p.is_far then coalesce((
        select - (v.embedding <#> v_asked) from ranked_ledger.decision_vectors v where v.row_no = p.row_no), 2) end as cosine offset 0) as v
    where p.row_no not in (select n.row_no from unnest(p_near) as n) offset 0),
  estimated as (
    select k.memory_id, k.pinned, k.found,
           case when coalesce(k.cosine, 0) < 1.5 then k.score + q.w_similarity * (k.found - k.relevance) end as estimate
    from known k
    union all
    select n.memory_id, n.pinned, n.relevance, n.score from unnest(p_near) as n),
  worst as (
    select e.pinned, e.estimate - 2 * p_tolerance as estimate from estimated e
    where e.estimate is not null and (q.min_relevance = 0 or e.found >= q.min_relevance + p_slack)
    order by e.pinned desc, e.estimate desc offset p_count - 1 limit 1),
  listed as (
    select e.memory_id, e.estimate
    from estimated e left join worst w on true
    where w is null or e.estimate is null or (e.pinned, e.estimate) >= (w.pinned, w.estimate))
  select array_agg(l.memory_id), array_agg(l.estimate),
         not p_was_cut or coalesce((select (w.pinned, w.estimate) > (v_last.pinned, v_last.score) from worst w), false)
  into memory_ids, estimates, is_proven
  from listed l;
end
$$;

comment on function ranked_ledger.list_candidates(
  ranked_ledger.question, ranked_ledger.candidate[], ranked_ledger.candidate[], int, float8, float8, boolean) is
  'Of the nearest and of what the pass let through, those that can be among so many best, and whether nobody else can.';

-- The threshold algorithm. The first scan finds the nearest rows, so that no other has a cosine above the last of them; a pass
-- scores each row as if it had this bound. What is not among the best of the pass cannot be better than its last. Where that does
-- not yet prove the list, words are counted and it goes deeper; where the nearest were only probed, it proves nothing.
create or replace function ranked_ledger.list_by_vector(p_question ranked_ledger.question, p_spare int)
returns ranked_ledger.shortlist language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
declare
  q          ranked_ledger.question := p_question;
  v_count    int := p_question.match_count + p_spare;
  v_streams  record := ranked_ledger.streams_asked(p_question);
  v_error    float8 := ranked_ledger.cosine_error(vector_dims(p_question.embedding)); -- of a cosine
  v_slack    float8 := least(1, v_error / greatest(p_question.ceiling - p_question.floor, 1e-9)); -- of a relevance
  v_probes   boolean := ranked_ledger.may_probe(p_question, v_streams.stream_ids);
  v_nearest  record;
  v_near     ranked_ledger.candidate[];
  v_passed   ranked_ledger.candidate[];
  v_reached  float8;
  v_far      float8; -- the relevance that no other cosine exceeds
  v_merit    float8;
  v_by_merit boolean;
  -- where a cosine is all that counts, words matter only for rows without one, and those are mostly few
  v_bounded  boolean := p_question.terms <> '{}' and p_question.fusion = 'none' and p_question.w_summary = 0
                        and not p_question.weighs_words;
  -- the more there are, the more of them may be about as near as the last: 1 of 100, as far as their steps tell their number
  v_depth    int := v_count + greatest(118, least(4000,
    (select sum(n.step) / 100 from unnest(v_streams.newest_steps) as n (step)))::int);
  v_list     ranked_ledger.shortlist;
  v_proven   boolean;
begin
  v_list.exact := not v_probes;
  v_list.tolerance := ranked_ledger.rounding(q) + q.w_similarity * v_slack;
  if v_probes then
    v_nearest := ranked_ledger.probe_nearest(q, 90 + v_count);
    v_depth := 190 + v_count;
  elsif cardinality(v_streams.stream_ids) <= 5 and ranked_ledger.holds_at_most(v_streams.stream_ids, 2000) then
    -- looked up one by one, whatever else the workspace holds
    v_nearest := ranked_ledger.nearest(q, 0);
    v_depth := 1000000;
  else
    -- blended with words, the nearest are not worth as much, and those of all of them are looked up
    v_nearest := ranked_ledger.nearest(q, case when q.weighs_words and q.terms <> '{}' then v_count + 118 else v_depth end);
  end if;
  v_near := ranked_ledger.score_nearest(
    q, v_streams.stream_ids, v_streams.newest_steps, v_nearest.row_nos, v_nearest.cosines, v_slack);
  v_reached := ranked_ledger.reached(q, v_near, v_count, v_slack);
  if v_reached = '-Infinity' then -- few of the nearest are in scope: then what the newest have without their relevance
    q.terms := '{}';
    v_reached := ranked_ledger.scout(q, v_streams.stream_ids, v_streams.newest_steps, v_count);
    q.terms := p_question.terms;
  end if;
  v_reached := v_reached - 3 * v_list.tolerance;
  v_far := ranked_ledger.calibrate(v_nearest.far + v_error, q.floor, q.ceiling);
  v_merit := ranked_ledger.least_merit(q, v_reached, v_far);
  if v_probes then
    v_merit := greatest(v_merit, ranked_ledger.merit_of(q.workspace_key, 500) + 1e-9); -- not all that tie with it
  end if;
  v_by_merit := v_probes or ranked_ledger.few_have_merit(q.workspace_key, v_merit, v_streams.newest_steps);
  loop
    v_passed := ranked_ledger.pass(
      q, v_bounded, v_by_merit, v_streams.stream_ids, v_streams.newest_steps, v_reached, v_far, v_slack, v_depth, v_merit);
    select s.memory_ids, s.estimates, s.is_proven into v_list.memory_ids, v_list.estimates, v_proven
    from ranked_ledger.list_candidates(
      q, v_near, v_passed, v_count, v_list.tolerance, v_slack, coalesce(cardinality(v_passed) >= v_depth, false)) as s;
    exit when v_proven or v_probes and not v_bounded;
    v_depth := case when v_bounded then v_depth else v_depth * 8 end;
    v_bounded := false;
  end loop;
  return v_list;
end
$$;

comment on function ranked_ledger.list_by_vector(ranked_ledger.question, int) is
  'The shortlist of a question with an embedding: every decision whose score can be among the best, its cosine being known within cosine_error, or, where an unproven answer is allowed, those that most likely are.';

-- The proof of the copies that every recall makes for what it answers.
create or replace function ranked_ledger.is_as_estimated(
  p_question ranked_ledger.question, p_list ranked_ledger.shortlist, p_weighed ranked_ledger.ranked_decision[], p_stale uuid[])
returns boolean language plpgsql stable
set search_path = public, extensions, pg_temp
set enable_nestloop = off -- two lists of the same length, which may be long
as $$
begin
  return not exists (
    select from unnest(p_list.memory_ids, p_list.estimates) as l (memory_id, estimate)
    left join unnest(p_weighed) as w on w.memory_id = l.memory_id
    where l.memory_id <> all (p_stale)
      and case when w.memory_id is null then true
               when l.estimate is null then p_question.embedding is null -- else one of those of which nothing is known
               else abs(w.ranking_score - l.estimate) > p_list.tolerance end);
end
$$;

comment on function ranked_ledger.is_as_estimated(
  ranked_ledger.question, ranked_ledger.shortlist, ranked_ledger.ranked_decision[], uuid[]) is
  'Whether the weights of a shortlist are what the copies said they would be.';

-- decision_ledger/209_shortlist_probed.sql --------------------------------------------------------------------------

-- Above 10,000 decisions a caller may trade the proof for speed: the nearest come from the host's own HNSW index instead of a scan,
-- and the rest is as in 208. What the index did not find bounds nothing, so such an answer is never called exact. An index of ours
-- would prove as little, double the price of an insert and add 4 KB a decision.

create or replace function ranked_ledger.has_vector_index()
returns boolean language plpgsql stable
set search_path = public, extensions, pg_temp
set plan_cache_mode = force_generic_plan
as $$
begin
  return exists (
    select from pg_index i
    join pg_class c on c.oid = i.indexrelid
    join pg_am a on a.oid = c.relam and a.amname = 'hnsw'
    join pg_attribute t on t.attrelid = i.indrelid and t.attnum = i.indkey[0] and t.attname = 'embedding'
    join pg_opclass o on o.oid = i.indclass[0] and o.opcname = 'vector_cosine_ops'
    where i.indrelid = 'public.thoughts'::regclass and i.indisvalid and i.indpred is null);
end
$$;

comment on function ranked_ledger.has_vector_index() is 'Whether the host has an HNSW index for cosines on thoughts.embedding.';

create or replace function ranked_ledger.may_probe(p_question ranked_ledger.question, p_stream_ids uuid[])
returns boolean language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
begin
  return not p_question.exact and not p_question.with_retired -- which have no merit
     -- what a rare word finds has to be counted, wherever it stands
     and not (p_question.weighs_words and p_question.terms <> '{}')
     and not ranked_ledger.holds_at_most(p_stream_ids, 10000) and ranked_ledger.has_vector_index();
end
$$;

comment on function ranked_ledger.may_probe(ranked_ledger.question, uuid[]) is
  'Whether a question allows an unproven answer, and there are enough decisions and an index for one; else it is answered exactly.';

-- Rows of the whole host: of a workspace that is a small part of it few may come back, and recency and merit make up for it.
create or replace function ranked_ledger.probe_nearest(
  p_question ranked_ledger.question, p_count int, out row_nos int[], out cosines float8[], out far float8)
language plpgsql stable
set search_path = public, extensions, pg_temp
set enable_seqscan = off
set enable_sort = off
set enable_bitmapscan = off
set jit = off
as $$
begin
  execute $sql$
    select coalesce(array_agg(x.row_no) filter (where x.row_no is not null), '{}'),
           coalesce(array_agg(x.cosine) filter (where x.row_no is not null), '{}'), coalesce(min(x.cosine), 1)
    from (
      select s.row_no, 1 - (t.embedding <=> $2) as cosine
      from (select t.id, t.embedding from public.thoughts t order by t.embedding <=> $2 limit $3) as t
      left join lateral (
        select s.row_no from ranked_ledger.standings s where s.thought_id = t.id and s.workspace_key = $1 offset 0) as s on true) as x
  $sql$
  into row_nos, cosines, far
  using p_question.workspace_key, p_question.embedding, p_count;
end
$$;

comment on function ranked_ledger.probe_nearest(ranked_ledger.question, int) is
  'Decisions of a workspace that the host''s HNSW index holds for the nearest; far is the cosine of the last that it found, of whatever workspace.';

create or replace function ranked_ledger.merit_of(p_workspace_key bigint, p_place int)
returns float8 language plpgsql stable
set search_path = public, extensions, pg_temp
set enable_seqscan = off
set enable_sort = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $$
begin
  return coalesce((
    select ranked_ledger.merit(s.importance, s.live_dependents) from ranked_ledger.standings s
    where s.workspace_key = p_workspace_key and not s.is_retired
    order by ranked_ledger.merit(s.importance, s.live_dependents) desc offset p_place - 1 limit 1), 0);
end
$$;

comment on function ranked_ledger.merit_of(bigint, int) is 'The merit of the decision in that place by merit; 0 where there are fewer.';

-- How far the index looks. Known only once pgvector is loaded, and not to be set by us before.
do $do$
begin
  perform '[1]'::vector;
  execute 'alter function ranked_ledger.probe_nearest(ranked_ledger.question, int) set hnsw.ef_search = 100';
exception when others then
  raise notice 'Ranked Ledger: unproven recall searches with the host''s hnsw.ef_search (%)', sqlerrm;
end
$do$;

-- decision_ledger/210_match_decision_ledger.sql ---------------------------------------------------------------------

-- Ranked recall. Old signatures go first: an overload that stays makes PostgREST answer 300, and `create or replace` cannot
-- change the columns of an answer. Ours stays where it is the same, with its grants.
do $do$
declare
  v_function record;
begin
  for v_function in
    select p.oid::regprocedure as name, p.proargnames from pg_proc p
    where p.pronamespace = 'public'::regnamespace and p.proname = 'match_decision_ledger'
  loop
    if v_function.proargnames is distinct from array[
      'p_workspace_id', 'p_query', 'p_query_embedding', 'p_project_id', 'p_task_id', 'p_current_step', 'p_match_count',
      'p_w_similarity', 'p_w_importance', 'p_w_recency', 'p_w_dependency', 'p_half_life_steps', 'p_dependency_saturation',
      'p_include_superseded', 'p_only_confirmed', 'p_include_personal', 'p_include_stale', 'p_min_relevance',
      'p_similarity_floor', 'p_similarity_ceiling', 'p_fusion', 'p_fusion_weight', 'p_embedding_model', 'p_exact', 'p_preset',
      'p_w_summary', 'p_as_of_step', 'p_as_of',
      'memory_id', 'summary', 'content', 'rationale', 'step_index', 'importance', 'pinned',
      'lifecycle_status', 'relevance', 'relevance_source', 'recency', 'dependency_boost', 'ranking_score',
      'project_id', 'task_id', 'similarity', 'text_relevance', 'step_distance', 'live_dependents', 'exact', 'summary_match']
    then
      execute format('drop function %s', v_function.name);
    end if;
  end loop;
end
$do$;

-- Whether the copies can answer at all. Not of a vector whose sums leave single precision, nor where most may lag.
create or replace function ranked_ledger.can_shortlist(p_question ranked_ledger.question, p_stale uuid[])
returns boolean language sql immutable
set search_path = public, extensions, pg_temp
as $$
  select cardinality(p_stale) < 5000
     and (p_question.embedding is null or ranked_ledger.is_usual_length(vector_norm(p_question.embedding)))
$$;

comment on function ranked_ledger.can_shortlist(ranked_ledger.question, uuid[]) is
  'Whether a question can be answered by a shortlist from the copies; else every decision is weighed.';

-- The one place that ranks: match_decision_ledger and recall_decisions both ask it. The copies propose, the tables decide:
-- what is proposed is weighed, and where a weight is not the estimate, a copy lags that should not, and all is weighed.
create or replace function ranked_ledger.rank(
  p_question ranked_ledger.question, out decisions ranked_ledger.ranked_decision[], out exact boolean)
language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
declare
  v_stale uuid[] := ranked_ledger.stale_decisions(p_question.workspace_key, 5000);
  v_asked ranked_ledger.question := p_question;
  v_all   ranked_ledger.question := p_question; -- whatever its relevance: the copies are proven by all that they propose
  v_list  ranked_ledger.shortlist;
begin
  exact := true;
  v_all.min_relevance := 0;
  if p_question.w_similarity = 0 and p_question.min_relevance = 0 then -- no word and no vector counts: the copies hold the rest
    v_asked.embedding := null;
    if p_question.w_summary = 0 then
      v_asked.terms := '{}';
      v_asked.has_text := false;
    end if;
  end if;
  if p_question.as_of is null and ranked_ledger.can_shortlist(p_question, v_stale) then -- the copies hold what is, not what was
    v_list := case when v_asked.embedding is null then ranked_ledger.list_by_standing(v_asked, cardinality(v_stale))
                   else ranked_ledger.list_by_vector(v_asked, cardinality(v_stale)) end;
    decisions := array(
      select w from ranked_ledger.weigh(v_all, array(select unnest(v_list.memory_ids) union select unnest(v_stale))) w);
  end if;
  if v_list is null or not ranked_ledger.is_as_estimated(v_asked, v_list, decisions, v_stale) then
    decisions := array(
      select w from ranked_ledger.weigh(p_question, case when p_question.as_of is null then ranked_ledger.all_decisions(p_question.workspace_id)
                                                         else ranked_ledger.decisions_then(p_question) end) w
      order by w.pinned desc, w.ranking_score desc, w.step_index desc, w.memory_id limit p_question.match_count);
  else
    exact := v_list.exact;
    decisions := array(
      select d from unnest(decisions) d where d.relevance >= p_question.min_relevance
      order by d.pinned desc, d.ranking_score desc, d.step_index desc, d.memory_id limit p_question.match_count);
  end if;
end
$$;

comment on function ranked_ledger.rank(ranked_ledger.question) is
  'The best decisions for a question, in order, and whether that is proven.';

create or replace function public.match_decision_ledger(
  p_workspace_id text, p_query text default null, p_query_embedding vector default null,
  p_project_id text default null, p_task_id text default null, p_current_step int default null, p_match_count int default 10,
  p_w_similarity float8 default null, p_w_importance float8 default null, p_w_recency float8 default null,
  p_w_dependency float8 default null, p_half_life_steps float8 default null, p_dependency_saturation float8 default null,
  p_include_superseded boolean default false, p_only_confirmed boolean default false,
  p_include_personal boolean default true, p_include_stale boolean default null, p_min_relevance float8 default null,
  p_similarity_floor float8 default null, p_similarity_ceiling float8 default null, p_fusion text default null,
  p_fusion_weight float8 default null, p_embedding_model text default null, p_exact boolean default true,
  p_preset text default 'published', p_w_summary float8 default null, p_as_of_step int default null,
  p_as_of timestamptz default null)
returns table (
  memory_id uuid, summary text, content text, rationale text, step_index int, importance float8, pinned boolean,
  lifecycle_status text, relevance float8, relevance_source text, recency float8, dependency_boost float8,
  ranking_score float8,
  project_id text, task_id text, similarity float8, text_relevance float8, step_distance bigint, live_dependents int,
  exact boolean, summary_match float8)
language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
declare
  v_ranked record;
begin
  v_ranked := ranked_ledger.rank(ranked_ledger.at_moment(ranked_ledger.ask(
    p_workspace_id, p_query, p_query_embedding, p_project_id, p_task_id, p_current_step, p_match_count, p_w_similarity,
    p_w_importance, p_w_recency, p_w_dependency, p_half_life_steps, p_dependency_saturation, p_include_superseded,
    p_only_confirmed, p_include_personal, p_include_stale, p_min_relevance, p_similarity_floor, p_similarity_ceiling,
    p_fusion, p_fusion_weight, p_embedding_model, p_exact, p_preset, p_w_summary), p_as_of_step, p_as_of));
  return query
  select d.memory_id, d.summary, d.content, d.rationale, d.step_index, d.importance, d.pinned, d.lifecycle_status,
         d.relevance, d.relevance_source, d.recency, d.dependency_boost, d.ranking_score,
         d.project_id, d.task_id, d.similarity, d.text_relevance, d.step_distance, d.live_dependents, v_ranked.exact,
         d.summary_match
  from unnest(v_ranked.decisions) d;
end
$$;

comment on function public.match_decision_ledger(text, text, vector, text, text, int, int, float8, float8, float8, float8, float8, float8, boolean, boolean, boolean, boolean, float8, float8, float8, text, float8, text, boolean, text, float8, int, timestamptz) is
$$Ranked recall of a workspace's decisions: the published columns first, ours after.

score = 0.45 relevance + 0.25 importance + 0.15 recency + 0.15 dependency      (-0.30 where not active)

relevance   cosine similarity clamped to [0,1] where the caller gives an embedding and the row has one
            else x/(1+x), x = 10 * ts_rank_cd over the OR of the query's lexemes, where the caller gives text
            else 0                                       relevance_source says which: cosine | fts | none
importance  clamped to [0,1]
recency     exp(-d / 30), d = max(0, max(p_current_step, newest step of the row's stream) - step)
dependency  min(1, live decisions that depend on it / 3)
order       pinned first, then score, then newest step, then memory id

Why so, as measured: the text query is a disjunction, since all words required found nothing (MRR 0.05 against 0.50 on real
questions); the rank saturates instead of clipping, so that ten matches still beat five; components are clamped before they
are weighted; the dependency normaliser is frozen, so that a row's score never depends on which other rows matched; the
half-life fits a session. Scope is applied before the limit. p_include_superseded false: active rows only. Null or
non-positive half-life, saturation and count mean their defaults; 1,000 rows at most.

p_preset tuned fills in other defaults (ranked_ledger.preset): words weigh by how rare they are and texts by their length, cosine
and text are blended, the words of the summary count, stale and disputed decisions take part. What is given goes before it.

p_as_of_step, of one task, or p_as_of, a time: what was there and in force then, weighed from the tables; nothing decided later is
in the answer. p_current_step counts as in a recall of then. Texts, importance, pins, steps and the words' rarity are today's,
and what was deleted since is not there.$$;

-- decision_ledger/211_as_of.sql -------------------------------------------------------------------------------------

-- A recall as of a moment: what was there then, and how it stood. Nothing decided later is in the answer, nor in its line.
--
-- Of then: which decisions there are, their lifecycle, what depends on what, the newest step of each stream, who replaced whom,
-- lost grounds, the review status as far as review actions tell it. Of today, since no table keeps what they were: texts,
-- importance, pins, visibility, the words' rarity, what is a decision, in which stream it stands and at which step; what was
-- deleted or unlinked, and a supersession that was taken back, is not there at any time, nor does a deleted decision tell when
-- its stream went past a step. A lifecycle that changed before this ledger was installed counts as if it had always been so.
--
-- Answered from the tables alone: the copies of 160 hold what is, not what was.

create or replace function ranked_ledger.moment_of(p_question ranked_ledger.question)
returns ranked_ledger.moment language sql immutable
set search_path = public, extensions, pg_temp
as $$
  select row(q.as_of, q.as_of_step, q.as_of_stream)::ranked_ledger.moment from (select (p_question).*) as q where q.as_of is not null
$$;

comment on function ranked_ledger.moment_of(ranked_ledger.question) is 'The moment that a question is asked as of; null: now.';

create or replace function ranked_ledger.check_moment(p_question ranked_ledger.question, p_as_of_step int, p_as_of timestamptz)
returns void language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
begin
  if p_as_of_step is not null and p_as_of is not null then
    raise sqlstate '22023' using
      message = 'p_as_of_step and p_as_of are both given',
      hint = 'Give the step for one task, or the time for any scope.';
  elsif p_as_of_step not between 0 and ranked_ledger.max_step() then
    raise sqlstate '22023' using
      message = format('p_as_of_step is %s, and steps are from 0 to %s', p_as_of_step, ranked_ledger.max_step()),
      hint = 'Give a step of the task; what was decided behind it is left out.';
  elsif p_as_of_step is not null and p_question.task_id is null then
    raise sqlstate '22023' using
      message = 'p_as_of_step counts the steps of one task, and no p_task_id is given',
      hint = 'Name the task, or give a time as p_as_of: it holds across tasks.';
  elsif p_as_of_step is not null and p_question.project_id is null
        and (select count(distinct l.stream_id) > 1 from public.agent_decision_ledger l
             where l.workspace_id = p_question.workspace_id and l.task_id = p_question.task_id and l.set_aside_at is null) then
    raise sqlstate '22023' using
      message = 'p_as_of_step counts the steps of one task, and several projects of the workspace have a task of this name',
      hint = 'Name the project as p_project_id too. Of the task without a project, ask by a time (p_as_of): it holds across tasks.';
  elsif p_as_of in ('infinity', '-infinity') or p_as_of > statement_timestamp() + interval '1 minute' then -- clocks differ
    raise sqlstate '22023' using
      message = format('p_as_of is %s, and no time of the past', p_as_of),
      hint = 'Give a time up to now, with its offset from UTC; leave it out to ask as of now.';
  end if;
end
$$;

comment on function ranked_ledger.check_moment(ranked_ledger.question, int, timestamptz) is
  'Refuses (22023) a step and a time together, a step without one task that it counts in, a time that is not of the past.';

-- Of a decision that moved, since when it has been in its stream: written earlier elsewhere, it carried no stream past a step
-- before it came.
create or replace function ranked_ledger.arrived_at(p_created_at timestamptz, p_metadata jsonb)
returns timestamptz language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
begin
  if not p_metadata ? 'moves' then
    return p_created_at;
  end if;
  return greatest(p_created_at, (p_metadata -> 'moves' -> -1 ->> 'at')::timestamptz);
exception when others then -- a host may write what it likes there
  return p_created_at;
end
$$;

comment on function ranked_ledger.arrived_at(timestamptz, jsonb) is 'Since when a decision has been in its stream.';

create or replace function ranked_ledger.at_moment(p_question ranked_ledger.question, p_as_of_step int, p_as_of timestamptz)
returns ranked_ledger.question language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
declare
  v_question ranked_ledger.question := p_question;
begin
  if p_as_of_step is null and p_as_of is null then
    return p_question;
  end if;
  perform ranked_ledger.check_moment(p_question, p_as_of_step, p_as_of);
  v_question.as_of := p_as_of;
  if p_as_of_step is not null then
    v_question.as_of_step := p_as_of_step;
    v_question.as_of_stream := (
      select l.stream_id from public.agent_decision_ledger l
      where l.workspace_id = p_question.workspace_id and l.task_id = p_question.task_id and l.set_aside_at is null
        and (p_question.project_id is null or l.project_id = p_question.project_id) limit 1);
    v_question.as_of := coalesce((
      select min(ranked_ledger.arrived_at(m.created_at, l.metadata)) - interval '1 microsecond'
      from public.agent_decision_ledger l join public.agent_memories m on m.id = l.memory_id
      where l.stream_id = v_question.as_of_stream and l.step_index > p_as_of_step and l.step_index <= ranked_ledger.max_step()),
      'infinity'); -- it has not gone past it yet
  end if;
  return v_question;
end
$$;

comment on function ranked_ledger.at_moment(ranked_ledger.question, int, timestamptz) is
  'A question, asked as of a step of its task or as of a time; as it is where neither is given.';

create or replace function ranked_ledger.was_there(p_stream_id uuid, p_step int, p_created_at timestamptz, p_moment ranked_ledger.moment)
returns boolean language sql immutable
return case when p_stream_id = (p_moment).as_of_stream then p_step <= (p_moment).as_of_step else p_created_at <= (p_moment).as_of end;

comment on function ranked_ledger.was_there(uuid, int, timestamptz, ranked_ledger.moment) is
  'Whether a decision was there: in the stream of the step by its step, else by its time. A decision is there from the beginning of the transaction that wrote it.';

create or replace function ranked_ledger.decisions_then(p_question ranked_ledger.question)
returns uuid[] language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
declare
  v_moment ranked_ledger.moment := ranked_ledger.moment_of(p_question);
begin
  return array(
    select l.memory_id from public.agent_decision_ledger l join public.agent_memories m on m.id = l.memory_id
    where l.workspace_id = p_question.workspace_id and l.set_aside_at is null
      and (p_question.project_id is null or l.project_id = p_question.project_id)
      and (p_question.task_id is null or l.task_id = p_question.task_id)
      and (v_moment.as_of_step is null or l.stream_id = v_moment.as_of_stream)
      and ranked_ledger.was_there(l.stream_id, l.step_index, m.created_at, v_moment));
end
$$;

comment on function ranked_ledger.decisions_then(ranked_ledger.question) is
  'Every decision in the project and task of a question that was there.';

create or replace function ranked_ledger.newest_steps_then(p_question ranked_ledger.question)
returns jsonb language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
declare
  v_moment ranked_ledger.moment := ranked_ledger.moment_of(p_question);
begin
  -- at the step itself where the stream went past it: the work stood there, whether or not something was decided just then
  return coalesce((
    select jsonb_object_agg(n.stream_id, n.newest)
    from (select l.stream_id, least(max(l.step_index), v_moment.as_of_step) as newest
          from public.agent_decision_ledger l join public.agent_memories m on m.id = l.memory_id
          where l.workspace_id = p_question.workspace_id and l.step_index <= ranked_ledger.max_step()
            and (l.stream_id = v_moment.as_of_stream or v_moment.as_of_step is null and m.created_at <= v_moment.as_of)
          group by l.stream_id) as n), '{}');
end
$$;

comment on function ranked_ledger.newest_steps_then(ranked_ledger.question) is
  'Where each stream stood, by its id: at its newest step, of every row whatever its lifecycle; as of a step, not behind that.';

do $do$
begin
  if to_regprocedure('ranked_ledger.lifecycle_then(uuid, text, uuid, ranked_ledger.moment)') is not null then
    execute 'drop function ranked_ledger.lifecycle_then(uuid, text, uuid, ranked_ledger.moment)';
  end if;
end
$do$;

-- A transition counts by the steps of the stream in which its decision stood then, which need not be where it stands today;
-- of one in another stream, or in one that no step is known of, the time tells.
create or replace function ranked_ledger.lifecycle_then(p_memory_id uuid, p_today text, p_moment ranked_ledger.moment)
returns text language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
begin
  return coalesce((
    select t.lifecycle_before from ranked_ledger.lifecycle_transitions t
    where t.memory_id = p_memory_id
      and case when t.stream_id = p_moment.as_of_stream and t.stream_step is not null then t.stream_step > p_moment.as_of_step
               else t.changed_at > p_moment.as_of end
    order by t.id limit 1), p_today);
end
$$;

comment on function ranked_ledger.lifecycle_then(uuid, text, ranked_ledger.moment) is
  'The lifecycle that a decision had: before the first change that came after the moment; today''s where none did.';

create or replace function ranked_ledger.review_status_then(p_memory_id uuid, p_today text, p_moment ranked_ledger.moment)
returns text language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
begin
  return coalesce((
    select a.before ->> 'review_status' from public.agent_memory_review_actions a
    where a.memory_id = p_memory_id and a.created_at > p_moment.as_of and a.before ? 'review_status'
    order by a.created_at, a.id limit 1), p_today);
end
$$;

comment on function ranked_ledger.review_status_then(uuid, text, ranked_ledger.moment) is
  'The review status that a decision had, as far as later review actions say what was before them; else today''s.';

-- What was written in one transaction has one time: an edge no newer than its ends came with them.
create or replace function ranked_ledger.dependencies_then(p_memory_id uuid, p_outward boolean, p_moment ranked_ledger.moment)
returns table (memory_id uuid, lifecycle_status text, counts boolean) language plpgsql stable
set search_path = public, extensions, pg_temp
set enable_seqscan = off -- row by row, as weigh does
set enable_hashjoin = off
set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
as $$
begin
  return query
  select o.id, ranked_ledger.lifecycle_then(o.id, o.lifecycle_status, p_moment),
         l.workspace_id = s.workspace_id and o.workspace_id = s.workspace_id and l.set_aside_at is null
  from (select x.to_memory_id as other_id, x.created_at from public.agent_decision_edges x
        where p_outward and x.from_memory_id = p_memory_id and x.relation = 'depends_on'
        union all
        select x.from_memory_id, x.created_at from public.agent_decision_edges x
        where not p_outward and x.to_memory_id = p_memory_id and x.relation = 'depends_on') as e
  cross join lateral (select x.workspace_id, x.created_at from public.agent_memories x where x.id = p_memory_id offset 0) as s
  cross join lateral (select x.* from public.agent_memories x where x.id = e.other_id offset 0) as o
  left join lateral (select x.* from public.agent_decision_ledger x where x.memory_id = o.id offset 0) as l on true
  where ranked_ledger.was_there(l.stream_id, l.step_index, o.created_at, p_moment)
    and e.created_at <= greatest(p_moment.as_of, s.created_at, o.created_at);
end
$$;

comment on function ranked_ledger.dependencies_then(uuid, boolean, ranked_ledger.moment) is
  'What a decision depended on directly (outward), or what depended on it, with its lifecycle then, and whether it counts as a dependent: in the workspace and not set aside.';

create or replace function ranked_ledger.live_dependents_then(p_memory_id uuid, p_moment ranked_ledger.moment)
returns int language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
begin
  if not exists (select from public.agent_decision_edges e where e.to_memory_id = p_memory_id and e.relation = 'depends_on') then
    return 0; -- most have none
  end if;
  return (select count(*) from ranked_ledger.dependencies_then(p_memory_id, false, p_moment) d where d.counts and d.lifecycle_status = 'active');
end
$$;

comment on function ranked_ledger.live_dependents_then(uuid, ranked_ledger.moment) is 'How many live decisions depended on this one.';

create or replace function ranked_ledger.grounds_then(p_memory_id uuid, p_moment ranked_ledger.moment)
returns uuid[] language sql stable
set search_path = public, extensions, pg_temp
as $$
  select array(select d.memory_id from ranked_ledger.dependencies_then(p_memory_id, true, p_moment) d order by d.memory_id)
$$;

comment on function ranked_ledger.grounds_then(uuid, ranked_ledger.moment) is 'What a decision depended on directly, in id order.';

create or replace function ranked_ledger.rested_on_retired(p_memory_id uuid, p_moment ranked_ledger.moment)
returns boolean language sql stable
set search_path = public, extensions, pg_temp
as $$
  select exists (select from ranked_ledger.dependencies_then(p_memory_id, true, p_moment) d
                 where d.lifecycle_status in ('superseded', 'rejected'))
    or exists (select from ranked_ledger.lost_grounds g
               where g.memory_id = p_memory_id and g.relation = 'depends_on' and g.lost_at <= (p_moment).as_of)
$$;

comment on function ranked_ledger.rested_on_retired(uuid, ranked_ledger.moment) is
  'Whether a decision depended directly on one that was superseded, rejected or gone.';

create or replace function ranked_ledger.successor_then(p_memory_id uuid, p_moment ranked_ledger.moment)
returns uuid language sql stable
set search_path = public, extensions, pg_temp
as $$
  with recursive later as (
    select m.id as memory_id, m.workspace_id, m.created_at from public.agent_memories m where m.id = p_memory_id
    union
    select m.id, m.workspace_id, m.created_at
    from later w
    join public.agent_memory_relations r on r.to_memory_id = w.memory_id and r.relation = 'supersedes'
    join public.agent_memories m on m.id = r.from_memory_id and m.workspace_id = w.workspace_id
    left join public.agent_decision_ledger l on l.memory_id = m.id
    where ranked_ledger.was_there(l.stream_id, l.step_index, m.created_at, p_moment)
      and r.created_at <= greatest((p_moment).as_of, m.created_at, w.created_at)
  )
  select m.id
  from later w
  join public.agent_memories m on m.id = w.memory_id
  left join public.agent_decision_ledger l on l.memory_id = m.id
  where w.memory_id <> p_memory_id
    and ranked_ledger.lifecycle_then(m.id, m.lifecycle_status, p_moment) = 'active'
  order by m.created_at desc, l.step_index desc nulls last, m.id
  limit 1
$$;

comment on function ranked_ledger.successor_then(uuid, ranked_ledger.moment) is
  'The newest decision, active then, of what had replaced this one; null where nothing active had.';

-- decision_ledger/220_decision_line.sql -----------------------------------------------------------------------------

-- How a decision reads in a prompt. The fence around the lines is the client's, of a fixed cost.

create or replace function ranked_ledger.scope_label(p_project_id text, p_task_id text)
returns text language sql immutable parallel safe
return translate(ranked_ledger.one_line(concat_ws('/', p_project_id, p_task_id)), '|[]', '/()');

comment on function ranked_ledger.scope_label(text, text) is
  'Project and task within a line''s brackets: names are free text too, and may neither break the line nor go on for the provenance behind them.';

create or replace function ranked_ledger.decision_line(
  p_text text, p_rationale text, p_step int, p_project_id text, p_task_id text, p_importance float8,
  p_lifecycle text, p_rests_on_retired boolean, p_created_by text, p_review_status text)
returns text language sql immutable parallel safe
return '- [step ' || p_step
       || coalesce(' | ' || nullif(ranked_ledger.scope_label(p_project_id, p_task_id), ''), '')
       || ' | importance ' || round(p_importance::numeric, 2)
       || ' | ' || p_lifecycle || case when p_rests_on_retired then ', rests on a retired decision' else '' end || ' | by ' || p_created_by || ', ' || p_review_status || '] '
       || ranked_ledger.one_line(p_text) || coalesce(' (because: ' || nullif(ranked_ledger.one_line(p_rationale), '') || ')', '');

comment on function ranked_ledger.decision_line(text, text, int, text, text, float8, text, boolean, text, text) is
  'One decision as a line of a prompt, its provenance first.';

-- decision_ledger/230_touch_decision_recall.sql ---------------------------------------------------------------------

create or replace function ranked_ledger.count_recalls(p_memory_ids uuid[], p_recalled int, p_used int)
returns int language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_counted int;
begin
  -- rows locked first and in one order: `where id = any(...)` alone met 18 deadlocks in 8 seconds under 16 clients
  with locked as materialized (
    select l.memory_id from public.agent_decision_ledger l
    where l.memory_id = any (p_memory_ids) order by l.memory_id for no key update)
  update public.agent_decision_ledger l
  set recall_count = least(2147483647, l.recall_count::bigint + p_recalled),
      used_count = least(2147483647, l.used_count::bigint + p_used),
      last_recalled_at = case when p_recalled > 0 then now() else l.last_recalled_at end
  from locked k where l.memory_id = k.memory_id;
  get diagnostics v_counted = row_count;
  return v_counted;
end
$$;

comment on function ranked_ledger.count_recalls(uuid[], int, int) is
  'Raises the counters of decisions, each once however often it is named. Returns the rows touched.';

create or replace function public.touch_decision_recall(p_memory_ids uuid[], p_used boolean default false)
returns int language sql
set search_path = public, extensions, pg_temp
as $$
  select ranked_ledger.count_recalls(p_memory_ids, 1, coalesce(p_used, false)::int)
$$;

comment on function public.touch_decision_recall(uuid[], boolean) is
  'A recall of decisions that left no trace, as the published proposal counts it: recall_count rises, with p_used used_count too. Returns the rows touched.';

-- decision_ledger/240_agent_recall_policy_stats.sql -----------------------------------------------------------------

-- Replaced in place, since a host's own views may stand on it. Where the published proposal's view has other column types,
-- which cannot be replaced (42P16), it is dropped first.
do $do$
declare
  v_view text := $view$
    create or replace view public.agent_recall_policy_stats with (security_invoker = true) as
    select coalesce(t.response_policy ->> 'recall_policy', 'vector') as recall_policy,
           count(distinct t.id) as recall_requests,
           count(i.id) as items_returned,
           -- a copy of the host's route stores 0 where there was no cosine, since its own lists always have one
           avg(i.similarity) filter (where coalesce(i.use_policy_snapshot ->> 'relevance_source', '') not in ('fts', 'none'))
             as avg_similarity,
           avg(i.ranking_score) as avg_ranking_score,
           avg((i.used is true)::int) filter (where i.id is not null) as used_rate,
           avg((i.ignored_reason is not null)::int) filter (where i.id is not null) as ignored_rate
    from public.agent_memory_recall_traces t
    left join public.agent_memory_recall_items i on i.trace_id = t.id and i.returned
    group by 1
  $view$;
begin
  execute v_view;
exception when invalid_table_definition then
  execute 'drop view public.agent_recall_policy_stats';
  execute v_view;
end
$do$;

comment on view public.agent_recall_policy_stats is
  'Recall policies side by side, from the traces: requests, items returned, mean similarity (of the items that had one) and score, shares of items that were used and ignored.';

revoke all on public.agent_recall_policy_stats from public, anon, authenticated, service_role;
grant select on public.agent_recall_policy_stats to service_role;

-- decision_ledger/245_hit_document.sql ------------------------------------------------------------------------------

-- A hit of a recall: the row of match_decision_ledger, and what its reader needs to know of its surroundings.

create or replace function ranked_ledger.rests_on_retired(p_memory_id uuid)
returns boolean language sql stable
set search_path = public, extensions, pg_temp
as $$
  select exists (
    select from public.agent_decision_edges e join public.agent_memories m on m.id = e.to_memory_id
    where e.from_memory_id = p_memory_id and e.relation = 'depends_on'
      and m.lifecycle_status in ('superseded', 'rejected'))
    or exists (select from ranked_ledger.lost_grounds g where g.memory_id = p_memory_id and g.relation = 'depends_on')
$$;

comment on function ranked_ledger.rests_on_retired(uuid) is
  'Whether a decision depends directly on one that is superseded, rejected or gone.';

-- By id: the edges of one record call are of one moment, and the index on them has this order.
create or replace function ranked_ledger.grounds(p_memory_id uuid)
returns uuid[] language sql stable
set search_path = public, extensions, pg_temp
as $$
  select array(select e.to_memory_id from public.agent_decision_edges e
               where e.from_memory_id = p_memory_id and e.relation = 'depends_on' order by e.to_memory_id)
$$;

comment on function ranked_ledger.grounds(uuid) is 'What a decision depends on directly, in id order.';

do $do$
begin
  if to_regprocedure('ranked_ledger.hit_document(jsonb, uuid)') is not null then -- beside the new one no call would be unique
    execute 'drop function ranked_ledger.hit_document(jsonb, uuid)';
  end if;
end
$do$;

create or replace function ranked_ledger.hit_document(p_row jsonb, p_memory_id uuid, p_moment ranked_ledger.moment default null)
returns jsonb language sql stable
set search_path = public, extensions, pg_temp
as $$
  select (p_row - 'ordinality') || jsonb_build_object(
    'alternatives', l.alternatives,
    'successor', case when s.lifecycle_status = 'active' then null
                      when p_moment is null then ranked_ledger.successor(p_memory_id)
                      else ranked_ledger.successor_then(p_memory_id, p_moment) end,
    'depends_on', case when p_moment is null then ranked_ledger.grounds(p_memory_id) else ranked_ledger.grounds_then(p_memory_id, p_moment) end,
    'rests_on_retired', s.rests_on_retired,
    'shortened', false,
    -- each with the line break behind it, so that the sum bounds the whole block
    'line', f.line, 'tokens', ranked_ledger.tokens(f.line || ' '),
    'summary_line', f.summary_line, 'summary_tokens', ranked_ledger.tokens(f.summary_line || ' '))
  from public.agent_decision_ledger l
  join public.agent_memories m on m.id = l.memory_id
  cross join lateral (
    select case when p_moment is null then m.lifecycle_status
                else ranked_ledger.lifecycle_then(m.id, m.lifecycle_status, p_moment) end as lifecycle_status,
           case when p_moment is null then m.review_status
                else ranked_ledger.review_status_then(m.id, m.review_status, p_moment) end as review_status,
           case when p_moment is null then ranked_ledger.rests_on_retired(p_memory_id)
                else ranked_ledger.rested_on_retired(p_memory_id, p_moment) end as rests_on_retired offset 0) as s
  cross join lateral (
    select ranked_ledger.decision_line(m.content, l.rationale, l.step_index, l.project_id, l.task_id, l.importance::float8,
                                       s.lifecycle_status, s.rests_on_retired, m.created_by, s.review_status) as line,
           ranked_ledger.decision_line(m.summary, null, l.step_index, l.project_id, l.task_id, l.importance::float8,
                                       s.lifecycle_status, s.rests_on_retired, m.created_by, s.review_status) as summary_line
    offset 0) as f -- each line is named twice above, and was rendered as often
  where l.memory_id = p_memory_id
$$;

comment on function ranked_ledger.hit_document(jsonb, uuid, ranked_ledger.moment) is
  'A hit as recall_decisions answers it, with its line for a prompt, full and by its summary; its surroundings as they were, where a moment is given.';

create or replace function ranked_ledger.check_recall(p_workspace_id text, p_policy text, p_max_tokens int)
returns void language plpgsql immutable
set search_path = public, extensions, pg_temp
as $$
begin
  if coalesce(btrim(p_workspace_id), '') = '' then
    raise sqlstate '22023' using message = 'p_workspace_id is empty', hint = 'Name the workspace to recall from.';
  elsif coalesce(btrim(p_policy), '') = '' or char_length(p_policy) > 100 then
    raise sqlstate '22023' using message = 'p_policy is a name of 1 to 100 characters', hint = 'Leave it out for ranked_ledger.';
  elsif p_max_tokens <= ranked_ledger.fence_tokens() then
    raise sqlstate '22023' using
      message = format('p_max_tokens is %s; the fence alone may take %s', p_max_tokens, ranked_ledger.fence_tokens()),
      hint = 'Give a budget of some hundred tokens, or leave it out.';
  end if;
end
$$;

comment on function ranked_ledger.check_recall(text, text, int) is 'Refuses (22023) arguments of a recall that cannot be meant.';

-- A trace keeps them. A host may have longer projects and tasks than we record, so those have the room of a query.
create or replace function ranked_ledger.check_recall_names(p_scopes jsonb, p_labels jsonb)
returns void language plpgsql immutable
set search_path = public, extensions, pg_temp
as $$
declare
  v_long record;
begin
  select n.key, n.most into v_long
  from (select s.key, s.value, 262144 as most from jsonb_each_text(p_scopes) as s
        union all select l.key, l.value, 1000 from jsonb_each_text(p_labels) as l) as n
  where octet_length(n.value) > n.most order by n.key limit 1;
  if found then
    raise sqlstate '22023' using
      message = format('%s is longer than %s bytes', v_long.key, v_long.most), hint = 'Leave it out, or shorten it.';
  end if;
end
$$;

comment on function ranked_ledger.check_recall_names(jsonb, jsonb) is
  'Refuses (22023) names of a recall that are longer than a trace should keep.';

-- decision_ledger/248_recall_subject.sql ----------------------------------------------------------------------------

-- A question may be about somebody. Who asks says so, so that the trace is found when that person asks what is held about
-- them, or has it erased: nothing in the words tells it.

create or replace function ranked_ledger.recall_subject(p_subject jsonb, p_trace_by_host boolean)
returns jsonb language plpgsql immutable
set search_path = public, extensions, pg_temp
as $$
begin
  if coalesce(jsonb_typeof(p_subject), 'null') = 'null' then
    return '{}';
  elsif p_trace_by_host then
    raise sqlstate '22023' using
      message = 'p_subject was given with p_trace_by_host: there is no trace of ours that could be tied to the subject.',
      hint = 'Leave one of the two out.';
  elsif not (case when jsonb_typeof(p_subject) = 'object'
                  then p_subject - array['type', 'id'] = '{}'
                       and coalesce(p_subject ->> 'type' in ('workspace', 'candidate', 'user'), false)
                       and coalesce(p_subject ->> 'id' ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$', false)
                  else false end) then
    raise sqlstate '22023' using
      message = 'p_subject is not {"type", "id"}, a type of workspace, candidate or user and the id of one.',
      hint = 'Send {"type": "candidate", "id": "<uuid>"}, or leave it out.';
  end if;
  return jsonb_build_object('subject', jsonb_build_object('type', p_subject ->> 'type', 'id', (p_subject ->> 'id')::uuid));
end
$$;

comment on function ranked_ledger.recall_subject(jsonb, boolean) is
  'Whom a recall is about, as its arguments and its trace keep it: {"subject": {"type", "id"}}, {} where nobody was named. Refuses (22023) what names nobody.';

create or replace function ranked_ledger.tie_trace(p_trace_id uuid, p_workspace_id text, p_subject jsonb)
returns void language plpgsql
set search_path = public, extensions, pg_temp
as $$
begin
  -- without the long-term memory the trace's payload alone says it, and mapping the workspace later reads it there
  if p_subject is not null and to_regprocedure('long_term_memory.tie_trace(uuid,text,text,uuid)') is not null then
    perform long_term_memory.tie_trace(p_trace_id, p_workspace_id, p_subject ->> 'type', (p_subject ->> 'id')::uuid);
  end if;
end
$$;

comment on function ranked_ledger.tie_trace(uuid, text, jsonb) is
  'Ties a trace to whom it was said to be about, where the long-term memory is installed.';

-- decision_ledger/250_recall_decisions.sql --------------------------------------------------------------------------

-- Writes what a recall returned. Answers whether it could: a recall never fails because its trace does.
create or replace function ranked_ledger.write_trace(
  p_request_id uuid, p_workspace_id text, p_project_id text, p_task_id text, p_flow_id text, p_runtime_name text,
  p_query text, p_arguments jsonb, p_policy text, p_packed jsonb)
returns boolean language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_trace_id uuid;
begin
  insert into public.agent_memory_recall_traces (
    request_id, workspace_id, project_id, task_id, flow_id, runtime_name, query, schema_version, request_payload, response_policy)
  values (p_request_id, p_workspace_id, p_project_id, p_task_id, p_flow_id, p_runtime_name, coalesce(p_query, ''),
          'ranked_ledger.recall.v1', p_arguments,
          jsonb_build_object('recall_policy', p_policy, 'max_items', p_arguments -> 'p_match_count',
                             'shortened', p_packed -> 'shortened', 'dropped', p_packed -> 'dropped'))
  on conflict (request_id) do nothing
  returning id into v_trace_id;
  if v_trace_id is null then
    return true; -- the same request at the same time has left the trace
  end if;
  perform ranked_ledger.tie_trace(v_trace_id, p_workspace_id, p_arguments -> 'subject');

  -- a decision that was forgotten since it was found must not cost the others their trace
  perform 1 from public.agent_memories m
  where m.id in (select (h.value ->> 'memory_id')::uuid from jsonb_array_elements(p_packed -> 'hits') as h)
  order by m.id for key share;
  insert into public.agent_memory_recall_items (trace_id, memory_id, rank, similarity, ranking_score, returned, use_policy_snapshot)
  select v_trace_id, (h.value ->> 'memory_id')::uuid, (h.value ->> 'rank')::int,
         -- within the host's column ranges; a null stays null, which least and greatest alone would turn into a bound
         case when h.value ->> 'similarity' is not null
              then least(1, greatest(-1, (h.value ->> 'similarity')::float8))::numeric(5, 4) end,
         least(999.9999, greatest(-999.9999, (h.value ->> 'ranking_score')::float8))::numeric(7, 4), true,
         jsonb_build_object('recall_policy', p_policy) || (
           select jsonb_object_agg(k.key, k.value) from jsonb_each(h.value) as k
           where k.key in ('relevance', 'relevance_source', 'text_relevance', 'summary_match', 'importance', 'recency',
                           'dependency_boost', 'step_index', 'step_distance', 'live_dependents', 'pinned', 'lifecycle_status',
                           'shortened'))
  from jsonb_array_elements(p_packed -> 'hits') as h
  join public.agent_memories m on m.id = (h.value ->> 'memory_id')::uuid;

  insert into public.agent_memory_audit_events (
    event_type, workspace_id, project_id, trace_id, actor_kind, runtime_name, task_id, payload)
  values ('recall_requested', p_workspace_id, p_project_id, v_trace_id, 'agent', p_runtime_name, p_task_id,
          jsonb_build_object('recall_policy', p_policy, 'returned', jsonb_array_length(p_packed -> 'hits')));

  -- a look into the past is no use of a decision now
  if coalesce(p_arguments ->> 'p_as_of_step', p_arguments ->> 'p_as_of') is null then
    perform ranked_ledger.count_recalls(
      array(select (h.value ->> 'memory_id')::uuid from jsonb_array_elements(p_packed -> 'hits') as h), 1, 0);
  end if;
  return true;
exception when others then
  raise warning 'Ranked Ledger: the trace of a recall was not written (%)', sqlerrm;
  return false;
end
$$;

comment on function ranked_ledger.write_trace(uuid, text, text, text, text, text, text, jsonb, text, jsonb) is
  'The trace of a recall, its items, one audit event, and, unless it is as of a moment, the recall counters. False where it could not be written.';

-- A host's own function writes the trace and goes on with its own rows. Asking for them, and for the count, would be two
-- requests more, and they would take longer than what ranks.
do $do$
begin
  if to_regprocedure('ranked_ledger.hand_over(jsonb, boolean)') is not null then
    execute 'drop function ranked_ledger.hand_over(jsonb, boolean)';
  end if;
end
$do$;

create or replace function ranked_ledger.hand_over(p_hits jsonb)
returns jsonb language plpgsql
set search_path = public, extensions, pg_temp
set lock_timeout = '2s' -- somebody may keep a ledger row locked for as long as it likes; the answer does not wait for the count
as $$
declare
  v_ids uuid[] := array(select (h.value ->> 'memory_id')::uuid from jsonb_array_elements(p_hits) as h);
begin
  begin
    perform ranked_ledger.count_recalls(v_ids, 1, 0);
  exception when others then
    raise warning 'Ranked Ledger: a recall was not counted (%)', sqlerrm;
  end;
  return (select coalesce(jsonb_agg(to_jsonb(m)), '[]') from public.agent_memories m where m.id = any (v_ids));
end
$$;

comment on function ranked_ledger.hand_over(jsonb) is
  'Counts a recall whose trace is the host''s to write, where it can be counted, and answers the rows of agent_memories of its hits.';

create or replace function ranked_ledger.recall_hint(p_workspace_id text)
returns text language sql stable
set search_path = public, extensions, pg_temp
as $$
  select case when exists (select from public.agent_decision_ledger l
                           where l.workspace_id = p_workspace_id and l.set_aside_at is null)
              then 'No decision is in scope: look at project, task and lifecycle (p_include_superseded shows retired ones).'
              else 'This workspace has no decisions yet. Workspace names are exact; ledger_status lists them.' end
$$;

comment on function ranked_ledger.recall_hint(text) is 'Why an answer may be empty, and what to do.';

-- The host goes on with rows of agent_memories, and those are of today: beside a line of then they would say something else.
create or replace function ranked_ledger.check_host(p_trace_by_host boolean, p_as_of_step int, p_as_of timestamptz)
returns void language plpgsql immutable
set search_path = public, extensions, pg_temp
as $$
begin
  if p_trace_by_host and coalesce(p_as_of_step::text, p_as_of::text) is not null then
    raise sqlstate '22023' using
      message = 'p_trace_by_host is given with p_as_of_step or p_as_of, and its memories are those of now',
      hint = 'Leave p_trace_by_host out for a recall as of a moment; p_trace false leaves no trace.';
  end if;
end
$$;

comment on function ranked_ledger.check_host(boolean, int, timestamptz) is
  'Refuses (22023) to hand the memories of a past recall to a host.';

-- An overload that stays makes PostgREST answer 300.
do $do$
declare
  v_function record;
begin
  for v_function in
    select p.oid::regprocedure as name from pg_proc p
    where p.pronamespace = 'public'::regnamespace and p.proname = 'recall_decisions' and p.pronargs <> 36
  loop
    execute format('drop function %s', v_function.name);
  end loop;
end
$do$;

-- A time is written in UTC, whatever zone the caller's session is in, so that two of the same moment are the same text.
create or replace function ranked_ledger.arguments_in_force(
  p_question ranked_ledger.question, p_max_tokens int, p_embedding_model text)
returns jsonb language sql immutable
set search_path = public, extensions, pg_temp
set timezone = 'UTC'
as $$
  select jsonb_build_object(
    'p_project_id', q.project_id, 'p_task_id', q.task_id, 'p_current_step', q.current_step, 'p_match_count', q.match_count,
    'p_w_similarity', q.w_similarity, 'p_w_importance', q.w_importance, 'p_w_recency', q.w_recency,
    'p_w_dependency', q.w_dependency, 'p_half_life_steps', q.half_life, 'p_dependency_saturation', q.saturation,
    'p_include_superseded', q.with_retired, 'p_only_confirmed', q.only_confirmed, 'p_include_personal', q.with_personal,
    'p_include_stale', q.with_stale, 'p_min_relevance', q.min_relevance, 'p_similarity_floor', q.floor,
    'p_similarity_ceiling', q.ceiling, 'p_fusion', q.fusion, 'p_fusion_weight', q.fusion_weight, 'p_exact', q.exact,
    'p_preset', q.preset, 'p_w_summary', q.w_summary,
    'p_as_of_step', q.as_of_step, 'p_as_of', case when q.as_of_step is null then q.as_of end, -- the time of a step is ours
    'p_max_tokens', p_max_tokens, 'p_embedding_model', p_embedding_model, 'has_text', q.has_text)
  from (select (p_question).*) as q
$$;

comment on function ranked_ledger.arguments_in_force(ranked_ledger.question, int, text) is
  'What a recall was asked, as its answer and its trace tell it: after defaults, without the words and the vector.';

-- A host's own function keeps the arguments beside its policy: its payload is the request that it was sent, words included.
create or replace function ranked_ledger.kept_arguments(p_request_payload jsonb, p_response_policy jsonb, p_schema_version text)
returns jsonb language sql immutable parallel safe
return case when jsonb_typeof(p_response_policy -> 'arguments') = 'object' then p_response_policy -> 'arguments'
            when jsonb_typeof(p_request_payload) = 'object' and p_schema_version = 'ranked_ledger.recall.v1' then p_request_payload
            else '{}' end;

comment on function ranked_ledger.kept_arguments(jsonb, jsonb, text) is
  'The arguments in force of a recall, as its trace keeps them; {} where it keeps none.';

-- A repeat asks the same of the same workspace: the trace of one question must not stand for the answer to another.
create or replace function ranked_ledger.is_repeat(
  p_trace jsonb, p_workspace_id text, p_query text, p_subject jsonb, p_preset text, p_as_of_step int, p_as_of timestamptz)
returns boolean language plpgsql stable
set search_path = public, extensions, pg_temp
set timezone = 'UTC' -- as in arguments_in_force
as $$
declare
  v_kept jsonb := ranked_ledger.kept_arguments(
    p_trace -> 'request_payload', p_trace -> 'response_policy', p_trace ->> 'schema_version');
begin
  return (p_trace ->> 'workspace_id', p_trace ->> 'query') = (p_workspace_id, coalesce(p_query, ''))
     and p_trace -> 'request_payload' -> 'subject' is not distinct from p_subject
     and jsonb_build_array(coalesce(v_kept ->> 'p_preset', 'published'), v_kept -> 'p_as_of_step', v_kept -> 'p_as_of')
         = jsonb_build_array(coalesce(p_preset, 'published'), p_as_of_step, p_as_of);
end
$$;

comment on function ranked_ledger.is_repeat(jsonb, text, text, jsonb, text, int, timestamptz) is
  'Whether a trace is of the same question: workspace, words, subject, preset and moment.';

create or replace function public.recall_decisions(
  p_workspace_id text, p_query text default null, p_query_embedding text default null,
  p_project_id text default null, p_task_id text default null, p_current_step int default null, p_match_count int default 10,
  p_w_similarity float8 default null, p_w_importance float8 default null, p_w_recency float8 default null,
  p_w_dependency float8 default null, p_half_life_steps float8 default null, p_dependency_saturation float8 default null,
  p_include_superseded boolean default false, p_only_confirmed boolean default false,
  p_include_personal boolean default true, p_include_stale boolean default null, p_min_relevance float8 default null,
  p_similarity_floor float8 default null, p_similarity_ceiling float8 default null, p_fusion text default null,
  p_fusion_weight float8 default null, p_embedding_model text default null, p_exact boolean default true,
  p_max_tokens int default null, p_request_id uuid default null, p_trace boolean default true,
  p_policy text default 'ranked_ledger', p_flow_id text default null, p_runtime_name text default null,
  p_trace_by_host boolean default false, p_subject jsonb default null,
  p_preset text default 'published', p_w_summary float8 default null, p_as_of_step int default null,
  p_as_of timestamptz default null)
returns jsonb language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_request_id uuid := coalesce(p_request_id, gen_random_uuid());
  v_trace      jsonb; -- of an earlier recall with the same id
  v_question   ranked_ledger.question;
  v_arguments  jsonb;
  v_ranked     record;
  v_packed     jsonb;
  v_traced     boolean := false;
  v_subject    jsonb := ranked_ledger.recall_subject(p_subject, p_trace_by_host);
begin
  perform ranked_ledger.check_recall(p_workspace_id, p_policy, p_max_tokens);
  perform ranked_ledger.check_host(p_trace_by_host, p_as_of_step, p_as_of);
  perform ranked_ledger.check_recall_names(
    jsonb_build_object('p_workspace_id', p_workspace_id, 'p_project_id', p_project_id, 'p_task_id', p_task_id),
    jsonb_build_object('p_flow_id', p_flow_id, 'p_runtime_name', p_runtime_name, 'p_embedding_model', p_embedding_model));
  select to_jsonb(t) into v_trace from public.agent_memory_recall_traces t where t.request_id = v_request_id;
  if found and ranked_ledger.is_repeat(v_trace, p_workspace_id, p_query, v_subject -> 'subject', p_preset, p_as_of_step, p_as_of)
               is not true then
    raise sqlstate 'RL409' using message = 'this request id is in use', hint = 'Draw a new request id for each recall.';
  end if;

  perform ranked_ledger.catch_up(p_workspace_id);

  v_question := ranked_ledger.at_moment(ranked_ledger.ask(
    p_workspace_id, p_query, ranked_ledger.vector_of(p_query_embedding), p_project_id, p_task_id, p_current_step,
    p_match_count, p_w_similarity, p_w_importance, p_w_recency, p_w_dependency, p_half_life_steps, p_dependency_saturation,
    p_include_superseded, p_only_confirmed, p_include_personal, p_include_stale, p_min_relevance, p_similarity_floor,
    p_similarity_ceiling, p_fusion, p_fusion_weight, p_embedding_model, p_exact, p_preset, p_w_summary),
    p_as_of_step, p_as_of);
  v_arguments := ranked_ledger.arguments_in_force(v_question, p_max_tokens, p_embedding_model)
                 || jsonb_build_object('has_embedding', p_query_embedding is not null) || v_subject;
  v_ranked := ranked_ledger.rank(v_question);
  v_packed := ranked_ledger.pack_hits((
    select coalesce(jsonb_agg(h.document order by d.ordinality), '[]')
    from unnest(v_ranked.decisions) with ordinality as d
    cross join lateral ranked_ledger.hit_document(to_jsonb(d), d.memory_id, ranked_ledger.moment_of(v_question)) as h (document)
    where h.document is not null), p_max_tokens); -- one that was forgotten since it was ranked

  if v_trace is not null then
    v_traced := true;
  elsif p_trace_by_host then
    v_packed := v_packed || jsonb_build_object('memories', ranked_ledger.hand_over(v_packed -> 'hits'));
  elsif coalesce(p_trace, true) then
    v_traced := ranked_ledger.write_trace(v_request_id, p_workspace_id, p_project_id, p_task_id, p_flow_id, p_runtime_name,
                                          p_query, v_arguments, p_policy, v_packed);
  end if;

  return v_packed || jsonb_build_object(
    'request_id', v_request_id, 'exact', v_ranked.exact, 'policy', p_policy, 'arguments', v_arguments, 'traced', v_traced,
    'replayed', v_trace is not null,
    'hint', case when cardinality(v_ranked.decisions) > 0 then null
                 when v_question.as_of is null then ranked_ledger.recall_hint(p_workspace_id)
                 else 'No decision was there and in scope then: look at the moment, project, task and lifecycle.' end);
end
$$;

comment on function public.recall_decisions(
  text, text, text, text, text, int, int, float8, float8, float8, float8, float8, float8, boolean, boolean, boolean, boolean,
  float8, float8, float8, text, float8, text, boolean, int, uuid, boolean, text, text, text, boolean, jsonb, text, float8, int,
  timestamptz) is
  'Ranked recall as SDK, CLI and edge call it: ranked as match_decision_ledger ranks, packed into a token budget, its trace, items, audit event and counters written. Answers {request_id, hits, shortened, dropped, exact, policy, arguments, traced, replayed, hint}, and memories where the trace is the host''s to write.';

-- decision_ledger/300_refusals.sql ----------------------------------------------------------------------------------

-- What every verb asks first. An id of another workspace is absent: no message says that it exists elsewhere.

create or replace function ranked_ledger.check_workspace(p_workspace_id text)
returns void language plpgsql immutable
set search_path = public, extensions, pg_temp
as $$
begin
  if p_workspace_id is null or p_workspace_id !~ '\S' then
    raise sqlstate '22023' using
      message = 'p_workspace_id is blank.',
      hint = 'Name the workspace that the decision belongs to.';
  end if;
end
$$;

comment on function ranked_ledger.check_workspace(text) is 'Refuses (22023) a workspace id that is null or blank.';

-- The id becomes part of B-tree keys (ours and the host's), whose entries end at 2,704 bytes.
create or replace function ranked_ledger.check_recording_workspace(p_workspace_id text)
returns void language plpgsql immutable
set search_path = public, extensions, pg_temp
as $$
begin
  perform ranked_ledger.check_workspace(p_workspace_id);
  if octet_length(p_workspace_id) > 1000 then
    raise sqlstate '22023' using
      message = 'p_workspace_id is longer than 1000 bytes.',
      hint = 'Use a short name or an id.';
  end if;
end
$$;

comment on function ranked_ledger.check_recording_workspace(text) is
  'Refuses (22023) a workspace id that is blank, or longer than what an index holds.';

create or replace function ranked_ledger.refuse_absent(p_workspace_id text, p_memory_ids uuid[])
returns void language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
declare
  v_absent    uuid;
  v_forgotten timestamptz;
begin
  if p_memory_ids is null or array_position(p_memory_ids, null) is not null then
    raise sqlstate '22023' using
      message = 'A memory id is missing.',
      hint = 'Give the memory_id of a decision of this workspace.';
  end if;

  select w.memory_id into v_absent
  from unnest(p_memory_ids) with ordinality as w (memory_id, position)
  where not exists (
    select from public.agent_memories m
    join public.agent_decision_ledger l on l.memory_id = m.id and l.set_aside_at is null
    where m.id = w.memory_id and m.workspace_id = p_workspace_id and m.memory_type = 'decision')
  order by w.position limit 1;
  if v_absent is null then
    return;
  end if;

  select f.forgotten_at into v_forgotten from ranked_ledger.forgotten_decisions f
  where f.memory_id = v_absent and f.workspace_id = p_workspace_id;
  if v_forgotten is not null then
    raise sqlstate 'RL410' using
      message = format('The decision %s was forgotten.', v_absent),
      detail = format('It was forgotten at %s.', to_jsonb(v_forgotten) #>> '{}'),
      hint = 'Nothing of it is left. Record it again if it holds after all.';
  end if;
  raise sqlstate 'RL404' using
    message = format('There is no decision %s in this workspace.', v_absent),
    hint = case when exists (select from public.agent_memories m
                             where m.id = v_absent and m.workspace_id = p_workspace_id and m.memory_type = 'decision')
                then 'The memory is a decision that was not enrolled: call enroll_missing_decisions.'
                else 'Check the id and the workspace; list_decisions shows what is here.' end;
end
$$;

comment on function ranked_ledger.refuse_absent(text, uuid[]) is
  'Refuses the first id that is no decision in force of this workspace: RL410 where it was forgotten, else RL404.';

create or replace function ranked_ledger.hold_decisions(p_workspace_id text, p_memory_ids uuid[])
returns void language plpgsql
set search_path = public, extensions, pg_temp
as $$
begin
  if p_memory_ids = '{}' then
    return;
  end if;
  perform 1 from public.agent_memories m
  where m.id = any (p_memory_ids) and m.workspace_id = p_workspace_id
  order by m.id for key share;
  perform ranked_ledger.refuse_absent(p_workspace_id, p_memory_ids);
end
$$;

comment on function ranked_ledger.hold_decisions(text, uuid[]) is
  'Keeps decisions from being forgotten until the commit, in id order; refuses as refuse_absent does.';

create or replace function ranked_ledger.lock_decisions(p_workspace_id text, p_memory_ids uuid[])
returns void language plpgsql
set search_path = public, extensions, pg_temp
as $$
begin
  perform 1 from public.agent_memories m
  where m.id = any (p_memory_ids) and m.workspace_id = p_workspace_id
  order by m.id for no key update;
  perform ranked_ledger.refuse_absent(p_workspace_id, p_memory_ids);
end
$$;

comment on function ranked_ledger.lock_decisions(text, uuid[]) is
  'Locks decisions for a change, in id order; refuses as refuse_absent does.';

-- decision_ledger/305_decisions_json.sql ----------------------------------------------------------------------------

-- What a host may store and a client cannot read: one such row must not cost it the page that the row is on.

create or replace function ranked_ledger.is_too_deep(p_document jsonb)
returns boolean language sql immutable parallel safe
return p_document @? '$.**{100}'::jsonpath;

comment on function ranked_ledger.is_too_deep(jsonb) is
  'Whether a document is nested 100 levels deep. PostgreSQL takes 6,000, of which JSON readers of several languages give up.';

create or replace function ranked_ledger.readable_object(p_document jsonb)
returns jsonb language sql immutable parallel safe
return case when jsonb_typeof(p_document) = 'object' and not ranked_ledger.is_too_deep(p_document) then p_document else '{}' end;

comment on function ranked_ledger.readable_object(jsonb) is 'The document where it is an object that clients can read, else {}.';

create or replace function ranked_ledger.readable_time(p_moment timestamptz)
returns timestamptz language sql immutable parallel safe
return case when p_moment < '0001-01-02 00:00:00+00' then '0001-01-02 00:00:00+00'
            when p_moment > '9999-12-30 00:00:00+00' then '9999-12-30 00:00:00+00' else p_moment end;

comment on function ranked_ledger.readable_time(timestamptz) is
  'The moment, within the years 1 to 9999 in every time zone: infinity and years BC are no timestamps of RFC 3339.';

-- A decision as every verb answers it (docs/sql-api.md, "A decision").
create or replace function ranked_ledger.decisions_json(p_workspace_id text, p_memory_ids uuid[])
returns jsonb language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
begin
  return coalesce((
    select jsonb_agg(jsonb_build_object(
             'memory_id', m.id, 'workspace_id', m.workspace_id, 'project_id', m.project_id, 'task_id', m.task_id,
             'flow_id', m.flow_id, 'step_index', l.step_index,
             'step_settled', not exists (select from ranked_ledger.pending_steps p where p.memory_id = m.id),
             'summary', m.summary, 'content', m.content, 'rationale', l.rationale, 'alternatives', l.alternatives,
             'importance', l.importance::float8, 'pinned', l.pinned, 'lifecycle_status', m.lifecycle_status,
             'review_status', m.review_status, 'visibility', m.visibility, 'created_by', m.created_by,
             'recall_count', l.recall_count, 'used_count', l.used_count, 'last_recalled_at', l.last_recalled_at,
             'embedding_model', l.embedding_model, 'metadata', ranked_ledger.readable_object(m.metadata),
             'ledger_metadata', ranked_ledger.readable_object(l.metadata),
             'created_at', ranked_ledger.readable_time(coalesce(m.created_at, l.created_at)),
             'updated_at', ranked_ledger.readable_time(greatest(m.updated_at, l.updated_at))) order by w.position)
    from unnest(p_memory_ids) with ordinality as w (memory_id, position)
    join public.agent_memories m
      on m.id = w.memory_id and m.workspace_id = p_workspace_id and m.memory_type = 'decision'
    join public.agent_decision_ledger l on l.memory_id = m.id and l.set_aside_at is null), '[]');
end
$$;

comment on function ranked_ledger.decisions_json(text, uuid[]) is
  'The decisions of a workspace as a jsonb array, in the order of the ids; an id that is none of them is left out.';

create or replace function ranked_ledger.decision_json(p_workspace_id text, p_memory_id uuid)
returns jsonb language sql stable
set search_path = public, extensions, pg_temp
as $$
  select ranked_ledger.decisions_json(p_workspace_id, array[p_memory_id]) -> 0
$$;

comment on function ranked_ledger.decision_json(text, uuid) is 'One decision of a workspace, null where there is none.';

-- decision_ledger/310_ledger_schema_version.sql ---------------------------------------------------------------------

-- stable, and not immutable: an immutable one is folded into a cached plan, and PostgREST keeps a plan for all roles of a
-- connection, so that the right to execute it would not be asked again.
create or replace function public.ledger_schema_version()
returns int language sql stable parallel safe
set search_path = public, extensions, pg_temp
as $$ select 1 $$;

comment on function public.ledger_schema_version() is
  'The version of this SQL API. A client asks once and names what does not fit.';

-- decision_ledger/312_ledger_checks.sql -----------------------------------------------------------------------------

-- What the ledger can prove about itself, one row a check. Work is bounded: a check looks at so many rows at most and says
-- so where there are more. A detail says what was found and, where it is not well, what to do.

create or replace function ranked_ledger.check_enrolment(p_workspace_id text, p_most int)
returns table (name text, ok boolean, detail text) language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
declare
  v_missing     bigint;
  v_failures    bigint;
  v_provisional bigint;
  v_strays      bigint;
  v_checked     bigint;
begin
  select count(*) into v_missing from (
    select from public.agent_memories m
    where m.memory_type = 'decision' and (p_workspace_id is null or m.workspace_id = p_workspace_id)
      and not exists (select from public.agent_decision_ledger l where l.memory_id = m.id) limit 10000) as x;
  select count(*) into v_failures from (
    select from ranked_ledger.enrolment_failures f
    where p_workspace_id is null or f.workspace_id = p_workspace_id limit 10000) as x;
  -- a mark of a transaction that still runs is not seen here: what is seen was left over
  select count(*) into v_provisional from (
    select from ranked_ledger.pending_steps p left join public.agent_decision_ledger l on l.memory_id = p.memory_id
    where (p_workspace_id is null or l.workspace_id = p_workspace_id) limit 10000) as x;
  select count(*), count(*) filter (where x.is_stray) into v_checked, v_strays from (
    -- what is set aside follows when it is restored
    select (l.set_aside_at is null and (l.workspace_id, l.project_id, l.task_id, l.flow_id)
             is distinct from (m.workspace_id, m.project_id, m.task_id, m.flow_id))
           or (l.set_aside_at is null) <> (m.memory_type = 'decision') as is_stray
    from public.agent_decision_ledger l join public.agent_memories m on m.id = l.memory_id
    where (p_workspace_id is null or m.workspace_id = p_workspace_id) limit p_most) as x;
  return query values
    ('every_decision_is_enrolled', v_missing = 0, case when v_missing = 0 then 'Every decision has its ledger row.'
      else format('%s decisions have no ledger row. Call enroll_missing_decisions.', v_missing) end),
    ('no_enrolment_failures', v_failures = 0, case when v_failures = 0 then 'No trigger has failed.'
      else format('%s failures are noted, see recent_failures. Call enroll_missing_decisions, which mends and clears them.',
                  v_failures) end),
    ('no_provisional_steps', v_provisional = 0, case when v_provisional = 0 then 'Every step is settled.'
      else format('%s steps are provisional: their transaction ran under an old snapshot. The next write to the stream '
                  'or enroll_missing_decisions settles them.', v_provisional) end),
    ('ledger_agrees_with_memories', v_strays = 0,
      case when v_strays = 0 then format('Scope, flow and type of %s ledger rows are those of their memories%s.', v_checked,
                                         case when v_checked = p_most then '; there may be more rows' else '' end)
      else format('%s of %s ledger rows disagree with their memory. Call enroll_missing_decisions.', v_strays, v_checked) end);
end
$$;

comment on function ranked_ledger.check_enrolment(text, int) is
  'Checks of rows: all enrolled, none failed, none provisional, none astray (p_most ledger rows are compared).';

create or replace function ranked_ledger.check_streams(p_workspace_id text, p_most int)
returns table (name text, ok boolean, detail text) language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
declare
  v_checked bigint;
  v_wrong   bigint;
  v_models  text;
begin
  select count(*), count(*) filter (where s.newest_step <> ranked_ledger.newest_settled_step(s.stream_id))
  into v_checked, v_wrong
  from (select x.stream_id, x.newest_step from ranked_ledger.streams x
        where p_workspace_id is null or x.workspace_id = p_workspace_id limit p_most) as s;
  select string_agg(distinct w.workspace_id, ', ') into v_models
  from (select l.workspace_id from public.agent_decision_ledger l
        where l.embedding_model is not null and (p_workspace_id is null or l.workspace_id = p_workspace_id)
        group by l.workspace_id having count(distinct l.embedding_model) > 1 limit 10) as w;
  return query values
    ('streams_know_their_newest_step', v_wrong = 0,
      case when v_wrong = 0 then format('%s streams agree with their rows%s.', v_checked,
                                        case when v_checked = p_most then '; there may be more' else '' end)
      else format('%s of %s streams name another newest step than their rows have. Call '
                  'enroll_missing_decisions.', v_wrong, v_checked) end),
    ('one_embedding_model_a_workspace', v_models is null,
      case when v_models is null then 'No workspace names two embedding models.'
      else format('Vectors of several models lie in %s, and their similarities cannot be compared. Embed the thoughts '
                  'again with one model.', v_models) end);
end
$$;

comment on function ranked_ledger.check_streams(text, int) is 'Checks of streams, p_most of them, and of embedding models.';

create or replace function ranked_ledger.our_tables()
returns setof regclass language sql stable
set search_path = public, extensions, pg_temp
as $$
  select c.oid::regclass from pg_class c
  where c.relkind in ('r', 'p') and (c.relnamespace = 'ranked_ledger'::regnamespace
     or c.oid in (to_regclass('public.agent_decision_ledger'), to_regclass('public.agent_decision_edges')))
$$;

comment on function ranked_ledger.our_tables() is 'The tables of the ledger, in public and in ranked_ledger.';

create or replace function ranked_ledger.check_access()
returns table (name text, ok boolean, detail text) language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
declare
  v_open    text;
  v_public  text;
  v_missing text;
begin
  select string_agg(t.name::text, ', ' order by t.name::text) into v_open
  from ranked_ledger.our_tables() as t (name) join pg_class c on c.oid = t.name where not c.relrowsecurity;
  select string_agg(distinct r.role || ' on ' || o.name, ', ') into v_public
  from unnest(array['anon', 'authenticated']) as r (role)
  cross join lateral (
    select t.name::text from ranked_ledger.our_tables() as t (name)
    where has_table_privilege(r.role, t.name, 'select, insert, update, delete, truncate, references, trigger')
    union all
    select v.name from (values ('public.agent_recall_policy_stats')) as v (name)
    where to_regclass(v.name) is not null and has_table_privilege(r.role, to_regclass(v.name), 'select')
    union all
    select f.name::text from ranked_ledger.our_functions() as f (name)
    where has_function_privilege(r.role, f.name, 'execute')) as o
  where to_regrole(r.role) is not null;
  select string_agg(o.name, ', ') into v_missing
  from (
    select t.name::text from ranked_ledger.our_tables() as t (name)
    where not (has_table_privilege('service_role', t.name, 'select') and has_table_privilege('service_role', t.name, 'insert')
               and has_table_privilege('service_role', t.name, 'update') and has_table_privilege('service_role', t.name, 'delete'))
    union all
    select h.name from unnest(array['thoughts', 'agent_memories', 'agent_memory_relations', 'agent_memory_review_actions',
      'agent_memory_recall_traces', 'agent_memory_recall_items', 'agent_memory_audit_events']) as h (name)
    where not (has_table_privilege('service_role', 'public.' || h.name, 'select')
               and has_table_privilege('service_role', 'public.' || h.name, 'insert')
               and has_table_privilege('service_role', 'public.' || h.name, 'update')
               and has_table_privilege('service_role', 'public.' || h.name, 'delete'))
    union all
    select p.oid::regprocedure::text from pg_proc p
    where p.pronamespace = 'public'::regnamespace and p.proname = any (ranked_ledger.public_functions())
      and not has_function_privilege('service_role', p.oid, 'execute')) as o;
  return query values
    ('row_level_security', v_open is null, coalesce('Row level security is off on ' || v_open || '. Push the migrations again.',
      'Row level security is on for every table of the ledger.')),
    ('public_keys_have_no_rights', v_public is null,
      coalesce('Rights that nobody should have: ' || left(v_public, 2000) || '. Push the migrations again, which revokes them.',
      'The roles of the public keys, anon and authenticated, may do nothing here.')),
    ('service_role_has_its_rights', v_missing is null,
      coalesce('service_role lacks rights on ' || left(v_missing, 2000)
        || '. Grant select, insert, update, delete (execute on functions).', 'service_role may do what the functions do.'));
end
$$;

comment on function ranked_ledger.check_access() is 'Checks of rights: row level security, nothing for the public keys, all for the service role.';

create or replace function ranked_ledger.check_install()
returns table (name text, ok boolean, detail text) language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
declare
  v_dimension int := ranked_ledger.embedding_dimension();
  v_off       text;
  v_double    text;
begin
  select string_agg(w.name, ', ') into v_off
  from (values ('public.agent_memories', 'trg_agent_decision_ledger_enroll'),
               ('public.agent_memories', 'trg_agent_decision_ledger_follow'),
               ('public.agent_memories', 'trg_agent_decision_ledger_hold_edges'),
               ('public.agent_memories', 'trg_agent_decision_ledger_recopy'),
               ('public.thoughts', 'trg_agent_decision_ledger_revector'),
               ('public.agent_decision_edges', 'agent_decision_edges_count_inserted'),
               ('public.agent_decision_edges', 'agent_decision_edges_count_updated'),
               ('public.agent_decision_edges', 'agent_decision_edges_count_deleted'),
               ('public.agent_decision_edges', 'agent_decision_edges_empty_copies'),
               ('public.agent_decision_ledger', 'agent_decision_ledger_copy_inserted_rows'),
               ('public.agent_decision_ledger', 'agent_decision_ledger_copy_updated_row'),
               ('public.agent_decision_ledger', 'agent_decision_ledger_drop_deleted_rows'),
               ('public.agent_decision_ledger', 'agent_decision_ledger_empty_copies'),
               ('public.agent_decision_edges', 'agent_decision_edges_check'),
               ('public.agent_decision_edges', 'agent_decision_edges_note_lost_ground'),
               ('public.agent_decision_ledger', 'agent_decision_ledger_note_lost_rows'),
               ('public.agent_decision_ledger', 'agent_decision_ledger_note_truncation'),
               ('public.agent_decision_ledger', 'agent_decision_ledger_fill_lexemes_insert'),
               ('public.agent_decision_ledger', 'agent_decision_ledger_fill_lexemes_update'),
               ('ranked_ledger.workspace_settings', 'workspace_settings_follow_text_config'),
               ('ranked_ledger.pending_steps', 'settle_steps_at_commit')) as w (relation, name)
  where not exists (select from pg_trigger t where t.tgrelid = to_regclass(w.relation) and t.tgname = w.name
                    and t.tgenabled in ('O', 'A'));
  select string_agg(d.proname, ', ') into v_double
  from (select p.proname from pg_proc p
        where p.pronamespace = 'public'::regnamespace and p.proname = any (ranked_ledger.public_functions())
        group by p.proname having count(*) > 1) as d;
  return query values
    ('triggers_are_on', v_off is null,
      coalesce('Triggers are missing or disabled: ' || v_off || '. Enable them, or push the migrations again.',
      'Every trigger of the ledger is in place.')),
    ('functions_are_unambiguous', v_double is null,
      coalesce('Several functions are named ' || v_double || ', and PostgREST refuses such a call (PGRST203). Drop the '
        'ones that are not Ranked Ledger''s.', 'Each function has one signature.')),
    ('embedding_dimension', v_dimension is not null,
      coalesce('Embeddings have ' || v_dimension || ' dimensions; a model with another number is refused (RL463).',
      'thoughts.embedding has no fixed number of dimensions: vectors of two models can get into it. Give it one.'));
end
$$;

comment on function ranked_ledger.check_install() is 'Checks of the install: triggers, signatures, the column of embeddings.';

-- decision_ledger/314_ledger_status.sql -----------------------------------------------------------------------------

create or replace function ranked_ledger.status_counts(p_workspace_id text)
returns jsonb language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
begin
  return jsonb_build_object(
    'decisions', (select count(*) from public.agent_memories m
                  where m.memory_type = 'decision' and (p_workspace_id is null or m.workspace_id = p_workspace_id)),
    'missing', (select count(*) from public.agent_memories m
                where m.memory_type = 'decision' and (p_workspace_id is null or m.workspace_id = p_workspace_id)
                  and not exists (select from public.agent_decision_ledger l where l.memory_id = m.id)),
    'provisional', (select count(*) from ranked_ledger.pending_steps p
                    join public.agent_decision_ledger l on l.memory_id = p.memory_id
                    where p_workspace_id is null or l.workspace_id = p_workspace_id),
    'failures', (select count(*) from ranked_ledger.enrolment_failures f
                 where p_workspace_id is null or f.workspace_id = p_workspace_id),
    'edges', (select count(*) from public.agent_decision_edges e
              join public.agent_decision_ledger l on l.memory_id = e.from_memory_id
              where p_workspace_id is null or l.workspace_id = p_workspace_id),
    'streams', (select count(*) from ranked_ledger.streams s where p_workspace_id is null or s.workspace_id = p_workspace_id),
    'traces', (select count(*) from public.agent_memory_recall_traces t
               where p_workspace_id is null or t.workspace_id = p_workspace_id))
    || (select jsonb_build_object('enrolled', count(*) filter (where l.set_aside_at is null),
                                  'set_aside', count(*) filter (where l.set_aside_at is not null))
        from public.agent_decision_ledger l where p_workspace_id is null or l.workspace_id = p_workspace_id);
end
$$;

comment on function ranked_ledger.status_counts(text) is 'The numbers of ledger_status, of one workspace or of all.';

create or replace function ranked_ledger.status_workspaces(p_workspace_id text)
returns jsonb language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
begin
  return coalesce((
    select jsonb_agg(jsonb_build_object(
             'workspace_id', w.workspace_id, 'decisions', w.decisions, 'last_recorded_at', w.last_recorded_at,
             'newest_step', (select max(s.newest_step) from ranked_ledger.streams s
                             where s.workspace_id = w.workspace_id and s.newest_step >= 0))
             order by w.decisions desc, w.workspace_id)
    from (select l.workspace_id, count(*) as decisions, max(l.created_at) as last_recorded_at
          from public.agent_decision_ledger l
          where l.set_aside_at is null and (p_workspace_id is null or l.workspace_id = p_workspace_id)
          group by l.workspace_id order by count(*) desc, l.workspace_id limit 100) as w), '[]');
end
$$;

comment on function ranked_ledger.status_workspaces(text) is 'At most 100 workspaces, the busiest first.';

create or replace function public.ledger_status(p_workspace_id text default null)
returns jsonb language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
begin
  if p_workspace_id is not null then
    perform ranked_ledger.check_workspace(p_workspace_id);
  end if;
  return jsonb_build_object(
      'schema_version', public.ledger_schema_version(),
      'postgres_version', current_setting('server_version'),
      'embedding_dimension', ranked_ledger.embedding_dimension())
    || (select jsonb_build_object('pgvector_version', e.extversion, 'pgvector_schema', e.extnamespace::regnamespace::text)
        from pg_extension e where e.extname = 'vector')
    || ranked_ledger.status_counts(p_workspace_id)
    || jsonb_build_object(
      'workspaces', ranked_ledger.status_workspaces(p_workspace_id),
      'recent_failures', coalesce((
        select jsonb_agg(jsonb_build_object('memory_id', f.memory_id, 'workspace_id', f.workspace_id,
                 'reason', f.reason, 'sqlstate', f.failed_with, 'at', f.failed_at) order by f.id desc)
        from (select * from ranked_ledger.enrolment_failures x
              where p_workspace_id is null or x.workspace_id = p_workspace_id order by x.id desc limit 20) as f), '[]'),
      'checks', (
        select jsonb_agg(jsonb_build_object('name', c.name, 'ok', c.ok, 'detail', c.detail) order by c.position)
        from (select row_number() over () as position, a.* from (
                select * from ranked_ledger.check_install()
                union all select * from ranked_ledger.check_access()
                union all select * from ranked_ledger.check_enrolment(p_workspace_id, 500000)
                union all select * from ranked_ledger.check_streams(p_workspace_id, 10000)) as a) as c));
end
$$;

comment on function public.ledger_status(text) is
  'Versions, numbers, workspaces, failures and checks, of one workspace or of all. The install''s own checks are always of all.';

-- decision_ledger/320_idempotency.sql -------------------------------------------------------------------------------

-- A key stands for one request of one operation in one workspace. The insert comes first: a second call with the same key,
-- sent while the first still runs, waits on it and then answers what the first one wrote.

create or replace function ranked_ledger.request_digest(p_request jsonb)
returns bytea language sql immutable parallel safe
set search_path = public, extensions, pg_temp
as $$
  -- embedding services do not answer the same vector twice to the last digit: an honest repeat would be another request
  select sha256(convert_to(case jsonb_typeof(p_request)
    when 'array' then (select coalesce(jsonb_agg(e.value - '{embedding,embedding_model}'::text[] order by e.ordinality), '[]')
                       from jsonb_array_elements(p_request) with ordinality as e)::text
    else (p_request - '{embedding,embedding_model}'::text[])::text end, 'UTF8'))
$$;

comment on function ranked_ledger.request_digest(jsonb) is
  'What a request is compared by under its key: everything but its vectors.';

create or replace function ranked_ledger.claim_key(
  p_workspace_id text, p_operation text, p_key text, p_request jsonb)
returns uuid[] language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_digest bytea := ranked_ledger.request_digest(p_request);
  v_known  ranked_ledger.idempotency_keys;
  v_left   int;
begin
  -- guard
  if p_key is null then
    return null;
  elsif p_key !~ '\S' or char_length(p_key) > 255 then
    raise sqlstate '22023' using
      message = 'p_idempotency_key is blank or longer than 255 characters.',
      hint = 'Use a fresh UUID for each write, and the same one for its retries.';
  end if;

  -- claim
  insert into ranked_ledger.idempotency_keys (workspace_id, operation, key, digest)
  values (p_workspace_id, p_operation, p_key, v_digest)
  on conflict do nothing;
  if found then
    return null;
  end if;

  -- replay
  select * into strict v_known from ranked_ledger.idempotency_keys k
  where k.workspace_id = p_workspace_id and k.operation = p_operation and k.key = p_key;
  select count(*) into v_left
  from public.agent_memories m join public.agent_decision_ledger l on l.memory_id = m.id and l.set_aside_at is null
  where m.id = any (v_known.memory_ids) and m.workspace_id = p_workspace_id and m.memory_type = 'decision';
  if v_left < cardinality(v_known.memory_ids) or v_known.digest = '' then -- an erasure blanks it: nothing to compare with
    raise sqlstate 'RL410' using
      message = 'What this idempotency key wrote was forgotten or erased, or is no decision of this workspace any more.',
      hint = 'Use a new key if it is to be written again.';
  end if;
  if v_known.digest <> v_digest then
    raise sqlstate 'RL409' using
      message = 'This idempotency key was used with another request.',
      hint = 'Use a new key for a new request, and send a retry exactly as the first time.';
  end if;
  return v_known.memory_ids;
end
$$;

comment on function ranked_ledger.claim_key(text, text, text, jsonb) is
  'Null: the request is new (or has no key) and is to be done. Else the memory ids that it wrote the first time.';

create or replace function ranked_ledger.keep_result(
  p_workspace_id text, p_operation text, p_key text, p_memory_ids uuid[])
returns void language plpgsql
set search_path = public, extensions, pg_temp
as $$
begin
  update ranked_ledger.idempotency_keys k set memory_ids = p_memory_ids
  where k.workspace_id = p_workspace_id and k.operation = p_operation and k.key = p_key;
end
$$;

comment on function ranked_ledger.keep_result(text, text, text, uuid[]) is
  'Notes what a claimed key wrote. Without a key there is nothing to note.';

-- decision_ledger/322_decision_problem.sql --------------------------------------------------------------------------

-- The fields of a decision to be written, those of record_decision without p_. One sentence names the first one that is
-- wrong; null: none is.

create or replace function ranked_ledger.text_problem(p_decision jsonb)
returns text language plpgsql immutable
set search_path = public, extensions, pg_temp
as $$
declare
  v_wrong text;
begin
  select case
      when jsonb_typeof(f.value) <> 'string' then format('%s is not a text.', f.key)
      when octet_length(f.value #>> '{}') > t.most then format('%s is longer than %s bytes.', f.key, t.most)
      else format('%s is blank.', f.key) end
  into v_wrong
  -- an id of 1,000 bytes leaves room in the host's B-tree entries, which end at 2,704
  from (values ('content', 262144, false), ('summary', 2000, false), ('rationale', 262144, true),
               ('project_id', 1000, true), ('task_id', 1000, true), ('flow_id', 1000, true),
               ('embedding_model', 1000, false), ('runtime_name', 1000, true),
               ('visibility', 1000, false), ('created_by', 1000, false)) as t (name, most, may_be_blank)
  join jsonb_each(p_decision) as f on f.key = t.name
  where jsonb_typeof(f.value) <> 'string' or octet_length(f.value #>> '{}') > t.most
     or (not t.may_be_blank and f.value #>> '{}' !~ '\S')
  order by f.key limit 1;
  return v_wrong;
end
$$;

comment on function ranked_ledger.text_problem(jsonb) is 'Of the text fields of a decision, what is wrong with the first wrong one.';

create or replace function ranked_ledger.array_problem(p_decision jsonb)
returns text language plpgsql immutable
set search_path = public, extensions, pg_temp
as $$
declare
  v_others  jsonb := coalesce(p_decision -> 'alternatives', '[]');
  v_grounds jsonb := coalesce(p_decision -> 'depends_on', '[]');
begin
  return case
    when jsonb_typeof(v_others) <> 'array' or jsonb_array_length(v_others) > 20 or exists (
           select from jsonb_array_elements(v_others) a
           where jsonb_typeof(a.value) <> 'string' or a.value #>> '{}' !~ '\S')
      then 'alternatives is not an array of at most 20 texts that are not blank.'
    when octet_length(v_others::text) > 262144 then 'alternatives is longer than 262144 bytes.'
    when jsonb_typeof(v_grounds) <> 'array' or jsonb_array_length(v_grounds) > 100 or exists (
           select from jsonb_array_elements(v_grounds) d
           where jsonb_typeof(d.value) <> 'string'
              or d.value #>> '{}' !~* '^[0-9a-f]{8}(-?[0-9a-f]{4}){3}-?[0-9a-f]{12}$')
      then 'depends_on is not an array of at most 100 memory ids.'
  end;
end
$$;

comment on function ranked_ledger.array_problem(jsonb) is 'Of alternatives and depends_on, what is wrong with the first wrong one.';

create or replace function ranked_ledger.decision_problem(p_decision jsonb)
returns text language plpgsql immutable
set search_path = public, extensions, pg_temp
as $$
declare
  v_known constant text[] := array[
    'content', 'summary', 'rationale', 'alternatives', 'importance', 'step_index', 'project_id', 'task_id', 'flow_id',
    'depends_on', 'embedding', 'embedding_model', 'pinned', 'visibility', 'created_by', 'runtime_name', 'metadata'];
  v_unknown    text;
  v_importance jsonb := p_decision -> 'importance';
  v_step       jsonb := p_decision -> 'step_index';
begin
  select string_agg(left(k.name, 100), ', ' order by k.name) into v_unknown
  from (select k.name from jsonb_object_keys(p_decision) as k (name) where k.name <> all (v_known) limit 20) as k;

  return case
    when v_unknown is not null then format('A decision has no field named %s.', v_unknown)
    when p_decision -> 'content' is null then 'content is missing.'
    when ranked_ledger.text_problem(p_decision) is not null then ranked_ledger.text_problem(p_decision)
    when ranked_ledger.array_problem(p_decision) is not null then ranked_ledger.array_problem(p_decision)
    when v_importance is not null and not case when jsonb_typeof(v_importance) = 'number'
           then (v_importance #>> '{}')::numeric between 0 and 1 else false end
      then 'importance is not a number from 0 to 1.'
    when v_step is not null and not case when jsonb_typeof(v_step) = 'number'
           then (v_step #>> '{}')::numeric between 0 and ranked_ledger.max_step()
                and (v_step #>> '{}')::numeric = trunc((v_step #>> '{}')::numeric) else false end
      then 'step_index is not a whole number from 0 to 1000000000.'
    when jsonb_typeof(p_decision -> 'embedding') not in ('string', 'array')
      then 'embedding is not a text of numbers like [0.1,0.2].'
    when p_decision -> 'embedding' is null and p_decision -> 'embedding_model' is not null
      then 'embedding_model is the model of an embedding, and no embedding is given.'
    when jsonb_typeof(p_decision -> 'pinned') <> 'boolean' then 'pinned is not true or false.'
    when jsonb_typeof(p_decision -> 'metadata') <> 'object' then 'metadata is not an object.'
    when ranked_ledger.is_too_deep(p_decision -> 'metadata') then 'metadata is nested 100 levels deep or more.'
    when octet_length((p_decision -> 'metadata')::text) > 262144 then 'metadata is longer than 262144 bytes.'
    when p_decision ->> 'visibility' not in ('personal', 'channel', 'project', 'workspace', 'organization')
      then 'visibility is not one of personal, channel, project, workspace, organization.'
    when p_decision ->> 'created_by' not in ('user', 'agent', 'system', 'import')
      then 'created_by is not one of user, agent, system, import.'
  end;
end
$$;

comment on function ranked_ledger.decision_problem(jsonb) is
  'What is wrong with the fields of a decision (nulls removed), as a sentence that names the field; null: nothing.';

-- decision_ledger/324_write_decision.sql ----------------------------------------------------------------------------

-- The one writer behind record_decision and record_decisions: thought, memory, ledger row, edges, audit event. All of it
-- or nothing, unlike a host's write, which goes through whatever happens in our triggers.

create or replace function ranked_ledger.without_nulls(p_object jsonb)
returns jsonb language sql immutable parallel safe
set search_path = public, extensions, pg_temp
as $$
  -- jsonb_object_agg took 15 seconds to copy an array of 100,000 texts, which the checks behind it refuse at once
  select p_object - array(select f.key from jsonb_each(p_object) as f where jsonb_typeof(f.value) = 'null')
$$;

comment on function ranked_ledger.without_nulls(jsonb) is
  'An object without its own null fields (nulls further inside stay): an argument that is null was left out.';

create or replace function ranked_ledger.embedding_of(p_embedding text)
returns vector language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
declare
  v_embedding vector := ranked_ledger.vector_of(p_embedding);
begin
  if v_embedding is null then
    return null;
  end if;
  perform ranked_ledger.check_dimension(vector_dims(v_embedding));
  perform ranked_ledger.check_direction(v_embedding);
  return v_embedding;
end
$$;

comment on function ranked_ledger.embedding_of(text) is
  'A vector from its text, null from null. Refuses what is no finite vector or all zeros (22023), or has another dimension than the host''s column (RL463).';

create or replace function ranked_ledger.thoughts_may_collide()
returns boolean language sql stable
set search_path = public, extensions, pg_temp
as $$
  select exists (
    select from pg_index i
    where i.indrelid = 'public.thoughts'::regclass and i.indisunique and not i.indisprimary
      and (i.indexprs is not null
           or exists (select from pg_trigger t
                      where t.tgrelid = i.indrelid and not t.tgisinternal and t.tgenabled <> 'D' and t.tgtype & 4 = 4)
           or exists (select from pg_attribute a
                      where a.attrelid = i.indrelid and a.attnum = any (i.indkey)
                        and (a.atthasdef or a.attname in ('content', 'embedding', 'metadata')))))
$$;

comment on function ranked_ledger.thoughts_may_collide() is
  'Whether a unique index of the host could refuse a thought that says only content, vector and metadata.';

create or replace function ranked_ledger.write_thought(
  p_content text, p_embedding vector, out thought_id uuid, out embedded boolean)
language plpgsql
set search_path = public, extensions, pg_temp
as $$
begin
  -- no fingerprint: two decisions of the same words are two thoughts, so that forgetting one leaves the other its own
  if not ranked_ledger.thoughts_may_collide() then
    insert into public.thoughts (content, embedding, metadata)
    values (p_content, p_embedding, '{"source": "ranked_ledger"}') returning id into thought_id;
    embedded := p_embedding is not null;
    return;
  end if;

  -- a host that fingerprints by itself may hold this text already (only here a subtransaction is worth its price)
  begin
    insert into public.thoughts (content, embedding, metadata)
    values (p_content, p_embedding, '{"source": "ranked_ledger"}') returning id into thought_id;
    embedded := p_embedding is not null;
  exception when unique_violation then
    thought_id := (public.upsert_thought(p_content, '{"metadata": {}}') ->> 'id')::uuid;
    update public.thoughts t set embedding = p_embedding
    where t.id = thought_id and t.embedding is null and p_embedding is not null;
    embedded := found;
  end;
end
$$;

comment on function ranked_ledger.write_thought(text, vector) is
  'A thought of its own for a decision. Where the host''s own unique fingerprint refuses that, the thought that is there; its vector is set only where it has none. embedded: whether the vector was stored.';

create or replace function ranked_ledger.complete_enrolment(p_memory_id uuid, p_decision jsonb, p_embedded boolean)
returns void language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_memory public.agent_memories;
begin
  -- the trigger did not enrol it: once more in the open, so that the caller hears why
  if not exists (select from public.agent_decision_ledger l where l.memory_id = p_memory_id) then
    select * into v_memory from public.agent_memories m where m.id = p_memory_id;
    begin
      perform ranked_ledger.enroll_memories(array[v_memory]);
    exception when others then
      raise sqlstate 'RL500' using
        message = format('The decision could not be enrolled, and nothing was written: %s', sqlerrm),
        detail = sqlstate,
        hint = 'Call ledger_status: its checks say what is wrong with the install.';
    end;
    delete from ranked_ledger.enrolment_failures f where f.memory_id = p_memory_id;
  end if;

  update public.agent_decision_ledger l
  set rationale = coalesce(p_decision ->> 'rationale', l.rationale),
      alternatives = coalesce(p_decision -> 'alternatives', l.alternatives),
      importance = coalesce((p_decision ->> 'importance')::numeric, l.importance),
      pinned = coalesce((p_decision ->> 'pinned')::boolean, l.pinned),
      step_index = coalesce((p_decision ->> 'step_index')::numeric::int, l.step_index),
      embedding_model = case when p_embedded then p_decision ->> 'embedding_model' end
  where l.memory_id = p_memory_id
    and p_decision ?| array['rationale', 'alternatives', 'importance', 'pinned', 'step_index', 'embedding_model'];
  if p_decision ? 'step_index' then
    update ranked_ledger.pending_steps p set step_is_given = true where p.memory_id = p_memory_id;
  end if;
end
$$;

comment on function ranked_ledger.complete_enrolment(uuid, jsonb, boolean) is
  'What a recorded decision says of itself, onto the ledger row that the enrolment trigger made. RL500 where there is none.';

create or replace function ranked_ledger.write_decision(p_workspace_id text, p_decision jsonb)
returns uuid language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_problem   text := ranked_ledger.decision_problem(p_decision);
  v_content   text := p_decision ->> 'content';
  v_embedding vector;
  v_grounds   uuid[];
  v_thought   record;
  v_memory_id uuid;
begin
  -- guard
  if v_problem is not null then
    raise sqlstate '22023' using
      message = v_problem,
      hint = 'Nothing was written. docs/sql-api.md lists the fields of a decision and their limits.';
  end if;
  v_embedding := ranked_ledger.embedding_of(p_decision ->> 'embedding');

  -- lock
  select coalesce(array_agg(distinct (d.value #>> '{}')::uuid), '{}') into v_grounds
  from jsonb_array_elements(coalesce(p_decision -> 'depends_on', '[]')) as d;
  perform ranked_ledger.hold_decisions(p_workspace_id, v_grounds);

  -- mutate
  select * into v_thought from ranked_ledger.write_thought(v_content, v_embedding);
  insert into public.agent_memories (
    thought_id, workspace_id, project_id, task_id, flow_id, visibility, memory_type, summary, content, created_by,
    runtime_name, metadata)
  values (
    v_thought.thought_id, p_workspace_id, p_decision ->> 'project_id', p_decision ->> 'task_id', p_decision ->> 'flow_id',
    coalesce(p_decision ->> 'visibility', 'project'), 'decision',
    coalesce(p_decision ->> 'summary', left(substring(v_content from '\S[^\n\r]*'), 200)), v_content,
    coalesce(p_decision ->> 'created_by', 'agent'), p_decision ->> 'runtime_name',
    coalesce(p_decision -> 'metadata', '{}'))
  returning id into v_memory_id;
  perform ranked_ledger.complete_enrolment(v_memory_id, p_decision, v_thought.embedded);
  insert into public.agent_decision_edges (from_memory_id, to_memory_id, relation)
  select v_memory_id, g.memory_id, 'depends_on' from unnest(v_grounds) as g (memory_id) order by g.memory_id;
  insert into public.agent_memory_audit_events (event_type, workspace_id, project_id, memory_id, actor_kind, payload)
  values ('memory_written', p_workspace_id, p_decision ->> 'project_id', v_memory_id,
          coalesce(p_decision ->> 'created_by', 'agent'), '{"kind": "decision_recorded"}');
  return v_memory_id;
end
$$;

comment on function ranked_ledger.write_decision(text, jsonb) is
  'Writes one decision from its fields (those of record_decision without p_, nulls removed), its step still provisional. Returns the memory id.';

create or replace function ranked_ledger.settle_now()
returns void language plpgsql
set search_path = public, extensions, pg_temp
as $$
begin
  -- an RPC answers before its commit: settled here, the step that it returns is the step that is stored
  set constraints ranked_ledger.settle_steps_at_commit immediate;
  set constraints ranked_ledger.settle_steps_at_commit deferred;
end
$$;

comment on function ranked_ledger.settle_now() is 'Settles the steps of this transaction''s writes at once.';

-- decision_ledger/326_record_decision.sql ---------------------------------------------------------------------------

create or replace function public.record_decision(
  p_workspace_id text, p_content text, p_summary text default null, p_rationale text default null,
  p_alternatives jsonb default null, p_importance float8 default null, p_step_index bigint default null,
  p_project_id text default null, p_task_id text default null, p_flow_id text default null,
  p_depends_on uuid[] default null, p_embedding text default null, p_embedding_model text default null,
  p_pinned boolean default null, p_visibility text default null, p_created_by text default null,
  p_runtime_name text default null, p_metadata jsonb default null, p_idempotency_key text default null)
returns jsonb language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_decision jsonb := ranked_ledger.without_nulls(jsonb_build_object(
    'content', p_content, 'summary', p_summary, 'rationale', p_rationale, 'alternatives', p_alternatives,
    'importance', p_importance, 'step_index', p_step_index, 'project_id', p_project_id, 'task_id', p_task_id,
    'flow_id', p_flow_id, 'depends_on', p_depends_on, 'embedding', p_embedding, 'embedding_model', p_embedding_model,
    'pinned', p_pinned, 'visibility', p_visibility, 'created_by', p_created_by, 'runtime_name', p_runtime_name,
    'metadata', p_metadata));
  v_written  uuid[];
  v_memory_id uuid;
begin
  perform ranked_ledger.check_recording_workspace(p_workspace_id);
  v_written := ranked_ledger.claim_key(p_workspace_id, 'record_decision', p_idempotency_key, v_decision);
  if v_written is not null then
    return ranked_ledger.decision_json(p_workspace_id, v_written[1]) || '{"replayed": true}';
  end if;

  v_memory_id := ranked_ledger.write_decision(p_workspace_id, v_decision);
  perform ranked_ledger.settle_now();
  perform ranked_ledger.keep_result(p_workspace_id, 'record_decision', p_idempotency_key, array[v_memory_id]);
  return ranked_ledger.decision_json(p_workspace_id, v_memory_id) || '{"replayed": false}';
end
$$;

comment on function public.record_decision(text, text, text, text, jsonb, float8, bigint, text, text, text, uuid[], text, text,
  boolean, text, text, text, jsonb, text) is
  'Records a decision: thought, memory, ledger row and edges, or nothing. Answers the decision with its settled step; with an idempotency key a repeat answers the first one again.';

-- decision_ledger/328_record_decisions.sql --------------------------------------------------------------------------

create or replace function ranked_ledger.check_batch(p_decisions jsonb)
returns void language plpgsql immutable
set search_path = public, extensions, pg_temp
as $$
begin
  if coalesce(jsonb_typeof(p_decisions), '') <> 'array' then
    raise sqlstate '22023' using
      message = 'p_decisions is not an array of decisions.',
      hint = 'Send [{"content": "..."}, ...], each with the arguments of record_decision without p_.';
  elsif jsonb_array_length(p_decisions) > 500 then
    raise sqlstate '22023' using
      message = format('p_decisions holds %s decisions, and a batch holds 500 at most.', jsonb_array_length(p_decisions)),
      hint = 'Send several batches.';
  elsif exists (select from jsonb_array_elements(p_decisions) d where jsonb_typeof(d.value) <> 'object') then
    raise sqlstate '22023' using
      message = 'An element of p_decisions is not an object.',
      hint = 'Send [{"content": "..."}, ...], each with the arguments of record_decision without p_.';
  end if;
end
$$;

comment on function ranked_ledger.check_batch(jsonb) is 'Refuses (22023) what is not an array of at most 500 objects.';

create or replace function public.record_decisions(
  p_workspace_id text, p_decisions jsonb, p_idempotency_key text default null)
returns jsonb language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_decision   jsonb;
  v_written    uuid[];
  v_memory_ids uuid[] := '{}';
begin
  -- guard
  perform ranked_ledger.check_recording_workspace(p_workspace_id);
  perform ranked_ledger.check_batch(p_decisions);
  v_written := ranked_ledger.claim_key(p_workspace_id, 'record_decisions', p_idempotency_key, p_decisions);
  if v_written is not null then
    return jsonb_build_object('decisions', ranked_ledger.decisions_json(p_workspace_id, v_written), 'replayed', true);
  end if;

  -- mutate; one block for the whole batch, so that an error can say which decision it means
  begin
    for v_decision in select d.value from jsonb_array_elements(p_decisions) with ordinality as d order by d.ordinality loop
      v_memory_ids := v_memory_ids
        || ranked_ledger.write_decision(p_workspace_id, ranked_ledger.without_nulls(v_decision));
    end loop;
  exception when sqlstate '22023' or sqlstate 'RL404' or sqlstate 'RL410' or sqlstate 'RL463' or sqlstate 'RL500' then
    declare
      v_detail text;
      v_hint   text;
    begin
      get stacked diagnostics v_detail = pg_exception_detail, v_hint = pg_exception_hint;
      raise exception using
        errcode = sqlstate,
        message = format('Decision %s of %s: %s', cardinality(v_memory_ids) + 1, jsonb_array_length(p_decisions), sqlerrm),
        detail = v_detail, hint = v_hint;
    end;
  end;

  -- answer
  perform ranked_ledger.settle_now();
  perform ranked_ledger.keep_result(p_workspace_id, 'record_decisions', p_idempotency_key, v_memory_ids);
  return jsonb_build_object('decisions', ranked_ledger.decisions_json(p_workspace_id, v_memory_ids), 'replayed', false);
end
$$;

comment on function public.record_decisions(text, jsonb, text) is
  'Records up to 500 decisions in order, all or none of them. An element has the argument names of record_decision without p_.';

-- decision_ledger/330_get_decision.sql ------------------------------------------------------------------------------

create or replace function ranked_ledger.edges_json(p_workspace_id text, p_memory_id uuid, p_outward boolean)
returns jsonb language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
begin
  return coalesce((
    select jsonb_agg(jsonb_build_object(
             'memory_id', m.id, 'relation', e.relation, 'summary', m.summary, 'step_index', l.step_index,
             'lifecycle_status', m.lifecycle_status) order by e.relation, l.step_index, m.id)
    from (select case when p_outward then x.to_memory_id else x.from_memory_id end as other_id, x.relation
          from public.agent_decision_edges x
          where (p_outward and x.from_memory_id = p_memory_id) or (not p_outward and x.to_memory_id = p_memory_id)) as e
    join public.agent_memories m on m.id = e.other_id and m.workspace_id = p_workspace_id
    left join public.agent_decision_ledger l on l.memory_id = m.id), '[]');
end
$$;

comment on function ranked_ledger.edges_json(text, uuid, boolean) is
  'The edges of a decision by their other end: what it points to (outward), or what points to it.';

create or replace function ranked_ledger.chain_json(p_memory_id uuid)
returns jsonb language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
begin
  return coalesce((
    select jsonb_agg(jsonb_build_object(
             'memory_id', m.id, 'summary', m.summary, 'step_index', l.step_index,
             'lifecycle_status', m.lifecycle_status) order by m.created_at, l.step_index, m.id)
    from ranked_ledger.supersession_chain(p_memory_id) c
    join public.agent_memories m on m.id = c.memory_id
    left join public.agent_decision_ledger l on l.memory_id = m.id), '[]');
end
$$;

comment on function ranked_ledger.chain_json(uuid) is
  'What a decision is tied to by supersession, itself included, oldest first.';

create or replace function public.get_decision(p_workspace_id text, p_memory_id uuid)
returns jsonb language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
begin
  perform ranked_ledger.check_workspace(p_workspace_id);
  perform ranked_ledger.refuse_absent(p_workspace_id, array[p_memory_id]);
  return ranked_ledger.decision_json(p_workspace_id, p_memory_id) || jsonb_build_object(
    'successor', ranked_ledger.successor(p_memory_id),
    'chain', ranked_ledger.chain_json(p_memory_id),
    'edges_out', ranked_ledger.edges_json(p_workspace_id, p_memory_id, true),
    'edges_in', ranked_ledger.edges_json(p_workspace_id, p_memory_id, false),
    'lost_ground', coalesce((
      select jsonb_agg(jsonb_build_object(
               'memory_id', g.lost_memory_id, 'relation', g.relation, 'forgotten_at', g.lost_at)
               order by g.lost_at, g.lost_memory_id, g.relation)
      from ranked_ledger.lost_grounds g where g.memory_id = p_memory_id), '[]'),
    'history', coalesce((
      select jsonb_agg(jsonb_build_object(
               'lifecycle_status', t.lifecycle_status, 'step_index', t.stream_step, 'at', t.changed_at,
               'reason', t.reason, 'actor', t.actor) order by t.id)
      from ranked_ledger.lifecycle_transitions t where t.memory_id = p_memory_id), '[]'));
end
$$;

comment on function public.get_decision(text, uuid) is
  'A decision in full: its fields, successor, supersession chain, edges both ways, lost ground and history.';

-- decision_ledger/332_decision_impact.sql ---------------------------------------------------------------------------

-- What rests on a decision: over depends_on, against its direction. It is walked through what is not live too: what rests on a
-- superseded decision rests on its ground all the same. One that is set aside is no decision now, and ends the walk.

-- Every one of them, each visited once, so that the numbers cost one walk however the edges run. The lateral query is planned
-- for one decision, by the index; planned as a join with all edges it took 222 s on a chain of 10,000, and 0.04 s like this.
create or replace function ranked_ledger.resting_on(p_workspace_id text, p_memory_id uuid)
returns table (memory_id uuid) language sql stable
set search_path = public, extensions, pg_temp
as $$
  with recursive above as (
    select p_memory_id as memory_id
    union -- ends at a cycle that others wrote
    select d.memory_id
    from above a
    cross join lateral (
      select l.memory_id
      from public.agent_decision_edges e
      join public.agent_decision_ledger l on l.memory_id = e.from_memory_id and l.set_aside_at is null
      join public.agent_memories m
        on m.id = l.memory_id and m.workspace_id = p_workspace_id and m.memory_type = 'decision'
      where e.to_memory_id = a.memory_id and e.relation = 'depends_on' offset 0) as d
  )
  select a.memory_id from above a where a.memory_id <> p_memory_id
$$;

comment on function ranked_ledger.resting_on(text, uuid) is
  'Every decision of the workspace that rests on this one, directly or further on.';

-- Level by level, until there are enough: a chain of thousands is not walked to its end for its first hundred.
create or replace function ranked_ledger.nearest_resting_on(p_workspace_id text, p_memory_id uuid, p_max_depth int, p_enough int)
returns table (memory_id uuid, via uuid, depth int) language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
declare
  v_seen  uuid[] := array[p_memory_id];
  v_level uuid[] := array[p_memory_id];
  v_via   uuid[];
  v_depth int := 0;
begin
  while p_max_depth is null or v_depth < p_max_depth loop
    v_depth := v_depth + 1;
    select array_agg(n.from_memory_id), array_agg(n.to_memory_id) into v_level, v_via
    from (select distinct on (e.from_memory_id) e.from_memory_id, e.to_memory_id
          from public.agent_decision_edges e
          join public.agent_decision_ledger l on l.memory_id = e.from_memory_id and l.set_aside_at is null
          join public.agent_memories m
            on m.id = l.memory_id and m.workspace_id = p_workspace_id and m.memory_type = 'decision'
          where e.to_memory_id = any (v_level) and e.relation = 'depends_on' and e.from_memory_id <> all (v_seen)
          order by e.from_memory_id, e.to_memory_id) as n;
    exit when v_level is null;
    return query select u.memory_id, u.via, v_depth from unnest(v_level, v_via) as u (memory_id, via);
    v_seen := v_seen || v_level;
    exit when cardinality(v_seen) > p_enough; -- the decision itself is the one more
  end loop;
end
$$;

comment on function ranked_ledger.nearest_resting_on(text, uuid, int, int) is
  'What rests on a decision, nearest first, in whole levels until there are p_enough; each once, with what it rests on along a shortest path.';

create or replace function public.decision_impact(
  p_workspace_id text, p_memory_id uuid, p_max_depth int default null, p_limit int default 500)
returns jsonb language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
declare
  v_limit   int := coalesce(p_limit, 500);
  v_counts  jsonb;
  v_nearest jsonb;
begin
  -- guard
  perform ranked_ledger.check_workspace(p_workspace_id);
  if p_max_depth < 1 or v_limit not between 1 and 1000 then
    raise sqlstate '22023' using
      message = case when p_max_depth < 1 then 'p_max_depth is not a number of at least 1.'
                     else 'p_limit is not a number from 1 to 1000.' end,
      hint = 'Leave it out for every depth, or for 500 decisions.';
  end if;
  perform ranked_ledger.refuse_absent(p_workspace_id, array[p_memory_id]);

  -- count: all of it, whatever the depth and the limit
  select jsonb_build_object('direct', count(e.id), 'total', count(*),
                            'live', count(*) filter (where m.lifecycle_status = 'active'))
  into v_counts
  from ranked_ledger.resting_on(p_workspace_id, p_memory_id) r
  join public.agent_memories m on m.id = r.memory_id
  left join public.agent_decision_edges e
    on e.from_memory_id = r.memory_id and e.to_memory_id = p_memory_id and e.relation = 'depends_on';

  -- show
  select coalesce(jsonb_agg(jsonb_build_object(
           'memory_id', m.id, 'summary', m.summary, 'step_index', n.step_index, 'project_id', n.project_id,
           'task_id', n.task_id, 'lifecycle_status', m.lifecycle_status, 'importance', n.importance::float8,
           'depth', n.depth, 'via', n.via, 'rests_on_retired', ranked_ledger.rests_on_retired(m.id))
           order by n.depth, n.importance desc, n.step_index, m.id), '[]')
  into v_nearest
  from (select r.depth, r.via, l.memory_id, l.step_index, l.project_id, l.task_id, l.importance
        from ranked_ledger.nearest_resting_on(p_workspace_id, p_memory_id, p_max_depth, v_limit) r
        join public.agent_decision_ledger l on l.memory_id = r.memory_id
        order by r.depth, l.importance desc, l.step_index, l.memory_id limit v_limit) as n
  join public.agent_memories m on m.id = n.memory_id;

  return (select jsonb_build_object('memory_id', m.id, 'summary', m.summary, 'lifecycle_status', m.lifecycle_status)
          from public.agent_memories m where m.id = p_memory_id)
    || v_counts
    || jsonb_build_object('decisions', v_nearest, 'more', jsonb_array_length(v_nearest) < (v_counts ->> 'total')::bigint);
end
$$;

comment on function public.decision_impact(text, uuid, int, int) is
  'What rests on a decision over depends_on, directly and further on, live or not: the nearest first, and how many there are in all.';

-- decision_ledger/335_list_decisions.sql ----------------------------------------------------------------------------

-- A page of decisions, ordered by step, then memory id. The cursor names the last row of the page, so that decisions that
-- are written between two pages neither repeat a row nor hide one.

create or replace function ranked_ledger.check_page(p_lifecycle text[], p_after jsonb, p_limit int)
returns void language plpgsql immutable
set search_path = public, extensions, pg_temp
as $$
declare
  v_problem text := case
    when p_limit is null or p_limit not between 1 and 500 then 'p_limit is not a number from 1 to 500.'
    when cardinality(p_lifecycle) = 0 then 'p_lifecycle is empty: leave it out for every lifecycle.'
    when array_ndims(p_lifecycle) > 1 or array_position(p_lifecycle, null) is not null
         or not p_lifecycle <@ array['active', 'stale', 'superseded', 'disputed', 'rejected']
      then 'p_lifecycle names a status that is not one of active, stale, superseded, disputed, rejected.'
    when p_after is not null and not case
           when jsonb_typeof(p_after) = 'object' and jsonb_typeof(p_after -> 'step_index') = 'number'
             then (p_after ->> 'step_index')::numeric between 0 and 2147483647
                  and (p_after ->> 'step_index')::numeric = trunc((p_after ->> 'step_index')::numeric)
                  and coalesce(p_after ->> 'memory_id' ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$', false)
           else false end
      then 'p_after is not a cursor: it takes the "next" of the page before.'
  end;
begin
  if v_problem is not null then
    raise sqlstate '22023' using message = v_problem, hint = 'docs/sql-api.md describes list_decisions.';
  end if;
end
$$;

comment on function ranked_ledger.check_page(text[], jsonb, int) is 'Refuses (22023) a limit, a lifecycle or a cursor that cannot be meant.';

create or replace function public.list_decisions(
  p_workspace_id text, p_project_id text default null, p_task_id text default null, p_lifecycle text[] default null,
  p_pinned boolean default null, p_newest_first boolean default true, p_after jsonb default null,
  p_limit int default 50)
returns jsonb language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
declare
  v_newest_first boolean := coalesce(p_newest_first, true);
  v_step         int;
  v_memory_id    uuid;
  v_found        uuid[];
  v_page         jsonb;
begin
  -- guard
  perform ranked_ledger.check_workspace(p_workspace_id);
  perform ranked_ledger.check_page(p_lifecycle, p_after, p_limit);
  v_step := (p_after ->> 'step_index')::numeric::int;
  v_memory_id := (p_after ->> 'memory_id')::uuid;

  -- find: one row more than the page says whether there is a next one; only the direction is not a parameter
  execute format($query$
    select array_agg(f.memory_id order by f.position)
    from (
      select l.memory_id, row_number() over (order by l.step_index %1$s, l.memory_id) as position
      from public.agent_decision_ledger l
      join public.agent_memories m on m.id = l.memory_id and m.memory_type = 'decision' and m.workspace_id = $1
      where l.workspace_id = $1 and l.set_aside_at is null
        and ($2 is null or l.project_id = $2) and ($3 is null or l.task_id = $3)
        and ($2 is null or $3 is null or l.stream_id = ranked_ledger.stream_id($1, $2, $3)) -- a stream has an index
        and ($4 is null or m.lifecycle_status = any ($4)) and ($5 is null or l.pinned = $5)
        and ($6 is null or (l.step_index %2$s= $6 and (l.step_index %2$s $6 or l.memory_id > $7)))
      order by l.step_index %1$s, l.memory_id limit $8) as f
    $query$, case when v_newest_first then 'desc' else 'asc' end, case when v_newest_first then '<' else '>' end)
  into v_found
  using p_workspace_id, p_project_id, p_task_id, p_lifecycle, p_pinned, v_step, v_memory_id, p_limit + 1;

  -- answer
  v_page := ranked_ledger.decisions_json(p_workspace_id, v_found[:p_limit]);
  return jsonb_build_object('decisions', v_page, 'next', case when cardinality(v_found) > p_limit then
    jsonb_build_object('step_index', v_page -> -1 -> 'step_index', 'memory_id', v_page -> -1 -> 'memory_id') end);
end
$$;

comment on function public.list_decisions(text, text, text, text[], boolean, boolean, jsonb, int) is
  'A page of the decisions of a workspace, newest step first unless asked otherwise: {"decisions": [...], "next": cursor or null}.';

-- decision_ledger/340_link_decisions.sql ----------------------------------------------------------------------------

create or replace function ranked_ledger.check_link(p_workspace_id text, p_from uuid, p_to uuid, p_relation text)
returns void language plpgsql immutable
set search_path = public, extensions, pg_temp
as $$
begin
  perform ranked_ledger.check_workspace(p_workspace_id);
  if p_relation is null or p_relation not in ('depends_on', 'informs', 'blocks') then
    raise sqlstate '22023' using
      message = 'p_relation is not one of depends_on, informs, blocks.',
      hint = 'To replace a decision call supersede_decision.';
  elsif p_from = p_to then
    raise sqlstate 'RL461' using
      message = 'A decision cannot be linked to itself.',
      detail = format('%s -> %s', p_from, p_to),
      hint = 'Name two different decisions.';
  end if;
end
$$;

comment on function ranked_ledger.check_link(text, uuid, uuid, text) is
  'Refuses an unknown relation (22023) and a link of a decision to itself (RL461).';

create or replace function public.link_decisions(
  p_workspace_id text, p_from uuid, p_to uuid, p_relation text default 'depends_on', p_metadata jsonb default null)
returns jsonb language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_created boolean := false;
begin
  -- guard
  perform ranked_ledger.check_link(p_workspace_id, p_from, p_to, p_relation);
  if jsonb_typeof(p_metadata) not in ('object', 'null') or octet_length(p_metadata::text) > 262144 then
    raise sqlstate '22023' using
      message = 'p_metadata is not an object of at most 262144 bytes.',
      hint = 'Leave it out, or send {"name": value}.';
  end if;

  -- lock
  perform ranked_ledger.hold_decisions(p_workspace_id, array[p_from, p_to]);

  -- mutate
  if not exists (select from public.agent_decision_edges e
                 where e.from_memory_id = p_from and e.to_memory_id = p_to and e.relation = p_relation) then
    insert into public.agent_decision_edges (from_memory_id, to_memory_id, relation, metadata)
    values (p_from, p_to, p_relation, coalesce(nullif(p_metadata, 'null'), '{}'))
    on conflict do nothing;
    v_created := found;
  end if;
  if v_created then
    perform ranked_ledger.note_edit(p_workspace_id, p_from, jsonb_build_object(
      'kind', 'decision_linked', 'to_memory_id', p_to, 'relation', p_relation));
  end if;
  return jsonb_build_object(
    'from_memory_id', p_from, 'to_memory_id', p_to, 'relation', p_relation, 'created', v_created);
end
$$;

comment on function public.link_decisions(text, uuid, uuid, text, jsonb) is
  'Says that one decision depends on, informs or blocks another of the same workspace. A repeat changes nothing, its metadata included.';

create or replace function public.unlink_decisions(
  p_workspace_id text, p_from uuid, p_to uuid, p_relation text default 'depends_on')
returns jsonb language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_removed boolean;
begin
  perform ranked_ledger.check_link(p_workspace_id, p_from, p_to, p_relation);
  perform ranked_ledger.hold_decisions(p_workspace_id, array[p_from, p_to]);
  delete from public.agent_decision_edges e
  where e.from_memory_id = p_from and e.to_memory_id = p_to and e.relation = p_relation;
  v_removed := found;
  if v_removed then
    perform ranked_ledger.note_edit(p_workspace_id, p_from, jsonb_build_object(
      'kind', 'decision_unlinked', 'to_memory_id', p_to, 'relation', p_relation));
  end if;
  return jsonb_build_object(
    'from_memory_id', p_from, 'to_memory_id', p_to, 'relation', p_relation, 'removed', v_removed);
end
$$;

comment on function public.unlink_decisions(text, uuid, uuid, text) is
  'Takes an edge back. Answers removed false where there was none.';

-- decision_ledger/350_supersede_decision.sql ------------------------------------------------------------------------

-- Supersession changes one shape that several rows make up: one lock a workspace, taken before the rows, keeps two halves
-- of a loop from being added at once.

create or replace function ranked_ledger.lock_supersession(p_workspace_id text)
returns void language plpgsql
set search_path = public, extensions, pg_temp
as $$
begin
  perform pg_advisory_xact_lock(hashtextextended('ranked_ledger.supersession ' || p_workspace_id, 0));
end
$$;

comment on function ranked_ledger.lock_supersession(text) is 'Held until the commit by whoever adds or removes a supersession of the workspace.';

-- Breadth first, every memory visited once: a shortest path, at a cost that loops and diamonds do not multiply.
create or replace function ranked_ledger.supersession_path(p_from uuid, p_to uuid)
returns uuid[] language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
declare
  v_seen     uuid[] := array[p_from];
  v_parents  uuid[] := array[null::uuid];
  v_frontier uuid[] := array[p_from];
  v_next_by  uuid[];
  v_path     uuid[];
  v_step     uuid := p_to;
begin
  while not p_to = any (v_seen) loop
    select array_agg(n.to_memory_id), array_agg(n.from_memory_id) into v_frontier, v_next_by
    from (select distinct on (r.to_memory_id) r.to_memory_id, r.from_memory_id
          from public.agent_memory_relations r
          where r.from_memory_id = any (v_frontier) and r.relation = 'supersedes' and r.to_memory_id <> all (v_seen)
          order by r.to_memory_id, r.from_memory_id) as n;
    if v_frontier is null then
      return null;
    end if;
    v_seen := v_seen || v_frontier;
    v_parents := v_parents || v_next_by;
  end loop;
  while v_step is not null loop
    v_path := v_step || v_path;
    v_step := v_parents[array_position(v_seen, v_step)];
  end loop;
  return v_path;
end
$$;

comment on function ranked_ledger.supersession_path(uuid, uuid) is
  'A shortest way over supersedes from one decision to another, both included; null where there is none.';

create or replace function ranked_ledger.note_transition(p_memory_id uuid, p_reason text, p_actor text)
returns void language plpgsql
set search_path = public, extensions, pg_temp
as $$
begin
  update ranked_ledger.lifecycle_transitions t set reason = p_reason, actor = p_actor
  where t.id = (select max(x.id) from ranked_ledger.lifecycle_transitions x
                where x.memory_id = p_memory_id and x.changed_at = now()); -- an older one keeps its own reason
end
$$;

comment on function ranked_ledger.note_transition(uuid, text, text) is
  'Reason and actor of the transition that a trigger has just written.';

create or replace function ranked_ledger.check_reason(p_reason text, p_actor text)
returns void language plpgsql immutable
set search_path = public, extensions, pg_temp
as $$
begin
  if octet_length(p_reason) > 262144 or octet_length(p_actor) > 1000 then
    raise sqlstate '22023' using
      message = 'p_reason is longer than 262144 bytes, or p_actor than 1000.',
      hint = 'Say it in fewer words.';
  end if;
end
$$;

comment on function ranked_ledger.check_reason(text, text) is 'Refuses (22023) a reason or an actor that is too long to keep.';

create or replace function ranked_ledger.refuse_supersession_loop(p_old uuid, p_new uuid)
returns void language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
declare
  v_path uuid[];
begin
  -- asked from the new decision, which little has replaced: down from the old one, a chain of 5,000 took seven seconds
  if p_old = p_new or exists (select from ranked_ledger.superseded_by(p_new) s where s.memory_id = p_old) then
    v_path := p_new || ranked_ledger.supersession_path(p_old, p_new);
    raise sqlstate 'RL461' using
      message = case when p_old = p_new then 'A decision cannot supersede itself.'
                     else 'The supersession would close a loop: the old decision supersedes the new one already.' end,
      detail = array_to_string(v_path, ' -> '),
      hint = 'Record a new decision that replaces both, or restore one of them with set_decision_lifecycle.';
  end if;
end
$$;

comment on function ranked_ledger.refuse_supersession_loop(uuid, uuid) is
  'Refuses (RL461, with the path) that a decision supersedes itself, also by way of others.';

create or replace function ranked_ledger.check_supersession(p_action text)
returns void language plpgsql immutable
set search_path = public, extensions, pg_temp
as $$
begin
  if p_action not in ('supersede', 'merge') then
    raise sqlstate '22023' using
      message = 'p_action is not one of supersede, merge.',
      hint = 'Leave it out to replace the old decision; merge says that it went into the new one.';
  end if;
end
$$;

comment on function ranked_ledger.check_supersession(text) is 'Refuses (22023) a way of replacing a decision that there is not.';

-- A host may lack the unique constraint, which is its own: looked for first, under the lock that every writer of ours holds.
create or replace function ranked_ledger.relate(p_from uuid, p_to uuid, p_relation text)
returns boolean language plpgsql
set search_path = public, extensions, pg_temp
as $$
begin
  if exists (select from public.agent_memory_relations r
             where r.from_memory_id = p_from and r.to_memory_id = p_to and r.relation = p_relation) then
    return false;
  end if;
  insert into public.agent_memory_relations (from_memory_id, to_memory_id, relation)
  values (p_from, p_to, p_relation) on conflict do nothing;
  return found;
end
$$;

comment on function ranked_ledger.relate(uuid, uuid, text) is 'Says a relation of two memories. False where it was said already.';

create or replace function ranked_ledger.note_supersession(
  p_before public.agent_memories, p_new uuid, p_action text, p_reason text, p_actor text)
returns void language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_merges boolean := p_action = 'merge';
begin
  insert into public.agent_memory_review_actions (memory_id, action, actor_label, notes, before, after)
  values (p_before.id, p_action, p_actor, p_reason,
          jsonb_build_object('lifecycle_status', p_before.lifecycle_status)
          || case when v_merges then jsonb_build_object('review_status', p_before.review_status) else '{}' end,
          jsonb_build_object('lifecycle_status', 'superseded', 'superseded_by', p_new)
          || case when v_merges then jsonb_build_object('review_status', 'merged') else '{}' end);
  -- ids only: the event outlives the decision
  insert into public.agent_memory_audit_events (event_type, workspace_id, project_id, memory_id, actor_label, payload)
  values ('memory_superseded', p_before.workspace_id, p_before.project_id, p_before.id, p_actor,
          jsonb_build_object('kind', p_action, 'superseded_by', p_new));
end
$$;

comment on function ranked_ledger.note_supersession(public.agent_memories, uuid, text, text, text) is
  'Review action and audit event of a decision that was superseded or merged. A merge notes the review status that it covers.';

-- An overload that stays makes PostgREST answer 300.
do $do$
begin
  if to_regprocedure('public.supersede_decision(text, uuid, uuid, text, text)') is not null then
    execute 'drop function public.supersede_decision(text, uuid, uuid, text, text)';
  end if;
end
$do$;

-- A merge is a supersession that says one thing more, so that whoever follows supersession need not know of it.
create or replace function public.supersede_decision(
  p_workspace_id text, p_old uuid, p_new uuid, p_reason text default null, p_actor text default null,
  p_action text default 'supersede')
returns jsonb language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_action  text := coalesce(p_action, 'supersede');
  v_merges  boolean := v_action = 'merge';
  v_before  public.agent_memories;
  v_linked  boolean;
  v_stood   boolean; -- in lifecycle and review, whatever the relations say
begin
  -- guard
  perform ranked_ledger.check_workspace(p_workspace_id);
  perform ranked_ledger.check_reason(p_reason, p_actor);
  perform ranked_ledger.check_supersession(v_action);

  -- lock
  perform ranked_ledger.lock_supersession(p_workspace_id);
  perform ranked_ledger.lock_decisions(p_workspace_id, array[p_old, p_new]);
  perform ranked_ledger.refuse_supersession_loop(p_old, p_new);
  select * into strict v_before from public.agent_memories m where m.id = p_old;
  v_stood := v_before.lifecycle_status = 'superseded' and (not v_merges or v_before.review_status = 'merged');

  -- mutate
  v_linked := ranked_ledger.relate(p_new, p_old, 'supersedes');
  if v_merges then
    v_linked := ranked_ledger.relate(p_old, p_new, 'merged_into') or v_linked;
  end if;
  if not v_stood then
    update public.agent_memories m
    set lifecycle_status = 'superseded', review_status = case when v_merges then 'merged' else m.review_status end
    where m.id = p_old;
  end if;
  if v_before.lifecycle_status <> 'superseded' then
    perform ranked_ledger.note_transition(p_old, p_reason, p_actor);
  end if;
  if v_linked or not v_stood then
    perform ranked_ledger.note_supersession(v_before, p_new, v_action, p_reason, p_actor);
  end if;

  -- answer
  return jsonb_build_object('old', ranked_ledger.decision_json(p_workspace_id, p_old),
    'new', ranked_ledger.decision_json(p_workspace_id, p_new), 'changed', v_linked or not v_stood);
end
$$;

comment on function public.supersede_decision(text, uuid, uuid, text, text, text) is
  'The new decision replaces the old one, which with p_action merge went into it: relations, lifecycle, review and audit event in one transaction. Answers changed false where it stood already.';

-- decision_ledger/355_set_decision_lifecycle.sql --------------------------------------------------------------------

-- The reversible way: rejected, disputed, stale, and back to active.

create or replace function ranked_ledger.check_lifecycle(p_lifecycle text)
returns void language plpgsql immutable
set search_path = public, extensions, pg_temp
as $$
begin
  if p_lifecycle is null or p_lifecycle not in ('active', 'stale', 'disputed', 'rejected') then
    raise sqlstate '22023' using
      message = 'p_lifecycle is not one of active, stale, disputed, rejected.',
      hint = case when p_lifecycle = 'superseded'
                  then 'A decision is superseded by another one: call supersede_decision.'
                  else 'active restores a decision; the others retire it.' end;
  end if;
end
$$;

comment on function ranked_ledger.check_lifecycle(text) is 'Refuses (22023) a lifecycle that is not set by hand.';

-- A person's review before the merge is worth as much as it was. Where nothing says what it was, nobody has reviewed it.
create or replace function ranked_ledger.review_status_before_merge(p_memory_id uuid)
returns text language sql stable
set search_path = public, extensions, pg_temp
as $$
  select coalesce((
    select a.before ->> 'review_status' from public.agent_memory_review_actions a
    where a.memory_id = p_memory_id and a.action = 'merge'
      -- not merged: it may have been merged into a second one; nothing else that the host's column would not take
      and a.before ->> 'review_status' in ('pending', 'confirmed', 'evidence_only', 'restricted', 'rejected', 'stale')
    order by a.created_at desc, a.id limit 1), 'pending')
$$;

comment on function ranked_ledger.review_status_before_merge(uuid) is
  'The review status that the newest merge covered, by its review action; pending where none is noted.';

create or replace function ranked_ledger.take_back_supersessions(p_before public.agent_memories)
returns jsonb language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_by   uuid[];
  v_into uuid[];
begin
  with gone as (
    delete from public.agent_memory_relations r
    where (r.to_memory_id = p_before.id and r.relation = 'supersedes')
       or (r.from_memory_id = p_before.id and r.relation = 'merged_into')
    returning r.from_memory_id, r.to_memory_id, r.relation)
  select array_agg(g.from_memory_id order by g.from_memory_id) filter (where g.relation = 'supersedes'),
         array_agg(g.to_memory_id order by g.to_memory_id) filter (where g.relation = 'merged_into')
  into v_by, v_into from gone g;
  return jsonb_strip_nulls(jsonb_build_object(
    'no_longer_superseded_by', v_by, 'no_longer_merged_into', v_into,
    -- one that was reviewed since keeps that review
    'review_status', case when p_before.review_status = 'merged'
                          then ranked_ledger.review_status_before_merge(p_before.id) end));
end
$$;

comment on function ranked_ledger.take_back_supersessions(public.agent_memories) is
  'Removes the relations by which a decision was replaced or merged. Answers what is undone, with the review status that comes back where it was merged.';

do $do$
begin
  if to_regprocedure('ranked_ledger.note_lifecycle_change(public.agent_memories, text, uuid[], text, text)') is not null then
    execute 'drop function ranked_ledger.note_lifecycle_change(public.agent_memories, text, uuid[], text, text)';
  end if;
end
$do$;

create or replace function ranked_ledger.note_lifecycle_change(
  p_before public.agent_memories, p_lifecycle text, p_undone jsonb, p_reason text, p_actor text)
returns void language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_action text := case p_lifecycle when 'rejected' then 'reject' when 'disputed' then 'dispute'
                                    when 'stale' then 'mark_stale' else 'edit' end;
  v_kind   text := case v_action when 'edit' then 'restore' else v_action end;
begin
  perform ranked_ledger.note_transition(p_before.id, p_reason, p_actor);
  insert into public.agent_memory_review_actions (memory_id, action, actor_label, notes, before, after)
  values (p_before.id, v_action, p_actor, p_reason,
          jsonb_build_object('lifecycle_status', p_before.lifecycle_status)
          || case when p_undone ? 'review_status' then jsonb_build_object('review_status', p_before.review_status) else '{}' end,
          jsonb_build_object('kind', v_kind, 'lifecycle_status', p_lifecycle) || p_undone);
  -- ids only: the event outlives the decision
  insert into public.agent_memory_audit_events (event_type, workspace_id, project_id, memory_id, actor_label, payload)
  values (case p_lifecycle when 'rejected' then 'memory_rejected' when 'disputed' then 'memory_disputed'
                           else 'memory_edited' end,
          p_before.workspace_id, p_before.project_id, p_before.id, p_actor,
          jsonb_build_object('kind', v_kind, 'lifecycle_before', p_before.lifecycle_status));
end
$$;

comment on function ranked_ledger.note_lifecycle_change(public.agent_memories, text, jsonb, text, text) is
  'Transition, review action and audit event of one change; the host''s lists are closed, so a restoration is an edit of that kind.';

create or replace function public.set_decision_lifecycle(
  p_workspace_id text, p_memory_id uuid, p_lifecycle text, p_reason text default null, p_actor text default null)
returns jsonb language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_before  public.agent_memories;
  v_undone  jsonb := '{}';
  v_changed boolean;
begin
  -- guard
  perform ranked_ledger.check_workspace(p_workspace_id);
  perform ranked_ledger.check_lifecycle(p_lifecycle);
  perform ranked_ledger.check_reason(p_reason, p_actor);

  -- lock
  if p_lifecycle = 'active' then
    perform ranked_ledger.lock_supersession(p_workspace_id);
  end if;
  perform ranked_ledger.lock_decisions(p_workspace_id, array[p_memory_id]);
  select * into strict v_before from public.agent_memories m where m.id = p_memory_id;
  v_changed := v_before.lifecycle_status <> p_lifecycle;

  -- mutate
  if v_changed then
    if p_lifecycle = 'active' then
      v_undone := ranked_ledger.take_back_supersessions(v_before);
    end if;
    update public.agent_memories m
    set lifecycle_status = p_lifecycle, review_status = coalesce(v_undone ->> 'review_status', m.review_status)
    where m.id = p_memory_id;
    perform ranked_ledger.note_lifecycle_change(v_before, p_lifecycle, v_undone, p_reason, p_actor);
  end if;
  return ranked_ledger.decision_json(p_workspace_id, p_memory_id) || jsonb_build_object('changed', v_changed);
end
$$;

comment on function public.set_decision_lifecycle(text, uuid, text, text, text) is
  'Rejects, disputes, marks stale or restores a decision. Restoring takes back the supersessions that point at it and what a merge added; the review action names them.';

-- decision_ledger/360_edit_decision.sql -----------------------------------------------------------------------------

-- Importance and pin: one value of the ledger row each, with an audit event where it changed.

create or replace function ranked_ledger.note_edit(p_workspace_id text, p_memory_id uuid, p_payload jsonb)
returns void language plpgsql
set search_path = public, extensions, pg_temp
as $$
begin
  insert into public.agent_memory_audit_events (event_type, workspace_id, project_id, memory_id, payload)
  select 'memory_edited', p_workspace_id, m.project_id, m.id, p_payload
  from public.agent_memories m where m.id = p_memory_id;
end
$$;

comment on function ranked_ledger.note_edit(text, uuid, jsonb) is 'The audit event of an edit; the payload names its kind and holds none of the decision''s words.';

create or replace function public.set_decision_importance(p_workspace_id text, p_memory_id uuid, p_importance float8)
returns jsonb language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_before  numeric;
  v_changed boolean;
begin
  -- guard
  perform ranked_ledger.check_workspace(p_workspace_id);
  if p_importance is null or p_importance not between 0 and 1 then -- NaN is greater than 1
    raise sqlstate '22023' using
      message = 'p_importance is not a number from 0 to 1.',
      hint = '0 is of no importance, 0.5 the usual, 1 the greatest; it is kept to two digits.';
  end if;

  -- lock
  perform ranked_ledger.lock_decisions(p_workspace_id, array[p_memory_id]);
  select l.importance into strict v_before
  from public.agent_decision_ledger l where l.memory_id = p_memory_id for no key update;

  -- mutate
  update public.agent_decision_ledger l set importance = p_importance::numeric(3, 2), updated_at = now()
  where l.memory_id = p_memory_id and l.importance <> p_importance::numeric(3, 2);
  v_changed := found;
  if v_changed then
    perform ranked_ledger.note_edit(p_workspace_id, p_memory_id, jsonb_build_object(
      'kind', 'decision_importance', 'before', v_before, 'after', p_importance::numeric(3, 2)));
  end if;
  return ranked_ledger.decision_json(p_workspace_id, p_memory_id) || jsonb_build_object('changed', v_changed);
end
$$;

comment on function public.set_decision_importance(text, uuid, float8) is
  'How much a decision matters, in [0,1], kept to two digits.';

create or replace function public.pin_decision(p_workspace_id text, p_memory_id uuid, p_pinned boolean default true)
returns jsonb language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_pinned  boolean := coalesce(p_pinned, true);
  v_changed boolean;
begin
  perform ranked_ledger.check_workspace(p_workspace_id);
  perform ranked_ledger.lock_decisions(p_workspace_id, array[p_memory_id]);
  update public.agent_decision_ledger l set pinned = v_pinned, updated_at = now()
  where l.memory_id = p_memory_id and l.pinned <> v_pinned;
  v_changed := found;
  if v_changed then
    perform ranked_ledger.note_edit(p_workspace_id, p_memory_id,
      jsonb_build_object('kind', case when v_pinned then 'decision_pinned' else 'decision_unpinned' end));
  end if;
  return ranked_ledger.decision_json(p_workspace_id, p_memory_id) || jsonb_build_object('changed', v_changed);
end
$$;

comment on function public.pin_decision(text, uuid, boolean) is
  'A pinned decision comes first in every recall that it is a candidate of. p_pinned false takes the pin out.';

-- decision_ledger/365_forget_decision.sql ---------------------------------------------------------------------------

-- Forgetting leaves ids, times and numbers, none of the decision's words. The memory's row is locked first, then what
-- hangs on it, so that it waits for a record or a link that rests on the decision, and never the other way round.

create or replace function ranked_ledger.forgotten_json(p_workspace_id text, p_memory_id uuid, p_already boolean)
returns jsonb language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
begin
  return (
    select jsonb_build_object('memory_id', f.memory_id, 'forgotten_at', f.forgotten_at, 'already', p_already,
                              'thought_deleted', f.thought_deleted, 'dependents', to_jsonb(f.dependents),
                              'left_superseded', to_jsonb(f.left_superseded))
    from ranked_ledger.forgotten_decisions f where f.memory_id = p_memory_id and f.workspace_id = p_workspace_id);
end
$$;

comment on function ranked_ledger.forgotten_json(text, uuid, boolean) is
  'The answer about a decision of the workspace that was forgotten; null where none was.';

create or replace function ranked_ledger.drop_lonely_thought(p_thought_id uuid)
returns boolean language plpgsql
set search_path = public, extensions, pg_temp
as $$
begin
  -- the lock waits for a writer who is just pointing a memory at it; the next statement sees that memory
  perform 1 from public.thoughts t where t.id = p_thought_id for update;
  delete from public.thoughts t
  where t.id = p_thought_id and not exists (select from public.agent_memories m where m.thought_id = t.id);
  return found;
end
$$;

comment on function ranked_ledger.drop_lonely_thought(uuid) is 'Deletes a thought that no memory points to. Returns whether it did.';

create or replace function public.forget_decision(p_workspace_id text, p_memory_id uuid)
returns jsonb language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_memory          public.agent_memories;
  v_dependents      uuid[];
  v_superseded      uuid[];
  v_thought_deleted boolean := false;
  v_answer          jsonb;
begin
  -- guard
  perform ranked_ledger.check_workspace(p_workspace_id);
  if p_memory_id is not null then
    select * into v_memory from public.agent_memories m
    where m.id = p_memory_id and m.workspace_id = p_workspace_id and m.memory_type = 'decision' for update;
    v_answer := ranked_ledger.forgotten_json(p_workspace_id, p_memory_id, true);
  end if;
  if v_memory.id is null then -- one that was never enrolled can be forgotten
    if v_answer is null then
      perform ranked_ledger.refuse_absent(p_workspace_id, array[p_memory_id]);
    end if;
    return v_answer;
  end if;

  v_superseded := array(
    select r.to_memory_id from public.agent_memory_relations r
    join public.agent_memories m
      on m.id = r.to_memory_id and m.workspace_id = p_workspace_id and m.lifecycle_status = 'superseded'
    where r.from_memory_id = p_memory_id and r.relation = 'supersedes' order by r.to_memory_id);

  -- mutate: the memory takes its ledger row, edges, relations, reviews, recall items and history with it
  delete from public.agent_memories m where m.id = p_memory_id;
  if v_memory.thought_id is not null then
    v_thought_deleted := ranked_ledger.drop_lonely_thought(v_memory.thought_id);
  end if;
  delete from ranked_ledger.enrolment_failures f where f.memory_id = p_memory_id; -- a reason may quote the text
  -- a digest of its words would tell a guess at them; the key answers "gone" without it
  update ranked_ledger.idempotency_keys k set digest = ''
  where k.workspace_id = p_workspace_id and p_memory_id = any (k.memory_ids);
  select coalesce(array_agg(distinct g.memory_id), '{}') into v_dependents
  from ranked_ledger.lost_grounds g where g.lost_memory_id = p_memory_id;
  -- what it had replaced stays superseded: that nothing replaces it now is for the caller to judge
  v_superseded := array(select u.memory_id from unnest(v_superseded) as u (memory_id)
                        where ranked_ledger.successor(u.memory_id) is null);
  insert into ranked_ledger.forgotten_decisions (memory_id, workspace_id, thought_deleted, dependents, left_superseded)
  values (p_memory_id, p_workspace_id, v_thought_deleted, v_dependents, v_superseded)
  on conflict (memory_id) do update
  set workspace_id = excluded.workspace_id, thought_deleted = excluded.thought_deleted,
      dependents = excluded.dependents, left_superseded = excluded.left_superseded, forgotten_at = excluded.forgotten_at;
  insert into public.agent_memory_audit_events (event_type, workspace_id, project_id, payload)
  values ('memory_edited', p_workspace_id, v_memory.project_id, jsonb_build_object(
    'kind', 'decision_forgotten', 'memory_id', p_memory_id, 'thought_id', v_memory.thought_id,
    'thought_deleted', v_thought_deleted, 'dependents', to_jsonb(v_dependents)));

  -- answer
  return ranked_ledger.forgotten_json(p_workspace_id, p_memory_id, false);
end
$$;

comment on function public.forget_decision(text, uuid) is
  'Deletes a decision for good: ledger row, memory and, where no other memory points to it, the thought. What rested on it keeps a mark. A repeat answers the same.';

-- decision_ledger/370_mark_recall_usage.sql -------------------------------------------------------------------------

-- Usage is marked once per trace and decision, however often it is sent: the first word counts.

create or replace function ranked_ledger.ignored_reasons(p_ignored jsonb)
returns table (memory_id uuid, reason text) language plpgsql immutable
set search_path = public, extensions, pg_temp
as $$
begin
  if jsonb_typeof(p_ignored) not in ('array', 'null') then
    raise sqlstate '22023' using
      message = 'p_ignored is not an array of {"memory_id", "reason"}.',
      hint = 'Send [{"memory_id": "...", "reason": "..."}]; the reason may be left out.';
  end if;
  if exists (
    select from jsonb_array_elements(case when jsonb_typeof(p_ignored) = 'array' then p_ignored else '[]' end) as i
    where not case when jsonb_typeof(i.value) = 'object'
                   then coalesce(i.value ->> 'memory_id' ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$', false)
                        and coalesce(jsonb_typeof(i.value -> 'reason'), 'null') in ('string', 'null')
                        and coalesce(octet_length(i.value ->> 'reason'), 0) <= 2000
                   else false end) then
    raise sqlstate '22023' using
      message = 'An element of p_ignored is not {"memory_id", "reason"} with a reason of at most 2000 bytes.',
      hint = 'Send [{"memory_id": "...", "reason": "..."}]; the reason may be left out.';
  end if;
  return query
    select distinct on (r.id) r.id, r.reason
    from (select (i.value ->> 'memory_id')::uuid as id, i.value ->> 'reason' as reason, i.ordinality
          from jsonb_array_elements(case when jsonb_typeof(p_ignored) = 'array' then p_ignored else '[]' end)
               with ordinality as i) as r
    order by r.id, r.ordinality;
end
$$;

comment on function ranked_ledger.ignored_reasons(jsonb) is
  'Which decisions were ignored and why, each once. Refuses (22023) what is not a list of them.';

-- A host may have stored something that is no object, which cannot take the mark: it is kept beside it.
create or replace function ranked_ledger.with_usage_counted(p_snapshot jsonb)
returns jsonb language sql immutable parallel safe
return case coalesce(jsonb_typeof(p_snapshot), 'null') when 'object' then p_snapshot when 'null' then '{}'
            else jsonb_build_object('snapshot', p_snapshot) end || '{"usage_counted": true}';

comment on function ranked_ledger.with_usage_counted(jsonb) is
  'An item''s snapshot with the mark that its use was counted, which is once for ever, whoever marks the item.';

create or replace function ranked_ledger.lock_items(p_trace_id uuid, p_memory_ids uuid[])
returns void language plpgsql
set search_path = public, extensions, pg_temp
as $$
begin
  perform 1 from public.agent_memories m
  where m.id in (select i.memory_id from public.agent_memory_recall_items i
                 where i.trace_id = p_trace_id and i.memory_id = any (p_memory_ids))
  order by m.id for key share;
  perform 1 from public.agent_memory_recall_items i
  where i.trace_id = p_trace_id and i.memory_id = any (p_memory_ids) order by i.memory_id for no key update;
end
$$;

comment on function ranked_ledger.lock_items(uuid, uuid[]) is
  'Locks the memories of a trace''s items, then the items, each in id order, as a forget comes by them.';

create or replace function ranked_ledger.mark_items(p_trace public.agent_memory_recall_traces, p_used uuid[], p_ignored jsonb)
returns table (memory_id uuid, was_used boolean) language plpgsql
set search_path = public, extensions, pg_temp
as $$
begin
  return query
    with wanted as (
      select u.id, true as used, null::text as reason from (select distinct x.id from unnest(p_used) as x (id)) as u
      union all
      select i.memory_id, false, coalesce(nullif(i.reason, ''), 'not said')
      from ranked_ledger.ignored_reasons(p_ignored) i where i.memory_id <> all (p_used)),
    marked as (
      update public.agent_memory_recall_items t
      set used = w.used, ignored_reason = w.reason,
          use_policy_snapshot = case when w.used then ranked_ledger.with_usage_counted(t.use_policy_snapshot)
                                     else t.use_policy_snapshot end
      from wanted w where t.trace_id = p_trace.id and t.memory_id = w.id and t.used is null
      returning t.memory_id, t.used),
    told as (
      insert into public.agent_memory_audit_events (event_type, workspace_id, project_id, memory_id, trace_id, payload)
      select case when k.used then 'memory_used' else 'memory_ignored' end, p_trace.workspace_id, p_trace.project_id,
             k.memory_id, p_trace.id, '{"kind": "recall_usage"}'
      from marked k)
    select k.memory_id, k.used from marked k;
end
$$;

comment on function ranked_ledger.mark_items(public.agent_memory_recall_traces, uuid[], jsonb) is
  'Marks items that were not marked before, with an audit event each, and returns those. What is named as used and as ignored was used.';

create or replace function public.mark_recall_usage(
  p_workspace_id text, p_request_id uuid, p_used uuid[] default null, p_ignored jsonb default null)
returns jsonb language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_used    uuid[];
  v_named   uuid[];
  v_unknown uuid[];
  v_trace   public.agent_memory_recall_traces;
  v_counted uuid[];
  v_marked  uuid[];
  v_ignored int;
begin
  -- guard
  perform ranked_ledger.check_workspace(p_workspace_id);
  v_used := array_remove(coalesce(p_used, '{}'), null);
  select array_agg(distinct n.id) into v_named
  from (select unnest(v_used) as id union all select i.memory_id from ranked_ledger.ignored_reasons(p_ignored) i) as n;
  if cardinality(v_named) > 1000 then
    raise sqlstate '22023' using
      message = 'p_used and p_ignored name more than 1000 decisions.',
      hint = 'A recall has 1000 items at most.';
  end if;
  select * into v_trace from public.agent_memory_recall_traces t
  where t.request_id = p_request_id and t.workspace_id = p_workspace_id for key share;
  if not found then
    raise sqlstate 'RL404' using
      message = format('There is no recall %s in this workspace.', coalesce(p_request_id::text, 'without a request id')),
      hint = 'Use the request_id that recall_decisions answered; traced says whether it left a trace.';
  end if;

  -- lock: the trace is held against pruning already
  perform ranked_ledger.lock_items(v_trace.id, v_named);
  select coalesce(array_agg(n.id order by n.id), '{}') into v_unknown from unnest(v_named) as n (id)
  where not exists (select from public.agent_memory_recall_items i where i.trace_id = v_trace.id and i.memory_id = n.id);
  v_counted := array(select i.memory_id from public.agent_memory_recall_items i
                     where i.trace_id = v_trace.id and i.use_policy_snapshot -> 'usage_counted' = 'true');

  -- mutate
  select coalesce(array_agg(k.memory_id order by k.memory_id) filter (where k.was_used), '{}'),
         count(*) filter (where not k.was_used)
  into v_marked, v_ignored from ranked_ledger.mark_items(v_trace, v_used, p_ignored) k;
  -- the recall itself was counted with its trace; a use may have been, before a host took its mark back
  perform ranked_ledger.count_recalls(array(select unnest(v_marked) except select unnest(v_counted)), 0, 1);

  -- answer
  return jsonb_build_object('used', cardinality(v_marked), 'ignored', v_ignored, 'unknown', to_jsonb(v_unknown),
    'already', coalesce(cardinality(v_named), 0) - cardinality(v_unknown) - cardinality(v_marked) - v_ignored);
end
$$;

comment on function public.mark_recall_usage(text, uuid, uuid[], jsonb) is
  'What became of a recall''s items: used, or ignored with a reason. Each item is marked once; a repeat counts as already.';

-- decision_ledger/372_count_recall_usage.sql ------------------------------------------------------------------------

-- A host marks the items of a recall in a route of its own, without a word to the ledger. Called behind that route, this
-- counts what it marked. A repeat counts nothing, so that the caller need not know what is new.

create or replace function public.count_recall_usage(p_request_id uuid)
returns int language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_trace   public.agent_memory_recall_traces;
  v_used    uuid[];
  v_counted uuid[];
begin
  -- guard: by the request id alone, for the host's route is told no workspace; nobody guesses one
  select * into v_trace from public.agent_memory_recall_traces t where t.request_id = p_request_id for key share;
  if not found then -- refused, since 0 would say that everything is counted already
    raise sqlstate 'RL404' using
      message = format('There is no recall %s.', coalesce(p_request_id::text, 'without a request id')),
      hint = 'Use the request_id of a recall that left a trace; traces may have been pruned.';
  end if;
  if coalesce(v_trace.response_policy ->> 'recall_policy', 'vector') = 'vector' then
    return 0; -- what the ledger did not find, it does not count
  end if;

  -- lock
  v_used := array(select i.memory_id from public.agent_memory_recall_items i
                  where i.trace_id = v_trace.id and i.used and i.use_policy_snapshot -> 'usage_counted' is distinct from 'true');
  perform ranked_ledger.lock_items(v_trace.id, v_used);

  -- mutate: what has no ledger row yet stays unmarked, and is counted by a call after its enrolment
  with counted as (
    update public.agent_memory_recall_items i
    set use_policy_snapshot = ranked_ledger.with_usage_counted(i.use_policy_snapshot)
    from public.agent_decision_ledger l
    where i.trace_id = v_trace.id and i.memory_id = any (v_used) and l.memory_id = i.memory_id
      and i.used and i.use_policy_snapshot -> 'usage_counted' is distinct from 'true' -- as it is under the lock
    returning i.memory_id)
  select coalesce(array_agg(c.memory_id), '{}') into v_counted from counted c;
  return ranked_ledger.count_recalls(v_counted, 0, 1);
end
$$;

comment on function public.count_recall_usage(uuid) is
  'Counts the items of a recall that a host has marked as used by itself, each once for ever. Of a trace whose policy is not the host''s own. Returns how many were counted.';

-- decision_ledger/375_recall_policy_stats.sql -----------------------------------------------------------------------

create or replace function public.recall_policy_stats(p_workspace_id text, p_since timestamptz default null)
returns jsonb language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
begin
  perform ranked_ledger.check_workspace(p_workspace_id);
  return coalesce((
    select jsonb_agg(to_jsonb(s) order by s.recall_policy)
    from (
      select coalesce(t.response_policy ->> 'recall_policy', 'vector') as recall_policy,
             count(distinct t.id) as recall_requests,
             count(i.id) as items_returned,
             (avg(i.similarity) filter (
               where coalesce(i.use_policy_snapshot ->> 'relevance_source', '') not in ('fts', 'none')))::float8 as avg_similarity,
             avg(i.ranking_score)::float8 as avg_ranking_score,
             (avg((i.used is true)::int) filter (where i.id is not null))::float8 as used_rate,
             (avg((i.ignored_reason is not null)::int) filter (where i.id is not null))::float8 as ignored_rate
      from public.agent_memory_recall_traces t
      left join public.agent_memory_recall_items i on i.trace_id = t.id and i.returned
      where t.workspace_id = p_workspace_id and (p_since is null or t.created_at >= p_since)
      group by 1) as s), '[]');
end
$$;

comment on function public.recall_policy_stats(text, timestamptz) is
  'The columns of the view agent_recall_policy_stats, of one workspace and since a time.';

-- decision_ledger/376_recall_traces.sql -----------------------------------------------------------------------------

-- What was asked, what came back and what became of it: for whoever looks at a recall again, by hand or by `eval replay`.
-- Under other weights, an item's score is that of its components as the trace kept them: no clock, no search, and nothing
-- that was not returned then.

-- Compared as a numeric: a cast of 1e-400 raises, and one value of a host must not cost the page. What a weight makes of the
-- least float8 would raise too, so that below 1e-305, where a recency of ours ends, there is none either.
create or replace function ranked_ledger.component_of(p_snapshot jsonb, p_name text)
returns float8 language sql immutable parallel safe
return case when jsonb_typeof(p_snapshot -> p_name) = 'number'
            then case when (p_snapshot ->> p_name)::numeric = 0 then 0::float8
                      when abs((p_snapshot ->> p_name)::numeric) between 1e-305 and 1e305
                      then ranked_ledger.clamp((p_snapshot ->> p_name)::float8) end end;

comment on function ranked_ledger.component_of(jsonb, text) is
  'A component of the score as a trace''s item keeps it, in [0,1]; null where there is none. A host may write what it likes there.';

create or replace function ranked_ledger.weights_again(
  p_preset text, p_w_similarity float8, p_w_importance float8, p_w_recency float8, p_w_dependency float8, p_w_summary float8)
returns jsonb language plpgsql immutable
set search_path = public, extensions, pg_temp
as $$
declare
  v_preset  record;
  v_weights jsonb;
begin
  if num_nonnulls(p_preset, p_w_similarity, p_w_importance, p_w_recency, p_w_dependency, p_w_summary) = 0 then
    return null;
  end if;
  v_preset := ranked_ledger.preset(coalesce(p_preset, 'published'));
  perform ranked_ledger.check_weight('p_w_similarity', coalesce(p_w_similarity, v_preset.w_similarity)),
          ranked_ledger.check_weight('p_w_importance', coalesce(p_w_importance, v_preset.w_importance)),
          ranked_ledger.check_weight('p_w_recency', coalesce(p_w_recency, v_preset.w_recency)),
          ranked_ledger.check_weight('p_w_dependency', coalesce(p_w_dependency, v_preset.w_dependency)),
          ranked_ledger.check_weight('p_w_summary', coalesce(p_w_summary, v_preset.w_summary));
  v_weights := jsonb_build_object(
    'similarity', coalesce(p_w_similarity, v_preset.w_similarity), 'importance', coalesce(p_w_importance, v_preset.w_importance),
    'recency', coalesce(p_w_recency, v_preset.w_recency), 'dependency', coalesce(p_w_dependency, v_preset.w_dependency),
    'summary', coalesce(p_w_summary, v_preset.w_summary), 'penalty', v_preset.penalty);
  return v_weights;
end
$$;

comment on function ranked_ledger.weights_again(text, float8, float8, float8, float8, float8) is
  'The weights by which traces are scored again: those given, the others of the preset; null where nothing is given.';

create or replace function ranked_ledger.trace_items(p_trace_id uuid, p_weights jsonb)
returns jsonb language sql stable
set search_path = public, extensions, pg_temp
as $$
  with item as (
    select i.memory_id, i.rank, i.similarity::float8, i.ranking_score::float8, i.used, i.ignored_reason,
           s.snapshot ->> 'relevance_source' as relevance_source, s.snapshot ->> 'lifecycle_status' as lifecycle_status,
           coalesce(s.snapshot -> 'pinned' = 'true', false) as pinned, s.snapshot -> 'step_index' as step_index,
           ranked_ledger.component_of(s.snapshot, 'relevance') as relevance,
           ranked_ledger.component_of(s.snapshot, 'text_relevance') as text_relevance,
           ranked_ledger.component_of(s.snapshot, 'summary_match') as summary_match,
           ranked_ledger.component_of(s.snapshot, 'importance') as importance,
           ranked_ledger.component_of(s.snapshot, 'recency') as recency,
           ranked_ledger.component_of(s.snapshot, 'dependency_boost') as dependency_boost
    from public.agent_memory_recall_items i
    cross join lateral (
      select case when jsonb_typeof(i.use_policy_snapshot) = 'object' then i.use_policy_snapshot else '{}' end as snapshot) as s
    where i.trace_id = p_trace_id and i.returned),
  scored as (
    select i.*,
           -- an item of a policy without components has no score of ours
           case when p_weights is not null and num_nulls(i.relevance, i.importance, i.recency, i.dependency_boost) = 0
                then ranked_ledger.score(
                  i.relevance, i.importance, i.recency, i.dependency_boost, (p_weights ->> 'similarity')::float8,
                  (p_weights ->> 'importance')::float8, (p_weights ->> 'recency')::float8, (p_weights ->> 'dependency')::float8,
                  coalesce(i.lifecycle_status, 'active') = 'active', coalesce(i.summary_match, 0), (p_weights ->> 'summary')::float8,
                  case when i.lifecycle_status in ('superseded', 'rejected') then 0.30 else (p_weights ->> 'penalty')::float8 end)
           end as score_again
    from item i),
  placed as (
    select s.*, case when s.score_again is not null then row_number() over (
                  order by s.score_again is null, s.pinned desc, s.score_again desc, s.rank, s.memory_id) end as rank_again
    from scored s)
  select coalesce(jsonb_agg(to_jsonb(p) order by p.rank nulls last, p.memory_id), '[]') from placed p
$$;

comment on function ranked_ledger.trace_items(uuid, jsonb) is
  'What a recall returned, by rank: each item with its components, what became of it, and its score and rank under other weights where some are given and it has components.';

create or replace function ranked_ledger.check_traces(p_after jsonb, p_limit int)
returns void language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
begin
  if p_limit is null or p_limit not between 1 and 100 then
    raise sqlstate '22023' using
      message = 'p_limit is not a number from 1 to 100.', hint = 'A trace holds up to 1000 items; ask for the next page.';
  elsif p_after is null then
    return;
  end if;
  begin
    if num_nulls((p_after ->> 'created_at')::timestamptz, (p_after ->> 'request_id')::uuid) = 0 then
      return;
    end if;
  exception when invalid_datetime_format or datetime_field_overflow or invalid_text_representation
                 or invalid_parameter_value then -- the last of a time zone that there is not
    null;
  end;
  raise sqlstate '22023' using
    message = 'p_after is not a cursor: it takes the "next" of the page before.', hint = 'docs/sql-api.md describes recall_traces.';
end
$$;

comment on function ranked_ledger.check_traces(jsonb, int) is 'Refuses (22023) a limit or a cursor that cannot be meant.';

create or replace function public.recall_traces(
  p_workspace_id text, p_since timestamptz default null, p_marked boolean default null, p_after jsonb default null,
  p_limit int default 50, p_preset text default null, p_w_similarity float8 default null, p_w_importance float8 default null,
  p_w_recency float8 default null, p_w_dependency float8 default null, p_w_summary float8 default null)
returns jsonb language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
declare
  v_weights jsonb;
  v_found   jsonb;
begin
  -- guard
  perform ranked_ledger.check_workspace(p_workspace_id);
  perform ranked_ledger.check_traces(p_after, p_limit);
  v_weights := ranked_ledger.weights_again(p_preset, p_w_similarity, p_w_importance, p_w_recency, p_w_dependency, p_w_summary);

  -- find: one more than the page says whether there is a next one
  select coalesce(jsonb_agg(f.document order by f.created_at desc, f.request_id), '[]') into v_found
  from (
    select t.created_at, t.request_id,
           jsonb_build_object(
             'request_id', t.request_id, 'query', t.query, 'created_at', t.created_at,
             'policy', coalesce(t.response_policy ->> 'recall_policy', 'vector'), 'project_id', t.project_id,
             'task_id', t.task_id, 'flow_id', t.flow_id, 'runtime_name', t.runtime_name,
             'arguments', ranked_ledger.kept_arguments(t.request_payload, t.response_policy, t.schema_version),
             'items', ranked_ledger.trace_items(t.id, v_weights)) as document
    from (
      select x.* from public.agent_memory_recall_traces x
      where x.workspace_id = p_workspace_id and (p_since is null or x.created_at >= p_since)
        and (p_marked is null or p_marked = exists (
              select from public.agent_memory_recall_items i where i.trace_id = x.id and i.used is not null))
        and (p_after is null or (x.created_at <= (p_after ->> 'created_at')::timestamptz
              and (x.created_at < (p_after ->> 'created_at')::timestamptz or x.request_id > (p_after ->> 'request_id')::uuid)))
      order by x.created_at desc, x.request_id limit p_limit + 1) as t) as f;

  -- answer
  return jsonb_build_object(
    'traces', (select coalesce(jsonb_agg(e.value order by e.ordinality), '[]')
               from jsonb_array_elements(v_found) with ordinality as e where e.ordinality <= p_limit),
    'weights', v_weights,
    'next', case when jsonb_array_length(v_found) > p_limit then
      jsonb_build_object('created_at', v_found -> (p_limit - 1) -> 'created_at',
                         'request_id', v_found -> (p_limit - 1) -> 'request_id') end);
end
$$;

comment on function public.recall_traces(
  text, timestamptz, boolean, jsonb, int, text, float8, float8, float8, float8, float8) is
  'A page of the recalls of a workspace, the newest first: {"traces": [...], "weights", "next": cursor or null}, each with what it returned and what became of it. With a preset or weights every item also has its score and rank under these.';

-- decision_ledger/380_prune_traces.sql ------------------------------------------------------------------------------

create or replace function public.prune_traces(p_workspace_id text, p_before timestamptz, p_limit int default 1000)
returns jsonb language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_deleted int;
begin
  -- guard
  perform ranked_ledger.check_workspace(p_workspace_id);
  if p_before is null or p_limit is null or p_limit not between 1 and 10000 then
    raise sqlstate '22023' using
      message = 'p_before is missing, or p_limit is not a number from 1 to 10000.',
      hint = 'Say up to when traces go, and call again while the answer says more.';
  end if;

  -- mutate: a trace that somebody is marking is left for the next call
  with old as materialized (
    select t.id from public.agent_memory_recall_traces t
    where t.workspace_id = p_workspace_id and t.created_at < p_before
    order by t.created_at, t.id limit p_limit for update skip locked)
  delete from public.agent_memory_recall_traces t using old where t.id = old.id;
  get diagnostics v_deleted = row_count;

  -- answer: a full portion, or the caller would turn round what is locked
  return jsonb_build_object('deleted', v_deleted, 'more', v_deleted = p_limit and exists (
    select from public.agent_memory_recall_traces t where t.workspace_id = p_workspace_id and t.created_at < p_before));
end
$$;

comment on function public.prune_traces(text, timestamptz, int) is
  'Deletes traces that are older than a time, oldest first, p_limit at most, with their items; counters and audit events stay.';

-- decision_ledger/382_get_workspace_settings.sql --------------------------------------------------------------------

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

-- decision_ledger/384_set_text_config.sql ---------------------------------------------------------------------------

create or replace function ranked_ledger.text_config_named(p_name text)
returns text language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
declare
  v_parts text[];
begin
  begin
    v_parts := parse_ident(p_name);
  exception when invalid_parameter_value then
    return null; -- no name at all
  end;
  return (
    select format('%I.%I', n.nspname, c.cfgname)
    from pg_ts_config c join pg_namespace n on n.oid = c.cfgnamespace
    where case cardinality(v_parts)
            when 1 then c.cfgname = v_parts[1] and pg_ts_config_is_visible(c.oid)
            when 2 then n.nspname = v_parts[1] and c.cfgname = v_parts[2]
            else false end);
end
$$;

comment on function ranked_ledger.text_config_named(text) is
  'The full name of a text search configuration, given with or without its schema; null where there is none.';

-- To read ten thousand decisions anew can take longer than the 8 s of an API call; PostgREST takes a function's own timeout for
-- its transaction, and the platform ends every call after 60 s.
create or replace function public.set_text_config(p_workspace_id text, p_text_config text default null)
returns jsonb language plpgsql
set search_path = public, extensions, pg_temp
set statement_timeout = '60s'
as $$
declare
  v_config text := ranked_ledger.text_config_named(coalesce(p_text_config, 'pg_catalog.english'));
  v_before text;
begin
  -- guard
  perform ranked_ledger.check_recording_workspace(p_workspace_id);
  if v_config is null then
    raise sqlstate '22023' using
      message = format('There is no text search configuration %s.', left(p_text_config, 100)),
      hint = (select 'These are known, as `select cfgname from pg_ts_config` lists them: '
                     || string_agg(c.cfgname, ', ' order by c.cfgname) || '.'
              from pg_ts_config c where pg_ts_config_is_visible(c.oid));
  end if;

  -- mutate: a change reads all decisions anew by its trigger
  v_before := get_workspace_settings(p_workspace_id) ->> 'text_config';
  insert into ranked_ledger.workspace_settings as s (workspace_id, text_config) values (p_workspace_id, v_config)
  on conflict (workspace_id) do update set text_config = excluded.text_config
  where s.text_config is distinct from excluded.text_config;
  if not found then
    perform ranked_ledger.read_anew(p_workspace_id); -- a decision that was written beside the change missed it
  end if;
  return get_workspace_settings(p_workspace_id) || jsonb_build_object(
    'changed', v_before is distinct from v_config,
    'read_anew', (select count(*) from public.agent_decision_ledger l
                  where l.workspace_id = p_workspace_id and l.set_aside_at is null));
end
$$;

comment on function public.set_text_config(text, text) is
  'In which text search configuration a workspace''s decisions and questions are read; null: English. Its decisions are read anew at once.';

-- decision_ledger/386_set_similarity_range.sql ----------------------------------------------------------------------

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

-- decision_ledger/388_fit_similarity_range.sql ----------------------------------------------------------------------

-- Which cosines count as 0 and as 1, from the workspace's own vectors: nobody knows by heart how a model spreads its cosines.

create or replace function ranked_ledger.cosine_spread(p_workspace_id text, p_sample int)
returns table (vectors bigint, pairs bigint, floor float8, ceiling float8) language plpgsql stable
set search_path = public, extensions, pg_temp
set enable_seqscan = off -- by the workspace's index
set plan_cache_mode = force_generic_plan
as $$
begin
  return query
  with drawn as materialized ( -- the same at every call, and spread over the ledger: row numbers in the order of their digits backwards
    select v.row_no, v.embedding from ranked_ledger.decision_vectors v
    where v.workspace_key = ranked_ledger.workspace_key(p_workspace_id) and v.embedding is not null
      and vector_dims(v.embedding) = coalesce(ranked_ledger.embedding_dimension(), vector_dims(v.embedding))
    order by reverse(v.row_no::text), v.row_no limit p_sample),
  cosine as (
    select 1 - (a.embedding <=> b.embedding) as value -- the product of directions in half precision can be above 1
    from drawn a join drawn b on b.row_no > a.row_no and vector_dims(b.embedding) = vector_dims(a.embedding))
  select (select count(*) from drawn), count(*),
         -- Questions have lower cosines than texts have among themselves, so the floor lies below what the pairs show: as far below
         -- their first percentile as their median lies above it. At the percentile itself one model had half of all at 0.
         greatest(-1, 2 * percentile_cont(0.01) within group (order by c.value) - percentile_cont(0.5) within group (order by c.value)),
         percentile_cont(0.999) within group (order by c.value)
  from cosine c;
end
$$;

comment on function ranked_ledger.cosine_spread(text, int) is
  'Floor and ceiling from the cosines between a workspace''s decisions, of the pairs of so many of them: twice the first percentile less the median, at least -1, and what 99.9 % lie below.';

create or replace function public.fit_similarity_range(p_workspace_id text, p_embedding_model text, p_sample int default 300)
returns jsonb language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_spread  record;
  v_floor   numeric;
  v_ceiling numeric;
begin
  perform ranked_ledger.check_recording_workspace(p_workspace_id);
  if coalesce(p_sample, 0) not between 10 and 2000 then
    raise sqlstate '22023' using
      message = format('p_sample is a number from 10 to 2,000; it is %s', coalesce(p_sample::text, 'null')),
      hint = 'Leave it out for 300 decisions, whose 44,850 pairs are compared.';
  end if;
  select * into v_spread from ranked_ledger.cosine_spread(p_workspace_id, p_sample);
  v_floor := round(v_spread.floor::numeric, 4);
  v_ceiling := round(v_spread.ceiling::numeric, 4);
  if v_spread.vectors < 10 or v_floor < v_ceiling is not true then
    raise sqlstate '22023' using
      message = format('%s decisions of this workspace have a vector that can be compared; 10 different ones are needed', v_spread.vectors),
      hint = 'Record decisions with embeddings first, or say the range by set_similarity_range.';
  end if;
  return set_similarity_range(p_workspace_id, p_embedding_model, v_floor::float8, v_ceiling::float8)
         || jsonb_build_object('fitted', jsonb_build_object(
              'floor', v_floor, 'ceiling', v_ceiling, 'vectors', v_spread.vectors, 'pairs', v_spread.pairs));
end
$$;

comment on function public.fit_similarity_range(text, text, int) is
  'Measures which cosines an embedding model gives to decisions of this workspace, and keeps the range: the floor is as far below the first percentile of the pairs as their median is above it, the ceiling what 99.9 % are below. 22023 with fewer than 10 vectors. Answers as set_similarity_range, and fitted: {floor, ceiling, vectors, pairs}.';

-- decision_ledger/700_public_functions.sql --------------------------------------------------------------------------

-- The RPCs of docs/sql-api.md: the list that access, upgrade and doctor share.
create or replace function ranked_ledger.public_functions()
returns text[] language sql immutable parallel safe
return array[
  'check_copies', 'count_recall_usage', 'decision_impact', 'enroll_missing_decisions', 'fit_similarity_range',
  'forget_decision', 'get_decision', 'get_workspace_settings', 'ledger_schema_version', 'ledger_status', 'link_decisions',
  'list_decisions', 'mark_recall_usage', 'match_decision_ledger', 'pin_decision', 'prune_traces', 'recall_decisions',
  'recall_policy_stats', 'recall_traces', 'record_decision', 'record_decisions', 'set_decision_importance',
  'set_decision_lifecycle', 'set_similarity_range', 'set_text_config', 'supersede_decision', 'touch_decision_recall',
  'unlink_decisions'];

comment on function ranked_ledger.public_functions() is 'Names of the functions in public that are ours.';

-- A host may have a function of one of these names with other arguments, and its rights are the host's: ours pin this path.
create or replace function ranked_ledger.our_functions()
returns setof regprocedure language sql stable
set search_path = public, extensions, pg_temp
as $$
  select p.oid::regprocedure from pg_proc p
  where p.pronamespace = 'ranked_ledger'::regnamespace
     or (p.pronamespace = 'public'::regnamespace and p.proname = any (ranked_ledger.public_functions())
         and 'search_path=public, extensions, pg_temp' = any (p.proconfig))
$$;

comment on function ranked_ledger.our_functions() is 'The functions of the ledger, in public and in ranked_ledger.';

-- decision_ledger/800_access.sql ------------------------------------------------------------------------------------

-- Who may do what, in one place. Default privileges of a project are never altered: what they gave is taken back by name.
do $do$
declare
  v_object record;
begin
  for v_object in select t.name from ranked_ledger.our_tables() as t (name) loop
    execute format('revoke all on table %s from public, anon, authenticated, service_role', v_object.name);
    execute format('grant select, insert, update, delete on table %s to service_role', v_object.name);
  end loop;
  for v_object in
    select c.oid::regclass as name from pg_class c
    where c.relnamespace = 'ranked_ledger'::regnamespace and c.relkind = 'S'
  loop
    execute format('revoke all on sequence %s from public, anon, authenticated', v_object.name);
    execute format('grant usage on sequence %s to service_role', v_object.name);
  end loop;
end
$do$;

do $do$
declare
  v_table  regclass;
  v_policy text;
begin
  for v_table in select t.name from ranked_ledger.our_tables() as t (name) loop
    for v_policy in select p.polname from pg_policy p where p.polrelid = v_table loop -- those of the published proposal too
      execute format('drop policy %I on %s', v_policy, v_table);
    end loop;
    select c.relname || '_all_service_role' into v_policy from pg_class c where c.oid = v_table;
    execute format('create policy %I on %s for all to service_role using (true) with check (true)', v_policy, v_table);
    execute format('comment on policy %I on %s is %L', v_policy, v_table, 'The service role alone reads and writes.');
  end loop;
end
$do$;

do $do$
declare
  v_function record;
begin
  for v_function in
    select f.name, p.prorettype = 'trigger'::regtype as is_trigger
    from ranked_ledger.our_functions() as f (name) join pg_proc p on p.oid = f.name
  loop
    execute format('revoke execute on function %s from public, anon, authenticated, service_role', v_function.name);
    if not v_function.is_trigger then
      execute format('grant execute on function %s to service_role', v_function.name);
    end if;
  end loop;
end
$do$;

-- decision_ledger/900_backfill.sql ----------------------------------------------------------------------------------

-- Last: what was there before. Decisions without a row, by created_at, then id; then every stream's newest step.
-- It takes a millisecond a decision, and a role's timeout is meant for requests.
select set_config('statement_timeout', '0', true);
select ranked_ledger.backfill();

-- decision_ledger/910_join_memory.sql -------------------------------------------------------------------------------

-- Where the long-term memory is installed already, it is joined to the ledger from here.
do $join$
begin
  if to_regprocedure('long_term_memory.join_ledger()') is not null then
    perform long_term_memory.join_ledger();
  end if;
end
$join$;

-- The API learns at commit what is new.
notify pgrst, 'reload schema';
