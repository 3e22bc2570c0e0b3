"""What both clients know and neither waits for: connection, options, and whether the schema was checked."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, Generic, Self, TypeVar, get_args
from uuid import UUID, uuid4

import httpx

from ranked_ledger import arguments, retry, settings, wire
from ranked_ledger.calls import Call
from ranked_ledger.embeddings import AsyncEmbedder, Embedder, OnEmbeddingFailure
from ranked_ledger.errors import ConfigurationError, RankedLedgerError
from ranked_ledger.models import UNSET, Unset
from ranked_ledger.settings import Connection, SupabaseClient

Http = TypeVar("Http", httpx.Client, httpx.AsyncClient)
Key = TypeVar("Key", bound=str | UUID)
AnyEmbedder = TypeVar("AnyEmbedder", bound=Embedder | AsyncEmbedder)

DEFAULT_TIMEOUT: Final = 10.0
DEFAULT_RETRIES: Final = 3


@dataclass(frozen=True, slots=True)
class Options(Generic[AnyEmbedder]):
    """What `with_options` can change."""

    workspace: str
    project: str | None
    timeout: float
    max_retries: int
    embedder: AnyEmbedder | None
    on_embedding_failure: OnEmbeddingFailure

    def __post_init__(self) -> None:
        arguments.text("workspace", self.workspace)
        arguments.optional_text("project", self.project)
        if arguments.finite("timeout", self.timeout) <= 0:
            raise ConfigurationError("timeout must be above 0 seconds")
        arguments.whole("max_retries", self.max_retries, minimum=0)
        arguments.one_of("on_embedding_failure", self.on_embedding_failure, get_args(OnEmbeddingFailure))
        if self.embedder is not None:
            arguments.text("embedder.model", getattr(self.embedder, "model", None))
            if not callable(getattr(self.embedder, "embed", None)):
                raise ConfigurationError("embedder has no method embed(texts)")


@dataclass(slots=True)
class Gate:
    """Whether the schema's version was found to fit; shared by the copies that `with_options` makes."""

    passed: bool = False


class Session(Generic[Http, AnyEmbedder]):
    """The part of a client that is the same for both: how it is made, and what it knows."""

    _new_http: ClassVar[Callable[[], Any]]
    _http_kind: ClassVar[type[httpx.Client | httpx.AsyncClient]]
    _connection: Connection
    _options: Options[AnyEmbedder]
    _gate: Gate
    _http: Http
    _owned: bool

    def __init__(
        self,
        url: str,
        key: str,
        *,
        workspace: str,
        project: str | None = None,
        timeout: float = DEFAULT_TIMEOUT,
        max_retries: int = DEFAULT_RETRIES,
        embedder: AnyEmbedder | None = None,
        on_embedding_failure: OnEmbeddingFailure = "raise",
        http_client: Http | None = None,
    ) -> None:
        options = Options(workspace, project, timeout, max_retries, embedder, on_embedding_failure)
        self._begin(settings.project(url, key), options, http_client)

    def _begin(
        self,
        connection: Connection,
        options: Options[AnyEmbedder],
        http: Http | None,
        gate: Gate | None = None,
    ) -> Self:
        if http is not None and not isinstance(http, self._http_kind):
            raise ConfigurationError(
                f"http_client must be an httpx.{self._http_kind.__name__}, not {type(http).__name__}"
            )
        self._connection = connection
        self._options = options
        self._gate = gate or Gate()
        self._owned = http is None
        self._http = type(self)._new_http() if http is None else http
        return self

    @classmethod
    def from_env(
        cls,
        *,
        workspace: str,
        project: str | None = None,
        timeout: float = DEFAULT_TIMEOUT,
        max_retries: int = DEFAULT_RETRIES,
        embedder: AnyEmbedder | None = None,
        on_embedding_failure: OnEmbeddingFailure = "raise",
        http_client: Http | None = None,
    ) -> Self:
        """A client of the project that the environment names.

        SUPABASE_URL, and SUPABASE_SECRET_KEY, else SUPABASE_SERVICE_ROLE_KEY.

        Raises `ConfigurationError`, naming the variables, where one is missing.

        Example:
            >>> ledger = RankedLedger.from_env(workspace="acme", project="billing")     # doctest: +SKIP
        """
        options = Options(workspace, project, timeout, max_retries, embedder, on_embedding_failure)
        return cls.__new__(cls)._begin(settings.environment(), options, http_client)

    @classmethod
    def from_supabase(
        cls,
        client: SupabaseClient,
        *,
        workspace: str,
        project: str | None = None,
        timeout: float = DEFAULT_TIMEOUT,
        max_retries: int = DEFAULT_RETRIES,
        embedder: AnyEmbedder | None = None,
        on_embedding_failure: OnEmbeddingFailure = "raise",
        http_client: Http | None = None,
    ) -> Self:
        """A client of the project that a `supabase.Client` or `AsyncClient` was made for, with the same key.

        Only its URL and key are read: signing a user in on it later does not change this client's rights.

        Example:
            >>> RankedLedger.from_supabase(create_client(url, key), workspace="acme")  # doctest: +SKIP
        """
        options = Options(workspace, project, timeout, max_retries, embedder, on_embedding_failure)
        return cls.__new__(cls)._begin(settings.supabase(client), options, http_client)

    @classmethod
    def from_postgrest(
        cls,
        url: str,
        *,
        token: str | None = None,
        workspace: str,
        project: str | None = None,
        timeout: float = DEFAULT_TIMEOUT,
        max_retries: int = DEFAULT_RETRIES,
        embedder: AnyEmbedder | None = None,
        on_embedding_failure: OnEmbeddingFailure = "raise",
        http_client: Http | None = None,
    ) -> Self:
        """A client of a bare PostgREST, without Supabase's gateway before it.

        - `url`: PostgREST's root, with no `/rest/v1`. `token`: a JWT whose role is service_role; None sends
          none. An `sb_...` key means nothing there and is refused.

        Example:
            >>> RankedLedger.from_postgrest("http://127.0.0.1:3000", workspace="acme")  # doctest: +SKIP
        """
        options = Options(workspace, project, timeout, max_retries, embedder, on_embedding_failure)
        return cls.__new__(cls)._begin(settings.postgrest(url, token), options, http_client)

    def with_options(
        self,
        *,
        workspace: str | Unset = UNSET,
        project: str | Unset | None = UNSET,
        timeout: float | Unset = UNSET,
        max_retries: int | Unset = UNSET,
        embedder: AnyEmbedder | Unset | None = UNSET,
        on_embedding_failure: OnEmbeddingFailure | Unset = UNSET,
    ) -> Self:
        """A copy with other options over the same connections; closing the copy leaves them open.

        Example:
            >>> ledger.with_options(timeout=60).recall("...")                  # doctest: +SKIP
        """
        asked = {
            "workspace": workspace,
            "project": project,
            "timeout": timeout,
            "max_retries": max_retries,
            "embedder": embedder,
            "on_embedding_failure": on_embedding_failure,
        }
        changes: dict[str, Any] = {
            name: value for name, value in asked.items() if not isinstance(value, Unset)
        }
        made = type(self).__new__(type(self))
        return made._begin(self._connection, replace(self._options, **changes), self._http, self._gate)

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

    @property
    def url(self) -> str:
        """The URL that the functions are called under; it holds no key."""
        return self._connection.rest_url

    def _project(self, project: str | Unset | None) -> str | None:
        return self._options.project if isinstance(project, Unset) else project

    def _scope(self, everywhere: bool) -> str | None:
        """The workspace that a count or a repair is about; None: all of them."""
        return None if arguments.flag("everywhere", everywhere) else self._options.workspace

    def _request(self, call: Call[Any]) -> httpx.Request:
        """The request of a call. Its `repr` shows no key, nor does a traceback with its locals."""
        if self._http.is_closed:
            raise ConfigurationError(
                "this client is closed", hint="make a new one, or keep the calls inside its `with` block"
            )
        content = wire.encode(call)
        try:
            return self._http.build_request(
                "POST",
                f"{self._connection.rest_url}/rpc/{call.function}",
                content=content,
                headers=self._connection.headers,
                timeout=max(self._options.timeout, call.seconds),
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


def given_or_new(key: Key | None) -> Key | str:
    """The caller's key or request id, or a fresh one: what makes a write safe to retry."""
    return str(uuid4()) if key is None else key
