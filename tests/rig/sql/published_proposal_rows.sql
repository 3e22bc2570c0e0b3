-- Rows that people who ran the proposal have. The decisions from before its install (ids 1000...) were never enrolled.
insert into public.agent_memories
  (id, workspace_id, project_id, task_id, memory_type, summary, content, lifecycle_status, confidence, metadata,
   created_at)
values
  ('30000000-0000-4000-8000-000000000001', 'acme', 'billing', 'export', 'decision', 'Export as CSV',
   'Exports are CSV files', 'active', 0.50, '{"step_index": 3, "rationale": "every tool reads it"}',
   '2026-02-01 10:00+00'),
  ('30000000-0000-4000-8000-000000000002', 'acme', 'billing', 'export', 'decision', 'Export by night',
   'Exports run at night', 'active', 1.00, '{"step_index": 4}', '2026-02-01 11:00+00'),
  ('30000000-0000-4000-8000-000000000003', 'acme', 'billing', 'export', 'decision', 'Export to a bucket',
   'Exports go to a bucket', 'superseded', 0.00, '{"step_index": 4}', '2026-02-01 12:00+00'),
  ('30000000-0000-4000-8000-000000000004', 'acme', 'billing', 'export', 'decision', 'Export with a header',
   'Exports have a header line', 'active', 0.30, '{"step_index": 2000000000}', '2026-02-01 13:00+00'),
  ('30000000-0000-4000-8000-000000000005', 'acme', 'billing', 'archive', 'decision', 'Archive after a year',
   'Archive exports after one year', 'active', 0.80, '{"agent_memory": {"step_index": 12}}', '2026-02-01 14:00+00'),
  ('30000000-0000-4000-8000-000000000006', 'acme', 'billing', 'archive', 'decision', 'Archive twice',
   'Keep two archives of exports', 'active', 0.60, '{}', '2026-02-01 15:00+00');

-- two writers of one stream read the same maximum
update public.agent_decision_ledger set step_index = 12 where memory_id = '30000000-0000-4000-8000-000000000006';
update public.agent_decision_ledger
  set pinned = true, recall_count = 17, used_count = 5, last_recalled_at = '2026-02-03 10:00+00',
      metadata = '{"source": "proposal"}'
  where memory_id = '30000000-0000-4000-8000-000000000001';
update public.agent_decision_ledger set importance = 0.99 where memory_id = '30000000-0000-4000-8000-000000000005';

insert into public.agent_decision_edges (from_memory_id, to_memory_id, relation, metadata) values
  ('30000000-0000-4000-8000-000000000002', '30000000-0000-4000-8000-000000000001', 'depends_on', '{"why": "format"}'),
  ('30000000-0000-4000-8000-000000000003', '30000000-0000-4000-8000-000000000001', 'depends_on', '{}'),
  ('30000000-0000-4000-8000-000000000005', '30000000-0000-4000-8000-000000000001', 'informs', '{}');
