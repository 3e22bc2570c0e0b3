"""record_decision: what is written, what is refused, what a key and a crowd of writers do."""

from __future__ import annotations

from collections import Counter
from typing import Any

import psycopg
import pytest

from tests.conftest import HostMaker
from tests.rig.databases import Connection, Database
from tests.sql.rpc import HOSTILE, NOBODY, Ledger, at_once, call, count, failed_checks, vector

TABLES = (
    "public.thoughts",
    "public.agent_memories",
    "public.agent_decision_ledger",
    "public.agent_decision_edges",
    "public.agent_memory_audit_events",
    "ranked_ledger.idempotency_keys",
    "ranked_ledger.pending_steps",
    "ranked_ledger.enrolment_failures",
)


def rows(database: Database) -> dict[str, int]:
    return {table: count(database, table) for table in TABLES}


def test_answers_everything_that_was_said_and_the_defaults_of_the_rest(ledger: Ledger) -> None:
    ground = ledger.id("Auditors compare invoices")
    said: dict[str, Any] = {
        "content": "Invoices are immutable once sent\nand voided by a second document",
        "rationale": "auditors diff them",
        "alternatives": ["edit in place", "delete"],
        "importance": 0.9,
        "project_id": "billing",
        "task_id": "invoicing",
        "flow_id": "f1",
        "embedding_model": "small",
        "pinned": True,
        "visibility": "workspace",
        "created_by": "user",
        "metadata": {"ticket": 7, "nothing": None},
    }
    answer = ledger.record(**said, depends_on=[ground], embedding=vector(), runtime_name="cli")
    assert {name: answer[name] for name in said} == said
    assert answer["summary"] == "Invoices are immutable once sent"
    assert (answer["step_index"], answer["step_settled"], answer["replayed"]) == (0, True, False)
    assert (answer["lifecycle_status"], answer["review_status"]) == ("active", "pending")
    assert (answer["recall_count"], answer["used_count"], answer["last_recalled_at"]) == (0, 0, None)
    assert answer["ledger_metadata"] == {}
    assert [edge["memory_id"] for edge in ledger.get(answer["memory_id"])["edges_out"]] == [ground]

    plain = ledger.record("Only a text")
    assert (plain["importance"], plain["pinned"], plain["alternatives"], plain["rationale"]) == (
        0.5,
        False,
        [],
        None,
    )
    assert (plain["visibility"], plain["created_by"], plain["metadata"]) == ("project", "agent", {})


def test_the_thought_is_its_own_and_carries_the_vector(ledger: Ledger) -> None:
    first = ledger.id("The same words", embedding=vector())
    second = ledger.id("The same words")
    thoughts = ledger.database.rows(
        """select t.content, t.metadata, t.embedding is not null, t.content_fingerprint is null, m.idempotency_key is null
           from agent_memories m join thoughts t on t.id = m.thought_id where m.id = any (%s::uuid[])
           order by t.embedding is null""",
        ([first, second],),
    )
    source = {"source": "ranked_ledger"}
    assert thoughts == [
        ("The same words", source, True, True, True),
        ("The same words", source, False, True, True),
    ]
    assert ledger.database.value("select count(distinct thought_id) from agent_memories") == 2


def test_an_audit_event_says_that_it_was_written_and_none_of_its_words(ledger: Ledger) -> None:
    memory_id = ledger.id("Secret words", rationale="more of them", created_by="user", project_id="billing")
    events = ledger.database.rows(
        "select event_type, memory_id::text, project_id, actor_kind, payload from agent_memory_audit_events"
    )
    assert events == [("memory_written", memory_id, "billing", "user", {"kind": "decision_recorded"})]


def test_null_arguments_are_arguments_left_out(ledger: Ledger) -> None:
    optional = [
        "summary",
        "rationale",
        "alternatives",
        "importance",
        "step_index",
        "project_id",
        "depends_on",
    ]
    answer = ledger.record("Only a text", **dict.fromkeys([*optional, "embedding", "pinned", "metadata"]))
    assert (answer["summary"], answer["importance"], answer["metadata"]) == ("Only a text", 0.5, {})


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_texts_come_back_as_they_were(ledger: Ledger, text: str) -> None:
    everywhere = {"rationale": text, "task_id": text, "project_id": text, "flow_id": text, "summary": text}
    answer = ledger.record(text, **everywhere, alternatives=[text], metadata={text: text})
    assert {answer["content"], *(answer[name] for name in everywhere), *answer["alternatives"]} == {text}
    assert answer["metadata"] == {text: text}
    elsewhere = Ledger(ledger.database, workspace=text)
    assert elsewhere.record(text, idempotency_key=text)["workspace_id"] == text
    assert elsewhere.get(elsewhere.record(text, idempotency_key=text)["memory_id"])["content"] == text


def test_the_greatest_texts_are_taken(ledger: Ledger) -> None:
    words = " ".join(f"w{number}" for number in range(100_000))[: 256 * 1024]
    answer = ledger.record(words, rationale=words, task_id="t" * 1000, project_id="p" * 1000)
    assert (answer["content"], answer["rationale"]) == (words, words)
    assert len(answer["summary"]) == 200


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ({"content": ""}, "content"),
        ({"content": " \n\t "}, "content"),
        ({"content": None}, "content"),
        ({"content": "é" * (128 * 1024) + "x"}, "content"),
        ({"content": "x" * 1_000_000}, "content"),
        ({"summary": " "}, "summary"),
        ({"summary": "x" * 2001}, "summary"),
        ({"rationale": "x" * 1_000_000}, "rationale"),
        ({"alternatives": "not an array"}, "alternatives"),
        ({"alternatives": {"a": 1}}, "alternatives"),
        ({"alternatives": ["ok", 1]}, "alternatives"),
        ({"alternatives": ["ok", " "]}, "alternatives"),
        ({"alternatives": ["x"] * 21}, "alternatives"),
        ({"alternatives": ["x" * 262_144]}, "alternatives"),
        ({"importance": -0.01}, "importance"),
        ({"importance": 1.01}, "importance"),
        ({"importance": "NaN"}, "importance"),
        ({"importance": "Infinity"}, "importance"),
        ({"step_index": -1}, "step_index"),
        ({"step_index": 1_000_000_001}, "step_index"),
        ({"step_index": 2**62}, "step_index"),
        ({"task_id": "t" * 1001}, "task_id"),
        ({"project_id": "p" * 1_000_000}, "project_id"),
        ({"depends_on": [None]}, "depends_on"),
        ({"depends_on": [NOBODY] * 101}, "depends_on"),
        ({"embedding": ""}, "embedding"),
        ({"embedding": "[0.1,nan]"}, "embedding"),
        ({"embedding": "[0.1,inf]"}, "embedding"),
        ({"embedding": "[0.1,1e300]"}, "embedding"),
        ({"embedding": "[]"}, "embedding"),
        ({"embedding": "drop table"}, "embedding"),
        ({"embedding": "[" + ",".join(["1"] * 20_000) + "]"}, "embedding"),
        ({"embedding": "[" + ",".join(["0"] * 1536) + "]"}, "embedding"),
        ({"embedding_model": "small"}, "embedding_model"),
        ({"visibility": "everybody"}, "visibility"),
        ({"created_by": "root"}, "created_by"),
        ({"metadata": []}, "metadata"),
        ({"metadata": "text"}, "metadata"),
        ({"metadata": {"x": "x" * 262_144}}, "metadata"),
        ({"workspace_id": " "}, "p_workspace_id"),
        ({"workspace_id": None}, "p_workspace_id"),
        ({"workspace_id": "w" * 1001}, "p_workspace_id"),
        ({"idempotency_key": " "}, "p_idempotency_key"),
        ({"idempotency_key": "k" * 256}, "p_idempotency_key"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_a_bad_argument_is_named_and_nothing_is_written(
    shared_ledger: Ledger, arguments: dict[str, Any], names: str
) -> None:
    said = shared_ledger.refused("22023", "record_decision", **{"content": "A decision"} | arguments)
    assert names in str(said.message_primary)
    assert said.message_hint
    assert sum(rows(shared_ledger.database).values()) == 0


@pytest.mark.parametrize(
    "arguments",
    [
        {"importance": "very"},
        {"step_index": 1.5},
        {"step_index": "seven"},
        {"step_index": 2**70},
        {"pinned": "perhaps"},
        {"depends_on": "not an array"},
        {"depends_on": ["not an id"]},
    ],
    ids=str,
)
def test_a_wrong_type_is_refused_by_the_database_itself(
    shared_ledger: Ledger, arguments: dict[str, Any]
) -> None:
    with pytest.raises(psycopg.DataError):
        shared_ledger.record(**arguments)
    assert sum(rows(shared_ledger.database).values()) == 0


def test_another_dimension_is_refused_with_both_numbers(ledger: Ledger) -> None:
    said = ledger.refused("RL463", "record_decision", content="A decision", embedding="[1,2,3]")
    assert "3" in str(said.message_primary)
    assert "1536" in str(said.message_primary)
    assert count(ledger.database, "thoughts") == 0


def test_a_ground_that_is_not_there_is_refused_and_nothing_is_written(ledger: Ledger) -> None:
    elsewhere = Ledger(ledger.database, workspace="globex").id("A secret of Globex")
    gone = ledger.id("Soon forgotten")
    ledger("forget_decision", memory_id=gone)
    lesson = str(
        ledger.database.value(
            "insert into agent_memories (workspace_id, memory_type, summary, content) "
            "values ('acme', 'lesson', 's', 'c') returning id"
        )
    )
    before = rows(ledger.database)
    messages = set()
    for absent in (elsewhere, NOBODY, lesson):
        said = ledger.refused("RL404", "record_decision", content="x", depends_on=[absent])
        messages.add((str(said.message_primary).replace(absent, "?"), said.message_detail, said.message_hint))
    assert len(messages) == 1, "what exists elsewhere looks like what exists nowhere"
    ledger.refused("RL410", "record_decision", content="x", depends_on=[gone])
    assert rows(ledger.database) == before


def test_a_ground_named_twice_is_one_edge(ledger: Ledger) -> None:
    ground = ledger.id("Ground")
    top = ledger.id("Top", depends_on=[ground, ground.upper(), ground])
    assert len(ledger.get(top)["edges_out"]) == 1


def test_a_given_step_is_kept_and_the_next_one_follows_it(ledger: Ledger) -> None:
    steps = [ledger.record("x", step_index=step)["step_index"] for step in (None, 7, None, 7, 3, None)]
    assert steps == [0, 7, 8, 7, 3, 9]
    assert ledger.record("x", step_index=1_000_000_000)["step_index"] == 1_000_000_000
    assert failed_checks(ledger("ledger_status")) == []


def test_an_argument_goes_before_what_the_metadata_says(ledger: Ledger) -> None:
    metadata = {"step_index": 40, "rationale": "from the metadata", "importance": 0.2}
    told = ledger.record("x", metadata=metadata)
    assert (told["step_index"], told["rationale"], told["importance"]) == (40, "from the metadata", 0.2)
    said = ledger.record("x", metadata=metadata, step_index=41, rationale="said", importance=1)
    assert (said["step_index"], said["rationale"], said["importance"]) == (41, "said", 1)
    assert said["metadata"] == metadata


def test_a_repeat_with_the_key_answers_the_first_write(ledger: Ledger) -> None:
    first = ledger.record("x", idempotency_key="k", importance=0.4)
    before = rows(ledger.database)
    again = ledger.record("x", idempotency_key="k", importance=0.4)
    assert again == first | {"replayed": True}
    assert rows(ledger.database) == before
    ledger("pin_decision", memory_id=first["memory_id"])
    assert ledger.record("x", idempotency_key="k", importance=0.4)["pinned"], "as it is now"


def test_a_key_belongs_to_its_request_its_workspace_and_its_operation(ledger: Ledger) -> None:
    first = ledger.id("x", idempotency_key="k")
    for other in ({"content": "y"}, {"content": "x", "pinned": True}, {"content": "x", "step_index": 0}):
        ledger.refused("RL409", "record_decision", **other, idempotency_key="k")
    assert Ledger(ledger.database, workspace="globex").id("y", idempotency_key="k") != first
    batch = ledger("record_decisions", decisions=[{"content": "x"}], idempotency_key="k")
    assert batch["replayed"] is False


def test_a_vector_is_no_part_of_what_a_key_stands_for(ledger: Ledger) -> None:
    first = ledger.record("x", idempotency_key="k", embedding=vector(1536), embedding_model="m")
    for other in ({}, {"embedding": vector(1536, 2), "embedding_model": "m"}):
        again = ledger.record("x", **other, idempotency_key="k")
        assert (again["memory_id"], again["replayed"]) == (first["memory_id"], True)
        assert again["embedding_model"] == "m"


def test_a_key_whose_decision_is_gone_says_so(ledger: Ledger) -> None:
    forgotten = ledger.id("x", idempotency_key="forgotten")
    ledger("forget_decision", memory_id=forgotten)
    ledger.refused("RL410", "record_decision", content="x", idempotency_key="forgotten")
    deleted = ledger.id("x", idempotency_key="deleted")
    ledger.database.owner.execute("delete from agent_memories where id = %s", (deleted,))
    ledger.refused("RL410", "record_decision", content="x", idempotency_key="deleted")
    moved = ledger.id("x", idempotency_key="moved")
    ledger.database.owner.execute("update agent_memories set workspace_id = 'globex' where id = %s", (moved,))
    assert "globex" not in str(
        ledger.refused("RL410", "record_decision", content="x", idempotency_key="moved")
    )


def test_a_key_of_a_write_that_failed_is_free(ledger: Ledger) -> None:
    ledger.refused("RL404", "record_decision", content="x", depends_on=[NOBODY], idempotency_key="k")
    assert ledger.record("x", idempotency_key="k")["replayed"] is False


def test_none_of_the_words_stay_beside_a_key(ledger: Ledger) -> None:
    ledger.id("Secret words", rationale="more", idempotency_key="k")
    kept = str(ledger.database.rows("select k::text from ranked_ledger.idempotency_keys k"))
    assert "Secret" not in kept
    assert "more" not in kept


def test_two_calls_with_one_key_at_once_write_once(ledger: Ledger) -> None:
    def write(connection: Connection) -> Any:
        return call(connection, "record_decision", workspace_id="acme", content="x", idempotency_key="k")

    answers = at_once(ledger.database, [write] * 16)
    assert len({answer["memory_id"] for answer in answers}) == 1
    assert Counter(answer["replayed"] for answer in answers) == {True: 15, False: 1}
    assert count(ledger.database, "agent_memories") == count(ledger.database, "thoughts") == 1


def test_two_requests_with_one_key_at_once_write_one_of_them(ledger: Ledger) -> None:
    def write(content: str) -> Any:
        return lambda connection: call(
            connection, "record_decision", workspace_id="acme", content=content, idempotency_key="k"
        )

    answers = at_once(ledger.database, [write("x"), write("y")])
    refused = [answer.sqlstate for answer in answers if isinstance(answer, psycopg.Error)]
    assert refused == ["RL409"]
    assert count(ledger.database, "agent_memories") == 1


def test_sixty_four_writers_of_one_stream_hear_the_steps_that_are_stored(ledger: Ledger) -> None:
    def write(connection: Connection) -> Any:
        return call(connection, "record_decision", workspace_id="acme", content="x", task_id="t")

    answers = at_once(ledger.database, [write] * 64)
    told = {answer["memory_id"]: answer["step_index"] for answer in answers}
    stored = dict(ledger.database.rows("select memory_id::text, step_index from agent_decision_ledger"))
    assert told == stored
    assert sorted(told.values()) == list(range(64))
    assert all(answer["step_settled"] for answer in answers)
    assert failed_checks(ledger("ledger_status")) == []


def test_an_open_transaction_of_the_host_blocks_nobody(ledger: Ledger) -> None:
    with ledger.database.connect(autocommit=False) as host:
        host.execute(
            "insert into agent_memories (workspace_id, memory_type, summary, content) "
            "values ('acme', 'decision', 's', 'from the host')"
        )
        assert ledger.record("x")["step_index"] == 0
        host.commit()
    steps = ledger.database.rows("select step_index from agent_decision_ledger order by step_index")
    assert steps == [(0,), (1,)]


def test_a_writer_that_is_killed_leaves_nothing_and_its_key_free(ledger: Ledger) -> None:
    connection = ledger.database.connect("service_role", autocommit=False)
    call(connection, "record_decision", workspace_id="acme", content="x", idempotency_key="k", task_id="t")
    pid = connection.info.backend_pid
    ledger.database.superuser.execute("select pg_terminate_backend(%s, 10000)", (pid,))
    with pytest.raises(psycopg.OperationalError):
        connection.execute("select 1")
    assert sum(rows(ledger.database).values()) == 0
    answer = ledger.record("x", idempotency_key="k", task_id="t")
    assert (answer["replayed"], answer["step_index"]) == (False, 0)


def test_an_answer_that_got_lost_is_asked_for_again(ledger: Ledger) -> None:
    connection = ledger.database.connect("service_role")
    first = call(connection, "record_decision", workspace_id="acme", content="x", idempotency_key="k")
    connection.close()
    assert ledger.record("x", idempotency_key="k")["memory_id"] == first["memory_id"]


@pytest.mark.parametrize("isolation", ["repeatable read", "serializable"])
def test_an_old_snapshot_keeps_its_step_provisional_and_says_so(ledger: Ledger, isolation: str) -> None:
    with ledger.database.connect("service_role", autocommit=False) as late:
        late.execute(f"set transaction isolation level {isolation}")
        late.execute("select 1 from agent_memories")
        assert ledger.record("first")["step_index"] == 0
        answer = call(late, "record_decision", workspace_id="acme", content="second")
        assert answer["step_settled"] is False
        late.commit()
    third = ledger.record("third")
    steps = ledger.database.rows("select step_index from agent_decision_ledger order by step_index")
    assert steps == [(0,), (1,), (2,)]
    assert third["step_settled"] is True
    assert ledger.get(answer["memory_id"])["step_settled"] is True


def test_a_decision_that_the_trigger_does_not_enrol_is_enrolled_all_the_same(ledger: Ledger) -> None:
    ledger.database.owner.execute(
        "alter table agent_memories disable trigger trg_agent_decision_ledger_enroll"
    )
    answer = ledger.record("x", importance=0.7)
    assert (answer["importance"], answer["step_settled"]) == (0.7, True)


def test_a_decision_that_cannot_be_enrolled_is_not_written_at_all(ledger: Ledger) -> None:
    ledger.database.owner.execute(
        "alter table agent_decision_ledger add constraint nothing_more check (memory_id is null) not valid"
    )
    said = ledger.refused("RL500", "record_decision", content="x", idempotency_key="k")
    assert "nothing_more" in str(said.message_primary)
    assert sum(rows(ledger.database).values()) == 0


FINGERPRINTS = """
create function public.fingerprint() returns trigger language plpgsql as $$
begin
  new.content_fingerprint := encode(sha256(convert_to(lower(btrim(regexp_replace(new.content, '\\s+', ' ', 'g'))), 'UTF8')), 'hex');
  return new;
end $$;
create trigger fingerprint before insert on public.thoughts for each row execute function public.fingerprint();
"""


def test_a_host_that_fingerprints_by_itself_shares_the_thought(ledger: Ledger) -> None:
    ledger.database.owner.execute(FINGERPRINTS)
    ledger.database.owner.execute(
        "insert into thoughts (content, metadata) values ('The same', '{\"source\": \"host\"}')"
    )
    ledger.record("the  same", embedding=vector(), embedding_model="small")
    second = ledger.record("The same", embedding=vector(axis=1), embedding_model="large")
    assert ledger.database.rows("select metadata, embedding::text = %s from thoughts", (vector(),)) == [
        ({"source": "host"}, True)
    ]
    assert second["embedding_model"] is None, "its vector was not stored"
    assert count(ledger.database, "agent_memories") == 2


@pytest.mark.parametrize("dimension", [384, 3072])
def test_records_beside_a_host_install_of_any_dimension(ledger_host: HostMaker, dimension: int) -> None:
    ledger = Ledger(ledger_host(dimension=dimension, vector_schema="public", fingerprint=dimension == 384))
    before = count(ledger.database, "thoughts")
    assert ledger.record("x", embedding=vector(dimension), embedding_model="m")["embedding_model"] == "m"
    assert count(ledger.database, "thoughts") == before + 1


@pytest.mark.parametrize("role", ["anon", "authenticated"])
def test_the_public_keys_may_not_record(ledger: Ledger, role: str) -> None:
    connection = ledger.database.connect(role)
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        call(connection, "record_decision", workspace_id="acme", content="x")


def test_metadata_that_readers_of_json_give_up_on_is_refused(ledger: Ledger) -> None:
    def write(depth: int) -> None:
        metadata = '{"a":' * depth + "1" + "}" * depth
        ledger.connection.execute("select record_decision('acme', 'x', p_metadata => %s)", (metadata,))

    write(99)
    for depth in (100, 5000):
        with pytest.raises(psycopg.Error, match="metadata is nested 100 levels deep or more") as refused:
            write(depth)
        assert refused.value.sqlstate == "22023"


@pytest.mark.parametrize("name", ["alternatives", "metadata", "depends_on"])
def test_a_hundred_thousand_elements_are_refused_at_once(ledger: Ledger, name: str) -> None:
    many = [f"{number:08x}-0000-4000-8000-000000000000" for number in range(100_000)]
    given = {"ids": many} if name == "metadata" else many
    ledger.connection.execute("set statement_timeout = '5s'")
    ledger.refused("22023", "record_decision", content="x", **{name: given})
