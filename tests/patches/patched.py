"""The contract's function with the patch applied, and what its tests say to it over and over."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import psycopg
from psycopg.rows import dict_row

from ranked_ledger import patching
from ranked_ledger.stack import StackInfo
from tests.patches import rig

Rows = Callable[..., list[dict[str, Any]]]

LISTS = set("outputs lessons constraints unresolved_questions next_steps failures artifacts".split())


def patched(into: Path, *changes: tuple[str, str]) -> Path:
    """A patched copy of the contract's function, other than it by what `changes` replace before the patch."""
    folder = rig.copied(into)
    entry = folder / "index.ts"
    text = entry.read_text(encoding="utf-8")
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    entry.write_text(text, encoding="utf-8")
    patching.apply(folder, type_check=False)
    return folder


@contextmanager
def database(project: StackInfo) -> Iterator[Rows]:
    """Asks the database itself."""
    with psycopg.connect(project.db_url, autocommit=True, row_factory=dict_row) as owner:
        yield lambda query, *values: owner.execute(query, values).fetchall()


def body(workspace: str, **more: object) -> dict[str, Any]:
    return {"schema_version": "1", "workspace_id": workspace, "runtime": {"name": "pytest"}, **more}


def question(workspace: str, query: str, **more: object) -> dict[str, Any]:
    """A ranked one, of what nobody has confirmed too."""
    asked = {"recall_policy": "ranked_ledger", "scope": {"include_unconfirmed": True}, **more}
    return body(workspace, query=query, **asked)


def ask(function: rig.Function, workspace: str, query: str, **more: object) -> httpx.Response:
    return function.http.post("/recall", json=question(workspace, query, **more))


def recall(function: rig.Function, workspace: str, query: str, **more: object) -> dict[str, Any]:
    answer = ask(function, workspace, query, **more)
    assert answer.status_code == 200, answer.text
    return answer.json()


def writing(workspace: str, *decisions: object, confidence: float = 0.5, **more: Any) -> dict[str, Any]:
    """The body of a write-back."""
    lists = {name: more.pop(name) for name in LISTS & more.keys()}
    written = {"decisions": decisions, **lists}
    return body(workspace, memory_payload=written, provenance={"confidence": confidence}, **more)


def write(function: rig.Function, workspace: str, *decisions: object, **more: Any) -> dict[str, Any]:
    answer = function.http.post("/writeback", json=writing(workspace, *decisions, **more))
    assert answer.status_code == 200, answer.text
    return answer.json()


def ids(answer: dict[str, Any]) -> list[str]:
    return [memory["memory_id"] for memory in answer["memories"]]
