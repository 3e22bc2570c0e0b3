"""Where the patch goes: each place is found exactly once, or it is said why not."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from ast_grep_py import SgNode

from ranked_ledger.patching import pathway, source
from ranked_ledger.patching.marks import Insertion, Side
from ranked_ledger.patching.problems import Refusal
from ranked_ledger.patching.rules import NAME, Rule, rules
from ranked_ledger.patching.source import Source


@dataclass(frozen=True)
class Place:
    """A place that was found: its rule, its line (from 1) and the text there."""

    rule: Rule
    line: int
    text: str


@dataclass
class Found:
    """All that was found in a file: `refusals` are about required places, `missing` about optional ones."""

    places: list[Place] = field(default_factory=list)
    insertions: list[Insertion] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    missing: list[Refusal] = field(default_factory=list)


def find(text: str, suffix: str, without: Iterable[str] = ()) -> Found:
    """The places of the patch in a file with the route; `without`: optional ones to leave out."""
    return _Finder(Source(text, suffix), frozenset(without)).run()


def has_route(text: str, suffix: str) -> bool:
    """Whether a file registers POST /recall."""
    return "/recall" in text and bool(Source(text, suffix).find_all(rules()["route"].ast_grep))


class _Finder:
    def __init__(self, file: Source, without: frozenset[str]) -> None:
        self.file = file
        self.rules = rules()
        self.without = without
        self.found = Found()
        self.names: dict[str, str] = {}

    def run(self) -> Found:
        if re.search(rf"\b{NAME}\b", self.file.text):
            self._refuse("import", f"the name {NAME} is taken in this file")
            return self.found
        self._one("import", self.file.root)
        route = self._one("route", self.file.root)
        handler = None if route is None else self._handler(route)
        if route is None or handler is None:
            if route is not None:
                self._refuse("route", "its handler is no function of this file", route)
            return self.found
        reach = self.file.reachable([handler])
        self._fields(route, reach)
        self._recall(reach)
        self._one("trace-policy", *reach)
        self._one("item-snapshot", *reach)
        self._one("usage", self.file.root)
        self._one("review", self.file.root)
        self._write_back()
        return self.found

    def _handler(self, call: SgNode) -> SgNode | None:
        """The function that answers a route: written there, wrapped there, or declared under a name."""
        arguments = call.field("arguments")
        parts = [] if arguments is None else arguments.named_children()
        last = next((one for one in reversed(parts) if one.kind() != "comment"), None)
        if last is None:
            return None
        function = source.last_function(last)
        if function is not None:
            return function
        declared = [name for name in sorted(source.used(last)) if name in self.file.functions]
        return self.file.functions[declared[-1]] if declared else None

    def _fields(self, route: SgNode, reach: list[SgNode]) -> None:
        """The request's fields; among several schemas the one that the route's code names."""
        named = set().union(*(source.used(one) for one in (*reach, route)))
        for name in sorted(named):
            named |= self.file.constants.get(name, set())

        def is_named(node: SgNode) -> bool:
            declared = next((one for one in node.ancestors() if one.kind() == "variable_declarator"), None)
            name = None if declared is None else declared.field("name")
            return name is not None and name.text() in named

        match = self._pick("request-fields", self._matches("request-fields", self.file.root), is_named)
        if match is not None:
            self.names["Z"] = _zod(match["FIELDS"])
            self._insert("request-fields", match)

    def _recall(self, reach: list[SgNode]) -> None:
        """The embedding, the match call and the list, which stand in one function, and what is between."""
        functions = {source.key(one) for one in reach}

        def inside(node: SgNode) -> source.Key | None:
            function = source.function_of(node)
            return None if function is None else source.key(function)

        lists = [one for one in self._matches("ranked-list", *reach) if inside(one) in functions]
        ranked = self._pick("ranked-list", lists, lambda node: inside(node) == source.key(reach[0]))
        if ranked is None:
            return
        try:
            path = pathway.find(ranked, self._matches, self._narrowed)
        except pathway.NotFound as problem:
            self._refuse(problem.place, problem.reason, problem.near)
            return
        self.names |= {"PAYLOAD": path.payload or "undefined", "AWAIT": path.wait, "SELECT": path.select}
        if path.payload is None:
            taken_apart = self._pick("request-payload", self._matches("request-payload", *reach), None)
            if taken_apart is not None:
                self._insert("request-payload", taken_apart)
        self._insert("query-embedding", path.obtained, values={"VALUE": path.embedding})
        before = {one["guard"]: one["text"] for one in self.rules["match-call"].insert}
        for guard in path.guards:
            text = before["value" if guard.is_value else "statement"]
            self._add("match-call", source.start_of(guard.node), text, "before")
        self._note("match-call", path.call)
        self._insert("ranked-list", ranked)

    def _write_back(self) -> None:
        """Both places or none: each of the two does nothing without the other."""
        if self.rules["write-back"].option in self.without:
            return
        route = self._pick("write-back", self._matches("write-back", self.file.root), None)
        if route is None:
            return
        handler = self._handler(route)
        if handler is None:
            self._refuse("write-back", "its handler is no function of this file", route)
            return
        matches = self._matches("write-back-rows", *self.file.reachable([handler]))
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
        for pattern in self.rules[place].prefer:
            if len(matches) > 1:
                matches = [one for one in matches if re.search(pattern, one.text())] or matches
        return matches

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
            elif side == "before":
                self._add(place, source.start_of(node), text, "before")
            else:
                self._add(place, source.end_of(node), text, "after" if side == "after" else "line_after")
        self._note(place, match)

    def _add(self, place: str, at: int, text: str, side: Side) -> None:
        self.found.insertions.append(Insertion(place, at, text.strip(), side))

    def _note(self, place: str, node: SgNode) -> None:
        line = node.range().start.line + 1
        self.found.places.append(Place(self.rules[place], line, _first_line(node.text())))

    def _refuse(self, place: str, reason: str, near: SgNode | None = None) -> None:
        rule = self.rules[place]
        line, text = _nearest(self.file, rule, near)
        refusal = Refusal(rule.id, rule.title, reason, rule.looks_for, rule.by_hand, line, text)
        (self.found.refusals if rule.required else self.found.missing).append(refusal)


def _zod(fields: SgNode) -> str:
    """The name of zod in the file: what the fields' types are made from."""
    for pair in fields.named_children():
        value = pair.field("value") if pair.kind() == "pair" else None
        if value is not None and ".string(" in value.text():
            return source.root_name(value) or "z"
    return "z"


def _nearest(file: Source, rule: Rule, near: SgNode | None) -> tuple[int | None, str | None]:
    if near is not None:
        return near.range().start.line + 1, _first_line(near.text())
    for number, line in enumerate(file.text.splitlines(), 1):
        if re.search(rule.near, line):
            return number, line.strip()[:120]
    return None, None


def _first_line(text: str) -> str:
    return next(iter(text.strip().splitlines()), "")[:120]
