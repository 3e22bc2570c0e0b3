"""What the ledger takes and answers, as frozen values. Fields that a newer server adds are ignored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import datetime
from enum import Enum
from typing import Any, Final, Literal, Protocol, overload
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

Lifecycle = Literal["active", "stale", "disputed", "rejected", "superseded"]
SettableLifecycle = Literal["active", "stale", "disputed", "rejected"]
Relation = Literal["depends_on", "informs", "blocks"]
Visibility = Literal["personal", "channel", "project", "workspace", "organization"]
CreatedBy = Literal["user", "agent", "system", "import"]
Fusion = Literal["none", "max", "blend"]
Preset = Literal["published", "tuned"]

# What the client of the ledger and the command line ask for: the better one on decisions of real projects
# (docs/evaluation.md). The database's own default is the formula of the proposal, whose callers it serves.
DEFAULT_PRESET: Final[Preset] = "tuned"


class Unset(Enum):
    """The type of `UNSET`: "as the client was made", where None means "none" or "all"."""

    UNSET = "unset"

    def __repr__(self) -> str:
        return "UNSET"


UNSET: Final = Unset.UNSET


class HasMemoryId(Protocol):
    """Whatever names a decision: a `Decision`, a `Hit`, an end of an edge."""

    @property
    def memory_id(self) -> UUID: ...


DecisionRef = HasMemoryId | UUID | str


@dataclass(frozen=True, slots=True)
class NewDecision:
    """A decision to be written by `record_many`; the fields are the arguments of `RankedLedger.record`.

    Example:
        >>> NewDecision("Invoices are immutable once sent", importance=0.9, task="invoicing").importance
        0.9
    """

    content: str
    _: KW_ONLY
    rationale: str | None = None
    alternatives: Sequence[str] = ()
    importance: float | None = None
    step: int | None = None
    task: str | None = None
    project: str | Unset | None = UNSET
    summary: str | None = None
    depends_on: DecisionRef | Sequence[DecisionRef] = ()
    embedding: Sequence[float] | None = None
    embedding_model: str | None = None
    pinned: bool = False
    visibility: Visibility | None = None
    created_by: CreatedBy | None = None
    flow: str | None = None
    runtime_name: str | None = None
    metadata: Mapping[str, Any] | None = None


DecisionInput = NewDecision | Mapping[str, Any] | str


@dataclass(frozen=True, slots=True)
class Weights:
    """How much each component of the score counts: finite and at least 0; None keeps the default.

    The defaults are those of the preset that is asked for: docs/sql-api.md has their table. `summary` weighs
    how much of a summary's words the query names.

    Example:
        >>> Weights(recency=0).recency
        0
    """

    relevance: float | None = None
    importance: float | None = None
    recency: float | None = None
    dependency: float | None = None
    summary: float | None = None


class Answer(BaseModel):
    """What every answer is: frozen, and deaf to what it does not know."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Decision(Answer):
    """A decision as the ledger holds it.

    - `memory_id`: its id everywhere. `step_index`: its step in its stream (workspace, project, task).
    - `step_settled`: False while the step is provisional. `importance`: in [0,1].
    - `lifecycle_status`: active, stale, disputed, rejected or superseded: the lifecycle in force.
    - `replayed`: True where a write with the same idempotency key had already written it.
    - `changed`: after a change, whether anything was different before; None otherwise.
    """

    memory_id: UUID
    workspace_id: str
    project_id: str | None = None
    task_id: str | None = None
    flow_id: str | None = None
    step_index: int
    step_settled: bool = True
    summary: str | None = None
    content: str
    rationale: str | None = None
    alternatives: tuple[str, ...] = ()
    importance: float
    pinned: bool = False
    lifecycle_status: str
    review_status: str | None = None
    visibility: str | None = None
    created_by: str | None = None
    recall_count: int = 0
    used_count: int = 0
    last_recalled_at: datetime | None = None
    embedding_model: str | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)
    ledger_metadata: dict[str, Any] = Field(default_factory=dict)
    created_at: datetime
    updated_at: datetime
    replayed: bool = False
    changed: bool | None = None

    def __hash__(self) -> int:
        return hash(self.memory_id)


class ChainLink(Answer):
    """One decision of a supersession chain."""

    memory_id: UUID
    summary: str | None = None
    step_index: int | None = None
    lifecycle_status: str | None = None


class EdgeEnd(ChainLink):
    """The other end of an edge."""

    relation: str


class LostGround(Answer):
    """A decision that this one rested on and that was forgotten."""

    memory_id: UUID
    relation: str
    forgotten_at: datetime


class Transition(Answer):
    """One change of a decision's lifecycle, with the stream's step at that moment."""

    lifecycle_status: str
    step_index: int | None = None
    at: datetime
    reason: str | None = None
    actor: str | None = None


class DecisionDetail(Decision):
    """A decision in full.

    - `successor`: the newest active decision of its supersession chain, or None.
    - `chain`: that chain, oldest first. `edges_out`, `edges_in`: its edges, by the other end.
    - `lost_ground`: what it rested on and was forgotten. `history`: its transitions, oldest first.
    """

    successor: UUID | None = None
    chain: tuple[ChainLink, ...] = ()
    edges_out: tuple[EdgeEnd, ...] = ()
    edges_in: tuple[EdgeEnd, ...] = ()
    lost_ground: tuple[LostGround, ...] = ()
    history: tuple[Transition, ...] = ()

    __hash__ = Decision.__hash__


class Dependent(ChainLink):
    """A decision that rests on another one, as an `Impact` shows it.

    - `depth`: 1 where it rests on it directly. `via`: what it rests on along the shortest path.
    - `rests_on_retired`: something that it rests on directly is superseded, rejected or gone.
    """

    project_id: str | None = None
    task_id: str | None = None
    importance: float
    depth: int
    via: UUID
    rests_on_retired: bool = False


class Impact(Answer):
    """What rests on a decision, directly and further on, live or not.

    - `decisions`: the nearest first, then by importance. `more`: there are others, too far or past the limit.
    - `direct`, `total`, `live` (active): how many there are in all, whatever was shown.
    """

    memory_id: UUID
    summary: str | None = None
    lifecycle_status: str | None = None
    decisions: tuple[Dependent, ...] = ()
    direct: int
    total: int
    live: int
    more: bool = False


@dataclass(frozen=True)
class Page(Sequence[Decision]):
    """One page of a timeline. `next` is the cursor of the page after it, or None on the last one."""

    decisions: tuple[Decision, ...]
    next: Mapping[str, Any] | None = None

    @overload
    def __getitem__(self, index: int) -> Decision: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Decision, ...]: ...
    def __getitem__(self, index: int | slice) -> Decision | tuple[Decision, ...]:
        return self.decisions[index]

    def __len__(self) -> int:
        return len(self.decisions)

    def __iter__(self) -> Iterator[Decision]:
        return iter(self.decisions)


class Edge(Answer):
    """An edge between two decisions. `created` or `removed` says whether this call changed anything."""

    from_memory_id: UUID
    to_memory_id: UUID
    relation: str
    created: bool | None = None
    removed: bool | None = None


class Superseded(Answer):
    """Both ends of a supersession. `changed` is False where it stood already."""

    old: Decision
    new: Decision
    changed: bool


class Forgotten(Answer):
    """What a `forget` left behind.

    - `already`: it had been forgotten before. `thought_deleted`: its thought went too, since no other
      memory points to it. `dependents`: what rested on it and now keeps a mark that its ground is gone.
    - `left_superseded`: what it had replaced, and nothing active replaces now; `set_lifecycle(..., "active")`
      restores one.
    """

    memory_id: UUID
    forgotten_at: datetime
    already: bool = False
    thought_deleted: bool = False
    dependents: tuple[UUID, ...] = ()
    left_superseded: tuple[UUID, ...] = ()


class SimilarityRange(Answer):
    """The cosines of an embedding model that count as 0 (up to `floor`) and as 1 (from `ceiling` on)."""

    embedding_model: str
    floor: float
    ceiling: float


class FittedRange(Answer):
    """What was measured: `floor` and `ceiling`, from the `pairs` of so many `vectors`."""

    floor: float
    ceiling: float
    vectors: int
    pairs: int


class WorkspaceSettings(Answer):
    """What a workspace chose.

    - `text_config`: the text search configuration that its decisions and questions are read in.
    - `changed`: after a change, whether anything was different before; None otherwise.
    - `read_anew`: after `set_text_config`, how many decisions were read in it.
    - `fitted`: after `fit_similarity_range`, what was measured.
    """

    workspace_id: str
    text_config: str
    similarity_ranges: tuple[SimilarityRange, ...] = ()
    changed: bool | None = None
    read_anew: int | None = None
    fitted: FittedRange | None = None


class Enrolled(Answer):
    """What a backfill did, and whether there is `more` for another one."""

    enrolled: int
    settled: int = 0
    failed: int = 0
    more: bool = False


class CopiesChecked(Answer):
    """One page of the proof that what recall searches is what the tables say.

    - `wrong`: decisions whose copies differ. `mended`: these are marked, so that recall reads them from the
      tables until their copies are made anew. `next`: where the next page starts; None after the last one.
    """

    checked: int
    wrong: tuple[UUID, ...] = ()
    mended: bool = False
    next: UUID | None = None


class WorkspaceStatus(Answer):
    """One workspace in a `Status`."""

    workspace_id: str
    decisions: int
    newest_step: int | None = None
    last_recorded_at: datetime | None = None


class EnrolmentFailure(Answer):
    """A memory that could not be enrolled, and why."""

    memory_id: UUID | None = None
    workspace_id: str | None = None
    reason: str | None = None
    sqlstate: str | None = None
    at: datetime | None = None


class Check(Answer):
    """One check of the ledger on itself."""

    name: str
    ok: bool
    detail: str | None = None


class Status(Answer):
    """How the ledger stands: versions, counts, the busiest workspaces, failures and checks."""

    schema_version: int
    postgres_version: str | None = None
    pgvector_version: str | None = None
    pgvector_schema: str | None = None
    embedding_dimension: int | None = None
    decisions: int = 0
    enrolled: int = 0
    missing: int = 0
    set_aside: int = 0
    provisional: int = 0
    failures: int = 0
    edges: int = 0
    streams: int = 0
    traces: int = 0
    workspaces: tuple[WorkspaceStatus, ...] = ()
    recent_failures: tuple[EnrolmentFailure, ...] = ()
    checks: tuple[Check, ...] = ()
