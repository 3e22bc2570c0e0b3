"""Where the patch goes: each place is found exactly once, or it is said why not."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ast_grep_py import SgNode

from ranked_ledger.patching import pathway, row_rules, source
from ranked_ledger.patching.marks import Insertion, Side
from ranked_ledger.patching.problems import Refusal
from ranked_ledger.patching.row_rules import RowRule
from ranked_ledger.patching.rules import NAME, Rule, rules
from ranked_ledger.patching.source import LONG_LINE, Source

# Places that are looked for in the route's handler and what it calls, and never in another route's.
_OF_THE_RECALL: Final = frozenset(
    "query-embedding request-payload match-call ranked-list trace-policy item-snapshot".split()
)


@dataclass(frozen=True)
class Place:
    """A place that was found: its rule, its line (from 1) and the text there."""

    rule: Rule
    line: int
    text: str


@dataclass
class Found:
    """All that was found in a file: `refusals` are about required places, `missing` about optional ones.

    - `row_rules`: the copy's own rules about rows, which the ranked policy does not apply.
    - `stepped_over`: the lines that run for the vector policy alone. `read_later`: lines after the list that
      read names which only that policy has.
    """

    places: list[Place] = field(default_factory=list)
    insertions: list[Insertion] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    missing: list[Refusal] = field(default_factory=list)
    row_rules: list[RowRule] = field(default_factory=list)
    stepped_over: list[int] = field(default_factory=list)
    read_later: list[tuple[int, tuple[str, ...]]] = field(default_factory=list)


def find(text: str, suffix: str, without: Iterable[str] = ()) -> Found:
    """The places of the patch in a file with the route; `without`: optional ones to leave out."""
    return _Finder(Source(text, suffix), frozenset(without)).run()


def has_route(text: str, suffix: str) -> bool:
    """Whether a file registers POST /recall."""
    return "/recall" in text and bool(Source(text, suffix).find_all(rules()["route"].ast_grep))


def missing_route(text: str, suffix: str) -> Refusal | None:
    """Why a file is not seen to register POST /recall, where it speaks of it."""
    file, rule = Source(text, suffix), rules()["route"]
    line, near = nearest(file, rule)
    if line is None:
        return None
    reason = "not found" if file.broken_line is None else f"not found; line {file.broken_line} does not parse"
    return Refusal(rule.id, rule.title, reason, rule.looks_for, rule.by_hand, line, near)


class _Finder:
    def __init__(self, file: Source, without: frozenset[str]) -> None:
        self.file = file
        self.rules = rules()
        self.without = without
        self.found = Found()
        self.names: dict[str, str] = {}
        self.reach: list[SgNode] = []

    def run(self) -> Found:
        taken = next((one for one in source.walk(self.file.root) if one.text() == NAME), None)
        if taken is not None:
            reason = (
                f"the name {NAME} is taken in this file; where it stands in lines that were added by hand,"
            )
            self._refuse("import", f"{reason} the patch is there, and only they can be mended by hand", taken)
            return self.found
        self._one("import", self.file.root)
        route = self._one("route", self.file.root)
        handlers = [] if route is None else self._handlers(route)
        if route is None or not handlers:
            if route is not None:
                self._refuse("route", "its handler is no function of this file", route)
            return self.found
        self.reach = self.file.reachable(handlers)
        self._fields(route)
        self._recall()
        self._one("trace-policy", *self.reach)
        self._one("item-snapshot", *self.reach)
        self._one("usage", self.file.root)
        self._review()
        self._write_back()
        return self.found

    def _handlers(self, call: SgNode) -> list[SgNode]:
        """The function that answers a route: written or wrapped there; or those that are named there."""
        last = next(reversed(source.arguments_of(call)), None)
        if last is None:
            return []
        function = source.last_function(last)
        if function is not None:
            return [function]
        return [
            self.file.functions[name] for name in sorted(source.used(last)) if name in self.file.functions
        ]

    def _fields(self, route: SgNode) -> None:
        """The request's fields; among several schemas the one that the route's code names."""
        named = set().union(*(source.used(one) for one in (*self.reach, route)))
        for name in sorted(named):
            named |= self.file.constants.get(name, set())

        def is_named(node: SgNode) -> bool:
            declared = next((one for one in node.ancestors() if one.kind() == "variable_declarator"), None)
            name = None if declared is None else declared.field("name")
            return name is not None and name.text() in named

        match = self._pick("request-fields", self._matches("request-fields", self.file.root), is_named)
        if match is not None:
            own = match["FIELDS"].find(kind="property_identifier", regex="^(recall_policy|ranking)$")
            if own is not None:
                self._refuse("request-fields", f"it has a field {own.text()} of its own", own)
            self.names["Z"] = _zod(match["FIELDS"])
            self._insert("request-fields", match)

    def _recall(self) -> None:
        """The embedding, the match call and the list, which stand in one function, and what is between."""
        functions = {source.key(one) for one in self.reach}

        def inside(node: SgNode) -> source.Key | None:
            function = source.function_of(node)
            return None if function is None else source.key(function)

        lists = [one for one in self._matches("ranked-list", *self.reach) if inside(one) in functions]
        lists = [one for one in lists if self._is_preferred("ranked-list", one)] or lists
        problems = []
        for function in self.reach:
            own = [one for one in lists if inside(one) == source.key(function)]
            if not own:
                continue
            try:
                return self._way(pathway.find(own, self._matches, self._narrowed, self.file.functions))
            except pathway.NotFound as problem:
                problems.append(problem)
        telling = [one for one in problems if one.reason != pathway.NO_CALL] or problems
        first = telling[0] if telling else pathway.NotFound("ranked-list", "not found", None)
        return self._refuse(first.place, first.reason, first.near)

    def _way(self, path: pathway.Pathway) -> None:
        self.names |= {"PAYLOAD": path.payload or "undefined", "SELECT": path.arguments}
        self.names |= (
            {"AWAIT": "await ", "ASYNC": "async "} if path.is_awaited else {"AWAIT": "", "ASYNC": ""}
        )
        if path.payload is None:
            request = self._pick("request-payload", self._matches("request-payload", *self.reach), None)
            if request is not None:
                self._insert("request-payload", request)
        self._insert("query-embedding", path.obtained, values={"VALUE": path.embedding})
        before = {one["guard"]: one["text"] for one in self.rules["match-call"].insert}
        for guard in path.guards:
            at = source.start_of(guard.node)
            if guard.is_value:
                self._add("match-call", at, before["value"], "prefix")
            else:
                self._add("match-call", at, before["statement"], "before")
        self._note("match-call", path.call)
        self._insert("ranked-list", path.ranked)
        self.found.row_rules = row_rules.find(self.file, path.narrowing)
        self.found.stepped_over = sorted({one.node.range().start.line + 1 for one in path.guards})
        self.found.read_later = [
            (one.range().start.line + 1, tuple(sorted(names))) for one, names in path.read_later
        ]

    def _review(self) -> None:
        """Both places or none: a failure that came before the change of the memory is the copy's own no."""
        if self.rules["review"].option in self.without:
            return
        route = self._pick("review", self._matches("review", self.file.root), None)
        if route is None:
            return
        changes = self._matches("review-changes", *self.file.reachable(self._handlers(route)))
        if not changes:
            self._refuse("review-changes", "not found", route)
            return
        self._insert("review", route)
        for one in changes:
            self._insert("review-changes", one)

    def _write_back(self) -> None:
        """Both places or none: each of the two does nothing without the other."""
        if self.rules["write-back"].option in self.without:
            return
        route = self._pick("write-back", self._matches("write-back", self.file.root), None)
        if route is None:
            return
        handlers = self._handlers(route)
        if not handlers:
            self._refuse("write-back", "its handler is no function of this file", route)
            return
        matches = self._matches("write-back-rows", *self.file.reachable(handlers))
        rows = self._pick("write-back-rows", matches, None)
        if rows is not None:
            self._insert("write-back", route)
            self._insert("write-back-rows", rows)

    def _matches(self, place: str, *scopes: SgNode) -> list[SgNode]:
        found: dict[source.Key, SgNode] = {}
        for scope in scopes:
            found |= {source.key(one): one for one in scope.find_all(self.rules[place].ast_grep)}
        return sorted(found.values(), key=source.start_of)

    def _one(self, place: str, *scopes: SgNode) -> SgNode | None:
        if self.rules[place].option in self.without:
            return None
        matches = self._matches(place, *scopes)
        match = self._pick(place, matches[-1:] if place == "import" else matches, None)
        if match is not None:
            self._insert(place, match)
        return match

    def _pick(
        self, place: str, matches: list[SgNode], belongs: Callable[[SgNode], bool] | None
    ) -> SgNode | None:
        """The one match, or None and a refusal."""
        if belongs is not None and len(matches) > 1:
            matches = [one for one in matches if belongs(one)] or matches
        matches = self._narrowed(place, matches)
        if len(matches) == 1:
            return matches[0]
        self._refuse(place, pathway.several(matches) if matches else "not found", next(iter(matches), None))
        return None

    def _narrowed(self, place: str, matches: list[SgNode]) -> list[SgNode]:
        """Among several, those that the rule prefers."""
        for wanted in self.rules[place].prefer:
            if len(matches) > 1:
                matches = [one for one in matches if _is_as(one, wanted)] or matches
        return matches

    def _is_preferred(self, place: str, match: SgNode) -> bool:
        return any(_is_as(match, wanted) for wanted in self.rules[place].prefer)

    def _insert(self, place: str, match: SgNode, values: Mapping[str, SgNode] | None = None) -> None:
        names = dict(self.names)
        if (memory_id := match.get_match("MEMORY_ID")) is not None:
            names["MEMORY_ID"] = memory_id.text()
        for one in self.rules[place].insert:
            text = re.sub(r"\$\{(\w+)\}", lambda found: names.get(found[1], "z"), one["text"])
            side, name = next((side, name) for side, name in one.items() if side != "text")
            node = (values or {}).get(name) or match.get_match(name)
            if node is None:
                continue
            if side == "inside":
                first = next(child for child in node.children() if child.text() != "{")
                self._add(place, source.start_of(first), text, "before")
            elif side in {"before", "prefix"}:
                self._add(place, source.start_of(node), text, "before" if side == "before" else "prefix")
            else:
                self._add(place, source.end_of(node), text, "after" if side == "after" else "line_after")
        self._note(place, match.get_match("PATH") or match)

    def _add(self, place: str, at: int, text: str, side: Side) -> None:
        self.found.insertions.append(Insertion(place, at, text.strip(), side))

    def _note(self, place: str, node: SgNode) -> None:
        self.found.places.append(Place(self.rules[place], *self.file.line_at(node)))

    def _refuse(self, place: str, reason: str, near: SgNode | None = None) -> None:
        rule = self.rules[place]
        line, text = self.file.line_at(near) if near is not None else nearest(self.file, rule, self.reach)
        refusal = Refusal(rule.id, rule.title, reason, rule.looks_for, rule.by_hand, line, text)
        (self.found.refusals if rule.required else self.found.missing).append(refusal)


def _zod(fields: SgNode) -> str:
    """The name of zod in the file: what the fields' types are made from."""
    for pair in fields.named_children():
        value = pair.field("value") if pair.kind() == "pair" else None
        if value is not None and value.find(kind="property_identifier", regex="^string$") is not None:
            return source.root_name(value) or "z"
    return "z"


def _is_as(node: SgNode, wanted: str | dict[str, Any]) -> bool:
    return bool(re.search(wanted, node.text())) if isinstance(wanted, str) else node.matches(**wanted)


def nearest(file: Source, rule: Rule, scopes: Iterable[SgNode] = ()) -> tuple[int | None, str | None]:
    """The line that comes nearest to a place that is not there: in the scopes, else in the file."""
    others = file.other_routes if rule.id in _OF_THE_RECALL else ()
    for scope in (*scopes, file.root):
        first = scope.range().start.line
        for number, line in enumerate(scope.text().split("\n"), first + 1):
            if any(number in lines for lines in others):
                continue
            if found := re.search(rule.near, line):
                return number, line.strip() if len(line) <= LONG_LINE else line[found.start() :][:LONG_LINE]
    return None, None
