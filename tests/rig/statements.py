"""The statements of a function's body, and whether each says which organization it is about.

A body is read as text, not parsed: what is asked is whether a predicate was forgotten, and a reader can follow the answer. Text
in quotes stays in its statement, since it may be SQL that is put together there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_TOKEN = re.compile(
    r"(?P<comment>--[^\n]*|/\*.*?\*/)"
    r"|(?P<quoted>'(?:[^']|'')*'|\"[^\"]*\"|(?P<tag>\$[a-z_]*\$).*?(?P=tag))"
    r"|(?P<end>;)|(?P<other>.)",
    re.DOTALL | re.IGNORECASE,
)
# A table is read or written behind one of these words; elsewhere its name is that of a type.
_BEHIND = r"(?P<word>\b(?:from|join|into|update|using|only|table)\s+|,\s*)"
_ALIAS = r"(?:\s+(?:as\s+)?(?!(?:where|set|order|on|using|join|cross|left|values|for|limit)\b)(?P<alias>[a-z_]\w*))?"


def table(schema: str, name: str) -> re.Pattern[str]:
    """Where a table is read or written; `name` is a regular expression."""
    return re.compile(
        rf'{_BEHIND}(?:only\s+)?"?{schema}"?\."?(?:{name})"?(?![\w"\[;])\*?{_ALIAS}', re.IGNORECASE
    )


MEMORIES = table("long_term_memory", "agent_memories")
ATTRIBUTIONS = table("long_term_memory", "decision_subjects|trace_subjects")
LEDGER = table("public", r"agent_\w+|thoughts")
# which table it is, is filled in
NAMED_LATER = re.compile(
    rf"(?P<word>\b(?:from|join|into|update|using)\s+)(?:only\s+)?%(?:\d+\$)?[sI]{_ALIAS}", re.IGNORECASE
)

_MAPPED = table("long_term_memory", "workspace_orgs")
_GIVEN = re.compile(r"workspace_id::text\s*=\s*any\s*\(\s*p_workspaces\s*\)", re.IGNORECASE)
_ORG = re.compile(r"\borg_id\s*=|=\s*(?:\w+\.)?(?:p_)?org_id\b", re.IGNORECASE)


def statements(body: str) -> Iterator[str]:
    """The statements, without comments and in one line each."""
    statement = ""
    for token in _TOKEN.finditer(body):
        if token["end"]:
            yield " ".join(statement.split())
            statement = ""
        else:
            statement += " " if token["comment"] else token[0]
    yield " ".join(statement.split())


def without_an_organization(body: str, found: re.Pattern[str]) -> list[str]:
    """The statements in which rows of this table are read or written, whatever organization they are of."""
    return [statement for statement in statements(body) if not _are_bound(statement, found)]


def beyond_its_workspaces(body: str) -> list[str]:
    """The statements that read the ledger, and not through the workspaces of an organization."""
    return [
        statement
        for statement in statements(body)
        if LEDGER.search(statement)
        and not _GIVEN.search(statement)
        and not (_MAPPED.search(statement) and _ORG.search(statement))
    ]


def _are_bound(statement: str, found: re.Pattern[str]) -> bool:
    """Whether each use of the table has a predicate of its own, or a column for the organization if it inserts."""
    read: dict[str | None, list[int]] = {}
    for use in found.finditer(statement):
        if use["word"].strip().lower() == "into":
            if not re.match(r"\s*\([^)]*\borg_id\b", statement[use.end() :], re.IGNORECASE):
                return False
        else:
            read.setdefault(use["alias"], []).append(use.end())
    for alias, places in read.items():
        outside = {_outer_alias(statement, place) for place in places} - {None}
        if len(places) > sum(_compared(statement, name) for name in {alias} | outside):
            return False
    return True


def _compared(statement: str, name: str | None) -> int:
    """How often the organization of what goes by this name is compared with another one than its own."""
    column = r"\borg_id" if name is None else rf"\b{re.escape(name)}\.org_id"
    compared = re.compile(rf"(\bset\s+)?(?<![\w.]){column}\s*=\s*((?:\(\w+\)\.)?[\w.$%]+)", re.IGNORECASE)
    row = re.compile(rf"\(\s*{column}\s*,[\w\s.,]*\)\s*=\s*\(", re.IGNORECASE)
    itself = "org_id" if name is None else f"{name}.org_id".lower()
    return len(row.findall(statement)) + sum(
        not is_set and other.lower() != itself for is_set, other in compared.findall(statement)
    )


def _outer_alias(statement: str, place: int) -> str | None:
    """What the subquery around this place is called outside."""
    depth = 0
    for end in range(place, len(statement)):
        depth += {"(": 1, ")": -1}.get(statement[end], 0)
        if depth < 0:
            called = re.match(r"\)\s+as\s+(\w+)", statement[end:], re.IGNORECASE)
            return called[1] if called else None
    return None
