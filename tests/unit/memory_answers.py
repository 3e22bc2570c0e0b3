"""Answers of the long-term memory, as docs/memory-api.md shows them."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from tests.unit.conftest import ORG

MEMORY = UUID("44444444-4444-4444-8444-444444444444")
OTHER = UUID("55555555-5555-4555-8555-555555555555")
CANDIDATE = UUID("66666666-6666-4666-8666-666666666666")
PERSON = UUID("77777777-7777-4777-8777-777777777777")
RECALL = UUID("88888888-8888-4888-8888-888888888888")
NOW = "2026-11-30T12:00:00+00:00"


def memory(**changed: Any) -> dict[str, Any]:
    return {
        "memory_id": str(MEMORY),
        "org_id": ORG,
        "subject_type": "candidate",
        "subject_id": str(CANDIDATE),
        "workspace_id": None,
        "text": "Prefers calls after 17:00",
        "author": "model",
        "grade": None,
        "source_run_id": "run-81",
        "written_by": None,
        "asserted_by": None,
        "reviewed_at": None,
        "reviewed_by": None,
        "review_outcome": None,
        "review_grade": None,
        "can_use_as_instruction": False,
        "embedding_model": None,
        "created_at": NOW,
        "updated_at": NOW,
        "expires_at": None,
        "erased_at": None,
        **changed,
    }


def remembered(**changed: Any) -> dict[str, Any]:
    return memory(**{"replayed": False, "erased_before": "not_checked", **changed})


def hit(**changed: Any) -> dict[str, Any]:
    return {
        "rank": 1,
        "memory_id": str(MEMORY),
        "text": "Prefers calls after 17:00",
        "subject_type": "candidate",
        "subject_id": str(CANDIDATE),
        "workspace_id": None,
        "author": "model",
        "grade": None,
        "review_outcome": "approved",
        "review_grade": "verified",
        "can_use_as_instruction": False,
        "source_run_id": "run-81",
        "created_at": NOW,
        "expires_at": None,
        "age_days": 2.5,
        "relevance": 0.8,
        "relevance_source": "fts",
        "recency": 0.92,
        "score": 0.83,
        "tokens": 20,
        "line": "- [model, approved | 2 days old] Prefers calls after 17:00",
        **changed,
    }


def recall(*hits: dict[str, Any], **changed: Any) -> dict[str, Any]:
    return {
        "recall_id": str(RECALL),
        "hits": list(hits),
        "shortened": [],
        "dropped": [],
        "recorded": True,
        "hint": None,
        "arguments": {"p_match_count": 10},
        **changed,
    }


def access(**changed: Any) -> dict[str, Any]:
    return {
        "subject": {"type": "candidate", "id": str(CANDIDATE)},
        "org_id": ORG,
        "as_of": NOW,
        "memories": [memory()],
        "decisions": [],
        "recalls": [],
        "traces": [],
        "erasures": [],
        "notes": [],
        **changed,
    }


def erasure(**changed: Any) -> dict[str, Any]:
    return {
        "receipt_id": str(RECALL),
        "erased_at": NOW,
        "dry_run": False,
        "already": False,
        "counts": {"memories": 3, "decisions": 1},
        "digests": 0,
        "notes": [],
        **changed,
    }
