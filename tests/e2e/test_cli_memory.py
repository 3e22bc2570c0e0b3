"""`ranked-ledger memory` against real servers: an organization from its first memory to an erasure."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

from ranked_ledger import shipped
from ranked_ledger.stack import StackInfo, temporary_stack
from tests.e2e.conftest import ABSENT, Run, await_memory, new_user, record, runner, token_of

DIGEST = "a digest key that the officer keeps"


@dataclass
class Office:
    """An organization, and how to act in it as the service or as one of its people."""

    run: Run
    stack: StackInfo
    environment: pytest.MonkeyPatch
    org: str
    people: dict[str, str] = field(default_factory=dict)

    def __call__(self, *arguments: str, expect: int = 0) -> str:
        return str(self.run("memory", *arguments, expect=expect).out)

    def json(self, *arguments: str) -> dict[str, object]:
        answer: dict[str, object] = json.loads(self(*arguments, "--json"))
        return answer

    def refused(self, *arguments: str, expect: int) -> str:
        return str(self.run("memory", *arguments, expect=expect).err)

    def person(self, role: str) -> str:
        if role not in self.people:
            self.people[role] = new_user(self.stack)
            self("member", "add", self.people[role], "--role", role)
        return self.people[role]

    @contextmanager
    def acting(self, role: str) -> Iterator[None]:
        """With the token of somebody of this role, and without the secret key."""
        token = token_of(self.stack, self.person(role))
        with self.environment.context() as now:
            now.setenv("RANKED_LEDGER_ACCESS_TOKEN", token)
            for name in ("SUPABASE_SECRET_KEY", "SUPABASE_SERVICE_ROLE_KEY"):
                now.delenv(name)
            yield

    def remember(self, text: str, about: str, *more: str) -> str:
        return str(self.json("remember", text, "--about", about, *more)["memory_id"])

    def hits(self, *arguments: str) -> list[str]:
        hits = self.json("recall", *arguments)["hits"]
        assert isinstance(hits, list)
        return [hit["text"] for hit in hits]


@pytest.fixture
def office(run: Run, installed: StackInfo, monkeypatch: pytest.MonkeyPatch) -> Office:
    org = run("memory", "org", "create", "Acme", "--json").json["org_id"]
    monkeypatch.setenv("RANKED_LEDGER_ORG", org)
    return Office(run, installed, monkeypatch, org)


@pytest.fixture
def candidate() -> str:
    return f"candidate:{uuid4()}"


def test_a_newcomer_from_an_organization_to_an_erasure(
    office: Office, candidate: str, tmp_path: Path
) -> None:
    with office.acting("member"):
        said = office("remember", "Prefers to work from Lisbon", "--about", candidate, "--run", "run-81")
        memory = said.split()[0]
        assert "not reviewed" in said
        assert "run-81" not in office("recall", "Lisbon")
        assert office.hits("Lisbon", "--about", candidate) == []
        assert office.hits("Lisbon", "--about", candidate, "--unreviewed") == ["Prefers to work from Lisbon"]
        assert "It takes the role" in office.refused("review", expect=7)
        office("subject-access", "--about", candidate, expect=7)
    with office.acting("admin"):
        waiting = office("review")
        assert memory in waiting
        assert "1 memory waits for a review." in waiting
        assert "may instruct" in office(
            "review", memory, "--approve", "--instruction", "--note", "asked them"
        )
        assert "no change" in office("review", memory, "--approve", "--instruction", "--note", "asked them")
        assert office("review") == "Nothing waits for a review.\n"
    with office.acting("member"):
        table = office("recall", "where to work?", "--about", candidate, "--run", "run-82")
        assert "may instruct Prefers to work from Lisbon" in table
        block = office("recall", "Lisbon", "--prompt", "--max-tokens", "300")
        assert block.startswith("<memories-")
        assert "Prefers to work from Lisbon" in block
    with office.acting("admin"):
        assert "run-82" in office("usage", memory)
        document = office("subject-access", "--about", candidate)
        for part in ("Prefers to work from Lisbon", "run-81", "run-82", "asked them", "approved"):
            assert part in document
        office("subject-access", "--about", candidate, "--output", str(tmp_path / "held.txt"))
        office("erase", "--about", candidate, "--dry-run", expect=7)
    with office.acting("owner"):
        office.environment.setenv("RANKED_LEDGER_DIGEST_KEY", DIGEST)
        assert "1 memory" in office("erase", "--about", candidate, "--dry-run")
        assert office.hits("Lisbon", "--about", candidate) != []
        assert "--yes" in office.refused("erase", "--about", candidate, expect=4)
        receipt = office("erase", "--about", candidate, "--yes")
        assert f"{candidate} is erased" in receipt
        assert "keyed digest" in receipt
        assert "had been erased before" in office("erase", "--about", candidate, "--yes")
        assert office.hits("where to work?", "--about", candidate, "--unreviewed") == []
        assert "Lisbon" not in office("subject-access", "--about", candidate)
        office.refused("remember", "prefers to work from  LISBON", "--about", candidate, expect=4)
        said = office("remember", "Prefers to work from Lisbon", "--about", candidate, "--on-return", "flag")
        assert "erased for this person before" in said


def test_what_is_corrected_waits_again_and_what_is_forgotten_is_gone(office: Office, candidate: str) -> None:
    memory = office.remember("Lives in Porto", candidate)
    with office.acting("admin"):
        office("review", memory, "--evidence-only")
    assert "evidence only" in office("recall", "Porto")
    assert "waits for a review again" in office("correct", memory, "Lives in Braga", "--note", "moved")
    assert office.hits("Braga") == []
    with office.acting("owner"):
        assert "no change" in office("correct", memory, "Lives in Braga")
        office("review", memory, "--reject")
    assert office.hits("Braga", "--unreviewed") == []
    assert "is forgotten" in office("forget", memory, "--yes")
    assert "had been forgotten before" in office("forget", memory, "--yes")
    office("correct", memory, "Lives in Faro", expect=3)
    office("forget", ABSENT, "--yes", expect=3)


def test_the_secret_key_names_people_only_where_the_organization_allows_it(
    office: Office, candidate: str
) -> None:
    memory, member, admin = (
        office.remember("Starts in May", candidate),
        office.person("member"),
        office.person("admin"),
    )
    assert "memory org" in office.refused("review", memory, "--approve", "--reviewer", admin, expect=7)
    office.refused("assert", "I start in May", "--about", candidate, "--asserted-by", member, expect=7)
    assert "may name its members" in office("org", "set", "--allow-asserted")
    assert "asserted" in office("review", memory, "--approve", "--reviewer", admin)
    office.refused("review", memory, "--approve", "--instruction", "--reviewer", admin, expect=7)
    office.refused("review", memory, "--approve", "--reviewer", member, expect=3)
    assert "by a person, asserted" in office(
        "assert", "I start in May", "--about", candidate, "--asserted-by", member
    )
    with office.acting("member"):
        assert "by a person\n" in office("assert", "I start in June", "--about", candidate)
        office.refused("assert", "x", "--about", candidate, "--asserted-by", member, expect=2)
    office.refused("assert", "x", "--about", candidate, expect=2)
    assert set(office.hits("start", "--about", candidate)) == {
        "Starts in May",
        "I start in May",
        "I start in June",
    }


def test_a_decision_is_reached_through_its_workspace(
    office: Office, candidate: str, request: pytest.FixtureRequest
) -> None:
    workspace = request.node.name
    decision = record(office.run, "Person 4711 gets an offer", "--rationale", "the best interview")
    office.refused("attribute", decision, "--about", candidate, expect=3)
    assert "belongs to the organization" in office("map", workspace)
    assert "belonged already" in office("map", workspace)
    assert "is about" in office("attribute", decision, "--about", candidate)
    assert "was already about" in office("attribute", decision, "--about", candidate)
    office.run("recall", "who gets an offer?", "--about", candidate)
    shown = office("subject-access", "--about", candidate)
    for part in ("Person 4711 gets an offer", "the best interview", "who gets an offer?"):
        assert part in shown
    other = record(office.run, "The desk of Person 4711 is on the second floor")
    strings = ["--containing", "Person 4711"]
    assert "1 decision of the ledger" in office("erase", "--about", candidate, *strings, "--dry-run")
    receipt = office("erase", "--about", candidate, *strings, "--yes")
    assert "1 decision of the ledger, each keeps its place" in receipt
    assert "Anna" not in office.run("show", decision).out + office.run("show", other).out
    assert "the best interview" not in office.run("show", decision).out
    assert "belongs to no organization" in office("map", workspace, "--remove")


def test_what_has_expired_is_swept(office: Office, candidate: str, installed: StackInfo) -> None:
    memory = office.remember("Is on holiday", candidate, "--expires", "1h")
    office.refused("remember", "x", "--about", candidate, "--expires", "2020-01-01", expect=2)
    with psycopg.connect(installed.superuser_db_url) as connection:
        connection.execute("set session_replication_role = replica")
        connection.execute(
            "update long_term_memory.agent_memories set expires_at = now() - interval '1 s' where id = %s",
            (memory,),
        )
    assert office.hits("holiday", "--unreviewed") == []
    assert office("expire") == "1 memory deleted.\n"
    assert "0 memories deleted. " in office("expire", "--usage-before", "1h", "--batch", "1")
    office("usage", memory, expect=3)


def test_members_come_and_go(office: Office) -> None:
    user = new_user(office.stack)
    assert f"{user} is member of {office.org}" in office("member", "add", user)
    assert "is owner" in office("member", "add", user, "--role", "owner")
    assert "was already owner" in office("member", "add", user, "--role", "owner")
    removed = office("member", "remove", user)
    assert "is no member" in removed
    assert "the last owner" in removed
    assert "was already no member" in office("member", "remove", user)
    office("member", "add", ABSENT, expect=3)
    assert "Acme & Sons" in office("org", "set", "--name", "Acme & Sons")


def test_nobody_learns_of_an_organization_that_is_not_theirs(office: Office, candidate: str) -> None:
    other = office.run("memory", "org", "create", "Other", "--json").json["org_id"]
    with office.acting("owner"):
        there = office.refused("erase", "--about", candidate, "-o", other, "--yes", expect=7)
        assert there == office.refused("erase", "--about", candidate, "-o", ABSENT, "--yes", expect=7)
    assert "There is no organization" in office.refused("recall", "x", "-o", ABSENT, expect=3)


def test_no_key_is_in_any_answer(office: Office, candidate: str, installed: StackInfo) -> None:
    token = token_of(installed, office.person("owner"))
    secrets = [DIGEST, token, installed.secret_key, installed.service_role_key]
    office.environment.setenv("RANKED_LEDGER_DIGEST_KEY", DIGEST)
    said = ""
    with office.acting("owner"):
        for words in (
            ["erase", "--about", candidate, "--yes"],
            ["subject-access", "--about", candidate],
            ["review"],
        ):
            for more in ([], ["--json"]):
                said += office(*words, *more)
    office.environment.setenv("RANKED_LEDGER_ACCESS_TOKEN", token[:-4] + "AAAA")
    said += office.refused("review", expect=7) + office.refused("review", "--json", expect=7)
    office.environment.delenv("RANKED_LEDGER_ACCESS_TOKEN")
    office.environment.setenv("RANKED_LEDGER_DIGEST_KEY", "short key")
    said += office.refused("erase", "--about", candidate, "--yes", expect=2)
    assert not [one for one in [*secrets, token[:-4], "short key"] if one in said]


OTHER_TABLE = """
create table public.agent_memories (
  id uuid primary key default gen_random_uuid(), org_id uuid, subject_type text, subject_id uuid, text text, embedding real[]
);
grant select on public.agent_memories to service_role;
"""


@pytest.fixture
def beside_another(monkeypatch: pytest.MonkeyPatch) -> Iterator[StackInfo]:
    """The long-term memory alone, in a project whose agent_memories are another product's."""
    with temporary_stack() as running:
        info = running.info()
        (migration,) = (one for one in shipped.migrations() if one.area == shipped.LONG_TERM_MEMORY)
        with psycopg.connect(info.db_url) as connection:
            connection.execute(migration.text.encode())
            connection.execute(OTHER_TABLE)
        await_memory(info)
        for name, value in info.env().items():
            monkeypatch.setenv(name, value)
        yield info


def test_the_memories_of_another_product_are_adopted(
    beside_another: StackInfo, capsys: pytest.CaptureFixture[str]
) -> None:
    run = runner(capsys)
    org, whom = run("memory", "org", "create", "Acme", "--json").json["org_id"], str(uuid4())
    rows = [
        (org, "candidate", whom, "Speaks Dutch"),
        (org, "user", None, "Nobody"),
        (org, "person", whom, "Unknown"),
    ]
    with psycopg.connect(beside_another.db_url) as connection, connection.cursor() as cursor:
        cursor.executemany(
            "insert into public.agent_memories (org_id, subject_type, subject_id, text) values (%s, %s, %s, %s)",
            rows,
        )
    foreseen = run("memory", "adopt", "--dry-run").out
    assert "1 memory would be adopted; 0 are here already." in foreseen
    assert "no subject" in foreseen
    assert "unknown subject type" in foreseen
    assert "1 memory adopted; 0 are here already." in run("memory", "adopt", "--batch", "1").out
    assert "0 memories adopted; 1 is here already." in run("memory", "adopt").out
    assert "Speaks Dutch" in run("memory", "recall", "Dutch", "-o", org, "--unreviewed").out
