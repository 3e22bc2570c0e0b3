"""remember: what it writes and answers, once a key, and what it refuses."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg import IsolationLevel, sql

from tests.rig.databases import Connection
from tests.sql.memory_rpc import Caller, Memories
from tests.sql.rpc import HOSTILE, NOBODY, at_once, call

KEY = "a digest key that is kept elsewhere"
VECTOR = {"embedding": "[1,0,0]", "embedding_model": "small"}


@pytest.fixture
def org(shared_memories: Memories) -> str:
    return shared_memories.new_org(allow_asserted=True)


@pytest.fixture
def service(shared_memories: Memories, org: str) -> Caller:
    return shared_memories.as_service(org)


@pytest.fixture
def member(shared_memories: Memories, org: str) -> Caller:
    return shared_memories.as_member("member", org)


def count(memories: Memories, org: str, table: str = "agent_memories") -> int:
    query = sql.SQL("select count(*) from long_term_memory.{} where org_id = %s").format(
        sql.Identifier(table)
    )
    ((number,),) = memories.database.service.execute(query, (org,)).fetchall()
    return int(number)


def erase(memories: Memories, org: str, subject_id: str, digest_key: str | None = None) -> Any:
    return memories.as_service(org)(
        "erase_subject", subject_type="candidate", subject_id=subject_id, digest_key=digest_key
    )


def test_a_model_on_the_service_key_writes_a_memory_of_no_grade_that_waits_for_a_review(
    shared_memories: Memories, service: Caller
) -> None:
    subject = str(uuid4())
    expires_at = datetime.now(UTC) + timedelta(days=30)
    answer = service.remember(
        "Prefers to be called in the afternoon",
        subject_type="candidate", subject_id=subject, source_run_id="run-81", expires_at=expires_at, **VECTOR,
    )  # fmt: skip
    assert answer | {"memory_id": 0, "created_at": 0, "updated_at": 0, "expires_at": 0} == {
        "memory_id": 0, "org_id": service.org, "subject_type": "candidate", "subject_id": subject,
        "workspace_id": None, "text": "Prefers to be called in the afternoon", "author": "model", "grade": None,
        "source_run_id": "run-81", "written_by": None, "asserted_by": None, "reviewed_at": None, "reviewed_by": None,
        "review_outcome": None, "review_grade": None, "can_use_as_instruction": False, "embedding_model": "small",
        "created_at": 0, "updated_at": 0, "expires_at": 0, "erased_at": None, "replayed": False,
        "erased_before": "not_checked",
    }  # fmt: skip
    assert datetime.fromisoformat(answer["expires_at"]) == expires_at
    row = shared_memories.row(answer["memory_id"])
    assert (row["embedding"], row["embedding_dims"]) == ("[1,0,0]", 3)


def test_whose_token_it_is_wrote_it(shared_memories: Memories, member: Caller, org: str) -> None:
    user = shared_memories.new_member("member", org)
    person = shared_memories.as_user(user, org)
    for author in ("person", "model"):
        answer = person.remember(f"By a {author}", author=author)
        assert (answer["written_by"], answer["grade"], answer["asserted_by"]) == (user, "verified", None)
        (event,) = shared_memories.events(answer["memory_id"])
        assert (event["action"], event["grade"], event["actor_id"]) == ("remembered", "verified", user)


def test_the_service_names_the_member_who_wrote_it(
    shared_memories: Memories, service: Caller, org: str
) -> None:
    user = shared_memories.new_member("member", org)
    answer = service.remember("Said so", author="person", asserted_by=user.upper())
    assert (answer["written_by"], answer["grade"], answer["asserted_by"]) == (None, "asserted", user)
    (event,) = shared_memories.events(answer["memory_id"])
    assert (event["grade"], event["actor_id"], event["asserted_by"]) == ("asserted", None, user)


def test_who_may_be_named_as_the_writer(shared_memories: Memories, service: Caller, member: Caller) -> None:
    user = shared_memories.new_member("member", service.org)
    service.refused("22023", "remember", text="x", author="person")
    service.refused("22023", "remember", text="x", author="model", asserted_by=user)
    member.refused("22023", "remember", text="x", author="person", asserted_by=user)
    service.refused("RL404", "remember", text="x", author="person", asserted_by=NOBODY)
    service.refused("RL404", "remember", text="x", author="person", asserted_by="nobody in particular")
    strict = shared_memories.as_service(shared_memories.new_org())
    named = shared_memories.new_member("owner", strict.org)
    strict.refused("42501", "remember", text="x", author="person", asserted_by=named)
    assert count(shared_memories, str(service.org)) == count(shared_memories, str(strict.org)) == 0


@pytest.mark.parametrize(
    ("code", "arguments"),
    [
        ("RL471", {"text": " \n\t"}),
        ("RL471", {"text": None}),
        ("RL472", {"subject_type": "company"}),
        ("RL472", {"subject_type": None}),
        ("RL473", {"author": "robot"}),
        ("RL473", {"author": None}),
        ("RL474", {"subject_type": "user"}),
        ("RL475", {"expires_at": "2001-01-01T00:00:00Z"}),
        ("RL475", {"expires_at": "-infinity"}),
        ("22023", {"text": "x" * 65_537}),
        ("22023", {"text": "é" * 32_769}),
        ("22023", {"subject_type": "user", "subject_id": NOBODY, "workspace_id": "acme"}),
        ("22023", {"workspace_id": " "}),
        ("22023", {"workspace_id": "w" * 1001}),
        ("22023", {"source_run_id": ""}),
        ("22023", {"source_run_id": "r" * 1001}),
        ("22023", {"embedding": "[1,2]"}),
        ("22023", {"embedding": "[1,2]", "embedding_model": " "}),
        ("22023", {"embedding_model": "small"}),
        ("22023", {"embedding": "[0,0]", "embedding_model": "small"}),
        ("22023", {"embedding": "[NaN,1]", "embedding_model": "small"}),
        ("22023", {"embedding": "[]", "embedding_model": "small"}),
        ("22023", {"embedding": "one, two", "embedding_model": "small"}),
        ("22023", {"embedding": "[" + "1," * 16_000 + "1]", "embedding_model": "small"}),
        ("22023", {"idempotency_key": " "}),
        ("22023", {"idempotency_key": "k" * 256}),
        ("22023", {"on_return": "forgive"}),
        ("22023", {"on_return": None}),
        ("22023", {"digest_key": "short"}),
    ],
)
def test_what_cannot_be_meant_is_refused_and_leaves_nothing(
    shared_memories: Memories, service: Caller, code: str, arguments: dict[str, Any]
) -> None:
    said = service.refused(code, "remember", **{"text": "x", "idempotency_key": "k"} | arguments)
    assert said.message_hint
    assert service.org is not None
    assert [count(shared_memories, service.org, t) for t in ("agent_memories", "idempotency_keys")] == [0, 0]
    assert KEY not in str(said.message_primary) + str(said.message_hint) + str(said.message_detail)


@pytest.mark.parametrize("text", [*HOSTILE, "x" * 65_536, "é" * 32_768, "  kept as it is  "])
def test_a_text_is_kept_as_it_was_given(service: Caller, text: str) -> None:
    assert service.remember(text)["text"] == text
    assert service.texts(include_unreviewed=True) == [text]


def test_the_longest_vector_is_kept_and_found(service: Caller) -> None:
    longest = "[" + "1," * 15_999 + "1]"
    memory = service.id(embedding=longest, embedding_model="huge")
    (hit,) = service.recall(query_embedding=longest, embedding_model="huge", include_unreviewed=True)["hits"]
    assert (hit["memory_id"], hit["relevance_source"]) == (memory, "cosine")
    assert hit["relevance"] == pytest.approx(1)


def test_an_endless_expiry_is_none(service: Caller) -> None:
    assert service.remember(expires_at="infinity")["expires_at"] is None


def test_the_run_is_noted_once_for_all_its_memories(shared_memories: Memories, service: Caller) -> None:
    run = f"run-{uuid4()}"
    for _ in range(2):
        service.remember(source_run_id=run)
    assert (
        shared_memories.database.value(
            "select count(*) from long_term_memory.agent_runs where run_id = %s", (run,)
        )
        == 1
    )


def test_a_repeat_with_its_key_answers_the_first_memory(shared_memories: Memories, service: Caller) -> None:
    request = {
        "text": "Once",
        "idempotency_key": "k",
        "source_run_id": "r",
        "expires_at": "2999-01-01T00:00:00Z",
    }
    first = service("remember", **request, **VECTOR)
    # a service does not embed twice the same, and a time is the same in any zone
    again = service(
        "remember",
        **request | {"expires_at": "2999-01-01T02:00:00+02:00"}, embedding="[0.9,0,0]", embedding_model="small",
    )  # fmt: skip
    assert (first["replayed"], again["replayed"]) == (False, True)
    assert again == first | {"replayed": True}
    assert count(shared_memories, str(service.org)) == 1
    assert len(shared_memories.events(first["memory_id"])) == 1


@pytest.mark.parametrize(
    "other",
    [
        {"text": "Twice"}, {"subject_type": "user", "subject_id": NOBODY}, {"workspace_id": "acme"},
        {"source_run_id": "run"}, {"expires_at": "2999-01-01T00:00:00Z"}, {"on_return": "flag"},
    ],
)  # fmt: skip
def test_a_key_stands_for_one_request(
    shared_memories: Memories, service: Caller, other: dict[str, Any]
) -> None:
    request = {"text": "Once", "idempotency_key": "k"}
    service("remember", **request)
    service.refused("RL409", "remember", **request | other)
    assert count(shared_memories, str(service.org)) == 1


def test_the_service_and_the_members_share_the_keys_of_their_organization_and_of_no_other(
    shared_memories: Memories, service: Caller, member: Caller
) -> None:
    first = service.id("Once", idempotency_key="k")
    member.refused(
        "RL409", "remember", text="Once", idempotency_key="k"
    )  # written by somebody else: another request
    elsewhere = shared_memories.as_service(shared_memories.new_org())
    other = elsewhere.remember("Once", idempotency_key="k")
    assert other["replayed"] is False
    assert other["memory_id"] != first


def test_a_key_whose_memory_is_gone_says_so(shared_memories: Memories, service: Caller) -> None:
    forgotten = service.id("Once", idempotency_key="forgotten")
    service("forget_memory", memory_id=forgotten)
    service.refused("RL410", "remember", text="Once", idempotency_key="forgotten")
    expired = service.id("Once", idempotency_key="expired")
    shared_memories.expire(expired)
    service.refused("RL410", "remember", text="Once", idempotency_key="expired")


def test_a_key_is_free_again_where_its_call_failed_in_the_same_transaction(
    shared_memories: Memories, service: Caller
) -> None:
    connection = shared_memories.database.connect("service_role", autocommit=False)
    caller = Caller(connection, service.org)
    with pytest.raises(psycopg.Error), connection.transaction():
        caller.remember(" ", idempotency_key="k")
    first = caller.remember("Once", idempotency_key="k")
    assert first["replayed"] is False
    assert caller.remember("Once", idempotency_key="k") == first | {"replayed": True}
    connection.commit()
    assert service.remember("Once", idempotency_key="k")["replayed"] is True


def test_of_a_workspace_without_an_id_nothing_erased_is_known(service: Caller) -> None:
    for about in ({}, {"workspace_id": "acme"}):
        assert service.remember("Once", digest_key=KEY, **about)["erased_before"] == "not_checked"
    service.refused("22023", "remember", text="Once", digest_key="short")
    named = service.remember("Once", subject_type="workspace", subject_id=str(uuid4()), digest_key=KEY)
    assert named["erased_before"] == "clear"


def test_sixteen_at_once_with_one_key_write_one_memory(shared_memories: Memories, service: Caller) -> None:
    def remember(connection: Connection) -> Any:
        return call(
            connection,
            "remember",
            org_id=service.org,
            text="Once",
            idempotency_key="k",
            source_run_id="run-x",
        )

    answers = at_once(shared_memories.database, [remember] * 16)
    assert {answer["memory_id"] for answer in answers} == {answers[0]["memory_id"]}
    assert sorted(answer["replayed"] for answer in answers) == [False] + [True] * 15
    assert count(shared_memories, str(service.org)) == 1


def test_a_writer_that_breaks_off_leaves_its_key_free(shared_memories: Memories, service: Caller) -> None:
    connection = shared_memories.database.connect("service_role", autocommit=False)
    call(connection, "remember", org_id=service.org, text="Once", idempotency_key="k")
    connection.rollback()
    assert service.remember("Once", idempotency_key="k")["replayed"] is False


def test_a_text_that_was_erased_for_the_subject_is_refused_to_whoever_has_the_key(
    shared_memories: Memories, service: Caller, org: str
) -> None:
    subject, text = str(uuid4()), "Was ill in March"
    about = {"subject_type": "candidate", "subject_id": subject, "idempotency_key": "k"}
    service.remember(text, **about | {"idempotency_key": "first"})
    erase(shared_memories, org, subject, KEY)

    said = service.refused("RL476", "remember", text="  was ILL in\nMarch ", digest_key=KEY, **about)
    assert "ill" not in str(said.message_primary).lower().split()
    assert count(shared_memories, org) == 1  # the tombstone
    assert service.remember("Likes trains", **about, digest_key=KEY)["erased_before"] == "clear"
    assert (
        service.remember(text, subject_type="candidate", subject_id=str(uuid4()), digest_key=KEY)[
            "erased_before"
        ]
        == "clear"
    )
    assert service.remember(text, **about | {"idempotency_key": None})["erased_before"] == "not_checked"
    other = service.remember(
        text, **about | {"idempotency_key": None}, digest_key="another key, not that one"
    )
    assert other["erased_before"] == "other_key"
    flagged = service.remember(text, **about | {"idempotency_key": "f"}, digest_key=KEY, on_return="flag")
    assert (flagged["erased_before"], flagged["replayed"]) == ("flagged", False)
    again = service.remember(text, **about | {"idempotency_key": "f"}, digest_key=KEY, on_return="flag")
    assert again == flagged | {"replayed": True}


def test_a_repeat_is_answered_though_the_text_was_erased_in_an_earlier_memory(
    shared_memories: Memories, service: Caller, org: str
) -> None:
    subject = str(uuid4())
    about = {"subject_type": "candidate", "subject_id": subject}
    service.remember("Was ill", **about)
    erase(shared_memories, org, subject, KEY)
    first = service.remember("Was ill", **about, idempotency_key="k")  # nobody looked
    again = service.remember("Was ill", **about, idempotency_key="k", digest_key=KEY)
    assert (again["memory_id"], again["replayed"]) == (first["memory_id"], True)
    assert again["erased_before"] == "flagged"


@pytest.mark.parametrize("level", [IsolationLevel.REPEATABLE_READ, IsolationLevel.SERIALIZABLE])
def test_under_an_old_snapshot_it_remembers_but_does_not_look_for_what_was_erased(
    shared_memories: Memories, service: Caller, level: IsolationLevel
) -> None:
    connection = shared_memories.database.connect("service_role", autocommit=False)
    connection.isolation_level = level
    caller = Caller(connection, service.org)
    assert caller.remember("Old", idempotency_key="k")["replayed"] is False
    connection.commit()
    assert caller.remember("Old", idempotency_key="k")["replayed"] is True
    connection.commit()
    caller.refused("0A000", "remember", text="Old", digest_key=KEY)


def test_it_waits_for_an_erasure_of_its_subject_and_for_nobody_elses(
    shared_memories: Memories, service: Caller, org: str
) -> None:
    subject = str(uuid4())
    service.remember("Was ill", subject_type="candidate", subject_id=subject)
    eraser = shared_memories.database.connect("service_role", autocommit=False)
    call(eraser, "erase_subject", org_id=org, subject_type="candidate", subject_id=subject, digest_key=KEY)
    impatient = shared_memories.database.connect("service_role")
    impatient.execute("set lock_timeout = '100ms'")
    late = Caller(impatient, org)
    late.refused("55P03", "remember", text="Was ill", subject_type="candidate", subject_id=subject)
    assert late.remember("Hello", subject_type="candidate", subject_id=str(uuid4()))["replayed"] is False
    assert late.remember("Hello")["replayed"] is False
    eraser.commit()
    late.refused(
        "RL476", "remember", text="Was ill", subject_type="candidate", subject_id=subject, digest_key=KEY
    )


def test_a_host_without_the_run_hears_of_it_before_anything_is_written(memories: Memories) -> None:
    memories.database.owner.execute("create table public.agent_runs (run_id text primary key)")
    memories.database.owner.execute("select long_term_memory.use_host_tables()")
    service = memories.as_service()
    service.refused("RL404", "remember", text="x", source_run_id="run-1", idempotency_key="k")
    memories.database.owner.execute("insert into public.agent_runs values ('run-1')")
    answer = service.remember("x", source_run_id="run-1", idempotency_key="k")
    assert (answer["replayed"], answer["source_run_id"]) == (False, "run-1")
    memories.database.owner.execute("delete from public.agent_runs")
    assert memories.row(answer["memory_id"])["source_run_id"] is None


def test_nobody_writes_who_does_not_belong(shared_memories: Memories, org: str) -> None:
    stranger = shared_memories.as_user(shared_memories.new_user(), org)
    said = [stranger.refused("42501", "remember", text="x", org_id=one) for one in (org, NOBODY)]
    assert said[0].message_primary == said[1].message_primary
    shared_memories.as_service(org).refused("RL404", "remember", text="x", org_id=NOBODY)
    shared_memories.as_service(org).refused("22023", "remember", text="x", org_id=None)
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        shared_memories.as_anon(org).remember()
