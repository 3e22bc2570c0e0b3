"""Bars and spinners on standard error, where it is a terminal; elsewhere nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from ranked_ledger.cli.output import console

Advance = Callable[[str, int, int], None]


@contextmanager
def bar() -> Iterator[Advance]:
    """A progress bar; it is told a stage, how much of it is done, and how much there is (0: unknown)."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    terminal = sys.stderr.isatty()
    with Progress(*columns, console=console(error=True), transient=True, disable=not terminal) as progress:
        task = progress.add_task("", total=None)

        def advance(stage: str, done: int, total: int) -> None:
            progress.update(task, description=stage, completed=done, total=total or None)

        yield advance


@contextmanager
def waiting(text: str) -> Iterator[None]:
    """A spinner while one call is under way."""
    if not sys.stderr.isatty():
        yield
        return
    with console(error=True).status(text):
        yield
