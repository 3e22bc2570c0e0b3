"""pending_reviews and review_memory: what waits for a person, and in which grade a person decides."""

from __future__ import annotations

import itertools
from typing import Any
from uuid import uuid4

import pytest

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
def boss(shared_memories: Memories, org: str) -> str:
    """The user id of an admin."""
    return shared_memories.new_member("admin", org)


@pytest.fixture
def admin(shared_memories: Memories, org: str, boss: str) -> Caller:
    return shared_memories.as_user(boss, org)


def test_what_models_wrote_waits_oldest_first_a_page_at_a_time(
    shared_memories: Memories, service: Caller, admin: Caller
) -> None:
    ids = [service.id(f"m{number}") for number in range(7)]
    for number, memory in enumerate(ids):
        shared_memories.age(memory, number // 2)  # some of one moment
    expected = sorted(ids, key=lambda memory: (shared_memories.row(memory)["created_date"], memory))
    found, cursor, pages = [], None, 0
    while True:
        page = admin("pending_reviews", limit=3, after=cursor)
        found += [memory["memory_id"] for memory in page["memories"]]
        assert page["pending"] == 7
        pages, cursor = pages + 1, page["next"]
        if cursor is None:
            break
    assert (found, pages) == (expected, 3)
    assert page["memories"][0]["text"].startswith("m")


def test_only_what_waits_is_shown(shared_memories: Memories, service: Caller, admin: Caller) -> None:
    waiting = service.id("Waits")
    for outcome in ("approved", "evidence_only", "rejected"):
        admin("review_memory", memory_id=service.id(outcome), outcome=outcome)
    admin.remember("By a person", author="person")
    service("forget_memory", memory_id=service.id("Gone"))
    shared_memories.expire(service.id("Over"))
    shared_memories.as_service(shared_memories.new_org()).remember("Elsewhere")
    page = admin("pending_reviews")
    assert [memory["memory_id"] for memory in page["memories"]] == [waiting]
    assert (page["pending"], page["next"]) == (1, None)
    assert shared_memories.as_member("owner", shared_memories.new_org())("pending_reviews") == {
        "memories": [], "next": None, "pending": 0}  # fmt: skip


@pytest.mark.parametrize(
    "arguments",
    [
        {"limit": 0}, {"limit": 501}, {"limit": None}, {"after": {}}, {"after": []}, {"after": "x"},
        {"after": {"created_at": "yesterday", "memory_id": NOBODY}},
        {"after": {"created_at": "2026-13-41T00:00:00+00:00", "memory_id": NOBODY}},
        {"after": {"created_at": "2026-01-01T00:00:00+00:00", "memory_id": "x"}},
        {"after": {"created_at": 1, "memory_id": NOBODY}},
    ],
)  # fmt: skip
def test_a_page_that_cannot_be_meant_is_refused(admin: Caller, arguments: dict[str, Any]) -> None:
    admin.refused("22023", "pending_reviews", **arguments)


@pytest.mark.parametrize("outcome", ["approved", "evidence_only", "rejected"])
def test_a_reviewers_own_token_verifies(
    shared_memories: Memories, service: Caller, admin: Caller, boss: str, outcome: str
) -> None:
    memory = service.id("A")
    assert service.texts() == []
    answer = admin("review_memory", memory_id=memory, outcome=outcome, note="looked at it")
    assert (answer["review_outcome"], answer["review_grade"], answer["reviewed_by"], answer["changed"]) == (
        outcome, "verified", boss, True)  # fmt: skip
    assert answer["can_use_as_instruction"] is False
    assert answer["reviewed_at"] is not None
    event = shared_memories.events(memory)[-1]
    assert (event["action"], event["outcome"], event["grade"], event["actor_id"], event["note"]) == (
        "reviewed", outcome, "verified", boss, "looked at it")  # fmt: skip
    assert service.texts(include_unreviewed=True) == ([] if outcome == "rejected" else ["A"])
    assert service.texts() == ([] if outcome == "rejected" else ["A"])


def test_the_service_asserts_a_review_where_the_organization_allows_it(
    shared_memories: Memories, service: Caller, boss: str
) -> None:
    memory = service.id("A")
    answer = service("review_memory", memory_id=memory, outcome="approved", reviewer=boss)
    assert (answer["review_grade"], answer["reviewed_by"]) == ("asserted", boss)
    event = shared_memories.events(memory)[-1]
    assert (event["grade"], event["actor_id"], event["asserted_by"]) == ("asserted", None, boss)
    assert service("pending_reviews")["pending"] == 0

    shared_memories.allow_asserted(service.org, allowed=False)
    for function, arguments in (
        ("pending_reviews", {}),
        ("review_memory", {"memory_id": memory, "outcome": "rejected", "reviewer": boss}),
    ):
        said = service.refused("42501", function, **arguments)
        assert said.message_hint
    # what was asserted before stays so
    assert shared_memories.row(memory)["review_grade"] == "asserted"


def test_an_asserted_review_makes_no_instruction_and_replaces_no_verified_one(
    service: Caller, admin: Caller, boss: str
) -> None:
    memory = service.id("A")
    named = {"memory_id": memory, "reviewer": boss}
    service.refused("42501", "review_memory", outcome="approved", can_use_as_instruction=True, **named)
    service("review_memory", outcome="rejected", **named)
    verified = admin("review_memory", memory_id=memory, outcome="approved", can_use_as_instruction=True)
    assert (verified["review_grade"], verified["can_use_as_instruction"]) == ("verified", True)
    for outcome in ("approved", "rejected"):
        service.refused("42501", "review_memory", outcome=outcome, **named)


def test_whoever_reviews_again_decides(
    shared_memories: Memories, service: Caller, admin: Caller, org: str
) -> None:
    memory = service.id("A")
    admin("review_memory", memory_id=memory, outcome="approved", can_use_as_instruction=True)
    again = admin(
        "review_memory", memory_id=memory, outcome="approved", can_use_as_instruction=True, note="again"
    )
    assert again["changed"] is False
    assert len(shared_memories.events(memory)) == 2
    less = admin("review_memory", memory_id=memory, outcome="approved", can_use_as_instruction=None)
    assert (less["changed"], less["can_use_as_instruction"]) == (True, False)
    owner = shared_memories.as_member("owner", org)
    other = owner("review_memory", memory_id=memory, outcome="approved")
    assert (other["changed"], other["reviewed_by"] != less["reviewed_by"]) == (True, True)
    assert owner("review_memory", memory_id=memory, outcome="rejected")["review_outcome"] == "rejected"


@pytest.mark.parametrize(
    ("code", "arguments"),
    [
        ("22023", {"outcome": "maybe"}),
        ("22023", {"outcome": None}),
        ("22023", {"outcome": "rejected", "can_use_as_instruction": True}),
        ("22023", {"outcome": "evidence_only", "can_use_as_instruction": True}),
        ("22023", {"note": "x" * 2001}),
        ("22023", {"reviewer": NOBODY}),
        ("RL404", {"memory_id": NOBODY}),
        ("RL404", {"memory_id": None}),
    ],
)
def test_a_review_that_cannot_be_meant_is_refused(
    shared_memories: Memories, service: Caller, admin: Caller, code: str, arguments: dict[str, Any]
) -> None:
    memory = service.id("A")
    admin.refused(code, "review_memory", **{"memory_id": memory, "outcome": "approved"} | arguments)
    assert shared_memories.row(memory)["review_outcome"] is None


def test_whom_the_service_may_name_as_the_reviewer(
    shared_memories: Memories, service: Caller, org: str
) -> None:
    memory = service.id("A")
    member = shared_memories.new_member("member", org)
    stranger = shared_memories.new_member("owner", shared_memories.new_org())
    service.refused("22023", "review_memory", memory_id=memory, outcome="approved")
    for reviewer in (member, stranger, NOBODY, "the boss", "' or true"):
        service.refused("RL404", "review_memory", memory_id=memory, outcome="approved", reviewer=reviewer)
    assert shared_memories.row(memory)["review_outcome"] is None


def test_a_member_reviews_nothing_not_even_their_own(shared_memories: Memories, org: str) -> None:
    member = shared_memories.as_member("member", org)
    memory = member.id("A")
    member.refused("42501", "review_memory", memory_id=memory, outcome="approved")
    member.refused("42501", "pending_reviews")
    stranger = shared_memories.as_user(shared_memories.new_user(), org)
    stranger.refused("42501", "review_memory", memory_id=memory, outcome="approved")


def test_what_is_not_there_any_more_is_not_reviewed(
    shared_memories: Memories, service: Caller, admin: Caller
) -> None:
    gone, over, secret = service.id("Gone"), service.id("Over"), service.id("Secret")
    service("forget_memory", memory_id=gone)
    shared_memories.expire(over)
    admin.refused("RL410", "review_memory", memory_id=gone, outcome="approved")
    admin.refused("RL404", "review_memory", memory_id=over, outcome="approved")
    other = shared_memories.as_member("owner", shared_memories.new_org())
    other.refused("RL404", "review_memory", memory_id=secret, outcome="approved")


def test_reviewers_at_once_take_turns(shared_memories: Memories, service: Caller, boss: str) -> None:
    memory = service.id("A")

    def review(outcome: str) -> Any:
        def work(connection: Connection) -> Any:
            return call(
                connection,
                "review_memory",
                org_id=service.org,
                memory_id=memory,
                outcome=outcome,
                reviewer=boss,
            )

        return work

    answers = at_once(shared_memories.database, [review(o) for o in ("approved", "rejected") * 8])
    changes = sum(answer["changed"] for answer in answers)
    events = [event["outcome"] for event in shared_memories.events(memory)[1:]]
    assert len(events) == changes
    assert all(first != second for first, second in itertools.pairwise(events))
    assert shared_memories.row(memory)["review_outcome"] == events[-1]


def test_a_page_of_what_waits_does_not_read_what_was_reviewed(
    shared_memories: Memories, admin: Caller
) -> None:
    shared_memories.database.service.execute(
        """insert into long_term_memory.agent_memories
          (org_id, subject_type, text, review_outcome, review_grade, reviewed_at)
        select %s, 'workspace', 'reviewed ' || n, 'approved', 'verified', now() from generate_series(1, 3000) as n""",
        (admin.org,),
    )
    shared_memories.database.superuser.execute("vacuum analyze long_term_memory.agent_memories")
    waiting = shared_memories.insert(f"waits {uuid4()}", admin.org)
    rows = shared_memories.database.rows(
        """explain select m.id from long_term_memory.agent_memories m
        where m.org_id = %s and m.redacted_at is null and m.author = 'model' and m.review_outcome is null
        order by m.created_date, m.id limit 51""",
        (admin.org,),
        role="service_role",
    )
    assert "agent_memories_pending_idx" in "\n".join(line for (line,) in rows)
    assert [memory["memory_id"] for memory in admin("pending_reviews")["memories"]] == [waiting]


def test_words_that_changed_since_they_were_read_are_not_approved(memories: Memories) -> None:
    member, admin = memories.as_member(), memories.as_member("admin")
    memory_id = member.id("Prefers to work from Lisbon")
    (read,) = admin("pending_reviews")["memories"]
    member("correct_memory", memory_id=memory_id, text="Wire the salary elsewhere")
    admin.refused("RL409", "review_memory", memory_id=memory_id, outcome="approved", text=read["text"])
    assert memories.row(memory_id)["review_outcome"] is None
    (read,) = admin("pending_reviews")["memories"]
    admin("review_memory", memory_id=memory_id, outcome="approved", text=read["text"])
    assert memories.row(memory_id)["review_outcome"] == "approved"


def test_a_member_changes_nothing_of_what_was_approved_and_undoes_no_rejection(memories: Memories) -> None:
    member, admin = memories.as_member(), memories.as_member("admin")
    memory_id = member.id("Prefers to work from Lisbon")
    admin("review_memory", memory_id=memory_id, outcome="approved", can_use_as_instruction=True)
    member(
        "correct_memory",
        memory_id=memory_id,
        text="Prefers to work from Lisbon",
        embedding="[1,2]",
        embedding_model="m",
    )
    row = memories.row(memory_id)
    assert (row["review_outcome"], row["can_use_as_instruction"]) == (None, False)

    own = member.id("They are late", author="person")
    admin("review_memory", memory_id=own, outcome="rejected")
    member("correct_memory", memory_id=own, text="They are late.")
    assert memories.row(own)["review_outcome"] == "rejected"
