"""forget_decision: what goes, what stays, and that none of the words do."""

from __future__ import annotations

import subprocess
from typing import Any
from uuid import uuid4

import psycopg

from tests.rig.databases import Connection, Database
from tests.sql.rpc import NOBODY, Ledger, at_once, call, count, failed_checks, vector


def dump(database: Database) -> str:
    program = database.server.cluster.programs.bin_dir / "pg_dump"
    done = subprocess.run(
        [program, "--data-only", "--inserts", database.dsn("supabase_admin")],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_none_of_the_words_are_left_in_the_database(ledger: Ledger) -> None:
    ground, top, other = ledger.id("ground"), ledger.id("top"), ledger.id("other")
    words = {name: f"zebra{name}" for name in ("content", "summary", "rationale")}
    secret = ledger.id(
        **words,
        alternatives=["zebraalternative"],
        metadata={"zebrakey": "zebravalue"},
        depends_on=[ground],
        embedding=vector(),
        embedding_model="zebramodel",
        idempotency_key="k",
    )
    ledger("link_decisions", **{"from": top, "to": secret, "metadata": {"note": "zebraedge"}})
    ledger("supersede_decision", old=other, new=secret, reason="kept with the other one")
    ledger(
        "set_decision_lifecycle", memory_id=secret, lifecycle="disputed", reason="zebrareason", actor="ada"
    )
    ledger("set_decision_importance", memory_id=secret, importance=0.1)
    request_id = ledger.trace(secret)
    ledger(
        "mark_recall_usage", request_id=request_id, ignored=[{"memory_id": secret, "reason": "zebraignored"}]
    )
    ledger.database.owner.execute(
        "insert into ranked_ledger.enrolment_failures (memory_id, workspace_id, operation, reason, failed_with) "
        "values (%s, 'acme', 'follow', 'zebrafailure', '22000')",
        (secret,),
    )
    assert dump(ledger.database).count("zebra") > 10
    answer = ledger("forget_decision", memory_id=secret)
    assert (answer["already"], answer["thought_deleted"], answer["dependents"]) == (False, True, [top])
    assert "zebra" not in dump(ledger.database)
    assert failed_checks(ledger("ledger_status")) == []


def test_what_it_had_replaced_is_named_where_nothing_replaces_it_now(ledger: Ledger) -> None:
    oldest, old, new = ledger.id("oldest"), ledger.id("old"), ledger.id("new")
    ledger("supersede_decision", old=oldest, new=old)
    ledger("supersede_decision", old=old, new=new)
    assert ledger("forget_decision", memory_id=new)["left_superseded"] == [old]
    assert ledger("forget_decision", memory_id=new)["left_superseded"] == [old], "a repeat says the same"
    assert ledger("get_decision", memory_id=old)["lifecycle_status"] == "superseded"
    other = ledger.id("other")
    ledger("supersede_decision", old=old, new=other)
    third = ledger.id("third")
    ledger("supersede_decision", old=old, new=third)
    assert ledger("forget_decision", memory_id=third)["left_superseded"] == [], "the other one still does"


def test_a_repeat_answers_the_same(ledger: Ledger) -> None:
    memory_id = ledger.id("x")
    top = ledger.id("top", depends_on=[memory_id])
    first = ledger("forget_decision", memory_id=memory_id)
    events = count(ledger.database, "agent_memory_audit_events")
    assert ledger("forget_decision", memory_id=memory_id) == first | {"already": True}
    ledger("forget_decision", memory_id=top)
    assert ledger("forget_decision", memory_id=memory_id) == first | {"already": True}
    assert count(ledger.database, "agent_memory_audit_events") == events + 1


def test_what_rested_on_it_keeps_a_mark(ledger: Ledger) -> None:
    memory_id = ledger.id("x")
    top = ledger.id("top", depends_on=[memory_id])
    answer = ledger("forget_decision", memory_id=memory_id)
    (lost,) = ledger.get(top)["lost_ground"]
    assert (lost["memory_id"], lost["relation"]) == (memory_id, "depends_on")
    assert lost["forgotten_at"] == answer["forgotten_at"]
    assert ledger.get(top)["edges_out"] == []


def test_one_audit_event_with_ids_only_outlives_it(ledger: Ledger) -> None:
    memory_id = ledger.id("x", project_id="billing")
    ledger("forget_decision", memory_id=memory_id)
    event_type, about, project, payload = ledger.database.rows(
        "select event_type, memory_id, project_id, payload from agent_memory_audit_events "
        "where payload ->> 'kind' = 'decision_forgotten'"
    )[0]
    assert (event_type, about, project) == ("memory_edited", None, "billing")
    assert (payload["memory_id"], payload["thought_deleted"], payload["dependents"]) == (memory_id, True, [])


def test_a_thought_that_another_memory_points_to_stays(ledger: Ledger) -> None:
    memory_id = ledger.id("shared")
    ledger.database.owner.execute(
        """insert into agent_memories (workspace_id, memory_type, summary, content, thought_id)
           select 'globex', 'lesson', 's', 'c', m.thought_id from agent_memories m where m.id = %s""",
        (memory_id,),
    )
    assert ledger("forget_decision", memory_id=memory_id)["thought_deleted"] is False
    assert count(ledger.database, "thoughts") == 1
    assert ledger.database.value("select thought_id is not null from agent_memories") is True


def test_a_decision_without_a_thought_is_forgotten_too(ledger: Ledger) -> None:
    memory_id = ledger.database.value(
        "insert into agent_memories (workspace_id, memory_type, summary, content) "
        "values ('acme', 'decision', 's', 'c') returning id::text"
    )
    assert ledger("forget_decision", memory_id=memory_id)["thought_deleted"] is False
    assert count(ledger.database, "agent_memories") == 0


def test_one_that_was_never_enrolled_is_forgotten_too(ledger: Ledger) -> None:
    memory_id = ledger.id("x")
    ledger.database.owner.execute("delete from agent_decision_ledger")
    assert ledger("forget_decision", memory_id=memory_id)["thought_deleted"] is True
    assert count(ledger.database, "agent_memories") == 0


def test_no_digest_of_its_words_is_left_to_compare_a_guess_with(ledger: Ledger) -> None:
    memory_id = ledger.id("x", idempotency_key="one")
    ledger("record_decisions", decisions=[{"content": "y"}], idempotency_key="other")
    ledger("forget_decision", memory_id=memory_id)
    kept = ledger.database.rows("select key, length(digest) from ranked_ledger.idempotency_keys order by key")
    assert kept == [("one", 0), ("other", 32)]
    for content in ("x", "a guess"):
        ledger.refused("RL410", "record_decision", content=content, idempotency_key="one")


def test_the_stream_finds_its_newest_step_again(ledger: Ledger) -> None:
    ledger.id("x")
    newest = ledger.id("y", step_index=40)
    ledger("forget_decision", memory_id=newest)
    assert failed_checks(ledger("ledger_status")) == []
    assert ledger.record("z")["step_index"] == 1


def test_what_is_not_here_is_refused_and_left_alone(ledger: Ledger) -> None:
    theirs = Ledger(ledger.database, workspace="globex").id("theirs")
    lesson = ledger.database.value(
        "insert into agent_memories (workspace_id, memory_type, summary, content) "
        "values ('acme', 'lesson', 's', 'c') returning id::text"
    )
    for absent in (theirs, lesson, NOBODY, str(uuid4())):
        ledger.refused("RL404", "forget_decision", memory_id=absent)
    ledger.refused("22023", "forget_decision", memory_id=None)
    ledger.refused("22023", "forget_decision", workspace_id=" ", memory_id=theirs)
    assert count(ledger.database, "agent_memories") == 2
    gone = ledger.id("gone")
    ledger("forget_decision", memory_id=gone)
    Ledger(ledger.database, workspace="globex").refused("RL404", "forget_decision", memory_id=gone)


def test_an_interrupted_one_leaves_everything(ledger: Ledger) -> None:
    memory_id = ledger.id("x", rationale="y")
    connection = ledger.database.connect("service_role", autocommit=False)
    call(connection, "forget_decision", workspace_id="acme", memory_id=memory_id)
    ledger.database.superuser.execute(
        "select pg_terminate_backend(%s, 10000)", (connection.info.backend_pid,)
    )
    assert ledger.get(memory_id)["rationale"] == "y"
    assert ledger("forget_decision", memory_id=memory_id)["already"] is False


def test_many_at_once_forget_it_once(ledger: Ledger) -> None:
    memory_id = ledger.id("x")

    def forget(connection: Connection) -> Any:
        return call(connection, "forget_decision", workspace_id="acme", memory_id=memory_id)

    answers = at_once(ledger.database, [forget] * 8)
    assert sorted(answer["already"] for answer in answers) == [False] + [True] * 7
    assert len({answer["forgotten_at"] for answer in answers}) == 1


def test_whoever_builds_on_it_at_the_same_time_is_marked_or_refused(ledger: Ledger) -> None:
    for _ in range(10):
        ground = ledger.id("ground")

        def forget(connection: Connection, ground: str = ground) -> Any:
            return call(connection, "forget_decision", workspace_id="acme", memory_id=ground)

        def build(connection: Connection, ground: str = ground) -> Any:
            return call(connection, "record_decision", workspace_id="acme", content="x", depends_on=[ground])

        forgotten, *built = at_once(ledger.database, [forget, build, build, build])
        kept = {answer["memory_id"] for answer in built if not isinstance(answer, psycopg.Error)}
        assert {answer.sqlstate for answer in built if isinstance(answer, psycopg.Error)} <= {"RL410"}
        assert set(forgotten["dependents"]) == kept
        for memory_id in kept:
            assert len(ledger.get(memory_id)["lost_ground"]) == 1


def test_forgetting_recalling_marking_and_recording_at_once_do_not_deadlock(ledger: Ledger) -> None:
    ids = [ledger.id(f"{n}") for n in range(24)]
    requests = [ledger.trace(*ids) for _ in range(6)]

    def forget(number: int) -> Any:
        def work(connection: Connection) -> None:
            for memory_id in ids[number::4]:
                call(connection, "forget_decision", workspace_id="acme", memory_id=memory_id)

        return work

    def mark(request_id: str) -> Any:
        def work(connection: Connection) -> None:
            for start in range(0, 24, 6):
                arguments = {"request_id": request_id, "used": ids[start : start + 6][::-1]}
                call(connection, "mark_recall_usage", workspace_id="acme", **arguments)

        return work

    def record(connection: Connection) -> None:
        for _ in range(10):
            call(connection, "record_decision", workspace_id="acme", content="x")

    def recall(connection: Connection) -> None:
        for _ in range(10):
            assert call(connection, "recall_decisions", workspace_id="acme", match_count=24)["traced"]

    work = [
        recall,
        recall,
        *(forget(number) for number in range(4)),
        *(mark(request_id) for request_id in requests),
        record,
        record,
    ]
    assert at_once(ledger.database, work) == [None] * len(work)
    assert failed_checks(ledger("ledger_status")) == []
