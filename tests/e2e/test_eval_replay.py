"""`ranked-ledger eval replay` on a real stack: a workspace's own recalls under other weights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import psycopg
import pytest

from ranked_ledger import InvalidArgumentError, RankedLedger
from ranked_ledger.evals.replay import Replayed, replay
from ranked_ledger.stack import StackInfo
from tests.e2e.conftest import Run, record


@pytest.fixture
def ledger(installed: StackInfo, request: pytest.FixtureRequest, environment: None) -> Iterator[RankedLedger]:
    with RankedLedger(installed.url, installed.secret_key, workspace=request.node.name) as client:
        yield client


def three(ledger: RankedLedger) -> dict[str, str]:
    """An old one that matters, a new one that matters little, and one in between."""
    made = {}
    for name, step, importance in (("old", 1, 1.0), ("middle", 100, 0.5), ("new", 200, 0.0)):
        content = f"Invoices: the {name} one"
        made[name] = str(ledger.record(content, step=step, importance=importance).memory_id)
    return made


AXIS = [1.0, *[0.0] * 1535]


class Alike:
    """Every text is about the same."""

    model = "m"

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        return [AXIS for _ in texts]


def said(found: Replayed) -> str:
    return "\n".join(found.sentences())


def counts(stack: StackInfo) -> tuple[int, ...]:
    query = """
        select (select count(*) from agent_memory_recall_traces), (select count(*) from agent_memory_audit_events),
               (select coalesce(sum(recall_count), 0) from agent_decision_ledger)"""
    with psycopg.connect(stack.superuser_db_url) as connection:
        found = connection.execute(query).fetchone()
    assert found is not None
    return tuple(map(int, found))


@pytest.mark.parametrize("ask", [False, True])
def test_other_weights_move_what_was_used(installed: StackInfo, ledger: RankedLedger, ask: bool) -> None:
    made = three(ledger)
    found = ledger.recall("invoices", weights={"importance": 1, "recency": 0})
    assert [str(hit.memory_id) for hit in found] == [made["old"], made["middle"], made["new"]]
    ledger.mark_used(found, made["new"])
    ledger.mark_ignored(found, made["old"])
    before = counts(installed)
    again = replay(ledger, weights={"importance": 0, "recency": 1}, ask=ask, resamples=200)
    assert counts(installed) == before
    (one,) = again.recalls
    assert one.way == ("asked again" if ask else "scored again")
    places = {str(memory_id): (one.before[memory_id], one.after[memory_id]) for memory_id in one.before}
    assert places == {made["new"]: (3, 1), made["middle"]: (2, 2), made["old"]: (1, 3)}
    assert "What was used: MRR 0.333 then, 1.000 under these weights, +0.667 " in said(again)
    assert "Another decision would have come first in 1 of 1" in said(again)
    used, ignored = ([cell.text for cell in row] for row in again.moved().rows)
    assert used == ["used", "1", "1", "0", "0", "0", "3.00", "1.00"]
    assert ignored == ["ignored", "1", "0", "1", "0", "0", "1.00", "3.00"]


def test_the_weights_that_it_had_change_nothing(ledger: RankedLedger) -> None:
    made = three(ledger)
    found = ledger.recall("invoices")
    ledger.mark_used(found, made["middle"])
    again = replay(ledger, resamples=200)
    assert "Another decision would have come first in 0 of 1; 100% of the first 5 are the same." in said(
        again
    )
    assert "0.000 (0.000 to 0.000) over 1 recall: no difference shown" in said(again)


def test_a_question_is_asked_as_of_its_time(ledger: RankedLedger) -> None:
    made = three(ledger)
    ledger.recall("invoices")
    later = ledger.record("Invoices: the later one, which supersedes", importance=1.0)
    ledger.supersede(made["old"], by=later)
    (one,) = replay(ledger, resamples=200).recalls
    assert one.way == "asked again"
    assert one.before == one.after
    assert later.memory_id not in one.after


def test_a_question_about_the_past_is_asked_about_the_same_past(ledger: RankedLedger) -> None:
    first = ledger.record("Invoices are immutable", task="t", step=1)
    past = datetime.now(UTC)
    ledger.record("Invoices are printed", task="t", step=2)
    ledger.recall("invoices", task="t", as_of_step=1)
    ledger.recall("invoices", as_of=past)
    found = replay(ledger, resamples=200).recalls
    assert len(found) == 2
    for one in found:
        assert one.before == one.after == {first.memory_id: 1}


@pytest.mark.parametrize("ask", [True, False])
def test_a_question_about_a_time_that_python_has_no_word_for_is_left_out(
    installed: StackInfo, ledger: RankedLedger, ask: bool
) -> None:
    three(ledger)
    ledger.recall("invoices")
    with psycopg.connect(installed.superuser_db_url) as connection:
        connection.execute(
            "select recall_decisions(%s, 'invoices', p_as_of => '0044-03-15 12:00:00+00 BC')",
            (ledger.workspace,),
        )
    again = replay(ledger, ask=ask, resamples=200)
    assert [one.way for one in again.recalls] == ["left out", "asked again" if ask else "scored again"]
    assert ("outside the years 1 to 9999" in said(again)) == ask


def test_what_cannot_be_looked_at_again_is_left_out_with_its_reason(
    installed: StackInfo, ledger: RankedLedger
) -> None:
    made = three(ledger)
    with psycopg.connect(installed.superuser_db_url) as connection:
        connection.execute(
            """
            with t as (
              insert into agent_memory_recall_traces (workspace_id, query, schema_version)
              values (%s, 'invoices', '1') returning id)
            insert into agent_memory_recall_items (trace_id, memory_id, rank) select id, %s, 1 from t""",
            (ledger.workspace, made["old"]),
        )
    again = replay(ledger)
    assert [one.way for one in again.recalls] == ["left out"]
    assert "none could be looked at again" in said(again)
    assert "1 left out: " in said(again)


def test_a_wish_for_stale_ones_is_kept_and_a_presets_choice_is_not(ledger: RankedLedger) -> None:
    ledger.record("Invoices are immutable")
    stale = ledger.record("Invoices are printed")
    ledger.set_lifecycle(stale, "stale")
    for preset, wish in (("tuned", None), ("tuned", False), ("published", None), ("published", True)):
        ledger.recall(f"invoices {preset} {wish}", preset=preset, include_stale=wish)  # type: ignore[arg-type]
    came = {
        (one.query, preset): stale.memory_id in one.after
        for preset in ("tuned", "published")
        for one in replay(ledger, preset=preset, resamples=200).recalls  # type: ignore[arg-type]
    }
    assert {question for question, has in came.items() if has} == {
        ("invoices tuned None", "tuned"),
        ("invoices published None", "tuned"),
        ("invoices published True", "tuned"),
        ("invoices published True", "published"),
    }


def test_a_question_with_a_vector_is_scored_again_without_its_embedder(ledger: RankedLedger) -> None:
    three(ledger)
    ledger.recall("invoices", embedding=[1.0, *[0.0] * 1535], embedding_model="m")
    (one,) = replay(ledger, resamples=200).recalls
    assert one.way == "scored again"
    assert one.before == one.after


def test_a_half_life_is_not_tried_on_what_a_trace_keeps(ledger: RankedLedger) -> None:
    three(ledger)
    ledger.recall("invoices")
    with pytest.raises(InvalidArgumentError, match="half_life_steps"):
        replay(ledger, half_life_steps=5, ask=False)
    (one,) = replay(ledger, half_life_steps=5).recalls
    assert one.way == "asked again"


def test_a_fusion_is_tried_by_asking_again_and_not_on_what_a_trace_keeps(ledger: RankedLedger) -> None:
    other = [0.0, *AXIS[:-1]]
    near = ledger.record("Bills are sent by mail", step=1, embedding=AXIS, embedding_model="m")
    named = ledger.record("Invoices are immutable", step=1, embedding=other, embedding_model="m")
    ledger.recall("invoices", embedding=AXIS, embedding_model="m", fusion="none")
    asking = ledger.with_options(embedder=Alike())
    first = {}
    for fusion, weight in (("none", None), ("blend", 0.1)):
        (one,) = replay(asking, fusion=fusion, fusion_weight=weight, vectors=True, resamples=200).recalls  # type: ignore[arg-type]
        assert one.way == "asked again"
        first[fusion] = min(one.after, key=one.after.__getitem__)
    assert first == {"none": near.memory_id, "blend": named.memory_id}
    (left,) = replay(ledger, fusion="blend", resamples=200).recalls
    assert left.way == "left out"
    with pytest.raises(InvalidArgumentError, match="fusion_weight cannot be tried"):
        replay(ledger, fusion_weight=0.2, ask=False)


def test_a_budget_of_tokens_is_kept_when_asking_again(ledger: RankedLedger) -> None:
    for number in range(8):
        ledger.record(f"Invoices {number}: " + "numbered without gaps, as the tax office has it. " * 8)
    found = ledger.recall("invoices", max_tokens=400)
    assert 0 < len(found) < 8
    (one,) = replay(ledger, resamples=200).recalls
    assert one.way == "asked again"
    assert one.before == one.after


def test_only_the_newest_and_only_what_was_marked(ledger: RankedLedger) -> None:
    made = three(ledger)
    recalls = [ledger.recall(f"invoices {number}") for number in range(3)]
    ledger.mark_used(recalls[0], made["old"])
    assert [one.query for one in replay(ledger, limit=2).recalls] == ["invoices 2", "invoices 1"]
    assert [one.query for one in replay(ledger, marked=True).recalls] == ["invoices 0"]


def test_the_command_shows_and_writes_what_would_have_changed(run: Run, tmp_path: Path) -> None:
    record(run, "Invoices are immutable once sent", "--importance", "0.9")
    used = record(run, "Invoices are printed on paper", "--importance", "0.1")
    trace = run("recall", "invoices", "--json").json["request_id"]
    run("used", trace, used)
    text = tmp_path / "replay.md"
    shown = run("eval", "replay", "--importance", "0", "--markdown", str(text)).out
    assert "1 recall: 1 " in shown
    assert "What was used: MRR 0.500 then" in shown
    assert "| used | 1 |" in text.read_text(encoding="utf-8")
    options = ("--importance", "0", "--summary", "0.4")
    document = run("eval", "replay", *options, "--no-ask", "--json").json
    assert document["arguments"]["weights"] == {"importance": 0.0, "summary": 0.4}
    document = run("eval", "replay", "--fusion", "blend", "--fusion-weight", "0.3", "--json").json
    assert (document["arguments"]["fusion"], document["arguments"]["fusion_weight"]) == ("blend", 0.3)
    assert "--fusion cannot be tried" in run("eval", "replay", "--fusion", "max", "--no-ask", expect=2).err
    assert document["recalls"][0]["used"][0]["before"] == 2
    assert run("eval", "replay", "--preset", "no such", expect=2).err.startswith("Error: there is no preset")
    assert "0 recalls" in run("eval", "replay", "--since", "2999-01-01").out
