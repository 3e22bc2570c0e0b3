"""A markdown file as front matter, title and sections. Knows markdown; nothing of decisions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

import yaml
from markdown_it import MarkdownIt
from markdown_it.token import Token

_FRONT: Final = re.compile(r"\A---[ \t]*\n(.*?)\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
# a comment; one inside a fence is code, one that nobody closed is text
_COMMENT: Final = re.compile(
    r"^(?P<fence>[ \t]*(?P<mark>`{3,}|~{3,}).*?^[ \t]*(?P=mark))|<!--.*?-->", re.DOTALL | re.M
)
_PARSER: Final = MarkdownIt("commonmark").enable("table")


@dataclass(frozen=True)
class Section:
    """A heading and what stands under it, up to the next heading of any level."""

    level: int
    heading: str
    text: str


@dataclass(frozen=True)
class Document:
    """A file, taken apart.

    - `front`: the front matter, keys in lower case. `problem`: why it could not be read, or None.
    - `preamble`: what stands around the title, before the first section, and front matter that is no YAML.
    """

    title: str | None
    preamble: str
    sections: tuple[Section, ...]
    front: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    problem: str | None = None


def parse(text: str) -> Document:
    """Take a markdown text apart. Headings inside code, quotes and lists are none."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    front, problem, unread, body = _front_matter(text)
    body = _COMMENT.sub(lambda found: found["fence"] or "", body)
    lines = body.split("\n")
    headings = list(_headings(_PARSER.parse(body)))
    # the first heading is the title where nothing ranks above it
    titled = bool(headings) and headings[0][2] <= min(level for _, _, level, _ in headings)
    title = headings[0][3] if titled else None
    if titled and headings[0][2] > 1 and sum(level == headings[0][2] for _, _, level, _ in headings) > 1:
        titled, title = False, None  # a file whose sections all have one level has no title
    starts = headings[1:] if titled else headings
    above, begin = headings[0][:2] if titled else (0, 0)
    ends = [start for start, _, _, _ in starts] + [len(lines)]
    sections = tuple(
        Section(level, heading, "\n".join(lines[after:end]).strip())
        for (_, after, level, heading), end in zip(starts, ends[1:], strict=True)
    )
    preamble = "\n".join([*unread.split("\n"), "", *lines[:above], *lines[begin : ends[0]]]).strip()
    return Document(title, preamble, sections, MappingProxyType(front), problem)


def _front_matter(text: str) -> tuple[dict[str, Any], str | None, str, str]:
    """The front matter, why it cannot be read, its lines where it cannot, and what stands below it."""
    found = _FRONT.match(text)
    if found is None:
        return {}, None, "", text
    body = text[found.end() :]
    try:
        front = yaml.safe_load(found[1])
    except (yaml.YAMLError, ValueError, RecursionError) as wrong:
        reason = str(wrong).splitlines()[0]
        return {}, f"its front matter is no YAML ({reason})", found[1], body
    if front is None:
        return {}, None, "", body
    if not isinstance(front, dict):
        # a thematic break above the text, not front matter
        return {}, None, "", text
    given = {str(name).casefold().replace("_", "-"): value for name, value in front.items()}
    return given, None, "", body


def _headings(tokens: Sequence[Token]) -> list[tuple[int, int, int, str]]:
    """First line, line after, level and plain text of each heading."""
    return [
        (token.map[0], token.map[1], int(token.tag[1]), plain(tokens[place + 1]))
        for place, token in enumerate(tokens)
        if token.type == "heading_open" and token.level == 0 and token.map
    ]


def plain(token: Token) -> str:
    """The words of an inline token, without markup."""
    words = []
    for child in token.children or ():
        if child.type in ("softbreak", "hardbreak"):
            words.append(" ")
        elif child.type != "html_inline":
            words.append(child.content)
    return " ".join("".join(words).split())


def words(text: str) -> str:
    """A text without its markup, as one line."""
    return " ".join(filter(None, (plain(token) for token in _PARSER.parse(text) if token.type == "inline")))


def items(text: str, *, whole: bool = False) -> list[str]:
    """The items of the outermost lists: the first words of each, or with `whole` all of its words."""
    found: list[list[str]] = []
    inside = False
    for token in _PARSER.parse(text):
        if token.level == 1 and token.type in ("list_item_open", "list_item_close"):
            inside = token.type == "list_item_open"
            if inside:
                found.append([])
        elif inside and token.type == "inline":
            found[-1].append(plain(token))
        elif inside and token.type == "fence":
            found[-1].append(" ".join(token.content.split()))
    return [item for one in found if (item := " ".join(filter(None, one if whole else one[:1])))]


def is_list(text: str) -> bool:
    """Whether a text is lists and nothing else."""
    blocks = [token.type for token in _PARSER.parse(text) if token.level == 0]
    return bool(blocks) and all("list" in one for one in blocks)


def links(text: str) -> list[tuple[str, str]]:
    """Words and target of each link, in order."""
    found = []
    for token in _PARSER.parse(text):
        href, label = None, ""
        for child in token.children or ():
            if child.type == "link_open":
                href, label = str(child.attrGet("href") or ""), ""
            elif child.type == "link_close" and href is not None:
                found.append((" ".join(label.split()), href))
                href = None
            elif href is not None:
                label += child.content or " "
    return found
