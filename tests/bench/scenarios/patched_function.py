"""Ranked recall through a patched edge function, beside the same call of the RPC: all that a client waits for."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from ranked_ledger.stack import StackInfo
from tests.bench import precomputed, served, server
from tests.bench.arms import Question
from tests.bench.bench import Bench
from tests.bench.decisions import ASKED
from tests.bench.findings import Finding, compared
from tests.bench.plan import DIMENSION, PATCHED
from tests.bench.timing import Arm
from tests.bench.vectors import Space
from tests.patches import rig
from tests.patches.patched import ids, patched, question

_FUNCTION = "patched function"
_RPC = "the RPC, gateway, PostgREST"
_RPC_UNTRACED = "the RPC, without a trace"
_VECTOR_POLICY = "patched function, vector policy"

_ITEMS, _TOKENS = 10, 4000
# Deno compiles what runs often, and each of PostgREST's sessions plans for itself
_WARM_UP = 20
_ROUNDS = 3
"""Each question so often: a call is many short ones of several processes, and its time varies more than a query's."""


def run(bench: Bench) -> Iterator[Finding]:
    if not bench.wants("patched"):
        return
    space = bench.space("real", DIMENSION)
    with served.loaded(bench, space) as info:
        yield from _measured(bench, info, space, durable=False)
        # the function commits four times where the RPC does once: shown beside, as a host's disk would have it
        with server.durable(info.superuser_db_url):
            yield from _measured(bench, info, space, durable=True)


def _measured(bench: Bench, info: StackInfo, space: Space, *, durable: bool) -> Iterator[Finding]:
    for way, by_vector in (("text with vector", True), ("text", False)):
        title = f"{way}, through a patched function{', each commit on the disk' if durable else ''}"
        questions = bench.questions(space, text=True, vector=by_vector)[: bench.plan.questions]
        known = {str(one.text): one.vector for one in questions if one.vector is not None}
        with precomputed.embeddings(known) as service, _clients(info, service.url) as (function, rpc):
            yield compared(
                "patched",
                title,
                bench.plan.small,
                bench.measure(title, _arms(_Asked(function, rpc, questions), by_vector)),
                subject=_FUNCTION,
                baseline=_RPC,
                bar=PATCHED,
                judged=not durable,
                vectors="real" if by_vector else "",
                details={"embedding_service_median_ms": statistics.median(service.took)},
            )


def _arms(asked: _Asked, by_vector: bool) -> list[Arm]:
    asked.check()
    ways: dict[str, Callable[[int], object]] = {
        _FUNCTION: asked.function,
        _RPC: asked.rpc,
        _RPC_UNTRACED: lambda number: asked.rpc(number, trace=False),
    }
    if by_vector:  # without one it has no answer
        ways[_VECTOR_POLICY] = lambda number: asked.function(number, policy="vector")
    return [Arm(name, ask, _ROUNDS * asked.questions, _WARM_UP) for name, ask in ways.items()]


@contextmanager
def _clients(info: StackInfo, embeddings: str) -> Iterator[tuple[httpx.Client, httpx.Client]]:
    """Of the function under Deno and of the API, each with one connection that stays."""
    with (
        tempfile.TemporaryDirectory(prefix="rl-bench-") as project,
        rig.running(patched(Path(project)), info, embeddings) as function,
        httpx.Client(base_url=f"{info.url}/rest/v1", headers={"apikey": info.secret_key}) as rpc,
    ):
        yield function.http, rpc


class _Asked:
    """Each question as a request to the function, and as the call of recall_decisions that the function makes of it."""

    def __init__(self, function: httpx.Client, rpc: httpx.Client, questions: list[Question]) -> None:
        self._function = function
        self._rpc = rpc
        self._questions = questions

    @property
    def questions(self) -> int:
        return len(self._questions)

    def function(self, number: int, policy: str = "ranked_ledger") -> Any:
        limits = {"max_items": _ITEMS, "max_tokens": _TOKENS}
        body = question(ASKED, str(self._question(number).text), limits=limits, recall_policy=policy)
        return _answer(self._function.post("/recall", json=body))

    def rpc(self, number: int, *, trace: bool = True) -> Any:
        asked = self._question(number)
        body = {
            "p_trace": trace,
            "p_workspace_id": ASKED,
            "p_query": asked.text,
            "p_only_confirmed": False,
            "p_include_personal": False,
            "p_include_stale": False,
            "p_match_count": _ITEMS,
            "p_max_tokens": _TOKENS,
        }
        if asked.vector is not None:
            body["p_query_embedding"] = asked.vector
        return _answer(self._rpc.post("/rpc/recall_decisions", json=body))

    def _question(self, number: int) -> Question:
        return self._questions[number % len(self._questions)]

    def check(self) -> None:
        """Another question, or an answer without its decisions, would have been another time."""
        for number in range(len(self._questions)):
            ours, theirs = self.function(number), self.rpc(number)
            expected = [hit["memory_id"] for hit in theirs["hits"]]
            if ours["policy"]["arguments"] != theirs["arguments"] or ids(ours) != expected or not expected:
                raise AssertionError(
                    f"question {number} is not the same one both ways: the figures mean nothing"
                )


def _answer(response: httpx.Response) -> Any:
    response.raise_for_status()
    return response.json()
