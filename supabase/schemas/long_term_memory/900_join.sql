-- Last: where the ledger is installed already, the two are joined. A ledger that is pushed later does it from its side.
select long_term_memory.join_ledger();
