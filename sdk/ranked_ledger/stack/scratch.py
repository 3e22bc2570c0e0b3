"""Temporary folders with servers in them, and what to do about those whose owner was killed."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from ranked_ledger.stack.accounts import server_account
from ranked_ledger.stack.errors import StackError

_OWNER_FILE = "owner.lock"


@contextlib.contextmanager
def scratch_home(prefix: str, stop: Callable[[Path], None]) -> Iterator[Path]:
    """A folder that is removed at the end; `stop` ends the servers in such a folder, running or not.

    A caller that is killed leaves its servers behind, so the next one ends those of callers that are gone.
    """
    _clear_abandoned(prefix, stop)
    home = Path(tempfile.mkdtemp(prefix=prefix))
    try:
        with _owned(home):
            if server_account() is not None:
                home.chmod(0o711)
            try:
                yield home
            finally:
                stop(home)
    finally:
        shutil.rmtree(home, ignore_errors=True)


@contextlib.contextmanager
def _owned(home: Path) -> Iterator[None]:
    """The owner holds a lock, which the kernel lets go when it dies: no pid or clock is needed to tell."""
    with (home / ".owner").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        # it appears under its name when it is held already
        (home / ".owner").rename(home / _OWNER_FILE)
        yield


def _clear_abandoned(prefix: str, stop: Callable[[Path], None]) -> None:
    for home in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        # Two callers may come upon the same folder, and what is not ours or not finished is left alone.
        with contextlib.suppress(OSError, StackError):
            if home.lstat().st_uid != os.geteuid():
                continue
            with (home / _OWNER_FILE).open() as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                stop(home)
                shutil.rmtree(home, ignore_errors=True)
