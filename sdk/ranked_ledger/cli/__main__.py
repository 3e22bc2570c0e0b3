"""`python -m ranked_ledger.cli`."""

from ranked_ledger.cli import main

main()
