"""Both stores in one project: a workspace of the ledger that belongs to an organization."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from tests.rig.databases import Connection, Database
from tests.sql.memory_rpc import Memories
from tests.sql.rpc import Ledger, call


class Stores:
    """An organization with the workspace acme, unless it is not to be mapped."""

    def __init__(self, database: Database, *, mapped: bool = True) -> None:
        self.database = database
        self.memories = Memories(database)
        self.org = self.memories.org
        self.service = self.memories.as_service()
        self.ledger = Ledger(database)
        if mapped:
            self.map("acme")

    def map(self, workspace: str, org: str | None = None) -> dict[str, Any]:
        answer = call(self.database.service, "map_workspace", org_id=org or self.org, workspace_id=workspace)
        assert isinstance(answer, dict)
        return answer

    def attribute(
        self,
        memory_id: str,
        subject: str,
        kind: str = "candidate",
        connection: Connection | None = None,
        **more: Any,
    ) -> dict[str, Any]:
        answer = call(
            connection or self.database.service,
            "attribute_decision",
            **{"org_id": self.org, "memory_id": memory_id, "subject_type": kind, "subject_id": subject}
            | more,
        )
        assert isinstance(answer, dict)
        return answer

    def decide(self, content: str, *subjects: str, **arguments: Any) -> str:
        """A decision about these candidates."""
        memory_id = self.ledger.id(content, **arguments)
        for subject in subjects:
            self.attribute(memory_id, subject)
        return memory_id

    def access(self, subject: str, kind: str = "candidate", org: str | None = None) -> dict[str, Any]:
        answer = self.service("subject_access", org_id=org or self.org, subject_type=kind, subject_id=subject)
        assert isinstance(answer, dict)
        return answer

    def attributed(self, memory_id: str | None = None) -> list[tuple[str, str, str]]:
        """(workspace, subject type, subject) of the attributions, of one decision or of all."""
        return self.rows(
            "select workspace_id, subject_type, subject_id::text from long_term_memory.decision_subjects "
            "where memory_id = coalesce(%s, memory_id) order by 1, 2, 3",
            memory_id,
        )

    def tied(self, request_id: str) -> list[str]:
        """The subjects that a trace is tied to."""
        return [
            subject
            for (subject,) in self.rows(
                "select s.subject_id::text from long_term_memory.trace_subjects s "
                "join agent_memory_recall_traces t on t.id = s.trace_id where t.request_id = %s order by 1",
                request_id,
            )
        ]

    def words(self, request_id: str) -> tuple[str, dict[str, Any]]:
        """What a trace still has of its question."""
        ((query, payload),) = self.rows(
            "select query, request_payload from agent_memory_recall_traces where request_id = %s", request_id
        )
        return query, payload

    def audited(self, kind: str, org: str | None = None) -> list[dict[str, Any]]:
        return [
            payload
            for (payload,) in self.rows(
                "select payload from long_term_memory.audit_events where kind = %s and org_id = %s order by id",
                kind,
                org or self.org,
            )
        ]

    def rows(self, query: str, *params: object) -> list[tuple]:
        return self.database.rows(query, params, role="service_role")


def somebody() -> str:
    """A subject that nothing is held about."""
    return str(uuid4())
