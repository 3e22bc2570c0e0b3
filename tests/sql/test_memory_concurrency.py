"""32 writers beside a sweep and an erasure: no deadlock, no error but those that are meant, nothing of the erased person left
from before, everything of after it there, and everybody else's memories whole."""

from __future__ import annotations

import itertools
import random
import re
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from tests.conftest import HostMaker
from tests.rig import residue
from tests.rig.contents import contents
from tests.rig.databases import Connection, Database
from tests.sql.memory_oracle import broken
from tests.sql.memory_rpc import Memories
from tests.sql.rpc import call
from tests.sql.write_path import at_once, deadlocks, in_background, wait_until_blocked

WRITERS = 32
ROUNDS = 48
# gone because somebody erased, forgot or swept it; an expiry that was over when its turn came
MEANT = {"RL404", "RL410", "RL475"}


@dataclass
class Written:
    """What one call wrote, in words that nothing else has, and when it began and ended."""

    words: str
    subject: str
    began: float
    ended: float
    id: str
    expires: bool = False


@dataclass
class Company:
    """An organization with candidates, one of whom is erased while everybody works."""

    memories: Memories
    erased: str = field(default_factory=lambda: str(uuid4()))
    others: list[str] = field(default_factory=lambda: [str(uuid4()) for _ in range(3)])
    shared: list[tuple[str, str]] = field(default_factory=list)
    texts: list[Written] = field(default_factory=list)
    questions: list[Written] = field(default_factory=list)
    answers: Counter[str] = field(default_factory=Counter)
    began: float = 0
    committed: float = 0
    done: threading.Event = field(default_factory=threading.Event)
    numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    @property
    def database(self) -> Database:
        return self.memories.database

    def words(self) -> str:
        return f"zq{next(self.numbers):05}w"

    def subjects(self) -> list[str]:
        return [self.erased, *self.others]

    def call(self, connection: Connection, function: str, **arguments: Any) -> tuple[Any, float, float]:
        began = time.monotonic()
        try:
            answer = call(connection, function, org_id=self.memories.org, **arguments)
        except psycopg.Error as error:
            self.answers[f"{function} {error.sqlstate}"] += 1
            if error.sqlstate not in MEANT:
                raise
            answer = None
        else:
            self.answers[function] += 1
        return answer, began, time.monotonic()

    def remember(self, connection: Connection, subject: str, lives: float | None = None) -> Written | None:
        words = self.words()
        expires = {} if lives is None else {"expires_at": datetime.now(UTC) + timedelta(seconds=lives)}
        answer, began, ended = self.call(
            connection,
            "remember",
            text=f"Remembers {words}",
            subject_type="candidate",
            subject_id=subject,
            idempotency_key=str(uuid4()),
            **expires,
        )
        if answer is None:
            return None
        written = Written(words, subject, began, ended, str(answer["memory_id"]), bool(expires))
        self.texts.append(written)
        return written

    def correct(self, connection: Connection, memory_id: str, subject: str) -> None:
        words = self.words()
        answer, began, ended = self.call(
            connection, "correct_memory", memory_id=memory_id, text=f"Corrected {words}", note=f"Not {words}"
        )
        if answer is not None:
            self.texts.append(Written(words, subject, began, ended, memory_id))

    def recall(self, connection: Connection, subject: str) -> None:
        words = self.words()
        answer, began, ended = self.call(
            connection,
            "recall_memories",
            query=f"remembers {words}",
            subject_type="candidate",
            subject_id=subject,
            include_unreviewed=True,
            match_count=20,
        )
        assert {hit["subject_id"] for hit in answer["hits"]} <= {subject}
        if answer["recorded"]:
            self.questions.append(Written(words, subject, began, ended, answer["recall_id"]))
        else:
            self.answers["recall_memories not recorded"] += 1

    def recall_everything(self, connection: Connection) -> None:
        """Of everybody: its question is the erased one's too when it returned something of theirs."""
        self.call(
            connection,
            "recall_memories",
            query="remembers corrected",
            include_unreviewed=True,
            match_count=50,
        )


def work(company: Company, connection: Connection, place: int, *, service: bool) -> None:
    """One writer: some rounds beside the erasure, and one after it."""
    chance = random.Random(place)
    own: list[Written] = []
    for _ in range(ROUNDS):
        subject = chance.choice(company.subjects())
        match chance.randrange(8):
            case 0 | 1:
                if made := company.remember(connection, subject):
                    own.append(made)
            case 2:
                company.remember(connection, subject, lives=chance.uniform(0.05, 0.5))
            case 3 if own:
                before = chance.choice(own)
                company.correct(connection, before.id, before.subject)
            case 4 if service:  # several at once correct the same memory
                memory_id, subject = chance.choice(company.shared)
                company.correct(connection, memory_id, subject)
            case 5:
                company.recall_everything(connection)
            case _:
                company.recall(connection, subject)
    assert company.done.wait(60)
    company.remember(connection, company.erased)
    company.recall(connection, company.erased)


def erase(company: Company, connection: Connection) -> None:
    """Once a third of the work is done."""
    try:
        while sum(company.answers.values()) < WRITERS * ROUNDS // 3:
            time.sleep(0.01)
        company.began = time.monotonic()
        answer, _, company.committed = company.call(
            connection, "erase_subject", subject_type="candidate", subject_id=company.erased
        )
        assert answer["counts"]["memories"] > 0
        assert answer["counts"]["recalls"] > 0
    finally:
        company.done.set()


def sweep(company: Company, connection: Connection, over: threading.Event) -> int:
    """Until everybody is done: memories that were given little time, and what was asked a month ago."""
    swept = 0
    month_ago = datetime.now(UTC) - timedelta(days=30)
    while not over.is_set():
        answer = call(connection, "expire_memories", limit=5, usage_before=month_ago)
        swept += answer["expired"] + answer["recalls_deleted"]
    return swept


OLD_RECALLS = """
with old as (
  insert into long_term_memory.recalls (org_id, query, at)
  select %(org)s, 'long ago', now() - interval '40 days' from generate_series(1, 300) returning id),
items as (
  insert into long_term_memory.recall_items
  select old.id, %(org)s, m, 1, 0.5, 'none' from old cross join unnest(%(shared)s::uuid[]) as m)
insert into long_term_memory.recall_subjects select old.id, %(org)s, 'candidate', %(erased)s from old
"""


@pytest.fixture
def company(full_project: HostMaker) -> Company:
    made = Company(Memories(full_project()))
    for subject in made.subjects():
        for _ in range(5):
            written = made.remember(made.database.service, subject)
            assert written is not None
            made.shared.append((written.id, subject))
    made.database.service.execute(
        OLD_RECALLS,
        {
            "org": made.memories.org,
            "erased": made.erased,
            "shared": [memory_id for memory_id, _ in made.shared],
        },
    )
    return made


def run(company: Company) -> int:
    """Everybody at once; answers what the sweeps took."""
    memories, over = company.memories, threading.Event()
    writers: list[tuple[Connection, bool]] = []
    for place in range(WRITERS):
        if place % 2:
            writers.append((memories.database.connect("service_role"), True))
        else:
            writers.append((memories.connect_as(memories.new_member()), False))
    eraser = memories.connect_as(memories.new_member("owner"))
    sweeper = memories.database.connect("service_role")
    left = itertools.count(1)

    def write(place: int, connection: Connection, service: bool) -> None:
        try:
            work(company, connection, place, service=service)
        finally:
            if next(left) == WRITERS:
                over.set()

    results = at_once(
        [
            *(partial(write, place, *writer) for place, writer in enumerate(writers)),
            partial(erase, company, eraser),
            partial(sweep, company, sweeper, over),
        ],
        seconds=60,
    )
    return int(results[-1])


def found(database: Database) -> set[str]:
    """Every marked word that is anywhere in the two stores."""
    everything = "\n".join(itertools.chain(*contents(database).values()))
    return set(re.findall(r"zq\d{5}w", everything))


def test_writers_beside_a_sweep_and_an_erasure(company: Company, record_property: Any) -> None:
    started = time.monotonic()
    swept = run(company)
    record_property("seconds", round(time.monotonic() - started, 1))
    record_property("calls", dict(company.answers))
    company.database.wait_until(
        "select not exists (select from long_term_memory.agent_memories where redacted_at is null and expires_at > now())"
    )
    call(company.database.service, "expire_memories", limit=10_000)

    assert deadlocks(company.database) == 0
    assert company.answers["recall_memories not recorded"] == 0
    assert swept > 300  # the old recalls, and some of the short-lived

    # nothing of before the erasure is left, everything of after it is there
    left = found(company.database)
    about = [w for w in (*company.texts, *company.questions) if w.subject == company.erased]
    gone = {w.words for w in about if w.ended < company.began}
    after = {w.words for w in company.texts if w in about and w.began > company.committed and not w.expires}
    assert len(gone) > 20
    assert len(after) >= WRITERS
    assert gone & left == set()
    assert after - left == set()
    assert residue.places(company.database, sorted(gone)[:10]) == set()

    # everybody else's memories are whole: the last words of each are what it says, the former ones are in its history
    rows = {
        row["id"]: row
        for (row,) in company.database.rows(
            "select to_jsonb(m) from long_term_memory.agent_memories m where org_id = %s",
            (company.memories.org,),
        )
    }
    history = Counter(
        str(memory_id)
        for (memory_id,) in company.database.rows(
            "select memory_id from long_term_memory.memory_events where action in ('remembered', 'corrected')"
        )
    )
    shared = {memory_id for memory_id, _ in company.shared}
    written: dict[str, list[Written]] = {}
    for one in company.texts:
        written.setdefault(one.id, []).append(one)
    for memory_id, calls in written.items():
        if calls[0].subject == company.erased:
            assert memory_id not in rows or not calls[0].expires or rows[memory_id]["redacted_at"] is not None
        elif calls[0].expires:
            assert memory_id not in rows
        else:
            last = calls if memory_id in shared else calls[-1:]
            assert any(one.words in rows[memory_id]["text"] for one in last)
            assert {one.words for one in calls} <= left
            assert history[memory_id] == len(calls)
    # a question is written down, without its words where something that it found went while it was answered
    asked = [w for w in company.questions if w.subject != company.erased or w.began > company.committed]
    recorded = {
        str(recall_id) for (recall_id,) in company.database.rows("select id from long_term_memory.recalls")
    }
    assert {w.id for w in asked} <= recorded
    assert len([w for w in asked if w.words not in left]) < len(asked) / 10
    assert [rule for row in rows.values() for rule in broken(row)] == []
    erased = [
        row for row in rows.values() if row["subject_id"] == company.erased and row["redacted_at"] is not None
    ]
    assert len(erased) >= 5
    assert all(row["redacted_at"] is None for row in rows.values() if row["subject_id"] != company.erased)


@pytest.mark.parametrize("what", ["items of a memory", "items of a recall"])
def test_who_waits_for_a_sweep_that_waits_for_them_goes_on(memories: Memories, what: str) -> None:
    """Both go by cascades and statements in orders of their own, an organization's deletion for one: the sweep steps back."""
    database = memories.database
    memory_id = memories.insert()
    database.service.execute(
        "with r as (insert into long_term_memory.recalls (org_id, at) values (%(org)s, now() - interval '1 day') returning id)"
        " insert into long_term_memory.recall_items select r.id, %(org)s, %(memory)s, 1, 0.5, 'none' from r",
        {"org": memories.org, "memory": memory_id},
    )
    table = "recalls"
    before: datetime | None = datetime.now(UTC) - timedelta(hours=1)
    if what == "items of a memory":
        memories.expire(memory_id)
        table, before = "agent_memories", None
    other, sweeper = database.connect("service_role", autocommit=False), database.connect("service_role")
    other.execute("select from long_term_memory.recall_items for update")
    with in_background(lambda: call(sweeper, "expire_memories", usage_before=before)) as answers:
        wait_until_blocked(database, sweeper)
        other.execute(f"select from long_term_memory.{table} for update")  # and now each waits for the other
        other.commit()
    assert answers == [{"expired": 0, "recalls_deleted": 0, "more": False}]
    assert deadlocks(database) == 0
    assert database.rows(f"select count(*) from long_term_memory.{table}") == [(1,)]
