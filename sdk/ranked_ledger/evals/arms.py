"""The arms of an evaluation: each a way to recall, with a name of its own in the traces.

An arm of kind `ledger` is the product: `recall_decisions` with some arguments. One of kind `sql` is a policy
that the product does not have, a function of `sql/`, installed into the throwaway stack alone. All look at
one cohort.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Literal

from ranked_ledger.evals.errors import EvalError

Kind = Literal["ledger", "sql"]
MayBeEmpty = Literal["never", "always", "no_match", "no_match_in_force"]
UseOfVectors = Literal["never", "if_there", "required"]

LIMIT: Final = 50
"""Hits of every arm."""

_SCORES: Final = (-0.30, 1.0)  # the weights have the sum 1, or less where one is left out
_ACTIVE: Final = (0, 1)  # the same where nothing takes part that loses for its lifecycle
_FUSED: Final = (0, 2 / 61)  # first in both lists
_RAW: Final = {"p_similarity_floor": 0, "p_similarity_ceiling": 1}


@dataclass(frozen=True, slots=True)
class Arm:
    """One way to recall.

    - `arguments`: of `recall_decisions`, beside the question. `bounds`: what a score of it can be.
    - `vectors`: whether it is given the question's vector. `required`: without vectors it is absent.
    - `may_be_empty`: when an empty answer is no fault; `no_match`: where no word of the question is;
      `no_match_in_force`: where none is in what is not retired.
    - `starred`: one of the nine that CI runs.
    """

    name: str
    kind: Kind
    bounds: tuple[float, float]
    arguments: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    vectors: UseOfVectors = "never"
    may_be_empty: MayBeEmpty = "never"
    starred: bool = False

    @property
    def needs_vectors(self) -> bool:
        return self.vectors == "required"

    def as_dict(self) -> dict[str, Any]:
        """What a log says of it."""
        return {
            "name": self.name,
            "kind": self.kind,
            "arguments": dict(self.arguments),
            "bounds": list(self.bounds),
            "vectors": self.vectors,
            "may_be_empty": self.may_be_empty,
            "starred": self.starred,
        }


def _ledger(name: str, vectors: UseOfVectors, *, starred: bool = False, **arguments: Any) -> Arm:
    loses = arguments.get("p_preset") == "tuned" and arguments.get("p_include_stale", True)
    bounds = _SCORES if loses else _ACTIVE
    return Arm(name, "ledger", bounds, MappingProxyType(arguments), vectors, starred=starred)


def _tuned(name: str, vectors: UseOfVectors = "if_there", **arguments: Any) -> Arm:
    return _ledger(name, vectors, p_preset="tuned", **arguments)


ARMS: Final = (
    Arm("none", "sql", (0, 0), may_be_empty="always", starred=True),
    Arm("recency", "sql", (0, 1), starred=True),
    Arm("vector", "sql", (-1, 1), vectors="required", starred=True),
    Arm("fts_and", "sql", (0, 1), may_be_empty="always", starred=True),
    Arm("fts_or", "sql", (0, 1), may_be_empty="no_match", starred=True),
    Arm("hybrid_rrf", "sql", _FUSED, vectors="required", starred=True),
    # the formula as it was published, over cosines as they are
    _ledger("ranked_ledger_text", "never", starred=True),
    _ledger("ranked_ledger_vectors", "required", starred=True, **_RAW),
    Arm("oracle", "sql", (1, 1), starred=True),
    Arm("vector_in_force", "sql", (-1, 1), vectors="required"),
    Arm("hybrid_rrf_in_force", "sql", _FUSED, vectors="required"),
    Arm("bm25", "sql", (0, 1), may_be_empty="no_match"),
    Arm("bm25_in_force", "sql", (0, 1), may_be_empty="no_match_in_force"),
    Arm("hybrid_rrf_bm25", "sql", _FUSED, vectors="required"),
    Arm("hybrid_rrf_bm25_in_force", "sql", _FUSED, vectors="required"),
    _ledger("ranked_ledger_calibrated", "required"),
    _tuned("tuned"),
    _tuned("tuned_text", "never"),
    # what each part of the preset is worth: what is lost without it, if anything
    _tuned("tuned_without_importance", p_w_importance=0),
    _tuned("tuned_without_recency", p_w_recency=0),
    _tuned("tuned_without_dependency", p_w_dependency=0),
    _tuned("tuned_without_summary", p_w_summary=0),
    _tuned("tuned_without_text", "required", p_fusion="none"),
    _tuned("tuned_without_calibration", "required", **_RAW),
    _tuned("tuned_without_stale", p_include_stale=False),
    _tuned("tuned_without_retired_filter", p_include_superseded=True),
    Arm("tuned_without_rarity", "sql", _SCORES, vectors="if_there"),
    Arm("tuned_without_length", "sql", _SCORES, vectors="if_there"),
    Arm("step_shuffled", "sql", _SCORES, vectors="if_there"),
)
"""In the order in which every question is put to them."""

NAMES: Final = tuple(arm.name for arm in ARMS)
STARRED: Final = tuple(arm.name for arm in ARMS if arm.starred)


def chosen(names: Sequence[str] | None = None) -> tuple[Arm, ...]:
    """The arms of these names, in their own order; None: all. The error for another name says the nearest."""
    if names is None:
        return ARMS
    if not names:
        raise EvalError("no arm is named", hint=f"the arms are {', '.join(NAMES)}")
    for name in names:
        if name not in NAMES:
            near = difflib.get_close_matches(name, NAMES, n=1)
            guess = f"did you mean {near[0]}? " if near else ""
            raise EvalError(f"there is no arm {name!r}", hint=f"{guess}the arms are {', '.join(NAMES)}")
    return tuple(arm for arm in ARMS if arm.name in names)


def present(
    arms: Sequence[Arm], *, with_vectors: bool, parameters: Collection[str]
) -> tuple[list[Arm], dict[str, str]]:
    """The arms that a run can have, and why it cannot have the others.

    - `parameters`: what the installed `recall_decisions` takes: an older one lacks some arms.
    """
    there: list[Arm] = []
    absent: dict[str, str] = {}
    for arm in arms:
        if unknown := sorted(set(arm.arguments) - set(parameters)):
            absent[arm.name] = f"the installed recall_decisions takes no {unknown[0]}"
        elif arm.needs_vectors and not with_vectors:
            absent[arm.name] = "it needs an embedding model"
        else:
            there.append(arm)
    if not there:
        raise EvalError("none of these arms can run: they need vectors", hint="give an --embedding")
    return there, absent
