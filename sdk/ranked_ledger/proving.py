"""The doctor's proof that what recall searches, the derived copies, is what the tables say."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from ranked_ledger.client import RankedLedger
from ranked_ledger.doctor import MEND, Finding, State
from ranked_ledger.errors import InvalidArgumentError, NotInstalledError, RankedLedgerError
from ranked_ledger.models import Status
from ranked_ledger.wording import counted

AT_MOST: Final = 5_000
ALL: Final = "ranked-ledger doctor --all-copies"
_PAGE: Final = 500  # far from the eight seconds that the platform gives a call
_NAMED: Final = 5


@dataclass(frozen=True, slots=True)
class Proof:
    """What the copies of many decisions were found to be.

    - `checked`, `known`: decisions whose copies were looked at, and how many there are.
    - `cut`: whether there are more than it was to look at. `unlisted`: how many stand in workspaces that the
      ledger's status does not name: it lists a hundred.
    - `wrong`: workspace and memory id of those whose copies differ; `mended` as in `CopiesChecked`.
    - `error`: what ended the walk early, or None.
    """

    checked: int
    known: int
    cut: bool = False
    unlisted: int = 0
    wrong: tuple[tuple[str, UUID], ...] = ()
    mended: bool = False
    error: RankedLedgerError | None = None

    def as_dict(self) -> dict[str, Any]:
        """The same as plain values, ready for JSON."""
        return {
            "checked": self.checked,
            "known": self.known,
            "unlisted": self.unlisted,
            "wrong": [{"workspace_id": name, "memory_id": str(memory_id)} for name, memory_id in self.wrong],
            "mended": self.mended,
            "error": None if self.error is None else self.error.message,
        }

    def finding(self) -> Finding:
        """The same in words."""
        if isinstance(self.error, NotInstalledError):
            text = "The copies that recall searches were not checked: the schema is older."
            return Finding("copies", "note", text, "push the newer migrations: `ranked-ledger init` has them")
        it = "it" if len(self.wrong) == 1 else "these"
        parts = []
        if self.wrong and self.mended:
            parts.append(
                f"{self._wrong()} differed from the tables. Recall reads {it} from there now, and the copies "
                "are made anew: at once where no transaction was open, else by the recalls that follow."
            )
        elif self.wrong:
            parts.append(f"{self._wrong()} differ from the tables: a recall may leave {it} out.")
        if self.error is not None:
            parts.append(f"Not all copies could be checked: {self.error.message.rstrip('.')}.")
        if self.checked > len(self.wrong):
            parts.append(self._coverage())
        elif not self.known:
            parts.append("There is no decision yet whose copies could be checked.")
        state: State = (
            "problem" if self.wrong and not self.mended else "note" if self.wrong or self.error else "ok"
        )
        return Finding("copies", state, " ".join(parts), self._next())

    def _next(self) -> str | None:
        if self.wrong and not self.mended:
            return f"`{MEND}`"
        if self.error is not None:
            return self.error.hint
        if self.cut:
            return f"`{ALL}` checks every one"
        return (
            "name the workspaces beyond the first hundred, one by one: --workspace" if self.unlisted else None
        )

    def _wrong(self) -> str:
        names = ", ".join(f"{memory_id} in {name}" for name, memory_id in self.wrong[:_NAMED])
        more = len(self.wrong) - _NAMED
        return (
            f"The copies of {counted(len(self.wrong), 'decision')} ({names}"
            f"{f' and {more:,} more' if more > 0 else ''})"
        )

    def _coverage(self) -> str:
        of = f"{self.checked:,} of {counted(self.known, 'decision')}"
        if self.checked >= self.known:
            of = counted(self.checked, "decision")
        rest = "of the others " if self.wrong else ""
        return f"Checked: {of}; what recall searches {rest}is what the tables say."


def prove(
    ledger: RankedLedger,
    status: Status,
    *,
    at_most: int | None = AT_MOST,
    mend: bool = False,
    on_progress: Callable[[int, int], object] = lambda _done, _of: None,
) -> Proof:
    """Hold the copies against the tables, the busiest of the status's workspaces first.

    - `at_most`: how many decisions; None: all of them. `mend`: as in `RankedLedger.check_copies`.
    - `on_progress`: is told how many were checked, and how many will be.

    Example:
        >>> prove(ledger, ledger.status(everywhere=True)).wrong                 # doctest: +SKIP
        ()
    """
    known = status.enrolled + status.set_aside
    most = known if at_most is None else min(known, at_most)
    unlisted = status.enrolled - sum(one.decisions for one in status.workspaces)
    checked, wrong, error = 0, list[tuple[str, UUID]](), None
    try:
        for name in (one.workspace_id for one in status.workspaces):
            room = None if at_most is None else at_most - checked
            for count, found in _walk(ledger, name, room, mend):
                checked += count
                wrong += [(name, memory_id) for memory_id in found]
                on_progress(checked, max(most, checked))
    except RankedLedgerError as problem:
        error = problem
    cut = error is None and checked == at_most and checked < known - unlisted
    return Proof(
        checked, max(known, checked), cut, max(unlisted, 0), tuple(wrong), mend and bool(wrong), error
    )


def _walk(
    ledger: RankedLedger, workspace: str, room: int | None, mend: bool
) -> Iterator[tuple[int, tuple[UUID, ...]]]:
    """Page by page: how many were checked, and which of them differ. Where `mend`, those are made anew."""
    try:
        ledger = ledger.with_options(workspace=workspace)
    except InvalidArgumentError:
        return  # a host's own rows may stand under a name that no client takes, a blank one
    after, any_wrong = None, False
    while room is None or room > 0:
        page = ledger.check_copies(after=after, limit=min(_PAGE, room or _PAGE), mend=mend)
        yield page.checked, page.wrong
        if mend and page.wrong:
            any_wrong = True
            _renew(ledger)
        room = None if room is None else room - page.checked
        after = page.next
        if after is None:
            break
    if any_wrong:
        _renew(ledger)


def _renew(ledger: RankedLedger) -> None:
    """Make marked copies anew: a first call sees a mark, a second one lifts it.

    It goes on between the pages, so that no call has more to do than it has time for.
    """
    with contextlib.suppress(RankedLedgerError):  # recall is right by the mark alone, and lifts it in time
        ledger.enroll_missing(limit=1)
