"""The local servers: what a hosted Supabase project is to a client, without Docker.

>>> from ranked_ledger.stack import temporary_stack
>>> with temporary_stack() as stack:
...     print(stack.info().url)
"""

from ranked_ledger.stack.errors import StackError
from ranked_ledger.stack.info import StackInfo, StackStatus
from ranked_ledger.stack.stack import DEFAULT_NAME, SERVICES, Stack, temporary_stack

__all__ = ["DEFAULT_NAME", "SERVICES", "Stack", "StackError", "StackInfo", "StackStatus", "temporary_stack"]
