-- Ranked Ledger: long term memory
-- Built from supabase/schemas by supabase/build.py. Do not edit: edit the sources and run `make migrations`.
-- Runs once or many times, with the same result; changes no table that it did not create.

-- For this transaction only: a `set` would stay behind in a pooled session. pgvector is in one of the two.
select set_config('search_path', 'public, extensions, pg_temp', true);

-- Two pushes at once take turns; the second one finds everything done.
select pg_advisory_xact_lock(hashtextextended('ranked_ledger: migration', 0));

-- long_term_memory/000_preflight.sql --------------------------------------------------------------------------------

-- Looks before anything is written. Every stop is RL501: what was found, and what to do. Both are in the message, because
-- `supabase db push` does not show a hint. The store stands on the platform alone: neither on Open Brain nor on the ledger.
do $platform$
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
  end if;

  select string_agg(wanted, ', ' order by wanted) into v_missing
  from unnest(array['anon', 'authenticated', 'service_role']) as wanted
  where not exists (select from pg_catalog.pg_roles where rolname = wanted);
  if v_missing is not null then
    v_found := format('This database is not a Supabase project: it has no role %s.', v_missing);
    v_advice := 'Push to a Supabase project, or to the local stack that `ranked-ledger stack up` starts.';
  elsif not exists (select from pg_catalog.pg_attribute where attrelid = to_regclass('auth.users') and attname = 'id'
                    and atttypid = 'uuid'::regtype) then
    v_found := 'This database has no auth.users(id uuid): nobody could be a member of an organization.';
    v_advice := 'Push to a Supabase project, or to the local stack that `ranked-ledger stack up` starts.';
  elsif not has_table_privilege('auth.users', 'REFERENCES') then
    v_found := format('The role %I may not refer to auth.users.', current_user);
    v_advice := 'Push as postgres, the owner of the project.';
  end if;

  if v_found is not null then
    raise exception using errcode = 'RL501', message = v_found || ' ' || v_advice, hint = v_advice;
  end if;
end
$platform$;

-- A schema of this name that somebody else made is not ours to fill.
do $schema$
declare
  v_found text := 'The schema long_term_memory is here already, and is not that of Ranked Ledger.';
  v_advice text := 'Rename it, then push again.';
begin
  if exists (select from pg_catalog.pg_class c where c.relnamespace = to_regnamespace('long_term_memory'))
     and to_regclass('long_term_memory.recall_subjects') is null then
    raise exception using errcode = 'RL501', message = v_found || ' ' || v_advice, hint = v_advice;
  end if;
end
$schema$;

-- A host's own tables are referred to, and for that each needs a unique key, and we the right.
do $host_tables$
declare
  v_table text;
  v_key text;
  v_found text;
  v_advice text;
begin
  for v_table, v_key in
    select w.name, w.key
    from (values ('organizations', 'id', 'uuid'), ('agent_runs', 'run_id', 'text')) as w (name, key, kind)
    join pg_catalog.pg_class c on c.oid = to_regclass('public.' || w.name) and c.relkind in ('r', 'p')
    join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attname = w.key and a.atttypid = to_regtype(w.kind)
    where not has_table_privilege(c.oid, 'REFERENCES') or not exists (
      select from pg_catalog.pg_index i
      where i.indrelid = c.oid and i.indisunique and i.indisvalid and i.indpred is null and i.indnkeyatts = 1
        and i.indkey[0] = a.attnum)
  loop
    v_found := format('public.%I is here, and its %I cannot be referred to: it has no unique key, or %I lacks the right.',
      v_table, v_key, current_user);
    v_advice := format('Make %I its primary key, and push as its owner.', v_key);
    raise exception using errcode = 'RL501', message = v_found || ' ' || v_advice, hint = v_advice;
  end loop;
end
$host_tables$;

-- A second run replaces triggers. All locks that it needs on tables in use are taken here, all of them or none: one by one
-- they end in a deadlock beside readers and writers, and whoever comes later queues up behind a lock that is waited for.
do $lock$
declare
  v_tables text;
  v_deadline timestamptz := clock_timestamp() + interval '5 seconds';
  v_found text := 'Transactions kept the long-term memory busy for five seconds. Nothing was changed.';
  v_advice text := 'Push again when they are over: pg_stat_activity shows them.';
begin
  select string_agg(c.oid::regclass::text, ', ' order by c.oid) into v_tables
  from pg_catalog.pg_class c
  where c.relkind = 'r' and (c.relnamespace = to_regnamespace('long_term_memory') or exists (
    select from pg_catalog.pg_trigger t join pg_catalog.pg_proc p on p.oid = t.tgfoid
    where t.tgrelid = c.oid and not t.tgisinternal and p.pronamespace = to_regnamespace('long_term_memory')));
  while v_tables is not null loop
    begin
      perform set_config('lock_timeout', '200ms', true);
      execute format('lock table %s in access exclusive mode', v_tables);
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

-- long_term_memory/010_schema.sql -----------------------------------------------------------------------------------

-- The second store, in a schema that PostgREST does not expose: the RPCs in public are the only way in. People (the role
-- authenticated) come through a few of them, so they may use the schema, and nothing in it but what those call.
create schema if not exists long_term_memory;

comment on schema long_term_memory is
  'Ranked Ledger: what an agent may carry from one run into the next, attributable, reviewable, correctable, erasable. Not exposed by PostgREST.';

revoke all on schema long_term_memory from public, anon, authenticated, service_role;
grant usage on schema long_term_memory to authenticated, service_role;

create or replace function long_term_memory.has_ledger()
returns boolean language sql stable
set search_path = public, extensions, pg_temp
as $$
  select to_regclass('public.agent_decision_ledger') is not null and to_regclass('ranked_ledger.streams') is not null
$$;

comment on function long_term_memory.has_ledger() is 'Whether the decision ledger is installed in this project too.';

-- long_term_memory/020_agent_memories.sql ---------------------------------------------------------------------------

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

-- long_term_memory/030_sidecars.sql ---------------------------------------------------------------------------------

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

-- long_term_memory/040_host_tables.sql ------------------------------------------------------------------------------

-- Organizations and agent runs: a host's own tables where it has them, else ours. A host whose tables arrive later calls
-- use_host_tables() once (a second push of this migration does it too).

create or replace function long_term_memory.host_table(p_name text, p_key text, p_kind regtype)
returns regclass language sql stable
set search_path = public, extensions, pg_temp
as $$
  select c.oid::regclass
  from pg_class c
  join pg_attribute a on a.attrelid = c.oid and a.attname = p_key and a.atttypid = p_kind and not a.attisdropped
  where c.oid = to_regclass(format('public.%I', p_name)) and c.relkind in ('r', 'p')
    and exists (select from pg_index i where i.indrelid = c.oid and i.indisunique and i.indisvalid and i.indpred is null
                and i.indnkeyatts = 1 and i.indkey[0] = a.attnum)
$$;

comment on function long_term_memory.host_table(text, text, regtype) is
  'The host''s own table of this name, where it has this key and the key is unique; null where not.';

do $do$
begin
  if long_term_memory.host_table('organizations', 'id', 'uuid') is null then
    create table if not exists long_term_memory.organizations (
      id         uuid primary key default gen_random_uuid(),
      name       text,
      created_at timestamptz not null default now()
    );
    alter table long_term_memory.organizations enable row level security;
    comment on table long_term_memory.organizations is
      'Organizations, where the host has no public.organizations(id uuid) of its own.';
  end if;
  if long_term_memory.host_table('agent_runs', 'run_id', 'text') is null then
    create table if not exists long_term_memory.agent_runs (
      run_id     text primary key,
      created_at timestamptz not null default now()
    );
    alter table long_term_memory.agent_runs enable row level security;
    comment on table long_term_memory.agent_runs is
      'Agent runs, where the host has no public.agent_runs(run_id text): noted when a run first remembers something.';
  end if;
end
$do$;

-- Rows that the new table lacks: an organization has to be there, since its rows go with it; a run that is not known any
-- more may stay written down, as one that was pruned before.
create or replace function long_term_memory.refer(p_table regclass, p_column text, p_to regclass, p_key text, p_rule text)
returns boolean language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_name text := (select relname from pg_class where oid = p_table) || '_' || p_column || '_fkey';
  v_lost bigint;
begin
  if exists (select from pg_constraint where conrelid = p_table and conname = v_name and confrelid = p_to) then
    return false;
  end if;
  execute format('select count(*) from %s t where t.%I is not null and not exists (select from %s h where h.%I = t.%2$I)',
                 p_table, p_column, p_to, p_key) into v_lost;
  if v_lost > 0 and p_rule = 'cascade' then
    raise exception using errcode = 'RL501',
      message = format('%s rows of %s name an organization that %s does not have. Insert those organizations first, then call '
                       'long_term_memory.use_host_tables() again.', v_lost, p_table, p_to),
      hint = format('select distinct %I from %s', p_column, p_table);
  end if;
  execute format('alter table %s drop constraint if exists %I', p_table, v_name);
  execute format('alter table %s add constraint %I foreign key (%I) references %s (%I) on delete %s%s',
                 p_table, v_name, p_column, p_to, p_key, p_rule, case when v_lost > 0 then ' not valid' else '' end);
  return true;
end
$$;

comment on function long_term_memory.refer(regclass, text, regclass, text, text) is
  'Points a foreign key at this table, if it does not point there already. RL501 where organizations would be missing.';

create or replace function long_term_memory.use_host_tables()
returns jsonb language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_orgs    regclass := coalesce(long_term_memory.host_table('organizations', 'id', 'uuid'),
                                 to_regclass('long_term_memory.organizations'));
  v_runs    regclass := coalesce(long_term_memory.host_table('agent_runs', 'run_id', 'text'),
                                 to_regclass('long_term_memory.agent_runs'));
  v_table   regclass;
  v_changed boolean := false;
begin
  for v_table in
    select c.oid from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'org_id'
    where c.relnamespace = 'long_term_memory'::regnamespace and c.relkind = 'r' order by c.oid
  loop
    v_changed := long_term_memory.refer(v_table, 'org_id', v_orgs, 'id', 'cascade') or v_changed;
  end loop;
  v_changed := long_term_memory.refer('long_term_memory.agent_memories', 'source_run_id', v_runs, 'run_id', 'set null') or v_changed;
  execute format($f$
    create or replace function long_term_memory.org_exists(p_org_id uuid)
    returns boolean language sql stable
    set search_path = public, extensions, pg_temp
    as $b$ select exists (select from %s o where o.id = p_org_id) $b$ $f$, v_orgs);
  if v_runs = to_regclass('long_term_memory.agent_runs') then
    create or replace function long_term_memory.note_run(p_run_id text)
    returns void language sql
    set search_path = public, extensions, pg_temp
    as $b$
      insert into long_term_memory.agent_runs (run_id) select p_run_id where p_run_id is not null on conflict do nothing
    $b$;
  else
    create or replace function long_term_memory.note_run(p_run_id text)
    returns void language plpgsql
    set search_path = public, extensions, pg_temp
    as $b$
    begin
      if p_run_id is not null and not exists (select from public.agent_runs r where r.run_id = p_run_id) then
        raise sqlstate 'RL404' using
          message = format('There is no agent run %s.', left(p_run_id, 200)),
          hint = 'Insert the run into agent_runs before it remembers something, or leave the run out.';
      end if;
    end
    $b$;
  end if;
  return jsonb_build_object('organizations', v_orgs::text, 'agent_runs', v_runs::text, 'changed', v_changed);
end
$$;

comment on function long_term_memory.use_host_tables() is
  'Refers to the host''s organizations and agent runs where they are there now, else to ours. A repeat changes nothing.';

select long_term_memory.use_host_tables();

comment on function long_term_memory.org_exists(uuid) is 'Whether there is such an organization, in the table that is referred to.';
comment on function long_term_memory.note_run(text) is 'Has an agent run to refer to: ours is inserted, a host''s has to be there (RL404).';

-- long_term_memory/050_callers.sql ----------------------------------------------------------------------------------

-- Who calls, and what they are in an organization. The inner functions run with their owner's rights, so that the role of
-- the request is asked for, and not current_user.

-- A host with members of its own replaces this function; it is made only where it is absent.
do $do$
begin
  if to_regprocedure('long_term_memory.member_role(uuid,uuid)') is null then
    create function long_term_memory.member_role(p_org_id uuid, p_user_id uuid)
    returns text language sql stable
    set search_path = public, extensions, pg_temp
    as $fn$
      select m.role from long_term_memory.members m where m.org_id = p_org_id and m.user_id = p_user_id
    $fn$;
    comment on function long_term_memory.member_role(uuid, uuid) is
      'What a user is in an organization: member, admin, owner, or null. The one place that knows membership; a host with its own members replaces it.';
  end if;
  if to_regtype('long_term_memory.caller') is null then
    create type long_term_memory.caller as (kind text, user_id uuid, role text);
    comment on type long_term_memory.caller is 'Who calls: the service or a user, the user''s id, and their role in the organization.';
  end if;
end
$do$;

create or replace function long_term_memory.uuid_of(p_text text)
returns uuid language sql immutable parallel safe
return case when p_text ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then p_text::uuid end;

comment on function long_term_memory.uuid_of(text) is 'A uuid as it is written, null where the text is none.';

create or replace function long_term_memory.request_role()
returns name language sql stable
set search_path = public, extensions, pg_temp
as $$
  select coalesce(nullif(current_setting('role', true), 'none'), session_user)::name
$$;

comment on function long_term_memory.request_role() is
  'The role of the request, also inside a function that runs with its owner''s rights.';

-- A subject of a token that is no uuid (a third party's) is nobody's id here.
create or replace function long_term_memory.request_user()
returns uuid language sql stable
set search_path = public, extensions, pg_temp
as $$
  select long_term_memory.uuid_of(s.sub)
  from (select coalesce(nullif(current_setting('request.jwt.claim.sub', true), ''),
                        nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'sub') as sub) as s
$$;

comment on function long_term_memory.request_user() is 'The user whom the request''s token names; null where it names none.';

create or replace function long_term_memory.calling(p_org_id uuid)
returns long_term_memory.caller language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
declare
  v_caller long_term_memory.caller;
begin
  -- whoever has the service role's rights is the service; a role of the host's own that only has authenticated's is a user
  if pg_has_role(long_term_memory.request_role(), 'service_role', 'USAGE') then
    v_caller.kind := 'service';
    return v_caller;
  end if;
  v_caller.kind := 'user';
  v_caller.user_id := long_term_memory.request_user();
  v_caller.role := case when v_caller.user_id is not null then long_term_memory.member_role(p_org_id, v_caller.user_id) end;
  return v_caller;
end
$$;

comment on function long_term_memory.calling(uuid) is 'Who calls, and their role in this organization.';

create or replace function long_term_memory.referred_to(p_column text)
returns regclass language sql stable
set search_path = public, extensions, pg_temp
as $$
  select k.confrelid::regclass
  from pg_constraint k
  join pg_attribute a on a.attrelid = k.conrelid and a.attname = p_column and k.conkey = array[a.attnum]
  where k.conrelid = 'long_term_memory.agent_memories'::regclass and k.contype = 'f'
$$;

comment on function long_term_memory.referred_to(text) is
  'The table that this column of a memory refers to: the host''s, or ours where it has none.';

-- The functions for the service run with its rights, and a host need not have given it any on its own tables.
create or replace function long_term_memory.check_readable(p_table regclass)
returns void language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
begin
  if not has_table_privilege(p_table, 'SELECT') then
    raise sqlstate '42501' using
      message = format('%I may not read %s.', current_user, p_table),
      hint = format('Let its owner run: grant select on %s to %I', p_table, current_user);
  end if;
end
$$;

comment on function long_term_memory.check_readable(regclass) is 'Refuses (42501) where the caller may not read a table, and says who can change that.';

create or replace function long_term_memory.require_org(p_org_id uuid)
returns void language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
begin
  if p_org_id is null then
    raise sqlstate '22023' using message = 'p_org_id is missing.', hint = 'Name the organization that the call is about.';
  end if;
  perform long_term_memory.check_readable(long_term_memory.referred_to('org_id'));
  if not long_term_memory.org_exists(p_org_id) then
    raise sqlstate 'RL404' using
      message = format('There is no organization %s.', p_org_id),
      hint = 'Check the id; set_organization creates one where the project has no table of its own.';
  end if;
end
$$;

comment on function long_term_memory.require_org(uuid) is
  'Refuses none at all (22023), an organization that is not there (RL404), or that the service role may not look for (42501).';

create or replace function long_term_memory.admit(p_org_id uuid, p_roles text[], p_about_self boolean default null)
returns long_term_memory.caller language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
declare
  v_caller long_term_memory.caller := long_term_memory.calling(p_org_id);
begin
  if p_org_id is null or v_caller.kind = 'service' then
    perform long_term_memory.require_org(p_org_id);
  elsif v_caller.user_id is null or not (coalesce(v_caller.role = any (p_roles), false) or coalesce(p_about_self, false)) then
    -- in the same words whether the organization exists or not
    raise sqlstate '42501' using
      message = 'You may not do this in this organization.',
      hint = format('It takes the role %s in the organization%s.', array_to_string(p_roles, ' or '),
                    case when p_about_self is not null then ', or to be the person that it is about' else '' end);
  end if;
  return v_caller;
end
$$;

comment on function long_term_memory.admit(uuid, text[], boolean) is
  'Lets the service in, members with one of these roles, and the person themself where p_about_self says that it is them; refuses everybody else alike (42501).';

create or replace function long_term_memory.is_caller(p_subject_type text, p_subject_id uuid)
returns boolean language sql stable
set search_path = public, extensions, pg_temp
as $$
  select coalesce(p_subject_type = 'user' and p_subject_id = long_term_memory.request_user(), false)
$$;

comment on function long_term_memory.is_caller(text, uuid) is 'Whether the subject is the user who calls.';

-- The service role names a member. It cannot show that the member acted, so an organization has to allow it.
create or replace function long_term_memory.asserted_member(p_org_id uuid, p_person text, p_roles text[])
returns uuid language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
declare
  v_person uuid := long_term_memory.uuid_of(p_person);
begin
  if not exists (select from long_term_memory.org_settings s where s.org_id = p_org_id and s.allow_asserted) then
    raise sqlstate '42501' using
      message = 'This organization does not allow that a member is named by the service role.',
      hint = 'Let the person act with a token of their own, or allow it: set_organization with p_allow_asserted.';
  end if;
  if v_person is null or not coalesce(long_term_memory.member_role(p_org_id, v_person) = any (p_roles), false) then
    raise sqlstate 'RL404' using
      message = format('%s is no %s of this organization.', coalesce(left(p_person, 200), 'Nobody'), array_to_string(p_roles, ' or ')),
      hint = 'Name a member by their user id.';
  end if;
  return v_person;
end
$$;

comment on function long_term_memory.asserted_member(uuid, text, text[]) is
  'The member whom the service role names. 42501 where the organization does not allow it, RL404 where they have none of these roles.';

-- long_term_memory/060_documents.sql --------------------------------------------------------------------------------

-- What the verbs share: checks, locks, and a memory as they answer it.

create or replace function long_term_memory.check_subject(p_subject_type text, p_subject_id uuid)
returns void language plpgsql immutable
set search_path = public, extensions, pg_temp
as $$
begin
  if p_subject_type is null or p_subject_type not in ('workspace', 'candidate', 'user') then
    raise sqlstate 'RL472' using
      message = format('The subject type %s is unknown.', coalesce(left(p_subject_type, 100), 'null')),
      hint = 'It is workspace, candidate or user.';
  elsif p_subject_type <> 'workspace' and p_subject_id is null then
    raise sqlstate 'RL474' using
      message = format('A memory about a %s needs its subject.', p_subject_type), hint = 'Give subject_id.';
  end if;
end
$$;

comment on function long_term_memory.check_subject(text, uuid) is
  'Refuses an unknown subject type (RL472), and a person who is not named (RL474).';

-- Erasing a subject and writing about them take turns: whoever writes shares the subject, an erasure holds it alone.
create or replace function long_term_memory.subject_key(p_org_id uuid, p_subject_type text, p_subject_id uuid)
returns bigint language sql immutable parallel safe
return hashtextextended('ranked_ledger: subject ' || p_org_id || ' ' || p_subject_type || ' ' || p_subject_id, 0);

comment on function long_term_memory.subject_key(uuid, text, uuid) is 'The advisory lock of a subject; null where nobody is named.';

create or replace function long_term_memory.share_subject(p_org_id uuid, p_subject_type text, p_subject_id uuid)
returns void language plpgsql
set search_path = public, extensions, pg_temp
as $$
begin
  perform pg_advisory_xact_lock_shared(k.key)
  from (select long_term_memory.subject_key(p_org_id, p_subject_type, p_subject_id) as key) as k where k.key is not null;
end
$$;

comment on function long_term_memory.share_subject(uuid, text, uuid) is 'Taken before writing about a subject: waits for an erasure, and holds up the next one.';

-- A lock for each of a thousand subjects, by a few callers at once, would fill the server's table of locks, and then nobody's
-- statement could lock anything. Whoever has more than 64 locks their buckets instead, and an erasure holds its subject's too.
create or replace function long_term_memory.bucket_key(p_org_id uuid, p_subject_key bigint)
returns bigint language sql immutable parallel safe
return hashtextextended('ranked_ledger: subjects ' || p_org_id || ' ' || (p_subject_key & 63), 0);

comment on function long_term_memory.bucket_key(uuid, bigint) is 'The advisory lock of the 64th part of an organization''s subjects that holds this one.';

create or replace function long_term_memory.share_subjects(p_org_id uuid, p_subject_types text[], p_subject_ids uuid[])
returns void language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_keys bigint[] := array(
    select distinct k.key
    from unnest(p_subject_types, p_subject_ids) as s (subject_type, subject_id)
    cross join lateral (select long_term_memory.subject_key(p_org_id, s.subject_type, s.subject_id)) as k (key)
    where k.key is not null order by 1);
begin
  if cardinality(v_keys) > 64 then
    v_keys := array(select distinct long_term_memory.bucket_key(p_org_id, u.key) from unnest(v_keys) as u (key) order by 1);
  end if;
  perform pg_advisory_xact_lock_shared(u.key) from unnest(v_keys) as u (key);
end
$$;

comment on function long_term_memory.share_subjects(uuid, text[], uuid[]) is
  'share_subject for many, in one order for everybody, with 64 locks at most.';

create or replace function long_term_memory.hold_subject(p_org_id uuid, p_subject_type text, p_subject_id uuid)
returns void language plpgsql
set search_path = public, extensions, pg_temp
as $$
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    raise sqlstate '0A000' using
      message = 'An erasure runs under READ COMMITTED only: an older snapshot would not see what was written last.',
      hint = 'Call it through the API, or in a transaction of the default isolation level.';
  end if;
  perform pg_advisory_xact_lock(long_term_memory.bucket_key(
    p_org_id, long_term_memory.subject_key(p_org_id, p_subject_type, p_subject_id)));
  perform pg_advisory_xact_lock(long_term_memory.subject_key(p_org_id, p_subject_type, p_subject_id));
end
$$;

comment on function long_term_memory.hold_subject(uuid, text, uuid) is 'Taken by an erasure: nobody writes about the subject until it ends.';

create or replace function long_term_memory.folded(p_text text)
returns text language sql immutable parallel safe
return lower(btrim(regexp_replace(p_text, '\s+', ' ', 'g')));

comment on function long_term_memory.folded(text) is 'A text as it is compared: lower case, trimmed, white space folded.';

create or replace function long_term_memory.embedding_of(p_embedding text, p_embedding_model text)
returns vector language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
declare
  v_embedding vector := ranked_ledger.vector_of(p_embedding);
begin
  perform ranked_ledger.check_direction(v_embedding);
  if (v_embedding is null) <> (coalesce(p_embedding_model, '') !~ '\S') then
    raise sqlstate '22023' using
      message = 'p_embedding and p_embedding_model go together.',
      hint = 'Name the model that made the vector: vectors of two models are never compared.';
  elsif octet_length(p_embedding_model) > 1000 then
    raise sqlstate '22023' using message = 'p_embedding_model is longer than 1000 bytes.', hint = 'Give the model''s name.';
  end if;
  return v_embedding;
end
$$;

comment on function long_term_memory.embedding_of(text, text) is
  'The vector of a call, null where there is none. Refuses (22023) what is no vector, one of zeros, and one without its model.';

create or replace function long_term_memory.grade(p_written_by uuid, p_asserted_by text)
returns text language sql immutable parallel safe
return case when p_asserted_by is not null then 'asserted' when p_written_by is not null then 'verified' end;

comment on function long_term_memory.grade(uuid, text) is
  'How the writer is known: verified by their token, asserted by the service role, or null: a model on the service key.';

create or replace function long_term_memory.memory_json(p_memory long_term_memory.agent_memories)
returns jsonb language sql stable
set search_path = public, extensions, pg_temp
as $$
  select jsonb_build_object(
    'memory_id', m.id, 'org_id', m.org_id, 'subject_type', m.subject_type, 'subject_id', m.subject_id,
    'workspace_id', m.workspace_id, 'text', m.text, 'author', m.author,
    'grade', long_term_memory.grade(m.written_by, m.asserted_by), 'source_run_id', m.source_run_id,
    'written_by', m.written_by, 'asserted_by', m.asserted_by, 'reviewed_at', m.reviewed_at, 'reviewed_by', m.reviewed_by,
    'review_outcome', m.review_outcome, 'review_grade', m.review_grade, 'can_use_as_instruction', m.can_use_as_instruction,
    'embedding_model', nullif(m.embedding_model, ''), 'created_at', m.created_date, 'updated_at', m.updated_at,
    'expires_at', m.expires_at, 'erased_at', m.redacted_at)
  from (select (p_memory).*) as m
$$;

comment on function long_term_memory.memory_json(long_term_memory.agent_memories) is 'A memory as every verb answers it (docs/memory-api.md).';

create or replace function long_term_memory.no_memory(p_memory_id uuid, p_why text default '')
returns void language plpgsql immutable
set search_path = public, extensions, pg_temp
as $$
begin
  raise sqlstate 'RL404' using
    message = format('There is no memory %s in this organization%s.', coalesce(p_memory_id::text, 'without an id'), p_why),
    hint = 'Check the id and the organization; what has expired can be remembered again.';
end
$$;

comment on function long_term_memory.no_memory(uuid, text) is
  'Refuses (RL404) a memory that the organization does not have, in the same words whether another one has it.';

create or replace function long_term_memory.locked_memory(p_org_id uuid, p_memory_id uuid)
returns long_term_memory.agent_memories language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_memory long_term_memory.agent_memories;
begin
  select * into v_memory from long_term_memory.agent_memories m
  where m.id = p_memory_id and m.org_id = p_org_id for no key update;
  if v_memory.id is null then
    perform long_term_memory.no_memory(p_memory_id);
  end if;
  return v_memory;
end
$$;

comment on function long_term_memory.locked_memory(uuid, uuid) is
  'A memory of the organization, a tombstone too, locked for a change. RL404 where it has none.';

create or replace function long_term_memory.live_memory(p_org_id uuid, p_memory_id uuid)
returns long_term_memory.agent_memories language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_memory long_term_memory.agent_memories := long_term_memory.locked_memory(p_org_id, p_memory_id);
begin
  if v_memory.redacted_at is not null then
    raise sqlstate 'RL410' using
      message = format('The memory %s was erased.', p_memory_id),
      detail = format('It was erased at %s.', to_jsonb(v_memory.redacted_at) #>> '{}'),
      hint = 'Nothing of its words is left.';
  end if;
  return v_memory;
end
$$;

comment on function long_term_memory.live_memory(uuid, uuid) is
  'A memory of the organization, locked for a change. RL404 where it has none, RL410 where it was erased.';

create or replace function long_term_memory.note_event(
  p_org_id uuid, p_memory_id uuid, p_action text, p_caller long_term_memory.caller, p_asserted_by text default null,
  p_outcome text default null, p_note text default null, p_text_before text default null, p_writer_before uuid default null)
returns void language sql
set search_path = public, extensions, pg_temp
as $$
  insert into long_term_memory.memory_events (
    org_id, memory_id, action, outcome, grade, actor_id, asserted_by, note, text_before, writer_before)
  values (p_org_id, p_memory_id, p_action, p_outcome,
          case when p_asserted_by is not null then 'asserted' when (p_caller).user_id is not null then 'verified' else 'service' end,
          (p_caller).user_id, p_asserted_by, p_note, p_text_before, p_writer_before)
$$;

comment on function long_term_memory.note_event(uuid, uuid, text, long_term_memory.caller, text, text, text, text, uuid) is
  'Writes down what became of a memory, by whom, and in which grade.';

create or replace function long_term_memory.check_note(p_note text)
returns void language plpgsql immutable
set search_path = public, extensions, pg_temp
as $$
begin
  if octet_length(p_note) > 2000 then
    raise sqlstate '22023' using message = 'p_note is longer than 2000 bytes.', hint = 'Say it in fewer words.';
  end if;
end
$$;

comment on function long_term_memory.check_note(text) is 'Refuses (22023) a note above 2000 bytes.';

create or replace function long_term_memory.check_name(p_name text, p_value text)
returns void language plpgsql immutable
set search_path = public, extensions, pg_temp
as $$
begin
  if p_value !~ '\S' or octet_length(p_value) > 1000 then
    raise sqlstate '22023' using
      message = format('%s is blank or longer than 1000 bytes.', p_name), hint = 'Give a short name or an id, or leave it out.';
  end if;
end
$$;

comment on function long_term_memory.check_name(text, text) is 'Refuses (22023) a name that is blank or longer than 1000 bytes. Null passes.';

-- A member sees what colleagues wrote in recalls, so that its existence is no secret; changing it is another matter. What they
-- remembered stays theirs to change after somebody corrected it, whose words it has then.
create or replace function long_term_memory.check_own(p_caller long_term_memory.caller, p_memory long_term_memory.agent_memories)
returns void language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
begin
  if (p_caller).kind = 'user' and (p_caller).role = 'member' and (p_memory).written_by is distinct from (p_caller).user_id
     and not exists (
       select from long_term_memory.memory_events e
       where e.memory_id = (p_memory).id and e.org_id = (p_memory).org_id and e.action = 'remembered'
         and e.actor_id = (p_caller).user_id)
  then
    raise sqlstate '42501' using
      message = 'Somebody else wrote this memory.', hint = 'A member changes their own; ask an admin or owner.';
  end if;
end
$$;

comment on function long_term_memory.check_own(long_term_memory.caller, long_term_memory.agent_memories) is
  'Refuses (42501) a member what somebody else remembered, unless the words are theirs now. Admins, owners and the service may change all.';

-- long_term_memory/100_remember.sql ---------------------------------------------------------------------------------

-- Remembering: one row, with who wrote it and how sure that is. The rules of the text, subject and expiry are the table's.

-- Who wrote it. A person on the service key is named by the service, and believed only as far as the organization says.
create or replace function long_term_memory.check_author(
  p_org_id uuid, p_caller long_term_memory.caller, p_author text, p_asserted_by text)
returns void language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
begin
  if p_caller.kind = 'user' and p_asserted_by is not null then
    raise sqlstate '22023' using
      message = 'p_asserted_by is for the service role; whose token it is, wrote it.', hint = 'Leave p_asserted_by out.';
  elsif p_author = 'model' and p_asserted_by is not null then
    raise sqlstate '22023' using
      message = 'p_asserted_by names the person who wrote it; this memory is a model''s.',
      hint = 'Leave p_asserted_by out, or say p_author person.';
  elsif p_caller.kind = 'service' and p_author = 'person' then
    if p_asserted_by is null then
      raise sqlstate '22023' using
        message = 'Who is the person? On the service key p_author person needs p_asserted_by.',
        hint = 'Name the member who wrote it, or let them write it with a token of their own.';
    end if;
    perform long_term_memory.asserted_member(p_org_id, p_asserted_by, '{member,admin,owner}');
  end if;
end
$$;

comment on function long_term_memory.check_author(uuid, long_term_memory.caller, text, text) is
  'Refuses a person on the service key who is not named (22023) or may not be (42501, RL404), and a name where none belongs (22023).';

-- The insert comes first: a second call with the same key, sent while the first still runs, waits on it and then answers what
-- the first one wrote. The service and all members of an organization share its keys.
create or replace function long_term_memory.claim_key(p_org_id uuid, p_key text, p_request jsonb)
returns uuid language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_digest bytea := sha256(convert_to(p_request::text, 'UTF8'));
  v_known  record;
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
  insert into long_term_memory.idempotency_keys (org_id, key, digest) values (p_org_id, p_key, v_digest) on conflict do nothing;
  if found then
    return null;
  end if;

  -- replay; one that expired is gone, swept or not. A key is seen here once its call has committed, so that one without a
  -- memory is no call that still runs: the sweep took what it had written
  select k.digest, k.memory_id, m.redacted_at is null and (m.expires_at is null or m.expires_at > now()) as is_live into v_known
  from long_term_memory.idempotency_keys k
  left join long_term_memory.agent_memories m on m.id = k.memory_id and m.org_id = p_org_id
  where k.org_id = p_org_id and k.key = p_key;
  if not coalesce(v_known.memory_id is not null and v_known.is_live, false) then
    raise sqlstate 'RL410' using
      message = 'What this idempotency key wrote was erased, or has expired.',
      hint = 'Use a new key if it is to be remembered again.';
  elsif v_known.digest <> v_digest then
    raise sqlstate 'RL409' using
      message = 'This idempotency key was used with another request.',
      hint = 'Use a new key for a new request, and send a retry exactly as the first time.';
  end if;
  return v_known.memory_id;
end
$$;

comment on function long_term_memory.claim_key(uuid, text, jsonb) is
  'Null: the request is new (or has no key) and is to be done. Else the memory that it wrote the first time. RL409 for another request, RL410 where the memory is gone.';

create or replace function long_term_memory.forget_request()
returns trigger language plpgsql security definer
set search_path = public, extensions, pg_temp
as $$
begin
  new.digest := ''; -- it would tell a guess at the words
  return new;
end
$$;

comment on function long_term_memory.forget_request() is 'A key whose memory was swept knows no longer what the request was.';

create or replace trigger idempotency_keys_forget_request
  before update on long_term_memory.idempotency_keys
  for each row when (old.memory_id is not null and new.memory_id is null)
  execute function long_term_memory.forget_request();

create or replace function long_term_memory.check_on_return(p_on_return text, p_digest_key text)
returns void language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
begin
  if p_on_return is null or p_on_return not in ('refuse', 'flag') then
    raise sqlstate '22023' using
      message = format('p_on_return is refuse or flag; it is %s.', coalesce(left(p_on_return, 100), 'null')),
      hint = 'refuse: a text that was erased for this subject is not written. flag: it is, and the answer says so.';
  elsif p_digest_key is not null and current_setting('transaction_isolation') <> 'read committed' then
    raise sqlstate '0A000' using
      message = 'With a digest key remember runs under READ COMMITTED only: an older snapshot would not see the last erasure.',
      hint = 'Call it through the API, or in a transaction of the default isolation level.';
  end if;
end
$$;

comment on function long_term_memory.check_on_return(text, text) is
  'Refuses (22023) what p_on_return cannot mean, and (0A000) a question about erasures under an older snapshot.';

create or replace function long_term_memory.remember(
  p_org_id uuid, p_text text, p_subject_type text default 'workspace', p_subject_id uuid default null,
  p_workspace_id text default null, p_author text default 'model', p_source_run_id text default null,
  p_expires_at timestamptz default null, p_embedding text default null, p_embedding_model text default null,
  p_asserted_by text default null, p_idempotency_key text default null, p_digest_key text default null,
  p_on_return text default 'refuse')
returns jsonb language plpgsql security definer
set search_path = public, extensions, pg_temp
as $$
declare
  v_caller    long_term_memory.caller := long_term_memory.admit(p_org_id, '{member,admin,owner}');
  v_embedding vector := long_term_memory.embedding_of(p_embedding, p_embedding_model);
  v_before    text;
  v_written   uuid;
  v_memory    long_term_memory.agent_memories;
begin
  -- guard
  perform long_term_memory.check_name('p_workspace_id', p_workspace_id),
          long_term_memory.check_name('p_source_run_id', p_source_run_id),
          long_term_memory.check_author(p_org_id, v_caller, p_author, p_asserted_by),
          long_term_memory.check_on_return(p_on_return, p_digest_key),
          long_term_memory.check_subject(p_subject_type, p_subject_id);
  perform long_term_memory.share_subject(p_org_id, p_subject_type, p_subject_id);

  -- once; the vector is no part of the request, since a service does not embed twice the same, and the digest key is a secret
  v_written := long_term_memory.claim_key(p_org_id, p_idempotency_key, jsonb_build_object(
    'text', p_text, 'subject_type', p_subject_type, 'subject_id', p_subject_id, 'workspace_id', p_workspace_id,
    'author', p_author, 'source_run_id', p_source_run_id, 'expires_at', extract(epoch from p_expires_at),
    'asserted_by', lower(p_asserted_by), 'user', v_caller.user_id, 'on_return', p_on_return));
  v_before := long_term_memory.erased_before(p_org_id, p_subject_type, p_subject_id, coalesce(p_text, ''), p_digest_key);
  if v_written is not null then
    select * into v_memory from long_term_memory.agent_memories m where m.id = v_written and m.org_id = p_org_id;
    return long_term_memory.memory_json(v_memory) || jsonb_build_object('replayed', true, 'erased_before', v_before);
  elsif v_before = 'flagged' and p_on_return = 'refuse' then
    raise sqlstate 'RL476' using
      message = 'This text was erased for this subject. Nothing was written.',
      hint = 'Do not remember it again. Where it has to be, say p_on_return flag.';
  end if;

  -- write
  perform long_term_memory.note_run(p_source_run_id);
  insert into long_term_memory.agent_memories (
    org_id, subject_type, subject_id, workspace_id, text, author, source_run_id, written_by, asserted_by, expires_at, embedding,
    embedding_model)
  values (p_org_id, p_subject_type, p_subject_id, p_workspace_id, p_text, p_author, p_source_run_id, v_caller.user_id,
          lower(p_asserted_by), nullif(p_expires_at, 'infinity'), v_embedding, coalesce(p_embedding_model, ''))
  returning * into v_memory;
  perform long_term_memory.note_event(p_org_id, v_memory.id, 'remembered', v_caller, v_memory.asserted_by);
  update long_term_memory.idempotency_keys k set memory_id = v_memory.id where k.org_id = p_org_id and k.key = p_idempotency_key;
  return long_term_memory.memory_json(v_memory) || jsonb_build_object('replayed', false, 'erased_before', v_before);
end
$$;

comment on function long_term_memory.remember(
  uuid, text, text, uuid, text, text, text, timestamptz, text, text, text, text, text, text) is
  'The inner half of public.remember, with the owner''s rights.';

create or replace function public.remember(
  p_org_id uuid, p_text text, p_subject_type text default 'workspace', p_subject_id uuid default null,
  p_workspace_id text default null, p_author text default 'model', p_source_run_id text default null,
  p_expires_at timestamptz default null, p_embedding text default null, p_embedding_model text default null,
  p_asserted_by text default null, p_idempotency_key text default null, p_digest_key text default null,
  p_on_return text default 'refuse')
returns jsonb language sql
set search_path = public, extensions, pg_temp
as $$
  select long_term_memory.remember(
    p_org_id, p_text, p_subject_type, p_subject_id, p_workspace_id, p_author, p_source_run_id, p_expires_at, p_embedding,
    p_embedding_model, p_asserted_by, p_idempotency_key, p_digest_key, p_on_return)
$$;

comment on function public.remember(
  uuid, text, text, uuid, text, text, text, timestamptz, text, text, text, text, text, text) is
  'Remembers a text about a workspace, a candidate or a user, and answers the memory with replayed and erased_before. A repeat with the same idempotency key answers the first one again. RL471 to RL476 where the rules of writing refuse.';

-- long_term_memory/105_rank_memories.sql ----------------------------------------------------------------------------

-- The ranking of memories. It is exact: everything in scope is weighed, by one scan.
do $do$
begin
  if to_regtype('long_term_memory.question') is null then
    create type long_term_memory.question as (
      org_id uuid, words jsonb, has_any tsquery, counts_all boolean, embedding vector, embedding_model text, dims int, subject_type text, subject_id uuid,
      workspace_id text, match_count int, half_life float8, w_similarity float8, w_recency float8, min_relevance float8,
      with_unreviewed boolean);
    comment on type long_term_memory.question is
      'The arguments of a recall of memories, checked, with their defaults. No words: no text was given. has_any: what a text matches that has one of them; counts_all: there is no such query. min_relevance null: none.';
  end if;
end
$do$;

create or replace function long_term_memory.may_be_recalled(p_review_outcome text, p_author text, p_with_unreviewed boolean)
returns boolean language sql immutable parallel safe
return p_review_outcome in ('approved', 'evidence_only')
       or p_review_outcome is null and (p_author = 'person' or p_with_unreviewed);

comment on function long_term_memory.may_be_recalled(text, text, boolean) is
  'What a person wrote or has reviewed; what a model wrote and nobody has reviewed only where it is asked for; never what was rejected.';

create or replace function long_term_memory.age_days(p_created timestamptz)
returns float8 language sql stable parallel safe
return greatest(0::float8, date_part('epoch', now() - p_created) / 86400);

comment on function long_term_memory.age_days(timestamptz) is 'How many days ago, 0 for a time to come.';

-- A score that as many memories reach as are asked for: the least of the best among the newest. What cannot reach it, however
-- new it were, is not in the answer, and needs no age: that is most of them.
create or replace function long_term_memory.least_score(p_question long_term_memory.question)
returns float8 language plpgsql stable
set search_path = public, extensions, pg_temp
set plan_cache_mode = force_custom_plan
set enable_bitmapscan = off -- it would gather all of them before it takes the newest
set enable_sort = off
set jit = off
as $$
declare
  q long_term_memory.question := p_question;
begin
  return (
    select w.score
    from (
      select ranked_ledger.score(c.relevance, 0, c.recency, 0, q.w_similarity, 0, q.w_recency, 0, true) as score
      from (
        select ranked_ledger.text_or_cosine(
                 m.search_lexemes, m.embedding, m.embedding_model = q.embedding_model and m.embedding_dims = q.dims,
                 case when q.counts_all or m.search_lexemes @@ q.has_any then q.words end, q.embedding) as relevance,
               ranked_ledger.recency(long_term_memory.age_days(m.created_date), q.half_life) as recency
        from (
          select a.* from long_term_memory.agent_memories a
          where a.org_id = q.org_id and a.redacted_at is null
          order by a.created_date desc, a.id limit least(50 * q.match_count, 5000) offset 0) as m
        where (m.expires_at is null or m.expires_at > now())
          and long_term_memory.may_be_recalled(m.review_outcome, m.author, q.with_unreviewed)
          and (q.subject_type is null or m.subject_type = q.subject_type)
          and (q.subject_id is null or m.subject_id = q.subject_id)
          and (q.workspace_id is null or m.workspace_id = q.workspace_id)
        offset 0) as c
      where q.min_relevance is null or c.relevance >= q.min_relevance
      offset 0) as w
    order by w.score desc limit 1 offset q.match_count - 1);
end
$$;

comment on function long_term_memory.least_score(long_term_memory.question) is
  'A score that enough memories reach to fill the answer; null where the newest memories do not tell.';

-- The offsets keep each component a column that is computed once; no row is carried through the sort with its vector. They
-- are constants of their type: behind a cast the planner takes an offset for one that skips, and gives no parallel workers.
-- The plan is made for the arguments: without those that are null, the scope is what an index knows, or nothing at all.
create or replace function long_term_memory.rank_memories(p_question long_term_memory.question)
returns table (memory_id uuid, relevance float8, age_days float8, recency float8, score float8) language plpgsql stable
set search_path = public, extensions, pg_temp
set plan_cache_mode = force_custom_plan
set jit = off
as $$
declare
  q       long_term_memory.question := p_question;
  v_least float8 := case when p_question.subject_id is null then long_term_memory.least_score(p_question) end;
begin
  return query
  select w.id, w.relevance, w.age, w.recency,
         ranked_ledger.score(w.relevance, 0, w.recency, 0, q.w_similarity, 0, q.w_recency, 0, true)
  from (
    select c.id, c.created_date, c.relevance, long_term_memory.age_days(c.created_date) as age,
           ranked_ledger.recency(long_term_memory.age_days(c.created_date), q.half_life) as recency
    from (
      select m.id, m.created_date, ranked_ledger.text_or_cosine(
               m.search_lexemes, m.embedding, m.embedding_model = q.embedding_model and m.embedding_dims = q.dims,
               case when q.counts_all or m.search_lexemes @@ q.has_any then q.words end, q.embedding) as relevance
      from long_term_memory.agent_memories m
      where m.org_id = q.org_id and m.redacted_at is null and (m.expires_at is null or m.expires_at > now())
        and long_term_memory.may_be_recalled(m.review_outcome, m.author, q.with_unreviewed)
        and (q.subject_type is null or m.subject_type = q.subject_type)
        and (q.subject_id is null or m.subject_id = q.subject_id)
        and (q.workspace_id is null or m.workspace_id = q.workspace_id)
      offset bigint '0') as c
    where (q.min_relevance is null or c.relevance >= q.min_relevance)
      and (v_least is null or ranked_ledger.score(c.relevance, 0, 1, 0, q.w_similarity, 0, q.w_recency, 0, true) >= v_least)
    offset bigint '0') as w
  order by 5 desc, w.created_date desc, w.id limit q.match_count;
end
$$;

comment on function long_term_memory.rank_memories(long_term_memory.question) is
  'The memories that a question is about, best first, each with its components: scope before limit, one evaluation of a vector each.';

-- long_term_memory/108_memory_hit.sql -------------------------------------------------------------------------------

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

-- long_term_memory/110_recall_memories.sql --------------------------------------------------------------------------

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

-- long_term_memory/120_correct_memory.sql ---------------------------------------------------------------------------

-- Locks in the order of an erasure: the subject first, then the row. One that has expired is gone, swept or not.
create or replace function long_term_memory.memory_to_change(p_org_id uuid, p_memory_id uuid)
returns long_term_memory.agent_memories language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_memory long_term_memory.agent_memories;
begin
  perform long_term_memory.share_subject(p_org_id, m.subject_type, m.subject_id)
  from long_term_memory.agent_memories m where m.id = p_memory_id and m.org_id = p_org_id;
  v_memory := long_term_memory.live_memory(p_org_id, p_memory_id);
  if v_memory.expires_at <= now() then
    perform long_term_memory.no_memory(p_memory_id, ': it has expired');
  end if;
  return v_memory;
end
$$;

comment on function long_term_memory.memory_to_change(uuid, uuid) is
  'A memory locked for a change, erasures of its subject held up. RL404 where the organization has none, RL410 where it was erased.';

create or replace function long_term_memory.correct_memory(
  p_org_id uuid, p_memory_id uuid, p_text text, p_note text default null, p_expires_at timestamptz default null,
  p_embedding text default null, p_embedding_model text default null)
returns jsonb language plpgsql security definer
set search_path = public, extensions, pg_temp
as $$
declare
  v_caller     long_term_memory.caller := long_term_memory.admit(p_org_id, '{member,admin,owner}');
  v_embedding  vector := long_term_memory.embedding_of(p_embedding, p_embedding_model);
  v_before     long_term_memory.agent_memories;
  v_memory     long_term_memory.agent_memories;
  v_is_new     boolean;
  v_is_changed boolean;
  v_keeps      boolean;
  v_is_models  boolean;
  v_vouches    boolean;
begin
  -- guard
  perform long_term_memory.check_note(p_note);
  v_before := long_term_memory.memory_to_change(p_org_id, p_memory_id);
  perform long_term_memory.check_own(v_caller, v_before);
  v_is_new := v_before.text is distinct from p_text;
  v_is_changed := v_is_new or p_expires_at <> coalesce(v_before.expires_at, 'infinity')
                  or v_embedding is not null and (v_embedding, p_embedding_model)
                                                 is distinct from (v_before.embedding, v_before.embedding_model);
  if v_is_changed is not true then
    return long_term_memory.memory_json(v_before) || '{"changed": false}';
  end if;

  -- mutate; other words are the caller's, and not what was reviewed, unless the caller may review and so answers for them
  v_vouches := v_is_new and v_before.review_outcome is not null and coalesce(v_caller.role in ('admin', 'owner'), false);
  -- nor is another vector or a later end what was approved; a rejection is not undone by whoever was rejected
  v_keeps := v_vouches or not v_is_new and coalesce(v_caller.role in ('admin', 'owner'), false)
             or coalesce(v_before.review_outcome = 'rejected', false) and v_before.author = 'person'
                and coalesce(v_caller.role = 'member', false);
  v_is_models := v_is_new and v_caller.kind = 'service'; -- no key puts words into a person's mouth
  update long_term_memory.agent_memories m
  set text = p_text,
      author = case when v_is_models then 'model' else m.author end,
      written_by = case when v_is_new then v_caller.user_id else m.written_by end,
      asserted_by = case when not v_is_new then m.asserted_by end,
      expires_at = nullif(coalesce(p_expires_at, m.expires_at), 'infinity'),
      embedding = case when v_embedding is not null or v_is_new then v_embedding else m.embedding end,
      embedding_model = case when v_embedding is not null or v_is_new then coalesce(p_embedding_model, '')
                             else m.embedding_model end,
      reviewed_at = case when v_vouches then now() when v_keeps then m.reviewed_at end,
      reviewed_by = case when v_vouches then v_caller.user_id when v_keeps then m.reviewed_by end,
      review_outcome = case when v_keeps then m.review_outcome end,
      review_grade = case when v_vouches then 'verified' when v_keeps then m.review_grade end,
      can_use_as_instruction = v_keeps and m.can_use_as_instruction
  where m.id = p_memory_id and m.org_id = p_org_id
  returning * into v_memory;
  perform long_term_memory.note_event(
    p_org_id, p_memory_id, 'corrected', v_caller, null,
    case when v_before.review_outcome is not null and v_memory.review_outcome is null then 'review_cleared' end, p_note,
    case when v_is_new then v_before.text end,
    case when v_is_new then coalesce(v_before.written_by, long_term_memory.uuid_of(v_before.asserted_by)) end);
  return long_term_memory.memory_json(v_memory) || '{"changed": true}';
end
$$;

comment on function long_term_memory.correct_memory(uuid, uuid, text, text, timestamptz, text, text) is
  'The inner half of public.correct_memory, with the owner''s rights.';

create or replace function public.correct_memory(
  p_org_id uuid, p_memory_id uuid, p_text text, p_note text default null, p_expires_at timestamptz default null,
  p_embedding text default null, p_embedding_model text default null)
returns jsonb language sql
set search_path = public, extensions, pg_temp
as $$
  select long_term_memory.correct_memory(p_org_id, p_memory_id, p_text, p_note, p_expires_at, p_embedding, p_embedding_model)
$$;

comment on function public.correct_memory(uuid, uuid, text, text, timestamptz, text, text) is
  'Puts another text in place of a memory''s, and answers the memory with changed. Its vector goes unless one is given. The words are the caller''s from then on, on the service key a model''s; its review goes, with another vector or end too, unless an admin or owner corrects, who then answers for the words; a rejected memory of a person stays rejected. The text before, and whose it was, stay in its history.';

-- long_term_memory/130_forget_memory.sql ----------------------------------------------------------------------------

-- Why something was forgotten is worth keeping, and tends to say what it was.
create or replace function long_term_memory.repeats_words(p_org_id uuid, p_memory_id uuid, p_note text)
returns boolean language sql stable
set search_path = public, extensions, pg_temp
as $$
  select exists (
    select from (
      select m.text from long_term_memory.agent_memories m where m.org_id = p_org_id and m.id = p_memory_id
      union all
      select e.text_before from long_term_memory.memory_events e
      where e.org_id = p_org_id and e.memory_id = p_memory_id and e.text_before is not null) as t (text)
    where ranked_ledger.occurrences(
      to_tsvector('pg_catalog.english', t.text), ranked_ledger.any_word('pg_catalog.english', p_note)) > 0)
$$;

comment on function long_term_memory.repeats_words(uuid, uuid, text) is
  'Whether a note has a word of a memory''s text, or of what it was before a correction.';

create or replace function long_term_memory.forget_memory(p_org_id uuid, p_memory_id uuid, p_note text default null)
returns jsonb language plpgsql security definer
set search_path = public, extensions, pg_temp
as $$
declare
  v_caller long_term_memory.caller := long_term_memory.admit(p_org_id, '{member,admin,owner}');
  v_memory long_term_memory.agent_memories;
  v_note   text;
begin
  -- guard; the subject before the row, as an erasure locks them
  perform long_term_memory.check_note(p_note);
  perform long_term_memory.share_subject(p_org_id, m.subject_type, m.subject_id)
  from long_term_memory.agent_memories m where m.id = p_memory_id and m.org_id = p_org_id;
  v_memory := long_term_memory.locked_memory(p_org_id, p_memory_id);
  perform long_term_memory.check_own(v_caller, v_memory);
  if v_memory.redacted_at is not null then
    return jsonb_build_object('memory_id', p_memory_id, 'forgotten_at', v_memory.redacted_at, 'already', true);
  end if;

  -- mutate; a trigger takes the words out of its history, and the note comes after it
  v_note := case when not long_term_memory.repeats_words(p_org_id, p_memory_id, p_note) then p_note end;
  update long_term_memory.agent_memories m set redacted_at = now() where m.id = p_memory_id and m.org_id = p_org_id
  returning m.* into v_memory;
  perform long_term_memory.note_event(p_org_id, p_memory_id, 'forgotten', v_caller, null, null, v_note);
  return jsonb_build_object('memory_id', p_memory_id, 'forgotten_at', v_memory.redacted_at, 'already', false);
end
$$;

comment on function long_term_memory.forget_memory(uuid, uuid, text) is
  'The inner half of public.forget_memory, with the owner''s rights.';

create or replace function public.forget_memory(p_org_id uuid, p_memory_id uuid, p_note text default null)
returns jsonb language sql
set search_path = public, extensions, pg_temp
as $$ select long_term_memory.forget_memory(p_org_id, p_memory_id, p_note) $$;

comment on function public.forget_memory(uuid, uuid, text) is
  'Leaves a tombstone of one memory: no text, no vector, no former texts or notes. Answers memory_id, forgotten_at, already. A note is kept where it repeats no word of it. What else is held about its subject stays: erase_subject takes that.';

-- long_term_memory/140_review.sql -----------------------------------------------------------------------------------

-- Reviews. A person's own token verifies; where the service names the reviewer, it is asserted, and never makes an instruction.

-- an index of what is left to do: small where reviews are kept up
create index if not exists agent_memories_pending_idx on long_term_memory.agent_memories (org_id, created_date, id)
  where redacted_at is null and author = 'model' and review_outcome is null;

create or replace function long_term_memory.check_review_page(p_limit int, p_after jsonb)
returns void language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
declare
  v_problem text := case
    when p_limit is null or p_limit not between 1 and 500 then 'p_limit is not a number from 1 to 500.'
    when p_after is not null and not coalesce(
           jsonb_typeof(p_after) = 'object' and jsonb_typeof(p_after -> 'created_at') = 'string'
           and p_after ->> 'created_at' ~ '^\d{4,6}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?[+-]\d\d(:\d\d)?$'
           and long_term_memory.uuid_of(p_after ->> 'memory_id') is not null, false)
      then 'p_after is not a cursor: it takes the "next" of the page before.'
  end;
begin
  if v_problem is null then
    begin
      perform (p_after ->> 'created_at')::timestamptz;
    exception when datetime_field_overflow or invalid_datetime_format then
      v_problem := 'p_after is not a cursor: it takes the "next" of the page before.';
    end;
  end if;
  if v_problem is not null then
    raise sqlstate '22023' using message = v_problem, hint = 'docs/memory-api.md describes pending_reviews.';
  end if;
end
$$;

comment on function long_term_memory.check_review_page(int, jsonb) is 'Refuses (22023) a limit or a cursor that cannot be meant.';

create or replace function long_term_memory.pending_reviews(p_org_id uuid, p_limit int default 50, p_after jsonb default null)
returns jsonb language plpgsql security definer
set search_path = public, extensions, pg_temp
set plan_cache_mode = force_custom_plan
as $$
declare
  v_caller long_term_memory.caller := long_term_memory.admit(p_org_id, '{admin,owner}');
  v_found  long_term_memory.agent_memories[];
  v_total  bigint;
begin
  -- guard
  if v_caller.kind = 'service' and not exists (
    select from long_term_memory.org_settings s where s.org_id = p_org_id and s.allow_asserted)
  then
    raise sqlstate '42501' using
      message = 'This organization does not allow that the service role reviews in a member''s name.',
      hint = 'Let an admin or owner review with a token of their own, or allow it: set_organization with p_allow_asserted.';
  end if;
  perform long_term_memory.check_review_page(p_limit, p_after);

  -- find: one row more than the page says whether there is a next one
  v_found := array(
    select m from long_term_memory.agent_memories m
    where m.org_id = p_org_id and m.redacted_at is null and m.author = 'model' and m.review_outcome is null
      and (m.expires_at is null or m.expires_at > now())
      and (p_after is null
           or (m.created_date, m.id) > ((p_after ->> 'created_at')::timestamptz, (p_after ->> 'memory_id')::uuid))
    order by m.created_date, m.id limit p_limit + 1);
  select count(*) into v_total from long_term_memory.agent_memories m
  where m.org_id = p_org_id and m.redacted_at is null and m.author = 'model' and m.review_outcome is null
    and (m.expires_at is null or m.expires_at > now());

  -- answer
  return jsonb_build_object(
    'memories', (select coalesce(jsonb_agg(long_term_memory.memory_json(f) order by f.created_date, f.id), '[]')
                 from unnest(v_found[:p_limit]) as f),
    'next', case when cardinality(v_found) > p_limit then jsonb_build_object(
      'created_at', v_found[p_limit].created_date, 'memory_id', v_found[p_limit].id) end,
    'pending', v_total);
end
$$;

comment on function long_term_memory.pending_reviews(uuid, int, jsonb) is
  'The inner half of public.pending_reviews, with the owner''s rights.';

create or replace function public.pending_reviews(p_org_id uuid, p_limit int default 50, p_after jsonb default null)
returns jsonb language sql
set search_path = public, extensions, pg_temp
as $$ select long_term_memory.pending_reviews(p_org_id, p_limit, p_after) $$;

comment on function public.pending_reviews(uuid, int, jsonb) is
  'A page of what models wrote and nobody has reviewed, oldest first: {"memories": [...], "next": cursor or null, "pending": how many in all}.';

create or replace function long_term_memory.check_review(
  p_caller long_term_memory.caller, p_outcome text, p_can_use_as_instruction boolean, p_reviewer text)
returns void language plpgsql immutable
set search_path = public, extensions, pg_temp
as $$
begin
  if p_outcome is null or p_outcome not in ('approved', 'evidence_only', 'rejected') then
    raise sqlstate '22023' using
      message = format('p_outcome is approved, evidence_only or rejected; it is %s.', coalesce(left(p_outcome, 100), 'null')),
      hint = 'evidence_only: it may be recalled, and is nothing to act on.';
  elsif p_caller.kind = 'user' and p_reviewer is not null then
    raise sqlstate '22023' using
      message = 'p_reviewer is for the service role; whose token it is, reviews.', hint = 'Leave p_reviewer out.';
  elsif p_caller.kind = 'service' and p_reviewer is null then
    raise sqlstate '22023' using
      message = 'On the service key a review needs p_reviewer.',
      hint = 'Name the admin or owner who reviewed, or let them review with a token of their own.';
  elsif p_can_use_as_instruction and p_outcome <> 'approved' then
    raise sqlstate '22023' using
      message = 'Only what is approved can be used as an instruction.', hint = 'Leave p_can_use_as_instruction out.';
  elsif p_can_use_as_instruction and p_caller.kind = 'service' then
    raise sqlstate '42501' using
      message = 'A review that the service role asserts cannot make a memory usable as an instruction.',
      hint = 'Let an admin or owner approve it with a token of their own.';
  end if;
end
$$;

comment on function long_term_memory.check_review(long_term_memory.caller, text, boolean, text) is
  'Refuses (22023, 42501) a review that cannot be meant, or that this caller cannot give.';

create or replace function long_term_memory.review_memory(
  p_org_id uuid, p_memory_id uuid, p_outcome text, p_can_use_as_instruction boolean default false,
  p_note text default null, p_reviewer text default null, p_text text default null)
returns jsonb language plpgsql security definer
set search_path = public, extensions, pg_temp
as $$
declare
  v_caller   long_term_memory.caller := long_term_memory.admit(p_org_id, '{admin,owner}');
  v_usable   boolean := coalesce(p_can_use_as_instruction, false);
  v_grade    text := case when v_caller.kind = 'user' then 'verified' else 'asserted' end;
  v_reviewer uuid := v_caller.user_id;
  v_memory   long_term_memory.agent_memories;
begin
  -- guard
  perform long_term_memory.check_review(v_caller, p_outcome, v_usable, p_reviewer), long_term_memory.check_note(p_note);
  if v_caller.kind = 'service' then
    v_reviewer := long_term_memory.asserted_member(p_org_id, p_reviewer, '{admin,owner}');
  end if;
  v_memory := long_term_memory.memory_to_change(p_org_id, p_memory_id);
  if p_text is distinct from v_memory.text and p_text is not null then
    raise sqlstate 'RL409' using
      message = 'The memory has other words than those that were read.', hint = 'Read it again, then review what it says now.';
  elsif v_grade = 'asserted' and v_memory.review_grade = 'verified' then
    raise sqlstate '42501' using
      message = 'This memory has a verified review, which an asserted one does not replace.',
      hint = 'Let an admin or owner review it with a token of their own.';
  elsif (v_memory.review_outcome, v_memory.review_grade, v_memory.can_use_as_instruction, v_memory.reviewed_by)
        = (p_outcome, v_grade, v_usable, v_reviewer)
  then
    return long_term_memory.memory_json(v_memory) || '{"changed": false}';
  end if;

  -- mutate
  update long_term_memory.agent_memories m
  set reviewed_at = now(), reviewed_by = v_reviewer, review_outcome = p_outcome, review_grade = v_grade,
      can_use_as_instruction = v_usable
  where m.id = p_memory_id and m.org_id = p_org_id
  returning m.* into v_memory;
  perform long_term_memory.note_event(p_org_id, p_memory_id, 'reviewed', v_caller,
                                      case when v_grade = 'asserted' then v_reviewer::text end, p_outcome, p_note);
  return long_term_memory.memory_json(v_memory) || '{"changed": true}';
end
$$;

comment on function long_term_memory.review_memory(uuid, uuid, text, boolean, text, text, text) is
  'The inner half of public.review_memory, with the owner''s rights.';

create or replace function public.review_memory(
  p_org_id uuid, p_memory_id uuid, p_outcome text, p_can_use_as_instruction boolean default false,
  p_note text default null, p_reviewer text default null, p_text text default null)
returns jsonb language sql
set search_path = public, extensions, pg_temp
as $$
  select long_term_memory.review_memory(
    p_org_id, p_memory_id, p_outcome, p_can_use_as_instruction, p_note, p_reviewer, p_text)
$$;

comment on function public.review_memory(uuid, uuid, text, boolean, text, text, text) is
  'Reviews a memory, as it was read where p_text says so: approved, evidence_only or rejected. Verified from an admin''s or owner''s token, asserted where the service names one. Answers the memory with changed.';

-- long_term_memory/150_memory_usage.sql -----------------------------------------------------------------------------

create or replace function long_term_memory.memory_usage(p_org_id uuid, p_memory_id uuid, p_limit int default 100)
returns jsonb language plpgsql stable security definer
set search_path = public, extensions, pg_temp
as $$
declare
  v_caller long_term_memory.caller := long_term_memory.admit(p_org_id, '{admin,owner}');
begin
  if p_limit is null or p_limit not between 1 and 1000 then
    raise sqlstate '22023' using
      message = 'p_limit is not a number from 1 to 1000.', hint = 'The newest ones come first; reads counts all of them.';
  elsif not exists (select from long_term_memory.agent_memories m where m.id = p_memory_id and m.org_id = p_org_id) then
    perform long_term_memory.no_memory(p_memory_id);
  end if;
  -- an erased one too: who had read it is asked then more than ever
  return jsonb_build_object(
    'memory_id', p_memory_id,
    'reads', (select count(*) from long_term_memory.recall_items i where i.memory_id = p_memory_id and i.org_id = p_org_id),
    'runs', (
      select coalesce(jsonb_agg(jsonb_build_object(
        'recall_id', u.id, 'run_id', u.run_id, 'recalled_by', u.recalled_by, 'at', u.at, 'rank', u.rank, 'score', u.score)
        order by u.at desc, u.id), '[]')
      from (
        select r.id, r.run_id, r.recalled_by, r.at, i.rank, i.score
        from long_term_memory.recall_items i
        join long_term_memory.recalls r on r.id = i.recall_id and r.org_id = p_org_id
        where i.memory_id = p_memory_id and i.org_id = p_org_id
        order by r.at desc, r.id limit p_limit) as u));
end
$$;

comment on function long_term_memory.memory_usage(uuid, uuid, int) is 'The inner half of public.memory_usage, with the owner''s rights.';

create or replace function public.memory_usage(p_org_id uuid, p_memory_id uuid, p_limit int default 100)
returns jsonb language sql stable
set search_path = public, extensions, pg_temp
as $$ select long_term_memory.memory_usage(p_org_id, p_memory_id, p_limit) $$;

comment on function public.memory_usage(uuid, uuid, int) is
  'Which recalls returned a memory, newest first, and how many there were: {"memory_id", "reads", "runs": [...]}.';

-- long_term_memory/200_digests.sql ----------------------------------------------------------------------------------

-- What was erased is known again by a keyed digest, for whoever keeps the key. A plain hash of a short sentence about a known
-- person is as good as the sentence: guesses are cheap. HMAC-SHA256 (RFC 2104) over the server's own sha256, since no
-- extension for it can be relied on.

create or replace function long_term_memory.hmac_pad(p_key bytea, p_byte int)
returns bytea language plpgsql immutable parallel safe strict
set search_path = public, extensions, pg_temp
as $$
declare
  v_key bytea := case when octet_length(p_key) > 64 then sha256(p_key) else p_key end;
  v_pad bytea := decode(repeat(lpad(to_hex(p_byte), 2, '0'), 64), 'hex');
begin
  for i in 0 .. octet_length(v_key) - 1 loop -- bytea has no xor
    v_pad := set_byte(v_pad, i, get_byte(v_key, i) # p_byte);
  end loop;
  return v_pad;
end
$$;

comment on function long_term_memory.hmac_pad(bytea, int) is
  'A key, brought to the 64 bytes of a block of SHA-256, each of them exclusive-or this byte.';

create or replace function long_term_memory.hmac_sha256(p_key bytea, p_message bytea)
returns bytea language sql immutable parallel safe
return sha256(long_term_memory.hmac_pad(p_key, 92) || sha256(long_term_memory.hmac_pad(p_key, 54) || p_message));

comment on function long_term_memory.hmac_sha256(bytea, bytea) is 'HMAC-SHA256 as RFC 2104 defines it.';

-- No message ever repeats the key: messages are logged.
create or replace function long_term_memory.check_digest_key(p_digest_key text)
returns void language plpgsql immutable
set search_path = public, extensions, pg_temp
as $$
begin
  if char_length(p_digest_key) < 16 then
    raise sqlstate '22023' using
      message = 'p_digest_key is shorter than 16 characters.',
      hint = 'Draw it at random, keep it where your secrets are, and use the same one for every call. It is never stored here.';
  elsif octet_length(p_digest_key) > 4096 then
    raise sqlstate '22023' using message = 'p_digest_key is longer than 4096 bytes.', hint = 'Draw 32 random bytes, in base64.';
  end if;
end
$$;

comment on function long_term_memory.check_digest_key(text) is 'Refuses (22023) a digest key that could be guessed, or is no key. Null passes.';

create or replace function long_term_memory.key_check(p_digest_key text, p_org_id uuid)
returns bytea language sql immutable parallel safe
return long_term_memory.hmac_sha256(
  convert_to(p_digest_key, 'UTF8'), convert_to('ranked_ledger: key of ' || p_org_id, 'UTF8'));

comment on function long_term_memory.key_check(text, uuid) is
  'By which a digest key is known again: its keyed digest of the organization''s id.';

-- Bound to organization and subject: the same sentence about two people has two digests.
create or replace function long_term_memory.text_digest(
  p_digest_key text, p_org_id uuid, p_subject_type text, p_subject_id uuid, p_text text)
returns bytea language sql immutable parallel safe
return long_term_memory.hmac_sha256(convert_to(p_digest_key, 'UTF8'), convert_to(
  'ranked_ledger: erased ' || p_org_id || ' ' || p_subject_type || ' ' || p_subject_id || ' ' || long_term_memory.folded(p_text),
  'UTF8'));

comment on function long_term_memory.text_digest(text, uuid, text, uuid, text) is
  'The keyed digest of a text about a subject, folded in case and white space.';

create or replace function long_term_memory.erased_before(
  p_org_id uuid, p_subject_type text, p_subject_id uuid, p_text text, p_digest_key text)
returns text language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
declare
  v_digest    bytea;
  v_key_check bytea;
begin
  perform long_term_memory.check_digest_key(p_digest_key);
  if p_digest_key is null or p_subject_id is null then -- nobody's digests are kept of nobody
    return 'not_checked';
  end if;
  v_digest := long_term_memory.text_digest(p_digest_key, p_org_id, p_subject_type, p_subject_id, p_text);
  if exists (select from long_term_memory.erased_digests d
             where d.org_id = p_org_id and d.subject_type = p_subject_type and d.subject_id = p_subject_id
               and d.digest = v_digest) then
    return 'flagged';
  end if;
  v_key_check := long_term_memory.key_check(p_digest_key, p_org_id);
  return (
    select case when count(*) > 0 and count(*) filter (where e.key_check = v_key_check) = 0 then 'other_key' else 'clear' end
    from long_term_memory.erasures e
    where e.org_id = p_org_id and e.subject_type = p_subject_type and e.subject_id = p_subject_id and e.key_check is not null
      and exists (select from long_term_memory.erased_digests d where d.erasure_id = e.id));
end
$$;

comment on function long_term_memory.erased_before(uuid, text, uuid, text, text) is
  'Whether a text was erased for this subject: flagged or clear; not_checked without a key, or where no subject is named; other_key where all that was erased for the subject has digests of other keys.';

-- long_term_memory/205_word_columns.sql -----------------------------------------------------------------------------

-- Where a table may hold somebody's words, asked of the catalogue: hosts have columns that nobody has told us of. What cannot
-- hold words is left alone: numbers, times, uuids, enums, generated columns, and columns with a closed list of values.

create or replace function long_term_memory.key_of(p_table regclass)
returns name language sql stable
set search_path = public, extensions, pg_temp
as $$
  select coalesce((
    select a.attname from pg_index i join pg_attribute a on a.attrelid = i.indrelid and a.attnum = i.indkey[0]
    where i.indrelid = p_table and i.indisprimary and i.indnkeyatts = 1), 'ctid')
$$;

comment on function long_term_memory.key_of(regclass) is 'The primary key of a table where it is one column, else ctid.';

create or replace function long_term_memory.base_type(p_type oid)
returns oid language sql stable
set search_path = public, extensions, pg_temp
as $$
  with recursive types as (
    select t.oid, t.typtype, t.typbasetype from pg_type t where t.oid = p_type
    union all
    select b.oid, b.typtype, b.typbasetype from types t join pg_type b on b.oid = t.typbasetype where t.typtype = 'd')
  select t.oid from types t where t.typtype <> 'd'
$$;

comment on function long_term_memory.base_type(oid) is 'What a domain is of in the end, also one over another domain.';

create or replace function long_term_memory.kind_of_words(p_type name)
returns text language sql immutable parallel safe
return case
  when p_type in ('text', 'varchar', 'bpchar', 'citext', 'name') then 'text'
  when p_type in ('_text', '_varchar', '_bpchar', '_citext', '_name') then 'texts'
  when p_type in ('json', 'jsonb') then p_type
  when p_type in ('_json', '_jsonb', '_float4', '_float8', '_numeric', 'hstore', 'xml') then 'other'
  when p_type in ('vector', 'halfvec', 'sparsevec') then 'vector'
  when p_type in ('tsvector', 'bytea') then p_type
end;

comment on function long_term_memory.kind_of_words(name) is
  'How a type may hold words: text, texts, json, jsonb, tsvector, vector, bytea, other; null: not.';

-- `in (...)` is written `= ANY (...)` by the catalogue, and a chain of `or` as it was.
create or replace function long_term_memory.is_closed_list(p_check text, p_column name)
returns boolean language sql immutable parallel safe
set search_path = public, extensions, pg_temp
as $$
  -- what it says of this column alone, taken out: nothing else may be left of it
  select regexp_replace(
           p_check,
           n.name || ' (= ANY \(+ARRAY\[[^\]]*\]\)*(::[a-z ]+\[\])?|= ''[^'']*''(::[a-z ]+)?|IS( NOT)? NULL)|\m(OR|AND)\M', '', 'g')
         ~ '^CHECK [ ()]*(NOT VALID)?$'
     and p_check ~ (n.name || ' (= ANY|= '')') -- that something is not null is no list
  from (select '"?\m' || regexp_replace(p_column, '(\W)', '\\\1', 'g') || '\M"?\)?(::[a-z ]+)?' as name) as n
$$;

comment on function long_term_memory.is_closed_list(text, name) is
  'Whether a CHECK constraint, in its own words, lists the values of this column.';

-- emptied: what stands in the column of a row that is erased, as an expression over its table t. The default where that is
-- a constant, else null, else the least that the type allows.
create or replace function long_term_memory.word_columns(p_table regclass)
returns table (name name, type text, kind text, is_name boolean, is_unique boolean, is_nullable boolean, emptied text)
language sql stable
set search_path = public, extensions, pg_temp
as $$
  with columns as (
    select a.attnum, a.attname, format_type(a.atttypid, a.atttypmod) as type, a.atttypmod,
           long_term_memory.kind_of_words(coalesce(b.typname, t.typname)) as kind,
           not a.attnotnull and not t.typnotnull as is_nullable, pg_get_expr(d.adbin, d.adrelid) as preset,
           a.attname in ('workspace_id', 'project_id', 'task_id', 'flow_id', 'run_id', 'channel_id', 'channel_kind',
                         'channel_thread_id')
           or exists (select from pg_constraint k
                      where k.conrelid = a.attrelid and k.contype in ('f', 'p') and a.attnum = any (k.conkey)) as is_name,
           exists (select from pg_index i
                   where i.indrelid = a.attrelid and i.indisunique
                     and (a.attnum = any (i.indkey) or strpos(pg_get_expr(i.indexprs, i.indrelid), a.attname) > 0)) as is_unique
    from pg_attribute a
    join pg_type t on t.oid = a.atttypid
    left join pg_type b on b.oid = long_term_memory.base_type(t.oid) and t.typtype = 'd'
    left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
    where a.attrelid = p_table and a.attnum > 0 and not a.attisdropped and a.attgenerated = '' and a.attidentity = ''
      and not exists (
        select from pg_constraint k
        where k.contype = 'c' and (k.contypid = t.oid and long_term_memory.is_closed_list(pg_get_constraintdef(k.oid), 'VALUE')
          or k.conrelid = a.attrelid and a.attnum = any (k.conkey)
             and long_term_memory.is_closed_list(pg_get_constraintdef(k.oid), a.attname))))
  select c.attname, c.type, c.kind, c.is_name, c.is_unique, c.is_nullable,
         case when c.is_unique and c.is_nullable then 'null'
              when c.is_unique and c.kind = 'text' then
                format('(''[erased] '' || t.%I)::%s', long_term_memory.key_of(p_table), c.type)
              when c.preset !~ '\(' then format('(%s)', c.preset)
              when c.is_nullable then 'null'
              when c.type ~ '^(\w+\.)?sparsevec' then format('''{}/%s''::%s', greatest(c.atttypmod, 1), c.type)
              when c.kind = 'vector' then
                format('(''['' || repeat(''0,'', %s) || ''0]'')::%s', greatest(c.atttypmod, 1) - 1, c.type)
              when c.kind in ('json', 'jsonb') or c.type ~ '\[\]$' then format('''{}''::%s', c.type)
              else format('''''::%s', c.type) end
  from columns c where c.kind is not null order by c.attnum
$$;

comment on function long_term_memory.word_columns(regclass) is
  'The columns of a table that may hold words, and what is left in them by an erasure. is_name: a scope, a key, a reference to another table; never changed.';

-- The server's own words quote the row.
create or replace function long_term_memory.refuse_rule(p_table regclass, p_rule text, p_code text)
returns void language plpgsql immutable
set search_path = public, extensions, pg_temp
as $$
begin
  raise sqlstate 'RL500' using
    message = format('A rule of %s does not let its words be taken out: %s. Nothing was erased.', p_table,
                     coalesce('the constraint ' || nullif(p_rule, ''), 'SQLSTATE ' || p_code)),
    hint = 'Have the rule allow the column''s default, null or [erased], then erase again; `\d` of the table shows it.';
end
$$;

comment on function long_term_memory.refuse_rule(regclass, text, text) is
  'Refuses (RL500) an erasure that a constraint of a host''s table stands against, without the row.';

-- The rows themselves stay, and with them what the caller keeps. A trigger of the host might put back what it finds missing.
create or replace function long_term_memory.empty_rows(
  p_table regclass, p_by name, p_ids uuid[], p_keep text[] default '{}', p_set jsonb default '{}', p_touch text default null)
returns text[] language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_sets  text;
  v_where text;
  v_ids   text[];
  v_left  bigint;
  v_rule  text;
begin
  select string_agg(format('%I = %s', s.name, s.value), ', ' order by s.name),
         format('t.%I = any ($1) and (%s)', p_by,
                string_agg(format('t.%I::text is distinct from (%s)::text', s.name, s.value), ' or ' order by s.name))
  into v_sets, v_where
  from (
    select w.name, w.emptied as value from long_term_memory.word_columns(p_table) w
    where not w.is_name and w.name <> all (p_keep) and not p_set ? w.name
    union all
    select a.attname, p_set ->> a.attname from pg_attribute a
    where a.attrelid = p_table and a.attnum > 0 and not a.attisdropped and p_set ? a.attname) as s;
  begin
    execute format('with emptied as (update %s t set %s where %s returning t.%I::text as key)
                    select coalesce(array_agg(e.key), ''{}'') from emptied e',
                   p_table, concat_ws(', ', v_sets, p_touch), v_where, long_term_memory.key_of(p_table))
    into v_ids using p_ids;
  exception when integrity_constraint_violation or data_exception then
    get stacked diagnostics v_rule = constraint_name;
    perform long_term_memory.refuse_rule(p_table, v_rule, sqlstate);
  end;
  execute format('select count(*) from %s t where %s', p_table, v_where) into v_left using p_ids;
  if v_left > 0 then
    raise sqlstate 'RL500' using
      message = format('%s rows of %s could not be emptied: a trigger of the table puts back what was there. '
                       'Nothing was erased.', v_left, p_table),
      hint = 'Disable that trigger for the erasure, or have it let this through; `\d` of the table shows its triggers.';
  end if;
  return v_ids;
end
$$;

comment on function long_term_memory.empty_rows(regclass, name, uuid[], text[], jsonb, text) is
  'Takes the words out of rows, by one of their columns: p_keep stays, p_set says what a column gets (an expression over t), all others that may hold words are emptied. Answers the keys of the rows that changed. RL500 where a trigger undoes it.';

-- long_term_memory/210_redact.sql -----------------------------------------------------------------------------------

-- Exact strings taken out of texts and documents. What is found is replaced by a mark; the rest of a text stays.

create or replace function long_term_memory.check_strings(p_strings text[])
returns text[] language plpgsql immutable
set search_path = public, extensions, pg_temp
as $$
declare
  v_problem text;
begin
  v_problem := case
    when cardinality(p_strings) > 50 then 'holds more than 50 strings'
    when exists (select from unnest(p_strings) as u (string) where u.string is null or char_length(btrim(u.string)) < 6)
      then 'holds a string of fewer than 6 characters, blanks at its ends not counted'
    when exists (select from unnest(p_strings) as u (string) where char_length(u.string) > 1000)
      then 'holds a string of more than 1,000 characters'
    when exists (select from unnest(p_strings) as u (string) where strpos('[erased]', u.string) > 0)
      then 'holds a part of the mark [erased], which stands where something was' end;
  if v_problem is not null then
    raise sqlstate '22023' using
      message = format('p_also_containing %s.', v_problem),
      hint = 'Give up to 50 exact strings of 6 to 1,000 characters: shorter ones stand in words of all sorts.';
  end if;
  -- the longest first: one that holds another goes as a whole
  return array(select u.string from unnest(p_strings) as u (string) group by u.string
               order by char_length(u.string) desc, u.string);
end
$$;

comment on function long_term_memory.check_strings(text[]) is
  'The strings to be taken out, each once, the longest first. Refuses (22023) what would be found everywhere.';

create or replace function long_term_memory.redact(p_text text, p_strings text[])
returns text language plpgsql immutable parallel safe
set search_path = public, extensions, pg_temp
as $$
declare
  v_text   text := p_text;
  v_last   text;
  v_string text;
begin
  for v_round in 1 .. 1000 loop -- what is left on both sides of a mark may make up a string again
    v_last := v_text;
    foreach v_string in array p_strings loop
      v_text := replace(v_text, v_string, '[erased]');
    end loop;
    exit when v_text is not distinct from v_last;
  end loop;
  return v_text;
end
$$;

comment on function long_term_memory.redact(text, text[]) is 'The text, with [erased] for each of the strings.';

create or replace function long_term_memory.redact(p_texts text[], p_strings text[])
returns text[] language sql immutable parallel safe
set search_path = public, extensions, pg_temp
as $$
  select case when p_texts is not null then array(
    select long_term_memory.redact(u.value, p_strings)
    from unnest(p_texts) with ordinality as u (value, position) order by u.position) end
$$;

comment on function long_term_memory.redact(text[], text[]) is 'The texts, with [erased] for each of the strings.';

create or replace function long_term_memory.like_patterns(p_strings text[])
returns text[] language sql immutable parallel safe
set search_path = public, extensions, pg_temp
as $$
  select array(select '%' || regexp_replace(u.string, '([\\%_])', '\\\1', 'g') || '%' from unnest(p_strings) as u (string))
$$;

comment on function long_term_memory.like_patterns(text[]) is 'Patterns of LIKE for texts that hold one of the strings.';

-- As they stand in the text of a document, between its quotes.
create or replace function long_term_memory.in_json(p_strings text[])
returns text[] language sql immutable parallel safe
set search_path = public, extensions, pg_temp
as $$
  select array(select substr(j.text, 2, char_length(j.text) - 2)
               from unnest(p_strings) as u (string) cross join lateral (select to_jsonb(u.string)::text as text) as j)
$$;

comment on function long_term_memory.in_json(text[]) is 'The strings as the text of a jsonb document writes them.';

-- A number that holds a string (a telephone number, say) becomes the mark; two names of an object that become the same are one.
create or replace function long_term_memory.redact_deeply(p_document jsonb, p_strings text[])
returns jsonb language plpgsql immutable parallel safe
set search_path = public, extensions, pg_temp
as $$
begin
  return case jsonb_typeof(p_document)
    when 'object' then (
      select coalesce(jsonb_object_agg(long_term_memory.redact(o.key, p_strings),
                                       long_term_memory.redact_deeply(o.value, p_strings)), '{}')
      from jsonb_each(p_document) as o)
    when 'array' then (
      select coalesce(jsonb_agg(long_term_memory.redact_deeply(a.value, p_strings) order by a.ordinality), '[]')
      from jsonb_array_elements(p_document) with ordinality as a)
    when 'string' then to_jsonb(long_term_memory.redact(p_document #>> '{}', p_strings))
    when 'number' then case when long_term_memory.redact(p_document #>> '{}', p_strings) <> p_document #>> '{}'
                            then '"[erased]"' else p_document end
    else p_document end;
end
$$;

comment on function long_term_memory.redact_deeply(jsonb, text[]) is 'A document, with [erased] for each of the strings, in values and names.';

create or replace function long_term_memory.redact(p_document jsonb, p_strings text[])
returns jsonb language sql immutable parallel safe
set search_path = public, extensions, pg_temp
as $$
  select case
    when not p_document::text like any (long_term_memory.like_patterns(long_term_memory.in_json(p_strings))) then p_document
    -- a hundred levels are more than anybody reads, and some thousands more than the server's stack holds
    when p_document @? '$.**{100}'::jsonpath then '{}'
    else long_term_memory.redact_deeply(p_document, p_strings) end
$$;

comment on function long_term_memory.redact(jsonb, text[]) is
  'A document, with [erased] for each of the strings, in values and names. One that holds any and is nested 100 levels deep becomes {}.';

-- A json column keeps its text as it came: escapes of another form, names twice, a null character, which jsonb refuses.
create or replace function long_term_memory.redact(p_document json, p_strings text[])
returns json language plpgsql immutable parallel safe
set search_path = public, extensions, pg_temp
as $$
declare
  v_document jsonb;
begin
  v_document := p_document::jsonb;
  return case when long_term_memory.redact(v_document, p_strings) = v_document then p_document
              else long_term_memory.redact(v_document, p_strings)::json end;
exception when data_exception or program_limit_exceeded then
  return case when p_document::text like any (long_term_memory.like_patterns(p_strings || long_term_memory.in_json(p_strings)))
              then '{}' else p_document end;
end
$$;

comment on function long_term_memory.redact(json, text[]) is
  'A document, with [erased] for each of the strings; as it was where it holds none of them.';

-- p_scope is a condition over t, of $1 the organization and $2 its workspaces.
create or replace function long_term_memory.rows_holding(
  p_table regclass, p_scope text, p_org_id uuid, p_workspaces text[], p_strings text[])
returns text[] language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
declare
  v_conditions text;
  v_keys       text[];
begin
  -- byte by byte, whatever the collation of the column
  select string_agg(case w.kind
           when 'text' then format('t.%I::text collate "C" like any ($3)', w.name)
           when 'texts' then format('array_to_string(t.%I, chr(10)) collate "C" like any ($3)', w.name)
           when 'jsonb' then format('t.%I::text collate "C" like any ($4)', w.name)
           else format('long_term_memory.redact(t.%1$I, $5)::text <> t.%1$I::text', w.name) end, ' or ')
  into v_conditions
  from long_term_memory.word_columns(p_table) w
  where w.kind in ('text', 'texts', 'json', 'jsonb') and not w.is_name and not (w.is_unique and not w.is_nullable);
  execute format('select coalesce(array_agg(t.%I::text), ''{}'') from %s t where (%s) and (%s)',
                 long_term_memory.key_of(p_table), p_table, p_scope, v_conditions)
  into v_keys
  using p_org_id, p_workspaces, long_term_memory.like_patterns(p_strings),
        long_term_memory.like_patterns(long_term_memory.in_json(p_strings)), p_strings;
  return v_keys;
end
$$;

comment on function long_term_memory.rows_holding(regclass, text, uuid, text[], text[]) is
  'The keys of the rows in scope that hold one of the strings, in any column that may be cleaned.';

create or replace function long_term_memory.names_holding(
  p_table regclass, p_scope text, p_org_id uuid, p_workspaces text[], p_strings text[])
returns text[] language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
declare
  v_column name;
  v_found  text[];
  v_names  text[] := '{}';
begin
  for v_column in
    select w.name from long_term_memory.word_columns(p_table) w
    where w.kind = 'text' and (w.is_name or w.is_unique and not w.is_nullable)
  loop
    execute format('select coalesce(array_agg(distinct t.%1$I::text), ''{}'') from %2$s t
                    where (%3$s) and t.%1$I::text collate "C" like any ($3)', v_column, p_table, p_scope)
    into v_found using p_org_id, p_workspaces, long_term_memory.like_patterns(p_strings);
    v_names := v_names || v_found;
  end loop;
  return v_names;
end
$$;

comment on function long_term_memory.names_holding(regclass, text, uuid, text[], text[]) is
  'Names in scope (of workspaces, projects, tasks, channels, runs; keys) that hold one of the strings. They are not changed.';

-- What was made of a text that changed goes with it: vectors, lexemes, hashes. A bytea is taken for a hash by its length.
create or replace function long_term_memory.clean_rows(
  p_table regclass, p_keys text[], p_strings text[], p_keep text[] default '{}', p_set jsonb default '{}')
returns text[] language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_key      name := long_term_memory.key_of(p_table);
  v_type     text;
  v_sets     text;
  v_read     text;
  v_changed  text;
  v_reworded text;
  v_keys     text[];
  v_rule     text;
begin
  v_type := case v_key when 'ctid' then 'tid' else (select format_type(a.atttypid, null) from pg_attribute a
                                                    where a.attrelid = p_table and a.attname = v_key) end;
  select string_agg(case
           when p_set ? w.name then format('%I = %s', w.name, p_set ->> w.name)
           when w.name in ('content_hash', 'content_fingerprint') or w.kind = 'vector'
             then format('%1$I = case when r.is_reworded then %2$s else t.%1$I end', w.name, w.emptied)
           when w.kind = 'tsvector' then format('%1$I = %2$s', w.name, w.emptied)
           when w.kind = 'bytea'
             then format('%1$I = case when octet_length(t.%1$I) in (16, 20, 28, 32, 48, 64) then %2$s else t.%1$I end',
                         w.name, w.emptied)
           when w.is_unique then format('%1$I = case when r.%1$I::text = t.%1$I::text then t.%1$I end', w.name)
           else format('%1$I = r.%1$I', w.name) end, ', '),
         string_agg(c.cleaned || format('::%s as %I', w.type, w.name), ', '),
         string_agg(format('o.%I::text is distinct from ', w.name) || c.cleaned || '::text', ' or '),
         coalesce(string_agg(format('o.%I::text is distinct from ', w.name) || c.cleaned || '::text', ' or ')
                  filter (where w.kind in ('text', 'texts')), 'false')
  into v_sets, v_read, v_changed, v_reworded
  from long_term_memory.word_columns(p_table) w
  left join lateral (
    select format('long_term_memory.redact(o.%I%s, $2)', w.name, case when w.kind = 'text' then '::text' end) as cleaned
    where w.kind in ('text', 'texts', 'json', 'jsonb')) as c on true
  where w.kind <> 'other' and not w.is_name and not (w.is_unique and not w.is_nullable) and w.name <> all (p_keep);
  execute format('select from %s t where t.%I = any ($1::%s[]) order by t.%2$I for no key update', p_table, v_key, v_type)
  using p_keys;
  begin
    execute format(
      'with cleaned as (
         update %1$s t set %2$s
         from (select o.%3$I as key, %4$s, (%5$s) as is_changed, (%6$s) as is_reworded
               from %1$s o where o.%3$I = any ($1::%7$s[]) offset 0) as r
         where t.%3$I = r.key and r.is_changed returning t.%3$I::text as key)
       select coalesce(array_agg(c.key), ''{}'') from cleaned c',
      p_table, v_sets, v_key, v_read, v_changed, v_reworded, v_type)
    into v_keys using p_keys, p_strings;
  exception when integrity_constraint_violation or data_exception then
    get stacked diagnostics v_rule = constraint_name;
    perform long_term_memory.refuse_rule(p_table, v_rule, sqlstate);
  end;
  return v_keys;
end
$$;

comment on function long_term_memory.clean_rows(regclass, text[], text[], text[], jsonb) is
  'Takes the strings out of these rows, and out of them what was made of a text that changed: p_keep stays, p_set says what a column gets (an expression over t, the row, and r, its columns without the strings). Answers the keys of those that changed.';

-- long_term_memory/215_clean_strings.sql ----------------------------------------------------------------------------

-- Strings that an officer names, wherever they stand in rows of the organization and of its workspaces. A thought can be many
-- memories': it is cleaned only where each of them is in a workspace of the organization.

create or replace function long_term_memory.searched_tables(p_with_ledger boolean)
returns table (name text, scope text, only_names boolean)
language sql immutable parallel safe
set search_path = public, extensions, pg_temp
as $$
  with scopes as (
    select 't.workspace_id::text = any ($2)' as own,
           'exists (select from public.agent_memories x where x.id = t.%s and x.workspace_id::text = any ($2))' as memorys,
           'exists (select from public.agent_memories x where x.id = t.from_memory_id and x.workspace_id::text = any ($2))
            and exists (select from public.agent_memories x where x.id = t.to_memory_id and x.workspace_id::text = any ($2))' as ends)
  select t.name, t.scope, t.only_names
  from scopes s cross join lateral (values
    (1, 'public.agent_memory_recall_traces', s.own, false),
    (2, 'public.agent_memories', s.own, false),
    (3, 'public.agent_memory_recall_items',
     'exists (select from public.agent_memory_recall_traces x
              where x.id = t.trace_id and x.workspace_id::text = any ($2))', false),
    (4, 'public.agent_decision_ledger', format(s.memorys, 'memory_id'), false),
    (5, 'public.agent_decision_edges', s.ends, false),
    (6, 'public.agent_memory_relations', s.ends, false),
    (7, 'public.agent_memory_source_refs', format(s.memorys, 'memory_id'), false),
    (8, 'public.agent_memory_artifacts', format(s.memorys, 'memory_id'), false),
    (9, 'public.agent_memory_review_actions', format(s.memorys, 'memory_id'), false),
    (10, 'ranked_ledger.lifecycle_transitions', format(s.memorys, 'memory_id'), false),
    (11, 'ranked_ledger.enrolment_failures', s.own, false),
    (12, 'public.agent_memory_audit_events',
     'coalesce(t.workspace_id::text, (select x.workspace_id::text from public.agent_memories x where x.id = t.memory_id),
               (select x.workspace_id::text from public.agent_memory_recall_traces x where x.id = t.trace_id))
      = any ($2)', false),
    (13, 'public.thoughts',
     'exists (select from public.agent_memories x where x.thought_id = t.id)
      and not exists (select from public.agent_memories x
                      where x.thought_id = t.id and x.workspace_id::text <> all ($2))', false),
    (14, 'ranked_ledger.streams', s.own, true),
    (15, 'ranked_ledger.idempotency_keys', s.own, true),
    (16, 'long_term_memory.agent_memories', 't.org_id = $1', false),
    (17, 'long_term_memory.memory_events', 't.org_id = $1', false),
    (18, 'long_term_memory.recalls', 't.org_id = $1', false),
    (19, 'long_term_memory.idempotency_keys', 't.org_id = $1', true)) as t (position, name, scope, only_names)
  where p_with_ledger or t.name like 'long\_term\_memory.%'
  order by t.position
$$;

comment on function long_term_memory.searched_tables(boolean) is
  'The tables in which strings are looked for, in the order of their locks, and which of their rows t are in scope: $1 is the organization, $2 its workspaces.';

create or replace function long_term_memory.find_strings(p_org_id uuid, p_workspaces text[], p_strings text[])
returns jsonb language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
declare
  v_table record;
  v_keys  text[];
  v_found jsonb := '{}';
begin
  for v_table in
    select t.* from long_term_memory.searched_tables(long_term_memory.has_ledger()) t
    where p_strings <> '{}' and not t.only_names
  loop
    v_keys := long_term_memory.rows_holding(v_table.name::regclass, v_table.scope, p_org_id, p_workspaces, p_strings);
    if v_keys <> '{}' then
      v_found := v_found || jsonb_build_object(v_table.name, v_keys);
    end if;
  end loop;
  return v_found;
end
$$;

comment on function long_term_memory.find_strings(uuid, text[], text[]) is
  'The rows that hold one of the strings: {table: [keys]}.';

create or replace function long_term_memory.keys_found(p_found jsonb, p_table text)
returns text[] language sql immutable parallel safe
set search_path = public, extensions, pg_temp
as $$
  select array(select jsonb_array_elements_text(p_found -> p_table))
$$;

comment on function long_term_memory.keys_found(jsonb, text) is 'The keys of a table among what find_strings found.';

create or replace function long_term_memory.decisions_found(p_found jsonb)
returns uuid[] language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
begin
  return array(
    select k.key::uuid from unnest(long_term_memory.keys_found(p_found, 'public.agent_memories')) as k (key)
    union
    select l.memory_id from public.agent_decision_ledger l
    where l.id = any (long_term_memory.keys_found(p_found, 'public.agent_decision_ledger')::uuid[])
    union
    select m.id from public.agent_memories m
    where m.thought_id = any (long_term_memory.keys_found(p_found, 'public.thoughts')::uuid[]));
end
$$;

comment on function long_term_memory.decisions_found(jsonb) is
  'The memories of the host whose text, rationale or thought is about to be cleaned.';

create or replace function long_term_memory.names_left(p_org_id uuid, p_workspaces text[], p_strings text[])
returns int language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
declare
  v_table record;
  v_names text[] := '{}';
begin
  for v_table in select t.* from long_term_memory.searched_tables(long_term_memory.has_ledger()) t where p_strings <> '{}' loop
    v_names := v_names
      || long_term_memory.names_holding(v_table.name::regclass, v_table.scope, p_org_id, p_workspaces, p_strings);
  end loop;
  return (select count(distinct u.name) from unnest(v_names) as u (name));
end
$$;

comment on function long_term_memory.names_left(uuid, text[], text[]) is
  'How many names of workspaces, projects, tasks, channels, runs and keys hold one of the strings. Others refer to them, so they stay.';

create or replace function long_term_memory.clean_strings(
  p_org_id uuid, p_found jsonb, p_strings text[], p_caller long_term_memory.caller, p_asserted_by text)
returns int language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_table   record;
  v_keys    text[];
  v_cleaned int := 0;
begin
  perform set_config('long_term_memory.cleaning', 'on', true); -- a mark may be longer than what it stands for (check_memory)
  for v_table in
    select t.name,
           case t.name
             when 'public.agent_decision_ledger' then '{search_lexemes}' -- a trigger's
             when 'long_term_memory.agent_memories' then '{asserted_by}'
             when 'long_term_memory.memory_events' then '{outcome,grade,asserted_by}' else '{}' end::text[] as keep,
           case t.name
             when 'long_term_memory.agent_memories' then jsonb_build_object(
               'embedding_model', $e$case when r.is_reworded then '' else t.embedding_model end$e$) else '{}' end as set
    from long_term_memory.searched_tables(true) t where p_found ? t.name
  loop
    v_keys := long_term_memory.clean_rows(
      v_table.name::regclass, long_term_memory.keys_found(p_found, v_table.name), p_strings, v_table.keep, v_table.set);
    v_cleaned := v_cleaned + cardinality(v_keys);
    if v_table.name = 'long_term_memory.agent_memories' then
      perform long_term_memory.note_event(p_org_id, u.key::uuid, 'redacted', p_caller, p_asserted_by)
      from unnest(v_keys) as u (key);
      update long_term_memory.idempotency_keys k set digest = ''
      where k.org_id = p_org_id and k.memory_id = any (v_keys::uuid[]) and k.digest <> '';
    end if;
  end loop;
  perform set_config('long_term_memory.cleaning', '', true);
  return v_cleaned;
end
$$;

comment on function long_term_memory.clean_strings(uuid, jsonb, text[], long_term_memory.caller, text) is
  'Takes the strings out of the rows that find_strings found. Answers how many rows changed.';

-- long_term_memory/220_erase_memories.sql ---------------------------------------------------------------------------

-- An erasure in our own store. Tombstones keep ids, times, author, the user who wrote and the facts of a review; no words.

create or replace function long_term_memory.erase_memories(
  p_org_id uuid, p_subject_type text, p_subject_id uuid, p_caller long_term_memory.caller, p_asserted_by text)
returns jsonb language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_all     uuid[];
  v_erased  uuid[];
  v_reviews int;
begin
  -- lock, tombstones of before too: what their history holds goes now
  v_all := array(
    select m.id from long_term_memory.agent_memories m
    where m.org_id = p_org_id and m.subject_type = p_subject_type and m.subject_id = p_subject_id
    order by m.id for no key update);

  -- mutate
  update long_term_memory.memory_events e set text_before = null, note = null
  where e.org_id = p_org_id and e.memory_id = any (v_all) and (e.text_before is not null or e.note is not null);
  get diagnostics v_reviews = row_count;
  with erased as (
    update long_term_memory.agent_memories m set redacted_at = now()
    where m.org_id = p_org_id and m.id = any (v_all) and m.redacted_at is null returning m.id)
  select coalesce(array_agg(e.id order by e.id), '{}') into v_erased from erased e;
  update long_term_memory.idempotency_keys k set digest = ''
  where k.org_id = p_org_id and k.memory_id = any (v_all) and k.digest <> '';
  perform long_term_memory.note_event(p_org_id, u.id, 'erased', p_caller, p_asserted_by) from unnest(v_erased) as u (id);
  return jsonb_build_object('memories', cardinality(v_erased), 'reviews', v_reviews);
end
$$;

comment on function long_term_memory.erase_memories(uuid, text, uuid, long_term_memory.caller, text) is
  'Makes tombstones of a subject''s memories, and takes the words out of their history. Answers how many: memories, reviews.';

create or replace function long_term_memory.erase_recalls(p_org_id uuid, p_subject_type text, p_subject_id uuid)
returns int language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_recalls uuid[];
  v_emptied int;
begin
  v_recalls := array( -- a recall may be about two people whose erasures run at once
    select r.id from long_term_memory.recalls r
    where r.org_id = p_org_id and (r.query <> '' or r.arguments <> '{}') and r.id in (
      select s.recall_id from long_term_memory.recall_subjects s
      where s.org_id = p_org_id and s.subject_type = p_subject_type and s.subject_id = p_subject_id
      union -- of a memory that was said to be about somebody else when it was returned
      select i.recall_id from long_term_memory.agent_memories m
      join long_term_memory.recall_items i on i.memory_id = m.id and i.org_id = p_org_id
      where m.org_id = p_org_id and m.subject_type = p_subject_type and m.subject_id = p_subject_id)
    order by r.id for no key update);
  update long_term_memory.recalls r set query = '', arguments = '{}' where r.org_id = p_org_id and r.id = any (v_recalls);
  get diagnostics v_emptied = row_count;
  return v_emptied;
end
$$;

comment on function long_term_memory.erase_recalls(uuid, text, uuid) is
  'Takes question and arguments out of the recalls that returned something of a subject, or were said to be about one.';

create or replace function long_term_memory.texts_of(
  p_org_id uuid, p_subject_type text, p_subject_id uuid, p_decisions uuid[])
returns text[] language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
declare
  v_texts text[];
begin
  v_texts := array(
    select m.text from long_term_memory.agent_memories m
    where m.org_id = p_org_id and m.subject_type = p_subject_type and m.subject_id = p_subject_id and m.redacted_at is null
    union
    select e.text_before from long_term_memory.memory_events e
    join long_term_memory.agent_memories m on m.id = e.memory_id and m.org_id = e.org_id
    where m.org_id = p_org_id and m.subject_type = p_subject_type and m.subject_id = p_subject_id
      and e.text_before is not null);
  if p_decisions <> '{}' then
    v_texts := v_texts || array(
      select m.content::text from public.agent_memories m where m.id = any (p_decisions) and m.content <> '[erased]');
  end if;
  return v_texts;
end
$$;

comment on function long_term_memory.texts_of(uuid, text, uuid, uuid[]) is
  'What is about to be erased, as digests are made of it: memories, their former texts, the contents of decisions.';

create or replace function long_term_memory.keep_digests(
  p_erasure_id uuid, p_org_id uuid, p_subject_type text, p_subject_id uuid, p_texts text[], p_digest_key text)
returns int language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_kept int;
begin
  insert into long_term_memory.erased_digests (erasure_id, org_id, subject_type, subject_id, digest)
  select distinct p_erasure_id, p_org_id, p_subject_type, p_subject_id,
         long_term_memory.text_digest(p_digest_key, p_org_id, p_subject_type, p_subject_id, u.text)
  from unnest(p_texts) as u (text)
  on conflict do nothing;
  get diagnostics v_kept = row_count;
  return v_kept;
end
$$;

comment on function long_term_memory.keep_digests(uuid, uuid, text, uuid, text[], text) is
  'Keeps keyed digests of erased texts under their receipt. Answers how many are new.';

-- long_term_memory/230_erase_decisions.sql --------------------------------------------------------------------------

-- An erasure in the ledger. A decision keeps its place: ids, step, importance, edges, lifecycle; none of its words.
-- Everybody locks in one order, so that an erasure neither meets a deadlock nor causes one: standings, traces, memories, edges,
-- relations, items, ledger rows, each by its key. Standings come first since nobody else waits for one: who finds it held
-- leaves a mark. Ledger rows come last since a recall counts in them, with all that it has written in its hands.

create or replace function long_term_memory.attributed_decisions(
  p_org_id uuid, p_subject_type text, p_subject_id uuid, p_workspaces text[])
returns uuid[] language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
begin
  return array(
    select m.id from long_term_memory.decision_subjects s
    join public.agent_memories m on m.id = s.memory_id and m.workspace_id::text = any (p_workspaces)
    where s.org_id = p_org_id and s.subject_type = p_subject_type and s.subject_id = p_subject_id order by m.id);
end
$$;

comment on function long_term_memory.attributed_decisions(uuid, text, uuid, text[]) is
  'The decisions about a subject, in workspaces that belong to the organization now; erased ones too.';

-- Who writes something down beside a decision holds its key until the commit. The lock that waits for that is given back: kept,
-- it would refuse a host's transaction under an older snapshot.
create or replace function long_term_memory.await_writers(p_decisions uuid[])
returns void language plpgsql
set search_path = public, extensions, pg_temp
as $$
begin
  perform from public.agent_memories m where m.id = any (p_decisions) order by m.id for update;
  raise sqlstate 'RLGOT';
exception when sqlstate 'RLGOT' then
  null;
end
$$;

comment on function long_term_memory.await_writers(uuid[]) is
  'Waits for the transactions that have written something beside these decisions and are not committed yet.';

create or replace function long_term_memory.lock_decisions(p_touched uuid[], p_traces uuid[])
returns void language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_held   int[];
  v_before int[];
begin
  loop -- a recall may have made a standing anew while it was waited for: that one is seen by the next statement
    v_before := v_held;
    v_held := array(select h.row_no from (
      select s.row_no from ranked_ledger.standings s where s.memory_id = any (p_touched) order by s.memory_id for update) as h);
    exit when v_held = v_before;
  end loop;
  perform from public.agent_memory_recall_traces t where t.id = any (p_traces) order by t.id for no key update;
  perform long_term_memory.await_writers(p_touched);
  perform from public.agent_memories m where m.id = any (p_touched) order by m.id for no key update;
  perform from public.agent_memories m -- the others whose items change: a forget deletes the items of one in no order
  where m.id in (select i.memory_id from public.agent_memory_recall_items i where i.trace_id = any (p_traces))
  order by m.id for key share;
  perform from public.agent_decision_edges e
  where e.from_memory_id = any (p_touched) or e.to_memory_id = any (p_touched) order by e.id for no key update;
  perform from public.agent_memory_relations r
  where r.from_memory_id = any (p_touched) or r.to_memory_id = any (p_touched) order by r.id for no key update;
  perform from public.agent_memory_recall_items i
  where i.memory_id = any (p_touched) or i.trace_id = any (p_traces) order by i.trace_id, i.memory_id for no key update;
  perform from public.agent_decision_ledger l where l.memory_id = any (p_touched) order by l.memory_id for no key update;
end
$$;

comment on function long_term_memory.lock_decisions(uuid[], uuid[]) is
  'Locks decisions and traces, with what hangs on them, for an erasure.';

-- Which policy ranked, whether it went by words, and whether a use was counted, are no words: statistics rest on them, and a
-- use is counted once.
create or replace function long_term_memory.kept_facts(p_document jsonb)
returns jsonb language sql immutable parallel safe
set search_path = public, extensions, pg_temp
as $$
  select case when p_document is not null then coalesce(jsonb_object_agg(o.key, o.value), '{}') end
  from jsonb_each(case when jsonb_typeof(p_document) = 'object' then p_document else '{}' end) as o
  where o.key = 'recall_policy' and o.value #>> '{}' ~ '^[a-z0-9_.:-]{1,100}$'
     or o.key = 'relevance_source' and o.value #>> '{}' in ('cosine', 'fts', 'none')
     or o.key = 'max_items' and jsonb_typeof(o.value) = 'number'
     or o.key = 'usage_counted' and jsonb_typeof(o.value) = 'boolean'
$$;

comment on function long_term_memory.kept_facts(jsonb) is
  'What stays of a trace''s policy and of an item''s snapshot: recall_policy, relevance_source, max_items, usage_counted.';

create or replace function long_term_memory.empty_decisions(p_decisions uuid[])
returns uuid[] language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_mark constant text := $e$'[erased]'$e$;
  v_text    jsonb;
  v_changed uuid[];
  v_rows    uuid[];
begin
  -- a host's unique index over a text would refuse the second mark
  select jsonb_object_agg(w.name::text, case when w.is_unique then $e$('[erased] ' || t.id)$e$ else v_mark end) into v_text
  from long_term_memory.word_columns('public.agent_memories') w where w.name in ('content', 'summary');
  v_changed := long_term_memory.empty_rows(
    'public.agent_memories', 'id', p_decisions,
    '{visibility,memory_type,provenance_status,created_by,runtime_name,runtime_version,provider,model,review_status}',
    v_text || jsonb_build_object('thought_id', 'null', 'can_use_as_instruction', 'false', 'lifecycle_status',
      $e$case when t.lifecycle_status = 'superseded' then t.lifecycle_status else 'rejected' end$e$))::uuid[];
  v_rows := long_term_memory.empty_rows(
    'public.agent_decision_ledger', 'memory_id', p_decisions, '{}',
    jsonb_build_object('pinned', 'false', 'search_lexemes', $e$ranked_ledger.decision_lexemes(
      ranked_ledger.text_config(t.workspace_id),
      (select m.content from public.agent_memories m where m.id = t.memory_id), null,
      (select m.summary from public.agent_memories m where m.id = t.memory_id))$e$),
    'updated_at = now()');
  return array(
    select unnest(v_changed)
    union
    select l.memory_id from public.agent_decision_ledger l where l.id = any (v_rows));
end
$$;

comment on function long_term_memory.empty_decisions(uuid[]) is
  'Takes the words out of decisions and their ledger rows, unlinks their thoughts, and rejects those that are not superseded. Answers which changed.';

create or replace function long_term_memory.empty_surroundings(p_decisions uuid[])
returns jsonb language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_reviews int;
  v_events  int;
begin
  delete from public.agent_memory_source_refs s where s.memory_id = any (p_decisions);
  delete from public.agent_memory_artifacts a where a.memory_id = any (p_decisions);
  delete from ranked_ledger.enrolment_failures f where f.memory_id = any (p_decisions); -- a reason may quote the text
  perform long_term_memory.empty_rows('public.agent_memory_relations', e.name, p_decisions, '{relation}'),
          long_term_memory.empty_rows('public.agent_decision_edges', e.name, p_decisions, '{relation}')
  from unnest(array['from_memory_id', 'to_memory_id']::name[]) as e (name);
  v_reviews := cardinality(long_term_memory.empty_rows(
    'public.agent_memory_review_actions', 'memory_id', p_decisions, '{action,actor_id}'));
  perform long_term_memory.empty_rows('ranked_ledger.lifecycle_transitions', 'memory_id', p_decisions,
                                      '{lifecycle_before,lifecycle_status}');
  perform long_term_memory.empty_rows( -- statistics ask whether there is a reason
    'public.agent_memory_recall_items', 'memory_id', p_decisions, '{}',
    jsonb_build_object('use_policy_snapshot', 'long_term_memory.kept_facts(t.use_policy_snapshot)',
                       'ignored_reason', $e$case when t.ignored_reason is not null then '[erased]' end$e$));
  v_events := long_term_memory.empty_audit('memory_id', p_decisions);
  return jsonb_build_object('reviews', v_reviews, 'audit_events', v_events);
end
$$;

comment on function long_term_memory.empty_surroundings(uuid[]) is
  'Takes the words out of what hangs on decisions: sources and artifacts, relations, reviews, history, items of recalls, audit. Answers how many: reviews, audit_events.';

-- What an erasure itself has written says ids alone, and stays.
create or replace function long_term_memory.empty_audit(p_by name, p_ids uuid[])
returns int language plpgsql
set search_path = public, extensions, pg_temp
as $$
begin
  return cardinality(long_term_memory.empty_rows(
    'public.agent_memory_audit_events', p_by, p_ids, '{event_type,actor_kind,runtime_name,task_id}',
    jsonb_build_object('payload', $e$case
      when t.payload is null or t.payload ->> 'erasure_id' ~ '^[0-9a-f-]{36}$' and t.payload = jsonb_build_object(
             'kind', 'decision_erased', 'memory_id', t.memory_id, 'erasure_id', t.payload -> 'erasure_id')
        then t.payload else '{}' end$e$)));
end
$$;

comment on function long_term_memory.empty_audit(name, uuid[]) is
  'Takes payloads and labels out of audit events, by memory_id or trace_id. Answers how many changed.';

create or replace function long_term_memory.drop_thoughts(p_thoughts uuid[])
returns jsonb language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_thought uuid;
  v_deleted int := 0;
  v_lonely  uuid[];
begin
  -- the lock waits for a writer who is just pointing a memory at one; the next statement sees that memory
  perform from public.thoughts t where t.id = any (p_thoughts) order by t.id for update;
  v_lonely := array(
    select t.id from public.thoughts t
    where t.id = any (p_thoughts) and not exists (select from public.agent_memories m where m.thought_id = t.id) order by t.id);
  begin
    delete from public.thoughts t where t.id = any (v_lonely);
    get diagnostics v_deleted = row_count;
  exception when foreign_key_violation then -- a table of the host's refers to one: that one stays, empty
    foreach v_thought in array v_lonely loop
      begin
        delete from public.thoughts t where t.id = v_thought;
      exception when foreign_key_violation then
        perform long_term_memory.empty_rows('public.thoughts', 'id', array[v_thought], '{}', (
          select jsonb_build_object('content', case when w.is_unique then $e$('[erased] ' || t.id)$e$ else $e$'[erased]'$e$ end)
          from long_term_memory.word_columns('public.thoughts') w where w.name = 'content'));
      end;
      v_deleted := v_deleted + 1;
    end loop;
  end;
  return jsonb_build_object('thoughts_deleted', v_deleted,
    'thoughts_shared', (select count(*) from public.thoughts t where t.id = any (p_thoughts)
                        and exists (select from public.agent_memories m where m.thought_id = t.id)));
end
$$;

comment on function long_term_memory.drop_thoughts(uuid[]) is
  'Deletes thoughts that no memory points to any more; one that a table of the host''s refers to is emptied instead. Answers how many: thoughts_deleted, thoughts_shared.';

-- A decision whose copies lagged may be posted under words that its row has no more.
create or replace function long_term_memory.follow_changes(p_touched uuid[])
returns void language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_chunk uuid[];
begin
  if p_touched = '{}' then
    return;
  end if;
  -- a digest of the words would tell a guess at them; the key answers "gone" without it
  update ranked_ledger.idempotency_keys k set digest = '' where k.memory_ids && p_touched and k.digest <> '';
  -- where the ledger could not follow its memory, it noted why, and the note may quote what could not be read
  delete from ranked_ledger.enrolment_failures f where f.memory_id = any (p_touched) and f.operation = 'follow';
  update public.agent_decision_ledger l set search_lexemes = d.lexemes
  from (select r.memory_id,
               ranked_ledger.decision_lexemes(
                 ranked_ledger.text_config(r.workspace_id), m.content, r.rationale, m.summary) as lexemes
        from public.agent_decision_ledger r join public.agent_memories m on m.id = r.memory_id
        where r.memory_id = any (p_touched) offset 0) as d
  where l.memory_id = d.memory_id and l.search_lexemes is distinct from d.lexemes;
  for v_chunk in
    select array_agg(x.id) from (
      select u.id, row_number() over (order by u.id) as position from unnest(p_touched) as u (id)) as x
    group by (x.position - 1) / 500
  loop
    perform ranked_ledger.renew_copies(array(
      select unnest(ranked_ledger.wrong_copies(v_chunk))
      union
      select c.memory_id from ranked_ledger.stale_copies c where c.memory_id = any (v_chunk)));
  end loop;
end
$$;

comment on function long_term_memory.follow_changes(uuid[]) is
  'What was made of the words of decisions that changed: digests go, lexemes are read anew, copies are made where they lag.';

create or replace function long_term_memory.erase_decisions(
  p_org_id uuid, p_subject_type text, p_subject_id uuid, p_decisions uuid[], p_erasure_id uuid)
returns jsonb language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_thoughts uuid[];
  v_changed  uuid[];
  v_shared   int;
  v_counts   jsonb;
begin
  v_thoughts := array(
    select distinct m.thought_id from public.agent_memories m where m.id = any (p_decisions) and m.thought_id is not null);
  v_changed := long_term_memory.empty_decisions(p_decisions);
  v_counts := long_term_memory.empty_surroundings(p_decisions) || long_term_memory.drop_thoughts(v_thoughts);

  -- one that is about several people is erased for all of them
  with told as (
    update long_term_memory.decision_subjects s
    set erased_at = now(), erased_with_other = (s.subject_type, s.subject_id) <> (p_subject_type, p_subject_id)
    where s.memory_id = any (p_decisions) and s.erased_at is null
    returning s.memory_id, s.erased_with_other)
  select array(select unnest(v_changed) union select t.memory_id from told t),
         (select count(distinct t.memory_id) from told t where t.erased_with_other)
  into v_changed, v_shared;
  insert into public.agent_memory_audit_events (event_type, workspace_id, project_id, memory_id, actor_kind, payload)
  select 'memory_edited', m.workspace_id, m.project_id, m.id, 'system',
         jsonb_build_object('kind', 'decision_erased', 'memory_id', m.id, 'erasure_id', p_erasure_id)
  from public.agent_memories m where m.id = any (v_changed) order by m.id;
  return v_counts || jsonb_build_object('decisions', cardinality(v_changed), 'decisions_shared', v_shared);
end
$$;

comment on function long_term_memory.erase_decisions(uuid, text, uuid, uuid[], uuid) is
  'Erases decisions, which the caller has locked: their words, what hangs on them, thoughts that are nobody else''s. Answers how many of what.';

-- long_term_memory/240_erase_traces.sql -----------------------------------------------------------------------------

-- Traces of the ledger. One belongs to a subject when it returned a decision about them, or when its caller said so: its
-- question and payload go. Who reads the items for what was used and ignored reads the same numbers as before.

create or replace function long_term_memory.traces_of(
  p_org_id uuid, p_subject_type text, p_subject_id uuid, p_workspaces text[], p_decisions uuid[])
returns uuid[] language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
begin
  return array(
    select t.id from public.agent_memory_recall_traces t
    where t.workspace_id::text = any (p_workspaces) and t.id in (
      select s.trace_id from long_term_memory.trace_subjects s
      where s.org_id = p_org_id and s.subject_type = p_subject_type and s.subject_id = p_subject_id
      union
      select i.trace_id from public.agent_memory_recall_items i where i.memory_id = any (p_decisions))
    order by t.id);
end
$$;

comment on function long_term_memory.traces_of(uuid, text, uuid, text[], uuid[]) is
  'The traces that belong to a subject, in workspaces of the organization.';

create or replace function long_term_memory.erase_traces(
  p_org_id uuid, p_subject_type text, p_subject_id uuid, p_traces uuid[])
returns jsonb language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_traces int;
begin
  v_traces := cardinality(long_term_memory.empty_rows(
    'public.agent_memory_recall_traces', 'id', p_traces, '{runtime_name,runtime_version,schema_version}',
    '{"query": "''''", "response_policy": "long_term_memory.kept_facts(t.response_policy)"}'));
  -- why something was not used, in a question about them: unless it is about somebody else
  update public.agent_memory_recall_items i set ignored_reason = '[erased]'
  where i.trace_id = any (p_traces) and i.ignored_reason <> '[erased]' and not exists (
    select from long_term_memory.decision_subjects s
    where s.memory_id = i.memory_id and s.erased_at is null
      and (s.org_id, s.subject_type, s.subject_id) <> (p_org_id, p_subject_type, p_subject_id));
  return jsonb_build_object('traces', v_traces, 'audit_events', long_term_memory.empty_audit('trace_id', p_traces));
end
$$;

comment on function long_term_memory.erase_traces(uuid, text, uuid, uuid[]) is
  'Takes question, payload and reasons out of traces, and the payloads out of their audit events. Answers how many: traces, audit_events.';

-- long_term_memory/245_statistics.sql -------------------------------------------------------------------------------

-- What ANALYZE keeps of a column for the planner is its most common and its dividing values, word by word: they would outlive
-- the rows until the next one.

-- Of generated columns and of indexes over expressions, too. Names and closed lists keep theirs. A posting's term is a word in
-- eight bytes, which tells a guess at it.
create or replace function long_term_memory.statistics_of_words(p_table regclass)
returns table (relation regclass, name name)
language sql stable
set search_path = public, extensions, pg_temp
as $$
  select c.oid::regclass, s.attname
  from pg_class c
  join pg_namespace n on n.oid = c.relnamespace
  join pg_stats s on s.schemaname = n.nspname and s.tablename = c.relname and not s.inherited
  left join pg_attribute a on a.attrelid = c.oid and a.attname = s.attname
  left join pg_type t on t.oid = a.atttypid
  where (c.oid = p_table
         or c.oid in (select i.indexrelid from pg_index i where i.indrelid = p_table and i.indexprs is not null))
    and (s.most_common_vals is not null or s.histogram_bounds is not null or s.most_common_elems is not null)
    and (c.oid <> p_table or a.attgenerated <> '' and long_term_memory.kind_of_words(t.typname) is not null
         or p_table = to_regclass('ranked_ledger.postings') and s.attname = 'term'
         or s.attname in (select w.name from long_term_memory.word_columns(p_table) w where not w.is_name))
  order by 1, 2
$$;

comment on function long_term_memory.statistics_of_words(regclass) is
  'The columns of a table and of its indexes of which the planner keeps values that may be words.';

-- CREATE STATISTICS, which nothing clears but a new ANALYZE.
create or replace function long_term_memory.has_joint_statistics(p_table regclass)
returns boolean language sql stable
set search_path = public, extensions, pg_temp
as $$
  select exists (
    select from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where c.oid = p_table and (
      exists (select from pg_stats_ext s
              where s.schemaname = n.nspname and s.tablename = c.relname and s.most_common_vals is not null)
      or exists (select from pg_stats_ext_exprs s where s.schemaname = n.nspname and s.tablename = c.relname)))
$$;

comment on function long_term_memory.has_joint_statistics(regclass) is
  'Whether the planner keeps values of several columns, or of expressions, of a table.';

create or replace function long_term_memory.renew_statistics(p_tables text[])
returns text[] language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_table   regclass;
  v_is_left boolean;
  v_left    text[] := '{}';
begin
  for v_table in
    select to_regclass(u.name) from unnest(p_tables) as u (name)
    where exists (select from long_term_memory.statistics_of_words(to_regclass(u.name)))
  loop
    begin
      execute format('lock table %s in share update exclusive mode nowait', v_table);
      if to_regprocedure('pg_catalog.pg_clear_attribute_stats(text, text, text, boolean)') is not null -- PostgreSQL 18
         and not long_term_memory.has_joint_statistics(v_table) then
        execute 'select pg_catalog.pg_clear_attribute_stats(n.nspname::text, c.relname::text, s.name::text, false)
                 from long_term_memory.statistics_of_words($1) s
                 join pg_catalog.pg_class c on c.oid = s.relation join pg_catalog.pg_namespace n on n.oid = c.relnamespace'
        using v_table;
        v_is_left := false;
      else -- of an empty table nothing is made anew
        execute format('analyze %s', v_table);
        execute format('select not exists (select from %s)', v_table) into v_is_left;
      end if;
    exception when lock_not_available then -- a vacuum has it, and may for hours
      v_is_left := true;
    end;
    if v_is_left then
      v_left := v_left || v_table::text;
    end if;
  end loop;
  return v_left;
end
$$;

comment on function long_term_memory.renew_statistics(text[]) is
  'Takes what the planner has kept of the values of these tables'' columns of words, or has it made anew. Answers the tables where it could not.';

-- long_term_memory/250_erase_subject.sql ----------------------------------------------------------------------------

-- One statement, one transaction, both stores. Erasures of an organization take turns: each locks rows of everywhere.

create or replace function long_term_memory.hold_erasures(p_org_id uuid)
returns void language plpgsql
set search_path = public, extensions, pg_temp
as $$
begin
  perform pg_advisory_xact_lock(hashtextextended('ranked_ledger: erasures of ' || p_org_id, 0));
end
$$;

comment on function long_term_memory.hold_erasures(uuid) is
  'Held by an erasure until its commit: one at a time in an organization.';

-- A workspace must not go to another organization while its decisions are erased for this one.
create or replace function long_term_memory.hold_workspaces(p_org_id uuid)
returns text[] language plpgsql
set search_path = public, extensions, pg_temp
as $$
begin
  return array(select w.workspace_id from long_term_memory.workspace_orgs w where w.org_id = p_org_id
               order by w.workspace_id for share);
end
$$;

comment on function long_term_memory.hold_workspaces(uuid) is 'The workspaces of an organization, kept to it until the commit.';

-- Rows that a policy hides would be left without a word.
create or replace function long_term_memory.check_visible()
returns void language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
declare
  v_hidden text;
begin
  select string_agg(t.name, ', ') into v_hidden
  from long_term_memory.searched_tables(long_term_memory.has_ledger()) t where row_security_active(t.name);
  if v_hidden is not null then
    raise sqlstate '42501' using
      message = format('Row level security is forced on %s, also for %I, who erases: rows could be left. Nothing was erased.',
                       v_hidden, current_user),
      hint = 'Give that role BYPASSRLS, or set these tables to NO FORCE ROW LEVEL SECURITY.';
  end if;
end
$$;

comment on function long_term_memory.check_visible() is 'Refuses (42501) an erasure whose role does not see every row.';

create or replace function long_term_memory.is_known(p_org_id uuid, p_subject_type text, p_subject_id uuid)
returns boolean language sql stable
set search_path = public, extensions, pg_temp
as $$
  select exists (select from long_term_memory.agent_memories m where (m.org_id, m.subject_type, m.subject_id) = ($1, $2, $3))
      or exists (select from long_term_memory.recall_subjects s where (s.org_id, s.subject_type, s.subject_id) = ($1, $2, $3))
      or exists (select from long_term_memory.decision_subjects s where (s.org_id, s.subject_type, s.subject_id) = ($1, $2, $3))
      or exists (select from long_term_memory.trace_subjects s where (s.org_id, s.subject_type, s.subject_id) = ($1, $2, $3))
      or exists (select from long_term_memory.erasures e where (e.org_id, e.subject_type, e.subject_id) = ($1, $2, $3))
$$;

comment on function long_term_memory.is_known(uuid, text, uuid) is 'Whether anything was ever held about a subject.';

create or replace function long_term_memory.added(p_counts jsonb, p_more jsonb)
returns jsonb language sql immutable parallel safe
set search_path = public, extensions, pg_temp
as $$
  select jsonb_object_agg(k.key, coalesce((p_counts ->> k.key)::bigint, 0) + coalesce((p_more ->> k.key)::bigint, 0))
  from (select jsonb_object_keys(p_counts) union select jsonb_object_keys(p_more)) as k (key)
$$;

comment on function long_term_memory.added(jsonb, jsonb) is 'Counts of the same names, added up.';

-- A host's trigger may copy rows as they were into a table that we know nothing of.
create or replace function long_term_memory.triggers_of_the_host()
returns text[] language sql stable
set search_path = public, extensions, pg_temp
as $$
  select array(
    select format('%s on %s', t.tgname, t.tgrelid::regclass)
    from pg_trigger t join pg_proc p on p.oid = t.tgfoid
    join long_term_memory.searched_tables(long_term_memory.has_ledger()) s on t.tgrelid = to_regclass(s.name)
    where not t.tgisinternal and t.tgenabled in ('O', 'A')
      and t.tgtype & 24 <> 0 and t.tgtype & 2 = 0 -- after an update or a delete
      and p.pronamespace <> 'long_term_memory'::regnamespace and p.pronamespace is distinct from to_regnamespace('ranked_ledger')
    order by 1)
$$;

comment on function long_term_memory.triggers_of_the_host() is
  'Triggers of others that run after an update or a delete of what an erasure changes.';

create or replace function long_term_memory.views_with_rows()
returns text[] language sql stable
set search_path = public, extensions, pg_temp
as $$
  with recursive views as ( -- also those over views
    select r.ev_class as view
    from pg_depend d join pg_rewrite r on r.oid = d.objid and d.classid = 'pg_rewrite'::regclass
    join long_term_memory.searched_tables(long_term_memory.has_ledger()) s on d.refobjid = to_regclass(s.name)
    union
    select r.ev_class from views v
    join pg_depend d on d.refobjid = v.view and d.classid = 'pg_rewrite'::regclass join pg_rewrite r on r.oid = d.objid)
  select array(select c.oid::regclass::text from views v join pg_class c on c.oid = v.view where c.relkind = 'm' order by 1)
$$;

comment on function long_term_memory.views_with_rows() is
  'Materialized views over what an erasure changes: they keep rows as they were until they are refreshed.';

create or replace function long_term_memory.erasure_notes(p_counts jsonb, p_statistics text[])
returns jsonb language sql stable
set search_path = public, extensions, pg_temp
as $$
  select jsonb_agg(n.note order by n.position)
  from (values
    (1, case when (p_counts ->> 'decisions_shared')::int > 0 then format(
      '%s of the decisions are about others too, and were erased for them as well: their subject access says so.',
      p_counts ->> 'decisions_shared') end),
    (2, case when (p_counts ->> 'thoughts_shared')::int > 0 then format(
      '%s thoughts stay, unlinked, since other memories point to them; give exact strings to clean what is in them.',
      p_counts ->> 'thoughts_shared') end),
    (3, case when (p_counts ->> 'names_left')::int > 0 then format(
      '%s names of workspaces, projects, tasks, channels, runs or keys hold one of the strings, and stay: others refer to them.',
      p_counts ->> 'names_left') end),
    (4, case when cardinality(p_statistics) > 0 then format(
      'The planner''s statistics of %s could not be renewed and may quote values: run ANALYZE on them when they hold rows.',
      array_to_string(p_statistics, ', ')) end),
    (5, (select format('Triggers of this project ran, and may have copied rows as they were: %s.',
                       array_to_string(t.names, ', '))
         from long_term_memory.triggers_of_the_host() as t (names)
         where t.names <> '{}' and exists (select from jsonb_each_text(p_counts - 'names_left') as c where c.value <> '0'))),
    (6, (select format('Materialized views keep what they read before: refresh %s.', array_to_string(v.names, ', '))
         from long_term_memory.views_with_rows() as v (names)
         where v.names <> '{}' and exists (select from jsonb_each_text(p_counts - 'names_left') as c where c.value <> '0'))),
    (7, 'Free text that nothing ties to the subject is out of reach, unless it holds one of the strings that were given.'),
    (8, 'Dead versions of rows are removed by vacuum; backups, the log and older replicas are outside of this database.')
  ) as n (position, note) where n.note is not null
$$;

comment on function long_term_memory.erasure_notes(jsonb, text[]) is 'What an officer has to know of an erasure, in sentences.';

-- The ledger's part. All that is about to change is locked first, in one order.
create or replace function long_term_memory.lock_in_ledger(
  p_org_id uuid, p_subject_type text, p_subject_id uuid, p_strings text[],
  out decisions uuid[], out traces uuid[], out holding jsonb, out touched uuid[])
language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_workspaces text[] := long_term_memory.hold_workspaces(p_org_id);
begin
  decisions := long_term_memory.attributed_decisions(p_org_id, p_subject_type, p_subject_id, v_workspaces);
  traces := long_term_memory.traces_of(p_org_id, p_subject_type, p_subject_id, v_workspaces, decisions);
  holding := long_term_memory.find_strings(p_org_id, v_workspaces, p_strings);
  touched := array(select unnest(decisions) union select unnest(long_term_memory.decisions_found(holding)));
  perform long_term_memory.lock_decisions(
    touched, traces || long_term_memory.keys_found(holding, 'public.agent_memory_recall_traces')::uuid[] || array(
      select i.trace_id from public.agent_memory_recall_items i
      where i.id = any (long_term_memory.keys_found(holding, 'public.agent_memory_recall_items')::uuid[])));
  -- one that was moved away meanwhile is not ours any more
  decisions := array(
    select unnest(decisions)
    intersect
    select unnest(long_term_memory.attributed_decisions(p_org_id, p_subject_type, p_subject_id, v_workspaces)));
end
$$;

comment on function long_term_memory.lock_in_ledger(uuid, text, uuid, text[]) is
  'Locks what an erasure changes in the ledger. Answers the decisions and traces of the subject, the rows that hold a string, and all decisions that change.';

create or replace function long_term_memory.no_counts()
returns jsonb language sql immutable parallel safe
return '{"memories": 0, "decisions": 0, "decisions_shared": 0, "thoughts_deleted": 0, "thoughts_shared": 0, "traces": 0,
         "recalls": 0, "reviews": 0, "audit_events": 0, "strings_cleaned": 0, "names_left": 0}'::jsonb;

comment on function long_term_memory.no_counts() is 'What an erasure counts, all zero.';

create or replace function long_term_memory.erase_everywhere(
  p_org_id uuid, p_subject_type text, p_subject_id uuid, p_strings text[], p_digest_key text, p_erasure_id uuid,
  p_caller long_term_memory.caller, p_asserted_by text, out counts jsonb, out texts text[])
language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_has_ledger constant boolean := long_term_memory.has_ledger();
  v_ledger record;
begin
  -- lock
  perform long_term_memory.hold_erasures(p_org_id);
  perform long_term_memory.hold_subject(p_org_id, p_subject_type, p_subject_id);
  perform long_term_memory.check_visible();
  if v_has_ledger then
    v_ledger := long_term_memory.lock_in_ledger(p_org_id, p_subject_type, p_subject_id, p_strings);
  else
    select '{}'::uuid[] as decisions, '{}'::uuid[] as traces, '{}'::uuid[] as touched,
           long_term_memory.find_strings(p_org_id, '{}', p_strings) as holding
    into v_ledger;
  end if;
  if p_digest_key is not null then
    texts := long_term_memory.texts_of(p_org_id, p_subject_type, p_subject_id, v_ledger.decisions);
  end if;

  -- mutate
  counts := long_term_memory.added(long_term_memory.no_counts(), long_term_memory.erase_memories(
    p_org_id, p_subject_type, p_subject_id, p_caller, p_asserted_by));
  counts := counts || jsonb_build_object('recalls', long_term_memory.erase_recalls(p_org_id, p_subject_type, p_subject_id));
  if v_has_ledger then
    counts := long_term_memory.added(counts, long_term_memory.erase_decisions(
      p_org_id, p_subject_type, p_subject_id, v_ledger.decisions, p_erasure_id));
    counts := long_term_memory.added(counts, long_term_memory.erase_traces(
      p_org_id, p_subject_type, p_subject_id, v_ledger.traces));
  end if;
  counts := counts || jsonb_build_object(
    'strings_cleaned', long_term_memory.clean_strings(p_org_id, v_ledger.holding, p_strings, p_caller, p_asserted_by));
  if v_has_ledger then
    perform long_term_memory.follow_changes(v_ledger.touched);
  end if;
  counts := counts || jsonb_build_object('names_left', long_term_memory.names_left(
    p_org_id, array(select w.workspace_id from long_term_memory.workspace_orgs w where w.org_id = p_org_id), p_strings));
end
$$;

comment on function long_term_memory.erase_everywhere(uuid, text, uuid, text[], text, uuid, long_term_memory.caller, text) is
  'Erases a subject in both stores. Answers how many of what, and, where a digest key is given, the texts that are gone.';

-- A stranger about whom nothing was ever held leaves no trace here, whether or not there is such an organization.
create or replace function long_term_memory.erase(
  p_org_id uuid, p_subject_type text, p_subject_id uuid, p_strings text[], p_digest_key text,
  p_caller long_term_memory.caller, p_asserted_by text, p_dry_run boolean)
returns jsonb language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_erasure_id uuid := gen_random_uuid();
  v_was_known  boolean := long_term_memory.is_known(p_org_id, p_subject_type, p_subject_id);
  v_done       record;
  v_found      boolean;
  v_already    boolean;
  v_statistics text[] := '{}';
  v_digests    int := 0;
begin
  if p_caller.kind = 'user' and p_caller.role is null and not v_was_known then -- and holds up nobody
    return jsonb_build_object('receipt_id', null, 'erased_at', now(), 'dry_run', p_dry_run, 'already', false,
      'counts', long_term_memory.no_counts(), 'digests', 0,
      'notes', long_term_memory.erasure_notes(long_term_memory.no_counts(), '{}'));
  end if;
  v_done := long_term_memory.erase_everywhere(
    p_org_id, p_subject_type, p_subject_id, p_strings, p_digest_key, v_erasure_id, p_caller, p_asserted_by);
  v_found := exists (select from jsonb_each_text(v_done.counts - 'names_left') as c where c.value <> '0');
  v_already := not v_found and exists (
    select from long_term_memory.erasures e
    where e.org_id = p_org_id and e.subject_type = p_subject_type and e.subject_id = p_subject_id);
  if v_found or v_was_known then
    insert into long_term_memory.erasures (
      id, org_id, subject_type, subject_id, grade, actor_id, asserted_by, counts, key_check)
    values (v_erasure_id, p_org_id, p_subject_type, p_subject_id,
            case when p_caller.kind = 'user' then 'verified' when p_asserted_by is not null then 'asserted' else 'service' end,
            p_caller.user_id, p_asserted_by, v_done.counts,
            case when p_digest_key is not null then long_term_memory.key_check(p_digest_key, p_org_id) end);
    if p_digest_key is not null then
      v_digests := long_term_memory.keep_digests(
        v_erasure_id, p_org_id, p_subject_type, p_subject_id, v_done.texts, p_digest_key);
    end if;
    insert into long_term_memory.audit_events (org_id, kind, actor_id, payload)
    values (p_org_id, 'subject_erased', p_caller.user_id, jsonb_build_object(
      'erasure_id', v_erasure_id, 'subject_type', p_subject_type, 'subject_id', p_subject_id, 'counts', v_done.counts));
  end if;
  if (v_found or v_was_known) and not p_dry_run then -- what was forgotten before may still be quoted there
    v_statistics := long_term_memory.renew_statistics(
      array(select t.name from long_term_memory.searched_tables(long_term_memory.has_ledger()) t)
      || '{ranked_ledger.postings,ranked_ledger.decision_vectors}'); -- made of words
  end if;
  return jsonb_build_object(
    'receipt_id', case when v_found or v_was_known then v_erasure_id end, 'erased_at', now(), 'dry_run', p_dry_run,
    'already', v_already, 'counts', v_done.counts, 'digests', v_digests,
    'notes', long_term_memory.erasure_notes(v_done.counts, v_statistics));
end
$$;

comment on function long_term_memory.erase(uuid, text, uuid, text[], text, long_term_memory.caller, text, boolean) is
  'The erasure itself, with its receipt, digests and audit event, once its caller is known and its arguments are checked.';

create or replace function long_term_memory.erase_subject(
  p_org_id uuid, p_subject_type text, p_subject_id uuid, p_also_containing text[] default null, p_digest_key text default null,
  p_asserted_by text default null, p_dry_run boolean default false)
returns jsonb language plpgsql security definer
set search_path = public, extensions, pg_temp
as $$
declare
  v_caller  long_term_memory.caller :=
    long_term_memory.admit(p_org_id, '{owner}', long_term_memory.is_caller(p_subject_type, p_subject_id));
  v_strings text[] := long_term_memory.check_strings(coalesce(p_also_containing, '{}'));
  v_answer  jsonb;
begin
  -- guard
  perform long_term_memory.check_subject(p_subject_type, p_subject_id), long_term_memory.check_digest_key(p_digest_key);
  if p_subject_id is null then
    raise sqlstate 'RL474' using
      message = 'An erasure needs its subject.',
      hint = 'Give p_subject_id; memories of a workspace without one are forgotten one by one.';
  elsif v_caller.kind = 'service' and p_asserted_by is not null then
    perform long_term_memory.asserted_member(p_org_id, p_asserted_by, '{owner}');
  elsif p_asserted_by is not null then
    raise sqlstate '22023' using
      message = 'p_asserted_by is for the service role.', hint = 'Leave it out: your token says who you are.';
  elsif v_strings <> '{}' and v_caller.kind = 'user' and v_caller.role is distinct from 'owner' then
    raise sqlstate '42501' using -- strings reach into rows about others
      message = 'You may not have strings taken out of this organization''s rows.',
      hint = 'It takes the role owner in the organization. Leave p_also_containing out to have what is held about you erased.';
  end if;

  -- A host's own statements lock rows in orders of their own. A dry run is the real one, taken back.
  for v_attempt in 1 .. 5 loop
    begin
      v_answer := long_term_memory.erase(p_org_id, p_subject_type, p_subject_id, v_strings, p_digest_key, v_caller,
                                         p_asserted_by, coalesce(p_dry_run, false));
      if p_dry_run then
        raise sqlstate 'RLDRY';
      end if;
      exit;
    exception
      when sqlstate 'RLDRY' then
        v_answer := v_answer || '{"receipt_id": null}';
        exit;
      when deadlock_detected then
        if v_attempt = 5 then
          raise;
        end if;
        perform pg_sleep(0.05 + 0.2 * random());
    end;
  end loop;
  return v_answer;
end
$$;

comment on function long_term_memory.erase_subject(uuid, text, uuid, text[], text, text, boolean) is
  'Behind public.erase_subject, with the rights of the stores'' owner.';

create or replace function public.erase_subject(
  p_org_id uuid, p_subject_type text, p_subject_id uuid, p_also_containing text[] default null, p_digest_key text default null,
  p_asserted_by text default null, p_dry_run boolean default false)
returns jsonb language sql
set search_path = public, extensions, pg_temp
set statement_timeout = '60s' -- the API takes it over for the request
as $$
  select long_term_memory.erase_subject(p_org_id, p_subject_type, p_subject_id, p_also_containing, p_digest_key, p_asserted_by,
                                        p_dry_run)
$$;

comment on function public.erase_subject(uuid, text, uuid, text[], text, text, boolean) is
  'Erases a person, or whoever a subject is, from both stores, with a receipt: memories, decisions, what reviews, audit and recalls hold of them, and the exact strings of p_also_containing. p_dry_run answers what it would do. For owners, the subject themself, and the service.';

-- long_term_memory/260_subject_access.sql ---------------------------------------------------------------------------

-- Everything that both stores hold about a subject, in one document that a person can read. Each part is one pass of index
-- look-ups, whose plans subject_access fixes for all of them: what statistics say of tables that were empty a moment ago is
-- no guide, and a subject may have five thousand rows. So nothing is left to be joined in another order than it stands in
-- here, or looked up by the organization, of which there are as many rows: each next table comes in a subquery of its own.

create or replace function long_term_memory.memories_held(p_org_id uuid, p_subject_type text, p_subject_id uuid)
returns jsonb language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
begin
  return coalesce((
    select jsonb_agg(to_jsonb(x) order by x.created_at, x.memory_id)
    from (
      select m.id as memory_id, m.workspace_id, m.text, m.author,
             long_term_memory.grade(m.written_by, m.asserted_by) as grade, m.written_by, m.asserted_by,
             m.source_run_id, m.created_date as created_at, m.updated_at, m.expires_at,
             coalesce(m.expires_at <= now(), false) as expired, m.can_use_as_instruction,
             nullif(m.embedding_model, '') as embedding_model, m.redacted_at as erased_at,
             case when m.review_outcome is not null then jsonb_build_object(
               'outcome', m.review_outcome, 'grade', m.review_grade, 'by', m.reviewed_by, 'at', m.reviewed_at) end as review,
             (select coalesce(jsonb_agg(jsonb_build_object(
                       'action', e.action, 'outcome', e.outcome, 'grade', e.grade, 'actor_id', e.actor_id,
                       'asserted_by', e.asserted_by, 'at', e.at, 'note', e.note, 'text_before', e.text_before,
                       'writer_before', e.writer_before)
                       order by e.id), '[]')
              from (select y.* from long_term_memory.memory_events y where y.memory_id = m.id offset 0) as e
              where e.org_id = p_org_id) as history,
             (select coalesce(jsonb_agg(jsonb_build_object(
                       'recall_id', r.id, 'run_id', r.run_id, 'recalled_by', r.recalled_by, 'at', r.at)
                       order by r.at, r.id), '[]')
              from (select y.* from long_term_memory.recall_items y where y.memory_id = m.id offset 0) as i
              cross join lateral (select y.* from long_term_memory.recalls y where y.id = i.recall_id offset 0) as r
              where i.org_id = p_org_id) as read_by
      from long_term_memory.agent_memories m
      where m.org_id = p_org_id and m.subject_type = p_subject_type and m.subject_id = p_subject_id) as x), '[]');
end
$$;

comment on function long_term_memory.memories_held(uuid, text, uuid) is
  'The memories of a subject, erased ones as what is left of them: who wrote each, its review, its history, and the runs that read it.';

-- A question that was said to be about somebody is theirs. One that returned something of several people's may be about any
-- of them: the subject learns that it was asked, and not its words.
create or replace function long_term_memory.recalls_held(p_org_id uuid, p_subject_type text, p_subject_id uuid)
returns jsonb language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
begin
  return coalesce((
    select jsonb_agg(jsonb_build_object(
             'recall_id', r.id, 'run_id', r.run_id, 'recalled_by', r.recalled_by, 'at', r.at, 'also_about', o.others,
             'query', case when o.others = 0 or r.query = ''
                             or (r.arguments ->> 'p_subject_type', r.arguments ->> 'p_subject_id')
                                = (p_subject_type, p_subject_id::text) then r.query end) order by r.at, r.id)
    from long_term_memory.recall_subjects s
    cross join lateral (select x.* from long_term_memory.recalls x where x.id = s.recall_id offset 0) as r
    cross join lateral (
      select count(*) - 1 as others from long_term_memory.recall_subjects x where x.recall_id = r.id) as o
    where s.org_id = p_org_id and s.subject_type = p_subject_type and s.subject_id = p_subject_id), '[]');
end
$$;

comment on function long_term_memory.recalls_held(uuid, text, uuid) is
  'The recalls of memories that returned something about a subject, or were said to be about it. The words of one that is also about others are left out.';

create or replace function long_term_memory.traces_held(p_org_id uuid, p_subject_type text, p_subject_id uuid)
returns jsonb language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
begin
  return coalesce((
    select jsonb_agg(jsonb_build_object(
             'request_id', t.request_id, 'at', t.created_at, 'workspace_id', t.workspace_id, 'project_id', t.project_id,
             'task_id', t.task_id, 'runtime_name', t.runtime_name, 'also_about', o.others,
             'query', case when o.is_theirs or t.query = '' then t.query end,
             'request_payload', case when o.is_theirs or t.request_payload = '{}'
                                     then long_term_memory.readable(t.request_payload) end)
             order by t.created_at, t.id)
    from long_term_memory.trace_subjects s
    cross join lateral (select x.* from public.agent_memory_recall_traces x where x.id = s.trace_id offset 0) as t
    cross join lateral (
      select count(*) - 1 as others,
             count(*) = 1 or coalesce(t.request_payload -> 'subject' = jsonb_build_object(
               'type', p_subject_type, 'id', p_subject_id), false) as is_theirs
      from long_term_memory.trace_subjects x where x.trace_id = t.id) as o
    where s.org_id = p_org_id and s.subject_type = p_subject_type and s.subject_id = p_subject_id
      and (select w.org_id from long_term_memory.workspace_orgs w where w.workspace_id = t.workspace_id::text) = p_org_id), '[]');
end
$$;

comment on function long_term_memory.traces_held(uuid, text, uuid) is
  'The ledger''s traces in workspaces of the organization that returned a decision about a subject, or were said to be about it.';

-- What is nested deeper than JSON readers of several languages follow is shown as text.
create or replace function long_term_memory.readable(p_document jsonb)
returns jsonb language sql immutable parallel safe
return case when p_document @? '$.**{90}'::jsonpath then to_jsonb(p_document::text) else p_document end;

comment on function long_term_memory.readable(jsonb) is 'The document, as text where it is nested too deep to be read.';

-- Hosts differ in these tables, and may lack one, or an index on the column: then it is read once, not once a decision.
create or replace function long_term_memory.rows_beside(p_memory_ids uuid[])
returns jsonb language plpgsql stable
set search_path = public, extensions, pg_temp
set enable_hashjoin = on
as $$
declare
  v_sources text;
  v_rows    jsonb;
begin
  select string_agg(format('select %L as part, u.id as memory_id, to_jsonb(r) as doc from unnest($1) as u (id) join %s r on r.%I = u.id',
                           k.part, a.attrelid::regclass, a.attname), ' union all ' order by k.part)
  into v_sources
  from (values ('source_refs', 'public.agent_memory_source_refs', 'memory_id'),
               ('artifacts', 'public.agent_memory_artifacts', 'memory_id'),
               ('review_actions', 'public.agent_memory_review_actions', 'memory_id'),
               ('history', 'ranked_ledger.lifecycle_transitions', 'memory_id'),
               ('links', 'public.agent_memory_relations', 'from_memory_id'),
               ('links', 'public.agent_memory_relations', 'to_memory_id'),
               ('links', 'public.agent_decision_edges', 'from_memory_id'),
               ('links', 'public.agent_decision_edges', 'to_memory_id')) as k (part, in_table, by_column)
  join pg_attribute a on a.attrelid = to_regclass(k.in_table) and a.attname = k.by_column and not a.attisdropped;
  execute format($q$
    select coalesce(jsonb_object_agg(y.memory_id, y.parts), '{}')
    from (select x.memory_id, jsonb_object_agg(x.part, x.rows) as parts
          from (select d.memory_id, d.part, jsonb_agg(
                         long_term_memory.readable(d.doc - array['id', 'memory_id'])
                         order by coalesce(d.doc ->> 'created_at', d.doc ->> 'changed_at'), d.doc ->> 'id') as rows
                from (%s) as d group by d.memory_id, d.part) as x
          group by x.memory_id) as y $q$, v_sources)
  into v_rows using p_memory_ids;
  return v_rows;
end
$$;

comment on function long_term_memory.rows_beside(uuid[]) is
  'What hangs on decisions: references, artifacts, reviews, history, links, each oldest first, as an object by decision.';

create or replace function long_term_memory.thoughts_beside(p_memory_ids uuid[])
returns jsonb language plpgsql stable
set search_path = public, extensions, pg_temp
set enable_hashjoin = on
as $$
declare
  v_own uuid[];
begin
  execute $q$
    select array_agg(x.thought_id)
    from (select m.thought_id
          from unnest($1) as u (id)
          join public.agent_memories m on m.id = u.id
          join public.agent_memories o on o.thought_id = m.thought_id
          group by m.thought_id having count(*) = 1) as x $q$
  into v_own using p_memory_ids;
  return coalesce((
    select jsonb_object_agg(t.id, jsonb_build_object('content', t.content, 'metadata', long_term_memory.readable(t.metadata)))
    from unnest(v_own) as u (id) join public.thoughts t on t.id = u.id), '{}');
end
$$;

comment on function long_term_memory.thoughts_beside(uuid[]) is
  'The thoughts of decisions, by id, but for those that another memory points to: such words are not theirs alone.';

create or replace function long_term_memory.decision_reads(p_org_id uuid, p_subject_type text, p_subject_id uuid)
returns jsonb language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
begin
  return (
    select coalesce(jsonb_object_agg(x.memory_id, x.reads), '{}')
    from (select i.memory_id, jsonb_agg(jsonb_build_object(
                   'request_id', t.request_id, 'at', t.created_at, 'runtime_name', t.runtime_name, 'task_id', t.task_id,
                   'used', i.used, 'ignored_reason', i.ignored_reason) order by t.created_at, t.id) as reads
          from long_term_memory.trace_subjects s
          cross join lateral (select y.* from public.agent_memory_recall_traces y where y.id = s.trace_id offset 0) as t
          cross join lateral (select y.* from public.agent_memory_recall_items y where y.trace_id = t.id offset 0) as i
          where s.org_id = p_org_id and s.subject_type = p_subject_type and s.subject_id = p_subject_id
            and (select w.org_id from long_term_memory.workspace_orgs w where w.workspace_id = t.workspace_id::text) = p_org_id
            and (select d.org_id from long_term_memory.decision_subjects d
                 where d.memory_id = i.memory_id and d.subject_type = p_subject_type and d.subject_id = p_subject_id) = p_org_id
          group by i.memory_id) as x);
end
$$;

comment on function long_term_memory.decision_reads(uuid, text, uuid) is
  'Which recalls returned each of a subject''s decisions and what became of it, as an object by decision. By the traces: hosts have an index on those.';

-- What a host's table of memories has besides, whatever its columns: none of vectors and lexemes, which nobody can read.
create or replace function long_term_memory.known_columns()
returns text[] language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
begin
  return array(
    select a.attname from pg_attribute a join pg_type t on t.oid = a.atttypid
    where a.attrelid = to_regclass('public.agent_memories') and a.attnum > 0
      and (t.typname in ('vector', 'halfvec', 'sparsevec', 'tsvector', 'bytea') or a.attname in (
        'id', 'thought_id', 'workspace_id', 'project_id', 'task_id', 'flow_id', 'memory_type', 'summary', 'content',
        'lifecycle_status', 'review_status', 'visibility', 'can_use_as_instruction', 'created_by', 'created_at',
        'updated_at', 'metadata')));
end
$$;

comment on function long_term_memory.known_columns() is
  'Columns of agent_memories that a decision''s document has under their own names, or leaves out.';

create or replace function long_term_memory.decisions_held(p_org_id uuid, p_subject_type text, p_subject_id uuid)
returns jsonb language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
declare
  v_ids      uuid[] := array(
    select s.memory_id
    from long_term_memory.decision_subjects s
    where s.org_id = p_org_id and s.subject_type = p_subject_type and s.subject_id = p_subject_id
      and (select w.org_id from long_term_memory.workspace_orgs w where w.workspace_id = (
             select m.workspace_id::text from public.agent_memories m where m.id = s.memory_id)) = p_org_id);
  v_known    text[] := long_term_memory.known_columns();
  v_beside   jsonb;
  v_thoughts jsonb;
  v_reads    jsonb;
begin
  if v_ids = '{}' then
    return '[]';
  end if;
  v_beside := long_term_memory.rows_beside(v_ids);
  v_thoughts := long_term_memory.thoughts_beside(v_ids);
  v_reads := long_term_memory.decision_reads(p_org_id, p_subject_type, p_subject_id);
  return (
    select jsonb_agg(jsonb_build_object(
             'memory_id', m.id, 'workspace_id', m.workspace_id, 'project_id', m.project_id, 'task_id', m.task_id,
             'flow_id', m.flow_id, 'step_index', l.step_index, 'memory_type', m.memory_type, 'summary', m.summary,
             'content', m.content, 'rationale', l.rationale, 'alternatives', l.alternatives,
             'importance', l.importance::float8, 'pinned', l.pinned, 'lifecycle_status', m.lifecycle_status,
             'review_status', m.review_status, 'visibility', m.visibility, 'created_by', m.created_by,
             'created_at', m.created_at, 'updated_at', m.updated_at, 'attributed_at', s.attributed_at,
             'erased_at', s.erased_at, 'erased_with_other', s.erased_with_other,
             'also_about', (select count(*) - 1 from long_term_memory.decision_subjects o
                            where o.memory_id = m.id and o.org_id = p_org_id),
             'metadata', long_term_memory.readable(m.metadata),
             -- the workspaces that it was moved from may be another organization's
             'ledger_metadata', long_term_memory.readable(
               case when jsonb_typeof(l.metadata) = 'object' then l.metadata - 'moves' else l.metadata end),
             'host_columns', long_term_memory.readable(jsonb_strip_nulls(to_jsonb(m) - v_known)),
             'thought', v_thoughts -> m.thought_id::text,
             'enrolment_failure', (select f.reason from ranked_ledger.enrolment_failures f where f.memory_id = m.id),
             'read_by', coalesce(v_reads -> m.id::text, '[]'))
             || '{"source_refs": [], "artifacts": [], "review_actions": [], "history": [], "links": []}'
             || coalesce(v_beside -> m.id::text, '{}') order by m.created_at, m.id)
    from unnest(v_ids) as u (id)
    cross join lateral (select x.* from public.agent_memories x where x.id = u.id offset 0) as m
    cross join lateral (
      select x.* from long_term_memory.decision_subjects x
      where x.memory_id = u.id and x.subject_type = p_subject_type and x.subject_id = p_subject_id offset 0) as s
    left join lateral (select x.* from public.agent_decision_ledger x where x.memory_id = u.id offset 0) as l on true);
end
$$;

comment on function long_term_memory.decisions_held(uuid, text, uuid) is
  'The decisions that are attributed to a subject, in workspaces that belong to the organization now, with everything that hangs on them. Whom else one is about is counted, not named.';

create or replace function long_term_memory.erasures_held(p_org_id uuid, p_subject_type text, p_subject_id uuid)
returns jsonb language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
begin
  return coalesce((
    select jsonb_agg(jsonb_build_object(
             'receipt_id', e.id, 'erased_at', e.erased_at, 'grade', e.grade, 'actor_id', e.actor_id,
             'asserted_by', e.asserted_by, 'counts', e.counts) order by e.erased_at, e.id)
    from long_term_memory.erasures e
    where e.org_id = p_org_id and e.subject_type = p_subject_type and e.subject_id = p_subject_id), '[]');
end
$$;

comment on function long_term_memory.erasures_held(uuid, text, uuid) is 'The receipts of a subject''s erasures.';

create or replace function long_term_memory.access_notes(p_decisions jsonb, p_recalls jsonb)
returns jsonb language sql stable
set search_path = public, extensions, pg_temp
as $$
  select coalesce(jsonb_agg(n.sentence order by n.place), '[]')
  from (
    select 1, 'The decision ledger is not installed in this project: decisions are neither looked for nor shown.'
    where not long_term_memory.has_ledger()
    union all
    select 2, format('Recalls that returned something about others too: %s. Their words are left out, since they may be about '
                     'those.', count(*))
    from jsonb_array_elements(p_recalls) as r where r.value ->> 'query' is null having count(*) > 0
    union all
    select 3, format('Decisions that are about others too: %s. Their words may name them: look before this is handed over.', count(*))
    from jsonb_array_elements(p_decisions) as d where (d.value ->> 'also_about')::int > 0 having count(*) > 0
    union all
    select 4, format('Decisions that were erased for somebody else whom they were about as well: %s.', count(*))
    from jsonb_array_elements(p_decisions) as d where (d.value ->> 'erased_with_other')::boolean having count(*) > 0
    union all
    select 5, format('Row level security is forced on %s, also for %I, who reads: what is shown there may not be all.',
                     string_agg(t.name, ', '), current_user)
    from unnest(array['public.agent_memories', 'public.agent_memory_recall_traces', 'public.agent_memory_recall_items',
                      'public.agent_memory_source_refs', 'public.agent_memory_artifacts', 'public.thoughts',
                      'public.agent_memory_review_actions', 'public.agent_memory_relations']) as t (name)
    where long_term_memory.has_ledger() and row_security_active(to_regclass(t.name)::oid)
    having count(*) > 0) as n (place, sentence)
$$;

comment on function long_term_memory.access_notes(jsonb, jsonb) is 'What a reader of the document has to know, in sentences.';

create or replace function long_term_memory.subject_access(p_org_id uuid, p_subject_type text, p_subject_id uuid)
returns jsonb language plpgsql security definer
set search_path = public, extensions, pg_temp
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_caller    long_term_memory.caller := long_term_memory.admit(
    p_org_id, '{admin,owner}', long_term_memory.is_caller(p_subject_type, p_subject_id));
  v_memories  jsonb;
  v_recalls   jsonb;
  v_erasures  jsonb;
  v_decisions jsonb := '[]';
  v_traces    jsonb := '[]';
begin
  -- guard
  perform long_term_memory.check_subject(p_subject_type, p_subject_id);
  if p_subject_id is null then
    raise sqlstate 'RL474' using message = 'A subject access needs its subject.', hint = 'Give subject_id.';
  end if;

  -- read: an erasure that is under way is waited for, so that the document is from before it or from after it
  perform long_term_memory.share_subject(p_org_id, p_subject_type, p_subject_id);
  v_memories := long_term_memory.memories_held(p_org_id, p_subject_type, p_subject_id);
  v_recalls := long_term_memory.recalls_held(p_org_id, p_subject_type, p_subject_id);
  v_erasures := long_term_memory.erasures_held(p_org_id, p_subject_type, p_subject_id);
  if long_term_memory.has_ledger() then
    v_decisions := long_term_memory.decisions_held(p_org_id, p_subject_type, p_subject_id);
    v_traces := long_term_memory.traces_held(p_org_id, p_subject_type, p_subject_id);
  end if;

  -- note: a stranger about whom nothing is held leaves nothing behind, in whatever organization
  if long_term_memory.org_exists(p_org_id) and (
    v_caller.kind = 'service' or v_caller.role is not null
    or '[]' <> any (array[v_memories, v_recalls, v_erasures, v_decisions, v_traces])) then
    insert into long_term_memory.audit_events (org_id, kind, actor_id, payload)
    values (p_org_id, 'subject_access', v_caller.user_id, jsonb_build_object(
      'subject_type', p_subject_type, 'subject_id', p_subject_id,
      'memories', jsonb_array_length(v_memories), 'decisions', jsonb_array_length(v_decisions)));
  end if;

  -- answer
  return jsonb_build_object(
    'subject', jsonb_build_object('type', p_subject_type, 'id', p_subject_id), 'org_id', p_org_id, 'as_of', now(),
    'memories', v_memories, 'decisions', v_decisions, 'recalls', v_recalls, 'traces', v_traces, 'erasures', v_erasures,
    'notes', long_term_memory.access_notes(v_decisions, v_recalls || v_traces));
end
$$;

comment on function long_term_memory.subject_access(uuid, text, uuid) is
  'The inner half of public.subject_access, for admins and owners, the person themself, and the service.';

create or replace function public.subject_access(p_org_id uuid, p_subject_type text, p_subject_id uuid)
returns jsonb language sql
set search_path = public, extensions, pg_temp
set statement_timeout = '60s' -- of a person about whom much is held; the API takes it over for the request
as $$ select long_term_memory.subject_access(p_org_id, p_subject_type, p_subject_id) $$;

comment on function public.subject_access(uuid, text, uuid) is
  'Everything that both stores hold about a subject in an organization, as one document that a person can read.';

-- long_term_memory/300_map_workspace.sql ----------------------------------------------------------------------------

-- Which organization a workspace of the ledger belongs to. Whoever writes workspace_orgs, by the RPC or by plain SQL, the
-- rest follows: attributions of another organization go, and what recalls of the workspace said of their subject is tied.

create or replace function long_term_memory.lose_attributions(p_workspace_id text, p_org_id uuid)
returns void language sql
set search_path = public, extensions, pg_temp
as $$
  with lost as (
    delete from long_term_memory.decision_subjects s
    where s.workspace_id = p_workspace_id and s.org_id is distinct from p_org_id
    returning s.org_id, s.memory_id)
  insert into long_term_memory.audit_events (org_id, kind, actor_id, payload)
  select l.org_id, 'attribution_lost', long_term_memory.request_user(), jsonb_build_object(
    'reason', 'workspace mapped elsewhere', 'workspace_id', p_workspace_id, 'count', count(*),
    'memory_ids', to_jsonb((array_agg(distinct l.memory_id))[1:100]))
  from lost l where long_term_memory.org_exists(l.org_id) group by l.org_id
$$;

comment on function long_term_memory.lose_attributions(text, uuid) is
  'Deletes attributions of a workspace that another organization made, with one audit event for each of those: how many, and a hundred ids of them.';

create or replace function long_term_memory.is_subject(p_subject jsonb)
returns boolean language sql immutable parallel safe
return case when jsonb_typeof(p_subject) = 'object'
            then coalesce(p_subject ->> 'type' in ('workspace', 'candidate', 'user'), false)
                 and long_term_memory.uuid_of(p_subject ->> 'id') is not null
            else false end;

comment on function long_term_memory.is_subject(jsonb) is 'Whether this names a subject, as {"type", "id"}.';

-- Recalls say whom they are about before anybody has said whose the workspace is.
create or replace function long_term_memory.tie_named_traces(p_workspace_id text, p_org_id uuid)
returns void language plpgsql
set search_path = public, extensions, pg_temp
as $$
begin
  if not long_term_memory.has_ledger() then
    return;
  end if;
  insert into long_term_memory.trace_subjects (trace_id, org_id, subject_type, subject_id)
  select n.trace_id, p_org_id, n.subject ->> 'type', (n.subject ->> 'id')::uuid
  from (select t.id as trace_id, t.request_payload -> 'subject' as subject
        from public.agent_memory_recall_traces t
        where t.workspace_id = p_workspace_id and t.request_payload -> 'subject' is not null) as n
  where long_term_memory.is_subject(n.subject)
  on conflict do nothing;
end
$$;

comment on function long_term_memory.tie_named_traces(text, uuid) is
  'Ties the traces of a workspace that has just been mapped to the subjects that their callers named.';

create or replace function long_term_memory.follow_mapping()
returns trigger language plpgsql security definer -- an organization that is deleted takes its mappings with it, whoever deletes it
set search_path = public, extensions, pg_temp
as $$
declare
  v_before long_term_memory.workspace_orgs := case when tg_op <> 'INSERT' then old end;
  v_after  long_term_memory.workspace_orgs := case when tg_op <> 'DELETE' then new end;
begin
  if (v_before.workspace_id, v_before.org_id) is not distinct from (v_after.workspace_id, v_after.org_id) then
    return null;
  end if;
  if v_before.workspace_id is distinct from v_after.workspace_id then
    perform long_term_memory.lose_attributions(v_before.workspace_id, null);
  end if;
  if v_after.workspace_id is not null then
    perform long_term_memory.lose_attributions(v_after.workspace_id, v_after.org_id);
    perform long_term_memory.tie_named_traces(v_after.workspace_id, v_after.org_id);
  end if;
  insert into long_term_memory.audit_events (org_id, kind, actor_id, payload)
  select x.org_id, x.kind, long_term_memory.request_user(), jsonb_build_object('workspace_id', x.workspace_id)
  from (values (v_before.org_id, 'workspace_unmapped', v_before.workspace_id),
               (v_after.org_id, 'workspace_mapped', v_after.workspace_id)) as x (org_id, kind, workspace_id)
  where long_term_memory.org_exists(x.org_id);
  return null;
end
$$;

comment on function long_term_memory.follow_mapping() is
  'When a workspace is mapped or unmapped, attributions of another organization go, and what its recalls were said to be about is tied; both organizations are told.';

create or replace trigger workspace_orgs_follow
  after insert or update or delete on long_term_memory.workspace_orgs
  for each row execute function long_term_memory.follow_mapping();

create or replace function public.map_workspace(p_org_id uuid, p_workspace_id text)
returns jsonb language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_before uuid;
  v_lost   bigint;
begin
  -- guard
  if p_workspace_id is null or p_workspace_id !~ '\S' then
    raise sqlstate '22023' using message = 'p_workspace_id is blank.', hint = 'Name the workspace of the ledger.';
  elsif octet_length(p_workspace_id) > 1000 then
    raise sqlstate '22023' using message = 'p_workspace_id is longer than 1000 bytes.', hint = 'Use a short name or an id.';
  elsif p_org_id is not null then
    perform long_term_memory.require_org(p_org_id);
  end if;

  -- lock: whoever attributes a decision of this workspace shares the row, so that the count is exact
  select w.org_id into v_before from long_term_memory.workspace_orgs w where w.workspace_id = p_workspace_id for update;
  select count(*) into v_lost from long_term_memory.decision_subjects s
  where s.workspace_id = p_workspace_id and s.org_id is distinct from p_org_id;

  -- mutate
  if p_org_id is null then
    delete from long_term_memory.workspace_orgs w where w.workspace_id = p_workspace_id;
  else
    insert into long_term_memory.workspace_orgs as w (workspace_id, org_id) values (p_workspace_id, p_org_id)
    on conflict (workspace_id) do update set org_id = excluded.org_id, mapped_at = now()
    where w.org_id <> excluded.org_id;
  end if;

  -- answer
  return jsonb_build_object('workspace_id', p_workspace_id, 'org_id', p_org_id,
                            'changed', v_before is distinct from p_org_id, 'attributions_lost', v_lost);
end
$$;

comment on function public.map_workspace(uuid, text) is
  'Says which organization a workspace of the ledger belongs to; null: none. Attributions that another one made are lost, and counted.';

-- long_term_memory/310_attribute_decision.sql -----------------------------------------------------------------------

-- Whom a decision of the ledger is about. Nothing tells it but whoever recorded it.

create or replace function long_term_memory.hold_decision(p_org_id uuid, p_memory_id uuid)
returns text language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_workspace_id text;
begin
  if not long_term_memory.has_ledger() then
    raise sqlstate 'RL501' using
      message = 'The decision ledger is not installed in this project: there is no decision to attribute.',
      hint = 'Add it with `ranked-ledger init` and push; memories are about somebody by themselves.';
  end if;
  -- the memory exclusively: who has returned it and not committed yet is waited for, who returns it later sees the attribution
  select w.workspace_id into v_workspace_id
  from public.agent_memories m
  join long_term_memory.workspace_orgs w on w.workspace_id = m.workspace_id::text and w.org_id = p_org_id
  where m.id = p_memory_id and m.memory_type = 'decision' for update of m for share of w;
  if v_workspace_id is null then
    raise sqlstate 'RL404' using
      message = format('There is no decision %s in a workspace of this organization.',
                       coalesce(p_memory_id::text, 'without an id')),
      hint = 'Check the id; map_workspace says which organization a workspace belongs to.';
  end if;
  return v_workspace_id;
end
$$;

comment on function long_term_memory.hold_decision(uuid, uuid) is
  'Locks a decision in a workspace of the organization and answers the workspace. RL404 where there is none, whatever exists elsewhere.';

create or replace function long_term_memory.tie_earlier_traces(
  p_org_id uuid, p_memory_id uuid, p_subject_type text, p_subject_id uuid)
returns void language plpgsql
set search_path = public, extensions, pg_temp
set enable_seqscan = off -- unless the host has no index on the items' memories
as $$
begin
  insert into long_term_memory.trace_subjects (trace_id, org_id, subject_type, subject_id)
  select distinct t.id, p_org_id, p_subject_type, p_subject_id
  from public.agent_memory_recall_items i
  join public.agent_memory_recall_traces t on t.id = i.trace_id
  join long_term_memory.workspace_orgs w on w.workspace_id = t.workspace_id::text and w.org_id = p_org_id
  where i.memory_id = p_memory_id
  on conflict do nothing;
end
$$;

comment on function long_term_memory.tie_earlier_traces(uuid, uuid, text, uuid) is
  'Ties the traces that have returned a decision already to a subject.';

-- What ties a trace besides: its caller's word, or another decision about the same subject.
create or replace function long_term_memory.untie_traces(
  p_org_id uuid, p_memory_id uuid, p_subject_type text, p_subject_id uuid)
returns void language plpgsql
set search_path = public, extensions, pg_temp
set enable_seqscan = off
as $$
begin
  delete from long_term_memory.trace_subjects s
  using public.agent_memory_recall_items i, public.agent_memory_recall_traces t
  where s.org_id = p_org_id and s.subject_type = p_subject_type and s.subject_id = p_subject_id
    and i.trace_id = s.trace_id and i.memory_id = p_memory_id and t.id = s.trace_id
    and t.request_payload -> 'subject' is distinct from jsonb_build_object('type', p_subject_type, 'id', p_subject_id)
    and not exists (
      select from public.agent_memory_recall_items o
      join long_term_memory.decision_subjects d
        on d.memory_id = o.memory_id and d.subject_type = p_subject_type and d.subject_id = p_subject_id and d.org_id = p_org_id
      where o.trace_id = s.trace_id and o.memory_id <> p_memory_id);
end
$$;

comment on function long_term_memory.untie_traces(uuid, uuid, text, uuid) is
  'Frees traces of a subject that were tied to it by a decision alone which turned out not to be about it.';

create or replace function public.attribute_decision(
  p_org_id uuid, p_memory_id uuid, p_subject_type text, p_subject_id uuid, p_remove boolean default false)
returns jsonb language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_workspace_id text;
  v_erased_at    timestamptz;
  v_changed      boolean;
  v_remove       boolean := coalesce(p_remove, false);
begin
  -- guard
  perform long_term_memory.require_org(p_org_id);
  perform long_term_memory.check_subject(p_subject_type, p_subject_id);
  if p_subject_type = 'workspace' then
    raise sqlstate '22023' using
      message = 'A decision is about a person here, and belongs to its workspace as it is.',
      hint = 'Use the subject type candidate or user.';
  end if;

  -- lock
  perform long_term_memory.share_subject(p_org_id, p_subject_type, p_subject_id);
  v_workspace_id := long_term_memory.hold_decision(p_org_id, p_memory_id);
  select min(s.erased_at) into v_erased_at from long_term_memory.decision_subjects s
  where s.memory_id = p_memory_id and s.org_id = p_org_id;
  if v_erased_at is not null and (v_remove or not exists (
    select from long_term_memory.decision_subjects s
    where s.memory_id = p_memory_id and s.subject_type = p_subject_type and s.subject_id = p_subject_id)) then
    raise sqlstate 'RL410' using
      message = format('The decision %s was erased.', p_memory_id),
      detail = format('It was erased at %s.', to_jsonb(v_erased_at) #>> '{}'),
      hint = 'Nothing of its words is left; whom it was about stays as it was then.';
  end if;

  -- mutate
  if v_remove then
    delete from long_term_memory.decision_subjects s
    where s.memory_id = p_memory_id and s.org_id = p_org_id and s.subject_type = p_subject_type and s.subject_id = p_subject_id;
    v_changed := found;
    if v_changed then
      perform long_term_memory.untie_traces(p_org_id, p_memory_id, p_subject_type, p_subject_id);
    end if;
  else
    insert into long_term_memory.decision_subjects (memory_id, org_id, workspace_id, subject_type, subject_id)
    values (p_memory_id, p_org_id, v_workspace_id, p_subject_type, p_subject_id)
    on conflict (memory_id, subject_type, subject_id) do update
    set org_id = excluded.org_id, workspace_id = excluded.workspace_id, attributed_at = now()
    where decision_subjects.org_id <> excluded.org_id; -- another one's, which could not follow the decision
    v_changed := found;
    perform long_term_memory.tie_earlier_traces(p_org_id, p_memory_id, p_subject_type, p_subject_id);
  end if;
  if v_changed then
    insert into long_term_memory.audit_events (org_id, kind, actor_id, payload)
    values (p_org_id, case when v_remove then 'attribution_removed' else 'decision_attributed' end,
            long_term_memory.request_user(), jsonb_build_object(
              'memory_id', p_memory_id, 'subject_type', p_subject_type, 'subject_id', p_subject_id));
  end if;

  -- answer
  return jsonb_build_object('memory_id', p_memory_id, 'subject_type', p_subject_type, 'subject_id', p_subject_id,
                            'changed', v_changed);
end
$$;

comment on function public.attribute_decision(uuid, uuid, text, uuid, boolean) is
  'Says that a decision of the ledger is about a candidate or a user, or takes that back. What was returned by recalls already is tied to them. RL410 for one that was erased.';

-- long_term_memory/320_join_ledger.sql ------------------------------------------------------------------------------

-- Where the ledger is installed too: its traces are tied to the people whose decisions they returned, and attributions go
-- with the workspace of a decision. join_ledger, which each of the two migrations calls at its end, puts this in place.

create or replace function long_term_memory.empty_traces(p_trace_ids uuid[])
returns void language plpgsql
set search_path = public, extensions, pg_temp
set enable_seqscan = off
as $$
begin
  update public.agent_memory_recall_traces t set query = '', request_payload = '{}'
  where t.id = any (p_trace_ids) and (t.query <> '' or t.request_payload is distinct from '{}');
end
$$;

comment on function long_term_memory.empty_traces(uuid[]) is 'Takes question and payload out of traces of the ledger.';

create or replace function long_term_memory.tie_trace(
  p_trace_id uuid, p_workspace_id text, p_subject_type text, p_subject_id uuid)
returns void language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_org_id uuid := (select w.org_id from long_term_memory.workspace_orgs w where w.workspace_id = p_workspace_id);
begin
  if v_org_id is null then
    return; -- the payload keeps it, for the day on which the workspace is mapped
  end if;
  -- nobody waits: a recall, or a host's write, would stand still for as long as an erasure takes
  if not pg_try_advisory_xact_lock_shared(long_term_memory.subject_key(v_org_id, p_subject_type, p_subject_id))
     or exists (select from long_term_memory.erasures e
                where e.org_id = v_org_id and e.subject_type = p_subject_type and e.subject_id = p_subject_id
                  and e.erased_at > transaction_timestamp() - interval '2 minutes') -- as tie_items: it may have begun before
     or current_setting('transaction_isolation') <> 'read committed' then -- an older snapshot does not see the erasure
    perform long_term_memory.empty_traces(array[p_trace_id]);
  end if;
  insert into long_term_memory.trace_subjects (trace_id, org_id, subject_type, subject_id)
  values (p_trace_id, v_org_id, p_subject_type, p_subject_id)
  on conflict do nothing;
end
$$;

comment on function long_term_memory.tie_trace(uuid, text, text, uuid) is
  'Ties a trace to whom its caller said it was about, where its workspace is mapped. Empties it where that subject is being erased.';

-- Under a snapshot an erasure that has committed is not seen; locking the row tells.
create or replace function long_term_memory.sees_attributions(p_memory_ids uuid[])
returns boolean language plpgsql
set search_path = public, extensions, pg_temp
set enable_seqscan = off
as $$
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    perform from long_term_memory.decision_subjects s where s.memory_id = any (p_memory_ids) for share nowait;
  end if;
  return true;
exception when serialization_failure or lock_not_available then
  return false;
end
$$;

comment on function long_term_memory.sees_attributions(uuid[]) is
  'Whether the transaction sees these attributions as they are, and not as they were before an erasure.';

-- A request that was under way when an erasure began may write down behind it what it asked: its trace and its items are
-- often two transactions, and an erasure is not seen before it commits. Two minutes is longer than one may take.
create or replace function long_term_memory.tie_items(p_trace_ids uuid[], p_memory_ids uuid[])
returns void language plpgsql
set search_path = public, extensions, pg_temp
set enable_seqscan = off -- index look-ups alone, whatever statistics say of tables that were empty a moment ago
set enable_hashjoin = off
set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_locks    bigint[];
  v_busy     bigint[];
  v_sees_all boolean;
  v_emptied  uuid[];
begin
  v_locks := array(
    select distinct long_term_memory.subject_key(s.org_id, s.subject_type, s.subject_id)
    from unnest(p_memory_ids) as i (memory_id)
    join long_term_memory.decision_subjects s on s.memory_id = i.memory_id);
  if v_locks = '{}' then
    return;
  elsif cardinality(v_locks) > 64 then -- as share_subjects
    v_locks := array(
      select distinct long_term_memory.bucket_key(
        s.org_id, long_term_memory.subject_key(s.org_id, s.subject_type, s.subject_id))
      from unnest(p_memory_ids) as i (memory_id)
      join long_term_memory.decision_subjects s on s.memory_id = i.memory_id);
  end if;
  v_sees_all := long_term_memory.sees_attributions(p_memory_ids);
  v_busy := array(select u.key from unnest(v_locks) as u (key) where not pg_try_advisory_xact_lock_shared(u.key));

  -- under the locks, and of workspaces that belong to the same organization
  with tied as materialized (
    select distinct t.id as trace_id, s.org_id, s.subject_type, s.subject_id,
           not v_sees_all or coalesce(s.erased_at > least(t.created_at, now()) - interval '2 minutes', false)
           or k.key = any (v_busy) or long_term_memory.bucket_key(s.org_id, k.key) = any (v_busy) as is_emptied
    from unnest(p_trace_ids, p_memory_ids) as i (trace_id, memory_id)
    join long_term_memory.decision_subjects s on s.memory_id = i.memory_id
    cross join lateral (select x.* from public.agent_memory_recall_traces x where x.id = i.trace_id offset 0) as t
    cross join lateral (select long_term_memory.subject_key(s.org_id, s.subject_type, s.subject_id)) as k (key)
    where (select w.org_id from long_term_memory.workspace_orgs w where w.workspace_id = t.workspace_id::text) = s.org_id),
  written as (
    insert into long_term_memory.trace_subjects (trace_id, org_id, subject_type, subject_id)
    select distinct u.trace_id, u.org_id, u.subject_type, u.subject_id from tied u order by 1, 2, 3, 4
    on conflict do nothing)
  select array_agg(distinct u.trace_id order by u.trace_id) into v_emptied from tied u where u.is_emptied;
  if v_emptied is not null then
    perform long_term_memory.empty_traces(v_emptied);
  end if;
end
$$;

comment on function long_term_memory.tie_items(uuid[], uuid[]) is
  'Ties traces to whom the decisions are about that they returned. Empties those whose decision was erased meanwhile, or is being erased.';

create or replace function long_term_memory.tie_returned_decisions()
returns trigger language plpgsql security definer -- the host's writer may have no right on our tables
set search_path = public, extensions, pg_temp
set lock_timeout = '2s'
as $$
begin
  if exists (select from long_term_memory.decision_subjects) then -- most projects attribute nothing
    perform long_term_memory.tie_items(array_agg(i.trace_id), array_agg(i.memory_id)) from inserted_items i;
  end if;
  return null;
exception when others then
  raise warning 'Ranked Ledger: traces were not tied to their subjects (%)', sqlerrm;
  return null;
end
$$;

comment on function long_term_memory.tie_returned_decisions() is
  'A trace that returned a decision about somebody is tied to them, a statement at a time. The host''s insert goes through whatever happens here.';

-- A decision belongs to the organization of its workspace: moved to another one's, it is about nobody there.
create or replace function long_term_memory.follow_moved_decision()
returns trigger language plpgsql security definer -- as above
set search_path = public, extensions, pg_temp
set lock_timeout = '1s'
as $$
declare
  v_org_id uuid;
begin
  if not exists (select from long_term_memory.decision_subjects s where s.memory_id = new.memory_id) then
    return null;
  end if;
  select w.org_id into v_org_id from long_term_memory.workspace_orgs w where w.workspace_id = new.workspace_id for share;
  with lost as (
    delete from long_term_memory.decision_subjects s
    where s.memory_id = new.memory_id and s.org_id is distinct from v_org_id returning s.*)
  insert into long_term_memory.audit_events (org_id, kind, actor_id, payload)
  select l.org_id, 'attribution_lost', long_term_memory.request_user(), jsonb_build_object(
    'reason', 'decision moved', 'memory_id', l.memory_id, 'subject_type', l.subject_type, 'subject_id', l.subject_id)
  from lost l;
  update long_term_memory.decision_subjects s set workspace_id = new.workspace_id where s.memory_id = new.memory_id;
  return null;
exception when others then
  raise warning 'Ranked Ledger: attributions did not follow a decision (%)', sqlerrm; -- nothing reads them across organizations
  return null;
end
$$;

comment on function long_term_memory.follow_moved_decision() is
  'Attributions of a decision go when it moves to a workspace of another organization, each with an audit event; within one they follow.';

-- What came about while the two were not joined: the ledger was taken out for a while, or a dump was put back.
create or replace function long_term_memory.mend_ties()
returns void language plpgsql
set search_path = public, extensions, pg_temp
as $$
begin
  delete from long_term_memory.decision_subjects s
  where not exists (select from public.agent_memories m where m.id = s.memory_id);
  delete from long_term_memory.trace_subjects s
  where not exists (select from public.agent_memory_recall_traces t where t.id = s.trace_id);
  with lost as (
    delete from long_term_memory.decision_subjects s using public.agent_memories m
    where m.id = s.memory_id and not exists (
      select from long_term_memory.workspace_orgs w where w.workspace_id = m.workspace_id::text and w.org_id = s.org_id)
    returning s.*)
  insert into long_term_memory.audit_events (org_id, kind, payload)
  select l.org_id, 'attribution_lost', jsonb_build_object(
    'reason', 'decision moved', 'memory_id', l.memory_id, 'subject_type', l.subject_type, 'subject_id', l.subject_id)
  from lost l;
  update long_term_memory.decision_subjects s set workspace_id = m.workspace_id
  from public.agent_memories m where m.id = s.memory_id and m.workspace_id::text <> s.workspace_id;
  insert into long_term_memory.trace_subjects (trace_id, org_id, subject_type, subject_id)
  select distinct t.id, s.org_id, s.subject_type, s.subject_id
  from long_term_memory.decision_subjects s
  join public.agent_memory_recall_items i on i.memory_id = s.memory_id
  join public.agent_memory_recall_traces t on t.id = i.trace_id
  join long_term_memory.workspace_orgs w on w.workspace_id = t.workspace_id::text and w.org_id = s.org_id
  on conflict do nothing;
end
$$;

comment on function long_term_memory.mend_ties() is
  'Brings attributions and tied traces in step with the ledger: what is gone goes, what moved follows or is lost, what was returned is tied.';

create or replace function long_term_memory.has_trigger(p_table regclass, p_name text)
returns boolean language sql stable
set search_path = public, extensions, pg_temp
as $$
  select exists (select from pg_trigger t where t.tgrelid = p_table and t.tgname = p_name and not t.tgisinternal)
$$;

comment on function long_term_memory.has_trigger(regclass, text) is 'Whether a table has a trigger of this name.';

create or replace function long_term_memory.is_joined()
returns boolean language sql stable
set search_path = public, extensions, pg_temp
as $$
  select count(*) = 2
         and long_term_memory.has_trigger(to_regclass('public.agent_memory_recall_items'), 'trg_long_term_memory_tie')
         and long_term_memory.has_trigger(
           to_regclass('public.agent_decision_ledger'), 'agent_decision_ledger_follow_attributions')
  from pg_constraint k
  where (k.conrelid, k.confrelid) in (
    ('long_term_memory.decision_subjects'::regclass, to_regclass('public.agent_memories')),
    ('long_term_memory.trace_subjects'::regclass, to_regclass('public.agent_memory_recall_traces')))
    and k.contype = 'f'
$$;

comment on function long_term_memory.is_joined() is 'Whether the foreign keys and triggers between the two stores are all there.';

-- All locks at once or none, each attempt shorter than a deadlock takes to be found: as in the migrations' first files.
create or replace function long_term_memory.lock_joined_tables()
returns void language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_timeout  text := current_setting('lock_timeout');
  v_deadline timestamptz := clock_timestamp() + interval '5 seconds';
  v_found    text := 'Transactions kept the tables of recalls and decisions busy for five seconds. Nothing was changed.';
  v_advice   text := 'Try again when they are over: pg_stat_activity shows them.';
begin
  loop
    begin
      perform set_config('lock_timeout', '200ms', true);
      lock table public.agent_memories, public.agent_decision_ledger, public.agent_memory_recall_traces,
        public.agent_memory_recall_items, long_term_memory.decision_subjects, long_term_memory.trace_subjects
        in share row exclusive mode;
      exit;
    exception when lock_not_available or deadlock_detected then
      if clock_timestamp() > v_deadline then
        raise exception using errcode = '55P03', message = v_found || ' ' || v_advice, hint = v_advice;
      end if;
      perform pg_sleep(0.02 + 0.1 * random());
    end;
  end loop;
  perform set_config('lock_timeout', v_timeout, true);
end
$$;

comment on function long_term_memory.lock_joined_tables() is 'Keeps writers out of what is joined, until the commit; gives up after five seconds.';

create or replace function long_term_memory.join_ledger()
returns boolean language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_found  text;
  v_advice text := 'Push as the owner of these tables.';
begin
  if not long_term_memory.has_ledger() or long_term_memory.is_joined() then
    return false;
  end if;
  if not has_table_privilege('public.agent_memory_recall_items', 'TRIGGER')
     or not has_table_privilege('public.agent_memory_recall_traces', 'REFERENCES') then
    v_found := format('The role %I may not join the long-term memory to the tables of recalls.', current_user);
    raise exception using errcode = 'RL501', message = v_found || ' ' || v_advice, hint = v_advice;
  end if;
  perform long_term_memory.lock_joined_tables();

  perform long_term_memory.mend_ties();
  alter table long_term_memory.decision_subjects drop constraint if exists decision_subjects_memory_id_fkey;
  alter table long_term_memory.decision_subjects add constraint decision_subjects_memory_id_fkey
    foreign key (memory_id) references public.agent_memories (id) on delete cascade;
  alter table long_term_memory.trace_subjects drop constraint if exists trace_subjects_trace_id_fkey;
  alter table long_term_memory.trace_subjects add constraint trace_subjects_trace_id_fkey
    foreign key (trace_id) references public.agent_memory_recall_traces (id) on delete cascade;

  create or replace trigger trg_long_term_memory_tie
    after insert on public.agent_memory_recall_items
    referencing new table as inserted_items
    for each statement execute function long_term_memory.tie_returned_decisions();
  create or replace trigger agent_decision_ledger_follow_attributions
    after update of workspace_id on public.agent_decision_ledger
    for each row when (old.workspace_id is distinct from new.workspace_id)
    execute function long_term_memory.follow_moved_decision();
  return true;
end
$$;

comment on function long_term_memory.join_ledger() is
  'Joins the two stores where both are installed: foreign keys and triggers. Answers whether anything was to do; a repeat changes nothing.';

-- long_term_memory/400_expire_memories.sql --------------------------------------------------------------------------

-- A portion of each kind goes in a block of its own. Rows that somebody holds are stepped over. What hangs on them goes by
-- cascade, which cannot step over: it waits for a moment, much less than the second after which a server looks for
-- deadlocks, and then gives up its portion with all its locks, until the next call. So whoever holds what the sweep waits for
-- can wait for the sweep in turn, and pays for it with that moment and not with a deadlock.
create or replace function long_term_memory.sweep_expired(p_limit int)
returns int language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_expired uuid[];
  v_sweep   text := coalesce(current_setting('long_term_memory.sweep', true), '');
  v_wait    text := current_setting('lock_timeout');
begin
  begin
    v_expired := array(
      select m.id from long_term_memory.agent_memories m
      where m.redacted_at is null and m.expires_at <= now()
      order by m.expires_at, m.id limit p_limit for update skip locked);
    -- for these rows alone. An error takes both back by itself, since it undoes the block or what is around it
    perform set_config('long_term_memory.sweep', 'on', true), set_config('lock_timeout', '200ms', true);
    delete from long_term_memory.agent_memories m where m.id = any (v_expired);
    perform set_config('long_term_memory.sweep', v_sweep, true), set_config('lock_timeout', v_wait, true);
  exception when lock_not_available then
    return 0;
  end;
  return cardinality(v_expired);
end
$$;

comment on function long_term_memory.sweep_expired(int) is
  'Really deletes up to so many expired memories of all organizations, those that expired first, with their history. Tombstones stay.';

create or replace function long_term_memory.sweep_recalls(p_limit int, p_before timestamptz)
returns int language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_old  uuid[];
  v_wait text := current_setting('lock_timeout');
begin
  begin
    v_old := array(
      select r.id from long_term_memory.recalls r
      where r.at < p_before order by r.at, r.id limit p_limit for update skip locked);
    perform set_config('lock_timeout', '200ms', true);
    delete from long_term_memory.recalls r where r.id = any (v_old);
    perform set_config('lock_timeout', v_wait, true);
  exception when lock_not_available then
    return 0;
  end;
  return cardinality(v_old);
end
$$;

comment on function long_term_memory.sweep_recalls(int, timestamptz) is
  'Deletes up to so many recalls of all organizations that are older than a time, oldest first, with what they returned.';

create or replace function public.expire_memories(p_limit int default 1000, p_usage_before timestamptz default null)
returns jsonb language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_expired int;
  v_recalls int;
begin
  -- guard
  if p_limit is null or p_limit not between 1 and 10000 then
    raise sqlstate '22023' using
      message = 'p_limit is not a number from 1 to 10000.', hint = 'Call again while the answer says more.';
  end if;

  -- mutate: two sweeps at once take turns, or they would hold up each other's cascades
  perform pg_advisory_xact_lock(hashtextextended('ranked_ledger: expiry sweep', 0));
  v_expired := long_term_memory.sweep_expired(p_limit);
  v_recalls := long_term_memory.sweep_recalls(p_limit, p_usage_before);

  -- answer: more after a full portion only, or the caller would turn round what is locked. The first one is in an index
  return jsonb_build_object('expired', v_expired, 'recalls_deleted', v_recalls, 'more', coalesce(
    v_expired = p_limit and (
      select min(m.expires_at) from long_term_memory.agent_memories m where m.redacted_at is null) <= now(), false)
    or coalesce(v_recalls = p_limit and (select min(r.at) from long_term_memory.recalls r) < p_usage_before, false));
end
$$;

comment on function public.expire_memories(int, timestamptz) is
  'Deletes memories that have expired, and recalls older than p_usage_before, p_limit of each. The one function without an organization: what has expired has expired in all of them.';

-- long_term_memory/410_adopt_memories.sql ---------------------------------------------------------------------------

-- Another product calls a table public.agent_memories too, and its rows have the shape of ours. They are copied, and the
-- table is read and nothing else. Which of the columns it has differs from install to install, so the catalogue is asked.
do $do$
begin
  if to_regtype('long_term_memory.found_memory') is null then
    create type long_term_memory.found_memory as (
      id uuid, org_id uuid, subject_type text, subject_id uuid, text text, author text, source_run_id text, written_by uuid,
      embedding real[], embedding_model text, created_date timestamptz, expires_at timestamptz, redacted_at timestamptz);
    comment on type long_term_memory.found_memory is 'A row of the other product''s agent_memories, as far as its table has these columns.';
  end if;
end
$do$;

-- pgvector refuses what is no vector, and one such row would stop the page. No SQL function: the planner would cast first.
create or replace function long_term_memory.vector_or_null(p_numbers real[])
returns vector language plpgsql immutable parallel safe
set search_path = public, extensions, pg_temp
as $$
begin
  if array_ndims(p_numbers) = 1 and cardinality(p_numbers) <= 16000
     and (select bool_and(n is not null and n not in ('NaN', 'Infinity', '-Infinity')) and bool_or(n <> 0)
          from unnest(p_numbers) as n) then
    return p_numbers::vector;
  end if;
  return null;
end
$$;

comment on function long_term_memory.vector_or_null(real[]) is 'The vector of these numbers; null where they are none, or have no direction.';

create or replace function long_term_memory.adoptable_table()
returns regclass language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
declare
  v_table   regclass := to_regclass('public.agent_memories');
  v_columns text[] := (select array_agg(a.attname) from pg_attribute a
                       where a.attrelid = v_table and a.attnum > 0 and not a.attisdropped);
begin
  if v_table is null then
    raise sqlstate 'RL404' using
      message = 'There is no public.agent_memories to adopt from.', hint = 'This is for projects that have such a table of another product.';
  elsif 'memory_type' = any (v_columns) then
    raise sqlstate '22023' using
      message = 'public.agent_memories is Open Brain''s: it holds what the decision ledger ranks, and nothing to adopt.',
      hint = 'Tie its decisions to a person with attribute_decision.';
  elsif not v_columns @> array['org_id', 'subject_type', 'text'] then
    raise sqlstate '22023' using
      message = 'public.agent_memories has no org_id, subject_type and text: it is no table of memories that could be adopted.',
      hint = 'Copy its rows with remember.';
  end if;
  perform long_term_memory.check_readable(v_table);
  return v_table;
end
$$;

comment on function long_term_memory.adoptable_table() is
  'The other product''s table. RL404 where there is none, 22023 where the table of that name is something else.';

-- What cannot be read as what it should be is null, and judged by the rules of its row. A row without an id gets one of what
-- it says, the same at every reading: a repeat would adopt it again.
create or replace function long_term_memory.adoption_query(p_table regclass)
returns text language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
declare
  v_types  jsonb := (select jsonb_object_agg(a.attname, format_type(a.atttypid, null)) from pg_attribute a
                     where a.attrelid = p_table and a.attnum > 0 and not a.attisdropped);
  v_id     text;
  v_values text;
begin
  v_id := format('md5(concat_ws(chr(31), %s))::uuid', (
    select string_agg(format('coalesce(s.%I::text, %L)', c.name, ''), ', ')
    from unnest(array['id', 'org_id', 'subject_type', 'subject_id', 'text']) as c (name) where v_types ? c.name));
  if exists (select from pg_attribute a where a.attrelid = p_table and a.attname = 'id' and a.atttypid = 'uuid'::regtype) then
    -- by itself where it is never null, so that a page is a walk along its index
    v_id := case when (select a.attnotnull from pg_attribute a where a.attrelid = p_table and a.attname = 'id') then 's.id'
                 else format('coalesce(s.id, %s)', v_id) end;
  end if;
  select string_agg(case
      when not v_types ? a.attname or a.attname = 'embedding' and v_types ->> 'embedding' not in ('real[]', 'vector', 'halfvec')
        then format('null::%s', format_type(a.atttypid, null))
      when a.atttypid = 'uuid'::regtype then format('long_term_memory.uuid_of(s.%I::text)', a.attname)
      else format('s.%I::%s', a.attname, format_type(a.atttypid, null)) end, ', ' order by a.attnum) into v_values
  from pg_type t join pg_attribute a on a.attrelid = t.typrelid
  where t.oid = 'long_term_memory.found_memory'::regtype and a.attname <> 'id';
  return format('select array_agg(p::long_term_memory.found_memory order by p.id) from (select %s as id, %s from %s s '
                'where $1 is null or %1$s > $1 order by 1 limit $2) as p', v_id, v_values, p_table);
end
$$;

comment on function long_term_memory.adoption_query(regclass) is
  'The query of one page of the other product''s rows, over the columns that its table has: $1 the id before it, $2 how many.';

create or replace function long_term_memory.adoption_problem(p_row long_term_memory.found_memory)
returns text language sql stable
set search_path = public, extensions, pg_temp
as $$
  select case
    when coalesce(r.subject_type, '') not in ('workspace', 'candidate', 'user') then 'unknown subject type'
    when r.subject_type <> 'workspace' and r.subject_id is null then 'no subject'
    when r.org_id is null or not long_term_memory.org_exists(r.org_id) then 'unknown organization'
    when exists (select from long_term_memory.agent_memories m where m.id = r.id and m.org_id <> r.org_id)
      then 'id is another organization''s'
    when r.redacted_at is not null then null
    when coalesce(r.text, '') !~ '\S' then 'blank text'
    when octet_length(r.text) > 65536 then 'text too long'
    when r.expires_at <= now() then 'expired'
    when exists (
      select from long_term_memory.erasures e
      where e.org_id = r.org_id and e.subject_type = r.subject_type and e.subject_id = r.subject_id
        and e.erased_at >= coalesce(r.created_date, '-infinity')) then 'subject erased' -- or it would be back
  end
  from (select (p_row).*) as r
$$;

comment on function long_term_memory.adoption_problem(long_term_memory.found_memory) is
  'Why a row of the other product''s is not adopted; null where it can be.';

-- No token of theirs was seen here. The other table's word for it is the service's, and goes as far as that goes elsewhere.
create or replace function long_term_memory.asserted_writer(p_row long_term_memory.found_memory)
returns uuid language sql stable
set search_path = public, extensions, pg_temp
as $$
  select r.written_by
  from (select (p_row).*) as r
  where r.author = 'person' and r.redacted_at is null and exists (
    select from long_term_memory.org_settings s where s.org_id = r.org_id and s.allow_asserted)
$$;

comment on function long_term_memory.asserted_writer(long_term_memory.found_memory) is
  'The person of whom the other table says that they wrote a row, where the organization allows that one is named; else null, and the row is a model''s.';

create or replace function long_term_memory.adopt(p_row long_term_memory.found_memory)
returns boolean language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_run     text := p_row.source_run_id;
  v_person  uuid := long_term_memory.asserted_writer(p_row);
  v_vector  vector := long_term_memory.vector_or_null(p_row.embedding);
  v_adopted boolean;
  v_unknown text;
begin
  if long_term_memory.referred_to('source_run_id') = to_regclass('long_term_memory.agent_runs') then
    perform long_term_memory.note_run(v_run);
  end if;
  loop -- at most twice: a run that is not known is left out
    begin
      insert into long_term_memory.agent_memories (id, org_id, subject_type, subject_id, text, author, source_run_id, asserted_by,
        embedding, embedding_model, created_date, expires_at, redacted_at)
      values (p_row.id, p_row.org_id, p_row.subject_type, p_row.subject_id, coalesce(p_row.text, ''),
        case when v_person is not null then 'person' else 'model' end, v_run, v_person, v_vector,
        case when v_vector is null then '' else coalesce(p_row.embedding_model, '') end,
        case when isfinite(p_row.created_date) then p_row.created_date else now() end, p_row.expires_at, p_row.redacted_at)
      on conflict (id) do nothing;
      v_adopted := found;
      exit;
    exception when foreign_key_violation then
      get stacked diagnostics v_unknown = constraint_name;
      if v_unknown is distinct from 'agent_memories_source_run_id_fkey' or v_run is null then
        raise;
      end if;
      v_run := null;
    end;
  end loop;
  if v_adopted then
    perform long_term_memory.note_event(p_row.org_id, p_row.id, 'adopted', long_term_memory.calling(p_row.org_id),
                                        p_writer_before => p_row.written_by);
  end if;
  return v_adopted;
end
$$;

comment on function long_term_memory.adopt(long_term_memory.found_memory) is
  'Copies one row; false where a memory with this id is here already. It has no verified writer here and no review: a person''s is asserted, or waits for a review as a model''s.';

create or replace function public.adopt_memories(
  p_limit int default 500, p_after uuid default null, p_dry_run boolean default false)
returns jsonb language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_page    long_term_memory.found_memory[];
  v_row     long_term_memory.found_memory;
  v_problem text;
  v_adopted int := 0;
  v_present int := 0;
  v_skipped jsonb[] := '{}';
begin
  -- guard
  if p_limit is null or p_limit not between 1 and 1000 then
    raise sqlstate '22023' using
      message = 'p_limit is not a number from 1 to 1000.', hint = 'Call again with p_after => next, until next is null.';
  end if;

  perform long_term_memory.check_readable(long_term_memory.referred_to('org_id'));

  -- fetch: a page, and a share of the subjects in it, so that an erasure is over before it is looked for
  execute long_term_memory.adoption_query(long_term_memory.adoptable_table()) into v_page using p_after, p_limit;
  if not coalesce(p_dry_run, false) then
    perform long_term_memory.share_subjects(s.org_id, s.types, s.ids)
    from (select r.org_id, array_agg(r.subject_type) as types, array_agg(r.subject_id) as ids
          from unnest(v_page) as r where r.org_id is not null group by r.org_id order by r.org_id) as s;
  end if;

  -- mutate
  foreach v_row in array coalesce(v_page, '{}') loop
    v_problem := long_term_memory.adoption_problem(v_row);
    if exists (select from long_term_memory.agent_memories m where m.id = v_row.id and m.org_id = v_row.org_id) then
      v_present := v_present + 1;
    elsif v_problem is not null then
      v_skipped := v_skipped || jsonb_build_object('id', v_row.id, 'reason', v_problem);
    elsif coalesce(p_dry_run, false) or long_term_memory.adopt(v_row) then
      v_adopted := v_adopted + 1;
    else
      v_present := v_present + 1;
    end if;
  end loop;

  -- answer
  return jsonb_build_object('adopted', v_adopted, 'present', v_present, 'skipped', to_jsonb(v_skipped[:100]),
    'skipped_total', cardinality(v_skipped), 'next', case when cardinality(v_page) = p_limit then v_page[p_limit].id end);
end
$$;

comment on function public.adopt_memories(int, uuid, boolean) is
  'Copies a page of the other product''s public.agent_memories into the store, in the order of ids, and leaves that table as it is. A repeat adopts nothing twice.';

-- long_term_memory/420_organizations.sql ----------------------------------------------------------------------------

-- Organizations and members, for a project that has none of its own. Each change leaves a row in audit_events.

create or replace function long_term_memory.set_allow_asserted(p_org_id uuid, p_allowed boolean)
returns void language plpgsql
set search_path = public, extensions, pg_temp
as $$
begin
  insert into long_term_memory.org_settings as s (org_id, allow_asserted)
  select p_org_id, p_allowed
  where p_allowed or exists (select from long_term_memory.org_settings o where o.org_id = p_org_id) -- no row means no
  on conflict (org_id) do update set allow_asserted = excluded.allow_asserted
  where s.allow_asserted is distinct from excluded.allow_asserted;
  if found then
    insert into long_term_memory.audit_events (org_id, kind, payload)
    values (p_org_id, 'allow_asserted_set', jsonb_build_object('allow_asserted', p_allowed));
  end if;
end
$$;

comment on function long_term_memory.set_allow_asserted(uuid, boolean) is
  'Whether the service role may name members of the organization as those who acted.';

create or replace function public.set_organization(
  p_org_id uuid default null, p_name text default null, p_allow_asserted boolean default null)
returns jsonb language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_org_id  uuid := coalesce(p_org_id, gen_random_uuid());
  v_name    text;
  v_created boolean := false;
begin
  -- guard
  if p_name !~ '\S' or octet_length(p_name) > 1000 then
    raise sqlstate '22023' using message = 'p_name is blank, or longer than 1000 bytes.', hint = 'Give a name, or leave it out.';
  end if;

  -- mutate: an organization of the host's is the host's to make and to name
  if long_term_memory.referred_to('org_id') = to_regclass('long_term_memory.organizations') then
    insert into long_term_memory.organizations as o (id, name) values (v_org_id, p_name) on conflict (id) do nothing;
    v_created := found;
    if v_created then
      insert into long_term_memory.audit_events (org_id, kind) values (v_org_id, 'organization_created');
    else
      update long_term_memory.organizations o set name = p_name
      where o.id = v_org_id and o.name is distinct from p_name and p_name is not null;
      if found then
        insert into long_term_memory.audit_events (org_id, kind) values (v_org_id, 'organization_renamed');
      end if;
    end if;
    select o.name into v_name from long_term_memory.organizations o where o.id = v_org_id;
  elsif p_org_id is null or p_name is not null then
    raise sqlstate '22023' using
      message = format('Organizations of this project are rows of %s, which Ranked Ledger does not write.',
                       long_term_memory.referred_to('org_id')),
      hint = 'Create and name them there; here only p_allow_asserted of one that is there can be set.';
  else
    perform long_term_memory.require_org(p_org_id);
  end if;
  if p_allow_asserted is not null then
    perform long_term_memory.set_allow_asserted(v_org_id, p_allow_asserted);
  end if;

  -- answer
  return jsonb_build_object('org_id', v_org_id, 'name', v_name, 'created', v_created, 'allow_asserted', coalesce(
    (select s.allow_asserted from long_term_memory.org_settings s where s.org_id = v_org_id), false));
end
$$;

comment on function public.set_organization(uuid, text, boolean) is
  'Creates or renames an organization, where the project has no table of its own for them, and says whether the service role may name its members.';

-- A host may have put its own rule in the place of ours, and would not look at our table.
create or replace function long_term_memory.members_are_ours()
returns boolean language sql stable
set search_path = public, extensions, pg_temp
as $$
  select pg_get_functiondef('long_term_memory.member_role(uuid,uuid)'::regprocedure) like '%long\_term\_memory.members%'
$$;

comment on function long_term_memory.members_are_ours() is 'Whether member_role reads our table of members.';

create or replace function public.set_member(p_org_id uuid, p_user_id uuid, p_role text)
returns jsonb language plpgsql
set search_path = public, extensions, pg_temp
as $$
declare
  v_before  text;
  v_missing text;
  v_hint    text;
begin
  -- guard
  perform long_term_memory.require_org(p_org_id);
  if p_user_id is null or p_role not in ('member', 'admin', 'owner') then
    raise sqlstate '22023' using
      message = 'p_user_id is missing, or p_role is not member, admin or owner.',
      hint = 'Name the user by their id; a null role takes them out.';
  elsif not long_term_memory.members_are_ours() then
    raise sqlstate 'RL409' using
      message = 'Members are kept by this project itself: its long_term_memory.member_role does not ask our table.',
      hint = 'Change the role where the project keeps its members.';
  end if;

  -- mutate: changes of one organization's members take turns, so that an answer about its owners holds
  perform pg_advisory_xact_lock(hashtextextended('ranked_ledger: members ' || p_org_id, 0));
  select m.role into v_before from long_term_memory.members m where m.org_id = p_org_id and m.user_id = p_user_id;
  if p_role is null then
    delete from long_term_memory.members m where m.org_id = p_org_id and m.user_id = p_user_id;
  elsif p_role is distinct from v_before then
    begin
      insert into long_term_memory.members (org_id, user_id, role) values (p_org_id, p_user_id, p_role)
      on conflict (org_id, user_id) do update set role = excluded.role;
    exception when foreign_key_violation then -- the service role may not look into auth.users itself
      get stacked diagnostics v_missing = constraint_name;
      if v_missing <> 'members_user_id_fkey' then
        raise;
      end if;
      raise sqlstate 'RL404' using
        message = format('There is no user %s.', p_user_id), hint = 'Give the id of a user of this project (auth.users).';
    end;
  end if;
  if p_role is distinct from v_before then
    insert into long_term_memory.audit_events (org_id, kind, payload)
    values (p_org_id, 'member_set', jsonb_build_object('user_id', p_user_id, 'role', p_role, 'role_before', v_before));
  end if;
  if v_before = 'owner' and not exists (
    select from long_term_memory.members m where m.org_id = p_org_id and m.role = 'owner') then
    v_hint := 'That was the last owner: nobody but the service role can erase in this organization now.';
  end if;

  -- answer
  return jsonb_build_object('org_id', p_org_id, 'user_id', p_user_id, 'role', p_role,
                            'changed', p_role is distinct from v_before, 'hint', v_hint);
end
$$;

comment on function public.set_member(uuid, uuid, text) is
  'Makes a user a member, admin or owner of an organization; a null role takes them out.';

-- long_term_memory/430_memory_schema_version.sql --------------------------------------------------------------------

-- stable, and not immutable: an immutable one is folded into a cached plan, and PostgREST keeps a plan for all roles of a
-- connection, so that the right to execute it would not be asked again.
create or replace function public.memory_schema_version()
returns int language sql stable parallel safe
set search_path = public, extensions, pg_temp
as $$ select 1 $$;

comment on function public.memory_schema_version() is
  'The version of the long-term memory''s SQL API. A client asks once and names what does not fit.';

-- long_term_memory/700_public_functions.sql -------------------------------------------------------------------------

-- The RPCs of docs/memory-api.md. Those that people may call are pairs: in public with the caller's rights, and behind it in
-- long_term_memory with the owner's.
create or replace function long_term_memory.functions_for_people()
returns text[] language sql immutable parallel safe
return array[
  'correct_memory', 'erase_subject', 'forget_memory', 'memory_usage', 'pending_reviews', 'recall_memories', 'remember',
  'review_memory', 'subject_access'];

comment on function long_term_memory.functions_for_people() is 'Names of the RPCs that a person''s token may call.';

create or replace function long_term_memory.functions_for_the_service()
returns text[] language sql immutable parallel safe
return array['adopt_memories', 'attribute_decision', 'expire_memories', 'map_workspace', 'set_member', 'set_organization'];

comment on function long_term_memory.functions_for_the_service() is 'Names of the RPCs that only the service role may call.';

create or replace function long_term_memory.our_functions()
returns setof regprocedure language sql stable
set search_path = public, extensions, pg_temp
as $$
  -- a host may have a function of one of these names with other arguments, and its rights are the host's: ours pin this path
  select p.oid::regprocedure from pg_proc p
  where p.pronamespace = 'long_term_memory'::regnamespace
     or (p.pronamespace = 'public'::regnamespace and 'search_path=public, extensions, pg_temp' = any (p.proconfig)
         and p.proname = any (long_term_memory.functions_for_people() || long_term_memory.functions_for_the_service()
                              || array['memory_schema_version']))
$$;

comment on function long_term_memory.our_functions() is 'The functions of the long-term memory, in public and in its own schema.';

-- long_term_memory/800_access.sql -----------------------------------------------------------------------------------

-- Who may do what, in one place. Default privileges of a project are never altered: what they gave is taken back by name.
do $do$
declare
  v_object regclass;
begin
  for v_object in
    select c.oid from pg_class c where c.relnamespace = 'long_term_memory'::regnamespace and c.relkind = 'r'
  loop
    execute format('revoke all on table %s from public, anon, authenticated, service_role', v_object);
    execute format('grant select, insert, update, delete on table %s to service_role', v_object);
    execute format('drop policy if exists service_role_all on %s', v_object);
    execute format('create policy service_role_all on %s for all to service_role using (true) with check (true)', v_object);
    execute format('comment on policy service_role_all on %s is %L', v_object, 'The service role alone reads and writes.');
  end loop;
  for v_object in
    select c.oid from pg_class c where c.relnamespace = 'long_term_memory'::regnamespace and c.relkind = 'S'
  loop
    execute format('revoke all on sequence %s from public, anon, authenticated', v_object);
    execute format('grant usage on sequence %s to service_role', v_object);
  end loop;
end
$do$;

do $do$
declare
  v_function record;
begin
  for v_function in
    select f.name, p.proname, p.prorettype = 'trigger'::regtype as is_trigger
    from long_term_memory.our_functions() as f (name) join pg_proc p on p.oid = f.name
  loop
    execute format('revoke execute on function %s from public, anon, authenticated, service_role', v_function.name);
    if not v_function.is_trigger then
      execute format('grant execute on function %s to service_role', v_function.name);
    end if;
    if v_function.proname = any (long_term_memory.functions_for_people() || array['memory_schema_version']) then
      execute format('grant execute on function %s to authenticated', v_function.name);
    end if;
  end loop;
end
$do$;

-- long_term_memory/900_join.sql -------------------------------------------------------------------------------------

-- Last: where the ledger is installed already, the two are joined. A ledger that is pushed later does it from its side.
select long_term_memory.join_ledger();

-- long_term_memory/910_schedule.sql ---------------------------------------------------------------------------------

-- Where the project has pg_cron, expired memories go by themselves. A job of this name is replaced. Nothing about it stops
-- the migration: recall never returns what has expired, swept or not, and `ranked-ledger memory expire` sweeps by hand.
do $do$
declare
  v_advice text := 'As a role that may use pg_cron, run: select cron.schedule(''ranked-ledger-expire-memories'', ''*/15 * * * *'', '
                   '''select public.expire_memories(10000)'')';
begin
  if exists (select from pg_extension e where e.extname = 'pg_cron') then
    perform cron.schedule('ranked-ledger-expire-memories', '*/15 * * * *', 'select public.expire_memories(10000)');
  end if;
exception when others then
  -- a push shows no hint
  raise warning using
    message = format('Expired memories are not swept by themselves: %s. %s', sqlerrm, v_advice), hint = v_advice;
end
$do$;

-- The API learns at commit what is new.
notify pgrst, 'reload schema';
