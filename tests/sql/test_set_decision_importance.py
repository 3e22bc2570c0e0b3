"""set_decision_importance."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sql.rpc import NOBODY, Ledger


def edits(ledger: Ledger) -> list[Any]:
    return [
        payload
        for (payload,) in ledger.database.rows(
            "select payload from agent_memory_audit_events where event_type = 'memory_edited' order by created_at"
        )
    ]


def test_is_kept_to_two_digits_and_noted_where_it_changed(ledger: Ledger) -> None:
    memory_id = ledger.id("x")
    first = ledger("set_decision_importance", memory_id=memory_id, importance=0.876)
    assert (first["importance"], first["changed"]) == (0.88, True)
    again = ledger("set_decision_importance", memory_id=memory_id, importance=0.8799)
    assert again == first | {"changed": False}
    for edge in (0, 1):
        assert ledger("set_decision_importance", memory_id=memory_id, importance=edge)["importance"] == edge
    kind = {"kind": "decision_importance"}
    assert edits(ledger) == [
        {"before": 0.5, "after": 0.88} | kind,
        {"before": 0.88, "after": 0} | kind,
        {"before": 0, "after": 1} | kind,
    ]


@pytest.mark.parametrize("importance", [None, -0.001, 1.001, "NaN", "Infinity", "-Infinity", 1e308], ids=str)
def test_what_is_no_number_from_0_to_1_is_refused(shared_ledger: Ledger, importance: object) -> None:
    said = shared_ledger.refused("22023", "set_decision_importance", memory_id=NOBODY, importance=importance)
    assert "p_importance" in str(said.message_primary)


def test_other_bad_arguments_are_refused(ledger: Ledger) -> None:
    memory_id = ledger.id("x")
    ledger.refused("22023", "set_decision_importance", memory_id=None, importance=0.1)
    ledger.refused("22023", "set_decision_importance", workspace_id="", memory_id=memory_id, importance=0.1)
    ledger.refused("22P02", "set_decision_importance", memory_id=memory_id, importance="very")
    ledger.refused("RL404", "set_decision_importance", memory_id=NOBODY, importance=0.1)
    ledger.refused(
        "RL404", "set_decision_importance", workspace_id="globex", memory_id=memory_id, importance=0.1
    )
    ledger("forget_decision", memory_id=memory_id)
    ledger.refused("RL410", "set_decision_importance", memory_id=memory_id, importance=0.1)
