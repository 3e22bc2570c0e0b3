"""Words for people: counted things, and the server's sentences with the SDK's names in place of SQL's.

Names are exchanged and nothing is concluded from a sentence; a name that is not known stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal

Store = Literal["ledger", "memory"]
"""Whose function is called: the decision ledger's, or the long-term memory's."""

# Functions of docs/sql-api.md whose method has another name. A test looks for every one of them.
METHODS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "check_copies": "check_copies",
        "decision_impact": "impact",
        "enroll_missing_decisions": "enroll_missing",
        "fit_similarity_range": "fit_similarity_range",
        "forget_decision": "forget",
        "get_decision": "get",
        "get_workspace_settings": "settings",
        "ledger_status": "status",
        "link_decisions": "link",
        "list_decisions": "timeline",
        "mark_recall_usage": "mark_used",
        "pin_decision": "pin",
        "prune_traces": "prune_traces",
        "recall_decisions": "recall",
        "recall_policy_stats": "policy_stats",
        "recall_traces": "traces",
        "record_decision": "record",
        "record_decisions": "record_many",
        "set_decision_importance": "set_importance",
        "set_decision_lifecycle": "set_lifecycle",
        "set_similarity_range": "set_similarity_range",
        "set_text_config": "set_text_config",
        "supersede_decision": "supersede",
        "unlink_decisions": "unlink",
    }
)
ARGUMENTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "p_flow_id": "flow",
        "p_from": "decision",
        "p_limit": "limit",
        "p_match_count": "limit",
        "p_memory_id": "decision",
        "p_new": "by",
        "p_project_id": "project",
        "p_query_embedding": "embedding",
        "p_step_index": "step",
        "p_task_id": "task",
        "p_w_dependency": "weights.dependency",
        "p_w_importance": "weights.importance",
        "p_w_recency": "weights.recency",
        "p_w_similarity": "weights.relevance",
        "p_w_summary": "weights.summary",
        "p_workspace_id": "workspace",
    }
)
# The same of the long-term memory; its functions and arguments that are not here have the same name.
MEMORY_METHODS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "adopt_memories": "adopt",
        "attribute_decision": "attribute_decision",
        "correct_memory": "correct",
        "erase_subject": "erase",
        "expire_memories": "expire",
        "forget_memory": "forget",
        "map_workspace": "map_workspace",
        "memory_usage": "usage",
        "pending_reviews": "pending",
        "recall_memories": "recall",
        "remember": "remember",
        "review_memory": "review",
        "set_member": "set_member",
        "set_organization": "set_organization",
        "subject_access": "subject_access",
    }
)
MEMORY_ARGUMENTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "p_match_count": "limit",
        "p_memory_id": "memory",
        "p_org_id": "org",
        "p_query_embedding": "embedding",
        "p_source_run_id": "run_id",
        "p_subject_id": "subject",
        "p_subject_type": "subject",
        "p_user_id": "user",
        "p_w_recency": "weights.recency",
        "p_w_similarity": "weights.relevance",
        "p_workspace_id": "workspace",
    }
)


def _pattern(methods: Mapping[str, str]) -> re.Pattern[str]:
    # a word of English, such as remember, is left as it is
    names = "|".join(sorted((name for name in methods if "_" in name), reverse=True))
    return re.compile(rf"\b(?:p_[a-z_]+|{names})\b(?!\()")


_WORDS: Final[Mapping[Store, tuple[re.Pattern[str], Mapping[str, str], Mapping[str, str]]]] = (
    MappingProxyType(
        {
            "ledger": (_pattern(METHODS), METHODS, ARGUMENTS),
            "memory": (_pattern(MEMORY_METHODS), MEMORY_METHODS, MEMORY_ARGUMENTS),
        }
    )
)


def counted(number: int, one: str, many: str | None = None) -> str:
    """A number with its noun.

    Example:
        >>> counted(1, "decision"), counted(1200, "decision"), counted(0, "entry", "entries")
        ('1 decision', '1,200 decisions', '0 entries')
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def of_the_sdk(text: str, store: Store = "ledger") -> str:
    """A sentence of the server with the SDK's names in it: those of the clients of that store.

    Example:
        >>> of_the_sdk("Check the id; list_decisions shows what is here (p_include_superseded: all).")
        'Check the id; timeline() shows what is here (include_superseded: all).'
    """

    names, methods, arguments = _WORDS[store]

    def word(found: re.Match[str]) -> str:
        name = found[0]
        if name in methods:
            return f"{methods[name]}()"
        return arguments.get(name, name.removeprefix("p_"))

    return names.sub(word, text)
