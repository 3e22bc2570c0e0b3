"""A patched function recalls by both policies, under Deno and with everything real."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import httpx
import pytest

from ranked_ledger import RankedLedger
from ranked_ledger.stack import StackInfo
from tests.patches import rig
from tests.patches.patched import Rows, ask, body, ids, patched, question, recall, write

QUEUE = "The job queue lives in PostgreSQL, beside the data"
LOGIN = "People sign in with a passkey"
LOGS = "Logs are kept for thirty days"
JOBS = "Where are jobs kept until a worker takes them?"
COMPONENTS = ("relevance", "importance", "recency", "dependency")

DEADLINE_SECONDS = 20


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return patched(tmp_path_factory.mktemp("patched"))


@pytest.fixture(scope="module")
def function(folder: Path, project: StackInfo, embeddings: str) -> Iterator[rig.Function]:
    with rig.running(folder, project, embeddings) as function:
        yield function


@pytest.fixture(scope="module")
def original(project: StackInfo, embeddings: str) -> Iterator[rig.Function]:
    with rig.running(rig.CONTRACT_FUNCTION, project, embeddings) as function:
        yield function


def traces(rows: Rows, workspace: str) -> list[dict[str, Any]]:
    return rows(
        "select * from agent_memory_recall_traces where workspace_id = %s order by created_at", workspace
    )


def items(rows: Rows, trace: dict[str, Any]) -> list[dict[str, Any]]:
    return rows("select * from agent_memory_recall_items where trace_id = %s order by rank", trace["id"])


def awaited(probe: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not (found := probe()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return found


# --- the module ---


def test_the_types_of_a_function_stay_as_they_are(tmp_path: Path) -> None:
    folder = patched(tmp_path)
    (folder / "four.ts").write_text(TYPES, encoding="utf-8")
    (folder / "three.ts").write_text(TYPES.replace('"zod"', '"npm:zod@3.25.76"'), encoding="utf-8")
    both = folder / "both.ts"
    both.write_text(
        "".join(f'import "./{name}.ts";\n' for name in ("index", "three", "four")), encoding="utf-8"
    )
    assert rig.complaints(both) == ""


TYPES = """
import { type Context, Hono } from "hono";
import { z } from "zod";
import * as rankedLedger from "./ranked_ledger.ts";

const recallSchema = z.object({
  ...rankedLedger.recallFields(z),
  query: z.string(),
  limits: z.object({ max_items: z.number().default(10) }),
});
const asked: z.infer<typeof recallSchema> = { query: "", limits: { max_items: 1 } };
export const strict = z.object({ ...rankedLedger.recallFields(z), query: z.string() }).strict().extend({ a: z.string() });

type Found = { data: { id: string }[] | null; error: { message: string } | null };
declare function match(embedding: number[]): Promise<Found>;
const app = new Hono<{ Variables: { user: string } }>().basePath("/agent-memory-api");
app.post("/recall", rankedLedger.recall, async (c) => {
  const user: string = c.get("user");
  const embedding = await rankedLedger.embedding(asked, async () => (await Promise.resolve([1, 2])));
  const { data: matches, error } = rankedLedger.ranked() ? rankedLedger.nothing() : await match(embedding);
  if (rankedLedger.ranked()) rankedLedger.goesOn(); else if (error) throw new Error(error.message);
  if (rankedLedger.ranked()) rankedLedger.goesOn(); else if (!matches?.length) return c.json({ memories: [], user });
  const pool = matches.map((match) => ({ ...match, similarity: 1 }));
  const ranked = rankedLedger.ranked() ? await rankedLedger.list("*") : pool.slice(0, asked.limits.max_items);
  const ids: string[] = ranked.map((m) => m.id);
  // @ts-expect-error the rows are of the function's own type, not of any
  ranked.map((m) => m.absent);
  const response_policy: { max_items: number } = rankedLedger.tracePolicy({ max_items: 3 });
  const snapshot: { a: number } = rankedLedger.itemSnapshot(ids[0], { a: 1 });
  return c.json({ response_policy, snapshot, more: { ...rankedLedger.tracePolicy(), max_items: 3 } });
});
const handler = async (c: Context) => c.json(await c.req.json());
app.on("POST", "/older/recall", rankedLedger.recall, handler);
app.post("/recall/:request_id/usage", rankedLedger.usage, (c) => c.text(c.req.param("request_id") satisfies string));
app.post("/writeback", rankedLedger.writeback(z), (c) => {
  const row: { memory_type: string; content: string } = rankedLedger.memory({ memory_type: "decision", content: "" });
  return c.json(row);
});
export const chained = new Hono()
  .post("/recall", rankedLedger.recall, async (c) => c.json(await c.req.json<{ a: number }>()))
  .patch("/memories/:id/review", rankedLedger.review, (c) => c.json({ id: c.req.param("id") satisfies string }));
"""


# --- the vector policy ---


def test_the_default_policy_is_the_functions_own_and_its_answer_stays(
    function: rig.Function, original: rig.Function, workspace: str, rows: Rows
) -> None:
    write(function, workspace, QUEUE, LOGIN, lessons=[LOGS], confidence=0.8)
    asked = body(workspace, query=JOBS, scope={"include_unconfirmed": True})
    before = original.http.post("/recall", json=asked)
    after = [function.http.post("/recall", json=asked | more) for more in ({}, {"recall_policy": "vector"})]
    assert len(ids(before.json())) == 3
    for answer in after:
        assert answer.status_code == before.status_code
        assert answer.json() | {"request_id": None} == before.json() | {"request_id": None}
        assert list(answer.json()) == list(before.json())
        assert set(answer.headers) == set(before.headers)

    first, second, third = traces(rows, workspace)
    assert first["response_policy"] == {"max_items": 10, "include_unconfirmed": True}
    for trace in (second, third):
        policy = trace["response_policy"]
        assert policy["recall_policy"] == "vector"
        assert policy["arguments"]["max_tokens"] == 4000
        assert items(rows, trace)[0]["use_policy_snapshot"] == items(rows, first)[0]["use_policy_snapshot"]


@pytest.mark.parametrize(
    ("asked", "key"),
    [
        (b"no json", rig.ACCESS_KEY),
        (b"", rig.ACCESS_KEY),
        (b"[]", rig.ACCESS_KEY),
        (b'{"recall_policy": "ranked_ledger"}', rig.ACCESS_KEY),
        (b'{"recall_policy": "ranked_ledger"}', "wrong"),
        (b"\xff\xfe\x00", rig.ACCESS_KEY),
    ],
)
@pytest.mark.parametrize("path", ["/recall", "/writeback", f"/recall/{rig.NOBODY}/usage"])
def test_what_the_function_refuses_it_refuses_in_its_own_words(
    function: rig.Function, original: rig.Function, path: str, asked: bytes, key: str
) -> None:
    headers = {"x-brain-key": key, "content-type": "text/plain"}
    before, after = (one.http.post(path, content=asked, headers=headers) for one in (original, function))
    assert (after.status_code, after.content) == (before.status_code, before.content)


@pytest.mark.parametrize(
    "wrong",
    [
        {"recall_policy": "newest"},
        {"current_step": -1},
        {"current_step": 1.5},
        {"min_relevance": 1.1},
        {"ranking": {"weights": {"relevance": -1}}},
        {"ranking": {"weights": {"beauty": 1}}},
        {"ranking": {"weights": {"summary": -1}}},
        {"ranking": {"preset": 7}},
        {"ranking": {"preset": "x" * 101}},
        {"ranking": {"half_life_steps": 0}},
        {"ranking": {"fusion": "both"}},
        {"ranking": {"unknown": 1}},
    ],
)
def test_the_functions_own_schema_refuses_a_wrong_field(
    function: rig.Function, workspace: str, wrong: dict[str, Any]
) -> None:
    refused = ask(function, workspace, JOBS, **wrong)
    assert refused.status_code == 400
    assert refused.json()["issues"][0]["path"][0] == next(iter(wrong))


# --- the ranked policy ---


def test_a_ranked_answer_keeps_its_shape_and_gains_ledger_and_policy(
    function: rig.Function, workspace: str, rows: Rows, ledger: RankedLedger
) -> None:
    written = write(function, workspace, QUEUE, {"content": LOGIN, "importance": 1}, lessons=[LOGS])
    queue, login, lesson = ids(written)
    vector = recall(function, workspace, JOBS, recall_policy="vector")
    answer = recall(function, workspace, JOBS)
    assert lesson in ids(vector)
    assert sorted(ids(answer)) == sorted([queue, login])

    by_score = [memory["ledger"]["score"] for memory in answer["memories"]]
    assert by_score == sorted(by_score, reverse=True)
    first = answer["memories"][0]
    assert set(first) == {*vector["memories"][0], "ledger"}
    assert first["ranking_score"] == first["ledger"]["score"]
    assert first["similarity"] == pytest.approx(first["ledger"]["relevance"])
    assert all(0 <= first["ledger"][component] <= 1 for component in COMPONENTS)
    assert first["ledger"]["relevance_source"] == "cosine"
    assert first["ledger"]["depends_on"] == []
    policy = answer["policy"]
    assert policy["recall_policy"] == "ranked_ledger"
    assert policy["memory_types"] == ["decision"]
    assert (policy["relevance"], policy["embedding"], policy["exact"]) == ("cosine", "used", True)
    assert policy["arguments"]["p_match_count"] == 10
    assert (policy["shortened"], policy["dropped"], policy["not_applied"]) == ([], [], [])

    _, trace = traces(rows, workspace)
    assert str(trace["request_id"]) == answer["request_id"]
    assert trace["response_policy"]["recall_policy"] == "ranked_ledger"
    assert trace["response_policy"]["arguments"] == policy["arguments"]
    assert trace["response_policy"]["embedding"] == "used"
    assert trace["response_policy"]["max_items"] == 10
    kept = items(rows, trace)
    assert [str(item["memory_id"]) for item in kept] == ids(answer)
    snapshot = kept[0]["use_policy_snapshot"]
    assert snapshot["recall_policy"] == "ranked_ledger"
    assert snapshot["relevance"] == first["ledger"]["relevance"]
    assert {"can_use_as_instruction", "relevance_source", "step_index", "pinned"} <= set(snapshot)

    stats = {one.recall_policy: one for one in ledger.policy_stats()}
    assert {name: (one.recall_requests, one.items_returned) for name, one in stats.items()} == {
        "ranked_ledger": (1, 2),
        "vector": (1, 3),
    }
    assert stats["ranked_ledger"].avg_similarity is not None


def test_a_trace_of_the_function_says_of_an_item_what_one_of_the_sdk_says(
    function: rig.Function, workspace: str, rows: Rows, ledger: RankedLedger
) -> None:
    write(function, workspace, {"content": QUEUE, "rationale": "One backup"})
    ledger.recall("job queue")
    recall(function, workspace, "job queue")
    ours, theirs = (items(rows, trace)[0]["use_policy_snapshot"] for trace in traces(rows, workspace))
    assert set(ours) <= set(theirs)


def test_what_is_asked_of_the_ranking_reaches_it(
    function: rig.Function, workspace: str, ledger: RankedLedger
) -> None:
    old = ledger.record(QUEUE, importance=0.1, step=1)
    new = ledger.record(LOGIN, importance=0.9, step=90)
    by_words = recall(
        function,
        workspace,
        "job queue",
        ranking={"weights": {"importance": 0, "recency": 0}, "fusion": "max"},
    )
    assert ids(by_words) == [str(old.memory_id), str(new.memory_id)]
    by_merit = recall(function, workspace, "job queue", ranking={"weights": {"relevance": 0}})
    assert ids(by_merit) == [str(new.memory_id), str(old.memory_id)]

    later = recall(function, workspace, "job queue", current_step=500, ranking={"half_life_steps": 100})
    assert later["policy"]["arguments"]["p_current_step"] == 500
    assert later["policy"]["arguments"]["p_half_life_steps"] == 100
    assert {memory["ledger"]["step_distance"] for memory in later["memories"]} == {499, 410}

    relevant = recall(function, workspace, "job queue", min_relevance=0.3)
    assert ids(relevant) == [str(old.memory_id)]
    floor = {"similarity_floor": 0.2, "similarity_ceiling": 0.1}
    refused = ask(function, workspace, "job queue", ranking=floor)
    assert refused.status_code == 400
    assert refused.json()["recall_policy"] == "ranked_ledger"
    assert refused.json()["code"] == "22023"
    assert "p_similarity_floor" in refused.json()["error"]


def test_a_preset_reaches_the_ranking_and_what_is_given_goes_before_it(
    function: rig.Function, workspace: str, rows: Rows, ledger: RankedLedger
) -> None:
    ledger.record(QUEUE, summary="Where the queue of jobs lives", importance=0.2)
    published = recall(function, workspace, "job queue")
    assert published["policy"]["arguments"]["p_preset"] == "published"
    assert published["memories"][0]["ledger"]["summary_match"] == 0
    tuned = recall(function, workspace, "job queue", ranking={"preset": "tuned"})
    in_force = tuned["policy"]["arguments"]
    told = ("p_preset", "p_fusion", "p_fusion_weight", "p_w_summary")
    assert [in_force[one] for one in told] == ["tuned", "blend", 0.4, 0.05]
    shown = tuned["memories"][0]["ledger"]
    assert 0 < shown["summary_match"] < 1
    assert shown["score"] != published["memories"][0]["ledger"]["score"]
    named = {"preset": "tuned", "fusion": "none", "weights": {"summary": 0.5, "importance": 0}}
    answer = recall(function, workspace, "job queue", ranking=named)["policy"]["arguments"]
    told = ("p_preset", "p_fusion", "p_w_summary", "p_w_importance", "p_w_similarity")
    assert [answer[name] for name in told] == ["tuned", "none", 0.5, 0, in_force["p_w_similarity"]]
    alone = recall(function, workspace, "job queue", ranking={"weights": {"summary": 0.5}})
    assert alone["policy"]["arguments"]["p_preset"] == "published"
    assert alone["memories"][0]["ledger"]["summary_match"] == shown["summary_match"]

    of_published, of_tuned, *_ = traces(rows, workspace)
    assert of_published["response_policy"]["arguments"]["p_preset"] == "published"
    assert of_tuned["response_policy"]["arguments"]["p_preset"] == "tuned"
    assert of_tuned["response_policy"]["recall_policy"] == "ranked_ledger"
    (item,) = items(rows, of_tuned)
    assert item["use_policy_snapshot"]["summary_match"] == shown["summary_match"]

    told_by_ledger = list(reversed(list(ledger.traces())))[:2]
    assert [one.arguments for one in told_by_ledger] == [published["policy"]["arguments"], in_force]
    assert "job queue" not in str([one.arguments for one in told_by_ledger])
    assert told_by_ledger[0].items[0].step_index == published["memories"][0]["ledger"]["step_index"]


def test_a_preset_that_there_is_not_is_refused_in_the_ledgers_words(
    function: rig.Function, workspace: str
) -> None:
    refused = ask(function, workspace, "job queue", ranking={"preset": "newest"})
    assert refused.status_code == 400
    said = refused.json()
    assert (said["code"], said["recall_policy"]) == ("22023", "ranked_ledger")
    assert "there is no preset 'newest'" in said["error"]
    assert "tuned" in said["hint"]


def test_whether_stale_decisions_are_in_scope_is_the_functions_to_say(
    function: rig.Function, workspace: str, ledger: RankedLedger
) -> None:
    ledger.set_lifecycle(ledger.record(QUEUE), "stale")
    tuned = {"ranking": {"preset": "tuned"}}
    assert ids(recall(function, workspace, "job queue", **tuned)) == []
    scope = {"include_unconfirmed": True, "include_stale": True}
    assert len(ids(recall(function, workspace, "job queue", scope=scope, **tuned))) == 1


def test_the_range_that_a_workspace_keeps_for_the_functions_model_is_in_force(
    project: StackInfo, embeddings: str, tmp_path: Path, ledger: RankedLedger
) -> None:
    ledger.record(QUEUE)
    ledger.set_similarity_range("e5", floor=0.7, ceiling=0.9)
    env = {"RANKED_LEDGER_EMBEDDING_MODEL": "e5"}
    with rig.running(patched(tmp_path), project, embeddings, env=env) as function:
        arguments = recall(function, ledger.workspace, JOBS)["policy"]["arguments"]
        assert (arguments["p_similarity_floor"], arguments["p_similarity_ceiling"]) == (0.7, 0.9)
        ranking = {"similarity_floor": 0.5, "similarity_ceiling": 0.6}
        arguments = recall(function, ledger.workspace, JOBS, ranking=ranking)["policy"]["arguments"]
        assert (arguments["p_similarity_floor"], arguments["p_similarity_ceiling"]) == (0.5, 0.6)


def test_every_default_is_the_databases(function: rig.Function, workspace: str, ledger: RankedLedger) -> None:
    ledger.record(QUEUE)
    asked = ledger.recall("job queue", preset="published", include_personal=False, max_tokens=4000)
    nulls = {"current_step": None, "min_relevance": None, "ranking": None}
    for more in ({}, nulls, {"ranking": {"weights": {}}}):
        answer = recall(function, workspace, "job queue", **more)["policy"]["arguments"]
        assert answer | {"has_embedding": False} == asked.arguments


def test_scope_is_applied_before_the_limit(
    function: rig.Function, workspace: str, ledger: RankedLedger
) -> None:
    here = [ledger.record(f"{QUEUE}, part {part}", project="here") for part in range(2)]
    for part in range(3):
        ledger.record(f"{QUEUE}, chapter {part}", project="there", importance=1)
        ledger.record(f"{QUEUE}, aside {part}", project="here", visibility="personal", importance=1)
    stale = ledger.record(f"{QUEUE}, once", project="here")
    ledger.set_lifecycle(stale, "stale")

    def found(**more: object) -> set[str]:
        limits = {"max_items": 2}
        return set(ids(recall(function, workspace, "job queue", project_id="here", limits=limits, **more)))

    assert found() == {str(decision.memory_id) for decision in here}
    scope = {"include_unconfirmed": True, "include_stale": True}
    many = recall(function, workspace, "job queue", project_id="here", scope=scope)
    assert str(stale.memory_id) in ids(many)
    assert len(ids(recall(function, workspace, "job queue", project_id="here"))) == 2
    personal = found(scope={"include_unconfirmed": True, "visibility": "personal"})
    assert personal.isdisjoint(decision.memory_id for decision in here)
    elsewhere = {"include_unconfirmed": True, "project_only": False}
    assert len(ids(recall(function, workspace, "job queue", project_id="here", scope=elsewhere))) == 5
    assert ids(recall(function, workspace, "job queue", project_id="here", scope={})) == []
    assert ids(recall(function, f"other-{workspace}", "job queue")) == []


def test_an_empty_answer_says_why(function: rig.Function, workspace: str, rows: Rows) -> None:
    answer = recall(function, workspace, JOBS)
    assert answer["memories"] == []
    assert "no decisions yet" in answer["policy"]["hint"]
    assert [trace["response_policy"]["recall_policy"] for trace in traces(rows, workspace)] == [
        "ranked_ledger"
    ]


def test_items_and_tokens_are_kept_to(function: rig.Function, workspace: str, ledger: RankedLedger) -> None:
    for part in range(6):
        ledger.record(
            f"Queue decision {part}: " + "word " * (20 if part < 2 else 400),
            rationale="because " * 10,
            alternatives=["another queue " * 20] * 3,
            summary=f"Queue decision {part} in short" if part < 5 else "long " * 390,
        )
    limits = {"max_items": 5, "max_tokens": 256}
    answer = recall(function, workspace, "queue decision", limits=limits)
    policy = answer["policy"]
    assert len(ids(answer)) + len(policy["dropped"]) == 5
    assert policy["shortened"]
    shown = [memory for memory in answer["memories"] if memory["ledger"]["shortened"]]
    assert [memory["memory_id"] for memory in shown] == policy["shortened"]
    for memory in shown:
        assert memory["content"] == memory["summary"]
        assert memory["ledger"]["rationale"] is None
        assert "alternatives" not in memory["ledger"]
    assert all("alternatives" not in memory["ledger"] for memory in answer["memories"])
    texts = [[memory["content"], memory["ledger"]["rationale"] or ""] for memory in answer["memories"]]
    assert sum(len(text) for parts in texts for text in parts) <= 4 * 256
    assert len(ids(recall(function, workspace, "queue decision", limits={"max_items": 2}))) == 2
    roomy = recall(function, workspace, "queue decision", limits={"max_tokens": 20000})
    assert all(len(memory["ledger"]["alternatives"]) == 3 for memory in roomy["memories"])


def test_whole_hits_are_answered_where_they_are_asked_for(
    function: rig.Function, workspace: str, ledger: RankedLedger
) -> None:
    ledger.record(QUEUE, rationale="One backup")
    answer = recall(function, workspace, JOBS, with_hits=True)
    assert answer["memories"][0]["ledger"]["hit"]["line"].startswith("- [step 0")
    assert "hit" not in recall(function, workspace, JOBS)["memories"][0]["ledger"]


def test_a_text_hit_has_no_similarity_and_does_not_pass_for_one(
    function: rig.Function, workspace: str, rows: Rows, ledger: RankedLedger
) -> None:
    ledger.record(QUEUE)
    answer = recall(function, workspace, "job queue")
    (memory,) = answer["memories"]
    assert memory["similarity"] == 0
    assert memory["ledger"]["relevance_source"] == "fts"
    assert memory["ledger"]["relevance"] > 0
    (trace,) = traces(rows, workspace)
    (item,) = items(rows, trace)
    assert item["similarity"] == 0
    assert item["use_policy_snapshot"]["relevance_source"] == "fts"
    (stats,) = ledger.policy_stats()
    assert stats.avg_similarity is None


def test_what_this_policy_does_not_apply_is_said(
    function: rig.Function, workspace: str, ledger: RankedLedger
) -> None:
    ledger.record(QUEUE)
    answer = recall(function, workspace, JOBS, limits={"recency_days": 1})
    assert answer["policy"]["not_applied"] == ["limits.recency_days"]


def test_scores_beyond_the_columns_of_a_trace_cost_nobody_the_answer(
    function: rig.Function, workspace: str, rows: Rows, ledger: RankedLedger
) -> None:
    ledger.record(QUEUE, importance=1)
    answer = recall(function, workspace, JOBS, ranking={"weights": {"importance": 1e300}})
    assert answer["memories"][0]["ledger"]["score"] == pytest.approx(1e300)
    assert answer["memories"][0]["ranking_score"] == 999.9999
    (trace,) = traces(rows, workspace)
    assert len(items(rows, trace)) == 1


def test_a_recall_is_counted_once_and_a_use_once_however_often_it_is_sent(
    function: rig.Function, workspace: str, ledger: RankedLedger
) -> None:
    queue, login = ids(write(function, workspace, QUEUE, LOGIN))
    request_id = recall(function, workspace, JOBS)["request_id"]
    marks = {"used_memory_ids": [queue], "ignored": [{"memory_id": login, "reason": "another matter"}]}
    for _ in range(2):
        assert function.http.post(f"/recall/{request_id}/usage", json=marks).json() == {
            **{"ok": True, "used": 1, "ignored": 1}
        }
    counts = {id: (ledger.get(id).recall_count, ledger.get(id).used_count) for id in (queue, login)}
    assert counts == {queue: (1, 1), login: (1, 0)}
    (stats,) = ledger.policy_stats()
    assert (stats.used_rate, stats.ignored_rate) == (0.5, 0.5)

    by_vector = recall(function, workspace, JOBS, recall_policy="vector")["request_id"]
    assert function.http.post(f"/recall/{by_vector}/usage", json=marks).status_code == 200
    assert ledger.get(queue).recall_count == 1
    assert ledger.get(queue).used_count == 1
    assert function.http.post(f"/recall/{uuid4()}/usage", json=marks).status_code == 404


def test_a_use_that_the_function_did_not_take_is_not_counted(
    function: rig.Function, workspace: str, rows: Rows, ledger: RankedLedger
) -> None:
    queue = ledger.record(QUEUE)
    request_id = recall(function, workspace, JOBS)["request_id"]
    (trace,) = traces(rows, workspace)
    # marked by the host, and nobody has counted it yet
    rows("update agent_memory_recall_items set used = true where trace_id = %s returning id", trace["id"])
    usage, marks = f"/recall/{request_id}/usage", {"used_memory_ids": [str(queue.memory_id)]}
    assert function.http.post(usage, json=marks, headers={"x-brain-key": "wrong"}).status_code == 401
    assert function.http.post(usage, json={"used_memory_ids": "all"}).status_code == 400
    assert ledger.get(queue).used_count == 0
    assert function.http.post(usage, json=marks).status_code == 200
    assert ledger.get(queue).used_count == 1


def test_fifty_recalls_at_once_keep_apart(
    function: rig.Function, workspace: str, rows: Rows, ledger: RankedLedger
) -> None:
    for part in range(5):
        ledger.record(f"Queue decision {part}")

    def one(number: int) -> tuple[int, httpx.Response]:
        policy = "vector" if number % 5 == 0 else "ranked_ledger"
        limits = {"max_items": number % 4 + 1}
        query = f"queue decision {number}"
        return number, ask(
            function, workspace, query, recall_policy=policy, limits=limits, current_step=number
        )

    with ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(one, range(50)))
    assert {answer.status_code for _, answer in answers} == {200}
    left = {str(trace["request_id"]): trace for trace in traces(rows, workspace)}
    assert len(left) == 50
    for number, answer in answers:
        trace = left[answer.json()["request_id"]]
        assert trace["query"] == f"queue decision {number}"
        ranked = number % 5 != 0
        assert ("policy" in answer.json()) is ranked
        assert (trace["response_policy"]["recall_policy"] == "ranked_ledger") is ranked
        if ranked:
            assert answer.json()["policy"]["arguments"]["p_current_step"] == number
            assert len(items(rows, trace)) == len(ids(answer.json())) == number % 4 + 1
    counted = rows(
        "select sum(recall_count) as n from agent_decision_ledger where workspace_id = %s", workspace
    )
    assert counted[0]["n"] == sum(number % 4 + 1 for number in range(50) if number % 5)


def test_a_client_that_hangs_up_leaves_a_whole_trace_or_none(
    function: rig.Function, workspace: str, rows: Rows, ledger: RankedLedger
) -> None:
    ledger.record(QUEUE)
    sent = json.dumps(question(workspace, "job queue")).encode()
    address = urlsplit(function.url)
    head = (
        f"POST {address.path}/recall HTTP/1.1\r\nhost: x\r\nx-brain-key: {rig.ACCESS_KEY}\r\n"
        f"content-length: {len(sent)}\r\n\r\n"
    ).encode()
    for said in (head + sent, head + sent[:-10]):
        with socket.create_connection((address.hostname, address.port)) as client:
            client.sendall(said)
    awaited(lambda: traces(rows, workspace))
    assert len(ids(recall(function, workspace, "job queue"))) == 1
    whole, _ = awaited(lambda: len(found := traces(rows, workspace)) == 2 and found)
    assert len(items(rows, whole)) == 1


# --- copies that differ ---


def test_memories_without_an_id_and_a_trace_written_behind_the_answer(
    project: StackInfo, embeddings: str, tmp_path: Path, rows: Rows, ledger: RankedLedger
) -> None:
    workspace = ledger.workspace
    for part in range(3):
        ledger.record(f"Queue decision {part}")
    traced, audited = "  const { data: trace, error: traceError }", "  await audit(payload, [returned]);"
    folder = patched(
        tmp_path,
        ("      memory_id: m.id,\n      memory_type", "      memory_type"),
        (traced, f"  const behind = (async () => {{\n{traced}"),
        (f"{audited}\n\n", f"{audited}\n  }})();\n  behind.catch(console.error);\n\n"),
    )
    with rig.running(folder, project, embeddings) as function:
        answer = recall(function, workspace, "queue decision", limits={"max_items": 2})
        assert [memory["ledger"]["step_index"] for memory in answer["memories"]] == [2, 1]
        (trace,) = awaited(lambda: traces(rows, workspace))
        kept = awaited(lambda: items(rows, trace))
    assert [item["use_policy_snapshot"]["step_index"] for item in kept] == [2, 1]
    assert trace["response_policy"]["recall_policy"] == "ranked_ledger"


def test_memories_in_another_order_keep_their_own_ledger(
    project: StackInfo, embeddings: str, tmp_path: Path, ledger: RankedLedger
) -> None:
    steps = {f"Queue decision {part}": part for part in range(3)}
    for content in steps:
        ledger.record(content)
    folder = patched(tmp_path, ("memories: ranked.map(", "memories: [...ranked].reverse().map("))
    with rig.running(folder, project, embeddings) as function:
        answer = recall(function, ledger.workspace, "queue decision")
    told = {memory["content"]: memory["ledger"]["step_index"] for memory in answer["memories"]}
    assert told == steps
    assert [*told] == [*steps]


COLUMNS = (
    "id, thought_id, project_id, memory_type, summary, content, task_id, lifecycle_status, confidence, visibility, "
    "created_at, review_status, requires_user_confirmation, can_use_as_instruction, can_use_as_evidence"
)


@pytest.mark.parametrize("more", ["", ', "metadata"', ", refs:agent_memory_source_refs ( uri )"])
def test_rows_have_the_columns_that_the_function_selects(
    project: StackInfo, embeddings: str, tmp_path: Path, ledger: RankedLedger, more: str
) -> None:
    ledger.record(QUEUE, metadata={"of": "ours"})
    shown = "      created_at: m.created_at,\n"
    folder = patched(
        tmp_path,
        ('.select()\n    .eq("workspace_id"', f""".select('{COLUMNS}{more}')\n    .eq("workspace_id\""""),
        (shown, f"{shown}      columns: Object.keys(m),\n"),
    )
    with rig.running(folder, project, embeddings) as function:
        (memory,) = recall(function, ledger.workspace, JOBS)["memories"]
    assert memory["content"] == QUEUE
    extra = {"": set(), ', "metadata"': {"metadata"}}.get(more, {"refs"})
    assert set(memory["columns"]) == {*COLUMNS.split(", "), *extra, "similarity", "ranking_score"}


@pytest.mark.parametrize(
    "answered",
    [
        "c.json({ memories: [] })",
        'new Response("data: []", { headers: { "content-type": "text/event-stream" } })',
    ],
)
def test_an_answer_that_came_before_the_ranked_list_does_not_pass_for_a_ranked_one(
    project: StackInfo, embeddings: str, workspace: str, tmp_path: Path, answered: str
) -> None:
    parsed = "  const payload = recallSchema.parse(await c.req.json());\n  const embedding"
    early = parsed.replace("\n", f'\n  if (payload.query === "known") return {answered};\n', 1)
    folder = patched(tmp_path, (parsed, early))
    with rig.running(folder, project, embeddings) as function:
        assert ask(function, workspace, "known", recall_policy="vector").status_code == 200
        refused = ask(function, workspace, "known")
        assert refused.status_code == 503
        assert refused.json()["code"] == "bypassed"
        assert ask(function, workspace, "unknown").status_code == 200


def test_headers_and_status_of_the_functions_answer_stay(
    project: StackInfo, embeddings: str, workspace: str, tmp_path: Path, ledger: RankedLedger
) -> None:
    ledger.record(QUEUE)
    end = "      created_at: m.created_at,\n    })),\n  });"
    cors = 'app.use("*", async (c, next) => {\n  c.header("access-control-allow-origin", "https://app.example");\n'
    folder = patched(
        tmp_path,
        ('app.use("*", async (c, next) => {\n', cors),
        (end, end.replace(");", ', 203, { "x-copy": "1", "content-length": "7" });')),
    )
    with rig.running(folder, project, embeddings) as function:
        answer = ask(function, workspace, JOBS)
        assert answer.status_code == 203
        assert answer.headers["x-copy"] == "1"
        assert answer.json()["policy"]["recall_policy"] == "ranked_ledger"
        refused = ask(function, workspace, JOBS, ranking={"similarity_floor": 1})
        assert refused.status_code == 400
        for one in (answer, refused):
            assert one.headers["access-control-allow-origin"] == "https://app.example"
            assert one.headers["content-type"].startswith("application/json")


def test_an_older_zod_and_inline_specifiers_do_as_well(
    project: StackInfo, embeddings: str, tmp_path: Path, ledger: RankedLedger
) -> None:
    ledger.record(QUEUE)
    folder = patched(
        tmp_path,
        ('from "hono"', 'from "npm:hono@4"'),
        ('from "hono/', 'from "npm:hono@4/'),
        ('from "zod"', 'from "npm:zod@3"'),
        ('from "@supabase/supabase-js"', 'from "npm:@supabase/supabase-js@2"'),
    )
    (folder / "deno.json").unlink()
    with rig.running(folder, project, embeddings, service_key=project.service_role_key) as function:
        assert len(ids(recall(function, ledger.workspace, JOBS, current_step=7))) == 1
        assert ask(function, ledger.workspace, JOBS, ranking={"half_life_steps": -1}).status_code == 400
        written = write(function, ledger.workspace, {"content": LOGIN, "step_index": 5})
        assert written["ledger"]["decisions"][0]["step_index"] == 5
        assert ids(recall(function, ledger.workspace, LOGIN))[0] == ids(written)[0]
