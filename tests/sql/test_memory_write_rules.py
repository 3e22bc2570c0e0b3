"""The rules of writing a memory hold for plain statements: random rows against the rules as memory_oracle.py says them."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from psycopg import sql

from tests.sql.memory_oracle import Row, broken, refusal, written
from tests.sql.memory_rpc import Memories
from tests.sql.random_memories import CHANGES, ROWS, RUN


class Table:
    """Plain statements of the service role on the table."""

    def __init__(self, memories: Memories) -> None:
        self.memories = memories
        self.org = memories.new_org()
        self.user = memories.new_user()
        self.connection = memories.database.connect("service_role")
        self.connection.execute(
            "insert into long_term_memory.agent_runs (run_id) values (%s) on conflict do nothing", (RUN,)
        )

    def known(self, row: Row) -> Row:
        """With a user who is one."""
        return {column: self.user if value == "user" else value for column, value in row.items()}

    def expected(self, row: Row, before: Row | None = None) -> str | None:
        return refusal(row, before, runs=(RUN,), users=(self.user,))

    def insert(self, row: Row) -> str:
        """The id of the row, or the SQLSTATE that refused it."""
        names = ["org_id", *row]
        query = sql.SQL("insert into long_term_memory.agent_memories ({}) values ({}) returning id").format(
            sql.SQL(", ").join(map(sql.Identifier, names)), sql.SQL(", ").join(sql.Placeholder() * len(names))
        )
        return self._run(query, [self.org, *row.values()])

    def update(self, memory_id: str, row: Row) -> str:
        query = sql.SQL("update long_term_memory.agent_memories set {} where id = {} returning id").format(
            sql.SQL(", ").join(sql.SQL("{} = %s").format(sql.Identifier(column)) for column in row),
            sql.Literal(memory_id),
        )
        return self._run(query, list(row.values()))

    def _run(self, query: sql.Composed, values: list[Any]) -> str:
        try:
            ((answer,),) = self.connection.execute(query, values).fetchall()
        except psycopg.Error as error:
            return error.sqlstate or "?"
        return str(answer)

    def row(self, memory_id: str) -> Row:
        ((row,),) = self.connection.execute(
            "select to_jsonb(m) || jsonb_build_object('embedding', m.embedding::text)"
            " from long_term_memory.agent_memories m where id = %s",
            (memory_id,),
        ).fetchall()
        assert isinstance(row, dict)
        return row


@pytest.fixture(scope="module")
def table(shared_memories: Memories) -> Table:
    return Table(shared_memories)


def assert_stands(stored: Row, expected: Row) -> None:
    assert {column: stored[column] for column in expected} == expected
    assert broken(stored) == []


@settings(max_examples=500, deadline=None)
@given(row=ROWS)
def test_an_insert_is_refused_with_its_own_code_or_stands_as_it_was_written(table: Table, row: Row) -> None:
    row = table.known(row)
    expected = table.expected(row)
    answer = table.insert(row)
    if expected is not None:
        assert answer == expected
    else:
        assert_stands(table.row(answer), written(row))


@settings(max_examples=250, deadline=None)
@given(changes=st.lists(CHANGES.filter(bool), min_size=1, max_size=5), erase=st.integers(0, 5))
def test_updates_keep_the_rules_and_never_bring_a_tombstone_back(
    table: Table, changes: list[Row], erase: int
) -> None:
    memory_id = table.insert({"subject_type": "workspace", "text": "A memory"})
    state = written({"subject_type": "workspace", "text": "A memory"})
    for number, change in enumerate(map(table.known, changes)):
        if number == erase:
            table.connection.execute(
                "delete from long_term_memory.agent_memories where id = %s", (memory_id,)
            )
            redacted_at = state["redacted_at"] or table.row(memory_id)["redacted_at"]
            state = written({"redacted_at": redacted_at}, state)
        expected = table.expected(change, state)
        answer = table.update(memory_id, change)
        if expected is not None:
            assert answer == expected
        else:
            was_erased = state["redacted_at"]
            state = written(change, state)
            assert was_erased is None or state["redacted_at"] == was_erased
        assert_stands(table.row(memory_id), state)


def test_rows_that_pass_and_every_refusal_are_drawn(table: Table) -> None:
    """The properties above would hold too if nothing ever passed."""
    drawn: dict[str | None, int] = {}

    @settings(max_examples=800, deadline=None, database=None, derandomize=True)
    @given(row=ROWS)
    def draw(row: Row) -> None:
        code = table.expected(table.known(row))
        drawn[code] = drawn.get(code, 0) + 1

    draw()
    assert set(drawn) == {
        None, "RL471", "RL472", "RL473", "RL474", "RL475", "22023", "23502", "23503", "23514"
    }  # fmt: skip
    assert drawn[None] > 50
