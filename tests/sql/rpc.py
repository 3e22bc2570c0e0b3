"""Calls of the SQL API as PostgREST makes them: a JSON body, cast to the function's own argument types."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql

from tests.rig.databases import Connection, Database

# Texts that break what is built by hand: quotes, escapes, formats, other scripts and directions.
HOSTILE = (
    "it's \"quoted\" \\ back\\slash $$ dollar $$ E'\\n'",
    "'; drop table public.agent_memories; --",
    "%s %I %L {0} ${name}",
    "🧾🙅🏽‍♀️ emoji, שלום right to left \u202e, 決定, n\u0303",
    "tab\tline\r\nline \u2028 \u0007",
    '{"json": [1, null]}',
)

NOBODY = "ffffffff-ffff-4fff-bfff-ffffffffffff"

_TYPES: dict[str, dict[str, str]] = {}


def _types(connection: Connection, function: str) -> dict[str, str]:
    if function not in _TYPES:
        rows = connection.execute(
            """
            select a.name, format_type(a.type, null)
            from pg_proc p, unnest(p.proargnames, p.proargtypes::oid[]) as a (name, type)
            where p.proname = %s and p.pronamespace = 'public'::regnamespace and a.type is not null""",
            (function,),
        ).fetchall()
        _TYPES[function] = dict(rows)
    return _TYPES[function]


def call(connection: Connection, function: str, **arguments: Any) -> Any:
    """One RPC, its arguments named without `p_`."""
    types = _types(connection, function)
    names = [f"p_{name}" for name in arguments]
    body = json.dumps({f"p_{name}": value for name, value in arguments.items()}, default=str)
    if not names:
        query = sql.SQL("select public.{}()").format(sql.Identifier(function))
        ((answer,),) = connection.execute(query).fetchall()
        return answer
    query = sql.SQL("select public.{}({}) from json_to_record(%s::json) as r ({})").format(
        sql.Identifier(function),
        sql.SQL(", ").join(sql.SQL("{0} => r.{0}").format(sql.Identifier(name)) for name in names),
        sql.SQL(", ").join(sql.SQL("{} {}").format(sql.Identifier(n), sql.SQL(types[n])) for n in names),
    )
    ((answer,),) = connection.execute(query, (body,)).fetchall()
    return answer


class Ledger:
    """The verbs in one workspace, through the service role's connection unless another one is given."""

    def __init__(
        self, database: Database, workspace: str = "acme", connection: Connection | None = None
    ) -> None:
        self.database = database
        self.workspace = workspace
        self.connection = connection or database.service

    def __call__(self, function: str, **arguments: Any) -> Any:
        return call(self.connection, function, **{"workspace_id": self.workspace} | arguments)

    def record(self, content: str = "A decision", **arguments: Any) -> dict[str, Any]:
        answer = self("record_decision", content=content, **arguments)
        assert isinstance(answer, dict)
        return answer

    def id(self, content: str = "A decision", **arguments: Any) -> str:
        return str(self.record(content, **arguments)["memory_id"])

    def get(self, memory_id: str) -> dict[str, Any]:
        answer = self("get_decision", memory_id=memory_id)
        assert isinstance(answer, dict)
        return answer

    def refused(self, sqlstate: str, function: str, **arguments: Any) -> psycopg.errors.Diagnostic:
        """The call is refused with this code, and says something; what it says is the answer."""
        with pytest.raises(psycopg.Error) as raised:
            self(function, **arguments)
        assert raised.value.sqlstate == sqlstate, raised.value
        diagnostic = raised.value.diag
        assert diagnostic.message_primary
        return diagnostic

    def trace(self, *memory_ids: str, policy: str | None = None, similarity: float | None = None) -> str:
        """A recall's trace as a client of the host writes it, with these items. Answers the request id."""
        request_id = str(uuid4())
        self.database.service.execute(
            """
            with t as (
              insert into agent_memory_recall_traces (request_id, workspace_id, query, schema_version, response_policy)
              values (%s, %s, 'what holds?', '1', coalesce(jsonb_build_object('recall_policy', %s::text), '{}')) returning id)
            insert into agent_memory_recall_items (trace_id, memory_id, rank, similarity, ranking_score)
            select t.id, i.id, i.position, %s, 0.5 from t, unnest(%s::uuid[]) with ordinality as i (id, position)""",
            (request_id, self.workspace, policy, similarity, list(memory_ids)),
        )
        return request_id


def at_once(database: Database, work: Sequence[Callable[[Connection], Any]]) -> list[Any]:
    """Each piece of work in a thread and a connection of its own, started together. Errors are answers."""
    barrier = threading.Barrier(len(work))
    answers: list[Any] = [None] * len(work)
    connections = [database.connect("service_role") for _ in work]

    def run(number: int) -> None:
        barrier.wait()
        try:
            answers[number] = work[number](connections[number])
        except psycopg.Error as error:
            answers[number] = error

    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(work))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for connection in connections:
        connection.close()
    return answers


def count(database: Database, table: str) -> int:
    query = sql.SQL("select count(*) from {}").format(sql.SQL(table))
    ((number,),) = database.owner.execute(query).fetchall()
    return int(number)


@cache
def vector(dimension: int = 1536, axis: int = 0) -> str:
    """A unit vector as text."""
    return "[" + ",".join("1" if i == axis else "0" for i in range(dimension)) + "]"


def failed_checks(status: Mapping[str, Any]) -> list[str]:
    return [check["name"] for check in status["checks"] if not check["ok"]]
