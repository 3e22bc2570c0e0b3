"""The way of a recall through its function: the query's embedding, the match call, the ranked list."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from ast_grep_py import SgNode

from ranked_ledger.patching import flow, source
from ranked_ledger.patching.flow import Definition, Guard

_IS_VECTOR: Final = re.compile(r"[eE]mbed|[vV]ec")
_IS_REQUEST: Final = re.compile(r"\.json\(|\.valid\(|[pP]arse\w*\(")
NO_CALL: Final = "no call takes the query embedding"
_IS_BODY: Final = re.compile(r"\.(json|text)\(\)")

Matches = Callable[..., list[SgNode]]
Narrowed = Callable[[str, list[SgNode]], list[SgNode]]


class NotFound(Exception):
    """A place of the way that is not there exactly once: its rule, why, and what comes nearest."""

    def __init__(self, place: str, reason: str, near: SgNode | None) -> None:
        super().__init__(reason)
        self.place = place
        self.reason = reason
        self.near = near


@dataclass(frozen=True)
class Pathway:
    """What the insertions of a recall need.

    - `obtained`: the definition of the embedding; `embedding`: the expression that waits for it.
    - `is_awaited`: whether that waits itself, or stands among others that are awaited together.
    - `payload`: the expression that holds the parsed request; None where the function is given parts of it.
    - `call`: the match call. `ranked`: the list. `guards`: what must not run for the ranked policy.
    - `select`: the columns of a memory that the copy asks for, as an expression; empty: all.
    """

    obtained: SgNode
    embedding: SgNode
    is_awaited: bool
    payload: str | None
    call: SgNode
    ranked: SgNode
    guards: tuple[Guard, ...]
    select: str


def find(lists: list[SgNode], matches: Matches, narrowed: Narrowed) -> Pathway:
    """The way to the one ranked list of a function. Raises `NotFound`."""
    ranked, *more = narrowed("ranked-list", lists)
    if more:
        raise NotFound("ranked-list", several([ranked, *more]), ranked)
    function = source.enclosing(ranked)
    known = flow.definitions(function)
    call = _match_call(function, ranked, known, matches, narrowed)
    obtained = _obtained(call, known, narrowed)
    embedding, is_awaited, names = _waited(obtained, call)
    between = source.between(source.statement_of(obtained.node), source.statement_of(ranked))
    if not any(source.within(call, one) for one in (*between, ranked)):
        raise NotFound("match-call", "it does not stand between the embedding and the ranked list", call)
    reach = flow.Reach(names, flow.containers(known))
    guards = [guard for statement in between for guard in reach.guards(statement)]
    guards += reach.exits(source.after(source.statement_of(ranked), function), but=_target_names(ranked))
    payload = _payload(function, obtained, known)
    return Pathway(
        obtained.node, embedding, is_awaited, payload, call, ranked, tuple(guards), _select(function, ranked)
    )


def several(nodes: Iterable[SgNode]) -> str:
    """That something was found more than once, and where."""
    return f"found more than once, at lines {', '.join(str(one.range().start.line + 1) for one in nodes)}"


def _match_call(
    function: SgNode, ranked: SgNode, known: list[Definition], matches: Matches, narrowed: Narrowed
) -> SgNode:
    before = source.end_of(ranked)  # the list may be what a function makes of the vector
    calls = [one for one in matches("match-call", function) if source.start_of(one) < before]
    chosen = [one for one in calls if _vectors(one, known)] or [
        one for one in _awaited_calls(function) if source.start_of(one) < before and _vectors(one, known)
    ]
    chosen = narrowed("match-call", chosen)
    if len(chosen) == 1:
        return chosen[0]
    inline = next((one for one in calls if _inline(one)), None)
    if not chosen and inline is not None:
        raise NotFound(
            "query-embedding",
            "it is awaited inside the match call; give it a const before it",
            _inline(inline),
        )
    for one in calls if not chosen else ():
        _refuse_steps(flow.origins(one, known), known)
    reason = several(chosen) if chosen else NO_CALL
    raise NotFound("match-call", reason, next(iter([*chosen, *calls]), None))


def _awaited_calls(function: SgNode) -> list[SgNode]:
    """Awaited calls of the copy's own functions, which may hide the match call."""
    inner = [
        one.named_children()[0] for one in function.find_all(kind="await_expression") if one.named_children()
    ]
    return [one for one in inner if one.kind() == "call_expression"]


def _inline(call: SgNode) -> SgNode | None:
    arguments = call.field("arguments")
    return None if arguments is None else arguments.find(kind="await_expression")


def _vectors(call: SgNode, known: list[Definition]) -> list[Definition]:
    """The awaited definitions behind what a call is given as its vector, or that speak of one."""
    arguments = call.field("arguments")
    if arguments is None:
        return []
    given = [
        origin
        for one in source.walk(arguments)
        if one.kind() in {"pair", "shorthand_property_identifier"}
        and _IS_VECTOR.search((one.field("key") or one).text())
        for origin in flow.origins(one.field("value") or one, known)
    ]
    spoken_of = [one for one in flow.origins(arguments, known) if _IS_VECTOR.search(one.node.text())]
    return [one for one in given or spoken_of if not _is_request(one)]


def _is_request(one: Definition) -> bool:
    return bool(_IS_REQUEST.search(one.value.text())) and not _IS_VECTOR.search(one.target.text())


def _obtained(call: SgNode, known: list[Definition], narrowed: Narrowed) -> Definition:
    vectors = _vectors(call, known)
    preferred = {source.key(one) for one in narrowed("query-embedding", [one.node for one in vectors])}
    chosen = [one for one in vectors if source.key(one.node) in preferred]
    if len(chosen) != 1:
        raise NotFound("query-embedding", several([one.node for one in chosen]), call)
    _refuse_steps(chosen, known)
    return chosen[0]


def _refuse_steps(definitions: list[Definition], known: list[Definition]) -> None:
    """Where a service's answer is awaited, and then its body, one step alone cannot be waited for."""
    for one in definitions:
        behind = flow.origins(one.value, known) if _IS_BODY.search(one.value.text()) else []
        if any(_IS_VECTOR.search(step.node.text()) for step in behind):
            reason = "it takes more than one step that is awaited; give it a function of its own"
            raise NotFound("query-embedding", reason, one.node)


def _waited(obtained: Definition, call: SgNode) -> tuple[SgNode, bool, set[str]]:
    """The expression that waits for the service, with its names; of several awaited together, its own one."""
    value = obtained.value
    together = value.find(pattern="Promise.all($TOGETHER)")
    if obtained.target.kind() == "array_pattern" and together is not None:
        wanted = source.used(call)
        parts = [one for one in obtained.target.named_children() if one.kind() != "comment"]
        at = next((at for at, one in enumerate(parts) if source.pattern_names(one) & wanted), None)
        elements = [one for one in together["TOGETHER"].named_children() if one.kind() != "comment"]
        if at is not None and at < len(elements):
            return elements[at], False, source.pattern_names(parts[at])
    return value, True, obtained.names


def _payload(function: SgNode, obtained: Definition, known: list[Definition]) -> str | None:
    """The expression that the field `query` is read from."""
    names = source.used(obtained.value)
    behind = [one for one in known if one.names & names and source.key(one.node) != source.key(obtained.node)]
    for place in (obtained.value, *(one.value for one in behind)):
        if (whole := _read_query(place)) is not None:
            return whole
    for one in behind or known:
        if one.target.kind() == "object_pattern" and "query" in one.names:
            return one.value.text() if one.value.kind() in {"identifier", "member_expression"} else None
    return _read_query(function)


def _read_query(node: SgNode) -> str | None:
    """`payload` of `payload.query`; a call of a method query, as Hono's c.req has one, is none."""
    for member in node.find_all(kind="member_expression"):
        name, whole, parent = member.field("property"), member.field("object"), member.parent()
        called = (
            parent.field("function") if parent is not None and parent.kind() == "call_expression" else None
        )
        if name is None or whole is None or name.text() != "query":
            continue
        if called is None or source.key(called) != source.key(member):
            return whole.text()
    return None


def _target_names(ranked: SgNode) -> set[str]:
    """The names that the list is given, where it is given one."""
    for one in (ranked, *ranked.ancestors()):
        if one.kind() in {"variable_declarator", "assignment_expression"}:
            target = one.field("name") or one.field("left")
            return set() if target is None else source.pattern_names(target)
        if one.kind() in source.FUNCTIONS:
            break
    return set()


def _select(function: SgNode, ranked: SgNode) -> str:
    """What the copy selects of a memory, so that a ranked row has the same columns."""
    for one in function.find_all(pattern="$DB.from($TABLE).select($COLUMNS)"):
        columns = one["COLUMNS"]
        is_memories = re.fullmatch(r"[\"'`]agent_memories[\"'`]", one["TABLE"].text())
        is_plain = columns.kind() in {"string", "identifier"} or (
            columns.kind() == "template_string" and "${" not in columns.text()
        )
        if is_memories and is_plain and source.start_of(one) < source.start_of(ranked):
            return columns.text()
    return ""
