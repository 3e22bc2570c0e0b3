"""Our Open Brain: it appears only where it is absent, and its functions keep the contract."""

from __future__ import annotations

import hashlib
import threading

import pytest
from psycopg import errors

from tests.rig import deploy
from tests.rig.catalogue import catalogue, differences
from tests.rig.contents import contents
from tests.rig.hosts import HOST_TABLES

FOLDED = hashlib.sha256(b"a thought of mine").hexdigest()


@pytest.fixture
def open_brain(empty_project):
    database = empty_project()
    deploy.apply(database, "open_brain")
    return database


@pytest.mark.parametrize("default_privileges", ["old", "none"])
def test_a_complete_install_gets_nothing_at_all(open_brain_host, default_privileges):
    host = open_brain_host(default_privileges=default_privileges)
    before, held = catalogue(host), contents(host)
    deploy.apply(host, "open_brain")

    assert differences(before, catalogue(host)) == []
    assert contents(host) == held


def test_an_empty_project_gets_every_table_of_the_contract(open_brain):
    names = open_brain.rows("select tablename from pg_tables where schemaname = 'public' order by 1")

    assert [name for (name,) in names] == sorted(HOST_TABLES)


def test_only_what_is_missing_is_added_and_the_tables_that_were_there_stay_as_they_are(open_brain_host):
    host = open_brain_host()
    host.owner.execute(
        "drop table agent_memory_artifacts, agent_memory_recall_items; drop function match_thoughts"
    )
    before = catalogue(host)
    deploy.apply(host, "open_brain")
    changed = differences(before, catalogue(host))

    assert changed != []
    ours = ("agent_memory_artifacts", "agent_memory_recall_items", "match_thoughts")
    assert [line for line in changed if not any(name in line for name in ours)] == []


def test_a_function_of_the_same_name_with_other_arguments_is_not_overloaded(open_brain_host):
    host = open_brain_host()
    host.owner.execute(
        "drop function upsert_thought; "
        "create function upsert_thought(body text) returns text language sql as 'select body'"
    )
    deploy.apply(host, "open_brain")

    assert host.value("select count(*) from pg_proc where proname = 'upsert_thought'") == 1


@pytest.mark.parametrize("fingerprint", [True, False], ids=["with fingerprints", "without fingerprints"])
def test_upsert_thought_stores_a_text_once_and_merges_metadata(open_brain_host, fingerprint):
    host = open_brain_host(fingerprint=fingerprint)
    host.owner.execute("drop function if exists upsert_thought")
    deploy.apply(host, "open_brain")

    def upsert(text: str, metadata: str) -> dict:
        return host.value("select upsert_thought(%s, %s::jsonb)", (text, metadata), role="service_role")

    first = upsert("  A thought\n of   mine ", '{"metadata": {"a": 1, "b": 1}}')
    again = upsert("a Thought of mine", '{"metadata": {"b": 2}}')
    nothing = upsert("A THOUGHT OF MINE", '{"metadata": "no object"}')

    assert first == again == nothing == {"id": first["id"], "fingerprint": FOLDED}
    assert host.rows("select content, metadata from thoughts where id = %s", (first["id"],)) == [
        ("  A thought\n of   mine ", {"a": 1, "b": 2})
    ]


@pytest.mark.parametrize("fingerprint", [True, False], ids=["with fingerprints", "without fingerprints"])
def test_writers_of_one_text_at_the_same_time_store_it_once(open_brain_host, fingerprint):
    host = open_brain_host(fingerprint=fingerprint)
    host.owner.execute("drop function if exists upsert_thought")
    deploy.apply(host, "open_brain")
    connections = [host.connect("service_role") for _ in range(6)]
    start = threading.Barrier(len(connections))
    answers = []

    def write(connection):
        start.wait()
        answers.append(connection.execute("select upsert_thought('A thought of mine')").fetchone()[0]["id"])

    writers = [threading.Thread(target=write, args=(connection,)) for connection in connections]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()

    assert len(answers) == len(connections)
    assert len(set(answers)) == 1


def test_upsert_thought_raises_when_another_unique_rule_of_the_host_is_broken(open_brain_host):
    host = open_brain_host()
    host.owner.execute("drop function upsert_thought; create unique index on thoughts (content)")
    deploy.apply(host, "open_brain")

    with pytest.raises(errors.UniqueViolation):
        host.service.execute("select upsert_thought('Thought number 1')")


def test_match_thoughts_answers_the_nearest_first_above_the_threshold(open_brain):
    open_brain.service.execute(
        """insert into thoughts (content, embedding, metadata)
        select i::text, (array[i, 1] || array_fill(0, array[1534]))::vector,
          jsonb_build_object('even', i % 2 = 0)
        from generate_series(0, 4) i
        union all select 'zero', array_fill(0, array[1536])::vector, '{}'
        union all select 'none', null, '{}'"""
    )
    query = "(array[0, 1] || array_fill(0, array[1534]))::vector"

    def match(arguments: str) -> list[str]:
        rows = open_brain.rows(f"select content from match_thoughts({query}{arguments})", role="service_role")
        return [content for (content,) in rows]

    assert match("") == ["0", "1"]
    assert match(", 0.2, 3") == ["0", "1", "2"]
    assert match(", match_threshold => 0, filter => '{\"even\": true}'") == ["0", "2", "4"]
    assert match(", match_threshold => -1, match_count => null") == ["0", "1", "2", "3", "4"]


def test_an_update_refreshes_updated_at_whatever_was_sent(open_brain):
    memory = open_brain.value(
        """insert into agent_memories (workspace_id, memory_type, summary, content, updated_at)
        values ('w', 'lesson', 's', 'c', '2020-01-01') returning id""",
        role="service_role",
    )
    open_brain.service.execute("update agent_memories set updated_at = '2020-01-01' where id = %s", (memory,))

    assert open_brain.value("select updated_at > now() - interval '1 hour' from agent_memories")


@pytest.mark.parametrize(
    ("columns", "values"),
    [
        ("visibility", "'everybody'"),
        ("memory_type", "'rumour'"),
        ("lifecycle_status", "'gone'"),
        ("provenance_status", "'guessed'"),
        ("confidence", "1.5"),
        ("created_by", "'nobody'"),
        ("review_status", "'maybe'"),
        ("can_use_as_instruction", "true"),
    ],
)
def test_a_memory_outside_of_the_closed_lists_is_refused(open_brain, columns, values):
    given = {
        "workspace_id": "'w'",
        "memory_type": "'lesson'",
        "summary": "'s'",
        "content": "'c'",
        columns: values,
    }

    with pytest.raises(errors.CheckViolation):
        open_brain.service.execute(
            f"insert into agent_memories ({', '.join(given)}) values ({', '.join(given.values())})"
        )
