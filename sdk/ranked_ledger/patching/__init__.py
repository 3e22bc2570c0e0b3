"""Brings ranked recall to an agent-memory-api function that is deployed already, by inserting lines of ours.

Places are found by structure (`patches/agent-memory-api/rules`), never by text; each of the required ones
exactly once, or nothing is written. Needs the extra `patch`.

>>> from ranked_ledger import patching
>>> print(patching.plan("supabase/functions/agent-memory-api").diff())           # doctest: +SKIP
>>> patching.apply("supabase/functions/agent-memory-api").state                  # doctest: +SKIP
'current'
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from ranked_ledger.errors import InvalidArgumentError
from ranked_ledger.patching import deno, finding, folder, marks, rules, source
from ranked_ledger.patching.deno import TypeCheck
from ranked_ledger.patching.finding import Place
from ranked_ledger.patching.folder import Function
from ranked_ledger.patching.problems import EditedError, PatchError, PlacesError, Refusal
from ranked_ledger.patching.row_rules import RowRule

__all__ = [
    "EditedError",
    "PatchError",
    "Place",
    "PlacesError",
    "Plan",
    "Refusal",
    "Reverted",
    "RowRule",
    "TypeCheck",
    "apply",
    "options",
    "plan",
    "revert",
]

_BOM = "\ufeff"

State = Literal["absent", "outdated", "current"]


@dataclass(frozen=True)
class Plan:
    """What applying the patch would do, or did.

    - `state`: of the folder: without the patch (`absent`), with another version of it or with places that
      moved (`outdated`), or as it would be written (`current`).
    - `places`: what was found, in the order of the file. `missing`: optional places that were not.
      `left_out`: the names that the caller left out.
    - `row_rules`: rules of the copy's own about rows, which the ranked policy does not apply.
    - `stepped_over`: the lines that run for the vector policy alone. `read_later`: lines after the list that
      read names which only that policy has.
    - `types`: the type check, or None where it was not asked for.
    """

    function: Function
    patched: str
    state: State
    places: tuple[Place, ...]
    missing: tuple[Refusal, ...]
    left_out: tuple[str, ...]
    row_rules: tuple[RowRule, ...] = ()
    stepped_over: tuple[int, ...] = ()
    read_later: tuple[tuple[int, tuple[str, ...]], ...] = ()
    types: TypeCheck | None = None
    backup: Path | None = None

    @property
    def changed(self) -> bool:
        """Whether there is anything to write."""
        return self.state != "current"

    def diff(self) -> str:
        """The change of the file as a unified diff; empty where there is none. The module comes beside it."""
        name = self.function.file.name
        if not self.changed:
            return ""
        return _unified(self.function.text, self.patched, name)

    def consequences(self) -> list[str]:
        """What does not work, for each optional place that is not there."""
        named = rules.options()
        lost = [rule.without for option in self.left_out for rule in named[option]]
        lost += [rules.rules()[one.place].without for one in self.missing]
        return list(dict.fromkeys(one for one in lost if one))

    def as_dict(self) -> dict[str, Any]:
        return {
            "file": str(self.function.file),
            "module": str(self.function.module_file),
            "version": marks.VERSION,
            "state": self.state,
            "places": [{"place": p.rule.id, "line": p.line, "text": p.text} for p in self.places],
            "missing": [one.as_dict() for one in self.missing],
            "left_out": list(self.left_out),
            "does_not_work": self.consequences(),
            "row_rules": [one.as_dict() for one in self.row_rules],
            "stepped_over": list(self.stepped_over),
            "read_later": [{"line": line, "names": list(names)} for line, names in self.read_later],
            "types": None if self.types is None else {"state": self.types.state, "reason": self.types.reason},
            "backup": None if self.backup is None else str(self.backup),
        }


@dataclass(frozen=True)
class Reverted:
    """What taking the patch out did: whether anything changed, whether the file is as it was before it.

    - `as_before`: None where no backup was left to compare with.
    """

    file: Path
    changed: bool
    as_before: bool | None

    def as_dict(self) -> dict[str, Any]:
        return {"file": str(self.file), "changed": self.changed, "as_before": self.as_before}


def options() -> dict[str, str]:
    """What can be left out, by name, and what then does not work."""
    return {name: named[0].without or "" for name, named in rules.options().items()}


def plan(folder_: str | Path, *, without: Iterable[str] = (), type_check: bool = True) -> Plan:
    """What applying the patch to a function's folder would do; writes nothing that stays.

    Raises `PlacesError` with every place that was not found exactly once, `EditedError` where our lines were
    edited, `PatchError` where there is no function, or the result would not pass the type checker.
    """
    asked = tuple(dict.fromkeys(without))
    if unknown := sorted(set(asked) - set(rules.options())):
        raise InvalidArgumentError(
            f"there is no optional place {', '.join(unknown)}", hint=f"they are: {', '.join(rules.options())}"
        )
    function = folder.read(Path(folder_))
    _refuse_module(function, "delete the file, and apply writes it anew")
    left_out = tuple(sorted({*asked, *(one for one in function.left_out if one in rules.options())}))
    bom, original = (
        (_BOM, function.original[1:]) if function.original.startswith(_BOM) else ("", function.original)
    )
    _check_syntax(function.file, original)
    found = finding.find(original, function.file.suffix, left_out)
    if found.refusals:
        raise PlacesError(str(function.file), found.refusals)
    patched = marks.insert(original, found.insertions)
    if marks.take_out(patched)[0] != original or not _parses(patched, function.file.suffix):
        raise PatchError(
            f"the patched {function.file.name} would not parse, or not come apart again; nothing was written",
            hint="this is a fault of the patch: please report it, with the lines around its places",
        )
    patched = bom + patched
    state: State = "outdated" if function.pieces else "absent"
    is_there = function.pieces and function.module == "current" and left_out == function.left_out
    if is_there and _is_but_formatted(function, patched):
        patched, state = function.text, "current"
    types = None
    if type_check and state != "current":
        types = deno.check(function.file, function.original, patched, folder.sealed_module(left_out))
    places = tuple(sorted(found.places, key=lambda place: place.line))
    missing, rules_of_rows = tuple(found.missing), tuple(found.row_rules)
    notes = (rules_of_rows, tuple(found.stepped_over), tuple(found.read_later))
    return Plan(function, patched, state, places, missing, left_out, *notes, types)


def apply(folder_: str | Path, *, without: Iterable[str] = (), type_check: bool = True) -> Plan:
    """Write the patch: the module, then the file, each at once or not at all; a backup is kept beside it.

    Applying twice changes nothing; an older version of lines and module is replaced. What was left out stays
    out until the patch is reverted. Raises as `plan`.
    """
    planned = plan(folder_, without=without, type_check=type_check)
    if not planned.changed:
        return planned
    function = planned.function
    backup = folder.backup_of(function)
    with folder.as_before_on_failure(backup, function.module_file):
        if not backup.exists():
            folder.replace(backup, function.original, expected=None)
        folder.replace(function.module_file, folder.sealed_module(planned.left_out), expected=None)
        folder.replace(function.file, planned.patched, expected=function.text)
    return replace(planned, state="current", backup=backup)


def revert(folder_: str | Path) -> Reverted:
    """Take the patch out: the file gets its own bytes back, and the module goes.

    What was changed outside of our lines since stays. Raises `EditedError` where our lines were edited.
    """
    function = folder.read(Path(folder_))
    _refuse_module(function, "delete the file and run revert again")
    changed = bool(function.pieces) or function.module != "absent"
    if function.pieces:
        folder.replace(function.file, function.original, expected=function.text)
    function.module_file.unlink(missing_ok=True)
    as_before = None
    if changed and function.backup_file.exists():
        as_before = folder.read_text(function.backup_file) == function.original
        if as_before:
            function.backup_file.unlink()
    return Reverted(function.file, changed, as_before)


def _parses(text: str, suffix: str) -> bool:
    """By Deno's parser where it is present: ast-grep's lets some faults pass, and trips over rare syntax."""
    by_deno = deno.parses(text, suffix)
    return source.Source(text, suffix).broken_line is None if by_deno is None else by_deno


def _is_but_formatted(function: Function, patched: str) -> bool:
    text = function.text
    return patched == text or (
        marks.same_but_layout(patched, text) and _parses(text.removeprefix(_BOM), function.file.suffix)
    )


def _check_syntax(file: Path, text: str) -> None:
    if not _parses(text, file.suffix):
        line = source.Source(text, file.suffix).broken_line
        raise PatchError(
            f"{file.name} does not parse" + (f", at line {line}" if line else ""),
            hint="mend the file first: deno check shows what is wrong",
        )


def _refuse_module(function: Function, then: str) -> None:
    if function.module == "newer" or any(one.version > marks.VERSION for one in function.pieces):
        raise PatchError(
            f"{function.file.name} was patched by a newer version of this package",
            hint="upgrade it: pip install --upgrade 'ranked-ledger[patch]'",
        )
    if function.module == "edited":
        raise PatchError(
            f"{function.module_file.name} was edited, and the patch owns it",
            hint=f"keep your change elsewhere, then {then}",
        )
    if function.module == "foreign":
        raise PatchError(
            f"there is a {function.module_file.name} in this folder that is not of this patch",
            hint="rename it, and what imports it",
        )


def _unified(old: str, new: str, name: str) -> str:
    lines = difflib.unified_diff(
        old.splitlines(keepends=True), new.splitlines(keepends=True), f"a/{name}", f"b/{name}"
    )
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )
