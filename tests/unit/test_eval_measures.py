"""Measures against what is counted by hand, and the bootstrap against what must hold of it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranked_ledger.evals import measures, runs, statistics, table
from ranked_ledger.evals.errors import EvalInputError
from ranked_ledger.evals.measures import measure, smallest_budget
from ranked_ledger.evals.statistics import Bootstrap, Figure
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


def lifecycles(**by_key: str) -> list[dict[str, object]]:
    """Hits in this order, each with its lifecycle."""
    return [
        {"key": key, "rank": rank, "score": 1 / rank, "tokens": 9, "lifecycle": lifecycle}
        for rank, (key, lifecycle) in enumerate(by_key.items(), 1)
    ]


def test_what_was_retired_and_served_without_its_successor_is_a_rate_of_questions() -> None:
    rows = [
        row("q1", "arm", ["a"], retired_without_successor=["a", "b"]),
        row("q2", "arm", ["a"]),
        row("q3", "arm", ["a"]),
        row("q4", "arm", ["a"]),
    ]
    assert measure(run(rows)).values["served retired"]["arm"].mean() == 0.25


def test_a_rejected_decision_is_served_whatever_else_is_there_but_not_below_the_fifth() -> None:
    active = dict.fromkeys("abcd", "active")
    rows = [
        row("fifth", "arm", [], hits=lifecycles(**active, e="rejected")),
        row("sixth", "arm", [], hits=lifecycles(**active, e="stale", f="rejected")),
        row("with its successor", "arm", [], hits=lifecycles(a="superseded", b="active")),
    ]
    assert measure(run(rows)).values["served retired"]["arm"].tolist() == [1, 0, 0]


def test_a_question_misleads_by_what_it_names_as_no_answer_and_another_has_no_such_figure() -> None:
    rows = [
        row("fifth", "arm", [*"abcd", "old"], must_not=["old", "older"]),
        row("sixth", "arm", [*"abcde", "old"], must_not=["old"]),
        row("names nothing", "arm", ["old"]),
    ]
    questions = measure(run(rows))
    values = questions.values["misled"]["arm"]
    assert values[:2].tolist() == [1, 0]
    assert math.isnan(values[2])
    assert DRAWN.mean(values, questions.clusters).value == 0.5
    assert table.measured(questions, ["misled"]) == ("misled",)
    assert table.measured(questions.at([2]), ["MRR", "misled"]) == ("MRR",)


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
    figure = DRAWN.mean(values, None)
    assert values.min() - 1e-9 <= figure.low <= figure.high <= values.max() + 1e-9
    assert figure == Bootstrap(seed=3, resamples=400).mean(values, None)


@given(values=VALUES, shift=st.floats(-1, 1))
@settings(max_examples=60, deadline=None)
def test_a_paired_difference_that_is_the_same_everywhere_has_no_width(
    values: measures.Values, shift: float
) -> None:
    figure = DRAWN.difference(values + shift, values, None)
    assert figure.value == pytest.approx(shift, abs=1e-9)
    assert figure.high - figure.low == pytest.approx(0, abs=1e-9)


@given(values=st.lists(st.floats(0, 9) | st.just(math.inf), min_size=1, max_size=30).map(np.array))
@settings(max_examples=60, deadline=None)
def test_a_quantile_is_one_of_the_values_and_none_below_it_suffices(values: measures.Values) -> None:
    for at in (0.5, 0.95):
        figure = DRAWN.quantile(values, at, None)
        assert figure.value in values
        assert (values <= figure.value).mean() >= at - 1e-9 > (values < figure.value).mean() - 1e-6
        assert figure.low <= figure.high
    assert DRAWN.median(values, None) == DRAWN.quantile(values, 0.5, None)


def test_an_interval_is_as_wide_as_theory_says() -> None:
    values = np.array([0.0, 1.0] * 200)
    figure = Bootstrap(seed=1).mean(values, None)
    assert figure.value == 0.5
    error = 0.5 / math.sqrt(400)
    assert figure.low == pytest.approx(0.5 - 1.96 * error, abs=0.004)
    assert figure.high == pytest.approx(0.5 + 1.96 * error, abs=0.004)
    assert figure.sign == 1
    assert Bootstrap(seed=1).difference(values, 1 - values, None).sign == 0


def test_nothing_has_no_figure() -> None:
    for values in (np.array([]), np.array([math.nan])):
        assert math.isnan(DRAWN.mean(values, None).value)
        assert math.isnan(DRAWN.median(values, None).value)


@given(values=VALUES)
@settings(max_examples=60, deadline=None)
def test_clusters_of_one_question_are_drawn_as_questions_are(values: measures.Values) -> None:
    alone = [f"g{number}" for number in range(len(values))]
    assert DRAWN.mean(values, alone) == DRAWN.mean(values, None)
    assert DRAWN.median(values, alone) == DRAWN.median(values, None)
    # as if there were no clusters: counts of questions, and each resample as long as there are questions
    counts = np.random.default_rng(3).multinomial(len(values), [1 / len(values)] * len(values), size=400)
    means = counts.astype(float) @ values / len(values)
    tail = (1 - statistics.LEVEL) / 2
    limits = np.quantile(means, [tail, 1 - tail], method="inverted_cdf")
    figure = DRAWN.mean(values, None)
    assert (figure.low, figure.high) == pytest.approx(tuple(limits), abs=1e-9)


def test_questions_of_one_cluster_are_drawn_together() -> None:
    values, clusters = np.array([1.0, 1.0, 1.0, 0.0]), ["a", "a", "a", "b"]
    # two clusters: twice a is 1, twice b is 0, and one of each, which comes half of the time, is 3 of 4
    counts = statistics._counts(3, 4000, (0, 0, 0, 1))
    assert set(map(tuple, counts.tolist())) == {(2, 2, 2, 0), (1, 1, 1, 1), (0, 0, 0, 2)}
    means = counts @ values / counts.sum(axis=1)
    shares = {value: float((means == value).mean()) for value in (0.0, 0.75, 1.0)}
    assert shares == pytest.approx({0.0: 0.25, 0.75: 0.5, 1.0: 0.25}, abs=0.03)
    figure = Bootstrap(3, 4000).mean(values, clusters)
    assert (figure.value, figure.low, figure.high) == (0.75, 0, 1)
    assert Bootstrap(3, 4000).median(values, clusters) == Figure(1, 0, 1)


def test_ten_questions_about_one_answer_say_as_much_as_one() -> None:
    values = np.array([0.0, 1.0] * 20)
    once = Bootstrap(1).mean(values, None)
    tenfold = Bootstrap(1).mean(np.repeat(values, 10), [number // 10 for number in range(400)])
    assert (tenfold.value, tenfold.low, tenfold.high) == pytest.approx((once.value, once.low, once.high))
    naive = Bootstrap(1).mean(np.repeat(values, 10), None)
    assert naive.high - naive.low < 0.5 * (tenfold.high - tenfold.low)


def test_questions_are_one_cluster_where_stream_and_right_answers_are_the_same() -> None:
    rows = [
        row("q1", "arm", [], ["g", "h"]),
        row("q2", "arm", [], ["h", "g"]),
        row("q3", "arm", [], ["g"]),
        row("q4", "arm", [], ["g", "h"], stream="another"),
    ]
    questions = measure(run(rows))
    assert questions.clusters[0] == questions.clusters[1]
    assert len(set(questions.clusters)) == 3
    assert questions.at([3, 1]).clusters == (questions.clusters[3], questions.clusters[1])


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
