"""Exact strings that an officer gives: taken out wherever they stand in rows of the organization."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from tests.conftest import HostMaker
from tests.rig import hosts
from tests.rig.databases import Database, Server
from tests.sql.erasing import NOTHING, Scene, counted
from tests.sql.rpc import HOSTILE, Ledger

WORD = "Zebra Foal"
MARK = "[erased]"


@pytest.fixture(scope="module")
def database(server: Server) -> Iterator[Database]:
    database = hosts.memory_project(server)
    yield database
    server.remove(database)


def redact(database: Database, kind: str, value: object, *strings: str) -> Any:
    return database.value(
        f"select long_term_memory.redact(%s::{kind}, long_term_memory.check_strings(%s))",
        (value, list(strings)),
        role="service_role",
    )


class TestRedaction:
    def test_every_occurrence_goes_and_the_rest_stays(self, database: Database) -> None:
        assert redact(database, "text", "a Zebra Foal, the Zebra Foals", WORD) == f"a {MARK}, the {MARK}s"
        assert redact(database, "text", "a zebra foal", WORD) == "a zebra foal", "exact strings"
        assert redact(database, "text", None, WORD) is None
        assert redact(database, "text[]", ["Zebra Foal", None, "x"], WORD) == [MARK, None, "x"]

    def test_a_string_that_holds_another_goes_as_a_whole(self, database: Database) -> None:
        strings = ["Foalson", "Zebra Foalson", "Foalson Junior"]
        assert redact(database, "text", "Zebra Foalson Junior", *strings) == f"Zebra {MARK}"

    @pytest.mark.parametrize("text", HOSTILE)
    def test_strings_of_all_sorts(self, database: Database, text: str) -> None:
        assert redact(database, "text", f"<{text}>", text) == f"<{MARK}>"
        held = {"a": [text, {f"<{text}>": 1}], "b": 2}
        assert redact(database, "jsonb", json.dumps(held), text) == {"a": [MARK, {f"<{MARK}>": 1}], "b": 2}
        assert redact(database, "json", json.dumps(held), text) == {"a": [MARK, {f"<{MARK}>": 1}], "b": 2}

    def test_what_makes_up_a_string_around_a_mark_goes_too(self, database: Database) -> None:
        text = redact(database, "text", "xxd]aaaad]aaaaaaaaaa", "d]aaaa", "xx[era")
        assert "d]aaaa" not in text
        assert "xx[era" not in text

    def test_names_values_and_numbers_of_a_document(self, database: Database) -> None:
        held = {"Zebra Foal": "Zebra Foal", "n": 491234567, "deep": [[{"x Zebra Foal": None}]], "t": True}
        cleaned = {MARK: MARK, "n": MARK, "deep": [[{f"x {MARK}": None}]], "t": True}
        assert redact(database, "jsonb", json.dumps(held), WORD, "1234567") == cleaned
        assert redact(database, "jsonb", '"Zebra Foal"', WORD) == MARK
        # structure is no text
        assert redact(database, "jsonb", '{"a": [1, 23456]}', ", 23456") == {"a": [1, 23456]}

    def test_a_document_that_is_nested_too_deep_becomes_empty(self, database: Database) -> None:
        deep = "[" * 3000 + '"Zebra Foal"' + "]" * 3000
        for kind in ("jsonb", "json"):
            assert redact(database, kind, deep, WORD) == {}
            unharmed = database.value(
                f"select long_term_memory.redact(%s::{kind}, %s)::text = %s", (deep, ["quagga"], deep)
            )
            assert unharmed is True, "it holds none of the strings"

    def test_json_in_its_own_spelling(self, database: Database) -> None:
        spelled = r'{"a":  "Zebra \u0046oal", "a": 1}'
        assert redact(database, "json", spelled, "Zebra Foal") == {"a": 1}
        assert redact(database, "json", r'{"a": "\u0000 Zebra Foal"}', WORD) == {}
        kept = database.value(
            "select long_term_memory.redact(%s::json, %s)::text", (r'{"a":  "\u0000"}', [WORD])
        )
        assert kept == r'{"a":  "\u0000"}'

    def test_random_texts_hold_none_of_the_strings(self, database: Database) -> None:
        draw = random.Random(7)
        for _ in range(200):
            text = "".join(draw.choices("ab[]erasd", k=draw.randrange(80)))
            strings = [
                "".join(draw.choices("ab[]erasd", k=draw.randrange(6, 9)))
                for _ in range(draw.randrange(1, 5))
            ]
            strings = [string for string in strings if string not in MARK]
            cleaned = redact(database, "text", text, *strings)
            assert not any(string in cleaned for string in strings), (text, strings)


def held_everywhere(scene: Scene, word: str, workspace: str = "acme") -> dict[str, str]:
    """Other people's rows that hold the word: memories, decisions and what hangs on them."""
    ledger = Ledger(scene.database, workspace)
    other = ledger.id("a neighbour")
    decision = ledger.id(
        f"{word} decides",
        summary=f"on {word}",
        rationale=f"since {word}",
        alternatives=[f"without {word}"],
        metadata={word: [word]},
        embedding=scene.vector(3),
        embedding_model="m",
        task_id=f"hire {word}",
        idempotency_key=f"{workspace} {word}",
    )
    scene.ledger, kept = ledger, scene.ledger
    scene.surround(decision, word, other)
    trace = scene.trace(word, decision)
    scene.ledger = kept
    scene.do(
        "update agent_memory_audit_events set workspace_id = null where memory_id = %s and event_type = 'memory_edited'",
        decision,
    )
    return {"decision": decision, "other": other, "trace": trace}


@pytest.fixture(params=["project", "host"])
def scene(request: pytest.FixtureRequest, full_project: HostMaker, full_host: HostMaker) -> Scene:
    return Scene(full_project() if request.param == "project" else full_host())


NAMES = {
    "public.agent_memories.task_id",
    "public.agent_decision_ledger.task_id",
    "ranked_ledger.streams.task_id",
    "ranked_ledger.idempotency_keys.key",
    "public.agent_memory_recall_traces.task_id",
    "public.agent_memory_audit_events.task_id",
}


def left(scene: Scene, word: str, **also: Any) -> set[str]:
    return {place for place in scene.left(word, **also) if not place.startswith("statistics")}


def test_they_go_from_every_table_but_from_names(scene: Scene) -> None:
    subject, word = str(uuid4()), "ZebraFoal"
    ids = held_everywhere(scene, word)
    scene.fill_memories(word, str(uuid4()))
    before = left(scene, word, axes=[3])
    assert len(before) > 30
    answer = scene.erase(subject, also_containing=[word])
    assert left(scene, word, axes=[3]) <= NAMES | {"long_term_memory.idempotency_keys.key"}
    assert answer["counts"]["names_left"] == 2, "the task, and the key of the request"
    assert answer["counts"]["strings_cleaned"] > 20
    assert answer["receipt_id"] is not None
    assert any("names of workspaces" in note for note in answer["notes"])
    decision = scene.ledger.get(ids["decision"])
    assert (decision["content"], decision["rationale"]) == (f"{MARK} decides", f"since {MARK}")
    assert (decision["lifecycle_status"], decision["task_id"]) == ("disputed", f"hire {word}")
    assert (decision["alternatives"], decision["metadata"]) == ([f"without {MARK}"], {MARK: [MARK]})
    scene.is_sound()
    again = scene.erase(subject, also_containing=[word])
    assert again["counts"] == NOTHING | {"names_left": 2}
    assert again["already"] is True
    scene.ledger.refused("RL410", "record_decision", content="x", idempotency_key=f"acme {word}")


def test_other_organizations_and_unmapped_workspaces_are_not_touched(scene: Scene) -> None:
    org_b, word = scene.memories.new_org(), "ZebraFoal"
    scene.map("globex", org_b)
    for workspace in ("globex", "nobodys"):
        held_everywhere(scene, word, workspace)
    scene.memories.insert(word, org_b, subject_type="candidate", subject_id=str(uuid4()))
    assert scene.erase(str(uuid4()), also_containing=[word])["counts"] == NOTHING
    answer = scene.memories.as_service(org_b)(
        "erase_subject", subject_type="candidate", subject_id=str(uuid4()), also_containing=[word]
    )
    assert answer["counts"]["strings_cleaned"] > 10
    held = scene.do("select workspace_id from agent_memories where content ~ %s", word)
    assert held == [("nobodys",)]


def test_a_thought_is_cleaned_where_all_its_memories_are_the_organizations(scene: Scene) -> None:
    word = "zebrafoal"
    thoughts = []
    for workspaces in (["acme", "acme"], ["acme", "globex"], ["globex"], []):
        (thought,) = scene.do(
            "insert into thoughts (content, embedding, metadata) values (%s, %s, %s) returning id::text",
            f"{word} {len(thoughts)}",
            scene.vector(5),
            json.dumps({"who": word}),
        )[0]
        thoughts.append(thought)
        for workspace in workspaces:
            scene.do(
                """insert into agent_memories (workspace_id, memory_type, summary, content, thought_id)
                   values (%s, 'decision', 's', 'c', %s)""",
                workspace,
                thought,
            )
    assert counted(scene.erase(str(uuid4()), also_containing=[word])) == {"strings_cleaned": 1}
    rows = dict(
        scene.do("select id::text, (content, metadata ->> 'who', embedding is null)::text from thoughts")
    )
    assert [rows[thought] for thought in thoughts] == [
        '("[erased] 0",[erased],t)',
        '("zebrafoal 1",zebrafoal,f)',
        '("zebrafoal 2",zebrafoal,f)',
        '("zebrafoal 3",zebrafoal,f)',
    ]
    scene.is_sound()
    vectors = scene.do("select count(*) from ranked_ledger.decision_vectors")
    assert vectors[0][0] >= 2, "only those of the others are left"


def test_a_vector_stays_where_only_metadata_held_the_string(scene: Scene) -> None:
    scene.do(
        """with t as (insert into thoughts (content, embedding, metadata) values ('x', %s, '{"who": "zebrafoal"}') returning id)
           insert into agent_memories (workspace_id, memory_type, summary, content, thought_id)
           select 'acme', 'decision', 's', 'c', t.id from t""",
        scene.vector(5),
    )
    scene.erase(str(uuid4()), also_containing=["zebrafoal"])
    rows = scene.do("select embedding is null, metadata from thoughts where content = 'x'")
    assert rows == [(False, {"who": MARK})]


def test_a_memory_of_somebody_else_is_cleaned_and_says_so(scene: Scene) -> None:
    word = "zebrafoal"
    memory_id = scene.remember(word, str(uuid4()), embedding="[1,2]", embedding_model="m", author="person")
    other = scene.remember("untouched", str(uuid4()), embedding="[1,2]", embedding_model="m")
    scene.do(
        "insert into long_term_memory.idempotency_keys (org_id, key, digest, memory_id) values (%s, 'k', 'd', %s)",
        scene.org,
        memory_id,
    )
    answer = scene.erase(str(uuid4()), also_containing=[word])
    assert counted(answer) == {"strings_cleaned": 1}
    row = scene.memories.row(memory_id)
    assert (row["text"], row["embedding"], row["embedding_model"], row["redacted_at"]) == (
        MARK,
        None,
        "",
        None,
    )
    assert [event["action"] for event in scene.memories.events(memory_id)] == ["redacted"]
    assert scene.do("select digest from long_term_memory.idempotency_keys where key = 'k'") == [(b"",)]
    assert scene.memories.row(other)["embedding_model"] == "m"


def test_a_text_at_its_limit_loses_nothing_where_marks_make_it_longer(scene: Scene) -> None:
    memory_id = scene.remember("zebras" * 10922, str(uuid4()))
    scene.erase(str(uuid4()), also_containing=["zebras"])
    assert scene.memories.row(memory_id)["text"] == MARK * 10922
    scene.memories.approve(memory_id)  # a row that is longer than what may be written can still be changed


def test_the_words_of_a_cleaned_decision_are_searched_anew(scene: Scene) -> None:
    memory_id = scene.ledger.id("zebrafoal prefers the nightshift", rationale="zebrafoal said so")
    scene.erase(str(uuid4()), also_containing=["zebrafoal"])
    assert scene.left("zebrafoal") == set()
    hits = scene.ledger("recall_decisions", query="nightshift", min_relevance=0.01)["hits"]
    assert [hit["memory_id"] for hit in hits] == [memory_id]
    assert scene.ledger("recall_decisions", query="zebrafoal", min_relevance=0.01)["hits"] == []
