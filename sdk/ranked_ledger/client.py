"""The synchronous client: one line a method over one run loop. `async_client` has the same, awaited."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from ranked_ledger import batches, calls, embeddings, recording
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
    Impact,
    Lifecycle,
    NewDecision,
    Relation,
    SettableLifecycle,
    Superseded,
    Unset,
    Visibility,
)
from ranked_ledger.paging import DEFAULT_PAGE, walk
from ranked_ledger.recalling import Recalling
from ranked_ledger.session import given_or_new
from ranked_ledger.timeline import Timeline


class RankedLedger(Recalling):
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
