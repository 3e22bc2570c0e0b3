"""The two clients have one surface, and nothing is sent that docs/sql-api.md does not name."""

from __future__ import annotations

import inspect
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import ranked_ledger as rl
from ranked_ledger import asking, calls, errors, recording
from tests.unit import sdk_answers as answers

DOCUMENT = (Path(__file__).resolve().parents[2] / "docs" / "sql-api.md").read_text(encoding="utf-8")

# Both clients of the ledger, and of the two families of the long-term memory.
PAIRS = [
    (rl.RankedLedger, rl.AsyncRankedLedger),
    (rl.LongTermMemory, rl.AsyncLongTermMemory),
    (rl.MemorySteward, rl.AsyncMemorySteward),
]

# What differs between the clients, and why.
TWINS = {"close": "aclose", "__enter__": "__aenter__", "__exit__": "__aexit__"}
OWN_TYPES = {
    ("timeline", "return"),  # walked with for, and with async for
    ("pending", "return"),
    ("traces", "return"),
    ("record_many", "decisions"),  # asynchronous iterables too
    ("__enter__", "return"),
}


def methods(kind: type) -> dict[str, Any]:
    found = inspect.getmembers(kind, callable)
    return {name: value for name, value in found if not name.startswith("_")} | {
        name: getattr(kind, name) for name in ("__init__", *TWINS, *TWINS.values()) if hasattr(kind, name)
    }


@pytest.mark.parametrize(("kind", "twin"), PAIRS)
def test_both_clients_have_the_same_methods(kind: type, twin: type) -> None:
    assert {TWINS.get(name, name) for name in methods(kind)} == set(methods(twin))


@pytest.mark.parametrize(
    ("kind", "other", "name"), [(*pair, name) for pair in PAIRS for name in sorted(methods(pair[0]))]
)
def test_a_method_has_the_same_signature_on_both_clients(kind: type, other: type, name: str) -> None:
    mine = inspect.signature(getattr(kind, name))
    twin = inspect.signature(getattr(other, TWINS.get(name, name)))
    assert list(mine.parameters) == list(twin.parameters)
    for parameter in mine.parameters:
        one, other_one = mine.parameters[parameter], twin.parameters[parameter]
        assert (one.kind, one.default) == (other_one.kind, other_one.default)
        assert one.annotation == other_one.annotation or (name, parameter) in OWN_TYPES
    assert mine.return_annotation == twin.return_annotation or (name, "return") in OWN_TYPES


@pytest.mark.parametrize("kind", [kind for pair in PAIRS for kind in pair])
def test_every_public_method_is_described(kind: type) -> None:
    bare = [name for name, value in methods(kind).items() if not name.startswith("_") and not value.__doc__]
    assert bare == []


@pytest.mark.parametrize("kind", [pair[0] for pair in PAIRS])
def test_every_verb_has_an_example(kind: type) -> None:
    without = [
        name
        for name, value in methods(kind).items()
        if not name.startswith("_") and name != "close" and ">>>" not in (value.__doc__ or "")
    ]
    assert without == []


FULL = rl.NewDecision(
    "x",
    rationale="r",
    alternatives=["a"],
    importance=0.5,
    step=1,
    task="t",
    project="p",
    summary="s",
    depends_on=answers.MEMORY,
    embedding=[1.0],
    embedding_model="m",
    pinned=True,
    visibility="project",
    created_by="agent",
    flow="f",
    runtime_name="n",
    metadata={"a": 1},
)
EVERY_CALL: list[calls.Call[Any]] = [
    calls.schema_version(),
    calls.status("w"),
    calls.record("w", recording.checked(FULL), key="k"),
    calls.record_many("w", [recording.checked(FULL)], key="k"),
    calls.get("w", answers.MEMORY),
    calls.impact("w", answers.MEMORY, max_depth=2, limit=5),
    calls.timeline(
        "w",
        project="p",
        task="t",
        lifecycle="active",
        pinned=True,
        newest_first=True,
        after={"step_index": 1},
        page_size=5,
    ),
    calls.link("w", answers.MEMORY, answers.OTHER, "informs", {"a": 1}),
    calls.unlink("w", answers.MEMORY, answers.OTHER, "informs"),
    calls.supersede("w", answers.MEMORY, by=answers.OTHER, reason="r", actor="a"),
    calls.set_lifecycle("w", answers.MEMORY, "stale", reason="r", actor="a"),
    calls.set_importance("w", answers.MEMORY, 0.5),
    calls.pin("w", answers.MEMORY, True),
    calls.forget("w", answers.MEMORY),
    asking.recall(
        "w",
        "q",
        task="t",
        project="p",
        current_step=1,
        limit=5,
        max_tokens=500,
        include_superseded=True,
        include_stale=True,
        only_confirmed=True,
        include_personal=False,
        min_relevance=0.1,
        weights=rl.Weights(1, 1, 1, 1, 1),
        half_life_steps=1,
        dependency_saturation=1,
        embedding=[1.0],
        embedding_model="m",
        similarity_floor=0.1,
        similarity_ceiling=0.9,
        fusion="blend",
        fusion_weight=0.7,
        exact=False,
        trace=False,
        request_id=answers.REQUEST,
        policy="p",
        flow="f",
        runtime_name="n",
        subject=("candidate", answers.OTHER),
        preset="tuned",
        as_of=datetime.now(UTC),
        as_of_step=1,
    ),
    calls.mark_usage("w", answers.REQUEST, used=answers.MEMORY, ignored=answers.OTHER, reason="r"),
    calls.policy_stats("w", datetime.now(UTC)),
    calls.prune_traces("w", datetime.now(UTC), 5),
    asking.traces(
        "w",
        since=datetime.now(UTC),
        marked=True,
        preset="tuned",
        weights=rl.Weights(1, 1, 1, 1),
        after={"request_id": "r"},
        page_size=5,
    ),
    calls.enroll_missing("w", 5),
    calls.check_copies("w", after=answers.MEMORY, limit=5, mend=True),
    calls.settings("w"),
    calls.set_text_config("w", "german"),
    calls.set_similarity_range("w", "m", (0.1, 0.2)),
    calls.fit_similarity_range("w", "m", 50),
]


def row(function: str) -> list[str]:
    (line,) = re.findall(rf"^\| `{function}\(.*$", DOCUMENT, re.MULTILINE)
    return [cell.strip() for cell in line.strip("|").split(" | ")]


def documented(function: str) -> set[str]:
    text = row(function)[0]
    if function == "recall_decisions":
        text = DOCUMENT.split("## Recall")[1].split("It answers")[0]
    return set(re.findall(r"\bp_\w+", text))


@pytest.mark.parametrize("call", EVERY_CALL, ids=lambda call: call.function)
def test_every_argument_that_is_sent_is_documented(call: calls.Call[Any]) -> None:
    assert set(call.body) <= documented(call.function)


def test_an_element_of_a_batch_has_the_documented_names() -> None:
    names = {f"p_{name}" for name in recording.checked(FULL)}
    assert names == documented("record_decision") - {"p_workspace_id", "p_idempotency_key"}


@pytest.mark.parametrize("call", EVERY_CALL, ids=lambda call: call.function)
def test_a_repeat_is_safe_where_the_document_says_so(call: calls.Call[Any]) -> None:
    assert row(call.function)[-1].startswith(("yes", "with a"))
    assert call.repeatable


def test_every_documented_function_has_its_call() -> None:
    functions = set(re.findall(r"^\| `(\w+)\(", DOCUMENT, re.MULTILINE))
    # the published proposal's, where the SDK recalls and marks; and a patched function's, whose own route marks
    others = {"match_decision_ledger", "touch_decision_recall", "count_recall_usage"}
    assert {call.function for call in EVERY_CALL} == functions - others


def test_every_documented_code_has_its_class() -> None:
    table = DOCUMENT.split("## Errors")[1]
    rows = re.findall(r"^\| (\w{5}) \|.*\| `(\w+)` \|$", table, re.MULTILINE)
    assert len(rows) >= 7
    for code, name in rows:
        assert errors.classify(code, 400).__name__ == name, code
