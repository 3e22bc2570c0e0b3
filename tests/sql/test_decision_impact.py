"""decision_impact: what rests on a decision, directly and further on."""

from __future__ import annotations

import random
from collections import deque
from typing import Any

import pytest

from tests.sql.rpc import HOSTILE, NOBODY, Ledger


def impact(ledger: Ledger, memory_id: str, **arguments: Any) -> dict[str, Any]:
    answer = ledger("decision_impact", memory_id=memory_id, **arguments)
    assert isinstance(answer, dict)
    return answer


def ids(answer: dict[str, Any]) -> list[str]:
    return [one["memory_id"] for one in answer["decisions"]]


def force(ledger: Ledger, *edges: tuple[str, str]) -> None:
    """Edges past the check of cycles."""
    superuser = ledger.database.superuser
    superuser.execute("alter table agent_decision_edges disable trigger agent_decision_edges_check")
    for source, target in edges:
        superuser.execute(
            "insert into agent_decision_edges (from_memory_id, to_memory_id, relation) values (%s, %s, 'depends_on')",
            (source, target),
        )
    superuser.execute("alter table agent_decision_edges enable trigger agent_decision_edges_check")


def test_shows_what_rests_on_it_directly_and_further_on(ledger: Ledger) -> None:
    ground = ledger.id("Ground", task_id="t", project_id="p")
    near = ledger.id("Near", task_id="t", project_id="p", importance=0.9, depends_on=[ground])
    far = ledger.id("Far", depends_on=[near])
    assert impact(ledger, ground) == {
        "memory_id": ground,
        "summary": "Ground",
        "lifecycle_status": "active",
        "decisions": [
            {
                "memory_id": near,
                "summary": "Near",
                "step_index": 1,
                "project_id": "p",
                "task_id": "t",
                "lifecycle_status": "active",
                "importance": 0.9,
                "depth": 1,
                "via": ground,
                "rests_on_retired": False,
            },
            {
                "memory_id": far,
                "summary": "Far",
                "step_index": 0,
                "project_id": None,
                "task_id": None,
                "lifecycle_status": "active",
                "importance": 0.5,
                "depth": 2,
                "via": near,
                "rests_on_retired": False,
            },
        ],
        "direct": 1,
        "total": 2,
        "live": 2,
        "more": False,
    }


def test_nothing_rests_on_a_leaf(ledger: Ledger) -> None:
    leaf = ledger.id("x", depends_on=[ledger.id("ground")])
    answer = impact(ledger, leaf)
    assert [answer[name] for name in ("decisions", "direct", "total", "live", "more")] == [[], 0, 0, 0, False]


def test_each_is_there_once_by_its_shortest_way(ledger: Ledger) -> None:
    ground = ledger.id("ground")
    near = ledger.id("near", depends_on=[ground])
    both = ledger.id("both", depends_on=[near, ground])
    answer = impact(ledger, ground)
    assert [(one["memory_id"], one["depth"], one["via"]) for one in answer["decisions"]] == [
        (near, 1, ground),
        (both, 1, ground),
    ]
    assert (answer["direct"], answer["total"]) == (2, 2)


def test_other_relations_carry_nothing(ledger: Ledger) -> None:
    ground, informed, blocking = (ledger.id(text) for text in ("ground", "informed", "blocking"))
    ledger("link_decisions", **{"from": informed, "to": ground, "relation": "informs"})
    ledger("link_decisions", **{"from": blocking, "to": ground, "relation": "blocks"})
    assert impact(ledger, ground)["total"] == 0


def test_goes_by_depth_then_importance_then_step_then_id(ledger: Ledger) -> None:
    ground = ledger.id("ground")
    low = ledger.id("low", importance=0.2, depends_on=[ground])
    late = ledger.id("late", importance=0.8, step_index=9, depends_on=[ground])
    early = ledger.id("early", importance=0.8, step_index=4, depends_on=[ground])
    twins = sorted(ledger.id("twin", importance=0.5, step_index=5, depends_on=[ground]) for _ in range(3))
    deep = ledger.id("deep", importance=1, depends_on=[low])
    assert ids(impact(ledger, ground)) == [early, late, *twins, low, deep]


def test_what_is_not_live_is_shown_and_walked_through(ledger: Ledger) -> None:
    ground = ledger.id("ground")
    retired = ledger.id("retired", depends_on=[ground])
    top = ledger.id("top", depends_on=[retired])
    ledger("set_decision_lifecycle", memory_id=retired, lifecycle="rejected")
    answer = impact(ledger, ground)
    assert [(one["memory_id"], one["lifecycle_status"]) for one in answer["decisions"]] == [
        (retired, "rejected"),
        (top, "active"),
    ]
    assert [one["rests_on_retired"] for one in answer["decisions"]] == [False, True]
    assert (answer["total"], answer["live"]) == (2, 1)


def test_a_retired_decision_tells_what_rests_on_it(ledger: Ledger) -> None:
    old, new = ledger.id("old"), ledger.id("new")
    top = ledger.id("top", depends_on=[old])
    ledger("supersede_decision", old=old, new=new)
    answer = impact(ledger, old)
    assert answer["lifecycle_status"] == "superseded"
    assert [(one["memory_id"], one["rests_on_retired"]) for one in answer["decisions"]] == [(top, True)]
    assert impact(ledger, new)["total"] == 0


def test_what_is_set_aside_is_no_decision_and_ends_the_walk_until_it_is_restored(ledger: Ledger) -> None:
    ground = ledger.id("ground")
    middle = ledger.id("middle", depends_on=[ground])
    top = ledger.id("top", depends_on=[middle])
    retype = "update agent_memories set memory_type = %s where id = %s"
    ledger.database.owner.execute(retype, ("lesson", middle))
    answer = impact(ledger, ground)
    assert (ids(answer), answer["direct"], answer["total"]) == ([], 0, 0)
    ledger.refused("RL404", "decision_impact", memory_id=middle)
    ledger.database.owner.execute(retype, ("decision", middle))
    assert ids(impact(ledger, ground)) == [middle, top]


def test_depth_and_limit_cut_what_is_shown_and_not_what_is_counted(ledger: Ledger) -> None:
    ground = ledger.id("ground")
    chain = [ground]
    for number in range(5):
        chain.append(ledger.id(str(number), depends_on=[chain[-1]]))
    leaves = [ledger.id("leaf", importance=0.1, depends_on=[ground]) for _ in range(3)]
    for arguments, shown in (
        ({"max_depth": 1}, 4),
        ({"max_depth": 2}, 5),
        ({"max_depth": 5}, 8),
        ({"max_depth": 6}, 8),
        ({"limit": 2}, 2),
        ({"limit": 5}, 5),
        ({"limit": 8}, 8),
        ({"limit": 1000, "max_depth": None}, 8),
        ({"limit": None}, 8),
        ({"limit": 1, "max_depth": 2147483647}, 1),
    ):
        answer = impact(ledger, ground, **arguments)
        assert len(answer["decisions"]) == shown, arguments
        assert answer["more"] is (shown < 8)
        assert [answer[name] for name in ("direct", "total", "live")] == [4, 8, 8]
    whole = ids(impact(ledger, ground))
    assert set(whole) == {*chain[1:], *leaves}
    assert ids(impact(ledger, ground, limit=5)) == whole[:5], "a limit cuts the end of the same order"


def test_a_cycle_that_others_wrote_comes_to_an_end(ledger: Ledger) -> None:
    a, b, c = (ledger.id(text) for text in "abc")
    force(ledger, (b, a), (c, b), (a, c))
    answer = impact(ledger, a)
    assert [(one["memory_id"], one["depth"]) for one in answer["decisions"]] == [(b, 1), (c, 2)]
    assert (answer["direct"], answer["total"]) == (1, 2)


def test_never_leaves_the_workspace(ledger: Ledger) -> None:
    ours = ledger.id("ours")
    globex = Ledger(ledger.database, workspace="globex")
    theirs = globex.id("theirs")
    force(ledger, (theirs, ours))
    assert impact(ledger, ours)["total"] == 0
    globex.refused("RL404", "decision_impact", memory_id=ours)


def test_what_is_not_here_is_absent_and_what_was_is_gone(ledger: Ledger) -> None:
    gone = ledger.id("gone")
    ledger("forget_decision", memory_id=gone)
    ledger.refused("RL404", "decision_impact", memory_id=NOBODY)
    ledger.refused("RL410", "decision_impact", memory_id=gone)


@pytest.mark.parametrize(
    "arguments",
    [{"max_depth": 0}, {"max_depth": -1}, {"limit": 0}, {"limit": 1001}, {"memory_id": None}],
    ids=str,
)
def test_bad_arguments_are_refused(shared_ledger: Ledger, arguments: dict[str, Any]) -> None:
    shared_ledger.refused("22023", "decision_impact", **{"memory_id": NOBODY, **arguments})


@pytest.mark.parametrize("workspace", ["", " ", None])
def test_a_blank_workspace_is_refused(shared_ledger: Ledger, workspace: str | None) -> None:
    shared_ledger.refused("22023", "decision_impact", workspace_id=workspace, memory_id=NOBODY)


@pytest.mark.parametrize("workspace", HOSTILE, ids=range(len(HOSTILE)))
def test_a_workspace_of_any_name_is_read_as_it_is(shared_ledger: Ledger, workspace: str) -> None:
    ledger = Ledger(shared_ledger.database, workspace=workspace)
    ground = ledger.id("ground")
    top = ledger.id("top", depends_on=[ground])
    assert ids(impact(ledger, ground)) == [top]


@pytest.mark.parametrize("seed", range(6))
def test_is_what_a_plain_walk_finds(shared_ledger: Ledger, seed: int) -> None:
    """Random graphs against breadth-first search in Python."""
    rand = random.Random(seed)
    ledger = Ledger(shared_ledger.database, workspace=f"graph {seed}")
    made: list[str] = []
    grounds: dict[str, list[str]] = {}
    for number in range(40):
        chosen = rand.sample(made, min(len(made), rand.choice((0, 1, 1, 2, 3))))
        memory_id = ledger.id(str(number), importance=rand.choice((0.1, 0.5, 0.5, 1)), depends_on=chosen)
        made.append(memory_id)
        grounds[memory_id] = chosen
    for retired in rand.sample(made, 10):
        ledger("set_decision_lifecycle", memory_id=retired, lifecycle="stale")
    for root in rand.sample(made, 12):
        depths = {root: 0}
        queue = deque([root])
        while queue:
            at = queue.popleft()
            for other in made:
                if at in grounds[other] and other not in depths:
                    depths[other] = depths[at] + 1
                    queue.append(other)
        answer = impact(ledger, root)
        assert {one["memory_id"]: one["depth"] for one in answer["decisions"]} == {
            memory_id: depth for memory_id, depth in depths.items() if depth
        }
        for one in answer["decisions"]:
            assert one["via"] in grounds[one["memory_id"]]
            assert depths[one["via"]] == one["depth"] - 1
        assert answer["direct"] == sum(depth == 1 for depth in depths.values())
        assert answer["live"] == sum(one["lifecycle_status"] == "active" for one in answer["decisions"])
        order = [(one["depth"], -one["importance"], one["step_index"]) for one in answer["decisions"]]
        assert order == sorted(order)


@pytest.mark.parametrize("shape", ["chain", "star", "dense"])
def test_ten_thousand_are_answered_within_the_time_of_an_api_call(ledger: Ledger, shape: str) -> None:
    superuser = ledger.database.superuser
    rows = superuser.execute(
        "insert into agent_memories (workspace_id, memory_type, summary, content) "
        "select 'acme', 'decision', 's', 'decision ' || n from generate_series(1, 10000) n returning id::text"
    ).fetchall()
    made = [memory_id for (memory_id,) in rows]
    grounds = {
        "chain": [(at - 1,) for at in range(1, 10_000)],
        "star": [(0,)] * 9_999,
        "dense": [tuple(range(max(0, at - 3), at)) for at in range(1, 10_000)],
    }[shape]
    pairs = [(made[at], made[ground]) for at, many in enumerate(grounds, start=1) for ground in many]
    superuser.execute("alter table agent_decision_edges disable trigger agent_decision_edges_check")
    superuser.execute(
        "insert into agent_decision_edges (from_memory_id, to_memory_id, relation) "
        "select e.source, e.target, 'depends_on' from unnest(%s::uuid[], %s::uuid[]) as e (source, target)",
        ([source for source, _ in pairs], [target for _, target in pairs]),
    )
    with ledger.database.connect("service_role") as connection:
        connection.execute("set statement_timeout = '4s'")  # half of what the API allows
        answer = Ledger(ledger.database, connection=connection)("decision_impact", memory_id=made[0])
    assert (answer["total"], answer["live"], len(answer["decisions"])) == (9_999, 9_999, 500)
    assert answer["more"] is True
