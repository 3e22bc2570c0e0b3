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
