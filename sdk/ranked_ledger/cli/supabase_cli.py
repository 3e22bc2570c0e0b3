"""The real Supabase CLI: where it is, and `supabase db push` with it."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Final

from ranked_ledger.errors import RankedLedgerError

PROGRAM_VARIABLE: Final = "RANKED_LEDGER_SUPABASE_CLI"
PACKAGE: Final = "supabase@2.117.0"  # the version that package.json pins; a test compares them

_INSTALL_SECONDS: Final = 300
_PUSH_SECONDS: Final = 180


class SupabaseCliError(RankedLedgerError):
    """The Supabase CLI is not there, or did not do what it was told."""


def find(programs: Path, say: Callable[[str], None] = lambda _: None) -> Path:
    """The environment variable, the repository's node_modules, the user's own, PATH; else npm installs it."""
    if override := os.environ.get(PROGRAM_VARIABLE):
        return Path(override)
    root = Path(__file__).resolve().parents[3]
    for modules in (root / "node_modules", programs / "node_modules"):
        program = modules / ".bin" / "supabase"
        if (modules == programs / "node_modules" or (root / "package.json").is_file()) and program.is_file():
            return program
    if on_path := shutil.which("supabase"):
        return Path(on_path)
    return _install(programs, say)


def _install(programs: Path, say: Callable[[str], None]) -> Path:
    npm = shutil.which("npm")
    if npm is None:
        raise SupabaseCliError(
            "the Supabase CLI is missing, and npm, which would install it, is too",
            hint=f"install Node.js 20 or newer, or set {PROGRAM_VARIABLE} to a Supabase CLI of your own",
        )
    say(f"installing {PACKAGE} with npm into {programs}")
    programs.mkdir(parents=True, exist_ok=True)
    command = [
        npm,
        "install",
        "--prefix",
        str(programs),
        "--no-save",
        "--no-audit",
        "--no-fund",
        "--silent",
        PACKAGE,
    ]
    try:
        done = _run(command, programs, _INSTALL_SECONDS)
    except subprocess.TimeoutExpired:
        raise SupabaseCliError(f"npm did not install {PACKAGE} within {_INSTALL_SECONDS} s") from None
    program = programs / "node_modules" / ".bin" / "supabase"
    if done.returncode != 0 or not program.is_file():
        raise SupabaseCliError(
            f"npm could not install {PACKAGE}: {_last_line(done.stdout)}",
            hint=f"set {PROGRAM_VARIABLE} to a Supabase CLI of your own",
        )
    return program


def push(program: Path, project: Path, db_url: str) -> None:
    """`supabase db push` of a project folder to a database; what it says is shown where it fails."""
    command = [str(program), "db", "push", "--db-url", db_url, "--yes"]
    own = project / ".supabase-cli"
    own.mkdir(exist_ok=True)
    try:
        # the program unpacks parts of itself into TMPDIR and leaves them there, and it notes things in HOME
        done = _run(command, project, _PUSH_SECONDS, TMPDIR=str(own), HOME=str(own))
    except OSError as error:
        raise SupabaseCliError(
            f"{program} cannot be started: {error.strerror}", hint=f"set {PROGRAM_VARIABLE} to a Supabase CLI"
        ) from None
    except subprocess.TimeoutExpired:
        raise SupabaseCliError(f"`supabase db push` did not end within {_PUSH_SECONDS} s") from None
    if done.returncode != 0:
        raise SupabaseCliError("`supabase db push` failed", detail=done.stdout.strip()[-1500:])


def _run(
    command: list[str], folder: Path, seconds: int, **environment: str
) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "DO_NOT_TRACK": "1",
        "SUPABASE_TELEMETRY_DISABLED": "1",
        "NO_COLOR": "1",
        "CI": "1",
        **environment,
    }
    # what the user's own project says must not lead the push elsewhere
    for name in ("SUPABASE_DB_URL", "SUPABASE_PROJECT_ID", "SUPABASE_WORKDIR", "SUPABASE_DB_PASSWORD"):
        environment.pop(name, None)
    # npm's programs start others: a group of their own is ended whole, or one would go on writing after us
    with subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            said, _ = process.communicate(timeout=seconds)
        except BaseException:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            raise
    return subprocess.CompletedProcess(command, process.returncode, said)


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["it said nothing"])[-1]
