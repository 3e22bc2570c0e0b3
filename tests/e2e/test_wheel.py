"""The built wheel in an empty environment: it carries the migrations and the patch, and its commands use both."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from ranked_ledger import shipped

REPOSITORY = Path(__file__).resolve().parents[2]


def run(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTHON", "VIRTUAL_ENV", "RANKED_LEDGER", "SUPABASE"))
    }
    return subprocess.run(
        [str(word) for word in command], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    done = run(
        *(sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check"),
        *("--no-deps", "--wheel-dir", folder, REPOSITORY),
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment that holds the wheel with its extra `cli`, from the registry, and nothing else."""
    folder = tmp_path_factory.mktemp("venv")
    assert run(sys.executable, "-m", "venv", folder, cwd=folder).returncode == 0
    done = run(
        *(folder / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", f"{wheel}[cli]"),
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    return folder


def carried(wheel: Path) -> dict[str, str]:
    """The migrations in the wheel, by name."""
    folder = "ranked_ledger/_shipped/migrations/"
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if name.startswith(folder)]
        return {name.removeprefix(folder): archive.read(name).decode() for name in names}


def test_what_the_wheel_holds(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert carried(wheel).keys() == {one.name for one in shipped.migrations()}
    assert "ranked_ledger/py.typed" in names
    arms = REPOSITORY / "sdk" / "ranked_ledger" / "evals" / "sql"
    assert {f"ranked_ledger/evals/sql/{file.name}" for file in arms.glob("*.sql")} <= set(names)
    patch = REPOSITORY / "patches" / "agent-memory-api"
    for file in patch.rglob("*"):
        if file.is_file():
            assert f"ranked_ledger/_shipped/patches/agent-memory-api/{file.relative_to(patch)}" in names
    assert not [name for name in names if name.startswith(("tests/", "docs/", "supabase/"))]


def test_init_from_the_wheel(wheel: Path, environment: Path, tmp_path: Path) -> None:
    everything = ("--with-open-brain", "--ledger", "--long-term-memory")
    done = run(environment / "bin" / "ranked-ledger", "init", *everything, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "supabase db push" in done.stdout
    written = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.rglob("*.sql")}
    assert written == carried(wheel)


def test_every_module_of_the_command_line_loads_there(environment: Path, tmp_path: Path) -> None:
    (tmp_path / "0001-a.md").write_text("# 1. A\n\n## Status\n\nAccepted\n\n## Decision\n\nYes.\n")
    program = environment / "bin" / "ranked-ledger"
    done = run(program, "import", ".", "-w", "x", "--dry-run", cwd=tmp_path)
    assert (done.returncode, "ADR-0001" in done.stdout) == (0, True), done.stderr
    demo = run(program, "demo", "--from", ".", cwd=tmp_path)
    assert (demo.returncode, "pip install 'ranked-ledger[local]'" in demo.stderr) == (24, True), demo.stderr
    stack = run(program, "stack", "status", cwd=tmp_path)
    assert "pip install 'ranked-ledger[local]'" in stack.stderr
    where = run(
        environment / "bin" / "python",
        "-c",
        "import ranked_ledger; print(ranked_ledger.__file__)",
        cwd=tmp_path,
    )
    assert where.stdout.startswith(str(environment))


def test_the_patch_from_the_wheel(wheel: Path, environment: Path, tmp_path: Path) -> None:
    function = tmp_path / "index.ts"
    contract = (REPOSITORY / "tests" / "patches" / "function" / "index.ts").read_bytes()
    function.write_bytes(contract)
    program = environment / "bin" / "ranked-ledger"
    without = run(program, "patch", "apply", ".", cwd=tmp_path)
    assert (without.returncode, "pip install 'ranked-ledger[patch]'" in without.stderr) == (24, True)
    assert [path.name for path in tmp_path.iterdir()] == ["index.ts"]

    pip = (environment / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check")
    done = run(*pip, f"{wheel}[patch]", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    done = run(program, "patch", "apply", ".", "--no-type-check", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(wheel) as archive:
        module = archive.read("ranked_ledger/_shipped/patches/agent-memory-api/ranked_ledger.ts").decode()
    assert (tmp_path / "ranked_ledger.ts").read_text(encoding="utf-8").startswith(module)
    assert run(program, "patch", "revert", ".", cwd=tmp_path).returncode == 0
    assert function.read_bytes() == contract
    assert [path.name for path in tmp_path.iterdir()] == ["index.ts"]
