"""Subject access beside the bare look-ups of the same rows, where both stores hold a million rows of other people."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tests.bench import server
from tests.bench.bench import Bench
from tests.bench.findings import Finding, compared
from tests.bench.plan import SUBJECT_ACCESS
from tests.bench.timing import Arm
from tests.rig import deploy
from tests.rig.databases import Connection, Database, Server, project_template

_OURS = "subject_access"
_ROWS = "bare look-ups of the subject's rows"
_MEMORIES = "bare look-up of the memories alone"
_ORG = "00000000-0000-4000-8000-0000000000aa"

# Of a thousand rows: 400 memories, 200 events of theirs, 60 recalls with two items and two subjects each, and 20 decisions of
# the ledger with thought, memory, ledger row, attribution; a trace for every fourth, with its item and its subject.
_LOAD = """
set session_replication_role = replica;
insert into long_term_memory.organizations (id) values ('%(org)s');
insert into long_term_memory.workspace_orgs (workspace_id, org_id) values ('acme', '%(org)s');
insert into long_term_memory.agent_memories (id, org_id, subject_type, subject_id, text, author, source_run_id, created_date)
select md5('m' || i)::uuid, '%(org)s', 'candidate', md5('s' || i %% %(people)s)::uuid, 'prefers a call in the afternoon, ' || i, 'person',
       null, now() - i * interval '1 second'
from generate_series(1, %(thousandths)s * 400) as i;
insert into long_term_memory.memory_events (org_id, memory_id, action, grade)
select '%(org)s', md5('m' || i)::uuid, 'remembered', 'service' from generate_series(1, %(thousandths)s * 200) as i;
insert into long_term_memory.recalls (id, org_id, run_id, query, at)
select md5('r' || i)::uuid, '%(org)s', 'run-' || i, 'when may we call?', now() - i * interval '1 second'
from generate_series(1, %(thousandths)s * 60) as i;
insert into long_term_memory.recall_items (recall_id, org_id, memory_id, rank, score, relevance_source)
select md5('r' || i)::uuid, '%(org)s', md5('m' || (i + k * %(thousandths)s * 60))::uuid, k + 1, 0.5, 'fts'
from generate_series(1, %(thousandths)s * 60) as i cross join generate_series(0, 1) as k;
insert into long_term_memory.recall_subjects (recall_id, org_id, subject_type, subject_id)
select distinct md5('r' || i)::uuid, '%(org)s'::uuid, 'candidate', md5('s' || (i + k * %(thousandths)s * 60) %% %(people)s)::uuid
from generate_series(1, %(thousandths)s * 60) as i cross join generate_series(0, 1) as k;
insert into thoughts (id, content) select md5('t' || i)::uuid, 'decided for candidate ' || i from generate_series(1, %(thousandths)s * 20) as i;
insert into agent_memories (id, thought_id, workspace_id, memory_type, summary, content)
select md5('d' || i)::uuid, md5('t' || i)::uuid, 'acme', 'decision', 'decided ' || i, 'decided for candidate ' || i
from generate_series(1, %(thousandths)s * 20) as i;
insert into agent_decision_ledger (memory_id, workspace_id, step_index, rationale)
select md5('d' || i)::uuid, 'acme', i, 'because of ' || i from generate_series(1, %(thousandths)s * 20) as i;
insert into long_term_memory.decision_subjects (memory_id, org_id, workspace_id, subject_type, subject_id)
select md5('d' || i)::uuid, '%(org)s', 'acme', 'candidate', md5('s' || i %% %(people)s)::uuid from generate_series(1, %(thousandths)s * 20) as i;
insert into agent_memory_recall_traces (id, request_id, workspace_id, query, schema_version)
select md5('x' || i)::uuid, md5('x' || i)::uuid, 'acme', 'which candidate?', '1' from generate_series(1, %(thousandths)s * 5) as i;
insert into agent_memory_recall_items (trace_id, memory_id, rank)
select md5('x' || i)::uuid, md5('d' || i)::uuid, 1 from generate_series(1, %(thousandths)s * 5) as i;
insert into long_term_memory.trace_subjects (trace_id, org_id, subject_type, subject_id)
select md5('x' || i)::uuid, '%(org)s', 'candidate', md5('s' || i %% %(people)s)::uuid from generate_series(1, %(thousandths)s * 5) as i;
set session_replication_role = origin;
"""

_OF_THE_SUBJECT = "org_id = %(org)s and subject_type = 'candidate' and subject_id = %(subject)s"
_LOOK_UPS = (
    f"select * from long_term_memory.agent_memories where {_OF_THE_SUBJECT}",
    "select e.* from long_term_memory.agent_memories m join long_term_memory.memory_events e on e.memory_id = m.id "
    f"where m.{_OF_THE_SUBJECT.replace('and ', 'and m.')}",
    "select i.*, r.* from long_term_memory.agent_memories m join long_term_memory.recall_items i on i.memory_id = m.id "
    f"join long_term_memory.recalls r on r.id = i.recall_id where m.{_OF_THE_SUBJECT.replace('and ', 'and m.')}",
    "select r.* from long_term_memory.recall_subjects s join long_term_memory.recalls r on r.id = s.recall_id "
    f"where s.{_OF_THE_SUBJECT.replace('and ', 'and s.')}",
    "select s.*, m.*, l.* from long_term_memory.decision_subjects s join agent_memories m on m.id = s.memory_id "
    f"join agent_decision_ledger l on l.memory_id = m.id where s.{_OF_THE_SUBJECT.replace('and ', 'and s.')}",
    "select t.* from long_term_memory.trace_subjects s join agent_memory_recall_traces t on t.id = s.trace_id "
    f"where s.{_OF_THE_SUBJECT.replace('and ', 'and s.')}",
    f"select * from long_term_memory.erasures where {_OF_THE_SUBJECT}",
)


def run(bench: Bench, on: Server) -> Iterator[Finding]:
    if not bench.wants("subject-access"):
        return
    database = on.clone(
        "bench_subject_access",
        lambda empty: deploy.apply(empty, "open_brain", "decision_ledger", "long_term_memory"),
        project_template(on),
    )
    thousandths = bench.plan.held // 1000
    people = 4 * thousandths  # a hundred memories each
    try:
        with bench.console.status(f"loading {bench.plan.held:,} rows about {people:,} people"):
            given = {"org": _ORG, "thousandths": thousandths, "people": people}
            database.superuser.execute((_LOAD % given).encode())
            server.tidy(database)
        yield _measured(bench, database, people)
    finally:
        on.remove(database)


def _measured(bench: Bench, database: Database, people: int) -> Finding:
    session = database.connect("service_role")
    subjects = [
        str(one)
        for (one,) in database.rows(
            "select md5('s' || i)::uuid from generate_series(0, %s - 1, %s) as i limit %s",
            (people, max(1, people // bench.plan.questions), bench.plan.questions),
        )
    ]
    held = _check(session, subjects[0])
    title = f"subject access, {held} rows of the subject's"
    arms = [
        Arm(name, _ask(session, queries, subjects), 3 * bench.plan.questions)
        for name, queries in (
            (_OURS, ("select subject_access(%(org)s, 'candidate', %(subject)s)",)),
            (_ROWS, _LOOK_UPS),
            (_MEMORIES, _LOOK_UPS[:1]),
        )
    ]
    return compared(
        "subject-access",
        title,
        bench.plan.held,
        bench.measure(title, arms),
        subject=_OURS,
        baseline=_ROWS,
        bar=SUBJECT_ACCESS,
    )


def _ask(session: Connection, queries: tuple[str, ...], subjects: list[str]) -> Callable[[int], object]:
    def ask(number: int) -> object:
        given = {"org": _ORG, "subject": subjects[number % len(subjects)]}
        return [session.execute(query.encode(), given, prepare=True).fetchall() for query in queries]

    return ask


def _check(session: Connection, subject: str) -> int:
    """Both have to be about the same rows. Answers how many."""
    given = {"org": _ORG, "subject": subject}
    counts = [len(session.execute(query.encode(), given).fetchall()) for query in _LOOK_UPS]
    ((document,),) = session.execute(
        b"select subject_access(%(org)s, 'candidate', %(subject)s)", given
    ).fetchall()
    shown = [len(document[part]) for part in ("memories", "recalls", "decisions", "traces")]
    if shown != [counts[0], counts[3], counts[4], counts[5]] or not all(shown):
        raise AssertionError(
            f"subject access shows {shown}, the tables hold {counts}: the figures mean nothing"
        )
    return sum(counts)
