"""What a log and a report say of where they were made: names, no folders of a machine and no credentials."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit


def name_of(path: str) -> str:
    """The last part of a path.

    Example:
        >>> name_of("/home/ada/decisions/")
        'decisions'
    """
    name = Path(path).name
    return name if name not in ("", "..") else Path(path).resolve().name


def address(url: str) -> str:
    """A URL without user, password, query and fragment: any of them can be a key.

    Example:
        >>> address("https://ada:secret@models.example:8080/v1?key=1")
        'https://models.example:8080/v1'
    """
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def command(arguments: Sequence[str]) -> str:
    """A command as others may read it."""
    return shlex.join(_arguments(arguments))


def said(line: str) -> str:
    """The same of a line, from a log that an older version wrote."""
    try:
        return command(shlex.split(line))
    except ValueError:
        return ""


def _arguments(arguments: Sequence[str]) -> Iterator[str]:
    before = ""
    for one in arguments:
        if before in ("--data", "-d"):
            yield name_of(one)
        elif one.startswith(("http://", "https://")):
            yield address(one)
        else:
            yield one
        before = one
