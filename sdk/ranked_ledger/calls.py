"""What each verb asks of the database: arguments in, a `Call` out.

Pure: nothing here waits, or reads a clock, the environment or randomness.

A call sends only what was set, so that a new SDK works on an older schema. `docs/sql-api.md` is the contract.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, Generic, TypeVar, get_args
from uuid import UUID

from pydantic import BaseModel, TypeAdapter

from ranked_ledger import arguments as check
from ranked_ledger.errors import InvalidArgumentError
from ranked_ledger.models import (
    CopiesChecked,
    Decision,
    DecisionDetail,
    DecisionRef,
    Edge,
    Enrolled,
    Forgotten,
    Impact,
    Lifecycle,
    Page,
    Relation,
    SettableLifecycle,
    Status,
    Superseded,
    WorkspaceSettings,
)
from ranked_ledger.recalls import Recall
from ranked_ledger.traces import PolicyStats, Pruned, UsageMarked
from ranked_ledger.wording import Store

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)

MAX_BATCH: Final = 500
DEFAULT_SAMPLE: Final = 300
_LONGEST_CALL: Final = 65.0  # a call of the platform ends after 60


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """One RPC: its function, its JSON body, what its answer becomes, and whether a repeat is safe.

    `seconds`: what the server may take for it; a client with a shorter timeout waits as long.
    `store`: whose function it is, which says in which words its refusals reach people.
    """

    function: str
    body: Mapping[str, Any]
    parse: Callable[[Any], T]
    repeatable: bool = True
    seconds: float = 0.0
    store: Store = "ledger"

    def adding(self, **body: Any) -> Call[T]:
        """The same call with more arguments: an embedding that was computed after the rest was checked."""
        return replace(self, body={**self.body, **sent(**body)})


def as_model(model: type[M]) -> Callable[[Any], M]:
    """How an answer is read that is one model."""
    return model.model_validate


def sent(**body: Any) -> dict[str, Any]:
    """The arguments that were set: None and empty lists and mappings mean the function's default."""
    return {f"p_{name}": value for name, value in body.items() if value is not None and value not in ([], {})}


def schema_version() -> Call[int]:
    return Call("ledger_schema_version", {}, TypeAdapter(int).validate_python)


def status(workspace: str | None) -> Call[Status]:
    return Call("ledger_status", sent(workspace_id=workspace), as_model(Status))


def record(workspace: str, element: Mapping[str, Any], *, key: str | None) -> Call[Decision]:
    """`element` comes from `recording.checked`."""
    return Call(
        "record_decision",
        sent(workspace_id=workspace, **element, idempotency_key=idempotency_key(key)),
        as_model(Decision),
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
        body | sent(idempotency_key=idempotency_key(key)),
        parse,
        repeatable=key is not None,
    )


def get(workspace: str, decision: DecisionRef) -> Call[DecisionDetail]:
    body = sent(workspace_id=workspace, memory_id=check.decision("decision", decision))
    return Call("get_decision", body, as_model(DecisionDetail))


def impact(workspace: str, decision: DecisionRef, *, max_depth: int | None, limit: int) -> Call[Impact]:
    body = sent(
        workspace_id=workspace,
        memory_id=check.decision("decision", decision),
        max_depth=None
        if max_depth is None
        else check.whole("max_depth", max_depth, minimum=1, maximum=check.MAX_DEPTH),
        limit=check.whole("limit", limit, minimum=1, maximum=check.MAX_HITS),
    )
    return Call("decision_impact", body, as_model(Impact))


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
    body = sent(
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
    body = sent(
        **_edge(workspace, decision, to, relation),
        metadata=None if metadata is None else check.mapping("metadata", metadata),
    )
    return Call("link_decisions", body, as_model(Edge))


def unlink(workspace: str, decision: DecisionRef, to: DecisionRef, relation: Relation) -> Call[Edge]:
    return Call("unlink_decisions", sent(**_edge(workspace, decision, to, relation)), as_model(Edge))


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
    body = sent(
        workspace_id=workspace,
        old=check.decision("old", old),
        new=check.decision("by", by),
        reason=check.optional_text("reason", reason),
        actor=check.name("actor", actor),
    )
    if body["p_old"] == body["p_new"]:
        raise InvalidArgumentError("a decision cannot supersede itself")
    return Call("supersede_decision", body, as_model(Superseded))


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
    body = sent(
        workspace_id=workspace,
        memory_id=check.decision("decision", decision),
        lifecycle=check.one_of("lifecycle", lifecycle, get_args(SettableLifecycle)),
        reason=check.optional_text("reason", reason),
        actor=check.name("actor", actor),
    )
    return Call("set_decision_lifecycle", body, as_model(Decision))


def set_importance(workspace: str, decision: DecisionRef, importance: float) -> Call[Decision]:
    body = sent(
        workspace_id=workspace,
        memory_id=check.decision("decision", decision),
        importance=check.fraction("importance", importance),
    )
    return Call("set_decision_importance", body, as_model(Decision))


def pin(workspace: str, decision: DecisionRef, pinned: bool) -> Call[Decision]:
    body = sent(workspace_id=workspace, memory_id=check.decision("decision", decision), pinned=pinned)
    return Call("pin_decision", body, as_model(Decision))


def forget(workspace: str, decision: DecisionRef) -> Call[Forgotten]:
    body = sent(workspace_id=workspace, memory_id=check.decision("decision", decision))
    return Call("forget_decision", body, as_model(Forgotten))


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
    body = sent(
        workspace_id=workspace,
        request_id=check.uuid("recall", recall),
        used=check.decisions("decisions", used),
        ignored=marks,
    )
    return Call("mark_recall_usage", body, as_model(UsageMarked))


def policy_stats(workspace: str, since: datetime | None) -> Call[list[PolicyStats]]:
    body = sent(workspace_id=workspace, since=None if since is None else check.moment("since", since))
    return Call("recall_policy_stats", body, TypeAdapter(list[PolicyStats]).validate_python)


def prune_traces(workspace: str, before: datetime, limit: int) -> Call[Pruned]:
    body = sent(
        workspace_id=workspace,
        before=check.moment("before", before),
        limit=check.whole("limit", limit, minimum=1, maximum=check.MAX_PRUNED),
    )
    return Call("prune_traces", body, as_model(Pruned))


def settings(workspace: str) -> Call[WorkspaceSettings]:
    return Call("get_workspace_settings", sent(workspace_id=workspace), as_model(WorkspaceSettings))


def set_text_config(workspace: str, text_config: str | None) -> Call[WorkspaceSettings]:
    body = sent(workspace_id=workspace, text_config=check.name("text_config", text_config))
    return Call("set_text_config", body, as_model(WorkspaceSettings), seconds=_LONGEST_CALL)


def set_similarity_range(
    workspace: str, embedding_model: str, limits: tuple[float, float] | None
) -> Call[WorkspaceSettings]:
    """`limits`: floor and ceiling; None takes the range back."""
    model = check.text("embedding_model", embedding_model, max_bytes=check.MAX_NAME_BYTES)
    floor, ceiling = (None, None) if limits is None else map(check.cosine, ("floor", "ceiling"), limits)
    if floor is not None and ceiling is not None and floor >= ceiling:
        raise InvalidArgumentError(f"floor must be below ceiling; they are {floor!r} and {ceiling!r}")
    body = sent(workspace_id=workspace, embedding_model=model, floor=floor, ceiling=ceiling)
    return Call("set_similarity_range", body, as_model(WorkspaceSettings))


def fit_similarity_range(workspace: str, embedding_model: str, sample: int) -> Call[WorkspaceSettings]:
    many = check.whole("sample", sample, minimum=check.MIN_SAMPLED, maximum=check.MAX_SAMPLED)
    body = sent(
        workspace_id=workspace,
        embedding_model=check.text("embedding_model", embedding_model, max_bytes=check.MAX_NAME_BYTES),
        sample=check.unless(DEFAULT_SAMPLE, many),
    )
    return Call("fit_similarity_range", body, as_model(WorkspaceSettings))


def enroll_missing(workspace: str | None, limit: int) -> Call[Enrolled]:
    body = sent(workspace_id=workspace, limit=check.whole("limit", limit, minimum=1))
    return Call("enroll_missing_decisions", body, as_model(Enrolled))


def check_copies(workspace: str, *, after: DecisionRef | None, limit: int, mend: bool) -> Call[CopiesChecked]:
    body = sent(
        workspace_id=workspace,
        after=None if after is None else check.decision("after", after),
        limit=check.whole("limit", limit, minimum=1, maximum=check.MAX_CHECKED),
        mend=check.flag("mend", mend) or None,
    )
    return Call("check_copies", body, as_model(CopiesChecked))


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
