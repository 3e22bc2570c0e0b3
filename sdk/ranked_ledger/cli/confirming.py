"""What cannot be undone wants its name typed again."""

from __future__ import annotations

import sys

from ranked_ledger.cli.failures import Refused


def confirm(name: str, *, to: str, undone: str, hint: str = "say --yes") -> None:
    """The name typed again; where nobody can type, a refusal.

    Example:
        >>> confirm("3f1c0b8e-...", to="forget it", undone="nothing was forgotten")      # doctest: +SKIP
    """
    must_be_asked(undone=undone, hint=hint)
    # not typer's prompt: that writes a blank to standard output, which is the result's
    print(f"This cannot be undone. Type {name} again to {to}: ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip() != name:
        raise Refused(f"{undone}: that is another one")


def must_be_asked(*, undone: str, hint: str) -> None:
    """Refuses where there is no terminal to type at."""
    if not sys.stdin.isatty():
        raise Refused(f"{undone}: it was not confirmed", hint=hint)
