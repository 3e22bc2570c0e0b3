"""What the package exports, and that what its docstrings show is true."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import ranked_ledger
from ranked_ledger import errors

CORE = [
    "arguments",
    "asking",
    "async_client",
    "async_memory",
    "async_stewardship",
    "batches",
    "calls",
    "calling",
    "client",
    "disclosure",
    "embeddings",
    "errors",
    "explanation",
    "function.client",
    "function.session",
    "memories",
    "memory",
    "memory_calls",
    "memory_session",
    "models",
    "paging",
    "prompts",
    "recalling",
    "recalls",
    "recording",
    "retry",
    "running",
    "session",
    "settings",
    "stewardship",
    "timeline",
    "traces",
    "upkeep",
    "wire",
    "wording",
]


def imports() -> dict[str, str]:
    """The public names as a type checker reads them, each with its module."""
    tree = ast.parse(Path(ranked_ledger.__file__).read_text(encoding="utf-8"))
    return {
        alias.asname or alias.name: node.module or ""
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ranked_ledger.")
        for alias in node.names
    }


def test_the_exported_names_are_all_public_names_in_order() -> None:
    exported = list(ranked_ledger.__all__)
    assert set(exported) == set(imports()) | {"__version__"}
    assert len(exported) == len(set(exported))
    assert set(exported) <= set(dir(ranked_ledger))


def test_a_name_is_the_one_that_a_type_checker_sees() -> None:
    for name, module in imports().items():
        assert getattr(ranked_ledger, name) is vars(importlib.import_module(module))[name], name
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = ranked_ledger.Nothing


def test_importing_the_package_loads_nothing_yet() -> None:
    program = "import ranked_ledger, sys; sys.exit(bool({'httpx', 'pydantic'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_the_version_is_that_of_the_package() -> None:
    assert ranked_ledger.__version__ == version("ranked-ledger")


def test_every_exported_name_is_described() -> None:
    bare = [
        name
        for name in ranked_ledger.__all__
        if inspect.isclass(getattr(ranked_ledger, name)) and not getattr(ranked_ledger, name).__doc__
    ]
    assert bare == []


def test_the_drawn_tree_is_the_tree_of_classes() -> None:
    drawn: list[tuple[str, str | None]] = []
    above: list[str] = []
    for line in (errors.__doc__ or "").splitlines():
        if found := re.match(r"    ([│├└─ ]*)(\w+Error)\b", line):
            depth = len(found[1]) // 4
            above[depth:] = [found[2]]
            drawn.append((found[2], above[depth - 1] if depth else None))
    classes = {
        name: value
        for name, value in vars(errors).items()
        if inspect.isclass(value) and issubclass(value, errors.RankedLedgerError)
    }
    assert {name for name, _ in drawn} == set(classes)
    for name, parent in drawn:
        assert parent is None or classes[name].__bases__[0] is classes[parent]


@pytest.mark.parametrize("name", CORE)
def test_the_examples_of_the_docstrings_hold(name: str) -> None:
    module = importlib.import_module(f"ranked_ledger.{name}")
    names = {public: getattr(ranked_ledger, public) for public in ranked_ledger.__all__}
    failed, _ = doctest.testmod(module, extraglobs=names, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert failed == 0
