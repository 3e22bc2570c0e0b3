"""Guards on the plans of recall: a lost index is silent, and costs seconds where there were milliseconds."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator

import pytest
from psycopg import Error

from tests.rig.databases import Connection, Database

DIMENSION = 8
ROWS = 13_000  # more than 10,000 of them in one workspace
WORDS = [f"w{n}" for n in range(300)]
RELATIONS = {
    "thoughts",
    "agent_memories",
    "agent_decision_ledger",
    "agent_decision_edges",
    "standings",
    "postings",
    "decision_vectors",
}

Plan = dict[str, object]


def nodes(plan: Plan) -> Iterator[Plan]:
    yield plan
    for child in plan.get("Plans", []):  # type: ignore[attr-defined]
        yield from nodes(child)


@pytest.fixture(scope="module")
def ledger(server_of: Callable[[int], object]) -> Iterator[Database]:
    """Two workspaces that lie row by row beside each other, one without statistics for the planner's good luck."""
    from tests.rig.hosts import ledger_host

    database = ledger_host(server_of(18), _port())  # type: ignore[arg-type]
    rand = random.Random(3)
    with database.owner.cursor() as cursor:
        with cursor.copy("copy thoughts (id, content, embedding) from stdin") as copy:
            for number in range(ROWS):
                vector = "[" + ",".join(f"{rand.gauss(0, 1):.4f}" for _ in range(DIMENSION)) + "]"
                copy.write_row((_id(1, number), f"thought {number}", vector))
        with cursor.copy(
            "copy agent_memories (id, workspace_id, task_id, memory_type, summary, content, thought_id) from stdin"
        ) as copy:
            for number in range(ROWS):
                text = " ".join(rand.choices(WORDS, k=12))
                task = f"t{number % 10}"
                copy.write_row(
                    (
                        _id(2, number),
                        ("ours", "theirs")[number % 6 == 0],
                        task,
                        "decision",
                        "s",
                        text,
                        _id(1, number),
                    )
                )
        cursor.execute(
            "insert into agent_decision_edges (from_memory_id, to_memory_id, relation)"
            " select f.memory_id, t.memory_id, 'depends_on' from agent_decision_ledger f"
            " join agent_decision_ledger t on t.stream_id = f.stream_id and t.step_index = f.step_index - 1"
            " where f.step_index % 3 = 0"
        )
    yield database
    database.server.remove(database)


def _port() -> object:
    from tests.rig.hosts import Port

    return Port(dimension=DIMENSION)


def _id(kind: int, number: int) -> str:
    return f"00000000-0000-4000-800{kind}-{number:012d}"


def plans_of(connection: Connection, call: str) -> list[Plan]:
    """The plans of every statement that a call runs, those inside functions too."""
    seen: list[Plan] = []

    def note(diagnostic: Error.Diagnostic) -> None:
        text = diagnostic.message_primary or ""
        if "plan:" in text:
            seen.append(json.loads(text.split("plan:", 1)[1])["Plan"])

    connection.add_notice_handler(note)
    try:
        connection.execute(call)
    finally:
        connection.remove_notice_handler(note)
    return seen


@pytest.fixture
def planner(ledger: Database) -> Iterator[Connection]:
    connection = ledger.connect("supabase_admin")
    connection.execute("load 'auto_explain'")
    for name, value in (
        ("auto_explain.log_min_duration", "0"),
        ("auto_explain.log_nested_statements", "on"),
        ("auto_explain.log_format", "json"),
        ("auto_explain.log_parameter_max_length", "0"),
        ("client_min_messages", "log"),
        ("search_path", "public, extensions"),
    ):
        connection.execute("select set_config(%s, %s, false)", (name, value))
    yield connection
    connection.close()


VECTOR = "'[1,0,0,1,0,0,-1,0]'"
CALLS = {
    "neither": ("", {"standings_stream_idx", "standings_merit_idx"}),
    "text": (", 'w1 w2 w3'", {"standings_stream_idx", "postings_pkey"}),
    "vector": (
        f", p_query_embedding => {VECTOR}",
        {
            "standings_stream_idx",
            "standings_row_idx",
            "standings_merit_idx",
            "decision_vectors_workspace_idx",
        },
    ),
    "both": (
        f", 'w1 w2 w3', {VECTOR}",
        {"standings_stream_idx", "postings_pkey", "decision_vectors_workspace_idx"},
    ),
    "tuned": (", p_preset => 'tuned'", {"standings_stream_idx"}),
    "tuned, text": (
        ", 'w1 w2 w3', p_preset => 'tuned'",
        {"standings_stream_idx", "standings_merit_idx", "postings_pkey"},
    ),
    "tuned, both": (
        f", 'w1 w2 w3', {VECTOR}, p_preset => 'tuned'",
        {"standings_stream_idx", "standings_merit_idx", "postings_pkey", "decision_vectors_workspace_idx"},
    ),
    "a task": (
        f", p_task_id => 't3', p_query_embedding => {VECTOR}",
        {"standings_stream_idx", "decision_vectors_pkey"},
    ),
    "not proven": (
        f", p_query_embedding => {VECTOR}, p_exact => false",
        {"standings_stream_idx", "standings_merit_idx", "standings_thought_idx", "thoughts_by_vector"},
    ),
}


@pytest.mark.parametrize("analyzed", [False, True], ids=["no statistics", "analyzed"])
@pytest.mark.parametrize("case", CALLS)
def test_recall_finds_its_rows_by_index(
    ledger: Database, planner: Connection, case: str, analyzed: bool
) -> None:
    if analyzed:
        ledger.superuser.execute("analyze")
    arguments, wanted = CALLS[case]
    call = f"select * from match_decision_ledger('ours'{arguments})"
    for _ in range(2):  # the plans of a session's first call, and those that it keeps
        found = [node for plan in plans_of(planner, call) for node in nodes(plan)]
    scanned = {
        str(node.get("Relation Name"))
        for node in found
        if node["Node Type"] in ("Seq Scan", "Parallel Seq Scan")
    }
    assert not scanned & RELATIONS
    assert wanted <= {str(node.get("Index Name")) for node in found}


def test_many_are_weighed_one_by_one(planner: Connection) -> None:
    """Joined, they were each compared with each: seconds for 9,000, in a host without statistics."""
    every = (
        f"select * from match_decision_ledger('ours', p_query_embedding => {VECTOR}, p_w_dependency => 1e300)"
    )
    found = [node for plan in plans_of(planner, every) for node in nodes(plan)]
    assert "agent_memories" in {node.get("Relation Name") for node in found}
    for node in found:
        if node.get("Relation Name") == "agent_memories":
            assert node.get("Index Name") == "agent_memories_pkey"
            assert "id = " in str(node.get("Index Cond"))


@pytest.mark.parametrize("case", ["text", "tuned, text"])
def test_the_standings_are_read_from_their_index_alone(
    ledger: Database, planner: Connection, case: str
) -> None:
    ledger.superuser.execute("vacuum analyze ranked_ledger.standings, ranked_ledger.postings")
    call = f"select * from match_decision_ledger('ours'{CALLS[case][0]})"
    found = [node for plan in plans_of(planner, call) for node in nodes(plan)]
    alone = {str(node["Index Name"]) for node in found if node["Node Type"] == "Index Only Scan"}
    assert {"standings_stream_idx", "postings_pkey"} <= alone
    postings = [node for node in found if node.get("Index Name") == "postings_pkey"]
    assert {node["Node Type"] for node in postings} == {"Index Only Scan"}
