"""How a row lies in a log: hits and budgets by column.

Fifty hits that each name their fields are six times as long.
Readers never see it: `runs` gives a row back as it was before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

Row = dict[str, Any]

_USUAL: Final = "active"
_OF_HIT: Final = ("key", "score", "step", "tokens")
_OF_BUDGET: Final = ("hits", "tokens", "first_right")


def packed(row: Mapping[str, Any]) -> Row:
    """A row as its line in the log.

    Hits are columns; their rank is their place. Of `lifecycle` and `workspace` only what is not usual is
    there, by rank: a hit is active and of the row's workspace. Components are there for as many of the first
    hits as have them.
    """
    hits = row["hits"]
    columns: Row = {name: [hit.get(name) for hit in hits] for name in _OF_HIT}
    for name, usual in (("lifecycle", _USUAL), ("workspace", row.get("workspace"))):
        unusual = {str(hit["rank"]): hit[name] for hit in hits if hit.get(name, usual) != usual}
        columns |= {name: unusual} if unusual else {}
    explained = [hit["components"] for hit in hits if hit.get("components")]
    if explained:
        columns["components"] = {name: [one.get(name) for one in explained] for name in explained[0]}
    budgets = row["budgets"]
    by_budget: Row = {name: [one[name] for one in budgets.values()] for name in _OF_BUDGET}
    return {**row, "hits": columns, "budgets": {"of": [int(budget) for budget in budgets], **by_budget}}


def unpacked(line: Mapping[str, Any]) -> Row:
    """The row that a line says; a line that is written out is one already."""
    hits, budgets = line["hits"], line["budgets"]
    row = dict(line)
    if isinstance(hits, Mapping):
        row["hits"] = _hits(hits, line.get("workspace"))
    if "of" in budgets:
        row["budgets"] = {
            str(budget): dict(zip(_OF_BUDGET, figures, strict=True))
            for budget, *figures in zip(budgets["of"], *(budgets[name] for name in _OF_BUDGET), strict=True)
        }
    return row


def _hits(columns: Mapping[str, Any], workspace: object) -> list[Row]:
    explained: Mapping[str, Sequence[object]] = columns.get("components", {})
    lifecycles, workspaces = columns.get("lifecycle", {}), columns.get("workspace", {})
    many = len(next(iter(explained.values()), ()))
    made = []
    for place, figures in enumerate(zip(*(columns[name] for name in _OF_HIT), strict=True)):
        rank = str(place + 1)
        made.append(
            {
                **dict(zip(_OF_HIT, figures, strict=True)),
                "rank": place + 1,
                "lifecycle": lifecycles.get(rank, _USUAL),
                "workspace": workspaces.get(rank, workspace),
                "components": {name: values[place] for name, values in explained.items()}
                if place < many
                else {},
            }
        )
    return made
