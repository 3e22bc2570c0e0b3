"""Every method of both clients against PostgreSQL, PostgREST and the gateway: nothing here is written by hand."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import httpx
import psycopg
import pytest
import supabase

import ranked_ledger as rl
from ranked_ledger import arguments, calls
from ranked_ledger.stack import Stack, StackInfo
from tests.contract.conftest import MakeLedger
from tests.unit.sdk_drivers import Driver

CountRows = Callable[[str], int]


def axis(place: int, dimensions: int = 1536) -> list[float]:
    return [1.0 if number == place else 0.0 for number in range(dimensions)]


# --- record -------------------------------------------------------------------------------------------------------


def test_a_decision_is_kept_as_it_was_given(ledger: Driver) -> None:
    ground = ledger.record("Auditors diff invoices")
    made = ledger.record(
        "Invoices are immutable once sent",
        rationale="auditors diff them",
        alternatives=["edit in place", "version them"],
        importance=0.9,
        step=40,
        task="invoicing",
        project="billing",
        summary="immutable invoices",
        depends_on=[ground],
        embedding=axis(1),
        embedding_model="test-model",
        pinned=True,
        visibility="workspace",
        created_by="user",
        flow="f-1",
        runtime_name="pytest",
        metadata={"ticket": 7, "nested": {"ü": [None, True]}},
    )
    found = ledger.get(made)
    assert (found.project_id, found.task_id, found.flow_id) == ("billing", "invoicing", "f-1")
    assert (found.step_index, found.step_settled) == (40, True)
    assert (found.content, found.summary) == ("Invoices are immutable once sent", "immutable invoices")
    assert found.rationale == "auditors diff them"
    assert found.alternatives == ("edit in place", "version them")
    assert (found.importance, found.pinned) == (0.9, True)
    assert (found.visibility, found.created_by) == ("workspace", "user")
    assert found.embedding_model == "test-model"
    assert found.metadata == {"ticket": 7, "nested": {"ü": [None, True]}}
    assert [(edge.memory_id, edge.relation) for edge in found.edges_out] == [(ground.memory_id, "depends_on")]
    assert found.history == ()


def test_steps_count_up_in_their_stream(ledger: Driver) -> None:
    assert [ledger.record(str(n), task="a").step_index for n in range(3)] == [0, 1, 2]
    assert ledger.record("x", task="b").step_index == 0


@pytest.mark.parametrize("visibility", ["personal", "channel", "project", "workspace", "organization"])
def test_every_visibility_of_the_sdk_is_one_of_the_database(ledger: Driver, visibility: str) -> None:
    assert ledger.record("x", visibility=visibility).visibility == visibility


@pytest.mark.parametrize("created_by", ["user", "agent", "system", "import"])
def test_every_author_of_the_sdk_is_one_of_the_database(ledger: Driver, created_by: str) -> None:
    assert ledger.record("x", created_by=created_by).created_by == created_by


def test_a_failed_record_leaves_nothing(ledger: Driver, count_rows: CountRows) -> None:
    with pytest.raises(rl.NotFoundError):
        ledger.record("x", depends_on=uuid4())
    with pytest.raises(rl.DimensionError, match="1536"):
        ledger.record("x", embedding=[1, 2, 3])
    assert count_rows("agent_memories") == 0


# --- idempotency --------------------------------------------------------------------------------------------------


def test_a_repeat_returns_the_first_result(ledger: Driver, count_rows: CountRows) -> None:
    first = ledger.record("x", importance=0.4, idempotency_key="k")
    again = ledger.record("x", importance=0.4, idempotency_key="k")
    assert (first.replayed, again.replayed) == (False, True)
    assert again.memory_id == first.memory_id
    assert count_rows("agent_memories") == 1


def test_two_at_once_give_one_write(stack: StackInfo, workspace: str, count_rows: CountRows) -> None:
    together = threading.Barrier(8)

    def write(_: int) -> rl.Decision:
        with rl.RankedLedger(stack.url, stack.secret_key, workspace=workspace) as ledger:
            together.wait(30)
            return ledger.record("x", idempotency_key="k")

    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(write, range(8)))
    assert len({one.memory_id for one in made}) == 1
    assert sorted(one.replayed for one in made) == [False] + [True] * 7
    assert count_rows("agent_memories") == 1


def test_the_key_in_another_workspace_is_another_decision(ledger: Driver, workspace: str) -> None:
    here = ledger.record("x", idempotency_key="k")
    there = ledger.with_options(workspace=f"{workspace}-other").record("x", idempotency_key="k")
    assert not there.replayed
    assert there.memory_id != here.memory_id


def test_the_key_with_another_request_is_a_conflict(ledger: Driver) -> None:
    ledger.record("x", idempotency_key="k")
    with pytest.raises(rl.ConflictError) as caught:
        ledger.record("y", idempotency_key="k")
    assert caught.value.code == "RL409"


def test_the_key_of_a_forgotten_decision_is_gone(ledger: Driver) -> None:
    ledger.forget(ledger.record("x", idempotency_key="k"))
    with pytest.raises(rl.GoneError) as caught:
        ledger.record("x", idempotency_key="k")
    assert caught.value.code == "RL410"


def test_a_batch_sent_twice_at_once_is_written_once(
    stack: StackInfo, workspace: str, count_rows: CountRows
) -> None:
    together = threading.Barrier(4)
    with rl.RankedLedger(stack.url, stack.secret_key, workspace=workspace) as shared:

        def write(_: int) -> list[UUID]:
            together.wait(30)
            return [one.memory_id for one in shared.record_many(["a", "b", "c"], idempotency_key="k")]

        with ThreadPoolExecutor(4) as pool:
            made = list(pool.map(write, range(4)))
    assert all(ids == made[0] for ids in made)
    assert count_rows("agent_memories") == 3


def test_an_answer_that_was_lost_is_answered_again(
    stack: StackInfo, workspace: str, count_rows: CountRows, monkeypatch: pytest.MonkeyPatch
) -> None:
    class LosesOne(httpx.HTTPTransport):
        left = 1

        def handle_request(self, request: httpx.Request) -> httpx.Response:
            response = super().handle_request(request)
            if request.url.path.endswith("record_decision") and self.left:
                self.left -= 1
                response.close()
                raise httpx.ReadError("the answer was lost")
            return response

    monkeypatch.setattr("ranked_ledger.running.sleep", lambda _: None)
    with httpx.Client(transport=LosesOne()) as http:
        ledger = rl.RankedLedger(stack.url, stack.secret_key, workspace=workspace, http_client=http)
        assert ledger.record("x").replayed
    assert count_rows("agent_memories") == 1


# --- record_many --------------------------------------------------------------------------------------------------


def test_many_come_back_in_order(ledger: Driver, count_rows: CountRows) -> None:
    made = ledger.record_many(rl.NewDecision(f"decision {number}", task="t") for number in range(1_100))
    assert [one.content for one in made] == [f"decision {number}" for number in range(1_100)]
    assert [one.step_index for one in made] == list(range(1_100))
    assert count_rows("agent_memories") == 1_100


def test_a_batch_is_all_or_nothing_and_the_ones_before_it_stay(ledger: Driver, count_rows: CountRows) -> None:
    unknown = uuid4()
    elements = [{"content": "x", "depends_on": [unknown] if n == 700 else []} for n in range(1_000)]
    with pytest.raises(rl.NotFoundError) as caught:
        ledger.record_many(elements, idempotency_key="k")
    assert len(caught.value.written) == 500
    assert count_rows("agent_memories") == 500


def test_a_repeated_run_writes_only_what_is_missing(ledger: Driver, count_rows: CountRows) -> None:
    first = ledger.record_many([f"decision {n}" for n in range(500)], idempotency_key="k")
    again = ledger.record_many([f"decision {n}" for n in range(600)], idempotency_key="k")
    assert [one.memory_id for one in again[:500]] == [one.memory_id for one in first]
    assert [one.replayed for one in again] == [True] * 500 + [False] * 100
    assert count_rows("agent_memories") == 600


# --- recall and its trace -----------------------------------------------------------------------------------------


def test_a_recall_ranks_explains_and_leaves_one_trace(ledger: Driver, count_rows: CountRows) -> None:
    ground = ledger.record("Invoices are immutable once sent", importance=0.9, task="t")
    ledger.record("Invoices may be voided", importance=0.2, task="t", depends_on=ground)
    request_id = uuid4()
    recall = ledger.recall("sent invoices", task="t", request_id=request_id)
    again = ledger.recall("sent invoices", task="t", request_id=request_id)
    assert recall[0].memory_id == ground.memory_id
    assert recall[0].score == max(hit.score for hit in recall)
    assert (recall.traced, recall.replayed, again.replayed) == (True, False, True)
    assert recall.request_id == request_id
    assert count_rows("agent_memory_recall_traces") == 1

    explained = recall[0].explain()
    assert sum(part.points for part in explained.components) == pytest.approx(recall[0].score, abs=1e-6)
    assert sum(part.share for part in explained.components) == pytest.approx(1)
    assert "1 live decision rests on it" in str(explained)
    assert ledger.get(ground).recall_count == 1


def test_every_recall_has_a_trace_of_its_own_unless_told(ledger: Driver, count_rows: CountRows) -> None:
    ledger.record("x")
    ledger.recall("x")
    ledger.recall("x")
    assert not ledger.recall("x", trace=False).traced
    assert count_rows("agent_memory_recall_traces") == 2


def test_one_request_id_at_once_leaves_one_trace(
    ledger: Driver, count_rows: CountRows, stack: StackInfo
) -> None:
    made = ledger.record("invoices")
    request_id = uuid4()
    with rl.RankedLedger(stack.url, stack.secret_key, workspace=ledger.client.workspace) as shared:
        together = threading.Barrier(8)

        def ask(_: int) -> rl.Recall:
            together.wait(30)
            return shared.recall("invoices", request_id=request_id)

        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(ask, range(8)))
    assert {answer.request_id for answer in answers} == {request_id}
    assert all(answer.traced and len(answer) == 1 for answer in answers)
    assert count_rows("agent_memory_recall_traces") == 1
    assert ledger.get(made).recall_count == 1


def test_a_request_id_of_another_workspace_is_a_conflict(ledger: Driver, workspace: str) -> None:
    request_id = ledger.recall("x").request_id
    with pytest.raises(rl.ConflictError):
        ledger.with_options(workspace=f"{workspace}-other").recall("x", request_id=request_id)


def test_an_empty_workspace_answers_no_hits_and_a_hint(ledger: Driver) -> None:
    recall = ledger.recall("anything")
    assert len(recall) == 0
    assert recall.hint


def test_a_vector_is_compared_by_cosine(ledger: Driver) -> None:
    near = ledger.record("a", embedding=axis(1), embedding_model="m")
    ledger.record("b", embedding=axis(2), embedding_model="m")
    (hit,) = ledger.recall("zzz", embedding=axis(1), embedding_model="m", limit=1, fusion="none")
    assert hit.memory_id == near.memory_id
    assert hit.relevance_source == "cosine"
    assert hit.similarity == pytest.approx(1)
    with pytest.raises(rl.DimensionError):
        ledger.recall("x", embedding=[1.0])


def test_every_argument_of_a_recall_is_one_of_the_function(ledger: Driver) -> None:
    old = ledger.record("invoices", task="t", project="p")
    ledger.set_lifecycle(old, "stale")
    recall = ledger.recall(
        "invoices",
        task="t",
        project="p",
        current_step=30,
        limit=5,
        max_tokens=500,
        include_superseded=True,
        preset="published",
        weights=rl.Weights(relevance=1, importance=0, recency=0.5, dependency=0),
        half_life_steps=12.5,
        dependency_saturation=2,
        embedding=axis(3),
        embedding_model="m",
        policy="mine",
    )
    assert recall.policy == "mine"
    assert recall.arguments["p_half_life_steps"] == 12.5
    (hit,) = recall
    assert hit.explain().deduction == pytest.approx(0.30)
    assert "stale, no longer active" in str(hit.explain())


def test_a_prompt_keeps_to_its_budget(ledger: Driver) -> None:
    ledger.record_many(
        rl.NewDecision(f"Invoices: rule {n}. " + "word " * (n * 7 % 60), summary=f"rule {n}")
        for n in range(60)
    )
    for budget in (100, 137, 300, 1000):
        recall = ledger.recall("invoices", limit=60, max_tokens=budget)
        prompt = recall.to_prompt()
        assert len(recall) > 0
        assert -(-len(prompt) // 4) <= budget
        assert len(recall) + len(recall.dropped) == 60


def test_usage_counts_once_per_trace_and_decision(ledger: Driver) -> None:
    used, ignored = ledger.record("invoices a"), ledger.record("invoices b")
    recall = ledger.recall("invoices")
    marked = ledger.mark_used(recall, [used, uuid4()])
    assert (marked.used, len(marked.unknown)) == (1, 1)
    assert ledger.mark_used(recall.request_id, used).already == 1
    assert ledger.mark_ignored(recall, ignored, reason="of no use").ignored == 1
    assert ledger.get(used).used_count == 1
    (stats,) = ledger.policy_stats()
    assert (stats.recall_policy, stats.recall_requests, stats.items_returned) == ("ranked_ledger", 1, 2)
    assert (stats.used_rate, stats.ignored_rate) == (0.5, 0.5)
    assert ledger.policy_stats(since=datetime.now(UTC) + timedelta(hours=1)) == []
    with pytest.raises(rl.NotFoundError):
        ledger.mark_used(uuid4(), used)


def test_traces_are_pruned_by_portions(ledger: Driver) -> None:
    for _ in range(3):
        ledger.recall("x")
    after = datetime.now(UTC) + timedelta(minutes=1)
    pruned = ledger.prune_traces(before=after, limit=2)
    assert (pruned.deleted, pruned.more) == (2, True)
    assert ledger.prune_traces(before=after).deleted == 1


# --- the other verbs ----------------------------------------------------------------------------------------------


def test_a_timeline_is_walked_over_its_pages(ledger: Driver) -> None:
    made = ledger.record_many(rl.NewDecision(str(n), task="t") for n in range(7))
    ledger.set_lifecycle(made[2], "rejected")
    ledger.pin(made[3])
    newest = [one.step_index for one in ledger.walked(ledger.timeline(page_size=3))]
    assert newest == [6, 5, 4, 3, 2, 1, 0]
    oldest = ledger.walked(ledger.timeline(page_size=2, newest_first=False, limit=5))
    assert [one.step_index for one in oldest] == [0, 1, 2, 3, 4]
    assert len(ledger.walked(ledger.timeline(lifecycle="active"))) == 6
    assert len(ledger.walked(ledger.timeline(lifecycle=["active", "rejected"]))) == 7
    assert [one.memory_id for one in ledger.walked(ledger.timeline(pinned=True))] == [made[3].memory_id]
    assert ledger.walked(ledger.timeline(task="other")) == []
    (first, *_) = ledger.walked(ledger.timeline(page_size=3).pages())
    rest = ledger.walked(ledger.timeline(after=first.next))
    assert [one.step_index for one in rest] == [3, 2, 1, 0]


@pytest.mark.parametrize("relation", ["depends_on", "informs", "blocks"])
def test_edges_come_and_go(ledger: Driver, relation: Any) -> None:
    a, b = ledger.record("a"), ledger.record("b")
    assert ledger.link(a, to=b, relation=relation, metadata={"why": "x"}).created
    assert not ledger.link(a, to=b, relation=relation).created
    assert ledger.unlink(a, to=b, relation=relation).removed
    assert not ledger.unlink(a, to=b, relation=relation).removed


def test_a_loop_is_refused_with_its_path(ledger: Driver) -> None:
    a = ledger.record("a")
    b = ledger.record("b", depends_on=a)
    with pytest.raises(rl.LoopError) as caught:
        ledger.link(a, to=b)
    assert str(a.memory_id) in (caught.value.detail or "")


def test_a_decision_is_superseded_and_restored(ledger: Driver) -> None:
    old, new = ledger.record("old"), ledger.record("new")
    done = ledger.supersede(old, by=new, reason="better", actor="me")
    assert (done.old.lifecycle_status, done.changed) == ("superseded", True)
    assert not ledger.supersede(old, by=new).changed
    found = ledger.get(old)
    assert found.successor == new.memory_id
    assert [one.memory_id for one in found.chain] == [old.memory_id, new.memory_id]
    assert (found.history[-1].reason, found.history[-1].actor) == ("better", "me")
    with pytest.raises(rl.LoopError):
        ledger.supersede(new, by=old)
    assert ledger.set_lifecycle(old, "active").lifecycle_status == "active"


@pytest.mark.parametrize("lifecycle", ["stale", "disputed", "rejected"])
def test_a_lifecycle_is_set_and_taken_back(ledger: Driver, lifecycle: str) -> None:
    made = ledger.record("x")
    assert ledger.set_lifecycle(made, lifecycle, reason="r", actor="a").lifecycle_status == lifecycle
    assert ledger.set_lifecycle(made, lifecycle).changed is False
    assert ledger.set_lifecycle(made, "active").lifecycle_status == "active"


def test_importance_and_pins_are_changed(ledger: Driver) -> None:
    made = ledger.record("x")
    assert ledger.set_importance(made, 0.25).importance == 0.25
    assert ledger.pin(made).pinned
    assert ledger.pin(made).changed is False
    assert not ledger.unpin(made).pinned


def test_a_forgotten_decision_is_gone_and_its_dependents_know(ledger: Driver) -> None:
    ground = ledger.record("ground")
    rests = ledger.record("rests", depends_on=ground)
    done = ledger.forget(ground)
    assert (done.already, done.thought_deleted, done.dependents) == (False, True, (rests.memory_id,))
    assert ledger.forget(ground).already
    with pytest.raises(rl.GoneError):
        ledger.get(ground)
    assert [one.memory_id for one in ledger.get(rests).lost_ground] == [ground.memory_id]
    with pytest.raises(rl.NotFoundError):
        ledger.forget(uuid4())


def test_a_decision_of_another_workspace_is_not_found(ledger: Driver, workspace: str) -> None:
    made = ledger.record("x")
    other = ledger.with_options(workspace=f"{workspace}-other")
    for call in (other.get, other.pin, other.forget):
        with pytest.raises(rl.NotFoundError):
            call(made)


def test_the_status_knows_the_workspace(ledger: Driver, workspace: str) -> None:
    ledger.record("x")
    status = ledger.status()
    assert (status.schema_version, status.decisions, status.embedding_dimension) == (1, 1, 1536)
    assert [one.workspace_id for one in status.workspaces] == [workspace]
    assert [check for check in status.checks if not check.ok] == []
    assert ledger.status(everywhere=True).decisions >= 1
    assert ledger.enroll_missing().enrolled == 0


# --- limits are the same on both sides ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "most"),
    [
        ("content", arguments.MAX_TEXT_BYTES),
        ("summary", arguments.MAX_SUMMARY_BYTES),
        ("rationale", arguments.MAX_TEXT_BYTES),
        ("task_id", arguments.MAX_NAME_BYTES),
        ("project_id", arguments.MAX_NAME_BYTES),
    ],
)
def test_the_database_has_the_limits_of_the_sdk(ledger: Driver, name: str, most: int) -> None:
    def record(size: int) -> calls.Call[rl.Decision]:
        return calls.record(ledger.client.workspace, {"content": "x", name: "y" * size}, key=None)

    assert ledger._run(record(most))
    with pytest.raises(rl.InvalidArgumentError) as caught:
        ledger._run(record(most + 1))
    assert caught.value.code == "22023"


def test_the_database_has_the_counts_of_the_sdk(ledger: Driver) -> None:
    workspace = ledger.client.workspace
    grounds = [str(one.memory_id) for one in ledger.record_many(["g"] * arguments.MAX_GROUNDS)]
    full = {"content": "x", "alternatives": ["a"] * arguments.MAX_ALTERNATIVES, "depends_on": grounds}
    assert ledger._run(calls.record(workspace, full, key=None))
    for more in (
        {"alternatives": ["a"] * (arguments.MAX_ALTERNATIVES + 1)},
        {"depends_on": [*grounds, str(uuid4())]},
        {"step_index": arguments.MAX_STEP + 1},
    ):
        with pytest.raises(rl.InvalidArgumentError) as caught:
            ledger._run(calls.record(workspace, {"content": "x", **more}, key=None))
        assert caught.value.code == "22023"
    for function, body in (
        ("list_decisions", {"p_limit": arguments.MAX_PAGE + 1}),
        ("recall_traces", {"p_limit": arguments.MAX_TRACES + 1}),
        ("prune_traces", {"p_before": "2026-01-01T00:00:00Z", "p_limit": arguments.MAX_PRUNED + 1}),
        ("record_decisions", {"p_decisions": [{"content": "x"}] * (calls.MAX_BATCH + 1)}),
        (
            "record_decision",
            {"p_content": "x", "p_idempotency_key": "k" * (arguments.MAX_KEY_CHARACTERS + 1)},
        ),
    ):
        with pytest.raises(rl.InvalidArgumentError) as caught:
            ledger._run(calls.Call(function, {"p_workspace_id": workspace, **body}, lambda answer: answer))
        assert caught.value.code == "22023"


# --- ways to connect, and being refused ---------------------------------------------------------------------------


def test_both_kinds_of_keys_work(ledgers: MakeLedger, stack: StackInfo, workspace: str) -> None:
    for key in (stack.secret_key, stack.service_role_key):
        ledger = ledgers(lambda kind, key=key: kind(stack.url, key, workspace=workspace))
        assert ledger.record("x").workspace_id == workspace


def test_the_environment_connects(
    ledgers: MakeLedger, stack: StackInfo, workspace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in stack.env().items():
        monkeypatch.setenv(name, value)
    assert ledgers(lambda kind: kind.from_env(workspace=workspace)).status().schema_version == 1


def test_a_supabase_client_connects_and_a_signed_in_user_changes_nothing(
    ledgers: MakeLedger, stack: StackInfo, workspace: str
) -> None:
    client = supabase.create_client(stack.url, stack.service_role_key)
    client.options.headers["Authorization"] = f"Bearer {stack.anon_key}"
    ledger = ledgers(lambda kind: kind.from_supabase(client, workspace=workspace))
    assert ledger.record("x").workspace_id == workspace


async def test_an_asynchronous_supabase_client_connects(stack: StackInfo, workspace: str) -> None:
    client = await supabase.acreate_client(stack.url, stack.secret_key)
    async with rl.AsyncRankedLedger.from_supabase(client, workspace=workspace) as ledger:
        assert (await ledger.record("x")).workspace_id == workspace


async def test_a_bare_postgrest_connects(stack: StackInfo, workspace: str, rest_socket: str) -> None:
    token = stack.service_role_key
    with httpx.Client(transport=httpx.HTTPTransport(uds=rest_socket)) as http:
        ledger = rl.RankedLedger.from_postgrest(
            "http://postgrest", token=token, workspace=workspace, http_client=http
        )
        assert ledger.record("x").workspace_id == workspace
    async with httpx.AsyncClient(transport=httpx.AsyncHTTPTransport(uds=rest_socket)) as http:
        both = rl.AsyncRankedLedger.from_postgrest(
            "http://postgrest", token=token, workspace=workspace, http_client=http
        )
        assert len(await both.recall("x")) == 1


@pytest.mark.parametrize("token", ["not-a-jwt", "eyJhbGciOiJIUzI1NiJ9.eyJyb2xlIjoic2VydmljZV9yb2xlIn0.AAAA"])
def test_a_bad_token_of_a_bare_postgrest_is_told(workspace: str, rest_socket: str, token: str) -> None:
    with httpx.Client(transport=httpx.HTTPTransport(uds=rest_socket)) as http:
        ledger = rl.RankedLedger.from_postgrest(
            "http://postgrest", token=token, workspace=workspace, http_client=http
        )
        with pytest.raises(rl.AuthenticationError):
            ledger.recall("x")


@pytest.mark.parametrize("token", [None, "anon"])
def test_the_public_role_has_no_rights(
    stack: StackInfo, workspace: str, rest_socket: str, token: str | None
) -> None:
    given = stack.anon_key if token else None
    with httpx.Client(transport=httpx.HTTPTransport(uds=rest_socket)) as http:
        ledger = rl.RankedLedger.from_postgrest(
            "http://postgrest", token=given, workspace=workspace, http_client=http
        )
        with pytest.raises((rl.PermissionDeniedError, rl.AuthenticationError)):
            ledger.recall("x")


def test_a_bad_key_is_told(ledgers: MakeLedger, stack: StackInfo, workspace: str) -> None:
    ledger = ledgers(lambda kind: kind(stack.url, "sb_secret_wrong", workspace=workspace))
    with pytest.raises(rl.AuthenticationError):
        ledger.recall("x")


def test_a_project_without_the_ledger_is_told_what_to_run(bare_stack: Stack) -> None:
    info = bare_stack.info()
    with (
        rl.RankedLedger(info.url, info.secret_key, workspace="acme") as ledger,
        pytest.raises(rl.NotInstalledError, match="supabase db push"),
    ):
        ledger.recall("x")


def test_a_wrong_path_is_told(ledgers: MakeLedger, stack: StackInfo, workspace: str) -> None:
    ledger = ledgers(lambda kind: kind(f"{stack.url}/elsewhere", stack.secret_key, workspace=workspace))
    with pytest.raises(rl.UnexpectedResponseError):
        ledger.recall("x")


def test_nobody_listening_is_a_network_error(ledgers: MakeLedger, stack: StackInfo) -> None:
    ledger = ledgers(lambda kind: kind("http://127.0.0.1:9", "sb_secret_x", workspace="acme", max_retries=0))
    with pytest.raises(rl.NetworkError):
        ledger.recall("x")


def test_a_slow_answer_is_a_timeout(ledgers: MakeLedger, stack: StackInfo, workspace: str) -> None:
    ledger = ledgers()
    made = ledger.record("x")
    with psycopg.connect(stack.superuser_db_url) as locker:
        locker.execute("select 1 from public.agent_memories where id = %s for update", (made.memory_id,))
        with pytest.raises(rl.RequestTimeoutError):
            ledger.with_options(timeout=0.2, max_retries=0).pin(made)
    assert UUID(str(made.memory_id))
