"""The arguments that ranked recall has beyond the published ones: what each takes, refuses and leaves out."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

from tests.rig import hosts
from tests.rig.databases import Database, Server
from tests.sql import ranking_oracle
from tests.sql.ranking_oracle import Workspace
from tests.sql.rpc import Ledger, vector

AXIS = vector(8, 0)
# cosines of 0.6 and -0.6 with the axis
SLANTED, AVERTED = "[3,4,0,0,0,0,0,0]", "[-3,4,0,0,0,0,0,0]"
TWO_THIRDS = pytest.approx(2 / 3, abs=1e-7)  # ts_rank_cd is a float4


@pytest.fixture(scope="module")
def database(server: Server) -> Iterator[Database]:
    made = hosts.ledger_host(server, hosts.Port(dimension=8))
    yield made
    server.remove(made)


@pytest.fixture
def host(database: Database, request: pytest.FixtureRequest) -> Workspace:
    return Workspace(database, request.node.name)


def contents(rows: list[dict[str, Any]]) -> list[str]:
    return [row["content"] for row in rows]


def relevances(rows: list[dict[str, Any]]) -> dict[str, tuple[float, str]]:
    return {row["content"]: (row["relevance"], row["relevance_source"]) for row in rows}


REFUSED: dict[str, list[dict[str, Any]]] = {
    "p_min_relevance": [{"p_min_relevance": value} for value in (1.0000001, 2, math.inf, math.nan)],
    "p_similarity_floor": [
        *({"p_similarity_floor": value} for value in (-1.01, 1, 1.5, math.nan, math.inf, -math.inf)),
        *({"p_similarity_ceiling": value} for value in (0, -0.5, 1.01, math.nan, math.inf, -math.inf)),
        {"p_similarity_floor": 0.5, "p_similarity_ceiling": 0.5},
        {"p_similarity_floor": 0.6, "p_similarity_ceiling": 0.5},
        {"p_similarity_floor": math.nan, "p_similarity_ceiling": math.nan},
    ],
    "p_fusion": [{"p_fusion": value} for value in ("", "MAX", "sum", " none", "rrf")],
    "p_fusion_weight": [{"p_fusion_weight": value} for value in (-0.1, 1.1, math.nan, math.inf, -math.inf)],
}


@pytest.mark.parametrize(
    ("name", "arguments"), [(name, one) for name, several in REFUSED.items() for one in several]
)
@pytest.mark.parametrize("function", [ranking_oracle.match, ranking_oracle.recall])
def test_what_cannot_be_meant_is_refused_by_name(
    shared_ledger: Ledger, function: Callable[..., Any], name: str, arguments: dict[str, Any]
) -> None:
    with pytest.raises(psycopg.errors.InvalidParameterValue, match=name):
        function(shared_ledger.connection, {"p_workspace_id": "acme"} | arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        dict.fromkeys(("p_min_relevance", "p_similarity_floor", "p_similarity_ceiling", "p_fusion", "p_fusion_weight"))
        | dict.fromkeys(("p_only_confirmed", "p_include_personal", "p_include_stale", "p_include_superseded", "p_exact"))
        | {"p_embedding_model": None},
        {"p_min_relevance": 0},
        {"p_min_relevance": -math.inf},
        {"p_embedding_model": "nobody calibrated it"},
        {"p_fusion": "none", "p_fusion_weight": 0},
        {"p_similarity_floor": 0, "p_similarity_ceiling": 1},
        {"p_exact": False},
    ],
)  # fmt: skip
def test_null_and_what_is_neutral_change_nothing(host: Workspace, arguments: dict[str, Any]) -> None:
    host.write("near", AXIS, visibility="personal")
    host.write("slanted invoice", SLANTED)
    host.write("averted", AVERTED)
    host.write("invoice only", None)
    host.write("stale", AXIS, lifecycle_status="stale")
    question = {"p_query": "invoice", "p_query_embedding": AXIS}
    plain = host.ask(**question)
    assert len(plain) == 4
    assert host.ask(**question, **arguments) == plain


def test_a_minimum_of_relevance_leaves_out_what_is_below_it_pins_too(host: Workspace) -> None:
    host.write("near", AXIS)
    host.write("slanted", SLANTED)
    pinned = host.write("averted", AVERTED)
    host.db.owner.execute("update agent_decision_ledger set pinned = true where memory_id = %s", (pinned,))
    assert contents(host.ask(p_query_embedding=AXIS)) == ["averted", "near", "slanted"]
    assert contents(host.ask(p_query_embedding=AXIS, p_min_relevance=0.5)) == ["near", "slanted"]
    assert contents(host.ask(p_query_embedding=AXIS, p_min_relevance=1)) == ["near"]


def test_a_minimum_that_is_met_exactly_is_met(host: Workspace) -> None:
    host.write("slanted", SLANTED)
    ((exact,),) = {(row["relevance"],) for row in host.ask(p_query_embedding=AXIS)}
    assert len(host.ask(p_query_embedding=AXIS, p_min_relevance=exact)) == 1
    assert host.ask(p_query_embedding=AXIS, p_min_relevance=math.nextafter(exact, 1)) == []


def test_only_confirmed_leaves_out_what_awaits_a_confirmation(host: Workspace) -> None:
    for required in (True, False):
        for status in ("pending", "confirmed", "evidence_only", "restricted"):
            name = f"{status} {'required' if required else ''}".strip()
            host.write(name, review_status=status, requires_user_confirmation=required)
    assert len(host.ask()) == 8
    assert set(contents(host.ask())) - set(contents(host.ask(p_only_confirmed=True))) == {"pending required"}


def test_personal_decisions_can_be_left_out(host: Workspace) -> None:
    for visibility in ("personal", "channel", "project", "workspace", "organization"):
        host.write(visibility, visibility=visibility)
    assert len(host.ask()) == 5
    assert set(contents(host.ask())) - set(contents(host.ask(p_include_personal=False))) == {"personal"}


def test_stale_and_disputed_come_without_the_retired_ones_each_with_its_penalty(host: Workspace) -> None:
    for lifecycle in ("active", "stale", "disputed", "superseded", "rejected"):
        host.write(lifecycle, lifecycle_status=lifecycle)
    assert contents(host.ask()) == ["active"]
    held = host.ask(p_include_stale=True)
    assert sorted(contents(held)) == ["active", "disputed", "stale"]
    scores = {row["content"]: row["ranking_score"] - 0.15 * row["recency"] for row in held}
    assert scores == pytest.approx({"active": 0.125, "stale": -0.175, "disputed": -0.175})
    for stale in (True, False):
        assert len(host.ask(p_include_stale=stale, p_include_superseded=True)) == 5


def test_a_range_says_which_cosines_count_as_0_and_as_1(host: Workspace) -> None:
    for content, embedding in (("near", AXIS), ("slanted", SLANTED), ("averted", AVERTED)):
        host.write(content, embedding)

    def ask(**arguments: Any) -> dict[str, Any]:
        rows = host.ask(p_query_embedding=AXIS, **arguments)
        assert {row["content"]: row["similarity"] for row in rows} == pytest.approx(
            {"near": 1, "slanted": 0.6, "averted": -0.6}, abs=1e-6
        ), "the raw cosine stays"
        return {row["content"]: pytest.approx(row["relevance"], abs=1e-6) for row in rows}

    assert ask() == {"near": 1, "slanted": 0.6, "averted": 0}
    assert ask(p_similarity_floor=0.5, p_similarity_ceiling=0.9) == {"near": 1, "slanted": 0.25, "averted": 0}
    assert ask(p_similarity_floor=-1) == {"near": 1, "slanted": 0.8, "averted": 0.2}
    assert ask(p_similarity_ceiling=0.5) == {"near": 1, "slanted": 1, "averted": 0}


def test_a_kept_range_holds_for_its_workspace_and_model_where_none_is_given(host: Workspace) -> None:
    host.write("slanted", SLANTED)
    keep = "insert into ranked_ledger.similarity_ranges values (%s, %s, 0.5, 0.9)"
    host.db.service.execute(keep, (host.name, "small"))
    host.db.service.execute(keep, ("other", "large"))

    def ask(**arguments: Any) -> float:
        (row,) = host.ask(p_query_embedding=AXIS, **arguments)
        return float(row["relevance"])

    assert ask(p_embedding_model="small") == pytest.approx(0.25, abs=1e-6)
    for arguments in (
        {},
        {"p_embedding_model": "large"},
        {"p_embedding_model": "small", "p_similarity_ceiling": 1},
    ):
        assert ask(**arguments) == pytest.approx(0.6, abs=1e-6)  # type: ignore[arg-type]
    host.db.service.execute("update ranked_ledger.similarity_ranges set floor = -1, ceiling = 1")
    assert ask(p_embedding_model="small") == pytest.approx(0.8, abs=1e-6)
    host.db.service.execute("delete from ranked_ledger.similarity_ranges")
    assert ask(p_embedding_model="small") == pytest.approx(0.6, abs=1e-6)


def test_fusion_says_what_counts_where_a_row_has_both(host: Workspace) -> None:
    host.write("slanted invoice invoice", SLANTED)  # 0.6 and 2/3
    host.write("near", AXIS)  # 1 and 0
    host.write("invoice invoice", None)
    both = {"p_query": "invoice", "p_query_embedding": AXIS}
    cosine, text = pytest.approx(0.6, abs=1e-6), (TWO_THIRDS, "fts")
    assert relevances(host.ask(**both)) == {
        "slanted invoice invoice": (cosine, "cosine"), "near": (1, "cosine"), "invoice invoice": text,
    }  # fmt: skip
    assert relevances(host.ask(**both, p_fusion="max")) == {
        "slanted invoice invoice": (TWO_THIRDS, "max"), "near": (1, "max"), "invoice invoice": text,
    }  # fmt: skip
    assert relevances(host.ask(**both, p_fusion="blend")) == {
        "slanted invoice invoice": (pytest.approx(0.5 * 0.6 + 0.5 * 2 / 3, abs=1e-6), "blend"),
        "near": (0.5, "blend"), "invoice invoice": text,
    }  # fmt: skip
    assert relevances(host.ask(**both, p_fusion="blend", p_fusion_weight=0.25)) == {
        "slanted invoice invoice": (pytest.approx(0.25 * 0.6 + 0.75 * 2 / 3, abs=1e-6), "blend"),
        "near": (0.25, "blend"), "invoice invoice": text,
    }  # fmt: skip


@pytest.mark.parametrize("fusion", ["max", "blend"])
def test_fusion_changes_nothing_where_only_one_of_both_is_there(host: Workspace, fusion: str) -> None:
    host.write("invoice", SLANTED)
    for question in ({"p_query": "invoice"}, {"p_query_embedding": AXIS}, {}):
        assert host.ask(**question, p_fusion=fusion) == host.ask(**question)


def test_fusion_takes_the_calibrated_cosine(host: Workspace) -> None:
    host.write("invoice invoice", SLANTED)
    (row,) = host.ask(p_query="invoice", p_query_embedding=AXIS, p_fusion="blend", p_similarity_floor=0.5,
        p_similarity_ceiling=0.9, p_min_relevance=0.4,
    )  # fmt: skip
    assert row["relevance"] == pytest.approx((0.25 + 2 / 3) / 2, abs=1e-6)
    assert (row["similarity"], row["text_relevance"]) == (pytest.approx(0.6, abs=1e-6), TWO_THIRDS)


@pytest.mark.parametrize(
    ("arguments", "noise"),
    [
        ({"p_only_confirmed": True}, {"review_status": "pending"}),
        ({"p_include_personal": False}, {"visibility": "personal"}),
        ({}, {"lifecycle_status": "stale"}),
        ({"p_include_stale": True}, {"lifecycle_status": "rejected"}),
        ({"p_project_id": "p"}, {"project_id": "q"}),
    ],
)
def test_every_filter_is_applied_before_the_limit(
    host: Workspace, arguments: dict[str, Any], noise: dict[str, Any]
) -> None:
    wanted = {"review_status": "confirmed", "project_id": "p"}
    for number in range(30):
        host.write(f"invoice {number}", AXIS, **wanted | {"confidence": 1} | noise)
    host.write("something else", AVERTED, **wanted | {"confidence": 0})
    question = {"p_query": "invoice", "p_query_embedding": AXIS, "p_match_count": 3} | arguments
    assert contents(host.ask(**question)) == ["something else"]


def test_a_minimum_of_relevance_is_applied_before_the_limit(host: Workspace) -> None:
    for number in range(30):
        host.write(f"important {number}", AVERTED, confidence=1)
    host.write("near", AXIS, confidence=0)
    question = {"p_query_embedding": AXIS, "p_w_similarity": 0.1, "p_match_count": 3}
    assert "near" not in contents(host.ask(**question))
    assert contents(host.ask(**question, p_min_relevance=0.5)) == ["near"]


@pytest.mark.parametrize("exact", [True, False, None])
def test_a_small_ledger_is_always_answered_exactly_and_says_so(host: Workspace, exact: bool | None) -> None:
    for number in range(30):
        host.write(f"invoice {number}", AXIS)
    rows = host.ask(p_query="invoice", p_query_embedding=AXIS, p_exact=exact, p_match_count=5)
    assert [row["exact"] for row in rows] == [True] * 5
    assert (
        ranking_oracle.recall(host.db.service, {"p_workspace_id": host.name, "p_exact": exact})["exact"]
        is True
    )
