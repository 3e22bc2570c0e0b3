"""What rests on a decision, and what a workspace chose, through PostgREST and the gateway, with both clients."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import psycopg
import pytest

import ranked_ledger as rl
from ranked_ledger import arguments, calls
from ranked_ledger.stack import StackInfo
from tests.contract.conftest import MakeLedger
from tests.unit.sdk_drivers import Driver

# --- impact -------------------------------------------------------------------------------------------------------


def test_what_rests_on_a_decision_is_seen_before_it_is_replaced(ledger: Driver) -> None:
    rule = ledger.record("Invoices are immutable once sent")
    notes = ledger.record("Corrections are credit notes", importance=0.9, task="t", depends_on=[rule])
    numbers = ledger.record("Credit notes have numbers of their own", depends_on=[notes])
    other = ledger.record("Sent invoices are cached for ever", importance=0.2, depends_on=[rule])
    found = ledger.impact(rule)
    assert [(one.memory_id, one.depth, one.via) for one in found.decisions] == [
        (notes.memory_id, 1, rule.memory_id),
        (other.memory_id, 1, rule.memory_id),
        (numbers.memory_id, 2, notes.memory_id),
    ]
    assert (found.direct, found.total, found.live, found.more) == (2, 3, 3, False)
    assert (found.summary, found.lifecycle_status) == (rule.summary, "active")
    assert (found.decisions[0].task_id, found.decisions[0].importance) == ("t", 0.9)
    ledger.supersede(rule, by=ledger.record("Invoices may be voided"))
    after = ledger.impact(rule)
    assert after.lifecycle_status == "superseded"
    assert [one.rests_on_retired for one in after.decisions] == [True, True, False]


def test_a_depth_and_a_limit_cut_what_is_shown(ledger: Driver) -> None:
    rule = ledger.record("rule")
    near = ledger.record("near", depends_on=rule)
    ledger.record("far", depends_on=near)
    for asked in ({"max_depth": 1}, {"limit": 1}):
        found = ledger.impact(rule, **asked)
        assert [one.memory_id for one in found.decisions] == [near.memory_id]
        assert (found.total, found.more) == (2, True)
    assert not ledger.impact(rule, max_depth=2_147_483_647, limit=1_000).more


def test_the_impact_of_what_is_not_there(ledger: Driver, ledgers: MakeLedger) -> None:
    gone = ledger.record("x")
    with pytest.raises(rl.NotFoundError):
        ledgers(workspace=f"elsewhere-{uuid4()}").impact(gone)
    with pytest.raises(rl.NotFoundError):
        ledger.impact(uuid4())
    ledger.forget(gone)
    with pytest.raises(rl.GoneError):
        ledger.impact(gone)


# --- settings -----------------------------------------------------------------------------------------------------


def test_a_workspace_starts_with_the_defaults(ledger: Driver, workspace: str) -> None:
    assert ledger.settings() == rl.WorkspaceSettings(workspace_id=workspace, text_config="pg_catalog.english")


def test_a_german_workspace_finds_other_inflections_of_what_is_there_already(ledger: Driver) -> None:
    kept = ledger.record("Rechnungen bleiben nach dem Versand unverändert")

    def words(query: str) -> list[float]:
        return [hit.text_relevance for hit in ledger.recall(query, preset="published", trace=False)]

    assert words("Rechnung") == [0.0]
    changed = ledger.set_text_config("german")
    assert (changed.text_config, changed.changed, changed.read_anew) == ("pg_catalog.german", True, 1)
    assert words("Rechnung") == [pytest.approx(0.5)]
    assert ledger.settings().text_config == "pg_catalog.german"
    assert ledger.recall("Rechnung")[0].memory_id == kept.memory_id
    assert ledger.set_text_config(None).text_config == "pg_catalog.english"
    assert words("Rechnung") == [0.0]


def test_an_unknown_language_is_refused_with_those_that_there_are(ledger: Driver) -> None:
    with pytest.raises(rl.InvalidArgumentError, match="no text search configuration klingon") as caught:
        ledger.set_text_config("klingon")
    assert ", german, " in str(caught.value)


def test_the_range_of_a_model_is_what_its_recalls_are_weighed_in(ledger: Driver) -> None:
    ledger.record("x", embedding=[0.8, 0.6, *[0.0] * 1534], embedding_model="e5")

    def relevance(**asked: object) -> float:
        query = [1.0, *[0.0] * 1535]
        (hit,) = ledger.recall(embedding=query, embedding_model="e5", trace=False, **asked)
        return float(hit.relevance)

    assert relevance() == pytest.approx(0.8)
    kept = ledger.set_similarity_range("e5", floor=0.75, ceiling=0.85)
    assert kept.similarity_ranges == (rl.SimilarityRange(embedding_model="e5", floor=0.75, ceiling=0.85),)
    assert relevance() == pytest.approx(0.5)
    assert relevance(similarity_floor=0, similarity_ceiling=1) == pytest.approx(0.8), (
        "what is given goes first"
    )
    assert ledger.clear_similarity_range("e5").similarity_ranges == ()
    assert relevance() == pytest.approx(0.8)


def test_the_range_of_a_model_is_measured_on_what_is_recorded(ledger: Driver) -> None:
    few = [[1.0, 0.1 * number, *[0.0] * 1534] for number in range(12)]
    for place, numbers in enumerate(few[:9]):
        ledger.record(f"x{place}", embedding=numbers, embedding_model="e5")
    with pytest.raises(rl.InvalidArgumentError, match="9 decisions of this workspace") as caught:
        ledger.fit_similarity_range("e5")
    assert "set_similarity_range()" in str(caught.value.hint)
    for place, numbers in enumerate(few[9:], 9):
        ledger.record(f"x{place}", embedding=numbers, embedding_model="e5")
    settings = ledger.fit_similarity_range("e5", sample=2000)
    fitted = settings.fitted
    assert fitted is not None
    assert (fitted.vectors, fitted.pairs) == (12, 66)
    assert 0.4 < fitted.floor < fitted.ceiling <= 1
    (kept,) = settings.similarity_ranges
    assert (kept.floor, kept.ceiling) == (fitted.floor, fitted.ceiling)
    again = ledger.fit_similarity_range("e5")
    assert (again.fitted, again.changed) == (fitted, False)
    found = ledger.recall(embedding=few[0], embedding_model="e5", trace=False)
    assert found.arguments["p_similarity_floor"] == fitted.floor
    with pytest.raises(rl.InvalidArgumentError, match=r"sample must be in \[10, 2,000\]"):
        ledger.fit_similarity_range("e5", sample=9)
    for beyond in (arguments.MIN_SAMPLED - 1, arguments.MAX_SAMPLED + 1):
        call = calls.fit_similarity_range(ledger.client.workspace, "e5", 50).adding(sample=beyond)
        with pytest.raises(rl.InvalidArgumentError, match="sample is a number from 10 to 2,000"):
            ledger._run(call)


@pytest.fixture
def slow_change(stack: StackInfo, workspace: str) -> Iterator[None]:
    """A change of this workspace's language takes longer than the API gives a call."""
    with psycopg.connect(stack.superuser_db_url, autocommit=True) as superuser:
        superuser.execute(
            psycopg.sql.SQL(
                """create function dawdle() returns trigger language plpgsql as 'begin perform pg_sleep(9); return new; end';
                   create trigger dawdle before insert on ranked_ledger.workspace_settings
                   for each row when (new.workspace_id = {}) execute function dawdle()"""
            ).format(psycopg.sql.Literal(workspace))
        )
        yield
        superuser.execute("drop function dawdle cascade")


@pytest.mark.slow
@pytest.mark.usefixtures("slow_change")
def test_a_large_workspace_has_more_time_than_other_calls(ledgers: MakeLedger) -> None:
    ledger = ledgers(timeout=2, max_retries=0)
    assert ledger.set_text_config("german").changed is True
