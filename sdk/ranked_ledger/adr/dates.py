"""Dates as people write them; one that can be read in two ways is none."""

from __future__ import annotations

import re
from datetime import date, datetime
from typing import Final

_YEAR_FIRST: Final = re.compile(r"(?<!\d)((?:19|20)\d{2})[-/.](\d{1,2})[-/.](\d{1,2})(?!\d)")
_DAY_FIRST: Final = re.compile(r"(?<!\d)(\d{1,2})\.\s?(\d{1,2})\.\s?((?:19|20)\d{2})(?!\d)")
_YEAR_LAST: Final = re.compile(r"(?<!\d)(\d{1,2})[-/](\d{1,2})[-/]((?:19|20)\d{2})(?!\d)")
_WORDED: Final = ("%B %d, %Y", "%d %B %Y", "%b %d, %Y", "%d %b %Y", "%B %d %Y")


class Unclear(ValueError):
    """Why a text gives no date."""


def in_text(text: str) -> date | None:
    """The date in a text, or None where none of a form that we know is there.

    Raises:
        Unclear: it is no day of the calendar, or one of two.
    """
    for pattern, year, month, day in ((_YEAR_FIRST, 1, 2, 3), (_DAY_FIRST, 3, 2, 1)):
        if found := pattern.search(text):
            return _day(found[0], int(found[year]), int(found[month]), int(found[day]))
    if found := _YEAR_LAST.search(text):
        one, other, year = map(int, found.groups())
        if one != other and max(one, other) <= 12:
            raise Unclear(
                f"{found[0]} is one day where the month comes first, and another where the day does"
            )
        return _day(found[0], year, *((one, other) if other > 12 else (other, one)))
    return _worded(text)


def _worded(text: str) -> date | None:
    for form in _WORDED:
        try:
            return datetime.strptime(text.strip(), form).date()
        except ValueError:
            continue
    return None


def without(text: str) -> str:
    """A text without the dates in figures; one that is a date in words is empty without it."""
    if _worded(text):
        return ""
    for pattern in (_YEAR_FIRST, _DAY_FIRST, _YEAR_LAST):
        text = pattern.sub(lambda day: " " * len(day[0]), text)
    return text


def _day(said: str, year: int, month: int, day: int) -> date:
    try:
        return date(year, month, day)
    except ValueError:
        raise Unclear(f"{said} is no day of the calendar") from None
