"""Ranked recall beside the oracle: one call, asked of the function and of the reference, and where they differ."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from psycopg.rows import dict_row

from tests.rig.databases import Connection, Database
from tests.sql.random_ledgers import Call
from tests.sql.rpc import call as call_function

REFERENCE = (Path(__file__).parent / "reference.sql").read_text(encoding="utf-8")
REFERENCE_TUNED = (Path(__file__).parent / "reference_tuned.sql").read_text(encoding="utf-8")
PUBLISHED = (Path(__file__).parent / "published.sql").read_text(encoding="utf-8")

Row = dict[str, Any]


def match(connection: Connection, arguments: dict[str, Any]) -> list[Row]:
    names = ", ".join(
        f"{name} => %({name})s" + ("::vector" if name == "p_query_embedding" else "") for name in arguments
    )
    with connection.cursor(row_factory=dict_row) as cursor:
        return cursor.execute(f"select * from match_decision_ledger({names})", arguments).fetchall()


def oracle(connection: Connection, call: Call) -> list[Row]:
    with connection.cursor(row_factory=dict_row) as cursor:
        reference = REFERENCE_TUNED if call.is_tuned else REFERENCE
        rows = cursor.execute(reference, call.reference).fetchall()
    return [
        {"ranking_score" if name == "score" else name: value for name, value in row.items()} for row in rows
    ]


def recall(connection: Connection, arguments: dict[str, Any]) -> dict[str, Any]:
    """recall_decisions as a client calls it, without a trace unless one is asked for."""
    named = {
        name.removeprefix("p_"): str(value)
        if isinstance(value, float) and not math.isfinite(value)
        else value
        for name, value in arguments.items()
    }
    answer = call_function(connection, "recall_decisions", **({"trace": False} | named))
    assert isinstance(answer, dict)
    return answer


def _agree(found: Any, expected: Any) -> bool:
    if isinstance(expected, float) and isinstance(found, int | float):
        return math.isclose(found, expected, rel_tol=1e-9, abs_tol=1e-9)
    return type(found) is type(expected) and bool(found == expected)


def difference(found: list[Row], expected: list[Row]) -> str | None:
    """The first place where an answer is not the oracle's, in words; null where there is none."""
    for place, (row, wanted) in enumerate(zip(found, expected, strict=False), start=1):
        for name in ("memory_id", *wanted):
            if name not in row:
                return f"row {place} has no {name}"
            if not _agree(row[name], wanted[name]):
                brief = {
                    side: {
                        key: values[key] for key in wanted if key not in ("summary", "content", "rationale")
                    }
                    for side, values in (("found", row), ("expected", wanted))
                }
                return f"row {place}: {name} is {row[name]!r}, expected {wanted[name]!r}\n{brief}"
    if len(found) != len(expected):
        return f"{len(found)} rows, expected {len(expected)}"
    return None


def shown(call: Call) -> str:
    return ", ".join(f"{name}={str(value)[:80]!r}" for name, value in call.arguments.items())


def assert_matches(
    connection: Connection, call: Call, where: str = "", expected: list[Row] | None = None
) -> list[Row]:
    """match_decision_ledger gives the oracle's answer, proven; that is the answer."""
    expected = oracle(connection, call) if expected is None else expected
    found = match(connection, call.arguments)
    wrong = difference(found, expected)
    assert wrong is None, f"{where}\n{shown(call)}\n{wrong}"
    assert all(row["exact"] is True for row in found), f"{where}\n{shown(call)}\nnot proven"
    return found


def assert_recalls(
    connection: Connection, call: Call, where: str = "", expected: list[Row] | None = None
) -> None:
    """recall_decisions gives the oracle's answer too."""
    answer = recall(connection, call.arguments)  # first: it makes good what a writer had to leave
    expected = oracle(connection, call) if expected is None else expected
    wrong = difference(answer["hits"], [row | {"memory_id": str(row["memory_id"])} for row in expected])
    assert wrong is None, f"{where}\nrecall_decisions: {shown(call)}\n{wrong}"
    assert answer["exact"] is True


def assert_copies_are_right(connection: Connection, workspace: str, where: str = "") -> None:
    """What recall searches is what the tables say, or is known to lag: a copy that is wrong may not have shown yet."""
    ((checked,),) = connection.execute("select check_copies(%s, p_limit => 10000)", (workspace,)).fetchall()
    assert checked["wrong"] == [], f"{where}\ncopies of {workspace}"


@dataclass(frozen=True)
class Workspace:
    """A workspace of a test's own: written as a host writes, asked through both functions and the oracle."""

    db: Database
    name: str

    def write(self, content: str, embedding: str | None = None, **columns: Any) -> str:
        """A thought and its decision; the memory's id."""
        row = {"workspace_id": self.name, "memory_type": "decision", "summary": "s", "content": content}
        row |= {"thought_id": self.think(content, embedding)} | columns
        names, values = ", ".join(row), ", ".join(f"%({name})s" for name in row)
        return str(self.db.value(f"insert into agent_memories ({names}) values ({values}) returning id", row))

    def think(self, content: str, embedding: str | None = None) -> str:
        query = "insert into thoughts (content, embedding) values (%s, %s::vector) returning id"
        return str(self.db.value(query, (content, embedding)))

    def ask(self, **arguments: Any) -> list[Row]:
        call = Call({"p_workspace_id": self.name} | arguments)
        expected = oracle(self.db.service, call)
        assert_recalls(self.db.service, call, expected=expected)
        return assert_matches(self.db.service, call, expected=expected)
