"""Files that a command line names."""

from __future__ import annotations

from pathlib import Path

from ranked_ledger.errors import InvalidArgumentError


def read_text(file: Path) -> str:
    """The file's text; what keeps it from being read is said in a sentence."""
    try:
        return file.read_text(encoding="utf-8-sig")
    except OSError as wrong:
        raise InvalidArgumentError(f"{file} cannot be read: {wrong.strerror}") from None
    except UnicodeDecodeError:
        raise InvalidArgumentError(f"{file} is not UTF-8") from None
