"""recall_policy_stats: the view's columns, per workspace and since a time."""

from __future__ import annotations

import pytest

from tests.sql.rpc import Ledger


def test_compares_policies_and_agrees_with_the_view(ledger: Ledger) -> None:
    a, b, c, d = (ledger.id(text) for text in "abcd")
    first = ledger.trace(a, b, c, d, policy="ranked_ledger", similarity=0.5)
    ledger.trace(policy="ranked_ledger")
    ledger.trace(a, similarity=0.25)
    ledger("mark_recall_usage", request_id=first, used=[a, b], ignored=[{"memory_id": c}])
    ranked, vector = ledger("recall_policy_stats")
    assert ranked == {
        "recall_policy": "ranked_ledger",
        "recall_requests": 2,
        "items_returned": 4,
        "avg_similarity": 0.5,
        "avg_ranking_score": 0.5,
        "used_rate": 0.5,
        "ignored_rate": 0.25,
    }
    assert (vector["recall_policy"], vector["recall_requests"], vector["used_rate"]) == ("vector", 1, 0)
    view = [
        row
        for (row,) in ledger.database.rows("select to_jsonb(v) from agent_recall_policy_stats v order by 1")
    ]
    assert sorted(view, key=str) == sorted([ranked, vector], key=str)


def relevance_sources(ledger: Ledger, request_id: str, *sources: str | None) -> None:
    """What the items' snapshots say, in rank order; None: nothing."""
    for rank, source in enumerate(sources, 1):
        ledger.database.owner.execute(
            "update agent_memory_recall_items i set use_policy_snapshot = %s from agent_memory_recall_traces t "
            "where t.id = i.trace_id and t.request_id = %s and i.rank = %s",
            (source, request_id, rank),
        )


def similarities(ledger: Ledger) -> dict[str, float | None]:
    """By policy: the function's, which the view agrees with."""
    found = {one["recall_policy"]: one["avg_similarity"] for one in ledger("recall_policy_stats")}
    view = ledger.database.rows("select recall_policy, avg_similarity::float8 from agent_recall_policy_stats")
    assert dict(view) == found
    return found


def test_a_zero_that_was_no_cosine_is_not_in_the_mean(ledger: Ledger) -> None:
    ids = [ledger.id(text) for text in "abcdefg"]
    words = ledger.trace(*ids[:2], policy="ranked_ledger", similarity=0)
    cosines = ledger.trace(*ids, policy="ranked_ledger", similarity=0.5)
    relevance_sources(ledger, words, *(f'{{"relevance_source": "{one}"}}' for one in ("fts", "none")))
    kept = ["cosine", "max", "blend", "new", "null"]
    relevance_sources(
        ledger, cosines, *(f'{{"relevance_source": "{one}"}}' for one in kept), None, '["relevance_source"]'
    )
    (stats,) = ledger("recall_policy_stats")
    assert (stats["items_returned"], stats["avg_ranking_score"]) == (9, 0.5), "they are items all the same"
    assert similarities(ledger) == {"ranked_ledger": 0.5}


def test_a_zero_that_is_a_cosine_is_in_the_mean(ledger: Ledger) -> None:
    a, b = ledger.id("a"), ledger.id("b")
    relevance_sources(
        ledger, ledger.trace(a, policy="ranked_ledger", similarity=0), '{"relevance_source": "cosine"}'
    )
    ledger.trace(b, policy="ranked_ledger", similarity=0.5)
    ledger.trace(a, similarity=0)
    assert similarities(ledger) == {"ranked_ledger": 0.25, "vector": 0}


def test_recalls_by_words_alone_have_no_mean(ledger: Ledger) -> None:
    a = ledger.id("a")
    relevance_sources(
        ledger, ledger.trace(a, policy="ranked_ledger", similarity=0), '{"relevance_source": "fts"}'
    )
    assert similarities(ledger) == {"ranked_ledger": None}


def test_a_policy_that_returned_nothing_has_no_rates(ledger: Ledger) -> None:
    ledger.trace(policy="ranked_ledger")
    (stats,) = ledger("recall_policy_stats")
    assert (stats["recall_requests"], stats["items_returned"]) == (1, 0)
    assert [stats[name] for name in ("avg_similarity", "avg_ranking_score", "used_rate", "ignored_rate")] == [
        None
    ] * 4


def test_shows_one_workspace_since_a_time(ledger: Ledger) -> None:
    Ledger(ledger.database, workspace="globex").trace(policy="theirs")
    old = ledger.trace(policy="old")
    ledger.database.owner.execute(
        "update agent_memory_recall_traces set created_at = '2026-01-01' where request_id = %s", (old,)
    )
    ledger.trace(policy="new")
    policies = [
        [s["recall_policy"] for s in ledger("recall_policy_stats", since=since)]
        for since in (None, "2026-02-01")
    ]
    assert policies == [["new", "old"], ["new"]]
    assert ledger("recall_policy_stats", since="infinity") == []


@pytest.mark.parametrize("workspace", [None, "", " \t"])
def test_a_blank_workspace_is_refused(shared_ledger: Ledger, workspace: str | None) -> None:
    shared_ledger.refused("22023", "recall_policy_stats", workspace_id=workspace)


def test_a_time_that_is_none_is_refused(shared_ledger: Ledger) -> None:
    shared_ledger.refused("22007", "recall_policy_stats", since="yesterday or so")
