"""The SDK's sentences with the commands and options of this program in place of methods and arguments."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

# Methods as the SDK's messages name them, and the command that does the same. A test runs through them.
COMMANDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "check_copies": "doctor",
        "enroll_missing": "doctor --mend",
        "fit_similarity_range": "settings similarity-range --fit",
        "forget": "forget",
        "get": "show",
        "impact": "impact",
        "link": "link",
        "mark_used": "used",
        "pin": "pin",
        "policy_stats": "stats",
        "prune_traces": "prune",
        "recall": "recall",
        "record": "record",
        "record_many": "record-many",
        "set_importance": "importance",
        "set_lifecycle": "lifecycle",
        "set_similarity_range": "settings similarity-range",
        "set_text_config": "settings text-config",
        "settings": "settings show",
        "status": "doctor",
        "supersede": "supersede",
        "timeline": "timeline",
        "traces": "eval replay",
        "unlink": "unlink",
    }
)
# Only names that mean nothing else: `task` is a word, and `depends_on` a relation.
OPTIONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "current_step": "--current-step",
        "dependency_saturation": "--dependency-saturation",
        "fusion": "--fusion",
        "fusion_weight": "--fusion-weight",
        "half_life_steps": "--half-life-steps",
        "idempotency_key": "--idempotency-key",
        "include_personal": "--include-personal",
        "include_stale": "--include-stale",
        "include_superseded": "--include-superseded",
        "max_depth": "--max-depth",
        "max_tokens": "--max-tokens",
        "min_relevance": "--min-relevance",
        "only_confirmed": "--only-confirmed",
        "request_id": "--request-id",
        "runtime_name": "--runtime",
        "similarity_ceiling": "--similarity-ceiling",
        "similarity_floor": "--similarity-floor",
        "weights.dependency": "--dependency",
        "weights.importance": "--importance",
        "weights.recency": "--recency",
        "weights.relevance": "--relevance",
        "weights.summary": "--summary",
    }
)

# The same of the long-term memory.
MEMORY_COMMANDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "adopt": "memory adopt",
        "attribute_decision": "memory attribute",
        "correct": "memory correct",
        "erase": "memory erase",
        "expire": "memory expire",
        "forget": "memory forget",
        "map_workspace": "memory map",
        "pending": "memory review",
        "recall": "memory recall",
        "remember": "memory remember",
        "review": "memory review",
        "set_member": "memory member",
        "set_organization": "memory org",
        "subject_access": "memory subject-access",
        "usage": "memory usage",
    }
)
MEMORY_OPTIONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "access_token": "RANKED_LEDGER_ACCESS_TOKEN",
        "allow_asserted": "--allow-asserted",
        "also_containing": "--containing",
        "asserted_by": "--asserted-by",
        "can_use_as_instruction": "--instruction",
        "digest_key": "RANKED_LEDGER_DIGEST_KEY",
        "expires_at": "--expires",
        "half_life_days": "--half-life",
        "idempotency_key": "--idempotency-key",
        "include_unreviewed": "--unreviewed",
        "max_tokens": "--max-tokens",
        "min_relevance": "--min-relevance",
        "on_return": "--on-return",
        "run_id": "--run",
        "usage_before": "--usage-before",
        "weights.recency": "--recency",
        "weights.relevance": "--relevance",
    }
)


def of_the_commands(text: str) -> str:
    """A sentence with the names that a reader of a terminal can type."""
    return _exchanged(text, COMMANDS, OPTIONS)


def of_the_memory_commands(text: str) -> str:
    """The same for a sentence about the long-term memory."""
    return _exchanged(text, MEMORY_COMMANDS, MEMORY_OPTIONS)


def _exchanged(text: str, commands: Mapping[str, str], options: Mapping[str, str]) -> str:
    def word(found: re.Match[str]) -> str:
        if method := found["method"]:
            return f"`ranked-ledger {commands[method]}`"
        return options[found["argument"]]

    return re.sub(
        rf"\b(?:(?P<method>{'|'.join(commands)})\(\)|(?P<argument>{'|'.join(map(re.escape, options))})\b)",
        word,
        text,
    )
