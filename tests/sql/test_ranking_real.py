"""Ranked recall of real decisions: always the oracle's answer, by the published formula and by the tuned preset.

The data lies beside the repository: where it is not there, this is skipped.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest

from tests.rig import hosts
from tests.rig.databases import Database, Server
from tests.sql.random_ledgers import Call
from tests.sql.ranking_oracle import assert_matches, assert_recalls
from tests.sql.ranking_run import Run
from tests.sql.real_ledgers import DATA, DIMENSION, RealWorld, streams, write_real_ledger

pytestmark = pytest.mark.skipif(
    not DATA.is_dir(), reason="the decisions of public projects are not beside this checkout (../shared/data)"
)
PRESETS = ("published", "tuned")


@pytest.fixture(scope="module")
def database(server: Server) -> Iterator[Database]:
    pytest.importorskip("wordllama")
    made = hosts.ledger_host(server, hosts.Port(dimension=DIMENSION))
    yield made
    server.remove(made)


@pytest.fixture(scope="module")
def world(database: Database) -> RealWorld:
    """All of them: 17 streams in one workspace."""
    return write_real_ledger(database.service, random.Random(0), of=streams())


def ask_as_people_do(database: Database, world: RealWorld, sample: random.Random, questions: int) -> None:
    """Each in its stream and in all of them, by its words, by its vector and by both."""
    for question in sample.sample(list(world.questions), questions):
        text = question["query"]
        for preset in PRESETS:
            call: dict[str, object] = {
                "p_workspace_id": world.workspace,
                "p_preset": preset,
                "p_match_count": sample.choice((1, 5, 10, 50)),
            }
            asked = sample.choice(("words", "vector", "both", "both"))
            if asked != "vector":
                call["p_query"] = text
            if asked != "words":
                call |= {"p_query_embedding": world.embedded(text)}
                if sample.random() < 0.5:
                    call |= {"p_similarity_floor": 0.2, "p_similarity_ceiling": 0.7}
            if sample.random() < 0.5:
                call["p_task_id"] = question["stream"]
            if sample.random() < 0.2:
                call["p_include_superseded"] = True
            found = assert_matches(database.service, Call(call), question["id"])
            assert found
            if sample.random() < 0.2:
                assert_recalls(database.service, Call(call), question["id"])


def test_real_questions_are_answered_as_the_oracle_says(database: Database, world: RealWorld) -> None:
    ask_as_people_do(database, world, random.Random(6), 6)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(10, 14))
def test_many_real_questions_are_answered_as_the_oracle_says(
    database: Database, world: RealWorld, seed: int
) -> None:
    ask_as_people_do(database, world, random.Random(seed), 60)


@pytest.mark.parametrize("seed", [201, 202])
def test_a_changed_ledger_of_real_decisions_is_recalled_as_the_oracle_says(
    ledger_host: Callable[..., Database], seed: int
) -> None:
    """The property test of the made ledgers (test_ranking_random.py), on texts as people write them."""
    pytest.importorskip("wordllama")
    few = random.Random(seed).sample([one for one in streams() if one not in LONG], 3)
    Run(
        ledger_host(dimension=DIMENSION),
        seed,
        lambda connection, rand: write_real_ledger(connection, rand, of=few),
    ).go(rounds=10)


LONG = ("kubernetes/enhancements", "ethereum/EIPs", "swiftlang/swift-evolution")
