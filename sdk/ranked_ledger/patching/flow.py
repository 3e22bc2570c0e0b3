"""What rests on what in a handler: where a name comes from, and which statements a value reaches."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from ast_grep_py import SgNode

from ranked_ledger.patching import source

_DECLARATIONS: Final = frozenset({"lexical_declaration", "variable_declaration"})
_DEFINITIONS: Final = frozenset(
    {
        "function_declaration",
        "generator_function_declaration",
        "class_declaration",
        "abstract_class_declaration",
        "enum_declaration",
        "type_alias_declaration",
        "interface_declaration",
        "import_statement",
        "empty_statement",
    }
)
_OF_MEMORIES: Final = re.compile(r"\.from\(\s*[\"'`](thoughts|agent_memories)[\"'`]")
_ROUNDS: Final = 8  # a name from a name from a name ...
_HARMLESS: Final = frozenset("Array Boolean Date JSON Math Number Object String console performance".split())
_CONTAINERS: Final = frozenset({"new_expression", "array", "object"})


@dataclass(frozen=True)
class Definition:
    """A place where a name gets a value: a declarator or an assignment."""

    node: SgNode
    target: SgNode
    value: SgNode

    @property
    def names(self) -> set[str]:
        return source.pattern_names(self.target)


def definitions(function: SgNode) -> list[Definition]:
    """All of a function, in the order of the text; those of functions inside it do not count."""
    found = []
    for node in source.walk(function):
        if node.kind() == "variable_declarator":
            target, value = node.field("name"), node.field("value")
        elif node.kind() == "assignment_expression":
            target, value = node.field("left"), node.field("right")
        else:
            continue
        inside = source.function_of(node)
        if target is None or value is None or inside is None:
            continue
        if source.key(inside) == source.key(function):
            found.append(Definition(node, target, value))
    return found


def origins(start: SgNode, known: list[Definition]) -> list[Definition]:
    """The awaited definitions that an expression comes from, nearest ones; none behind another."""
    found: dict[source.Key, Definition] = {}
    seen: set[str] = set()
    waiting = [(name, source.start_of(start)) for name in sorted(source.used(start))]
    while waiting:
        name, before = waiting.pop(0)
        if name in seen:
            continue
        seen.add(name)
        for one in known:
            if name not in one.names or source.start_of(one.node) >= before:
                continue
            if source.contains_await(one.value):
                found.setdefault(source.key(one.node), one)
            else:
                waiting += [(used, before) for used in sorted(source.used(one.value))]
    return list(found.values())


@dataclass(frozen=True)
class Guard:
    """What must not run for the ranked policy: a declared value, or a whole statement."""

    node: SgNode
    is_value: bool


class Reach:
    """What the names that it starts with reach, statement after statement."""

    def __init__(self, names: Iterable[str], containers: Iterable[str]) -> None:
        self.names = set(names)
        self._containers = set(containers)

    def touches(self, node: SgNode) -> bool:
        return bool(self.names & source.free(node))

    def guards(self, statement: SgNode) -> Iterator[Guard]:
        """What of a statement has to be guarded; its names are reached from here on."""
        if statement.kind() in _DEFINITIONS:
            if self.touches(statement) and (name := statement.field("name")) is not None:
                self.names.add(name.text())
        elif statement.kind() in _DECLARATIONS:
            yield from self._declared(statement)
        elif statement.kind() == "return_statement":
            yield from (Guard(one, is_value=True) for one in statement.named_children() if self.touches(one))
        elif self.touches(statement):
            self._spread(statement)
            yield Guard(statement, is_value=False)

    def exits(self, statements: Iterable[SgNode], but: set[str]) -> Iterator[Guard]:
        """What would answer early because a reached name holds nothing; `but` hold the ranked list."""
        names = self.names - but
        for one in statements:
            condition = one.field("condition") if one.kind() == "if_statement" else None
            if condition is not None and names & source.used(condition) and source.leaves(one):
                yield Guard(one, is_value=False)

    def _declared(self, statement: SgNode) -> Iterator[Guard]:
        for one in statement.named_children():
            target, value = one.field("name"), one.field("value")
            if (
                one.kind() != "variable_declarator"
                or target is None
                or value is None
                or not self.touches(value)
            ):
                continue
            together = source.together(target, value)
            if together is not None:
                for name, element in together:
                    if self.touches(element):
                        self.names |= source.pattern_names(name)
                        yield Guard(element, is_value=True)
                continue
            self.names |= source.pattern_names(target)
            self._spread(value)
            if value.kind() not in source.FUNCTIONS:  # what it closes over is reached where it is called
                yield Guard(value, is_value=True)

    def _spread(self, node: SgNode) -> None:
        """What a reached statement writes to is reached: assigned names, and containers that it fills."""
        for one in source.walk(node):
            if one.kind() in {"assignment_expression", "augmented_assignment_expression"}:
                target = one.field("left")
                if target is not None:
                    root = source.root_name(target)
                    self.names |= source.pattern_names(target) | ({root} if root else set())
            elif one.kind() == "call_expression":
                called = one.field("function")
                root = source.root_name(called) if called is not None else None
                if root in self._containers and called is not None and called.kind() == "member_expression":
                    self.names.add(root)


def foreign(guard: Guard, names: set[str]) -> SgNode | None:
    """What a guarded piece waits for, or asks before it answers, that does not come of the reached names.

    A permission check, a quota, a metric: it must not be stepped over with the matches.
    """
    node, local = guard.node, set(names)
    for _ in range(_ROUNDS):
        before = len(local)
        for one in source.walk(node):
            local |= _derived(one, local)
        if len(local) == before:
            break
    for one in node.find_all(kind="await_expression"):
        if not source.used(one) & local and not _OF_MEMORIES.search(source.bare(one)):
            return one
    for one in node.find_all(kind="if_statement"):
        condition = one.field("condition")
        if condition is None or not source.leaves(one):
            continue
        for call in condition.find_all(kind="call_expression"):
            if not source.used(call) & local and source.root_name(call) not in _HARMLESS:
                return call
    return None


def _derived(node: SgNode, local: set[str]) -> set[str]:
    """The names that a node binds to what comes of `local`."""
    for target, value in (("name", "value"), ("left", "right")):
        bound, given = node.field(target), node.field(value)
        if bound is not None and given is not None and source.used(given) & local:
            return source.pattern_names(bound)
    if node.kind() == "call_expression" and source.used(node) & local:
        functions = [one for one in source.arguments_of(node) if one.kind() in source.FUNCTIONS]
        taken = [one.field(name) for one in functions for name in ("parameter", "parameters")]
        return set().union(*(source.pattern_names(one) for one in taken if one is not None))
    if node.kind() == "catch_clause" and (caught := node.field("parameter")) is not None:
        return source.pattern_names(caught)
    return set()


def containers(known: Iterable[Definition]) -> set[str]:
    """Names that hold a list, an object or a map made on the spot: filled later on, by methods."""
    return {
        name
        for one in known
        if one.value.kind() in _CONTAINERS
        or (one.value.kind() == "as_expression" and source.parts(one.value)[0].kind() in _CONTAINERS)
        for name in one.names
    }
