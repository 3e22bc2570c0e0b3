"""What the package exports, and that what its docstrings show is true."""

from __future__ import annotations

import doctest
import importlib
import inspect
import re
from importlib.metadata import version
from types import ModuleType

import pytest

import ranked_ledger
from ranked_ledger import errors

CORE = [
    "arguments",
    "asking",
    "async_client",
    "batches",
    "calls",
    "client",
    "embeddings",
    "errors",
    "explanation",
    "models",
    "prompts",
    "recalls",
    "recording",
    "retry",
    "session",
    "settings",
    "timeline",
    "wire",
]


def test_the_exported_names_are_all_public_names_in_order() -> None:
    public = {
        name
        for name, value in vars(ranked_ledger).items()
        if not name.startswith("_") and not isinstance(value, ModuleType)
    }
    exported = list(ranked_ledger.__all__)
    assert set(exported) == public | {"__version__"}
    assert len(exported) == len(set(exported))


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
