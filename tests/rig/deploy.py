"""The ways in which our SQL reaches a database: the Supabase CLI, psql, source by source; and a dump."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

from tests.rig.databases import Database

REPOSITORY = Path(__file__).resolve().parents[2]
SUPABASE = REPOSITORY / "supabase"
CLI = REPOSITORY / "node_modules" / ".bin" / "supabase"

# The prelude of a migration, for sources that are applied one by one.
SEARCH_PATH = "public, extensions, pg_temp"


def _load_build() -> ModuleType:
    spec = importlib.util.spec_from_file_location("supabase_build", SUPABASE / "build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


build = _load_build()


def migration(area: str) -> Path:
    """The shipped migration of an area."""
    (found,) = (a.target for a in build.AREAS if a.name == area)
    return found


def migrations() -> list[Path]:
    """All shipped migrations, in the order of a push."""
    return sorted((SUPABASE / "migrations").glob("*.sql"))


def psql(database: Database, file: Path, *, user: str = "postgres") -> subprocess.CompletedProcess[str]:
    """`psql -1 -f`, as a person without the CLI re-runs a migration."""
    return subprocess.run(
        [
            database.server.cluster.psql_path,
            *("-X", "-q", "-1", "-v", "ON_ERROR_STOP=1", "-v", "VERBOSITY=verbose", "-f", file),
            database.dsn(user),
        ],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": os.environ["PATH"], "PGOPTIONS": "-c client_min_messages=warning"},
    )


def apply(database: Database, *areas: str) -> None:
    """Install areas by psql, as the owner."""
    for area in areas:
        done = psql(database, migration(area))
        if done.returncode != 0:
            raise AssertionError(f"{migration(area).name} failed:\n{done.stderr}")


def apply_sources(database: Database, area: str) -> None:
    """Install an area from its schema files, one by one, each on its own."""
    (found,) = (a for a in build.AREAS if a.name == area)
    with database.connect() as connection:
        for path in build.sources(found):
            with connection.transaction():
                connection.execute("select set_config('search_path', %s, true)", (SEARCH_PATH,))
                # no parameters: the simple protocol, so that a file may hold many statements
                connection.execute(path.read_text(encoding="utf-8"))


def project_folder(folder: Path, *files: Path) -> Path:
    """A Supabase project that holds the given migrations, as `init` leaves it in a user's repository."""
    target = folder / "supabase" / "migrations"
    target.mkdir(parents=True)
    shutil.copy(SUPABASE / "config.toml", folder / "supabase" / "config.toml")
    for file in files:
        shutil.copy(file, target)
    return folder


def cli(folder: Path, *arguments: str, home: Path | None = None) -> subprocess.CompletedProcess[str]:
    """The real Supabase CLI in a project folder, with a home of its own and only the database to talk to."""
    home = home or folder / "home"
    home.mkdir(exist_ok=True)
    return subprocess.run(
        [CLI, *arguments],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "DO_NOT_TRACK": "1",
            "SUPABASE_TELEMETRY_DISABLED": "1",
            "NO_COLOR": "1",
            "CI": "1",
            # a request that leaves the machine fails at once instead of waiting
            "HTTPS_PROXY": "http://127.0.0.1:9",
            "HTTP_PROXY": "http://127.0.0.1:9",
        },
    )


def push(database: Database, folder: Path, home: Path | None = None) -> subprocess.CompletedProcess[str]:
    """`supabase db push` to the database, as the owner."""
    return cli(folder, "db", "push", "--db-url", database.dsn(), "--yes", "--agent", "no", home=home)


def dump(database: Database, file: Path) -> Path:
    """A backup of the whole database."""
    _program(database, "pg_dump", "--format=custom", f"--file={file}", database.dsn("supabase_admin"))
    return file


def restore(file: Path, database: Database) -> None:
    """Replaces a database by a backup."""
    database.close()
    _program(
        database,
        *(
            "pg_restore",
            "--clean",
            "--if-exists",
            "--exit-on-error",
            "--dbname",
            database.dsn("supabase_admin"),
        ),
        str(file),
    )


def _program(database: Database, name: str, *arguments: str) -> str:
    done = subprocess.run(
        [database.server.cluster.programs.bin_dir / name, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": os.environ["PATH"]},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def dump_of(database: Database, *tables: str) -> list[str]:
    """The lines of pg_dump's schema of some tables, without the comments and the tokens of a run."""
    selected = [f"--table=public.{table}" for table in tables]
    text = _program(database, "pg_dump", "--schema-only", *selected, database.dsn("supabase_admin"))
    return [
        line
        for line in text.splitlines()
        if line and not line.startswith("--") and not re.match(r"\\(un)?restrict ", line)
    ]
