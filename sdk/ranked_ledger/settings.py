"""Where the ledger is and how to prove who asks: URLs, the kinds of keys, and the environment."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.metadata import version
from types import MappingProxyType
from typing import Any, Final, Protocol
from urllib.parse import urlsplit, urlunsplit

from ranked_ledger.errors import ConfigurationError

URL_VARIABLE: Final = "SUPABASE_URL"
KEY_VARIABLES: Final = ("SUPABASE_SECRET_KEY", "SUPABASE_SERVICE_ROLE_KEY")
PUBLIC_KEY_VARIABLES: Final = ("SUPABASE_PUBLISHABLE_KEY", "SUPABASE_ANON_KEY")
FUNCTION_URL_VARIABLE: Final = "AGENT_MEMORY_URL"
ACCESS_KEY_VARIABLE: Final = "MCP_ACCESS_KEY"

_REST_PATH: Final = "/rest/v1"
_SERVICE_ONLY: Final = (
    "the ledger answers to the service role only: use the project's secret key (sb_secret_...) "
    "or its legacy service_role key"
)
_PEOPLE: Final = (
    "give a person's `access_token` with it; without one, use the project's secret key (sb_secret_...) "
    "or its legacy service_role key"
)
_SIGNED_IN: Final = "it is the JWT that a person got by signing in, for example `session.access_token`"
_ACCESS_KEY: Final = f"it is what the function has as {ACCESS_KEY_VARIABLE}"
_FUNCTION_URL: Final = "https://<project>.supabase.co/functions/v1/agent-memory-api"


class SupabaseClient(Protocol):
    """What is read of a `supabase.Client` or `AsyncClient`: where it goes and the key that it was made with.

    Never its headers: signing a user in changes them, and the rights with them.
    """

    @property
    def supabase_url(self) -> Any: ...
    @property
    def supabase_key(self) -> Any: ...


@dataclass(frozen=True, slots=True, repr=False)
class Connection:
    """The URL that functions are called under, and the headers that carry the key, not in its `repr`."""

    rest_url: str
    headers: Mapping[str, str]

    def __repr__(self) -> str:
        return f"Connection({self.rest_url!r})"


def project(url: str, key: str) -> Connection:
    """A Supabase project, through its gateway, asked by the service role."""
    return _project(url, key, hint=_SERVICE_ONLY)


def people(url: str, key: str, access_token: str | None) -> Connection:
    """A Supabase project that people may ask too: with an access token, any key of the project will do."""
    if access_token is None:
        return _project(url, key, hint=_PEOPLE)
    return acting(_project(url, key, hint=None), access_token)


def acting(connection: Connection, access_token: str) -> Connection:
    """The same place, asked by the person whose token this is. The key says no more than which project."""
    token = _clean(access_token, "access_token", hint=_SIGNED_IN)
    if token.startswith("sb_"):
        raise ConfigurationError(
            "access_token is a key of the project, not a person's token", hint=_SIGNED_IN
        )
    role = _jwt_role(token)
    if role in ("anon", "service_role"):
        raise ConfigurationError(
            f"access_token is a key of the role {role}, no person's token", hint=_SIGNED_IN
        )
    headers = {**connection.headers, "Authorization": f"Bearer {token}"}
    return replace(connection, headers=MappingProxyType(headers))


def _project(url: str, key: str, *, hint: str | None) -> Connection:
    """A new key goes in `apikey` only: it is not a JWT. A public one is refused, unless there is no hint."""
    base = _base(url)
    key = _clean(key, "the key", hint=hint or _SERVICE_ONLY)
    role = _jwt_role(key)
    if hint is not None and key.startswith("sb_publishable_"):
        raise ConfigurationError("this is a publishable key", hint=hint)
    if hint is not None and role in ("anon", "authenticated"):
        raise ConfigurationError(f"this is a key of the role {role}", hint=hint)
    credentials = {"apikey": key}
    if _is_jwt(key):
        credentials["Authorization"] = f"Bearer {key}"
    return _connection(base if base.endswith(_REST_PATH) else base + _REST_PATH, credentials)


def postgrest(url: str, token: str | None) -> Connection:
    """A bare PostgREST, without a gateway: it reads a JWT in `Authorization` and nothing else."""
    if token is None:
        return _connection(_base(url), {})
    token = _clean(token, "the token")
    if token.startswith("sb_"):
        raise ConfigurationError(
            "an sb_... key means nothing to PostgREST itself",
            hint="pass a JWT whose role is service_role, or connect to the project, by its URL and this key",
        )
    return _connection(_base(url), {"Authorization": f"Bearer {token}"})


def supabase(client: SupabaseClient) -> Connection:
    """The project that a supabase client was made for, with the key that it was made with."""
    return project(*_of_supabase(client))


def people_of_supabase(client: SupabaseClient, access_token: str | None) -> Connection:
    """The same, for what people may ask too."""
    return people(*_of_supabase(client), access_token)


def _of_supabase(client: SupabaseClient) -> tuple[str, str]:
    url, key = getattr(client, "supabase_url", None), getattr(client, "supabase_key", None)
    if url is None or key is None:
        raise ConfigurationError(
            f"{type(client).__name__} is no supabase client: it has no supabase_url and supabase_key"
        )
    return str(url), str(key)


def function(url: str, access_key: str) -> Connection:
    """An agent-memory-api function. The access key goes in a header of its own, never in the URL."""
    base = _base(url, example=_FUNCTION_URL)
    key = _clean(access_key, "the access key", hint=_ACCESS_KEY)
    if key.startswith("sb_") or _jwt_role(key) is not None:
        raise ConfigurationError("this is a key of the Supabase project, not an access key", hint=_ACCESS_KEY)
    return Connection(base, MappingProxyType(_common() | {"x-brain-key": key}))


def function_environment(variables: Mapping[str, str] | None = None) -> Connection:
    """The function that AGENT_MEMORY_URL names, with the key of MCP_ACCESS_KEY."""
    found = os.environ if variables is None else variables
    url, key = (found.get(name, "").strip() for name in (FUNCTION_URL_VARIABLE, ACCESS_KEY_VARIABLE))
    missing = [
        name for name, value in ((FUNCTION_URL_VARIABLE, url), (ACCESS_KEY_VARIABLE, key)) if not value
    ]
    if missing:
        raise ConfigurationError(
            f"the environment lacks {' and '.join(missing)}",
            hint=f"the URL looks like {_FUNCTION_URL}; as for the key, {_ACCESS_KEY}",
        )
    return function(url, key)


def environment(variables: Mapping[str, str] | None = None) -> Connection:
    """The project that SUPABASE_URL and SUPABASE_SECRET_KEY, else SUPABASE_SERVICE_ROLE_KEY, name."""
    return project(*_of_environment(variables, KEY_VARIABLES))


def people_environment(access_token: str | None, variables: Mapping[str, str] | None = None) -> Connection:
    """The same; with an access token SUPABASE_PUBLISHABLE_KEY, else SUPABASE_ANON_KEY, goes before them."""
    names = KEY_VARIABLES if access_token is None else (*PUBLIC_KEY_VARIABLES, *KEY_VARIABLES)
    return people(*_of_environment(variables, names), access_token)


def _of_environment(variables: Mapping[str, str] | None, names: tuple[str, ...]) -> tuple[str, str]:
    found = os.environ if variables is None else variables
    url = found.get(URL_VARIABLE, "").strip()
    key = next((value for name in names if (value := found.get(name, "").strip())), "")
    missing = [name for name, value in ((URL_VARIABLE, url), (" or ".join(names), key)) if not value]
    if missing:
        raise ConfigurationError(
            f"the environment lacks {' and '.join(missing)}",
            hint='take them from the project settings; for a local stack: eval "$(ranked-ledger stack env)"',
        )
    return url, key


def _connection(rest_url: str, credentials: Mapping[str, str]) -> Connection:
    fixed = _common() | {"Content-Profile": "public"}
    return Connection(rest_url, MappingProxyType(fixed | dict(credentials)))


def _common() -> dict[str, str]:
    return {
        "Accept": "application/json",
        "Content-Type": "application/json",
        "X-Client-Info": f"ranked-ledger/{version('ranked-ledger')}",
    }


def _base(url: object, *, example: str = "https://<project>.supabase.co") -> str:
    if not isinstance(url, str) or not url.strip():
        raise ConfigurationError("the URL is missing", hint=f"it looks like {example}")
    try:
        parts = urlsplit(url.strip())
        _ = parts.port
        # an empty label or one of more than 63 bytes: the network would raise a bare UnicodeError
        (parts.hostname or "").encode("idna")
    except ValueError as wrong:
        raise ConfigurationError(f"the URL cannot be read: {wrong}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigurationError("the URL must begin with https:// or http:// and name a host")
    if parts.username or parts.password:
        raise ConfigurationError("the URL holds a user or a password", hint="pass the key as the key")
    if parts.query or parts.fragment:
        raise ConfigurationError("the URL has a query or a fragment", hint=f"it looks like {example}")
    return urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/"), "", ""))


def _clean(key: object, name: str, *, hint: str = _SERVICE_ONLY) -> str:
    if not isinstance(key, str) or not key.strip():
        raise ConfigurationError(f"{name} is missing", hint=hint)
    key = key.strip()
    if not key.isascii() or not key.isprintable() or " " in key:
        raise ConfigurationError(f"{name} holds characters that no key has", hint="copy it again")
    return key


def _is_jwt(key: str) -> bool:
    return key.startswith("eyJ") and key.count(".") == 2


def _jwt_role(key: str) -> str | None:
    """The role that a JWT claims, unverified: only to name a mistake early."""
    if not _is_jwt(key):
        return None
    claims = key.split(".")[1]
    try:
        role = json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4))).get("role")
    except (ValueError, AttributeError):
        return None
    return role if isinstance(role, str) else None
