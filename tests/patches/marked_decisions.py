"""The doors of the ledger: the client, a host's rows through PostgREST, the patched function."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from ranked_ledger import NewDecision
from tests.patches.marked import House, Person
from tests.patches.patched import body, ids, question, writing
from tests.rig.residue import folded


def fill_ledger(house: House, person: Person) -> None:
    """Something through each door, for one person."""
    by_client(house, person)
    changes(house, person)
    questions(house, person)
    by_host(house, person)
    by_function(house, person)
    reviews_of_the_function(house, person)


def by_client(house: House, person: Person) -> None:
    marks, ledger = person.marks, house.ledger(person.workspace)
    ground = ledger.record("A ground that is about nobody")
    decision = ledger.record(
        marks.text("content of a record"),
        summary=marks.text("summary of a record"),
        rationale=marks.text("rationale of a record"),
        alternatives=[marks.text("first alternative"), marks.text("second alternative")],
        metadata=marks.document("metadata of a record"),
        embedding=marks.vector("content of a record"),
        embedding_model=marks.word("the model of a record"),
        depends_on=ground,
        task="hiring",
        pinned=True,
        idempotency_key=f"{marks.tag}-{person.id}",
    )
    person.attribute(decision)
    many = ledger.record_many(
        [
            NewDecision(
                marks.text(f"content of many, {place}"),
                rationale=marks.text(f"rationale of many, {place}"),
                embedding=marks.vector(f"content of many, {place}"),
                embedding_model="m",
            )
            for place in ("first", "second")
        ],
        idempotency_key=f"many-{marks.tag}-{person.id}",
    )
    for one in many:
        person.attribute(one)
    ledger.link(decision, ground, relation="informs", metadata=marks.document("metadata of a link"))
    ledger.link(ground, many[0], relation="informs", metadata=marks.document("metadata of a link to it"))
    raw = house.rpc(
        "record_decision",
        workspace_id=person.workspace,
        content=marks.text("content of a raw call"),
        rationale=marks.text("rationale of a raw call"),
        metadata={"agent_memory": marks.document("metadata of a raw call")},
        idempotency_key=f"raw-{marks.tag}-{person.id}",
    )
    person.attribute(raw["memory_id"])


def changes(house: House, person: Person) -> None:
    marks, ledger = person.marks, house.ledger(person.workspace)
    replaced, merged, refused, doubted, moved, retyped = (
        person.attribute(ledger.record(marks.text(f"content of one that is {fate}")))
        for fate in ("replaced", "merged", "refused", "doubted", "moved", "retyped")
    )
    new = person.attribute(ledger.record(marks.text("content of one that replaces")))
    ledger.supersede(
        replaced, by=new, reason=marks.text("reason to replace"), actor=marks.word("who replaces")
    )
    house.rpc(
        "supersede_decision",
        workspace_id=person.workspace,
        old=merged,
        new=new,
        action="merge",
        reason=marks.text("reason to merge"),
    )
    ledger.set_lifecycle(refused, "rejected", reason=marks.text("reason to reject"))
    ledger.set_lifecycle(
        doubted, "disputed", reason=marks.text("reason to doubt"), actor=marks.word("who doubts")
    )
    ledger.set_lifecycle(doubted, "active", reason=marks.text("reason to restore"))
    house.change("agent_memories", moved, task_id="another", project_id="elsewhere")
    house.change("agent_memories", retyped, memory_type="lesson")
    assert [one.content for one in ledger.timeline(task="another")] == [
        marks.texts["content of one that is moved"]
    ]


def questions(house: House, person: Person) -> None:
    marks, ledger = person.marks, house.ledger(person.workspace)
    named = ledger.recall(marks.text("the ledger asked about them"), subject=person.subject)
    nothing = ledger.recall(
        marks.text("the ledger asked what finds nothing"), subject=person.subject, min_relevance=1
    )
    assert (len(named) > 0, len(nothing)) == (True, 0)
    found = ledger.recall(
        f"{marks.words['content of a record']} {marks.word('the ledger asked what returns theirs')}",
        min_relevance=0.01,
    )
    assert [str(hit.memory_id) for hit in found] == person.decisions[:1]
    again = ledger.recall(
        marks.word("the ledger asked by a vector"),
        embedding=marks.vector("content of a record"),
        embedding_model=marks.words["the model of a record"],
        limit=1,
    )
    ledger.mark_used(found, found[0])
    ledger.mark_ignored(again, again[0], reason=marks.text("reason to ignore"))
    raw = house.rpc(
        "recall_decisions",
        workspace_id=person.workspace,
        query=marks.text("a raw call asks the ledger"),
        subject={"type": person.kind, "id": str(person.id)},
    )
    house.rpc(
        "mark_recall_usage",
        workspace_id=person.workspace,
        request_id=raw["request_id"],
        ignored=[{"memory_id": raw["hits"][0]["memory_id"], "reason": marks.text("reason of a raw call")}],
    )
    person.traces += [str(one.request_id) for one in (named, nothing, found, again)] + [raw["request_id"]]


def by_host(house: House, person: Person) -> None:
    """Rows as a host's function inserts them: every table, every column that may hold words."""
    marks = person.marks
    other = str(house.ledger(person.workspace).record("Another one about nobody").memory_id)
    thought = house.insert(
        "thoughts",
        content=marks.text("content of a thought"),
        embedding=marks.vector("content of a thought"),
        content_fingerprint=hashlib.sha256(folded(marks.texts["content of a thought"]).encode()).hexdigest(),
        metadata=marks.document("metadata of a thought"),
    )
    decision = house.insert(
        "agent_memories",
        thought_id=thought,
        workspace_id=person.workspace,
        memory_type="decision",
        summary=marks.text("summary of a row"),
        content=marks.text("content of a row"),
        content_hash=hashlib.sha256(marks.texts["content of a row"].encode()).hexdigest(),
        idempotency_key=marks.word("key of a row"),
        metadata={
            "who": marks.document("metadata of a row"),
            "agent_memory": {
                "rationale": marks.text("rationale of a row"),
                "alternatives": [marks.text("alternative of a row")],
                "step_index": marks.word("a step that is none"),
            },
        },
    )
    person.attribute(decision)
    house.insert(
        "agent_memory_source_refs",
        memory_id=decision,
        source_kind=marks.word("kind of a source"),
        uri=f"mailto:{marks.word('uri of a source')}@example.org",
        title=marks.text("title of a source"),
        metadata=marks.document("metadata of a source"),
    )
    house.insert(
        "agent_memory_artifacts",
        memory_id=decision,
        artifact_kind=marks.word("kind of an artifact"),
        uri=f"file:///{marks.word('uri of an artifact')}",
        description=marks.text("description of an artifact"),
        metadata=marks.document("metadata of an artifact"),
    )
    for way, ends in (("out", (decision, other)), ("in", (other, decision))):
        row: dict[str, Any] = {"from_memory_id": ends[0], "to_memory_id": ends[1]}
        house.insert(
            "agent_memory_relations",
            relation="related_to",
            metadata=marks.document(f"metadata of a relation, {way}"),
            **row,
        )
        house.insert(
            "agent_decision_edges",
            relation="informs",
            metadata=marks.document(f"metadata of an edge, {way}"),
            **row,
        )
    house.insert(
        "agent_memory_review_actions",
        memory_id=decision,
        action="edit",
        actor_id="reviewer-7",
        actor_label=marks.word("who reviews"),
        notes=marks.text("notes of a review"),
        before=marks.document("before a review"),
        after=marks.document("after a review"),
    )
    trace = house.insert(
        "agent_memory_recall_traces",
        workspace_id=person.workspace,
        query=marks.text("query of a trace"),
        schema_version="1",
        request_payload=marks.document("payload of a trace"),
        response_policy={"recall_policy": "vector", "max_items": 10} | marks.document("policy of a trace"),
    )
    house.insert(
        "agent_memory_recall_items",
        trace_id=trace,
        memory_id=decision,
        rank=1,
        used=False,
        ignored_reason=marks.text("reason of an item"),
        use_policy_snapshot=marks.document("snapshot of an item"),
    )
    for door, tie in (("memory", {"memory_id": decision}), ("trace", {"trace_id": trace})):
        house.insert(
            "agent_memory_audit_events",
            event_type="memory_edited",
            workspace_id=person.workspace,
            actor_label=marks.word(f"who is audited, by {door}"),
            payload=marks.document(f"payload of an audit event, by {door}"),
            **tie,
        )


def by_function(house: House, person: Person) -> None:
    marks, function = person.marks, house.function.http
    sent = writing(
        person.workspace,
        {
            "content": marks.text("content of a write-back"),
            "rationale": marks.text("rationale of a write-back"),
            "alternatives": [marks.text("alternative of a write-back")],
            "confidence": 0.9,
        },
        marks.text("a write-back of a string"),
        task_id="hiring",
        idempotency_key=marks.word("key of a write-back"),
    )
    written = ids(house.expect(function.post("/writeback", json=sent)))
    assert ids(house.expect(function.post("/writeback", json=sent))) == written, "a repeat of the key"
    asked = house.expect(
        function.post(
            "/recall",
            json=question(
                person.workspace, marks.text("a ranked question of the function"), limits={"max_items": 50}
            ),
        )
    )
    by_vector = house.expect(
        function.post(
            "/recall",
            json=body(
                person.workspace,
                query=marks.text("a vector question of the function"),
                scope={"include_unconfirmed": True},
                limits={"max_items": 50},
            ),
        )
    )
    for place, answer in enumerate((asked, by_vector)):
        assert set(written) <= set(ids(answer)), "both are returned"
        reason = marks.text(f"reason given to the function, {'ranked' if place == 0 else 'by vector'}")
        used, ignored = written
        house.expect(
            function.post(
                f"/recall/{answer['request_id']}/usage",
                json={"used_memory_ids": [used], "ignored": [{"memory_id": ignored, "reason": reason}]},
            )
        )
    for memory_id in written:
        person.attribute(memory_id)
    person.traces += [answer["request_id"] for answer in (asked, by_vector)]


def reviews_of_the_function(house: House, person: Person) -> None:
    marks, function = person.marks, house.function.http
    sent = writing(
        person.workspace,
        *(
            marks.text(f"one that is {fate} through the function")
            for fate in ("edited", "replaced", "merged", "rejected", "better")
        ),
    )
    edited, replaced, merged, rejected, better = ids(house.expect(function.post("/writeback", json=sent)))
    for memory_id in (edited, replaced, merged, rejected, better):
        person.attribute(memory_id)
    actions: list[tuple[str, str, dict[str, Any]]] = [
        (edited, "edit", {"content": marks.text("edited content"), "summary": marks.text("edited summary")}),
        (edited, "confirm", {}),
        (replaced, "supersede", {"by": better}),
        (merged, "merge", {"by": better}),
        (rejected, "reject", {}),
    ]
    for memory_id, action, more in actions:
        sent = {
            "action": action,
            "actor_id": "reviewer-7",
            "actor_label": marks.word(f"who does {action} through the function"),
            "notes": marks.text(f"notes to {action} through the function"),
        }
        house.expect(function.patch(f"/memories/{memory_id}/review", json=sent | more))
    ((before, after),) = house.rows(
        "select before::text, after::text from agent_memory_review_actions where memory_id = %s and action = 'edit'",
        edited,
    )
    assert marks.words["one that is edited through the function"] in json.dumps(json.loads(before))
    assert marks.words["edited content"] in after
