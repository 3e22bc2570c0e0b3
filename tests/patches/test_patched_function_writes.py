"""What a patched function writes: decisions as objects, links, and the reviews that replace a decision."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest

from ranked_ledger import RankedLedger
from ranked_ledger.stack import StackInfo
from tests.patches import rig
from tests.patches.patched import Rows, body, ids, patched, recall, write, writing

QUEUE = "The job queue lives in PostgreSQL, beside the data"
LOGIN = "People sign in with a passkey"
LOGS = "Logs are kept for thirty days"


@pytest.fixture(scope="module")
def function(
    project: StackInfo, embeddings: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[rig.Function]:
    folder = patched(tmp_path_factory.mktemp("patched"))
    with rig.running(folder, project, embeddings) as function:
        yield function


def memories(rows: Rows, workspace: str) -> list[dict[str, Any]]:
    return rows("select * from agent_memories where workspace_id = %s order by content", workspace)


def refused(function: rig.Function, workspace: str, *decisions: object, status: int) -> dict[str, Any]:
    answer = function.http.post("/writeback", json=writing(workspace, *decisions))
    assert answer.status_code == status, answer.text
    return answer.json()


# --- write-back ---


def test_a_write_back_of_strings_is_the_functions_own(
    function: rig.Function, workspace: str, ledger: RankedLedger
) -> None:
    answer = write(function, workspace, QUEUE, LOGIN, confidence=0.8)
    assert set(answer) == {"schema_version", "memories"}
    queue, login = (ledger.get(one) for one in ids(answer))
    assert (queue.content, queue.step_index, queue.importance, queue.rationale) == (QUEUE, 0, 0.8, None)
    assert (login.content, login.step_index) == (LOGIN, 1)


def test_a_decision_as_an_object_reaches_the_ledger_whole(
    function: rig.Function, workspace: str, rows: Rows, ledger: RankedLedger
) -> None:
    ground = ledger.record(LOGS, step=3)
    decision = {
        "content": f"  {QUEUE} ",
        "rationale": "One backup, one transaction",
        "importance": 0.9,
        "step_index": 12,
        "alternatives": ["Redis", "A queue of the cloud's"],
        "depends_on": [str(ground.memory_id), str(ground.memory_id)],
        "confidence": 0.7,
    }
    answer = write(
        function, workspace, decision, LOGIN, {"content": "And another"}, lessons=[LOGS], confidence=0.4
    )
    by_type = {memory["summary"].strip(): memory["memory_id"] for memory in answer["memories"]}
    queue = ledger.get(by_type[QUEUE])
    assert queue.rationale == decision["rationale"]
    assert (queue.importance, queue.step_index) == (0.9, 12)
    assert list(queue.alternatives) == decision["alternatives"]
    assert [end.memory_id for end in queue.edges_out] == [ground.memory_id]
    kept = {row["content"].strip(): row for row in memories(rows, workspace) if row["created_by"] == "agent"}
    assert float(kept[QUEUE]["confidence"]) == 0.7
    assert float(kept[LOGIN]["confidence"]) == float(kept["And another"]["confidence"]) == 0.4
    assert kept[QUEUE]["metadata"]["step_index"] == 12
    assert kept[LOGIN]["metadata"] == {}

    told = answer["ledger"]
    assert [(one["index"], one["memory_id"]) for one in told["decisions"]] == [
        *((0, by_type[QUEUE]), (2, by_type["And another"]))
    ]
    assert (told["decisions"][0]["step_index"], told["decisions"][0]["importance"]) == (12, 0.9)
    assert told["linked"] == [{"memory_id": by_type[QUEUE], "depends_on": str(ground.memory_id)}]
    assert (told["not_linked"], told["not_written"]) == ([], [])

    (first, *_) = recall(function, workspace, "job queue")["memories"]
    assert first["ledger"]["rationale"] == decision["rationale"]
    assert first["ledger"]["alternatives"] == decision["alternatives"]
    assert first["ledger"]["depends_on"] == [str(ground.memory_id)]
    assert first["ledger"]["rests_on_retired"] is False
    ledger.set_lifecycle(ground, "rejected")
    (first, *_) = recall(function, workspace, "job queue")["memories"]
    assert first["ledger"]["rests_on_retired"] is True


def test_two_objects_of_one_text_are_two_decisions(
    function: rig.Function, workspace: str, ledger: RankedLedger
) -> None:
    answer = write(function, workspace, *({"content": QUEUE, "rationale": f"Reason {n}"} for n in range(2)))
    told = [one["memory_id"] for one in answer["ledger"]["decisions"]]
    assert told == ids(answer)
    assert [ledger.get(one).rationale for one in told] == ["Reason 0", "Reason 1"]


@pytest.mark.parametrize(
    ("wrong", "path"),
    [
        ({}, ["content"]),
        ({"content": " "}, ["content"]),
        ({"content": QUEUE, "importance": 1.5}, ["importance"]),
        ({"content": QUEUE, "importance": "high"}, ["importance"]),
        ({"content": QUEUE, "step_index": 1.5}, ["step_index"]),
        ({"content": QUEUE, "step_index": 10**9 + 1}, ["step_index"]),
        ({"content": QUEUE, "alternatives": ["a"] * 21}, ["alternatives"]),
        ({"content": QUEUE, "alternatives": [""]}, ["alternatives", 0]),
        ({"content": QUEUE, "depends_on": ["the other one"]}, ["depends_on", 0]),
        ({"content": QUEUE, "confidence": -1}, ["confidence"]),
        ({"content": QUEUE, "pinned": True}, []),
    ],
)
def test_an_object_that_is_not_valid_is_refused_and_nothing_written(
    function: rig.Function, workspace: str, rows: Rows, wrong: dict[str, Any], path: list[object]
) -> None:
    answer = refused(function, workspace, QUEUE, wrong, status=400)
    (issue,) = answer["issues"]
    assert issue["path"] == ["memory_payload", "decisions", 1, *path]
    assert memories(rows, workspace) == []


SECRETS = [
    "sk-" + "a" * 30,
    "sb_secret_" + "b" * 20,
    "AKIA" + "A" * 16,
    "ghp_" + "c" * 36,
    "postgres" + "://owner:hunter22@db.example/postgres",
    "-----BEGIN " + "RSA PRIVATE KEY-----",
    "api_key = " + "a1b2c3d4e5f6g7",
]


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("place", ["rationale", "alternatives"])
def test_a_secret_beside_the_content_is_refused_as_one_in_it_is(
    function: rig.Function, workspace: str, rows: Rows, place: str, secret: str
) -> None:
    text = f"It works with {secret}, they say"
    decision = {"content": QUEUE, place: text if place == "rationale" else ["Nothing", text]}
    answer = refused(function, workspace, decision, status=422)
    assert secret not in answer["error"]
    assert memories(rows, workspace) == []


def test_no_secret_is_seen_where_there_is_none(function: rig.Function, workspace: str) -> None:
    rationale = "The token: it is rotated monthly. See https://docs.example/a:b@c, task-3, and the password rules of 2024."
    assert write(function, workspace, {"content": QUEUE, "rationale": rationale})["ledger"]["decisions"]


def test_the_function_still_checks_the_content_of_an_object(
    function: rig.Function, workspace: str, rows: Rows
) -> None:
    answer = refused(function, workspace, {"content": "the key is sk-" + "a" * 30}, status=422)
    assert answer["error"].startswith("a decision is refused")
    assert memories(rows, workspace) == []


def test_what_cannot_be_linked_is_told_and_the_rest_is_written(
    function: rig.Function, workspace: str, ledger: RankedLedger
) -> None:
    ground = ledger.record(LOGS)
    absent = str(uuid4())
    (foreign,) = ids(write(function, f"other-{workspace}", LOGS))
    grounds = [absent, str(ground.memory_id), foreign]
    told = write(function, workspace, {"content": QUEUE, "depends_on": grounds})["ledger"]
    assert [one["depends_on"] for one in told["linked"]] == [str(ground.memory_id)]
    assert [(one["depends_on"], one["code"]) for one in told["not_linked"]] == [
        *((absent, "RL404"), (foreign, "RL404"))
    ]
    assert all(one["reason"] for one in told["not_linked"])


def test_a_repeat_of_a_key_is_the_functions_and_says_that_nothing_was_written(
    function: rig.Function, workspace: str, rows: Rows
) -> None:
    decision = {"content": QUEUE, "rationale": "One backup"}
    first = write(function, workspace, decision, idempotency_key=workspace)
    sent = writing(workspace, decision, idempotency_key=workspace)
    repeat = function.http.post("/writeback", json=sent)
    assert repeat.status_code == 200
    assert ids(repeat.json()) == ids(first)
    (missing,) = repeat.json()["ledger"]["not_written"]
    assert (missing["index"], missing["memory_id"]) == (0, None)
    assert len(memories(rows, workspace)) == 1


def test_a_wrong_key_writes_nothing_and_learns_nothing(
    function: rig.Function, workspace: str, rows: Rows, ledger: RankedLedger
) -> None:
    queue, login = ledger.record(QUEUE), ledger.record(LOGIN)
    sent = writing(workspace, {"content": LOGS, "importance": 7})
    with httpx.Client(base_url=function.url, headers={"x-brain-key": "wrong"}) as stranger:
        assert stranger.post("/writeback", json=sent).status_code == 401
        for by in ({"by": str(login.memory_id)}, {}):
            review = stranger.patch(f"/memories/{queue.memory_id}/review", json={"action": "supersede", **by})
            assert review.status_code == 401
    assert len(memories(rows, workspace)) == 2
    assert ledger.get(queue).lifecycle_status == "active"


def test_rows_of_other_types_keep_their_defaults(function: rig.Function, workspace: str, rows: Rows) -> None:
    write(
        function, workspace, {"content": QUEUE, "confidence": 0.9}, lessons=[LOGS], failures=["It was slow"]
    )
    kept = {row["memory_type"]: row for row in memories(rows, workspace)}
    assert {name: float(row["confidence"]) for name, row in kept.items()} == {
        **{"decision": 0.9, "lesson": 0.5, "failure": 0.5}
    }
    assert len({row["id"] for row in kept.values()}) == 3


BARE = (
    (
        "        ...entry,\n",
        "        memory_type: entry.memory_type,\n        content: entry.content.trim(),\n",
    ),
    ("        confidence: payload.provenance.confidence,\n", ""),
)
ONE_BY_ONE = (
    (
        "const { data: memories, error } = await supabase",
        "const one = async (entry: typeof entries[0], index: number) => await supabase",
    ),
    ("entries.map((entry, index) => ({\n        ...columnsOf", "({\n        ...columnsOf"),
    ("        idempotency_key: keys[index],\n      })),", "        idempotency_key: keys[index],\n      }),"),
    (
        '.select("memory_id:id, memory_type, summary");\n  if (error) throw new Error(error.message);',
        '.select("memory_id:id, memory_type, summary").single();\n  const memories: any[] = [];\n'
        "  for (const [index, entry] of entries.entries()) memories.push(must<any>(await one(entry, index)));",
    ),
)


READ_BEFORE = (
    (
        "  await next();\n",
        '  if (c.req.method === "POST") Object.keys(await c.req.json());\n  await next();\n',
    ),
)


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param(BARE, id="rows without metadata"),
        pytest.param(ONE_BY_ONE, id="one by one"),
        pytest.param(READ_BEFORE, id="a middleware that reads the body first"),
    ],
)
def test_copies_that_insert_in_another_way_are_served_too(
    project: StackInfo, embeddings: str, tmp_path: Path, ledger: RankedLedger, changes: tuple[tuple[str, str]]
) -> None:
    with rig.running(patched(tmp_path, *changes), project, embeddings) as function:
        decision = {"content": f"{QUEUE}\n", "rationale": "One backup", "confidence": 0.9}
        answer = write(function, ledger.workspace, decision, LOGIN, lessons=[LOGS])
    queue, login, _ = ids(answer)
    assert ledger.get(queue).rationale == "One backup"
    assert (ledger.get(queue).importance, ledger.get(login).importance) == (0.9, 0.5)
    assert ledger.get(login).metadata == {}


GUARDED = (
    (
        'app.post("/writeback", async (c) => {\n',
        'app.post("/writeback", async (c) => {\n  c.header("access-control-allow-origin", "*");\n'
        '  if (c.req.header("x-mode") === "read") return c.json({ error: "read-only" }, 403);\n',
    ),
    (
        'app.patch("/memories/:id/review", async (c) => {\n',
        'app.patch("/memories/:id/review", async (c) => {\n'
        '  if (c.req.header("x-mode") === "read") return c.json({ error: "read-only" }, 403);\n'
        '  if (c.req.header("x-mode") === "own") return c.json({ superseded: true });\n',
    ),
)


def test_what_the_function_asks_of_a_caller_comes_first(
    project: StackInfo, embeddings: str, tmp_path: Path, workspace: str, rows: Rows
) -> None:
    with rig.running(patched(tmp_path, *GUARDED), project, embeddings) as function:
        old, new = ids(write(function, workspace, QUEUE, LOGIN))
        review, sent = f"/memories/{old}/review", {"action": "supersede", "by": new}
        for decision in ({"content": LOGS}, {"content": LOGS, "importance": 7}):
            body = writing(workspace, decision)
            answer = function.http.post("/writeback", json=body, headers={"x-mode": "read"})
            assert (answer.status_code, answer.json()) == (403, {"error": "read-only"})
        assert function.http.patch(review, json=sent, headers={"x-mode": "read"}).status_code == 403
        own = function.http.patch(review, json=sent, headers={"x-mode": "own"})
        assert own.json() == {"superseded": True}
        assert httpx.patch(f"{function.url}{review}", json=sent).status_code == 401
        assert {row["lifecycle_status"] for row in memories(rows, workspace)} == {"active"}

        refused = function.http.post(
            "/writeback", json=writing(workspace, {"content": LOGS, "importance": 7})
        )
        assert refused.status_code == 400
        assert refused.headers["access-control-allow-origin"] == "*"
        assert len(memories(rows, workspace)) == 2
        assert function.http.patch(review, json=sent).json()["changed"] is True


FLAT = (
    (
        "  memory_payload: z.object({\n    decisions: texts,",
        "  decisions: texts,\n  memory_payload: z.object({",
    ),
    (
        "...lists } = payload.memory_payload;",
        "...rest } = payload.memory_payload;\n  const lists = { decisions: payload.decisions, ...rest };",
    ),
)


def test_the_list_may_stand_in_the_body_itself(
    project: StackInfo, embeddings: str, tmp_path: Path, ledger: RankedLedger
) -> None:
    with rig.running(patched(tmp_path, *FLAT), project, embeddings) as function:
        decision = {"content": QUEUE, "rationale": "One backup"}
        sent = body(ledger.workspace, decisions=[decision, LOGIN], memory_payload={})
        answer = function.http.post("/writeback", json=sent)
        assert answer.status_code == 200, answer.text
        assert ledger.get(ids(answer.json())[0]).rationale == "One backup"
        sent["decisions"][0]["importance"] = 7
        (issue,) = function.http.post("/writeback", json=sent).json()["issues"]
        assert issue["path"] == ["decisions", 0, "importance"]


# --- review ---


@pytest.mark.parametrize("action", ["supersede", "merge"])
def test_a_decision_is_replaced_through_the_function(
    function: rig.Function, workspace: str, rows: Rows, ledger: RankedLedger, action: str
) -> None:
    old, new = ids(write(function, workspace, QUEUE, "The job queue moves to a service of its own"))
    sent = {"action": action, "by": new, "notes": "It grew", "actor_label": "pytest"}
    answer = function.http.patch(f"/memories/{old}/review", json=sent)
    assert answer.status_code == 200
    assert answer.json()["changed"] is True
    assert answer.json()["memory"]["lifecycle_status"] == "superseded"
    assert answer.json()["by"]["memory_id"] == new
    found = ledger.get(old)
    assert (found.lifecycle_status, found.successor) == ("superseded", UUID(new))
    assert found.review_status == ("merged" if action == "merge" else "pending")
    assert found.history[-1].reason == "It grew"
    assert ids(recall(function, workspace, "job queue")) == [new]
    (noted,) = rows(
        "select action, notes, actor_label from agent_memory_review_actions where memory_id = %s", old
    )
    assert tuple(noted.values()) == (action, "It grew", "pytest")

    again = function.http.patch(f"/memories/{old}/review", json=sent)
    assert again.json()["changed"] is False
    back = function.http.patch(f"/memories/{new}/review", json={"action": action, "by": old})
    assert (back.status_code, back.json()["code"]) == (409, "RL461")


def test_a_review_says_what_it_needs_and_what_is_not_there(
    function: rig.Function, workspace: str, ledger: RankedLedger
) -> None:
    (queue,) = ids(write(function, workspace, QUEUE))
    for by in ({}, {"by": None}, {"by": "the other one"}, {"by": [queue]}):
        answer = function.http.patch(f"/memories/{queue}/review", json={"action": "supersede", **by})
        assert answer.status_code == 400
        assert '"by"' in answer.json()["hint"]
    absent = {"action": "supersede", "by": str(uuid4())}
    answer = function.http.patch(f"/memories/{queue}/review", json=absent)
    assert (answer.status_code, answer.json()["code"]) == (404, "RL404")
    assert ledger.get(queue).lifecycle_status == "active"


def test_everything_else_of_a_review_is_the_functions(
    function: rig.Function, workspace: str, ledger: RankedLedger
) -> None:
    answer = write(function, workspace, QUEUE, LOGIN, lessons=[LOGS])
    queue, login, lesson = ids(answer)
    confirmed = function.http.patch(f"/memories/{queue}/review", json={"action": "confirm", "notes": "seen"})
    assert confirmed.json()["memory"]["review_status"] == "confirmed"
    by = {"action": "supersede", "by": queue}
    assert (
        function.http.patch(f"/memories/{lesson}/review", json=by).status_code == 500
    )  # as before the patch
    assert function.http.patch(f"/memories/{uuid4()}/review", json=by).status_code == 404
    elsewhere = by | {"workspace_id": "elsewhere"}
    assert function.http.patch(f"/memories/{login}/review", json=elsewhere).status_code == 500
    not_text = by | {"notes": 7}
    assert function.http.patch(f"/memories/{login}/review", json=not_text).status_code == 400
    assert function.http.patch("/memories/unknown/review", json=by).status_code == 500
    assert ledger.get(login).lifecycle_status == "active"
