"""Why a hit stands where it stands, from the numbers of the answer. No score is ever computed here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Any, Final

_SOURCES: Final = MappingProxyType(
    {
        "cosine": "by meaning: cosine similarity with the query",
        "fts": "by words: full-text match with the query",
        "none": "nothing was asked, so nothing counts here",
    }
)


@dataclass(frozen=True, slots=True)
class Component:
    """One of the four components of a score.

    - `value`: in [0,1]. `weight`: what it is multiplied by. `points`: value times weight.
    - `share`: this component's part of all points, in [0,1]; 0 where there are no points at all.
    - `why`: one phrase for a person.
    """

    name: str
    value: float
    weight: float
    points: float
    share: float
    why: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """A score, taken apart.

    - `score`: as the database answered it. `components`: relevance, importance, recency, dependency.
    - `deduction`: what the score lies below its points, for a decision that is not active; at least 0.
    - `notes`: what else put the hit where it is, for example that it is pinned.

    Example:
        >>> print(recall[0].explain())                                      # doctest: +SKIP
        score 0.690
          relevance   0.750 x 0.45 = 0.338   49%  by words: full-text match with the query
          importance  0.900 x 0.25 = 0.225   33%  as it is set
          recency     0.500 x 0.15 = 0.075   11%  20 steps ago
          dependency  0.333 x 0.15 = 0.050    7%  1 live decision rests on it
    """

    score: float
    components: tuple[Component, ...]
    deduction: float
    notes: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """The same as plain values, ready for JSON."""
        return {
            "score": self.score,
            "components": [asdict(component) for component in self.components],
            "deduction": self.deduction,
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        lines = [f"score {self.score:.3f}"]
        lines += [
            f"  {c.name:<10}  {c.value:.3f} x {c.weight:.2f} = {c.points:.3f}  {c.share:>4.0%}  {c.why}"
            for c in self.components
        ]
        if self.deduction:
            lines.append(f"  deduction                -{self.deduction:.3f}")
        lines += [f"  note: {note}" for note in self.notes]
        return "\n".join(lines)


def weight(arguments: Mapping[str, Any], name: str) -> float:
    """The weight in force: the answer names it as the function's argument does, with or without `p_`."""
    value = arguments.get(f"w_{name}", arguments.get(f"p_w_{name}"))
    return float(value) if isinstance(value, (int, float)) else 0.0


def explain(
    *,
    arguments: Mapping[str, Any],
    score: float,
    relevance: float,
    relevance_source: str,
    importance: float,
    recency: float,
    dependency: float,
    step_distance: int | None,
    live_dependents: int | None,
    lifecycle_status: str,
    pinned: bool,
    rests_on_retired: bool,
) -> Explanation:
    """Take a hit's score apart."""
    parts = [
        (
            "relevance",
            relevance,
            weight(arguments, "similarity"),
            _relevance(relevance_source, relevance),
        ),
        ("importance", importance, weight(arguments, "importance"), "as it is set"),
        ("recency", recency, weight(arguments, "recency"), _distance(step_distance)),
        ("dependency", dependency, weight(arguments, "dependency"), _dependents(live_dependents)),
    ]
    total = sum(value * factor for _, value, factor, _ in parts)
    components = tuple(
        Component(name, value, factor, value * factor, value * factor / total if total else 0.0, why)
        for name, value, factor, why in parts
    )
    inactive = lifecycle_status != "active"
    notes = []
    if pinned:
        notes.append("pinned, so it stands before everything that is not")
    if inactive:
        notes.append(f"{lifecycle_status}, no longer active")
    if rests_on_retired:
        notes.append("it rests on a decision that no longer holds")
    return Explanation(
        score=score,
        components=components,
        deduction=max(0.0, round(total - score, 6)) if inactive else 0.0,
        notes=tuple(notes),
    )


def _relevance(source: str, value: float) -> str:
    if source == "fts" and value == 0:
        return "no word of the query is in it"
    return _SOURCES.get(source, source)


def _distance(steps: int | None) -> str:
    if steps is None:
        return "by its distance in steps"
    if steps == 0:
        return "the newest step"
    return "1 step ago" if steps == 1 else f"{steps} steps ago"


def _dependents(count: int | None) -> str:
    if count is None:
        return "by the live decisions that rest on it"
    if count == 0:
        return "no live decision rests on it"
    return "1 live decision rests on it" if count == 1 else f"{count} live decisions rest on it"
