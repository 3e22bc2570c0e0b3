"""The command line: every command parses, calls the client once, and prints."""

from __future__ import annotations

import sys
from collections.abc import Sequence

_USAGE = 2


def main(arguments: Sequence[str] | None = None) -> None:
    """Run `ranked-ledger`, and exit with the code that its help lists."""
    try:
        from ranked_ledger.cli.app import run  # noqa: PLC0415  the extra may be missing
    except ModuleNotFoundError as missing:
        if (missing.name or "").startswith("ranked_ledger"):
            raise
        print(
            f"Error: the command line needs the package {missing.name}: pip install 'ranked-ledger[cli]'",
            file=sys.stderr,
        )
        sys.exit(_USAGE)
    sys.exit(run(sys.argv[1:] if arguments is None else list(arguments)))
