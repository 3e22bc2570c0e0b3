"""Streams of decisions for the built-in set. They are made before any question, and without regard to one."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from ranked_ledger.evals.builtin_matters import SERVICE
from ranked_ledger.evals.builtin_matters_more import DATA, PEOPLE
from ranked_ledger.evals.builtin_words import Matter, Part, Reason, Trade
from ranked_ledger.evals.cases import Lifecycle, Link, Record

STEPS: Final = 600
MAX_CHAIN: Final = 4
_MATTERS: Final = {"service": SERVICE, "data": DATA, "people": PEOPLE}
# How a step goes. Not every step of an agent is a decision; most decisions are new, some change an older one.
_RECORDED: Final = 0.62
_NOTED: Final = 0.16
_CHANGED: Final = 0.17
_TURNED_DOWN: Final = 0.05
_FORGOTTEN: Final = 0.2  # of the changes: nobody wrote down that the older decision is replaced
_SETTLED: Final = 15  # steps for which nobody changes a decision again

Act = Literal["decided", "changed", "forgotten", "turned_down", "noted"]


@dataclass(frozen=True, slots=True)
class Slot:
    """One matter of one part in one task: what at most one decision is in force about."""

    trade: Trade
    part: Part
    matter: Matter
    shared: bool

    @property
    def place(self) -> tuple[str, str]:
        return self.part.name, self.matter.name


@dataclass
class Made:
    """A record while it is being made, and what it says."""

    key: str
    step: int
    act: Act
    slot: Slot | None
    option: str
    reason: Reason | None
    reason_words: dict[str, str]
    title: str
    content: str
    rationale: str | None
    importance: float | None
    alternatives: tuple[str, ...]
    links: list[Link] = field(default_factory=list)
    lifecycle: Lifecycle = "active"
    retired_at: int | None = None
    successor: str | None = None

    def in_force(self, step: int) -> bool:
        """Whether it was there and held at a step."""
        return (
            self.step <= step
            and self.lifecycle != "rejected"
            and (self.retired_at is None or self.retired_at > step)
        )

    def record(self, stream: str) -> Record:
        return Record(
            stream=stream,
            key=self.key,
            step=self.step,
            title=self.title,
            content=self.content,
            rationale=self.rationale,
            importance=self.importance,
            lifecycle=self.lifecycle,
            superseded_at_step=self.retired_at,
            superseded_by=(self.successor,) if self.successor else (),
            links=tuple(self.links),
            alternatives=self.alternatives,
        )


class Stream:
    """The decisions of one task, made one by one."""

    def __init__(self, trade: Trade, shared: Sequence[Part], draw: random.Random) -> None:
        self.trade = trade
        self.made: list[Made] = []
        self._draw = draw
        self._open = [
            Slot(trade, part, matter, part in shared)
            for part in (*trade.parts, *shared)
            for matter in _MATTERS[part.kind]
        ]
        draw.shuffle(self._open)
        self._notes = [(note, part.name) for note in trade.notes for part in trade.parts]
        draw.shuffle(self._notes)
        self._by_slot: dict[tuple[str, str], list[Made]] = {}
        self._dependents: dict[str, int] = {}

    def of_slot(self, slot: Slot) -> list[Made]:
        """Everything that was decided about a slot, whatever became of it."""
        return self._by_slot.get(slot.place, [])

    def step(self, step: int) -> None:
        """Perhaps make a record at this step."""
        roll = self._draw.random()
        if roll < _NOTED:
            self._note(step)
        elif roll < _NOTED + _CHANGED:
            self._change(step)
        elif roll < _NOTED + _CHANGED + _TURNED_DOWN:
            self._turn_down(step)
        elif self._open:
            slot = self._open.pop()
            self._add(step, "decided", slot, self._draw.choice(slot.matter.options))
        else:
            self._note(step)

    def _changeable(self, step: int) -> list[Made]:
        """What is old enough, alone in force about its matter, and not at the end of a long chain already."""
        found = []
        for one in self.made:
            if one.slot is None or not one.in_force(step) or step - one.step < _SETTLED:
                continue
            history = [other for other in self.of_slot(one.slot) if other.lifecycle != "rejected"]
            if len(history) < MAX_CHAIN and sum(other.in_force(step) for other in history) == 1:
                # what was changed once is changed again more easily
                found += [one] * (3 if len(history) > 1 else 1)
        return found

    def _other(self, step: int) -> tuple[Made, str] | None:
        """A decision in force, and an option that was never taken about its matter."""
        if not (choices := self._changeable(step)):
            return None
        held = self._draw.choice(choices)
        if held.slot is None:
            return None
        used = {one.option for one in self.of_slot(held.slot)}
        left = [one for one in held.slot.matter.options if one not in used]
        return (held, self._draw.choice(left)) if left else None

    def _change(self, step: int) -> None:
        if (found := self._other(step)) is None or (slot := found[0].slot) is None:
            self._note(step)
            return
        old, option = found
        forgotten = self._draw.random() < _FORGOTTEN
        new = self._add(step, "forgotten" if forgotten else "changed", slot, option, old)
        if not forgotten:
            old.lifecycle, old.retired_at, old.successor = "superseded", step, new.key

    def _turn_down(self, step: int) -> None:
        if (found := self._other(step)) is None or (slot := found[0].slot) is None:
            self._note(step)
            return
        self._add(step, "turned_down", slot, found[1]).lifecycle = "rejected"

    def _note(self, step: int) -> None:
        if not self._notes:
            return
        note, part = self._notes.pop()
        content = note.format(part=part)
        title = content.split(";")[0].split(",")[0].rstrip(".")
        self.made.append(
            Made(self._key(), step, "noted", None, "", None, {}, title, content, None, self._weight(0.2), ())
        )

    def _add(self, step: int, act: Act, slot: Slot, option: str, old: Made | None = None) -> Made:
        draw, matter = self._draw, slot.matter
        said = sentence(draw.choice(matter.says).format(part=slot.part.name, option=option))
        content = [said]
        if slot.shared:
            content.append(draw.choice(_SCOPES).format(place=self.trade.place))
        if old is not None and draw.random() < 0.4:
            content.append(draw.choice(_CHANGES).format(option=old.option))
        elif draw.random() < 0.7:
            content.append(draw.choice(self.trade.details))
        reason = draw.choice(matter.reasons) if draw.random() < 0.85 else None
        words = {"who": draw.choice(self.trade.who), "mishap": draw.choice(self.trade.mishaps)}
        others = [one for one in matter.options if one != option]
        made = Made(
            key=self._key(),
            step=step,
            act=act,
            slot=slot,
            option=option,
            reason=reason,
            reason_words=words,
            title=said.rstrip("."),
            content=" ".join(content),
            rationale=sentence(reason.said.format(**words)) if reason else None,
            importance=self._weight(matter.weight),
            alternatives=(draw.choice(others),) if draw.random() < 0.35 else (),
            links=self._links(slot, step),
        )
        self.made.append(made)
        self._by_slot.setdefault(slot.place, []).append(made)
        return made

    def _links(self, slot: Slot, step: int) -> list[Link]:
        """Up to two grounds, which are there already: those of the same part, and those that carry others."""
        roll = self._draw.random()
        count = 2 if roll < 0.12 else 1 if roll < 0.55 else 0
        links: list[Link] = []
        grounds = [
            one for one in self.made if one.slot and one.slot.place != slot.place and one.in_force(step)
        ]
        for _ in range(min(count, len(grounds))):
            weights = [
                (1 + min(3, self._dependents.get(one.key, 0)))
                * (6 if one.slot and one.slot.part == slot.part else 1)
                for one in grounds
            ]
            ground = self._draw.choices(grounds, weights)[0]
            grounds.remove(ground)
            if self._draw.random() < 0.15:
                # what informs is the older one, so that one holds the edge
                ground.links.append(Link("informs", self._key()))
                continue
            links.append(Link("depends_on", ground.key))
            self._dependents[ground.key] = self._dependents.get(ground.key, 0) + 1
        return links

    def _weight(self, usual: float) -> float | None:
        """What an agent would say of such a decision: about what is usual, and sometimes nothing."""
        if self._draw.random() < 0.08:
            return None
        spread = sum(self._draw.random() for _ in range(3)) / 3 - 0.5
        return round(min(0.98, max(0.05, usual + 0.7 * spread)), 2)

    def _key(self) -> str:
        return f"{self.trade.task}-{len(self.made) + 1:03}"


_SCOPES: Final = (
    "This is for {place} only.",
    "Decided for {place}; others choose for themselves.",
    "It concerns {place}.",
)
_CHANGES: Final = (
    "Until now it was {option}.",
    "Before, we had said {option}.",
    "The earlier choice, {option}, did not work out.",
)


def sentence(text: str) -> str:
    """The text with its first letter in upper case; the others stay."""
    return text[:1].upper() + text[1:]


def workspace_streams(trades: Sequence[Trade], shared: Sequence[Part], draw: random.Random) -> list[Stream]:
    """The streams of one workspace, which take turns by chance over the same steps."""
    streams = [Stream(trade, shared, draw) for trade in trades]
    for step in range(1, STEPS + 1):
        stream = draw.choice(streams)
        if draw.random() < _RECORDED:
            stream.step(step)
    return streams
