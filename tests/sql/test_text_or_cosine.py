"""The relevance that both the long-term memory and a table of the host's own can be searched by."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.rig import hosts
from tests.rig.databases import Database, Server
from tests.sql.memory_rpc import Memories
from tests.sql.rpc import HOSTILE

CHUNKS = """
create table public.chunks (
  id int primary key generated always as identity, body text not null, model text, embedding {vectors}.vector,
  lexemes tsvector generated always as (to_tsvector('pg_catalog.english', body)) stored);
insert into public.chunks (body, model, embedding) values
  ('Call in the afternoon', 'small', '[1,0]'), ('Never call, never write, never call', 'small', '[0.6,0.8]'),
  ('Call after calls', null, null), ('Calls another model', 'large', '[1,0]'), ('A zero vector called', 'small', '[0,0]'),
  ('Opposite', 'small', '[-1,0]'), ('Nothing to see', null, null);
grant select on public.chunks to service_role;
"""

SEARCH = """
select c.body, ranked_ledger.text_or_cosine(
  c.lexemes, c.embedding, c.model = 'small', ranked_ledger.any_word('english', %s), %s) as relevance
from chunks as c order by relevance desc, c.id
"""


@pytest.fixture(scope="module", params=["extensions", "public"])
def host(server: Server, request: pytest.FixtureRequest) -> Iterator[Database]:
    database = hosts.memory_project(server, hosts.Port(vector_schema=request.param))
    database.owner.execute(CHUNKS.format(vectors=request.param))
    yield database
    server.remove(database)


def search(host: Database, query: str | None, vector: str | None) -> dict[str, float]:
    rows = host.service.execute(SEARCH, (query, vector)).fetchall()
    return {body: round(relevance, 6) for body, relevance in rows}


def test_a_hosts_own_chunks_are_searched_on_the_same_terms(host: Database) -> None:
    assert search(host, "when may we call?", "[1,0]") == {
        "Call in the afternoon": 1, "Call after calls": 0.666667, "Never call, never write, never call": 0.6,
        "Calls another model": 0.5, "A zero vector called": 0.5, "Opposite": 0, "Nothing to see": 0,
    }  # fmt: skip
    assert list(search(host, "call", "[1,0]"))[:3] == [
        "Call in the afternoon", "Call after calls", "Never call, never write, never call"]  # fmt: skip


def test_without_a_text_or_a_vector_the_other_one_decides(host: Database) -> None:
    assert search(host, None, "[1,0]")["Call after calls"] == 0
    by_words = search(host, "call", None)
    assert (by_words["Call in the afternoon"], by_words["Never call, never write, never call"]) == (
        0.5,
        0.666667,
    )
    assert set(search(host, None, None).values()) == {0}
    assert set(search(host, "the of", None).values()) == {0}


def test_it_says_what_ts_rank_cd_says_of_any_word(host: Database) -> None:
    body = "red red green " * 40 + "blue"
    ((counted, ranked),) = host.service.execute(
        """select ranked_ledger.text_or_cosine(l, null, false, ranked_ledger.any_word('english', 'green, reds? blue!'), null),
          ranked_ledger.saturate(ts_rank_cd(l, 'red | green | blue'))
        from to_tsvector('english', %s) as l""",
        (body,),
    ).fetchall()
    assert counted == ranked == pytest.approx(121 / 122)


@pytest.mark.parametrize(
    "text", [*HOSTILE, "foo?a=1&b='2' https://x.example/y'z \\ :* !a <-> b | c & d", "", "the"]
)
def test_any_question_has_its_words(host: Database, text: str) -> None:
    ((words, lexemes),) = host.service.execute(
        "select ranked_ledger.any_word('english', %s), tsvector_to_array(to_tsvector('english', %s))",
        (text, text),
    ).fetchall()
    assert sorted(words) == sorted(lexemes)
    ((found,),) = host.service.execute(
        "select ranked_ledger.occurrences(to_tsvector('english', %s), ranked_ledger.any_word('english', %s))",
        (text, text),
    ).fetchall()
    assert (found or 0) >= len(lexemes)
    ((matches,),) = host.service.execute(
        "select to_tsvector('english', %s) @@ ranked_ledger.has_any(ranked_ledger.any_word('english', %s))",
        (text, text),
    ).fetchall()
    assert bool(matches) == bool(lexemes)


def test_a_long_question_is_counted_without_being_looked_for(host: Database) -> None:
    ((most, more),) = host.service.execute(
        """select ranked_ledger.has_any(ranked_ledger.any_word('english', string_agg('w' || n, ' ') filter (where n <= 100))),
          ranked_ledger.has_any(ranked_ledger.any_word('english', string_agg('w' || n, ' ')))
        from generate_series(1, 101) as n"""
    ).fetchall()
    assert most.count("|") == 99
    assert more is None


def test_a_vector_is_weighed_once_and_words_only_where_there_is_none(host: Database) -> None:
    rows: list[tuple[Any, ...]] = host.rows("explain (verbose, costs off) " + SEARCH.replace("%s", "{}").format(
        "'call'", "'[1,0]'"), role="service_role")  # fmt: skip
    plan = "\n".join(line for (line,) in rows)
    output = next(line for line in plan.splitlines() if "<=>" in line)
    assert output.count("<=>") == 1
    assert "text_or_cosine" not in plan  # inlined
    assert output.index("<=>") < output.index("occurrences(")


def test_a_memory_and_a_chunk_of_the_same_words_are_as_relevant(host: Database) -> None:
    memories = Memories(host)
    chunks = host.rows("select body, model, embedding::text from chunks", role="service_role")
    for body, model, embedding in chunks:
        memories.insert(body, author="person", embedding=embedding, embedding_model=model or "")
    for query, vector in (("call me", "[0.9,0.1]"), ("write or call", None), (None, "[0.9,0.1]")):
        vectors = {} if vector is None else {"query_embedding": vector, "embedding_model": "small"}
        hits = memories.as_service().recall(query, match_count=100, **vectors)["hits"]
        assert {hit["text"]: round(hit["relevance"], 6) for hit in hits} == search(host, query, vector)
