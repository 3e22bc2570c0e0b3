"""What both clients of the ledger know and neither waits for: connection, options, and how they are made."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final, Generic, Self, TypeVar
from uuid import UUID, uuid4

from ranked_ledger import arguments, calls, settings
from ranked_ledger.calling import AnyEmbedder, Caller, EmbeddingOptions, Gate
from ranked_ledger.connected import Basics, Http, InWorkspace
from ranked_ledger.embeddings import OnEmbeddingFailure
from ranked_ledger.models import UNSET, Unset
from ranked_ledger.settings import Connection, SupabaseClient

Key = TypeVar("Key", bound=str | UUID)

DEFAULT_TIMEOUT: Final = 10.0
DEFAULT_RETRIES: Final = 3


@dataclass(frozen=True, kw_only=True)
class Options(EmbeddingOptions[AnyEmbedder], Basics, Generic[AnyEmbedder]):
    """What `with_options` can change."""

    def __post_init__(self) -> None:
        Basics.__post_init__(self)
        EmbeddingOptions.__post_init__(self)


class Session(InWorkspace[Http], Caller[Http], Generic[Http, AnyEmbedder]):
    """The part of a client that is the same for both: how it is made, and what it knows."""

    _ask_version = staticmethod(calls.schema_version)
    _options: Options[AnyEmbedder]

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
        options = Options(
            workspace=workspace,
            project=project,
            timeout=timeout,
            max_retries=max_retries,
            embedder=embedder,
            on_embedding_failure=on_embedding_failure,
        )
        self._begin(settings.project(url, key), options, http_client)

    def _begin(
        self,
        connection: Connection,
        options: Options[AnyEmbedder],
        http: Http | None,
        gate: Gate | None = None,
    ) -> Self:
        self._connect(connection, http)
        self._options = options
        self._gate = gate or Gate()
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
        options = Options(
            workspace=workspace,
            project=project,
            timeout=timeout,
            max_retries=max_retries,
            embedder=embedder,
            on_embedding_failure=on_embedding_failure,
        )
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
        options = Options(
            workspace=workspace,
            project=project,
            timeout=timeout,
            max_retries=max_retries,
            embedder=embedder,
            on_embedding_failure=on_embedding_failure,
        )
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
        options = Options(
            workspace=workspace,
            project=project,
            timeout=timeout,
            max_retries=max_retries,
            embedder=embedder,
            on_embedding_failure=on_embedding_failure,
        )
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

    def _scope(self, everywhere: bool) -> str | None:
        """The workspace that a count or a repair is about; None: all of them."""
        return None if arguments.flag("everywhere", everywhere) else self._options.workspace


def given_or_new(key: Key | None) -> Key | str:
    """The caller's key or request id, or a fresh one: what makes a write safe to retry."""
    return str(uuid4()) if key is None else key
