select * from match_decision_ledger(
  p_workspace_id => %(workspace)s, p_query => %(text)s, p_query_embedding => %(vector)s::vector, p_preset => 'tuned')
