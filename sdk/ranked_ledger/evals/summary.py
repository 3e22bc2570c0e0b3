"""Several runs at a glance, a line each: `python -m ranked_ledger.evals.summary build/eval/*.jsonl`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from ranked_ledger.evals import table
from ranked_ledger.evals.errors import EvalError
from ranked_ledger.evals.measures import measure
from ranked_ledger.evals.runs import Run, read

ARMS: Final = (
    "vector", "bm25_in_force", "hybrid_rrf", "hybrid_rrf_in_force", "hybrid_rrf_bm25",
    "hybrid_rrf_bm25_in_force", "tuned", "tuned_text",
)  # fmt: skip


def summary(logs: Iterable[Run]) -> table.Table:
    """MRR of the chief arms, over what nothing was tuned on where there is such, and the anomalies."""
    rows = []
    for run in logs:
        everything = measure(run)
        reported = everything.reported()
        chief = reported if len(reported) else everything
        values = chief.values["MRR"]
        means = [table.share(float(values[arm].mean())) if arm in values else "-" for arm in ARMS]
        found = "not finished" if run.end is None else str(sum(run.anomalies.values()))
        cells = (run.name.removesuffix(".jsonl"), str(len(chief)), *means, found)
        rows.append(tuple(map(table.Cell, cells)))
    return table.Table(("run", "questions", *(f"MRR {arm}" for arm in ARMS), "anomalies"), tuple(rows))


def main(names: Sequence[str]) -> int:
    """Print it; 1 where a file is no log."""
    try:
        print(table.markdown(summary(read(Path(name)) for name in names)))
    except (EvalError, OSError) as refused:
        print(f"Error: {refused}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
