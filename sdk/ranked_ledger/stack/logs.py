"""The newest lines of the servers' logs, and those to come."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

_POLL_SECONDS = 0.2


def tail(files: dict[str, Path], lines: int, follow: bool) -> Iterator[tuple[str, str]]:
    """Pairs of service and line; with `follow` without end, also across a log that begins anew."""
    offsets: dict[str, int] = {}
    for name, file in files.items():
        text = file.read_text(errors="replace") if file.exists() else ""
        offsets[name] = file.stat().st_size if file.exists() else 0
        newest = text.splitlines()[-lines:] if lines > 0 else []
        yield from ((name, line) for line in newest)
    while follow:
        for name, file in files.items():
            size = file.stat().st_size if file.exists() else 0
            start = offsets[name] if size >= offsets[name] else 0
            if size > start:
                with file.open("rb") as log:
                    log.seek(start)
                    fresh = log.read()
                complete = fresh[: fresh.rfind(b"\n") + 1]
                offsets[name] = start + len(complete)
                yield from ((name, line) for line in complete.decode(errors="replace").splitlines())
        time.sleep(_POLL_SECONDS)
