"""Up, down, and what happens when something goes wrong in between. All of it with the real programs."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import psutil
import psycopg
import pytest

from ranked_ledger.stack import SERVICES, Stack, StackInfo, temporary_stack
from ranked_ledger.stack.errors import (
    DiskFull,
    FolderUnusable,
    MissingProgram,
    NoSuchStack,
    PortTaken,
    StackBusy,
    StackError,
    StartFailed,
    WrongDataVersion,
)
from ranked_ledger.stack.postgrest import PROGRAM_VARIABLE
from ranked_ledger.stack.programs import BIN_VARIABLE
from ranked_ledger.stack.servers import choose_port

is_root = os.geteuid() == 0


@contextmanager
def home_folder() -> Iterator[Path]:
    """A short folder that the account of the server can enter, unlike pytest's own."""
    home = Path(tempfile.mkdtemp(prefix="rl-test-"))
    home.chmod(0o711)
    try:
        yield home
    finally:
        for folder in (home / "stacks").glob("*"):
            Stack(folder.name, home, durable=False).down()
        shutil.rmtree(home, ignore_errors=True)


@pytest.fixture
def home() -> Iterator[Path]:
    with home_folder() as folder:
        yield folder


@pytest.fixture(scope="module")
def shared() -> Iterator[Stack]:
    """One stack for the tests that leave it running and whole. Durable: its data must survive kills."""
    with home_folder() as folder:
        stack = Stack("shared", folder)
        with psycopg.connect(stack.up().db_url) as connection:
            connection.execute(
                "create table kept (i int); grant select on kept to anon; insert into kept values (1)"
            )
            connection.execute("notify pgrst, 'reload schema'")
        yield stack


def eventually(check: Callable[[], bool], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def kept_rows(info: StackInfo) -> list[object]:
    answer = httpx.get(
        f"{info.url}/rest/v1/kept?select=i", headers={"apikey": info.anon_key}, trust_env=False
    )
    return list(answer.json()) if answer.status_code == 200 else [answer.text]


def kill(pid: int | None) -> None:
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)


def cli(home: Path, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", "from ranked_ledger.cli.stack import app; app()", *arguments],
        env=os.environ | {"RANKED_LEDGER_HOME": str(home)} | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_second_up_changes_nothing(shared: Stack) -> None:
    before, info = shared.status(), shared.info()
    said: list[str] = []

    assert shared.up(on_progress=said.append) == info
    assert shared.status() == before
    assert said == []


@pytest.mark.parametrize("service", SERVICES)
def test_up_heals_a_killed_process_and_leaves_the_others_alone(shared: Stack, service: str) -> None:
    before, info = shared.status().pids, shared.info()
    kill(before[service])
    assert not shared.status().running

    assert shared.up() == info

    after = shared.status().pids
    assert [name for name in SERVICES if after[name] != before[name]] == [service]
    assert kept_rows(info) == [{"i": 1}]


def test_up_heals_when_all_are_killed_at_once(shared: Stack) -> None:
    for pid in shared.status().pids.values():
        kill(pid)
    assert kept_rows(shared.up()) == [{"i": 1}]


def test_a_pid_file_whose_pid_is_another_program_now_is_no_obstacle(shared: Stack) -> None:
    kill(shared.status().pids["postgres"])
    pid_file = shared.folder / "data" / "postmaster.pid"
    stale = pid_file.read_text().splitlines()
    pid_file.write_text("\n".join([str(os.getpid()), *stale[1:]]) + "\n")

    assert shared.status().pids["postgres"] is None
    assert kept_rows(shared.up()) == [{"i": 1}]


def test_data_keys_and_port_survive_down_and_up(shared: Stack) -> None:
    info = shared.info()
    shared.down()
    assert shared.status().stopped
    with pytest.raises(httpx.ConnectError):
        httpx.get(info.url, trust_env=False)
    shared.down()  # a second one is fine

    assert shared.up() == info
    assert kept_rows(info) == [{"i": 1}]


def test_while_postgrest_is_gone_the_gateway_says_so(shared: Stack) -> None:
    info = shared.info()
    kill(shared.status().pids["postgrest"])

    answer = httpx.get(f"{info.url}/rest/v1/kept", headers={"apikey": info.anon_key}, trust_env=False)

    assert answer.status_code == 503
    assert "ranked-ledger stack up" in answer.json()["hint"]
    shared.up()


def test_a_request_that_postgrest_does_not_finish_is_502(shared: Stack) -> None:
    info = shared.info()
    waiting = "select exists (select from pg_locks where not granted)"
    with (
        psycopg.connect(info.db_url) as owner,
        psycopg.connect(info.superuser_db_url, autocommit=True) as watcher,
        httpx.Client(headers={"apikey": info.anon_key}, trust_env=False, timeout=30) as client,
        ThreadPoolExecutor(1) as thread,
    ):
        owner.execute("lock table kept in access exclusive mode")
        answer = thread.submit(client.get, f"{info.url}/rest/v1/kept")
        eventually(lambda: watcher.execute(waiting).fetchone() == (True,))
        kill(shared.status().pids["postgrest"])
        assert answer.result().status_code == 502
    shared.up()


def test_a_stack_whose_folder_was_deleted_under_it_begins_anew(home: Path) -> None:
    stack = Stack(home=home, durable=False)
    before = stack.up()
    pids = stack.status().pids
    shutil.rmtree(stack.folder)

    after = stack.up()

    assert stack.status().running
    assert after.secret_key != before.secret_key
    answer = httpx.get(f"{after.url}/rest/v1/", headers={"apikey": after.secret_key}, trust_env=False)
    assert answer.status_code == 200
    # the orphaned database notices by itself within a minute; the test does not wait for it
    with contextlib.suppress(ProcessLookupError):
        os.kill(pids["postgres"] or 0, signal.SIGQUIT)


@pytest.mark.parametrize("file", ["keys.json", "stack.json"])
def test_a_damaged_file_is_one_sentence(home: Path, file: str) -> None:
    stack = Stack(home=home, durable=False)
    stack.folder.mkdir(parents=True)
    (stack.folder / file).write_text("{")
    with pytest.raises(StackError, match=f"{file} is damaged: delete it"):
        stack.up()


def test_two_simultaneous_ups_start_one_stack(home: Path) -> None:
    both = [cli(home, "up"), cli(home, "up")]
    results = [process.communicate(timeout=60) for process in both]

    assert [process.returncode for process in both] == [0, 0], results
    assert results[0][0] == results[1][0]
    assert sum("starting PostgreSQL" in said for _, said in results) == 1
    assert Stack(home=home).status().running


def test_two_named_stacks_run_side_by_side(shared: Stack) -> None:
    home = shared.folder.parents[1]
    other = Stack("other", home, durable=False)
    info, other_info = shared.info(), other.up()
    try:
        assert other_info.url != info.url
        crossed = httpx.get(
            f"{other_info.url}/rest/v1/", headers={"apikey": info.secret_key}, trust_env=False
        )
        assert crossed.status_code == 401
        other.down()
        assert shared.status().running
        assert kept_rows(info) == [{"i": 1}]
    finally:
        other.down()


def test_a_command_waits_for_another_one_only_so_long(shared: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ranked_ledger.stack.stack._LOCK_SECONDS", 0.1)
    with shared._locked(), pytest.raises(StackBusy, match="Another command"):
        shared.up()


def test_the_default_privileges_can_be_changed_and_are_kept(shared: Stack) -> None:
    def granted(table: str) -> bool:
        with psycopg.connect(shared.info().db_url) as connection:
            connection.execute(f"create table {table} (i int)")
            answer = connection.execute(
                "select has_table_privilege('anon', %s, 'SELECT')", (table,)
            ).fetchone()
        return answer == (True,)

    assert not granted("before")
    shared.up(default_privileges="old")
    assert granted("during")
    shared.down()
    shared.up()
    assert granted("still")
    shared.up(default_privileges="none")
    assert not granted("after")


def test_the_port_can_be_fixed_and_moved(shared: Stack) -> None:
    before = shared.status().pids
    port = choose_port()
    info = shared.up(port=port)

    assert info.url == f"http://127.0.0.1:{port}"
    assert kept_rows(info) == [{"i": 1}]
    after = shared.status().pids
    assert [name for name in SERVICES if after[name] != before[name]] == ["gateway"]


def test_a_taken_port_is_one_sentence_and_starts_nothing(home: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        stack = Stack(home=home, durable=False)
        with pytest.raises(PortTaken, match=f"Port {port} is taken.*--port"):
            stack.up(port=port)
        assert stack.status().stopped
        assert not stack.folder.exists()


def test_a_port_of_roots_is_not_said_to_be_taken(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Refusing(socket.socket):
        def bind(self, address: object) -> None:
            raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("ranked_ledger.stack.servers.socket.socket", Refusing)
    stack = Stack(home=home, durable=False)
    with pytest.raises(PortTaken, match=r"Port 80 needs root: choose 1024 or above"):
        stack.up(port=80)
    assert not stack.folder.exists()


def test_a_failed_up_keeps_what_an_earlier_one_made(home: Path) -> None:
    stack = Stack(home=home, durable=False)
    stack.folder.mkdir(parents=True)
    (stack.folder / "data").mkdir()  # of a stack whose keys were deleted to have new ones
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(PortTaken):
        stack.up(port=taken.getsockname()[1])
    assert (stack.folder / "data").exists()


def test_a_removed_stack_leaves_nothing_and_the_next_up_begins_anew(home: Path) -> None:
    stack = Stack(home=home, durable=False)
    first = stack.up()
    pids = [pid for pid in stack.status().pids.values() if pid]
    stack.remove()
    assert not stack.folder.exists()
    assert not [pid for pid in pids if psutil.pid_exists(pid) and psutil.Process(pid).status() != "zombie"]
    with pytest.raises(NoSuchStack):
        stack.remove()
    second = Stack(home=home, durable=False).up()
    try:
        assert second.secret_key != first.secret_key
    finally:
        stack.remove()


def test_a_remembered_port_that_was_taken_meanwhile_is_not_changed_silently(shared: Stack) -> None:
    info = shared.info()
    shared.down()
    with socket.create_server(("127.0.0.1", int(info.url.rpartition(":")[2]))):
        with pytest.raises(PortTaken):
            shared.up()
        assert shared.status().stopped
    assert shared.up() == info


@pytest.mark.parametrize("variable", [PROGRAM_VARIABLE, BIN_VARIABLE])
def test_a_missing_program_is_one_sentence_and_leaves_nothing(
    home: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, str(home / "nowhere"))
    with pytest.raises(MissingProgram, match=variable):
        Stack(home=home).up()
    assert list(home.iterdir()) == []


def test_if_a_later_server_fails_the_earlier_ones_are_stopped(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = home / "postgrest"
    broken.write_text(
        '#!/bin/sh\n[ "$1" = --version ] && echo "PostgREST 12.0.2" && exit\necho no luck >&2\nexit 1\n'
    )
    broken.chmod(0o755)
    monkeypatch.setenv(PROGRAM_VARIABLE, str(broken))
    stack = Stack(home=home, durable=False)

    with pytest.raises(StartFailed, match="PostgREST ended while it started: no luck"):
        stack.up()
    assert stack.status().stopped

    monkeypatch.delenv(PROGRAM_VARIABLE)
    stack.up()
    monkeypatch.setenv(PROGRAM_VARIABLE, str(broken))
    kill(stack.status().pids["postgrest"])
    with pytest.raises(StartFailed):
        stack.up()
    # what ran before the failed command still does
    assert [service for service, pid in stack.status().pids.items() if pid] == ["postgres", "gateway"]


def test_data_of_another_major_version_is_one_sentence_until_it_is_reset(home: Path) -> None:
    stack = Stack(home=home, durable=False)
    data = home / "stacks" / "default" / "data"
    data.mkdir(parents=True)
    (data / "PG_VERSION").write_text("16\n")

    with pytest.raises(WrongDataVersion, match=r"written by PostgreSQL 16 and this is PostgreSQL 18.*reset"):
        stack.up()
    assert stack.status().stopped
    assert (data / "PG_VERSION").read_text() == "16\n"

    stack.reset()
    stack.up()


def test_reset_empties_the_data_and_keeps_keys_and_port(home: Path) -> None:
    stack = Stack(home=home, durable=False)
    info = stack.up()
    with psycopg.connect(info.db_url) as connection:
        connection.execute("create table gone (i int)")

    stack.reset()

    assert stack.status().running
    assert stack.info() == info
    with psycopg.connect(info.db_url) as connection:
        assert connection.execute("select to_regclass('gone')").fetchone() == (None,)
        assert connection.execute("select to_regclass('auth.users')::text").fetchone() == ("auth.users",)


def test_a_killed_first_up_leaves_nothing_that_looks_finished(home: Path) -> None:
    started = cli(home, "up")
    data = home / "stacks" / "default" / "data"
    eventually(lambda: any(data.parent.glob("data.partial-*/PG_VERSION")))
    started.kill()
    started.communicate(timeout=10)

    stack = Stack(home=home, durable=False)
    stack.up()
    assert stack.status().running


@contextmanager
def small_disk(size: str) -> Iterator[Path]:
    """A real file system that is really full."""
    folder = Path(tempfile.mkdtemp(prefix="rl-disk-"))
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size},mode=711", "tmpfs", folder], check=False
    )
    if mounted.returncode != 0:
        folder.rmdir()
        pytest.skip("this root may not mount")
    try:
        yield folder
    finally:
        Stack(home=folder, durable=False).down()
        subprocess.run(["umount", folder], check=True)
        folder.rmdir()


def fill(file: Path) -> None:
    with file.open("wb", buffering=0) as unbuffered, contextlib.suppress(OSError):
        while True:
            unbuffered.write(b"x" * 4096)


@pytest.mark.skipif(not is_root, reason="only root can mount a small disk")
@pytest.mark.parametrize("size", ["8k", "64k", "20m"])
def test_a_disk_that_is_too_small_is_one_sentence_and_starts_nothing(size: str) -> None:
    with small_disk(size) as home:
        stack = Stack(home=home, durable=False)
        with pytest.raises(DiskFull, match=r"The disk of .* is full: free some room"):
            stack.up()
        assert stack.status().stopped
        assert not (stack.folder / "data").exists()


@pytest.mark.skipif(not is_root, reason="only root can mount a small disk")
def test_a_disk_that_filled_up_since_the_last_up_is_one_sentence_too() -> None:
    with small_disk("100m") as home:
        stack = Stack(home=home, durable=False)
        info = stack.up()
        stack.down()
        filler = home / "filler"
        fill(filler)
        with pytest.raises(DiskFull):
            stack.up()
        assert stack.status().stopped
        filler.unlink()
        assert stack.up() == info


@pytest.mark.skipif(not is_root, reason="PostgreSQL runs as another account only for root")
def test_root_is_told_which_folder_the_server_cannot_enter(home: Path) -> None:
    (home / "closed").mkdir(mode=0o700)
    stack = Stack(home=home / "closed" / "home")
    with pytest.raises(
        FolderUnusable, match=r"runs as the account `\w+`, which cannot enter /.*use a folder"
    ):
        stack.up()
    assert stack.status().stopped


def test_a_home_that_is_a_file_is_one_sentence(home: Path) -> None:
    (home / "file").write_text("")
    with pytest.raises(StackError, match="file"):
        Stack(home=home / "file").up()


def test_a_deep_home_gets_its_sockets_elsewhere(home: Path) -> None:
    stack = Stack(home=home / ("deep" * 25), durable=False)
    info = stack.up()
    try:
        assert (
            httpx.get(f"{info.url}/rest/v1/", headers={"apikey": info.anon_key}, trust_env=False).status_code
            == 200
        )
    finally:
        sockets = stack._layout.sockets
        stack.down()
    assert not sockets.exists()


def test_only_the_owner_can_read_what_holds_a_key_or_data(shared: Stack) -> None:
    readable = [
        path
        for path in shared.folder.rglob("*")
        if path.lstat().st_mode & 0o077 and path.is_file() and "data" not in path.parts
    ]
    assert readable == []
    for private in ("data", "pg", "run"):
        assert (shared.folder / private).stat().st_mode & 0o077 == 0


def test_the_servers_outlive_the_session_that_started_them(shared: Stack) -> None:
    for pid in shared.status().pids.values():
        assert os.getsid(pid or 0) != os.getsid(0)
        assert psutil.Process(pid).terminal() is None


def test_logs_follow_what_comes(shared: Stack) -> None:
    info = shared.info()
    lines = shared.logs("gateway", lines=0, follow=True)
    kept_rows(info)
    assert "GET /rest/v1/kept 200" in next(lines)[1]
    assert {service for service, _ in shared.logs(lines=5)} == set(SERVICES)


def test_a_temporary_stack_is_removed_also_when_its_user_fails() -> None:
    class Failed(Exception):
        pass

    def use() -> None:
        with temporary_stack() as stack:
            seen.append((stack.folder, dict(stack.status().pids)))
            raise Failed

    seen: list[tuple[Path, dict[str, int | None]]] = []
    with pytest.raises(Failed):
        use()
    folder, pids = seen[0]
    assert not folder.parents[1].exists()
    assert all(
        not psutil.pid_exists(pid) or psutil.Process(pid).status() == "zombie" for pid in pids.values() if pid
    )


def test_the_servers_of_a_killed_user_are_ended_by_the_next_one() -> None:
    code = (
        "from ranked_ledger.stack import temporary_stack\n"
        "with temporary_stack() as stack:\n"
        "    print(stack.folder, flush=True)\n"
        "    input()\n"
    )
    user = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert user.stdout is not None
    folder = Path(user.stdout.readline().strip())
    user.kill()
    user.communicate(timeout=10)
    assert Stack("temporary", folder.parents[1]).status().running

    with temporary_stack() as stack:
        assert stack.status().running
        assert not folder.exists()
