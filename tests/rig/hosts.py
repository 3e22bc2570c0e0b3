"""The hosts that our migrations meet: with an Open Brain install, with the published proposal, or empty."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ranked_ledger.stack.platform import DefaultPrivileges, VectorSchema
from tests.rig import deploy
from tests.rig.databases import Database, Server, project_template

_SQL = Path(__file__).parent / "sql"

# pgvector's HNSW index ends at 2,000 dimensions of a vector column.
_HNSW_LIMIT = 2000

HOST_TABLES = (
    "thoughts",
    "agent_memories",
    "agent_memory_source_refs",
    "agent_memory_artifacts",
    "agent_memory_relations",
    "agent_memory_review_actions",
    "agent_memory_recall_traces",
    "agent_memory_recall_items",
    "agent_memory_audit_events",
)

# The table of the other product that has this name, as its owners have it.
OTHER_PRODUCT = """
create table public.organizations (id uuid primary key default gen_random_uuid(), name text not null);
create table public.agent_runs (run_id text primary key);
create table public.agent_memories (
  id uuid primary key default gen_random_uuid(),
  org_id uuid not null references public.organizations (id) on delete cascade,
  subject_type text not null, subject_id uuid, text text, author text not null,
  source_run_id text references public.agent_runs (run_id) on delete set null, written_by uuid,
  embedding real[], embedding_model text, created_date timestamptz not null default now(),
  expires_at timestamptz, redacted_at timestamptz);
"""


@dataclass(frozen=True)
class Port:
    """What hosts differ by. `postgres` is the server's major version, kept here for names and reports."""

    dimension: int = 1536
    vector_schema: VectorSchema = "extensions"
    default_privileges: DefaultPrivileges = "none"
    postgres: int = 18
    fingerprint: bool = True

    @property
    def name(self) -> str:
        fingerprint = "" if self.fingerprint else "_plain"
        return f"{self.dimension}_{self.vector_schema}_{self.default_privileges}{fingerprint}"


def host_sql(port: Port) -> str:
    """The host's own install, rows included."""
    text = (_SQL / "host_open_brain.sql").read_text(encoding="utf-8")
    blocks = {
        "vector_index": _VECTOR_INDEX if port.dimension <= _HNSW_LIMIT else "",
        "fingerprint_column": ",\n  content_fingerprint text" if port.fingerprint else "",
        "fingerprint_index": _FINGERPRINT_INDEX if port.fingerprint else "",
        "upsert_thought": _HOST_UPSERT if port.fingerprint else "",
    }
    for name, block in blocks.items():
        text = text.replace(f"<<{name}>>", block)
    return text.replace("$dimension", str(port.dimension))


_VECTOR_INDEX = """
create index thoughts_by_vector on public.thoughts using hnsw (embedding vector_cosine_ops);
"""

_FINGERPRINT_INDEX = """
create unique index thoughts_by_fingerprint on public.thoughts (content_fingerprint)
  where content_fingerprint is not null;
"""

_HOST_UPSERT = """
create function public.upsert_thought(p_content text, p_payload jsonb default '{}') returns jsonb
language plpgsql as $$
declare
  v_id uuid;
  v_folded text := lower(trim(regexp_replace(p_content, '\\s+', ' ', 'g')));
  v_print text := encode(sha256(convert_to(v_folded, 'UTF8')), 'hex');
begin
  insert into thoughts (content, content_fingerprint, metadata)
  values (p_content, v_print, coalesce(p_payload -> 'metadata', '{}'))
  on conflict (content_fingerprint) where content_fingerprint is not null
  do update set metadata = thoughts.metadata || excluded.metadata
  returning id into v_id;
  return jsonb_build_object('id', v_id, 'fingerprint', v_print);
end $$;
grant execute on function public.upsert_thought to service_role;
"""


def _run(database: Database, script: str) -> None:
    # without parameters psycopg sends one simple query, which may hold many statements
    database.owner.execute(script)


def empty_project(server: Server, port: Port = Port()) -> Database:
    """A project with pgvector and nothing else."""
    base = project_template(server, port.default_privileges, port.vector_schema)
    return server.clone(base, lambda database: None)


def open_brain_host(server: Server, port: Port = Port()) -> Database:
    """A project with a host's own Open Brain install, which holds decisions."""
    return server.clone(_host_template(server, port), lambda database: None)


def _host_template(server: Server, port: Port) -> str:
    base = project_template(server, port.default_privileges, port.vector_schema)
    return server.template(f"host_{port.name}", lambda database: _run(database, host_sql(port)), base)


def published_proposal_host(server: Server, port: Port = Port()) -> Database:
    """A host that installed the published proposal after some decisions were kept, and worked with it."""

    def build(database: Database) -> None:
        _run(database, (_SQL / "published_proposal.sql").read_text(encoding="utf-8"))
        _run(database, (_SQL / "published_proposal_rows.sql").read_text(encoding="utf-8"))

    return server.clone(f"proposal_{port.name}", build, _host_template(server, port))


def ledger_project(server: Server, port: Port = Port()) -> Database:
    """An empty project with our Open Brain and decision ledger."""

    def build(database: Database) -> None:
        deploy.apply(database, "open_brain", "decision_ledger")

    base = project_template(server, port.default_privileges, port.vector_schema)
    return server.clone(f"ledger_{port.name}", build, base)


def memory_project(server: Server, port: Port = Port()) -> Database:
    """An empty project with our long-term memory and nothing else of ours."""

    def build(database: Database) -> None:
        deploy.apply(database, "long_term_memory")

    base = project_template(server, port.default_privileges, port.vector_schema)
    return server.clone(f"memory_{port.name}", build, base)


def full_project(server: Server, port: Port = Port()) -> Database:
    """An empty project with everything of ours."""

    def build(database: Database) -> None:
        deploy.apply(database, "open_brain", "decision_ledger", "long_term_memory")

    base = project_template(server, port.default_privileges, port.vector_schema)
    return server.clone(f"full_{port.name}", build, base)


def full_host(server: Server, port: Port = Port()) -> Database:
    """A host's own Open Brain install with everything of ours beside it."""

    def build(database: Database) -> None:
        deploy.apply(database, "open_brain", "decision_ledger", "long_term_memory")

    return server.clone(f"full_host_{port.name}", build, _host_template(server, port))


def ledger_host(server: Server, port: Port = Port()) -> Database:
    """A host's own Open Brain install with our decision ledger beside it."""

    def build(database: Database) -> None:
        deploy.apply(database, "open_brain", "decision_ledger")

    return server.clone(f"ledger_host_{port.name}", build, _host_template(server, port))
