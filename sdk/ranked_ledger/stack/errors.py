"""What can go wrong with the local servers: one class, one exit code and one sentence each.

The codes lie above those of the other commands, so that one number means one thing.
"""

from __future__ import annotations

import errno
from typing import ClassVar


class StackError(Exception):
    """A failure of the local stack; the message is one sentence that says what to do."""

    exit_code: ClassVar[int] = 1


class MissingProgram(StackError):
    """PostgreSQL, PostgREST or npm is not there, or is not the version that is needed."""

    exit_code = 23


class MissingModule(StackError):
    """A Python package of the extra `local` is not installed."""

    exit_code = 24


class PortTaken(StackError):
    """Another program listens where the stack was told to listen, or only root may."""

    exit_code = 25


class WrongDataVersion(StackError):
    """The data directory was written by another major version of PostgreSQL."""

    exit_code = 26


class DiskFull(StackError):
    """The disk that holds the stack has no room left."""

    exit_code = 27


class StartFailed(StackError):
    """A server ended, or was not ready in time, after it was started."""

    exit_code = 28


class FolderUnusable(StackError):
    """A folder of the stack cannot be reached, written or trusted, or its path is too long."""

    exit_code = 29


class StackBusy(StackError):
    """Another command works on the same stack."""

    exit_code = 30


class NoSuchStack(StackError):
    """The stack was never started, or its name is not a valid one."""

    exit_code = 31


def disk_full(error: OSError) -> bool:
    """Whether an operating system error means that there is no room (or no quota) left."""
    # shutil.copytree gathers several errors in one that has no number
    return error.errno in (errno.ENOSPC, errno.EDQUOT) or disk_full_text(str(error))


def disk_full_text(text: str) -> bool:
    """The same for the output of a program that was started with untranslated messages."""
    return "No space left on device" in text or "Disk quota exceeded" in text
