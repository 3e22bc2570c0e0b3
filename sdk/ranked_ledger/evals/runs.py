"""The log of a run as it is read again: a header, a row for every question and arm, and a last line."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ranked_ledger.evals import shape
from ranked_ledger.evals.errors import EvalInputError, shown
from ranked_ledger.evals.packing import unpacked

# The streams on which weights were chosen. What they show is told apart from what the others show.
TUNING_STREAMS: Final = frozenset(
    {
        "ethereum/EIPs",
        "hiero-ledger/hiero-improvement-proposals",
        "BrighterCommand/Brighter",
        "buildpacks/rfcs",
        "alphagov/forms",
        "microsoft/semantic-kernel",
    }
)

READ: Final = 5
"""Of a list of hits an agent reads the first few: a retired one among them misleads."""
BUILT_IN: Final = "built-in"
"""What a log calls the made streams."""

_ROW_FIELDS: Final = ("question", "stream", "arm", "gold", "hits", "milliseconds", "budgets")


@dataclass(frozen=True, slots=True)
class Run:
    """One log. `digest`: of the file's bytes, so that a report says which log it was made from.

    - `cut`: its last line was not written to its end, and is left out.
    """

    name: str
    header: Mapping[str, Any]
    rows: tuple[Mapping[str, Any], ...]
    end: Mapping[str, Any] | None = None
    digest: str = ""
    cut: bool = False

    @property
    def arms(self) -> tuple[str, ...]:
        """The arms that answered, as the header declares them; others after them, as they come."""
        declared = [str(arm["name"]) for arm in self.header.get("arms", ())]
        answered = dict.fromkeys(str(row["arm"]) for row in self.rows)
        return tuple(name for name in dict.fromkeys([*declared, *answered]) if name in answered)

    @property
    def seed(self) -> int:
        """The run's own, which the intervals are drawn by as well."""
        return int(self.header.get("seed") or 0)

    def known(self, name: str) -> Any:
        """What is known of the run only when it is done, and stands in its last line; else in the header."""
        return (self.end or {}).get(name, self.header.get(name))

    @property
    def anomalies(self) -> Mapping[str, int]:
        """Counts by kind, without the kinds of which there are none."""
        counted = (self.end or {}).get("anomalies") or {}
        return {str(kind): int(number) for kind, number in counted.items() if number}


def read(path: Path) -> Run:
    """A log from its file. Raises `EvalInputError`, with the line, where it is none."""
    try:
        data = path.read_bytes()
    except OSError as refused:
        raise _no_log(f"it cannot be read: {refused.strerror}", path.name) from None
    # not splitlines: a text may hold U+2028 as it is
    lines = data.decode("utf-8", errors="replace").split("\n")
    return parse(lines, name=path.name, digest=hashlib.sha256(data).hexdigest())


def parse(lines: Iterable[str], *, name: str, digest: str = "") -> Run:
    """The same from its lines; a last one without a line end may be half of one."""
    lines = [line.removesuffix("\r") for line in lines]
    cut = _is_cut(lines)
    header: Mapping[str, Any] | None = None
    end: Mapping[str, Any] | None = None
    rows: list[Mapping[str, Any]] = []
    for number, line in enumerate(lines[:-1] if cut else lines, 1):
        if not line.strip():
            continue
        document = _document(line, name, number)
        match document.get("kind"):
            case "header" if header is None and not rows:
                header = _sound(document, shape.of_header, name, number)
            case "row":
                rows.append(_checked(document, name, number))
            case "end":
                end = _sound(document, shape.of_end, name, number)
            case other:
                raise _no_log(f"{shown(other)} is not header, row or end", name, number, "kind")
    if header is None:
        raise _no_log("the log has no header", name)
    if not rows:
        raise _no_log("the log has no row: nothing was asked", name)
    return Run(name, {**header, **_known_at_the_end(end)}, tuple(rows), end, digest, cut)


def _known_at_the_end(end: Mapping[str, Any] | None) -> dict[str, Any]:
    """What a run learns while it loads, and so can only say in its last line."""
    return {name: end[name] for name in ("loaded", "ranges", "unfitted") if name in end} if end else {}


def _is_cut(lines: Sequence[str]) -> bool:
    """Whether a run that was killed, or had no room, left half a line at the end."""
    if len(lines) < 2 or not lines[-1].strip():
        return False
    try:
        json.loads(lines[-1])
    except ValueError:
        return True
    return False


def _document(line: str, name: str, number: int) -> Mapping[str, Any]:
    try:
        document = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise _no_log("this is no JSON", name, number) from error
    if not isinstance(document, dict):
        raise _no_log("this is no JSON object", name, number)
    return document


def _checked(row: Mapping[str, Any], name: str, number: int) -> Mapping[str, Any]:
    if missing := [field for field in _ROW_FIELDS if field not in row]:
        raise _no_log("the row lacks it", name, number, ", ".join(missing))
    try:
        whole = unpacked(row)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise _no_log(
            "its columns are not of one length, or not all there", name, number, "hits, budgets"
        ) from error
    return _sound(whole, shape.of_row, name, number)


def _sound(
    document: Mapping[str, Any],
    faults: Callable[[Mapping[str, Any]], Iterator[shape.Fault]],
    name: str,
    number: int,
) -> Mapping[str, Any]:
    for field, what in faults(document):
        raise _no_log(what, name, number, field)
    return document


def _no_log(what: str, name: str, number: int | None = None, field: str | None = None) -> EvalInputError:
    hint = "give the file that `ranked-ledger eval run --out` wrote"
    return EvalInputError(what, hint=hint, file=name, line=number, field=field)
