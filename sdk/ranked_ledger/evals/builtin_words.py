"""The shapes of the built-in set's vocabulary; the words are in `builtin_matters*` and `builtin_trades`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

PartKind = Literal["service", "data", "people"]


@dataclass(frozen=True, slots=True)
class Part:
    """Something that decisions are about; `alias` is what others call it, with some of the words or none."""

    name: str
    alias: str
    kind: PartKind


@dataclass(frozen=True, slots=True)
class Reason:
    """A reason as the decision gives it, and as somebody remembers it later, in other words."""

    said: str
    remembered: str


@dataclass(frozen=True, slots=True)
class Matter:
    """What can be decided about a kind of parts: {part} and {option} are filled in, {who} and {mishap} too.

    - `says`: how decisions put it. `asks`, `topic`: how questions put it. `doubts`: asked of a given option.
    - `weight`: how important such decisions usually are, from 0 to 1.
    """

    name: str
    kind: PartKind
    weight: float
    says: tuple[str, ...]
    topic: str
    asks: tuple[str, ...]
    doubts: tuple[str, ...]
    options: tuple[str, ...]
    reasons: tuple[Reason, ...]


@dataclass(frozen=True, slots=True)
class Trade:
    """A kind of work, as one task of a workspace.

    - `place`, `place_alias`: what the task is called, in decisions and in questions.
    - `details`, `notes`: sentences of the trade; a note mentions {part} and decides nothing of weight.
    """

    task: str
    place: str
    place_alias: str
    who: tuple[str, ...]
    mishaps: tuple[str, ...]
    parts: tuple[Part, ...]
    details: tuple[str, ...]
    notes: tuple[str, ...]
