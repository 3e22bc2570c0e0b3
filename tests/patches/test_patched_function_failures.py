"""What a patched function answers when the embedding service, the ledger, the database or the request are not as they should be."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from uuid import uuid4

import httpx
import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ranked_ledger import RankedLedger, doctor
from ranked_ledger.stack import StackInfo
from tests.patches import rig
from tests.patches.patched import ask, body, database, ids, patched, question, recall, write, writing

QUEUE = "The job queue lives in PostgreSQL, beside the data"
# On a busy machine anything may take seconds: only what never answers is waited for briefly.
PATIENT = {"RANKED_LEDGER_EMBEDDING_TIMEOUT_MS": "10000", "RANKED_LEDGER_TIMEOUT_MS": "20000"}
DEADLINE_SECONDS = 30
DETERMINED = settings(deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return patched(tmp_path_factory.mktemp("patched"))


@pytest.fixture(scope="module")
def wordless(folder: Path, project: StackInfo) -> Iterator[rig.Function]:
    """A patched function whose embedding service is down."""
    with rig.absent_embeddings() as url, rig.running(folder, project, url, env=PATIENT) as function:
        yield function


@pytest.fixture(scope="module")
def bare_project() -> Iterator[StackInfo]:
    """A host's Open Brain without the ledger."""
    with rig.served_project(ledger=False) as info:
        yield info


# --- no usable embedding ---


@pytest.mark.parametrize(
    ("service", "reason"),
    [
        pytest.param(rig.absent_embeddings, "failed", id="absent"),
        pytest.param(rig.silent_embeddings, "timeout", id="silent"),
        pytest.param(lambda: rig.answering_embeddings({"error": "no credit"}, 402), "failed", id="refuses"),
        pytest.param(lambda: rig.answering_embeddings(rig.vector_of(8)), "dimension", id="another dimension"),
        pytest.param(lambda: rig.answering_embeddings(rig.vector_of(20_000)), "unusable", id="too long"),
        pytest.param(lambda: rig.answering_embeddings(rig.vector_of(0)), "unusable", id="empty"),
        pytest.param(
            lambda: rig.answering_embeddings({"data": [{"embedding": "AAAA"}]}), "unusable", id="text"
        ),
        pytest.param(
            lambda: rig.answering_embeddings({"data": [{"embedding": [1e300] * rig.DIMENSION}]}),
            "unusable",
            id="beyond float4",
        ),
        pytest.param(
            lambda: rig.answering_embeddings({"data": [{"embedding": [0] * rig.DIMENSION}]}),
            "unusable",
            id="zeros",
        ),
    ],
)
def test_without_a_usable_embedding_the_ranked_policy_answers_from_text(
    folder: Path,
    project: StackInfo,
    ledger: RankedLedger,
    service: Callable[[], AbstractContextManager[str]],
    reason: str,
) -> None:
    queue = ledger.record(QUEUE)
    env = PATIENT | ({"RANKED_LEDGER_EMBEDDING_TIMEOUT_MS": "200"} if reason == "timeout" else {})
    with service() as url, rig.running(folder, project, url, env=env) as function:
        answer = recall(function, ledger.workspace, "job queue")
        if reason != "timeout":  # there the vector policy waits, as it always has
            vector = ask(function, ledger.workspace, "job queue", recall_policy="vector")
            assert vector.status_code in {200, 500}
            assert "policy" not in vector.json()
            assert vector.status_code == 500 or reason == "unusable"
    assert ids(answer) == [str(queue.memory_id)]
    assert answer["memories"][0]["ledger"]["relevance_source"] == "fts"
    assert (answer["policy"]["embedding"], answer["policy"]["relevance"]) == (reason, "text")
    with database(project) as rows:
        (policy,) = rows(
            "select response_policy from agent_memory_recall_traces where workspace_id = %s "
            "and response_policy ->> 'recall_policy' = 'ranked_ledger'",
            ledger.workspace,
        )
    assert policy["response_policy"]["embedding"] == reason


@pytest.mark.parametrize(
    "shape",
    [
        "new Float32Array(await embed(payload.query))",
        "JSON.stringify(await embed(payload.query))",
        "{ embedding: await embed(payload.query) }",
        "{ data: [{ embedding: await embed(payload.query) }] }",
        "{ embeddings: [await embed(payload.query)] }",
        "[await embed(payload.query)]",
    ],
)
def test_a_vector_is_found_in_what_the_functions_client_gives(
    project: StackInfo, embeddings: str, workspace: str, tmp_path: Path, shape: str
) -> None:
    folder = patched(
        tmp_path, ("const embedding = await embed(payload.query);", f"const embedding: any = {shape};")
    )
    with rig.running(folder, project, embeddings, env=PATIENT) as function:
        write(function, workspace, QUEUE)
        answer = recall(function, workspace, "Where are jobs kept?")
    assert answer["policy"]["embedding"] == "used"
    assert answer["memories"][0]["similarity"] > 0.5


# --- no ledger, no database ---


def test_without_the_ledger_only_the_ranked_policy_is_refused(
    folder: Path, bare_project: StackInfo, embeddings: str, workspace: str
) -> None:
    with rig.running(folder, bare_project, embeddings, env=PATIENT) as function:
        plain = write(function, workspace, QUEUE)
        assert "ledger" not in plain
        vector = recall(function, workspace, "job queue", recall_policy="vector")
        assert ids(vector) == ids(plain)
        used = function.http.post(
            f"/recall/{vector['request_id']}/usage", json={"used_memory_ids": ids(plain)}
        )
        assert used.status_code == 200

        refused = ask(function, workspace, "job queue")
        assert refused.status_code == 503
        assert refused.json()["code"] == "not_installed"
        assert "supabase db push" in refused.json()["hint"]
        written = write(function, workspace, {"content": "Another one", "rationale": "r"})
        (missing,) = written["ledger"]["not_written"]
        assert missing["memory_id"] == ids(written)[0]
        assert "not installed" in missing["reason"]
        by = {"action": "supersede", "by": ids(written)[0]}
        review = function.http.patch(f"/memories/{ids(plain)[0]}/review", json=by)
        assert (review.status_code, review.json()["code"]) == (503, "not_installed")
        assert "Uncaught" not in function.log()
    with database(bare_project) as rows:
        assert len(rows("select from agent_memory_recall_traces where workspace_id = %s", workspace)) == 1


def test_a_stale_cache_is_told_as_what_it_is(
    folder: Path, bare_project: StackInfo, embeddings: str, workspace: str
) -> None:
    with (
        psycopg.connect(bare_project.db_url, autocommit=True) as owner,
        rig.running(folder, bare_project, embeddings, env=PATIENT) as function,
    ):
        for migration in rig.deploy.migrations():
            owner.execute(migration.read_bytes())
        with RankedLedger(bare_project.url, bare_project.secret_key, workspace=workspace) as client:
            doctor.await_functions(client)
        assert ask(function, workspace, "job queue").status_code == 200
        # what PostgREST still knows and the database does not
        owner.execute("alter function recall_decisions rename to recalled")
        stale = ask(function, workspace, "job queue")
        owner.execute("alter function recalled rename to recall_decisions")
    assert (stale.status_code, stale.json()["code"]) == (503, "not_installed")
    assert "notify pgrst" in stale.json()["hint"]


OLDER = """
alter function recall_decisions rename to recalled;
do $do$
declare
  v_names text[] := (select p.proargnames from pg_proc p where p.proname = 'recalled');
  v_types oidvector := (select p.proargtypes from pg_proc p where p.proname = 'recalled');
  v_last  int := array_position(v_names, 'p_preset') - 1;
begin
  execute format(
    'create function recall_decisions(%s) returns jsonb language sql as $f$ select recalled(%s) $f$',
    (select string_agg(format('%I %s default %L', v_names[n], v_types[n - 1]::regtype,
                              case v_names[n] when 'p_policy' then 'ranked_ledger' end), ', ' order by n)
     from generate_series(1, v_last) as n),
    (select string_agg(format('%1$I => %1$I', v_names[n]), ', ' order by n) from generate_series(1, v_last) as n));
  grant execute on function recall_decisions to service_role;
end
$do$;
notify pgrst, 'reload schema';
"""


def test_a_ledger_older_than_presets_answers_whoever_names_none(
    folder: Path, embeddings: str, workspace: str
) -> None:
    with (
        rig.served_project() as older,
        psycopg.connect(older.db_url, autocommit=True) as owner,
        rig.running(folder, older, embeddings, env=PATIENT) as function,
    ):
        write(function, workspace, QUEUE)
        presets: list[dict[str, Any]] = [{"preset": "published"}, {"weights": {"summary": 0.1}}]
        for ranking in presets:
            assert ask(function, workspace, "job queue", ranking=ranking).status_code == 200
        owner.execute(OLDER)
        deadline = time.monotonic() + DEADLINE_SECONDS
        while (refused := ask(function, workspace, "job queue", ranking=presets[0])).status_code == 200:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        refusals = [refused, ask(function, workspace, "job queue", ranking=presets[1])]
        for refused in refusals:
            assert (refused.status_code, refused.json()["code"]) == (503, "not_installed")
            assert "out of date" in refused.json()["error"]
            assert "supabase db push" in refused.json()["hint"]
        nulls = {"preset": None, "weights": {"relevance": 0.5, "summary": None}}
        for more in ({}, {"ranking": nulls}):
            assert len(ids(recall(function, workspace, "job queue", **more))) == 1


class Proxy(BaseHTTPRequestHandler):
    """What stands before a database that is away: a page or a redirect, whatever is asked."""

    status: ClassVar[int]
    to: ClassVar[str | None]
    asked: ClassVar[list[dict[str, str]]]

    def do_GET(self) -> None:
        self.asked.append({name.lower(): value for name, value in self.headers.items()})
        self.send_response(self.status)
        if self.to:
            self.send_header("location", f"{self.to}{self.path}")
        self.end_headers()
        self.wfile.write(b"<html>Bad gateway</html>")

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"] or 0))
        self.do_GET()

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: its log would be among the tests'."""


@contextlib.contextmanager
def page(status: int, asked: list[dict[str, str]], to: str | None = None) -> Iterator[str]:
    """The headers of each request are added to `asked`."""
    handler = type("Page", (Proxy,), {"status": status, "to": to, "asked": asked})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@contextlib.contextmanager
def redirect() -> Iterator[str]:
    """To another origin, which the module must never ask: the key would be in its log.

    The function's own client, supabase-js, follows as it always has. It is known by its x-client-info.
    """
    asked: list[dict[str, str]] = []
    followed: list[dict[str, str]] = []
    with page(200, followed) as elsewhere, page(302, asked, to=elsewhere) as url:
        yield url
    assert [one for one in asked if "x-client-info" not in one]
    assert [one for one in followed if "x-client-info" not in one] == []


@pytest.mark.parametrize(
    ("service", "code"),
    [
        pytest.param(rig.absent_embeddings, "unreachable", id="nobody listens"),
        pytest.param(rig.silent_embeddings, "timeout", id="nobody answers"),
        pytest.param(lambda: page(200, []), "unexpected", id="a page"),
        pytest.param(lambda: page(502, []), "unexpected", id="a gateway's page"),
        pytest.param(redirect, "unreachable", id="a redirect elsewhere"),
    ],
)
def test_a_database_that_does_not_answer_is_503_and_says_nothing_of_keys(
    folder: Path,
    project: StackInfo,
    embeddings: str,
    service: Callable[[], AbstractContextManager[str]],
    code: str,
) -> None:
    with service() as url:
        env = PATIENT | {"SUPABASE_URL": url}
        if code == "timeout":
            env["RANKED_LEDGER_TIMEOUT_MS"] = "300"
        with rig.running(folder, project, embeddings, env=env) as function:
            refused = ask(function, "anywhere", "job queue")
            said = refused.text
            if code != "timeout":  # there the function waits by itself, as it always has
                sent = {"action": "merge", "by": str(uuid4())}
                review = function.http.patch(f"/memories/{uuid4()}/review", json=sent)
                assert review.status_code == 500  # the function fails before it comes to the change
                said += review.text
            said += function.log()
    assert (refused.status_code, refused.json()["code"]) == (503, code)
    assert project.secret_key not in said
    assert rig.ACCESS_KEY not in said


@pytest.mark.parametrize(
    ("key", "said"), [("sb_secret_" + "x" * 20, {"apikey"}), ("not.a.key", {"apikey", "authorization"})]
)
def test_a_key_of_the_new_kind_is_no_bearer(
    folder: Path, project: StackInfo, embeddings: str, key: str, said: set[str]
) -> None:
    asked: list[dict[str, str]] = []
    with page(200, asked) as url:
        env = PATIENT | {"SUPABASE_URL": f"{url}/"}
        with rig.running(folder, project, embeddings, service_key=key, env=env) as function:
            assert ask(function, "anywhere", "job queue").status_code == 503
    (headers,) = asked
    assert {name for name, value in headers.items() if key in value} == said


def test_a_refusal_is_told_also_where_the_function_lets_errors_through(
    project: StackInfo, embeddings: str, tmp_path: Path
) -> None:
    handled = "app.onError((error, c) => {\n"
    folder = patched(tmp_path, (handled, f'{handled}  if (error.name === "LedgerRefusal") throw error;\n'))
    with rig.running(folder, project, embeddings, service_key="not.a.key", env=PATIENT) as function:
        assert ask(function, "anywhere", "job queue").json()["code"] == "key_refused"


@pytest.mark.parametrize("key", ["sb_secret_" + "x" * 20, "not.a.key"])
def test_a_refused_key_is_503_and_is_not_told(
    folder: Path, project: StackInfo, embeddings: str, workspace: str, key: str
) -> None:
    with rig.running(folder, project, embeddings, service_key=key, env=PATIENT) as function:
        refused = ask(function, workspace, "job queue")
        said = function.log() + refused.text
    assert (refused.status_code, refused.json()["code"]) == (503, "key_refused")
    assert key not in said


def test_whoever_the_function_does_not_let_in_reaches_nothing_of_the_module(
    project: StackInfo, embeddings: str, folder: Path, ledger: RankedLedger
) -> None:
    old, new = ledger.record(QUEUE), ledger.record("Another one")
    review, by = f"/memories/{old.memory_id}/review", {"action": "supersede", "by": str(new.memory_id)}
    with rig.running(folder, project, embeddings, env=PATIENT) as function:
        for headers in ({"x-brain-key": ""}, {"x-brain-key": "undefined"}, {"x-brain-key": "open"}):
            assert function.http.patch(review, json=by, headers=headers).status_code == 401
            for decision in ({"content": QUEUE}, {"content": QUEUE, "importance": 7}):
                objects = writing(ledger.workspace, decision)
                assert function.http.post("/writeback", json=objects, headers=headers).status_code == 401
    assert {one.memory_id for one in ledger.timeline()} == {old.memory_id, new.memory_id}
    assert ledger.get(old).lifecycle_status == "active"


# --- requests of all kinds ---

TEXTS = st.text(max_size=40) | st.sampled_from(
    ["\x00", "a\x00b", "'; drop table thoughts; --", "job queue", "ﷺ" * 99]
)
NUMBERS = (
    st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([1e308, -0.0, 2**63])
)
ANY = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda children: st.lists(children, max_size=3) | st.dictionaries(TEXTS, children, max_size=3),
    max_leaves=8,
)
UNIT = st.floats(0, 1)
WEIGHT = st.floats(0, 1e300)
RANKING = st.fixed_dictionaries(
    {},
    optional={
        "preset": st.sampled_from(["published", "tuned"]) | TEXTS,
        "weights": st.fixed_dictionaries(
            {},
            optional=dict.fromkeys(("relevance", "importance", "recency", "dependency", "summary"), WEIGHT),
        ),
        "half_life_steps": st.floats(0, 1e300, exclude_min=True),
        "dependency_saturation": st.floats(0, 1e300, exclude_min=True),
        "similarity_floor": st.floats(-1, 1),
        "similarity_ceiling": st.floats(-1, 1),
        "fusion": st.sampled_from(["none", "max", "blend"]),
        "fusion_weight": UNIT,
    },
)
# within the schema, to the ends of its ranges: these reach the ledger
VALID = st.fixed_dictionaries(
    {"query": TEXTS.filter(bool)},
    optional={
        "project_id": TEXTS,
        "task_id": TEXTS,
        "current_step": st.integers(0, 10**9) | st.none(),
        "min_relevance": UNIT,
        "ranking": RANKING,
        "with_hits": st.booleans(),
        "limits": st.fixed_dictionaries(
            {}, optional={"max_items": st.integers(1, 50), "max_tokens": st.integers(256, 20_000)}
        ),
        "scope": st.fixed_dictionaries(
            {},
            optional={
                "visibility": st.sampled_from(
                    ["personal", "channel", "project", "workspace", "organization"]
                ),
                "project_only": st.booleans(),
                "include_unconfirmed": st.booleans(),
                "include_stale": st.booleans(),
            },
        ),
    },
)
# any field may be anything
HOSTILE = st.fixed_dictionaries(
    {"query": ANY},
    optional=dict.fromkeys(
        (
            *("workspace_id", "project_id", "task_id", "flow_id", "runtime", "channel", "scope", "limits"),
            *("sensitivity", "current_step", "min_relevance", "ranking", "with_hits", "schema_version"),
        ),
        ANY,
    ),
)


@pytest.fixture(scope="module")
def embedded(folder: Path, project: StackInfo) -> Iterator[rig.Function]:
    """A patched function whose embedding service answers at once, always the same."""
    with (
        rig.answering_embeddings(rig.vector_of(rig.DIMENSION)) as url,
        rig.running(folder, project, url, env=PATIENT) as function,
    ):
        write(function, "hostile", QUEUE, {"content": "Another one", "importance": 1})
        yield function


def test_a_large_write_back_is_reported_whole(embedded: rig.Function, workspace: str) -> None:
    ground = ids(write(embedded, workspace, QUEUE))
    decisions = [{"content": f"Queue decision {part}", "depends_on": ground} for part in range(110)]
    told = write(embedded, workspace, *decisions)["ledger"]
    assert [one["index"] for one in told["decisions"]] == list(range(110))
    assert [one["step_index"] for one in told["decisions"]] == list(range(1, 111))
    assert len(told["linked"]) == 110
    assert len(ids(recall(embedded, workspace, "queue", limits={"max_items": 50}))) == 50


@settings(DETERMINED, max_examples=120)
@given(asked=VALID | HOSTILE)
def test_no_request_makes_the_ranked_policy_fail_where_the_vector_policy_does_not(
    embedded: rig.Function, asked: dict[str, Any]
) -> None:
    sent = body("hostile") | asked | {"recall_policy": "ranked_ledger"}
    answer = embedded.http.post("/recall", json=sent)
    if answer.status_code == 200:
        assert answer.json()["policy"]["recall_policy"] == "ranked_ledger"
    elif answer.status_code != 400:
        vector = embedded.http.post("/recall", json=sent | {"recall_policy": "vector"})
        assert (answer.status_code, answer.json()) == (vector.status_code, vector.json())


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param(b'{"recall_policy": "ranked_ledger"', id="cut off"),
        pytest.param(b"[" * 100_000, id="deep"),
        pytest.param(b'{"a":' * 50_000 + b"1" + b"}" * 50_000, id="deep and whole"),
        pytest.param(b'{"query": "\\ud800", "recall_policy": "ranked_ledger"}', id="half a character"),
        pytest.param(b"\x00" * 1000, id="zeros"),
    ],
)
@pytest.mark.parametrize("path", ["/recall", "/writeback", f"/memories/{rig.NOBODY}/review"])
def test_a_broken_body_is_the_functions_to_refuse(wordless: rig.Function, path: str, broken: bytes) -> None:
    method = "PATCH" if path.endswith("review") else "POST"
    assert wordless.http.request(method, path, content=broken).status_code == 400
    assert wordless.http.get("/health").status_code == 200


def test_a_huge_query_is_refused_by_the_ledger_in_words(wordless: rig.Function, workspace: str) -> None:
    refused = ask(wordless, workspace, "queue " * 500_000)
    assert refused.status_code == 400
    assert "262,144 bytes" in refused.json()["error"]
    assert ask(wordless, workspace, "queue " * 40_000).status_code == 200


def test_a_question_goes_through_as_any_client_sends_it(wordless: rig.Function, ledger: RankedLedger) -> None:
    ledger.record(QUEUE)
    sent = json.dumps(question(ledger.workspace, "job queue")).encode()

    def chunks() -> Iterator[bytes]:
        for start in range(0, len(sent), 50):
            yield sent[start : start + 50]

    for content in (sent, chunks()):
        answer = wordless.http.post("/recall?recall_policy=vector", content=content)
        assert answer.json()["policy"]["embedding"] == "failed"
    by_key = httpx.post(f"{wordless.url}/recall", params={"key": rig.ACCESS_KEY}, content=sent)
    assert by_key.status_code == 200
