"""The tables of a run: figures with their intervals, for a page, for markdown and for a terminal."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

import numpy as np

from ranked_ledger.evals.measures import BUDGETS, MEASURES, Questions, smallest_budget
from ranked_ledger.evals.runs import TUNING_STREAMS
from ranked_ledger.evals.statistics import Bootstrap, Figure

Tone = Literal["", "good", "bad", "best"]

# Arms that the others are held against, the first that was asked is the one that tables pair with.
BASELINES: Final = (
    "vector", "vector_in_force", "fts_or", "bm25", "bm25_in_force", "hybrid_rrf", "hybrid_rrf_bm25",
    "hybrid_rrf_in_force", "hybrid_rrf_bm25_in_force", "recency", "fts_and",
)  # fmt: skip
# Those that stand beside the ranked arms where there is room for a few: the plain ones and the strongest.
CHIEF_BASELINES: Final = ("vector", "bm25_in_force", "hybrid_rrf", "hybrid_rrf_bm25_in_force")
RANKED: Final = (
    "tuned", "tuned_text", "ranked_ledger_calibrated", "ranked_ledger_vectors", "ranked_ledger_text",
)  # fmt: skip
SHUFFLED: Final = "step_shuffled"
WITHOUT: Final = "tuned_without_"

_FOUND: Final = ("MRR", "hit@1", "hit@5", "hit@10", "nDCG@10")
_AT_BUDGETS: Final = tuple(f"hit in {budget:,} tokens" for budget in BUDGETS)
_PAIRED: Final = ("MRR", "hit@5", "nDCG@10", "served retired", "misled", _AT_BUDGETS[1])


@dataclass(frozen=True, slots=True)
class Cell:
    """What a cell says; `small`: its interval. A tone is a judgment: it never stands for a number alone."""

    text: str
    small: str = ""
    tone: Tone = ""


@dataclass(frozen=True, slots=True)
class Table:
    """`columns`: their names; the first one is words, the others are numbers unless they are in `words`."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    words: frozenset[str] = field(default_factory=frozenset)


def as_markdown(text: str) -> str:
    """A text on one line of a document: names come from others' data, and are no HTML of the document's."""
    return " ".join(text.splitlines()).replace("&", "&amp;").replace("<", "&lt;")


def markdown(table: Table) -> str:
    """The table for a document."""
    numeric = [place > 0 and name not in table.words for place, name in enumerate(table.columns)]
    lines = [
        f"| {' | '.join(map(_in_cell, table.columns))} |",
        f"|{'|'.join('---:' if number else '---' for number in numeric)}|",
    ]
    for row in table.rows:
        texts = [f"{cell.text} ({cell.small})" if cell.small else cell.text for cell in row]
        texts = [
            f"**{text}**" if cell.tone == "best" else text for text, cell in zip(texts, row, strict=True)
        ]
        lines.append(f"| {' | '.join(map(_in_cell, texts))} |")
    return "\n".join(lines)


def _in_cell(text: str) -> str:
    return as_markdown(text).replace("|", "\\|")


def reference(arms: Sequence[str]) -> str:
    """The arm that the others are paired with: plain vector recall, or the next one where it is not there."""
    return next((arm for arm in BASELINES if arm in arms), arms[0])


def lead(arms: Sequence[str]) -> str | None:
    """The ranked arm that the report is about first."""
    return next((arm for arm in RANKED if arm in arms), None)


def ablations(arms: Sequence[str]) -> list[str]:
    """Arms that are the tuned policy without one part of it."""
    return [arm for arm in arms if arm.startswith(WITHOUT) or arm.endswith(SHUFFLED)]


def compared(arms: Sequence[str]) -> list[str]:
    """The arms that are policies of their own: all but the ablations."""
    return [arm for arm in arms if arm not in ablations(arms)]


def part_of(ablation: str) -> str:
    """What an ablation is without."""
    return (
        "the order of steps"
        if ablation.endswith(SHUFFLED)
        else ablation.removeprefix(WITHOUT).replace("_", " ")
    )


def found(questions: Questions, bootstrap: Bootstrap, arms: Sequence[str]) -> Table:
    """The standard measures of every arm; the best of a column stands out, the oracle left aside."""
    return _measured(questions, bootstrap, arms, _FOUND)


def cost(questions: Questions, bootstrap: Bootstrap, arms: Sequence[str]) -> Table:
    """What an answer costs, and what must not be in it."""
    misleading = measured(questions, ("served retired", "misled"))
    table = _measured(questions, bootstrap, arms, (*misleading, *_AT_BUDGETS))
    rows = []
    cut = 1 + len(misleading)
    for arm, row in zip(arms, table.rows, strict=True):
        tokens = bootstrap.median(questions.values["tokens to first right"][arm], questions.clusters)
        rows.append((*row[:cut], figure_cell(tokens, whole), *row[cut:]))
    columns = (*table.columns[:cut], "median tokens to first right", *table.columns[cut:])
    return Table(columns, tuple(rows))


def measured(questions: Questions, names: Sequence[str]) -> tuple[str, ...]:
    """Those of which any question has a figure."""
    return tuple(
        name for name in names if any(not np.isnan(one).all() for one in questions.values[name].values())
    )


def latency(questions: Questions, bootstrap: Bootstrap, arms: Sequence[str]) -> Table:
    """Milliseconds of a call in one session, the trace included."""
    rows = []
    for arm in arms:
        taken = questions.values["milliseconds"][arm]
        figures = (bootstrap.quantile(taken, at, questions.clusters) for at in (0.5, 0.95))
        rows.append((Cell(arm), *(figure_cell(figure, milliseconds) for figure in figures)))
    return Table(("arm", "p50 ms", "p95 ms"), tuple(rows))


def paired(questions: Questions, bootstrap: Bootstrap, arms: Sequence[str], baseline: str) -> Table:
    """Every arm minus the baseline, question by question."""
    rows = [
        (Cell(arm), *_differences(questions, bootstrap, arm, baseline)) for arm in arms if arm != baseline
    ]
    return Table(("arm", *measured(questions, _PAIRED)), tuple(rows))


def led(questions: Questions, bootstrap: Bootstrap, first: str) -> Table:
    """One arm minus each baseline that was asked, question by question."""
    rows = [
        (Cell(baseline), *_differences(questions, bootstrap, first, baseline))
        for baseline in BASELINES
        if baseline in questions.arms and baseline != first
    ]
    return Table((f"{first} minus", *measured(questions, _PAIRED)), tuple(rows))


def _differences(questions: Questions, bootstrap: Bootstrap, arm: str, baseline: str) -> list[Cell]:
    return [
        judged(
            bootstrap.difference(
                questions.values[name][arm], questions.values[name][baseline], questions.clusters
            ),
            more_is_better=MEASURES[name],
        )
        for name in measured(questions, _PAIRED)
    ]


def ablated(questions: Questions, bootstrap: Bootstrap) -> Table:
    """The tuned policy minus itself without a part: above 0, the part helps."""
    rows = []
    for arm in ablations(questions.arms):
        figure, five = (
            bootstrap.difference(
                questions.values[name]["tuned"], questions.values[name][arm], questions.clusters
            )
            for name in ("MRR", "hit@5")
        )
        verdict = {1: "helps", -1: "hurts", 0: "no difference shown"}[figure.sign]
        without = bootstrap.mean(questions.values["MRR"][arm], questions.clusters)
        rows.append(
            (
                Cell(part_of(arm)),
                figure_cell(without),
                judged(figure, True),
                judged(five, True),
                Cell(verdict),
            )
        )
    columns = ("without", "MRR", "tuned minus it, MRR", "tuned minus it, hit@5", "the part")
    return Table(columns, tuple(rows), frozenset({"the part"}))


def grouped(groups: Mapping[str, Questions], bootstrap: Bootstrap, name: str) -> Table:
    """MRR of the chief arms in each group of questions, and the lead's difference to the reference."""
    arms = next(iter(groups.values())).arms
    first, baseline = lead(arms), reference(arms)
    shown = [arm for arm in (*CHIEF_BASELINES, *reversed(RANKED)) if arm in arms]
    rows = []
    for group, questions in groups.items():
        values = questions.values["MRR"]
        means = {arm: float(values[arm].mean()) for arm in shown}
        best = max(means.values(), default=0.0)
        row = [Cell(f"{group} (tuned on)" if group in TUNING_STREAMS else group), Cell(str(len(questions)))]
        row += [Cell(share(mean), "", "best" if mean == best else "") for mean in means.values()]
        if first is not None:
            figure = bootstrap.difference(values[first], values[baseline], questions.clusters)
            row.append(judged(figure, True))
        rows.append(tuple(row))
    difference = () if first is None else (f"{first} minus {baseline}",)
    return Table((name, "questions", *shown, *difference), tuple(rows))


def budgets(questions: Questions, arms: Sequence[str]) -> Table | None:
    """The smallest budget at which an arm finds as often as vector recall does with five results."""
    baseline = reference(questions.arms)
    hit_rate = float(questions.values["hit@5"][baseline].mean())
    five = float(questions.values["tokens at five"][baseline].mean())
    if not five:
        return None
    rows = []
    for arm in arms:
        reached = smallest_budget(questions, arm, hit_rate)
        cells = (
            (Cell("not reached"), Cell("-"), Cell("-"))
            if reached is None
            else (Cell(f"{reached[0]:,}"), Cell(whole(reached[1])), Cell(f"{reached[1] / five:.2f}"))
        )
        rows.append((Cell(arm), *cells))
    columns = (
        "arm",
        "smallest budget",
        "mean tokens there",
        f"of {baseline}'s {whole(five)} at five results",
    )
    return Table(columns, tuple(rows))


def _measured(
    questions: Questions, bootstrap: Bootstrap, arms: Sequence[str], measures: Sequence[str]
) -> Table:
    figures = {
        name: bootstrap.means({arm: questions.values[name][arm] for arm in arms}, questions.clusters)
        for name in measures
    }
    best = {
        name: max((figure.value for arm, figure in by_arm.items() if arm != "oracle"), default=None)
        for name, by_arm in figures.items()
        if MEASURES[name]
    }
    rows = [
        (
            Cell(arm),
            *(
                figure_cell(
                    figures[name][arm], tone="best" if figures[name][arm].value == best.get(name) else ""
                )
                for name in measures
            ),
        )
        for arm in arms
    ]
    return Table(("arm", *measures), tuple(rows))


def share(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.3f}"


def signed(value: float) -> str:
    """A difference; what rounds to nothing has no sign."""
    text = f"{value:+.3f}"
    return "-" if math.isnan(value) else "0.000" if float(text) == 0 else text


def whole(value: float) -> str:
    return "-" if math.isnan(value) else "not found" if math.isinf(value) else f"{value:,.0f}"


def milliseconds(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:,.1f}"


def interval(figure: Figure, shown: Callable[[float], str] = share) -> str:
    """The interval of a figure, in the figure's own format."""
    return "" if not math.isfinite(figure.value) else f"{shown(figure.low)} to {shown(figure.high)}"


def figure_cell(figure: Figure, shown: Callable[[float], str] = share, tone: Tone = "") -> Cell:
    """A figure with its interval."""
    return Cell(shown(figure.value), interval(figure, shown), tone)


def judged(figure: Figure, more_is_better: bool) -> Cell:
    """A difference with its interval, toned where the whole interval lies on one side of 0."""
    toward = figure.sign if more_is_better else -figure.sign
    tone: Tone = "good" if toward > 0 else "bad" if toward < 0 else ""
    return Cell(signed(figure.value), interval(figure, signed), tone)
