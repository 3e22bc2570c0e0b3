"""A project with both stores, in which somebody's words stand wherever words can stand, and what is left of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any
from uuid import uuid4

from tests.rig.databases import Database
from tests.rig.residue import places
from tests.sql.memory_rpc import Memories
from tests.sql.rpc import Ledger, failed_checks, vector

NOTHING = dict.fromkeys(
    (
        "memories",
        "decisions",
        "decisions_shared",
        "thoughts_deleted",
        "thoughts_shared",
        "traces",
        "recalls",
        "reviews",
        "audit_events",
        "strings_cleaned",
        "names_left",
    ),
    0,
)


def counted(answer: dict[str, Any]) -> dict[str, int]:
    """What an erasure counted, without the zeros."""
    return {name: number for name, number in answer["counts"].items() if number}


class Scene:
    """One organization with the workspace acme, and candidates in both stores."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.memories = Memories(database)
        self.org = self.memories.org
        self.service = self.memories.as_service()
        self.has_ledger = database.value("select long_term_memory.has_ledger()")
        self.dimension = 1536
        if self.has_ledger:
            self.ledger = Ledger(database)
            self.dimension = int(str(database.value("select ranked_ledger.embedding_dimension()")))
            self.map("acme")

    def do(self, query: str, *params: object) -> list[tuple]:
        cursor = self.database.superuser.execute(query, params)
        return cursor.fetchall() if cursor.description else []

    def map(self, workspace: str, org: str | None = None) -> None:
        self.do(
            "insert into long_term_memory.workspace_orgs (workspace_id, org_id) values (%s, %s) "
            "on conflict (workspace_id) do update set org_id = excluded.org_id",
            workspace,
            org or self.org,
        )

    def attribute(self, memory_id: str, *subjects: str, org: str | None = None) -> None:
        for subject in subjects:
            self.do(
                """insert into long_term_memory.decision_subjects (memory_id, org_id, workspace_id, subject_type, subject_id)
                   select m.id, %s, m.workspace_id, 'candidate', %s from public.agent_memories m where m.id = %s""",
                org or self.org,
                subject,
                memory_id,
            )

    def tie(self, trace_id: str, subject: str) -> None:
        self.do(
            "insert into long_term_memory.trace_subjects (trace_id, org_id, subject_type, subject_id) "
            "values (%s, %s, 'candidate', %s) on conflict do nothing",
            trace_id,
            self.org,
            subject,
        )

    def erase(self, subject: str, **arguments: Any) -> dict[str, Any]:
        answer = self.service("erase_subject", subject_type="candidate", subject_id=subject, **arguments)
        assert isinstance(answer, dict)
        return answer

    def remember(self, text: str, subject: str, **columns: Any) -> str:
        return self.memories.insert(text, subject_type="candidate", subject_id=subject, **columns)

    def vector(self, axis: int) -> str:
        return vector(self.dimension, axis)

    def decide(self, word: str, *subjects: str, axis: int = 1, **arguments: Any) -> str:
        """A decision whose words are all made of this one, wherever a decision can have words."""
        memory_id = self.ledger.id(
            **{
                "content": f"{word}content stands here",
                "summary": f"{word}summary",
                "rationale": f"since {word}rationale",
                "alternatives": [f"{word}alternative"],
                "metadata": {f"{word}name": [f"{word}value", {"deep": f"{word}deep"}]},
                "embedding": self.vector(axis),
                "embedding_model": f"{word}model",
                "idempotency_key": f"key {word[:2]} {axis}",
            }
            | arguments
        )
        self.attribute(memory_id, *subjects)
        return memory_id

    def write_by_host(self, word: str, *subjects: str) -> str:
        """A decision as a host's function writes it: a shared fingerprint, a hash, a key, a step that is none."""
        content = f"{word}content of the host"
        hashed = hashlib.sha256(content.encode()).hexdigest()
        (thought,) = self.do(
            "select public.upsert_thought(%s, %s) ->> 'id'",
            content,
            json.dumps({"metadata": {"who": f"{word}thought"}}),
        )[0]
        (memory_id,) = self.do(
            """insert into public.agent_memories (thought_id, workspace_id, memory_type, summary, content, idempotency_key,
                                                  content_hash, metadata)
               values (%s, 'acme', 'decision', %s, %s, %s, %s, %s) returning id::text""",
            thought,
            f"{word}summary",
            content,
            f"{word}key",
            hashed,
            json.dumps({"agent_memory": {"step_index": f"{word}step", "rationale": f"{word}rationale"}}),
        )[0]
        self.attribute(memory_id, *subjects)
        return str(memory_id)

    def surround(self, memory_id: str, word: str, other: str) -> None:
        """Everything that hangs on a decision and may hold words."""
        document = json.dumps({"text": f"{word}document"})
        for table, columns in (
            ("agent_memory_source_refs", {"source_kind": "mail", "uri": f"mailto:{word}uri", "title": word}),
            ("agent_memory_artifacts", {"artifact_kind": "file", "uri": word, "description": f"{word}file"}),
        ):
            self.do(
                f"insert into public.{table} (memory_id, {', '.join(columns)}, metadata) "
                f"values (%s, {', '.join(['%s'] * len(columns))}, %s)",
                memory_id,
                *columns.values(),
                document,
            )
        for ends in ((memory_id, other), (other, memory_id)):
            self.do(
                "insert into public.agent_memory_relations (from_memory_id, to_memory_id, relation, metadata) "
                "values (%s, %s, 'related_to', %s)",
                *ends,
                document,
            )
            self.do(
                "insert into public.agent_decision_edges (from_memory_id, to_memory_id, relation, metadata) "
                "values (%s, %s, 'informs', %s)",
                *ends,
                document,
            )
        self.do(
            """insert into public.agent_memory_review_actions (memory_id, action, actor_id, actor_label, notes, before, after)
               values (%s, 'edit', 'reviewer 7', %s, %s, %s, %s)""",
            memory_id,
            f"{word}label",
            f"{word}notes",
            document,
            document,
        )
        self.ledger(
            "set_decision_lifecycle",
            memory_id=memory_id,
            lifecycle="disputed",
            reason=f"{word}reason",
            actor=f"{word}actor",
        )
        self.do(
            """insert into ranked_ledger.enrolment_failures (memory_id, workspace_id, operation, reason, failed_with)
               values (%s, %s, 'follow', %s, '22000')""",
            memory_id,
            self.ledger.workspace,
            f"{word}failure",
        )
        self.do(
            """insert into public.agent_memory_audit_events (event_type, workspace_id, memory_id, actor_label, payload)
               values ('memory_edited', %s, %s, %s, %s)""",
            self.ledger.workspace,
            memory_id,
            f"{word}label",
            document,
        )

    def trace(self, word: str, *memory_ids: str, neighbours: tuple[str, ...] = ()) -> str:
        """A recall as the host's function writes it, with reasons and an audit event. Answers the trace's id.

        Neighbours were returned too, and their snapshots say nothing of the question.
        """
        document = json.dumps({"text": f"{word}document"})
        (trace_id,) = self.do(
            """insert into public.agent_memory_recall_traces (workspace_id, query, schema_version, request_payload, response_policy)
               values (%s, %s, '1', %s, %s) returning id::text""",
            self.ledger.workspace,
            f"what of {word}query",
            document,
            json.dumps({"recall_policy": "vector", "max_items": 10, "note": f"{word}policy"}),
        )[0]
        for rank, memory_id in enumerate((*memory_ids, *neighbours), 1):
            self.do(
                """insert into public.agent_memory_recall_items (trace_id, memory_id, rank, used, ignored_reason, use_policy_snapshot)
                   values (%s, %s, %s, false, %s, %s)""",
                trace_id,
                memory_id,
                rank,
                f"{word}ignored",
                json.dumps(
                    {"recall_policy": "vector", "usage_counted": True}
                    | ({} if memory_id in neighbours else {"note": f"{word}snapshot"})
                ),
            )
        self.do(
            """insert into public.agent_memory_audit_events (event_type, workspace_id, trace_id, payload)
               values ('recall_requested', %s, %s, %s)""",
            self.ledger.workspace,
            trace_id,
            document,
        )
        return str(trace_id)

    def fill_memories(self, word: str, subject: str) -> list[str]:
        """Memories with a history, a recall and a key."""
        first = self.remember(
            f"{word}memory of the model", subject, embedding="[1,2,3]", embedding_model=f"{word}model"
        )
        second = self.remember(f"{word}memory of a person", subject, author="person")
        self.do(
            """insert into long_term_memory.memory_events (org_id, memory_id, action, note, text_before)
               values (%s, %s, 'corrected', %s, %s)""",
            self.org,
            first,
            f"{word}note",
            f"{word}before",
        )
        self.do(
            "insert into long_term_memory.idempotency_keys (org_id, key, digest, memory_id) values (%s, %s, sha256(%s), %s)",
            self.org,
            str(uuid4()),
            f"{word}memory of a person".encode(),
            second,
        )
        (recall,) = self.do(
            "insert into long_term_memory.recalls (org_id, query, arguments) values (%s, %s, %s) returning id::text",
            self.org,
            f"{word}question",
            json.dumps({"p_query": f"{word}argument"}),
        )[0]
        self.do(
            "insert into long_term_memory.recall_subjects (recall_id, org_id, subject_type, subject_id) "
            "values (%s, %s, 'candidate', %s)",
            recall,
            self.org,
            subject,
        )
        return [first, second]

    def fill_ledger(self, word: str, subject: str, axis: int = 1) -> dict[str, str]:
        """A decision through the SDK's door and one through the host's, with all that can hang on them."""
        other = self.ledger.id("a neighbour")
        recorded = self.decide(word, subject, axis=axis, depends_on=[other])
        written = self.write_by_host(word, subject)
        self.surround(recorded, word, other)
        self.tie(self.trace(word, recorded, written, neighbours=(other,)), subject)
        self.tie(self.trace(word, neighbours=(other,)), subject)
        self.ledger("recall_decisions", query=f"{word}rationale", embedding_model=None)
        self.do("analyze public.agent_memories, public.thoughts, public.agent_memory_review_actions")
        return {"recorded": recorded, "written": written, "other": other}

    def left(
        self,
        *words: str,
        texts: Iterable[str] = (),
        axes: Iterable[int] = (),
    ) -> set[str]:
        """Where anything of these words is left."""
        return places(self.database, words, texts, [self.vector(axis) for axis in axes])

    def is_sound(self) -> None:
        """The ledger finds nothing wrong with itself."""
        assert failed_checks(self.ledger("ledger_status")) == []
        assert self.ledger("check_copies")["wrong"] == []
