"""Erasures beside each other and beside everybody else: no error, no deadlock, nothing left."""

from __future__ import annotations

import threading
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from tests.conftest import HostMaker
from tests.rig.databases import Connection
from tests.sql.erasing import NOTHING, Scene, counted
from tests.sql.rpc import at_once, call

WORD = "zebrafoal"


@pytest.fixture
def scene(full_project: HostMaker) -> Scene:
    return Scene(full_project())


def erase(scene: Scene, subject: str, **arguments: Any) -> Any:
    def work(connection: Connection) -> Any:
        return call(
            connection,
            "erase_subject",
            org_id=scene.org,
            subject_type="candidate",
            subject_id=subject,
            **arguments,
        )

    return work


class Waiting:
    """A call in a thread of its own, which is about to wait for a lock."""

    def __init__(self, scene: Scene, work: Any) -> None:
        self._connection = scene.database.connect("service_role")
        self._answer: Any = None
        self._thread = threading.Thread(target=self._run, args=(work,))
        self._thread.start()
        scene.database.wait_until(
            "select exists (select from pg_stat_activity where wait_event_type = 'Lock' "
            f"and pid = {self._connection.info.backend_pid})"
        )

    def _run(self, work: Any) -> None:
        try:
            self._answer = work(self._connection)
        except psycopg.Error as error:
            self._answer = error

    def answer(self) -> Any:
        self._thread.join(60)
        assert not self._thread.is_alive()
        return self._answer


def test_many_at_once_erase_somebody_once(scene: Scene) -> None:
    subject = str(uuid4())
    scene.fill_memories(WORD, subject)
    scene.fill_ledger(WORD, subject)
    answers = at_once(scene.database, [erase(scene, subject)] * 6)
    assert sorted(answer["already"] for answer in answers) == [False] + [True] * 5
    assert sum(answer["counts"]["decisions"] for answer in answers) == 2
    assert len({answer["receipt_id"] for answer in answers}) == 6
    assert scene.left(WORD) == set()
    scene.is_sound()


def test_two_people_who_share_decisions_are_erased_at_once(scene: Scene) -> None:
    for _ in range(5):
        one, two = str(uuid4()), str(uuid4())
        for number in range(12):
            scene.decide(
                WORD, *((one, two) if number % 2 else (two, one)), axis=number, idempotency_key=str(uuid4())
            )
        answers = at_once(scene.database, [erase(scene, one), erase(scene, two, also_containing=[WORD])])
        assert sum(answer["counts"]["decisions"] for answer in answers) == 12, "each once, for both"
        assert scene.left(WORD) == set()
    scene.is_sound()


def test_beside_recalls_marks_links_forgets_edits_and_memories_nobody_fails(scene: Scene) -> None:
    subjects = [str(uuid4()) for _ in range(4)]
    ids = []
    for number, subject in enumerate(subjects * 6):
        ids.append(scene.decide(WORD, subject, axis=number, idempotency_key=str(number)))
        scene.remember(f"{WORD} {number}", subject)
    requests = [scene.ledger.trace(*ids) for _ in range(3)]
    neutral = [scene.ledger.id(f"neutral {number}") for number in range(6)]

    def recall(connection: Connection) -> None:
        for number in range(12):
            call(
                connection,
                "recall_decisions",
                workspace_id="acme",
                query=f"{WORD}query {number}",
                match_count=30,
            )

    def mark(request_id: str) -> Any:
        def work(connection: Connection) -> None:
            for start in range(0, 24, 6):
                used, ignored = ids[start : start + 3][::-1], ids[start + 3 : start + 6]
                call(
                    connection,
                    "mark_recall_usage",
                    workspace_id="acme",
                    request_id=request_id,
                    used=used,
                    ignored=[{"memory_id": memory_id, "reason": "not now"} for memory_id in ignored],
                )

        return work

    def change(connection: Connection) -> None:
        for number in range(24):
            memory_id, other = ids[-number], neutral[number % 6]
            call(connection, "link_decisions", workspace_id="acme", **{"from": other, "to": memory_id})
            call(
                connection,
                "set_decision_lifecycle",
                workspace_id="acme",
                memory_id=memory_id,
                lifecycle="stale",
            )
            call(connection, "supersede_decision", workspace_id="acme", old=other, new=memory_id)
            call(connection, "record_decision", workspace_id="acme", content="x", depends_on=[other])

    def forget(connection: Connection) -> None:
        for memory_id in ids[3::8]:
            call(connection, "forget_decision", workspace_id="acme", memory_id=memory_id)

    def write(connection: Connection) -> None:
        for number in range(40):
            connection.execute(
                "update public.agent_memories set project_id = %s where workspace_id = 'acme' and id = %s",
                (f"p{number % 3}", ids[number % 24]),
            )

    work = [
        *(erase(scene, subject) for subject in subjects),
        erase(scene, subjects[0], also_containing=[f"{WORD}content"]),
        recall,
        recall,
        *(mark(request_id) for request_id in requests),
        change,
        forget,
        write,
    ]
    answers = at_once(scene.database, work)
    errors = [answer for answer in answers if isinstance(answer, psycopg.Error)]
    # a decision that was forgotten meanwhile is gone for whoever links to it
    assert {error.sqlstate for error in errors} <= {"RL410"}, errors
    for subject in subjects:
        scene.erase(subject)
    assert scene.left(f"{WORD}content", f"{WORD}rationale", f"{WORD}value") == set()
    scene.ledger("enroll_missing_decisions")
    scene.is_sound()


def test_it_waits_for_a_writer_about_the_subject(scene: Scene) -> None:
    subject = str(uuid4())
    with scene.database.connect("service_role", autocommit=False) as writer:
        writer.execute("select long_term_memory.share_subject(%s, 'candidate', %s)", (scene.org, subject))
        writer.execute(
            "insert into long_term_memory.agent_memories (org_id, subject_type, subject_id, text) "
            "values (%s, 'candidate', %s, %s)",
            (scene.org, subject, WORD),
        )
        erasure = Waiting(scene, erase(scene, subject))
        writer.commit()
    assert counted(erasure.answer()) == {"memories": 1}
    assert scene.left(WORD) == set()


def test_it_waits_for_an_edit_and_erases_what_was_written(scene: Scene) -> None:
    subject = str(uuid4())
    decision = scene.decide("first", subject)
    with scene.database.connect("service_role", autocommit=False) as writer:
        writer.execute(
            "update public.agent_memories set content = %s where id = %s", (f"{WORD} edited", decision)
        )
        erasure = Waiting(scene, erase(scene, subject))
        writer.commit()
    assert counted(erasure.answer())["decisions"] == 1
    assert scene.left(WORD) == set()
    scene.is_sound()


def test_one_that_is_moved_to_another_organization_meanwhile_is_theirs(scene: Scene) -> None:
    subject, org_b = str(uuid4()), scene.memories.new_org()
    scene.map("globex", org_b)
    decision = scene.decide(WORD, subject)
    with scene.database.connect("service_role", autocommit=False) as writer:
        writer.execute("update public.agent_memories set workspace_id = 'globex' where id = %s", (decision,))
        erasure = Waiting(scene, erase(scene, subject))
        writer.commit()
    assert erasure.answer()["counts"] == NOTHING
    assert "public.agent_memories.content" in scene.left(WORD)


def test_a_workspace_stays_with_its_organization_while_it_is_erased(scene: Scene) -> None:
    subject = str(uuid4())
    decision = scene.decide(WORD, subject)
    with scene.database.connect("service_role", autocommit=False) as holder:
        holder.execute("select from public.agent_memories where id = %s for update", (decision,))
        erasure = Waiting(scene, erase(scene, subject))

        def move(connection: Connection) -> None:
            connection.execute(
                "update long_term_memory.workspace_orgs set org_id = %s where workspace_id = 'acme'",
                (scene.memories.new_org(),),
            )

        moving = Waiting(scene, move)
        holder.rollback()
    assert counted(erasure.answer())["decisions"] == 1
    assert moving.answer() is None


def test_a_standing_that_was_made_anew_while_it_was_waited_for_is_held(scene: Scene) -> None:
    """Else a recall takes it, and waits for a ledger row that the erasure holds, which waits for the standing."""
    subject = str(uuid4())
    decision = scene.decide(WORD, subject)
    with scene.database.connect("service_role", autocommit=False) as editor:
        editor.execute("select from public.agent_memories where id = %s for no key update", (decision,))
        with scene.database.connect("supabase_admin", autocommit=False) as renewing:
            renewing.execute("select ranked_ledger.renew_copies(array[%s::uuid])", (decision,))
            erasure = Waiting(scene, erase(scene, subject))
            renewing.commit()
        scene.database.wait_until(
            "select not exists (select from ranked_ledger.standings s where s.memory_id = "
            f"'{decision}' for update skip locked)"
        )
        editor.rollback()
    assert counted(erasure.answer())["decisions"] == 1
    scene.is_sound()


def test_a_deadlock_with_a_host_that_locks_in_its_own_order_is_tried_again(scene: Scene) -> None:
    subject = str(uuid4())
    low, high = sorted(scene.decide(WORD, subject, axis=axis) for axis in (1, 2))
    host = scene.database.connect("supabase_admin", autocommit=False)
    host.execute("set deadlock_timeout = '60s'")  # the erasure is the one that is stopped
    host.execute("select from public.agent_memories where id = %s for update", (high,))
    erasure = Waiting(scene, erase(scene, subject))
    host.execute("select from public.agent_memories where id = %s for update", (low,))
    host.execute("update public.agent_memories set content = %s where id = %s", (f"{WORD} once more", low))
    host.commit()
    assert counted(erasure.answer())["decisions"] == 2
    assert scene.left(WORD) == set()
    scene.is_sound()


def test_an_interrupted_erasure_changes_nothing(scene: Scene) -> None:
    subject = str(uuid4())
    scene.fill_memories(WORD, subject)
    scene.fill_ledger(WORD, subject)
    before = scene.left(WORD)
    connection = scene.database.connect("service_role", autocommit=False)
    erase(scene, subject)(connection)
    scene.do("select pg_terminate_backend(%s, 10000)", connection.info.backend_pid)
    assert scene.left(WORD) == before
    assert scene.do("select count(*) from long_term_memory.erasures") == [(0,)]
