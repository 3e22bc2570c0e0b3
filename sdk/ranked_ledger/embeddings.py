"""Embedders: what can be plugged in, and one for every service that speaks OpenAI's embeddings API.

No embedder is needed: without one, a recall goes by words.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import random
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from time import sleep
from types import TracebackType
from typing import Any, Final, Literal, Protocol, Self, TypeVar, runtime_checkable

import httpx

from ranked_ledger import arguments, retry, wire
from ranked_ledger.calls import Call
from ranked_ledger.errors import EmbeddingError, InvalidArgumentError, RankedLedgerError, classify

T = TypeVar("T")

OnEmbeddingFailure = Literal["raise", "text"]

_log: Final = logging.getLogger("ranked_ledger")


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into vectors: one a text, in order, all of one dimension.

    `model` names what made them: vectors of two models are never compared.

    Example:
        >>> class Letters:
        ...     model = "letters"
        ...     def embed(self, texts):
        ...         return [[float(text.count(letter)) for letter in "etaoin"] for text in texts]
        >>> isinstance(Letters(), Embedder)
        True
    """

    @property
    def model(self) -> str: ...

    def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]: ...


class HasModel(Protocol):
    """Either kind of embedder."""

    @property
    def model(self) -> str: ...


class AsyncEmbedder(Protocol):
    """An `Embedder` whose `embed` is awaited."""

    @property
    def model(self) -> str: ...

    def embed(self, texts: Sequence[str]) -> Awaitable[Sequence[Sequence[float]]]: ...


async def embed_async(embedder: Embedder | AsyncEmbedder, texts: Sequence[str]) -> Sequence[Sequence[float]]:
    """Await an asynchronous embedder; run any other in a thread, so that the event loop goes on."""
    embed: Callable[[Sequence[str]], Any] = embedder.embed
    found = embed(texts) if inspect.iscoroutinefunction(embed) else await asyncio.to_thread(embed, texts)
    vectors: Sequence[Sequence[float]] = await found if inspect.isawaitable(found) else found
    return vectors


def checked(vectors: object, texts: Sequence[str]) -> list[str]:
    """An embedder's vectors as the database takes them; an error where they are not one vector a text."""
    try:
        found = list(vectors)  # type: ignore[call-overload]
    except TypeError:
        raise EmbeddingError(f"the embedder gave {type(vectors).__name__} instead of vectors") from None
    if len(found) != len(texts):
        raise EmbeddingError(f"the embedder gave {len(found)} vectors for {len(texts)} texts")
    try:
        return [arguments.vector(f"vector {place}", one) for place, one in enumerate(found)]
    except InvalidArgumentError as wrong:
        raise EmbeddingError(f"the embedder gave a vector that cannot be used: {wrong.message}") from None


def complete(call: Call[T], name: str, vectors: Sequence[str] | None, embedder: HasModel | None) -> Call[T]:
    """The call with its embedding under that argument's name, where there is one."""
    if not vectors or embedder is None:
        return call
    return call.adding(**{name: vectors[0], "embedding_model": embedder.model})


def wanting(elements: Sequence[Mapping[str, Any]]) -> list[str]:
    """The texts of those elements that bring no embedding of their own."""
    return [element["content"] for element in elements if "embedding" not in element]


def attach(
    elements: Sequence[Mapping[str, Any]], vectors: Sequence[str] | None, embedder: HasModel | None
) -> Sequence[Mapping[str, Any]]:
    """The elements, each of `wanting` with its vector."""
    if not vectors or embedder is None:
        return elements
    ready, model = iter(vectors), embedder.model
    return [
        element if "embedding" in element else {**element, "embedding": next(ready), "embedding_model": model}
        for element in elements
    ]


def fall_back(error: Exception, on_failure: OnEmbeddingFailure) -> None:
    """Go on by words where the caller chose so; else raise the failure as an `EmbeddingError`."""
    if on_failure == "text":
        _log.warning("the embedder failed, going on by words: %s", error)
        return
    if isinstance(error, EmbeddingError):
        raise error
    raise EmbeddingError(
        f"the embedder failed: {error or type(error).__name__}",
        hint="mend the embedder, or make the client with on_embedding_failure='text' to go on by words",
    ) from error


class _OpenAICompatible:
    """What both embedders share: the request, the reading of its answer, and nothing that waits."""

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        api_key: str | None,
        dimensions: int | None,
        batch_size: int,
        timeout: float,
        max_retries: int,
    ) -> None:
        self._url = arguments.text("base_url", base_url).rstrip("/") + "/embeddings"
        self._model = arguments.text("model", model)
        self._headers = (
            {"Authorization": f"Bearer {arguments.text('api_key', api_key).strip()}"} if api_key else {}
        )
        self._dimensions = (
            None if dimensions is None else arguments.whole("dimensions", dimensions, minimum=1)
        )
        self._batch_size = arguments.whole("batch_size", batch_size, minimum=1)
        self._timeout = arguments.finite("timeout", timeout, minimum=0)
        self._max_retries = arguments.whole("max_retries", max_retries, minimum=0)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._url.removesuffix('/embeddings')!r}, {self._model!r})"

    @property
    def model(self) -> str:
        return self._model

    def _requests(self, texts: Sequence[str]) -> Iterator[dict[str, Any]]:
        for begin in range(0, len(texts), self._batch_size):
            body: dict[str, Any] = {
                "model": self._model,
                "input": list(texts[begin : begin + self._batch_size]),
            }
            if self._dimensions is not None:
                body["dimensions"] = self._dimensions
            yield body

    def _read(self, response: httpx.Response, count: int) -> list[list[float]]:
        """The vectors of an answer, by their `index`: services need not keep the order."""
        if not response.is_success:
            kind = classify(None, response.status_code)
            error = kind(f"{self._url} answered {response.status_code}", status=response.status_code)
            wait = wire.retry_after(response.headers.get("retry-after"), datetime.now(UTC))
            if hasattr(error, "retry_after"):
                error.retry_after = wait
            raise error
        try:
            rows = sorted(json.loads(response.content)["data"], key=lambda row: int(row["index"]))
            vectors = [[float(number) for number in row["embedding"]] for row in rows]
            indexes = [row["index"] for row in rows]
        except (ValueError, TypeError, KeyError) as wrong:
            raise EmbeddingError(
                f"the answer of {self._url} is no list of embeddings: {type(wrong).__name__}"
            ) from None
        if indexes != list(range(count)):
            raise EmbeddingError(f"{self._url} gave {len(vectors)} embeddings for {count} texts")
        return vectors

    def _wait(self, problem: Exception, attempt: int) -> float:
        """The seconds before the next attempt; raises an `EmbeddingError` where there is none."""
        if isinstance(problem, EmbeddingError):
            raise problem
        known = problem if isinstance(problem, RankedLedgerError) else _failure(problem)
        chance = random.random()  # noqa: S311  jitter is no secret
        wait = retry.decide(
            known, attempt=attempt, max_retries=self._max_retries, repeatable=True, chance=chance
        )
        if wait is None:
            raise EmbeddingError(
                f"no embeddings from {self._url}: {known.message}",
                hint="check the service's URL, key and model",
                status=known.status,
            ) from problem
        return wait


def _failure(problem: Exception) -> RankedLedgerError:
    if isinstance(problem, (httpx.HTTPError, httpx.InvalidURL)):
        return wire.failure(problem)
    raise problem


class OpenAICompatibleEmbedder(_OpenAICompatible):
    """Embeddings from any service with OpenAI's `POST <base_url>/embeddings`, hosted or local.

    - `base_url`: for example `https://api.openai.com/v1` or `http://127.0.0.1:8080/v1`.
    - `model`: its name there; kept with every vector. `api_key`: sent as a bearer token; never shown.
    - `dimensions`: asked of the service where it can shorten vectors; None leaves it out.
    - `batch_size`: texts a request, default 128. `timeout`: seconds, default 30. `max_retries`: default 3.

    Raises `EmbeddingError` where the service fails or answers something else.

    Example:
        >>> embedder = OpenAICompatibleEmbedder("http://127.0.0.1:8080/v1", "multilingual-e5-small")
        >>> embedder
        OpenAICompatibleEmbedder('http://127.0.0.1:8080/v1', 'multilingual-e5-small')
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        api_key: str | None = None,
        dimensions: int | None = None,
        batch_size: int = 128,
        timeout: float = 30.0,
        max_retries: int = 3,
        http_client: httpx.Client | None = None,
    ) -> None:
        super().__init__(
            base_url,
            model,
            api_key=api_key,
            dimensions=dimensions,
            batch_size=batch_size,
            timeout=timeout,
            max_retries=max_retries,
        )
        self._owned = http_client is None
        self._http = http_client or httpx.Client()

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """One vector a text, in order."""
        return [vector for body in self._requests(texts) for vector in self._ask(body)]

    def _ask(self, body: dict[str, Any]) -> list[list[float]]:
        attempt = 0
        while True:
            attempt += 1
            try:
                response = self._http.post(self._url, json=body, headers=self._headers, timeout=self._timeout)
                return self._read(response, len(body["input"]))
            except (RankedLedgerError, httpx.HTTPError, httpx.InvalidURL) as problem:
                wait = self._wait(problem, attempt)
            sleep(wait)

    def close(self) -> None:
        """Close the connections, unless the `http_client` was given."""
        if self._owned:
            self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class AsyncOpenAICompatibleEmbedder(_OpenAICompatible):
    """`OpenAICompatibleEmbedder`, awaited. Close it with `aclose` or `async with`.

    Example:
        >>> AsyncOpenAICompatibleEmbedder("http://127.0.0.1:8080/v1", "multilingual-e5-small").model
        'multilingual-e5-small'
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        api_key: str | None = None,
        dimensions: int | None = None,
        batch_size: int = 128,
        timeout: float = 30.0,
        max_retries: int = 3,
        http_client: httpx.AsyncClient | None = None,
    ) -> None:
        super().__init__(
            base_url,
            model,
            api_key=api_key,
            dimensions=dimensions,
            batch_size=batch_size,
            timeout=timeout,
            max_retries=max_retries,
        )
        self._owned = http_client is None
        self._http = http_client or httpx.AsyncClient()

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """One vector a text, in order."""
        return [vector for body in self._requests(texts) for vector in await self._ask(body)]

    async def _ask(self, body: dict[str, Any]) -> list[list[float]]:
        attempt = 0
        while True:
            attempt += 1
            try:
                response = await self._http.post(
                    self._url, json=body, headers=self._headers, timeout=self._timeout
                )
                return self._read(response, len(body["input"]))
            except (RankedLedgerError, httpx.HTTPError, httpx.InvalidURL) as problem:
                wait = self._wait(problem, attempt)
            await asyncio.sleep(wait)

    async def aclose(self) -> None:
        """Close the connections, unless the `http_client` was given."""
        if self._owned:
            await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()
