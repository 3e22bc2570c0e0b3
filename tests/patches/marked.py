"""Two organizations on a served project, people with strings of their own, and the doors through which strings come in.

A door is a place that a text gets to by one way of writing it. Each has one word, of letters alone, that stands nowhere else:
so that what a door wrote is known again, and a door that wrote nothing is found out.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

import httpx
import psycopg
from psycopg import sql
from psycopg.types.json import Jsonb

from ranked_ledger import RankedLedger
from ranked_ledger.stack import StackInfo
from tests.contract.company import Company, token_of
from tests.patches import rig
from tests.unit.sdk_drivers import Driver

STEM = "kestrelq"  # no other word, hash or name begins like this


@dataclass
class Marks:
    """The strings of somebody."""

    tag: str
    dimension: int
    words: dict[str, str] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    strings: list[str] = field(default_factory=list)  # what an officer would give to have all of them cleaned

    @property
    def stem(self) -> str:
        """What all of their words begin with, and nobody else's."""
        return f"{STEM}{self.tag}"

    def _draw(self, door: str) -> str:
        assert door not in self.words, f"{door} is written already"
        self.words[door] = self.stem + "".join(letter for letter in door if letter.isalpha())
        return self.words[door]

    def _say(self, door: str) -> str:
        self.texts[door] = f'Zoë said: "{self._draw(door)}",\nin C:\\temp 決定 🧾'
        return self.texts[door]

    def word(self, door: str) -> str:
        self.strings.append(self._draw(door))
        return self.words[door]

    def text(self, door: str) -> str:
        """A text that has to be escaped wherever texts are: quotes, a backslash, a line break, other scripts."""
        self.strings.append(self._say(door))
        return self.texts[door]

    def document(self, door: str) -> dict[str, Any]:
        """One that holds the word as a name, and the text as a value."""
        text = self._say(door)
        self.strings.append(self.words[door])
        return {self.words[door]: [text, {"deep": [text, 7, None]}]}

    def vector(self, door: str) -> list[float]:
        """Numbers of this door alone."""
        draw = random.Random(f"{self.tag} {door}")
        return [round(draw.uniform(-1, 1), 4) for _ in range(self.dimension)]


class Organization(Company):
    """Whose clients are kept: each is asked for often."""

    def __init__(self, stack: StackInfo, runner: asyncio.Runner) -> None:
        self._kept: dict[object, Driver] = {}
        super().__init__(stack, "sync", runner)

    def _client(self, kind: Any, role: str | None, options: dict[str, Any]) -> Driver:
        if (kind, role) not in self._kept:
            self._kept[kind, role] = super()._client(kind, role, options)
        return self._kept[kind, role]


@dataclass
class Person:
    """Whom both stores hold something about."""

    marks: Marks
    company: Organization
    workspace: str
    kind: str = "candidate"
    id: UUID = field(default_factory=uuid4)
    memories: list[str] = field(default_factory=list)
    decisions: list[str] = field(default_factory=list)
    traces: list[str] = field(default_factory=list)

    @property
    def subject(self) -> tuple[str, UUID]:
        return (self.kind, self.id)

    @property
    def org(self) -> str:
        return str(self.company.org)

    def attribute(self, decision: Any) -> str:
        """The decision is about them, as its recorder says."""
        memory_id = str(getattr(decision, "memory_id", decision))
        self.company.steward().attribute_decision(memory_id, self.subject)
        self.decisions.append(memory_id)
        return memory_id


class House:
    """A served project with both stores, a patched function, and two organizations."""

    def __init__(self, project: StackInfo, function: rig.Function, dimension: int) -> None:
        self.project, self.function, self.dimension = project, function, dimension
        self._runner = asyncio.Runner()
        self.ours, self.theirs = (Organization(project, self._runner) for _ in range(2))
        self.database = psycopg.connect(project.superuser_db_url, autocommit=True)
        self.database.execute("set search_path = public, extensions")
        self.http = httpx.Client(timeout=30)
        self._ledgers: dict[str, RankedLedger] = {}
        for company in (self.ours, self.theirs):
            company.steward().set_organization(name="Acme", allow_asserted=True)
        self.workspaces = {name: f"w-{name}-{uuid4()}" for name in ("first", "second", "foreign")}
        for name, workspace in self.workspaces.items():
            company = self.theirs if name == "foreign" else self.ours
            company.steward().map_workspace(workspace)

    def close(self) -> None:
        for company in (self.ours, self.theirs):
            company.close()
        for ledger in self._ledgers.values():
            ledger.close()
        self.http.close()
        self.database.close()
        self._runner.close()

    def ledger(self, workspace: str) -> RankedLedger:
        if workspace not in self._ledgers:
            self._ledgers[workspace] = RankedLedger(
                self.project.url, self.project.secret_key, workspace=workspace
            )
        return self._ledgers[workspace]

    def rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """As the superuser, who sees everything."""
        return self.database.execute(query, values).fetchall()

    def column(self, query: str, *values: object) -> list[Any]:
        return [value for (value,) in self.rows(query, *values)]

    def rpc(self, name: str, token: str | None = None, **arguments: Any) -> Any:
        """A call without a client of ours: the service's, or a person's with a token."""
        headers = {"apikey": self.project.secret_key}
        if token is not None:
            headers = {"apikey": self.project.publishable_key, "authorization": f"Bearer {token}"}
        body = {f"p_{key}": value for key, value in arguments.items()}
        answer = self.http.post(f"{self.project.url}/rest/v1/rpc/{name}", json=body, headers=headers)
        assert answer.status_code == 200, (name, answer.text)
        return answer.json()

    def token(self, company: Organization, role: str) -> str:
        return token_of(self.project, company.person(role))

    def rest(self, method: str, path: str, body: object) -> list[dict[str, Any]]:
        headers = {"apikey": self.project.secret_key, "prefer": "return=representation"}
        url = f"{self.project.url}/rest/v1/{path}"
        answer = self.http.request(method, url, json=body, headers=headers)
        assert answer.status_code in (200, 201), (path, answer.text)
        written: list[dict[str, Any]] = answer.json()
        assert written, path
        return written

    def insert(self, table: str, **columns: Any) -> str:
        """A row of an exposed table, as a host's function inserts it through PostgREST."""
        (row,) = self.rest("POST", table, columns)
        return str(row["id"])

    def change(self, table: str, row_id: str, **columns: Any) -> None:
        self.rest("PATCH", f"{table}?id=eq.{row_id}", columns)

    def hidden_insert(self, table: str, returning: str = "id", **columns: Any) -> str:
        """A row of a table of ours, by SQL in the role of the service."""
        values = [Jsonb(value) if isinstance(value, dict) else value for value in columns.values()]
        query = sql.SQL("insert into {} ({}) values ({}) returning {}::text").format(
            sql.Identifier(*table.split(".")),
            sql.SQL(", ").join(map(sql.Identifier, columns)),
            sql.SQL(", ").join([sql.Placeholder()] * len(columns)),
            sql.Identifier(returning),
        )
        with self.database.transaction():
            self.database.execute("set local role service_role")
            ((row_id,),) = self.database.execute(query, values).fetchall()
        return str(row_id)

    def thought_of(self, memory_id: str) -> str:
        ((thought,),) = self.rows("select thought_id::text from agent_memories where id = %s", memory_id)
        return str(thought)

    def expect(self, answer: httpx.Response) -> dict[str, Any]:
        """What the function answered, which went well."""
        assert answer.status_code == 200, answer.text
        document: dict[str, Any] = answer.json()
        return document

    @contextmanager
    def refusing_host(self, words: Iterable[str]) -> Iterator[None]:
        """A trigger of the host's on the ledger that refuses such decisions, and quotes them."""
        holding = " or ".join(f"m.content like '%{word}%'" for word in words)
        self.database.execute(
            f"""
            create function public.refuse() returns trigger language plpgsql as $$
            declare
              v_content text := (select m.content from public.agent_memories m where m.id = new.memory_id and ({holding}));
            begin
              if v_content is not null then
                raise exception 'refused: %', v_content;
              end if;
              return new;
            end $$;
            create trigger refuse before insert or update on public.agent_decision_ledger
            for each row execute function public.refuse()""".encode()
        )
        try:
            yield
        finally:
            self.database.execute(
                b"drop trigger refuse on public.agent_decision_ledger; drop function public.refuse()"
            )
