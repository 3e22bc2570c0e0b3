"""What the demo asks: the folder's own `questions.yaml`, else what its records suggest."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ranked_ledger.errors import InvalidArgumentError

if TYPE_CHECKING:
    from ranked_ledger.adr import AdrFolder

FILE: Final = "questions.yaml"
HOW_MANY: Final = 3


@dataclass(frozen=True, slots=True)
class Question:
    """A question and why it is asked."""

    ask: str
    why: str


def questions(path: Path, folder: AdrFolder) -> list[Question]:
    """Three questions, the first about something that was superseded where there is such a thing."""
    file = path / FILE
    return _written(file) if file.is_file() else _suggested(folder)


def _written(file: Path) -> list[Question]:
    import yaml  # noqa: PLC0415  only needed here

    try:
        entries: Any = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as wrong:
        raise InvalidArgumentError(f"{file} is no YAML: {str(wrong).splitlines()[0]}") from None
    found = []
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, str):
            found.append(Question(entry, ""))
        elif isinstance(entry, dict) and isinstance(entry.get("ask"), str):
            found.append(Question(entry["ask"], str(entry.get("why", ""))))
    if not found:
        raise InvalidArgumentError(
            f"{file} holds no questions", hint="write a list of `ask:` and `why:`, or of texts"
        )
    return found


def _suggested(folder: AdrFolder) -> list[Question]:
    titles = {one.key: one.title for one in folder.records}
    retired = {old for old, _ in folder.supersessions}
    asked: dict[str, Question] = {}
    for old, _ in folder.supersessions[:1]:
        asked.setdefault(old, Question(titles[old], "the title of a record that was superseded"))
    needed = Counter(edge.target for edge in folder.edges if edge.relation == "depends_on")
    named = Counter(key for edge in folder.edges for key in (edge.source, edge.target))
    for key, _ in [*needed.most_common(), *named.most_common()]:
        if key not in retired and len(asked) < HOW_MANY - 1:
            asked.setdefault(key, Question(titles[key], "the title of a record that others build on"))
    for one in folder.records:
        if len(asked) >= HOW_MANY:
            break
        if one.key not in retired:
            asked.setdefault(one.key, Question(one.title, "the title of an early record"))
    return list(asked.values())
