"""Who calls the long-term memory: the service, people with a token of their own, and nobody."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg import sql

from tests.rig.databases import Connection, Database
from tests.sql.rpc import call


class Caller:
    """Calls RPCs by name, arguments named without `p_`; the organization goes along unless another one is given."""

    def __init__(self, connection: Connection, org: str | None = None) -> None:
        self.connection = connection
        self.org = org

    def __call__(self, function: str, **arguments: Any) -> Any:
        if self.org is not None:
            arguments = {"org_id": self.org} | arguments
        return call(self.connection, function, **arguments)

    def refused(self, sqlstate: str, function: str, **arguments: Any) -> psycopg.errors.Diagnostic:
        """The call is refused with this code, and says what to do; what it says is the answer."""
        with pytest.raises(psycopg.Error) as raised:
            self(function, **arguments)
        assert raised.value.sqlstate == sqlstate, raised.value
        diagnostic = raised.value.diag
        assert diagnostic.message_primary
        return diagnostic

    def remember(self, text: str = "A memory", **arguments: Any) -> dict[str, Any]:
        answer = self("remember", text=text, **arguments)
        assert isinstance(answer, dict)
        return answer

    def id(self, text: str = "A memory", **arguments: Any) -> str:
        return str(self.remember(text, **arguments)["memory_id"])

    def recall(self, query: str | None = None, **arguments: Any) -> dict[str, Any]:
        answer = self("recall_memories", query=query, **arguments)
        assert isinstance(answer, dict)
        return answer

    def texts(self, query: str | None = None, **arguments: Any) -> list[str]:
        """What a recall finds, in its order."""
        return [hit["text"] for hit in self.recall(query, **arguments)["hits"]]


class Memories:
    """Organizations, people, and their connections to one database. `org` is made with it."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._people: dict[str, Connection] = {}
        self.org = self.new_org()

    def new_org(self, *, allow_asserted: bool = False) -> str:
        org = str(uuid4())
        self.database.superuser.execute("insert into long_term_memory.organizations (id) values (%s)", (org,))
        if allow_asserted:
            self.allow_asserted(org)
        return org

    def allow_asserted(self, org: str | None = None, *, allowed: bool = True) -> None:
        self.database.superuser.execute(
            "insert into long_term_memory.org_settings (org_id, allow_asserted) values (%s, %s) "
            "on conflict (org_id) do update set allow_asserted = excluded.allow_asserted",
            (org or self.org, allowed),
        )

    def new_user(self) -> str:
        user = str(uuid4())
        self.database.superuser.execute("insert into auth.users (id) values (%s)", (user,))
        return user

    def new_member(self, role: str = "member", org: str | None = None, user: str | None = None) -> str:
        """A user (a new one unless given) with a role in the organization; answers the user's id."""
        user = user or self.new_user()
        self.database.superuser.execute(
            "insert into long_term_memory.members (org_id, user_id, role) values (%s, %s, %s) "
            "on conflict (org_id, user_id) do update set role = excluded.role",
            (org or self.org, user, role),
        )
        return user

    def connect_as(self, user: str | UUID | None, **claims: Any) -> Connection:
        """A connection of its own with this user's token, as PostgREST sets it up; None: a token without a subject."""
        connection = self.database.connect("authenticated")
        token = {"role": "authenticated", **({"sub": str(user)} if user is not None else {}), **claims}
        connection.execute("select set_config('request.jwt.claims', %s, false)", (json.dumps(token),))
        return connection

    def as_user(self, user: str | UUID, org: str | None = None) -> Caller:
        """A person with a token. The connection stays open for the person's next call."""
        key = str(user)
        if key not in self._people or self._people[key].closed:
            self._people[key] = self.connect_as(key)
        return Caller(self._people[key], org or self.org)

    def as_member(self, role: str = "member", org: str | None = None) -> Caller:
        """A new person with this role."""
        return self.as_user(self.new_member(role, org), org)

    def as_service(self, org: str | None = None) -> Caller:
        return Caller(self.database.service, org or self.org)

    def as_anon(self, org: str | None = None) -> Caller:
        return Caller(self.database.anon, org or self.org)

    def insert(self, text: str = "A memory", org: str | None = None, **columns: Any) -> str:
        """A row as a plain INSERT of the service role writes it; answers its id."""
        values = {"org_id": org or self.org, "subject_type": "workspace", "text": text, **columns}
        query = sql.SQL("insert into long_term_memory.agent_memories ({}) values ({}) returning id").format(
            sql.SQL(", ").join(map(sql.Identifier, values)),
            sql.SQL(", ").join(sql.Placeholder() * len(values)),
        )
        ((memory_id,),) = self.database.service.execute(query, list(values.values())).fetchall()
        return str(memory_id)

    def row(self, memory_id: str) -> dict[str, Any]:
        """The stored row, whatever became of it."""
        answer = self.database.value(
            "select to_jsonb(m) from long_term_memory.agent_memories m where m.id = %s",
            (memory_id,),
            role="service_role",
        )
        assert isinstance(answer, dict)
        return answer

    def expire(self, memory_id: str) -> None:
        """Its expiry is past, as if time had gone by: the rule against that is for writers."""
        self._past_the_rules("expires_at = now() - interval '1 second'", memory_id)

    def age(self, memory_id: str, days: float) -> None:
        """It was written so many days ago."""
        self._past_the_rules(f"created_date = now() - {days!r} * interval '1 day'", memory_id)

    def approve(self, memory_id: str, outcome: str = "approved") -> None:
        """Reviewed, without a reviewer: for tests of what a review allows."""
        self._past_the_rules(
            "reviewed_at = now(), review_grade = 'verified', review_outcome = " + f"'{outcome}'", memory_id
        )

    def events(self, memory_id: str) -> list[dict[str, Any]]:
        return [
            event
            for (event,) in self.database.rows(
                "select to_jsonb(e) from long_term_memory.memory_events e where e.memory_id = %s order by e.id",
                (memory_id,),
                role="service_role",
            )
        ]

    def recorded(self, org: str, what: str = "recalls") -> list[dict[str, Any]]:
        """What recalls left in the organization: `recalls`, `recall_items` or `recall_subjects`."""
        query = sql.SQL("select to_jsonb(r) from long_term_memory.{} r where r.org_id = %s").format(
            sql.Identifier(what)
        )
        return [row for (row,) in self.database.service.execute(query, (org,)).fetchall()]

    def _past_the_rules(self, assignment: str, memory_id: str) -> None:
        with self.database.superuser.transaction():
            self.database.superuser.execute("set local session_replication_role = replica")
            self.database.superuser.execute(
                sql.SQL("update long_term_memory.agent_memories set {} where id = %s").format(
                    sql.SQL(assignment)
                ),
                (memory_id,),
            )
