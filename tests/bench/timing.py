"""Wall time at the client, arms interleaved: what else the machine does hits all of them alike."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True)
class Arm:
    """One of the contenders. `ask` is given the number of a question and waits for the whole answer."""

    name: str
    ask: Callable[[int], object]
    repetitions: int
    warm_up: int = 3


def interleaved(arms: Sequence[Arm], on_round: Callable[[], None] = lambda: None) -> dict[str, list[float]]:
    """Milliseconds by arm. Each round asks every arm that is due the same question, in turning order."""
    for arm in arms:
        for number in range(arm.warm_up):
            arm.ask(number)
    rounds = max(arm.repetitions for arm in arms)
    taken: dict[str, list[float]] = {arm.name: [] for arm in arms}
    with _no_collection():
        for number in range(rounds):
            turn = number % len(arms)
            for arm in (*arms[turn:], *arms[:turn]):
                if _due(arm, number, rounds):
                    taken[arm.name].append(_milliseconds(arm, number))
            on_round()
    return taken


def _due(arm: Arm, number: int, rounds: int) -> bool:
    # the fewer repetitions of a slow arm are spread over all rounds, and so over all questions
    return (number + 1) * arm.repetitions // rounds > number * arm.repetitions // rounds


def _milliseconds(arm: Arm, number: int) -> float:
    begun = time.perf_counter()
    arm.ask(number)
    return (time.perf_counter() - begun) * 1000


@contextmanager
def _no_collection() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
