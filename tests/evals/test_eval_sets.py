"""The sets that every change is run against: the built-in questions by the nine arms, and real ones by words alone."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from statistics import mean

import pytest

from ranked_ledger.evals import runs, vectors
from ranked_ledger.evals.arms import STARRED
from ranked_ledger.evals.builtin import built_in
from ranked_ledger.evals.readers import read_jsonl
from ranked_ledger.evals.running import run

pytestmark = pytest.mark.timeout(600)

# Read in place where it lies beside the checkout, never copied.
SHARED = Path(__file__).resolve().parents[3] / "shared" / "data" / "decisions"
BY_WORDS = ("none", "recency", "fts_and", "fts_or", "ranked_ledger_text", "oracle", "tuned_text")


def reciprocal_ranks(log: runs.Run) -> dict[str, float]:
    """The mean of each arm."""
    return {
        arm: mean(
            next((1 / hit["rank"] for hit in row["hits"] if hit["key"] in row["gold"]), 0.0)
            for row in log.rows
            if row["arm"] == arm
        )
        for arm in log.arms
    }


def test_the_built_in_questions_by_nine_arms_are_486_rows_without_an_anomaly(tmp_path: Path) -> None:
    dataset = built_in(seed=0)
    model = vectors.model_of("wordllama")
    assert model is not None
    made = vectors.embed_dataset(model, dataset, cache=tmp_path / "vectors.sqlite")
    finished = run(dataset, tmp_path / "run.jsonl", vectors=made, arms=STARRED)
    log = runs.read(finished.path)
    assert len(log.rows) == finished.rows == 486
    assert Counter(row["arm"] for row in log.rows) == dict.fromkeys(STARRED, 54)
    assert finished.absent == {}
    assert not any(finished.anomalies.values()), finished.anomalies
    found = reciprocal_ranks(log)
    assert (found["none"], found["oracle"]) == (0, 1)
    assert all(0 <= rank < 1 for arm, rank in found.items() if arm != "oracle")


@pytest.mark.skipif(not SHARED.is_dir(), reason="the decisions of real projects are not beside this checkout")
def test_a_fixed_slice_of_real_questions_by_words_alone(tmp_path: Path) -> None:
    whole = read_jsonl(SHARED / "decisions.jsonl", SHARED / "questions.jsonl")
    # an order of arms is asserted of streams that weights were chosen on alone: the others are for reporting.
    # one of them has as many decisions as the rest together, and takes as much time to load
    short = [stream for stream in sorted(runs.TUNING_STREAMS) if len(whole.streams[stream]) < 500]
    dataset = whole.restricted(short, limit=60, seed=6)
    assert len(dataset.questions) == 60
    finished = run(dataset, tmp_path / "run.jsonl", arms=BY_WORDS)
    assert finished.rows == 60 * len(BY_WORDS)
    assert not any(finished.anomalies.values()), finished.anomalies
    log = runs.read(finished.path)
    found = reciprocal_ranks(log)
    assert found["oracle"] == 1
    assert found["fts_and"] < found["ranked_ledger_text"] < found["fts_or"] < found["tuned_text"]
    served = [
        row["question"] for row in log.rows if row["arm"] == "tuned_text" and row["retired_without_successor"]
    ]
    assert served == []
