"""How a text reads to somebody who undoes its escapes and does not tell look-alikes apart.

A model reads `&lt;`, `%3C`, a backslash escape, a fullwidth sign or a letter of another alphabet as what it
stands for. `reading` gives that text, and for each of its characters the place that it came from, so that
what is dangerous in the reading can be replaced where it stands.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from functools import lru_cache
from html import unescape
from html.entities import html5
from itertools import islice
from typing import Final, NamedTuple
from unicodedata import category, normalize


class Reading(NamedTuple):
    """- `text`: as it reads. `origin`: for each of its characters the index that it came from.

    - `keys`: indexes of signs that open an escape which hides a letter, a digit, a bracket or another escape.
      They have to go whatever the text says, so that no order of decoding reads more than this one.
    """

    text: str
    origin: Sequence[int]
    keys: Sequence[int]


# Look-alikes that no normalisation knows. Written as escapes, since that is what they are about.
_LETTERS: Final = {
    "a": "\u0430\u0410\u03b1\u0391\u0251\u1d00\u13aa\ua4ee",
    "b": "\u0412\u0432\u042c\u044c\u0392\u0299\u13f4\ua4d0",
    "c": "\u0441\u0421\u03f2\u03f9\u1d04\u13df\ua4da",
    "d": "\u0501\u0500\u0111\u0110\u1d05\u13a0\u13e7\ua4d3\ua7ad",
    "e": "\u0435\u0415\u03b5\u0395\u0454\u0404\u1d07\u13ac\ua4f0\u212e",
    "f": "\u0192\ua730\u03dc\u03dd\u0584\ua4dd",
    "g": "\u0261\u0262\u0581\u050d\u13c0\ua4d6",
    "h": "\u04bb\u04ba\u041d\u043d\u0397\u0570\u029c\u0127\u0126\u13bb\ua4e7",
    "i": "\u0456\u0406\u03b9\u0399\u0131\u0269\u026a\u04c0\u04cf\u13a5\ua4f2",
    "l": "\u029f\u0142\u0141\u01c0\u13de\ua4e1",
    "m": "\u043c\u041c\u039c\u1d0d\u13b7\ua4df",
    "n": "\u043f\u03b7\u039d\u0274\u0578\u057c\ua4e0",
    "o": "\u043e\u041e\u03bf\u039f\u03c3\u0585\u0555\u1d0f\u00f8\u00d8\ua4f3",
    "p": "\u0440\u0420\u03c1\u03a1\u1d18\u13e2\ua4d1",
    "r": "\u0433\u0280\u13a1\u13d2\ua4e3",
    "s": "\u0455\u0405\ua731\u01bd\u13d5\u13da\ua4e2",
    "t": "\u0442\u0422\u03c4\u03a4\u1d1b\u0167\u0166\u13a2\ua4d4",
    "u": "\u0446\u03c5\u057d\u1d1c\u028b\ua4f4",
    "v": "\u0475\u0474\u03bd\u1d20\u13d9\ua4e6",
    "y": "\u0443\u0423\u04af\u04ae\u03b3\u03a5\u028f\u13a9\ua4ec",
    # brackets and pipes that draw a provenance, and colons
    "\u27e6": "\u3010\u3014\u3016\u3018\u301a\u2772\u2045",
    "\u27e7": "\u3011\u3015\u3017\u3019\u301b\u2773\u2046",
    "|": "\u00a6\u01c1\u2223\u2502\u2503\u2758\u2759\u275a\uffe8",
    ":": "\u02d0\u02f8\u0589\u05c3\u0703\u0704\u205a\ua789",
    "-": "\u2010\u2012\u2013\u2212\u2043",
    # angles that make a tag only where they hold one; \u3008 and \u3009 stand for all of them
    "\u3008": "\u02c2\u1438\u16b2\u22d6\u276c\u276e\u2770\u27e8\u2991\u29fc",
    "\u3009": "\u02c3\u1433\u22d7\u276d\u276f\u2771\u27e9\u2992\u29fd",
}
_ALIKE: Final = {ord(other): plain for plain, others in _LETTERS.items() for other in others}
# letters in a filled circle, in a filled square, and those that flags are made of
_ALIKE.update((first + n, chr(97 + n)) for first in (0x1F150, 0x1F170, 0x1F1E6) for n in range(26))

_ESCAPE: Final = re.compile(
    r"&\#(?:[xX][0-9a-fA-F]+|[0-9]+);?"
    r"|&[a-zA-Z][a-zA-Z0-9]{1,31};?"
    r"|(?:%[0-9a-fA-F]{2})+|%[uU][0-9a-fA-F]{4}"
    r"|(?:\\x[0-9a-fA-F]{2})+|\\u[0-9a-fA-F]{4}|\\U[0-9a-fA-F]{8}|\\[ux]\{[0-9a-fA-F]{1,8}\}"
    r"|\\N\{|\\0{0,4}[2-7][a-fA-F]|\\[0-7]{1,3}"
)
_SHORT: Final = re.compile(r"[%\\][uUx]\{?([0-9a-fA-F]+)\}?")
_LOW: Final = re.compile(r"\\u([dD][c-fC-F][0-9a-fA-F]{2})")
_LONGEST: Final = 16  # of an entity's number, which may begin with zeros
_KEYS: Final = "&%\\"
# bytes that are a letter or a digit of their own where they are not taken for UTF-8
_LATIN: Final = frozenset(b"\xaa\xb2\xb3\xb9\xba\xbc\xbd\xbe")
# Signs that nobody sees: controls, formats, fillers, selectors of a variant, tags, halves of a pair.
UNSEEN: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ud800-\udfff"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
# what an escape must not hide, whatever is made of it: parts of names, of further escapes, of a provenance
_PART: Final = re.compile(r"[a-zA-Z0-9;{}\[\]|]")
_MORE: Final = re.compile(r"[a-zA-Z0-9#&%\\]")


@lru_cache(maxsize=4096)
def plain(character: str) -> str:
    """A character without its form, its marks and its alphabet: '' for one that is not seen."""
    read = []
    for one in normalize("NFKD", character):
        if one.isspace() or one == "\u2800":
            read.append(" ")
        elif category(one) not in {"Mn", "Me", "Cf"} and UNSEEN.match(one) is None:
            read.append(_ALIKE.get(ord(one), one))
    return "".join(read)


def reading(line: str) -> Reading:
    """The line as it reads."""
    text, origin = line, list(range(len(line)))
    if not line.isascii():
        pairs = [(one, place) for place, character in enumerate(line) for one in plain(character)]
        text, origin = "".join(one for one, _ in pairs), [place for _, place in pairs]
    if _ESCAPE.search(text) is None:
        return Reading(text, origin, ())
    return _decoded(text, origin)


def _decoded(text: str, origin: list[int]) -> Reading:
    read: list[str] = []
    places: list[int] = []
    keys: list[int] = []
    end = 0
    while found := _ESCAPE.search(text, end):
        read.append(text[end : found.start()])
        places.extend(origin[end : found.start()])
        end = found.start()
        for value, begin, behind in _values(text, found):
            whole = origin[behind - 1] - origin[begin] == behind - 1 - begin  # no mark ends it in between
            if value is None or not whole or _hides(value, text, begin, behind):
                keys.append(origin[begin])
                value = text[begin:behind]  # noqa: PLW2901
            else:
                value = "".join(map(plain, value))  # noqa: PLW2901
            read.append(value)
            places.extend([origin[begin]] * len(value))
            end = behind
        if end == found.start():  # no escape after all
            read.append(text[end])
            places.append(origin[end])
            end += 1
    return Reading("".join(read) + text[end:], places + origin[end:], keys)


def _hides(value: str, text: str, begin: int, behind: int) -> bool:
    """Whether an escape hides a part of a name, of another escape, or the number sign of one."""
    folded = normalize("NFKC", value)
    return (
        _PART.search(folded) is not None
        or (any(key in folded for key in _KEYS) and _MORE.match(text, behind) is not None)
        or ("#" in folded and text[begin - 1 : begin] == "&")
    )


def _values(text: str, found: re.Match[str]) -> Iterator[tuple[str | None, int, int]]:
    """What an escape stands for, piece by piece, each with its begin and end; None where it has to go."""
    whole, begin, behind = found[0], found.start(), found.end()
    if whole.startswith("&"):
        yield from _entity(whole, begin)
    elif short := _SHORT.fullmatch(whole) if whole[:2] != "\\x" or whole[2] == "{" else None:
        code = int(short[1], 16)
        if 0xD800 <= code < 0xDC00 and (low := _LOW.match(text, behind)):
            code, behind = 0x10000 + ((code - 0xD800) << 10) + int(low[1], 16) - 0xDC00, low.end()
        yield chr(code) if code <= sys.maxunicode else None, begin, behind
    elif whole[0] == "%" or whole[1] == "x":
        yield from _bytes(whole, begin, 3 if whole[0] == "%" else 4)
    elif whole[1:].isdigit():
        yield chr(int(whole[1:], 8)), begin, behind
    else:
        yield None, begin, begin + 1


def _entity(whole: str, begin: int) -> Iterator[tuple[str | None, int, int]]:
    if whole.startswith("&#"):
        # without an end, whatever follows could be taken for more of the number
        known = whole.endswith(";") and len(whole) <= _LONGEST
        yield (unescape(whole) if known else None), begin, begin + len(whole)
    else:  # the longest name that there is, as HTML has it; R&D has none
        sizes = (size for size in range(len(whole), 2, -1) if whole[1:size] in html5)
        yield from ((html5[whole[1:size]], begin, begin + size) for size in islice(sizes, 1))


def _bytes(whole: str, begin: int, size: int) -> Iterator[tuple[str | None, int, int]]:
    """Bytes as UTF-8, and where they are none as Latin-1."""
    raw = bytes(int(whole[at - 2 : at], 16) for at in range(size, len(whole) + 1, size))
    at = 0
    while at < len(raw):
        lead = raw[at]
        count = 1 if lead < 0xC0 else 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
        try:
            value = raw[at : at + count].decode()
        except UnicodeDecodeError:
            count, value = 1, chr(lead)
        letter = size == 4 and not _LATIN.isdisjoint(raw[at : at + count])
        yield None if letter else value, begin + at * size, begin + (at + count) * size
        at += count
