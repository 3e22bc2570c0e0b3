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
