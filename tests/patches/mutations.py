"""Changes that mean nothing: layout, comments, names. A patch has to find the same places after them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import pairwise

from ast_grep_py import SgNode

from ranked_ledger.patching import finding, source
from ranked_ledger.patching.source import Source

BOM = "\ufeff"
_WHOLE = frozenset({"string", "template_string", "regex"})
# No line end may stand behind these, or before those: a semicolon would be put there (for `new`, by ast-grep's parser only).
_NO_LINE_AFTER = frozenset(
    {"return", "throw", "async", "break", "continue", "type", "interface", "new", "let"}
)
_NO_LINE_BEFORE = frozenset({"=>", "++", "--", "!", "as", "satisfies", "["})


def tokens(text: str) -> list[SgNode]:
    """Of a text without a byte order mark; comments are none."""
    return [one for one in _leaves(Source(text, ".ts").root) if one.kind() != "comment"]


def token_texts(text: str) -> list[str]:
    return [one.text().replace("\r\n", "\n") for one in tokens(text.removeprefix(BOM))]


def _leaves(node: SgNode) -> Iterator[SgNode]:
    if node.kind() in _WHOLE or not node.children():
        if node.text():
            yield node
        return
    for one in node.children():
        yield from _leaves(one)


def crlf(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\n", "\r\n")


def tabbed(text: str) -> str:
    """Tabs for indentation and between tokens."""
    return "".join(space.replace(" ", "\t") + token for space, token in _spaced(text))


def minified(text: str) -> str:
    """No comment, no line end, no space that the grammar does not need."""
    written = ""
    for one in tokens(text):
        token = one.text()
        glued = written[-1:] + token[:1]
        needs_space = re.fullmatch(r"[\w$#@]{2}|[+-]{2}|/[/*]|<[!/]|\?\.|&&|\|\|", glued) is not None
        written += f" {token}" if needs_space else token
    return written


def commented(text: str, comment: str = "/* aside */") -> str:
    """A comment before every token but the parenthesis of a call; where it ends a line, a line may end."""
    written, before = "", ""
    for space, token in _spaced(text):
        if token.startswith(("//", "/*")):
            written += space + token
            continue
        ends_line = comment.startswith("//")
        if token == "(" or (ends_line and (before in _NO_LINE_AFTER or token in _NO_LINE_BEFORE)):
            written += space + token
        else:
            written += f"{space}{comment}{chr(10) if ends_line else ' '}{token}"
        before = token
    return written


def commented_once(text: str, comment: str, line: int) -> Iterator[str]:
    """The text with one comment more: before each token of a line (from 1) in its turn."""
    for before, one in pairwise(tokens(text)):
        at = source.start_of(one)
        if one.range().start.line + 1 != line or one.text() == "(":
            continue
        if "\n" not in comment or not (before.text() in _NO_LINE_AFTER or one.text() in _NO_LINE_BEFORE):
            yield text[:at] + comment + text[at:]


def directed(text: str, directive: str) -> str:
    """A directive above every line that gets a line inserted above it, or a piece in it."""
    above = {text.rfind("\n", 0, one.at) + 1 for one in finding.find(text, ".ts").insertions}
    for at in sorted(above, reverse=True):
        line = text[at:]
        indentation = line[: len(line) - len(line.lstrip(" \t"))]
        text = text[:at] + "".join(f"{indentation}{part}\n" for part in directive.split("\n")) + text[at:]
    return text


def without_final_line_end(text: str) -> str:
    return text.rstrip("\r\n")


def marked(text: str) -> str:
    return BOM + text


def astral(text: str) -> str:
    """Characters of one, two, three and four bytes before all that is looked for, and between."""
    words = "/* é — 日本 — 😀👩‍👩‍👧 */ "
    return words + re.sub(r"\b(app|max_items)\b", rf"{words}\1", text)


LAYOUTS: dict[str, Callable[[str], str]] = {
    "crlf": crlf,
    "tabs": tabbed,
    "minified": minified,
    "block comments": commented,
    "line comments": lambda text: commented(text, "// aside"),
    "lint directives": lambda text: directed(text, "// deno-lint-ignore no-explicit-any"),
    "type directives": lambda text: directed(text, "// @ts-ignore: not ours\n// said twice"),
    "no final line end": without_final_line_end,
    "astral characters": astral,
    "byte order mark": marked,
}


def renamed(text: str, names: dict[str, str], within: SgNode | None = None) -> str:
    """Other names for variables, wherever they are used in a function, or in all of the text."""
    root = within or Source(text, ".ts").root
    for one in sorted(source.walk(root), key=source.start_of, reverse=True):
        name = names.get(one.text())
        if name is None:
            continue
        at, end = source.start_of(one), source.end_of(one)
        if one.kind() == "identifier":
            text = text[:at] + name + text[end:]
        elif one.kind() in {"shorthand_property_identifier", "shorthand_property_identifier_pattern"}:
            text = f"{text[:end]}: {name}{text[end:]}"
    return text


def _spaced(text: str) -> Iterator[tuple[str, str]]:
    """Each token with the white space before it; comments are tokens here."""
    end = 0
    for one in _leaves(Source(text, ".ts").root):
        at = source.start_of(one)
        yield text[end:at], one.text()
        end = source.end_of(one)
    yield text[end:], ""
