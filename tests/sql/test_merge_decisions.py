"""supersede_decision with p_action merge: one decision went into another, and a restoration takes it back."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from tests.sql.rpc import HOSTILE, NOBODY, Ledger, at_once, call, count
from tests.sql.test_supersede_decision import written


def merge(ledger: Ledger, old: str, new: str, **arguments: Any) -> dict[str, Any]:
    answer = ledger("supersede_decision", old=old, new=new, action="merge", **arguments)
    assert isinstance(answer, dict)
    return answer


def restore(ledger: Ledger, memory_id: str) -> dict[str, Any]:
    answer = ledger("set_decision_lifecycle", memory_id=memory_id, lifecycle="active")
    assert isinstance(answer, dict)
    return answer


def relations(ledger: Ledger) -> set[tuple[str, str, str]]:
    return set(
        ledger.database.rows(
            "select from_memory_id::text, relation, to_memory_id::text from agent_memory_relations"
        )
    )


def host_reviews(ledger: Ledger, memory_id: str, status: str) -> None:
    ledger.database.owner.execute(
        "update agent_memories set review_status = %s where id = %s", (status, memory_id)
    )


def newest_review(ledger: Ledger, memory_id: str) -> tuple[Any, ...]:
    return ledger.database.rows(
        "select action, actor_label, notes, before, after from agent_memory_review_actions "
        "where memory_id = %s order by created_at desc limit 1",
        (memory_id,),
    )[0]


def test_does_all_that_superseding_does_and_says_that_it_merged(ledger: Ledger) -> None:
    old, new = ledger.id("Numbers are unique", project_id="billing"), ledger.id("Numbers are unique, no gaps")
    answer = merge(ledger, old, new, reason="The same rule", actor="ada")
    assert answer["changed"] is True
    assert (answer["old"]["lifecycle_status"], answer["old"]["review_status"]) == ("superseded", "merged")
    assert (answer["new"]["lifecycle_status"], answer["new"]["review_status"]) == ("active", "pending")
    assert relations(ledger) == {(new, "supersedes", old), (old, "merged_into", new)}
    assert newest_review(ledger, old) == (
        "merge",
        "ada",
        "The same rule",
        {"lifecycle_status": "active", "review_status": "pending"},
        {"lifecycle_status": "superseded", "superseded_by": new, "review_status": "merged"},
    )
    assert count(ledger.database, "agent_memory_review_actions") == 1
    assert ledger.database.rows(
        "select memory_id::text, project_id, actor_label, payload from agent_memory_audit_events "
        "where event_type = 'memory_superseded'"
    ) == [(old, "billing", "ada", {"kind": "merge", "superseded_by": new})]
    shown = ledger.get(old)
    assert shown["successor"] == new
    assert [one["memory_id"] for one in shown["chain"]] == [old, new]
    (transition,) = shown["history"]
    assert (transition["lifecycle_status"], transition["reason"], transition["actor"]) == (
        "superseded",
        "The same rule",
        "ada",
    )


def test_recall_shows_the_one_that_is_left(ledger: Ledger) -> None:
    old, new = ledger.id("Invoices are immutable"), ledger.id("Invoices are immutable once sent")
    merge(ledger, old, new)
    assert [hit["memory_id"] for hit in ledger("recall_decisions", query="immutable")["hits"]] == [new]
    hits = ledger("recall_decisions", query="immutable", include_superseded=True)["hits"]
    assert {hit["memory_id"]: hit["successor"] for hit in hits} == {new: None, old: new}


def test_a_repeat_changes_nothing(ledger: Ledger) -> None:
    old, new = ledger.id("old"), ledger.id("new")
    first = merge(ledger, old, new)
    before = written(ledger.database)
    assert merge(ledger, old, new, reason="again") == first | {"changed": False}
    assert ledger("supersede_decision", old=old, new=new) == first | {"changed": False}
    assert written(ledger.database) == before


def test_what_was_superseded_is_merged_after(ledger: Ledger) -> None:
    old, new = ledger.id("old"), ledger.id("new")
    ledger("supersede_decision", old=old, new=new)
    answer = merge(ledger, old, new)
    assert (answer["changed"], answer["old"]["review_status"]) == (True, "merged")
    assert relations(ledger) == {(new, "supersedes", old), (old, "merged_into", new)}
    assert newest_review(ledger, old)[3] == {"lifecycle_status": "superseded", "review_status": "pending"}
    assert len(ledger.get(old)["history"]) == 1, "it was superseded before"


@pytest.mark.parametrize(
    "undone",
    [
        "update agent_memories set lifecycle_status = 'active'",
        "update agent_memories set review_status = 'pending'",
        "delete from agent_memory_relations where relation = 'merged_into'",
        "delete from agent_memory_relations where relation = 'supersedes'",
    ],
)
def test_what_a_host_undid_of_it_is_made_again(ledger: Ledger, undone: str) -> None:
    old, new = ledger.id("old"), ledger.id("new")
    merge(ledger, old, new)
    ledger.database.owner.execute(undone)
    answer = merge(ledger, old, new)
    assert (answer["changed"], answer["old"]["lifecycle_status"], answer["old"]["review_status"]) == (
        True,
        "superseded",
        "merged",
    )
    assert relations(ledger) == {(new, "supersedes", old), (old, "merged_into", new)}


@pytest.mark.parametrize(
    "status", ["pending", "confirmed", "evidence_only", "restricted", "rejected", "stale"]
)
def test_restoring_takes_all_of_it_back(ledger: Ledger, status: str) -> None:
    old, new = ledger.id("old"), ledger.id("new")
    host_reviews(ledger, old, status)
    merge(ledger, old, new)
    answer = restore(ledger, old)
    assert (answer["lifecycle_status"], answer["review_status"], answer["changed"]) == (
        "active",
        status,
        True,
    )
    assert relations(ledger) == set()
    action, _, _, before, after = newest_review(ledger, old)
    assert (action, before) == ("edit", {"lifecycle_status": "superseded", "review_status": "merged"})
    assert after == {
        "kind": "restore",
        "lifecycle_status": "active",
        "no_longer_superseded_by": [new],
        "no_longer_merged_into": [new],
        "review_status": status,
    }
    assert merge(ledger, old, new)["changed"] is True
    assert restore(ledger, old)["review_status"] == status


def test_restoring_after_two_merges_brings_back_the_review_before_the_first(ledger: Ledger) -> None:
    old, left, right = ledger.id("old"), ledger.id("left"), ledger.id("right")
    host_reviews(ledger, old, "confirmed")
    merge(ledger, old, left)
    assert merge(ledger, old, right)["changed"] is True
    assert restore(ledger, old)["review_status"] == "confirmed"
    assert newest_review(ledger, old)[4]["no_longer_merged_into"] == sorted([left, right])
    host_reviews(ledger, old, "restricted")
    merge(ledger, old, left)
    assert restore(ledger, old)["review_status"] == "restricted", "that of the newest merge"
    assert relations(ledger) == set()


def test_restoring_leaves_what_was_merged_into_it(ledger: Ledger) -> None:
    older, old, new = ledger.id("older"), ledger.id("old"), ledger.id("new")
    merge(ledger, older, old)
    merge(ledger, old, new)
    restore(ledger, old)
    assert relations(ledger) == {(old, "supersedes", older), (older, "merged_into", old)}
    assert ledger.get(older)["review_status"] == "merged"


def test_a_review_since_the_merge_stands(ledger: Ledger) -> None:
    old, new = ledger.id("old"), ledger.id("new")
    merge(ledger, old, new)
    host_reviews(ledger, old, "rejected")
    assert restore(ledger, old)["review_status"] == "rejected"
    assert "review_status" not in newest_review(ledger, old)[4]
    assert relations(ledger) == set()


@pytest.mark.parametrize(
    "before", [None, "{}", "[]", '"text"', '{"review_status": "merged"}', '{"review_status": "?"}']
)
def test_a_merge_that_a_host_made_restores_to_pending(ledger: Ledger, before: str | None) -> None:
    old = ledger.id("old")
    ledger.database.owner.execute(
        "update agent_memories set lifecycle_status = 'superseded', review_status = 'merged' where id = %s",
        (old,),
    )
    ledger.database.owner.execute(
        "insert into agent_memory_review_actions (memory_id, action, before) values (%s, 'merge', %s)",
        (old, before),
    )
    assert restore(ledger, old)["review_status"] == "pending"


def test_restoring_what_was_merged_into_a_forgotten_one(ledger: Ledger) -> None:
    old, new = ledger.id("old"), ledger.id("new")
    host_reviews(ledger, old, "confirmed")
    merge(ledger, old, new)
    assert ledger("forget_decision", memory_id=new)["left_superseded"] == [old]
    assert restore(ledger, old)["review_status"] == "confirmed"


def test_other_changes_of_its_lifecycle_leave_the_merge(ledger: Ledger) -> None:
    old, new = ledger.id("old"), ledger.id("new")
    host_reviews(ledger, old, "confirmed")
    merge(ledger, old, new)
    ledger("set_decision_lifecycle", memory_id=old, lifecycle="rejected")
    assert ledger.get(old)["review_status"] == "merged"
    assert len(relations(ledger)) == 2
    assert restore(ledger, old)["review_status"] == "confirmed"


def test_a_host_without_the_unique_constraint_gets_each_relation_once(ledger: Ledger) -> None:
    ledger.database.owner.execute(
        "alter table agent_memory_relations drop constraint agent_memory_relations_said_once"
    )
    old, new = ledger.id("old"), ledger.id("new")
    for _ in range(2):
        merge(ledger, old, new)
    assert count(ledger.database, "agent_memory_relations") == 2


def test_loops_are_refused_as_those_of_supersession(ledger: Ledger) -> None:
    a, b, c = ledger.id("a"), ledger.id("b"), ledger.id("c")
    merge(ledger, a, b)
    ledger("supersede_decision", old=b, new=c)
    before = written(ledger.database)
    for old, new, path in ((c, a, f"{a} -> {c} -> {b} -> {a}"), (a, a, f"{a} -> {a}")):
        said = ledger.refused("RL461", "supersede_decision", old=old, new=new, action="merge")
        assert said.message_detail == path
    assert written(ledger.database) == before


def test_both_are_of_this_workspace_and_there(ledger: Ledger) -> None:
    ours, gone = ledger.id("ours"), ledger.id("gone")
    theirs = Ledger(ledger.database, workspace="globex").id("theirs")
    ledger("forget_decision", memory_id=gone)
    before = written(ledger.database)
    for absent, code in ((theirs, "RL404"), (NOBODY, "RL404"), (gone, "RL410")):
        ledger.refused(code, "supersede_decision", old=ours, new=absent, action="merge")
        ledger.refused(code, "supersede_decision", old=absent, new=ours, action="merge")
    ledger.refused("22023", "supersede_decision", old=None, new=ours, action="merge")
    assert written(ledger.database) == before
    assert ledger.get(ours)["review_status"] == "pending"


@pytest.mark.parametrize("action", ["", " ", "Merge", "merged", "edit", "x" * 1_000_000, *HOSTILE])
def test_another_action_is_refused(shared_ledger: Ledger, action: str) -> None:
    said = shared_ledger.refused("22023", "supersede_decision", old=NOBODY, new=NOBODY, action=action)
    assert "p_action" in str(said.message_primary)
    assert len(str(said.message_primary)) < 200


def test_no_action_is_supersede(ledger: Ledger) -> None:
    old, new = ledger.id("old"), ledger.id("new")
    answer = ledger("supersede_decision", old=old, new=new, action=None)
    assert (answer["changed"], answer["old"]["review_status"]) == (True, "pending")
    assert relations(ledger) == {(new, "supersedes", old)}


def test_the_same_merge_at_once_is_made_once(ledger: Ledger) -> None:
    old, new = ledger.id("old"), ledger.id("new")

    def work(connection: psycopg.Connection[tuple]) -> Any:
        arguments = {"workspace_id": "acme", "old": old, "new": new, "action": "merge"}
        return call(connection, "supersede_decision", **arguments)["changed"]

    assert sorted(at_once(ledger.database, [work] * 8)) == [False] * 7 + [True]
    assert len(relations(ledger)) == count(ledger.database, "agent_memory_relations") == 2
    assert count(ledger.database, "agent_memory_review_actions") == 1


def test_merging_and_restoring_at_once_leaves_all_or_nothing_of_it(ledger: Ledger) -> None:
    old, new = ledger.id("old"), ledger.id("new")

    def change(number: int) -> Any:
        name, arguments = (
            ("supersede_decision", {"old": old, "new": new, "action": "merge"}),
            ("set_decision_lifecycle", {"memory_id": old, "lifecycle": "active"}),
            ("supersede_decision", {"old": new, "new": old, "action": "merge"}),
            ("set_decision_lifecycle", {"memory_id": new, "lifecycle": "active"}),
        )[number % 4]

        def work(connection: psycopg.Connection[tuple]) -> list[str | None]:
            codes: list[str | None] = []
            for _ in range(10):
                try:
                    call(connection, name, workspace_id="acme", **arguments)
                except psycopg.Error as error:
                    codes.append(error.sqlstate)
            return codes

        return work

    answers = at_once(ledger.database, [change(number) for number in range(8)])
    assert {code for codes in answers for code in codes} <= {"RL461"}
    states = dict(
        ledger.database.rows("select id::text, (lifecycle_status, review_status)::text from agent_memories")
    )
    merged = {one for one, state in states.items() if state == "(superseded,merged)"}
    assert set(states.values()) <= {"(superseded,merged)", "(active,pending)"}
    assert {start for start, relation, _ in relations(ledger) if relation == "merged_into"} == merged
    assert {end for _, relation, end in relations(ledger) if relation == "supersedes"} == merged
