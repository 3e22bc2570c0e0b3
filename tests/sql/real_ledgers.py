"""Ledgers of decisions that public projects made, with their links, asked with questions that people had.

The texts are other people's and lie beside the repository, not in it.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from tests.rig.databases import Connection
from tests.sql.random_changes import refusable
from tests.sql.random_ledgers import INSERT_MEMORIES, INSERT_THOUGHTS, World, as_vector

DATA = Path(__file__).parents[2].parent / "shared" / "data" / "decisions"
DIMENSION = 256
RELATIONS = {"depends_on": "depends_on", "relates_to": "informs", "amends": "informs"}

Record = dict[str, Any]


@cache
def lines(name: str) -> tuple[Record, ...]:
    text = (DATA / name).read_text(encoding="utf-8")
    return tuple(map(json.loads, text.strip().split("\n")))


@cache
def _model() -> Any:
    import wordllama  # a small real model, whose wheel holds its weights

    return wordllama.WordLlama.load(cache_dir=Path(wordllama.__file__).parent, disable_download=True)


def vectors_of(texts: Sequence[str]) -> dict[str, str]:
    """As they come, unnormalized: a text without a word that the model knows has a vector of zeros."""
    return dict(zip(texts, map(as_vector, _model().embed(list(texts)).tolist()), strict=True))


@dataclass
class RealWorld(World):
    """Draws its texts, questions and vectors from what people wrote."""

    records: Sequence[Record] = ()
    questions: Sequence[Record] = ()
    vectors: dict[str, str] = field(default_factory=dict)

    def _text(self, *names: str) -> str:
        record = self.rand.choice(self.records)
        return "\n\n".join(record[name] for name in names if record[name])

    def sentence(self) -> str:
        return self._text("title", "decision")

    def rationale(self) -> str | None:
        return self._text("context", "consequences") or None

    def summary(self) -> str:
        return self._text("title")[:200]

    def question(self) -> str:
        return str(self.rand.choice(self.questions)["query"])

    def vector(self) -> str:
        """Of what somebody asks or decides; now and then one as the made ones are."""
        if self.rand.random() < 0.1:
            return super().vector()
        return self.embedded(self.question() if self.rand.random() < 0.5 else self._text("title"))

    def embedded(self, text: str) -> str:
        if text not in self.vectors:
            self.vectors |= vectors_of([text])
        return self.vectors[text]


def streams() -> list[str]:
    return sorted({record["stream"] for record in lines("decisions.jsonl")})


def write_real_ledger(connection: Connection, rand: random.Random, *, of: Sequence[str]) -> RealWorld:
    """These streams as tasks of one workspace, with their links as far as the ledger takes them."""
    records = [one for one in lines("decisions.jsonl") if one["stream"] in of]
    questions = [one for one in lines("questions.jsonl") if one["stream"] in of]
    world = RealWorld(rand, DIMENSION, tasks=(*of, ""), records=records, questions=questions)
    ids = {(one["stream"], one["key"]): str(world.uuid()) for one in records}
    contents = ["\n\n".join(filter(None, (one["title"], one["decision"]))) for one in records]
    world.vectors |= vectors_of(contents)
    thoughts, memories = [], []
    for one, content in zip(records, contents, strict=True):
        thought = {"id": str(world.uuid()), "content": content, "embedding": world.embedded(content)}
        thoughts.append(thought)
        memories.append(
            world.memory(world.workspace, thought["id"])
            | {
                "id": ids[one["stream"], one["key"]],
                "project_id": None,
                "task_id": one["stream"],
                "memory_type": "decision",
                "summary": one["title"][:200],
                "content": content,
                "lifecycle_status": one["lifecycle"],
                "metadata": {
                    "step_index": one["step"],
                    "rationale": "\n\n".join(filter(None, (one["context"], one["consequences"]))),
                },
            }
        )
    links = [
        (ids[one["stream"], one["key"]], ids[one["stream"], link["target"]], RELATIONS[link["relation"]])
        for one in records
        for link in one["links"]
        if link["relation"] in RELATIONS and (one["stream"], link["target"]) in ids
    ]
    with connection.transaction():
        connection.execute(INSERT_THOUGHTS, (json.dumps(thoughts),))
        connection.execute(INSERT_MEMORIES, (json.dumps(memories),))
        for link in links:
            with refusable(connection):  # some point at themselves or at each other
                connection.execute(
                    "insert into agent_decision_edges (from_memory_id, to_memory_id, relation) values (%s, %s, %s)"
                    " on conflict do nothing",
                    link,
                )
    return world
