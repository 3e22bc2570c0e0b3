"""What each verb asks of the database: arguments in, a `Call` out.

Pure: nothing here waits, or reads a clock, the environment or randomness.

A call sends only what was set, so that a new SDK works on an older schema. `docs/sql-api.md` is the contract.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Any, Final, Generic, TypeVar, get_args
from uuid import UUID

from pydantic import BaseModel, TypeAdapter

from ranked_ledger import arguments as check
from ranked_ledger import wording
from ranked_ledger.errors import InvalidArgumentError
from ranked_ledger.models import (
    Decision,
    DecisionDetail,
    DecisionRef,
    Edge,
    Enrolled,
    Forgotten,
    Lifecycle,
    Page,
    PolicyStats,
    Pruned,
    Relation,
    SettableLifecycle,
    Status,
    Superseded,
    UsageMarked,
    Weights,
)
from ranked_ledger.recalls import Hit, Recall

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)

MAX_BATCH: Final = 500


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """One RPC: its function, its JSON body, what its answer becomes, and whether a repeat is safe."""

    function: str
    body: Mapping[str, Any]
    parse: Callable[[Any], T]
    repeatable: bool = True

    def adding(self, **body: Any) -> Call[T]:
        """The same call with more arguments: an embedding that was computed after the rest was checked."""
        return replace(self, body={**self.body, **_set(**body)})


def _model(model: type[M]) -> Callable[[Any], M]:
    return model.model_validate


def _set(**body: Any) -> dict[str, Any]:
    """The arguments that were set: None and empty lists and mappings mean the function's default."""
    return {f"p_{name}": value for name, value in body.items() if value is not None and value not in ([], {})}


def schema_version() -> Call[int]:
    return Call("ledger_schema_version", {}, TypeAdapter(int).validate_python)


def status(workspace: str | None) -> Call[Status]:
    return Call("ledger_status", _set(workspace_id=workspace), _model(Status))


def record(workspace: str, element: Mapping[str, Any], *, key: str | None) -> Call[Decision]:
    """`element` comes from `recording.checked`."""
    return Call(
        "record_decision",
        _set(workspace_id=workspace, **element, idempotency_key=idempotency_key(key)),
        _model(Decision),
        repeatable=key is not None,
    )


def record_many(
    workspace: str, elements: Sequence[Mapping[str, Any]], *, key: str | None
) -> Call[list[Decision]]:
    """One batch; `elements` come from `recording.checked`."""
    if not 0 < len(elements) <= MAX_BATCH:
        raise InvalidArgumentError(f"a batch has 1 to {MAX_BATCH} decisions; this one has {len(elements)}")

    def parse(answer: Any) -> list[Decision]:
        replayed = bool(answer["replayed"])
        decisions = [Decision.model_validate({**one, "replayed": replayed}) for one in answer["decisions"]]
        if len(decisions) != len(elements):
            raise ValueError(f"{len(elements)} decisions were sent and {len(decisions)} came back")
        return decisions

    body = {"p_workspace_id": workspace, "p_decisions": list(elements)}
    return Call(
        "record_decisions",
        body | _set(idempotency_key=idempotency_key(key)),
        parse,
        repeatable=key is not None,
    )


def get(workspace: str, decision: DecisionRef) -> Call[DecisionDetail]:
    body = _set(workspace_id=workspace, memory_id=check.decision("decision", decision))
    return Call("get_decision", body, _model(DecisionDetail))


def timeline(
    workspace: str,
    *,
    project: str | None,
    task: str | None,
    lifecycle: Lifecycle | Iterable[Lifecycle] | None,
    pinned: bool | None,
    newest_first: bool,
    after: Mapping[str, Any] | None,
    page_size: int,
) -> Call[Page]:
    wanted: Iterable[str] = (
        () if lifecycle is None else [lifecycle] if isinstance(lifecycle, str) else lifecycle
    )
    if not isinstance(wanted, Iterable):
        raise InvalidArgumentError(
            f"lifecycle must be one of {', '.join(get_args(Lifecycle))}, or some of them"
        )
    body = _set(
        workspace_id=workspace,
        project_id=check.name("project", project),
        task_id=check.name("task", task),
        lifecycle=[check.one_of("lifecycle", one, get_args(Lifecycle)) for one in wanted],
        pinned=None if pinned is None else check.flag("pinned", pinned),
        newest_first=check.flag("newest_first", newest_first),
        after=None if after is None else check.mapping("after", after),
        limit=check.whole("page_size", page_size, minimum=1, maximum=check.MAX_PAGE),
    )

    def parse(answer: Any) -> Page:
        return Page(tuple(Decision.model_validate(one) for one in answer["decisions"]), answer["next"])

    return Call("list_decisions", body, parse)


def link(
    workspace: str,
    decision: DecisionRef,
    to: DecisionRef,
    relation: Relation,
    metadata: Mapping[str, Any] | None,
) -> Call[Edge]:
    body = _set(
        **_edge(workspace, decision, to, relation),
        metadata=None if metadata is None else check.mapping("metadata", metadata),
    )
    return Call("link_decisions", body, _model(Edge))


def unlink(workspace: str, decision: DecisionRef, to: DecisionRef, relation: Relation) -> Call[Edge]:
    return Call("unlink_decisions", _set(**_edge(workspace, decision, to, relation)), _model(Edge))


def _edge(workspace: str, decision: DecisionRef, to: DecisionRef, relation: Relation) -> dict[str, str]:
    ends = {"from": check.decision("decision", decision), "to": check.decision("to", to)}
    if ends["from"] == ends["to"]:
        raise InvalidArgumentError("a decision cannot have an edge to itself")
    return {
        "workspace_id": workspace,
        **ends,
        "relation": check.one_of("relation", relation, get_args(Relation)),
    }


def supersede(
    workspace: str, old: DecisionRef, *, by: DecisionRef, reason: str | None, actor: str | None
) -> Call[Superseded]:
    body = _set(
        workspace_id=workspace,
        old=check.decision("old", old),
        new=check.decision("by", by),
        reason=check.optional_text("reason", reason),
        actor=check.name("actor", actor),
    )
    if body["p_old"] == body["p_new"]:
        raise InvalidArgumentError("a decision cannot supersede itself")
    return Call("supersede_decision", body, _model(Superseded))


def set_lifecycle(
    workspace: str,
    decision: DecisionRef,
    lifecycle: SettableLifecycle,
    *,
    reason: str | None,
    actor: str | None,
) -> Call[Decision]:
    if str(lifecycle) == "superseded":
        raise InvalidArgumentError("lifecycle cannot be set to superseded", hint="use supersede(old, by=new)")
    body = _set(
        workspace_id=workspace,
        memory_id=check.decision("decision", decision),
        lifecycle=check.one_of("lifecycle", lifecycle, get_args(SettableLifecycle)),
        reason=check.optional_text("reason", reason),
        actor=check.name("actor", actor),
    )
    return Call("set_decision_lifecycle", body, _model(Decision))


def set_importance(workspace: str, decision: DecisionRef, importance: float) -> Call[Decision]:
    body = _set(
        workspace_id=workspace,
        memory_id=check.decision("decision", decision),
        importance=check.fraction("importance", importance),
    )
    return Call("set_decision_importance", body, _model(Decision))


def pin(workspace: str, decision: DecisionRef, pinned: bool) -> Call[Decision]:
    body = _set(workspace_id=workspace, memory_id=check.decision("decision", decision), pinned=pinned)
    return Call("pin_decision", body, _model(Decision))


def forget(workspace: str, decision: DecisionRef) -> Call[Forgotten]:
    body = _set(workspace_id=workspace, memory_id=check.decision("decision", decision))
    return Call("forget_decision", body, _model(Forgotten))


def recall(
    workspace: str,
    query: str | None,
    *,
    task: str | None,
    project: str | None,
    current_step: int | None,
    limit: int,
    max_tokens: int | None,
    include_superseded: bool,
    weights: Weights | Mapping[str, float] | None,
    half_life_steps: float | None,
    dependency_saturation: float | None,
    embedding: Sequence[float] | None,
    embedding_model: str | None,
    trace: bool,
    request_id: UUID | str | None,
    policy: str | None,
) -> Call[Recall]:
    if embedding is None and embedding_model is not None:
        raise InvalidArgumentError("embedding_model is given without an embedding")
    tracing = check.flag("trace", trace)
    body = _set(
        workspace_id=workspace,
        query=check.optional_text("query", query, blank=True),
        query_embedding=None if embedding is None else check.vector("embedding", embedding),
        embedding_model=check.name("embedding_model", embedding_model),
        project_id=check.name("project", project),
        task_id=check.name("task", task),
        current_step=None
        if current_step is None
        else check.whole("current_step", current_step, minimum=0, maximum=check.MAX_STEP),
        match_count=check.whole("limit", limit, minimum=1, maximum=check.MAX_HITS),
        max_tokens=None if max_tokens is None else check.whole("max_tokens", max_tokens, minimum=1),
        include_superseded=check.flag("include_superseded", include_superseded) or None,
        half_life_steps=_positive("half_life_steps", half_life_steps),
        dependency_saturation=_positive("dependency_saturation", dependency_saturation),
        trace=None if tracing else False,
        request_id=None if request_id is None else check.uuid("request_id", request_id),
        policy=check.optional_text("policy", policy),
        **_weights(weights),
    )
    return Call("recall_decisions", body, _recall, repeatable=request_id is not None or not tracing)


def _recall(answer: Any) -> Recall:
    arguments = answer["arguments"]
    return Recall(
        hits=tuple(Hit.model_validate({**hit, "arguments": arguments}) for hit in answer["hits"]),
        request_id=_uuid(answer["request_id"]),
        shortened=tuple(UUID(one) for one in answer["shortened"]),
        dropped=tuple(UUID(one) for one in answer["dropped"]),
        exact=bool(answer["exact"]),
        policy=answer["policy"],
        arguments=arguments,
        traced=bool(answer["traced"]),
        replayed=bool(answer.get("replayed", False)),
        hint=None if answer.get("hint") is None else wording.of_the_sdk(answer["hint"]),
    )


def _uuid(value: str | None) -> UUID | None:
    return None if value is None else UUID(value)


def _weights(weights: Weights | Mapping[str, float] | None) -> dict[str, float]:
    """The weights that were set, under the names of the function's arguments."""
    if weights is None:
        return {}
    if isinstance(weights, Mapping):
        unknown = sorted(str(name) for name in set(weights) - {one.name for one in fields(Weights)})
        if unknown:
            raise InvalidArgumentError(
                f"there is no weight {', '.join(unknown)}",
                hint="the weights are relevance, importance, recency and dependency",
            )
        weights = Weights(**weights)
    elif not isinstance(weights, Weights):
        raise InvalidArgumentError(
            f"weights must be Weights or a mapping, not {type(weights).__name__}",
            hint='for example {"relevance": 0.6, "recency": 0.1}',
        )
    given = {
        "w_similarity": ("weights.relevance", weights.relevance),
        "w_importance": ("weights.importance", weights.importance),
        "w_recency": ("weights.recency", weights.recency),
        "w_dependency": ("weights.dependency", weights.dependency),
    }
    return {
        key: check.finite(name, value, minimum=0) for key, (name, value) in given.items() if value is not None
    }


def _positive(name: str, value: float | None) -> float | None:
    if value is None:
        return None
    if check.finite(name, value) <= 0:
        raise InvalidArgumentError(f"{name} must be above 0; it is {value!r}")
    return value


def mark_usage(
    workspace: str,
    recall: Recall | UUID | str,
    *,
    used: DecisionRef | Iterable[DecisionRef] = (),
    ignored: DecisionRef | Iterable[DecisionRef] = (),
    reason: str | None = None,
) -> Call[UsageMarked]:
    if isinstance(recall, Recall):
        if recall.request_id is None or not recall.traced:
            raise InvalidArgumentError("this recall left no trace", hint="recall with trace=True")
        recall = recall.request_id
    why = check.optional_text("reason", reason)
    marks = [{"memory_id": one, "reason": why} for one in check.decisions("decisions", ignored)]
    body = _set(
        workspace_id=workspace,
        request_id=check.uuid("recall", recall),
        used=check.decisions("decisions", used),
        ignored=marks,
    )
    return Call("mark_recall_usage", body, _model(UsageMarked))


def policy_stats(workspace: str, since: datetime | None) -> Call[list[PolicyStats]]:
    body = _set(workspace_id=workspace, since=None if since is None else check.moment("since", since))
    return Call("recall_policy_stats", body, TypeAdapter(list[PolicyStats]).validate_python)


def prune_traces(workspace: str, before: datetime, limit: int) -> Call[Pruned]:
    body = _set(
        workspace_id=workspace,
        before=check.moment("before", before),
        limit=check.whole("limit", limit, minimum=1, maximum=check.MAX_PRUNED),
    )
    return Call("prune_traces", body, _model(Pruned))


def enroll_missing(workspace: str | None, limit: int) -> Call[Enrolled]:
    body = _set(workspace_id=workspace, limit=check.whole("limit", limit, minimum=1))
    return Call("enroll_missing_decisions", body, _model(Enrolled))


def idempotency_key(key: object) -> str | None:
    """A key as given: not blank, at most 255 characters."""
    if key is None:
        return None
    given = check.text("idempotency_key", key)
    if len(given) > check.MAX_KEY_CHARACTERS:
        raise InvalidArgumentError(
            f"idempotency_key has {len(given)} characters; {check.MAX_KEY_CHARACTERS} are allowed"
        )
    return given


def batch_key(key: str) -> str:
    """A key that leaves room for the number of each batch."""
    check.text("idempotency_key", key)
    idempotency_key(f"{key}/{10**9}")
    return key
