"""What the patch inserts: pieces between marks, which come out again without a trace.

    /* ranked-ledger:route 1:c4023a */ rankedLedger.recall, /* ranked-ledger:end */

Nothing of the file is ever changed or removed, so that taking the pieces out gives back the file byte for
byte. Each mark carries the patch's version and a digest of its piece, by which an edited one is known. The
digest knows no white space, quotes, commas, semicolons and parentheses: a formatter may go over it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from typing import Final, Literal

from ranked_ledger.patching.problems import EditedError

VERSION: Final = 1

_END: Final = "/* ranked-ledger:end */"
_PIECE: Final = re.compile(
    r"/\* ranked-ledger(?P<side>[:<])(?P<place>[a-z-]+) (?P<version>\d+):(?P<digest>[0-9a-f]{6}) \*/"
    r"(?P<text>(?:(?!/\* ranked-ledger).)*?)"
    r"/\* ranked-ledger:end \*/",
    re.DOTALL,
)
_ANY: Final = re.compile(r"/\* ranked-ledger[:<][a-z-]+")
_LAYOUT: Final = re.compile(r"[\s\"'`;,()]")
_LINE_END: Final = re.compile(r"\r\n|\n|\r")
_DIRECTIVE: Final = re.compile(r"ignore|expect-error|disable-next-line|@deno-types|@ts-")


Side = Literal["before", "prefix", "after", "line_after"]


@dataclass(frozen=True)
class Insertion:
    """A piece and where it goes.

    - `side`: before a token, on a line of its own where the token begins its line; `prefix`: on the line of
      the token, as what ends with an operator has to be, else a formatter moves its mark; after a token; or
      at the start of the next line.
    """

    place: str
    at: int
    text: str
    side: Side


@dataclass(frozen=True)
class Piece:
    """A piece that was found in a file."""

    place: str
    version: int
    line: int


def insert(text: str, insertions: Iterable[Insertion]) -> str:
    """The text with the pieces in it."""
    for one in sorted(insertions, key=lambda one: one.at, reverse=True):
        at, written = _written(text, one)
        text = text[:at] + written + text[at:]
    return text


def take_out(text: str) -> tuple[str, list[Piece]]:
    """The text without the pieces, and which they were. Raises `EditedError` where one was edited."""
    pieces: list[Piece] = []
    edited: list[int] = []
    kept: list[str] = []
    end = 0
    for match in _PIECE.finditer(text):
        line = _line(text, match.start())
        pieces.append(Piece(match["place"], int(match["version"]), line))
        if _digest(match["place"], match["text"]) != match["digest"]:
            edited.append(line)
        first, last = _extent(text, match)
        kept.append(_unmoved(text[end:first], match))
        end = last
    kept.append(text[end:])
    rest = "".join(kept)
    edited += [
        _line(text, match.start())
        for match in _ANY.finditer(text)
        if not any(one.start() <= match.start() < one.end() for one in _PIECE.finditer(text))
    ]
    if edited:
        raise EditedError(sorted(set(edited)))
    return rest, pieces


def same_but_layout(one: str, other: str) -> bool:
    """Whether two texts differ only in what a formatter changes."""
    return _LAYOUT.sub("", one) == _LAYOUT.sub("", other)


def digest(text: str) -> str:
    """The whole digest of a text, whatever its line ends are."""
    return sha256(_LINE_END.sub("\n", text).encode()).hexdigest()


def _digest(place: str, text: str) -> str:
    called = text.replace("()", "\x00")  # a call is no layout, as the parentheses around an expression are
    return sha256(f"{place} {_LAYOUT.sub('', called)}".encode()).hexdigest()[:6]


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


def _written(text: str, one: Insertion) -> tuple[int, str]:
    side = "<" if one.side == "after" else ":"
    piece = f"/* ranked-ledger{side}{one.place} {VERSION}:{_digest(one.place, one.text)} */ {one.text} {_END}"
    if one.side == "after":
        return one.at, f" {piece}"
    start = text.rfind("\n", 0, one.at) + 1
    if one.side == "line_after":
        following = _LINE_END.search(text, one.at)
        rest = text[one.at : following.start()] if following else text[one.at :]
        if following is None or not re.fullmatch(r"[ \t]*(//.*|/\*(?:(?!\*/).)*\*/[ \t]*)?", rest):
            side_piece = piece.replace("ranked-ledger:", "ranked-ledger<", 1)
            return one.at, f" {side_piece}"
        return following.end(), f"{_indentation(text[start : one.at])}{piece}{following[0]}"
    indentation = text[start : one.at]
    if one.side == "prefix" or indentation.strip(" \t") or _DIRECTIVE.search(_comments_before(text, start)):
        return one.at, f"{piece} "
    return start, f"{indentation}{piece}{_line_end(text, one.at)}"


def _extent(text: str, match: re.Match[str]) -> tuple[int, int]:
    """What was written with a piece: its line, or the one space that parts it from its token."""
    first, last = match.span()
    if match["side"] == "<":
        return (first - 1 if text[first - 1 : first] == " " else first), last
    start = text.rfind("\n", 0, first) + 1
    following = re.compile(r"[ \t]*(\r\n|\n|\r)").match(text, last)
    if following and not text[start:first].strip(" \t"):
        return start, following.end()
    return first, (last + 1 if text[last : last + 1] == " " else last)


def _unmoved(before: str, match: re.Match[str]) -> str:
    """What stands before a piece, without a formatter's doing at what closes something.

    A comma in front of it closes a list of ours; one at its end, or a semicolon, is the file's.
    """
    if match["side"] == ":":
        return before
    theirs = re.search(r"[^,\s](,)\s*$|^[\s)]*(;)\s*$", match["text"])
    return re.sub(r",(\s*)$", r"\1", before) + (theirs[1] or theirs[2] if theirs else "")


def _indentation(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t"))]


def _comments_before(text: str, start: int) -> str:
    """The lines of comments right before a line: a directive among them is about what follows them."""
    first = start
    while first > 0:
        before = text.rfind("\n", 0, first - 1) + 1
        line = text[before : first - 1].strip()
        if line and not line.startswith(("//", "/*", "*")) and not line.endswith("*/"):
            break
        first = before
    return text[first:start]


def _line_end(text: str, at: int) -> str:
    """The line end that is in use here: that of the line, else of the one before."""
    following = _LINE_END.search(text, at)
    if following:
        return following[0]
    return "\r\n" if "\r\n" in text else "\n"
