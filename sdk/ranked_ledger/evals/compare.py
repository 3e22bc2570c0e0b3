"""Two runs side by side: what changed between them, question by question, for the arms that both asked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ranked_ledger.evals import table
from ranked_ledger.evals.errors import EvalError
from ranked_ledger.evals.measures import MEASURES, Questions, measure
from ranked_ledger.evals.runs import Run
from ranked_ledger.evals.statistics import RESAMPLES, Bootstrap
from ranked_ledger.wording import counted

_MEASURES = ("MRR", "hit@5", "nDCG@10", "served retired", "misled", "hit in 1,000 tokens")


@dataclass(frozen=True, slots=True)
class Comparison:
    """`remarks`: what a reader must know first. `tables`: by measure, both runs and their difference."""

    remarks: tuple[str, ...]
    tables: dict[str, table.Table]

    def markdown(self) -> str:
        """As a part of a document."""
        parts = ["\n".join(f"- {table.as_markdown(one)}" for one in self.remarks)]
        parts += [f"**{name}**\n\n{table.markdown(one)}" for name, one in self.tables.items()]
        return "\n\n".join(parts) + "\n"


def compare(first: Run, second: Run, *, resamples: int = RESAMPLES) -> Comparison:
    """The second run minus the first. Raises `EvalError` where they share no question or no arm."""
    one, other = measure(first), measure(second)
    arms = [arm for arm in one.arms if arm in other.arms]
    shared = [question for question in one.ids if question in set(other.ids)]
    if not arms or not shared:
        raise EvalError(
            f"{first.name} and {second.name} share no {'arm' if shared else 'question'}",
            hint="compare two runs over the same data",
        )
    one, other = _of(one, shared), _of(other, shared)
    bootstrap = Bootstrap(first.seed, resamples)
    return Comparison(
        tuple(_remarks(first, second, len(shared), arms)),
        {name: _table(one, other, bootstrap, arms, name) for name in table.measured(one, _MEASURES)},
    )


def _of(questions: Questions, ids: list[str]) -> Questions:
    """These questions, in this order: pairs stand at one place in both."""
    places = {question: place for place, question in enumerate(questions.ids)}
    return questions.at([places[question] for question in ids])


def _remarks(first: Run, second: Run, shared: int, arms: list[str]) -> Iterator[str]:
    yield (
        f"{first.name} and {second.name}: {counted(shared, 'question')} and {counted(len(arms), 'arm')} "
        "that both have; differences are the second minus the first, in pairs."
    )
    digests = [(run.header.get("dataset") or {}).get("digest") for run in (first, second)]
    if digests[0] != digests[1]:
        yield f"The data differ: digest {digests[0]} and {digests[1]}."
    for name in ("model", "seed", "versions", "ranges"):
        if (mine := first.header.get(name)) != (theirs := second.header.get(name)):
            yield f"{name} differs: {mine} and {theirs}."
    for run, other in ((first, second), (second, first)):
        if alone := [arm for arm in run.arms if arm not in other.arms]:
            yield f"In {run.name} alone: {', '.join(alone)}."
        if run.anomalies or run.end is None:
            yield f"{run.name} has anomalies, or did not finish: its figures are not to be trusted."


def _table(one: Questions, other: Questions, bootstrap: Bootstrap, arms: list[str], name: str) -> table.Table:
    rows = []
    for arm in arms:
        mine, theirs = one.values[name][arm], other.values[name][arm]
        figure = bootstrap.difference(theirs, mine, one.clusters)
        rows.append(
            (
                table.Cell(arm),
                table.figure_cell(bootstrap.mean(mine, one.clusters)),
                table.figure_cell(bootstrap.mean(theirs, one.clusters)),
                table.judged(figure, MEASURES[name]),
                table.Cell(f"{int((theirs > mine).sum()):,}"),
                table.Cell(f"{int((theirs < mine).sum()):,}"),
            )
        )
    return table.Table(("arm", "first", "second", "second minus first", "more", "less"), tuple(rows))
