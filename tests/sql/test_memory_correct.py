"""correct_memory: other words in place of a memory's, by whom, and what becomes of vector, review and history."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from tests.rig.databases import Connection
from tests.sql.memory_rpc import Caller, Memories
from tests.sql.rpc import HOSTILE, NOBODY, at_once, call

REVIEW = ("reviewed_at", "reviewed_by", "review_outcome", "review_grade")


@pytest.fixture
def org(shared_memories: Memories) -> str:
    return shared_memories.new_org(allow_asserted=True)


@pytest.fixture
def service(shared_memories: Memories, org: str) -> Caller:
    return shared_memories.as_service(org)


@pytest.fixture
def member(shared_memories: Memories, org: str) -> Caller:
    return shared_memories.as_member("member", org)


@pytest.fixture
def admin(shared_memories: Memories, org: str) -> Caller:
    return shared_memories.as_member("admin", org)


def test_the_words_are_replaced_and_the_former_ones_stay_in_the_history(
    shared_memories: Memories, member: Caller
) -> None:
    before = member.remember("Lives in Leyden", author="person")
    memory = before["memory_id"]
    answer = member("correct_memory", memory_id=memory, text="Lives in Leiden", note="spelling")
    told = {"text": "Lives in Leiden", "updated_at": answer["updated_at"]}
    assert answer == {
        name: before[name] for name in before if name not in ("replayed", "erased_before")
    } | told | {"changed": True}
    assert answer["updated_at"] > before["updated_at"]
    event = shared_memories.events(memory)[-1]
    assert (event["action"], event["text_before"], event["note"], event["actor_id"], event["grade"]) == (
        "corrected", "Lives in Leyden", "spelling", before["written_by"], "verified")  # fmt: skip
    assert member.texts("Leiden") == ["Lives in Leiden"]
    assert member.recall("Leyden")["hits"][0]["relevance"] == 0


def test_a_member_corrects_their_own_and_whoever_may_review_corrects_all(
    shared_memories: Memories, service: Caller, member: Caller, admin: Caller, org: str
) -> None:
    own, models = member.id("Own", author="person"), service.id("A model's")
    colleague = shared_memories.as_member("member", org)
    for memory in (own, models):
        said = colleague.refused("42501", "correct_memory", memory_id=memory, text="Mine now")
        assert said.message_hint
    member.refused("42501", "correct_memory", memory_id=models, text="Mine now")
    for caller in (admin, shared_memories.as_member("owner", org), service):
        for memory in (own, models):
            text = f"Corrected {uuid4()}"
            assert caller("correct_memory", memory_id=memory, text=text)["text"] == text
    # what they remembered stays theirs to change, whose words it has now; what others remembered does not become it
    colleague.refused("42501", "correct_memory", memory_id=own, text="Mine now")
    member.refused("42501", "forget_memory", memory_id=models)
    assert member("correct_memory", memory_id=own, text="Own again")["changed"] is True


@pytest.mark.parametrize("asserted", [False, True])
def test_new_words_are_whose_token_wrote_them(
    shared_memories: Memories, service: Caller, org: str, asserted: bool
) -> None:
    writer, boss = shared_memories.new_member("member", org), shared_memories.new_member("admin", org)
    if asserted:
        memory = service.id("Was said", author="person", asserted_by=writer)
    else:
        memory = shared_memories.as_user(writer, org).id("Was said", author="person")
    admin = shared_memories.as_user(boss, org)
    same = admin("correct_memory", memory_id=memory, text="Was said", expires_at="2999-01-01T00:00:00Z")
    assert writer in (same["written_by"], same["asserted_by"])
    assert shared_memories.events(memory)[-1]["writer_before"] is None

    answer = admin("correct_memory", memory_id=memory, text="Is said")
    assert (answer["author"], answer["written_by"], answer["asserted_by"], answer["grade"]) == (
        "person", boss, None, "verified")  # fmt: skip
    event = shared_memories.events(memory)[-1]
    assert (event["actor_id"], event["writer_before"], event["text_before"]) == (boss, writer, "Was said")


def test_nobodys_name_stands_under_what_the_service_wrote(
    shared_memories: Memories, service: Caller, org: str
) -> None:
    writer = shared_memories.new_member("member", org)
    person = shared_memories.as_user(writer, org)
    memory = person.id("A model's, on a person's token")
    answer = service("correct_memory", memory_id=memory, text="Another's")
    assert (answer["author"], answer["written_by"], answer["grade"]) == ("model", None, None)
    assert shared_memories.events(memory)[-1]["writer_before"] == writer
    # a member who corrects what is theirs to change has the words again
    mine = person("correct_memory", memory_id=memory, text="Mine again")
    assert (mine["author"], mine["written_by"]) == ("model", writer)


@pytest.mark.parametrize("usable", [True, False])
def test_whoever_may_review_and_writes_other_words_stands_for_them(
    shared_memories: Memories, service: Caller, org: str, usable: bool
) -> None:
    first, second = (shared_memories.new_member(role, org) for role in ("admin", "owner"))
    memory = service.id("Reviewed")
    if usable:
        reviewed = shared_memories.as_user(first, org)(
            "review_memory", memory_id=memory, outcome="approved", can_use_as_instruction=True
        )
    else:
        reviewed = service("review_memory", memory_id=memory, outcome="evidence_only", reviewer=first)
    answer = shared_memories.as_user(second, org)("correct_memory", memory_id=memory, text="Other words")
    assert (answer["reviewed_by"], answer["review_grade"], answer["written_by"], answer["author"]) == (
        second, "verified", second, "model")  # fmt: skip
    assert answer["reviewed_at"] > reviewed["reviewed_at"]
    assert (answer["review_outcome"], answer["can_use_as_instruction"]) == (
        reviewed["review_outcome"],
        usable,
    )


def test_what_nobody_has_reviewed_is_not_reviewed_by_a_correction(service: Caller, admin: Caller) -> None:
    answer = admin("correct_memory", memory_id=service.id("A model's"), text="Still a model's")
    assert [answer[field] for field in REVIEW] == [None] * 4
    assert [one["text"] for one in admin("pending_reviews")["memories"]] == ["Still a model's"]


@pytest.mark.parametrize("role", ["member", "admin", "owner", "service"])
def test_new_words_lose_the_review_unless_a_reviewer_wrote_them(
    shared_memories: Memories, org: str, role: str
) -> None:
    writer = shared_memories.new_member("member", org)
    memory = shared_memories.as_user(writer, org).id("Reviewed")
    shared_memories.as_member("admin", org)(
        "review_memory", memory_id=memory, outcome="approved", can_use_as_instruction=True
    )
    caller = {
        "member": shared_memories.as_user(writer, org), "service": shared_memories.as_service(org)
    }.get(role) or shared_memories.as_member(role, org)  # fmt: skip
    keeps = role in ("admin", "owner")
    # until when it holds was approved too
    same = caller("correct_memory", memory_id=memory, text="Reviewed", expires_at="2999-01-01T00:00:00Z")
    assert (same["changed"], same["review_outcome"], same["can_use_as_instruction"]) == (
        True,
        "approved" if keeps else None,
        keeps,
    )
    if not keeps:
        assert shared_memories.events(memory)[-1]["outcome"] == "review_cleared"
        shared_memories.approve(memory)

    answer = caller("correct_memory", memory_id=memory, text="Other words")
    assert answer["can_use_as_instruction"] is keeps
    assert [answer[field] is not None for field in REVIEW] == [keeps] * 4
    assert shared_memories.events(memory)[-1]["outcome"] == (None if keeps else "review_cleared")
    assert shared_memories.as_service(org).texts() == (["Other words"] if keeps else [])


@pytest.mark.parametrize("asserted", [False, True])
def test_on_the_service_key_a_correction_makes_the_words_a_models(
    shared_memories: Memories, org: str, service: Caller, asserted: bool
) -> None:
    user = shared_memories.new_member("member", org)
    person = shared_memories.as_user(user, org)
    if asserted:
        memory = service.id("Said by a person", author="person", asserted_by=user)
    else:
        memory = person.id("Said by a person", author="person")
    same = service(
        "correct_memory", memory_id=memory, text="Said by a person", expires_at="2999-01-01T00:00:00Z"
    )
    assert same["author"] == "person"
    answer = service("correct_memory", memory_id=memory, text="Never said by a person")
    assert (answer["author"], answer["asserted_by"]) == ("model", None)
    assert person.texts() == []
    assert person.texts(include_unreviewed=True) == ["Never said by a person"]
    boss = shared_memories.as_member("admin", org)
    assert [one["memory_id"] for one in boss("pending_reviews")["memories"]] == [memory]
    if not asserted:  # whose it was may still take it back
        assert person("forget_memory", memory_id=memory)["already"] is False


def test_an_unchanged_text_changes_nothing(shared_memories: Memories, service: Caller) -> None:
    request = {"expires_at": "2999-01-01T00:00:00Z", "embedding": "[1,0]", "embedding_model": "small"}
    before = service.remember("Same", **request)
    memory = before["memory_id"]
    for again in ({}, request, {"expires_at": "2999-01-01T01:00:00+01:00"}, {"note": "nothing to say"}):
        answer = service("correct_memory", memory_id=memory, text="Same", **again)
        assert answer["changed"] is False
        assert answer["updated_at"] == before["updated_at"]
    assert len(shared_memories.events(memory)) == 1


def test_other_words_lose_the_vector_unless_they_bring_one(
    shared_memories: Memories, service: Caller
) -> None:
    memory = service.id("Red", embedding="[1,0]", embedding_model="small")
    assert service("correct_memory", memory_id=memory, text="Blue")["embedding_model"] is None
    row = shared_memories.row(memory)
    assert (row["embedding"], row["embedding_dims"], row["embedding_model"]) == (None, None, "")
    # a vector may come after its words
    later = service(
        "correct_memory", memory_id=memory, text="Blue", embedding="[0,1]", embedding_model="small"
    )
    assert (later["changed"], later["embedding_model"]) == (True, "small")
    with_words = service(
        "correct_memory", memory_id=memory, text="Green", embedding="[1,1]", embedding_model="large"
    )
    assert with_words["embedding_model"] == "large"
    assert shared_memories.row(memory)["embedding"] == "[1,1]"


def test_the_expiry_stays_unless_another_is_given(service: Caller) -> None:
    memory = service.id("Red", expires_at="2999-01-01T00:00:00Z")
    assert service("correct_memory", memory_id=memory, text="Blue")["expires_at"].startswith("2999")
    assert service("correct_memory", memory_id=memory, text="Blue", expires_at="2888-01-01T00:00:00Z")[
        "expires_at"
    ].startswith("2888")
    assert (
        service("correct_memory", memory_id=memory, text="Blue", expires_at="infinity")["expires_at"] is None
    )
    assert service("correct_memory", memory_id=memory, text="Blue", expires_at="infinity")["changed"] is False


@pytest.mark.parametrize(
    ("code", "arguments"),
    [
        ("RL471", {"text": " "}),
        ("RL471", {"text": None}),
        ("RL475", {"expires_at": "2001-01-01T00:00:00Z"}),
        ("22023", {"text": "x" * 65_537}),
        ("22023", {"note": "x" * 2001}),
        ("22023", {"embedding": "[1]"}),
        ("22023", {"embedding": "[0]", "embedding_model": "small"}),
        ("RL404", {"memory_id": NOBODY}),
        ("RL404", {"memory_id": None}),
    ],
)
def test_what_cannot_be_meant_is_refused(
    shared_memories: Memories, service: Caller, code: str, arguments: dict[str, Any]
) -> None:
    memory = service.id("As it was")
    service.refused(code, "correct_memory", **{"memory_id": memory, "text": "x"} | arguments)
    assert shared_memories.row(memory)["text"] == "As it was"
    assert len(shared_memories.events(memory)) == 1


def test_a_memory_of_another_organization_is_not_there(shared_memories: Memories, service: Caller) -> None:
    memory = service.id("Secret")
    other = shared_memories.new_org()
    for caller in (shared_memories.as_member("owner", other), shared_memories.as_service(other)):
        there = caller.refused("RL404", "correct_memory", memory_id=memory, text="x")
        absent = caller.refused("RL404", "correct_memory", memory_id=NOBODY, text="x")
        assert str(there.message_primary).replace(memory, NOBODY) == absent.message_primary


def test_what_was_erased_or_has_expired_is_not_corrected(shared_memories: Memories, service: Caller) -> None:
    gone, over = service.id("Gone"), service.id("Over")
    service("forget_memory", memory_id=gone)
    shared_memories.expire(over)
    service.refused("RL410", "correct_memory", memory_id=gone, text="Back")
    service.refused("RL404", "correct_memory", memory_id=over, text="Back", expires_at="2999-01-01T00:00:00Z")


@pytest.mark.parametrize("text", HOSTILE)
def test_any_text_is_taken_as_it_is(shared_memories: Memories, service: Caller, text: str) -> None:
    memory = service.id("A")
    assert service("correct_memory", memory_id=memory, text=text, note=text)["text"] == text
    service("correct_memory", memory_id=memory, text="B")
    assert [event["text_before"] for event in shared_memories.events(memory)] == [None, "A", text]


def test_corrections_at_once_take_turns_and_none_is_lost(shared_memories: Memories, service: Caller) -> None:
    memory = service.id("0")

    def correct(number: int) -> Any:
        def work(connection: Connection) -> Any:
            return call(connection, "correct_memory", org_id=service.org, memory_id=memory, text=str(number))

        return work

    answers = at_once(shared_memories.database, [correct(number) for number in range(1, 17)])
    assert all(answer["changed"] for answer in answers)
    texts = [event["text_before"] for event in shared_memories.events(memory)[1:]]
    assert sorted([*texts, shared_memories.row(memory)["text"]], key=int) == [str(n) for n in range(17)]


def test_it_waits_for_an_erasure_of_its_subject(shared_memories: Memories, service: Caller, org: str) -> None:
    subject = str(uuid4())
    memory = service.id("Was ill", subject_type="candidate", subject_id=subject)
    eraser = shared_memories.database.connect("service_role", autocommit=False)
    call(eraser, "erase_subject", org_id=org, subject_type="candidate", subject_id=subject)
    impatient = shared_memories.database.connect("service_role")
    impatient.execute("set lock_timeout = '100ms'")
    late = Caller(impatient, org)
    late.refused("55P03", "correct_memory", memory_id=memory, text="Is ill")
    eraser.commit()
    late.refused("RL410", "correct_memory", memory_id=memory, text="Is ill")
