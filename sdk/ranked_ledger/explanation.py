"""Why a hit stands where it stands, from the numbers of the answer. No score is ever computed here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, Protocol
from uuid import UUID

from ranked_ledger.wording import counted

_PLACES: Final = 9  # what a sum of floats may be off by is not shown
_DETAIL_INDENT: Final = 44


class Ranked(Protocol):
    """What is explained: a `Hit`."""

    @property
    def memory_id(self) -> UUID: ...
    @property
    def ranking_score(self) -> float: ...
    @property
    def relevance(self) -> float: ...
    @property
    def relevance_source(self) -> str: ...
    @property
    def similarity(self) -> float | None: ...
    @property
    def text_relevance(self) -> float | None: ...
    @property
    def summary_match(self) -> float | None: ...
    @property
    def importance(self) -> float: ...
    @property
    def recency(self) -> float: ...
    @property
    def dependency_boost(self) -> float: ...
    @property
    def step_distance(self) -> int | None: ...
    @property
    def live_dependents(self) -> int | None: ...
    @property
    def lifecycle_status(self) -> str: ...
    @property
    def pinned(self) -> bool: ...
    @property
    def successor(self) -> UUID | None: ...
    @property
    def rests_on_retired(self) -> bool: ...
    @property
    def shortened(self) -> bool: ...
    @property
    def arguments(self) -> Mapping[str, Any]: ...


@dataclass(frozen=True, slots=True)
class Origin:
    """Where the relevance of a hit comes from.

    - `source`: cosine, fts (words), none, or how both were fused: max or blend.
    - `from_cosine`, `from_text`: what each gave; together they are the relevance.
    - `similarity`: the cosine with the query as it is; None where there was none. `floor`, `ceiling`: the
      cosines that counted as 0 and as 1. `text_relevance`: of the words alone, in [0,1].
    - `fusion_weight`: the part of the cosine in a blend; None for other sources.
    """

    source: str
    from_cosine: float
    from_text: float
    similarity: float | None
    floor: float
    ceiling: float
    text_relevance: float | None
    fusion_weight: float | None


@dataclass(frozen=True, slots=True)
class Component:
    """One of the components of a score.

    - `value`: in [0,1]. `weight`: what it is multiplied by. `points`: value times weight.
    - `share`: this component's part of all points, in [0,1]; 0 where there are no points at all.
    - `why`: one phrase for a person. `details`: more of them, where one does not say it.
    """

    name: str
    value: float
    weight: float
    points: float
    share: float
    why: str
    details: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Explanation:
    """A score, taken apart: the points of its components less the deduction are the score.

    - `score`: as the database answered it. `components`: relevance, importance, recency, dependency,
      and summary where it is weighed.
    - `deduction`: what the score lies below its points, for a decision that is not active; at least 0.
    - `relevance`: where the relevance comes from, with the cosine and the text match apart.
    - `step_distance`: steps between it and now.
    - `live_dependents`: how many live decisions rest on it; `RankedLedger.impact` names them.
    - `lifecycle_status`, `pinned`, `successor`, `rests_on_retired`: as the hit has them.
    - `notes`: what a person should know besides, for example that it is pinned.

    Example:
        >>> print(recall[0].explain())                                      # doctest: +SKIP
        score 0.690
          relevance   0.750 x 0.45 = 0.338   49%  by words: full-text match with the query
          importance  0.900 x 0.25 = 0.225   33%  as it is set
          recency     0.500 x 0.15 = 0.075   11%  20 steps ago
          dependency  0.333 x 0.15 = 0.050    7%  1 live decision rests on it; 3 count fully
    """

    memory_id: UUID
    score: float
    components: tuple[Component, ...]
    deduction: float
    relevance: Origin
    step_distance: int | None
    live_dependents: int | None
    lifecycle_status: str
    pinned: bool
    successor: UUID | None
    rests_on_retired: bool
    notes: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """The same as plain values, ready for JSON."""
        plain = asdict(self)
        return plain | {
            "memory_id": str(self.memory_id),
            "successor": None if self.successor is None else str(self.successor),
            "components": [{**one, "details": list(one["details"])} for one in plain["components"]],
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        lines = [f"score {self.score:.3f}"]
        for c in self.components:
            lines.append(
                f"  {c.name:<10}  {c.value:.3f} x {c.weight:.2f} = {c.points:.3f}  {c.share:>4.0%}  {c.why}"
            )
            lines += [" " * _DETAIL_INDENT + detail for detail in c.details]
        if self.deduction:
            label = f"{self.lifecycle_status}, no longer active"
            lines.append(f"  {'deduction':<10}  {-self.deduction:>20.3f}        {label}")
        lines += [f"  note: {note}" for note in self.notes]
        return "\n".join(lines)


def argument(arguments: Mapping[str, Any], name: str, default: float = 0.0) -> float:
    """A number in force: the answer names it as the function's argument does, with or without `p_`."""
    value = arguments.get(name, arguments.get(f"p_{name}"))
    return float(value) if isinstance(value, (int, float)) else default


def explain(hit: Ranked) -> Explanation:
    """Take a hit's score apart."""
    origin = _origin(hit)
    parts = [
        ("relevance", hit.relevance, "w_similarity", _relevance(hit, origin)),
        ("importance", hit.importance, "w_importance", ["as it is set"]),
        ("recency", hit.recency, "w_recency", [_distance(hit.step_distance)]),
        ("dependency", hit.dependency_boost, "w_dependency", [_dependents(hit)]),
    ]
    if argument(hit.arguments, "w_summary"):
        parts.append(("summary", hit.summary_match or 0.0, "w_summary", [_summary(hit)]))
    weighed = [(name, value, argument(hit.arguments, weight), said) for name, value, weight, said in parts]
    total = sum(value * weight for _, value, weight, _ in weighed)
    below = 0.0 if hit.lifecycle_status == "active" else total - hit.ranking_score
    return Explanation(
        memory_id=hit.memory_id,
        score=hit.ranking_score,
        components=tuple(
            Component(
                name=name,
                value=value,
                weight=weight,
                points=value * weight,
                share=value * weight / total if total else 0.0,
                why=said[0],
                details=tuple(said[1:]),
            )
            for name, value, weight, said in weighed
        ),
        deduction=max(0.0, round(below, _PLACES)),
        relevance=origin,
        step_distance=hit.step_distance,
        live_dependents=hit.live_dependents,
        lifecycle_status=hit.lifecycle_status,
        pinned=hit.pinned,
        successor=hit.successor,
        rests_on_retired=hit.rests_on_retired,
        notes=tuple(_notes(hit)),
    )


def _origin(hit: Ranked) -> Origin:
    """Both sources apart. What the words did not give, the cosine did: to calibrate it is the database's."""
    text, weight = hit.text_relevance or 0.0, None
    match hit.relevance_source:
        case "fts":
            from_text = hit.relevance
        case "max":
            from_text = text if text >= hit.relevance else 0.0
        case "blend":
            weight = argument(hit.arguments, "fusion_weight")
            from_text = min(hit.relevance, (1 - weight) * text)
        case _:
            from_text = 0.0
    return Origin(
        source=hit.relevance_source,
        from_cosine=round(hit.relevance - from_text, _PLACES),
        from_text=from_text,
        similarity=hit.similarity,
        floor=argument(hit.arguments, "similarity_floor", 0.0),
        ceiling=argument(hit.arguments, "similarity_ceiling", 1.0),
        text_relevance=hit.text_relevance,
        fusion_weight=weight,
    )


def _relevance(hit: Ranked, origin: Origin) -> list[str]:
    """A phrase, and where both sources count, a line for each."""
    match origin.source:
        case "cosine":
            as_it_is = origin.similarity is None or _uncalibrated(origin)
            return [f"by meaning: {'cosine similarity with the query' if as_it_is else _cosine(origin)}"]
        case "fts":
            return [_words(hit)]
        case "max" | "blend":
            return _fused(origin)
        case "none":
            return ["nothing was asked, so nothing counts here"]
        case other:
            return [other]


def _words(hit: Ranked) -> str:
    if hit.relevance == 0:
        return "no word of the query is in it"
    rare = "; rare words count most" if hit.arguments.get("p_preset") == "tuned" else ""
    if hit.arguments.get("has_embedding"):
        return f"by words: full-text match; it has no vector to compare{rare}"
    return f"by words: full-text match with the query{rare}"


def _summary(hit: Ranked) -> str:
    if hit.arguments.get("has_text") is False:
        return "no words were asked for"
    if not hit.summary_match:
        return "no word of its summary is in the query"
    return f"the query names {hit.summary_match:.0%} of the words of its summary"


def _fused(origin: Origin) -> list[str]:
    words = f"words {origin.text_relevance or 0.0:.3f}"
    given = f"{origin.from_cosine:.3f} from {_cosine(origin)}"
    if origin.fusion_weight is not None:
        part = f"{origin.fusion_weight:.0%} by meaning and {1 - origin.fusion_weight:.0%} by words"
        return [part, given, f"{origin.from_text:.3f} from {words}"]
    if not origin.from_text and not origin.from_cosine:
        return ["neither its meaning nor its words match", _cosine(origin)]
    if origin.from_text:
        return ["by words, which match more than the meaning", words, f"{_cosine(origin)} gives no more"]
    return ["by meaning, which matches more than the words", given, words]


def _uncalibrated(origin: Origin) -> bool:
    return (origin.floor, origin.ceiling) == (0, 1)


def _cosine(origin: Origin) -> str:
    cosine = f"cosine {origin.similarity or 0.0:.3f}"
    if _uncalibrated(origin):
        return cosine
    return f"{cosine} ({origin.floor:.4g} counts as 0, {origin.ceiling:.4g} as 1)"


def _distance(steps: int | None) -> str:
    if steps is None:
        return "by its distance in steps"
    return f"{counted(steps, 'step')} ago" if steps else "the newest step"


def _dependents(hit: Ranked) -> str:
    if hit.live_dependents is None:
        return "by the live decisions that rest on it"
    if hit.live_dependents == 0:
        return "no live decision rests on it"
    said = counted(hit.live_dependents, "live decision rests on it", "live decisions rest on it")
    full = argument(hit.arguments, "dependency_saturation")
    return f"{said}; {full:.4g} count fully" if full else said


def _notes(hit: Ranked) -> Iterator[str]:
    if (step := hit.arguments.get("p_as_of_step")) is not None:
        yield f"as it stood at step {step} of its task; its text, importance and pin are today's"
    elif (moment := hit.arguments.get("p_as_of")) is not None:
        yield f"as it stood on {moment}; its text, importance and pin are today's"
    if hit.pinned:
        yield "pinned, so it stands before everything that is not"
    if hit.successor is not None:
        yield f"replaced by {hit.successor}"
    elif hit.lifecycle_status == "superseded":
        yield "nothing active replaces it"
    if hit.rests_on_retired:
        yield "it rests on a decision that no longer holds"
    if hit.shortened:
        yield "its line shows the summary, to fit the token budget"
