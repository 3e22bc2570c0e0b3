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
from tests.sql.random_ledgers import Call
from tests.sql.ranking_oracle import assert_copies_are_right, assert_matches, recall

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


LOST = "select count(*) from ranked_ledger.postings where row_no not in (select row_no from ranked_ledger.standings)"


def tuned(workspace: str, query: str, **arguments: object) -> Call:
    return Call(
        {"p_workspace_id": workspace, "p_query": query, "p_preset": "tuned", "p_match_count": 1000}
        | arguments
    )


def test_no_posting_outlives_the_copies_that_it_came_with(ledger_host: Callable[..., Database]) -> None:
    """What is edited or deleted while somebody holds its standing is posted under old words, until its copies are renewed."""
    database = ledger_host(dimension=8)
    world = random_ledgers.write_ledger(database.service, random.Random(3), dimension=8, rows=60)
    question = tuned(world.workspace, "invoice payment zebra")
    for _ in range(3):
        with database.connect("supabase_admin") as holder, holder.transaction():
            holder.execute("select from ranked_ledger.standings for update")
            database.owner.execute(
                "update agent_memories set content = case when content like 'zebra%%' then 'payment' else 'zebra retry' end"
                " where workspace_id = %s and memory_type = 'decision'",
                (world.workspace,),
            )
            database.owner.execute(
                "delete from agent_memories where id = (select min(id::text)::uuid from agent_memories where workspace_id = %s)",
                (world.workspace,),
            )
            assert_matches(database.service, question, "while they are held")
        for _ in range(3):
            assert_matches(database.service, question, "until they are renewed")
            recall(database.service, question.arguments)
    assert database.superuser.execute("select count(*) from ranked_ledger.stale_copies").fetchall() == [(0,)]
    assert database.superuser.execute(LOST).fetchall() == [(0,)]
    assert_copies_are_right(database.service, world.workspace)
    assert_matches(database.service, question)


@pytest.mark.parametrize("others", [0, 5000], ids=["by the copies", "more marks than the copies can do with"])
def test_words_are_weighed_rightly_however_many_are_marked(
    ledger_host: Callable[..., Database], others: int
) -> None:
    database = ledger_host(dimension=8)
    world = random_ledgers.write_ledger(database.service, random.Random(4), dimension=8, rows=120)
    database.superuser.execute(
        "insert into ranked_ledger.stale_copies (workspace_key, memory_id)"
        " select workspace_key, memory_id from ranked_ledger.standings, generate_series(1, 2)"
    )
    database.superuser.execute(
        "insert into ranked_ledger.stale_copies (workspace_key, memory_id)"
        " select ranked_ledger.workspace_key(%s), gen_random_uuid() from generate_series(1, %s)",
        (world.workspace, others),
    )
    database.superuser.execute("delete from ranked_ledger.postings where row_no % 3 = 0")
    database.superuser.execute(
        "update ranked_ledger.standings set is_retired = not is_retired where row_no % 2 = 0"
    )
    for query in ("invoice payment", "retry", "ledger index vector cursor schema migration tenant nowhere"):
        assert_matches(database.service, tuned(world.workspace, query))
        assert_matches(
            database.service, tuned(world.workspace, query, p_query_embedding=world.vector(), p_match_count=3)
        )


def test_a_question_of_many_words_is_answered_like_any(ledger_host: Callable[..., Database]) -> None:
    """Each word of such a question is not looked up for each decision."""
    database = ledger_host(dimension=8)
    world = random_ledgers.write_ledger(database.service, random.Random(5), dimension=8, rows=120)
    database.superuser.execute(NOT_ALL)
    unheard_of = [f"unheard{number}" for number in range(20_000)]
    for number in range(12):
        call = random_ledgers.random_call(world)
        preset, count = (("tuned", 190), ("tuned", 20_000), ("published", 300))[number % 3]
        words = [*unheard_of[:count], world.question(), world.question()]
        world.rand.shuffle(words)
        call.arguments.update(p_query=" ".join(words), p_preset=preset)
        if is_usual(call.arguments.get("p_query_embedding")):
            assert_matches(database.service, call, f"question {number}")
