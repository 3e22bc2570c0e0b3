"""Whether the patched file parses and passes the type checker, where Deno is present."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from ranked_ledger.patching import rules
from ranked_ledger.patching.problems import PatchError

_SECONDS: Final = 120
_AUTO: Final = re.compile(r'"nodeModulesDir"\s*:\s*("auto"|true)')
_COLOUR: Final = re.compile(r"\x1b\[[0-9;]*m")
# where it says none of these, it did not come to checking: a missing package, no network
_FINDING: Final = re.compile(r"\bTS\d+ \[ERROR\]")


@dataclass(frozen=True)
class TypeCheck:
    """`passed`, or `skipped` with the reason in words."""

    state: Literal["passed", "skipped"]
    reason: str | None = None


def check(file: Path, original: str, patched: str, module: str) -> TypeCheck:
    """Type-check what would be written, beside the file, so that its imports resolve.

    Raises `PatchError` where the file passes without the patch and fails with it. Where it fails without the
    patch too, there is nothing to compare with: skipped.
    """
    deno = find_deno()
    if deno is None:
        return TypeCheck("skipped", "Deno is not installed")
    try:
        with _beside(file, patched, module) as copy:
            with_patch = _run(deno, copy)
        if with_patch is None:
            return TypeCheck("passed")
        with _beside(file, original, None) as copy:
            without = _run(deno, copy)
        if not _FINDING.search(with_patch):
            return TypeCheck("skipped", _why_not(with_patch, runs_without=without is None))
    except OSError as problem:
        return TypeCheck("skipped", f"{problem.filename or 'Deno'}: {problem.strerror}")
    except subprocess.TimeoutExpired:
        return TypeCheck("skipped", f"Deno did not end within {_SECONDS} seconds")
    if without is None:
        raise PatchError(
            f"{file.name} would no longer pass the type checker, and nothing was written",
            detail=with_patch[-4000:],
            hint="bring the lines named above into another shape, or apply with --no-type-check",
        )
    return TypeCheck("skipped", f"{file.name} does not pass it without the patch either")


def _why_not(said: str, *, runs_without: bool) -> str:
    if runs_without and "@types/node" in said:
        return (
            "the module imports node:async_hooks, and deno check finds no types of Node beside your "
            "deno.json; add npm:@types/node there to have it run (the function itself does not need it)"
        )
    return f"deno check could not run: {said.split('. ', maxsplit=1)[0]}"


def parses(text: str, suffix: str) -> bool | None:
    """What Deno's own parser says, which knows that `f(a,, b)` is wrong; None where Deno is absent."""
    deno = find_deno()
    if deno is None:
        return None
    command = [deno, "fmt", "--no-config", f"--ext={suffix.removeprefix('.')}", "-"]
    try:
        done = subprocess.run(
            command,
            input=text.replace("deno-fmt-ignore-file", "").encode(),  # else it is not parsed
            capture_output=True,
            timeout=_SECONDS,
            check=False,
            env=_environment(),
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.returncode == 0


def find_deno() -> str | None:
    """Deno on the path, or beside this Python."""
    return shutil.which("deno") or shutil.which("deno", path=str(Path(sys.executable).parent))


@contextmanager
def _beside(file: Path, text: str, module: str | None) -> Iterator[Path]:
    for left in file.parent.glob(".ranked-ledger-????????*.ts"):  # by a run that was killed
        if time.time() - left.stat().st_mtime > 10 * _SECONDS:
            left.unlink(missing_ok=True)
    mark = f".ranked-ledger-{secrets.token_hex(4)}"
    copy, module_copy = file.with_name(mark + file.suffix), file.with_name(f"{mark}-module.ts")
    try:
        if module is not None:
            module_copy.write_text(module, encoding="utf-8")
            text = text.replace(f'"./{rules.MODULE}"', f'"./{module_copy.name}"')
        copy.write_bytes(text.encode())
        yield copy
    finally:
        copy.unlink(missing_ok=True)
        module_copy.unlink(missing_ok=True)


def _installing_nothing(folder: Path) -> list[str]:
    """Where a project has its packages installed by themselves, checking would make a node_modules."""
    for one in (folder, *folder.parents):
        for name in ("deno.json", "deno.jsonc"):
            if (one / name).is_file():
                text = (one / name).read_text(encoding="utf-8", errors="replace")
                return ["--node-modules-dir=none"] if _AUTO.search(text) else []
    return []


def _environment() -> dict[str, str]:
    return os.environ | {"NO_COLOR": "1", "DENO_NO_UPDATE_CHECK": "1", "DENO_NO_PROMPT": "1"}


def _run(deno: str, file: Path) -> str | None:
    """What the checker complains of, or None."""
    done = subprocess.run(
        [deno, "check", "--quiet", "--no-lock", *_installing_nothing(file.parent), file.name],
        cwd=file.parent,
        env=_environment(),
        capture_output=True,
        text=True,
        errors="replace",
        timeout=_SECONDS,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    return (
        None if done.returncode == 0 else _COLOUR.sub("", done.stderr).strip().replace(file.name, "the file")
    )
