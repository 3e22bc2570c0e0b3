"""The synchronous client: one line a method over one run loop. `async_client` has the same, awaited."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from time import sleep
from types import TracebackType
from typing import Any, Self, TypeVar
from uuid import UUID

import httpx

from ranked_ledger import asking, batches, calls, embeddings, recording, wire
from ranked_ledger.asking import DEFAULT_FUSION, DEFAULT_FUSION_WEIGHT
from ranked_ledger.calls import Call
from ranked_ledger.errors import RankedLedgerError
from ranked_ledger.models import (
    UNSET,
    CreatedBy,
    Decision,
    DecisionDetail,
    DecisionInput,
    DecisionRef,
    Edge,
    Forgotten,
    Fusion,
    Impact,
    Lifecycle,
    NewDecision,
    Relation,
    SettableLifecycle,
    Superseded,
    Unset,
    UsageMarked,
    Visibility,
    Weights,
)
from ranked_ledger.recalls import Recall
from ranked_ledger.session import given_or_new
from ranked_ledger.timeline import DEFAULT_PAGE, Timeline, walk
from ranked_ledger.upkeep import Upkeep

T = TypeVar("T")


class RankedLedger(Upkeep):
    """A client of the decision ledger in one workspace. Safe to share between threads.

    - `url`, `key`: of the Supabase project; the secret key (`sb_secret_...`) or the legacy service_role key.
    - `workspace`: every call is about it. `project`: for calls that name no other; None: no project.
    - `timeout`: seconds that connecting, sending and each wait for the answer may take, for each attempt.
    - `max_retries`: repeats of a request after a failure that a repeat can mend; 0 for none. Every write
      carries an idempotency key, so a repeat never writes twice.
    - `embedder`: makes vectors of what is recorded and asked; None: recall goes by words.
    - `on_embedding_failure`: "raise" an `EmbeddingError`, or go on by "text" alone, with a warning logged.
    - `http_client`: an `httpx.Client` of yours, which is never closed here.

    Every method raises `InvalidArgumentError` before anything is sent, and `NetworkError`,
    `RequestTimeoutError`, `RateLimitError`, `AuthenticationError`, `PermissionDeniedError`,
    `NotInstalledError` or another `RankedLedgerError` for what the server says.

    Example:
        >>> with RankedLedger("http://127.0.0.1:54321", "sb_secret_local", workspace="acme") as ledger:
        ...     ledger
        RankedLedger('http://127.0.0.1:54321/rest/v1', workspace='acme', project=None)
    """

    _new_http = httpx.Client
    _http_kind = httpx.Client

    def close(self) -> None:
        """Close the connections, unless they belong to a given `http_client` or another client's copy."""
        if self._owned:
            self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def record(
        self,
        content: str,
        *,
        rationale: str | None = None,
        alternatives: Sequence[str] = (),
        importance: float | None = None,
        step: int | None = None,
        task: str | None = None,
        project: str | Unset | None = UNSET,
        summary: str | None = None,
        depends_on: DecisionRef | Sequence[DecisionRef] = (),
        embedding: Sequence[float] | None = None,
        embedding_model: str | None = None,
        pinned: bool = False,
        visibility: Visibility | None = None,
        created_by: CreatedBy | None = None,
        flow: str | None = None,
        runtime_name: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
    ) -> Decision:
        """Record a decision: thought, memory and ledger row together, or nothing.

        - `content`: what was decided, at most 256 KB. `summary`: shorter, for tight token budgets.
        - `rationale`: why, kept apart. `alternatives`: what was rejected, at most 20 texts.
        - `importance`: in [0,1]; the ledger's default is 0.5. `pinned`: stands before all others in a recall.
        - `task`, `project`: with the workspace they name the stream. `project` is the client's by default.
        - `step`: the position in the stream, 0 to 1,000,000,000; by default the newest step + 1.
        - `depends_on`: decisions that this one rests on, as models or ids, in the same workspace.
        - `embedding`: of the content, in the dimension of the host's column, with the `embedding_model` that
          made it. By default the client's embedder makes it; without one the decision is found by words.
        - `visibility`, `created_by`, `flow`, `runtime_name`, `metadata`: kept with the memory.
        - `idempotency_key`: at most 255 characters. A repeat with it returns the first result; by default
          each call draws one, for its own retries.

        Raises `NotFoundError` for an unknown `depends_on`, `ConflictError` where the key was used with
        another request, `GoneError` where its decision was forgotten, `DimensionError` for another dimension.

        Example:
            >>> ledger.record("Invoices are immutable once sent", rationale="auditors diff them",
            ...               task="invoicing", importance=0.9)                # doctest: +SKIP
        """
        new = NewDecision(
            content,
            rationale=rationale,
            alternatives=alternatives,
            importance=importance,
            step=step,
            task=task,
            project=self._project(project),
            summary=summary,
            depends_on=depends_on,
            embedding=embedding,
            embedding_model=embedding_model,
            pinned=pinned,
            visibility=visibility,
            created_by=created_by,
            flow=flow,
            runtime_name=runtime_name,
            metadata=metadata,
        )
        call = calls.record(self.workspace, recording.checked(new), key=given_or_new(idempotency_key))
        return self._run(call if embedding is not None else self._completed(call, "embedding", content))

    def record_many(
        self,
        decisions: Iterable[DecisionInput],
        *,
        idempotency_key: str | None = None,
        on_batch: Callable[[Sequence[Decision]], object] | None = None,
    ) -> list[Decision]:
        """Record any number of decisions, in batches of at most 500 (and about 8 MB), each all or nothing.

        - `decisions`: `NewDecision`s, mappings of `record`'s arguments or plain texts, read as needed.
        - `idempotency_key`: batch n is written under `<key>/<n>`, so a repeat with the same decisions writes
          only what is missing. By default each call draws one, for its own retries.
        - `on_batch`: called with each batch's results once it is written.

        A batch with large embeddings takes seconds: choose `timeout` by it. A retry that comes while the
        first attempt still runs waits for it, and writes nothing twice.

        Returns the results in order. An error carries what was written before it, as `error.written`.

        Example:
            >>> ledger.record_many(NewDecision(line, task="import") for line in lines)  # doctest: +SKIP
        """
        key = calls.batch_key(given_or_new(idempotency_key))
        batches.check_listener(on_batch)
        written: list[Decision] = []
        try:
            for number, elements in enumerate(batches.cut(decisions, self.project)):
                ready = embeddings.attach(
                    elements, self._embed(embeddings.wanting(elements)), self._options.embedder
                )
                done = self._run(calls.record_many(self.workspace, ready, key=f"{key}/{number}"))
                written += done
                if on_batch is not None:
                    on_batch(done)
        except RankedLedgerError as error:
            error.written = tuple(written)
            raise
        return written

    def recall(
        self,
        query: str | None = None,
        *,
        task: str | None = None,
        project: str | Unset | None = UNSET,
        current_step: int | None = None,
        limit: int = 10,
        max_tokens: int | None = None,
        include_superseded: bool = False,
        include_stale: bool = False,
        only_confirmed: bool = False,
        include_personal: bool = True,
        min_relevance: float | None = None,
        weights: Weights | Mapping[str, float] | None = None,
        half_life_steps: float | None = None,
        dependency_saturation: float | None = None,
        embedding: Sequence[float] | None = None,
        embedding_model: str | None = None,
        similarity_floor: float | None = None,
        similarity_ceiling: float | None = None,
        fusion: Fusion = DEFAULT_FUSION,
        fusion_weight: float = DEFAULT_FUSION_WEIGHT,
        exact: bool = True,
        trace: bool = True,
        request_id: UUID | str | None = None,
        policy: str | None = None,
        flow: str | None = None,
        runtime_name: str | None = None,
    ) -> Recall:
        """The decisions that matter now, best first, and a trace of what was returned.

        What is in scope:

        - `query`: what is asked, as text; None ranks by importance, recency and dependency alone.
        - `task`, `project`: only those; None: all of them. `project` is the client's by default.
        - `include_superseded`: also decisions that are not active, each 0.30 lower. `include_stale`: of these
          only the stale and disputed ones, not what was superseded or rejected.
        - `only_confirmed`: none that is pending while its confirmation is required, as the host's tables have
          it by default. `include_personal`: False leaves out what is of visibility "personal".
        - `min_relevance`: in [0,1]; none of less relevance, pinned ones included. None: no minimum.
        - `limit`: 1 to 1,000 hits. `max_tokens`: an upper bound for `to_prompt()`, fence included.
        - `exact`: the answer is proven to be the best. False: in a large workspace a vector may be answered
          from an approximate index, faster; `Recall.exact` says which it was.

        How it is weighed:

        - `current_step`: where the work stands; by default the newest step of each stream.
        - `weights`: of the components, finite and at least 0. `half_life_steps` (30): recency is
          exp(-steps / half_life_steps). `dependency_saturation` (3): that many dependents count fully.
        - `embedding`, `embedding_model`: of the query; by default the client's embedder makes it.
        - `similarity_floor`, `similarity_ceiling`: the cosines that count as relevance 0 and 1, floor below
          ceiling, in [-1,1]. By default those kept for the workspace and the embedding model, else 0 and 1.
        - `fusion`: of a decision's cosine and its text match, where there are both. "none" takes the cosine,
          "max" the greater one, "blend" `fusion_weight` (in [0,1]) of the cosine and the rest of the text.

        What is kept:

        - `trace`: False leaves none. `request_id`: names the trace; a repeat with it leaves no second one.
        - `policy`: the name that the trace carries, for `policy_stats`. `flow`, `runtime_name`: kept with it.

        An unknown or empty workspace answers no hits and a `hint`. Raises `InvalidArgumentError` for a value
        out of its range, `ConflictError` where the request id belongs to another question or workspace,
        `DimensionError` for another dimension than the host's, and `NotInstalledError` where the ledger in
        the database is older than an argument that was set.

        Example:
            >>> for hit in ledger.recall("can a sent invoice be edited?", task="invoicing"):  # doctest: +SKIP
            ...     print(hit.score, hit.explain())
        """
        call = asking.recall(
            self.workspace,
            query,
            task=task,
            project=self._project(project),
            current_step=current_step,
            limit=limit,
            max_tokens=max_tokens,
            include_superseded=include_superseded,
            include_stale=include_stale,
            only_confirmed=only_confirmed,
            include_personal=include_personal,
            min_relevance=min_relevance,
            weights=weights,
            half_life_steps=half_life_steps,
            dependency_saturation=dependency_saturation,
            embedding=embedding,
            embedding_model=embedding_model,
            similarity_floor=similarity_floor,
            similarity_ceiling=similarity_ceiling,
            fusion=fusion,
            fusion_weight=fusion_weight,
            exact=exact,
            trace=trace,
            request_id=given_or_new(request_id) if trace else request_id,
            policy=policy,
            flow=flow,
            runtime_name=runtime_name,
        )
        wanted = "" if query is None or embedding is not None else query.strip()
        return self._run(self._completed(call, "query_embedding", wanted) if wanted else call)

    def get(self, decision: DecisionRef) -> DecisionDetail:
        """A decision in full: its edges, its supersession chain and successor, its history.

        - `decision`: a model or an id. Raises `NotFoundError`, or `GoneError` where it was forgotten.

        Example:
            >>> ledger.get(hit).successor                                      # doctest: +SKIP
        """
        return self._run(calls.get(self.workspace, decision))

    def impact(self, decision: DecisionRef, *, max_depth: int | None = None, limit: int = 500) -> Impact:
        """What rests on a decision, directly and further on: what to look at before it is replaced.

        - `max_depth`: show only so many steps of `depends_on`; None: all. `limit`: 1 to 1,000 decisions.
          The numbers are of everything that rests on it all the same.

        Example:
            >>> [one.summary for one in ledger.impact(old).decisions]          # doctest: +SKIP
        """
        return self._run(calls.impact(self.workspace, decision, max_depth=max_depth, limit=limit))

    def timeline(
        self,
        *,
        task: str | None = None,
        project: str | Unset | None = UNSET,
        lifecycle: Lifecycle | Iterable[Lifecycle] | None = None,
        pinned: bool | None = None,
        newest_first: bool = True,
        limit: int | None = None,
        page_size: int = DEFAULT_PAGE,
        after: Mapping[str, Any] | None = None,
    ) -> Timeline:
        """Decisions by step, asked for page by page as they are walked.

        - `task`, `project`, `lifecycle` (one or several), `pinned`: only those; None: all.
        - `limit`: stop after so many; None: all. `page_size`: 1 to 500 a request, 50 by default.
        - `after`: the `next` of an earlier page, to go on from there.

        Example:
            >>> newest = list(ledger.timeline(task="invoicing", limit=20))     # doctest: +SKIP
        """
        ask = partial(
            calls.timeline,
            self.workspace,
            project=self._project(project),
            task=task,
            lifecycle=lifecycle,
            pinned=pinned,
            newest_first=newest_first,
        )
        return Timeline(self._run, walk(ask, after=after, limit=limit, page_size=page_size))

    def link(
        self,
        decision: DecisionRef,
        to: DecisionRef,
        *,
        relation: Relation = "depends_on",
        metadata: Mapping[str, Any] | None = None,
    ) -> Edge:
        """Add an edge: `decision` depends on (informs, blocks) `to`. A repeat changes nothing.

        Raises `NotFoundError` for an unknown end, `LoopError` where the edge would close a loop.

        Example:
            >>> ledger.link(voiding, to=immutability).created                  # doctest: +SKIP
        """
        return self._run(calls.link(self.workspace, decision, to, relation, metadata))

    def unlink(self, decision: DecisionRef, to: DecisionRef, *, relation: Relation = "depends_on") -> Edge:
        """Take an edge away. A repeat changes nothing.

        Example:
            >>> ledger.unlink(voiding, to=immutability).removed                # doctest: +SKIP
        """
        return self._run(calls.unlink(self.workspace, decision, to, relation))

    def supersede(
        self, old: DecisionRef, *, by: DecisionRef, reason: str | None = None, actor: str | None = None
    ) -> Superseded:
        """Replace a decision by another one that is recorded already. A repeat changes nothing.

        - `reason`, `actor`: kept in the history. Raises `LoopError` where `by` was itself replaced by `old`.

        Example:
            >>> ledger.supersede(old, by=new, reason="the law changed").changed    # doctest: +SKIP
        """
        return self._run(calls.supersede(self.workspace, old, by=by, reason=reason, actor=actor))

    def set_lifecycle(
        self,
        decision: DecisionRef,
        lifecycle: SettableLifecycle,
        *,
        reason: str | None = None,
        actor: str | None = None,
    ) -> Decision:
        """Reject, dispute, mark stale, or restore (`active`, which also takes a supersession back).

        Example:
            >>> ledger.set_lifecycle(decision, "disputed", reason="legal asks").changed  # doctest: +SKIP
        """
        return self._run(calls.set_lifecycle(self.workspace, decision, lifecycle, reason=reason, actor=actor))

    def set_importance(self, decision: DecisionRef, importance: float) -> Decision:
        """Change how much a decision matters, in [0,1].

        Example:
            >>> ledger.set_importance(decision, 0.9).importance                # doctest: +SKIP
        """
        return self._run(calls.set_importance(self.workspace, decision, importance))

    def pin(self, decision: DecisionRef) -> Decision:
        """Put a decision before all others in every recall.

        Example:
            >>> ledger.pin(decision).pinned                                    # doctest: +SKIP
        """
        return self._run(calls.pin(self.workspace, decision, True))

    def unpin(self, decision: DecisionRef) -> Decision:
        """Take the pin away.

        Example:
            >>> ledger.unpin(decision).pinned                                  # doctest: +SKIP
        """
        return self._run(calls.pin(self.workspace, decision, False))

    def forget(self, decision: DecisionRef) -> Forgotten:
        """Delete a decision for good: ledger row, memory and, where nothing else points to it, its thought.

        What depended on it keeps a mark that its ground is gone. A repeat answers `already`.

        Example:
            >>> ledger.forget(decision).dependents                             # doctest: +SKIP
        """
        return self._run(calls.forget(self.workspace, decision))

    def mark_used(
        self, recall: Recall | UUID | str, decisions: DecisionRef | Iterable[DecisionRef]
    ) -> UsageMarked:
        """Say which decisions of a recall were used: once per trace and decision, however often it is sent.

        - `recall`: the recall, or its request id. Raises `NotFoundError` for an unknown trace.

        Example:
            >>> ledger.mark_used(recall, recall[0])                            # doctest: +SKIP
        """
        return self._run(calls.mark_usage(self.workspace, recall, used=decisions))

    def mark_ignored(
        self,
        recall: Recall | UUID | str,
        decisions: DecisionRef | Iterable[DecisionRef],
        *,
        reason: str | None = None,
    ) -> UsageMarked:
        """Say which decisions of a recall were of no use, and why.

        Example:
            >>> ledger.mark_ignored(recall, recall[2], reason="another customer")  # doctest: +SKIP
        """
        return self._run(calls.mark_usage(self.workspace, recall, ignored=decisions, reason=reason))

    def _run(self, call: Call[T]) -> T:
        if not self._gate.passed:
            wire.check_version(self._answer(calls.schema_version()))
            self._gate.passed = True
        return self._answer(call)

    def _answer(self, call: Call[T]) -> T:
        request = self._request(call)
        attempt = 0
        while True:
            attempt += 1
            try:
                # a redirect would carry `apikey` to another host
                response = self._http.send(request, follow_redirects=False)
                return wire.decode(call, response, datetime.now(UTC))
            except (RankedLedgerError, httpx.HTTPError, httpx.InvalidURL) as problem:
                wait = self._wait(problem, attempt, call.repeatable)
            sleep(wait)

    def _completed(self, call: Call[T], name: str, text: str) -> Call[T]:
        return embeddings.complete(call, name, self._embed([text]), self._options.embedder)

    def _embed(self, texts: Sequence[str]) -> list[str] | None:
        embedder = self._options.embedder
        if embedder is None or not texts:
            return None
        try:
            return embeddings.checked(embedder.embed(texts), texts)
        except Exception as error:
            embeddings.fall_back(error, self._options.on_embedding_failure)
            return None
