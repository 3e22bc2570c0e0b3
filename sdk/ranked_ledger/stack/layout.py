"""Where a stack keeps what, and which of it others may see."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from ranked_ledger.stack.accounts import barrier, server_account
from ranked_ledger.stack.errors import (
    DiskFull,
    FolderUnusable,
    NoSuchStack,
    StackError,
    disk_full,
)
from ranked_ledger.stack.postgres import SOCKET_PATH_MAX
from ranked_ledger.stack.programs import ROOT_HOME, make_passable

HOME_VARIABLE = "RANKED_LEDGER_HOME"

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")
_LONGEST_SOCKET = "run/postgrest.sock"


def default_home() -> Path:
    """RANKED_LEDGER_HOME, else the user's data folder; for root a folder that is not closed to others."""
    if value := os.environ.get(HOME_VARIABLE):
        return Path(value).absolute()
    home = platformdirs.user_data_path("ranked-ledger")
    account = server_account()
    if account is not None and barrier(home, account) is not None:
        return ROOT_HOME
    return home


@dataclass(frozen=True)
class Layout:
    """The paths of one stack."""

    home: Path
    name: str

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise NoSuchStack(
                f"{self.name!r} is no name for a stack: use 1 to 32 of a-z, 0-9, - and _, "
                f"beginning with a letter or digit."
            )

    @property
    def folder(self) -> Path:
        return self.home / "stacks" / self.name

    @property
    def programs(self) -> Path:
        return self.home / "programs"

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def logs(self) -> Path:
        return self.folder / "log"

    @property
    def lock(self) -> Path:
        return self.folder / "lock"

    @property
    def keys(self) -> Path:
        return self.folder / "keys.json"

    @property
    def state(self) -> Path:
        return self.folder / "stack.json"

    @property
    def sockets(self) -> Path:
        """The stack's folder, or a short one where that path is too long for a Unix socket."""
        if len(os.fsencode(self.folder / _LONGEST_SOCKET)) <= SOCKET_PATH_MAX:
            return self.folder
        digest = hashlib.sha256(os.fsencode(self.folder)).hexdigest()[:12]
        return Path(tempfile.gettempdir()) / f"ranked-ledger-{os.geteuid()}-{digest}"

    @property
    def postgres_sockets(self) -> Path:
        return self.sockets / "pg"

    @property
    def run(self) -> Path:
        """Private even where PostgreSQL runs as another account: it holds the socket of PostgREST."""
        return self.sockets / "run"

    @property
    def rest_socket(self) -> Path:
        return self.run / "postgrest.sock"

    def log(self, service: str) -> Path:
        return self.logs / f"{service}.log"

    def create(self) -> None:
        """Make the folders; the account that PostgreSQL runs as may pass through, nobody may look inside."""
        through = 0o700
        if server_account() is not None:
            through = 0o711
            make_passable(self.folder.parent)
        self.folder.mkdir(parents=True, exist_ok=True, mode=through)
        for folder in (self.folder, self.sockets):
            folder.mkdir(exist_ok=True, mode=through)
            info = folder.lstat()
            if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.geteuid():
                raise FolderUnusable(
                    f"{folder} belongs to somebody else: set {HOME_VARIABLE} to a folder of yours."
                )
            folder.chmod(through)
        self.logs.mkdir(exist_ok=True)
        self.logs.chmod(through)
        self.run.mkdir(exist_ok=True)
        self.run.chmod(0o700)


@contextlib.contextmanager
def named_failures(folder: Path) -> Iterator[None]:
    """Turn what the operating system refuses into one sentence."""
    try:
        yield
    except OSError as error:
        if disk_full(error):
            raise DiskFull(f"The disk of {folder} is full: free some room and try again.") from error
        path = error.filename or folder
        if isinstance(error, PermissionError) or error.errno == errno.EROFS:
            raise FolderUnusable(
                f"{path} cannot be written or entered ({error.strerror}): "
                f"set {HOME_VARIABLE} to a folder of yours."
            ) from error
        raise StackError(f"{path}: {error.strerror or error}.") from error
