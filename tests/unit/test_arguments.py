"""What the SDK refuses before anything is sent, and in which form it sends the rest."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranked_ledger import Decision, Hit, InvalidArgumentError, NewDecision, arguments, calls, recording
from tests.unit import sdk_answers as answers


class Array:
    """What numpy's arrays look like from here."""

    def __init__(self, *numbers: float) -> None:
        self._numbers = numbers

    def __iter__(self) -> Any:
        return iter(self._numbers)

    def tolist(self) -> list[float]:
        return list(self._numbers)


@given(st.lists(st.floats(min_value=-3e38, max_value=3e38), min_size=1, max_size=30).filter(any))
def test_a_vector_comes_back_as_the_same_numbers(numbers: list[float]) -> None:
    text = arguments.vector("embedding", numbers)
    assert json.loads(text) == numbers
    assert " " not in text


@pytest.mark.parametrize(
    "numbers",
    [
        [],
        [0.0, 0.0],
        [math.nan],
        [math.inf],
        [1e39],
        ["1"],
        [None],
        [True],
        "[1]",
        b"1",
        3,
        [1.0] * 16_001,
        [[1.0]],
    ],
)
def test_a_vector_that_cannot_be_compared_is_refused(numbers: object) -> None:
    with pytest.raises(InvalidArgumentError, match="embedding"):
        arguments.vector("embedding", numbers)


def test_an_array_of_another_library_is_taken() -> None:
    assert arguments.vector("embedding", Array(0.5, 1)) == "[0.5,1.0]"


@given(st.floats())
def test_an_importance_is_taken_exactly_when_it_lies_in_the_unit_interval(number: float) -> None:
    try:
        taken = arguments.fraction("importance", number)
    except InvalidArgumentError:
        assert not 0 <= number <= 1
    else:
        assert taken == number


@given(st.text())
def test_a_text_is_sent_whole_or_refused(text: str) -> None:
    try:
        call = calls.record("acme", recording.checked(NewDecision(text)), key="k")
    except InvalidArgumentError:
        assert not text.strip() or "\x00" in text or any(0xD800 <= ord(one) < 0xE000 for one in text)
    else:
        assert call.body["p_content"] == text


@pytest.mark.parametrize("content", ["", " \n", "a\x00b", "half \ud800", 3, None, b"x"])
def test_a_content_that_cannot_be_kept_is_refused(content: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="content"):
        recording.checked(NewDecision(content))


def test_content_is_measured_in_bytes() -> None:
    assert recording.checked(NewDecision("é" * (128 * 1024)))["content"]
    with pytest.raises(InvalidArgumentError, match=r"262,146 bytes; 262,144 are allowed"):
        recording.checked(NewDecision("é" * (128 * 1024 + 1)))


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ({"alternatives": "one text"}, "alternatives must be a list"),
        ({"alternatives": {"a": 1}}, "alternatives must be a list"),
        ({"alternatives": ["a"] * 21}, "20 are allowed"),
        ({"alternatives": [" "]}, r"alternatives\[0\] is blank"),
        ({"importance": "0.5"}, "importance must be a number"),
        ({"importance": True}, "importance must be a number"),
        ({"step": 1.5}, "step must be a whole number"),
        ({"step": -1}, "step must be in"),
        ({"step": 10**9 + 1}, "step must be in"),
        ({"depends_on": ["no id"]}, r"depends_on\[0\] must be a UUID"),
        ({"depends_on": 3}, "depends_on must be decisions"),
        ({"embedding_model": "m"}, "without an embedding"),
        ({"visibility": "secret"}, "visibility must be one of personal"),
        ({"created_by": "me"}, "created_by must be one of user"),
        ({"metadata": {"at": datetime.now(UTC)}}, "metadata is not JSON"),
        ({"metadata": {"a": math.nan}}, "metadata is not JSON"),
        ({"metadata": {"a": "\x00"}}, "NUL"),
        ({"metadata": []}, "metadata must be a mapping"),
        ({"pinned": 1}, "pinned must be True or False"),
        ({"task": " "}, "task is blank"),
    ],
)
def test_a_wrong_argument_of_record_is_named(named: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        recording.checked(NewDecision("x", **named))


def test_metadata_may_speak_of_a_nul_without_holding_one() -> None:
    assert recording.checked(NewDecision("x", metadata={"a": "\\u0000"}))["metadata"] == {"a": "\\u0000"}


def test_decisions_are_named_by_model_id_or_text_and_sent_once() -> None:
    decision = Decision.model_validate(answers.decision())
    hit = Hit.model_validate(answers.hit(memory_id=str(answers.OTHER)))
    mixed = [decision, hit, answers.MEMORY, str(answers.MEMORY).upper()]
    assert arguments.decisions("d", mixed) == [str(answers.MEMORY), str(answers.OTHER)]
    assert arguments.decisions("d", decision) == [str(answers.MEMORY)]
    assert arguments.decisions("d", str(answers.MEMORY)) == [str(answers.MEMORY)]
    assert arguments.decisions("d", (one for one in [UUID(int=1)])) == [str(UUID(int=1))]


def test_a_moment_needs_its_time_zone() -> None:
    with pytest.raises(InvalidArgumentError, match="before has no time zone"):
        calls.prune_traces("acme", datetime(2026, 1, 1), 10)


@pytest.mark.parametrize(
    ("model", "limits", "said"),
    [
        ("", (0.1, 0.2), "embedding_model is blank"),
        ("m" * 1_001, (0.1, 0.2), "embedding_model has 1,001 bytes"),
        ("m", (0.2, 0.2), "floor must be below ceiling"),
        ("m", (0.3, 0.2), "floor must be below ceiling"),
        ("m", (-1.5, 0.2), "floor must be a cosine"),
        ("m", (0.1, 1.5), "ceiling must be a cosine"),
        ("m", (math.nan, 0.5), "floor must be finite"),
        ("m", (0.1, None), "ceiling must be a number"),
    ],
)
def test_a_similarity_range_that_is_none(model: str, limits: Any, said: str) -> None:
    with pytest.raises(InvalidArgumentError, match=said):
        calls.set_similarity_range("w", model, limits)


@pytest.mark.parametrize("limits", [(-1, 1), (0, 1), (-0.0, 0.1), (0.75, 0.86)])
def test_a_similarity_range_that_is_one_is_sent(limits: tuple[float, float]) -> None:
    body = calls.set_similarity_range("w", "m", limits).body
    assert (body["p_floor"], body["p_ceiling"]) == limits


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"max_depth": 0}, "max_depth"),
        ({"max_depth": 2**31}, "max_depth"),
        ({"limit": 0}, "limit"),
        ({"limit": 1_001}, "limit"),
    ],
)
def test_an_impact_has_a_depth_and_a_limit(wrong: dict[str, int], said: str) -> None:
    with pytest.raises(InvalidArgumentError, match=said):
        calls.impact("w", answers.MEMORY, **{"max_depth": None, "limit": 500, **wrong})
