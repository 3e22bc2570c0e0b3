"""Answers of the database, as docs/sql-api.md shows them."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

MEMORY = UUID("11111111-1111-4111-8111-111111111111")
OTHER = UUID("22222222-2222-4222-8222-222222222222")
REQUEST = UUID("33333333-3333-4333-8333-333333333333")
NOW = "2026-11-30T12:00:00+00:00"


def decision(**changed: Any) -> dict[str, Any]:
    return {
        "memory_id": str(MEMORY),
        "workspace_id": "acme",
        "project_id": "billing",
        "task_id": "invoicing",
        "flow_id": None,
        "step_index": 12,
        "step_settled": True,
        "summary": "Invoices are immutable",
        "content": "Invoices are immutable once sent",
        "rationale": "auditors diff them",
        "alternatives": ["edit in place"],
        "importance": 0.9,
        "pinned": False,
        "lifecycle_status": "active",
        "review_status": "pending",
        "visibility": "project",
        "created_by": "agent",
        "recall_count": 0,
        "used_count": 0,
        "last_recalled_at": None,
        "embedding_model": None,
        "metadata": {},
        "ledger_metadata": {},
        "created_at": NOW,
        "updated_at": NOW,
        **changed,
    }


def decisions(count: int) -> list[dict[str, Any]]:
    return [decision(memory_id=str(uuid4()), step_index=place) for place in range(count)]


def hit(**changed: Any) -> dict[str, Any]:
    return {
        "rank": 1,
        "memory_id": str(MEMORY),
        "summary": "Invoices are immutable",
        "content": "Invoices are immutable once sent",
        "rationale": None,
        "step_index": 3,
        "importance": 0.9,
        "pinned": False,
        "lifecycle_status": "active",
        "relevance": 0.75,
        "relevance_source": "fts",
        "recency": 0.5,
        "dependency_boost": 0.333,
        "ranking_score": 0.68745,
        "project_id": "billing",
        "task_id": "invoicing",
        "similarity": None,
        "text_relevance": 0.75,
        "step_distance": 20,
        "live_dependents": 1,
        "alternatives": [],
        "successor": None,
        "depends_on": [],
        "rests_on_retired": False,
        "shortened": False,
        "tokens": 22,
        "line": "- [step 3 | billing/invoicing] Invoices are immutable once sent",
        **changed,
    }


ARGUMENTS = {
    "p_w_similarity": 0.45,
    "p_w_importance": 0.25,
    "p_w_recency": 0.15,
    "p_w_dependency": 0.15,
    "p_match_count": 10,
}


def recall(*hits: dict[str, Any], **changed: Any) -> dict[str, Any]:
    return {
        "request_id": str(REQUEST),
        "hits": list(hits),
        "shortened": [],
        "dropped": [],
        "exact": True,
        "policy": "ranked_ledger",
        "arguments": ARGUMENTS,
        "traced": True,
        "replayed": False,
        "hint": None,
        **changed,
    }


def settings(**changed: Any) -> dict[str, Any]:
    return {"workspace_id": "acme", "text_config": "pg_catalog.english", "similarity_ranges": [], **changed}


def error(code: str, message: str = "no", **changed: Any) -> dict[str, Any]:
    return {"code": code, "message": message, "details": None, "hint": None, **changed}
