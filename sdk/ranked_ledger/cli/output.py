"""Printing: JSON for programs, text and tables for people, and nothing that a terminal would obey."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Mapping
from typing import Any, Final

from pydantic import BaseModel
from rich.console import Console, RenderableType
from rich.text import Text

_PLAIN_WIDTH: Final = 100
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def console(*, error: bool = False) -> Console:
    """Standard output or error as rich sees it; without a terminal there is no colour, and a fixed width."""
    stream = sys.stderr if error else sys.stdout
    width = None if stream.isatty() or os.environ.get("COLUMNS") else _PLAIN_WIDTH
    return Console(file=stream, width=width, highlight=False, markup=False, emoji=False, soft_wrap=False)


def plain(text: object, style: str = "") -> Text:
    """A stored text as it may be shown: no markup, no control characters, no reversed writing."""
    return Text(_CONTROL.sub("", "" if text is None else str(text)), style=style)


def one_line(text: object, style: str = "") -> Text:
    """The same on one line."""
    return plain(" ".join(str(text or "").split()), style)


def document(value: object) -> Any:
    """A model, or a structure of models, as plain values."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, Mapping):
        return {str(name): document(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [document(one) for one in value]
    return value


def show(value: object, text: Callable[[], RenderableType], *, as_json: bool) -> None:
    """Print a result: one JSON document, or what people read."""
    if as_json:
        ascii_only = (sys.stdout.encoding or "").lower().replace("-", "") != "utf8"
        print(json.dumps(document(value), indent=2, ensure_ascii=ascii_only, default=str))
    else:
        shown = text()
        # a terminal wraps a text itself, and a pipe wants its lines whole
        console().print(shown, soft_wrap=isinstance(shown, Text))


def say(text: str) -> None:
    """A remark on standard error, which is no part of the result."""
    console(error=True).print(plain(text))
