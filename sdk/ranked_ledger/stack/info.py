"""What is known about a stack: how to reach it, what of it runs, what it was told."""

from __future__ import annotations

from dataclasses import dataclass, field

from ranked_ledger.stack.platform import DefaultPrivileges, VectorSchema


@dataclass(frozen=True)
class StackInfo:
    """How to reach a stack. Its repr shows no key."""

    name: str
    url: str
    db_url: str
    """The project's owner, `postgres`, who is no superuser: what migrations run as."""
    superuser_db_url: str
    publishable_key: str = field(repr=False)
    secret_key: str = field(repr=False)
    anon_key: str = field(repr=False)
    service_role_key: str = field(repr=False)
    jwt_secret: str = field(repr=False)

    def env(self) -> dict[str, str]:
        """The variables that Supabase clients and the Supabase CLI's users know."""
        return {
            "SUPABASE_URL": self.url,
            "SUPABASE_ANON_KEY": self.anon_key,
            "SUPABASE_SERVICE_ROLE_KEY": self.service_role_key,
            "SUPABASE_PUBLISHABLE_KEY": self.publishable_key,
            "SUPABASE_SECRET_KEY": self.secret_key,
            "SUPABASE_DB_URL": self.db_url,
            "SUPABASE_JWT_SECRET": self.jwt_secret,
        }


@dataclass(frozen=True)
class StackStatus:
    """What of a stack runs: the pid of each service, None for one that does not."""

    name: str
    folder: str
    url: str | None
    pids: dict[str, int | None]

    @property
    def running(self) -> bool:
        return all(self.pids.values())

    @property
    def stopped(self) -> bool:
        return not any(self.pids.values())


@dataclass(frozen=True)
class StackState:
    """What a stack remembers between two commands."""

    port: int
    default_privileges: DefaultPrivileges = "none"
    vector_schema: VectorSchema = "extensions"
    prepared: bool = False
    """Whether roles, schemas and default privileges are in the database as remembered here."""
