"""The way of a recall through its function: the query's embedding, the match call, the ranked list.

The first two may stand in a function of their own, which the one with the list awaits.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NoReturn

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
    - `narrowing`: where rules about rows may stand: from the embedding to the list.
    - `read_later`: statements after the list, with the names of theirs that only the vector policy has.
    - `arguments`: what the list is given: the columns of a memory that the copy asks for, and a workspace or
      a limit of its own, where it goes by one.
    """

    obtained: SgNode
    embedding: SgNode
    is_awaited: bool
    payload: str | None
    call: SgNode
    ranked: SgNode
    guards: tuple[Guard, ...]
    narrowing: tuple[SgNode, ...]
    read_later: tuple[tuple[SgNode, set[str]], ...]
    arguments: str


@dataclass(frozen=True)
class _Search:
    """The embedding and the match call of one function.

    - `known`: its definitions. `obtained`: that of the embedding, which is `embedding` and goes by `names`.
    """

    function: SgNode
    known: list[Definition]
    call: SgNode
    obtained: Definition
    embedding: SgNode
    is_awaited: bool
    names: set[str]


def find(
    lists: list[SgNode], matches: Matches, narrowed: Narrowed, functions: Mapping[str, SgNode]
) -> Pathway:
    """The way to the one ranked list of a function; `functions`: those of the file. Raises `NotFound`."""
    ranked, *more = narrowed("ranked-list", lists)
    if more:
        raise NotFound("ranked-list", several([ranked, *more]), ranked)
    function = source.enclosing(ranked)
    before: list[SgNode] = []
    try:
        search = _search(function, source.end_of(ranked), matches, narrowed)
        first, names = search.obtained, search.names
    except NotFound as problem:
        if problem.reason != NO_CALL:
            raise
        first, search, before = _called(function, ranked, matches, narrowed, functions) or _again(problem)
        names = first.names
    if source.is_conditional(ranked, first.node):
        raise NotFound("ranked-list", "it stands in a condition or a loop", ranked)
    between = source.between(source.statement_of(first.node), source.statement_of(ranked))
    if not any(source.within(search.call, one) for one in (*before, *between, ranked)):
        raise NotFound(
            "match-call", "it does not stand between the embedding and the ranked list", search.call
        )
    inner = flow.Reach(search.names, flow.containers(search.known))
    reach = flow.Reach(names, flow.containers(flow.definitions(function)))
    guards = [guard for statement in before for guard in inner.guards(statement)]
    guards += [guard for statement in between for guard in reach.guards(statement)]
    later, held = source.after(source.statement_of(ranked), function), _target_names(ranked)
    guards += reach.exits(later, but=held)
    for guard in guards:
        other = flow.foreign(guard, reach.names | inner.names)
        if other is not None:
            raise NotFound(
                "match-call",
                "what is stepped over with the matches also waits for, or asks, something else; give that a "
                "statement of its own",
                other,
            )
    payload = _payload(search.function, search.obtained, search.known)
    guarded = {source.key(guard.node) for guard in guards}
    unguarded = [one for one in later if source.key(one) not in guarded]
    lost = reach.names - held
    return Pathway(
        obtained=search.obtained.node,
        embedding=search.embedding,
        is_awaited=search.is_awaited,
        payload=payload,
        read_later=tuple((one, names) for one in unguarded if (names := source.free(one) & lost)),
        call=search.call,
        ranked=ranked,
        guards=tuple(guards),
        narrowing=(*before, *between, ranked),
        arguments=_arguments(search, function, ranked, reach.names | inner.names, payload),
    )


def _again(problem: NotFound) -> NoReturn:
    raise problem


def _search(function: SgNode, before: int, matches: Matches, narrowed: Narrowed) -> _Search:
    known = flow.definitions(function)
    call = _match_call(function, before, known, matches, narrowed)
    obtained = _obtained(call, known, narrowed)
    return _Search(function, known, call, obtained, *_waited(obtained, call))


def _called(
    function: SgNode, ranked: SgNode, matches: Matches, narrowed: Narrowed, functions: Mapping[str, SgNode]
) -> tuple[Definition, _Search, list[SgNode]] | None:
    """A function that is awaited before the list and embeds and matches.

    Gives what becomes of its answer, its search, and its statements after the embedding, up to its answer.
    """
    found = []
    for one in flow.definitions(function):
        inner = functions.get(source.awaited_function(one.value) or "")
        if inner is None or source.end_of(one.node) > source.start_of(ranked) or source.within(ranked, inner):
            continue
        try:
            search = _search(inner, source.end_of(inner), matches, narrowed)
        except NotFound:
            continue
        rest = source.after(source.statement_of(search.obtained.node), inner)
        if any(statement.kind() == "return_statement" for statement in rest):
            found.append((one, search, rest))
    if len(found) > 1:
        raise NotFound("match-call", several([one.node for one, _, _ in found]), found[0][0].node)
    return found[0] if found else None


def several(nodes: Iterable[SgNode]) -> str:
    """That something was found more than once, and where."""
    return f"found more than once, at lines {', '.join(str(one.range().start.line + 1) for one in nodes)}"


def _match_call(
    function: SgNode, before: int, known: list[Definition], matches: Matches, narrowed: Narrowed
) -> SgNode:
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
    inner = [parts[0] for one in function.find_all(kind="await_expression") if (parts := source.parts(one))]
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
        pairs = list(zip(source.parts(obtained.target), source.parts(together["TOGETHER"]), strict=False))
        own = [one for one in pairs if source.pattern_names(one[0]) & wanted] or [
            one for one in pairs if _IS_VECTOR.search(one[0].text())
        ]
        if len(own) == 1:
            part, element = own[0]
            return element, False, source.pattern_names(part)
    if together is not None or value.find(pattern="Promise.allSettled($TOGETHER)") is not None:
        reason = "it is awaited together with something else that it cannot be told from; await it by itself"
        raise NotFound("query-embedding", reason, obtained.node)
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
            return source.bare(one.value) if one.value.kind() in {"identifier", "member_expression"} else None
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
            return source.bare(whole)
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


def _arguments(
    search: _Search, function: SgNode, ranked: SgNode, reached: set[str], payload: str | None
) -> str:
    root = next(one for one in reversed(function.ancestors()) if one.kind() == "program")
    everywhere = source.constants_of(root)
    own_names = {name for one in flow.definitions(function) for name in one.names}
    select = _select(function, source.start_of(ranked), everywhere | own_names) or _select(
        search.function, source.end_of(search.function), everywhere
    )
    own = []
    before = source.start_of(ranked)
    workspace = _own_workspace(function, before)
    if workspace is not None and workspace != f"{payload}.workspace_id":
        own.append(f"workspace: {workspace}")
    scope = _own_scope(function, before)
    if scope is not None and scope != f"{payload}.scope" and _is_made(function, scope):
        own.append(f"scope: {scope}")
    limit = ranked.get_match("LIMIT")
    cut = "" if limit is None else source.bare(limit)
    if limit is not None and not re.search(r"\bmax_items$", cut) and not source.used(limit) & reached:
        own.append(f"limit: {cut}")
    return ", ".join([select or '"*"', f"{{ {', '.join(own)} }}"]) if own else select


def _own_workspace(function: SgNode, before: int) -> str | None:
    """The workspace that the copy loads memories of, as an expression."""
    for one in function.find_all(pattern="$QUERY.eq($COLUMN, $VALUE)"):
        is_workspace = re.fullmatch(r"[\"'`]workspace_id[\"'`]", one["COLUMN"].text())
        is_memories = re.search(r"[\"'`]agent_memories[\"'`]", one["QUERY"].text())
        if is_workspace and is_memories and source.start_of(one) < before:
            return source.bare(one["VALUE"])
    return None


def _own_scope(function: SgNode, before: int) -> str | None:
    """The scope that the copy filters by, as an expression, where it is one."""
    found = set()
    for one in function.find_all(kind="member_expression"):
        name, whole = one.field("property"), one.field("object")
        if name is None or whole is None or name.text() != "include_unconfirmed":
            continue
        if source.start_of(one) < before:
            found.add(source.bare(whole))
    return found.pop() if len(found) == 1 else None


def _is_made(function: SgNode, name: str) -> bool:
    """Whether a name is given another object than a part of the request, taken as it is."""
    values = [one.value for one in flow.definitions(function) if name in one.names]
    return any(
        value.kind() not in {"identifier", "member_expression", "await_expression"} for value in values
    )


def _select(function: SgNode, before: int, names: Collection[str]) -> str:
    """What the copy selects of a memory, so that a ranked row has the same columns."""
    for one in function.find_all(pattern="$DB.from($TABLE).select($COLUMNS)"):
        columns = one["COLUMNS"]
        is_memories = re.fullmatch(r"[\"'`]agent_memories[\"'`]", one["TABLE"].text())
        is_plain = columns.kind() == "string" or (
            columns.kind() == "template_string" and "${" not in columns.text()
        )
        # a name has to be one that the list's function knows too
        is_plain = is_plain or (columns.kind() == "identifier" and columns.text() in names)
        if is_memories and is_plain and source.start_of(one) < before:
            return columns.text()
    return ""
