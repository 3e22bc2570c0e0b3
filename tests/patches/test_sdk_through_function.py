"""The SDK through the function, patched and as it was: the same answers as from the ledger itself, with the access key alone."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

import ranked_ledger as rl
from ranked_ledger.stack import StackInfo
from tests.patches import rig
from tests.patches.patched import database, patched
from tests.rig import deploy
from tests.unit.sdk_drivers import Driver

RULE = "Invoices are immutable once they were sent"
NOTES = "Corrections are credit notes"
LOGS = "Logs are kept for thirty days"
QUESTION = "May a sent invoice still be edited?"

# The trace is written a quarter of a second behind the answer.
LATE_TRACE = (
    (
        "  const { data: trace, error: traceError } = await supabase",
        "  void (async () => {\n  await new Promise((done) => setTimeout(done, 250));\n"
        "  const { data: trace, error: traceError } = await supabase",
    ),
    (
        "  await audit(payload, [returned]);\n",
        "  await audit(payload, [returned]);\n  })().catch(console.error);\n",
    ),
)

MakeMemory = Callable[..., Driver]


@pytest.fixture(scope="module")
def function(
    tmp_path_factory: pytest.TempPathFactory, project: StackInfo, embeddings: str
) -> Iterator[rig.Function]:
    with rig.running(patched(tmp_path_factory.mktemp("patched")), project, embeddings) as function:
        yield function


@pytest.fixture(scope="module")
def original(project: StackInfo, embeddings: str) -> Iterator[rig.Function]:
    """The function as it was before the patch."""
    with rig.running(rig.CONTRACT_FUNCTION, project, embeddings) as function:
        yield function


@pytest.fixture(scope="module")
def bare_function(tmp_path_factory: pytest.TempPathFactory, embeddings: str) -> Iterator[rig.Function]:
    """A patched function of a project without the ledger."""
    folder = patched(tmp_path_factory.mktemp("bare"))
    with rig.served_project(ledger=False) as bare, rig.running(folder, bare, embeddings) as function:
        yield function


@pytest.fixture(params=["sync", "async"])
def memories(request: pytest.FixtureRequest, workspace: str) -> Iterator[MakeMemory]:
    """Makes clients of a function, of either kind, one kind after the other."""
    kind = rl.MemoryFunction if request.param == "sync" else rl.AsyncMemoryFunction
    made: list[Driver] = []
    with asyncio.Runner() as runner:

        def make(function: rig.Function, *, key: str = rig.ACCESS_KEY, **options: Any) -> Driver:
            client = kind(function.url, key, **{"workspace": workspace, "max_retries": 0, **options})
            made.append(Driver(client, runner))
            return made[-1]

        yield make
        for driver in made:
            driver.close()


@pytest.fixture
def memory(memories: MakeMemory, function: rig.Function) -> Driver:
    return memories(function)


@pytest.fixture
def ledger(project: StackInfo, workspace: str, embeddings: str) -> Iterator[rl.RankedLedger]:
    """The ledger itself, with the embedding model of the function."""
    with (
        rl.OpenAICompatibleEmbedder(embeddings, "openai/text-embedding-3-small") as embedder,
        rl.RankedLedger(project.url, project.secret_key, workspace=workspace, embedder=embedder) as ledger,
    ):
        yield ledger


def plain(recall: rl.Recall) -> list[dict[str, Any]]:
    return [hit.model_dump(exclude={"arguments"}) for hit in recall]


def test_what_is_recorded_through_the_function_is_ranked_as_the_ledger_ranks_it(
    memory: Driver, ledger: rl.RankedLedger
) -> None:
    rule = memory.record(
        RULE,
        rationale="auditors diff them",
        alternatives=["edit in place"],
        importance=0.9,
        step=5,
        task="invoicing",
        project="billing",
        confidence=0.7,
    )
    notes = memory.record(NOTES, task="invoicing", project="billing", depends_on=[rule])
    memory.record(LOGS, project="operations")
    assert (rule.step_index, rule.importance, rule.enrolled) == (5, 0.9, True)
    assert (notes.step_index, notes.linked, notes.not_linked) == (6, (rule.memory_id,), ())

    kept = ledger.get(rule)
    assert (kept.rationale, kept.alternatives) == ("auditors diff them", ("edit in place",))
    assert [edge.memory_id for edge in kept.edges_in] == [notes.memory_id]

    found = memory.recall(QUESTION)
    assert (found.embedding, found.policy, found.traced) == ("used", "ranked_ledger", True)
    assert found[0].memory_id == rule.memory_id
    assert len(found) == 3
    assert plain(found) == plain(ledger.recall(QUESTION, preset="published", trace=False))
    assert found[0].explain().relevance.source == "cosine"
    assert RULE in found.to_prompt()

    tuned: dict[str, Any] = {
        "project": "billing",
        "current_step": 40,
        "limit": 5,
        "max_tokens": 300,
        "min_relevance": 0.1,
        "weights": {"relevance": 0.2, "dependency": 0.6},
        "half_life_steps": 5,
        "dependency_saturation": 2,
        "similarity_floor": 0.7,
        "similarity_ceiling": 0.95,
        "fusion": "blend",
        "fusion_weight": 0.3,
    }
    asked = memory.recall(QUESTION, **tuned)
    itself = ledger.recall(QUESTION, preset="published", trace=False, **tuned)
    assert plain(asked) == plain(itself)
    given = {"p_embedding_model": None}
    assert {**asked.arguments, **given} == {**itself.arguments, **given}
    assert LOGS not in asked.to_prompt()


def test_a_preset_is_the_ledgers_through_the_function_too(memory: Driver, ledger: rl.RankedLedger) -> None:
    ledger.record(RULE, summary="A sent invoice is immutable")
    ledger.set_lifecycle(ledger.record(NOTES), "stale")
    for preset in ("published", "tuned"):
        for more in ({}, {"include_stale": False}, {"fusion": "none", "weights": {"summary": 0.4}}):
            asked = memory.recall(QUESTION, preset=preset, **more)
            itself = ledger.recall(QUESTION, trace=False, preset=preset, **more)
            assert plain(asked) == plain(itself), (preset, more)
            assert asked.arguments["p_preset"] == itself.arguments["p_preset"] == preset
            assert len(asked) == (2 if preset == "tuned" and "include_stale" not in more else 1)


def test_one_trace_says_who_asked_what(
    memory: Driver, project: StackInfo, ledger: rl.RankedLedger, workspace: str
) -> None:
    ledger.record(RULE, project="billing")
    found = memory.recall(QUESTION, project="billing", task="invoicing", flow="flow-1", runtime_name="agent")
    with database(project) as rows:
        (trace,) = rows("select * from agent_memory_recall_traces where workspace_id = %s", workspace)
        (item,) = rows("select * from agent_memory_recall_items where trace_id = %s", trace["id"])
    assert trace["request_id"] == found.request_id
    assert [trace[name] for name in ("query", "project_id", "task_id", "flow_id", "runtime_name")] == [
        *(QUESTION, "billing", "invoicing", "flow-1", "agent")
    ]
    assert trace["response_policy"]["recall_policy"] == "ranked_ledger"
    assert float(item["ranking_score"]) == pytest.approx(found[0].score, abs=1e-4)


def test_scopes_are_those_of_the_ledger(memory: Driver, ledger: rl.RankedLedger) -> None:
    personal = ledger.record(RULE, visibility="personal")
    stale = ledger.record(NOTES)
    ledger.set_lifecycle(stale, "stale")
    here = ledger.record(LOGS, project="operations")
    for arguments in (
        {},
        {"include_personal": False},
        {"include_stale": True},
        {"only_confirmed": True},
        {"project": "operations"},
    ):
        itself = ledger.recall(QUESTION, preset="published", trace=False, **arguments)
        assert plain(memory.recall(QUESTION, **arguments)) == plain(itself), arguments
    assert {hit.memory_id for hit in memory.recall(QUESTION)} == {personal.memory_id, here.memory_id}


def test_what_was_superseded_is_recalled_no_more(memory: Driver, ledger: rl.RankedLedger) -> None:
    old, new = memory.record(RULE), memory.record("Invoices may be voided, never edited")
    done = memory.supersede(old, by=new, reason="void flow", actor="legal")
    assert done.changed
    assert (done.old.lifecycle_status, done.new.memory_id) == ("superseded", new.memory_id)
    assert not memory.supersede(old, by=new).changed
    assert [hit.memory_id for hit in memory.recall(QUESTION)] == [new.memory_id]
    detail = ledger.get(old)
    assert detail.successor == new.memory_id
    assert [(one.reason, one.actor) for one in detail.history][-1] == ("void flow", "legal")
    with pytest.raises(rl.LoopError):
        memory.supersede(new, by=old)


def test_what_was_used_is_counted_once(memory: Driver, ledger: rl.RankedLedger) -> None:
    rule, logs = memory.record(RULE), memory.record(LOGS)
    found = memory.recall(QUESTION)
    memory.mark_used(found, rule)
    memory.mark_used(found.request_id, [rule])
    memory.mark_ignored(found, logs, reason="another matter")
    assert (ledger.get(rule).used_count, ledger.get(logs).used_count) == (1, 0)
    (stats,) = (one for one in ledger.policy_stats() if one.recall_policy == "ranked_ledger")
    assert (stats.recall_requests, stats.used_rate, stats.ignored_rate) == (1, 0.5, 0.5)


def test_a_trace_that_is_written_behind_the_answer_is_waited_for(
    memories: MakeMemory, tmp_path: Path, project: StackInfo, embeddings: str, ledger: rl.RankedLedger
) -> None:
    with rig.running(patched(tmp_path, *LATE_TRACE), project, embeddings) as function:
        at_once, patient = memories(function), memories(function, max_retries=3)
        rule = patient.record(RULE)
        found = patient.recall(QUESTION)
        with pytest.raises(rl.NotFoundError, match="in the background"):
            at_once.mark_used(found, rule)
        patient.mark_used(found, rule)
        patient.mark_ignored(patient.recall(QUESTION), rule)
    assert ledger.get(rule).used_count == 1
    (stats,) = (one for one in ledger.policy_stats() if one.recall_policy == "ranked_ledger")
    assert (stats.used_rate, stats.ignored_rate) == (0.5, 0.5)


def test_the_functions_own_search_is_there_beside(memory: Driver, ledger: rl.RankedLedger) -> None:
    rule = memory.record(RULE)
    found = memory.recall_by_vector(QUESTION)
    assert [(one.memory_id, one.memory_type, one.content) for one in found] == [
        (rule.memory_id, "decision", RULE)
    ]
    memory.mark_used(found, found[0])
    memory.recall(QUESTION)
    assert {one.recall_policy for one in ledger.policy_stats()} == {"vector", "ranked_ledger"}


def test_a_repeat_with_the_same_key_stores_nothing_twice(memory: Driver, ledger: rl.RankedLedger) -> None:
    first = memory.record(RULE, idempotency_key="mine")
    again = memory.record(RULE, idempotency_key="mine")
    assert (again.memory_id, again.replayed) == (first.memory_id, True)
    elsewhere = memory.with_options(workspace=f"w-{uuid4()}").record(RULE, idempotency_key="mine")
    assert elsewhere.memory_id != first.memory_id
    assert len(ledger.recall(QUESTION, trace=False)) == 1


def test_what_cannot_be_linked_is_named(memory: Driver) -> None:
    nobody = uuid4()
    recorded = memory.record(RULE, depends_on=nobody)
    (missing,) = recorded.not_linked
    assert (missing.depends_on, missing.code, recorded.linked) == (nobody, "RL404", ())
    assert recorded.enrolled


def test_an_empty_workspace_answers_no_hits_and_a_hint(memory: Driver) -> None:
    found = memory.recall(QUESTION)
    assert not found
    assert "no decisions" in found.hint


def test_a_refusal_is_an_error_of_ours(memory: Driver, memories: MakeMemory, function: rig.Function) -> None:
    secret = "sk-" + "a1" * 12
    with pytest.raises(rl.AuthenticationError, match="MCP_ACCESS_KEY") as refused:
        memories(function, key="wrong-key").recall(QUESTION)
    assert "wrong-key" not in str(refused.value)
    with pytest.raises(rl.InvalidArgumentError, match="secret") as caught:
        memory.record(f"The key is {secret}")
    assert caught.value.status == 422
    with pytest.raises(rl.InvalidArgumentError, match="secret"):
        memory.record(RULE, rationale=secret)
    with pytest.raises(rl.InvalidArgumentError, match=r"similarity_floor.*\[22023, HTTP 400\]"):
        memory.recall(QUESTION, similarity_floor=0.9, similarity_ceiling=0.1)
    with pytest.raises(rl.NotFoundError):
        memory.mark_used(uuid4(), uuid4())
    with pytest.raises(rl.NotFoundError):
        memory.supersede(uuid4(), by=memory.record(RULE))
    with pytest.raises(rl.NotFoundError):
        memory.supersede(memory.record(NOTES), by=uuid4())


def test_no_log_of_either_side_shows_the_access_key(
    memory: Driver, function: rig.Function, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    memory.recall(QUESTION)
    assert "/recall" in caplog.text
    assert rig.ACCESS_KEY not in caplog.text + function.log()


def test_another_path_is_no_function(memories: MakeMemory, function: rig.Function) -> None:
    elsewhere = rig.Function(function.url.removesuffix("/agent-memory-api"), 0, function.http, Path())
    with pytest.raises(rl.UnexpectedResponseError, match="/functions/v1/agent-memory-api"):
        memories(elsewhere).recall(QUESTION)
    assert memories(function).health()["ok"]


def test_an_unpatched_function_says_what_it_lacks(
    memories: MakeMemory, original: rig.Function, ledger: rl.RankedLedger
) -> None:
    old, new = ledger.record(RULE), ledger.record(NOTES)
    memory = memories(original)
    for ask in (
        lambda: memory.recall(QUESTION),
        lambda: memory.record(LOGS),
        lambda: memory.supersede(old, by=new),
    ):
        with pytest.raises(rl.NotPatchedError, match="ranked-ledger patch apply"):
            ask()
    assert ledger.get(old).lifecycle_status == "active"
    assert len(memory.recall_by_vector(QUESTION)) == 2


def test_without_an_embedding_service_a_recall_goes_by_words(
    memories: MakeMemory, tmp_path: Path, project: StackInfo, ledger: rl.RankedLedger
) -> None:
    ledger.record(RULE)
    with rig.absent_embeddings() as absent, rig.running(patched(tmp_path), project, absent) as function:
        memory = memories(function)
        found = memory.recall(QUESTION)
        assert (found.embedding, found[0].relevance_source) == ("failed", "fts")
        # as before the patch: the function stores nothing that it could not embed
        with pytest.raises(rl.APIError, match=r"function's own log.*embedding service"):
            memory.record(LOGS)


def test_a_copy_that_wants_other_fields_is_given_them(
    memories: MakeMemory, tmp_path: Path, project: StackInfo, embeddings: str
) -> None:
    folder = patched(tmp_path, ('sensitivity: z.string().default("normal")', 'sensitivity: z.enum(["low"])'))
    with rig.running(folder, project, embeddings) as function:
        with pytest.raises(rl.InvalidArgumentError, match="sensitivity"):
            memories(function).recall(QUESTION)
        assert not memories(function, extra_body={"sensitivity": "low"}).recall(QUESTION)


def test_a_project_without_the_ledger_is_told_what_to_push(
    memories: MakeMemory, bare_function: rig.Function
) -> None:
    with pytest.raises(rl.NotInstalledError, match="supabase db push") as caught:
        memories(bare_function).recall(QUESTION)
    assert type(caught.value) is rl.NotInstalledError


def test_the_example_of_the_readme_runs_as_it_stands(
    function: rig.Function, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AGENT_MEMORY_URL", function.url)
    monkeypatch.setenv("MCP_ACCESS_KEY", rig.ACCESS_KEY)
    readme = (deploy.REPOSITORY / "README.md").read_text(encoding="utf-8")
    examples = re.findall(r"^```py\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL)
    (example,) = [one for one in examples if "MemoryFunction" in one]
    exec(compile(example, "README.md", "exec"), {})
    shown, _, prompt = capsys.readouterr().out.partition("<decisions-")
    assert shown.startswith("score ")
    assert "Invoices are immutable once sent (because: auditors diff them)" in prompt
