-- What an answer comes to at each budget of tokens, packed by the product's own function; and where each hit really lies, asked
-- of its row and not of the answer. A hit packs without its text as with it, and forty times that is little work.
create function ranked_ledger_evals.examine(
  p_memory_ids uuid[], p_tokens integer[], p_summary_tokens integer[], p_gold uuid[], p_budgets integer[])
returns jsonb language plpgsql stable
set search_path = public, extensions, pg_temp
as $$
declare
  v_hits jsonb;
begin
  v_hits := (
    select coalesce(jsonb_agg(jsonb_build_object(
      'memory_id', o.memory_id, 'pinned', l.pinned, 'tokens', o.tokens, 'summary_tokens', o.summary_tokens) order by o.place), '[]')
    from unnest(p_memory_ids, p_tokens, p_summary_tokens) with ordinality as o (memory_id, tokens, summary_tokens, place)
    join public.agent_decision_ledger l on l.memory_id = o.memory_id);
  return jsonb_build_object(
    'workspaces', (select coalesce(jsonb_object_agg(m.id, m.workspace_id), '{}') from public.agent_memories m where m.id = any (p_memory_ids)),
    'budgets', (
      select jsonb_object_agg(b.budget, f.figures)
      from unnest(p_budgets) as b (budget)
      cross join lateral (select ranked_ledger.pack_hits(v_hits, b.budget) -> 'hits' as kept offset 0) as p
      cross join lateral (
        select jsonb_build_object(
          'hits', count(*), 'tokens', coalesce(sum((k.hit ->> 'tokens')::int), 0),
          'first_right', min(k.place) filter (where (k.hit ->> 'memory_id')::uuid = any (p_gold))) as figures
        from jsonb_array_elements(p.kept) with ordinality as k (hit, place)) as f));
end
$$;

-- An answer without a budget does not say what a hit costs by its summary alone.
create function ranked_ledger_evals.summary_tokens(p_memory_ids uuid[])
returns jsonb language sql stable as $$
  select coalesce(jsonb_object_agg(i.memory_id, ranked_ledger.hit_document('{}', i.memory_id) -> 'summary_tokens'), '{}')
  from unnest(p_memory_ids) as i (memory_id)
$$;
