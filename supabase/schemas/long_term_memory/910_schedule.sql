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
