"""The contenders as SQL: each file of tests/bench/sql and the reference and published query of tests/sql."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

from psycopg.rows import dict_row

from tests.bench.decisions import ASKED
from tests.bench.texts import ROOT
from tests.bench.timing import Arm
from tests.rig.databases import Connection, Database
from tests.sql.random_ledgers import Call

OURS = "ours"
TUNED = "ours, tuned"
UNPROVEN = "ours, not proven"
REFERENCE = "reference"
PUBLISHED = "published"
HALFVEC_SCAN = "bare halfvec scan"
HNSW_PROBE = "bare HNSW probe"
LEDGER_PASS = "bare ledger pass"

_OWN_SQL = Path(__file__).parent / "sql"
_TESTS_SQL = ROOT / "tests" / "sql"
_FILES = {
    OURS: _OWN_SQL / "ours.sql",
    TUNED: _OWN_SQL / "tuned.sql",
    UNPROVEN: _OWN_SQL / "ours_unproven.sql",
    REFERENCE: _TESTS_SQL / "reference.sql",
    PUBLISHED: _TESTS_SQL / "published.sql",
    HALFVEC_SCAN: _OWN_SQL / "halfvec_scan.sql",
    HNSW_PROBE: _OWN_SQL / "hnsw_probe.sql",
    LEDGER_PASS: _OWN_SQL / "ledger_pass.sql",
}
PEERS = (PUBLISHED, REFERENCE)

_HALFVEC_COPY = """
create schema bench;
create table bench.halfvec_copy (id uuid not null, e halfvec({dimension}) not null);
alter table bench.halfvec_copy alter column e set storage plain;
insert into bench.halfvec_copy
select m.id, t.embedding::halfvec({dimension}) from agent_memories m join thoughts t on t.id = m.thought_id
where m.workspace_id = '{workspace}';
grant usage on schema bench to service_role;
grant select on bench.halfvec_copy to service_role;
"""


@dataclass(frozen=True)
class Question:
    """Whatever is None is not asked by."""

    text: str | None = None
    vector: str | None = None

    @property
    def parameters(self) -> Mapping[str, Any]:
        """All that the reference takes, by its own names; the other arms take some of them."""
        return Call(
            {"p_workspace_id": ASKED, "p_query": self.text, "p_query_embedding": self.vector}
        ).reference


def statement(arm: str) -> str:
    return _FILES[arm].read_text(encoding="utf-8")


def make_halfvec_copy(database: Database, dimension: int) -> None:
    """The floor of an exact answer: the same rows, as half-precision vectors that are not toasted."""
    database.owner.execute(_HALFVEC_COPY.format(dimension=dimension, workspace=ASKED).encode())


class Sessions:
    """One of what is judged and of the floors, and one of the peers, as it suits them best."""

    def __init__(self, database: Database) -> None:
        self._own = database.connect("service_role")
        self._peers = database.connect("service_role")
        for session in (self._own, self._peers):
            # the slowest peer needs half a minute at 100,000: what needs more is a fault, and ends the run
            session.execute("set statement_timeout = '5min'")
        # a plan for any question computes what this one does not ask for, and costs them up to six times the time
        self._peers.execute("set plan_cache_mode = force_custom_plan")

    def _of(self, name: str) -> Connection:
        return self._peers if name in PEERS else self._own

    def arm(self, name: str, questions: list[Question], repetitions: int) -> Arm:
        return arm(self._of(name), name, questions, repetitions)

    def answer(self, name: str, question: Question) -> list[dict[str, Any]]:
        with self._of(name).cursor(row_factory=dict_row) as cursor:
            return cursor.execute(statement(name).encode(), question.parameters, prepare=True).fetchall()

    def memory_ids(self, name: str, question: Question) -> list[UUID]:
        return [row["memory_id"] for row in self.answer(name, question)]

    def plan(self, name: str, question: Question) -> str:
        """How the server goes about it, with its parallel workers."""
        query = b"explain " + statement(name).encode()
        return "\n".join(line for (line,) in self._of(name).execute(query, question.parameters))


def arm(
    session: Connection, name: str, questions: list[Question], repetitions: int, *, named: str | None = None
) -> Arm:
    """Asks as a client does: one session, a prepared statement, the vector as text."""
    query = statement(name).encode()

    def put(number: int) -> object:
        asked = questions[number % len(questions)].parameters
        return session.execute(query, asked, prepare=True).fetchall()

    return Arm(named or name, put, repetitions, warm_up=1 if name in PEERS else 3)
