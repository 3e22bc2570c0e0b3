"""What each verb asks of the function: arguments in, an `Errand` out. Pure, as `calls` is.

An unpatched function drops the fields that it does not know, and answers. So what rests on the patch is
looked for in each answer: nothing else passes for the ledger's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar, get_args
from uuid import UUID

from ranked_ledger import arguments as check
from ranked_ledger import asking, wording
from ranked_ledger.calls import Call, idempotency_key
from ranked_ledger.errors import InvalidArgumentError, NotPatchedError
from ranked_ledger.function.answers import FunctionMemory, FunctionRecall, NotLinked, Recorded, VectorRecall
from ranked_ledger.models import DecisionRef, Fusion, Preset, Superseded, Weights
from ranked_ledger.recalls import Hit, Recall

T = TypeVar("T")

# What the function's own schema allows.
MAX_ITEMS: Final = 50
MIN_TOKENS: Final = 256
MAX_TOKENS: Final = 20_000

DEFAULT_RUNTIME: Final = "ranked-ledger"
PATCH_COMMAND: Final = "ranked-ledger patch apply"
PATCH_HINT: Final = f"run `{PATCH_COMMAND}` on the function's folder, then deploy it again"

# copies accept these literals alone
_RECALL_SCHEMA: Final = "openbrain.agent_memory.recall.v1"
_RECORD_SCHEMA: Final = "openbrain.agent_memory.writeback.v1"


@dataclass(frozen=True, slots=True)
class Errand(Call[T], Generic[T]):
    """A call that is a route of the function; `function` is the verb.

    `late`: the function may still be writing what it names, behind the answer that named it.
    """

    method: str = "POST"
    path: str = ""
    late: bool = False


@dataclass(frozen=True, slots=True)
class Sender:
    """What every body says of who sends it: where it belongs, and what runs.

    - `extra`: fields that a copy of the function wants besides, or instead.
    """

    workspace: str
    project: str | None
    task: str | None
    flow: str | None
    runtime_name: str | None
    extra: Mapping[str, Any]

    def body(self, schema: str, **fields: Any) -> dict[str, Any]:
        """The body with those fields; None is left out."""
        body = {
            "schema_version": schema,
            "workspace_id": self.workspace,
            "project_id": check.name("project", self.project),
            "task_id": check.name("task", self.task),
            "flow_id": check.name("flow", self.flow),
            "runtime": {"name": check.name("runtime_name", self.runtime_name) or DEFAULT_RUNTIME},
            "channel": {"kind": "sdk"},
            **fields,
        }
        return {**_set(body), **self.extra}


def health() -> Errand[dict[str, Any]]:
    def parse(answer: Any) -> dict[str, Any]:
        return {"ok": bool(answer["ok"]), **answer}

    return Errand("health", {}, parse, method="GET", path="/health")


def recall(
    sender: Sender,
    query: str,
    *,
    limit: int,
    max_tokens: int | None,
    only_confirmed: bool,
    include_personal: bool,
    include_stale: bool | None,
    current_step: int | None,
    min_relevance: float | None,
    preset: Preset | None,
    weights: Weights | Mapping[str, float] | None,
    half_life_steps: float | None,
    dependency_saturation: float | None,
    similarity_floor: float | None,
    similarity_ceiling: float | None,
    fusion: Fusion | None,
    fusion_weight: float | None,
) -> Errand[FunctionRecall]:
    ranking = {
        "preset": None if preset is None else check.one_of("preset", preset, get_args(Preset)),
        "weights": asking.given_weights(weights),
        "half_life_steps": check.positive("half_life_steps", half_life_steps),
        "dependency_saturation": check.positive("dependency_saturation", dependency_saturation),
        "similarity_floor": None
        if similarity_floor is None
        else check.cosine("similarity_floor", similarity_floor),
        "similarity_ceiling": None
        if similarity_ceiling is None
        else check.cosine("similarity_ceiling", similarity_ceiling),
        "fusion": None if fusion is None else check.one_of("fusion", fusion, get_args(Fusion)),
        "fusion_weight": None if fusion_weight is None else check.fraction("fusion_weight", fusion_weight),
    }
    body = _question(
        sender,
        query,
        limit=limit,
        max_tokens=max_tokens,
        recency_days=None,
        only_confirmed=only_confirmed,
        include_personal=include_personal,
        # left out, it would be the function's default, which goes before the preset's
        include_stale=preset == "tuned" if include_stale is None else include_stale,
        recall_policy="ranked_ledger",
        with_hits=True,
        current_step=None
        if current_step is None
        else check.whole("current_step", current_step, minimum=0, maximum=check.MAX_STEP),
        min_relevance=None if min_relevance is None else check.fraction("min_relevance", min_relevance),
        ranking=_set(ranking),
    )
    # each leaves a trace of its own: the function has no request id that a repeat could carry
    return Errand("recall", body, _ranked, repeatable=False, path="/recall")


def recall_by_vector(
    sender: Sender,
    query: str,
    *,
    limit: int,
    recency_days: int | None,
    only_confirmed: bool,
    include_personal: bool,
    include_stale: bool,
) -> Errand[VectorRecall]:
    body = _question(
        sender,
        query,
        limit=limit,
        max_tokens=None,
        recency_days=None if recency_days is None else check.whole("recency_days", recency_days, minimum=1),
        only_confirmed=only_confirmed,
        include_personal=include_personal,
        include_stale=include_stale,
    )
    return Errand("recall_by_vector", body, _found, repeatable=False, path="/recall")


def _question(
    sender: Sender,
    query: str,
    *,
    limit: int,
    max_tokens: int | None,
    recency_days: int | None,
    only_confirmed: bool,
    include_personal: bool,
    include_stale: bool,
    **fields: Any,
) -> dict[str, Any]:
    return sender.body(
        _RECALL_SCHEMA,
        query=check.text("query", query),
        scope={
            "visibility": "personal" if check.flag("include_personal", include_personal) else "project",
            "project_only": sender.project is not None,
            "include_unconfirmed": not check.flag("only_confirmed", only_confirmed),
            "include_stale": check.flag("include_stale", include_stale),
        },
        limits=_set(
            {
                "max_items": check.whole("limit", limit, minimum=1, maximum=MAX_ITEMS),
                "max_tokens": None
                if max_tokens is None
                else check.whole("max_tokens", max_tokens, minimum=MIN_TOKENS, maximum=MAX_TOKENS),
                "recency_days": recency_days,
            }
        ),
        **fields,
    )


def _ranked(answer: Any) -> FunctionRecall:
    policy = answer.get("policy")
    if not isinstance(policy, Mapping) or policy.get("recall_policy") != "ranked_ledger":
        raise NotPatchedError(
            "the function answered by its own vector search: it lacks the patch", hint=PATCH_HINT
        )
    memories = answer["memories"]
    # what else a copy answers beside the ranked list is no hit
    hits = [hit for memory in memories if (hit := memory.get("ledger", {}).get("hit")) is not None]
    if memories and not hits:
        raise NotPatchedError(
            "the function carries an older patch, which answers no whole hits", hint=PATCH_HINT
        )
    arguments = policy["arguments"]
    hint = policy.get("hint")
    return FunctionRecall(
        hits=tuple(Hit.model_validate({**hit, "arguments": arguments}) for hit in hits),
        request_id=UUID(answer["request_id"]),
        shortened=tuple(UUID(one) for one in policy["shortened"]),
        dropped=tuple(UUID(one) for one in policy["dropped"]),
        exact=bool(policy["exact"]),
        policy=policy["recall_policy"],
        arguments=arguments,
        traced=True,
        hint=None if hint is None else wording.of_the_sdk(hint),
        embedding=str(policy["embedding"]),
        not_applied=tuple(policy["not_applied"]),
    )


def _found(answer: Any) -> VectorRecall:
    return VectorRecall(
        memories=tuple(FunctionMemory.model_validate(one) for one in answer["memories"]),
        request_id=UUID(answer["request_id"]),
    )


def mark_usage(
    recall: Recall | VectorRecall | UUID | str,
    *,
    used: DecisionRef | Iterable[DecisionRef] = (),
    ignored: DecisionRef | Iterable[DecisionRef] = (),
    reason: str | None = None,
) -> Errand[None]:
    named = recall.request_id if isinstance(recall, (Recall, VectorRecall)) else recall
    why = check.optional_text("reason", reason) or "not said"
    body = {
        "used_memory_ids": check.decisions("decisions", used),
        "ignored": [{"memory_id": one, "reason": why} for one in check.decisions("decisions", ignored)],
    }
    path = f"/recall/{check.uuid('recall', named)}/usage"
    return Errand("mark_used", body, _nothing, path=path, late=True)


def _nothing(answer: Any) -> None:
    """What a copy tells of it is its own affair."""


def record(
    sender: Sender,
    content: str,
    *,
    rationale: str | None,
    alternatives: Sequence[str],
    importance: float | None,
    step: int | None,
    depends_on: DecisionRef | Sequence[DecisionRef],
    confidence: float | None,
    key: str | None,
) -> Errand[Recorded]:
    decision = {
        "content": check.text("content", content, max_bytes=check.MAX_TEXT_BYTES),
        "rationale": check.optional_text("rationale", rationale, blank=True),
        "alternatives": check.alternatives(alternatives),
        "importance": None if importance is None else check.fraction("importance", importance),
        "step_index": None if step is None else check.whole("step", step, minimum=0, maximum=check.MAX_STEP),
        "depends_on": check.grounds(depends_on),
        "confidence": None if confidence is None else check.fraction("confidence", confidence),
    }
    given = idempotency_key(key)
    body = sender.body(
        _RECORD_SCHEMA,
        memory_payload={"decisions": [_set(decision)]},
        # the function looks a key up in every workspace
        idempotency_key=None if given is None else f"{sender.workspace}/{given}",
    )
    return Errand("record", body, _recorded, repeatable=given is not None, path="/writeback")


def _recorded(answer: Any) -> Recorded:
    report = answer.get("ledger")
    if not isinstance(report, Mapping):
        raise NotPatchedError(
            "the function has stored the text, and lacks the part of the patch that gives it to the ledger",
            hint=PATCH_HINT,
        )
    linked = [UUID(one["depends_on"]) for one in report["linked"]]
    not_linked = [NotLinked.model_validate(one) for one in report["not_linked"]]
    if report["decisions"]:
        held = report["decisions"][0]
        return Recorded.model_validate({**held, "linked": linked, "not_linked": not_linked})
    (missing,) = report["not_written"]
    reason = wording.of_the_sdk(missing["reason"])
    if missing["memory_id"] is not None:
        return Recorded(memory_id=missing["memory_id"], enrolled=False, reason=reason)
    (known,) = answer["memories"]
    memory_id = known.get("memory_id", known.get("id"))
    if missing.get("code") == "nothing_stored":  # it answers what it stored under this key before
        return Recorded(memory_id=memory_id, replayed=True)
    return Recorded(memory_id=memory_id, enrolled=False, reason=reason)


def supersede(
    workspace: str, old: DecisionRef, *, by: DecisionRef, reason: str | None, actor: str | None
) -> Errand[Superseded]:
    ends = check.decision("old", old), check.decision("by", by)
    if ends[0] == ends[1]:
        raise InvalidArgumentError("a decision cannot supersede itself")
    body = {
        "action": "supersede",
        "workspace_id": workspace,
        "by": ends[1],
        "notes": check.optional_text("reason", reason),
        "actor_label": check.name("actor", actor),
    }
    return Errand("supersede", _set(body), _superseded, method="PATCH", path=f"/memories/{ends[0]}/review")


def _superseded(answer: Any) -> Superseded:
    if not isinstance(answer, Mapping) or "by" not in answer:
        raise NotPatchedError(
            "the function reviewed the decision by itself, and lacks the part of the patch that supersedes",
            hint=PATCH_HINT,
        )
    return Superseded.model_validate(
        {"old": answer["memory"], "new": answer["by"], "changed": answer["changed"]}
    )


def _set(fields: Mapping[str, Any]) -> dict[str, Any]:
    """What was set: None and what is empty are the function's default."""
    return {name: value for name, value in fields.items() if value is not None and value not in ([], {})}
