"""A TypeScript file as a tree, with what the patch asks of it: functions, statements, names."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from functools import cached_property
from typing import Any, Final

from ast_grep_py import SgNode, SgRoot

Key = tuple[int, int, str]

LANGUAGES: Final = {".ts": "typescript", ".mts": "typescript", ".tsx": "tsx", ".js": "javascript"}
FUNCTIONS: Final = frozenset(
    "arrow_function function_expression function_declaration method_definition generator_function "
    "generator_function_declaration".split()
)
LONG_LINE: Final = 120
_WHOLE: Final = frozenset({"string", "template_string", "regex"})
_METHODS: Final = frozenset("get post put patch delete".split())
_BLOCKS: Final = frozenset({"statement_block", "program", "switch_case", "switch_default"})
_CONDITIONAL: Final = frozenset(
    "if_statement switch_case switch_default ternary_expression catch_clause "
    "for_statement for_in_statement while_statement do_statement".split()
)
_USES: Final = frozenset({"identifier", "shorthand_property_identifier"})
_PATTERN_NAMES: Final = frozenset({"identifier", "shorthand_property_identifier_pattern"})


class Source:
    """The parsed text of one file."""

    def __init__(self, text: str, suffix: str) -> None:
        self.text = text
        self.root = SgRoot(text, LANGUAGES[suffix]).root()

    @cached_property
    def broken_line(self) -> int | None:
        """The first line (from 1) that does not parse, or None."""
        for node in walk(self.root):
            is_missing = not node.children() and not node.text() and node.kind() != "program"
            if node.kind() == "ERROR" or is_missing:
                return node.range().start.line + 1
        return None

    def line_at(self, node: SgNode) -> tuple[int, str]:
        """The line (from 1) that a node begins on, and its text; of a long one what begins with the node."""
        start = node.range().start
        line = self.text.split("\n")[start.line].strip()
        if len(line) > LONG_LINE:
            line = node.text().split("\n")[0].strip()[:LONG_LINE]
        return start.line + 1, line

    def find_all(self, config: Any) -> list[SgNode]:
        return self.root.find_all(config)

    @cached_property
    def other_routes(self) -> list[range]:
        """The lines (from 1) of the handlers of routes other than POST /recall."""
        found = []
        for call in self.root.find_all(kind="call_expression"):
            method, given = method_of(call), call.field("arguments")
            first = next(iter(arguments_of(call)), None)
            if method is None or given is None or first is None or method.text() not in _METHODS:
                continue
            if re.match(r"[\"'`]", first.text()) and not re.search(r"/recall/?[\"'`]$", first.text()):
                lines = given.range()
                found.append(range(lines.start.line + 2, lines.end.line + 2))
        return found

    @cached_property
    def constants(self) -> dict[str, set[str]]:
        """Constants of the file, with the names that they are made of: base schemas, shapes."""
        found: dict[str, set[str]] = {}
        for target, value in _declared_at_top(self.root):
            if value is not None:
                found[target.text()] = used(value)
        return found

    @cached_property
    def functions(self) -> dict[str, SgNode]:
        """Functions of the file by the name that they are declared under."""
        found: dict[str, SgNode] = {}
        for node in walk(self.root):
            name = node.field("name")
            if name is None:
                continue
            if node.kind() == "function_declaration":
                found.setdefault(name.text(), node)
            elif node.kind() == "variable_declarator" and name.kind() == "identifier":
                value = node.field("value")
                inner = None if value is None else last_function(value)
                if inner is not None:
                    found.setdefault(name.text(), inner)
        return found

    def reachable(self, start: list[SgNode]) -> list[SgNode]:
        """`start`, and the functions of the file that these call by name, directly or further on."""
        found: dict[Key, SgNode] = {}
        waiting = list(start)
        while waiting:
            node = waiting.pop(0)
            if key(node) in found:
                continue
            found[key(node)] = node
            waiting += [self.functions[name] for name in sorted(used(node)) if name in self.functions]
        return list(found.values())


def constants_of(root: SgNode) -> set[str]:
    """The names that a file declares or imports at its top."""
    declared = {name for target, _ in _declared_at_top(root) for name in pattern_names(target)}
    return declared | {name for one in root.find_all(kind="import_statement") for name in used(one)}


def _declared_at_top(root: SgNode) -> Iterator[tuple[SgNode, SgNode | None]]:
    for one in root.find_all(kind="variable_declarator"):
        target = one.field("name")
        if target is not None and function_of(one) is None:
            yield target, one.field("value")


def key(node: SgNode) -> Key:
    """What tells a node from the others of its tree."""
    where = node.range()
    return where.start.index, where.end.index, node.kind()


def start_of(node: SgNode) -> int:
    return node.range().start.index


def end_of(node: SgNode) -> int:
    return node.range().end.index


def within(inner: SgNode, outer: SgNode) -> bool:
    return start_of(outer) <= start_of(inner) and end_of(inner) <= end_of(outer)


def walk(node: SgNode) -> Iterator[SgNode]:
    """A node and everything in it, in the order of the text."""
    waiting = [node]
    while waiting:
        one = waiting.pop()
        yield one
        waiting.extend(reversed(one.children()))


def used(node: SgNode) -> set[str]:
    """The names that an expression or a statement mentions; names of properties are none."""
    return {one.text() for one in walk(node) if one.kind() in _USES}


def parts(node: SgNode) -> list[SgNode]:
    """What a node is made of; comments are none of it."""
    return [one for one in node.named_children() if one.kind() != "comment"]


def bare(node: SgNode) -> str:
    """The text of an expression, its comments and line breaks left out."""
    if not any(one.kind() == "comment" for one in walk(node)) and "\n" not in node.text():
        return node.text()
    return re.sub(r" ?(\?\.|[.()]) ?", r"\1", " ".join(_tokens(node)))


def _tokens(node: SgNode) -> Iterator[str]:
    if node.kind() in _WHOLE or (not node.children() and node.kind() != "comment"):
        yield node.text()
    elif node.kind() != "comment":
        for one in node.children():
            yield from _tokens(one)


def free(node: SgNode) -> set[str]:
    """The names that a node mentions and does not declare itself: a shadowed name is another one."""
    if node.kind() in _USES:
        return {node.text()}
    inner = set().union(*(free(one) for one in node.children()))
    if node.kind() in FUNCTIONS:
        given = [node.field(name) for name in ("parameter", "parameters")]
        return inner.difference(*(pattern_names(one) for one in given if one is not None))
    if node.kind() == "catch_clause":
        return inner - _names_of(node.field("parameter"))
    if node.kind() == "for_in_statement" and node.field("kind") is not None:
        return inner - _names_of(node.field("left"))
    if node.kind() == "statement_block":
        return inner.difference(*(_declared_by(one) for one in node.children()))
    return inner


def _declared_by(statement: SgNode) -> set[str]:
    if statement.kind() == "lexical_declaration":
        return set().union(*(_names_of(one.field("name")) for one in statement.named_children()))
    return _names_of(statement.field("name")) if statement.kind().endswith("_declaration") else set()


def _names_of(node: SgNode | None) -> set[str]:
    return set() if node is None else pattern_names(node)


def pattern_names(node: SgNode) -> set[str]:
    """The names that the left side of a declaration or an assignment binds."""
    if node.kind() == "member_expression":
        return set()
    return {one.text() for one in walk(node) if one.kind() in _PATTERN_NAMES}


def root_name(node: SgNode) -> str | None:
    """`a` of `a.b.c(d).e`."""
    one: SgNode | None = node
    while one is not None and one.kind() != "identifier":
        if one.kind() in {
            "await_expression",
            "parenthesized_expression",
            "non_null_expression",
            "as_expression",
        }:
            one = next(iter(parts(one)), None)
        else:
            one = one.field("object") or one.field("function")
    return None if one is None else one.text()


def together(target: SgNode, value: SgNode) -> list[tuple[SgNode, SgNode]] | None:
    """What is awaited together and taken apart at once: each name with its own expression."""
    awaited = value.find(pattern="Promise.all($TOGETHER)")
    if awaited is None or target.kind() != "array_pattern" or awaited["TOGETHER"].kind() != "array":
        return None
    names, elements = parts(target), parts(awaited["TOGETHER"])
    return list(zip(names, elements, strict=True)) if len(names) == len(elements) else None


def method_of(call: SgNode) -> SgNode | None:
    """The name of the method that is called; None where no method is."""
    called = call.field("function")
    return None if called is None else called.field("property")


def arguments_of(call: SgNode) -> list[SgNode]:
    """What a call is given."""
    given = call.field("arguments")
    return [] if given is None else parts(given)


def last_function(node: SgNode) -> SgNode | None:
    """The function that a handler is: itself, or the last one among the arguments of what wraps it."""
    while node.kind() in {"parenthesized_expression", "as_expression", "satisfies_expression"}:
        node = parts(node)[0]
    if node.kind() in FUNCTIONS:
        return node
    given = arguments_of(node) if node.kind() == "call_expression" else []
    return next(filter(None, (last_function(one) for one in reversed(given))), None)


def function_of(node: SgNode) -> SgNode | None:
    """The function that a node stands in, directly."""
    return next((one for one in node.ancestors() if one.kind() in FUNCTIONS), None)


def enclosing(node: SgNode) -> SgNode:
    """The same, where there has to be one."""
    function = function_of(node)
    if function is None:
        raise ValueError("the node stands in no function")
    return function


def contains_await(node: SgNode) -> bool:
    """Whether evaluating an expression waits; a function in it that waits by itself does not count."""
    if node.kind() == "await_expression":
        return True
    return node.kind() not in FUNCTIONS and any(contains_await(one) for one in node.children())


def awaited_function(node: SgNode) -> str | None:
    """The name of the function that an expression waits for first."""
    awaited = node if node.kind() == "await_expression" else node.find(kind="await_expression")
    call = None if awaited is None else next(iter(parts(awaited)), None)
    function = None if call is None or call.kind() != "call_expression" else call.field("function")
    return None if function is None or function.kind() != "identifier" else function.text()


def is_conditional(node: SgNode, before: SgNode) -> bool:
    """Whether a node may not be reached, or more than once, although one before it was."""
    outer = itertools.takewhile(lambda one: not within(before, one), node.ancestors())
    return any(one.kind() in _CONDITIONAL for one in outer)


def leaves(node: SgNode) -> bool:
    """Whether a statement may end its function."""
    if node.kind() in {"return_statement", "throw_statement"}:
        return True
    return node.kind() not in FUNCTIONS and any(leaves(one) for one in node.children())


def statement_of(node: SgNode) -> SgNode:
    """The innermost statement around a node."""
    one = node
    for outer in node.ancestors():
        if outer.kind() in _BLOCKS:
            return one
        one = outer
    return one


def siblings_after(node: SgNode) -> list[SgNode]:
    return [one for one in node.next_all() if one.is_named() and one.kind() != "comment"]


def siblings_before(node: SgNode) -> list[SgNode]:
    return [one for one in node.prev_all() if one.is_named() and one.kind() != "comment"]


def between(first: SgNode, last: SgNode) -> list[SgNode]:
    """The statements that run after the statement `first` and before the statement `last`, outermost ones.

    Where one of the two stands in a block of its own, that block's statements count too.
    """
    found: dict[Key, SgNode] = {}
    for one in (first, *first.ancestors()):
        if within(last, one):
            break
        if _stands_in_block(one):
            found |= {key(s): s for s in siblings_after(one) if end_of(s) <= start_of(last)}
    for one in (last, *last.ancestors()):
        if within(first, one):
            break
        if _stands_in_block(one):
            found |= {key(s): s for s in siblings_before(one) if start_of(s) >= end_of(first)}
    return sorted(found.values(), key=start_of)


def after(statement: SgNode, function: SgNode) -> list[SgNode]:
    """The statements of a function that run after one of its statements, outermost ones."""
    found = siblings_after(statement)
    for one in statement.ancestors():
        if key(one) == key(function):
            break
        if _stands_in_block(one):
            found += siblings_after(one)
    return found


def _stands_in_block(node: SgNode) -> bool:
    parent = node.parent()
    return parent is not None and parent.kind() in _BLOCKS
