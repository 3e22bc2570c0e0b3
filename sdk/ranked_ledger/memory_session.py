"""What the clients of the long-term memory know and none waits for: who asks, and of which organization.

Two families: what an agent holds (with an embedder), and what people and their upkeep need (without one).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Generic, Self
from uuid import UUID

from ranked_ledger import arguments, memory_calls, settings
from ranked_ledger.calling import AnyEmbedder, Caller, EmbeddingOptions, Gate
from ranked_ledger.connected import Http, Patience
from ranked_ledger.embeddings import OnEmbeddingFailure
from ranked_ledger.models import UNSET, Unset
from ranked_ledger.session import DEFAULT_RETRIES, DEFAULT_TIMEOUT
from ranked_ledger.settings import Connection, SupabaseClient


@dataclass(frozen=True, kw_only=True)
class OrgOptions(Patience):
    """The options of every client of the long-term memory."""

    org: UUID | str

    def __post_init__(self) -> None:
        Patience.__post_init__(self)
        object.__setattr__(self, "org", arguments.uuid("org", self.org))


@dataclass(frozen=True, kw_only=True)
class AgentOptions(EmbeddingOptions[AnyEmbedder], OrgOptions, Generic[AnyEmbedder]):
    """What an agent's `with_options` can change."""

    def __post_init__(self) -> None:
        OrgOptions.__post_init__(self)
        EmbeddingOptions.__post_init__(self)


class MemorySession(Caller[Http]):
    """What both families share."""

    _ask_version = staticmethod(memory_calls.schema_version)
    _options: OrgOptions

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r}, org={self._org!r})"

    @property
    def org(self) -> UUID:
        """The organization that every call is about."""
        return UUID(self._org)

    @property
    def _org(self) -> str:
        return str(self._options.org)

    def _begin(
        self, connection: Connection, options: OrgOptions, http: Http | None, gate: Gate | None = None
    ) -> Self:
        self._connect(connection, http)
        self._options = options
        self._gate = gate or Gate()
        return self

    def _changed(self, access_token: str | Unset, **asked: Any) -> Self:
        changes = {name: value for name, value in asked.items() if not isinstance(value, Unset)}
        there = self._connection
        connection = there if isinstance(access_token, Unset) else settings.acting(there, access_token)
        made = type(self).__new__(type(self))
        return made._begin(connection, replace(self._options, **changes), self._http, self._gate)


class AgentSession(MemorySession[Http], Generic[Http, AnyEmbedder]):
    """How an agent's client is made."""

    def __init__(
        self,
        url: str,
        key: str,
        *,
        org: UUID | str,
        access_token: str | None = None,
        timeout: float = DEFAULT_TIMEOUT,
        max_retries: int = DEFAULT_RETRIES,
        embedder: AnyEmbedder | None = None,
        on_embedding_failure: OnEmbeddingFailure = "raise",
        http_client: Http | None = None,
    ) -> None:
        options = _agent(org, timeout, max_retries, embedder, on_embedding_failure)
        self._begin(settings.people(url, key, access_token), options, http_client)

    @classmethod
    def from_env(
        cls,
        *,
        org: UUID | str,
        access_token: str | None = None,
        timeout: float = DEFAULT_TIMEOUT,
        max_retries: int = DEFAULT_RETRIES,
        embedder: AnyEmbedder | None = None,
        on_embedding_failure: OnEmbeddingFailure = "raise",
        http_client: Http | None = None,
    ) -> Self:
        """A client of the project that the environment names.

        SUPABASE_URL, and SUPABASE_SECRET_KEY, else SUPABASE_SERVICE_ROLE_KEY. With an `access_token`
        SUPABASE_PUBLISHABLE_KEY, else SUPABASE_ANON_KEY, goes before them.

        Raises `ConfigurationError`, naming the variables, where one is missing.

        Example:
            >>> memory = LongTermMemory.from_env(org=org, access_token=token)          # doctest: +SKIP
        """
        options = _agent(org, timeout, max_retries, embedder, on_embedding_failure)
        return cls.__new__(cls)._begin(settings.people_environment(access_token), options, http_client)

    @classmethod
    def from_supabase(
        cls,
        client: SupabaseClient,
        *,
        org: UUID | str,
        access_token: str | None = None,
        timeout: float = DEFAULT_TIMEOUT,
        max_retries: int = DEFAULT_RETRIES,
        embedder: AnyEmbedder | None = None,
        on_embedding_failure: OnEmbeddingFailure = "raise",
        http_client: Http | None = None,
    ) -> Self:
        """A client of the project that a `supabase.Client` or `AsyncClient` was made for, with the same key.

        Only its URL and key are read. Whoever has signed in on it acts here with their token alone:
        `access_token=client.auth.get_session().access_token`.

        Example:
            >>> LongTermMemory.from_supabase(create_client(url, key), org=org)         # doctest: +SKIP
        """
        options = _agent(org, timeout, max_retries, embedder, on_embedding_failure)
        connection = settings.people_of_supabase(client, access_token)
        return cls.__new__(cls)._begin(connection, options, http_client)

    @classmethod
    def from_postgrest(
        cls,
        url: str,
        *,
        token: str | None = None,
        org: UUID | str,
        timeout: float = DEFAULT_TIMEOUT,
        max_retries: int = DEFAULT_RETRIES,
        embedder: AnyEmbedder | None = None,
        on_embedding_failure: OnEmbeddingFailure = "raise",
        http_client: Http | None = None,
    ) -> Self:
        """A client of a bare PostgREST, without Supabase's gateway before it.

        - `url`: PostgREST's root, with no `/rest/v1`. `token`: a person's JWT, or one whose role is
          service_role; None sends none. An `sb_...` key means nothing there and is refused.

        Example:
            >>> LongTermMemory.from_postgrest("http://127.0.0.1:3000", token=token, org=org)  # doctest: +SKIP
        """
        options = _agent(org, timeout, max_retries, embedder, on_embedding_failure)
        return cls.__new__(cls)._begin(settings.postgrest(url, token), options, http_client)

    def with_options(
        self,
        *,
        org: UUID | str | Unset = UNSET,
        access_token: str | Unset = UNSET,
        timeout: float | Unset = UNSET,
        max_retries: int | Unset = UNSET,
        embedder: AnyEmbedder | Unset | None = UNSET,
        on_embedding_failure: OnEmbeddingFailure | Unset = UNSET,
    ) -> Self:
        """A copy with other options over the same connections; closing the copy leaves them open.

        - `access_token`: a fresh token of the person, or another person's.

        Example:
            >>> memory.with_options(access_token=fresh).recall("...")          # doctest: +SKIP
        """
        return self._changed(
            access_token,
            org=org,
            timeout=timeout,
            max_retries=max_retries,
            embedder=embedder,
            on_embedding_failure=on_embedding_failure,
        )


class StewardSession(MemorySession[Http]):
    """How a steward's client is made."""

    def __init__(
        self,
        url: str,
        key: str,
        *,
        org: UUID | str,
        access_token: str | None = None,
        timeout: float = DEFAULT_TIMEOUT,
        max_retries: int = DEFAULT_RETRIES,
        http_client: Http | None = None,
    ) -> None:
        options = _steward(org, timeout, max_retries)
        self._begin(settings.people(url, key, access_token), options, http_client)

    @classmethod
    def from_env(
        cls,
        *,
        org: UUID | str,
        access_token: str | None = None,
        timeout: float = DEFAULT_TIMEOUT,
        max_retries: int = DEFAULT_RETRIES,
        http_client: Http | None = None,
    ) -> Self:
        """A client of the project that the environment names, as `LongTermMemory.from_env`.

        Example:
            >>> steward = MemorySteward.from_env(org=org, access_token=token)          # doctest: +SKIP
        """
        options = _steward(org, timeout, max_retries)
        return cls.__new__(cls)._begin(settings.people_environment(access_token), options, http_client)

    @classmethod
    def from_supabase(
        cls,
        client: SupabaseClient,
        *,
        org: UUID | str,
        access_token: str | None = None,
        timeout: float = DEFAULT_TIMEOUT,
        max_retries: int = DEFAULT_RETRIES,
        http_client: Http | None = None,
    ) -> Self:
        """A client of the project of a `supabase.Client` or `AsyncClient`, as `LongTermMemory.from_supabase`.

        Example:
            >>> MemorySteward.from_supabase(create_client(url, key), org=org)          # doctest: +SKIP
        """
        options = _steward(org, timeout, max_retries)
        connection = settings.people_of_supabase(client, access_token)
        return cls.__new__(cls)._begin(connection, options, http_client)

    @classmethod
    def from_postgrest(
        cls,
        url: str,
        *,
        token: str | None = None,
        org: UUID | str,
        timeout: float = DEFAULT_TIMEOUT,
        max_retries: int = DEFAULT_RETRIES,
        http_client: Http | None = None,
    ) -> Self:
        """A client of a bare PostgREST, as `LongTermMemory.from_postgrest`.

        Example:
            >>> MemorySteward.from_postgrest("http://127.0.0.1:3000", token=token, org=org)  # doctest: +SKIP
        """
        options = _steward(org, timeout, max_retries)
        return cls.__new__(cls)._begin(settings.postgrest(url, token), options, http_client)

    def with_options(
        self,
        *,
        org: UUID | str | Unset = UNSET,
        access_token: str | Unset = UNSET,
        timeout: float | Unset = UNSET,
        max_retries: int | Unset = UNSET,
    ) -> Self:
        """A copy with other options over the same connections, as `LongTermMemory.with_options`.

        Example:
            >>> steward.with_options(timeout=60).subject_access(("user", user))  # doctest: +SKIP
        """
        return self._changed(access_token, org=org, timeout=timeout, max_retries=max_retries)


def _agent(
    org: UUID | str,
    timeout: float,
    max_retries: int,
    embedder: AnyEmbedder | None,
    on_embedding_failure: OnEmbeddingFailure,
) -> AgentOptions[AnyEmbedder]:
    return AgentOptions(
        org=org,
        timeout=timeout,
        max_retries=max_retries,
        embedder=embedder,
        on_embedding_failure=on_embedding_failure,
    )


def _steward(org: UUID | str, timeout: float, max_retries: int) -> OrgOptions:
    return OrgOptions(org=org, timeout=timeout, max_retries=max_retries)
