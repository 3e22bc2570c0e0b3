"""An erasure in the long-term memory alone: tombstones, receipts, digests, and who may ask for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from tests.rig import hosts
from tests.rig.databases import Database, Server
from tests.rig.residue import in_dump
from tests.sql.erasing import NOTHING, Scene, counted
from tests.sql.rpc import call

WORD = "zebrafoal"
KEY = "a key of at least 16 characters"


@pytest.fixture(scope="module")
def database(server: Server) -> Iterator[Database]:
    database = hosts.memory_project(server)
    yield database
    server.remove(database)


@pytest.fixture
def scene(database: Database) -> Scene:
    """An organization of its own, in a database that a module shares."""
    return Scene(database)


def test_none_of_the_words_are_left_without_the_ledger(scene: Scene) -> None:
    subject, somebody, word = str(uuid4()), str(uuid4()), "zebramemory"
    scene.fill_memories(word, subject)
    scene.fill_memories("quaggamare", somebody)
    scene.do("analyze long_term_memory.agent_memories, long_term_memory.memory_events")
    texts = [f"{word}memory of the model", f"{word}memory of a person", f"{word}before"]
    before = scene.left("quaggamare")
    assert len(scene.left(word, texts=texts)) > 8
    assert counted(scene.erase(subject)) == {"memories": 2, "recalls": 1, "reviews": 1}
    assert scene.left(word, texts=texts) == set()
    assert in_dump(scene.database, [word]) == {}
    assert {place for place in before if not place.startswith("statistics")} <= scene.left("quaggamare")


def test_a_tombstone_keeps_what_is_no_word(scene: Scene) -> None:
    subject, user = str(uuid4()), scene.memories.new_user()
    memory_id = scene.remember(
        WORD,
        subject,
        author="person",
        written_by=user,
        asserted_by=user,
        reviewed_at="now",
        reviewed_by=user,
        review_outcome="approved",
        review_grade="verified",
        can_use_as_instruction=True,
        embedding="[1,2]",
        embedding_model="m",
        expires_at="2100-01-01",
    )
    scene.erase(subject)
    row = scene.memories.row(memory_id)
    assert (row["text"], row["embedding"], row["embedding_model"], row["asserted_by"]) == ("", None, "", None)
    assert (row["written_by"], row["reviewed_by"], row["review_outcome"]) == (user, user, "approved")
    assert (row["subject_id"], row["author"], row["can_use_as_instruction"]) == (subject, "person", False)
    assert row["redacted_at"] is not None
    (event,) = scene.memories.events(memory_id)
    assert (event["action"], event["grade"], event["text_before"]) == ("erased", "service", None)


def test_former_words_of_earlier_tombstones_go_too(scene: Scene) -> None:
    subject = str(uuid4())
    memory_id = scene.remember(WORD, subject)
    scene.do("update long_term_memory.agent_memories set redacted_at = now() where id = %s", memory_id)
    scene.do(
        "insert into long_term_memory.memory_events (org_id, memory_id, action, text_before) "
        "values (%s, %s, 'corrected', %s)",
        scene.org,
        memory_id,
        WORD,
    )
    assert counted(scene.erase(subject)) == {"reviews": 1}
    assert [event["action"] for event in scene.memories.events(memory_id)] == ["corrected"]
    assert scene.memories.events(memory_id)[0]["text_before"] is None


def test_the_receipt_says_who_when_and_how_many_and_none_of_the_words(scene: Scene) -> None:
    subject = str(uuid4())
    scene.remember(WORD, subject)
    answer = scene.erase(subject, digest_key=KEY)
    ((receipt,),) = scene.do(
        "select to_jsonb(e) from long_term_memory.erasures e where e.org_id = %s", scene.org
    )
    assert (receipt["id"], receipt["grade"], receipt["actor_id"]) == (answer["receipt_id"], "service", None)
    assert (receipt["counts"], receipt["erased_at"]) == (answer["counts"], answer["erased_at"])
    assert (receipt["subject_type"], receipt["subject_id"]) == ("candidate", subject)
    assert WORD not in str(receipt)
    assert KEY not in str(
        scene.do("select * from long_term_memory.audit_events where org_id = %s", scene.org)
    )


def test_digests_are_of_every_text_there_was(scene: Scene) -> None:
    subject = str(uuid4())
    first = scene.remember("What it said last", subject)
    scene.remember("Another memory", subject)
    scene.do(
        "insert into long_term_memory.memory_events (org_id, memory_id, action, text_before) "
        "values (%s, %s, 'corrected', 'What it said at first')",
        scene.org,
        first,
    )
    answer = scene.erase(subject, digest_key=KEY)
    assert answer["digests"] == 3

    def before(text: str, key: str | None = KEY) -> Any:
        return scene.do(
            "select long_term_memory.erased_before(%s, 'candidate', %s, %s, %s)",
            scene.org,
            subject,
            text,
            key,
        )[0][0]

    for text in ("what it  said LAST", "What it said at first", "Another memory"):
        assert before(text) == "flagged"
    assert before("Something else") == "clear"
    assert before("Another memory", "another key of 16 characters") == "other_key"
    # the same words once more, and a second erasure with the same key
    scene.remember("Another memory", subject)
    assert scene.erase(subject, digest_key=KEY)["digests"] == 0
    assert before("Another memory") == "flagged"
    assert scene.erase(subject, digest_key=KEY)["already"] is True


def test_a_key_reaches_no_table_and_no_message(scene: Scene) -> None:
    subject, key = str(uuid4()), "Zebrakeyzebrakey"
    scene.remember(WORD, subject)
    scene.erase(subject, digest_key=key)
    assert scene.left(key) == set()
    refused = scene.service.refused(
        "22023", "erase_subject", subject_type="candidate", subject_id=subject, digest_key=key[:15]
    )
    assert (
        key[:15]
        not in f"{refused.message_primary} {refused.message_detail} {refused.message_hint} {refused.context}"
    )


def test_a_stranger_leaves_no_receipt_and_learns_nothing(scene: Scene) -> None:
    user = scene.memories.new_user()
    here, nowhere = scene.memories.as_user(user), scene.memories.as_user(user, str(uuid4()))
    answers = [
        caller("erase_subject", subject_type="user", subject_id=user, digest_key=KEY)
        for caller in (here, nowhere)
    ]
    for answer in answers:
        answer.pop("erased_at")
    assert answers[0] == answers[1]
    assert (answers[0]["receipt_id"], answers[0]["already"], answers[0]["counts"]) == (None, False, NOTHING)
    assert scene.do("select count(*) from long_term_memory.erasures where subject_id = %s", user) == [(0,)]
    assert scene.do("select count(*) from long_term_memory.audit_events where payload::text ~ %s", user) == [
        (0,)
    ]
    assert scene.erase(str(uuid4()))["receipt_id"] is None


def test_who_was_forgotten_or_expired_has_a_receipt_although_nothing_is_left(scene: Scene) -> None:
    forgotten, expired = str(uuid4()), str(uuid4())
    memory_id = scene.remember(WORD, forgotten)
    scene.do("delete from long_term_memory.agent_memories where id = %s", memory_id)
    scene.fill_memories(WORD, expired)
    with scene.database.superuser.transaction():
        scene.do("set local long_term_memory.sweep = 'on'")
        scene.do("delete from long_term_memory.agent_memories where subject_id = %s", expired)
    answer = scene.erase(forgotten)
    assert (answer["receipt_id"] is not None, answer["already"], answer["counts"]) == (True, False, NOTHING)
    answer = scene.erase(expired)
    assert (answer["receipt_id"] is not None, counted(answer)) == (True, {"recalls": 1})


def test_a_question_that_returned_what_only_later_was_said_to_be_theirs_is_emptied(scene: Scene) -> None:
    """A memory was about somebody else by mistake, and the service role put it right."""
    mistaken, subject = str(uuid4()), str(uuid4())
    memory_id = scene.remember(WORD, mistaken, author="person")
    scene.service("recall_memories", query=WORD)
    scene.do("update long_term_memory.agent_memories set subject_id = %s where id = %s", subject, memory_id)
    assert counted(scene.erase(subject)) == {"memories": 1, "recalls": 1}
    assert scene.left(WORD) == set()


class TestCallers:
    def erase(self, caller: Any, subject: str, kind: str = "user", **arguments: Any) -> Any:
        return caller("erase_subject", subject_type=kind, subject_id=subject, **arguments)

    def test_the_subject_themself_and_an_owner_may(self, scene: Scene) -> None:
        for role in (None, "member", "admin"):
            user = scene.memories.new_user() if role is None else scene.memories.new_member(role)
            scene.memories.insert(WORD, subject_type="user", subject_id=user)
            answer = self.erase(scene.memories.as_user(user), user)
            assert counted(answer) == {"memories": 1}
        owner, subject = scene.memories.new_member("owner"), str(uuid4())
        scene.remember(WORD, subject)
        assert counted(self.erase(scene.memories.as_user(owner), subject, "candidate")) == {"memories": 1}
        grades = scene.do(
            "select grade, actor_id::text, asserted_by from long_term_memory.erasures where subject_id = %s",
            subject,
        )
        assert grades == [("verified", owner, None)]

    def test_nobody_else_may_in_the_same_words_whether_it_exists_or_not(self, scene: Scene) -> None:
        subject = scene.memories.new_user()
        scene.memories.insert(WORD, subject_type="user", subject_id=subject)
        other_owner = scene.memories.as_member("owner", scene.memories.new_org())
        other_owner.org = scene.org
        told = set()
        for caller in (
            scene.memories.as_member("member"),
            scene.memories.as_member("admin"),
            scene.memories.as_user(scene.memories.new_user()),
            other_owner,
        ):
            for org in (scene.org, str(uuid4())):
                refused = caller.refused(
                    "42501", "erase_subject", org_id=org, subject_type="user", subject_id=subject
                )
                told.add((refused.message_primary, refused.message_detail, refused.message_hint))
        assert len(told) == 1
        # a candidate's id is nobody's user id
        scene.memories.as_user(subject).refused(
            "42501", "erase_subject", subject_type="candidate", subject_id=subject
        )
        anonymous = scene.memories.as_anon()
        anonymous.refused("42501", "erase_subject", subject_type="user", subject_id=subject)
        assert scene.do(
            "select text from long_term_memory.agent_memories where subject_id = %s", subject
        ) == [(WORD,)]

    def test_strings_are_the_owners_and_the_services_to_give(self, scene: Scene) -> None:
        for role in ("admin", None):
            user = scene.memories.new_member(role) if role else scene.memories.new_user()
            caller = scene.memories.as_user(user)
            for org in (scene.org, str(uuid4())):
                caller.refused(
                    "42501",
                    "erase_subject",
                    org_id=org,
                    subject_type="user",
                    subject_id=user,
                    also_containing=["a string"],
                )
            assert self.erase(caller, user, also_containing=[])["receipt_id"] is None
        owner = scene.memories.as_member("owner")
        assert self.erase(owner, str(uuid4()), "candidate", also_containing=["a string"])["counts"] == NOTHING

    def test_an_owner_is_asserted_only_where_the_organization_allows_it(self, scene: Scene) -> None:
        subject, owner = str(uuid4()), scene.memories.new_member("owner")
        admin = scene.memories.new_member("admin")
        scene.remember(WORD, subject)
        arguments = {"subject_type": "candidate", "subject_id": subject}
        scene.service.refused("42501", "erase_subject", asserted_by=owner, **arguments)
        scene.memories.allow_asserted()
        for person in (admin, str(uuid4()), "somebody"):
            scene.service.refused("RL404", "erase_subject", asserted_by=person, **arguments)
        scene.memories.as_user(owner).refused("22023", "erase_subject", asserted_by=owner, **arguments)
        scene.service("erase_subject", asserted_by=owner, **arguments)
        rows = scene.do(
            "select grade, actor_id, asserted_by from long_term_memory.erasures where org_id = %s", scene.org
        )
        assert rows == [("asserted", None, owner)]
        (event,) = scene.memories.events(
            scene.do("select id from long_term_memory.agent_memories where subject_id = %s", subject)[0][0]
        )
        assert (event["grade"], event["asserted_by"]) == ("asserted", owner)


def test_arguments_that_cannot_be_meant_are_refused(scene: Scene) -> None:
    subject = str(uuid4())
    refused = scene.service.refused
    refused("RL472", "erase_subject", subject_type="person", subject_id=subject)
    refused("RL474", "erase_subject", subject_type="candidate", subject_id=None)
    refused("RL474", "erase_subject", subject_type="workspace", subject_id=None)
    refused("RL404", "erase_subject", org_id=str(uuid4()), subject_type="candidate", subject_id=subject)
    refused("22023", "erase_subject", org_id=None, subject_type="candidate", subject_id=subject)
    for strings in (
        ["short"],
        ["  a b  "],
        ["      "],
        [None],
        ["x" * 1001],
        ["[erase"],
        [f"string {n}" for n in range(51)],
    ):
        told = refused(
            "22023", "erase_subject", subject_type="candidate", subject_id=subject, also_containing=strings
        )
        assert "p_also_containing" in str(told.message_primary)


def test_a_workspace_can_be_a_subject(scene: Scene) -> None:
    subject = str(uuid4())
    memory_id = scene.memories.insert(WORD, subject_id=subject, workspace_id="acme")
    answer = scene.service("erase_subject", subject_type="workspace", subject_id=subject)
    assert counted(answer) == {"memories": 1}
    assert scene.memories.row(memory_id)["text"] == ""


def test_an_older_snapshot_is_refused(scene: Scene) -> None:
    subject = str(uuid4())
    scene.remember(WORD, subject)
    for level in (psycopg.IsolationLevel.REPEATABLE_READ, psycopg.IsolationLevel.SERIALIZABLE):
        connection = scene.database.connect("service_role", autocommit=False)
        connection.isolation_level = level
        with pytest.raises(psycopg.Error) as raised:
            call(connection, "erase_subject", org_id=scene.org, subject_type="candidate", subject_id=subject)
        assert raised.value.sqlstate == "0A000"
        connection.rollback()


def test_the_names_of_two_subjects_are_two_subjects(scene: Scene) -> None:
    """The same id as a candidate and as a user: erased apart."""
    subject = scene.memories.new_user()
    scene.remember(WORD, subject)
    scene.memories.insert(WORD, subject_type="user", subject_id=subject)
    assert counted(scene.erase(subject)) == {"memories": 1}
    assert scene.do(
        "select subject_type from long_term_memory.agent_memories where subject_id = %s and text <> ''",
        subject,
    ) == [("user",)]
