"""Every error that the SDK raises, and the one table that maps a server's codes to them.

    RankedLedgerError
    ├── InvalidArgumentError (ValueError)     an argument is wrong: found before sending, or by the database
    │   ├── ConfigurationError                the URL, the key or the environment is: nothing was sent
    │   └── DimensionError                    the embedding does not have the dimension of the host's column
    ├── EmbeddingError                        the plugged-in embedder failed
    ├── NetworkError (ConnectionError)        no answer: refused, reset, name not found
    ├── RequestTimeoutError (TimeoutError)    no answer in time, or the database gave up
    └── APIError                              the server answered, and the answer is no
        ├── NotInstalledError                 the store's functions are not in this project
        │   └── NotPatchedError               an edge function lacks the patch, or the part that is asked
        ├── SchemaVersionError
        │   ├── SchemaTooOldError             push the newer migrations
        │   └── SchemaTooNewError             upgrade this package
        ├── AuthenticationError               the key is wrong, expired or missing
        ├── PermissionDeniedError             the key is right, its role or this person may not do this
        ├── NotFoundError (LookupError)       no such decision, trace, edge end, memory, organization
        ├── GoneError                         it was there and has been forgotten
        ├── ErasedTextError                   the text was erased for this person, and is not taken again
        ├── ConflictError                     the idempotency key or request id belongs to another request
        ├── LoopError                         the edge or the supersession would close a loop
        ├── RateLimitError                    too many requests; `retry_after` says how long to wait
        ├── ServiceUnavailableError           the server or its database cannot answer just now
        └── UnexpectedResponseError           what came back is not an answer of the ledger

Codes are mapped, never texts: PostgREST's wording differs from version to version.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Final

if TYPE_CHECKING:
    from ranked_ledger.models import Decision
    from ranked_ledger.wording import Store

INSTALL_COMMAND: Final = "supabase db push"


class RankedLedgerError(Exception):
    """The base of every error of this package.

    - `message`: one sentence.
    - `hint`: what to do next, where anything can be done.
    - `code`: the SQLSTATE or PostgREST code, for example `RL404`; None where no server answered.
    - `detail`: what the server added, for example the path of a loop.
    - `status`: the HTTP status, or None.
    - `request_id`: the gateway's id of the request, to quote in a support case, or None.
    - `written`: with `record_many`, the decisions that were written before this error.

    Example:
        >>> error = RankedLedgerError("no such decision", code="RL404", hint="check the workspace")
        >>> str(error)
        'no such decision. Next: check the workspace [RL404]'
    """

    _detail_is_shown: ClassVar[bool] = True

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        code: str | None = None,
        detail: str | None = None,
        status: int | None = None,
        request_id: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.code = code
        self.detail = detail
        self.status = status
        self.request_id = request_id
        self.written: tuple[Decision, ...] = ()

    def __str__(self) -> str:
        text = self.message
        if self._detail_is_shown and self.detail and self.detail not in text:
            text = f"{text.rstrip('.')}. {self.detail}"
        if self.hint:
            text = f"{text.rstrip('.')}. Next: {self.hint}"
        marks = [self.code or "", f"HTTP {self.status}" if self.status else ""]
        known = ", ".join(mark for mark in marks if mark)
        return f"{text} [{known}]" if known else text


class InvalidArgumentError(RankedLedgerError, ValueError):
    """An argument is wrong; the message names it. Nothing was written."""


class ConfigurationError(InvalidArgumentError):
    """The URL, the key or the environment cannot work. Nothing was sent."""


class DimensionError(InvalidArgumentError):
    """The embedding has another dimension than the host's column; both are named.

    `detail` holds the two numbers, `given,stored`, for programs.
    """

    _detail_is_shown = False


class EmbeddingError(RankedLedgerError):
    """The plugged-in embedder failed, or gave something that is not one vector a text."""


class NetworkError(RankedLedgerError, ConnectionError):
    """No answer came. `sent` is False where the request certainly never reached the server."""

    sent: bool = True


class RequestTimeoutError(RankedLedgerError, TimeoutError):
    """No answer in time; with a `code`, the database cancelled the statement.

    `sent` is False where the request certainly never reached the server.
    """

    sent: bool = True


class APIError(RankedLedgerError):
    """The server answered with an error. Raised itself for codes that have no class of their own."""


class NotInstalledError(APIError):
    """The functions of the ledger, or of the long-term memory, are not in this project, or PostgREST has not
    seen them yet.
    """


class NotPatchedError(NotInstalledError):
    """The agent-memory-api function lacks Ranked Ledger's patch, or the part of it that was asked."""


class SchemaVersionError(APIError):
    """The store in the database and this package do not fit."""


class SchemaTooOldError(SchemaVersionError):
    """The store in the database is older than this package can use."""


class SchemaTooNewError(SchemaVersionError):
    """The store in the database is newer than this package knows."""


class AuthenticationError(APIError):
    """The key is wrong, expired or missing."""


class PermissionDeniedError(APIError):
    """The key was accepted, but its role may not use the ledger; or the person's role in the organization
    does not let them do this.
    """


class NotFoundError(APIError, LookupError):
    """There is no such decision, trace or edge end in this workspace; no such memory in this organization."""


class GoneError(APIError):
    """The decision or the memory was here and has been forgotten or erased."""


class ErasedTextError(APIError):
    """The text was erased for this person before, and the digest key proves it. Nothing was written."""


class ConflictError(APIError):
    """The idempotency key was used with another request, or the request id belongs elsewhere."""


class LoopError(APIError):
    """The edge or the supersession would close a loop; `detail` holds the path."""


class RateLimitError(APIError):
    """Too many requests. `retry_after` is the wait in seconds that the server asks for, or None."""

    retry_after: float | None = None


class ServiceUnavailableError(APIError):
    """The server or its database cannot answer just now. `retry_after` as in `RateLimitError`."""

    retry_after: float | None = None


class UnexpectedResponseError(APIError):
    """What came back is not an answer of the ledger: a proxy's page, or JSON of another shape.

    `readable` is False where the body was no JSON at all.
    """

    readable: bool = True


BY_CODE: Final[Mapping[str, type[RankedLedgerError]]] = MappingProxyType(
    {
        "RL404": NotFoundError,
        "RL409": ConflictError,
        "RL410": GoneError,
        "RL461": LoopError,
        "RL462": InvalidArgumentError,
        "RL463": DimensionError,
        "RL471": InvalidArgumentError,  # a blank text
        "RL472": InvalidArgumentError,  # an unknown type of subject
        "RL473": InvalidArgumentError,  # an unknown author
        "RL474": InvalidArgumentError,  # a personal memory without the person
        "RL475": InvalidArgumentError,  # an expiry in the past
        "RL476": ErasedTextError,
        "RL501": NotInstalledError,
        "23505": ConflictError,
        "23514": InvalidArgumentError,
        "40001": ServiceUnavailableError,
        "40P01": ServiceUnavailableError,
        "42501": PermissionDeniedError,
        "42883": NotInstalledError,
        "42P01": NotInstalledError,
        "55P03": ServiceUnavailableError,
        "57014": RequestTimeoutError,
        "PGRST000": ServiceUnavailableError,
        "PGRST001": ServiceUnavailableError,
        "PGRST002": ServiceUnavailableError,
        "PGRST003": ServiceUnavailableError,
        "PGRST102": InvalidArgumentError,
        "PGRST106": NotInstalledError,
        "PGRST202": NotInstalledError,
        "PGRST203": NotInstalledError,
        "PGRST300": AuthenticationError,
        "PGRST301": AuthenticationError,
        "PGRST302": AuthenticationError,
        "PGRST303": AuthenticationError,
    }
)

# SQLSTATE classes, where the two first characters say enough.
BY_CODE_CLASS: Final[Mapping[str, type[RankedLedgerError]]] = MappingProxyType(
    {
        "08": ServiceUnavailableError,
        "22": InvalidArgumentError,
        "28": AuthenticationError,
        "53": ServiceUnavailableError,
        "57": ServiceUnavailableError,
    }
)

BY_STATUS: Final[Mapping[int, type[RankedLedgerError]]] = MappingProxyType(
    {
        401: AuthenticationError,
        403: PermissionDeniedError,
        404: UnexpectedResponseError,
        408: RequestTimeoutError,
        413: InvalidArgumentError,
        429: RateLimitError,
        502: ServiceUnavailableError,
        503: ServiceUnavailableError,
        504: ServiceUnavailableError,
    }
)

# What to do next where the server gives no hint of its own.
HINTS: Final[Mapping[type[RankedLedgerError], str]] = MappingProxyType(
    {
        NotInstalledError: f"run `{INSTALL_COMMAND}` in the project that holds the ledger's migrations "
        "(`ranked-ledger init` puts them there); if they are pushed already, reload PostgREST with "
        "`notify pgrst, 'reload schema'`",
        AuthenticationError: "use the project's secret key (sb_secret_...) or its legacy service_role key, "
        "of the same project as the URL",
        PermissionDeniedError: "the ledger answers to the service role only: use the project's secret key or "
        "its legacy service_role key",
        RequestTimeoutError: "try again, raise `timeout`, or ask for less at once",
        NetworkError: "check the URL and the network, then try again",
        RateLimitError: "wait, then try again; fewer calls at once also help",
        ServiceUnavailableError: "try again later",
        ConflictError: "use a new idempotency key for a new request",
        UnexpectedResponseError: "check that the URL is that of a Supabase project or of PostgREST itself",
    }
)


# The same for the long-term memory, where it is another.
MEMORY_HINTS: Final[Mapping[type[RankedLedgerError], str]] = MappingProxyType(
    {
        NotInstalledError: f"run `{INSTALL_COMMAND}` in the project that holds the long-term memory's "
        "migrations (`ranked-ledger init --long-term-memory` puts them there); if they are pushed already, "
        "reload PostgREST with `notify pgrst, 'reload schema'`",
        AuthenticationError: "the key or the access token is wrong or has expired: take a fresh access "
        "token, and a key of the same project as the URL",
        PermissionDeniedError: "it takes another role in the organization, or the project's secret key; a "
        "publishable key alone may do nothing: give an `access_token` with it",
    }
)


def hint_for(kind: type[RankedLedgerError], store: Store) -> str | None:
    """What to do next about an error of a store's, where the server gives no hint of its own."""
    return (MEMORY_HINTS.get(kind) if store == "memory" else None) or HINTS.get(kind)


def classify(code: str | None, status: int) -> type[RankedLedgerError]:
    """The class for an answer: by its code, else by its code's class, else by the HTTP status."""
    if status == 429:
        return RateLimitError
    if code:
        return BY_CODE.get(code) or BY_CODE_CLASS.get(code[:2] if len(code) == 5 else "") or APIError
    return BY_STATUS.get(status, APIError if status >= 400 else UnexpectedResponseError)
