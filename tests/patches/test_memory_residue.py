"""After an erasure nothing of the erased one's strings is left in the database, and everything of the others' is.

Both stores are filled through every door, with a string of its own at each. What is looked at is a dump with its statistics,
every column of the catalogue, and what every function answers.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest

from ranked_ledger import ErasedTextError, Erasure, MemorySteward, doctor, settings
from tests.contract.company import token_of
from tests.patches import remains
from tests.patches.marked import Person
from tests.patches.marked_scene import Scene, filled

DIGEST_KEY = "kept where the secrets are"
# Each door has a model of its own, too.
MODELS = "one_embedding_model_a_workspace"
# A thought that somebody else's memory points to stays, and is counted.
SHARED = [
    f"a thought shared with {whose}" for whose in ("another's decision", "a lesson", "another organization")
]


@pytest.fixture(params=["the owner", "the service, with strings"])
def scene(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with_strings = "strings" in request.param
    kind = "own" if with_strings else "host"
    with filled(kind, tmp_path_factory.mktemp("function"), with_loose=with_strings) as scene:
        yield scene


def erase(scene: Scene, *, dry_run: bool = False) -> Erasure:
    """By the owner's token; or by the service, which names the owner, with everything that nothing ties to the subject."""
    company, between = scene.erased.company, scene.between
    named: dict[str, Any] = {"digest_key": DIGEST_KEY, "dry_run": dry_run}
    if scene.has_loose:
        strings = [*between.loose.strings, *between.name.strings, *between.everywhere.strings]
        strings += [scene.erased.marks.words[door] for door in SHARED]
        owner = str(company.person("owner"))
        named |= {"also_containing": strings, "asserted_by": owner}
    erasure: Erasure = company.steward(None if scene.has_loose else "owner").erase(
        scene.erased.subject, **named
    )
    return erasure


def test_none_of_the_strings_are_left_and_all_of_the_others(scene: Scene) -> None:
    house, marks = scene.house, scene.erased.marks
    theirs, stats = access(scene.foreigner), policy_stats(scene)
    before, text = remains.columns(house), remains.dump(house)
    every_door_has_written(scene, text)
    made = scene.made()
    kept = [remains.made_of(house, one)["vectors"] for one in (scene.other, scene.foreigner)]
    assert remains.left_of(text, made).keys() == made.keys()
    assert_counts(scene, tried := erase(scene, dry_run=True))
    assert remains.columns(house) == before, "a dry run"
    digested = texts_of(scene)

    done = erase(scene)
    assert done.counts == tried.counts
    after, text = remains.columns(house), remains.dump(house)
    shared = SHARED[-1:] if scene.has_loose else SHARED
    allowed = {marks.words[door] for door in shared}
    assert remains.words(text, *scene.gone) == allowed
    assert remains.places(after, *scene.gone) == {
        "public.thoughts.content": {marks.texts[door] for door in shared}
    }
    assert remains.hashed(text, scene.texts()) == {marks.texts[door] for door in shared}, "fingerprints"
    assert remains.left_of(text, made) == {}
    assert (DIGEST_KEY in text, remains.hashed(text, [DIGEST_KEY])) == (False, set())
    if scene.has_loose:
        only_names_and_the_other_organizations_are_left(scene, after)

    assert_others_are_whole(scene, before, after)
    for vectors in kept:
        assert remains.left_of(text, {"vectors": vectors}) == {"vectors": vectors}
    assert policy_stats(scene) == stats
    assert access(scene.foreigner) == theirs, "the same candidate's, of another organization"
    the_other_is_told(scene)
    everything_is_sound(scene)
    a_repeat_finds_nothing(scene, done)
    assert remains.words(remains.dump(house), *scene.gone) == allowed
    nobody_answers_them(scene)
    what_was_erased_is_known_again(scene, digested)


def every_door_has_written(scene: Scene, text: str) -> None:
    """A door that silently wrote nothing would prove nothing."""
    for marks in scene.all:
        missing = {door for door, word in marks.words.items() if word not in text}
        assert missing == set(), marks.tag
    assert len(scene.erased.marks.words) > 120
    assert len(scene.between.loose.words) > 35 or not scene.has_loose


def assert_counts(scene: Scene, erasure: Erasure) -> None:
    """The receipt counts what is there, as counted in other words."""
    house, erased = scene.house, scene.erased
    decisions = sorted(set(erased.decisions))

    def count(query: str) -> int:
        ((number,),) = house.database.execute(
            query,
            {"decisions": decisions, "memories": erased.memories, "subject": erased.id, "org": erased.org},
        ).fetchall()
        return int(number)

    thoughts = count("select count(distinct thought_id) from agent_memories where id = any (%(decisions)s)")
    expected = {
        "memories": len(erased.memories) - 1,  # one was forgotten before
        "decisions": len(decisions),
        "decisions_shared": 1,
        "thoughts_shared": len(SHARED),
        "thoughts_deleted": thoughts - len(SHARED),
        "traces": count(
            """select count(distinct t.id) from agent_memory_recall_traces t
               left join agent_memory_recall_items i on i.trace_id = t.id
               left join long_term_memory.trace_subjects s on s.trace_id = t.id and s.org_id = %(org)s
               where i.memory_id = any (%(decisions)s) or s.subject_id = %(subject)s"""
        ),
        "recalls": count(
            """select count(distinct r.id) from long_term_memory.recalls r
               left join long_term_memory.recall_items i on i.recall_id = r.id
               left join long_term_memory.recall_subjects s on s.recall_id = r.id
               where r.org_id = %(org)s and (i.memory_id = any (%(memories)s::uuid[]) or s.subject_id = %(subject)s)"""
        ),
        "names_left": len(scene.between.name.words),
    }
    assert {name: erasure.counts[name] for name in expected} == expected
    assert erasure.counts["reviews"] > 15
    assert (erasure.counts["strings_cleaned"] > 30) is scene.has_loose


def only_names_and_the_other_organizations_are_left(scene: Scene, after: remains.Columns) -> None:
    between = scene.between
    assert remains.places(after, between.loose) == {}
    assert {place.split(".")[-1] for place in remains.places(after, between.name)} == {"task_id"}
    left = remains.places(after, between.everywhere)
    for place in (
        "long_term_memory.agent_memories.text",
        "public.agent_memories.content",
        "public.thoughts.content",
    ):
        (value,) = left[place]
        assert remains.words(value, scene.foreigner.marks), "the other organization's"


def assert_others_are_whole(scene: Scene, before: remains.Columns, after: remains.Columns) -> None:
    """Value by value, in every column: what changed held a string that was given, and the rest of it is as it was."""
    cleaned = 0
    for place, values in remains.places(before, *scene.staying).items():
        if place.startswith("pg_catalog."):
            continue  # statistics may go
        for value in values:
            if (number := after[place][value]) == before[place][value]:
                continue
            cleaned += 1
            assert remains.words(value, scene.between.loose), (place, value, number)
            if place.endswith("lexemes"):
                stay = remains.words(value, *scene.staying)
                assert any(stay <= remains.words(one, *scene.staying) for one in after[place])
            else:
                cleaned_value = value
                for string in scene.between.loose.strings:
                    cleaned_value = cleaned_value.replace(string, "[erased]")
                assert after[place][cleaned_value] == 1, (place, value)
    assert (cleaned > 0) is scene.has_loose


def access(person: Person) -> dict[str, Any]:
    """The document of a person, without its time and without thoughts: one that is shared is left out, and so is not shown
    before an erasure unlinks it.
    """
    document: dict[str, Any] = person.company.steward().subject_access(person.subject).as_dict()
    decisions = [{**one, "thought": None} for one in document["decisions"]]
    return {**document, "as_of": None, "decisions": decisions}


def the_other_is_told(scene: Scene) -> None:
    """Who shared a decision with the erased one hears of it, by a token of their own, and has everything else."""
    house, other = scene.house, scene.other
    token = token_of(house.project, other.id)
    with MemorySteward(
        house.project.url, house.project.publishable_key, org=other.org, access_token=token
    ) as themself:
        document = themself.subject_access(other.subject)
    told = document.as_dict()
    assert [(one["memory_id"], one["content"]) for one in told["decisions"] if one["erased_with_other"]] == [
        (scene.between.decision, "[erased]")
    ]
    assert any("erased for somebody else" in note for note in told["notes"])
    text = json.dumps(told, ensure_ascii=False)
    assert remains.words(text, *scene.gone) <= {scene.erased.marks.words[SHARED[0]]}
    for door in (
        "a model remembers",
        "corrected twice",
        "content of a record",
        "reason to doubt",
        "notes of a review",
    ):
        assert other.marks.words[door] in text


def nobody_answers_them(scene: Scene) -> None:
    """No function, of ours or of the host's, has any of the strings in what it answers."""
    house, erased = scene.house, scene.erased
    company, function = erased.company, house.function.http
    held = access(erased)
    assert all(memory["erased_at"] and not memory["text"] for memory in held["memories"])
    assert {decision["content"] for decision in held["decisions"]} == {"[erased]"}
    assert {recall["query"] for recall in held["recalls"]} == {""}
    assert {trace["query"] for trace in held["traces"]} == {""}
    heard: list[Any] = [held]
    for agent in (company.agent(), company.agent("member")):
        heard += [
            agent.recall(limit=1000, include_unreviewed=True).as_dict(),
            agent.recall(erased.marks.words["a model remembers"], subject=erased.subject).as_dict(),
        ]
    heard += [company.steward("admin").usage(memory).model_dump(mode="json") for memory in erased.memories]
    heard += [memory.model_dump(mode="json") for memory in company.steward("admin").pending()]
    for workspace in (erased.workspace, scene.other.workspace):
        ledger = house.ledger(workspace)
        asked: dict[str, Any] = {"limit": 1000, "include_superseded": True, "trace": False}
        heard.append(ledger.recall(**asked).as_dict())
        heard.append(ledger.recall(erased.marks.words["content of a record"], **asked).as_dict())
        heard += [one.model_dump(mode="json") for one in ledger.timeline()]
        heard.append(
            house.expect(function.get("/memories", params={"workspace_id": workspace, "limit": 200}))
        )
    for decision in erased.decisions:
        heard.append(house.expect(function.get(f"/memories/{decision}")))
    enrolled = house.rows(
        "select workspace_id, memory_id::text from agent_decision_ledger where set_aside_at is null and memory_id = any (%s)",
        erased.decisions,
    )
    for workspace, decision in enrolled:
        ledger = house.ledger(workspace)
        heard += [
            ledger.get(decision).model_dump(mode="json"),
            ledger.impact(decision).model_dump(mode="json"),
        ]
    heard += [house.expect(function.get(f"/recall-traces/{trace}")) for trace in erased.traces]
    assert remains.words(json.dumps(heard, ensure_ascii=False, default=str), *scene.gone) == set()


def policy_stats(scene: Scene) -> list[Any]:
    return [
        (workspace, one.model_dump(mode="json"))
        for workspace in scene.house.workspaces.values()
        for one in scene.house.ledger(workspace).policy_stats()
    ]


def everything_is_sound(scene: Scene) -> None:
    """The ledger finds nothing wrong with itself: what it could not enrol and follow before, it has, without the words."""
    house = scene.house
    mended = doctor.mend(house.ledger(scene.erased.workspace))
    assert (mended.enrolled, mended.failed) == (0, 0)
    assert house.column("select count(*) from ranked_ledger.enrolment_failures") == [0]
    for workspace in house.workspaces.values():
        ledger = house.ledger(workspace)
        assert {check.name for check in ledger.status().checks if not check.ok} <= {MODELS}
        assert list(ledger.check_copies(limit=10_000).wrong) == []
    diagnosis = doctor.examine(
        house.ledger(scene.erased.workspace),
        settings.project(house.project.url, house.project.secret_key),
        public_key=house.project.publishable_key,
    )
    problems = [one.name for one in diagnosis.findings if one.state == "problem"]
    assert problems == [MODELS.replace("_", " ")], diagnosis.as_dict()


def a_repeat_finds_nothing(scene: Scene, done: Erasure) -> None:
    written = "select xmin::text from {} order by id"
    tables = ("agent_memories", "agent_memory_recall_traces", "long_term_memory.agent_memories", "thoughts")
    before = [scene.house.rows(written.format(table)) for table in tables]
    again = erase(scene)
    assert {name: number for name, number in again.counts.items() if number} == (
        {"names_left": 1} if scene.has_loose else {}
    )
    assert (done.already, again.already, again.digests) == (False, True, 0)
    assert again.receipt_id not in (None, done.receipt_id)
    assert [scene.house.rows(written.format(table)) for table in tables] == before
    receipts = access(scene.erased)["erasures"]
    assert [UUID(receipt["receipt_id"]) for receipt in receipts] == [done.receipt_id, again.receipt_id]
    grade = "asserted" if scene.has_loose else "verified"
    assert {receipt["grade"] for receipt in receipts} == {grade}


def texts_of(scene: Scene) -> Counter[str]:
    """What digests are made of."""
    return Counter(
        scene.house.column(
            """select text from long_term_memory.agent_memories where id = any (%s) and redacted_at is null
               union select text_before from long_term_memory.memory_events
                     where memory_id = any (%s::uuid[]) and text_before is not null
               union select content from agent_memories where id = any (%s)""",
            scene.erased.memories,
            scene.erased.memories,
            scene.erased.decisions,
        )
    )


def what_was_erased_is_known_again(scene: Scene, digested: Counter[str]) -> None:
    erased, agent = scene.erased, scene.erased.company.agent()
    assert len(digested) > 35
    for text in digested:
        for form in (text, f"  {text.upper()}\n"):
            with pytest.raises(ErasedTextError):
                agent.remember(form, subject=erased.subject, digest_key=DIGEST_KEY)
    text = erased.marks.texts["corrected once"]
    asked: list[tuple[Any, str, dict[str, Any]]] = [
        (agent, "not_checked", {"subject": erased.subject}),
        (agent, "flagged", {"subject": erased.subject, "digest_key": DIGEST_KEY, "on_return": "flag"}),
        (agent, "other_key", {"subject": erased.subject, "digest_key": f"not {DIGEST_KEY}"}),
        (agent, "clear", {"subject": scene.other.subject, "digest_key": DIGEST_KEY}),
        (scene.foreigner.company.agent(), "clear", {"subject": erased.subject, "digest_key": DIGEST_KEY}),
    ]
    for client, answer, named in asked:
        assert client.remember(text, **named).erased_before == answer
    new = agent.remember("Something new", subject=erased.subject, digest_key=DIGEST_KEY)
    assert new.erased_before == "clear"
