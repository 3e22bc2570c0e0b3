"""What every client is, whatever it speaks to: a place, an HTTP client, options, and when to try again."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

import httpx

from ranked_ledger import arguments, retry, wire
from ranked_ledger.errors import ConfigurationError, RankedLedgerError
from ranked_ledger.models import Unset
from ranked_ledger.settings import Connection

Http = TypeVar("Http", httpx.Client, httpx.AsyncClient)


@dataclass(frozen=True, kw_only=True)
class Patience:
    """The options that every client has: how long it waits, and how often it tries again."""

    timeout: float
    max_retries: int

    def __post_init__(self) -> None:
        if arguments.finite("timeout", self.timeout) <= 0:
            raise ConfigurationError("timeout must be above 0 seconds")
        arguments.whole("max_retries", self.max_retries, minimum=0)


@dataclass(frozen=True, kw_only=True)
class Basics(Patience):
    """The options of a client that works in one workspace."""

    workspace: str
    project: str | None

    def __post_init__(self) -> None:
        Patience.__post_init__(self)
        arguments.text("workspace", self.workspace)
        arguments.optional_text("project", self.project)


class Connected(Generic[Http]):
    """A client without its verbs."""

    _new_http: ClassVar[Callable[[], Any]]
    _http_kind: ClassVar[type[httpx.Client | httpx.AsyncClient]]
    _connection: Connection
    _options: Patience
    _http: Http
    _owned: bool

    def _connect(self, connection: Connection, http: Http | None) -> None:
        if http is not None and not isinstance(http, self._http_kind):
            raise ConfigurationError(
                f"http_client must be an httpx.{self._http_kind.__name__}, not {type(http).__name__}"
            )
        self._connection = connection
        self._owned = http is None
        self._http = type(self)._new_http() if http is None else http

    @property
    def url(self) -> str:
        """The URL that calls go under; it holds no key."""
        return self._connection.rest_url

    def _built(self, method: str, path: str, content: bytes | None, *, seconds: float) -> httpx.Request:
        """A request. Its `repr` shows no key, nor does a traceback with its locals."""
        if self._http.is_closed:
            raise ConfigurationError(
                "this client is closed", hint="make a new one, or keep the calls inside its `with` block"
            )
        try:
            return self._http.build_request(
                method,
                f"{self._connection.rest_url}{path}",
                content=content,
                headers=self._connection.headers,
                timeout=max(self._options.timeout, seconds),
            )
        except httpx.InvalidURL as problem:
            raise wire.failure(problem) from None

    def _wait(
        self, problem: RankedLedgerError | httpx.HTTPError | httpx.InvalidURL, attempt: int, repeatable: bool
    ) -> float:
        """The seconds before the next attempt; raises the error where there is none."""
        error = problem if isinstance(problem, RankedLedgerError) else wire.failure(problem)
        wait = retry.decide(
            error,
            attempt=attempt,
            max_retries=self._options.max_retries,
            repeatable=repeatable,
            chance=random.random(),  # noqa: S311  jitter is no secret
        )
        if wait is not None:
            return wait
        if error is problem:
            raise error
        raise error from problem


class InWorkspace(Connected[Http]):
    """A client whose every call is about one workspace."""

    _options: Basics

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r}, workspace={self.workspace!r}, project={self.project!r})"

    @property
    def workspace(self) -> str:
        """The workspace that every call is about."""
        return self._options.workspace

    @property
    def project(self) -> str | None:
        """The project that calls are about unless they name another one."""
        return self._options.project

    def _project(self, project: str | Unset | None) -> str | None:
        return self._options.project if isinstance(project, Unset) else project
