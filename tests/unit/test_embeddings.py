"""The embedder for services that speak OpenAI's API, synchronous and not."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
import respx

from ranked_ledger import AsyncOpenAICompatibleEmbedder, EmbeddingError, OpenAICompatibleEmbedder

URL = "http://embeddings.test/v1"
Embed = Callable[..., list[list[float]]]


@pytest.fixture(params=["sync", "async"])
def embed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Embed:
    """Embeds texts with an embedder of either kind that was made with the options."""

    async def no_wait(_: float) -> None: ...

    monkeypatch.setattr("ranked_ledger.embeddings.sleep", lambda _: None)
    monkeypatch.setattr("ranked_ledger.embeddings.asyncio.sleep", no_wait)

    async def embedded(texts: list[str], **options: Any) -> list[list[float]]:
        async with AsyncOpenAICompatibleEmbedder(URL, "m", **options) as embedder:
            return await embedder.embed(texts)

    def run(texts: list[str], **options: Any) -> list[list[float]]:
        if request.param == "async":
            return asyncio.run(embedded(texts, **options))
        with OpenAICompatibleEmbedder(URL, "m", **options) as embedder:
            return embedder.embed(texts)

    return run


@pytest.fixture
def service() -> Iterator[respx.Route]:
    with respx.mock as router:
        yield router.post(f"{URL}/embeddings")


def lengths(request: httpx.Request) -> httpx.Response:
    texts = json.loads(request.content)["input"]
    rows = [{"index": place, "embedding": [len(text), 1]} for place, text in enumerate(texts)]
    return httpx.Response(200, json={"data": rows[::-1]})


def test_vectors_come_back_in_the_order_of_the_texts(service: respx.Route, embed: Embed) -> None:
    service.mock(side_effect=lengths)
    found = embed(["a", "bb", "ccc"], batch_size=2, api_key="sk-1", dimensions=2)
    assert found == [[1, 1], [2, 1], [3, 1]]
    first = service.calls[0].request
    assert service.call_count == 2
    assert json.loads(first.content) == {"model": "m", "input": ["a", "bb"], "dimensions": 2}
    assert first.headers["authorization"] == "Bearer sk-1"


def test_no_texts_ask_for_nothing(service: respx.Route, embed: Embed) -> None:
    assert embed([]) == []
    assert not service.called


@pytest.mark.parametrize(
    "failing", [httpx.Response(503), httpx.Response(429), httpx.ReadTimeout("slow"), httpx.ConnectError("no")]
)
def test_what_passes_is_waited_out(service: respx.Route, embed: Embed, failing: Any) -> None:
    service.side_effect = [failing, httpx.Response(200, json={"data": [{"index": 0, "embedding": [1]}]})]
    assert embed(["a"]) == [[1.0]]


@pytest.mark.parametrize(
    "failing",
    [
        httpx.Response(401, json={"error": "bad key"}),
        httpx.Response(400),
        httpx.Response(200, text="<html>"),
        httpx.Response(200, json={"data": []}),
        httpx.Response(200, json={"data": [{"index": 1, "embedding": [1]}]}),
        httpx.Response(200, json={"data": [{"index": 0, "embedding": ["x"]}]}),
        httpx.Response(200, json=[]),
        httpx.Response(200, json={"data": [{"index": 0, "embedding": None}]}),
    ],
)
def test_what_does_not_pass_is_told_at_once(service: respx.Route, embed: Embed, failing: Any) -> None:
    service.side_effect = [failing]
    with pytest.raises(EmbeddingError) as caught:
        embed(["a"], api_key="sk-1")
    assert service.call_count == 1
    assert "sk-1" not in str(caught.value)


def test_it_gives_up_in_the_end(service: respx.Route, embed: Embed) -> None:
    service.mock(side_effect=httpx.ConnectError("refused"))
    with pytest.raises(EmbeddingError, match="refused"):
        embed(["a"], max_retries=2)
    assert service.call_count == 3


def test_an_embedder_shows_no_key() -> None:
    with OpenAICompatibleEmbedder(URL, "m", api_key="sk-1") as embedder:
        assert repr(embedder) == f"OpenAICompatibleEmbedder('{URL}', 'm')"


def test_a_given_client_is_left_open(service: respx.Route) -> None:
    service.mock(side_effect=lengths)
    with httpx.Client() as http:
        embedder = OpenAICompatibleEmbedder(URL, "m", http_client=http)
        embedder.embed(["a"])
        embedder.close()
        assert not http.is_closed
