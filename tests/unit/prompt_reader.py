"""Reads what stands in a fence as a gullible reader would, knowing nothing of how the SDK makes it harmless.

It undoes every encoding, in every order, and looks for anything that speaks.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Callable, Iterator
from typing import Final
from urllib.parse import unquote

_LATIN: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
# letters of English and its neighbours, in any form: what goes on with one of them is another word
_LETTER: Final = "0-9a-z" + "".join(
    chr(code) for code in range(0x80, 0x20000) if unicodedata.normalize("NFKD", chr(code))[0] in _LATIN
)
_APART: Final = f"(?<![{_LETTER}])(?<![{_LETTER}][_-])"
_ENDS: Final = f"(?![{_LETTER}])"
_ROLE: Final = "(?:system|assistant|user|human|developer|tool|function|ai)"
_TEMPLATE: Final = r"\[[\s/]*(?:inst|sys|system_prompt|tool_calls|tool_results)\s*\]"
_SPEAKS: Final = {
    "a fence of ours": r"<[\s/\\]*(?:decisions|memories)",
    "a tag": r"<[\w/!?|$%@{#][^<>\n]*>|<[\s=~-]*[\s/]*[a-z][\w:.-]*(?:\s+[\w:.-]+\s*=[^<>\n]*)?[\s/]*>",
    "the beginning of a tag": r"<\s*(?:\\?/|[!?])|<[^\W\d_]|<\s*\Z",
    "a token of a template": rf"<\||<<\s*sys|{_TEMPLATE}",
    "a heading of a template": rf"#{{2,}}\s*(?:instructions?|response|{_ROLE}){_ENDS}",
    "a fence of code": r"```|~~~|\"\"\"|'''",
    "a turn": rf"{_APART}{_ROLE}(?:\s+(?:prompt|message))?[\s*_`\"')\]}}]*:",
    "a turn in JSON": rf"{_APART}role[\"']?\s*:\s*[\"']?{_ROLE}{_ENDS}",
    "another item": rf"(?<!^)(?<!\n){_APART}-\s*\[\s*(?:step\b|[^\[\]\n]*\||[^\[\]\n]*\bconfirmed\b)",
    "another provenance": r"(?<!^- )(?<!\n- )\[[^\[\]\n]*\|[^\[\]\n]*\b(?:by\s+[a-z]+\s*,|instruction\s*:)",
}
SPEAKS: Final = {name: re.compile(pattern) for name, pattern in _SPEAKS.items()}

_CODES: Final = re.compile(
    r"[\\%]u([0-9a-fA-F]{4})|\\U([0-9a-fA-F]{8})|\\x([0-9a-fA-F]{2})|\\u\{([0-9a-fA-F]{1,6})\}|\\([0-7]{1,3})"
)
_BYTES: Final = re.compile(r"(?:\\x[0-9a-fA-F]{2})+")
_NAMES: Final = re.compile(r"\\N\{([A-Z -]+)\}")
_STYLES: Final = re.compile(r"\\0{0,4}([2-7][a-fA-F])\s?")
_SIMPLE: Final = {"n": "\n", "r": "\r", "t": "\t", "f": "\f", "v": "\v", "b": " ", "a": " ", "\\": "\\"}
# A few letters of each alphabet that can pass for one of ours, written as what they are.
_ALPHABETS: Final = str.maketrans(
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0455\u0456\u0442\u043c\u03b1\u03bf\ua731\u1d1b\u1d07\u1d0d\u028f"
    "\u02d0\ua789\u2502\u3010\u3011",
    "aeopcyxsitmaostemy::|[]",
)
_ANGLES: Final = re.compile(
    r"[\u3008\u27e8\u276e\u2770]\s*(/?\s*[a-z!?|][\w:.-]*)\s*[\u3009\u27e9\u276f\u2771]"
)


def _codes(text: str) -> str:
    def value(found: re.Match[str]) -> str:
        digits = next((one for one in found.groups()[:4] if one), None)
        code = int(digits, 16) if digits else int(found[5], 8)
        return chr(code) if code < 0x110000 else found[0]

    return _CODES.sub(value, text).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _bytes(text: str) -> str:
    return _BYTES.sub(
        lambda found: bytes.fromhex(found[0].replace("\\x", "")).decode("utf-8", "replace"), text
    )


def _names(text: str) -> str:
    return _NAMES.sub(lambda found: unicodedata.lookup(found[1]), text)


def _styles(text: str) -> str:
    return _STYLES.sub(lambda found: chr(int(found[1], 16)), text)


def _simple(text: str) -> str:
    return re.sub(r"\\([nrtfvba\\])", lambda found: _SIMPLE[found[1]], text)


def _shown(one: str) -> bool:
    hidden = unicodedata.category(one) in {"Cf", "Cc", "Cs"} or "\U000e0000" <= one <= "\U000e0fff"
    return one.isspace() or not (hidden or re.match("[\ufe00-\ufe0f\u034f\u3164\u115f\u1160]", one))


def _without_unseen(text: str) -> str:
    return "".join(filter(_shown, text))


def _tags_as_text(text: str) -> str:
    return "".join(chr(ord(one) - 0xE0000) if "\U000e0020" <= one <= "\U000e007e" else one for one in text)


def _without_marks(text: str) -> str:
    return "".join(one for one in unicodedata.normalize("NFD", text) if not unicodedata.combining(one))


def _one_alphabet(text: str) -> str:
    for first in (0x1F150, 0x1F170, 0x1F1E6):
        text = re.sub(
            f"[{chr(first)}-{chr(first + 25)}]",
            lambda found, first=first: chr(97 + ord(found[0]) - first),  # type: ignore[misc]
            text,
        )
    return _ANGLES.sub(r"<\1>", text.casefold().translate(_ALPHABETS))


DECODERS: Final[tuple[Callable[[str], str], ...]] = (
    html.unescape,
    unquote,
    _codes,
    _bytes,
    _names,
    _styles,
    _simple,
    lambda text: unicodedata.normalize("NFKC", text),
    _without_unseen,
    _tags_as_text,
    _without_marks,
    _one_alphabet,
)


def readings(text: str, *, depth: int = 4) -> set[str]:
    """The text as it is, and after any of the decodings in any order."""
    known = new = {text}
    for _ in range(depth):
        new = {decode(one) for one in new for decode in DECODERS} - known
        known |= new
        if len(known) > 5000:
            raise AssertionError("more readings than a test should make")
    return {one.casefold() for one in known}


def speaking(text: str, *, depth: int = 4) -> Iterator[str]:
    """What speaks in a text, by name, with what it is."""
    for one in sorted(readings(text, depth=depth)):
        for name, pattern in SPEAKS.items():
            if found := pattern.search(one):
                yield f"{name}: {found[0]!r} in {one!r}"
