"""The log of a run: JSON lines, one for the run, one a question and arm, one for the end. `runs` reads it.

Each row is on the disk before the next question is put, so an interrupted run leaves a log that can be read;
only a finished one has its last line. A row's line is packed, see `packing`.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from ranked_ledger.evals.errors import EvalError
from ranked_ledger.evals.packing import Row, packed, unpacked

FORMAT: Final = 2

_ELSEWHERE: Final = "name another file with --out"
_HEADER_WITHIN: Final = 4096  # a header names its kind at its beginning


class Writer:
    """Writes a log, row by row; used in a `with`. Nobody else can write to the file until its end."""

    def __init__(self, path: Path, header: Mapping[str, Any]) -> None:
        self.path = path
        self.rows = 0
        self._size = 0
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as refused:
            raise _unwritable(path, refused) from None
        try:
            _take(path, self._file)
            self._write({"kind": "header", "format": FORMAT, **header})
        except BaseException:
            os.close(self._file)
            raise

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
        left = memoryview((json.dumps(line, separators=(",", ":")) + "\n").encode())
        size = self._size + len(left)
        try:
            if not self._size:
                os.ftruncate(self._file, 0)  # only now: until here the earlier log is whole
            while left:
                left = left[os.write(self._file, left) :]
        except OSError as refused:
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, self._size)  # no half a line
            raise EvalError(
                f"the log {self.path} cannot be written on: {refused.strerror}",
                hint="free some room, or name another file with --out; what it has so far can be reported",
            ) from None
        self._size = size

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            os.fsync(self._file)
        except OSError as refused:
            if error is None:
                raise _unwritable(self.path, refused) from None
        finally:
            os.close(self._file)


def check(path: Path) -> None:
    """Raise `EvalError` where a log cannot go there, before anything is done for it; nothing is written."""
    try:
        file = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        there = next(folder for folder in path.absolute().parents if folder.exists())
        if not there.is_dir():
            raise _unwritable(path, NotADirectoryError(0, f"{there} is no folder")) from None
        if not os.access(there, os.W_OK | os.X_OK):
            raise _unwritable(path, PermissionError(0, f"nothing can be made in {there}")) from None
    except OSError as refused:
        raise _unwritable(path, refused) from None
    else:
        try:
            _take(path, file)
        finally:
            os.close(file)


def _take(path: Path, file: int) -> None:
    """Lock the file for as long as it is open. What is there must be a log: an input is not written over."""
    if not stat.S_ISREG(os.fstat(file).st_mode):
        raise EvalError(f"the log {path} cannot be written: it is no file", hint=_ELSEWHERE)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise EvalError(
            f"another run writes the log {path}", hint=f"wait until it is done, or {_ELSEWHERE}"
        ) from None
    except OSError:
        pass  # a file system without locks
    begins = os.pread(file, _HEADER_WITHIN, 0)
    if begins.strip() and not begins.replace(b" ", b"").startswith(b'{"kind":"header"'):
        raise EvalError(
            f"{path} is there already and is no log of a run, so it is left as it is", hint=_ELSEWHERE
        )


def _unwritable(path: Path, refused: OSError) -> EvalError:
    return EvalError(f"the log {path} cannot be written: {refused.strerror}", hint=_ELSEWHERE)
