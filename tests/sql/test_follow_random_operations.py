"""Random operations on a small workspace beside a model of what the ledger has to hold after each transaction."""

from __future__ import annotations

import json
import random
import uuid
from copy import deepcopy
from dataclasses import dataclass, field

import pytest

from tests.rig.databases import Connection, Database
from tests.sql.write_path import assert_consistent, change, remember

WORKSPACES, TASKS = ("acme", "other"), ("billing", "search", None)
WORDS = ("invoice", "cache", "queue", "token", "tenant", "cursor")
UNUSABLE = (-1, 2.5, "abc", None, {"at": 1}, 10**12, True)
Stream = tuple[str, str | None]


@dataclass
class Decision:
    stream: Stream
    words: str
    step: int | None = None
    is_given: bool = False
    is_enrolled: bool = True
    is_aside: bool = False
    memory_type: str = "decision"


@dataclass
class Model:
    """Settled decisions, and the marks of the open transaction in the order of its writes."""

    decisions: dict[uuid.UUID, Decision] = field(default_factory=dict)
    marks: list[uuid.UUID] = field(default_factory=list)

    def newest(self, stream: Stream) -> int:
        marked = set(self.marks)
        settled = [
            d.step
            for m, d in self.decisions.items()
            if d.stream == stream and d.is_enrolled and m not in marked
        ]
        return max(settled, default=-1)

    def enrol(self, memory: uuid.UUID, decision: Decision, given: int | None) -> None:
        decision.step, decision.is_given, decision.is_enrolled = given, given is not None, True
        self.decisions[memory] = decision
        self.marks.append(memory)

    def move(self, memory: uuid.UUID, stream: Stream) -> None:
        decision = self.decisions[memory]
        if decision.stream != stream:
            decision.stream, decision.step, decision.is_given = stream, None, False
            self.marks = [*(m for m in self.marks if m != memory), memory]

    def settle(self) -> None:
        for stream in {self.decisions[m].stream for m in self.marks if m in self.decisions}:
            newest = self.newest(stream)
            for memory in self.marks:
                decision = self.decisions.get(memory)
                if decision is not None and decision.stream == stream:
                    decision.step = decision.step if decision.is_given else newest + 1
                    newest = max(newest, decision.step)
        self.marks = []


class Run:
    """One sequence of operations, from a seed, against a database."""

    def __init__(self, database: Database, seed: int) -> None:
        self.database = database
        self.chance = random.Random(seed)
        self.connection: Connection = database.connect("service_role", autocommit=False)
        self.model = Model()
        self.pasts: list[Model] = []
        self.log: list[str] = []

    def pick(self) -> uuid.UUID | None:
        return self.chance.choice(sorted(self.model.decisions)) if self.model.decisions else None

    def words(self) -> str:
        return " ".join(self.chance.sample(WORDS, 2))

    def insert(self) -> None:
        stream = (self.chance.choice(WORKSPACES), self.chance.choice(TASKS))
        kind, metadata, given = self.chance.choice(("given", "assigned", "assigned", "invalid")), {}, None
        if kind == "given":
            given = self.chance.choice((0, 3, 7, 20))
            metadata = {"step_index": given}
        elif kind == "invalid":
            metadata = {"step_index": self.chance.choice(UNUSABLE)}
        words = self.words()
        memory = remember(
            self.connection, words, workspace_id=stream[0], task_id=stream[1], metadata=json.dumps(metadata)
        )
        self.model.enrol(memory, Decision(stream, words), given)

    def edit(self) -> None:
        if memory := self.pick():
            words = self.words()
            change(self.connection, memory, content=words)
            self.model.decisions[memory].words = words

    def move(self) -> None:
        if memory := self.pick():
            stream = (self.chance.choice(WORKSPACES), self.chance.choice(TASKS))
            change(self.connection, memory, workspace_id=stream[0], task_id=stream[1])
            decision = self.model.decisions[memory]
            if decision.memory_type == "decision":
                self.model.move(memory, stream)

    def retype(self) -> None:
        if memory := self.pick():
            decision = self.model.decisions[memory]
            kind = "lesson" if decision.memory_type == "decision" else "decision"
            change(self.connection, memory, memory_type=kind)
            decision.memory_type, decision.is_aside = kind, kind != "decision"
            if kind == "decision":
                ((workspace, task),) = self.connection.execute(
                    "select workspace_id, task_id from agent_memories where id = %s", (memory,)
                ).fetchall()
                self.model.move(memory, (workspace, task))

    def delete(self) -> None:
        if memory := self.pick():
            self.connection.execute("delete from agent_memories where id = %s", (memory,))
            del self.model.decisions[memory]

    def savepoint(self) -> None:
        self.connection.execute(f"savepoint s{len(self.pasts)}")
        self.pasts.append(deepcopy(self.model))

    def roll_back(self) -> None:
        if self.pasts:
            self.model = self.pasts.pop()
            self.connection.execute(f"rollback to savepoint s{len(self.pasts)}")
            self.connection.execute(f"release savepoint s{len(self.pasts)}")

    def commit(self) -> None:
        self.connection.commit()
        self.pasts = []
        self.model.settle()
        self.check()

    def check(self) -> None:
        held = {
            memory: (workspace, task, step, aside, lexemes)
            for memory, workspace, task, step, aside, lexemes in self.database.rows(
                "select memory_id, workspace_id, task_id, step_index, set_aside_at is not null,"
                " tsvector_to_array(search_lexemes) from agent_decision_ledger"
            )
        }
        stem = dict(
            self.database.rows(
                "select w, (ts_lexize('english_stem', w))[1] from unnest(%s::text[]) w", (list(WORDS),)
            )
        )
        assert held.keys() == self.model.decisions.keys(), self.log
        for memory, decision in self.model.decisions.items():
            workspace, task, step, aside, lexemes = held[memory]
            assert (workspace, task, step, aside) == (*decision.stream, decision.step, decision.is_aside), (
                self.log
            )
            if not aside:  # a row set aside is followed when it returns
                assert sorted(lexemes) == sorted(stem[word] for word in decision.words.split()), self.log
        assert_consistent(self.database)

    def go(self, operations: int) -> None:
        weighed = [self.insert] * 5 + [
            self.edit,
            self.move,
            self.retype,
            self.delete,
            self.savepoint,
            self.roll_back,
        ]
        for _ in range(operations):
            operation = self.chance.choice([*weighed, self.commit, self.commit])
            self.log.append(operation.__name__)
            operation()
        self.commit()


@pytest.mark.parametrize("seed", range(6))
def test_the_ledger_holds_what_the_model_says_after_every_commit(ledger_db: Database, seed):
    Run(ledger_db, seed).go(120)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 160))
def test_the_ledger_holds_what_the_model_says_after_many_more(ledger_db: Database, seed):
    Run(ledger_db, seed).go(400)
