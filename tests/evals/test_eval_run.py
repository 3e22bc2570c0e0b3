"""A run from its dataset to its log, on a real stack: what each question finds, and what must never be found."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ranked_ledger import PolicyStats, RankedLedger
from ranked_ledger.evals import running, runs, vectors
from ranked_ledger.evals.anomalies import anomalies
from ranked_ledger.evals.arms import ARMS, NAMES
from ranked_ledger.evals.cases import Dataset
from ranked_ledger.evals.errors import EvalError
from ranked_ledger.evals.ground import ground
from ranked_ledger.evals.report import report
from ranked_ledger.evals.running import Finished, run, run_on
from ranked_ledger.evals.vectors import Vectors
from tests.evals.small import RECORDS, small

pytestmark = pytest.mark.timeout(300)


def embedded(dataset: Dataset, folder: Path) -> Vectors:
    """By the quickest real model that there is."""
    model = vectors.model_of("wordllama")
    assert model is not None
    return vectors.embed_dataset(model, dataset, cache=folder / "vectors.sqlite")


@dataclass(frozen=True)
class Ran:
    finished: Finished
    log: runs.Run
    stats: dict[str, list[PolicyStats]]

    def row(self, question: str, arm: str) -> dict[str, Any]:
        (found,) = (one for one in self.log.rows if (one["question"], one["arm"]) == (question, arm))
        return dict(found)

    def keys(self, question: str, arm: str) -> list[str]:
        return [hit["key"] for hit in self.row(question, arm)["hits"]]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """Every arm on the small dataset, and what the ledger's own statistics say of it afterwards."""
    folder = tmp_path_factory.mktemp("run")
    made = embedded(small(), folder)
    with ground(made.dimension) as there:
        finished = run_on(there, small(), folder / "run.jsonl", vectors=made)
        info = there.info
        with RankedLedger(info.url, info.secret_key, workspace="eval/shop") as ledger:
            shop, farm = (
                ledger.with_options(workspace=name).policy_stats() for name in ("eval/shop", "eval/farm")
            )
    return Ran(finished, runs.read(finished.path), {"eval/shop": shop, "eval/farm": farm})


def test_every_question_is_put_to_every_arm_and_nothing_is_anomalous(ran: Ran) -> None:
    assert ran.finished.sound
    assert ran.finished.rows == len(ran.log.rows) == 6 * len(ARMS)
    assert ran.finished.absent == {}
    assert ran.log.end is not None
    assert anomalies(ran.log.header, ran.log.rows) == ran.log.end["anomalies"] == ran.finished.anomalies


def test_what_was_loaded_and_what_was_refused(ran: Ran) -> None:
    loaded = ran.finished.loaded
    assert loaded.decisions == sum(len(records) for records in RECORDS.values())
    # M1 and M4 rest on each other: whichever edge comes second would close a loop
    assert (loaded.edges, loaded.refused_edges) == (4, 1)
    assert (loaded.supersessions, loaded.refused_supersessions) == (2, 0)
    assert loaded.marked == 3


def test_a_decision_from_the_future_is_never_returned(ran: Ran) -> None:
    for row in ran.log.rows:
        assert all(hit["step"] <= row["asked_at_step"] for hit in row["hits"])
    assert set(ran.keys("before", "recency")) == {"C1", "C2", "C3", "M1", "M4"}
    assert "C5" in ran.keys("between", "recency")


def test_a_supersession_is_in_force_from_its_step(ran: Ran) -> None:
    arm = "ranked_ledger_text"
    assert "C2" in ran.keys("before", arm)
    assert "C2" not in ran.keys("between", arm)
    assert "C5" in ran.keys("between", arm)
    assert not {"C2", "C5"} & set(ran.keys("after", arm))
    (before,) = (hit for hit in ran.row("before", "vector")["hits"] if hit["key"] == "C2")
    (after,) = (hit for hit in ran.row("after", "vector")["hits"] if hit["key"] == "C2")
    assert (before["lifecycle"], after["lifecycle"]) == ("active", "superseded")


def test_stale_rejected_and_disputed_hold_from_their_first_step(ran: Ran) -> None:
    found = {hit["key"]: hit["lifecycle"] for hit in ran.row("between", "recency")["hits"]}
    assert {found[f"C-{one}"] for one in ("stale", "rejected", "disputed")} == {
        "stale",
        "rejected",
        "disputed",
    }
    in_force = ran.keys("between", "hybrid_rrf_in_force")
    assert not {"C-rejected", "C2"} & set(in_force)


def test_nothing_of_another_workspace_is_found_and_other_streams_of_the_same_are(ran: Ran) -> None:
    assert set(ran.keys("oxen", "recency")) == {"F1", "F2"}
    assert {"M1", "M4"} < set(ran.keys("before", "recency"))


def test_arms_differ_as_their_names_say(ran: Ran) -> None:
    assert ran.keys("after", "none") == []
    assert ran.keys("after", "oracle") == ["C9"]
    assert ran.keys("after", "recency")[:2] == ["C9", "C8"]
    steps = [hit["step"] for hit in ran.row("after", "recency")["hits"]]
    assert steps == sorted(steps, reverse=True)
    assert set(ran.keys("after", "fts_and")) < set(ran.keys("after", "fts_or"))
    assert ran.keys("unknown words", "fts_or") == []
    assert len(ran.keys("unknown words", "vector")) == 12
    cosines = [hit["score"] for hit in ran.row("after", "vector")["hits"]]
    assert cosines == sorted(cosines, reverse=True)
    assert [bool(hit["components"]) for hit in ran.row("after", "vector")["hits"]] == [True] * 10 + [
        False
    ] * 2
    similarities = [hit["components"]["similarity"] for hit in ran.row("after", "vector")["hits"][:10]]
    assert cosines[:10] == pytest.approx(similarities, abs=1e-6)
    sources = {
        arm: {hit["components"]["relevance_source"] for hit in ran.row("after", arm)["hits"][:10]}
        for arm in ("ranked_ledger_text", "ranked_ledger_vectors", "tuned", "tuned_without_text")
    }
    assert sources == {
        "ranked_ledger_text": {"fts"},
        "ranked_ledger_vectors": {"cosine"},
        "tuned": {"blend"},
        "tuned_without_text": {"cosine"},
    }
    scores = {
        arm: tuple(hit["score"] for hit in ran.row("after", arm)["hits"])
        for arm in NAMES
        if arm not in ("none", "oracle", "fts_and", "fts_or")
    }
    assert len(set(scores.values())) == len(scores)


def test_fusion_is_by_reciprocal_places(ran: Ran) -> None:
    places: dict[str, float] = {}
    for arm in ("vector", "fts_or"):
        for place, key in enumerate(ran.keys("after", arm), 1):
            places[key] = places.get(key, 0) + 1 / (60 + place)
    fused = {hit["key"]: hit["score"] for hit in ran.row("after", "hybrid_rrf")["hits"]}
    assert fused == pytest.approx(places)


def test_a_retired_answer_without_its_successor_is_noted(ran: Ran) -> None:
    for arm in NAMES:
        row = ran.row("after", arm)
        read = [hit["key"] for hit in row["hits"]]
        # C9 is at the end of the chain of both, and was never replaced; what was rejected has no successor
        lost = {"C2", "C5", "C-rejected"} if "C9" not in read[:10] else {"C-rejected"}
        assert row["retired_without_successor"] == [key for key in read[:5] if key in lost]


def test_a_successor_counts_where_it_is_in_force_itself() -> None:
    chain = SimpleNamespace(successors={"C2": {"C5", "C9"}, "C5": {"C9"}}.get)

    def lost(*hits: tuple[str, str]) -> list[str]:
        return running._without_successor([{"key": key, "lifecycle": is_} for key, is_ in hits], chain)  # type: ignore[arg-type]

    old, newer, newest = ("C2", "superseded"), ("C5", "superseded"), ("C9", "stale")
    others = [(f"x{number}", "active") for number in range(8)]
    assert lost(old, newer) == ["C2", "C5"]
    assert lost(old, *others, newest) == []
    assert lost(old, others[0], *others, newest) == ["C2"]
    assert lost(*others[:5], old) == []


def test_vectors_in_force_are_those_of_vector_without_what_is_retired(ran: Ran) -> None:
    for question in ("before", "between", "after"):
        whole = ran.row(question, "vector")["hits"]
        kept = [hit["key"] for hit in whole if hit["lifecycle"] not in ("superseded", "rejected")]
        assert ran.keys(question, "vector_in_force") == kept
    assert len(kept) < len(whole)


def test_a_model_that_gives_one_vector_to_all_ends_no_run(tmp_path: Path) -> None:
    dataset = small()
    texts: list[tuple[vectors.TextKind, str]] = [
        ("passage", one.embedded_text) for records in dataset.streams.values() for one in records
    ]
    texts += [("query", one.ask) for one in dataset.questions]
    same = np.full(8, 8**-0.5, dtype=np.float32)
    made = Vectors(
        SimpleNamespace(name="same", key="same 1", embed=lambda *_: []), dict.fromkeys(texts, same)
    )
    finished = run(dataset, tmp_path / "run.jsonl", vectors=made, arms=["vector", "tuned"])
    assert finished.sound
    log = runs.read(finished.path)
    assert list(log.header["unfitted"]) == ["shop"]
    assert log.header["ranges"] == {}
    text = report(log, command="report", resamples=100).markdown()
    assert "no range fitted, cosines as they are or as fitted before: shop " in text


def test_a_larger_budget_never_holds_less_and_the_first_right_is_in_it(ran: Ran) -> None:
    row = ran.row("after", "vector")
    tokens = [row["budgets"][str(budget)]["tokens"] for budget in range(100, 4001, 100)]
    assert all(spent <= budget - 37 for spent, budget in zip(tokens, range(100, 4001, 100), strict=True))
    assert row["budgets"]["4000"]["hits"] == len(row["hits"])
    place = next(hit["rank"] for hit in row["hits"] if hit["key"] == "C9")
    assert row["budgets"]["4000"]["first_right"] == place


def test_every_answer_has_a_trace_under_its_arms_name(ran: Ran) -> None:
    assert all(row["traced"] for row in ran.log.rows)
    for workspace, asked in (("eval/shop", 5), ("eval/farm", 1)):
        stats = {one.recall_policy: one for one in ran.stats[workspace]}
        assert set(stats) == set(NAMES)
        assert {one.recall_requests for one in stats.values()} == {asked}


def test_a_log_says_what_its_presets_weighed_by(ran: Ran) -> None:
    published, tuned = (ran.log.header["presets"][name] for name in ("published", "tuned"))
    assert (published["w_similarity"], published["w_summary"], published["half_life"]) == (0.45, 0, 30)
    for preset in (published, tuned):
        assert sum(weight for name, weight in preset.items() if name.startswith("w_")) == pytest.approx(1)


def test_a_second_run_has_the_same_numbers(ran: Ran, tmp_path: Path) -> None:
    again = run(small(), tmp_path / "again.jsonl", vectors=embedded(small(), tmp_path))
    log = runs.read(again.path)
    assert [timeless(row) for row in log.rows] == [timeless(row) for row in ran.log.rows]
    assert log.header == ran.log.header


def timeless(row: Any) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != "milliseconds"}


def test_by_words_alone_arms_with_vectors_are_absent(tmp_path: Path) -> None:
    finished = run(small(), tmp_path / "run.jsonl", arms=["vector", "hybrid_rrf", "fts_or", "tuned"])
    assert finished.sound
    assert finished.arms == ("fts_or", "tuned")
    assert set(finished.absent) == {"vector", "hybrid_rrf"}


def test_an_interrupted_run_leaves_a_log_that_can_be_read(tmp_path: Path) -> None:
    def interrupt(stage: str, done: int, total: int) -> None:
        if done >= 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(small(), tmp_path / "run.jsonl", arms=["recency", "fts_or"], on_progress=interrupt)
    log = runs.read(tmp_path / "run.jsonl")
    assert len(log.rows) == 4
    assert log.end is None


def test_a_dataset_without_questions_is_refused_before_a_server_starts(tmp_path: Path) -> None:
    nothing = Dataset.of("quiet", RECORDS, [], workspaces={"shop/cart": "shop", "shop/mail": "shop"})
    with pytest.raises(EvalError, match="quiet has no question"):
        run(nothing, tmp_path / "run.jsonl")
