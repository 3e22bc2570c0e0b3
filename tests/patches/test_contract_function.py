"""The function that the patch is tested on keeps to the contract, faults included, under Deno and with everything real."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest

from ranked_ledger.stack import StackInfo
from tests.patches import rig
from tests.patches.patched import Rows, body, writing

QUEUE = "The job queue lives in PostgreSQL, beside the data"
LOGIN = "People sign in with a passkey"


@pytest.fixture(scope="module")
def function(project: StackInfo, embeddings: str) -> Iterator[rig.Function]:
    with rig.running(rig.CONTRACT_FUNCTION, project, embeddings) as function:
        yield function


def write(function: rig.Function, workspace: str, *decisions: object, **more: Any) -> list[str]:
    answer = function.http.post("/writeback", json=writing(workspace, *decisions, **more))
    assert answer.status_code == 200, answer.text
    return [memory["memory_id"] for memory in answer.json()["memories"]]


def recall(function: rig.Function, workspace: str, query: str, **more: object) -> dict[str, Any]:
    asked = body(workspace, query=query, scope={"include_unconfirmed": True}, **more)
    answer = function.http.post("/recall", json=asked)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_health_is_told_to_whoever_has_the_key(function: rig.Function) -> None:
    assert function.http.get("/health").json()["ok"] is True
    assert httpx.get(f"{function.url}/health", params={"key": rig.ACCESS_KEY}).status_code == 200
    assert httpx.get(f"{function.url}/health").status_code == 401


@pytest.mark.parametrize("path", ["/recall", "/writeback", f"/recall/{rig.NOBODY}/usage"])
def test_a_wrong_key_is_refused(function: rig.Function, path: str) -> None:
    refused = function.http.post(path, json={}, headers={"x-brain-key": "wrong"})
    assert refused.status_code == 401


@pytest.mark.parametrize(
    "asked", [b"no json", b"{}", b'{"schema_version": "1", "workspace_id": "w", "runtime": {"name": "n"}}']
)
def test_an_invalid_body_is_refused(function: rig.Function, asked: bytes) -> None:
    assert function.http.post("/recall", content=asked).status_code == 400


def test_what_was_written_back_is_found_by_its_vector(
    function: rig.Function, workspace: str, rows: Rows
) -> None:
    queue, login = write(function, workspace, QUEUE, LOGIN, confidence=0.8)
    answer = recall(function, workspace, "Where are jobs kept until a worker takes them?")
    assert [memory["memory_id"] for memory in answer["memories"]] == [queue, login]

    (trace,) = rows(
        "select * from agent_memory_recall_traces where request_id = %s and workspace_id = %s",
        *(answer["request_id"], workspace),
    )
    assert trace["response_policy"] == {"max_items": 10, "include_unconfirmed": True}
    items = rows("select * from agent_memory_recall_items where trace_id = %s order by rank", trace["id"])
    assert [(item["rank"], item["memory_id"]) for item in items] == [(1, UUID(queue)), (2, UUID(login))]
    assert [float(item["similarity"]) for item in items] == [
        pytest.approx(memory["similarity"], abs=5e-5) for memory in answer["memories"]
    ]
    events = rows("select event_type from agent_memory_audit_events where workspace_id = %s", workspace)
    assert sorted(event["event_type"] for event in events) == [
        *("memory_written", "memory_written", "recall_requested")
    ]
    shown = function.http.get(f"/recall-traces/{answer['request_id']}").json()
    assert [item["memory_id"] for item in shown["items"]] == [queue, login]


def test_recall_keeps_to_its_scope(function: rig.Function, workspace: str) -> None:
    (here,) = write(function, workspace, QUEUE, project_id="here")
    write(function, workspace, LOGIN, project_id="there")
    write(function, workspace, lessons=["Nobody else may read this"], visibility="personal")
    found = recall(function, workspace, QUEUE, project_id="here")
    assert [memory["memory_id"] for memory in found["memories"]] == [here]

    unconfirmed = function.http.post("/recall", json=body(workspace, query=QUEUE))
    assert unconfirmed.json()["memories"] == []


def test_only_as_many_as_were_asked_for_whatever_their_tokens(function: rig.Function, workspace: str) -> None:
    write(function, workspace, *(f"{QUEUE}, part {part}. " + "word " * 300 for part in range(3)))
    limits = {"max_items": 2, "max_tokens": 256}
    assert len(recall(function, workspace, QUEUE, limits=limits)["memories"]) == 2


def test_usage_marks_the_items_of_the_trace(function: rig.Function, workspace: str) -> None:
    queue, login = write(function, workspace, QUEUE, LOGIN)
    request_id = recall(function, workspace, QUEUE)["request_id"]
    marks = {"used_memory_ids": [queue], "ignored": [{"memory_id": login, "reason": "another matter"}]}
    assert function.http.post(f"/recall/{request_id}/usage", json=marks).status_code == 200

    items = function.http.get(f"/recall-traces/{request_id}").json()["items"]
    assert [(item["used"], item["ignored_reason"]) for item in items] == [
        *((True, None), (False, "another matter"))
    ]
    assert function.http.post(f"/recall/{uuid4()}/usage", json=marks).status_code == 404


def test_a_decision_is_a_string_with_the_confidence_of_the_call(
    function: rig.Function, workspace: str, rows: Rows
) -> None:
    more = {"next_steps": ["Measure it"], "artifacts": [{"kind": "file", "description": "The measurements"}]}
    write(function, workspace, QUEUE, unresolved_questions=["How large is it?"], confidence=0.7, **more)
    kept = rows(
        "select memory_type, confidence::float8 from agent_memories where workspace_id = %s order by 1",
        workspace,
    )
    assert [tuple(row.values()) for row in kept] == [
        *(("artifact_reference", 0.7), ("decision", 0.7), ("open_question", 0.7), ("work_log", 0.7))
    ]
    objects = writing(workspace, {"content": QUEUE, "importance": 1})
    assert function.http.post("/writeback", json=objects).status_code == 400


def test_a_repeated_write_back_answers_what_it_wrote(function: rig.Function, workspace: str) -> None:
    written = write(function, workspace, QUEUE, idempotency_key=workspace)
    repeat = function.http.post("/writeback", json=writing("other", QUEUE, idempotency_key=workspace))
    assert repeat.status_code == 200
    assert [memory["memory_id"] for memory in repeat.json()["memories"]] == written


@pytest.mark.parametrize("text", ["the key is sk-" + "a" * 30, "user: hi\nassistant: hi\n" * 2])
def test_secrets_and_transcripts_are_not_kept(
    function: rig.Function, workspace: str, rows: Rows, text: str
) -> None:
    assert function.http.post("/writeback", json=writing(workspace, QUEUE, text)).status_code == 422
    assert rows("select from agent_memories where workspace_id = %s", workspace) == []


def test_a_confirmed_memory_waits_for_review_no_more(function: rig.Function, workspace: str) -> None:
    (queue,) = write(function, workspace, QUEUE)
    waiting = {"workspace_id": workspace}
    assert len(function.http.get("/memories/review", params=waiting).json()["memories"]) == 1

    confirmed = function.http.patch(f"/memories/{queue}/review", json={"action": "confirm"})
    assert confirmed.json()["memory"]["review_status"] == "confirmed"
    assert function.http.get("/memories/review", params=waiting).json()["memories"] == []
    assert len(function.http.get("/memories", params=waiting).json()["memories"]) == 1
    shown = function.http.get(f"/memories/{queue}").json()["memory"]
    assert shown["provenance_status"] == "user_confirmed"


@pytest.mark.parametrize("action", ["supersede", "merge"])
def test_supersede_and_merge_fail_and_change_nothing(
    function: rig.Function, workspace: str, action: str
) -> None:
    (queue,) = write(function, workspace, QUEUE)
    assert function.http.patch(f"/memories/{queue}/review", json={"action": action}).status_code == 500
    assert function.http.get(f"/memories/{queue}").json()["memory"]["lifecycle_status"] == "active"


@pytest.mark.parametrize(
    "service",
    [
        pytest.param(rig.absent_embeddings, id="absent"),
        pytest.param(lambda: rig.answering_embeddings(rig.vector_of(1536)), id="another dimension"),
        pytest.param(lambda: rig.answering_embeddings({"error": "no credit"}, 402), id="refuses"),
    ],
)
def test_a_recall_without_a_usable_vector_fails(
    project: StackInfo, workspace: str, service: Callable[[], contextlib.AbstractContextManager[str]]
) -> None:
    with service() as url, rig.running(rig.CONTRACT_FUNCTION, project, url) as function:
        assert function.http.post("/recall", json=body(workspace, query=QUEUE)).status_code == 500


def test_a_recall_waits_for_a_silent_embedding_service(project: StackInfo, workspace: str) -> None:
    with rig.silent_embeddings() as url, rig.running(rig.CONTRACT_FUNCTION, project, url) as function:
        with pytest.raises(httpx.ReadTimeout):
            function.http.post("/recall", json=body(workspace, query=QUEUE), timeout=0.5)
        assert function.http.get("/health").status_code == 200


def test_a_copy_elsewhere_runs_with_inline_specifiers_and_an_older_zod(
    project: StackInfo, embeddings: str, workspace: str, tmp_path: Path
) -> None:
    folder = rig.copied(tmp_path)
    (folder / "deno.json").unlink()
    entry = folder / "index.ts"
    text = entry.read_text(encoding="utf-8")
    for bare, inline in (
        ('"hono', '"npm:hono@4'),
        ('"zod"', '"npm:zod@3"'),
        ('"@supabase/supabase-js"', '"npm:@supabase/supabase-js@2"'),
    ):
        text = text.replace(f"from {bare}", f"from {inline}")
    entry.write_text(text, encoding="utf-8")
    assert rig.complaints(entry) == ""
    key = project.service_role_key
    with rig.running(folder, project, embeddings, service_key=key) as function:
        (queue,) = write(function, workspace, QUEUE)
        assert recall(function, workspace, QUEUE)["memories"][0]["memory_id"] == queue
    assert sorted(path.name for path in folder.iterdir()) == ["index.ts"]
