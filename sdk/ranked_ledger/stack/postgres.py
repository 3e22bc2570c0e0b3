"""A PostgreSQL cluster from a Python wheel, run by root or by an ordinary user.

Clients connect over a Unix socket whose folder only the owner can enter, so the socket needs no password.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal
from urllib.parse import quote

import psutil

from ranked_ledger.stack.accounts import check_reachable, server_account
from ranked_ledger.stack.errors import (
    DiskFull,
    FolderUnusable,
    MissingProgram,
    StackError,
    StartFailed,
    WrongDataVersion,
    disk_full,
    disk_full_text,
)
from ranked_ledger.stack.logs import rotate
from ranked_ledger.stack.programs import BIN_VARIABLE, PostgresPrograms, find_programs, runnable_bin_dir
from ranked_ledger.stack.scratch import scratch_home

__all__ = [
    "SUPERUSER",
    "Cluster",
    "PostgresPrograms",
    "find_programs",
    "postmaster_pid",
    "throwaway_cluster",
]

SUPERUSER = "supabase_admin"

# sun_path holds 108 bytes on Linux and 104 on macOS, the closing NUL included.
SOCKET_PATH_MAX = 103

_START_SECONDS = 60.0
_POLL_SECONDS = 0.05
_SETTINGS_FILE = "ranked_ledger.conf"


def postmaster_pid(data_dir: Path) -> int | None:
    """The pid of the server on this directory. A pid file is no proof: its pid may be another program."""
    try:
        process = psutil.Process(int((data_dir / "postmaster.pid").read_text().splitlines()[0]))
        running = process.status() != psutil.STATUS_ZOMBIE and _works_in(data_dir, process)
    except (OSError, ValueError, IndexError, psutil.Error):
        return None
    return process.pid if running else None


def _works_in(data_dir: Path, process: psutil.Process) -> bool:
    # Every process of a cluster has the data directory as its working directory. The link itself is asked
    # where there is one: by name, a deleted directory and a new one in its place look the same.
    link = Path(f"/proc/{process.pid}/cwd")
    try:
        if not process.name().startswith("postgres"):
            return False
        return os.path.samefile(link if os.path.lexists(link) else process.cwd(), data_dir)
    except (OSError, psutil.Error):
        return False


class Cluster:
    """One data directory and the server on it.

    `host` is a loopback address to listen on beside the socket, or None for the socket only; over TCP a role
    needs a password (scram-sha-256), because every user of the machine reaches a loopback port.
    `durable=False` gives up crash safety for speed: for clusters that are thrown away.
    """

    def __init__(
        self,
        data_dir: Path,
        *,
        programs: PostgresPrograms,
        socket_dir: Path,
        port: int | None = None,
        host: str | None = None,
        durable: bool = True,
        settings: Mapping[str, str] | None = None,
        log_file: Path | None = None,
    ) -> None:
        if host not in (None, "127.0.0.1", "::1", "localhost"):
            raise FolderUnusable(f"The server listens on loopback addresses only, not on {host!r}.")
        self.data_dir = data_dir.absolute()
        self.socket_dir = socket_dir.absolute()
        self.programs = programs
        self.host = host
        self.port = port if port is not None else (_free_port() if host else 5432)
        self.log_file = (log_file or data_dir.parent / f"{data_dir.name}.log").absolute()
        self.account = server_account()
        self._bin_dir = runnable_bin_dir(programs.bin_dir, self.account)
        self.settings = {
            "max_connections": "200",
            "timezone": "UTC",
            "log_timezone": "UTC",
            "log_line_prefix": "%m [%p] %q%u@%d ",
        }
        if not durable:
            self.settings |= {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
        self.settings |= dict(settings or {})
        self._durable = durable
        if len(os.fsencode(self._socket_path)) > SOCKET_PATH_MAX:
            raise FolderUnusable(
                f"{self._socket_path} is too long for a Unix socket: choose a shorter folder."
            )

    @property
    def psql_path(self) -> Path:
        return self._bin_dir / "psql"

    @property
    def _socket_path(self) -> Path:
        return self.socket_dir / f".s.PGSQL.{self.port}"

    def dsn(self, dbname: str = "postgres", user: str = SUPERUSER) -> str:
        """A URL over the Unix socket, for psycopg, psql, PostgREST and `supabase --db-url`.

        The host after the `?` overrules the one before; the Supabase CLI refuses a URL without the latter.
        """
        name, database = quote(user, safe=""), quote(dbname, safe="")
        return f"postgresql://{name}@localhost:{self.port}/{database}?host={quote(str(self.socket_dir))}"

    def init(self) -> None:
        """Create the data directory; one that exists and is of this major version is left as it is."""
        if (self.data_dir / "PG_VERSION").exists():
            self._check_version()
            return
        # A killed initdb leaves a directory that looks finished, so only a finished one gets the name; and
        # one that lost its caller may still be writing, so every attempt has a directory of its own.
        prefix = f"{self.data_dir.name}.partial-"
        for abandoned in self.data_dir.parent.glob(f"{prefix}*"):
            shutil.rmtree(abandoned, ignore_errors=True)
        partial = self.data_dir.with_name(f"{prefix}{secrets.token_hex(4)}")
        self._prepare_folder(partial)
        try:
            self._initdb(partial)
            partial.rename(self.data_dir)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise

    def _initdb(self, folder: Path) -> None:
        locale = "en_US.UTF-8" if os.uname().sysname == "Darwin" else "C.UTF-8"
        command = ["initdb", "-D", str(folder), "-U", SUPERUSER, "--encoding=UTF8", f"--locale={locale}"]
        command += ["--lc-messages=C", "--auth-local=trust", "--auth-host=scram-sha-256"]
        if self.programs.major >= 17:
            command += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
        if not self._durable:
            command.append("--no-sync")
        done = self._run(command)
        if done.returncode != 0:
            raise self._failure("initdb could not create the database", done.stdout)
        with (folder / "postgresql.conf").open("a") as conf:
            conf.write(f"\ninclude = '{_SETTINGS_FILE}'\n")

    def start(self) -> None:
        """Start and wait until connections are accepted; nothing happens when the server runs already."""
        self._check_version()
        if self.is_running():
            return
        self._prepare_folder(self.socket_dir)
        self._await_orphans()
        self._write_settings()
        self._prepare_log()
        log_start = self.log_file.stat().st_size
        done = self._run(
            [
                "pg_ctl",
                "start",
                "-w",
                "-t",
                str(int(_START_SECONDS)),
                "-D",
                str(self.data_dir),
                "-l",
                str(self.log_file),
            ]
        )
        if done.returncode != 0:
            with self.log_file.open(errors="replace") as log:
                log.seek(log_start)
                raise self._failure("PostgreSQL did not start", log.read() or done.stdout)

    def stop(self, mode: Literal["smart", "fast", "immediate"] = "fast") -> None:
        """Stop and wait; nothing happens when the server does not run."""
        if not self.is_running():
            return
        done = self._run(["pg_ctl", "stop", "-w", "-t", "60", "-m", mode, "-D", str(self.data_dir)])
        if done.returncode != 0 and self.is_running():
            raise self._failure("PostgreSQL did not stop", done.stdout)

    def is_running(self) -> bool:
        return self.pid() is not None

    def pid(self) -> int | None:
        """The postmaster's pid, or None where it does not run."""
        return postmaster_pid(self.data_dir)

    def last_log_lines(self, count: int = 20) -> str:
        """What the server said last, for a message about a failure."""
        with contextlib.suppress(OSError):
            return "\n".join(self.log_file.read_text(errors="replace").splitlines()[-count:])
        return ""

    def _await_orphans(self) -> None:
        """A killed postmaster's children need a moment to notice, and a new one is refused until then."""
        deadline = time.monotonic() + _START_SECONDS
        while any(_works_in(self.data_dir, process) for process in psutil.process_iter()):
            if time.monotonic() > deadline:
                raise StartFailed(
                    f"Processes of an earlier server still work in {self.data_dir}: stop them first."
                )
            time.sleep(_POLL_SECONDS)
        # Nobody is left, so both lock files are stale, even where their pid lives on: as another program, or
        # as a zombie in a container whose first process reaps none. PostgreSQL would refuse to start.
        (self.data_dir / "postmaster.pid").unlink(missing_ok=True)
        socket_lock = self._socket_path.with_name(f"{self._socket_path.name}.lock")
        with contextlib.suppress(FileNotFoundError):
            if socket_lock.read_text().splitlines()[1:2] == [str(self.data_dir)]:
                socket_lock.unlink()

    def _check_version(self) -> None:
        try:
            major = (self.data_dir / "PG_VERSION").read_text().strip()
        except FileNotFoundError:
            raise StartFailed(f"{self.data_dir} holds no database: call init() first.") from None
        if major != str(self.programs.major):
            raise WrongDataVersion(
                f"{self.data_dir} was written by PostgreSQL {major} and this is PostgreSQL "
                f"{self.programs.major}: set {BIN_VARIABLE} to the programs of version {major}, or reset the "
                f"stack to begin with empty data."
            )

    def _write_settings(self) -> None:
        values = self.settings | {
            "listen_addresses": self.host or "",
            "port": str(self.port),
            "unix_socket_directories": str(self.socket_dir),
        }
        lines = [f"{key} = '{value.replace(chr(39), chr(39) * 2)}'" for key, value in values.items()]
        (self.data_dir / _SETTINGS_FILE).write_text("\n".join(lines) + "\n")
        self._give(self.data_dir / _SETTINGS_FILE)

    def _prepare_folder(self, folder: Path) -> None:
        """A private folder of the account that the server runs as."""
        folder.mkdir(parents=True, exist_ok=True, mode=0o711 if self.account else 0o700)
        if self.account is not None:
            self._give(folder)
            check_reachable(folder.parent, self.account)
        folder.chmod(0o700)

    def _prepare_log(self) -> None:
        self.log_file.parent.mkdir(parents=True, exist_ok=True)
        rotate(self.log_file)
        self.log_file.touch(mode=0o600)
        self._give(self.log_file)
        if self.account is not None:
            check_reachable(self.log_file.parent, self.account)

    def _give(self, path: Path) -> None:
        if self.account is not None:
            os.chown(path, self.account.uid, self.account.gid)

    def _run(self, command: list[str]) -> subprocess.CompletedProcess[str]:
        try:
            # The server must not inherit a pipe, or a reader of it would wait for as long as the server runs.
            with tempfile.TemporaryFile("w+", errors="replace") as output:
                done: subprocess.CompletedProcess[str] = subprocess.run(
                    [self._bin_dir / command[0], *command[1:]],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    text=True,
                    check=False,
                    cwd="/",
                    env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"},
                    user=self.account.uid if self.account else None,
                    group=self.account.gid if self.account else None,
                    extra_groups=[] if self.account else None,
                )
                output.seek(0)
                done.stdout = output.read()
                return done
        except OSError as error:
            if disk_full(error):
                raise DiskFull(self._full_sentence()) from error
            raise MissingProgram(f"{self._bin_dir / command[0]} cannot be run ({error}).") from error

    def _failure(self, what: str, output: str) -> StackError:
        if disk_full_text(output):
            return DiskFull(self._full_sentence())
        lines = [line for line in output.strip().splitlines() if line.strip()]
        telling = [line for line in lines if "FATAL" in line or "PANIC" in line or "error:" in line]
        return StartFailed(
            f"{what}: {(telling or lines or ['no output'])[-1].strip()} (log: {self.log_file})"
        )

    def _full_sentence(self) -> str:
        return f"The disk of {self.data_dir} is full: free some room and try again."


def _free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextlib.contextmanager
def throwaway_cluster(
    major: int | None = None, *, host: str | None = None, settings: Mapping[str, str] | None = None
) -> Iterator[Cluster]:
    """A running, non-durable cluster in a temporary folder, stopped and removed at the end."""
    programs = find_programs(major)

    def in_folder(home: Path) -> Cluster:
        return Cluster(
            home / "data",
            programs=programs,
            socket_dir=home / "run",
            host=host,
            durable=False,
            settings=settings,
        )

    with scratch_home("rl-pg-", lambda home: in_folder(home).stop("immediate")) as home:
        cluster = in_folder(home)
        cluster.init()
        cluster.start()
        yield cluster
