"""Which account PostgreSQL runs as, and whether that account can reach a folder."""

from __future__ import annotations

import contextlib
import os
import pwd
import stat
from dataclasses import dataclass
from pathlib import Path

from ranked_ledger.stack.errors import FolderUnusable


@dataclass(frozen=True)
class Account:
    """The unprivileged account that PostgreSQL runs as where we are root: it refuses to run as root."""

    name: str
    uid: int
    gid: int


def server_account() -> Account | None:
    """None for an ordinary user, whose servers run as themselves."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            entry = pwd.getpwnam(name)
            return Account(name, entry.pw_uid, entry.pw_gid)
    raise FolderUnusable(
        "PostgreSQL does not run as root and there is no account `postgres` or `nobody`: "
        "create one with `useradd postgres`."
    )


def barrier(path: Path, account: Account) -> Path | None:
    """The first folder on the way to `path`, itself included, that the account cannot enter."""
    for folder in [path, *path.parents]:
        try:
            info = folder.stat()
        except FileNotFoundError:
            continue
        if info.st_uid == account.uid:
            bit = stat.S_IXUSR
        else:
            bit = stat.S_IXGRP if info.st_gid == account.gid else stat.S_IXOTH
        if not info.st_mode & bit:
            return folder
    return None


def check_reachable(path: Path, account: Account) -> None:
    """Refuse a folder that the account cannot enter; the rights of a folder not ours are never widened."""
    folder = barrier(path, account)
    if folder is not None:
        raise FolderUnusable(
            f"As root PostgreSQL runs as the account `{account.name}`, which cannot enter {folder}: "
            f"use a folder that it can reach, such as one under /var/lib."
        )
