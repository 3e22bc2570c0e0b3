"""The local servers: what a hosted Supabase project is to a client, without Docker.

>>> from ranked_ledger.stack import temporary_stack
>>> with temporary_stack() as stack:
...     print(stack.info().url)
"""

try:
    from ranked_ledger.stack.errors import StackError
    from ranked_ledger.stack.info import StackInfo, StackStatus
    from ranked_ledger.stack.stack import DEFAULT_NAME, SERVICES, Stack, temporary_stack
except ModuleNotFoundError as missing:
    if (missing.name or "").startswith("ranked_ledger"):
        raise
    raise ModuleNotFoundError(
        f"ranked_ledger.stack needs the package {missing.name}: pip install 'ranked-ledger[local]'",
        name=missing.name,
    ) from None

__all__ = ["DEFAULT_NAME", "SERVICES", "Stack", "StackError", "StackInfo", "StackStatus", "temporary_stack"]
