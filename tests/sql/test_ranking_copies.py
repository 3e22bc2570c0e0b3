"""The copies say by themselves which decisions are the best.

Where an estimate is wrong, recall weighs every decision of the workspace instead: its answer stays right, and takes
seconds. Nobody would see a term that is missing from a pass; here recall may not weigh them all.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import psycopg
import pytest

from tests.rig.databases import Database
from tests.sql import random_ledgers
from tests.sql.ranking_oracle import assert_matches

NOT_ALL = """
create or replace function ranked_ledger.all_decisions(p_workspace_id text) returns uuid[] language plpgsql stable
set search_path = public, extensions, pg_temp
as $$ begin raise 'the estimates were wrong'; end $$"""


def is_usual(vector: str | None) -> bool:
    """A vector whose sums leave single precision is compared with all, rightly."""
    values = [float(one) for one in (vector or "[0]").strip("[]").split(",")]
    norm = math.hypot(*values)
    return norm == 0 or 1e-15 <= norm <= 1e15


@pytest.mark.parametrize("rows", [40, 120, 2200])
def test_what_the_copies_say_of_a_score_is_what_the_tables_say(
    ledger_host: Callable[..., Database], rows: int
) -> None:
    database = ledger_host(dimension=8)
    world = random_ledgers.write_ledger(database.service, random.Random(rows), dimension=8, rows=rows)
    database.superuser.execute(NOT_ALL)
    asked = 0
    while asked < (150 if rows < 1000 else 40):
        call = random_ledgers.random_call(world)
        if is_usual(call.arguments.get("p_query_embedding")):
            assert_matches(database.service, call, f"question {asked} of {rows} decisions")
            asked += 1


def test_a_wrong_estimate_would_be_noticed(ledger_host: Callable[..., Database]) -> None:
    database = ledger_host(dimension=8)
    world = random_ledgers.write_ledger(database.service, random.Random(0), dimension=8, rows=40)
    database.superuser.execute(NOT_ALL)
    database.superuser.execute("update ranked_ledger.standings set text_length = text_length + 50")
    question = (world.workspace, "invoice payment")
    database.service.execute("select from match_decision_ledger(%s, %s)", question)
    with pytest.raises(psycopg.errors.RaiseException, match="the estimates were wrong"):
        database.service.execute("select from match_decision_ledger(%s, %s, p_preset => 'tuned')", question)
