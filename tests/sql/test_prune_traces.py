"""prune_traces: bounded, oldest first, past what somebody holds."""

from __future__ import annotations

from typing import Any

import pytest

from tests.rig.databases import Connection
from tests.sql.rpc import Ledger, at_once, call, count


def aged(ledger: Ledger, day: int, *memory_ids: str) -> str:
    request_id = ledger.trace(*memory_ids)
    ledger.database.owner.execute(
        "update agent_memory_recall_traces set created_at = make_timestamptz(2026, 1, %s, 0, 0, 0, 'UTC') "
        "where request_id = %s",
        (day, request_id),
    )
    return request_id


def left(ledger: Ledger) -> set[str]:
    return {
        request_id
        for (request_id,) in ledger.database.rows("select request_id::text from agent_memory_recall_traces")
    }


def test_deletes_the_oldest_first_and_says_whether_there_are_more(ledger: Ledger) -> None:
    memory_id = ledger.id("x")
    requests = [aged(ledger, day, memory_id) for day in (3, 1, 2, 9)]
    before = "2026-01-05T00:00:00Z"
    assert ledger("prune_traces", before=before, limit=2) == {"deleted": 2, "more": True}
    assert left(ledger) == {requests[0], requests[3]}
    assert ledger("prune_traces", before=before, limit=2) == {"deleted": 1, "more": False}
    assert ledger("prune_traces", before=before) == {"deleted": 0, "more": False}
    assert left(ledger) == {requests[3]}
    assert count(ledger.database, "agent_memory_recall_items") == 1


def test_counters_and_audit_events_stay(ledger: Ledger) -> None:
    memory_id = ledger.id("x")
    ledger("mark_recall_usage", request_id=aged(ledger, 1, memory_id), used=[memory_id])
    events = count(ledger.database, "agent_memory_audit_events")
    ledger("prune_traces", before="2026-02-01")
    assert ledger.get(memory_id)["used_count"] == 1
    assert count(ledger.database, "agent_memory_audit_events") == events


def test_leaves_other_workspaces_alone(ledger: Ledger) -> None:
    theirs = aged(Ledger(ledger.database, workspace="globex"), 1)
    aged(ledger, 1)
    assert ledger("prune_traces", before="infinity") == {"deleted": 1, "more": False}
    assert left(ledger) == {theirs}


def test_goes_past_a_trace_that_is_being_marked(ledger: Ledger) -> None:
    memory_id = ledger.id("x")
    held, free = aged(ledger, 1, memory_id), aged(ledger, 2, memory_id)
    with ledger.database.connect("service_role", autocommit=False) as marking:
        call(marking, "mark_recall_usage", workspace_id="acme", request_id=held, used=[memory_id])
        assert ledger("prune_traces", before="2026-02-01") == {"deleted": 1, "more": False}
        assert left(ledger) == {held}
        marking.commit()
    assert free not in left(ledger)
    assert ledger("prune_traces", before="2026-02-01") == {"deleted": 1, "more": False}


def test_many_at_once_delete_each_trace_once(ledger: Ledger) -> None:
    for _ in range(40):
        aged(ledger, 1)

    def prune(connection: Connection) -> Any:
        return call(connection, "prune_traces", workspace_id="acme", before="2026-02-01", limit=7)

    answers = at_once(ledger.database, [prune] * 8)
    assert sum(answer["deleted"] for answer in answers) == 40 - len(left(ledger))
    while ledger("prune_traces", before="2026-02-01", limit=7)["more"]:
        pass
    assert left(ledger) == set()


@pytest.mark.parametrize(
    ("sqlstate", "arguments"),
    [
        ("22023", {"workspace_id": ""}),
        ("22023", {"before": None}),
        ("22023", {"limit": 0}),
        ("22023", {"limit": -5}),
        ("22023", {"limit": 10_001}),
        ("22023", {"limit": None}),
        ("22007", {"before": "'; delete from thoughts"}),
    ],
    ids=str,
)
def test_a_bad_argument_is_refused(shared_ledger: Ledger, sqlstate: str, arguments: dict[str, Any]) -> None:
    shared_ledger.refused(sqlstate, "prune_traces", **{"before": "2026-02-01"} | arguments)
