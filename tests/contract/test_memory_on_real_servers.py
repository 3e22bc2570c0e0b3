"""Every method of the long-term memory's clients against PostgreSQL, PostgREST and the gateway, with people's own tokens."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest

import ranked_ledger as rl
from ranked_ledger.stack import Stack, StackInfo
from tests.contract.company import Company, token_of

DIGEST_KEY = "the key of this organization's digests"


def axis(place: int, dimensions: int = 384) -> list[float]:
    return [1.0 if number == place else 0.0 for number in range(dimensions)]


def texts(recall: rl.MemoryRecall) -> list[str]:
    return [hit.text for hit in recall]


# --- the life of a memory ---------------------------------------------------------------------------------------------


def test_what_a_model_wrote_lives_through_review_recall_correction_and_erasure(company: Company) -> None:
    agent, admin, owner = company.agent(), company.steward("admin"), company.steward("owner")
    candidate = ("candidate", uuid4())

    made = agent.remember("Prefers calls after 17:00", subject=candidate, run_id="run-1")
    assert (made.author, made.grade, made.source_run_id) == ("model", None, "run-1")
    assert (made.org_id, made.subject_type, made.subject_id) == (company.org, *candidate)
    assert (made.replayed, made.erased_before, made.review_outcome) == (False, "not_checked", None)

    assert texts(agent.recall("calls", subject=candidate)) == []
    assert texts(agent.recall("calls", subject=candidate, include_unreviewed=True)) == [made.text]
    waiting = admin.pending()
    assert [one.memory_id for one in admin.walked(waiting)] == [made.memory_id]

    reviewed = admin.review(made, "approved", can_use_as_instruction=True, note="they said so")
    assert (reviewed.review_outcome, reviewed.review_grade) == ("approved", "verified")
    assert (reviewed.reviewed_by, reviewed.can_use_as_instruction) == (company.person("admin"), True)
    assert (reviewed.changed, admin.review(made, "approved", can_use_as_instruction=True).changed) == (
        True,
        False,
    )
    assert admin.walked(admin.pending()) == []

    recall = agent.recall("when to call?", subject=candidate, run_id="run-2")
    (hit,) = recall
    assert (hit.memory_id, hit.review_grade, hit.can_use_as_instruction) == (made.memory_id, "verified", True)
    assert recall.recorded
    prompt = recall.to_prompt()
    assert prompt.startswith("<memories-")
    assert hit.line in prompt
    assert "17:00" in prompt

    usage = admin.usage(made)
    assert usage.reads == len(usage.runs)
    assert (usage.runs[0].run_id, usage.runs[0].recall_id) == ("run-2", recall.recall_id)

    corrected = agent.correct(made, "Prefers calls after 18:00", note="a typo")
    assert (corrected.text, corrected.changed, corrected.review_outcome) == (
        "Prefers calls after 18:00",
        True,
        None,
    )
    assert not agent.correct(made, "Prefers calls after 18:00").changed
    assert texts(agent.recall("calls", subject=candidate)) == []
    other = agent.remember("Has a dog", subject=candidate)
    gone = agent.forget(other, note="not ours to know")
    assert (gone.memory_id, gone.already, agent.forget(other).already) == (other.memory_id, False, True)
    with pytest.raises(rl.GoneError):
        agent.correct(other, "x")

    found = admin.subject_access(candidate)
    assert "Prefers calls after 18:00" in [memory.get("text") for memory in found.memories]
    told = found.as_text()
    assert "Prefers calls after 18:00" in told
    assert "run-1" in told
    assert "dog" not in told

    rehearsal = owner.erase(candidate, dry_run=True)
    assert (rehearsal.receipt_id, rehearsal.dry_run, rehearsal.already) == (None, True, False)
    receipt = owner.erase(candidate, digest_key=DIGEST_KEY)
    assert isinstance(receipt.receipt_id, UUID)
    assert (receipt.already, receipt.counts["memories"]) == (False, rehearsal.counts["memories"])
    assert receipt.digests >= 1
    again = owner.erase(candidate)
    assert again.already
    assert sum(again.counts.values()) == 0
    assert texts(agent.recall(include_unreviewed=True, subject=candidate)) == []
    left = owner.subject_access(candidate).as_text()
    assert "18:00" not in left
    assert str(receipt.receipt_id) in left

    with pytest.raises(rl.ErasedTextError) as caught:
        agent.remember("Prefers calls after 18:00", subject=candidate, digest_key=DIGEST_KEY)
    assert caught.value.code == "RL476"
    flagged = agent.remember(
        "Prefers calls after 18:00", subject=candidate, digest_key=DIGEST_KEY, on_return="flag"
    )
    assert flagged.erased_before == "flagged"
    fresh = agent.remember("Likes tea", subject=candidate, digest_key=DIGEST_KEY)
    assert fresh.erased_before == "clear"
    assert (
        agent.remember("Likes tea", subject=candidate, digest_key=DIGEST_KEY[::-1]).erased_before
        == "other_key"
    )


def test_what_the_service_role_says_of_members_is_asserted_and_has_to_be_allowed(company: Company) -> None:
    steward, candidate = company.steward(), ("candidate", uuid4())
    member, admin = company.person("member"), company.person("admin")
    memory = company.agent().remember("x")
    refused: list[Callable[[], Any]] = [
        lambda: steward.remember("Likes tea", asserted_by=member, subject=candidate),
        lambda: steward.review(memory, "approved", reviewer=admin),
        lambda: steward.walked(steward.pending()),
    ]
    for act in refused:
        with pytest.raises(rl.PermissionDeniedError, match="set_organization"):
            act()
    assert steward.set_organization(allow_asserted=True).allow_asserted
    said = steward.remember("Likes tea", asserted_by=member, subject=candidate)
    assert (said.author, said.grade, said.asserted_by, said.written_by) == (
        "person",
        "asserted",
        str(member),
        None,
    )
    assert [one.memory_id for one in steward.walked(steward.pending())] == [memory.memory_id]
    reviewed = steward.review(memory, "approved", reviewer=admin)
    assert (reviewed.review_outcome, reviewed.review_grade) == ("approved", "asserted")
    with pytest.raises(rl.PermissionDeniedError):
        steward.review(memory, "approved", reviewer=admin, can_use_as_instruction=True)
    with pytest.raises(rl.NotFoundError):
        steward.remember("x", asserted_by=uuid4())
    with pytest.raises(rl.InvalidArgumentError):
        company.steward("admin").review(memory, "rejected", reviewer=admin)


def test_what_a_person_wrote_is_there_for_a_colleague_at_once(company: Company) -> None:
    mine = company.agent("member")
    made = company.steward("member").remember("The customer pays late", workspace="acme")
    assert (made.author, made.grade, made.written_by) == ("person", "verified", company.person("member"))
    assert made.workspace_id == "acme"
    colleague = company.agent("admin")
    assert texts(colleague.recall("late", workspace="acme")) == [made.text]
    assert texts(colleague.recall("late", workspace="elsewhere")) == []
    theirs = company.steward("admin").remember("Pays by card")
    for act in (lambda: mine.correct(theirs, "x"), lambda: mine.forget(theirs)):
        with pytest.raises(rl.PermissionDeniedError):
            act()
    assert mine.correct(made, "The customer pays in time").changed
    with pytest.raises(rl.InvalidArgumentError, match="asserted_by"):
        company.steward("member").remember("x", asserted_by=company.person("admin"))
    with pytest.raises(rl.InvalidArgumentError, match="asserted_by"):
        company.steward().remember("x")


def test_what_an_agent_remembers_on_a_persons_token_waits_for_a_review(company: Company) -> None:
    agent = company.agent("member")
    made = agent.remember("The customer pays late")
    assert (made.author, made.grade, made.written_by) == ("model", "verified", company.person("member"))
    assert texts(agent.recall("late")) == []
    (waiting,) = company.steward("admin").walked(company.steward("admin").pending())
    assert waiting.memory_id == made.memory_id


def test_a_person_asks_about_themself_and_has_it_erased(company: Company) -> None:
    user = company.new_user()
    made = company.agent().remember("Prefers short answers", subject=("user", user))
    themself = company.steward(access_token=token_of(company.stack, user), key=company.stack.publishable_key)
    assert made.text in themself.subject_access(("user", user)).as_text()
    with pytest.raises(rl.PermissionDeniedError):
        themself.subject_access(("user", uuid4()))
    with pytest.raises(rl.PermissionDeniedError):
        themself.usage(made)
    assert themself.erase(("user", user)).counts["memories"] == 1


# --- writing ----------------------------------------------------------------------------------------------------------


def test_a_repeat_returns_the_first_memory(company: Company) -> None:
    agent = company.agent()
    first = agent.remember("x", idempotency_key="k")
    again = agent.remember("x", idempotency_key="k")
    assert (first.replayed, again.replayed, again.memory_id) == (False, True, first.memory_id)
    with pytest.raises(rl.ConflictError):
        agent.remember("y", idempotency_key="k")
    agent.forget(first)
    with pytest.raises(rl.GoneError):
        agent.remember("x", idempotency_key="k")


def test_two_at_once_give_one_memory(stack: StackInfo, company: Company) -> None:
    together = threading.Barrier(6)

    def write(_: int) -> rl.Remembered:
        with rl.LongTermMemory(stack.url, stack.secret_key, org=company.org) as agent:
            together.wait(30)
            return agent.remember("x", idempotency_key="k")

    with ThreadPoolExecutor(6) as pool:
        made = list(pool.map(write, range(6)))
    assert len({one.memory_id for one in made}) == 1
    assert sorted(one.replayed for one in made) == [False] + [True] * 5


def test_an_answer_that_was_lost_is_answered_again(company: Company) -> None:
    """The memory stands, its answer never arrives: the client asks again and gets it."""

    class Losing(httpx.HTTPTransport):
        lost = 0

        def handle_request(self, request: httpx.Request) -> httpx.Response:
            answer = super().handle_request(request)
            if request.url.path.endswith("/remember") and not self.lost:
                self.lost = 1
                answer.read()
                raise httpx.ReadError("reset")
            return answer

    with httpx.Client(transport=Losing()) as http:
        agent = rl.LongTermMemory(
            company.stack.url, company.stack.secret_key, org=company.org, http_client=http
        )
        made = agent.remember("x")
    assert made.replayed
    assert len(company.agent().recall(include_unreviewed=True)) == 1


def test_a_memory_fades(company: Company) -> None:
    agent, soon = company.agent(), datetime.now(UTC) + timedelta(hours=1)
    made = agent.remember("For an hour", expires_at=soon)
    assert made.expires_at == soon
    later = soon + timedelta(days=1)
    assert agent.correct(made, "For a day", expires_at=later).expires_at == later
    with pytest.raises(rl.InvalidArgumentError, match="past"):
        agent.remember("x", expires_at=datetime.now(UTC) - timedelta(seconds=5))
    assert company.steward().expire().expired >= 0


def test_vectors_find_what_one_model_made_and_words_the_rest(company: Company) -> None:
    agent = company.agent()
    named = {"include_unreviewed": True, "weights": {"recency": 0}}
    near = agent.remember("Aviation", embedding=axis(1), embedding_model="a")
    agent.remember("Beekeeping", embedding=axis(1), embedding_model="b")
    agent.remember("Carpentry", embedding=axis(2), embedding_model="a")
    recall = agent.recall("nothing of these", embedding=axis(1), embedding_model="a", **named)
    assert (recall[0].memory_id, recall[0].relevance, recall[0].relevance_source) == (
        near.memory_id,
        1.0,
        "cosine",
    )
    assert recall[1].relevance == 0.0
    words = agent.recall("beekeeping", embedding=axis(1), embedding_model="c", **named)
    assert (words[0].text, words[0].relevance_source) == ("Beekeeping", "fts")
    assert len(agent.recall(min_relevance=0.5, embedding=axis(1), embedding_model="a", **named)) == 1


def test_a_prompt_stays_within_its_tokens(company: Company) -> None:
    agent = company.agent("member")
    for number in range(12):
        company.steward("member").remember(f"Fact {number}: " + "tea " * 30)
    recall = agent.recall("tea", limit=12, max_tokens=200)
    assert 0 < len(recall) < 12
    assert recall.dropped
    assert len(recall.to_prompt()) <= 800
    assert set(recall.dropped).isdisjoint(hit.memory_id for hit in recall)


def test_what_waits_is_walked_in_pages_the_oldest_first(company: Company) -> None:
    agent, admin = company.agent(), company.steward("admin")
    made = [agent.remember(str(number)).memory_id for number in range(5)]
    pages = admin.walked(admin.pending(page_size=2).pages())
    assert [len(page) for page in pages] == [2, 2, 1]
    assert [one.memory_id for page in pages for one in page] == made
    assert pages[0].pending == 5
    assert [one.memory_id for one in admin.walked(admin.pending(after=pages[0].next, limit=2))] == made[2:4]


# --- beside the ledger ------------------------------------------------------------------------------------------------


def test_decisions_about_a_person_are_shown_and_erased_with_the_memories(
    company: Company, stack: StackInfo, workspace: str
) -> None:
    steward, candidate = company.steward(), ("candidate", uuid4())
    with rl.RankedLedger(stack.url, stack.secret_key, workspace=workspace) as ledger:
        decision = ledger.record("Invite Ada Lovelace to a second interview", rationale="strong on maths")
        with pytest.raises(rl.NotFoundError):
            steward.attribute_decision(decision, candidate)
        mapped = steward.map_workspace(workspace)
        assert (mapped.org_id, mapped.changed, mapped.attributions_lost) == (company.org, True, 0)
        assert steward.attribute_decision(decision, candidate).changed
        assert not steward.attribute_decision(decision, candidate).changed
        ledger.recall("whom do we see again?", subject=candidate)
        found = steward.subject_access(candidate)
        assert len(found.decisions) == 1
        assert len(found.traces) == 1
        assert "whom do we see again?" in found.as_text()
        assert "Ada Lovelace" in found.as_text()
        counts = company.steward("owner").erase(candidate, also_containing=["Ada Lovelace"]).counts
        assert (counts["decisions"], counts["traces"]) == (1, 1)
        left = ledger.get(decision)
        assert (left.content, left.rationale, left.lifecycle_status) == ("[erased]", None, "rejected")
        with pytest.raises(rl.GoneError):
            steward.attribute_decision(decision, ("candidate", uuid4()))
    gone = steward.map_workspace(workspace, remove=True)
    assert (gone.org_id, gone.changed) == (None, True)


# --- the organization -------------------------------------------------------------------------------------------------


def test_members_come_and_go(company: Company) -> None:
    steward = company.steward()
    assert not steward.set_organization(name="Acme").created
    member = company.person("member")
    agent = company.agent("member")
    agent.remember("x")
    assert (steward.set_member(member, "admin").changed, steward.set_member(member, "admin").changed) == (
        True,
        False,
    )
    owner = company.person("owner")
    assert steward.set_member(owner, None).hint
    assert steward.set_member(member, None).role is None
    with pytest.raises(rl.PermissionDeniedError):
        agent.remember("x")


def test_there_is_nothing_to_adopt_where_no_other_table_is(company: Company) -> None:
    with pytest.raises(rl.InvalidArgumentError) as caught:
        company.steward().adopt(dry_run=True)
    assert caught.value.hint


def test_a_project_without_the_store_is_told_what_to_run(bare_stack: Stack) -> None:
    info = bare_stack.info()
    with (
        rl.LongTermMemory(info.url, info.secret_key, org=uuid4()) as agent,
        pytest.raises(rl.NotInstalledError, match="init --long-term-memory"),
    ):
        agent.recall("x")
