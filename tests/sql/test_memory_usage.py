"""memory_usage: which runs read a memory."""

from __future__ import annotations

import pytest

from tests.sql.memory_rpc import Caller, Memories
from tests.sql.rpc import NOBODY


@pytest.fixture
def org(shared_memories: Memories) -> str:
    return shared_memories.new_org()


@pytest.fixture
def admin(shared_memories: Memories, org: str) -> Caller:
    return shared_memories.as_member("admin", org)


@pytest.fixture
def service(shared_memories: Memories, org: str) -> Caller:
    return shared_memories.as_service(org)


def test_the_recalls_that_returned_it_are_told_newest_first(
    shared_memories: Memories, admin: Caller, service: Caller, org: str
) -> None:
    user = shared_memories.new_member("member", org)
    reader = shared_memories.as_user(user, org)
    memory, other = admin.id("red", author="person"), admin.id("blue", author="person")
    first = reader.recall("red", run_id="run-1")
    service.recall("blue", match_count=1, run_id="run-2")  # returns the other one
    last = service.recall("blue", run_id="run-3")
    usage = admin("memory_usage", memory_id=memory)
    assert (usage["memory_id"], usage["reads"]) == (memory, 2)
    newest, oldest = usage["runs"]
    assert newest | {"at": 0} == {
        "recall_id": last["recall_id"], "run_id": "run-3", "recalled_by": None, "at": 0, "rank": 2,
        "score": last["hits"][1]["score"],
    }  # fmt: skip
    assert (oldest["recall_id"], oldest["recalled_by"], oldest["rank"]) == (first["recall_id"], user, 1)
    assert newest["at"] > oldest["at"]
    assert service("memory_usage", memory_id=other)["reads"] == 3


def test_reads_counts_beyond_the_page(admin: Caller) -> None:
    memory = admin.id("red", author="person")
    for number in range(5):
        admin.recall(run_id=f"run-{number}")
    usage = admin("memory_usage", memory_id=memory, limit=2)
    assert (usage["reads"], [run["run_id"] for run in usage["runs"]]) == (5, ["run-4", "run-3"])
    for limit in (0, 1001, None):
        admin.refused("22023", "memory_usage", memory_id=memory, limit=limit)


def test_who_had_read_what_was_erased_is_still_told(admin: Caller) -> None:
    memory = admin.id("red", author="person")
    admin.recall(run_id="run-1")
    admin("forget_memory", memory_id=memory)
    assert [run["run_id"] for run in admin("memory_usage", memory_id=memory)["runs"]] == ["run-1"]


def test_what_nobody_read_has_no_runs(admin: Caller) -> None:
    memory = admin.id("red")
    assert admin("memory_usage", memory_id=memory) == {"memory_id": memory, "reads": 0, "runs": []}


def test_who_may_ask(shared_memories: Memories, admin: Caller, org: str) -> None:
    memory = admin.id("red", author="person")
    shared_memories.as_member("owner", org)("memory_usage", memory_id=memory)
    shared_memories.as_member("member", org).refused("42501", "memory_usage", memory_id=memory)
    shared_memories.as_user(shared_memories.new_user(), org).refused(
        "42501", "memory_usage", memory_id=memory
    )
    other = shared_memories.as_member("owner", shared_memories.new_org())
    there = other.refused("RL404", "memory_usage", memory_id=memory)
    absent = other.refused("RL404", "memory_usage", memory_id=NOBODY)
    assert str(there.message_primary).replace(memory, NOBODY) == absent.message_primary
