"""set_decision_lifecycle: rejects, disputes, marks stale, restores."""

from __future__ import annotations

from typing import Any

import pytest

from tests.rig.databases import Connection
from tests.sql.rpc import HOSTILE, NOBODY, Ledger, at_once, call, count


def reviews(ledger: Ledger, memory_id: str) -> list[tuple[Any, ...]]:
    return ledger.database.rows(
        "select action, actor_label, notes, before, after from agent_memory_review_actions "
        "where memory_id = %s order by created_at, after ->> 'kind'",
        (memory_id,),
    )


def events(ledger: Ledger, memory_id: str) -> list[tuple[Any, ...]]:
    return ledger.database.rows(
        "select event_type, actor_label, payload from agent_memory_audit_events "
        "where memory_id = %s and event_type <> 'memory_written' order by created_at",
        (memory_id,),
    )


def test_a_transition_that_was_not_noted_leaves_the_reason_of_the_one_before(ledger: Ledger) -> None:
    memory_id = ledger.id("x")
    ledger("set_decision_lifecycle", memory_id=memory_id, lifecycle="stale", reason="first")
    ledger.database.owner.execute(
        "alter table agent_memories disable trigger trg_agent_decision_ledger_follow"
    )
    ledger("set_decision_lifecycle", memory_id=memory_id, lifecycle="rejected", reason="second")
    assert [t["reason"] for t in ledger.get(memory_id)["history"]] == ["first"]


@pytest.mark.parametrize(
    ("lifecycle", "action", "event", "kind"),
    [
        ("rejected", "reject", "memory_rejected", "reject"),
        ("disputed", "dispute", "memory_disputed", "dispute"),
        ("stale", "mark_stale", "memory_edited", "mark_stale"),
    ],
)
def test_retires_with_review_transition_and_audit(
    ledger: Ledger, lifecycle: str, action: str, event: str, kind: str
) -> None:
    memory_id = ledger.id("x")
    answer = ledger(
        "set_decision_lifecycle", memory_id=memory_id, lifecycle=lifecycle, reason="why", actor="ada"
    )
    assert (answer["lifecycle_status"], answer["changed"]) == (lifecycle, True)
    after = {"kind": kind, "lifecycle_status": lifecycle}
    assert reviews(ledger, memory_id) == [(action, "ada", "why", {"lifecycle_status": "active"}, after)]
    assert events(ledger, memory_id) == [(event, "ada", {"kind": kind, "lifecycle_before": "active"})]
    (transition,) = ledger.get(memory_id)["history"]
    assert (transition["lifecycle_status"], transition["reason"], transition["actor"]) == (
        lifecycle,
        "why",
        "ada",
    )


def test_the_same_status_again_writes_nothing(ledger: Ledger) -> None:
    memory_id = ledger.id("x")
    first = ledger("set_decision_lifecycle", memory_id=memory_id, lifecycle="stale", reason="old")
    again = ledger("set_decision_lifecycle", memory_id=memory_id, lifecycle="stale", reason="older")
    assert again == first | {"changed": False}
    assert len(reviews(ledger, memory_id)) == len(events(ledger, memory_id)) == 1
    assert ledger("set_decision_lifecycle", memory_id=ledger.id("y"), lifecycle="active")["changed"] is False


def test_restoring_takes_the_supersession_back_and_it_can_be_made_again(ledger: Ledger) -> None:
    old, new, other = ledger.id("old"), ledger.id("new"), ledger.id("other")
    ledger("supersede_decision", old=old, new=new)
    ledger("supersede_decision", old=other, new=old)
    restored = ledger(
        "set_decision_lifecycle", memory_id=old, lifecycle="active", reason="too early", actor="ada"
    )
    assert (restored["lifecycle_status"], restored["changed"]) == ("active", True)
    shown = ledger.get(old)
    assert shown["successor"] is None
    assert [link["memory_id"] for link in shown["chain"]] == [old, other], "what it superseded stays"
    action, actor, notes, before, after = reviews(ledger, old)[-1]
    assert (action, actor, notes, before) == ("edit", "ada", "too early", {"lifecycle_status": "superseded"})
    assert after == {"kind": "restore", "lifecycle_status": "active", "no_longer_superseded_by": [new]}
    assert events(ledger, old)[-1] == (
        "memory_edited",
        "ada",
        {"kind": "restore", "lifecycle_before": "superseded"},
    )
    assert ledger("supersede_decision", old=old, new=new)["changed"] is True
    assert ledger.get(old)["successor"] == new


def test_superseded_is_asked_of_the_other_verb(ledger: Ledger) -> None:
    memory_id = ledger.id("x")
    said = ledger.refused("22023", "set_decision_lifecycle", memory_id=memory_id, lifecycle="superseded")
    assert "supersede_decision" in str(said.message_hint)


@pytest.mark.parametrize(
    "lifecycle", [None, "", "ACTIVE", "forgotten", "x" * 100_000, *HOSTILE], ids=range(11)
)
def test_an_unknown_status_is_refused(shared_ledger: Ledger, lifecycle: str | None) -> None:
    said = shared_ledger.refused("22023", "set_decision_lifecycle", memory_id=NOBODY, lifecycle=lifecycle)
    assert len(str(said.message_primary)) < 200


def test_other_bad_arguments_are_refused(ledger: Ledger) -> None:
    memory_id = ledger.id("x")
    wrong: list[tuple[str, dict[str, Any]]] = [
        ("22023", {"memory_id": None}),
        ("22023", {"workspace_id": " "}),
        ("22023", {"reason": "x" * 1_000_000}),
        ("22023", {"actor": "x" * 1001}),
        ("RL404", {"memory_id": NOBODY}),
        ("RL404", {"workspace_id": "globex"}),
    ]
    for code, arguments in wrong:
        good = {"memory_id": memory_id, "lifecycle": "rejected"}
        ledger.refused(code, "set_decision_lifecycle", **good | arguments)
    ledger("forget_decision", memory_id=memory_id)
    ledger.refused("RL410", "set_decision_lifecycle", memory_id=memory_id, lifecycle="rejected")


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_reason_and_actor_come_back_as_they_were(ledger: Ledger, text: str) -> None:
    memory_id = ledger.id("x")
    ledger("set_decision_lifecycle", memory_id=memory_id, lifecycle="rejected", reason=text, actor=text)
    (transition,) = ledger.get(memory_id)["history"]
    assert (transition["reason"], transition["actor"]) == (text, text)


def test_the_same_change_at_once_is_made_once(ledger: Ledger) -> None:
    memory_id = ledger.id("x")

    def reject(connection: Connection) -> Any:
        arguments = {"workspace_id": "acme", "memory_id": memory_id, "lifecycle": "rejected"}
        return call(connection, "set_decision_lifecycle", **arguments)["changed"]

    assert sorted(at_once(ledger.database, [reject] * 8)) == [False] * 7 + [True]
    assert count(ledger.database, "agent_memory_review_actions") == 1
