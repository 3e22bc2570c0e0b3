"""pin_decision."""

from __future__ import annotations

from typing import Any

from tests.rig.databases import Connection
from tests.sql.rpc import NOBODY, Ledger, at_once, call


def test_pins_and_unpins_and_says_whether_it_changed(ledger: Ledger) -> None:
    memory_id = ledger.id("x")
    turns: list[tuple[dict[str, Any], bool, bool]] = [
        ({}, True, True),
        ({"pinned": None}, True, False),
        ({"pinned": True}, True, False),
        ({"pinned": False}, False, True),
        ({"pinned": False}, False, False),
    ]
    for arguments, pinned, changed in turns:
        answer = ledger("pin_decision", memory_id=memory_id, **arguments)
        assert (answer["pinned"], answer["changed"]) == (pinned, changed)
    kinds = ledger.database.rows(
        "select payload ->> 'kind' from agent_memory_audit_events where event_type = 'memory_edited' order by created_at"
    )
    assert kinds == [("decision_pinned",), ("decision_unpinned",)]


def test_bad_arguments_are_refused(ledger: Ledger) -> None:
    memory_id = ledger.id("x")
    ledger.refused("22023", "pin_decision", memory_id=None)
    ledger.refused("22023", "pin_decision", workspace_id=None, memory_id=memory_id)
    ledger.refused("22P02", "pin_decision", memory_id=memory_id, pinned="perhaps")
    ledger.refused("RL404", "pin_decision", memory_id=NOBODY)
    ledger.refused("RL404", "pin_decision", workspace_id="globex", memory_id=memory_id)
    ledger("forget_decision", memory_id=memory_id)
    ledger.refused("RL410", "pin_decision", memory_id=memory_id)


def test_many_pins_at_once_are_one_change(ledger: Ledger) -> None:
    memory_id = ledger.id("x")

    def pin(connection: Connection) -> Any:
        return call(connection, "pin_decision", workspace_id="acme", memory_id=memory_id)["changed"]

    assert sorted(at_once(ledger.database, [pin] * 8)) == [False] * 7 + [True]
