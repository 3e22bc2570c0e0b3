select count(*), max(step_index), sum(importance) from agent_decision_ledger where workspace_id = %(workspace)s
