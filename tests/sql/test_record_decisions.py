"""record_decisions: a batch keeps the rules of a single record, in order, all or nothing."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.rig.databases import Connection
from tests.sql.rpc import HOSTILE, NOBODY, Ledger, at_once, call, count, failed_checks, vector


def test_writes_in_order_with_the_fields_of_a_single_record(ledger: Ledger) -> None:
    ground = ledger.id("Ground")
    said = {
        "content": "x",
        "summary": "s",
        "rationale": "why",
        "alternatives": ["a"],
        "importance": 0.25,
        "step_index": 40,
        "project_id": "p",
        "task_id": "t",
        "flow_id": "f",
        "embedding_model": "m",
        "pinned": True,
        "visibility": "personal",
        "created_by": "import",
        "metadata": {"a": [None, 1.50]},
    }
    rest = {"depends_on": [ground], "embedding": vector(), "runtime_name": "cli"}
    answer = ledger(
        "record_decisions",
        decisions=[{"content": "first"}, said | rest, {"content": "last", "rationale": None}],
    )
    assert [d["content"] for d in answer["decisions"]] == ["first", "x", "last"]
    assert {name: answer["decisions"][1][name] for name in said} == said
    assert [d["step_index"] for d in answer["decisions"]] == [1, 40, 2]
    assert answer["replayed"] is False
    single = ledger.record(**said, **rest)
    batched = answer["decisions"][1]
    own = {"memory_id", "created_at", "updated_at", "replayed"}
    assert {k: v for k, v in single.items() if k not in own} == {
        k: v for k, v in batched.items() if k not in own
    }


def test_nothing_to_write_is_written(ledger: Ledger) -> None:
    assert ledger("record_decisions", decisions=[]) == {"decisions": [], "replayed": False}
    assert ledger("record_decisions", decisions=[], idempotency_key="k")["replayed"] is False
    assert ledger("record_decisions", decisions=[], idempotency_key="k")["replayed"] is True


@pytest.mark.parametrize(
    "wrong",
    [
        {"content": " "},
        {},
        {"content": 1},
        {"content": ["x"]},
        {"content": "x", "importance": "0.5"},
        {"content": "x", "importance": 1e300},
        {"content": "x", "step_index": 1.5},
        {"content": "x", "step_index": "7"},
        {"content": "x", "pinned": "yes"},
        {"content": "x", "depends_on": "not an array"},
        {"content": "x", "depends_on": ["not an id"]},
        {"content": "x", "depends_on": [7]},
        {"content": "x", "embedding": 7},
        {"content": "x", "metadata": "{}"},
        {"content": "x", "task_id": 7},
        {"content": "x", "workspace_id": "globex"},
        {"content": "x", "idempotency_key": "k"},
        {"content": "x", "p_rationale": "why"},
        {"content": "x", "'; drop table thoughts; --": 1},
    ],
    ids=str,
)
def test_one_bad_decision_refuses_all_and_is_named(shared_ledger: Ledger, wrong: dict[str, Any]) -> None:
    said = shared_ledger.refused(
        "22023", "record_decisions", decisions=[{"content": "good"}, wrong, {"content": "good"}]
    )
    assert str(said.message_primary).startswith("Decision 2 of 3: ")
    assert count(shared_ledger.database, "agent_memories") == count(shared_ledger.database, "thoughts") == 0


def test_an_unknown_field_is_named(ledger: Ledger) -> None:
    said = ledger.refused("22023", "record_decisions", decisions=[{"content": "x", "importnace": 1}])
    assert "importnace" in str(said.message_primary)


def test_other_refusals_keep_their_code_and_name_the_decision(ledger: Ledger) -> None:
    gone = ledger.id("gone")
    ledger("forget_decision", memory_id=gone)
    for code, wrong in (
        ("RL404", {"depends_on": [NOBODY]}),
        ("RL410", {"depends_on": [gone]}),
        ("RL463", {"embedding": "[1,2]"}),
    ):
        said = ledger.refused(
            code, "record_decisions", decisions=[{"content": "x"}, {"content": "x"} | wrong]
        )
        assert str(said.message_primary).startswith("Decision 2 of 2: ")
        assert said.message_hint
    assert count(ledger.database, "agent_memories") == 0


@pytest.mark.parametrize("wrong", [None, "text", 7, {"content": "x"}, [1], ["x"], [None], [[]]], ids=str)
def test_what_is_no_list_of_decisions_is_refused(shared_ledger: Ledger, wrong: object) -> None:
    assert "p_decisions" in str(
        shared_ledger.refused("22023", "record_decisions", decisions=wrong).message_primary
    )


def test_five_hundred_are_one_batch_and_one_more_is_refused(ledger: Ledger) -> None:
    batch = [
        {"content": f"Decision number {n}", "rationale": f"reason {n}", "task_id": f"t{n % 7}"}
        for n in range(500)
    ]
    ledger.refused("22023", "record_decisions", decisions=[*batch, {"content": "x"}])
    started = time.monotonic()
    answer = ledger("record_decisions", decisions=batch)
    assert time.monotonic() - started < 8, "the API's statement timeout"
    assert [d["content"] for d in answer["decisions"]] == [d["content"] for d in batch]
    assert failed_checks(ledger("ledger_status")) == []


def test_hostile_texts_come_back_as_they_were(ledger: Ledger) -> None:
    answer = ledger("record_decisions", decisions=[{"content": t, "metadata": {t: t}} for t in HOSTILE])
    assert [(d["content"], d["metadata"]) for d in answer["decisions"]] == [(t, {t: t}) for t in HOSTILE]


def test_a_repeat_with_the_key_answers_the_whole_batch_again(ledger: Ledger) -> None:
    batch = [{"content": "x"}, {"content": "y"}]
    first = ledger("record_decisions", decisions=batch, idempotency_key="k")
    again = ledger("record_decisions", decisions=batch, idempotency_key="k")
    assert again == first | {"replayed": True}
    ledger.refused("RL409", "record_decisions", decisions=batch[:1], idempotency_key="k")
    ledger("forget_decision", memory_id=first["decisions"][1]["memory_id"])
    ledger.refused("RL410", "record_decisions", decisions=batch, idempotency_key="k")


def test_batches_over_the_same_streams_at_once_do_not_deadlock(ledger: Ledger) -> None:
    def write(number: int) -> Any:
        tasks = ["a", "b", "c", "d"] if number % 2 else ["d", "c", "b", "a"]
        batch = [{"content": "x", "task_id": task} for task in tasks * 5]
        return lambda connection: call(connection, "record_decisions", workspace_id="acme", decisions=batch)

    answers = at_once(ledger.database, [write(number) for number in range(16)])
    told = {d["memory_id"]: d["step_index"] for answer in answers for d in answer["decisions"]}
    assert told == dict(ledger.database.rows("select memory_id::text, step_index from agent_decision_ledger"))
    assert failed_checks(ledger("ledger_status")) == []


def test_one_batch_sent_twice_at_once_is_written_once(ledger: Ledger) -> None:
    def write(connection: Connection) -> Any:
        batch = [{"content": f"{n}"} for n in range(20)]
        return call(connection, "record_decisions", workspace_id="acme", decisions=batch, idempotency_key="k")

    first, second = at_once(ledger.database, [write, write])
    assert first["decisions"] == second["decisions"]
    assert count(ledger.database, "agent_memories") == 20
