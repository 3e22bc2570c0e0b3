"""A push while agents are writing: nothing fails, nothing is lost, nothing stays without its ledger row."""

from __future__ import annotations

import itertools
import threading
from functools import partial

import psycopg
import pytest

from tests.rig import deploy
from tests.rig.catalogue import catalogue

INSERT = """insert into agent_memories (workspace_id, project_id, task_id, memory_type, summary, content, thought_id)
values ('acme', 'load', %s, 'decision', 's', 'c', %s) returning id"""
WITHOUT_A_ROW = """select count(*) from agent_memories m where memory_type = 'decision'
  and not exists (select from agent_decision_ledger l where l.memory_id = m.id)"""
SHARED_STEPS = """select stream_id, step_index from agent_decision_ledger where project_id = 'load'
group by 1, 2 having count(*) > 1"""


def run_in_thread(work) -> tuple[threading.Thread, list[BaseException]]:
    failed: list[BaseException] = []

    def run():
        try:
            work()
        except BaseException as error:  # the test's own thread reports it
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, failed


def test_a_push_waits_for_an_open_writer_and_enrols_what_it_wrote(open_brain_host):
    host = open_brain_host()
    deploy.apply(host, "open_brain")
    writer = host.connect("service_role", autocommit=False)
    (memory,) = writer.execute(INSERT, ("open", None)).fetchone()

    push, failed = run_in_thread(lambda: deploy.apply(host, "decision_ledger"))
    host.wait_until(
        "select exists (select from pg_locks l join pg_stat_activity a using (pid) "
        "where not l.granted and a.datname = current_database())"
    )
    writer.commit()
    push.join()

    assert failed == []
    assert host.value("select step_index from agent_decision_ledger where memory_id = %s", (memory,)) == 0


@pytest.mark.parametrize("installed", [False, True], ids=["a first push", "a re-run"])
def test_writers_that_go_on_during_a_push_lose_nothing(open_brain_host, ledger_host, installed):
    host = ledger_host() if installed else open_brain_host()
    deploy.apply(host, "open_brain")
    done = threading.Event()
    written: list[list[object]] = []

    def write_until_done(connection: psycopg.Connection, ids: list[object]):
        while not (done.is_set() and len(ids) > 50):
            with connection.transaction():
                (thought,) = connection.execute(
                    "insert into thoughts (content) values (gen_random_uuid()::text) returning id"
                ).fetchone()
                ids.append(connection.execute(INSERT, ("busy", thought)).fetchone()[0])

    def write(connection: psycopg.Connection):
        ids: list[object] = []
        written.append(ids)
        return run_in_thread(lambda: write_until_done(connection, ids))

    writers = [write(host.connect("service_role")) for _ in range(4)]
    deploy.apply(host, "decision_ledger")
    done.set()
    for thread, _ in writers:
        thread.join()

    assert [failed for _, failed in writers if failed] == []
    total = sum(len(ids) for ids in written)
    assert host.value("select count(*) from agent_memories where task_id = 'busy'") == total
    assert host.value(WITHOUT_A_ROW) == 0
    assert host.rows(SHARED_STEPS) == []


@pytest.mark.parametrize("kind", ["empty_project", "open_brain_host", "published_proposal_host"])
def test_two_pushes_at_once_both_succeed(kind, request):
    database = request.getfixturevalue(kind)()
    areas = ("open_brain", "decision_ledger", "long_term_memory")
    pushes = [run_in_thread(lambda: deploy.apply(database, *areas)) for _ in range(2)]
    for thread, _ in pushes:
        thread.join()

    assert [failed for _, failed in pushes if failed] == []
    assert database.value(WITHOUT_A_ROW) == 0


VERBS = (
    "select record_decision('w', 'some text', p_task_id => 't', p_depends_on => array[{id}]::uuid[])",
    "select pin_decision('w', {id})",
    "select set_decision_importance('w', {id}, 0.7)",
    "select set_decision_lifecycle('w', {id}, 'stale')",
    "select recall_decisions('w', 'some text')",
    "select get_decision('w', {id})",
)


@pytest.mark.parametrize(
    "areas",
    [
        pytest.param(("decision_ledger", "decision_ledger"), id="the ledger again"),
        pytest.param(
            ("long_term_memory", "decision_ledger", "long_term_memory"), id="with the long-term memory"
        ),
    ],
)
def test_no_verb_fails_and_nothing_deadlocks_while_the_ledger_is_installed_again(areas, ledger_db):
    ids = [
        ledger_db.value("select record_decision('w', 'some text') ->> 'memory_id'", role="service_role")
        for _ in range(8)
    ]
    done = threading.Event()

    def call_until_done(connection: psycopg.Connection, verb: str):
        for number in itertools.count():
            connection.execute(verb.format(id=f"'{ids[number % len(ids)]}'"))
            if done.is_set():
                return

    def call(verb: str):
        connection = ledger_db.connect("service_role")
        return run_in_thread(lambda: call_until_done(connection, verb))

    callers = [call(verb) for verb in VERBS]
    runs = [deploy.psql(ledger_db, deploy.migration(area)) for area in areas]
    done.set()
    for thread, _ in callers:
        thread.join()

    assert [run.stderr for run in runs if run.returncode != 0] == []
    assert [failed for _, failed in callers if failed] == []


def test_a_push_gives_up_behind_a_transaction_that_stays_open_and_says_so(open_brain_host):
    host = open_brain_host()
    deploy.apply(host, "open_brain")
    before = catalogue(host)
    writer = host.connect("service_role", autocommit=False)
    writer.execute(INSERT, ("open", None))

    done = deploy.psql(host, deploy.migration("decision_ledger"))

    assert "55P03" in done.stderr
    assert "kept public.agent_memories or the ledger busy" in done.stderr
    assert catalogue(host) == before
    writer.commit()
    deploy.apply(host, "decision_ledger")


ORG = "00000000-0000-4000-8000-00000000000a"
MEMORY = f"""insert into long_term_memory.agent_memories (org_id, subject_type, text)
values ('{ORG}', 'workspace', 'some words')"""


@pytest.fixture
def remembering(full_project):
    """Everything of ours, with one organization."""
    database = full_project()
    database.owner.execute(f"insert into long_term_memory.organizations (id) values ('{ORG}')")
    return database


def test_no_memory_fails_or_is_lost_while_the_long_term_memory_is_installed_again(remembering):
    done = threading.Event()
    written = []

    def write_until_done(connection: psycopg.Connection):
        for number in itertools.count(1):
            connection.execute(MEMORY)
            connection.execute(
                "update long_term_memory.agent_memories set redacted_at = now() where id = "
                "(select id from long_term_memory.agent_memories where redacted_at is null limit 1 for update skip locked)"
            )
            if done.is_set() and number > 50:
                written.append(number)
                return

    writers = [
        run_in_thread(partial(write_until_done, remembering.connect("service_role"))) for _ in range(4)
    ]
    runs = [deploy.psql(remembering, deploy.migration("long_term_memory")) for _ in range(2)]
    done.set()
    for thread, _ in writers:
        thread.join()

    assert [run.stderr for run in runs if run.returncode != 0] == []
    assert [failed for _, failed in writers if failed] == []
    assert remembering.value("select count(*) from long_term_memory.agent_memories") == sum(written)


def test_a_push_of_the_long_term_memory_gives_up_behind_a_transaction_that_stays_open(remembering):
    before = catalogue(remembering)
    writer = remembering.connect("service_role", autocommit=False)
    writer.execute(MEMORY)

    done = deploy.psql(remembering, deploy.migration("long_term_memory"))

    assert "55P03" in done.stderr
    assert "kept the long-term memory busy" in done.stderr
    assert catalogue(remembering) == before
    writer.commit()
    deploy.apply(remembering, "long_term_memory")
