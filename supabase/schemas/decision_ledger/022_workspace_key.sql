-- A workspace in eight bytes, for the derived copies. Two that share a key (2^32 of them before that is to be expected)
-- share a place to look, never an answer: what is answered is read again from the tables, by the workspace's whole name.
create or replace function ranked_ledger.workspace_key(p_workspace_id text)
returns bigint language sql immutable parallel safe
return ('x' || left(md5(p_workspace_id), 16))::bit(64)::bigint;

comment on function ranked_ledger.workspace_key(text) is 'The first 64 bits of the md5 of a workspace''s name.';
