"""A named stack: PostgreSQL, PostgREST and the gateway, brought up and down as one."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import importlib.util
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import psycopg

from ranked_ledger.stack import keys as key_store
from ranked_ledger.stack import platform, postgrest
from ranked_ledger.stack.connecting import connect
from ranked_ledger.stack.daemons import POLL_SECONDS
from ranked_ledger.stack.errors import (
    DiskFull,
    MissingModule,
    NoSuchStack,
    PortTaken,
    StackBusy,
    StackError,
    StartFailed,
    disk_full_text,
)
from ranked_ledger.stack.gateway_config import LOOPBACK
from ranked_ledger.stack.info import StackInfo, StackState, StackStatus
from ranked_ledger.stack.layout import Layout, default_home, named_failures
from ranked_ledger.stack.logs import tail
from ranked_ledger.stack.platform import DefaultPrivileges, VectorSchema
from ranked_ledger.stack.postgres import Cluster, postmaster_pid
from ranked_ledger.stack.programs import PostgresPrograms, find_programs
from ranked_ledger.stack.scratch import scratch_home
from ranked_ledger.stack.servers import (
    READY_SECONDS,
    RECONNECT_SECONDS,
    Gateway,
    Rest,
    choose_port,
    port_refused,
)

DEFAULT_NAME = "default"
SERVICES = ("postgres", "postgrest", "gateway")

_LOCK_SECONDS = 120.0
_DATABASE = "postgres"
_OWNER = "postgres"


@dataclass(frozen=True)
class _Rising:
    """One `up` under way: what it works with, and how it is taken back."""

    keys: key_store.Keys
    undo: contextlib.ExitStack
    say: Callable[[str], None]


class Stack:
    """One named stack of this user; nothing happens before the first method is called.

    >>> info = Stack("demo").up()
    >>> client = supabase.create_client(info.url, info.secret_key)
    """

    def __init__(self, name: str = DEFAULT_NAME, home: Path | None = None, *, durable: bool = True) -> None:
        self.name = name
        self._layout = Layout((home or default_home()).absolute(), name)
        self._durable = durable
        self._rest = Rest(self._layout)
        self._gateway = Gateway(self._layout)

    @property
    def folder(self) -> Path:
        return self._layout.folder

    @property
    def programs(self) -> Path:
        """What npm installed for all stacks of this home."""
        return self._layout.programs

    def up(
        self,
        *,
        default_privileges: DefaultPrivileges | None = None,
        vector_schema: VectorSchema | None = None,
        port: int | None = None,
        on_progress: Callable[[str], None] = lambda _: None,
    ) -> StackInfo:
        """Start what does not run and wait until it answers; without effect where everything runs.

        An option left out keeps what an earlier `up` was told. If this fails, what it started is stopped.
        """
        _require_modules()
        with named_failures(self._layout.home):
            cluster_programs = find_programs()
            rest_program = postgrest.find_program(self._layout.programs, on_progress)
            with self._locked(create=True), self._unmade(), contextlib.ExitStack() as undo:
                keys = key_store.load_or_mint(self._layout.keys, self.name)
                state = self._decide(default_privileges, vector_schema, port)
                cluster = self._cluster(cluster_programs)
                rising = _Rising(keys, undo, on_progress)
                restarted = self._up_postgres(cluster, state, rising)
                self._up_rest(rest_program, cluster, restarted, rising)
                self._up_gateway(state.port, rising)
                undo.pop_all()
        return self.info()

    def down(self) -> None:
        """Stop everything; the data stays."""
        if not self._layout.folder.exists():
            return
        with named_failures(self._layout.home), self._locked():
            self._stop()

    def reset(self, *, on_progress: Callable[[str], None] = lambda _: None) -> None:
        """Begin with an empty database: same keys, same port; started again if it ran."""
        if not self._layout.state.exists():
            raise self._unknown()
        ran = not self.status().stopped
        with named_failures(self._layout.home), self._locked():
            self._stop()
            self._clear_data()
            self._save(replace(self._state(), prepared=False))
        if ran:
            self.up(on_progress=on_progress)

    def remove(self) -> None:
        """Stop everything, and delete the data, the keys and the logs."""
        self.require()
        with named_failures(self._layout.home), self._locked():
            self._stop()
            self._clear_data()
            self._clear_folder()

    def require(self) -> None:
        """Raise `NoSuchStack` where nothing of this stack is there."""
        if not self._layout.folder.exists():
            raise self._unknown()

    def status(self) -> StackStatus:
        """What runs at this moment."""
        processes = (self._rest.daemon.process(), self._gateway.daemon.process())
        pids = (
            postmaster_pid(self._layout.data),
            *(process.pid if process else None for process in processes),
        )
        url = _url(self._state().port) if self._layout.state.exists() else None
        return StackStatus(self.name, str(self.folder), url, dict(zip(SERVICES, pids, strict=True)))

    def info(self) -> StackInfo:
        """How to reach it, whether it runs or not."""
        with named_failures(self._layout.home):
            keys = key_store.load(self._layout.keys)
            if keys is None or not self._layout.state.exists():
                raise self._unknown()
            cluster = self._cluster(find_programs())
            return StackInfo(
                name=self.name,
                url=_url(self._state().port),
                db_url=cluster.dsn(_DATABASE, _OWNER),
                superuser_db_url=cluster.dsn(_DATABASE),
                publishable_key=keys.publishable,
                secret_key=keys.secret,
                anon_key=keys.anon,
                service_role_key=keys.service_role,
                jwt_secret=keys.jwt_secret,
            )

    def env(self) -> dict[str, str]:
        """`StackInfo.env` of this stack."""
        return self.info().env()

    def logs(
        self, service: str | None = None, *, lines: int = 50, follow: bool = False
    ) -> Iterator[tuple[str, str]]:
        """Pairs of service and line: each service's newest `lines`, and with `follow` those to come."""
        if service is not None and service not in SERVICES:
            raise StackError(f"{service!r} is no service of a stack: choose {', '.join(SERVICES)}.")
        if not self._layout.logs.exists():
            raise self._unknown()
        wanted = [service] if service else list(SERVICES)
        return tail({name: self._layout.log(name) for name in wanted}, lines, follow)

    def _decide(
        self, privileges: DefaultPrivileges | None, vector_schema: VectorSchema | None, port: int | None
    ) -> StackState:
        known = self._state() if self._layout.state.exists() else None
        at_port = self._gateway.port() if self._gateway.daemon.process() is not None else None
        wanted_port = port or (known.port if known else choose_port())
        if at_port != wanted_port and (refused := port_refused(wanted_port)):
            raise _port_unusable(wanted_port, refused)
        state = replace(known, port=wanted_port) if known else StackState(port=wanted_port)
        if vector_schema not in (None, state.vector_schema):
            if state.prepared:
                raise StackError(
                    f"This stack has pgvector in the schema {state.vector_schema}: "
                    f"`ranked-ledger stack reset` it first, or use another name."
                )
            state = replace(state, vector_schema=vector_schema or state.vector_schema)
        if privileges not in (None, state.default_privileges):
            state = replace(state, default_privileges=privileges or "none", prepared=False)
        self._save(state)
        return state

    def _up_postgres(self, cluster: Cluster, state: StackState, rising: _Rising) -> bool:
        started = not cluster.is_running()
        if started:
            if not (self._layout.data / "PG_VERSION").exists():
                rising.say("creating the database")
                # a database that was deleted by hand is as empty as one that never was
                state = replace(state, prepared=False)
                cluster.init()
            rising.say(f"starting PostgreSQL {cluster.programs.major}")
            rising.undo.callback(cluster.stop)
            cluster.start()
        if not state.prepared:
            self._prepare(cluster, state)
            self._save(replace(state, prepared=True))
        return started

    def _prepare(self, cluster: Cluster, state: StackState) -> None:
        try:
            with connect(cluster.dsn(_DATABASE), autocommit=True) as connection:
                connection.execute(platform.roles_sql().encode())
                connection.execute(
                    platform.database_sql(state.default_privileges, state.vector_schema).encode()
                )
        except psycopg.Error as error:
            if isinstance(error, psycopg.errors.DiskFull) or disk_full_text(cluster.last_log_lines()):
                raise DiskFull(f"The disk of {self.folder} is full: free some room and try again.") from error
            reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
            raise StartFailed(f"The database could not be prepared: {reason}") from error

    def _up_rest(self, program: Path, cluster: Cluster, restarted: bool, rising: _Rising) -> None:
        if self._rest.daemon.usable():
            with contextlib.suppress(StartFailed):
                self._rest.await_ready(RECONNECT_SECONDS if restarted else READY_SECONDS)
                return
            rising.say("PostgREST does not find back to its database: starting it anew")
            self._rest.daemon.stop()
        rising.say("starting PostgREST")
        rising.undo.callback(self._rest.daemon.stop)
        self._rest.start(program, cluster.dsn(_DATABASE, "authenticator"), rising.keys.jwt_secret)
        self._rest.await_ready()

    def _up_gateway(self, port: int, rising: _Rising) -> None:
        if self._gateway.daemon.usable():
            if self._gateway.port() == port:
                self._gateway.await_ready()
                return
            self._gateway.daemon.stop()
        rising.say("starting the gateway")
        rising.undo.callback(self._gateway.daemon.stop)
        self._gateway.start(port, rising.keys)
        try:
            self._gateway.await_ready()
        except StartFailed:
            if self._gateway.daemon.process() is None and (refused := port_refused(port)):
                raise _port_unusable(port, refused) from None
            raise

    def _stop(self) -> None:
        self._gateway.daemon.stop()
        self._rest.daemon.stop()
        if postmaster_pid(self._layout.data) is not None:
            self._cluster(find_programs()).stop()
        if self._layout.sockets != self._layout.folder:
            shutil.rmtree(self._layout.sockets, ignore_errors=True)

    def _clear_data(self) -> None:
        # what is half deleted must not look like data
        doomed = self._layout.data.with_name("data.deleted")
        shutil.rmtree(doomed, ignore_errors=True)
        if self._layout.data.exists():
            self._layout.data.rename(doomed)
            shutil.rmtree(doomed)

    def _clear_folder(self) -> None:
        shutil.rmtree(self._layout.folder)
        shutil.rmtree(self._layout.sockets, ignore_errors=True)

    @contextlib.contextmanager
    def _unmade(self) -> Iterator[None]:
        """A stack that was never begun leaves no folder; one that did not start leaves its logs."""
        new = not any(path.exists() for path in (self._layout.keys, self._layout.state, self._layout.data))
        try:
            yield
        except (StackError, OSError) as error:
            if new and not isinstance(error, StartFailed):
                self._clear_folder()
            raise

    def _cluster(self, programs: PostgresPrograms) -> Cluster:
        return Cluster(
            self._layout.data,
            programs=programs,
            socket_dir=self._layout.postgres_sockets,
            durable=self._durable,
            log_file=self._layout.log("postgres"),
        )

    def _state(self) -> StackState:
        try:
            return StackState(**json.loads(self._layout.state.read_text()))
        except (ValueError, TypeError) as error:
            raise StackError(
                f"{self._layout.state} is damaged: delete it, and choose the port anew."
            ) from error

    def _save(self, state: StackState) -> None:
        key_store.write_private(self._layout.state, json.dumps(asdict(state), indent=2) + "\n")

    def _unknown(self) -> NoSuchStack:
        up = "ranked-ledger stack up" + ("" if self.name == DEFAULT_NAME else f" --name {self.name}")
        return NoSuchStack(f"There is no stack {self.name!r} in {self._layout.home}: `{up}` creates it.")

    @contextlib.contextmanager
    def _locked(self, *, create: bool = False) -> Iterator[None]:
        """One command at a time works on a stack; a second one waits, and then finds the work done."""
        lock = self._acquire(create=create)
        try:
            yield
        finally:
            os.close(lock)

    def _acquire(self, *, create: bool) -> int:
        deadline = time.monotonic() + _LOCK_SECONDS
        while True:
            if create:
                self._layout.create()
            else:
                self.require()
            # who was before us may have deleted the folder: its lock is nobody's then
            with contextlib.suppress(FileNotFoundError):
                lock = os.open(self._layout.lock, os.O_RDWR | os.O_CREAT, 0o600)
                try:
                    self._await_lock(lock, deadline)
                    if os.path.samestat(os.fstat(lock), self._layout.lock.stat()):
                        return lock
                except BaseException:
                    os.close(lock)
                    raise
                os.close(lock)

    def _await_lock(self, lock: int, deadline: float) -> None:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise StackBusy(
                        f"Another command has worked on the stack {self.name!r} for more than "
                        f"{_LOCK_SECONDS:.0f} s: wait for it, or end it."
                    ) from None
                time.sleep(POLL_SECONDS)
            else:
                return


@contextlib.contextmanager
def temporary_stack(
    *,
    default_privileges: DefaultPrivileges = "none",
    vector_schema: VectorSchema = "extensions",
    on_progress: Callable[[str], None] = lambda _: None,
) -> Iterator[Stack]:
    """A running stack in a temporary folder, not crash-safe, stopped and removed at the end.

    >>> with temporary_stack() as stack:
    ...     client = supabase.create_client(stack.info().url, stack.info().secret_key)
    """
    with scratch_home("rl-stack-", lambda home: _temporary(home).down()) as home:
        stack = _temporary(home)
        stack.up(default_privileges=default_privileges, vector_schema=vector_schema, on_progress=on_progress)
        yield stack


def _temporary(home: Path) -> Stack:
    return Stack("temporary", home, durable=False)


def _port_unusable(port: int, refused: OSError) -> PortTaken:
    if refused.errno in (errno.EACCES, errno.EPERM):
        return PortTaken(f"Port {port} needs root: choose 1024 or above with --port.")
    return PortTaken(
        f"Port {port} is taken by another program: stop that program, or choose another port with --port."
    )


def _url(port: int) -> str:
    return f"http://{LOOPBACK}:{port}"


def _require_modules() -> None:
    # these are imported by the gateway's own process, where a failure would be a line of a log
    for module in ("starlette", "uvicorn"):
        if importlib.util.find_spec(module) is None:
            raise MissingModule(f"The package {module} is missing: pip install 'ranked-ledger[local]'.")
