"""Whatever a memory's metadata says, the memory is written, the decision enrolled, and the caller sees no error."""

from __future__ import annotations

import json
import random
import string

import pytest
from psycopg import errors, sql

from tests.rig.databases import Database
from tests.sql.write_path import assert_consistent, failures, ledger_row, remember, steps

UNUSABLE = [
    "abc",
    -1,
    10**30,
    2147483647,
    2.5,
    True,
    None,
    {"at": 3},
    [1],
    "",
    "1e3",
    " 7",
    "99999999999",
    "٣",
    -0.5,
]
UNUSABLE_TEXT = ["1e-16000", "1" + "0" * 5000, "1000000001"]
DISTINCT_MEGABYTE = " ".join(f"w{number:06d}" for number in range(130_000))
ONE_WORD_MEGABYTE = "caching " * 131_072


@pytest.mark.parametrize("place", ["top", "agent_memory"])
@pytest.mark.parametrize("value", UNUSABLE, ids=json.dumps)
def test_an_unusable_step_gives_the_next_one_and_is_kept_with_the_reason(ledger_db: Database, value, place):
    remember(ledger_db.service, metadata={"step_index": 6})
    metadata = {"step_index": value}
    memory = remember(ledger_db.service, metadata=metadata if place == "top" else {"agent_memory": metadata})

    row = ledger_row(ledger_db, memory)
    assert row["step_index"] == 7
    assert row["metadata"]["step_given"] == value
    assert row["metadata"]["step_reason"] == "not a whole number from 0 to 1000000000"
    assert_consistent(ledger_db)


@pytest.mark.parametrize("text", UNUSABLE_TEXT, ids=["tiny", "huge", "one too many"])
def test_numbers_beyond_any_type_are_unusable_steps(ledger_db: Database, text):
    memory = remember(ledger_db.service, metadata=f'{{"step_index": {text}}}')
    assert ledger_row(ledger_db, memory)["step_index"] == 0
    assert "step_reason" in ledger_row(ledger_db, memory)["metadata"]


@pytest.mark.parametrize(
    ("metadata", "step"),
    [
        ({"step_index": 0}, 0),
        ({"step_index": 1_000_000_000}, 1_000_000_000),
        ({"step_index": "12"}, 12),
        ('{"step_index": 3.000}', 3),
        ({"agent_memory": {"step_index": 5}, "step_index": 9}, 5),
        ({"agent_memory": {"step_index": None}, "step_index": 9}, 9),
        ({"agent_memory": "text", "step_index": 9}, 9),
    ],
)
def test_a_valid_step_is_kept_as_given(ledger_db: Database, metadata, step):
    memory = remember(ledger_db.service, metadata=metadata)
    assert ledger_row(ledger_db, memory)["step_index"] == step
    assert ledger_row(ledger_db, memory)["metadata"] == {}
    assert_consistent(ledger_db)


@pytest.mark.parametrize("metadata", [None, "[]", '"text"', "7", "null", "{}"])
def test_metadata_need_not_be_an_object(ledger_db: Database, metadata):
    memory = remember(ledger_db.service, metadata=metadata)
    assert ledger_row(ledger_db, memory)["step_index"] == 0


def test_a_missing_task_is_a_stream_of_its_own(ledger_db: Database):
    for task in (None, "", None, "", "-"):
        remember(ledger_db.service, task_id=task)
    assert steps(ledger_db, None) == [0, 1]
    assert steps(ledger_db, "") == [0, 1]
    assert steps(ledger_db, "-") == [0]
    assert_consistent(ledger_db)


@pytest.mark.parametrize("where", ["rationale", "content"])
@pytest.mark.parametrize(
    ("text", "word"),
    [(DISTINCT_MEGABYTE, "w000007"), (ONE_WORD_MEGABYTE, "caching")],
    ids=["distinct words", "one word"],
)
def test_a_megabyte_of_text_is_enrolled_and_found(ledger_db: Database, text, word, where):
    if where == "rationale":
        memory = remember(ledger_db.service, metadata={"rationale": text})
    else:
        memory = remember(ledger_db.service, text)

    assert ledger_db.value(
        "select search_lexemes @@ plainto_tsquery('english', %s) from agent_decision_ledger"
        " where memory_id = %s",
        (word, memory),
    )
    assert len(ledger_row(ledger_db, memory)["rationale"] or text) == len(text)
    assert_consistent(ledger_db)


def test_a_text_of_many_megabytes_does_not_use_up_the_statement_timeout_of_the_api(ledger_db: Database):
    writer = ledger_db.connect("service_role")
    writer.execute("set statement_timeout = '8s'")
    memory = remember(writer, " ".join(f"w{number:07d}" for number in range(1_500_000)))
    assert ledger_row(ledger_db, memory)["step_index"] == 0


@pytest.mark.parametrize(
    "text",
    [
        "\\u0000",
        "a\\u0000b",
        "😀👩‍👩‍👧‍👦 ok",
        "\ud83d".encode("utf-8", "replace").decode(),
        "\x01\x1f\x7f",
        "\u202eabc",
        "'';--",
        "%s",
    ],
)
def test_escapes_and_emoji_are_kept_as_they_are(ledger_db: Database, text):
    memory = remember(
        ledger_db.service,
        text + " content",
        metadata={"rationale": text, "alternatives": [text]},
        task_id=text,
    )
    row = ledger_row(ledger_db, memory)
    assert (row["rationale"], row["alternatives"], row["task_id"]) == (text, [text], text)
    assert_consistent(ledger_db)


@pytest.mark.parametrize(
    "metadata",
    [
        "[" * 900 + "]" * 900,
        '{"step_index": ' + "[" * 900 + "]" * 900 + "}",
        '{"step_index": "' + "x" * 100_000 + '"}',
        json.dumps({"k" * 100_000: 1, "step_index": {"k" * 100_000: 1}}),
        '{"rationale": {"deep": [1, 2]}, "alternatives": {"a": 1}, "importance": "high"}',
        json.dumps({"alternatives": [*map(str, range(50)), 7, None, {}], "importance": 1e300}),
        '{"importance": -1e-300}',
    ],
    ids=["deep", "deep step", "long step", "long key", "wrong types", "too many", "tiny importance"],
)
def test_hostile_json_is_enrolled(ledger_db: Database, metadata):
    memory = remember(ledger_db.service, metadata=metadata)
    row = ledger_row(ledger_db, memory)
    assert row["step_index"] == 0
    assert 0 <= row["importance"] <= 1
    assert len(row["alternatives"]) <= 20
    assert len(json.dumps(row["metadata"])) < 2000


SAID = {"rationale": "because", "importance": 0.87, "alternatives": ["one", "two"], "step_index": 7}


def facts(database: Database, memory) -> dict:
    row = ledger_row(database, memory)
    return {name: row[name] for name in SAID}


@pytest.mark.parametrize(
    "confidence", [{}, {"confidence": 0.2}, {"confidence": 0}, {"confidence": 1}], ids=str
)
@pytest.mark.parametrize("place", ["top", "agent_memory"])
def test_what_the_metadata_says_of_the_decision_reaches_the_ledger(ledger_db: Database, place, confidence):
    other = {"source": "host", "tags": [1]}
    metadata = SAID | other if place == "top" else {"agent_memory": SAID | other} | other
    memory = remember(ledger_db.service, metadata=metadata, **confidence)
    assert facts(ledger_db, memory) == SAID
    assert ledger_row(ledger_db, memory)["metadata"] == {}
    assert_consistent(ledger_db)


@pytest.mark.parametrize("name", SAID)
def test_each_of_them_may_stand_in_either_place(ledger_db: Database, name):
    rest = {key: value for key, value in SAID.items() if key != name}
    split = remember(
        ledger_db.service, metadata={name: SAID[name], "agent_memory": rest}, confidence=0.2, task_id="one"
    )
    turned = remember(
        ledger_db.service, metadata=rest | {"agent_memory": {name: SAID[name]}}, confidence=0.2, task_id="two"
    )
    assert facts(ledger_db, split) == facts(ledger_db, turned) == SAID


def test_what_agent_memory_says_goes_first_and_its_null_is_left_out(ledger_db: Database):
    other = {"rationale": "else", "importance": 0.1, "alternatives": [], "step_index": 3}
    first = remember(ledger_db.service, metadata=other | {"agent_memory": SAID}, task_id="one")
    left_out = remember(
        ledger_db.service,
        metadata=SAID | {"agent_memory": dict.fromkeys(SAID)},
        confidence=0.2,
        task_id="two",
    )
    assert facts(ledger_db, first) == facts(ledger_db, left_out) == SAID


def test_importance_comes_from_metadata_else_from_the_confidence(ledger_db: Database):
    given = remember(ledger_db.service, metadata={"importance": 0.87}, confidence=0.2)
    taken = remember(ledger_db.service, metadata={"importance": 2}, confidence=0.2)
    assert ledger_row(ledger_db, given)["importance"] == 0.87
    assert ledger_row(ledger_db, taken)["importance"] == 0.2


def test_task_ids_of_any_length_are_streams(ledger_db: Database):
    letters = random.Random(7)
    long = ["".join(letters.choices(string.printable, k=10_240)) for _ in range(2)]
    for task in (*long, *long):
        remember(ledger_db.service, task_id=task)
    assert [steps(ledger_db, task) for task in long] == [[0, 1], [0, 1]]
    assert_consistent(ledger_db)


def test_a_workspace_id_too_long_for_an_index_is_written_and_its_failure_kept(ledger_db: Database):
    # the host's index on workspace_id refuses such an id by itself
    ledger_db.owner.execute("drop index agent_memories_workspace_id_project_id_idx")
    workspace = "".join(random.Random(7).choices(string.ascii_letters, k=10_240))
    memory = remember(ledger_db.service, workspace_id=workspace)
    row = ledger_row(ledger_db, memory)
    assert row or failures(ledger_db)[0][0] == memory


def writer_without_rights_on_the_ledger(database: Database):
    """A role of the host that may write memories, and has no right on anything of ours, schema included."""
    database.superuser.execute(
        "do $$ begin if to_regrole('memory_writer') is null then create role memory_writer login; end if; end $$"
    )
    database.superuser.execute(
        "grant select, insert, update, delete on agent_memories to memory_writer;"
        "grant select, update on thoughts to memory_writer;"
        "create policy writes on agent_memories for all to memory_writer using (true) with check (true);"
        "revoke all on schema ranked_ledger from public"
    )
    return database.connect("memory_writer")


def test_a_writer_with_no_right_on_our_tables_writes_moves_edits_and_deletes(ledger_db: Database):
    writer = writer_without_rights_on_the_ledger(ledger_db)
    with pytest.raises(errors.InsufficientPrivilege):
        writer.execute("select 1 from agent_decision_ledger")
    for table in ("pending_steps", "streams"):
        with pytest.raises(errors.InsufficientPrivilege):
            writer.execute(sql.SQL("select 1 from ranked_ledger.{}").format(sql.Identifier(table)))

    kept, gone = remember(writer), remember(writer)
    writer.execute(
        "update agent_memories set task_id = 'search', content = 'elsewhere' where id = %s", (kept,)
    )
    writer.execute("update agent_memories set lifecycle_status = 'stale' where id = %s", (kept,))
    writer.execute("update agent_memories set memory_type = 'lesson' where id = %s", (kept,))
    writer.execute("update agent_memories set memory_type = 'decision' where id = %s", (kept,))
    writer.execute("delete from agent_memories where id = %s", (gone,))

    assert ledger_row(ledger_db, kept)["task_id"] == "search"
    assert ledger_row(ledger_db, gone) == {}
    assert failures(ledger_db) == []
    assert_consistent(ledger_db)
