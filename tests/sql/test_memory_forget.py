"""forget_memory: one tombstone, and none of its words anywhere."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from tests.rig.contents import contents
from tests.rig.databases import Connection
from tests.sql.memory_rpc import Caller, Memories
from tests.sql.rpc import NOBODY, at_once, call


@pytest.fixture
def org(shared_memories: Memories) -> str:
    return shared_memories.new_org(allow_asserted=True)


@pytest.fixture
def service(shared_memories: Memories, org: str) -> Caller:
    return shared_memories.as_service(org)


@pytest.fixture
def member(shared_memories: Memories, org: str) -> Caller:
    return shared_memories.as_member("member", org)


def held(memories: Memories) -> str:
    return "\n".join(str(rows) for rows in contents(memories.database, "long_term_memory").values())


def test_a_tombstone_is_left_and_no_word_of_it(memories: Memories) -> None:
    service, admin = memories.as_service(), memories.as_member("admin")
    subject = str(uuid4())
    memory = service.id(
        "Has the marzipan illness", subject_type="candidate", subject_id=subject, idempotency_key="k",
        source_run_id="run-1", embedding="[0.123456,0.654321]", embedding_model="marzipanmodel",
    )  # fmt: skip
    admin("correct_memory", memory_id=memory, text="Has the nougat illness", note="not the marzipan one")
    admin("review_memory", memory_id=memory, outcome="evidence_only", note="nougat is right")
    kept = service.id("Likes nougat", author="model", subject_type="candidate", subject_id=subject)

    answer = admin("forget_memory", memory_id=memory, note="asked for by phone")
    row = memories.row(memory)
    assert answer == {"memory_id": memory, "forgotten_at": row["redacted_at"], "already": False}
    assert (row["text"], row["embedding"], row["embedding_model"], row["source_run_id"], row["search_lexemes"]) == (
        "", None, "", None, "")  # fmt: skip
    assert (row["subject_id"], row["review_outcome"]) == (subject, "evidence_only")
    assert [(e["action"], e["note"], e["text_before"]) for e in memories.events(memory)] == [
        ("remembered", None, None), ("corrected", None, None), ("reviewed", None, None),
        ("forgotten", "asked for by phone", None),
    ]  # fmt: skip
    service("forget_memory", memory_id=kept)
    assert not [word for word in ("marzipan", "nougat", "0.123456") if word in held(memories)]


@pytest.mark.parametrize(
    ("note", "kept"),
    [
        ("asked for by phone", True),
        ("the illness is private", False),  # a word of it
        ("not ILLNESSES again", False),  # in another form
        ("it was marzipan", False),  # a word of what it was before
        (None, True),
    ],
)
def test_a_note_that_repeats_its_words_is_not_kept(
    shared_memories: Memories, service: Caller, note: str | None, kept: bool
) -> None:
    memory = service.id("Likes marzipan")
    service("correct_memory", memory_id=memory, text="Has an illness")
    service("forget_memory", memory_id=memory, note=note)
    assert shared_memories.events(memory)[-1]["note"] == (note if kept else None)


def test_a_repeat_says_that_it_is_done(shared_memories: Memories, service: Caller) -> None:
    memory = service.id("Once")
    first = service("forget_memory", memory_id=memory)
    assert service("forget_memory", memory_id=memory, note="again") == first | {"already": True}
    assert [event["action"] for event in shared_memories.events(memory)] == ["remembered", "forgotten"]


def test_a_member_forgets_their_own_and_whoever_may_review_forgets_all(
    shared_memories: Memories, service: Caller, member: Caller, org: str
) -> None:
    colleague = shared_memories.as_member("member", org)
    own = member.id("Own", author="person")
    colleague.refused("42501", "forget_memory", memory_id=own)
    assert member("forget_memory", memory_id=own)["already"] is False
    colleague.refused("42501", "forget_memory", memory_id=own)
    assert member("forget_memory", memory_id=own)["already"] is True
    for caller in (shared_memories.as_member("admin", org), shared_memories.as_member("owner", org), service):
        assert caller("forget_memory", memory_id=member.id("Own", author="person"))["already"] is False


def test_what_has_expired_can_still_be_forgotten(shared_memories: Memories, service: Caller) -> None:
    memory = service.id("Over")
    shared_memories.expire(memory)
    assert service("forget_memory", memory_id=memory)["already"] is False
    assert shared_memories.row(memory)["text"] == ""


def test_what_is_not_there_is_refused(shared_memories: Memories, service: Caller) -> None:
    memory = service.id("Secret")
    other = shared_memories.as_member("owner", shared_memories.new_org())
    there = other.refused("RL404", "forget_memory", memory_id=memory)
    absent = other.refused("RL404", "forget_memory", memory_id=NOBODY)
    assert str(there.message_primary).replace(memory, NOBODY) == absent.message_primary
    service.refused("RL404", "forget_memory", memory_id=None)
    service.refused("22023", "forget_memory", memory_id=memory, note="x" * 2001)
    assert shared_memories.row(memory)["text"] == "Secret"


def test_of_many_at_once_one_forgets(shared_memories: Memories, service: Caller) -> None:
    memory = service.id("Once")

    def forget(connection: Connection) -> Any:
        return call(connection, "forget_memory", org_id=service.org, memory_id=memory)

    answers = at_once(shared_memories.database, [forget] * 8)
    assert sorted(answer["already"] for answer in answers) == [False] + [True] * 7
    assert len({answer["forgotten_at"] for answer in answers}) == 1
