"""Why a patch was not made. Nothing was written in any of these cases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ranked_ledger.errors import RankedLedgerError

_REFUSED = 4  # the CLI's exit code for what was refused; a test compares them


class PatchError(RankedLedgerError):
    """The folder cannot be patched, or its patch not taken out; nothing was written."""

    exit_code = _REFUSED


class EditedError(PatchError):
    """Lines that the patch owns were edited, or only half of them is left."""

    def __init__(self, lines: Sequence[int]) -> None:
        self.lines = tuple(lines)
        where = ", ".join(str(line) for line in lines)
        super().__init__(
            f"lines of the patch were edited: line{'s' if len(lines) > 1 else ''} {where}",
            hint="put them back, or take the backup; changes of your own go outside of the marks",
        )


@dataclass(frozen=True)
class Refusal:
    """A place that was not found exactly once.

    - `place`, `title`: the rule. `reason`: what was found instead. `looked_for`: what it is.
    - `line`, `text`: what comes nearest to it. `by_hand`: the lines to add by hand.
    """

    place: str
    title: str
    reason: str
    looked_for: str
    by_hand: str
    line: int | None = None
    text: str | None = None

    def as_dict(self) -> dict[str, Any]:
        return {
            "place": self.place,
            "title": self.title,
            "reason": self.reason,
            "looked_for": self.looked_for,
            "nearest": None if self.line is None else {"line": self.line, "text": self.text},
            "by_hand": self.by_hand,
        }

    def __str__(self) -> str:
        nearest = f"\n  nearest: line {self.line}: {self.text}" if self.line is not None else ""
        lines = "\n".join(f"    {line}" for line in self.by_hand.splitlines())
        return f"{self.title}: {self.reason}\n  looked for: {self.looked_for}{nearest}\n  by hand:\n{lines}"


class PlacesError(PatchError):
    """A required place was not found exactly once."""

    _detail_is_shown = False

    def __init__(self, file: str, refusals: Sequence[Refusal]) -> None:
        self.file = file
        self.refusals = tuple(refusals)
        said = "\n\n".join(str(one) for one in refusals)
        super().__init__(
            f"{file} cannot be patched, and nothing was written:\n\n{said}\n",
            hint="bring these places into the shape that was looked for; or add all lines of the patch's "
            "README by hand, of which check and apply then know nothing",
        )
