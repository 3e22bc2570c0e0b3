"""The files that `ranked-ledger eval` writes beside those that it reads."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ranked_ledger.errors import InvalidArgumentError


def kept_apart(read: Mapping[str, Path], written: Mapping[str, Path | None]) -> None:
    """Refuse to write over what is read, or twice over one file; before anything is written."""
    seen = dict(read)
    for name, path in written.items():
        if path is None:
            continue
        if other := next((one for one, there in seen.items() if _same(path, there)), None):
            raise InvalidArgumentError(
                f"{name} and {other} are the same file, {path}: it would be lost",
                hint=f"name another file with {name if name.startswith('--') else '--html'}",
            )
        seen[name] = path


def write(path: Path, text: str) -> None:
    """Write a document, or say which one could not be written."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as refused:
        raise InvalidArgumentError(
            f"{path} cannot be written: {refused.strerror}", hint="free some room, or name another file"
        ) from None


def _same(path: Path, other: Path) -> bool:
    # by inode where there are two: a hard link, or another spelling where case does not count, is the same
    try:
        return path.samefile(other)
    except OSError:
        return path.resolve() == other.resolve()
