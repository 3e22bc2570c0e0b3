"""Each argument of a recall has its effect through both clients, and every hit explains itself to the last digit."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import psycopg
import pytest

import ranked_ledger as rl
from ranked_ledger.stack import StackInfo
from tests.unit.sdk_drivers import Driver

DIMENSIONS = 1536
QUESTION = [1.0, *[0.0] * (DIMENSIONS - 1)]


def at(cosine: float) -> list[float]:
    """A vector of that cosine with the question's."""
    return [cosine, math.sqrt(1 - cosine * cosine), *[0.0] * (DIMENSIONS - 2)]


def contents(hits: Iterable[rl.Hit]) -> set[str]:
    return {hit.content for hit in hits}


def in_sql(stack: StackInfo, statement: str, *values: object) -> None:
    with psycopg.connect(stack.superuser_db_url) as superuser:
        assert superuser.execute(statement, values).rowcount > 0


# --- which decisions ----------------------------------------------------------------------------------------------


def test_stale_ones_come_without_the_retired_ones(ledger: Driver) -> None:
    for lifecycle in ("active", "stale", "disputed", "rejected"):
        made = ledger.record(lifecycle)
        if lifecycle != "active":
            ledger.set_lifecycle(made, lifecycle)
    ledger.supersede(ledger.record("superseded"), by=ledger.record("successor"))
    live = {"active", "successor"}
    assert contents(ledger.recall(include_stale=False)) == live
    assert contents(ledger.recall(include_stale=True)) == live | {"stale", "disputed"}
    assert contents(ledger.recall()) == live | {"stale", "disputed"}
    assert contents(ledger.recall(preset="published")) == live
    assert " | stale | by " in ledger.recall().to_prompt()
    every = live | {"stale", "disputed", "rejected", "superseded"}
    assert contents(ledger.recall(include_superseded=True)) == every


def test_what_waits_for_its_confirmation_is_left_out(ledger: Driver, stack: StackInfo) -> None:
    confirmed, free = ledger.record("confirmed"), ledger.record("needs none")
    ledger.record("waits")
    in_sql(
        stack,
        "update public.agent_memories set review_status = 'confirmed' where id = %s",
        confirmed.memory_id,
    )
    in_sql(
        stack,
        "update public.agent_memories set requires_user_confirmation = false where id = %s",
        free.memory_id,
    )
    assert contents(ledger.recall()) == {"confirmed", "needs none", "waits"}
    assert contents(ledger.recall(only_confirmed=True)) == {"confirmed", "needs none"}


def test_personal_ones_are_left_out(ledger: Driver) -> None:
    ledger.record("mine", visibility="personal")
    ledger.record("ours", visibility="workspace")
    assert contents(ledger.recall()) == {"mine", "ours"}
    assert contents(ledger.recall(include_personal=False)) == {"ours"}


def test_a_minimum_of_relevance_holds_for_pinned_ones_too(ledger: Driver) -> None:
    ledger.record("invoices are immutable")
    ledger.record("the logo is blue", pinned=True)
    assert contents(ledger.recall("invoices", min_relevance=0)) == {
        "invoices are immutable",
        "the logo is blue",
    }
    assert contents(ledger.recall("invoices", min_relevance=0.01)) == {"invoices are immutable"}
    nothing = ledger.recall("invoices", min_relevance=1)
    assert (len(nothing), nothing.dropped) == (0, ())
    assert nothing.hint


def test_a_small_workspace_is_always_proven(ledger: Driver) -> None:
    ledger.record("a", embedding=at(0.5))
    asked = {exact: ledger.recall("a", embedding=QUESTION, exact=exact) for exact in (True, False)}
    assert [recall.exact for recall in asked.values()] == [True, True]
    assert [recall.arguments["p_exact"] for recall in asked.values()] == [True, False]
    assert [hit.score for hit in asked[True]] == [hit.score for hit in asked[False]]


# --- as of when ---------------------------------------------------------------------------------------------------


def test_a_past_recall_is_asked_by_step_and_by_time(ledger: Driver, stack: StackInfo) -> None:
    old = ledger.record("invoices are mutable", task="t")
    with psycopg.connect(stack.superuser_db_url) as superuser:
        ((before,),) = superuser.execute("select clock_timestamp()").fetchall()
    new = ledger.record("invoices are immutable", task="t", depends_on=old)
    ledger.supersede(old, by=new)

    def seen(**named: Any) -> list[tuple[str, str, int | None]]:
        hits = ledger.recall("invoices", include_superseded=True, trace=False, **named)
        return [(hit.content, hit.lifecycle_status, hit.live_dependents) for hit in hits]

    assert len(seen()) == 2
    then = [("invoices are mutable", "active", 0)]
    assert seen(as_of=before) == seen(as_of=before, task="t") == seen(as_of_step=0, task="t") == then
    assert seen(as_of_step=1, task="t") == seen(task="t")
    (hit,) = ledger.recall(as_of_step=0, task="t")
    assert (hit.arguments["p_as_of_step"], hit.arguments["p_as_of"]) == (0, None)
    assert "as it stood at step 0 of its task" in str(hit.explain())
    assert ledger.get(old).recall_count == 0
    nothing = ledger.recall(as_of=datetime(2001, 1, 1, tzinfo=UTC))
    assert (len(nothing), "then" in (nothing.hint or "")) == (0, True)


@pytest.mark.parametrize(
    ("named", "said", "hint"),
    [
        ({"as_of_step": 1}, "as_of_step counts the steps of one task, and no task is given", "as_of"),
        ({"as_of_step": 1, "task": "t", "as_of": datetime(2026, 1, 1, tzinfo=UTC)}, "both given", "the step"),
        ({"as_of": datetime(9999, 1, 1, tzinfo=UTC)}, "no time of the past", "leave it out"),
    ],
)
def test_a_moment_that_cannot_be_meant_says_why(
    ledger: Driver, named: dict[str, Any], said: str, hint: str
) -> None:
    with pytest.raises(rl.InvalidArgumentError, match=said) as caught:
        ledger.recall("x", **named)
    assert caught.value.code == "22023"
    assert hint in (caught.value.hint or "")
    assert "p_" not in f"{caught.value} {caught.value.hint}"


# --- where relevance comes from -----------------------------------------------------------------------------------


def test_a_cosine_counts_between_floor_and_ceiling(ledger: Driver) -> None:
    for cosine in (0.74, 0.78, 0.87, 0.91):
        ledger.record(f"{cosine}", embedding=at(cosine), embedding_model="e5")
    ask: dict[str, Any] = {"embedding": QUESTION, "embedding_model": "e5"}

    def relevances(**named: Any) -> dict[str, float]:
        found = ledger.recall("zzz", preset="published", **ask, **named)
        return {hit.content: hit.relevance for hit in found}

    spread = {"0.74": 0.0, "0.78": 0.2, "0.87": 0.8, "0.91": 1.0}
    assert relevances() == pytest.approx({text: float(text) for text in spread}, abs=1e-6)
    assert relevances(similarity_floor=0.75, similarity_ceiling=0.9) == pytest.approx(spread, abs=1e-6)
    assert relevances(similarity_floor=0.75)["0.87"] == pytest.approx(0.48, abs=1e-6)
    (hit, *_) = ledger.recall("zzz", limit=1, similarity_floor=0.75, similarity_ceiling=0.9, **ask)
    assert hit.similarity == pytest.approx(0.91, abs=1e-6)
    assert "cosine 0.910 (0.75 counts as 0, 0.9 as 1)" in str(hit.explain())


def test_a_range_that_is_kept_counts_for_its_model(ledger: Driver) -> None:
    ledger.record("x", embedding=at(0.87), embedding_model="e5")
    ledger.set_similarity_range("e5", floor=0.75, ceiling=0.9)

    def relevance(**named: Any) -> float:
        (hit,) = ledger.recall("x", embedding=QUESTION, fusion="none", **named)
        return float(hit.relevance)

    assert relevance(embedding_model="e5") == pytest.approx(0.8, abs=1e-6)
    assert relevance(embedding_model="another") == pytest.approx(0.87, abs=1e-6)
    assert relevance() == pytest.approx(0.87, abs=1e-6)
    given = relevance(embedding_model="e5", similarity_floor=0, similarity_ceiling=1)
    assert given == pytest.approx(0.87, abs=1e-6)


def test_cosine_and_words_are_fused(ledger: Driver) -> None:
    ledger.record("invoices invoices invoices", embedding=at(0.4), embedding_model="m")
    ledger.record("near", embedding=at(0.9), embedding_model="m")
    ledger.record("invoices alone")

    def hits(**named: Any) -> dict[str, rl.Hit]:
        ask: dict[str, Any] = {"embedding": QUESTION, "embedding_model": "m", "preset": "published"}
        found = ledger.recall("invoices", **ask | named)
        return {hit.content.split()[-1]: hit for hit in found}

    plain = hits()
    assert {hit.relevance_source for hit in plain.values()} == {"cosine", "fts"}
    words = plain["invoices"].text_relevance or 0
    assert words > 0.4

    most = hits(fusion="max")
    assert most["invoices"].relevance == pytest.approx(words)
    assert most["near"].relevance == pytest.approx(0.9, abs=1e-6)
    assert (most["near"].relevance_source, most["alone"].relevance_source) == ("max", "fts")

    half, mostly_words = hits(fusion="blend"), hits(fusion="blend", fusion_weight=0.1)
    assert half["invoices"].relevance == pytest.approx(0.5 * 0.4 + 0.5 * words, abs=1e-6)
    assert half["near"].relevance == pytest.approx(0.45, abs=1e-6)
    assert mostly_words["near"].relevance == pytest.approx(0.09, abs=1e-6)
    assert half["invoices"].relevance_source == "blend"
    assert half["alone"].relevance == plain["alone"].relevance
    assert "it has no vector to compare" in str(half["alone"].explain())

    tuned = hits(preset="tuned")
    words = tuned["invoices"].text_relevance or 0
    assert tuned["invoices"].relevance == pytest.approx(0.4 * 0.4 + 0.6 * words, abs=1e-6)
    assert "40% by meaning and 60% by words" in str(tuned["invoices"].explain())
    assert "no vector to compare; rare words count most" in str(tuned["alone"].explain())


@pytest.mark.parametrize(
    ("named", "said", "hint"),
    [
        ({"fusion": "sum"}, "fusion is none, max or blend; it is sum", "by fusion_weight"),
        ({"fusion": "blend", "fusion_weight": 1.5}, "fusion_weight is a number from 0 to 1", "default"),
        ({"min_relevance": 2}, "min_relevance is a number from 0 to 1", "default"),
        (
            {"similarity_floor": 0.9, "similarity_ceiling": 0.75},
            r"similarity_floor \(0.9\) has to be below similarity_ceiling",
            "between 0.75 and 0.90",
        ),
    ],
)
def test_a_value_out_of_its_range_is_refused_with_what_it_is_for(
    ledger: Driver, named: dict[str, Any], said: str, hint: str
) -> None:
    with pytest.raises(rl.InvalidArgumentError, match=said) as caught:
        ledger.recall("x", **named)
    assert caught.value.code == "22023"
    assert hint in (caught.value.hint or "")


# --- what is kept, and what is told -------------------------------------------------------------------------------


def test_flow_and_runtime_are_kept_with_the_trace(ledger: Driver, stack: StackInfo) -> None:
    request_id = uuid4()
    ledger.recall("x", request_id=request_id, flow="f-1", runtime_name="pytest")
    with psycopg.connect(stack.superuser_db_url) as superuser:
        query = "select flow_id, runtime_name from public.agent_memory_recall_traces where request_id = %s"
        assert superuser.execute(query, (request_id,)).fetchone() == ("f-1", "pytest")


def test_a_retired_hit_names_its_successor_and_what_rests_on_it_is_flagged(ledger: Driver) -> None:
    old = ledger.record("old")
    ledger.record("rests", depends_on=old)
    new = ledger.record("new")
    ledger.supersede(old, by=new)
    hits = {hit.content: hit for hit in ledger.recall(include_superseded=True)}
    assert hits["old"].successor == new.memory_id
    assert hits["rests"].rests_on_retired
    assert (hits["rests"].depends_on, hits["new"].depends_on) == ((old.memory_id,), ())
    assert f"replaced by {new.memory_id}" in str(hits["old"].explain())
    assert "it rests on a decision that no longer holds" in hits["rests"].explain().notes
    assert (hits["old"].explain().live_dependents, hits["new"].explain().live_dependents) == (1, 0)
    assert hits["new"].explain().notes == ()


def test_the_tuned_preset_weighs_and_explains_otherwise(ledger: Driver) -> None:
    ledger.record("invoices are immutable once sent", summary="Invoices immutable")
    ledger.set_lifecycle(ledger.record("a stale word on invoices", summary="Something else"), "stale")
    assert contents(ledger.recall("immutable invoices", include_stale=False)) == {
        "invoices are immutable once sent"
    }
    best, stale = ledger.recall("immutable invoices")
    assert (best.summary_match, stale.summary_match, stale.lifecycle_status) == (1, 0, "stale")
    assert best.arguments["p_preset"] == "tuned"
    parts = {part.name: part for part in best.explain().components}
    assert parts["summary"].points == pytest.approx(best.arguments["p_w_summary"])
    assert sum(part.points for part in parts.values()) == pytest.approx(best.score)
    assert "the query names 100% of the words of its summary" in str(best.explain())
    assert "rare words count most" in str(best.explain())
    assert stale.explain().deduction == pytest.approx(0.05)
    assert [hit.score for hit in (best, stale)] == [
        hit.score for hit in ledger.recall("immutable invoices", preset="tuned")
    ]
    (published,) = ledger.recall("immutable invoices", preset="published")
    assert published.arguments["p_preset"] == "published"
    assert [part.name for part in published.explain().components][-1] == "dependency"
    with pytest.raises(rl.InvalidArgumentError, match="no preset 'best'") as caught:
        ledger.recall("x", preset="best")
    assert "tuned" in (caught.value.hint or "")


def test_every_explanation_adds_up_to_the_score_of_the_database(ledger: Driver) -> None:
    chance = random.Random(20261130)
    words = "invoice credit note auditor void step ledger recall edge index".split()
    made = ledger.record_many(
        rl.NewDecision(
            " ".join(chance.choices(words, k=8)),
            importance=chance.random(),
            step=chance.randrange(200),
            task=chance.choice(["a", "b"]),
            embedding=at(chance.uniform(-0.2, 1)) if chance.random() < 0.7 else None,
            pinned=chance.random() < 0.1,
        )
        for _ in range(60)
    )
    for later, earlier in zip(made[20:], made, strict=False):
        ledger.link(later, to=earlier)
    for lifecycle in ("stale", "disputed", "rejected"):
        ledger.set_lifecycle(chance.choice(made[:20]), lifecycle)
    ledger.supersede(made[30], by=made[31])

    sources = set()
    for _ in range(40):
        floor = chance.uniform(-0.3, 0.5)
        asked: dict[str, Any] = {
            "query": chance.choice([None, "invoice auditor", "zzz", "edge index recall"]),
            "embedding": at(chance.uniform(0.3, 1)) if chance.random() < 0.7 else None,
            "fusion": chance.choice(["none", "max", "blend"]),
            "fusion_weight": chance.choice([0, 0.3, 0.5, 1]),
            "preset": chance.choice(["published", "tuned"]),
            "weights": rl.Weights(*(chance.uniform(0, 2) for _ in range(5))),
            "half_life_steps": chance.uniform(1, 100),
            "dependency_saturation": chance.uniform(0.5, 5),
            "current_step": chance.randrange(400),
            "include_superseded": chance.random() < 0.7,
            "limit": 100,
            "trace": False,
        }
        if chance.random() < 0.5:
            asked |= {"similarity_floor": floor, "similarity_ceiling": chance.uniform(floor + 0.1, 1)}
        for hit in ledger.recall(**asked):
            explained = hit.explain()
            points = [part.points for part in explained.components]
            assert sum(points) - explained.deduction == pytest.approx(hit.score, abs=1e-8)
            less = 0.05 if asked["preset"] == "tuned" else 0.3
            less = {"active": 0, "stale": less, "disputed": less}.get(hit.lifecycle_status, 0.3)
            assert explained.deduction == pytest.approx(less, abs=1e-8)
            assert sum(part.share for part in explained.components) == pytest.approx(1)
            origin = explained.relevance
            assert origin.from_cosine + origin.from_text == pytest.approx(hit.relevance, abs=1e-8)
            _assert_parts(origin)
            sources.add(origin.source)
    assert sources == {"cosine", "fts", "max", "blend", "none"}


def _assert_parts(origin: rl.Origin) -> None:
    """What each source is said to have given is what the database's calibration makes of it."""
    text = origin.text_relevance or 0.0
    cosine = ((origin.similarity or 0.0) - origin.floor) / (origin.ceiling - origin.floor)
    cosine = min(1.0, max(0.0, cosine))
    weight = origin.fusion_weight or 0.0
    given = {
        "cosine": (cosine, 0),
        "fts": (0, text),
        "none": (0, 0),
        "max": (cosine, 0) if cosine > text else (0, text),
        "blend": (weight * cosine, (1 - weight) * text),
    }[origin.source]
    assert (origin.from_cosine, origin.from_text) == pytest.approx(given, abs=1e-6)
