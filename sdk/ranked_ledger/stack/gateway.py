"""The one URL of a stack: checks keys as the hosted gateway does, and passes `/rest/v1` on to PostgREST.

Run as `python -m ranked_ledger.stack.gateway <file>`, where the file holds a `GatewayConfig` as JSON.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import logging
import os
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from ranked_ledger.stack.gateway_config import HEALTH_PATH, LOOPBACK, GatewayConfig

# RFC 9110 7.6.1, and what the client library or the server sets itself
_HOP_BY_HOP = frozenset(
    b"connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer "
    b"transfer-encoding upgrade".split()
)
_METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
_EXPOSED = [
    "Content-Range",
    "Content-Location",
    "Content-Profile",
    "Location",
    "Preference-Applied",
    "Range-Unit",
]

log = logging.getLogger("gateway")


def create_app(config: GatewayConfig) -> Starlette:
    """The gateway as an ASGI application."""

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with httpx.AsyncClient(
            transport=httpx.AsyncHTTPTransport(
                uds=config.upstream_socket, limits=httpx.Limits(max_connections=None, keepalive_expiry=5)
            ),
            base_url="http://postgrest",
            # a statement timeout of the role ends a slow request, not the gateway
            timeout=httpx.Timeout(None, connect=5),
        ) as client:
            app.state.client = client
            yield

    async def health(_: Request) -> Response:
        return JSONResponse({"identity": config.identity, "pid": os.getpid()})

    async def rest(request: Request) -> Response:
        started = time.perf_counter()
        response = _refusal(request, config.bearers)
        if response is None:
            response = await _forward(request, config.bearers)
        # never the query: it may hold a key, and it holds what people search for
        elapsed = (time.perf_counter() - started) * 1000
        log.info("%s %s %d %.0f ms", request.method, request.url.path, response.status_code, elapsed)
        return response

    async def elsewhere(request: Request) -> Response:
        hint = "The local stack serves /rest/v1 only."
        return _problem(404, f"No service of the local stack answers {request.url.path}", hint)

    cors = Middleware(
        CORSMiddleware,
        allow_origins=["*"],
        allow_methods=_METHODS,
        allow_headers=["*"],
        expose_headers=_EXPOSED,
        max_age=3600,
    )
    routes = [
        Route(HEALTH_PATH, health),
        Route("/rest/v1", rest, methods=_METHODS),
        Route("/rest/v1/{path:path}", rest, methods=_METHODS),
        Route("/{path:path}", elsewhere, methods=_METHODS),
    ]
    return Starlette(routes=routes, middleware=[cors], lifespan=lifespan)


def _problem(status: int, message: str, hint: str) -> JSONResponse:
    return JSONResponse({"message": message, "hint": hint}, status_code=status)


def _given_key(request: Request) -> str | None:
    return request.headers.get("apikey") or request.query_params.get("apikey")


def _bearer_of(key: str, bearers: dict[str, str]) -> str | None:
    found = None
    for known, bearer in bearers.items():
        # all of them are compared, in constant time: the time taken tells nothing about a key
        if hmac.compare_digest(known.encode(), key.encode()):
            found = bearer
    return found


def _refusal(request: Request, bearers: dict[str, str]) -> Response | None:
    key = _given_key(request)
    if key is None:
        hint = "No `apikey` request header or url param was found."
        if request.headers.get("authorization", "").lower().startswith("bearer sb_"):
            hint += " An sb_ key is no JWT: send it as `apikey`, not as a Bearer token alone."
        return _problem(401, "No API key found in request", hint)
    if _bearer_of(key, bearers) is None:
        return _problem(
            401, "Invalid API key", "It is not a key of this stack: `ranked-ledger stack env` prints them."
        )
    return None


def _authorization(given: str | None, key: str, bearers: dict[str, str]) -> str:
    """What PostgREST gets: the caller's own token, or the JWT of the key's role where there is none.

    Any other `sb_` key in Authorization goes through as it is, and PostgREST refuses it: it is no JWT.
    """
    scheme, _, token = (given or "").partition(" ")
    if given is None or (scheme.lower() == "bearer" and token.strip() == key):
        return f"Bearer {_bearer_of(key, bearers)}"
    return given


async def _forward(request: Request, bearers: dict[str, str]) -> Response:
    client: httpx.AsyncClient = request.app.state.client
    has_body = "content-length" in request.headers or "transfer-encoding" in request.headers
    outgoing = client.build_request(
        request.method,
        _upstream_path(request),
        headers=_upstream_headers(request, bearers),
        content=request.stream() if has_body else None,
    )
    try:
        answer = await client.send(outgoing, stream=True)
    except (httpx.ConnectError, httpx.ConnectTimeout):
        hint = "It is starting, or it ended: `ranked-ledger stack up` starts it again."
        return _problem(503, "PostgREST does not answer", hint)
    except httpx.TransportError as error:
        log.warning("PostgREST broke off: %r", error)
        return _problem(502, "PostgREST broke off without an answer", "`ranked-ledger stack logs` shows why.")
    except ClientDisconnect:
        return Response(status_code=499)  # nobody reads it; the log shows who broke off
    response = StreamingResponse(_chunks(answer), status_code=answer.status_code)
    response.raw_headers = _passed_on(answer.headers.raw, drop=b"access-control-")
    return response


async def _chunks(answer: httpx.Response) -> AsyncIterator[bytes]:
    try:
        async for chunk in answer.aiter_raw():
            yield chunk
    finally:
        # reached also when the client has gone: the connection goes back to the pool or is closed
        await answer.aclose()


def _upstream_path(request: Request) -> httpx.URL:
    raw_path: bytes = request.scope["raw_path"]
    path = raw_path.removeprefix(b"/rest/v1") or b"/"
    query: bytes = request.scope["query_string"]
    # PostgREST would take the key for a filter on a column
    query = b"&".join(part for part in query.split(b"&") if not part.startswith(b"apikey="))
    return httpx.URL("http://postgrest", raw_path=path + (b"?" + query if query else b""))


def _upstream_headers(request: Request, bearers: dict[str, str]) -> list[tuple[bytes, bytes]]:
    key = _given_key(request) or ""
    headers = [pair for pair in _passed_on(request.headers.raw) if pair[0] not in (b"host", b"authorization")]
    given = request.headers.get("authorization")
    headers.append((b"authorization", _authorization(given, key, bearers).encode()))
    return headers


def _passed_on(headers: list[tuple[bytes, bytes]], drop: bytes | None = None) -> list[tuple[bytes, bytes]]:
    """The headers without those that belong to one connection, the ones that `Connection` names included."""
    named = {
        name.strip().lower()
        for key, value in headers
        if key.lower() == b"connection"
        for name in value.split(b",")
    }
    return [
        (key.lower(), value)
        for key, value in headers
        if key.lower() not in _HOP_BY_HOP | named and not (drop and key.lower().startswith(drop))
    ]


def main(config_file: str) -> None:
    """Serve until terminated."""
    config = GatewayConfig(**json.loads(Path(config_file).read_text()))
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    logging.getLogger("httpx").setLevel(logging.WARNING)
    uvicorn.run(
        create_app(config),
        host=LOOPBACK,
        port=config.port,
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        timeout_graceful_shutdown=3,
        # longer than clients keep idle connections, or they would meet one that is just being closed
        timeout_keep_alive=75,
    )


if __name__ == "__main__":
    main(sys.argv[1])
