"""Rules of a copy's own about which rows may be seen: the ledger does not know them, so its owner has to.

What is looked at stands between match call and ranked list: filters of lists, and what narrows the query
of `agent_memories`. Those that the ranked policy applies itself (workspace, project, lifecycle, confirmation,
personal ones) are no news.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from ast_grep_py import SgNode

from ranked_ledger.patching import source
from ranked_ledger.patching.source import Source

_APPLIED: Final = frozenset(
    "id memory_id thought_id workspace_id project_id memory_type lifecycle_status review_status "
    "requires_user_confirmation visibility created_at content summary similarity ranking_score score "
    "length".split()
)
_CONFIRMED_OR_PERSONAL: Final = frozenset({"visibility", "review_status", "requires_user_confirmation"})
_NARROWING: Final = frozenset(
    "eq neq gt gte lt lte like ilike is in contains containedBy overlaps match not or filter".split()
)
_DEEPEST: Final = 5  # functions that hand a row on
_COLUMN: Final = re.compile(r"^[\"'`]([A-Za-z_]\w*)(?:->>?\w+)*[\"'`]$")
_IN_LOGIC: Final = re.compile(r"([A-Za-z_]\w*)\.(?:not\.)?[a-z]+\.")


@dataclass(frozen=True)
class RowRule:
    """A rule that the ranked policy does not apply: its line (from 1), and the columns that it asks about."""

    line: int
    columns: tuple[str, ...]

    def as_dict(self) -> dict[str, object]:
        return {"line": self.line, "columns": list(self.columns)}


def find(file: Source, nodes: Iterable[SgNode]) -> list[RowRule]:
    """The rules in some statements, and in the functions of the file that these name."""
    nodes = list(nodes)
    named = {name for node in nodes for name in source.used(node) if name in file.functions}
    nodes += file.reachable([file.functions[name] for name in sorted(named)])
    found: dict[int, set[str]] = {}
    for node in nodes:
        for call in node.find_all(kind="call_expression"):
            columns = set(_columns(file, call)) - _APPLIED | _fixed(call)
            if columns:
                found.setdefault(_line(call), set()).update(columns)
        for loop in node.find_all(kind="for_in_statement"):
            for line, columns in _sorted_out(file, loop):
                if columns - _APPLIED:
                    found.setdefault(line, set()).update(columns - _APPLIED)
    return [RowRule(line, tuple(sorted(columns))) for line, columns in sorted(found.items())]


def _columns(file: Source, call: SgNode) -> Iterator[str]:
    method, arguments = source.method_of(call), source.arguments_of(call)
    if method is None or method.text() not in _NARROWING or not arguments:
        return
    first = arguments[0]
    if column := _COLUMN.match(first.text()):
        yield column[1]
    elif method.text() == "or":
        yield from _IN_LOGIC.findall(first.text())
    elif method.text() == "filter":
        predicate = source.last_function(first) or file.functions.get(first.text())
        if predicate is not None:
            yield from _read(file, predicate)


def _fixed(call: SgNode) -> set[str]:
    """A column of the scope that is held to a value that no request has a say in."""
    method, arguments = source.method_of(call), source.arguments_of(call)
    column = _COLUMN.match(arguments[0].text()) if len(arguments) > 1 else None
    if method is None or column is None or method.text() not in {"eq", "neq", "in"}:
        return set()
    name, value = column[1], arguments[1].text()
    if name == "project_id":
        return set() if re.search(r"project_?[iI]d\b", value) else {name}
    is_conditional = any(one.kind() in {"if_statement", "ternary_expression"} for one in call.ancestors())
    is_fixed = name in _CONFIRMED_OR_PERSONAL and not is_conditional and not source.used(arguments[1])
    return {name} if is_fixed else set()


def _sorted_out(file: Source, loop: SgNode) -> Iterator[tuple[int, set[str]]]:
    """What a loop over rows asks before it passes one by, or answers because of it."""
    row = loop.field("left")
    names = set() if row is None else source.pattern_names(row)
    for one in loop.find_all(kind="if_statement"):
        condition = one.field("condition")
        leaves = any(
            one.find(kind=f"{kind}_statement") is not None for kind in ("continue", "return", "throw")
        )
        if condition is not None and leaves:
            yield one.range().start.line + 1, set(_read_of(file, condition, names, 0))


def _read(file: Source, function: SgNode, place: int = 0, depth: int = 0) -> Iterator[str]:
    """What a predicate reads of its row, itself or by a function of the file that it hands the row to."""
    row = _parameter(function, place)
    if row is None or depth > _DEEPEST:
        return
    names = source.pattern_names(row)
    if row.find(kind="object_pattern") is not None:
        yield from names
    yield from _read_of(file, function, names, depth)


def _read_of(file: Source, node: SgNode, names: set[str], depth: int) -> Iterator[str]:
    for member in node.find_all(kind="member_expression"):
        whole, name = member.field("object"), member.field("property")
        if whole is not None and name is not None and whole.text() in names:
            yield name.text()
    for call in node.find_all(kind="call_expression"):
        called = call.field("function")
        further = None if called is None else file.functions.get(called.text())
        for at, one in enumerate(source.arguments_of(call)):
            if further is not None and one.text() in names:
                yield from _read(file, further, at, depth + 1)


def _parameter(function: SgNode, place: int) -> SgNode | None:
    single = function.field("parameter")
    if single is not None:
        return single if place == 0 else None
    several = function.field("parameters")
    parts = [] if several is None else source.parts(several)
    if place >= len(parts):
        return None
    return parts[place].field("pattern") or parts[place]


def _line(call: SgNode) -> int:
    """The line of the method: a chain begins further up."""
    return (source.method_of(call) or call).range().start.line + 1
