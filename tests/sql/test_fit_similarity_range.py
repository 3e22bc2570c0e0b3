"""Which cosines count as 0 and as 1 is measured on the workspace's own vectors, and comes out the same for all who look."""

from __future__ import annotations

import itertools
import math
import random
import time
from collections.abc import Iterator, Sequence
from typing import Any

import psycopg
import pytest

from tests.rig import hosts
from tests.rig.databases import Database, Server
from tests.sql.rpc import Ledger

DIMENSION = 384
ROUNDING = 3e-4  # copies hold half precision, and the kept range four decimals
MANY = 20_000
SECONDS = 5.0

Numbers = Sequence[float]


@pytest.fixture(scope="module")
def database(server: Server) -> Iterator[Database]:
    made = hosts.ledger_host(server, hosts.Port(dimension=DIMENSION))
    yield made
    server.remove(made)


@pytest.fixture
def ledger(database: Database, request: pytest.FixtureRequest) -> Ledger:
    """A workspace of the test's own."""
    return Ledger(database, workspace=request.node.name)


def text(numbers: Numbers) -> str:
    return f"[{','.join(map(repr, numbers))}]"


def drawn(seed: object, count: int, dimension: int = DIMENSION, spread: float = 1.0) -> list[list[float]]:
    """Vectors about one direction, so that their cosines lie together as those of real models do."""
    rand = random.Random(str(seed))
    middle = [rand.gauss(0, 1) for _ in range(dimension)]
    return [[one + spread * rand.gauss(0, 1) for one in middle] for _ in range(count)]


def record(ledger: Ledger, vectors: Sequence[Numbers | None], name: str = "decision") -> list[str]:
    batch = [
        {"content": f"{ledger.workspace} {name} {place}", "task_id": f"t{place % 3}"}
        | ({} if one is None else {"embedding": text(one), "embedding_model": "m"})
        for place, one in enumerate(vectors)
    ]
    written = ledger("record_decisions", decisions=batch)["decisions"]
    return [str(one["memory_id"]) for one in written]


def fit(ledger: Ledger, **arguments: Any) -> dict[str, Any]:
    answer = ledger("fit_similarity_range", embedding_model="m", **arguments)
    assert isinstance(answer, dict)
    return answer


def cosine(a: Numbers, b: Numbers) -> float:
    return sum(map(float.__mul__, a, b)) / (math.hypot(*a) * math.hypot(*b))


def percentile(values: Sequence[float], share: float) -> float:
    """Between the two nearest ranks, as percentile_cont reads it."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    below, above = ordered[math.floor(place)], ordered[math.ceil(place)]
    return below + (above - below) * (place - math.floor(place))


def expected(vectors: Sequence[Numbers]) -> tuple[float, float]:
    cosines = [cosine(a, b) for a, b in itertools.combinations(vectors, 2) if len(a) == len(b)]
    return max(-1.0, 2 * percentile(cosines, 0.01) - percentile(cosines, 0.5)), percentile(cosines, 0.999)


def kept(ledger: Ledger) -> list[dict[str, Any]]:
    ranges = ledger("get_workspace_settings")["similarity_ranges"]
    assert isinstance(ranges, list)
    return ranges


@pytest.mark.parametrize(("count", "spread"), [(10, 1.0), (11, 0.3), (60, 2.0), (120, 0.5)])
def test_the_range_is_the_percentiles_of_every_pair(ledger: Ledger, count: int, spread: float) -> None:
    vectors = drawn(count, count, spread=spread)
    record(ledger, vectors)
    answer = fit(ledger)
    fitted = answer["fitted"]
    assert (fitted["vectors"], fitted["pairs"]) == (count, count * (count - 1) // 2)
    assert (fitted["floor"], fitted["ceiling"]) == pytest.approx(expected(vectors), abs=ROUNDING)
    assert answer["similarity_ranges"] == kept(ledger)
    assert kept(ledger) == [
        {"embedding_model": "m", "floor": fitted["floor"], "ceiling": fitted["ceiling"]},
    ]
    assert answer["changed"] is True


def test_the_second_look_sees_the_same_and_changes_nothing(ledger: Ledger) -> None:
    record(ledger, drawn(1, 40))
    first = fit(ledger, sample=20)
    assert first["fitted"]["vectors"] == 20
    assert fit(ledger, sample=20) == first | {"changed": False}
    assert fit(ledger)["fitted"]["vectors"] == 40


def test_the_sample_is_spread_over_the_ledger(ledger: Ledger) -> None:
    """Two matters of different directions, one after the other: a sample of the beginning would know one of them."""
    for matter in ("early", "late"):
        record(ledger, drawn(matter, 40, spread=0.1), name=matter)
    fitted = fit(ledger, sample=20)["fitted"]
    assert fitted["ceiling"] > 0.9
    assert fitted["floor"] < 0.3, "pairs across both matters are in it"


def test_a_recall_by_the_model_is_weighed_in_what_was_measured(ledger: Ledger) -> None:
    vectors = drawn(2, 30, spread=0.4)
    record(ledger, vectors)
    ask = {"query_embedding": text(vectors[0]), "embedding_model": "m", "match_count": 30, "trace": False}
    before = ledger("recall_decisions", **ask)["hits"]
    fitted = fit(ledger)["fitted"]
    after = ledger("recall_decisions", **ask)
    assert (after["arguments"]["p_similarity_floor"], after["arguments"]["p_similarity_ceiling"]) == (
        fitted["floor"],
        fitted["ceiling"],
    )

    def spread(hits: list[dict[str, Any]]) -> float:
        others = [hit["relevance"] for hit in hits if hit["similarity"] < 0.999]
        return float(max(others) - min(others))

    assert spread(after["hits"]) > 2 * spread(before), "what lay together is told apart"


def test_vectors_of_another_workspace_do_not_count(ledger: Ledger) -> None:
    vectors = drawn(3, 12, spread=0.2)
    record(ledger, vectors)
    alone = fit(ledger)["fitted"]
    other = Ledger(ledger.database, workspace=f"{ledger.workspace} another")
    record(other, drawn(4, 50, spread=3.0))
    assert fit(ledger)["fitted"] == alone
    assert kept(other) == []


def test_decisions_without_a_vector_do_not_count(ledger: Ledger) -> None:
    vectors = drawn(5, 12)
    record(ledger, vectors)
    alone = fit(ledger)["fitted"]
    record(ledger, [None] * 15, name="without")
    assert fit(ledger)["fitted"] == alone


def test_one_that_was_forgotten_does_not_count(ledger: Ledger) -> None:
    vectors = drawn(6, 12)
    ids = record(ledger, vectors)
    ledger("forget_decision", memory_id=ids[0])
    fitted = fit(ledger)["fitted"]
    assert fitted["vectors"] == 11
    assert (fitted["floor"], fitted["ceiling"]) == pytest.approx(expected(vectors[1:]), abs=ROUNDING)


def test_one_that_was_superseded_counts(ledger: Ledger) -> None:
    ids = record(ledger, drawn(7, 10))
    ledger("supersede_decision", old=ids[0], new=ids[1])
    assert fit(ledger)["fitted"]["vectors"] == 10, "a model spreads the cosines of retired decisions as well"


@pytest.mark.parametrize("count", [0, 1, 9])
def test_fewer_than_ten_vectors_say_nothing(ledger: Ledger, count: int) -> None:
    record(ledger, [*drawn(8, count), None])
    refused = ledger.refused("22023", "fit_similarity_range", embedding_model="m")
    assert f"{count} decisions" in str(refused.message_primary)
    assert "set_similarity_range" in str(refused.message_hint)
    assert kept(ledger) == []


def test_vectors_of_zeros_say_nothing(ledger: Ledger) -> None:
    """A host may store them; they have no direction."""
    ids = record(ledger, drawn(9, 12))
    assert fit(ledger)["fitted"]["vectors"] == 12
    ledger.database.owner.execute(
        "update thoughts t set embedding = %s::vector from agent_memories m where m.thought_id = t.id and m.id = any (%s::uuid[])",
        (text([0.0] * DIMENSION), ids[:3]),
    )
    ledger.refused("22023", "fit_similarity_range", embedding_model="m")
    assert len(kept(ledger)) == 1, "what was measured before stays"


@pytest.mark.parametrize("spread", [0.0, 1e-3], ids=["the same", "nearly the same"])
def test_ten_times_the_same_vector_says_nothing(ledger: Ledger, spread: float) -> None:
    record(ledger, drawn(10, 12, spread=spread))
    refused = ledger.refused("22023", "fit_similarity_range", embedding_model="m")
    assert "10 different ones" in str(refused.message_primary)


def test_copies_of_a_text_lie_at_the_ceiling_and_not_beyond_it(ledger: Ledger) -> None:
    """Rounded to half precision, a vector's product with itself is a little more, or less, than 1."""
    for seed in range(6):
        one = Ledger(ledger.database, workspace=f"{ledger.workspace} {seed}")
        record(one, [vector for vector in drawn(f"twins {seed}", 6) for _ in range(2)])
        fitted = fit(one)["fitted"]
        assert 0.999 <= fitted["ceiling"] <= 1
        assert fitted["floor"] < fitted["ceiling"]


@pytest.mark.parametrize("sample", [None, 9, 0, -1, 2001])
def test_a_sample_has_a_size(ledger: Ledger, sample: int | None) -> None:
    refused = ledger.refused("22023", "fit_similarity_range", embedding_model="m", sample=sample)
    assert "p_sample is a number from 10 to 2,000" in str(refused.message_primary)


@pytest.mark.parametrize("sample", [10, 2000])
def test_the_smallest_and_the_largest_sample(ledger: Ledger, sample: int) -> None:
    record(ledger, drawn(11, 14))
    assert fit(ledger, sample=sample)["fitted"]["vectors"] == min(14, sample)


@pytest.mark.parametrize("model", ["", "  ", None, "m" * 1_001])
def test_a_model_has_a_name(ledger: Ledger, model: str | None) -> None:
    record(ledger, drawn(12, 10))
    ledger.refused("22023", "fit_similarity_range", embedding_model=model)


@pytest.mark.parametrize("workspace", ["", " ", None, "w" * 1_001], ids=["empty", "blank", "none", "long"])
def test_a_workspace_has_a_name(ledger: Ledger, workspace: str | None) -> None:
    ledger.refused("22023", "fit_similarity_range", workspace_id=workspace, embedding_model="m")


@pytest.mark.parametrize("role", ["anon", "authenticated"])
def test_a_person_may_not_measure(ledger: Ledger, role: str) -> None:
    record(ledger, drawn(13, 10))
    with ledger.database.connect(role) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
        Ledger(ledger.database, ledger.workspace, connection)("fit_similarity_range", embedding_model="m")


def test_only_vectors_of_one_dimension_are_compared(server: Server) -> None:
    """A host whose column has no dimension holds those of several models."""
    made = hosts.ledger_host(server, hosts.Port(dimension=DIMENSION))
    try:
        made.superuser.execute(
            "do $$ declare i record; begin for i in select indexrelid::regclass as name from pg_index"
            " where indrelid = 'public.thoughts'::regclass and pg_get_indexdef(indexrelid) ~ 'embedding'"
            " loop execute format('drop index %s', i.name); end loop; end $$"
        )
        made.superuser.execute("alter table thoughts alter column embedding type vector")
        ledger = Ledger(made, workspace="several")
        vectors = [*drawn("three", 7, dimension=3), *drawn("four", 8, dimension=4)]
        record(ledger, vectors)
        fitted = fit(ledger)["fitted"]
        assert (fitted["vectors"], fitted["pairs"]) == (15, 7 * 6 // 2 + 8 * 7 // 2)
        assert (fitted["floor"], fitted["ceiling"]) == pytest.approx(expected(vectors), abs=2e-3)
    finally:
        server.remove(made)


def test_twenty_thousand_vectors_are_sampled_quickly(ledger: Ledger) -> None:
    """Written where they are read: to record as many takes a minute."""
    ledger.database.superuser.execute(
        """insert into ranked_ledger.decision_vectors (row_no, workspace_key, embedding)
           select 1000000 + n, ranked_ledger.workspace_key(%(name)s), v.embedding
           from generate_series(1, %(many)s::int) as n
           join (select k, l2_normalize((
                   select array_agg(2 + sin(k * 7919 + i * 104729) order by i) from generate_series(1, %(dimension)s::int) as i
                 )::real[]::vector)::halfvec as embedding from generate_series(0, 996) as k) as v on v.k = n %% 997""",
        {"name": ledger.workspace, "many": MANY, "dimension": DIMENSION},
    )
    began = time.monotonic()
    fitted = fit(ledger)["fitted"]
    assert time.monotonic() - began < SECONDS
    assert (fitted["vectors"], fitted["pairs"]) == (300, 44_850)
    assert 0 < fitted["floor"] < fitted["ceiling"] <= 1
