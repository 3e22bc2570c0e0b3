"""A client of an `agent-memory-api` edge function that carries Ranked Ledger's patch.

`patches/agent-memory-api` is the other end. What the patch does not add is the function's own, and differs
from copy to copy.
"""
