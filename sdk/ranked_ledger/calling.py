"""What every client of the database does with a `Call`: the version gate, the run loop, embeddings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Generic, TypeVar, get_args

import httpx

from ranked_ledger import arguments, embeddings, wire
from ranked_ledger.calls import Call
from ranked_ledger.connected import Connected, Http, Patience
from ranked_ledger.embeddings import AsyncEmbedder, Embedder, OnEmbeddingFailure
from ranked_ledger.errors import ConfigurationError
from ranked_ledger.running import AsyncRunning, Running

T = TypeVar("T")
AnyEmbedder = TypeVar("AnyEmbedder", bound=Embedder | AsyncEmbedder)


@dataclass(frozen=True, kw_only=True)
class EmbeddingOptions(Patience, Generic[AnyEmbedder]):
    """The options of a client that takes an embedder."""

    embedder: AnyEmbedder | None
    on_embedding_failure: OnEmbeddingFailure

    def __post_init__(self) -> None:
        Patience.__post_init__(self)
        arguments.one_of("on_embedding_failure", self.on_embedding_failure, get_args(OnEmbeddingFailure))
        if self.embedder is not None:
            arguments.text("embedder.model", getattr(self.embedder, "model", None))
            if not callable(getattr(self.embedder, "embed", None)):
                raise ConfigurationError("embedder has no method embed(texts)")


@dataclass(slots=True)
class Gate:
    """Whether the schema's version was found to fit; shared by the copies that `with_options` makes."""

    passed: bool = False


class Caller(Connected[Http]):
    """What a client that calls the database's functions knows, and does not wait for."""

    _ask_version: ClassVar[Callable[[], Call[int]]]
    _gate: Gate

    def _request(self, call: Call[Any]) -> httpx.Request:
        return self._built("POST", f"/rpc/{call.function}", wire.encode(call), seconds=call.seconds)

    def _admit(self, call: Call[int], version: int) -> None:
        wire.check_version(version, call.store)
        self._gate.passed = True


class Calling(Caller[httpx.Client], Running):
    """A client of the database that waits for its answers."""

    def _run(self, call: Call[T]) -> T:
        if not self._gate.passed:
            ask = type(self)._ask_version()
            self._admit(ask, self._answer(ask))
        return self._answer(call)

    def _answer(self, call: Call[T]) -> T:
        wait = partial(self._wait, repeatable=call.repeatable)
        return self._exchange(self._request(call), partial(wire.decode, call), wait)


class AsyncCalling(Caller[httpx.AsyncClient], AsyncRunning):
    """`Calling` for asyncio."""

    async def _run(self, call: Call[T]) -> T:
        if not self._gate.passed:
            ask = type(self)._ask_version()
            self._admit(ask, await self._answer(ask))
        return await self._answer(call)

    async def _answer(self, call: Call[T]) -> T:
        wait = partial(self._wait, repeatable=call.repeatable)
        return await self._exchange(self._request(call), partial(wire.decode, call), wait)


class Embedding(Calling):
    """A client of the database that embeds what it sends, where an embedder is plugged in."""

    _options: EmbeddingOptions[Any]  # of an `Embedder`, as the classes over this say

    def _completed(self, call: Call[T], name: str, text: str) -> Call[T]:
        return embeddings.complete(call, name, self._embed([text]), self._options.embedder)

    def _embed(self, texts: Sequence[str]) -> list[str] | None:
        embedder: Embedder | None = self._options.embedder
        if embedder is None or not texts:
            return None
        try:
            return embeddings.checked(embedder.embed(texts), texts)
        except Exception as error:
            embeddings.fall_back(error, self._options.on_embedding_failure)
            return None


class AsyncEmbedding(AsyncCalling):
    """`Embedding` for asyncio: a synchronous embedder runs in a thread."""

    _options: EmbeddingOptions[Any]

    async def _completed(self, call: Call[T], name: str, text: str) -> Call[T]:
        return embeddings.complete(call, name, await self._embed([text]), self._options.embedder)

    async def _embed(self, texts: Sequence[str]) -> list[str] | None:
        embedder: Embedder | AsyncEmbedder | None = self._options.embedder
        if embedder is None or not texts:
            return None
        try:
            return embeddings.checked(await embeddings.embed_async(embedder, texts), texts)
        except Exception as error:
            embeddings.fall_back(error, self._options.on_embedding_failure)
            return None
