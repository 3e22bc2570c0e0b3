"""Decisions, hits and statistics as tables and texts for people: what the server answered, nothing more."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ranked_ledger import Decision, Hit, PolicyStats, Recall
from ranked_ledger.cli.naming import of_the_commands
from ranked_ledger.cli.output import one_line, plain
from ranked_ledger.explanation import argument
from ranked_ledger.models import DecisionDetail
from ranked_ledger.wording import counted

_SOURCES = {"cosine": "cos.", "fts": "words", "none": "-"}  # max and blend are called so


def table(*columns: str | tuple[str, str], title: str | None = None) -> Table:
    """An open table, without a frame. A tuple is a name and how it is justified or wrapped."""
    made = Table(
        box=None, pad_edge=False, padding=(0, 1, 0, 0), title=title, title_justify="left", header_style="bold"
    )
    for column in columns:
        name, kind = column if isinstance(column, tuple) else (column, "")
        if kind == "number":
            made.add_column(name, justify="right", no_wrap=True, min_width=len(name))
        elif kind == "long":
            made.add_column(name, overflow="fold")
        else:
            made.add_column(name, no_wrap=True, min_width=len(name))
    return made


def state(lifecycle: str) -> Text:
    """A lifecycle; what does not hold stands out."""
    return Text(lifecycle, style="green" if lifecycle == "active" else "yellow")


def decided(decision: Decision) -> RenderableType:
    """One decision after it was written or changed."""
    return Text.assemble(_standing(decision), "\n", one_line(decision.summary or decision.content))


def _standing(decision: Decision) -> Text:
    marks = [
        f"step {decision.step_index}",
        f"importance {decision.importance:.2f}",
        decision.lifecycle_status,
    ]
    if not decision.step_settled:
        marks[0] += " (provisional)"
    if decision.pinned:
        marks.append("pinned")
    if decision.replayed:
        marks.append("recorded before, with the same key")
    if decision.changed is False:
        marks.append("no change")
    return Text.assemble((str(decision.memory_id), "bold"), "  ", ", ".join(marks))


def decisions(many: Sequence[Decision]) -> RenderableType:
    """A timeline."""
    if not many:
        return Text("No decisions.")
    shown = table(("step", "number"), "lifecycle", ("imp.", "number"), ("decision", "long"))
    for one in many:
        stream = "/".join(filter(None, (one.project_id, one.task_id)))
        what = Text("pinned ", "cyan") if one.pinned else Text()
        what.append(one_line(one.summary or one.content))
        what.append(f"\n{one.memory_id}", "dim").append("  ").append(one_line(stream, "dim"))
        step = f"{one.step_index}" if one.step_settled else f"({one.step_index})"
        shown.add_row(step, state(one.lifecycle_status), f"{one.importance:.2f}", what)
    return shown


def hits(recall: Recall, *, explain: bool = False) -> RenderableType:
    """A recall: its hits with every component of the score, and what a person should know about it."""
    if not recall.hits and not recall.dropped:
        nothing = of_the_commands(recall.hint or "Nothing matches.")
        return Text("\n").join(map(one_line, [nothing, *shortcomings(recall)]))
    parts: list[RenderableType] = [hit_table(recall), Text()] if recall.hits else []
    remarks = [*shortcomings(recall), *_traced(recall)]
    if explain:
        parts += [part for hit in recall for part in (*_explained(hit), Text())]
        if any(hit.live_dependents for hit in recall):
            remarks.insert(0, "What rests on a decision is named by `ranked-ledger impact`.")
    return Group(*parts, *map(one_line, remarks))


def _explained(hit: Hit) -> Iterator[RenderableType]:
    explained = hit.explain()
    rows = Table.grid(padding=(0, 2, 0, 0))
    for kind in ("left", "right", "right"):
        rows.add_column(justify=kind, no_wrap=True)
    rows.add_column(overflow="fold")
    for part in explained.components:
        # padded one by one: a line that wraps keeps its place
        details = (Padding(plain(detail), (0, 0, 0, 2)) for detail in part.details)
        rows.add_row(
            f"  {part.name}",
            f"{part.value:.3f} x {part.weight:.2f} = {part.points:.3f}",
            f"{part.share:.0%}",
            Group(plain(part.why), *details),
        )
    if explained.deduction:
        rows.add_row(
            "  deduction", f"-{explained.deduction:.3f}", "", f"{hit.lifecycle_status}, no longer active"
        )
    for note in explained.notes:
        rows.add_row("", "", "", plain(note, "yellow"))
    yield Text.assemble(
        (f"{hit.rank}. ", "bold"),
        one_line(hit.summary or hit.content, "bold"),
        (f"  {explained.score:.3f}", "bold"),
    )
    yield rows


def hit_table(rows: Iterable[Hit], *, ids: bool = True) -> Table:
    """Hits with every component of their score; the summary's where it is weighed."""
    rows = list(rows)
    by_summary = any(argument(hit.arguments, "w_summary") for hit in rows)
    shown = table(
        ("#", "number"),
        ("step", "number"),
        ("decision", "long"),
        ("relevance", "number"),
        ("imp.", "number"),
        ("rec.", "number"),
        ("dep.", "number"),
        *([("sum.", "number")] if by_summary else []),
        ("score", "number"),
    )
    for hit in rows:
        mark = Text()
        if hit.pinned:
            mark.append("pinned ", "cyan")
        if hit.lifecycle_status != "active":
            mark.append(f"{hit.lifecycle_status} ", "yellow")
        if hit.rests_on_retired:
            mark.append("rests on a retired decision ", "yellow")
        what = Text.assemble(mark, one_line(hit.summary or hit.content))
        if ids:
            what.append(f"\n{hit.memory_id}", "dim")
            if hit.successor:
                what.append(f"\nreplaced by\n{hit.successor}", "dim")
        source = _SOURCES.get(hit.relevance_source, hit.relevance_source)
        if hit.relevance_source == "fts" and not hit.relevance:
            source = _SOURCES["none"]  # no word of the query is in it
        # two digits: an id has to stay whole at 80 columns, and --explain has three
        shown.add_row(
            str(hit.rank),
            str(hit.step_index),
            what,
            f"{hit.relevance:.2f} {source:<5}",
            f"{hit.importance:.2f}",
            f"{hit.recency:.2f}",
            f"{hit.dependency_boost:.2f}",
            *([f"{hit.summary_match or 0:.2f}"] if by_summary else []),
            Text(f"{hit.score:.2f}", style="bold"),
        )
    return shown


def shortcomings(recall: Recall) -> Iterator[str]:
    """What an answer lacks: what its token budget cost, and the proof that it is the best one."""
    shortened, dropped = len(recall.shortened), len(recall.dropped)
    if shortened:
        whose = "its" if shortened == 1 else "their"
        yield f"{shortened} shortened to {whose} summary, to fit the token budget."
    if dropped:
        yield f"{dropped} left out, to fit the token budget."
    if not recall.exact:
        yield "Not proven: an approximate index answered; a better decision may be missing. --exact is sure."


def _traced(recall: Recall) -> Iterator[str]:
    if recall.request_id and recall.traced:
        yield f"Trace {recall.request_id}; say what was of use with `ranked-ledger used`."
    elif recall.request_id:
        yield "No trace was written."


def detail(one: DecisionDetail) -> RenderableType:
    """A decision in full."""
    lines: list[RenderableType] = [_standing(one), plain(one.content), Text("")]
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="bold", no_wrap=True)
    facts.add_column(overflow="fold")
    stream = " / ".join(filter(None, (one.workspace_id, one.project_id, one.task_id)))
    facts.add_row("stream", one_line(stream))
    if one.rationale:
        facts.add_row("rationale", plain(one.rationale))
    for text in one.alternatives:
        facts.add_row("rejected", plain(text))
    for end in one.edges_out:
        facts.add_row(
            end.relation.replace("_", " "),
            _end(end.memory_id, end.step_index, end.summary, end.lifecycle_status),
        )
    for end in one.edges_in:
        name = {"depends_on": "needed by", "informs": "informed by", "blocks": "blocked by"}.get(
            end.relation, end.relation
        )
        facts.add_row(name, _end(end.memory_id, end.step_index, end.summary, end.lifecycle_status))
    for lost in one.lost_ground:
        facts.add_row(
            "lost ground", f"{lost.memory_id} ({lost.relation}), forgotten {lost.forgotten_at:%Y-%m-%d %H:%M}"
        )
    for link in one.chain:
        if link.memory_id != one.memory_id or len(one.chain) > 1:
            facts.add_row("chain", _end(link.memory_id, link.step_index, link.summary, link.lifecycle_status))
    if one.successor:
        facts.add_row("successor", str(one.successor))
    for change in one.history:
        why = f": {change.reason}" if change.reason else ""
        who = f" by {change.actor}" if change.actor else ""
        facts.add_row("history", plain(f"{change.at:%Y-%m-%d %H:%M} {change.lifecycle_status}{who}{why}"))
    facts.add_row("recalled", f"{counted(one.recall_count, 'time')}, used {counted(one.used_count, 'time')}")
    return Group(*lines, facts)


def _end(memory_id: object, step: int | None, summary: str | None, lifecycle: str | None) -> Text:
    marks = ", ".join(filter(None, (None if step is None else f"step {step}", lifecycle)))
    return Text.assemble(one_line(summary), f"  ({marks})  ", Text(str(memory_id), style="dim"))


def policies(many: Sequence[PolicyStats]) -> RenderableType:
    """Recall policies side by side."""
    if not many:
        return Text("No recalls were traced yet.")
    shown = table(
        "policy", ("recalls", "number"), ("items", "number"), ("similarity", "number"), ("score", "number"),
        ("used", "number"), ("ignored", "number"),
    )  # fmt: skip
    for one in many:
        shown.add_row(
            one_line(one.recall_policy),
            f"{one.recall_requests:,}",
            f"{one.items_returned:,}",
            _number(one.avg_similarity),
            _number(one.avg_ranking_score),
            _share(one.used_rate),
            _share(one.ignored_rate),
        )
    return shown


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.0%}"
