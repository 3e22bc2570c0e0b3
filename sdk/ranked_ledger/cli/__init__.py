"""The command line: every command parses, calls the client once, and prints."""

from __future__ import annotations

import sys
from collections.abc import Sequence

_USAGE = 2
_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> None:
    """Run `ranked-ledger`, and exit with the code that its help lists."""
    try:
        code = _run(sys.argv[1:] if arguments is None else list(arguments))
    except KeyboardInterrupt:  # while the modules below are loaded; later `run` reports it
        print("Error: interrupted", file=sys.stderr)
        code = _INTERRUPTED
    sys.exit(code)


def _run(arguments: Sequence[str]) -> int:
    try:
        from ranked_ledger.cli.app import run  # noqa: PLC0415  the extra may be missing
    except ModuleNotFoundError as missing:
        if (missing.name or "").startswith("ranked_ledger"):
            raise
        print(
            f"Error: the command line needs the package {missing.name}: pip install 'ranked-ledger[cli]'",
            file=sys.stderr,
        )
        return _USAGE
    return run(arguments)
