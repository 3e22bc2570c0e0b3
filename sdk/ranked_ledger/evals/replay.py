"""A workspace's own recalls under other weights: what would have changed, against what was used and ignored.

A trace can be looked at again in two ways. Asked again, as of its time: decisions that were not returned then
may come now. Scored again, from the components that it keeps: what was returned then is put in another order,
and nothing else can come. The first is preferred; it needs the question's vector again, where there was one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, Final, Literal
from uuid import UUID

import numpy as np

from ranked_ledger import InvalidArgumentError, RankedLedger, RecallTrace, Weights
from ranked_ledger.evals import table
from ranked_ledger.evals.statistics import RESAMPLES, Bootstrap, Values
from ranked_ledger.models import DEFAULT_PRESET, Fusion, Preset
from ranked_ledger.wording import counted

Way = Literal["asked again", "scored again", "left out"]

_FIRST: Final = 5

# What a question was about, and how a trace names it.
_SCOPE: Final[Mapping[str, str]] = MappingProxyType(
    {
        "limit": "p_match_count",
        "current_step": "p_current_step",
        "min_relevance": "p_min_relevance",
        "include_superseded": "p_include_superseded",
        "only_confirmed": "p_only_confirmed",
        "include_personal": "p_include_personal",
        "exact": "p_exact",
        # what did not fit then is not among what was returned, and so not among what comes now
        "max_tokens": "p_max_tokens",
    }
)


@dataclass(frozen=True, slots=True)
class Again:
    """One recall then and now: the ranks of what it returned, and of what it would return."""

    request_id: UUID
    query: str
    asked_at: datetime
    policy: str
    way: Way
    why: str
    before: Mapping[UUID, int]
    after: Mapping[UUID, int]
    used: frozenset[UUID]
    ignored: frozenset[UUID]

    @property
    def first_changed(self) -> bool:
        """Whether another decision comes first."""
        return min(self.before, key=self.before.__getitem__, default=None) != min(
            self.after, key=self.after.__getitem__, default=None
        )

    @property
    def shared(self) -> float:
        """The share of the first five that stays among the first five."""
        then = {one for one, rank in self.before.items() if rank <= _FIRST}
        now = {one for one, rank in self.after.items() if rank <= _FIRST}
        return len(then & now) / len(then | now) if then | now else 1.0

    def reciprocal_rank(self, ranks: Mapping[UUID, int]) -> float:
        """One over the rank of the first decision that was used."""
        return max((1 / ranks[one] for one in self.used if one in ranks), default=0.0)


@dataclass(frozen=True)
class Replayed:
    """All recalls again. `arguments`: under which weights, as they were given."""

    recalls: tuple[Again, ...]
    arguments: Mapping[str, Any]
    remarks: tuple[str, ...] = ()
    resamples: int = field(default=RESAMPLES, repr=False)

    @property
    def compared(self) -> tuple[Again, ...]:
        return tuple(one for one in self.recalls if one.way != "left out")

    def sentences(self) -> list[str]:
        """What would have changed, for people."""
        return list(self._sentences())

    def _sentences(self) -> Iterator[str]:
        ways = {way: sum(one.way == way for one in self.recalls) for way in ("asked again", "scored again")}
        said = ", ".join(f"{number:,} {way}" for way, number in ways.items() if number)
        yield f"{counted(len(self.recalls), 'recall')}: {said or 'none could be looked at again'}."
        reasons = dict.fromkeys(one.why for one in self.recalls if one.way == "left out")
        for why in reasons:
            number = sum(one.why == why for one in self.recalls)
            yield f"{number:,} left out: {why}."
        yield from self.remarks
        compared = self.compared
        if not compared:
            return
        changed = sum(one.first_changed for one in compared)
        shared = sum(one.shared for one in compared) / len(compared)
        yield (
            f"Another decision would have come first in {changed:,} of {len(compared):,}; "
            f"{shared:.0%} of the first {_FIRST} are the same."
        )
        marked = [one for one in compared if one.used]
        if not marked:
            yield "Nothing of these was marked as used: nobody can say which order is the better one."
            return
        bootstrap = Bootstrap(0, self.resamples)
        before = np.array([one.reciprocal_rank(one.before) for one in marked])
        after = np.array([one.reciprocal_rank(one.after) for one in marked])
        difference = bootstrap.difference(after, before, None)
        verdict = {1: "better", -1: "worse", 0: "no difference shown"}[difference.sign]
        yield (
            f"What was used: MRR {before.mean():.3f} then, {after.mean():.3f} under these weights, "
            f"{table.signed(difference.value)} ({table.interval(difference, table.signed)}) over "
            f"{counted(len(marked), 'recall')}: {verdict}."
        )

    def moved(self) -> table.Table:
        """How far what was used and what was ignored would have moved."""
        rows = []
        for name, of in (("used", lambda one: one.used), ("ignored", lambda one: one.ignored)):
            then, now, gone = _ranks(self.compared, of)
            moved = then - now
            rows.append(
                (
                    table.Cell(name),
                    table.Cell(f"{len(then) + gone:,}"),
                    *(table.Cell(f"{int(number):,}") for number in ((moved > 0).sum(), (moved < 0).sum())),
                    table.Cell(f"{int((moved == 0).sum()):,}"),
                    table.Cell(f"{gone:,}"),
                    table.Cell(f"{then.mean():.2f}" if len(then) else "-"),
                    table.Cell(f"{now.mean():.2f}" if len(now) else "-"),
                )
            )
        columns = ("marked as", "decisions", "up", "down", "same", "not returned", "mean rank then", "now")
        return table.Table(columns, tuple(rows))

    def as_dict(self) -> dict[str, Any]:
        """The same as plain values, ready for JSON."""
        return {
            "arguments": dict(self.arguments),
            "summary": self.sentences(),
            "recalls": [
                {
                    "request_id": str(one.request_id),
                    "query": one.query,
                    "asked_at": one.asked_at.isoformat(),
                    "policy": one.policy,
                    "way": one.way,
                    "why": one.why or None,
                    "first_changed": one.first_changed,
                    "used": _places(one, one.used),
                    "ignored": _places(one, one.ignored),
                }
                for one in self.recalls
            ],
        }


def replay(
    ledger: RankedLedger,
    *,
    preset: Preset = DEFAULT_PRESET,
    weights: Weights | Mapping[str, float] | None = None,
    half_life_steps: float | None = None,
    fusion: Fusion | None = None,
    fusion_weight: float | None = None,
    since: datetime | None = None,
    marked: bool | None = None,
    limit: int | None = 200,
    ask: bool = True,
    vectors: bool = False,
    resamples: int = RESAMPLES,
    on_progress: Callable[[str, int, int], object] = lambda *_: None,
) -> Replayed:
    """Look at the newest recalls of the ledger's workspace again. Leaves no trace and changes nothing.

    - `preset`, `weights`, `half_life_steps`, `fusion`, `fusion_weight`: what is tried; a preset's are those
      that are not given. All but the weights need the question to be asked again.
    - `since`, `marked`, `limit`: which recalls, as in `RankedLedger.traces`.
    - `ask`: False scores again only, without a search. `vectors`: the ledger has the embedder that made the
      vectors of these questions; without it what was asked with one is scored again.

    Example:
        >>> print("\\n".join(replay(ledger, weights={"recency": 0}).sentences()))   # doctest: +SKIP
    """
    formula = {"half_life_steps": half_life_steps, "fusion": fusion, "fusion_weight": fusion_weight}
    tried = {name: value for name, value in formula.items() if value is not None}
    if tried and not ask:
        raise InvalidArgumentError(
            f"{next(iter(tried))} cannot be tried on what a trace keeps", hint="ask the questions again"
        )
    again: list[Again] = []
    by_words = ledger.with_options(embedder=None)
    for trace in ledger.traces(since=since, marked=marked, preset=preset, weights=weights, limit=limit):
        on_progress("looking again", len(again), limit or 0)
        why = _why_not(trace, can_ask=ask, with_vectors=vectors)
        after = None
        if not why:
            asking = ledger if trace.arguments.get("has_embedding") else by_words
            after = _asked(asking, trace, preset=preset, weights=weights, **tried)
        elif not tried and trace.items:  # of nothing there is no order
            after = _scored(trace)
        again.append(_again(trace, "asked again" if not why else "scored again", after, why))
    scored = any(one.way == "scored again" for one in again)
    remarks = ("What is scored again can bring nothing that was not returned then.",) if scored else ()
    arguments = {"preset": preset, "weights": _given(weights), **formula}
    return Replayed(tuple(again), arguments, remarks, resamples)


def _again(trace: RecallTrace, way: Way, after: Mapping[UUID, int] | None, why: str) -> Again:
    return Again(
        request_id=trace.request_id,
        query=trace.query,
        asked_at=trace.created_at,
        policy=trace.policy,
        way="left out" if after is None else way,
        why=why if after is not None else why or "it keeps no components",
        before={item.memory_id: item.rank for item in trace.items if item.rank is not None},
        after=after or {},
        used=frozenset(item.memory_id for item in trace.items if item.used),
        ignored=frozenset(item.memory_id for item in trace.items if item.used is False),
    )


def _why_not(trace: RecallTrace, *, can_ask: bool, with_vectors: bool) -> str:
    """Why a trace cannot be asked again; empty where it can."""
    if not can_ask:
        return "it is not asked again"
    if not _can_be_said(trace.arguments.get("p_as_of")):
        return "it was asked as of a time outside the years 1 to 9999, which this client cannot ask as of"
    if "p_match_count" not in trace.arguments:
        return "its policy is not one of the ledger's"
    if trace.arguments.get("has_embedding") and not with_vectors:
        return "its question had a vector, which no trace keeps; configure the embedder"
    return ""


def _asked(ledger: RankedLedger, trace: RecallTrace, **tried: Any) -> Mapping[UUID, int]:
    """What the question brings under other weights: in the scope that it had, at the time that it had."""
    was = trace.arguments
    asked: dict[str, Any] = {
        name: was[argument] for name, argument in _SCOPE.items() if was.get(argument) is not None
    }
    # what a preset chose stands for no wish of whoever asked
    stale = was.get("p_include_stale")
    if stale is not None and stale != (was.get("p_preset") == "tuned"):
        asked["include_stale"] = stale
    asked |= {name: value for name, value in tried.items() if value is not None}
    # one that looked into the past itself looks at the same past
    if was.get("p_as_of_step") is not None:
        asked["as_of_step"] = was["p_as_of_step"]
    else:
        past = was.get("p_as_of")
        asked["as_of"] = trace.created_at if past is None else datetime.fromisoformat(past)
    found = ledger.recall(
        trace.query or None,
        project=trace.project_id,
        task=trace.task_id,
        trace=False,
        **asked,
    )
    return {hit.memory_id: hit.rank for hit in found}


def _can_be_said(past: str | None) -> bool:
    """Whether Python has a word for a time of PostgreSQL, which knows some BC."""
    try:
        return past is None or datetime.fromisoformat(past).astimezone(UTC) is not None
    except (ValueError, OverflowError):
        return False


def _scored(trace: RecallTrace) -> Mapping[UUID, int] | None:
    """The order that the server gave what was returned; None where some of it has no components."""
    ranks = {item.memory_id: item.rank_again for item in trace.items}
    found = {one: rank for one, rank in ranks.items() if rank is not None}
    return found if len(found) == len(ranks) else None


def _given(weights: Weights | Mapping[str, float] | None) -> dict[str, float] | None:
    if weights is None:
        return None
    found = dict(weights) if isinstance(weights, Mapping) else asdict(weights)
    return {name: value for name, value in found.items() if value is not None}


def _ranks(recalls: tuple[Again, ...], of: Callable[[Again], frozenset[UUID]]) -> tuple[Values, Values, int]:
    """Ranks then and now of what was marked, where it is in both, and how many would not come back."""
    pairs = [
        (one.before[item], one.after.get(item))
        for one in recalls
        for item in sorted(of(one))
        if item in one.before
    ]
    both = [(then, now) for then, now in pairs if now is not None]
    ranks = np.array(both, dtype=np.float64).reshape(len(both), 2)
    return ranks[:, 0], ranks[:, 1], len(pairs) - len(both)


def _places(one: Again, items: frozenset[UUID]) -> list[dict[str, Any]]:
    return [
        {"memory_id": str(item), "before": one.before.get(item), "after": one.after.get(item)}
        for item in sorted(items)
    ]
