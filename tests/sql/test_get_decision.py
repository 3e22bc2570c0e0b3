"""get_decision: a decision in full, and what is not told."""

from __future__ import annotations

from tests.sql.rpc import NOBODY, Ledger


def test_shows_edges_both_ways_by_their_other_end(ledger: Ledger) -> None:
    ground, top = ledger.id("Ground"), ledger.id("Top")
    middle = ledger.id("Middle", depends_on=[ground])
    ledger("link_decisions", **{"from": top, "to": middle, "relation": "informs"})
    shown = ledger.get(middle)
    common = {"lifecycle_status": "active"}
    assert shown["edges_out"] == [
        {"memory_id": ground, "relation": "depends_on", "summary": "Ground", "step_index": 0} | common
    ]
    assert shown["edges_in"] == [
        {"memory_id": top, "relation": "informs", "summary": "Top", "step_index": 1} | common
    ]
    assert (shown["successor"], shown["lost_ground"], shown["history"]) == (None, [], [])
    assert [link["memory_id"] for link in shown["chain"]] == [middle]


def test_the_successor_is_the_newest_active_one_and_the_chain_shows_all(ledger: Ledger) -> None:
    first, second, third = (ledger.id(text) for text in ("first", "second", "third"))
    ledger("supersede_decision", old=first, new=second)
    ledger("supersede_decision", old=second, new=third)
    for memory_id in (first, second):
        assert ledger.get(memory_id)["successor"] == third
    assert ledger.get(third)["successor"] is None
    for memory_id in (first, second, third):
        chain = ledger.get(memory_id)["chain"]
        assert [link["memory_id"] for link in chain] == [first, second, third]
        assert [link["lifecycle_status"] for link in chain] == ["superseded", "superseded", "active"]
    ledger("set_decision_lifecycle", memory_id=third, lifecycle="rejected")
    assert ledger.get(first)["successor"] is None


def test_loops_and_diamonds_that_others_wrote_come_to_an_end(ledger: Ledger) -> None:
    ids = [ledger.id(f"{n}") for n in range(40)]
    ledger.database.owner.execute(
        """insert into agent_memory_relations (from_memory_id, to_memory_id, relation)
           select a.id, b.id, 'supersedes'
           from unnest(%(ids)s::uuid[]) with ordinality a (id, n), unnest(%(ids)s::uuid[]) with ordinality b (id, n)
           where a.n / 4 = b.n / 4 + 1 or (a.n = 1 and b.n = 40)""",
        {"ids": ids},
    )
    shown = ledger.get(ids[0])
    assert len(shown["chain"]) == 40
    assert shown["successor"] == ids[-1]


def test_the_chain_never_leaves_the_workspace(ledger: Ledger) -> None:
    ours = ledger.id("ours")
    theirs = Ledger(ledger.database, workspace="globex").id("theirs")
    ledger.database.owner.execute(
        "insert into agent_memory_relations (from_memory_id, to_memory_id, relation) values (%s, %s, 'supersedes')",
        (theirs, ours),
    )
    assert theirs not in str(ledger.get(ours))


def test_shows_its_transitions_oldest_first(ledger: Ledger) -> None:
    old, new = ledger.id("old"), ledger.id("new")
    ledger("set_decision_lifecycle", memory_id=old, lifecycle="disputed", reason="does it hold?", actor="ada")
    ledger("set_decision_lifecycle", memory_id=old, lifecycle="active")
    ledger.database.owner.execute(
        "update agent_memories set lifecycle_status = 'stale' where id = %s", (old,)
    )
    ledger("supersede_decision", old=old, new=new, reason="it does not", actor="bob")
    history = [
        (t["lifecycle_status"], t["step_index"], t["reason"], t["actor"]) for t in ledger.get(old)["history"]
    ]
    assert history == [
        ("disputed", 1, "does it hold?", "ada"),
        ("active", 1, None, None),
        ("stale", 1, None, None),
        ("superseded", 1, "it does not", "bob"),
    ]


def test_what_is_not_here_is_absent_and_what_was_is_gone(ledger: Ledger) -> None:
    elsewhere = Ledger(ledger.database, workspace="globex")
    theirs, gone = elsewhere.id("theirs"), ledger.id("gone")
    ledger("forget_decision", memory_id=gone)
    absent = [ledger.refused("RL404", "get_decision", memory_id=memory_id) for memory_id in (theirs, NOBODY)]
    assert absent[0].message_hint == absent[1].message_hint
    assert "forgotten" in str(ledger.refused("RL410", "get_decision", memory_id=gone).message_primary)
    elsewhere.refused("RL404", "get_decision", memory_id=gone)


def test_a_memory_that_is_no_decision_any_more_is_absent(ledger: Ledger) -> None:
    retyped = ledger.id("x")
    ledger.database.owner.execute(
        "update agent_memories set memory_type = 'lesson' where id = %s", (retyped,)
    )
    ledger.refused("RL404", "get_decision", memory_id=retyped)
    ledger.database.owner.execute(
        "update agent_memories set memory_type = 'decision' where id = %s", (retyped,)
    )
    assert ledger.get(retyped)["content"] == "x"


def test_a_decision_that_was_not_enrolled_says_how_to_mend_it(ledger: Ledger) -> None:
    memory_id = ledger.id("x")
    ledger.database.owner.execute("delete from agent_decision_ledger where memory_id = %s", (memory_id,))
    assert "enroll_missing_decisions" in str(
        ledger.refused("RL404", "get_decision", memory_id=memory_id).message_hint
    )


def test_bad_arguments_are_refused(ledger: Ledger) -> None:
    ledger.refused("22023", "get_decision", memory_id=None)
    ledger.refused("22023", "get_decision", workspace_id="", memory_id=NOBODY)
    ledger.refused("22P02", "get_decision", memory_id="'; drop table thoughts")
