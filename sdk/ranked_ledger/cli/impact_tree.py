"""What rests on a decision, as an indented list for people."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Final
from uuid import UUID

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from ranked_ledger import Dependent, Impact
from ranked_ledger.cli.output import one_line
from ranked_ledger.cli.tables import state
from ranked_ledger.wording import counted

_INDENT: Final = 2
_DEEPEST: Final = 12  # an id has to fit behind it on a narrow terminal


def text(impact: Impact) -> RenderableType:
    """The decision, how many rest on it, and each under what it rests on."""
    head = Text.assemble(one_line(impact.summary, "bold"))
    if impact.lifecycle_status:
        head.append("  ").append_text(state(impact.lifecycle_status))
    head.append(f"\n{impact.memory_id}", "dim")
    parts: list[RenderableType] = [head, Text(f"\n{_numbers(impact)}")]
    if impact.decisions:
        parts += [Text(), *(_item(one) for one in _in_order(impact))]
    if impact.more:
        missing = impact.total - len(impact.decisions)
        parts.append(Text(f"\nAnd {missing:,} more, further on (--max-depth) or past the --limit."))
    return Group(*parts)


def _numbers(impact: Impact) -> str:
    if not impact.total:
        return "Nothing rests on it."
    rest = "rests" if impact.total == 1 else "rest"
    are = "is" if impact.live == 1 else "are"
    return (
        f"{counted(impact.total, 'decision')} {rest} on it, {impact.direct:,} directly; "
        f"{impact.live:,} {are} active."
    )


def _in_order(impact: Impact) -> Iterator[Dependent]:
    """Each behind what it rests on."""
    above: dict[UUID, list[Dependent]] = defaultdict(list)
    for one in impact.decisions:
        above[one.via].append(one)
    waiting = list(reversed(above[impact.memory_id]))
    while waiting:
        one = waiting.pop()
        yield one
        waiting += reversed(above[one.memory_id])


def _item(one: Dependent) -> Padding:
    level = min(one.depth, _DEEPEST)
    what = Text("- ")
    if one.depth > _DEEPEST:
        what.append(f"(level {one.depth}) ", "dim")
    if one.lifecycle_status and one.lifecycle_status != "active":
        what.append_text(state(one.lifecycle_status)).append(" ")
    if one.rests_on_retired:
        what.append("rests on a retired decision ", "yellow")
    what.append_text(one_line(one.summary))
    stream = "/".join(filter(None, (one.project_id, one.task_id)))
    about = f"step {one.step_index}, importance {one.importance:.2f}{f', {stream}' if stream else ''}"
    what.append(f"\n  {one.memory_id}", "dim").append("  ").append_text(one_line(about, "dim"))
    return Padding(what, (0, 0, 0, _INDENT * (level - 1)), expand=False)
