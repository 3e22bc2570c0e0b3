"""The synchronous client of a function. `async_client` has the same, awaited."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar
from uuid import UUID

import httpx

from ranked_ledger.function import errands, wire
from ranked_ledger.function.answers import FunctionRecall, Recorded, VectorRecall
from ranked_ledger.function.errands import Errand
from ranked_ledger.function.session import FunctionSession
from ranked_ledger.models import UNSET, DecisionRef, Fusion, Preset, Superseded, Unset, Weights
from ranked_ledger.recalls import Recall
from ranked_ledger.running import Running
from ranked_ledger.session import given_or_new

T = TypeVar("T")


class MemoryFunction(FunctionSession[httpx.Client], Running):
    """A client of a patched `agent-memory-api` function in one workspace. Safe to share between threads.

    For a program that has the function's access key and not the project's secret key. Its methods are those
    of `RankedLedger` where the function offers the same.

    - `url`: of the function, such as `https://<project>.supabase.co/functions/v1/agent-memory-api`.
    - `access_key`: what the function has as MCP_ACCESS_KEY. It goes in the header `x-brain-key` alone.
    - `workspace`: every call is about it. `project`: for calls that name no other; None: no project.
    - `timeout`: seconds that connecting, sending and each wait for the answer may take, for each attempt.
    - `max_retries`: repeats of a request after a failure that a repeat can mend; 0 for none. A recall, which
      leaves a trace each time, is repeated only where it cannot have been carried out.
    - `extra_body`: fields that a copy of the function wants in recalls and write-backs, besides or instead of
      ours, such as `{"channel": {"kind": "slack"}}`.
    - `http_client`: an `httpx.Client` of yours, which is never closed here.

    Raises `NotPatchedError` where the function lacks the patch or the part of it that is asked, and otherwise
    what `RankedLedger` raises; `AuthenticationError` is about the access key.

    Example:
        >>> url = "http://127.0.0.1:8000/agent-memory-api"
        >>> with MemoryFunction(url, "open-sesame", workspace="acme") as memory:
        ...     memory
        MemoryFunction('http://127.0.0.1:8000/agent-memory-api', workspace='acme', project=None)
    """

    def health(self) -> dict[str, Any]:
        """What the function says of itself; `ok` is among it.

        Example:
            >>> memory.health()["ok"]                                          # doctest: +SKIP
        """
        return self._run(errands.health())

    def recall(
        self,
        query: str,
        *,
        task: str | None = None,
        project: str | Unset | None = UNSET,
        current_step: int | None = None,
        limit: int = 10,
        max_tokens: int | None = None,
        include_stale: bool | None = None,
        only_confirmed: bool = False,
        include_personal: bool = True,
        min_relevance: float | None = None,
        preset: Preset | None = None,
        weights: Weights | Mapping[str, float] | None = None,
        half_life_steps: float | None = None,
        dependency_saturation: float | None = None,
        similarity_floor: float | None = None,
        similarity_ceiling: float | None = None,
        fusion: Fusion | None = None,
        fusion_weight: float | None = None,
        flow: str | None = None,
        runtime_name: str | None = None,
    ) -> FunctionRecall:
        """The decisions that matter now, best first, ranked by the ledger: policy "ranked_ledger".

        The arguments are those of `RankedLedger.recall`, with the same defaults, but for:

        - `query`: the function wants one, and embeds it; where that fails, the ranking goes by words and
          `FunctionRecall.embedding` says so.
        - `task`: kept with the trace; the function narrows nothing by it.
        - `limit`: 1 to 50. `max_tokens`: 256 to 20,000; None: the function's own 4,000.
        - `preset`: None is the function's own, "published". "tuned" is what `RankedLedger` uses, since
          it was better on decisions of real projects (docs/evaluation.md).

        A copy of the function that sets its own bounds to what is seen keeps them.

        Example:
            >>> for hit in memory.recall("can a sent invoice be edited?"):     # doctest: +SKIP
            ...     print(hit.score, hit.explain())
        """
        errand = errands.recall(
            self._sender(task, project, flow, runtime_name),
            query,
            limit=limit,
            max_tokens=max_tokens,
            only_confirmed=only_confirmed,
            include_personal=include_personal,
            include_stale=include_stale,
            current_step=current_step,
            min_relevance=min_relevance,
            preset=preset,
            weights=weights,
            half_life_steps=half_life_steps,
            dependency_saturation=dependency_saturation,
            similarity_floor=similarity_floor,
            similarity_ceiling=similarity_ceiling,
            fusion=fusion,
            fusion_weight=fusion_weight,
        )
        return self._run(errand)

    def recall_by_vector(
        self,
        query: str,
        *,
        task: str | None = None,
        project: str | Unset | None = UNSET,
        limit: int = 10,
        recency_days: int | None = None,
        include_stale: bool = False,
        only_confirmed: bool = False,
        include_personal: bool = True,
        flow: str | None = None,
        runtime_name: str | None = None,
    ) -> VectorRecall:
        """What the function's own vector search finds, memories of every type: policy "vector".

        No patch is needed. `policy_stats` of a `RankedLedger` puts both policies side by side.

        - `recency_days`: none that is older; None: no limit. The others as for `recall`.

        Example:
            >>> [one.memory_type for one in memory.recall_by_vector("invoices")]   # doctest: +SKIP
        """
        errand = errands.recall_by_vector(
            self._sender(task, project, flow, runtime_name),
            query,
            limit=limit,
            recency_days=recency_days,
            only_confirmed=only_confirmed,
            include_personal=include_personal,
            include_stale=include_stale,
        )
        return self._run(errand)

    def mark_used(
        self, recall: Recall | VectorRecall | UUID | str, decisions: DecisionRef | Iterable[DecisionRef]
    ) -> None:
        """Say which decisions of a recall were used. A repeat counts nothing twice.

        - `recall`: the recall, or its request id. Raises `NotFoundError` for an unknown trace, after some two
          seconds of repeats (`max_retries` permitting): a function may write its trace behind its answer.
          Such a function may lose, without an error, a mark that comes within milliseconds of the recall.

        Example:
            >>> memory.mark_used(recall, recall[0])                            # doctest: +SKIP
        """
        return self._run(errands.mark_usage(recall, used=decisions))

    def mark_ignored(
        self,
        recall: Recall | VectorRecall | UUID | str,
        decisions: DecisionRef | Iterable[DecisionRef],
        *,
        reason: str | None = None,
    ) -> None:
        """Say which decisions of a recall were of no use, and why.

        Example:
            >>> memory.mark_ignored(recall, recall[2], reason="another customer")  # doctest: +SKIP
        """
        return self._run(errands.mark_usage(recall, ignored=decisions, reason=reason))

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
        depends_on: DecisionRef | Sequence[DecisionRef] = (),
        confidence: float | None = None,
        flow: str | None = None,
        runtime_name: str | None = None,
        idempotency_key: str | None = None,
    ) -> Recorded:
        """Record a decision by a write-back of the function, which embeds it.

        The arguments are those of `RankedLedger.record`, and `confidence`: of the memory, in [0,1]. The
        function stores step by step, where `RankedLedger.record` writes all or nothing: `Recorded` says what
        of it stands. Raises `InvalidArgumentError` where the function takes the text for a secret or a
        transcript.

        - `idempotency_key`: a repeat with it in the same workspace stores nothing twice; by default each call
          draws one, for its own retries.

        Example:
            >>> memory.record("Invoices are immutable once sent", rationale="auditors diff them",
            ...               task="invoicing", importance=0.9).step_index     # doctest: +SKIP
        """
        errand = errands.record(
            self._sender(task, project, flow, runtime_name),
            content,
            rationale=rationale,
            alternatives=alternatives,
            importance=importance,
            step=step,
            depends_on=depends_on,
            confidence=confidence,
            key=given_or_new(idempotency_key),
        )
        return self._run(errand)

    def supersede(
        self, old: DecisionRef, *, by: DecisionRef, reason: str | None = None, actor: str | None = None
    ) -> Superseded:
        """Replace a decision by another one that is recorded already. A repeat changes nothing.

        - `reason`, `actor`: kept in the history. Raises `LoopError` where `by` was itself replaced by `old`.

        Example:
            >>> memory.supersede(old, by=new, reason="the law changed").changed    # doctest: +SKIP
        """
        return self._run(errands.supersede(self.workspace, old, by=by, reason=reason, actor=actor))

    def _run(self, errand: Errand[T]) -> T:
        wait = partial(self._wait_for, errand=errand)
        return self._exchange(self._request(errand), partial(wire.decode, errand), wait)
