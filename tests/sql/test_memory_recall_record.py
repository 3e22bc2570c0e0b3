"""What recall_memories writes down, and how it takes turns with erasures."""

from __future__ import annotations

import threading
from typing import Any
from uuid import uuid4

import pytest
from psycopg import IsolationLevel

from tests.sql.memory_rpc import Caller, Memories
from tests.sql.rpc import call


@pytest.fixture
def org(shared_memories: Memories) -> str:
    return shared_memories.new_org()


@pytest.fixture
def service(shared_memories: Memories, org: str) -> Caller:
    return shared_memories.as_service(org)


def test_a_recall_is_written_down_with_whose_memories_it_returned(
    shared_memories: Memories, service: Caller, org: str
) -> None:
    jane, asked = str(uuid4()), str(uuid4())
    user = shared_memories.new_member("member", org)
    about_jane = shared_memories.insert(
        "Jane", org, author="person", subject_type="candidate", subject_id=jane
    )
    shared_memories.insert("all", org, author="person")
    answer = shared_memories.as_user(user, org).recall("Who is Jane?", run_id="run-7")
    assert answer["recorded"] is True
    (recall,) = shared_memories.recorded(org)
    assert (recall["id"], recall["run_id"], recall["recalled_by"], recall["query"], recall["arguments"]) == (
        answer["recall_id"], "run-7", user, "Who is Jane?", answer["arguments"])  # fmt: skip
    items = shared_memories.recorded(org, "recall_items")
    assert {item["memory_id"]: (item["rank"], item["score"], item["relevance_source"]) for item in items} == {
        hit["memory_id"]: (hit["rank"], hit["score"], "fts") for hit in answer["hits"]
    }
    assert about_jane in {item["memory_id"] for item in items}
    subjects = shared_memories.recorded(org, "recall_subjects")
    assert [(s["subject_type"], s["subject_id"]) for s in subjects] == [("candidate", jane)]

    # and whom it was said to be about, found or not
    second = service.recall("Anything?", subject_type="user", subject_id=asked)
    subjects = [
        s for s in shared_memories.recorded(org, "recall_subjects") if s["recall_id"] == second["recall_id"]
    ]
    assert [(s["subject_type"], s["subject_id"]) for s in subjects] == [("user", asked)]
    assert "Anything" not in str(second["arguments"])


def test_a_recall_that_cannot_be_written_down_is_answered(shared_memories: Memories, service: Caller) -> None:
    memory = shared_memories.insert("red", service.org, author="person")
    connection = shared_memories.database.connect("service_role", autocommit=False)
    notices: list[str] = []
    connection.add_notice_handler(lambda notice: notices.append(str(notice.message_primary)))
    with connection.transaction():
        connection.execute("set transaction read only")
        answer = call(connection, "recall_memories", org_id=service.org, query="red")
    assert [hit["memory_id"] for hit in answer["hits"]] == [memory]
    assert (answer["recorded"], answer["recall_id"]) == (False, None)
    assert any("not written down" in notice for notice in notices)
    connection.close()

    locker = shared_memories.database.connect(autocommit=False)
    locker.execute("lock table long_term_memory.recalls in access exclusive mode")
    assert service.recall("red")["recorded"] is False  # in two seconds, whoever holds the lock
    locker.rollback()
    assert service.recall("red")["recorded"] is True


def test_a_run_that_the_host_does_not_know_costs_nothing(memories: Memories) -> None:
    memories.database.owner.execute("create table public.agent_runs (run_id text primary key)")
    memories.database.owner.execute("select long_term_memory.use_host_tables()")
    answer = memories.as_service().recall("x", run_id="unknown")
    assert answer["recorded"] is True
    assert [row["run_id"] for row in memories.recorded(memories.org)] == ["unknown"]


def test_a_memory_that_is_erased_while_its_recall_waits_is_not_returned_nor_is_the_question_kept(
    shared_memories: Memories, service: Caller, org: str
) -> None:
    jane, john = str(uuid4()), str(uuid4())
    about = {"author": "person", "subject_type": "candidate"}
    shared_memories.insert("Jane is red", org, subject_id=jane, **about)
    kept = shared_memories.insert("John is red", org, subject_id=john, **about)
    eraser = shared_memories.database.connect("service_role", autocommit=False)
    call(eraser, "erase_subject", org_id=org, subject_type="candidate", subject_id=jane)
    reader = shared_memories.database.connect("service_role")
    pid = reader.info.backend_pid

    answers: list[Any] = []
    thread = threading.Thread(
        target=lambda: answers.append(call(reader, "recall_memories", org_id=org, query="Jane red"))
    )
    thread.start()
    shared_memories.database.wait_until(
        f"select exists (select from pg_locks where pid = {pid} and locktype = 'advisory' and not granted)"
    )
    eraser.commit()
    thread.join()
    (answer,) = answers
    assert [hit["memory_id"] for hit in answer["hits"]] == [kept]
    assert answer["recorded"] is True
    assert [row["query"] for row in shared_memories.recorded(org)] == [""]
    subjects = shared_memories.recorded(org, "recall_subjects")
    assert {s["subject_id"] for s in subjects} == {john}


def test_an_erasure_waits_for_the_record_of_a_recall_and_empties_it(
    shared_memories: Memories, service: Caller, org: str
) -> None:
    jane = str(uuid4())
    shared_memories.insert("Jane is red", org, author="person", subject_type="candidate", subject_id=jane)
    reader = shared_memories.database.connect("service_role", autocommit=False)
    assert call(reader, "recall_memories", org_id=org, query="Jane red")["recorded"] is True
    impatient = shared_memories.database.connect("service_role")
    impatient.execute("set lock_timeout = '100ms'")
    eraser = Caller(impatient, org)
    eraser.refused("55P03", "erase_subject", subject_type="candidate", subject_id=jane)
    reader.commit()
    eraser("erase_subject", subject_type="candidate", subject_id=jane)
    assert [row["query"] for row in shared_memories.recorded(org)] == [""]


def test_a_recall_of_a_thousand_people_takes_few_locks_and_still_takes_turns_with_each_erasure(
    shared_memories: Memories, service: Caller, org: str
) -> None:
    shared_memories.database.service.execute(
        """insert into long_term_memory.agent_memories (org_id, subject_type, subject_id, text, author)
        select %s, 'candidate', gen_random_uuid(), 'red', 'person' from generate_series(1, 1000)""",
        (org,),
    )
    reader = shared_memories.database.connect("service_role", autocommit=False)
    answer = call(reader, "recall_memories", org_id=org, match_count=1000)
    assert len(answer["hits"]) == 1000
    locks = shared_memories.database.superuser.execute(
        "select count(*) from pg_locks where pid = %s and locktype = 'advisory'", (reader.info.backend_pid,)
    ).fetchall()
    assert 0 < locks[0][0] <= 64
    impatient = shared_memories.database.connect("service_role")
    impatient.execute("set lock_timeout = '50ms'")
    for hit in answer["hits"][:5]:
        Caller(impatient, org).refused(
            "55P03", "erase_subject", subject_type="candidate", subject_id=hit["subject_id"]
        )
    reader.commit()


@pytest.mark.parametrize("level", [IsolationLevel.REPEATABLE_READ, IsolationLevel.SERIALIZABLE])
def test_under_an_old_snapshot_the_question_is_not_kept(
    shared_memories: Memories, service: Caller, org: str, level: IsolationLevel
) -> None:
    shared_memories.insert("red", org, author="person")
    connection = shared_memories.database.connect("service_role", autocommit=False)
    connection.isolation_level = level
    answer = call(connection, "recall_memories", org_id=org, query="red")
    connection.commit()
    assert [hit["text"] for hit in answer["hits"]] == ["red"]
    assert [row["query"] for row in shared_memories.recorded(org)] == [""]
