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
