"""What a run found: the timings of each arm, and the figure that is held against a bar."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests.bench.plan import Bar, Case


@dataclass(frozen=True)
class Finding:
    """One line of the table. `subject` and `baseline` name the arms whose medians the figure compares."""

    case: Case
    title: str
    rows: int
    figure: float
    words: str
    vectors: str = ""
    bar: Bar | None = None
    subject: str = ""
    baseline: str = ""
    timings: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """Milliseconds by arm, in the order of measurement."""
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def met(self) -> bool | None:
        return None if self.bar is None else self.bar.met(self.figure)

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {
            "met": self.met,
            "arms": {arm: summary(raw) for arm, raw in self.timings.items()},
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Finding:
        kept = {key: value for key, value in data.items() if key not in ("met", "arms", "bar")}
        return cls(**kept, bar=Bar(**data["bar"]) if data["bar"] else None)


def read(path: Path) -> dict[str, Any]:
    """The document of a run."""
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return document


def findings(document: Mapping[str, Any]) -> list[Finding]:
    """Those of the run, then those of later runs of single cases: see `added`."""
    runs = [document, *document.get("added", ())]
    return [Finding.from_json(one) for run in runs for one in run["findings"]]


def added(kept: Mapping[str, Any], later: Mapping[str, Any]) -> dict[str, Any]:
    """A run with the cases of a later one in the place of its own, each with what it was measured on.

    Refuses (ValueError) what was measured at other sizes or on another machine: two tables, not one.
    """
    for name, one, other in (
        # a size of a case that the kept run did not know yet contradicts nothing
        ("sizes", kept["plan"], {name: later["plan"].get(name) for name in kept["plan"]}),
        ("machine", _machine(kept), _machine(later)),
        ("settings", kept["settings"], later["settings"]),
    ):
        if one != other:
            raise ValueError(f"not the same {name}: {one} and {other}")
    cases = {one["case"] for one in later["findings"]}

    def without(run: Mapping[str, Any]) -> dict[str, Any]:
        return {**run, "findings": [one for one in run["findings"] if one["case"] not in cases]}

    before = [run for run in map(without, kept.get("added", ())) if run["findings"]]
    return {**without(kept), "added": [*before, dict(later)]}


def _machine(document: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in document["machine"].items() if name != "load_average_before"}


def summary(raw: Sequence[float]) -> dict[str, float]:
    return {"median_ms": statistics.median(raw), "p95_ms": p95(raw), "repetitions": len(raw)}


def p95(raw: Sequence[float]) -> float:
    """The nearest rank: a figure that was measured."""
    return sorted(raw)[math.ceil(0.95 * len(raw)) - 1]


def compared(
    case: Case,
    title: str,
    rows: int,
    timings: Mapping[str, Sequence[float]],
    *,
    subject: str,
    baseline: str,
    bar: Bar,
    vectors: str = "",
    judged: bool = True,
    details: Mapping[str, Any] | None = None,
) -> Finding:
    """How often the baseline's median goes into the subject's, or the other way round where more is better.

    `judged=False`: the figure is shown, and no bar is set for it.
    """
    ratio = statistics.median(timings[subject]) / statistics.median(timings[baseline])
    return Finding(
        case=case,
        title=title,
        rows=rows,
        figure=ratio if bar.at_most else 1 / ratio,
        words=bar.words,
        vectors=vectors,
        bar=bar if judged else None,
        subject=subject,
        baseline=baseline,
        timings=timings,
        details=details or {},
    )
