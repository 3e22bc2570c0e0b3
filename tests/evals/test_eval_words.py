"""Arms that no argument of a recall makes, against their formulas: BM25, its fusion, and the tuned preset without a part."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest

from ranked_ledger import RankedLedger
from ranked_ledger.evals import vectors
from ranked_ledger.evals.arms import LIMIT, chosen
from ranked_ledger.evals.asking import Asked, Session
from ranked_ledger.evals.cases import Dataset
from ranked_ledger.evals.ground import ground
from ranked_ledger.evals.loading import Loaded, Replay
from tests.evals.small import question, record

pytestmark = pytest.mark.timeout(300)

KIOSK = "kiosk"
LONG = "Deliveries arrive before dawn, and whoever opens counts them against the note of the day before. "
RECORDS = [
    record(KIOSK, "K1", 1, "Newspapers are sold at the counter", "Newspapers of yesterday go back."),
    record(KIOSK, "K2", 2, "Coffee is sold in paper cups", "Coffee in glasses was broken. Coffee is hot."),
    record(KIOSK, "K3", 3, "Coffee beans come weekly", LONG * 6 + "Coffee is delivered with the newspapers."),
    record(
        KIOSK, "K4", 4, "Coffee costs two euros", "Change for coffee is at hand.",
        lifecycle="superseded", superseded_at_step=9, superseded_by=("K9",),
    ),
    record(KIOSK, "K5", 5, "Tickets are printed", LONG * 3, rationale="Printed tickets are read by every gate."),
    record(KIOSK, "K6", 6, "Umbrellas are lent", "Rain comes without a forecast.", lifecycle="stale"),
    record(KIOSK, "K7", 7, "Coffee coffee coffee", "Coffee " * 20, lifecycle="rejected"),
    record(KIOSK, "K8", 8, "The counter is closed at noon", "Deliveries are counted then."),
    record(KIOSK, "K9", 9, "Coffee costs three euros", "Milk has become dear."),
    record(KIOSK, "K10", 10, "Keys hang behind the counter", "Whoever opens takes them."),
    record(KIOSK, "K11", 11, "Prices are on a board", "Three lines of chalk, euros first."),
]  # fmt: skip
ASKS = [
    "how much does coffee cost?",
    "coffee",
    "coffee and newspapers at the counter, coffee first",
    "who counts the deliveries before dawn?",
    "umbrellas",
    "zymurgy quokka",
]


@dataclass(frozen=True)
class Kiosk:
    """The records, loaded; a session that asks; and the words of each record, as PostgreSQL reads its text."""

    session: Session
    keys: Mapping[str, str]
    words: Mapping[str, Counter[str]]
    retired: frozenset[str]
    embedded: vectors.Vectors
    owner: psycopg.Connection

    def scores(self, arm: str, ask: str) -> dict[str, float]:
        """What an arm answers, in its order."""
        return {self.keys[hit["memory_id"]]: hit["ranking_score"] for hit in self.hits(arm, ask)}

    def hits(self, arm: str, ask: str) -> list[Mapping[str, Any]]:
        (one,) = chosen([arm])
        vector = None if one.vectors == "never" else self.embedded.query(ask)
        asked = Asked(f"eval/{KIOSK}", ask, ask, vector, self.embedded.model, 11, ())
        return list(self.session.ask(one, asked).hits)

    def words_of(self, text: str) -> Counter[str]:
        return words_of(self.owner, text)

    def bm25(self, ask: str) -> dict[str, float]:
        """The scores of what has a word of the question, from the texts alone."""
        usual = sum(words.total() for words in self.words.values()) / len(self.words)
        scores: dict[str, float] = {}
        for word in self.words_of(ask):
            having = [key for key, words in self.words.items() if word in words]
            rarity = math.log(1 + (len(self.words) - len(having) + 0.5) / (len(having) + 0.5))
            for key in having:
                occurrences, length = self.words[key][word], self.words[key].total()
                share = occurrences / (occurrences + 1.2 * (0.25 + 0.75 * length / usual))
                scores[key] = scores.get(key, 0) + rarity * share
        return scores


def words_of(owner: psycopg.Connection, text: str) -> Counter[str]:
    rows = owner.execute(
        "select lexeme, cardinality(positions) from unnest(to_tsvector('english', %s))", (text,)
    )
    return Counter(dict(rows.fetchall()))


@pytest.fixture(scope="module")
def kiosk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kiosk]:
    asked = [question(f"q{place}", KIOSK, 11, ask, "K1") for place, ask in enumerate(ASKS)]
    dataset = Dataset.of("kiosk", {KIOSK: RECORDS}, asked)
    model = vectors.model_of("wordllama")
    assert model is not None
    made = vectors.embed_dataset(model, dataset, cache=tmp_path_factory.mktemp("v") / "vectors.sqlite")
    with (
        ground(made.dimension) as there,
        RankedLedger(
            there.info.url, there.info.secret_key, workspace=f"eval/{KIOSK}", project=KIOSK
        ) as ledger,
        Session(there.info.superuser_db_url) as session,
        psycopg.connect(there.info.superuser_db_url, autocommit=True) as owner,
    ):
        replay = Replay(ledger, dataset, KIOSK, made, Loaded())
        replay.until(11)
        session.fit_range(f"eval/{KIOSK}", made.model)
        words = {one.key: words_of(owner, f"{one.content} {one.rationale or ''}") for one in RECORDS}
        yield Kiosk(session, replay.keys, words, frozenset({"K4", "K7"}), made, owner)


@pytest.mark.parametrize("ask", ASKS)
def test_bm25_is_its_formula(kiosk: Kiosk, ask: str) -> None:
    by_hand = {key: score / (score + 1) for key, score in kiosk.bm25(ask).items()}
    found = kiosk.scores("bm25", ask)
    assert found == pytest.approx(by_hand, rel=1e-12)
    assert list(found.values()) == sorted(found.values(), reverse=True)
    in_force = {key: score for key, score in by_hand.items() if key not in kiosk.retired}
    assert kiosk.scores("bm25_in_force", ask) == pytest.approx(in_force, rel=1e-12)


def test_bm25_looks_at_rarity_length_and_repetition(kiosk: Kiosk) -> None:
    found = kiosk.scores("bm25", "coffee")
    assert found["K2"] > found["K9"] > found["K3"]  # said thrice; once, in a short text; once, in a long one
    assert list(kiosk.scores("bm25", "umbrellas")) == ["K6"]
    assert kiosk.scores("bm25", "zymurgy quokka") == {}


@pytest.mark.parametrize("words", ["fts_or", "bm25"])
@pytest.mark.parametrize("in_force", [False, True])
@pytest.mark.parametrize("ask", ASKS)
def test_fusion_is_by_reciprocal_places_in_both_lists(
    *, kiosk: Kiosk, words: str, in_force: bool, ask: str
) -> None:
    by_hand: dict[str, float] = {}
    for arm in ("vector", words):
        listed = [key for key in kiosk.scores(arm, ask) if not in_force or key not in kiosk.retired]
        for place, key in enumerate(listed, 1):
            by_hand[key] = by_hand.get(key, 0) + 1 / (60 + place)
    name = "hybrid_rrf" + ("_bm25" if words == "bm25" else "") + ("_in_force" if in_force else "")
    assert kiosk.scores(name, ask) == pytest.approx(by_hand, rel=1e-12)


def components(hits: list[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    return {str(hit["memory_id"]): hit for hit in hits}


@pytest.mark.parametrize("arm", ["tuned_without_rarity", "tuned_without_length"])
@pytest.mark.parametrize("ask", ASKS)
def test_without_a_part_of_the_words_only_what_the_words_say_is_another(
    *, kiosk: Kiosk, arm: str, ask: str
) -> None:
    tuned = components(kiosk.hits("tuned", ask))
    share, weight = weights(kiosk)
    expected = {}
    for memory_id, hit in tuned.items():
        text = text_relevance(kiosk, arm, ask, kiosk.keys[memory_id])
        # the preset's own is by the same formula, so that only the part is what differs
        assert text_relevance(kiosk, "tuned", ask, kiosk.keys[memory_id]) == pytest.approx(
            hit["text_relevance"]
        )
        expected[kiosk.keys[memory_id]] = hit["ranking_score"] + weight * share * (
            text - hit["text_relevance"]
        )
    assert kiosk.scores(arm, ask) == pytest.approx(expected)
    assert len(expected) == len(RECORDS) - len(kiosk.retired) <= LIMIT


def weights(kiosk: Kiosk) -> tuple[float, float]:
    """How much of the relevance the words are, and of the score the relevance."""
    found = kiosk.owner.execute(
        "select 1 - fusion_weight, w_similarity from ranked_ledger.preset('tuned')"
    ).fetchone()
    assert found is not None
    return found


def text_relevance(kiosk: Kiosk, arm: str, ask: str, key: str) -> float:
    # the ledger counts those that are not retired, and at least fifty
    documents = max(50, len(kiosk.words) - len(kiosk.retired))
    rarities = {}
    for word in kiosk.words_of(ask):
        having = sum(word in words for words in kiosk.words.values())
        if having:
            rarities[word] = math.log(1 + (max(documents - having, 0) + 0.5) / (having + 0.5))
    if arm == "tuned_without_rarity" and rarities:
        rarities = dict.fromkeys(rarities, sum(rarities.values()) / len(rarities))
    words = kiosk.words[key]
    shares = sum(rarity * words[word] / (words[word] + 3) for word, rarity in rarities.items())
    share = 0 if arm == "tuned_without_length" else 0.1
    return shares / (shares + 4 * (1 - share + share * words.total() / 100))


def test_what_is_calibrated_is_calibrated_by_the_range_of_the_workspace(kiosk: Kiosk) -> None:
    kept = kiosk.owner.execute("select floor, ceiling from ranked_ledger.similarity_ranges").fetchone()
    assert kept is not None
    assert kept[0] < kept[1]
    assert tuple(kept) != (0, 1)
    for arm in chosen():
        if arm.kind == "sql":
            continue
        kiosk.hits(arm.name, "coffee")
        raw = arm.vectors == "never" or "p_similarity_floor" in arm.arguments
        asked = kiosk.owner.execute(
            "select request_payload from public.agent_memory_recall_traces"
            " where response_policy ->> 'recall_policy' = %s",
            (arm.name,),
        ).fetchone()
        assert asked is not None
        used = (asked[0]["p_similarity_floor"], asked[0]["p_similarity_ceiling"])
        assert used == pytest.approx((0, 1) if raw else tuple(kept)), arm.name
