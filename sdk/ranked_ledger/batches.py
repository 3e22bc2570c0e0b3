"""Cuts a stream of new decisions into requests: at most 500 decisions and about 8 MB each.

The cuts depend on the decisions alone, so that a repeated run with the same key meets the same batches.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Mapping
from typing import Any, Final

from ranked_ledger import calls, recording
from ranked_ledger.errors import InvalidArgumentError
from ranked_ledger.models import DecisionInput

MAX_BATCH_BYTES: Final = 8 * 1024 * 1024
_BYTES_A_NUMBER: Final = 24

Element = dict[str, Any]


class _Cutter:
    def __init__(self, project: str | None) -> None:
        self._project = project
        self._elements: list[Element] = []
        self._bytes = 0
        self._seen = 0

    def add(self, decision: object) -> list[Element]:
        """The batch that is full without this decision, or an empty one."""
        try:
            element = recording.checked(recording.new_decision(decision, project=self._project))
        except InvalidArgumentError as wrong:
            raise InvalidArgumentError(f"decisions[{self._seen}]: {wrong.message}", hint=wrong.hint) from None
        self._seen += 1
        size = _size(element)
        full = len(self._elements) == calls.MAX_BATCH or self._bytes + size > MAX_BATCH_BYTES
        batch = self.rest() if full else []
        self._elements.append(element)
        self._bytes += size
        return batch

    def rest(self) -> list[Element]:
        batch, self._elements, self._bytes = self._elements, [], 0
        return batch


def _size(element: Element) -> int:
    """About what an element weighs, the same on every run: a vector by its dimension, not by its digits."""
    vector = element.get("embedding")
    numbers = 0 if vector is None else vector.count(",") + 1
    plain = {name: value for name, value in element.items() if name != "embedding"}
    return len(json.dumps(plain, ensure_ascii=False).encode()) + _BYTES_A_NUMBER * numbers


def check_listener(on_batch: object) -> None:
    """Before the first batch is written, not after it."""
    if on_batch is not None and not callable(on_batch):
        raise InvalidArgumentError(f"on_batch must be a function, not {type(on_batch).__name__}")


def cut(decisions: Iterable[DecisionInput], project: str | None) -> Iterator[list[Element]]:
    """The batches of an iterable, each as soon as it is full."""
    if isinstance(decisions, (str, bytes, Mapping)) or not isinstance(decisions, Iterable):
        raise InvalidArgumentError(
            f"decisions must be an iterable of decisions, not {type(decisions).__name__}",
            hint="put a single one into a list, or use record",
        )
    cutter = _Cutter(project)
    for decision in decisions:
        if batch := cutter.add(decision):
            yield batch
    if batch := cutter.rest():
        yield batch


async def cut_async(
    decisions: Iterable[DecisionInput] | AsyncIterable[DecisionInput],
    project: str | None,
) -> AsyncIterator[list[Element]]:
    """The batches of an iterable of either kind."""
    if not isinstance(decisions, AsyncIterable):
        for batch in cut(decisions, project):
            yield batch
        return
    cutter = _Cutter(project)
    async for decision in decisions:
        if batch := cutter.add(decision):
            yield batch
    if batch := cutter.rest():
        yield batch
