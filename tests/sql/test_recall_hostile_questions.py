"""Questions that break things, asked of match_decision_ledger and recall_decisions: the oracle's answer, or a clear error."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

from tests.rig import hosts
from tests.rig.databases import Database, Server
from tests.sql import ranking_oracle
from tests.sql.random_ledgers import as_vector
from tests.sql.ranking_oracle import Workspace
from tests.sql.rpc import HOSTILE, call

DIMENSION = 16
FUNCTIONS = (ranking_oracle.match, ranking_oracle.recall)

# Each is a decision as well, so that its words are there to be found.
TEXTS = (
    *HOSTILE,
    "",
    " \t\r\n\u00a0\u3000",
    "the and of",
    "'",
    "''''",
    '"""',
    "\\",
    "\\\\' \\'",
    "E'\\\\' U&'\\0441' $1 $$ :name %(name)s %%",
    "& | ! : * ( ) <-> <2> ~ @@",
    "!!!invoice & | (((",
    "invoice:*ABCD & 'ledger':1,2A",
    "a\\u0000b \\x00 %00 &#0;",
    "".join(map(chr, (*range(1, 32), 127, 133))),
    "\ufeffinvoice\u200b\u2060 \ufffe \uffff \U0010ffff",
    "🦔🔥 👩‍👩‍👧‍👦 🇪🇺 ✊🏿",
    "שלום עולם مرحبا بالعالم",
    "\u202ereversed\u202c \u2067isolated\u2069",
    "e\u0301 é \u212b Å ﬁ ß İ \u0131",
    "決定は変更できません。請求書",
    "Entscheidung über Rechnungen: unveränderlich",
    "решение, неизменяемость счетов",
    "https://example.org/a\\b?x=1&y='2'|3#(4) user@example.org /etc/pass'wd c:\\temp\\new",
    "1e5 -1.5e-30 0x1F ٣٤ NaN Infinity 2026-11-30",
    "<b onclick='x'>invoice</b> &amp; <!-- -->",
    '{"p_query": null}',
    "null",
    "a-b-c-d'e_f--g __h__ i.j.k",
)

LARGE = {
    "a word that repeats": "decision " * 12_000,
    "distinct words": " ".join(f"word{number}" for number in range(2_000)),
    "100 KB of them": " ".join(f"word{number:036}" for number in range(2_500)),
    "one word": "x" * 100_000,
    "words beyond 2 KB": f"{'y' * 3_000} invoice {'z' * 2_047}",
    "no word": "!&|:*()'\\ " * 10_000,
    "four bytes a character": "🦔 " * 20_000,
    "at the limit": "x " * 131_071 + "ab",
}


@pytest.fixture(scope="module")
def database(server: Server) -> Iterator[Database]:
    made = hosts.ledger_host(server, hosts.Port(dimension=DIMENSION))
    yield made
    server.remove(made)


@pytest.fixture(scope="module")
def asked(database: Database) -> Workspace:
    workspace = Workspace(database, "hostile")
    rand = random.Random(0)
    for text in (*TEXTS, "invoice and ledger"):
        vector = as_vector([rand.gauss(0, 1) for _ in range(DIMENSION)]) if rand.random() < 0.5 else None
        workspace.write(text, vector, summary=text if rand.random() < 0.5 else "invoice")
    database.owner.execute(
        "update agent_decision_ledger set rationale = %s where step_index in (3, 8, 20) and workspace_id = 'hostile'",
        (" ".join(HOSTILE),),
    )
    database.owner.execute(
        "insert into agent_decision_edges (from_memory_id, to_memory_id, relation) select a.memory_id, b.memory_id, 'depends_on'"
        " from agent_decision_ledger a join agent_decision_ledger b using (stream_id)"
        " where a.workspace_id = 'hostile' and a.step_index > b.step_index and b.step_index in (0, 1)"
    )
    return workspace


SOME_VECTOR = as_vector([0.5, -1, 2] + [0.1] * (DIMENSION - 3))


def assert_text_is_understood(workspace: Workspace, text: str, decisions: int) -> None:
    found = workspace.ask(p_query=text, p_match_count=100)
    assert len(found) == decisions
    assert {row["relevance_source"] for row in found} == {"fts"}
    assert all(0 <= row["relevance"] < 1 for row in found)
    workspace.ask(p_query=text, p_query_embedding=SOME_VECTOR, p_fusion="blend", p_match_count=4)
    tuned = workspace.ask(p_preset="tuned", p_query=text, p_match_count=100)
    assert len(tuned) == decisions
    assert all(0 <= row["relevance"] < 1 and 0 <= row["summary_match"] <= 1 for row in tuned)
    workspace.ask(p_preset="tuned", p_query=text, p_query_embedding=SOME_VECTOR, p_match_count=4)


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: ascii(text)[:30])
def test_no_text_breaks_a_recall(asked: Workspace, text: str) -> None:
    assert_text_is_understood(asked, text, len(TEXTS) + 1)


@pytest.mark.parametrize("text", LARGE.values(), ids=LARGE)
def test_no_size_breaks_a_recall(database: Database, text: str, request: pytest.FixtureRequest) -> None:
    workspace = Workspace(database, request.node.name)
    for content in (LARGE["distinct words"][:3_000], "word77 and decision 🦔: " + "x" * 2_000):
        workspace.write(content)
    assert_text_is_understood(workspace, text, 2)


def test_hostile_words_are_found(asked: Workspace) -> None:
    for text in (one for one in TEXTS if any(character.isalpha() for character in one)):
        rows = asked.ask(p_query=text, p_match_count=100, p_min_relevance=0.01)
        assert text in [row["content"] for row in rows] or text in ("the and of", "null"), text


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_text_beyond_the_limit_is_refused(asked: Workspace, function: Callable[..., Any]) -> None:
    for text in ("x" * 262_145, "🦔" * 65_537):
        with pytest.raises(psycopg.errors.InvalidParameterValue, match="p_query"):
            function(asked.db.service, {"p_workspace_id": asked.name, "p_query": text})


@pytest.mark.parametrize("argument", ["query", "project_id", "task_id", "workspace_id"])
@pytest.mark.parametrize("function", ["match_decision_ledger", "recall_decisions"])
def test_a_nul_is_refused_by_postgres_before_it_reaches_us(
    asked: Workspace, function: str, argument: str
) -> None:
    with pytest.raises(psycopg.errors.UntranslatableCharacter):
        call(asked.db.service, function, **{"workspace_id": asked.name, argument: "a\0b"})
    assert asked.ask(p_query="invoice")


@pytest.mark.parametrize("text", [*TEXTS[:8], TEXTS[12], LARGE["one word"], LARGE["four bytes a character"]])
@pytest.mark.parametrize("argument", ["p_project_id", "p_task_id", "p_embedding_model"])
def test_no_name_breaks_a_recall(asked: Workspace, argument: str, text: str) -> None:
    if argument != "p_embedding_model":
        assert asked.ask(**{argument: text}) == []
    elif len(text) < 1_000:
        assert len(asked.ask(p_embedding_model=text, p_query_embedding=SOME_VECTOR)) == 10


# vectors


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("dimension", [1, DIMENSION - 1, DIMENSION + 1, 1536, 16_000])
def test_a_vector_of_another_dimension_is_refused_and_both_are_named(
    asked: Workspace, function: Callable[..., Any], dimension: int
) -> None:
    for value in (1.0, 0.0):
        with pytest.raises(psycopg.Error, match=rf"\b{dimension} dimensions.*\b{DIMENSION}\b") as error:
            function(
                asked.db.service,
                {"p_workspace_id": asked.name, "p_query_embedding": as_vector([value] * dimension)},
            )
        assert error.value.sqlstate == "RL463"
        assert error.value.diag.message_detail == f"{dimension},{DIMENSION}"


@pytest.mark.parametrize("zeros", [as_vector([0.0] * DIMENSION), as_vector([-0.0] * DIMENSION)])
def test_a_vector_of_zeros_counts_as_none(asked: Workspace, zeros: str) -> None:
    for question in ({}, {"p_query": "invoice ledger"}, {"p_query": "invoice", "p_fusion": "max"}):
        assert asked.ask(**question, p_query_embedding=zeros) == asked.ask(**question)


@pytest.mark.parametrize(
    "value", ["nan", "NaN", "inf", "-Infinity", "1e39", "-1e400", "x", "", "1 2", "null"]
)
def test_what_is_no_component_is_refused(asked: Workspace, value: str) -> None:
    vector = "[" + ",".join(["1"] * (DIMENSION - 1) + [value]) + "]"
    with pytest.raises(psycopg.DataError):
        ranking_oracle.match(asked.db.service, {"p_workspace_id": asked.name, "p_query_embedding": vector})
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="embedding"):
        ranking_oracle.recall(asked.db.service, {"p_workspace_id": asked.name, "p_query_embedding": vector})


# Around the ends of half precision (65,504 and 6e-8), of a float's square (1.8e19 and 1e-23), and of a float.
MAGNITUDES = (1, 1e-3, 1e5, 65_504, 65_520, 1e10, 2e19, 1e30, 3e38, 1e-7, 1e-10, 1e-23, 1e-30, 1e-38, 1e-44)


@pytest.fixture(scope="module")
def scaled(database: Database) -> tuple[Workspace, list[list[float]]]:
    """Few directions at many lengths; whatever a cosine of such lengths is, it is what pgvector says."""
    workspace = Workspace(database, "scaled")
    rand = random.Random(1)
    directions = [[rand.uniform(-1, 1) for _ in range(DIMENSION)] for _ in range(6)]
    for number, (direction, magnitude) in enumerate(itertools.product(directions, MAGNITUDES)):
        # every third has one component of that magnitude among others of 1
        values = [value * magnitude for value in direction]
        mixed = [values[place] if place == 2 else value for place, value in enumerate(direction)]
        workspace.write(f"invoice {number}", as_vector(mixed if number % 3 == 0 else values), confidence=0.5)
    for number in range(10):
        workspace.write(f"invoice without {number}", None)
    return workspace, directions


@pytest.mark.parametrize("magnitude", MAGNITUDES)
def test_vectors_of_any_length_are_compared_as_the_reference_does(
    scaled: tuple[Workspace, list[list[float]]], magnitude: float
) -> None:
    workspace, directions = scaled
    for direction in directions[:2]:
        vector = as_vector([value * magnitude for value in direction])
        mixed = as_vector([value * (magnitude if place == 2 else 1) for place, value in enumerate(direction)])
        for count in (1, 4, 1000):
            for asked_for in (vector, mixed):
                rows = workspace.ask(p_query_embedding=asked_for, p_match_count=count)
                assert all(0 <= row["relevance"] <= 1 for row in rows)
            workspace.ask(p_query="invoice", p_query_embedding=vector, p_match_count=count, p_fusion="max")


def test_usual_lengths_leave_the_direction_alone(scaled: tuple[Workspace, list[list[float]]]) -> None:
    workspace, directions = scaled
    for direction in directions:
        rows = workspace.ask(p_query_embedding=as_vector(direction), p_match_count=5, p_w_recency=0)
        assert rows[0]["relevance"] == pytest.approx(1, abs=1e-6)


# numbers


@pytest.mark.parametrize("step", [2_000_000_000, 2_147_483_647, -2_147_483_648, 0])
def test_a_step_at_the_end_of_its_type_is_a_step(asked: Workspace, step: int) -> None:
    for half_life in (None, 1e-290, 5e-324, 1.7e308, 1e9):
        rows = asked.ask(p_query="invoice", p_current_step=step, p_half_life_steps=half_life)
        assert all(0 <= row["recency"] <= 1 for row in rows)


@pytest.mark.parametrize("weight", [0.15, 1e300])
@pytest.mark.parametrize("saturation", [5e-324, 1e-290, 1e-8, 1.7e308])
def test_a_saturation_at_the_end_of_its_type_is_one(
    asked: Workspace, saturation: float, weight: float
) -> None:
    rows = asked.ask(p_dependency_saturation=saturation, p_w_dependency=weight)
    assert rows
    assert all(0 <= row["dependency_boost"] <= 1 for row in rows)


@pytest.mark.parametrize("step", [2_147_483_648, 2**63])
def test_a_step_beyond_its_type_is_refused(asked: Workspace, step: int) -> None:
    for function in FUNCTIONS:
        with pytest.raises((psycopg.errors.NumericValueOutOfRange, psycopg.errors.UndefinedFunction)):
            function(asked.db.service, {"p_workspace_id": asked.name, "p_current_step": step})


@pytest.mark.parametrize("ceiling", [5e-324, 1e-310, 1e-12])
@pytest.mark.parametrize("weight", [0.45, 1e300])
def test_a_range_however_narrow_is_one(asked: Workspace, ceiling: float, weight: float) -> None:
    """Without the oracle, whose plain division is above the largest number for the narrowest."""
    rows = ranking_oracle.match(
        asked.db.service,
        {
            "p_workspace_id": "hostile",
            "p_query_embedding": SOME_VECTOR,
            "p_similarity_floor": 0,
            "p_similarity_ceiling": ceiling,
            "p_w_similarity": weight,
        },
    )
    assert rows
    assert all(row["relevance"] == (row["similarity"] is not None and row["similarity"] > 0) for row in rows)
