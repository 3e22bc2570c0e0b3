"""Recall of memories beside a bare scan of the same rows: an organization's live memories, of one embedding model."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tests.bench import server
from tests.bench.bench import Bench
from tests.bench.findings import Finding, compared
from tests.bench.plan import DIMENSION, MEMORIES, SMALL_DIMENSION
from tests.bench.timing import Arm
from tests.rig import deploy
from tests.rig.databases import Connection, Database, Server, project_template

_OURS = "recall_memories"
_SCAN = "bare scan"
ORG = "00000000-0000-4000-8000-0000000000aa"

_LOAD = """
insert into long_term_memory.organizations (id) values (%(org)s);
alter table long_term_memory.agent_memories disable trigger user;
insert into long_term_memory.agent_memories (org_id, subject_type, subject_id, text, author, created_date, embedding, embedding_model)
select %(org)s, 'candidate', md5((g.i %% 5000)::text)::uuid,
       (select string_agg((array['prefers', 'afternoon', 'invoice', 'contract', 'remote', 'berlin', 'salary', 'notice', 'call',
                                 'email', 'reference', 'language', 'german', 'python', 'team', 'manager'])[1 + (random() * 15)::int], ' ')
        from generate_series(1, 12) where g.i is not null),
       'person', now() - g.i * interval '20 seconds',
       (select array_agg((random() - 0.5)::real) from generate_series(1, %(dimension)s) where g.i is not null)::vector, 'bench'
from generate_series(1, %(rows)s) as g (i);
alter table long_term_memory.agent_memories enable trigger user;
"""

# What the recall has to look at: the same predicates, the nearest ten by vector alone.
_BARE = """
select m.id from long_term_memory.agent_memories m
where m.org_id = %s and m.redacted_at is null and (m.expires_at is null or m.expires_at > now())
  and (m.author = 'person' or m.review_outcome in ('approved', 'evidence_only')) and m.embedding_model = 'bench'
order by m.embedding <=> %s::vector limit 10
"""
_BY_VECTOR = "select recall_memories(%s, p_query_embedding => %s, p_embedding_model => 'bench')"
_BY_BOTH = (
    "select recall_memories(%s, p_query_embedding => %s, p_embedding_model => 'bench', "
    "p_query => 'may we call in the afternoon?')"
)


def run(bench: Bench, on: Server) -> Iterator[Finding]:
    if not bench.wants("memories"):
        return
    for dimension in (SMALL_DIMENSION, DIMENSION):
        database = _store(bench, on, dimension)
        try:
            yield from _measured(bench, database, dimension)
        finally:
            on.remove(database)


def _store(bench: Bench, on: Server, dimension: int) -> Database:
    database = on.clone(
        f"bench_memories_{dimension}",
        lambda empty: deploy.apply(empty, "long_term_memory"),
        project_template(on),
    )
    rows = bench.plan.memories
    with bench.console.status(f"loading {rows:,} memories of {dimension} dimensions"):
        given = {"org": f"'{ORG}'", "dimension": dimension, "rows": rows}
        database.superuser.execute((_LOAD % given).encode())
        server.tidy(database)
    return database


def _questions(database: Database, dimension: int, many: int) -> list[str]:
    made = database.rows(
        "select (select array_agg((random() - 0.5)::real) from generate_series(1, %s) where g.i is not null)::vector::text "
        "from generate_series(1, %s) as g (i)",
        (dimension, many),
        role="supabase_admin",
    )
    return [vector for (vector,) in made]


def _measured(bench: Bench, database: Database, dimension: int) -> Iterator[Finding]:
    questions = _questions(database, dimension, bench.plan.questions)
    session = database.connect("service_role")
    _check(session, questions[0], bench.plan.memories)
    for way, query in (("by vector", _BY_VECTOR), ("by vector and text", _BY_BOTH)):
        title = f"recall of memories {way}, {dimension} dimensions"
        arms = [
            Arm(_OURS, _ask(session, query, questions), bench.plan.questions),
            Arm(_SCAN, _ask(session, _BARE, questions), bench.plan.questions),
        ]
        yield compared(
            "memories",
            title,
            bench.plan.memories,
            bench.measure(title, arms),
            subject=_OURS,
            baseline=_SCAN,
            bar=MEMORIES,
            vectors="random",
        )


def _ask(session: Connection, query: str, questions: list[str]) -> Callable[[int], object]:
    def ask(number: int) -> object:
        return session.execute(
            query.encode(), (ORG, questions[number % len(questions)]), prepare=True
        ).fetchall()

    return ask


def _check(session: Connection, question: str, rows: int) -> None:
    """Of what nothing came back, or what was not looked at, the time means nothing."""
    ((answer,),) = session.execute(_BY_VECTOR.encode(), (ORG, question)).fetchall()
    found = [hit["memory_id"] for hit in answer["hits"]]
    expected = session.execute(
        b"select m.id::text from long_term_memory.agent_memories m where m.org_id = %s order by "
        b"0.75 * greatest(0, 1 - (m.embedding <=> %s::vector)) "
        b"+ 0.25 * exp(-extract(epoch from now() - m.created_date) / 86400 / 30) desc limit 10",
        (ORG, question),
    ).fetchall()
    if found != [one for (one,) in expected] or not answer["recorded"]:
        raise AssertionError(f"a recall of {rows} memories is not the formula's: the figures mean nothing")
