"""adopt_memories: the other product's public.agent_memories is copied page by page, and stays as it is."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql

from tests.conftest import HostMaker
from tests.rig import deploy, hosts
from tests.rig.contents import contents
from tests.rig.databases import Connection, Database
from tests.sql.memory_rpc import Memories
from tests.sql.rpc import HOSTILE, NOBODY, at_once, call

GRANTS = "grant select on public.agent_memories, public.organizations, public.agent_runs to service_role"
DONE: dict[str, Any] = {"adopted": 0, "present": 0, "skipped": [], "skipped_total": 0, "next": None}


class Other:
    """A project with the other product, and the store beside it."""

    def __init__(self, database: Database, columns: str | None = None) -> None:
        self.database = database
        database.owner.execute(hosts.OTHER_PRODUCT)
        if columns is not None:
            database.owner.execute("drop table public.agent_memories")
            database.owner.execute(f"create table public.agent_memories ({columns})")
        database.owner.execute(GRANTS)
        self.org = str(uuid4())
        database.owner.execute("insert into public.organizations values (%s, 'Acme')", (self.org,))
        deploy.apply(database, "long_term_memory")

    def write(self, text: str | None = "A memory", **columns: Any) -> dict[str, Any]:
        """A row of the other product's, as it came to be."""
        values = {"org_id": self.org, "subject_type": "workspace", "text": text, **columns}
        query = sql.SQL(
            "insert into public.agent_memories ({}) values ({}) returning to_jsonb(agent_memories)"
        )
        names, marks = (
            sql.SQL(", ").join(map(sql.Identifier, values)),
            sql.SQL(", ").join(sql.Placeholder() * len(values)),
        )
        ((row,),) = self.database.owner.execute(query.format(names, marks), list(values.values())).fetchall()
        assert isinstance(row, dict)
        return row

    def allow_asserted(self) -> None:
        call(self.database.service, "set_organization", org_id=self.org, allow_asserted=True)

    def recall(self) -> list[dict[str, Any]]:
        """What an agent on the service key is shown, without asking for what nobody has reviewed."""
        answer = call(self.database.service, "recall_memories", org_id=self.org)
        return list(answer["hits"])

    def adopt(self, connection: Connection | None = None, **arguments: Any) -> dict[str, Any]:
        answer = call(connection or self.database.service, "adopt_memories", **arguments)
        assert isinstance(answer, dict)
        return answer

    def refused(self, sqlstate: str, **arguments: Any) -> psycopg.errors.Diagnostic:
        with pytest.raises(psycopg.Error) as raised:
            self.adopt(**arguments)
        assert raised.value.sqlstate == sqlstate, raised.value
        assert raised.value.diag.message_hint
        return raised.value.diag

    def memory(self, memory_id: str) -> dict[str, Any]:
        return self.memories()[memory_id]

    def memories(self) -> dict[str, dict[str, Any]]:
        rows = self.database.rows(
            "select to_jsonb(m) || jsonb_build_object('embedding', m.embedding::real[])"
            " from long_term_memory.agent_memories m order by id"
        )
        return {row["id"]: row for (row,) in rows}

    def source(self) -> list[str]:
        return contents(self.database, "public")["public.agent_memories"]


@pytest.fixture
def other(empty_project: HostMaker) -> Other:
    return Other(empty_project())


def written(other: Other, **columns: Any) -> dict[str, Any]:
    row = {"author": "model"} | columns
    return other.write(**row)


def test_a_memory_keeps_its_id_its_time_and_what_is_known_of_it(other: Other) -> None:
    user, candidate = str(uuid4()), str(uuid4())
    other.database.superuser.execute("insert into auth.users (id) values (%s)", (user,))
    other.database.owner.execute("insert into public.agent_runs values ('run-81')")
    other.allow_asserted()
    row = other.write(
        "Prefers the afternoon",
        author="person",
        subject_type="candidate",
        subject_id=candidate,
        source_run_id="run-81",
        written_by=user,
        embedding=[0.5, -1.25, 3.0],
        embedding_model="e5",
        created_date="2026-01-02T03:04:05Z",
        expires_at="2999-01-01T00:00:00Z",
    )

    assert other.adopt() == DONE | {"adopted": 1}

    adopted = other.memory(row["id"])
    # but that their token wrote it: that was not seen here
    assert {name: adopted[name] for name in row} == row | {"written_by": None}
    assert adopted["asserted_by"] == user
    assert adopted["embedding_dims"] == 3
    assert (adopted["review_outcome"], adopted["can_use_as_instruction"]) == (None, False)
    ((action, grade, actor, writer),) = other.database.rows(
        "select action, grade, actor_id, writer_before::text from long_term_memory.memory_events"
    )
    assert (action, grade, actor, writer) == ("adopted", "service", None, user)


def test_nothing_that_is_adopted_is_shown_as_verified(other: Other) -> None:
    user = str(uuid4())
    other.database.superuser.execute("insert into auth.users (id) values (%s)", (user,))
    other.allow_asserted()
    other.write("Pay by card", author="person", written_by=user)
    other.write("Nobody is named", author="person")
    other.write("A model on somebody's token", author="model", written_by=user)
    assert other.adopt()["adopted"] == 3
    assert [hit["line"] for hit in other.recall()] == [
        "- [today | by person, asserted | unreviewed | instruction: no | about workspace] Pay by card"
    ]
    assert {
        (m["text"], m["author"], m["written_by"], m["asserted_by"]) for m in other.memories().values()
    } == {
        ("Pay by card", "person", None, user),
        ("Nobody is named", "model", None, None),
        ("A model on somebody's token", "model", None, None),
    }


def test_where_nobody_may_be_named_a_persons_row_waits_for_a_review(other: Other) -> None:
    row = other.write("Pay by card", author="person", written_by=str(uuid4()))
    assert other.adopt()["adopted"] == 1
    adopted = other.memory(row["id"])
    assert (adopted["author"], adopted["written_by"], adopted["asserted_by"]) == ("model", None, None)
    assert other.recall() == []


def test_a_repeat_adopts_nothing_twice_and_touches_nothing(other: Other) -> None:
    row = written(other)
    other.adopt()
    other.database.owner.execute("update public.agent_memories set text = 'Changed over there'")
    before = contents(other.database, "long_term_memory")
    assert other.adopt() == DONE | {"present": 1}
    assert contents(other.database, "long_term_memory") == before
    assert other.memory(row["id"])["text"] == "A memory"


def test_what_was_forgotten_here_does_not_come_back(other: Other) -> None:
    row = written(other)
    other.adopt()
    other.database.service.execute("delete from long_term_memory.agent_memories where id = %s", (row["id"],))
    assert other.adopt() == DONE | {"present": 1}
    assert other.memory(row["id"])["text"] == ""


def test_the_source_stays_byte_for_byte_and_is_not_locked(other: Other) -> None:
    for text in HOSTILE:
        written(other, text=text)
    written(other, text=" ")
    before = other.source(), deploy.dump_of(other.database, "agent_memories")
    connection = other.database.connect("service_role", autocommit=False)
    other.adopt(connection)
    held = other.database.superuser.execute(
        "select distinct mode from pg_locks where relation = 'public.agent_memories'::regclass"
    ).fetchall()
    assert held == [("AccessShareLock",)]
    connection.commit()
    assert (other.source(), deploy.dump_of(other.database, "agent_memories")) == before
    assert {m["text"] for m in other.memories().values()} == set(HOSTILE)


def test_pages_go_by_id_until_next_is_null(other: Other) -> None:
    for number in range(25):
        written(other, text=" " if number % 5 == 0 else "A memory")
    after: str | None = None
    pages: list[dict[str, Any]] = []
    while not pages or after is not None:
        page = other.adopt(limit=10, after=after)
        after = page["next"]
        pages.append(page)
    assert [page["adopted"] + page["skipped_total"] for page in pages] == [10, 10, 5]
    assert sum(page["adopted"] for page in pages) == 20
    assert len(other.memories()) == 20
    # a page that ends the table exactly is followed by an empty one
    assert other.adopt(limit=25)["next"] is not None
    assert other.adopt(limit=25, after="ffffffff-ffff-ffff-ffff-ffffffffffff") == DONE


def test_a_trial_run_answers_the_same_and_writes_nothing(other: Other) -> None:
    for number in range(7):
        written(other, text=" " if number % 3 == 0 else "A memory", source_run_id=None)
    before = contents(other.database, "public", "long_term_memory")
    trial = other.adopt(limit=5, dry_run=True)
    assert contents(other.database, "public", "long_term_memory") == before
    assert other.adopt(limit=5) == trial


def test_what_cannot_be_a_memory_is_left_out_with_the_reason(other: Other) -> None:
    other.database.owner.execute(
        "alter table public.agent_memories drop constraint agent_memories_org_id_fkey"
    )
    reasons = {
        "blank text": [{"text": None}, {"text": ""}, {"text": " \n\t"}],
        "text too long": [{"text": "x" * 65_537}, {"text": "ü" * 32_769}],
        "unknown subject type": [{"subject_type": "company"}, {"subject_type": "Candidate"}],
        "no subject": [{"subject_type": "candidate"}, {"subject_type": "user"}],
        "unknown organization": [{"org_id": NOBODY}],
        "expired": [{"expires_at": "2026-01-01"}, {"expires_at": "-infinity"}],
    }
    expected = {written(other, **row)["id"]: why for why, rows in reasons.items() for row in rows}
    kept = written(other, text="ü" * 32_768, expires_at="infinity")["id"]

    page = other.adopt()

    assert {skip["id"]: skip["reason"] for skip in page["skipped"]} == expected
    assert page["skipped_total"] == len(expected)
    assert set(other.memories()) == {kept}


def test_at_most_a_hundred_reasons_are_told_and_all_are_counted(other: Other) -> None:
    for _ in range(130):
        written(other, text=" ")
    page = other.adopt()
    assert (len(page["skipped"]), page["skipped_total"]) == (100, 130)


def test_an_id_that_another_organization_has_is_not_taken_for_the_row(other: Other) -> None:
    elsewhere, row = str(uuid4()), written(other)
    other.database.owner.execute("insert into public.organizations values (%s, 'Other')", (elsewhere,))
    other.database.service.execute(
        "insert into long_term_memory.agent_memories (id, org_id, subject_type, text) values (%s, %s, 'workspace', 'Theirs')",
        (row["id"], elsewhere),
    )
    skipped = [{"id": row["id"], "reason": "id is another organization's"}]
    assert other.adopt() == DONE | {"skipped": skipped, "skipped_total": 1}
    assert other.memory(row["id"])["text"] == "Theirs"


def test_what_is_not_known_here_is_left_out_of_the_memory(other: Other) -> None:
    other.database.owner.execute(
        "alter table public.agent_memories drop constraint agent_memories_source_run_id_fkey"
    )
    row = written(other, author="robot", source_run_id="pruned", written_by=NOBODY)
    assert other.adopt()["adopted"] == 1
    adopted = other.memory(row["id"])
    assert (adopted["author"], adopted["source_run_id"], adopted["written_by"]) == ("model", None, None)


def test_an_erased_row_becomes_a_tombstone(other: Other) -> None:
    row = written(other, text=None, redacted_at="2026-02-03T00:00:00Z", expires_at="2026-01-01T00:00:00Z")
    # what the other product left in a row that it calls erased is not copied
    careless = written(other, text="still here", redacted_at="2026-02-03T00:00:00Z", embedding=[1, 2])
    assert other.adopt()["adopted"] == 2
    for memory_id in (row["id"], careless["id"]):
        adopted = other.memory(memory_id)
        assert adopted["redacted_at"] == "2026-02-03T00:00:00+00:00"
        assert (adopted["text"], adopted["embedding"]) == ("", None)
    assert "still here" not in json.dumps(contents(other.database, "long_term_memory"))


def test_who_was_erased_here_is_not_brought_back_by_rows_that_are_older(other: Other) -> None:
    candidate = str(uuid4())
    about = {"subject_type": "candidate", "subject_id": candidate}
    older = written(other, **about, created_date="2026-01-01")["id"]
    newer = written(other, **about, created_date="2999-01-01")["id"]
    someone = written(other, subject_type="candidate", subject_id=str(uuid4()))["id"]
    other.database.service.execute(
        "insert into long_term_memory.erasures (org_id, subject_type, subject_id, grade) values (%s, 'candidate', %s, 'service')",
        (other.org, candidate),
    )
    page = other.adopt()
    assert page["skipped"] == [{"id": older, "reason": "subject erased"}]
    assert set(other.memories()) == {newer, someone}


@pytest.mark.parametrize(
    ("numbers", "kept"),
    [
        ([0.25, 0.5], [0.25, 0.5]),
        ([], None),
        ([0.0, 0.0], None),
        ([1.0, None], None),
        ([1.0, float("nan")], None),
        ([1.0, float("inf")], None),
        ([[1.0, 2.0], [3.0, 4.0]], None),
        ([1.0] * 16_001, None),
        (None, None),
    ],
    ids=["good", "empty", "zeros", "null inside", "nan", "infinite", "two-dimensional", "too long", "none"],
)
def test_numbers_that_are_no_vector_are_left_out(other: Other, numbers: Any, kept: Any) -> None:
    row = written(other, embedding=numbers, embedding_model="e5")
    assert other.adopt()["adopted"] == 1
    adopted = other.memory(row["id"])
    assert (adopted["embedding"], adopted["embedding_model"]) == (kept, "e5" if kept else "")


def test_a_vector_without_a_model_is_compared_with_none(other: Other) -> None:
    row = written(other, embedding=[1, 2], embedding_model=None)
    other.adopt()
    adopted = other.memory(row["id"])
    assert (adopted["embedding"], adopted["embedding_model"]) == ([1, 2], "")


def test_a_time_that_is_none_becomes_now(other: Other) -> None:
    row = written(other, created_date="-infinity")
    other.adopt()
    assert other.database.value(
        "select created_date > now() - interval '1 hour' from long_term_memory.agent_memories where id = %s",
        (row["id"],),
    )


def test_adopting_at_once_copies_each_row_once(other: Other) -> None:
    for number in range(40):
        written(
            other, subject_type="candidate", subject_id=f"00000000-0000-4000-8000-0000000000{number % 7:02}"
        )
    answers = at_once(other.database, [lambda c: call(c, "adopt_memories", limit=100)] * 6)
    assert sum(answer["adopted"] for answer in answers) == 40
    assert sum(answer["present"] for answer in answers) == 5 * 40
    assert other.database.value("select count(*) from long_term_memory.memory_events") == 40


def test_an_erasure_under_way_is_waited_for_and_then_respected(other: Other) -> None:
    candidate = str(uuid4())
    written(other, subject_type="candidate", subject_id=candidate)
    with other.database.connect("service_role", autocommit=False) as erasing:
        erasing.execute("select long_term_memory.hold_subject(%s, 'candidate', %s)", (other.org, candidate))
        hasty = other.database.connect("service_role")
        hasty.execute("set lock_timeout = '50ms'")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            other.adopt(hasty)
        assert other.adopt(hasty, dry_run=True)["adopted"] == 1  # it writes nothing, and waits for nobody
        erasing.commit()
    assert other.adopt(hasty)["adopted"] == 1


# ------------------------------------------------------------------------------- tables that differ from it


def test_three_columns_are_enough_and_a_repeat_knows_the_rows_again(empty_project: HostMaker) -> None:
    other = Other(empty_project(), "org_id uuid, subject_type text, text text, subject_id uuid")
    candidate = str(uuid4())
    for text in ("One", "Two", "One"):
        other.write(text, subject_type="candidate", subject_id=candidate)
    other.write("Three")
    first = other.adopt(limit=2)
    assert first["adopted"] + other.adopt(limit=3, after=first["next"])["adopted"] == 3
    # the same words about the same person are one memory
    assert sorted(m["text"] for m in other.memories().values()) == ["One", "Three", "Two"]
    assert other.adopt() == DONE | {"present": 4}


def test_columns_of_other_types_are_read_as_far_as_they_go(empty_project: HostMaker) -> None:
    other = Other(
        empty_project(),
        "id bigint primary key, org_id text, subject_type varchar(20), subject_id text, text varchar, author char(6), "
        "written_by text, embedding extensions.vector(2), embedding_model text, created_date date, redacted_at timestamp",
    )
    candidate = str(uuid4())
    other.write(
        "Good",
        id=1,
        subject_type="candidate",
        subject_id=candidate,
        author="person",
        written_by="auth0|17",
        embedding="[1,2]",
        embedding_model="e5",
        created_date="2026-05-06",
    )
    other.write("No uuid", id=2, subject_type="candidate", subject_id="c-17")
    other.write("No uuid either", id=3, org_id="acme")
    page = other.adopt()
    assert page["adopted"] == 1
    assert sorted(skip["reason"] for skip in page["skipped"]) == ["no subject", "unknown organization"]
    (adopted,) = other.memories().values()
    # a writer who is no uuid is nobody who could be named
    assert (adopted["text"], adopted["author"], adopted["subject_id"]) == ("Good", "model", candidate)
    assert (adopted["embedding"], adopted["embedding_model"]) == ([1, 2], "e5")
    assert adopted["created_date"].startswith("2026-05-06")
    assert other.adopt()["present"] == 1


def test_ids_that_may_be_missing_are_still_known_again(empty_project: HostMaker) -> None:
    other = Other(empty_project(), "id uuid, org_id uuid, subject_type text, text text, embedding text")
    known = str(uuid4())
    other.write("One", id=known, embedding="[1,2]")
    other.write("Two")
    assert other.adopt()["adopted"] == 2
    assert other.memory(known)["text"] == "One"
    assert other.adopt() == DONE | {"present": 2}


def test_runs_that_only_we_know_are_noted(memories: Memories) -> None:
    """Without a table of runs of the host's, ours keeps which run wrote it."""
    memories.database.owner.execute(
        "create table public.agent_memories (id uuid primary key, org_id uuid, subject_type text, text text, source_run_id text);"
        "grant select on public.agent_memories to service_role"
    )
    memory_id = str(uuid4())
    memories.database.owner.execute(
        "insert into public.agent_memories values (%s, %s, 'workspace', 'A memory', 'run-1')",
        (memory_id, memories.org),
    )
    assert call(memories.database.service, "adopt_memories")["adopted"] == 1
    assert memories.row(memory_id)["source_run_id"] == "run-1"


def test_a_page_is_a_walk_along_the_other_tables_key(other: Other) -> None:
    other.database.owner.execute(
        "insert into public.agent_memories (org_id, subject_type, text, author)"
        " select %s, 'workspace', 'Memory ' || n, 'model' from generate_series(1, 20000) as n",
        (other.org,),
    )
    other.database.superuser.execute("vacuum analyze public.agent_memories")
    query = str(
        other.database.value(
            "select long_term_memory.adoption_query('public.agent_memories')", role="service_role"
        )
    )
    for mark, value in (("$1", "'80000000-0000-0000-0000-000000000000'::uuid"), ("$2", "500")):
        query = query.replace(mark, value)
    plan = "\n".join(line for (line,) in other.database.rows(f"explain {query}"))
    assert "Index Scan using agent_memories_pkey" in plan


# ------------------------------------------------------------------------------------------- not this table


def test_open_brains_table_of_that_name_is_told_apart(full_project: HostMaker) -> None:
    with pytest.raises(psycopg.Error) as raised:
        call(full_project().service, "adopt_memories")
    assert raised.value.sqlstate == "22023"
    assert "Open Brain's" in (raised.value.diag.message_primary or "")


def test_without_such_a_table_there_is_nothing_to_adopt(shared_memories: Memories) -> None:
    with pytest.raises(psycopg.Error) as raised:
        call(shared_memories.database.service, "adopt_memories")
    assert raised.value.sqlstate == "RL404"


def test_another_table_of_that_name_is_not_read(empty_project: HostMaker) -> None:
    other = Other(empty_project(), "id uuid, org_id uuid, body text")
    other.refused("22023")


def test_a_table_that_the_service_role_may_not_read_is_named_with_the_grant(other: Other) -> None:
    other.database.owner.execute("revoke all on public.agent_memories from service_role")
    assert "grant select on" in (other.refused("42501").message_hint or "")
    assert other.adopt(other.database.owner) == DONE


@pytest.mark.parametrize("limit", [0, -1, 1001, None])
def test_a_limit_that_is_none_is_refused(other: Other, limit: int | None) -> None:
    other.refused("22023", limit=limit)


@pytest.mark.parametrize("role", ["anon", "authenticated"])
def test_people_and_the_public_keys_may_not(other: Other, role: str) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        other.database.connect(role).execute("select public.adopt_memories()")
