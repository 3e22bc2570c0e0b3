"""Each patched copy of `cases/` runs under Deno and answers by both policies, with an embedding service and without."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from ranked_ledger import RankedLedger, doctor, patching
from ranked_ledger.stack import StackInfo
from tests.patches import rig, variants

PATCHED = [name for name in variants.names() if variants.variant(name).is_patched]
DEADLINE_SECONDS = 20

UNREACHABLE = "Nobody embeds this: which queue?"
NEAR = "The job queue lives in PostgreSQL"  # nearest to every question by its vector
IMPORTANT = "The queue is PostgreSQL, since it has transactions"  # first by rank: important, and the newest

OWN_MATCH = """
create function public.match_memories_v2(query_vector vector, p_workspace text, p_limit int)
returns table (id uuid, similarity float) language sql stable set search_path = public, extensions as $$
  select t.id, 1 - (t.embedding <=> query_vector) from thoughts t join agent_memories m on m.thought_id = t.id
  where m.workspace_id = p_workspace order by 2 desc limit p_limit
$$;
grant execute on function public.match_memories_v2 to service_role;
notify pgrst, 'reload schema';
"""


def vector(*first: float) -> list[float]:
    return [*first, *[0.0] * (rig.DIMENSION - len(first))]


@dataclass
class Recalls:
    """What a running copy answered, and what it left in the database."""

    vector: dict[str, Any]
    ranked: dict[str, Any]
    without_embedding: dict[str, Any]
    traces: dict[str, dict[str, Any]]
    log: str


@pytest.fixture(scope="module")
def service() -> Iterator[str]:
    """An embedding service that knows one vector, and hangs up on one question."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = self.rfile.read(int(self.headers["content-length"]))
            if json.loads(asked)["input"] == UNREACHABLE:
                self.close_connection = True
                return
            body = json.dumps({"data": [{"embedding": vector(1)}], "embeddings": [vector(1)]}).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Nothing: its log would be among the tests'."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1"
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(scope="module")
def decisions(project: StackInfo) -> dict[str, str]:
    """Two decisions of a workspace, that the policies put into different orders: their ids by their text."""
    with psycopg.connect(project.db_url, autocommit=True) as owner:
        owner.execute(OWN_MATCH.encode())
    with RankedLedger(project.url, project.secret_key, workspace="copies") as ledger:
        near = ledger.record(NEAR, importance=0, embedding=vector(1))
        important = ledger.record(IMPORTANT, importance=1, embedding=vector(0.8, 0.6))
        doctor.await_functions(ledger)
    return {NEAR: str(near.memory_id), IMPORTANT: str(important.memory_id)}


@pytest.fixture(scope="module")
def recalls(
    request: pytest.FixtureRequest,
    project: StackInfo,
    service: str,
    decisions: dict[str, str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[dict[str, Future[Recalls]]]:
    """Every copy that a test asks for, two at a time."""
    wanted = [
        item.callspec.params["name"]
        for item in request.session.items
        if isinstance(item, pytest.Function) and item.module is request.module and hasattr(item, "callspec")
    ]
    with ThreadPoolExecutor(2) as pool:
        yield {
            name: pool.submit(recalled, name, tmp_path_factory.mktemp("copy"), project, service)
            for name in dict.fromkeys(wanted)
        }


def recalled(name: str, into: Path, project: StackInfo, service: str) -> Recalls:
    folder = rig.copied(into)
    (folder / "node_modules").symlink_to(rig.NODE_MODULES)  # for npm:zod@3, looked up beside the deno.json
    (folder / "index.ts").write_bytes(variants.variant(name).text.encode())
    patching.apply(folder, type_check=False)
    workspace = {"schema_version": "1", "workspace_id": "copies", "runtime": {"name": name}}
    asked = {**workspace, "query": "Which queue?", "scope": {"include_unconfirmed": True}}
    ranked = {**asked, "recall_policy": "ranked_ledger"}
    with rig.running(folder, project, service) as function:

        def ask(body: dict[str, Any]) -> dict[str, Any]:
            answer = function.http.post("/recall", json=body)
            assert answer.status_code == 200, f"{answer.text}\n{function.log()}"
            return dict(answer.json())

        answers = [ask(asked), ask(ranked), ask({**ranked, "query": UNREACHABLE})]
        traces = {answer["request_id"]: traced(project, answer["request_id"]) for answer in answers}
        failed = function.http.post("/recall", json={**asked, "query": UNREACHABLE})
        assert "policy" not in failed.json(), "the vector policy is left to itself, also where it fails"
        return Recalls(*answers, traces=traces, log=function.log())


def traced(project: StackInfo, request_id: str) -> dict[str, Any]:
    """The trace with its items, as soon as both are there: some copies write them after they answered."""
    query = """
      select t.response_policy, jsonb_agg(to_jsonb(i) order by i.rank) as items
      from agent_memory_recall_traces t join agent_memory_recall_items i on i.trace_id = t.id
      where t.request_id = %s group by t.id
    """
    deadline = time.monotonic() + DEADLINE_SECONDS
    with psycopg.connect(project.db_url, autocommit=True, row_factory=dict_row) as owner:
        while not (found := owner.execute(query, [request_id]).fetchone()):
            assert time.monotonic() < deadline, "there is no trace"
            time.sleep(0.02)
    return found


def ids(answer: dict[str, Any]) -> list[str]:
    return [memory["memory_id"] for memory in answer["memories"]]


@pytest.mark.parametrize("name", PATCHED)
def test_a_patched_copy_answers_by_both_policies(
    name: str, recalls: dict[str, Future[Recalls]], decisions: dict[str, str]
) -> None:
    got = recalls[name].result()
    near, important = decisions[NEAR], decisions[IMPORTANT]

    assert ids(got.vector) == [near, important]
    assert "policy" not in got.vector
    assert not any("ledger" in memory for memory in got.vector["memories"])

    assert ids(got.ranked) == [important, near]
    assert got.ranked["policy"]["recall_policy"] == "ranked_ledger"
    assert got.ranked["policy"]["embedding"] == "used"
    assert [memory["ledger"]["importance"] for memory in got.ranked["memories"]] == [1, 0]
    assert got.ranked["memories"][0]["similarity"] == pytest.approx(0.8, abs=1e-3)

    assert ids(got.without_embedding) == [important, near]
    assert got.without_embedding["policy"]["relevance"] == "text"
    assert got.without_embedding["policy"]["embedding"] == "failed"

    for answer in (got.vector, got.ranked, got.without_embedding):
        trace = got.traces[answer["request_id"]]
        policy = "vector" if answer is got.vector else "ranked_ledger"
        assert trace["response_policy"]["recall_policy"] == policy
        assert "max_items" in trace["response_policy"]
        assert [item["memory_id"] for item in trace["items"]] == ids(answer)
        if "item-snapshot" not in variants.variant(name).said["missing"] and answer is not got.vector:
            assert trace["items"][0]["use_policy_snapshot"]["importance"] == 1
    assert "Uncaught" not in got.log
