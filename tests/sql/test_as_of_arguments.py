"""What a moment may be, what is of today in an answer as of then, and what such a recall leaves behind."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.sql.rpc import HOSTILE, Ledger

YEAR_1 = "0001-01-01T00:00:00+00:00"


def now(ledger: Ledger) -> str:
    return str(ledger.database.value("select clock_timestamp()::text"))


def recall(ledger: Ledger, query: str | None = None, **arguments: Any) -> list[dict[str, Any]]:
    return list(ledger("recall_decisions", query=query, **{"trace": False} | arguments)["hits"])


def contents(ledger: Ledger, **arguments: Any) -> list[str]:
    return sorted(hit["content"] for hit in recall(ledger, **arguments))


def in_days(days: float) -> str:
    return (datetime.now(UTC) + timedelta(days=days)).isoformat()


# --- what cannot be meant -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("function", ["recall_decisions", "match_decision_ledger"])
@pytest.mark.parametrize(
    ("arguments", "said", "hint"),
    [
        ({"as_of_step": 3}, "no p_task_id is given", "p_as_of"),
        ({"as_of_step": 3, "project_id": "p"}, "no p_task_id is given", "Name the task"),
        ({"as_of_step": 3, "task_id": "shared"}, "several projects", "p_project_id"),
        (
            {"as_of_step": 3, "task_id": "mixed"},
            "several projects",
            "without a project, ask by a time (p_as_of)",
        ),
        ({"as_of_step": -1, "task_id": "t"}, "p_as_of_step is -1", "step of the task"),
        ({"as_of_step": -(2**31), "task_id": "t"}, "steps are from 0 to 1000000000", "step of the task"),
        ({"as_of_step": 1_000_000_001, "task_id": "t"}, "steps are from 0 to 1000000000", "left out"),
        ({"as_of_step": 3, "task_id": "t", "as_of": YEAR_1}, "both given", "Give the step"),
        ({"as_of_step": -1, "as_of": "infinity"}, "both given", "Give the step"),
        ({"as_of": "infinity"}, "no time of the past", "leave it out"),
        ({"as_of": "-infinity"}, "no time of the past", "offset from UTC"),
        ({"as_of": in_days(1)}, "no time of the past", "leave it out"),
        ({"as_of": "9999-12-31T23:59:59Z"}, "no time of the past", "leave it out"),
    ],
)
def test_a_moment_that_cannot_be_meant_is_refused(
    shared_ledger: Ledger, function: str, arguments: dict[str, Any], said: str, hint: str
) -> None:
    if not recall(shared_ledger):
        for project in ("p", "q"):
            shared_ledger.id("Ours", task_id="shared", project_id=project)
        for more in ({}, {"project_id": "p"}):
            shared_ledger.id("Ours", task_id="mixed", **more)
    refusal = shared_ledger.refused("22023", function, **arguments)
    assert said in str(refusal.message_primary)
    assert hint in str(refusal.message_hint)


def test_a_task_of_several_projects_is_asked_with_its_project(ledger: Ledger) -> None:
    for project in ("p", "q"):
        for step in range(3):
            ledger.id(f"{project}{step}", task_id="t", project_id=project)
    assert contents(ledger, task_id="t", project_id="q", as_of_step=1) == ["q0", "q1"]
    ledger.database.owner.execute("update agent_memories set memory_type = 'lesson' where project_id = 'p'")
    assert contents(ledger, task_id="t", as_of_step=1) == ["q0", "q1"], "what is set aside is no task"


def test_a_task_or_a_time_that_knows_no_decision_answers_none_and_says_so(ledger: Ledger) -> None:
    ledger.id("Ours", task_id="t", step_index=5)
    for moment in ({"as_of": YEAR_1}, {"as_of_step": 4, "task_id": "t"}, {"as_of_step": 4, "task_id": "u"}):
        answer = ledger("recall_decisions", trace=False, **moment)
        assert (answer["hits"], answer["exact"]) == ([], True)
        assert "then" in answer["hint"]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_words_and_names_are_only_words_and_names(ledger: Ledger, text: str) -> None:
    ledger.id(text, task_id=text, project_id=text)
    ledger.id("later", task_id=text, project_id=text)
    asked = {"query": text, "task_id": text, "as_of_step": 0}
    assert contents(ledger, **asked) == contents(ledger, **asked, project_id=text) == [text]


def test_a_step_that_is_not_reached_yet_is_now(ledger: Ledger) -> None:
    for content in ("a", "b"):
        ledger.id(content, task_id="t")
    rows = recall(ledger, task_id="t")
    assert recall(ledger, task_id="t", as_of_step=1) == rows
    assert recall(ledger, task_id="t", as_of_step=1_000_000_000) == rows
    assert recall(ledger, as_of=now(ledger)) == rows
    assert recall(ledger, as_of=in_days(0.5 / 24 / 60)) == rows, "clocks differ"


def test_the_current_step_counts_as_in_a_recall_of_then(ledger: Ledger) -> None:
    for step in (3, 8):
        ledger.id("x", task_id="t", step_index=step)
    distances = {
        given: recall(ledger, task_id="t", as_of_step=5, current_step=given)[0]["step_distance"]
        for given in (None, 4, 7)
    }
    assert distances == {None: 2, 4: 2, 7: 4}, "the work stood at step 5"


# --- whose past ---------------------------------------------------------------------------------------------------


def test_another_workspace_is_never_seen(ledger: Ledger) -> None:
    for workspace in ("acme", "acme ", "ACME"):
        ledger.id(workspace, workspace_id=workspace, task_id="t", project_id="p")
    for moment in ({"as_of": now(ledger)}, {"as_of_step": 0, "task_id": "t"}):
        assert contents(ledger, **moment) == ["acme"]
    assert contents(ledger, workspace_id="none", as_of=now(ledger)) == []


# --- what is decided later ----------------------------------------------------------------------------------------


def test_nothing_of_what_came_later_is_in_the_answer(ledger: Ledger) -> None:
    """Word for word: a merge, a review, a dependent, a lost ground, all after the moment."""
    ground = ledger.id("ground", task_id="t")
    old = ledger.id("old", task_id="t", depends_on=[ground])
    questions = {
        "time": {"as_of": now(ledger), "include_superseded": True},
        "step": {"as_of_step": 1, "task_id": "t", "include_superseded": True},
    }
    then = {name: recall(ledger, "old ground", **asked) for name, asked in questions.items()}
    assert then["time"] == then["step"] == recall(ledger, "old ground")

    new = ledger.id("new", task_id="t", depends_on=[old])
    ledger("supersede_decision", old=old, new=new, action="merge")
    ledger("set_decision_lifecycle", memory_id=ground, lifecycle="rejected")
    later = recall(ledger, "old ground", include_superseded=True)
    assert "merged" in "".join(hit["line"] for hit in later)
    for name, asked in questions.items():
        assert recall(ledger, "old ground", **asked) == then[name]

    ledger.database.owner.execute("delete from agent_memories where id = %s", (ground,))
    (only,) = recall(ledger, "old ground", **questions["time"])
    assert (only["content"], only["rests_on_retired"], only["depends_on"]) == ("old", False, [])
    ledger("set_decision_lifecycle", memory_id=old, lifecycle="active")
    assert recall(ledger, "old", task_id="t")[0]["rests_on_retired"]


def test_what_was_confirmed_later_was_not_confirmed_then(ledger: Ledger) -> None:
    one = ledger.id("one")
    before = now(ledger)
    ledger.database.owner.execute(
        "with a as (update agent_memories set review_status = 'confirmed' where id = %(id)s)"
        " insert into agent_memory_review_actions (memory_id, action, before, after) values"
        """ (%(id)s, 'confirm', '{"review_status": "pending"}', '{"review_status": "confirmed"}')""",
        {"id": one},
    )
    assert contents(ledger, only_confirmed=True) == ["one"]
    assert contents(ledger, only_confirmed=True, as_of=before) == []
    assert "pending" in recall(ledger, as_of=before)[0]["line"]


def test_what_a_host_decides_and_retires_in_one_transaction_comes_together(ledger: Ledger) -> None:
    old = ledger.id("old", task_id="t")
    with ledger.database.owner.transaction():
        ledger.database.owner.execute(
            "insert into agent_memories (workspace_id, task_id, memory_type, summary, content)"
            " values ('acme', 't', 'decision', 'new', 'new')"
        )
        ledger.database.owner.execute(
            "update agent_memories set lifecycle_status = 'superseded' where id = %s", (old,)
        )
    assert contents(ledger, task_id="t", as_of_step=0) == ["old"]
    assert contents(ledger, task_id="t", as_of_step=1) == ["new"]


def test_a_batch_is_told_apart_by_its_steps(ledger: Ledger) -> None:
    """One transaction, one time: an edge is there with its later end."""
    decisions = [{"content": f"d{n}", "task_id": "t"} for n in range(3)]
    first, *_ = (one["memory_id"] for one in ledger("record_decisions", decisions=decisions)["decisions"])
    with ledger.connection.transaction():
        second = ledger.id("d3", task_id="t", depends_on=[first])
        ledger.id("d4", task_id="t", depends_on=[first, second])
    dependents = [
        {hit["content"]: hit["live_dependents"] for hit in recall(ledger, task_id="t", as_of_step=step)}
        for step in (1, 3, 4)
    ]
    assert dependents[0] == {"d0": 0, "d1": 0}
    assert dependents[1] == {"d0": 1, "d1": 0, "d2": 0, "d3": 0}
    assert dependents[2]["d0"] == 2


def move(ledger: Ledger, memory_id: str, task: str) -> None:
    ledger.database.owner.execute("update agent_memories set task_id = %s where id = %s", (task, memory_id))


def test_what_changed_in_another_task_counts_by_its_time(ledger: Ledger) -> None:
    """Steps of the task that a decision came from say nothing about the one that it is in."""
    for step in range(6):
        ledger.id(f"u{step}", task_id="u")
    retired = ledger.id("retired at step 6 of u", task_id="u")
    ledger("set_decision_lifecycle", memory_id=retired, lifecycle="rejected")
    ledger.id("t0", task_id="t")
    move(ledger, retired, "t")
    ledger.id("t2", task_id="t")
    then = recall(ledger, task_id="t", as_of_step=1, include_superseded=True)
    assert [hit["lifecycle_status"] for hit in then if hit["content"].startswith("retired")] == ["rejected"]
    assert contents(ledger, task_id="t", as_of_step=1) == ["t0"]


def test_what_changed_before_a_decision_left_its_task_counts_there_by_its_steps(ledger: Ledger) -> None:
    ground = ledger.id("ground", task_id="t")
    ledger.id("rests on it", task_id="t", depends_on=[ground])
    with ledger.connection.transaction():  # of one time
        ledger.id("t2", task_id="t")
        ledger("set_decision_lifecycle", memory_id=ground, lifecycle="rejected")
        ledger.id("t3", task_id="t")
    move(ledger, ground, "u")
    rests = {
        step: {
            hit["content"]: hit["rests_on_retired"] for hit in recall(ledger, task_id="t", as_of_step=step)
        }
        for step in (1, 2)
    }
    assert (rests[1]["rests on it"], rests[2]["rests on it"]) == (False, True)


def test_a_decision_that_came_from_elsewhere_carried_no_stream_on_before_it_came(ledger: Ledger) -> None:
    moved = ledger.id("moved", task_id="u")
    ground = ledger.id("t0", task_id="t")
    ledger.id("rests on it", task_id="v", depends_on=[ground])
    before = recall(ledger, task_id="t")
    assert before[0]["live_dependents"] == 1
    move(ledger, moved, "t")
    ledger.id("rests on it too", task_id="v", depends_on=[ground])
    assert recall(ledger, task_id="t", as_of_step=0) == before
    for notes in ('{"moves": [{"at": "never"}]}', '{"moves": 1}', "[1]"):
        ledger.database.owner.execute(
            "update agent_decision_ledger set metadata = %s where memory_id = %s", (notes, moved)
        )
        assert len(recall(ledger, task_id="t", as_of_step=0)) == 1, notes


def test_what_the_docs_say_is_of_today(ledger: Ledger) -> None:
    one = ledger.id("one", task_id="t", importance=0.2)
    gone = ledger.id("gone", task_id="t")
    moved = ledger.id("moved", task_id="t")
    before = now(ledger)
    ledger.database.owner.execute("update agent_memories set content = 'edited' where id = %s", (one,))
    ledger("set_decision_importance", memory_id=one, importance=0.9)
    ledger("pin_decision", memory_id=one, pinned=True)
    ledger("forget_decision", memory_id=gone)
    ledger.database.owner.execute("update agent_memories set task_id = 'u' where id = %s", (moved,))
    for moment in ({"as_of": before}, {"as_of_step": 2}):
        (hit,) = recall(ledger, task_id="t", **moment)
        assert (hit["content"], hit["importance"], hit["pinned"]) == ("edited", 0.9, True)


def test_what_is_a_decision_is_of_today(ledger: Ledger) -> None:
    away = ledger.id("no decision any more", task_id="t")
    lesson = ledger.database.value(
        "insert into agent_memories (workspace_id, task_id, memory_type, summary, content)"
        " values ('acme', 't', 'lesson', 'once a lesson', 'once a lesson') returning id"
    )
    before = now(ledger)
    for memory_id, kind in ((away, "lesson"), (lesson, "decision")):
        ledger.database.owner.execute(
            "update agent_memories set memory_type = %s where id = %s", (kind, memory_id)
        )
    assert contents(ledger, as_of=before) == ["once a lesson"]


# --- what is left behind ------------------------------------------------------------------------------------------


def counters(ledger: Ledger) -> list[tuple]:
    return ledger.database.rows("select recall_count, last_recalled_at from agent_decision_ledger")


def test_a_look_into_the_past_is_traced_with_its_moment_and_counts_nothing(ledger: Ledger) -> None:
    ledger.id("x", task_id="t")
    moment = now(ledger)
    before = counters(ledger)
    kept = []
    for asked in ({"as_of": moment}, {"as_of_step": 0, "task_id": "t"}):
        answer = ledger("recall_decisions", **asked)
        assert answer["traced"]
        ((payload,),) = ledger.database.rows(
            "select request_payload from agent_memory_recall_traces where request_id = %s",
            (answer["request_id"],),
        )
        assert payload == answer["arguments"]
        kept.append((payload["p_as_of_step"], payload["p_as_of"]))
    (by_time, by_step) = kept
    assert by_time[0] is None
    assert datetime.fromisoformat(by_time[1]) == datetime.fromisoformat(moment)
    assert by_step == (0, None)
    assert counters(ledger) == before
    assert ledger("recall_decisions", trace_by_host=True)["arguments"]["p_as_of"] is None
    assert [row[0] for row in counters(ledger)] == [1]


@pytest.mark.parametrize("moment", [{"as_of": YEAR_1}, {"as_of_step": 0, "task_id": "t"}])
def test_a_host_is_not_handed_the_memories_of_today_for_a_past_recall(
    ledger: Ledger, moment: dict[str, Any]
) -> None:
    ledger.id("x", task_id="t")
    refusal = ledger.refused("22023", "recall_decisions", trace_by_host=True, **moment)
    assert "memories are those of now" in str(refusal.message_primary)
    assert "Leave p_trace_by_host out" in str(refusal.message_hint)
    assert [row[0] for row in counters(ledger)] == [0]


def test_a_table_answers_the_same(ledger: Ledger) -> None:
    for content in ("an invoice", "a ledger", "an invoice ledger"):
        ledger.id(content, task_id="t")
    hits = recall(ledger, "invoice", task_id="t", as_of_step=1, preset="tuned")
    rows = ledger.database.rows(
        "select memory_id::text, ranking_score, exact from match_decision_ledger('acme', 'invoice', p_task_id => 't',"
        " p_as_of_step => 1, p_preset => 'tuned')",
        role="service_role",
    )
    assert rows == [(hit["memory_id"], hit["ranking_score"], True) for hit in hits]
    assert len(rows) == 2
