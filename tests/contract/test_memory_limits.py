"""The database draws each line where the clients of the long-term memory draw it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import httpx
import pytest

from ranked_ledger import LongTermMemory, MemorySteward, Remembered
from ranked_ledger import arguments as check
from ranked_ledger.stack import StackInfo

SHORTEST, LONGEST = check.MIN_CLEANED_CHARACTERS, check.MAX_CLEANED_CHARACTERS

# An argument, a value that just fits, and one that just does not.
LINES: list[tuple[str, str, Any, Any]] = [
    ("remember", "text", "x" * check.MAX_MEMORY_BYTES, "x" * (check.MAX_MEMORY_BYTES + 1)),
    (
        "remember",
        "text",
        "\u00fc" * (check.MAX_MEMORY_BYTES // 2),
        "\u00fc" * (check.MAX_MEMORY_BYTES // 2) + "x",
    ),
    ("remember", "source_run_id", "r" * check.MAX_NAME_BYTES, "r" * (check.MAX_NAME_BYTES + 1)),
    ("remember", "workspace_id", "w" * check.MAX_NAME_BYTES, "w" * (check.MAX_NAME_BYTES + 1)),
    ("remember", "idempotency_key", "k" * check.MAX_KEY_CHARACTERS, "k" * (check.MAX_KEY_CHARACTERS + 1)),
    (
        "remember",
        "digest_key",
        "k" * check.MIN_DIGEST_KEY_CHARACTERS,
        "k" * (check.MIN_DIGEST_KEY_CHARACTERS - 1),
    ),
    ("remember", "digest_key", "k" * check.MAX_DIGEST_KEY_BYTES, "k" * (check.MAX_DIGEST_KEY_BYTES + 1)),
    (
        "recall_memories",
        "query",
        "q " * (check.MAX_TEXT_BYTES // 2),
        "q " * (check.MAX_TEXT_BYTES // 2) + "q",
    ),
    ("recall_memories", "min_relevance", 1, 1.01),
    ("correct_memory", "note", "n" * check.MAX_NOTE_BYTES, "n" * (check.MAX_NOTE_BYTES + 1)),
    ("pending_reviews", "limit", check.MAX_PAGE, check.MAX_PAGE + 1),
    ("memory_usage", "limit", check.MAX_HITS, check.MAX_HITS + 1),
    ("erase_subject", "also_containing", ["x" * SHORTEST], ["x" * (SHORTEST - 1)]),
    ("erase_subject", "also_containing", ["x" * LONGEST], ["x" * (LONGEST + 1)]),
    ("erase_subject", "also_containing", ["x" * 6] * check.MAX_CLEANED, ["x" * 6] * (check.MAX_CLEANED + 1)),
    ("expire_memories", "limit", check.MAX_PRUNED, check.MAX_PRUNED + 1),
    ("set_organization", "name", "n" * check.MAX_NAME_BYTES, "n" * (check.MAX_NAME_BYTES + 1)),
]


@pytest.fixture(scope="module")
def memory(stack: StackInfo) -> Iterator[Remembered]:
    """A memory of an organization whose service role may do everything."""
    org = uuid4()
    with MemorySteward(stack.url, stack.secret_key, org=org) as steward:
        steward.set_organization(allow_asserted=True)
    with LongTermMemory(stack.url, stack.secret_key, org=org) as agent:
        yield agent.remember("x")


@pytest.mark.parametrize("line", LINES, ids=lambda line: f"{line[0]}-{line[1]}")
def test_what_just_fits_is_taken_and_what_just_does_not_is_refused(
    stack: StackInfo, memory: Remembered, line: tuple[str, str, Any, Any]
) -> None:
    function, argument, fits, too_much = line
    of = {"p_memory_id": str(memory.memory_id)}
    needed: dict[str, Any] = {
        "remember": {"p_text": "x"},
        "correct_memory": {**of, "p_text": "y"},
        "memory_usage": of,
        "erase_subject": {"p_subject_type": "candidate", "p_subject_id": str(uuid4()), "p_dry_run": True},
    }.get(function, {})
    org = {} if function == "expire_memories" else {"p_org_id": str(memory.org_id)}
    for value, taken in ((fits, True), (too_much, False)):
        answer = httpx.post(
            f"{stack.url}/rest/v1/rpc/{function}",
            headers={"apikey": stack.secret_key},
            json={**org, **needed, f"p_{argument}": value},
        )
        assert answer.is_success is taken, answer.text
        assert taken or answer.json()["code"] == "22023"
