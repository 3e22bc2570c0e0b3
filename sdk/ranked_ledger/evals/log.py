"""The log of a run: JSON lines, one for the run, one a question and arm, one for the end. `runs` reads it.

Each row is on the disk before the next question is put, so an interrupted run leaves a log that can be read;
only a finished one has its last line. A row's line is packed, see `packing`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from ranked_ledger.evals.errors import EvalError
from ranked_ledger.evals.packing import Row, packed, unpacked

FORMAT: Final = 2


class Writer:
    """Writes a log, row by row; used in a `with`."""

    def __init__(self, path: Path, header: Mapping[str, Any]) -> None:
        self.path = path
        self.rows = 0
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("w", encoding="utf-8", newline="\n")
        except OSError as refused:
            raise EvalError(
                f"the log {path} cannot be written: {refused.strerror}", hint="name another file with --out"
            ) from None
        self._write({"kind": "header", "format": FORMAT, **header})

    def row(self, row: Row) -> None:
        self._write({"kind": "row", **packed(row)})
        self.rows += 1

    def written(self) -> Iterator[Row]:
        """The rows as the file has them, one at a time: a large run does not fit in memory."""
        with self.path.open(encoding="utf-8") as file:
            yield from (unpacked(line) for line in map(json.loads, file) if line["kind"] == "row")

    def finish(self, *, anomalies: Mapping[str, int], **known: Any) -> None:
        """The last line: without it the run is an interrupted one."""
        self._write({"kind": "end", "rows": self.rows, "anomalies": dict(anomalies), **known})

    def _write(self, line: Mapping[str, Any]) -> None:
        self._file.write(json.dumps(line, separators=(",", ":")) + "\n")
        self._file.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.fsync(self._file.fileno())
        self._file.close()
