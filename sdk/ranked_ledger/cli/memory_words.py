"""Whom a memory is about, and until when, as they are typed: `candidate:UUID`, `workspace:acme`, `90d`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Annotated, Final, NamedTuple, cast
from uuid import UUID

import typer

from ranked_ledger import InvalidArgumentError
from ranked_ledger.subjects import Subject, SubjectType

_FORMS: Final = "candidate:UUID, user:UUID, workspace or workspace:NAME"
_UNITS: Final[Mapping[str, timedelta]] = MappingProxyType(
    {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
)

MemoryId = Annotated[str, typer.Argument(help="The memory's id.", show_default=False)]
About = Annotated[str, typer.Option("--about", "-a", help=f"Whom: {_FORMS}.", show_default=False)]
Person = Annotated[
    str, typer.Option("--about", "-a", help="Whom: candidate:UUID or user:UUID.", show_default=False)
]


class Scope(NamedTuple):
    """Whom or what a memory is about, as the SDK takes it."""

    subject: Subject
    workspace: str | None = None


def scope(about: str) -> Scope:
    """Whom or what `--about` names.

    Example:
        >>> scope("workspace:acme")
        Scope(subject=('workspace', None), workspace='acme')
    """
    kind, _, name = about.strip().partition(":")
    if kind == "workspace":
        return Scope(("workspace", None), name.strip() or None)
    return Scope(person(about))


def person(about: str) -> Subject:
    """The subject that `--about` names by an id; an erasure and an attribution want one."""
    kind, _, name = about.strip().partition(":")
    try:
        if kind in ("workspace", "candidate", "user"):
            return cast(SubjectType, kind), UUID(name.strip())
    except ValueError:
        pass
    raise InvalidArgumentError(f"--about names nobody: {about!r}", hint=f"write {_FORMS}")


def moment(option: str, text: str, *, ahead: bool) -> datetime:
    """A time, or how far from now it is: `90d` is 90 days ahead, or ago.

    Example:
        >>> moment("--expires", "2030-01-31", ahead=True).isoformat()
        '2030-01-31T00:00:00+00:00'
    """
    if found := re.fullmatch(r"(\d{1,6})([hdw])", text.strip()):
        try:
            away = int(found[1]) * _UNITS[found[2]]
            return datetime.now(UTC) + (away if ahead else -away)
        except OverflowError:
            pass
    try:
        when = datetime.fromisoformat(text.strip())
    except ValueError:
        raise InvalidArgumentError(
            f"{option} is no time: {text!r}", hint="write 90d, 12h, 2w, or a date such as 2030-01-31 (UTC)"
        ) from None
    return when.replace(tzinfo=UTC) if when.tzinfo is None else when
