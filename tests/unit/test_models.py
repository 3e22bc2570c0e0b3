"""The values that the ledger answers: frozen, tolerant of newer servers, explained in words."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from ranked_ledger import Decision, DecisionDetail, Hit, Page, Recall, models
from tests.unit import sdk_answers as answers


def hit(**changed: object) -> Hit:
    return Hit.model_validate({**answers.hit(**changed), "arguments": answers.ARGUMENTS})


def test_fields_of_a_newer_server_are_ignored() -> None:
    decision = Decision.model_validate(answers.decision(colour="blue", lifecycle_status="sleeping"))
    assert decision.lifecycle_status == "sleeping"
    assert not hasattr(decision, "colour")


def test_a_decision_cannot_be_changed_and_can_be_a_member_of_a_set() -> None:
    decision = Decision.model_validate(answers.decision())
    with pytest.raises(ValidationError):
        decision.importance = 1  # type: ignore[misc]
    assert len({decision, Decision.model_validate(answers.decision())}) == 1
    assert len({DecisionDetail.model_validate(answers.decision()), hit()}) == 2


def test_recalls_and_pages_are_sequences() -> None:
    recall = Recall(hits=(hit(), hit(rank=2)))
    assert (len(recall), recall[1].rank, [one.rank for one in recall[:1]]) == (2, 2, [1])
    assert hit() in recall
    page = Page((Decision.model_validate(answers.decision()),), {"step_index": 1})
    assert (len(page), page[0].step_index, list(page[1:])) == (1, 12, [])


def test_an_explanation_adds_up_to_the_score() -> None:
    explained = hit().explain()
    assert sum(part.points for part in explained.components) == pytest.approx(0.68745)
    assert sum(part.share for part in explained.components) == pytest.approx(1)
    assert explained.deduction == 0


def test_an_explanation_reads_like_a_bill() -> None:
    assert str(hit().explain()).splitlines() == [
        "score 0.687",
        "  relevance   0.750 x 0.45 = 0.338   49%  by words: full-text match with the query",
        "  importance  0.900 x 0.25 = 0.225   33%  as it is set",
        "  recency     0.500 x 0.15 = 0.075   11%  20 steps ago",
        "  dependency  0.333 x 0.15 = 0.050    7%  1 live decision rests on it",
    ]


def test_what_is_not_active_is_explained_with_its_deduction() -> None:
    explained = hit(
        lifecycle_status="superseded", ranking_score=0.38745, pinned=True, rests_on_retired=True
    ).explain()
    assert explained.deduction == pytest.approx(0.3)
    assert "-0.300" in str(explained)
    assert explained.notes == (
        "pinned, so it stands before everything that is not",
        "superseded, no longer active",
        "it rests on a decision that no longer holds",
    )
    assert json.loads(json.dumps(explained.as_dict()))["deduction"] == explained.deduction


@pytest.mark.parametrize(
    ("changed", "phrase"),
    [
        ({"relevance_source": "cosine"}, "cosine similarity"),
        ({"relevance_source": "none", "relevance": 0}, "nothing was asked"),
        ({"relevance_source": "fts", "relevance": 0}, "no word of the query is in it"),
        ({"relevance_source": "bm25"}, "bm25"),
        ({"step_distance": 0}, "the newest step"),
        ({"step_distance": 1}, "1 step ago"),
        ({"step_distance": None}, "by its distance"),
        ({"live_dependents": 0}, "no live decision rests on it"),
        ({"live_dependents": 4}, "4 live decisions rest on it"),
        ({"live_dependents": None}, "by the live decisions"),
    ],
)
def test_each_component_says_where_it_comes_from(changed: dict, phrase: str) -> None:
    assert phrase in str(hit(**changed).explain())


@given(*(st.floats(0, 1) for _ in range(4)))
def test_shares_are_shares(relevance: float, importance: float, recency: float, dependency: float) -> None:
    parts = (
        hit(relevance=relevance, importance=importance, recency=recency, dependency_boost=dependency)
        .explain()
        .components
    )
    total = sum(part.share for part in parts)
    assert total == pytest.approx(1) or all(part.points == 0 for part in parts)


def test_weights_that_are_all_zero_share_nothing() -> None:
    nothing = Hit.model_validate({**answers.hit(), "arguments": {"p_w_similarity": 0}})
    assert all(part.share == 0 for part in nothing.explain().components)


def test_unset_shows_what_it_is() -> None:
    assert repr(models.UNSET) == "UNSET"
