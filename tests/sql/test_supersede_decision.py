"""supersede_decision: one decision replaces another."""

from __future__ import annotations

from typing import Any

import psycopg

from tests.rig.databases import Connection, Database
from tests.sql.rpc import NOBODY, Ledger, at_once, call, count

WRITTEN = ("agent_memory_relations", "agent_memory_review_actions", "ranked_ledger.lifecycle_transitions")


def written(database: Database) -> list[int]:
    return [count(database, table) for table in (*WRITTEN, "agent_memory_audit_events")]


def test_writes_relation_lifecycle_review_and_audit_together(ledger: Ledger) -> None:
    old, new = ledger.id("Never edit", project_id="billing"), ledger.id("Void, never edit")
    answer = ledger("supersede_decision", old=old, new=new, reason="Voiding is legal", actor="ada")
    assert answer["changed"] is True
    assert (answer["old"]["memory_id"], answer["old"]["lifecycle_status"]) == (old, "superseded")
    assert (answer["new"]["memory_id"], answer["new"]["lifecycle_status"]) == (new, "active")
    rows = ledger.database.rows
    assert rows("select from_memory_id::text, to_memory_id::text, relation from agent_memory_relations") == [
        (new, old, "supersedes")
    ]
    assert rows(
        "select memory_id::text, action, actor_label, notes, before, after from agent_memory_review_actions"
    ) == [
        (
            old,
            "supersede",
            "ada",
            "Voiding is legal",
            {"lifecycle_status": "active"},
            {"lifecycle_status": "superseded", "superseded_by": new},
        )
    ]
    assert rows(
        "select memory_id::text, project_id, actor_label, payload from agent_memory_audit_events "
        "where event_type = 'memory_superseded'"
    ) == [(old, "billing", "ada", {"kind": "supersede", "superseded_by": new})]
    assert ledger.get(old)["successor"] == new


def test_a_repeat_changes_nothing(ledger: Ledger) -> None:
    old, new = ledger.id("old"), ledger.id("new")
    first = ledger("supersede_decision", old=old, new=new)
    before = written(ledger.database)
    again = ledger("supersede_decision", old=old, new=new, reason="again")
    assert again == first | {"changed": False}
    assert written(ledger.database) == before


def test_a_decision_may_be_replaced_by_two_and_one_may_replace_two(ledger: Ledger) -> None:
    old, left, right = ledger.id("old"), ledger.id("left"), ledger.id("right")
    ledger("supersede_decision", old=old, new=left)
    assert ledger("supersede_decision", old=old, new=right)["changed"] is True
    assert ledger.get(old)["successor"] == right
    assert len(ledger.get(old)["history"]) == 1, "it was superseded before"
    assert ledger("supersede_decision", old=left, new=right)["changed"] is True


def test_a_host_that_set_the_lifecycle_back_is_superseded_again(ledger: Ledger) -> None:
    old, new = ledger.id("old"), ledger.id("new")
    ledger("supersede_decision", old=old, new=new)
    ledger.database.owner.execute(
        "update agent_memories set lifecycle_status = 'active' where id = %s", (old,)
    )
    assert ledger("supersede_decision", old=old, new=new)["changed"] is True
    assert count(ledger.database, "agent_memory_relations") == 1


def test_the_end_of_a_long_chain_is_superseded_in_no_time(ledger: Ledger) -> None:
    ledger.database.owner.execute(
        """with chain as (
             insert into agent_memories (workspace_id, memory_type, summary, content)
             select 'acme', 'decision', 's', 'd' from generate_series(1, 3000) returning id)
           insert into agent_memory_relations (from_memory_id, to_memory_id, relation)
           select c.id, c.before, 'supersedes'
           from (select id, lag(id) over (order by id) as before from chain) as c where c.before is not null"""
    )
    newest = ledger.database.value("select id::text from agent_memories order by id desc limit 1")
    ledger.database.service.execute("set statement_timeout = '1s'")  # down the chain it takes three
    assert ledger("supersede_decision", old=newest, new=ledger.id("new"))["changed"] is True


def test_a_loop_is_refused_with_its_path(ledger: Ledger) -> None:
    a, b, c = ledger.id("a"), ledger.id("b"), ledger.id("c")
    ledger("supersede_decision", old=a, new=b)
    ledger("supersede_decision", old=b, new=c)
    before = written(ledger.database)
    assert (
        ledger.refused("RL461", "supersede_decision", old=c, new=a).message_detail
        == f"{a} -> {c} -> {b} -> {a}"
    )
    assert ledger.refused("RL461", "supersede_decision", old=a, new=a).message_detail == f"{a} -> {a}"
    assert written(ledger.database) == before


def test_both_are_of_this_workspace_and_there(ledger: Ledger) -> None:
    ours, gone = ledger.id("ours"), ledger.id("gone")
    theirs = Ledger(ledger.database, workspace="globex").id("theirs")
    ledger("forget_decision", memory_id=gone)
    before = written(ledger.database)
    for absent in (theirs, NOBODY):
        ledger.refused("RL404", "supersede_decision", old=ours, new=absent)
        ledger.refused("RL404", "supersede_decision", old=absent, new=ours)
    ledger.refused("RL410", "supersede_decision", old=ours, new=gone)
    ledger.refused("RL410", "supersede_decision", old=gone, new=ours)
    ledger.refused("22023", "supersede_decision", old=None, new=ours)
    ledger.refused("22023", "supersede_decision", old=ours, new=ours, reason="x" * 1_000_000)
    ledger.refused("22023", "supersede_decision", workspace_id="", old=ours, new=ours)
    assert written(ledger.database) == before


def test_the_two_halves_of_a_loop_at_once_are_not_both_made(ledger: Ledger) -> None:
    for _ in range(10):
        a, b = ledger.id("a"), ledger.id("b")

        def half(old: str, new: str) -> Any:
            return lambda connection: call(
                connection, "supersede_decision", workspace_id="acme", old=old, new=new
            )

        answers = at_once(ledger.database, [half(a, b), half(b, a)])
        assert [e.sqlstate for e in answers if isinstance(e, psycopg.Error)] == ["RL461"]


def test_changes_of_the_same_decisions_at_once_do_not_deadlock(ledger: Ledger) -> None:
    ids = [ledger.id(f"{n}") for n in range(6)]

    def change(number: int) -> Any:
        a, b = ids[number % 6], ids[(number * 5 + 1) % 6]
        calls: list[tuple[str, dict[str, Any]]] = [
            ("supersede_decision", {"old": a, "new": b}),
            ("set_decision_lifecycle", {"memory_id": b, "lifecycle": "active"}),
            ("set_decision_lifecycle", {"memory_id": a, "lifecycle": "disputed"}),
            ("pin_decision", {"memory_id": b}),
            ("link_decisions", {"from": a, "to": b, "relation": "informs"}),
            ("record_decision", {"content": "x", "depends_on": ids}),
        ]

        def work(connection: Connection) -> list[str | None]:
            codes: list[str | None] = []
            for turn in range(12):
                function, arguments = calls[(number + turn) % len(calls)]
                try:
                    call(connection, function, workspace_id="acme", **arguments)
                except psycopg.Error as error:
                    codes.append(error.sqlstate)
            return codes

        return work

    answers = at_once(ledger.database, [change(number) for number in range(12)])
    assert {code for codes in answers for code in codes} <= {"RL461"}
