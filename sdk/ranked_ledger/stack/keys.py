"""The keys of one stack: minted once, kept in a file that only its owner reads."""

from __future__ import annotations

import json
import os
import secrets
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

import jwt

from ranked_ledger.stack.errors import StackError

_YEARS_10 = 10 * 365 * 24 * 3600


@dataclass(frozen=True)
class Keys:
    """Both kinds of a hosted project: legacy JWTs, and opaque keys that only the gateway understands."""

    jwt_secret: str = field(repr=False)
    anon: str = field(repr=False)
    service_role: str = field(repr=False)
    publishable: str = field(repr=False)
    secret: str = field(repr=False)


def mint(stack_name: str) -> Keys:
    jwt_secret = secrets.token_urlsafe(48)
    return Keys(
        jwt_secret=jwt_secret,
        anon=_role_jwt("anon", stack_name, jwt_secret),
        service_role=_role_jwt("service_role", stack_name, jwt_secret),
        publishable=_opaque("sb_publishable_"),
        secret=_opaque("sb_secret_"),
    )


def load_or_mint(path: Path, stack_name: str) -> Keys:
    """The keys of a stack never change while its folder exists: clients have copied them."""
    keys = load(path)
    if keys is None:
        keys = mint(stack_name)
        write_private(path, json.dumps(asdict(keys), indent=2) + "\n")
    return keys


def load(path: Path) -> Keys | None:
    try:
        return Keys(**json.loads(path.read_text()))
    except FileNotFoundError:
        return None
    except (ValueError, TypeError) as error:
        raise StackError(f"{path} is damaged: delete it, and the next `up` mints new keys.") from error


def write_private(path: Path, text: str) -> None:
    """Write with mode 0600 from the first byte on, and in one step: no reader meets a half-written file."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.unlink(missing_ok=True)
    try:
        with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)


def _opaque(prefix: str) -> str:
    # the shape of the hosted ones: 22 characters of randomness, 8 more that a scanner may check
    return f"{prefix}{secrets.token_urlsafe(16)}_{secrets.token_urlsafe(6)}"


def _role_jwt(role: str, stack_name: str, jwt_secret: str) -> str:
    now = int(time.time())
    claims = {"iss": "supabase", "ref": stack_name, "role": role, "iat": now, "exp": now + _YEARS_10}
    return jwt.encode(claims, jwt_secret, algorithm="HS256")
