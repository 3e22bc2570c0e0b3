"""What each verb sends: the function's name, only the arguments that were set, and whether a repeat is safe."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from ranked_ledger import InvalidArgumentError, NewDecision, Recall, Weights, asking, calls, recording
from tests.unit import sdk_answers as answers

DEFAULTS: dict[str, Any] = {
    "task": None,
    "project": None,
    "current_step": None,
    "limit": 10,
    "max_tokens": None,
    "include_superseded": False,
    "include_stale": None,
    "only_confirmed": False,
    "include_personal": True,
    "min_relevance": None,
    "weights": None,
    "half_life_steps": None,
    "dependency_saturation": None,
    "embedding": None,
    "embedding_model": None,
    "similarity_floor": None,
    "similarity_ceiling": None,
    "fusion": None,
    "fusion_weight": None,
    "exact": True,
    "trace": True,
    "request_id": None,
    "policy": None,
    "flow": None,
    "runtime_name": None,
}


def recall(query: str | None = None, **named: Any) -> calls.Call[Recall]:
    return asking.recall("acme", query, **{**DEFAULTS, **named})


def test_a_record_sends_only_what_was_set() -> None:
    call = calls.record("acme", recording.checked(NewDecision("x")), key=None)
    assert call.body == {"p_workspace_id": "acme", "p_content": "x"}
    assert not call.repeatable


def test_a_record_with_a_key_may_be_repeated() -> None:
    assert calls.record("acme", recording.checked(NewDecision("x")), key="k").repeatable


def test_everything_that_a_record_can_hold_is_sent() -> None:
    element = recording.checked(
        NewDecision(
            "x",
            rationale="r",
            alternatives=["a"],
            importance=0,
            step=0,
            task="t",
            project="p",
            summary="s",
            depends_on=answers.MEMORY,
            embedding=[1, 0],
            embedding_model="m",
            pinned=True,
            visibility="workspace",
            created_by="user",
            flow="f",
            runtime_name="n",
            metadata={"a": 1},
        )
    )
    assert element == {
        "content": "x",
        "rationale": "r",
        "alternatives": ["a"],
        "importance": 0.0,
        "step_index": 0,
        "task_id": "t",
        "project_id": "p",
        "summary": "s",
        "depends_on": [str(answers.MEMORY)],
        "embedding": "[1.0,0.0]",
        "embedding_model": "m",
        "pinned": True,
        "visibility": "workspace",
        "created_by": "user",
        "flow_id": "f",
        "runtime_name": "n",
        "metadata": {"a": 1},
    }


def test_a_recall_sends_only_what_was_set() -> None:
    assert recall().body == {"p_workspace_id": "acme", "p_match_count": 10, "p_preset": "tuned"}
    assert recall("q", weights={"recency": 0}).body["p_w_recency"] == 0
    assert recall(weights=Weights(relevance=1)).body["p_w_similarity"] == 1
    assert recall(trace=False).body["p_trace"] is False


@pytest.mark.parametrize(
    ("named", "body"),
    [
        ({"include_superseded": True}, {"p_include_superseded": True}),
        ({"include_stale": True}, {"p_include_stale": True}),
        ({"only_confirmed": True}, {"p_only_confirmed": True}),
        ({"include_personal": False}, {"p_include_personal": False}),
        ({"min_relevance": 0}, {"p_min_relevance": 0.0}),
        ({"similarity_floor": 0}, {"p_similarity_floor": 0.0}),
        ({"similarity_ceiling": 0.9}, {"p_similarity_ceiling": 0.9}),
        ({"fusion": "max"}, {"p_fusion": "max"}),
        (
            {"fusion": "blend", "fusion_weight": 0},
            {"p_fusion": "blend", "p_fusion_weight": 0.0},
        ),
        ({"exact": False}, {"p_exact": False}),
        ({"flow": "f", "runtime_name": "n"}, {"p_flow_id": "f", "p_runtime_name": "n"}),
        ({"max_tokens": 300}, {"p_max_tokens": 300}),
        ({"preset": "published"}, {"p_preset": "published"}),
        ({"preset": "tuned"}, {"p_preset": "tuned"}),
        (
            {"fusion": "none", "fusion_weight": 0.5, "include_stale": False},
            {"p_fusion": "none", "p_fusion_weight": 0.5, "p_include_stale": False},
        ),
        ({"weights": {"summary": 0.1}}, {"p_w_summary": 0.1}),
        ({"as_of_step": 0}, {"p_as_of_step": 0}),
        (
            {"as_of": datetime(2026, 5, 1, 12, tzinfo=timezone(timedelta(hours=2)))},
            {"p_as_of": "2026-05-01T10:00:00+00:00"},
        ),
        (
            {"as_of": datetime(2026, 5, 1, tzinfo=timezone(timedelta(hours=23, microseconds=5)))},
            {"p_as_of": "2026-04-30T00:59:59.999995+00:00"},
        ),
    ],
)
def test_an_argument_of_recall_is_sent_where_it_is_set(named: dict[str, Any], body: dict[str, Any]) -> None:
    usual = {"p_workspace_id": "acme", "p_match_count": 10, "p_preset": "tuned"}
    assert recall(**named).body == {**usual, **body}


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ({"as_of": datetime(2026, 5, 1)}, "as_of has no time zone"),
        (
            {"as_of": datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=5)))},
            "as_of is not within the years 1",
        ),
        ({"as_of": datetime.max.replace(tzinfo=timezone(timedelta(hours=-5)))}, "years 1 to 9999 in UTC"),
        ({"as_of": "2026-05-01"}, "as_of must be a datetime, not"),
        ({"as_of_step": -1}, "as_of_step must be in"),
        ({"as_of_step": True}, "as_of_step must be a whole number"),
        ({"as_of_step": 1.5}, "as_of_step must be a whole number"),
    ],
)
def test_a_moment_that_is_none_is_refused(named: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidArgumentError, match=said):
        recall(**named)


def test_a_range_of_recall_is_left_to_the_database() -> None:
    beyond = recall(min_relevance=7, similarity_floor=1, similarity_ceiling=-1, fusion="sum", fusion_weight=9)
    assert beyond.body["p_fusion"] == "sum"
    assert beyond.body["p_min_relevance"] == 7


def test_a_recall_may_be_repeated_with_a_request_id_or_without_a_trace() -> None:
    assert not recall().repeatable
    assert recall(request_id=answers.REQUEST).repeatable
    assert recall(trace=False).repeatable


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ({"limit": 0}, "limit must be in"),
        ({"limit": 1001}, "limit must be in"),
        ({"max_tokens": 0}, "max_tokens must be at least 1"),
        ({"current_step": -1}, "current_step"),
        ({"weights": {"similarity": 1}}, "there is no weight similarity"),
        ({"weights": {"recency": -1}}, "weights.recency must be at least 0"),
        ({"weights": Weights(importance=float("nan"))}, "weights.importance must be finite"),
        ({"half_life_steps": 0}, "half_life_steps must be above 0"),
        ({"dependency_saturation": -3}, "dependency_saturation must be above 0"),
        ({"embedding": [0]}, "no direction"),
        ({"min_relevance": float("nan")}, "min_relevance must be finite"),
        ({"similarity_floor": "0.7"}, "similarity_floor must be a number, not str"),
        ({"fusion": 1}, "fusion must be a text, not int"),
        ({"preset": None}, "preset must be a text, not NoneType"),
        ({"fusion_weight": True}, "fusion_weight must be a number, not bool"),
        ({"only_confirmed": "yes"}, "only_confirmed must be True or False, not str"),
        ({"include_personal": 0}, "include_personal must be True or False, not int"),
        ({"exact": None}, "exact must be True or False, not NoneType"),
        ({"flow": "x" * 1001}, "flow has 1,001 bytes"),
        ({"request_id": "x"}, "request_id: 'x' is no UUID"),
    ],
)
def test_a_wrong_argument_of_recall_is_named(named: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        recall(**named)


def test_an_edge_to_itself_and_a_supersession_by_itself_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="itself"):
        calls.link("acme", answers.MEMORY, answers.MEMORY, "depends_on", None)
    with pytest.raises(InvalidArgumentError, match="itself"):
        calls.supersede("acme", answers.MEMORY, by=answers.MEMORY, reason=None, actor=None)


def test_superseded_is_no_lifecycle_to_set() -> None:
    with pytest.raises(InvalidArgumentError, match="supersede"):
        calls.set_lifecycle("acme", answers.MEMORY, "superseded", reason=None, actor=None)  # type: ignore[arg-type]


def test_usage_names_the_trace_of_a_recall() -> None:
    traced = Recall(hits=(), request_id=answers.REQUEST, traced=True)
    call = calls.mark_usage("acme", traced, ignored=[answers.MEMORY], reason="old")
    assert call.body == {
        "p_workspace_id": "acme",
        "p_request_id": str(answers.REQUEST),
        "p_ignored": [{"memory_id": str(answers.MEMORY), "reason": "old"}],
    }


def test_usage_of_a_recall_without_a_trace_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="left no trace"):
        calls.mark_usage("acme", Recall(hits=(), request_id=answers.REQUEST), used=[answers.MEMORY])


@pytest.mark.parametrize("value", [3, None, ["x"]])
def test_an_element_is_a_new_decision_or_a_mapping(value: object) -> None:
    with pytest.raises(InvalidArgumentError):
        recording.new_decision(value, project=None)


def test_an_element_of_unknown_names_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="no confidence"):
        recording.new_decision({"content": "x", "confidence": 1}, project=None)


def test_an_element_is_in_the_clients_project_unless_it_says_otherwise() -> None:
    assert recording.new_decision({"content": "x"}, project="p").project == "p"
    assert recording.new_decision({"content": "x", "project": None}, project="p").project is None
    assert recording.new_decision(NewDecision("x", project="q"), project="p").project == "q"


def test_a_key_leaves_room_for_the_number_of_a_batch() -> None:
    with pytest.raises(InvalidArgumentError, match="characters"):
        calls.batch_key("k" * 255)


def test_a_moment_is_sent_with_its_offset() -> None:
    body = calls.policy_stats("acme", datetime(2026, 1, 2, tzinfo=UTC)).body
    assert body["p_since"] == "2026-01-02T00:00:00+00:00"
