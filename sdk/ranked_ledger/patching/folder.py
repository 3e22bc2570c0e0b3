"""A function's folder: which file has the route, what is there of ours, and how files are written."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from ranked_ledger.patching import finding, marks, rules, source
from ranked_ledger.patching.problems import PatchError, PlacesError

BACKUP: Final = ".before-ranked-ledger"
_LARGEST: Final = 2_000_000  # bytes; a function of that size is a bundle
_SKIPPED: Final = frozenset({"node_modules", "dist", ".git"})
_SEAL: Final = "// ranked-ledger module "

_SEALED: Final = re.compile(r"(?P<version>\d+) (?P<digest>[0-9a-f]{64})(?: without:[a-z-]+)*\n?")

ModuleState = Literal["absent", "current", "outdated", "newer", "edited", "foreign"]


@dataclass(frozen=True)
class Function:
    """The file of a folder that registers POST /recall, and what it holds of the patch.

    - `text`: the file as it is. `original`: without our pieces. `pieces`: those.
    - `module`: the state of `ranked_ledger.ts` beside it. `left_out`: the optional places that were left out.
    """

    file: Path
    text: str
    original: str
    pieces: tuple[marks.Piece, ...]
    module: ModuleState
    left_out: tuple[str, ...] = ()

    @property
    def module_file(self) -> Path:
        return self.file.with_name(rules.MODULE)

    @property
    def backup_file(self) -> Path:
        return self.file.with_name(self.file.name + BACKUP)


def read(folder: Path) -> Function:
    """The function in a folder. Raises `PatchError` where there is none, or more than one."""
    files = _files(folder)
    texts = [(file, text) for file in files if (text := read_text(file)) is not None]
    with_route = [(file, text) for file, text in texts if finding.has_route(text, file.suffix)]
    if len(with_route) > 1:
        names = ", ".join(str(file.relative_to(folder)) for file, _ in with_route)
        raise PatchError(
            f"more than one file of {folder} registers POST /recall: {names}",
            hint="name the one that is deployed",
        )
    for file, text in texts if not with_route else ():
        if (refusal := finding.missing_route(text, file.suffix)) is not None:
            raise PlacesError(str(file), [refusal])
    if not with_route:
        rule = rules.rules()["route"]
        raise PatchError(
            f"no file of {folder} registers POST /recall ({len(files)} looked at)",
            hint=f"name the folder of the agent-memory-api function; looked for: {rule.looks_for}",
        )
    file, text = with_route[0]
    original, pieces = marks.take_out(text)
    return Function(file, text, original, tuple(pieces), *_module_state(file.with_name(rules.MODULE)))


def read_text(file: Path) -> str | None:
    """The text of a file with its line ends; None where it is too large or no UTF-8."""
    try:
        if file.stat().st_size > _LARGEST:
            return None
        return file.read_bytes().decode("utf-8")
    except (UnicodeDecodeError, OSError):  # a link that leads nowhere, for example
        return None


def _files(folder: Path) -> list[Path]:
    if folder.is_file() and folder.suffix in source.LANGUAGES:
        return [folder]
    if not folder.is_dir():
        raise PatchError(
            f"{folder} is no folder, and no file of TypeScript",
            hint="name the folder of the function, for example supabase/functions/agent-memory-api",
        )
    found = []
    for path, folders, names in os.walk(folder):
        folders[:] = sorted(one for one in folders if one not in _SKIPPED and not one.startswith("."))
        found += [
            Path(path, name)
            for name in sorted(names)
            if Path(name).suffix in source.LANGUAGES and name != rules.MODULE and not name.startswith(".")
        ]
    return found


def sealed_module(left_out: Iterable[str] = ()) -> str:
    """The module as it is written: its last line tells an edit, and what was left out."""
    text = rules.module_text()
    without = "".join(f" without:{name}" for name in left_out)
    return f"{text}{_SEAL}{marks.VERSION} {marks.digest(text)}{without}\n"


def _module_state(file: Path) -> tuple[ModuleState, tuple[str, ...]]:
    if not file.exists():
        return "absent", ()
    text = read_text(file) or ""
    body, seal, rest = text.replace("\r\n", "\n").rpartition(_SEAL)
    if not seal:
        return "foreign", ()
    sealed = _SEALED.fullmatch(rest)
    left_out = tuple(re.findall(r"without:([a-z-]+)", rest))
    if sealed is None or marks.digest(body) != sealed["digest"]:
        return "edited", left_out
    if int(sealed["version"]) > marks.VERSION:
        return "newer", left_out
    return "current" if body == rules.module_text() else "outdated", left_out


def replace(file: Path, text: str, *, expected: str | None) -> None:
    """Write a file at once or not at all, with the rights that it has. Refuses where it changed meanwhile."""
    file = file.resolve()
    mode = None
    if expected is not None:
        if file.read_bytes().decode("utf-8", "replace") != expected:
            raise PatchError(
                f"{file} changed meanwhile; nothing was written to it", hint="run the command again"
            )
        mode = file.stat().st_mode & 0o7777
    handle, name = tempfile.mkstemp(dir=file.parent, prefix=".ranked-ledger-")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(text.encode())
            stream.flush()
            os.fsync(stream.fileno())
        if mode is None:
            mode = 0o666 & ~_umask()
        os.chmod(name, mode)
        os.replace(name, file)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


@contextlib.contextmanager
def as_before_on_failure(*files: Path) -> Iterator[None]:
    """Files that are as they were, or absent as they were, where what is done in here fails."""
    before = {file: file.read_bytes() if file.exists() else None for file in files}
    try:
        yield
    except BaseException:
        for file, content in before.items():
            with contextlib.suppress(OSError):
                if content is None:
                    file.unlink(missing_ok=True)
                elif file.read_bytes() != content:
                    file.write_bytes(content)
        raise


def backup_of(function: Function) -> Path:
    """Where the file as it was before the first piece is kept; never over a backup of another text."""
    target = function.backup_file
    if function.pieces and target.exists():
        return target
    number = 2
    while target.exists() and read_text(target) != function.original:
        target = function.backup_file.with_name(f"{function.backup_file.name}-{number}")
        number += 1
    return target


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
