"""The doors of the long-term memory: clients, raw calls, rows of the service role's own."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.patches.marked import House, Person


def fill_memories(house: House, person: Person) -> None:
    """Something through each door, for one person."""
    by_clients(house, person)
    corrections(person)
    reviews(person)
    by_calls(house, person)
    by_rows(house, person)
    questions(house, person)


def _kept(person: Person, memory: Any) -> str:
    memory_id = str(memory["memory_id"] if isinstance(memory, dict) else memory.memory_id)
    person.memories.append(memory_id)
    return memory_id


def by_clients(house: House, person: Person) -> None:
    marks, company = person.marks, person.company
    _kept(
        person,
        company.agent().remember(
            marks.text("a model remembers"),
            subject=person.subject,
            run_id="run-1",
            embedding=marks.vector("a model remembers"),
            embedding_model=marks.word("the model of a memory"),
            expires_at=datetime.now(UTC) + timedelta(days=9),
            idempotency_key=f"{marks.tag}-{person.id}",
        ),
    )
    for role in ("member", "admin", "owner"):
        _kept(
            person,
            company.steward(role).remember(marks.text(f"a person remembers, {role}"), subject=person.subject),
        )
    _kept(
        person,
        company.steward().remember(
            marks.text("the service asserts"), asserted_by=company.person("member"), subject=person.subject
        ),
    )


def corrections(person: Person) -> None:
    marks, company = person.marks, person.company
    member, admin = company.agent("member"), company.agent("admin")
    memory = company.steward("member").remember(marks.text("before corrections"), subject=person.subject)
    _kept(person, memory)
    member.correct(memory, marks.text("corrected once"), note=marks.text("note of a correction"))
    admin.correct(
        memory,
        marks.text("corrected twice"),
        note=marks.text("note of an admin"),
        embedding=marks.vector("corrected twice"),
        embedding_model="m",
    )
    forgotten = member.remember("Something else entirely", subject=person.subject)
    _kept(person, forgotten)
    member.forget(forgotten, note=marks.word("note of a forgotten memory"))


def reviews(person: Person) -> None:
    marks, company = person.marks, person.company
    for role, outcome in (("admin", "approved"), ("owner", "evidence_only"), ("admin", "rejected")):
        memory = company.agent().remember(marks.text(f"waits to be {outcome}"), subject=person.subject)
        _kept(person, memory)
        company.steward(role).review(
            memory,
            outcome,
            can_use_as_instruction=outcome == "approved",
            note=marks.text(f"note of a review, {outcome}"),
        )
    memory = company.agent().remember(marks.text("waits for the service"), subject=person.subject)
    _kept(person, memory)
    company.steward().review(
        memory, "approved", reviewer=company.person("admin"), note=marks.text("note of an asserted review")
    )


def by_calls(house: House, person: Person) -> None:
    marks = person.marks
    token = house.token(person.company, "admin")
    named = {"org_id": person.org, "subject_type": person.kind, "subject_id": str(person.id)}
    memory = house.rpc("remember", text=marks.text("a raw call remembers"), **named)
    _kept(person, memory)
    memory = house.rpc(
        "remember",
        token,
        text=marks.text("a raw call of a person"),
        author="person",
        idempotency_key=f"raw-{marks.tag}-{person.id}",
        **named,
    )
    _kept(person, memory)
    house.rpc(
        "correct_memory",
        token,
        org_id=person.org,
        memory_id=memory["memory_id"],
        text=marks.text("a raw call corrects"),
        note=marks.text("note of a raw correction"),
    )
    house.rpc("recall_memories", token, query=marks.text("a raw call asks"), **named)


def by_rows(house: House, person: Person) -> None:
    """As the service role may write them, which no client of ours does."""
    marks = person.marks
    about = {"org_id": person.org, "subject_type": person.kind, "subject_id": person.id}
    memory_id = house.hidden_insert(
        "long_term_memory.agent_memories",
        text=marks.text("a row of memory"),
        embedding=str(marks.vector("a row of memory")),
        embedding_model=marks.word("the model of a row"),
        asserted_by=marks.word("who asserts a row"),
        **about,
    )
    person.memories.append(memory_id)
    house.hidden_insert(
        "long_term_memory.memory_events",
        org_id=person.org,
        memory_id=memory_id,
        action="corrected",
        note=marks.text("note of an event"),
        text_before=marks.text("former text of an event"),
    )
    house.hidden_insert(
        "long_term_memory.idempotency_keys",
        returning="key",
        org_id=person.org,
        key=f"row-{marks.tag}-{person.id}",
        digest=hashlib.sha256(marks.texts["a row of memory"].encode()).digest(),
        memory_id=memory_id,
    )
    recall = house.hidden_insert(
        "long_term_memory.recalls",
        org_id=person.org,
        query=marks.text("a row of a recall"),
        arguments=marks.document("arguments of a recall"),
    )
    house.hidden_insert("long_term_memory.recall_subjects", returning="recall_id", recall_id=recall, **about)
    recall = house.hidden_insert(
        "long_term_memory.recalls", org_id=person.org, query=marks.text("a recall that its items tie alone")
    )
    house.hidden_insert(
        "long_term_memory.recall_items",
        returning="recall_id",
        recall_id=recall,
        org_id=person.org,
        memory_id=memory_id,
        rank=1,
        score=0.5,
        relevance_source="fts",
    )


def questions(house: House, person: Person) -> None:
    """That name the person, and that return something of theirs."""
    marks, agent = person.marks, person.company.agent()
    found = agent.recall(marks.text("a question about them"), subject=person.subject, run_id="run-2")
    assert (found.recorded, len(found) > 0) == (True, True)
    found = agent.recall(
        marks.text("a question about them that finds nothing"), subject=person.subject, min_relevance=1
    )
    assert (found.recorded, len(found)) == (True, 0)
    # one word each: every text has the others
    known = f"{marks.words['a raw call remembers']} {marks.word('a question that returns theirs')}"
    found = agent.recall(known, include_unreviewed=True, min_relevance=0.01)
    assert {str(hit.subject_id) for hit in found} == {str(person.id)}
    found = agent.recall(
        marks.word("a question by a vector"),
        embedding=marks.vector("a model remembers"),
        embedding_model=marks.words["the model of a memory"],
        include_unreviewed=True,
        min_relevance=0.9,
    )
    assert [hit.relevance_source for hit in found] == ["cosine"]
