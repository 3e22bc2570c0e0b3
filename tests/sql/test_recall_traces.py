"""recall_traces: what was asked, what came back, what became of it; and the same under other weights."""

from __future__ import annotations

from typing import Any

import pytest
from psycopg.types.json import Jsonb

from tests.sql.rpc import Ledger


def recalled(ledger: Ledger, query: str = "invoices", **arguments: Any) -> dict[str, Any]:
    answer = ledger("recall_decisions", query=query, **arguments)
    assert isinstance(answer, dict)
    return answer


def traces(ledger: Ledger, **arguments: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = ledger("recall_traces", **arguments)["traces"]
    return found


def test_a_trace_holds_its_question_its_items_and_what_became_of_them(ledger: Ledger) -> None:
    ids = [
        ledger.id(f"Invoices {text}", task_id="t") for text in ("are immutable", "are printed", "are sent")
    ]
    answer = recalled(ledger, task_id="t", policy="mine", runtime_name="me", flow_id="f")
    ledger(
        "mark_recall_usage",
        request_id=answer["request_id"],
        used=[ids[1]],
        ignored=[{"memory_id": ids[2], "reason": "no"}],
    )
    (trace,) = traces(ledger)
    assert {name: trace[name] for name in ("request_id", "query", "policy", "task_id", "runtime_name", "flow_id")} == {
        "request_id": answer["request_id"], "query": "invoices", "policy": "mine", "task_id": "t",
        "runtime_name": "me", "flow_id": "f",
    }  # fmt: skip
    assert trace["arguments"]["p_match_count"] == 10
    assert [item["memory_id"] for item in trace["items"]] == [hit["memory_id"] for hit in answer["hits"]]
    for item, hit in zip(trace["items"], answer["hits"], strict=True):
        for name in (
            "relevance",
            "importance",
            "recency",
            "dependency_boost",
            "relevance_source",
            "step_index",
        ):
            assert item[name] == hit[name]
        assert (item["score_again"], item["rank_again"]) == (None, None)
    by_id = {item["memory_id"]: item for item in trace["items"]}
    assert [(by_id[one]["used"], by_id[one]["ignored_reason"]) for one in ids] == [
        (None, None), (True, None), (False, "no"),
    ]  # fmt: skip


def test_the_same_weights_give_the_same_scores_and_ranks(ledger: Ledger) -> None:
    for number in range(6):
        ledger.record(f"Invoices number {number}", importance=number / 5)
    answer = recalled(ledger)
    page = ledger("recall_traces", preset="published")
    assert page["weights"]["similarity"] == 0.45
    for item, hit in zip(page["traces"][0]["items"], answer["hits"], strict=True):
        assert item["score_again"] == pytest.approx(hit["ranking_score"])
        assert item["rank_again"] == item["rank"]


@pytest.mark.parametrize("value", ["1e-400", "-1e-400", "1e-320", "1e400", "-1e400"])
def test_a_component_that_is_no_number_of_ours_counts_as_absent(ledger: Ledger, value: str) -> None:
    ledger.record("Invoices are immutable")
    answer = recalled(ledger)
    ledger.database.owner.execute(
        "update agent_memory_recall_items set use_policy_snapshot = use_policy_snapshot || %s::jsonb",
        (f'{{"relevance": {value}}}',),
    )
    (trace,) = traces(ledger, preset="published")
    assert trace["request_id"] == answer["request_id"]
    (item,) = trace["items"]
    assert (item["relevance"], item["score_again"], item["importance"]) == (None, None, 0.5)


def test_other_weights_rank_what_was_returned_anew(ledger: Ledger) -> None:
    old = ledger.id("Invoices invoices", importance=1)
    new = ledger.id("Invoices, and much that is about something else", importance=0, step_index=200)
    pinned = ledger.id("The logo is blue", importance=0, step_index=1)
    ledger("pin_decision", memory_id=pinned, pinned=True)
    recalled(ledger, w_similarity=1, w_importance=1, w_recency=0, w_dependency=0)
    (trace,) = traces(ledger, w_similarity=0, w_importance=0, w_recency=1, w_dependency=0, w_summary=0)
    again = {item["memory_id"]: item["rank_again"] for item in trace["items"]}
    before = {item["memory_id"]: item["rank"] for item in trace["items"]}
    assert before == {pinned: 1, old: 2, new: 3}
    assert again == {pinned: 1, new: 2, old: 3}


def test_what_is_retired_loses_as_much_as_in_a_recall(ledger: Ledger) -> None:
    for text, lifecycle in (("a", "rejected"), ("b", "stale"), ("c", None)):
        memory_id = ledger.id(f"Invoices {text}")
        if lifecycle:
            ledger("set_decision_lifecycle", memory_id=memory_id, lifecycle=lifecycle)
    answer = recalled(ledger, preset="tuned", include_superseded=True)
    (trace,) = traces(ledger, preset="tuned")
    scores = {hit["memory_id"]: hit["ranking_score"] for hit in answer["hits"]}
    assert len(scores) == 3
    for item in trace["items"]:
        assert item["score_again"] == pytest.approx(scores[item["memory_id"]], abs=1e-9)


def test_pages_are_the_newest_first_and_none_is_lost(ledger: Ledger) -> None:
    ledger.record("Invoices")
    made = [recalled(ledger)["request_id"] for _ in range(7)]
    ledger.database.owner.execute(
        "update agent_memory_recall_traces set created_at = date_trunc('hour', now())"
    )
    newest = recalled(ledger)["request_id"]
    seen: list[str] = []
    after = None
    while True:
        page = ledger("recall_traces", limit=3, after=after)
        seen += [trace["request_id"] for trace in page["traces"]]
        if (after := page["next"]) is None:
            break
    assert seen == [newest, *sorted(made)]


def test_only_what_was_marked_or_only_what_was_not(ledger: Ledger) -> None:
    memory_id = ledger.id("Invoices")
    used, ignored, neither = (recalled(ledger)["request_id"] for _ in range(3))
    ledger("mark_recall_usage", request_id=used, used=[memory_id])
    ledger("mark_recall_usage", request_id=ignored, ignored=[{"memory_id": memory_id}])
    assert {one["request_id"] for one in traces(ledger, marked=True)} == {used, ignored}
    assert [one["request_id"] for one in traces(ledger, marked=False)] == [neither]
    assert traces(ledger, since="2999-01-01") == []
    assert len(traces(ledger, since="2000-01-01")) == 3


def test_another_workspace_is_not_shown(ledger: Ledger) -> None:
    other = Ledger(ledger.database, workspace="globex")
    other.record("Invoices")
    recalled(other)
    assert traces(ledger) == []
    assert len(traces(other)) == 1


@pytest.mark.parametrize(
    ("policy", "arguments"),
    [
        ({"arguments": {"p_match_count": 3}}, {"p_match_count": 3}), ({"arguments": {}}, {}), ({"arguments": "much"}, {}),
        ({"arguments": [1]}, {}), ({}, {}), ([1], {}),
    ],
)  # fmt: skip
def test_of_a_hosts_trace_the_arguments_are_those_beside_its_policy_and_no_words(
    ledger: Ledger, policy: object, arguments: dict[str, Any]
) -> None:
    ledger.trace()
    ledger.database.owner.execute(
        "update agent_memory_recall_traces set response_policy = %s, request_payload = %s",
        (Jsonb(policy), Jsonb({"query": "may a sent invoice be edited?"})),
    )
    (trace,) = traces(ledger)
    assert trace["arguments"] == arguments


@pytest.mark.parametrize(
    "snapshot",
    [
        None, "[]", '"x"', '{"relevance": "much"}', '{"relevance": 1e999, "importance": -5}',
        '{"relevance": null, "pinned": "yes", "step_index": "x"}',
    ],
)  # fmt: skip
def test_what_a_host_wrote_instead_of_components_is_shown_and_not_scored(
    ledger: Ledger, snapshot: str | None
) -> None:
    ledger.trace(ledger.id("x"), similarity=0.5)
    ledger.database.owner.execute(
        "update agent_memory_recall_items set use_policy_snapshot = %s", (snapshot,)
    )
    ledger.database.owner.execute("update agent_memory_recall_traces set request_payload = '[1]'")
    (trace,) = traces(ledger, preset="published")
    assert (trace["policy"], trace["arguments"]) == ("vector", {})
    (item,) = trace["items"]
    assert (item["score_again"], item["rank_again"], item["similarity"]) == (None, None, 0.5)


@pytest.mark.parametrize(
    "arguments",
    [
        {"workspace_id": " "}, {"limit": 0}, {"limit": 101}, {"limit": None}, {"after": {}}, {"after": [1]}, {"after": "x"},
        {"after": {"created_at": "yesterday or so", "request_id": "1"}},
        {"after": {"created_at": "2026-01-01T00:00:00Z", "request_id": "1"}}, {"preset": "no such"},
        {"after": {"created_at": "2026-01-01T00:00:00 nowhere", "request_id": "00000000-0000-0000-0000-000000000000"}},
        {"after": {"created_at": "2026-13-01T00:00:00Z", "request_id": "00000000-0000-0000-0000-000000000000"}},
        {"after": {"created_at": "2026-01-01T00:00:00Z", "request_id": None}},
        {"w_recency": -1}, {"w_summary": "NaN"}, {"w_similarity": "Infinity"},
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_refused(ledger: Ledger, arguments: dict[str, Any]) -> None:
    refused = ledger.refused("22023", "recall_traces", **arguments)
    assert ("p_after" in str(refused.message_primary)) == ("after" in arguments)
    assert ("p_limit" in str(refused.message_primary)) == ("limit" in arguments)
