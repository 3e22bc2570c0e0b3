"""What the clients of the long-term memory send is what docs/memory-api.md names and what the functions take."""

from __future__ import annotations

import inspect
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import ranked_ledger as rl
from ranked_ledger import errors, memory_calls
from ranked_ledger.calls import Call
from ranked_ledger.subjects import Subject
from tests.unit import memory_answers as answers
from tests.unit.conftest import ORG

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = (ROOT / "docs" / "memory-api.md").read_text(encoding="utf-8")
SOURCES = "".join(
    path.read_text(encoding="utf-8")
    for path in sorted((ROOT / "supabase" / "schemas" / "long_term_memory").glob("*.sql"))
)

CANDIDATE: Subject = ("candidate", answers.CANDIDATE)
WHEN = datetime(2099, 1, 1, tzinfo=UTC)
VECTOR: Any = {"embedding": [1.0], "embedding_model": "m"}


def remembered(subject: Subject | None, workspace: str | None) -> Call[Any]:
    return memory_calls.remember(
        ORG,
        "x",
        subject=subject,
        workspace=workspace,
        author="person",
        asserted_by=answers.PERSON,
        run_id="r",
        expires_at=WHEN,
        **VECTOR,
        key="k",
        digest_key="0123456789abcdef",
        on_return="flag",
    )


EVERY_CALL: list[Call[Any]] = [
    memory_calls.schema_version(),
    remembered(CANDIDATE, None),
    remembered(None, "acme"),
    memory_calls.recall(
        ORG,
        "q",
        subject=CANDIDATE,
        workspace="acme",
        limit=5,
        max_tokens=500,
        include_unreviewed=True,
        min_relevance=0.1,
        weights={"relevance": 1, "recency": 1},
        half_life_days=1,
        **VECTOR,
        run_id="r",
    ),
    memory_calls.correct(ORG, answers.MEMORY, "x", note="n", expires_at=WHEN, **VECTOR),
    memory_calls.forget(ORG, answers.MEMORY, "n"),
    memory_calls.pending(ORG, after={"a": 1}, page_size=5),
    memory_calls.review(
        ORG,
        rl.Memory.model_validate(answers.memory()),
        "approved",
        can_use_as_instruction=True,
        note="n",
        reviewer=answers.PERSON,
    ),
    memory_calls.usage(ORG, answers.MEMORY, 5),
    memory_calls.subject_access(ORG, CANDIDATE),
    memory_calls.erase(
        ORG,
        CANDIDATE,
        also_containing=["Ada L."],
        digest_key="0123456789abcdef",
        asserted_by=answers.PERSON,
        dry_run=True,
    ),
    memory_calls.attribute_decision(ORG, answers.OTHER, CANDIDATE, remove=True),
    memory_calls.map_workspace(ORG, "acme", remove=False),
    memory_calls.expire(5, WHEN),
    memory_calls.adopt(5, answers.OTHER, dry_run=True),
    memory_calls.set_organization(ORG, name="Acme", allow_asserted=True),
    memory_calls.set_member(ORG, answers.PERSON, "admin"),
]
FUNCTIONS = sorted({call.function for call in EVERY_CALL})


def sent(function: str) -> set[str]:
    """Every argument that a client sends, in one call or another."""
    return {name for call in EVERY_CALL if call.function == function for name in call.body}


def row(function: str) -> list[str]:
    (line,) = re.findall(rf"^\| `{function}\(.*$", DOCUMENT, re.MULTILINE)
    return [cell.strip() for cell in line.strip("|").split(" | ")]


def taken(function: str) -> set[str]:
    """The arguments of the function in `public`, as its source declares them."""
    (declared,) = re.findall(rf"create or replace function public\.{function}\(([^$]*?)\)\s*returns", SOURCES)
    return set(re.findall(r"\bp_\w+", declared))


@pytest.mark.parametrize("function", FUNCTIONS)
def test_the_clients_send_exactly_what_is_documented(function: str) -> None:
    assert sent(function) == set(re.findall(r"\bp_\w+", row(function)[0]))


@pytest.mark.parametrize("function", FUNCTIONS)
def test_the_clients_send_exactly_what_the_function_takes(function: str) -> None:
    assert sent(function) == taken(function)


def test_every_documented_function_has_its_call() -> None:
    assert set(FUNCTIONS) == set(re.findall(r"^\| `(\w+)\(", DOCUMENT.split("## Functions")[1], re.MULTILINE))


@pytest.mark.parametrize("call", EVERY_CALL, ids=lambda call: call.function)
def test_a_repeat_is_safe_where_the_document_says_so(call: Call[Any]) -> None:
    said = row(call.function)[-1]
    told_twice = ("it is written down twice", "it writes a second receipt, of nothing")
    assert said.startswith(("yes", "with a")) or said in told_twice
    assert call.repeatable  # the erasure here is a rehearsal; see the unit tests of the other kind


def test_every_documented_code_has_its_class() -> None:
    rows = re.findall(r"^\| (\w{5}) \|.*\| `(\w+)` \|$", DOCUMENT.split("## Errors")[1], re.MULTILINE)
    assert len(rows) >= 9
    for code, name in rows:
        assert errors.classify(code, 400).__name__ == name, code


def test_the_defaults_of_the_agent_are_those_of_the_database() -> None:
    assert "p_author text = 'model'" in row("remember")[0]
    assert "p_on_return text = 'refuse'" in row("remember")[0]
    names = inspect.signature(rl.LongTermMemory.remember).parameters
    assert names["on_return"].default == "refuse"


def test_an_agent_cannot_say_that_a_person_speaks() -> None:
    """Whoever's token it has: what it remembers is a model's, the default of the database."""
    for kind in (rl.LongTermMemory, rl.AsyncLongTermMemory):
        for verb in ("remember", "recall", "correct", "forget"):
            named = set(inspect.signature(getattr(kind, verb)).parameters)
            assert named.isdisjoint({"author", "asserted_by", "written_by", "reviewer"}), verb
