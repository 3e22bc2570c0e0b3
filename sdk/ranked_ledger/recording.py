"""A decision to be written: from what a caller gives to what the database takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, get_args

from ranked_ledger import arguments as check
from ranked_ledger.errors import InvalidArgumentError
from ranked_ledger.models import UNSET, CreatedBy, NewDecision, Visibility


def checked(new: NewDecision) -> dict[str, Any]:
    """A new decision as the database takes it, without `p_`; raises what is wrong with it."""
    if new.embedding is None and new.embedding_model is not None:
        raise InvalidArgumentError("embedding_model is given without an embedding")
    element = {
        "content": check.text("content", new.content, max_bytes=check.MAX_TEXT_BYTES),
        "summary": check.optional_text("summary", new.summary, max_bytes=check.MAX_SUMMARY_BYTES),
        "rationale": check.optional_text("rationale", new.rationale, blank=True),
        "alternatives": check.alternatives(new.alternatives),
        "importance": None if new.importance is None else check.fraction("importance", new.importance),
        "step_index": None
        if new.step is None
        else check.whole("step", new.step, minimum=0, maximum=check.MAX_STEP),
        "project_id": None if new.project is UNSET else check.name("project", new.project),
        "task_id": check.name("task", new.task),
        "flow_id": check.name("flow", new.flow),
        "depends_on": check.grounds(new.depends_on),
        "embedding": None if new.embedding is None else check.vector("embedding", new.embedding),
        "embedding_model": check.name("embedding_model", new.embedding_model),
        "pinned": check.flag("pinned", new.pinned) or None,
        "visibility": None
        if new.visibility is None
        else check.one_of("visibility", new.visibility, get_args(Visibility)),
        "created_by": None
        if new.created_by is None
        else check.one_of("created_by", new.created_by, get_args(CreatedBy)),
        "runtime_name": check.name("runtime_name", new.runtime_name),
        "metadata": None if new.metadata is None else check.mapping("metadata", new.metadata),
    }
    return {name: value for name, value in element.items() if value is not None and value not in ([], {})}


def new_decision(value: object, *, project: str | None) -> NewDecision:
    """An element of `record_many`: a `NewDecision`, a mapping of its fields or a text; in that project."""
    if isinstance(value, str):
        value = NewDecision(value)
    elif isinstance(value, Mapping):
        known = {one.name for one in fields(NewDecision)}
        unknown = sorted(str(name) for name in value if name not in known)
        if unknown:
            raise InvalidArgumentError(
                f"a decision has no {', '.join(unknown)}", hint=f"the names are {', '.join(sorted(known))}"
            )
        if "content" not in value:
            raise InvalidArgumentError("content is missing")
        value = NewDecision(**value)
    elif not isinstance(value, NewDecision):
        raise InvalidArgumentError(f"a decision is a NewDecision or a mapping, not {type(value).__name__}")
    return replace(value, project=project) if value.project is UNSET else value
