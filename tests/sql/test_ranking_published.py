"""published.sql, the peer of the benchmark, is the query that people have installed."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from tests.rig.databases import Connection, Database
from tests.sql import random_ledgers
from tests.sql.random_ledgers import PUBLISHED_ARGUMENTS, Call, World
from tests.sql.ranking_oracle import PUBLISHED, Row

DIMENSION = 384


def rows_or_refusal(connection: Connection, query: str, parameters: dict[str, Any]) -> list[Row] | str | None:
    try:
        with connection.cursor(row_factory=dict_row) as cursor:
            return cursor.execute(query, parameters).fetchall()
    except psycopg.Error as error:
        return error.sqlstate


def ask_both(connection: Connection, call: Call) -> tuple[Any, Any]:
    """The installed function and the query, or what they are refused with."""
    names = ", ".join(
        f"{name} => %({name})s" + ("::vector" if name == "p_query_embedding" else "")
        for name in call.arguments
    )
    installed = rows_or_refusal(connection, f"select * from match_decision_ledger({names})", call.arguments)
    return installed, rows_or_refusal(connection, PUBLISHED, call.reference)


def published_call(world: World) -> Call:
    """Without what only ours knows, and mostly with a half-life that bears the steps of a billion."""
    drawn = random_ledgers.random_call(world).arguments
    arguments = {
        name: value
        for name, value in drawn.items()
        # of no weight it makes no score
        if name in PUBLISHED_ARGUMENTS and not (name.startswith("p_w_") and value is None)
    }
    half_lives = (1e8, 1e9, 1e12, arguments.get("p_half_life_steps"))
    saturation = arguments.get("p_dependency_saturation")
    # NaN and infinity are positive to it, and mean the default to ours
    for name, value in (
        ("p_half_life_steps", world.rand.choice(half_lives)),
        ("p_dependency_saturation", saturation),
    ):
        arguments[name] = value if value is not None and math.isfinite(value) else None
    return Call(arguments)


def by_id(rows: list[Row]) -> dict[Any, Row]:
    return {row["memory_id"]: {"score": row.get("ranking_score")} | row for row in rows}


@pytest.mark.parametrize("seed", range(3))
def test_it_answers_what_the_installed_function_answers(
    published_proposal_host: Callable[..., Database], seed: int
) -> None:
    host = published_proposal_host(dimension=DIMENSION)
    rand = random.Random(seed)
    connection = host.connect("service_role")
    world = random_ledgers.write_ledger(connection, rand, dimension=DIMENSION, rows=80)
    refused = 0
    for _ in range(60):
        call = published_call(world)
        installed, query = ask_both(connection, call)
        if isinstance(query, str):
            assert installed == query == "22003", "exp, of a step too far back"
            refused += 1
            continue
        # what ties has no order there: the order is that of the scores, and each row that of the whole answer
        everything = by_id(ask_both(connection, Call(call.arguments | {"p_match_count": 100_000}))[0])
        assert len(installed) == len(query)
        for one, other in zip(installed, query, strict=True):
            whole = everything[other["memory_id"]]
            assert {name: whole[name] for name in other} == other
            order = ("pinned", "ranking_score", "step_index")
            assert [one[name] for name in order] == [whole[name] for name in order]
    assert refused < 30
