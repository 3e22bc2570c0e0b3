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
_TOGETHER: Final = re.compile(r"await\s+Promise\s*\.\s*all\b")

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

    - `obtained`: the definition of the embedding; `embedding`: the expression that waits for it; `wait`:
      `await ` where the insertion has to wait for it in its turn.
    - `payload`: the expression that holds the parsed request; None where it is taken apart as it is parsed.
    - `call`: the match call. `guards`: what must not run for the ranked policy.
    - `select`: the columns of a memory that the copy asks for, as an expression; empty: all.
    """

    obtained: SgNode
    embedding: SgNode
    wait: str
    payload: str | None
    call: SgNode
    guards: tuple[Guard, ...]
    select: str


def find(ranked: SgNode, matches: Matches, narrowed: Narrowed) -> Pathway:
    """The way to a ranked list. Raises `NotFound`."""
    function = source.enclosing(ranked)
    known = flow.definitions(function)
    call = _match_call(function, ranked, known, matches, narrowed)
    obtained = _obtained(call, known, narrowed)
    embedding, wait = _waited(obtained, call)
    between = source.between(source.statement_of(obtained.node), source.statement_of(ranked))
    if not any(source.within(call, one) for one in between):
        raise NotFound("match-call", "it does not stand between the embedding and the ranked list", call)
    reach = flow.Reach(obtained.names, flow.containers(known))
    guards = tuple(guard for statement in between for guard in reach.guards(statement))
    payload = _payload(function, obtained, known)
    return Pathway(obtained.node, embedding, wait, payload, call, guards, _select(function, ranked))


def several(nodes: Iterable[SgNode]) -> str:
    """That something was found more than once, and where."""
    return f"found more than once, at lines {', '.join(str(one.range().start.line + 1) for one in nodes)}"


def _match_call(
    function: SgNode, ranked: SgNode, known: list[Definition], matches: Matches, narrowed: Narrowed
) -> SgNode:
    before = source.start_of(ranked)
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
    reason = several(chosen) if chosen else "no call takes the query embedding"
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
    """The awaited definitions behind a call's arguments that speak of an embedding."""
    arguments = call.field("arguments")
    found = [] if arguments is None else flow.origins(arguments, known)
    return [one for one in found if _IS_VECTOR.search(one.node.text()) and not _is_request(one)]


def _is_request(one: Definition) -> bool:
    return bool(_IS_REQUEST.search(one.value.text())) and not _IS_VECTOR.search(one.target.text())


def _obtained(call: SgNode, known: list[Definition], narrowed: Narrowed) -> Definition:
    vectors = _vectors(call, known)
    preferred = {source.key(one) for one in narrowed("query-embedding", [one.node for one in vectors])}
    chosen = [one for one in vectors if source.key(one.node) in preferred]
    if len(chosen) != 1:
        raise NotFound("query-embedding", several([one.node for one in chosen]), call)
    return chosen[0]


def _waited(obtained: Definition, call: SgNode) -> tuple[SgNode, str]:
    """The expression that waits for the service; of several that are awaited together, its own one."""
    value = obtained.value
    if obtained.target.kind() == "array_pattern" and _TOGETHER.match(value.text()):
        wanted = source.used(call)
        parts = [one for one in obtained.target.named_children() if one.kind() != "comment"]
        at = next((at for at, one in enumerate(parts) if source.pattern_names(one) & wanted), None)
        awaited = value.find(kind="array")
        elements = [] if awaited is None else [o for o in awaited.named_children() if o.kind() != "comment"]
        if at is not None and at < len(elements):
            return elements[at], ""
    return value, "await "


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
    if (whole := _read_query(function)) is not None:
        return whole
    reason = "nothing in the function of the embedding reads the field query of it"
    raise NotFound("request-payload", reason, obtained.node)


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
