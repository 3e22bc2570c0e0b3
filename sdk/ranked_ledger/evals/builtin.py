"""The built-in set: 54 questions over long streams of short decisions, as agents make them, in six trades.

The streams come first, by chance, and know of no question. Then the questions are drawn among everything that
fits their kind at the step at which they are asked. Nobody looks at which policy would answer them: none is
dropped, and no number is set so that one wins. Nine of each kind:

- `early_answer`: decided in the first fifth of the work, never changed, asked in the last third.
- `superseded`: changed once to three times, each time recorded; what holds now is asked for.
- `contradiction`: the question quotes an option that does not hold. Three are of each sort, as far as the
  streams have them: replaced, turned down, and replaced without a record of it, where both stand as active.
- `look_alike`: the other task of the workspace decided about the same matter of the same part, differently.
- `dependency`: asks what another decision rests on, and names that one too.
- `rationale`: asks by the reason, which stands in no other decision about this part.

Questions use other words than decisions, for the matter always and for the part in a quarter of the cases.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from ranked_ledger.evals.builtin_streams import STEPS, Made, Slot, Stream, sentence, workspace_streams
from ranked_ledger.evals.builtin_trades import WORKSPACES
from ranked_ledger.evals.cases import Dataset, Question

DEFAULT_SEED: Final = 0
KINDS: Final = ("early_answer", "superseded", "contradiction", "look_alike", "dependency", "rationale")
# Each of the six streams is asked each kind once, and one half of the kinds once more.
_MORE: Final = (KINDS[:3], KINDS[3:])
_EARLY: Final = STEPS // 5
_LATE: Final = STEPS * 7 // 10
_BY_ALIAS: Final = 1 / 4  # how often a question calls a part by its other name
_SORTS: Final = ("changed", "turned_down", "forgotten")


def built_in(seed: int = DEFAULT_SEED) -> Dataset:
    """The built-in set; the same seed makes the same set, to the byte.

    Example:
        >>> len(built_in().questions), sorted({one.kind for one in built_in().questions})[0]
        (54, 'contradiction')
    """
    streams, workspaces = {}, {}
    questions: list[Question] = []
    for workspace, (trades, shared) in WORKSPACES.items():
        made = workspace_streams(trades, shared, _draw(seed, workspace))
        for place, stream in enumerate(made):
            name = f"{workspace}/{stream.trade.task}"
            workspaces[name] = workspace
            streams[name] = [one.record(name) for one in stream.made]
            asking = _Asking(name, stream, made[1 - place], _draw(seed, f"{name} asked"), len(questions))
            questions += asking.questions((*KINDS, *_MORE[place]))
    return Dataset.of("built-in", streams, questions, workspaces=workspaces)


def _draw(seed: int, what: str) -> random.Random:
    # a string seeds by its digest, the same on every machine
    return random.Random(f"{seed}/{what}")  # noqa: S311 - no secret depends on it


@dataclass(frozen=True, slots=True)
class _Found:
    """A decision that may be asked for, and the question for it."""

    gold: Made
    slot: Slot
    ask: str


@dataclass
class _Asking:
    """Draws the questions about one stream."""

    name: str
    stream: Stream
    sibling: Stream
    draw: random.Random
    asked_before: int
    used: set[str] = field(default_factory=set)
    sort: int = 0

    def questions(self, kinds: Sequence[str]) -> Iterator[Question]:
        ways: dict[str, Callable[[int], Iterator[_Found]]] = {
            "early_answer": self._early_answer,
            "superseded": self._superseded,
            "contradiction": self._contradiction,
            "look_alike": self._look_alike,
            "dependency": self._dependency,
            "rationale": self._rationale,
        }
        # the three sorts of contradictions take turns over all streams
        self.sort = self.asked_before // 9
        for number, kind in enumerate(kinds, 1):
            found, step = self._one(ways[kind])
            self.used.add(found.gold.key)
            yield Question(
                id=f"{self.stream.trade.task}-q{number}",
                stream=self.name,
                ask=found.ask,
                gold=frozenset({found.gold.key}),
                must_not=frozenset(self._retired(found.slot, step)),
                asked_at_step=step,
                kind=kind,
            )

    def _one(self, way: Callable[[int], Iterator[_Found]]) -> tuple[_Found, int]:
        for step in (self.draw.randint(_LATE, STEPS), STEPS):
            if choices := [one for one in way(step) if one.gold.key not in self.used]:
                return self.draw.choice(choices), step
        raise AssertionError(f"{self.name} has nothing to ask for")  # streams are long enough; a test tries

    def _retired(self, slot: Slot, step: int) -> Iterator[str]:
        for one in self.stream.of_slot(slot):
            if one.step <= step and not one.in_force(step):
                yield one.key

    def _holding(self, step: int) -> Iterator[tuple[Made, Slot]]:
        """What is in force without a rival. Parts that both tasks share are kept for `look_alike`."""
        for one in self.stream.made:
            if one.slot and not one.slot.shared and self._alone(one.slot, step) is one:
                yield one, one.slot

    def _alone(self, slot: Slot, step: int) -> Made | None:
        held = [one for one in self.stream.of_slot(slot) if one.in_force(step)]
        return held[0] if len(held) == 1 else None

    def _part(self, slot: Slot) -> str:
        return slot.part.alias if self.draw.random() < _BY_ALIAS else slot.part.name

    def _plain(self, slot: Slot) -> str:
        return sentence(self.draw.choice(slot.matter.asks).format(part=self._part(slot)))

    def _early_answer(self, step: int) -> Iterator[_Found]:
        for one, slot in self._holding(step):
            if one.step <= _EARLY and one.act == "decided":
                yield _Found(one, slot, self._plain(slot))

    def _superseded(self, step: int) -> Iterator[_Found]:
        for one, slot in self._holding(step):
            if one.act == "changed":
                yield _Found(one, slot, self._plain(slot))

    def _contradiction(self, step: int) -> Iterator[_Found]:
        """Of the sort whose turn it is, or of the next that there is."""
        for turn in range(len(_SORTS)):
            sort = _SORTS[(self.sort + turn) % len(_SORTS)]
            found = [one for one in self._contradicted(step, sort) if one.gold.key not in self.used]
            if found:
                self.sort += 1
                yield from found
                return

    def _contradicted(self, step: int, sort: str) -> Iterator[_Found]:
        for one in self.stream.made:
            if one.step > step or one.act != sort or one.slot is None or one.slot.shared:
                continue
            before = [other for other in self.stream.of_slot(one.slot) if other.step <= step]
            if sort == "turned_down":
                gold, quoted = self._alone(one.slot, step), one
            else:
                gold = one if one is before[-1] and one.in_force(step) else None
                quoted = next(
                    (old for old in reversed(before) if old.step < one.step and old.act != "turned_down"), one
                )
            if gold is not None and gold is not quoted:
                doubt = self.draw.choice(one.slot.matter.doubts)
                ask = doubt.format(part=self._part(one.slot), option=quoted.option)
                yield _Found(gold, one.slot, sentence(ask))

    def _look_alike(self, step: int) -> Iterator[_Found]:
        for one in self.stream.made:
            if one.slot is None or not one.slot.shared or self._alone(one.slot, step) is not one:
                continue
            twins = [
                other
                for other in self.sibling.made
                if other.slot
                and (other.slot.part, other.slot.matter) == (one.slot.part, one.slot.matter)
                and other.in_force(step)
            ]
            if twins and all(other.option != one.option for other in twins):
                ask = self._plain(one.slot)
                trade = self.stream.trade
                place = trade.place_alias if self.draw.random() < 0.5 else trade.place
                yield _Found(one, one.slot, f"For {place}: {ask[:1].lower()}{ask[1:]}")

    def _dependency(self, step: int) -> Iterator[_Found]:
        holding = {one.key: (one, slot) for one, slot in self._holding(step)}
        for dependent, about in holding.values():
            for link in dependent.links:
                if link.relation != "depends_on" or link.target not in holding:
                    continue
                gold, slot = holding[link.target]
                topic = slot.matter.topic.format(part=self._part(slot))
                what = about.matter.topic.format(part=self._part(about))
                ask = self.draw.choice(_GROUNDS).format(topic=topic, what=what)
                yield _Found(gold, slot, sentence(ask))

    def _rationale(self, step: int) -> Iterator[_Found]:
        for one, slot in self._holding(step):
            rivals = [
                other
                for other in self.stream.made
                if other.slot and other.slot.part == slot.part and other.reason == one.reason
            ]
            if one.reason is not None and len(rivals) == 1:
                why = one.reason.remembered.format(**one.reason_words)
                ask = self.draw.choice(_WHYS).format(why=why, part=self._part(slot))
                yield _Found(one, slot, sentence(ask))


_GROUNDS: Final = (
    "What had been settled about {topic} that our choice on {what} builds upon?",
    "Which earlier choice, on {topic}, does the one on {what} presuppose?",
    "We are about to revisit {what}. What did we say before about {topic}, on which it rests?",
)
_WHYS: Final = (
    "What did we choose for {part} because {why}?",
    "Concerning {part}: which choice goes back to the fact that {why}?",
    "I remember that {why}. What followed from it for {part}?",
)
