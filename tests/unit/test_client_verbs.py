"""What the methods of both clients send and give, over written answers. Each runs on both clients."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import httpx
import pytest
import respx

import ranked_ledger as rl
from tests.unit import sdk_answers as answers
from tests.unit.conftest import MakeDriver
from tests.unit.sdk_drivers import Driver


def sent(route: respx.Route) -> list[dict[str, Any]]:
    return [json.loads(call.request.content) for call in route.calls]


class Lengths:
    """An embedder that can be followed by eye: a text's length and one."""

    model = "lengths"

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        self.asked.append(list(texts))
        return [[float(len(text)), 1.0] for text in texts]


class AsyncLengths(Lengths):
    async def embed(self, texts: Sequence[str]) -> list[list[float]]:  # type: ignore[override]
        return super().embed(texts)


class Broken:
    model = "broken"

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        raise OSError("no model here")


@pytest.mark.parametrize(
    "case",
    [
        ("get", (answers.MEMORY,), "get_decision", answers.decision(), {"p_memory_id": str(answers.MEMORY)}),
        (
            "unlink",
            (answers.MEMORY, answers.OTHER),
            "unlink_decisions",
            {
                "from_memory_id": str(answers.MEMORY),
                "to_memory_id": str(answers.OTHER),
                "relation": "depends_on",
                "removed": True,
            },
            {"p_from": str(answers.MEMORY), "p_to": str(answers.OTHER), "p_relation": "depends_on"},
        ),
        (
            "set_lifecycle",
            (answers.MEMORY, "stale"),
            "set_decision_lifecycle",
            answers.decision(changed=True),
            {"p_memory_id": str(answers.MEMORY), "p_lifecycle": "stale"},
        ),
        (
            "set_importance",
            (answers.MEMORY, 0),
            "set_decision_importance",
            answers.decision(changed=True),
            {"p_memory_id": str(answers.MEMORY), "p_importance": 0.0},
        ),
        (
            "pin",
            (answers.MEMORY,),
            "pin_decision",
            answers.decision(changed=True),
            {"p_memory_id": str(answers.MEMORY), "p_pinned": True},
        ),
        (
            "unpin",
            (answers.MEMORY,),
            "pin_decision",
            answers.decision(changed=True),
            {"p_memory_id": str(answers.MEMORY), "p_pinned": False},
        ),
        (
            "forget",
            (answers.MEMORY,),
            "forget_decision",
            {"memory_id": str(answers.MEMORY), "forgotten_at": answers.NOW, "already": False},
            {"p_memory_id": str(answers.MEMORY)},
        ),
        (
            "mark_used",
            (answers.REQUEST, answers.MEMORY),
            "mark_recall_usage",
            {"used": 1, "ignored": 0, "already": 0, "unknown": []},
            {"p_request_id": str(answers.REQUEST), "p_used": [str(answers.MEMORY)]},
        ),
        (
            "impact",
            (answers.MEMORY,),
            "decision_impact",
            {"memory_id": str(answers.MEMORY), "direct": 0, "total": 0, "live": 0},
            {"p_memory_id": str(answers.MEMORY), "p_limit": 500},
        ),
        ("settings", (), "get_workspace_settings", answers.settings(), {}),
        ("set_text_config", ("german",), "set_text_config", answers.settings(), {"p_text_config": "german"}),
        ("set_text_config", (None,), "set_text_config", answers.settings(), {}),
        (
            "clear_similarity_range",
            ("e5",),
            "set_similarity_range",
            answers.settings(),
            {"p_embedding_model": "e5"},
        ),
        ("policy_stats", (), "recall_policy_stats", [], {}),
        ("enroll_missing", (), "enroll_missing_decisions", {"enrolled": 0}, {"p_limit": 10_000}),
        (
            "check_copies",
            (),
            "check_copies",
            {"checked": 0, "wrong": [], "mended": False, "next": None},
            {"p_limit": 1000},
        ),
        ("status", (), "ledger_status", {"schema_version": 1}, {}),
    ],
)
def test_a_verb_calls_its_function_in_the_clients_workspace(
    server: respx.MockRouter, ledger: Driver, case: tuple[str, tuple[Any, ...], str, Any, dict[str, Any]]
) -> None:
    verb, arguments, function, answer, body = case
    route = server.post(f"/{function}").respond(json=answer)
    getattr(ledger, verb)(*arguments)
    assert sent(route) == [{"p_workspace_id": "acme", **body}]


def test_the_clients_project_is_the_default_and_none_means_all(
    server: respx.MockRouter, make: MakeDriver
) -> None:
    route = server.post("/recall_decisions").respond(json=answers.recall())
    ledger = make(project="billing")
    ledger.recall("x", trace=False)
    ledger.recall("x", trace=False, project="sales")
    ledger.recall("x", trace=False, project=None)
    ledger.with_options(project=None).recall("x", trace=False)
    assert [body.get("p_project_id") for body in sent(route)] == ["billing", "sales", None, None]


def test_a_given_key_and_a_given_request_id_are_sent_as_they_are(
    server: respx.MockRouter, ledger: Driver
) -> None:
    record = server.post("/record_decision").respond(json=answers.decision(replayed=True))
    recall = server.post("/recall_decisions").respond(json=answers.recall())
    assert ledger.record("x", idempotency_key="mine").replayed
    ledger.recall("x", request_id=answers.REQUEST)
    assert sent(record)[0]["p_idempotency_key"] == "mine"
    assert sent(recall)[0]["p_request_id"] == str(answers.REQUEST)


@pytest.mark.parametrize("key", ["", " ", "k" * 256, 3])
def test_a_wrong_key_is_refused_and_never_replaced(
    server: respx.MockRouter, ledger: Driver, key: Any
) -> None:
    with pytest.raises(rl.InvalidArgumentError, match="idempotency_key"):
        ledger.record("x", idempotency_key=key)
    with pytest.raises(rl.InvalidArgumentError, match="idempotency_key"):
        ledger.record_many(["x"], idempotency_key=key)
    assert not server.calls


def test_a_recall_without_a_trace_sends_no_request_id(server: respx.MockRouter, ledger: Driver) -> None:
    route = server.post("/recall_decisions").respond(json=answers.recall(traced=False))
    ledger.recall("x", trace=False)
    assert "p_request_id" not in sent(route)[0]


def test_a_recall_is_a_sequence_of_hits(server: respx.MockRouter, ledger: Driver) -> None:
    server.post("/recall_decisions").respond(
        json=answers.recall(answers.hit(), answers.hit(rank=2, memory_id=str(answers.OTHER)), new_field=1)
    )
    recall = ledger.recall("x")
    assert len(recall) == 2
    assert [hit.rank for hit in recall] == [1, 2]
    assert recall[1].memory_id == answers.OTHER
    assert recall.request_id == answers.REQUEST
    assert recall[0].score == 0.68745
    assert json.loads(json.dumps(recall.as_dict()))["hits"][0]["memory_id"] == str(answers.MEMORY)


def test_an_empty_recall_carries_its_hint(server: respx.MockRouter, ledger: Driver) -> None:
    server.post("/recall_decisions").respond(json=answers.recall(hint="This workspace has no decisions yet."))
    recall = ledger.recall("x")
    assert not recall
    assert recall.hint == "This workspace has no decisions yet."
    assert recall.to_prompt() == ""


def pages(count: int, size: int) -> Iterator[httpx.Response]:
    for begin in range(0, count, size):
        last = begin + size >= count
        found = answers.decisions(min(size, count - begin))
        cursor = None if last else {"step_index": begin, "memory_id": str(answers.MEMORY)}
        yield httpx.Response(200, json={"decisions": found, "next": cursor})


def test_a_timeline_asks_for_pages_as_it_is_walked(server: respx.MockRouter, ledger: Driver) -> None:
    route = server.post("/list_decisions").mock(side_effect=pages(5, 2))
    timeline = ledger.timeline(task="t", lifecycle=["active", "stale"], pinned=False, page_size=2)
    assert not route.called
    assert len(ledger.walked(timeline)) == 5
    assert [body.get("p_after") for body in sent(route)] == [
        None,
        {"step_index": 0, "memory_id": str(answers.MEMORY)},
        {"step_index": 2, "memory_id": str(answers.MEMORY)},
    ]
    assert sent(route)[0] == {
        "p_workspace_id": "acme",
        "p_task_id": "t",
        "p_lifecycle": ["active", "stale"],
        "p_pinned": False,
        "p_newest_first": True,
        "p_limit": 2,
    }


def test_a_timeline_stops_at_its_limit(server: respx.MockRouter, ledger: Driver) -> None:
    route = server.post("/list_decisions").mock(side_effect=[*pages(10, 2)])
    found = ledger.walked(ledger.timeline(page_size=2, limit=4).pages())
    assert [len(page) for page in found] == [2, 2]
    assert found[-1].next is not None
    assert [body["p_limit"] for body in sent(route)] == [2, 2]


def test_a_timeline_goes_on_from_a_cursor(server: respx.MockRouter, ledger: Driver) -> None:
    route = server.post("/list_decisions").mock(side_effect=pages(1, 2))
    ledger.walked(ledger.timeline(after={"step_index": 7}, newest_first=False))
    assert sent(route)[0]["p_after"] == {"step_index": 7}
    assert sent(route)[0]["p_newest_first"] is False


def written(request: httpx.Request) -> httpx.Response:
    elements = json.loads(request.content)["p_decisions"]
    found = [answers.decision(memory_id=str(uuid4()), content=element["content"]) for element in elements]
    return httpx.Response(200, json={"decisions": found, "replayed": False})


def test_many_are_written_in_batches_of_500_in_order(server: respx.MockRouter, ledger: Driver) -> None:
    route = server.post("/record_decisions").mock(side_effect=written)
    seen: list[int] = []
    made = ledger.record_many(
        (rl.NewDecision(f"decision {number}") for number in range(1_201)),
        idempotency_key="import",
        on_batch=lambda batch: seen.append(len(batch)),
    )
    assert [one.content for one in made] == [f"decision {number}" for number in range(1_201)]
    assert seen == [500, 500, 201]
    assert [body["p_idempotency_key"] for body in sent(route)] == ["import/0", "import/1", "import/2"]


def test_batches_are_bounded_in_bytes(server: respx.MockRouter, ledger: Driver) -> None:
    route = server.post("/record_decisions").mock(side_effect=written)
    ledger.record_many({"content": "x" * 250_000} for _ in range(70))
    assert sum(len(body["p_decisions"]) for body in sent(route)) == 70
    assert all(len(call.request.content) < 9 * 1024 * 1024 for call in route.calls)
    assert route.call_count == 3


def test_nothing_is_sent_for_no_decisions(server: respx.MockRouter, ledger: Driver) -> None:
    assert ledger.record_many([]) == []
    assert not server.calls


def test_an_error_carries_what_was_written_before_it(server: respx.MockRouter, ledger: Driver) -> None:
    refusal = httpx.Response(400, json=answers.error("RL409"))
    server.post("/record_decisions").side_effect = [
        written(httpx.Request("POST", "/", json={"p_decisions": [{"content": "x"}] * 500})),
        refusal,
    ]
    with pytest.raises(rl.ConflictError) as caught:
        ledger.record_many({"content": "x"} for _ in range(600))
    assert len(caught.value.written) == 500


def test_a_wrong_element_names_its_place(server: respx.MockRouter, ledger: Driver) -> None:
    server.post("/record_decisions").mock(side_effect=written)
    with pytest.raises(rl.InvalidArgumentError, match=r"decisions\[501\]: importance must lie") as caught:
        ledger.record_many({"content": "x", "importance": 2 if n == 501 else 1} for n in range(600))
    assert len(caught.value.written) == 500


def test_an_asynchronous_iterable_is_taken_by_the_asynchronous_client(
    server: respx.MockRouter, ledger: Driver
) -> None:
    async def stream() -> AsyncIterator[rl.NewDecision]:
        yield rl.NewDecision("a")
        yield rl.NewDecision("b")

    server.post("/record_decisions").mock(side_effect=written)
    if isinstance(ledger.client, rl.AsyncRankedLedger):
        assert [one.content for one in ledger.record_many(stream())] == ["a", "b"]


@pytest.mark.parametrize("kind", [Lengths, AsyncLengths])
def test_an_embedder_embeds_what_brings_no_embedding(
    server: respx.MockRouter, make: MakeDriver, kind: type[Lengths]
) -> None:
    ledger = make()
    if kind is AsyncLengths and isinstance(ledger.client, rl.RankedLedger):
        pytest.skip("the synchronous client takes synchronous embedders")
    embedder = kind()
    ledger = ledger.with_options(embedder=embedder)
    record = server.post("/record_decision").respond(json=answers.decision())
    many = server.post("/record_decisions").mock(side_effect=written)
    recall = server.post("/recall_decisions").respond(json=answers.recall())

    ledger.record("four")
    ledger.record("own", embedding=[1, 2], embedding_model="own")
    ledger.record_many([rl.NewDecision("own", embedding=[1, 2]), "three"])
    ledger.recall("query")
    ledger.recall(None)
    ledger.recall(" ")

    assert embedder.asked == [["four"], ["three"], ["query"]]
    assert [(body["p_embedding"], body["p_embedding_model"]) for body in sent(record)] == [
        ("[4.0,1.0]", "lengths"),
        ("[1.0,2.0]", "own"),
    ]
    assert [one.get("embedding_model") for one in sent(many)[0]["p_decisions"]] == [None, "lengths"]
    assert sent(recall)[0]["p_query_embedding"] == "[5.0,1.0]"
    assert "p_query_embedding" not in sent(recall)[1]


def test_an_invalid_argument_is_told_before_anything_is_embedded(
    server: respx.MockRouter, make: MakeDriver
) -> None:
    embedder = Lengths()
    with pytest.raises(rl.InvalidArgumentError):
        make(embedder=embedder).record("x", importance=2)
    assert embedder.asked == []


def test_a_failing_embedder_is_an_error_of_ours(server: respx.MockRouter, make: MakeDriver) -> None:
    ledger = make(embedder=Broken())
    for call in (lambda: ledger.recall("x"), lambda: ledger.record("x"), lambda: ledger.record_many(["x"])):
        with pytest.raises(rl.EmbeddingError, match="no model here") as caught:
            call()
        assert isinstance(caught.value.__cause__, OSError)
    assert not server.calls


def test_a_failing_embedder_may_leave_it_to_the_words(
    server: respx.MockRouter, make: MakeDriver, caplog: pytest.LogCaptureFixture
) -> None:
    route = server.post("/recall_decisions").respond(json=answers.recall())
    make(embedder=Broken(), on_embedding_failure="text").recall("x")
    assert "p_query_embedding" not in sent(route)[0]
    assert "no model here" in caplog.text


def test_moments_go_with_their_time_zone(server: respx.MockRouter, ledger: Driver) -> None:
    route = server.post("/prune_traces").respond(json={"deleted": 3, "more": True})
    pruned = ledger.prune_traces(before=datetime(2026, 1, 1, tzinfo=UTC), limit=3)
    assert (pruned.deleted, pruned.more) == (3, True)
    assert sent(route)[0] == {"p_workspace_id": "acme", "p_before": "2026-01-01T00:00:00+00:00", "p_limit": 3}


def test_a_given_http_client_is_used_and_left_open(server: respx.MockRouter, make: MakeDriver) -> None:
    server.post("/get_decision").respond(json=answers.decision())
    probe = make()
    synchronous = isinstance(probe.client, rl.RankedLedger)
    http = httpx.Client() if synchronous else httpx.AsyncClient()
    given = make(http_client=http)
    given.get(answers.MEMORY)
    given.close()
    assert not http.is_closed
    probe.result(http.close() if isinstance(http, httpx.Client) else http.aclose())


def test_an_impact_is_read_with_its_parts(server: respx.MockRouter, ledger: Driver) -> None:
    answer = {
        "memory_id": str(answers.MEMORY),
        "summary": "Invoices are immutable",
        "lifecycle_status": "active",
        "decisions": [
            {
                "memory_id": str(answers.OTHER),
                "summary": "Corrections are credit notes",
                "step_index": 4,
                "project_id": None,
                "task_id": "invoicing",
                "lifecycle_status": "active",
                "importance": 0.9,
                "depth": 1,
                "via": str(answers.MEMORY),
                "rests_on_retired": False,
            }
        ],
        "direct": 1,
        "total": 7,
        "live": 5,
        "more": True,
    }
    route = server.post("/decision_impact").respond(json=answer)
    found = ledger.impact(answers.MEMORY, max_depth=1, limit=1)
    assert found.model_dump(mode="json") == answer
    assert sent(route)[0] | {"p_max_depth": 1, "p_limit": 1} == sent(route)[0]
    server.post("/get_decision").respond(json=answers.decision())
    ledger.get(found.decisions[0])  # what is found can be asked for


def test_a_similarity_range_is_sent_and_read(server: respx.MockRouter, ledger: Driver) -> None:
    kept = {"embedding_model": "e5", "floor": 0.75, "ceiling": 0.86}
    answer = answers.settings(similarity_ranges=[kept], changed=True)
    route = server.post("/set_similarity_range").respond(json=answer)
    found = ledger.set_similarity_range("e5", floor=0.75, ceiling=0.86)
    assert sent(route) == [{"p_workspace_id": "acme", **{f"p_{name}": one for name, one in kept.items()}}]
    assert found.similarity_ranges == (rl.SimilarityRange(**kept),)
    assert (found.changed, found.read_anew) == (True, None)


def test_a_similarity_range_is_fitted(server: respx.MockRouter, ledger: Driver) -> None:
    kept = {"embedding_model": "e5", "floor": 0.75, "ceiling": 0.86}
    fitted = {"floor": 0.75, "ceiling": 0.86, "vectors": 300, "pairs": 44_850}
    answer = answers.settings(similarity_ranges=[kept], changed=True, fitted=fitted)
    route = server.post("/fit_similarity_range").respond(json=answer)
    found = ledger.fit_similarity_range("e5")
    assert found.fitted == rl.FittedRange(**fitted)
    assert found.similarity_ranges == (rl.SimilarityRange(**kept),)
    ledger.fit_similarity_range("e5", sample=50)
    asked = {"p_workspace_id": "acme", "p_embedding_model": "e5"}
    assert sent(route) == [asked, asked | {"p_sample": 50}], "what is not given is not sent"


@pytest.mark.parametrize(("timeout", "waits_for"), [(0.5, 65.0), (300.0, 300.0)])
def test_a_workspace_that_is_read_anew_is_waited_for(
    server: respx.MockRouter, make: MakeDriver, timeout: float, waits_for: float
) -> None:
    route = server.post("/set_text_config").respond(json=answers.settings())
    other = server.post("/get_workspace_settings").respond(json=answers.settings())
    ledger = make(timeout=timeout)
    ledger.set_text_config("german")
    ledger.settings()
    assert route.calls[0].request.extensions["timeout"]["read"] == waits_for
    assert other.calls[0].request.extensions["timeout"]["read"] == timeout


def test_traces_are_asked_for_page_by_page_and_scored_again(server: respx.MockRouter, ledger: Driver) -> None:
    item = {"memory_id": str(answers.MEMORY), "rank": 2, "used": True, "rank_again": 1, "new": "field"}
    trace = {
        "request_id": str(answers.REQUEST), "query": "q", "created_at": "2026-01-01T00:00:00Z", "policy": "vector",
        "arguments": {"p_match_count": 10}, "items": [item],
    }  # fmt: skip
    cursor = {"created_at": "2026-01-01T00:00:00Z", "request_id": str(answers.REQUEST)}
    route = server.post("/recall_traces").mock(
        side_effect=[
            httpx.Response(200, json={"traces": [trace, trace], "weights": {"recency": 0}, "next": cursor}),
            httpx.Response(200, json={"traces": [trace], "weights": None, "next": None}),
        ]
    )
    since = datetime(2026, 1, 1, tzinfo=UTC)
    found = ledger.walked(ledger.traces(since=since, marked=True, weights={"recency": 0}, page_size=2))
    assert [one.items[0].rank_again for one in found] == [1, 1, 1]
    first, second = (json.loads(call.request.content) for call in route.calls)
    assert first == {
        "p_workspace_id": "acme", "p_since": since.isoformat(), "p_marked": True, "p_limit": 2, "p_w_recency": 0,
    }  # fmt: skip
    assert second == first | {"p_after": cursor}
    with pytest.raises(rl.InvalidArgumentError, match="page_size"):
        ledger.traces(page_size=101)
