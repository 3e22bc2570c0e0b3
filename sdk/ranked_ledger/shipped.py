"""The migrations that come with this package, and how they get into a project's own `supabase/migrations`.

>>> from ranked_ledger.shipped import plan_copies
>>> for copy in plan_copies("my-app").copies:                                   # doctest: +SKIP
...     print(copy.target)
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final

from ranked_ledger.errors import RankedLedgerError

LEDGER: Final = "decision_ledger"
OPEN_BRAIN: Final = "open_brain"
LONG_TERM_MEMORY: Final = "long_term_memory"

# An area that needs another one before it. The long-term memory needs none, and nothing needs it.
_STANDS_ON: Final = {LEDGER: OPEN_BRAIN}
_NAME: Final = re.compile(r"^(\d+)_(.+)\.sql$")
_HOST: Final = "agent_memories"  # whatever makes the tables that the ledger stands on names this one
_STAMP: Final = "%Y%m%d%H%M%S"


class ShippedError(RankedLedgerError):
    """The migrations cannot be found, or cannot be copied; nothing was written."""


@dataclass(frozen=True, slots=True)
class Migration:
    """One migration: its version, its area, its name as a file, and its text."""

    version: str
    area: str
    text: str

    @property
    def name(self) -> str:
        return f"{self.version}_{self.area}.sql"

    @property
    def heading(self) -> str:
        """The first line, by which a copy is known, whatever its file is called."""
        return self.text.splitlines()[0]


@dataclass(frozen=True, slots=True)
class Copy:
    """A migration and the file that it becomes, or is already."""

    migration: Migration
    target: Path


@dataclass(frozen=True, slots=True)
class Plan:
    """What copying would do: files to write, and areas that are there already.

    - `moved`: files of ours, unedited, that are written anew under a later name and removed.
    - `without_host`: the ledger is in the plan, and nothing in the folder makes the tables that it stands on.
    """

    folder: Path
    copies: tuple[Copy, ...]
    present: tuple[Copy, ...]
    moved: tuple[Path, ...] = ()
    without_host: bool = False

    def carry_out(self) -> None:
        """Write the files; a file that appeared meanwhile is not overwritten."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for copy in self.copies:
            with copy.target.open("x", encoding="utf-8", newline="\n") as file:
                file.write(copy.migration.text)
        for path in self.moved:
            path.unlink(missing_ok=True)


def migrations() -> list[Migration]:
    """The migrations of this package, in order: in the wheel, or in the checkout that it runs from."""
    found = [
        Migration(named[1], named[2], file.read_text(encoding="utf-8").replace("\r\n", "\n"))
        for file in _folder().iterdir()
        if (named := _NAME.match(file.name))
    ]
    if not found:
        raise ShippedError("this installation carries no migrations", hint="install ranked-ledger again")
    return sorted(found, key=lambda one: one.version)


def _folder() -> Traversable:
    package = resources.files("ranked_ledger")
    shipped = package / "_shipped" / "migrations"
    if shipped.is_dir():
        return shipped
    checkout = Path(str(package)).resolve().parents[1] / "supabase" / "migrations"
    if checkout.is_dir():
        return checkout
    raise ShippedError("this installation carries no migrations", hint="install ranked-ledger again")


def plan_copies(project: Path | str, areas: Sequence[str] = (LEDGER,)) -> Plan:
    """What has to be written so that a project's own migrations hold these areas.

    Versions are later than the newest that is there, as `supabase db push` wants it. A ledger that is the
    newest file, and lacks the Open Brain tables before it, is moved behind them: its push was refused. Raises
    `ShippedError` where a copy was edited, or where the order cannot be right any more.

    Example:
        >>> plan_copies("my-app", areas=("open_brain", "decision_ledger")).carry_out()  # doctest: +SKIP
    """
    folder = Path(project) / "supabase" / "migrations"
    theirs = _theirs(folder)
    copies: list[Copy] = []
    present: list[Copy] = []
    moved: list[Path] = []
    newest = max((version for version, _, _ in theirs), key=int, default="0")
    bound = _without(theirs, LONG_TERM_MEMORY)
    last = max(bound, key=lambda one: int(one[0]))[1] if bound else None
    for migration in (one for one in migrations() if one.area in areas):
        there = [(path, text) for _, path, text in theirs if _is_copy(text, migration)]
        if there:
            same = [path for path, text in there if text == migration.text]
            if not same:
                raise ShippedError(
                    f"{there[0][0]} is {migration.area} with other text than this version's",
                    hint="if you edited it, put your changes into a migration of your own and restore it; if "
                    "it comes from another version of ranked-ledger, install that one or move the file away",
                )
            below = _STANDS_ON.get(migration.area)
            if same != [last] or all(copy.migration.area != below for copy in copies):
                present.append(Copy(migration, same[0]))
                continue
            moved += same  # what it stands on is written now, and nothing that could need it comes after it
        version = migration.version if int(migration.version) > int(newest) else _after(newest)
        newest = version
        copies.append(Copy(migration, folder / f"{version}_{migration.area}.sql"))
    staying = [one for one in theirs if one[1] not in moved]
    _check_order(copies, staying)
    return Plan(folder, tuple(copies), tuple(present), tuple(moved), _lacks_host(areas, theirs))


def _theirs(folder: Path) -> list[tuple[str, Path, str]]:
    """Version, path and text of every migration that is there, as the Supabase CLI sees it."""
    if not folder.exists():
        return []
    if not folder.is_dir():
        raise ShippedError(f"{folder} is a file, not a folder", hint="name the folder that holds supabase/")
    found = []
    for path in sorted(folder.iterdir()):
        if (named := _NAME.match(path.name)) and path.is_file():
            text = path.read_text(encoding="utf-8", errors="replace").replace("\r\n", "\n")
            found.append((named[1], path, text))
    return found


def _without(theirs: Sequence[tuple[str, Path, str]], *areas: str) -> list[tuple[str, Path, str]]:
    """What is there but our files of these areas."""
    ours = [one for one in migrations() if one.area in areas]
    return [found for found in theirs if not any(_is_copy(found[2], one) for one in ours)]


def _lacks_host(areas: Sequence[str], theirs: Sequence[tuple[str, Path, str]]) -> bool:
    others = _without(theirs, LEDGER, LONG_TERM_MEMORY)  # both name the table, and make none of that name
    return LEDGER in areas and OPEN_BRAIN not in areas and not any(_HOST in text for _, _, text in others)


def _is_copy(text: str, migration: Migration) -> bool:
    return text.removeprefix("\ufeff").startswith(migration.heading + "\n")


def _check_order(copies: Sequence[Copy], theirs: Sequence[tuple[str, Path, str]]) -> None:
    """The Open Brain tables come before the ledger, which stands on them."""
    for copy in copies:
        for one in (one for one in migrations() if _STANDS_ON.get(one.area) == copy.migration.area):
            if blocking := next((path for _, path, text in theirs if _is_copy(text, one)), None):
                raise ShippedError(
                    f"{copy.migration.area} has to come before {one.area}, and {blocking} is there already",
                    hint=f"if it was not pushed yet, delete {blocking} and run this again",
                )


def _after(version: str) -> str:
    """The next version: a second later where it is a time, else one more."""
    try:
        later = datetime.strptime(version, _STAMP) + timedelta(seconds=1)
    except (ValueError, OverflowError):
        return str(int(version) + 1).zfill(len(version))
    return later.strftime(_STAMP)
