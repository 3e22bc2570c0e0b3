"""What must not be in a log, whatever its figures. Pure: a header and rows in, counts out; all must be 0."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

KINDS: Final = (
    "missing",
    "empty",
    "out_of_bounds",
    "twice",
    "other_workspace",
    "future",
)
WORDS: Final[Mapping[str, str]] = {
    "missing": "an arm that the run declares has no row, or several, for a question",
    "empty": "an empty answer where there are rows",
    "out_of_bounds": "a score outside the bounds of its arm",
    "twice": "a decision twice in one answer",
    "other_workspace": "a decision of another workspace",
    "future": "a decision that was made after the question",
}
_ROUNDING: Final = 1e-9


def anomalies(header: Mapping[str, Any], rows: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """How often each kind stands in a log.

    Example:
        >>> sum(anomalies(log.header, log.rows).values())                       # doctest: +SKIP
        0
    """
    arms = {arm["name"]: arm for arm in header["arms"]}
    found: Counter[str] = Counter()
    asked: Counter[tuple[str, str]] = Counter()
    for row in rows:
        asked[row["question"], row["arm"]] += 1
        arm = arms.get(row["arm"])
        if arm is None:
            found["missing"] += 1  # the declaration, this time
            continue
        found["empty"] += not row["hits"] and row["rows_in_scope"] > 0 and not _may_be_empty(arm, row)
        found.update(_of_hits(row, arm["bounds"]))
    for question in header["asked"]:
        found["missing"] += sum(asked[question, name] != 1 for name in arms)
    return {kind: found[kind] for kind in KINDS}


def _may_be_empty(arm: Mapping[str, Any], row: Mapping[str, Any]) -> bool:
    matches = {"always": 0, "no_match": row["matches"], "no_match_in_force": row.get("matches_in_force")}
    return arm["may_be_empty"] in matches and not matches[arm["may_be_empty"]]


def _of_hits(row: Mapping[str, Any], bounds: Sequence[float]) -> Counter[str]:
    hits = row["hits"]
    low, high = bounds
    # NaN lies in no bounds
    within = [low - _ROUNDING <= hit["score"] <= high + _ROUNDING for hit in hits]
    places = [(hit["workspace"], hit["key"]) for hit in hits]
    return Counter(
        {
            "out_of_bounds": within.count(False),
            "twice": len(places) - len(set(places)),
            "other_workspace": sum(hit["workspace"] != row["workspace"] for hit in hits),
            "future": sum(hit["step"] > row["asked_at_step"] for hit in hits),
        }
    )
