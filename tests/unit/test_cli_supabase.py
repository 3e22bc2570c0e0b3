"""Where the demo finds the Supabase CLI, and what it says when that fails."""

from __future__ import annotations

import time
from pathlib import Path

import psutil
import pytest

from ranked_ledger.cli import supabase_cli


def program(path: Path, script: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No checkout, no program on PATH; gives the folder that PATH names."""
    found = tmp_path / "bin"
    found.mkdir()
    monkeypatch.setenv("PATH", f"{found}:/bin")
    monkeypatch.delenv(supabase_cli.PROGRAM_VARIABLE, raising=False)
    monkeypatch.setattr(supabase_cli, "__file__", str(tmp_path / "a" / "b" / "c" / "d.py"))
    return found


def test_the_environment_comes_first(nowhere: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(supabase_cli.PROGRAM_VARIABLE, "/my/supabase")
    assert supabase_cli.find(tmp_path) == Path("/my/supabase")


def test_then_the_checkout_then_the_users_own_then_path(nowhere: Path, tmp_path: Path) -> None:
    on_path = program(nowhere / "supabase", "exit 0")
    assert supabase_cli.find(tmp_path / "programs") == on_path
    own = program(tmp_path / "programs" / "node_modules" / ".bin" / "supabase", "exit 0")
    assert supabase_cli.find(tmp_path / "programs") == own
    (tmp_path / "package.json").write_text("{}")
    checkout = program(tmp_path / "node_modules" / ".bin" / "supabase", "exit 0")
    assert supabase_cli.find(tmp_path / "programs") == checkout


def test_npm_installs_the_pinned_one(nowhere: Path, tmp_path: Path) -> None:
    program(nowhere / "npm", 'mkdir -p "$3/node_modules/.bin"; echo "$@" > "$3/node_modules/.bin/supabase"')
    said: list[str] = []
    found = supabase_cli.find(tmp_path / "programs", said.append)
    assert supabase_cli.PACKAGE in found.read_text()
    assert supabase_cli.PACKAGE in said[0]


def test_without_npm(nowhere: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(nowhere))
    with pytest.raises(supabase_cli.SupabaseCliError, match="npm"):
        supabase_cli.find(tmp_path)


def test_npm_fails(nowhere: Path, tmp_path: Path) -> None:
    program(nowhere / "npm", "echo no network; exit 1")
    with pytest.raises(supabase_cli.SupabaseCliError, match="no network"):
        supabase_cli.find(tmp_path)


def test_a_push_that_fails_says_why(tmp_path: Path) -> None:
    failing = program(tmp_path / "supabase", "echo 'ERROR: RL501 pgvector is missing' >&2; exit 1")
    with pytest.raises(supabase_cli.SupabaseCliError) as failed:
        supabase_cli.push(failing, tmp_path, "postgresql://x")
    assert "pgvector is missing" in str(failed.value)


def test_a_program_that_cannot_be_started(tmp_path: Path) -> None:
    with pytest.raises(supabase_cli.SupabaseCliError, match="cannot be started"):
        supabase_cli.push(tmp_path / "missing", tmp_path, "postgresql://x")


def test_a_push_goes_where_it_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUPABASE_DB_URL", "postgresql://production")
    telling = program(tmp_path / "supabase", f'echo "$@ $SUPABASE_DB_URL $TMPDIR" > {tmp_path}/said')
    supabase_cli.push(telling, tmp_path, "postgresql://here")
    said = (tmp_path / "said").read_text()
    assert "postgresql://here" in said
    assert "production" not in said
    assert str(tmp_path) in said


def test_what_a_program_started_ends_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supabase_cli, "_PUSH_SECONDS", 1)
    parent = program(tmp_path / "supabase", f"sleep 60 & echo $! > {tmp_path}/child; wait")
    with pytest.raises(supabase_cli.SupabaseCliError, match="did not end"):
        supabase_cli.push(parent, tmp_path, "postgresql://x")
    child = int((tmp_path / "child").read_text())
    deadline = time.monotonic() + 10
    while psutil.pid_exists(child) and psutil.Process(child).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < deadline, "it goes on"
