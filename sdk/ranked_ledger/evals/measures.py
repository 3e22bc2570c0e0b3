"""What a run's rows are worth: a table of numbers, a line a question and a column an arm, for every measure.

The standard measures are computed by ir-measures, over the order in which an arm answered. An arm that
answered a question with nothing has found nothing; a question with several right answers is answered by any.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final

import ir_measures
import numpy as np
from ir_measures import RR, Qrel, ScoredDoc, Success, nDCG
from numpy.typing import NDArray

from ranked_ledger.evals.errors import EvalError
from ranked_ledger.evals.runs import READ, TUNING_STREAMS, Run

Values = NDArray[np.float64]

BUDGETS: Final = (500, 1000, 2000)

_STANDARD: Final[Mapping[str, ir_measures.Measure]] = MappingProxyType(
    {"hit@1": Success @ 1, "hit@5": Success @ 5, "hit@10": Success @ 10, "MRR": RR, "nDCG@10": nDCG @ 10}
)

# Names of all measures, and whether more is better.
MEASURES: Final[Mapping[str, bool]] = MappingProxyType(
    dict.fromkeys(_STANDARD, True)
    | {"served retired": False, "misled": False, "tokens to first right": False}
    | {f"hit in {budget:,} tokens": True for budget in BUDGETS}
    | {"tokens at five": False, "milliseconds": False}
)


@dataclass(frozen=True, slots=True)
class Questions:
    """The questions of a run, in the order in which they were asked, and what each arm made of them.

    `values[measure][arm]` has a number for every question. "tokens to first right" is infinite where no right
    answer is among the hits, "misled" NaN where a question names nothing that must not be found.
    `budget_hits[arm]` and `budget_tokens[arm]` have a column for every budget. `clusters` has for every
    question its stream and its right answers: those that share them are no independent evidence.
    """

    ids: tuple[str, ...]
    streams: tuple[str, ...]
    kinds: tuple[str, ...]
    clusters: tuple[tuple[str, ...], ...]
    arms: tuple[str, ...]
    values: Mapping[str, Mapping[str, Values]]
    budgets: tuple[int, ...]
    budget_hits: Mapping[str, Values]
    budget_tokens: Mapping[str, Values]

    def __len__(self) -> int:
        return len(self.ids)

    def only(self, wanted: Callable[[int], bool]) -> Questions:
        """The same of some of the questions."""
        return self.at([place for place in range(len(self)) if wanted(place)])

    def at(self, chosen: Sequence[int]) -> Questions:
        """The questions at these places, in this order."""
        rows = np.array(chosen, dtype=np.intp)
        return replace(
            self,
            ids=tuple(self.ids[place] for place in chosen),
            streams=tuple(self.streams[place] for place in chosen),
            kinds=tuple(self.kinds[place] for place in chosen),
            clusters=tuple(self.clusters[place] for place in chosen),
            values={
                measure: {arm: numbers[rows] for arm, numbers in by_arm.items()}
                for measure, by_arm in self.values.items()
            },
            budget_hits={arm: table[rows] for arm, table in self.budget_hits.items()},
            budget_tokens={arm: table[rows] for arm, table in self.budget_tokens.items()},
        )

    def of_streams(self, streams: Collection[str]) -> Questions:
        return self.only(lambda place: self.streams[place] in streams)

    def by_stream(self) -> dict[str, Questions]:
        return {stream: self.of_streams({stream}) for stream in dict.fromkeys(self.streams)}

    def by_kind(self) -> dict[str, Questions]:
        return {
            kind: self.only(lambda place, kind=kind: self.kinds[place] == kind)  # type: ignore[misc]
            for kind in dict.fromkeys(self.kinds)
            if kind
        }

    def reported(self) -> Questions:
        """Those of streams on which nothing was tuned."""
        return self.only(lambda place: self.streams[place] not in TUNING_STREAMS)

    def tuned_on(self) -> Questions:
        return self.of_streams(TUNING_STREAMS)


def measure(run: Run) -> Questions:
    """Every measure of every row. Questions that not every arm was asked are left out: they have no pairs."""
    arms = run.arms
    rows = {(str(row["question"]), str(row["arm"])): row for row in run.rows}
    asked = dict.fromkeys(str(row["question"]) for row in run.rows)
    ids = tuple(one for one in asked if all((one, arm) in rows for arm in arms))
    if not ids:
        raise EvalError(
            f"{run.name}: no question was put to every arm, so none can be compared",
            hint="let the run go on for longer, or run fewer arms",
        )
    first = [rows[one, arms[0]] for one in ids]
    by_arm = {arm: [rows[one, arm] for one in ids] for arm in arms}
    budgets = tuple(sorted({int(budget) for row in first for budget in row["budgets"]}))
    return Questions(
        ids=ids,
        streams=tuple(str(row["stream"]) for row in first),
        kinds=tuple(str(row.get("question_kind") or "") for row in first),
        clusters=tuple((str(row["stream"]), *sorted(set(map(str, row["gold"])))) for row in first),
        arms=arms,
        values=_values(ids, by_arm),
        budgets=budgets,
        budget_hits={arm: _at_budgets(mine, budgets, _found) for arm, mine in by_arm.items()},
        budget_tokens={arm: _at_budgets(mine, budgets, _spent) for arm, mine in by_arm.items()},
    )


def smallest_budget(questions: Questions, arm: str, hit_rate: float) -> tuple[int, float] | None:
    """The smallest budget at which an arm's hit rate is at least that one, and the mean tokens it takes."""
    rates = questions.budget_hits[arm].mean(axis=0)
    for place, budget in enumerate(questions.budgets):
        if rates[place] >= hit_rate - 1e-12:
            return budget, float(questions.budget_tokens[arm][:, place].mean())
    return None


def _values(
    ids: tuple[str, ...], by_arm: Mapping[str, list[Mapping[str, Any]]]
) -> dict[str, dict[str, Values]]:
    values: dict[str, dict[str, Values]] = {name: {} for name in MEASURES}
    for arm, rows in by_arm.items():
        for name, numbers in _standard(ids, rows).items():
            values[name][arm] = numbers
        own: dict[str, Callable[[Mapping[str, Any]], float]] = {
            "served retired": _serves_retired,
            "misled": _misleads,
            "tokens to first right": _tokens_to_first_right,
            "tokens at five": lambda row: sum(_tokens(hit) for hit in row["hits"][:5]),
            "milliseconds": lambda row: float(row["milliseconds"]),
        }
        for name, of in own.items():
            values[name][arm] = np.array([of(row) for row in rows], dtype=np.float64)
        for budget in BUDGETS:
            values[f"hit in {budget:,} tokens"][arm] = np.array(
                [_found(row, budget) for row in rows], dtype=np.float64
            )
    return values


def _standard(ids: tuple[str, ...], rows: list[Mapping[str, Any]]) -> dict[str, Values]:
    right = [Qrel(one, str(key), 1) for one, row in zip(ids, rows, strict=True) for key in row["gold"]]
    # the place and not the score: an arm's own order decides between equal scores
    found = [
        ScoredDoc(one, str(hit["key"]), float(-place))
        for one, row in zip(ids, rows, strict=True)
        for place, hit in enumerate(row["hits"])
    ]
    places = {one: place for place, one in enumerate(ids)}
    names = {of: name for name, of in _STANDARD.items()}
    values = {name: np.zeros(len(ids), dtype=np.float64) for name in _STANDARD}
    if not found or not right:  # the library has no answer about nothing
        return values
    for metric in ir_measures.iter_calc(list(names), right, found):
        values[names[metric.measure]][places[metric.query_id]] = metric.value
    return values


def _tokens(hit: Mapping[str, Any]) -> int:
    return int(hit.get("tokens") or 0)


def _serves_retired(row: Mapping[str, Any]) -> bool:
    """Rejected ones have no successor that could stand beside them."""
    rejected = any(hit.get("lifecycle") == "rejected" for hit in row["hits"][:READ])
    return rejected or bool(row.get("retired_without_successor"))


def _misleads(row: Mapping[str, Any]) -> float:
    if not (must_not := row.get("must_not")):
        return float("nan")
    return any(hit["key"] in must_not for hit in row["hits"][:READ])


def _tokens_to_first_right(row: Mapping[str, Any]) -> float:
    spent = 0
    for hit in row["hits"]:
        spent += _tokens(hit)
        if hit["key"] in row["gold"]:
            return spent
    return float("inf")


def _found(row: Mapping[str, Any], budget: int) -> float:
    return float((row["budgets"].get(str(budget)) or {}).get("first_right") is not None)


def _spent(row: Mapping[str, Any], budget: int) -> float:
    return float((row["budgets"].get(str(budget)) or {}).get("tokens") or 0)


def _at_budgets(
    rows: list[Mapping[str, Any]],
    budgets: tuple[int, ...],
    of: Callable[[Mapping[str, Any], int], float],
) -> Values:
    table = [[of(row, budget) for budget in budgets] for row in rows]
    return np.array(table, dtype=np.float64).reshape(len(rows), len(budgets))
