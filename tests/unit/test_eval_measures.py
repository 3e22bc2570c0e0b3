"""Measures against what is counted by hand, and the bootstrap against what must hold of it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranked_ledger.evals import measures, runs
from ranked_ledger.evals.errors import EvalInputError
from ranked_ledger.evals.measures import measure, smallest_budget
from ranked_ledger.evals.statistics import Bootstrap
from tests.unit.eval_logs import large, lines, row, run

KEYS = st.lists(st.sampled_from([f"k{number}" for number in range(30)]), max_size=30, unique=True)


def one(keys: list[str], gold: tuple[str, ...] = ("g",), **more: object) -> dict[str, float]:
    """The measures of one question and one arm."""
    found = measure(run([row("q", "arm", keys, gold, **more)]))  # type: ignore[arg-type]
    return {name: float(by_arm["arm"][0]) for name, by_arm in found.values.items()}


def test_the_measures_of_a_question_are_those_counted_by_hand() -> None:
    found = one(["a", "b", "g", "c"], tokens=[10, 20, 400, 900], milliseconds=3.5)
    assert found["hit@1"] == 0
    assert found["hit@5"] == found["hit@10"] == 1
    assert found["MRR"] == pytest.approx(1 / 3)
    assert found["nDCG@10"] == pytest.approx(1 / math.log2(4))
    assert found["tokens to first right"] == 430
    assert (found["hit in 500 tokens"], found["tokens at five"], found["milliseconds"]) == (1, 1330, 3.5)


def test_the_eleventh_place_counts_for_the_mean_reciprocal_rank_alone() -> None:
    found = one([*"abcdefhijk", "g"])
    assert (found["hit@10"], found["nDCG@10"]) == (0, 0)
    assert found["MRR"] == pytest.approx(1 / 11)


def test_any_right_answer_counts_and_the_gain_is_shared_among_them() -> None:
    found = one(["a", "g2", "b", "g1"], ("g1", "g2"))
    assert found["MRR"] == 0.5
    ideal = 1 / math.log2(2) + 1 / math.log2(3)
    assert found["nDCG@10"] == pytest.approx((1 / math.log2(3) + 1 / math.log2(5)) / ideal)


def test_an_arm_that_answers_nothing_has_found_nothing() -> None:
    found = one([])
    assert {found[name] for name in ("hit@1", "hit@10", "MRR", "nDCG@10", "tokens at five")} == {0}
    assert found["tokens to first right"] == math.inf


def test_an_empty_answer_beside_others_is_a_miss_of_its_own_question() -> None:
    rows = [row("q1", "arm", []), row("q2", "arm", ["g"]), row("q3", "arm", ["x", "g"])]
    assert measure(run(rows)).values["MRR"]["arm"].tolist() == [0, 1, 0.5]


def test_what_was_retired_and_served_without_its_successor_is_a_rate_of_questions() -> None:
    rows = [
        row("q1", "arm", ["a"], retired_without_successor=["a", "b"]),
        row("q2", "arm", ["a"]),
        row("q3", "arm", ["a"]),
        row("q4", "arm", ["a"]),
    ]
    assert measure(run(rows)).values["served superseded"]["arm"].mean() == 0.25


def test_a_question_that_an_arm_was_not_asked_is_compared_by_nobody() -> None:
    rows = [row("q1", "a", ["g"]), row("q1", "b", ["g"]), row("q2", "a", ["g"])]
    assert measure(run(rows)).ids == ("q1",)


def test_the_smallest_budget_is_where_the_hit_rate_is_reached() -> None:
    rows = [
        row("q1", "a", ["x", "g"], tokens=[150, 150]),
        row("q2", "a", ["g"], tokens=[90]),
    ]
    questions = measure(run(rows))
    assert smallest_budget(questions, "a", 0.5) == (100, 45)
    assert smallest_budget(questions, "a", 1) == (300, (300 + 90) / 2)
    assert smallest_budget(measure(run([row("q", "a", ["x"])])), "a", 1) is None


def test_streams_that_were_tuned_on_are_told_apart() -> None:
    questions = measure(run(large(36, {"vector": (0.5, 0.9)})))
    assert set(questions.tuned_on().streams) == {"ethereum/EIPs", "buildpacks/rfcs"}
    assert len(questions.reported()) + len(questions.tuned_on()) == len(questions) == 36
    assert set(questions.by_kind()) == {"citation", "mention", "supersession"}
    assert sum(map(len, questions.by_stream().values())) == 36
    assert len(runs.TUNING_STREAMS) == 6


@given(keys=KEYS, gold=st.sets(st.sampled_from([f"k{number}" for number in range(30)]), min_size=1))
@settings(max_examples=60, deadline=None)
def test_the_standard_measures_agree_with_their_definitions(keys: list[str], gold: set[str]) -> None:
    found = one(keys, tuple(gold))
    place = next((number for number, key in enumerate(keys, 1) if key in gold), None)
    assert found["MRR"] == pytest.approx(0 if place is None else 1 / place)
    for depth in (1, 5, 10):
        assert found[f"hit@{depth}"] == (place is not None and place <= depth)
    gains = [key in gold for key in keys[:10]]
    ideal = sum(1 / math.log2(number + 2) for number in range(min(10, len(gold))))
    gain = sum(1 / math.log2(number + 2) for number, right in enumerate(gains) if right)
    assert found["nDCG@10"] == pytest.approx(gain / ideal)
    assert found["hit@1"] <= found["hit@5"] <= found["hit@10"]


VALUES = st.lists(st.floats(0, 1), min_size=1, max_size=40).map(np.array)
DRAWN = Bootstrap(seed=3, resamples=400)


@given(values=VALUES)
@settings(max_examples=60, deadline=None)
def test_an_interval_holds_the_mean_and_is_drawn_the_same_again(values: measures.Values) -> None:
    figure = DRAWN.mean(values)
    assert values.min() - 1e-9 <= figure.low <= figure.high <= values.max() + 1e-9
    assert figure == Bootstrap(seed=3, resamples=400).mean(values)


@given(values=VALUES, shift=st.floats(-1, 1))
@settings(max_examples=60, deadline=None)
def test_a_paired_difference_that_is_the_same_everywhere_has_no_width(
    values: measures.Values, shift: float
) -> None:
    figure = DRAWN.difference(values + shift, values)
    assert figure.value == pytest.approx(shift, abs=1e-9)
    assert figure.high - figure.low == pytest.approx(0, abs=1e-9)


@given(values=st.lists(st.floats(0, 9) | st.just(math.inf), min_size=1, max_size=30).map(np.array))
@settings(max_examples=60, deadline=None)
def test_a_quantile_is_one_of_the_values_and_none_below_it_suffices(values: measures.Values) -> None:
    for at in (0.5, 0.95):
        figure = DRAWN.quantile(values, at)
        assert figure.value in values
        assert (values <= figure.value).mean() >= at - 1e-9 > (values < figure.value).mean() - 1e-6
        assert figure.low <= figure.high
    assert DRAWN.median(values) == DRAWN.quantile(values, 0.5)


def test_an_interval_is_as_wide_as_theory_says() -> None:
    values = np.array([0.0, 1.0] * 200)
    figure = Bootstrap(seed=1).mean(values)
    assert figure.value == 0.5
    error = 0.5 / math.sqrt(400)
    assert figure.low == pytest.approx(0.5 - 1.96 * error, abs=0.004)
    assert figure.high == pytest.approx(0.5 + 1.96 * error, abs=0.004)
    assert figure.sign == 1
    assert Bootstrap(seed=1).difference(values, 1 - values).sign == 0


def test_a_ratio_is_of_means_and_nothing_has_no_figure() -> None:
    figure = DRAWN.ratio(np.array([1.0, 3.0]), np.array([2.0, 6.0]))
    assert (figure.value, figure.low, figure.high) == (0.5, 0.5, 0.5)
    assert math.isnan(DRAWN.mean(np.array([])).value)
    assert math.isnan(DRAWN.ratio(np.array([1.0]), np.array([0.0])).value)
    assert math.isnan(DRAWN.median(np.array([])).value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", r"a.jsonl, line 1: this is no JSON"),
        ("[]", "line 1: this is no JSON object"),
        (
            '{"kind": "row", "question": "q"}',
            "line 1, field 'stream, arm, gold, hits, milliseconds, budgets': the row lacks it",
        ),
        ('{"kind": "else"}', "field 'kind': 'else' is not"),
        ("", "has no header"),
        (lines([])[0], "nothing was asked"),
    ],
)
def test_what_is_no_log_is_refused_with_its_line(text: str, said: str) -> None:
    with pytest.raises(EvalInputError, match=said):
        runs.parse([text], name="a.jsonl")
