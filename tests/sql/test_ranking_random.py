"""Ranked recall of random ledgers, changed at random and asked again: always the oracle's answer.

A failure names its seed: `pytest tests/sql/test_ranking_random.py -k 'seed17'`, with `--ranking-seeds 18` or more.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from tests.rig.databases import Connection, Database
from tests.sql.random_ledgers import World, write_ledger
from tests.sql.ranking_run import Run


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seed" in metafunc.fixturenames:
        seeds = range(metafunc.config.getoption("--ranking-seeds"))
        metafunc.parametrize("seed", seeds, ids=[f"seed{seed}" for seed in seeds])


def ledger_of(dimension: int, *sizes: int) -> Callable[[Connection, random.Random], World]:
    return lambda connection, rand: write_ledger(
        connection, rand, dimension=dimension, rows=rand.choice(sizes)
    )


def test_a_changed_ledger_is_recalled_as_the_oracle_says(
    ledger_host: Callable[..., Database], seed: int
) -> None:
    dimension = 384 if seed % 4 == 3 else 8
    Run(ledger_host(dimension=dimension), seed, ledger_of(dimension, 1, 5, 60, 60, 100, 150)).go(rounds=24)


@pytest.mark.parametrize("large_seed", [1])
def test_a_ledger_of_thousands_is_recalled_as_the_oracle_says(
    ledger_host: Callable[..., Database], large_seed: int
) -> None:
    """Where not every vector in scope is looked at, what is near and far has to be told apart by bounds."""
    Run(ledger_host(dimension=8), large_seed, ledger_of(8, 2200)).go(rounds=8)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("large_seed", range(100, 110))
def test_many_ledgers_of_thousands_are_recalled_as_the_oracle_says(
    ledger_host: Callable[..., Database], large_seed: int
) -> None:
    dimension = 384 if large_seed % 3 == 0 else 8
    Run(ledger_host(dimension=dimension), large_seed, ledger_of(dimension, 2100, 3000, 6000)).go(rounds=12)
