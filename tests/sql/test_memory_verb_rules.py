"""The rules hold through the verbs too: what remember refuses, and what verbs and plain statements make of memories together."""

from __future__ import annotations

import itertools
import re
from typing import Any

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.rig import residue
from tests.rig.contents import contents
from tests.sql.memory_oracle import Memory, broken, remember_refusals
from tests.sql.memory_rpc import Caller, Memories
from tests.sql.random_memories import ARGUMENTS, STEPS


class Desk:
    """An organization that allows asserted acts, and its callers: the service, a member, an admin."""

    def __init__(self, memories: Memories) -> None:
        self.memories = memories
        self.org = memories.new_org(allow_asserted=True)
        self.users: dict[str, str | None] = {
            "service": None,
            "member": memories.new_member("member", self.org),
            "other": memories.new_member("member", self.org),
            "admin": memories.new_member("admin", self.org),
        }
        self.callers = {name: self._caller(name) for name in self.users}

    def _caller(self, name: str) -> Caller:
        user = self.users[name]
        return self.memories.as_service(self.org) if user is None else self.memories.as_user(user, self.org)

    def new_org(self) -> None:
        """Another organization for the same people, empty."""
        self.org = self.memories.new_org(allow_asserted=True)
        for name, user in self.users.items():
            self.callers[name].org = self.org
            if user is not None:
                self.memories.new_member("admin" if name == "admin" else "member", self.org, user)

    def ask(self, caller: str, function: str, **arguments: Any) -> tuple[str | None, Any]:
        """The SQLSTATE that refused it, or None and the answer."""
        try:
            return None, self.callers[caller](function, **arguments)
        except psycopg.Error as error:
            return error.sqlstate, None


@pytest.fixture(scope="module")
def desk(shared_memories: Memories) -> Desk:
    return Desk(shared_memories)


@settings(max_examples=300, deadline=None)
@given(arguments=ARGUMENTS, caller=st.sampled_from(["service", "member"]))
def test_remember_refuses_with_its_own_code_or_answers_what_stands(
    desk: Desk, arguments: dict[str, Any], caller: str
) -> None:
    member = str(desk.users["other"])
    arguments = {name: member if value == "member" else value for name, value in arguments.items()}
    code, memory = desk.ask(caller, "remember", **arguments)
    wrong = remember_refusals(arguments, caller, members=(member,))
    assert code in wrong if wrong else code is None
    if code is None:
        row = desk.memories.row(memory["memory_id"])
        assert broken(row) == []
        assert row["text"] == memory["text"] == arguments["text"]
        assert (row["author"], row["asserted_by"]) == (
            arguments.get("author", "model"),
            arguments.get("asserted_by"),
        )
        assert row["written_by"] == desk.users[caller]
        assert memory["grade"] == (
            "verified" if caller == "member" else "asserted" if row["asserted_by"] else None
        )
        assert not row["can_use_as_instruction"]
        assert row["review_outcome"] is None


class Story:
    """What the verbs do, beside what the rules say that they do."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.known: dict[str, Memory] = {}

    def step(self, verb: str, caller: str, place: int, outcome: str, instruction: bool) -> None:
        if verb == "remember" or not self.known:
            self.remember(caller, place)
            return
        memory_id = list(self.known)[place % len(self.known)]
        memory = self.known[memory_id]
        match verb:
            case "correct":
                self.correct(caller, memory_id, memory)
            case "review":
                self.review(caller, memory_id, memory, outcome, instruction=instruction)
            case "forget":
                code, _ = self.desk.ask(caller, "forget_memory", memory_id=memory_id, note=memory.words)
                assert code == memory.refuses_forgetting(caller, self.desk.users[caller])
                memory.erased |= code is None
            case "sweep":
                self.sweep()
            case _:
                self.by_hand(verb, memory_id, memory)

    def remember(self, caller: str, place: int) -> None:
        author = "person" if caller != "service" and place % 2 else "model"
        words = new_words()
        code, answer = self.desk.ask(caller, "remember", text=f"It says {words}", author=author)
        assert code is None
        self.known[answer["memory_id"]] = Memory(
            words, author, self.desk.users[caller], self.desk.users[caller]
        )

    def correct(self, caller: str, memory_id: str, memory: Memory) -> None:
        words = new_words()
        code, _ = self.desk.ask(
            caller, "correct_memory", memory_id=memory_id, text=f"It says {words}", note=f"not {memory.words}"
        )
        assert code == memory.refuses(caller, self.desk.users[caller])
        if code is None:
            memory.correct(words, caller, self.desk.users[caller])

    def review(self, caller: str, memory_id: str, memory: Memory, outcome: str, *, instruction: bool) -> None:
        reviewer = {"reviewer": self.desk.users["admin"]} if caller == "service" else {}
        code, _ = self.desk.ask(
            caller, "review_memory", memory_id=memory_id, outcome=outcome, can_use_as_instruction=instruction,
            note=memory.words, **reviewer,
        )  # fmt: skip
        assert code == memory.refuses_review(caller, outcome, instruction=instruction)
        if code is None:
            memory.review(outcome, caller, instruction=instruction)

    def sweep(self) -> None:
        self.desk.memories.database.service.execute("select public.expire_memories()")
        for memory in self.known.values():
            memory.swept |= memory.expired and not memory.erased

    def by_hand(self, verb: str, memory_id: str, memory: Memory) -> None:
        """Plain statements of the service role."""
        statement = {
            "delete": "delete from long_term_memory.agent_memories where id = %s",
            "redact": "update long_term_memory.agent_memories set redacted_at = now() where id = %s",
            "revive": "update long_term_memory.agent_memories set redacted_at = null, text = 'It lives' where id = %s"
            " and redacted_at is not null",
        }.get(verb)
        if statement is not None:
            self.desk.memories.database.service.execute(statement, (memory_id,))
            memory.erased |= verb != "revive" and not memory.swept
        elif not memory.swept:
            self.desk.memories.expire(memory_id)
            memory.expired = True

    def check(self) -> None:
        """What stands, and what is recalled, is what the rules say."""
        for unreviewed in (False, True):
            hits = self.desk.callers["other"].recall(include_unreviewed=unreviewed, match_count=100)["hits"]
            assert {hit["memory_id"]: (hit["text"], hit["can_use_as_instruction"]) for hit in hits} == {
                memory_id: (f"It says {memory.words}", memory.instruction)
                for memory_id, memory in self.known.items()
                if memory.is_recalled(unreviewed=unreviewed)
            }
        rows = {row["id"]: row for (row,) in self._rows()}
        assert set(rows) == {memory_id for memory_id, memory in self.known.items() if not memory.swept}
        for memory_id, row in rows.items():
            memory = self.known[memory_id]
            assert broken(row) == []
            assert (row["redacted_at"] is not None) == memory.erased
            assert row["written_by"] == memory.written_by
            assert (row["author"], row["review_grade"]) == (memory.author, memory.grade)
            assert row["can_use_as_instruction"] == (memory.instruction and not memory.erased)

    def _rows(self) -> list[tuple[Any, ...]]:
        return self.desk.memories.database.rows(
            "select to_jsonb(m) from long_term_memory.agent_memories m where org_id = %s", (self.desk.org,)
        )


_numbers = itertools.count(1)


def new_words() -> str:
    return f"zq{next(_numbers):06}w"


def test_the_verbs_and_plain_statements_mixed_keep_the_rules_and_no_word_of_a_tombstone(desk: Desk) -> None:
    stories: list[Story] = []

    @settings(max_examples=150, deadline=None)
    @given(steps=STEPS)
    def tell(steps: list[tuple[str, str, int, str, bool]]) -> None:
        desk.new_org()
        story = Story(desk)
        stories.append(story)
        for step in steps:
            story.step(*step)
        story.check()

    tell()
    memories = [memory for story in stories for memory in story.known.values()]
    gone = {words for m in memories if m.is_gone for words in (m.words, *m.past)}
    # a later story's sweep took what had expired in the ones before it
    kept = {words for m in memories if not (m.is_gone or m.expired) for words in (m.words, *m.past)}
    everything = "\n".join(itertools.chain(*contents(desk.memories.database, "long_term_memory").values()))
    left = set(re.findall(r"zq\d{6}w", everything))
    assert min(len(gone), len(kept)) > 30
    assert left & gone == set()
    assert kept - left == set()
    assert residue.places(desk.memories.database, sorted(gone)[:5]) == set()
