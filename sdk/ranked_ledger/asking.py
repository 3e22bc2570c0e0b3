"""What a recall asks of the database, and what its answer becomes. Pure, as `calls` is.

Ranges of filters, calibration and fusion are checked by the database alone: its messages say what each is
for. An argument at its default is not sent, so that an older schema, which does not have it, still answers.
The preset alone is always named; what it fills in is sent where it is given, and goes before it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final
from uuid import UUID

from ranked_ledger import arguments as check
from ranked_ledger import wording
from ranked_ledger.calls import Call
from ranked_ledger.errors import InvalidArgumentError
from ranked_ledger.models import DEFAULT_PRESET, Fusion, Preset, Weights
from ranked_ledger.recalls import Hit, Recall
from ranked_ledger.subjects import Subject
from ranked_ledger.traces import RecallTrace, TracePage

# The components, and the arguments that weigh them.
_WEIGHTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "relevance": "w_similarity",
        "importance": "w_importance",
        "recency": "w_recency",
        "dependency": "w_dependency",
        "summary": "w_summary",
    }
)


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
    include_stale: bool | None,
    only_confirmed: bool,
    include_personal: bool,
    min_relevance: float | None,
    weights: Weights | Mapping[str, float] | None,
    half_life_steps: float | None,
    dependency_saturation: float | None,
    embedding: Sequence[float] | None,
    embedding_model: str | None,
    similarity_floor: float | None,
    similarity_ceiling: float | None,
    fusion: Fusion | None,
    fusion_weight: float | None,
    exact: bool,
    trace: bool,
    request_id: UUID | str | None,
    policy: str | None,
    flow: str | None,
    runtime_name: str | None,
    subject: Subject | None = None,
    preset: Preset = DEFAULT_PRESET,
    as_of: datetime | None = None,
    as_of_step: int | None = None,
) -> Call[Recall]:
    if embedding is None and embedding_model is not None:
        raise InvalidArgumentError("embedding_model is given without an embedding")

    tracing = check.flag("trace", trace)
    call = Call("recall_decisions", {}, _recall, repeatable=request_id is not None or not tracing)
    return call.adding(
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
        include_superseded=check.unless(False, check.flag("include_superseded", include_superseded)),
        include_stale=None if include_stale is None else check.flag("include_stale", include_stale),
        only_confirmed=check.unless(False, check.flag("only_confirmed", only_confirmed)),
        include_personal=check.unless(True, check.flag("include_personal", include_personal)),
        min_relevance=_number("min_relevance", min_relevance),
        half_life_steps=check.positive("half_life_steps", half_life_steps),
        dependency_saturation=check.positive("dependency_saturation", dependency_saturation),
        similarity_floor=_number("similarity_floor", similarity_floor),
        similarity_ceiling=_number("similarity_ceiling", similarity_ceiling),
        fusion=check.optional_text("fusion", fusion),
        fusion_weight=_number("fusion_weight", fusion_weight),
        preset=_preset(preset),
        as_of=None if as_of is None else check.moment("as_of", as_of),
        as_of_step=None
        if as_of_step is None
        else check.whole("as_of_step", as_of_step, minimum=0, maximum=check.MAX_STEP),
        exact=check.unless(True, check.flag("exact", exact)),
        trace=check.unless(True, tracing),
        request_id=None if request_id is None else check.uuid("request_id", request_id),
        policy=check.optional_text("policy", policy),
        flow_id=check.name("flow", flow),
        runtime_name=check.name("runtime_name", runtime_name),
        subject=None if subject is None else _subject(subject),
        **{_WEIGHTS[name]: value for name, value in given_weights(weights).items()},
    )


def _subject(subject: Subject) -> dict[str, str]:
    kind, about = check.subject(subject)
    if about is None:
        raise InvalidArgumentError(f"subject names no {kind}: its id is missing")
    return {"type": kind, "id": about}


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


def traces(
    workspace: str,
    *,
    since: datetime | None,
    marked: bool | None,
    preset: Preset | None,
    weights: Weights | Mapping[str, float] | None,
    after: Mapping[str, Any] | None,
    page_size: int,
) -> Call[TracePage]:
    def parse(answer: Any) -> TracePage:
        found = tuple(RecallTrace.model_validate(one) for one in answer["traces"])
        return TracePage(found, answer["next"], answer["weights"])

    return Call("recall_traces", {}, parse).adding(
        workspace_id=workspace,
        since=None if since is None else check.moment("since", since),
        marked=None if marked is None else check.flag("marked", marked),
        preset=None if preset is None else _preset(preset),
        after=None if after is None else check.mapping("after", after),
        limit=check.whole("page_size", page_size, minimum=1, maximum=check.MAX_TRACES),
        **{_WEIGHTS[name]: value for name, value in given_weights(weights).items()},
    )


def _uuid(value: str | None) -> UUID | None:
    return None if value is None else UUID(value)


def given_weights(weights: Weights | Mapping[str, float] | None) -> dict[str, float]:
    """The weights that were set, by their names."""
    if weights is None:
        return {}
    if isinstance(weights, Mapping):
        unknown = sorted(str(name) for name in set(weights) - set(_WEIGHTS))
        if unknown:
            raise InvalidArgumentError(
                f"there is no weight {', '.join(unknown)}",
                hint="the weights are relevance, importance, recency, dependency and summary",
            )
        weights = Weights(**weights)
    elif not isinstance(weights, Weights):
        raise InvalidArgumentError(
            f"weights must be Weights or a mapping, not {type(weights).__name__}",
            hint='for example {"relevance": 0.6, "recency": 0.1}',
        )
    given = {name: getattr(weights, name) for name in _WEIGHTS}
    return {
        name: check.finite(f"weights.{name}", value, minimum=0)
        for name, value in given.items()
        if value is not None
    }


def _preset(preset: Preset) -> str:
    """Which presets there are, the database knows."""
    return check.text("preset", preset)


def _number(name: str, value: float | None) -> float | None:
    return None if value is None else check.finite(name, value)
