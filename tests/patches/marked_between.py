"""What is more than one person's: decisions, thoughts and questions of two; and what nothing ties to anybody."""

from __future__ import annotations

from dataclasses import dataclass

from tests.patches.marked import House, Marks, Person
from tests.patches.patched import ids, question, writing


@dataclass
class Between:
    """Strings of two people, of nobody, and the names that stay."""

    dual: Marks
    nobody: Person
    name: Marks
    everywhere: Marks
    decision: str = ""

    @classmethod
    def empty(cls, house: House) -> Between:
        dual, loose, name, everywhere = (
            Marks(tag, house.dimension) for tag in ("dual", "loose", "name", "everywhere")
        )
        return cls(dual, Person(loose, house.ours, house.workspaces["second"]), name, everywhere)

    @property
    def loose(self) -> Marks:
        return self.nobody.marks


def fill_shared(house: House, between: Between, erased: Person, other: Person, foreigner: Person) -> None:
    """What the erased one and somebody else have in common."""
    dual, ledger = between.dual, house.ledger(erased.workspace)
    share_thoughts(house, erased, other, foreigner)
    shared = ledger.record(
        dual.text("content of a decision of two"),
        rationale=dual.text("rationale of a decision of two"),
        embedding=dual.vector("content of a decision of two"),
        embedding_model="m",
    )
    between.decision = erased.attribute(shared)
    other.company.steward().attribute_decision(shared, other.subject)

    elsewhere = house.ledger(other.workspace).record(
        erased.marks.text("content in the other workspace"), task="hiring"
    )
    erased.attribute(elsewhere)
    theirs = ledger.record(other.marks.text("content beside the erased one's"))
    other.attribute(theirs)
    ledger.link(
        theirs, erased.decisions[0], relation="informs", metadata=dual.document("metadata between two")
    )
    replaced = other.attribute(ledger.record(other.marks.text("content that the erased one's replaces")))
    new = erased.attribute(ledger.record(erased.marks.text("content that replaces another's")))
    ledger.supersede(replaced, by=new, reason=other.marks.text("reason to be replaced"))

    agent = erased.company.agent()
    assert {
        str(hit.subject_id)
        for hit in agent.recall(dual.text("a question that returns two"), include_unreviewed=True, limit=500)
    } >= {str(erased.id), str(other.id)}
    found = ledger.recall(
        dual.text("a question about one that returns the other"), subject=other.subject, limit=200
    )
    returned = {str(hit.memory_id) for hit in found}
    assert returned & set(erased.decisions)
    assert returned & set(other.decisions)
    ledger.mark_ignored(found, theirs, reason=other.marks.text("reason about the other in a shared trace"))
    ledger.mark_ignored(found, shared, reason=dual.text("reason about both"))
    erased.traces.append(str(found.request_id))


def share_thoughts(house: House, erased: Person, other: Person, foreigner: Person) -> None:
    """Thoughts of the erased one's decisions, which a memory of somebody else's points to as well."""
    kinds = ("another's decision", "a lesson", "another organization")
    sent = writing(erased.workspace, *(erased.marks.text(f"a thought shared with {kind}") for kind in kinds))
    first, second, third = ids(house.expect(house.function.http.post("/writeback", json=sent)))
    for person, memory_id, more in (
        (other, first, {"workspace_id": other.workspace, "memory_type": "decision"}),
        (None, second, {"workspace_id": other.workspace, "memory_type": "lesson"}),
        (foreigner, third, {"workspace_id": foreigner.workspace, "memory_type": "decision"}),
    ):
        words = person.marks.text("content on a shared thought") if person else "A lesson of nobody's"
        row = house.insert(
            "agent_memories", thought_id=house.thought_of(memory_id), summary=words, content=words, **more
        )
        if person:
            person.attribute(row)
        erased.attribute(memory_id)


def fill_loose(house: House, between: Between, other: Person, foreigner: Person) -> None:
    """Strings in rows that nothing ties to whom they are about: what an officer names."""
    loose_in_memories(house, between, other, foreigner)
    loose_in_decisions(house, between, other)
    loose_in_rows(house, between)
    loose_in_the_function(house, between, other)


def loose_in_memories(house: House, between: Between, other: Person, foreigner: Person) -> None:
    loose, both = between.loose, between.everywhere
    agent, admin = other.company.agent(), other.company.agent("admin")
    memory = agent.remember(
        loose.text("a memory of the workspace"),
        workspace=other.workspace,
        embedding=loose.vector("a memory of the workspace"),
        embedding_model="m",
        idempotency_key=f"loose-{other.id}",
    )
    between.nobody.memories.append(str(memory.memory_id))
    told = f"{other.marks.text('a memory that names them')} {loose.text('in the memory of another')}"
    memory = agent.remember(told, subject=other.subject)
    other.company.steward("admin").review(memory, "approved", note=loose.text("note of another's review"))
    memory = agent.remember(loose.text("a former text of another's"), subject=other.subject)
    admin.correct(memory, other.marks.text("a text that names nobody"))
    agent.recall(
        loose.text("a question of another's"),
        subject=other.subject,
        embedding=[1.0, 2.0],
        embedding_model=loose.word("the model of a question"),
    )
    word = both.text("in both organizations")
    agent.remember(f"{word} ours", workspace=other.workspace)
    foreigner.company.agent().remember(f"{word} {foreigner.marks.text('beside the same string')}")
    house.ledger(foreigner.workspace).record(f"{word} {foreigner.marks.text('beside the string, decided')}")


def loose_in_decisions(house: House, between: Between, other: Person) -> None:
    loose, ledger = between.loose, house.ledger(other.workspace)
    nobodys = ledger.record(
        loose.text("content of nobody's decision"),
        summary=loose.text("summary of nobody's decision"),
        rationale=loose.text("rationale of nobody's decision"),
        alternatives=[loose.text("alternative of nobody's decision")],
        metadata=loose.document("metadata of nobody's decision"),
        embedding=loose.vector("content of nobody's decision"),
        embedding_model=loose.word("the model of nobody's decision"),
        idempotency_key=f"loose-{other.id}",
    )
    between.nobody.decisions.append(str(nobodys.memory_id))
    named = ledger.record(
        other.marks.text("a decision that names them"),
        rationale=f"{other.marks.text('why it was taken')} {loose.text('in the rationale of another')}",
        task=f"hire {between.name.word('name of a task')}",
    )
    other.attribute(named)
    ledger.set_lifecycle(named, "disputed", reason=loose.text("reason in another's history"))
    ledger.link(nobodys, named, relation="informs", metadata=loose.document("metadata of nobody's link"))
    found = ledger.recall(loose.text("a question of nobody's"), limit=5)
    ledger.mark_ignored(found, found[0], reason=loose.text("reason of nobody's"))
    quoted = ledger.record("An innocent decision")
    word = loose.text("quoted by a failure")
    with house.refusing_host([loose.words["quoted by a failure"]]):
        house.change("agent_memories", str(quoted.memory_id), content=word)


def loose_in_rows(house: House, between: Between) -> None:
    loose = between.loose
    workspace = house.workspaces["second"]
    thought = house.insert("thoughts", content="A plain thought", metadata=loose.document("in a thought"))
    lesson = house.insert(
        "agent_memories",
        workspace_id=workspace,
        thought_id=thought,
        memory_type="lesson",
        summary="s",
        content="c",
        content_hash=loose.word("a hash of a host"),
        metadata=loose.document("metadata of a lesson"),
    )
    other = str(house.ledger(workspace).record("Beside a lesson").memory_id)
    house.insert(
        "agent_memory_relations",
        from_memory_id=lesson,
        to_memory_id=other,
        relation="related_to",
        metadata=loose.document("metadata of a relation"),
    )
    house.insert(
        "agent_memory_source_refs",
        memory_id=lesson,
        source_kind="mail",
        title=loose.text("title of a source"),
    )
    house.insert(
        "agent_memory_artifacts", memory_id=other, artifact_kind="f", description=loose.text("an artifact")
    )
    house.insert(
        "agent_memory_review_actions",
        memory_id=lesson,
        action="edit",
        actor_label=loose.word("who reviews a lesson"),
        notes=loose.text("notes on a lesson"),
        before=loose.document("a lesson before"),
        after=loose.document("a lesson after"),
    )
    for door, tie in (("place", {"workspace_id": workspace}), ("memory", {"memory_id": lesson})):
        house.insert(
            "agent_memory_audit_events",
            event_type="memory_edited",
            payload=loose.document(f"audited by its {door} alone"),
            **tie,
        )
    trace = house.insert(
        "agent_memory_recall_traces",
        workspace_id=workspace,
        query="plain",
        schema_version="1",
        request_payload=loose.document("payload of a trace"),
        response_policy=loose.document("policy of a trace"),
    )
    house.insert(
        "agent_memory_recall_items",
        trace_id=trace,
        memory_id=lesson,
        rank=1,
        use_policy_snapshot=loose.document("snapshot of an item"),
    )


def loose_in_the_function(house: House, between: Between, other: Person) -> None:
    loose, function = between.loose, house.function.http
    sent = writing(other.workspace, lessons=[loose.text("a lesson of the function")])
    (lesson,) = ids(house.expect(function.post("/writeback", json=sent)))
    sent = {
        "action": "edit",
        "actor_label": loose.word("who edits a lesson"),
        "notes": loose.text("notes of the function on a lesson"),
        "content": loose.text("an edited lesson"),
        "summary": "plain",
    }
    house.expect(function.patch(f"/memories/{lesson}/review", json=sent))
    asked = question(other.workspace, loose.text("a question of the function's"), limits={"max_items": 1})
    house.expect(function.post("/recall", json=asked))
