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
