"""The parts of the tuned text relevance, each held against figures worked out by hand and against what it promises."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import psycopg
import pytest

from tests.sql.rpc import Ledger

HUGE = 9_223_372_036_854_775_807  # the greatest bigint
COUNTS = (1, 2, 3, 10, 255, 256, 32_767, 2_147_483_647)
WEIGHTS = (0.0, 1e-12, 0.3, 1.0, 4.5, 43.0)
LENGTHS = (0, 1, 12, 100, 101, 5_000, 2_147_483_647)


@pytest.fixture
def formula(shared_ledger: Ledger) -> Any:
    """Calls a function of the formula for many arguments at once."""

    def ask(function: str, types: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[Any]:
        places = ", ".join(f"%s::{one}[]" for one in types)
        names = ", ".join(f"a{place}" for place in range(len(types)))
        found = shared_ledger.connection.execute(
            f"select ranked_ledger.{function}({names}) from unnest({places}) with ordinality as u ({names}, place)"
            " order by place",
            ["{" + ",".join(map(str, column)) + "}" for column in zip(*rows, strict=True)],
        ).fetchall()
        return [value for (value,) in found]

    return ask


def rarity(formula: Any, *rows: tuple[int, int]) -> list[float]:
    found: list[float] = formula("rarity", ("bigint", "bigint"), rows)
    return found


def test_rarity_as_worked_out_by_hand(formula: Any) -> None:
    found = rarity(formula, (100, 1), (100, 50), (100, 100), (1000, 1), (0, 0), (7, 0), (60, 80), (3, 1))
    assert found == pytest.approx(
        [
            math.log(202 / 3),  # 1 + 99.5 / 1.5
            math.log(2),  # 1 + 50.5 / 50.5
            math.log(202 / 201),  # 1 + 0.5 / 100.5
            math.log(2002 / 3),  # 1 + 999.5 / 1.5
            0,
            0,
            math.log(162 / 161),  # of more decisions than are in force: as if of all
            math.log(34),  # of few: as if of fifty, 1 + 49.5 / 1.5
        ],
        rel=1e-14,
    )


def test_a_word_is_the_rarer_the_fewer_hold_it_and_the_more_there_are(formula: Any) -> None:
    numbers = (1, 2, 3, 10, 1000, 10**6, 10**12, HUGE)
    for documents in numbers:
        falling = rarity(formula, *((documents, held) for held in numbers))
        assert falling == sorted(falling, reverse=True)
        assert falling[5] > 0, "held by a million and more than there are, it still counts"
    for held in numbers:
        rising = rarity(formula, *((documents, held) for documents in numbers))
        assert rising == sorted(rising)
    assert all(0 <= value < 45 for value in rarity(formula, *itertools.product(numbers, numbers)))


def test_a_second_occurrence_counts_for_less_than_the_first(formula: Any) -> None:
    by_hand = formula("word_share", ("float8", "bigint"), [(1, 0), (1, 1), (1, 3), (2, 3), (3, 6)])
    assert by_hand == pytest.approx([0, 1 / 4, 1 / 2, 1, 2], rel=1e-15)
    for weight in WEIGHTS:
        shares = formula("word_share", ("float8", "bigint"), [(weight, count) for count in (0, *COUNTS)])
        assert shares[0] == 0
        assert shares == sorted(shares)
        assert all(share <= weight for share in shares), "as often as it likes, a word is worth its weight"
        steps = [later - earlier for earlier, later in itertools.pairwise(shares[:4])]
        assert steps == sorted(steps, reverse=True)


def test_a_text_as_worked_out_by_hand(formula: Any) -> None:
    rows = [(0, 0, 0.1), (4, 100, 0.1), (1, 100, 0.1), (4, 0, 0.1), (4, 1100, 0.1), (8, 900, 0), (4, 200, 1)]
    assert formula("text_of_shares", ("float8", "int", "float8"), rows) == pytest.approx(
        [0, 1 / 2, 1 / 5, 4 / 7.6, 1 / 3, 2 / 3, 1 / 3], rel=1e-15
    )


def test_a_texts_relevance_grows_with_its_words_and_falls_with_its_length(formula: Any) -> None:
    types, shares = ("float8", "int", "float8"), (0.0, 1e-9, 0.2, 1.0, 9.0, 1e4)
    for length in LENGTHS:
        rising = formula("text_of_shares", types, [(share, length, 0.1) for share in shares])
        assert rising[0] == 0
        assert all(less < more for less, more in itertools.pairwise(rising))
    for share in shares[1:]:
        falling = formula("text_of_shares", types, [(share, length, 0.1) for length in LENGTHS])
        assert all(more > less for more, less in itertools.pairwise(falling))
    everything = formula("text_of_shares", types, [(*one, 0.1) for one in itertools.product(shares, LENGTHS)])
    assert all(0 <= value < 1 for value in everything)  # and so none is NaN


def test_even_a_question_of_nothing_but_the_rarest_words_stays_below_1(formula: Any) -> None:
    """262,144 bytes hold 131,072 words at most; each as rare as can be."""
    ((most,),) = [rarity(formula, (HUGE, 1))]
    (relevance,) = formula("text_of_shares", ("float8", "int", "float8"), [(131_072 * most, 131_072, 0.1)])
    assert 0.99 < relevance < 1


@pytest.mark.parametrize(
    ("name", "weights", "rest"),
    [
        ("published", {"w_similarity": 0.45, "w_importance": 0.25, "w_recency": 0.15, "w_dependency": 0.15, "w_summary": 0},
         {"half_life": 30, "saturation": 3, "with_stale": False, "penalty": 0.30, "fusion": "none", "weighs_words": False}),
        ("tuned", {}, {"with_stale": True, "fusion": "blend", "weighs_words": True, "saturation": 3}),
    ],
)  # fmt: skip
def test_a_preset_is_a_whole_set_of_defaults(
    shared_ledger: Ledger, name: str, weights: dict[str, float], rest: dict[str, Any]
) -> None:
    cursor = shared_ledger.connection.execute("select * from ranked_ledger.preset(%s)", (name,))
    assert cursor.description is not None
    (row,) = cursor.fetchall()
    preset = dict(zip((column.name for column in cursor.description), row, strict=True))
    assert {key: preset[key] for key in (*weights, *rest)} == weights | rest
    assert all(0 <= value <= 1 for key, value in preset.items() if key.startswith("w_"))
    assert sum(value for key, value in preset.items() if key.startswith("w_")) == pytest.approx(1)
    assert 0 < preset["penalty"] <= 0.30
    assert 0 <= preset["fusion_weight"] <= 1
    assert preset["half_life"] > 0


@pytest.mark.parametrize("name", ["", "TUNED", "tuned ", "x" * 200, "o'clock", None])
def test_there_is_no_other_preset(shared_ledger: Ledger, name: str | None) -> None:
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="there is no preset") as refused:
        shared_ledger.connection.execute("select ranked_ledger.preset(%s)", (name,))
    assert len(str(refused.value)) < 600


def test_a_recall_without_a_preset_is_the_published_one(shared_ledger: Ledger) -> None:
    shared_ledger.record("Invoices are immutable", workspace_id="presets")
    ask = "select ranking_score, summary_match from match_decision_ledger('presets', 'invoices', p_preset => {})"
    rows = {
        one: shared_ledger.connection.execute(ask.format(one)).fetchall()
        for one in ("null", "'published'", "'tuned'")
    }
    assert rows["null"] == rows["'published'"] != rows["'tuned'"]


def test_words_are_weighed_by_their_own_workspace(shared_ledger: Ledger) -> None:
    """Worked out by hand: of four decisions in force, which count as fifty, one holds both words, three hold `ledger`."""
    for content in ("ledger audit", "ledger", "ledger cache", "queue"):
        shared_ledger.record(content, workspace_id="own words")
    for _ in range(3):
        shared_ledger.record("audit audit", workspace_id="other words")
    audit, ledger = math.log(1 + 49.5 / 1.5), math.log(1 + 47.5 / 3.5)
    found = dict(
        shared_ledger.connection.execute(
            "select content, text_relevance from match_decision_ledger('own words', 'audit ledger', p_preset => 'tuned')"
        ).fetchall()
    )

    def relevance(shares: float, length: int) -> Any:
        return pytest.approx(shares / (shares + 4 * (0.9 + 0.1 * length / 100)), rel=1e-12)

    assert found == {
        "ledger audit": relevance((audit + ledger) / 4, 2),
        "ledger": relevance(ledger / 4, 1),
        "ledger cache": relevance(ledger / 4, 2),
        "queue": 0,
    }
