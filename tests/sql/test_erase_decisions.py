"""An erasure in the ledger: none of the words, all of the places."""

from __future__ import annotations

import json
from collections.abc import Callable
from uuid import uuid4

import pytest

from tests.conftest import HostMaker
from tests.rig.databases import Database
from tests.rig.residue import in_dump
from tests.sql.erasing import NOTHING, Scene, counted
from tests.sql.rpc import Ledger

WORD = "zebrafoal"
OTHER = "quaggamare"


@pytest.fixture
def scene(full_project: HostMaker) -> Scene:
    return Scene(full_project())


@pytest.fixture(params=["project", "host", "host_384_plain_16"])
def any_scene(request: pytest.FixtureRequest, full_project: HostMaker, full_host: HostMaker) -> Scene:
    """Our Open Brain; a host's own; one with other dimensions, without fingerprints, on an older server."""
    make: Callable[[], Database] = {
        "project": full_project,
        "host": full_host,
        "host_384_plain_16": lambda: full_host(dimension=384, fingerprint=False, postgres=16),
    }[request.param]
    return Scene(make())


def test_none_of_the_words_are_left_anywhere(any_scene: Scene) -> None:
    scene, subject, somebody = any_scene, str(uuid4()), str(uuid4())
    scene.fill_memories(WORD, subject)
    scene.fill_ledger(WORD, subject)
    scene.fill_memories(OTHER, somebody)
    scene.fill_ledger(OTHER, somebody, axis=2)
    others_before = scene.left(OTHER, axes=[2])
    texts = [f"{WORD}content stands here", f"{WORD}content of the host", f"{WORD}memory of a person"]
    assert len(scene.left(WORD, texts=texts, axes=[1])) > 30, "it stands in that many columns"

    answer = scene.erase(subject)
    assert scene.left(WORD, texts=texts, axes=[1]) == set()
    assert in_dump(scene.database, [WORD]) == {}
    assert {place for place in others_before if not place.startswith("statistics")} <= scene.left(
        OTHER, axes=[2]
    )
    assert counted(answer) | {"audit_events": 0} == {
        "memories": 2,
        "decisions": 2,
        "thoughts_deleted": 2,
        "traces": 4,  # that of the other one's question, too, which returned these decisions
        "recalls": 1,
        "reviews": 3,
        "audit_events": 0,
    }
    scene.erase(somebody)
    assert scene.left(OTHER, axes=[2]) == set()
    scene.is_sound()


def test_a_second_erasure_finds_nothing_and_has_a_receipt_of_its_own(any_scene: Scene) -> None:
    scene, subject = any_scene, str(uuid4())
    scene.fill_memories(WORD, subject)
    scene.fill_ledger(WORD, subject)
    first = scene.erase(subject)
    rows = scene.do("select xmin::text from public.agent_memories order by id")
    second = scene.erase(subject)
    assert (first["already"], second["already"]) == (False, True)
    assert second["counts"] == NOTHING
    assert second["receipt_id"] not in (None, first["receipt_id"])
    assert scene.do("select xmin::text from public.agent_memories order by id") == rows, "no row is written"


def test_a_dry_run_counts_the_same_and_changes_nothing(any_scene: Scene) -> None:
    scene, subject = any_scene, str(uuid4())
    scene.fill_memories(WORD, subject)
    scene.fill_ledger(WORD, subject)
    before = scene.left(WORD, axes=[1])
    strings = ["a neighbour"]
    tried = scene.erase(subject, dry_run=True, also_containing=strings, digest_key="sixteen letters or more")
    assert scene.left(WORD, axes=[1]) == before
    assert scene.do("select count(*) from long_term_memory.erasures") == [(0,)]
    done = scene.erase(subject, also_containing=strings, digest_key="sixteen letters or more")
    assert tried["counts"] == done["counts"]
    assert tried["digests"] == done["digests"] > 0
    assert (tried["receipt_id"], tried["dry_run"], done["dry_run"]) == (None, True, False)


def test_it_keeps_its_place_in_the_stream(scene: Scene) -> None:
    subject = str(uuid4())
    task = {"task_id": "t", "project_id": "p"}
    scene.ledger.id("first", **task)
    erased = scene.decide(WORD, subject, **task, importance=0.9, pinned=True)
    third = scene.ledger.id("third", **task)
    scene.erase(subject)
    kept = scene.ledger.get(erased)
    assert (kept["step_index"], kept["importance"], kept["task_id"]) == (1, 0.9, "t")
    assert (kept["content"], kept["summary"], kept["rationale"]) == ("[erased]", "[erased]", None)
    assert (kept["alternatives"], kept["metadata"], kept["ledger_metadata"]) == ([], {}, {})
    assert (kept["embedding_model"], kept["pinned"], kept["lifecycle_status"]) == (None, False, "rejected")
    assert scene.ledger.get(third)["step_index"] == 2
    assert scene.ledger.record("fourth", **task)["step_index"] == 3
    scene.is_sound()


def test_what_rests_on_it_is_told_and_edges_and_chains_stay(scene: Scene) -> None:
    subject = str(uuid4())
    ground = scene.ledger.id("ground")
    old = scene.decide(WORD, subject, depends_on=[ground])
    new = scene.ledger.id("new")
    top = scene.ledger.id("rests on it", depends_on=[old])
    scene.ledger("supersede_decision", old=old, new=new, reason=f"{WORD}reason")
    live = scene.decide(f"{WORD}live", subject, axis=2)
    rests = scene.ledger.id("rests on the live one", depends_on=[live])
    scene.erase(subject)
    assert scene.left(WORD, axes=[1, 2]) == set()
    assert scene.ledger.get(old)["lifecycle_status"] == "superseded"
    assert scene.ledger.get(old)["successor"] == new
    assert [link["memory_id"] for link in scene.ledger.get(old)["chain"]] == [old, new]
    assert [edge["memory_id"] for edge in scene.ledger.get(old)["edges_out"]] == [ground]
    assert [edge["memory_id"] for edge in scene.ledger.get(old)["edges_in"]] == [top]
    hits = {hit["memory_id"]: hit for hit in scene.ledger("recall_decisions", query="rests")["hits"]}
    assert hits[rests]["rests_on_retired"] is True
    history = scene.ledger.get(live)["history"]
    assert [(step["lifecycle_status"], step["reason"]) for step in history] == [("rejected", None)]
    scene.is_sound()


def test_no_recall_returns_it_unless_retired_ones_are_asked_for(scene: Scene) -> None:
    subject = str(uuid4())
    erased = scene.decide(WORD, subject, pinned=True, importance=1.0)
    other = scene.ledger.id("another decision", embedding=scene.vector(2), embedding_model="m")
    scene.erase(subject)
    for arguments in (
        {"query": f"{WORD}content"},
        {"query_embedding": scene.vector(1)},
        {"include_stale": True},
        {"exact": False},
    ):
        hits = scene.ledger("recall_decisions", **arguments)["hits"]
        assert [hit["memory_id"] for hit in hits] == [other]
    hits = scene.ledger(
        "recall_decisions", query=f"{WORD}content", query_embedding=scene.vector(1), include_superseded=True
    )["hits"]
    (hit,) = (hit for hit in hits if hit["memory_id"] == erased)
    assert (hit["content"], hit["relevance_source"], hit["relevance"]) == ("[erased]", "fts", 0)


def test_a_repeat_with_its_key_is_gone_and_it_can_be_forgotten(scene: Scene) -> None:
    subject = str(uuid4())
    erased = scene.decide(WORD, subject, idempotency_key="one")
    (batch, _) = scene.ledger(
        "record_decisions", decisions=[{"content": WORD}, {"content": "y"}], idempotency_key="two"
    )["decisions"]
    scene.attribute(batch["memory_id"], subject)
    scene.erase(subject)
    for content in (f"{WORD}content stands here", "a guess"):
        scene.ledger.refused("RL410", "record_decision", content=content, idempotency_key="one")
    again = [{"content": WORD}, {"content": "y"}]
    scene.ledger.refused("RL410", "record_decisions", decisions=again, idempotency_key="two")
    assert scene.do("select distinct length(digest) from ranked_ledger.idempotency_keys") == [(0,)]
    assert scene.ledger("forget_decision", memory_id=erased)["already"] is False
    scene.ledger.refused("RL410", "get_decision", memory_id=erased)
    assert scene.erase(subject)["counts"] == NOTHING
    scene.is_sound()


def test_one_that_is_about_two_people_is_erased_for_both(scene: Scene) -> None:
    one, two, three = (str(uuid4()) for _ in range(3))
    shared = scene.decide(WORD, one, two)
    theirs = scene.decide(OTHER, two, three, axis=2)
    answer = scene.erase(one)
    assert (answer["counts"]["decisions"], answer["counts"]["decisions_shared"]) == (1, 1)
    assert any("about others too" in note for note in answer["notes"])
    told = scene.do(
        """select subject_id::text, memory_id::text, erased_at is not null, erased_with_other
           from long_term_memory.decision_subjects"""
    )
    assert set(told) == {
        (one, shared, True, False),
        (two, shared, True, True),
        (two, theirs, False, False),
        (three, theirs, False, False),
    }
    answer = scene.erase(two)
    assert (answer["counts"]["decisions"], answer["counts"]["decisions_shared"]) == (1, 1)
    assert answer["already"] is False
    assert scene.left(WORD, OTHER) == set()


def test_words_that_came_back_into_an_erased_decision_go_again(scene: Scene) -> None:
    subject = str(uuid4())
    erased = scene.decide(WORD, subject)
    scene.erase(subject)
    scene.do("update agent_memories set content = %s where id = %s", f"{WORD} again", erased)
    answer = scene.erase(subject)
    assert (answer["counts"]["decisions"], answer["already"]) == (1, False)
    assert scene.left(WORD) == set()
    scene.is_sound()


def test_a_thought_of_another_memory_stays_and_is_counted(scene: Scene) -> None:
    subject = str(uuid4())
    erased = scene.write_by_host(WORD, subject)
    alone = scene.write_by_host(f"{WORD}alone", subject)
    (thought,) = scene.do("select thought_id from agent_memories where id = %s", erased)[0]
    (lesson,) = scene.do(
        """insert into agent_memories (workspace_id, memory_type, summary, content, thought_id)
           values ('globex', 'lesson', 's', 'c', %s) returning id""",
        thought,
    )[0]
    answer = scene.erase(subject)
    assert (answer["counts"]["thoughts_deleted"], answer["counts"]["thoughts_shared"]) == (1, 1)
    assert any("thoughts stay" in note for note in answer["notes"])
    pointing = scene.do("select id::text from agent_memories where thought_id is not null")
    assert pointing == [(str(lesson),)]
    places = {"content", "metadata", "content_fingerprint"}
    assert scene.left(WORD, texts=[f"{WORD}content of the host"]) == {f"public.thoughts.{p}" for p in places}
    assert scene.ledger.get(alone)["content"] == "[erased]"


def test_a_thought_of_two_of_the_subjects_own_decisions_goes(scene: Scene) -> None:
    subject = str(uuid4())
    first = scene.write_by_host(WORD, subject)
    (thought,) = scene.do("select thought_id from agent_memories where id = %s", first)[0]
    (second,) = scene.do(
        """insert into agent_memories (workspace_id, memory_type, summary, content, thought_id)
           values ('acme', 'decision', 's', 'c', %s) returning id""",
        thought,
    )[0]
    scene.attribute(str(second), subject)
    assert counted(scene.erase(subject))["thoughts_deleted"] == 1
    assert scene.left(WORD) == set()


def test_only_workspaces_of_this_organization_are_reached(scene: Scene) -> None:
    subject, org_b = str(uuid4()), scene.memories.new_org()
    scene.map("globex", org_b)
    theirs = Ledger(scene.database, workspace="globex")
    elsewhere = theirs.id(f"{WORD}globex")
    unmapped = Ledger(scene.database, workspace="nobodys").id(f"{WORD}nobodys")
    scene.attribute(elsewhere, subject, org=org_b)
    scene.attribute(unmapped, subject)  # mapped when it was attributed, and not any more
    stray = theirs.id(f"{WORD}stray")
    scene.attribute(stray, subject)  # of this organization, in a workspace of the other
    assert scene.erase(subject)["counts"] == NOTHING
    assert theirs.get(elsewhere)["content"] == f"{WORD}globex"
    assert theirs.get(stray)["content"] == f"{WORD}stray"
    answer = scene.memories.as_service(org_b)("erase_subject", subject_type="candidate", subject_id=subject)
    assert counted(answer)["decisions"] == 1
    assert theirs.get(elsewhere)["content"] == "[erased]"
    assert theirs.get(stray)["content"] == f"{WORD}stray"


def test_one_that_is_no_decision_any_more_or_was_never_enrolled_is_erased_too(scene: Scene) -> None:
    subject = str(uuid4())
    retyped = scene.decide(WORD, subject)
    bare = scene.decide(f"{WORD}bare", subject, axis=2)
    scene.do("update agent_memories set memory_type = 'lesson' where id = %s", retyped)
    scene.do("delete from agent_decision_ledger where memory_id = %s", bare)
    assert counted(scene.erase(subject))["decisions"] == 2
    assert scene.left(WORD, axes=[1, 2]) == set()
    scene.do("update agent_memories set memory_type = 'decision' where id = %s", retyped)
    scene.ledger("enroll_missing_decisions")
    assert scene.left(WORD) == set()
    scene.is_sound()


def test_copies_that_lagged_leave_no_posting_behind(scene: Scene) -> None:
    """Edited while somebody else held its standing, a decision is posted under words that its row has no more."""
    subject = str(uuid4())
    erased = scene.decide(WORD, subject)
    with scene.database.connect("supabase_admin") as holder, holder.transaction():
        holder.execute("select from ranked_ledger.standings where memory_id = %s for update", (erased,))
        scene.do("update agent_memories set content = 'other words' where id = %s", erased)
    assert "ranked_ledger.postings" in scene.left(f"{WORD}content")
    scene.erase(subject)
    assert scene.left(f"{WORD}content", WORD) == set()
    scene.is_sound()


def test_one_audit_event_a_decision_names_ids_alone(scene: Scene) -> None:
    subject = str(uuid4())
    erased = scene.decide(WORD, subject, project_id="billing")
    receipt = scene.erase(subject)["receipt_id"]
    events = scene.do(
        """select event_type, workspace_id, project_id, memory_id::text, actor_kind, payload
           from agent_memory_audit_events where payload <> '{}'"""
    )
    payload = {"kind": "decision_erased", "memory_id": erased, "erasure_id": receipt}
    assert events == [("memory_edited", "acme", "billing", erased, "system", payload)]
    ((actor, ours),) = scene.do(
        "select actor_id, payload from long_term_memory.audit_events where kind = 'subject_erased'"
    )
    assert (actor, ours["erasure_id"], ours["subject_id"]) == (None, receipt, subject)


def test_traces_keep_their_numbers_and_the_policies_their_statistics(scene: Scene) -> None:
    subject = str(uuid4())
    ids = scene.fill_ledger(WORD, subject)
    # the host's function writes 0 where there was no cosine, and the snapshot says so
    scene.do(
        "update agent_memory_recall_items set similarity = 0, use_policy_snapshot = %s where memory_id = %s",
        json.dumps({"recall_policy": "vector", "relevance_source": "fts", "note": f"{WORD}snapshot"}),
        ids["recorded"],
    )
    scene.do("update agent_memory_recall_items set similarity = 0.5 where memory_id = %s", ids["written"])
    before = scene.ledger("recall_policy_stats")
    scene.erase(subject)
    assert scene.ledger("recall_policy_stats") == before
    kept = scene.do(
        "select distinct response_policy, request_payload, query from agent_memory_recall_traces order by 1"
    )
    assert {query for _, _, query in kept} == {""}
    assert {"recall_policy": "vector", "max_items": 10} in [policy for policy, _, _ in kept]
    snapshots = scene.do(
        "select distinct use_policy_snapshot from agent_memory_recall_items where memory_id = %s "
        "and use_policy_snapshot ? 'usage_counted'",
        ids["written"],
    )
    assert snapshots == [({"recall_policy": "vector", "usage_counted": True},)]


def test_a_reason_about_somebody_else_in_a_shared_trace_stays(scene: Scene) -> None:
    one, two = str(uuid4()), str(uuid4())
    mine, theirs, nobodys = scene.decide(WORD, one), scene.decide(OTHER, two, axis=2), scene.ledger.id("x")
    scene.tie(scene.trace("reason", mine, theirs, nobodys), one)
    scene.erase(one)
    reasons = scene.do(
        "select memory_id::text from agent_memory_recall_items where ignored_reason <> '[erased]'"
    )
    assert reasons == [(theirs,)]
