"""Decisions of a public project, recorded and asked for through SDK, gateway, PostgREST and PostgreSQL.

The data is other people's text and lies beside the repository, not in it: where it is not there, this is skipped.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from ranked_ledger import LoopError, NewDecision, RankedLedger
from ranked_ledger.models import Preset
from ranked_ledger.stack import StackInfo
from tests.sql.random_ledgers import Call

ROOT = Path(__file__).parents[2]
DATA = ROOT.parent / "shared" / "data" / "decisions"
REFERENCES = {"published": "reference.sql", "tuned": "reference_tuned.sql"}
STREAM = "buildpacks/rfcs"
RELATIONS = {"depends_on": "depends_on", "relates_to": "informs", "amends": "informs"}

pytestmark = pytest.mark.skipif(
    not DATA.is_dir(), reason="the decisions of public projects are not beside this checkout (../shared/data)"
)


def lines(name: str) -> list[dict[str, Any]]:
    text = (DATA / name).read_text(encoding="utf-8")
    return [one for one in map(json.loads, text.strip().split("\n")) if one["stream"] == STREAM]


def record_stream(ledger: RankedLedger) -> dict[str, str]:
    """The stream with its links, in the order in which it was decided. Answers memory ids by key."""
    records = sorted(lines("decisions.jsonl"), key=lambda one: one["step"])
    decisions = ledger.record_many(
        NewDecision(
            f"{one['title']}\n\n{one['decision'] or one['context']}",
            rationale=one["context"] or None,
            step=one["step"],
            task=STREAM,
            created_by="import",
        )
        for one in records
    )
    ids = {one["key"]: str(made.memory_id) for one, made in zip(records, decisions, strict=True)}
    for one in records:
        for link in one["links"]:
            here, there = ids[one["key"]], ids.get(link["target"])
            if there is None or there == here:
                continue
            try:
                if link["relation"] == "supersedes":
                    ledger.supersede(there, by=here, reason=link["evidence"])
                elif link["relation"] in RELATIONS:
                    ledger.link(here, to=there, relation=RELATIONS[link["relation"]])  # type: ignore[arg-type]
            except LoopError:
                continue  # real records do point at each other
    return ids


@pytest.mark.parametrize("preset", [None, "published"])
def test_a_real_stream_is_recalled_as_the_reference_says(
    stack: StackInfo, workspace: str, preset: Preset | None
) -> None:
    asked: dict[str, Any] = {"task": STREAM} | ({"preset": preset} if preset else {})
    reference = (ROOT / "tests" / "sql" / REFERENCES[preset or "tuned"]).read_text(encoding="utf-8")
    with (
        RankedLedger(stack.url, stack.secret_key, workspace=workspace) as ledger,
        psycopg.connect(stack.db_url, row_factory=dict_row) as database,
    ):
        ids = record_stream(ledger)
        retired = {str(one.memory_id) for one in ledger.timeline(lifecycle="superseded")}
        assert len(retired) == 10
        successors = 0
        for question in lines("questions.jsonl"):
            found = ledger.recall(question["query"], limit=10, **asked)
            call = Call(
                {
                    "p_workspace_id": workspace,
                    "p_query": question["query"],
                    "p_task_id": STREAM,
                    "p_preset": preset or "tuned",
                }
            )
            expected = database.execute(reference, call.reference).fetchall()
            assert [hit.memory_id for hit in found] == [row["memory_id"] for row in expected]
            assert [hit.score for hit in found] == pytest.approx([row["score"] for row in expected], abs=1e-9)
            assert not retired & {str(hit.memory_id) for hit in found}

            everything = ledger.recall(question["query"], limit=1000, include_superseded=True, **asked)
            assert {str(hit.memory_id) for hit in everything} == set(ids.values())
            successors += sum(hit.successor is not None for hit in everything)
        assert successors > 0
