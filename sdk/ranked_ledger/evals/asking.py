"""Puts questions to arms in one session of the service role, and times the calls alone."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self
from uuid import NAMESPACE_URL, UUID, uuid5

import psycopg
from psycopg import sql

from ranked_ledger.evals.arms import LIMIT, Arm
from ranked_ledger.evals.errors import EvalError
from ranked_ledger.evals.vectors import Vector, as_text
from ranked_ledger.stack.connecting import connect

BUDGETS: Final = list(range(100, 4001, 100))

_EVAL_ANSWER: Final = """
select ranked_ledger_evals.answer(
  %(arm)s, %(workspace)s, %(query)s, %(embedding)s, %(step)s, %(limit)s, %(model)s, %(gold)s::uuid[],
  %(request)s)::text
"""
_EXAMINE: Final = (
    "select ranked_ledger_evals.examine(%s::uuid[], %s::int[], %s::int[], %s::uuid[], %s::int[])"
)
_SUMMARIES: Final = "select ranked_ledger_evals.summary_tokens(%s::uuid[])"
# what a line of a hit is made of, and can change while a stream is replayed
_LINE_OF: Final = ("memory_id", "lifecycle_status", "rests_on_retired")
_IN_FORCE: Final = """
select count(*) from ranked_ledger_evals.cohort(%s) c where c.lifecycle_status = 'active'
"""


@dataclass(frozen=True)
class Asked:
    """A question as it is put: the words, the vector where there is one, the step, and the answers by id."""

    workspace: str
    question: str
    text: str
    vector: Vector | None
    model: str | None
    step: int
    gold: tuple[UUID, ...]

    def request_id(self, arm: Arm) -> UUID:
        """The same in every run, so that a trace is found by question and arm."""
        return uuid5(NAMESPACE_URL, f"{self.workspace}/{self.question}/{arm.name}")


@dataclass(frozen=True)
class Answer:
    """What an arm answered, how long it took, and where its rows really lie.

    - `workspaces`: of each hit, from its row. `budgets`: what is left of the answer at each budget of tokens.
    """

    request_id: UUID
    milliseconds: float
    hits: Sequence[Mapping[str, Any]]
    traced: bool
    workspaces: Mapping[str, str]
    budgets: Mapping[str, Any]


class Session:
    """One connection, as a client of the service role has it; used in a `with`."""

    def __init__(self, superuser_url: str) -> None:
        self._connection = connect(superuser_url, autocommit=True)
        self._connection.execute("set role service_role")
        self._connection.execute("set search_path = public, extensions")
        self._warm: set[tuple[str, str]] = set()
        self._summaries: dict[tuple[object, ...], int] = {}

    def ask(self, arm: Arm, asked: Asked) -> Answer:
        """Ask, timed from the call to its whole answer; never an arm's first call in a workspace."""
        statement, parameters = _call(arm, asked)
        if (arm.name, asked.workspace) not in self._warm:
            self._warm.add((arm.name, asked.workspace))
            with self._connection.transaction(force_rollback=True):
                self._connection.execute(statement, parameters, prepare=True).fetchone()
        begun = time.perf_counter()
        row = self._connection.execute(statement, parameters, prepare=True).fetchone()
        milliseconds = (time.perf_counter() - begun) * 1000
        answer = json.loads(_only(row))
        looked = self._examined(answer["hits"], asked)
        return Answer(
            UUID(answer["request_id"]),
            milliseconds,
            answer["hits"],
            answer["traced"],
            looked["workspaces"],
            looked["budgets"],
        )

    def _examined(self, hits: Sequence[Mapping[str, Any]], asked: Asked) -> Any:
        lines = [tuple(hit[name] for name in _LINE_OF) for hit in hits]
        new = [line[0] for line in lines if line not in self._summaries]
        if new:
            found = _only(self._connection.execute(_SUMMARIES, (new,)).fetchone())
            self._summaries |= {line: found[line[0]] for line in lines if line[0] in found}
        given = (
            [hit["memory_id"] for hit in hits],
            [hit["tokens"] for hit in hits],
            [self._summaries[line] for line in lines],
            list(asked.gold),
            BUDGETS,
        )
        return _only(self._connection.execute(_EXAMINE, given, prepare=True).fetchone())

    def fit_range(self, workspace: str, model: str) -> list[float]:
        """Have the ledger measure which cosines count as 0 and as 1; gives the two. EvalError: it cannot."""
        query = "select fit_similarity_range(%s, %s)"
        try:
            fitted = _only(self._connection.execute(query, (workspace, model)).fetchone())["fitted"]
        except psycopg.errors.InvalidParameterValue as refused:
            raise EvalError(refused.diag.message_primary or "no range can be fitted") from None
        return [fitted["floor"], fitted["ceiling"]]

    def matches(self, asked: Asked) -> tuple[int, int]:
        """How many of the workspace have any word of the question, and how many of those are not retired."""
        query = "select array[m.matches, m.in_force] from ranked_ledger_evals.matches(%s, %s) m"
        matches, in_force = _only(self._connection.execute(query, (asked.workspace, asked.text)).fetchone())
        return matches, in_force

    def in_force(self, workspace: str) -> int:
        """How many decisions of the workspace are active: what no arm leaves out."""
        return int(_only(self._connection.execute(_IN_FORCE, (workspace,)).fetchone()))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()


def _call(arm: Arm, asked: Asked) -> tuple[sql.Composed | bytes, dict[str, Any]]:
    embedding = None if asked.vector is None or arm.vectors == "never" else as_text(asked.vector)
    if arm.kind == "sql":
        return _EVAL_ANSWER.encode(), {
            "arm": arm.name,
            "workspace": asked.workspace,
            "query": asked.text,
            "embedding": embedding,
            "step": asked.step,
            "limit": LIMIT,
            "model": None if embedding is None else asked.model,
            "gold": list(asked.gold) if arm.name == "oracle" else [],
            "request": asked.request_id(arm),
        }
    given = {
        "p_workspace_id": asked.workspace,
        "p_query": asked.text,
        "p_query_embedding": embedding,
        "p_embedding_model": None if embedding is None else asked.model,
        "p_current_step": asked.step,
        "p_match_count": LIMIT,
        "p_request_id": asked.request_id(arm),
        "p_policy": arm.name,
        "p_runtime_name": "ranked-ledger eval",
        **arm.arguments,
    }
    arguments = sql.SQL(", ").join(
        sql.SQL("{} => {}").format(sql.Identifier(name), sql.Placeholder(name)) for name in given
    )
    return sql.SQL("select recall_decisions({})::text").format(arguments), given


def _only(row: tuple[Any, ...] | None) -> Any:
    if row is None:
        raise psycopg.DataError("a function answered no row")
    return row[0]
