"""What the lines of a log must be made of before anything is counted from them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from ranked_ledger.evals.errors import shown

Fault = tuple[str, str]
"""A field, and what is wrong with it."""

_Test = Callable[[Any], bool]


def _text(value: object) -> bool:
    return isinstance(value, str) and bool(value)


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _texts(value: object) -> bool:
    return isinstance(value, list) and all(map(_text, value))


def _object(value: object) -> bool:
    return isinstance(value, Mapping)


def _counts(value: object) -> bool:
    return isinstance(value, Mapping) and all(map(_whole, value.values()))


def _arms(value: object) -> bool:
    return isinstance(value, list) and all(_object(arm) and _text(arm.get("name")) for arm in value)


def _ranges(value: object) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(one, list) and len(one) == 2 and all(map(_number, one)) for one in value.values()
    )


def _or_none(test: _Test) -> _Test:
    return lambda value: value is None or test(value)


_HEADER: Final[dict[str, tuple[_Test, str]]] = {
    "arms": (_arms, "a list of objects with a name"),
    "seed": (_whole, "a whole number from 0"),
    "dataset": (_object, "an object"),
    "presets": (_object, "an object"),
    "absent": (_object, "an object"),
    "versions": (_object, "an object"),
    "ranges": (_ranges, "an object of pairs of numbers"),
    "loaded": (_object, "an object"),
    "model": (_text, "a text"),
    "command": (_text, "a text"),
    "dimension": (_whole, "a whole number from 0"),
}
_END: Final[dict[str, tuple[_Test, str]]] = {
    "anomalies": (_counts, "an object of whole numbers"),
    **{name: _HEADER[name] for name in ("ranges", "loaded")},
}
_ROW: Final[dict[str, tuple[_Test, str]]] = {
    "question": (_text, "a text"),
    "stream": (_text, "a text"),
    "arm": (_text, "a text"),
    "gold": (lambda value: _texts(value) and bool(value), "a list of at least one key"),
    "milliseconds": (lambda value: _number(value) and value >= 0, "a number from 0"),
    "must_not": (_or_none(_texts), "a list of keys"),
    "question_kind": (_or_none(lambda value: isinstance(value, str)), "a text"),
    "retired_without_successor": (_or_none(_texts), "a list of keys"),
}
_OPTIONAL: Final = frozenset({"must_not", "question_kind", "retired_without_successor"})


def of_header(line: Mapping[str, Any]) -> Iterator[Fault]:
    """What a header says may be missing or null; what is there must be of its kind."""
    yield from _unlike(line, _HEADER)


def of_end(line: Mapping[str, Any]) -> Iterator[Fault]:
    yield from _unlike(line, _END)


def of_row(row: Mapping[str, Any]) -> Iterator[Fault]:
    """Of a row as `packing.unpacked` gives it."""
    for field, (test, wanted) in _ROW.items():
        if not (field in _OPTIONAL and field not in row) and not test(row[field]):
            yield _fault(field, row[field], wanted)
    yield from _hits(row["hits"])
    yield from _budgets(row["budgets"])


def _hits(hits: object) -> Iterator[Fault]:
    if not isinstance(hits, list):
        yield _fault("hits", hits, "a list, or an object of columns")
        return
    for hit in hits:
        if not isinstance(hit, Mapping) or not _text(hit.get("key")):
            yield _fault("hits", hit, "a hit with a key")
        elif not _or_none(_whole)(hit.get("tokens")):
            yield _fault("hits.tokens", hit["tokens"], "a whole number from 0")


def _budgets(budgets: object) -> Iterator[Fault]:
    if not isinstance(budgets, Mapping) or not budgets:
        yield _fault("budgets", budgets, "an object with at least one budget")
        return
    for budget, left in budgets.items():
        if not budget.isdecimal() or not isinstance(left, Mapping):
            yield _fault("budgets", {budget: left}, "an object by a number of tokens")
            continue
        for name in ("tokens", "first_right"):
            if not _or_none(_whole)(left.get(name)):
                yield _fault(f"budgets.{name}", left[name], "a whole number from 0, or null")


def _unlike(line: Mapping[str, Any], wanted: Mapping[str, tuple[_Test, str]]) -> Iterator[Fault]:
    for field, (test, what) in wanted.items():
        if line.get(field) is not None and not test(line[field]):
            yield _fault(field, line[field], what)


def _fault(field: str, value: object, wanted: str) -> Fault:
    return field, f"{shown(value)} is not {wanted}"
