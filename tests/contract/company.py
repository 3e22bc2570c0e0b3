"""An organization on a running stack, its people with tokens of their own, and clients of either kind for each of them."""

from __future__ import annotations

import asyncio
import time
from typing import Any
from uuid import UUID, uuid4

import jwt
import psycopg

from ranked_ledger import AsyncLongTermMemory, AsyncMemorySteward, LongTermMemory, MemorySteward
from ranked_ledger.stack import StackInfo
from tests.unit.sdk_drivers import Driver


def token_of(stack: StackInfo, user: UUID, **claims: Any) -> str:
    """An access token as the platform's sign-in gives it."""
    usual = {"sub": str(user), "role": "authenticated", "exp": int(time.time()) + 600}
    return jwt.encode({**usual, **claims}, stack.jwt_secret, algorithm="HS256")


class Company:
    """One organization. Without a role a client is the service's; with one it is a member's, with their token."""

    def __init__(self, stack: StackInfo, kind: str, runner: asyncio.Runner) -> None:
        self.stack = stack
        self.org = uuid4()
        self.people: dict[str, UUID] = {}
        self.agent_kind = LongTermMemory if kind == "sync" else AsyncLongTermMemory
        self.steward_kind = MemorySteward if kind == "sync" else AsyncMemorySteward
        self._runner = runner
        self._made: list[Driver] = []
        self.steward().set_organization(name="Acme")

    def new_user(self) -> UUID:
        user = uuid4()
        with psycopg.connect(self.stack.superuser_db_url) as superuser:
            superuser.execute("insert into auth.users (id) values (%s)", (user,))
        return user

    def person(self, role: str) -> UUID:
        """The member with that role; the same one each time."""
        if role not in self.people:
            self.people[role] = self.new_user()
            self.steward().set_member(self.people[role], role)
        return self.people[role]

    def agent(self, role: str | None = None, **options: Any) -> Driver:
        return self._client(self.agent_kind, role, options)

    def steward(self, role: str | None = None, **options: Any) -> Driver:
        return self._client(self.steward_kind, role, options)

    def approved(self, text: str, **named: Any) -> Any:
        """A memory that a model wrote and the admin approved."""
        memory = self.agent().remember(text, **named)
        return self.steward("admin").review(memory, "approved")

    def _client(self, kind: Any, role: str | None, options: dict[str, Any]) -> Driver:
        key = options.pop("key", self.stack.secret_key if role is None else self.stack.publishable_key)
        token = {} if role is None else {"access_token": token_of(self.stack, self.person(role))}
        return self.driven(kind(self.stack.url, key, **{"org": self.org, **token, **options}))

    def driven(self, client: Any) -> Driver:
        """A client of this company's kind, to be closed with it."""
        self._made.append(Driver(client, self._runner))
        return self._made[-1]

    def close(self) -> None:
        for driver in self._made:
            driver.close()
