"""The newest lines of the servers' logs, and those to come."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

_POLL_SECONDS = 0.2
_MAX_BYTES = 10_000_000


def rotate(file: Path) -> None:
    """At a start, put a log aside that has grown long; one older one is kept."""
    if file.exists() and file.stat().st_size > _MAX_BYTES:
        file.replace(file.with_name(f"{file.name}.1"))


def tail(files: dict[str, Path], lines: int, follow: bool) -> Iterator[tuple[str, str]]:
    """Pairs of service and line; with `follow` without end, beginning at the moment of this call."""
    newest: list[tuple[str, str]] = []
    offsets: dict[str, int] = {}
    for name, file in files.items():
        content = file.read_bytes() if file.exists() else b""
        offsets[name] = len(content)
        newest += [
            (name, line) for line in content.decode(errors="replace").splitlines()[-lines:] if lines > 0
        ]
    return chain(newest, _to_come(files, offsets)) if follow else iter(newest)


def _to_come(files: dict[str, Path], offsets: dict[str, int]) -> Iterator[tuple[str, str]]:
    while True:
        for name, file in files.items():
            size = file.stat().st_size if file.exists() else 0
            # a log that is shorter than before has begun anew
            start = offsets[name] if size >= offsets[name] else 0
            offsets[name] = start
            if size > start:
                with file.open("rb") as log:
                    log.seek(start)
                    fresh = log.read()
                complete = fresh[: fresh.rfind(b"\n") + 1]
                offsets[name] = start + len(complete)
                yield from ((name, line) for line in complete.decode(errors="replace").splitlines())
        time.sleep(_POLL_SECONDS)
