"""What the verbs of the long-term memory ask, and which arguments they refuse before anything is asked."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranked_ledger import InvalidArgumentError, asking, memory_calls
from ranked_ledger import arguments as check
from ranked_ledger.subjects import Subject
from tests.unit import memory_answers as answers
from tests.unit.conftest import ORG

WHEN = datetime(2027, 1, 2, 3, 4, tzinfo=UTC)
CANDIDATE: Subject = ("candidate", answers.CANDIDATE)
ABOUT = {"p_subject_type": "candidate", "p_subject_id": str(answers.CANDIDATE)}


def remember(text: Any = "x", **named: Any) -> Any:
    usual = {
        "subject": None,
        "workspace": None,
        "author": "model",
        "asserted_by": None,
        "run_id": None,
        "expires_at": None,
        "embedding": None,
        "embedding_model": None,
        "key": None,
        "digest_key": None,
        "on_return": "refuse",
    }
    return memory_calls.remember(ORG, text, **{**usual, **named})


def recall(query: Any = "x", **named: Any) -> Any:
    usual = {
        "subject": None,
        "workspace": None,
        "limit": 10,
        "max_tokens": None,
        "include_unreviewed": False,
        "min_relevance": None,
        "weights": None,
        "half_life_days": None,
        "embedding": None,
        "embedding_model": None,
        "run_id": None,
    }
    return memory_calls.recall(ORG, query, **{**usual, **named})


def test_only_what_was_set_is_sent() -> None:
    assert remember().body == {"p_org_id": ORG, "p_text": "x"}
    assert recall().body == {"p_org_id": ORG, "p_query": "x", "p_match_count": 10}
    assert memory_calls.forget(ORG, answers.MEMORY, None).body == {
        "p_org_id": ORG,
        "p_memory_id": str(answers.MEMORY),
    }


def test_everything_that_was_set_is_sent() -> None:
    call = remember(
        subject=CANDIDATE,
        author="person",
        asserted_by=answers.PERSON,
        run_id="run-81",
        expires_at=WHEN,
        embedding=[1, 2],
        embedding_model="m",
        key="k",
        digest_key="0123456789abcdef",
        on_return="flag",
    )
    assert call.body == {
        "p_org_id": ORG,
        "p_text": "x",
        **ABOUT,
        "p_author": "person",
        "p_source_run_id": "run-81",
        "p_expires_at": "2027-01-02T03:04:00+00:00",
        "p_embedding": "[1.0,2.0]",
        "p_embedding_model": "m",
        "p_asserted_by": str(answers.PERSON),
        "p_idempotency_key": "k",
        "p_digest_key": "0123456789abcdef",
        "p_on_return": "flag",
    }
    call = recall(
        subject=CANDIDATE,
        limit=3,
        max_tokens=200,
        include_unreviewed=True,
        min_relevance=0.1,
        weights={"relevance": 1, "recency": 0},
        half_life_days=7,
        embedding=[1, 2],
        embedding_model="m",
        run_id="run-82",
    )
    assert call.body == {
        "p_org_id": ORG,
        "p_query": "x",
        "p_query_embedding": "[1.0,2.0]",
        "p_embedding_model": "m",
        **ABOUT,
        "p_match_count": 3,
        "p_half_life_days": 7.0,
        "p_w_similarity": 1.0,
        "p_w_recency": 0.0,
        "p_min_relevance": 0.1,
        "p_include_unreviewed": True,
        "p_run_id": "run-82",
        "p_max_tokens": 200,
    }


def test_a_workspace_is_named_alone_or_with_its_type() -> None:
    assert remember(workspace="acme").body == {"p_org_id": ORG, "p_text": "x", "p_workspace_id": "acme"}
    about = remember(subject=("workspace", None), workspace="acme").body
    assert about == {
        "p_org_id": ORG,
        "p_text": "x",
        "p_subject_type": "workspace",
        "p_workspace_id": "acme",
    }
    with pytest.raises(InvalidArgumentError, match="workspace is for memories of a workspace"):
        remember(subject=CANDIDATE, workspace="acme")


def test_what_names_nobody_is_sent_as_null_where_null_means_something() -> None:
    unmapped = memory_calls.map_workspace(ORG, "acme", remove=True)
    assert unmapped.body == {"p_org_id": None, "p_workspace_id": "acme"}
    gone = memory_calls.set_member(ORG, answers.PERSON, None)
    assert gone.body == {"p_org_id": ORG, "p_user_id": str(answers.PERSON), "p_role": None}


@pytest.mark.parametrize(
    ("call", "repeatable"),
    [
        (remember(key="k"), True),
        (remember(), False),
        (recall(), True),
        (memory_calls.forget(ORG, answers.MEMORY, None), True),
        (memory_calls.subject_access(ORG, CANDIDATE), True),
    ],
)
def test_a_repeat_is_safe_where_it_changes_nothing(call: Any, repeatable: bool) -> None:
    assert call.repeatable is repeatable
    assert call.store == "memory"


@pytest.mark.parametrize("dry_run", [True, False])
def test_an_erasure_is_repeated_only_where_it_erases_nothing(dry_run: bool) -> None:
    call = memory_calls.erase(
        ORG, CANDIDATE, also_containing=(), digest_key=None, asserted_by=None, dry_run=dry_run
    )
    assert call.repeatable is dry_run


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ({"text": " "}, "text is blank"),
        ({"text": "x" * 65_537}, "65,537 bytes"),
        ({"text": "a\x00b"}, "NUL"),
        ({"subject": "candidate"}, "pair of a type and an id"),
        ({"subject": ("candidate",)}, "pair of a type and an id"),
        ({"subject": ("candidate", None)}, "names no candidate"),
        ({"subject": ("user", "somebody")}, "is no UUID"),
        ({"subject": ("robot", uuid4())}, "workspace, candidate, user"),
        ({"author": "robot"}, "model, person"),
        ({"asserted_by": "Ada"}, "is no UUID"),
        ({"run_id": "r" * 1_001}, "1,001 bytes"),
        ({"expires_at": datetime(2027, 1, 1)}, "time zone"),
        ({"expires_at": "tomorrow"}, "must be a datetime"),
        ({"embedding": [1]}, "embedding is given without embedding_model"),
        ({"embedding_model": "m"}, "embedding_model is given without embedding"),
        ({"embedding": [0, 0], "embedding_model": "m"}, "no direction"),
        ({"key": "k" * 256}, "256 characters"),
        ({"digest_key": "short"}, "16"),
        ({"on_return": "ask"}, "refuse, flag"),
    ],
)
def test_what_cannot_be_remembered(named: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidArgumentError, match=said):
        remember(**named)


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ({"limit": 0}, "limit"),
        ({"limit": 1_001}, "limit"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"include_unreviewed": 1}, "True or False"),
        ({"min_relevance": 1.5}, r"\[0, 1\]"),
        ({"weights": {"importance": 1}}, "a memory has no importance"),
        ({"weights": {"relevance": -1}}, "at least 0"),
        ({"half_life_days": 0}, "above 0"),
        ({"subject": ("user", "x")}, "no UUID"),
        ({"embedding": [1]}, "without embedding_model"),
    ],
)
def test_what_cannot_be_recalled(named: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidArgumentError, match=said):
        recall(**named)


@pytest.mark.parametrize("outcome", ["evidence_only", "rejected"])
def test_only_what_is_approved_may_instruct(outcome: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="goes with the outcome approved"):
        memory_calls.review(
            ORG, answers.MEMORY, outcome, can_use_as_instruction=True, note=None, reviewer=None
        )


def test_a_message_never_repeats_a_secret_or_a_memory() -> None:
    for named in ({"digest_key": "s3cret"}, {"text": "Ada Lovelace\x00"}, {"digest_key": "Ada\x00" * 9}):
        with pytest.raises(InvalidArgumentError) as caught:
            remember(**named)
        assert not {"s3cret", "Ada"} & set(str(caught.value).replace("'", " ").split())


@given(st.sampled_from(["candidate", "user", "workspace"]), st.uuids(), st.booleans())
def test_a_subject_is_sent_as_its_two_parts(kind: str, about: UUID, as_text: bool) -> None:
    given_id = str(about).upper() if as_text else about
    assert check.subject((kind, given_id)) == (kind, str(about))
    assert check.subject([kind, given_id]) == (kind, str(about))


@given(st.lists(st.text(min_size=6, max_size=1000).filter(str.strip), max_size=50))
def test_strings_to_be_cleaned_go_as_they_are(texts: list[str]) -> None:
    sendable = all("\x00" not in one and one.isascii() for one in texts)
    if sendable:
        assert check.phrases("also_containing", texts) == texts
        assert check.phrases("also_containing", iter(texts)) == texts


@given(st.text(max_size=5) | st.text(min_size=1001, max_size=1100))
def test_a_string_that_would_hit_others_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgumentError, match=r"also_containing\[0\]"):
        check.phrases("also_containing", text)


def test_one_string_may_stand_alone_and_fifty_are_enough() -> None:
    assert check.phrases("also_containing", "Ada L.") == ["Ada L."]
    with pytest.raises(InvalidArgumentError, match="51 texts; 50"):
        check.phrases("also_containing", ["Ada Lovelace"] * 51)


def test_a_recall_of_decisions_says_whom_it_is_about_only_where_that_is_set() -> None:
    usual: dict[str, Any] = dict.fromkeys(
        "task project current_step max_tokens min_relevance weights half_life_steps dependency_saturation "
        "embedding embedding_model similarity_floor similarity_ceiling request_id policy flow runtime_name".split()
    )
    usual |= {"limit": 10, "fusion": "none", "fusion_weight": 0.5, "exact": True, "trace": True}
    usual |= {"include_superseded": False, "include_stale": False, "only_confirmed": False}
    usual |= {"include_personal": True}
    assert "p_subject" not in asking.recall("acme", "x", **usual).body
    body = asking.recall("acme", "x", subject=CANDIDATE, **usual).body
    assert body["p_subject"] == {"type": "candidate", "id": str(answers.CANDIDATE)}
    with pytest.raises(InvalidArgumentError, match="names no workspace"):
        asking.recall("acme", "x", subject=("workspace", None), **usual)
