"""What the methods of a function's client send, and what they make of its answers."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

import ranked_ledger as rl
from ranked_ledger.function import errands
from ranked_ledger.function.errands import Sender
from tests.unit import sdk_answers as answers

SENDER = Sender("acme", "billing", "invoicing", "flow-1", "pytest", {})
BARE = Sender("acme", None, None, None, None, {})
QUESTION: dict[str, Any] = {
    "limit": 10,
    "max_tokens": None,
    "only_confirmed": False,
    "include_personal": True,
    "include_stale": None,
    "current_step": None,
    "min_relevance": None,
    "preset": None,
    "weights": None,
    "half_life_steps": None,
    "dependency_saturation": None,
    "similarity_floor": None,
    "similarity_ceiling": None,
    "fusion": None,
    "fusion_weight": None,
}
RECORD: dict[str, Any] = {
    "rationale": None,
    "alternatives": (),
    "importance": None,
    "step": None,
    "depends_on": (),
    "confidence": None,
    "key": "k",
}


def policy(**changed: Any) -> dict[str, Any]:
    return {
        "recall_policy": "ranked_ledger",
        "memory_types": ["decision"],
        "relevance": "cosine",
        "embedding": "used",
        "exact": True,
        "arguments": answers.ARGUMENTS,
        "shortened": [],
        "dropped": [],
        "not_applied": [],
        "hint": None,
        **changed,
    }


def ranked(*hits: dict[str, Any], **changed: Any) -> dict[str, Any]:
    """A ranked answer of a patched function, as far as it is known here."""
    memories = [{"id": hit["memory_id"], "content": hit["content"], "ledger": {"hit": hit}} for hit in hits]
    return {
        "schema_version": "1",
        "request_id": str(answers.REQUEST),
        "memories": memories,
        "policy": policy(),
        **changed,
    }


def written(**changed: Any) -> dict[str, Any]:
    held = {"index": 0, "memory_id": str(answers.MEMORY), "step_index": 7, "importance": 0.9}
    report = {"decisions": [held], "linked": [], "not_linked": [], "not_written": [], **changed}
    return {"memories": [{"id": str(answers.MEMORY), "memory_type": "decision"}], "ledger": report}


def test_a_recall_sends_the_contracts_fields_and_the_patchs() -> None:
    errand = errands.recall(
        SENDER,
        "may an invoice be edited?",
        **QUESTION
        | {
            "limit": 8,
            "max_tokens": 1200,
            "only_confirmed": True,
            "include_personal": False,
            "include_stale": True,
            "current_step": 500,
            "min_relevance": 0.1,
            "preset": "tuned",
            "weights": {"relevance": 0.6, "summary": 0.2},
            "half_life_steps": 10,
            "dependency_saturation": 2,
            "similarity_floor": 0.75,
            "similarity_ceiling": 0.9,
            "fusion": "blend",
            "fusion_weight": 0.7,
        },
    )
    assert (errand.method, errand.path) == ("POST", "/recall")
    assert not errand.repeatable
    assert errand.body == {
        "schema_version": "openbrain.agent_memory.recall.v1",
        "workspace_id": "acme",
        "project_id": "billing",
        "task_id": "invoicing",
        "flow_id": "flow-1",
        "runtime": {"name": "pytest"},
        "channel": {"kind": "sdk"},
        "query": "may an invoice be edited?",
        "scope": {
            "visibility": "project",
            "project_only": True,
            "include_unconfirmed": False,
            "include_stale": True,
        },
        "limits": {"max_items": 8, "max_tokens": 1200},
        "recall_policy": "ranked_ledger",
        "with_hits": True,
        "current_step": 500,
        "min_relevance": 0.1,
        "ranking": {
            "preset": "tuned",
            "weights": {"relevance": 0.6, "summary": 0.2},
            "half_life_steps": 10.0,
            "dependency_saturation": 2.0,
            "similarity_floor": 0.75,
            "similarity_ceiling": 0.9,
            "fusion": "blend",
            "fusion_weight": 0.7,
        },
    }


def test_the_defaults_are_those_of_the_sdk_and_no_project_means_all_of_them() -> None:
    body = errands.recall(BARE, "x", **QUESTION).body
    assert body["scope"] == {
        "visibility": "personal",
        "project_only": False,
        "include_unconfirmed": True,
        "include_stale": False,
    }
    assert body["limits"] == {"max_items": 10}
    absent = {"project_id", "task_id", "flow_id", "current_step", "min_relevance", "ranking"}
    assert not absent & set(body), "a function with an older patch, or ledger, answers"
    assert body["runtime"] == {"name": "ranked-ledger"}


@pytest.mark.parametrize(
    ("preset", "asked", "sent"),
    [
        (None, None, False),
        ("published", None, False),
        ("tuned", None, True),
        ("tuned", False, False),
        (None, True, True),
    ],
)
def test_stale_decisions_are_in_scope_as_the_preset_has_it(
    preset: Any, asked: bool | None, sent: bool
) -> None:
    body = errands.recall(BARE, "x", **QUESTION | {"preset": preset, "include_stale": asked}).body
    assert body["scope"]["include_stale"] is sent
    assert body.get("ranking") == ({"preset": preset} if preset else None)


def test_a_search_by_vector_sends_no_field_of_the_patch() -> None:
    errand = errands.recall_by_vector(
        BARE,
        "x",
        limit=5,
        recency_days=30,
        only_confirmed=True,
        include_personal=False,
        include_stale=False,
    )
    assert errand.body["limits"] == {"max_items": 5, "recency_days": 30}
    assert set(errand.body) == {
        *("schema_version", "workspace_id", "runtime", "channel", "query", "scope", "limits"),
    }


def test_what_a_copy_wants_besides_or_instead_is_sent() -> None:
    extra = {"channel": {"kind": "slack"}, "sensitivity": "low", "schema_version": "2"}
    sender = Sender("acme", None, None, None, None, extra)
    for body in (errands.recall(sender, "x", **QUESTION).body, errands.record(sender, "x", **RECORD).body):
        assert {name: body[name] for name in extra} == extra


@pytest.mark.parametrize(
    "wrong",
    [
        {"limit": 0},
        {"limit": 51},
        {"max_tokens": 255},
        {"max_tokens": 20_001},
        {"current_step": -1},
        {"min_relevance": 1.1},
        {"weights": {"nothing": 1}},
        {"weights": {"relevance": -1}},
        {"half_life_steps": 0},
        {"dependency_saturation": float("inf")},
        {"similarity_floor": 2},
        {"preset": "newest"},
        {"preset": 7},
        {"weights": {"summary": -1}},
        {"include_stale": 1},
        {"fusion": "sum"},
        {"fusion_weight": -0.1},
        {"only_confirmed": None},
    ],
)
def test_what_the_function_would_refuse_is_refused_here(wrong: dict[str, Any]) -> None:
    (name,) = wrong
    with pytest.raises(rl.InvalidArgumentError, match=name):
        errands.recall(SENDER, "x", **QUESTION | wrong)


@pytest.mark.parametrize("query", ["", " ", None])
def test_a_function_wants_a_query(query: Any) -> None:
    with pytest.raises(rl.InvalidArgumentError, match="query"):
        errands.recall(SENDER, query, **QUESTION)


def test_a_ranked_answer_is_a_recall_of_whole_hits() -> None:
    first, second = answers.hit(), answers.hit(rank=2, memory_id=str(answers.OTHER))
    answer = ranked(
        first,
        second,
        policy=policy(
            embedding="timeout",
            exact=False,
            shortened=[str(answers.OTHER)],
            not_applied=["limits.recency_days"],
        ),
    )
    found = errands.recall(SENDER, "x", **QUESTION).parse(answer)
    assert isinstance(found, rl.Recall)
    assert list(found) == [
        rl.Hit.model_validate({**one, "arguments": answers.ARGUMENTS}) for one in (first, second)
    ]
    assert (found.request_id, found.traced, found.policy) == (answers.REQUEST, True, "ranked_ledger")
    assert (found.exact, found.shortened, found.embedding) == (False, (answers.OTHER,), "timeout")
    assert "score" in str(found[0].explain())
    assert found[0].line in found.to_prompt()
    assert found.as_dict()["not_applied"] == ["limits.recency_days"]
    assert found.as_dict()["embedding"] == "timeout"


def test_an_empty_ranked_answer_carries_its_hint_in_the_sdks_words() -> None:
    hint = "No decision is in scope: look at lifecycle (p_include_stale)."
    found = errands.recall(SENDER, "x", **QUESTION).parse(ranked(policy=policy(hint=hint)))
    assert not found
    assert found.hint == hint.replace("p_include_stale", "include_stale")


@pytest.mark.parametrize("policy", [None, "ranked_ledger", {}, {"recall_policy": "vector"}])
def test_an_answer_of_the_vector_search_never_passes_for_a_ranked_one(policy: object) -> None:
    answer = ranked(answers.hit(), policy=policy)
    if policy is None:
        del answer["policy"]
    with pytest.raises(rl.NotPatchedError, match="ranked-ledger patch apply"):
        errands.recall(SENDER, "x", **QUESTION).parse(answer)


def test_a_patch_that_answers_no_whole_hits_is_to_be_updated() -> None:
    answer = ranked(answers.hit())
    answer["memories"][0]["ledger"] = {"step_index": 3}
    with pytest.raises(rl.NotPatchedError, match="older patch"):
        errands.recall(SENDER, "x", **QUESTION).parse(answer)


def test_a_search_by_vector_answers_memories_of_every_type() -> None:
    answer = {
        "request_id": str(answers.REQUEST),
        "memories": [
            {"id": str(answers.MEMORY), "memory_type": "lesson", "content": "x", "similarity": 0.5},
            {"memory_id": str(answers.OTHER)},
        ],
    }
    errand = errands.recall_by_vector(
        BARE,
        "x",
        limit=5,
        recency_days=None,
        only_confirmed=False,
        include_personal=True,
        include_stale=False,
    )
    found = errand.parse(answer)
    assert [one.memory_id for one in found] == [answers.MEMORY, answers.OTHER]
    assert (found[0].memory_type, found[0].similarity, len(found[:1])) == ("lesson", 0.5, 1)
    assert errands.mark_usage(found, used=found).body["used_memory_ids"] == [
        str(answers.MEMORY),
        str(answers.OTHER),
    ]


@pytest.mark.parametrize("named", ["recall", "uuid", "text"])
def test_usage_names_its_trace_in_the_path(named: str) -> None:
    recall = rl.Recall((), request_id=answers.REQUEST, traced=True)
    what = {"recall": recall, "uuid": answers.REQUEST, "text": str(answers.REQUEST)}[named]
    errand = errands.mark_usage(what, ignored=[answers.MEMORY], reason="old")
    assert errand.path == f"/recall/{answers.REQUEST}/usage"
    assert errand.repeatable
    assert errand.body == {
        "used_memory_ids": [],
        "ignored": [{"memory_id": str(answers.MEMORY), "reason": "old"}],
    }
    assert errand.parse({"ok": True}) is None


@pytest.mark.parametrize("recall", [rl.Recall(()), "x/../health", 5])
def test_what_names_no_trace_is_refused(recall: Any) -> None:
    with pytest.raises(rl.InvalidArgumentError):
        errands.mark_usage(recall, used=answers.MEMORY)


def test_a_decision_is_one_object_of_a_write_back() -> None:
    errand = errands.record(
        SENDER,
        "Invoices are immutable",
        rationale="auditors",
        alternatives=["edit in place"],
        importance=0.9,
        step=12,
        depends_on=answers.OTHER,
        confidence=0.8,
        key="mine",
    )
    assert (errand.method, errand.path, errand.repeatable) == ("POST", "/writeback", True)
    assert errand.body["memory_payload"]["decisions"] == [
        {
            "content": "Invoices are immutable",
            "rationale": "auditors",
            "alternatives": ["edit in place"],
            "importance": 0.9,
            "step_index": 12,
            "depends_on": [str(answers.OTHER)],
            "confidence": 0.8,
        }
    ]
    # the function looks a key up without the workspace
    assert errand.body["idempotency_key"] == "acme/mine"
    assert errand.body["task_id"] == "invoicing"


def test_what_was_recorded_says_what_the_ledger_holds_of_it() -> None:
    answer = written(
        linked=[{"memory_id": str(answers.MEMORY), "depends_on": str(answers.OTHER)}],
        not_linked=[
            {
                "memory_id": str(answers.MEMORY),
                "depends_on": str(answers.REQUEST),
                "code": "RL404",
                "reason": "no",
            }
        ],
    )
    found = errands.record(SENDER, "x", **RECORD).parse(answer)
    assert (found.memory_id, found.step_index, found.importance) == (answers.MEMORY, 7, 0.9)
    assert (found.enrolled, found.replayed, found.linked) == (True, False, (answers.OTHER,))
    assert [(one.depends_on, one.code, one.reason) for one in found.not_linked] == [
        (answers.REQUEST, "RL404", "no")
    ]


def test_what_was_stored_and_not_enrolled_says_so() -> None:
    reason = "the memory is stored and was not enrolled: enroll_missing_decisions mends it"
    missing = [{"index": 0, "memory_id": str(answers.MEMORY), "reason": reason}]
    found = errands.record(SENDER, "x", **RECORD).parse(written(decisions=[], not_written=missing))
    assert (found.memory_id, found.enrolled, found.step_index) == (answers.MEMORY, False, None)
    assert found.reason == reason.replace("enroll_missing_decisions", "enroll_missing()")


def test_a_text_that_the_function_changed_is_no_repeat() -> None:
    missing = [{"index": 0, "memory_id": None, "code": "other_text", "reason": "another text"}]
    found = errands.record(SENDER, "x", **RECORD).parse(written(decisions=[], not_written=missing))
    assert (found.replayed, found.enrolled, found.reason) == (False, False, "another text")


def test_a_repeat_finds_what_was_stored_under_its_key() -> None:
    missing = [
        {"index": 0, "memory_id": None, "code": "nothing_stored", "reason": "the function knows the key"}
    ]
    found = errands.record(SENDER, "x", **RECORD).parse(written(decisions=[], not_written=missing))
    assert (found.memory_id, found.replayed) == (answers.MEMORY, True)


def test_a_write_back_without_the_ledgers_report_is_not_patched() -> None:
    answer = written()
    del answer["ledger"]
    with pytest.raises(rl.NotPatchedError, match="has stored the text"):
        errands.record(SENDER, "x", **RECORD).parse(answer)


def test_a_supersession_is_a_review() -> None:
    errand = errands.supersede("acme", answers.MEMORY, by=answers.OTHER, reason="the law", actor="legal")
    assert (errand.method, errand.path) == ("PATCH", f"/memories/{answers.MEMORY}/review")
    assert errand.body == {
        "action": "supersede",
        "workspace_id": "acme",
        "by": str(answers.OTHER),
        "notes": "the law",
        "actor_label": "legal",
    }
    old, new = answers.decision(), answers.decision(memory_id=str(answers.OTHER))
    found = errand.parse({"action": "supersede", "changed": True, "memory": old, "by": new})
    assert (found.changed, found.old.memory_id, found.new.memory_id) == (True, answers.MEMORY, answers.OTHER)


def test_a_decision_does_not_supersede_itself() -> None:
    with pytest.raises(rl.InvalidArgumentError, match="itself"):
        errands.supersede("acme", UUID(int=1), by=UUID(int=1), reason=None, actor=None)


def test_a_review_that_names_no_successor_is_not_the_patchs() -> None:
    with pytest.raises(rl.NotPatchedError):
        errands.supersede("acme", answers.MEMORY, by=answers.OTHER, reason=None, actor=None).parse(
            {"memory": answers.decision()}
        )
