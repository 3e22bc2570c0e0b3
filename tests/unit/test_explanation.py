"""A hit explains itself: as a bill that adds up to its score, as sentences, and as data."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranked_ledger import Hit
from tests.unit import sdk_answers as answers

RANGE = {"p_similarity_floor": 0.75, "p_similarity_ceiling": 0.9}
FUSED = {"similarity": 0.87, "text_relevance": 0.4}


def hit(arguments: dict[str, Any] | None = None, **changed: Any) -> Hit:
    in_force = {**answers.ARGUMENTS, **(arguments or {})}
    return Hit.model_validate({**answers.hit(**changed), "arguments": in_force})


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
        lifecycle_status="superseded",
        ranking_score=0.38745,
        pinned=True,
        rests_on_retired=True,
        successor=str(answers.OTHER),
        shortened=True,
    ).explain()
    assert explained.deduction == pytest.approx(0.3)
    assert str(explained).splitlines()[5:] == [
        "  deduction                 -0.300        superseded, no longer active",
        "  note: pinned, so it stands before everything that is not",
        f"  note: replaced by {answers.OTHER}",
        "  note: it rests on a decision that no longer holds",
        "  note: its line shows the summary, to fit the token budget",
    ]


TUNED = {
    "p_preset": "tuned", "p_w_similarity": 0.8, "p_w_importance": 0.05, "p_w_recency": 0.02, "p_w_dependency": 0.05,
    "p_w_summary": 0.08, "has_text": True,
}  # fmt: skip


def test_the_tuned_preset_is_explained_with_its_summary_and_its_deduction() -> None:
    # 0.6 + 0.045 + 0.01 + 0.01665 + 0.04 - 0.05
    explained = hit(TUNED, summary_match=0.5, lifecycle_status="stale", ranking_score=0.66165).explain()
    assert explained.deduction == pytest.approx(0.05)
    assert [part.name for part in explained.components][-1] == "summary"
    assert sum(part.share for part in explained.components) == pytest.approx(1)
    text = str(explained)
    assert "by words: full-text match with the query; rare words count most" in text
    assert "  summary     0.500 x 0.08 = 0.040    6%  the query names 50% of the words of its summary" in text
    assert "-0.050        stale, no longer active" in text
    assert "no word of its summary" in str(hit(TUNED, summary_match=0).explain())
    assert "no words were asked for" in str(hit({**TUNED, "has_text": False}, summary_match=0).explain())


def test_a_look_into_the_past_says_what_is_of_today() -> None:
    assert hit({"p_as_of_step": None, "p_as_of": None}).explain().notes == ()
    (note,) = hit({"p_as_of_step": 0, "p_as_of": None}).explain().notes
    assert note == "as it stood at step 0 of its task; its text, importance and pin are today's"
    (note,) = hit({"p_as_of": "2026-05-01T12:00:00+00:00"}).explain().notes
    assert note.startswith("as it stood on 2026-05-01T12:00:00+00:00;")


def test_what_nothing_replaces_says_so() -> None:
    assert "nothing active replaces it" in str(hit(lifecycle_status="superseded").explain())
    assert "replaces" not in str(hit(lifecycle_status="stale").explain())


@pytest.mark.parametrize(
    ("changed", "phrase"),
    [
        ({"relevance_source": "cosine"}, "by meaning: cosine similarity"),
        ({"relevance_source": "none", "relevance": 0}, "nothing was asked"),
        ({"relevance_source": "fts", "relevance": 0}, "no word of the query is in it"),
        ({"relevance_source": "bm25"}, "bm25"),
        ({"step_distance": 0}, "the newest step"),
        ({"step_distance": 1}, "1 step ago"),
        ({"step_distance": None}, "by its distance"),
        ({"live_dependents": 0}, "no live decision rests on it"),
        ({"live_dependents": 4}, "4 live decisions rest on it"),
        ({"live_dependents": None}, "by the live decisions"),
        ({"arguments": {"p_dependency_saturation": 2.5}}, "1 live decision rests on it; 2.5 count fully"),
        (
            {"relevance_source": "max", "relevance": 0, "text_relevance": 0},
            "neither its meaning nor its words",
        ),
        ({"arguments": {"has_embedding": True}}, "by words: full-text match; it has no vector to compare"),
    ],
)
def test_each_component_says_where_it_comes_from(changed: dict[str, Any], phrase: str) -> None:
    assert phrase in str(hit(**changed).explain())


def test_a_calibrated_cosine_is_shown_with_its_range() -> None:
    explained = hit(RANGE, relevance_source="cosine", similarity=0.87, relevance=0.8).explain()
    assert "by meaning: cosine 0.870 (0.75 counts as 0, 0.9 as 1)" in str(explained)
    assert (explained.relevance.similarity, explained.relevance.from_cosine) == (0.87, 0.8)
    assert (explained.relevance.floor, explained.relevance.ceiling) == (0.75, 0.9)


def test_a_blend_shows_what_each_source_gave() -> None:
    blend = {"p_fusion_weight": 0.75, **RANGE}
    explained = hit(blend, relevance_source="blend", relevance=0.7, **FUSED).explain()
    relevance = explained.components[0]
    assert relevance.why == "75% by meaning and 25% by words"
    assert relevance.details == (
        "0.600 from cosine 0.870 (0.75 counts as 0, 0.9 as 1)",
        "0.100 from words 0.400",
    )
    assert explained.relevance.fusion_weight == 0.75
    assert str(explained).splitlines()[2] == " " * 44 + relevance.details[0]


@pytest.mark.parametrize(
    ("relevance", "why", "details"),
    [
        (
            0.8,
            "by meaning, which matches more than the words",
            ("0.800 from cosine 0.870 (0.75 counts as 0, 0.9 as 1)", "words 0.400"),
        ),
        (
            0.4,
            "by words, which match more than the meaning",
            ("words 0.400", "cosine 0.870 (0.75 counts as 0, 0.9 as 1) gives no more"),
        ),
    ],
)
def test_the_greater_of_both_says_which_it_was(relevance: float, why: str, details: tuple[str, ...]) -> None:
    explained = hit(RANGE, relevance_source="max", relevance=relevance, **FUSED).explain()
    assert (explained.components[0].why, explained.components[0].details) == (why, details)


def test_an_explanation_is_plain_data() -> None:
    explained = hit(
        {"p_fusion_weight": 0.5, **RANGE},
        relevance_source="blend",
        relevance=0.6,
        lifecycle_status="superseded",
        successor=str(answers.OTHER),
        **FUSED,
    ).explain()
    data = json.loads(json.dumps(explained.as_dict()))
    assert data["relevance"] == {
        "source": "blend",
        "from_cosine": 0.4,
        "from_text": 0.2,
        "similarity": 0.87,
        "floor": 0.75,
        "ceiling": 0.9,
        "text_relevance": 0.4,
        "fusion_weight": 0.5,
    }
    assert data["components"][0]["details"][1] == "0.200 from words 0.400"
    assert data["memory_id"] == str(answers.MEMORY)
    assert data["successor"] == str(answers.OTHER)
    assert (data["step_distance"], data["live_dependents"]) == (20, 1)
    assert (data["lifecycle_status"], data["pinned"], data["rests_on_retired"]) == (
        "superseded",
        False,
        False,
    )
    assert data["notes"] == [f"replaced by {answers.OTHER}"]


part = st.floats(0, 1)


@given(st.data())
def test_the_points_less_the_deduction_are_the_score(data: st.DataObject) -> None:
    """On hits as the database makes them; tests/contract has the same on its own answers."""
    values = [data.draw(part) for _ in range(4)]
    weights = [data.draw(st.floats(0, 100)) for _ in range(4)]
    lifecycle = data.draw(st.sampled_from(["active", "stale", "disputed", "rejected", "superseded"]))
    source = data.draw(st.sampled_from(["cosine", "fts", "max", "blend", "none"]))
    text, blend = data.draw(part), data.draw(part)
    match source:
        case "fts":
            values[0] = text
        case "max":
            values[0] = max(values[0], text)
        case "blend":
            values[0] = blend * values[0] + (1 - blend) * text
    score = sum(value * weight for value, weight in zip(values, weights, strict=True))
    score -= 0 if lifecycle == "active" else 0.3
    names = ("p_w_similarity", "p_w_importance", "p_w_recency", "p_w_dependency")
    explained = hit(
        {**dict(zip(names, weights, strict=True)), "p_fusion_weight": blend},
        relevance=values[0],
        importance=values[1],
        recency=values[2],
        dependency_boost=values[3],
        ranking_score=score,
        lifecycle_status=lifecycle,
        relevance_source=source,
        similarity=data.draw(st.floats(-1, 1)),
        text_relevance=text,
    ).explain()
    points = [one.points for one in explained.components]
    assert sum(points) - explained.deduction == pytest.approx(score, abs=1e-8)
    assert explained.deduction == pytest.approx(0 if lifecycle == "active" else 0.3, abs=1e-8)
    shares = [one.share for one in explained.components]
    assert sum(shares) == pytest.approx(1) or not any(points)
    assert [share * sum(points) for share in shares] == pytest.approx(points)
    origin = explained.relevance
    assert origin.from_cosine >= 0
    assert origin.from_text >= 0
    assert origin.from_cosine + origin.from_text == pytest.approx(values[0], abs=1e-8)
    assert str(explained).startswith(f"score {score:.3f}")


def test_weights_that_are_all_zero_share_nothing() -> None:
    nothing = Hit.model_validate({**answers.hit(), "arguments": {"p_w_similarity": 0}})
    assert all(part.share == 0 for part in nothing.explain().components)
