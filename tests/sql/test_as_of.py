"""A recall as of a step or a time answers what a recall of then did: replayed histories, and what cannot be meant.

A failure names its seed. What a normal recall answered is kept after every change of a history and compared with what is
answered in the end as of then.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import psycopg
import pytest

from tests.sql.rpc import Ledger

STREAMS = ("ours", "theirs", "third")
REFUSED = ("RL461", "22023")  # a loop of supersessions or dependencies, an edge to itself
WORDS = ("invoice", "ledger", "cursor", "schema", "queue", "retry", "token", "index")


@dataclass
class Seen:
    """What was answered once, and how to ask for it again."""

    arguments: dict[str, Any]
    hits: list[dict[str, Any]]
    note: str


@dataclass
class History:
    """Random changes of three streams of one workspace, some of a neighbour's, each in a transaction of its own."""

    ledger: Ledger
    seed: int
    restores: bool
    rand: random.Random = field(init=False)
    made: list[tuple[str, str]] = field(default_factory=list)  # stream, memory id
    newest: dict[str, int] = field(default_factory=dict)
    at_step: dict[tuple[str, int], list[Seen]] = field(default_factory=dict)
    at_time: list[Seen] = field(default_factory=list)
    log: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rand = random.Random(self.seed)

    def any(self) -> str:
        return self.rand.choice(self.made)[1]

    def decision(self) -> dict[str, Any]:
        rand = self.rand
        stream = rand.choice(STREAMS)
        step = self.newest.get(stream, -1) + rand.choice((1, 1, 1, 4))
        self.newest[stream] = step
        grounds = {self.any() for _ in range(rand.randint(0, 2))} if self.made else set()
        return {
            "content": " ".join(rand.choices(WORDS, k=6)),
            "rationale": rand.choice((None, "because of a queue")),
            "importance": rand.choice((0.2, 0.5, 0.9)),
            "pinned": rand.random() < 0.05,
            "task_id": stream,
            "project_id": "p",
            "step_index": step,
            "depends_on": sorted(grounds),
        }

    # what changes

    def record(self) -> None:
        decision = self.decision()
        self.made.append((decision["task_id"], self.ledger.id(**decision)))

    def record_some(self) -> None:
        decisions = [self.decision() for _ in range(self.rand.randint(2, 5))]
        answer = self.ledger("record_decisions", decisions=decisions)
        self.made += [(one["task_id"], one["memory_id"]) for one in answer["decisions"]]

    def host_writes(self) -> None:
        stream = self.rand.choice(STREAMS)
        memory_id = self.ledger.database.value(
            "insert into agent_memories (workspace_id, project_id, task_id, memory_type, summary, content)"
            " values (%s, 'p', %s, 'decision', 'by the host', 'schema of the host') returning id",
            (self.ledger.workspace, stream),
        )
        self.newest[stream] = self.newest.get(stream, -1) + 1
        self.made.append((stream, str(memory_id)))

    def a_neighbour_writes(self) -> None:
        self.ledger.id(
            "of another workspace: invoice queue", workspace_id="neighbor", task_id="ours", project_id="p"
        )

    def link(self) -> None:
        self.ledger.connection.execute(
            "select link_decisions(%s, %s, %s, %s)",
            (self.ledger.workspace, self.any(), self.any(), self.rand.choice(("depends_on", "informs"))),
        )

    def supersede(self) -> None:
        self.ledger(
            "supersede_decision", old=self.any(), new=self.any(), action=self.rand.choice((None, "merge"))
        )

    def set_lifecycle(self) -> None:
        lifecycles = ["stale", "disputed", "rejected"] + ["active"] * 2 * self.restores
        self.ledger("set_decision_lifecycle", memory_id=self.any(), lifecycle=self.rand.choice(lifecycles))

    def host_sets_lifecycle(self) -> None:
        self.ledger.database.owner.execute(
            "update agent_memories set lifecycle_status = %s where id = any (%s::uuid[])",
            (self.rand.choice(("stale", "rejected", "active")), [self.any(), self.any()]),
        )

    def go(self, changes: int) -> None:
        kinds = (self.record, self.record_some, self.host_writes, self.a_neighbour_writes, self.link, self.supersede,
                 self.set_lifecycle, self.host_sets_lifecycle)  # fmt: skip
        self.record()
        for number in range(changes):
            change = self.rand.choices(kinds, (30, 6, 5, 4, 12, 18, 14, 8))[0]
            self.log.append(change.__name__)
            newest = dict(self.newest)
            try:
                change()
            except psycopg.Error as error:
                if error.sqlstate not in REFUSED:
                    raise
                self.newest = newest
            self.look(f"seed {self.seed} after change {number}, {change.__name__}")

    # what is asked

    def look(self, note: str) -> None:
        base = {
            "query": self.rand.choice((None, "invoice of a queue", "token")),
            "match_count": 1000,
            "trace": False,
            "include_superseded": self.rand.random() < 0.7,
        }
        if self.rand.random() < 0.2:
            base["current_step"] = self.rand.randint(0, 80)
        elif self.rand.random() < 0.2:
            base["only_confirmed"] = True
        now = self.ledger.database.value("select clock_timestamp()")
        assert isinstance(now, datetime)
        self.at_time.append(Seen(base | {"as_of": now.isoformat()}, self.hits(base), note))
        for stream, step in self.newest.items():
            scoped = base | {"task_id": stream}
            # whatever is changed until the stream goes past this step, is of this step
            self.at_step[stream, step] = [Seen(scoped | {"as_of_step": step}, self.hits(scoped), note)]

    def hits(self, arguments: dict[str, Any]) -> list[dict[str, Any]]:
        return list(self.ledger("recall_decisions", **arguments)["hits"])

    def compare(self) -> int:
        seen = [*self.at_time, *(one for all_of in self.at_step.values() for one in all_of)]
        for one in seen:
            expected, found = one.hits, self.hits(one.arguments)
            if self.restores:  # a supersession that was taken back is known to nobody
                for hit in (*expected, *found):
                    hit.pop("successor")
            assert found == expected, (one.note, one.arguments)
        return len(seen)


@pytest.mark.parametrize("seed", range(12))
def test_a_past_recall_is_answered_again(ledger: Ledger, seed: int) -> None:
    history = History(ledger, seed, restores=seed % 2 == 1)
    history.go(60)
    assert history.compare() > 80
