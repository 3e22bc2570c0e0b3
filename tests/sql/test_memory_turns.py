"""Whoever writes about a person and an erasure of that person take turns, whichever of them came first."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from tests.rig.contents import contents
from tests.rig.databases import Connection
from tests.sql.memory_rpc import Memories
from tests.sql.rpc import call
from tests.sql.write_path import deadlocks, in_background, wait_until_blocked

VERBS: dict[str, tuple[str, dict[str, Any]]] = {
    "remember": ("remember", {"text": "Says zqnew"}),
    "correct": ("correct_memory", {"text": "Says zqnew", "note": "zqnew"}),
    "review": ("review_memory", {"outcome": "approved", "note": "zqnew"}),
    "forget": ("forget_memory", {"note": "zqnew"}),
    "recall of the person": ("recall_memories", {"query": "who says zqnew", "include_unreviewed": True}),
    "recall of everybody": ("recall_memories", {"query": "who says zqnew", "include_unreviewed": True}),
}


@dataclass
class Turn:
    """A candidate with a memory, and one call about them."""

    memories: Memories
    candidate: str
    memory_id: str
    verb: str

    @property
    def about(self) -> dict[str, str]:
        return {"subject_type": "candidate", "subject_id": self.candidate}

    def act(self, connection: Connection) -> Any:
        function, arguments = VERBS[self.verb]
        if function in ("correct_memory", "review_memory", "forget_memory"):
            arguments = arguments | {"memory_id": self.memory_id}
        elif self.verb != "recall of everybody":
            arguments = arguments | self.about
        return call(connection, function, org_id=self.memories.org, **arguments)

    def erase(self, connection: Connection) -> Any:
        return call(connection, "erase_subject", org_id=self.memories.org, **self.about)

    def left(self) -> set[str]:
        everything = "\n".join(
            row for rows in contents(self.memories.database, "long_term_memory").values() for row in rows
        )
        return set(re.findall(r"zq[a-z]+", everything))


@pytest.fixture(params=VERBS)
def turn(request: pytest.FixtureRequest, memories: Memories) -> Turn:
    candidate = str(uuid4())
    memory_id = memories.insert("Says zqold", subject_type="candidate", subject_id=candidate)
    return Turn(memories, candidate, memory_id, request.param)


def people(turn: Turn) -> tuple[Connection, Connection]:
    """Who writes, an admin, and who erases, an owner, each in a transaction that is ended by hand."""
    made = []
    for role in ("admin", "owner"):
        connection = turn.memories.connect_as(turn.memories.new_member(role))
        connection.autocommit = False
        made.append(connection)
    return made[0], made[1]


def test_what_is_written_before_an_erasure_is_waited_for_and_erased(turn: Turn) -> None:
    writer, eraser = people(turn)
    turn.act(writer)
    with in_background(lambda: turn.erase(eraser)) as done:
        wait_until_blocked(turn.memories.database, eraser)
        writer.commit()
    assert not isinstance(done[0], psycopg.Error)
    eraser.commit()
    assert turn.left() == set()
    assert deadlocks(turn.memories.database) == 0


def test_what_is_written_behind_an_erasure_waits_for_it_and_does_not_see_what_went(turn: Turn) -> None:
    writer, eraser = people(turn)
    turn.erase(eraser)
    with in_background(lambda: turn.act(writer)) as done:
        wait_until_blocked(turn.memories.database, writer)
        eraser.commit()
    (answer,) = done
    match turn.verb:
        case "remember":
            assert answer["text"] == "Says zqnew"
        case "correct" | "review":
            assert answer.sqlstate == "RL410"
        case "forget":
            assert answer["already"] is True
        case _:
            assert (answer["hits"], answer["recorded"]) == ([], True)
    writer.rollback() if isinstance(answer, psycopg.Error) else writer.commit()
    # the words of a question that had found something of theirs are not kept
    assert turn.left() <= ({"zqnew"} if turn.verb == "remember" else set())
    assert deadlocks(turn.memories.database) == 0
