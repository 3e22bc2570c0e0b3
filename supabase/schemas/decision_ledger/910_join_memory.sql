-- Where the long-term memory is installed already, it is joined to the ledger from here.
do $join$
begin
  if to_regprocedure('long_term_memory.join_ledger()') is not null then
    perform long_term_memory.join_ledger();
  end if;
end
$join$;
