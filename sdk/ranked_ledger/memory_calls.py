"""What each verb asks of the long-term memory: arguments in, a `Call` out. Pure, as `calls` is.

A call sends only what was set, so that a new SDK works on an older schema. `docs/memory-api.md` is the
contract.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final, get_args
from uuid import UUID

from pydantic import TypeAdapter

from ranked_ledger import arguments as check
from ranked_ledger import asking, wording
from ranked_ledger.calls import Call as AnyCall
from ranked_ledger.calls import as_model, idempotency_key, sent
from ranked_ledger.errors import InvalidArgumentError
from ranked_ledger.memories import (
    Adopted,
    Attribution,
    Erasure,
    Expired,
    ForgottenMemory,
    MappedWorkspace,
    Member,
    Memory,
    MemoryHit,
    MemoryRecall,
    MemoryUsage,
    Organization,
    Remembered,
    ReviewPage,
    SubjectAccess,
)
from ranked_ledger.models import DecisionRef, Weights
from ranked_ledger.subjects import Author, MemberRole, OnReturn, ReviewOutcome, Subject

MemoryRef = DecisionRef
"""Whatever names a memory: a `Memory`, a `MemoryHit`, a UUID or its text."""

DEFAULT_AUTHOR: Final[Author] = "model"
DEFAULT_ON_RETURN: Final[OnReturn] = "refuse"

Call = partial(AnyCall, store="memory")


def schema_version() -> AnyCall[int]:
    return Call("memory_schema_version", {}, TypeAdapter(int).validate_python)


def remember(
    org: str,
    text: str,
    *,
    subject: Subject | None,
    workspace: str | None,
    author: Author,
    asserted_by: UUID | str | None,
    run_id: str | None,
    expires_at: datetime | None,
    embedding: Sequence[float] | None,
    embedding_model: str | None,
    key: str | None,
    digest_key: str | None,
    on_return: OnReturn,
) -> AnyCall[Remembered]:
    kind, about = ("workspace", None) if subject is None else check.subject(subject)
    if kind != "workspace" and workspace is not None:
        raise InvalidArgumentError(
            f"workspace is for memories of a workspace; this one is about a {kind}",
            hint="leave workspace out",
        )
    body = sent(
        org_id=org,
        text=check.text("text", text, max_bytes=check.MAX_MEMORY_BYTES),
        subject_type=None if subject is None else kind,
        subject_id=about,
        workspace_id=check.name("workspace", workspace),
        author=check.unless(DEFAULT_AUTHOR, check.one_of("author", author, get_args(Author))),
        source_run_id=check.name("run_id", run_id),
        expires_at=None if expires_at is None else check.moment("expires_at", expires_at),
        **_vector("embedding", embedding, embedding_model),
        asserted_by=None if asserted_by is None else check.uuid("asserted_by", asserted_by),
        idempotency_key=idempotency_key(key),
        digest_key=check.digest_key(digest_key),
        on_return=check.unless(DEFAULT_ON_RETURN, check.one_of("on_return", on_return, get_args(OnReturn))),
    )
    return Call("remember", body, as_model(Remembered), repeatable=key is not None)


def recall(
    org: str,
    query: str | None,
    *,
    subject: Subject | None,
    workspace: str | None,
    limit: int,
    max_tokens: int | None,
    include_unreviewed: bool,
    min_relevance: float | None,
    weights: Weights | Mapping[str, float] | None,
    half_life_days: float | None,
    embedding: Sequence[float] | None,
    embedding_model: str | None,
    run_id: str | None,
) -> AnyCall[MemoryRecall]:
    """A repeat after an answer that was lost is noted as a second reading: of readings, too many are told
    rather than too few."""
    kind, about = (None, None) if subject is None else check.subject(subject, named=False)
    weighed = asking.given_weights(weights)
    if unknown := sorted(set(weighed) - {"relevance", "recency"}):
        raise InvalidArgumentError(
            f"a memory has no {' and no '.join(unknown)}", hint="its weights are relevance and recency"
        )
    body = sent(
        org_id=org,
        query=check.optional_text("query", query, blank=True),
        **_vector("query_embedding", embedding, embedding_model),
        subject_type=kind,
        subject_id=about,
        workspace_id=check.name("workspace", workspace),
        match_count=check.whole("limit", limit, minimum=1, maximum=check.MAX_HITS),
        half_life_days=check.positive("half_life_days", half_life_days),
        w_similarity=weighed.get("relevance"),
        w_recency=weighed.get("recency"),
        min_relevance=None if min_relevance is None else check.fraction("min_relevance", min_relevance),
        include_unreviewed=check.flag("include_unreviewed", include_unreviewed) or None,
        run_id=check.name("run_id", run_id),
        max_tokens=None if max_tokens is None else check.whole("max_tokens", max_tokens, minimum=1),
    )
    return Call("recall_memories", body, _recall)


def _recall(answer: Any) -> MemoryRecall:
    return MemoryRecall(
        hits=tuple(MemoryHit.model_validate(hit) for hit in answer["hits"]),
        recall_id=None if answer["recall_id"] is None else UUID(answer["recall_id"]),
        shortened=tuple(UUID(one) for one in answer["shortened"]),
        dropped=tuple(UUID(one) for one in answer["dropped"]),
        recorded=bool(answer["recorded"]),
        arguments=answer["arguments"],
        hint=None if answer.get("hint") is None else wording.of_the_sdk(answer["hint"], "memory"),
    )


def correct(
    org: str,
    memory: MemoryRef,
    text: str,
    *,
    note: str | None,
    expires_at: datetime | None,
    embedding: Sequence[float] | None,
    embedding_model: str | None,
) -> AnyCall[Memory]:
    body = sent(
        org_id=org,
        memory_id=check.decision("memory", memory),
        text=check.text("text", text, max_bytes=check.MAX_MEMORY_BYTES),
        note=_note(note),
        expires_at=None if expires_at is None else check.moment("expires_at", expires_at),
        **_vector("embedding", embedding, embedding_model),
    )
    return Call("correct_memory", body, as_model(Memory))


def forget(org: str, memory: MemoryRef, note: str | None) -> AnyCall[ForgottenMemory]:
    body = sent(org_id=org, memory_id=check.decision("memory", memory), note=_note(note))
    return Call("forget_memory", body, as_model(ForgottenMemory))


def pending(org: str, *, after: Mapping[str, Any] | None, page_size: int) -> AnyCall[ReviewPage]:
    body = sent(
        org_id=org,
        limit=check.whole("page_size", page_size, minimum=1, maximum=check.MAX_PAGE),
        after=None if after is None else check.mapping("after", after),
    )

    def parse(answer: Any) -> ReviewPage:
        found = tuple(Memory.model_validate(one) for one in answer["memories"])
        return ReviewPage(found, answer["next"], int(answer["pending"]))

    return Call("pending_reviews", body, parse)


def review(
    org: str,
    memory: MemoryRef,
    outcome: ReviewOutcome,
    *,
    can_use_as_instruction: bool,
    note: str | None,
    reviewer: UUID | str | None,
) -> AnyCall[Memory]:
    usable = check.flag("can_use_as_instruction", can_use_as_instruction)
    body = sent(
        org_id=org,
        memory_id=check.decision("memory", memory),
        outcome=check.one_of("outcome", outcome, get_args(ReviewOutcome)),
        can_use_as_instruction=usable or None,
        note=_note(note),
        reviewer=None if reviewer is None else check.uuid("reviewer", reviewer),
        # what was read is what is reviewed: somebody may have corrected it since
        text=getattr(memory, "text", None),
    )
    if usable and body["p_outcome"] != "approved":
        raise InvalidArgumentError(
            "can_use_as_instruction goes with the outcome approved",
            hint="a memory that is no more than evidence instructs nobody",
        )
    return Call("review_memory", body, as_model(Memory))


def subject_access(org: str, subject: Subject) -> AnyCall[SubjectAccess]:
    def parse(answer: Any) -> SubjectAccess:
        if not isinstance(answer, Mapping):
            raise TypeError("the document is no object")
        return SubjectAccess(answer)

    return Call("subject_access", sent(org_id=org, **_subject(subject)), parse, seconds=_LONGEST_CALL)


def erase(
    org: str,
    subject: Subject,
    *,
    also_containing: str | Sequence[str],
    digest_key: str | None,
    asserted_by: UUID | str | None,
    dry_run: bool,
) -> AnyCall[Erasure]:
    rehearsed = check.flag("dry_run", dry_run)
    body = sent(
        org_id=org,
        **_subject(subject),
        also_containing=check.phrases("also_containing", also_containing),
        digest_key=check.digest_key(digest_key),
        asserted_by=None if asserted_by is None else check.uuid("asserted_by", asserted_by),
        dry_run=rehearsed or None,
    )
    # A repeat erases nothing twice, but its receipt says that nothing was left to erase. Where the first
    # answer was lost, that would pass for the receipt of the erasure; so the error comes through, and
    # subject access shows both receipts.
    return Call("erase_subject", body, as_model(Erasure), repeatable=rehearsed, seconds=_LONGEST_CALL)


def usage(org: str, memory: MemoryRef, limit: int) -> AnyCall[MemoryUsage]:
    body = sent(
        org_id=org,
        memory_id=check.decision("memory", memory),
        limit=check.whole("limit", limit, minimum=1, maximum=check.MAX_HITS),
    )
    return Call("memory_usage", body, as_model(MemoryUsage))


def attribute_decision(
    org: str, decision: DecisionRef, subject: Subject, *, remove: bool
) -> AnyCall[Attribution]:
    body = sent(
        org_id=org,
        memory_id=check.decision("decision", decision),
        **_subject(subject),
        remove=check.flag("remove", remove) or None,
    )
    return Call("attribute_decision", body, as_model(Attribution))


def map_workspace(org: str, workspace: str, *, remove: bool) -> AnyCall[MappedWorkspace]:
    """Without an organization it belongs to none."""
    name = check.text("workspace", workspace, max_bytes=check.MAX_NAME_BYTES)
    body = {"p_org_id": None if check.flag("remove", remove) else org, "p_workspace_id": name}
    return Call("map_workspace", body, as_model(MappedWorkspace))


def expire(limit: int, usage_before: datetime | None) -> AnyCall[Expired]:
    body = sent(
        limit=check.whole("limit", limit, minimum=1, maximum=check.MAX_PRUNED),
        usage_before=None if usage_before is None else check.moment("usage_before", usage_before),
    )
    return Call("expire_memories", body, as_model(Expired))


def adopt(limit: int, after: UUID | str | None, *, dry_run: bool) -> AnyCall[Adopted]:
    body = sent(
        limit=check.whole("limit", limit, minimum=1, maximum=check.MAX_ADOPTED),
        after=None if after is None else check.uuid("after", after),
        dry_run=check.flag("dry_run", dry_run) or None,
    )
    return Call("adopt_memories", body, as_model(Adopted))


def set_organization(org: str, *, name: str | None, allow_asserted: bool | None) -> AnyCall[Organization]:
    body = sent(
        org_id=org,
        name=check.name("name", name),
        allow_asserted=None if allow_asserted is None else check.flag("allow_asserted", allow_asserted),
    )
    return Call("set_organization", body, as_model(Organization))


def set_member(org: str, user: UUID | str, role: MemberRole | None) -> AnyCall[Member]:
    """Without a role they are no member."""
    given = None if role is None else check.one_of("role", role, get_args(MemberRole))
    body = {"p_org_id": org, "p_user_id": check.uuid("user", user), "p_role": given}
    return Call("set_member", body, as_model(Member))


_LONGEST_CALL: Final = 65.0  # a call of the platform ends after 60


def _subject(subject: Subject) -> dict[str, str | None]:
    kind, about = check.subject(subject)
    return {"subject_type": kind, "subject_id": about}


def _vector(
    name: str, embedding: Sequence[float] | None, embedding_model: str | None
) -> dict[str, str | None]:
    """A vector and its model, neither without the other: vectors of two models are never compared."""
    if (embedding is None) != (embedding_model is None):
        given, missing = ("embedding", "embedding_model")[:: 1 if embedding_model is None else -1]
        raise InvalidArgumentError(f"{given} is given without {missing}")
    if embedding is None:
        return {}
    model = check.text("embedding_model", embedding_model, max_bytes=check.MAX_NAME_BYTES)
    return {name: check.vector("embedding", embedding), "embedding_model": model}


def _note(note: str | None) -> str | None:
    return check.optional_text("note", note, max_bytes=check.MAX_NOTE_BYTES)
