"""Several runs at a glance, a column each: `python -m ranked_ledger.evals.summary build/eval/*.jsonl`.

docs/evaluation.py puts the same table into a document.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from ranked_ledger.evals import table
from ranked_ledger.evals.errors import EvalError
from ranked_ledger.evals.measures import Questions, measure
from ranked_ledger.evals.runs import Run, read
from ranked_ledger.wording import counted

ARMS: Final = (
    "recency", "vector", "vector_in_force", "fts_or", "bm25", "bm25_in_force", "hybrid_rrf",
    "hybrid_rrf_in_force", "hybrid_rrf_bm25", "hybrid_rrf_bm25_in_force", "ranked_ledger_text",
    "ranked_ledger_vectors", "ranked_ledger_calibrated", "tuned_text", "tuned",
)  # fmt: skip


def chief(questions: Questions) -> Questions:
    """What nothing was tuned on, where there is such."""
    reported = questions.reported()
    return reported if len(reported) else questions


def by_arm(runs: Mapping[str, Questions]) -> table.Table:
    """MRR of each arm in each run, over what nothing was tuned on where there is such."""
    shown = [chief(questions).values["MRR"] for questions in runs.values()]
    best = [max((float(mrr[arm].mean()) for arm in ARMS if arm in mrr), default=None) for mrr in shown]
    rows = []
    for arm in ARMS:
        if not any(arm in mrr for mrr in shown):
            continue
        values = [float(mrr[arm].mean()) if arm in mrr else None for mrr in shown]
        cells = [
            table.Cell("-")
            if value is None
            else table.Cell(table.share(value), tone="best" if value == most else "")
            for value, most in zip(values, best, strict=True)
        ]
        rows.append((table.Cell(f"`{arm}`"), *cells))
    return table.Table(("MRR", *runs), tuple(rows))


def sentence(run: Run, questions: Questions) -> str:
    """Over what a run's column is, and whether it is to be trusted."""
    many = counted(len(chief(questions)), "question")
    if run.end is None:
        found = "not finished"
    elif run.anomalies:
        found = f"anomalies: {', '.join(f'{kind} {number}' for kind, number in run.anomalies.items())}"
    else:
        found = "0 anomalies"
    return f"{run.name}: {many}, {found}"


def main(names: Sequence[str]) -> int:
    """Print it; 1 where a file is no log."""
    try:
        logs = [read(Path(name)) for name in names]
    except (EvalError, OSError) as refused:
        print(f"Error: {refused}", file=sys.stderr)
        return 1
    measured = [measure(run) for run in logs]
    columns = (run.name.removesuffix(".jsonl") for run in logs)
    print(table.markdown(by_arm(dict(zip(columns, measured, strict=True)))), end="\n\n")
    for run, questions in zip(logs, measured, strict=True):
        print(f"- {sentence(run, questions)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
