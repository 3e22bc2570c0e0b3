"""Memories, recalls, readings and erasures for people: what the server answered, nothing more."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Final
from uuid import UUID

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ranked_ledger import (
    Adopted,
    Erasure,
    ForgottenMemory,
    Memory,
    MemoryHit,
    MemoryRecall,
    MemoryUsage,
    Remembered,
)
from ranked_ledger.cli.naming import of_the_memory_commands
from ranked_ledger.cli.output import one_line, plain
from ranked_ledger.cli.tables import table
from ranked_ledger.wording import counted

_ERASED_BEFORE: Final[Mapping[str, str]] = MappingProxyType(
    {
        "flagged": "Mind: this text was erased for this person before.",
        "other_key": "Not checked: what was erased for this person was kept under another digest key.",
    }
)
# What an erasure counts, as a sentence's end; "{}" is the number with its noun.
_COUNTS: Final[Mapping[str, tuple[str, str, str]]] = MappingProxyType(
    {
        "memories": ("memory", "memories", ""),
        "decisions": (
            "decision of the ledger",
            "decisions of the ledger",
            ", each keeps its place in the stream",
        ),
        "decisions_shared": ("of them about others too", "of them about others too", ", erased for all"),
        "thoughts_deleted": ("thought", "thoughts", ", deleted"),
        "thoughts_shared": ("thought", "thoughts", " kept: another memory points to it"),
        "traces": ("recall of decisions", "recalls of decisions", ", without its question"),
        "recalls": ("recall of memories", "recalls of memories", ", without its question"),
        "reviews": ("entry of the review history", "entries of the review history", ""),
        "audit_events": ("audit event", "audit events", ""),
        "strings_cleaned": ("text that held a given string", "texts that held a given string", ""),
        "names_left": (
            "name of a project, task or workspace",
            "names of projects, tasks or workspaces",
            " that holds a given string, not renamed",
        ),
    }
)


def about(one: Memory | MemoryHit) -> str:
    """Whom a memory is about."""
    return subject(one.subject_type, one.subject_id or one.workspace_id)


def subject(kind: str, named: UUID | str | None) -> str:
    """A subject as `--about` takes it."""
    return f"{kind}:{named}" if named else kind


def _standing(one: Memory | MemoryHit) -> list[str]:
    """Who wrote a memory, what a person has said about it, and whether either is only asserted."""
    marks = [one.author]
    if one.review_outcome is not None:
        marks.append(one.review_outcome.replace("_", " "))
    elif one.author == "model":
        marks.append("not reviewed")
    if "asserted" in (one.review_grade, one.grade):
        marks.append("asserted")
    return marks


def minute(moment: datetime) -> str:
    """A moment to the minute."""
    return f"{moment:%Y-%m-%d %H:%M}"


def written(one: Memory) -> Text:
    """One memory after it was written or changed."""
    marks = [about(one), "by a " + ", ".join(_standing(one))]
    if one.can_use_as_instruction:
        marks.append("may instruct")
    if one.expires_at:
        marks.append(f"until {minute(one.expires_at)} UTC")
    if one.changed is False:
        marks.append("no change")
    return Text.assemble(
        (str(one.memory_id), "bold"), "\n", one_line(", ".join(marks)), "\n", one_line(one.text)
    )


def remembered(one: Remembered) -> RenderableType:
    """The same of a new one, with what the digest key tells."""
    lines = [written(one)]
    if one.replayed:
        lines.append(Text("It was remembered before, with the same key."))
    if said := _ERASED_BEFORE.get(one.erased_before):
        lines.append(Text(said, "yellow"))
    if one.author == "model" and one.review_outcome is None and not one.replayed:
        lines.append(Text("It is recalled once a person has reviewed it: ranked-ledger memory review"))
    return Text("\n").join(lines)


def changed(one: Memory) -> RenderableType:
    """The same after a correction or a review."""
    lines = [written(one)]
    if one.author == "model" and one.review_outcome is None:
        lines.append(Text("It waits for a review again: ranked-ledger memory review"))
    return Text("\n").join(lines)


def forgotten(done: ForgottenMemory) -> RenderableType:
    """What a `forget` left."""
    return Text(
        f"{done.memory_id} had been forgotten before, at {minute(done.forgotten_at)} UTC."
        if done.already
        else f"{done.memory_id} is forgotten: that it was there stays, its words do not."
    )


def recalled(found: MemoryRecall, *, subjects: bool) -> RenderableType:
    """A recall. `subjects`: whom each memory is about, where they are not all about the same."""
    said = [one_line(one) for one in remarks(found)]
    if not found.hits:
        nothing = of_the_memory_commands(found.hint or "Nothing is remembered.")
        return Text("\n").join([one_line(nothing), *said] if not found.dropped else said)
    shown = table(("#", "number"), ("memory", "long"), "by", ("age", "number"), ("score", "number"))
    for hit in found:
        what = Text("may instruct ", "cyan") if hit.can_use_as_instruction else Text()
        what.append_text(one_line(hit.text)).append(f"\n{hit.memory_id}", "dim")
        if subjects:
            what.append("\n").append_text(one_line(about(hit), "dim"))
        by = Text("\n").join(
            [Text(mark, "dim" if place else "") for place, mark in enumerate(_standing(hit))]
        )
        shown.add_row(str(hit.rank), what, by, _age(hit.age_days), Text(f"{hit.score:.3f}", "bold"))
    return Group(shown, *([Text(), *said] if said else []))


def _age(days: float) -> str:
    if days >= 1:
        return f"{days:.0f} d"
    return f"{days * 24:.0f} h" if days * 24 >= 1 else "<1 h"


def remarks(found: MemoryRecall) -> Iterator[str]:
    """What an answer lacks: what its token budget cost, and that nobody will see it in the usage."""
    if found.shortened:
        yield f"{len(found.shortened)} shortened, to fit the token budget."
    if found.dropped:
        yield f"{len(found.dropped)} left out, to fit the token budget."
    if not found.recorded:
        yield "This recall could not be written down: `memory usage` and `subject-access` will not show it."


def pending(memories: Sequence[Memory], waiting: int, *, more: bool) -> RenderableType:
    """What waits for a review."""
    if not memories:
        return Text("Nothing waits for a review.")
    shown = table("written", ("memory", "long"))
    for one in memories:
        what = one_line(one.text).append(f"\n{one.memory_id}", "dim")
        for mark in (about(one), one.source_run_id and f"run {one.source_run_id}"):
            if mark:
                what.append("\n").append_text(one_line(mark, "dim"))
        shown.add_row(minute(one.created_at), what)
    end = f"{counted(waiting, 'memory', 'memories')} {'waits' if waiting == 1 else 'wait'} for a review."
    lines = [end + (" -n shows more." if more else "")]
    lines.append("Next: ranked-ledger memory review ID --approve, --evidence-only or --reject")
    return Group(shown, Text("\n" + "\n".join(lines)))


def usage(found: MemoryUsage) -> RenderableType:
    """Who has read a memory."""
    if not found.reads:
        return Text("No recall has returned it yet.")
    shown = table("when", ("run", "long"), "asked by", ("#", "number"), ("score", "number"))
    for one in found.runs:
        asker = Text("the service") if one.recalled_by is None else Text(str(one.recalled_by))
        run = one_line(one.run_id or "-")
        shown.add_row(minute(one.at), run, asker, str(one.rank), f"{one.score:.3f}")
    parts: list[RenderableType] = [shown]
    if found.reads > len(found.runs):
        parts.append(Text(f"\nThe newest {len(found.runs):,} of {found.reads:,}; -n shows more."))
    return Group(*parts)


def erasure(done: Erasure, whom: str) -> RenderableType:
    """What an erasure did, or would do."""
    held = list(_counts(done.counts))
    if done.dry_run:
        said = f"Erasing {whom} would empty or delete:" if held else f"Nothing is held about {whom}."
    elif done.receipt_id is None:
        said = f"Nothing is held about {whom}, and nothing was erased."
    elif held:
        said = f"{whom} is erased:"
    else:
        before = "had been erased before" if done.already else "is erased"
        said = f"{whom} {before}; nothing was left to erase."
    parts: list[RenderableType] = [Text(said, "bold")]
    parts.append(_listed([(f"{number:,}", what) for number, what in held], width=6))
    parts.append(_listed([("-", of_the_memory_commands(note)) for note in done.notes], width=3))
    if done.receipt_id is not None:
        when = f" of {minute(done.erased_at)} UTC" if done.erased_at else ""
        kept = f", with {counted(done.digests, 'keyed digest')}" if done.digests else ""
        parts.append(Text(f"Receipt {done.receipt_id}{when}{kept}."))
    return Group(*parts)


def _listed(rows: Sequence[tuple[str, str]], *, width: int) -> Table:
    """Lines behind a number or a dash, which a line that wraps does not run under."""
    shown = Table.grid(padding=(0, 1))
    shown.add_column(justify="right", no_wrap=True, min_width=width)
    shown.add_column(overflow="fold")
    for mark, text in rows:
        shown.add_row(mark, plain(text))
    return shown


def _counts(counts: Mapping[str, int]) -> Iterator[tuple[int, str]]:
    for name in sorted(
        counts, key=lambda name: list(_COUNTS).index(name) if name in _COUNTS else len(_COUNTS)
    ):
        number = counts[name]
        if not number:
            continue
        if name not in _COUNTS:  # of a newer server
            yield number, name.replace("_", " ")
            continue
        one, many, end = _COUNTS[name]
        yield number, (one if number == 1 else many) + end


def adoption(done: Adopted, *, dry_run: bool) -> RenderableType:
    """What was copied from the other table of memories."""
    would = "would be " if dry_run else ""
    here = "is here already" if done.present == 1 else "are here already"
    lines = [f"{counted(done.adopted, 'memory', 'memories')} {would}adopted; {done.present:,} {here}."]
    if done.skipped_total:
        lines.append(f"{counted(done.skipped_total, 'row')} {would}left out:")
        lines += [f"  {one.id}  {one.reason}" for one in done.skipped]
        if unnamed := done.skipped_total - len(done.skipped):
            lines.append(f"  and {unnamed:,} more")
    return plain("\n".join(lines))
