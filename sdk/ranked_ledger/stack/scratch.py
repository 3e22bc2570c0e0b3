"""Temporary folders with servers in them, and what to do about those whose owner was killed."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil

from ranked_ledger.stack.accounts import server_account
from ranked_ledger.stack.errors import StackError

_OWNER_FILE = "owner.json"


@contextlib.contextmanager
def scratch_home(prefix: str, stop: Callable[[Path], None]) -> Iterator[Path]:
    """A folder that is removed at the end; `stop` ends the servers in such a folder, running or not.

    A caller that is killed leaves its servers behind, so the next one ends those of callers that are gone.
    """
    _clear_abandoned(prefix, stop)
    home = Path(tempfile.mkdtemp(prefix=prefix))
    try:
        me = psutil.Process()
        (home / _OWNER_FILE).write_text(json.dumps({"pid": me.pid, "create_time": me.create_time()}))
        if server_account() is not None:
            home.chmod(0o711)
        try:
            yield home
        finally:
            stop(home)
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _clear_abandoned(prefix: str, stop: Callable[[Path], None]) -> None:
    for home in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        # two callers may come upon the same folder: whatever the other one has removed already is done
        with contextlib.suppress(OSError, StackError):
            if home.lstat().st_uid == os.geteuid() and _owner_is_gone(home):
                stop(home)
                shutil.rmtree(home, ignore_errors=True)


def _owner_is_gone(home: Path) -> bool:
    try:
        owner = json.loads((home / _OWNER_FILE).read_text())
        process = psutil.Process(owner["pid"])
        return process.status() == psutil.STATUS_ZOMBIE or process.create_time() != owner["create_time"]
    except psutil.NoSuchProcess:
        return True
    except (OSError, ValueError, KeyError, psutil.Error):
        return False  # not ours, or not finished: leave it
