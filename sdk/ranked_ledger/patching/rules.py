"""The structural rules that come with this package, and the module that goes with them.

A rule is an ast-grep rule; its `metadata` says what is inserted where, and what a person can do without us.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Final

import yaml

from ranked_ledger.errors import RankedLedgerError

MODULE: Final = "ranked_ledger.ts"
NAME: Final = "rankedLedger"
_FOLDER: Final = "agent-memory-api"


@dataclass(frozen=True)
class Rule:
    """One place of the patch.

    - `id`, `title`: its name in reports. `required`: nothing is written where it is not found.
    - `option`: the name by which it can be left out. `without`: what then does not work.
    - `looks_for`, `near`: what it is, in words, and a pattern for the line that comes nearest to it.
    - `prefer`: texts or rules that choose among several matches, one after the other.
    - `insert`: what goes where, by the match's names. `by_hand`: the lines for a person.
    """

    id: str
    title: str
    ast_grep: Any
    required: bool
    looks_for: str
    near: str
    by_hand: str
    insert: tuple[dict[str, str], ...]
    option: str | None = None
    without: str | None = None
    prefer: tuple[str | dict[str, Any], ...] = ()


def shipped() -> Traversable:
    """The folder of the patch: in the wheel, or in a checkout."""
    packed = resources.files("ranked_ledger") / "_shipped" / "patches" / _FOLDER
    if packed.is_dir():
        return packed
    checkout = Path(__file__).resolve().parents[3] / "patches" / _FOLDER
    if checkout.is_dir():
        return checkout
    raise RankedLedgerError(
        "this package carries no patch", hint="pip install --force-reinstall 'ranked-ledger[patch]'"
    )


@cache
def rules() -> dict[str, Rule]:
    """The rules by their ids."""
    files = sorted((shipped() / "rules").iterdir(), key=lambda file: file.name)
    return {rule.id: rule for rule in (_rule(file.read_text(encoding="utf-8")) for file in files)}


@cache
def module_text() -> str:
    """The TypeScript module, as it is shipped."""
    return (shipped() / MODULE).read_text(encoding="utf-8")


def options() -> dict[str, list[Rule]]:
    """What can be left out, by name."""
    named: dict[str, list[Rule]] = {}
    for rule in rules().values():
        if rule.option is not None:
            named.setdefault(rule.option, []).append(rule)
    return named


def _rule(text: str) -> Rule:
    document = yaml.safe_load(text)
    said = document["metadata"]
    config = {name: document[name] for name in ("rule", "constraints", "utils") if name in document}
    return Rule(
        id=document["id"],
        title=document["message"],
        ast_grep=config,
        required=said["required"],
        looks_for=said["looks_for"],
        near=said["near"],
        by_hand=said["by_hand"].rstrip(),
        insert=tuple(said["insert"]),
        option=said.get("option"),
        without=said.get("without"),
        prefer=tuple(said.get("prefer", ())),
    )
