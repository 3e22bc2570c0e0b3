"""Connections to a stack's own database, wherever the environment points."""

from __future__ import annotations

from typing import Any, Final

import psycopg

# What the URL leaves open libpq takes from the environment, or from the service that PGSERVICE names: an
# address in PGHOSTADDR even beats the socket of the URL, and sends a stack's statements to another server.
_NOT_FROM_OUTSIDE: Final[dict[str, Any]] = {
    "hostaddr": "",
    "options": "",
    "target_session_attrs": "any",
    "client_encoding": "utf8",
    "sslmode": "disable",
    "channel_binding": "prefer",
    # libpq has it since 16, and refuses a name that it does not know
    **({"require_auth": ""} if psycopg.pq.version() >= 160000 else {}),
}


def connect(url: str, *, autocommit: bool = False) -> psycopg.Connection:
    """A connection to the server on the URL's socket, and to no other."""
    return psycopg.connect(url, autocommit=autocommit, **_NOT_FROM_OUTSIDE)
