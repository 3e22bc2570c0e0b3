"""The agent's client of the long-term memory. `async_memory` has the same, awaited."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

import httpx

from ranked_ledger import memory_calls
from ranked_ledger.calling import Embedding
from ranked_ledger.embeddings import Embedder
from ranked_ledger.memories import ForgottenMemory, Memory, MemoryRecall, Remembered
from ranked_ledger.memory_calls import DEFAULT_ON_RETURN, MemoryRef
from ranked_ledger.memory_session import AgentOptions, AgentSession
from ranked_ledger.models import Weights
from ranked_ledger.session import given_or_new
from ranked_ledger.subjects import OnReturn, Subject


class LongTermMemory(AgentSession[httpx.Client, Embedder], Embedding):
    """The long-term memory of one organization, as an agent uses it. Safe to share between threads.

    No argument of its methods names a person who acts: who acts is whose token is used. What it remembers is
    a model's, whoever's token it has, and is not recalled before a person has reviewed it. People speak for
    themselves, review and erase with `MemorySteward`. Whoever holds a person's token can act as that person
    everywhere: give an agent the token of a member without review rights.

    - `url`, `key`: of the Supabase project. `org`: the organization that every call is about.
    - `access_token`: a person's JWT; then `key` may be the publishable or anon key. None: the service role
      asks, with the secret key (`sb_secret_...`) or the legacy service_role key.
    - `timeout`: seconds that connecting, sending and each wait for the answer may take, for each attempt.
    - `max_retries`: repeats of a request after a failure that a repeat can mend; 0 for none. What is
      remembered carries an idempotency key, so a repeat never writes twice.
    - `embedder`: makes vectors of what is remembered and asked; None: recall goes by words.
    - `on_embedding_failure`: "raise" an `EmbeddingError`, or go on by "text" alone, with a warning logged.
    - `http_client`: an `httpx.Client` of yours, which is never closed here.

    Every method raises `InvalidArgumentError` before anything is sent, `PermissionDeniedError` where the
    person's role does not let them, in the same words whether the organization exists or not,
    `NotFoundError` for an unknown organization or memory, `GoneError` for one that was erased, and what
    `RankedLedger` raises besides.

    Example:
        >>> org = "7f8d2c1e-0000-4000-8000-000000000001"
        >>> with LongTermMemory("http://127.0.0.1:54321", "sb_secret_local", org=org) as memory:
        ...     memory
        LongTermMemory('http://127.0.0.1:54321/rest/v1', org='7f8d2c1e-0000-4000-8000-000000000001')
    """

    _options: AgentOptions[Embedder]

    def remember(
        self,
        text: str,
        *,
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
        """Remember a text as a model's, in the words that it will be read back in.

        It waits for a review before it is recalled, with a person's token too. What a person says themself is
        for `MemorySteward.remember`.

        - `text`: at most 64 KB. `subject`: whom it is about, such as `("candidate", id)` or `("user", id)`;
          None: the workspace as a whole. `workspace`: which one; not with a person.
        - `run_id`: the run that writes, kept until the run is pruned; at most 1,000 bytes.
        - `expires_at`: with a time zone, in the future; from then on it is never returned. None: it stays.
        - `embedding`, `embedding_model`: together; by default the client's embedder makes them.
        - `idempotency_key`: at most 255 characters. A repeat with it returns the first result; by default
          each call draws one, for its own retries.
        - `digest_key`: the key of the organization's erasures, never stored: with it a text that was erased
          for this person is refused, or with `on_return="flag"` taken and flagged. Without it `erased_before`
          is "not_checked".

        Raises `ErasedTextError` for a text that was erased, `ConflictError` where the idempotency key was
        used with another memory, and `GoneError` where its memory was erased or has expired.

        Example:
            >>> memory.remember("Prefers calls after 17:00", subject=("candidate", candidate),
            ...                 run_id=run)                                    # doctest: +SKIP
        """
        call = memory_calls.remember(
            self._org,
            text,
            subject=subject,
            workspace=workspace,
            author="model",
            asserted_by=None,
            run_id=run_id,
            expires_at=expires_at,
            embedding=embedding,
            embedding_model=embedding_model,
            key=given_or_new(idempotency_key),
            digest_key=digest_key,
            on_return=on_return,
        )
        return self._run(call if embedding is not None else self._completed(call, "embedding", text))

    def recall(
        self,
        query: str | None = None,
        *,
        subject: Subject | None = None,
        workspace: str | None = None,
        limit: int = 10,
        max_tokens: int | None = None,
        include_unreviewed: bool = False,
        min_relevance: float | None = None,
        weights: Weights | Mapping[str, float] | None = None,
        half_life_days: float | None = None,
        embedding: Sequence[float] | None = None,
        embedding_model: str | None = None,
        run_id: str | None = None,
    ) -> MemoryRecall:
        """The memories that matter now, best first. Who read what is noted.

        What is in scope, always without what has expired, was erased or was rejected:

        - `query`: what is asked, as text; None ranks by recency alone.
        - `subject`: only what is about them, such as `("candidate", id)`, or with None for the id about
          anybody of that type; None: all of the organization. The recall is then tied to the person: subject
          access shows it, and an erasure blanks its question. `workspace`: only what is of it.
        - `include_unreviewed`: also what a model wrote and nobody has reviewed yet.
        - `min_relevance`: in [0,1]; none of less relevance. None: no minimum.
        - `limit`: 1 to 1,000 hits. `max_tokens`: an upper bound for `to_prompt()`, fence included.

        How it is weighed:

        - `weights`: of `relevance` (0.75) and `recency` (0.25), finite and at least 0.
        - `half_life_days` (30): recency is exp(-days / half_life_days).
        - `embedding`, `embedding_model`: of the query, together; by default the client's embedder makes them.
          A memory whose vector another model made is compared by its words.

        - `run_id`: the run that reads; at most 1,000 bytes.

        Example:
            >>> recall = memory.recall("when to call?", subject=("candidate", candidate))  # doctest: +SKIP
            >>> prompt = recall.to_prompt()                                    # doctest: +SKIP
        """
        call = memory_calls.recall(
            self._org,
            query,
            subject=subject,
            workspace=workspace,
            limit=limit,
            max_tokens=max_tokens,
            include_unreviewed=include_unreviewed,
            min_relevance=min_relevance,
            weights=weights,
            half_life_days=half_life_days,
            embedding=embedding,
            embedding_model=embedding_model,
            run_id=run_id,
        )
        wanted = "" if query is None or embedding is not None else query.strip()
        return self._run(self._completed(call, "query_embedding", wanted) if wanted else call)

    def correct(
        self,
        memory: MemoryRef,
        text: str,
        *,
        note: str | None = None,
        expires_at: datetime | None = None,
        embedding: Sequence[float] | None = None,
        embedding_model: str | None = None,
    ) -> Memory:
        """Give a memory other words. A repeat changes nothing.

        Members correct what they remembered; admins, owners and the service role everything. The words are
        theirs whose token it is from then on, in a person's memory a person's; by the service role they are a
        model's. Unless an admin or an owner does it with their own token, the review is lost.

        - `memory`: a memory, a hit, or an id. `text`: at most 64 KB. `note`: why, at most 2,000 bytes.
        - `expires_at`: another expiry; None keeps it.
        - `embedding`, `embedding_model`: of the new text; by default the client's embedder makes them, and
          without one the memory is found by its words.

        Example:
            >>> memory.correct(hit, "Prefers calls after 18:00").changed       # doctest: +SKIP
        """
        call = memory_calls.correct(
            self._org,
            memory,
            text,
            note=note,
            expires_at=expires_at,
            embedding=embedding,
            embedding_model=embedding_model,
        )
        return self._run(call if embedding is not None else self._completed(call, "embedding", text))

    def forget(self, memory: MemoryRef, *, note: str | None = None) -> ForgottenMemory:
        """Erase the words of one memory; a tombstone without text stays. A repeat answers `already`.

        Members forget what they remembered; admins, owners and the service role everything. What both stores
        hold about a person goes with `MemorySteward.erase`.

        - `note`: why, at most 2,000 bytes.

        Example:
            >>> memory.forget(hit).forgotten_at                                # doctest: +SKIP
        """
        return self._run(memory_calls.forget(self._org, memory, note))
