"""The client of the people who answer for the long-term memory. `async_stewardship` has the same, awaited."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

import httpx

from ranked_ledger import memory_calls
from ranked_ledger.calling import Calling
from ranked_ledger.memories import (
    Adopted,
    Attribution,
    Erasure,
    Expired,
    MappedWorkspace,
    Member,
    Memory,
    MemoryUsage,
    Organization,
    Remembered,
    SubjectAccess,
)
from ranked_ledger.memory_calls import DEFAULT_ON_RETURN, MemoryRef
from ranked_ledger.memory_session import StewardSession
from ranked_ledger.models import DecisionRef
from ranked_ledger.paging import DEFAULT_PAGE, walk
from ranked_ledger.session import given_or_new
from ranked_ledger.subjects import MemberRole, OnReturn, ReviewOutcome, Subject
from ranked_ledger.timeline import PendingReviews


class MemorySteward(StewardSession[httpx.Client], Calling):
    """What people do with an organization's long-term memory, and its upkeep. Safe to share between threads.

    Reviewing, answering for and erasing, kept apart from what an agent holds (`LongTermMemory`).

    - `url`, `key`, `timeout`, `max_retries`, `http_client`: as of `LongTermMemory`.
    - `org`: the organization that every call is about, but `expire` and `adopt`, which are about all.
    - `access_token`: the JWT of the person who acts, which makes the act verified; then `key` may be the
      publishable or anon key. None: the service role acts, and may name who decided (`reviewer`,
      `asserted_by`) where the organization allows it; that is asserted.

    Every method raises what those of `LongTermMemory` raise.

    Example:
        >>> org = "7f8d2c1e-0000-4000-8000-000000000001"
        >>> with MemorySteward("http://127.0.0.1:54321", "sb_secret_local", org=org) as steward:
        ...     steward
        MemorySteward('http://127.0.0.1:54321/rest/v1', org='7f8d2c1e-0000-4000-8000-000000000001')
    """

    def remember(
        self,
        text: str,
        *,
        asserted_by: UUID | str | None = None,
        subject: Subject | None = None,
        workspace: str | None = None,
        run_id: str | None = None,
        expires_at: datetime | None = None,
        embedding: Sequence[float] | None = None,
        embedding_model: str | None = None,
        idempotency_key: str | None = None,
        digest_key: str | None = None,
        on_return: OnReturn = DEFAULT_ON_RETURN,
    ) -> Remembered:
        """Remember what a person says, which is recalled at once, without a review.

        With the person's own token it is verified. By the service role it is what a member said, asserted,
        since no token of theirs shows it.

        - `asserted_by`: by the service role alone: the member's user id. The rest is as in
          `LongTermMemory.remember`, but that no embedder makes a vector.

        Raises `InvalidArgumentError` where the service role names nobody, `PermissionDeniedError` where the
        organization does not allow it to (`set_organization`), `NotFoundError` for somebody who is no member.

        Example:
            >>> steward.remember("Prefers calls after 17:00", asserted_by=member,
            ...                  subject=("candidate", candidate)).grade       # doctest: +SKIP
            'asserted'
        """
        call = memory_calls.remember(
            self._org,
            text,
            subject=subject,
            workspace=workspace,
            author="person",
            asserted_by=asserted_by,
            run_id=run_id,
            expires_at=expires_at,
            embedding=embedding,
            embedding_model=embedding_model,
            key=given_or_new(idempotency_key),
            digest_key=digest_key,
            on_return=on_return,
        )
        return self._run(call)

    def pending(
        self,
        *,
        limit: int | None = None,
        page_size: int = DEFAULT_PAGE,
        after: Mapping[str, Any] | None = None,
    ) -> PendingReviews:
        """What a model wrote and nobody has reviewed yet, the oldest first, asked for as it is walked.

        For admins and owners; the service role only where the organization allows asserted acts.

        - `limit`: stop after so many; None: all. `page_size`: 1 to 500 a request, 50 by default.
        - `after`: the `next` of an earlier page, to go on from there.

        Example:
            >>> waiting = list(steward.pending(limit=20))                      # doctest: +SKIP
        """
        ask = partial(memory_calls.pending, self._org)
        return PendingReviews(self._run, walk(ask, after=after, limit=limit, page_size=page_size))

    def review(
        self,
        memory: MemoryRef,
        outcome: ReviewOutcome,
        *,
        can_use_as_instruction: bool = False,
        note: str | None = None,
        reviewer: UUID | str | None = None,
    ) -> Memory:
        """Say what a memory may be used for. A repeat changes nothing.

        With the token of an admin or an owner the review is verified. By the service role it is asserted, and
        only where the organization allows it.

        - `memory`: as it was read; where somebody has corrected it since, `ConflictError`. An id alone
          reviews whatever it says now.
        - `outcome`: "approved"; "evidence_only", recalled but no more than evidence; or "rejected", never
          recalled.
        - `can_use_as_instruction`: only with a verified approval. `note`: why, at most 2,000 bytes.
        - `reviewer`: by the service role alone: the user id of the admin or owner who decided.

        Example:
            >>> steward.review(memory, "approved").review_grade                # doctest: +SKIP
            'verified'
        """
        call = memory_calls.review(
            self._org,
            memory,
            outcome,
            can_use_as_instruction=can_use_as_instruction,
            note=note,
            reviewer=reviewer,
        )
        return self._run(call)

    def subject_access(self, subject: Subject) -> SubjectAccess:
        """Everything that both stores hold about a person, as one document.

        For admins, owners, the person themself (a user) and the service role. It may take a minute, whatever
        `timeout` says.

        - `subject`: `("candidate", id)` or `("user", id)`.

        Example:
            >>> print(steward.subject_access(("candidate", candidate)))        # doctest: +SKIP
        """
        return self._run(memory_calls.subject_access(self._org, subject))

    def erase(
        self,
        subject: Subject,
        *,
        also_containing: str | Sequence[str] = (),
        digest_key: str | None = None,
        asserted_by: UUID | str | None = None,
        dry_run: bool = False,
    ) -> Erasure:
        """Erase everything that is tied to a person, in both stores, in one transaction. It cannot be undone.

        For owners, the person themself (a user) and the service role. Memories become tombstones; decisions
        that are attributed to them lose their words and keep their place. Free text that nothing ties to the
        person is out of reach.

        - `subject`: `("candidate", id)` or `("user", id)`.
        - `also_containing`: exact strings, at most 50 of 6 to 1,000 characters each, to be cleaned wherever
          they stand in this organization's rows. Not for the person themself: they reach into other rows.
        - `digest_key`: at least 16 characters; keeps a keyed digest of what is erased, so that `remember`
          with the same key knows it when it comes back. The key is never stored.
        - `asserted_by`: by the service role alone: the user id of the owner who asked for it.
        - `dry_run`: count what would be erased, and erase nothing.

        A repeat erases nothing more and has a receipt of its own. After an answer that was lost the call is
        not repeated: `subject_access` shows whether there is a receipt. It may take a minute, whatever
        `timeout` says.

        Example:
            >>> steward.erase(("candidate", candidate), also_containing=["Ada L."]).counts  # doctest: +SKIP
        """
        call = memory_calls.erase(
            self._org,
            subject,
            also_containing=also_containing,
            digest_key=digest_key,
            asserted_by=asserted_by,
            dry_run=dry_run,
        )
        return self._run(call)

    def usage(self, memory: MemoryRef, *, limit: int = 100) -> MemoryUsage:
        """Which runs have read a memory, the newest first. For admins, owners and the service role.

        - `limit`: 1 to 1,000 of them; `reads` counts all.

        Example:
            >>> [read.run_id for read in steward.usage(memory).runs]           # doctest: +SKIP
        """
        return self._run(memory_calls.usage(self._org, memory, limit))

    def attribute_decision(
        self, decision: DecisionRef, subject: Subject, *, remove: bool = False
    ) -> Attribution:
        """Say that a decision of the ledger is about a person, so that access and erasure cover it.

        For the service role. The decision's workspace must be mapped to the organization.

        - `decision`: a decision, a hit, or an id. `remove`: it is not about them after all.

        Example:
            >>> steward.attribute_decision(decision, ("candidate", candidate)).changed  # doctest: +SKIP
        """
        return self._run(memory_calls.attribute_decision(self._org, decision, subject, remove=remove))

    def map_workspace(self, workspace: str, *, remove: bool = False) -> MappedWorkspace:
        """Say that a workspace of the ledger belongs to the organization. For the service role.

        A workspace belongs to one organization at most: one that belonged to another loses its attributions.

        - `remove`: it belongs to none.

        Example:
            >>> steward.map_workspace("acme").attributions_lost                # doctest: +SKIP
            0
        """
        return self._run(memory_calls.map_workspace(self._org, workspace, remove=remove))

    def expire(self, *, limit: int = 1000, usage_before: datetime | None = None) -> Expired:
        """Delete what has expired, of every organization. For the service role; pg_cron does it where it is.

        - `limit`: 1 to 10,000 rows a call. `usage_before`: also the recalls before that moment, with a time
          zone; None: none.

        Example:
            >>> while steward.expire().more: ...                               # doctest: +SKIP
        """
        return self._run(memory_calls.expire(limit, usage_before))

    def adopt(self, *, limit: int = 500, after: UUID | str | None = None, dry_run: bool = False) -> Adopted:
        """Copy memories from a `public.agent_memories` of the other kind, whose rows name an organization.

        For the service role. The rows there stay as they are; what is here already is not copied again.

        - `limit`: 1 to 1,000 rows a call. `after`: the `next` of the call before. `dry_run`: copy nothing.

        Example:
            >>> steward.adopt(dry_run=True).skipped                            # doctest: +SKIP
        """
        return self._run(memory_calls.adopt(limit, after, dry_run=dry_run))

    def set_organization(
        self, *, name: str | None = None, allow_asserted: bool | None = None
    ) -> Organization:
        """Make the organization, where the project has no table of its own for them, or change it.

        For the service role. With the host's own table only `allow_asserted` can be set.

        - `name`: for people; None keeps it. `allow_asserted`: whether the service role may name members who
          wrote or reviewed; False at first, None keeps it.

        Example:
            >>> steward.set_organization(name="Acme").created                  # doctest: +SKIP
            True
        """
        call = memory_calls.set_organization(self._org, name=name, allow_asserted=allow_asserted)
        return self._run(call)

    def set_member(self, user: UUID | str, role: MemberRole | None) -> Member:
        """Say what a user is in the organization. For the service role.

        - `role`: "member" remembers and recalls, "admin" reviews, "owner" erases too; None takes them out.

        Example:
            >>> steward.set_member(user, "admin").changed                      # doctest: +SKIP
            True
        """
        return self._run(memory_calls.set_member(self._org, user, role))
