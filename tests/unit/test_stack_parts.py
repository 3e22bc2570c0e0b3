"""The parts of the stack that need no server."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import jwt
import psutil
import pytest

from ranked_ledger.cli import failures
from ranked_ledger.stack import keys as key_store
from ranked_ledger.stack import postgres, postgrest, programs
from ranked_ledger.stack.accounts import Account, barrier
from ranked_ledger.stack.daemons import Daemon
from ranked_ledger.stack.errors import FolderUnusable, MissingModule, MissingProgram, NoSuchStack, StackError
from ranked_ledger.stack.info import StackInfo
from ranked_ledger.stack.layout import HOME_VARIABLE, Layout, default_home
from ranked_ledger.stack.servers import choose_port, port_free


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_folders_for_another_account_can_be_passed_through_whatever_the_mask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    for folder in (theirs, ours, ours / "programs"):
        folder.mkdir(mode=0o700)
    monkeypatch.setattr(programs, "ROOT_HOME", ours)
    old_mask = os.umask(0o077)
    try:
        programs.make_passable(theirs / "home" / "stacks")
        programs.make_passable(ours / "programs")
    finally:
        os.umask(old_mask)

    assert [mode(folder) for folder in (theirs / "home", theirs / "home" / "stacks")] == [0o711, 0o711]
    assert [mode(folder) for folder in (ours, ours / "programs")] == [0o711, 0o711]
    assert mode(theirs) == 0o700, "what was there keeps its mode"


def test_keys_are_minted_once_and_only_their_owner_reads_them(tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    old_mask = os.umask(0)
    try:
        first = key_store.load_or_mint(file, "demo")
    finally:
        os.umask(old_mask)

    assert mode(file) == 0o600
    assert key_store.load_or_mint(file, "demo") == first
    assert first.secret.startswith("sb_secret_")
    assert first.publishable.startswith("sb_publishable_")


@pytest.mark.parametrize(("attribute", "role"), [("anon", "anon"), ("service_role", "service_role")])
def test_legacy_keys_are_jwts_of_their_role(attribute: str, role: str) -> None:
    keys = key_store.mint("demo")
    claims = jwt.decode(getattr(keys, attribute), keys.jwt_secret, algorithms=["HS256"])

    assert claims["role"] == role
    assert claims["iss"] == "supabase"
    assert claims["exp"] - claims["iat"] > 9 * 365 * 24 * 3600


def test_no_repr_shows_a_key() -> None:
    keys = key_store.mint("demo")
    info = StackInfo(
        name="demo",
        url="http://127.0.0.1:1",
        db_url="postgresql://",
        superuser_db_url="postgresql://",
        publishable_key=keys.publishable,
        secret_key=keys.secret,
        anon_key=keys.anon,
        service_role_key=keys.service_role,
        jwt_secret=keys.jwt_secret,
    )
    shown = repr(keys) + repr(info)

    for secret in (keys.secret, keys.publishable, keys.anon, keys.service_role, keys.jwt_secret):
        assert secret not in shown


@pytest.mark.parametrize("name", ["", "../x", "a/b", "Ä", "A", "-a", "a" * 33, "a b", "a\n"])
def test_a_name_that_is_no_folder_name_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(NoSuchStack, match="no name for a stack"):
        Layout(tmp_path, name)


def test_sockets_move_to_a_short_private_folder_where_the_path_is_too_long() -> None:
    short = Layout(Path("/tmp/h"), "demo")
    long = Layout(Path("/tmp") / ("h" * 90), "demo")

    assert short.rest_socket.is_relative_to(short.folder)
    assert not long.rest_socket.is_relative_to(long.folder)
    assert len(os.fsencode(long.rest_socket)) < postgres.SOCKET_PATH_MAX


def test_a_socket_folder_of_somebody_else_is_refused(tmp_path: Path) -> None:
    layout = Layout(tmp_path / ("h" * 90), "demo")
    layout.sockets.symlink_to(tmp_path)
    try:
        with pytest.raises(FolderUnusable, match="belongs to somebody else"):
            layout.create()
    finally:
        layout.sockets.unlink()


def test_the_home_variable_names_the_folder_of_all_stacks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path))
    assert default_home() == tmp_path


@pytest.mark.skipif(os.geteuid() != 0, reason="an ordinary user's servers run as themselves")
def test_root_does_not_use_a_home_that_the_account_of_the_server_cannot_enter(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "root").mkdir(mode=0o700)
    monkeypatch.delenv(HOME_VARIABLE, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "root"))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)

    assert default_home() == programs.ROOT_HOME


def test_the_first_folder_that_an_account_cannot_enter_is_found(tmp_path: Path) -> None:
    stranger = Account("stranger", 987_654, 987_654)
    closed = tmp_path / "closed"
    (closed / "inner").mkdir(parents=True)
    closed.chmod(0o700)

    # tmp_path itself is private as well, and nearer to the root than `closed` is
    assert barrier(closed / "inner", stranger) is not None
    assert barrier(Path("/"), stranger) is None


def test_a_pid_that_was_given_to_another_program_is_never_stopped(tmp_path: Path) -> None:
    daemon = Daemon("PostgREST", "postgrest", tmp_path / "conf", tmp_path / "pid", tmp_path / "log")
    me = psutil.Process()
    daemon.pid_file.write_text(json.dumps({"pid": me.pid, "create_time": me.create_time() - 1000}))

    assert daemon.process() is None
    daemon.stop()  # this process goes on


def test_a_daemon_without_a_pid_file_is_found_by_its_command_line(tmp_path: Path) -> None:
    program = tmp_path / "postgrest-like"
    program.symlink_to("/bin/cat")
    config = tmp_path / "conf"
    os.mkfifo(config)  # the program waits for a writer, that is until it is stopped
    daemon = Daemon("PostgREST", "postgrest-like", config, tmp_path / "pid", tmp_path / "log")
    daemon.start([str(program), str(config)], {})
    try:
        daemon.pid_file.unlink()
        assert daemon.process() is not None
    finally:
        daemon.stop()
    assert daemon.process() is None


def test_a_random_port_is_free() -> None:
    assert port_free(choose_port())


def test_a_value_of_the_postgrest_file_cannot_end_its_string() -> None:
    text = postgrest.config_text(
        db_url='postgresql:///x?host=/a"b\\c', socket=Path("/s"), admin_host="h", admin_port=1, jwt_secret="s"
    )
    assert 'db-uri = "postgresql:///x?host=/a\\"b\\\\c"\n' in text


def test_a_program_that_the_variable_names_must_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(postgrest.PROGRAM_VARIABLE, str(tmp_path / "none"))
    with pytest.raises(MissingProgram, match=postgrest.PROGRAM_VARIABLE):
        postgrest.find_program(tmp_path, lambda _: None)

    monkeypatch.setenv(programs.BIN_VARIABLE, str(tmp_path))
    with pytest.raises(MissingProgram, match=programs.BIN_VARIABLE):
        programs.find_programs()


def test_another_program_in_the_place_of_postgrest_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(postgrest.PROGRAM_VARIABLE, "/bin/true")
    with pytest.raises(MissingProgram, match="not PostgREST 12 or newer"):
        postgrest.find_program(tmp_path, lambda _: None)


def test_without_postgrest_and_npm_the_sentence_names_both(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(postgrest, "_repository_modules", list)
    monkeypatch.delenv(postgrest.PROGRAM_VARIABLE, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingProgram, match=r"PostgREST is missing, and npm.*install Node\.js"):
        postgrest.find_program(tmp_path, lambda _: None)


@pytest.mark.slow
def test_npm_installs_postgrest_for_the_user_and_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(postgrest, "_repository_modules", list)
    monkeypatch.delenv(postgrest.PROGRAM_VARIABLE, raising=False)
    said: list[str] = []

    program = postgrest.find_program(tmp_path / "programs", said.append)

    assert program.is_relative_to(tmp_path / "programs")
    assert [postgrest.PACKAGE_VERSION in line for line in said] == [True]
    assert postgrest.find_program(tmp_path / "programs", said.append) == program
    assert len(said) == 1


def test_every_failure_has_its_own_exit_code() -> None:
    codes = [kind.exit_code for kind in StackError.__subclasses__()]
    assert len(codes) == len(set(codes))
    assert not {code for code, _, _ in failures.EXIT_CODES} & set(codes)
    assert failures.MissingExtra.exit_code == MissingModule.exit_code


def test_without_the_extra_the_commands_say_what_to_install() -> None:
    code = (
        "import sys; sys.modules['psycopg'] = None\nfrom ranked_ledger.cli.stack import app\napp(['status'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert done.returncode == MissingModule.exit_code
    assert "pip install 'ranked-ledger[local]'" in done.stderr
    assert "Traceback" not in done.stderr
