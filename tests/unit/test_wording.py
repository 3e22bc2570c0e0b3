"""The server speaks SQL; what it says reaches people in the names that they use."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import respx

from ranked_ledger import InvalidArgumentError, LongTermMemory, MemorySteward, RankedLedger, doctor, wording
from tests.unit import sdk_answers as answers
from tests.unit.sdk_drivers import Driver

SCHEMAS = Path(__file__).resolve().parents[2] / "supabase" / "schemas"
SOURCES = SCHEMAS / "decision_ledger"


def test_every_function_with_a_method_is_exchanged_for_one_that_there_is() -> None:
    assert all(hasattr(RankedLedger, method) for method in wording.METHODS.values())
    others = {
        "count_recall_usage",
        "ledger_schema_version",
        "match_decision_ledger",
        "touch_decision_recall",
    }
    assert set(doctor.FUNCTIONS) - set(wording.METHODS) == others


def test_no_hint_of_the_sources_keeps_a_name_that_the_sdk_does_not_have() -> None:
    hints = re.findall(
        r"(?:hint|message) = (?:format\()?'([^']*)'", "".join(map(Path.read_text, SOURCES.glob("*.sql")))
    )
    assert len(hints) > 20
    for hint in hints:
        assert not re.search(r"\bp_[a-z]", wording.of_the_sdk(hint)), hint


def test_every_function_of_the_long_term_memory_has_its_method() -> None:
    for method in wording.MEMORY_METHODS.values():
        assert hasattr(LongTermMemory, method) or hasattr(MemorySteward, method), method


def test_a_sentence_of_the_long_term_memory_is_told_in_its_own_words() -> None:
    said = "p_memory_id is gone; remember it anew, or see pending_reviews (p_limit, p_source_run_id)."
    read = "memory is gone; remember it anew, or see pending() (limit, run_id)."
    assert wording.of_the_sdk(said, "memory") == read
    assert wording.of_the_sdk("forget_memory") == "forget_memory"


@pytest.mark.parametrize(
    ("said", "read"),
    [
        ("p_max_tokens is 5", "max_tokens is 5"),
        ("ledger_status lists them.", "status() lists them."),
        ("restore one of them with set_decision_lifecycle.", "restore one of them with set_lifecycle()."),
        ("depends_on p_nothing_new", "depends_on nothing_new"),
        ("no name of ours", "no name of ours"),
    ],
)
def test_names_are_exchanged(said: str, read: str) -> None:
    assert wording.of_the_sdk(said) == read


def test_an_error_of_the_ledger_speaks_of_the_sdk(ledger: Driver, server: respx.MockRouter) -> None:
    body = {"code": "22023", "message": "p_max_tokens is 5", "hint": "list_decisions shows what is here."}
    server.post("/recall_decisions").respond(400, json=body)
    with pytest.raises(InvalidArgumentError) as raised:
        ledger.recall("x", max_tokens=5)
    assert str(raised.value) == "max_tokens is 5. Next: timeline() shows what is here. [22023, HTTP 400]"


def test_an_error_of_postgrest_keeps_the_names_of_what_is_missing(
    ledger: Driver, server: respx.MockRouter
) -> None:
    body = {"code": "PGRST202", "message": "no function get_decision(p_memory_id)"}
    server.post("/get_decision").respond(404, json=body)
    with pytest.raises(Exception, match=r"no function get_decision\(p_memory_id\)"):
        ledger.get(answers.MEMORY)


def test_the_hint_of_an_empty_recall_speaks_of_the_sdk(ledger: Driver, server: respx.MockRouter) -> None:
    hint = "No decision is in scope: look at lifecycle (p_include_superseded shows retired ones)."
    server.post("/recall_decisions").respond(json=answers.recall(hint=hint))
    assert ledger.recall("x").hint == hint.replace("p_include_superseded", "include_superseded")
