"""The whole way: SDK, gateway, PostgREST and PostgreSQL, beside the same call in one session of PostgreSQL."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import httpx
import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from ranked_ledger import RankedLedger
from ranked_ledger.stack import StackInfo
from tests.bench import decisions, served
from tests.bench.bench import Bench
from tests.bench.findings import Finding, compared
from tests.bench.plan import DIMENSION, END_TO_END
from tests.bench.timing import Arm
from tests.rig.databases import Connection

_SDK = "SDK, gateway, PostgREST"
_SESSION = "the same call in one session"
_WAYS = (
    ("vector", False, True),
    ("text", True, False),
    ("text with vector", True, True),
    ("neither text nor vector", False, False),
)


def run(bench: Bench) -> Iterator[Finding]:
    if not bench.wants("end-to-end"):
        return
    space = bench.space("real", DIMENSION)
    with served.loaded(bench, space) as info, _session(info) as session:
        for trace in (True, False):
            for title, by_text, by_vector in _WAYS:
                asked = list(zip(bench.corpus.questions, space.questions().tolist(), strict=False))[
                    : bench.plan.questions
                ]
                questions = [
                    {
                        "query": text if by_text else None,
                        "embedding": vector if by_vector else None,
                        "trace": trace,
                    }
                    for text, vector in asked
                ]
                title_traced = f"{title}, end to end" + ("" if trace else ", without a trace")
                yield compared(
                    "end-to-end",
                    title_traced,
                    bench.plan.small,
                    _timings(bench, info, session, title_traced, questions),
                    subject=_SDK,
                    baseline=_SESSION,
                    bar=END_TO_END,
                    judged=trace,
                    vectors="real" if by_vector else "",
                )


@contextmanager
def _session(info: StackInfo) -> Iterator[Connection]:
    """As PostgREST arrives: the authenticator, in the role of the service."""
    with psycopg.connect(
        make_conninfo(info.superuser_db_url, user="authenticator"), autocommit=True
    ) as session:
        session.execute("set role service_role")
        session.execute("set search_path = public, extensions")
        yield session


def _timings(
    bench: Bench, info: StackInfo, session: Connection, what: str, questions: list[dict[str, Any]]
) -> dict[str, list[float]]:
    sent: list[dict[str, Any]] = []
    http = httpx.Client(
        event_hooks={"request": [lambda request: sent.append(json.loads(request.content or b"{}"))]}
    )
    with http, RankedLedger(info.url, info.secret_key, workspace=decisions.ASKED, http_client=http) as ledger:
        # the same arguments: what the client sends for each question, taken from the wire
        bodies = []
        for question in questions:
            ledger.recall(**question)
            bodies.append(sent[-1])

        def by_sdk(number: int) -> object:
            return ledger.recall(**questions[number % len(questions)])

        def in_session(number: int) -> object:
            return _recall(session, bodies[number % len(bodies)])

        repetitions = bench.plan.questions
        return bench.measure(what, [Arm(_SDK, by_sdk, repetitions), Arm(_SESSION, in_session, repetitions)])


def _recall(session: Connection, body: dict[str, Any]) -> object:
    # a request id that is known already would be answered without a trace
    fresh = body | ({"p_request_id": str(uuid4())} if "p_request_id" in body else {})
    arguments = sql.SQL(", ").join(
        sql.SQL("{} => {}").format(sql.Identifier(name), sql.Placeholder(name)) for name in fresh
    )
    call = sql.SQL("select recall_decisions({})").format(arguments)
    return session.execute(call, fresh, prepare=True).fetchall()
